//! The way through: files in, a report out.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rayon::prelude::*;
use serde::Serialize;

use super::block::{BlockVerdict, dialect_of};
use super::counts::{Counts, DriftHistogram};
use super::read::{self, Record};
use super::sample::{Sample, judge, split};
use crate::corpus::{SKIPPED_LISTED, Skipped};
use crate::error::Result;
use crate::job::{InputHash, Job, Provenance, Unit};
use crate::stats::interval::{Interval, LEVEL, wilson};
use crate::text::Dialect;
use crate::text::skeleton::fill;
use crate::tokenizer::{Tokenizer, block_ranges};

/// The schema of [`AuditReport`].
pub const SCHEMA: &str = "drift.audit/1";

/// Examples of each kind of fault that a report holds.
const EXAMPLES: usize = 5;

/// Samples that one task judges.
const CHUNK: usize = 256;

/// What to judge.
pub struct AuditPlan {
    /// Files of generated text.
    pub files: Vec<PathBuf>,
    /// How numbers should be written; told from the texts if not given.
    pub dialect: Option<Dialect>,
    /// For drift.
    pub tokenizer: Option<Tokenizer>,
    /// What drift is counted against, without brackets.
    pub placeholder: String,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// What made it, from what.
    pub provenance: Provenance,
    /// How numbers should be written.
    pub dialect: Dialect,
    /// Where the dialect is from.
    pub dialect_from: DialectFrom,
    /// The tokenizer of drift.
    pub tokenizer: Option<String>,
    /// What drift is counted against; none without a tokenizer.
    pub placeholder: Option<String>,
    /// By file, and by logit processor where records name one.
    pub files: Vec<FileReport>,
    /// Of all files.
    pub total: FileReport,
    /// The first faults of each kind.
    pub examples: Vec<Example>,
    /// Records that could not be judged.
    pub skipped: u64,
    /// The first of them.
    pub skipped_records: Vec<Skipped>,
}

/// Where the dialect is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DialectFrom {
    /// The user.
    Given,
    /// The first numbers of the blocks.
    Texts,
    /// Nothing told the dialects apart.
    Assumed,
}

/// The samples of one file, or of one logit processor in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileReport {
    /// The file's name.
    pub file: String,
    /// The logit processor, where records name one.
    pub lp: Option<String>,
    /// What was found.
    #[serde(flatten)]
    pub counts: Counts,
    /// The interval of the share that passed, Wilson's at 95 %.
    pub pass_interval: Option<Interval>,
    /// Blocks by drift, F - T; none without a tokenizer.
    pub drift: Option<DriftHistogram>,
}

/// A faulty block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Example {
    /// The file.
    pub file: String,
    /// Where in it.
    pub record: String,
    /// The text between the brackets.
    pub block: String,
    /// What is wrong: `letters`, `junk`, `truncated` or `invented`.
    pub fault: &'static str,
}

impl FileReport {
    fn new(file: &str, lp: Option<&str>, plan: &AuditPlan, dialect: Dialect) -> Self {
        FileReport {
            file: file.to_owned(),
            lp: lp.map(str::to_owned),
            counts: Counts::new(dialect),
            pass_interval: None,
            drift: plan.tokenizer.is_some().then(DriftHistogram::default),
        }
    }

    fn merge(&mut self, other: &FileReport) {
        self.counts.merge(&other.counts);
        if let (Some(all), Some(more)) = (&mut self.drift, &other.drift) {
            all.merge(more);
        }
        self.pass_interval = wilson(self.counts.passed, self.counts.samples, LEVEL);
    }
}

/// Reads and judges.
///
/// # Errors
/// If a file cannot be read or holds no text, the tokenizer cannot encode one, or the job was cancelled.
pub fn audit(plan: &AuditPlan, job: &Job) -> Result<AuditReport> {
    job.observer().begin("reading", Some(plan.files.len() as u64), Unit::Items);
    let mut files: Vec<(InputHash, Vec<Record>)> = Vec::new();
    let mut skipped = Vec::new();
    for path in &plan.files {
        job.check()?;
        let file = read::read(path)?;
        skipped.extend(file.skipped);
        files.push((file.input, file.records));
        job.observer().advance(1);
    }
    job.observer().end();
    let (dialect, dialect_from) = dialect(plan, &files);
    let mut report = AuditReport {
        schema: SCHEMA,
        provenance: Provenance::of(files.iter().map(|(input, _)| input.clone()).collect()),
        dialect,
        dialect_from,
        tokenizer: plan.tokenizer.as_ref().map(|tokenizer| tokenizer.name.clone()),
        placeholder: plan.tokenizer.as_ref().map(|_| plan.placeholder.clone()),
        files: Vec::new(),
        total: FileReport::new("total", None, plan, dialect),
        examples: Vec::new(),
        skipped: skipped.len() as u64,
        skipped_records: skipped.into_iter().take(SKIPPED_LISTED).collect(),
    };
    let samples = files.iter().map(|(_, records)| records.len() as u64).sum();
    job.observer().begin("judging", Some(samples), Unit::Items);
    for (input, records) in &files {
        let parts: Vec<Part> = records
            .par_chunks(CHUNK)
            .map(|chunk| {
                job.check()?;
                let part = judge_records(plan, dialect, &input.name, chunk)?;
                job.observer().advance(chunk.len() as u64);
                Ok(part)
            })
            .collect::<Result<_>>()?;
        report.add(plan, &input.name, &parts);
    }
    job.observer().end();
    Ok(report)
}

/// The dialect of a run.
fn dialect(plan: &AuditPlan, files: &[(InputHash, Vec<Record>)]) -> (Dialect, DialectFrom) {
    if let Some(dialect) = plan.dialect {
        return (dialect, DialectFrom::Given);
    }
    let answers = files.iter().flat_map(|(_, records)| records).map(|record| split(&record.text).answer);
    let blocks = answers.flat_map(|answer| block_ranges(answer).into_iter().map(move |range| &answer[range]));
    match dialect_of(blocks) {
        Some(dialect) => (dialect, DialectFrom::Texts),
        None => (Dialect::Fixed, DialectFrom::Assumed),
    }
}

/// What was found in a part of a file, by logit processor.
struct Part {
    by_lp: BTreeMap<Option<String>, FileReport>,
    examples: Vec<Example>,
}

fn judge_records(plan: &AuditPlan, dialect: Dialect, file: &str, records: &[Record]) -> Result<Part> {
    let mut part = Part { by_lp: BTreeMap::new(), examples: Vec::new() };
    for record in records {
        let Record { place, prompt, text, lp } = record;
        let answer = split(text);
        let sample =
            Sample { prompt: prompt.as_deref(), answer: answer.answer, ended: answer.ended, dialect };
        let judged = judge(&sample);
        let group = part
            .by_lp
            .entry(lp.clone())
            .or_insert_with(|| FileReport::new(file, lp.as_deref(), plan, dialect));
        group.counts.add(&judged, prompt.is_some());
        if let (Some(tokenizer), Some(drift)) = (&plan.tokenizer, &mut group.drift) {
            let template = fill(&judged.skeleton, &plan.placeholder);
            drift.add(tokenizer, answer.answer, &template, |_| true)?;
        }
        for (verdict, range) in judged.blocks.iter().zip(block_ranges(answer.answer)) {
            if let Some(fault) = fault(verdict) {
                let block = answer.answer[range].to_owned();
                let example = Example { file: file.to_owned(), record: place.clone(), block, fault };
                keep(&mut part.examples, example);
            }
        }
    }
    Ok(part)
}

/// The worst fault of a block.
fn fault(verdict: &BlockVerdict) -> Option<&'static str> {
    let faults = [
        (verdict.junk_letters, "letters"),
        (verdict.junk_strict, "junk"),
        (verdict.truncated == Some(true), "truncated"),
        (verdict.invented, "invented"),
    ];
    faults.into_iter().find(|(found, _)| *found).map(|(_, fault)| fault)
}

/// Keeps an example if there are few of its kind.
fn keep(examples: &mut Vec<Example>, example: Example) {
    if examples.iter().filter(|known| known.fault == example.fault).count() < EXAMPLES {
        examples.push(example);
    }
}

impl AuditReport {
    /// Adds the parts of a file, in order.
    fn add(&mut self, plan: &AuditPlan, file: &str, parts: &[Part]) {
        let mut groups: BTreeMap<&Option<String>, FileReport> = BTreeMap::new();
        for part in parts {
            for (lp, found) in &part.by_lp {
                let group = groups
                    .entry(lp)
                    .or_insert_with(|| FileReport::new(file, lp.as_deref(), plan, self.dialect));
                group.merge(found);
            }
            part.examples.iter().for_each(|example| keep(&mut self.examples, example.clone()));
        }
        for group in groups.into_values() {
            self.total.merge(&group);
            self.files.push(group);
        }
    }
}
