//! Advice on the runs of an evaluation: that of [`drift_data::audit::pairs`], and what self-checks of a GPU found.

use super::record::{PairedComparison, RunReport};
use super::self_check_note::self_check_note;
use drift_data::audit::RowLabel;
use drift_data::audit::pairs::{self, AdvisedRow, BatchTimes};

/// Sentences for each model: which logit processor to use, and what it costs.
pub(super) fn advice(runs: &[RunReport], comparisons: &[PairedComparison]) -> Vec<String> {
    let kept = KeptRow::of_runs(runs);
    pairs::advice(&advised(runs, &kept), comparisons, None)
}

/// Advice for models with random weights, for which only the speed is meaningful.
pub(super) fn speed_advice(runs: &[RunReport]) -> Vec<String> {
    let kept = KeptRow::of_runs(runs);
    pairs::speed_advice(&advised(runs, &kept))
}

/// What a run's report holds in another form than advice needs.
struct KeptRow {
    label: RowLabel,
    times: BatchTimes,
}

impl KeptRow {
    fn of_runs(runs: &[RunReport]) -> Vec<Self> {
        let of = |run: &RunReport| KeptRow {
            label: run.row_label(),
            times: BatchTimes { measure: run.speed_measure, seconds: run.batch_seconds.clone() },
        };
        runs.iter().map(of).collect()
    }
}

fn advised<'r>(runs: &'r [RunReport], kept: &'r [KeptRow]) -> Vec<AdvisedRow<'r>> {
    let of = |(run, kept): (&'r RunReport, &'r KeptRow)| AdvisedRow {
        label: &kept.label,
        tokenizer: Some(&run.tokenizer),
        counts: &run.outcome,
        geometry: run.geometry.as_ref(),
        times: &kept.times,
    };
    runs.iter().zip(kept).map(of).collect()
}

/// The runs whose self-check did not pass, with the source of their texts in that case.
pub(super) fn self_checks(runs: &[RunReport]) -> Vec<String> {
    let said = |run: &RunReport| self_check_note(&run.model, &run.label(), run.self_check.as_ref()?);
    runs.iter().filter_map(said).collect()
}
