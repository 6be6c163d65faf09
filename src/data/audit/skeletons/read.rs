//! Reads prompts with their data, and texts, and finds the prompt of each text.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Map, Value};

use crate::corpus::fields::TEXT_FIELDS;
use crate::corpus::{MAX_LINE_BYTES, SKIPPED_LISTED, SkippedRecord};
use drift_core::error::excerpt;
use drift_core::io;
use drift_core::job::InputHash;
use drift_core::{Error, Job, Result};

/// The largest size of a file of texts, in bytes, decompressed.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// Fields of texts that other programs write, besides those of enriched text.
const MORE_FIELDS: [&str; 4] = ["response", "responses", "output", "answer"];

/// The prompts of a file.
#[derive(Debug)]
pub struct Prompts {
    /// The file.
    pub input: InputHash,
    /// The data of each prompt, with its place for messages.
    pub data: Vec<(Map<String, Value>, String)>,
    /// The field by which texts are joined: `prompt`, or `smiles` if no prompt has one.
    joined_by: &'static str,
    /// By this field, as JSON: the indices of prompts.
    by_prompt: HashMap<String, Vec<usize>>,
}

/// A text of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// `line 3`, for messages.
    pub place: String,
    /// The prompt as JSON, if the record has one.
    prompt: Option<String>,
    /// The value of the field that names its row.
    pub row: Option<String>,
    /// The texts.
    pub texts: Vec<String>,
    /// Whether the whole file is the text: then an editor may have put a line break behind it.
    pub is_file: bool,
}

/// The texts of a file.
#[derive(Debug)]
pub(super) struct TextsFile {
    pub input: InputHash,
    pub records: Vec<Record>,
    pub skipped: u64,
    pub skipped_records: Vec<SkippedRecord>,
}

/// A line that is not empty, with its number.
struct Line<'t> {
    number: u64,
    bytes: &'t [u8],
}

/// Returns the lines of a file that are not empty.
fn lines<'t>(path: &Path, bytes: &'t [u8]) -> Result<Vec<Line<'t>>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let all = bytes.split(|byte| *byte == b'\n').zip(1..).map(|(bytes, number)| Line { number, bytes });
    let lines: Vec<Line<'t>> = all.filter(|line| !line.bytes.trim_ascii().is_empty()).collect();
    if let Some(line) = lines.iter().find(|line| line.bytes.len() > MAX_LINE_BYTES) {
        let problem = format!("line {} is longer than {} MiB", line.number, MAX_LINE_BYTES >> 20);
        return Err(Error::input(path.display(), problem, "split it"));
    }
    Ok(lines)
}

fn object(line: &[u8]) -> std::result::Result<Map<String, Value>, String> {
    match serde_json::from_slice(line) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(format!("{} is not a JSON object", excerpt(line))),
        Err(error) => Err(format!("{} is not JSON: {error}", excerpt(line))),
    }
}

impl Prompts {
    /// Reads a file with a JSON object a line: `{"prompt": …, fields}`.
    ///
    /// # Errors
    /// If the file cannot be read, has no line, or a line is no object. No line is skipped, because texts may be joined by order.
    pub fn read(path: &Path, job: &Job) -> Result<Self> {
        let whole = io::read_whole(path, MAX_FILE_BYTES, job)?;
        let lines = lines(path, &whole.bytes)?;
        let mut data = Vec::with_capacity(lines.len());
        for Line { number, bytes } in lines {
            let place = format!("{}: line {number}", path.display());
            let object = object(bytes).map_err(|problem| {
                Error::input(&place, problem, "give a JSON object a line, {\"prompt\": …, fields}")
            })?;
            data.push((object, place));
        }
        if data.is_empty() {
            return Err(Error::input(path.display(), "no prompt is in it", "give a JSON object a line"));
        }
        let has = |field: &str| {
            data.iter().any(|(object, _): &(Map<String, Value>, String)| object.contains_key(field))
        };
        let joined_by = if !has("prompt") && has("smiles") { "smiles" } else { "prompt" };
        let mut by_prompt: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, (object, _)) in data.iter().enumerate() {
            if let Some(prompt) = object.get(joined_by) {
                by_prompt.entry(prompt.to_string()).or_default().push(at);
            }
        }
        Ok(Prompts { input: whole.source, data, joined_by, by_prompt })
    }

    /// By record of a file, the index of its prompt: by the text of the prompt, or by order.
    pub(super) fn join(&self, path: &Path, file: &TextsFile) -> Result<Vec<usize>> {
        let place = |record: &Record| format!("{}: {}", path.display(), record.place);
        if file.records.iter().any(|record| record.prompt.is_none()) {
            return match (file.records.len(), self.data.len()) {
                (_, 1) => Ok(vec![0; file.records.len()]),
                (texts, prompts) if texts == prompts => Ok((0..texts).collect()),
                (texts, prompts) => {
                    let problem =
                        format!("{texts} texts without a `prompt` cannot be joined to {prompts} prompts");
                    let remedy =
                        "give each record its `prompt`, or as many records as prompts, in their order";
                    Err(Error::input(path.display(), problem, remedy))
                }
            };
        }
        let mut found = Vec::with_capacity(file.records.len());
        for record in &file.records {
            let places = record.prompt.as_ref().and_then(|prompt| self.by_prompt.get(prompt));
            let Some(places) = places else {
                return Err(Error::input(
                    place(record),
                    "its prompt is none of the prompts",
                    "give its prompt too",
                ));
            };
            let first = &self.data[places[0]].0;
            if places.iter().any(|other| self.data[*other].0 != *first) {
                let problem = "its prompt occurs with different fields";
                return Err(Error::input(
                    place(record),
                    problem,
                    "give texts without `prompt`, in the order of the prompts",
                ));
            }
            found.push(places[0]);
        }
        Ok(found)
    }
}

/// Reads a file of texts: a JSON object a line, an array of them, or else one text.
///
/// # Errors
/// If the file cannot be read or holds no text.
pub(super) fn texts(path: &Path, prompts: &Prompts, row_field: &str, job: &Job) -> Result<TextsFile> {
    let whole = io::read_whole(path, MAX_FILE_BYTES, job)?;
    let lines = lines(path, &whole.bytes)?;
    let mut file =
        TextsFile { input: whole.source, records: Vec::new(), skipped: 0, skipped_records: Vec::new() };
    // The first line may be cut; a text of a skeleton may hold an object, too, but seldom begins like one.
    let begins_like_json = lines.first().is_some_and(|line| line.bytes.trim_ascii_start().starts_with(b"{"));
    let is_json = begins_like_json && lines.iter().any(|line| object(line.bytes).is_ok());
    if let Some(entries) = array(&whole.bytes) {
        for (number, entry) in (1..).zip(entries) {
            let place = format!("entry {number}");
            let object = match entry {
                Value::Object(object) => Ok(object),
                other => Err(format!("{} is not a JSON object", excerpt(other.to_string().as_bytes()))),
            };
            let read = object.and_then(|object| record(object, &place, prompts.joined_by, row_field));
            file.push(path, place, read);
        }
    } else if !is_json && !lines.is_empty() {
        let text = String::from_utf8(without_mark(&whole.bytes).to_vec());
        let text =
            text.map_err(|_| Error::input(path.display(), "is not UTF-8", "give JSON Lines, or a text"))?;
        let place = "the text".to_owned();
        file.records.push(Record { place, prompt: None, row: None, texts: vec![text], is_file: true });
    } else {
        for Line { number, bytes } in lines {
            let place = format!("line {number}");
            let read = object(bytes).and_then(|object| record(object, &place, prompts.joined_by, row_field));
            file.push(path, place, read);
        }
    }
    if file.records.is_empty() {
        return Err(Error::input(
            path.display(),
            "no text is in it",
            "give JSON Lines with `text`, or a text",
        ));
    }
    Ok(file)
}

/// Returns the entries of a file that is one JSON array with an object.
fn array(bytes: &[u8]) -> Option<Vec<Value>> {
    let text = without_mark(bytes).trim_ascii_start();
    let entries: Vec<Value> = text.starts_with(b"[").then(|| serde_json::from_slice(text).ok())??;
    entries.iter().any(Value::is_object).then_some(entries)
}

/// Returns the bytes without a byte-order mark.
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

impl TextsFile {
    /// Adds a record, or lists why there is none.
    fn push(&mut self, path: &Path, place: String, read: std::result::Result<Record, String>) {
        match read {
            Ok(record) => self.records.push(record),
            Err(reason) => {
                self.skipped += 1;
                if self.skipped_records.len() < SKIPPED_LISTED {
                    let file = path.display().to_string();
                    self.skipped_records.push(SkippedRecord { file, record: place, reason });
                }
            }
        }
    }
}

fn record(
    object: Map<String, Value>,
    place: &str,
    joined_by: &str,
    row_field: &str,
) -> std::result::Result<Record, String> {
    let value = MORE_FIELDS.iter().chain(&TEXT_FIELDS).find_map(|field| object.get(*field));
    let texts: Option<Vec<String>> = match value {
        Some(Value::String(text)) => Some(vec![text.clone()]),
        Some(Value::Array(list)) => list.iter().map(|text| text.as_str().map(str::to_owned)).collect(),
        _ => None,
    };
    let texts = texts.filter(|texts| !texts.is_empty()).ok_or("it has no `text`")?;
    let row = match object.get(row_field) {
        Some(Value::String(name)) => Some(name.clone()),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => Some(value.to_string()),
        _ => None,
    };
    let prompt = object.get(joined_by).map(Value::to_string);
    Ok(Record { place: place.to_owned(), prompt, row, texts, is_file: false })
}
