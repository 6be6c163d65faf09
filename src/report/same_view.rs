//! The comparison with the texts of another run, as a table.

use super::fields::Fields;
use super::format::{number, or_dash, thousands};
use super::table::Table;
use drift_core::error::shortened_end;
use drift_engine::eval::TextDifference;
use drift_engine::eval::record::EvalReport;

/// The largest number of rows of the table; further rows are in the record.
const MAX_ROWS: usize = 20;
/// The largest number of characters of a SMILES: with a longer one the table is wider than 100 columns and would be split. The record
/// has the whole SMILES.
const MAX_SMILES: usize = 16;

/// Returns how many texts equal those of another run, and where the others first differ; `None` without `--same-as`.
pub fn same_table(report: &EvalReport) -> Option<Table> {
    let same = report.same_texts.as_ref()?;
    let (equal, compared) = (thousands(same.equal), thousands(same.compared));
    let title = format!("beside {}: {equal} of {compared} texts are the same", same.file);
    let mut table = Fields::new(title)
        .code("model", |one: &TextDifference| one.model.clone())
        .code("logit processor", |one| one.lp.name().to_owned())
        .code("molecule", |one| shortened_end(&one.smiles, MAX_SMILES))
        .number("text", |one| thousands(one.generation as u64))
        .number("tokens\nbefore", |one| thousands(one.tokens as u64))
        .code("this run", |one| one.ours.clone())
        .code("the other", |one| one.theirs.clone())
        .number("lead of the\nbest logit", |one| or_dash(one.lead, |lead| number(f64::from(lead))))
        .table(same.differences.iter().take(MAX_ROWS));
    let differing = same.compared - same.equal;
    if differing > MAX_ROWS as u64 {
        table.note(format!("{} more differ.", thousands(differing - MAX_ROWS as u64)));
    }
    if same.missing > 0 {
        table.note(format!("{} texts are not in {}.", thousands(same.missing), same.file));
    }
    Some(table)
}
