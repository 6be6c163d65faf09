//! `drift train-tokenizer`: few tokens a block, always the same number, proved.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::corpus::Corpus;
use super::extension::{Beside, Made, WRITTEN, write_folder};
use super::output::Output;
use super::outputs::Outputs;
use super::values::{DialectArg, SmilesOfArgs, reading};
use crate::corpus::Conformers;
use crate::design::compare::{Designed, compare, compare_with_design};
use crate::design::extension::extend::as_read;
use crate::design::extension::texts::ALL_CONTEXTS;
use crate::design::learned::merges::learns_apart;
use crate::design::rows::initial::Rows;
use crate::design::train_scratch::scratch_config;
use crate::design::{
    Aim, ExtensionPlan, MergesPlan, Range, SchemeKind, ScratchPlan, Trained, train, train_merges,
    train_scratch,
};
use crate::error::{Error, Parameter};
use crate::job::Job;
use crate::report::card::model_card;
use crate::report::design_page::design_page;
use crate::report::design_view::design_table;
use crate::report::learned_view::{learned_card, learned_table};
use crate::text::Precision;
use crate::tokenizer::Tokenizer;

/// The command line of `drift train-tokenizer`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("aim").required(true))]
pub(super) struct Args {
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
    /// The dialect whose blocks change
    #[arg(long, value_enum, default_value = "fixed")]
    dialect: DialectArg,
    /// Decimals of the numbers, 1 to 6; coordinates of the corpus with more are cut, toward zero. Without it four, and more
    /// are refused
    #[arg(long, value_name = "N")]
    decimals: Option<Precision>,
    /// With --dialect stripped: blocks of numbers with at least so many decimals change; by default as few as
    /// leave every block a character a token
    #[arg(long, value_name = "M")]
    fewest_decimals: Option<u8>,
    /// Conformers to measure coverage and tokens on: whatever `drift mine` reads; the embedded corpus by default
    #[arg(long, value_name = "INPUT", num_args = 1..)]
    corpus: Vec<PathBuf>,
    #[command(flatten)]
    smiles: SmilesOfArgs,
    /// The model to go on training: a safetensors file, or a model folder. Rows to begin with are made for the new tokens
    #[arg(long, value_name = "MODEL", conflicts_with = "vocab_size")]
    model: Option<PathBuf>,
    /// The seed of the search
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// A folder for tokenizer.json, new_tokens.json, the files that transformers expects, embedding_rows.safetensors,
    /// MODEL_CARD.md, report.json and report.html
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

impl From<KindArg> for SchemeKind {
    fn from(kind: KindArg) -> Self {
        match kind {
            KindArg::Separate => SchemeKind::Separate,
            KindArg::Fused => SchemeKind::Fused,
        }
    }
}

/// Merges are learned, and ways compared, in the fixed dialect alone.
fn refuse_stripped(args: &Args) -> anyhow::Result<()> {
    let fixed_alone = [
        ("--merges", "learns", args.merges.is_some()),
        ("--vocab-size", "learns", args.vocab_size.is_some()),
        ("--compare", "compares", args.compare),
    ];
    let Some((option, does, _)) = fixed_alone.into_iter().find(|(.., given)| *given) else { return Ok(()) };
    let stripped = match (args.dialect, args.fewest_decimals) {
        (DialectArg::Stripped, _) => "--dialect stripped",
        (DialectArg::Fixed, Some(_)) => "--fewest-decimals",
        (DialectArg::Fixed, None) => return Ok(()),
    };
    let problem = format!("{does} in the fixed dialect alone, and cannot go with {stripped}");
    let remedy = format!("leave {stripped} out, or give --tokens-per-block or --budget alone");
    Err(Error::input(option, problem, remedy).into())
}

/// Designs or learns, checks, writes, shows.
pub(super) fn run(args: Args, job: &Job, output: &Output) -> anyhow::Result<()> {
    let reading = reading(args.decimals);
    let corpus = Corpus::new(&args.corpus, reading, args.smiles.source(job)?);
    let (range, kind) = (Range::new(args.range)?, args.kind.into());
    refuse_stripped(&args)?;
    for (what, path) in [("base", &args.base), ("model", &args.model)] {
        let folder = path.as_ref().and_then(|path| if path.is_dir() { Some(&**path) } else { path.parent() });
        if folder
            .is_some_and(|dir| dir.is_dir() && dir.canonicalize().ok() == args.output.canonicalize().ok())
        {
            let problem = format!("is the folder of the {what}, which would be overwritten");
            return Err(Error::input("--output", problem, "give another folder").into());
        }
    }
    Outputs::new().folder_alone("-o", &args.output, &WRITTEN)?.apart_from(&args.corpus)?;
    let Some(base) = &args.base else {
        scratch(&args, (kind, range), &corpus, job, output)?;
        corpus.tell(output);
        return Ok(());
    };
    let plan = plan(&args, base, (kind, range), job)?;
    for (option, _) in [(Parameter::Merges, args.merges.is_some()), (Parameter::Compare, args.compare)]
        .iter()
        .filter(|o| o.1)
    {
        learns_apart(&plan.base_json, &plan.base.name, *option)?;
    }
    let beside = Beside::of(base, &plan.base, args.model.as_deref())?;
    match args.merges {
        Some(tokens) => merges(&args, (plan, tokens.into()), &beside, &corpus, job, output)?,
        None => design(&args, &plan, &beside, &corpus, job, output)?,
    }
    corpus.tell(output);
    Ok(())
}

/// The smallest extension, or the best within a budget.
fn design(
    args: &Args,
    plan: &ExtensionPlan,
    beside: &Beside,
    corpus: &dyn Conformers,
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    let mut trained = train(plan, corpus, job)?;
    let rows = beside.rows(&plan.base, &trained.new_tokens)?;
    trained.report.vocabulary.for_model(beside.model_rows(), rows.as_ref().map(|rows| rows.report.clone()));
    if args.compare {
        let merges = MergesPlan::of(plan, trained.report.new_tokens);
        trained.report.comparison = Some(compare(merges, Some(Designed::of(&trained)), corpus, job)?);
    }
    let page = design_page(&trained.report).render();
    write(args, &trained, (model_card(&trained.report), Some(page)), rows.as_ref(), beside)?;
    if trained.unchanged {
        output.note("the base was extended in this way already: nothing to add, the tokenizer is the same");
    }
    show(args, output, &trained.report, &design_table(&trained.report, output.terminal()))
}

/// Continued BPE.
fn merges(
    args: &Args,
    (plan, tokens): (ExtensionPlan, u64),
    beside: &Beside,
    corpus: &dyn Conformers,
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    let mut trained = train_merges(MergesPlan::of(&plan, tokens), corpus, job)?;
    let rows = beside.rows(&plan.base, &trained.new_tokens)?;
    trained.report.vocabulary.for_model(beside.model_rows(), rows.as_ref().map(|rows| rows.report.clone()));
    if args.compare {
        // The design is a row of a table here, not what is written.
        let plan = ExtensionPlan { contexts: 1, ..plan };
        let merges = MergesPlan::of(&plan, tokens);
        trained.report.comparison = Some(compare_with_design(&plan, merges, corpus, job)?);
    }
    write(args, &trained, (learned_card(&trained.report), None), rows.as_ref(), beside)?;
    show(args, output, &trained.report, &learned_table(&trained.report, output.terminal()))
}

/// BPE from nothing.
fn scratch(
    args: &Args,
    (kind, range): (SchemeKind, Range),
    corpus: &dyn Conformers,
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    let vocab_size = args.vocab_size.unwrap_or(0) as usize;
    let (precision, compare) = (reading(args.decimals).precision, args.compare);
    let plan = ScratchPlan { vocab_size, kind, range, precision, contexts: ALL_CONTEXTS, compare };
    let trained = train_scratch(plan, corpus, job)?;
    let beside = Beside::configured(scratch_config());
    write(args, &trained, (learned_card(&trained.report), None), None, &beside)?;
    show(args, output, &trained.report, &learned_table(&trained.report, output.terminal()))
}

/// Writes the folder.
fn write(
    args: &Args,
    trained: &Trained<impl Serialize>,
    (card, page): (String, Option<String>),
    rows: Option<&Rows>,
    beside: &Beside,
) -> anyhow::Result<()> {
    let Trained { tokenizer_json, new_tokens, report, .. } = trained;
    write_folder(&args.output, &Made { tokenizer_json, new_tokens, report, card, page, rows }, beside)
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

/// What the user wrote of a base, complete and checked.
fn plan(
    args: &Args,
    base: &Path,
    (kind, range): (SchemeKind, Range),
    job: &Job,
) -> anyhow::Result<ExtensionPlan> {
    // Merges are compared with the best design of as many tokens.
    let aim = match (args.tokens_per_block, args.budget.or(args.merges)) {
        (Some(tokens), _) => Aim::TokensPerBlock(tokens.into()),
        (None, budget) => Aim::Budget(budget.unwrap_or(0).into()),
    };
    let (base, bytes) = Tokenizer::load_for(base, job)?;
    let base_json = serde_json::from_slice(&bytes).map_err(|e| Error::input(&base.name, e, ""))?;
    let base_json = as_read(&base, base_json);
    let dialect = reading(args.decimals).dialect(args.dialect.into());
    let fewest_decimals = args.fewest_decimals.map(usize::from);
    let (seed, contexts) = (args.seed, ALL_CONTEXTS);
    Ok(ExtensionPlan { base, base_json, kind, dialect, fewest_decimals, range, aim, seed, contexts })
}
