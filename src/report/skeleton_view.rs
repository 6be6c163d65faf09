//! The report of texts of a skeleton as tables.

use std::collections::BTreeSet;

use super::audit_view::share;
use super::format::{counted, or_dash, percent, thousands};
use super::table::Table;
use drift_core::skeleton::FaultKind;
use drift_data::audit::skeletons::{CLOSE_ANGSTROM, SkeletonReport};

/// The tables of a report: rows with their faults, geometry, comparisons, and examples of faults.
pub fn skeleton_tables(report: &SkeletonReport) -> Vec<Table> {
    let tables = [Some(rows(report)), geometry(report), comparisons(report), examples(report)];
    tables.into_iter().flatten().collect()
}

fn rows(report: &SkeletonReport) -> Table {
    let kinds: BTreeSet<FaultKind> = report.rows.iter().flat_map(|row| row.faults.keys().copied()).collect();
    let mut table =
        Table::new(format!("Texts of {}", report.skeleton)).code("row").number("texts").number("pass");
    for kind in &kinds {
        table = table.number(kind.name());
    }
    table = table.number("repeated\nitems").number("repeated\ntexts");
    for row in &report.rows {
        let mut cells = vec![row.row.clone(), thousands(row.texts), share(row.passed, row.texts)];
        cells.extend(kinds.iter().map(|kind| thousands(row.faults.get(kind).copied().unwrap_or(0))));
        cells.extend([thousands(row.texts_with_repeated_items), thousands(row.repeated_texts)]);
        table.row(cells);
    }
    table.note("a text may have several faults; repeats are no faults");
    table
}

fn geometry(report: &SkeletonReport) -> Option<Table> {
    report.rows.iter().any(|row| row.geometry.is_some()).then(|| {
        let mut table = Table::new("Geometry of the texts")
            .code("row")
            .number("texts")
            .number("no volume")
            .number(&format!("closer than\n{CLOSE_ANGSTROM} Å"))
            .number("shortest distance,\nmedian, Å")
            .number("volume per atom,\nmedian, Å³");
        for row in &report.rows {
            let Some(found) = row.geometry else { continue };
            table.row([
                row.row.clone(),
                thousands(found.texts),
                thousands(found.without_volume),
                share(found.close, found.texts),
                or_dash(found.median_shortest_angstrom, |value| format!("{value:.3}")),
                or_dash(found.median_volume_per_atom, |value| format!("{value:.2}")),
            ]);
        }
        table
    })
}

fn comparisons(report: &SkeletonReport) -> Option<Table> {
    let base = report.against_row.as_ref()?;
    let mut table = Table::new(format!("Against {base}, prompt by prompt"))
        .code("row")
        .text("share of texts")
        .number("without")
        .number("with")
        .number("difference")
        .number("95 % interval");
    for row in &report.comparisons {
        for figure in &row.figures {
            let interval =
                figure.interval.map(|interval| [interval.low, interval.high].map(points).join(" to "));
            table.row([
                row.row.clone(),
                figure.figure.clone(),
                percent(figure.without),
                percent(figure.with),
                points(figure.difference),
                or_dash(interval, |shown| shown),
            ]);
        }
        let same = format!("{} of {}", thousands(row.identical), counted(row.passed_without, "text"));
        table.note(format!("{}: {same} that pass in {base} are the same", row.row));
        if let Some(mean) = &row.shortest_difference_angstrom {
            let shown = format!("{:+.4} Å over {}", mean.mean, counted(mean.items as u64, "prompt"));
            table.note(format!("{}: the shortest distance differs by {shown}", row.row));
        }
    }
    Some(table)
}

/// A difference of shares in percentage points.
fn points(difference: f64) -> String {
    format!("{:+.1}", 100.0 * difference)
}

fn examples(report: &SkeletonReport) -> Option<Table> {
    (!report.examples.is_empty()).then(|| {
        let mut table =
            Table::new("Examples").code("text").text("fault").number("line").number("column").text("problem");
        for example in report.examples.iter().take(20) {
            let fault = &example.fault;
            let place = [fault.line, fault.column].map(|number| number.to_string());
            let [line, column] = place;
            table.row([
                example.place.clone(),
                fault.kind.name().to_owned(),
                line,
                column,
                fault.problem.clone(),
            ]);
        }
        table
    })
}
