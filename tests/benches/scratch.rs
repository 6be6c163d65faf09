//! BPE from nothing beside the trainer of `tokenizers` alone, on the same conformers in the same run.
//!
//! `cargo bench --bench scratch`: 10⁶ blocks; `-- --blocks N` sets how many, `-- --check` compares tokens on a small corpus
//! and times nothing. The peer is given texts, which it cuts by GPT-2's expression and counts; drift is given the same
//! texts, which it parses. Both end in a tokenizer that is loaded.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "prints what it measures"
)]

use std::time::Instant;

use drift::corpus::{Conformer, Conformers, EmbeddedConformers};
use drift::design::learned::scratch::{SPECIAL, scratch};
use drift::design::measured::sample::{LearningSample, whole_text};
use drift::design::{Range, SchemeKind, ScratchPlan};
use drift::encoding::{Encoding, Precision};
use drift::job::Job;
use drift::text::{self};
use drift::tokenizer::Tokenizer;
use drift::tokenizer::learn::learn_plain;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let given =
        arguments.iter().position(|a| a == "--blocks").and_then(|at| arguments.get(at + 1)?.parse().ok());
    let check = arguments.iter().any(|a| a == "--check");
    let blocks = given.unwrap_or(if check { 4_000 } else { 1_000_000 });
    let conformers = conformers(blocks)?;
    let bodies: Vec<String> =
        conformers.iter().map(|c| text::write(&c.skeleton, &c.coordinates, Encoding::FIXED)).collect();
    let texts: Vec<String> =
        conformers.iter().map(|conformer| whole_text(conformer, Encoding::FIXED)).collect();
    let total: usize = conformers.iter().map(|c| c.coordinates.len()).sum();
    println!("{} conformers, {total} blocks, {} threads", conformers.len(), rayon::current_num_threads());
    for vocab_size in if check { vec![400, 1_000] } else { vec![600, 1_000, 4_000] } {
        let begun = Instant::now();
        let own = own(&bodies, vocab_size)?;
        let own_seconds = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let plain = learn_plain(texts.iter().map(String::as_str), &SPECIAL, vocab_size)?;
        let plain = Tokenizer::from_bytes("plain", drift::io::hash_bytes("plain", &plain), &plain)?;
        let plain_seconds = begun.elapsed().as_secs_f64();
        // Every hundredth text is enough to compare tokens of 10⁶ blocks.
        let step = (texts.len() / 2_000).max(1);
        let tokens = |tokenizer: &Tokenizer| -> drift::Result<usize> {
            texts.par_iter().step_by(step).map(|text| Ok(tokenizer.ids(text)?.len())).sum()
        };
        let (own_tokens, plain_tokens) = (tokens(&own)?, tokens(&plain)?);
        let ratio = own_tokens as f64 / plain_tokens as f64;
        assert!(own_tokens <= plain_tokens, "{vocab_size}: {own_tokens} tokens, plain {plain_tokens}");
        if check {
            println!("vocabulary {vocab_size}: {ratio:.3} of the plain trainer's tokens");
            continue;
        }
        println!(
            "vocabulary {vocab_size}: drift {own_seconds:.2} s, tokenizers {plain_seconds:.2} s, {:.1} times as fast \
             (bar 1), {ratio:.3} of its tokens (bar 1)",
            plain_seconds / own_seconds
        );
    }
    Ok(())
}

/// From texts to a tokenizer.
fn own(bodies: &[String], vocab_size: usize) -> anyhow::Result<Tokenizer> {
    let conformers: Vec<Conformer> = bodies
        .par_iter()
        .map(|body| {
            let parsed = text::parse(body, Default::default())?;
            let written = parsed.written;
            Ok(Conformer { written, ..Conformer::new("".into(), parsed.skeleton.into(), parsed.coordinates) })
        })
        .collect::<Result<_, text::TextError>>()?;
    let blocks = conformers.iter().map(|c| c.coordinates.len() as u64).sum();
    let sample = LearningSample { conformers, blocks, left_out: 0 };
    let range = Range::new(15)?;
    let plan = ScratchPlan {
        vocab_size,
        kind: SchemeKind::Fused,
        range,
        precision: Precision::FOUR,
        contexts: 1,
        compare: false,
    };
    Ok(scratch(plan, &sample, &Job::default())?.tokenizer)
}

/// The embedded conformers again and again, moved by up to half an Å, until there are enough blocks.
fn conformers(blocks: usize) -> anyhow::Result<Vec<Conformer>> {
    let mut patterns = Vec::new();
    EmbeddedConformers::default().read(&Job::default(), &mut |batch| {
        patterns.extend(batch.conformers);
        Ok(())
    })?;
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let (mut made, mut all) = (0, Vec::new());
    for pattern in patterns.iter().cycle() {
        if made >= blocks {
            break;
        }
        let mut conformer = pattern.clone();
        let numbers = conformer.coordinates.iter_mut().flatten();
        numbers.for_each(|number| *number += random.random_range(-5_000..=5_000));
        made += conformer.coordinates.len();
        all.push(conformer);
    }
    Ok(all)
}
