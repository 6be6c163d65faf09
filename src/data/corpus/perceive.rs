//! Determines which atoms are bonded from their distances, for formats that do not state bonds.
//!
//! Two atoms are bonded if they are nearer than the sum of their covalent radii plus 0.45 Å, the rule of Open Babel. A hydrogen is
//! bonded only to its nearest atom, and alkali metals, which are ions, to none. Radii are from B. Cordero et al., Dalton Trans.
//! (2008) 2832, with the low-spin values of Mn, Fe and Co. Bond orders and charges are not guessed: the perceived graph must match
//! the molecule of a SMILES, which states them.
//!
//! Some distances are ambiguous: the bridgeheads of bicyclo[1.1.1]pentane are 1.9 Å apart and not bonded, and a magnesium ion is as
//! near to water as to a ligand. In these cases the SMILES decides: for each pair of elements, as many of the nearest pairs are
//! bonded as the SMILES has bonds.

use std::collections::{BTreeMap, HashMap};

use drift_core::chem::elements::HYDROGEN;
use drift_core::chem::{Atom, Bond, Graph, Order};
use drift_core::vector::distance;

/// The tolerance added to the sum of radii, in Å.
const TOLERANCE_ANGSTROM: f64 = 0.45;

/// The tolerance added to the sum of radii if a SMILES states the number of bonds, in Å.
const WIDE_TOLERANCE_ANGSTROM: f64 = 0.9;

/// The number of bonds between heavy atoms by the elements of their ends, the smaller atomic number first.
pub(super) type BondCounts = BTreeMap<[u8; 2], usize>;

/// Atoms nearer than this have the same position, in Å.
const ONE_PLACE_ANGSTROM: f64 = 0.1;

/// The largest number of bonds of one atom. No molecule has more, and an input with many more would fill memory.
const MAX_BONDS_OF_ATOM: u8 = 32;

/// Covalent radii of hydrogen to curium, in 0.01 Å.
const RADII: [u8; 96] = [
    31, 28, 128, 96, 84, 76, 71, 66, 57, 58, 166, 141, 121, 111, 107, 105, 102, 106, 203, 176, 170, 160, 153,
    139, 139, 132, 126, 124, 132, 122, 122, 120, 119, 120, 120, 116, 220, 195, 190, 175, 164, 154, 147, 146,
    142, 139, 145, 144, 142, 139, 139, 138, 139, 140, 244, 215, 207, 204, 203, 201, 199, 198, 198, 196, 194,
    192, 192, 189, 190, 187, 187, 175, 170, 162, 151, 144, 141, 136, 136, 132, 145, 146, 148, 140, 150, 150,
    255, 221, 215, 206, 200, 196, 190, 187, 180, 169,
];

/// Returns the molecular graph of atoms at `points`, in Å: every bond has [`Order::Any`], and there are no charges. With `wanted`, as
/// many of the nearest pairs of heavy atoms are bonded as it states for their elements.
///
/// # Errors
/// A reason: an element without a known radius, two atoms at one position, or an atom too close to too many others.
pub(super) fn perceive(
    numbers: &[u8],
    points: &[[f64; 3]],
    wanted: Option<&BondCounts>,
) -> Result<Graph, String> {
    let mut contacts = Contacts {
        elements: numbers,
        points,
        radii: numbers.iter().map(|number| radius(*number)).collect::<Result<Vec<f64>, String>>()?,
        tolerance: if wanted.is_some() { WIDE_TOLERANCE_ANGSTROM } else { TOLERANCE_ANGSTROM },
        bonds_alkali: wanted.is_some(),
        degrees: vec![0; numbers.len()],
        nearest: vec![None; numbers.len()],
        found: Vec::with_capacity(points.len() + 8),
    };
    contacts.find()?;
    let mut found = std::mem::take(&mut contacts.found);
    found.retain(|Contact { atoms: [a, b], .. }| contacts.keeps(*a, *b) && contacts.keeps(*b, *a));
    if let Some(wanted) = wanted {
        keep_nearest(numbers, wanted, &mut found);
    }
    // Bracket atoms, since no hydrogen is implied if all hydrogens are explicit atoms.
    let atoms = numbers.iter().map(|number| Atom { element: *number, bracket: true, ..Atom::default() });
    let bonds = found.iter().map(|contact| Bond::new(contact.atoms.map(|atom| atom as usize), Order::Any));
    Ok(Graph::of_distances(atoms.collect(), bonds.collect()))
}

/// Two atoms that are near enough to be bonded.
struct Contact {
    atoms: [u32; 2],
    /// Their distance minus the sum of their radii, in Å.
    excess: f64,
}

/// An atom near another one.
#[derive(Clone, Copy)]
struct Neighbour {
    atom: u32,
    /// The distance in Å.
    distance: f64,
}

/// The search for atoms that are near enough to be bonded.
struct Contacts<'a> {
    /// Atomic numbers.
    elements: &'a [u8],
    /// Positions, in Å.
    points: &'a [[f64; 3]],
    /// Covalent radii, in Å.
    radii: Vec<f64>,
    /// The tolerance added to the sum of radii, in Å.
    tolerance: f64,
    /// Whether alkali metals are bonded.
    bonds_alkali: bool,
    /// By atom, its number of contacts.
    degrees: Vec<u8>,
    /// By atom, the nearest of its contacts.
    nearest: Vec<Option<Neighbour>>,
    found: Vec<Contact>,
}

impl Contacts<'_> {
    fn find(&mut self) -> Result<(), String> {
        let widest = self.radii.iter().copied().fold(0.0, f64::max);
        // No bond is longer than a cell, so its ends lie in the same cell or in neighbouring cells.
        let edge = (2.0 * widest + self.tolerance).max(1.0);
        let mut grid = Grid { edge, cells: HashMap::with_capacity(self.points.len()) };
        for (at, point) in (0u32..).zip(self.points) {
            let cell = grid.cell(point);
            for other in grid.around(cell) {
                self.compare(at, other)?;
            }
            grid.cells.entry(cell).or_default().push(at);
        }
        Ok(())
    }

    /// Notes two atoms if they are near enough.
    fn compare(&mut self, at: u32, other: u32) -> Result<(), String> {
        let [a, b] = [at as usize, other as usize];
        let distance = distance(self.points[a], self.points[b]);
        if distance < ONE_PLACE_ANGSTROM {
            return Err(format!("atoms {} and {} have the same position", other + 1, at + 1));
        }
        let excess = distance - self.radii[a] - self.radii[b];
        if excess < self.tolerance && self.may_bond(a) && self.may_bond(b) {
            self.add_neighbour(a, Neighbour { atom: other, distance })?;
            self.add_neighbour(b, Neighbour { atom: at, distance })?;
            self.found.push(Contact { atoms: [other, at], excess });
        }
        Ok(())
    }

    fn may_bond(&self, atom: usize) -> bool {
        self.bonds_alkali || !is_alkali(self.elements[atom])
    }

    fn add_neighbour(&mut self, atom: usize, neighbour: Neighbour) -> Result<(), String> {
        self.degrees[atom] += 1;
        if self.degrees[atom] > MAX_BONDS_OF_ATOM {
            return Err(format!("atom {} is too close to too many others", atom + 1));
        }
        if self.nearest[atom].is_none_or(|known| neighbour.distance < known.distance) {
            self.nearest[atom] = Some(neighbour);
        }
        Ok(())
    }

    /// Returns whether an atom keeps its bond to another. A hydrogen between two atoms belongs to the nearer one.
    fn keeps(&self, atom: u32, other: u32) -> bool {
        let atom = atom as usize;
        self.elements[atom] != HYDROGEN || self.nearest[atom].is_some_and(|nearest| nearest.atom == other)
    }
}

/// Atom indices by cell of a grid.
struct Grid {
    /// The edge of a cell, in Å.
    edge: f64,
    cells: HashMap<[i64; 3], Vec<u32>>,
}

impl Grid {
    /// Returns the cell of a point.
    fn cell(&self, point: &[f64; 3]) -> [i64; 3] {
        point.map(|x| (x / self.edge).floor() as i64)
    }

    /// Returns the atoms in a cell and in the 26 cells around it.
    fn around(&self, own: [i64; 3]) -> impl Iterator<Item = u32> {
        let offsets = (0..27).map(|at| [at / 9 - 1, at / 3 % 3 - 1, at % 3 - 1]);
        offsets
            .filter_map(move |offset| {
                self.cells.get(&std::array::from_fn(|axis| own[axis].saturating_add(offset[axis])))
            })
            .flatten()
            .copied()
    }
}

/// For each pair of heavy elements, keeps as many of the nearest bonds as are wanted; their order stays.
fn keep_nearest(numbers: &[u8], wanted: &BondCounts, contacts: &mut Vec<Contact>) {
    let mut excesses: BTreeMap<[u8; 2], Vec<f64>> = BTreeMap::new();
    for contact in contacts.iter() {
        excesses.entry(elements(numbers, contact)).or_default().push(contact.excess);
    }
    let longest: BTreeMap<[u8; 2], f64> = excesses
        .into_iter()
        .filter_map(|(pair, mut excesses)| {
            let last = wanted.get(&pair)?.checked_sub(1)?;
            excesses.sort_by(f64::total_cmp);
            Some((pair, excesses[last.min(excesses.len() - 1)]))
        })
        .collect();
    contacts.retain(|contact| {
        let pair = elements(numbers, contact);
        // Bonds of hydrogens are already reduced to the nearest atom.
        pair.contains(&HYDROGEN) || longest.get(&pair).is_some_and(|longest| contact.excess <= *longest)
    });
}

/// Returns the elements of two atoms, the smaller atomic number first.
fn elements(numbers: &[u8], contact: &Contact) -> [u8; 2] {
    let [a, b] = contact.atoms.map(|atom| numbers[atom as usize]);
    [a.min(b), a.max(b)]
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

/// Refuses bonds that no molecule can have: to a missing atom, from an atom to itself, or two between the same atoms.
pub(super) fn check_bonds(structure: &Graph) -> Result<(), String> {
    let count = structure.atoms.len();
    let mut pairs = Vec::with_capacity(structure.bonds.len());
    for &Bond { atoms: [a, b], .. } in &structure.bonds {
        if a.max(b) >= count {
            return Err(format!("a bond to atom {}, but there are {count}", a.max(b).saturating_add(1)));
        }
        if a == b {
            return Err(format!("a bond of atom {} to itself", a + 1));
        }
        pairs.push([a.min(b), a.max(b)]);
    }
    pairs.sort_unstable();
    match pairs.windows(2).find(|two| two[0] == two[1]) {
        Some(two) => Err(format!("two bonds between atoms {} and {}", two[0][0] + 1, two[0][1] + 1)),
        None => Ok(()),
    }
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
        let structure = perceive(&numbers, &points, None).unwrap();
        let bonds: Vec<[usize; 2]> = structure.bonds.iter().map(|bond| bond.atoms).collect();
        assert_eq!(bonds, [[0, 1], [0, 2], [0, 3], [0, 4], [1, 5]]);
        // Two molecules far apart, and an ion beside one.
        let far = [[0.0; 3], [1.4, 0.0, 0.0], [90.0, 0.0, 0.0], [91.2, 0.0, 0.0], [92.8, 0.0, 0.0]];
        let structure = perceive(&[6, 6, 6, 8, 11], &far, None).unwrap();
        assert_eq!(structure.bonds.len(), 2);
        assert_eq!(
            perceive(&[6, 6], &[[0.0; 3]; 2], None).unwrap_err(),
            "atoms 1 and 2 have the same position"
        );
        assert!(perceive(&[118], &[[0.0; 3]], None).is_err());
        // A grid of atoms 0.15 Å apart.
        let dense: Vec<[f64; 3]> =
            (0..1000).map(|at| [at / 100, at / 10 % 10, at % 10].map(|x| 0.15 * f64::from(x))).collect();
        let reason = perceive(&[6; 1000], &dense, None).unwrap_err();
        assert!(reason.ends_with("is too close to too many others"), "{reason}");
    }

    #[test]
    fn a_hydrogen_has_one_bond() {
        let structure = perceive(&[8, 1, 8], &[[0.0; 3], [1.0, 0.0, 0.0], [2.05, 0.0, 0.0]], None).unwrap();
        assert_eq!(structure.bonds, [Bond::new([0, 1], Order::Any)]);
    }

    #[test]
    fn the_nearest_pairs_are_bonded_where_a_number_is_wanted() {
        // A square of carbons whose diagonal is as short as a long bond, and a magnesium beside its oxygens.
        let square = [[0.0; 3], [1.3, 0.0, 0.0], [1.3, 1.3, 0.0], [0.0, 1.3, 0.0]];
        assert_eq!(perceive(&[6; 4], &square, None).unwrap().bonds.len(), 6);
        let bonds = |wanted: &[([u8; 2], usize)], numbers: &[u8], points: &[[f64; 3]]| {
            let wanted = wanted.iter().copied().collect();
            perceive(numbers, points, Some(&wanted)).unwrap().bonds.len()
        };
        assert_eq!(bonds(&[([6, 6], 4)], &[6; 4], &square), 4);
        let ion = [[0.0; 3], [2.0, 0.0, 0.0], [-2.1, 0.0, 0.0]];
        assert_eq!((bonds(&[], &[12, 8, 8], &ion), bonds(&[([8, 12], 1)], &[12, 8, 8], &ion)), (0, 1));
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
        let mut found: Vec<[usize; 2]> =
            perceive(&numbers, &points, None).unwrap().bonds.into_iter().map(|bond| bond.atoms).collect();
        found.sort_unstable();
        let mut all = Vec::new();
        for a in 0..400 {
            for b in a + 1..400 {
                if distance(points[a], points[b]) < 1.52 + TOLERANCE_ANGSTROM {
                    all.push([a, b]);
                }
            }
        }
        assert_eq!(found, all);
    }
}
