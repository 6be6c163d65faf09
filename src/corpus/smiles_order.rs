//! The atoms of a file in the order of a SMILES, so that a conformer has the text that users train on.

use std::sync::Arc;

use super::labels::Labels;
use super::names::Names;
use crate::text::molecule::{Mismatch, Pairing, SmilesMolecule, StereoDifference, Structure};
use crate::text::skeleton;
use crate::text::smiles::AtomLimit;

/// Which SMILES belongs to a molecule of a file, and what becomes of one that has none.
///
/// The SMILES is that of the names, else the file's own: the key under which it puts the molecule, or a data item.
#[derive(Debug, Clone, Default)]
pub struct SmilesSource {
    /// SMILES by name.
    pub names: Option<Arc<Names>>,
    /// The data item that holds the SMILES; by default `canonical_smiles`, `smiles` or `SMILES`, the first that is there.
    pub property: Option<Arc<str>>,
    /// What becomes of conformers with stereo that their SMILES leaves open.
    pub open_stereo: OpenStereo,
    /// Whether a conformer that is not the molecule of a SMILES is skipped; else its atoms stay in the order of the file.
    pub required: bool,
}

/// What becomes of conformers with stereo that their SMILES leaves open: RDKit would write another SMILES for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OpenStereo {
    /// They are the SMILES' molecule, and counted apart.
    #[default]
    Keep,
    /// They are not.
    Skip,
}

/// A file's atoms in the order of a SMILES.
#[derive(Debug)]
pub(super) struct Ordered {
    /// The SMILES.
    pub smiles: Arc<str>,
    /// Its text with every block emptied.
    pub skeleton: Arc<str>,
    /// The number of each atom in the file, from 0.
    pub order: Vec<u32>,
    /// Stereo of the coordinates that the SMILES leaves open.
    pub open: StereoDifference,
}

/// Finds the order of one molecule after another; what is known of the last is kept, since conformers of a molecule follow one another.
#[derive(Debug)]
pub(super) struct SmilesOrder {
    source: SmilesSource,
    last: Option<Known>,
}

#[derive(Debug)]
struct Known {
    smiles: Arc<str>,
    molecule: Result<(SmilesMolecule, Arc<str>), Mismatch>,
    /// With the structure that was set beside it last.
    pairing: Option<(Arc<Structure>, Result<Pairing, Mismatch>)>,
}

impl SmilesOrder {
    pub(super) fn new(source: &SmilesSource) -> Self {
        SmilesOrder { source: source.clone(), last: None }
    }

    /// Whether what has no order is skipped.
    pub(super) fn is_required(&self) -> bool {
        self.source.required
    }

    /// The SMILES of a molecule, by what its file says of it.
    ///
    /// # Errors
    /// A reason: there is none.
    pub(super) fn smiles<'s>(&'s self, labels: &'s Labels<'_>) -> Result<&'s str, String> {
        let names = self.source.names.as_deref();
        let named = names.and_then(|names| labels.names().find_map(|name| names.get(name)));
        let property = self.source.property.as_deref();
        if let Some(smiles) = named.or_else(|| labels.smiles(property).map(|(smiles, _)| smiles).next()) {
            return Ok(smiles);
        }
        let name = labels.names().next().map(|name| crate::error::shortened_end(name, 80));
        Err(match (names, property, name) {
            (Some(_), _, Some(name)) => format!("no SMILES: `{name}` is not among the names"),
            (_, Some(property), _) => format!("no SMILES: no data item `{property}`"),
            _ => "no SMILES: the file gives none".to_owned(),
        })
    }

    /// The atoms at `points`, in Å, bonded as `structure` says, in the order of `smiles`.
    ///
    /// # Errors
    /// If they are not its molecule.
    pub(super) fn order(
        &mut self,
        smiles: &str,
        structure: &Arc<Structure>,
        points: &[[f64; 3]],
    ) -> Result<Ordered, Mismatch> {
        let open_stereo = self.source.open_stereo;
        let known = self.known(smiles);
        let (molecule, skeleton) = known.molecule.as_mut().map_err(|mismatch| mismatch.clone())?;
        let (_, pairing) = match known.pairing.take() {
            Some(pairing) if Arc::ptr_eq(&pairing.0, structure) => known.pairing.insert(pairing),
            _ => known.pairing.insert((structure.clone(), molecule.pair(structure))),
        };
        let pairing = pairing.as_ref().map_err(|mismatch| mismatch.clone())?;
        let (order, open) = molecule.order(pairing, points)?;
        if open_stereo == OpenStereo::Skip && !open.is_empty() {
            return Err(Mismatch::Open(open));
        }
        if let Some(at) = order.iter().position(|place| *place as usize >= points.len()) {
            let reason = format!("atom {} of the SMILES is a hydrogen that the file does not have", at + 1);
            return Err(Mismatch::Atoms(reason));
        }
        Ok(Ordered { smiles: known.smiles.clone(), skeleton: skeleton.clone(), order, open })
    }

    fn known(&mut self, smiles: &str) -> &mut Known {
        match self.last.take() {
            Some(known) if *known.smiles == *smiles => self.last.insert(known),
            _ => {
                let molecule = SmilesMolecule::new(smiles, AtomLimit::default()).and_then(|molecule| {
                    let skeleton =
                        skeleton::from_smiles(smiles).map_err(|error| Mismatch::Smiles(error.to_string()))?;
                    Ok((molecule, skeleton.into()))
                });
                self.last.insert(Known { smiles: smiles.into(), molecule, pairing: None })
            }
        }
    }
}
