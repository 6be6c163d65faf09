//! Which bytes may stand beside each other in the texts of a skeleton, for all prompts whose words have the same letters.
//!
//! Tokens join only what a text has side by side: `<unused11>` joins no digit with `>` where `<` comes before numbers alone.

use std::collections::BTreeSet;

use crate::encoding::{Dfa, DfaState};
use crate::skeleton::{Bound, ItemText, Part};
use crate::tokenizer::BytePairs;

/// What texts have of a prompt: bytes that may stand in any order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PromptBytes {
    items: Vec<BTreeSet<u8>>,
    fields: Vec<BTreeSet<u8>>,
    /// The end of the text before the answer, as it is.
    before: Vec<u8>,
}

/// How much of the text before an answer is looked at, in bytes: little more than its last tag, so that prompts share their borders.
const BEFORE: usize = 8;

impl PromptBytes {
    /// Returns those of a prompt behind which an answer stands as one text with it; `before` is empty if it does not.
    pub(super) fn new(bound: &Bound<'_>, before: &str) -> Self {
        let items = bound.items.iter().map(|items| {
            // Words of elements are the usual ones: with all letters, prompts share their borders.
            let letters = (b'A'..=b'Z').chain(b'a'..=b'z');
            let words = items.words.iter().chain(&items.rest);
            letters.chain(words.flat_map(|word| word.bytes())).collect()
        });
        let fields = bound.fields.iter().map(|field| field.bytes().collect());
        let before = before.as_bytes();
        let before = before[before.len().saturating_sub(BEFORE)..].to_vec();
        PromptBytes { items: items.collect(), fields: fields.collect(), before }
    }

    /// Returns the pairs of neighbours in the texts of a skeleton.
    pub(super) fn pairs(&self, bound: &Bound<'_>) -> BytePairs {
        let skeleton = bound.skeleton;
        let mut walk = PairWalk { of_prompt: self, bound, pairs: BytePairs::new(), lasts: BTreeSet::new() };
        if !self.before.is_empty() {
            walk.lasts = (0..=u8::MAX).collect();
            walk.text(&self.before);
        }
        if let Some(marker) = &skeleton.marker {
            walk.lasts = (0..=u8::MAX).collect();
            walk.text(marker.as_bytes());
        }
        walk.parts(&skeleton.parts);
        let lasts = walk.lasts.clone();
        for end in &skeleton.ends {
            walk.lasts.clone_from(&lasts);
            walk.text(end.as_bytes());
        }
        walk.pairs
    }
}

/// Goes through the parts of a text.
struct PairWalk<'w> {
    of_prompt: &'w PromptBytes,
    bound: &'w Bound<'w>,
    pairs: BytePairs,
    /// The bytes with which the text so far may end.
    lasts: BTreeSet<u8>,
}

impl PairWalk<'_> {
    fn parts(&mut self, parts: &[Part]) {
        for part in parts {
            match part {
                Part::Text(text) => self.text(text.as_bytes()),
                Part::Slot(slot) => self.slot(self.bound.skeleton.slots[*slot].dfa()),
                Part::Field(field) => self.any(&self.of_prompt.fields[*field], false),
                Part::Item { items, text } => self.item(&self.of_prompt.items[*items], *text),
                Part::Each(each) => {
                    let before = self.lasts.clone();
                    self.parts(&each.parts);
                    self.text(each.between.as_bytes());
                    // The second item stands behind the first one, and the text behind the loop follows any of them, or none.
                    self.parts(&each.parts);
                    self.lasts.extend(before);
                }
            }
        }
    }

    fn text(&mut self, text: &[u8]) {
        if let ([first, ..], [.., last]) = (text, text) {
            self.pairs.add(&self.lasts, &BTreeSet::from([*first]));
            self.pairs.add_text(text);
            self.lasts = BTreeSet::from([*last]);
        }
    }

    fn slot(&mut self, dfa: &Dfa) {
        self.pairs.add(&self.lasts, &dfa.bytes(dfa.start()).collect());
        let all: Vec<BTreeSet<u8>> =
            (0..dfa.len() as DfaState).map(|state| dfa.bytes(state).collect()).collect();
        for (bytes, state) in all.iter().zip(0..) {
            for byte in bytes {
                let behind = dfa.next(state, *byte).map(|then| &all[usize::from(then)]);
                behind.into_iter().for_each(|behind| self.pairs.add(&BTreeSet::from([*byte]), behind));
            }
        }
        self.lasts = dfa.last_bytes();
    }

    fn item(&mut self, words: &BTreeSet<u8>, text: ItemText) {
        let digits = || (b'0'..=b'9').collect::<BTreeSet<u8>>();
        match text {
            ItemText::Word => self.any(words, false),
            ItemText::Rest => self.any(words, true),
            ItemText::Index(_) | ItemText::Count | ItemText::Units => self.any(&digits(), false),
            ItemText::Sum | ItemText::Reduced => {
                self.any(&(&(words | &digits()) | &BTreeSet::from([b' '])), false)
            }
        }
    }

    /// Goes over some of these bytes in any order.
    fn any(&mut self, bytes: &BTreeSet<u8>, is_optional: bool) {
        self.pairs.add(&self.lasts, bytes);
        self.pairs.add(bytes, bytes);
        match is_optional {
            true => self.lasts.extend(bytes),
            false => self.lasts.clone_from(bytes),
        }
    }
}
