//! What a logit processor costs per decoding step at batch 32, mask application included, as a share of one softmax of
//! candle over `[32, vocabulary]` in f32 on the same thread; and what the template of a molecule costs.
//!
//! `cargo bench --profile peers --bench lp` prints shares; `-- --check` only compares masks with dense ones. Qwen3's own tokenizer is used
//! where `../shared` (or `DRIFT_SHARED`) is present, else the embedded one, with logits for Qwen3's vocabulary.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "prints what it measures"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use candle_core::{D, Device, Tensor};
use drift::constraint::{Constraint, Legal, LogitProcessor, Mask, Placeholder, ProcessorKind, State};
use drift::corpus::{Conformers, EmbeddedConformers};
use drift::encoding::Encoding;
use drift::job::Job;
use drift::tokenizer::Tokenizer;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const BATCH: usize = 32;
/// Qwen3's rows of logits.
const VOCABULARY: usize = 151_936;
/// Steps timed at a time.
const STEPS: usize = 400;
/// Shares of a softmax that may be spent.
const AUTOMATON_BAR: f64 = 0.01;
const POSITION_BAR: f64 = 0.05;
/// Milliseconds that the automaton's template of a molecule may take.
const TEMPLATE_BAR: f64 = 0.05;

fn main() {
    let check_only = std::env::args().any(|argument| argument == "--check");
    let tokenizer = tokenizer();
    let skeletons = skeletons();
    for encoding in Encoding::ALL {
        for kind in ProcessorKind::ALL.into_iter().filter(|kind| *kind != ProcessorKind::None) {
            let processor = processor(kind, &tokenizer, encoding);
            check(&processor, &skeletons);
        }
    }
    if check_only {
        println!("check passed");
        return;
    }
    // candle spreads a softmax over rayon's threads: one, as the processors have.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread pool");
    let softmax = pool.install(softmax);
    println!("softmax over [{BATCH}, {VOCABULARY}]: {:.2} ms", softmax.as_secs_f64() * 1e3);
    for encoding in Encoding::ALL {
        for kind in ProcessorKind::ALL.into_iter().filter(|kind| *kind != ProcessorKind::None) {
            let processor = processor(kind, &tokenizer, encoding);
            let step = step(&processor, &skeletons);
            let share = step.as_secs_f64() / softmax.as_secs_f64();
            let bar = if kind == ProcessorKind::Automaton { AUTOMATON_BAR } else { POSITION_BAR };
            println!(
                "{:<10} {:<8} {:>8.2} us a step, share of a softmax {share:.5} (bar {bar}: {}), template {:.4} ms",
                kind.name(),
                encoding.name(),
                step.as_secs_f64() * 1e6,
                if share <= bar { "met" } else { "MISSED" },
                template(&processor, &skeletons)
            );
        }
    }
    println!("bar of the automaton's template: {TEMPLATE_BAR} ms");
}

fn processor(kind: ProcessorKind, tokenizer: &Tokenizer, encoding: Encoding) -> LogitProcessor {
    let placeholder = Placeholder::new("0.0000,0.0000,0.0000").expect("three numbers");
    LogitProcessor::new(kind, tokenizer.clone(), encoding, Some(&placeholder), 0).expect("an exact tokenizer")
}

/// Applied masks leave what the masks allow, or the bench ends here.
fn check(processor: &LogitProcessor, skeletons: &[String]) {
    let row: Vec<f32> = (0..VOCABULARY).map(|id| id as f32).collect();
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let mut compared = 0;
    for skeleton in &skeletons[..4] {
        let constraint = processor.constraint(skeleton).expect("a skeleton of the corpus");
        let mut state = constraint.start();
        let mut listed = Vec::new();
        for _ in 0..40 {
            let mask = constraint.mask(&state);
            let mut masked = row.clone();
            let left: Vec<u32> = match mask.apply(&mut masked, &mut listed) {
                Legal::Row(row) => (0..).zip(row).filter(|(_, l)| l.is_finite()).map(|(id, _)| id).collect(),
                Legal::Listed(list) => list.iter().map(|(id, _)| *id).collect(),
            };
            let expected: Vec<u32> = (0..VOCABULARY as u32).filter(|id| mask.allows(*id)).collect();
            assert_eq!(left, expected, "{:?}", processor.kind());
            constraint.advance(&mut state, left[random.random_range(0..left.len())]);
            compared += 1;
        }
    }
    println!("{:<10} {compared} masks applied as they say", processor.kind().name());
}

/// The time of one softmax, the best of some.
fn softmax() -> Duration {
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let logits: Vec<f32> = (0..BATCH * VOCABULARY).map(|_| random.random_range(-10.0..10.0)).collect();
    let logits = Tensor::from_vec(logits, (BATCH, VOCABULARY), &Device::Cpu).expect("a tensor");
    (0..12)
        .map(|_| {
            let begun = Instant::now();
            std::hint::black_box(candle_nn::ops::softmax(&logits, D::Minus1).expect("a softmax"));
            begun.elapsed()
        })
        .chain((0..12).map(|_| {
            let begun = Instant::now();
            std::hint::black_box(candle_nn::ops::softmax_last_dim(&logits).expect("a softmax"));
            begun.elapsed()
        }))
        .min()
        .unwrap_or_default()
}

/// The time of one step of a whole batch: masks, their application, advancing. Mean over [`STEPS`] steps, the best of
/// some. Tokens are legal ones, mostly digits, so that every state of the grammar is passed through.
fn step(processor: &LogitProcessor, skeletons: &[String]) -> Duration {
    let constraints: Vec<Arc<dyn Constraint>> = skeletons
        .iter()
        .take(BATCH)
        .map(|s| processor.constraint(s).expect("a skeleton of the corpus"))
        .collect();
    let texts: Vec<Vec<u32>> =
        constraints.iter().enumerate().map(|(row, c)| walk(&**c, row as u64)).collect();
    let mut logits = vec![0f32; BATCH * VOCABULARY];
    let mut listed = Vec::new();
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let mut states: Vec<State> = constraints.iter().map(|constraint| constraint.start()).collect();
        let begun = Instant::now();
        for step in 0..STEPS {
            for (row, (constraint, text)) in constraints.iter().zip(&texts).enumerate() {
                let state = &mut states[row];
                let token = text[step % text.len()];
                if step % text.len() == 0 {
                    *state = constraint.start();
                }
                if constraint.wants_argmax() {
                    constraint.observe(state, token);
                }
                let mask = constraint.mask(state);
                let logits = &mut logits[row * VOCABULARY..(row + 1) * VOCABULARY];
                std::hint::black_box(mask.apply(logits, &mut listed));
                constraint.advance(state, token);
            }
        }
        best = best.min(begun.elapsed() / STEPS as u32);
    }
    best
}

/// A legal text of a constraint.
fn walk(constraint: &dyn Constraint, seed: u64) -> Vec<u32> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut state = constraint.start();
    let mut text = Vec::new();
    loop {
        let token = match constraint.mask(&state) {
            Mask::Forced(id) => id,
            Mask::Only(ids) => ids[random.random_range(0..ids.len())],
            // Digits of byte-level vocabularies.
            mask => (15..25).find(|id| mask.allows(*id)).unwrap_or(0),
        };
        text.push(token);
        if constraint.is_over(&state, token) {
            return text;
        }
        constraint.advance(&mut state, token);
    }
}

/// Milliseconds to make the constraint of a molecule, texts between blocks cached; the best of some.
fn template(processor: &LogitProcessor, skeletons: &[String]) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..4 {
        let begun = Instant::now();
        for skeleton in skeletons {
            std::hint::black_box(processor.constraint(skeleton).expect("a skeleton of the corpus"));
        }
        best = best.min(begun.elapsed().as_secs_f64() * 1e3 / skeletons.len() as f64);
    }
    best
}

/// Some skeletons of the embedded corpus.
fn skeletons() -> Vec<String> {
    let mut skeletons = Vec::new();
    EmbeddedConformers::default()
        .read(&Job::default(), &mut |batch| {
            skeletons.extend(batch.conformers.iter().map(|c| c.skeleton.to_string()));
            Ok(())
        })
        .expect("the embedded corpus reads");
    skeletons.sort();
    skeletons.dedup();
    let stride = (skeletons.len() / 500).max(1);
    skeletons.into_iter().step_by(stride).collect()
}

fn tokenizer() -> Tokenizer {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let shared = std::env::var_os("DRIFT_SHARED").map_or_else(beside, PathBuf::from).join("tokenizers");
    Tokenizer::load(&shared.join("qwen3-custom")).unwrap_or_else(|_| {
        println!("skipped: qwen3-custom (needs ../shared or DRIFT_SHARED); qwen-like instead");
        Tokenizer::load(Path::new("qwen-like")).expect("embedded")
    })
}
