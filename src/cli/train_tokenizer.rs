//! `drift train-tokenizer`: few tokens a block, always the same number, proved.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::output::Output;
use crate::design::texts::ALL_CONTEXTS;
use crate::design::train::tokenizer_config;
use crate::design::{Aim, Kind, Plan, Range, Trained, train};
use crate::error::Error;
use crate::io::{read_to_limit, write_atomic};
use crate::job::Job;
use crate::report::design_page::design_page;
use crate::report::design_view::design_table;
use crate::text::Dialect;
use crate::tokenizer::Tokenizer;

/// A tokenizer_config.json is at most this large.
const MAX_CONFIG_BYTES: u64 = 1 << 24;

/// The command line of `drift train-tokenizer`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("aim").required(true))]
pub struct Args {
    /// The tokenizer to extend: a tokenizer.json, plain or gzipped, or a model folder; also qwen-like and llama-like,
    /// which come with drift
    #[arg(long, value_name = "TOKENIZER")]
    base: PathBuf,
    /// Tokens of every block, from < to >, with as few new tokens as can be
    #[arg(long, value_name = "N", group = "aim")]
    tokens_per_block: Option<u16>,
    /// New tokens at most, with as few tokens a block as can be
    #[arg(long, value_name = "V", group = "aim")]
    budget: Option<u32>,
    /// Which tokens are allowed
    #[arg(long, value_enum, default_value = "fused")]
    kind: KindArg,
    /// Blocks of numbers below this magnitude change, in whole Å; others keep the base's tokens
    #[arg(long, value_name = "ANGSTROM", default_value_t = 15)]
    range: u32,
    /// The dialect whose blocks change
    #[arg(long, value_enum, default_value = "fixed")]
    dialect: DialectArg,
    /// With --dialect stripped: blocks of numbers with at least so many decimals change; by default as few as
    /// leave every block a character a token
    #[arg(long, value_name = "M")]
    fewest_decimals: Option<u8>,
    /// Conformers to measure coverage and tokens on: whatever `drift mine` reads; the embedded corpus by default
    #[arg(long, value_name = "INPUT", num_args = 1..)]
    corpus: Vec<PathBuf>,
    /// The seed of the search
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// A folder for tokenizer.json, new_tokens.json, tokenizer_config.json, report.json and report.html
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
    /// Exactly four decimals
    Fixed,
    /// Trailing zeros, and a trailing point, removed
    Stripped,
}

/// Designs, checks, writes, shows.
pub fn run(args: Args, job: &Job, output: &Output) -> anyhow::Result<()> {
    let corpus = super::corpus(&args.corpus);
    let plan = plan(&args)?;
    let base = if args.base.is_dir() { Some(&*args.base) } else { args.base.parent() };
    if base.is_some_and(|base| base.is_dir() && base.canonicalize().ok() == args.output.canonicalize().ok()) {
        let problem = "is the folder of the base, which would be overwritten";
        return Err(Error::input("--output", problem, "give another folder").into());
    }
    let config = base_config(&args.base)?;
    let trained = train(&plan, &*corpus, job)?;
    write_folder(&args.output, &trained, config.as_ref())?;
    if output.json {
        return output.document(&trained.report);
    }
    output.text(&design_table(&trained.report, output.terminal()))?;
    if trained.unchanged {
        output.note("the base was extended in this way already: nothing to add, the tokenizer is the same");
    }
    output.note(&format!("wrote {} and the files beside it", args.output.join("tokenizer.json").display()));
    Ok(())
}

/// What the user wrote, complete and checked.
fn plan(args: &Args) -> anyhow::Result<Plan> {
    let range = Range::new(args.range)?;
    let aim = match (args.tokens_per_block, args.budget) {
        (Some(tokens), _) => Aim::TokensPerBlock(tokens.into()),
        (None, budget) => Aim::Budget(budget.unwrap_or(0).into()),
    };
    let dialect = match args.dialect {
        DialectArg::Fixed => Dialect::Fixed,
        DialectArg::Stripped => Dialect::Stripped,
    };
    let (base, bytes) = Tokenizer::load_with_json(&args.base)?;
    let base_json = serde_json::from_slice(&bytes).map_err(|e| Error::input(&base.name, e, ""))?;
    let kind = match args.kind {
        KindArg::Separate => Kind::Separate,
        KindArg::Fused => Kind::Fused,
    };
    Ok(Plan {
        base,
        base_json,
        kind,
        dialect,
        fewest_decimals: args.fewest_decimals.map(usize::from),
        range,
        aim,
        seed: args.seed,
        contexts: ALL_CONTEXTS,
    })
}

/// The tokenizer_config.json beside the base, if there is one.
fn base_config(base: &Path) -> anyhow::Result<Option<Value>> {
    let folder = if base.is_dir() { Some(base) } else { base.parent() };
    let file = folder.map(|folder| folder.join("tokenizer_config.json")).filter(|file| file.is_file());
    let Some(file) = file else { return Ok(None) };
    let bytes = read_to_limit(&file, MAX_CONFIG_BYTES)?;
    let config = serde_json::from_slice(&bytes).map_err(|e| {
        Error::input(file.display(), format!("is not JSON: {e}"), "mend it, or give the tokenizer.json alone")
    })?;
    Ok(Some(config))
}

/// The tokenizer last, so that it stands for the whole.
fn write_folder(folder: &Path, trained: &Trained, config: Option<&Value>) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    let write = |name: &str, mut text: String| {
        text.push('\n');
        write_atomic(&folder.join(name), text.as_bytes())
    };
    write("new_tokens.json", serde_json::to_string_pretty(&trained.new_tokens)?)?;
    write("report.json", serde_json::to_string_pretty(&trained.report)?)?;
    let page = folder.join("report.html");
    write_atomic(&page, design_page(&trained.report).render().as_bytes())?;
    write("tokenizer_config.json", serde_json::to_string_pretty(&tokenizer_config(config))?)?;
    Ok(write_atomic(&folder.join("tokenizer.json"), &trained.tokenizer_json)?)
}
