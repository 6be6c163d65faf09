//! `drift fit`: the placeholder of least harm, proved.

use std::path::PathBuf;

use super::corpus::Corpus;
use super::output::Output;
use super::values::{DialectOrAuto, EncodingArgs, SmilesOfArgs, found, is_stdout, not_stdout};
use crate::report::fit_view::{classes_table, classes_verdict, lead, refusal, table};
use crate::report::folders::{fit_files, write_fit};
use crate::report::format::thousands;
use drift_core::checkpoint::Wanted;
use drift_core::encoding::Encoding;
use drift_core::error::Error;
use drift_core::io::Outputs;
use drift_core::job::Job;
use drift_core::tokenizer::Tokenizer;
use drift_tune::design::advice::complete;
use drift_tune::placeholder::{DialectChoice, FitPlan, FitReport, Objective, fit};

/// The command line of `drift fit`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Conformers to replay: whatever `drift mine` reads, and its stores; the embedded corpus by default
    #[arg(long, value_name = "INPUT", num_args = 1..)]
    corpus: Vec<PathBuf>,
    #[command(flatten)]
    smiles: SmilesOfArgs,
    /// A tokenizer.json, plain or gzipped, a model folder, or org/name in the cache of Hugging Face; the embedded qwen-like and
    /// llama-like by default
    #[arg(long, value_name = "TOKENIZER")]
    tokenizer: Vec<PathBuf>,
    /// The dialect of numbers: all decimals, trailing zeros stripped, or as the corpus is written (both where
    /// it does not say)
    #[arg(long, value_enum, default_value = "auto")]
    dialect: DialectOrAuto,
    #[command(flatten)]
    blocks: EncodingArgs,
    /// A placeholder to judge, and to choose from, beside the users' own, such as 0.0000,0.0000,0.0000
    #[arg(long, value_name = "P", allow_hyphen_values = true)]
    candidate: Vec<String>,
    /// Induced RMSD up to this is no harm, in Å
    #[arg(long, value_name = "ANGSTROM", default_value_t = 1e-3)]
    tolerance: f64,
    /// Weights of unparsable blocks, RMSD in Å and junk slots per block, summed, instead of their order
    #[arg(long, value_names = ["U", "R", "J"], num_args = 3)]
    weights: Option<Vec<f64>>,
    /// The seed of the search and of the samples
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Do not try placeholders per class of block
    #[arg(long)]
    no_classes: bool,
    /// Show what a placeholder per class of block would gain, class by class
    #[arg(long)]
    verbose: bool,
    /// A folder for <tokenizer>.json and fit.html; `-` prints the JSON
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Reads, fits, writes, shows.
pub(super) fn run(mut args: Args, job: &Job, output: &Output) -> anyhow::Result<()> {
    args.tokenizer.iter_mut().try_for_each(|path| found(path, Wanted::Tokenizer))?;
    let corpus = Corpus::new(&args.corpus, args.blocks.reading(), args.smiles.source(job)?);
    let plan = plan(&args, job)?;
    let folder = not_stdout(args.output.as_deref());
    let names = fit_files(plan.tokenizers.iter().map(|tokenizer| &*tokenizer.name));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Outputs::new()
        .folder("-o", folder, &names)?
        .apart_from(&[args.corpus.as_slice(), &args.tokenizer].concat())?;
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

/// What the user wrote, complete and checked.
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
        dialects: dialects(args),
        candidates: args.candidate.clone(),
        objective: Objective::of(args.tolerance, weights),
        seed: args.seed,
        classes: !args.no_classes,
    })
}

/// The encodings to fit for: the one that was asked for, or those of decimals that the corpus agrees with.
fn dialects(args: &Args) -> DialectChoice {
    let asked = args.blocks.asked(args.dialect.asked());
    if asked.encoding.is_some() || asked.zeros.is_some() {
        DialectChoice::Only(asked.over(Encoding::FIXED))
    } else {
        DialectChoice::Auto
    }
}

/// The answers first, a line each; then the tables behind them.
fn render(report: &FitReport, verbose: bool, output: &Output) -> String {
    let mut out = String::new();
    for result in &report.results {
        out.push_str(&lead(result, &report.objective));
        out.push('\n');
    }
    for refused in &report.refused {
        out.push_str(&refusal(refused));
        out.push('\n');
    }
    for result in &report.results {
        out.push('\n');
        out.push_str(&table(result).render(output.terminal()));
        out.push_str(&result.statement);
        out.push('\n');
        if result.classes.iter().any(|partition| partition.significant) {
            if verbose {
                out.push('\n');
                out.push_str(&classes_table(result, &report.objective).render(output.terminal()));
            } else {
                out.push_str("A placeholder per class of block. ");
                out.push_str(&classes_verdict(&result.classes, &report.objective));
                out.push('\n');
            }
        }
    }
    let corpus = &report.corpus;
    out.push_str(&format!(
        "\nReplayed {} conformers, {} blocks; {} records skipped.\n",
        thousands(corpus.conformers),
        thousands(corpus.blocks),
        thousands(corpus.skipped)
    ));
    out
}
