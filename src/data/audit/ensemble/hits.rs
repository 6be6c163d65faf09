//! Hit@K: how likely K texts of a molecule contain one that is close to a reference.
//!
//! If n texts are in random order and c of them hit, the first K contain a hit in the share `1 - C(n-c, K) / C(n, K)` of all orders.
//! So the expectation over orders needs no sample (M. Chen et al., Evaluating Large Language Models Trained on Code, 2021, equation
//! 1). If K is n or more, all texts are taken.

use serde::{Deserialize, Serialize};

use super::super::coverage::Deviations;
use super::measures::EnsembleMeasures;

/// The hits of the texts of one molecule, as expectations over all orders of its texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MoleculeHits {
    /// The number of texts, those that do not pass included.
    pub texts: u64,
    /// The number of texts that are compared.
    pub conformers: u64,
    /// The number of references.
    pub references: u64,
    /// By number of texts K.
    pub best_of: Vec<BestOf>,
}

/// The best of K texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BestOf {
    /// K.
    pub k: u64,
    /// The expected least RMSD of K conformers to any reference, in Å; `None` if no text is compared.
    pub rmsd_angstrom: Option<f64>,
    /// By threshold.
    pub thresholds: Vec<ExpectedHits>,
}

/// The expected hits of K texts at a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ExpectedHits {
    /// The threshold, in Å.
    pub angstrom: f64,
    /// The probability that one of K texts is within the threshold of any reference. A text that is not compared never hits.
    pub hit: f64,
    /// The expected share of references with one of K texts within the threshold: COV-R of K texts.
    pub references_hit: f64,
    /// The probability that one of K conformers is within the threshold of any reference: texts that are not compared are not drawn.
    /// `None` if no text is compared.
    pub hit_of_conformers: Option<f64>,
}

impl MoleculeHits {
    /// Returns the hits of a molecule with `texts` texts, of which `deviations` has those that are compared; `None` without references.
    pub fn new(measures: &EnsembleMeasures, texts: u64, deviations: &Deviations) -> Option<Self> {
        if deviations.references == 0 {
            return None;
        }
        let conformers = deviations.rmsd.len() as u64;
        let texts = texts.max(conformers);
        let mut nearest: Vec<f64> =
            (0..deviations.rmsd.len()).filter_map(|conformer| deviations.nearest(conformer)).collect();
        nearest.sort_by(f64::total_cmp);
        let counts: Vec<HitCounts> =
            measures.hits.iter().map(|at| HitCounts::new(deviations, &nearest, *at, texts)).collect();
        let best_of = measures.draws.iter().map(|k| BestOf {
            k: *k,
            rmsd_angstrom: expected_least(&nearest, *k),
            thresholds: counts.iter().map(|counts| counts.expected(*k)).collect(),
        });
        let best_of = best_of.collect();
        Some(MoleculeHits { texts, conformers, references: deviations.references as u64, best_of })
    }
}

/// The hits among all texts of a molecule at a threshold.
struct HitCounts {
    angstrom: f64,
    texts: u64,
    conformers: u64,
    /// The number of conformers within the threshold of any reference.
    hits: u64,
    /// By reference, the number of conformers within the threshold.
    of_references: Vec<u64>,
}

impl HitCounts {
    /// `nearest` has the least RMSD of each conformer to any reference, ascending.
    fn new(deviations: &Deviations, nearest: &[f64], angstrom: f64, texts: u64) -> Self {
        let mut of_references = vec![0; deviations.references];
        for row in &deviations.rmsd {
            of_references
                .iter_mut()
                .zip(row)
                .for_each(|(count, rmsd)| *count += u64::from(*rmsd <= angstrom));
        }
        let hits = nearest.partition_point(|rmsd| *rmsd <= angstrom) as u64;
        HitCounts { angstrom, texts, conformers: nearest.len() as u64, hits, of_references }
    }

    /// Returns the expected hits of K texts.
    fn expected(&self, k: u64) -> ExpectedHits {
        let HitCounts { texts, conformers, hits, .. } = *self;
        let shares = self.of_references.iter().map(|count| share_of_draws_with(*count, texts, k));
        ExpectedHits {
            angstrom: self.angstrom,
            hit: share_of_draws_with(hits, texts, k),
            references_hit: shares.sum::<f64>() / self.of_references.len() as f64,
            hit_of_conformers: (conformers > 0).then(|| share_of_draws_with(hits, conformers, k)),
        }
    }
}

/// Returns the share of draws of K from n items without replacement that contain one of c of them: `1 - C(n-c, K) / C(n, K)`. All items
/// are drawn if there are no more than K.
pub fn share_of_draws_with(c: u64, n: u64, k: u64) -> f64 {
    if c == 0 || n == 0 || k == 0 {
        return 0.0;
    }
    if k >= n || c > n - k {
        return 1.0;
    }
    // Both products are the same number; the shorter one is rounded less.
    let (few, many) = (c.min(k), c.max(k));
    let none: f64 = (0..few).map(|at| 1.0 - many as f64 / (n - at) as f64).product();
    1.0 - none
}

/// Returns the expected least of K values drawn from an ascending list without replacement; `None` without values.
pub fn expected_least(ascending: &[f64], k: u64) -> Option<f64> {
    let first = *ascending.first()?;
    let n = ascending.len() as u64;
    if k >= n {
        return Some(first);
    }
    // The i-th value is the least if it is drawn and the others come from behind it: C(n-1-i, K-1) / C(n, K).
    let mut weight = k as f64 / n as f64;
    let mut sum = 0.0;
    for (at, value) in (0..=n - k).zip(ascending) {
        sum += weight * value;
        weight *= (n - k - at) as f64 / (n - 1 - at) as f64;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all subsets of K of n items, as bits.
    fn subsets(n: u32, k: u32) -> Vec<u32> {
        (0..1u32 << n).filter(|bits| bits.count_ones() == k).collect()
    }

    #[test]
    fn shares_are_those_of_all_draws() {
        for n in 1..=9u32 {
            for (c, k) in (0..=n).flat_map(|c| (1..=n).map(move |k| (c, k))) {
                let all = subsets(n, k);
                let hits = all.iter().filter(|bits| **bits & ((1 << c) - 1) != 0).count();
                let share = share_of_draws_with(c.into(), n.into(), k.into());
                assert!((share - hits as f64 / all.len() as f64).abs() < 1e-14, "{n} {c} {k}");
                let values: Vec<f64> = (0..n).map(|i| f64::from(i * i) + 0.25).collect();
                let sum: f64 = all.iter().map(|bits| values[bits.trailing_zeros() as usize]).sum();
                let least = expected_least(&values, k.into()).unwrap();
                assert!((least - sum / all.len() as f64).abs() < 1e-12, "{n} {k}");
            }
        }
    }

    #[test]
    fn borders() {
        assert_eq!(
            [(0, 5, 3), (0, 0, 1), (1, 1, 1), (3, 4, 2), (1, 4, 9)]
                .map(|(c, n, k)| share_of_draws_with(c, n, k)),
            [0.0, 0.0, 1.0, 1.0, 1.0]
        );
        assert_eq!((expected_least(&[], 1), expected_least(&[0.5, 0.7], 5)), (None, Some(0.5)));
        // Large numbers neither overflow nor vanish.
        assert!((share_of_draws_with(1, 1_000_000, 500_000) - 0.5).abs() < 1e-12);
        let many: Vec<f64> = (0..100_000).map(f64::from).collect();
        assert!((expected_least(&many, 3).unwrap() - 24_999.25).abs() < 1e-6);
    }

    #[test]
    fn texts_that_are_not_compared_never_hit() {
        let measures =
            EnsembleMeasures { hits: vec![0.5, 1.0], draws: vec![1, 9], ..EnsembleMeasures::default() };
        let two = Deviations {
            references: 2,
            bond_errors: vec![None; 2],
            rmsd: vec![vec![0.5, 2.0], vec![0.9, 3.0]],
            upper_bounds: vec![0; 2],
        };
        let found = MoleculeHits::new(&measures, 4, &two).unwrap();
        let first = &found.best_of[0];
        assert_eq!((found.texts, found.conformers, first.rmsd_angstrom), (4, 2, Some(0.7)));
        let shares = |at: usize| {
            let hits = first.thresholds[at];
            (hits.hit, hits.references_hit, hits.hit_of_conformers)
        };
        // An RMSD that equals the threshold hits.
        assert_eq!((shares(0), shares(1)), ((0.25, 0.125, Some(0.5)), (0.5, 0.25, Some(1.0))));
        let all = found.best_of[1].thresholds[1];
        assert_eq!((all.hit, all.references_hit, all.hit_of_conformers), (1.0, 0.5, Some(1.0)));
        let none = Deviations { references: 1, ..Deviations::default() };
        let none = MoleculeHits::new(&measures, 3, &none).unwrap();
        assert_eq!(none.best_of[0].rmsd_angstrom, None);
        assert_eq!(
            (none.best_of[0].thresholds[0].hit, none.best_of[0].thresholds[0].hit_of_conformers),
            (0.0, None)
        );
        assert_eq!(MoleculeHits::new(&measures, 3, &Deviations::default()), None);
    }
}
