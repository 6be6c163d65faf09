//! A layer of a decoder and its weights, named as in checkpoints.

use candle_core::{Result as CandleResult, Tensor};

use super::config::{Architecture, Config};
use super::failed;
use super::heads::HeadNorm;
use super::linear::Linear;
use super::weights::Weights;
use drift_core::Result;

/// A layer of a decoder.
pub(super) struct Layer {
    pub attention_norm: Tensor,
    /// Queries, keys and values side by side.
    pub qkv: Linear,
    pub head_norms: Option<(HeadNorm, HeadNorm)>,
    pub output: Linear,
    pub mlp_norm: Tensor,
    /// Gate and up side by side.
    pub gate_up: Linear,
    pub down: Linear,
}

/// The tensors of a layer, as GPU kernels read them.
pub(super) struct LayerTensors<'d> {
    /// The norms before attention and before the MLP: `[hidden]`
    pub norms: [&'d Tensor; 2],
    /// The matrices for queries, keys and values; output; gate and up; down. Each is `[in, out]`, or `[out, in]` if the flag beside
    /// it is set.
    pub matrices: [(&'d Tensor, bool); 4],
    /// The norms of queries and keys: `[head dim]`
    pub head_norms: Option<[&'d Tensor; 2]>,
}

impl Layer {
    /// Returns the same layer with each tensor mapped.
    pub(super) fn with_weights(&self, map: impl Fn(&Tensor) -> CandleResult<Tensor>) -> CandleResult<Self> {
        let norm = |norm: &HeadNorm| HeadNorm::new(map(&norm.weight)?, f64::from(norm.epsilon));
        let head_norms = match &self.head_norms {
            Some((queries, keys)) => Some((norm(queries)?, norm(keys)?)),
            None => None,
        };
        Ok(Layer {
            attention_norm: map(&self.attention_norm)?,
            qkv: self.qkv.with_weights(&map)?,
            head_norms,
            output: self.output.with_weights(&map)?,
            mlp_norm: map(&self.mlp_norm)?,
            gate_up: self.gate_up.with_weights(&map)?,
            down: self.down.with_weights(&map)?,
        })
    }

    /// Returns the tensors for GPU kernels.
    pub(super) fn tensors(&self) -> LayerTensors<'_> {
        LayerTensors {
            norms: [&self.attention_norm, &self.mlp_norm],
            matrices: [&self.qkv, &self.output, &self.gate_up, &self.down]
                .map(|linear| (linear.weights(), linear.is_transposed())),
            head_norms: self.head_norms.as_ref().map(|(queries, keys)| [&queries.weight, &keys.weight]),
        }
    }

    /// Returns the four weight matrices.
    pub(super) fn weights(&self) -> [&Tensor; 4] {
        [&self.qkv, &self.output, &self.gate_up, &self.down].map(Linear::weights)
    }

    /// Layer `index` of a checkpoint.
    ///
    /// # Errors
    /// If a weight is missing or of another shape, or the device has no room.
    pub(super) fn new(index: usize, config: &Config, weights: &mut Weights) -> Result<Self> {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let queries = config.num_attention_heads * config.head_dim;
        let keys = config.num_key_value_heads * config.head_dim;
        let name = |part: &str| format!("model.layers.{index}.{part}.weight");
        let mut linear = |parts: &[(&str, usize)], columns: usize| {
            let parts = parts.iter().map(|(part, rows)| weights.matrix(&name(part), *rows, columns));
            Linear::stacked(&parts.collect::<Result<Vec<_>>>()?).map_err(failed)
        };
        let qkv = [("self_attn.q_proj", queries), ("self_attn.k_proj", keys), ("self_attn.v_proj", keys)];
        let qkv = linear(&qkv, hidden)?;
        let output = linear(&[("self_attn.o_proj", hidden)], queries)?;
        let gate_up = linear(&[("mlp.gate_proj", inner), ("mlp.up_proj", inner)], hidden)?;
        let down = linear(&[("mlp.down_proj", hidden)], inner)?;
        let mut head_norm = |part: &str| {
            let weight = weights.norm(&name(part), config.head_dim)?;
            HeadNorm::new(weight, config.rms_norm_eps).map_err(failed)
        };
        let head_norms = match config.architecture {
            Architecture::Qwen3 => Some((head_norm("self_attn.q_norm")?, head_norm("self_attn.k_norm")?)),
            Architecture::Llama => None,
        };
        Ok(Layer {
            attention_norm: weights.norm(&name("input_layernorm"), hidden)?,
            qkv,
            head_norms,
            output,
            mlp_norm: weights.norm(&name("post_attention_layernorm"), hidden)?,
            gate_up,
            down,
        })
    }
}
