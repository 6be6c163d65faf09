//! The command line of `drift eval`.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::energy::EnergyArgs;
use super::shards::shard;
use super::values::{DialectArg, EncodingArgs, SmilesOfArgs, one_of, threshold};
use drift_core::chem::MAX_HEAVY_ATOMS;
use drift_core::constraint::ProcessorKind;
use drift_data::audit::Missing;
use drift_data::shard::Shard;
use drift_engine::eval::plan::{EngineChoice, EvalPart, Generations};
use drift_engine::model::{Room, Synthetic};

/// The command line of `drift eval`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
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
    /// Logit processors to compare, separated by commas. By default none, allowlist and automaton
    #[arg(long, value_parser = lp_arg(), value_delimiter = ',')]
    pub lp: Vec<LpArg>,
    /// The placeholder in every block of a position template: three numbers such as 0.0000,0.0000,0.0000; `fitted` for the one that
    /// `drift fit` chooses; or a file that `drift fit -o` wrote for the tokenizer. By default 0.0000,0.0000,0.0000; without --lp,
    /// 3DMolGen's 0.000,0.000,0.000 and the fitted one
    #[arg(long, value_name = "P", allow_hyphen_values = true)]
    pub placeholder: Vec<String>,
    /// How the model writes numbers. By default its recipe decides, else the given conformers and the model's own text; if these
    /// disagree, the option is required
    #[arg(long, value_enum)]
    pub dialect: Option<DialectArg>,
    #[command(flatten)]
    pub blocks: EncodingArgs,
    /// Generate for the molecules of this file, one SMILES per line
    #[arg(long, value_name = "FILE")]
    pub smiles: Option<PathBuf>,
    /// Reference conformers of the molecules of --smiles, in any format that `drift mine` reads
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
    /// Texts for each molecule; `2k` is twice the number of its reference conformers, as in the benchmarks of the field
    #[arg(long, value_name = "K", default_value = "1")]
    pub generations: Generations,
    /// Measure isomers together if the corpus pools them under one SMILES of GEOM, as 3DMolGen's run_eval does. The corpus is a pickle
    /// with `sub_smiles_counts`. Each isomer is a prompt, and `--generations 2k` means twice its count
    #[arg(long, requires = "corpus")]
    pub pool: bool,
    /// Conformers in each text, one after another. Each has its own tags and is judged separately
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100),
        conflicts_with_all = ["resample", "likelihood"])]
    pub conformers: u16,
    /// End every prompt with `[CONFORMER]`; answers begin after it
    #[arg(long, conflicts_with = "likelihood")]
    pub opened: bool,
    /// Put worked examples before the molecule in every prompt: at most ten conformers, in any format that `drift mine` reads
    #[arg(long, value_name = "INPUT", num_args = 1.., conflicts_with = "likelihood")]
    pub examples: Vec<PathBuf>,
    /// The token that ends a text, such as `[/CONFORMER]`; by default the one that the model's files name
    #[arg(long, value_name = "TOKEN")]
    pub eos: Option<String>,
    /// An RMSD threshold of coverage in Å; repeat it, or separate several with commas [default: 0.75]
    #[arg(long, visible_alias = "thresholds", value_name = "ANGSTROM", value_parser = threshold, value_delimiter = ',')]
    pub threshold: Vec<f64>,
    /// How to treat molecules that have references but no usable text: count them as 0 in coverage, or leave them out of coverage and
    /// matching as 3DMolGen's run_eval does
    #[arg(long, value_parser = one_of(&Missing::ALL, Missing::name), default_value = "zero")]
    pub missing: Missing,
    /// Texts in a batch
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    pub batch: u32,
    /// The sampling preset: greedy, qwen3, top-p-P-tT or min-p-P-tT
    #[arg(long, value_name = "NAME", default_value = "qwen3")]
    pub preset: String,
    /// The random seed
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
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
    /// The largest number of tokens of a text; by default one and a half times the longest text of the molecule
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_new_tokens: Option<u32>,
    /// Remove junk from numbers before judging: characters that belong to no number, and digits beyond the format
    #[arg(long)]
    pub strip_junk: bool,
    /// Compare molecules of at most N heavy atoms; the text of a larger one counts as another molecule
    #[arg(long, value_name = "N", default_value_t = MAX_HEAVY_ATOMS)]
    pub max_atoms: usize,
    /// Record the probability that the model gave each token. This computes the whole LM head at every step
    #[arg(long)]
    pub probabilities: bool,
    /// Draw K texts of a molecule together and resample them after each block by the probability that the mask left. This samples
    /// from the model conditioned on legal texts, which a mask alone does not. Writes at least K texts for each molecule, and costs
    /// what --probabilities costs
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(2..))]
    pub resample: Option<u32>,
    /// Also score the reference conformers in nats per conformer, which compares models with different tokenizers
    #[arg(long)]
    pub likelihood: bool,
    /// Write every text as a line of {smiles, generation, lp, placeholder, model, text}; `-` prints them instead of tables
    #[arg(long, value_name = "FILE.jsonl")]
    pub texts: Option<PathBuf>,
    /// Compare with texts that another run of this command wrote with --texts, for example on another device: how many are equal,
    /// where the others first differ, and by how much the best logit led there
    #[arg(long, value_name = "FILE.jsonl", conflicts_with_all = ["strip_junk", "shard"])]
    pub same_as: Option<PathBuf>,
    /// Write a line for each molecule of each run: counts, coverage, matching. The name of the file ends in .csv or .jsonl
    #[arg(long, value_name = "FILE")]
    pub molecules: Option<PathBuf>,
    /// Write one line of JSON for each text: verdicts, chemistry, the smallest RMSD to a reference
    #[arg(long, value_name = "FILE.jsonl")]
    pub verdicts: Option<PathBuf>,
    /// Write the RMSD of every text to every reference: an .npz, or a .pickle as 3DMolGen writes it. For one model and one logit
    /// processor
    #[arg(long, value_name = "FILE")]
    pub matrix: Option<PathBuf>,
    /// Write a Chrome trace of the phases, for Perfetto; `-` prints it instead of tables
    #[arg(long, value_name = "FILE.json")]
    pub trace: Option<PathBuf>,
    /// Run only shard I of N, which has every N-th molecule, and keep its texts in the folder of -o. `drift merge` then writes what a
    /// single run would have written. `slurm` takes I and N from the Slurm array task. The same command continues a shard that was
    /// stopped
    #[arg(long, value_name = "I/N", value_parser = shard, requires = "output",
        conflicts_with_all = ["texts", "molecules", "trace"])]
    pub shard: Option<Shard>,
    /// Print every table, not only the summary: chemistry, coverage, intervals, and where the time went
    #[arg(long)]
    pub verbose: bool,
    #[command(flatten)]
    pub energy: EnergyArgs,
    /// Write record.json and eval.html, which hold every table, to this folder; `-` prints the JSON. The folder also keeps finished
    /// texts, so that the same command continues after it was stopped
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

impl Args {
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
    let is_asked = |kind: &ProcessorKind| all || asked.contains(&LpArg::One(*kind));
    ProcessorKind::ALL.into_iter().filter(is_asked).collect()
}
