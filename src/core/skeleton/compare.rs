//! Compares the items of a text with those of its prompt.

use std::collections::BTreeMap;

use super::items::Arrangement;
use super::prompt::Bound;
use super::reading::{FaultKind, ReadItem};

/// The items of a text and of its prompt.
pub(super) struct Comparison<'c> {
    /// The prompt.
    pub bound: &'c Bound<'c>,
    /// The index of the items.
    pub items: usize,
    /// The items of the text.
    pub read: &'c [ReadItem],
    /// What the text states before it lists them: a multiple of the prompt's items, or the number of items without words.
    pub stated: Option<u32>,
}

impl Comparison<'_> {
    /// Returns the least and the largest number of items that the text may list.
    fn allowed(&self) -> [u32; 2] {
        let known = &self.bound.items[self.items];
        self.stated.map_or_else(|| known.range(), |times| [known.unit() * times; 2])
    }

    /// Returns what is wrong with the items of the text, if its skeleton lists them.
    pub(super) fn difference(&self) -> Option<(FaultKind, String)> {
        let Comparison { bound, items, read, .. } = self;
        if !bound.skeleton.loops_over(*items) {
            return None;
        }
        let name = &bound.skeleton.items[*items].0;
        let known = &bound.items[*items];
        let [least, most] = self.allowed();
        let count = read.len() as u32;
        let range = if least == most { least.to_string() } else { format!("{least} to {most}") };
        let count_fault = (FaultKind::Count, format!("{count} items `{name}` instead of {range}"));
        // Items without words can only differ in their number.
        if known.words.is_empty() || !bound.skeleton.writes_words(*items) {
            // A formula comes in whole multiples.
            let is_allowed = (least..=most).contains(&count) && count.is_multiple_of(known.unit());
            return (!is_allowed).then_some(count_fault);
        }
        if count == 0 {
            return Some(count_fault);
        }
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        read.iter().for_each(|item| *counts.entry(&item.word).or_default() += 1);
        let mut one: BTreeMap<&str, u32> = BTreeMap::new();
        known.words.iter().zip(known.counts()).for_each(|(word, n)| *one.entry(word).or_default() += n);
        let total: u32 = one.values().sum();
        if !are_proportional(&counts, &one) {
            let (shown, wanted) = (formula(&counts), formula(&one));
            let problem = format!("the items `{name}` are {shown} instead of {wanted}");
            return Some((FaultKind::Composition, problem));
        }
        let [low, high] = known.times();
        let is_whole = count.is_multiple_of(total) && (low..=high).contains(&(count / total));
        if !is_whole || !(least..=most).contains(&count) {
            return Some(count_fault);
        }
        let expected = sequence(&known.arrangement, count / total)?;
        let wrong =
            read.iter().zip(&expected).position(|(item, word)| *item.word != *known.words[*word as usize])?;
        let word = &known.words[expected[wrong] as usize];
        let problem = format!("item {} of `{name}` is {} instead of {word}", wrong + 1, read[wrong].word);
        Some((FaultKind::Order, problem))
    }
}

/// Returns the words of items by index, in the order that a text must have; `None` if it may be any.
fn sequence(arrangement: &Arrangement, times: u32) -> Option<Vec<u32>> {
    match arrangement {
        Arrangement::Sequence(sequence) => Some(sequence.clone()),
        Arrangement::Composition { counts, any_order: false, .. } => {
            let of_word = counts.iter().zip(0..);
            Some(of_word.flat_map(|(n, word)| std::iter::repeat_n(word, (n * times) as usize)).collect())
        }
        _ => None,
    }
}

/// Returns whether counts have the same words in the same proportions.
fn are_proportional(counts: &BTreeMap<&str, u32>, others: &BTreeMap<&str, u32>) -> bool {
    let [total, other_total] =
        [counts, others].map(|counts| counts.values().map(|n| u64::from(*n)).sum::<u64>());
    let mut pairs = counts.iter().zip(others);
    counts.len() == others.len()
        && pairs.all(|((word, n), (other, m))| {
            word == other && u64::from(*n) * other_total == u64::from(*m) * total
        })
}

/// Counts as a formula of at most eight words.
fn formula(counts: &BTreeMap<&str, u32>) -> String {
    let words: Vec<String> = counts.iter().map(|(word, n)| format!("{word}{n}")).take(8).collect();
    words.join(" ")
}
