//! The figures in 3DMolGen's smoke reports, prompts that their encoder would spell differently, and reasons why shares mislead.

use std::collections::HashSet;

use rayon::prelude::*;
use serde::Serialize;

use super::counts::SampleCounts;
use super::read::{FileRecords, SmokeHead};
use drift_core::chem::foreign;

/// The figures that a smoke report states, beside the same figures counted here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TheirReport {
    /// The file.
    pub file: String,
    /// The figures.
    #[serde(flatten)]
    pub head: SmokeHead,
    /// The same figures counted by drift, by their rules, over the first text of each molecule.
    pub recounted: SmokeCounts,
    /// The number of further texts of the same molecules, which they do not validate.
    pub further_generations: u64,
}

/// Counts over first texts, by their rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SmokeCounts {
    /// The number of judged texts.
    pub samples: u64,
    /// The number that pass.
    pub num_passed: u64,
    /// The number of another molecule.
    pub graph_mismatch: u64,
    /// The number that cannot be decoded.
    pub parse_failures: u64,
    /// The number without a conformer between its tags.
    pub no_eos: u64,
}

/// A prompt that RDKit would spell differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ForeignPrompt {
    /// The prompt.
    pub smiles: String,
    /// The feature that RDKit never writes.
    pub reason: &'static str,
}

/// Combines a report's own figures with counts over its first texts, by the same rules.
pub(super) fn their_report(
    file: &str,
    head: &SmokeHead,
    (first, further): &(SampleCounts, u64),
) -> TheirReport {
    TheirReport {
        file: file.to_owned(),
        head: head.clone(),
        recounted: SmokeCounts {
            samples: first.samples,
            num_passed: first.passed_by_3dmolgen,
            graph_mismatch: first.graph_mismatch_by_3dmolgen,
            parse_failures: first.parse_failures_by_3dmolgen,
            no_eos: first.no_eos_by_3dmolgen,
        },
        further_generations: *further,
    }
}

/// Returns the number of distinct prompts, and those that RDKit would spell differently, in order.
pub(super) fn foreign_prompts<'p>(prompts: impl Iterator<Item = &'p String>) -> (u64, Vec<ForeignPrompt>) {
    let mut seen = HashSet::new();
    let distinct: Vec<&String> = prompts.filter(|prompt| seen.insert(*prompt)).collect();
    let foreign =
        |smiles: &&String| Some(ForeignPrompt { smiles: (*smiles).clone(), reason: foreign(smiles)? });
    (distinct.len() as u64, distinct.par_iter().filter_map(foreign).collect())
}

/// Returns a sentence for readers of a file's shares, if these mislead.
pub(super) fn bias(file: &FileRecords) -> Option<String> {
    holds_more_of_passes(file).then(|| {
        format!(
            "{}: holds all texts of molecules whose first text passed, but the first one alone of those that failed, so shares \
             over all texts are too high; `recounted` has the first texts alone",
            file.input.name
        )
    })
}

/// Returns whether a smoke report has several texts of molecules that passed, but only one of those that failed.
fn holds_more_of_passes(file: &FileRecords) -> bool {
    let listed = || file.records.iter().filter_map(|record| record.listed);
    listed().any(|listed| listed.in_passes && listed.generation > 0)
        && listed().any(|listed| !listed.in_passes && !listed.with_all)
}

impl TheirReport {
    /// Returns a sentence, if the report's figures differ from the counts over its first texts.
    pub(super) fn disagreement(&self) -> Option<String> {
        let recounted = [self.recounted.num_passed, self.recounted.samples - self.recounted.num_passed];
        let own = [self.head.num_passed, self.head.num_failed];
        // A figure that the report does not state cannot differ.
        let differs =
            own.iter().zip(recounted).any(|(own, recounted)| own.is_some_and(|own| own != recounted));
        let count = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
        differs.then(|| {
            format!(
                "{}: says that {} passed and {} failed; its texts come to {} and {} by the same rules",
                self.file,
                count(own[0]),
                count(own[1]),
                recounted[0],
                recounted[1]
            )
        })
    }
}
