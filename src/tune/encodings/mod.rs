//! Which encoding to train on: what each costs in tokens, forward passes and new rows, and what its text alone loses.
//!
//! - [`loss`] reads a corpus once and writes every conformer in every encoding and back: RMSD, the worst atom, validity, range,
//!   and the volume of the cells.
//! - [`tokens`] counts, on a sample of the corpus, the tokens of each encoding by each tokenizer and by its smallest extensions.
//! - [`report`] is what comes out, with what is recommended.

pub mod loss;
pub mod report;
pub mod tokens;

use loss::{Losses, TextLoss};
use rayon::prelude::*;
use report::{EncodingRow, EncodingsReport, SCHEMA, recommend};
use serde_json::Value;
use tokens::{TokenCosts, costs};

use crate::design::train::drafts;
use crate::design::{Base, SchemeKind};
use drift_core::encoding::Encoding;
use drift_core::error::{Error, Result};
use drift_core::job::{Job, Provenance, Unit};
use drift_core::tokenizer::Tokenizer;
use drift_data::corpus::{Conformer, Conformers};

/// What to set side by side.
pub struct EncodingsPlan {
    /// The tokenizers.
    pub tokenizers: Vec<Base>,
    /// The encodings.
    pub encodings: Vec<Encoding>,
    /// Tokens a block of the extensions that are tried; none for the tokenizers as they are.
    pub tokens_per_block: Vec<usize>,
    /// Which tokens these extensions may have.
    pub kind: SchemeKind,
    /// Of which conformers tokens are counted.
    pub seed: u64,
}

/// Measures every encoding with every tokenizer. The corpus is read once, and only a sample of it kept.
///
/// # Errors
/// If the corpus cannot be read or holds no conformer, a text cannot be encoded, or the job was cancelled.
pub fn compare_encodings(
    plan: &EncodingsPlan,
    corpus: &dyn Conformers,
    job: &Job,
) -> Result<EncodingsReport> {
    let mut losses = Losses::new(&plan.encodings, plan.seed);
    let summary =
        corpus.read(job, &mut |batch| losses.add(&batch.conformers, corpus.reading().encoding, job))?;
    if summary.conformers == 0 {
        return Err(Error::input("the corpus", "contains no conformer", "give another"));
    }
    let conformers = losses.conformers();
    let ((losses, sample), from) = (losses.finish(), corpus.reading().encoding);
    let mut rows = Vec::new();
    let tasks = plan.tokenizers.len() * plan.encodings.len();
    job.observer().begin("encodings", Some(tasks as u64), Unit::Items);
    for base in &plan.tokenizers {
        let json = base.read_json()?;
        // Extensions of one tokenizer at a time: a real one takes hundreds of megabytes.
        let of_tokenizer = plan.encodings.par_iter().zip(&losses).map(|(encoding, loss)| {
            job.check()?;
            let rows = rows_of(plan, (&base.tokenizer, &json), (*encoding, loss), (&sample, from), job);
            job.observer().advance(1);
            rows
        });
        let of_tokenizer: Vec<Vec<EncodingRow>> = of_tokenizer.collect::<Result<_>>()?;
        rows.extend(of_tokenizer.into_iter().flatten());
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
        sample: sample.len() as u64,
        rows,
        recommended,
    })
}

/// An encoding with a tokenizer as it is, and with its extensions.
fn rows_of(
    plan: &EncodingsPlan,
    (base, json): (&Tokenizer, &Value),
    (encoding, loss): (Encoding, &TextLoss),
    (sample, from): (&[Conformer], Encoding),
    job: &Job,
) -> Result<Vec<EncodingRow>> {
    let row = |costs: TokenCosts, new_tokens: u64| EncodingRow {
        encoding,
        tokenizer: base.name.clone(),
        new_tokens,
        costs,
        loss: *loss,
        on_front: false,
    };
    // The tokenizer as it is comes first: it costs no new token, and says which extensions are worth a look.
    let own = costs(base, encoding, (sample, from), job)?;
    let mut rows = vec![row(own, 0)];
    // An extension to what the tokenizer does already says nothing new.
    let asked = plan.tokens_per_block.iter().copied();
    let asked = asked.filter(|tokens| !own.constant || own.tokens_per_block.max != *tokens as u64);
    drafts((base, json), plan.kind, encoding, asked, &mut |extended, new_tokens| {
        rows.push(row(costs(extended, encoding, (sample, from), job)?, new_tokens));
        Ok(())
    })?;
    Ok(rows)
}
