//! Judges files of generated text, and keeps only the results.

use std::collections::{BTreeMap, HashSet};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::block_faults::{BlockFault, FaultyBlock, keep};
use super::chemistry::ConformerChemistry;
use super::counts::SampleCounts;
use super::energies::{AnsweredText, EnergyText};
use super::group::{Checkers, ComparedMolecule, Group, GroupPrompt};
use super::judging::{ConformerVerdict, conformers_in};
use super::marks::marks;
use super::outcome::Outcome;
use super::pairs::TextCounts;
use super::read::{FileRecords, Record, SmokeHead};
use super::records::ConformerText;
use super::request::AuditPlan;
use super::row_label::RowLabel;
use super::sample::{TextVerdict, judge, judged_blocks, split};
use super::smoke::bias;
use crate::corpus::SkippedRecord;
use crate::generation::{GenerationRun, TextsHeader};
use drift_core::job::{InputHash, Unit};
use drift_core::text::CONFORMER_OPEN;
use drift_core::text::skeleton::{self, fill};
use drift_core::{Encoding, Job, Result};

/// The number of samples in one parallel task.
const CHUNK: usize = 256;

/// The results for a file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct JudgedFile {
    /// The name, size and hash of the file.
    pub input: InputHash,
    /// The rows, in the order of their first texts.
    pub rows: Vec<RowLabel>,
    /// The results by row.
    pub groups: Vec<Group>,
    /// The first faulty blocks of each kind.
    pub examples: Vec<FaultyBlock>,
    /// The figures that a smoke report states.
    pub head: Option<SmokeHead>,
    /// What the file states of its generation, if drift wrote it.
    #[serde(default)]
    pub generation: Option<FileGeneration>,
    /// The counts over the first text of each molecule, and the number of further texts.
    pub listed: (SampleCounts, u64),
    /// Why shares over all texts of the file mislead, if they do.
    pub bias: Option<String>,
    /// The texts whose energy the program is to be asked for; empty without an energy program.
    #[serde(skip)]
    pub asked: Vec<EnergyText>,
    /// The texts that pass, with their energies; empty without an energy program.
    #[serde(default)]
    pub energies: Vec<AnsweredText>,
    /// The results for each text, if the plan keeps them.
    #[serde(default)]
    pub texts: Vec<JudgedText>,
    /// The distinct prompts, in order.
    pub prompts: Vec<String>,
    /// The number of records that could not be judged.
    pub skipped: u64,
    /// The first of these records.
    pub skipped_records: Vec<SkippedRecord>,
    /// The number of rows that were not asked for.
    #[serde(default)]
    pub left_out: u64,
}

/// What a file of texts states of its generation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FileGeneration {
    /// The seed of all draws.
    pub seed: u64,
    pub runs: Vec<GenerationRun>,
}

impl FileGeneration {
    fn of_header(header: TextsHeader) -> Self {
        FileGeneration { seed: header.protocol.seed, runs: header.runs }
    }
}

impl JudgedFile {
    /// Asks the energy program of the plan, if there is one, for the energies of the texts.
    ///
    /// # Errors
    /// As [`AnsweredText::ask`].
    fn ask(mut self, plan: &AuditPlan, job: &Job) -> Result<Self> {
        if let Some(program) = &plan.energy {
            self.energies = AnsweredText::ask(program, std::mem::take(&mut self.asked), job)?;
        }
        Ok(self)
    }

    /// Returns the rows under which its texts are reported, in the order of their first texts.
    pub(super) fn reported_rows(&self) -> impl Iterator<Item = RowLabel> {
        self.rows.iter().map(|row| row.reported(&self.input.name))
    }

    /// Returns the skeletons under which texts of a group are compared, in the order of the file's prompts.
    pub(super) fn compared_under(&self, group: &Group) -> Vec<Box<str>> {
        let skeletons = self.prompts.iter().filter_map(|prompt| skeleton::from_smiles(prompt).ok());
        let under = skeletons.map(|own| group.pools.get(&*own).cloned().unwrap_or_else(|| own.into()));
        under.collect()
    }
}

/// The results for one text.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct JudgedText {
    /// The position of the text in its file.
    pub record: String,
    /// The id of the text in the file.
    pub id: Option<String>,
    /// The SMILES of its prompt.
    pub smiles: Option<String>,
    /// The index of the text among those of its molecule, if the file states it.
    pub generation: Option<u64>,
    /// The index among the conformers of the record's text.
    pub place: usize,
    pub row: RowLabel,
    /// The molecule under which it is compared; `None` for a text without a prompt.
    pub compared: Option<ComparedMolecule>,
    /// The SMILES that it is compared under, if it differs from the prompt.
    pub pool: Option<String>,
    pub verdict: ConformerVerdict,
    /// What rows are compared by, if they are.
    #[serde(default)]
    pub pairing: Option<TextPairing>,
}

/// A text, as far as its row is compared with others.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TextPairing {
    pub counts: TextCounts,
    /// Whether its skeleton is the prompt's, character by character.
    #[serde(default)]
    pub is_copied: bool,
    /// The answer.
    pub answer: Box<str>,
}

impl TextPairing {
    fn new(
        answer: &str,
        encoding: Encoding,
        verdict: &TextVerdict,
        prompt: Option<&str>,
        chemistry: Option<&ConformerChemistry>,
    ) -> Self {
        let asked = prompt.and_then(|smiles| skeleton::from_smiles(smiles).ok());
        let is_copied = asked.is_some_and(|asked| *asked == *verdict.skeleton);
        let is_well_formed = is_copied && marks(answer, encoding).is_empty();
        let valid = chemistry.map(ConformerChemistry::is_valid);
        let counts = TextCounts::from_verdict(verdict, is_well_formed, valid);
        TextPairing { counts, is_copied, answer: answer.into() }
    }
}

/// Judges texts, and drops the texts themselves.
///
/// # Errors
/// If the tokenizer cannot encode a text, or the job was cancelled.
pub(super) fn judge_files(
    plan: &AuditPlan,
    encoding: Encoding,
    files: Vec<FileRecords>,
    job: &Job,
) -> Result<Vec<JudgedFile>> {
    let samples = files.iter().map(|file| file.records.len() as u64).sum();
    job.observer().begin("judging", Some(samples), Unit::Items);
    let judged =
        files.into_iter().map(|file| judge_file(plan, encoding, file, job)?.ask(plan, job)).collect();
    job.observer().end();
    judged
}

/// Judges the texts of a file. The energy program is not asked.
///
/// # Errors
/// As [`judge_files`].
pub(super) fn judge_file(
    plan: &AuditPlan,
    encoding: Encoding,
    file: FileRecords,
    job: &Job,
) -> Result<JudgedFile> {
    let name = &*file.input.name;
    let parts: Vec<Part> = file
        .records
        .par_chunks(CHUNK)
        .map(|chunk| {
            job.check()?;
            let part = judge_records(plan, encoding, name, chunk)?;
            job.observer().advance(chunk.len() as u64);
            Ok(part)
        })
        .collect::<Result<_>>()?;
    // Parts are merged in file order, so chunks and threads do not change the result.
    let mut groups = ByRow::new();
    let (mut listed, mut examples) = ((SampleCounts::new(encoding), 0), Vec::new());
    let (mut asked, mut texts) = (Vec::new(), Vec::new());
    for part in parts {
        listed.0.merge(&part.listed.0);
        listed.1 += part.listed.1;
        for (row, found) in &part.by_row {
            group(&mut groups, row, plan, encoding).merge(found);
        }
        part.examples.into_iter().for_each(|example| keep(&mut examples, example));
        asked.extend(part.asked);
        texts.extend(part.texts);
    }
    let mut seen = HashSet::new();
    let prompts = file.records.iter().filter_map(|record| record.prompt.as_deref());
    let prompts = prompts.filter(|prompt| seen.insert(*prompt)).map(str::to_owned).collect();
    let mut known = HashSet::new();
    let rows = file.records.iter().map(|record| &record.row).filter(|row| known.insert(*row));
    Ok(JudgedFile {
        rows: rows.cloned().collect(),
        groups: groups.into_values().collect(),
        examples,
        listed,
        bias: file.note.clone().or_else(|| bias(&file)),
        left_out: file.left_out,
        asked,
        energies: Vec::new(),
        texts,
        prompts,
        head: file.head,
        generation: file.header.map(|header| FileGeneration::of_header(*header)),
        skipped: file.skipped,
        skipped_records: file.skipped_records,
        input: file.input,
    })
}

/// Results by row.
type ByRow = BTreeMap<RowLabel, Group>;

fn group<'g>(groups: &'g mut ByRow, row: &RowLabel, plan: &AuditPlan, encoding: Encoding) -> &'g mut Group {
    groups.entry(row.clone()).or_insert_with(|| Group::new(row.clone(), plan, encoding))
}

/// The results for a part of a file.
struct Part {
    by_row: ByRow,
    /// As in [`JudgedFile`].
    listed: (SampleCounts, u64),
    examples: Vec<FaultyBlock>,
    /// The texts whose energy the program is to be asked for.
    asked: Vec<EnergyText>,
    texts: Vec<JudgedText>,
}

fn judge_records(plan: &AuditPlan, encoding: Encoding, file: &str, records: &[Record]) -> Result<Part> {
    let listed = (SampleCounts::new(encoding), 0);
    let (examples, asked, texts) = (Vec::new(), Vec::new(), Vec::new());
    let mut part = Part { by_row: ByRow::new(), listed, examples, asked, texts };
    let mut checkers = Checkers::default();
    for record in records {
        let whole = if plan.request.all_conformers && record.text.matches(CONFORMER_OPEN).count() > 1 {
            let mut blocks_before = 0;
            let conformers = conformers_in(&record.text);
            for (place, text) in conformers.iter().enumerate() {
                let conformer =
                    ConformerText { file, record, place, of: conformers.len(), blocks_before, text };
                blocks_before += part.judge(plan, encoding, &mut checkers, &conformer)?.blocks.len();
            }
            // The program that wrote a report counted texts, whatever conformers they contain.
            record.listed.is_some().then(|| judge(&plan.sample(record, &record.text, encoding)))
        } else {
            let whole = ConformerText { file, record, place: 0, of: 1, blocks_before: 0, text: &record.text };
            Some(part.judge(plan, encoding, &mut checkers, &whole)?)
        };
        if let Some(judged) = whole {
            part.list(record, &judged);
        }
    }
    Ok(part)
}

impl Part {
    /// Counts a text of a smoke report either as the first of its molecule, or among the further texts.
    fn list(&mut self, record: &Record, judged: &TextVerdict) {
        match &record.listed {
            Some(listed) if listed.generation == 0 => self.listed.0.add(judged, record.prompt.is_some()),
            Some(_) => self.listed.1 += 1,
            None => {}
        }
    }

    /// Judges the text of a record, or the conformer of this text at `place`.
    fn judge(
        &mut self,
        plan: &AuditPlan,
        encoding: Encoding,
        checkers: &mut Checkers,
        conformer: &ConformerText<'_>,
    ) -> Result<TextVerdict> {
        let ConformerText { file, record, place, blocks_before, text, .. } = *conformer;
        let Record { place: record_place, prompt, row, .. } = record;
        let answer = split(text).answer;
        let mut judged = judge(&plan.sample(record, text, encoding));
        if let Some(truncated) = &record.truncated {
            for (at, block) in judged.blocks.iter_mut().enumerate() {
                block.truncated = Some(truncated.contains(&(blocks_before + at)));
            }
        }
        let group = group(&mut self.by_row, row, plan, encoding);
        group.counts.add(&judged, prompt.is_some());
        if let (Some(tokenizer), Some(drift)) = (&plan.request.tokenizer, &mut group.drift) {
            let template = fill(&judged.skeleton, &plan.placeholder(encoding)?, encoding);
            drift.add(tokenizer, encoding, answer, &template, |_| true)?;
        }
        let pool = record.pool.as_deref().filter(|_| plan.request.pool);
        let smiles = judged.smiles(prompt.as_deref());
        let prompt = smiles.as_deref();
        if place == 0 {
            group.times.add(record);
        }
        group.count_passed(pool.or(prompt), &judged);
        let (mut chemistry, mut compared) = (None, None);
        if let Some(smiles) = prompt {
            let prompt = GroupPrompt { smiles, pool, generation: record.generation };
            (chemistry, compared) = group.take_conformer(plan, checkers, prompt, answer, &judged);
        }
        let has_faults = judged.blocks.iter().any(|block| BlockFault::worst(block).is_some());
        if (has_faults || judged.outcome != Outcome::Pass) && group.examples.takes_more() {
            let marks = marks(text, encoding);
            group.examples.add(prompt.unwrap_or_default(), text, judged.outcome, &marks);
        }
        if has_faults {
            self.keep_faults(&judged, answer, encoding, file, record_place);
        }
        if plan.request.by_text {
            self.texts.push(JudgedText {
                record: record_place.clone(),
                id: record.id.clone(),
                smiles: prompt.map(str::to_owned),
                generation: record.generation,
                place,
                row: row.clone(),
                compared,
                pool: pool.map(str::to_owned),
                verdict: ConformerVerdict::new(text, encoding, &judged, prompt, chemistry.as_ref()),
                pairing: plan
                    .request
                    .against_row
                    .as_ref()
                    .map(|_| TextPairing::new(answer, encoding, &judged, prompt, chemistry.as_ref())),
            });
        }
        self.asked.extend(EnergyText::of(plan, encoding, checkers, conformer, &judged));
        Ok(judged)
    }

    /// Keeps faulty blocks as examples, while there are few of their kind.
    fn keep_faults(
        &mut self,
        judged: &TextVerdict,
        answer: &str,
        encoding: Encoding,
        file: &str,
        record: &str,
    ) {
        for (verdict, block) in judged.blocks.iter().zip(judged_blocks(answer, encoding)) {
            if let Some(fault) = BlockFault::worst(verdict) {
                let (file, record) = (file.to_owned(), record.to_owned());
                keep(&mut self.examples, FaultyBlock { file, record, block, fault });
            }
        }
    }
}
