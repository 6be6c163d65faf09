//! Pickled RDKit molecules: GEOM's `rdkit_folder` and the pickled test sets. Coordinates only.

use std::sync::Arc;

use super::atoms::Atoms;
use super::collect::{Collector, Finished};
use super::geom_pickle::{self, FoundMolecule};
use super::pickle::Pickle;
use super::rdkit::{Positions, RdkitMolecule};
use super::{Context, Emit};
use crate::error::{Error, Result};

/// Reads the pickles in `bytes`, one after another; the pickles are parsed, never executed.
///
/// # Errors
/// If a pickle is damaged or names a class that drift does not read, the job was cancelled, or `emit` fails.
pub(crate) fn read(bytes: &[u8], name: &str, context: Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
    let mut collector = Collector::new(name.to_owned(), context, emit);
    let mut atoms = Atoms::new(context.options);
    let mut rest = bytes;
    while !rest.is_empty() {
        let pickle = Pickle::parse(rest).map_err(|e| {
            Error::input(name, e, "give a pickle of RDKit molecules; if it is one, fetch it again")
        })?;
        for found in geom_pickle::molecules(&pickle) {
            let FoundMolecule { smiles, molecule, place } = found;
            match molecule {
                Err(problem) => collector.push(Err(problem.to_string()), || place.clone())?,
                Ok(molecule) => {
                    let key: Arc<str> = smiles.unwrap_or_else(|| place.clone()).into();
                    for index in 0..molecule.conformers.len() {
                        let outcome = conformer(&molecule, index, &key, &mut atoms);
                        collector.push(outcome, || format!("{place}, conformer {}", index + 1))?;
                    }
                    if molecule.conformers.is_empty() {
                        collector.push(Err("a molecule without a conformer".into()), || place.clone())?;
                    }
                }
            }
        }
        rest = &rest[pickle.length()..];
    }
    collector.finish()
}

/// One conformer of a molecule, or why it has none.
fn conformer(
    molecule: &RdkitMolecule,
    index: usize,
    key: &Arc<str>,
    atoms: &mut Atoms,
) -> Result<Finished, String> {
    atoms.clear();
    let stored = &molecule.conformers[index];
    if !stored.is_3d {
        return Err("a drawing, not a conformer: its coordinates are marked 2D".into());
    }
    for (at, atom) in molecule.atoms.iter().enumerate() {
        let pushed = match &stored.positions {
            Positions::Single(positions) => positions.get(at).map(|p| atoms.push_f32(atom.atomic_number, *p)),
            Positions::Double(positions) => positions.get(at).map(|p| atoms.push_f64(atom.atomic_number, *p)),
        };
        pushed.unwrap_or_else(|| Err(format!("atom {} has no position", at + 1)))?;
    }
    atoms.finish(key.clone())
}
