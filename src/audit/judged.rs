//! Files of generated text, judged: what is left of them once their texts are forgotten.

use std::collections::{BTreeMap, HashSet};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::counts::SampleCounts;
use super::energies::{self, AnsweredText};
use super::faults::{Fault, FaultyBlock, keep};
use super::group::{Checkers, Group, PromptedText};
use super::plan::AuditPlan;
use super::read::{FileRecords, Record, SmokeHead};
use super::sample::{TextSample, judge, split};
use super::smoke::bias;
use crate::corpus::Skipped;
use crate::encoding::Encoding;
use crate::error::Result;
use crate::job::{InputHash, Job, Unit};
use crate::text::skeleton::fill;

/// Samples that one task judges.
const CHUNK: usize = 256;

/// What came of a file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct JudgedFile {
    /// Name, size and hash.
    pub input: InputHash,
    /// By logit processor.
    pub groups: Vec<Group>,
    /// The first faults of each kind.
    pub examples: Vec<FaultyBlock>,
    /// What a smoke report says of itself.
    pub head: Option<SmokeHead>,
    /// Its first texts of each molecule, and the number of further ones.
    pub listed: (SampleCounts, u64),
    /// Why shares over all of its texts mislead, if they do.
    pub bias: Option<String>,
    /// Texts that pass, with their energies; none without a program that computes some.
    #[serde(default)]
    pub energies: Vec<AnsweredText>,
    /// Distinct prompts, in order.
    pub prompts: Vec<String>,
    /// Records that could not be judged.
    pub skipped: u64,
    /// The first of them.
    pub skipped_records: Vec<Skipped>,
}

/// Judges texts, and forgets them.
///
/// # Errors
/// If the tokenizer cannot encode a text, or the job was cancelled.
pub(super) fn judge_files(
    plan: &AuditPlan,
    dialect: Encoding,
    files: Vec<FileRecords>,
    job: &Job,
) -> Result<Vec<JudgedFile>> {
    let samples = files.iter().map(|file| file.records.len() as u64).sum();
    job.observer().begin("judging", Some(samples), Unit::Items);
    let judged = files.into_iter().map(|file| judge_file(plan, dialect, file, job)).collect();
    job.observer().end();
    judged
}

fn judge_file(plan: &AuditPlan, dialect: Encoding, file: FileRecords, job: &Job) -> Result<JudgedFile> {
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
    let (mut listed, mut examples) = ((SampleCounts::new(dialect), 0), Vec::new());
    for part in &parts {
        listed.0.merge(&part.listed.0);
        listed.1 += part.listed.1;
        for (lp, found) in &part.by_lp {
            let lp = lp.as_deref();
            groups
                .entry(lp)
                .or_insert_with(|| Group::new(lp, plan.tokenizer.is_some(), dialect))
                .merge(found);
        }
        part.examples.iter().for_each(|example| keep(&mut examples, example.clone()));
    }
    let mut seen = HashSet::new();
    let prompts = file.records.iter().filter_map(|record| record.prompt.as_deref());
    let prompts = prompts.filter(|prompt| seen.insert(*prompt)).map(str::to_owned).collect();
    Ok(JudgedFile {
        groups: groups.into_values().collect(),
        examples,
        listed,
        bias: bias(&file),
        energies: energies::of_file(plan, dialect, &file, job)?,
        prompts,
        head: file.head,
        skipped: file.skipped,
        skipped_records: file.skipped_records,
        input: file.input,
    })
}

/// What was found in a part of a file, by logit processor.
struct Part {
    by_lp: BTreeMap<Option<String>, Group>,
    /// As of [`JudgedFile`].
    listed: (SampleCounts, u64),
    examples: Vec<FaultyBlock>,
}

fn judge_records(plan: &AuditPlan, dialect: Encoding, file: &str, records: &[Record]) -> Result<Part> {
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
            .or_insert_with(|| Group::new(lp.as_deref(), plan.tokenizer.is_some(), dialect));
        group.counts.add(&judged, prompt.is_some());
        if let (Some(tokenizer), Some(drift)) = (&plan.tokenizer, &mut group.drift) {
            let template = fill(&judged.skeleton, &plan.placeholder, dialect);
            drift.add(tokenizer, answer.answer, &template, |_| true)?;
        }
        if let Some(prompt) = prompt {
            let sample = PromptedText { prompt, answer: answer.answer, judged: &judged };
            group.take_conformer(&mut checkers, sample, !plan.references.is_empty());
        }
        for (verdict, range) in judged.blocks.iter().zip(dialect.slot_ranges(answer.answer)) {
            if let Some(fault) = Fault::worst(verdict) {
                let block = answer.answer[range].to_owned();
                let example = FaultyBlock { file: file.to_owned(), record: place.clone(), block, fault };
                keep(&mut part.examples, example);
            }
        }
    }
    Ok(part)
}
