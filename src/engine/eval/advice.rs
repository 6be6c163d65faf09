//! Advice on the runs of an evaluation: that of [`drift_data::audit::pairs`], and what self-checks of a GPU found.

use super::record::{PairedComparison, RunReport};
use crate::runs::self_check_note::self_check_note;
use drift_data::audit::pairs::{self, AdvisedRow, BatchTimes};

/// Sentences for each model: which logit processor to use, and what it costs.
pub(super) fn advice(runs: &[RunReport], comparisons: &[PairedComparison]) -> Vec<String> {
    pairs::advice(&advised(runs), comparisons, None)
}

/// Advice for models with random weights, for which only the speed is meaningful.
pub(super) fn speed_advice(runs: &[RunReport]) -> Vec<String> {
    pairs::speed_advice(&advised(runs))
}

fn advised(runs: &[RunReport]) -> Vec<AdvisedRow<'_>> {
    runs.iter().map(advised_row).collect()
}

fn advised_row(run: &RunReport) -> AdvisedRow<'_> {
    AdvisedRow {
        label: run.row_label(),
        tokenizer: Some(&run.tokenizer),
        counts: &run.outcome,
        chemistry: &run.chemistry,
        geometry: run.geometry.as_ref(),
        times: BatchTimes {
            measure: run.speed_measure,
            seconds: run.batch_seconds.clone(),
            texts: run.outcome.samples,
        },
    }
}

/// Returns the runs whose self-check did not pass, with the source of their texts in that case.
pub(super) fn self_checks(runs: &[RunReport]) -> Vec<String> {
    let said = |run: &RunReport| self_check_note(&run.model, &run.label(), run.self_check.as_ref()?);
    runs.iter().filter_map(said).collect()
}
