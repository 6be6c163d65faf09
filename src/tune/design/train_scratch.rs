//! The complete procedure for BPE from scratch (`--vocab-size`).

use serde_json::Value;

use super::compare::compare_scratch;
use super::extension::checker::Checker;
use super::extension::config::tokenizer_config;
use super::extension::layout::Alphabet;
use super::extension::numbers::Pieces;
use super::extension::texts::{ALL_CONTEXTS, CONTEXTS};
use super::learned::scratch::{SPECIAL, Scratch, ScratchPlan, scratch};
use super::measured::corpus::Measured;
use super::measured::sample::LearningSample;
use super::report::learned::{LearnedFrom, LearnedReport, Promises, ScratchPromises, Way};
use super::report::trained::Trained;
use super::report::vocabulary::{SCHEMA, VocabularyReport};
use super::scheme::counting_bound::{Proved, Usable};
use super::scheme::cuts::SchemeKind;
use super::scheme::pieces::PieceTable;
use drift_core::error::Result;
use drift_core::job::{Job, Provenance};
use drift_data::corpus::Conformers;

/// The configuration that `transformers` expects next to the tokenizer.
pub fn scratch_config() -> Value {
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
) -> Result<Trained<LearnedReport>> {
    let sample = LearningSample::read(corpus, plan.grammar().encoding(), job)?;
    let made = scratch(plan, &sample, job)?;
    let pieces = made.pieces()?;
    let promises = promises(&made, &pieces, plan.contexts, &sample, job)?;
    let measured = Measured::from_corpus(&[&made.tokenizer], made.scheme.grammar, corpus, job)?;
    let proved = proved(plan.kind, &made, &pieces);
    let comparison =
        if plan.compare { Some(compare_scratch(&made, proved, (corpus, &sample), job)?) } else { None };
    let report = LearnedReport { comparison, ..report(plan, &made, proved, (&measured, &sample), promises) };
    let new_tokens = made.list();
    Ok(Trained { tokenizer_json: made.json, new_tokens, report, unchanged: false })
}

/// Checks what the tokenizer guarantees.
fn promises(
    made: &Scratch,
    pieces: &Pieces,
    contexts: usize,
    sample: &LearningSample,
    job: &Job,
) -> Result<ScratchPromises> {
    let contexts = &CONTEXTS[..contexts.clamp(1, ALL_CONTEXTS)];
    // Without a base, the tokenizer is compared with itself for all text except blocks.
    let check = Checker {
        base: &made.tokenizer,
        extended: &made.tokenizer,
        scheme: &made.scheme,
        contexts,
        alphabet: Alphabet::Bytes,
        place: &made.tokenizer.name,
    };
    // No new tokens are listed, because reached tokens are checked below, on whole texts too.
    let run = check.numbers(pieces, &[], job)?;
    let decoded_texts = made.decoded(sample, job)?;
    Ok(ScratchPromises {
        reached_tokens: made.reached(sample, pieces)?,
        numbers: made.scheme.grammar.numbers(),
        contexts: contexts.len() as u64,
        blocks: run.blocks,
        decoded_texts,
    })
}

/// What is proved about the blocks of the range.
fn proved(kind: SchemeKind, made: &Scratch, pieces: &Pieces) -> Proved {
    let table = PieceTable::from_scheme(&made.scheme);
    let lengths: Vec<usize> = table.strings.iter().map(|string| pieces[string].len()).collect();
    // Of its initial bytes, only these can occur in a block.
    let usable =
        Usable::from_vocabulary(made.scheme.grammar, ["<", ">", "-", ".", ","].into_iter().chain(DIGITS));
    Proved::new(kind, made.scheme.grammar, table.extremes(&lengths), usable)
}

const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

fn report(
    plan: ScratchPlan,
    made: &Scratch,
    proved: Proved,
    (measured, sample): (&Measured, &LearningSample),
    promises: ScratchPromises,
) -> LearnedReport {
    let total = measured.total(0);
    let blocks = total.inside.tokens();
    let new_tokens = made.new_tokens.len() as u64;
    LearnedReport {
        schema: SCHEMA,
        provenance: Provenance::from_inputs(measured.inputs.clone()),
        way: Way::VocabSize,
        base: None,
        kind: plan.kind,
        encoding: made.scheme.grammar.encoding(),
        range_angstrom: plan.range,
        new_tokens,
        merges: new_tokens,
        replaced: 0,
        tokens_per_block: blocks.usual,
        fewest_tokens_per_block: proved.fewest as u64,
        most_tokens_per_block: proved.most as u64,
        drift: proved.drift(blocks.usual),
        blocks: total.all.tokens(),
        lower_bound: proved.lower_bound,
        gap: new_tokens.saturating_sub(proved.lower_bound),
        example: made.scheme.example(made.scheme.grammar.decimals()),
        vocabulary: VocabularyReport::new(&made.tokenizer, (&made.new_tokens, 0), &total, None),
        learned_from: LearnedFrom::new(sample),
        corpus: measured.report(0, None, blocks.usual),
        guarantees: Promises::Scratch(promises),
        comparison: None,
    }
}
