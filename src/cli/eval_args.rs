//! The command line of `drift eval`.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::shards::shard;
use super::values::{DialectArg, EncodingArgs, SmilesOfArgs, one_of, threshold};
use crate::audit::Missing;
use crate::chem::MAX_HEAVY_ATOMS;
use crate::constraint::{LpKind, USUAL_PLACEHOLDER};
use crate::eval::plan::{EngineChoice, EvalPart, Generations};
use crate::model::{Room, Synthetic};
use crate::shard::Shard;

/// The command line of `drift eval`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A model folder (config.json, safetensors, tokenizer.json), or org/name in the cache of Hugging Face; the embedded reference
    /// checkpoint by default
    #[arg(long, value_name = "DIR")]
    pub model: Vec<PathBuf>,
    /// Random weights of a known shape instead of a model: for throughput alone
    #[arg(long, value_parser = one_of(&Synthetic::ALL, Synthetic::name), conflicts_with = "model")]
    pub synthetic: Option<Synthetic>,
    /// The tokenizer, if it is not beside the model: a tokenizer.json, plain or gzipped, or a model folder
    #[arg(long, value_name = "TOKENIZER")]
    pub tokenizer: Option<PathBuf>,
    /// Logit processors; all of them by default
    #[arg(long, value_parser = lp_arg(), value_delimiter = ',')]
    pub lp: Vec<LpArg>,
    /// What position templates hold in their blocks, such as 0.0000,0.0000,0.0000; `fitted`; or a file that `drift fit
    /// -o` wrote for the tokenizer: one placeholder for each class of block where that gains something, else one for all
    #[arg(long, value_name = "P", allow_hyphen_values = true, default_value = USUAL_PLACEHOLDER)]
    pub placeholder: Vec<String>,
    /// How numbers are written; by default as the model's recipe says, else as the conformers given and the model's own text
    /// are; where these disagree, or nothing tells, it has to be given
    #[arg(long, value_enum)]
    pub dialect: Option<DialectArg>,
    #[command(flatten)]
    pub blocks: EncodingArgs,
    /// A file with one SMILES a line, all of which are generated for
    #[arg(long, value_name = "FILE")]
    pub smiles: Option<PathBuf>,
    /// Conformers of the molecules of --smiles: anything that `mine` reads with text
    #[arg(long, value_name = "INPUT", num_args = 1.., requires = "smiles")]
    pub references: Vec<PathBuf>,
    /// A corpus whose molecules are taken, with all their conformers as reference; the test part of the embedded one by default
    #[arg(long, value_name = "INPUT", num_args = 1.., conflicts_with = "smiles")]
    pub corpus: Vec<PathBuf>,
    #[command(flatten)]
    pub smiles_source: SmilesOfArgs,
    /// Which molecules of the corpus: all, or the tenth that drift's training never sees. By default test where drift trained the
    /// models on this corpus, and of the embedded one; else all
    #[arg(long, value_parser = one_of(&EvalPart::ALL, EvalPart::name), conflicts_with = "smiles")]
    pub split: Option<EvalPart>,
    /// At most so many molecules: of a corpus spread evenly, of --smiles the first ones. By default 64 of the embedded corpus, else
    /// all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub samples: Option<u32>,
    /// Texts for each molecule; 2k for twice the number of its reference conformers, as the field has it
    #[arg(long, value_name = "K", default_value = "1")]
    pub generations: Generations,
    /// Conformers of a text, one after another, each between its tags and judged by itself
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100),
        conflicts_with_all = ["resample", "likelihood"])]
    pub conformers: u16,
    /// Prompts end in `[CONFORMER]`, so that answers begin behind it
    #[arg(long, conflicts_with = "likelihood")]
    pub opened: bool,
    /// Worked examples before the molecule in every prompt: at most ten conformers, of anything that `mine` reads with text
    #[arg(long, value_name = "INPUT", num_args = 1.., conflicts_with = "likelihood")]
    pub examples: Vec<PathBuf>,
    /// The token that ends a text, such as `[/CONFORMER]`; by default what the model's files name
    #[arg(long, value_name = "TOKEN")]
    pub eos: Option<String>,
    /// A threshold of coverage in Å; can be repeated, or several with commas between them [default: 0.75]
    #[arg(long, visible_alias = "thresholds", value_name = "ANGSTROM", value_parser = threshold, value_delimiter = ',')]
    pub threshold: Vec<f64>,
    /// Molecules that have references and no usable text: 0 in coverage, or left out of coverage and matching as 3DMolGen's
    /// run_eval leaves them out
    #[arg(long, value_parser = one_of(&Missing::ALL, Missing::name), default_value = "zero")]
    pub missing: Missing,
    /// Rows of a batch
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    pub batch: u32,
    /// How tokens are drawn: greedy, qwen3, top-p-P-tT or min-p-P-tT
    #[arg(long, value_name = "NAME", default_value = "qwen3")]
    pub preset: String,
    /// The seed of all draws
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// cpu or cuda:N
    #[arg(long, default_value = "cpu")]
    pub device: String,
    /// Type of weights and cache; f32 on the CPU, bf16 on a GPU by default. bf16 on the CPU: half the bytes, all sums in f32
    #[arg(long, value_enum)]
    pub dtype: Option<DtypeArg>,
    /// Whose decoders compute [default: drift]. On a GPU drift's kernels write texts if a self-check finds nothing; `--engine drift`
    /// insists on them
    #[arg(long, value_parser = one_of(EngineChoice::ALL, EngineChoice::name))]
    pub engine: Option<EngineChoice>,
    /// How the KV cache takes its memory
    #[arg(long, value_parser = one_of(&Room::ALL, Room::name), default_value = "static")]
    pub kv_cache: Room,
    /// The most tokens of a text; by default half more than the molecule's longest text takes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_new_tokens: Option<u32>,
    /// Take junk off numbers before the texts are judged: what is no number, and digits beyond the format
    #[arg(long)]
    pub strip_junk: bool,
    /// The heavy atoms of the largest molecule that is compared; a text of a larger one is another molecule than its prompt
    #[arg(long, value_name = "N", default_value_t = MAX_HEAVY_ATOMS)]
    pub max_atoms: usize,
    /// Log how likely the model held each token; costs the whole LM head at each
    #[arg(long)]
    pub probabilities: bool,
    /// Draw so many texts of a molecule together, weighted by the probability that the mask left, and resample them at the ends
    /// of blocks: the model given that its text is legal, where a mask alone is not. Writes at least so many texts for each
    /// molecule; costs what --probabilities does
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(2..))]
    pub resample: Option<u32>,
    /// Also score the reference conformers: nats a conformer, summed over its tokens, so that tokenizers compare
    #[arg(long)]
    pub likelihood: bool,
    /// A file for every text: {smiles, generation, lp, placeholder, model, text} a line; `-` prints them instead of tables
    #[arg(long, value_name = "FILE.jsonl")]
    pub texts: Option<PathBuf>,
    /// Texts that another run of this command wrote by --texts, on another device say: tells which are the same, where others
    /// first differ, and by how much the best logit led there
    #[arg(long, value_name = "FILE.jsonl", conflicts_with_all = ["strip_junk", "shard"])]
    pub same_as: Option<PathBuf>,
    /// A file with a line for each molecule of each run, .csv or .jsonl: counts, coverage, matching
    #[arg(long, value_name = "FILE")]
    pub molecules: Option<PathBuf>,
    /// A file for what was found of each text, a line of JSON each: verdicts, chemistry, the least RMSD to a reference
    #[arg(long, value_name = "FILE.jsonl")]
    pub verdicts: Option<PathBuf>,
    /// A file for the RMSD of all pairs of a text and a reference: an .npz, or a .pickle in the form of 3DMolGen. Of one model and one
    /// logit processor
    #[arg(long, value_name = "FILE")]
    pub matrix: Option<PathBuf>,
    /// A file for a Chrome trace of the phases; opens in Perfetto; `-` prints it instead of tables
    #[arg(long, value_name = "FILE.json")]
    pub trace: Option<PathBuf>,
    /// Do one shard of the work, every N-th molecule from the I-th on, and keep its texts in the folder of -o: `drift merge`
    /// makes of all shards what one run would have written. `slurm`: the task of a job array says which. A shard that was
    /// stopped goes on by the same command
    #[arg(long, value_name = "I/N", value_parser = shard, requires = "output",
        conflicts_with_all = ["texts", "molecules", "trace"])]
    pub shard: Option<Shard>,
    /// A folder for record.json and eval.html; `-` prints the JSON. Texts are kept there while others are written, so that a run
    /// that was stopped goes on by the same command
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

impl Args {
    /// Whose decoders compute.
    pub(super) fn engine(&self) -> EngineChoice {
        self.engine.unwrap_or(EngineChoice::Drift)
    }
}

/// What `--lp` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LpArg {
    All,
    One(LpKind),
}

/// Parses `all`, or the name of a logit processor.
fn lp_arg() -> impl TypedValueParser<Value = LpArg> {
    let names = ["all"].into_iter().chain(LpKind::ALL.map(LpKind::name));
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

/// Each processor once, in the order of reports.
pub(super) fn processors(asked: &[LpArg]) -> Vec<LpKind> {
    let all = asked.is_empty() || asked.contains(&LpArg::All);
    let is_asked = |kind: &LpKind| all || asked.contains(&LpArg::One(*kind));
    LpKind::ALL.into_iter().filter(is_asked).collect()
}
