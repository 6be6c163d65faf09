//! The settings of a generation that have names on the command line and in records.

use serde::{Deserialize, Serialize};

use drift_core::geometry::GeometryStrength;

/// The settings of a generation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GenerationProtocol {
    /// The source of the molecules.
    pub molecules_from: String,
    /// The number of molecules.
    pub molecules: usize,
    /// The number of prompts, if these molecules pool isomers; null if each molecule is one prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooled_prompts: Option<usize>,
    /// The number of texts for each molecule; the largest number if it follows the references.
    pub generations: usize,
    /// The number of texts for each reference conformer of a molecule, if it follows the references.
    #[serde(default)]
    pub generations_per_reference: Option<usize>,
    /// The part of the corpus to which the molecules belong; null for SMILES.
    #[serde(default)]
    pub split: Option<EvalPart>,
    /// The number of rows of a batch.
    pub batch: usize,
    /// The sampling preset's name.
    pub preset: String,
    /// The seed.
    pub seed: u64,
    /// The largest number of tokens of a text; null if it depends on the molecule.
    pub max_new_tokens: Option<usize>,
    /// The engine that computed.
    pub engine: EngineChoice,
    /// How the KV cache allocated its memory.
    pub kv_cache: Room,
    /// The number of molecules whose prompt RDKit, and so 3DMolGen's encoder, would certainly write differently. Their templates
    /// have another text.
    #[serde(default)]
    pub prompts_not_in_their_spelling: usize,
    /// The largest number of texts of a molecule that were drawn together, weighted by the probability that the mask left, and
    /// resampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resample: Option<usize>,
    /// How strictly the logit processor `geometry` masked, if it was among the processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub geometry: Option<GeometrySettings>,
    /// The number of conformers of a text, each judged on its own, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conformers: Option<usize>,
    /// Whether prompts ended with the tag that opens the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub opened: bool,
    /// The worked examples that preceded the molecule in every prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// The token that ended texts, if it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eos: Option<String>,
    /// The shape, if the weights are random. Then only the throughput is meaningful.
    pub synthetic: Option<Synthetic>,
}

/// How the logit processor `geometry` masks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GeometrySettings {
    /// How strictly positions are limited.
    #[serde(flatten)]
    pub strength: GeometryStrength,
    /// A text goes back where no token is left, until it has written this many times the atoms of a conformer in vain.
    pub backtrack: u32,
}

/// Which molecules of a corpus are evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EvalPart {
    /// All molecules.
    All,
    /// The tenth that drift's own training never uses ([`Part::Test`](crate::corpus::Part)).
    Test,
}

drift_core::named!(EvalPart { All: "all", Test: "test" });

/// The engine that computes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineChoice {
    /// drift's own engine; on a GPU, its kernels recorded as a graph.
    #[default]
    Drift,
    /// drift's own engine; on a GPU, with each kernel launched individually.
    DriftWithoutGraphs,
    /// Like `Drift`, but on a GPU, matrix products with few rows also use cuBLAS instead of kernels.
    DriftCublas,
    /// drift's own engine, with only candle's operations.
    Candle,
}

drift_core::named!(EngineChoice {
    Drift: "drift",
    DriftWithoutGraphs: "drift-without-graphs",
    DriftCublas: "drift-cublas",
    Candle: "candle"
});

impl EngineChoice {
    /// Returns whether the choice matters only on a GPU.
    pub fn is_of_a_gpu(self) -> bool {
        matches!(self, EngineChoice::DriftWithoutGraphs | EngineChoice::DriftCublas)
    }
}

/// How much memory a cache allocates at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Room {
    /// All of it, so that nothing is copied later.
    #[default]
    Static,
    /// As much as the rows need now. The cache is enlarged by copying.
    Growing,
}

drift_core::named!(Room { Static: "static", Growing: "growing" });

/// Shapes of 3DMolGen's models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Synthetic {
    /// Qwen3 0.6B as published.
    #[serde(rename = "qwen3-0.6b")]
    Qwen3Small,
    /// 3DMolGen's LLaMA 380M; the number of layers and the size of the MLP are inferred from the number of parameters.
    #[serde(rename = "llama-380m")]
    Llama380M,
}

drift_core::named!(Synthetic { Qwen3Small: "qwen3-0.6b", Llama380M: "llama-380m" });
