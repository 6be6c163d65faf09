//! Helps to choose an encoding for training: measures what each costs in tokens, forward passes and new embedding rows, and what
//! its text itself loses.
//!
//! - [`loss`] reads a corpus once, and writes every conformer in every encoding and reads it back: RMSD, the worst atom, validity,
//!   range, and the volume of the cells.
//! - [`tokens`] counts the tokens of each encoding on a sample of the corpus, for each tokenizer and its smallest extensions.
//! - [`report`] is the result, with a recommendation.

pub mod loss;
pub mod report;
pub mod tokens;

use std::collections::BTreeSet;

use loss::{Losses, TextLoss};
use rayon::prelude::*;
use report::{EncodingRow, EncodingsReport, MissingExtension, SCHEMA, recommend};
use tokens::{Sample, TokenCosts, costs};

use crate::design::extension::base::BaseTokenizer;
use crate::design::train::drafts;
use crate::design::{Base, SchemeKind};
use drift_core::job::{Provenance, Unit};
use drift_core::{Encoding, Error, Job, Result, Tokenizer};
use drift_data::corpus::{Conformer, Conformers};

/// What to compare.
pub struct EncodingsPlan {
    /// The tokenizers.
    pub tokenizers: Vec<Base>,
    /// The encodings.
    pub encodings: Vec<Encoding>,
    /// The numbers of tokens per block of the extensions to try; empty to use only the unchanged tokenizers.
    pub tokens_per_block: Vec<usize>,
    /// The kind of these extensions.
    pub kind: SchemeKind,
    /// The seed for drawing the sample of conformers whose tokens are counted.
    pub seed: u64,
}

impl EncodingsPlan {
    /// Returns the most rows that an encoding has with a tokenizer.
    fn most_rows(&self) -> usize {
        1 + self.tokens_per_block.len()
    }
}

/// Measures every encoding with every tokenizer. The corpus is read once, and only a sample of it is kept.
///
/// # Errors
/// If two tokenizers have the same name, the corpus cannot be read or contains no conformer, a tokenizer cannot write the texts of an
/// encoding, or the job was cancelled.
pub fn compare_encodings(
    plan: &EncodingsPlan,
    corpus: &dyn Conformers,
    job: &Job,
) -> Result<EncodingsReport> {
    Tokenizer::refuse_same_names(plan.tokenizers.iter().map(|base| &base.tokenizer))?;
    let mut losses = Losses::new(&plan.encodings, plan.seed);
    let summary =
        corpus.read(job, &mut |batch| losses.add(&batch.conformers, corpus.reading().encoding, job))?;
    if summary.conformers == 0 {
        return Err(Error::input("the corpus", "contains no conformer", "give another"));
    }
    let conformers = losses.conformers();
    let (losses, drawn) = losses.finish();
    let sample = Sample { conformers: &drawn, encoding: corpus.reading().encoding };
    check_characters(plan, sample.conformers)?;
    let (mut rows, mut missing) = (Vec::new(), Vec::new());
    let tasks = plan.tokenizers.len() * plan.encodings.len() * plan.most_rows();
    job.observer().begin("encodings", Some(tasks as u64), Unit::Items);
    for base in &plan.tokenizers {
        let json = base.read_json()?;
        let base = BaseTokenizer { tokenizer: &base.tokenizer, json: &json };
        // The extensions of one tokenizer at a time, since a real one takes hundreds of megabytes.
        let of_tokenizer = plan.encodings.par_iter().zip(&losses).map(|(encoding, loss)| {
            job.check()?;
            let rows = rows_of(plan, base, *encoding, loss, sample, job)?;
            // Not every number of tokens has an extension, and each row was counted when it was ready.
            job.observer().advance(plan.most_rows().saturating_sub(rows.ready.len()) as u64);
            Ok((rows.ready, rows.missing))
        });
        let of_tokenizer = of_tokenizer.collect::<Result<Vec<_>>>()?;
        for (ready, without) in of_tokenizer {
            rows.extend(ready);
            missing.extend(without);
        }
    }
    job.observer().end();
    let mut inputs = summary.inputs;
    inputs.extend(plan.tokenizers.iter().map(|base| base.tokenizer.source.clone()));
    let recommended = recommend(&mut rows);
    Ok(EncodingsReport {
        schema: SCHEMA,
        provenance: Provenance::from_inputs(inputs),
        conformers,
        skipped: summary.skipped,
        skipped_records: summary.skipped_records,
        sample: sample.conformers.len() as u64,
        rows,
        missing,
        recommended,
    })
}

/// Refuses tokenizers that cannot write the texts of an encoding: a model reads the same token in place of several characters, and
/// the number of tokens says nothing.
fn check_characters(plan: &EncodingsPlan, sample: &[Conformer]) -> Result<()> {
    let mut characters = BTreeSet::new();
    // Whether a tokenizer writes a character does not depend on the molecule, so a few skeletons with all characters are enough.
    let mut skeletons: Vec<&str> = sample.iter().map(|conformer| &*conformer.skeleton).collect();
    skeletons.retain(|skeleton| skeleton.chars().filter(|c| characters.insert(*c)).count() > 0);
    for base in &plan.tokenizers {
        for encoding in &plan.encodings {
            base.tokenizer.writes(*encoding, skeletons.iter().copied())?;
        }
    }
    Ok(())
}

/// Returns the rows of an encoding with an unchanged tokenizer, and with its extensions.
fn rows_of<'a>(
    plan: &EncodingsPlan,
    base: BaseTokenizer<'a>,
    encoding: Encoding,
    loss: &'a TextLoss,
    sample: Sample<'_>,
    job: &'a Job,
) -> Result<Rows<'a>> {
    let (ready, missing) = Default::default();
    let mut rows = Rows { encoding, tokenizer: &base.tokenizer.name, loss, job, ready, missing };
    // The unchanged tokenizer comes first: it needs no new tokens, and shows which extensions are worth trying.
    let own = costs(base.tokenizer, encoding, sample, job)?;
    rows.add(own, 0);
    // An extension to the number of tokens that the tokenizer already has is not informative.
    let asked = plan.tokens_per_block.iter().copied();
    let asked = asked.filter(|tokens| !own.constant || own.tokens_per_block.max != *tokens as u64);
    let missing = drafts(base, plan.kind, encoding, asked, &mut |extended, new_tokens| {
        rows.add(costs(extended, encoding, sample, job)?, new_tokens);
        Ok(())
    })?;
    rows.missing.extend(missing.into_iter().map(|(tokens, why)| MissingExtension {
        encoding,
        tokenizer: base.tokenizer.name.clone(),
        tokens_per_block: tokens as u64,
        reason: why.to_string(),
    }));
    Ok(rows)
}

/// The rows of an encoding with a tokenizer that are ready.
struct Rows<'a> {
    encoding: Encoding,
    tokenizer: &'a str,
    loss: &'a TextLoss,
    job: &'a Job,
    ready: Vec<EncodingRow>,
    missing: Vec<MissingExtension>,
}

impl Rows<'_> {
    /// Adds a row, and shows it.
    fn add(&mut self, costs: TokenCosts, new_tokens: u64) {
        let row = EncodingRow {
            encoding: self.encoding,
            tokenizer: self.tokenizer.to_owned(),
            new_tokens,
            costs,
            loss: *self.loss,
            on_front: false,
        };
        self.job.observer().ready(&row.line());
        self.job.observer().advance(1);
        self.ready.push(row);
    }
}
