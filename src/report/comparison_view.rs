//! The comparison of methods to make a tokenizer.

use super::fields::Fields;
use super::format::{hundredths, or_dash, percent, thousands};
use super::table::Terminal;
use drift_tune::design::report::comparison::{MethodComparison, MethodRow, TrainingMethod};

/// Returns one number, or the minimum and the maximum.
pub(super) fn span(from: u64, to: u64) -> String {
    if from == to { thousands(from) } else { format!("{} to {}", thousands(from), thousands(to)) }
}

/// Returns the methods that add the same number of tokens, as a table with explanations.
pub fn comparison_table(comparison: &MethodComparison, terminal: Terminal) -> String {
    let title = format!("{} new tokens, spent in other ways", thousands(comparison.new_tokens));
    let table = Fields::new(title)
        .text("way", |row: &MethodRow| name(row.method).to_owned())
        .number("new\ntokens", |row| thousands(row.new_tokens))
        .number("never\nused", |row| thousands(row.unused))
        .number("tokens a block\nmean", |row| hundredths(row.blocks.mean))
        .number("\nrange", |row| span(row.blocks.min, row.blocks.max))
        .number("blocks\noff", |row| percent(row.blocks.off_share))
        .number("drift,\ntokens a block", |row| hundredths(row.blocks.off_tokens_per_block))
        .number("tokens a\nconformer", |row| hundredths(row.tokens_per_conformer))
        .number("coverage", |row| or_dash(row.coverage, percent))
        .number("lower\nbound", |row| or_dash(row.lower_bound, thousands))
        .number("gap", |row| or_dash(row.gap, thousands))
        .number("other texts\nchanged", |row| or_dash(row.other_texts_changed, thousands))
        .table(&comparison.rows);
    let notes: Vec<String> = comparison.rows.iter().filter_map(|row| note(row, &comparison.rows)).collect();
    format!("\n{}\n{}\n", table.render(terminal), notes.join("\n"))
}

fn name(method: TrainingMethod) -> &'static str {
    match method {
        TrainingMethod::Base => "base",
        TrainingMethod::Designed => "designed",
        TrainingMethod::Continued => "continued BPE, as published",
        TrainingMethod::ContinuedInBlocks => "continued BPE, whole blocks",
        TrainingMethod::Merges => "continued BPE in pieces (--merges)",
        TrainingMethod::Plain => "tokenizers' BPE from nothing",
        TrainingMethod::VocabSize => "BPE from nothing in pieces (--vocab-size)",
    }
}

/// Returns what continued BPE does to the base, as a sentence.
fn note(row: &MethodRow, rows: &[MethodRow]) -> Option<String> {
    let base = rows.iter().find(|row| row.method == TrainingMethod::Base)?;
    let than = |own: f64, other: f64| match own.total_cmp(&other) {
        std::cmp::Ordering::Less => "less than",
        std::cmp::Ordering::Equal => "as",
        std::cmp::Ordering::Greater => "more than",
    };
    let drift = format!(
        "drifts {} the base ({} of blocks off, {} before)",
        than(row.blocks.off_share, base.blocks.off_share),
        percent(row.blocks.off_share),
        percent(base.blocks.off_share)
    );
    let other = match row.other_texts_changed {
        Some(1..) => ", and changes other texts too",
        _ => "",
    };
    match row.method {
        TrainingMethod::Continued => Some(format!(
            "Continued BPE as published (arXiv 2512.03989) keeps the base's splits: {} of its {} tokens hold two digits \
             or more. It {drift}{other}.",
            thousands(row.multi_digit),
            thousands(row.new_tokens)
        )),
        TrainingMethod::ContinuedInBlocks => Some(format!(
            "With every block as one word it learns {} tokens of two digits or more, and {drift}: which digits are \
             joined depends on the numbers.",
            thousands(row.multi_digit)
        )),
        TrainingMethod::Merges => Some(format!("In the pieces of a scheme it {drift}.")),
        _ => None,
    }
}
