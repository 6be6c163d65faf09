//! A tokenizer design as a table and what was proved of it.

use super::design_page::front_table;
use super::format::{hundredths, hundredths_or_dash, percent, thousands};
use super::learned_view::comparison_table;
use super::table::{Table, Terminal};
use crate::design::report::DesignReport;
use crate::design::{Kind, designs::BoundBy, plain::PlainText};
use crate::stats::size::SIZE_CLASSES;
use crate::text::TrailingZeros;

/// What `drift train-tokenizer` shows in a terminal.
pub fn design_table(report: &DesignReport, terminal: Terminal) -> String {
    let [facts, sizes, front] = [facts, by_size, front_table].map(|table| table(report).render(terminal));
    let compared = report.comparison.as_ref().map(|comparison| comparison_table(comparison, terminal));
    let (checked, compared) = (checked(report), compared.unwrap_or_default());
    format!("{facts}\n{sizes}\n{checked}{}\n\n{front}\n{compared}", advice(report.kind))
}

/// The design in figures.
pub fn facts(report: &DesignReport) -> Table {
    let title = format!(
        "{}, {}, {} dialect, below {} Å{}",
        report.base,
        report.kind.name(),
        report.dialect.name(),
        report.range_angstrom.angstrom(),
        match (report.dialect.zeros(), report.fewest_decimals) {
            (TrailingZeros::Kept, _) | (_, 0) => String::new(),
            (_, 1) => ", 1 decimal or more".to_owned(),
            (_, fewest) => format!(", {fewest} decimals or more"),
        }
    );
    let mut table = Table::new(title).text("").number("");
    let mut row = |name: &str, value: String| {
        table.row([name.to_owned(), value]);
    };
    row("tokens a block", thousands(report.tokens_per_block));
    row("FREE tokens a block", thousands(report.free_tokens_per_block));
    row("drift, every block in the range", thousands(report.drift));
    row("new tokens", thousands(report.new_tokens));
    row("least of all schemes", thousands(report.least_in_space));
    let bound = match report.lower_bound_by {
        BoundBy::Counting => "least of any tokens, by counting",
        BoundBy::Kinds => "least of any tokens, by kinds of digits",
    };
    row(bound, format!("at least {}", thousands(report.lower_bound)));
    row("rows of the embedding", thousands(report.embedding_rows));
    if let Some(spare) = report.embedding.spare_rows {
        row("rows that the model has to spare", thousands(spare));
    }
    if report.embedding.fits != Some(true) {
        let resize = report.embedding.resize_to;
        let rows = format!("{} or {}", thousands(resize.multiple_of_64), thousands(resize.multiple_of_128));
        row("rows to resize to, by 64 or 128", rows);
    }
    row("blocks of the corpus in the range", percent(report.coverage));
    row("tokens a conformer", hundredths(report.tokens_per_conformer));
    row("tokens a conformer, base", hundredths(report.base_tokens_per_conformer));
    table
}

/// Coverage and tokens by size of molecule.
pub fn by_size(report: &DesignReport) -> Table {
    let mut table = Table::new("Conformers of the corpus").text("heavy atoms").number("conformers");
    table = table.number("blocks in\nthe range").number("tokens a\nconformer").number("the same,\nbase");
    for size in &report.corpus.by_size {
        let class = SIZE_CLASSES.iter().find(|class| class.from as u64 == size.from);
        table.row([
            class.map_or("", |class| class.label).to_owned(),
            thousands(size.conformers),
            percent(size.coverage),
            hundredths(size.tokens_per_conformer),
            hundredths_or_dash(size.base_tokens_per_conformer),
        ]);
    }
    table
}

/// What was run.
pub fn checked(report: &DesignReport) -> String {
    let run = &report.guarantees;
    let plain = match run.plain_text {
        PlainText::Proved => "proved from the base's pre-tokenizers and vocabulary, and equal on",
        PlainText::Tried => "not proved for this base's pre-tokenizers, but equal on",
    };
    format!(
        "Blocks are cut like {}.\n\
         Every one of {} numbers was encoded in all three positions and {} contexts, {} blocks: always {} tokens.\n\
         {} old tokens keep id and text; each new token is reached; blocks decode to themselves.\n\
         Text without blocks takes the same tokens as before: {plain} {} texts.\n",
        report.examples.join("  "),
        thousands(run.numbers),
        thousands(run.contexts),
        thousands(run.blocks),
        thousands(report.tokens_per_block),
        thousands(run.unchanged_tokens),
        thousands(run.plain_texts + run.fallbacks),
    )
}

/// Which logit processor goes with a kind.
pub fn advice(kind: Kind) -> &'static str {
    match kind {
        Kind::Separate => {
            "A position template works with it: use any placeholder that is a block in the range."
        }
        Kind::Fused => {
            "Tokens mix brackets and digits, so a position template cannot be used; a logit processor must follow the \
             text."
        }
    }
}
