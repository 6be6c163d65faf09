//! The tokens of a part of a text that holds slots: the product of its automaton over bytes with the tokenizer.
//!
//! The pre-tokenizer cuts a text into pieces, and the model tokenises each by itself. Tokens of a whole piece are canonical if the
//! model makes them of it, and tokens within a piece if it makes each two neighbours of their own text
//! ([`crate::tokenizer::SlotProduct`] has the sources). Where pieces end may depend on what follows: two spaces before a digit are
//! cut apart, before the end of a text they are not. So a token is legal if the pieces agree with it for *some* way in which the text
//! may go on; one is tried for each kind of character. Pre-tokenizers know kinds of characters and not characters, so pieces are
//! learned once for all texts of a shape.
//!
//! States are built when a text first reaches them: two digits of base 62 have more tokens than could be listed beforehand.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use crate::encoding::{Dfa, DfaState};
use crate::error::Result;
use crate::tokenizer::{TokenSpellings, Tokenizer};

/// The text around a part, as far as it may change where the pre-tokenizer cuts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Around {
    /// The text before it.
    pub before: String,
    /// The text behind it.
    pub after: String,
    /// Whether the part begins with the space that the tokenizer adds before a text.
    pub adds_space: bool,
}

/// A state: the tokens that may come next.
#[derive(Debug)]
pub(super) struct ChunkState {
    /// Sorted.
    pub ids: Arc<[u32]>,
    /// The state behind each token.
    pub targets: Box<[u32]>,
    /// Whether the part may end here.
    pub ends: bool,
}

impl Around {
    /// What of it the pre-tokenizer may read: the kinds of the characters beside the part.
    pub(super) fn kinds(&self) -> Self {
        let before = shape(&self.before);
        let from = before.char_indices().rev().nth(BESIDE - 1).map_or(0, |last| last.0);
        let after = shape(&self.after).chars().take(BESIDE).collect();
        Around { before: before[from..].to_owned(), after, adds_space: self.adds_space }
    }
}

/// How many characters beside a part may change where it is cut.
const BESIDE: usize = 8;

/// The tokens of a part.
pub(super) struct Chunk {
    explorer: Mutex<Explorer>,
}

/// The content of a state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place {
    state: DfaState,
    last: Option<u32>,
    /// The shape of the text so far.
    shape: Box<str>,
}

/// A path to a place.
#[derive(Debug, Clone, Default)]
struct Way {
    text: String,
    ids: Vec<u32>,
}

/// A state as far as it is known.
struct Found {
    state: DfaState,
    way: Way,
    is_alive: Option<bool>,
    built: Option<Arc<ChunkState>>,
}

/// Builds states.
struct Explorer {
    tokenizer: Arc<Tokenizer>,
    spellings: Arc<TokenSpellings>,
    dfa: Dfa,
    around: Around,
    /// The tokens that may stand in the part.
    candidates: Vec<u32>,
    going_on: HashMap<DfaState, Arc<[Edge]>>,
    continuations: HashMap<DfaState, Arc<[String]>>,
    pieces: Pieces,
    canonical: HashMap<Box<[u32]>, bool>,
    numbers: HashMap<Place, u32>,
    found: Vec<Found>,
}

/// A token that the language goes on with, and the state behind it.
#[derive(Clone, Copy)]
struct Edge {
    id: u32,
    then: DfaState,
}

impl Chunk {
    /// The part with this language.
    ///
    /// # Errors
    /// A sentence, if an added token may stand in it: such tokens are matched before the model runs.
    pub(super) fn new(
        tokenizer: &Arc<Tokenizer>,
        spellings: &Arc<TokenSpellings>,
        dfa: Dfa,
        around: Around,
    ) -> Result<Self, String> {
        let states = 0..dfa.len() as DfaState;
        for (_, bytes) in spellings.of_added() {
            if !bytes.is_empty() && states.clone().any(|state| dfa.run(state, bytes).is_some()) {
                let shown = String::from_utf8_lossy(bytes);
                return Err(format!("its added token `{}` may stand in a slot", shown.escape_debug()));
            }
        }
        let alphabet = dfa.alphabet();
        let fits = |bytes: &[u8]| bytes.iter().all(|byte| alphabet.contains(byte));
        let candidates = spellings.of_model().filter(|(_, bytes)| fits(bytes)).map(|(id, _)| id).collect();
        let way = Way::default();
        let place = Place { state: dfa.start(), last: None, shape: Box::default() };
        let start = Found { state: dfa.start(), way, is_alive: None, built: None };
        let explorer = Explorer {
            tokenizer: tokenizer.clone(),
            spellings: spellings.clone(),
            dfa,
            around,
            candidates,
            going_on: HashMap::new(),
            continuations: HashMap::new(),
            pieces: Pieces::default(),
            canonical: HashMap::new(),
            numbers: HashMap::from([(place, 0)]),
            found: vec![start],
        };
        Ok(Chunk { explorer: Mutex::new(explorer) })
    }

    /// A state; the first one is 0.
    ///
    /// # Errors
    /// If the tokenizer refuses a text.
    pub(super) fn state(&self, number: u32) -> Result<Arc<ChunkState>> {
        // A lock is poisoned only if another thread panicked; what it had found is complete.
        self.explorer.lock().unwrap_or_else(PoisonError::into_inner).built(number)
    }
}

impl Explorer {
    fn built(&mut self, number: u32) -> Result<Arc<ChunkState>> {
        if let Some(built) = &self.found[number as usize].built {
            return Ok(built.clone());
        }
        let (mut ids, mut targets) = (Vec::new(), Vec::new());
        for &edge in &*self.going_on(self.found[number as usize].state) {
            let Some(then) = self.follow(number, edge)? else { continue };
            if self.is_alive(then)? {
                ids.push(edge.id);
                targets.push(then);
            }
        }
        let ends = self.may_end(number)?;
        let built = Arc::new(ChunkState { ids: ids.into(), targets: targets.into(), ends });
        self.found[number as usize].built = Some(built.clone());
        Ok(built)
    }

    /// Whether an end can be reached from a state.
    fn is_alive(&mut self, number: u32) -> Result<bool> {
        if let Some(known) = self.found[number as usize].is_alive {
            return Ok(known);
        }
        let mut is_alive = self.may_end(number)?;
        let edges = self.going_on(self.found[number as usize].state);
        let mut edges = edges.iter();
        while let Some(edge) = edges.next().filter(|_| !is_alive) {
            if let Some(then) = self.follow(number, *edge)? {
                is_alive = self.is_alive(then)?;
            }
        }
        self.found[number as usize].is_alive = Some(is_alive);
        Ok(is_alive)
    }

    /// Whether the part may end in a state.
    fn may_end(&mut self, number: u32) -> Result<bool> {
        let Found { state, way, .. } = &self.found[number as usize];
        if !self.dfa.accepts(*state) || way.ids.is_empty() {
            return Ok(false);
        }
        let (way, after) = (way.clone(), self.around.after.clone());
        self.is_canonical(&way, &after)
    }

    /// The state behind a token; `None` if the tokenizer never writes it there.
    fn follow(&mut self, number: u32, edge: Edge) -> Result<Option<u32>> {
        let Ok(text) = std::str::from_utf8(self.spellings.bytes(edge.id)) else { return Ok(None) };
        let before = &self.found[number as usize].way;
        let way = Way { text: format!("{}{text}", before.text), ids: [&before.ids[..], &[edge.id]].concat() };
        let place = Place { state: edge.then, last: Some(edge.id), shape: shape(&way.text).into() };
        let continuations = self.continuations(edge.then);
        for rest in &*continuations {
            if self.is_canonical(&way, rest)? {
                let next = self.found.len() as u32;
                let then = *self.numbers.entry(place).or_insert(next);
                if then == next {
                    self.found.push(Found { state: edge.then, way, is_alive: None, built: None });
                }
                return Ok(Some(then));
            }
        }
        Ok(None)
    }

    /// The candidates with which the language goes on from a state.
    fn going_on(&mut self, state: DfaState) -> Arc<[Edge]> {
        if let Some(known) = self.going_on.get(&state) {
            return known.clone();
        }
        let edge = |id: &u32| Some(Edge { id: *id, then: self.dfa.run(state, self.spellings.bytes(*id))? });
        let edges: Arc<[Edge]> = self.candidates.iter().filter_map(edge).collect();
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

    /// Whether the tokenizer writes the tokens of a way if its text goes on with `rest`.
    fn is_canonical(&mut self, way: &Way, rest: &str) -> Result<bool> {
        let Around { before, adds_space, .. } = &self.around;
        let whole = format!("{before}{}{rest}", way.text);
        let ends = self.pieces.ends(&self.tokenizer, &whole, *adds_space)?;
        let begins = before.len();
        let mut ends = ends.iter().copied().skip_while(|end| *end <= begins).peekable();
        // A piece that began before the part is independent of it, because no token crosses that border.
        let (mut at, mut first) = (begins, 0);
        for (index, id) in way.ids.iter().enumerate() {
            at += self.spellings.bytes(*id).len();
            match ends.peek() {
                Some(end) if *end < at => return Ok(false),
                Some(end) if *end == at => {
                    if !self.makes(&way.ids[first..=index]) {
                        return Ok(false);
                    }
                    ends.next();
                    first = index + 1;
                }
                _ => {}
            }
        }
        let open = &way.ids[first..];
        Ok(if let [one] = open { self.makes(&[*one]) } else { open.windows(2).all(|pair| self.makes(pair)) })
    }

    /// Whether the model makes these tokens of their text.
    fn makes(&mut self, ids: &[u32]) -> bool {
        if let Some(known) = self.canonical.get(ids) {
            return *known;
        }
        let piece: String = ids.iter().map(|id| self.spellings.piece(*id)).collect();
        let made = self.tokenizer.model_ids(&piece).is_some_and(|made| made == ids);
        self.canonical.insert(ids.into(), made);
        made
    }
}

/// Where texts are cut into pieces.
#[derive(Default)]
struct Pieces {
    by_shape: HashMap<String, Arc<[usize]>>,
    /// Whether texts of a shape were found to be cut in different ways.
    reads_characters: bool,
}

impl Pieces {
    /// The ends of the pieces of a text, in bytes.
    fn ends(&mut self, tokenizer: &Tokenizer, text: &str, adds_space: bool) -> Result<Arc<[usize]>> {
        let key = if self.reads_characters { text.to_owned() } else { shape(text) };
        if let Some(known) = self.by_shape.get(&key) {
            return Ok(known.clone());
        }
        let ends = cut(tokenizer, text, adds_space)?;
        if !self.reads_characters && ends != cut(tokenizer, &turned(text), adds_space)? {
            self.reads_characters = true;
            self.by_shape.clear();
            return self.ends(tokenizer, text, adds_space);
        }
        let ends: Arc<[usize]> = ends.into();
        self.by_shape.insert(key, ends.clone());
        Ok(ends)
    }
}

/// The ends of the pieces of a text that begins, if so, with a space that the tokenizer adds itself.
fn cut(tokenizer: &Tokenizer, text: &str, adds_space: bool) -> Result<Vec<usize>> {
    let added = usize::from(adds_space);
    let ends = tokenizer.piece_ends(&text[added.min(text.len())..])?;
    Ok(ends.into_iter().map(|end| end + added).collect())
}

/// The kind of a character, of which it has the first one.
fn kind(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => b'0',
        b'a'..=b'z' => b'a',
        b'A'..=b'Z' => b'A',
        other => other,
    }
}

/// A text with the first character of its kind in place of each character.
fn shape(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii() { char::from(kind(c as u8)) } else { c }).collect()
}

/// Another text of the same shape.
fn turned(text: &str) -> String {
    let turn = |c: char| match c {
        '0'..='9' => char::from(b'0' + (c as u8 - b'0' + 3) % 10),
        'a'..='z' => char::from(b'a' + (c as u8 - b'a' + 7) % 26),
        'A'..='Z' => char::from(b'A' + (c as u8 - b'A' + 7) % 26),
        other => other,
    };
    text.chars().map(turn).collect()
}

/// The bytes of a text that may end a string of a language.
pub(super) fn last_bytes(dfa: &Dfa) -> BTreeSet<u8> {
    let states = 0..dfa.len() as DfaState;
    let ends = |state: DfaState, byte: &u8| dfa.next(state, *byte).is_some_and(|then| dfa.accepts(then));
    states.flat_map(|state| dfa.bytes(state).filter(move |byte| ends(state, byte))).collect()
}
