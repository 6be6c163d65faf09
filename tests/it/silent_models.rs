//! What commands with models answered wrongly without a word.

use std::sync::Arc;

use drift::constraint::automaton::AnswerForm;
use drift::constraint::{LogitProcessor, ProcessorKind, Specials};
use drift::encoding::Encoding;
use serde_json::Value;

use crate::support::{Folder, rows};

/// A folder with a trained model and two molecules.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.checkpoint("small-bins", "model");
    folder.file("two.smi", "CCO\nCCN\n");
    folder
}

/// The texts of `drift generate`, without the header.
fn generated(folder: &Folder, options: &str) -> Vec<Value> {
    let line = format!("generate --model model --smiles two.smi {options} --quiet -o -");
    rows(&folder.line(&line).done().stdout).split_off(1)
}

#[test]
fn every_end_token_of_a_model_ends_a_text() {
    let folder = folder();
    let texts = |ends: &str| {
        folder.file("model/generation_config.json", format!("{{\"eos_token_id\":{ends}}}"));
        let texts = generated(&folder, "--lp none --max-new-tokens 60");
        texts.iter().map(|line| (line["text"].clone(), line["end"].clone())).collect::<Vec<_>>()
    };
    let alone = texts("1542");
    assert!(alone.iter().all(|(_, end)| end == "eos"));
    assert_eq!(texts("[1544,1542]"), alone);
}

#[test]
fn the_closing_tag_as_end_of_text_closes_each_conformer() {
    let tokenizer = Arc::new(drift::Tokenizer::load("qwen-like".as_ref()).unwrap());
    let id = |text: &str| tokenizer.vocabulary_id(text).unwrap();
    let (tag, end) = (id("[/CONFORMER]"), id("<|endoftext|>"));
    // Alone the last one is not written; beside another end it is.
    for (eos, ends, written) in [(tag, vec![], 1), (tag, vec![end], 2), (end, vec![tag], 2)] {
        let specials = Specials { eos, ends, others: Vec::new() };
        let none =
            LogitProcessor::new(ProcessorKind::None, tokenizer.clone(), Encoding::FIXED, None, specials);
        let none = none.unwrap().answering(AnswerForm { conformers: 2, opened: false });
        let constraint = none.constraint("[C]<>").unwrap();
        let mut state = constraint.start();
        assert_eq!(constraint.is_over(&state, end), written == 2);
        for _ in 0..written {
            assert!(!constraint.is_over(&state, tag) && !constraint.is_complete(&state));
            constraint.advance(&mut state, tag);
        }
        assert_eq!(
            (constraint.is_over(&state, tag), constraint.is_complete(&state)),
            (written == 1, written == 2)
        );
    }
}

#[test]
fn shards_of_a_model_whose_settings_changed_are_not_joined() {
    let folder = folder();
    let line = "generate --model model --smiles two.smi --lp automaton --quiet";
    folder.line(&format!("{line} --shard 1/2 -o first")).done();
    let config = String::from_utf8(folder.read("model/config.json")).unwrap();
    assert!(config.contains("\"rope_theta\": 10000.0"));
    folder.file("model/config.json", config.replace("\"rope_theta\": 10000.0", "\"rope_theta\": 500000.0"));
    folder.line(&format!("{line} --shard 2/2 -o second")).done();
    folder.line("merge first second -o merged.jsonl").refused_for("model model");
}

#[test]
fn worked_examples_are_inputs() {
    let folder = folder();
    let example = |numbers: &str| {
        format!("{{\"smiles\":\"CO\",\"text\":\"[CH3]<{numbers}>[OH]<1.4000,0.0000,0.0000>\"}}\n")
    };
    folder.file("examples.jsonl", example("0.0000,0.0000,0.0000") + "{\"smiles\":\"CO\"}\n");
    let line = "generate --model model --smiles two.smi --lp automaton --examples examples.jsonl";
    let ran = folder.line(&format!("{line} --shard 1/2 -o first")).done();
    assert!(ran.stderr.contains("skipped: examples.jsonl"), "{}", ran.stderr);
    folder.file("examples.jsonl", example("0.1000,0.0000,0.0000"));
    folder.line(&format!("{line} --shard 2/2 -o second")).done();
    folder.line("merge first second -o merged.jsonl").refused_for("other files");
}

#[test]
fn training_goes_on_as_its_checkpoint_writes() {
    let folder = folder();
    let text = "[CH3]<0.0000,0.0000,0.0000>[OH]<1.4000,0.0000,0.0000>";
    folder
        .file("corpus.jsonl", format!("{{\"smiles\":\"CO\",\"text\":\"{text}\"}}\n").repeat(3) + "{}\n{}\n");
    // What an earlier model left in the folder, and what the user keeps there.
    folder.file("out/model-best.safetensors", "mine");
    folder.file("out/model.safetensors.index.json", "{\"weight_map\":{}}");
    folder.file("out/model-00001-of-00001.safetensors", "old");
    let line = "train-model --init model --corpus corpus.jsonl --steps 1 --warmup 0 --batch-tokens 64 -o out";
    let ran = folder.line(line).done();
    assert!(ran.text().contains("records that could not be read, left out"), "{}", ran.text());
    let recipe: Value = serde_json::from_slice(&folder.read("out/recipe.json")).unwrap();
    let own: Value = serde_json::from_slice(&folder.read("model/recipe.json")).unwrap();
    assert_eq!(recipe["recipe"]["dialect"], own["recipe"]["dialect"]);
    assert_eq!(recipe["recipe"]["augmentation"]["frame"], "first-atoms");
    assert_eq!(
        (&recipe["stored"]["conformers"], &recipe["stored"]["nats_per_token"]),
        (&0.into(), &Value::Null)
    );
    let left: Vec<String> = folder.listing().keys().map(|path| path.display().to_string()).collect();
    assert!(left.iter().all(|name| !name.contains("index") && !name.contains("00001")), "{left:?}");
    assert_eq!(folder.read("out/model-best.safetensors"), b"mine");
}

#[test]
fn tokens_that_end_a_text_at_its_length_are_logged() {
    let folder = folder();
    let logged = |most: usize| {
        let options = format!("--lp automaton --max-new-tokens {most} --probabilities");
        generated(&folder, &options).iter().map(|line| line["log_probability"].as_f64().unwrap()).sum::<f64>()
    };
    // The first tokens are forced: the tag, and the first atom.
    let [two, three, four] = [2, 3, 4].map(logged);
    assert!(four <= three && three <= two && two < 0.0, "{two} {three} {four}");
}

#[test]
fn options_that_no_part_of_a_run_reads_are_refused() {
    let folder = folder();
    for (options, option) in [
        ("generate --lp none,automaton --placeholder 0.000,0.000,0.000 -o -", "--placeholder"),
        ("generate --where dataset=X -o -", "--where"),
        ("generate --property name -o -", "--property"),
        ("eval --verdicts -", "--verdicts -"),
        ("eval --matrix -", "--matrix -"),
        ("eval --matrix m.txt", "m.txt"),
    ] {
        folder.line(&format!("{options} --model model --smiles two.smi")).refused_for(option);
    }
    folder.line("eval --samples 2 --smiles-of CO").refused_for("--smiles-of");
}

#[test]
fn merged_shards_have_the_floor_of_a_single_run() {
    let folder = folder();
    let line = "generate --model model --smiles two.smi --lp none --dtype bf16 --engine drift --quiet";
    folder.line(&format!("{line} -o whole.jsonl")).done();
    folder.line(&format!("{line} --shard 1/1 -o shard")).done();
    folder.line("merge shard -o merged.jsonl").done();
    let floor = |name: &str| rows(&folder.read(name)).remove(0)["runs"][0]["floor"].clone();
    assert!(floor("whole.jsonl").is_object());
    assert_eq!(floor("whole.jsonl")["bytes"], floor("merged.jsonl")["bytes"]);
}

/// The tag ends texts beside another token: a text that lacks it stays without.
#[test]
fn no_tag_is_added_that_nobody_wrote() {
    let folder = folder();
    let tokens: Value = serde_json::from_slice(&folder.read("model/tokenizer.json")).unwrap();
    let added = tokens["added_tokens"].as_array().unwrap();
    let tag = added.iter().find(|token| token["content"] == "[/CONFORMER]").unwrap()["id"].clone();
    let texts = |ends: String| {
        folder.file("model/generation_config.json", format!("{{\"eos_token_id\":{ends}}}"));
        let lines = generated(&folder, "--lp none,automaton --max-new-tokens 60");
        lines.iter().map(|line| line["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let alone = texts("1542".to_owned());
    assert!(alone.iter().all(|text| text.matches("[/CONFORMER]").count() == 1), "{alone:?}");
    assert_eq!(texts(format!("[1542,{tag}]")), alone);
    assert_eq!(texts(format!("[{tag},1542]")), alone);
}

/// The ids are a set. The one that was learned is the tokenizer's own.
#[test]
fn the_order_of_end_tokens_changes_nothing() {
    let folder = folder();
    let ran = |ends: &str| {
        folder.file("model/generation_config.json", format!("{{\"eos_token_id\":{ends}}}"));
        let line =
            "eval --model model --corpus small --samples 2 --lp automaton --resample 2 --likelihood --json";
        let record = folder.line(line).done().json();
        [&record["likelihoods"][0], &record["runs"][0]["resampling"]].map(Value::clone)
    };
    let alone = ran("[1542]");
    assert!(alone.iter().all(Value::is_object), "{alone:?}");
    assert_eq!(ran("[1543,1542]"), alone);
    assert_eq!(ran("[1542,1543]"), alone);
}

#[test]
fn texts_are_written_with_the_junk_that_the_judge_leaves_out() {
    let folder = Folder::new();
    let texts = |options: &str| {
        let line =
            "eval --samples 2 --corpus small --lp allowlist --placeholder -10.00000,-10.00000,-10.00000";
        folder.line(&format!("{line} --texts texts.jsonl {options}")).done();
        let lines = rows(&folder.read("texts.jsonl")).split_off(1);
        lines.iter().map(|line| line["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(texts("--strip-junk"), texts(""));
}

/// Each task of an array would refuse it, and the merge would never start.
#[test]
fn arrays_have_no_options_that_shards_do_not_take() {
    let folder = Folder::new();
    folder.file("texts.jsonl", "");
    for option in ["--trace trace.json", "--same-as texts.jsonl"] {
        let line = format!("slurm eval --lp automaton --samples 4 {option} --array 2 -o run");
        folder.line(&line).refused_for("cannot be used with '--shard");
        assert!(!folder.path().join("run").exists());
    }
    folder.line("slurm eval --lp automaton --samples 4 --array 2 -o run").good();
}
