//! Which texts wait, and in which order they start.

use std::collections::VecDeque;

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
pub(super) fn longest_first(prompts: &[Prompt]) -> VecDeque<Item> {
    let mut order: Vec<usize> = (0..prompts.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(prompts[*at].expected_tokens));
    let items =
        |prompt: usize| (0..prompts[prompt].generations).map(move |generation| Item { prompt, generation });
    order.into_iter().flat_map(items).collect()
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
