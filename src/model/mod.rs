//! Decoders of Hugging Face checkpoints on candle: Qwen3 and Llama.

mod config;

pub use config::{Architecture, Config, Ids, Llama3Scaling};
