//! `drift audit`: junk, lost digits and validity of text that something generated.

use std::path::{Path, PathBuf};

use super::energy::EnergyArgs;
use super::invocation::Invocation;
use super::output::Output;
use super::shards::{ShardArgs, ShardOf};
use super::values::{DialectOrAuto, EncodingArgs, found, is_stdout, not_stdout};
use crate::audit::{AuditPlan, AuditReport, AuditRequest, audit, audit_shard, merge_audited};
use crate::checkpoint::Wanted;
use crate::chem::{AtomLimit, MAX_HEAVY_ATOMS};
use crate::constraint::USUAL_PLACEHOLDER;
use crate::error::Error;
use crate::io::{Outputs, write_atomic};
use crate::job::Job;
use crate::report::audit_view::{
    audit_table, chemistry_rows, drift_table, examples_table, geometry_table, their_table,
};
use crate::report::chemistry_view::{chemistry_table, flatness_table};
use crate::report::energy_view::energy_table;
use crate::report::format::thousands;
use crate::shard::Manifest;
use crate::shard::files::MergedFiles;
use crate::tokenizer::Tokenizer;

/// The command line of `drift audit`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Generated text, known by content: 3DMolGen's smoke reports, JSON Lines, plain text; each also gzipped
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// How numbers should be written; `auto` takes it from the model's recipe, else tells it from whole blocks of the texts,
    /// else from the references, and stops where nothing tells
    #[arg(long, value_enum, default_value = "auto")]
    dialect: DialectOrAuto,
    #[command(flatten)]
    blocks: EncodingArgs,
    /// The folder of the model that wrote the texts, whose recipe.json says the dialect
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// Count drift too, with this tokenizer: a tokenizer.json, plain or gzipped, a model folder, or an embedded name
    #[arg(long, value_name = "TOKENIZER")]
    tokenizer: Option<PathBuf>,
    /// The placeholder that drift is counted against
    #[arg(long, value_name = "P", default_value = USUAL_PLACEHOLDER, allow_hyphen_values = true)]
    placeholder: String,
    /// Compare geometry with these conformers too: files and folders that `drift mine` takes, with text
    #[arg(long, value_name = "CORPUS", num_args = 1..)]
    references: Vec<PathBuf>,
    /// The heavy atoms of the largest molecule that is compared; a text of a larger one is another molecule than its prompt
    #[arg(long, value_name = "N", default_value_t = MAX_HEAVY_ATOMS)]
    max_atoms: usize,
    /// The record to write, JSON; `-` prints it. With --shard, a folder
    #[arg(short, long, value_name = "FILE.json")]
    output: Option<PathBuf>,
    #[command(flatten)]
    energy: EnergyArgs,
    #[command(flatten)]
    shard: ShardArgs,
}

/// Reads and judges.
pub(super) fn run(args: Args, invocation: &Invocation, job: &Job, output: &Output) -> anyhow::Result<()> {
    let (to, shard) = (args.output.clone(), args.shard.shard);
    if let Some(shard) = shard {
        let plan = plan(args, job)?;
        let shard = ShardOf { shard, invocation, folder: to.as_deref(), inputs: &plan.files };
        return shard.run(job, output, |files, job| audit_shard(&plan, files, job));
    }
    let target = not_stdout(to.as_deref());
    let mut inputs = args.files.clone();
    inputs.extend(args.references.clone());
    let listed = args.energy.energy_list.clone();
    if listed.as_deref().is_some_and(is_stdout) {
        let problem = "stdout is for the tables, or for the record";
        return Err(Error::input("--energy-list -", problem, "give the list a file").into());
    }
    let outputs = Outputs::new().file("-o", target)?.file("--energy-list", listed.as_deref())?;
    outputs.apart_from(&inputs)?;
    let report = audit(&plan(args, job)?, job)?;
    list(&report, listed.as_deref())?;
    show(&report, to.as_deref(), output)
}

/// Does the rest of the command once all its shards are there.
pub(super) fn merge(
    manifest: &Manifest,
    parts: &MergedFiles,
    to: Option<&Path>,
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    Outputs::new().file("-o", not_stdout(to))?;
    let plan = plan(Invocation::parsed(manifest)?, job)?;
    show(&merge_audited(&plan, parts, job)?, to, output)
}

/// What is to be judged, and how.
fn plan(mut args: Args, job: &Job) -> Result<AuditPlan, Error> {
    args.model.iter_mut().try_for_each(|path| found(path, Wanted::Folder))?;
    args.tokenizer.iter_mut().try_for_each(|path| found(path, Wanted::Tokenizer))?;
    let energy = args.energy.energies()?;
    let load = |path: &PathBuf| -> Result<Tokenizer, Error> { Ok(Tokenizer::load_for(path, job)?.0) };
    let plan = AuditRequest {
        files: args.files,
        zeros: args.dialect.asked(),
        blocks: args.blocks.asked(None),
        model: args.model,
        tokenizer: args.tokenizer.as_ref().map(load).transpose()?,
        tokenizer_path: args.tokenizer,
        placeholder: args.placeholder,
        references: args.references,
        max_atoms: AtomLimit(args.max_atoms),
    }
    .plan()?;
    Ok(AuditPlan { energy, ..plan })
}

/// Writes the record where one is wanted, and shows it.
fn show(report: &AuditReport, to: Option<&Path>, output: &Output) -> anyhow::Result<()> {
    if let Some(path) = not_stdout(to) {
        write_atomic(path, (serde_json::to_string_pretty(report)? + "\n").as_bytes())?;
    }
    if output.json || to.is_some_and(is_stdout) {
        return output.document(report);
    }
    for skipped in report.skipped_records.iter().take(SHOWN) {
        output.note(&format!("skipped: {}: {}: {}", skipped.file, skipped.record, skipped.reason));
    }
    if report.skipped > SHOWN as u64 {
        let all = thousands(report.skipped);
        output.note(&format!("skipped: {all} records in all; --json lists the first 1,000"));
    }
    report.warnings.iter().for_each(|warning| output.note(&format!("warning: {warning}")));
    output.text(&render(report, output))
}

/// Writes the energies of texts where they are wanted.
fn list(report: &AuditReport, to: Option<&Path>) -> anyhow::Result<()> {
    let (Some(path), Some(energy)) = (to, &report.energy) else { return Ok(()) };
    let mut lines = String::new();
    for text in &energy.texts {
        lines += &serde_json::to_string(text)?;
        lines.push('\n');
    }
    Ok(write_atomic(path, lines.as_bytes())?)
}

/// Skipped records that a terminal shows.
const SHOWN: usize = 10;

fn render(report: &AuditReport, output: &Output) -> String {
    let chemistry = chemistry_rows(report);
    let tables = [
        Some(audit_table(report)),
        Some(their_table(report)),
        geometry_table(report),
        chemistry_table(&chemistry),
        flatness_table(&chemistry),
        report.energy.as_ref().map(energy_table),
        drift_table(report),
        examples_table(report),
    ];
    let shown: Vec<String> =
        tables.into_iter().flatten().map(|table| table.render(output.terminal())).collect();
    shown.join("\n")
}
