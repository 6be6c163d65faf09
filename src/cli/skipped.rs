//! Notes on records that were skipped, and on conformers in file order or with open stereo.

use super::output::Output;
use crate::report::format::{counted, thousands};
use drift_data::corpus::SkippedRecord;
use drift_data::prompts::Molecules;

/// The number of records that are shown.
const SHOWN: usize = 10;

/// Says which records were skipped.
pub(super) fn tell(count: u64, records: &[SkippedRecord], output: &Output) {
    tell_first(records, output);
    if count > SHOWN as u64 {
        output.note(&format!("skipped: {} records in all; --json lists the first 1,000", thousands(count)));
    }
}

/// Says for which molecules nothing is generated.
pub(super) fn tell_prompts(molecules: &Molecules, output: &Output) {
    let Molecules { skipped, skipped_records, .. } = molecules;
    tell_first(skipped_records, output);
    if *skipped > SHOWN as u64 {
        output.note(&format!("skipped: {} molecules in all", thousands(*skipped)));
    }
}

fn tell_first(records: &[SkippedRecord], output: &Output) {
    for SkippedRecord { file, record, reason } in records.iter().take(SHOWN) {
        output.note(&format!("skipped: {file}: {record}: {reason}"));
    }
}

/// Says how many rows were not asked for.
pub(super) fn tell_left_out(count: u64, output: &Output) {
    if count > 0 {
        output.note(&format!("note: {} left out by --where", counted(count, "row")));
    }
}

/// Says how many conformers have their atoms in the order of the file, with the reason for the first ones.
pub(super) fn tell_file_order(count: u64, records: &[SkippedRecord], output: &Output) {
    if count == 0 {
        return;
    }
    for SkippedRecord { file, record, reason } in records.iter().take(3) {
        output.note(&format!("in file order: {file}: {record}: {reason}"));
    }
    output.note(&format!(
        "note: {} read as chains of bare atoms in file order, because no SMILES was found for them",
        counted(count, "conformer")
    ));
}

/// Says how many conformers have stereo that their SMILES leaves open, with the first ones.
pub(super) fn tell_open_stereo(count: u64, records: &[SkippedRecord], output: &Output) {
    for SkippedRecord { file, record, reason } in records.iter().take(3) {
        output.note(&format!("open stereo: {file}: {record}: {reason}"));
    }
    if count > 0 {
        let count = counted(count, "conformer");
        output.note(&format!(
            "note: {count} with stereo that the SMILES leaves open; --open-stereo skip leaves such conformers out"
        ));
    }
}
