//! Rows of texts compared with a base row, as tables.

use super::audit_view::share;
use super::format::{encoding_name, number, or_dash, percent, signed, thousands};
use super::table::Table;
use drift_data::audit::chemistry::ChemistryReport;
use drift_data::audit::pairs::PairedComparison;
use drift_data::audit::{AuditReport, GeometryReport, SampleCounts};
use drift_data::stats::Interval;
use drift_data::stats::bootstrap::Mean;

/// Returns the columns of [`comparison_cells`].
pub(super) fn comparison_columns(table: Table) -> Table {
    table
        .number("pass")
        .number("same text")
        .number("bond error, Å")
        .number("MAT-P, Å")
        .number("MAT-R, Å")
        .number("rescued\ntexts")
        .number("their bond\nerror, Å")
        .number("their\nRMSD, Å")
        .number("speed")
}

/// Returns the differences of a row, with their intervals.
pub(super) fn comparison_cells(pair: &PairedComparison) -> [String; 9] {
    [
        format!("{:+}", pair.passed_difference),
        format!("{} of {}", thousands(pair.identical), thousands(pair.well_formed_without)),
        difference(pair.bond_error_difference_angstrom),
        difference(pair.mat_precision_difference_angstrom),
        difference(pair.mat_recall_difference_angstrom),
        pair.rescued.map_or_else(|| "0".to_owned(), |found| thousands(found.texts)),
        difference(pair.rescued.and_then(|found| found.bond_error_difference_angstrom)),
        difference(pair.rescued.and_then(|found| found.nearest_difference_angstrom)),
        speed(pair),
    ]
}

/// Returns one row for each row of an audit, as `drift eval` shows its runs; `None` if rows were not compared.
pub fn rows_table(report: &AuditReport) -> Option<Table> {
    report.against_row.as_ref()?;
    let has_models = report.runs.iter().any(|run| run.row.model.is_some());
    let mut table = Table::new(format!("Rows, {}", encoding_name(report.encoding)));
    if has_models {
        table = table.code("model");
    }
    table = figure_columns(table.code("processor").number("texts").number("pass"));
    for run in &report.runs {
        let mut cells = model_cell(has_models, run.row.model.as_ref());
        cells.push(run.row.processor());
        let counts = &run.counts;
        cells.extend([thousands(counts.samples), share(counts.passed, counts.samples)]);
        let figures = RowFigures {
            counts,
            chemistry: &run.chemistry,
            geometry: run.geometry.as_ref(),
            tokens_per_second: run.generation_figure("tokens_per_second"),
        };
        cells.extend(figures.cells());
        table.marked_row(run.row.is_automaton(), cells);
    }
    table.note("valid: of the texts that pass, those whose stereo, bonds, angles and planes are right and whose atoms do not clash");
    Some(table)
}

fn model_cell(has_models: bool, model: Option<&String>) -> Vec<String> {
    if has_models { vec![model.cloned().unwrap_or_default()] } else { Vec::new() }
}

/// The figures of a row that tell most of its texts.
pub(super) struct RowFigures<'r> {
    pub counts: &'r SampleCounts,
    pub chemistry: &'r ChemistryReport,
    pub geometry: Option<&'r GeometryReport>,
    pub tokens_per_second: Option<f64>,
}

/// Returns the columns of [`RowFigures::cells`].
pub(super) fn figure_columns(table: Table) -> Table {
    table
        .number("valid")
        .number("junk\nblocks")
        .number("truncated\nblocks")
        .number("bond\nerror, Å")
        .number("MAT-P, Å")
        .number("tokens/s")
}

impl RowFigures<'_> {
    /// Valid texts, junk and truncated blocks, geometry and speed.
    pub(super) fn cells(&self) -> [String; 6] {
        let of_blocks = |count: u64| percent(drift_data::stats::share(count, self.counts.blocks));
        [
            valid(self.chemistry, self.counts),
            of_blocks(self.counts.junk_blocks_strict),
            or_dash(self.counts.truncated_blocks, of_blocks),
            geometry_cell(self.geometry, |geometry| geometry.bond_length_error_angstrom),
            geometry_cell(self.geometry, |geometry| geometry.mat_precision_angstrom),
            or_dash(self.tokens_per_second, number),
        ]
    }
}

/// Returns a figure of geometry in Å, or `-` if nothing could be compared.
pub(super) fn geometry_cell(
    geometry: Option<&GeometryReport>,
    value: fn(&GeometryReport) -> Option<Mean>,
) -> String {
    or_dash(geometry.and_then(value), |mean| number(mean.mean))
}

/// Returns the number of valid texts, or `-` if none was checked.
pub(super) fn valid(chemistry: &ChemistryReport, counts: &SampleCounts) -> String {
    // 0 would mean that none is valid, but none was checked.
    if chemistry.checked == 0 && counts.passed > 0 {
        return "-".to_owned();
    }
    thousands(chemistry.valid)
}

/// Returns each row compared with the base row; `None` if rows were not compared.
pub fn audit_comparison_table(report: &AuditReport) -> Option<Table> {
    let base = report.against_row.as_ref()?;
    let has_models = report.runs.iter().any(|run| run.row.model.is_some());
    let mut table = Table::new(format!("Against {base}, paired"));
    if has_models {
        table = table.code("model");
    }
    table = comparison_columns(table.code("processor"));
    for pair in &report.comparisons {
        let mut cells = model_cell(has_models, pair.row.model.as_ref());
        cells.push(pair.row.processor());
        cells.extend(comparison_cells(pair));
        table.marked_row(pair.row.is_automaton(), cells);
    }
    table.note(format!(
        "Differences over the molecules whose texts pass both ways, with 95 % bootstrap intervals for each row. Same text: of \
         the texts that are legal in {base}. RescuedTexts: texts that pass only here, compared with texts of the same molecule \
         that pass both ways. Speed: texts per second, divided by that of {base}. Intervals of rescued texts and of speed hold \
         for all rows at once (Bonferroni)."
    ));
    Some(table)
}

/// Returns a speed ratio with its interval: `1.37 [1.31, 1.43]`.
fn speed(pair: &PairedComparison) -> String {
    let Some(speed) = pair.speed else { return or_dash(pair.speed_ratio, |ratio| format!("{ratio:.2}")) };
    let interval = speed.interval.map(|Interval { low, high }| format!(" [{low:.2}, {high:.2}]"));
    format!("{:.2}{}", speed.ratio, interval.unwrap_or_default())
}

fn difference(mean: Option<Mean>) -> String {
    let Some(Mean { mean, interval, .. }) = mean else { return "-".to_owned() };
    let interval =
        interval.map(|Interval { low, high }| format!(" [{}, {}]", signed(low, 3), signed(high, 3)));
    format!("{}{}", signed(mean, 3), interval.unwrap_or_default())
}
