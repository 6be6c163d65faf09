//! The command line of `drift eval`.

use std::path::PathBuf;

use super::energy::EnergyArgs;
use super::ensembles::EnsembleArgs;
use super::generate_args::{GenerateArgs, OUTPUT, RunningArgs};
use super::help::JUDGING;
use super::values::{one_of, threshold};
use drift_core::chem::MAX_HEAVY_ATOMS;
use drift_data::audit::MissingPolicy;

/// Examples at the end of the help.
pub(super) const EXAMPLES: [&str; 5] = [
    "drift eval",
    "drift eval --model Qwen/Qwen3-0.6B --lp none,automaton --samples 200 -o record",
    "drift eval --model MODEL --corpus test.h5 --generations 2k --threshold 0.5,0.75 -o record",
    "drift eval --model FIRST --model SECOND --lp automaton --likelihood",
    "drift eval --model MODEL --device cuda:0 --shard 1/8 -o shard1",
];

/// The command line of `drift eval`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    pub generate: GenerateArgs,
    #[command(flatten)]
    pub judging: JudgingArgs,
    /// Write the texts as JSON Lines; `-` prints them
    #[arg(long, help_heading = OUTPUT, value_name = "FILE.jsonl", conflicts_with = "shard")]
    pub texts: Option<PathBuf>,
    /// Write a line for each molecule of each run, .csv or .jsonl
    #[arg(long, help_heading = OUTPUT, value_name = "FILE", conflicts_with = "shard")]
    pub molecules: Option<PathBuf>,
    /// Write the verdicts on each text as JSON Lines
    #[arg(long, help_heading = OUTPUT, value_name = "FILE.jsonl")]
    pub verdicts: Option<PathBuf>,
    /// Write the RMSD of every text to every reference, .npz or .pickle
    #[arg(long, help_heading = OUTPUT, value_name = "FILE")]
    pub matrix: Option<PathBuf>,
    /// Print every table, not only the summary
    #[arg(long, help_heading = OUTPUT)]
    pub verbose: bool,
    /// Write record.json and eval.html to this folder; `-` prints the JSON
    #[arg(short, long, help_heading = OUTPUT, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub running: RunningArgs,
}

/// How texts are judged.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = JUDGING)]
pub(super) struct JudgingArgs {
    /// Thresholds of coverage in Å [default: 0.75]
    #[arg(long, visible_alias = "thresholds", value_name = "ANGSTROM", value_parser = threshold, value_delimiter = ',')]
    pub threshold: Vec<f64>,
    /// Molecules without usable texts in coverage
    #[arg(long, value_name = "zero|leave-out", hide_possible_values = true, value_parser = one_of(&MissingPolicy::ALL, MissingPolicy::name), default_value = "zero")]
    pub missing: MissingPolicy,
    #[command(flatten)]
    pub ensembles: EnsembleArgs,
    /// Remove junk from numbers before judging
    #[arg(long)]
    pub strip_junk: bool,
    /// The most heavy atoms of compared molecules
    #[arg(long, value_name = "N", default_value_t = MAX_HEAVY_ATOMS)]
    pub max_atoms: usize,
    /// Score the references too, in nats per conformer
    #[arg(long, conflicts_with_all = ["conformers", "opened", "examples"])]
    pub likelihood: bool,
    /// Compare with texts that another run of this command wrote
    #[arg(long, value_name = "FILE.jsonl", conflicts_with_all = ["strip_junk", "shard"])]
    pub same_as: Option<PathBuf>,
    #[command(flatten)]
    pub energy: EnergyArgs,
}
