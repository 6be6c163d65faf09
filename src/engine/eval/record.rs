//! The record of an evaluation: what was run, on what, and what came out.

use serde::{Deserialize, Serialize};

pub use super::cost::{Cost, Roofline, Seconds};
use super::differences::label;
pub use super::differences::{
    ComparedFigure, FigureDifference, PairedComparison, Rescued, SpeedMeasure, SpeedRatio,
};
pub use super::example::{Example, ExampleProblem};
use super::mask_cost::{MaskCost, ResamplingReport};
use super::plan::{EngineChoice, EvalPart};
use super::texts::SameTexts;
pub use super::worst::WorstText;
use crate::generate::SelfCheck;
use crate::model::{Room, Synthetic};
use drift_core::constraint::{ProcessorKind, TextClass};
use drift_core::encoding::Encoding;
use drift_core::job::Provenance;
use drift_data::audit::chemistry::ChemistryReport;
use drift_data::audit::coverage::CoverageReport;
use drift_data::audit::{DriftHistogram, EnergyReport, GeometryReport, Missing, SampleCounts};
use drift_data::corpus::Skipped;
use drift_data::stats::Interval;
use drift_data::stats::bootstrap::Mean;

/// The schema of [`EvalReport`].
pub const SCHEMA: &str = "drift.eval/1";

/// What `drift eval` measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvalReport {
    /// [`SCHEMA`].
    pub schema: String,
    /// What made it, from what.
    pub provenance: Provenance,
    /// When and where.
    pub environment: Environment,
    /// What was asked for.
    pub protocol: Protocol,
    /// Whether it was cut short; the figures are then those of the samples that were finished.
    pub interrupted: bool,
    /// One per model, logit processor and placeholder.
    pub runs: Vec<RunReport>,
    /// Each run against the one without logit processor on the same model, in the paired form.
    pub comparisons: Vec<PairedComparison>,
    /// The chemistry of the reference conformers, by the method of the runs; none without references.
    #[serde(default)]
    pub reference_chemistry: Option<ChemistryReport>,
    /// How likely each model holds the reference conformers, if asked for.
    pub likelihoods: Vec<Likelihood>,
    /// What to do, in words.
    pub advice: Vec<String>,
    /// How far the texts are those of another run, if asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_texts: Option<SameTexts>,
    /// Energies of the texts by a program of the user's, if asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyReport>,
}

/// When and where an evaluation ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// The day it began, UTC, `2026-11-20`.
    pub date: String,
    /// The operating system and processor family.
    pub system: String,
    /// The processor's name, where the system tells it.
    pub processor: Option<String>,
    /// Threads that computed.
    pub threads: usize,
    /// So many shards were merged: seconds, CPU seconds, steps and batches are added up, the rest is of the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shards: Option<u32>,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Protocol {
    /// Where the molecules come from.
    pub molecules_from: String,
    /// How many molecules.
    pub molecules: usize,
    /// Prompts of the isomers that these molecules pool; none where each is a prompt of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooled_prompts: Option<usize>,
    /// Texts for each; the most of any molecule where they follow its references.
    pub generations: usize,
    /// So many texts for each reference conformer of a molecule, if they follow them.
    #[serde(default)]
    pub generations_per_reference: Option<usize>,
    /// Which part of a corpus the molecules are; none of SMILES.
    #[serde(default)]
    pub split: Option<EvalPart>,
    /// What became of the reference conformers.
    #[serde(default)]
    pub references: ReferenceCounts,
    /// Rows of a batch.
    pub batch: usize,
    /// The sampling preset's name.
    pub preset: String,
    /// The seed.
    pub seed: u64,
    /// The most tokens of a text; none where the molecule decides.
    pub max_new_tokens: Option<usize>,
    /// Whose decoders computed.
    pub engine: EngineChoice,
    /// How the KV cache took its memory.
    pub kv_cache: Room,
    /// Whether junk was taken off numbers before the texts were judged.
    pub strip_junk: bool,
    /// Molecules whose prompt RDKit, and so 3DMolGen's encoder, certainly writes otherwise: their template has another text.
    #[serde(default)]
    pub prompts_not_in_their_spelling: usize,
    /// So many texts of a molecule at most were drawn together, weighted by what the mask left, and resampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resample: Option<usize>,
    /// Conformers of a text, each judged by itself, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conformers: Option<usize>,
    /// Whether prompts ended in the tag that opens the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub opened: bool,
    /// Worked examples before the molecule in every prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// The token that ended texts, where it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eos: Option<String>,
    /// What became of molecules without a text to compare, in coverage and matching.
    #[serde(default)]
    pub missing: Missing,
    /// Set for random weights: throughput only, the texts mean nothing.
    pub synthetic: Option<Synthetic>,
}

/// What became of the reference conformers that were given.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReferenceCounts {
    /// Where they come from, if not from where the molecules do.
    pub from: Option<String>,
    /// Conformers that texts are compared with.
    pub used: u64,
    /// Of them, those that had their atoms in another order than the prompt; one that several prompts are of counts for each.
    pub reordered: u64,
    /// Conformers whose atoms are not in the order of a SMILES: nobody knows which atom is which.
    pub without_order: u64,
    /// Conformers of a prompt's graph with another stereo than the prompt.
    pub other_stereo: u64,
    /// Conformers of molecules that were not asked for.
    pub not_asked_for: u64,
    /// How many molecules these are, by their texts.
    pub molecules_not_asked_for: u64,
    /// Molecules that are asked for and have no reference.
    pub prompts_without: u64,
    /// The first conformers without an order or of another stereo, and why.
    #[serde(default)]
    pub unused: Vec<Skipped>,
}

/// Whether a model is known not to have been trained on the molecules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unseen {
    /// drift trained it on this very input, of which these molecules are the part that no training sees; or on the corpus that was
    /// made without the molecules of the small one; or its weights are random.
    Yes,
    /// drift trained it on this very input, and there are other molecules among these.
    No,
    /// Nothing tells.
    #[default]
    Unknown,
}

impl Unseen {
    /// As records have it.
    pub fn name(self) -> &'static str {
        match self {
            Unseen::Yes => "yes",
            Unseen::No => "no",
            Unseen::Unknown => "unknown",
        }
    }
}

/// What says how a model writes its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DialectEvidence {
    /// The user.
    Given,
    /// The model's recipe.
    Recipe,
    /// The corpus or the references; the model's own text does not contradict them.
    Conformers,
    /// The model's own text; the conformers do not tell.
    OwnText,
    /// Both of them.
    Both,
    /// Nothing: random weights are run in the fixed dialect.
    Default,
}

/// One model under one logit processor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// The logit processor.
    pub lp: ProcessorKind,
    /// Its placeholder, without brackets; how blocks are classed, and in which file, where each class has its own; none
    /// where it needs none.
    pub placeholder: Option<String>,
    /// The placeholder of each class of block, if they are classed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placeholder_classes: Vec<ClassPlaceholder>,
    /// The tokenizer's name.
    pub tokenizer: String,
    /// The model's name.
    pub model: String,
    /// `cpu` or `cuda:0`.
    pub device: String,
    /// Numbers of the weights and of the cache.
    pub dtype: String,
    /// Rows of a batch.
    pub batch: usize,
    /// How decimals are written.
    pub dialect: Encoding,
    /// What says so; none in records of before this was asked.
    #[serde(default)]
    pub dialect_from: Option<DialectEvidence>,
    /// Whether the molecules are known to be new to the model.
    #[serde(default)]
    pub unseen: Unseen,
    /// What became of the texts.
    #[serde(flatten)]
    pub outcome: SampleCounts,
    /// The 95 % interval of the share that passed, over molecules.
    pub passed_interval: Option<Interval>,
    /// The chemistry of the texts that pass; zeros in records of before this was asked.
    #[serde(flatten)]
    pub chemistry: ChemistryReport,
    /// The texts that break most of its rules.
    #[serde(default)]
    pub worst: Vec<WorstText>,
    /// What it took.
    #[serde(flatten)]
    pub cost: Cost,
    /// What the self-check of a GPU came to before it wrote texts; none on the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub self_check: Option<SelfCheck>,
    /// What the seconds of `batch_seconds` are.
    #[serde(default)]
    pub speed_measure: SpeedMeasure,
    /// Seconds of generating for as many finished texts as a batch has rows, one after the other; the last for the rest.
    #[serde(default)]
    pub batch_seconds: Vec<f64>,
    /// The geometry of texts that passed; none without reference conformers.
    pub geometry: Option<GeometryReport>,
    /// Coverage and matching as the field prints them; empty without reference conformers.
    #[serde(flatten)]
    pub coverage: CoverageReport,
    /// Blocks by drift: FREE tokens of the template less those that the block takes; position templates only.
    pub drift: DriftHistogram,
    /// How likely the model held the tokens that were written.
    pub probabilities: Vec<ClassProbability>,
    /// What the mask left of the model's distribution, where all logits were computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask_cost: Option<MaskCost>,
    /// What resampling by it came to, if asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resampling: Option<ResamplingReport>,
    /// Some of the texts that did not pass or hold junk or lost digits.
    pub examples: Vec<Example>,
}

/// What the blocks of one class hold in a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassPlaceholder {
    /// The class.
    pub class: String,
    /// Its placeholder, without brackets.
    pub placeholder: String,
}

/// The probability that the model gave the tokens of a class before any mask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassProbability {
    /// What they say.
    pub class: TextClass,
    /// Tokens of the class.
    pub tokens: u64,
    /// Of them, tokens that the logit processor forced.
    pub forced: u64,
    /// Their mean probability.
    pub mean_probability: f64,
    /// Their mean negative log likelihood, in nats.
    pub mean_nats: f64,
    /// Share of them to which the model gave less than one percent.
    pub unlikely: f64,
}

/// How likely a model holds the reference conformers: what a tokenizer costs the model, since nats of whole texts compare
/// where those of tokens do not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Likelihood {
    /// The model's name.
    pub model: String,
    /// Its tokenizer's.
    pub tokenizer: String,
    /// Conformers that were scored.
    pub conformers: u64,
    /// Mean tokens of an answer, the end of text included.
    pub tokens_per_conformer: f64,
    /// Negative log likelihood of an answer after its prompt, in nats, summed over its tokens; a mean over the conformers of
    /// each molecule, then over molecules.
    pub nats_per_conformer: Mean,
    /// Nats per conformer less those of the first model, paired by molecule; none for the first.
    #[serde(default)]
    pub difference: Option<Mean>,
}

impl RunReport {
    /// The logit processor with its placeholder, as people name it: `allowlist 0.0000,0.0000,0.0000`.
    pub fn label(&self) -> String {
        label(self.lp, self.placeholder.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_records() {
        for (name, json) in [
            ExampleProblem::Junk,
            ExampleProblem::Lost,
            ExampleProblem::Invented,
            ExampleProblem::NoEnd,
            ExampleProblem::Unreadable,
            ExampleProblem::OtherMolecule,
            ExampleProblem::Passes,
        ]
        .map(|problem| (problem.name(), serde_json::to_value(problem).unwrap()))
        {
            assert_eq!(json, name);
        }
        for kind in ProcessorKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        for shape in Synthetic::ALL {
            assert_eq!(serde_json::to_value(shape).unwrap(), shape.name());
        }
        for engine in EngineChoice::ALL {
            assert_eq!(serde_json::to_value(engine).unwrap(), engine.name());
        }
        for room in Room::ALL {
            assert_eq!(serde_json::to_value(room).unwrap(), room.name());
        }
    }

    #[test]
    fn comparisons_without_the_newer_fields_are_read() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../eval/records");
        let path = folder.join("2026-11-20-reference-qwen-like/record.json");
        let record: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let read: Vec<PairedComparison> = serde_json::from_value(record["comparisons"].clone()).unwrap();
        assert_eq!(read.len(), 13);
        assert!(
            read.iter().all(|pair| pair.figures.is_empty() && pair.speed.is_none() && pair.rescued.is_none())
        );
    }
}
