//! The tokens of a part with slots under a Unigram model. It takes the segmentation with the highest sum of scores, which pairs of
//! neighbours do not show. But a text falls apart between two characters that no token joins. So the part is cut there into factors,
//! and the model is asked for the tokens of each, which must be decided ([`Scores`]).

use std::collections::HashMap;
use std::hash::Hash;

use super::boundaries::TokenBoundaries;
use super::load::Tokenizer;
use super::scores::Scores;
use super::spellings::TokenSpellings;
use crate::encoding::language::{Languages, Path, StateId};
use crate::encoding::{Dfa, DfaState};

/// The most factors whose tokens are asked for.
const MOST_FACTORS: usize = 200_000;

/// Where a factor begins: a state of the language, and the byte before it.
type Cut = (DfaState, Option<u8>);

/// Finds the tokens of the texts of a part.
pub(super) struct Factors<'f> {
    tokenizer: &'f Tokenizer,
    spellings: &'f TokenSpellings,
    scores: &'f Scores,
    boundaries: &'f TokenBoundaries,
    dfa: &'f Dfa,
    known: HashMap<Cut, StateId>,
    tokens: HashMap<Vec<u8>, Vec<u32>>,
}

impl<'f> Factors<'f> {
    pub(super) fn new(
        tokenizer: &'f Tokenizer,
        spellings: &'f TokenSpellings,
        scores: &'f Scores,
        boundaries: &'f TokenBoundaries,
        dfa: &'f Dfa,
    ) -> Self {
        let (known, tokens) = Default::default();
        Factors { tokenizer, spellings, scores, boundaries, dfa, known, tokens }
    }

    /// Returns the state before the texts, which end so.
    ///
    /// # Errors
    /// A sentence, if there are too many factors, or one is not decided.
    pub(super) fn start<E: Copy + Eq + Hash>(
        &mut self,
        languages: &mut Languages<u32, E>,
        end: E,
    ) -> Result<StateId, String> {
        self.behind((self.dfa.start(), None), languages, end)
    }

    /// Returns the state behind a cut. Texts are finite, and each factor writes on.
    fn behind<E: Copy + Eq + Hash>(
        &mut self,
        cut: Cut,
        languages: &mut Languages<u32, E>,
        end: E,
    ) -> Result<StateId, String> {
        if let Some(known) = self.known.get(&cut) {
            return Ok(*known);
        }
        let (dfa, boundaries) = (self.dfa, self.boundaries);
        let mut paths: Vec<Path<u32>> = Vec::new();
        let mut waiting = vec![(cut.0, Vec::new())];
        while let Some((state, text)) = waiting.pop() {
            let last = text.last().copied();
            let mut ends = dfa.accepts(state);
            for byte in dfa.bytes(state) {
                let joins = |last: Option<u8>| last.is_none_or(|last| boundaries.joins(last, byte));
                match (last, cut.1) {
                    // The byte before the cut, which nothing joins.
                    (None, before) if before.is_some() && joins(before) => continue,
                    (Some(_), _) if !joins(last) => {
                        ends = true;
                        continue;
                    }
                    _ => {}
                }
                // Always found, because the byte goes on.
                let Some(then) = dfa.next(state, byte) else { continue };
                waiting.push((then, [&text[..], &[byte]].concat()));
            }
            if ends && last.is_some() {
                let tokens = self.tokens(&text)?;
                paths.push((tokens, self.behind((state, last), languages, end)?));
            }
        }
        let ends = dfa.accepts(cut.0) && cut.1.is_some();
        if ends {
            paths.push((Vec::new(), languages.end(end)));
        }
        // All texts have the same kind of end, so there is no conflict.
        let state = languages.trie(paths).unwrap_or_default();
        self.known.insert(cut, state);
        Ok(state)
    }

    /// Returns the tokens of a factor.
    fn tokens(&mut self, factor: &[u8]) -> Result<Vec<u32>, String> {
        if let Some(known) = self.tokens.get(factor) {
            return Ok(known.clone());
        }
        if self.tokens.len() >= MOST_FACTORS {
            return Err(
                "its tokens join the characters of slots in too many ways for a Unigram model".to_owned()
            );
        }
        let text = String::from_utf8_lossy(factor);
        let ids = self.spellings.model_tokens(self.tokenizer, &text);
        let ids = ids.ok_or_else(|| format!("it has no token for a part of `{}`", text.escape_debug()))?;
        if !self.scores.decide_piece(&text) {
            return Err(format!("two ways to cut `{}` are equally likely", text.escape_debug()));
        }
        self.tokens.insert(factor.to_vec(), ids.clone());
        Ok(ids)
    }
}
