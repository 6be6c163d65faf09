//! Checks that text without blocks keeps its tokens.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use serde::Serialize;
use serde_json::Value;

use super::block_context::ids_around_blocks;
use super::checker::TokenizerPair;
use super::json::added_tokens;
use super::layout::{Alphabet, BaseLayout, is_apart};
use super::mixed::{MIXED_TEXTS, mixed_text};
use super::texts::{ALL_CONTEXTS, PLAIN};
use drift_core::tokenizer::boundaries::with_white_space;
use drift_core::tokenizer::marks_spaces;
use drift_core::{Job, Result, Tokenizer};

/// How it is known that texts without blocks are encoded as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PlainText {
    /// Proved from the base's expressions or normalizers and its whole vocabulary.
    Proved,
    /// Only tested, because the base has an expression or a normalizer that drift does not know.
    Tried,
}

impl TokenizerPair<'_> {
    /// Checks the two things that could change texts without blocks. Setting `ignore_merges` changes nothing if merges turn each
    /// old token's text into that token. A new token changes nothing if no pre-token can equal it.
    pub(in crate::design) fn plain_pieces(
        &self,
        base_json: &Value,
        new_tokens: &[(u32, String)],
    ) -> Result<PlainText> {
        let added: BTreeSet<String> =
            added_tokens(base_json).into_iter().map(|(_, content)| content).collect();
        for content in &added {
            // It is now listed in the model, where only a whole pre-token could match it.
            if self.base.pre_tokens(content)? == [&**content] && self.base.model_ids(content).is_none() {
                return Err(self.broken(&format!("the added token {content:?} is a pre-token")));
            }
        }
        if base_json["model"]["ignore_merges"] != true {
            self.unmade_pieces(&added)?;
        }
        for (id, piece) in new_tokens {
            let text = self.extended.decode(&[*id])?;
            // Some expressions look at the following text, such as a space or the end of a line.
            for around in [text.clone(), format!("{text} "), format!("{text}a"), format!("{text}\n")] {
                if self.base.pre_tokens(&around)?.first() == Some(piece) {
                    return Err(self.broken(&format!("{text:?} is a pre-token outside blocks too")));
                }
            }
        }
        let longest = BaseLayout::longest_digits(base_json);
        let apart = |text: &str| longest.is_some_and(|longest| is_apart(&with_white_space(text), longest));
        let proved = new_tokens.iter().all(|(_, text)| apart(text));
        Ok(if proved { PlainText::Proved } else { PlainText::Tried })
    }

    /// A token that merges do not make of its own text would be used wherever a whole pre-token equals it, so no pre-token may
    /// equal it.
    fn unmade_pieces(&self, added: &BTreeSet<String>) -> Result<()> {
        let vocabulary = self.base.vocabulary();
        let unmade = vocabulary.par_iter().filter(|(text, id)| {
            !text.is_empty()
                && !added.contains(text.as_str())
                && self.base.model_ids(text).as_deref() != Some(&[**id])
        });
        let mut unmade: Vec<(&String, &u32)> = unmade.collect();
        unmade.sort();
        for (piece, id) in unmade {
            let text = self.base.decode(&[*id])?;
            for around in [text.clone(), format!("{text} "), format!("{text}a"), format!("a {text}\n")] {
                // A token with broken characters cannot be written as text, so it cannot be tested and is refused.
                if text.contains('\u{fffd}') || self.base.pre_tokens(&around)?.contains(piece) {
                    return Err(self.broken(&format!(
                        "its merges never make its own token {piece:?}, which whole pre-tokens would become"
                    )));
                }
            }
        }
        Ok(())
    }

    /// For bases without splits, a piece is a section between added tokens or blocks. The lookup changes it only if it is a token.
    /// So every token is tried as a whole section. [`Self::sections_behind`] tries those behind blocks.
    pub(in crate::design) fn plain_sections(&self, base_json: &Value) -> Result<PlainText> {
        first_error(&by_id(self.extended.vocabulary()), |(_, own)| {
            let token = own.replace('\u{2581}', " ");
            if self.isolated.taken_apart(&token)? == token {
                self.same_ids(&token)?;
            }
            Ok(())
        })?;
        let known = marks_spaces(&base_json["normalizer"]);
        Ok(if known { PlainText::Proved } else { PlainText::Tried })
    }

    /// Tries every token as the whole text behind a block with these ids, which is `piece` to the model.
    pub(in crate::design) fn sections_behind(
        &self,
        [head, block, piece]: [&str; 3],
        ids: &[u32],
    ) -> Result<()> {
        first_error(&by_id(self.extended.vocabulary()), |(_, own)| {
            let token = own.replace('\u{2581}', " ");
            let text = format!("{head}{block}{token}");
            // What is no block in this place, or forms another one, is no text after a block. Added tokens are matched before.
            if self.base.is_added(own) || self.isolated.taken_apart(&text)? != format!("{head}{token}") {
                return Ok(());
            }
            if self.extended.ids(&text)? == ids_around_blocks(self.base, &text, piece)?.join(ids) {
                return Ok(());
            }
            let text = drift_core::error::excerpt(token.as_bytes());
            Err(self.broken(&format!("{text} after a block would take other tokens")))
        })
    }

    /// Removes the blocks from a text. A normalizer can turn other text into a block, as NFKC does with full-width digits; such
    /// text is removed too.
    fn without_blocks(&self, text: &str) -> Result<String> {
        let text = self.isolated.taken_apart(text)?;
        if self.alphabet == Alphabet::Text {
            return Ok(text);
        }
        let normalized = self.base.normalized(&text)?;
        let left = self.isolated.taken_apart(&normalized)?;
        Ok(if left == normalized { text } else { left })
    }

    /// Checks texts in several scripts, code, SMILES, every old token as a text, tokens strung together at random, and 10 MB of
    /// mixed text (in proportion to the number of contexts), or 1 MB if equality is proved. Returns the number of texts and their
    /// bytes.
    pub(in crate::design) fn plain_texts(&self, plain_text: PlainText, job: &Job) -> Result<(u64, u64)> {
        let mut texts: Vec<String> =
            PLAIN.iter().map(|text| self.without_blocks(text)).collect::<Result<_>>()?;
        let alone = token_texts(self.base)?;
        // A walk with a step that shares no factor with most vocabulary sizes puts tokens next to each other that rarely meet.
        let mut at = 0;
        for _ in 0..(alone.len() / 16).min(4_000) {
            let mut text = String::new();
            for _ in 0..64 {
                at = (at + 7_919) % alone.len();
                text.push_str(&alone[at]);
            }
            texts.push(text);
        }
        texts.extend(alone);
        first_error(&texts, |text| {
            job.check()?;
            let ids = self.same_ids(text)?;
            if self.extended.decode(&ids)? != self.base.decode(&ids)? {
                return Err(self.broken("text without blocks is decoded differently"));
            }
            Ok(())
        })?;
        let share = MIXED_TEXTS * self.contexts.len() as u64 / ALL_CONTEXTS as u64;
        // With a proof the texts only show that its reasoning holds in practice.
        let share = if plain_text == PlainText::Proved { share.div_ceil(10) } else { share };
        let mixed = AtomicU64::new(0);
        let indices: Vec<u64> = (0..share).collect();
        first_error(&indices, |index| {
            job.check()?;
            let text = self.without_blocks(&mixed_text(*index))?;
            mixed.fetch_add(text.len() as u64, Ordering::Relaxed);
            self.same_ids(&text).map(|_| ())
        })?;
        let bytes = texts.iter().map(|text| text.len() as u64).sum::<u64>();
        Ok((texts.len() as u64 + share, bytes + mixed.into_inner()))
    }
}

/// Runs `each` on all items in parallel. Returns the error of the first failing item in list order, so that it is the same in every
/// run.
pub(super) fn first_error<T: Sync>(all: &[T], each: impl Fn(&T) -> Result<()> + Sync) -> Result<()> {
    all.par_iter().find_map_first(|one| each(one).err()).map_or(Ok(()), Err)
}

/// Returns the text of every single token, by id.
pub(in crate::design) fn token_texts(base: &Tokenizer) -> Result<Vec<String>> {
    by_id(base.vocabulary()).par_iter().map(|(id, _)| base.decode(&[*id])).collect()
}

/// Returns a vocabulary sorted by id, so that the order is the same in every run.
pub(in crate::design) fn by_id(vocabulary: HashMap<String, u32>) -> Vec<(u32, String)> {
    let mut all: Vec<(u32, String)> = vocabulary.into_iter().map(|(text, id)| (id, text)).collect();
    all.sort();
    all
}
