//! The work of a generation, and the least memory traffic and arithmetic that it takes.

use serde::{Deserialize, Serialize};

use crate::model::Config;
use drift_data::generation::Traffic;

drift_core::counters! {
    /// Counters of the work of a generation.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct WorkCounts {
        /// Forward passes over prompts.
        pub prefill_passes: u64,
        /// Prompt tokens that the model read.
        pub prompt_tokens: u64,
        /// Prompt tokens that were copied from another generation of the same molecule.
        pub shared_prompt_tokens: u64,
        /// Forward passes that write text.
        pub decode_steps: u64,
        /// How many of these steps a GPU did with drift's own kernels; candle's operations did the others.
        pub kernel_steps: u64,
        /// The sum of the numbers of rows of these passes.
        pub row_passes: u64,
        /// Generated tokens, without end tokens.
        pub generated_tokens: u64,
        /// How many of these were forced.
        pub forced_tokens: u64,
        /// Positions that went through the model without use: padding, and rows that had ended.
        pub wasted_positions: u64,
        /// Computed logits: rows of the LM head, counted for each row of the batch.
        pub head_rows: u64,
        /// Rows of the LM head's weights, each counted once per step in which any row of the batch needed its logit.
        pub head_weights: u64,
        /// Tokens that went through the layers, including prompts.
        pub positions: u64,
        /// Positions whose keys and values a pass had to read, each counted once per row of the batch.
        pub keys_read: u64,
        /// Pairs of a token and a position that it attended to.
        pub keys_seen: u64,
    }
}

impl WorkCounts {
    /// Counts `tokens` new tokens of a row with `length` tokens in the cache before the pass.
    pub(super) fn feed(&mut self, length: usize, tokens: usize) {
        let (length, tokens) = (length as u64, tokens as u64);
        self.positions += tokens;
        self.keys_read += length + tokens;
        // Each new token attends to the cached tokens, to the new ones before it, and to itself.
        self.keys_seen += tokens * length + tokens * (tokens + 1) / 2;
    }

    /// Returns the least memory traffic and arithmetic of this work by a model of this shape, given the bytes per number of its matrices
    /// and of its cache. `None` if [`WorkCounts::positions`] is 0: then no token went through the layers, or the engine did not count
    /// them.
    pub fn traffic(&self, config: &Config, (of_weights, of_cache): (usize, usize)) -> Option<Traffic> {
        if self.positions == 0 {
            return None;
        }
        let (hidden, vocab) = (config.hidden_size as f64, config.vocab_size as f64);
        let heads = (config.num_attention_heads * config.head_dim) as f64;
        let layers = config.num_hidden_layers as f64;
        let cached = 2.0 * layers * (config.num_key_value_heads * config.head_dim) as f64;
        // Subtracted from the body: a pass reads only the embedding rows of its tokens, and only the requested rows of the head.
        let embeddings = if config.tie_word_embeddings { 1.0 } else { 2.0 } * vocab * hidden;
        let body = config.parameters()? as f64 - embeddings;
        let positions = self.positions as f64;
        let passes = (self.prefill_passes + self.decode_steps) as f64;
        let weights = passes * body + positions * hidden + self.head_weights as f64 * hidden;
        let cache = (self.keys_read as f64 + positions) * cached;
        // Logits are written in f32.
        let logits = 4.0 * self.head_rows as f64;
        let products = positions * body + self.head_rows as f64 * hidden;
        let attention = 2.0 * layers * heads * self.keys_seen as f64;
        let bytes = of_weights as f64 * weights + of_cache as f64 * cache + logits;
        Some(Traffic { bytes, operations: 2.0 * (products + attention) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Synthetic;

    #[test]
    fn a_step_moves_what_it_holds() {
        let config = Config::synthetic(Synthetic::Qwen3Small);
        let (batch, context) = (32, 512);
        let mut counts = WorkCounts { decode_steps: 1, ..WorkCounts::default() };
        assert_eq!(counts.traffic(&config, (2, 2)), None);
        (0..batch).for_each(|_| counts.feed(context - 1, 1));
        assert_eq!((counts.positions, counts.keys_read, counts.keys_seen), (32, 32 * 512, 32 * 512));
        // Computed by hand: 0.88 GB of weights without embeddings, and 114,688 bytes of keys and values per token.
        let body = 2.0 * (596_049_920.0 - 151_936.0 * 1024.0);
        let cache = 114_688.0 * f64::from(batch) * (context as f64 + 1.0);
        let embedded = 2.0 * 1024.0 * f64::from(batch);
        let traffic = counts.traffic(&config, (2, 2)).unwrap();
        assert!((traffic.bytes - (body + cache + embedded)).abs() < 1.0, "{}", traffic.bytes);
        counts.head_weights = 151_936;
        counts.head_rows = 151_936 * 32;
        let whole = counts.traffic(&config, (2, 2)).unwrap();
        assert_eq!(whole.bytes - traffic.bytes, 151_936.0 * (2.0 * 1024.0 + 4.0 * 32.0));
        // Three new tokens after five cached ones attend to 6, 7 and 8 positions.
        let mut counts = WorkCounts::default();
        counts.feed(5, 3);
        assert_eq!((counts.positions, counts.keys_read, counts.keys_seen), (3, 8, 21));
    }
}
