//! The layout of a decoder's weights in one flat vector, which gradients and the optimizer share.

use std::ops::Range;

use candle_core::{Device, Result, Tensor};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::model::{Architecture, Config};

/// The standard deviation of initial weights, as in GPT-2. Matrices that write to the residual stream get `1/√(2 layers)` of it.
const INITIAL_DEVIATION: f32 = 0.02;

/// One tensor of a checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorLayout {
    /// The name in Hugging Face checkpoints.
    pub name: String,
    /// The shape, row-major: `[out, in]` for products, `[size]` for norms.
    pub shape: Vec<usize>,
    /// The range in the flat vector.
    pub range: Range<usize>,
    initial: Initial,
}

/// The initial values of a tensor.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Initial {
    /// All ones, for the scales of norms.
    Ones,
    /// Normally distributed with this standard deviation.
    Normal(f32),
}

impl TensorLayout {
    /// Returns whether it is the matrix of a product between the embedding and the LM head.
    pub fn is_hidden(&self) -> bool {
        self.decays() && self.name.contains("layers.")
    }

    /// Returns whether weight decay applies to it: to matrices, not to the scales of norms.
    pub(crate) fn decays(&self) -> bool {
        self.shape.len() > 1
    }
}

/// The weights of one layer. `qkv` and `gate_up` each cover several consecutive tensors of the checkpoint.
#[derive(Debug, Clone)]
pub struct LayerWeights<W> {
    /// Norm before attention: `[hidden]`.
    pub input_norm: W,
    /// Queries, keys, values: `[(heads + 2 kv heads) * head_dim, hidden]`.
    pub qkv: W,
    /// Norms of queries and keys, each `[head_dim]`; only Qwen3 has them.
    pub head_norms: Option<[W; 2]>,
    /// Attention output: `[hidden, heads * head_dim]`.
    pub output: W,
    /// Norm before the MLP: `[hidden]`.
    pub post_norm: W,
    /// Gate and up: `[2 * intermediate, hidden]`.
    pub gate_up: W,
    /// Down: `[hidden, intermediate]`.
    pub down: W,
}

/// The ranges of the weights of one layer in the flat vector.
pub(crate) type LayerLayout = LayerWeights<Range<usize>>;

/// The weights of a decoder, in order.
#[derive(Debug, Clone)]
pub struct ParameterLayout {
    /// Every tensor, without gaps.
    pub parameters: Vec<TensorLayout>,
    /// `[vocabulary, hidden]`.
    pub embedding: Range<usize>,
    /// The layers.
    pub layers: Vec<LayerLayout>,
    /// Norm before the LM head: `[hidden]`.
    pub norm: Range<usize>,
    /// The LM head, `[vocabulary, hidden]`; the embedding itself if they are tied.
    pub head: Range<usize>,
}

impl ParameterLayout {
    /// Returns the layout of a decoder.
    pub fn new(config: &Config) -> Self {
        let mut builder = Builder::default();
        let hidden = config.hidden_size;
        // Each layer adds to the residual stream twice. With this factor the variance at the end does not grow with the number of
        // layers.
        let residual = INITIAL_DEVIATION / (2.0 * config.num_hidden_layers as f32).sqrt();
        let embedding = builder.matrix("model.embed_tokens", config.vocab_size, hidden, INITIAL_DEVIATION);
        let layers = (0..config.num_hidden_layers).map(|n| builder.layer(config, n, residual)).collect();
        let norm = builder.norm("model.norm", hidden);
        let head = match config.tie_word_embeddings {
            true => embedding.clone(),
            false => builder.matrix("lm_head", config.vocab_size, hidden, INITIAL_DEVIATION),
        };
        ParameterLayout { parameters: builder.parameters, embedding, layers, norm, head }
    }

    /// Returns the number of weights.
    pub fn size(&self) -> usize {
        self.parameters.last().map_or(0, |last| last.range.end)
    }

    /// Returns the names and shapes of the tensors of a checkpoint, in order.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &[usize])> {
        self.parameters.iter().map(|parameter| (&*parameter.name, &*parameter.shape))
    }

    /// Returns the rows of some tokens in the embedding and the LM head: their ranges, and the layout of a vector of only these rows.
    pub fn rows(&self, ids: &[u32]) -> (Vec<Range<usize>>, ParameterLayout) {
        let tables = self.parameters.iter().filter(|p| [&self.embedding, &self.head].contains(&&p.range));
        let (mut places, mut builder) = (Vec::new(), Builder::default());
        for table in tables {
            let hidden = table.shape[1];
            let row = |id: &u32| table.range.start + *id as usize * hidden;
            places.extend(ids.iter().map(|id| row(id)..row(id) + hidden));
            builder.add(&table.name, vec![ids.len(), hidden], table.initial);
        }
        let ranges: Vec<Range<usize>> = builder.parameters.iter().map(|p| p.range.clone()).collect();
        let table = |at: Option<&Range<usize>>| at.cloned().unwrap_or(0..0);
        let (embedding, head) = (table(ranges.first()), table(ranges.last()));
        // There are no norms among the rows; an empty range stands for each.
        let norm = builder.end..builder.end;
        (places, ParameterLayout { parameters: builder.parameters, embedding, layers: vec![], norm, head })
    }

    /// Returns the weights before the first step, which depend only on the seed.
    pub fn initial(&self, seed: u64) -> Vec<f32> {
        let mut values = vec![1.0; self.size()];
        for (stream, parameter) in self.parameters.iter().enumerate() {
            if let Initial::Normal(deviation) = parameter.initial {
                let mut random = ChaCha8Rng::seed_from_u64(seed);
                // Each tensor has its own random stream, so that its weights do not depend on the sizes of earlier tensors.
                random.set_stream(stream as u64);
                values[parameter.range.clone()].iter_mut().for_each(|v| *v = deviation * normal(&mut random));
            }
        }
        values
    }
}

/// Returns a standard normal draw (Box and Muller, 1958).
pub(super) fn normal(random: &mut ChaCha8Rng) -> f32 {
    // `1 - u` is in (0, 1], so its logarithm is finite.
    let (u, v): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
    ((-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()) as f32
}

#[derive(Default)]
struct Builder {
    parameters: Vec<TensorLayout>,
    end: usize,
}

impl Builder {
    fn add(&mut self, name: &str, shape: Vec<usize>, initial: Initial) -> Range<usize> {
        let range = self.end..self.end + shape.iter().product::<usize>();
        self.end = range.end;
        self.parameters.push(TensorLayout { name: name.to_owned(), shape, range: range.clone(), initial });
        range
    }

    fn matrix(&mut self, name: &str, out: usize, into: usize, deviation: f32) -> Range<usize> {
        self.add(&format!("{name}.weight"), vec![out, into], Initial::Normal(deviation))
    }

    fn norm(&mut self, name: &str, size: usize) -> Range<usize> {
        self.add(&format!("{name}.weight"), vec![size], Initial::Ones)
    }

    fn layer(&mut self, config: &Config, n: usize, residual: f32) -> LayerLayout {
        let (hidden, inner, dim) = (config.hidden_size, config.intermediate_size, config.head_dim);
        let (heads, kv_heads) = (config.num_attention_heads, config.num_key_value_heads);
        let name = |part: &str| format!("model.layers.{n}.{part}");
        let deviation = INITIAL_DEVIATION;
        let input_norm = self.norm(&name("input_layernorm"), hidden);
        let q = self.matrix(&name("self_attn.q_proj"), heads * dim, hidden, deviation);
        self.matrix(&name("self_attn.k_proj"), kv_heads * dim, hidden, deviation);
        let v = self.matrix(&name("self_attn.v_proj"), kv_heads * dim, hidden, deviation);
        let head_norms = (config.architecture == Architecture::Qwen3)
            .then(|| ["q_norm", "k_norm"].map(|norm| self.norm(&name(&format!("self_attn.{norm}")), dim)));
        let output = self.matrix(&name("self_attn.o_proj"), hidden, heads * dim, residual);
        let post_norm = self.norm(&name("post_attention_layernorm"), hidden);
        let gate = self.matrix(&name("mlp.gate_proj"), inner, hidden, deviation);
        let up = self.matrix(&name("mlp.up_proj"), inner, hidden, deviation);
        let down = self.matrix(&name("mlp.down_proj"), hidden, inner, residual);
        // They were added consecutively, so a product with all of them reads one range.
        let (qkv, gate_up) = (q.start..v.end, gate.start..up.end);
        LayerLayout { input_norm, qkv, head_norms, output, post_norm, gate_up, down }
    }
}

/// The weights of one layer as tensors, for products. Norms stay slices.
pub struct LayerMatrices {
    /// Queries, keys, values: `[(heads + 2 kv heads) * head_dim, hidden]`.
    pub qkv: Tensor,
    /// Attention output: `[hidden, heads * head_dim]`.
    pub output: Tensor,
    /// Gate and up: `[2 * intermediate, hidden]`.
    pub gate_up: Tensor,
    /// Down: `[hidden, intermediate]`.
    pub down: Tensor,
}

/// The weights of one step.
pub struct WeightTensors<'v> {
    /// All weights, flat.
    pub values: &'v [f32],
    /// The LM head, `[vocabulary, hidden]`.
    pub head: Tensor,
    /// The layers.
    pub layers: Vec<LayerMatrices>,
}

impl<'v> WeightTensors<'v> {
    /// Copies the matrices of a flat vector into tensors.
    ///
    /// # Errors
    /// If `values` is not as long as the layout.
    pub fn new(layout: &ParameterLayout, hidden: usize, values: &'v [f32]) -> Result<Self> {
        let matrix = |range: &Range<usize>, columns: usize| {
            Tensor::from_slice(&values[range.clone()], (range.len() / columns, columns), &Device::Cpu)
        };
        let layers = layout.layers.iter().map(|layer| {
            Ok(LayerMatrices {
                qkv: matrix(&layer.qkv, hidden)?,
                output: matrix(&layer.output, layer.output.len() / hidden)?,
                gate_up: matrix(&layer.gate_up, hidden)?,
                down: matrix(&layer.down, layer.down.len() / hidden)?,
            })
        });
        let layers = layers.collect::<Result<_>>()?;
        Ok(WeightTensors { values, head: matrix(&layout.head, hidden)?, layers })
    }
}
