//! The options of `drift generate`, which `drift eval` has too.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::TypedValueParser;

use super::help;
use super::shards::shard;
use super::values::{DIALECTS, EncodingArgs, SmilesOfArgs, choice, one_of};
use drift_core::constraint::ProcessorKind;
use drift_core::encoding::TrailingZeros;
use drift_data::shard::Shard;
use drift_engine::model::{Room, Synthetic};
use drift_engine::runs::plan::{EngineChoice, EvalPart, Generations};

pub(super) use super::help::OUTPUT;

/// The options of generation.
#[derive(Debug, clap::Args)]
pub(super) struct GenerateArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub molecules: MoleculeArgs,
    #[command(flatten)]
    pub processors: ProcessorArgs,
    #[command(flatten)]
    pub sampling: SamplingArgs,
}

/// The models, and how they write.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = help::MODEL)]
pub(super) struct ModelArgs {
    /// The model: a folder, or org/name in the cache of Hugging Face; repeat it to compare models [default: the built-in one]
    #[arg(long, value_name = "DIR")]
    pub model: Vec<PathBuf>,
    /// Random weights instead of a model: qwen3-0.6b or llama-380m
    #[arg(long, value_name = "SHAPE", hide_possible_values = true, value_parser = one_of(&Synthetic::ALL, Synthetic::name), conflicts_with = "model")]
    pub synthetic: Option<Synthetic>,
    /// The tokenizer, if it is not the model's own
    #[arg(long, value_name = "TOKENIZER")]
    pub tokenizer: Option<PathBuf>,
    /// How the model writes decimals [default: as its recipe or texts]
    #[arg(long, conflicts_with = "encoding", value_name = "fixed|stripped", hide_possible_values = true, value_parser = choice(&DIALECTS))]
    pub dialect: Option<TrailingZeros>,
    #[command(flatten)]
    pub blocks: EncodingArgs,
}

/// The molecules for which texts are generated.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Molecules")]
pub(super) struct MoleculeArgs {
    /// The molecules to generate for: a file with one SMILES per line
    #[arg(long, value_name = "FILE")]
    pub smiles: Option<PathBuf>,
    /// Reference conformers of the molecules of --smiles
    #[arg(long, value_name = "INPUT", num_args = 1.., requires = "smiles", conflicts_with_all = ["corpus", "split", "pool"])]
    pub references: Vec<PathBuf>,
    /// The molecules and their references: files, or a built-in corpus, small or drug-like
    #[arg(long, value_name = "INPUT", num_args = 1.., conflicts_with = "smiles")]
    pub corpus: Vec<PathBuf>,
    #[command(flatten)]
    pub smiles_source: SmilesOfArgs,
    /// The molecules of the corpus: all, or those that drift never trains on [default: test if drift trained on the corpus]
    #[arg(long, value_name = "all|test", hide_possible_values = true, value_parser = one_of(&EvalPart::ALL, EvalPart::name), conflicts_with = "smiles")]
    pub split: Option<EvalPart>,
    /// The most molecules [default: 64 of a built-in corpus, else all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub samples: Option<u32>,
    /// Measure the isomers together that the corpus has under one SMILES
    #[arg(long, requires = "corpus", conflicts_with = "smiles")]
    pub pool: bool,
}

/// The logit processors.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Logit processors")]
pub(super) struct ProcessorArgs {
    /// none, generic, qwen38, qwen39, targeted, allowlist, truncating, automaton, all, geometry [default:
    /// none,allowlist,automaton; built in: geometry too]
    #[arg(long, hide_possible_values = true, value_parser = lp_arg(), value_delimiter = ',')]
    pub lp: Vec<LpArg>,
    /// The placeholder of position templates: three numbers, `fitted`, or a file of `drift fit -o` [default: 0.0000,0.0000,0.0000;
    /// without --lp two others]
    #[arg(long, value_name = "P", allow_hyphen_values = true)]
    pub placeholder: Vec<String>,
    /// For geometry: the share by which distances may exceed the judge's bounds [default: 0.2]
    #[arg(long, value_name = "SHARE")]
    pub bounds: Option<f64>,
    /// For geometry: do not hold stereocentres and double bonds to the marks of the SMILES
    #[arg(long)]
    pub no_signs: bool,
    /// For geometry: do not hold aromatic rings and planar carbons to planes
    #[arg(long)]
    pub no_planes: bool,
    /// For geometry: how many times its length a text may go back where no coordinate is left [default: 12]
    #[arg(long, value_name = "N")]
    pub backtrack: Option<u32>,
}

/// The prompts, and how texts are drawn.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Sampling")]
pub(super) struct SamplingArgs {
    /// Texts for each molecule; `2k` is twice the number of its references
    #[arg(long, value_name = "K", default_value = "1")]
    pub generations: Generations,
    /// The preset: greedy, qwen3, top-p-P-tT or min-p-P-tT
    #[arg(long, value_name = "NAME", default_value = "qwen3")]
    pub preset: String,
    /// The random seed
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Draw K texts of a molecule together, and resample them after each block
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(2..))]
    pub resample: Option<u32>,
    /// Record the probability that the model gave each token
    #[arg(long)]
    pub probabilities: bool,
    /// The most tokens of a text [default: 1.5 times the longest text]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_new_tokens: Option<u32>,
    /// The token that ends a text [default: as the model's files name it]
    #[arg(long, value_name = "TOKEN")]
    pub eos: Option<String>,
    /// Conformers in each text, one after another
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100),
        conflicts_with = "resample")]
    pub conformers: u16,
    /// End every prompt with `[CONFORMER]`
    #[arg(long)]
    pub opened: bool,
    /// Conformers to show in every prompt before the molecule, at most ten
    #[arg(long, value_name = "INPUT", num_args = 1..)]
    pub examples: Vec<PathBuf>,
}

/// How the work is done.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = help::RUNNING)]
pub(super) struct RunningArgs {
    /// Texts in a batch
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    pub batch: u32,
    /// The device: cpu or cuda:N
    #[arg(long, default_value = "cpu")]
    pub device: String,
    /// The type of weights [default: f32 on the CPU, bf16 on a GPU]
    #[arg(long, value_name = "f32|bf16", hide_possible_values = true, value_enum)]
    pub dtype: Option<DtypeArg>,
    /// The engine: drift, drift-without-graphs, drift-cublas or candle [default: drift]
    #[arg(long, hide_possible_values = true, value_parser = one_of(&EngineChoice::ALL, EngineChoice::name))]
    pub engine: Option<EngineChoice>,
    /// How the KV cache is allocated
    #[arg(long, value_name = "static|growing", hide_possible_values = true, value_parser = one_of(&Room::ALL, Room::name), default_value = "static")]
    pub kv_cache: Room,
    /// Write a Chrome trace of the phases; `-` prints it
    #[arg(long, value_name = "FILE.json")]
    pub trace: Option<PathBuf>,
    /// Shard I of N, kept in -o; `slurm` takes both from Slurm
    #[arg(long, value_name = "I/N", value_parser = shard, requires = "output", conflicts_with = "trace")]
    pub shard: Option<Shard>,
}

impl RunningArgs {
    /// Returns the engine that runs the model; drift's by default.
    pub(super) fn engine(&self) -> EngineChoice {
        self.engine.unwrap_or(EngineChoice::Drift)
    }
}

/// A value of `--lp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LpArg {
    All,
    One(ProcessorKind),
}

/// Parses `all`, or the name of a logit processor.
fn lp_arg() -> impl TypedValueParser<Value = LpArg> {
    let kinds = ProcessorKind::ALL.map(|kind| (kind.name(), LpArg::One(kind), ""));
    choice(&[&[("all", LpArg::All, "")], &kinds[..]].concat())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum DtypeArg {
    F32,
    Bf16,
}

/// Returns each processor once, in the order of reports. By default the model alone, 3DMolGen's newest processor and the automaton. If
/// model and molecules are built in, also `geometry`: it can follow them, and others only if their encoding has coordinates.
pub(super) fn processors(asked: &[LpArg], is_built_in: bool) -> Vec<ProcessorKind> {
    if asked.is_empty() {
        let mut usual = vec![ProcessorKind::None, ProcessorKind::Allowlist, ProcessorKind::Automaton];
        usual.extend(is_built_in.then_some(ProcessorKind::Geometry));
        return usual;
    }
    let all = asked.contains(&LpArg::All);
    // `geometry` needs coordinates, which not all encodings have.
    let is_asked = |kind: &ProcessorKind| {
        (all && *kind != ProcessorKind::Geometry) || asked.contains(&LpArg::One(*kind))
    };
    ProcessorKind::ALL.into_iter().filter(is_asked).collect()
}
