//! Limits: inputs and options of any size end soon, in little memory, with one line.

use serde_json::{Value, json};

use drift::job::Job;
use drift::model::{check_fits, checked_product};
use drift::tokenizer::{Counter, Tokenizer};

use crate::support::Folder;

/// The JSON of an embedded tokenizer, to be damaged.
fn tokenizer_json() -> Value {
    let (_, json) = Tokenizer::load_with_json("qwen-like".as_ref()).unwrap();
    serde_json::from_slice(&json).unwrap()
}

fn load(json: &Value) -> drift::Result<Tokenizer> {
    let bytes = serde_json::to_vec(json).unwrap();
    Tokenizer::from_bytes("some", drift::io::hash_bytes("some.json", &bytes), &bytes)
}

#[test]
fn tokenizers_that_panic_are_refused_in_one_line() {
    let damages: [(&str, Value); 6] = [
        ("/pre_tokenizer", json!({"type": "FixedLength", "length": 0})),
        ("/normalizer", json!({"type": "Replace", "pattern": {"String": ""}, "content": "x"})),
        ("/normalizer", json!({"type": "Precompiled", "precompiled_charsmap": "AAAA"})),
        ("/normalizer", json!({"type": "Precompiled", "precompiled_charsmap": "/////w=="})),
        (
            "/post_processor",
            json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}),
        ),
        (
            "/decoder",
            json!({"type": "Strip", "content": " ", "start": 4_000_000_000u32, "stop": 4_000_000_000u32}),
        ),
    ];
    let folder = Folder::new();
    let mut refusals = 0;
    for (pointer, value) in damages {
        let mut json = tokenizer_json();
        *json.pointer_mut(pointer).unwrap() = value.clone();
        folder.file("tokenizer.json", json.to_string());
        // Whatever it is taken for: no panic is seen.
        let ran = folder.drift(&[
            "inspect",
            "--tokenizer",
            "tokenizer.json",
            "[C]<1,2,3>",
            "",
            " ",
            "\u{e9}\u{1f9ea}",
        ]);
        if ran.code != Some(0) {
            refusals += 1;
            ran.refused();
        }
    }
    assert!(refusals >= 2, "{refusals}");
}

#[test]
fn an_expression_that_gives_up_is_refused_and_not_counted() {
    let mut json = tokenizer_json();
    let splits = json.pointer_mut("/pre_tokenizer/pretokenizers").unwrap().as_array_mut().unwrap();
    splits[0]["pattern"]["Regex"] = r"(?:(?:a|a)+)+(?=b)|\p{L}+|[^\p{L}]".into();
    let tokenizer = load(&json).unwrap();
    tokenizer.tokens("[C]<1.0000,2.0000,3.0000>").unwrap();
    let hostile = format!("[C]<1.0000,2.0000,3.0000>{}", "a".repeat(40));
    // What the crate itself makes of it: no error, and one piece of all that is left.
    assert!(tokenizer.inner().encode(hostile.as_str(), false).is_ok());
    let error = tokenizer.tokens(&hostile).unwrap_err().to_string();
    assert!(error.contains("gives up"), "{error}");
    for outcome in [tokenizer.ids(&hostile).map(drop), tokenizer.prompt_ids(&hostile).map(drop)] {
        outcome.unwrap_err();
    }
    let counter = Counter::reference(&tokenizer);
    counter.count(&hostile, &mut Vec::new()).unwrap_err();
    // The usual expressions step back over white space.
    let usual = load(&tokenizer_json()).unwrap();
    usual.tokens(&" ".repeat(10_000)).unwrap();
    let spaces = format!("{}x", "\u{a0}".repeat(2_000_000));
    let error = usual.tokens(&spaces).unwrap_err().to_string();
    assert!(error.contains("gives up") && error.len() < 400, "{error}");
    // A normal form makes spaces of other characters, and none of ASCII.
    let mut json = tokenizer_json();
    json["normalizer"] = serde_json::json!({"type": "NFKC"});
    let normal = load(&json).unwrap();
    normal.tokens("[C]<1.0000,2.0000,3.0000>").unwrap();
    let error = normal.tokens(&spaces).unwrap_err().to_string();
    assert!(error.contains("gives up"), "{error}");
    let error = normal.tokens(&format!("{}x", " ".repeat(2_000_000))).unwrap_err().to_string();
    assert!(error.contains("gives up"), "{error}");
}

#[test]
fn ids_of_many_millions_are_refused_and_the_largest_takes_no_memory() {
    let mut json = tokenizer_json();
    let last = json.pointer("/model/vocab").unwrap().as_object().unwrap().keys().next_back().unwrap().clone();
    let folder = Folder::new();
    let inspect = ["inspect", "--tokenizer", "tokenizer.json", "[C]<1,2,3>"];
    json["model"]["vocab"][&last] = 16_777_216.into();
    folder.file("tokenizer.json", json.to_string());
    let line = folder.drift(&inspect).refused();
    assert!(line.contains("has a token with the id 16777216, and ids are at most 16777215"), "{line}");
    json["model"]["vocab"][&last] = 16_777_215.into();
    folder.file("tokenizer.json", json.to_string());
    folder.drift(&inspect).good();
    let arguments =
        ["train-model", "--tokenizer", "tokenizer.json", "--arch", "llama", "--hidden", "1024", "-o", "out"];
    let line = folder.drift(&arguments).refused();
    assert!(line.contains("training: would take") && line.contains("GiB are free"), "{line}");
    assert!(!folder.path().join("out").exists());
}

#[test]
fn models_and_runs_larger_than_memory_are_refused_with_what_they_would_take() {
    let folder = Folder::new();
    for option in ["--hidden", "--layers", "--heads", "--intermediate", "--head-dim", "--batch-tokens"] {
        for size in ["1000000000", "18446744073709551614"] {
            let arguments =
                ["train-model", "--tokenizer", "qwen-like", "--arch", "llama", "-o", "out", option, size];
            let line = folder.drift(&arguments).refused();
            assert!(line.contains("would take") || line.contains("the model's shape"), "{option}: {line}");
        }
    }
    let line = folder.drift(&["eval", "--lp", "none", "--generations", "4294967295"]).refused();
    assert!(line.contains("the texts: would take") && line.contains("give fewer --generations"), "{line}");
    assert!(check_fits("it", checked_product(&[usize::MAX, 2]), u64::MAX, "").is_err());
    assert!(folder.listing().is_empty());
}

#[test]
fn a_model_larger_than_memory_is_refused_before_it_is_read() {
    let folder = Folder::new();
    folder.reference_checkpoint("model");
    let mut config: Value = serde_json::from_slice(&folder.read("model/config.json")).unwrap();
    config["num_hidden_layers"] = 100_000_000.into();
    folder.file("model/config.json", config.to_string());
    folder.file("model/model.safetensors", "not read");
    for engine in ["drift", "candle"] {
        let line = folder.drift(&["eval", "--model", "model", "--lp", "none", "--engine", engine]).refused();
        assert!(
            line.contains("config.json: the weights on cpu: would take ")
                && line.contains("use a smaller model"),
            "{line}"
        );
    }
}

#[test]
fn a_vocabulary_of_a_billion_is_as_large_as_it_can_be() {
    let folder = Folder::new();
    folder.file("rows.txt", "[C]<0.1000,0.2000,0.3000>[O]<0.4000,0.5000,0.6000>\n");
    folder.line("train-tokenizer --vocab-size 1000000000 --corpus rows.txt --range 1 -o out").text();
    assert!(folder.path().join("out/tokenizer.json").is_file());
}

#[test]
fn molecules_of_a_hundred_thousand_atoms_are_skipped_or_fail() {
    let folder = Folder::new();
    let (small, large) = ("[C]<0.1000,0.2000,0.3000>", "[C]<0.1000,0.2000,0.3000>".repeat(100_000));
    let line = |smiles: &str, text: &str| format!("[SMILES]{smiles}[/SMILES][CONFORMER]{text}[/CONFORMER]\n");
    let nested = format!(
        "{}[C]<0.1000,0.2000,0.3000>{}",
        "[C]<0.1000,0.2000,0.3000>(".repeat(50_000),
        ")".repeat(50_000)
    );
    let texts = [line("C", small), line("C", &large), line("C", &nested), line(&"C".repeat(100_001), small)];
    folder.file("texts", texts.concat());
    let report = folder.drift(&["audit", "texts", "--json"]).done();
    let report = report.json();
    assert_eq!((&report["total"]["samples"], &report["total"]["passed"]), (&3.into(), &1.into()));
    assert_eq!(report["skipped"], 1);
    let report = folder.drift(&["audit", "texts", "--max-atoms", "0", "--json"]).json();
    assert_eq!(report["total"]["passed"], 0);
}

#[cfg(unix)]
#[test]
fn endless_inputs_end() {
    let folder = Folder::new();
    for (arguments, problem) in [
        (&["eval", "--smiles", "/dev/zero"][..], "line 1 is longer than 1048576 bytes"),
        (&["compare", "/dev/zero", "/dev/zero"], "is not JSON"),
        (&["inspect", "--tokenizer", "/dev/zero", "x"], "larger than 256 MiB"),
    ] {
        let line = folder.drift(arguments).refused();
        assert!(line.contains(problem), "{line}");
    }
}

#[test]
fn a_damaged_end_of_smiles_is_found_though_the_sample_is_full() {
    let folder = Folder::new();
    let whole = crate::readers::gzip("C\n".repeat(100_000).as_bytes());
    let path = folder.file("some.smi.gz", &whole[..whole.len() - 9]);
    let error = drift::prompts::Molecules::of_file(&path, Some(1), &Job::default()).unwrap_err().to_string();
    assert!(error.contains("some.smi.gz"), "{error}");
}

#[test]
fn texts_and_numbers_of_compared_files_are_bounded() {
    let folder = Folder::new();
    folder.file("long.json", format!(r#"{{"traceEvents": [{{"name": "{}"}}]}}"#, "x".repeat(2 << 20)));
    folder.file("deep.json", format!("{{\"runs\": [{}", "{\"a\":".repeat(100_000)));
    for (name, problem) in [("long.json", "a text or number of more than"), ("deep.json", "recursion limit")]
    {
        let line = folder.drift(&["compare", name, name]).refused();
        assert!(line.contains(problem), "{line}");
    }
}

#[test]
fn the_record_names_the_weights_that_were_loaded() {
    let folder = Folder::new();
    folder.reference_checkpoint("model");
    let weights = folder.read("model/model.safetensors");
    std::fs::remove_file(folder.path().join("model/model.safetensors")).unwrap();
    folder.file("model/shard.bin", &weights);
    folder.file("model/other.safetensors", "not read");
    let header: usize = u64::from_le_bytes(weights[..8].try_into().unwrap()).try_into().unwrap();
    let tensors: Value = serde_json::from_slice(&weights[8..8 + header]).unwrap();
    let names = tensors.as_object().unwrap().keys().filter(|name| *name != "__metadata__");
    let index = |shard: &str| {
        let map: serde_json::Map<String, Value> =
            names.clone().map(|name| (name.clone(), shard.into())).collect();
        json!({ "weight_map": map }).to_string()
    };
    folder.file("model/model.safetensors.index.json", index("shard.bin"));
    let arguments =
        ["eval", "--model", "model", "--lp", "none", "--samples", "1", "--max-new-tokens", "1", "--json"];
    let record = folder.drift(&arguments).good().json();
    let inputs = record["provenance"]["inputs"].as_array().unwrap();
    let named: Vec<&str> = inputs.iter().filter_map(|input| input["name"].as_str()).collect();
    assert!(named.contains(&"shard.bin") && !named.contains(&"other.safetensors"), "{named:?}");
    let shard = serde_json::to_value(drift::io::hash_bytes("shard.bin", &weights)).unwrap();
    assert!(inputs.contains(&shard), "{shard} {inputs:?}");
    for outside in ["../x.bin", "/etc/passwd", ".."] {
        folder.file("model/model.safetensors.index.json", index(outside));
        let line = folder.drift(&arguments).refused();
        assert!(line.contains("which is not a file name"), "{line}");
    }
}

#[test]
fn positions_beyond_any_text_take_no_memory() {
    let folder = Folder::new();
    folder.reference_checkpoint("model");
    let mut config: Value = serde_json::from_slice(&folder.read("model/config.json")).unwrap();
    config["max_position_embeddings"] = i32::MAX.into();
    folder.file("model/config.json", config.to_string());
    let arguments =
        ["eval", "--model", "model", "--lp", "none", "--samples", "1", "--max-new-tokens", "1", "--json"];
    folder.drift(&arguments).good();
}
