//! The sections of a page about rows of texts, whoever wrote them: the pages of `drift eval` and `drift audit` share them.

use super::format::{number, or_dash, percent};
use super::html::Section;
use super::plot::{
    Bar, BarChart, BarValue, Columns, Curve, Curves, Labels, MoleculePicture, Scale, bars, columns, curves,
    molecule,
};
use drift_data::audit::chemistry::ChemistryRule;
use drift_data::audit::coverage::{CoverageReport, ThresholdCoverage};
use drift_data::audit::{DriftHistogram, Example, SampleCounts, WorstText};

/// The largest number of kinds of broken rules that are listed for a text.
const NAMED: usize = 4;

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
}

/// A chart of the shares of blocks with junk, lost digits and invented digits.
pub(super) fn harm_plot(rows: &[PageRow<'_>]) -> String {
    let values = |row: &PageRow<'_>| {
        let counts = row.counts;
        let shares = [Some(counts.junk_blocks_strict), counts.truncated_blocks, Some(counts.invented_blocks)];
        shares.map(|count| share_bar(count.map(|count| drift_data::stats::share(count, counts.blocks))))
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

/// A share as the value of a bar.
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

/// The drift of blocks: a plot for each row that has some.
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

/// Whether some row has blocks whose drift was counted.
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

/// The texts of a row that break the most rules of chemistry, with pictures.
pub(super) fn worst_texts(section: &mut Section, row: &str, worst: &[WorstText]) {
    section.heading(&format!("The worst texts of {row}"));
    section.paragraph(
        "Texts that pass and break most rules for their size, one a molecule, laid onto the reference that is nearest \
         atom by atom.",
    );
    for text in worst {
        section.paragraph(&summary(text));
        let title = text.smiles.clone() + &text_number(text);
        let picture = MoleculePicture {
            title: &title,
            points: &text.points,
            reference: text.reference.as_deref(),
            elements: &text.elements,
            bonds: &text.bonds,
            findings: &text.findings,
        };
        section.svg(&molecule(&picture), "");
    }
}

/// The broken rules of a text, in one line.
fn summary(worst: &WorstText) -> String {
    let count = |rule: ChemistryRule| worst.findings.iter().filter(|found| found.rule == rule).count();
    let counts = ChemistryRule::ALL.map(|rule| (count(rule), rule.name()));
    let mut broken: Vec<(usize, &str)> = counts.into_iter().filter(|(count, _)| *count > 0).collect();
    // The sort is stable: rules that are broken equally often keep their usual order.
    broken.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let more = broken.len().saturating_sub(NAMED);
    let mut named: Vec<String> =
        broken.iter().take(NAMED).map(|(count, rule)| format!("{count} × {rule}")).collect();
    if more > 0 {
        named.push(format!("{more} more kinds"));
    }
    let rmsd = worst.rmsd_angstrom.map(|rmsd| format!("; {} Å from the reference", number(rmsd)));
    let text = text_number(worst);
    format!("`{}`{text}: {}{}", worst.smiles, named.join(", "), rmsd.unwrap_or_default())
}

/// `, text 3`; empty if the number of the text is not known.
fn text_number(worst: &WorstText) -> String {
    worst.generation.map_or_else(String::new, |number| format!(", text {}", number + 1))
}
