//! The comparison of two records or traces as tables.

use super::format::{counted, number, or_dash, percent, thousands};
use super::table::Table;
use drift_data::compare::{CompareReport, Figure, Group, RecordKind, TraceRow, TraceTable};

/// The largest number of rows of a table; further rows are only in the JSON.
const MAX_ROWS: usize = 40;

/// The largest number of rows of a category of a trace. A category names thousands of functions, and the tables before it have the
/// important ones.
const MAX_TRACE_ROWS: usize = 10;

/// For traces first the eight tables, for records first the settings that differ; then one table per run or category. Equal figures are
/// only counted.
pub fn tables(report: &CompareReport) -> Vec<Table> {
    let mut tables: Vec<Table> = report.tables.iter().map(trace_table).collect();
    tables.extend(settings_table(report));
    tables.extend(report.groups.iter().map(|group| table(report, group)));
    let of_what = if report.kind == RecordKind::Eval { "run" } else { "category" };
    let mut rest = Table::new("Only in one of them").code("file").text(of_what);
    for (file, names) in file_names(report).into_iter().zip(&report.unmatched) {
        for name in names {
            rest.row([file, name]);
        }
    }
    if !rest.rows.is_empty() {
        tables.push(rest);
    }
    tables
}

/// Returns what the two files are called: their names, if these tell them apart.
fn file_names(report: &CompareReport) -> [&str; 2] {
    let [a, b] = &report.files;
    if a == b { ["first", "second"] } else { [a, b] }
}

/// Returns the settings that differ, if there are any.
fn settings_table(report: &CompareReport) -> Option<Table> {
    if report.settings.is_empty() {
        return None;
    }
    let [a, b] = file_names(report);
    let mut table = Table::new("Settings that differ").code("setting").text(a).text(b);
    for setting in &report.settings {
        let [first, second] = setting.values.each_ref().map(|value| value.as_deref().unwrap_or("-"));
        table.row([&*setting.name, first, second]);
    }
    if report.settings.iter().any(|setting| setting.name.starts_with("molecules")) {
        table.note("The molecules differ, so a difference below may be one between molecules.");
    }
    Some(table)
}

fn table(report: &CompareReport, group: &Group) -> Table {
    let is_trace = report.kind == RecordKind::ChromeTrace;
    let [a, b] = if is_trace { ["first", "second"] } else { file_names(report) };
    let title = if is_trace { format!("Category {}", group.name) } else { group.name.clone() };
    let mut table = Table::new(title).code("figure").number(a).number(b).number("second\nby first");
    let (equal, other): (Vec<&Figure>, Vec<&Figure>) =
        group.figures.iter().partition(|figure| figure.values[0] == figure.values[1]);
    let most = if is_trace { MAX_TRACE_ROWS } else { MAX_ROWS };
    for figure in other.iter().take(most) {
        let [first, second] = figure.values.map(|value| or_dash(value, number));
        table.row([shortened(&figure.name), first, second, or_dash(figure.ratio, number)]);
    }
    if other.len() > most {
        let more = (other.len() - most) as u64;
        table.note(format!("In the JSON: {}.", counted(more, "more figure")));
    }
    if !equal.is_empty() {
        let are = if equal.len() == 1 { "is" } else { "are" };
        table.note(format!("{} {are} equal.", counted(equal.len() as u64, "figure")));
    }
    table
}

/// Shortens the name of a kernel, which contains its template arguments, and keeps the measured quantity behind it.
fn shortened(name: &str) -> String {
    const LONGEST: usize = 70;
    let (name, unit) = name.rsplit_once(": ").map_or((name, String::new()), |(n, u)| (n, format!(": {u}")));
    if name.chars().count() <= LONGEST {
        return format!("{name}{unit}");
    }
    name.chars().take(LONGEST - 1).chain(['…']).chain(unit.chars()).collect()
}

/// Returns one of the eight tables. Rows that are empty in both traces are left out.
fn trace_table(of: &TraceTable) -> Table {
    let rows: Vec<&TraceRow> = of.rows.iter().filter(|row| row.figures.iter().any(is_there)).collect();
    let mut table = Table::new(of.title).code("");
    let measured = rows.first().map(|row| row.figures.as_slice()).unwrap_or_default();
    // If every row has one figure, there is one column for each trace. Else each measure has two columns, and amounts have a ratio.
    let single = of.rows.iter().all(|row| row.figures.len() == 1);
    if single {
        table = table.number("first").number("second").number("second\nby first");
    } else {
        for figure in measured {
            let title = heading(&figure.name);
            table = table.number(&format!("{title}\nfirst")).number(&format!("{title}\nsecond"));
            if has_ratio(&figure.name) {
                table = table.number("\nratio");
            }
        }
    }
    let left_out = rows.len().saturating_sub(MAX_ROWS);
    for row in rows.into_iter().take(MAX_ROWS) {
        let unit = match row.figures.as_slice() {
            [figure] if single && figure.name != "count" => format!(", {}", heading(&figure.name)),
            _ => String::new(),
        };
        let mut cells = vec![format!("{}{unit}", shortened(&row.name))];
        for figure in &row.figures {
            cells.extend(figure.values.map(|value| shown(&figure.name, value)));
            if single || has_ratio(&figure.name) {
                cells.push(shown("ratio", figure.ratio));
            }
        }
        table.row(cells);
    }
    if table.rows.is_empty() {
        table = Table::new(of.title);
        table.note("Neither trace has any.");
        return table;
    }
    if left_out > 0 {
        table.note(format!("In the JSON: {}.", counted(left_out as u64, "more row")));
    }
    of.notes.iter().for_each(|note| _ = table.note(note));
    table
}

/// Returns whether the figure is not zero in one of the traces.
fn is_there(figure: &Figure) -> bool {
    figure.values.iter().flatten().any(|value| *value != 0.0)
}

/// Returns whether a ratio is shown. Amounts have one; ratios of means and shares would clutter the table and are only in the JSON.
fn has_ratio(measured: &str) -> bool {
    matches!(measured, "calls" | "events" | "gaps" | "seconds")
}

fn heading(measured: &str) -> &str {
    match measured {
        "seconds" => "s",
        "self_seconds" => "self s",
        "device_seconds" => "device s",
        "mean_microseconds" => "mean µs",
        "calls_per_second" => "calls/s",
        name => name,
    }
}

fn shown(measured: &str, value: Option<f64>) -> String {
    let Some(value) = value else { return "-".to_owned() };
    match measured {
        "calls" | "events" | "gaps" | "count" => thousands(value as u64),
        "share" => percent(value),
        // Kernels take microseconds.
        name if name.ends_with("seconds") && name != "mean_microseconds" && value.abs() < 0.09995 => {
            format!("{value:.6}")
        }
        _ => number(value),
    }
}
