//! The complete procedure: takes a corpus and tokenizers, and returns a report.

use super::first_pass::FirstPass;
use super::plan::{EncodingChoice, FitPlan};
use super::report::{CorpusReport, FitReport, SCHEMA};
use super::task::Task;
use crate::parameter;
use drift_core::encoding::{Reading, TrailingZeros};
use drift_core::job::{InputHash, Provenance, Unit};
use drift_core::{Encoding, Error, Job, Result};
use drift_data::corpus::Conformers;

/// Fits a placeholder for every tokenizer and encoding of the plan.
///
/// # Errors
/// The errors of [`FitPlan::check`], or if the corpus cannot be read, a tokenizer cannot encode it, a candidate is not the content
/// of one block, or the job was cancelled.
pub fn fit(plan: &FitPlan, corpus: &dyn Conformers, job: &Job) -> Result<FitReport> {
    plan.check()?;
    let reading = corpus.reading();
    // Decimals may be in another encoding than the corpus: 3DMolGen's placeholders have three decimals, or trailing zeros.
    let encoding = reading.encoding;
    if let Some(candidate) = plan.candidates.iter().find(|candidate| !encoding.reads(candidate)) {
        let problem = format!("`{candidate}` is not three numbers");
        let remedy = format!("give the content of a block of {encoding}: {}", encoding.numbers_text(&[0; 3]));
        return Err(Error::parameter(parameter::CANDIDATE, problem, remedy));
    }
    let first_pass = FirstPass::run(corpus, plan.seed, job)?;
    let mut refused = Vec::new();
    let mut tasks = Vec::new();
    for tokenizer in &plan.tokenizers {
        for encoding in encodings(plan.encodings, reading, &first_pass) {
            // Creating a task counts thousands of strings, so cancellation is checked in between.
            job.check()?;
            match Task::new(plan, tokenizer, encoding, &first_pass)? {
                Ok(task) => tasks.push(task),
                Err(why) => refused.push(why),
            }
        }
    }
    replay(&mut tasks, &first_pass, corpus, job)?;
    job.observer().begin("fitting", Some(tasks.len() as u64), Unit::Items);
    let mut results = Vec::with_capacity(tasks.len());
    for task in tasks {
        job.check()?;
        match task.finish(plan, &first_pass)? {
            Ok(result) => results.push(result),
            Err(why) => refused.push(why),
        }
        job.observer().advance(1);
    }
    job.observer().end();
    // Tokenizers are inputs like the corpus, so the report includes their hashes.
    let mut inputs: Vec<InputHash> = first_pass.summary.inputs.clone();
    inputs.extend(plan.tokenizers.iter().map(|t| t.source.clone()));
    Ok(FitReport {
        schema: SCHEMA.to_owned(),
        provenance: Provenance::from_inputs(inputs),
        corpus: CorpusReport {
            conformers: first_pass.summary.conformers,
            blocks: first_pass.blocks,
            in_file_order: first_pass.in_file_order,
            skipped: first_pass.summary.skipped,
            skipped_records: first_pass.summary.skipped_records,
        },
        objective: plan.objective,
        results,
        refused,
    })
}

/// Makes the second pass over the corpus.
fn replay(tasks: &mut [Task<'_>], first_pass: &FirstPass, corpus: &dyn Conformers, job: &Job) -> Result<()> {
    // Progress counts a block once per tokenizer and encoding, since each combination replays all blocks.
    job.observer().begin("replaying", Some(first_pass.blocks * tasks.len() as u64), Unit::Items);
    let mut place = 0;
    let outcome = first_pass.again(corpus, job, &mut |conformers| {
        job.check()?;
        tasks.iter_mut().try_for_each(|task| {
            job.observer().advance(task.replay(conformers, place, first_pass.sample)?);
            Ok(())
        })?;
        place += conformers.len() as u64;
        Ok(())
    });
    job.observer().end();
    outcome
}

fn encodings(choice: EncodingChoice, reading: Reading, first_pass: &FirstPass) -> Vec<Encoding> {
    let both = [TrailingZeros::Kept, TrailingZeros::Removed].map(|zeros| reading.written(zeros));
    match (choice, first_pass.summary.written.fixed, first_pass.summary.written.stripped) {
        (EncodingChoice::Only(encoding), ..) => vec![encoding],
        (EncodingChoice::Auto, true, false) => vec![both[0]],
        (EncodingChoice::Auto, false, true) => vec![both[1]],
        // A corpus that agrees with both encodings, or with neither, does not show on which one the model was trained.
        (EncodingChoice::Auto, ..) => both.to_vec(),
    }
}
