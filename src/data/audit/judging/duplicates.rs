//! Conformers of one molecule that are one another, in order: each is compared with those before it that are no duplicates themselves.
//!
//! Nothing of size `[conformers, conformers]` is made. Two bounds from below, both free of rotations and of symmetric orders of atoms,
//! leave few pairs to superpose:
//!
//! - With both centred, `n RMSD² ≥ Σ (σᵢ - τᵢ)²`, σ and τ the singular values of the two sets of points, for the trace of a product is at
//!   most the sum of the products of singular values (J. von Neumann, 1937). They are three numbers, so that a grid with cells as wide as
//!   the bound finds all conformers that can be near.
//! - `n RMSD² ≥ Σ (|aᵢ| - |bᵢ|)²`, the distances from the centre taken in the order of atoms, and sorted among atoms that may change places.

use std::collections::HashMap;

use super::super::geometry::{Conformation, Topology};
use super::super::superposition::Centred;
use crate::corpus::eigen::{Rounding, diagonalise};

/// Below this RMSD, in Å, two conformers count as one: CREST's and so GEOM's.
pub const DUPLICATE_ANGSTROM: f64 = 0.125;

/// What sums may be off by, in Å.
const ROUNDING: f64 = 1e-9;

/// For each conformer, `[atoms]` in Å, the first one before it that is no duplicate and lies within `bound` Å of it, by the least RMSD
/// over symmetric orders of atoms. None are duplicates where the bound is 0; one with another number of atoms is none.
pub fn duplicates(topology: &Topology, conformers: &[Conformation], bound: f64) -> Vec<Option<usize>> {
    let mut found = vec![None; conformers.len()];
    // NaN is no bound either.
    if !(bound > 0.0 && bound.is_finite()) {
        return found;
    }
    let mut leaders: HashMap<[i64; 3], Vec<usize>> = HashMap::new();
    let mut kept: HashMap<usize, (Centred, Shape)> = HashMap::new();
    for (at, conformer) in conformers.iter().enumerate() {
        if conformer.len() != topology.atoms() || conformer.is_empty() {
            continue;
        }
        let centred = Centred::new(conformer);
        let shape = Shape::from_config(&centred, &topology.orbits());
        let cell = shape.singular.map(|x| (x / bound).floor() as i64);
        let mut near: Vec<usize> = around(cell)
            .filter_map(|cell| leaders.get(&cell))
            .flatten()
            .copied()
            .filter(|leader| kept[leader].1.can_be_within(&shape, bound))
            .collect();
        // The first one in the order of the conformers counts, whichever cell it lies in.
        near.sort_unstable();
        found[at] =
            near.into_iter().find(|leader| topology.centred_rmsd(&kept[leader].0, &centred).rmsd < bound);
        if found[at].is_none() {
            leaders.entry(cell).or_default().push(at);
            kept.insert(at, (centred, shape));
        }
    }
    found
}

/// A cell and those that touch it.
fn around(cell: [i64; 3]) -> impl Iterator<Item = [i64; 3]> {
    // Of a tiny bound all cells are the last that there is.
    let beside = move |axis: usize, step: i64| cell[axis].saturating_add(step - 1);
    (0..27).map(move |at| [beside(0, at % 3), beside(1, at / 3 % 3), beside(2, at / 9)])
}

/// What neither rotations nor symmetric orders of atoms change.
struct Shape {
    /// Singular values of the centred points over √n, in Å, the largest first.
    singular: [f64; 3],
    /// Distances from the centre over √n, in Å.
    radii: Vec<f64>,
}

impl Shape {
    fn from_config(centred: &Centred, orbits: &[Vec<usize>]) -> Self {
        let points = centred.points();
        let n = points.len() as f64;
        let mut gram = [[0.0; 3]; 3];
        for point in points {
            for (row, x) in gram.iter_mut().zip(point) {
                row.iter_mut().zip(point).for_each(|(sum, y)| *sum += x * y / n);
            }
        }
        diagonalise(&mut gram, Rounding::Root, |_, _, _, _| {});
        let mut singular = [0, 1, 2].map(|axis| f64::max(gram[axis][axis], 0.0).sqrt());
        singular.sort_by(|a, b| b.total_cmp(a));
        let mut radii: Vec<f64> =
            points.iter().map(|p| (p.iter().map(|x| x * x).sum::<f64>() / n).sqrt()).collect();
        for orbit in orbits {
            let mut own: Vec<f64> = orbit.iter().map(|atom| radii[*atom]).collect();
            // Atoms that may change places are sorted, so that their order does not count.
            own.sort_by(f64::total_cmp);
            orbit.iter().zip(own).for_each(|(atom, radius)| radii[*atom] = radius);
        }
        Shape { singular, radii }
    }

    /// Whether the bounds leave it open that the two lie within `bound`.
    fn can_be_within(&self, other: &Shape, bound: f64) -> bool {
        let most = (bound + ROUNDING).powi(2);
        let off = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        off(&self.singular, &other.singular) <= most && off(&self.radii, &other.radii) <= most
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Every pair, straight from the definition.
    fn slow(topology: &Topology, conformers: &[Conformation], bound: f64) -> Vec<Option<usize>> {
        let mut found: Vec<Option<usize>> = Vec::new();
        for (at, conformer) in conformers.iter().enumerate() {
            let near = |other: &usize| {
                found[*other].is_none() && topology.rmsd(&conformers[*other], conformer).unwrap() < bound
            };
            let first = (0..at).find(near);
            found.push(first);
        }
        found
    }

    #[test]
    fn they_are_those_of_all_pairs() {
        // Two methyls and a trifluoromethyl change places.
        let topology = Topology::new("[C]<>[C]<>([C]<>)[C]<>([F]<>)([F]<>)[F]<>").unwrap();
        let mut random = ChaCha8Rng::seed_from_u64(5);
        let mut number = || random.random::<f64>() * 2.0 - 1.0;
        let base: Conformation = (0..7).map(|_| std::array::from_fn(|_| 2.0 * number())).collect();
        let conformers: Vec<Conformation> = (0..200)
            .map(|at| {
                let mut one: Conformation =
                    base.iter().map(|p| p.map(|x| x + 0.1 * number() * f64::from(at % 5))).collect();
                if at % 3 == 0 {
                    one.swap(4, 6);
                    one.iter_mut().for_each(|[x, y, _]| (*x, *y) = (-*y, *x));
                }
                one
            })
            .collect();
        for bound in [0.05, 0.125, 0.4] {
            let expected = slow(&topology, &conformers, bound);
            assert_eq!(duplicates(&topology, &conformers, bound), expected, "{bound}");
            assert!(expected.iter().any(Option::is_some) && expected[1..].iter().any(Option::is_none));
        }
        assert_eq!(duplicates(&topology, &conformers[..3], 0.0), [None; 3]);
        // So small that no cell has a number: nothing is that near but the same coordinates.
        for tiny in [1e-300, f64::MIN_POSITIVE] {
            assert_eq!(duplicates(&topology, &conformers[..3], tiny), [None; 3]);
        }
        assert_eq!(duplicates(&topology, &[vec![[0.0; 3]]], 0.1), [None]);
    }
}
