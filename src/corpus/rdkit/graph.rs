//! What a molecule's atoms and bonds are, in the terms of [`Structure`].

use super::{BondKind, RdkitAtom, RdkitBond, RdkitMolecule};
use crate::text::molecule::{Structure, StructureAtom};
use crate::text::smiles::Order;

impl From<&RdkitMolecule> for Structure {
    /// Atoms and bonds in the order of the molecule. What an atom's query asks for is left out; the atom holds all the same.
    fn from(molecule: &RdkitMolecule) -> Self {
        Structure {
            atoms: molecule.atoms.iter().map(StructureAtom::from).collect(),
            bonds: molecule.bonds.iter().map(|bond| ([bond.begin, bond.end], order(bond))).collect(),
        }
    }
}

impl From<&RdkitAtom> for StructureAtom {
    fn from(atom: &RdkitAtom) -> Self {
        StructureAtom {
            element: atom.atomic_number,
            charge: atom.formal_charge,
            // No isotope has so large a mass number; one that is written stays unlike all others.
            isotope: u16::try_from(atom.isotope).unwrap_or(u16::MAX),
            hydrogens: atom.explicit_hydrogens,
            no_implied: atom.no_implicit,
            radicals: atom.radical_electrons,
        }
    }
}

/// RDKit's bonds of no order (unspecified, zero, hydrogen) and of odd ones (one and a half, three centres) are of any order.
fn order(bond: &RdkitBond) -> Order {
    /// `Bond::BondType::QUADRUPLE`.
    const QUADRUPLE: u8 = 4;
    match bond.kind {
        BondKind::Single => Order::Single,
        BondKind::Double => Order::Double,
        BondKind::Triple => Order::Triple,
        BondKind::Aromatic => Order::Aromatic,
        BondKind::Dative => Order::Dative,
        BondKind::Other(QUADRUPLE) => Order::Quadruple,
        BondKind::Other(_) => Order::Any,
    }
}
