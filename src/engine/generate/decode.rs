//! The decode loop of drift's own engine. New rows enter as others finish. One pass reads a whole forced run. If few tokens are
//! allowed, only their rows of the LM head are computed.

use candle_core::Tensor;
use rayon::prelude::*;

use super::clock::{Clock, Phase};
use super::groups::Groups;
use super::head::{Choice, Logits, NeededLogits, lasts, most_likely_after, pick};
use super::on_device::{DeviceWork, OnDevice, Starter, given_up};
use super::row::{DrawOutcome, Row};
use super::schedule::{Slots, TextQueue, longest_first};
use super::self_check::trusted;
use super::sink::{SentSoFar, TextDelta, TextSink};
use super::{GeneratedText, GenerationResult, Options, Prompt, WorkCounts};
use crate::model::cuda::{RowDraw, VocabularySampler};
use crate::model::{Cache, Decoder, Feed, HiddenStates, Prefix};
use drift_core::constraint::Mask;
use drift_core::sampling::{Candidates, most_likely};
use drift_core::{Error, Job, Result};

/// Generates for all prompts, on the device of `starter` if there is one that can do the run.
pub(super) fn generate(
    decoder: &Decoder,
    (prompts, options): (&[Prompt], &Options),
    starter: Option<Starter<'_>>,
    keeper: &mut dyn TextSink,
    job: &Job,
) -> Result<GenerationResult> {
    let mut clock = Clock::new(options);
    let (starter, self_check) = trusted(starter, decoder, (prompts, options))?;
    let waiting = longest_first(prompts);
    let context = decoder.config().max_position_embeddings;
    let longest = prompts.iter().map(|p| (p.tokens.len() + p.most_tokens).min(context)).max().unwrap_or(0);
    // At most as many rows as texts; more would only take memory.
    let rows = options.batch.min(waiting.len());
    let cache = decoder.cache(rows, longest, options.room)?;
    let (mut device, sampler) = match DeviceWork::new(starter, (decoder, &cache), (prompts, options))? {
        DeviceWork::Steps(device) => (Some(device), None),
        DeviceWork::Draws(sampler) => (None, Some(sampler)),
        DeviceWork::Nothing => (None, None),
    };
    clock.started();
    let mut run = Run {
        decoder,
        prompts,
        options,
        cache,
        waiting,
        rows: Vec::new(),
        slots: Slots::new(rows),
        is_on_device: device.is_some(),
        sampler,
        groups: Groups::default(),
        held: None,
        samples: Vec::new(),
        counts: WorkCounts::default(),
        clock,
    };
    let mut told = SentSoFar::default();
    let interrupted = run.all(device.as_deref_mut(), &mut told, keeper, job)?;
    run.clock.end_batch();
    told.tell(run.so_far(), keeper, true)?;
    let Run { samples, groups, counts, clock, .. } = run;
    let Clock { timing, spans, batches, .. } = clock;
    let resampled = groups.done;
    Ok(GenerationResult { samples, counts, timing, resampled, spans, batches, interrupted, self_check })
}

/// A forced token before which the logits are requested.
struct LogitsRequest {
    /// The index of the row among the fed rows.
    row: usize,
    /// The index of the token in the row's text.
    place: usize,
    /// How many tokens before the last pending one its logits come.
    back: usize,
}

/// A generation in progress.
pub(super) struct Run<'a> {
    pub(super) decoder: &'a Decoder,
    pub(super) prompts: &'a [Prompt],
    pub(super) options: &'a Options,
    pub(super) cache: Cache,
    pub(super) waiting: TextQueue,
    pub(super) rows: Vec<Row<'a>>,
    pub(super) slots: Slots,
    /// Whether a device does the steps.
    pub(super) is_on_device: bool,
    /// Draws from whole vocabularies, if the logits stay on a device.
    sampler: Option<VocabularySampler<'static>>,
    /// The groups of rows that are resampled together.
    pub(super) groups: Groups,
    /// The keys and values of this prompt, for its later generations.
    pub(super) held: Option<(usize, Prefix)>,
    pub(super) samples: Vec<GeneratedText>,
    pub(super) counts: WorkCounts,
    pub(super) clock: Clock,
}

impl<'a> Run<'a> {
    /// Runs until all texts are finished. Returns whether the job was cancelled before.
    fn all(
        &mut self,
        mut device: Option<&mut OnDevice<'_>>,
        told: &mut SentSoFar,
        keeper: &mut dyn TextSink,
        job: &Job,
    ) -> Result<bool> {
        loop {
            match job.check() {
                Err(Error::Interrupted) => return Ok(true),
                checked => checked?,
            }
            self.admit()?;
            self.retire(job)?;
            self.clock.lap(Phase::Other, self.rows.len());
            if !self.rows.is_empty() {
                match device.take() {
                    Some(on_device) => match self.steps_on_device(on_device)? {
                        None => device = Some(on_device),
                        Some(error) => self.leave_device(&error)?,
                    },
                    None => self.step()?,
                }
                self.retire(job)?;
            } else if self.waiting.front().is_none() {
                return Ok(false);
            }
            told.tell(self.so_far(), keeper, false)?;
        }
    }

    fn so_far(&self) -> TextDelta<'_> {
        TextDelta {
            texts: &self.samples,
            groups: &self.groups.done,
            counts: self.counts,
            timing: self.clock.timing,
            batches: &self.clock.batches,
        }
    }

    /// Runs a forward pass over the pending tokens, and draws one new token for each row that does not wait for its group.
    fn step(&mut self) -> Result<()> {
        let mut rows = std::mem::take(&mut self.rows);
        let mut fed: Vec<&mut Row<'a>> =
            rows.iter_mut().filter(|row| row.end.is_none() && row.held.is_none()).collect();
        // In the order of the cache, so that candle's operations need no padding if each row is fed one token.
        fed.sort_unstable_by_key(|row| row.slot);
        let passed = self.pass(&mut fed);
        self.rows = rows;
        passed
    }

    /// Runs one step of `rows`.
    fn pass(&mut self, rows: &mut [&mut Row<'a>]) -> Result<()> {
        let count = rows.len();
        let pending: Vec<Vec<u32>> = rows.iter_mut().map(|row| std::mem::take(&mut row.pending)).collect();
        let feeds: Vec<Feed<'_>> =
            rows.iter().zip(&pending).map(|(row, tokens)| Feed { row: row.slot, tokens }).collect();
        let logs = self.options.logs();
        let (asked, before) = (asked(rows), self.counts);
        // Hidden states inside a forced run are needed only if somebody asks for them.
        let output = if logs || !asked.is_empty() { HiddenStates::All } else { HiddenStates::Last };
        self.count(&feeds);
        let hidden = self.decoder.forward(&feeds, &mut self.cache, output)?;
        self.counts.decode_steps += 1;
        self.counts.row_passes += count as u64;
        self.clock.lap(Phase::Forward, count);
        let wants: Vec<NeededLogits<'a>> = rows.iter().map(|row| NeededLogits::from_row(row)).collect();
        self.clock.lap(Phase::LogitProcessor, count);
        // Either for all rows or for none, because the logits are one tensor, on the device or on the host.
        let stays = !logs && self.sampler.is_some() && rows.iter().zip(&wants).all(may_stay);
        let logits = match (logs, output) {
            (true, _) => Logits::all(self.decoder, &hidden, &feeds)?,
            (false, HiddenStates::All) => {
                let last = lasts(&feeds).into_iter().map(|at| at as u32).collect();
                Logits::last(self.decoder, &pick(&hidden, last)?, &wants, stays)?
            }
            (false, _) => Logits::last(self.decoder, &hidden, &wants, stays)?,
        };
        self.counts.head_rows += logits.rows() as u64;
        self.counts.head_weights += logits.weights() as u64;
        self.answer(&asked, &hidden, &feeds, &logits, rows)?;
        self.clock.lap(Phase::Forward, count);
        self.clock.worked(self.counts.since(&before), self.decoder);
        if logs {
            let rows = rows.par_iter_mut().enumerate();
            rows.for_each(|(at, row)| log_forced(row, &pending[at], at, &logits));
        }
        for (at, row) in rows.iter_mut().enumerate() {
            // A forced end token was held back until its logits were known, which is the case now.
            if let Some(token) = row.close()
                && let (true, Some(full)) = (row.logs(), logits.full(at))
            {
                row.log(full, token, Mask::Forced(token));
            }
        }
        self.observe(&logits, rows)?;
        self.choose(logits, &wants, rows)
    }

    /// Counts the tokens and keys that a pass over `feeds` reads.
    pub(super) fn count(&mut self, feeds: &[Feed<'_>]) {
        for feed in feeds {
            self.counts.feed(self.cache.lengths()[feed.row], feed.tokens.len());
        }
    }

    /// Keeps the most likely tokens of the unmasked model for the requested places.
    fn answer(
        &mut self,
        asked: &[LogitsRequest],
        hidden: &Tensor,
        feeds: &[Feed<'_>],
        logits: &Logits,
        rows: &mut [&mut Row<'a>],
    ) -> Result<()> {
        if asked.is_empty() {
            return Ok(());
        }
        let preferred: Vec<u32> = if self.options.logs() {
            let known = |asked: &LogitsRequest| logits.before_last(asked.row, asked.back).unwrap_or_default();
            let each = asked.par_iter().map(|asked| most_likely(Candidates::Except(known(asked), &[])));
            each.collect::<Result<_>>()?
        } else {
            let lasts = lasts(feeds);
            let places = asked.iter().map(|asked| (lasts[asked.row] - asked.back) as u32).collect();
            self.counts.head_rows += (asked.len() * self.decoder.config().vocab_size) as u64;
            self.counts.head_weights += self.decoder.config().vocab_size as u64;
            most_likely_after(self.decoder, hidden, places)?
        };
        for (asked, token) in asked.iter().zip(preferred) {
            rows[asked.row].prefer(asked.place, token);
        }
        Ok(())
    }

    /// Passes the most likely tokens to the logit processors that need them.
    fn observe(&mut self, logits: &Logits, rows: &mut [&mut Row<'a>]) -> Result<()> {
        let wants = |row: &Row<'_>| row.end.is_none() && row.prompt.constraint.wants_argmax();
        let argmax = |(at, row): (usize, &&mut Row<'_>)| match logits.full(at) {
            Some(full) if wants(row) => most_likely(Candidates::Except(full, &[])).map(Some),
            _ => Ok(None),
        };
        let argmax = rows.par_iter().enumerate().map(argmax).collect::<Result<Vec<_>>>()?;
        self.clock.lap(Phase::Sampling, rows.len());
        for (row, argmax) in rows.iter_mut().zip(argmax) {
            if let Some(argmax) = argmax {
                row.prompt.constraint.observe(&mut row.state, argmax);
            }
        }
        Ok(())
    }

    /// Draws tokens and advances the logit processors. Rows that wait for their group keep their logits instead.
    fn choose(
        &mut self,
        mut logits: Logits,
        wants: &[NeededLogits<'a>],
        rows: &mut [&mut Row<'a>],
    ) -> Result<()> {
        let count = rows.len();
        for (at, row) in rows.iter_mut().enumerate() {
            if row.end.is_none() && self.groups.waits(row) {
                row.held = logits.full(at).map(Into::into);
            }
        }
        let there = self.draw_on_device(&mut logits, rows)?;
        let choices: Vec<Option<Choice<'_>>> = (rows.iter().zip(wants).enumerate())
            .map(|(at, (row, want))| {
                let goes_on = row.end.is_none() && row.held.is_none() && there[at].is_none();
                goes_on.then(|| logits.choice(at, *want, row.prompt, &row.state))
            })
            .collect();
        self.clock.lap(Phase::LogitProcessor, count);
        // Noise is keyed by text and position, so the number of threads does not change the draws.
        let drawn = rows.par_iter_mut().zip(&choices).enumerate().map(|(at, (row, choice))| {
            choice.map(|choice| choose_one(row, choice, logits.full(at))).transpose()
        });
        let drawn = drawn.collect::<Result<Vec<_>>>()?;
        self.clock.lap(Phase::Sampling, count);
        let context = self.decoder.config().max_position_embeddings;
        for ((row, drawn), there) in rows.iter_mut().zip(drawn).zip(there) {
            match drawn.or(there.map(|token| (DrawOutcome::Token(token), false))) {
                Some((DrawOutcome::Token(token), forced)) => row.take(token, forced, true),
                Some((DrawOutcome::DeadEnd { atom }, _)) => {
                    **row = row.back_at(atom, context);
                    // The last token that is kept is read again, together with the forced tokens after it.
                    self.cache.shorten(row.slot, row.prompt.tokens.len() + row.written() - 1);
                    row.follow_forced_run();
                }
                None => {}
            }
        }
        self.clock.lap(Phase::LogitProcessor, count);
        Ok(())
    }

    /// Draws one token for each row whose logits stayed on the device.
    fn draw_on_device(&mut self, logits: &mut Logits, rows: &[&mut Row<'a>]) -> Result<Vec<Option<u32>>> {
        let (Some(sampler), Some((full, places))) = (&mut self.sampler, logits.on_device()) else {
            return Ok(vec![None; rows.len()]);
        };
        let stayed = rows.iter().zip(places).filter(|(_, place)| place.is_some());
        let draws: Vec<RowDraw<'_>> = stayed.map(|(row, _)| row_draw(row)).collect();
        let drawn = match sampler.draw(full, &draws) {
            Ok(drawn) => drawn,
            // Falls back to draws on the host. The device may have overwritten only logits that the host's mask excludes too.
            Err(error) => {
                given_up(self.decoder, &error, self.options)?;
                self.sampler = None;
                logits.move_to_host()?;
                return Ok(vec![None; rows.len()]);
            }
        };
        self.clock.lap(Phase::Sampling, rows.len());
        Ok(places.iter().map(|place| place.map(|at| drawn[at])).collect())
    }

    /// Continues the groups whose rows have all reached the end of a block.
    pub(super) fn settle(&mut self) -> Result<()> {
        loop {
            let released = self.groups.settle(&mut self.rows, &mut self.cache)?;
            self.clock.lap(Phase::Other, self.rows.len());
            if released.is_empty() {
                return Ok(());
            }
            let rows = self.rows.par_iter_mut().enumerate();
            let rows = rows.filter(|(at, _)| released.binary_search(at).is_ok());
            rows.try_for_each(|(_, row)| {
                let Some(held) = row.held.take() else { return Ok(()) };
                let choice = Choice::new(&held, row.prompt.constraint.mask(&row.state));
                // Texts that are weighted together do not go back.
                if let (DrawOutcome::Token(token), forced) = choose_one(row, choice, Some(&held))? {
                    row.take(token, forced, true);
                }
                Ok(())
            })?;
            self.clock.lap(Phase::Sampling, released.len());
        }
    }
}

/// Returns the places among the pending tokens at which the model's own choice is requested.
fn asked(rows: &mut [&mut Row<'_>]) -> Vec<LogitsRequest> {
    let of_row = |(row, asked): (usize, &mut &mut Row<'_>)| {
        asked.asked().into_iter().map(move |(place, back)| LogitsRequest { row, place, back })
    };
    rows.iter_mut().enumerate().flat_map(of_row).collect()
}

/// Returns the draw of a row's next token from all tokens except a list.
fn row_draw<'r>(row: &'r Row<'_>) -> RowDraw<'r> {
    let excluded = match row.prompt.constraint.mask(&row.state) {
        Mask::Except(ids) => ids,
        _ => &[],
    };
    RowDraw { noise: &row.noise, position: row.written(), excluded }
}

/// Returns whether a row needs no logits of the whole vocabulary on the host: it needs none, or few, or a draw from all tokens except a
/// list.
fn may_stay((row, want): (&&mut Row<'_>, &NeededLogits<'_>)) -> bool {
    let constraint = &row.prompt.constraint;
    let draws = || matches!(constraint.mask(&row.state), Mask::Any | Mask::Except(_));
    !matches!(want, NeededLogits::Full) || (row.end.is_none() && !constraint.wants_argmax() && draws())
}

/// Returns the next token of a row, or a dead end, and whether the token was forced. `full` has all logits, if they are known.
fn choose_one(row: &mut Row<'_>, choice: Choice<'_>, full: Option<&[f32]>) -> Result<(DrawOutcome, bool)> {
    let narrowed = if row.logs() { row.narrowed() } else { None };
    let (drawn, forced) = match choice {
        Choice::Forced(token) => {
            if let (true, Some(full)) = (row.watches(token), full) {
                row.prefer(row.written(), most_likely(Candidates::Except(full, &[]))?);
            }
            (DrawOutcome::Token(token), true)
        }
        Choice::Draw(candidates) => (row.draw(candidates)?, false),
    };
    if let (true, Some(full), DrawOutcome::Token(token)) = (row.logs(), full, drawn) {
        let constraint = &*row.prompt.constraint;
        // An empty list is a dead end, after which the row is held to less.
        let narrowed = if narrowed.as_ref().is_some_and(Vec::is_empty) { row.narrowed() } else { narrowed };
        let mask = narrowed.as_deref().map_or_else(|| constraint.mask(&row.state), Mask::Only);
        row.log(full, token, mask);
    }
    Ok((drawn, forced))
}

/// Logs the forced tokens that this pass has read.
fn log_forced(row: &mut Row<'_>, pending: &[u32], at: usize, logits: &Logits) {
    for (i, token) in pending.iter().enumerate().skip(1) {
        if let Some(before) = logits.before_last(at, pending.len() - i) {
            row.log(before, *token, Mask::Forced(*token));
        }
    }
}
