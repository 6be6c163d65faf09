//! The tokens that the texts of a skeleton take for each prompt, counted over all texts, and the grammars of these texts.

use std::path::PathBuf;
use std::sync::Arc;

use rayon::prelude::*;
use serde::Serialize;

use crate::audit::skeletons::Prompts;
use drift_core::constraint::grammar::{GrammarFormat, skeleton_grammar};
use drift_core::constraint::skeleton::{
    PartList, PartTokens, SkeletonConstraint, SkeletonGraph, SkeletonProcessor, TextTokens, widest,
};
use drift_core::error::Result;
use drift_core::job::{Job, Provenance};
use drift_core::skeleton::{Alternative, Skeleton, SlotChange};
use drift_core::tokenizer::Tokenizer;

/// A skeleton, the prompts of its texts, and a tokenizer.
pub struct SkeletonTexts {
    /// The skeleton.
    pub skeleton: Skeleton,
    /// The file of prompts.
    pub prompts: PathBuf,
    /// The tokenizer.
    pub tokenizer: Tokenizer,
    /// The beginning of texts that prompts end with already, such as a marker. It is neither counted nor part of grammars.
    pub begun: String,
}

/// The schema of [`SkeletonTokens`].
pub const TOKENS_SCHEMA: &str = "drift.skeleton-tokens/1";

/// What the texts of a skeleton take.
#[derive(Debug, Clone, Serialize)]
pub struct SkeletonTokens {
    /// [`TOKENS_SCHEMA`].
    pub schema: &'static str,
    /// The name of the skeleton.
    pub skeleton: String,
    /// The name of the tokenizer.
    pub tokenizer: String,
    /// The parts of texts in their order, over all prompts that were counted.
    pub parts: Vec<PartTokens>,
    /// The lines of texts in their order, as parts; none where they are too many or too long to list.
    pub lines: Vec<PartTokens>,
    /// What the texts of each prompt take.
    pub prompts: Vec<PromptTokens>,
    /// The number of prompts all of whose texts take equally many tokens.
    pub constant: u64,
    /// drift's version, and the inputs by name and hash.
    pub provenance: Provenance,
}

/// What the texts of a prompt take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PromptTokens {
    /// Where the prompt stands.
    pub prompt: String,
    /// The least and the largest number of tokens of a text, of all texts; null if they are too many to count.
    pub tokens: Option<[u32; 2]>,
    /// Why texts were not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncounted: Option<String>,
}

/// The schema of [`SlotEncodings`].
pub const ENCODINGS_SCHEMA: &str = "drift.slot-encodings/1";

/// What slots take in tokens if they are written otherwise.
#[derive(Debug, Clone, Serialize)]
pub struct SlotEncodings {
    /// [`ENCODINGS_SCHEMA`].
    pub schema: &'static str,
    /// The name of the skeleton.
    pub skeleton: String,
    /// The ways to write each slot, by tokenizer.
    pub rows: Vec<SlotEncoding>,
    /// drift's version, and the inputs by name and hash.
    pub provenance: Provenance,
}

/// A way to write a slot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlotEncoding {
    /// The name of the tokenizer.
    pub tokenizer: String,
    /// The name of the slot.
    pub slot: String,
    /// What is changed; null for the slot as the skeleton writes it.
    pub change: Option<SlotChange>,
    /// How it is written, in words.
    pub written: String,
    /// The distance between two neighbouring numbers, in the unit of the slot. Half of it is the largest error of rounding.
    pub step: f64,
    /// How many numbers the slot has: that many new tokens would make it a single token.
    pub numbers: u64,
    /// The least and the largest number of tokens of a single number, of all its texts; with the text beside it where a token may join
    /// them; null if not all texts were counted.
    pub tokens_per_slot: Option<[u32; 2]>,
    /// Whether a token may join the number with the text beside it.
    pub joined: bool,
    /// The least and the largest number of tokens of a text, of all texts of all prompts; null if they are too many to count.
    pub tokens_per_text: Option<[u32; 2]>,
}

/// What was written of grammars.
#[derive(Debug, Clone, Serialize)]
pub struct SkeletonGrammars {
    /// The name of the skeleton.
    pub skeleton: String,
    /// The format.
    pub format: GrammarFormat,
    /// The number of grammars.
    pub grammars: u64,
    /// The least and the largest number of bytes of a line.
    pub line_bytes: [u64; 2],
    /// The number of lines that state the ids of their prompt.
    pub with_prompt_ids: u64,
    /// drift's version, and the inputs by name and hash.
    pub provenance: Provenance,
}

/// A line of the file of grammars.
#[derive(Serialize)]
struct GrammarLine<'g> {
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<&'g serde_json::Value>,
    /// The ids of the prompt, if they are not those of its text alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_ids: Option<Vec<u32>>,
    grammar: &'g str,
}

/// No token of a text: the end of a text is neither counted nor part of a grammar.
const NO_END: u32 = u32::MAX;

impl SkeletonTexts {
    /// Counts the tokens of all texts.
    ///
    /// # Errors
    /// If the prompts cannot be read, one lacks a field, or the tokens of its texts cannot be followed.
    pub fn tokens(self, job: &Job) -> Result<SkeletonTokens> {
        let (prompts, processor, provenance) = self.begin(job)?;
        let TokenCounts { parts, lines, prompts: counted } = count(&processor, &prompts, true, job)?;
        let is_constant = |prompt: &&PromptTokens| prompt.tokens.is_some_and(|[least, most]| least == most);
        Ok(SkeletonTokens {
            schema: TOKENS_SCHEMA,
            skeleton: processor.skeleton().name.clone(),
            tokenizer: processor.tokenizer().name.clone(),
            parts: parts.all,
            lines: lines.all,
            constant: counted.iter().filter(is_constant).count() as u64,
            prompts: counted,
            provenance,
        })
    }

    /// Writes a line with a grammar for each prompt.
    ///
    /// # Errors
    /// As [`SkeletonTexts::tokens`], or if a prompt has no grammar.
    pub fn grammars(
        self,
        format: GrammarFormat,
        job: &Job,
        put: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<SkeletonGrammars> {
        let (prompts, processor, provenance) = self.begin(job)?;
        let (mut line_bytes, mut with_prompt_ids) = ([u64::MAX, 0], 0);
        for at in 0..prompts.data.len() {
            job.check()?;
            let constraint = constraint(&processor, &prompts, at)?;
            let grammar = skeleton_grammar(&constraint, format)?;
            let (prompt, prompt_ids) = (prompts.data[at].0.get("prompt"), constraint.prompt_ids_apart()?);
            with_prompt_ids += u64::from(prompt_ids.is_some());
            let line = GrammarLine { prompt, prompt_ids, grammar: &grammar };
            let line =
                serde_json::to_string(&line).map_err(|e| drift_core::Error::internal("a grammar", e))?;
            line_bytes = [line_bytes[0].min(line.len() as u64), line_bytes[1].max(line.len() as u64)];
            put(line.as_bytes())?;
            put(b"\n")?;
        }
        let skeleton = processor.skeleton().name.clone();
        let grammars = prompts.data.len() as u64;
        Ok(SkeletonGrammars { skeleton, format, grammars, line_bytes, with_prompt_ids, provenance })
    }

    /// Compares the ways to write each slot, for this tokenizer and others.
    ///
    /// # Errors
    /// As [`SkeletonTexts::tokens`], or if two tokenizers have the same name.
    pub fn encodings(self, others: Vec<Tokenizer>, job: &Job) -> Result<SlotEncodings> {
        Tokenizer::refuse_same_names(others.iter().chain([&self.tokenizer]))?;
        let prompts = Prompts::read(&self.prompts, job)?;
        let tokenizers: Vec<Arc<Tokenizer>> =
            std::iter::once(self.tokenizer).chain(others).map(Arc::new).collect();
        let mut inputs: Vec<_> = tokenizers.iter().map(|tokenizer| tokenizer.source.clone()).collect();
        inputs.push(prompts.input.clone());
        let alternatives = self.skeleton.alternatives();
        let mut rows = Vec::with_capacity(tokenizers.len() * alternatives.len());
        for tokenizer in &tokenizers {
            let own = &self.skeleton;
            let row = |alternative: &Alternative| slot_encoding(tokenizer, alternative, own, &prompts, job);
            rows.extend(alternatives.par_iter().map(row).collect::<Result<Vec<SlotEncoding>>>()?);
        }
        let (schema, provenance) = (ENCODINGS_SCHEMA, Provenance::from_inputs(inputs));
        Ok(SlotEncodings { schema, skeleton: self.skeleton.name, rows, provenance })
    }

    fn begin(self, job: &Job) -> Result<(Prompts, Arc<SkeletonProcessor>, Provenance)> {
        let prompts = Prompts::read(&self.prompts, job)?;
        let provenance = Provenance::from_inputs(vec![self.tokenizer.source.clone(), prompts.input.clone()]);
        let processor = SkeletonProcessor::new(Arc::new(self.tokenizer), Arc::new(self.skeleton), NO_END)?;
        Ok((prompts, Arc::new(processor.begun(&self.begun)), provenance))
    }
}

/// The tokens of the parts and lines of texts over all prompts, and of the texts of each prompt.
#[derive(Default)]
struct TokenCounts {
    parts: PartList,
    lines: PartList,
    prompts: Vec<PromptTokens>,
}

impl TokenCounts {
    /// Adds the texts of a prompt; returns the least and the largest number of tokens of one.
    fn add(&mut self, graph: &SkeletonGraph, lines: bool) -> Result<[u32; 2]> {
        let TextTokens { parts, tokens } = graph.tokens()?;
        parts.into_iter().for_each(|part| self.parts.add(part));
        if lines {
            graph.lines()?.into_iter().for_each(|line| self.lines.add(line));
        }
        Ok(tokens)
    }
}

/// Counts the tokens of the parts of texts, and of their `lines` if they are asked for.
fn count(
    processor: &Arc<SkeletonProcessor>,
    prompts: &Prompts,
    lines: bool,
    job: &Job,
) -> Result<TokenCounts> {
    let mut counts = TokenCounts::default();
    for at in 0..prompts.data.len() {
        job.check()?;
        let constraint = constraint(processor, prompts, at)?;
        let prompt = prompts.data[at].1.clone();
        let tokens = constraint.graph().and_then(|graph| counts.add(&graph, lines));
        let uncounted = tokens.as_ref().err().map(ToString::to_string);
        counts.prompts.push(PromptTokens { prompt, tokens: tokens.ok(), uncounted });
    }
    Ok(counts)
}

fn constraint(
    processor: &Arc<SkeletonProcessor>,
    prompts: &Prompts,
    at: usize,
) -> Result<SkeletonConstraint> {
    let (data, place) = &prompts.data[at];
    processor.constraint(data, data.get("prompt").and_then(|prompt| prompt.as_str()), place)
}

/// Counts the tokens of the parts of a skeleton's texts.
fn parts_of(
    skeleton: &Skeleton,
    tokenizer: &Arc<Tokenizer>,
    prompts: &Prompts,
    job: &Job,
) -> Result<TokenCounts> {
    let processor = SkeletonProcessor::new(tokenizer.clone(), Arc::new(skeleton.clone()), NO_END)?;
    count(&Arc::new(processor), prompts, false, job)
}

/// Returns what a slot of a skeleton takes if it is written so.
fn slot_encoding(
    tokenizer: &Arc<Tokenizer>,
    alternative: &Alternative,
    own: &Skeleton,
    prompts: &Prompts,
    job: &Job,
) -> Result<SlotEncoding> {
    let Alternative { skeleton, slot, change, step, numbers } = alternative;
    let slot = &skeleton.slots[*slot];
    let counts = parts_of(skeleton, tokenizer, prompts, job);
    let counts = counts.ok().filter(|counts| counts.prompts.iter().all(|one| one.tokens.is_some()));
    job.check()?;
    // The tokens of a number may not be known; those of the slots of an encoding are, if they are written as they are.
    let is_known = counts.is_some();
    let counts = match counts {
        None if change.is_none() => parts_of(own, tokenizer, prompts, job)?,
        counts => counts.unwrap_or_default(),
    };
    let braced = format!("{{{}}}", slot.name);
    let own = || counts.parts.all.iter().filter(|part| is_known && part.part.contains(&braced));
    let whole: Option<Vec<[u32; 2]>> = counts.prompts.iter().map(|prompt| prompt.tokens).collect();
    Ok(SlotEncoding {
        tokenizer: tokenizer.name.clone(),
        slot: slot.name.clone(),
        change: *change,
        written: slot.description(),
        step: *step,
        numbers: *numbers,
        tokens_per_slot: own().map(|part| part.tokens).reduce(widest),
        joined: own().any(|part| part.joined),
        tokens_per_text: whole.and_then(|all| all.into_iter().reduce(widest)),
    })
}
