//! `drift train-tokenizer`: extends a tokenizer so that every block takes the same number of tokens, with proof; or learns tokens from
//! a corpus.

use std::path::{Path, PathBuf};

use super::corpus::Corpus;
use super::help::{self, CONFORMERS, NUMBERS, OUTPUT, TOKENIZER};
use super::invocation::Invocation;
use super::output::Output;
use super::skeletons::{SkeletonArgs, SkeletonFiles};
use super::values::{Choice, DIALECTS, FrameArgs, SmilesOfArgs, choice, folder_alone, found};
use crate::report::design_view::design_table;
use crate::report::folders::{refuse_over, tokenizer_files, write_tokenizer};
use crate::report::learned_view::learned_table;
use crate::report::slot_view::slot_tables;
use drift_core::checkpoint::RequiredFiles;
use drift_core::encoding::{EncodingRequest, Precision, Reading, TrailingZeros};
use drift_core::skeleton::Skeleton;
use drift_core::{Encoding, Error, Job};
use drift_data::corpus::ReadOptions;
use drift_tune::design::{
    Aim, Base, Goal, Range, Reuse, SchemeKind, SlotRequest, TokenizerReport, TokenizerRequest,
};
use drift_tune::parameter;

/// Examples at the end of the help.
pub(super) const EXAMPLES: [&str; 6] = [
    "drift train-tokenizer --base path/to/model --tokens-per-block 9 -o extended",
    "drift train-tokenizer --base path/to/model --tokens-per-block 11 --kind separate -o extended",
    "drift train-tokenizer --base MODEL --encoding binned-v2:-13,13,0.104 --tokens-per-block 4 -o bins",
    "drift train-tokenizer --base path/to/model --merges 300 -o extended",
    "drift train-tokenizer --base MODEL --skeleton xyz --prompts P.jsonl --tokens-per-block 3 -o xyz",
    "drift train-tokenizer --vocab-size 2000 -o new",
];

/// The options that the numbers of a skeleton have too.
const BESIDE_SKELETON: [&str; 11] = [
    "",
    "base",
    "tokens-per-block",
    "budget",
    "model",
    "skeleton",
    "prompts",
    "output",
    "json",
    "quiet",
    "threads",
];

/// The command line of `drift train-tokenizer`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("aim").required(true))]
pub(super) struct Args {
    /// The tokenizer to extend: a file, a model folder, or org/name in the cache of Hugging Face; also qwen-like and llama-like
    #[arg(
        long,
        value_name = "TOKENIZER",
        required_unless_present = "vocab_size",
        conflicts_with = "vocab_size",
        help_heading = TOKENIZER
    )]
    base: Option<PathBuf>,
    /// The tokens of every block, from < to >, with the fewest new tokens; with --skeleton, of every number and the white space before it
    #[arg(long, value_name = "N", group = "aim", help_heading = TOKENIZER)]
    tokens_per_block: Option<u16>,
    /// The most new tokens, with which every block takes as few as possible
    #[arg(long, value_name = "V", group = "aim", help_heading = TOKENIZER)]
    budget: Option<u32>,
    /// New tokens by continued BPE inside blocks, learned on the corpus
    #[arg(long, value_name = "V", group = "aim", value_parser = clap::value_parser!(u32).range(1..), help_heading = TOKENIZER)]
    merges: Option<u32>,
    /// The tokens of a new tokenizer, trained on the corpus without a base
    #[arg(long, value_name = "V", group = "aim", help_heading = TOKENIZER)]
    vocab_size: Option<u32>,
    /// Whether brackets may share a token with digits (fused) or not
    #[arg(long, value_parser = choice(&KINDS), value_name = "separate|fused", hide_possible_values = true, default_value = "fused", help_heading = TOKENIZER)]
    kind: SchemeKind,
    /// Give new tokens the ids of old ones: those that no text uses, or those that FILE names
    #[arg(long, value_name = "unused|FILE", conflicts_with = "vocab_size", help_heading = TOKENIZER)]
    reuse: Option<PathBuf>,
    /// The seed of the search
    #[arg(long, default_value_t = 0, help_heading = TOKENIZER)]
    seed: u64,
    /// The encoding to extend for.
    #[arg(long, help = help::encoding("The encoding to extend for"), value_name = "E", allow_hyphen_values = true,
        conflicts_with_all = ["dialect", "decimals"], help_heading = NUMBERS)]
    encoding: Option<Encoding>,
    /// The dialect to extend for
    #[arg(long, value_parser = choice(&DIALECTS), value_name = "fixed|stripped", hide_possible_values = true, default_value = "fixed", help_heading = NUMBERS)]
    dialect: TrailingZeros,
    /// Decimals of numbers, 1 to 6; more are cut off [default: 4, and more are refused]
    #[arg(long, value_name = "N", help_heading = NUMBERS)]
    decimals: Option<Precision>,
    /// The fewest decimals of stripped numbers to extend for [default: as few as possible]
    #[arg(long, value_name = "M", help_heading = NUMBERS)]
    fewest_decimals: Option<u8>,
    /// The magnitude, in whole Å, below which decimals are extended for
    #[arg(long, value_name = "ANGSTROM", default_value_t = 15, help_heading = NUMBERS)]
    range: u32,
    /// The conformers to count on, in any format that `drift mine` reads [default: the built-in corpus]
    #[arg(long, value_name = "INPUT", num_args = 1.., help_heading = CONFORMERS)]
    corpus: Vec<PathBuf>,
    #[command(flatten, next_help_heading = CONFORMERS)]
    smiles: SmilesOfArgs,
    #[command(flatten, next_help_heading = CONFORMERS)]
    frame: FrameArgs,
    /// The checkpoint to fine-tune, for initial embedding rows of the new tokens
    #[arg(long, value_name = "MODEL", conflicts_with = "vocab_size", help_heading = OUTPUT)]
    model: Option<PathBuf>,
    #[command(flatten)]
    skeletons: SkeletonArgs,
    /// Compare other ways to add the same number of tokens
    #[arg(long, help_heading = OUTPUT)]
    compare: bool,
    /// Write tokenizer.json, new_tokens.json, report.html and more to this folder
    #[arg(short, long, value_name = "DIR", help_heading = OUTPUT)]
    output: PathBuf,
}

const KINDS: [Choice<SchemeKind>; 2] = [
    (
        "separate",
        SchemeKind::Separate,
        "No token joins a bracket with anything else; position templates work",
    ),
    (
        "fused",
        SchemeKind::Fused,
        "Tokens may join brackets with digits: the fewest tokens per block, for the automaton",
    ),
];

/// Designs or learns the tokenizer, checks it, writes the files and shows the report.
pub(super) fn run(mut args: Args, invocation: &Invocation, job: &Job, output: &Output) -> anyhow::Result<()> {
    found(&mut args.base, RequiredFiles::Tokenizer)?;
    found(&mut args.model, RequiredFiles::Weights)?;
    if args.skeletons.files().is_some() {
        invocation.refuse_beside("--skeleton", &BESIDE_SKELETON)?;
    }
    args.smiles.check_for(&args.corpus)?;
    let options = ReadOptions { frame: args.frame.frame, ..args.smiles.options(reading(&args), job)? };
    let corpus = Corpus::new(&args.corpus, options);
    let request = request(&args)?;
    request.check()?;
    refuse_over(&args.output, &[("base", args.base.as_deref()), ("model", args.model.as_deref())])?;
    let folder = folder_alone("-o", &args.output)?;
    invocation.files().writes_in("-o", folder, &tokenizer_files())?.check()?;
    let base = base(&args, job)?;
    let made = match (args.skeletons.files(), base, request.goal) {
        (Some(SkeletonFiles { skeleton, prompts }), Some(base), Goal::Aim(aim)) => {
            SlotRequest { skeleton: Skeleton::load(&skeleton)?, prompts, aim }.make(base, job)?
        }
        (_, base, _) => request.make(base, &corpus, job)?,
    };
    write_tokenizer(&args.output, &made)?;
    if made.trained.unchanged {
        output.note("the base was extended in this way already: nothing to add, the tokenizer is the same");
    }
    show(&args, output, &made.trained.report)?;
    corpus.tell(output);
    Ok(())
}

/// Returns how the corpus is read.
fn reading(args: &Args) -> Reading {
    let (zeros, precision) = (Some(args.dialect), args.decimals);
    let asked = EncodingRequest { encoding: args.encoding, zeros, precision, spaces: None };
    let reading = asked.reading(Encoding::FIXED);
    // For bins and codes, a corpus with other coordinates is converted.
    Reading { rewrites: !reading.encoding.is_decimal(), ..reading }
}

/// Returns the old tokens to remove: `unused`, or the tokens that a file names.
fn reused(path: &Path) -> anyhow::Result<Reuse> {
    if path == Path::new("unused") {
        return Ok(Reuse::Unused);
    }
    let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
    let names: Vec<String> = text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    if names.is_empty() {
        return Err(Error::input(path.display(), "names no token", "give one text or id per line").into());
    }
    Ok(Reuse::Named(names))
}

/// Returns the request of the command line.
fn request(args: &Args) -> anyhow::Result<TokenizerRequest> {
    if args.decimals.is_some_and(|decimals| decimals == Precision::ZERO) {
        let problem = "numbers without decimals have one to three characters already";
        return Err(Error::parameter(parameter::DECIMALS, problem, "give 1 to 6").into());
    }
    let goal = match (args.tokens_per_block, args.budget, args.merges) {
        (Some(tokens), ..) => Goal::Aim(Aim::TokensPerBlock(tokens.into())),
        (_, Some(budget), _) => Goal::Aim(Aim::Budget(budget.into())),
        (.., Some(tokens)) => Goal::Merges(tokens.into()),
        _ => Goal::VocabSize(args.vocab_size.unwrap_or(0) as usize),
    };
    Ok(TokenizerRequest {
        goal,
        kind: args.kind,
        range: Range::new(args.range)?,
        reading: reading(args),
        fewest_decimals: args.fewest_decimals.map(usize::from),
        reuse: args.reuse.as_deref().map(reused).transpose()?,
        compare: args.compare,
        seed: args.seed,
    })
}

/// Returns the base with the files beside it and, if one was given, the model.
fn base(args: &Args, job: &Job) -> anyhow::Result<Option<Base>> {
    let Some(path) = &args.base else { return Ok(None) };
    let mut base = Base::load(path, job)?;
    if let Some(model) = &args.model {
        base.beside = base.beside.with_model(model, &base.tokenizer, job)?;
    }
    Ok(Some(base))
}

/// Prints the result and says where the files are.
fn show(args: &Args, output: &Output, report: &TokenizerReport) -> anyhow::Result<()> {
    if output.json {
        return output.document(report);
    }
    output.text(&match report {
        TokenizerReport::Designed(report) => design_table(report, output.terminal()),
        TokenizerReport::Learned(report) => learned_table(report, output.terminal()),
        TokenizerReport::Slots(report) => slot_tables(report, output.terminal()),
    })?;
    output.note(&format!("wrote {} and the files beside it", args.output.join("tokenizer.json").display()));
    Ok(())
}
