//! The language of plain slots over tokens, by the encoder: the product of an encoding's automaton over bytes with the tokenizer, for the
//! fit of placeholders. [`super::product`] follows texts by what is known of models and pre-tokenizers. This one asks the encoder behind
//! the text before a slot, so it also finds the shortest strings where a sign merges with the opening of a block, and those of Unigram
//! models that may cut a text in two ways.
//!
//! A token may follow another one if the text stays in the language, the encoder produces it in this place, and an end can still be
//! reached by the same rule; [`super::product`] has the sources of the rule of neighbours.
//!
//! A pair is tried in context: in a slot, behind the text that led to it first. A pre-tokenizer may cut between two neighbours that
//! merge elsewhere: Falcon's cuts digits in threes, so `9570` is `957` and `0`; if `957` is encoded as `95` and `7`, then `0`
//! follows a `7` with which it would merge. For such a pre-tokenizer, a state also stores how many digits of a group were written.
//! Added tokens that could occur in a slot (bins as tokens) are matched before everything else, as whole strings from the left,
//! which pairs of neighbours do not show. For such a tokenizer, a state also stores the last characters behind an added token, as
//! many as the beginning of another one could have.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::rc::Rc;

use super::boundaries::with_white_space;
use super::encoder_shapes::EncoderShapes;
use super::load::Tokenizer;
use super::product::last_unmatched;
use crate::encoding::language::{Languages, Node, StateId};
use crate::encoding::{Dfa, DfaState};
use crate::error::Result;

/// The content of a state of the product.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place {
    state: DfaState,
    last: Option<u32>,
    /// The last characters behind the last added token, if added tokens are possible.
    open: Vec<u8>,
    /// The number of digits in the current group; always 0 if the tokens themselves show where groups end.
    digits: usize,
}

/// A path from the start to a place, on which the encoder is tried.
#[derive(Clone, Default)]
struct SamplePath {
    text: String,
    ids: Vec<u32>,
}

/// Builds the states of plain slots.
pub struct EncoderProduct<'a> {
    /// The encoder, for texts behind the one before the content of a slot.
    shapes: EncoderShapes<'a>,
    /// Tokens that consist only of bytes of the language.
    candidates: Vec<(u32, String)>,
    /// The added tokens among them: by id, their length in bytes. `longest_added` is the largest length.
    added: HashMap<u32, usize>,
    longest_added: usize,
    /// The number of digits in a piece of the pre-tokenizer, if states have to count them.
    group: Option<usize>,
    pairs: HashMap<(Option<u32>, u32, usize), bool>,
    /// By state of the language, the candidates with which it goes on, by index, and the states behind them.
    going_on: HashMap<DfaState, Rc<[(usize, DfaState)]>>,
    known: HashMap<Place, Option<StateId>>,
}

impl<'a> EncoderProduct<'a> {
    /// Returns the product for the content of slots behind the text `before`.
    ///
    /// # Errors
    /// If the tokenizer cannot encode the format's characters.
    pub fn new(tokenizer: &'a Tokenizer, alphabet: &BTreeSet<u8>, before: &str) -> Result<Self> {
        let may_stand = |text: &str| !text.is_empty() && text.bytes().all(|byte| alphabet.contains(&byte));
        let added: HashMap<u32, usize> = tokenizer
            .inner()
            .get_added_tokens_decoder()
            .iter()
            .filter(|(_, token)| may_stand(&token.content))
            .map(|(id, token)| (*id, token.content.len()))
            .collect();
        let mut candidates: Vec<(u32, String)> = tokenizer
            .vocabulary()
            .into_iter()
            .map(|(text, id)| (id, with_white_space(&text)))
            .filter(|(_, text)| may_stand(text))
            .collect();
        // The numbers of states must not depend on the order of a hash map.
        candidates.sort();
        let longest_added = added.values().copied().max().unwrap_or(0);
        let shapes = EncoderShapes::new(tokenizer, before, longest_added == 0)?;
        let group = digit_group(tokenizer)?;
        let (pairs, going_on, known) = Default::default();
        Ok(EncoderProduct { shapes, candidates, added, longest_added, group, pairs, going_on, known })
    }

    /// Returns the state where slots begin; their ends get the value `end`. `None` if no tokenisation leads through a slot.
    ///
    /// # Errors
    /// If the tokenizer cannot encode a text.
    pub fn start<E: Copy + Eq + Hash>(
        &mut self,
        dfa: &Dfa,
        states: &mut Languages<u32, E>,
        end: E,
    ) -> Result<Option<StateId>> {
        // What an earlier call cached belongs to its language, its states and its kind of end.
        self.known.clear();
        self.going_on.clear();
        let place = Place { state: dfa.start(), last: None, open: Vec::new(), digits: 0 };
        self.state(dfa, states, end, place, &SamplePath::default())
    }

    fn state<E: Copy + Eq + Hash>(
        &mut self,
        dfa: &Dfa,
        states: &mut Languages<u32, E>,
        slot_end: E,
        place: Place,
        way: &SamplePath,
    ) -> Result<Option<StateId>> {
        if let Some(known) = self.known.get(&place) {
            return Ok(*known);
        }
        let mut edges = Vec::new();
        for &(at, state) in &*self.going_on(dfa, place.state) {
            let id = self.candidates[at].0;
            if !self.follows(&place, way, at)? {
                continue;
            }
            let text = &self.candidates[at].1;
            let next =
                SamplePath { text: format!("{}{text}", way.text), ids: [&way.ids[..], &[id]].concat() };
            let (open, digits) = (self.open_behind(&place, id, text), self.digits_behind(&place, text));
            let then = Place { state, last: Some(id), open, digits };
            if let Some(then) = self.state(dfa, states, slot_end, then, &next)? {
                edges.push((id, then));
            }
        }
        edges.sort_unstable();
        let end = dfa.accepts(place.state).then_some(slot_end);
        let made = (end.is_some() || !edges.is_empty()).then(|| states.intern(Node { edges, end }));
        self.known.insert(place, made);
        Ok(made)
    }

    /// Returns the candidates with which the language goes on from a state. Many places share a state.
    fn going_on(&mut self, dfa: &Dfa, state: DfaState) -> Rc<[(usize, DfaState)]> {
        let candidates = self.candidates.iter().enumerate();
        let behind = candidates.filter_map(|(at, (_, text))| Some((at, dfa.run(state, text.as_bytes())?)));
        self.going_on.entry(state).or_insert_with(|| behind.collect()).clone()
    }

    /// Returns the characters behind the last added token with which another one could begin.
    fn open_behind(&self, place: &Place, id: u32, text: &str) -> Vec<u8> {
        if self.longest_added == 0 || self.added.contains_key(&id) {
            return Vec::new();
        }
        last_unmatched(&place.open, text.as_bytes(), self.longest_added)
    }

    /// Returns the number of digits in the current group behind a token.
    fn digits_behind(&self, place: &Place, text: &str) -> usize {
        let Some(group) = self.group else { return 0 };
        let run = text.bytes().rev().take_while(u8::is_ascii_digit).count();
        let before = if run == text.len() { place.digits } else { 0 };
        (before + run) % group
    }

    /// Returns whether the encoder produces a candidate behind the path to a place.
    fn follows(&mut self, place: &Place, way: &SamplePath, candidate: usize) -> Result<bool> {
        let (id, text) = &self.candidates[candidate];
        let pair = (place.last, *id, place.digits);
        // The pair of neighbours decides, unless added tokens are possible.
        if self.longest_added == 0
            && let Some(known) = self.pairs.get(&pair)
        {
            return Ok(*known);
        }
        // The whole path is encoded, because the text before may merge.
        let follows = self.shapes.ends_in(&format!("{}{text}", way.text), &way.ids, *id, text.len())?;
        self.pairs.insert(pair, follows);
        Ok(follows)
    }
}

/// Returns the number of digits that the pre-tokenizer puts into one piece, counted from the left. `None` if a piece holds one digit or
/// all of them, or if every piece is a single token, so that tokens show where pieces end (Llama 3's and those of OpenAI).
fn digit_group(tokenizer: &Tokenizer) -> Result<Option<usize>> {
    let pieces = tokenizer.pre_tokens(".01234567890123")?;
    let is_digits = |piece: &&String| piece.bytes().all(|byte| byte.is_ascii_digit());
    let lengths: Vec<usize> = pieces.iter().filter(is_digits).map(String::len).collect();
    let [group, middle @ .., last] = lengths.as_slice() else { return Ok(None) };
    if *group < 2 || last > group || middle.iter().any(|length| length != group) {
        return Ok(None);
    }
    let is_one_token =
        |number: usize| tokenizer.model_ids(&format!("{number:0group$}")).is_some_and(|ids| ids.len() == 1);
    // No vocabulary has all numbers of five digits.
    let is_told_by_tokens = *group < 5 && (0..10_usize.pow(*group as u32)).all(is_one_token);
    Ok((!is_told_by_tokens).then_some(*group))
}
