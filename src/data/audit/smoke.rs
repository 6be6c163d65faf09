//! What 3DMolGen's smoke reports say of themselves, prompts that their encoder writes otherwise, and what makes shares mislead.

use std::collections::HashSet;

use rayon::prelude::*;
use serde::Serialize;

use super::counts::SampleCounts;
use super::read::{FileRecords, SmokeHead};
use drift_core::chem::foreign;

/// What a smoke report says of itself, and what its texts come to here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TheirReport {
    /// The file.
    pub file: String,
    /// The version of the logit processor, or `none`.
    pub version: Option<String>,
    /// The kind of the logit processor.
    pub processor_type: Option<String>,
    /// Molecules whose first text passed.
    pub num_passed: Option<u64>,
    /// The others.
    pub num_failed: Option<u64>,
    /// Of them, those that could not be decoded.
    pub parse_failures: Option<u64>,
    /// What drift counts by their rules: of the first text of each molecule.
    pub recounted: Recounted,
    /// Texts of the same molecules that they do not validate.
    pub further_generations: u64,
}

/// First texts by their rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Recounted {
    /// Texts judged.
    pub samples: u64,
    /// Those that pass.
    pub num_passed: u64,
    /// Those of another molecule.
    pub graph_mismatch: u64,
    /// Those that cannot be decoded.
    pub parse_failures: u64,
    /// Those without a conformer between its tags.
    pub no_eos: u64,
}

/// A prompt that RDKit would write otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ForeignPrompt {
    /// The prompt.
    pub smiles: String,
    /// What RDKit never writes.
    pub reason: &'static str,
}

/// What a report says of itself, beside its first texts by the same rules.
pub(super) fn their_report(
    file: &str,
    head: &SmokeHead,
    (first, further): &(SampleCounts, u64),
) -> TheirReport {
    TheirReport {
        file: file.to_owned(),
        version: head.version.clone(),
        processor_type: head.processor_type.clone(),
        num_passed: head.num_passed,
        num_failed: head.num_failed,
        parse_failures: head.parse_failures,
        recounted: Recounted {
            samples: first.samples,
            num_passed: first.passed_by_3dmolgen,
            graph_mismatch: first.graph_mismatch_by_3dmolgen,
            parse_failures: first.parse_failures_by_3dmolgen,
            no_eos: first.no_eos_by_3dmolgen,
        },
        further_generations: *further,
    }
}

/// The number of distinct prompts, and those that RDKit would write otherwise, in order.
pub(super) fn foreign_prompts<'p>(prompts: impl Iterator<Item = &'p String>) -> (u64, Vec<ForeignPrompt>) {
    let mut seen = HashSet::new();
    let distinct: Vec<&String> = prompts.filter(|prompt| seen.insert(*prompt)).collect();
    let foreign =
        |smiles: &&String| Some(ForeignPrompt { smiles: (*smiles).clone(), reason: foreign(smiles)? });
    (distinct.len() as u64, distinct.par_iter().filter_map(foreign).collect())
}

/// What a reader of the shares of a file should know.
pub(super) fn bias(file: &FileRecords) -> Option<String> {
    holds_more_of_passes(file).then(|| {
        format!(
            "{}: holds all texts of molecules whose first text passed, but the first one alone of those that failed, so shares \
             over all texts are too high; `recounted` has the first texts alone",
            file.input.name
        )
    })
}

/// Whether a smoke report holds several texts of molecules that passed, and one of those that failed.
fn holds_more_of_passes(file: &FileRecords) -> bool {
    let listed = || file.records.iter().filter_map(|record| record.listed);
    listed().any(|listed| listed.in_passes && listed.generation > 0)
        && listed().any(|listed| !listed.in_passes && !listed.with_all)
}

impl TheirReport {
    /// Says when the report's own counts are not those of its first texts.
    pub(super) fn disagreement(&self) -> Option<String> {
        let recounted = [self.recounted.num_passed, self.recounted.samples - self.recounted.num_passed];
        let own = [self.num_passed, self.num_failed];
        // A count that the report does not give cannot differ.
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
