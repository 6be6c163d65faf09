//! Atoms and bonds as a file has them.

use crate::text::smiles::Order;

/// An atom of a [`Structure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct StructureAtom {
    /// Atomic number; 0 for a dummy.
    pub element: u8,
    /// Formal charge.
    pub charge: i8,
    /// Mass number of a labelled isotope, else 0.
    pub isotope: u16,
    /// Hydrogens that the file counts for the atom and that are no atoms of their own.
    pub hydrogens: u8,
    /// Whether the file says that there are no hydrogens beyond those: else as many are implied as the valence leaves room for.
    pub no_implied: bool,
    /// Unpaired electrons.
    pub radicals: u8,
}

/// A molecule's atoms and bonds as a file has them: hydrogens too where they are atoms there, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Structure {
    /// The atoms.
    pub atoms: Vec<StructureAtom>,
    /// The bonds, each once; aromatic ones may be [`Order::Aromatic`] or have a Kekulé structure. [`Order::Any`] for bonds whose
    /// order is not known.
    pub bonds: Vec<([u32; 2], Order)>,
}
