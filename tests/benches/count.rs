//! How fast FREE tokens are counted, beside `tokenizers` `encode_batch` on the same texts and threads, and how the cost
//! of a fit grows with the corpus.
//!
//! `cargo bench --bench count` prints ratios; `-- --check` only compares counts; `-- --blocks 100000000` sets the size
//! of the generated corpus. The shared tokenizers are used too where `../shared` (or `DRIFT_SHARED`) is present.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "prints what it measures"
)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use drift::corpus::{Batch, BatchSink, Conformer, Conformers, EmbeddedConformers, ReadSummary};
use drift::encoding::{DecimalForms, Encoding};
use drift::job::Job;
use drift::placeholder::{EncodingChoice, FitPlan, Objective, fit};
use drift::text::{tagged, write};
use drift::tokenizer::{Counter, Tokenizer};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// The bar: this many times as many blocks per second as the peer.
const BAR: f64 = 300.0;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let check_only = arguments.iter().any(|a| a == "--check");
    let given =
        arguments.iter().position(|a| a == "--blocks").and_then(|at| arguments.get(at + 1)?.parse().ok());
    for tokenizer in tokenizers() {
        for encoding in Encoding::ALL {
            let texts = texts(encoding);
            let counter = Counter::new(&tokenizer, []).expect("the tokenizer encodes the format");
            check(&tokenizer, &counter, &texts);
            if !check_only {
                for threads in [1, 2] {
                    compare(&tokenizer, &counter, encoding, &texts, threads);
                }
            }
        }
    }
    if check_only {
        println!("check passed");
        return;
    }
    let largest: u64 = given.unwrap_or(10_000_000);
    for blocks in [largest / 100, largest / 10, largest] {
        growth(blocks);
    }
}

/// Counts and reference agree, or the bench ends here.
fn check(tokenizer: &Tokenizer, counter: &Counter, texts: &[String]) {
    let sample = &texts[..texts.len().min(300)];
    let blocks: usize = sample
        .par_iter()
        .map(|text| {
            let mut counts = Vec::new();
            counter.count(text, &mut counts).expect("encodes");
            let reference = tokenizer.free_ends(text).expect("encodes");
            let expected: Vec<u16> = reference.iter().map(|ends| ends.len() as u16).collect();
            assert_eq!(counts, expected, "{}: {text}", tokenizer.name);
            counts.len()
        })
        .sum();
    println!("{:<16} {blocks} block counts equal the reference", tokenizer.name);
}

/// One line: blocks per second of both, and the ratio.
fn compare(tokenizer: &Tokenizer, counter: &Counter, encoding: Encoding, texts: &[String], threads: usize) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool");
    let blocks: usize = texts.iter().map(|text| text.matches('<').count()).sum();
    let peer_texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let peer = pool.install(|| {
        best_of(2, || {
            let encodings = tokenizer.inner().encode_batch(peer_texts.clone(), false).expect("encodes");
            // The offsets are what FREE and COPY are read from.
            encodings.iter().map(|e| e.get_offsets().len()).sum::<usize>()
        })
    });
    let ours = pool.install(|| {
        best_of(20, || {
            let count = |part: &[String]| {
                let mut counts = Vec::new();
                part.iter().for_each(|text| counter.count(text, &mut counts).expect("encodes"));
                counts.iter().map(|c| usize::from(*c)).sum::<usize>()
            };
            texts.par_chunks(64).map(count).sum::<usize>()
        })
    });
    let rate = |elapsed: Duration| blocks as f64 / elapsed.as_secs_f64();
    let ratio = peer.as_secs_f64() / ours.as_secs_f64();
    println!(
        "{:<16} {:<9} {threads} thread(s): encode_batch {:>9.0} blocks/s, drift {:>11.0} blocks/s, ratio {ratio:.0} {}",
        tokenizer.name,
        encoding.name(),
        rate(peer),
        rate(ours),
        if ratio >= BAR { "(bar 300: met)" } else { "(bar 300: MISSED)" }
    );
}

/// The shortest of some runs.
fn best_of(runs: usize, mut work: impl FnMut() -> usize) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..runs {
        let begun = Instant::now();
        std::hint::black_box(work());
        best = best.min(begun.elapsed());
    }
    best
}

/// Fits on a generated corpus: time per block and peak memory.
fn growth(blocks: u64) {
    let plan = FitPlan {
        tokenizers: vec![Tokenizer::load(Path::new("qwen-like")).expect("embedded")],
        encodings: EncodingChoice::Only(Encoding::FIXED),
        candidates: Vec::new(),
        objective: Objective::default(),
        seed: 0,
        classes: false,
    };
    let begun = Instant::now();
    let report = fit(&plan, &GenerationResult { blocks }, &Job::default()).expect("fits");
    let elapsed = begun.elapsed().as_secs_f64();
    println!(
        "fit of {:>11} generated blocks: {elapsed:.2} s, {:.0} ns a block, proved: {}, peak memory {}",
        report.corpus.blocks,
        elapsed * 1e9 / report.corpus.blocks as f64,
        report.results[0].proved,
        peak_memory()
    );
}

/// Peak resident memory of this process, where the system says.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .map_or("unknown".into(), |v| v.trim().to_owned())
}

/// Random coordinates on the skeletons of the embedded corpus, never all in memory.
struct GenerationResult {
    blocks: u64,
}

impl Conformers for GenerationResult {
    fn read(&self, job: &Job, emit: &mut BatchSink<'_>) -> drift::Result<ReadSummary> {
        let mut patterns = Vec::new();
        let mut summary = EmbeddedConformers::default().read(job, &mut |batch| {
            patterns.extend(batch.conformers.into_iter().map(|c| (c.molecule, c.skeleton)));
            Ok(())
        })?;
        summary.conformers = 0;
        let (mut made, mut seed) = (0, 0);
        while made < self.blocks {
            let parts: Vec<Vec<Conformer>> =
                (0..8).into_par_iter().map(|part| generate(&patterns, seed + part)).collect();
            seed += 8;
            for conformers in parts {
                made += conformers.iter().map(|c| c.coordinates.len() as u64).sum::<u64>();
                summary.conformers += conformers.len() as u64;
                emit(Batch { conformers, ..Batch::default() })?;
            }
        }
        Ok(summary)
    }
}

fn generate(patterns: &[(std::sync::Arc<str>, std::sync::Arc<str>)], seed: u64) -> Vec<Conformer> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let conformer = |_| {
        let (molecule, skeleton) = &patterns[random.random_range(0..patterns.len())];
        let blocks = skeleton.matches("<>").count();
        let mut block = || [120_000, 60_000, 30_000].map(|limit| random.random_range(-limit..=limit));
        let coordinates = (0..blocks).map(|_| block()).collect();
        let written = DecimalForms { fixed: true, stripped: false };
        Conformer { written, ..Conformer::new(molecule.clone(), skeleton.clone(), coordinates) }
    };
    (0..1_000).map(conformer).collect()
}

/// The embedded corpus as tagged texts.
fn texts(encoding: Encoding) -> Vec<String> {
    let mut texts = Vec::new();
    let text = |c: &Conformer| tagged(&write(&c.skeleton, &c.coordinates, encoding));
    EmbeddedConformers::default()
        .read(&Job::default(), &mut |batch| {
            texts.extend(batch.conformers.iter().map(text));
            Ok(())
        })
        .expect("the embedded corpus reads");
    texts.truncate(2_000);
    texts
}

/// The embedded tokenizers, and the shared ones where they are.
fn tokenizers() -> Vec<Tokenizer> {
    let mut list = Tokenizer::embedded().expect("embedded");
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let shared = std::env::var_os("DRIFT_SHARED").map_or_else(beside, PathBuf::from).join("tokenizers");
    for name in ["qwen3-custom", "llama-3.2-chem", "mistral-v1"] {
        match Tokenizer::load(&shared.join(name)) {
            Ok(tokenizer) => list.push(tokenizer),
            Err(_) => println!("skipped: {name} (needs ../shared or DRIFT_SHARED)"),
        }
    }
    list
}
