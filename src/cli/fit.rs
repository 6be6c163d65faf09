//! `drift fit`: finds the placeholder with the least harm, and proves it.

use std::path::PathBuf;

use super::corpus::Corpus;
use super::help::{CONFORMERS, NUMBERS, OUTPUT, TOKENIZER};
use super::invocation::Invocation;
use super::output::Output;
use super::values::{
    DIALECTS_OR_AUTO, DialectOrAuto, EncodingArgs, FrameArgs, SmilesOfArgs, choice, found, is_stdout,
    not_stdout,
};
use crate::report::fit_view::{certificate_table, classes_table, grounds, lead, refusal, short_table, table};
use crate::report::folders::{fit_files, write_fit};
use crate::report::format::counted;
use crate::report::table::narrow;
use drift_core::checkpoint::RequiredFiles;
use drift_core::{Encoding, Error, Job, Tokenizer};
use drift_data::corpus::ReadOptions;
use drift_tune::design::advice::complete;
use drift_tune::placeholder::{EncodingChoice, FitPlan, FitReport, FitResult, Objective, fit};

/// Examples at the end of the help.
pub(super) const EXAMPLES: [&str; 3] = [
    "drift fit",
    "drift fit --corpus conformers.jsonl --tokenizer path/to/model -o fitted",
    "drift fit --tokenizer Qwen/Qwen3-0.6B --candidate -0.000,0.000,0.000 --verbose",
];

/// The heading of the search.
const SEARCH: &str = "Search";

/// The command line of `drift fit`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The tokenizer: a file, a model folder, or org/name in the cache of Hugging Face; repeat it for more [default: the built-in ones]
    #[arg(long, value_name = "TOKENIZER", help_heading = TOKENIZER)]
    tokenizer: Vec<PathBuf>,
    /// The conformers to replay, in any format that `drift mine` reads [default: the built-in corpus]
    #[arg(long, value_name = "INPUT", num_args = 1.., help_heading = CONFORMERS)]
    corpus: Vec<PathBuf>,
    #[command(flatten, next_help_heading = CONFORMERS)]
    smiles: SmilesOfArgs,
    #[command(flatten, next_help_heading = CONFORMERS)]
    frame: FrameArgs,
    /// How decimals are written: fixed, stripped, or auto, as in the corpus
    #[arg(long, conflicts_with = "encoding", value_parser = choice(&DIALECTS_OR_AUTO), hide_possible_values = true, default_value = "auto", help_heading = NUMBERS)]
    dialect: DialectOrAuto,
    #[command(flatten, next_help_heading = NUMBERS)]
    blocks: EncodingArgs,
    /// Another placeholder to try; repeat it for more
    #[arg(long, value_name = "P", allow_hyphen_values = true, help_heading = SEARCH)]
    candidate: Vec<String>,
    /// The largest mean RMSD that counts as no harm, in Å
    #[arg(long, value_name = "ANGSTROM", default_value_t = 1e-3, help_heading = SEARCH)]
    tolerance: f64,
    /// The weights of unparsable blocks, RMSD in Å and junk slots, to minimise their sum
    #[arg(long, value_names = ["U", "R", "J"], num_args = 3, help_heading = SEARCH)]
    weights: Option<Vec<f64>>,
    /// Do not try a placeholder for each class of block
    #[arg(long, help_heading = SEARCH)]
    no_classes: bool,
    /// The seed of the search and of the samples
    #[arg(long, default_value_t = 0, help_heading = SEARCH)]
    seed: u64,
    /// Print every column, 95 % intervals, the proof, and the gain of classes
    #[arg(long, help_heading = OUTPUT)]
    verbose: bool,
    /// Write <tokenizer>.json and fit.html to this folder; `-` prints the JSON
    #[arg(short, long, value_name = "DIR", help_heading = OUTPUT)]
    output: Option<PathBuf>,
}

/// Fits the placeholders, writes the files and shows the result.
pub(super) fn run(mut args: Args, invocation: &Invocation, job: &Job, output: &Output) -> anyhow::Result<()> {
    found(&mut args.tokenizer, RequiredFiles::Tokenizer)?;
    args.smiles.check_for(&args.corpus)?;
    let options = ReadOptions { frame: args.frame.frame, ..args.smiles.options(args.blocks.reading(), job)? };
    let corpus = Corpus::new(&args.corpus, options);
    let plan = plan(&args, job)?;
    plan.check()?;
    let folder = not_stdout(args.output.as_deref());
    let names = fit_files(plan.tokenizers.iter().map(|tokenizer| &*tokenizer.name));
    invocation.files().writes_in("-o", folder, &names)?.check()?;
    let mut report = fit(&plan, &corpus, job)?;
    complete(&mut report, &plan.tokenizers);
    corpus.tell(output);
    report.refuse_if_empty()?;
    let json = output.json || args.output.as_deref().is_some_and(is_stdout);
    if let Some(folder) = folder {
        write_fit(folder, &report)?;
    }
    if json {
        return output.document(&report);
    }
    output.text(&render(&report, args.verbose, output))?;
    if let Some(folder) = folder {
        output.note(&format!("wrote {} and the results beside it", folder.join("fit.html").display()));
    }
    Ok(())
}

/// Returns the complete, checked plan of the command line.
fn plan(args: &Args, job: &Job) -> anyhow::Result<FitPlan> {
    let tokenizers = if args.tokenizer.is_empty() {
        Tokenizer::embedded()?
    } else {
        let load = |path: &PathBuf| Ok(Tokenizer::load_for(path, job)?.0);
        args.tokenizer.iter().map(load).collect::<Result<_, Error>>()?
    };
    let weights = args.weights.as_deref().map(|weights| [weights[0], weights[1], weights[2]]);
    Ok(FitPlan {
        tokenizers,
        encodings: encodings(args),
        candidates: args.candidate.clone(),
        objective: Objective::new(args.tolerance, weights),
        seed: args.seed,
        classes: !args.no_classes,
    })
}

/// Returns the encodings to fit for: the one that was asked for, or those of decimals that fit the corpus.
fn encodings(args: &Args) -> EncodingChoice {
    let asked = args.blocks.asked(args.dialect);
    if asked.says_how() { EncodingChoice::Only(asked.over(Encoding::FIXED)) } else { EncodingChoice::Auto }
}

/// Returns one line with the answer and one table for each tokenizer; with `verbose` also all columns, intervals, grounds and classes of
/// blocks.
fn render(report: &FitReport, verbose: bool, output: &Output) -> String {
    let mut out = String::new();
    for result in &report.results {
        out.push_str(&lead(result));
        out.push('\n');
        out.push_str(&if verbose { details(result, report, output) } else { short(result, output) });
        out.push('\n');
    }
    for refused in &report.refused {
        out.push_str(&refusal(refused));
        out.push_str("\n\n");
    }
    let corpus = &report.corpus;
    out.push_str(&format!(
        "Replayed {}, {}; {} skipped.",
        counted(corpus.conformers, "conformer"),
        counted(corpus.blocks, "block"),
        counted(corpus.skipped, "record")
    ));
    if !verbose {
        out.push_str(" --verbose prints intervals and proofs, -o DIR a page.");
    }
    out.push('\n');
    out
}

fn short(result: &FitResult, output: &Output) -> String {
    let mut out = short_table(result).render(narrow(output.terminal()));
    if result.classes.iter().any(|partition| partition.significant) {
        out.push_str(
            "Different placeholders for different classes of block do better; --verbose shows them.\n",
        );
    }
    out
}

fn details(result: &FitResult, report: &FitReport, output: &Output) -> String {
    let mut out = format!("\n{}", table(result).render(output.terminal()));
    for line in grounds(result, &report.objective) {
        out.push_str(&line);
        out.push('\n');
    }
    if let Some(certificate) = &result.certificate {
        out.push_str(&format!("\n{}", certificate_table(certificate).render(output.terminal())));
    }
    if result.classes.iter().any(|partition| partition.significant) {
        out.push_str(&format!("\n{}", classes_table(result, &report.objective).render(output.terminal())));
    }
    out
}
