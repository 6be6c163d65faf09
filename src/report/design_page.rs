//! The design of a tokenizer and its Pareto front as a page.

use super::design_view::{by_size, checked, facts, front_table};
use super::format::{encoding_name, thousands};
use super::html::Page;
use super::plot::{Labels, Points, points};
use super::promises_view::advice;
use drift_tune::design::report::front::ParetoFront;
use drift_tune::design::{DesignReport, Range, SchemeKind};

/// Returns the page: the design, the front, and the checks.
pub fn design_page(report: &DesignReport) -> Page {
    let lead = format!(
        "{} new tokens on top of {}: every block of the {}{} takes {} tokens.",
        thousands(report.new_tokens),
        report.base,
        encoding_name(report.encoding),
        report.range_angstrom.map_or(String::new(), |range| format!(" below {} Å", range.angstrom())),
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

fn plot(front: &ParetoFront, range: Option<Range>) -> Points {
    let series = [SchemeKind::Separate, SchemeKind::Fused].map(|kind| {
        let here = front.designs.iter().filter(|point| point.kind == kind && point.range_angstrom == range);
        let points = here.map(|point| (point.tokens_per_block as f64, point.new_tokens as f64));
        (kind.name().to_owned(), points.collect())
    });
    let marks = front.tokenizers.iter();
    let marks = marks.map(|known| (known.name.clone(), (known.tokens_per_block, known.new_tokens as f64)));
    Points {
        labels: Labels::new("New tokens by tokens a block", "tokens a block", "new tokens"),
        series: series.to_vec(),
        marks: marks.collect(),
    }
}
