//! Compares the rows of an audit: finds the base row, pairs the texts, and adds comparisons and advice to the report.

use std::collections::BTreeMap;

use super::by_text::{AuditResult, AuditedTexts};
use super::pairs::{
    AdvisedRow, ComparedRow, PairedComparison, PairedText, advice, comparison, valid_difference,
};
use super::records::RowField;
use super::request::AuditPlan;
use super::row_label::{BaseRows, RowLabel};
use super::runs::{AuditRun, RowMeasure};
use crate::parameter;
use drift_core::{Error, Result};

/// Compares all rows of an audit with the row that the plan asks for, and adds the comparisons and advice to its report.
///
/// # Errors
/// If there is no such row, or two texts of a row are for the same prompt and generation.
pub(super) fn compare(
    plan: &AuditPlan,
    audited: &mut AuditResult,
    rows: &[RowMeasure],
    seed: u64,
) -> Result<()> {
    let Some(wanted) = &plan.request.against_row else { return Ok(()) };
    let labels: Vec<&RowLabel> = audited.report.runs.iter().map(|run| &run.row).collect();
    let bases = BaseRows::find(&labels, wanted)?;
    let compared = compared_rows(&audited.report.runs, rows, &audited.texts, &plan.request.row_field)?;
    let comparisons = comparisons(&bases, &compared, seed);
    let report = &mut audited.report;
    let advised: Vec<AdvisedRow<'_>> = report.runs.iter().map(AuditRun::advised).collect();
    let crosses = |base: &&RowLabel| comparisons.iter().any(|pair| pair.row.model != base.model);
    report.advice = advice(&advised, &comparisons, bases.only().filter(crosses));
    let unpaired = comparisons.iter().filter(|pair| pair.unpaired > 0).map(|pair| {
        format!(
            "{} texts of `{}` or its base row have no partner, and are in no pair",
            pair.unpaired,
            pair.row.name()
        )
    });
    report.warnings.extend(unpaired);
    report.against_row = Some(wanted.clone());
    report.comparisons = comparisons;
    Ok(())
}

/// Returns each row that has a base, compared with it.
pub(super) fn comparisons(bases: &BaseRows, rows: &[ComparedRow<'_>], seed: u64) -> Vec<PairedComparison> {
    let with_base = (0..rows.len()).filter_map(|at| Some((at, bases.of_row(at)?)));
    let compared = with_base.map(|(at, base)| {
        let (row, beside) = (&rows[at], bases.rows_beside(base));
        let is_other = |other: &usize| *other != at && *other != base && rows[*other].label.is_automaton();
        let automaton =
            (0..rows.len()).filter(is_other).find(|other| rows[*other].label.model == row.label.model);
        PairedComparison {
            valid_against_automaton: automaton.and_then(|other| valid_difference(&rows[other], row, beside)),
            ..comparison(&rows[base], row, beside, seed)
        }
    });
    compared.collect()
}

/// Returns the texts of all rows. Molecules and prompts have the same numbers in all rows.
///
/// # Errors
/// If two texts of a row are for the same prompt and generation.
pub(super) fn compared_rows<'r>(
    runs: &'r [AuditRun],
    rows: &'r [RowMeasure],
    texts: &'r AuditedTexts,
    row_field: &RowField,
) -> Result<Vec<ComparedRow<'r>>> {
    let mut numbers = Numbers::default();
    let mut compared: Vec<ComparedRow<'r>> = runs.iter().zip(rows).map(without_texts).collect();
    // How many conformers of a row and molecule came before.
    let mut conformers: BTreeMap<(usize, &str), usize> = BTreeMap::new();
    for text in texts.paired_texts() {
        let row = text.row.reported(text.file);
        let Some(at) = runs.iter().position(|run| run.row == row) else { continue };
        let molecule = numbers.of(text.under);
        let deviations = rows[at].deviations(&texts.measured, text.under);
        if let Some(deviations) = deviations {
            compared[at].deviations.insert(molecule, deviations);
        }
        let conformer = text.is_usable.then(|| {
            let next = conformers.entry((at, text.under)).or_default();
            *next += 1;
            *next - 1
        });
        compared[at].texts.push(PairedText {
            molecule,
            prompt: numbers.of(text.prompt),
            generation: text.generation,
            place: text.place,
            conformer: conformer.filter(|_| deviations.is_some()),
            counts: text.pairing.counts,
            text: &text.pairing.answer,
        });
    }
    for row in &mut compared {
        row.texts.sort_by_key(PairedText::key);
        if let Some(twice) = row.texts.windows(2).find(|pair| pair[0].key() == pair[1].key()) {
            let prompt = numbers.name(twice[0].prompt);
            return Err(twice_in_row(&row.label, prompt, twice[0].generation, row_field));
        }
    }
    Ok(compared)
}

fn without_texts<'r>((run, measure): (&AuditRun, &RowMeasure)) -> ComparedRow<'r> {
    ComparedRow {
        label: run.row.clone(),
        texts: Vec::new(),
        deviations: BTreeMap::new(),
        times: run.times(),
        texts_per_cpu_second: measure.texts_per_cpu_second,
        texts_per_second: measure.texts_per_second,
    }
}

/// Returns the error for two texts that cannot be told apart.
fn twice_in_row(row: &RowLabel, prompt: &str, generation: u64, row_field: &RowField) -> Error {
    let problem =
        format!("`{}` has two texts {generation} of {prompt}, so texts cannot be paired", row.name());
    let number = "number the texts of a prompt by `generation`";
    let remedy = match row_field {
        RowField::File => number.to_owned(),
        _ => format!("give {} file if each file is a row of its own, or {number}", parameter::ROW_FIELD),
    };
    Error::parameter(parameter::AGAINST_ROW, problem, remedy)
}

/// Numbers for names, in the order of their first use.
#[derive(Default)]
struct Numbers<'r> {
    numbers: BTreeMap<&'r str, usize>,
    names: Vec<&'r str>,
}

impl<'r> Numbers<'r> {
    fn of(&mut self, name: &'r str) -> usize {
        let next = self.names.len();
        let number = *self.numbers.entry(name).or_insert(next);
        if number == next {
            self.names.push(name);
        }
        number
    }

    fn name(&self, number: usize) -> &'r str {
        self.names[number]
    }
}
