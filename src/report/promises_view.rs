//! Sentences about the checks that were run before an extended tokenizer was written, and about the logit processor to use with it.

use super::format::{counted, thousands};
use drift_tune::design::SchemeKind;
use drift_tune::design::extension::check::Guarantees;
use drift_tune::design::extension::plain::PlainText;

/// Says how many numbers were encoded, and to how many `tokens` per block.
pub fn numbers_run(numbers: u64, contexts: u64, blocks: u64, tokens: &str) -> String {
    format!(
        "Every one of {} numbers was encoded in all three positions and {} contexts, {} blocks: {tokens} tokens.\n",
        thousands(numbers),
        thousands(contexts),
        thousands(blocks)
    )
}

/// Returns the texts that keep their tokens, if new tokens have the ids of `reused` old ones.
pub fn unchanged_texts(reused: u64) -> String {
    match reused {
        0 => "Text without blocks".to_owned(),
        _ => format!("Text without blocks and without the {} that were removed", counted(reused, "token")),
    }
}

/// Says what was checked of an extension of a base whose blocks take `tokens` tokens, and of whose tokens `reused` were removed.
pub fn extension_run(run: &Guarantees, tokens: &str, reused: u64) -> String {
    let plain = match run.plain_text {
        PlainText::Proved => "proved from the base's pre-tokenizers and vocabulary, and equal on",
        PlainText::Tried => "not proved for this base's pre-tokenizers, but equal on",
    };
    format!(
        "{}{} old tokens keep id and text; each new token is reached; blocks decode to themselves.\n\
         {} takes the same tokens as before: {plain} {} texts.\n",
        numbers_run(run.numbers, run.contexts, run.blocks, tokens),
        thousands(run.unchanged_tokens),
        unchanged_texts(reused),
        thousands(run.plain_texts + run.fallbacks),
    )
}

/// Returns the logit processor to use with a kind of extension.
pub fn advice(kind: SchemeKind) -> &'static str {
    match kind {
        SchemeKind::Separate => {
            "A position template works with it: use any placeholder that is a block in the range."
        }
        SchemeKind::Fused => {
            "Tokens mix brackets and digits, so a position template cannot be used; a logit processor must follow the \
             text."
        }
    }
}
