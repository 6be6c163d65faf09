//! The tables that compare two traces.

use std::collections::HashMap;

use serde::Serialize;

use super::side::{SideRow, TABLES, rows};
use super::summary::Summary;
use crate::compare::figure::Figure;

/// One of the eight tables that compare two traces.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceTable {
    /// The key for programs: `run`, `kernel_launches`, `device_time`, `attention_calls`, `copies_and_concatenations`,
    /// `synchronisation`, `device_idle` or `phases`.
    pub key: &'static str,
    /// The title for people.
    pub title: &'static str,
    /// Its rows.
    pub rows: Vec<TraceRow>,
    /// Notes for reading the table, one line each.
    pub notes: Vec<String>,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceRow {
    /// The name of the row.
    pub name: String,
    /// The values by name. `calls`, `events`, `gaps` and `count` are numbers, `calls_per_second` refers to the wall time, `share`
    /// is a fraction from 0 to 1, and all other names end in their unit. `None` if a trace does not have the data.
    pub figures: Vec<Figure>,
}

/// Returns the tables, in order.
pub(in crate::compare) fn tables(summaries: &[Summary; 2], files: &[String; 2]) -> Vec<TraceTable> {
    // If a trace has several runs, phases need the names of the runs; then the other trace's phases need them too.
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

/// Merges rows by name, in the order of `a`. A row that only `b` has comes after the row that it follows in `b`.
fn merge(a: Vec<SideRow>, b: Vec<SideRow>) -> Vec<TraceRow> {
    let mut rows: Vec<(String, [Option<SideRow>; 2])> =
        a.into_iter().map(|row| (row.name.clone(), [Some(row), None])).collect();
    let places: HashMap<String, usize> =
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
    // From the end, so that earlier places stay valid.
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

/// Returns the notes of a table.
fn notes(key: &str, summaries: &[Summary; 2], files: &[String; 2]) -> Vec<String> {
    let mut notes: Vec<String> = fixed_note(key).map(str::to_owned).into_iter().collect();
    if key == "run" {
        notes.push(format!("The first is {}, the second {}.", files[0], files[1]));
    }
    for (side, summary) in ["first", "second"].into_iter().zip(summaries) {
        let own = match key {
            "run" => left_out(side, summary),
            "device_time" => other_kernels(side, summary),
            "attention_calls" if summary.attention.is_none() => Some(format!(
                "The {side} has too many operators to tell how they nest, so their calls are not counted."
            )),
            "device_idle" => closed_gaps(side, summary),
            "phases" if !summary.phases.is_empty() && summary.phase_time.is_none() => Some(format!(
                "The {side} has too many phases to tell how they nest, so their own time is not known."
            )),
            _ => None,
        };
        notes.extend(own);
    }
    notes
}

/// Returns the note of a table that does not depend on its content.
fn fixed_note(key: &str) -> Option<&'static str> {
    Some(match key {
        "kernel_launches" => {
            "Time is that of the calls on the CPU, but for kernels on devices. Shares are of the wall span."
        }
        "device_time" => "Each event counts once, by its name. Shares are of all events.",
        "attention_calls" => {
            "Attention calls are operators that lie in no other one of attention; the operators below hold one another. Shares are of \
             the wall span."
        }
        "copies_and_concatenations" => {
            "The first three rows are kernels and copies of devices, the others operators on the CPU, which hold one another (aten::to, \
             aten::_to_copy, aten::copy_). Shares are of the wall span."
        }
        "synchronisation" => {
            "Time of the CPU. Operators hold calls: aten::item holds aten::_local_scalar_dense, a memcpy and a wait. Shares are of the \
             wall span."
        }
        "device_idle" => {
            "Kernels, memcpy and memset; streams of a device are one. Shares are of the time from first to last."
        }
        "phases" => {
            "Self is without the phases inside; a phase inside one of its own name adds nothing to its seconds. Shares are of the time \
             of all threads that have phases, from their first event to their last."
        }
        _ => return None,
    })
}

fn left_out(side: &str, summary: &Summary) -> Option<String> {
    let problems: Vec<String> =
        summary.events.left_out.iter().map(|(problem, events)| format!("{events} {problem}")).collect();
    (!problems.is_empty()).then(|| format!("Events left out of the {side}: {}.", problems.join(", ")))
}

fn other_kernels(side: &str, summary: &Summary) -> Option<String> {
    let names: Vec<String> = summary.other_kernels.iter().map(|name| shortened(name)).collect();
    (!names.is_empty()).then(|| format!("Other kernels of the {side}, longest first: {}.", names.join("; ")))
}

fn closed_gaps(side: &str, summary: &Summary) -> Option<String> {
    let (micros, seconds) = (summary.devices.resolution as f64 / 1e3, summary.devices.closed as f64 / 1e9);
    (micros > 0.0).then(|| {
        format!("The {side} has more gaps than are kept: those up to {micros} µs count as busy, together {seconds:.6} s at most.")
    })
}

/// Returns the beginning of a name.
fn shortened(name: &str) -> String {
    const LONGEST: usize = 60;
    if name.chars().count() <= LONGEST {
        return name.to_owned();
    }
    name.chars().take(LONGEST - 1).chain(['…']).collect()
}
