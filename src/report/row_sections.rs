//! The sections of a page about rows of texts, whoever wrote them: the pages of `drift eval` and `drift audit` share them.

use super::format::{or_dash, percent};
use super::html::{Page, Section};
use super::plot::{Bar, BarChart, BarValue, Columns, Curve, Curves, Labels, Scale, bars, columns, curves};
use super::viewer::{RankedRow, ranked_texts};
use drift_data::audit::coverage::{CoverageReport, ThresholdCoverage};
use drift_data::audit::{DriftHistogram, Example, RankedText, SampleCounts};

/// A row, as the sections show it.
pub(super) struct PageRow<'r> {
    /// Its name on the page.
    pub name: String,
    /// Whether it is in bold.
    pub strong: bool,
    pub counts: &'r SampleCounts,
    pub coverage: &'r CoverageReport,
    pub drift: Option<&'r DriftHistogram>,
    pub examples: &'r [Example],
    pub ranked: &'r [RankedText],
}

/// Returns a chart of the shares of blocks with junk, lost digits and invented digits.
pub(super) fn harm_plot(rows: &[PageRow<'_>]) -> String {
    let values = |row: &PageRow<'_>| {
        let counts = row.counts;
        let shares = [Some(counts.junk_blocks_strict), counts.truncated_blocks, Some(counts.invented_blocks)];
        let share = |count: u64| drift_data::stats::share(count, counts.blocks);
        shares.map(|count| share_bar(count.filter(|_| counts.blocks > 0).map(share)))
    };
    let bar = |row: &PageRow<'_>| Bar {
        label: row.name.clone(),
        strong: row.strong,
        values: values(row).into_iter().collect(),
    };
    bars(&BarChart {
        title: "Blocks with junk, lost digits and invented digits by logit processor".to_owned(),
        x_label: "share of blocks".to_owned(),
        series: ["junk", "truncated", "invented digits"].map(str::to_owned).into(),
        bars: rows.iter().map(bar).collect(),
        scale: Scale::Share,
    })
}

/// Returns a share as the value of a bar.
pub(super) fn share_bar(share: Option<f64>) -> BarValue {
    BarValue { value: share, text: or_dash(share, percent) }
}

/// Coverage against the threshold: a plot for each row with references.
pub(super) fn coverage_plots(section: &mut Section, rows: &[PageRow<'_>]) {
    for row in rows {
        let sweep = &row.coverage.coverage_sweep;
        if sweep.is_empty() {
            continue;
        }
        let line = |name: &str, value: fn(&ThresholdCoverage) -> f64| Curve {
            name: name.to_owned(),
            points: sweep.iter().map(|found| (found.angstrom, value(found))).collect(),
        };
        let plot = curves(&Curves {
            labels: Labels::new(
                format!("Coverage against the threshold under {}", row.name),
                "threshold, Å",
                "coverage",
            ),
            curves: vec![
                line("COV-R, mean", |found| found.cov_r.mean),
                line("COV-R, median", |found| found.cov_r.median),
                line("COV-P, mean", |found| found.cov_p.mean),
                line("COV-P, median", |found| found.cov_p.median),
            ],
        });
        section.heading(&format!("`{}`", row.name)).svg(&plot, "");
    }
}

/// Adds the drift of blocks: a plot for each row that has some.
pub(super) fn drift_plots(section: &mut Section, rows: &[PageRow<'_>]) {
    section.paragraph(
        "FREE tokens of the template less those that the written block takes, over all blocks. Above zero the template \
         has slots left over, below zero it cuts digits off.",
    );
    for row in rows {
        let Some(drift) = row.drift.filter(|drift| !drift.0.is_empty()) else { continue };
        let plot = columns(&Columns {
            labels: Labels::new(format!("Drift under {}", row.name), "drift, tokens", "share of blocks"),
            counts: drift.0.iter().map(|(drift, blocks)| (*drift, *blocks)).collect(),
        });
        section.heading(&format!("`{}`", row.name)).svg(&plot, "");
    }
}

/// Returns the section of the best, the median and the worst texts, if some row has them.
pub(super) fn with_ranked_texts(page: Page, rows: &[PageRow<'_>]) -> Page {
    // The first row that is shown open is the automaton's, or else the first of all.
    let open = rows.iter().position(|row| row.strong && !row.ranked.is_empty());
    let Some(open) = open.or_else(|| rows.iter().position(|row| !row.ranked.is_empty())) else { return page };
    let rows = rows.iter().enumerate();
    let ranked = rows.map(|(at, row)| RankedRow { name: &row.name, is_open: at == open, texts: row.ranked });
    let ranked: Vec<RankedRow<'_>> = ranked.collect();
    page.section("Texts on their references", |section| ranked_texts(section, &ranked))
}

/// Returns whether some row has blocks whose drift was counted.
pub(super) fn has_drift(rows: &[PageRow<'_>]) -> bool {
    rows.iter().any(|row| row.drift.is_some_and(|drift| !drift.0.is_empty()))
}

/// Texts that show what goes wrong.
pub(super) fn example_texts(section: &mut Section, rows: &[PageRow<'_>]) {
    for row in rows.iter().filter(|row| !row.examples.is_empty()) {
        section.heading(&format!("`{}`", row.name));
        for example in row.examples {
            section.paragraph(&format!("`{}`: {}", example.smiles, example.problem.name()));
            section.marked(&example.text, &example.marks);
        }
    }
}
