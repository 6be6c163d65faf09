//! The borders of a prompt's texts, and the ways to go on from each as tokens.
//!
//! Ways are found when a text first reaches a border, and kept: texts of a prompt share them, so that a step allocates nothing.

use std::sync::{Arc, Mutex};

use super::context::Context;
use super::expand::{Continuation, Element, Spot};
use super::{SkeletonConstraint, locked};
use crate::error::{Error, Result};
use crate::tokenizer::{Chunk, ChunkState, Surroundings};

/// A place at which texts fall apart.
pub(super) struct Border {
    pub spot: Spot,
    /// A sample of the text before it.
    pub before: Context,
    /// Whether texts that reach this place share it.
    is_shared: bool,
    ways: Mutex<Option<Arc<Ways>>>,
}

/// The ways to go on from a border.
pub(super) struct Ways {
    pub all: Box<[Way]>,
    /// The tokens with which they begin, sorted; the token that ends the text, if it may end here.
    pub firsts: Arc<[u32]>,
}

/// A way to go on from a border, up to the next one.
pub(super) struct Way {
    pub part: WayPart,
    pub behind: Arc<Border>,
}

/// What is written on a way.
pub(super) enum WayPart {
    /// Nothing: the text is over.
    Over,
    /// Fixed text.
    Run(Arc<[u32]>),
    /// Slots, and their first state.
    Chunk(Arc<Chunk>, Arc<ChunkState>),
}

/// A way, and the texts and slots on it.
pub(super) struct FoundWay {
    pub way: Way,
    pub elements: Vec<Element>,
}

/// The most borders of a prompt that texts share. Those behind are found anew for each text.
const MOST_BORDERS: usize = 1 << 15;

impl Ways {
    fn new(all: Vec<Way>, constraint: &SkeletonConstraint) -> Self {
        let mut firsts = Vec::new();
        for way in &all {
            match &way.part {
                WayPart::Over => firsts.push(constraint.eos()),
                WayPart::Run(ids) => firsts.push(ids[0]),
                WayPart::Chunk(_, state) => firsts.extend_from_slice(&state.ids),
            }
        }
        firsts.sort_unstable();
        firsts.dedup();
        Ways { all: all.into(), firsts: constraint.processor.shared_list(firsts.into()) }
    }
}

impl Drop for SkeletonConstraint {
    /// Takes the borders apart: each holds those behind it, and a long text is a chain too deep to be dropped as one.
    fn drop(&mut self) {
        for border in locked(&self.borders).values() {
            *locked(&border.ways) = None;
        }
    }
}

impl SkeletonConstraint {
    /// Returns the border at a place. Nothing but its sample of the text before it depends on how a text reached it.
    pub(super) fn border(&self, spot: Spot, before: Context) -> Arc<Border> {
        let mut known = locked(&self.borders);
        if let Some(known) = known.get(&spot) {
            return known.clone();
        }
        let is_shared = known.len() < MOST_BORDERS;
        let border = Arc::new(Border { spot: spot.clone(), before, is_shared, ways: Mutex::default() });
        if is_shared {
            known.insert(spot, border.clone());
        }
        border
    }

    /// Returns the ways to go on from a border.
    ///
    /// # Errors
    /// If there are too many to list, or their tokens cannot be followed.
    pub(super) fn ways(&self, from: &Border) -> Result<Arc<Ways>> {
        if let Some(known) = &*locked(&from.ways) {
            return Ok(known.clone());
        }
        let all = self.found_ways(from)?.into_iter().map(|found| found.way).collect();
        let ways = Arc::new(Ways::new(all, self));
        // A shared border keeps nothing alive that belongs to one text.
        if !from.is_shared || ways.all.iter().all(|way| way.behind.is_shared) {
            return Ok(locked(&from.ways).get_or_insert(ways).clone());
        }
        Ok(ways)
    }

    /// Finds the ways to go on from a border, with their parts.
    ///
    /// # Errors
    /// As [`SkeletonConstraint::ways`].
    pub(super) fn found_ways(&self, from: &Border) -> Result<Vec<FoundWay>> {
        let Self { processor, program, .. } = self;
        let adds_space = from.before.begins() && processor.spellings.adds_space;
        let all = program.continuations(&from.spot, if adds_space { " " } else { "" });
        let all = all.map_err(|why| refuse(&processor.tokenizer.name, why))?;
        all.into_iter().map(|on| self.found_way(&from.before, on, adds_space)).collect()
    }

    /// Returns the way of a continuation behind a text.
    fn found_way(&self, before: &Context, on: Continuation, adds_space: bool) -> Result<FoundWay> {
        let Self { processor, program, .. } = self;
        let Continuation { elements, to } = on;
        self.refuse_reach(before, &elements)?;
        let sample = program.sample(&elements);
        let text = if adds_space { &sample[1..] } else { &sample[..] };
        let after = program.ahead(&to);
        let known = match &elements[..] {
            [Element::Slot(slot)] => program.slot(*slot).tokens.clone(),
            _ => None,
        };
        let part = match &elements[..] {
            [] => WayPart::Over,
            [Element::Text(_)] if text.is_empty() => WayPart::Over,
            [Element::Text(_)] => {
                let ids = processor.run(before, text, after)?;
                match ids.split_last() {
                    // The last tag of a text may be the token that ends it.
                    Some((last, [])) if *last == processor.eos => WayPart::Over,
                    Some((last, ids)) if *last == processor.eos => WayPart::Run(ids.into()),
                    _ => WayPart::Run(ids),
                }
            }
            _ => {
                let around = Surroundings { before: before.text.clone(), after, adds_space };
                let made = || processor.chunk(program, &elements, around);
                let chunk = known.map_or_else(made, Ok)?;
                let state = chunk.state(0)?;
                WayPart::Chunk(chunk, state)
            }
        };
        let behind = self.border(to, before.followed_by(text));
        Ok(FoundWay { way: Way { part, behind }, elements })
    }

    /// Refuses an answer whose first slot may share a token with the prompt.
    fn refuse_reach(&self, before: &Context, elements: &[Element]) -> Result<()> {
        let last = before.text.bytes().last().filter(|_| before.is_prompt);
        let is_fixed = matches!(elements, [Element::Text(text)] if !text.is_empty());
        if is_fixed || last.is_none_or(|last| self.program.may_follow(last)) {
            return Ok(());
        }
        Err(refuse(
            &self.processor.tokenizer.name,
            "a token may reach from the prompt into the answer's first slot",
        ))
    }
}

/// The beginning of the problems of a tokenizer and a skeleton.
pub(super) const UNFOLLOWED: &str = "the tokens of this skeleton cannot be followed: ";

/// Their remedy.
pub(super) const ANOTHER: &str = "give another tokenizer";

/// Returns an error about a tokenizer and a skeleton.
pub(super) fn refuse(tokenizer: &str, problem: impl std::fmt::Display) -> Error {
    Error::input(tokenizer, format!("{UNFOLLOWED}{problem}"), ANOTHER)
}
