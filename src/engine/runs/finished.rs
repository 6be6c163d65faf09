//! What an evaluation stores as soon as it is finished, as lines of a journal.

use serde::{Deserialize, Serialize};

use crate::generate::{
    BatchSeconds, DeadEnds, End, GeneratedText, ResampledGroup, SelfCheck, Timing, WorkCounts,
};
use drift_core::Encoding;
use drift_core::job::InputHash;
use drift_data::generation::{EncodingEvidence, Environment};
use drift_data::shard::progress::FinishedPiece;

/// The index of a run: the model's index, and the run's index among the model's runs.
pub(crate) type RunPlace = (usize, usize);

/// A finished piece of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalEntry {
    /// The date and machine of a part of the work.
    Began(Environment),
    /// The inputs of molecules and placeholders.
    Inputs(Vec<InputHash>),
    /// The model with this index, described after loading.
    Model(usize, KeptModel),
    /// The nats of a molecule's conformers, after the model's index and the molecule's index.
    Nats(usize, usize, Vec<f64>),
    /// A generated text.
    Text(RunPlace, KeptText),
    /// Texts that were resampled together.
    Group(RunPlace, ResampledGroup),
    /// The cost of a part of a run.
    Spent(RunPlace, PartCost),
    /// The result of a GPU's self-check.
    Checked(RunPlace, Box<SelfCheck>),
    /// The work is finished.
    Done,
}

impl FinishedPiece for JournalEntry {
    const UNIT: &'static str = "texts";

    fn finished(&self) -> u64 {
        u64::from(matches!(self, JournalEntry::Text(..)))
    }

    fn seconds(&self) -> f64 {
        match self {
            JournalEntry::Spent(_, spent) => spent.seconds(),
            _ => 0.0,
        }
    }

    fn is_done(&self) -> bool {
        *self == JournalEntry::Done
    }
}

/// The description of a model after loading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptModel {
    /// Its name.
    pub name: String,
    /// How it writes numbers.
    #[serde(rename = "dialect")]
    pub encoding: Encoding,
    /// How the encoding was determined.
    #[serde(rename = "dialect_from")]
    pub encoding_from: Option<EncodingEvidence>,
    /// Its tokenizer.
    pub tokenizer: InputHash,
    /// The files of its weights.
    pub files: Vec<InputHash>,
    /// Its files of settings.
    #[serde(default)]
    pub settings: Vec<InputHash>,
}

/// A text, stored such that its numbers are restored exactly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptText {
    /// The index of its molecule.
    molecule: usize,
    /// The index of the text among the molecule's texts.
    generation: usize,
    tokens: Vec<u32>,
    /// One character per token: `1` if the token was forced, else `0`.
    forced: String,
    end: End,
    /// The bits of [`GeneratedText::log_probabilities`] and [`GeneratedText::log_allowed`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    logs: Option<[Vec<u32>; 2]>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    preferred: Vec<(usize, u32)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dead_ends: Option<DeadEnds>,
}

impl KeptText {
    pub(crate) fn from_generated(text: &GeneratedText) -> Self {
        // Bits rather than decimals, so that numbers are restored exactly.
        let bits =
            |logs: &Option<Vec<f32>>| -> Vec<u32> { logs.iter().flatten().map(|x| x.to_bits()).collect() };
        KeptText {
            molecule: text.prompt,
            generation: text.generation,
            tokens: text.tokens.clone(),
            forced: text.forced.iter().map(|forced| if *forced { '1' } else { '0' }).collect(),
            end: text.end,
            logs: text
                .log_probabilities
                .is_some()
                .then(|| [bits(&text.log_probabilities), bits(&text.log_allowed)]),
            preferred: text.preferred.clone(),
            dead_ends: text.dead_ends,
        }
    }

    pub(crate) fn into_text(self) -> GeneratedText {
        let numbers = |bits: Vec<u32>| -> Vec<f32> { bits.into_iter().map(f32::from_bits).collect() };
        let (log_probabilities, log_allowed) =
            self.logs.map(|logs| logs.map(numbers)).map(Into::into).unzip();
        GeneratedText {
            prompt: self.molecule,
            generation: self.generation,
            tokens: self.tokens,
            forced: self.forced.bytes().map(|byte| byte == b'1').collect(),
            end: self.end,
            log_probabilities,
            log_allowed,
            preferred: self.preferred,
            dead_ends: self.dead_ends,
        }
    }
}

/// The cost of a part of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PartCost {
    pub(crate) counts: WorkCounts,
    pub(crate) timing: Timing,
    pub(crate) templates_seconds: f64,
    /// `None` if any part ran on a GPU, or if the system does not report CPU seconds.
    pub(crate) cpu_seconds: Option<f64>,
    pub(crate) batches: Vec<BatchSeconds>,
    /// The peak memory of the process; `None` if the system does not report it.
    pub(crate) peak_memory_bytes: Option<u64>,
}

impl PartCost {
    /// Wall-clock seconds, including templates.
    pub(crate) fn seconds(&self) -> f64 {
        self.timing.total() + self.templates_seconds
    }

    pub(crate) fn add(&mut self, more: PartCost) {
        let nothing = PartCost::default();
        if *self == nothing || more == nothing {
            // A part without any work has no CPU seconds that could be missing.
            if *self == nothing {
                *self = more;
            }
            return;
        }
        self.counts.merge(&more.counts);
        self.timing.merge(&more.timing);
        self.templates_seconds += more.templates_seconds;
        // If they are missing for one part, the sum would be divided by the texts of the whole, so it is dropped.
        self.cpu_seconds = self.cpu_seconds.zip(more.cpu_seconds).map(|(a, b)| a + b);
        self.batches.extend(more.batches);
        self.peak_memory_bytes = self.peak_memory_bytes.max(more.peak_memory_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cpu_seconds_are_those_of_all_parts() {
        let part = |cpu_seconds| PartCost { templates_seconds: 1.0, cpu_seconds, ..PartCost::default() };
        let sum = |parts: &[Option<f64>]| {
            let mut all = PartCost::default();
            parts.iter().for_each(|cpu| all.add(part(*cpu)));
            all.add(PartCost::default());
            (all.cpu_seconds, all.templates_seconds)
        };
        assert_eq!(sum(&[Some(2.0), Some(3.0)]), (Some(5.0), 2.0));
        for parts in [[Some(2.0), None, Some(1.0)], [None, Some(2.0), Some(1.0)], [None; 3]] {
            assert_eq!(sum(&parts), (None, 3.0));
        }
        assert_eq!(sum(&[Some(2.0)]), (Some(2.0), 1.0));
    }

    proptest! {
        #[test]
        fn texts_come_back_as_they_were(
            tokens in prop::collection::vec((any::<u32>(), any::<bool>(), any::<u32>(), any::<u32>()), 0..20),
            logs in any::<bool>(),
        ) {
            let text = GeneratedText {
                prompt: 7,
                generation: 3,
                tokens: tokens.iter().map(|one| one.0).collect(),
                forced: tokens.iter().map(|one| one.1).collect(),
                end: End::Length,
                log_probabilities: logs.then(|| tokens.iter().map(|one| f32::from_bits(one.2)).collect()),
                log_allowed: logs.then(|| tokens.iter().map(|one| f32::from_bits(one.3)).collect()),
                preferred: tokens.iter().map(|one| (one.2 as usize, one.3)).collect(),
                dead_ends: logs.then_some(DeadEnds { dead_ends: 3, backtracks: 1 }),
            };
            let line = serde_json::to_string(&JournalEntry::Text((0, 1), KeptText::from_generated(&text))).unwrap();
            let JournalEntry::Text((0, 1), back) = serde_json::from_str(&line).unwrap() else { panic!("{line}") };
            let back = back.into_text();
            // Numbers that are none are not equal to themselves.
            let bits = |logs: &Option<Vec<f32>>| logs.as_ref().map(|l| l.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
            prop_assert_eq!(bits(&back.log_probabilities), bits(&text.log_probabilities));
            prop_assert_eq!(bits(&back.log_allowed), bits(&text.log_allowed));
            prop_assert_eq!(back.dead_ends, text.dead_ends);
            prop_assert_eq!((back.tokens, back.forced, back.preferred), (text.tokens, text.forced, text.preferred));
            prop_assert_eq!((back.prompt, back.generation, back.end), (7, 3, End::Length));
        }
    }
}
