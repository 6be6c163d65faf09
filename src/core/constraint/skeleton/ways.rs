//! The ways to go on from a border as tokens.

use std::sync::Arc;

use super::SkeletonConstraint;
use super::context::Context;
use super::expand::{Continuation, Element};
use super::product::{Chunk, Surroundings};
use super::row::{BorderSample, Thread, refuse};
use crate::error::Result;

/// A way to go on from a border, up to the next one.
pub(super) struct Way {
    pub part: WayPart,
    pub elements: Vec<Element>,
    pub behind: BorderSample,
}

/// What is written on a way.
pub(super) enum WayPart {
    /// Nothing: the text is over.
    Over,
    /// Fixed text.
    Run(Arc<[u32]>),
    /// Slots.
    Chunk(Arc<Chunk>),
}

impl SkeletonConstraint {
    /// Adds all ways to go on from a border.
    pub(super) fn go_on(&self, from: &BorderSample, threads: &mut Vec<Thread>) -> Result<()> {
        for Way { part, behind, .. } in self.ways(from)? {
            threads.push(match part {
                WayPart::Over => Thread::over(behind),
                WayPart::Run(ids) => Thread::run(ids, 0, behind),
                WayPart::Chunk(chunk) => Thread::chunk(chunk, behind)?,
            });
        }
        Ok(())
    }

    /// Returns all ways to go on from a border.
    pub(super) fn ways(&self, from: &BorderSample) -> Result<Vec<Way>> {
        let Self { processor, program, .. } = self;
        let begins = from.before.begins();
        let adds_space = begins && processor.spellings.adds_space;
        let all = program.continuations(&from.spot, begins);
        let all = all.map_err(|why| refuse(&processor.tokenizer.name, why))?;
        all.into_iter().map(|way| self.way(&from.before, way, adds_space)).collect()
    }

    /// Returns the way of a continuation behind a text.
    fn way(&self, before: &Context, on: Continuation, adds_space: bool) -> Result<Way> {
        let Self { processor, program, .. } = self;
        let Continuation { elements, to } = on;
        self.refuse_reach(before, &elements)?;
        let sample = program.sample(&elements);
        let text = if adds_space { &sample[1..] } else { &sample[..] };
        let after = program.ahead(&to);
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
                WayPart::Chunk(processor.chunk(program, &elements, around)?)
            }
        };
        let behind = BorderSample { spot: to, before: before.followed_by(text) };
        Ok(Way { part, elements, behind })
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
