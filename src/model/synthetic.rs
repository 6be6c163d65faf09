//! Shapes of published models, for measuring speed with random weights.

use super::config::{Architecture, Config};
use crate::error::{Error, Parameter, Result};

impl Config {
    /// `qwen3-0.6b`, as published, or `llama-380m`, 3DMolGen's, of which the layers and the MLP are assumed from its size.
    ///
    /// # Errors
    /// If there is no such shape.
    pub fn synthetic(name: &str) -> Result<Self> {
        match name {
            "qwen3-0.6b" => Ok(Config {
                architecture: Architecture::Qwen3,
                vocab_size: 151_936,
                hidden_size: 1024,
                intermediate_size: 3072,
                num_hidden_layers: 28,
                num_attention_heads: 16,
                num_key_value_heads: 8,
                head_dim: 128,
                max_position_embeddings: 40_960,
                rms_norm_eps: 1e-6,
                rope_theta: 1e6,
                rope_scaling: None,
                tie_word_embeddings: true,
                bos_token_id: None,
                eos_token_ids: Vec::new(),
                torch_dtype: Some("bfloat16".into()),
            }),
            "llama-380m" => Ok(Config {
                architecture: Architecture::Llama,
                vocab_size: 128_330,
                hidden_size: 1024,
                intermediate_size: 4096,
                num_hidden_layers: 16,
                num_attention_heads: 16,
                num_key_value_heads: 8,
                head_dim: 64,
                max_position_embeddings: 8192,
                rms_norm_eps: 1e-5,
                rope_theta: 500_000.0,
                rope_scaling: None,
                tie_word_embeddings: true,
                bos_token_id: None,
                eos_token_ids: Vec::new(),
                torch_dtype: Some("bfloat16".into()),
            }),
            _ => {
                let problem = format!("there is no shape `{name}`");
                Err(Error::parameter(Parameter::Synthetic, problem, "give qwen3-0.6b or llama-380m"))
            }
        }
    }
}
