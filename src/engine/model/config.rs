//! `config.json` of Hugging Face for Qwen3 and Llama. drift reads the files of transformers 4 (`rope_theta`, `rope_scaling`) and 5
//! (`rope_parameters`). It writes the format of version 4, which both versions read.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use drift_core::checkpoint::{CONFIG, Ids, ModelFolder};
use drift_core::{Error, Result, Tokenizer};

/// The decoder families that drift runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// Qwen3: norms on queries and keys, and a head size that is independent of the hidden size.
    Qwen3,
    /// Llama 2 and 3.
    Llama,
}

impl Architecture {
    /// Returns the name of the class in transformers.
    fn class(self) -> &'static str {
        match self {
            Architecture::Qwen3 => "Qwen3ForCausalLM",
            Architecture::Llama => "LlamaForCausalLM",
        }
    }
}

/// Llama 3's scaling of the rotary frequencies of long wavelengths (transformers, `_compute_llama3_parameters`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Llama3Scaling {
    /// The divisor of the frequencies of long wavelengths.
    pub factor: f64,
    /// The frequencies of wavelengths above `original_max_position_embeddings / low_freq_factor` are divided by the full factor.
    pub low_freq_factor: f64,
    /// The frequencies of wavelengths below `original_max_position_embeddings / high_freq_factor` are not changed.
    pub high_freq_factor: f64,
    /// The context length of pre-training, in tokens.
    pub original_max_position_embeddings: usize,
}

/// A complete and validated model shape. The field names are those of `config.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Raw", into = "Raw")]
pub struct Config {
    /// Qwen3 or Llama.
    pub architecture: Architecture,
    /// The number of rows of the embedding.
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// The width inside the MLP.
    pub intermediate_size: usize,
    /// The number of decoder layers.
    pub num_hidden_layers: usize,
    /// The number of query heads.
    pub num_attention_heads: usize,
    /// The number of key and value heads; divides the number of query heads.
    pub num_key_value_heads: usize,
    /// The size of one head; even.
    pub head_dim: usize,
    /// The longest context in tokens.
    pub max_position_embeddings: usize,
    /// The epsilon of the RMS norms.
    pub rms_norm_eps: f64,
    /// The base of the rotary frequencies.
    pub rope_theta: f64,
    /// Llama 3's scaling of the rotary frequencies, if any.
    pub rope_scaling: Option<Llama3Scaling>,
    /// Whether the LM head shares the weights of the embedding.
    pub tie_word_embeddings: bool,
    /// The id of the token at the beginning of a text.
    pub bos_token_id: Option<u32>,
    /// The ids of the tokens that end a text; may be empty.
    pub eos_token_ids: Vec<u32>,
    /// The type of the stored weights, as named in the file (`bfloat16`).
    pub torch_dtype: Option<String>,
}

impl Config {
    /// # Errors
    /// If the tokenizer has ids that the model has no row for.
    pub fn check_vocabulary(&self, tokenizer: &Tokenizer) -> Result<()> {
        let most = tokenizer.rows() as usize;
        if most <= self.vocab_size {
            return Ok(());
        }
        let problem = format!("the tokenizer has ids up to {}, the model {} rows", most - 1, self.vocab_size);
        let remedy = "give the tokenizer that the model was trained with";
        Err(Error::input(&tokenizer.source.name, problem, remedy))
    }

    /// Reads `DIR/config.json`.
    ///
    /// # Errors
    /// If the file cannot be read, is not a config, or describes a model that drift does not run.
    pub fn load(dir: &Path) -> Result<Self> {
        let remedy = "drift runs Qwen3 and Llama decoders as transformers writes them";
        ModelFolder::new(dir).needed_json(CONFIG, |e| (e.to_string(), remedy))
    }

    /// Returns the number of query heads per key and value head.
    pub fn group_size(&self) -> usize {
        self.num_attention_heads / self.num_key_value_heads
    }

    /// Returns the config as the JSON value of `config.json`.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("a config has string keys only")
    }

    /// Returns the text of `config.json`, with a line break at the end.
    pub fn to_json(&self) -> String {
        let mut text = format!("{:#}", self.to_value());
        text.push('\n');
        text
    }

    fn check(&self) -> Result<(), String> {
        let sizes = [
            ("vocab_size", self.vocab_size),
            ("hidden_size", self.hidden_size),
            ("intermediate_size", self.intermediate_size),
            ("num_hidden_layers", self.num_hidden_layers),
            ("num_attention_heads", self.num_attention_heads),
            ("num_key_value_heads", self.num_key_value_heads),
            ("head_dim", self.head_dim),
            ("max_position_embeddings", self.max_position_embeddings),
        ];
        for (name, size) in sizes {
            // So ids fit into u32, and no product of two sizes overflows.
            if size == 0 || size > i32::MAX as usize {
                return Err(format!("{name} is {size}"));
            }
        }
        let (heads, kv) = (self.num_attention_heads, self.num_key_value_heads);
        if heads % kv != 0 {
            return Err(format!("num_key_value_heads {kv} does not divide num_attention_heads {heads}"));
        }
        if !self.head_dim.is_multiple_of(2) {
            return Err(format!("head_dim {} is odd, which rotary embeddings cannot halve", self.head_dim));
        }
        if !(self.rope_theta.is_finite() && self.rope_theta > 0.0) {
            return Err(format!("rope_theta is {}", self.rope_theta));
        }
        if !(self.rms_norm_eps.is_finite() && self.rms_norm_eps >= 0.0) {
            return Err(format!("rms_norm_eps is {}", self.rms_norm_eps));
        }
        Ok(())
    }
}

/// The fields of `config.json` as stored in the file.
#[derive(Serialize, Deserialize)]
struct Raw {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    architectures: Vec<String>,
    model_type: String,
    vocab_size: usize,
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    max_position_embeddings: Option<usize>,
    rms_norm_eps: Option<f64>,
    hidden_act: Option<String>,
    attention_bias: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mlp_bias: Option<bool>,
    attention_dropout: Option<f64>,
    rope_theta: Option<f64>,
    rope_scaling: Option<RawRope>,
    /// Only in transformers 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    rope_parameters: Option<RawRope>,
    #[serde(skip_serializing)]
    original_max_position_embeddings: Option<usize>,
    #[serde(skip_serializing)]
    partial_rotary_factor: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    use_sliding_window: Option<bool>,
    #[serde(skip_serializing)]
    layer_types: Option<Vec<String>>,
    #[serde(skip_serializing)]
    quantization_config: Option<Value>,
    tie_word_embeddings: Option<bool>,
    bos_token_id: Option<u32>,
    eos_token_id: Option<Ids>,
    use_cache: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    torch_dtype: Option<String>,
    /// Only in transformers 5.
    #[serde(skip_serializing)]
    dtype: Option<String>,
}

/// The value of `rope_scaling` or `rope_parameters`.
#[derive(Default, PartialEq, Serialize, Deserialize)]
struct RawRope {
    #[serde(skip_serializing_if = "Option::is_none")]
    rope_type: Option<String>,
    /// The name of `rope_type` before transformers 4.43, which files may have beside it.
    #[serde(rename = "type", skip_serializing)]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rope_theta: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partial_rotary_factor: Option<f64>,
    factor: Option<f64>,
    low_freq_factor: Option<f64>,
    high_freq_factor: Option<f64>,
    original_max_position_embeddings: Option<usize>,
}

impl RawRope {
    /// Returns the scaling. As in transformers `pretrained`, the `original_max_position_embeddings` of the config, goes before the
    /// scaling's own, and without both it is the context length, `positions`.
    fn scaling(&self, pretrained: Option<usize>, positions: usize) -> Result<Option<Llama3Scaling>, String> {
        if self.partial_rotary_factor.is_some_and(|share| share != 1.0) {
            return Err("partial_rotary_factor is not supported".into());
        }
        match self.rope_type.as_ref().or(self.kind.as_ref()).map(String::as_str) {
            None | Some("default") => return Ok(None),
            Some("llama3") => {}
            Some(other) => return Err(format!("rope scaling `{other}` is not supported, only `llama3`")),
        }
        let field = |name: &str, value: Option<f64>| match value {
            Some(value) if value.is_finite() && value > 0.0 => Ok(value),
            _ => Err(format!("rope scaling `llama3` needs a positive {name}")),
        };
        let context = pretrained.or(self.original_max_position_embeddings).unwrap_or(positions);
        let scaling = Llama3Scaling {
            factor: field("factor", self.factor)?,
            low_freq_factor: field("low_freq_factor", self.low_freq_factor)?,
            high_freq_factor: field("high_freq_factor", self.high_freq_factor)?,
            original_max_position_embeddings: field("original_max_position_embeddings", Some(context as f64))?
                as usize,
        };
        // The interpolation between the two factors divides by their difference.
        if scaling.high_freq_factor <= scaling.low_freq_factor {
            return Err("high_freq_factor is not above low_freq_factor".into());
        }
        Ok(Some(scaling))
    }
}

impl Raw {
    fn architecture(&self) -> Result<Architecture, String> {
        match &*self.model_type {
            "qwen3" => Ok(Architecture::Qwen3),
            "llama" => Ok(Architecture::Llama),
            other => Err(format!("model_type `{other}` is not supported")),
        }
    }

    /// Refuses settings that would change the logits and that drift does not implement.
    fn check_supported(&self) -> Result<(), String> {
        let act = self.hidden_act.as_deref().unwrap_or("silu");
        if act != "silu" && act != "swish" {
            return Err(format!("hidden_act `{act}` is not supported, only `silu`"));
        }
        let sliding = |kind: &String| kind != "full_attention";
        let unsupported = [
            ("partial_rotary_factor", self.partial_rotary_factor.is_some_and(|share| share != 1.0)),
            ("attention_bias", self.attention_bias == Some(true)),
            ("mlp_bias", self.mlp_bias == Some(true)),
            ("use_sliding_window", self.use_sliding_window == Some(true)),
            ("layer_types", self.layer_types.iter().flatten().any(sliding)),
            ("quantization_config", self.quantization_config.as_ref().is_some_and(|value| !value.is_null())),
        ];
        match unsupported.iter().find(|(_, present)| *present) {
            Some((name, _)) => Err(format!("{name} is not supported")),
            None => Ok(()),
        }
    }
}

impl TryFrom<Raw> for Config {
    type Error = String;

    /// The defaults are those of transformers' config classes.
    fn try_from(raw: Raw) -> Result<Self, String> {
        let architecture = raw.architecture()?;
        raw.check_supported()?;
        // What a user adds to a file of transformers 5, which has `rope_parameters`, goes before them.
        let added = raw.rope_scaling.as_ref().filter(|added| **added != RawRope::default());
        let rope = added.or(raw.rope_parameters.as_ref());
        let heads = raw.num_attention_heads;
        let (head_dim, kv_heads, positions) = match architecture {
            Architecture::Qwen3 => (128, 32, 32_768),
            Architecture::Llama => (raw.hidden_size / heads.max(1), heads, 2_048),
        };
        let positions = raw.max_position_embeddings.unwrap_or(positions);
        let pretrained = raw.original_max_position_embeddings;
        let config = Config {
            architecture,
            vocab_size: raw.vocab_size,
            hidden_size: raw.hidden_size,
            intermediate_size: raw.intermediate_size,
            num_hidden_layers: raw.num_hidden_layers,
            num_attention_heads: heads,
            num_key_value_heads: raw.num_key_value_heads.unwrap_or(kv_heads),
            head_dim: raw.head_dim.unwrap_or(head_dim),
            max_position_embeddings: positions,
            rms_norm_eps: raw.rms_norm_eps.unwrap_or(1e-6),
            rope_theta: rope.and_then(|rope| rope.rope_theta).or(raw.rope_theta).unwrap_or(10_000.0),
            rope_scaling: rope.map(|rope| rope.scaling(pretrained, positions)).transpose()?.flatten(),
            tie_word_embeddings: raw.tie_word_embeddings.unwrap_or(false),
            bos_token_id: raw.bos_token_id,
            eos_token_ids: raw.eos_token_id.map(Vec::from).unwrap_or_default(),
            torch_dtype: raw.torch_dtype.or(raw.dtype),
        };
        config.check()?;
        Ok(config)
    }
}

impl From<Config> for Raw {
    fn from(config: Config) -> Self {
        let llama = config.architecture == Architecture::Llama;
        let rope_scaling = config.rope_scaling.map(|scaling| RawRope {
            rope_type: Some("llama3".into()),
            kind: None,
            rope_theta: None,
            partial_rotary_factor: None,
            factor: Some(scaling.factor),
            low_freq_factor: Some(scaling.low_freq_factor),
            high_freq_factor: Some(scaling.high_freq_factor),
            original_max_position_embeddings: Some(scaling.original_max_position_embeddings),
        });
        let eos_token_id = match &config.eos_token_ids[..] {
            [] => None,
            [id] => Some(Ids::One(*id)),
            ids => Some(Ids::Many(ids.to_vec())),
        };
        Raw {
            architectures: vec![config.architecture.class().into()],
            model_type: if llama { "llama" } else { "qwen3" }.into(),
            vocab_size: config.vocab_size,
            hidden_size: config.hidden_size,
            intermediate_size: config.intermediate_size,
            num_hidden_layers: config.num_hidden_layers,
            num_attention_heads: config.num_attention_heads,
            num_key_value_heads: Some(config.num_key_value_heads),
            head_dim: Some(config.head_dim),
            max_position_embeddings: Some(config.max_position_embeddings),
            rms_norm_eps: Some(config.rms_norm_eps),
            hidden_act: Some("silu".into()),
            attention_bias: Some(false),
            mlp_bias: llama.then_some(false),
            attention_dropout: Some(0.0),
            rope_theta: Some(config.rope_theta),
            rope_scaling,
            rope_parameters: None,
            original_max_position_embeddings: None,
            partial_rotary_factor: None,
            use_sliding_window: (!llama).then_some(false),
            layer_types: None,
            quantization_config: None,
            tie_word_embeddings: Some(config.tie_word_embeddings),
            bos_token_id: config.bos_token_id,
            eos_token_id,
            use_cache: Some(true),
            torch_dtype: config.torch_dtype,
            dtype: None,
        }
    }
}
