//! The likelihood of given texts under a model.

use rayon::prelude::*;

use super::Engine;
use crate::model::{Decoder, Feed, HiddenStates, Room};
use drift_core::constraint::Mask;
use drift_core::job::Unit;
use drift_core::sampling::log_probability;
use drift_core::{Error, Job, Result};

/// The largest number of logits in memory at a time.
const LOGITS: usize = 1 << 24;

/// A text to score.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The tokens before the scored ones; at least one.
    pub prompt: Vec<u32>,
    /// The tokens to score, including the end token.
    pub answer: Vec<u32>,
}

impl Engine {
    /// Returns the negative log likelihood of each answer after its prompt, in nats, summed over its tokens, without a mask and at
    /// temperature 1.
    ///
    /// # Errors
    /// If a text is longer than the context, the device fails, or the job was cancelled.
    pub fn nats(&self, texts: &[Text], job: &Job) -> Result<Vec<f64>> {
        let decoder = &self.decoder;
        job.observer().begin("scoring", Some(texts.len() as u64), Unit::Items);
        let one = |text: &Text| {
            job.check()?;
            let nats = nats(decoder, text)?;
            job.observer().advance(1);
            Ok(nats)
        };
        // One text is enough work for a GPU; the cores of a CPU need several.
        let nats = match decoder.has_kernels() {
            true => texts.par_iter().map(one).collect(),
            false => texts.iter().map(one).collect(),
        };
        job.observer().end();
        nats
    }

    /// By how much the best logit that `mask` allows after `text` exceeds the second best; `None` if fewer than two are allowed.
    ///
    /// # Errors
    /// If the text is longer than the context, or the device fails.
    pub fn lead(&self, text: &[u32], mask: Mask<'_>) -> Result<Option<f32>> {
        let decoder = &self.decoder;
        let mut cache = decoder.cache(1, text.len(), Room::Static)?;
        let hidden = decoder.forward(&[Feed { row: 0, tokens: text }], &mut cache, HiddenStates::Last)?;
        let logits = decoder.logits(&hidden)?.flatten_all().and_then(|logits| logits.to_vec1::<f32>());
        let mut best = [f32::NEG_INFINITY; 2];
        for (id, logit) in (0u32..).zip(logits.map_err(crate::model::failed)?) {
            // The cheap test comes first, so that the mask is searched for few ids.
            if logit > best[1] && mask.allows(id) {
                best = if logit > best[0] { [logit, best[0]] } else { [best[0], logit] };
            }
        }
        Ok(best[1].is_finite().then(|| best[0] - best[1]))
    }
}

fn nats(decoder: &Decoder, text: &Text) -> Result<f64> {
    let all: Vec<u32> = text.prompt.iter().chain(&text.answer).copied().collect();
    // The last token is predicted but never read. The last token of the prompt predicts the first of the answer.
    let (fed, first) = (&all[..all.len() - 1], text.prompt.len() - 1);
    let mut cache = decoder.cache(1, fed.len(), Room::Static)?;
    // Read in pieces, because all logits of a long text would take gigabytes.
    let width = (LOGITS / decoder.config().vocab_size).max(1);
    let (mut total, mut at) = (0.0, 0);
    for tokens in fed.chunks(width) {
        let hidden = decoder.forward(&[Feed { row: 0, tokens }], &mut cache, HiddenStates::All)?;
        let logits = decoder.logits(&hidden)?.to_vec2::<f32>().map_err(crate::model::failed)?;
        for row in logits {
            at += 1;
            if at > first {
                total -= f64::from(log_probability(&row, all[at]));
            }
        }
    }
    let problem = "the model's logits are not numbers";
    if total.is_finite() { Ok(total) } else { Err(Error::input("the model", problem, "check its weights")) }
}
