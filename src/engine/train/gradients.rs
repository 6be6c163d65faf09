//! Computes losses and gradients of batches: with hand-written gradients on the threads of a CPU, or with gradients that candle
//! records, on a device.

use candle_core::Device;
use rayon::prelude::*;

use super::autograd::Autograd;
use super::batches::packs;
use super::documents::{Document, Loss, pack};
use super::kernels::{Prediction, add};
use super::network::{Network, Pack};
use super::parameters::ParameterLayout;
use crate::model::Config;
use drift_core::{Error, Job, Result};

/// The number of document tokens that a thread processes at a time, so that their activations stay in the CPU cache.
pub(super) const PACK_TOKENS: usize = 1024;

/// The approximate memory of a device that one recorded pack may take, in bytes.
const RECORDED_BYTES: usize = 8 << 30;

/// The largest number of tokens of a recorded pack.
const MOST_TOKENS: usize = 1 << 15;

/// The implementation that computes gradients.
#[derive(Debug, Clone)]
pub enum Gradients {
    /// Hand-written formulas on all threads, for CPUs.
    ByHand,
    /// candle's recorded operations on this device, for GPUs.
    Autograd(Device),
}

/// A decoder that can be trained.
pub(super) enum Trainable {
    ByHand(Network),
    Autograd { network: Box<Autograd>, pack_tokens: usize },
}

/// The loss of a batch.
pub(super) struct BatchLoss {
    /// The weighted sum of the targets' cross-entropy, in nats.
    pub nats: f64,
    /// The sum of the targets' weights.
    pub weight: f64,
    /// The gradient of `nats` with respect to every weight.
    pub gradient: Vec<f32>,
}

impl Trainable {
    /// Returns a decoder for documents of at most `longest` tokens.
    ///
    /// # Errors
    /// If the device has no room.
    pub(super) fn new(by: &Gradients, config: &Config, longest: usize) -> Result<Self> {
        Ok(match by {
            Gradients::ByHand => Trainable::ByHand(Network::new(config, longest)),
            Gradients::Autograd(device) => Trainable::Autograd {
                network: Box::new(Autograd::new(config, longest, device).map_err(candle)?),
                pack_tokens: recorded_tokens(config, longest),
            },
        })
    }

    /// Returns the layout of the weights.
    pub(super) fn layout(&self) -> &ParameterLayout {
        match self {
            Trainable::ByHand(network) => &network.layout,
            Trainable::Autograd { network, .. } => &network.layout,
        }
    }

    /// Returns the loss over a batch, and its gradient.
    ///
    /// # Errors
    /// If the device fails, or the job was cancelled.
    pub(super) fn gradient(
        &self,
        weights: &[f32],
        batch: &[Document],
        loss: Loss,
        job: &Job,
    ) -> Result<BatchLoss> {
        let limit = match self {
            Trainable::ByHand(_) => PACK_TOKENS,
            Trainable::Autograd { pack_tokens, .. } => *pack_tokens,
        };
        let packs: Vec<Pack> = packs(batch, limit).into_par_iter().map(|part| pack(part, loss)).collect();
        let weight = packs.iter().map(weight).sum();
        let (nats, gradient) = match self {
            Trainable::ByHand(network) => {
                let weights = network.weights(weights).map_err(candle)?;
                let parts = packs.par_iter().map(|pack| {
                    job.check()?;
                    network.gradient(&weights, pack).map_err(candle)
                });
                // Keeps all gradients until they can be summed in order: a sum in the order of completion would differ from run to
                // run.
                let parts = parts.collect::<Result<Vec<_>>>()?;
                let nats = parts.iter().map(|(nats, _)| nats).sum();
                (nats, sum(parts.into_iter().map(|(_, gradient)| gradient).collect()))
            }
            Trainable::Autograd { network, .. } => {
                job.check()?;
                let weights = network.weights(weights).map_err(candle)?;
                network.gradient(&weights, &packs).map_err(candle)?
            }
        };
        Ok(BatchLoss { nats, weight, gradient })
    }

    /// Returns how well each answer token of the documents is predicted.
    ///
    /// # Errors
    /// If the device fails, or the job was cancelled.
    pub(super) fn predict(
        &self,
        weights: &[f32],
        documents: &[Document],
        loss: Loss,
        job: &Job,
    ) -> Result<Vec<Vec<Prediction>>> {
        match self {
            Trainable::ByHand(network) => {
                let weights = network.weights(weights).map_err(candle)?;
                let predictions = documents.par_iter().map(|document| {
                    job.check()?;
                    network.predict(&weights, &pack([document], loss)).map_err(candle)
                });
                predictions.collect()
            }
            Trainable::Autograd { network, pack_tokens } => {
                let weights = network.weights(weights).map_err(candle)?;
                let mut predictions = Vec::new();
                for part in packs(documents, *pack_tokens) {
                    job.check()?;
                    let mut of_part =
                        network.predict(&weights, &pack(part, loss)).map_err(candle)?.into_iter();
                    // The targets of a pack are in the order of its documents, so counts suffice to separate them again.
                    let alone = part.iter().map(|document| pack([document], loss).targets.len());
                    predictions.extend(alone.map(|count| of_part.by_ref().take(count).collect::<Vec<_>>()));
                }
                Ok(predictions)
            }
        }
    }
}

/// Returns the sum of the weights of a pack's targets.
fn weight(pack: &Pack) -> f64 {
    pack.targets.iter().map(|target| f64::from(target.weight)).sum()
}

/// Returns the number of tokens of a pack whose record fits on a device. candle keeps the results of all operations for the backward
/// pass.
fn recorded_tokens(config: &Config, longest: usize) -> usize {
    let heads = (config.num_attention_heads + 2 * config.num_key_value_heads) * config.head_dim;
    let scores = config.num_attention_heads.saturating_mul(longest).saturating_mul(6);
    let layer = [12 * config.hidden_size, 16 * heads, 8 * config.intermediate_size, scores];
    let layer = layer.into_iter().fold(0, usize::saturating_add);
    let token = layer.saturating_mul(config.num_hidden_layers).saturating_add(5 * config.vocab_size);
    (RECORDED_BYTES / token.saturating_mul(size_of::<f32>())).clamp(1, MOST_TOKENS)
}

/// Sums gradients, always in their order.
fn sum(gradients: Vec<Vec<f32>>) -> Vec<f32> {
    // Parallel over weights and not over packs, so that each weight is summed in the order of the packs.
    const CHUNK: usize = 1 << 14;
    let mut gradients = gradients.into_iter();
    let mut sum = gradients.next().unwrap_or_default();
    let others: Vec<Vec<f32>> = gradients.collect();
    sum.par_chunks_mut(CHUNK).enumerate().for_each(|(n, sum)| {
        for gradient in &others {
            add(sum, &gradient[n * CHUNK..][..sum.len()]);
        }
    });
    sum
}

/// Turns an error of candle into drift's error: impossible shapes, or a device without room.
pub(super) fn candle(error: candle_core::Error) -> Error {
    Error::internal("training", error)
}
