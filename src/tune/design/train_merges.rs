//! The complete procedure for continued BPE within blocks (`--merges`).

use std::collections::BTreeMap;

use super::extension::check::check_pieces;
use super::extension::new_tokens::list;
use super::extension::plan::ExtensionPlan;
use super::learned::merges::merge;
use super::measured::corpus::CorpusMeasurement;
use super::measured::sample::LearningSample;
use super::report::learned::{LearnedReport, Promises};
use super::report::trained::TrainedTokenizer;
use crate::parameter;
use drift_core::{Error, Job, Result};
use drift_data::corpus::Conformers;

/// Learns `tokens` tokens by merges, checks the tokenizer, and measures it. The goal of the plan does not matter.
///
/// # Errors
/// If the base cannot be extended, so few new tokens save nothing, a check fails, the corpus cannot be read or is written in
/// another encoding, or the job was cancelled.
pub fn train_merges(
    plan: &ExtensionPlan,
    tokens: u64,
    corpus: &dyn Conformers,
    job: &Job,
) -> Result<TrainedTokenizer<LearnedReport>> {
    let sample = LearningSample::read(corpus, plan.fixed_grammar().encoding(), job)?;
    let base = &plan.base;
    let merged = merge(plan, tokens, &sample, job)?;
    let measured =
        CorpusMeasurement::from_corpus(&[&merged.tokenizer, base], merged.scheme.grammar, corpus, job)?;
    // Isolating blocks prevents merges such as `]<`, so with few new tokens, texts can become longer than before.
    if measured.total(0).tokens >= measured.total(1).tokens {
        let problem = format!("with {tokens} new tokens, blocks by themselves save nothing");
        return Err(Error::parameter(parameter::MERGES, problem, "give more"));
    }
    let guarantees = check_pieces(
        plan.base(),
        &merged.tokenizer,
        &merged.scheme,
        &merged.pieces,
        &merged.new_tokens,
        plan.contexts,
        job,
    )?;
    let promises = Promises::Extension(guarantees);
    let report = LearnedReport::new(plan.kind, Some(base), &merged, &measured, &sample, promises);
    let new_tokens = list(base, &merged.new_tokens, &BTreeMap::new())?;
    Ok(TrainedTokenizer { tokenizer_json: merged.json, new_tokens, report, unchanged: false })
}
