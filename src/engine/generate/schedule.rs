//! Which texts wait, and in which order they start.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Prompt;

/// One generation of one prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    /// Index of the prompt.
    pub prompt: usize,
    /// Its number: draws and results go by it.
    pub number: usize,
    /// Which of its generations.
    pub generation: usize,
}

/// A prompt with the generations that it still lacks.
#[derive(Debug, Clone)]
struct Lacking {
    prompt: usize,
    number: usize,
    generations: usize,
    /// Sorted: those that it has.
    done: Arc<[usize]>,
}

impl Lacking {
    /// The first one from `generation` on.
    fn from(&self, mut generation: usize) -> Option<usize> {
        let mut done = &self.done[self.done.partition_point(|known| *known < generation)..];
        while let Some((first, rest)) = done.split_first().filter(|(first, _)| **first == generation) {
            (generation, done) = (first + 1, rest);
        }
        (generation < self.generations).then_some(generation)
    }
}

/// All generations, longest prompts' first; those of one prompt stay together, so that they share its keys and values.
/// They are numbered, not listed: a molecule may have any number of them.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    /// Prompts that lack any, the first to start last.
    order: Vec<Lacking>,
    /// The next generation of the first prompt.
    next: usize,
}

impl Waiting {
    /// What starts next.
    pub(super) fn front(&self) -> Option<Item> {
        let Lacking { prompt, number, .. } = *self.order.last()?;
        Some(Item { prompt, number, generation: self.next })
    }

    /// How many wait, or a few less than the most of all numbers.
    pub(super) fn len(&self) -> usize {
        let all = self.order.iter().fold(0usize, |sum, lacking| {
            sum.saturating_add(lacking.generations.saturating_sub(lacking.done.len()))
        });
        let started = self
            .order
            .last()
            .map_or(0, |first| self.next - first.done.partition_point(|known| *known < self.next));
        all.saturating_sub(started)
    }
}

impl Iterator for Waiting {
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

impl Waiting {
    /// Comes to the prompt that is the first now.
    fn begin(&mut self) {
        self.next = self.order.last().and_then(|first| first.from(0)).unwrap_or(0);
    }
}

/// All generations that these prompts lack.
pub(super) fn longest_first(prompts: &[Prompt]) -> Waiting {
    let lacking = |prompt: usize| {
        let Prompt { number, generations, ref done, .. } = prompts[prompt];
        let lacking = Lacking { prompt, number, generations, done: done.clone() };
        lacking.from(0).map(|_| lacking)
    };
    let mut order: Vec<Lacking> = (0..prompts.len()).filter_map(lacking).collect();
    // Longest first, since a long text that starts last runs alone; reversed, since texts are taken from the end. Equal ones
    // keep their order.
    order.sort_by_key(|lacking| std::cmp::Reverse(prompts[lacking.prompt].expected_tokens));
    order.reverse();
    let mut waiting = Waiting { order, next: 0 };
    waiting.begin();
    waiting
}

/// The rows of a cache that nobody is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slots(BTreeSet<usize>);

impl Slots {
    /// All of so many.
    pub(super) fn new(rows: usize) -> Self {
        Slots((0..rows).collect())
    }

    /// The first one, which is taken. To be called only while fewer texts are in the batch than it has rows.
    pub(super) fn take(&mut self) -> usize {
        self.0.pop_first().expect("a row is free while fewer texts than rows are in the batch")
    }

    /// The first one, which is taken, if it lies before `slot`.
    pub(super) fn below(&mut self, slot: usize) -> Option<usize> {
        if *self.0.first()? < slot { self.0.pop_first() } else { None }
    }

    /// Gives one back.
    pub(super) fn free(&mut self, slot: usize) {
        self.0.insert(slot);
    }
}
