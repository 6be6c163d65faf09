//! What to evaluate.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::prompt_molecule::PromptMolecule;
use super::texts::OtherTexts;
use crate::generate::{Sampling, SelfChecking};
use crate::model::{Device, Room, Synthetic};
use drift_core::chem::AtomLimit;
use drift_core::constraint::ProcessorKind;
use drift_core::constraint::automaton::AnswerForm;
use drift_core::encoding::AskedEncoding;
use drift_data::audit::Missing;
use drift_data::corpus::EmbeddedCorpus;
use drift_data::energy::Energies;
use drift_tune::placeholder::FittedFile;

/// A complete, checked order.
#[derive(Debug, Clone)]
pub struct EvalPlan {
    /// The models, one after the other.
    pub models: Vec<ModelChoice>,
    /// The tokenizer, where it is not the one beside the model.
    pub tokenizer: Option<PathBuf>,
    /// The logit processors.
    pub processors: Vec<ProcessorKind>,
    /// Placeholders of those that take one.
    pub placeholders: Vec<PlaceholderChoice>,
    /// How blocks are written; without it the model's recipe says so, else the conformers given and its own text.
    pub dialect: AskedEncoding,
    /// Texts for each molecule.
    pub generations: Generations,
    /// Thresholds of coverage, in Å, ascending.
    pub thresholds: Vec<f64>,
    /// Rows of a batch.
    pub batch: usize,
    /// The sampling preset's name.
    pub preset: String,
    /// What it stands for.
    pub sampling: Sampling,
    /// The seed of all draws.
    pub seed: u64,
    /// Where to compute.
    pub device: Device,
    /// Whose decoders.
    pub engine: EngineChoice,
    /// How a GPU is checked before it writes texts.
    pub self_check: SelfChecking,
    /// Why candle's operations compute in place of a GPU's kernels, where an earlier process lost the GPU to them.
    pub given_up: Option<String>,
    /// What answers hold: several conformers each, behind a prompt that ends in the tag that opens the first.
    pub form: AnswerForm,
    /// Worked examples that stand before the molecule in every prompt.
    pub examples: Vec<PromptMolecule>,
    /// The token that ends a text, where it is not the one that the model's files name.
    pub eos: Option<String>,
    /// How the KV cache grows.
    pub room: Room,
    /// The most tokens of a text; by default one and a half times those of the longest way to write the molecule, and 16.
    pub max_new_tokens: Option<usize>,
    /// Whether to take junk off numbers before the texts are judged, as the users proposed.
    pub strip_junk: bool,
    /// The largest molecule that is compared; a text of a larger one is another molecule than its prompt.
    pub max_atoms: AtomLimit,
    /// Whether to log how likely the model held each token; costs the whole LM head at each.
    pub log_probabilities: bool,
    /// How many texts of a molecule are drawn together, weighted by what the mask left of the model's distribution, and resampled
    /// at the ends of blocks; logs probabilities too. drift's own engine alone.
    pub resample: Option<usize>,
    /// Whether to score the reference conformers.
    pub likelihood: bool,
    /// What becomes of molecules without a text to compare, in coverage and matching.
    pub missing: Missing,
    /// Whether what is found of each text is kept.
    pub by_text: bool,
    /// Whether to keep a span for each phase of each step.
    pub trace: bool,
    /// Texts of another run that these are to be compared with.
    pub same_as: Option<Arc<OtherTexts>>,
    /// What computes the energies of texts; none if nothing does.
    pub energy: Option<Arc<Energies>>,
}

/// How many texts are written for a molecule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generations {
    /// As many for each.
    Each(usize),
    /// So many times the number of its reference conformers; the field takes two.
    PerReference(usize),
}

impl Generations {
    /// For a molecule with so many references.
    pub fn of(self, references: usize) -> usize {
        match self {
            Generations::Each(texts) => texts,
            Generations::PerReference(times) => times.saturating_mul(references),
        }
    }

    /// At least so many for each molecule, unless they follow its references.
    pub fn at_least(self, texts: usize) -> Self {
        match self {
            Generations::Each(own) => Generations::Each(own.max(texts)),
            Generations::PerReference(_) => self,
        }
    }
}

impl std::str::FromStr for Generations {
    type Err = &'static str;

    /// `5`, or `2k`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, kind): (&str, fn(usize) -> Self) = match text.strip_suffix(['k', 'K']) {
            Some(number) => (number, Generations::PerReference),
            None => (text, Generations::Each),
        };
        let count = number.parse::<u32>().ok().filter(|count| *count > 0);
        count
            .map(|count| kind(count as usize))
            .ok_or("give a number such as 5, or one times the reference conformers of a molecule such as 2k")
    }
}

impl std::fmt::Display for Generations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Generations::Each(texts) => texts.fmt(f),
            Generations::PerReference(times) => write!(f, "{times}k"),
        }
    }
}

/// Which molecules of a corpus are evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EvalPart {
    /// All of them.
    All,
    /// The tenth that drift's own training never sees ([`Part::Test`](drift_data::corpus::Part)).
    Test,
}

impl EvalPart {
    /// Both.
    pub const ALL: [EvalPart; 2] = [EvalPart::All, EvalPart::Test];

    /// As it is written on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            EvalPart::All => "all",
            EvalPart::Test => "test",
        }
    }
}

/// Where a model comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelChoice {
    /// The reference checkpoint that comes with drift.
    Embedded,
    /// A folder with config.json, safetensors and tokenizer.json.
    Folder(PathBuf),
    /// Random weights of a known shape, for throughput alone; needs a tokenizer.
    Synthetic(Synthetic),
}

impl ModelChoice {
    /// The built-in corpus of molecules as it writes them; of a model that is not known, and of shapes whose speed is measured, the
    /// drug-like one.
    pub fn corpus(&self) -> EmbeddedCorpus {
        match self {
            ModelChoice::Embedded => EmbeddedCorpus::Small,
            ModelChoice::Folder(_) | ModelChoice::Synthetic(_) => EmbeddedCorpus::DrugLike,
        }
    }
}

/// What a position template holds in its blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceholderChoice {
    /// This text, without brackets.
    Text(String),
    /// The one of least harm for the tokenizer, by `drift fit` on the embedded corpus.
    Fitted,
    /// What `drift fit -o` wrote for the tokenizer: one per class of block where that gains something.
    File(FittedFile),
    /// [`THEIR_PLACEHOLDER`](drift_core::constraint::THEIR_PLACEHOLDER) beside the fitted one; neither where the tokenizer takes no template.
    Usual,
}

/// Whose decoders compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineChoice {
    /// drift's own; on a GPU its kernels, recorded as a graph.
    Drift,
    /// The same, on a GPU with each kernel launched by itself.
    DriftWithoutGraphs,
    /// As the first, on a GPU with products of few rows by cuBLAS, too, in place of kernels.
    DriftCublas,
    /// drift's own, by candle's operations alone.
    Candle,
}

impl EngineChoice {
    /// All, the default first.
    pub const ALL: &[EngineChoice] = &[
        EngineChoice::Drift,
        EngineChoice::DriftWithoutGraphs,
        EngineChoice::DriftCublas,
        EngineChoice::Candle,
    ];

    /// As it is written on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            EngineChoice::Drift => "drift",
            EngineChoice::DriftWithoutGraphs => "drift-without-graphs",
            EngineChoice::DriftCublas => "drift-cublas",
            EngineChoice::Candle => "candle",
        }
    }

    /// Whether it is of a GPU alone.
    pub fn is_of_a_gpu(self) -> bool {
        matches!(self, EngineChoice::DriftWithoutGraphs | EngineChoice::DriftCublas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_texts_are_read_as_they_are_written() {
        for (text, count) in [("5", Generations::Each(5)), ("2k", Generations::PerReference(2))] {
            assert_eq!(text.parse(), Ok(count));
            assert_eq!(count.to_string(), text);
        }
        assert_eq!((Generations::Each(5).of(3), Generations::PerReference(2).of(3)), (5, 6));
        for text in ["", "k", "0", "0k", "-1", "2kk", "1.5k", "99999999999"] {
            assert!(text.parse::<Generations>().is_err(), "{text}");
        }
    }
}
