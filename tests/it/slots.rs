//! `drift train-tokenizer --skeleton`: every number of a skeleton takes as many tokens, and other texts keep theirs. Tokens are
//! those of `tokenizers`.

use std::path::PathBuf;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use tokenizers::Tokenizer as HfTokenizer;

use crate::support::{Folder, drift, shared};

/// A built-in skeleton without its second end, which takes a token more.
fn skeleton(name: &str) -> Value {
    let path = format!("{}/src/core/skeleton/builtin/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let mut skeleton: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    skeleton["ends"] = json!([""]);
    skeleton
}

/// A folder with the skeleton and prompts of three molecules or crystals.
fn folder(skeleton: &Value) -> Folder {
    let folder = Folder::new();
    folder.file("skeleton.json", skeleton.to_string());
    let prompts = SPECIES.map(|species| json!({ "species": species }).to_string());
    folder.file("prompts.jsonl", prompts.join("\n"));
    folder
}

const SPECIES: [&[&str]; 3] = [&["Na", "Cl"], &["C", "H", "H", "H", "H"], &["Ba", "Ti", "O", "O", "O"]];

/// A random text, with where each number begins and ends, white space before it included.
fn text(name: &str, species: &[&str], random: &mut ChaCha8Rng) -> (String, Vec<[usize; 2]>) {
    let (mut text, mut numbers) = (String::new(), Vec::new());
    let number = |text: &mut String, numbers: &mut Vec<[usize; 2]>, space: &str, number: String| {
        numbers.push([text.len(), text.len() + space.len() + number.len()]);
        text.push_str(&format!("{space}{number}"));
    };
    match name {
        "xyz" => text.push_str(&format!("{}\n", species.len())),
        _ => {
            for at in 0..3 {
                let length = random.random_range(1..=9_999);
                number(
                    &mut text,
                    &mut numbers,
                    ["", " "][at.min(1)],
                    format!("{}.{}", length / 10, length % 10),
                );
            }
            for at in 0..3 {
                let angle = random.random_range(0..=180);
                number(&mut text, &mut numbers, ["\n", " "][at.min(1)], angle.to_string());
            }
        }
    }
    for atom in species {
        text.push_str(&format!("\n{atom}"));
        for at in 0..3 {
            let (space, value) = match name {
                "xyz" => (" ", f64::from(random.random_range(-9_999..=9_999)) / 100.0),
                _ => (["\n", " "][at.min(1)], f64::from(random.random_range(0..=100)) / 100.0),
            };
            number(&mut text, &mut numbers, space, format!("{value:.2}"));
        }
    }
    (text, numbers)
}

/// Extends a base, and checks the result with `tokenizers`.
fn is_extended(base: &str, name: &str, skeleton: &Value, tokens: usize) -> u64 {
    let folder = folder(skeleton);
    let files = "--skeleton skeleton.json --prompts prompts.jsonl";
    let aim = format!("--tokens-per-block {tokens} -o out --json");
    let report = folder.line(&format!("train-tokenizer --base {base} {files} {aim}")).good().json();
    assert_eq!((&report["schema"], &report["constant"]), (&json!("drift.train-slots/1"), &json!(3)));
    let new: Value = serde_json::from_slice(&folder.read("out/new_tokens.json")).unwrap();
    assert_eq!(json!(new["new_tokens"].as_array().unwrap().len()), report["new_tokens"]);
    let counted = folder.line(&format!("inspect --tokenizer out {files} --json")).good().json();
    assert_eq!(counted["constant"], 3, "{counted}");

    let load = |path: PathBuf| HfTokenizer::from_file(path).unwrap();
    let extended = load(folder.path().join("out/tokenizer.json"));
    let mut random = ChaCha8Rng::seed_from_u64(7);
    for (at, species) in SPECIES.iter().enumerate() {
        for _ in 0..100 {
            let (text, numbers) = text(name, species, &mut random);
            let encoded = extended.encode_fast(&*text, false).unwrap();
            // Offsets are characters; all are ASCII.
            let offsets = extended.encode(&*text, false).unwrap().get_offsets().to_vec();
            assert_eq!(json!([encoded.len(), encoded.len()]), counted["prompts"][at]["tokens"], "{text}");
            assert_eq!(extended.decode(encoded.get_ids(), false).unwrap(), text);
            for [from, to] in numbers {
                let of_number: Vec<_> =
                    offsets.iter().filter(|offset| offset.1 > from && offset.0 < to).collect();
                let spaced = text[from..].starts_with([' ', '\n']);
                let expected = if spaced { tokens } else { of_number.len() };
                assert_eq!(of_number.len(), expected, "{:?} in {text}", &text[from..to]);
                assert!(of_number.iter().all(|offset| offset.0 >= from && offset.1 <= to), "{text}");
            }
        }
    }
    report["new_tokens"].as_u64().unwrap()
}

#[test]
fn numbers_of_crystals_and_molecules_take_equally_many_tokens() {
    let mut small = skeleton("crystal-text");
    small["slots"]["length"]["high"] = json!(999.9);
    // White space, and a number of two parts: integers are whole, a fraction is a token with its point.
    let crystals = is_extended("qwen-like", "crystal-text", &small, 2);
    let molecules = is_extended("qwen-like", "xyz", &skeleton("xyz"), 3);
    assert!(crystals > 1_000 && molecules < 1_000, "{crystals}, {molecules}");
}

#[test]
#[cfg_attr(not(has_shared), ignore = "needs the real tokenizers")]
fn a_real_tokenizer_is_extended() {
    is_extended(&real("llama-3.2"), "crystal-text", &skeleton("crystal-text"), 2);
}

#[test]
#[cfg_attr(not(all(has_shared, all_tests)), ignore = "needs the real tokenizers, takes long: DRIFT_ALL=1")]
fn real_tokenizers_are_extended_for_both_texts() {
    is_extended(&real("qwen3"), "xyz", &skeleton("xyz"), 3);
    is_extended(&real("qwen3"), "crystal-text", &skeleton("crystal-text"), 2);
    is_extended(&real("llama-3.2"), "xyz", &skeleton("xyz"), 3);
}

fn real(name: &str) -> String {
    shared().join("tokenizers").join(name).display().to_string()
}

#[test]
fn what_cannot_be_extended_is_refused_in_one_line() {
    let folder = folder(&skeleton("crystal-text"));
    let run = |more: &str| {
        let line = "train-tokenizer --base qwen-like --prompts prompts.jsonl --skeleton";
        folder.line(&format!("{line} {more} -o out"))
    };
    run("skeleton.json --tokens-per-block 3").refused_for("give 1 to 2");
    run("skeleton.json --tokens-per-block 0").refused_for("give 1 to 2");
    run("skeleton.json --budget 5").refused_for("need more than 5 new tokens");
    run("skeleton.json --merges 5").refused_for("has no meaning beside --skeleton");
    run("skeleton.json --tokens-per-block 2 --range 5").refused_for("has no meaning beside --skeleton");
    run("skeleton.json --tokens-per-block 2 --corpus x.jsonl")
        .refused_for("has no meaning beside --skeleton");
    run("skeleton.json --tokens-per-block 2 --reuse unused").refused_for("has no meaning beside --skeleton");
    folder.file(
        "words.json",
        json!({
            "schema": "drift.skeleton/1", "name": "words", "slots": {"word": {"kind": "words", "words": ["a", "b"]}},
            "items": {}, "text": ["{word}\n"]
        })
        .to_string(),
    );
    run("words.json --tokens-per-block 1").refused_for("has no slot of numbers");
    let mut wide = skeleton("xyz");
    wide["slots"]["coordinate"]["decimals"] = json!(4);
    folder.file("wide.json", wide.to_string());
    run("wide.json --tokens-per-block 1").refused_for("too many for 1 tokens each");
    // An extension is no base.
    run("skeleton.json --tokens-per-block 2 --json").good();
    let again = folder.line(
        "train-tokenizer --base out --skeleton skeleton.json --prompts prompts.jsonl --tokens-per-block 2 -o more",
    );
    again.refused_for("was already extended by drift");
    assert!(!folder.path().join("more").exists());
    drift(&["train-tokenizer", "--base", "qwen-like", "--skeleton", "xyz", "--budget", "9", "-o", "x"])
        .refused_usage("--prompts");
}
