//! The way through: files in, a report out.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use rayon::prelude::*;
use serde::Serialize;

use super::block::{BlockVerdict, dialect_of};
use super::counts::{Counts, DriftHistogram};
use super::geometry::Conformation;
use super::read::{self, Record};
use super::references::{GeometryReport, References};
use super::sample::{Judged, Outcome, Sample, coordinates, judge, split};
use crate::corpus::{Files, ReadOptions, SKIPPED_LISTED, Skipped};
use crate::error::Result;
use crate::job::{InputHash, Job, Provenance, Unit};
use crate::stats::interval::{Interval, LEVEL, wilson};
use crate::text::skeleton::fill;
use crate::text::{Dialect, skeleton};
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
    /// Reference conformers, for geometry: files and folders, as `drift mine` takes them; none without.
    pub references: Vec<PathBuf>,
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
    /// Geometry beside the references; none without references.
    pub geometry: Option<GeometryReport>,
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

/// The samples of one row of the report.
struct Group {
    report: FileReport,
    /// Conformers that can be compared, by skeleton of the prompt; empty lists for prompts without.
    generated: BTreeMap<Box<str>, Vec<Conformation>>,
}

impl Group {
    fn new(file: &str, lp: Option<&str>, plan: &AuditPlan, dialect: Dialect) -> Self {
        let report = FileReport {
            file: file.to_owned(),
            lp: lp.map(str::to_owned),
            counts: Counts::new(dialect),
            pass_interval: None,
            drift: plan.tokenizer.is_some().then(DriftHistogram::default),
            geometry: None,
        };
        Group { report, generated: BTreeMap::new() }
    }

    /// Keeps the conformer of a sample that passes in the atom order of its prompt.
    fn keep_conformer(&mut self, prompt: &str, answer: &str, judged: &Judged) {
        // Prompts were parsed when they were read.
        let Ok(key) = skeleton::from_smiles(prompt) else { return };
        let usable = judged.outcome == Outcome::Pass && judged.skeleton == key;
        let conformers = self.generated.entry(key.into()).or_default();
        conformers.extend(coordinates(answer).filter(|_| usable));
    }

    fn merge(&mut self, other: &Group) {
        let report = &mut self.report;
        report.counts.merge(&other.report.counts);
        if let (Some(all), Some(more)) = (&mut report.drift, &other.report.drift) {
            all.merge(more);
        }
        report.pass_interval = wilson(report.counts.passed, report.counts.samples, LEVEL);
        for (skeleton, conformers) in &other.generated {
            self.generated.entry(skeleton.clone()).or_default().extend_from_slice(conformers);
        }
    }
}

/// Reads and judges.
///
/// # Errors
/// If a file cannot be read or holds no text, the tokenizer cannot encode one, the references hold none of the molecules,
/// or the job was cancelled.
pub fn audit(plan: &AuditPlan, job: &Job) -> Result<AuditReport> {
    let mut skipped = Vec::new();
    let files = read_files(plan, &mut skipped, job)?;
    let (dialect, dialect_from) = dialect(plan, &files);
    let samples = files.iter().map(|(_, records)| records.len() as u64).sum();
    let mut groups = Vec::new();
    let mut examples = Vec::new();
    job.observer().begin("judging", Some(samples), Unit::Items);
    for (input, records) in &files {
        groups.extend(judge_file(plan, dialect, &input.name, records, &mut examples, job)?);
    }
    job.observer().end();
    let mut total = Group::new("total", None, plan, dialect);
    groups.iter().for_each(|group| total.merge(group));
    let mut skipped_in_all = skipped.len() as u64;
    let mut inputs: Vec<InputHash> = files.into_iter().map(|(input, _)| input).collect();
    if !plan.references.is_empty() {
        let corpus = Files { inputs: plan.references.clone(), options: ReadOptions::default() };
        let wanted: HashSet<&str> = total.generated.keys().map(|skeleton| &**skeleton).collect();
        let (references, summary) = References::read(&corpus, &wanted, job)?;
        inputs.extend(summary.inputs);
        skipped_in_all += summary.skipped;
        skipped.extend(summary.skipped_records);
        for group in groups.iter_mut().chain([&mut total]) {
            group.report.geometry = Some(references.compare(&group.generated));
        }
    }
    Ok(AuditReport {
        schema: SCHEMA,
        provenance: Provenance::of(inputs),
        dialect,
        dialect_from,
        tokenizer: plan.tokenizer.as_ref().map(|tokenizer| tokenizer.name.clone()),
        placeholder: plan.tokenizer.as_ref().map(|_| plan.placeholder.clone()),
        files: groups.into_iter().map(|group| group.report).collect(),
        total: total.report,
        examples,
        skipped: skipped_in_all,
        skipped_records: skipped.into_iter().take(SKIPPED_LISTED).collect(),
    })
}

/// The records of a file.
type FileRecords = (InputHash, Vec<Record>);

/// The records of all files; adds those that cannot be judged to `skipped`.
fn read_files(plan: &AuditPlan, skipped: &mut Vec<Skipped>, job: &Job) -> Result<Vec<FileRecords>> {
    job.observer().begin("reading", Some(plan.files.len() as u64), Unit::Items);
    let mut files = Vec::new();
    for path in &plan.files {
        job.check()?;
        let file = read::read(path)?;
        skipped.extend(file.skipped);
        files.push((file.input, file.records));
        job.observer().advance(1);
    }
    job.observer().end();
    Ok(files)
}

/// The dialect of a run.
fn dialect(plan: &AuditPlan, files: &[FileRecords]) -> (Dialect, DialectFrom) {
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

/// The groups of a file, by logit processor.
fn judge_file(
    plan: &AuditPlan,
    dialect: Dialect,
    file: &str,
    records: &[Record],
    examples: &mut Vec<Example>,
    job: &Job,
) -> Result<Vec<Group>> {
    let parts: Vec<Part> = records
        .par_chunks(CHUNK)
        .map(|chunk| {
            job.check()?;
            let part = judge_records(plan, dialect, file, chunk)?;
            job.observer().advance(chunk.len() as u64);
            Ok(part)
        })
        .collect::<Result<_>>()?;
    let mut groups: BTreeMap<Option<&str>, Group> = BTreeMap::new();
    for part in &parts {
        for (lp, found) in &part.by_lp {
            let lp = lp.as_deref();
            groups.entry(lp).or_insert_with(|| Group::new(file, lp, plan, dialect)).merge(found);
        }
        part.examples.iter().for_each(|example| keep(examples, example.clone()));
    }
    Ok(groups.into_values().collect())
}

/// What was found in a part of a file, by logit processor.
struct Part {
    by_lp: BTreeMap<Option<String>, Group>,
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
        let group =
            part.by_lp.entry(lp.clone()).or_insert_with(|| Group::new(file, lp.as_deref(), plan, dialect));
        group.report.counts.add(&judged, prompt.is_some());
        if let (Some(tokenizer), Some(drift)) = (&plan.tokenizer, &mut group.report.drift) {
            let template = fill(&judged.skeleton, &plan.placeholder);
            drift.add(tokenizer, answer.answer, &template, |_| true)?;
        }
        if let Some(prompt) = prompt.as_ref().filter(|_| !plan.references.is_empty()) {
            group.keep_conformer(prompt, answer.answer, &judged);
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
