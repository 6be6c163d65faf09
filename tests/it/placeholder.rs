//! Replay, search and certificate, against a reference that shares no code with the fast path.

use std::path::Path;

use drift::corpus::{Conformers, Embedded, Files, ReadOptions};
use drift::job::Job;
use drift::placeholder::{DialectChoice, FitPlan, FitReport, FitResult, Objective, fit};
use drift::text::Dialect;
use drift::tokenizer::Tokenizer;
use serde_json::Value;
use tokenizers::Tokenizer as HfTokenizer;

use crate::support::{SHARED_TOKENIZERS, shared, shared_texts};

fn plan(tokenizers: Vec<Tokenizer>, dialect: Dialect, classes: bool) -> FitPlan {
    FitPlan {
        tokenizers,
        dialects: DialectChoice::Only(dialect),
        candidates: Vec::new(),
        objective: Objective::default(),
        seed: 0,
        classes,
    }
}

/// A JSONL corpus of enriched texts.
fn corpus_of(folder: &Path, texts: &[String]) -> Files {
    let path = folder.join("corpus.jsonl");
    let rows: Vec<String> = texts
        .iter()
        .map(|t| serde_json::json!({"canonical_smiles": "C", "embedded_smiles": t}).to_string())
        .collect();
    std::fs::write(&path, rows.join("\n")).unwrap();
    Files { inputs: vec![path], options: ReadOptions::default() }
}

/// The first 400 rows of each large shared sample: the 800 conformers of the design's table.
fn eight_hundred(shared: &Path, field: &str) -> Vec<String> {
    let texts = shared_texts(shared, field);
    let (moses, drugs) = texts[13..].split_at(1_000);
    moses[..400].iter().chain(&drugs[..400]).cloned().collect()
}

/// What the reference says of one placeholder.
#[derive(Debug, Default)]
struct Reference {
    blocks: f64,
    junk_blocks: f64,
    junk_tokens: f64,
    truncated: f64,
    unparsable: f64,
    unparsable_conformers: f64,
    rmsds: Vec<f64>,
}

/// Ends of FREE tokens of every block, straight from `tokenizers`: byte offsets into the block's inside.
fn free_ends(tokenizer: &HfTokenizer, text: &str) -> Vec<(String, Vec<usize>)> {
    let encoding = tokenizer.encode(text, false).unwrap();
    let mut blocks = Vec::new();
    let mut rest = 0;
    while let Some(open) = text[rest..].find('<').map(|n| rest + n + 1) {
        let close = open + text[open..].find('>').unwrap();
        let inside = encoding.get_offsets().iter().filter(|(s, e)| *s >= open && *e <= close);
        blocks.push((text[open..close].to_owned(), inside.map(|(_, e)| e - open).collect()));
        rest = close;
    }
    blocks
}

/// Replays a placeholder by the definition, with strings and floats: slow, and obviously right.
fn reference(tokenizer: &HfTokenizer, texts: &[String], placeholder: &str) -> Reference {
    let mut out = Reference::default();
    let inside = regex_lite_blocks();
    for text in texts {
        let real = free_ends(tokenizer, &format!("[CONFORMER]{text}[/CONFORMER]"));
        let template = inside(text, placeholder);
        let forced = free_ends(tokenizer, &format!("[CONFORMER]{template}[/CONFORMER]"));
        let (mut squares, mut lost) = (0.0, false);
        for ((block, ends), (_, slots)) in real.iter().zip(&forced) {
            let (t, f) = (ends.len(), slots.len());
            out.blocks += 1.0;
            out.junk_blocks += f64::from(u8::from(f > t));
            out.junk_tokens += f.saturating_sub(t) as f64;
            out.truncated += f64::from(u8::from(t > f));
            let left = if f >= t { block.as_str() } else { &block[..if f == 0 { 0 } else { ends[f - 1] }] };
            match three_numbers(left) {
                None => {
                    out.unparsable += 1.0;
                    lost = true;
                }
                Some(numbers) => {
                    let values = three_numbers(block).unwrap();
                    squares += numbers.iter().zip(values).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
                }
            }
        }
        if lost {
            out.unparsable_conformers += 1.0;
        } else {
            out.rmsds.push((squares / real.len() as f64).sqrt());
        }
    }
    out
}

/// Puts a placeholder in every block of a text.
fn regex_lite_blocks() -> impl Fn(&str, &str) -> String {
    |text, placeholder| {
        let mut out = String::new();
        for (index, piece) in text.split('<').enumerate() {
            if index == 0 {
                out.push_str(piece);
            } else {
                let (_, after) = piece.split_once('>').unwrap();
                out.push_str(&format!("<{placeholder}>{after}"));
            }
        }
        out
    }
}

/// `-?digits[.[digits]]` three times between commas.
fn three_numbers(text: &str) -> Option<Vec<f64>> {
    let parts: Vec<&str> = text.split(',').collect();
    let number = |part: &&str| {
        let digits = part.strip_prefix('-').unwrap_or(part);
        let (integer, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        let good = !integer.is_empty() && all_digits(integer) && all_digits(fraction);
        good.then(|| part.trim_end_matches('.').parse::<f64>().ok()).flatten()
    };
    (parts.len() == 3).then(|| parts.iter().map(number).collect()).flatten()
}

fn assert_equals_reference(tokenizer: &HfTokenizer, texts: &[String], result: &FitResult) {
    for candidate in &result.candidates {
        let expected = reference(tokenizer, texts, &candidate.placeholder);
        let measured = &candidate.measures;
        let close = |name: &str, a: f64, b: f64| {
            let place = format!("{} {:?} {}", result.tokenizer, result.dialect, candidate.placeholder);
            assert!((a - b).abs() < 1e-9, "{place}: {name}: {a} is not {b}");
        };
        close("blocks", result.blocks as f64, expected.blocks);
        close("junk blocks", measured.junk_blocks, expected.junk_blocks / expected.blocks);
        close("junk tokens", measured.junk_tokens_per_block, expected.junk_tokens / expected.blocks);
        close("truncated", measured.truncated_blocks, expected.truncated / expected.blocks);
        close("unparsable", measured.unparsable_blocks, expected.unparsable / expected.blocks);
        let conformers = texts.len() as f64;
        close("conformers", measured.unparsable_conformers, expected.unparsable_conformers / conformers);
        let mean = expected.rmsds.iter().sum::<f64>() / expected.rmsds.len() as f64;
        match measured.rmsd_angstrom {
            Some(rmsd) => close("RMSD", rmsd, mean),
            None => assert!(expected.rmsds.is_empty()),
        }
    }
}

/// The texts of the embedded corpus in a dialect.
fn embedded_texts(dialect: Dialect, limit: usize) -> Vec<String> {
    let mut texts = Vec::new();
    Embedded
        .read(&Job::default(), &mut |batch| {
            let text =
                |c: &drift::corpus::Conformer| drift::text::write(&c.skeleton, &c.coordinates, dialect);
            texts.extend(batch.conformers.iter().map(text));
            Ok(())
        })
        .unwrap();
    texts.truncate(limit);
    texts
}

#[test]
fn equals_the_reference_on_the_embedded_corpus() {
    let folder = tempfile::tempdir().unwrap();
    for dialect in Dialect::ALL {
        let texts = embedded_texts(dialect, 120);
        let corpus = corpus_of(folder.path(), &texts);
        let report =
            fit(&plan(Tokenizer::embedded().unwrap(), dialect, false), &corpus, &Job::default()).unwrap();
        for (result, tokenizer) in report.results.iter().zip(Tokenizer::embedded().unwrap()) {
            assert_equals_reference(tokenizer.inner(), &texts, result);
        }
    }
}

#[test]
fn every_certificate_of_the_embedded_default_closes() {
    let mut plan = plan(Tokenizer::embedded().unwrap(), Dialect::Fixed, true);
    plan.dialects = DialectChoice::Auto;
    let report = fit(&plan, &Embedded, &Job::default()).unwrap();
    assert_eq!(report.results.len(), 4);
    assert_certified(&report);
}

fn assert_certified(report: &FitReport) {
    for result in &report.results {
        let place = format!("{} {:?}", result.tokenizer, result.dialect);
        assert!(result.exact, "{place}");
        assert_eq!(result.certificate.gap, 0.0, "{place}: {:?}", result.certificate);
        assert!(result.search.reached_bound, "{place}");
        for partition in &result.classes {
            assert_eq!(partition.certificate.gap, 0.0, "{place}, {}", partition.partition);
            let single_is_no_better = partition.certificate.objective <= partition.single;
            assert!(single_is_no_better, "{place}, {}", partition.partition);
        }
    }
}

#[test]
fn argmin_reaches_the_bound_from_twenty_seeds() {
    let folder = tempfile::tempdir().unwrap();
    for dialect in Dialect::ALL {
        let corpus = corpus_of(folder.path(), &embedded_texts(dialect, 40));
        for seed in 0..20 {
            let mut plan = plan(Tokenizer::embedded().unwrap(), dialect, true);
            plan.seed = seed;
            let report = fit(&plan, &corpus, &Job::default()).unwrap();
            for result in &report.results {
                assert!(result.search.reached_bound, "{} {dialect:?} seed {seed}", result.tokenizer);
                for partition in &result.classes {
                    assert!(
                        partition.search_reached_bound,
                        "{} {seed} {}",
                        result.tokenizer, partition.partition
                    );
                }
            }
        }
    }
}

#[test]
fn the_design_table_comes_out_and_equals_the_reference() {
    let Some(shared) = shared("the drift table on real tokenizers") else { return };
    let folder = tempfile::tempdir().unwrap();
    // Tokenizer, field, placeholder, junk blocks, junk per block, truncated, unparsable, RMSD: DESIGN section 2.
    type Row = (&'static str, &'static str, &'static str, f64, f64, f64, f64, Option<f64>);
    let (fixed, stripped) = ("embedded_smiles", "embedded_smiles_stripped");
    let table: [Row; 9] = [
        ("qwen3-custom", fixed, "0.0000,0.0000,0.0000", 0.0, 0.0, 0.501, 0.0, Some(0.0004)),
        ("qwen3-custom", fixed, "-0.0000,0.0000,0.0000", 0.499, 0.5, 0.0, 0.0, Some(0.0)),
        ("qwen3-custom", fixed, "0.000,0.000,0.000", 0.0, 0.0, 1.0, 0.0, Some(0.325)),
        ("qwen3-custom", fixed, "1.23,-4.56,7.89", 0.0, 0.0, 1.0, 1.0, None),
        ("qwen3-custom", stripped, "0.0000,0.0000,0.0000", 0.165, 0.21, 0.363, 0.0, Some(0.0003)),
        ("qwen3-custom", stripped, "-0.0000,0.0000,0.0000", 0.637, 0.85, 0.0, 0.0, Some(0.0)),
        ("qwen3-custom", stripped, "0.000,0.000,0.000", 0.003, 0.01, 0.993, 0.0, Some(0.290)),
        ("llama-3.2-chem", fixed, "0.0000,0.0000,0.0000", 0.0, 0.0, 0.5, 0.0, Some(0.0004)),
        ("llama-3.2-chem", fixed, "0.000,0.000,0.000", 0.0, 0.0, 1.0, 0.5, None),
    ];
    for (name, field, dialect) in [
        ("qwen3-custom", fixed, Dialect::Fixed),
        ("qwen3-custom", stripped, Dialect::Stripped),
        ("llama-3.2-chem", fixed, Dialect::Fixed),
    ] {
        let texts = eight_hundred(&shared, field);
        let corpus = corpus_of(folder.path(), &texts);
        let tokenizer = Tokenizer::load(&shared.join("tokenizers").join(name)).unwrap();
        let hf = tokenizer.inner().clone();
        let report = fit(&plan(vec![tokenizer], dialect, false), &corpus, &Job::default()).unwrap();
        let result = &report.results[0];
        assert_equals_reference(&hf, &texts, result);
        for row in table.iter().filter(|row| row.0 == name && row.1 == field) {
            let measured = result.candidates.iter().find(|c| c.placeholder == row.2).unwrap().measures;
            assert!((measured.junk_blocks - row.3).abs() <= 0.001, "{row:?}: {measured:?}");
            assert!((measured.junk_tokens_per_block - row.4).abs() <= 0.006, "{row:?}: {measured:?}");
            assert!((measured.truncated_blocks - row.5).abs() <= 0.001, "{row:?}: {measured:?}");
            assert!((measured.unparsable_blocks - row.6).abs() <= 0.001, "{row:?}: {measured:?}");
            if let Some(rmsd) = row.7 {
                assert!((measured.rmsd_angstrom.unwrap() - rmsd).abs() <= 0.001, "{row:?}: {measured:?}");
            }
        }
    }
}

#[test]
fn every_certificate_of_the_shared_tokenizers_closes() {
    let Some(shared) = shared("certificates of the real tokenizers") else { return };
    let folder = tempfile::tempdir().unwrap();
    let corpus = corpus_of(folder.path(), &eight_hundred(&shared, "embedded_smiles"));
    for dialect in Dialect::ALL {
        let load = |name: &&str| Tokenizer::load(&shared.join("tokenizers").join(name)).unwrap();
        let plan = plan(SHARED_TOKENIZERS.iter().map(load).collect(), dialect, true);
        assert_certified(&fit(&plan, &corpus, &Job::default()).unwrap());
    }
}

/// Equal but for the last digits of floats: another system's logarithm may round differently.
fn alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= 1e-6 * a.abs().max(b.abs())
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| alike(a, b)))
        }
        _ => a == b,
    }
}

#[test]
fn committed_placeholders_are_what_fit_finds() {
    let mut plan = plan(Tokenizer::embedded().unwrap(), Dialect::Fixed, true);
    plan.dialects = DialectChoice::Auto;
    let report = fit(&plan, &Embedded, &Job::default()).unwrap();
    for name in ["qwen-like", "llama-like"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("placeholders/{name}.json"));
        let committed: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let found: Vec<_> = report.results.iter().filter(|result| result.tokenizer == name).collect();
        let found = serde_json::to_value(found).unwrap();
        assert!(
            alike(&found, &committed["results"]),
            "{name}: run `drift fit -o placeholders` again, see placeholders/README.md"
        );
    }
}
