//! The complete procedure for BPE from scratch (`--vocab-size`).

use serde_json::Value;

use super::compare::compare_scratch;
use super::extension::checker::{Checker, TokenizerPair};
use super::extension::config::tokenizer_config;
use super::extension::layout::Alphabet;
use super::extension::texts::{ALL_CONTEXTS, CONTEXTS};
use super::learned::scratch::{SPECIAL, ScratchPlan, scratch};
use super::learned::tokenizer::LearnedTokenizer;
use super::measured::corpus::CorpusMeasurement;
use super::measured::sample::LearningSample;
use super::report::learned::{LearnedReport, Promises, ScratchPromises};
use super::report::trained::TrainedTokenizer;
use drift_core::{Job, Result};
use drift_data::corpus::Conformers;

/// Returns the configuration that `transformers` expects next to the tokenizer.
pub(crate) fn scratch_config() -> Value {
    let mut config = tokenizer_config(None);
    config["eos_token"] = SPECIAL[0].into();
    config["pad_token"] = SPECIAL[0].into();
    config
}

/// Trains a tokenizer, checks it, and measures it.
///
/// # Errors
/// If the vocabulary is too small, a check fails, the corpus cannot be read or is written in another encoding, or the job was
/// cancelled.
pub fn train_scratch(
    plan: ScratchPlan,
    corpus: &dyn Conformers,
    job: &Job,
) -> Result<TrainedTokenizer<LearnedReport>> {
    let sample = LearningSample::read(corpus, plan.grammar().encoding(), job)?;
    let made = scratch(plan, &sample, job)?;
    let promises = Promises::Scratch(promises(&made, plan.contexts, &sample, job)?);
    let measured = CorpusMeasurement::from_corpus(&[&made.tokenizer], made.scheme.grammar, corpus, job)?;
    let mut report = LearnedReport::new(plan.kind, None, &made, &measured, &sample, promises);
    if plan.compare {
        report.comparison = Some(compare_scratch(&made, corpus, &sample, job)?);
    }
    let new_tokens = made.list();
    Ok(TrainedTokenizer { tokenizer_json: made.json, new_tokens, report, unchanged: false })
}

/// Checks what the tokenizer guarantees.
fn promises(
    made: &LearnedTokenizer,
    contexts: usize,
    sample: &LearningSample,
    job: &Job,
) -> Result<ScratchPromises> {
    let contexts = &CONTEXTS[..contexts.clamp(1, ALL_CONTEXTS)];
    // Without a base, the tokenizer is compared with itself for all text except blocks.
    let (base, scheme) = (&made.tokenizer, &made.scheme);
    let (isolated, alphabet) = (&scheme.grammar, Alphabet::Bytes);
    let pair = TokenizerPair { base, extended: base, isolated, contexts, alphabet };
    let check = Checker { pair, scheme };
    // No new tokens are listed, because reached tokens are checked below, on whole texts too.
    let run = check.numbers(&made.pieces, &[], job)?;
    let decoded_texts = made.decoded(sample, job)?;
    Ok(ScratchPromises {
        reached_tokens: made.reached(sample)?,
        numbers: made.scheme.grammar.numbers(),
        contexts: contexts.len() as u64,
        blocks: run.blocks,
        decoded_texts,
    })
}
