//! Compares two records of `drift eval`, or two Chrome traces such as PyTorch's profiler writes.
//!
//! Records of every version can be compared, including older ones that lack fields, so figures are matched by name. To read a whole
//! record of this version, use the type of `drift eval`.

mod figure;
mod figures;
mod trace;

use std::collections::HashMap;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeSeed;

use self::figure::{Figures, TOO_MANY};
use self::figures::{Document, DocumentFigures};
use self::trace::Summary;
use drift_core::io::{self, BoundedJson, FoldSeed};
use drift_core::{Error, Job, Result};
pub use figure::Figure;
pub use trace::{TraceEvents, TraceRow, TraceTable};

/// The schema of [`CompareReport`].
pub const SCHEMA: &str = "drift.compare/3";

/// The largest file that is read, in bytes after decompression. Traces of long runs reach gigabytes, and are read in pieces.
const MAX_BYTES: u64 = 32 << 30;

/// The longest text in a file, in bytes. Events are aggregated as they are read, and only names are kept.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// The comparison of two records.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CompareReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The names of both files.
    pub files: [String; 2],
    /// The kind of both files.
    pub kind: RecordKind,
    /// For records: the settings that differ, of the command, the inputs and the protocol, among them the molecules and the seed. Figures
    /// of other molecules cannot be compared.
    pub settings: Vec<Setting>,
    /// For traces: launches, device time, attention, copies, waits, idle time and phases. Empty for records.
    pub tables: Vec<TraceTable>,
    /// For traces: the number of events of both files that are counted.
    pub events: Option<[TraceEvents; 2]>,
    /// The runs of records, or the categories of traces, that both files have.
    pub groups: Vec<Group>,
    /// The names of runs or categories that only the first file has, then those that only the second has.
    pub unmatched: [Vec<String>; 2],
}

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// A record of `drift eval --json`.
    Eval,
    /// A trace in Chrome's trace event format.
    ChromeTrace,
}

/// A setting of two records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// The field's name with dots between levels.
    pub name: String,
    /// The values in the first and the second file, as text; `None` if a file lacks the setting.
    pub values: [Option<String>; 2],
}

/// A run or a category of events that both files have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// The name: the values of the fields that identify a run, or the category.
    pub name: String,
    /// The figures of both files, in the order of the first file.
    pub figures: Vec<Figure>,
}

/// Reads and compares two files.
///
/// # Errors
/// [`Error::Input`] if a file is neither a record nor a trace, or is too large, or if the files are of different kinds; or if the
/// job was cancelled.
pub fn compare(paths: [&Path; 2], job: &Job) -> Result<CompareReport> {
    let [a, b] = [read(paths[0], job)?, read(paths[1], job)?];
    let files = paths.map(io::file_name);
    match (a, b) {
        (Record::Eval(a), Record::Eval(b)) => {
            let settings = settings([&a.settings, &b.settings]);
            Ok(CompareReport { settings, ..report(files, RecordKind::Eval, [a.runs, b.runs]) })
        }
        (Record::Trace(a), Record::Trace(b)) => {
            let mut summaries = [*a, *b];
            let tables = trace::tables(&summaries, &files);
            let groups = summaries.each_mut().map(|summary| std::mem::take(&mut summary.figures));
            let events = Some(summaries.map(|summary| summary.events));
            Ok(CompareReport { tables, events, ..report(files, RecordKind::ChromeTrace, groups) })
        }
        _ => {
            let problem = format!("is not the same kind of record as {}", paths[0].display());
            Err(Error::input(paths[1].display(), problem, "give two records or two Chrome traces"))
        }
    }
}

/// Matches runs or categories by name.
fn report(files: [String; 2], kind: RecordKind, groups: [Vec<(String, Figures)>; 2]) -> CompareReport {
    let only = |own: usize| {
        let other = &groups[1 - own];
        let lacks = |name: &&String| !other.iter().any(|(known, _)| known == *name);
        groups[own].iter().map(|(name, _)| name).filter(lacks).cloned().collect()
    };
    let unmatched = [only(0), only(1)];
    let find = |name: &str| groups[1].iter().find(|(known, _)| known == name).map(|(_, figures)| figures);
    let matched = groups[0].iter().filter_map(|(name, a)| Some(group(name, a, find(name)?))).collect();
    CompareReport {
        schema: SCHEMA,
        files,
        kind,
        settings: Vec::new(),
        tables: Vec::new(),
        events: None,
        groups: matched,
        unmatched,
    }
}

/// Returns the settings that differ, in the order of the first file.
fn settings(all: [&[(String, String)]; 2]) -> Vec<Setting> {
    let second = all[1].iter().filter(|(name, _)| setting(all[0], name).is_none());
    let names = all[0].iter().chain(second).map(|(name, _)| name);
    let both = names.map(|name| Setting { name: name.clone(), values: all.map(|own| setting(own, name)) });
    both.filter(|setting| setting.values[0] != setting.values[1]).collect()
}

/// Returns the value of a setting.
fn setting(settings: &[(String, String)], name: &str) -> Option<String> {
    settings.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
}

/// What is compared of a record of `drift eval`.
struct EvalRecord {
    settings: Vec<(String, String)>,
    runs: Vec<(String, Figures)>,
}

enum Record {
    Eval(EvalRecord),
    Trace(Box<Summary>),
}

fn group(name: &str, a: &Figures, b: &Figures) -> Group {
    // If a name occurs twice, the first figure counts.
    let known = |figures: &Figures| -> HashMap<String, f64> { figures.iter().rev().cloned().collect() };
    let (of_a, of_b) = (known(a), known(b));
    let both = a.iter().map(|(name, v)| Figure::new(name.clone(), [Some(*v), of_b.get(name).copied()]));
    let second = b.iter().filter(|(name, _)| !of_a.contains_key(name));
    let second = second.map(|(name, v)| Figure::new(name.clone(), [None, Some(*v)]));
    Group { name: name.to_owned(), figures: both.chain(second).collect() }
}

fn read(path: &Path, job: &Job) -> Result<Record> {
    let refuse = |problem: String| {
        Error::input(path.display(), problem, "give a record of drift eval, or a Chrome trace")
    };
    let opened = io::open(path, job);
    // One byte more than the limit, to distinguish a file of exactly that size from a larger one.
    let mut taken = opened.reader.take(MAX_BYTES + 1);
    let bounded = BufReader::new(BoundedJson::new(&mut taken, MAX_TEXT_BYTES));
    let mut json = serde_json::Deserializer::from_reader(bounded);
    let read = FoldSeed(Document).deserialize(&mut json).and_then(|found| json.end().map(|()| found));
    drop(json);
    if taken.limit() == 0 {
        return Err(io::too_large(path, MAX_BYTES));
    }
    let found = read.map_err(|e| {
        let failed = |kind| {
            job.check().err().unwrap_or_else(|| Error::io(path, std::io::Error::new(kind, e.to_string())))
        };
        match (e.io_error_kind(), e.to_string()) {
            (Some(ErrorKind::InvalidData), text) => refuse(text),
            (Some(kind), _) => failed(kind),
            (None, text) if text.starts_with(TOO_MANY) => refuse(TOO_MANY.to_owned()),
            (None, _) if e.is_eof() => refuse("ends in the middle of its JSON".to_owned()),
            (None, text) => refuse(format!("is not JSON: {text}")),
        }
    })?;
    match found {
        DocumentFigures { runs: Some(runs), settings, .. } => {
            let runs = runs.ok_or_else(|| refuse("contains a run that is not an object".to_owned()))?;
            Ok(Record::Eval(EvalRecord { settings, runs }))
        }
        DocumentFigures { trace: Some(trace), .. } => Ok(Record::Trace(Box::new(Summary::of(*trace)))),
        DocumentFigures { .. } => Err(refuse("contains neither `runs` nor `traceEvents`".to_owned())),
    }
}
