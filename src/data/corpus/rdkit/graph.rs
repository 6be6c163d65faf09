//! Converts RDKit's atoms and bonds to a [`Graph`].

use super::{RdkitAtom, RdkitBond, RdkitMolecule};
use drift_core::chem::{Atom, Bond, Graph, Order};

impl From<&RdkitMolecule> for Graph {
    /// Atoms and bonds in the order of the molecule. An atom's query is dropped; the atom itself is kept.
    fn from(molecule: &RdkitMolecule) -> Self {
        let bond = |bond: &RdkitBond| Bond::new([bond.begin as usize, bond.end as usize], order(bond.kind));
        Graph::of_file(
            molecule.atoms.iter().map(Atom::from).collect(),
            molecule.bonds.iter().map(bond).collect(),
        )
    }
}

impl From<&RdkitAtom> for Atom {
    fn from(atom: &RdkitAtom) -> Self {
        Atom {
            element: atom.atomic_number,
            charge: atom.formal_charge.into(),
            isotope: atom.isotope,
            hydrogens: atom.explicit_hydrogens.into(),
            bracket: atom.no_implicit,
            radicals: atom.radical_electrons.into(),
            ..Atom::default()
        }
    }
}

/// The order of a `BondType`. RDKit's bonds without an order (unspecified, zero, hydrogen) and of unusual orders (one and a half,
/// three-centre) become [`Order::Any`].
fn order(kind: u8) -> Order {
    match kind {
        1 => Order::Single,
        2 => Order::Double,
        3 => Order::Triple,
        4 => Order::Quadruple,
        12 => Order::Aromatic,
        17 => Order::Dative,
        _ => Order::Any,
    }
}
