//! The result of a failed self-check in words.

use drift_data::generation::{SelfCheck, Verdict};

/// Returns what a run's self-check found, and whose texts the run has; `None` if it passed. `label` is the run's logit processor.
pub(crate) fn self_check_note(model: &str, label: &str, check: &SelfCheck) -> Option<String> {
    let texts = match check.insisted {
        true => "but they wrote the texts, because the run insisted on them: do not rely on these texts",
        false => "so the texts are those of candle's operations",
    };
    let how = match check.verdict {
        Verdict::Passed => return None,
        Verdict::Failed => "the GPU's kernels failed the self-check",
        Verdict::Differs => "the GPU's kernels differ from candle's operations",
    };
    let problem = check.problem.as_deref().unwrap_or("no reason was given");
    let kept = if check.kept { " (found by an earlier run)" } else { "" };
    let evidence = check.evidence.as_ref().map(|folder| format!("; what was compared is in {folder}"));
    let evidence = evidence.unwrap_or_default();
    Some(format!("{model}, `{label}`: {how}, {texts}: {problem}{kept}{evidence}."))
}
