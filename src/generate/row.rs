//! One row of a batch: a text that is being written.

use super::sample::Noise;
use super::schedule::Item;
use super::{End, GeneratedText, Options, Prompt};
use crate::constraint::State;

/// A text that is being written.
pub(super) struct Row<'p> {
    pub prompt: &'p Prompt,
    item: Item,
    pub state: State,
    pub noise: Noise,
    tokens: Vec<u32>,
    forced: Vec<bool>,
    log_probabilities: Option<Vec<f32>>,
    /// Tokens that the model has not read yet: the last of the prompt or the one that was drawn, and what is forced
    /// after it. Never empty while the row is in the batch.
    pub pending: Vec<u32>,
    /// An end of text that was forced, while something is still to be learned from the logits before it.
    closing: Option<u32>,
    /// As [`Options::watched`].
    watched: &'p [u32],
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
        let most = prompt.most_tokens.min(context - prompt.tokens.len());
        let mut row = Row {
            prompt,
            item,
            state: prompt.constraint.start(),
            noise: Noise::new(options.seed, item.prompt, item.generation),
            tokens: Vec::new(),
            forced: Vec::new(),
            log_probabilities: options.log_probabilities.then(Vec::new),
            pending: prompt.tokens.last().copied().into_iter().collect(),
            closing: None,
            watched: &options.watched,
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
        let mut run = Vec::new();
        self.prompt.constraint.forced_run(&self.state, &mut run);
        for token in run {
            if self.watches(token) {
                self.asked.push(self.written());
            }
            if self.write(token, true) {
                match self.logs() || !self.asked.is_empty() {
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

    /// Whether probabilities are logged.
    pub(super) fn logs(&self) -> bool {
        self.log_probabilities.is_some()
    }

    /// Logs the probability of a token.
    pub(super) fn log(&mut self, log_probability: f32) {
        self.log_probabilities.iter_mut().for_each(|log| log.push(log_probability));
    }

    /// Whether the model's own choice is kept where `token` is forced.
    pub(super) fn watches(&self, token: u32) -> bool {
        self.watched.binary_search(&token).is_ok()
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
        GeneratedText {
            prompt: self.item.prompt,
            generation: self.item.generation,
            tokens: self.tokens,
            forced: self.forced,
            end,
            log_probabilities: self.log_probabilities,
            preferred: self.preferred,
        }
    }
}
