//! What a refusal advises: every command in it runs as it is printed, by the shell and in another folder.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::bases::fixture;
use crate::support::{Folder, Ran, rows, sized};

/// A folder whose name needs quotes.
const ODD: &str = "it's \"mine\" & 1";

/// The commands of a message.
fn commands(message: &str) -> Vec<&str> {
    message.split('`').skip(1).step_by(2).filter(|part| part.starts_with("drift ")).collect()
}

/// The verbs of the commands of a message.
fn verbs(message: &str) -> Vec<&str> {
    commands(message).iter().filter_map(|command| command.split(' ').nth(1)).collect()
}

/// Runs the commands of a message in a folder of their own.
#[track_caller]
fn run_as_printed(message: &str) -> (Folder, Vec<Ran>) {
    let elsewhere = Folder::new();
    let own = Path::new(env!("CARGO_BIN_EXE_drift")).parent().unwrap();
    let found = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([own.to_owned()].into_iter().chain(std::env::split_paths(&found)));
    let path = path.unwrap();
    let run = |command: &&str| {
        let mut shell = Command::new("bash");
        let shell = shell.args(["-c", *command]).current_dir(elsewhere.path()).env("PATH", &path);
        Ran::from(shell.output().unwrap()).done()
    };
    let ran = commands(message).iter().map(run).collect();
    (elsewhere, ran)
}

/// A fixture's tokenizer in an oddly named folder, with its JSON changed.
fn placed(folder: &Folder, name: &str, change: &dyn Fn(&mut Value)) -> String {
    let packed = std::fs::read(fixture(name).join("tokenizer.json.gz")).unwrap();
    let mut json: Value = serde_json::from_reader(flate2::read::GzDecoder::new(&packed[..])).unwrap();
    change(&mut json);
    folder.file(&format!("{ODD}/{name}/tokenizer.json"), json.to_string());
    format!("{ODD}/{name}")
}

fn as_it_is(_: &mut Value) {}

/// Two decimals, so that the extension that is advised is checked in seconds.
const TWO_DECIMALS: &str = "fixed-2";

#[test]
fn without_templates_a_grammar_and_an_extension_work() {
    let folder = Folder::new();
    let tokenizer = placed(&folder, "border-open-minus", &as_it_is);
    for encoding in sized(&["fixed", TWO_DECIMALS, "fixed-1"][..], &[TWO_DECIMALS]) {
        let fit = |tokenizer| ["fit", "--no-classes", "--tokenizer", tokenizer, "--encoding", encoding];
        let message = folder.drift(&fit(&tokenizer)).refused();
        assert_eq!(verbs(&message), ["export-grammar", "train-tokenizer"], "{message}");
        let (elsewhere, ran) = run_as_printed(&message);
        assert_eq!(rows(&ran[0].stdout)[0]["smiles"], "CCO");
        assert!(elsewhere.path().join("border-open-minus-separate/tokenizer.json").exists());
        // Templates work with the extension, and lose only a few blocks beyond its range.
        let near = "[C]<-1.0000,2.0000,3.0000>".repeat(29);
        let fitted = |blocks: &str| {
            elsewhere.file("blocks.jsonl", format!("{}\n", json!({"embedded_smiles": blocks})));
            let corpus = ["--corpus", "blocks.jsonl"];
            let ran = elsewhere.drift(&[&fit("border-open-minus-separate")[..], &corpus].concat());
            String::from_utf8(ran.done().stdout).unwrap()
        };
        fitted(&near);
        let said = fitted(&["[C]<-16.0000,0.0000,1.0000>", &near].concat());
        assert!(said.contains("3.3 % of blocks become unparsable"), "{said}");
    }
}

#[test]
fn without_an_automaton_templates_or_an_extension_work() {
    let folder = Folder::new();
    let tokenizer = placed(&folder, "unigram-like", &as_it_is);
    let export = folder.drift(&["export-grammar", "--tokenizer", &tokenizer, "--dialect", "fixed", "CCO"]);
    let extend = ["train-tokenizer", "--base", &tokenizer, "--tokens-per-block", "9", "-o", "extended"];
    for ran in [export, folder.drift(&extend)] {
        let message = ran.refused();
        assert_eq!(verbs(&message), ["fit"], "{message}");
        run_as_printed(&message);
    }
}

/// A vocabulary of bins is left as it is, and only what takes it is named.
#[test]
fn a_base_that_writes_its_numbers_as_tokens_is_used_as_it_is() {
    let folder = Folder::new();
    let with_bins = |json: &mut Value| {
        let first = json["model"]["vocab"].as_object().unwrap().len() + 100;
        let added = json["added_tokens"].as_array_mut().unwrap();
        let bin = |bin: usize| {
            json!({"id": first + bin, "content": format!("{bin:03}"), "single_word": false,
            "lstrip": false, "rstrip": false, "normalized": false, "special": false})
        };
        added.extend((0..251).map(bin));
    };
    let base = placed(&folder, "gpt2-like", &with_bins);
    let options = ["--encoding", "binned-v2:-13,13,0.104", "--tokens-per-block", "4", "-o", "x"];
    let message = folder.drift(&[&["train-tokenizer", "--base", &base][..], &options].concat()).refused();
    assert!(message.contains("leave it as it is: "), "{message}");
    assert!(!verbs(&message).is_empty(), "{message}");
    run_as_printed(&message);
}

/// The numbers of bins are whole pre-tokens of GPT-2 in all texts.
#[test]
fn a_bound_that_says_nothing_is_not_said() {
    let folder = Folder::new();
    let base = placed(&folder, "gpt2-like", &as_it_is);
    let options = ["--encoding", "binned-v2:-13,13,0.104", "--tokens-per-block", "4", "-o", "x"];
    let message = folder.drift(&[&["train-tokenizer", "--base", &base][..], &options].concat()).refused();
    assert!(!message.contains("at least 0 ") && message.contains("whole pre-tokens"), "{message}");
    run_as_printed(&message);
}

#[test]
fn a_file_of_another_tokenizer_says_how_to_fit_this_one() {
    let folder = Folder::new();
    folder.line("fit --tokenizer llama-like --no-classes -o fitted").done();
    folder.reference_checkpoint("model");
    let ran =
        folder.line("eval --model model --lp allowlist --placeholder fitted/llama-like.json --samples 1");
    let message = ran.refused();
    assert_eq!(verbs(&message), ["fit"], "{message}");
    let (elsewhere, _) = run_as_printed(&message);
    assert!(elsewhere.path().join("placeholders").is_dir());
}

#[test]
fn a_foreign_tokenizer_says_how_to_extend_the_models_own() {
    let folder = Folder::new();
    folder.reference_checkpoint("model");
    // The advice is for the encoding that the model was trained on.
    let mut recipe: Value = serde_json::from_slice(&folder.read("model/recipe.json")).unwrap();
    recipe["recipe"]["dialect"] = TWO_DECIMALS.into();
    folder.file("model/recipe.json", recipe.to_string());
    let message = folder.line("extend-model --model model --tokenizer llama-like -o x").refused();
    assert_eq!(verbs(&message), ["train-tokenizer"], "{message}");
    assert!(message.contains(&format!("--encoding {TWO_DECIMALS}")), "{message}");
    run_as_printed(&message);
}

/// An encoding of a file has no name that a command could give, so its content stands in the command.
#[test]
fn commands_hold_encodings_of_files() {
    let folder = Folder::new();
    let tokenizer = placed(&folder, "border-open-minus", &as_it_is);
    let own = json!({"schema": "drift.encoding/1", "name": "own", "slots": "atoms", "open": "<", "separator": ",",
        "close": ">", "numbers": 3, "number": {"kind": "decimal", "decimals": 2, "trailing_zeros": true}});
    folder.file("own.json", own.to_string());
    let ran = folder.drift(&["fit", "--no-classes", "--tokenizer", &tokenizer, "--encoding", "own.json"]);
    let message = ran.refused();
    assert!(verbs(&message).contains(&"export-grammar"), "{message}");
    let (_, ran) = run_as_printed(&message);
    assert_eq!(rows(&ran[0].stdout)[0]["smiles"], "CCO");
}

/// Three blocks, of which a template may agree with all.
#[test]
fn a_share_of_all_blocks_is_not_said() {
    let folder = Folder::new();
    let tokenizer = placed(&folder, "border-open-minus", &as_it_is);
    let text = "[C]<1.0000,2.0000,3.0000>[C]<2.0000,2.0000,3.0000>[O]<3.0000,2.0000,3.0000>";
    let line = json!({"canonical_smiles": "CCO", "embedded_smiles": text});
    folder.file("few.jsonl", format!("{line}\n"));
    let ran = folder.drift(&["fit", "--no-classes", "--tokenizer", &tokenizer, "--corpus", "few.jsonl"]);
    let said = format!("{}{}", ran.stderr, String::from_utf8_lossy(&ran.stdout));
    assert!(!said.contains("no template, whatever its placeholder, agrees"), "{said}");
}
