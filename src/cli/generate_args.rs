//! The options of `drift generate`, which `drift eval` has too.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::shards::shard;
use super::values::{DialectArg, EncodingArgs, SmilesOfArgs, one_of};
use drift_core::constraint::ProcessorKind;
use drift_data::shard::Shard;
use drift_engine::eval::plan::{EngineChoice, EvalPart, Generations};
use drift_engine::model::{Room, Synthetic};

/// The heading of options that name what is written.
pub(super) const OUTPUT: &str = "Output";

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
    #[command(flatten)]
    pub running: RunningArgs,
}

/// The models, and how they write.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Model")]
pub(super) struct ModelArgs {
    /// A model folder (config.json, safetensors, tokenizer.json), or org/name in the cache of Hugging Face; by default the built-in
    /// checkpoint. Repeat the option to compare models
    #[arg(long, value_name = "DIR")]
    pub model: Vec<PathBuf>,
    /// Use random weights of this shape instead of a model, to measure throughput
    #[arg(long, value_parser = one_of(&Synthetic::ALL, Synthetic::name), conflicts_with = "model")]
    pub synthetic: Option<Synthetic>,
    /// The tokenizer, if it is not the one in the model folder: a tokenizer.json, plain or gzipped, or a model folder
    #[arg(long, value_name = "TOKENIZER")]
    pub tokenizer: Option<PathBuf>,
    /// How the model writes numbers. By default its recipe decides, else the given conformers and the model's own text; if these
    /// disagree, the option is required
    #[arg(long, value_enum)]
    pub dialect: Option<DialectArg>,
    #[command(flatten)]
    pub blocks: EncodingArgs,
}

/// The molecules for which texts are generated.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Molecules")]
pub(super) struct MoleculeArgs {
    /// Generate for the molecules of this file, one SMILES per line
    #[arg(long, value_name = "FILE")]
    pub smiles: Option<PathBuf>,
    /// Reference conformers of the molecules of --smiles, in any format that `drift mine` reads. `drift eval` compares texts with them,
    /// and `--generations 2k` counts them
    #[arg(long, value_name = "INPUT", num_args = 1.., requires = "smiles")]
    pub references: Vec<PathBuf>,
    /// Generate for the molecules of this corpus, with all their conformers as references: files, or the name of a built-in corpus,
    /// `small` (the default of the built-in model) or `drug-like` (the default of other models)
    #[arg(long, value_name = "INPUT", num_args = 1.., conflicts_with = "smiles")]
    pub corpus: Vec<PathBuf>,
    #[command(flatten)]
    pub smiles_source: SmilesOfArgs,
    /// Which molecules of the corpus: all, or the tenth that `drift train-model` never trains on. The default is `test` for `drug-like`
    /// and for a corpus that drift trained the models on, else `all`
    #[arg(long, value_parser = one_of(&EvalPart::ALL, EvalPart::name), conflicts_with = "smiles")]
    pub split: Option<EvalPart>,
    /// Use at most N molecules: spread evenly over a corpus, the first ones of --smiles. By default 64 if neither --corpus nor --smiles
    /// is given, else all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub samples: Option<u32>,
    /// Measure isomers together if the corpus pools them under one SMILES of GEOM, as 3DMolGen's run_eval does. The corpus is a pickle
    /// with `sub_smiles_counts`. Each isomer is a prompt, and `--generations 2k` means twice its count
    #[arg(long, requires = "corpus")]
    pub pool: bool,
}

/// The logit processors.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Logit processors")]
pub(super) struct ProcessorArgs {
    /// Logit processors to compare, separated by commas. By default none, allowlist and automaton; `all` is all but geometry
    #[arg(long, value_parser = lp_arg(), value_delimiter = ',')]
    pub lp: Vec<LpArg>,
    /// The placeholder in every block of a position template: three numbers such as 0.0000,0.0000,0.0000; `fitted` for the one that
    /// `drift fit` chooses; or a file that `drift fit -o` wrote for the tokenizer. By default 0.0000,0.0000,0.0000; without --lp,
    /// 3DMolGen's 0.000,0.000,0.000 and the fitted one
    #[arg(long, value_name = "P", allow_hyphen_values = true)]
    pub placeholder: Vec<String>,
    /// For `geometry`: the share by which distances may exceed the judge's bounds [default: 0.2]. The judge itself allows 0.25
    #[arg(long, value_name = "SHARE")]
    pub bounds: Option<f64>,
    /// For `geometry`: do not hold stereocentres and double bonds to the marks of the SMILES
    #[arg(long)]
    pub no_signs: bool,
    /// For `geometry`: do not hold aromatic rings and planar carbons to planes
    #[arg(long)]
    pub no_planes: bool,
    /// For `geometry`: how often a text starts anew if no coordinate is left [default: 3]. Beyond that the automaton alone decides there
    #[arg(long, value_name = "N")]
    pub restarts: Option<u32>,
}

/// The prompts, and how texts are drawn.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Sampling")]
pub(super) struct SamplingArgs {
    /// Texts for each molecule; `2k` is twice the number of its reference conformers, as in the benchmarks of the field
    #[arg(long, value_name = "K", default_value = "1")]
    pub generations: Generations,
    /// The sampling preset: greedy, qwen3, top-p-P-tT or min-p-P-tT
    #[arg(long, value_name = "NAME", default_value = "qwen3")]
    pub preset: String,
    /// The random seed
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Draw K texts of a molecule together and resample them after each block by the probability that the mask left. This samples
    /// from the model conditioned on legal texts, which a mask alone does not. Writes at least K texts for each molecule, and costs
    /// what --probabilities costs
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(2..))]
    pub resample: Option<u32>,
    /// Record the probability that the model gave each token. This computes the whole LM head at every step
    #[arg(long)]
    pub probabilities: bool,
    /// The largest number of tokens of a text; by default one and a half times the longest text of the molecule
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_new_tokens: Option<u32>,
    /// The token that ends a text, such as `[/CONFORMER]`; by default the one that the model's files name
    #[arg(long, value_name = "TOKEN")]
    pub eos: Option<String>,
    /// Conformers in each text, one after another. Each has its own tags and is judged separately
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100),
        conflicts_with = "resample")]
    pub conformers: u16,
    /// End every prompt with `[CONFORMER]`; answers begin after it
    #[arg(long)]
    pub opened: bool,
    /// Put worked examples before the molecule in every prompt: at most ten conformers, in any format that `drift mine` reads
    #[arg(long, value_name = "INPUT", num_args = 1..)]
    pub examples: Vec<PathBuf>,
}

/// How the work is done.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Running")]
pub(super) struct RunningArgs {
    /// Texts in a batch
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    pub batch: u32,
    /// The device: cpu or cuda:N
    #[arg(long, default_value = "cpu")]
    pub device: String,
    /// The type of weights and cache; by default f32 on the CPU, bf16 on a GPU. On the CPU bf16 halves the bytes; sums stay f32
    #[arg(long, value_enum)]
    pub dtype: Option<DtypeArg>,
    /// The engine that runs the model [default: drift]. On a GPU drift's kernels write the texts if a self-check finds no difference
    /// from candle's operations; `--engine drift` insists on the kernels
    #[arg(long, value_parser = one_of(EngineChoice::ALL, EngineChoice::name))]
    pub engine: Option<EngineChoice>,
    /// How the KV cache is allocated
    #[arg(long, value_parser = one_of(&Room::ALL, Room::name), default_value = "static")]
    pub kv_cache: Room,
    /// Write a Chrome trace of the phases, for Perfetto; `-` prints it instead of tables
    #[arg(long, value_name = "FILE.json")]
    pub trace: Option<PathBuf>,
    /// Run only shard I of N, which has every N-th molecule, and keep its texts in the folder of -o. `drift merge` then writes what a
    /// single run would have written. `slurm` takes I and N from the Slurm array task. The same command continues a shard that was
    /// stopped
    #[arg(long, value_name = "I/N", value_parser = shard, requires = "output", conflicts_with = "trace")]
    pub shard: Option<Shard>,
}

impl RunningArgs {
    /// The engine that runs the model; drift's by default.
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
    let names = ["all"].into_iter().chain(ProcessorKind::ALL.map(ProcessorKind::name));
    PossibleValuesParser::new(names).try_map(|given| match &*given {
        "all" => Ok(LpArg::All),
        name => name.parse().map(LpArg::One),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum DtypeArg {
    F32,
    Bf16,
}

/// Each processor once, in the order of reports. By default the model alone, 3DMolGen's newest processor and the automaton.
pub(super) fn processors(asked: &[LpArg]) -> Vec<ProcessorKind> {
    if asked.is_empty() {
        return vec![ProcessorKind::None, ProcessorKind::Allowlist, ProcessorKind::Automaton];
    }
    let all = asked.contains(&LpArg::All);
    // `geometry` needs coordinates, which not all encodings have, and a CPU.
    let is_asked = |kind: &ProcessorKind| {
        (all && *kind != ProcessorKind::Geometry) || asked.contains(&LpArg::One(*kind))
    };
    ProcessorKind::ALL.into_iter().filter(is_asked).collect()
}
