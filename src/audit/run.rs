//! The way through: files in, a report out.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use rayon::prelude::*;
use serde::Serialize;

use super::chemistry::ChemistryReport;
use super::counts::SampleCounts;
use super::dialect::DialectCounts;
use super::faults::{EXAMPLES, Fault, FaultyBlock, keep};
use super::group::{Checkers, FileReport, Group, PromptedText};
use super::read::{self, FileRecords, Record};
use super::references::References;
use super::sample::{TextSample, judge, split};
use super::smoke::{ForeignPrompt, TheirReport, foreign_prompts, their_report, warnings};
use crate::corpus::{Conformers, Files, ReadOptions, SKIPPED_LISTED, Skipped};
use crate::error::{Error, Parameter, Result};
use crate::job::{InputHash, Job, Provenance, Unit};
use crate::text::skeleton::fill;
use crate::text::smiles::AtomLimit;
use crate::text::{Dialect, Precision, Reading, TrailingZeros, Written};
use crate::tokenizer::{Tokenizer, block_ranges};

/// The schema of [`AuditReport`].
pub const SCHEMA: &str = "drift.audit/1";

/// Samples that one task judges.
const CHUNK: usize = 256;

/// What to judge.
pub struct AuditPlan {
    /// Files of generated text.
    pub files: Vec<PathBuf>,
    /// How numbers should be written; told from the recipe, the texts or the references if not given.
    pub dialect: Option<Dialect>,
    /// The dialect that the model was trained on, where its recipe says so.
    pub recipe: Option<Dialect>,
    /// Decimals and separator where the dialect is told from texts.
    pub like: Dialect,
    /// For drift.
    pub tokenizer: Option<Tokenizer>,
    /// What drift is counted against, without brackets.
    pub placeholder: String,
    /// Reference conformers, for geometry: files and folders, as `drift mine` takes them; none without.
    pub references: Vec<PathBuf>,
    /// The largest molecule that is compared; a text of a larger one is another molecule than its prompt.
    pub max_atoms: AtomLimit,
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
    /// The chemistry of the references of molecules that were asked for; none without references.
    pub reference_chemistry: Option<ChemistryReport>,
    /// The first faults of each kind.
    pub examples: Vec<FaultyBlock>,
    /// What 3DMolGen's smoke reports say of themselves, beside the same counted here.
    pub reports_by_3dmolgen: Vec<TheirReport>,
    /// Distinct prompts.
    pub prompts: u64,
    /// Of them, those that RDKit, and so 3DMolGen's encoder, certainly does not write like this: their template has another
    /// text than the prompt. A prompt that is not counted may still be none of theirs.
    pub prompts_not_in_their_spelling: u64,
    /// The first of them.
    pub foreign_prompts: Vec<ForeignPrompt>,
    /// What makes the figures above mean less than they seem to.
    pub warnings: Vec<String>,
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
    /// The recipe of the model.
    Recipe,
    /// Blocks that only one dialect has.
    Texts,
    /// The reference conformers, where the texts do not tell.
    References,
}

/// Reads and judges.
///
/// # Errors
/// If a file cannot be read or holds no text, nothing tells the dialect, the tokenizer cannot encode a text, the references
/// hold none of the molecules, or the job was cancelled.
pub fn audit(plan: &AuditPlan, job: &Job) -> Result<AuditReport> {
    let mut skipped = Vec::new();
    let mut skipped_in_all = 0;
    let files = read_files(plan, (&mut skipped_in_all, &mut skipped), job)?;
    let (dialect, dialect_from) = dialect(plan, &files, job)?;
    let samples = files.iter().map(|file| file.records.len() as u64).sum();
    let (mut groups, mut theirs) = (Vec::new(), Vec::new());
    let mut examples = Vec::new();
    job.observer().begin("judging", Some(samples), Unit::Items);
    for file in &files {
        let judged = judge_file(plan, dialect, file, &mut examples, job)?;
        groups.extend(judged.groups);
        theirs.extend(file.head.as_ref().map(|head| their_report(&file.input.name, head, judged.listed)));
    }
    job.observer().end();
    let mut total = Group::new("total", None, plan.tokenizer.is_some(), dialect);
    groups.iter().for_each(|group| total.merge(group));
    let (prompts, foreign_prompts) = foreign_prompts(&files);
    let warnings = warnings(&files, &theirs);
    let mut reference_chemistry = None;
    let mut inputs: Vec<InputHash> = files.into_iter().map(|file| file.input).collect();
    if !plan.references.is_empty() {
        let wanted: HashSet<&str> = total.generated.keys().map(|skeleton| &**skeleton).collect();
        let (references, summary) = References::read(&corpus(plan), &wanted, job)?;
        reference_chemistry = Some(references.chemistry());
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
        reference_chemistry,
        examples,
        reports_by_3dmolgen: theirs,
        prompts,
        prompts_not_in_their_spelling: foreign_prompts.len() as u64,
        foreign_prompts: foreign_prompts.into_iter().take(EXAMPLES).collect(),
        warnings,
        skipped: skipped_in_all,
        skipped_records: skipped.into_iter().take(SKIPPED_LISTED).collect(),
    })
}

fn corpus(plan: &AuditPlan) -> Files {
    // References may have more decimals than the model writes.
    let cut = plan.like.precision() != Precision::FOUR;
    let reading = Reading { cut, ..Reading::of(plan.like) };
    Files { inputs: plan.references.clone(), options: ReadOptions { reading, ..ReadOptions::default() } }
}

/// The records of all files; adds those that cannot be judged to `skipped`.
fn read_files(
    plan: &AuditPlan,
    (count, skipped): (&mut u64, &mut Vec<Skipped>),
    job: &Job,
) -> Result<Vec<FileRecords>> {
    job.observer().begin("reading", Some(plan.files.len() as u64), Unit::Items);
    let mut files = Vec::new();
    for path in &plan.files {
        job.check()?;
        let mut file = read::read(path, job)?;
        *count += file.skipped;
        skipped.append(&mut file.skipped_records);
        files.push(file);
        job.observer().advance(1);
    }
    job.observer().end();
    Ok(files)
}

/// The dialect of a run; an error where nothing tells it, rather than a guess.
fn dialect(plan: &AuditPlan, files: &[FileRecords], job: &Job) -> Result<(Dialect, DialectFrom)> {
    if let Some(dialect) = plan.dialect {
        return Ok((dialect, DialectFrom::Given));
    }
    if let Some(dialect) = plan.recipe {
        return Ok((dialect, DialectFrom::Recipe));
    }
    let evidence = |record: &Record| {
        let answer = split(&record.text).answer;
        DialectCounts::of(block_ranges(answer).into_iter().map(|range| &answer[range]), plan.like)
    };
    let records = files.iter().flat_map(|file| &file.records);
    let found = records.map(evidence).fold(DialectCounts::default(), DialectCounts::join);
    if let Some(dialect) = found.dialect(plan.like) {
        return Ok((dialect, DialectFrom::Texts));
    }
    if !plan.references.is_empty()
        && let Some(dialect) = references_dialect(plan, job)?
    {
        return Ok((dialect, DialectFrom::References));
    }
    let problem = match found {
        DialectCounts { fixed: 0, stripped: 0 } => {
            "the texts do not tell fixed from stripped: no whole block is of one \
             dialect alone"
                .to_owned()
        }
        DialectCounts { fixed, stripped } => {
            format!("the texts tell both dialects: {fixed} blocks are fixed alone, {stripped} stripped alone")
        }
    };
    let dialect = Parameter::Dialect;
    let remedy = format!(
        "give {dialect} fixed or {dialect} stripped, as the model was trained; files of both, one after the other"
    );
    Err(Error::input(format!("{dialect} auto"), problem, remedy))
}

/// The dialect that the references are written in; none if both fit, or neither.
fn references_dialect(plan: &AuditPlan, job: &Job) -> Result<Option<Dialect>> {
    let mut written = Written::ANY;
    corpus(plan).read(job, &mut |batch| {
        written = batch.conformers.iter().fold(written, |written, conformer| written.join(conformer.written));
        Ok(())
    })?;
    Ok(match written {
        Written { fixed: true, stripped: false } => Some(plan.like.with_zeros(TrailingZeros::Kept)),
        Written { fixed: false, stripped: true } => Some(plan.like.with_zeros(TrailingZeros::Removed)),
        _ => None,
    })
}

/// What came of a file.
struct JudgedFile {
    groups: Vec<Group>,
    /// The first texts of a smoke report's molecules, and the number of further ones.
    listed: (SampleCounts, u64),
}

/// The groups of a file, by logit processor.
fn judge_file(
    plan: &AuditPlan,
    dialect: Dialect,
    file: &FileRecords,
    examples: &mut Vec<FaultyBlock>,
    job: &Job,
) -> Result<JudgedFile> {
    let name = &*file.input.name;
    let parts: Vec<Part> = file
        .records
        .par_chunks(CHUNK)
        .map(|chunk| {
            job.check()?;
            let part = judge_records(plan, dialect, name, chunk)?;
            job.observer().advance(chunk.len() as u64);
            Ok(part)
        })
        .collect::<Result<_>>()?;
    let mut groups: BTreeMap<Option<&str>, Group> = BTreeMap::new();
    let mut listed = (SampleCounts::new(dialect), 0);
    for part in &parts {
        listed.0.merge(&part.listed.0);
        listed.1 += part.listed.1;
        for (lp, found) in &part.by_lp {
            let lp = lp.as_deref();
            groups
                .entry(lp)
                .or_insert_with(|| Group::new(name, lp, plan.tokenizer.is_some(), dialect))
                .merge(found);
        }
        part.examples.iter().for_each(|example| keep(examples, example.clone()));
    }
    Ok(JudgedFile { groups: groups.into_values().collect(), listed })
}

/// What was found in a part of a file, by logit processor.
struct Part {
    by_lp: BTreeMap<Option<String>, Group>,
    /// As of [`JudgedFile`].
    listed: (SampleCounts, u64),
    examples: Vec<FaultyBlock>,
}

fn judge_records(plan: &AuditPlan, dialect: Dialect, file: &str, records: &[Record]) -> Result<Part> {
    let listed = (SampleCounts::new(dialect), 0);
    let mut part = Part { by_lp: BTreeMap::new(), listed, examples: Vec::new() };
    let mut checkers = Checkers::default();
    for record in records {
        let Record { place, prompt, text, lp, listed } = record;
        let answer = split(text);
        let judged = judge(&TextSample {
            prompt: prompt.as_deref(),
            answer: text,
            ended: true,
            dialect,
            max_atoms: plan.max_atoms,
        });
        match listed {
            Some(listed) if listed.generation == 0 => part.listed.0.add(&judged, prompt.is_some()),
            Some(_) => part.listed.1 += 1,
            None => {}
        }
        let group = part
            .by_lp
            .entry(lp.clone())
            .or_insert_with(|| Group::new(file, lp.as_deref(), plan.tokenizer.is_some(), dialect));
        group.report.counts.add(&judged, prompt.is_some());
        if let (Some(tokenizer), Some(drift)) = (&plan.tokenizer, &mut group.report.drift) {
            let template = fill(&judged.skeleton, &plan.placeholder);
            drift.add(tokenizer, answer.answer, &template, |_| true)?;
        }
        if let Some(prompt) = prompt {
            let sample = PromptedText { prompt, answer: answer.answer, judged: &judged };
            group.take_conformer(&mut checkers, sample, !plan.references.is_empty());
        }
        for (verdict, range) in judged.blocks.iter().zip(block_ranges(answer.answer)) {
            if let Some(fault) = Fault::worst(verdict) {
                let block = answer.answer[range].to_owned();
                let example = FaultyBlock { file: file.to_owned(), record: place.clone(), block, fault };
                keep(&mut part.examples, example);
            }
        }
    }
    Ok(part)
}
