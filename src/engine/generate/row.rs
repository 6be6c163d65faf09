//! One row of a batch: a text that is being written.

use std::ops::Range;
use std::sync::Arc;

use super::cost::Logged;
use super::particles::group_of;
use super::schedule::Item;
use super::{End, GeneratedText, Options, Prompt};
use crate::model::cuda::WrittenText;
use drift_core::constraint::{Mask, State};
use drift_core::sampling::Noise;

/// A text that is being written.
#[derive(Clone)]
pub(super) struct Row<'p> {
    pub prompt: &'p Prompt,
    item: Item,
    /// Its row of the cache; rows of one batch have different ones.
    pub slot: usize,
    pub state: State,
    pub noise: Noise,
    tokens: Vec<u32>,
    forced: Vec<bool>,
    /// Of each token, its probability and what the mask left.
    logs: Option<(Vec<f32>, Vec<f32>)>,
    /// Logarithm of its weight among the texts of its group.
    pub log_weight: f64,
    options: &'p Options,
    /// Blocks that it ended.
    pub blocks: usize,
    /// The generation that its first tokens come from.
    pub ancestor: usize,
    /// All logits for the next token, while the row waits for its group.
    pub held: Option<Arc<[f32]>>,
    /// Tokens that the model has not read yet: the last of the prompt or the one that was drawn, and what is forced
    /// after it. Empty in the batch only while the row waits for its group.
    pub pending: Vec<u32>,
    /// An end of text that was forced, while something is still to be learned from the logits before it.
    closing: Option<u32>,
    /// Places of watched tokens that were forced, whose logits come when the model reads what is pending.
    asked: Vec<usize>,
    preferred: Vec<(usize, u32)>,
    most: usize,
    pub end: Option<End>,
}

impl<'p> Row<'p> {
    /// A row whose prompt the model has read but for the last token.
    pub(super) fn new(
        prompt: &'p Prompt,
        item: Item,
        options: &'p Options,
        context: usize,
        skips_forced: bool,
    ) -> Self {
        // Texts end where the context does.
        let most = prompt.most_tokens.min(context - prompt.tokens.len());
        let mut row = Row {
            prompt,
            item,
            slot: 0,
            state: prompt.constraint.start(),
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

    /// Tokens written so far, which is the position of the next one.
    pub(super) fn written(&self) -> usize {
        self.tokens.len()
    }

    /// Takes what was drawn or forced; the model has read everything before it.
    pub(super) fn take(&mut self, token: u32, forced: bool, skips_forced: bool) {
        self.pending.clear();
        if self.write(token, forced) {
            self.end = Some(End::Eos);
        } else if skips_forced {
            self.follow_forced_run();
        }
    }

    /// Appends a token; whether it was the end of text.
    fn write(&mut self, token: u32, forced: bool) -> bool {
        let constraint = &*self.prompt.constraint;
        if constraint.is_over(&self.state, token) {
            return true;
        }
        constraint.advance(&mut self.state, token);
        self.tokens.push(token);
        self.forced.push(forced);
        if let Some(resampling) = &self.options.resampling {
            self.blocks += usize::from(resampling.block_ends.binary_search(&token).is_ok());
        }
        self.pending.push(token);
        if self.tokens.len() >= self.most {
            self.end = Some(End::Length);
        }
        false
    }

    /// Appends what is forced anyway, so that one forward pass reads it all.
    fn follow_forced_run(&mut self) {
        if self.end.is_some() {
            return;
        }
        // The run may go past the most tokens, so each is written as if it had been drawn.
        let mut run = Vec::new();
        self.prompt.constraint.forced_run(&self.state, &mut run);
        for token in run {
            if self.watches(token) {
                self.asked.push(self.written());
            }
            if self.write(token, true) {
                match self.logs() || !self.asked.is_empty() {
                    // The row goes through the model once more, for the logits before its end.
                    true => self.closing = Some(token),
                    false => self.end = Some(End::Eos),
                }
                return;
            }
            if self.end.is_some() {
                return;
            }
        }
    }

    /// What it has written so far, and which of these tokens were forced.
    pub(super) fn so_far(&self) -> (&[u32], &[bool]) {
        (&self.tokens, &self.forced)
    }

    /// The same text from its beginning, in the same row of the cache: where what was written is not to be relied on.
    pub(super) fn anew(&self, context: usize) -> Self {
        Row { slot: self.slot, ..Row::new(self.prompt, self.item, self.options, context, true) }
    }

    /// Whether probabilities are logged.
    pub(super) fn logs(&self) -> bool {
        self.logs.is_some()
    }

    /// Logs a token that was taken under `mask`, given all logits before it.
    pub(super) fn log(&mut self, logits: &[f32], token: u32, mask: Mask<'_>) {
        if let Some((tokens, allowed)) = &mut self.logs {
            let logged = Logged::new(logits, token, mask, &self.options.sampling);
            tokens.push(logged.token);
            allowed.push(logged.allowed as f32);
            self.log_weight += logged.allowed;
        }
    }

    /// Index of its prompt.
    pub(super) fn prompt_index(&self) -> usize {
        self.item.prompt
    }

    /// The most tokens that it may have.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Takes a whole text that a device wrote.
    pub(super) fn take_all(&mut self, text: WrittenText, end: End) {
        self.pending.clear();
        (self.tokens, self.forced, self.end) = (text.tokens, text.forced, Some(end));
    }

    /// The prompt's number and the generations that are resampled together; none if nothing is.
    pub(super) fn group(&self) -> Option<(usize, Range<usize>)> {
        let draws = self.options.resampling.as_ref()?.draws;
        Some((self.item.number, group_of(self.item.generation, self.prompt.generations, draws)))
    }

    /// The seed of all draws.
    pub(super) fn seed(&self) -> u64 {
        self.options.seed
    }

    /// Which of its prompt's texts it is.
    pub(super) fn generation(&self) -> usize {
        self.item.generation
    }

    /// Becomes a copy of another row of its group, with noise of its own that nothing was drawn with before.
    pub(super) fn go_on_from(&mut self, other: &Row<'p>, resamplings: usize) {
        let (item, slot) = (self.item, self.slot);
        let noise = Noise::renewed(self.options.seed, item.number, item.generation, resamplings as u64);
        *self = Row { item, slot, noise, ..other.clone() };
    }

    /// Whether the model's own choice is kept where `token` is forced.
    pub(super) fn watches(&self, token: u32) -> bool {
        self.options.watched.binary_search(&token).is_ok()
    }

    /// The places that are asked for, each with how many tokens before the last its logits come.
    pub(super) fn asked(&mut self) -> Vec<(usize, usize)> {
        let written = self.written();
        std::mem::take(&mut self.asked).into_iter().map(|place| (place, written - place)).collect()
    }

    /// Keeps what the model would have written at a place.
    pub(super) fn prefer(&mut self, place: usize, token: u32) {
        self.preferred.push((place, token));
    }

    /// The forced end of text before which the logits are known now, which ends the row.
    pub(super) fn close(&mut self) -> Option<u32> {
        let closing = self.closing.take()?;
        self.end = Some(End::Eos);
        Some(closing)
    }

    /// The finished text.
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
        }
    }
}
