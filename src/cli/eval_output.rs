//! The files and tables of `drift eval` and `drift merge`.

use std::path::{Path, PathBuf};

use super::energy::energy_lines;
use super::molecule_lines::LinesFormat;
use super::output::Output;
use super::values::{files_alone, not_stdout};
use crate::report::chemistry_view::{chemistry_table, flatness_table};
use crate::report::energy_view::energy_table;
use crate::report::eval_page::eval_page;
use crate::report::eval_view::{
    comparison_table, cost_table, coverage_table, ensemble_tables, likelihood_table, outcome_table,
    placeholder_table, probability_table, setting,
};
use crate::report::floor_view::floor_table;
use crate::report::format::wrapped;
use crate::report::mask_view::{mask_table, resampling_table};
use crate::report::same_view::same_table;
use crate::report::summary_view::summary_tables;
use crate::report::table::{Table, narrow};
use crate::report::trace::chrome_trace;
use crate::report::worst_view::chemistry_rows;
use drift_core::Error;
use drift_core::io::OutputSet;
use drift_core::run_files::RunFiles;
use drift_data::audit::{MatrixFormat, VerdictLine};
use drift_data::shard::FILE;
use drift_engine::eval::Evaluation;
use drift_engine::eval::plan::EvalPlan;
use drift_engine::eval::record::EvalReport;

/// The files in the folder of `-o`.
const RECORD: &str = "record.json";
const PAGE: &str = "eval.html";

/// The files that were asked for. `-` means stdout, and no file is written.
#[derive(Clone)]
pub(super) struct Targets {
    /// The folder of the record and its page.
    pub folder: Option<PathBuf>,
    /// The file of all texts.
    pub texts: Option<PathBuf>,
    /// The file with a line for each molecule of each run.
    pub molecules: Option<PathBuf>,
    /// The trace of the phases.
    pub trace: Option<PathBuf>,
    /// The verdicts on the texts.
    pub verdicts: Option<PathBuf>,
    /// The RMSD of every text to every reference.
    pub matrix: Option<PathBuf>,
    /// The energies of the texts.
    pub energies: Option<PathBuf>,
    /// The answers of the energy program.
    pub cache: Option<PathBuf>,
}

impl Targets {
    /// Refuses files that cannot be written, or that would overwrite an input. `files` has the inputs.
    pub(super) fn check(&self, files: RunFiles) -> Result<(), Error> {
        let others = [("--verdicts", &self.verdicts), ("--matrix", &self.matrix)];
        files_alone(&others, "stdout takes the tables or the record")?;
        let files = files.writes_in("-o", not_stdout(self.folder.as_deref()), &[RECORD, PAGE, FILE])?;
        let files = files
            .writes("--texts", not_stdout(self.texts.as_deref()))?
            .writes("--trace", not_stdout(self.trace.as_deref()))?
            .writes("--verdicts", self.verdicts.as_deref())?
            .writes("--matrix", self.matrix.as_deref())?
            .writes("--energy-list", self.energies.as_deref())?
            .writes("--energy-cache", self.cache.as_deref())?;
        files.writes("--molecules", not_stdout(self.molecules.as_deref()))?.check()?;
        self.molecules.as_deref().map(LinesFormat::from_path).transpose()?;
        self.matrix.as_deref().map(MatrixFormat::from_path).transpose()?;
        Ok(())
    }

    /// Writes all files and removes `stale`, a file that is no longer needed. If one of them cannot be written, nothing changes.
    pub(super) fn write(
        &self,
        plan: &EvalPlan,
        evaluation: &Evaluation,
        stale: Option<&Path>,
    ) -> anyhow::Result<()> {
        let mut files = OutputSet::new();
        if let Some(path) = &self.molecules {
            let lines =
                LinesFormat::from_path(path)?.render(&evaluation.molecules, plan.molecule_measures())?;
            files.put(path, lines.as_bytes())?;
        }
        if let Some(folder) = not_stdout(self.folder.as_deref()) {
            files.folder(folder)?;
            // On one line: the page is for people, and records are kept in repositories.
            let json = serde_json::to_string(&evaluation.report)? + "\n";
            files.put(&folder.join(RECORD), json.as_bytes())?;
            files.put(&folder.join(PAGE), eval_page(&evaluation.report).render().as_bytes())?;
        }
        if let Some(path) = not_stdout(self.texts.as_deref()) {
            files.put(path, (texts(evaluation)? + "\n").as_bytes())?;
        }
        if let Some(path) = not_stdout(self.trace.as_deref()) {
            files.put(path, chrome_trace(&evaluation.spans).to_string().as_bytes())?;
        }
        if let Some(path) = &self.verdicts {
            files.add(VerdictLine::file(path, &evaluation.verdicts())?);
        }
        if let Some(path) = &self.matrix {
            files.add(evaluation.matrix().file(path)?);
        }
        // An interrupted evaluation has no energies.
        if let Some((path, energy)) = self.energies.as_ref().zip(evaluation.report.energy.as_ref()) {
            files.put(path, energy_lines(energy)?.as_bytes())?;
        }
        stale.into_iter().for_each(|path| files.remove(path));
        Ok(files.commit()?)
    }
}

/// Returns every text, as JSON Lines without the last line break.
pub(super) fn texts(evaluation: &Evaluation) -> serde_json::Result<String> {
    let lines = evaluation.texts.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
    Ok(lines.join("\n"))
}

/// Returns the summary in at most 100 columns, with the advice; with `verbose` every table, as wide as the terminal. The record and the
/// page are in `folder`, if they were asked for.
pub(super) fn render(report: &EvalReport, verbose: bool, folder: Option<&Path>, output: &Output) -> String {
    let terminal = if verbose { output.terminal() } else { narrow(output.terminal()) };
    let width = terminal.width.map_or(usize::MAX, usize::from);
    let mut tables = if verbose { all_tables(report) } else { summary_tables(report) };
    tables.extend(asked_tables(report));
    let mut out: Vec<String> = tables.iter().map(|table| table.render(terminal)).collect();
    out.push(wrapped(&setting(report), width, 0) + "\n");
    out.push(report.advice.iter().map(|advice| wrapped(&format!("- {advice}\n"), width, 2)).collect());
    match folder {
        Some(folder) => out.push(format!(
            "The record is {}, the page {}.\n",
            folder.join(RECORD).display(),
            folder.join(PAGE).display()
        )),
        None if !verbose => {
            out.push("--verbose prints every table, -o DIR writes them to a record and a page.\n".to_owned());
        }
        None => {}
    }
    out.join("\n")
}

/// Returns the tables of every record.
fn all_tables(report: &EvalReport) -> Vec<Table> {
    let mut tables = vec![outcome_table(report)];
    tables.extend(coverage_table(report));
    let chemistry = chemistry_rows(report);
    tables.extend(chemistry_table(&chemistry));
    tables.extend(flatness_table(&chemistry));
    tables.extend(placeholder_table(report));
    if !report.comparisons.is_empty() {
        tables.push(comparison_table(report));
    }
    tables.push(cost_table(report));
    tables.extend(floor_table(report));
    tables
}

/// Returns the tables that options ask for.
fn asked_tables(report: &EvalReport) -> Vec<Table> {
    let mut tables: Vec<Table> = ensemble_tables(report).into_iter().flatten().collect();
    if report.runs.iter().any(|run| !run.probabilities.is_empty()) {
        tables.push(probability_table(report));
    }
    tables.extend(mask_table(report));
    tables.extend(resampling_table(report));
    if !report.likelihoods.is_empty() {
        tables.push(likelihood_table(report));
    }
    tables.extend(report.energy.as_ref().map(energy_table));
    tables.extend(same_table(report));
    tables
}
