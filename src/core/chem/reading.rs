//! A SMILES, read and sanitised once for all that is asked of it.

use super::graph::{Graph, Order, SmilesProblem};
use super::limit::AtomLimit;
use super::molecule::Molecule;

/// A SMILES with its molecule.
#[derive(Debug)]
pub struct SmilesReading<'t> {
    pub(super) text: &'t str,
    /// As it is written.
    pub(super) written: Graph,
    /// By atom of the text, whether it is a hydrogen that a count stands for as well.
    pub(super) removed: Vec<bool>,
    /// Without these.
    pub(super) molecule: Molecule,
    /// By bond of the molecule.
    pub(super) aromatic: Vec<bool>,
    /// Whether a bond has an order.
    pub(super) has_orders: bool,
}

impl<'t> SmilesReading<'t> {
    /// Reads a SMILES of at most so many heavy atoms.
    ///
    /// # Errors
    /// If RDKit would refuse it, or it is too large.
    pub fn new(text: &'t str, limit: AtomLimit) -> Result<Self, SmilesProblem> {
        limit.check(text)?;
        let written = Graph::parse(text)?;
        let removed = written.needless_hydrogens();
        let (molecule, has_orders) = sanitised(&written, &removed)?;
        let aromatic = molecule.aromatic_bonds();
        Ok(SmilesReading { text, written, removed, molecule, aromatic, has_orders })
    }

    /// Whether a text has it as it is: without hydrogens and map numbers that mean nothing, arrows, and radicals that no text can have.
    pub fn is_as_in_texts(&self) -> bool {
        !self.removed.contains(&true)
            && self.written.atoms.iter().all(|atom| atom.map == 0)
            && self.written.bonds.iter().all(|bond| bond.order != Order::Dative)
            && !self.written.has_bare_radicals()
    }
}

/// The molecule of a graph without some of its hydrogens, and whether its bonds have orders: else nothing is known of charges.
pub(super) fn sanitised(graph: &Graph, removed: &[bool]) -> Result<(Molecule, bool), SmilesProblem> {
    let bare = match removed.contains(&true) {
        true => graph.without_hydrogens(),
        false => Graph { atoms: graph.atoms.clone(), bonds: graph.bonds.clone(), ..Graph::default() },
    };
    let has_orders = graph.bonds.is_empty() || graph.bonds.iter().any(|bond| bond.order != Order::Any);
    Ok((if has_orders { bare.try_into()? } else { Molecule::unsanitised(bare) }, has_orders))
}
