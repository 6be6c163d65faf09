//! The tokens of a part of a text that holds slots: built when a text first reaches them, or listed.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use tokenizers::{Model, ModelWrapper};

use super::boundaries::TokenBoundaries;
use super::factors::Factors;
use super::load::Tokenizer;
use super::pieces::{Surroundings, turned};
use super::product::{ChunkState, Explorer};
use super::scores::Scores;
use super::spellings::TokenSpellings;
use crate::encoding::language::{Languages, StateId};
use crate::encoding::{Dfa, DfaState};
use crate::error::Result;

/// The tokens of a part.
pub(crate) struct Chunk {
    states: ChunkStates,
}

/// The states of a part.
enum ChunkStates {
    /// Built when they are first reached.
    Explored(Box<Mutex<Explorer<Arc<Tokenizer>, Arc<TokenSpellings>>>>),
    /// All of them.
    Listed(Vec<Arc<ChunkState>>),
}

impl Chunk {
    /// Returns the part with this language.
    ///
    /// # Errors
    /// A sentence, if an added token may stand in it beside white space: such tokens are matched before the model runs. Or if a word of a
    /// list of words may: it is cut otherwise than other texts of its shape. Or if a token may be a part of a character.
    pub(crate) fn new(
        tokenizer: &Arc<Tokenizer>,
        spellings: &Arc<TokenSpellings>,
        dfa: Dfa,
        around: Surroundings,
    ) -> Result<Self, String> {
        if let Some(added) = added_in(spellings, &dfa)
            && (around.adds_space || dfa.alphabet().iter().any(u8::is_ascii_whitespace))
        {
            return Err(format!("{} beside white space", may_stand(&added)));
        }
        if let Some(word) = undecided_word(tokenizer, spellings, &dfa) {
            let word = String::from_utf8_lossy(word);
            return Err(format!("its word `{}` may stand in a slot that has no words", word.escape_debug()));
        }
        if let Some(text) = split_character(tokenizer, spellings, &dfa) {
            return Err(format!(
                "its tokens are parts of the characters of `{text}`, which may stand in a slot"
            ));
        }
        let explorer = Explorer::new(tokenizer.clone(), spellings.clone(), dfa, around);
        Ok(Chunk { states: ChunkStates::Explored(Box::new(Mutex::new(explorer))) })
    }

    /// Returns the part with this language for a Unigram model.
    ///
    /// # Errors
    /// A sentence, if its tokens are not decided, or as [`Chunk::new`].
    pub(crate) fn of_unigram(
        tokenizer: &Tokenizer,
        spellings: &TokenSpellings,
        scores: &Scores,
        boundaries: &TokenBoundaries,
        dfa: &Dfa,
    ) -> Result<Self, String> {
        if let Some(added) = added_in(spellings, dfa) {
            return Err(may_stand(&added));
        }
        let mut languages = Languages::default();
        let start = Factors::new(tokenizer, spellings, scores, boundaries, dfa).start(&mut languages, ())?;
        Ok(Chunk::listed(&languages, start))
    }

    /// Returns the part with these token sequences.
    pub(crate) fn listed<E: Copy + Eq + Hash>(languages: &Languages<u32, E>, root: StateId) -> Self {
        let order = languages.reachable(root);
        let numbers: HashMap<StateId, u32> = order.iter().copied().zip(0..).collect();
        let states = order.iter().zip(0..).map(|(id, number)| {
            let node = languages.node(*id);
            Arc::new(ChunkState {
                number,
                ids: node.edges.iter().map(|edge| edge.0).collect(),
                targets: node.edges.iter().map(|edge| numbers[&edge.1]).collect(),
                ends: node.end.is_some(),
                with_firsts: Mutex::default(),
            })
        });
        Chunk { states: ChunkStates::Listed(states.collect()) }
    }

    /// Returns a state; the first one is 0.
    ///
    /// # Errors
    /// If the tokenizer refuses a text.
    pub(crate) fn state(&self, number: u32) -> Result<Arc<ChunkState>> {
        match &self.states {
            // A lock is poisoned only if another thread panicked; what it had found is complete.
            ChunkStates::Explored(explorer) => {
                explorer.lock().unwrap_or_else(PoisonError::into_inner).built(number)
            }
            ChunkStates::Listed(states) => Ok(states[number as usize].clone()),
        }
    }

    /// Returns the state behind a token; `None` if the part does not go on with it.
    ///
    /// # Errors
    /// As [`Chunk::state`].
    pub(crate) fn behind(&self, state: &ChunkState, token: u32) -> Result<Option<Arc<ChunkState>>> {
        let at = state.ids.binary_search(&token).ok();
        at.map(|at| self.state(state.targets[at])).transpose()
    }
}

/// Returns a word of several characters that may stand where another text of its shape may stand, too, which is no word.
fn undecided_word<'s>(tokenizer: &Tokenizer, spellings: &'s TokenSpellings, dfa: &Dfa) -> Option<&'s [u8]> {
    let model = tokenizer.inner().get_model();
    if !matches!(model, ModelWrapper::WordLevel(_)) {
        return None;
    }
    let words = spellings.all().filter(|(id, word)| word.len() > 1 && !spellings.is_added(*id));
    let mut undecided = words.map(|(_, word)| word).filter(|word| {
        let other = turned(&String::from_utf8_lossy(word));
        let both = [word, other.as_bytes()];
        model.token_to_id(&other).is_none()
            && (0..dfa.len() as DfaState).any(|state| both.iter().all(|text| dfa.run(state, text).is_some()))
    });
    undecided.next()
}

/// Returns an added token that may stand in texts. Such tokens are matched before the model runs.
fn added_in(spellings: &TokenSpellings, dfa: &Dfa) -> Option<String> {
    let (_, bytes) = spellings.of_added().find(|(_, bytes)| !bytes.is_empty() && dfa.holds(bytes))?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

fn may_stand(added: &str) -> String {
    format!("its added token `{}` may stand in a slot", added.escape_debug())
}

/// Returns a character that may stand in texts, perhaps behind a space, and whose tokens are parts of characters. States are texts, so
/// that none stands behind such a token.
fn split_character(tokenizer: &Tokenizer, spellings: &TokenSpellings, dfa: &Dfa) -> Option<String> {
    let characters = dfa.characters().into_iter().filter(|c| !c.is_ascii());
    let mut texts = characters.flat_map(|c| [format!("{c}"), format!(" {c}")]);
    texts.find(|text| dfa.holds(text.as_bytes()) && is_split(tokenizer, spellings, text))
}

/// Returns whether some token of a text is not whole characters.
fn is_split(tokenizer: &Tokenizer, spellings: &TokenSpellings, text: &str) -> bool {
    let is_whole = |id: &u32| std::str::from_utf8(spellings.bytes(*id)).is_ok();
    tokenizer.ids(text).is_ok_and(|ids| !ids.iter().all(is_whole))
}
