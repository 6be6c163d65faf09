//! `drift compare`: compares two records or two Chrome traces.

use std::path::PathBuf;

use super::output::Output;
use crate::report::compare_view::tables;
use drift_core::Job;
use drift_data::compare::compare;

/// Examples at the end of the help.
pub(super) const EXAMPLES: [&str; 2] = [
    "drift compare before/record.json after/record.json",
    "drift compare with-processor.pt.trace.json.gz without.pt.trace.json.gz --json",
];

/// The command line of `drift compare`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A record of `drift eval`, or a Chrome trace as torch.profiler writes it; .json or .gz
    #[arg(value_name = "A")]
    first: PathBuf,
    /// Another file of the same kind
    #[arg(value_name = "B")]
    second: PathBuf,
}

/// Compares the files and shows the tables.
pub(super) fn run(args: &Args, job: &Job, output: &Output) -> anyhow::Result<()> {
    let report = compare([&args.first, &args.second], job)?;
    if output.json {
        return output.document(&report);
    }
    let tables: Vec<String> = tables(&report).iter().map(|table| table.render(output.terminal())).collect();
    let text =
        if tables.is_empty() { "Neither file contains a run.\n".to_owned() } else { tables.join("\n") };
    output.text(&text)
}
