//! The items of a prompt: how many there are, with which words, in which order, and what a text states of them.

use std::collections::HashMap;

use serde::Deserialize;

use super::template::ItemText;
use crate::chem::SmilesError;
use crate::encoding::Slots;
use crate::text::skeleton;

/// The order of items in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// That of the prompt.
    #[default]
    Given,
    /// That of the prompt; the elements of a formula as often as they stand in it, `CH3CH2OH` as `C H H H C H H O H`.
    Rows,
    /// Any.
    Any,
}

/// The items of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Items {
    /// The different words, in the order in which they first occur; empty if items have no words.
    pub words: Vec<Box<str>>,
    /// How items are arranged.
    pub arrangement: Arrangement,
    /// The text behind the last piece of a SMILES, if items are such pieces: then texts have exactly these words.
    pub rest: Option<Box<str>>,
}

/// How items are arranged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrangement {
    /// These words in this order, by index.
    Sequence(Vec<u32>),
    /// As many of each word, by index, times a number between two.
    Composition {
        /// The number of each word.
        counts: Vec<u32>,
        /// The least and the largest multiple.
        times: [u32; 2],
        /// Whether they may stand in any order. If not, they are sorted by word.
        any_order: bool,
    },
    /// As many items as a number between two, without words.
    Number {
        /// The least number.
        least: u32,
        /// The largest number.
        most: u32,
    },
}

impl Items {
    pub(super) fn new(words: impl Iterator<Item = String>, order: Order) -> Self {
        let (mut known, mut list): (HashMap<String, u32>, Vec<Box<str>>) = Default::default();
        let sequence = words.map(|word| {
            *known.entry(word).or_insert_with_key(|word| {
                list.push(word.as_str().into());
                list.len() as u32 - 1
            })
        });
        let sequence: Vec<u32> = sequence.collect();
        if order != Order::Any {
            return Items { words: list, arrangement: Arrangement::Sequence(sequence), rest: None };
        }
        let mut counts = vec![0; list.len()];
        sequence.iter().for_each(|word| counts[*word as usize] += 1);
        Items {
            words: list,
            arrangement: Arrangement::Composition { counts, times: [1, 1], any_order: true },
            rest: None,
        }
    }

    /// Returns a number of items without words between two.
    pub(super) fn between(least: u32, most: u32) -> Self {
        Items { words: Vec::new(), arrangement: Arrangement::Number { least, most }, rest: None }
    }

    /// Returns the pieces of a SMILES.
    pub(super) fn pieces(smiles: &str, behind: Slots) -> std::result::Result<Self, SmilesError> {
        let enriched = skeleton::from_smiles(smiles)?;
        let enriched = skeleton::placed(&enriched, behind);
        let (pieces, rest) = enriched.rsplit_once("<>").unwrap_or_default();
        let items = Items::new(pieces.split("<>").map(str::to_owned), Order::Given);
        Ok(Items { rest: Some(rest.into()), ..items })
    }

    /// Returns the least and the largest multiple of [`Items::counts`].
    pub fn times(&self) -> [u32; 2] {
        match self.arrangement {
            Arrangement::Composition { times, .. } => times,
            _ => [1, 1],
        }
    }

    /// Returns whether it is one of the words.
    pub(super) fn has_word(&self, word: &str) -> bool {
        self.words.iter().any(|known| **known == *word)
    }

    /// Returns the number of each word, in a text with the least multiple of one; empty without words.
    pub fn counts(&self) -> Vec<u32> {
        match &self.arrangement {
            Arrangement::Composition { counts, .. } => counts.clone(),
            Arrangement::Sequence(sequence) => {
                let mut counts = vec![0; self.words.len()];
                sequence.iter().for_each(|word| counts[*word as usize] += 1);
                counts
            }
            Arrangement::Number { .. } => Vec::new(),
        }
    }

    /// Returns the number of items of each of the [`Items::multiples`]: those of the list or of the formula; 1 without words.
    pub(crate) fn unit(&self) -> u32 {
        match &self.arrangement {
            Arrangement::Number { .. } => 1,
            Arrangement::Sequence(sequence) => sequence.len() as u32,
            Arrangement::Composition { counts, .. } => counts.iter().sum(),
        }
    }

    /// Returns the least and the largest number of items.
    pub fn range(&self) -> [u32; 2] {
        self.multiples().map(|times| times * self.unit())
    }

    /// Returns the least and the largest multiple of the items, or the least and the largest number of items without words.
    pub(crate) fn multiples(&self) -> [u32; 2] {
        match self.arrangement {
            Arrangement::Number { least, most } => [least, most],
            _ => self.times(),
        }
    }

    /// Returns what a text states of the items, for a multiple of them.
    pub fn stated(&self, text: ItemText, times: u32) -> String {
        let counts = self.counts();
        let divisor = counts.iter().fold(0, |a, b| gcd(a, *b)).max(1);
        match text {
            ItemText::Count => match self.arrangement {
                Arrangement::Number { .. } => times.to_string(),
                _ => (counts.iter().sum::<u32>() * times).to_string(),
            },
            ItemText::Sum => {
                let words = self.words.iter().zip(&counts);
                words.map(|(word, n)| format!("{word}{}", n * times)).collect::<Vec<_>>().join(" ")
            }
            ItemText::Reduced => {
                let words = self.words.iter().zip(&counts);
                let number = |n: u32| if n == 1 { String::new() } else { n.to_string() };
                words.map(|(word, n)| format!("{word}{}", number(n / divisor))).collect()
            }
            ItemText::Units => (divisor * times).to_string(),
            // These stand in loops, where they are known from the item.
            ItemText::Word | ItemText::Index(_) => String::new(),
            ItemText::Rest => self.rest.as_deref().unwrap_or_default().to_owned(),
        }
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
