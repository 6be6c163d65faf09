//! The slots of a skeleton as texts are followed. Those of an encoding are one slot from the first number to the last: it is known how the
//! tokenizer writes them ([`SlotTokens`]), whether it cuts them out of the text whole or not.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::encoding::{Dfa, Encoding};
use crate::error::Result;
use crate::skeleton::{Part, Skeleton};
use crate::tokenizer::{Chunk, SlotTokens, TokenSpellings, Tokenizer, plain_inside};

/// A slot.
pub(super) struct FollowedSlot {
    /// Its names in braces, and the text between them.
    pub label: String,
    pub dfa: Dfa,
    /// The bytes with which its texts may end.
    pub last_bytes: BTreeSet<u8>,
    /// One of its texts.
    pub sample: String,
    /// Its tokens, if texts fall apart at both ends of it.
    pub tokens: Option<Arc<Chunk>>,
}

/// The ways to write the slots of an encoding, by index among all slots.
pub(super) struct EncodedSlots {
    pub encoding: Encoding,
    /// The numbers behind the opening text and the sign of the first.
    pub plain: Option<usize>,
    /// The slots that the tokenizer cuts out of the text, with the texts around them.
    pub isolated: Option<usize>,
}

/// The slots of a skeleton, for one tokenizer.
pub(super) struct FollowedSlots {
    pub all: Vec<FollowedSlot>,
    pub encoded: Vec<EncodedSlots>,
}

impl FollowedSlot {
    fn new(label: String, dfa: Dfa, sample: Option<String>, tokens: Option<Chunk>) -> Self {
        let shortest = || String::from_utf8_lossy(&dfa.completion(dfa.start())).into_owned();
        let sample = sample.unwrap_or_else(shortest);
        FollowedSlot { label, last_bytes: dfa.last_bytes(), sample, dfa, tokens: tokens.map(Arc::new) }
    }

    /// Returns whether what follows it is cut alike behind all of its texts: whether they end with letters and digits, or all with one
    /// character. Pre-tokenizers keep marks with those behind them: `(C` is a piece behind a letter, and `C` is one behind `?(`.
    pub(super) fn ends_alike(&self) -> bool {
        self.last_bytes.len() == 1 || self.last_bytes.iter().all(u8::is_ascii_alphanumeric)
    }
}

impl FollowedSlots {
    /// Returns the slots of a skeleton. The inner error is a sentence that says why their tokens are not known; only Unigram models
    /// have none if they cannot be proved, because those of BPE are also found where they stand.
    ///
    /// # Errors
    /// If the tokenizer cannot encode texts of slots.
    pub(super) fn learn(
        skeleton: &Skeleton,
        tokenizer: &Tokenizer,
        spellings: &TokenSpellings,
    ) -> Result<std::result::Result<Self, String>> {
        let plain = skeleton
            .slots
            .iter()
            .map(|slot| FollowedSlot::new(format!("{{{}}}", slot.name), slot.dfa().clone(), None, None));
        let mut slots = FollowedSlots { all: plain.collect(), encoded: Vec::new() };
        for encoding in skeleton.slots.iter().filter_map(|slot| slot.encoding) {
            if slots.encoded.iter().any(|known| known.encoding == encoding) {
                continue;
            }
            match SlotTokens::learn(tokenizer, spellings, encoding)? {
                Ok(tokens) => slots.add(skeleton, encoding, tokens),
                Err(why) if spellings.scores.is_some() => return Ok(Err(why)),
                Err(_) => {}
            }
        }
        Ok(Ok(slots))
    }

    fn add(&mut self, skeleton: &Skeleton, encoding: Encoding, tokens: SlotTokens) {
        let names = skeleton.slots.iter().filter(|slot| slot.encoding == Some(encoding));
        let names: Vec<String> = names.map(|slot| format!("{{{}}}", slot.name)).collect();
        let axis = |axis: usize| names[axis.min(names.len() - 1)].clone();
        let label = (0..encoding.numbers()).map(axis).collect::<Vec<_>>().join(encoding.separator());
        let SlotTokens { states, plain, isolated, isolation, .. } = tokens;
        let plain = plain.map(|plain| {
            let chunk = Chunk::listed(&states, plain.start);
            FollowedSlot::new(label.clone(), plain.dfa, Some(plain_inside(encoding)), Some(chunk))
        });
        let isolated = isolated.zip(isolation).and_then(|(start, isolation)| {
            let whole = format!("{}{label}{}", encoding.open(), encoding.close());
            let chunk = Chunk::listed(&states, start);
            Some(FollowedSlot::new(whole, isolation.dfa()?, Some(isolation.sample), Some(chunk)))
        });
        let [plain, isolated] = [plain, isolated].map(|slot| Some(self.push(slot?)));
        self.encoded.push(EncodedSlots { encoding, plain, isolated });
    }

    fn push(&mut self, slot: FollowedSlot) -> usize {
        self.all.push(slot);
        self.all.len() - 1
    }
}

/// Returns the number of parts that a text of a template has.
fn parts_of(text: &str) -> usize {
    text.split_inclusive('\n').count()
}

impl EncodedSlots {
    /// Returns how many parts the slots of this encoding take at the beginning of some parts; `None` if these begin otherwise.
    pub(super) fn at(&self, parts: &[Part], skeleton: &Skeleton) -> Option<usize> {
        let encoding = self.encoding;
        let (opened, separated) = (parts_of(encoding.open()), parts_of(encoding.separator()));
        let text = |part: &Part| if let Part::Text(text) = part { text.to_string() } else { String::new() };
        let open: String = parts.get(..opened)?.iter().map(text).collect();
        let is_first = matches!(parts.get(opened)?, Part::Slot(slot)
            if skeleton.slots[*slot].encoding == Some(encoding) && skeleton.slots[*slot].axis == 0);
        let numbers = encoding.numbers();
        let length = opened + numbers + (numbers - 1) * separated + parts_of(encoding.close());
        (open == encoding.open() && is_first).then_some(length)
    }
}
