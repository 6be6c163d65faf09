//! Rows of texts compared with a base row, as tables.

use super::audit_view::share;
use super::fields::Fields;
use super::format::{encoding_name, number, or_dash, percent_of, signed, thousands};
use super::table::Table;
use drift_data::audit::chemistry::ChemistryReport;
use drift_data::audit::pairs::PairedComparison;
use drift_data::audit::{AuditReport, AuditRun, GeometryReport, RowLabel, SampleCounts};
use drift_data::stats::Interval;
use drift_data::stats::bootstrap::Mean;

/// Returns the differences of rows, with their intervals, behind the columns of a table that name a row.
pub(super) fn comparison_fields<'c>(
    table: Table,
    names: impl Fn(&PairedComparison) -> Vec<String> + 'c,
) -> Fields<'c, PairedComparison> {
    Fields::behind(table, names)
        .number("pass", |pair| format!("{:+}", pair.passed_difference))
        .number("same text", |pair| {
            format!("{} of {}", thousands(pair.identical), thousands(pair.well_formed_without))
        })
        .number("bond error, Å", |pair| difference(pair.bond_error_difference_angstrom))
        .number("MAT-P, Å", |pair| difference(pair.mat_precision_difference_angstrom))
        .number("MAT-R, Å", |pair| difference(pair.mat_recall_difference_angstrom))
        .number("rescued\ntexts", |pair| thousands(pair.rescued.map_or(0, |found| found.texts)))
        .number("their bond\nerror, Å", |pair| {
            difference(pair.rescued.and_then(|found| found.bond_error_difference_angstrom))
        })
        .number("their\nRMSD, Å", |pair| {
            difference(pair.rescued.and_then(|found| found.nearest_difference_angstrom))
        })
        .number("speed", speed)
}

/// Returns one row for each row of an audit, as `drift eval` shows its runs; `None` if rows were not compared.
pub fn rows_table(report: &AuditReport) -> Option<Table> {
    report.against_row.as_ref()?;
    let table = named_table(format!("Rows, {}", encoding_name(report.encoding)), report);
    let fields = Fields::behind(table, |run: &AuditRun| names(report, &run.row))
        .number("texts", |run| thousands(run.counts.samples))
        .number("pass", |run| share(run.counts.passed, run.counts.samples));
    let fields = with_figures(fields, |run| RowFigures {
        counts: &run.counts,
        chemistry: &run.chemistry,
        geometry: run.geometry.as_ref(),
        tokens_per_second: run.generation_figure("tokens_per_second"),
    });
    let mut table = fields.marked(&report.runs, |run| run.row.is_automaton());
    table.note("valid: of the texts that pass, those whose stereo, bonds, angles and planes are right and whose atoms do not clash");
    Some(table)
}

fn has_models(report: &AuditReport) -> bool {
    report.runs.iter().any(|run| run.row.model.is_some())
}

/// Returns a table with the columns of [`names`].
fn named_table(title: String, report: &AuditReport) -> Table {
    let table = Table::new(title);
    if has_models(report) { table.code("model").code("processor") } else { table.code("processor") }
}

/// Returns the model of a row, if some row has one, and its logit processor.
fn names(report: &AuditReport, row: &RowLabel) -> Vec<String> {
    let model = has_models(report).then(|| row.model.clone().unwrap_or_default());
    model.into_iter().chain([row.processor()]).collect()
}

/// The figures of a row that tell most of its texts.
pub(super) struct RowFigures<'r> {
    pub counts: &'r SampleCounts,
    pub chemistry: &'r ChemistryReport,
    pub geometry: Option<&'r GeometryReport>,
    pub tokens_per_second: Option<f64>,
}

/// Adds valid texts, junk and truncated blocks, geometry and speed.
pub(super) fn with_figures<R: 'static>(fields: Fields<'_, R>, of: fn(&R) -> RowFigures<'_>) -> Fields<'_, R> {
    fields
        .number("valid", move |row| valid(of(row).chemistry, of(row).counts))
        .number("junk\nblocks", move |row| of(row).of_blocks(of(row).counts.junk_blocks_strict))
        .number("truncated\nblocks", move |row| {
            or_dash(of(row).counts.truncated_blocks, |count| of(row).of_blocks(count))
        })
        .number("bond\nerror, Å", move |row| {
            geometry_cell(of(row).geometry, |geometry| geometry.bond_length_error_angstrom)
        })
        .number("MAT-P, Å", move |row| {
            geometry_cell(of(row).geometry, |geometry| geometry.mat_precision_angstrom)
        })
        .number("tokens/s", move |row| or_dash(of(row).tokens_per_second, number))
}

impl RowFigures<'_> {
    fn of_blocks(&self, count: u64) -> String {
        percent_of(count, self.counts.blocks)
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
    let base = report.against_row.as_ref().filter(|_| !report.comparisons.is_empty())?;
    let table = named_table(format!("Against {base}, paired"), report);
    let fields = comparison_fields(table, |pair| names(report, &pair.row));
    let mut table = fields.marked(&report.comparisons, |pair| pair.row.is_automaton());
    table.note(format!(
        "Differences over the molecules whose texts pass both ways, with 95 % bootstrap intervals for each row. Same text: of \
         the texts that are legal in {base}. Rescued: texts that pass only here, compared with texts of the same molecule \
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
