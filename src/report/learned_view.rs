//! Tokenizers that were learned from a corpus.

use super::card::training;
use super::comparison_view::{comparison_table, span};
use super::format::{encoding_name, hundredths, percent, thousands};
use super::promises_view::{advice, extension_run, numbers_run};
use super::table::{Table, Terminal};
use drift_tune::design::report::learned::{LearnedReport, LearningMethod, Promises};

/// Returns the output of `drift train-tokenizer --merges` and `--vocab-size` in a terminal.
pub fn learned_table(report: &LearnedReport, terminal: Terminal) -> String {
    let name = report.base.as_deref().unwrap_or("from nothing");
    let range = report.range_angstrom.angstrom();
    let (kind, encoding) = (report.kind.name(), encoding_name(report.encoding));
    let mut table = Table::new(format!("{name}, {kind}, {encoding}, below {range} Å"));
    table = table.text("").number("");
    let blocks = &report.blocks;
    table.fact("new tokens", thousands(report.new_tokens));
    table.fact("of them made by merges", thousands(report.merges));
    table.fact("tokens a block, mean", hundredths(blocks.mean));
    table.fact("tokens of most blocks", thousands(blocks.usual));
    table.fact("blocks that take another number", percent(blocks.off_share));
    table.fact("drift, tokens a block", hundredths(blocks.off_tokens_per_block));
    table.fact(
        "fewest and most in the range",
        span(report.fewest_tokens_per_block, report.most_tokens_per_block),
    );
    table.fact("lower bound by counting", thousands(report.lower_bound));
    table.fact("rows of the embedding", thousands(report.vocabulary.embedding_rows));
    table.fact("blocks of the corpus in the range", percent(report.vocabulary.coverage));
    table.fact("tokens a conformer", hundredths(report.vocabulary.tokens_per_conformer));
    if let Some(base) = report.vocabulary.base_tokens_per_conformer {
        table.fact("tokens a conformer, base", hundredths(base));
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

/// Returns the checks that were run.
fn checked(report: &LearnedReport) -> String {
    let mut text = format!("Before merges a block is cut like {}.\n", report.example);
    let range = span(report.fewest_tokens_per_block, report.most_tokens_per_block);
    match &report.guarantees {
        Promises::Extension(run) => text.push_str(&extension_run(run, &range, report.vocabulary.reused_ids)),
        Promises::Scratch(run) => text.push_str(&format!(
            "{}Each of {} tokens is reached; {} texts decode to themselves.\n",
            numbers_run(run.numbers, run.contexts, run.blocks, &range),
            thousands(run.reached_tokens),
            thousands(run.decoded_texts),
        )),
    }
    if report.way == LearningMethod::Merges && report.replaced > 0 {
        text.push_str(&format!(
            "{} tokens that were only intermediate merges were replaced.\n",
            thousands(report.replaced)
        ));
    }
    text
}

/// Returns the text of `MODEL_CARD.md` for a learned tokenizer.
pub fn learned_card(report: &LearnedReport) -> String {
    let made = match &report.base {
        Some(base) => format!("`{base}`, extended by drift with {} new tokens", thousands(report.new_tokens)),
        None => {
            format!("Learned by drift from nothing, {} tokens", thousands(report.vocabulary.embedding_rows))
        }
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
        // Writing to a string cannot fail.
        let _ = training(&mut card, &report.vocabulary, report.new_tokens);
    }
    card
}
