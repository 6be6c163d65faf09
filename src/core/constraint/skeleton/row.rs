//! A text that is being written: the ways in which its tokens can be read.
//!
//! A text has one meaning, but its first tokens may fit several: an item may have any word that begins so. Each way is a thread, and a
//! token is legal if one of them allows it. Where a slot may end, its thread waits: only a token that does not go on in the slot
//! leads behind it. So a text usually has one thread, whose mask is one that its place keeps.

use std::sync::Arc;

use smallvec::SmallVec;

use super::SkeletonConstraint;
use super::border::{Border, WayPart};
use crate::constraint::Mask;
use crate::error::Result;
use crate::tokenizer::{Chunk, ChunkState};

/// Where a way is.
#[derive(Clone)]
pub(super) enum Position {
    /// At the border.
    Border,
    /// Before this token of a fixed text, behind which the border is.
    Run { ids: Arc<[u32]>, at: usize },
    /// In this state of a part with slots, behind which the border is.
    Chunk { chunk: Arc<Chunk>, state: Arc<ChunkState> },
}

/// A way to read what was written.
#[derive(Clone)]
pub(super) struct Thread {
    pub position: Position,
    pub border: Arc<Border>,
}

/// The ways to read a text: one, but where several texts begin with the same tokens.
pub(super) type Threads = SmallVec<[Thread; 2]>;

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
    threads: Threads,
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
    /// Returns the way before a token of a fixed text.
    pub(super) fn run(ids: &Arc<[u32]>, at: usize, border: &Arc<Border>) -> Self {
        let position = match at == ids.len() {
            true => Position::Border,
            false => Position::Run { ids: ids.clone(), at },
        };
        Thread { position, border: border.clone() }
    }

    /// Returns the tokens that this way allows next.
    fn legal(&self, constraint: &SkeletonConstraint) -> Result<Legal> {
        Ok(match &self.position {
            Position::Border => Legal::Only(constraint.ways(&self.border)?.firsts.clone()),
            Position::Run { ids, at } => Legal::Forced(ids[*at]),
            Position::Chunk { state, .. } if state.ends => {
                Legal::Only(state.ids_or(&constraint.ways(&self.border)?.firsts))
            }
            Position::Chunk { state, .. } => Legal::Only(state.ids.clone()),
        })
    }

    /// Adds the ways behind a token.
    fn step(self, token: u32, constraint: &SkeletonConstraint, threads: &mut Threads) -> Result<()> {
        let Thread { position, border } = self;
        match position {
            Position::Border => step_from(&border, token, constraint, threads)?,
            Position::Run { ids, at } if ids[at] == token => threads.push(Thread::run(&ids, at + 1, &border)),
            Position::Run { .. } => {}
            Position::Chunk { chunk, state } => {
                if state.ends {
                    step_from(&border, token, constraint, threads)?;
                }
                if let Some(state) = chunk.behind(&state, token)? {
                    threads.push(Thread { position: Position::in_chunk(chunk, state), border });
                }
            }
        }
        Ok(())
    }
}

impl Position {
    fn in_chunk(chunk: Arc<Chunk>, state: Arc<ChunkState>) -> Self {
        if state.ids.is_empty() { Position::Border } else { Position::Chunk { chunk, state } }
    }
}

/// Adds the ways from a border that begin with a token.
fn step_from(
    border: &Border,
    token: u32,
    constraint: &SkeletonConstraint,
    threads: &mut Threads,
) -> Result<()> {
    for way in &constraint.ways(border)?.all {
        match &way.part {
            WayPart::Run(ids) if ids[0] == token => threads.push(Thread::run(ids, 1, &way.behind)),
            WayPart::Chunk(chunk, first) => {
                if let Some(state) = chunk.behind(first, token)? {
                    let position = Position::in_chunk(chunk.clone(), state);
                    threads.push(Thread { position, border: way.behind.clone() });
                }
            }
            _ => {}
        }
    }
    Ok(())
}

impl SkeletonRow {
    /// Returns a row that has written nothing.
    pub(super) fn new(constraint: &SkeletonConstraint) -> Self {
        let mut row = SkeletonRow {
            threads: Threads::new(),
            free: constraint.openings.is_some().then_some(0),
            legal: Legal::Only(Arc::new([])),
            problem: None,
        };
        if row.free.is_none() {
            row.threads.push(Thread { position: Position::Border, border: constraint.first_border() });
        }
        let legal = row.find_legal(constraint);
        row.keep(legal);
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
        let legal = self.step(constraint, token).and_then(|()| self.find_legal(constraint));
        self.keep(legal);
    }

    /// Returns the ways in which the text can be read.
    pub(super) fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// Returns the border at which the text is; `None` within a part.
    pub(super) fn border(&self) -> Option<&Arc<Border>> {
        match &self.threads[..] {
            [Thread { position: Position::Border, border }] => Some(border),
            _ => None,
        }
    }

    /// Returns why no token is legal any more, if so.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Keeps the tokens that may come next; none, if the text cannot be followed further.
    fn keep(&mut self, legal: Result<Legal>) {
        match legal {
            Ok(legal) => self.legal = legal,
            Err(error) => {
                self.threads.clear();
                self.free = None;
                self.legal = Legal::Only(Arc::new([]));
                self.problem = Some(error.to_string().into());
            }
        }
    }

    fn step(&mut self, constraint: &SkeletonConstraint, token: u32) -> Result<()> {
        if let (Some(written), Some(openings)) = (self.free, &constraint.openings) {
            match openings.tokens.after(written, token) {
                Ok(written) => self.free = Some(written),
                Err(used) => {
                    self.free = None;
                    self.threads = openings.threads(constraint, token, used);
                }
            }
            return Ok(());
        }
        for thread in std::mem::take(&mut self.threads) {
            thread.step(token, constraint, &mut self.threads)?;
        }
        Ok(())
    }

    fn find_legal(&self, constraint: &SkeletonConstraint) -> Result<Legal> {
        if let (Some(written), Some(openings)) = (self.free, &constraint.openings) {
            return Ok(Legal::Except(openings.forbidden(written, constraint.eos())));
        }
        if let [one] = &self.threads[..] {
            return one.legal(constraint);
        }
        let mut all = Vec::new();
        for thread in &self.threads {
            match thread.legal(constraint)? {
                Legal::Forced(id) => all.push(id),
                Legal::Only(ids) | Legal::Except(ids) => all.extend_from_slice(&ids),
            }
        }
        all.sort_unstable();
        all.dedup();
        Ok(Legal::Only(all.into()))
    }
}
