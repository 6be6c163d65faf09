//! A text that is being written: the ways in which its tokens can be read.
//!
//! A text has one meaning, but its first tokens may fit several: before a number ends, the text may go on in it or behind it, and an
//! item may have any word that begins so. Each way is a thread, and a token is legal if one of them allows it.

use std::sync::Arc;

use super::SkeletonConstraint;
use super::context::Context;
use super::expand::Spot;
use super::product::{Chunk, ChunkState};
use crate::constraint::Mask;
use crate::error::{Error, Result};

/// Where a way is.
#[derive(Clone)]
enum Position {
    /// Before this token of a fixed text.
    Run { ids: Arc<[u32]>, at: usize },
    /// In this state of a part with slots.
    Chunk { chunk: Arc<Chunk>, state: Arc<ChunkState> },
    /// At the end of the text.
    Over,
}

/// A way to read what was written.
#[derive(Clone)]
pub(super) struct Thread {
    position: Position,
    /// The place behind the run or the part, and the text before it.
    to: Arc<BorderSample>,
}

/// A place that is a border, and a sample of the text before it.
#[derive(Clone)]
pub(super) struct BorderSample {
    pub spot: Spot,
    pub before: Context,
}

/// The tokens that may come next.
#[derive(Clone)]
enum Legal {
    Forced(u32),
    Only(Arc<[u32]>),
    Except(Arc<[u32]>),
}

/// What a row of generated text has written of a skeleton. It follows the tokens of the row.
#[derive(Clone)]
pub struct SkeletonRow {
    threads: Vec<Thread>,
    /// In the free text, how many bytes of the marker are written.
    free: Option<usize>,
    legal: Legal,
    problem: Option<Arc<str>>,
}

impl std::fmt::Debug for SkeletonRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SkeletonRow").field("threads", &self.threads.len()).finish_non_exhaustive()
    }
}

impl Thread {
    pub(super) fn run(ids: Arc<[u32]>, at: usize, to: BorderSample) -> Self {
        Thread { position: Position::Run { ids, at }, to: Arc::new(to) }
    }

    pub(super) fn chunk(chunk: Arc<Chunk>, to: BorderSample) -> Result<Self> {
        let state = chunk.state(0)?;
        Ok(Thread { position: Position::Chunk { chunk, state }, to: Arc::new(to) })
    }

    pub(super) fn over(to: BorderSample) -> Self {
        Thread { position: Position::Over, to: Arc::new(to) }
    }

    /// Returns the tokens that this way allows next; the end of the text is `eos`.
    fn ids(&self, eos: u32) -> Legal {
        match &self.position {
            Position::Run { ids, at } => Legal::Forced(ids[*at]),
            Position::Chunk { state, .. } => Legal::Only(state.ids.clone()),
            Position::Over => Legal::Forced(eos),
        }
    }

    /// Adds the ways behind a token.
    fn step(&self, token: u32, constraint: &SkeletonConstraint, threads: &mut Vec<Thread>) -> Result<()> {
        match &self.position {
            Position::Run { ids, at } if ids[*at] == token => {
                if at + 1 == ids.len() {
                    return constraint.go_on(&self.to, threads);
                }
                let position = Position::Run { ids: ids.clone(), at: at + 1 };
                threads.push(Thread { position, to: self.to.clone() });
            }
            Position::Chunk { chunk, state } => {
                let Ok(at) = state.ids.binary_search(&token) else { return Ok(()) };
                let state = chunk.state(state.targets[at])?;
                let ends = state.ends;
                if !state.ids.is_empty() {
                    let position = Position::Chunk { chunk: chunk.clone(), state };
                    threads.push(Thread { position, to: self.to.clone() });
                }
                if ends {
                    constraint.go_on(&self.to, threads)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl SkeletonRow {
    /// Returns a row that has written nothing.
    pub(super) fn new(constraint: &SkeletonConstraint) -> Self {
        let free = constraint.openings.is_some().then_some(0);
        let mut row = SkeletonRow {
            threads: constraint.first.clone(),
            free,
            legal: Legal::Only(Arc::new([])),
            problem: None,
        };
        row.find_legal(constraint);
        row
    }

    /// Returns the tokens that may come next.
    pub fn mask(&self) -> Mask<'_> {
        match &self.legal {
            Legal::Forced(id) => Mask::Forced(*id),
            Legal::Only(ids) => Mask::only(ids),
            Legal::Except(ids) => Mask::Except(ids),
        }
    }

    /// Returns whether the text before the marker is being written.
    pub fn is_free(&self) -> bool {
        self.free.is_some()
    }

    /// Takes a token that the mask allowed, other than the end of the text.
    pub fn advance(&mut self, constraint: &SkeletonConstraint, token: u32) {
        if let Err(error) = self.step(constraint, token) {
            self.threads.clear();
            self.free = None;
            self.problem = Some(error.to_string().into());
        }
        self.find_legal(constraint);
    }

    /// Returns why no token is legal any more, if so.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    fn step(&mut self, constraint: &SkeletonConstraint, token: u32) -> Result<()> {
        if let (Some(written), Some(openings)) = (self.free, &constraint.openings) {
            match openings.tokens.after(written, token) {
                Ok(written) => self.free = Some(written),
                Err(used) => {
                    self.free = None;
                    self.threads = openings.threads(constraint, token, used)?;
                }
            }
            return Ok(());
        }
        let mut threads = Vec::with_capacity(self.threads.len());
        for thread in &self.threads {
            thread.step(token, constraint, &mut threads)?;
        }
        self.threads = threads;
        Ok(())
    }

    fn find_legal(&mut self, constraint: &SkeletonConstraint) {
        let eos = constraint.eos();
        if let (Some(written), Some(openings)) = (self.free, &constraint.openings) {
            self.legal = Legal::Except(openings.tokens.forbidden(written, &openings.all, eos));
            return;
        }
        if let [one] = &self.threads[..] {
            self.legal = one.ids(eos);
            return;
        }
        let mut all = Vec::new();
        for thread in &self.threads {
            match thread.ids(eos) {
                Legal::Forced(id) => all.push(id),
                Legal::Only(ids) | Legal::Except(ids) => all.extend_from_slice(&ids),
            }
        }
        all.sort_unstable();
        all.dedup();
        self.legal = Legal::Only(all.into());
    }
}

/// Returns an error about a tokenizer and a skeleton.
pub(super) fn refuse(tokenizer: &str, problem: impl std::fmt::Display) -> Error {
    let problem = format!("the tokens of this skeleton cannot be followed: {problem}");
    Error::input(tokenizer, problem, "give another tokenizer")
}
