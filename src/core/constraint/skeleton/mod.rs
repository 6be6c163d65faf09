//! The automaton of a [`crate::skeleton`]: it allows exactly the canonical tokens of the texts that a skeleton has for a prompt.
//!
//! - `program` has the text as nodes, and counts items: a multiset in any order needs a counter for each word.
//! - `expand` finds how a text may go on, up to the next border at which texts fall apart
//!   ([`crate::tokenizer::boundaries`], with the pairs of bytes of `neighbours`): as a fixed run, whose tokens the encoder knows in its context, or as a part with slots.
//! - `slots` has the slots: those of an encoding are one, with the tokens that the tokenizer is known to write for them, whether it
//!   cuts them out of the text whole or not.
//! - `border` has the tokens of each such way behind the text before it, once for all texts of a prompt.
//! - [`Chunk`] has the tokens of a part with slots, shared by all prompts. `row` follows a text. `marker` leaves the text before a marker
//!   free.
//! - `graph` lists all texts of a prompt, for grammars ([`super::grammar`]) and for counts of tokens; `lines` counts those of lines.
//! - `prompt` has the tokens of the prompt, and of the beginning of the text that it ends with.
//! - `verify` compares each constraint with the encoder, both ways, before it is used.
//!
//! Enriched SMILES is one of the skeletons, and a test compares its masks with those of [`super::automaton`], with which it shares the
//! tokens of slots and of fixed text. Generation follows that one: its tables are plain numbers that a device and a geometry can
//! follow, a molecule takes less to begin, and it also knows several conformers in one answer.

mod border;
mod context;
mod expand;
mod graph;
mod lines;
mod marker;
mod neighbours;
mod program;
mod prompt;
mod row;
mod slots;
mod verify;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::{Map, Value};

pub(super) use graph::GraphPart;
pub use graph::{PartList, PartTokens, SkeletonGraph, TextTokens, widest};
pub use row::SkeletonRow;

use self::border::{Border, refuse};
use self::context::Context;
use self::expand::{Continuation, Element, Program, Spot};
use self::marker::{MarkerTokens, Opening};
use self::neighbours::PromptBytes;
use self::row::{Thread, Threads};
use self::slots::FollowedSlots;
use super::{Constraint, Mask, State};
use crate::error::{Error, Result};
use crate::skeleton::{Bound, Skeleton};
use crate::tokenizer::boundaries::TokenBoundaries;
use crate::tokenizer::{Chunk, FixedText, Surroundings, TokenSpellings, Tokenizer};

/// The parts with slots that were built, by their elements and the kinds of characters beside them.
type Chunks = HashMap<(Vec<Element>, Surroundings), Arc<Chunk>>;

/// The tokens of fixed texts, by the text before, the text, and the text behind.
type Runs = HashMap<[String; 3], Arc<[u32]>>;

/// Texts before a marker, in which its tokens are found.
const BEFORE_MARKER: [&str; 3] = ["\n", ".", "x"];

/// The most kinds of prompts whose borders are kept.
const MOST_BOUNDARIES: usize = 1 << 10;

/// The most fixed texts whose tokens are kept.
const MOST_RUNS: usize = 1 << 16;

/// Makes the constraints of prompts, for one tokenizer and skeleton.
pub struct SkeletonProcessor {
    tokenizer: Arc<Tokenizer>,
    skeleton: Arc<Skeleton>,
    spellings: Arc<TokenSpellings>,
    slots: Arc<FollowedSlots>,
    eos: u32,
    /// The beginning of texts that stands in prompts already.
    begun: Box<str>,
    marker: Option<Arc<MarkerTokens>>,
    boundaries: Mutex<HashMap<PromptBytes, Arc<TokenBoundaries>>>,
    chunks: Mutex<Chunks>,
    runs: Mutex<Runs>,
    /// Lists of tokens, to compare them by address.
    lists: Mutex<HashSet<Arc<[u32]>>>,
}

/// What follows a marker.
struct Openings {
    tokens: Arc<MarkerTokens>,
    all: Vec<Opening>,
    /// By how many bytes of the marker are written, the tokens that are forbidden.
    forbidden: Vec<OnceLock<Arc<[u32]>>>,
}

impl Openings {
    /// Returns the ways behind a token that completed the marker with so many of its bytes.
    fn threads(&self, constraint: &SkeletonConstraint, token: u32, used: usize) -> Threads {
        let mut threads = Threads::new();
        for opening in &self.all {
            let Some(at) = self.tokens.entry(opening, token, used) else { continue };
            let before = Context { is_cut: true, ..Context::default() }.followed_by(&opening.text);
            let border = constraint.border(opening.to.clone(), before);
            threads.push(Thread::run(&opening.ids, at, &border));
        }
        threads
    }

    /// Returns the tokens that are forbidden where so many bytes of the marker are written.
    fn forbidden(&self, written: usize, eos: u32) -> Arc<[u32]> {
        self.forbidden[written].get_or_init(|| self.tokens.forbidden(written, &self.all, eos)).clone()
    }
}

/// The texts of a prompt. Its [`Constraint::mask`] allows every token; a [`SkeletonRow`] narrows it.
pub struct SkeletonConstraint {
    processor: Arc<SkeletonProcessor>,
    program: Program,
    /// The text before the answer.
    before: Context,
    openings: Option<Openings>,
    /// The borders that texts have reached, by place.
    borders: Mutex<HashMap<Spot, Arc<Border>>>,
    begun: Option<BegunText>,
}

/// The beginning of texts that stands in the prompt already.
struct BegunText {
    ids: Vec<u32>,
    /// A row behind it.
    row: SkeletonRow,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A lock is poisoned only if another thread panicked while holding it. The map inside is still intact.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SkeletonProcessor {
    /// Returns a processor for texts that end with the token `eos`.
    ///
    /// # Errors
    /// If texts cannot be followed by the neighbours of this tokenizer's tokens, or it changes characters of texts.
    pub fn new(tokenizer: Arc<Tokenizer>, skeleton: Arc<Skeleton>, eos: u32) -> Result<Self> {
        let spellings = TokenSpellings::learn(&tokenizer)?.map_err(|why| refuse(&tokenizer.name, why))?;
        let spellings = Arc::new(spellings);
        for c in skeleton.characters() {
            if tokenizer.changes(c)? {
                return Err(refuse(
                    &tokenizer.name,
                    format!("its normalizer changes `{}`", c.escape_debug()),
                ));
            }
        }
        let slots = FollowedSlots::learn(&skeleton, &tokenizer, &spellings)?;
        let slots = Arc::new(slots.map_err(|why| refuse(&tokenizer.name, why))?);
        let marker = skeleton.marker.as_deref().map(|marker| Arc::new(MarkerTokens::new(marker, &spellings)));
        let (boundaries, chunks, runs, lists) = Default::default();
        let begun = Box::default();
        Ok(SkeletonProcessor {
            tokenizer,
            skeleton,
            spellings,
            slots,
            eos,
            begun,
            marker,
            boundaries,
            chunks,
            runs,
            lists,
        })
    }

    /// This processor for prompts that end with the beginning of a text: with its marker, its first tag, or more.
    #[must_use]
    pub fn begun(mut self, text: &str) -> Self {
        self.begun = text.into();
        self
    }

    /// Returns the skeleton.
    pub fn skeleton(&self) -> &Skeleton {
        &self.skeleton
    }

    /// Returns the tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Returns the constraint of a prompt, whose data stand at `place`. `text` is the prompt's text, for skeletons whose prompt and
    /// answer are one text.
    ///
    /// # Errors
    /// If the prompt lacks what the skeleton needs, or the tokens of its texts cannot be followed.
    pub fn constraint(
        self: &Arc<Self>,
        data: &Map<String, Value>,
        text: Option<&str>,
        place: &str,
    ) -> Result<SkeletonConstraint> {
        let bound = self.skeleton.bind(data, place)?;
        let text = text
            .or(bound.prompt.as_deref())
            .filter(|_| self.skeleton.one_text)
            .unwrap_or_default()
            .to_owned();
        let boundaries = self.boundaries(&bound, &text);
        let before = self.before(&text, place)?;
        let Bound { items, fields, .. } = bound;
        let adds_space = self.spellings.adds_space;
        let program =
            Program::new(self.skeleton.clone(), items, fields, boundaries, self.slots.clone(), adds_space);
        let program = program.map_err(|why| refuse(place, why))?;
        let mut constraint = SkeletonConstraint {
            processor: self.clone(),
            program,
            before,
            openings: None,
            borders: Mutex::default(),
            begun: None,
        };
        match &self.marker {
            Some(marker) => constraint.openings = Some(constraint.opened(marker)?),
            None => _ = constraint.ways(&constraint.first_border())?,
        }
        verify::verify(&constraint, &text)?;
        constraint.begun = constraint.begun_text(&text)?;
        Ok(constraint)
    }

    /// Returns the text before an answer.
    fn before(&self, text: &str, place: &str) -> Result<Context> {
        if !self.skeleton.one_text || self.marker.is_some() {
            return Ok(Context::default());
        }
        if text.is_empty() {
            let problem =
                format!("prompt and answer of {} are one text, and the prompt has none", self.skeleton.name);
            return Err(Error::input(place, problem, "give the text of the prompt as `prompt`"));
        }
        Ok(Context { is_cut: true, is_prompt: true, ..Context::default().followed_by(text) })
    }

    /// Returns the borders in texts of a prompt, whose answers stand behind `before` as one text with it.
    fn boundaries(&self, bound: &Bound<'_>, before: &str) -> Arc<TokenBoundaries> {
        let of_prompt = PromptBytes::new(bound, before);
        let mut known = locked(&self.boundaries);
        if let Some(known) = known.get(&of_prompt) {
            return known.clone();
        }
        let made = Arc::new(TokenBoundaries::within(&self.spellings, &of_prompt.pairs(bound)));
        if known.len() < MOST_BOUNDARIES {
            known.insert(of_prompt, made.clone());
        }
        made
    }

    /// Returns the tokens of a fixed text in its context.
    fn run(&self, before: &Context, text: &str, after: String) -> Result<Arc<[u32]>> {
        let (key, is_prompt) = ([before.text.clone(), text.to_owned(), after], before.is_prompt);
        if let Some(known) = locked(&self.runs).get(&key) {
            return Ok(known.clone());
        }
        let [before, text, after] = &key;
        let ids = FixedText { before, text, after, is_prompt }.ids(&self.tokenizer, &self.spellings)?;
        let ids: Arc<[u32]> = ids.map_err(|why| refuse(&self.tokenizer.name, why))?.into();
        let mut runs = locked(&self.runs);
        if runs.len() < MOST_RUNS {
            runs.insert(key, ids.clone());
        }
        Ok(ids)
    }

    /// Returns the one list with these tokens.
    fn shared_list(&self, ids: Arc<[u32]>) -> Arc<[u32]> {
        let mut known = locked(&self.lists);
        if let Some(known) = known.get(&ids) {
            return known.clone();
        }
        if known.len() < MOST_RUNS {
            known.insert(ids.clone());
        }
        ids
    }

    /// Returns the tokens of a part with slots.
    fn chunk(&self, program: &Program, elements: &[Element], around: Surroundings) -> Result<Arc<Chunk>> {
        let key = (elements.to_vec(), around.kinds());
        let mut chunks = locked(&self.chunks);
        if let Some(known) = chunks.get(&key) {
            return Ok(known.clone());
        }
        let dfa = program.language(elements).ok_or_else(|| "a slot has too many texts".to_owned());
        let Self { tokenizer, spellings, .. } = self;
        let chunk = dfa.and_then(|dfa| match &spellings.scores {
            Some(scores) => Chunk::of_unigram(tokenizer, spellings, scores, program.boundaries(), &dfa),
            None => Chunk::new(tokenizer, spellings, dfa, around),
        });
        let chunk = Arc::new(chunk.map_err(|why| refuse(&self.tokenizer.name, why))?);
        if chunk.state(0)?.ids.is_empty() {
            let text = program.sample(elements);
            let problem = format!("no sequence of its tokens spells texts such as `{}`", text.escape_debug());
            return Err(refuse(&self.tokenizer.name, problem));
        }
        chunks.insert(key, chunk.clone());
        Ok(chunk)
    }
}

impl SkeletonConstraint {
    /// Returns a row that has written nothing.
    pub fn row(&self) -> SkeletonRow {
        self.begun.as_ref().map_or_else(|| SkeletonRow::new(self), |begun| begun.row.clone())
    }

    /// Returns the border before the text.
    fn first_border(&self) -> Arc<Border> {
        self.border(self.program.start(), self.before.clone())
    }

    /// Returns the token that ends a text.
    pub fn eos(&self) -> u32 {
        self.processor.eos
    }

    /// Returns the tokens of the marker and what follows it.
    fn opened(&self, tokens: &Arc<MarkerTokens>) -> Result<Openings> {
        let Self { processor, program, .. } = self;
        let marker = processor.skeleton.marker.as_deref().unwrap_or_default();
        let found = program.continuations(&program.start(), marker);
        let mut all = Vec::new();
        for Continuation { elements, to } in found.map_err(|why| refuse(&processor.tokenizer.name, why))? {
            let [Element::Text(text)] = &elements[..] else {
                return Err(refuse(
                    &processor.tokenizer.name,
                    format!("a token may join `{marker}` with a slot"),
                ));
            };
            // The marker's own tokens are free, so any text before it will do that none of them joins.
            let free = BEFORE_MARKER.iter().map(|before| Context::default().followed_by(before));
            let run = |before: Context| processor.run(&before, text, program.ahead(&to));
            let ids = free.map(run).reduce(Result::or).transpose()?.unwrap_or_default();
            let ends = ids.iter().scan(0, |end, id| {
                *end += processor.spellings.bytes(*id).len();
                Some(*end)
            });
            let offsets = [0].into_iter().chain(ends).collect();
            all.push(Opening { offsets, ids, text: text.clone(), to });
        }
        let forbidden = marker.bytes().map(|_| OnceLock::new()).collect();
        Ok(Openings { tokens: tokens.clone(), all, forbidden })
    }
}

impl Constraint for SkeletonConstraint {
    fn start(&self) -> State {
        State::default()
    }

    fn mask(&self, _state: &State) -> Mask<'_> {
        Mask::Any
    }

    fn advance(&self, _state: &mut State, _token: u32) {}

    fn is_over(&self, _state: &State, token: u32) -> bool {
        token == self.eos()
    }

    fn skeleton(&self) -> Option<&SkeletonConstraint> {
        Some(self)
    }
}

#[cfg(test)]
mod tests;
