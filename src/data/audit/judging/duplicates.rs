//! Finds duplicate conformers of a molecule. In order, each conformer is compared with earlier ones that are not duplicates
//! themselves.
//!
//! No array of shape `[conformers, conformers]` is built. The lower bounds of [`Shape`] leave few pairs to superpose: the singular
//! values are three numbers, so a grid whose cells are as wide as the bound finds all candidates.

use std::collections::HashMap;

use super::super::geometry::{Conformation, Topology};
use super::super::shape::Shape;
use super::super::superposition::CentredConformer;

/// Two conformers with an RMSD below this, in Å, count as duplicates: the value of CREST and so of GEOM.
pub(crate) const DUPLICATE_ANGSTROM: f64 = 0.125;

/// For each conformer (`[atoms]` positions in Å), the first earlier one that is not a duplicate itself and has an RMSD below
/// `bound` Å, over symmetric atom orders. A bound of 0 gives no duplicates, and a conformer with a wrong number of atoms is not a
/// duplicate.
pub fn duplicates(topology: &Topology, conformers: &[Conformation], bound: f64) -> Vec<Option<usize>> {
    let mut found = vec![None; conformers.len()];
    // NaN is not a bound either.
    if !(bound > 0.0 && bound.is_finite()) {
        return found;
    }
    let mut leaders: HashMap<[i64; 3], Vec<usize>> = HashMap::new();
    let mut kept: HashMap<usize, (CentredConformer, Shape)> = HashMap::new();
    for (at, conformer) in conformers.iter().enumerate() {
        if conformer.len() != topology.atoms() || conformer.is_empty() {
            continue;
        }
        let centred = CentredConformer::new(conformer);
        let shape = Shape::from_config(conformer, &centred, &topology.orbits());
        let cell = shape.singular.map(|x| (x / bound).floor() as i64);
        let mut near: Vec<usize> = around(cell)
            .filter_map(|cell| leaders.get(&cell))
            .flatten()
            .copied()
            .filter(|leader| kept[leader].1.can_be_within(&shape, bound))
            .collect();
        // The first conformer in order counts, whichever cell it lies in.
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

/// Returns a cell and all cells that touch it.
fn around(cell: [i64; 3]) -> impl Iterator<Item = [i64; 3]> {
    // For a tiny bound, cell indices saturate.
    let beside = move |axis: usize, step: i64| cell[axis].saturating_add(step - 1);
    (0..27).map(move |at| [beside(0, at % 3), beside(1, at / 3 % 3), beside(2, at / 9)])
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Returns every pair, straight from the definition.
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
