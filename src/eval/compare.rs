//! Two records side by side: of `drift eval`, or Chrome traces such as PyTorch's profiler writes.
//!
//! Records of every version are compared, older ones too, that lack fields; so figures are taken by name. Whoever wants a record
//! of this version whole reads an [`EvalReport`](super::record::EvalReport).

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::io;

/// The schema of [`CompareReport`].
pub const SCHEMA: &str = "drift.compare/1";

/// Fields that say which run it is; runs that agree in them are compared.
const KEYS: [&str; 5] = ["model", "tokenizer", "lp", "placeholder", "device"];

/// The largest file that is read, in bytes: traces of long runs reach gigabytes.
const MAX_BYTES: u64 = 4 << 30;

/// Two records, matched.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CompareReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The names of both files.
    pub files: [String; 2],
    /// What they are.
    pub kind: RecordKind,
    /// Runs of records, or categories of traces, that both have.
    pub groups: Vec<Group>,
    /// Runs or categories that only the first has, then only the second.
    pub unmatched: [Vec<String>; 2],
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// `drift eval --json`.
    Eval,
    /// Chrome's trace event format.
    ChromeTrace,
}

/// A run or a category of events that both files have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// Its name: the fields of the key that differ between runs, or the category.
    pub name: String,
    /// The figures of both, in the order of the first file.
    pub figures: Vec<Figure>,
}

/// One figure of both files.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// The field's name, with dots between levels; of traces `name: seconds` and `name: events`.
    pub name: String,
    /// In the first and in the second file; none where a file lacks it.
    pub values: [Option<f64>; 2],
    /// The second by the first; none unless both are known and the first is not 0.
    pub ratio: Option<f64>,
}

impl Figure {
    fn new(name: String, values: [Option<f64>; 2]) -> Self {
        let ratio = match values {
            [Some(a), Some(b)] if a != 0.0 => Some(b / a),
            _ => None,
        };
        Figure { name, values, ratio }
    }
}

/// Reads both files and matches them.
///
/// # Errors
/// [`Error::Input`] if a file is neither a record nor a trace, or if they are not the same kind.
pub fn compare(paths: [&Path; 2]) -> Result<CompareReport> {
    let [a, b] = [read(paths[0])?, read(paths[1])?];
    let (kind, groups) = match (a, b) {
        (Record::Eval(a), Record::Eval(b)) => (RecordKind::Eval, [a, b]),
        (Record::Trace(a), Record::Trace(b)) => (RecordKind::ChromeTrace, [a, b]),
        _ => {
            let problem = format!("is not the same kind of record as {}", paths[0].display());
            return Err(Error::input(paths[1].display(), problem, "give two records or two Chrome traces"));
        }
    };
    let only = |own: usize| {
        let other = &groups[1 - own];
        let lacks = |name: &&String| !other.iter().any(|(known, _)| known == *name);
        groups[own].iter().map(|(name, _)| name).filter(lacks).cloned().collect()
    };
    let unmatched = [only(0), only(1)];
    let find = |name: &str| groups[1].iter().find(|(known, _)| known == name).map(|(_, figures)| figures);
    let matched = groups[0].iter().filter_map(|(name, a)| Some(group(name, a, find(name)?)));
    let files = paths.map(io::file_name);
    Ok(CompareReport { schema: SCHEMA, files, kind, groups: matched.collect(), unmatched })
}

/// Figures by name, in order.
type Figures = Vec<(String, f64)>;

/// Category, name and begin, in microseconds, of an event.
type Begun = (String, String, f64);

enum Record {
    Eval(Vec<(String, Figures)>),
    Trace(Vec<(String, Figures)>),
}

fn group(name: &str, a: &Figures, b: &Figures) -> Group {
    let value = |figures: &Figures, name: &str| figures.iter().find(|(n, _)| n == name).map(|(_, v)| *v);
    let both = a.iter().map(|(name, v)| Figure::new(name.clone(), [Some(*v), value(b, name)]));
    let second = b.iter().filter(|(name, _)| value(a, name).is_none());
    let second = second.map(|(name, v)| Figure::new(name.clone(), [None, Some(*v)]));
    Group { name: name.to_owned(), figures: both.chain(second).collect() }
}

fn read(path: &Path) -> Result<Record> {
    let refuse = |problem: String| {
        Error::input(path.display(), problem, "give a record of `drift eval --json` or a Chrome trace")
    };
    let bytes = io::read_to_limit(path, MAX_BYTES)?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|e| refuse(format!("is not JSON: {e}")))?;
    if let Some(runs) = value.get("runs").and_then(Value::as_array) {
        return Ok(Record::Eval(
            eval_runs(runs).ok_or_else(|| refuse("holds a run that is no object".to_owned()))?,
        ));
    }
    let events = value.get("traceEvents").unwrap_or(&value);
    match events.as_array() {
        Some(events) => Ok(Record::Trace(trace_categories(events))),
        None => Err(refuse("holds neither `runs` nor `traceEvents`".to_owned())),
    }
}

/// The runs of a record with all their numbers; a name that comes twice is numbered.
fn eval_runs(runs: &[Value]) -> Option<Vec<(String, Figures)>> {
    let runs: Vec<&Map<String, Value>> = runs.iter().map(Value::as_object).collect::<Option<_>>()?;
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let named = runs.into_iter().map(|run| {
        let parts: Vec<&str> = KEYS.iter().filter_map(|key| run.get(*key)?.as_str()).collect();
        let mut name = parts.join(", ");
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            name.push_str(&format!(" ({count})"));
        }
        let mut figures = Vec::new();
        for (key, value) in run {
            flatten(key, value, &mut figures);
        }
        (name, figures)
    });
    Some(named.collect())
}

fn flatten(name: &str, value: &Value, out: &mut Figures) {
    match value {
        Value::Number(number) => out.extend(number.as_f64().map(|number| (name.to_owned(), number))),
        Value::Object(fields) => {
            for (key, value) in fields {
                flatten(&format!("{name}.{key}"), value, out);
            }
        }
        // Lists are distributions and examples, not figures.
        _ => {}
    }
}

/// Seconds and events of each name, by category; complete events (`X`) and pairs of begin and end (`B`, `E`).
///
/// Nested events are all counted, as profilers show them: the seconds of a name include what it calls.
fn trace_categories(events: &[Value]) -> Vec<(String, Figures)> {
    let mut sums: BTreeMap<String, BTreeMap<String, (f64, u64)>> = BTreeMap::new();
    // By process and thread: category, name and begin of what is not over.
    let mut open: BTreeMap<(String, String), Vec<Begun>> = BTreeMap::new();
    let mut add = |category: String, name: String, micros: f64| {
        let sum = sums.entry(category).or_default().entry(name).or_default();
        sum.0 += micros / 1e6;
        sum.1 += 1;
    };
    for event in events {
        let text =
            |key: &str| event.get(key).map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned));
        let number = |key: &str| event.get(key).and_then(Value::as_f64);
        let category = text("cat").unwrap_or_else(|| "events".to_owned());
        let name = text("name").unwrap_or_default();
        let row = (text("pid").unwrap_or_default(), text("tid").unwrap_or_default());
        match (event.get("ph").and_then(Value::as_str), number("ts")) {
            (Some("X"), _) => add(category, name, number("dur").unwrap_or(0.0)),
            (Some("B"), Some(start)) => open.entry(row).or_default().push((category, name, start)),
            (Some("E"), Some(end)) => {
                if let Some((category, name, start)) = open.get_mut(&row).and_then(Vec::pop) {
                    add(category, name, end - start);
                }
            }
            _ => {}
        }
    }
    sums.into_iter().map(|(category, names)| (category, by_time(names))).collect()
}

/// Figures of each name, most seconds first.
fn by_time(names: BTreeMap<String, (f64, u64)>) -> Figures {
    let mut names: Vec<(String, (f64, u64))> = names.into_iter().collect();
    names.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    let figures = |(name, (seconds, events)): (String, (f64, u64))| {
        [(format!("{name}: seconds"), seconds), (format!("{name}: events"), events as f64)]
    };
    names.into_iter().flat_map(figures).collect()
}
