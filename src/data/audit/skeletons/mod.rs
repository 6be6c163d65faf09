//! Judges texts by a skeleton and the data of their prompts: format, composition, counts, ranges, repeats and geometry.
//!
//! `read` reads prompts and texts and joins them, `cell` measures the geometry of a text, `report` is the result, and `rows` sums up
//! and compares rows.

mod cell;
mod read;
mod report;
mod rows;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use rayon::prelude::*;

pub use cell::TextGeometry;
pub use read::Prompts;
pub use report::{
    CLOSE_ANGSTROM, DISTANCE_QUANTILES, RowGeometry, SkeletonComparison, SkeletonExample, SkeletonFigure,
    SkeletonReport, SkeletonRow, SkeletonVerdict,
};

use crate::corpus::{SKIPPED_LISTED, SkippedRecord};
use drift_core::io::FileNames;
use drift_core::job::InputHash;
use drift_core::skeleton::{Bound, FaultKind, Reading, Skeleton};
use drift_core::{Job, Result};
use read::TextsFile;

/// What is judged, and by what.
#[derive(Debug)]
pub struct SkeletonAudit {
    /// The skeleton.
    pub skeleton: Skeleton,
    /// The file of prompts.
    pub prompts: PathBuf,
    /// The files of texts.
    pub files: Vec<PathBuf>,
    /// The field of records that names their row; a file whose records lack it is a row of its own.
    pub row_field: String,
    /// The row with which all others are compared; `None` for no comparison.
    pub against_row: Option<String>,
}

/// The report, and the verdict on each text in the order of the files.
#[derive(Debug)]
pub struct SkeletonAuditResult {
    /// The report.
    pub report: SkeletonReport,
    /// The verdicts.
    pub verdicts: Vec<SkeletonVerdict>,
}

/// A text to be judged.
struct Text {
    file: usize,
    record: String,
    row: String,
    prompt: usize,
    generation: usize,
    repeats: bool,
    /// Whether it is a whole file.
    is_file: bool,
    text: String,
}

impl SkeletonAudit {
    /// Reads and judges the texts.
    ///
    /// # Errors
    /// If a file cannot be read, a text has no prompt, a prompt lacks a field, or no row is called like the base row.
    pub fn run(&self, job: &Job) -> Result<SkeletonAuditResult> {
        let prompts = Prompts::read(&self.prompts, job)?;
        let (mut gathered, file_names) = (TextCollection::default(), FileNames::new(&self.files));
        for path in &self.files {
            let file = read::texts(path, &prompts, &self.row_field, job)?;
            let places = prompts.join(path, &file)?;
            gathered.add(&file_names.of(path), file, &places, self.row_field == "file");
        }
        let mut bound: Vec<Option<Bound<'_>>> = prompts.data.iter().map(|_| None).collect();
        for text in &gathered.texts {
            if bound[text.prompt].is_none() {
                let (data, place) = &prompts.data[text.prompt];
                bound[text.prompt] = Some(self.skeleton.bind(data, place)?);
            }
        }
        let names: Vec<String> = self.files.iter().map(|path| path.display().to_string()).collect();
        let judged: Vec<Option<SkeletonVerdict>> = gathered
            .texts
            .par_iter()
            .map(|text| {
                job.check().ok()?;
                Some(verdict(bound[text.prompt].as_ref()?, text, &names))
            })
            .collect();
        job.check()?;
        let verdicts: Vec<SkeletonVerdict> = judged.into_iter().flatten().collect();
        let texts: Vec<&str> = gathered.texts.iter().map(|text| text.text.as_str()).collect();
        let rows = rows::rows(&verdicts);
        let base = self.against_row.as_deref().map(|name| rows::base(&rows, name)).transpose()?;
        let comparisons =
            base.map(|base| rows::comparisons(&verdicts, &texts, &rows, base)).unwrap_or_default();
        let report = SkeletonReport {
            schema: report::REPORT_SCHEMA,
            skeleton: self.skeleton.name.clone(),
            source: self.skeleton.source.clone(),
            prompts: prompts.input,
            inputs: gathered.inputs,
            against_row: base.map(|base| rows[base].row.clone()),
            comparisons,
            examples: examples(&verdicts),
            rows,
            skipped: gathered.skipped,
            skipped_records: gathered.skipped_records,
        };
        Ok(SkeletonAuditResult { report, verdicts })
    }
}

/// The texts of all files.
#[derive(Default)]
struct TextCollection {
    inputs: Vec<InputHash>,
    texts: Vec<Text>,
    skipped: u64,
    skipped_records: Vec<SkippedRecord>,
    /// By row and prompt, the texts so far.
    seen: HashMap<(String, usize), (usize, HashSet<String>)>,
}

impl TextCollection {
    fn add(&mut self, name: &str, file: TextsFile, prompts: &[usize], by_file: bool) {
        let index = self.inputs.len();
        self.inputs.push(file.input);
        self.skipped += file.skipped;
        self.skipped_records.extend(file.skipped_records);
        self.skipped_records.truncate(SKIPPED_LISTED);
        for (record, prompt) in file.records.into_iter().zip(prompts) {
            let row = record.row.filter(|_| !by_file).unwrap_or_else(|| name.to_owned());
            for text in record.texts {
                let (count, texts) = self.seen.entry((row.clone(), *prompt)).or_default();
                let generation = *count;
                *count += 1;
                let repeats = !texts.insert(text.clone());
                let (is_file, record, row) = (record.is_file, record.place.clone(), row.clone());
                self.texts.push(Text {
                    file: index,
                    record,
                    row,
                    prompt: *prompt,
                    generation,
                    repeats,
                    is_file,
                    text,
                });
            }
        }
    }
}

/// Returns a text without the special token at its end, `<|im_end|>` or `</s>`, which is a token and not text; `None` without one.
fn without_special_token(text: &str) -> Option<&str> {
    let named = ["</s>", "<eos>", "<end_of_turn>"].iter().find_map(|token| text.strip_suffix(token));
    named.or_else(|| {
        let at = text.strip_suffix("|>").and_then(|inside| inside.rfind("<|"))?;
        let name = &text[at + 2..text.len() - 2];
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_').then(|| &text[..at])
    })
}

impl Text {
    /// Reads the text. A line break at the end of a file does not count, unless the skeleton has one there.
    fn reading(&self, bound: &Bound<'_>) -> Reading {
        let mut texts = vec![&*self.text];
        while let Some(shorter) = texts.last().and_then(|text| without_special_token(text)) {
            texts.push(shorter);
        }
        let text = texts[texts.len() - 1];
        let reading = bound.read(text);
        let bare = text.strip_suffix('\n').filter(|_| self.is_file && !reading.passed());
        let bare = bare.map(|text| bound.read(text.strip_suffix('\r').unwrap_or(text)));
        let read = bare.filter(|bare| bare.faults.len() < reading.faults.len()).unwrap_or(reading);
        // The skeleton's own end may look like a token.
        let mut longer =
            texts[..texts.len() - 1].iter().filter(|_| !read.passed()).map(|text| bound.read(text));
        longer.rfind(Reading::passed).unwrap_or(read)
    }
}

fn verdict(bound: &Bound<'_>, text: &Text, files: &[String]) -> SkeletonVerdict {
    let reading = text.reading(bound);
    let geometry = bound.skeleton.geometry.as_ref().and_then(|slots| cell::geometry(slots, &reading));
    SkeletonVerdict {
        file: files[text.file].clone(),
        record: text.record.clone(),
        row: text.row.clone(),
        prompt: text.prompt,
        generation: text.generation,
        passed: reading.passed(),
        why: reading.faults.first().map(|fault| fault.kind),
        repeated_items: reading.repeated_items(),
        repeats_text: text.repeats,
        faults: reading.faults,
        counts: reading.counts,
        geometry,
    }
}

/// Returns the first fault of each kind in each row.
fn examples(verdicts: &[SkeletonVerdict]) -> Vec<SkeletonExample> {
    let mut seen: HashSet<(&str, FaultKind)> = HashSet::new();
    let mut examples = Vec::new();
    for verdict in verdicts {
        for fault in &verdict.faults {
            if seen.insert((&verdict.row, fault.kind)) {
                let place = format!("{}: {}", verdict.file, verdict.record);
                examples.push(SkeletonExample { row: verdict.row.clone(), place, fault: fault.clone() });
            }
        }
    }
    examples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_tokens_are_no_text() {
        assert_eq!(without_special_token("a</CIF>\n<|im_end|><|endoftext|>"), Some("a</CIF>\n<|im_end|>"));
        assert_eq!(without_special_token("a</s></s>"), Some("a</s>"));
        for own in ["a</CIF>", "<| a |>", "<sites>1</sites>"] {
            assert_eq!(without_special_token(own), None);
        }
    }
}
