//! `drift train-tokenizer`: few tokens a block, always the same number, proved.

use std::path::PathBuf;

use super::extension::{Beside, Made, write_folder};
use super::output::Output;
use crate::design::texts::ALL_CONTEXTS;
use crate::design::{Aim, Kind, Plan, Range, train};
use crate::error::Error;
use crate::job::Job;
use crate::report::card::model_card;
use crate::report::design_view::design_table;
use crate::tokenizer::Tokenizer;

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
    /// The dialect whose blocks change: exactly four decimals
    #[arg(long, value_enum, default_value = "fixed")]
    dialect: DialectArg,
    /// Conformers to measure coverage and tokens on: whatever `drift mine` reads; the embedded corpus by default
    #[arg(long, value_name = "INPUT", num_args = 1..)]
    corpus: Vec<PathBuf>,
    /// The model to go on training: a safetensors file, or a model folder. Rows to begin with are made for the new tokens
    #[arg(long, value_name = "MODEL")]
    model: Option<PathBuf>,
    /// The seed of the search
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// A folder for tokenizer.json, new_tokens.json, the files that transformers expects, embedding_rows.safetensors,
    /// MODEL_CARD.md and report.json
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

/// Designs, checks, writes, shows.
pub fn run(args: Args, job: &Job, output: &Output) -> anyhow::Result<()> {
    let corpus = super::corpus(&args.corpus);
    let plan = plan(&args)?;
    for (what, path) in [("base", Some(&args.base)), ("model", args.model.as_ref())] {
        let folder = path.and_then(|path| if path.is_dir() { Some(&**path) } else { path.parent() });
        if folder
            .is_some_and(|dir| dir.is_dir() && dir.canonicalize().ok() == args.output.canonicalize().ok())
        {
            let problem = format!("is the folder of the {what}, which would be overwritten");
            return Err(Error::input("--output", problem, "give another folder").into());
        }
    }
    let beside = Beside::of(&args.base, &plan.base, args.model.as_deref())?;
    let mut trained = train(&plan, &*corpus, job)?;
    let rows = beside.rows(&plan.base, &trained.new_tokens)?;
    trained.report.for_model(beside.model_rows(), rows.as_ref().map(|rows| rows.report.clone()));
    let made = Made {
        tokenizer_json: &trained.tokenizer_json,
        new_tokens: &trained.new_tokens,
        report: &trained.report,
        card: model_card(&trained.report),
        rows: rows.as_ref(),
    };
    write_folder(&args.output, &made, &beside)?;
    if output.json {
        return output.document(&trained.report);
    }
    output.text(&design_table(&trained.report, output.terminal()))?;
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
    let DialectArg::Fixed = args.dialect;
    let (base, bytes) = Tokenizer::load_with_json(&args.base)?;
    let base_json = serde_json::from_slice(&bytes).map_err(|e| Error::input(&base.name, e, ""))?;
    let kind = match args.kind {
        KindArg::Separate => Kind::Separate,
        KindArg::Fused => Kind::Fused,
    };
    Ok(Plan { base, base_json, kind, range, aim, seed: args.seed, contexts: ALL_CONTEXTS })
}
