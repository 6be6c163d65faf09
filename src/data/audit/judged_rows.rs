//! Judges rows of texts in memory, as an audit judges those of files: what an evaluation does with the texts that it generated.

use super::by_text::{AuditedTexts, TextsOfFile};
use super::compared_rows::{compared_rows, comparisons};
use super::energies::EnergyText;
use super::group::Group;
use super::judged::{FileGeneration, JudgedFile, judge_file};
use super::pairs::PairedComparison;
use super::read::{FileRecords, Record};
use super::references::{DeviationsBySkeleton, PromptReferences};
use super::request::AuditPlan;
use super::row_label::{BaseRows, RowLabel};
use super::runs::{AuditRun, RowReferences, rows_of_files, worst_by_row};
use super::text_encoding::{EncodingFrom, TextEncoding};
use crate::generation::GenerationRun;
use drift_core::job::InputHash;
use drift_core::{Encoding, Job, Result};

/// A row: the texts of a model under one logit processor.
#[derive(Debug, Clone)]
pub struct RowTexts {
    /// What is known of their generation.
    pub run: GenerationRun,
    /// The texts, ordered by molecule and generation.
    pub texts: Vec<RowText>,
}

/// A text of a row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RowText {
    /// The SMILES of its prompt.
    pub smiles: String,
    /// The SMILES that pools the prompt with other isomers, if it is pooled.
    pub pool: Option<String>,
    /// The index of the text among those of its molecule.
    pub generation: u64,
    /// The text after the prompt.
    pub text: String,
    /// Whether the text was cut at its largest number of tokens.
    pub is_cut: bool,
    /// The blocks that were closed by force although the model would have continued the number; `None` if that is not known.
    pub truncated: Option<Box<[usize]>>,
}

/// The results for the rows of one model.
#[derive(Debug)]
pub struct JudgedRows {
    /// One entry a row, in order.
    pub runs: Vec<AuditRun>,
    /// Each row compared with the one without a logit processor, pair by pair; empty if there is none.
    pub comparisons: Vec<PairedComparison>,
    /// The results for each text. Each row is a file.
    pub texts: AuditedTexts,
    /// By row, the texts whose energy a program is to be asked for; empty unless the plan has a program.
    pub energy_texts: Vec<Vec<EnergyText>>,
}

/// Judges the rows of one model, whose texts are in one encoding. Only molecules that a row has texts of are compared with
/// references. The energy program is not asked.
///
/// # Errors
/// If a row has two texts of the same prompt and generation.
pub fn judge_rows(
    plan: &AuditPlan,
    encoding: Encoding,
    rows: Vec<RowTexts>,
    references: &PromptReferences,
    seed: u64,
) -> Result<JudgedRows> {
    // A cancelled job still reports what was finished.
    let job = Job::default();
    let files = rows.into_iter().map(|row| judge_row(plan, encoding, row, seed, &job));
    let mut files: Vec<JudgedFile> = files.collect::<Result<_>>()?;
    let energy_texts = files.iter_mut().map(|file| std::mem::take(&mut file.asked)).collect();
    let groups = files.iter().flat_map(|file| &file.groups);
    let measured: Option<Vec<DeviationsBySkeleton>> =
        (!references.is_empty()).then(|| groups.map(|group| references.measure(&group.generated)).collect());
    let worst = worst_by_row(&files, Some(references.own()));
    let texts = TextEncoding { encoding, from: EncodingFrom::Given };
    let of = |skeleton: &str| references.compared(skeleton);
    let row_references = RowReferences { measured: measured.as_deref(), worst: &worst, of: &of };
    let (runs, measures) = rows_of_files(plan, texts, &files, row_references);
    let files = files.into_iter().map(|file| TextsOfFile::new(file, plan.request.isotopes)).collect();
    let texts = AuditedTexts { files, measured: measured.unwrap_or_default() };
    let labels: Vec<&RowLabel> = runs.iter().map(|run| &run.row).collect();
    let base = labels.iter().position(|label| label.is_without_processor());
    let comparisons = match base.map(|base| BaseRows::single(&labels, base)) {
        Some(bases) => {
            comparisons(&bases, &compared_rows(&runs, &measures, &texts, &plan.request.row_field)?, seed)
        }
        None => Vec::new(),
    };
    Ok(JudgedRows { runs, comparisons, texts, energy_texts })
}

/// Judges a row as a file.
fn judge_row(
    plan: &AuditPlan,
    encoding: Encoding,
    RowTexts { run, texts }: RowTexts,
    seed: u64,
    job: &Job,
) -> Result<JudgedFile> {
    let label = RowLabel::of_run(&run);
    let records = texts.into_iter().map(|text| text.record(&label)).collect();
    let file = FileRecords {
        input: InputHash { name: run.model.clone(), bytes: 0, sha256: String::new() },
        records,
        skipped: 0,
        skipped_records: Vec::new(),
        head: None,
        left_out: 0,
        note: None,
        header: None,
    };
    let mut judged = judge_file(plan, encoding, file, job)?;
    if judged.groups.is_empty() {
        // A row without texts is reported too.
        judged.rows.push(label.clone());
        judged.groups.push(Group::new(label, plan, encoding));
    }
    judged.generation = Some(FileGeneration { seed, runs: vec![run] });
    Ok(judged)
}

impl RowText {
    fn record(self, row: &RowLabel) -> Record {
        Record {
            place: format!("text {}", self.generation),
            prompt: Some(self.smiles),
            text: self.text,
            row: row.clone(),
            generation: Some(self.generation),
            pool: self.pool,
            is_cut: self.is_cut,
            truncated: self.truncated,
            ..Record::default()
        }
    }
}

impl JudgedRows {
    /// For each text of a row, in order, whether its skeleton is the prompt's, character by character. Only if rows are compared.
    pub fn copied(&self, row: usize) -> impl Iterator<Item = bool> {
        self.texts.files[row]
            .texts()
            .iter()
            .map(|text| text.pairing.as_ref().is_some_and(|own| own.is_copied))
    }
}
