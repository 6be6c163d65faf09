//! An extended model as a table.

use super::format::{bytes, thousands};
use super::table::{Table, Terminal};
use drift_tune::design::ExtendModelReport;
use drift_tune::design::model::report::GrownTableReport;

/// Returns the output of `drift extend-model` in a terminal.
pub fn extend_table(report: &ExtendModelReport, terminal: Terminal) -> String {
    let title = format!("{}, tokenizer {}, rows by {}", report.model, report.tokenizer, report.init.name());
    let mut table = Table::new(title).text("");
    for grown in &report.tables {
        table = table.number(grown.name);
    }
    let mut row = |name: &str, of: &dyn Fn(&GrownTableReport) -> String| {
        table.row([name.to_owned()].into_iter().chain(report.tables.iter().map(of)));
    };
    row("tokens that keep their row", &|_| thousands(report.old_tokens));
    row("rows of new tokens, spare or removed before", &|grown| thousands(grown.overwritten));
    row("rows of new tokens, behind the old ones", &|grown| thousands(grown.appended));
    row("rows of no token, behind the old ones", &|grown| thousands(grown.padding));
    row("rows before", &|grown| thousands(grown.rows_before));
    row("rows", &|grown| thousands(grown.rows));
    row("new tokens that share a row", &|grown| thousands(grown.shared_rows));
    let total: u64 = report.files.iter().map(|file| file.bytes).sum();
    let head = if report.tied { "the LM head is the embedding" } else { "the LM head is a table of its own" };
    table.note(format!("{} in {} files; {head}.", bytes(total), report.files.len()));
    table.render(terminal)
}
