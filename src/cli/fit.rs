//! `drift fit`: the placeholder of least harm, proved.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::corpus::Corpus;
use super::output::Output;
use super::outputs::Outputs;
use super::values::{BlockArgs, DialectOrAuto, SmilesOfArgs, is_stdout};
use crate::error::Error;
use crate::io::OutputSet;
use crate::job::Job;
use crate::placeholder::{DialectChoice, FitPlan, FitReport, Objective, fit};
use crate::report::fit_page::fit_page;
use crate::report::fit_view::{classes_table, classes_verdict, lead, refusal, table};
use crate::report::format::thousands;
use crate::tokenizer::Tokenizer;

/// The command line of `drift fit`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Conformers to replay: whatever `drift mine` reads, and its stores; the embedded corpus by default
    #[arg(long, value_name = "INPUT", num_args = 1..)]
    corpus: Vec<PathBuf>,
    #[command(flatten)]
    smiles: SmilesOfArgs,
    /// A tokenizer.json, plain or gzipped, or a model folder; the embedded qwen-like and llama-like by default
    #[arg(long, value_name = "TOKENIZER")]
    tokenizer: Vec<PathBuf>,
    /// The dialect of numbers: all decimals, trailing zeros stripped, or as the corpus is written (both where
    /// it does not say)
    #[arg(long, value_enum, default_value = "auto")]
    dialect: DialectOrAuto,
    #[command(flatten)]
    blocks: BlockArgs,
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
pub(super) fn run(args: Args, job: &Job, output: &Output) -> anyhow::Result<()> {
    let corpus = Corpus::new(&args.corpus, args.blocks.reading(), args.smiles.source(job)?);
    let plan = plan(&args, job)?;
    let folder = args.output.as_deref().filter(|path| !is_stdout(path));
    let names = plan.tokenizers.iter().map(|tokenizer| file_name(&tokenizer.name));
    let names: Vec<String> = names.chain([PAGE.to_owned()]).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Outputs::new()
        .folder("-o", folder, &names)?
        .apart_from(&[args.corpus.as_slice(), &args.tokenizer].concat())?;
    let report = fit(&plan, &corpus, job)?;
    corpus.tell(output);
    if let ([], Some(refused)) = (report.results.as_slice(), report.refused.first()) {
        let problem = format!("no placeholder fits: {}", refused.why());
        return Err(Error::input(&refused.tokenizer, problem, format!("use {}", refused.instead)).into());
    }
    let json = output.json || args.output.as_deref().is_some_and(is_stdout);
    if let Some(folder) = folder {
        write_folder(folder, &report)?;
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
    let mut names = BTreeSet::new();
    if let Some(twice) = tokenizers.iter().find(|tokenizer| !names.insert(tokenizer.name.as_str())) {
        let problem = format!("two tokenizers are named {}", twice.name);
        return Err(Error::input("--tokenizer", problem, "rename a file or folder").into());
    }
    let tolerance_angstrom = args.tolerance;
    if !(tolerance_angstrom.is_finite() && tolerance_angstrom >= 0.0) {
        return Err(Error::input("--tolerance", "not a length", "give Å, such as 0.001").into());
    }
    let objective = match args.weights.as_deref() {
        None => Objective::Lexicographic { tolerance_angstrom },
        Some(&[u, r, j]) if [u, r, j].iter().all(|w| w.is_finite() && *w >= 0.0) => {
            Objective::Weighted { tolerance_angstrom, weights: [u, r, j] }
        }
        Some(_) => return Err(Error::input("--weights", "not three weights of 0 or more", "").into()),
    };
    Ok(FitPlan {
        tokenizers,
        dialects: args.dialect.asked().map_or(DialectChoice::Auto, DialectChoice::Only),
        candidates: args.candidate.clone(),
        objective,
        seed: args.seed,
        classes: !args.no_classes,
    })
}

/// One JSON file per tokenizer and one page of all; all of them or, if one cannot be written, none.
fn write_folder(folder: &Path, report: &FitReport) -> anyhow::Result<()> {
    let mut files = OutputSet::new();
    files.folder(folder)?;
    let names: BTreeSet<&str> = report.results.iter().map(|result| result.tokenizer.as_str()).collect();
    for name in names {
        let mut part = report.clone();
        part.results.retain(|result| result.tokenizer == name);
        let mut json = serde_json::to_string_pretty(&part)?;
        json.push('\n');
        files.put(&folder.join(file_name(name)), json.as_bytes())?;
    }
    files.put(&folder.join(PAGE), fit_page(report).render().as_bytes())?;
    Ok(files.commit()?)
}

/// The page of all tokenizers.
const PAGE: &str = "fit.html";

/// The file of a tokenizer's results.
fn file_name(tokenizer: &str) -> String {
    format!("{tokenizer}.json")
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
                out.push_str(&classes_table(result).render(output.terminal()));
            } else {
                out.push_str("A placeholder per class of block. ");
                out.push_str(&classes_verdict(&result.classes));
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
