//! `drift encodings`: compares encodings and recommends one to train on.

use std::path::PathBuf;

use super::corpus::Corpus;
use super::help::{CONFORMERS, OUTPUT};
use super::invocation::Invocation;
use super::output::Output;
use super::skeletons::{self, SkeletonArgs};
use super::skipped;
use super::values::{FrameArgs, SmilesOfArgs, found, is_stdout, not_stdout};
use crate::report::encodings_view::{encodings_page, encodings_table};
use drift_core::checkpoint::RequiredFiles;
use drift_core::encoding::{Precision, Reading, TrailingZeros};
use drift_core::io::OutputSet;
use drift_core::{Encoding, Error, Job};
use drift_data::corpus::{Frame, ReadOptions};
use drift_tune::design::{Base, SchemeKind};
use drift_tune::encodings::{EncodingsPlan, compare_encodings};

/// Examples at the end of the help.
pub(super) const EXAMPLES: [&str; 4] = [
    "drift encodings",
    "drift encodings --corpus corpus.jsonl --tokenizer path/to/model --encoding fixed fixed-2",
    "drift encodings --encoding integers:100,5 lines-2 --no-extensions --verbose",
    "drift encodings --skeleton crystal-text --prompts prompts.jsonl --tokenizer path/to/model",
];

/// The heading of what is compared.
const COMPARISON: &str = "Comparison";

/// The numbers of tokens per block of the extensions that are tried.
const USUAL_TOKENS_PER_BLOCK: [usize; 5] = [11, 9, 7, 5, 4];

/// The command line of `drift encodings`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Encodings to compare, of the forms below
    #[arg(
        long,
        value_name = "E",
        num_args = 1..,
        conflicts_with_all = ["skeleton", "prompts"],
        default_values = ["fixed", "stripped", "fixed-3", "fixed-2", "binned-v1:-21,21,0.05", "binned-v2:-13,13,0.104"],
        help_heading = COMPARISON
    )]
    encoding: Vec<Encoding>,
    /// Tokenizers: files, model folders, or org/name in the cache of Hugging Face [default: the built-in qwen-like and llama-like]
    #[arg(long, value_name = "TOKENIZER", num_args = 1.., help_heading = COMPARISON)]
    tokenizer: Vec<PathBuf>,
    /// Also try extensions of each tokenizer with this many tokens per block [default: 11 9 7 5 4]
    #[arg(long, value_name = "N", value_delimiter = ',', conflicts_with_all = ["skeleton", "prompts"], help_heading = COMPARISON)]
    tokens_per_block: Vec<u16>,
    /// Do not try extensions
    #[arg(long, conflicts_with_all = ["tokens_per_block", "skeleton", "prompts"], help_heading = COMPARISON)]
    no_extensions: bool,
    /// The seed of the sample whose tokens are counted
    #[arg(long, default_value_t = 0, conflicts_with_all = ["skeleton", "prompts"], help_heading = COMPARISON)]
    seed: u64,
    /// The conformers, in any format that `drift mine` reads [default: the built-in corpus]
    #[arg(long, value_name = "INPUT", num_args = 1.., conflicts_with_all = ["skeleton", "prompts"], help_heading = CONFORMERS)]
    corpus: Vec<PathBuf>,
    #[command(flatten, next_help_heading = CONFORMERS)]
    smiles: SmilesOfArgs,
    #[command(flatten, next_help_heading = CONFORMERS)]
    frame: FrameArgs,
    /// Print all extensions, not only the Pareto front, and more columns
    #[arg(long, conflicts_with_all = ["skeleton", "prompts"], help_heading = OUTPUT)]
    verbose: bool,
    /// Write the report as JSON; `-` prints it
    #[arg(short, long, value_name = "FILE", help_heading = OUTPUT)]
    output: Option<PathBuf>,
    /// Write a page with the Pareto front and the table
    #[arg(long, value_name = "FILE", conflicts_with_all = ["skeleton", "prompts"], help_heading = OUTPUT)]
    html: Option<PathBuf>,
    #[command(flatten)]
    skeletons: SkeletonArgs,
}

/// Compares the encodings, writes the files and shows the table.
pub(super) fn run(mut args: Args, invocation: &Invocation, job: &Job, output: &Output) -> anyhow::Result<()> {
    found(&mut args.tokenizer, RequiredFiles::Tokenizer)?;
    if args.html.as_deref().is_some_and(is_stdout) {
        let problem = "stdout takes either the table or the report";
        return Err(Error::input("--html -", problem, "write the page to a file").into());
    }
    let files = invocation.files().writes("-o", not_stdout(args.output.as_deref()))?;
    files.writes("--html", not_stdout(args.html.as_deref()))?.check()?;
    if let Some(files) = args.skeletons.files() {
        refuse_for_skeletons(&args)?;
        return skeletons::encodings(
            files,
            &tokenizer_paths(&args.tokenizer),
            args.output.as_deref(),
            job,
            output,
        );
    }
    // Texts and stores have four decimals. More are read only if an encoding has more.
    let decimals =
        args.encoding.iter().filter(|encoding| encoding.is_decimal()).map(|encoding| encoding.precision());
    let precision = decimals.chain([Precision::FOUR]).max().unwrap_or_default();
    let reading = Reading::new(Encoding::decimal(TrailingZeros::Kept, precision)).cutting(true);
    let reading = Reading { rewrites: true, ..reading };
    args.smiles.check_for(&args.corpus)?;
    let options = ReadOptions { frame: args.frame.frame, ..args.smiles.options(reading, job)? };
    let corpus = Corpus::new(&args.corpus, options);
    let verbose = args.verbose;
    let plan = EncodingsPlan {
        tokenizers: tokenizers(&args, job)?,
        encodings: args.encoding,
        tokens_per_block: match &args.tokens_per_block[..] {
            [] if args.no_extensions => Vec::new(),
            [] => USUAL_TOKENS_PER_BLOCK.to_vec(),
            given => given.iter().copied().map(usize::from).collect(),
        },
        kind: SchemeKind::Fused,
        seed: args.seed,
    };
    let report = compare_encodings(&plan, &corpus, job)?;
    let json = serde_json::to_string_pretty(&report)? + "\n";
    let mut files = OutputSet::new();
    if let Some(path) = not_stdout(args.output.as_deref()) {
        files.put(path, json.as_bytes())?;
    }
    if let Some(path) = &args.html {
        files.put(path, encodings_page(&report).render().as_bytes())?;
    }
    files.commit()?;
    corpus.tell(output);
    if output.json || args.output.as_deref().is_some_and(is_stdout) {
        return output.text(&json);
    }
    skipped::tell(report.skipped, &report.skipped_records, output);
    for one in report.missing.iter().filter(|_| !args.tokens_per_block.is_empty()) {
        output.note(&format!(
            "note: {} has no such extension for {}: {}",
            one.tokenizer, one.encoding, one.reason
        ));
    }
    output.text(&encodings_table(&report, verbose, output.terminal()))
}

/// Refuses what only conformers have, beside what clap refuses.
fn refuse_for_skeletons(args: &Args) -> Result<(), Error> {
    let frame = (args.frame.frame != Frame::Keep).then_some("--frame");
    args.smiles.given().or(frame).map_or(Ok(()), |name| Err(skeletons::meaningless(name)))
}

/// Returns the tokenizers given, or the built-in ones.
fn tokenizers(args: &Args, job: &Job) -> anyhow::Result<Vec<Base>> {
    let paths = tokenizer_paths(&args.tokenizer);
    Ok(paths.iter().map(|path| Base::load(path, job)).collect::<Result<_, Error>>()?)
}

fn tokenizer_paths(given: &[PathBuf]) -> Vec<PathBuf> {
    if given.is_empty() { vec!["qwen-like".into(), "llama-like".into()] } else { given.to_vec() }
}
