//! SampleCounts over many samples.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::block::BlockVerdict;
use super::outcome::Outcome;
use super::sample::TextVerdict;
use drift_core::encoding::Encoding;
use drift_core::error::Result;
use drift_core::text::tagged;
use drift_core::tokenizer::Tokenizer;

/// What was found in some samples. Counts of samples add up: `samples` is the sum of the four outcomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleCounts {
    /// Texts judged.
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
    /// Samples without a prompt, whose graph was not compared.
    pub without_prompt: u64,
    /// Coordinate blocks.
    pub blocks: u64,
    /// Blocks that are not exactly three numbers.
    pub junk_blocks_strict: u64,
    /// Blocks that hold one of the letters `a` to `z`, small or capital.
    pub junk_blocks_letters: u64,
    /// Blocks that are not three floats in 3DMolGen's sense, where `0.` is none.
    #[serde(default)]
    pub junk_blocks_strict_by_3dmolgen: u64,
    /// Blocks in which digits are missing. In the stripped dialect a text does not show it: none in `audit`; in `eval`
    /// blocks that the logit processor closed where the unmasked model would most likely have written on
    /// ([`super::goes_on`]), so 0 where it forces nothing, as `none`, or only what the format leaves no choice, as
    /// `automaton`.
    pub truncated_blocks: Option<u64>,
    /// Blocks with digits that the format does not have.
    pub invented_blocks: u64,
    /// Digits that are missing; none in the stripped dialect, where nobody knows how many the model would have written.
    pub lost_digits: Option<u64>,
    /// Digits that the format does not have.
    pub invented_digits: u64,
}

impl SampleCounts {
    /// Nothing, in a dialect.
    pub fn new(dialect: Encoding) -> Self {
        // Only where each number has all its digits can a text show that some are missing.
        let shown = (dialect.is_fixed()).then_some(0);
        SampleCounts {
            samples: 0,
            passed: 0,
            graph_mismatch: 0,
            parse_failures: 0,
            no_eos: 0,
            passed_by_3dmolgen: 0,
            graph_mismatch_by_3dmolgen: 0,
            parse_failures_by_3dmolgen: 0,
            no_eos_by_3dmolgen: 0,
            without_prompt: 0,
            blocks: 0,
            junk_blocks_strict: 0,
            junk_blocks_letters: 0,
            junk_blocks_strict_by_3dmolgen: 0,
            truncated_blocks: shown,
            invented_blocks: 0,
            lost_digits: shown,
            invented_digits: 0,
        }
    }

    /// Counts a sample.
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
        // Generation may know of a block that it was cut where the text alone shows nothing, so the count can begin here.
        if let Some(truncated) = block.truncated {
            *self.truncated_blocks.get_or_insert(0) += u64::from(truncated);
        }
        if let Some(digits) = &mut self.lost_digits {
            *digits += u64::from(block.lost_digits);
        }
    }

    /// Adds what others counted, in the same dialect.
    pub fn merge(&mut self, other: &SampleCounts) {
        self.samples += other.samples;
        self.passed += other.passed;
        self.graph_mismatch += other.graph_mismatch;
        self.parse_failures += other.parse_failures;
        self.no_eos += other.no_eos;
        self.passed_by_3dmolgen += other.passed_by_3dmolgen;
        self.graph_mismatch_by_3dmolgen += other.graph_mismatch_by_3dmolgen;
        self.parse_failures_by_3dmolgen += other.parse_failures_by_3dmolgen;
        self.no_eos_by_3dmolgen += other.no_eos_by_3dmolgen;
        self.without_prompt += other.without_prompt;
        self.blocks += other.blocks;
        self.junk_blocks_strict += other.junk_blocks_strict;
        self.junk_blocks_letters += other.junk_blocks_letters;
        self.junk_blocks_strict_by_3dmolgen += other.junk_blocks_strict_by_3dmolgen;
        // Unknown in one part is unknown in the whole: a sum over what is known would pass for the count of all.
        self.truncated_blocks = self.truncated_blocks.zip(other.truncated_blocks).map(|(a, b)| a + b);
        self.invented_blocks += other.invented_blocks;
        self.lost_digits = self.lost_digits.zip(other.lost_digits).map(|(a, b)| a + b);
        self.invented_digits += other.invented_digits;
    }
}

/// How many blocks have which drift, F - T.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DriftHistogram(pub BTreeMap<i64, u64>);

impl DriftHistogram {
    /// Blocks counted.
    pub fn blocks(&self) -> u64 {
        self.0.values().sum()
    }

    /// Counts the blocks of an answer that `counts` picks by number: T in the answer, F in `template`, the same answer with
    /// placeholders in its blocks.
    ///
    /// # Errors
    /// If the tokenizer cannot encode the text.
    pub fn add(
        &mut self,
        (tokenizer, encoding): (&Tokenizer, Encoding),
        answer: &str,
        template: &str,
        counts: impl Fn(usize) -> bool,
    ) -> Result<()> {
        let real = tokenizer.in_slots(&tagged(answer), encoding)?.ends;
        let forced = tokenizer.in_slots(&tagged(template), encoding)?.ends;
        // Where placeholders change how many blocks there are, none has a partner to be measured by.
        if real.len() == forced.len() {
            for (_, (t, f)) in real.iter().zip(&forced).enumerate().filter(|(block, _)| counts(*block)) {
                *self.0.entry(f.len() as i64 - t.len() as i64).or_default() += 1;
            }
        }
        Ok(())
    }

    /// Adds what another counted.
    pub fn merge(&mut self, other: &DriftHistogram) {
        for (drift, blocks) in &other.0 {
            *self.0.entry(*drift).or_default() += blocks;
        }
    }
}
