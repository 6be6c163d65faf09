//! Other decimals than four, and spaces for commas, through the whole program: a corpus is cut as an encoder would have cut
//! it, and what is fitted, trained and generated has the numbers that were asked for.

use drift::corpus::EmbeddedConformers;
use drift::encoding::{Encoding, Reading};
use drift::text::write;
use serde_json::{Value, json};

use crate::support::{Folder, conformers, words};

fn three() -> Reading {
    Reading::new("fixed-3".parse().unwrap()).cutting(true)
}

/// The first conformers of the embedded corpus as a file of texts in an encoding.
fn corpus(folder: &Folder, name: &str, encoding: Encoding) {
    let reading = Reading { cut: true, ..Reading::new(encoding) };
    let all = conformers(&EmbeddedConformers { reading, ..EmbeddedConformers::default() });
    let rows = all[..120].iter().map(|conformer| {
        let text = write(&conformer.skeleton, &conformer.coordinates, encoding);
        json!({"canonical_smiles": &*conformer.molecule, "embedded_smiles": text}).to_string()
    });
    folder.file(name, rows.collect::<Vec<_>>().join("\n"));
}

/// What `fit` finds, without what names the input.
fn fitted(folder: &Folder, arguments: &[&str]) -> Value {
    let common = ["fit", "--json", "--no-classes", "--tokenizer", "qwen-like", "--dialect", "fixed"];
    let mut report = folder.drift(&[&common[..], arguments].concat()).good().json();
    report["results"].take()
}

#[test]
fn a_corpus_is_cut_as_an_encoder_would_have_cut_it() {
    let folder = Folder::new();
    corpus(&folder, "four.jsonl", Encoding::FIXED);
    corpus(&folder, "three.jsonl", three().encoding);
    let mined = ["mine", "four.jsonl", "--decimals", "3", "-o", "three.h5", "--json"];
    let mined = folder.drift(&mined).good().json();
    let written = folder.drift(&["mine", "three.jsonl", "--decimals", "3", "--json"]).good().json();
    assert_eq!((&mined["axes"], &mined["blocks"]), (&written["axes"], &written["blocks"]));
    assert_eq!(mined["axes"][0]["trailing_zeros"].as_array().unwrap().len(), 4);

    let from_text = fitted(&folder, &["--decimals", "3", "--corpus", "three.jsonl"]);
    assert_eq!((&from_text[0]["dialect"], &from_text[0]["proved"]), (&json!("fixed-3"), &json!(true)));
    let placeholder = from_text[0]["placeholder"].as_str().unwrap();
    assert!(
        placeholder.split(',').all(|number| number.split_once('.').unwrap().1.len() == 3),
        "{placeholder}"
    );
    assert_eq!(fitted(&folder, &["--decimals", "3", "--corpus", "four.jsonl"]), from_text);
    assert_eq!(fitted(&folder, &["--decimals", "3", "--corpus", "three.h5"]), from_text);
}

#[test]
fn decimals_that_were_not_asked_for_are_said() {
    let folder = Folder::new();
    corpus(&folder, "four.jsonl", Encoding::FIXED);
    folder.drift(&["mine", "four.jsonl", "--decimals", "3", "-o", "three.h5", "-q"]).good();
    let refused = |arguments: &[&str], part: &str| {
        let ran = folder.drift(arguments);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(part) && ran.stderr.lines().count() == 1, "{}", ran.stderr);
    };
    refused(&["fit", "-q", "--corpus", "three.h5"], "its coordinates have three decimals, not four");
    refused(&["fit", "-q", "--corpus", "three.h5"], "read it with --decimals 3");
    refused(&["fit", "-q", "--corpus", "three.h5", "--decimals", "5"], "not five");
    refused(&["fit", "-q", "--decimals", "5"], "the built-in corpus: has four decimals, not five");
    refused(&["fit", "-q", "--decimals", "5"], "give --corpus");
    assert_eq!(folder.drift(&["fit", "--decimals", "7"]).code, Some(2));
    let whole = folder.drift(&["mine", "four.jsonl", "--decimals", "0", "--json", "-q"]).good().json();
    assert_eq!(whole["encoding"], "fixed-0");
    let extended = "train-tokenizer --base qwen-like --tokens-per-block 9 --decimals 0 -o extended";
    refused(&words(extended), "numbers without decimals");
    // Fewer than a store has are cut from it.
    folder.drift(&["mine", "three.h5", "--decimals", "2", "-q"]).good();
    // Numbers that are too long are skipped one by one where nothing was asked for.
    folder.file("five.txt", "[C]<1.23456,0.00000,0.00000>\n[C]<1.2345,0.0000,0.0000>\n");
    let report = folder.drift(&["mine", "five.txt", "--json"]).good().json();
    assert_eq!((&report["conformers"], &report["skipped"]), (&json!(1), &json!(1)));
    let reason = &report["skipped_records"][0]["reason"];
    assert_eq!(reason, "byte 4: number `1.23456`: more than four decimals");
    let report = folder.drift(&["mine", "five.txt", "--decimals", "5", "--json"]).good().json();
    assert_eq!((&report["conformers"], &report["axes"][0]["summary"]["max"]), (&json!(2), &json!(1.23456)));
}

/// Trains a tiny model, generates with it, and says what its texts' blocks hold.
fn generated(folder: &Folder, name: &str, blocks: &[&str]) -> (Value, Vec<String>) {
    corpus(folder, "four.jsonl", Encoding::FIXED);
    folder.file("some.smi", "CO\nCC=O\nc1ccccc1N\n");
    let shape =
        "--hidden 32 --layers 1 --heads 2 --kv-heads 1 --head-dim 16 --intermediate 48 --context 1024";
    let schedule = "--steps 2 --batch-tokens 1500 --warmup 1 -q --json";
    let mut train = vec!["train-model", "--tokenizer", "qwen-like", "--arch", "qwen3", "-o", name];
    if !blocks.contains(&"space") {
        train.extend(["--corpus", "four.jsonl"]);
    }
    train.extend(blocks.iter().copied().chain(shape.split(' ')).chain(schedule.split(' ')));
    folder.drift(&train).good();
    let recipe: Value = serde_json::from_slice(&folder.read(&format!("{name}/recipe.json"))).unwrap();

    let eval = ["eval", "--model", name, "--smiles", "some.smi", "--samples", "3", "--generations", "2"];
    let others = ["--lp", "automaton,allowlist", "--texts", "texts.jsonl", "--json", "-q"];
    let report = folder.drift(&[&eval[..], &others].concat()).good().json();
    for run in report["runs"].as_array().unwrap() {
        assert_eq!(run["dialect"], recipe["recipe"]["dialect"], "eval takes the encoding from the recipe");
        let flaws = ["graph_mismatch", "parse_failures", "no_eos", "junk_blocks_strict", "invented_blocks"];
        if run["lp"] == "automaton" {
            assert_eq!(run["passed"], run["samples"]);
            assert!(flaws.iter().all(|field| run[*field] == 0), "{run}");
        }
    }
    let audit = ["audit", "texts.jsonl", "--model", name, "--tokenizer", name, "--json"];
    let audited = folder.drift(&audit).good().json();
    assert!(
        audited["total"]["drift"].is_object(),
        "drift is counted against a placeholder with this separator"
    );
    assert_eq!(audited["dialect"], recipe["recipe"]["dialect"]);
    let texts = String::from_utf8(folder.read("texts.jsonl")).unwrap();
    let of_automaton = texts.lines().filter(|line| line.contains(r#""lp":"automaton""#));
    let inside = of_automaton.flat_map(|line| {
        let text: Value = serde_json::from_str(line).unwrap();
        let text = text["text"].as_str().unwrap().to_owned();
        let ranges = drift::tokenizer::block_ranges(&text);
        ranges.into_iter().map(|range| text[range].to_owned()).collect::<Vec<_>>()
    });
    (recipe["recipe"]["dialect"].clone(), inside.collect())
}

#[test]
fn a_model_of_three_decimals_writes_three() {
    let folder = Folder::new();
    let (encoding, blocks) = generated(&folder, "three", &["--decimals", "3"]);
    assert_eq!(encoding, "fixed-3");
    assert!(!blocks.is_empty());
    for block in blocks {
        let numbers: Vec<&str> = block.split(',').collect();
        assert_eq!(numbers.len(), 3, "{block}");
        assert!(numbers.iter().all(|number| number.split_once('.').unwrap().1.len() == 3), "{block}");
    }
}

#[test]
fn a_model_of_spaces_writes_spaces() {
    let folder = Folder::new();
    let (encoding, blocks) =
        generated(&folder, "spaces", &["--decimals", "2", "--separator", "space", "--dialect", "stripped"]);
    assert_eq!(encoding, "stripped-2-spaces");
    assert!(!blocks.is_empty());
    for block in blocks {
        assert!(drift::encoding::is_three_numbers(&block, " "), "{block}");
    }
}
