//! Encoding with an extended tokenizer beside its base, on the same texts in the same run.
//!
//! `cargo bench --bench extended [-- TOKENIZER…]`: the embedded tokenizers by default. Ratios below 1 are faster.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "prints what it measures"
)]

use std::path::Path;
use std::time::Instant;

use drift::corpus::{Conformers, EmbeddedConformers};
use drift::design::{Aim, ExtensionPlan, SchemeKind, train};
use drift::encoding::Encoding;
use drift::job::Job;
use drift::text::{self};
use drift::tokenizer::Tokenizer;

fn main() -> anyhow::Result<()> {
    let mut names: Vec<String> = std::env::args().skip(1).filter(|name| name != "--bench").collect();
    if names.is_empty() {
        names = vec!["qwen-like".into(), "llama-like".into()];
    }
    let mut texts = Vec::new();
    EmbeddedConformers::default().read(&Job::default(), &mut |batch| {
        texts.extend(batch.conformers.iter().map(|conformer| {
            text::tagged(&text::write(&conformer.skeleton, &conformer.coordinates, Encoding::FIXED))
        }));
        Ok(())
    })?;
    let bytes: usize = texts.iter().map(String::len).sum();
    println!("{} texts, {bytes} bytes, one thread, best of 5", texts.len());
    for name in names {
        for (kind, tokens) in [(SchemeKind::Fused, 9), (SchemeKind::Fused, 6), (SchemeKind::Separate, 11)] {
            let (base, json) = Tokenizer::load_with_json(Path::new(&name))?;
            let base_json = serde_json::from_slice(&json)?;
            let aim = Aim::TokensPerBlock(tokens);
            let plan = ExtensionPlan {
                contexts: 1,
                ..ExtensionPlan::new(base, base_json, kind, Encoding::FIXED, aim)
            };
            let trained = train(&plan, &EmbeddedConformers::default(), &Job::default())?;
            let source = drift::io::hash_bytes("extended", &trained.tokenizer_json);
            let extended = Tokenizer::from_bytes("extended", source, &trained.tokenizer_json)?;
            let (mut before, mut after) = (f64::INFINITY, f64::INFINITY);
            for _ in 0..5 {
                before = before.min(seconds(&plan.base, &texts)?);
                after = after.min(seconds(&extended, &texts)?);
            }
            let rate = |seconds: f64| bytes as f64 / seconds / 1e6;
            println!(
                "{name}, {} {tokens}: base {:.2} MB/s, extended {:.2} MB/s, time ratio {:.2}",
                kind.name(),
                rate(before),
                rate(after),
                after / before
            );
        }
    }
    Ok(())
}

/// The time to encode all texts.
fn seconds(tokenizer: &Tokenizer, texts: &[String]) -> drift::Result<f64> {
    let start = Instant::now();
    for text in texts {
        std::hint::black_box(tokenizer.ids(text)?);
    }
    Ok(start.elapsed().as_secs_f64())
}
