//! Tokenizers that are learned from a corpus, and the comparison of ways to add tokens.

use super::card::training;
use super::design_view::advice;
use super::format::{hundredths, percent, percent_or_dash, thousands};
use super::table::{Table, Terminal};
use crate::design::compare::{Comparison, Method, Row};
use crate::design::learned::{LearnedReport, Promises, Way};
use crate::design::plain::PlainText;

/// What `drift train-tokenizer --merges` and `--vocab-size` show in a terminal.
pub fn learned_table(report: &LearnedReport, terminal: Terminal) -> String {
    let name = report.base.as_deref().unwrap_or("from nothing");
    let range = report.range_angstrom.angstrom();
    let mut table = Table::new(format!("{name}, {}, fixed dialect, below {range} Å", report.kind.name()));
    table = table.text("").number("");
    let mut row = |name: &str, value: String| {
        table.row([name.to_owned(), value]);
    };
    let blocks = &report.blocks;
    row("new tokens", thousands(report.new_tokens));
    row("of them made by merges", thousands(report.merges));
    row("tokens a block, mean", hundredths(blocks.mean));
    row("tokens of most blocks", thousands(blocks.usual));
    row("blocks that take another number", percent(blocks.off_share));
    row("drift, tokens a block", hundredths(blocks.off_tokens_per_block));
    row("fewest and most in the range", span(report.fewest_tokens_per_block, report.most_tokens_per_block));
    row("lower bound by counting", thousands(report.lower_bound));
    row("rows of the embedding", thousands(report.embedding_rows));
    row("blocks of the corpus in the range", percent(report.coverage));
    row("tokens a conformer", hundredths(report.tokens_per_conformer));
    if let Some(base) = report.base_tokens_per_conformer {
        row("tokens a conformer, base", hundredths(base));
    }
    let compared = report.comparison.as_ref().map(|comparison| comparison_table(comparison, terminal));
    format!(
        "{}\n{}{}\n{}",
        table.render(terminal),
        checked(report),
        advice(report.kind),
        compared.unwrap_or_default()
    )
}

fn span(from: u64, to: u64) -> String {
    if from == to { thousands(from) } else { format!("{} to {}", thousands(from), thousands(to)) }
}

/// What was run.
fn checked(report: &LearnedReport) -> String {
    let mut text = format!("Before merges a block is cut like {}.\n", report.example);
    let range = span(report.fewest_tokens_per_block, report.most_tokens_per_block);
    match &report.guarantees {
        Promises::Extension(run) => {
            let plain = match run.plain_text {
                PlainText::Proved => "proved from the base's pre-tokenizers and vocabulary, and equal on",
                PlainText::Tried => "not proved for this base's pre-tokenizers, but equal on",
            };
            text.push_str(&format!(
                "Every one of {} numbers was encoded in all three positions and {} contexts, {} blocks: {range} tokens.\n\
                 {} old tokens keep id and text; each new token is reached; blocks decode to themselves.\n\
                 Text without blocks takes the same tokens as before: {plain} {} texts.\n",
                thousands(run.numbers),
                thousands(run.contexts),
                thousands(run.blocks),
                thousands(run.unchanged_tokens),
                thousands(run.plain_texts + run.fallbacks),
            ));
        }
        Promises::Scratch(run) => text.push_str(&format!(
            "Every one of {} numbers was encoded in all three positions and {} contexts, {} blocks: {range} tokens.\n\
             Each of {} tokens is reached; {} texts decode to themselves.\n",
            thousands(run.numbers),
            thousands(run.contexts),
            thousands(run.blocks),
            thousands(run.reached_tokens),
            thousands(run.decoded_texts),
        )),
    }
    if report.way == Way::Merges && report.replaced > 0 {
        text.push_str(&format!(
            "{} tokens that would only be steps on the way to others were replaced.\n",
            thousands(report.replaced)
        ));
    }
    text
}

/// What `MODEL_CARD.md` says of a learned tokenizer.
pub fn learned_card(report: &LearnedReport) -> String {
    let made = match &report.base {
        Some(base) => format!("`{base}`, extended by drift with {} new tokens", thousands(report.new_tokens)),
        None => format!("Learned by drift from nothing, {} tokens", thousands(report.embedding_rows)),
    };
    let blocks = &report.blocks;
    let mut card = format!(
        "## Tokenizer\n\n{made}, on {} conformers. A coordinate block `<x,y,z>` takes {} tokens on average, brackets \
         included; {} of blocks take another number than {}.\n\n{}",
        thousands(report.learned_from.conformers),
        hundredths(blocks.mean),
        percent(blocks.off_share),
        thousands(blocks.usual),
        checked(report)
    );
    card.push_str(advice(report.kind));
    card.push('\n');
    if report.base.is_some() {
        let rows = (report.embedding_rows, report.new_tokens, report.rows.as_ref());
        // Writing to a string cannot fail.
        let _ = training(&mut card, &report.embedding, rows);
    }
    card
}

/// Ways to add the same number of tokens, and what they do in words.
pub fn comparison_table(comparison: &Comparison, terminal: Terminal) -> String {
    let mut table =
        Table::new(format!("{} new tokens, spent in other ways", thousands(comparison.new_tokens)))
            .text("way")
            .number("new\ntokens")
            .number("never\nused")
            .number("tokens a block\nmean")
            .number("\nrange")
            .number("blocks\noff")
            .number("drift,\ntokens a block")
            .number("tokens a\nconformer")
            .number("coverage")
            .number("lower\nbound")
            .number("gap")
            .number("other texts\nchanged");
    for row in &comparison.rows {
        let number = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), thousands);
        table.row([
            name(row.method).to_owned(),
            thousands(row.new_tokens),
            thousands(row.unused),
            hundredths(row.blocks.mean),
            span(row.blocks.min, row.blocks.max),
            percent(row.blocks.off_share),
            hundredths(row.blocks.off_tokens_per_block),
            hundredths(row.tokens_per_conformer),
            percent_or_dash(row.coverage),
            number(row.lower_bound),
            number(row.gap),
            number(row.other_texts_changed),
        ]);
    }
    let notes: Vec<String> = comparison.rows.iter().filter_map(|row| note(row, &comparison.rows)).collect();
    format!("\n{}\n{}\n", table.render(terminal), notes.join("\n"))
}

fn name(method: Method) -> &'static str {
    match method {
        Method::Base => "base",
        Method::Designed => "designed",
        Method::Continued => "continued BPE, as published",
        Method::ContinuedInBlocks => "continued BPE, whole blocks",
        Method::Merges => "continued BPE in pieces (--merges)",
        Method::Plain => "tokenizers' BPE from nothing",
        Method::VocabSize => "BPE from nothing in pieces (--vocab-size)",
    }
}

/// What continued BPE does to a base, in a sentence.
fn note(row: &Row, rows: &[Row]) -> Option<String> {
    let base = rows.iter().find(|row| row.method == Method::Base)?;
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
    match row.method {
        Method::Continued => Some(format!(
            "Continued BPE as published (arXiv 2512.03989) keeps the base's splits: {} of its {} tokens hold two digits \
             or more. It {drift}, and changes other texts too.",
            thousands(row.multi_digit),
            thousands(row.new_tokens)
        )),
        Method::ContinuedInBlocks => Some(format!(
            "With every block as one word it learns {} tokens of two digits or more, and {drift}: which digits are \
             joined depends on the numbers.",
            thousands(row.multi_digit)
        )),
        Method::Merges => Some(format!("In the pieces of a scheme it {drift}.")),
        _ => None,
    }
}
