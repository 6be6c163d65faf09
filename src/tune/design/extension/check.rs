//! Checks what an extended tokenizer guarantees, before it is written.

use std::collections::HashSet;

use serde::Serialize;

use super::base::BaseTokenizer;
use super::block_context::ids_around_blocks;
use super::checker::{Checker, TokenizerPair};
use super::layout::Alphabet;
use super::numbers::Pieces;
use super::plain::{PlainText, by_id};
use super::texts::{ALL_CONTEXTS, CONTEXTS};
use crate::design::scheme::cuts::Scheme;
use drift_core::{Job, Result, Tokenizer};

/// The checks that were run, all of them successful.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Guarantees {
    /// The number of tokens of the base whose id and text are unchanged.
    pub unchanged_tokens: u64,
    /// The number of new tokens; each of them occurs in the encoding of some block.
    pub reached_tokens: u64,
    /// The number of spellings of one number. Each was tried in all three positions of a block.
    pub numbers: u64,
    /// The number of contexts in which every spelling was tried. Each context has the end of one atom and the beginning of the text
    /// after it.
    pub contexts: u64,
    /// The number of blocks that were encoded, each to exactly the pieces of the scheme.
    pub blocks: u64,
    /// The number of different block shapes among them. A shape is the sign and number of integer digits (one or two) of all three
    /// numbers.
    pub shapes: u64,
    /// The number of bytes of blocks that were decoded to themselves.
    pub decoded_bytes: u64,
    /// The number of texts with something that is not a block of the range or encoding; all were encoded as by the base.
    pub fallbacks: u64,
    /// The number of texts without blocks; all were encoded and decoded as by the base.
    pub plain_texts: u64,
    /// The total size of these texts in bytes.
    pub plain_bytes: u64,
    /// Whether equality on all texts without blocks is proved, or only tested.
    pub plain_text: PlainText,
}

/// Checks everything that an extended tokenizer guarantees. Every number is tried in the first `contexts` contexts.
///
/// # Errors
/// The first guarantee that does not hold, or if the job was cancelled.
pub(in crate::design) fn check(
    base: BaseTokenizer<'_>,
    extended: &Tokenizer,
    scheme: &Scheme,
    new_tokens: &[(u32, String)],
    contexts: usize,
    job: &Job,
) -> Result<Guarantees> {
    let vocabulary = extended.vocabulary();
    // A string without an id gets no ids here, and is reported as a missing piece if a block needs it.
    let pieces = scheme.strings().into_iter().map(|text| {
        let ids = vocabulary.get(&text).map(|id| vec![*id]).unwrap_or_default();
        (text, ids)
    });
    check_pieces(base, extended, scheme, &pieces.collect(), new_tokens, contexts, job)
}

/// Like [`check`], for pieces that may be several tokens each. `pieces` contains, for every string of the scheme, the ids to which
/// it must be encoded.
///
/// # Errors
/// The first guarantee that does not hold, or if the job was cancelled.
pub(in crate::design) fn check_pieces(
    base: BaseTokenizer<'_>,
    extended: &Tokenizer,
    scheme: &Scheme,
    pieces: &Pieces,
    new_tokens: &[(u32, String)],
    contexts: usize,
    job: &Job,
) -> Result<Guarantees> {
    // At least one context and at most all: a plan may request fewer if time is short, but never none.
    let contexts = &CONTEXTS[..contexts.clamp(1, ALL_CONTEXTS)];
    let alphabet = Alphabet::from_json(base.json);
    let isolated = &scheme.grammar;
    let pair = TokenizerPair { base: base.tokenizer, extended, isolated, contexts, alphabet };
    let check = Checker { pair, scheme };
    let unchanged_tokens = check.vocabulary(new_tokens)?;
    check.normalizer()?;
    let plain_text = match alphabet {
        Alphabet::Bytes => check.plain_pieces(base.json, new_tokens)?,
        Alphabet::Text => {
            let (head, block) = (check.up_to_a_block(""), check.some_block());
            let text = format!("{head}{block}");
            let before = ids_around_blocks(base.tokenizer, &text, &block)?.swap_remove(0).len();
            let ids = extended.ids(&text)?.split_off(before);
            let plain_text = check.plain_sections(base.json)?;
            check.sections_behind([&head, &block, &block], &ids)?;
            plain_text
        }
    };
    let run = check.numbers(pieces, new_tokens, job)?;
    let fallbacks = check.fallbacks(new_tokens)?;
    let (plain_texts, plain_bytes) = check.plain_texts(plain_text, job)?;
    Ok(Guarantees {
        unchanged_tokens,
        reached_tokens: new_tokens.len() as u64,
        numbers: scheme.grammar.numbers(),
        contexts: contexts.len() as u64,
        blocks: run.blocks,
        shapes: run.shapes.len() as u64,
        decoded_bytes: run.decoded_bytes,
        fallbacks,
        plain_texts,
        plain_bytes,
        plain_text,
    })
}

impl TokenizerPair<'_> {
    /// Checks that old tokens keep their ids, new tokens have their ids, and there are no others. Returns the number of old tokens.
    pub(in crate::design) fn vocabulary(&self, new_tokens: &[(u32, String)]) -> Result<u64> {
        let (old, new) = (by_id(self.base.vocabulary()), self.extended.vocabulary());
        if let Some((id, text)) = old.iter().find(|(id, text)| new.get(text) != Some(id)) {
            return Err(self.broken(&format!("token {id}, {text:?}, would change")));
        }
        if let Some((id, text)) = new_tokens.iter().find(|(id, text)| new.get(text) != Some(id)) {
            return Err(self.broken(&format!("new token {id}, {text:?}, is not in its place")));
        }
        // The ids must also be distinct: a vocabulary of the right size may still use one id twice.
        let ids: HashSet<u32> = new.values().copied().collect();
        if new.len() != old.len() + new_tokens.len() || ids.len() != new.len() {
            return Err(self.broken("two tokens share an id"));
        }
        Ok(old.len() as u64)
    }
}

impl Checker<'_> {
    /// Checks that the normalizer leaves blocks unchanged, whatever text surrounds them.
    fn normalizer(&self) -> Result<()> {
        let blocks = self.some_block();
        for context in CONTEXTS {
            let text = format!("[C]{blocks}{context}{blocks}");
            let normalized = self.base.normalized(&text)?;
            // SentencePiece's normalizers write `▁` for a space, and some put one more before the text. Neither changes blocks.
            let marked = text.replace(' ', "▁");
            let marks = self.alphabet == Alphabet::Text
                && (normalized == marked || normalized.strip_prefix('▁') == Some(&*marked));
            if normalized != text && !marks {
                return Err(self.broken("its normalizer rewrites blocks or the text around them"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::Value;

    use super::*;
    use crate::design::extension::base::BaseVocabulary;
    use crate::design::extension::extend::{Extension, extend};
    use crate::design::extension::json::written;
    use crate::design::scheme::cuts::SchemeKind;
    use crate::design::scheme::fixed_space::FixedSpace;
    use crate::design::scheme::grammar::{Grammar, fixed_grammar, stripped_grammar};
    use crate::design::scheme::slots::MOST_DECIMALS;
    use crate::design::scheme::space::{BaseTokens, MAX_NEW_TOKENS};
    use crate::design::scheme::stripped_space::StrippedSpace;

    /// Returns the best scheme of so many tokens on top of an embedded base, extended and checked in one context.
    fn checked(grammar: Grammar, tokens: usize) -> Guarantees {
        let (base, bytes) = Tokenizer::load_with_json(Path::new("qwen-like")).unwrap();
        let json: Value = serde_json::from_slice(&bytes).unwrap();
        let known = BaseVocabulary::of(&base, Alphabet::Bytes);
        let optimum = if grammar.is_stripped() {
            StrippedSpace::new(SchemeKind::Fused, grammar, &known).optimum(tokens, MAX_NEW_TOKENS)
        } else {
            FixedSpace::new(SchemeKind::Fused, grammar, &known).optimum(tokens, MAX_NEW_TOKENS)
        };
        let scheme = optimum.unwrap().scheme;
        assert_eq!(scheme.tokens_per_block(), tokens);
        let new = known.lacks(&scheme);
        let Extension { json: extended, new_tokens } = extend(&json, &base.name, &scheme, &new).unwrap();
        let (extended, _) = written("extended", &extended).unwrap();
        check(
            BaseTokenizer { tokenizer: &base, json: &json },
            &extended,
            &scheme,
            &new_tokens,
            1,
            &Job::default(),
        )
        .unwrap()
    }

    #[test]
    fn numbers_of_other_decimals_are_checked_like_those_of_four() {
        let run = checked(fixed_grammar(1, 3), 9);
        assert_eq!((run.numbers, run.blocks, run.shapes), (2_000, 2_000, 8));
        let run = checked(fixed_grammar(3, 2), 6);
        assert_eq!((run.numbers, run.shapes), (600, 8));
        let run = checked(stripped_grammar(1, 3, 1), 9);
        assert_eq!((run.numbers, run.blocks, run.shapes), (2 * 999, 2 * 999 + 216, 216));
        // Signs, and no decimals to three.
        let run = checked(stripped_grammar(1, 3, 0), 7);
        assert_eq!((run.numbers, run.shapes), (2_000, 512));
    }

    #[test]
    fn six_decimals_are_as_many_as_can_be() {
        let grammar = stripped_grammar(1, MOST_DECIMALS, 6);
        // Only the bound and the scheme: a million numbers are run by the program, not here.
        let (base, _) = Tokenizer::load_with_json(Path::new("qwen-like")).unwrap();
        let known = BaseVocabulary::of(&base, Alphabet::Bytes);
        let optimum = StrippedSpace::new(SchemeKind::Fused, grammar, &known).optimum(12, MAX_NEW_TOKENS);
        assert_eq!(optimum.unwrap().scheme.tokens_per_block(), 12);
        let fixed = FixedSpace::new(SchemeKind::Fused, fixed_grammar(1, MOST_DECIMALS), &known);
        assert_eq!(fixed.tokens(), 3..=28);
        assert_eq!(fixed.optimum(12, MAX_NEW_TOKENS).unwrap().scheme.tokens_per_block(), 12);
    }
}
