//! Loss and gradient of a decoder over one pack of documents, written by hand.
//!
//! The formulas are those of Hugging Face's Qwen3 and Llama. candle computes the products; the steps between them and their
//! derivatives are in `kernels` and `attention`.

use std::ops::Range;

use candle_core::{Result, Tensor};

use super::attention::{Heads, attend};
use super::kernels::{Prediction, Rotary, add, cross_entropy, rms_norm, swiglu};
use super::parameters::{LayerLayout, LayerMatrices, ParameterLayout, WeightTensors};
use super::tensors::{matrix, values};
use crate::model::Config;

/// Concatenated documents. They do not attend to one another, and positions begin at 0 in each.
#[derive(Debug, Clone, Default)]
pub struct Pack {
    /// The token ids.
    pub tokens: Vec<u32>,
    /// The rows of each document.
    pub documents: Vec<Range<usize>>,
    /// The targets, in the order of the rows that predict them.
    pub targets: Vec<Target>,
}

/// A token to predict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target {
    /// The row that predicts it, which is the row of the token before it.
    pub row: usize,
    /// The id of the target.
    pub token: u32,
    /// The weight in the loss.
    pub weight: f32,
}

/// A decoder's shape, ready to run.
pub struct Network {
    /// The layout of the weights.
    pub layout: ParameterLayout,
    pub(super) heads: Heads,
    pub(super) hidden: usize,
    pub(super) inner: usize,
    eps: f32,
    rotary: Rotary,
}

/// The values of a layer that the backward pass needs; matrices of `[tokens, …]`.
pub(super) struct Layer {
    /// The layer's input: `[tokens, hidden]`.
    pub input: Vec<f32>,
    pub input_inverse: Vec<f32>,
    /// The normed input.
    pub normed: Tensor,
    /// Queries and keys before the norms of heads, and the inverses of their norms; only Qwen3 has them.
    pub head_norms: Option<[(Vec<f32>, Vec<f32>); 2]>,
    /// The rotated queries and keys, and the values.
    pub qkv: [Tensor; 3],
    pub probabilities: Vec<Tensor>,
    /// The output of attention: `[tokens, heads * dim]`.
    pub mixed: Tensor,
    /// The state between attention and MLP: `[tokens, hidden]`.
    pub middle: Vec<f32>,
    pub middle_inverse: Vec<f32>,
    /// The normed state: `middle` times its inverse norm and the weights of the norm, `[tokens, hidden]`.
    pub middle_normed: Tensor,
    /// `[tokens, 2 * intermediate]`.
    pub gate_up: Tensor,
    /// `[tokens, intermediate]`.
    pub activated: Tensor,
}

/// The last hidden states, and the values that the backward pass needs.
pub(super) struct Forward {
    pub layers: Vec<Layer>,
    /// `[tokens, hidden]`.
    pub output: Vec<f32>,
    pub output_inverse: Vec<f32>,
    /// The normed output: `output` times its inverse norm and the weights of the norm, `[tokens, hidden]`.
    pub normed: Tensor,
}

impl Network {
    /// Returns a decoder for documents of at most `longest` tokens.
    pub fn new(config: &Config, longest: usize) -> Self {
        Network {
            layout: ParameterLayout::new(config),
            heads: Heads {
                queries: config.num_attention_heads,
                kv_heads: config.num_key_value_heads,
                dim: config.head_dim,
            },
            hidden: config.hidden_size,
            inner: config.intermediate_size,
            eps: config.rms_norm_eps as f32,
            rotary: Rotary::new(config, longest),
        }
    }

    /// Returns the weights of one step, as tensors.
    ///
    /// # Errors
    /// If their number does not match the layout.
    pub fn weights<'v>(&self, flat: &'v [f32]) -> Result<WeightTensors<'v>> {
        WeightTensors::new(&self.layout, self.hidden, flat)
    }

    /// Returns the logits of every row, `[tokens, vocabulary]`.
    ///
    /// # Errors
    /// If candle refuses a product.
    pub fn logits(&self, weights: &WeightTensors<'_>, pack: &Pack) -> Result<Tensor> {
        self.forward(weights, pack)?.normed.matmul(&weights.head.t()?)
    }

    /// Returns how well each target is predicted.
    ///
    /// # Errors
    /// If candle refuses a product.
    pub fn predict(&self, weights: &WeightTensors<'_>, pack: &Pack) -> Result<Vec<Prediction>> {
        let logits = self.logits(weights, pack)?;
        Ok(self.judge(&values(&logits)?, pack).0)
    }

    /// Returns the predictions of the targets, and the gradient of their weighted cross-entropy with respect to the logits.
    pub(super) fn judge(&self, logits: &[f32], pack: &Pack) -> (Vec<Prediction>, Vec<f32>) {
        let vocabulary = self.layout.embedding.len() / self.hidden;
        // Rows without a target stay 0, because they are not part of the loss.
        let mut gradient = vec![0.0; logits.len()];
        let predictions = pack.targets.iter().map(|target| {
            let row = target.row * vocabulary..(target.row + 1) * vocabulary;
            cross_entropy(&logits[row.clone()], target.token as usize, target.weight, &mut gradient[row])
        });
        (predictions.collect(), gradient)
    }

    pub(super) fn forward(&self, weights: &WeightTensors<'_>, pack: &Pack) -> Result<Forward> {
        let table = &weights.values[self.layout.embedding.clone()];
        let rows = pack.tokens.iter().map(|&token| &table[token as usize * self.hidden..][..self.hidden]);
        let mut x = rows.collect::<Vec<_>>().concat();
        let mut layers = Vec::with_capacity(weights.layers.len());
        for (layout, matrices) in self.layout.layers.iter().zip(&weights.layers) {
            let (layer, output) = self.layer(weights, (layout, matrices), x, pack)?;
            layers.push(layer);
            x = output;
        }
        let (normed, output_inverse) = rms_norm(&x, &weights.values[self.layout.norm.clone()], self.eps);
        Ok(Forward { layers, output: x, output_inverse, normed: matrix(normed, self.hidden)? })
    }

    fn layer(
        &self,
        weights: &WeightTensors<'_>,
        (layout, matrices): (&LayerLayout, &LayerMatrices),
        input: Vec<f32>,
        pack: &Pack,
    ) -> Result<(Layer, Vec<f32>)> {
        let scale = |range: &Range<usize>| &weights.values[range.clone()];
        let (normed, input_inverse) = rms_norm(&input, scale(&layout.input_norm), self.eps);
        let normed = matrix(normed, self.hidden)?;
        let projected = normed.matmul(&matrices.qkv.t()?)?;
        let [mut q, mut k, v] = self.split(&values(&projected)?);
        let head_norms = layout.head_norms.as_ref().map(|[q_norm, k_norm]| {
            [(&mut q, q_norm), (&mut k, k_norm)].map(|(heads, norm)| {
                let (normed, inverse) = rms_norm(heads, scale(norm), self.eps);
                // The backward pass needs the input of the norm, not only its output.
                (std::mem::replace(heads, normed), inverse)
            })
        });
        self.turn(&mut q, pack, false);
        self.turn(&mut k, pack, false);
        let [wide, narrow] = [self.heads.queries, self.heads.kv_heads].map(|heads| heads * self.heads.dim);
        let qkv = [matrix(q, wide)?, matrix(k, narrow)?, matrix(v, narrow)?];
        let (mixed, probabilities) = attend(&qkv, &pack.documents, self.heads)?;
        let mixed = matrix(mixed, wide)?;
        // Kept beside its sum, because the backward pass also needs the input of the norm.
        let mut middle = input.clone();
        add(&mut middle, &values(&mixed.matmul(&matrices.output.t()?)?)?);
        let (middle_normed, middle_inverse) = rms_norm(&middle, scale(&layout.post_norm), self.eps);
        let middle_normed = matrix(middle_normed, self.hidden)?;
        let gate_up = middle_normed.matmul(&matrices.gate_up.t()?)?;
        let activated = matrix(swiglu(&values(&gate_up)?, self.inner), self.inner)?;
        let mut output = middle.clone();
        add(&mut output, &values(&activated.matmul(&matrices.down.t()?)?)?);
        let layer = Layer {
            input,
            input_inverse,
            normed,
            head_norms,
            qkv,
            probabilities,
            mixed,
            middle,
            middle_inverse,
            middle_normed,
            gate_up,
            activated,
        };
        Ok((layer, output))
    }

    /// Returns the queries, keys and values of rows `[queries | keys | values]`.
    fn split(&self, projected: &[f32]) -> [Vec<f32>; 3] {
        let [wide, narrow] = [self.heads.queries, self.heads.kv_heads].map(|heads| heads * self.heads.dim);
        let rows = || projected.chunks_exact(wide + 2 * narrow);
        [0..wide, wide..wide + narrow, wide + narrow..wide + 2 * narrow]
            .map(|columns| rows().map(|row| &row[columns.clone()]).collect::<Vec<_>>().concat())
    }

    /// Rotates the heads of each row by its position in its document, or back.
    pub(super) fn turn(&self, heads: &mut [f32], pack: &Pack, back: bool) {
        let width = heads.len() / pack.tokens.len();
        for document in &pack.documents {
            let rows = heads[document.start * width..document.end * width].chunks_exact_mut(width);
            for (position, row) in rows.enumerate() {
                row.chunks_exact_mut(self.heads.dim).for_each(|head| self.rotary.turn(head, position, back));
            }
        }
    }
}
