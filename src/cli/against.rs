//! `drift mine --against`: which molecules and geometries of one corpus stand in another.

use std::path::{Path, PathBuf};

use super::output::{Aside, Output};
use super::skipped;
use super::values::{is_stdout, not_stdout};
use crate::report::against_view::against_table;
use drift_core::error::Error;
use drift_core::io::{AtomicFile, Outputs};
use drift_core::job::Job;
use drift_data::against::{AgainstPlan, AgainstReport, BOUND_ANGSTROM, PutList, against, merge_against};
use drift_data::corpus::ReadOptions;
use drift_data::shard::files::MergedFiles;

/// The other corpus, and what is the same.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct AgainstArgs {
    /// Instead of statistics, find the molecules and geometries of INPUT that these files and folders also hold, such as a test set.
    /// Spelling of the SMILES, pose, and order of equivalent atoms do not matter; mirror images are counted separately. INPUT is
    /// streamed; OTHER is held in memory (32 bytes a conformer, 12 an atom, about 5 KB a molecule). -o writes the list: a line of
    /// JSON for each pair, and for each other conformer of a shared molecule
    #[arg(long, value_name = "OTHER", num_args = 1.., conflicts_with = "html")]
    pub against: Vec<PathBuf>,
    /// Two conformers are the same geometry up to this RMSD, in Å. The same geometry written twice in different frames differs by less
    /// than 0.00035 with four decimals, 0.0035 with three, and 1.8 bin widths with bins
    #[arg(long, value_name = "ANGSTROM", default_value_t = BOUND_ANGSTROM, requires = "against", allow_hyphen_values = true)]
    pub within: f64,
}

/// What names a store, which a comparison does not write.
const STORES: [&str; 2] = ["h5", "hdf5"];

impl AgainstArgs {
    /// Whether corpora are compared.
    pub(super) fn is_asked(&self) -> bool {
        !self.against.is_empty()
    }

    /// What is compared.
    pub(super) fn plan(&self, inputs: &[PathBuf], options: ReadOptions, is_listed: bool) -> AgainstPlan {
        AgainstPlan {
            inputs: inputs.to_vec(),
            others: self.against.clone(),
            options,
            bound_angstrom: self.within,
            is_listed,
        }
    }
}

/// Compares, lists, shows. `beside` was read too.
pub(super) fn run(
    plan: &AgainstPlan,
    to: Option<&Path>,
    beside: Option<&PathBuf>,
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    let inputs: Vec<PathBuf> = plan.inputs.iter().chain(&plan.others).chain(beside).cloned().collect();
    listed(to, &inputs, output, |put| against(plan, job, put))
}

/// Does the rest of the command once all its shards are there.
pub(super) fn merge(
    plan: &AgainstPlan,
    parts: &MergedFiles,
    to: Option<&Path>,
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    listed(to, &[], output, |put| merge_against(plan, parts, job, put))
}

/// Writes the list, if there is to be one, and shows the report.
fn listed(
    to: Option<&Path>,
    inputs: &[PathBuf],
    output: &Output,
    each: impl FnOnce(&mut PutList<'_>) -> Result<AgainstReport, Error>,
) -> anyhow::Result<()> {
    let to_stdout = to.is_some_and(is_stdout);
    if output.json && to_stdout {
        let problem = "--json already writes to stdout";
        return Err(Error::input("-o -", problem, "write the list to a file").into());
    }
    let is_store = |path: &Path| path.extension().is_some_and(|end| STORES.iter().any(|store| end == *store));
    if let Some(path) = to.filter(|path| is_store(path)) {
        let problem = "is named like a store, and with --against -o is the list of pairs, in JSON Lines";
        return Err(Error::input(path.display(), problem, "name it .jsonl, or mine without --against").into());
    }
    let target = not_stdout(to);
    Outputs::new().file("-o", target)?.apart_from(inputs)?;
    let report = match target {
        Some(path) => {
            let mut file = AtomicFile::create(path)?;
            let report = each(&mut |lines| file.put(lines))?;
            file.commit()?;
            report
        }
        None if to_stdout => {
            let mut aside = Aside::new()?;
            let report = each(&mut |lines| aside.put(lines))?;
            aside.show(output)?;
            report
        }
        None => each(&mut |_| Ok(()))?,
    };
    if output.json {
        return output.document(&report);
    }
    skipped::tell(report.skipped, &report.skipped_records, output);
    skipped::tell(report.other.skipped, &report.other.skipped_records, output);
    skipped::tell_file_order(report.in_file_order, &report.in_file_order_records, output);
    if to_stdout {
        return Ok(());
    }
    output.text(&against_table(&report, output.terminal()))
}
