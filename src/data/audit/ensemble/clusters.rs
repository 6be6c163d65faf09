//! Greedy clusters of the conformers of a molecule, as 3DMolGen's analysis of conformer sets finds them: in order, a conformer joins
//! the cluster whose first member is nearest, if its RMSD is below the threshold; otherwise it begins a cluster.
//!
//! No array of shape `[conformers, conformers]` is built. An RMSD serves all thresholds, and the lower bounds of [`Shape`] leave
//! most pairs out.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::super::geometry::{Conformation, Topology};
use super::super::shape::Shape;
use super::super::superposition::{CentredConformer, LeastRmsd};
use super::torsions::torsion_spread;

/// The number of pairs that are superposed before the next lower bound is looked at. It does not depend on the number of threads.
const PAIRS: usize = 16;

/// The clusters of the conformers of one molecule.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConformerClusters {
    /// By threshold and conformer, the number of its cluster, in the order in which clusters begin.
    pub assignments: Vec<Vec<usize>>,
    /// How many of the RMSDs that were computed are upper bounds, because the molecule has too much symmetry.
    pub rmsd_upper_bounds: u64,
}

/// The clusters of one molecule in numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MoleculeClusters {
    /// The number of texts, those that do not pass included.
    pub texts: u64,
    /// The number of conformers.
    pub conformers: u64,
    /// The mean angular deviation of torsions, in degrees; `None` without torsions.
    pub torsion_spread_degrees: Option<f64>,
    /// By threshold.
    pub thresholds: Vec<ThresholdOccupancy>,
    /// How many RMSDs are upper bounds.
    pub rmsd_upper_bounds: u64,
}

/// How the conformers of one molecule occupy its clusters at a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ThresholdOccupancy {
    /// The threshold, in Å.
    pub angstrom: f64,
    /// The number of clusters.
    pub clusters: u64,
    /// The Shannon entropy of the shares of conformers in clusters, in nats.
    pub entropy_nats: f64,
    /// The number of conformers in the largest cluster.
    pub largest: u64,
    /// The sum of the squares of the shares of conformers in clusters (E. H. Simpson, 1949).
    pub simpson: f64,
    /// The number of clusters with one conformer.
    pub singletons: u64,
}

/// The conformers of one molecule.
#[derive(Debug, Clone, Copy)]
pub struct Ensemble<'m> {
    /// The molecule.
    pub topology: &'m Topology,
    /// Its torsions, [`drift_core::chem::Molecule::torsions`].
    pub torsions: &'m [[usize; 4]],
    /// The conformers, `[conformers][atoms]` in Å.
    pub conformers: &'m [Conformation],
    /// The number of texts, those without a conformer included.
    pub texts: u64,
}

/// A conformer that begins clusters.
struct Leader {
    centred: CentredConformer,
    shape: Shape,
    /// By threshold, the number of its cluster.
    clusters: Vec<Option<usize>>,
}

/// A leader beside a conformer.
#[derive(Clone, Copy)]
struct Candidate {
    leader: usize,
    /// The least RMSD that is possible, in Å.
    bound: f64,
}

/// The nearest cluster of a conformer at a threshold.
#[derive(Clone, Copy)]
struct Nearest {
    rmsd: f64,
    cluster: usize,
}

/// Returns the clusters of conformers at thresholds in Å. `None` if a conformer has another number of atoms than the molecule.
pub fn cluster(
    topology: &Topology,
    conformers: &[Conformation],
    thresholds: &[f64],
) -> Option<ConformerClusters> {
    let orbits = topology.orbits();
    let mut found = ConformerClusters {
        assignments: vec![Vec::with_capacity(conformers.len()); thresholds.len()],
        rmsd_upper_bounds: 0,
    };
    let mut leaders: Vec<Leader> = Vec::new();
    let mut counts = vec![0; thresholds.len()];
    for conformer in conformers {
        if conformer.len() != topology.atoms() {
            return None;
        }
        let centred = CentredConformer::new(conformer);
        let shape = Shape::from_config(conformer, &centred, &orbits);
        let mut own = Leader { centred, shape, clusters: vec![None; thresholds.len()] };
        let nearest = own.nearest(topology, &leaders, thresholds, &mut found.rmsd_upper_bounds);
        for (at, nearest) in nearest.into_iter().enumerate() {
            let cluster = nearest.map_or(counts[at], |nearest| nearest.cluster);
            if cluster == counts[at] {
                own.clusters[at] = Some(cluster);
                counts[at] += 1;
            }
            found.assignments[at].push(cluster);
        }
        if own.clusters.iter().any(Option::is_some) {
            leaders.push(own);
        }
    }
    Some(found)
}

impl Leader {
    /// By threshold, the nearest cluster below it. Leaders that a lower bound puts at or above all thresholds at which they lead
    /// clusters are not superposed, and neither are those that cannot be nearer than what was found.
    fn nearest(
        &self,
        topology: &Topology,
        leaders: &[Leader],
        thresholds: &[f64],
        upper_bounds: &mut u64,
    ) -> Vec<Option<Nearest>> {
        let mut candidates: Vec<Candidate> = leaders
            .iter()
            .enumerate()
            .map(|(leader, one)| Candidate { leader, bound: self.shape.least_rmsd(&one.shape) })
            .filter(|one| leaders[one.leader].leads_above(one.bound, thresholds))
            .collect();
        // The sort is stable: of two equal bounds the earlier leader comes first.
        candidates.sort_by(|a, b| a.bound.total_cmp(&b.bound));
        let mut nearest: Vec<Option<Nearest>> = vec![None; thresholds.len()];
        for chunk in candidates.chunks(PAIRS) {
            let can_change =
                |one: &Candidate| leaders[one.leader].can_change(one.bound, thresholds, &nearest);
            let wanted: Vec<Candidate> = chunk.iter().copied().filter(can_change).collect();
            let superposed =
                |one: &Candidate| topology.centred_rmsd(&leaders[one.leader].centred, &self.centred);
            // A few pairs are not worth a second thread.
            let least: Vec<LeastRmsd> = match wanted.len() {
                PAIRS => wanted.par_iter().map(superposed).collect(),
                _ => wanted.iter().map(superposed).collect(),
            };
            for (candidate, least) in wanted.iter().zip(least) {
                *upper_bounds += u64::from(!least.is_exact);
                leaders[candidate.leader].offer(least.rmsd, thresholds, &mut nearest);
            }
        }
        nearest
    }

    /// Returns whether it leads a cluster at a threshold above an RMSD in Å.
    fn leads_above(&self, rmsd: f64, thresholds: &[f64]) -> bool {
        self.clusters
            .iter()
            .zip(thresholds)
            .any(|(cluster, threshold)| cluster.is_some() && rmsd < *threshold)
    }

    /// Returns whether a distance of `rmsd` Å or more from it could be the nearest at a threshold. An equal one could, since of equally
    /// near clusters the first counts.
    fn can_change(&self, rmsd: f64, thresholds: &[f64], nearest: &[Option<Nearest>]) -> bool {
        let at_each = self.clusters.iter().zip(thresholds).zip(nearest);
        let mut led = at_each.filter(|((cluster, threshold), _)| cluster.is_some() && rmsd < **threshold);
        led.any(|(_, nearest)| nearest.is_none_or(|nearest| rmsd <= nearest.rmsd))
    }

    /// Counts its distance from a conformer, in Å.
    fn offer(&self, rmsd: f64, thresholds: &[f64], nearest: &mut [Option<Nearest>]) {
        for (at, cluster) in self.clusters.iter().enumerate() {
            let Some(cluster) = *cluster else { continue };
            let is_nearer = nearest[at].is_none_or(|known| (rmsd, cluster) < (known.rmsd, known.cluster));
            if rmsd < thresholds[at] && is_nearer {
                nearest[at] = Some(Nearest { rmsd, cluster });
            }
        }
    }
}

impl Ensemble<'_> {
    /// Returns the clusters at thresholds in Å. `None` if a conformer has another number of atoms than the molecule.
    pub fn clusters(&self, thresholds: &[f64]) -> Option<ConformerClusters> {
        cluster(self.topology, self.conformers, thresholds)
    }

    /// Clusters that were found at these thresholds, in numbers, and the spread of torsions.
    pub fn figures(&self, found: &ConformerClusters, thresholds: &[f64]) -> MoleculeClusters {
        let conformers = self.conformers.len() as u64;
        let occupied = found.assignments.iter().zip(thresholds);
        MoleculeClusters {
            texts: self.texts.max(conformers),
            conformers,
            torsion_spread_degrees: torsion_spread(self.torsions, self.conformers),
            thresholds: occupied.map(|(found, angstrom)| ThresholdOccupancy::new(*angstrom, found)).collect(),
            rmsd_upper_bounds: found.rmsd_upper_bounds,
        }
    }
}

impl ThresholdOccupancy {
    /// Returns the numbers for the clusters of conformers at a threshold in Å.
    pub fn new(angstrom: f64, assignments: &[usize]) -> Self {
        let mut sizes = vec![0u64; assignments.iter().max().map_or(0, |last| last + 1)];
        assignments.iter().for_each(|cluster| sizes[*cluster] += 1);
        let shares = sizes.iter().map(|size| *size as f64 / assignments.len() as f64);
        // One cluster has an entropy of exactly 0, not -0.
        let entropy = if sizes.len() < 2 { 0.0 } else { -shares.clone().map(|p| p * p.ln()).sum::<f64>() };
        ThresholdOccupancy {
            angstrom,
            clusters: sizes.len() as u64,
            entropy_nats: entropy,
            largest: sizes.iter().copied().max().unwrap_or(0),
            simpson: shares.map(|p| p * p).sum(),
            singletons: sizes.iter().filter(|size| **size == 1).count() as u64,
        }
    }

    /// Returns the effective number of clusters: the exponential of the entropy.
    pub fn effective(&self) -> f64 {
        self.entropy_nats.exp()
    }

    /// Returns the entropy divided by that of clusters of equal size, 0 to 1; 0 for one cluster.
    pub fn evenness(&self) -> f64 {
        if self.clusters < 2 { 0.0 } else { self.entropy_nats / (self.clusters as f64).ln() }
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Returns the rule as 3DMolGen states it, over all pairs.
    fn slow(topology: &Topology, conformers: &[Conformation], threshold: f64) -> Vec<usize> {
        let (mut leaders, mut assignments): (Vec<usize>, Vec<usize>) = Default::default();
        for (at, conformer) in conformers.iter().enumerate() {
            let rmsd = |leader: &usize| topology.rmsd(&conformers[*leader], conformer).unwrap();
            let nearest = leaders.iter().map(rmsd).enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
            match nearest {
                Some((cluster, rmsd)) if rmsd < threshold => assignments.push(cluster),
                _ => {
                    assignments.push(leaders.len());
                    leaders.push(at);
                }
            }
        }
        assignments
    }

    /// Conformers of a molecule with two methyls and a trifluoromethyl, some of them with atoms exchanged.
    fn conformers(count: usize) -> Vec<Conformation> {
        let mut random = ChaCha8Rng::seed_from_u64(9);
        let mut number = || random.random::<f64>() * 2.0 - 1.0;
        let base: Conformation = (0..7).map(|_| std::array::from_fn(|_| 2.0 * number())).collect();
        let moved = |at: usize| {
            let size = [0.05, 0.3, 0.8, 1.5][at % 4];
            let mut one: Conformation = base.iter().map(|p| p.map(|x| x + size * number())).collect();
            if at.is_multiple_of(3) {
                one.swap(4, 6);
                one.iter_mut().for_each(|[x, y, _]| (*x, *y) = (-*y, *x));
            }
            one
        };
        (0..count).map(moved).collect()
    }

    fn topology() -> Topology {
        Topology::new("[C]<>[C]<>([C]<>)[C]<>([F]<>)([F]<>)[F]<>").unwrap()
    }

    #[test]
    fn clusters_are_those_of_all_pairs() {
        let (topology, conformers) = (topology(), conformers(150));
        let thresholds = [0.0, 0.1, 0.25, 0.5, 1.0, 3.0];
        let found = cluster(&topology, &conformers, &thresholds).unwrap();
        for (threshold, assignments) in thresholds.iter().zip(&found.assignments) {
            assert_eq!(assignments, &slow(&topology, &conformers, *threshold), "{threshold}");
        }
        // Nothing is below 0 Å, and each threshold has fewer clusters than the one before it.
        let counts: Vec<usize> = found.assignments.iter().map(|one| one.iter().max().unwrap() + 1).collect();
        assert!(counts[0] == 150 && counts.is_sorted_by(|a, b| a >= b) && counts[5] == 1, "{counts:?}");
        assert!(counts[2] > 20, "{counts:?}");
    }

    #[test]
    fn threads_do_not_matter() {
        let (topology, conformers) = (topology(), conformers(120));
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| cluster(&topology, &conformers, &[0.2, 0.6]))
        };
        assert_eq!(run(1), run(3));
    }

    #[test]
    fn ties_go_to_the_first_cluster() {
        // Two points: the RMSD is half the difference of the distances.
        let topology = Topology::new("[C]<>[O]<>").unwrap();
        let at = |x: f64| vec![[0.0; 3], [x, 0.0, 0.0]];
        // The third lies exactly between the first two.
        let found = cluster(&topology, &[at(1.0), at(3.0), at(2.0), at(2.25)], &[0.75, 1.0]).unwrap();
        assert_eq!(found.assignments, [[0, 1, 0, 1], [0, 1, 0, 1]]);
        // An RMSD that equals the threshold is not below it.
        let found = cluster(&topology, &[at(1.0), at(3.0)], &[1.0, 1.0001]).unwrap();
        assert_eq!(found.assignments, [[0, 1], [0, 0]]);
        assert_eq!(cluster(&topology, &[at(1.0), vec![[0.0; 3]]], &[1.0]), None);
        assert_eq!(cluster(&topology, &[], &[1.0]).unwrap().assignments, [[0usize; 0]; 1]);
    }

    #[test]
    fn numbers_of_clusters() {
        let four = ThresholdOccupancy::new(0.5, &[0, 0, 1, 2]);
        assert_eq!((four.clusters, four.largest, four.singletons, four.simpson), (3, 2, 2, 0.375));
        let entropy = -(0.5 * 0.5f64.ln() + 2.0 * 0.25 * 0.25f64.ln());
        assert!((four.entropy_nats - entropy).abs() < 1e-15);
        assert!(
            (four.effective() - entropy.exp()).abs() < 1e-15
                && (four.evenness() - entropy / 3f64.ln()).abs() < 1e-15
        );
        let one = ThresholdOccupancy::new(0.5, &[0, 0]);
        assert_eq!((one.entropy_nats, one.effective(), one.evenness(), one.simpson), (0.0, 1.0, 0.0, 1.0));
        let even = ThresholdOccupancy::new(0.5, &[0, 1, 2, 3]);
        assert!((even.effective() - 4.0).abs() < 1e-12 && (even.evenness() - 1.0).abs() < 1e-12);
    }
}
