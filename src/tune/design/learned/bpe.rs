//! Continued BPE: learns merges on top of an existing segmentation, from a table of words and weights.
//!
//! The method is that of "Teaching Old Tokenizers New Words" (arXiv 2512.03989): start with the base's tokens of each word, join
//! the most frequent pair of neighbours, and repeat. There are three differences from the usual trainer. First, only joins that can
//! be made are counted, so `000` contains one pair `00`, not two. Second, a text becomes a token at most once: a second way to make
//! it would be a merge that ranks before its own parts, and encoding would no longer reproduce learning. Third, a word may become
//! one token as a whole if the tokenizer looks whole words up (`ignore_merges`). Then no intermediate tokens are needed that would
//! never be used.
//!
//! Pair counts are updated while words change: only words that contained the joined pair are counted again. A heap holds the gains.
//! When an outdated entry reaches the top, it is reinserted with its current gain. This is correct because the gain of an entry in
//! the heap can only decrease.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use drift_core::{Job, Result};

/// A word. All words are distinct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The word's tokens.
    pub symbols: Vec<u32>,
    /// The weight of the word.
    pub weight: u64,
    /// Whether the whole word may become a token without merges.
    pub whole: bool,
}

/// How a new token is made. Among steps that save equally many tokens, the first in this order is taken: merges, and smaller ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Joins two tokens by a merge.
    Merge(u32, u32),
    /// Looks up the whole word with this index.
    Whole(usize),
}

/// The result of learning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearnedTokens {
    /// The new tokens in order: how each is made, and its text. Their ids are consecutive from the first id.
    pub tokens: Vec<(Step, String)>,
    /// The words with their new encoding.
    pub words: Vec<Word>,
}

/// The limits of learning.
pub struct Limits<'l> {
    /// The largest number of new tokens.
    pub tokens: usize,
    /// The id of the first new token.
    pub first_id: u32,
    /// Whether a text may become a token.
    pub allows: &'l dyn Fn(&str) -> bool,
}

/// A pair of neighbours: its weight, and the words that contain it or once contained it.
#[derive(Default)]
struct Pair {
    weight: u64,
    words: Vec<u32>,
}

struct Learner {
    words: Vec<Word>,
    texts: HashMap<u32, String>,
    pairs: HashMap<(u32, u32), Pair>,
    /// The steps by their gains.
    heap: BinaryHeap<(u64, Reverse<Step>)>,
}

/// Learns tokens from `words`; `texts` contains the texts of their symbols.
///
/// # Errors
/// If the job was cancelled.
pub fn learn(
    words: Vec<Word>,
    texts: HashMap<u32, String>,
    limits: &Limits<'_>,
    job: &Job,
) -> Result<LearnedTokens> {
    let mut learner = Learner { words, texts, pairs: HashMap::new(), heap: BinaryHeap::new() };
    learner.begin();
    let mut tokens: Vec<(Step, String)> = Vec::new();
    let mut made: HashSet<String> = HashSet::new();
    while tokens.len() < limits.tokens {
        let Some(step) = learner.best() else { break };
        // Rare enough to cost nothing, frequent enough to stop quickly.
        if tokens.len().is_multiple_of(64) {
            job.check()?;
        }
        let text = learner.text(step);
        // Its entry has left the heap, so a refused step never comes up again.
        if made.contains(&text) || !(limits.allows)(&text) {
            continue;
        }
        let id = limits.first_id + tokens.len() as u32;
        learner.texts.insert(id, text.clone());
        learner.apply(step, id);
        made.insert(text.clone());
        tokens.push((step, text));
    }
    Ok(LearnedTokens { tokens, words: learner.words })
}

impl LearnedTokens {
    /// Returns the number of tokens of each word.
    pub fn lengths(&self) -> Vec<usize> {
        self.words.iter().map(|word| word.symbols.len()).collect()
    }

    /// Returns the new tokens that occur in no word: they are only intermediate steps to other tokens.
    pub fn unused(&self, first_id: u32) -> Vec<String> {
        let used: HashSet<u32> = self.words.iter().flat_map(|word| word.symbols.iter().copied()).collect();
        let ids = first_id..;
        ids.zip(&self.tokens)
            .filter(|(id, _)| !used.contains(id))
            .map(|(_, (_, text))| text.clone())
            .collect()
    }
}

impl Learner {
    fn begin(&mut self) {
        for index in 0..self.words.len() {
            self.count(index, true);
            let word = &self.words[index];
            if word.whole && word.symbols.len() > 1 {
                self.heap.push((self.gain(Step::Whole(index)), Reverse(Step::Whole(index))));
            }
        }
        self.heap.extend(self.pairs.iter().map(|(pair, found)| entry(*pair, found.weight)));
    }

    /// Returns the number of tokens that a step saves, by weight.
    fn gain(&self, step: Step) -> u64 {
        match step {
            Step::Whole(index) => self.words[index].weight * (self.words[index].symbols.len() as u64 - 1),
            Step::Merge(left, right) => self.pairs.get(&(left, right)).map_or(0, |pair| pair.weight),
        }
    }

    /// Adds or subtracts the pairs of a word.
    fn count(&mut self, index: usize, add: bool) {
        let word = &self.words[index];
        for pair in joins(&word.symbols) {
            let found = self.pairs.entry(pair).or_default();
            if add {
                found.weight += word.weight;
                // Words are counted one after the other, so if a word contains a pair twice, it is the last one in the list.
                if found.words.last() != Some(&(index as u32)) {
                    found.words.push(index as u32);
                }
            } else {
                found.weight -= word.weight;
            }
        }
    }

    /// Removes the step with the largest gain from the heap.
    fn best(&mut self) -> Option<Step> {
        while let Some((gain, Reverse(step))) = self.heap.pop() {
            // Gains only decrease, so an entry that is still correct is the largest of all.
            match self.gain(step) {
                0 => {}
                now if now == gain => return Some(step),
                now => self.heap.push((now, Reverse(step))),
            }
        }
        None
    }

    fn text(&self, step: Step) -> String {
        match step {
            Step::Merge(left, right) => format!("{}{}", self.texts[&left], self.texts[&right]),
            Step::Whole(index) => self.words[index].symbols.iter().map(|id| &*self.texts[id]).collect(),
        }
    }

    /// Makes token `id` wherever the step applies.
    fn apply(&mut self, step: Step, id: u32) {
        match step {
            Step::Whole(index) => {
                self.count(index, false);
                self.words[index].symbols = vec![id];
            }
            Step::Merge(left, right) => {
                let pair = self.pairs.get_mut(&(left, right));
                let holders = pair.map_or_else(Vec::new, |pair| std::mem::take(&mut pair.words));
                // Entries are made after all words are counted, so that each pair enters the heap once and with its full weight.
                let mut joined: HashSet<(u32, u32)> = HashSet::new();
                for index in holders {
                    let index = index as usize;
                    // The list contains every word that ever had the pair; other joins may have removed it.
                    if !self.words[index].symbols.windows(2).any(|pair| pair == [left, right]) {
                        continue;
                    }
                    self.count(index, false);
                    join(&mut self.words[index].symbols, left, right, id);
                    self.count(index, true);
                    joined.extend(joins(&self.words[index].symbols).filter(|(a, b)| *a == id || *b == id));
                }
                let entries = joined.into_iter().map(|pair| entry(pair, self.pairs[&pair].weight));
                self.heap.extend(entries);
            }
        }
    }
}

fn entry(pair: (u32, u32), weight: u64) -> (u64, Reverse<Step>) {
    (weight, Reverse(Step::Merge(pair.0, pair.1)))
}

/// Returns the pairs of neighbours, without those that overlap an equal pair before them.
fn joins(symbols: &[u32]) -> impl Iterator<Item = (u32, u32)> {
    let mut overlaps = false;
    let mut before = None;
    symbols.windows(2).map(|pair| (pair[0], pair[1])).filter(move |pair| {
        overlaps = before == Some(*pair) && !overlaps;
        before = Some(*pair);
        !overlaps
    })
}

/// Joins every `left` followed by `right`, from left to right.
fn join(symbols: &mut Vec<u32>, left: u32, right: u32, id: u32) {
    let (mut read, mut write) = (0, 0);
    while read < symbols.len() {
        let pair = symbols[read] == left && symbols.get(read + 1) == Some(&right);
        symbols[write] = if pair { id } else { symbols[read] };
        read += if pair { 2 } else { 1 };
        write += 1;
    }
    symbols.truncate(write);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the same by counting everything anew before each step.
    fn reference(
        mut words: Vec<Word>,
        mut texts: HashMap<u32, String>,
        limits: &Limits<'_>,
    ) -> LearnedTokens {
        let mut tokens: Vec<(Step, String)> = Vec::new();
        let mut refused: HashSet<String> = HashSet::new();
        while tokens.len() < limits.tokens {
            let mut gains: HashMap<Step, u64> = HashMap::new();
            for (index, word) in words.iter().enumerate() {
                for (left, right) in joins(&word.symbols) {
                    *gains.entry(Step::Merge(left, right)).or_default() += word.weight;
                }
                if word.whole {
                    gains.insert(Step::Whole(index), word.weight * (word.symbols.len() as u64 - 1));
                }
            }
            let text = |step: &Step| match step {
                Step::Whole(index) => words[*index].symbols.iter().map(|id| &*texts[id]).collect(),
                Step::Merge(left, right) => format!("{}{}", texts[left], texts[right]),
            };
            let best = gains
                .iter()
                .filter(|(step, gain)| **gain > 0 && !refused.contains(&text(step)))
                .max_by_key(|(step, gain)| (**gain, Reverse(**step)));
            let Some((&step, _)) = best else { break };
            let text: String = text(&step);
            refused.insert(text.clone());
            if !(limits.allows)(&text) {
                continue;
            }
            let id = limits.first_id + tokens.len() as u32;
            match step {
                Step::Whole(index) => words[index].symbols = vec![id],
                Step::Merge(l, r) => words.iter_mut().for_each(|word| join(&mut word.symbols, l, r, id)),
            }
            texts.insert(id, text.clone());
            tokens.push((step, text));
        }
        LearnedTokens { tokens, words }
    }

    #[test]
    fn incremental_counts_equal_counting_anew() {
        let texts: HashMap<u32, String> = (0..4).map(|id| (id, id.to_string())).collect();
        for seed in 0..60u64 {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut draw = |below: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % below
            };
            let mut words: Vec<Word> = (0..40)
                .map(|_| Word {
                    symbols: (0..1 + draw(9)).map(|_| draw(4) as u32).collect(),
                    weight: draw(5),
                    whole: draw(3) == 0,
                })
                .collect();
            words.sort_by(|a, b| a.symbols.cmp(&b.symbols));
            words.dedup_by(|a, b| a.symbols == b.symbols);
            let allows = |text: &str| text != "12" && !text.contains("33");
            let limits = Limits { tokens: 30, first_id: 4, allows: &allows };
            let expected = reference(words.clone(), texts.clone(), &limits);
            assert_eq!(learn(words, texts.clone(), &limits, &Job::default()).unwrap(), expected, "{seed}");
        }
    }

    #[test]
    fn pairs_that_overlap_are_joined_once() {
        assert_eq!(joins(&[0, 0, 0, 0, 1]).collect::<Vec<_>>(), [(0, 0), (0, 0), (0, 1)]);
        assert_eq!(joins(&[0, 0, 0]).collect::<Vec<_>>(), [(0, 0)]);
        let mut symbols = vec![0, 0, 0, 0, 1, 0];
        join(&mut symbols, 0, 0, 7);
        assert_eq!(symbols, [7, 7, 1, 0]);
    }
}
