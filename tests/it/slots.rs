//! `drift train-tokenizer --skeleton`: every number of a skeleton takes as many tokens, and other texts keep theirs. Tokens are
//! those of `tokenizers`.

use std::path::PathBuf;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use tokenizers::Tokenizer as HfTokenizer;

use crate::bases::fixture;
use crate::support::{Folder, drift, python, shared};

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

/// A built-in skeleton with another limit of a slot.
fn limited(name: &str, slot: &str, limit: f64) -> Value {
    let mut skeleton = skeleton(name);
    let slot = &mut skeleton["slots"][slot];
    slot["high"] = json!(limit);
    if slot["low"].as_f64() < Some(0.0) {
        slot["low"] = json!(-limit);
    }
    skeleton
}

/// A random text, with where each number begins and ends, white space before it included.
fn text(skeleton: &Value, species: &[&str], random: &mut ChaCha8Rng) -> (String, Vec<[usize; 2]>) {
    let name = skeleton["name"].as_str().unwrap();
    let most =
        |slot: &str, units: f64| (skeleton["slots"][slot]["high"].as_f64().unwrap() * units).round() as i32;
    let (mut text, mut numbers) = (String::new(), Vec::new());
    let number = |text: &mut String, numbers: &mut Vec<[usize; 2]>, space: &str, number: String| {
        numbers.push([text.len(), text.len() + space.len() + number.len()]);
        text.push_str(&format!("{space}{number}"));
    };
    match name {
        "xyz" => text.push_str(&format!("{}\n", species.len())),
        _ => {
            for at in 0..3 {
                let length = random.random_range(1..=most("length", 10.0));
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
                "xyz" => {
                    let most = most("coordinate", 100.0);
                    (" ", f64::from(random.random_range(-most..=most)) / 100.0)
                }
                _ => (["\n", " "][at.min(1)], f64::from(random.random_range(0..=100)) / 100.0),
            };
            number(&mut text, &mut numbers, space, format!("{value:.2}"));
        }
    }
    (text, numbers)
}

/// Extends a base, and checks the result with `tokenizers`. Returns the folder and the number of new tokens.
fn is_extended(base: &str, skeleton: &Value, tokens: usize) -> (Folder, u64) {
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
            let (text, numbers) = text(skeleton, species, &mut random);
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
    let new = report["new_tokens"].as_u64().unwrap();
    (folder, new)
}

#[test]
fn numbers_of_crystals_and_molecules_take_equally_many_tokens() {
    let small = limited("crystal-text", "length", 999.9);
    // White space, and a number of two parts: integers are whole, a fraction is a token with its point.
    let crystals = is_extended("qwen-like", &small, 2).1;
    let molecules = is_extended("qwen-like", &skeleton("xyz"), 3).1;
    assert!(crystals > 1_000 && molecules < 1_000, "{crystals}, {molecules}");
}

/// SentencePiece marks the white space before a number, and puts some before a text, which may begin with a number.
#[test]
fn sentencepiece_takes_equally_many_tokens_for_numbers_too() {
    let base = |name: &str| fixture(name).display().to_string();
    is_extended(&base("llama-2-like"), &limited("crystal-text", "length", 9.9), 2);
    is_extended(&base("gemma-like"), &limited("xyz", "coordinate", 0.99), 3);
}

/// transformers reads the results alike, also texts without such numbers.
#[test]
#[cfg_attr(not(has_transformers), ignore = "needs a Python with tokenizers and transformers")]
fn transformers_reads_extensions_for_numbers_alike() {
    for base in ["llama-2-like-untagged", "gemma-like", "mistral-v3-like"] {
        let crystal = limited("crystal-text", "length", 9.9);
        let (folder, _) = is_extended(&fixture(base).display().to_string(), &crystal, 2);
        let mut random = ChaCha8Rng::seed_from_u64(8);
        let own = SPECIES.iter().map(|species| text(&crystal, species, &mut random).0);
        let others =
            ["4.0", " 4.0 5.0 x", "90", "a 90\n", "Na\n0.25 0.5", "1.234 0.00", "<0x0A>", "x 0.", ""];
        let texts: Vec<String> = own.chain(others.map(String::from)).collect();
        let extended = drift::Tokenizer::load(&folder.path().join("out")).unwrap();
        let lines = |all: Vec<String>| all.join("\n") + "\n";
        folder.file("texts", lines(texts.iter().map(|text| json!(text).to_string()).collect()));
        let ids = |text: &String| json!(extended.ids(text).unwrap()).to_string();
        folder.file("ids", lines(texts.iter().map(ids).collect()));
        let said = python("python/ids.py", &folder.path(), &["out", "texts", "ids"]);
        assert!(said.contains("12 texts agree"), "{said}");
    }
}

#[test]
#[cfg_attr(not(has_shared), ignore = "needs the real tokenizers")]
fn a_real_tokenizer_is_extended() {
    is_extended(&real("llama-3.2"), &skeleton("crystal-text"), 2);
}

#[test]
#[cfg_attr(not(all(has_shared, all_tests)), ignore = "needs the real tokenizers, takes long: DRIFT_ALL=1")]
fn real_tokenizers_are_extended_for_both_texts() {
    for name in ["qwen3", "llama-3.2", "mistral-v1"] {
        is_extended(&real(name), &skeleton("xyz"), 3);
        is_extended(&real(name), &skeleton("crystal-text"), 2);
    }
    is_extended(&real("gemma3"), &skeleton("xyz"), 3);
    // Its line breaks are added tokens, which stand before numbers.
    let folder = folder(&skeleton("crystal-text"));
    let files = "--skeleton skeleton.json --prompts prompts.jsonl --tokens-per-block 2 -o out";
    let ran = folder.line(&format!("train-tokenizer --base {} {files}", real("gemma3")));
    ran.refused_for("give a skeleton with other white space before numbers");
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
