//! Shapes of published models, for measurements of speed with random weights.

use super::config::{Architecture, Config};
pub use drift_data::generation::Synthetic;

impl Config {
    /// Returns the config of a known shape.
    pub fn synthetic(shape: Synthetic) -> Self {
        match shape {
            Synthetic::Qwen3Small => Config {
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
            },
            Synthetic::Llama380M => Config {
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
            },
        }
    }
}
