//! Qwen3 and Llama decoders: weights, one forward pass, and the LM head.

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use candle_core::{DType, Device as CandleDevice, Result as CandleResult, Tensor};
use candle_nn::ops::rms_norm;

use super::attention::{Pass, attention, gated};
use super::batch::{Batch, Feed};
use super::cache::{Cache, Room, check_cache_fits};
use super::config::Config;
use super::cuda::without_kernels;
use super::device::Device;
use super::failed;
use super::heads::Heads;
use super::in_place::{is_read_in_place, product_in_place};
use super::layer::{Layer, LayerTensors};
use super::linear::{product_with_rows, stable_product};
use super::listed::ListedRows;
use super::memory::give_back_freed;
use super::rope::Rope;
use super::tensors::PassTensors;
use super::weights::{EMBEDDING, HEAD, Weights};
use drift_core::checkpoint::CONFIG;
use drift_core::job::InputHash;
use drift_core::{Error, Result};

/// A causal language model that threads can share. All mutable state is in the [`Cache`].
pub struct Decoder {
    config: Config,
    device: Device,
    /// `[vocab, hidden]`
    embedding: Tensor,
    layers: Vec<Layer>,
    norm: Tensor,
    /// `[vocab, hidden]`; the embedding itself if the weights are tied.
    head: Tensor,
    /// Rows of the LM head that candle's operations keep.
    listed: Mutex<ListedRows>,
    /// The rotary tables for the longest cache so far, because the model's context may be far longer than any text.
    rope: Mutex<Arc<Rope>>,
    files: Vec<InputHash>,
    /// The reason why the GPU does not run whole steps with drift's kernels, once this was tried.
    refusal: OnceLock<String>,
}

/// The tensors of a decoder, as GPU kernels read them.
pub(super) struct DecoderTensors<'d> {
    /// `[vocab, hidden]`
    pub embedding: &'d Tensor,
    /// `[hidden]`
    pub norm: &'d Tensor,
    pub layers: Vec<LayerTensors<'d>>,
}

/// The tokens of a pass whose hidden states are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HiddenStates {
    /// No tokens: only keys and values are needed.
    None,
    /// The last token of each feed.
    Last,
    /// All tokens.
    All,
}

impl Decoder {
    /// Loads a Hugging Face checkpoint.
    ///
    /// # Errors
    /// If its config or a file of weights is missing, broken or of another model, a weight is not finite, or the device has no
    /// room.
    pub fn load(dir: &Path, device: &Device) -> Result<Self> {
        let config = Config::load(dir)?;
        device.check_weights_fit(dir.join(CONFIG).display(), &config)?;
        let mut weights = Weights::load(dir, &device.inner, device.matrices)?;
        let decoder = Decoder::new(config, &mut weights, device)?;
        Ok(Decoder { files: weights.finish()?, ..decoder })
    }

    /// Returns a model of this shape with random weights, for measurements of speed.
    ///
    /// # Errors
    /// If the device has no room.
    pub fn random(config: Config, seed: u64, device: &Device) -> Result<Self> {
        device.check_weights_fit("the model's shape", &config)?;
        let mut weights = Weights::random(seed, &device.inner, device.matrices);
        Decoder::new(config, &mut weights, device)
    }

    fn new(config: Config, weights: &mut Weights, device: &Device) -> Result<Self> {
        let (vocab, hidden) = (config.vocab_size, config.hidden_size);
        let embedding = weights.matrix(EMBEDDING, vocab, hidden)?;
        let layers = (0..config.num_hidden_layers).map(|i| {
            let layer = Layer::new(i, &config, weights);
            // The separate parts of a stacked tensor are free now; returns their memory layer by layer.
            give_back_freed();
            layer
        });
        let layers = layers.collect::<Result<_>>()?;
        let norm = weights.norm("model.norm.weight", hidden)?;
        let head = match config.tie_word_embeddings {
            true => embedding.clone(),
            false => weights.matrix(HEAD, vocab, hidden)?,
        };
        Ok(Decoder::of_parts(config, device.clone(), layers, [embedding, norm, head]))
    }

    /// Returns a decoder from its layers and from embedding, last norm and LM head.
    fn of_parts(
        config: Config,
        device: Device,
        layers: Vec<Layer>,
        [embedding, norm, head]: [Tensor; 3],
    ) -> Self {
        let rope = Mutex::new(Arc::new(Rope::new(&config, 0)));
        let (listed, files, refusal) = (Mutex::default(), Vec::new(), OnceLock::new());
        Decoder { config, device, embedding, layers, norm, head, listed, rope, files, refusal }
    }

    /// Returns the same weights in f32, with candle's operations on the same device. It is the reference for the rounding errors of bf16.
    ///
    /// # Errors
    /// If the device has no room.
    pub(crate) fn in_f32(&self) -> Result<Self> {
        let device = self.device.clone().without_kernels().in_f32();
        device.check_weights_fit("the same weights in f32", &self.config)?;
        let run = || {
            let widened = |tensor: &Tensor| tensor.to_dtype(DType::F32);
            let layers = self.layers.iter().map(|layer| layer.with_weights(widened));
            let layers = layers.collect::<CandleResult<_>>()?;
            let embedding = widened(&self.embedding)?;
            let head = match self.config.tie_word_embeddings {
                true => embedding.clone(),
                false => widened(&self.head)?,
            };
            let parts = [embedding, widened(&self.norm)?, head];
            Ok(Decoder::of_parts(self.config.clone(), device, layers, parts))
        };
        run().map_err(failed)
    }

    /// Returns the shape of the model.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the files of the weights; empty if the weights are random.
    pub fn files(&self) -> &[InputHash] {
        &self.files
    }

    /// Returns the device of the model.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns whether drift's own CPU kernels compute, instead of candle's operations.
    pub fn has_kernels(&self) -> bool {
        self.device.kernels
    }

    /// Keeps the first reason why the GPU does not run whole steps with drift's kernels. Strips the advice to use candle's
    /// operations, because drift already does that.
    pub(crate) fn note_refusal(&self, error: &Error) {
        self.refusal.get_or_init(|| {
            let told = error.to_string();
            let why = told.strip_suffix(&without_kernels()).unwrap_or(&told);
            why.trim_end_matches(", or ").trim_end_matches("; ").to_owned()
        });
    }

    /// Returns whether candle can still compute on its device. After some CUDA errors every later call of the process fails.
    pub(crate) fn device_works(&self) -> bool {
        let device = &self.device.inner;
        let three =
            Tensor::new(&[1f32, 2.0], device).and_then(|numbers| numbers.sum_all()?.to_scalar::<f32>());
        three.is_ok_and(|three| three == 3.0)
    }

    /// Returns the reason why the GPU does not run whole steps with drift's kernels, if this was tried and failed.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.get().map(String::as_str)
    }

    /// Returns an empty cache for `rows` rows of at most `length` tokens.
    ///
    /// # Errors
    /// If it does not fit into the memory that is free, or into the model's context.
    pub fn cache(&self, rows: usize, length: usize, room: Room) -> Result<Cache> {
        let most = self.config.max_position_embeddings;
        if length > most {
            let problem = format!("{length} tokens are more than the context of {most}");
            return Err(Error::input("the model", problem, "give shorter prompts, or allow fewer tokens"));
        }
        if let Some(free) = self.device.free_bytes() {
            check_cache_fits(&self.config, self.device.cache_dtype().size_in_bytes(), rows, length, free)?;
        }
        let device = (&self.device.inner, self.device.cache_dtype());
        Cache::new(&self.config, device, (rows, length), room, self.rope(length))
    }

    /// Returns the rotary tables for at least this many positions.
    fn rope(&self, positions: usize) -> Arc<Rope> {
        // If a thread panicked, the table that it left is still complete.
        let mut rope = self.rope.lock().unwrap_or_else(PoisonError::into_inner);
        if rope.positions() < positions {
            // A power of two, so that slowly growing caches do not recompute the tables each time.
            let more = positions.next_power_of_two().min(self.config.max_position_embeddings);
            *rope = Arc::new(Rope::new(&self.config, more.max(positions)));
        }
        rope.clone()
    }

    /// Appends `feeds` to the rows of `cache`. Returns the hidden states of the requested tokens, in order: `[wanted, hidden]`.
    ///
    /// # Errors
    /// If a token or a row is out of range, the cache is full, or the device fails.
    pub fn forward(&self, feeds: &[Feed<'_>], cache: &mut Cache, output: HiddenStates) -> Result<Tensor> {
        self.run(feeds, cache, output).map_err(failed)
    }

    fn run(&self, feeds: &[Feed<'_>], cache: &mut Cache, output: HiddenStates) -> CandleResult<Tensor> {
        let device = &self.device.inner;
        let batch = Batch::new(feeds, cache);
        cache.reserve(batch.length())?;
        let heads = self.heads();
        // The cache is borrowed mutably below, so the tables need their own handle.
        let rope = &*cache.rope.clone();
        let kernels = self.has_kernels();
        let tensors = match kernels {
            true => None,
            false => {
                let constants = cache.constants(self.device.dtype, device)?;
                Some(PassTensors::new(&batch, heads, cache.spare(), constants, device)?)
            }
        };
        let tokens = match &tensors {
            Some(tensors) => tensors.tokens.clone(),
            None => Tensor::new(&batch.tokens[..], device)?,
        };
        let pass = Pass { heads, rope, batch: &batch, tensors };
        let epsilon = self.config.rms_norm_eps as f32;
        let mut x = self.embedding.index_select(&tokens, 0)?.to_dtype(self.device.dtype)?;
        for (layer, cached) in self.layers.iter().zip(&cache.layers) {
            let h = layer.qkv.forward(&rms_norm(&x, &layer.attention_norm, epsilon)?)?;
            let h = attention(&h, layer.head_norms.as_ref(), cached, &pass)?;
            x = (x + layer.output.forward(&h)?)?;
            let h = layer.gate_up.forward(&rms_norm(&x, &layer.mlp_norm, epsilon)?)?;
            x = (x + layer.down.forward(&gated(&h, kernels)?)?)?;
        }
        for feed in feeds {
            // Only after all layers have written, because the positions of this pass follow from the old lengths.
            cache.advance(feed.row, feed.tokens.len());
        }
        let wanted: Vec<u32> = match output {
            HiddenStates::None => return x.narrow(0, 0, 0),
            HiddenStates::Last => batch.spans.iter().map(|span| span.end as u32 - 1).collect(),
            HiddenStates::All => {
                batch.spans.iter().flat_map(|span| span.start as u32..span.end as u32).collect()
            }
        };
        // Selecting copies, so it is skipped if every token of the pass is wanted, as in most passes.
        if wanted.len() < batch.tokens.len() {
            x = x.index_select(&Tensor::new(wanted, device)?, 0)?;
        }
        rms_norm(&x, &self.norm, epsilon)
    }

    /// Returns the weight matrices that a pass reads, including the LM head.
    pub(super) fn weights(&self) -> Vec<&Tensor> {
        let layers = self.layers.iter().flat_map(Layer::weights);
        layers.chain([&self.head]).collect()
    }

    /// Returns the LM head, `[vocab, hidden]`.
    pub(super) fn head(&self) -> &Tensor {
        &self.head
    }

    /// Returns all tensors except the LM head.
    pub(super) fn tensors(&self) -> DecoderTensors<'_> {
        let layers = self.layers.iter().map(Layer::tensors).collect();
        DecoderTensors { embedding: &self.embedding, norm: &self.norm, layers }
    }

    fn heads(&self) -> Heads {
        Heads {
            queries: self.config.num_attention_heads,
            kv_heads: self.config.num_key_value_heads,
            dim: self.config.head_dim,
        }
    }

    /// Returns the logits of hidden states `[rows, hidden]` for the whole vocabulary, in f32 on the host: `[rows, vocab]`.
    ///
    /// # Errors
    /// If the device fails.
    pub fn logits(&self, hidden: &Tensor) -> Result<Tensor> {
        self.whole_product(hidden).and_then(on_host).map_err(failed)
    }

    /// Logits `[rows, vocab]` in f32, left on the device that computed them.
    pub(crate) fn logits_on_device(&self, hidden: &Tensor) -> Result<Tensor> {
        let logits = self.whole_product(hidden).and_then(|logits| logits.to_dtype(DType::F32)?.contiguous());
        logits.map_err(failed)
    }

    fn whole_product(&self, hidden: &Tensor) -> CandleResult<Tensor> {
        match is_read_in_place(&self.head) {
            true => product_in_place(hidden, &self.head, None),
            false => stable_product(hidden, &self.head.t()?),
        }
    }

    /// Returns the logits for the tokens `ids` only, which are sorted, in f32 on the host: `[rows, ids]`. On the CPU they are
    /// bit-identical to those of [`Decoder::logits`].
    ///
    /// # Errors
    /// If an id is out of range, or the device fails.
    pub fn logits_of(&self, hidden: &Tensor, ids: &[u32]) -> Result<Tensor> {
        let run = || {
            if self.has_kernels() {
                return match is_read_in_place(&self.head) {
                    true => product_in_place(hidden, &self.head, Some(ids)),
                    false => product_with_rows(hidden, &self.head, ids),
                };
            }
            // If a thread panicked, the rows that it left are still complete.
            let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
            listed.product(hidden, &self.head, ids)
        };
        run().and_then(on_host).map_err(failed)
    }
}

fn on_host(logits: Tensor) -> CandleResult<Tensor> {
    logits.to_dtype(DType::F32)?.to_device(&CandleDevice::Cpu)
}
