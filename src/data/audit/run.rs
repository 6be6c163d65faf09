//! Runs an audit: reads files, returns a report.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;

use super::block_faults::{EXAMPLES, FaultyBlock, keep};
use super::by_text::{AuditResult, AuditedTexts, TextsOfFile};
use super::compared_rows::compare;
use super::energies::{EnergyReport, energy_report};
use super::group::{FileReport, Group, InOrder};
use super::judged::{JudgedFile, judge_files};
use super::read::{self, FileRecords, TextReading};
use super::references::{DeviationsBySkeleton, References, join};
use super::report::{AuditReport, SCHEMA};
use super::request::{AuditPlan, AuditRequest};
use super::row_label::RowLabel;
use super::runs::{RowReferences, rows_of_files, worst_by_row};
use super::smoke::{TheirReport, foreign_prompts, their_report};
use super::text_encoding::{Evidence, TextEncoding};
use crate::corpus::{ReadSummary, SKIPPED_LISTED, SkippedRecord};
use drift_core::io::FileNames;
use drift_core::job::{InputHash, Provenance, Unit};
use drift_core::{Job, Result};

/// Reads and judges the texts of a plan.
///
/// # Errors
/// If a file cannot be read or contains no text, the encoding cannot be determined, the tokenizer cannot encode a text, the
/// references contain none of the molecules, or the job was cancelled.
pub fn audit(plan: &AuditPlan, job: &Job) -> Result<AuditReport> {
    Ok(audit_texts(plan, job)?.report)
}

/// Reads and judges the texts of a plan. Also returns the results for each text, if the plan keeps them.
///
/// # Errors
/// As [`audit`].
pub fn audit_texts(plan: &AuditPlan, job: &Job) -> Result<AuditResult> {
    let files = read_files(&plan.request.files, plan, job)?;
    let found = Evidence::of_files(plan, &files)?;
    let texts = TextEncoding::decide(plan, &found, job)?;
    let judged = judge_files(plan, texts.encoding, files, job)?;
    report(plan, JudgedFiles { files: judged, texts, is_partial: false }, job)
}

/// The warning of a merge of shards that are not complete.
const MISSING_PARTS: &str = "some of the work of the shards is missing: figures are for the rest, and only molecules with a text count in COV";

/// The results over all files.
struct AllFiles {
    total: Group,
    examples: Vec<FaultyBlock>,
    theirs: Vec<TheirReport>,
    warnings: Vec<String>,
    skipped: u64,
    skipped_records: Vec<SkippedRecord>,
}

impl AllFiles {
    fn new(plan: &AuditPlan, judged: &JudgedFiles) -> Self {
        let mut all = AllFiles {
            total: Group::new(RowLabel::default(), plan, judged.texts.encoding),
            examples: Vec::new(),
            theirs: Vec::new(),
            warnings: judged.is_partial.then(|| MISSING_PARTS.to_owned()).into_iter().collect(),
            skipped: 0,
            skipped_records: Vec::new(),
        };
        for file in &judged.files {
            file.groups.iter().for_each(|group| all.total.merge(group));
            file.examples.iter().for_each(|example| keep(&mut all.examples, example.clone()));
            all.theirs
                .extend(file.head.as_ref().map(|head| their_report(&file.input.name, head, &file.listed)));
            all.warnings.extend(file.bias.clone());
            all.skipped += file.skipped;
            all.skipped_records.extend(file.skipped_records.iter().take(SKIPPED_LISTED).cloned());
        }
        all.warnings.extend(all.theirs.iter().filter_map(TheirReport::disagreement));
        all
    }
}

/// Files that were judged in one encoding.
pub(super) struct JudgedFiles {
    /// The files, in order.
    pub files: Vec<JudgedFile>,
    /// The encoding.
    pub texts: TextEncoding,
    /// Whether others are missing.
    pub is_partial: bool,
}

/// Returns the report on files.
pub(super) fn report(plan: &AuditPlan, judged: JudgedFiles, job: &Job) -> Result<AuditResult> {
    let TextEncoding { encoding, from: encoding_from } = judged.texts;
    let placeholder = plan.request.tokenizer.as_ref().map(|_| plan.placeholder(encoding)).transpose()?;
    let AllFiles { total, examples, theirs, mut warnings, mut skipped, mut skipped_records } =
        AllFiles::new(plan, &judged);
    let files = &judged.files;
    let (prompts, foreign_prompts) = foreign_prompts(files.iter().flat_map(|file| &file.prompts));
    let mut inputs: Vec<InputHash> = files.iter().map(|file| file.input.clone()).collect();
    let (references, summary) = read_references(plan, &total, job)?;
    warnings.extend(without_effect(plan, &total, &summary));
    inputs.extend(summary.inputs);
    skipped += summary.skipped;
    skipped_records.extend(summary.skipped_records);
    // Isomers are not pooled here: strain is the energy relative to conformers of the same molecule.
    let energy = energy(plan, files, references.as_ref(), job)?;
    let worst = worst_by_row(files, references.as_ref());
    let references = references.map(|read| compared_under_pools(plan, read, &total, &judged));
    let measured = measure(references.as_ref(), files);
    let all = measured.as_deref().map(together);
    let whole = total.report("total", all.as_deref().map(InOrder::by_skeleton), plan);
    warnings.extend(whole.warnings(plan.request.missing));
    let rows = RowReferences {
        measured: measured.as_deref(),
        worst: &worst,
        of: &|it| references.as_ref()?.get(it),
    };
    let (runs, rows) = rows_of_files(plan, judged.texts, files, rows);
    let report = AuditReport {
        schema: SCHEMA,
        provenance: Provenance::from_inputs(inputs),
        command: None,
        encoding,
        encoding_from,
        tokenizer: plan.request.tokenizer.as_ref().map(|tokenizer| tokenizer.name.clone()),
        placeholder,
        files: reports(plan, files, measured.as_deref()),
        runs,
        against_row: None,
        comparisons: Vec::new(),
        advice: Vec::new(),
        missing: plan.request.missing,
        isotopes: plan.request.isotopes,
        total: whole,
        reference_chemistry: references.as_ref().map(References::chemistry),
        energy,
        examples,
        reports_by_3dmolgen: theirs,
        prompts,
        prompts_not_in_their_spelling: foreign_prompts.len() as u64,
        foreign_prompts: foreign_prompts.into_iter().take(EXAMPLES).collect(),
        warnings,
        interrupted: judged.is_partial,
        skipped,
        skipped_records: skipped_records.into_iter().take(SKIPPED_LISTED).collect(),
        left_out: files.iter().map(|file| file.left_out).sum(),
    };
    let seed = files.iter().find_map(|file| file.generation.as_ref()).map_or(0, |stated| stated.seed);
    let files = judged.files.into_iter().map(|file| TextsOfFile::new(file, plan.request.isotopes)).collect();
    let texts = AuditedTexts { files, measured: measured.unwrap_or_default() };
    let mut audited = AuditResult { report, texts };
    compare(plan, &mut audited, &rows, seed)?;
    Ok(audited)
}

/// Returns the reports of the groups of each file. `measured` has the comparisons of each group with the references.
fn reports(
    plan: &AuditPlan,
    files: &[JudgedFile],
    measured: Option<&[DeviationsBySkeleton]>,
) -> Vec<FileReport> {
    let groups = files.iter().flat_map(|file| file.groups.iter().map(|group| (&*file.input.name, group)));
    let measured = |at: usize| measured.map(|measured| InOrder::by_skeleton(&measured[at]));
    groups.enumerate().map(|(at, (file, group))| group.report(file, measured(at), plan)).collect()
}

/// Says which references were of no use, because their atoms are in the order of the file, and whether nothing was pooled.
fn without_effect(plan: &AuditPlan, total: &Group, summary: &ReadSummary) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(SkippedRecord { file, record, reason }) = summary.in_file_order_records.first() {
        said.push(format!(
            "conformers of the references that are left out, because their atoms are not in the order of a SMILES: {} (such as {file}: {record}: {reason})",
            summary.in_file_order
        ));
    }
    if plan.request.pool && total.pools.is_empty() {
        said.push("no record has a `geom_smiles`, so no isomers are pooled".to_owned());
    }
    said
}

/// Returns the references as texts are compared with them: those of isomers under the SMILES that pools them.
fn compared_under_pools(
    plan: &AuditPlan,
    read: References,
    total: &Group,
    judged: &JudgedFiles,
) -> References {
    let is_compared = |skeleton: &str| total.generated.contains_key(skeleton);
    let asked_for_all = judged.files.iter().all(|file| file.generation.is_some());
    // In files that are missing, other molecules may have texts.
    let read = if asked_for_all || judged.is_partial { read.of_texts() } else { read };
    read.pooled(&total.pools, is_compared, plan.request.max_atoms, plan.request.isotopes)
}

/// Returns the energies of all texts, if there is an energy program.
fn energy(
    plan: &AuditPlan,
    files: &[JudgedFile],
    references: Option<&References>,
    job: &Job,
) -> Result<Option<EnergyReport>> {
    let Some(program) = &plan.energy else { return Ok(None) };
    let answered: Vec<_> = files.iter().map(|file| (&*file.input.name, &*file.energies)).collect();
    let conformers = |skeleton: &str| Some(&*references?.get(skeleton)?.conformers);
    energy_report(program, &answered, conformers, job).map(Some)
}

/// Returns the references of all texts, each under its own SMILES; `None` if none are given. They are read after all texts were judged,
/// because only then the needed molecules are known.
fn read_references(plan: &AuditPlan, total: &Group, job: &Job) -> Result<(Option<References>, ReadSummary)> {
    if plan.request.references.is_empty() {
        return Ok((None, ReadSummary::default()));
    }
    let wanted: BTreeSet<&str> = total.generated.keys().chain(total.pools.keys()).map(|key| &**key).collect();
    References::read(&*plan.references(), &wanted, &total.pools, plan.request.isotopes, job)
        .map(|(references, summary)| (Some(references), summary))
}

/// Compares the conformers of each group of each file with the references; `None` without references.
fn measure(references: Option<&References>, files: &[JudgedFile]) -> Option<Vec<DeviationsBySkeleton>> {
    let references = references?;
    Some(
        files
            .iter()
            .flat_map(|file| &file.groups)
            .map(|group| references.measure(&group.generated))
            .collect(),
    )
}

/// Returns the comparisons of all groups, merged.
fn together(groups: &[DeviationsBySkeleton]) -> Cow<'_, DeviationsBySkeleton> {
    // The RMSDs of all pairs are large, so a single group is not copied.
    if let [only] = groups {
        return Cow::Borrowed(only);
    }
    let mut all = DeviationsBySkeleton::new();
    groups.iter().for_each(|group| join(&mut all, group));
    Cow::Owned(all)
}

/// Reads the records of files, whose texts should be in the encoding that the plan asks for.
pub(super) fn read_files(paths: &[PathBuf], plan: &AuditPlan, job: &Job) -> Result<Vec<FileRecords>> {
    job.observer().begin("reading", Some(paths.len() as u64), Unit::Items);
    let AuditRequest { rows, row_field, .. } = &plan.request;
    let reading = TextReading { rows: rows.clone(), row_field: row_field.clone(), asked: plan.asked() };
    // Of all files, so that shards name their files alike.
    let names = FileNames::new(&plan.request.files);
    let mut files = Vec::new();
    for path in paths {
        job.check()?;
        let mut file = read::read(path, &reading, job)?;
        file.input.name = names.of(path);
        files.push(file);
        job.observer().advance(1);
    }
    job.observer().end();
    Ok(files)
}
