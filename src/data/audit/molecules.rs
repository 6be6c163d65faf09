//! Reads the pickles of molecules that 3DMolGen's inference writes, as texts to judge.
//!
//! `generation_results.pickle` is a dictionary from the SMILES of a molecule to the RDKit molecules that were decoded from its texts;
//! `shard_N.pickle` holds such a dictionary under `generations`, beside the counts of texts that could not be decoded (`stats`). Each
//! conformer becomes the text that stands for it: the SMILES of its key, with the coordinates in the fixed dialect. A molecule that
//! is not that of its key becomes a text of another molecule.

use std::collections::HashMap;

use super::records::{Reader, Record};
use crate::corpus::pickle::{Pickle, Value};
use crate::corpus::{Conformer, Context, Frame, IsomerPool, ReadOptions, SmilesSource, pickles};
use drift_core::encoding::Reading;
use drift_core::text::{skeleton, tagged, write};
use drift_core::{Encoding, Job, Result};

/// The key under which a shard counts the texts that were not decoded.
const STATS: &str = "stats";

/// Adds the conformers of a pickle to the records of a file.
///
/// # Errors
/// If the pickle is damaged, holds no molecule, or the job was cancelled.
pub(super) fn read(bytes: &[u8], file: &mut Reader, job: &Job) -> Result<()> {
    let options = ReadOptions {
        frame: Frame::Keep,
        reading: Reading { cut: true, ..Reading::new(Encoding::FIXED) },
        // The judge compares stereo by itself.
        smiles: SmilesSource { any_stereo: true, ..SmilesSource::default() },
        ..ReadOptions::default()
    };
    let mut counts: HashMap<String, u64> = HashMap::new();
    let name = file.name.clone();
    pickles::read(bytes, &name, Context { options: &options, job }, &mut |batch| {
        for skipped in batch.skipped {
            file.skip(skipped.record, skipped.reason);
        }
        for conformer in batch.conformers {
            let number = counts.entry(conformer.molecule.to_string()).or_default();
            *number += 1;
            let place = format!("{}, conformer {number}", conformer.molecule);
            match record(&conformer, &place) {
                Some(record) => file.add_complete(record),
                None => file.skip(place, "the pickle gives no SMILES for it".to_owned()),
            }
        }
        file.check_size()
    })?;
    file.note = undecoded(bytes).map(|counts| {
        format!(
            "{name}: holds only the texts that 3DMolGen could decode; its `{STATS}` count others ({counts}), which are in no share here"
        )
    });
    Ok(())
}

/// Returns the text of a conformer, and its prompt; `None` without a SMILES.
fn record(conformer: &Conformer, place: &str) -> Option<Record> {
    let smiles = &*conformer.molecule;
    skeleton::check(smiles).ok()?;
    let pool = conformer.pool.as_deref().map_or(smiles, |pool: &IsomerPool| &pool.smiles);
    Some(Record {
        place: place.to_owned(),
        prompt: Some(smiles.to_owned()),
        text: tagged(&write(&conformer.skeleton, &conformer.coordinates, Encoding::FIXED)),
        pool: Some(pool.to_owned()),
        ..Record::default()
    })
}

/// Returns the counts above 0 of texts that are not in the pickle, as it states them.
fn undecoded(bytes: &[u8]) -> Option<String> {
    let pickle = Pickle::parse(bytes).ok()?;
    let Value::Dict(entries) = &pickle[pickle.root()] else { return None };
    let (_, stats) = entries.iter().find(|(key, _)| pickle.text(*key) == Some(STATS))?;
    let counts = match &pickle[*stats] {
        Value::Dict(counts) => counts,
        Value::Object(object) => &object.entries,
        _ => return None,
    };
    let shown = counts.iter().filter_map(|(key, count)| match (pickle.text(*key), &pickle[*count]) {
        (Some(name), Value::Int(count @ 1..)) => Some(format!("{name}: {count}")),
        _ => None,
    });
    let shown: Vec<String> = shown.collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}
