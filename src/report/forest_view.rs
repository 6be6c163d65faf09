//! Rows of texts compared with a base row, as one forest plot and one table that a reader can open.

use super::format::signed;
use super::html::Section;
use super::plot::{Forest, ForestMeasure, ForestPanel, ForestRow, forest};
use super::table::Table;
use drift_data::audit::pairs::{ComparedFigure, PairedComparison, SpeedRatio};
use drift_data::stats::Interval;
use drift_data::stats::bootstrap::Mean;

/// The figures that are lengths in Å, by their order in the plot.
const LENGTHS: [ComparedFigure; 3] =
    [ComparedFigure::BondLengthError, ComparedFigure::MatPrecision, ComparedFigure::MatRecall];

/// The figures that are shares.
const SHARES: [ComparedFigure; 10] = [
    ComparedFigure::Passed,
    ComparedFigure::Valid,
    ComparedFigure::GraphMismatch,
    ComparedFigure::ParseFailures,
    ComparedFigure::NoEos,
    ComparedFigure::JunkBlocks,
    ComparedFigure::TruncatedBlocks,
    ComparedFigure::InventedBlocks,
    ComparedFigure::CovPrecision,
    ComparedFigure::CovRecall,
];

/// A comparison as the plot shows it.
pub(super) struct ForestPair<'p> {
    /// The name of the row.
    pub name: String,
    /// The row beside its base.
    pub pair: &'p PairedComparison,
}

/// A difference in the unit of its panel.
#[derive(Clone, Copy)]
struct Difference {
    estimate: f64,
    interval: Option<Interval>,
}

impl Difference {
    fn of_mean(mean: Mean) -> Self {
        Difference { estimate: mean.mean, interval: mean.interval }
    }

    fn is_zero(self) -> bool {
        self.estimate == 0.0 && self.interval.is_none_or(|found| found.low == 0.0 && found.high == 0.0)
    }
}

/// Adds the plot, its caption, and the table.
pub(super) fn paired_differences(section: &mut Section, base: &str, pairs: &[ForestPair<'_>], table: &Table) {
    if pairs.is_empty() {
        return;
    }
    let (panels, equal) = panels(pairs);
    let plot = Forest { title: format!("Differences of each row from {base}, paired"), panels };
    section.heading(&format!("Paired differences from {base}"));
    if plot.panels.iter().any(|panel| !panel.measures.is_empty()) {
        section.svg(&forest(&plot), &caption(pairs));
    }
    if !equal.is_empty() {
        section.paragraph(&format!("Equal in all rows: {}.", equal.join(", ")));
    }
    section.details("The differences as a table", |section| _ = section.table(table));
}

fn caption(pairs: &[ForestPair<'_>]) -> String {
    let of = "Differences over the same molecules and generations";
    let mark = "A filled square: the interval leaves out no difference.";
    if pairs.iter().any(|pair| !pair.pair.figures.is_empty()) {
        return format!(
            "{of}; lengths and coverage over texts that pass both ways. Intervals of 95 %, for all rows at once (Bonferroni). {mark}"
        );
    }
    format!("{of}; 95 % bootstrap intervals for each row. {mark}")
}

/// Returns the panels, and the names of the measures in which no row differs.
fn panels(pairs: &[ForestPair<'_>]) -> (Vec<ForestPanel>, Vec<&'static str>) {
    let mut equal = Vec::new();
    let mut shares = ForestPanel { label: "percentage points".to_owned(), zero: 0.0, measures: Vec::new() };
    let mut lengths = ForestPanel { label: "Å".to_owned(), zero: 0.0, measures: Vec::new() };
    for (panel, figures) in [(&mut shares, &SHARES[..]), (&mut lengths, &LENGTHS[..])] {
        for figure in figures {
            let rows: Vec<(&ForestPair<'_>, Difference)> =
                pairs.iter().filter_map(|pair| Some((pair, difference(pair.pair, *figure)?))).collect();
            if rows.is_empty() {
                continue;
            }
            if rows.iter().all(|(_, difference)| difference.is_zero()) {
                equal.push(figure.name());
                continue;
            }
            let scaled = rows.into_iter().map(|(pair, difference)| row(pair, difference, *figure));
            panel.measures.push(ForestMeasure { name: figure.name().to_owned(), rows: scaled.collect() });
        }
    }
    lengths.measures.extend(rescued(pairs));
    let speed = ForestPanel {
        label: "times as fast".to_owned(),
        zero: 1.0,
        measures: speed(pairs).into_iter().collect(),
    };
    (vec![shares, lengths, speed], equal)
}

/// Returns the difference of a figure. Records from before figures were recorded have means of lengths.
fn difference(pair: &PairedComparison, figure: ComparedFigure) -> Option<Difference> {
    if pair.figures.is_empty() {
        let mean = match figure {
            ComparedFigure::BondLengthError => pair.bond_error_difference_angstrom,
            ComparedFigure::MatPrecision => pair.mat_precision_difference_angstrom,
            ComparedFigure::MatRecall => pair.mat_recall_difference_angstrom,
            _ => None,
        };
        return mean.map(Difference::of_mean);
    }
    let found = pair.figures.iter().find(|found| found.figure == figure)?;
    Some(Difference { estimate: found.difference, interval: found.interval })
}

fn row(pair: &ForestPair<'_>, difference: Difference, figure: ComparedFigure) -> ForestRow {
    if LENGTHS.contains(&figure) {
        return length_row(pair, difference);
    }
    let interval = difference.interval.map(|Interval { low, high }| [100.0 * low, 100.0 * high]);
    let estimate = 100.0 * difference.estimate;
    forest_row(pair, estimate, interval, Decimals { count: 1, signed: true })
}

fn length_row(pair: &ForestPair<'_>, Difference { estimate, interval }: Difference) -> ForestRow {
    let interval = interval.map(|Interval { low, high }| [low, high]);
    forest_row(pair, estimate, interval, Decimals { count: 3, signed: true })
}

/// How numbers are written.
#[derive(Clone, Copy)]
struct Decimals {
    count: usize,
    signed: bool,
}

impl Decimals {
    fn write(self, value: f64) -> String {
        let places = self.count;
        if self.signed { signed(value, places) } else { format!("{value:.places$}") }
    }
}

fn forest_row(
    pair: &ForestPair<'_>,
    estimate: f64,
    interval: Option<[f64; 2]>,
    decimals: Decimals,
) -> ForestRow {
    let shown = interval.map(|ends| ends.map(|end| decimals.write(end)).join(", "));
    let shown = shown.map_or_else(String::new, |ends| format!(" [{ends}]"));
    ForestRow {
        label: pair.name.clone(),
        strong: pair.pair.row.is_automaton(),
        estimate,
        interval,
        text: decimals.write(estimate) + &shown,
    }
}

/// Returns the texts that pass only in a row, beside those that pass both ways.
fn rescued(pairs: &[ForestPair<'_>]) -> Vec<ForestMeasure> {
    let bond_errors = pairs.iter().filter_map(|pair| {
        let mean = pair.pair.rescued?.bond_error_difference_angstrom?;
        Some(length_row(pair, Difference::of_mean(mean)))
    });
    let nearest = pairs.iter().filter_map(|pair| {
        let mean = pair.pair.rescued?.nearest_difference_angstrom?;
        Some(length_row(pair, Difference::of_mean(mean)))
    });
    let measures = [
        ForestMeasure { name: "bond error of rescued texts".to_owned(), rows: bond_errors.collect() },
        ForestMeasure { name: "RMSD of rescued texts".to_owned(), rows: nearest.collect() },
    ];
    measures.into_iter().filter(|measure| !measure.rows.is_empty()).collect()
}

fn speed(pairs: &[ForestPair<'_>]) -> Option<ForestMeasure> {
    let rows = pairs.iter().filter_map(|pair| {
        let SpeedRatio { ratio, interval, .. } = pair.pair.speed?;
        let interval = interval.map(|Interval { low, high }| [low, high]);
        Some(forest_row(pair, ratio, interval, Decimals { count: 2, signed: false }))
    });
    let rows: Vec<ForestRow> = rows.collect();
    (!rows.is_empty()).then(|| ForestMeasure { name: "speed".to_owned(), rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_has_no_sign() {
        let signed = Decimals { count: 3, signed: true };
        let written = [-0.0001, 0.0, 0.0004, 0.0006, -0.0126].map(|value| signed.write(value));
        assert_eq!(written, ["0.000", "0.000", "0.000", "+0.001", "-0.013"]);
        assert_eq!(Decimals { count: 2, signed: false }.write(1.006), "1.01");
    }
}
