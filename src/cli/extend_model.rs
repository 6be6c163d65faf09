//! `drift extend-model`: adds the rows of an extended tokenizer to a checkpoint.

use std::path::PathBuf;

use super::invocation::Invocation;
use super::output::Output;
use super::values::{folder_alone, found, one_of};
use crate::report::extend_view::extend_table;
use crate::report::folders::refuse_over;
use drift_core::Job;
use drift_core::checkpoint::{CONFIG, RequiredFiles};
use drift_tune::design::{ExtendModelPlan, RowInit, extend_model};

/// Examples at the end of the help.
pub(super) const EXAMPLES: [&str; 1] =
    ["drift extend-model --model path/to/model --tokenizer extended -o path/to/extended-model"];

/// The command line of `drift extend-model`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The trained model: a folder with its own tokenizer.json, or org/name in the cache of Hugging Face
    #[arg(long, value_name = "MODEL")]
    model: PathBuf,
    /// An extension of the model's tokenizer, as `drift train-tokenizer` writes it
    #[arg(long, value_name = "TOKENIZER")]
    tokenizer: PathBuf,
    /// The rows of new tokens: mean, digits or ends of the old ones that they replace
    #[arg(long, hide_possible_values = true, value_parser = one_of(&RowInit::ALL, RowInit::name), default_value = RowInit::default().name())]
    init: RowInit,
    /// Pad the rows of embedding and LM head to a multiple of N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pad_to_multiple_of: Option<u64>,
    /// Write weights, config.json, tokenizer and extension.json to this folder
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

/// Checks the inputs, writes the checkpoint and shows the report.
pub(super) fn run(mut args: Args, invocation: &Invocation, job: &Job, output: &Output) -> anyhow::Result<()> {
    found([&mut args.model], RequiredFiles::Model)?;
    found([&mut args.tokenizer], RequiredFiles::Tokenizer)?;
    let beside = [("model", Some(args.model.as_path())), ("tokenizer", Some(args.tokenizer.as_path()))];
    refuse_over(&args.output, &beside)?;
    folder_alone("-o", &args.output)?;
    invocation.files().writes_folder("-o", &args.output)?.check()?;
    let plan = ExtendModelPlan {
        model: args.model,
        tokenizer: args.tokenizer,
        init: args.init,
        pad_to_multiple_of: args.pad_to_multiple_of,
        output: args.output,
    };
    let report = extend_model(&plan, job)?;
    if output.json {
        return output.document(&report);
    }
    output.text(&extend_table(&report, output.terminal()))?;
    if !report.left_out.is_empty() {
        output.note(&format!("not copied: {}", report.left_out.join(", ")));
    }
    output.note(&format!("wrote {} and the files beside it", plan.output.join(CONFIG).display()));
    Ok(())
}
