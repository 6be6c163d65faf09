//! `drift mine --against`: finds the molecules and geometries of one corpus that are also in another.

use std::path::{Path, PathBuf};

use super::output::{Output, StagedOutput};
use super::skipped;
use super::values::{is_stdout, not_stdout, one_of};
use crate::report::against_view::against_table;
use drift_core::chem::Isotopes;
use drift_core::io::{AtomicFile, OutputSet, PackedFile};
use drift_core::run_files::RunFiles;
use drift_core::{Error, Job};
use drift_data::against::{
    AgainstOutput, AgainstPlan, AgainstReport, BOUND_ANGSTROM, SharedKind, against, merge_against,
};
use drift_data::corpus::ReadOptions;
use drift_data::shard::files::MergedFiles;

/// The options of the comparison: the other corpus, and the largest RMSD of equal geometries.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Comparison")]
pub(super) struct AgainstArgs {
    /// Find the molecules, geometries, texts and scaffolds of INPUT that are also in these files
    #[arg(long, value_name = "OTHER", num_args = 1.., conflicts_with = "html")]
    pub against: Vec<PathBuf>,
    /// The largest RMSD of two conformers of one geometry
    #[arg(long, value_name = "ANGSTROM", default_value_t = BOUND_ANGSTROM, requires = "against", conflicts_with_all = ["check", "html"], allow_hyphen_values = true)]
    pub within: f64,
    /// Whether isotope labels tell molecules and atoms apart
    #[arg(long, value_name = "ignore|respect", hide_possible_values = true, value_parser = one_of(&Isotopes::ALL, Isotopes::name), default_value = "ignore", requires = "against", conflicts_with_all = ["check", "html"])]
    isotopes: Isotopes,
    /// Shared is: text, geometry, isomer, molecule, inchikey, inchikey-block, scaffold [default:
    /// text,molecule,inchikey]
    #[arg(
        long,
        value_name = "KIND",
        hide_possible_values = true,
        hide_default_value = true,
        value_delimiter = ',',
        value_parser = one_of(&SharedKind::ALL, SharedKind::name),
        default_values = SharedKind::DEFAULT.map(SharedKind::name),
        requires = "against",
        conflicts_with_all = ["check", "html"]
    )]
    shared_by: Vec<SharedKind>,
    /// Write the rows of INPUT that share nothing, as they are
    #[arg(long, value_name = "FILE", requires = "against", conflicts_with_all = ["check", "html"])]
    pub drop_shared: Option<PathBuf>,
}

/// The files that a comparison writes.
pub(super) struct AgainstFiles {
    /// The list of pairs.
    pub list: Option<PathBuf>,
    /// The rows that share nothing.
    pub kept: Option<PathBuf>,
}

/// The file extensions of stores. A comparison writes no store.
const STORES: [&str; 2] = ["h5", "hdf5"];

impl AgainstArgs {
    /// Returns whether `--against` was given.
    pub(super) fn is_asked(&self) -> bool {
        !self.against.is_empty()
    }

    /// Returns the plan of the comparison.
    pub(super) fn plan(&self, inputs: &[PathBuf], options: ReadOptions, is_listed: bool) -> AgainstPlan {
        AgainstPlan {
            inputs: inputs.to_vec(),
            others: self.against.clone(),
            options,
            bound_angstrom: self.within,
            isotopes: self.isotopes,
            is_listed,
            shared_by: self.shared_by.clone(),
            keeps_rows: self.drop_shared.is_some(),
        }
    }
}

/// Compares the corpora, writes the list and the rows, and shows the report.
pub(super) fn run(
    plan: &AgainstPlan,
    to: &AgainstFiles,
    files: RunFiles,
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    written(to, files, output, |out| against(plan, job, out))
}

/// Finishes the command with the results of its shards.
pub(super) fn merge(
    plan: &AgainstPlan,
    parts: &MergedFiles,
    (to, files): (&AgainstFiles, RunFiles),
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    match (plan.keeps_rows, &to.kept) {
        (false, Some(_)) => return Err(nothing_kept().into()),
        (true, None) => output.note("note: the shards kept rows; --drop-shared writes them"),
        _ => {}
    }
    written(to, files, output, |out| merge_against(plan, parts, job, out))
}

/// Returns the refusal to write rows that no shard kept.
pub(super) fn nothing_kept() -> Error {
    let problem = "the shards kept no rows";
    Error::input("--drop-shared", problem, "give it to the command of the shards too, with --against")
}

/// Where the list goes.
enum List {
    Nowhere,
    Stdout(StagedOutput),
    File(AtomicFile),
}

impl List {
    fn new(to: Option<&Path>) -> anyhow::Result<Self> {
        Ok(match to {
            None => List::Nowhere,
            Some(path) if is_stdout(path) => List::Stdout(StagedOutput::new()?),
            Some(path) => List::File(AtomicFile::create(path)?),
        })
    }

    fn put(&mut self, lines: &[u8]) -> Result<(), Error> {
        match self {
            List::Nowhere => Ok(()),
            List::Stdout(aside) => aside.put(lines),
            List::File(file) => file.put(lines),
        }
    }
}

/// Writes the list and the rows that were asked for, and shows the report.
fn written(
    to: &AgainstFiles,
    files: RunFiles,
    output: &Output,
    each: impl FnOnce(&mut AgainstOutput<'_, '_>) -> Result<AgainstReport, Error>,
) -> anyhow::Result<()> {
    let (list, kept) = (to.list.as_deref(), to.kept.as_deref());
    output.refuse_stdout(list, "list")?;
    let is_store = |path: &Path| path.extension().is_some_and(|end| STORES.iter().any(|store| end == *store));
    if let Some(path) = list.filter(|path| is_store(path)) {
        let problem = "is named like a store, and with --against -o is the list of pairs, in JSON Lines";
        return Err(Error::input(path.display(), problem, "name it .jsonl, or mine without --against").into());
    }
    if kept.is_some_and(is_stdout) {
        let problem = "stdout takes the report or the list";
        return Err(Error::input("--drop-shared -", problem, "write the rows to a file").into());
    }
    files.writes("-o", not_stdout(list))?.writes("--drop-shared", kept)?.check()?;
    let mut list = List::new(list)?;
    let mut rows = kept.map(PackedFile::create).transpose()?;
    let report = each(&mut AgainstOutput {
        list: &mut |lines| list.put(lines),
        rows: &mut |bytes| rows.as_mut().map_or(Ok(()), |rows| rows.put(bytes)),
    })?;
    let mut files = OutputSet::new();
    if let Some(rows) = rows {
        files.add(rows.finish()?);
    }
    let aside = match list {
        List::Nowhere => None,
        List::Stdout(aside) => Some(aside),
        List::File(file) => {
            files.add(file);
            None
        }
    };
    files.commit()?;
    shown(&report, aside, output)
}

/// Shows the report, or the list if it goes to stdout.
fn shown(report: &AgainstReport, list: Option<StagedOutput>, output: &Output) -> anyhow::Result<()> {
    if output.json {
        return output.document(report);
    }
    skipped::tell(report.skipped, &report.skipped_records, output);
    skipped::tell(report.other.skipped, &report.other.skipped_records, output);
    skipped::tell_file_order(report.in_file_order, &report.in_file_order_records, output);
    skipped::tell_left_out(report.left_out, output);
    match list {
        Some(list) => list.show(output),
        None => output.text(&against_table(report, output.terminal())),
    }
}
