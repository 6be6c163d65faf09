//! The language of plain slots in tokens: the product of an encoding's automaton over bytes with the tokenizer.
//!
//! Inside of a pre-token a sequence of BPE tokens is what the tokenizer makes of its text if and only if each two neighbours are
//! what it makes of theirs (Vieira et al., *Language Models over Canonical Byte-Pair Encodings*, ICML 2025; Cognetta and Okazaki,
//! *Tokenization as Finite-State Transduction*, 2024). So behind a token there may come one that keeps the text in the language
//! and is encoded so behind it, if some end can still be reached by the same rule: without that, Llama's `12` would look legal
//! inside of four decimals, which no tokenisation leads out of.
//!
//! A pair is asked in its context: behind the text that led to it first, in a slot. A pre-tokenizer may cut between two neighbours that
//! merge elsewhere: Falcon's cuts digits in threes, so `9570` is `957` and `0`, and where `957` is `95` and `7`, `0` stands behind a `7`
//! with which it would merge. There a state also knows how many digits of a group were written. Where added tokens could stand in a slot
//! (bins as tokens), they are matched before everything else, as whole strings from the left, which neighbours do not show. There a
//! state also holds the last characters that belong to no added token, as many as one could begin with.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use super::load::Tokenizer;
use crate::encoding::language::{Languages, Node, StateId};
use crate::encoding::{Dfa, DfaState};
use crate::error::Result;

/// What a state of the product knows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place {
    state: DfaState,
    last: Option<u32>,
    /// The last characters behind the last added token, where there could be one.
    open: Vec<u8>,
    /// How many digits of the last group were written; always 0 where tokens themselves say where groups end.
    digits: usize,
}

/// A way from the start to a place: what is asked of the encoder.
#[derive(Clone, Default)]
struct Way {
    text: String,
    ids: Vec<u32>,
}

/// Builds the states of plain slots.
pub struct SlotProduct<'a> {
    tokenizer: &'a Tokenizer,
    /// What stands before the inside of a slot, and its ids.
    before: (String, Vec<u32>),
    /// Tokens that hold nothing but bytes of the language.
    candidates: Vec<(u32, String)>,
    /// Those that were added, by id, and the characters of the longest.
    added: HashMap<u32, usize>,
    longest_added: usize,
    /// How many digits the pre-tokenizer puts in one piece, where states have to count them.
    group: Option<usize>,
    pairs: HashMap<(Option<u32>, u32, usize), bool>,
    known: HashMap<Place, Option<StateId>>,
}

impl<'a> SlotProduct<'a> {
    /// Products of the inside of slots that `before` opens, whose strings hold bytes of this alphabet alone.
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
            .map(|(text, id)| (id, Tokenizer::spelled(text)))
            .filter(|(_, text)| may_stand(text))
            .collect();
        // The numbers of states must not depend on the order of a hash map.
        candidates.sort();
        let longest_added = added.values().copied().max().unwrap_or(0);
        let before = (before.to_owned(), tokenizer.ids(before)?);
        let group = digit_group(tokenizer)?;
        let (pairs, known) = (HashMap::new(), HashMap::new());
        Ok(SlotProduct { tokenizer, before, candidates, added, longest_added, group, pairs, known })
    }

    /// The state where slots of these strings begin, which end so; none if no tokenisation leads through one. What was learned of pairs of
    /// tokens is kept for the next strings.
    ///
    /// # Errors
    /// If the tokenizer cannot encode a text.
    pub fn start<E: Copy + Eq + Hash>(
        &mut self,
        dfa: &Dfa,
        states: &mut Languages<u32, E>,
        end: E,
    ) -> Result<Option<StateId>> {
        // Ids of another call are of its states, and of slots that end as it was asked.
        self.known.clear();
        let place = Place { state: dfa.start(), last: None, open: Vec::new(), digits: 0 };
        self.state(dfa, states, end, place, &Way::default())
    }

    fn state<E: Copy + Eq + Hash>(
        &mut self,
        dfa: &Dfa,
        states: &mut Languages<u32, E>,
        slot_end: E,
        place: Place,
        way: &Way,
    ) -> Result<Option<StateId>> {
        if let Some(known) = self.known.get(&place) {
            return Ok(*known);
        }
        let goes_on: Vec<(usize, DfaState)> = (0..self.candidates.len())
            .filter_map(|at| Some((at, dfa.run(place.state, self.candidates[at].1.as_bytes())?)))
            .collect();
        let mut edges = Vec::new();
        for (at, state) in goes_on {
            let id = self.candidates[at].0;
            if !self.follows(&place, way, at)? {
                continue;
            }
            let text = &self.candidates[at].1;
            let next = Way { text: format!("{}{text}", way.text), ids: [&way.ids[..], &[id]].concat() };
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

    /// The characters behind the last added token that one could begin with.
    fn open_behind(&self, place: &Place, id: u32, text: &str) -> Vec<u8> {
        if self.longest_added == 0 || self.added.contains_key(&id) {
            return Vec::new();
        }
        let mut open = place.open.clone();
        open.extend_from_slice(text.as_bytes());
        // One less than the longest: as many would have been matched as a whole.
        let kept = open.len().min(self.longest_added - 1);
        open.split_off(open.len() - kept)
    }

    /// The digits of the last group behind a token.
    fn digits_behind(&self, place: &Place, text: &str) -> usize {
        let Some(group) = self.group else { return 0 };
        let run = text.bytes().rev().take_while(u8::is_ascii_digit).count();
        let before = if run == text.len() { place.digits } else { 0 };
        (before + run) % group
    }

    /// Whether the encoder writes a candidate behind what led to a place.
    fn follows(&mut self, place: &Place, way: &Way, candidate: usize) -> Result<bool> {
        let (id, text) = &self.candidates[candidate];
        let pair = (place.last, *id, place.digits);
        // Neighbours decide, but for added tokens.
        if self.longest_added == 0
            && let Some(known) = self.pairs.get(&pair)
        {
            return Ok(*known);
        }
        // The whole way is encoded, since what stands before may merge.
        let ids = self.tokenizer.ids(&format!("{}{}{text}", self.before.0, way.text))?;
        let behind = ids.strip_prefix(&self.before.1[..]);
        let follows =
            behind.is_some_and(|behind| behind.strip_prefix(&way.ids[..]).is_some_and(|last| last == [*id]));
        self.pairs.insert(pair, follows);
        Ok(follows)
    }
}

/// How many digits, from the left, the pre-tokenizer puts in one piece; none where a piece holds one or all of them, and where every
/// piece is one token, which says itself where it ends (Llama 3's and those of OpenAI).
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
