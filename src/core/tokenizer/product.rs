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

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

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
    /// The shape of the text so far.
    shape: ShapeId,
    /// The last characters behind the last added token, if added tokens may stand in the text.
    open: Vec<u8>,
}

/// Whether the last piece of a text ends with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Open,
    Closed,
}

/// A path to a place.
#[derive(Debug, Clone, Default)]
struct ProductPath {
    text: String,
    ids: Vec<u32>,
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
    tokenizer: T,
    spellings: S,
    dfa: Dfa,
    around: Surroundings,
    /// The tokens that may stand in the part, with their shapes.
    candidates: Vec<(u32, ShapeId)>,
    going_on: HashMap<DfaState, Arc<[Edge]>>,
    continuations: HashMap<DfaState, Arc<[String]>>,
    pieces: Pieces,
    /// Whether the model makes tokens of their text.
    made: HashMap<Box<[u32]>, bool>,
    shapes: Shapes,
    /// Where the text is cut: by state, shape of the next token, state of the language behind it, and continuation.
    cuts: HashMap<(u32, ShapeId, DfaState, usize), Arc<[usize]>>,
    numbers: HashMap<Place, u32>,
    found: Vec<PartialState>,
    /// The length in bytes of the longest added token that may stand in the text; 0 if there is none.
    longest_added: usize,
    /// The tokens of the text before the part, once they are wanted.
    before_ids: Option<Vec<u32>>,
}

/// A token that the language goes on with, and the state behind it.
#[derive(Clone, Copy)]
struct Edge {
    id: u32,
    shape: ShapeId,
    then: DfaState,
}

impl<T: Deref<Target = Tokenizer>, S: Deref<Target = TokenSpellings>> Explorer<T, S> {
    pub(super) fn new(tokenizer: T, spellings: S, dfa: Dfa, around: Surroundings) -> Self {
        let alphabet = dfa.alphabet();
        let may_stand = |bytes: &[u8]| bytes.iter().all(|byte| alphabet.contains(byte));
        // Two line breaks are a token of Gemma's, and no part has two.
        let holds = |bytes: &[u8]| (0..dfa.len() as DfaState).any(|state| dfa.run(state, bytes).is_some());
        let added = spellings.of_added().filter(|(_, bytes)| may_stand(bytes) && holds(bytes));
        let added = added.map(|(_, bytes)| bytes.len());
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
        let (going_on, continuations, made, cuts) = Default::default();
        Explorer {
            tokenizer,
            spellings,
            dfa,
            around,
            candidates,
            going_on,
            continuations,
            pieces: Pieces::default(),
            made,
            shapes,
            cuts,
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
        let (mut ids, mut targets) = (Vec::new(), Vec::new());
        for &edge in &*self.going_on(self.found[number as usize].place.state) {
            let Some(then) = self.follow(number, edge)? else { continue };
            if self.is_alive(then)? {
                ids.push(edge.id);
                targets.push(then);
            }
        }
        let ends = self.may_end(number)?;
        let built = ChunkState {
            number,
            ids: ids.into(),
            targets: targets.into(),
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
        let mut is_alive = self.may_end(number)?;
        let edges = self.going_on(self.found[number as usize].place.state);
        let mut edges = edges.iter();
        while let Some(edge) = edges.next().filter(|_| !is_alive) {
            if let Some(then) = self.follow(number, *edge)? {
                is_alive = self.is_alive(then)?;
            }
        }
        self.found[number as usize].is_alive = Some(is_alive);
        Ok(is_alive)
    }

    /// Returns whether the part may end in a state.
    fn may_end(&mut self, number: u32) -> Result<bool> {
        let PartialState { place, way, .. } = &self.found[number as usize];
        if !self.dfa.accepts(place.state) || way.ids.is_empty() {
            return Ok(false);
        }
        if self.longest_added > 0 {
            return Ok(true);
        }
        let ids = way.ids.clone();
        let whole = format!("{}{}{}", self.around.before, way.text, self.around.after);
        let ends = self.pieces.ends(&self.tokenizer, &whole, self.around.adds_space)?;
        Ok(self.canonical(&ids, &ends).is_some())
    }

    /// Returns the state behind a token; `None` if the tokenizer never writes it there.
    fn follow(&mut self, number: u32, edge: Edge) -> Result<Option<u32>> {
        let ids = [&self.found[number as usize].way.ids[..], &[edge.id]].concat();
        let piece = match self.longest_added {
            0 => self.piece_behind(number, edge, &ids)?,
            _ => self.is_encoded(number, edge, &ids)?.then_some(Piece::Open),
        };
        let Some(piece) = piece else { return Ok(None) };
        let last = (piece == Piece::Open).then_some(edge.id);
        let open = self.open_behind(number, edge.id);
        let before = &self.found[number as usize];
        let shape = self.shapes.join(before.place.shape, edge.shape);
        let place = Place { state: edge.then, last, shape, open };
        let next = self.found.len() as u32;
        let then = *self.numbers.entry(place.clone()).or_insert(next);
        if then == next {
            let text = String::from_utf8_lossy(self.spellings.bytes(edge.id));
            let way = ProductPath { text: format!("{}{text}", before.way.text), ids };
            self.found.push(PartialState { place, way, is_alive: None, built: None });
        }
        Ok(Some(then))
    }

    /// Returns whether a piece ends with a token behind a state, for some way in which the text may go on; `None` if the tokenizer never
    /// writes it there.
    fn piece_behind(&mut self, number: u32, edge: Edge, ids: &[u32]) -> Result<Option<Piece>> {
        let mut found = None;
        for (at, rest) in self.continuations(edge.then).iter().enumerate() {
            let ends = self.cut_behind(number, edge, at, rest)?;
            match self.canonical(ids, &ends) {
                Some(Piece::Open) => return Ok(Some(Piece::Open)),
                closed => found = found.or(closed),
            }
        }
        Ok(found)
    }

    /// Returns whether the encoder writes a token behind a state. Added tokens are matched as whole strings from the left, which pairs
    /// of neighbours do not show, so the whole text is encoded.
    fn is_encoded(&mut self, number: u32, edge: Edge, ids: &[u32]) -> Result<bool> {
        let before = &self.around.before;
        let before_ids = match &mut self.before_ids {
            Some(known) => known,
            unknown => unknown.insert(self.tokenizer.ids(before)?),
        };
        let text = String::from_utf8_lossy(self.spellings.bytes(edge.id));
        let way = &self.found[number as usize].way.text;
        let whole = self.tokenizer.ids(&format!("{before}{way}{text}"))?;
        Ok(whole.strip_prefix(&before_ids[..]) == Some(ids))
    }

    /// Returns the characters behind the last added token with which another one could begin.
    fn open_behind(&self, number: u32, id: u32) -> Vec<u8> {
        if self.longest_added == 0 || self.spellings.is_added(id) {
            return Vec::new();
        }
        let open = &self.found[number as usize].place.open;
        last_unmatched(open, self.spellings.bytes(id), self.longest_added)
    }

    /// Returns where the text is cut if a token follows a state, and then a continuation. Tokens of one shape are cut alike.
    fn cut_behind(&mut self, number: u32, edge: Edge, at: usize, rest: &str) -> Result<Arc<[usize]>> {
        let key = (number, edge.shape, edge.then, at);
        if let Some(known) = self.cuts.get(&key).filter(|_| !self.pieces.reads_characters) {
            return Ok(known.clone());
        }
        let text = String::from_utf8_lossy(self.spellings.bytes(edge.id));
        let whole = format!("{}{}{text}{rest}", self.around.before, self.found[number as usize].way.text);
        let ends = self.pieces.ends(&self.tokenizer, &whole, self.around.adds_space)?;
        self.cuts.insert(key, ends.clone());
        Ok(ends)
    }

    /// Returns the candidates with which the language goes on from a state.
    fn going_on(&mut self, state: DfaState) -> Arc<[Edge]> {
        if let Some(known) = self.going_on.get(&state) {
            return known.clone();
        }
        let mut edges = Vec::new();
        for &(id, shape) in &self.candidates {
            let then = self.dfa.run(state, self.spellings.bytes(id));
            edges.extend(then.map(|then| Edge { id, shape, then }));
        }
        let edges: Arc<[Edge]> = edges.into();
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

    /// Returns whether the tokenizer writes these tokens in a text that is cut so, and if so, whether a piece ends with them.
    fn canonical(&mut self, ids: &[u32], ends: &[usize]) -> Option<Piece> {
        let begins = self.around.before.len();
        let mut ends = ends.iter().copied().skip_while(|end| *end <= begins).peekable();
        // A piece that began before the part is independent of it, because no token crosses that border.
        let (mut at, mut first) = (begins, 0);
        for (index, id) in ids.iter().enumerate() {
            at += self.spellings.bytes(*id).len();
            match ends.peek() {
                Some(end) if *end < at => return None,
                Some(end) if *end == at => {
                    if !self.makes(&ids[first..=index]) {
                        return None;
                    }
                    ends.next();
                    first = index + 1;
                }
                _ => {}
            }
        }
        let are_made = match &ids[first..] {
            [] => return Some(Piece::Closed),
            [one] => self.makes(&[*one]),
            open => open.windows(2).all(|pair| self.makes(pair)),
        };
        are_made.then_some(Piece::Open)
    }

    /// Returns whether the model makes these tokens of their text.
    fn makes(&mut self, ids: &[u32]) -> bool {
        if let Some(known) = self.made.get(ids) {
            return *known;
        }
        let piece: String = ids.iter().map(|id| self.spellings.piece(*id)).collect();
        let made = self.tokenizer.model_ids(&piece).is_some_and(|made| made == ids);
        self.made.insert(ids.into(), made);
        made
    }
}

/// Returns the last bytes of a text and a token behind it with which an added token could begin, by the length of the longest one.
pub(super) fn last_unmatched(text: &[u8], token: &[u8], longest_added: usize) -> Vec<u8> {
    let mut all = [text, token].concat();
    // One less than the longest: more would already have been matched as a whole.
    let kept = all.len().min(longest_added - 1);
    all.split_off(all.len() - kept)
}
