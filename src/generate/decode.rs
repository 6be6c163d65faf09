//! The decode loop of drift's own engine: rows enter as others finish, forced runs are read in one pass, and where few
//! tokens are allowed only their rows of the LM head are computed.

use candle_core::Tensor;
use rayon::prelude::*;

use super::clock::{Clock, Phase};
use super::head::{Choice, Logits, Want, lasts, most_likely_after, pick};
use super::row::Row;
use super::sample::{Candidates, draw, log_probability, most_likely};
use super::schedule::{Waiting, longest_first};
use super::{Generated, GeneratedText, Options, Prompt, WorkCounts};
use crate::error::{Error, Result};
use crate::job::Job;
use crate::model::{Cache, Decoder, Feed, HiddenStates, Prefix};

/// Generates for all prompts.
pub(super) fn generate(
    decoder: &Decoder,
    prompts: &[Prompt],
    options: &Options,
    job: &Job,
) -> Result<Generated> {
    let waiting = longest_first(prompts);
    let context = decoder.config().max_position_embeddings;
    let longest = prompts.iter().map(|p| (p.tokens.len() + p.most_tokens).min(context)).max().unwrap_or(0);
    let rows = options.batch.min(waiting.len());
    let cache = decoder.cache(rows, longest, options.room)?;
    let clock = Clock::new(options);
    let mut run = Run {
        decoder,
        prompts,
        options,
        cache,
        waiting,
        rows: Vec::new(),
        held: None,
        samples: Vec::new(),
        counts: WorkCounts::default(),
        clock,
    };
    let interrupted = run.all(job)?;
    let Run { samples, counts, mut clock, .. } = run;
    clock.end_batch();
    let Clock { timing, spans, batches, .. } = clock;
    Ok(Generated { samples, counts, timing, spans, batches, interrupted })
}

/// A forced token before which the logits are wanted.
struct Asked {
    /// Of the batch.
    row: usize,
    /// Among the row's tokens.
    place: usize,
    /// How many tokens before the last pending one its logits come.
    back: usize,
}

struct Run<'a> {
    decoder: &'a Decoder,
    prompts: &'a [Prompt],
    options: &'a Options,
    cache: Cache,
    waiting: Waiting,
    /// Row `i` is in row `i` of the cache.
    rows: Vec<Row<'a>>,
    /// What later generations of this prompt will need.
    held: Option<(usize, Prefix)>,
    samples: Vec<GeneratedText>,
    counts: WorkCounts,
    clock: Clock,
}

impl<'a> Run<'a> {
    /// Runs until nothing waits; whether the job was cancelled before.
    fn all(&mut self, job: &Job) -> Result<bool> {
        loop {
            match job.check() {
                Err(Error::Interrupted) => return Ok(true),
                checked => checked?,
            }
            self.admit()?;
            self.retire(job)?;
            self.clock.lap(Phase::Other, self.rows.len());
            if !self.rows.is_empty() {
                self.step()?;
                self.retire(job)?;
            } else if self.waiting.front().is_none() {
                return Ok(false);
            }
        }
    }

    /// Fills the batch, and lets the model read the new prompts but for their last tokens.
    fn admit(&mut self) -> Result<()> {
        let first = self.rows.len();
        let context = self.decoder.config().max_position_embeddings;
        let mut entered = Vec::new();
        while self.rows.len() < self.cache.rows()
            && let Some(item) = self.waiting.next()
        {
            let prompt = &self.prompts[item.prompt];
            self.rows.push(Row::new(prompt, item, self.options, context, true));
            entered.push(item.prompt);
        }
        self.clock.lap(Phase::LogitProcessor, self.rows.len());
        if entered.is_empty() {
            return Ok(());
        }
        self.prefill(first, &entered)?;
        self.clock.lap(Phase::Prefill, self.rows.len());
        Ok(())
    }

    /// Reads the prompts `entered` of the rows from `first` on; once for all generations of a molecule.
    fn prefill(&mut self, first: usize, entered: &[usize]) -> Result<()> {
        let prompts = self.prompts;
        let body = |prompt: usize| &prompts[prompt].tokens[..prompts[prompt].tokens.len() - 1];
        let held = self.held.take();
        let is_held = |prompt: usize| held.as_ref().is_some_and(|(of, _)| *of == prompt);
        let mut feeds = Vec::new();
        for (at, prompt) in entered.iter().enumerate() {
            self.cache.clear(first + at);
            let is_first = at == 0 || entered[at - 1] != *prompt;
            if is_first && !is_held(*prompt) && !body(*prompt).is_empty() {
                feeds.push(Feed { row: first + at, tokens: body(*prompt) });
            }
        }
        if !feeds.is_empty() {
            self.decoder.forward(&feeds, &mut self.cache, HiddenStates::None)?;
            self.counts.prefill_passes += 1;
            self.counts.prompt_tokens += self.count_fed(&feeds);
        }
        let mut prefix = held;
        for (at, prompt) in entered.iter().enumerate() {
            let waits = self.waiting.front().map(|item| item.prompt);
            let follows = entered.get(at + 1).copied().or(waits);
            if prefix.as_ref().is_none_or(|(of, _)| of != prompt) {
                // Nobody copies a row that no other generation follows.
                prefix = match follows == Some(*prompt) {
                    true => Some((*prompt, self.cache.prefix(first + at)?)),
                    false => None,
                };
            } else if let Some((_, prefix)) = &prefix {
                self.cache.restore(first + at, prefix)?;
                self.counts.shared_prompt_tokens += prefix.length() as u64;
            }
        }
        let still_wanted = self.waiting.front().map(|item| item.prompt);
        self.held = prefix.filter(|(of, _)| Some(*of) == still_wanted);
        Ok(())
    }

    /// Counts what a pass reads, and what it reads for nothing where rows are padded to one width.
    fn count_fed(&mut self, feeds: &[Feed<'_>]) -> u64 {
        let real: usize = feeds.iter().map(|feed| feed.tokens.len()).sum();
        if !self.decoder.is_ragged() {
            let width = feeds.iter().map(|feed| feed.tokens.len()).max().unwrap_or(0);
            self.counts.wasted_positions += (width * feeds.len() - real) as u64;
        }
        real as u64
    }

    /// One forward pass over what is pending, and one new token for each row.
    fn step(&mut self) -> Result<()> {
        let rows = self.rows.len();
        let pending: Vec<Vec<u32>> =
            self.rows.iter_mut().map(|row| std::mem::take(&mut row.pending)).collect();
        let feeds: Vec<Feed<'_>> =
            pending.iter().enumerate().map(|(row, tokens)| Feed { row, tokens }).collect();
        let logs = self.options.log_probabilities;
        let asked = self.asked();
        let output = if logs || !asked.is_empty() { HiddenStates::All } else { HiddenStates::Last };
        let hidden = self.decoder.forward(&feeds, &mut self.cache, output)?;
        self.count_fed(&feeds);
        self.counts.decode_steps += 1;
        self.counts.row_passes += rows as u64;
        self.clock.lap(Phase::Forward, rows);
        let wants: Vec<Want<'a>> = self.rows.iter().map(Want::of).collect();
        self.clock.lap(Phase::LogitProcessor, rows);
        let logits = match (logs, output) {
            (true, _) => Logits::all(self.decoder, &hidden, &feeds)?,
            (false, HiddenStates::All) => {
                let last = lasts(&feeds).into_iter().map(|at| at as u32).collect();
                Logits::last(self.decoder, &pick(&hidden, last)?, &wants)?
            }
            (false, _) => Logits::last(self.decoder, &hidden, &wants)?,
        };
        self.counts.head_rows += logits.rows() as u64;
        self.answer(&asked, &hidden, &feeds, &logits)?;
        self.clock.lap(Phase::Forward, rows);
        if logs {
            self.rows
                .par_iter_mut()
                .enumerate()
                .for_each(|(at, row)| log_forced(row, &pending[at], at, &logits));
        }
        for (at, row) in self.rows.iter_mut().enumerate() {
            if let Some(token) = row.close()
                && let (true, Some(full)) = (row.logs(), logits.full(at))
            {
                row.log(log_probability(full, token));
            }
        }
        self.observe(&logits)?;
        self.choose(&logits, &wants)
    }

    /// The places in what is pending where the model's own choice is asked for.
    fn asked(&mut self) -> Vec<Asked> {
        let of_row = |(row, asked): (usize, &mut Row<'_>)| {
            asked.asked().into_iter().map(move |(place, back)| Asked { row, place, back })
        };
        self.rows.iter_mut().enumerate().flat_map(of_row).collect()
    }

    /// Keeps what the model would have written where it was asked.
    fn answer(
        &mut self,
        asked: &[Asked],
        hidden: &Tensor,
        feeds: &[Feed<'_>],
        logits: &Logits,
    ) -> Result<()> {
        if asked.is_empty() {
            return Ok(());
        }
        let preferred: Vec<u32> = if self.options.log_probabilities {
            let known = |asked: &Asked| logits.before_last(asked.row, asked.back).unwrap_or_default();
            let each = asked.par_iter().map(|asked| most_likely(Candidates::Except(known(asked), &[])));
            each.collect::<Result<_>>()?
        } else {
            let lasts = lasts(feeds);
            let places = asked.iter().map(|asked| (lasts[asked.row] - asked.back) as u32).collect();
            self.counts.head_rows += (asked.len() * self.decoder.config().vocab_size) as u64;
            most_likely_after(self.decoder, hidden, places)?
        };
        for (asked, token) in asked.iter().zip(preferred) {
            self.rows[asked.row].prefer(asked.place, token);
        }
        Ok(())
    }

    /// Shows the most likely tokens to the logit processors that want them.
    fn observe(&mut self, logits: &Logits) -> Result<()> {
        let wants = |row: &Row<'_>| row.end.is_none() && row.prompt.constraint.wants_argmax();
        let argmax = |(at, row): (usize, &Row<'_>)| match logits.full(at) {
            Some(full) if wants(row) => most_likely(Candidates::Except(full, &[])).map(Some),
            _ => Ok(None),
        };
        let argmax = self.rows.par_iter().enumerate().map(argmax).collect::<Result<Vec<_>>>()?;
        self.clock.lap(Phase::Sampling, self.rows.len());
        for (row, argmax) in self.rows.iter_mut().zip(argmax) {
            if let Some(argmax) = argmax {
                row.prompt.constraint.observe(&mut row.state, argmax);
            }
        }
        Ok(())
    }

    /// Draws, and moves the logit processors on.
    fn choose(&mut self, logits: &Logits, wants: &[Want<'a>]) -> Result<()> {
        let count = self.rows.len();
        let choices: Vec<Option<Choice<'_>>> = (self.rows.iter().zip(wants).enumerate())
            .map(|(at, (row, want))| {
                row.end.is_none().then(|| logits.choice(at, *want, row.prompt, &row.state))
            })
            .collect();
        self.clock.lap(Phase::LogitProcessor, count);
        let sampling = &self.options.sampling;
        let drawn = self.rows.par_iter_mut().zip(&choices).enumerate().map(|(at, (row, choice))| {
            let (token, forced) = match choice {
                None => return Ok(None),
                Some(Choice::Forced(token)) => {
                    if let (true, Some(full)) = (row.watches(*token), logits.full(at)) {
                        row.prefer(row.written(), most_likely(Candidates::Except(full, &[]))?);
                    }
                    (*token, true)
                }
                Some(Choice::Draw(candidates)) => {
                    let position = row.written();
                    (draw(*candidates, sampling, &mut row.noise, position)?, false)
                }
            };
            if let (true, Some(full)) = (row.logs(), logits.full(at)) {
                row.log(log_probability(full, token));
            }
            Ok(Some((token, forced)))
        });
        let drawn = drawn.collect::<Result<Vec<_>>>()?;
        self.clock.lap(Phase::Sampling, count);
        for (row, drawn) in self.rows.iter_mut().zip(drawn) {
            if let Some((token, forced)) = drawn {
                row.take(token, forced, true);
            }
        }
        self.clock.lap(Phase::LogitProcessor, count);
        Ok(())
    }

    /// Takes finished rows out of the batch; the last row moves into the gap.
    fn retire(&mut self, job: &Job) -> Result<()> {
        let mut at = 0;
        while at < self.rows.len() {
            let Some(end) = self.rows[at].end else {
                at += 1;
                continue;
            };
            let row = self.rows.swap_remove(at);
            self.samples.push(row.finish(end));
            self.clock.finished();
            self.cache.move_row(self.rows.len(), at)?;
            job.observer().advance(1);
        }
        Ok(())
    }
}

/// Logs what was forced and has been read now.
fn log_forced(row: &mut Row<'_>, pending: &[u32], at: usize, logits: &Logits) {
    for (i, token) in pending.iter().enumerate().skip(1) {
        if let Some(before) = logits.before_last(at, pending.len() - i) {
            row.log(log_probability(before, *token));
        }
    }
}
