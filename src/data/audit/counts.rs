//! Counts over many samples.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::block::BlockVerdict;
use super::outcome::Outcome;
use super::sample::TextVerdict;
use drift_core::text::tagged;
use drift_core::{Encoding, Result, Tokenizer};

drift_core::counters! {
    /// The results for a set of samples. The four outcomes add up to `samples`.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
    pub struct SampleCounts {
        /// The number of judged texts.
        pub samples: u64,
        /// [`Outcome::Pass`].
        pub passed: u64,
        /// [`Outcome::GraphMismatch`].
        pub graph_mismatch: u64,
        /// [`Outcome::ParseFailure`].
        pub parse_failures: u64,
        /// [`Outcome::NoEos`].
        pub no_eos: u64,
        /// [`Outcome::Pass`] by the rules of 3DMolGen: their `num_passed`, over all samples.
        #[serde(default)]
        pub passed_by_3dmolgen: u64,
        /// [`Outcome::GraphMismatch`] by their rules: `smiles_mismatch` of their inference.
        #[serde(default)]
        pub graph_mismatch_by_3dmolgen: u64,
        /// [`Outcome::ParseFailure`] by their rules: `mol_parse_fail` of their inference.
        #[serde(default)]
        pub parse_failures_by_3dmolgen: u64,
        /// [`Outcome::NoEos`] by their rules: `no_eos` of their inference.
        #[serde(default)]
        pub no_eos_by_3dmolgen: u64,
        /// Samples without a prompt, whose graph could not be compared.
        pub without_prompt: u64,
        /// The number of coordinate blocks.
        pub blocks: u64,
        /// Blocks that are not exactly three numbers.
        pub junk_blocks_strict: u64,
        /// Blocks that contain a letter, `a` to `z` or `A` to `Z`.
        pub junk_blocks_letters: u64,
        /// Blocks that are not three floats by 3DMolGen's definition, which does not accept `0.`.
        #[serde(default)]
        pub junk_blocks_strict_by_3dmolgen: u64,
        /// Blocks with missing digits. In the stripped encoding a text does not show them. There it is `None` in `audit`; in `eval` it
        /// is the number of blocks that the logit processor closed although the unmasked model would most likely have continued
        /// ([`super::goes_on`]). So it is 0 for processors that force nothing, such as `none`, or only what the format dictates, such
        /// as `automaton`.
        pub truncated_blocks: Option<u64>,
        /// Blocks with digits that the format does not allow.
        pub invented_blocks: u64,
        /// The number of missing digits; `None` in the stripped encoding, where the intended number of digits is unknown.
        pub lost_digits: Option<u64>,
        /// The number of digits that the format does not allow.
        pub invented_digits: u64,
    }
}

impl SampleCounts {
    /// Empty counts for an encoding.
    pub fn new(encoding: Encoding) -> Self {
        // A text can show missing digits only if every number must have all its digits.
        let shown = encoding.is_fixed().then_some(0);
        SampleCounts { truncated_blocks: Some(0), lost_digits: shown, ..SampleCounts::default() }
    }

    /// Counts one sample.
    pub fn add(&mut self, judged: &TextVerdict, has_prompt: bool) {
        self.samples += 1;
        self.without_prompt += u64::from(!has_prompt);
        *match judged.outcome {
            Outcome::Pass => &mut self.passed,
            Outcome::GraphMismatch => &mut self.graph_mismatch,
            Outcome::ParseFailure => &mut self.parse_failures,
            Outcome::NoEos => &mut self.no_eos,
        } += 1;
        *match judged.by_3dmolgen {
            Outcome::Pass => &mut self.passed_by_3dmolgen,
            Outcome::GraphMismatch => &mut self.graph_mismatch_by_3dmolgen,
            Outcome::ParseFailure => &mut self.parse_failures_by_3dmolgen,
            Outcome::NoEos => &mut self.no_eos_by_3dmolgen,
        } += 1;
        judged.blocks.iter().for_each(|block| self.add_block(block));
    }

    fn add_block(&mut self, block: &BlockVerdict) {
        self.blocks += 1;
        self.junk_blocks_strict += u64::from(block.junk_strict);
        self.junk_blocks_letters += u64::from(block.junk_letters);
        self.junk_blocks_strict_by_3dmolgen += u64::from(block.junk_by_3dmolgen);
        self.invented_blocks += u64::from(block.invented);
        self.invented_digits += u64::from(block.invented_digits);
        // Generation may know that a block was cut even if the text does not show it. A count that lacks a block is unknown.
        self.truncated_blocks =
            self.truncated_blocks.zip(block.truncated).map(|(count, truncated)| count + u64::from(truncated));
        if let Some(digits) = &mut self.lost_digits {
            *digits += u64::from(block.lost_digits);
        }
    }
}

/// The number of blocks for each drift, F - T.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DriftHistogram(pub BTreeMap<i64, u64>);

impl DriftHistogram {
    /// Returns the number of counted blocks.
    pub fn blocks(&self) -> u64 {
        self.0.values().sum()
    }

    /// Counts the blocks of an answer whose index `counts` accepts. T comes from the answer, F from `template`, the same answer
    /// with placeholders in its blocks.
    ///
    /// # Errors
    /// If the tokenizer cannot encode the text.
    pub fn add(
        &mut self,
        tokenizer: &Tokenizer,
        encoding: Encoding,
        answer: &str,
        template: &str,
        counts: impl Fn(usize) -> bool,
    ) -> Result<()> {
        let real = tokenizer.in_slots(&tagged(answer), encoding)?.ends;
        let forced = tokenizer.in_slots(&tagged(template), encoding)?.ends;
        // If placeholders change the number of blocks, blocks cannot be paired, and none is counted.
        if real.len() == forced.len() {
            for (_, (t, f)) in real.iter().zip(&forced).enumerate().filter(|(block, _)| counts(*block)) {
                *self.0.entry(f.len() as i64 - t.len() as i64).or_default() += 1;
            }
        }
        Ok(())
    }

    /// Adds another histogram.
    pub fn merge(&mut self, other: &DriftHistogram) {
        for (drift, blocks) in &other.0 {
            *self.0.entry(*drift).or_default() += blocks;
        }
    }
}
