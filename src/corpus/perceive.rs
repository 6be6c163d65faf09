//! Which atoms are bonded, by their distances, for formats that say nothing of bonds.
//!
//! Two atoms are bonded if they are nearer than the sum of their covalent radii and 0.45 Å, as Open Babel has it; a hydrogen to its
//! nearest atom alone; alkali metals, which are ions, to none. Radii are those of B. Cordero et al., Dalton Trans. (2008) 2832,
//! low-spin ones of Mn, Fe and Co. Orders and charges are not guessed: what is bonded has to be the molecule of a SMILES, which has them.

use std::collections::HashMap;

use crate::text::elements::HYDROGEN;
use crate::text::molecule::{Structure, StructureAtom};
use crate::text::smiles::Order;

/// What is added to the sum of radii, in Å.
const TOLERANCE_ANGSTROM: f64 = 0.45;

/// Nearer atoms lie at one place, in Å.
const ONE_PLACE_ANGSTROM: f64 = 0.1;

/// More bonds of one atom are no molecule, and many of them would fill memory.
const MAX_BONDS_OF_ATOM: u8 = 32;

/// Covalent radii of hydrogen to curium, in 0.01 Å.
const RADII: [u8; 96] = [
    31, 28, 128, 96, 84, 76, 71, 66, 57, 58, 166, 141, 121, 111, 107, 105, 102, 106, 203, 176, 170, 160, 153,
    139, 139, 132, 126, 124, 132, 122, 122, 120, 119, 120, 120, 116, 220, 195, 190, 175, 164, 154, 147, 146,
    142, 139, 145, 144, 142, 139, 139, 138, 139, 140, 244, 215, 207, 204, 203, 201, 199, 198, 198, 196, 194,
    192, 192, 189, 190, 187, 187, 175, 170, 162, 151, 144, 141, 136, 136, 132, 145, 146, 148, 140, 150, 150,
    255, 221, 215, 206, 200, 196, 190, 187, 180, 169,
];

/// Atoms by cells of a grid.
type Cells = HashMap<[i64; 3], Vec<u32>>;

/// The molecule of atoms at `points`, in Å: which are bonded, all by [`Order::Any`], and no charges.
///
/// # Errors
/// A reason: an element without a radius, two atoms at one place, or an atom among too many.
pub(super) fn perceive(numbers: &[u8], points: &[[f64; 3]]) -> Result<Structure, String> {
    let radii = numbers.iter().map(|number| radius(*number)).collect::<Result<Vec<f64>, String>>()?;
    let widest = radii.iter().copied().fold(0.0, f64::max);
    let cell = (2.0 * widest + TOLERANCE_ANGSTROM).max(1.0);
    let cell_of = |point: &[f64; 3]| point.map(|x| (x / cell).floor() as i64);
    let mut cells: Cells = HashMap::with_capacity(points.len());
    let mut bonds = Vec::with_capacity(points.len() + 8);
    // The nearest atom of each hydrogen, and how far it is.
    let mut nearest: Vec<Option<(u32, f64)>> = vec![None; numbers.len()];
    let mut degrees = vec![0u8; numbers.len()];
    for (at, point) in (0u32..).zip(points) {
        let own = cell_of(point);
        for other in around(&cells, own) {
            let distance = distance(point, &points[other as usize]);
            if distance < ONE_PLACE_ANGSTROM {
                return Err(format!("atoms {} and {} lie at one place", other + 1, at + 1));
            }
            let [a, b] = [at as usize, other as usize];
            if distance < radii[a] + radii[b] + TOLERANCE_ANGSTROM
                && !is_alkali(numbers[a])
                && !is_alkali(numbers[b])
            {
                for (atom, partner) in [(a, other), (b, at)] {
                    degrees[atom] += 1;
                    if degrees[atom] > MAX_BONDS_OF_ATOM {
                        return Err(format!("atom {} lies too near to too many others", atom + 1));
                    }
                    if nearest[atom].is_none_or(|(_, known)| distance < known) {
                        nearest[atom] = Some((partner, distance));
                    }
                }
                bonds.push([other, at]);
            }
        }
        cells.entry(own).or_default().push(at);
    }
    // A hydrogen between two atoms belongs to the nearer one.
    let keeps = |atom: u32, other: u32| {
        numbers[atom as usize] != HYDROGEN
            || nearest[atom as usize].is_some_and(|(partner, _)| partner == other)
    };
    bonds.retain(|[a, b]| keeps(*a, *b) && keeps(*b, *a));
    let atom = |number: &u8| StructureAtom { element: *number, no_implied: true, ..StructureAtom::default() };
    Ok(Structure {
        atoms: numbers.iter().map(atom).collect(),
        bonds: bonds.into_iter().map(|bond| (bond, Order::Any)).collect(),
    })
}

fn radius(number: u8) -> Result<f64, String> {
    let radius = usize::from(number).checked_sub(1).and_then(|at| RADII.get(at));
    radius
        .map(|radius| f64::from(*radius) / 100.0)
        .ok_or_else(|| format!("element {number} has no known radius"))
}

fn is_alkali(number: u8) -> bool {
    matches!(number, 3 | 11 | 19 | 37 | 55 | 87)
}

/// The atoms in a cell and those around it.
fn around(cells: &Cells, own: [i64; 3]) -> impl Iterator<Item = u32> {
    let offsets = (0..27).map(|at| [at / 9 - 1, at / 3 % 3 - 1, at % 3 - 1]);
    offsets
        .filter_map(move |offset| {
            cells.get(&std::array::from_fn(|axis| own[axis].saturating_add(offset[axis])))
        })
        .flatten()
        .copied()
}

fn distance(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    (0..3).map(|axis| (a[axis] - b[axis]).powi(2)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methanol_and_what_is_not_bonded() {
        let numbers = [6, 8, 1, 1, 1, 1];
        let points = [
            [-0.36, 0.0, 0.0],
            [1.05, -0.03, 0.0],
            [-0.7, 1.03, 0.0],
            [-0.75, -0.5, 0.9],
            [-0.75, -0.5, -0.9],
            [1.35, 0.87, 0.0],
        ];
        let structure = perceive(&numbers, &points).unwrap();
        let bonds: Vec<[u32; 2]> = structure.bonds.iter().map(|(bond, _)| *bond).collect();
        assert_eq!(bonds, [[0, 1], [0, 2], [0, 3], [0, 4], [1, 5]]);
        // Two molecules far apart, and an ion beside one.
        let far = [[0.0; 3], [1.4, 0.0, 0.0], [90.0, 0.0, 0.0], [91.2, 0.0, 0.0], [92.8, 0.0, 0.0]];
        let structure = perceive(&[6, 6, 6, 8, 11], &far).unwrap();
        assert_eq!(structure.bonds.len(), 2);
        assert_eq!(perceive(&[6, 6], &[[0.0; 3]; 2]).unwrap_err(), "atoms 1 and 2 lie at one place");
        assert!(perceive(&[118], &[[0.0; 3]]).is_err());
        // A grid of atoms 0.15 Å apart.
        let dense: Vec<[f64; 3]> =
            (0..1000).map(|at| [at / 100, at / 10 % 10, at % 10].map(|x| 0.15 * f64::from(x))).collect();
        let reason = perceive(&[6; 1000], &dense).unwrap_err();
        assert!(reason.ends_with("lies too near to too many others"), "{reason}");
    }

    #[test]
    fn a_hydrogen_has_one_bond() {
        let structure = perceive(&[8, 1, 8], &[[0.0; 3], [1.0, 0.0, 0.0], [2.05, 0.0, 0.0]]).unwrap();
        assert_eq!(structure.bonds, [([0, 1], Order::Any)]);
    }

    #[test]
    fn cells_miss_nothing() {
        // A chain that wanders through many cells, beside all pairs.
        let points: Vec<[f64; 3]> = (0..400)
            .map(|at| {
                let t = f64::from(at) * 0.35;
                [3.0 * t.cos(), 3.0 * t.sin(), 0.9 * t]
            })
            .collect();
        let numbers = vec![6; points.len()];
        let mut found: Vec<[u32; 2]> =
            perceive(&numbers, &points).unwrap().bonds.into_iter().map(|b| b.0).collect();
        found.sort_unstable();
        let mut all = Vec::new();
        for a in 0..400u32 {
            for b in a + 1..400 {
                if distance(&points[a as usize], &points[b as usize]) < 1.52 + TOLERANCE_ANGSTROM {
                    all.push([a, b]);
                }
            }
        }
        assert_eq!(found, all);
    }
}
