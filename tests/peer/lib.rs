//! The models of candle-transformers beside drift's decoders: tests compare their logits and greedy texts, a benchmark
//! their speed.
//!
//! Of drift it takes the shape of a checkpoint, the prompts with their logit processors, and the draws. The weights are
//! read by candle, the models and the loop that writes are not drift's.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Instant;

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::{Activation, VarBuilder};
use candle_transformers::models::{llama, qwen3};
use drift::constraint::{Mask, State};
use drift::generate::{End, GeneratedText, GenerationResult, Options, Prompt};
use drift::model::{Architecture, Config};
use drift::sampling::{Candidates, Noise, draw};

/// A model of candle-transformers on the CPU, in f32.
pub struct CandleTransformers {
    config: Config,
    model: Model,
}

enum Model {
    Qwen3(qwen3::ModelForCausalLM),
    /// With a cache that holds nothing yet, to start from.
    Llama {
        model: llama::Llama,
        cache: llama::Cache,
        empty: llama::Cache,
    },
}

impl CandleTransformers {
    /// Loads a Hugging Face checkpoint.
    ///
    /// # Errors
    /// If candle cannot read the weights, or candle-transformers lacks some of them.
    ///
    /// # Panics
    /// If drift cannot read the config.
    pub fn load(folder: &Path) -> Result<Self> {
        let config = Config::load(folder).expect("a config that drift reads");
        let mut tensors = HashMap::new();
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            // Golden logits lie beside the weights of the fixtures.
            if name.starts_with("model") && name.ends_with(".safetensors") {
                tensors.extend(candle_core::safetensors::load(&path, &Device::Cpu)?);
            }
        }
        let weights = VarBuilder::from_tensors(tensors, DType::F32, &Device::Cpu);
        let model = match config.architecture {
            Architecture::Qwen3 => {
                Model::Qwen3(qwen3::ModelForCausalLM::new(&qwen3_config(&config), weights)?)
            }
            Architecture::Llama => {
                let config = llama_config(&config);
                let model = llama::Llama::load(weights, &config)?;
                let cache = llama::Cache::new(true, DType::F32, &config, &Device::Cpu)?;
                Model::Llama { model, empty: cache.clone(), cache }
            }
        };
        Ok(CandleTransformers { config, model })
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        match &mut self.model {
            Model::Qwen3(model) => model.clear_kv_cache(),
            Model::Llama { empty, cache, .. } => cache.clone_from(empty),
        }
    }

    /// Appends `tokens`, as many for each row, and gives the logits after the last ones: `[rows][vocab]`.
    ///
    /// # Errors
    /// If a token is out of range.
    pub fn forward(&mut self, tokens: &[Vec<u32>], offset: usize) -> Result<Vec<Vec<f32>>> {
        let width = tokens.first().map_or(0, Vec::len);
        let tokens = Tensor::from_vec(tokens.concat(), (tokens.len(), width), &Device::Cpu)?;
        let logits = match &mut self.model {
            Model::Qwen3(model) => model.forward(&tokens, offset)?.squeeze(1)?,
            Model::Llama { model, cache, .. } => model.forward(&tokens, offset, cache)?,
        };
        logits.to_vec2()
    }

    /// Writes all texts of the prompts with one token a pass. The models take one offset for all rows and no padding, so a
    /// batch is a group of prompts of equal length, and rows that have ended go through the model until the last one does.
    ///
    /// Of `options` it follows batch, sampling and seed.
    ///
    /// # Errors
    /// If a token is out of range.
    ///
    /// # Panics
    /// If a logit processor allows nothing.
    pub fn generate(&mut self, prompts: &[Prompt], options: &Options) -> Result<GenerationResult> {
        let mut by_length = BTreeMap::<usize, Vec<Row<'_>>>::new();
        for prompt in prompts {
            let rows = (0..prompt.generations).map(|generation| Row::new(prompt, generation, options));
            by_length.entry(prompt.tokens.len()).or_default().extend(rows);
        }
        let mut generated = GenerationResult::default();
        for rows in by_length.values_mut() {
            for batch in rows.chunks_mut(options.batch) {
                self.write(batch, options, &mut generated)?;
                generated.samples.extend(batch.iter_mut().map(Row::finish));
            }
        }
        Ok(generated.settled())
    }

    /// Writes the texts of one batch.
    fn write(
        &mut self,
        rows: &mut [Row<'_>],
        options: &Options,
        generated: &mut GenerationResult,
    ) -> Result<()> {
        let GenerationResult { counts, timing, .. } = generated;
        self.clear();
        let mut fed: Vec<Vec<u32>> = rows.iter().map(|row| row.prompt.tokens.clone()).collect();
        let mut offset = 0;
        while rows.iter().any(|row| row.end.is_none()) {
            let began = Instant::now();
            let logits = self.forward(&fed, offset)?;
            let computed = Instant::now();
            let over = rows.iter().filter(|row| row.end.is_some()).count();
            counts.wasted_positions += (over * fed[0].len()) as u64;
            if offset == 0 {
                timing.prefill += (computed - began).as_secs_f64();
            } else {
                timing.forward += (computed - began).as_secs_f64();
                counts.decode_steps += 1;
            }
            offset += fed[0].len();
            let context = self.config.max_position_embeddings;
            for ((row, logits), fed) in rows.iter_mut().zip(&logits).zip(&mut fed) {
                // A row that is over is fed something until the batch is.
                *fed = vec![row.choose(logits, options, context).unwrap_or(0)];
            }
            timing.sampling += computed.elapsed().as_secs_f64();
        }
        Ok(())
    }
}

/// A text that is being written.
struct Row<'p> {
    prompt: &'p Prompt,
    generation: usize,
    state: State,
    noise: Noise,
    tokens: Vec<u32>,
    forced: Vec<bool>,
    end: Option<End>,
}

impl<'p> Row<'p> {
    fn new(prompt: &'p Prompt, generation: usize, options: &Options) -> Self {
        Row {
            prompt,
            generation,
            state: prompt.constraint.start(),
            noise: Noise::new(options.seed, prompt.number, generation),
            tokens: Vec::new(),
            forced: Vec::new(),
            end: None,
        }
    }

    /// The next token, unless the text is over.
    fn choose(&mut self, logits: &[f32], options: &Options, context: usize) -> Option<u32> {
        if self.end.is_some() {
            return None;
        }
        let constraint = &*self.prompt.constraint;
        let candidates = match constraint.mask(&self.state) {
            Mask::Forced(token) => Err(token),
            Mask::Any => Ok(Candidates::Except(logits, &[])),
            Mask::Except(ids) => Ok(Candidates::Except(logits, ids)),
            Mask::Only(ids) => Ok(Candidates::Only(logits, ids)),
        };
        let forced = candidates.is_err();
        let position = self.tokens.len();
        let mut chosen = |candidates| draw(candidates, &options.sampling, &mut self.noise, position);
        let token = candidates.map_or_else(|token| token, |of| chosen(of).expect("a token that is allowed"));
        if constraint.is_over(&self.state, token) {
            self.end = Some(End::Eos);
            return None;
        }
        constraint.advance(&mut self.state, token);
        self.tokens.push(token);
        self.forced.push(forced);
        if self.tokens.len() >= self.prompt.most_tokens.min(context - self.prompt.tokens.len()) {
            self.end = Some(End::Length);
        }
        Some(token)
    }

    fn finish(&mut self) -> GeneratedText {
        GeneratedText {
            prompt: self.prompt.number,
            generation: self.generation,
            tokens: std::mem::take(&mut self.tokens),
            forced: std::mem::take(&mut self.forced),
            end: self.end.expect("a text that is over"),
            log_probabilities: None,
            log_allowed: None,
            preferred: Vec::new(),
            dead_ends: None,
        }
    }
}

fn qwen3_config(config: &Config) -> qwen3::Config {
    qwen3::Config {
        vocab_size: config.vocab_size,
        hidden_size: config.hidden_size,
        intermediate_size: config.intermediate_size,
        num_hidden_layers: config.num_hidden_layers,
        num_attention_heads: config.num_attention_heads,
        head_dim: config.head_dim,
        // `Config` refuses checkpoints with biases.
        attention_bias: false,
        num_key_value_heads: config.num_key_value_heads,
        max_position_embeddings: config.max_position_embeddings,
        sliding_window: None,
        max_window_layers: config.num_hidden_layers,
        tie_word_embeddings: config.tie_word_embeddings,
        rope_theta: config.rope_theta,
        rms_norm_eps: config.rms_norm_eps,
        use_sliding_window: false,
        hidden_act: Activation::Silu,
    }
}

fn llama_config(config: &Config) -> llama::Config {
    let rope_scaling = config.rope_scaling.map(|scaling| llama::Llama3RopeConfig {
        factor: scaling.factor as f32,
        low_freq_factor: scaling.low_freq_factor as f32,
        high_freq_factor: scaling.high_freq_factor as f32,
        original_max_position_embeddings: scaling.original_max_position_embeddings,
        rope_type: llama::Llama3RopeType::Llama3,
    });
    llama::Config {
        hidden_size: config.hidden_size,
        intermediate_size: config.intermediate_size,
        vocab_size: config.vocab_size,
        num_hidden_layers: config.num_hidden_layers,
        num_attention_heads: config.num_attention_heads,
        num_key_value_heads: config.num_key_value_heads,
        use_flash_attn: false,
        rms_norm_eps: config.rms_norm_eps,
        rope_theta: config.rope_theta as f32,
        bos_token_id: config.bos_token_id,
        // candle's decoder does not read it: rows end by their constraint.
        eos_token_id: None,
        rope_scaling,
        max_position_embeddings: config.max_position_embeddings,
        tie_word_embeddings: config.tie_word_embeddings,
    }
}
