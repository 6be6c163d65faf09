//! `drift train-tokenizer`: few tokens a block, always the same number, proved.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::output::Output;
use crate::design::compare::{Designed, compare, compare_with_design};
use crate::design::scratch::scratch_config;
use crate::design::texts::ALL_CONTEXTS;
use crate::design::train::tokenizer_config;
use crate::design::{
    Aim, Kind, MergesPlan, Plan, Range, ScratchPlan, Trained, train, train_merges, train_scratch,
};
use crate::error::Error;
use crate::io::{read_to_limit, write_atomic};
use crate::job::Job;
use crate::report::design_view::design_table;
use crate::report::learned_view::learned_table;
use crate::tokenizer::Tokenizer;

/// A tokenizer_config.json is at most this large.
const MAX_CONFIG_BYTES: u64 = 1 << 24;

/// The command line of `drift train-tokenizer`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("aim").required(true))]
pub struct Args {
    /// The tokenizer to extend: a tokenizer.json, plain or gzipped, or a model folder; also qwen-like and llama-like,
    /// which come with drift
    #[arg(
        long,
        value_name = "TOKENIZER",
        required_unless_present = "vocab_size",
        conflicts_with = "vocab_size"
    )]
    base: Option<PathBuf>,
    /// Tokens of every block, from < to >, with as few new tokens as can be
    #[arg(long, value_name = "N", group = "aim")]
    tokens_per_block: Option<u16>,
    /// New tokens at most, with as few tokens a block as can be
    #[arg(long, value_name = "V", group = "aim")]
    budget: Option<u32>,
    /// New tokens, learned on the corpus inside blocks: continued BPE on top of the base's merges
    #[arg(long, value_name = "V", group = "aim", value_parser = clap::value_parser!(u32).range(1..))]
    merges: Option<u32>,
    /// Tokens in all, learned from nothing on the corpus, without a base
    #[arg(long, value_name = "V", group = "aim")]
    vocab_size: Option<u32>,
    /// Show other ways to add as many tokens beside it: as it is, designed, continued BPE, plain BPE
    #[arg(long)]
    compare: bool,
    /// Which tokens are allowed
    #[arg(long, value_enum, default_value = "fused")]
    kind: KindArg,
    /// Blocks of numbers below this magnitude change, in whole Å; others keep the base's tokens
    #[arg(long, value_name = "ANGSTROM", default_value_t = 15)]
    range: u32,
    /// The dialect whose blocks change: exactly four decimals
    #[arg(long, value_enum, default_value = "fixed")]
    dialect: DialectArg,
    /// Conformers to measure coverage and tokens on: whatever `drift mine` reads; the embedded corpus by default
    #[arg(long, value_name = "INPUT", num_args = 1..)]
    corpus: Vec<PathBuf>,
    /// The seed of the search
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// A folder for tokenizer.json, new_tokens.json, tokenizer_config.json and report.json
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum KindArg {
    /// No token mixes a bracket with anything else, so that a position template works
    Separate,
    /// Brackets may share a token with digits: fewest tokens, for a logit processor that follows the text
    Fused,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum DialectArg {
    Fixed,
}

impl From<KindArg> for Kind {
    fn from(kind: KindArg) -> Self {
        match kind {
            KindArg::Separate => Kind::Separate,
            KindArg::Fused => Kind::Fused,
        }
    }
}

/// Designs or learns, checks, writes, shows.
pub fn run(args: Args, job: &Job, output: &Output) -> anyhow::Result<()> {
    let corpus = super::corpus(&args.corpus);
    let (range, kind) = (Range::new(args.range)?, args.kind.into());
    let DialectArg::Fixed = args.dialect;
    if let Some(size) = args.vocab_size {
        let plan = ScratchPlan {
            vocab_size: size as usize,
            kind,
            range,
            contexts: ALL_CONTEXTS,
            compare: args.compare,
        };
        let trained = train_scratch(plan, &*corpus, job)?;
        write_folder(&args.output, &trained, &scratch_config())?;
        return show(&args, output, &trained.report, &learned_table(&trained.report, output.terminal()));
    }
    let plan = plan(&args, kind, range)?;
    let config = tokenizer_config(base_config(&args)?.as_ref());
    if let Some(tokens) = args.merges {
        let mut trained = train_merges(MergesPlan::of(&plan, tokens.into()), &*corpus, job)?;
        if args.compare {
            // The design is a row of a table here, not what is written.
            let plan = Plan { contexts: 1, ..plan };
            let merges = MergesPlan::of(&plan, tokens.into());
            trained.report.comparison = Some(compare_with_design(&plan, merges, &*corpus, job)?);
        }
        write_folder(&args.output, &trained, &config)?;
        return show(&args, output, &trained.report, &learned_table(&trained.report, output.terminal()));
    }
    let mut trained = train(&plan, &*corpus, job)?;
    if args.compare {
        let merges = MergesPlan::of(&plan, trained.report.new_tokens);
        trained.report.comparison = Some(compare(merges, Some(Designed::of(&trained)), &*corpus, job)?);
    }
    write_folder(&args.output, &trained, &config)?;
    show(&args, output, &trained.report, &design_table(&trained.report, output.terminal()))
}

/// Prints the result and says where the files are.
fn show(args: &Args, output: &Output, report: &impl Serialize, table: &str) -> anyhow::Result<()> {
    if output.json {
        return output.document(report);
    }
    output.text(table)?;
    output.note(&format!("wrote {} and the files beside it", args.output.join("tokenizer.json").display()));
    Ok(())
}

/// What the user wrote, complete and checked.
fn plan(args: &Args, kind: Kind, range: Range) -> anyhow::Result<Plan> {
    // Merges are compared with the best design of as many tokens.
    let aim = match (args.tokens_per_block, args.budget.or(args.merges)) {
        (Some(tokens), _) => Aim::TokensPerBlock(tokens.into()),
        (None, budget) => Aim::Budget(budget.unwrap_or(0).into()),
    };
    let Some(path) = &args.base else { return Err(Error::input("--base", "is missing", "").into()) };
    let folder = if path.is_dir() { Some(&**path) } else { path.parent() };
    if folder.is_some_and(|base| base.is_dir() && base.canonicalize().ok() == args.output.canonicalize().ok())
    {
        let problem = "is the folder of the base, which would be overwritten";
        return Err(Error::input("--output", problem, "give another folder").into());
    }
    let (base, bytes) = Tokenizer::load_with_json(path)?;
    let base_json = serde_json::from_slice(&bytes).map_err(|e| Error::input(&base.name, e, ""))?;
    Ok(Plan { base, base_json, kind, range, aim, seed: args.seed, contexts: ALL_CONTEXTS })
}

/// The tokenizer_config.json beside the base, if there is one.
fn base_config(args: &Args) -> anyhow::Result<Option<Value>> {
    let base = args.base.as_deref();
    let folder = base.and_then(|base| if base.is_dir() { Some(base) } else { base.parent() });
    let file = folder.map(|folder| folder.join("tokenizer_config.json")).filter(|file| file.is_file());
    let Some(file) = file else { return Ok(None) };
    let bytes = read_to_limit(&file, MAX_CONFIG_BYTES)?;
    let config = serde_json::from_slice(&bytes).map_err(|e| {
        Error::input(file.display(), format!("is not JSON: {e}"), "mend it, or give the tokenizer.json alone")
    })?;
    Ok(Some(config))
}

/// The tokenizer last, so that it stands for the whole.
fn write_folder(folder: &Path, trained: &Trained<impl Serialize>, config: &Value) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    let write = |name: &str, mut text: String| {
        text.push('\n');
        write_atomic(&folder.join(name), text.as_bytes())
    };
    write("new_tokens.json", serde_json::to_string_pretty(&trained.new_tokens)?)?;
    write("report.json", serde_json::to_string_pretty(&trained.report)?)?;
    write("tokenizer_config.json", serde_json::to_string_pretty(config)?)?;
    Ok(write_atomic(&folder.join("tokenizer.json"), &trained.tokenizer_json)?)
}
