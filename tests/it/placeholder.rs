//! Replay, search and certificate, against a reference that shares no code with the fast path.

use std::path::Path;

use drift::corpus::{Conformers, EmbeddedConformers, Files, ReadOptions};
use drift::encoding::{Encoding, Fixed, Precision, Reading};
use drift::job::Job;
use drift::placeholder::{EncodingChoice, FitPlan, FitReport, FitResult, Objective, Space, fit};
use drift::tokenizer::Tokenizer;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde_json::Value;
use tokenizers::Tokenizer as HfTokenizer;

use crate::counting::fixture_tokenizer as fixture;
use crate::support::{SHARED_TOKENIZERS, drift as run, shared, shared_texts, sized};

fn plan(tokenizers: Vec<Tokenizer>, encoding: Encoding, classes: bool) -> FitPlan {
    FitPlan {
        tokenizers,
        encodings: EncodingChoice::Only(encoding),
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

/// The same, read as an encoding is written.
fn corpus_in(encoding: Encoding, folder: &Path, texts: &[String]) -> Files {
    let options = ReadOptions { reading: Reading::new(encoding), ..ReadOptions::default() };
    Files { options, ..corpus_of(folder, texts) }
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
            let place = format!("{} {:?} {}", result.tokenizer, result.encoding, candidate.placeholder);
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

/// The texts of the embedded corpus in an encoding; decimals beyond the fourth are drawn.
fn embedded_texts(encoding: Encoding, limit: usize) -> Vec<String> {
    let mut texts = Vec::new();
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let own = encoding.precision().min(Precision::FOUR);
    EmbeddedConformers {
        reading: Reading::new(Encoding::FIXED.with_precision(own)),
        ..EmbeddedConformers::default()
    }
    .read(&Job::default(), &mut |batch| {
        for conformer in batch.conformers.iter().take(limit) {
            let mut longer = |value: Fixed| {
                let more = encoding.precision().convert(1, own);
                value * more + value.signum() * random.random_range(0..more)
            };
            let coordinates: Vec<[Fixed; 3]> =
                conformer.coordinates.iter().map(|block| block.map(&mut longer)).collect();
            texts.push(drift::text::write(&conformer.skeleton, &coordinates, encoding));
        }
        Ok(())
    })
    .unwrap();
    texts.truncate(limit);
    texts
}

#[test]
fn equals_the_reference_on_the_embedded_corpus() {
    let folder = tempfile::tempdir().unwrap();
    for encoding in Encoding::ALL {
        let texts = embedded_texts(encoding, 120);
        let corpus = corpus_in(encoding, folder.path(), &texts);
        let report =
            fit(&plan(Tokenizer::embedded().unwrap(), encoding, false), &corpus, &Job::default()).unwrap();
        for (result, tokenizer) in report.results.iter().zip(Tokenizer::embedded().unwrap()) {
            assert_equals_reference(tokenizer.inner(), &texts, result);
        }
    }
}

#[test]
fn so_it_does_with_other_decimals_and_spaces() {
    let folder = tempfile::tempdir().unwrap();
    let decimals = sized(&[1, 2, 3, 5][..], &[2]);
    let precisions = decimals.iter().map(|decimals| Precision::new(*decimals).unwrap());
    for encoding in precisions.flat_map(Encoding::both) {
        let texts = embedded_texts(encoding, 40);
        let mut tokenizers = Tokenizer::embedded().unwrap();
        tokenizers.push(fixture("gpt2-like"));
        for tokenizer in tokenizers {
            let hf = tokenizer.inner().clone();
            let result = no_random_string_is_better(tokenizer, encoding, &texts, strings() / 10);
            assert!(result.proved && result.encoding == encoding, "{} {encoding:?}", result.tokenizer);
            assert_equals_reference(&hf, &texts, &result);
        }
        // The separator decides which tokens there are, not what a cut does.
        let spaced = encoding.with_spaces(true);
        let texts = embedded_texts(spaced, 10);
        let corpus = corpus_in(spaced, folder.path(), &texts);
        let mut plan = plan(Tokenizer::embedded().unwrap(), spaced, false);
        plan.candidates = vec!["0.000 0.000 0.000".to_owned()];
        let report = fit(&plan, &corpus, &Job::default()).unwrap();
        for (result, tokenizer) in report.results.iter().zip(&plan.tokenizers) {
            assert_eq!(result.encoding, spaced);
            let placeholder = &result.placeholder;
            assert!(drift::encoding::is_three_numbers(placeholder, " "), "{placeholder}");
            let free = free_ends(tokenizer.inner(), &format!("[C]<{placeholder}>[C]<{placeholder}>"));
            assert_eq!(free[1].1.len(), result.free_tokens as usize, "{placeholder}");
        }
    }
}

#[test]
fn every_certificate_of_the_embedded_default_closes() {
    let mut plan = plan(Tokenizer::embedded().unwrap(), Encoding::FIXED, true);
    plan.encodings = EncodingChoice::Auto;
    let report = fit(&plan, &EmbeddedConformers::default(), &Job::default()).unwrap();
    assert_eq!(report.results.len(), 4);
    assert_certified(&report);
}

fn assert_certified(report: &FitReport) {
    for result in &report.results {
        let place = format!("{} {:?}", result.tokenizer, result.encoding);
        assert!(result.exact && result.proved, "{place}: {}", result.statement);
        for certificate in [&result.certificate, &result.without_tolerance.certificate] {
            let certificate = certificate.as_ref().unwrap();
            assert_eq!((certificate.gap, &certificate.proof), ([0.0; 3], &None), "{place}");
        }
        assert!(result.search.reached_chosen, "{place}");
        for partition in &result.classes {
            assert_eq!(partition.certificate.gap, [0.0; 3], "{place}, {}", partition.partition.name());
            let single_is_no_better = partition.certificate.objective <= partition.single;
            assert!(single_is_no_better, "{place}, {}", partition.partition.name());
        }
    }
}

#[test]
fn argmin_reaches_what_was_constructed_from_many_seeds() {
    let folder = tempfile::tempdir().unwrap();
    for encoding in Encoding::ALL {
        let corpus = corpus_of(folder.path(), &embedded_texts(encoding, 40));
        for seed in 0..sized(20, 3) {
            let mut plan = plan(Tokenizer::embedded().unwrap(), encoding, seed < 3);
            plan.seed = seed;
            let report = fit(&plan, &corpus, &Job::default()).unwrap();
            for result in &report.results {
                let search = &result.search;
                let place = format!("{} {encoding:?} seed {seed}: {search:?}", result.tokenizer);
                assert!(search.reached_chosen && search.reached_bound, "{place}");
                assert!(search.evaluations_to_best < search.evaluations && search.strings > 1e13, "{place}");
                for partition in &result.classes {
                    assert!(partition.search_reached_bound, "{place}: {}", partition.partition.name());
                }
            }
        }
    }
}

#[test]
#[cfg_attr(not(has_shared), ignore = "needs ../shared or DRIFT_SHARED")]
fn the_design_table_comes_out_and_equals_the_reference() {
    let shared = shared();
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
    for (name, field, encoding) in [
        ("qwen3-custom", fixed, Encoding::FIXED),
        ("qwen3-custom", stripped, Encoding::STRIPPED),
        ("llama-3.2-chem", fixed, Encoding::FIXED),
    ] {
        let texts = eight_hundred(&shared, field);
        let corpus = corpus_of(folder.path(), &texts);
        let tokenizer = Tokenizer::load(&shared.join("tokenizers").join(name)).unwrap();
        let hf = tokenizer.inner().clone();
        let report = fit(&plan(vec![tokenizer], encoding, false), &corpus, &Job::default()).unwrap();
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
#[cfg_attr(not(has_shared), ignore = "needs ../shared or DRIFT_SHARED")]
fn every_certificate_of_the_shared_tokenizers_closes() {
    let shared = shared();
    let folder = tempfile::tempdir().unwrap();
    let corpus = corpus_of(folder.path(), &eight_hundred(&shared, "embedded_smiles"));
    for encoding in sized(&Encoding::ALL[..], &[Encoding::FIXED]).iter().copied() {
        let load = |name: &&str| Tokenizer::load(&shared.join("tokenizers").join(name)).unwrap();
        let plan = plan(SHARED_TOKENIZERS.iter().map(load).collect(), encoding, true);
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
    let mut plan = plan(Tokenizer::embedded().unwrap(), Encoding::FIXED, true);
    plan.encodings = EncodingChoice::Auto;
    let report = fit(&plan, &EmbeddedConformers::default(), &Job::default()).unwrap();
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

/// Fixtures that position templates can be used with.
const TEMPLATE_FIXTURES: [&str; 8] = [
    "gpt2-like",
    "gemma-like",
    "llama-2-like",
    "llama-2-like-untagged",
    "mistral-v3-like",
    "o200k-like",
    "unigram-like",
    "unigram-digits-like",
];

/// F of a placeholder in every block of some texts, by the reference; they must be alike.
fn reference_free(tokenizer: &HfTokenizer, texts: &[String], placeholder: &str) -> usize {
    let inside = regex_lite_blocks();
    let mut counts = texts.iter().flat_map(|text| {
        let template = format!("[CONFORMER]{}[/CONFORMER]", inside(text, placeholder));
        free_ends(tokenizer, &template).into_iter().map(|(_, ends)| ends.len()).collect::<Vec<_>>()
    });
    let first = counts.next().unwrap();
    assert!(counts.all(|count| count == first), "`{placeholder}` takes other tokens in other places");
    first
}

/// By F, `(unparsable blocks, excess RMSD, junk slots)`, straight from the definition: slow, and obviously right.
fn reference_harms(tokenizer: &HfTokenizer, texts: &[String], tolerance: f64) -> Vec<(f64, f64, f64)> {
    let real: Vec<_> =
        texts.iter().map(|text| free_ends(tokenizer, &format!("[CONFORMER]{text}[/CONFORMER]"))).collect();
    let harm = |free: usize| {
        let (mut unparsable, mut junk, mut rmsds) = (0.0, 0.0, Vec::new());
        for blocks in &real {
            let (mut squares, mut lost) = (0.0, false);
            for (block, ends) in blocks {
                junk += free.saturating_sub(ends.len()) as f64;
                let cut = ends.get(free.wrapping_sub(1)).copied().unwrap_or(if free == 0 {
                    0
                } else {
                    block.len()
                });
                match three_numbers(&block[..cut]) {
                    Some(left) => {
                        let whole = three_numbers(block).unwrap();
                        squares += left.iter().zip(whole).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
                    }
                    None => {
                        unparsable += 1.0;
                        lost = true;
                    }
                }
            }
            rmsds.extend((!lost).then(|| (squares / blocks.len() as f64).sqrt()));
        }
        let mean = rmsds.iter().sum::<f64>() / rmsds.len().max(1) as f64;
        (unparsable, (mean - tolerance).max(0.0), junk)
    };
    (0..=40).map(harm).collect()
}

/// Fits, then draws random strings of every shape: none may do less harm than the chosen placeholder, as the reference
/// tokenises and replays both.
fn no_random_string_is_better(
    tokenizer: Tokenizer,
    encoding: Encoding,
    texts: &[String],
    strings: u64,
) -> FitResult {
    let folder = tempfile::tempdir().unwrap();
    let hf = tokenizer.inner().clone();
    let mut plan = plan(vec![tokenizer], encoding, false);
    plan.candidates = vec!["-1.2937,-4.8361,-9.5174".to_owned(), "12.3456,-0.0001,7".to_owned()];
    let report = fit(&plan, &corpus_in(encoding, folder.path(), texts), &Job::default()).unwrap();
    let result = &report.results[0];
    let place = format!("{} {encoding:?}", result.tokenizer);
    assert!(result.exact, "{place}: {}", result.statement);
    let places = &texts[..2];
    let rules = [(1e-3, &result.placeholder), (0.0, &result.without_tolerance.placeholder)].map(
        |(tolerance, chosen)| {
            let harms = reference_harms(&hf, texts, tolerance);
            let least = harms[reference_free(&hf, places, chosen)];
            (harms, least, chosen)
        },
    );
    // A little slack for sums of floats.
    let no_better = |string: &str, free: usize| {
        for (harms, least, chosen) in &rules {
            let one = harms[free];
            let less = (one.0, one.1 + 1e-12, one.2) < *least;
            assert!(!less, "{place}: {string} of {free} tokens, {one:?}, beats {chosen}, {least:?}");
        }
    };
    for candidate in &result.candidates {
        no_better(&candidate.placeholder, candidate.free_tokens as usize);
    }
    (0..strings).into_par_iter().for_each(|seed| {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let string = Space(encoding).text(&Space(encoding).random(&mut random));
        no_better(&string, reference_free(&hf, places, &string));
    });
    result.clone()
}

/// How many strings: a few, or as many as the environment asks for.
fn strings() -> u64 {
    let usual = sized(600, 60);
    std::env::var("DRIFT_RANDOM_STRINGS").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

#[test]
fn no_random_string_beats_the_chosen_placeholder() {
    for encoding in Encoding::ALL {
        let texts = embedded_texts(encoding, sized(60, 25));
        let mut tokenizers = Tokenizer::embedded().unwrap();
        tokenizers.extend(TEMPLATE_FIXTURES.into_iter().take(sized(usize::MAX, 2)).map(fixture));
        for name in ["qwen-like-separate", "llama-like-separate"] {
            tokenizers.push(Tokenizer::load(Path::new(name)).unwrap());
        }
        for tokenizer in tokenizers {
            let result = no_random_string_is_better(tokenizer, encoding, &texts, strings());
            assert!(result.proved, "{} {encoding:?}: {}", result.tokenizer, result.statement);
        }
    }
}

#[test]
#[cfg_attr(not(has_shared), ignore = "needs ../shared or DRIFT_SHARED")]
fn no_random_string_beats_the_chosen_placeholder_of_a_shared_tokenizer() {
    let shared = shared();
    for (encoding, field) in
        [(Encoding::FIXED, "embedded_smiles"), (Encoding::STRIPPED, "embedded_smiles_stripped")]
    {
        let texts: Vec<String> = eight_hundred(&shared, field).into_iter().step_by(sized(16, 40)).collect();
        for name in SHARED_TOKENIZERS {
            let tokenizer = Tokenizer::load(&shared.join("tokenizers").join(name)).unwrap();
            let result = no_random_string_is_better(tokenizer, encoding, &texts, strings() / 4);
            assert!(result.proved, "{} {encoding:?}: {}", result.tokenizer, result.statement);
        }
    }
}

/// A candidate outside the encoding's space, or with digits that no shape stands for, is chosen where it is best.
#[test]
fn the_choice_ranges_over_candidates_too() {
    let folder = tempfile::tempdir().unwrap();
    let texts = vec!["[C]<0.5000,1.2000,0.3000>[C]<1.5000,0.2000,2.3000>".to_owned()];
    let hf = fixture("gpt2-like").inner().clone();
    let mut plan = plan(vec![fixture("gpt2-like")], Encoding::FIXED, false);
    plan.candidates = vec!["1,2,3".to_owned(), "0.12,0.5,7.25".to_owned()];
    let report = fit(&plan, &corpus_of(folder.path(), &texts), &Job::default()).unwrap();
    let result = &report.results[0];
    let chosen = reference_harms(&hf, &texts, 1e-3)[result.free_tokens as usize];
    for candidate in &result.candidates {
        assert!(chosen <= reference_harms(&hf, &texts, 1e-3)[candidate.free_tokens as usize]);
    }
    assert_eq!(result.candidates[0].free_tokens, result.free_tokens);
}

/// A block beyond the range of an extended tokenizer wants 21 tokens, the others 9; no string takes what would suit best.
#[test]
fn where_no_string_reaches_the_bound_the_proof_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let mut texts = embedded_texts(Encoding::FIXED, 20);
    texts.push("[C]<25.1234,0.1234,0.1234>[O]<1.0000,2.0000,3.0000>".to_owned());
    let load = || Tokenizer::load(Path::new("qwen-like-separate")).unwrap();
    let report =
        fit(&plan(vec![load()], Encoding::FIXED, false), &corpus_of(folder.path(), &texts), &Job::default());
    let result = report.unwrap().results.remove(0);
    let certificate = result.certificate.as_ref().unwrap();
    assert!(certificate.gap[..2] == [0.0; 2] && certificate.gap[2] > 0.0, "{certificate:?}");
    let proof = certificate.proof.as_ref().unwrap();
    assert!(
        proof
            .contains("20 FREE tokens would do less harm, but three numbers of the dialect take 9 or 21 to ")
    );
    // Its pre-tokenizer cuts blocks by their shape; that is tried, and said.
    assert!(proof.contains("not proved") && !result.proved, "{proof}");
    assert!(result.statement.contains(proof.as_str()), "{}", result.statement);
    no_random_string_is_better(load(), Encoding::FIXED, &texts, strings());
}

/// Tokens that share characters of a block with the text around it would be forced.
#[test]
fn tokenizers_whose_tokens_cross_a_bracket_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let corpus = corpus_of(folder.path(), &embedded_texts(Encoding::FIXED, 20));
    let load = |name: &str| Tokenizer::load(Path::new(name)).unwrap();
    for (tokenizer, encoding, tokens) in [
        (load("qwen-like-fused"), Encoding::FIXED, &["<-0.", "<0."][..]),
        (load("llama-like-fused"), Encoding::FIXED, &["<-0."]),
        // One of three fixed numbers in nine is such a block in the stripped encoding too.
        (load("qwen-like-fused"), Encoding::STRIPPED, &["<-0."]),
        (fixture("border-bracket-minus"), Encoding::FIXED, &["]<-"]),
        (fixture("border-open-minus"), Encoding::STRIPPED, &["<-"]),
    ] {
        let name = tokenizer.name.clone();
        let report =
            fit(&plan(vec![load("qwen-like"), tokenizer], encoding, false), &corpus, &Job::default())
                .unwrap();
        assert_eq!(report.results.len(), 1, "{name}");
        let refused = &report.refused[0];
        assert_eq!((&refused.tokenizer, refused.encoding), (&name, encoding));
        for token in tokens {
            assert!(refused.tokens.iter().any(|known| known == token), "{name}: {:?}", refused.tokens);
        }
        assert!(refused.token_count >= tokens.len() as u64 && refused.instead.contains("automaton"));
    }
    let ran = run(&["fit", "--tokenizer", "qwen-like-fused", "--no-classes"]);
    assert_eq!((ran.code, ran.stdout.as_slice()), (Some(2), &b""[..]));
    assert!(ran.stderr.contains("<-0.") && ran.stderr.contains("export-grammar"), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1);
}

/// Of equal ones the users' placeholder, and what the tolerance decided is shown.
#[test]
fn ties_go_to_what_users_have_and_the_tolerance_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    for encoding in Encoding::ALL {
        let corpus = corpus_of(folder.path(), &embedded_texts(encoding, 200));
        let report =
            fit(&plan(Tokenizer::embedded().unwrap(), encoding, true), &corpus, &Job::default()).unwrap();
        for result in &report.results {
            assert_eq!(result.placeholder, "0.0000,0.0000,0.0000", "{} {encoding:?}", result.tokenizer);
            let classes = result.classes.iter().flat_map(|partition| &partition.classes);
            assert!(classes.into_iter().all(|class| class.placeholder != "-0.0001,0.0001,0.001"));
            // Half of the blocks lose a digit; without a tolerance that is harm.
            let strict = result.front.iter().find(|c| c.free_tokens == result.without_tolerance.free_tokens);
            let [chosen, strict] = [result.free_tokens, strict.unwrap().free_tokens];
            assert!(strict > chosen, "{} {encoding:?}: {strict} {chosen}", result.tokenizer);
            assert!(result.front.iter().any(|candidate| candidate.free_tokens == chosen));
            for (index, one) in result.front.iter().enumerate() {
                let figures = |c: &drift::placeholder::CandidateReport| {
                    let m = &c.measures;
                    let rmsd = m.rmsd_angstrom.unwrap_or(f64::INFINITY);
                    [m.unparsable_blocks, rmsd, m.junk_tokens_per_block, m.truncated_blocks]
                };
                let beaten = |other: &drift::placeholder::CandidateReport| {
                    figures(other).iter().zip(figures(one)).all(|(other, one)| *other <= one)
                };
                assert!(result.front.iter().enumerate().all(|(at, other)| at == index || !beaten(other)));
            }
        }
    }
}

/// Samples are of the whole corpus, by seed.
#[test]
fn intervals_and_classes_are_of_the_whole_corpus() {
    let folder = tempfile::tempdir().unwrap();
    // 11,000 conformers that fit, then 11,000 whose x has a sign: a prefix would not know of them.
    let row = |sign: &str, n: usize| {
        format!(
            "[C]<{sign}0.{:04},0.1234,0.5678>[O]<{sign}0.1234,0.1234,0.{:04}>",
            n % 9_999 + 1,
            n % 999 + 1
        )
    };
    let texts: Vec<String> =
        ["", "-"].into_iter().flat_map(|sign| (0..11_000).map(move |n| row(sign, n))).collect();
    let rows = texts.iter().enumerate().map(|(n, text)| {
        serde_json::json!({"canonical_smiles": format!("C{n}"), "embedded_smiles": text}).to_string()
    });
    let path = folder.path().join("halves.jsonl");
    std::fs::write(&path, rows.collect::<Vec<_>>().join("\n")).unwrap();
    let corpus = Files { inputs: vec![path], options: ReadOptions::default() };
    let fitted = |seed: u64| {
        let tokenizer = Tokenizer::load(Path::new("qwen-like")).unwrap();
        let plan = FitPlan { seed, ..plan(vec![tokenizer], Encoding::FIXED, false) };
        fit(&plan, &corpus, &Job::default()).unwrap().results.remove(0)
    };
    let result = fitted(0);
    assert_eq!((result.class_conformers, result.intervals.conformers), (10_000, 10_000));
    let truncated = result.intervals.truncated_blocks.unwrap();
    assert!(truncated.contains(0.5) && truncated.high - truncated.low < 0.05, "{truncated:?}");
    assert_eq!(result.intervals, fitted(0).intervals);
    assert_ne!(result.intervals, fitted(1).intervals);
}
