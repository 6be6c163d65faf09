//! Encodes every number in every position and context.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use super::block_context::ids_around_blocks;
use super::checker::Checker;
use super::layout::Alphabet;
use super::plain::first_error;
use super::texts::HEADS;
use crate::design::scheme::blocks::{block, blocks_of_missing_shapes, numbers, shape, shapes_of_blocks};
use crate::design::scheme::cuts::spans;
use crate::design::scheme::grammar::{Grammar, SpelledNumber};
use drift_core::job::Unit;
use drift_core::{Job, Result};

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
    fn add(&mut self, other: NumbersRun) {
        self.blocks += other.blocks;
        self.decoded_bytes += other.decoded_bytes;
        self.shapes.extend(other.shapes);
        self.reached.extend(other.reached);
    }
}

/// The blocks that are run.
struct AllBlocks {
    grammar: Grammar,
    /// The number of blocks that [`numbers`] gives.
    usual: u64,
    /// The blocks after them.
    more: Vec<[SpelledNumber; 3]>,
}

impl AllBlocks {
    fn count(&self) -> u64 {
        self.usual + self.more.len() as u64
    }

    /// Returns the numbers of a block.
    fn numbers(&self, index: u64) -> [SpelledNumber; 3] {
        match index.checked_sub(self.usual) {
            Some(place) => self.more[place as usize],
            None => numbers(self.grammar, index),
        }
    }
}

/// A text before or between blocks.
struct SurroundingText<'c> {
    text: Cow<'c, str>,
    /// The base's ids.
    ids: Vec<u32>,
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
        // Numbers with few decimals are rare, so in the stripped encoding every shape of block is run in addition; in the others, those
        // that a small range leaves out.
        let shapes = shapes_of_blocks(grammar);
        let more = if grammar.is_stripped() { Vec::new() } else { blocks_of_missing_shapes(grammar) };
        let stripped = if grammar.is_stripped() { shapes } else { 0 };
        let all = AllBlocks { grammar, usual: grammar.numbers() + stripped, more };
        let blocks = all.count();
        let chunks = blocks.div_ceil(CHUNK);
        let tasks: Vec<(usize, u64)> = (0..self.contexts.len())
            .flat_map(|context| (0..chunks).map(move |chunk| (context, chunk)))
            .collect();
        let glue: Vec<SurroundingText<'_>> =
            self.contexts.iter().map(|glue| self.between(glue)).collect::<Result<_>>()?;
        let heads: Vec<SurroundingText<'_>> =
            HEADS.iter().map(|head| self.before(head)).collect::<Result<_>>()?;
        let total = Mutex::new(NumbersRun::default());
        job.observer().begin("checking", Some(tasks.len() as u64), Unit::Items);
        let outcome = first_error(&tasks, |&(context, chunk)| {
            job.check()?;
            // The heads alternate: with several chunks in each context, all of them are used.
            let around = [&heads[chunk as usize % HEADS.len()], &glue[context]];
            let indices = chunk * CHUNK..((chunk + 1) * CHUNK).min(blocks);
            let blocks: Vec<[SpelledNumber; 3]> = indices.map(|index| all.numbers(index)).collect();
            // Decoding works token by token, so one context is enough for it.
            let run = self.chunk(&blocks, around, pieces, context == 0)?;
            total.lock().unwrap_or_else(PoisonError::into_inner).add(run);
            job.observer().advance(1);
            Ok(())
        });
        job.observer().end();
        outcome?;
        let run = total.into_inner().unwrap_or_else(PoisonError::into_inner);
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
        blocks: &[[SpelledNumber; 3]],
        [head, between]: [&SurroundingText<'_>; 2],
        pieces: &Pieces,
        decoded: bool,
    ) -> Result<NumbersRun> {
        let grammar = self.scheme.grammar;
        let mut text = head.text.to_string();
        let mut expected = head.ids.clone();
        let mut run = NumbersRun::default();
        for numbers in blocks {
            if run.blocks > 0 {
                text.push_str(&between.text);
                expected.extend(&between.ids);
            }
            let (block, starts) = block(grammar, numbers);
            let mut cuts = self.scheme.starts(numbers.map(|number| number.decimals));
            cuts.iter_mut().for_each(|cut| *cut = starts[*cut]);
            for (start, end) in spans(&cuts, block.len()) {
                let ids = pieces.get(&block[start..end]).filter(|ids| !ids.is_empty());
                expected.extend(ids.ok_or_else(|| self.broken("a piece is missing"))?);
            }
            text.push_str(&block);
            run.shapes.insert(shape(grammar, numbers));
            run.blocks += 1;
        }
        if self.extended.ids(&text)? != expected {
            let promise = format!("blocks between {:?} do not take the pieces of the scheme", between.text);
            return Err(self.broken(&promise));
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

    /// Returns the text before the first block.
    fn before<'c>(&self, head: &'c str) -> Result<SurroundingText<'c>> {
        let head = self.up_to_a_block(head);
        let ids = match self.alphabet {
            Alphabet::Bytes => self.kept(&head)?,
            Alphabet::Text => {
                let block = self.some_block();
                // On its own, a head would be a different section. Before a block, it is the part of the section up to the block.
                ids_around_blocks(self.base, &format!("{head}{block}"), &block)?.swap_remove(0)
            }
        };
        Ok(SurroundingText { text: head, ids })
    }

    /// Returns the text between two blocks.
    fn between<'c>(&self, glue: &'c str) -> Result<SurroundingText<'c>> {
        let glue = self.up_to_a_block(glue);
        let mut ids = self.kept(&glue)?;
        if self.alphabet == Alphabet::Text {
            let block = self.some_block();
            ids = ids_around_blocks(self.base, &format!("[C]{block}{glue}{block}"), &block)?.swap_remove(1);
        }
        Ok(SurroundingText { text: glue, ids })
    }
}
