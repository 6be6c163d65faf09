//! How much work a generation was, and what a device has to move and compute for it at least.

use serde::{Deserialize, Serialize};

use crate::model::Config;

/// How much work it was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkCounts {
    /// Forward passes over prompts.
    pub prefill_passes: u64,
    /// Prompt tokens that were computed.
    pub prompt_tokens: u64,
    /// Prompt tokens that were copied from another generation of the same molecule.
    pub shared_prompt_tokens: u64,
    /// Forward passes that write text.
    pub decode_steps: u64,
    /// Those of them that a GPU did by drift's own kernels; the others were candle's.
    pub kernel_steps: u64,
    /// Rows of these, added up.
    pub row_passes: u64,
    /// Generated tokens, without the ends of text.
    pub generated_tokens: u64,
    /// Those among them that were forced.
    pub forced_tokens: u64,
    /// Positions that went through the model for nothing: padding, and rows that had ended.
    pub wasted_positions: u64,
    /// Rows of the LM head that were computed: logits.
    pub head_rows: u64,
    /// Rows of the LM head's weights, each counted once a step where any row of the batch wanted its logit.
    pub head_weights: u64,
    /// Tokens that went through the layers, prompts included.
    pub positions: u64,
    /// Positions whose keys and values a pass had to read, each once for a row of the batch.
    pub keys_read: u64,
    /// Pairs of a token and a position that it looked at.
    pub keys_seen: u64,
}

impl WorkCounts {
    fn each(&mut self) -> [&mut u64; 14] {
        let WorkCounts {
            prefill_passes,
            prompt_tokens,
            shared_prompt_tokens,
            decode_steps,
            kernel_steps,
            row_passes,
            generated_tokens,
            forced_tokens,
            wasted_positions,
            head_rows,
            head_weights,
            positions,
            keys_read,
            keys_seen,
        } = self;
        [
            prefill_passes,
            prompt_tokens,
            shared_prompt_tokens,
            decode_steps,
            kernel_steps,
            row_passes,
            generated_tokens,
            forced_tokens,
            wasted_positions,
            head_rows,
            head_weights,
            positions,
            keys_read,
            keys_seen,
        ]
    }

    /// This and more.
    pub fn add(&mut self, mut more: WorkCounts) {
        self.each().into_iter().zip(more.each()).for_each(|(sum, more)| *sum += *more);
    }

    /// What came after `before`, which is a part of this.
    pub(super) fn since(mut self, before: &WorkCounts) -> WorkCounts {
        let mut before = *before;
        self.each().into_iter().zip(before.each()).for_each(|(sum, less)| *sum -= *less);
        self
    }

    /// Counts `tokens` new tokens of a row that holds `length` before a pass.
    pub(super) fn feed(&mut self, length: usize, tokens: usize) {
        let (length, tokens) = (length as u64, tokens as u64);
        self.positions += tokens;
        self.keys_read += length + tokens;
        // Each new token looks at what was there, at the new ones before it and at itself.
        self.keys_seen += tokens * length + tokens * (tokens + 1) / 2;
    }
}

/// What a generation has to move between memory and processor at least, and to compute. Every weight is read once a pass, and
/// the keys and values of a row once a pass; what layers hand to one another is not counted, nor what is read twice.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// Bytes.
    pub bytes: f64,
    /// Multiplications and additions, each for one.
    pub operations: f64,
}

impl Traffic {
    /// Of a model of this shape, whose matrices and whose cache take so many bytes per number. None of counts without
    /// [`WorkCounts::positions`], which candle-transformers does not keep.
    pub fn new(config: &Config, (of_weights, of_cache): (usize, usize), counts: &WorkCounts) -> Option<Self> {
        if counts.positions == 0 {
            return None;
        }
        let (hidden, vocab) = (config.hidden_size as f64, config.vocab_size as f64);
        let heads = (config.num_attention_heads * config.head_dim) as f64;
        let layers = config.num_hidden_layers as f64;
        let cached = 2.0 * layers * (config.num_key_value_heads * config.head_dim) as f64;
        // Taken out of the body: a pass reads the rows of its tokens, and the head those that were asked for.
        let embeddings = if config.tie_word_embeddings { 1.0 } else { 2.0 } * vocab * hidden;
        let body = config.parameters()? as f64 - embeddings;
        let positions = counts.positions as f64;
        let passes = (counts.prefill_passes + counts.decode_steps) as f64;
        let weights = passes * body + positions * hidden + counts.head_weights as f64 * hidden;
        let cache = (counts.keys_read as f64 + positions) * cached;
        // Logits are written as f32.
        let logits = 4.0 * counts.head_rows as f64;
        let products = positions * body + counts.head_rows as f64 * hidden;
        let attention = 2.0 * layers * heads * counts.keys_seen as f64;
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
        assert_eq!(Traffic::new(&config, (2, 2), &counts), None);
        (0..batch).for_each(|_| counts.feed(context - 1, 1));
        assert_eq!((counts.positions, counts.keys_read, counts.keys_seen), (32, 32 * 512, 32 * 512));
        // By hand: 0.88 GB of body weights, 114,688 bytes of keys and values a token.
        let body = 2.0 * (596_049_920.0 - 151_936.0 * 1024.0);
        let cache = 114_688.0 * f64::from(batch) * (context as f64 + 1.0);
        let embedded = 2.0 * 1024.0 * f64::from(batch);
        let traffic = Traffic::new(&config, (2, 2), &counts).unwrap();
        assert!((traffic.bytes - (body + cache + embedded)).abs() < 1.0, "{}", traffic.bytes);
        counts.head_weights = 151_936;
        counts.head_rows = 151_936 * 32;
        let whole = Traffic::new(&config, (2, 2), &counts).unwrap();
        assert_eq!(whole.bytes - traffic.bytes, 151_936.0 * (2.0 * 1024.0 + 4.0 * 32.0));
        // A run of three tokens on five looks at 6, 7 and 8 positions.
        let mut counts = WorkCounts::default();
        counts.feed(5, 3);
        assert_eq!((counts.positions, counts.keys_read, counts.keys_seen), (3, 8, 21));
    }
}
