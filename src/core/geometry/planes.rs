//! Determines the atoms of a molecule that must lie in a plane, and the rings that must not.

use std::collections::BTreeSet;

use super::molecule::{Kind, Molecule};
use crate::chem::Hybridisation;

/// The kind of a group of atoms that a plane concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaneKind {
    /// An aromatic ring of five or six atoms, which is flat.
    AromaticRing,
    /// A saturated ring of six atoms, which is not flat.
    SaturatedRing,
    /// A double bond between carbons with its heavy neighbours, which lie in its plane.
    DoubleBond,
    /// A planar carbon with its three heavy neighbours.
    Centre,
}

/// Atoms that must lie in a plane, or must not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plane {
    /// Says whether the atoms lie in a plane.
    pub kind: PlaneKind,
    /// The atoms.
    pub atoms: Vec<usize>,
    /// For a double bond in a ring of eight to eleven atoms: the chain of ring atoms around it. If the ends of the chain lie on
    /// opposite sides, the ring twists the bond, as in *trans*-cyclooctene, and the rule does not apply.
    pub ring: Option<[usize; 4]>,
}

/// Returns the planes of a molecule.
///
/// Aromatic rings of five and six atoms are treated as in PoseBusters, except that a ring of six that shares atoms with a ring of
/// five counts too. Double bonds in PoseBusters are those between carbons with two further heavy neighbours each; here one further
/// heavy neighbour each is enough. PoseBusters has no rule for the planes around single atoms.
pub fn planes(molecule: &Molecule) -> Vec<Plane> {
    let mut planes = Vec::new();
    for (ring, bonds) in molecule.shape.rings.iter().zip(&molecule.ring_bonds) {
        let is_flat =
            |atom: &usize| molecule.is_aromatic(*atom) && molecule.hybridisation(*atom) == Hybridisation::Sp2;
        // A single bond may close a ring of aromatic atoms: a bond of SMARTS that is not written is single or aromatic.
        let is_flat_bond = |bond: &usize| matches!(molecule.kind(*bond), Kind::Single | Kind::Aromatic);
        if matches!(ring.len(), 5 | 6) && bonds.iter().all(is_flat_bond) && ring.iter().all(is_flat) {
            planes.push(Plane { kind: PlaneKind::AromaticRing, atoms: ring.clone(), ring: None });
        } else if is_puckered(molecule, ring, bonds) {
            planes.push(Plane { kind: PlaneKind::SaturatedRing, atoms: ring.clone(), ring: None });
        }
    }
    for bond in 0..molecule.shape.aromatic.len() {
        if let Some(atoms) = double_bond(molecule, bond) {
            planes.push(Plane { kind: PlaneKind::DoubleBond, atoms, ring: medium_ring(molecule, bond) });
        }
    }
    for atom in 0..molecule.len() {
        if let Some(atoms) = centre(molecule, atom) {
            planes.push(Plane { kind: PlaneKind::Centre, atoms, ring: None });
        }
    }
    planes
}

/// Returns the ring atoms before, at and behind a bond, if its smallest ring has eight to eleven atoms.
fn medium_ring(molecule: &Molecule, bond: usize) -> Option<[usize; 4]> {
    let rings = molecule.shape.rings.iter().zip(&molecule.ring_bonds);
    let (ring, bonds) =
        rings.filter(|(_, bonds)| bonds.contains(&bond)).min_by_key(|(ring, _)| ring.len())?;
    let (n, at) = (ring.len(), bonds.iter().position(|other| *other == bond)?);
    (8..=11).contains(&n).then(|| [n - 1, 0, 1, 2].map(|step| ring[(at + step) % n]))
}

fn heavy_neighbours(molecule: &Molecule, atom: usize) -> Vec<usize> {
    let others = molecule.neighbours[atom].iter().map(|bond| molecule.other(*bond, atom));
    others.filter(|other| molecule.is_heavy(*other)).collect()
}

/// Returns whether an atom is a carbon with three planar bonds.
fn is_trigonal_carbon(molecule: &Molecule, atom: usize) -> bool {
    let bonds = molecule.neighbours[atom].len() + molecule.shape.molecule.hydrogens[atom] as usize;
    molecule.atom(atom).element == 6 && bonds == 3 && molecule.hybridisation(atom) == Hybridisation::Sp2
}

/// The largest distance of an atom from the plane through atoms placed before it, in Å.
const SLAB_ANGSTROM: f64 = 0.45;

/// The same for a double bond with four heavy neighbours, or with three bonds of an end in rings. Where they are crowded, it is twisted:
/// GFN2-xTB leaves atoms of baccatin III and of N,N'-dimethylisoindigo up to 0.47 and 0.60 Å off the plane through those before, and none
/// 0.25 Å off the mean plane, where the judge begins.
const CROWDED_ANGSTROM: f64 = 0.62;

/// The same for a planar atom whose three bonds are in rings, as in a bowl: 0.69 Å in sumanene by GFN2-xTB. The plane through three of four
/// atoms is up to four times as far from the last one as the mean plane. Fullerenes do not lie inside.
const BOWL_ANGSTROM: f64 = 0.8;

/// Returns how far from a plane its atoms may lie, in Å. MMFF94 bends groups around an atom in rings of four and five atoms by up to 1.12
/// Å, in two rings of five by up to 0.58 Å. `None` for aromatic atoms under a bridge, which bends them out of any plane.
pub(super) fn slab_width(molecule: &Molecule, plane: &Plane) -> Option<f64> {
    if plane.atoms.iter().any(|atom| is_bridged_aromatic(molecule, *atom)) {
        return None;
    }
    if plane.kind == PlaneKind::AromaticRing {
        return Some(SLAB_ANGSTROM);
    }
    let shared = plane.atoms.iter().filter_map(|atom| shared_ring_size(molecule, *atom)).min();
    let width = match shared {
        Some(..=9) => 1.2,
        Some(10) => 0.65,
        _ => SLAB_ANGSTROM,
    };
    let is_bowl = |atom: &usize| shared_ring_size(molecule, *atom).is_some();
    let is_end = |atom: &usize| is_trigonal_carbon(molecule, *atom) && !molecule.is_aromatic(*atom);
    let has_bridgehead = plane.atoms.iter().any(|atom| is_end(atom) && is_bowl(atom));
    let strained = match plane.kind {
        // Its own atom is the last one.
        PlaneKind::Centre if plane.atoms.last().is_some_and(is_bowl) => BOWL_ANGSTROM,
        PlaneKind::DoubleBond if plane.atoms.len() == 6 || has_bridgehead => CROWDED_ANGSTROM,
        _ => SLAB_ANGSTROM,
    };
    Some(strained.max(width))
}

/// Returns the number of atoms in the two smallest rings of an atom whose three bonds are in rings, counted in each ring. The smaller it
/// is, the less the atom can lie in the plane of its neighbours, although it is planar, as in bicyclo[3.2.0]hept-1-ene. `None` for other
/// atoms.
fn shared_ring_size(molecule: &Molecule, atom: usize) -> Option<usize> {
    let in_ring = |bond: &usize| !molecule.bond_ring_sizes[*bond].is_empty();
    let bonds = &molecule.neighbours[atom];
    let mut sizes = molecule.ring_sizes[atom].clone();
    sizes.sort_unstable();
    (bonds.len() == 3 && bonds.iter().all(in_ring)).then_some(())?;
    Some(sizes.first()? + sizes.get(1)?)
}

/// The size up to which a second ring counts as a bridge. Across larger ones, as in \[7\]metacyclophane with 10, MMFF94 bends benzene by
/// 0.14 Å at most.
const LONGEST_BRIDGED_RING: usize = 9;

/// Returns whether an aromatic atom is in a ring that a bridge spans: another small ring shares three atoms with it, as in
/// `c1cc2ncc1o2`. Rings that are only fused share two.
fn is_bridged_aromatic(molecule: &Molecule, atom: usize) -> bool {
    let small: Vec<&Vec<usize>> =
        molecule.shape.rings.iter().filter(|ring| ring.len() <= LONGEST_BRIDGED_RING).collect();
    let shared = |ring: &[usize], other: &[usize]| ring.iter().filter(|one| other.contains(one)).count();
    let is_bridged = |ring: &Vec<usize>| small.iter().any(|other| *other != ring && shared(ring, other) > 2);
    molecule.is_aromatic(atom) && small.iter().any(|ring| ring.contains(&atom) && is_bridged(ring))
}

/// Returns the atoms of a double bond between carbons outside of aromatic rings, with their heavy neighbours. `None` if a carbon has no
/// further heavy neighbour, or if these are only three atoms.
fn double_bond(molecule: &Molecule, bond: usize) -> Option<Vec<usize>> {
    let ends = molecule.ends(bond);
    let is_end = |atom: &usize| is_trigonal_carbon(molecule, *atom) && !molecule.is_aromatic(*atom);
    if molecule.kind(bond) != Kind::Double || !ends.iter().all(is_end) {
        return None;
    }
    let mut atoms: BTreeSet<usize> = ends.into();
    for end in ends {
        let around = heavy_neighbours(molecule, end);
        if around.len() < 2 {
            return None;
        }
        atoms.extend(around);
    }
    (atoms.len() > 3).then(|| atoms.into_iter().collect())
}

/// Returns a planar carbon with its three heavy neighbours.
fn centre(molecule: &Molecule, atom: usize) -> Option<Vec<usize>> {
    let mut atoms = heavy_neighbours(molecule, atom);
    if !is_trigonal_carbon(molecule, atom) || atoms.len() != 3 {
        return None;
    }
    atoms.push(atom);
    Some(atoms)
}

/// The patterns of rings that cannot be flat: `non-aromatic_6_membered_rings` and the following ones in `config/mol.yml` of
/// PoseBusters. Each lists the bonds that need not be single (bond `i` joins atoms `i` and `i + 1`), and the atoms that need not be
/// carbon.
const PUCKERED: [(&[usize], &[usize]); 5] =
    [(&[5], &[0, 1, 2, 3, 4, 5]), (&[5, 2], &[2, 3]), (&[5, 2], &[4]), (&[5, 3], &[3, 4]), (&[5, 3], &[2])];

/// Returns whether a ring of six cannot be flat: none of its atoms is aromatic or in another ring, it fits one of [`PUCKERED`], and two
/// adjacent atoms are saturated. Without two such atoms, as in *p*-benzoquinone and 1,4-cyclohexadiene, the ring may be flat although it
/// fits PoseBusters' patterns.
fn is_puckered(molecule: &Molecule, ring: &[usize], bonds: &[usize]) -> bool {
    let is_alone = |atom: &usize| {
        matches!(molecule.atom(*atom).element, 6 | 7 | 8 | 16)
            && !molecule.is_aromatic(*atom)
            && molecule.ring_sizes[*atom].len() == 1
    };
    let is_saturated = |at: usize| molecule.hybridisation(ring[at % 6]) == Hybridisation::Sp3;
    if ring.len() != 6
        || !ring.iter().all(is_alone)
        || !(0..6).any(|at| is_saturated(at) && is_saturated(at + 1))
    {
        return false;
    }
    let single: Vec<bool> = bonds.iter().map(|bond| molecule.kind(*bond) == Kind::Single).collect();
    let carbon: Vec<bool> = ring.iter().map(|atom| molecule.atom(*atom).element == 6).collect();
    // Try each start atom and both directions: bond `i` of the pattern starts at its atom `i`, or ends there.
    let fits = |start: usize, back: bool, (free_bonds, free_atoms): (&[usize], &[usize])| {
        let atom = |at: usize| if back { (start + 6 - at) % 6 } else { (start + at) % 6 };
        // In the reverse direction a bond begins where it ends in the forward direction; the last one, from 5 to 0, then starts at
        // atom 0.
        let bond = |at: usize| if back { atom(at + 1 - 6 * usize::from(at == 5)) } else { atom(at) };
        (0..6).all(|at| {
            (single[bond(at)] || free_bonds.contains(&at)) && (carbon[atom(at)] || free_atoms.contains(&at))
        })
    };
    let starts = (0..6).flat_map(|start| [(start, false), (start, true)]);
    starts.into_iter().any(|(start, back)| PUCKERED.iter().any(|pattern| fits(start, back, *pattern)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bridge_bends_an_aromatic_ring() {
        let widths = |smiles: &str| -> Vec<Option<f64>> {
            let molecule = Molecule::new(smiles).unwrap();
            planes(&molecule).iter().map(|plane| slab_width(&molecule, plane)).collect()
        };
        assert!(widths("c1cc2ncc1o2").iter().all(Option::is_none));
        for flat in ["c1ccc2[nH]ccc2c1", "C1CCCCCCc2cccc1c2", "c1cc2ccc3cccc4ccc(c1)c2c34"] {
            let molecule = Molecule::new(flat).unwrap();
            let rings = planes(&molecule).into_iter().filter(|plane| plane.kind == PlaneKind::AromaticRing);
            assert!(
                rings.into_iter().all(|ring| slab_width(&molecule, &ring) == Some(SLAB_ANGSTROM)),
                "{flat}"
            );
        }
        // A crowded double bond may be twisted, and an atom of three rings may be the bottom of a bowl.
        assert_eq!(widths("CC=CC"), [Some(SLAB_ANGSTROM)]);
        assert_eq!(widths("CC(C)=C(C)C")[0], Some(CROWDED_ANGSTROM));
        assert!(widths("c1cc2ccc3cccc4ccc(c1)c2c34").contains(&Some(BOWL_ANGSTROM)));
        assert!(widths("CC(=O)N").iter().all(|width| *width == Some(SLAB_ANGSTROM)));
    }

    fn rules(smiles: &str) -> Vec<(PlaneKind, usize)> {
        let molecule = Molecule::new(smiles).unwrap();
        planes(&molecule).into_iter().map(|plane| (plane.kind, plane.atoms.len())).collect()
    }

    #[test]
    fn what_is_flat_and_what_is_not() {
        assert_eq!(rules("c1ccccc1"), [(PlaneKind::AromaticRing, 6)]);
        assert_eq!(
            rules("c1ccc2[nH]ccc2c1").iter().filter(|(kind, _)| *kind == PlaneKind::AromaticRing).count(),
            2
        );
        // Two rings of aromatic atoms with a single bond between them, and a pyridine.
        let fused = rules("Cn1nc(-c2ccccn2)nc2c(=O)n(C)c(=O)nc1-2");
        assert_eq!(fused.iter().filter(|plane| **plane == (PlaneKind::AromaticRing, 6)).count(), 3);
        assert_eq!(rules("C1CCCCC1"), [(PlaneKind::SaturatedRing, 6)]);
        assert_eq!(rules("C1CCC=CC1"), [(PlaneKind::SaturatedRing, 6), (PlaneKind::DoubleBond, 4)]);
        assert_eq!(rules("C1CCC2CCCCC2C1"), []);
        assert_eq!(rules("C1CCCC1"), []);
        let is_puckered = |smiles| rules(smiles).contains(&(PlaneKind::SaturatedRing, 6));
        // One double bond, two side by side, and what fits PoseBusters' patterns without two saturated atoms side by side.
        assert!(is_puckered("O1CCC=CC1") && is_puckered("C1=CC=CCC1"));
        for flat in
            ["C1=CCC=CC1", "O=C1C=CC(=O)C=C1", "N#CC1=C(C#N)C(=O)C(Cl)=C(Cl)C1=O", "O=C1NC(=O)C(=O)C(=O)N1"]
        {
            assert!(!is_puckered(flat), "{flat}");
        }
        // A bond in a ring of eight may be twisted.
        let ring =
            |smiles: &str| planes(&Molecule::new(smiles).unwrap()).iter().any(|plane| plane.ring.is_some());
        assert!(ring("C1CCC=CCCC1") && !ring("C1CCC=CCC1") && !ring("CC=CC"));
        assert!(!is_puckered("C1=COCC=C1") && !is_puckered("C1=CC=COC1") && !is_puckered("O1C=COC=C1"));
        assert!(is_puckered("O=C1CCCCC1") && is_puckered("O=C1CCOC=C1") && !is_puckered("O=C1C=COC=C1"));
        assert_eq!(rules("CC=C"), []);
        assert_eq!(rules("CC=CC"), [(PlaneKind::DoubleBond, 4)]);
        assert_eq!(
            rules("CC(C)=C(C)C"),
            [(PlaneKind::DoubleBond, 6), (PlaneKind::Centre, 4), (PlaneKind::Centre, 4)]
        );
        assert_eq!(rules("CC(=O)N"), [(PlaneKind::Centre, 4)]);
        assert_eq!(rules("C=C=C"), []);
    }
}
