//! What commands with tokenizers answered wrongly without a word.

use serde_json::Value;

use crate::support::Folder;

/// Options of `drift train-tokenizer` that take seconds.
const BINS: &str = "--encoding binned-v2:-13,13,0.104 --tokens-per-block 4";

/// The blocks that `drift inspect` finds in a text.
fn blocks(folder: &Folder, arguments: &[&str]) -> Vec<Value> {
    let report = folder.drift(&[arguments, &["--json"]].concat()).good().json();
    report[0]["blocks"].as_array().unwrap().clone()
}

#[test]
fn an_extended_model_is_for_the_encoding_of_its_extension() {
    let folder = Folder::new();
    folder.checkpoint("qwen-like", "model");
    folder.line(&format!("train-tokenizer --base qwen-like {BINS} --corpus small -o extended")).done();
    folder.line("extend-model --model model --tokenizer extended -o larger").done();
    let found = |tokenizer| blocks(&folder, &["inspect", "--tokenizer", tokenizer, "[C]126000250;"]);
    // The recipe beside it is that of the model before, which wrote decimals.
    assert!(folder.path().join("larger/recipe.json").is_file());
    assert_eq!(found("larger"), found("extended"));
    assert_eq!(found("larger").len(), 1);
    // A file of another name has none of it.
    std::fs::copy(folder.path().join("model/tokenizer.json"), folder.path().join("extended/plain.json"))
        .unwrap();
    let decimals =
        blocks(&folder, &["inspect", "--tokenizer", "extended/plain.json", "[C]<1.0000,2.0000,3.0000>"]);
    assert_eq!(decimals.len(), 1);
}

#[test]
fn nothing_of_an_earlier_run_stays_beside_a_tokenizer_or_a_model() {
    let folder = Folder::new();
    folder.checkpoint("qwen-like", "first");
    folder.file("first/chat_template.jinja", "{{ messages }}");
    folder.file("first/generation_config.json", "{\"eos_token_id\": 1547}");
    folder.checkpoint("qwen-like", "second");
    for name in ["generation_config.json", "recipe.json"] {
        std::fs::remove_file(folder.path().join("second").join(name)).unwrap();
    }
    let extend = |base: &str, output: &str| {
        let tokenizer = format!("{output}-tokenizer");
        let line = format!("train-tokenizer --base {base} {BINS} --corpus small -o {tokenizer}");
        folder.line(&line).done();
        folder.line(&format!("extend-model --model {base} --tokenizer {tokenizer} -o {output}")).done();
    };
    extend("first", "over");
    let stale = ["chat_template.jinja", "generation_config.json", "recipe.json"];
    for name in stale {
        assert!(folder.path().join("over").join(name).is_file(), "{name}");
    }
    extend("second", "over");
    extend("second", "fresh");
    let names = |of: &str| {
        let files = std::fs::read_dir(folder.path().join(of)).unwrap().flatten();
        let mut names: Vec<String> = files.map(|file| file.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names("over"), names("fresh"));
    assert_eq!(names("over-tokenizer"), names("fresh-tokenizer"));
}

#[test]
fn options_of_inspect_are_no_texts() {
    let folder = Folder::new();
    let text = "[C]<1.0,2.0,3.0>";
    folder.drift(&["inspect", text, "--placehoder", "0.0,0.0,0.0"]).refused_usage("--placehoder");
    let shown = folder.drift(&["inspect", text, "--placeholder", "0.0,0.0,0.0"]).good();
    for global in [&["-q"][..], &["--threads", "1"], &["--threads=1", "-q"]] {
        let ran = folder.drift(&[global, &["inspect", text, "--placeholder", "0.0,0.0,0.0"]].concat()).good();
        assert_eq!(ran.text(), shown.text(), "{global:?}");
    }
    // Behind `--` everything is a text.
    let texts = folder.drift(&["inspect", "--json", "--", text, "--json"]).good().json();
    assert_eq!(texts[1]["text"], "--json");
}

#[test]
fn special_tokens_are_no_blocks() {
    let folder = Folder::new();
    for end in ["<|endoftext|>", "</s>", "<bos>", ""] {
        let found = blocks(&folder, &["inspect", &format!("[C]<4.0182,1.0374,-0.0007>{end}")]);
        assert_eq!(found.len(), 1, "{end}");
        assert_eq!(found[0]["text"], "4.0182,1.0374,-0.0007");
    }
    // Junk is.
    for junk in ["0.9587abra", "abra,1.0,2.0"] {
        assert_eq!(blocks(&folder, &["inspect", &format!("[C]<{junk}>")]).len(), 1, "{junk}");
    }
}

#[test]
fn too_many_numbers_are_no_fault_of_the_base() {
    let folder = Folder::new();
    let line = "train-tokenizer --base qwen-like --encoding integers:100,5 --tokens-per-block 7 --corpus small -o out";
    folder.line(line).refused_for("give an encoding with fewer numbers");
}

#[test]
fn an_encoding_has_one_name() {
    let folder = Folder::new();
    folder.line("inspect --encoding lines-02 C").refused_usage("lines-02");
    folder.line("inspect --encoding lines-2 C").done();
}

#[test]
fn a_base_named_without_its_folder_is_not_overwritten() {
    let folder = Folder::new();
    folder.file("tokenizer.json", "{}");
    folder
        .line("train-tokenizer --base tokenizer.json --tokens-per-block 4 --corpus small -o .")
        .refused_for("is the folder of the base");
    folder
        .line("train-tokenizer --base ./tokenizer.json --tokens-per-block 4 --corpus small -o .")
        .refused_for("is the folder of the base");
}

/// `,6` is a token of the extension where it is a piece, and `,` and `6` are two within a longer one: only whole pieces are looked up.
#[test]
fn extensions_of_sentencepiece_bases_have_an_automaton() {
    let folder = Folder::new();
    for (base, options, encoding) in [
        ("llama-2-like", "--decimals 2 --tokens-per-block 7", "fixed-2"),
        ("gemma-like", "--decimals 1 --range 2 --tokens-per-block 8", "fixed-1"),
        ("llama-2-like", "--decimals 2 --range 1 --kind separate --tokens-per-block 11", "fixed-2"),
    ] {
        let fixture = format!("{}/tests/fixtures/tokenizers/{base}", env!("CARGO_MANIFEST_DIR"));
        folder.line(&format!("train-tokenizer --base {fixture} {options} --corpus small -o out")).done();
        let tokenizer = drift::Tokenizer::load(&folder.path().join("out")).unwrap();
        assert_eq!(crate::automaton::check(&tokenizer, encoding.parse().unwrap(), 10), 0, "{base} {options}");
    }
}

#[test]
fn an_extended_model_keeps_its_own_template() {
    let folder = Folder::new();
    folder.checkpoint("qwen-like", "base");
    folder.file("base/chat_template.jinja", "base");
    folder.checkpoint("qwen-like", "tuned");
    folder.file("tuned/chat_template.jinja", "tuned");
    let config: Value = serde_json::from_slice(&folder.read("tuned/tokenizer_config.json")).unwrap();
    let mut tuned = config.clone();
    tuned["padding_side"] = "left".into();
    folder.file("tuned/tokenizer_config.json", tuned.to_string());
    folder.line(&format!("train-tokenizer --base base {BINS} --corpus small -o extended")).done();
    folder.line("extend-model --model tuned --tokenizer extended -o larger").done();
    assert_eq!(folder.read("larger/chat_template.jinja"), b"tuned");
    let larger: Value = serde_json::from_slice(&folder.read("larger/tokenizer_config.json")).unwrap();
    assert_eq!(larger["padding_side"], "left");
    assert_eq!(larger["tokenizer_class"], "PreTrainedTokenizerFast");
}

#[test]
fn a_placeholder_is_three_numbers() {
    let folder = Folder::new();
    for wrong in ["abc", "0.0000,0.0000", "0,0,0,0"] {
        let line = ["inspect", "--placeholder", wrong, "[C]<1.0000,2.0000,-3.0000>"];
        folder.drift(&line).refused_for("is no slot of fixed");
    }
    folder.drift(&["inspect", "--placeholder", "0.000,0.000,0.000", "[C]<1.0000,2.0000,-3.0000>"]).good();
}

#[test]
fn extensions_that_do_not_exist_are_told() {
    let folder = Folder::new();
    let line = "encodings --corpus small --tokenizer qwen-like --encoding fixed-2 --tokens-per-block 7,50";
    let ran = folder.line(line).done();
    assert!(ran.stderr.contains("qwen-like has no such extension for fixed-2: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("no fused scheme has 50 tokens a block"), "{}", ran.stderr);
    let report = folder.line(&format!("{line} --json")).good().json();
    assert_eq!(report["missing"].as_array().unwrap().len(), 1);
    for row in report["rows"].as_array().unwrap() {
        let [all, answer] =
            ["tokens_per_conformer", "tokens_per_answer"].map(|name| row[name].as_f64().unwrap());
        assert!(answer < all && row["passes_per_conformer"].as_f64().unwrap() < answer, "{row}");
    }
}

#[test]
fn a_model_of_another_tokenizer_is_refused() {
    let folder = Folder::new();
    folder.checkpoint("llama-like", "model");
    let line = format!("train-tokenizer --base qwen-like {BINS} --corpus small --model model -o extended");
    folder.line(&line).refused_for("its tokenizer gives");
    folder.checkpoint("qwen-like", "own");
    folder.line(&line.replace("--model model", "--model own")).done();
    // Its own tokenizer adds nothing to it, nor does an extension that it has.
    folder.line("extend-model --model own --tokenizer own -o y").refused_for("already has every token of");
    folder.line("extend-model --model own --tokenizer extended -o larger").done();
    folder
        .line("extend-model --model larger --tokenizer extended -o y")
        .refused_for("already has every token of");
}

#[test]
fn what_a_class_pads_by_default_stays() {
    let folder = Folder::new();
    folder.checkpoint("qwen-like", "model");
    folder.file(
        "model/tokenizer_config.json",
        r#"{"tokenizer_class": "GemmaTokenizer", "eos_token": "<|endoftext|>"}"#,
    );
    folder.line(&format!("train-tokenizer --base qwen-like {BINS} --corpus small -o plain")).done();
    folder.line(&format!("train-tokenizer --base model {BINS} --corpus small -o extended")).done();
    folder.line("extend-model --model model --tokenizer plain -o larger").done();
    for name in ["extended", "larger"] {
        let config: Value =
            serde_json::from_slice(&folder.read(&format!("{name}/tokenizer_config.json"))).unwrap();
        assert_eq!(config["tokenizer_class"], "PreTrainedTokenizerFast");
        assert_eq!(config["padding_side"], "left", "{name}");
        assert_eq!(config["model_input_names"][1], "attention_mask", "{name}");
    }
}

#[test]
fn weights_that_prefer_nothing_are_refused() {
    let folder = Folder::new();
    folder
        .line("fit --corpus small --tokenizer qwen-like --weights 0 0 0")
        .refused_for("as good as any other");
}
