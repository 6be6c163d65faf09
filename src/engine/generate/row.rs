//! One row of a batch: a text that is being written.

use std::ops::Range;
use std::sync::Arc;

use super::backtracking::Backtracking;
use super::cost::TokenLog;
use super::particles::group_of;
use super::schedule::Item;
use super::{End, GeneratedText, Options, Prompt};
use crate::model::cuda::WrittenText;
use drift_core::Result;
use drift_core::constraint::geometry::GeometryRow;
use drift_core::constraint::{Mask, State};
use drift_core::sampling::{Candidates, Noise, draw};
use drift_data::audit::DeadEnds;

/// A text that is being written.
#[derive(Clone)]
pub(super) struct Row<'p> {
    pub prompt: &'p Prompt,
    pub item: Item,
    /// The row's index in the cache; rows of one batch have different ones.
    pub slot: usize,
    pub state: State,
    /// The coordinates written so far, if the constraint depends on them.
    geometry: Option<GeometryRow>,
    /// How often the geometry left no token.
    dead_ends: DeadEnds,
    backtracking: Backtracking,
    /// The number of tokens that were written when the numbers of an atom were complete, for each atom; only with a geometry.
    placed: Vec<usize>,
    pub noise: Noise,
    tokens: Vec<u32>,
    forced: Vec<bool>,
    /// For each token its log probability, and the logarithm of the share that the mask allowed.
    logs: Option<(Vec<f32>, Vec<f32>)>,
    /// The logarithm of the row's weight among the texts of its group.
    pub log_weight: f64,
    pub options: &'p Options,
    /// The number of blocks that the text has ended.
    pub blocks: usize,
    /// The generation from which its first tokens come.
    pub ancestor: usize,
    /// All logits for the next token, while the row waits for its group.
    pub held: Option<Arc<[f32]>>,
    /// The tokens that the model has not read yet: the last token of the prompt or the drawn token, and the forced tokens after it.
    /// In a batch it is empty only while the row waits for its group.
    pub pending: Vec<u32>,
    /// A forced end token that waits for the logits before it, which are still needed.
    closing: Option<u32>,
    /// Whether a text that a forced token cut at its length waits for these logits.
    cut: bool,
    /// The places of forced tokens that are watched. Their logits come when the model reads the pending tokens.
    asked: Vec<usize>,
    preferred: Vec<(usize, u32)>,
    /// The largest number of tokens of the text.
    pub most: usize,
    pub end: Option<End>,
}

impl<'p> Row<'p> {
    /// Returns a row whose prompt the model has read except for the last token.
    pub(super) fn new(
        prompt: &'p Prompt,
        item: Item,
        options: &'p Options,
        context: usize,
        skips_forced: bool,
    ) -> Self {
        // Texts end at the end of the context.
        let most = prompt.most_tokens.min(context - prompt.tokens.len());
        let mut row = Row {
            prompt,
            item,
            slot: 0,
            state: prompt.constraint.start(),
            geometry: prompt.constraint.geometry().map(|geometry| geometry.row()),
            dead_ends: DeadEnds::default(),
            backtracking: Backtracking::default(),
            placed: Vec::new(),
            noise: Noise::new(options.seed, item.number, item.generation),
            tokens: Vec::new(),
            forced: Vec::new(),
            logs: options.logs().then(Default::default),
            log_weight: 0.0,
            options,
            blocks: 0,
            ancestor: item.generation,
            held: None,
            pending: prompt.tokens.last().copied().into_iter().collect(),
            closing: None,
            cut: false,
            asked: Vec::new(),
            preferred: Vec::new(),
            most,
            end: (most == 0).then_some(End::Length),
        };
        if skips_forced {
            row.follow_forced_run();
        }
        row
    }

    /// Returns the number of tokens written so far, which is the position of the next one.
    pub(super) fn written(&self) -> usize {
        self.tokens.len()
    }

    /// Appends a drawn or forced token; the model has read everything before it.
    pub(super) fn take(&mut self, token: u32, forced: bool, skips_forced: bool) {
        self.pending.clear();
        if self.write(token, forced) {
            self.end = Some(End::Eos);
        } else if skips_forced {
            self.follow_forced_run();
        }
    }

    /// Appends a token. Returns whether it was the end token, which is not written.
    fn write(&mut self, token: u32, forced: bool) -> bool {
        let constraint = &*self.prompt.constraint;
        if constraint.is_over(&self.state, token) {
            return true;
        }
        constraint.advance(&mut self.state, token);
        if let (Some(row), Some(geometry)) = (&mut self.geometry, constraint.geometry()) {
            row.write(geometry, token);
            self.placed.resize(row.place(geometry).atom, self.tokens.len() + 1);
        }
        self.tokens.push(token);
        self.forced.push(forced);
        if let Some(resampling) = &self.options.resampling {
            self.blocks += usize::from(resampling.block_ends.binary_search(&token).is_ok());
        }
        self.pending.push(token);
        if constraint.is_complete(&self.state) {
            self.end = Some(End::Eos);
        } else if self.tokens.len() >= self.most {
            self.end = Some(End::Length);
        }
        false
    }

    /// Appends the tokens that are forced next, so that one forward pass reads them all.
    pub(super) fn follow_forced_run(&mut self) {
        if self.end.is_some() {
            return;
        }
        // The run may exceed the largest number of tokens, so each token is written like a drawn one.
        let mut run = Vec::new();
        self.prompt.constraint.forced_run(&self.state, &mut run);
        for token in run {
            if self.watches(token) {
                self.asked.push(self.written());
            }
            if self.write(token, true) {
                match self.logs() || !self.asked.is_empty() {
                    // The model reads the row once more for the logits before its end.
                    true => self.closing = Some(token),
                    false => self.end = Some(End::Eos),
                }
                return;
            }
            if self.end.is_some() {
                // Its last tokens are logged like the others.
                if self.logs() {
                    (self.end, self.cut) = (None, true);
                }
                return;
            }
        }
    }

    /// Returns the tokens written so far, and for each whether it was forced.
    pub(super) fn so_far(&self) -> (&[u32], &[bool]) {
        (&self.tokens, &self.forced)
    }

    /// Returns the same text from its beginning, in the same row of the cache. Used if the written tokens are not reliable.
    pub(super) fn anew(&self, context: usize) -> Self {
        Row { slot: self.slot, ..Row::new(self.prompt, self.item, self.options, context, true) }
    }

    /// Returns the same text up to an atom, with noise that no draw has used before. The model has read all of the text.
    pub(super) fn back_at(&self, atom: usize, context: usize) -> Self {
        let kept = atom.checked_sub(1).map_or(0, |before| self.placed[before]);
        let mut row =
            Row { slot: self.slot, ..Row::new(self.prompt, self.item, self.options, context, false) };
        for (token, forced) in self.tokens.iter().zip(&self.forced).take(kept) {
            row.pending.clear();
            row.write(*token, *forced);
        }
        row.logs =
            self.logs.as_ref().map(|(tokens, allowed)| (tokens[..kept].to_vec(), allowed[..kept].to_vec()));
        row.preferred = self.preferred.iter().copied().filter(|(place, _)| *place < kept).collect();
        (row.dead_ends, row.backtracking) = (self.dead_ends, self.backtracking);
        row.dead_ends.backtracks += 1;
        let number = u64::from(row.dead_ends.backtracks);
        row.noise = Noise::renewed(self.options.seed, self.item.number, self.item.generation, number);
        row
    }

    /// Returns the tokens that the geometry leaves of those that the constraint's mask allows; `None` if it leaves all.
    pub(super) fn narrowed(&mut self) -> Option<Vec<u32>> {
        let geometry = self.prompt.constraint.geometry()?;
        self.geometry.as_mut()?.allowed(geometry, &self.state)
    }

    /// Draws a token. If the geometry excludes the one that the candidates give, it is drawn again among those that the geometry
    /// leaves, with the same noise. So a text whose numbers are all allowed does not depend on the geometry.
    pub(super) fn draw(&mut self, candidates: Candidates<'_>) -> Result<DrawOutcome> {
        let (position, sampling) = (self.written(), &self.options.sampling);
        let token = draw(candidates, sampling, &mut self.noise, position)?;
        let (Some(row), Some(geometry)) = (&mut self.geometry, self.prompt.constraint.geometry()) else {
            return Ok(DrawOutcome::Token(token));
        };
        let mut is_dead_end = false;
        // Where no token is left, the atom is held to less, in the end to nothing.
        while !row.allows(geometry, &self.state, token) {
            let ids = row.allowed(geometry, &self.state).unwrap_or_default();
            if !ids.is_empty() {
                let among = candidates.among(&ids);
                return Ok(DrawOutcome::Token(draw(among, sampling, &mut self.noise, position)?));
            }
            if !is_dead_end {
                is_dead_end = true;
                self.dead_ends.dead_ends += 1;
                // A greedy text would end in the same place, and texts that are weighted together advance together.
                let is_random = sampling.temperature.is_some() && self.options.resampling.is_none();
                if is_random
                    && let Some(atom) = self.backtracking.target(row.place(geometry), self.options.backtrack)
                {
                    return Ok(DrawOutcome::DeadEnd { atom });
                }
            }
            row.release();
        }
        Ok(DrawOutcome::Token(token))
    }

    /// Returns whether probabilities are logged.
    pub(super) fn logs(&self) -> bool {
        self.logs.is_some()
    }

    /// Logs a token that was chosen under `mask`, given all logits before it.
    pub(super) fn log(&mut self, logits: &[f32], token: u32, mask: Mask<'_>) {
        if let Some((tokens, allowed)) = &mut self.logs {
            let logged = TokenLog::new(logits, token, mask, &self.options.sampling);
            tokens.push(logged.token);
            allowed.push(logged.allowed as f32);
            self.log_weight += logged.allowed;
        }
    }

    /// Takes over a whole text that a device wrote.
    pub(super) fn take_all(&mut self, text: WrittenText, end: End) {
        self.pending.clear();
        (self.tokens, self.forced, self.end) = (text.tokens, text.forced, Some(end));
    }

    /// Returns the prompt's number and the generations of the group; `None` without resampling.
    pub(super) fn group(&self) -> Option<(usize, Range<usize>)> {
        let draws = self.options.resampling.as_ref()?.draws;
        Some((self.item.number, group_of(self.item.generation, self.prompt.generations, draws)))
    }

    /// Becomes a copy of another row of its group, with new noise of its own that no draw has used before.
    pub(super) fn go_on_from(&mut self, other: &Row<'p>, resamplings: usize) {
        let (item, slot) = (self.item, self.slot);
        let noise = Noise::renewed(self.options.seed, item.number, item.generation, resamplings as u64);
        *self = Row { item, slot, noise, ..other.clone() };
    }

    /// Returns whether the model's own choice is kept if `token` is forced.
    pub(super) fn watches(&self, token: u32) -> bool {
        self.options.watched.binary_search(&token).is_ok()
    }

    /// Takes the list of watched places, each with how many tokens before the last pending one its logits come.
    pub(super) fn asked(&mut self) -> Vec<(usize, usize)> {
        let written = self.written();
        std::mem::take(&mut self.asked).into_iter().map(|place| (place, written - place)).collect()
    }

    /// Keeps the token that the model would have written at a place.
    pub(super) fn prefer(&mut self, place: usize, token: u32) {
        self.preferred.push((place, token));
    }

    /// Ends the row if only the logits before its last tokens were missing, which are known now. Returns its forced end token, if it
    /// has one.
    pub(super) fn close(&mut self) -> Option<u32> {
        if std::mem::take(&mut self.cut) {
            self.end = Some(End::Length);
        }
        let closing = self.closing.take()?;
        self.end = Some(End::Eos);
        Some(closing)
    }

    /// Returns the finished text.
    pub(super) fn finish(self, end: End) -> GeneratedText {
        let (log_probabilities, log_allowed) = self.logs.unzip();
        GeneratedText {
            prompt: self.item.number,
            generation: self.item.generation,
            tokens: self.tokens,
            forced: self.forced,
            end,
            log_probabilities,
            log_allowed,
            preferred: self.preferred,
            dead_ends: self.geometry.map(|_| self.dead_ends),
        }
    }
}

/// The outcome of a draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DrawOutcome {
    /// A token.
    Token(u32),
    /// No token is left, and the text is written again from an atom on.
    DeadEnd {
        /// The atom.
        atom: usize,
    },
}
