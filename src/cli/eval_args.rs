//! The command line of `drift eval`.

use std::path::PathBuf;

use super::energy::EnergyArgs;
use super::generate_args::{GenerateArgs, OUTPUT};
use super::values::{one_of, threshold};
use drift_core::chem::MAX_HEAVY_ATOMS;
use drift_data::audit::Missing;

/// Examples at the end of the help.
pub(super) const EXAMPLES: &str = "\
Examples:
  drift eval
  drift eval --model Qwen/Qwen3-0.6B --lp none,automaton --samples 200 -o record
  drift eval --model MODEL --corpus test.h5 --generations 2k --threshold 0.5,0.75 -o record
  drift eval --model FIRST --model SECOND --lp automaton --likelihood
  drift eval --model MODEL --device cuda:0 --shard 1/8 -o shard1";

/// The command line of `drift eval`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    pub generate: GenerateArgs,
    #[command(flatten)]
    pub judging: JudgingArgs,
    /// Write every text as a line of {smiles, generation, lp, placeholder, model, text}; `-` prints them instead of tables
    #[arg(long, help_heading = OUTPUT, value_name = "FILE.jsonl", conflicts_with = "shard")]
    pub texts: Option<PathBuf>,
    /// Write a line for each molecule of each run: counts, coverage, matching. The name of the file ends in .csv or .jsonl
    #[arg(long, help_heading = OUTPUT, value_name = "FILE", conflicts_with = "shard")]
    pub molecules: Option<PathBuf>,
    /// Write one line of JSON for each text: verdicts, chemistry, the smallest RMSD to a reference
    #[arg(long, help_heading = OUTPUT, value_name = "FILE.jsonl")]
    pub verdicts: Option<PathBuf>,
    /// Write the RMSD of every text to every reference: an .npz, or a .pickle as 3DMolGen writes it. For one model and one logit
    /// processor
    #[arg(long, help_heading = OUTPUT, value_name = "FILE")]
    pub matrix: Option<PathBuf>,
    /// Print every table, not only the summary: chemistry, coverage, intervals, and where the time went
    #[arg(long, help_heading = OUTPUT)]
    pub verbose: bool,
    /// Write record.json and eval.html, which hold every table, to this folder; `-` prints the JSON. The folder also keeps finished
    /// texts, so that the same command continues after it was stopped
    #[arg(short, long, help_heading = OUTPUT, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// How texts are judged.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Judging")]
pub(super) struct JudgingArgs {
    /// An RMSD threshold of coverage in Å; repeat it, or separate several with commas [default: 0.75]
    #[arg(long, visible_alias = "thresholds", value_name = "ANGSTROM", value_parser = threshold, value_delimiter = ',')]
    pub threshold: Vec<f64>,
    /// How to treat molecules that have references but no usable text: count them as 0 in coverage, or leave them out of coverage and
    /// matching as 3DMolGen's run_eval does
    #[arg(long, value_parser = one_of(&Missing::ALL, Missing::name), default_value = "zero")]
    pub missing: Missing,
    /// Remove junk from numbers before judging: characters that belong to no number, and digits beyond the format
    #[arg(long)]
    pub strip_junk: bool,
    /// Compare molecules of at most N heavy atoms; the text of a larger one counts as another molecule
    #[arg(long, value_name = "N", default_value_t = MAX_HEAVY_ATOMS)]
    pub max_atoms: usize,
    /// Also score the reference conformers in nats per conformer, which compares models with different tokenizers
    #[arg(long, conflicts_with_all = ["conformers", "opened", "examples"])]
    pub likelihood: bool,
    /// Compare with texts that another run of this command wrote with --texts, for example on another device: how many are equal,
    /// where the others first differ, and by how much the best logit led there
    #[arg(long, value_name = "FILE.jsonl", conflicts_with_all = ["strip_junk", "shard"])]
    pub same_as: Option<PathBuf>,
    #[command(flatten)]
    pub energy: EnergyArgs,
}
