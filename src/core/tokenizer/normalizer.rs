//! Analyses the effect of normalizers on texts.

use serde_json::Value;

/// Returns whether a normalizer only marks spaces and the beginnings of sections, or composes characters. Such a normalizer cannot create
/// a block in a text without blocks.
pub fn marks_spaces(normalizer: &Value) -> bool {
    match normalizer["type"].as_str() {
        None => normalizer.is_null(),
        Some("NFC") => true,
        Some("Prepend") => normalizer["prepend"] == "▁",
        Some("Replace") => normalizer["pattern"]["String"] == " " && normalizer["content"] == "▁",
        Some("Sequence") => {
            normalizer["normalizers"].as_array().is_some_and(|all| all.iter().all(marks_spaces))
        }
        Some(_) => false,
    }
}

/// SentencePiece's space.
pub(crate) const SPACE: &str = "\u{2581}";
