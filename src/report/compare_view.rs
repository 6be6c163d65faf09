//! Two records side by side as tables.

use super::format::number;
use super::table::Table;
use crate::eval::compare::{CompareReport, Figure, Group};

/// Rows of a table; the rest is in the JSON. Traces name thousands of functions.
const MAX_ROWS: usize = 40;

/// One table per run or category; figures that are equal are only counted.
pub fn tables(report: &CompareReport) -> Vec<Table> {
    let mut tables: Vec<Table> = report.groups.iter().map(|group| table(report, group)).collect();
    let mut rest = Table::new("Only in one of them").code("file").text("run");
    for (file, names) in report.files.iter().zip(&report.unmatched) {
        for name in names {
            rest.row([file, name]);
        }
    }
    if !rest.rows.is_empty() {
        tables.push(rest);
    }
    tables
}

fn table(report: &CompareReport, group: &Group) -> Table {
    let [a, b] = &report.files;
    let (a, b) = if a == b { ("first".to_owned(), "second".to_owned()) } else { (a.clone(), b.clone()) };
    let mut table =
        Table::new(group.name.clone()).code("figure").number(&a).number(&b).number("second\nby first");
    let (equal, other): (Vec<&Figure>, Vec<&Figure>) =
        group.figures.iter().partition(|figure| figure.values[0] == figure.values[1]);
    for figure in other.iter().take(MAX_ROWS) {
        let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
        let [first, second] = figure.values.map(cell);
        table.row([figure.name.clone(), first, second, cell(figure.ratio)]);
    }
    if other.len() > MAX_ROWS {
        table.note(format!("{} more figures are in the JSON.", other.len() - MAX_ROWS));
    }
    if !equal.is_empty() {
        table.note(format!("{} figures are equal.", equal.len()));
    }
    table
}
