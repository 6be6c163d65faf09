//! The complete procedure for continued BPE within blocks (`--merges`).

use std::collections::BTreeMap;

use super::extension::check::{Guarantees, check_pieces};
use super::extension::new_tokens::list;
use super::learned::merges::{Merged, MergesPlan, merge};
use super::measured::corpus::Measured;
use super::measured::sample::LearningSample;
use super::report::learned::{LearnedFrom, LearnedReport, Promises, Way};
use super::report::trained::Trained;
use super::report::vocabulary::{SCHEMA, VocabularyReport};
use crate::parameter;
use drift_core::error::{Error, Result};
use drift_core::job::{Job, Provenance};
use drift_data::corpus::Conformers;

/// Learns merges, checks the tokenizer, and measures it.
///
/// # Errors
/// If the base cannot be extended, so few new tokens save nothing, a check fails, the corpus cannot be read or is written in
/// another encoding, or the job was cancelled.
pub fn train_merges(
    plan: MergesPlan<'_>,
    corpus: &dyn Conformers,
    job: &Job,
) -> Result<Trained<LearnedReport>> {
    let sample = LearningSample::read(corpus, plan.grammar().encoding(), job)?;
    let MergesPlan { base, base_json, .. } = plan;
    let merged = merge(plan, &sample, job)?;
    let measured = Measured::from_corpus(&[&merged.tokenizer, base], merged.scheme.grammar, corpus, job)?;
    // Isolating blocks prevents merges such as `]<`, so with few new tokens, texts can become longer than before.
    if measured.total(0).tokens >= measured.total(1).tokens {
        let problem = format!("with {} new tokens, blocks by themselves save nothing", plan.tokens);
        return Err(Error::parameter(parameter::MERGES, problem, "give more"));
    }
    let guarantees = check_pieces(
        (base, base_json),
        &merged.tokenizer,
        (&merged.scheme, &merged.pieces),
        &merged.new_tokens,
        plan.contexts,
        job,
    )?;
    let report = report(plan, &merged, (&measured, &sample), guarantees);
    let new_tokens = list(base, &merged.new_tokens, &BTreeMap::new())?;
    Ok(Trained { tokenizer_json: merged.json, new_tokens, report, unchanged: false })
}

fn report(
    plan: MergesPlan<'_>,
    merged: &Merged,
    (measured, sample): (&Measured, &LearningSample),
    guarantees: Guarantees,
) -> LearnedReport {
    let MergesPlan { base, kind, range, .. } = plan;
    let (total, base_total) = (measured.total(0), measured.total(1));
    let mut inputs = measured.inputs.clone();
    inputs.push(base.source.clone());
    let blocks = total.inside.tokens();
    let proved = merged.proved;
    let new_tokens = merged.new_tokens.len() as u64;
    LearnedReport {
        schema: SCHEMA,
        provenance: Provenance::from_inputs(inputs),
        way: Way::Merges,
        base: Some(base.name.clone()),
        kind,
        encoding: merged.scheme.grammar.encoding(),
        range_angstrom: range,
        new_tokens,
        merges: merged.merges,
        replaced: merged.replaced,
        tokens_per_block: blocks.usual,
        fewest_tokens_per_block: proved.fewest as u64,
        most_tokens_per_block: proved.most as u64,
        drift: proved.drift(blocks.usual),
        blocks: total.all.tokens(),
        lower_bound: proved.lower_bound,
        gap: new_tokens.saturating_sub(proved.lower_bound),
        example: merged.scheme.example(merged.scheme.grammar.decimals()),
        vocabulary: VocabularyReport::new(
            &merged.tokenizer,
            (&merged.new_tokens, 0),
            &total,
            Some(&base_total),
        ),
        learned_from: LearnedFrom::new(sample),
        corpus: measured.report(0, Some(1), blocks.usual),
        guarantees: Promises::Extension(guarantees),
        comparison: None,
    }
}
