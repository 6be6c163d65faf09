//! `drift mine --against`: finds the molecules and geometries of one corpus that are also in another.

use std::path::{Path, PathBuf};

use super::output::Output;
use super::skipped;
use super::values::{is_stdout, not_stdout, one_of};
use crate::report::against_view::against_table;
use drift_core::chem::Isotopes;
use drift_core::error::Error;
use drift_core::job::Job;
use drift_core::run_files::RunFiles;
use drift_data::against::{AgainstPlan, AgainstReport, BOUND_ANGSTROM, PutList, against, merge_against};
use drift_data::corpus::ReadOptions;
use drift_data::shard::files::MergedFiles;

/// The options of the comparison: the other corpus, and the largest RMSD of equal geometries.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Comparison")]
pub(super) struct AgainstArgs {
    /// Find the molecules and geometries of INPUT that are also in these files
    #[arg(long, value_name = "OTHER", num_args = 1.., conflicts_with = "html")]
    pub against: Vec<PathBuf>,
    /// The largest RMSD of two conformers of one geometry
    #[arg(long, value_name = "ANGSTROM", default_value_t = BOUND_ANGSTROM, requires = "against", allow_hyphen_values = true)]
    pub within: f64,
    /// Whether isotope labels tell molecules and atoms apart
    #[arg(long, value_name = "ignore|respect", hide_possible_values = true, value_parser = one_of(&Isotopes::ALL, Isotopes::name), default_value = "ignore", requires = "against")]
    isotopes: Isotopes,
}

/// The file extensions of stores. A comparison writes no store.
const STORES: [&str; 2] = ["h5", "hdf5"];

impl AgainstArgs {
    /// Whether `--against` was given.
    pub(super) fn is_asked(&self) -> bool {
        !self.against.is_empty()
    }

    /// The plan of the comparison.
    pub(super) fn plan(&self, inputs: &[PathBuf], options: ReadOptions, is_listed: bool) -> AgainstPlan {
        AgainstPlan {
            inputs: inputs.to_vec(),
            others: self.against.clone(),
            options,
            bound_angstrom: self.within,
            isotopes: self.isotopes,
            is_listed,
        }
    }
}

/// Compares the corpora, writes the list and shows the report.
pub(super) fn run(
    plan: &AgainstPlan,
    to: Option<&Path>,
    files: RunFiles,
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    listed(to, files, output, |put| against(plan, job, put))
}

/// Finishes the command with the results of its shards.
pub(super) fn merge(
    plan: &AgainstPlan,
    parts: &MergedFiles,
    (to, files): (Option<&Path>, RunFiles),
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    listed(to, files, output, |put| merge_against(plan, parts, job, put))
}

/// Writes the list if one was asked for, and shows the report.
fn listed(
    to: Option<&Path>,
    files: RunFiles,
    output: &Output,
    each: impl FnOnce(&mut PutList<'_>) -> Result<AgainstReport, Error>,
) -> anyhow::Result<()> {
    output.refuse_stdout(to, "list")?;
    let is_store = |path: &Path| path.extension().is_some_and(|end| STORES.iter().any(|store| end == *store));
    if let Some(path) = to.filter(|path| is_store(path)) {
        let problem = "is named like a store, and with --against -o is the list of pairs, in JSON Lines";
        return Err(Error::input(path.display(), problem, "name it .jsonl, or mine without --against").into());
    }
    files.writes("-o", not_stdout(to))?.check()?;
    let report = match to {
        Some(path) => output.pieces(path, each)?,
        None => each(&mut |_| Ok(()))?,
    };
    if output.json {
        return output.document(&report);
    }
    skipped::tell(report.skipped, &report.skipped_records, output);
    skipped::tell(report.other.skipped, &report.other.skipped_records, output);
    skipped::tell_file_order(report.in_file_order, &report.in_file_order_records, output);
    if to.is_some_and(is_stdout) {
        return Ok(());
    }
    output.text(&against_table(&report, output.terminal()))
}
