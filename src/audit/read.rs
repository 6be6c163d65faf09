//! Reading generated text: 3DMolGen's smoke reports, JSON Lines, plain text; each also gzipped. Known by content.
//!
//! | content | samples |
//! | --- | --- |
//! | one JSON object with `passes` or `failures` | a smoke report: each entry of both, or each of its `all_generations` |
//! | one JSON array of objects | each entry |
//! | one JSON object a line | each line |
//! | lines that hold enriched text or its tags | each line |
//!
//! The text of an object is its `decoded_text`, `text`, `completion`, `generated_text`, `embedded_smiles` or
//! `embedded_smiles_stripped`, the last two being what stands between the conformer tags; its prompt `prompt_smiles`, `smiles` or `canonical_smiles`, else what stands between the
//! SMILES tags of the text.

use std::path::Path;

use serde_json::Value;

use super::sample::split;
use crate::corpus::{MAX_LINE_BYTES, Skipped};
use crate::error::{Error, Result};
use crate::io;
use crate::job::{InputHash, Job};
use crate::text::graph::implicit_hydrogens;
use crate::text::{CONFORMER_OPEN, SMILES_OPEN, tagged};

/// The largest file that is read, decompressed: files are read whole.
pub const MAX_FILE_BYTES: u64 = 1 << 30;

/// Where the text of a record may be, the first that is there.
const TEXT_FIELDS: [&str; 6] =
    ["decoded_text", "text", "completion", "generated_text", "embedded_smiles", "embedded_smiles_stripped"];

/// Where the prompt of a record may be, the first that is there.
const PROMPT_FIELDS: [&str; 3] = ["prompt_smiles", "smiles", "canonical_smiles"];

/// What a file must hold.
const KNOWN: &str = "give a smoke report of 3DMolGen, JSON Lines or plain enriched text";

/// One generated text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Where it stands in the file: `line 12`, `passes[3]`.
    pub place: String,
    /// The SMILES of its prompt.
    pub prompt: Option<String>,
    /// As it is in the file; may hold the prompt too.
    pub text: String,
    /// The logit processor, where the record names one.
    pub lp: Option<String>,
    /// The lists of a smoke report that its molecule stands in, and which of its texts it is, the first being the one that
    /// 3DMolGen validates.
    pub listed: Option<Listed>,
}

/// Where a text stands in a smoke report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// Whether its molecule is among the passes.
    pub in_passes: bool,
    /// Which of the molecule's texts it is, from 0.
    pub generation: usize,
    /// Whether the report holds all texts of the molecule.
    pub with_all: bool,
}

/// What a smoke report says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SmokeHead {
    /// `metadata.version`: the logit processor's, or `none`.
    pub version: Option<String>,
    /// `metadata.processor_type`.
    pub processor_type: Option<String>,
    /// `num_passed`.
    pub num_passed: Option<u64>,
    /// `num_failed`.
    pub num_failed: Option<u64>,
    /// `summary.parse_failures`.
    pub parse_failures: Option<u64>,
}

/// What was read of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRecords {
    /// Name, size and hash.
    pub input: InputHash,
    /// The good records, in order.
    pub records: Vec<Record>,
    /// The others.
    pub skipped: Vec<Skipped>,
    /// Of a smoke report.
    pub head: Option<SmokeHead>,
}

/// Reads a file. Records that hold no text, or a prompt that is no SMILES, are skipped and listed.
///
/// # Errors
/// If the file cannot be read, is damaged or larger than [`MAX_FILE_BYTES`], or holds nothing of the above.
pub fn read(path: &Path) -> Result<FileRecords> {
    let io::Whole { bytes, source } = io::read_whole(path, MAX_FILE_BYTES, &Job::default())?;
    let mut file =
        Reader { name: path.display().to_string(), records: Vec::new(), skipped: Vec::new(), head: None };
    let content = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    if !file.document(content)? {
        file.lines(content);
    }
    if file.records.is_empty() {
        let problem = match file.skipped.first() {
            None => "holds no text".to_owned(),
            Some(first) => {
                let records = if file.skipped.len() == 1 { "record" } else { "records" };
                format!(
                    "holds no text: {} {records} skipped, first: {}: {}",
                    file.skipped.len(),
                    first.record,
                    first.reason
                )
            }
        };
        return Err(Error::input(&file.name, problem, KNOWN));
    }
    Ok(FileRecords { input: source, records: file.records, skipped: file.skipped, head: file.head })
}

struct Reader {
    name: String,
    records: Vec<Record>,
    skipped: Vec<Skipped>,
    head: Option<SmokeHead>,
}

impl SmokeHead {
    fn of(report: &serde_json::Map<String, Value>) -> Self {
        let string = |field: &str| Some(report.get("metadata")?.get(field)?.as_str()?.to_owned());
        let count = |field: &str| report.get(field)?.as_u64();
        SmokeHead {
            version: string("version"),
            processor_type: string("processor_type"),
            num_passed: count("num_passed"),
            num_failed: count("num_failed"),
            parse_failures: report.get("summary").and_then(|summary| summary.get("parse_failures")?.as_u64()),
        }
    }
}

impl Reader {
    /// Reads one JSON document; `false` if the file is none, but lines.
    fn document(&mut self, bytes: &[u8]) -> Result<bool> {
        let start = bytes.trim_ascii_start();
        let is_array = start.first() == Some(&b'[') && start[1..].trim_ascii_start().first() == Some(&b'{');
        let line = start.split(|b| *b == b'\n').next().unwrap_or_default();
        let first_line: Option<Value> = serde_json::from_slice(line).ok();
        let is_report = match &first_line {
            Some(row) => row.get("passes").is_some() || row.get("failures").is_some(),
            // An object that goes on behind its first line, unless that line is a broken record among others.
            None => {
                start.first() == Some(&b'{') && serde_json::from_slice::<serde::de::IgnoredAny>(start).is_ok()
            }
        };
        if !is_array && !is_report {
            if start.first() == Some(&b'{') && line.trim_ascii() == b"{" {
                let error = serde_json::from_slice::<serde::de::IgnoredAny>(start).err();
                let problem = error.map_or_else(String::new, |error| format!("not JSON: {error}"));
                return Err(Error::input(&self.name, problem, "is the file complete?"));
            }
            return Ok(false);
        }
        let document: Value = serde_json::from_slice(start)
            .map_err(|e| Error::input(&self.name, format!("not JSON: {e}"), "is the file complete?"))?;
        match document {
            Value::Array(rows) => self.rows("record", rows),
            Value::Object(mut fields) => {
                self.head = Some(SmokeHead::of(&fields));
                for list in ["passes", "failures"] {
                    match fields.remove(list) {
                        Some(Value::Array(rows)) => self.rows(list, rows),
                        None | Some(Value::Null) => {}
                        Some(_) => {
                            self.skip(list.to_owned(), "not an array".to_owned());
                        }
                    }
                }
            }
            _ => {}
        }
        Ok(true)
    }

    fn rows(&mut self, list: &str, rows: Vec<Value>) {
        for (index, row) in rows.iter().enumerate() {
            self.object(&format!("{list}[{index}]"), (list != "record").then_some(list == "passes"), row);
        }
    }

    fn lines(&mut self, bytes: &[u8]) {
        for (number, line) in (1..).zip(bytes.split(|b| *b == b'\n')) {
            let line = line.trim_ascii();
            let place = format!("line {number}");
            if line.is_empty() {
                continue;
            }
            if line.len() > MAX_LINE_BYTES {
                self.skip(place, format!("longer than {} MiB", MAX_LINE_BYTES >> 20));
                continue;
            }
            match std::str::from_utf8(line) {
                Err(e) => self.skip(place, format!("byte {}: not UTF-8", e.valid_up_to())),
                Ok(line) if line.starts_with('{') => match serde_json::from_str(line) {
                    Ok(row) => self.object(&place, None, &row),
                    Err(e) => self.skip(place, format!("not JSON: column {}", e.column())),
                },
                Ok(line) => self.add(place, None, line.to_owned(), (None, None)),
            }
        }
    }

    /// Adds the text or texts of an object; `in_passes` says in which list of a smoke report it stands.
    fn object(&mut self, place: &str, in_passes: Option<bool>, row: &Value) {
        if !row.is_object() {
            return self.skip(place.to_owned(), "not a JSON object".to_owned());
        }
        let string = |fields: &[&str]| fields.iter().find_map(|field| row.get(field)?.as_str());
        let (prompt, lp) = (string(&PROMPT_FIELDS), string(&["lp"]));
        let listed =
            |generation, with_all| in_passes.map(|in_passes| Listed { in_passes, generation, with_all });
        if let Some(all) = row.get("all_generations").and_then(Value::as_array).filter(|all| !all.is_empty())
        {
            for (index, one) in all.iter().enumerate() {
                let place = format!("{place}.all_generations[{index}]");
                match one.as_str().map(str::to_owned).or_else(|| text_of(one)) {
                    Some(text) => self.add(place, prompt, text, (lp, listed(index, true))),
                    None => self.skip(place, "holds no text".to_owned()),
                }
            }
            return;
        }
        match text_of(row) {
            Some(text) => self.add(place.to_owned(), prompt, text, (lp, listed(0, false))),
            None => self.skip(place.to_owned(), format!("holds none of {}", TEXT_FIELDS.join(", "))),
        }
    }

    fn add(
        &mut self,
        place: String,
        prompt: Option<&str>,
        text: String,
        (lp, listed): (Option<&str>, Option<Listed>),
    ) {
        let prompt = prompt.or(split(&text).prompt);
        if prompt.is_none()
            && !text.contains(CONFORMER_OPEN)
            && !text.contains(SMILES_OPEN)
            && !text.contains("]<")
        {
            return self.skip(place, "holds no enriched text".to_owned());
        }
        if let Some(Err(error)) = prompt.map(implicit_hydrogens) {
            return self.skip(place, format!("prompt: {error}"));
        }
        let (prompt, lp) = (prompt.map(str::to_owned), lp.map(str::to_owned));
        self.records.push(Record { place, prompt, text, lp, listed });
    }

    fn skip(&mut self, record: String, reason: String) {
        self.skipped.push(Skipped { file: self.name.clone(), record, reason }.shown());
    }
}

/// The text of an object; tags are put around one that is known to stand between them.
fn text_of(row: &Value) -> Option<String> {
    let (field, text) = TEXT_FIELDS.iter().find_map(|field| Some((field, row.get(field)?.as_str()?)))?;
    let is_inside = field.starts_with("embedded_smiles") && !text.contains(CONFORMER_OPEN);
    Some(if is_inside { tagged(text) } else { text.to_owned() })
}
