//! The tokens of a part of a text that holds slots: the product of its automaton over bytes with the tokenizer.
//!
//! The pre-tokenizer cuts a text into pieces, and the model tokenises each by itself. Tokens of a whole piece are canonical if the
//! model makes them of it, and tokens within a piece if it makes each two neighbours of their own text (Vieira et al., *Language Models
//! over Canonical Byte-Pair Encodings*, ICML 2025; Cognetta and Okazaki, *Tokenization as Finite-State Transduction*, 2024). A token is
//! legal only if an end can still be reached: otherwise Llama's `12` would look legal inside of four decimals, although no tokenisation
//! continues from it. Where pieces end may depend on what follows: two spaces before a digit are cut apart, before the end of a text
//! they are not. So a token is legal if the pieces agree with it for *some* way in which the text may go on; one is tried for each kind
//! of character. Pre-tokenizers know kinds of characters and not characters, so pieces are learned once for all texts of a shape.
//!
//! Added tokens that may stand in the text (bins as tokens) are matched before everything else, as whole strings from the left. There the
//! whole text is encoded, and a state has the last characters behind an added token, as many as the beginning of another one could have.
//!
//! States are built when a text first reaches them: two digits of base 62 have more tokens than could be listed beforehand.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use super::canonical::{Before, CanonicalModel, PieceBorder};
use super::load::Tokenizer;
use super::pieces::{Pieces, ShapeId, Shapes, Surroundings, kind};
use super::spellings::TokenSpellings;
use crate::encoding::language::{Languages, Node, StateId};
use crate::encoding::{Dfa, DfaState};
use crate::error::Result;

/// A state: the tokens that may come next.
#[derive(Debug)]
pub(crate) struct ChunkState {
    /// The number of the state.
    pub number: u32,
    /// Sorted.
    pub ids: Arc<[u32]>,
    /// The state behind each token.
    pub targets: Box<[u32]>,
    /// Whether the part may end here.
    pub ends: bool,
    /// By the tokens with which a text may go on behind the part, those together with `ids`.
    pub(super) with_firsts: Mutex<Vec<[Arc<[u32]>; 2]>>,
}

/// The most lists of tokens behind a state that are kept.
const MOST_FIRSTS: usize = 256;

impl ChunkState {
    /// Returns the tokens that may come next where the part may end, before a text that begins with one of `firsts`. Equal lists of
    /// one processor are shared, so they are compared by address.
    pub(crate) fn ids_or(&self, firsts: &Arc<[u32]>) -> Arc<[u32]> {
        let mut known = self.with_firsts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some([_, all]) = known.iter().find(|[own, _]| Arc::ptr_eq(own, firsts)) {
            return all.clone();
        }
        let all: BTreeSet<u32> = self.ids.iter().chain(&**firsts).copied().collect();
        let all: Arc<[u32]> = all.into_iter().collect();
        if known.len() < MOST_FIRSTS {
            known.push([firsts.clone(), all.clone()]);
        }
        all
    }
}

/// The content of a state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place {
    state: DfaState,
    /// The last token, if its piece may go on: then the next one depends on it.
    last: Option<u32>,
    /// The shape of the text before it, as far back as it may change where the pre-tokenizer cuts.
    shape: ShapeId,
    /// The last characters behind the last added token, if added tokens may stand in the text.
    open: Vec<u8>,
}

/// A path to a place.
#[derive(Debug, Clone, Default)]
struct ProductPath {
    text: String,
    ids: Arc<[u32]>,
}

/// A state as far as it is known.
struct PartialState {
    place: Place,
    way: ProductPath,
    is_alive: Option<bool>,
    built: Option<Arc<ChunkState>>,
}

/// Builds states.
pub(super) struct Explorer<T, S> {
    model: CanonicalModel<T, S>,
    dfa: Dfa,
    around: Surroundings,
    /// The tokens that may stand in the part, with their shapes.
    candidates: Vec<(u32, ShapeId)>,
    going_on: HashMap<DfaState, Arc<[Edges]>>,
    continuations: HashMap<DfaState, Arc<[String]>>,
    pieces: Pieces,
    shapes: Shapes,
    numbers: HashMap<Place, u32>,
    found: Vec<PartialState>,
    /// The length in bytes of the longest added token that may stand in the text; 0 if there is none.
    longest_added: usize,
    /// The tokens of the text before the part, once they are wanted.
    before_ids: Option<Vec<u32>>,
}

/// Tokens of one shape that the language goes on with, and the state behind them. The pre-tokenizer cuts alike before each of them.
struct Edges {
    shape: ShapeId,
    then: DfaState,
    ids: Vec<u32>,
}

/// A piece in which a token may be the last one.
struct LastPiece {
    border: PieceBorder,
    /// The shape of the text from the piece before on, and of [`BEFORE_PIECES`] characters before that.
    shape: ShapeId,
}

/// How many characters before the last two pieces of a text may change where it is cut behind them.
const BEFORE_PIECES: usize = 2;

impl<T: Deref<Target = Tokenizer>, S: Deref<Target = TokenSpellings>> Explorer<T, S> {
    pub(super) fn new(tokenizer: T, spellings: S, dfa: Dfa, around: Surroundings) -> Self {
        let alphabet = dfa.alphabet();
        let may_stand = |bytes: &[u8]| bytes.iter().all(|byte| alphabet.contains(byte));
        // Two line breaks are a token of Gemma's, and no part has two, though it may have one.
        let added = spellings.of_added().filter(|(_, bytes)| dfa.holds(bytes)).map(|(_, bytes)| bytes.len());
        let longest_added = added.max().unwrap_or(0);
        let mut shapes = Shapes::new();
        let mut candidates = Vec::new();
        for (id, bytes) in spellings.all().filter(|token| may_stand(token.1)) {
            let is_known = longest_added > 0 || !(spellings.is_added(id) || spellings.is_unknown(id));
            if let (true, Ok(text)) = (is_known, std::str::from_utf8(bytes)) {
                candidates.push((id, shapes.number(text)));
            }
        }
        let place = Place { state: dfa.start(), last: None, shape: 0, open: Vec::new() };
        let way = ProductPath::default();
        let start = PartialState { place: place.clone(), way, is_alive: None, built: None };
        let (going_on, continuations) = Default::default();
        Explorer {
            model: CanonicalModel::new(tokenizer, spellings),
            dfa,
            around,
            candidates,
            going_on,
            continuations,
            pieces: Pieces::default(),
            shapes,
            numbers: HashMap::from([(place, 0)]),
            found: vec![start],
            longest_added,
            before_ids: None,
        }
    }

    /// Adds a state and those behind it to languages whose strings end so.
    pub(super) fn add_to<E: Copy + Eq + Hash>(
        &mut self,
        number: u32,
        states: &mut Languages<u32, E>,
        end: E,
        known: &mut HashMap<u32, StateId>,
    ) -> Result<StateId> {
        if let Some(known) = known.get(&number) {
            return Ok(*known);
        }
        let here = self.built(number)?;
        let mut edges = Vec::with_capacity(here.ids.len());
        for (id, then) in here.ids.iter().zip(&here.targets) {
            edges.push((*id, self.add_to(*then, states, end, known)?));
        }
        let state = states.intern(Node { edges, end: here.ends.then_some(end) });
        known.insert(number, state);
        Ok(state)
    }

    pub(super) fn built(&mut self, number: u32) -> Result<Arc<ChunkState>> {
        if let Some(built) = &self.found[number as usize].built {
            return Ok(built.clone());
        }
        let mut edges = Vec::new();
        for same in &*self.going_on(self.found[number as usize].place.state) {
            for (id, then) in self.targets(number, same)? {
                if self.is_alive(then)? {
                    edges.push((id, then));
                }
            }
        }
        edges.sort_unstable();
        let ends = self.may_end(number)?;
        let built = ChunkState {
            number,
            ids: edges.iter().map(|edge| edge.0).collect(),
            targets: edges.iter().map(|edge| edge.1).collect(),
            ends,
            with_firsts: Mutex::default(),
        };
        let built = Arc::new(built);
        self.found[number as usize].built = Some(built.clone());
        Ok(built)
    }

    /// Returns whether an end can be reached from a state.
    fn is_alive(&mut self, number: u32) -> Result<bool> {
        if let Some(known) = self.found[number as usize].is_alive {
            return Ok(known);
        }
        let is_alive = self.may_end(number)? || self.goes_on(number)?;
        self.found[number as usize].is_alive = Some(is_alive);
        Ok(is_alive)
    }

    /// Returns whether an end can be reached behind one of the next tokens.
    fn goes_on(&mut self, number: u32) -> Result<bool> {
        for same in &*self.going_on(self.found[number as usize].place.state) {
            for (_, then) in self.targets(number, same)? {
                if self.is_alive(then)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns the tokens that the tokenizer may write behind a state, with the states behind them.
    fn targets(&mut self, number: u32, edges: &Edges) -> Result<Vec<(u32, u32)>> {
        let mut targets = Vec::new();
        let mut pieces = Vec::new();
        for (at, &id) in edges.ids.iter().enumerate() {
            // Tokens of one shape are cut alike, unless the pre-tokenizer reads characters.
            if self.longest_added == 0 && (at == 0 || self.pieces.reads_characters) {
                pieces = self.pieces_behind(number, id, edges)?;
            }
            if let Some(place) = self.place_behind(number, id, edges, &pieces)? {
                targets.push((id, self.number(number, id, place)));
            }
        }
        Ok(targets)
    }

    /// Returns whether the part may end in a state.
    fn may_end(&mut self, number: u32) -> Result<bool> {
        let PartialState { place, way, .. } = &self.found[number as usize];
        let ids = way.ids.clone();
        let Some((&last, before)) = ids.split_last().filter(|_| self.dfa.accepts(place.state)) else {
            return Ok(false);
        };
        if self.longest_added > 0 {
            return Ok(true);
        }
        let whole = format!("{}{}{}", self.around.before, way.text, self.around.after);
        let ends = self.pieces.ends(&self.model.tokenizer, &whole, self.around.adds_space)?;
        let before = Before { ids: before, begins: self.around.before.len() };
        let border = self.model.border(&before, self.model.spellings.bytes(last).len(), &ends);
        Ok(border.is_some_and(|border| self.model.writes(before.ids, last, &border)))
    }

    /// Returns the place behind a token, in one of these pieces; `None` if the tokenizer never writes it there.
    fn place_behind(
        &mut self,
        number: u32,
        id: u32,
        edges: &Edges,
        pieces: &[LastPiece],
    ) -> Result<Option<Place>> {
        let PartialState { place, way, .. } = &self.found[number as usize];
        let (before, shape) = (way.ids.clone(), place.shape);
        if self.longest_added > 0 {
            let (shape, open) = (self.shapes.join(shape, edges.shape), self.open_behind(number, id));
            let place = Place { state: edges.then, last: Some(id), shape, open };
            return Ok(self.is_encoded(number, id, &before)?.then_some(place));
        }
        let last = pieces.iter().find(|last| self.model.writes(&before, id, &last.border));
        Ok(last.map(|LastPiece { border, shape }| Place {
            state: edges.then,
            last: border.is_open.then_some(id),
            shape: *shape,
            open: Vec::new(),
        }))
    }

    /// Returns the number of a place behind a token.
    fn number(&mut self, before: u32, id: u32, place: Place) -> u32 {
        let next = self.found.len() as u32;
        let number = *self.numbers.entry(place.clone()).or_insert(next);
        if number == next {
            let way = &self.found[before as usize].way;
            let text = format!("{}{}", way.text, String::from_utf8_lossy(self.model.spellings.bytes(id)));
            let way = ProductPath { text, ids: [&way.ids[..], &[id]].concat().into() };
            self.found.push(PartialState { place, way, is_alive: None, built: None });
        }
        number
    }

    /// Returns the pieces in which a token may stand behind a state, for each way in which the text may go on; open ones first.
    fn pieces_behind(&mut self, number: u32, id: u32, edges: &Edges) -> Result<Vec<LastPiece>> {
        let mut pieces: Vec<LastPiece> = Vec::new();
        for rest in &*self.continuations(edges.then) {
            let way = &self.found[number as usize].way;
            let token = String::from_utf8_lossy(self.model.spellings.bytes(id));
            let before = Before { ids: &way.ids, begins: self.around.before.len() };
            let whole = format!("{}{}{token}{rest}", self.around.before, way.text);
            let ends = self.pieces.ends(&self.model.tokenizer, &whole, self.around.adds_space)?;
            let Some(border) = self.model.border(&before, token.len(), &ends) else { continue };
            if pieces.iter().any(|known| known.border == border) {
                continue;
            }
            let beside = way.text[..border.from].char_indices().rev().nth(BEFORE_PIECES - 1);
            let shape = self.shapes.number(&way.text[beside.map_or(0, |first| first.0)..]);
            pieces.push(LastPiece { border, shape: self.shapes.join(shape, edges.shape) });
        }
        pieces.sort_by_key(|last| !last.border.is_open);
        Ok(pieces)
    }

    /// Returns whether the encoder writes a token behind a state. Added tokens are matched as whole strings from the left, which pairs
    /// of neighbours do not show, so the whole text is encoded.
    fn is_encoded(&mut self, number: u32, id: u32, ids: &[u32]) -> Result<bool> {
        let before = &self.around.before;
        let before_ids = match &mut self.before_ids {
            Some(known) => known,
            unknown => unknown.insert(self.model.tokenizer.ids(before)?),
        };
        let text = String::from_utf8_lossy(self.model.spellings.bytes(id));
        let way = &self.found[number as usize].way.text;
        let whole = self.model.tokenizer.ids(&format!("{before}{way}{text}"))?;
        let behind = whole.strip_prefix(&before_ids[..]).and_then(|behind| behind.strip_prefix(ids));
        Ok(behind == Some(&[id]))
    }

    /// Returns the characters behind the last added token with which another one could begin.
    fn open_behind(&self, number: u32, id: u32) -> Vec<u8> {
        if self.longest_added == 0 || self.model.spellings.is_added(id) {
            return Vec::new();
        }
        let open = &self.found[number as usize].place.open;
        last_unmatched(open, self.model.spellings.bytes(id), self.longest_added)
    }

    /// Returns the candidates with which the language goes on from a state.
    fn going_on(&mut self, state: DfaState) -> Arc<[Edges]> {
        if let Some(known) = self.going_on.get(&state) {
            return known.clone();
        }
        let mut same: BTreeMap<(ShapeId, DfaState), Vec<u32>> = BTreeMap::new();
        for &(id, shape) in &self.candidates {
            if let Some(then) = self.dfa.run(state, self.model.spellings.bytes(id)) {
                // Where the pre-tokenizer reads characters, each token is cut for itself.
                same.entry((shape, then)).or_default().push(id);
            }
        }
        let edges = same.into_iter().map(|((shape, then), ids)| Edges { shape, then, ids });
        let edges: Arc<[Edges]> = edges.collect();
        self.going_on.insert(state, edges.clone());
        edges
    }

    /// Texts with which the text may go on from a state: one for each kind of character, and the text behind the part.
    fn continuations(&mut self, state: DfaState) -> Arc<[String]> {
        if let Some(known) = self.continuations.get(&state) {
            return known.clone();
        }
        let mut kinds = HashSet::new();
        let mut texts = Vec::new();
        if self.dfa.accepts(state) {
            texts.push(self.around.after.clone());
        }
        for byte in self.dfa.bytes(state).filter(|byte| kinds.insert(kind(*byte))) {
            // Always found, because the byte goes on.
            let Some(next) = self.dfa.next(state, byte) else { continue };
            let rest = [&[byte], &self.dfa.completion(next)[..]].concat();
            texts.push(format!("{}{}", String::from_utf8_lossy(&rest), self.around.after));
        }
        let texts: Arc<[String]> = texts.into();
        self.continuations.insert(state, texts.clone());
        texts
    }
}

/// Returns the last bytes of a text and a token behind it with which an added token could begin, by the length of the longest one.
pub(super) fn last_unmatched(text: &[u8], token: &[u8], longest_added: usize) -> Vec<u8> {
    let mut all = [text, token].concat();
    // One less than the longest: more would already have been matched as a whole.
    let kept = all.len().min(longest_added - 1);
    all.split_off(all.len() - kept)
}
