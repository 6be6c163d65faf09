//! `drift audit`: counts junk, lost digits and valid molecules in generated texts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::energy::{EnergyArgs, energy_lines};
use super::ensembles::EnsembleArgs;
use super::help::{JUDGING, NUMBERS, OUTPUT};
use super::invocation::Invocation;
use super::molecule_lines::LinesFormat;
use super::output::Output;
use super::shards::{ShardArgs, ShardOf};
use super::skeletons::{AuditBySkeleton, SkeletonArgs};
use super::skipped;
use super::values::{
    DIALECTS_OR_AUTO, DialectOrAuto, EncodingArgs, RowArgs, choice, files_alone, found, is_stdout,
    not_stdout, one_of, threshold, thresholds,
};
use crate::report::audit_page::audit_page;
use crate::report::audit_view::{
    audit_coverage_table, audit_table, chemistry_rows, drift_table, ensemble_tables, examples_table,
    geometry_table, their_table,
};
use crate::report::chemistry_view::{chemistry_table, flatness_table};
use crate::report::covmat_view::covmat_summary;
use crate::report::energy_view::energy_table;
use crate::report::format::wrapped;
use crate::report::pairs_view::{audit_comparison_table, rows_table};
use drift_core::checkpoint::RequiredFiles;
use drift_core::chem::{AtomLimit, Isotopes, MAX_HEAVY_ATOMS};
use drift_core::io::OutputSet;
use drift_core::run_files::RunFiles;
use drift_core::{Error, Job, Tokenizer};
use drift_data::audit::ensemble::MoleculeMeasures;
use drift_data::audit::{
    AuditPlan, AuditReport, AuditRequest, AuditResult, MatrixFormat, MissingPolicy, RowField, VerdictLine,
    audit_shard, audit_texts, merge_audited,
};
use drift_data::shard::Manifest;
use drift_data::shard::files::MergedFiles;

/// Examples at the end of the help.
pub(super) const EXAMPLES: [&str; 4] = [
    "drift audit texts.jsonl",
    "drift audit plain.jsonl grammar.jsonl --against-row plain",
    "drift audit texts.jsonl --references conformers.sdf --against-row none -o record.json",
    "drift audit smoke_report.json --tokenizer path/to/model --verdicts verdicts.jsonl",
];

/// The options that texts of a skeleton have too.
const BESIDE_SKELETON: [&str; 10] =
    ["", "skeleton", "prompts", "row-field", "against-row", "verdicts", "output", "json", "quiet", "threads"];

/// The headings of options that only this verb has.
const ROWS: &str = "Rows";
const REFERENCES: &str = "References";
const DRIFT: &str = "Drift";

/// The command line of `drift audit`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files of generated texts, recognised by content: JSON Lines, CSV, TSV, plain text, 3DMolGen's reports and pickles; also compressed
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The row with which all others are compared, text by text: a logit processor, a model or a file
    #[arg(long, value_name = "ROW", allow_hyphen_values = true, help_heading = ROWS)]
    against_row: Option<String>,
    /// The field of records that names their logit processor, or `file`
    #[arg(long, value_name = "FIELD", default_value = "lp", help_heading = ROWS)]
    row_field: String,
    #[command(flatten, next_help_heading = ROWS)]
    rows: RowArgs,
    /// Reference conformers to compare geometry with: files, or a built-in corpus, small or drug-like
    #[arg(long, value_name = "CORPUS", num_args = 1.., help_heading = REFERENCES)]
    references: Vec<PathBuf>,
    /// Thresholds of coverage in Å [default: 0.75]
    #[arg(long, visible_alias = "thresholds", value_name = "ANGSTROM", value_parser = threshold, value_delimiter = ',', requires = "references", help_heading = REFERENCES)]
    threshold: Vec<f64>,
    /// Molecules without usable texts in coverage
    #[arg(long, value_parser = one_of(&MissingPolicy::ALL, MissingPolicy::name), value_name = "zero|leave-out", hide_possible_values = true, default_value = "zero", requires = "references", help_heading = REFERENCES)]
    missing: MissingPolicy,
    /// The rules that a text must pass to be compared with references
    #[arg(long, value_enum, value_name = "drift|3dmolgen", hide_possible_values = true, default_value = "drift", requires = "references", help_heading = REFERENCES)]
    passing: PassingArg,
    /// Group texts by the `geom_smiles` of their records
    #[arg(long, requires = "references", help_heading = REFERENCES)]
    pool: bool,
    #[command(flatten, next_help_heading = JUDGING)]
    ensembles: EnsembleArgs,
    /// The conformers to judge in a text that has several
    #[arg(long, value_enum, value_name = "first|all", hide_possible_values = true, default_value = "first", help_heading = JUDGING)]
    conformers: ConformersArg,
    /// The most heavy atoms of compared molecules
    #[arg(long, value_name = "N", default_value_t = MAX_HEAVY_ATOMS, help_heading = JUDGING)]
    max_atoms: usize,
    /// Whether isotope labels tell molecules and atoms apart
    #[arg(long, value_parser = one_of(&Isotopes::ALL, Isotopes::name), value_name = "ignore|respect", hide_possible_values = true, default_value = "ignore", help_heading = JUDGING)]
    isotopes: Isotopes,
    /// How the texts should write decimals: fixed, stripped, or auto
    #[arg(long, conflicts_with = "encoding", value_parser = choice(&DIALECTS_OR_AUTO), hide_possible_values = true, default_value = "auto", help_heading = NUMBERS)]
    dialect: DialectOrAuto,
    #[command(flatten, next_help_heading = NUMBERS)]
    blocks: EncodingArgs,
    /// The folder of the model that wrote the texts, whose recipe names the dialect
    #[arg(long, value_name = "DIR", help_heading = NUMBERS)]
    model: Option<PathBuf>,
    /// The tokenizer to count drift with: a file, a model folder, org/name, or a built-in one
    #[arg(long, value_name = "TOKENIZER", help_heading = DRIFT)]
    tokenizer: Option<PathBuf>,
    /// The placeholder that blocks are compared with [default: zeros]
    #[arg(long, value_name = "P", allow_hyphen_values = true, requires = "tokenizer", help_heading = DRIFT)]
    placeholder: Option<String>,
    #[command(flatten)]
    energy: EnergyArgs,
    #[command(flatten)]
    skeleton: SkeletonArgs,
    #[command(flatten, next_help_heading = OUTPUT)]
    beside: TextFiles,
    /// Write the record as JSON; `-` prints it. With --shard, a folder
    #[arg(short, long, value_name = "FILE.json", help_heading = OUTPUT)]
    output: Option<PathBuf>,
    #[command(flatten)]
    shard: ShardArgs,
}

/// The rules that a text must pass to be compared with references.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum PassingArg {
    Drift,
    #[value(name = "3dmolgen")]
    ThreeDMolGen,
}

/// The conformers of a text that are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ConformersArg {
    First,
    All,
}

/// The files that are written besides the record.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct TextFiles {
    /// Write the verdicts on each text as JSON Lines
    #[arg(long, value_name = "FILE.jsonl")]
    pub verdicts: Option<PathBuf>,
    /// Write the RMSD of every text to every reference, .npz or .pickle
    #[arg(long, value_name = "FILE", requires = "references")]
    pub matrix: Option<PathBuf>,
    /// Write one line for each molecule of each row, .csv or .jsonl
    #[arg(long, value_name = "FILE")]
    pub molecules: Option<PathBuf>,
    /// Write a page with tables, plots and pictures of the worst texts
    #[arg(long, value_name = "FILE.html")]
    pub html: Option<PathBuf>,
    /// Write coverage and matching as 3DMolGen's covmat_results.txt
    #[arg(long, value_name = "FILE.txt", requires = "references")]
    pub summary: Option<PathBuf>,
}

impl TextFiles {
    /// Returns the files of `self`; for each file that `self` does not name, the one of `other`.
    fn or(self, other: TextFiles) -> Self {
        TextFiles {
            verdicts: self.verdicts.or(other.verdicts),
            matrix: self.matrix.or(other.matrix),
            molecules: self.molecules.or(other.molecules),
            html: self.html.or(other.html),
            summary: self.summary.or(other.summary),
        }
    }

    /// Refuses files that cannot be written, or that are inputs. `taken` says whether the report goes to stdout.
    fn check(&self, files: RunFiles, taken: bool) -> Result<(), Error> {
        if taken && self.verdicts.as_deref().is_some_and(is_stdout) {
            let problem = "the record already goes to stdout";
            return Err(Error::input("--verdicts -", problem, "write one of them to a file"));
        }
        let others = [("--html", &self.html), ("--summary", &self.summary), ("--matrix", &self.matrix)];
        files_alone(&others, "stdout takes the tables or the record")?;
        files
            .writes("--verdicts", not_stdout(self.verdicts.as_deref()))?
            .writes("--matrix", self.matrix.as_deref())?
            .writes("--molecules", self.molecules.as_deref())?
            .writes("--html", self.html.as_deref())?
            .writes("--summary", self.summary.as_deref())?
            .check()?;
        self.molecules.as_deref().map(LinesFormat::from_path).transpose()?;
        self.matrix.as_deref().map(MatrixFormat::from_path).transpose()?;
        Ok(())
    }

    /// Writes the files with the record and the energies of texts. If one of them cannot be written, none is. Returns whether the
    /// record is shown.
    fn write(
        &self,
        audited: &AuditResult,
        measures: MoleculeMeasures<'_>,
        beside: RecordFiles<'_>,
        output: &Output,
    ) -> anyhow::Result<bool> {
        let mut files = OutputSet::new();
        if let (Some(path), Some(energy)) = (beside.energies, &audited.report.energy) {
            files.put(path, energy_lines(energy)?.as_bytes())?;
        }
        if let Some(path) = &self.verdicts {
            let lines = audited.texts.lines();
            match not_stdout(Some(path)) {
                Some(path) => files.add(VerdictLine::file(path, &lines)?),
                None => {
                    let printed = lines.iter().map(VerdictLine::json).collect::<Result<String, Error>>()?;
                    output.text(printed.trim_end())?;
                }
            }
        }
        if let Some(path) = &self.matrix {
            files.add(audited.texts.matrix().file(path)?);
        }
        if let Some(path) = &self.molecules {
            let records = audited.texts.molecules(measures, &BTreeMap::new());
            files.put(path, LinesFormat::from_path(path)?.render(&records, measures)?.as_bytes())?;
        }
        if let Some(path) = &self.html {
            files.put(path, audit_page(&audited.report).render().as_bytes())?;
        }
        if let Some(path) = &self.summary {
            files.put(path, covmat_summary(audited).as_bytes())?;
        }
        let is_shown = output.record_beside(&mut files, beside.record, &audited.report)?;
        files.commit()?;
        Ok(is_shown)
    }
}

/// Where the record and the energies of texts go.
#[derive(Clone, Copy)]
struct RecordFiles<'f> {
    record: Option<&'f Path>,
    energies: Option<&'f Path>,
}

/// Reads and judges the texts, or one shard of them.
pub(super) fn run(args: Args, invocation: &Invocation, job: &Job, output: &Output) -> anyhow::Result<()> {
    if let Some(files) = args.skeleton.files() {
        invocation.refuse_beside("--skeleton", &BESIDE_SKELETON)?;
        let Args { row_field, against_row, output: to, beside, .. } = args;
        let written = invocation.files().writes("-o", not_stdout(to.as_deref()))?;
        beside.check(written, output.json || to.as_deref().is_some_and(is_stdout))?;
        let audit =
            AuditBySkeleton { texts: args.files, row_field, against_row, verdicts: beside.verdicts, to };
        return audit.run(files, job, output);
    }
    let (to, shard) = (args.output.clone(), args.shard.shard);
    if let Some(shard) = shard {
        let plan = plan(args, true, job)?;
        let shard = ShardOf { shard, invocation, folder: to.as_deref(), inputs: &plan.request.files };
        return shard.run(job, output, |files, job| audit_shard(&plan, files, job));
    }
    let target = not_stdout(to.as_deref());
    let files = args.beside.clone();
    let listed = args.energy.list()?;
    let taken = output.json || to.as_deref().is_some_and(is_stdout);
    let all = invocation.files().writes("-o", target)?.writes("--energy-list", listed.as_deref())?;
    files.check(all.writes("--energy-cache", args.energy.cache())?, taken)?;
    let by_text = files.verdicts.is_some() || files.matrix.is_some() || files.molecules.is_some();
    let plan = plan(args, by_text, job)?;
    let mut audited = audit_texts(&plan, job)?;
    audited.report.command = invocation.command();
    let beside = RecordFiles { record: to.as_deref(), energies: listed.as_deref() };
    let is_shown = files.write(&audited, plan.request.molecule_measures(), beside, output)?;
    show(&audited, is_shown, &files, output)
}

/// Finishes the command with the results of its shards.
pub(super) fn merge(
    manifest: &Manifest,
    parts: &MergedFiles,
    (to, files): (Option<&Path>, TextFiles),
    all: RunFiles,
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    let args: Args = Invocation::parsed(manifest)?;
    let files = files.or(args.beside.clone());
    if args.references.is_empty() && (files.matrix.is_some() || files.summary.is_some()) {
        let remedy = "give --references to the command of the shards";
        return Err(Error::input("--summary, --matrix", "the shards have no references", remedy).into());
    }
    let taken = output.json || to.is_some_and(is_stdout);
    let all = all.writes("-o", not_stdout(to))?.writes("--energy-cache", args.energy.cache())?;
    files.check(all, taken)?;
    let plan = plan(args, true, job)?;
    let mut audited = merge_audited(&plan, parts, job)?;
    audited.report.command = Some(Invocation::command_of(manifest));
    let beside = RecordFiles { record: to, energies: None };
    let is_shown = files.write(&audited, plan.request.molecule_measures(), beside, output)?;
    show(&audited, is_shown, &files, output)
}

/// Returns the plan of the command line.
fn plan(mut args: Args, by_text: bool, job: &Job) -> Result<AuditPlan, Error> {
    found(&mut args.model, RequiredFiles::Folder)?;
    found(&mut args.tokenizer, RequiredFiles::Tokenizer)?;
    let energy = args.energy.energies()?;
    let load = |path: &PathBuf| -> Result<Tokenizer, Error> { Ok(Tokenizer::load_for(path, job)?.0) };
    let plan = AuditRequest {
        rows: args.rows.filter()?,
        files: args.files,
        zeros: args.dialect,
        blocks: args.blocks.asked(None),
        model: args.model,
        tokenizer: args.tokenizer.as_ref().map(load).transpose()?,
        tokenizer_path: args.tokenizer,
        placeholder: args.placeholder,
        references: args.references,
        thresholds: thresholds(&args.threshold),
        ensembles: args.ensembles.measures()?,
        as_3dmolgen: args.passing == PassingArg::ThreeDMolGen,
        missing: args.missing,
        pool: args.pool,
        all_conformers: args.conformers == ConformersArg::All,
        by_text,
        max_atoms: AtomLimit(args.max_atoms),
        isotopes: args.isotopes,
        row_field: RowField::named(args.row_field),
        against_row: args.against_row,
    }
    .plan()?;
    Ok(AuditPlan { energy: energy.map(Into::into), ..plan })
}

/// Shows the report, or the record if `is_shown`.
fn show(audited: &AuditResult, is_shown: bool, files: &TextFiles, output: &Output) -> anyhow::Result<()> {
    let report = &audited.report;
    if files.verdicts.as_deref().is_some_and(is_stdout) {
        return Ok(());
    }
    if is_shown {
        return output.document(report);
    }
    skipped::tell(report.skipped, &report.skipped_records, output);
    skipped::tell_left_out(report.left_out, output);
    report.warnings.iter().for_each(|warning| output.note(&format!("warning: {warning}")));
    output.text(&render(report, output))
}

fn render(report: &AuditReport, output: &Output) -> String {
    let chemistry = chemistry_rows(report);
    let [hits, clusters] = ensemble_tables(report);
    let tables = [
        rows_table(report),
        audit_comparison_table(report),
        Some(audit_table(report)),
        Some(their_table(report)),
        geometry_table(report),
        audit_coverage_table(report),
        hits,
        clusters,
        chemistry_table(&chemistry),
        flatness_table(&chemistry),
        report.energy.as_ref().map(energy_table),
        drift_table(report),
        examples_table(report),
    ];
    let mut shown: Vec<String> =
        tables.into_iter().flatten().map(|table| table.render(output.terminal())).collect();
    // Advice follows the tables that it rests on.
    let width = output.terminal().width.map_or(usize::MAX, usize::from);
    let sentences = report.advice.iter().map(|sentence| wrapped(&format!("- {sentence}\n"), width, 2));
    let advice: String = sentences.collect();
    if !advice.is_empty() {
        shown.insert(2, advice);
    }
    shown.join("\n")
}
