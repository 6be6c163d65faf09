//! The models of candle-transformers, as they come: one offset for all rows and no padding, so that a batch is a group
//! of equal prompt length, forced tokens take a pass each, and rows that have ended stay until the last one does.

use std::path::Path;

use candle_core::{DType, Tensor};
use candle_nn::{Activation, VarBuilder};
use candle_transformers::models::{llama, qwen3};

use super::clock::{Clock, Phase};
use super::row::Row;
use super::schedule::{Item, groups_of_equal_length};
use super::sink::{SentSoFar, TextDelta, TextSink};
use super::{Generated, GeneratedText, Options, Prompt, WorkCounts};
use crate::model::{
    Architecture, Config, Device, check_cache_fits, check_fits, checked_product, failed, free_memory,
    load_tensors,
};
use drift_core::checkpoint::CONFIG;
use drift_core::constraint::Mask;
use drift_core::error::{Error, Parameter, Result};
use drift_core::job::{InputHash, Job};
use drift_core::sampling::{Candidates, draw, most_likely};

/// A model of candle-transformers.
pub struct Baseline {
    config: Config,
    device: Device,
    model: Model,
    files: Vec<InputHash>,
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

impl Baseline {
    /// Loads a Hugging Face checkpoint.
    ///
    /// # Errors
    /// If it is missing, broken, or one that candle-transformers does not run.
    pub fn load(dir: &Path, device: &Device) -> Result<Self> {
        let config = Config::load(dir)?;
        let heads = config.num_attention_heads * config.head_dim;
        if config.architecture == Architecture::Llama && heads != config.hidden_size {
            let problem = "candle-transformers' Llama takes no head_dim of its own";
            return Err(Error::input(dir.display(), problem, format!("use {} drift", Parameter::Engine)));
        }
        // Its tables of angles are of all positions that the config names.
        let tables = checked_product(&[config.max_position_embeddings, config.head_dim, size_of::<f32>()]);
        let place = dir.join(CONFIG);
        check_fits(
            &format!("{}: the tables of positions", place.display()),
            tables,
            free_memory(),
            &format!("use {} drift", Parameter::Engine),
        )?;
        device.clone().without_kernels().check_weights_fit(place.display(), &config)?;
        let (tensors, files) = load_tensors(dir, device)?;
        let (dtype, inner) = (device.dtype(), device.inner());
        let weights = VarBuilder::from_tensors(tensors, dtype, inner);
        let model = match config.architecture {
            Architecture::Qwen3 => {
                Model::Qwen3(qwen3::ModelForCausalLM::new(&qwen3_config(&config), weights).map_err(failed)?)
            }
            Architecture::Llama => {
                let config = llama_config(&config);
                let model = llama::Llama::load(weights, &config).map_err(failed)?;
                let cache = llama::Cache::new(true, dtype, &config, inner).map_err(failed)?;
                Model::Llama { model, empty: cache.clone(), cache }
            }
        };
        Ok(Baseline { config, device: device.clone(), model, files })
    }

    /// The files of its weights.
    pub fn files(&self) -> &[InputHash] {
        &self.files
    }

    /// The shape.
    pub fn config(&self) -> &Config {
        &self.config
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
    /// If a token is out of range, or the device fails.
    pub fn forward(&mut self, tokens: &[Vec<u32>], offset: usize) -> Result<Vec<Vec<f32>>> {
        let width = tokens.first().map_or(0, Vec::len);
        let mut run = || -> candle_core::Result<Vec<Vec<f32>>> {
            let tokens = Tensor::from_vec(tokens.concat(), (tokens.len(), width), self.device.inner())?;
            let logits = match &mut self.model {
                Model::Qwen3(model) => model.forward(&tokens, offset)?.squeeze(1)?,
                Model::Llama { model, cache, .. } => model.forward(&tokens, offset, cache)?,
            };
            logits.to_dtype(DType::F32)?.to_vec2()
        };
        run().map_err(failed)
    }

    /// Generates for all prompts, group by group.
    pub(super) fn generate(
        &mut self,
        prompts: &[Prompt],
        options: &Options,
        keeper: &mut dyn TextSink,
        job: &Job,
    ) -> Result<Generated> {
        let context = self.config.max_position_embeddings;
        let longest = prompts.iter().map(|p| (p.tokens.len() + p.most_tokens).min(context)).max();
        if let Some(free) = self.device.free_bytes() {
            let bytes = self.device.dtype().size_in_bytes();
            let texts = prompts.iter().fold(0, |sum: usize, prompt| sum.saturating_add(prompt.generations));
            check_cache_fits(&self.config, bytes, options.batch.min(texts), longest.unwrap_or(0), free)?;
        }
        let mut generated = Generated::default();
        let mut clock = Clock::new(options);
        let mut told = SentSoFar::default();
        for group in groups_of_equal_length(prompts, options.batch) {
            let mut run = Group {
                baseline: self,
                options,
                counts: &mut generated.counts,
                clock: &mut clock,
                samples: &mut generated.samples,
            };
            let is_whole = run.all(prompts, &group, job)?;
            told.tell(so_far(&generated, &clock), keeper, false)?;
            if !is_whole {
                generated.interrupted = true;
                break;
            }
        }
        clock.end_batch();
        told.tell(so_far(&generated, &clock), keeper, true)?;
        generated.timing = clock.timing;
        generated.spans = clock.spans;
        generated.batches = clock.batches;
        Ok(generated)
    }
}

fn so_far<'g>(generated: &'g Generated, clock: &'g Clock) -> TextDelta<'g> {
    TextDelta {
        texts: &generated.samples,
        groups: &[],
        counts: generated.counts,
        timing: clock.timing,
        batches: &clock.batches,
    }
}

/// A group of equal prompt length.
struct Group<'a> {
    baseline: &'a mut Baseline,
    options: &'a Options,
    counts: &'a mut WorkCounts,
    clock: &'a mut Clock,
    samples: &'a mut Vec<GeneratedText>,
}

impl Group<'_> {
    /// Writes all texts of the group; whether it came to the end.
    fn all(&mut self, prompts: &[Prompt], items: &[Item], job: &Job) -> Result<bool> {
        let context = self.baseline.config.max_position_embeddings;
        let options = self.options;
        let new = |item: &Item| Some(Row::new(&prompts[item.prompt], *item, options, context, false));
        let mut rows: Vec<Option<Row<'_>>> = items.iter().map(new).collect();
        self.baseline.clear();
        let mut fed: Vec<Vec<u32>> = items.iter().map(|item| prompts[item.prompt].tokens.clone()).collect();
        let mut offset = 0;
        self.clock.lap(Phase::Other, rows.len());
        loop {
            for row in &mut rows {
                if let Some(end) = row.as_ref().and_then(|row| row.end) {
                    self.samples.extend(row.take().map(|row| row.finish(end)));
                    self.clock.finished();
                    job.observer().advance(1);
                }
            }
            if rows.iter().all(Option::is_none) {
                return Ok(true);
            }
            match job.check() {
                Err(Error::Interrupted) => return Ok(false),
                checked => checked?,
            }
            let logits = self.baseline.forward(&fed, offset)?;
            self.count(&rows, fed[0].len(), offset == 0);
            self.clock.lap(if offset == 0 { Phase::Prefill } else { Phase::Forward }, rows.len());
            offset += fed[0].len();
            for ((row, logits), fed) in rows.iter_mut().zip(&logits).zip(&mut fed) {
                if let Some(row) = row {
                    self.choose(row, logits)?;
                    *fed = row.pending.clone();
                }
                // A row that is over is fed something until the group ends.
                fed.truncate(1);
                fed.resize(1, 0);
            }
        }
    }

    fn count(&mut self, rows: &[Option<Row<'_>>], width: usize, is_prefill: bool) {
        let over = rows.iter().filter(|row| row.is_none()).count();
        // Rows that have ended go through the model until the group is over.
        self.counts.wasted_positions += (over * width) as u64;
        // candle-transformers computes the logits of each row's last position alone.
        self.counts.head_rows += (rows.len() * self.baseline.config.vocab_size) as u64;
        if is_prefill {
            self.counts.prefill_passes += 1;
            self.counts.prompt_tokens += (rows.len() * width) as u64;
        } else {
            self.counts.decode_steps += 1;
            self.counts.row_passes += rows.len() as u64;
        }
    }

    /// One token of one row.
    fn choose(&mut self, row: &mut Row<'_>, logits: &[f32]) -> Result<()> {
        let constraint = &*row.prompt.constraint;
        if constraint.wants_argmax() {
            let argmax = most_likely(Candidates::Except(logits, &[]))?;
            constraint.observe(&mut row.state, argmax);
        }
        let candidates = match constraint.mask(&row.state) {
            Mask::Forced(token) => Err(token),
            Mask::Any => Ok(Candidates::Except(logits, &[])),
            Mask::Except(ids) => Ok(Candidates::Except(logits, ids)),
            Mask::Only(ids) => Ok(Candidates::Only(logits, ids)),
        };
        self.clock.lap(Phase::LogitProcessor, 1);
        let (token, forced) = match candidates {
            Err(token) => {
                if row.watches(token) {
                    row.prefer(row.written(), most_likely(Candidates::Except(logits, &[]))?);
                }
                (token, true)
            }
            Ok(candidates) => {
                let position = row.written();
                (draw(candidates, &self.options.sampling, &mut row.noise, position)?, false)
            }
        };
        if row.logs() {
            let mask = constraint.mask(&row.state);
            row.log(logits, token, mask);
        }
        self.clock.lap(Phase::Sampling, 1);
        row.take(token, forced, false);
        self.clock.lap(Phase::LogitProcessor, 1);
        Ok(())
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
