//! Admission of texts to the batch: they enter when rows are free, their prompts are read together, and they leave when they are
//! finished.

use super::Resampling;
use super::clock::Phase;
use super::decode::Run;
use super::on_device::reads_prompt;
use super::particles::group_of;
use super::row::Row;
use super::schedule::Item;
use crate::model::{Feed, HiddenStates};
use drift_core::{Job, Result};

/// On a GPU, texts enter when at least one in this many rows of the batch is free.
const ADMITTED_SHARE: usize = 8;

impl Run<'_> {
    /// Fills the batch, and runs the prefill of the new prompts, which excludes their last tokens.
    pub(super) fn admit(&mut self) -> Result<()> {
        if self.waits_for_more_room() {
            return Ok(());
        }
        let first = self.rows.len();
        let context = self.decoder.config().max_position_embeddings;
        let mut entered = Vec::new();
        while let Some(item) = self.waiting.front()
            && self.rows.len() + self.texts_together(item) <= self.cache.rows()
        {
            self.waiting.next();
            let prompt = &self.prompts[item.prompt];
            let mut row = Row::new(prompt, item, self.options, context, !self.is_on_device);
            row.slot = self.slots.take();
            self.groups.enter(&row);
            self.rows.push(row);
            entered.push(item.prompt);
        }
        self.clock.lap(Phase::LogitProcessor, self.rows.len());
        if entered.is_empty() {
            return Ok(());
        }
        let (read, long): (Vec<_>, Vec<_>) = (self.rows[first..].iter().map(|row| row.slot).zip(entered))
            .partition(|(_, prompt)| self.is_on_device && reads_prompt(self.prompts[*prompt].tokens.len()));
        self.counts.prompt_tokens +=
            read.iter().map(|(_, prompt)| self.prompts[*prompt].tokens.len() as u64 - 1).sum::<u64>();
        self.prefill(&long)?;
        self.clock.lap(Phase::Prefill, self.rows.len());
        Ok(())
    }

    /// Returns whether free rows wait for others, so that one pass reads several prompts. On a GPU a pass takes about the same time for
    /// one prompt as for many. On the CPU the time depends on the number of tokens.
    fn waits_for_more_room(&self) -> bool {
        let free = self.cache.rows() - self.rows.len();
        let wanted = (self.cache.rows() / ADMITTED_SHARE).min(self.waiting.len());
        !self.decoder.has_kernels() && !self.rows.is_empty() && free < wanted
    }

    /// Returns the number of texts that must enter together with this one, including itself.
    fn texts_together(&self, item: Item) -> usize {
        let group = |resampling: &Resampling| {
            let generations = self.prompts[item.prompt].generations;
            group_of(item.generation, generations, resampling.draws).end - item.generation
        };
        self.options.resampling.as_ref().map_or(1, group)
    }

    /// Runs the prefill of rows, which reads their prompts except for the last token. All generations of a molecule share one
    /// prefill.
    pub(super) fn prefill(&mut self, entered: &[(usize, usize)]) -> Result<()> {
        let prompts = self.prompts;
        let body = |prompt: usize| &prompts[prompt].tokens[..prompts[prompt].tokens.len() - 1];
        let held = self.held.take();
        let is_held = |prompt: usize| held.as_ref().is_some_and(|(of, _)| *of == prompt);
        let mut feeds = Vec::new();
        for (at, (slot, prompt)) in entered.iter().enumerate() {
            let is_first = at == 0 || entered[at - 1].1 != *prompt;
            // Generations of a molecule are adjacent in the queue, so the previous one tells whether this prompt is read already.
            if is_first && !is_held(*prompt) && !body(*prompt).is_empty() {
                feeds.push(Feed { row: *slot, tokens: body(*prompt) });
            }
        }
        if !feeds.is_empty() {
            self.count(&feeds);
            self.decoder.forward(&feeds, &mut self.cache, HiddenStates::None)?;
            self.counts.prefill_passes += 1;
            self.counts.prompt_tokens += feeds.iter().map(|feed| feed.tokens.len() as u64).sum::<u64>();
        }
        let mut prefix = held;
        for (at, (slot, prompt)) in entered.iter().enumerate() {
            let waits = self.waiting.front().map(|item| item.prompt);
            let follows = entered.get(at + 1).map(|(_, prompt)| *prompt).or(waits);
            if prefix.as_ref().is_none_or(|(of, _)| of != prompt) {
                // The keys and values are copied only if another generation of this prompt follows.
                prefix = match follows == Some(*prompt) {
                    true => Some((*prompt, self.cache.prefix(*slot)?)),
                    false => None,
                };
            } else if let Some((_, prefix)) = &prefix {
                self.cache.restore(*slot, prefix)?;
                self.counts.shared_prompt_tokens += prefix.length() as u64;
            }
        }
        let still_wanted = self.waiting.front().map(|item| item.prompt);
        // Kept for the next admission only while generations of this prompt are waiting, because keys and values are large.
        self.held = prefix.filter(|(of, _)| Some(*of) == still_wanted);
        Ok(())
    }

    /// Removes finished rows from the batch.
    pub(super) fn retire(&mut self, job: &Job) -> Result<()> {
        self.settle()?;
        let mut at = 0;
        while at < self.rows.len() {
            let Some(end) = self.rows[at].end.filter(|_| !self.groups.keeps(&self.rows[at])) else {
                at += 1;
                continue;
            };
            // The row that is swapped in was not checked yet, so `at` stays.
            let row = self.rows.swap_remove(at);
            self.cache.clear(row.slot);
            self.slots.free(row.slot);
            self.samples.push(row.finish(end));
            self.clock.finished();
            job.observer().advance(1);
        }
        self.close_ranks()
    }

    /// Moves rows to the front of the cache if most rows between them are free, because candle's attention processes all rows up to
    /// the last.
    fn close_ranks(&mut self) -> Result<()> {
        let span = self.rows.iter().map(|row| row.slot + 1).max().unwrap_or(0);
        // Only if half of the span is free, because moving a row copies its keys and values.
        if self.decoder.has_kernels() || self.is_on_device || self.rows.len() * 2 > span {
            return Ok(());
        }
        for row in &mut self.rows {
            if let Some(slot) = self.slots.below(row.slot) {
                self.cache.move_row(row.slot, slot)?;
                self.slots.free(row.slot);
                row.slot = slot;
            }
        }
        Ok(())
    }
}
