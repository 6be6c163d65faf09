//! The texts that are waiting, and the order in which they start.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Prompt;

/// One generation of one prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    /// The index of the prompt.
    pub prompt: usize,
    /// The number of the prompt; draws and results refer to it.
    pub number: usize,
    /// The index of the generation among those of the prompt.
    pub generation: usize,
}

/// A prompt with the generations that are still missing.
#[derive(Debug, Clone)]
struct MissingTexts {
    prompt: usize,
    number: usize,
    generations: usize,
    /// The sorted generations that exist already.
    done: Arc<[usize]>,
}

impl MissingTexts {
    /// Returns the first missing generation from `generation` on.
    fn from(&self, mut generation: usize) -> Option<usize> {
        let mut done = &self.done[self.done.partition_point(|known| *known < generation)..];
        while let Some((first, rest)) = done.split_first().filter(|(first, _)| **first == generation) {
            (generation, done) = (first + 1, rest);
        }
        (generation < self.generations).then_some(generation)
    }
}

/// All missing generations, first those of the prompts with the longest expected texts. Generations of one prompt are adjacent, so
/// that they share its keys and values. They are numbered and not listed, because a molecule may have any number of them.
#[derive(Debug, Clone)]
pub(super) struct TextQueue {
    /// The prompts with missing generations, in reverse order: the last one starts first.
    order: Vec<MissingTexts>,
    /// The next generation of the prompt that starts first.
    next: usize,
}

impl TextQueue {
    /// Returns the text that starts next.
    pub(super) fn front(&self) -> Option<Item> {
        let MissingTexts { prompt, number, .. } = *self.order.last()?;
        Some(Item { prompt, number, generation: self.next })
    }

    /// Returns the number of waiting texts. The sum saturates, so it may be too small if it exceeds the range of `usize`.
    pub(super) fn len(&self) -> usize {
        let all = self.order.iter().fold(0usize, |sum, lacking| {
            sum.saturating_add(lacking.generations.saturating_sub(lacking.done.len()))
        });
        let before = |first: &MissingTexts| first.done.partition_point(|known| *known < self.next);
        let started = self.order.last().map_or(0, |first| self.next - before(first));
        all.saturating_sub(started)
    }

    /// Moves to the next prompt.
    fn begin(&mut self) {
        self.next = self.order.last().and_then(|first| first.from(0)).unwrap_or(0);
    }
}

impl Iterator for TextQueue {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        let item = self.front()?;
        match self.order.last()?.from(self.next + 1) {
            Some(next) => self.next = next,
            None => {
                self.order.pop();
                self.begin();
            }
        }
        Some(item)
    }
}

/// Returns all generations that these prompts lack.
pub(super) fn longest_first(prompts: &[Prompt]) -> TextQueue {
    let lacking = |prompt: usize| {
        let Prompt { number, generations, ref done, .. } = prompts[prompt];
        let lacking = MissingTexts { prompt, number, generations, done: done.clone() };
        lacking.from(0).map(|_| lacking)
    };
    let mut order: Vec<MissingTexts> = (0..prompts.len()).filter_map(lacking).collect();
    // Longest first, because a long text that starts last runs alone. Reversed, because texts are taken from the end. Equal prompts
    // keep their order.
    order.sort_by_key(|lacking| std::cmp::Reverse(prompts[lacking.prompt].expected_tokens));
    order.reverse();
    let mut waiting = TextQueue { order, next: 0 };
    waiting.begin();
    waiting
}

/// The free rows of a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slots(BTreeSet<usize>);

impl Slots {
    /// All rows of a cache are free.
    pub(super) fn new(rows: usize) -> Self {
        Slots((0..rows).collect())
    }

    /// Takes the first free row. To be called only while the batch has fewer texts than rows.
    pub(super) fn take(&mut self) -> usize {
        self.0.pop_first().expect("a row is free while fewer texts than rows are in the batch")
    }

    /// Takes the first free row if it is before `slot`.
    pub(super) fn below(&mut self, slot: usize) -> Option<usize> {
        if *self.0.first()? < slot { self.0.pop_first() } else { None }
    }

    /// Frees a row.
    pub(super) fn free(&mut self, slot: usize) {
        self.0.insert(slot);
    }
}
