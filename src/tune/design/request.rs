//! A user's request for a tokenizer, by any method, and its result.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::base_files::BaseFiles;
use super::commands::with_commands;
use super::compare::{compare, compare_with_design};
use super::extension::extend::as_read;
use super::extension::plan::{Aim, ExtensionPlan};
use super::extension::reuse::Reuse;
use super::extension::texts::ALL_CONTEXTS;
use super::learned::merges::learns_apart;
use super::learned::scratch::ScratchPlan;
use super::report::designed::DesignReport;
use super::report::learned::LearnedReport;
use super::report::trained::TrainedTokenizer;
use super::rows::initial::Rows;
use super::scheme::cuts::SchemeKind;
use super::scheme::slots::Range;
use super::slots::extend::SlotRequest;
use super::slots::report::SlotReport;
use super::train::train;
use super::train_merges::train_merges;
use super::train_scratch::{scratch_config, train_scratch};
use crate::parameter;
use drift_core::encoding::Reading;
use drift_core::{Error, Job, Result, Tokenizer};
use drift_data::corpus::Conformers;

/// The goal: which tokens, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// A designed extension of a base.
    Aim(Aim),
    /// This many new tokens, learned within blocks on top of a base's merges.
    Merges(u64),
    /// This many tokens in total, learned from scratch.
    VocabSize(usize),
}

/// The tokenizer to extend.
pub struct Base {
    /// The tokenizer.
    pub tokenizer: Tokenizer,
    /// The bytes of its JSON.
    pub json: Vec<u8>,
    /// The files next to it.
    pub beside: BaseFiles,
}

impl Base {
    /// Loads a tokenizer by path or embedded name, with the files next to it.
    ///
    /// # Errors
    /// The errors of [`Tokenizer::load_for`] and [`BaseFiles::read`].
    pub fn load(path: &Path, job: &Job) -> Result<Self> {
        let (tokenizer, json) = Tokenizer::load_for(path, job)?;
        let beside = BaseFiles::read(path)?.of(&tokenizer);
        Ok(Base { tokenizer, json, beside })
    }

    /// Returns the JSON of the tokenizer, [as `tokenizers` reads it](as_read).
    ///
    /// # Errors
    /// If it is not valid JSON.
    pub(crate) fn read_json(&self) -> Result<Value> {
        let json =
            serde_json::from_slice(&self.json).map_err(|e| Error::input(&self.tokenizer.name, e, ""))?;
        Ok(as_read(&self.tokenizer, json))
    }
}

/// A user's request for a tokenizer.
#[derive(Debug, Clone)]
pub struct TokenizerRequest {
    /// The goal: which tokens, and how many.
    pub goal: Goal,
    /// Which tokens are allowed.
    pub kind: SchemeKind,
    /// The range of coordinates whose blocks get new tokens.
    pub range: Range,
    /// The encoding whose blocks get new tokens, and how a corpus is read in it.
    pub reading: Reading,
    /// The smallest number of decimals; see [`ExtensionPlan::fewest_decimals`].
    pub fewest_decimals: Option<usize>,
    /// The old tokens whose ids the new tokens take, if any may be removed.
    pub reuse: Option<Reuse>,
    /// Whether other methods to add as many tokens are compared with it.
    pub compare: bool,
    /// The seed of the search.
    pub seed: u64,
}

/// The report on a tokenizer, depending on the method.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum TokenizerReport {
    /// On a designed extension.
    Designed(Box<DesignReport>),
    /// On tokens learned from a corpus.
    Learned(Box<LearnedReport>),
    /// On an extension for the numbers of a skeleton.
    Slots(Box<SlotReport>),
}

/// A finished tokenizer, and the contents of its folder.
pub struct MadeTokenizer {
    /// The tokenizer, with its report.
    pub trained: TrainedTokenizer<TokenizerReport>,
    /// The initial embedding rows for a model, if there is a model.
    pub rows: Option<Rows>,
    /// The files next to the base.
    pub beside: BaseFiles,
}

impl SlotRequest {
    /// Extends a base for the numbers of a skeleton, and checks the result.
    ///
    /// # Errors
    /// If the base cannot be extended, the goal cannot be reached, a check fails, or a prompt lacks what the skeleton needs.
    pub fn make(&self, base: Base, job: &Job) -> Result<MadeTokenizer> {
        let json = base.read_json()?;
        let (trained, rows) = self.extend(&base.tokenizer, &json, &base.beside, job)?;
        let trained = trained.map(|report| TokenizerReport::Slots(report.into()));
        Ok(MadeTokenizer { trained, rows, beside: base.beside })
    }
}

impl TokenizerRequest {
    /// Refuses options that cannot be combined.
    ///
    /// # Errors
    /// If merges are to be learned, or methods compared, for blocks other than those of the fixed encoding between `<` and `>` with
    /// commas.
    pub fn check(&self) -> Result<()> {
        let (option, does) = match self.goal {
            Goal::Merges(_) => (parameter::MERGES, "learns"),
            Goal::VocabSize(_) => (parameter::VOCAB_SIZE, "learns"),
            Goal::Aim(_) if self.compare => (parameter::COMPARE, "compares"),
            Goal::Aim(_) => return Ok(()),
        };
        let (tokens, budget) = (parameter::TOKENS_PER_BLOCK, parameter::BUDGET);
        let refused = |what: &str, without: &str| {
            let problem = format!("{does} in the fixed dialect alone, and cannot go with {what}");
            Err(Error::parameter(option, problem, format!("{without}give {tokens} or {budget} alone")))
        };
        let encoding = self.reading.encoding;
        // Learning works on blocks with commas, whatever separates the numbers in the corpus.
        if !encoding.is_decimal_blocks() || encoding.separator() != "," {
            return refused(encoding.name(), "");
        }
        if self.reuse.is_some() {
            return refused(&parameter::REUSE.to_string(), "");
        }
        let stripped = match (encoding.is_stripped(), self.fewest_decimals) {
            (true, _) => format!("{} stripped", parameter::DIALECT),
            (false, Some(_)) => parameter::FEWEST_DECIMALS.to_string(),
            (false, None) => return Ok(()),
        };
        refused(&stripped, &format!("leave {stripped} out, or "))
    }

    /// Designs or learns the tokenizer, checks it, and measures it. A tokenizer from scratch needs no base.
    ///
    /// # Errors
    /// The errors of [`TokenizerRequest::check`], [`train`](fn@train), [`train_merges`](fn@train_merges) and
    /// [`train_scratch`](fn@train_scratch), or if a base is needed and missing.
    pub fn make(&self, base: Option<Base>, corpus: &dyn Conformers, job: &Job) -> Result<MadeTokenizer> {
        self.check()?;
        // Merges are compared with the best designed extension that has as many tokens.
        let aim = match self.goal {
            Goal::Aim(aim) => aim,
            Goal::Merges(tokens) => Aim::Budget(tokens),
            Goal::VocabSize(vocab_size) => return self.scratch(vocab_size, corpus, job),
        };
        let Some(base) = base else {
            let remedy = "give a tokenizer.json, a model folder, or qwen-like or llama-like";
            return Err(Error::parameter(parameter::BASE, "is missing", remedy));
        };
        let base_json = base.read_json()?;
        let Base { tokenizer, beside, .. } = base;
        let plan = ExtensionPlan {
            range: self.range,
            fewest_decimals: self.fewest_decimals,
            reuse: self.reuse.clone(),
            seed: self.seed,
            ..ExtensionPlan::new(tokenizer, base_json, self.kind, self.reading.encoding, aim)
        };
        let learns =
            [(matches!(self.goal, Goal::Merges(_)), parameter::MERGES), (self.compare, parameter::COMPARE)];
        // Refused before any work, since this check needs only the JSON.
        for (_, option) in learns.into_iter().filter(|(given, _)| *given) {
            learns_apart(&plan.base_json, &plan.base.name, option)?;
        }
        match self.goal {
            Goal::Merges(tokens) => self.merges(plan, tokens, beside, corpus, job),
            _ => self.design(&plan, beside, corpus, job),
        }
    }

    /// Makes the smallest extension, or the best one within a budget.
    fn design(
        &self,
        plan: &ExtensionPlan,
        beside: BaseFiles,
        corpus: &dyn Conformers,
        job: &Job,
    ) -> Result<MadeTokenizer> {
        let trained = train(plan, corpus, job);
        let mut trained = trained.map_err(|error| with_commands(error, &plan.base, plan.encoding))?;
        let rows = beside.rows(&plan.base, &trained.new_tokens, &mut trained.report.vocabulary)?;
        if self.compare {
            let compared = compare(plan, trained.report.new_tokens, Some(&trained), corpus, job)?;
            trained.report.comparison = Some(compared);
        }
        Ok(MadeTokenizer {
            trained: trained.map(|report| TokenizerReport::Designed(report.into())),
            rows,
            beside,
        })
    }

    /// Makes an extension by continued BPE.
    fn merges(
        &self,
        plan: ExtensionPlan,
        tokens: u64,
        beside: BaseFiles,
        corpus: &dyn Conformers,
        job: &Job,
    ) -> Result<MadeTokenizer> {
        let trained = train_merges(&plan, tokens, corpus, job);
        let mut trained = trained.map_err(|error| with_commands(error, &plan.base, plan.encoding))?;
        let rows = beside.rows(&plan.base, &trained.new_tokens, &mut trained.report.vocabulary)?;
        if self.compare {
            // The designed extension is only a row of a table here, and is not written.
            let plan = ExtensionPlan { contexts: 1, ..plan };
            trained.report.comparison = Some(compare_with_design(&plan, tokens, corpus, job)?);
        }
        Ok(MadeTokenizer {
            trained: trained.map(|report| TokenizerReport::Learned(report.into())),
            rows,
            beside,
        })
    }

    /// Makes a tokenizer by BPE from scratch.
    fn scratch(&self, vocab_size: usize, corpus: &dyn Conformers, job: &Job) -> Result<MadeTokenizer> {
        let TokenizerRequest { kind, range, compare, .. } = *self;
        let precision = self.reading.precision();
        let plan = ScratchPlan { vocab_size, kind, range, precision, contexts: ALL_CONTEXTS, compare };
        let trained = train_scratch(plan, corpus, job)?.map(|report| TokenizerReport::Learned(report.into()));
        Ok(MadeTokenizer { trained, rows: None, beside: BaseFiles::configured(scratch_config()) })
    }
}
