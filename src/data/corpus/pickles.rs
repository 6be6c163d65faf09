//! Reads pickled RDKit molecules: GEOM's `rdkit_folder` and the pickled test sets.

use std::sync::Arc;

use super::atoms::Atoms;
use super::collect::Collector;
use super::geom_pickle::{self, FoundMolecule};
use super::labels::Labels;
use super::pickle::Pickle;
use super::rdkit::{Positions, RdConformer};
use super::{BatchSink, Context, IsomerPool};
use drift_core::chem::Graph;
use drift_core::{Error, Result};

/// Reads the pickles in `bytes`, one after another. The pickles are parsed, never executed.
///
/// # Errors
/// If a pickle is damaged or uses a feature that drift does not read, the job was cancelled, or `emit` fails.
pub(crate) fn read(bytes: &[u8], name: &str, context: Context<'_>, emit: &mut BatchSink<'_>) -> Result<()> {
    let mut collector = Collector::new(name.to_owned(), context, emit);
    let mut atoms = Atoms::new(context.options, name);
    let mut rest = bytes;
    while !rest.is_empty() {
        let pickle = Pickle::parse(rest).map_err(|e| {
            Error::input(name, e, "give a pickle of RDKit molecules; if it is one, fetch it again")
        })?;
        for found in geom_pickle::molecules(&pickle) {
            molecule(found, &mut atoms, &mut collector)?;
        }
        rest = &rest[pickle.length()..];
    }
    collector.finish()
}

/// Reads the conformers of one molecule.
fn molecule(found: FoundMolecule, atoms: &mut Atoms, collector: &mut Collector<'_, '_>) -> Result<()> {
    let FoundMolecule { smiles, sub_smiles, name, molecule, place } = found;
    let shared = molecule.and_then(|molecule| Ok((molecule.conformers, atoms.share(molecule.graph)?)));
    let (conformers, structure) = match shared {
        Ok(shared) => shared,
        Err(problem) => return collector.push(Err(problem), || place.clone()),
    };
    let key: Arc<str> = smiles.as_deref().unwrap_or(&place).into();
    let pooled = smiles.clone().filter(|_| !sub_smiles.is_empty());
    let pool = pooled.map(|smiles| Arc::new(IsomerPool { smiles, isomers: sub_smiles }));
    let labels = Labels {
        key: smiles.as_deref(),
        pool: pool.as_ref(),
        title: name.as_deref(),
        place: Some(&place),
        ..Labels::new(&key)
    };
    for (index, stored) in conformers.iter().enumerate() {
        atoms.clear();
        atoms.set_structure(structure.clone());
        let outcome = push(&structure, stored, atoms).and_then(|()| atoms.finish(&labels));
        collector.push(outcome, || format!("{place}, conformer {}", index + 1))?;
    }
    if conformers.is_empty() {
        collector.push(Err("a molecule without a conformer".into()), || place.clone())?;
    }
    Ok(())
}

/// Adds the atoms of one conformer of a molecule, or returns why the conformer cannot be read.
fn push(molecule: &Graph, stored: &RdConformer, atoms: &mut Atoms) -> Result<(), String> {
    if !stored.is_3d {
        return Err("a drawing, not a conformer: its coordinates are marked 2D".into());
    }
    for (at, atom) in molecule.atoms.iter().enumerate() {
        let pushed = match &stored.positions {
            Positions::Single(positions) => positions.get(at).map(|p| atoms.push_f32(atom.element, *p)),
            Positions::Double(positions) => positions.get(at).map(|p| atoms.push_f64(atom.element, *p)),
        };
        pushed.unwrap_or_else(|| Err(format!("atom {} has no position", at + 1)))?;
    }
    Ok(())
}
