//! The self-check of a device before it may write texts. drift's kernels write some rows of the run, and candle's operations on the
//! same device compute them again, with the run's own weights, encoding and logit processor.
//!
//! `check_steps` compares logits, tokens, states and counters step by step; `check_draws` compares only draws. This module selects
//! the rows, acts on the outcome, and decides which verdicts are kept (`evidence`). The check does not cover batches of more than
//! [`MOST_ROWS`] rows, texts after the first steps, and errors of a kernel that do not appear in these rows.

use std::time::Instant;

use super::check_draws::check_draws;
use super::check_report::SelfChecking;
use super::check_steps::check_steps;
use super::compared::StepComparison;
use super::evidence::{Evidence, VerdictKey};
use super::on_device::{DeviceTask, Starter, given_up};
use super::{Options, Prompt};
use crate::model::Decoder;
use crate::model::cuda::GpuIdentity;
use drift_core::sampling::Sampling;
use drift_core::{Error, Result};
use drift_data::generation::{SelfCheck, Verdict};

/// The largest number of rows of a check.
const MOST_ROWS: usize = 16;

/// The number of greedy steps of each row after its prompt, and the number of steps with the run's own preset if the run samples.
const GREEDY_STEPS: usize = 32;
const DRAWN_STEPS: usize = 8;

/// The largest number of tokens of a text of a check; forced runs make it longer than the number of steps.
const MOST_TOKENS: usize = 160;

/// The least lengths of the check's prompts in tokens, in turn, if the run has texts of this length. First, the prompt's own
/// length. Second, a length at which a warp of `attend` loops more than once if one block handles all positions, as it does while
/// prompts are read. Third, a length at which it does so if several blocks share the positions; candle reads such a prompt.
const LENGTHS: [usize; 3] = [0, 240, 640];

/// Adds the result of a comparison to a check.
fn add(compared: &StepComparison, check: &mut SelfCheck) {
    check.rows = check.rows.max(compared.rows);
    check.choices += compared.choices;
    check.drawn += if compared.is_drawn { compared.choices } else { 0 };
    check.bound = compared.bound;
    check.largest_difference = check.largest_difference.max(compared.largest);
    check.mean_difference = check.mean_difference.max(compared.mean());
    check.in_doubt.extend_from_slice(&compared.in_doubt);
    check.near_ties.extend_from_slice(&compared.near_ties);
    if let Some(problem) = &compared.problem {
        check.verdict = Verdict::Differs;
        check.problem = Some(problem.clone());
    }
}

/// Checks the device, if there is one and it has work in this run. Returns the starter if the device may be used, and the result of
/// the check.
///
/// # Errors
/// If the device fails and the run insists on it, if it has no room for the kernels, or if candle cannot use it any more either.
pub(super) fn trusted<'g>(
    starter: Option<Starter<'g>>,
    decoder: &Decoder,
    (prompts, options): (&[Prompt], &Options),
) -> Result<(Option<Starter<'g>>, Option<SelfCheck>)> {
    let task = DeviceTask::new(prompts, options).filter(|_| options.self_check.is_wanted);
    let (Some(starter), Some(task)) = (starter, task) else { return Ok((starter, None)) };
    let began = Instant::now();
    let checked = PendingCheck { starter, decoder, prompts, options, task }.run();
    let (mut check, error) = match checked {
        // No room for the kernels, and candle's operations need even more.
        Err(error @ Error::Parameter { .. }) => return Err(error),
        Err(error) => (SelfCheck::failed(&error), Some(error)),
        Ok(checked) => checked,
    };
    check.seconds = began.elapsed().as_secs_f64();
    if check.verdict == Verdict::Passed {
        return Ok((Some(starter), Some(check)));
    }
    if options.self_check.insists && check.verdict == Verdict::Differs {
        check.insisted = true;
        return Ok((Some(starter), Some(check)));
    }
    let error = error.unwrap_or_else(|| {
        let problem = check.problem.as_deref().unwrap_or("differs");
        Error::input("the self-check", problem, "")
    });
    given_up(decoder, &error, options)?;
    Ok((None, Some(check)))
}

/// A check to be made.
struct PendingCheck<'c> {
    starter: Starter<'c>,
    decoder: &'c Decoder,
    prompts: &'c [Prompt],
    options: &'c Options,
    task: DeviceTask,
}

impl PendingCheck<'_> {
    /// Runs the check. Returns its result, and the error that ended it, if any.
    fn run(&self) -> Result<(SelfCheck, Option<Error>)> {
        let device = (self.starter.start)()?.identity();
        let key = device.clone().map(|device| self.key(device));
        let verdicts = self.options.self_check.verdicts.as_deref();
        let place = verdicts.zip(key.as_ref());
        if let Some(known) = place.and_then(|(folder, key)| key.kept(folder)) {
            return Ok((SelfCheck { kept: true, ..known }, None));
        }
        let mut check = SelfCheck { device, ..SelfCheck::default() };
        let mut evidence = Evidence::new(self.decoder.config());
        let outcome = self.compare(&mut check, &mut evidence);
        if let Err(error) = &outcome {
            (check.verdict, check.problem) = (Verdict::Failed, Some(error.to_string()));
        }
        if check.verdict != Verdict::Passed {
            let folder = self.options.self_check.evidence.as_deref();
            let folder = folder.filter(|folder| evidence.write(folder, &check));
            check.evidence = folder.map(|folder| folder.display().to_string());
        }
        // A failure without a difference may be temporary, so its verdict is not kept.
        if let (Some((folder, key)), Ok(())) = (place, &outcome) {
            key.keep(folder, &check);
        }
        Ok((check, outcome.err()))
    }

    fn key(&self, device: GpuIdentity) -> VerdictKey<'_> {
        VerdictKey {
            device,
            config: self.decoder.config(),
            dtype: self.decoder.device().dtype().as_str(),
            task: format!("{:?}", self.task),
            steps: format!("{:?}", self.starter.steps),
            sampling: format!("{:?}", self.options.sampling),
            rows: self.rows(),
        }
    }

    fn rows(&self) -> usize {
        MOST_ROWS.min(self.options.batch.max(1))
    }

    /// Compares greedy texts, and then texts drawn with the run's preset.
    fn compare(&self, check: &mut SelfCheck, evidence: &mut Evidence<'_>) -> Result<()> {
        let (prompts, rows) = (self.some_prompts(), self.rows());
        let greedy = (Sampling::GREEDY, GREEDY_STEPS);
        let drawn = (self.options.sampling, DRAWN_STEPS);
        let rounds = [Some(greedy), Some(drawn).filter(|(sampling, _)| sampling.temperature.is_some())];
        for (sampling, steps) in rounds.into_iter().flatten() {
            let options = Options {
                batch: rows,
                sampling,
                seed: self.options.seed,
                self_check: SelfChecking::OFF,
                ..Options::default()
            };
            let how = (&*prompts, &options);
            let compared = match self.task {
                DeviceTask::Draws => check_draws(self.starter, self.decoder, how, steps)?,
                DeviceTask::Automaton | DeviceTask::Any => {
                    check_steps(self.starter, self.decoder, how, steps, evidence)?
                }
            };
            add(&compared, check);
            if compared.problem.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the first prompts of the run, some as they are and some after repeated tokens, with enough texts to fill the rows.
    /// Attention depends on the number of positions, and a run reaches more positions than its first steps do.
    fn some_prompts(&self) -> Vec<Prompt> {
        let rows = self.rows();
        let context = self.decoder.config().max_position_embeddings;
        let has_room = |prompt: &&Prompt| prompt.tokens.len() < context && prompt.most_tokens > 0;
        let few: Vec<&Prompt> = self.prompts.iter().filter(has_room).take(rows).collect();
        if few.is_empty() {
            return Vec::new();
        }
        let longest = self.prompts.iter().map(|prompt| prompt.tokens.len() + prompt.most_tokens).max();
        let longest = longest.unwrap_or(0).min(context.saturating_sub(MOST_TOKENS));
        let count = few.len().max(LENGTHS.len().min(rows));
        let prompt = |at: usize| {
            let prompt = few[at % few.len()];
            let lacks = LENGTHS[at % LENGTHS.len()].min(longest).saturating_sub(prompt.tokens.len());
            let before = prompt.tokens.iter().cycle().take(lacks);
            Prompt {
                tokens: before.chain(&prompt.tokens).copied().collect(),
                generations: rows / count + usize::from(at < rows % count),
                done: [].into(),
                most_tokens: prompt.most_tokens.min(MOST_TOKENS),
                ..prompt.clone()
            }
        };
        (0..count).map(prompt).collect()
    }
}
