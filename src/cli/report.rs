//! `drift report`: a record of `drift eval` as tables and as a page, as `eval` showed it.

use std::path::PathBuf;

use super::eval_output::render;
use super::help::OUTPUT;
use super::invocation::Invocation;
use super::output::Output;
use super::values::{is_stdout, not_stdout};
use crate::report::eval_page::eval_page;
use drift_core::Job;
use drift_core::io::write_atomic;
use drift_engine::eval::record::EvalReport;

/// Examples at the end of the help.
pub(super) const EXAMPLES: [&str; 2] = [
    "drift report eval/records/2026-11-26-small-bins-h100/record.json -o small-bins.html",
    "drift report run/record.json --verbose",
];

/// The command line of `drift report`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A record of `drift eval`, .json or .gz
    #[arg(value_name = "RECORD")]
    record: PathBuf,
    /// Print every table, not only the summary
    #[arg(long, help_heading = OUTPUT)]
    verbose: bool,
    /// Write the page of the record; `-` prints it
    #[arg(short, long, help_heading = OUTPUT, value_name = "FILE.html")]
    output: Option<PathBuf>,
}

/// Reads the record, writes its page and shows its tables.
pub(super) fn run(args: &Args, invocation: &Invocation, job: &Job, output: &Output) -> anyhow::Result<()> {
    let target = args.output.as_deref();
    output.refuse_stdout(target, "page")?;
    let page = not_stdout(target);
    invocation.files().reads(&args.record).writes("-o", page)?.check()?;
    let report = EvalReport::read(&args.record, job)?;
    if let Some(path) = page {
        write_atomic(path, eval_page(&report).render().as_bytes())?;
    }
    if target.is_some_and(is_stdout) {
        return output.text(&eval_page(&report).render());
    }
    if output.json {
        return output.document(&report);
    }
    output.text(&render(&report, args.verbose, None, output))
}
