//! The decode loop of drift's own engine: rows enter as others finish, forced runs are read in one pass, and where few
//! tokens are allowed only their rows of the LM head are computed.

use candle_core::Tensor;
use rayon::prelude::*;

use super::clock::{Clock, Phase};
use super::groups::Groups;
use super::head::{Choice, Logits, Want, lasts, most_likely_after, pick};
use super::keep::{Keeper, News, Told};
use super::particles::group_of;
use super::row::Row;
use super::schedule::{Item, Waiting, longest_first};
use super::{Generated, GeneratedText, Options, Prompt, Resampling, WorkCounts};
use crate::constraint::Mask;
use crate::error::{Error, Result};
use crate::job::Job;
use crate::model::{Cache, Decoder, Feed, HiddenStates, Prefix};
use crate::sampling::Sampling;
use crate::sampling::{Candidates, draw, most_likely};

/// Generates for all prompts.
pub(super) fn generate(
    decoder: &Decoder,
    prompts: &[Prompt],
    options: &Options,
    keeper: &mut dyn Keeper,
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
        groups: Groups::default(),
        held: None,
        samples: Vec::new(),
        counts: WorkCounts::default(),
        clock,
    };
    let mut told = Told::default();
    let interrupted = run.all(&mut told, keeper, job)?;
    run.clock.end_batch();
    told.tell(run.so_far(), keeper, true)?;
    let Run { samples, groups, counts, clock, .. } = run;
    let Clock { timing, spans, batches, .. } = clock;
    Ok(Generated { samples, counts, timing, resampled: groups.done, spans, batches, interrupted })
}

/// A forced token before which the logits are wanted.
struct Asked {
    /// Among those that are fed.
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
    /// Rows that are weighted against one another.
    groups: Groups,
    /// What later generations of this prompt will need.
    held: Option<(usize, Prefix)>,
    samples: Vec<GeneratedText>,
    counts: WorkCounts,
    clock: Clock,
}

impl<'a> Run<'a> {
    /// Runs until nothing waits; whether the job was cancelled before.
    fn all(&mut self, told: &mut Told, keeper: &mut dyn Keeper, job: &Job) -> Result<bool> {
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
            told.tell(self.so_far(), keeper, false)?;
        }
    }

    fn so_far(&self) -> News<'_> {
        News {
            texts: &self.samples,
            groups: &self.groups.done,
            counts: self.counts,
            timing: self.clock.timing,
            batches: &self.clock.batches,
        }
    }

    /// Fills the batch, and lets the model read the new prompts but for their last tokens.
    fn admit(&mut self) -> Result<()> {
        let first = self.rows.len();
        let context = self.decoder.config().max_position_embeddings;
        let mut entered = Vec::new();
        while let Some(item) = self.waiting.front()
            && self.rows.len() + self.texts_together(item) <= self.cache.rows()
        {
            self.waiting.next();
            let prompt = &self.prompts[item.prompt];
            let row = Row::new(prompt, item, self.options, context, true);
            self.groups.enter(&row);
            self.rows.push(row);
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

    /// How many texts must enter together with this one, itself included.
    fn texts_together(&self, item: Item) -> usize {
        let group = |resampling: &Resampling| {
            let generations = self.prompts[item.prompt].generations;
            group_of(item.generation, generations, resampling.draws).end - item.generation
        };
        self.options.resampling.as_ref().map_or(1, group)
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

    /// One forward pass over what is pending, and one new token for each row that does not wait.
    fn step(&mut self) -> Result<()> {
        let mut rows = std::mem::take(&mut self.rows);
        let goes_on = |(_, row): &(usize, &mut Row<'a>)| row.end.is_none() && row.held.is_none();
        let (places, mut fed): (Vec<usize>, Vec<_>) = rows.iter_mut().enumerate().filter(goes_on).unzip();
        let passed = self.pass(&places, &mut fed);
        self.rows = rows;
        passed
    }

    /// A step of `rows`, which are in rows `places` of the cache.
    fn pass(&mut self, places: &[usize], rows: &mut [&mut Row<'a>]) -> Result<()> {
        let count = rows.len();
        let pending: Vec<Vec<u32>> = rows.iter_mut().map(|row| std::mem::take(&mut row.pending)).collect();
        let feeds: Vec<Feed<'_>> =
            places.iter().zip(&pending).map(|(&row, tokens)| Feed { row, tokens }).collect();
        let logs = self.options.logs();
        let asked = asked(rows);
        let output = if logs || !asked.is_empty() { HiddenStates::All } else { HiddenStates::Last };
        let hidden = self.decoder.forward(&feeds, &mut self.cache, output)?;
        self.count_fed(&feeds);
        self.counts.decode_steps += 1;
        self.counts.row_passes += count as u64;
        self.clock.lap(Phase::Forward, count);
        let wants: Vec<Want<'a>> = rows.iter().map(|row| Want::of(row)).collect();
        self.clock.lap(Phase::LogitProcessor, count);
        let logits = match (logs, output) {
            (true, _) => Logits::all(self.decoder, &hidden, &feeds)?,
            (false, HiddenStates::All) => {
                let last = lasts(&feeds).into_iter().map(|at| at as u32).collect();
                Logits::last(self.decoder, &pick(&hidden, last)?, &wants)?
            }
            (false, _) => Logits::last(self.decoder, &hidden, &wants)?,
        };
        self.counts.head_rows += logits.rows() as u64;
        self.answer(&asked, &hidden, &feeds, &logits, rows)?;
        self.clock.lap(Phase::Forward, count);
        if logs {
            let rows = rows.par_iter_mut().enumerate();
            rows.for_each(|(at, row)| log_forced(row, &pending[at], at, &logits));
        }
        for (at, row) in rows.iter_mut().enumerate() {
            if let Some(token) = row.close()
                && let (true, Some(full)) = (row.logs(), logits.full(at))
            {
                row.log(full, token, Mask::Forced(token));
            }
        }
        self.observe(&logits, rows)?;
        self.choose(&logits, &wants, rows)
    }

    /// Keeps what the model would have written where it was asked.
    fn answer(
        &mut self,
        asked: &[Asked],
        hidden: &Tensor,
        feeds: &[Feed<'_>],
        logits: &Logits,
        rows: &mut [&mut Row<'a>],
    ) -> Result<()> {
        if asked.is_empty() {
            return Ok(());
        }
        let preferred: Vec<u32> = if self.options.logs() {
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
            rows[asked.row].prefer(asked.place, token);
        }
        Ok(())
    }

    /// Shows the most likely tokens to the logit processors that want them.
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

    /// Draws, and moves the logit processors on; rows that wait for others keep their logits instead.
    fn choose(&mut self, logits: &Logits, wants: &[Want<'a>], rows: &mut [&mut Row<'a>]) -> Result<()> {
        let count = rows.len();
        for (at, row) in rows.iter_mut().enumerate() {
            if row.end.is_none() && self.groups.waits(row) {
                row.held = logits.full(at).map(Into::into);
            }
        }
        let choices: Vec<Option<Choice<'_>>> = (rows.iter().zip(wants).enumerate())
            .map(|(at, (row, want))| {
                let goes_on = row.end.is_none() && row.held.is_none();
                goes_on.then(|| logits.choice(at, *want, row.prompt, &row.state))
            })
            .collect();
        self.clock.lap(Phase::LogitProcessor, count);
        let sampling = &self.options.sampling;
        let drawn = rows.par_iter_mut().zip(&choices).enumerate().map(|(at, (row, choice))| {
            choice.map(|choice| choose_one(row, choice, logits.full(at), sampling)).transpose()
        });
        let drawn = drawn.collect::<Result<Vec<_>>>()?;
        self.clock.lap(Phase::Sampling, count);
        for (row, drawn) in rows.iter_mut().zip(drawn) {
            if let Some((token, forced)) = drawn {
                row.take(token, forced, true);
            }
        }
        self.clock.lap(Phase::LogitProcessor, count);
        Ok(())
    }

    /// Lets groups go on whose rows have all come to the end of a block.
    fn settle(&mut self) -> Result<()> {
        let sampling = &self.options.sampling;
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
                let choice = Choice::of(&held, row.prompt.constraint.mask(&row.state));
                let (token, forced) = choose_one(row, choice, Some(&held), sampling)?;
                row.take(token, forced, true);
                Ok(())
            })?;
            self.clock.lap(Phase::Sampling, released.len());
        }
    }

    /// Takes finished rows out of the batch; the last row moves into the gap.
    fn retire(&mut self, job: &Job) -> Result<()> {
        self.settle()?;
        let mut at = 0;
        while at < self.rows.len() {
            let Some(end) = self.rows[at].end.filter(|_| !self.groups.keeps(&self.rows[at])) else {
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

/// The places in what is pending where the model's own choice is asked for.
fn asked(rows: &mut [&mut Row<'_>]) -> Vec<Asked> {
    let of_row = |(row, asked): (usize, &mut &mut Row<'_>)| {
        asked.asked().into_iter().map(move |(place, back)| Asked { row, place, back })
    };
    rows.iter_mut().enumerate().flat_map(of_row).collect()
}

/// The next token of a row, and whether it was forced. `full` holds all logits, where they are known.
fn choose_one(
    row: &mut Row<'_>,
    choice: Choice<'_>,
    full: Option<&[f32]>,
    sampling: &Sampling,
) -> Result<(u32, bool)> {
    let (token, forced) = match choice {
        Choice::Forced(token) => {
            if let (true, Some(full)) = (row.watches(token), full) {
                row.prefer(row.written(), most_likely(Candidates::Except(full, &[]))?);
            }
            (token, true)
        }
        Choice::Draw(candidates) => {
            let position = row.written();
            (draw(candidates, sampling, &mut row.noise, position)?, false)
        }
    };
    if let (true, Some(full)) = (row.logs(), full) {
        let constraint = &*row.prompt.constraint;
        let mask = constraint.mask(&row.state);
        row.log(full, token, mask);
    }
    Ok((token, forced))
}

/// Logs what was forced and has been read now.
fn log_forced(row: &mut Row<'_>, pending: &[u32], at: usize, logits: &Logits) {
    for (i, token) in pending.iter().enumerate().skip(1) {
        if let Some(before) = logits.before_last(at, pending.len() - i) {
            row.log(before, *token, Mask::Forced(*token));
        }
    }
}
