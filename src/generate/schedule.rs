//! Which texts wait, and in which order they start.

use super::Prompt;

/// One generation of one prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    /// Index of the prompt.
    pub prompt: usize,
    /// Which of its generations.
    pub generation: usize,
}

/// All generations, longest prompts' first; those of one prompt stay together, so that they share its keys and values.
/// They are numbered, not listed: a molecule may have any number of them.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    /// Prompts and how many generations each has, the first to start last.
    order: Vec<(usize, usize)>,
    /// Generations of the first prompt that have started.
    started: usize,
}

impl Waiting {
    /// What starts next.
    pub(super) fn front(&self) -> Option<Item> {
        let (prompt, _) = *self.order.last()?;
        Some(Item { prompt, generation: self.started })
    }

    /// How many wait, or a few less than the most of all numbers.
    pub(super) fn len(&self) -> usize {
        let all = self.order.iter().fold(0usize, |sum, (_, generations)| sum.saturating_add(*generations));
        all.saturating_sub(self.started)
    }
}

impl Iterator for Waiting {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        let item = self.front()?;
        self.started += 1;
        if self.order.last().is_some_and(|(_, generations)| *generations == self.started) {
            self.order.pop();
            self.started = 0;
        }
        Some(item)
    }
}

/// All generations of these prompts.
pub(super) fn longest_first(prompts: &[Prompt]) -> Waiting {
    let mut order: Vec<usize> = (0..prompts.len()).filter(|at| prompts[*at].generations > 0).collect();
    order.sort_by_key(|at| std::cmp::Reverse(prompts[*at].expected_tokens));
    let order = order.into_iter().rev().map(|at| (at, prompts[at].generations)).collect();
    Waiting { order, started: 0 }
}

/// Groups of at most `batch` texts of equal prompt length, longest first.
#[cfg(feature = "baseline")]
pub(super) fn groups_of_equal_length(prompts: &[Prompt], batch: usize) -> Vec<Vec<Item>> {
    let mut by_length = std::collections::BTreeMap::<usize, Vec<Item>>::new();
    for item in longest_first(prompts) {
        by_length.entry(prompts[item.prompt].tokens.len()).or_default().push(item);
    }
    by_length.values().rev().flat_map(|items| items.chunks(batch)).map(<[Item]>::to_vec).collect()
}
