//! `--skeleton` and `--prompts`: texts that a skeleton describes, in place of enriched SMILES.

use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::output::Output;
use super::skipped;
use super::values::{is_stdout, not_stdout};
use crate::report::skeleton_view::{
    line_tokens, part_tokens, prompt_tokens, skeleton_tables, slot_encodings,
};
use drift_core::io::OutputSet;
use drift_core::skeleton::Skeleton;
use drift_core::{Error, Job, Tokenizer};
use drift_data::audit::skeletons::{SkeletonAudit, SkeletonAuditResult, SkeletonVerdict};
use drift_data::skeleton_tokens::SkeletonTexts;

/// The heading of these options.
pub(super) const SKELETONS: &str = "Other texts";

/// The options of a verb that takes skeletons.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = SKELETONS)]
pub(super) struct SkeletonArgs {
    /// The skeleton of texts, crystals or others: a JSON file, or the name of a built-in one (docs/skeletons.md)
    #[arg(long, value_name = "SKELETON", requires = "prompts")]
    skeleton: Option<PathBuf>,
    /// The prompts of the texts, a line {"prompt": …, fields} each
    #[arg(long, value_name = "FILE.jsonl", requires = "skeleton")]
    prompts: Option<PathBuf>,
}

/// A skeleton and its prompts.
#[derive(Debug, Clone)]
pub(super) struct SkeletonFiles {
    /// The name or file of the skeleton.
    pub skeleton: PathBuf,
    /// The file of prompts.
    pub prompts: PathBuf,
}

impl SkeletonArgs {
    /// Returns the files, if a skeleton was given.
    pub(super) fn files(&self) -> Option<SkeletonFiles> {
        Some(SkeletonFiles { skeleton: self.skeleton.clone()?, prompts: self.prompts.clone()? })
    }
}

/// Returns the refusal of a command line whose verb takes no skeleton.
pub(super) fn refusal(error: &clap::Error) -> Option<Error> {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else { return None };
    let option = given.split('=').next().filter(|_| error.kind() == ErrorKind::UnknownArgument)?;
    let remedy = match option {
        "--skeleton" => "drift audit, inspect, encodings, export-grammar and train-tokenizer take skeletons",
        // Whoever has no skeleton wants prompts of molecules.
        "--prompts" => {
            "--smiles FILE or --corpus INPUT has the molecules of prompts; --prompts stands beside a --skeleton, \
             which drift audit, inspect, encodings, export-grammar and train-tokenizer take"
        }
        _ => return None,
    };
    Some(Error::input(option, "this command knows enriched SMILES alone", remedy))
}

/// Returns the refusal of an option that only enriched SMILES has.
pub(super) fn meaningless(option: &str) -> Error {
    let remedy = match option {
        "--encoding" => "leave it out; --skeleton enriched-smiles:ENCODING writes coordinates in an encoding",
        _ => "leave it out, or leave out --skeleton",
    };
    Error::input(option, "has no meaning for texts of a skeleton", remedy)
}

/// Shows what the texts of a skeleton take in tokens.
pub(super) fn inspect(
    files: SkeletonFiles,
    tokenizer: &Path,
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    let report = texts(files, tokenizer, job)?.tokens(job)?;
    if output.json {
        return output.document(&report);
    }
    let tables = [Some(part_tokens(&report)), line_tokens(&report), Some(prompt_tokens(&report))];
    let tables: Vec<String> = tables.iter().flatten().map(|table| table.render(output.terminal())).collect();
    output.text(&tables.join("\n"))
}

/// Compares the ways to write the slots of a skeleton.
pub(super) fn encodings(
    files: SkeletonFiles,
    tokenizers: &[PathBuf],
    to: Option<&Path>,
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    let [first, others @ ..] = tokenizers else { return Ok(()) };
    let others: Vec<Tokenizer> =
        others.iter().map(|path| Ok(Tokenizer::load_for(path, job)?.0)).collect::<Result<_, Error>>()?;
    let report = texts(files, first, job)?.encodings(others, job)?;
    if output.record(to, &report)? {
        return output.document(&report);
    }
    output.text(&slot_encodings(&report).render(output.terminal()))
}

/// Reads a skeleton and a tokenizer.
pub(super) fn texts(files: SkeletonFiles, tokenizer: &Path, job: &Job) -> anyhow::Result<SkeletonTexts> {
    let SkeletonFiles { skeleton, prompts } = files;
    let (skeleton, tokenizer) = (Skeleton::load(&skeleton)?, Tokenizer::load_for(tokenizer, job)?.0);
    Ok(SkeletonTexts { skeleton, prompts, tokenizer, begun: String::new() })
}

/// What `drift audit --skeleton` judges and writes.
pub(super) struct AuditBySkeleton {
    pub texts: Vec<PathBuf>,
    pub row_field: String,
    pub against_row: Option<String>,
    pub verdicts: Option<PathBuf>,
    pub to: Option<PathBuf>,
}

impl AuditBySkeleton {
    /// Judges the texts, and writes or shows the report.
    pub(super) fn run(self, files: SkeletonFiles, job: &Job, output: &Output) -> anyhow::Result<()> {
        let AuditBySkeleton { texts, row_field, against_row, verdicts, to } = self;
        let (verdicts, to) = (verdicts.as_deref(), to.as_deref());
        let audit = SkeletonAudit {
            skeleton: Skeleton::load(&files.skeleton)?,
            prompts: files.prompts,
            files: texts,
            row_field,
            against_row,
        };
        let SkeletonAuditResult { report, verdicts: lines } = audit.run(job)?;
        let mut files = OutputSet::new();
        if let Some(path) = verdicts {
            write_verdicts(&mut files, path, &lines, output)?;
        }
        let is_shown = output.record_beside(&mut files, to, &report)?;
        files.commit()?;
        if verdicts.is_some_and(is_stdout) {
            return Ok(());
        }
        if is_shown {
            return output.document(&report);
        }
        skipped::tell(report.skipped, &report.skipped_records, output);
        let tables: Vec<String> =
            skeleton_tables(&report).iter().map(|table| table.render(output.terminal())).collect();
        output.text(&tables.join("\n"))
    }
}

fn write_verdicts(
    files: &mut OutputSet,
    path: &Path,
    verdicts: &[SkeletonVerdict],
    output: &Output,
) -> anyhow::Result<()> {
    let mut lines = String::new();
    for verdict in verdicts {
        lines += &(serde_json::to_string(verdict)? + "\n");
    }
    match not_stdout(Some(path)) {
        Some(path) => Ok(files.put(path, lines.as_bytes())?),
        None => output.text(lines.trim_end()),
    }
}
