//! The slots of an encoding as tokens, once for each tokenizer. [`super::product`] has those of plain slots, whose brackets belong
//! to the text around them, and [`Isolation`] those of slots that the tokenizer cuts out of the text whole.

use std::collections::HashMap;

use super::boundaries::TokenBoundaries;
use super::factors::Factors;
use super::isolation::Isolation;
use super::load::Tokenizer;
use super::pieces::Surroundings;
use super::product::Explorer;
use super::spellings::TokenSpellings;
use super::tables;
use crate::encoding::language::{Languages, StateId};
use crate::encoding::{Dfa, Encoding, IntegersBelow};
use crate::error::Result;

/// How the ends of a slot are tokenised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum SlotMode {
    /// The opening and closing characters belong to the text around the slot.
    Plain = 0,
    /// The tokenizer cuts the slot out of the text together with them, as drift's extended tokenizers do.
    Isolated = 1,
}

/// The slots of an encoding as tokens.
pub(crate) struct SlotTokens {
    pub states: Languages<u32, SlotMode>,
    /// Plain slots behind the opening character and the sign; `None` if every slot is isolated.
    pub plain: Option<PlainSlots>,
    /// The state before isolated slots, which begin with the opening character; `None` if no slot is isolated.
    pub isolated: Option<StateId>,
    /// How slots are isolated, if they are.
    pub isolation: Option<Isolation>,
    /// Where texts fall apart; `None` if slots are isolated.
    pub cuts: Option<TokenBoundaries>,
}

/// Slots whose brackets belong to the text around them.
pub(crate) struct PlainSlots {
    /// Their content over bytes.
    pub dfa: Dfa,
    /// The state before them.
    pub start: StateId,
}

/// The inside of a decimal slot that no tokenizer isolates, because its numbers have seven decimals.
const PLAIN_DECIMALS: &str = "0.1234567,0.1234567,0.1234567";

impl SlotTokens {
    /// Returns the tokens of an encoding's slots. The inner error is a sentence that says why they cannot be proved.
    ///
    /// # Errors
    /// If the tokenizer cannot encode texts of slots.
    pub(crate) fn learn(
        tokenizer: &Tokenizer,
        spellings: &TokenSpellings,
        encoding: Encoding,
    ) -> Result<std::result::Result<Self, String>> {
        let isolation = match Isolation::learn(tokenizer, encoding)? {
            Ok(isolation) => isolation,
            Err(why) => return Ok(Err(why)),
        };
        let cuts = match isolation {
            Some(_) => None,
            None => match tables::separated(tokenizer, encoding) {
                Ok(cuts) => Some(cuts),
                Err(why) => return Ok(Err(why)),
            },
        };
        let mut states = Languages::default();
        let without =
            |languages: &mut Languages<u8>| isolation.as_ref().and_then(|one| one.language(languages));
        let mut plain = None;
        if let Some(dfa) = encoding.inner_dfa(IntegersBelow::GENERATED, without) {
            // A sign may share a token with the character before it, so it belongs to the text between slots.
            let dfa = if encoding.is_signed() { dfa.without_first(b'-') } else { dfa };
            // Without the end of the slot no expression takes it for one that it cuts out.
            let after = if isolation.is_some() { "" } else { encoding.close() }.to_owned();
            let before = format!("[C]{}", encoding.open());
            let around = Surroundings { before, after, adds_space: false };
            let places = SlotPlaces { dfa: &dfa, around, cuts: cuts.as_ref() };
            let start = match places.start(tokenizer, spellings, &mut states)? {
                Ok(start) => start,
                Err(why) => return Ok(Err(why)),
            };
            plain = Some(PlainSlots { dfa, start });
        }
        let isolated = isolation.as_ref().map(|one| one.states(&mut states, tokenizer, SlotMode::Isolated));
        match isolated {
            Some(None) => Ok(Err(AMBIGUOUS.to_owned())),
            isolated => Ok(Ok(SlotTokens { states, plain, isolated: isolated.flatten(), isolation, cuts })),
        }
    }
}

/// Plain slots, and the text beside them.
struct SlotPlaces<'s> {
    dfa: &'s Dfa,
    around: Surroundings,
    /// Where texts fall apart, for Unigram models.
    cuts: Option<&'s TokenBoundaries>,
}

impl SlotPlaces<'_> {
    /// Returns the state before the slots. The inner error is a sentence that says why their tokens are not known.
    fn start(
        self,
        tokenizer: &Tokenizer,
        spellings: &TokenSpellings,
        states: &mut Languages<u32, SlotMode>,
    ) -> Result<std::result::Result<StateId, String>> {
        if let (Some(scores), Some(cuts)) = (&spellings.scores, self.cuts) {
            let mut factors = Factors::new(tokenizer, spellings, scores, cuts, self.dfa);
            return Ok(factors.start(states, SlotMode::Plain));
        }
        let mut explorer = Explorer::new(tokenizer, spellings, self.dfa.clone(), self.around);
        if explorer.built(0)?.ids.is_empty() {
            return Ok(Err("no sequence of its tokens spells a slot of numbers".to_owned()));
        }
        explorer.add_to(0, states, SlotMode::Plain, &mut HashMap::new()).map(Ok)
    }
}

/// Why slots cannot be told from the text around them.
pub(crate) const AMBIGUOUS: &str = "its tokens do not determine where a block ends";

/// Returns the inside of a slot that is not isolated.
pub(crate) fn plain_inside(encoding: Encoding) -> String {
    if encoding.is_decimal() {
        return PLAIN_DECIMALS.to_owned();
    }
    encoding.numbers_text(&std::array::from_fn(|axis| encoding.number().limits(axis).1 / 2))
}
