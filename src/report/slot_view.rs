//! An extension for the numbers of a skeleton: tables, page, and section of a model card.

use super::format::{counted, or_dash, thousands};
use super::html::Page;
use super::skeleton_view::token_range;
use super::table::{Table, Terminal};
use drift_tune::design::SlotReport;
use drift_tune::design::extension::plain::PlainText;

/// Returns the output of `drift train-tokenizer --skeleton` in a terminal.
pub fn slot_tables(report: &SlotReport, terminal: Terminal) -> String {
    let [facts, prompts] = [facts, prompts].map(|table| table(report).render(terminal));
    format!("{facts}\n{prompts}\n{}", checked(report))
}

/// Returns the page of the extension.
pub fn slot_page(report: &SlotReport) -> Page {
    Page::new("A tokenizer for the numbers of a skeleton", lead(report))
        .section("The design", |section| {
            section.table(&facts(report)).table(&prompts(report));
            checked(report).lines().for_each(|line| _ = section.paragraph(line));
        })
        .section("Provenance", |section| _ = section.provenance(&report.provenance))
}

/// Returns the text of `MODEL_CARD.md`.
pub fn slot_card(report: &SlotReport) -> String {
    let cuts: Vec<String> =
        cuts(report).into_iter().map(|cut| format!("- {}: `{}`", cut[0], cut[1])).collect();
    format!("## Tokenizer\n\n{}\n\n{}\n\n{}", lead(report), cuts.join("\n"), checked(report))
}

fn lead(report: &SlotReport) -> String {
    format!(
        "{} new tokens on top of {}: every number of {} takes {} tokens, white space before it included.",
        thousands(report.new_tokens),
        report.base,
        report.skeleton,
        report.tokens_per_slot
    )
}

/// Returns slots with their decimals, and how their numbers are cut.
fn cuts(report: &SlotReport) -> Vec<[String; 2]> {
    let name = |slot: &str, decimals| format!("{slot}, {decimals} decimals");
    let cuts = report.slots.iter();
    cuts.map(|cut| [name(&cut.slot, cut.decimals), format!("{:?}", cut.example)]).collect()
}

fn facts(report: &SlotReport) -> Table {
    let mut table =
        Table::new(format!("{}, numbers of {}", report.base, report.skeleton)).text("").number("");
    table.fact("tokens a number", thousands(report.tokens_per_slot));
    table.fact("new tokens", thousands(report.new_tokens));
    table.fact("rows of the embedding", thousands(report.embedding_rows));
    if let Some(spare) = report.embedding.spare_rows {
        table.fact("rows that the model has to spare", thousands(spare));
    }
    for [slot, example] in cuts(report) {
        table.fact(&slot, example);
    }
    table
}

fn prompts(report: &SlotReport) -> Table {
    let mut table = Table::new("Tokens of a text, over all texts of a prompt")
        .code("prompt")
        .number("base")
        .number("extended");
    for prompt in report.prompts.iter().take(20) {
        let [base, own] = [prompt.base_tokens, prompt.tokens].map(|range| or_dash(range, token_range));
        table.row([prompt.prompt.clone(), base, own]);
    }
    table.note(format!(
        "{} of {}: the least and the most over all texts are equal, so their number is constant",
        thousands(report.constant),
        counted(report.prompts.len() as u64, "prompt")
    ));
    table
}

fn checked(report: &SlotReport) -> String {
    let run = &report.guarantees;
    let plain = match run.plain_text {
        PlainText::Proved => "proved from the base's pre-tokenizers and vocabulary, and equal on",
        PlainText::Tried => "not proved for this base's pre-tokenizers, but equal on",
    };
    format!(
        "Every number was encoded in every place, {} texts: exactly its pieces, and decoded to itself.\n\
         {} old tokens keep id and text; each new token is reached.\n\
         Text without such numbers takes the same tokens as before: {plain} {} texts.\n",
        thousands(run.numbers),
        thousands(run.unchanged_tokens),
        thousands(run.plain_texts)
    )
}
