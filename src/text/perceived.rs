//! Atoms and bonds as RDKit has them once it has read a SMILES: charges set apart, aromatic bonds perceived.

use smiles_rs::prelude::Smiles;

use super::graph::{PARSED, SmilesError};
use super::smiles::{Atom, Checked, Graph, MAX_HEAVY_ATOMS, Order};

/// An atom of a [`Perceived`] molecule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PerceivedAtom {
    /// Atomic number; 0 for `*`.
    pub element: u8,
    /// Formal charge.
    pub charge: i32,
    /// Mass number; 0 if none is written.
    pub isotope: u32,
    /// Unpaired electrons of carbon, nitrogen, oxygen and sulfur in brackets.
    pub radicals: u32,
}

/// A molecule as RDKit perceives it, all atoms in SMILES order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Perceived {
    /// Its atoms.
    pub atoms: Vec<PerceivedAtom>,
    /// Its bonds, each once, the smaller atom first; those that are aromatic have [`Order::Aromatic`].
    pub bonds: Vec<([usize; 2], Order)>,
}

impl Perceived {
    /// Reads a SMILES.
    ///
    /// # Errors
    /// If RDKit would refuse it.
    pub fn of(smiles: &str) -> Result<Self, SmilesError> {
        let refusal = |reason: String| SmilesError { smiles: smiles.chars().take(100).collect(), reason };
        let checked = PARSED.check(smiles).and_then(|()| Graph::parse(smiles)?.checked());
        let checked = checked.map_err(|problem| refusal(problem.to_string()))?;
        let is_aromatic = aromatic_bonds(&checked).map_err(|e| refusal(e.to_string()))?;
        let graph = &checked.graph;
        let neighbours = graph.neighbours();
        let atoms = (0..graph.atoms.len()).map(|at| {
            let atom = &graph.atoms[at];
            let bonds = neighbours[at].iter().map(|bond| twice(graph.bonds[*bond].order)).sum::<i32>() / 2;
            let radicals = radicals(atom, bonds + checked.hydrogens[at] as i32);
            PerceivedAtom { element: atom.element, charge: atom.charge, isotope: atom.isotope, radicals }
        });
        let bonds = graph.bonds.iter().zip(is_aromatic).map(|(bond, is_aromatic)| {
            let [a, b] = bond.atoms;
            ([a.min(b), a.max(b)], if is_aromatic { Order::Aromatic } else { bond.order })
        });
        Ok(Perceived { atoms: atoms.collect(), bonds: bonds.collect() })
    }
}

/// By bond, whether it is aromatic; none is in molecules that are too large to be compared.
fn aromatic_bonds(checked: &Checked) -> Result<Vec<bool>, impl std::fmt::Display + use<>> {
    let graph = &checked.graph;
    let is_ring = graph.ring_bonds(&graph.neighbours());
    if !is_ring.contains(&true) || graph.atoms.len() > MAX_HEAVY_ATOMS {
        return Ok(vec![false; graph.bonds.len()]);
    }
    let found = checked.spelled().parse::<Smiles>().map(|smiles| smiles.aromaticity_assignment());
    found.map(|found| {
        graph.bonds.iter().map(|bond| found.contains_edge(bond.atoms[0], bond.atoms[1])).collect()
    })
}

/// Twice a bond's order.
fn twice(order: Order) -> i32 {
    match order {
        Order::Single => 2,
        Order::Double => 4,
        Order::Triple => 6,
        Order::Quadruple => 8,
        Order::Aromatic => 3,
        Order::Dative | Order::Any => 0,
    }
}

/// What is missing to the least valence of an atom in brackets.
fn radicals(atom: &Atom, bonds: i32) -> u32 {
    let valence = match atom.element {
        6 => 4 - atom.charge.abs(),
        7 => 3 + atom.charge,
        8 | 16 => 2 + atom.charge,
        _ => return 0,
    };
    if atom.bracket { u32::try_from(valence - bonds).unwrap_or(0) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bonds_and_charges_are_those_of_rdkit() {
        let orders =
            |smiles: &str| Perceived::of(smiles).unwrap().bonds.into_iter().map(|b| b.1).collect::<Vec<_>>();
        assert_eq!(orders("C1=CC=CC=C1"), [Order::Aromatic; 6]);
        let fluorene = Perceived::of("c1ccc2c(c1)-c1ccccc1C2").unwrap();
        let single = |a, b| fluorene.bonds.contains(&([a, b], Order::Single));
        assert!(single(4, 6) && single(3, 12) && single(11, 12));
        let charges: Vec<i32> =
            Perceived::of("CN(=O)=O").unwrap().atoms.iter().map(|atom| atom.charge).collect();
        assert!(charges[1] == 1 && charges[2] + charges[3] == -1);
        let radicals: Vec<u32> =
            Perceived::of("[CH2]C[NH]").unwrap().atoms.iter().map(|atom| atom.radicals).collect();
        assert_eq!(radicals, [1, 0, 1]);
        assert!(Perceived::of("cc").is_err() && Perceived::of("C(").is_err());
    }
}
