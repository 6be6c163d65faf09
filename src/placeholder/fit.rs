//! The way through: corpus and tokenizers in, report out.

use super::plan::{DialectChoice, FitPlan};
use super::report::{CorpusReport, FitReport, SCHEMA};
use super::survey::Survey;
use super::task::Task;
use crate::corpus::Conformers;
use crate::error::{Error, Parameter, Result};
use crate::job::{InputHash, Job, Provenance, Unit};
use crate::text::{Dialect, Reading, TrailingZeros, is_three_numbers};

/// Fits a placeholder for every tokenizer and dialect of the plan.
///
/// # Errors
/// If the corpus cannot be read, a tokenizer cannot encode it, a candidate is not the inside of one block, or the job
/// was cancelled.
pub fn fit(plan: &FitPlan, corpus: &dyn Conformers, job: &Job) -> Result<FitReport> {
    let reading = corpus.reading();
    let three_numbers = |text: &String| is_three_numbers(text, reading.separator);
    if let Some(candidate) = plan.candidates.iter().find(|candidate| !three_numbers(candidate)) {
        let problem = format!("`{candidate}` is not three numbers");
        return Err(Error::parameter(
            Parameter::Candidate,
            problem,
            "give the inside of a block: 0.0000,0.0000,0.0000",
        ));
    }
    let survey = Survey::of(corpus, plan.seed, job)?;
    let mut refused = Vec::new();
    let mut tasks = Vec::new();
    for tokenizer in &plan.tokenizers {
        for dialect in dialects(plan.dialects, reading, &survey) {
            job.check()?;
            match Task::new(plan, tokenizer, dialect, &survey)? {
                Ok(task) => tasks.push(task),
                Err(why) => refused.push(why),
            }
        }
    }
    replay(&mut tasks, &survey, corpus, job)?;
    job.observer().begin("fitting", Some(tasks.len() as u64), Unit::Items);
    let mut results = Vec::with_capacity(tasks.len());
    for task in tasks {
        job.check()?;
        match task.finish(plan, &survey)? {
            Ok(result) => results.push(result),
            Err(why) => refused.push(why),
        }
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
        refused,
    })
}

/// The second pass over the corpus.
fn replay(tasks: &mut [Task<'_>], survey: &Survey, corpus: &dyn Conformers, job: &Job) -> Result<()> {
    job.observer().begin("replaying", Some(survey.blocks * tasks.len() as u64), Unit::Items);
    let mut place = 0;
    let outcome = survey.again(corpus, job, &mut |conformers| {
        job.check()?;
        tasks.iter_mut().try_for_each(|task| {
            job.observer().advance(task.replay(conformers, place, survey.sample)?);
            Ok(())
        })?;
        place += conformers.len() as u64;
        Ok(())
    });
    job.observer().end();
    outcome
}

fn dialects(choice: DialectChoice, reading: Reading, survey: &Survey) -> Vec<Dialect> {
    let both = [TrailingZeros::Kept, TrailingZeros::Removed].map(|zeros| reading.dialect(zeros));
    match (choice, survey.summary.written.fixed, survey.summary.written.stripped) {
        (DialectChoice::Only(dialect), ..) => vec![reading.dialect(dialect.zeros())],
        (DialectChoice::Auto, true, false) => vec![both[0]],
        (DialectChoice::Auto, false, true) => vec![both[1]],
        (DialectChoice::Auto, ..) => both.to_vec(),
    }
}
