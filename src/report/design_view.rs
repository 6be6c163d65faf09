//! The design of a tokenizer as a table, with what was proved about it.

use super::comparison_view::comparison_table;
use super::fields::Fields;
use super::format::{encoding_name, hundredths, or_dash, percent, thousands};
use super::promises_view::{advice, extension_run};
use super::table::{Table, Terminal};
use drift_core::Encoding;
use drift_core::text::size::SIZE_CLASSES;
use drift_tune::design::measured::corpus::MeasuredSize;
use drift_tune::design::report::front::DesignPoint;
use drift_tune::design::scheme::spaces::BoundBy;
use drift_tune::design::{DesignReport, Range};

/// Returns the output of `drift train-tokenizer` in a terminal.
pub fn design_table(report: &DesignReport, terminal: Terminal) -> String {
    let [facts, sizes, front] = [facts, by_size, front_table].map(|table| table(report).render(terminal));
    let compared = report.comparison.as_ref().map(|comparison| comparison_table(comparison, terminal));
    let (checked, compared) = (checked(report), compared.unwrap_or_default());
    format!("{facts}\n{sizes}\n{checked}{}\n\n{front}\n{compared}", advice(report.kind))
}

/// Returns the figures of the design.
pub fn facts(report: &DesignReport) -> Table {
    let title = format!(
        "{}, {}, {}{}{}",
        report.base,
        report.kind.name(),
        encoding_name(report.encoding),
        report.range_angstrom.map_or(String::new(), |range| format!(", below {} Å", range.angstrom())),
        match (report.encoding.is_stripped(), report.fewest_decimals) {
            (false, _) | (_, 0) => String::new(),
            (_, 1) => ", 1 decimal or more".to_owned(),
            (_, fewest) => format!(", {fewest} decimals or more"),
        }
    );
    let mut table = Table::new(title).text("").number("");
    table.fact("tokens a block", thousands(report.tokens_per_block));
    table.fact("FREE tokens a block", thousands(report.free_tokens_per_block));
    table.fact("drift, every block in the range", thousands(report.drift));
    table.fact("new tokens", thousands(report.new_tokens));
    if report.vocabulary.reused_ids > 0 {
        table.fact("new tokens on ids of old ones", thousands(report.vocabulary.reused_ids));
    }
    table.fact("least of all schemes", thousands(report.least_in_space));
    let bound = match report.lower_bound_by {
        BoundBy::Counting => "least of any tokens, by counting",
        BoundBy::DistinctDigits => "least of any tokens, by kinds of digits",
    };
    table.fact(bound, format!("at least {}", thousands(report.lower_bound)));
    table.fact("rows of the embedding", thousands(report.vocabulary.embedding_rows));
    if let Some(spare) = report.vocabulary.embedding.spare_rows {
        table.fact("rows that the model has to spare", thousands(spare));
    }
    if report.vocabulary.embedding.fits != Some(true) {
        let resize = report.vocabulary.embedding.resize_to;
        let rows = format!("{} or {}", thousands(resize.multiple_of_64), thousands(resize.multiple_of_128));
        table.fact("rows to resize to, by 64 or 128", rows);
    }
    table.fact("blocks of the corpus in the range", percent(report.vocabulary.coverage));
    table.fact("tokens a conformer", hundredths(report.vocabulary.tokens_per_conformer));
    table.fact("tokens a conformer, base", or_dash(report.vocabulary.base_tokens_per_conformer, hundredths));
    table
}

/// Coverage and tokens by size of the molecule.
pub fn by_size(report: &DesignReport) -> Table {
    Fields::new("Conformers of the corpus")
        .text("heavy atoms", |size: &MeasuredSize| size_label(size.from).to_owned())
        .number("conformers", |size| thousands(size.conformers))
        .number("blocks in\nthe range", |size| percent(size.coverage))
        .number("tokens a\nconformer", |size| hundredths(size.tokens_per_conformer))
        .number("the same,\nbase", |size| or_dash(size.base_tokens_per_conformer, hundredths))
        .table(&report.corpus.by_size)
}

/// Returns the name of the size class from this number of heavy atoms on: `1-14`.
pub(super) fn size_label(from: u64) -> &'static str {
    SIZE_CLASSES.iter().find(|class| class.from as u64 == from).map_or("", |class| class.label)
}

/// Returns the checks that were run.
pub fn checked(report: &DesignReport) -> String {
    let tokens = format!("always {}", thousands(report.tokens_per_block));
    format!(
        "Blocks are cut like {}.\n{}",
        report.examples.join("  "),
        extension_run(&report.guarantees, &tokens, report.vocabulary.reused_ids)
    )
}

/// Returns the designs on the front, the written one in bold, and existing tokenizers.
pub fn front_table(report: &DesignReport) -> Table {
    let mut table = Table::new("New tokens and tokens a block")
        .text("tokenizer")
        .number("range, Å")
        .number("tokens\na block")
        .number("new\ntokens")
        .number("drift")
        .number("blocks of\nthe corpus");
    for tokenizer in &report.front.tokenizers {
        table.row([
            tokenizer.name.clone(),
            range(report.range_angstrom),
            hundredths(tokenizer.tokens_per_block),
            thousands(tokenizer.new_tokens),
            thousands(tokenizer.drift),
            percent(report.vocabulary.coverage),
        ]);
    }
    for point in &report.front.designs {
        let cells = [
            design_name(report.encoding, point),
            range(point.range_angstrom),
            thousands(point.tokens_per_block),
            thousands(point.new_tokens),
            "0".to_owned(),
            percent(point.coverage),
        ];
        table.marked_row(point.written, cells);
    }
    table.note("Designs are the best of all schemes, found by the search; only the one in bold was checked and written.");
    table.note(
        "Drift: most minus fewest tokens of a block in the range; for existing tokenizers, on the corpus.",
    );
    table
}

/// Returns the range in Å, or a remark that there is none.
fn range(range: Option<Range>) -> String {
    range.map_or_else(|| "all".to_owned(), |range| range.angstrom().to_string())
}

fn design_name(encoding: Encoding, point: &DesignPoint) -> String {
    match (encoding.is_stripped(), point.fewest_decimals) {
        (false, _) | (_, 0) => point.kind.name().to_owned(),
        (_, fewest) => format!("{}, {fewest} or more decimals", point.kind.name()),
    }
}
