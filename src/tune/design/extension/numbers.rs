//! Encodes every number in every position and context.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::around::around;
use super::checker::Checker;
use super::layout::Alphabet;
use super::texts::HEADS;
use crate::design::scheme::blocks::{block, numbers, shape, shapes_of_blocks};
use drift_core::error::{Error, Result};
use drift_core::job::{Job, Unit};

/// The ids to which each piece of a scheme must be encoded.
pub(in crate::design) type Pieces = HashMap<String, Vec<u32>>;

/// The number of blocks per text: few enough to be sure that no expression gives up on the text.
const CHUNK: u64 = 128;

/// The result of a part of the run over all numbers.
#[derive(Default)]
pub(in crate::design) struct NumbersRun {
    pub(in crate::design) blocks: u64,
    pub(super) decoded_bytes: u64,
    pub(super) shapes: HashSet<u64>,
    reached: HashSet<u32>,
}

impl NumbersRun {
    /// Combines two runs.
    fn and(mut self, other: NumbersRun) -> NumbersRun {
        self.blocks += other.blocks;
        self.decoded_bytes += other.decoded_bytes;
        self.shapes.extend(other.shapes);
        self.reached.extend(other.reached);
        self
    }
}

/// Combines two runs, or returns the error of the earlier task.
fn first_or_both(a: Run, b: Run) -> Run {
    match (a, b) {
        (Ok(a), Ok(b)) => Ok(a.and(b)),
        (Err(a), Err(b)) => Err(if a.0 <= b.0 { a } else { b }),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
    }
}

/// The result of a run, or the index of a failed task and its error.
type Run = std::result::Result<NumbersRun, (usize, Error)>;

/// The text around the blocks of a text, with the base's ids.
struct Around<'c> {
    head: &'c str,
    head_ids: &'c [u32],
    between: &'c str,
    between_ids: &'c [u32],
}

impl Checker<'_> {
    /// Checks that every number in every position and context gives exactly the tokens of the scheme's pieces.
    pub(in crate::design) fn numbers(
        &self,
        pieces: &Pieces,
        new_tokens: &[(u32, String)],
        job: &Job,
    ) -> Result<NumbersRun> {
        let grammar = self.scheme.grammar;
        // Numbers with few decimals are rare, so in the stripped encoding every shape of block is run in addition.
        let shapes = shapes_of_blocks(grammar);
        let blocks = grammar.numbers() + if grammar.is_stripped() { shapes } else { 0 };
        let chunks = blocks.div_ceil(CHUNK);
        let tasks: Vec<(usize, u64)> = (0..self.contexts.len())
            .flat_map(|context| (0..chunks).map(move |chunk| (context, chunk)))
            .collect();
        let contexts: Vec<Cow<'_, str>> = self.contexts.iter().map(|glue| self.up_to_a_block(glue)).collect();
        let before: Vec<Cow<'_, str>> = HEADS.iter().map(|head| self.up_to_a_block(head)).collect();
        let between: Vec<Vec<u32>> = contexts.iter().map(|glue| self.between(glue)).collect::<Result<_>>()?;
        let heads: Vec<Vec<u32>> = before.iter().map(|head| self.before(head)).collect::<Result<_>>()?;
        job.observer().begin("checking", Some(tasks.len() as u64), Unit::Items);
        let run = |&(context, chunk): &(usize, u64)| {
            job.check()?;
            // The heads alternate: with several chunks in each context, all of them are used.
            let head = chunk as usize % HEADS.len();
            let around = Around {
                head: &before[head],
                head_ids: &heads[head],
                between: &contexts[context],
                between_ids: &between[context],
            };
            let indices = chunk * CHUNK..((chunk + 1) * CHUNK).min(blocks);
            // Decoding works token by token, so one context is enough for it.
            let run = self.chunk(indices, &around, pieces, context == 0)?;
            job.observer().advance(1);
            Ok(run)
        };
        // Returns the error of the first failing task, so that the error is the same in every run.
        let failed = AtomicUsize::new(usize::MAX);
        let tried = tasks.par_iter().enumerate().filter(|(at, _)| *at < failed.load(Ordering::Relaxed));
        let outcome = tried
            .map(|(at, task)| {
                run(task).map_err(|error| {
                    failed.fetch_min(at, Ordering::Relaxed);
                    (at, error)
                })
            })
            .reduce(|| Ok(NumbersRun::default()), first_or_both);
        job.observer().end();
        let run = outcome.map_err(|(_, error)| error)?;
        // The proof requires that every shape was run, so this is counted rather than assumed.
        if run.shapes.len() as u64 != shapes {
            return Err(self.broken("not every shape of block was run"));
        }
        match new_tokens.iter().find(|(id, _)| !run.reached.contains(id)) {
            Some((id, text)) => Err(self.broken(&format!("no block reaches new token {id}, {text:?}"))),
            None => Ok(run),
        }
    }

    /// Encodes the blocks of one text; with `decoded`, also decodes them.
    fn chunk(
        &self,
        indices: std::ops::Range<u64>,
        around: &Around<'_>,
        pieces: &Pieces,
        decoded: bool,
    ) -> Result<NumbersRun> {
        let grammar = self.scheme.grammar;
        let mut text = around.head.to_owned();
        let mut expected = around.head_ids.to_vec();
        let mut run = NumbersRun::default();
        for index in indices {
            if run.blocks > 0 {
                text.push_str(around.between);
                expected.extend(around.between_ids);
            }
            let numbers = numbers(grammar, index);
            let (block, starts) = block(grammar, &numbers);
            let cuts = self.scheme.starts(numbers.map(|number| number.decimals));
            let cuts = cuts.iter().map(|slot| starts[*slot]);
            let ends = cuts.clone().skip(1).chain([block.len()]);
            for (start, end) in cuts.zip(ends) {
                let ids = pieces.get(&block[start..end]).filter(|ids| !ids.is_empty());
                expected.extend(ids.ok_or_else(|| self.broken("a piece is missing"))?);
            }
            text.push_str(&block);
            run.shapes.insert(shape(grammar, &numbers));
            run.blocks += 1;
        }
        if self.extended.ids(&text)? != expected {
            let between = around.between;
            return Err(
                self.broken(&format!("blocks between {between:?} do not take the pieces of the scheme"))
            );
        }
        if decoded {
            if !self.decodes(&expected, &text)? {
                return Err(self.broken("blocks are not decoded to themselves"));
            }
            run.decoded_bytes = text.len() as u64;
            run.reached = expected.into_iter().collect();
        }
        Ok(run)
    }

    /// The ids of the text before the first block.
    fn before(&self, head: &str) -> Result<Vec<u32>> {
        match self.alphabet {
            Alphabet::Bytes => self.kept(head),
            Alphabet::Text => {
                let block = self.some_block();
                // On its own, a head would be a different section. Before a block, it is the part of the section up to the block.
                Ok(around(self.base, &format!("{head}{block}"), &block)?.swap_remove(0))
            }
        }
    }

    /// The ids of the text between two blocks.
    fn between(&self, glue: &str) -> Result<Vec<u32>> {
        let kept = self.kept(glue)?;
        match self.alphabet {
            Alphabet::Bytes => Ok(kept),
            Alphabet::Text => {
                let block = self.some_block();
                Ok(around(self.base, &format!("[C]{block}{glue}{block}"), &block)?.swap_remove(1))
            }
        }
    }
}
