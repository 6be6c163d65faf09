//! What an isotope label (`[13CH3]`, `[2H]`) means. Every comparison of molecules asks this module.
//!
//! | question | by default ([`Isotopes::Ignore`]) | with [`Isotopes::Respect`] |
//! | --- | --- | --- |
//! | are two SMILES the same molecule | labels are removed before anything else, so a labelled hydrogen that a count can then replace is removed too: `[13CH4]`, `[2H]C` and `C` are one molecule | atoms with different labels differ, and a labelled hydrogen is an atom |
//! | which orders of atoms does an RMSD try | all orders of the molecule without labels, as spyrmsd, and RDKit's `GetBestRMS` once the labels are removed | those that keep every label, as `GetBestRMS` between conformers of one labelled molecule |
//!
//! Three answers do not depend on the choice:
//!
//! - **Stereo.** A label tells the neighbours of an atom apart, as in RDKit: `C[C@H]([13CH3])O` and `C[C@H]([2H])O` have a
//!   stereocentre. So a molecule *with its stereo* has its labels too ([`MolecularIdentity::is_isomer`](super::MolecularIdentity)).
//! - **The order of two spellings** of a molecule ([`atoms_in_order`](super::atoms_in_order)) keeps the labels if any order does.
//! - **The atoms of a file and its SMILES** ([`SmilesMolecule::pair`](super::SmilesMolecule::pair)) have the same labels, because
//!   the SMILES names what the file holds. A format that cannot label atoms leaves them out; XYZ can label hydrogens alone.
//!
//! RDKit itself has a third rule, in canonical SMILES without isotopes: labelled hydrogens stay atoms, because `RemoveHs` comes
//! first. Only 3DMolGen's verdict needs it ([`same_canonical_smiles`](super::same_canonical_smiles)).

use super::graph::{Atom, Graph};

/// Whether isotope labels tell molecules and their atoms apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isotopes {
    /// A labelled molecule is the same as the plain one.
    #[default]
    Ignore,
    /// Atoms with different labels differ.
    Respect,
}

crate::named!(Isotopes { Ignore: "ignore", Respect: "respect" });

impl Isotopes {
    /// Returns a graph with the labels that count. It must come before hydrogens are removed.
    pub(super) fn counted(self, graph: Graph) -> Graph {
        match self {
            Isotopes::Ignore if graph.has_labels() => graph.without_labels(),
            _ => graph,
        }
    }
}

impl Graph {
    /// Returns whether any atom has a mass number.
    pub(super) fn has_labels(&self) -> bool {
        self.atoms.iter().any(|atom| atom.isotope > 0)
    }

    /// Returns the graph without mass numbers. All atoms stay, hydrogens too.
    pub(super) fn without_labels(mut self) -> Graph {
        self.atoms.iter_mut().for_each(|atom| *atom = Atom { isotope: 0, ..*atom });
        self
    }
}

impl serde::Serialize for Isotopes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
