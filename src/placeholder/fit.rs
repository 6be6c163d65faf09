//! The way through: corpus and tokenizers in, report out.

use rayon::prelude::*;
use serde::Serialize;

use super::certificate::Certificate;
use super::classes::{Sampled, analyse};
use super::evidence::Evidence;
use super::grammar::{Space, USERS_PLACEHOLDERS, tie_key};
use super::objective::{Harm, Objective};
use super::options::Options;
use super::replay::{BlockReplay, replay};
use super::report::{CandidateReport, CorpusReport, FitReport, FitResult, SCHEMA, SearchReport, TokenCount};
use super::search::{SearchSettings, search};
use super::survey::Survey;
use crate::corpus::{Conformer, Conformers};
use crate::error::{Error, Result};
use crate::job::{InputHash, Job, Provenance, Unit};
use crate::text::{self, Dialect, skeleton};
use crate::tokenizer::{BlockTokens, Counter, Method, Tokenizer, block_ranges};

/// Conformers that classes of block are judged on: the first ones of the corpus.
const SAMPLED_CONFORMERS: usize = 10_000;

/// Conformers replayed by one task.
const CHUNK: usize = 256;

/// Which dialects to fit for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DialectChoice {
    /// The corpus's own; both where it agrees with both or with neither.
    Auto,
    /// This one.
    Only(Dialect),
}

/// What to fit.
pub struct FitPlan {
    /// For each of these.
    pub tokenizers: Vec<Tokenizer>,
    /// In these dialects.
    pub dialects: DialectChoice,
    /// Judged beside the users' own.
    pub candidates: Vec<String>,
    /// What harm means.
    pub objective: Objective,
    /// The seed of the search.
    pub seed: u64,
    /// Whether to try placeholders per class of block.
    pub classes: bool,
}

/// Fits a placeholder for every tokenizer and dialect of the plan.
///
/// # Errors
/// If the corpus cannot be read, a tokenizer cannot encode it, a candidate is not the inside of one block, or the job
/// was cancelled.
pub fn fit(plan: &FitPlan, corpus: &dyn Conformers, job: &Job) -> Result<FitReport> {
    let survey = Survey::of(corpus, job)?;
    let dialects = dialects(plan.dialects, &survey);
    let mut tasks = Vec::new();
    for tokenizer in &plan.tokenizers {
        for &dialect in &dialects {
            job.check()?;
            tasks.push(Task::new(plan, tokenizer, dialect, &survey)?);
        }
    }
    let total = survey.blocks * tasks.len() as u64;
    job.observer().begin("replaying", Some(total), Unit::Items);
    let outcome = survey.again(corpus, job, &mut |conformers| {
        job.check()?;
        tasks.iter_mut().try_for_each(|task| {
            job.observer().advance(task.replay(conformers)?);
            Ok(())
        })
    });
    job.observer().end();
    outcome?;
    job.observer().begin("fitting", Some(tasks.len() as u64), Unit::Items);
    let mut results = Vec::with_capacity(tasks.len());
    for task in tasks {
        job.check()?;
        results.push(task.finish(plan, &survey)?);
        job.observer().advance(1);
    }
    job.observer().end();
    let mut inputs: Vec<InputHash> = survey.summary.inputs.clone();
    inputs.extend(plan.tokenizers.iter().map(|t| t.source.clone()));
    Ok(FitReport {
        schema: SCHEMA,
        provenance: Provenance::of(inputs),
        corpus: CorpusReport {
            conformers: survey.summary.conformers,
            blocks: survey.blocks,
            in_file_order: survey.in_file_order,
            skipped: survey.summary.skipped,
            skipped_records: survey.summary.skipped_records,
        },
        objective: plan.objective,
        results,
    })
}

fn dialects(choice: DialectChoice, survey: &Survey) -> Vec<Dialect> {
    match (choice, survey.summary.written.fixed, survey.summary.written.stripped) {
        (DialectChoice::Only(dialect), ..) => vec![dialect],
        (DialectChoice::Auto, true, false) => vec![Dialect::Fixed],
        (DialectChoice::Auto, false, true) => vec![Dialect::Stripped],
        (DialectChoice::Auto, ..) => Dialect::ALL.to_vec(),
    }
}

/// The users' placeholders, then the plan's own, once each.
fn candidates(plan: &FitPlan) -> Vec<(String, &'static str)> {
    let mut list: Vec<(String, &'static str)> =
        USERS_PLACEHOLDERS.iter().map(|(text, source)| ((*text).to_owned(), *source)).collect();
    for candidate in &plan.candidates {
        if !list.iter().any(|(text, _)| text == candidate) {
            list.push((candidate.clone(), "asked for"));
        }
    }
    list
}

/// One tokenizer in one dialect.
struct Task<'t> {
    counter: Counter<'t>,
    dialect: Dialect,
    candidates: Vec<(String, &'static str)>,
    options: Options,
    evidence: Evidence,
    sample: Vec<Sampled>,
    sampling: bool,
}

/// Buffers that one task reuses.
#[derive(Default)]
struct Scratch {
    text: String,
    tokens: Vec<BlockTokens>,
}

impl<'t> Task<'t> {
    fn new(plan: &FitPlan, tokenizer: &'t Tokenizer, dialect: Dialect, survey: &Survey) -> Result<Self> {
        let counter = Counter::new(tokenizer, survey.skeletons.iter().map(|s| &**s))?;
        let candidates = candidates(plan);
        let texts: Vec<String> = candidates.iter().map(|(text, _)| text.clone()).collect();
        let options = Options::new(&counter, Space(dialect), &survey.atoms, &texts)?;
        let evidence = Evidence::new(&options);
        Ok(Task {
            counter,
            dialect,
            candidates,
            options,
            evidence,
            sample: Vec::new(),
            sampling: plan.classes,
        })
    }

    /// Adds conformers to the evidence; returns the number of blocks.
    fn replay(&mut self, conformers: &[Conformer]) -> Result<u64> {
        let before = self.evidence.blocks;
        let room = if self.sampling { SAMPLED_CONFORMERS.saturating_sub(self.sample.len()) } else { 0 };
        let parts: Vec<(Evidence, Vec<Sampled>)> = conformers
            .par_chunks(CHUNK)
            .enumerate()
            .map(|(chunk, conformers)| self.part(conformers, room.saturating_sub(chunk * CHUNK)))
            .collect::<Result<_>>()?;
        for (evidence, sample) in parts {
            self.evidence.merge(&evidence);
            self.sample.extend(sample);
        }
        Ok(self.evidence.blocks - before)
    }

    /// The evidence of some conformers, and the replays of the first `sampled` of them.
    fn part(&self, conformers: &[Conformer], sampled: usize) -> Result<(Evidence, Vec<Sampled>)> {
        let mut evidence = Evidence::new(&self.options);
        let (mut sample, mut scratch) = (Vec::new(), Scratch::default());
        for (index, conformer) in conformers.iter().enumerate() {
            let blocks = self.blocks(conformer, &mut scratch)?;
            evidence.add(&self.options, &blocks);
            if index < sampled {
                let (molecule, skeleton) = (conformer.molecule.clone(), conformer.skeleton.clone());
                sample.push(Sampled { molecule, skeleton, blocks });
            }
        }
        Ok((evidence, sample))
    }

    /// Left group and replay of each block of a conformer, counted in its whole text.
    fn blocks(&self, conformer: &Conformer, scratch: &mut Scratch) -> Result<Vec<(u8, BlockReplay)>> {
        let Scratch { text, tokens } = scratch;
        text.clear();
        tokens.clear();
        text.push_str(text::CONFORMER_OPEN);
        text::append(&conformer.skeleton, &conformer.coordinates, self.dialect, text);
        text.push_str(text::CONFORMER_CLOSE);
        self.counter.tokens(text, tokens)?;
        let ranges = block_ranges(text);
        let mut blocks = Vec::with_capacity(ranges.len());
        for (((atom, range), tokens), values) in
            skeleton::atoms(&conformer.skeleton).zip(ranges).zip(&*tokens).zip(&conformer.coordinates)
        {
            let group = self.options.group(atom).ok_or_else(|| {
                let problem = format!("atom `{atom}` was not there in the first pass");
                Error::input("corpus", problem, "do not change files while they are read")
            })?;
            blocks.push((group, replay(&text.as_bytes()[range], values[2], tokens)));
        }
        Ok(blocks)
    }

    fn finish(self, plan: &FitPlan, survey: &Survey) -> Result<FitResult> {
        let objective = &plan.objective;
        let harm = |option: usize| self.evidence.measures(&self.options, option).harm(objective);
        let (chosen, placeholder) = self.choose(objective, &harm)?;
        let bound = (0..self.options.list.len()).map(&harm).min_by(|a, b| objective.compare(*a, *b));
        let bound = bound.unwrap_or_else(|| harm(chosen));
        let settings = SearchSettings { seed: plan.seed, iterations: 4_000 };
        let space = Space(self.dialect);
        let found = search(space, 1, objective, settings, |shapes| harm(self.options.of_shape(shapes[0])))
            .map_err(|e| Error::input("search", e, ""))?;
        let candidates = self.judge_candidates(objective, &placeholder)?;
        let free_tokens = self.options.list[chosen].vector[self.evidence.main_group()];
        let class_settings = SearchSettings { seed: plan.seed, iterations: 2_000 };
        let classes = if self.sampling {
            analyse(space, &self.options, objective, &self.sample, class_settings)?
        } else {
            Vec::new()
        };
        Ok(FitResult {
            tokenizer: self.counter.tokenizer().name.clone(),
            tokenizer_sha256: self.counter.tokenizer().source.sha256.clone(),
            dialect: self.dialect,
            conformers: self.evidence.conformers,
            blocks: self.evidence.blocks,
            exact: self.vectors_hold(&candidates, survey)?,
            counted_by: match self.counter.method() {
                Method::Tables { verified_blocks } => {
                    format!("tables, equal to the tokenizer on {verified_blocks} blocks before use")
                }
                Method::Encode { reason } => format!("encoding every text: {reason}"),
            },
            placeholder,
            free_tokens: u32::from(free_tokens),
            certificate: Certificate::new(harm(chosen), bound),
            candidates,
            token_distribution: self
                .evidence
                .distribution()
                .into_iter()
                .map(|(tokens, blocks)| TokenCount { tokens, blocks })
                .collect(),
            search: SearchReport {
                settings,
                evaluations: found.evaluations,
                reached_bound: objective.compare(found.harm, bound).is_le(),
            },
            class_conformers: self.sample.len() as u64,
            classes,
        })
    }

    /// The option of least harm and its placeholder, ties to the fewest characters, then the smallest bytes.
    fn choose(&self, objective: &Objective, harm: &impl Fn(usize) -> Harm) -> Result<(usize, String)> {
        let best = self.options.attainable().min_by(|(a, text_a), (b, text_b)| {
            let tie = || tie_key(text_a).cmp(&tie_key(text_b));
            objective.compare(harm(*a), harm(*b)).then_with(tie)
        });
        let (option, text) =
            best.ok_or_else(|| Error::input("search", "no placeholder to choose from", ""))?;
        Ok((option, text.to_owned()))
    }

    fn judge_candidates(&self, objective: &Objective, chosen: &str) -> Result<Vec<CandidateReport>> {
        let mut list = self.candidates.clone();
        if !list.iter().any(|(text, _)| text == chosen) {
            list.push((chosen.to_owned(), "fitted"));
        }
        let main = self.evidence.main_group();
        let mut reports = Vec::with_capacity(list.len());
        for (placeholder, source) in list {
            let vector = self.options.vector(&self.counter, &placeholder)?;
            let option = self.options.find(&vector).ok_or_else(|| {
                Error::input(
                    format!("placeholder `{placeholder}`"),
                    "was not counted",
                    "report this as a bug",
                )
            })?;
            reports.push(CandidateReport {
                placeholder,
                source: source.to_owned(),
                free_tokens: u32::from(vector[main]),
                measures: self.evidence.measures(&self.options, option),
            });
        }
        reports.sort_by(|a, b| {
            let order = objective.compare(a.measures.harm(objective), b.measures.harm(objective));
            order.then_with(|| tie_key(&a.placeholder).cmp(&tie_key(&b.placeholder)))
        });
        Ok(reports)
    }

    /// Whether F by left group is F in whole texts: every candidate, the chosen one among them, in the sampled skeletons, by the reference.
    fn vectors_hold(&self, candidates: &[CandidateReport], survey: &Survey) -> Result<bool> {
        for CandidateReport { placeholder, .. } in candidates {
            let vector = self.options.vector(&self.counter, placeholder)?;
            for skeleton in &survey.skeletons {
                let text = text::tagged(&skeleton::fill(skeleton, placeholder));
                let ends = self.counter.tokenizer().free_ends(&text)?;
                let groups = skeleton::atoms(skeleton).filter_map(|atom| self.options.group(atom));
                if !ends.iter().zip(groups).all(|(ends, g)| ends.len() == usize::from(vector[usize::from(g)]))
                {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
