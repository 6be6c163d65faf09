//! A tokenizer design among its neighbours: the front of new tokens and tokens a block, as a table and as a page.

use super::design_view::{advice, by_size, checked, facts};
use super::format::{hundredths, percent, thousands};
use super::html::Page;
use super::plot::{Points, points};
use super::table::Table;
use crate::design::front::{DesignPoint, Front};
use crate::design::report::DesignReport;
use crate::design::{Kind, Range};
use crate::text::{Dialect, TrailingZeros};

/// The designs of the front, the written one in bold, and the tokenizers that there are.
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
            report.range_angstrom.angstrom().to_string(),
            hundredths(tokenizer.tokens_per_block),
            thousands(tokenizer.new_tokens),
            thousands(tokenizer.drift),
            percent(report.coverage),
        ]);
    }
    for point in &report.front.designs {
        let cells = [
            name(report.dialect, point),
            point.range_angstrom.angstrom().to_string(),
            thousands(point.tokens_per_block),
            thousands(point.new_tokens),
            "0".to_owned(),
            percent(point.coverage),
        ];
        if point.written {
            table.strong_row(cells)
        } else {
            table.row(cells)
        };
    }
    table.note("Designs are the best of all schemes, found by the search; only the one in bold was checked and written.");
    table.note("Drift: most less fewest tokens of a block in the range; of tokenizers that there are, on the corpus.");
    table
}

fn name(dialect: Dialect, point: &DesignPoint) -> String {
    match (dialect.zeros(), point.fewest_decimals) {
        (TrailingZeros::Kept, _) | (_, 0) => point.kind.name().to_owned(),
        (_, fewest) => format!("{}, {fewest} or more decimals", point.kind.name()),
    }
}

/// The page: the design, the front, and what was checked.
pub fn design_page(report: &DesignReport) -> Page {
    let lead = format!(
        "{} new tokens on top of {}: every block of the {} dialect below {} Å takes {} tokens.",
        thousands(report.new_tokens),
        report.base,
        report.dialect.name(),
        report.range_angstrom.angstrom(),
        report.tokens_per_block,
    );
    Page::new("A tokenizer without drift", lead)
        .section("The design", |section| {
            section.table(&facts(report)).table(&by_size(report));
            checked(report).lines().for_each(|line| {
                section.paragraph(line);
            });
            section.paragraph(advice(report.kind));
        })
        .section("The front", |section| {
            let svg = points(&plot(&report.front, report.range_angstrom));
            let caption = "Fewest new tokens by tokens a block, for the written range; both kinds. \
                           Circled: the tokenizers that there are, by the mean of their blocks on the corpus.";
            section.svg(&svg, caption).table(&front_table(report));
        })
        .section("Provenance", |section| {
            section.provenance(&report.provenance);
        })
}

fn plot(front: &Front, range: Range) -> Points {
    let series = [Kind::Separate, Kind::Fused].map(|kind| {
        let here = front.designs.iter().filter(|point| point.kind == kind && point.range_angstrom == range);
        let points = here.map(|point| (point.tokens_per_block as f64, point.new_tokens as f64));
        (kind.name().to_owned(), points.collect())
    });
    let marks = front.tokenizers.iter();
    let marks = marks.map(|known| (known.name.clone(), (known.tokens_per_block, known.new_tokens as f64)));
    Points {
        title: "New tokens by tokens a block".to_owned(),
        x_label: "tokens a block".to_owned(),
        y_label: "new tokens".to_owned(),
        series: series.to_vec(),
        marks: marks.collect(),
    }
}
