//! `drift audit`: junk, lost digits and validity of text that something generated.

use std::path::PathBuf;

use super::output::Output;
use super::values::{BlockArgs, DialectOrAuto, found};
use crate::audit::{AuditReport, AuditRequest, audit};
use crate::checkpoint::Wanted;
use crate::error::Error;
use crate::job::Job;
use crate::report::audit_view::{
    audit_table, chemistry_rows, drift_table, examples_table, geometry_table, their_table,
};
use crate::report::chemistry_view::{chemistry_table, flatness_table};
use crate::report::format::thousands;
use crate::text::smiles::{AtomLimit, MAX_HEAVY_ATOMS};
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
    blocks: BlockArgs,
    /// The folder of the model that wrote the texts, whose recipe.json says the dialect
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// Count drift too, with this tokenizer: a tokenizer.json, plain or gzipped, a model folder, or an embedded name
    #[arg(long, value_name = "TOKENIZER")]
    tokenizer: Option<PathBuf>,
    /// The placeholder that drift is counted against
    #[arg(long, value_name = "P", default_value = "0.0000,0.0000,0.0000", allow_hyphen_values = true)]
    placeholder: String,
    /// Compare geometry with these conformers too: files and folders that `drift mine` takes, with text
    #[arg(long, value_name = "CORPUS", num_args = 1..)]
    references: Vec<PathBuf>,
    /// The heavy atoms of the largest molecule that is compared; a text of a larger one is another molecule than its prompt
    #[arg(long, value_name = "N", default_value_t = MAX_HEAVY_ATOMS)]
    max_atoms: usize,
}

/// Reads and judges.
pub(super) fn run(mut args: Args, job: &Job, output: &Output) -> anyhow::Result<()> {
    args.model.iter_mut().try_for_each(|path| found(path, Wanted::Folder))?;
    args.tokenizer.iter_mut().try_for_each(|path| found(path, Wanted::Tokenizer))?;
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
    let report = audit(&plan, job)?;
    if output.json {
        return output.document(&report);
    }
    for skipped in report.skipped_records.iter().take(SHOWN) {
        output.note(&format!("skipped: {}: {}: {}", skipped.file, skipped.record, skipped.reason));
    }
    if report.skipped > SHOWN as u64 {
        let all = thousands(report.skipped);
        output.note(&format!("skipped: {all} records in all; --json lists the first 1,000"));
    }
    report.warnings.iter().for_each(|warning| output.note(&format!("warning: {warning}")));
    output.text(&render(&report, output))
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
        drift_table(report),
        examples_table(report),
    ];
    let shown: Vec<String> =
        tables.into_iter().flatten().map(|table| table.render(output.terminal())).collect();
    shown.join("\n")
}
