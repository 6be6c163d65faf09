//! The command line. Each verb has its own file: `Args` → plan → run → render. This is the only place that prints.

mod against;
mod audit;
mod compare;
mod completions;
mod corpus;
mod device;
mod encode;
mod encodings;
mod energy;
mod ensembles;
mod eval;
mod eval_args;
mod eval_molecules;
mod eval_output;
mod export_grammar;
mod extend_model;
mod fit;
mod generate;
mod generate_args;
mod generation;
mod help;
mod inspect;
mod invocation;
mod lost_gpu;
mod merge;
mod mine;
mod molecule_lines;
#[cfg(test)]
mod options_page;
mod output;
mod paths;
mod progress;
mod report;
mod shards;
mod skeletons;
mod skipped;
mod slurm;
mod slurm_status;
mod train_model;
mod train_tokenizer;
mod values;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::{ArgAction, ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

use drift_core::{Error, Job};
use output::Output;

/// Measures token drift in language models that write 3D molecules as text, and ends it.
#[derive(Debug, Parser)]
#[command(name = "drift", version, propagate_version = true, max_term_width = 100)]
// Those of clap would stand in a group of their own.
#[command(disable_help_flag = true, disable_version_flag = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    global: Global,
}

/// The options of every verb.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = help::EVERY_COMMAND)]
struct Global {
    /// Print one JSON document instead of tables
    #[arg(long, global = true)]
    json: bool,
    /// Threads to use, with the same results for any number [default: all cores]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Print no progress
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Print help
    #[arg(long, short, global = true, action = ArgAction::Help)]
    help: Option<bool>,
    /// Print version
    #[arg(long, short = 'V', global = true, action = ArgAction::Version)]
    version: Option<bool>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Read conformers, print statistics of their coordinates, write them to a compact store
    #[command(after_help = help::end("mine", &mine::EXAMPLES))]
    Mine(mine::Args),
    /// Write conformers as the text that models are trained on
    #[command(after_help = help::end("encode", &encode::EXAMPLES))]
    Encode(encode::Args),
    /// Find the best placeholder for a tokenizer, and prove that no other is better
    #[command(after_help = help::end("fit", &fit::EXAMPLES))]
    Fit(fit::Args),
    /// Compare coordinate encodings: tokens, forward passes, lost precision; recommend one to train on
    #[command(after_help = help::end_of_encodings(&encodings::EXAMPLES))]
    Encodings(encodings::Args),
    /// Extend a tokenizer so that every block takes the same small number of tokens
    #[command(after_help = help::end("train-tokenizer", &train_tokenizer::EXAMPLES))]
    TrainTokenizer(train_tokenizer::Args),
    /// Add the embedding rows of an extended tokenizer to a trained model
    #[command(after_help = help::end("extend-model", &extend_model::EXAMPLES))]
    ExtendModel(extend_model::Args),
    /// Train or fine-tune a small Qwen3 or Llama model on a corpus
    #[command(after_help = help::end("train-model", &train_model::EXAMPLES))]
    TrainModel(train_model::Args),
    /// Judge generated texts: validity, junk, lost digits, geometry, drift
    #[command(after_help = help::end("audit", &audit::EXAMPLES))]
    Audit(audit::Args),
    /// Show the tokens of a text, which of them a template leaves free, and the drift of its blocks
    #[command(after_help = help::end("inspect", &inspect::EXAMPLES))]
    Inspect(inspect::Args),
    /// Write the automaton of each molecule as a grammar, for vLLM, SGLang and other engines
    #[command(after_help = help::end("export-grammar", &export_grammar::EXAMPLES))]
    ExportGrammar(export_grammar::Args),
    /// Generate texts with a model under several logit processors, without judging them
    #[command(after_help = help::end("generate", &generate::EXAMPLES))]
    Generate(Box<generate::Args>),
    /// Generate texts with a model under several logit processors, and measure what each costs
    #[command(after_help = help::end("eval", &eval_args::EXAMPLES))]
    Eval(Box<eval_args::Args>),
    /// Check a GPU: what is installed and what is missing, whether drift's kernels are right, and how fast they are
    #[command(after_help = help::end("device", &device::EXAMPLES))]
    Device(device::Args),
    /// Run `drift eval` or `drift generate` as a Slurm job array
    #[command(after_help = help::end("slurm", &slurm::EXAMPLES))]
    Slurm(slurm::Args),
    /// Merge shards into what a single run would have written
    #[command(after_help = help::end("merge", &merge::EXAMPLES))]
    Merge(merge::Args),
    /// Compare two records of `drift eval`, or two Chrome traces
    #[command(after_help = help::end("compare", &compare::EXAMPLES))]
    Compare(compare::Args),
    /// Show the tables of a record of `drift eval`, and write its page
    #[command(after_help = help::end("report", &report::EXAMPLES))]
    Report(report::Args),
    /// Print shell completions
    #[command(after_help = help::end("completions", &completions::EXAMPLES))]
    Completions(completions::Args),
}

/// Parses the command line, runs the verb and maps its outcome to an exit code: 0 done, 2 usage or input error, 130
/// interrupted.
pub fn main() -> ExitCode {
    keep_running_at_file_limit();
    let mut command = Cli::command();
    let arguments = inspect::texts_last(std::env::args_os().collect(), &command);
    let parsed = command.try_get_matches_from_mut(arguments);
    let parsed = parsed.and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
        Ok((cli, matches))
    });
    let (output, outcome) = match parsed {
        Ok((cli, matches)) => {
            let output = Output::new(cli.global.json);
            let outcome = run(cli, (&command, &matches), &output);
            (output, outcome)
        }
        // Help is a result, and is printed as one.
        Err(error) if error.use_stderr() => match skeletons::refusal(&error) {
            None => return Output::usage_error(&error),
            Some(refusal) => (Output::new(false), Err(refusal.into())),
        },
        Err(help) => {
            let output = Output::new(false);
            let outcome = output.help(&help);
            (output, outcome)
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if broken_pipe(&error) {
                return ExitCode::SUCCESS;
            }
            lost_gpu::go_on_without(&error, &output);
            output.error(&error);
            ExitCode::from(error.downcast_ref::<Error>().map_or(2, Error::exit_code))
        }
    }
}

fn run(cli: Cli, given: (&clap::Command, &ArgMatches), output: &Output) -> anyhow::Result<()> {
    let invocation = invocation::Invocation::new(given.0, given.1);
    if let Some(threads) = cli.global.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global()?;
    }
    let job = job(cli.global.quiet)?;
    match cli.verb {
        Verb::Mine(args) => mine::run(args, &invocation, &job, output),
        Verb::Encode(args) => encode::run(args, &invocation, &job, output),
        Verb::Fit(args) => fit::run(args, &invocation, &job, output),
        Verb::Encodings(args) => encodings::run(args, &invocation, &job, output),
        Verb::Audit(args) => audit::run(args, &invocation, &job, output),
        Verb::Inspect(args) => inspect::run(args, &job, output),
        Verb::ExportGrammar(args) => export_grammar::run(args, &invocation, &job, output),
        Verb::TrainTokenizer(args) => train_tokenizer::run(args, &invocation, &job, output),
        Verb::ExtendModel(args) => extend_model::run(args, &invocation, &job, output),
        Verb::Generate(args) => generate::run(*args, &invocation, &job, output),
        Verb::Eval(args) => eval::run(*args, &invocation, &job, output),
        Verb::Device(args) => device::run(&args, &invocation, &job, output),
        Verb::Merge(args) => merge::run(args, &invocation, &job, output),
        Verb::Slurm(args) => slurm::run(args, &invocation, &job, output),
        Verb::Compare(args) => compare::run(&args, &job, output),
        Verb::Report(args) => report::run(&args, &invocation, &job, output),
        Verb::TrainModel(args) => train_model::run(args, &invocation, &job, output),
        Verb::Completions(args) => completions::run(args, &mut Cli::command(), output),
    }
}

/// Makes writing beyond the limit on a file's size (`ulimit -f`) an error that is reported, instead of the end of the process. The
/// threads of the process inherit it, the programs that it starts do not.
fn keep_running_at_file_limit() {
    #[cfg(unix)]
    {
        use nix::sys::signal::{SigSet, Signal};
        let mut limit = SigSet::empty();
        limit.add(Signal::SIGXFSZ);
        // This fails for no set of signals that exists.
        let _ = limit.thread_block();
    }
}

/// How long a cancelled job may clean up before another Ctrl-C ends the process at once.
const CLEANING_UP: Duration = Duration::from_secs(2);

/// Returns a job that Ctrl-C cancels; another Ctrl-C, if the job has still not ended after [`CLEANING_UP`], ends the process.
fn job(quiet: bool) -> anyhow::Result<Job> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = cancelled.clone();
    let mut first = None;
    ctrlc::set_handler(move || {
        flag.store(true, Ordering::Relaxed);
        if first.get_or_insert_with(Instant::now).elapsed() > CLEANING_UP {
            std::process::exit(130);
        }
    })?;
    Ok(Job::new(progress::observer(quiet), cancelled))
}

/// Returns whether the reader of the output closed it, as `head` does, which is no error.
fn broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
    })
}
