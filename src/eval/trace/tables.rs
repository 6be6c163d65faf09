//! The tables of two traces.

use serde::Serialize;

use super::side::{SideRow, TABLES, rows};
use super::summary::Summary;
use crate::eval::figure::Figure;

/// One of the eight tables of two traces.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceTable {
    /// What programs know it by: `run`, `kernel_launches`, `device_time`, `attention_calls`, `copies_and_concatenations`,
    /// `synchronisation`, `device_idle` or `phases`.
    pub key: &'static str,
    /// What people know it by.
    pub title: &'static str,
    /// Its rows.
    pub rows: Vec<TraceRow>,
    /// What has to be known to read it, one line each.
    pub notes: Vec<String>,
}

/// A row of such a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceRow {
    /// What it is of.
    pub name: String,
    /// What was measured, by name: `calls`, `events`, `gaps` and `count` are numbers, `calls_per_second` is over the wall span,
    /// `share` is a fraction from 0 to 1, other names end in their unit. None where a trace does not say.
    pub figures: Vec<Figure>,
}

/// The tables, in order.
pub(in crate::eval) fn tables(summaries: &[Summary; 2], files: &[String; 2]) -> Vec<TraceTable> {
    // A trace with several runs needs their names; then the other one's phases need them, too.
    let qualified = summaries.iter().any(|summary| summary.phase_categories().len() > 1);
    let [a, b] = summaries.each_ref().map(|summary| rows(summary, qualified));
    let merged = a.into_iter().zip(b).map(|(a, b)| merge(a, b));
    let table = |((key, title), rows): ((&'static str, &'static str), Vec<TraceRow>)| TraceTable {
        key,
        title,
        rows,
        notes: notes(key, summaries, files),
    };
    TABLES.into_iter().zip(merged).map(table).collect()
}

/// Rows by name, in the order of the first; what the second alone has stands behind what it stands behind there.
fn merge(a: Vec<SideRow>, b: Vec<SideRow>) -> Vec<TraceRow> {
    let mut rows: Vec<(String, [Option<SideRow>; 2])> =
        a.into_iter().map(|row| (row.name.clone(), [Some(row), None])).collect();
    let mut places: std::collections::HashMap<String, usize> =
        rows.iter().enumerate().map(|(place, (name, _))| (name.clone(), place)).collect();
    let mut added: Vec<(usize, SideRow)> = Vec::new();
    let mut behind = 0;
    for row in b {
        match places.get(&row.name) {
            Some(place) => {
                behind = place + 1;
                rows[*place].1[1] = Some(row);
            }
            None => added.push((behind, row)),
        }
    }
    places.clear();
    // From the end, so that places before stay what they are.
    for (place, row) in added.into_iter().rev() {
        rows.insert(place, (row.name.clone(), [None, Some(row)]));
    }
    rows.into_iter().map(|(name, sides)| TraceRow { name, figures: figures(&sides) }).collect()
}

fn figures(sides: &[Option<SideRow>; 2]) -> Vec<Figure> {
    let names = sides.iter().flatten().next().map(|row| row.values.iter().map(|(name, _)| *name));
    let value = |side: &Option<SideRow>, name: &str| {
        side.as_ref()?.values.iter().find(|(known, _)| *known == name).and_then(|(_, value)| *value)
    };
    let figure = |name: &str| Figure::new(name.to_owned(), sides.each_ref().map(|side| value(side, name)));
    names.into_iter().flatten().map(figure).collect()
}

/// What has to be known to read a table.
fn notes(key: &str, summaries: &[Summary; 2], files: &[String; 2]) -> Vec<String> {
    let sides = || ["first", "second"].into_iter().zip(summaries);
    let fixed = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    match key {
        "run" => {
            let mut notes = vec![format!("The first is {}, the second {}.", files[0], files[1])];
            for (side, summary) in sides().filter(|(_, summary)| !summary.events.left_out.is_empty()) {
                let problems: Vec<String> =
                    summary.events.left_out.iter().map(|(problem, n)| format!("{n} {problem}")).collect();
                notes.push(format!("Events left out of the {side}: {}.", problems.join(", ")));
            }
            notes
        }
        "kernel_launches" => fixed(&[
            "Time is that of the calls on the CPU, but for kernels on devices. Shares are of the wall span.",
        ]),
        "device_time" => {
            let mut notes = fixed(&["Each event once, told by its name. Shares are of all of them."]);
            for (side, summary) in sides().filter(|(_, summary)| !summary.other_kernels.is_empty()) {
                let names: Vec<String> = summary.other_kernels.iter().map(|name| shortened(name)).collect();
                notes.push(format!("Other kernels of the {side}, longest first: {}.", names.join("; ")));
            }
            notes
        }
        "attention_calls" => {
            let mut notes = fixed(&[
                "Attention calls are operators that lie in no other one of attention; the operators below hold one another. Shares are of \
                 the wall span.",
            ]);
            if summaries.iter().any(|summary| summary.attention.is_none()) {
                notes.push(
                    "There are too many operators to tell which lies in which: calls are not known."
                        .to_owned(),
                );
            }
            notes
        }
        "copies_and_concatenations" => fixed(&[
            "The first three rows are kernels and copies of devices, the others operators on the CPU, which hold one another (aten::to, \
             aten::_to_copy, aten::copy_). Shares are of the wall span.",
        ]),
        "synchronisation" => fixed(&[
            "Time of the CPU. Operators hold calls: aten::item holds aten::_local_scalar_dense, a memcpy and a wait. Shares are of the wall \
             span.",
        ]),
        "device_idle" => {
            let mut notes = fixed(&[
                "Kernels, memcpy and memset; streams of a device are one. Shares are of the time from first to last.",
            ]);
            for (side, summary) in sides().filter(|(_, summary)| summary.devices.resolution > 0) {
                let (resolution, closed) = (summary.devices.resolution, summary.devices.closed);
                notes.push(format!(
                    "The {side} has more gaps than are kept: those up to {} µs count as busy, together {:.6} s at most.",
                    resolution as f64 / 1e3,
                    closed as f64 / 1e9
                ));
            }
            notes
        }
        _ => {
            let mut notes = fixed(&[
                "Self is without the phases inside; a phase inside one of its own name adds nothing to its seconds. Shares are of the time \
                 of all threads that have phases, from their first event to their last.",
            ]);
            if summaries.iter().any(|summary| !summary.phases.is_empty() && summary.phase_time.is_none()) {
                notes.push(
                    "There are too many phases to tell which lies in which: self is not known.".to_owned(),
                );
            }
            notes
        }
    }
}

/// The beginning of a name.
fn shortened(name: &str) -> String {
    const LONGEST: usize = 60;
    if name.chars().count() <= LONGEST {
        return name.to_owned();
    }
    name.chars().take(LONGEST - 1).chain(['…']).collect()
}
