//! Counts the tokens of blocks inside their text, and the drift against a placeholder: `cargo run --release --example count_tokens`.
//!
//! A block alone takes other tokens than a block in its text, because `]<` and `>[` merge. So count the whole text.

#![allow(clippy::print_stdout, reason = "a program that shows what it found")]

use std::path::Path;

use drift::tokenizer::Inspector;
use drift::{Encoding, Tokenizer};

fn main() -> drift::Result<()> {
    print!("{}", report("qwen-like".as_ref())?);
    Ok(())
}

/// A line for each block of a text: its tokens, those of the placeholder, and the drift.
///
/// # Errors
/// If there is no such tokenizer.
pub(crate) fn report(tokenizer: &Path) -> drift::Result<String> {
    // A model folder, a tokenizer.json, `org/name` in the cache of Hugging Face, or the name of a built-in tokenizer.
    let tokenizer = Tokenizer::load(tokenizer)?;
    let inspector = Inspector::new(tokenizer, "0.000,0.000,0.000", Encoding::FIXED)?;
    let text = inspector.inspect("[C]<4.0182,1.0374,-0.0007>=[O]<2.0988,-0.4840,-0.6413>".to_owned())?;
    let mut lines = format!("{} tokens, {} of them FREE\n", text.count, text.free);
    for block in &text.blocks {
        lines += &format!("{}: {} tokens, drift {}\n", block.text, block.free, block.drift);
    }
    Ok(lines)
}
