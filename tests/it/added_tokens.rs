//! Tokens that stand only in a file beside `tokenizer.json`: `tokenizer_config.json`, `added_tokens.json` or `special_tokens_map.json`.
//! The judge is transformers' AutoTokenizer.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use drift::Tokenizer;

use crate::support::{Folder, python};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/tokenizers")
        .join(name)
        .join("tokenizer.json.gz")
}

#[test]
#[cfg_attr(
    not(all(has_transformers, has_safetensors)),
    ignore = "needs transformers and safetensors in DRIFT_PYTHON"
)]
fn folders_are_loaded_as_by_transformers() {
    let folder = Folder::new();
    let bases = ["gpt2-like", "llama-2-like-untagged"].map(|name| fixture(name).display().to_string());
    let mut arguments = vec![env!("CARGO_BIN_EXE_drift"), "."];
    arguments.extend(bases.iter().map(String::as_str));
    let said = python("python/added_tokens.py", &folder.path(), &arguments);
    assert_eq!(said.lines().filter(|line| line.contains(" new tokens")).count(), 6, "{said}");
}

/// The fixture `gpt2-like` without its tags, in a folder with these files beside it.
fn untagged(folder: &Folder, files: &[(&str, Value)]) -> drift::Result<Tokenizer> {
    let (_, json) = Tokenizer::load_with_json(&fixture("gpt2-like")).unwrap();
    let mut json: Value = serde_json::from_slice(&json).unwrap();
    json["added_tokens"].as_array_mut().unwrap().truncate(1);
    folder.file("own/tokenizer.json", json.to_string());
    for (name, content) in files {
        folder.file(&format!("own/{name}"), content.to_string());
    }
    Tokenizer::load(&folder.path().join("own"))
}

#[test]
fn added_tokens_have_the_ids_and_flags_of_transformers() {
    let folder = Folder::new();
    // 3400 tokens of the model and <|endoftext|>: the next id is 3401.
    let listed = json!({"content": "[SMILES]", "lstrip": true, "normalized": false, "special": false});
    let config = json!({
        "added_tokens_decoder": {"3401": listed, "3402": {"content": "[CONFORMER]", "special": true}},
        "eos_token": "<|endoftext|>",
        "pad_token": "[PAD]",
        "mask_token": "[SMILES]",
        "additional_special_tokens": ["[CONFORMER]", {"__type": "AddedToken", "content": "[X]", "rstrip": true}],
    });
    let tokenizer = untagged(&folder, &[("tokenizer_config.json", config)]).unwrap();
    let ids: Vec<Option<u32>> = ["[SMILES]", "[CONFORMER]", "[PAD]", "[X]"]
        .iter()
        .map(|token| tokenizer.inner().token_to_id(token))
        .collect();
    assert_eq!(ids, [3401, 3402, 3403, 3404].map(Some));
    let decoder = tokenizer.inner().get_added_tokens_decoder();
    let flags = |id: u32| {
        let token = &decoder[&id];
        (token.special, token.normalized, token.lstrip, token.rstrip)
    };
    // A token that a field names is special.
    assert_eq!(flags(3401), (true, false, true, false));
    assert_eq!(flags(3402), (true, false, false, false));
    assert_eq!(flags(3404), (false, true, false, true));
    assert_eq!(tokenizer.source.name, "tokenizer.json + tokenizer_config.json");
    let (_, json) = Tokenizer::load_with_json(&folder.path().join("own/tokenizer.json")).unwrap();
    let json: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["added_tokens"].as_array().unwrap().len(), 5);
    // The same bytes under another name are a tokenizer of their own.
    folder.file("own/other.json", folder.read("own/tokenizer.json"));
    let alone = Tokenizer::load(&folder.path().join("own/other.json")).unwrap();
    assert_eq!(alone.inner().token_to_id("[SMILES]"), None);
    assert_eq!(alone.source.name, "other.json");
}

/// Files of a folder with their content, and what the refusal names.
type ContradictingFiles<'f> = (&'f [(&'f str, Value)], &'f [&'f str]);

#[test]
fn files_that_contradict_each_other_are_refused() {
    let decoder = |id: &str, content: &str| json!({"added_tokens_decoder": {id: {"content": content, "special": true}}});
    let (config, added, map) = ("tokenizer_config.json", "added_tokens.json", "special_tokens_map.json");
    let cases: [ContradictingFiles<'_>; 9] = [
        (&[(config, decoder("5", "[NEW]"))], &[config, "`tokenizer.json`", "the id 5"]),
        (&[(config, decoder("3409", "[NEW]"))], &[config, "tokenizer.json", "it is 3401"]),
        (&[(config, decoder("3401", "<|endoftext|>"))], &[config, "tokenizer.json", "it is 3400"]),
        (&[(added, json!({"[NEW]": 3400}))], &[added, "tokenizer.json", "<|endoftext|>"]),
        (&[(added, json!({"[NEW]": 3401, "[OTHER]": 3401}))], &[added, "have the id 3401"]),
        (&[(config, decoder("3401", "[NEW]")), (added, json!({"[OLD]": 3401}))], &[added, config, "[NEW]"]),
        (
            &[
                (config, json!({"additional_special_tokens": []})),
                (map, json!({"additional_special_tokens": ["[NEW]"]})),
            ],
            &[map, config, "[NEW]"],
        ),
        (
            &[(config, json!({"added_tokens_decoder": {"x": {"content": "[NEW]"}}}))],
            &[config, "added_tokens_decoder"],
        ),
        (&[(config, json!({"eos_token": 7}))], &[config, "eos_token"]),
    ];
    for (files, parts) in cases {
        let folder = Folder::new();
        let error = untagged(&folder, files).err().map(|error| error.to_string()).unwrap_or_default();
        for part in parts {
            assert!(error.contains(part.trim_matches('`')), "{files:?}: {error:?} lacks {part}");
        }
    }
    // A list that transformers does not read may name tokens that nothing else names.
    let folder = Folder::new();
    let ignored = [(config, decoder("3401", "[NEW]")), (added, json!({"[OLD]": 3402}))];
    let tokenizer = untagged(&folder, &ignored).unwrap();
    assert_eq!(tokenizer.inner().token_to_id("[OLD]"), None);
}

#[test]
fn maps_override_the_settings_unless_these_list_added_tokens() {
    let map = ("special_tokens_map.json", json!({"eos_token": "[END]"}));
    let ends = |config: Value| {
        let folder = Folder::new();
        let tokenizer = untagged(&folder, &[("tokenizer_config.json", config), map.clone()]).unwrap();
        let settings = drift::tokenizer::config_beside(&folder.path().join("own")).unwrap();
        tokenizer.end_of_text(settings.as_ref()).unwrap().text
    };
    assert_eq!(ends(json!({"eos_token": "<|endoftext|>"})), "[END]");
    assert_eq!(ends(json!({"eos_token": "<|endoftext|>", "added_tokens_decoder": {}})), "<|endoftext|>");
}

#[test]
fn other_formats_are_named_with_the_command_that_converts_them() {
    let says = |files: &[&str], given: &str| {
        let folder = Folder::new();
        for file in files {
            folder.file(&format!("own/{file}"), "no JSON");
        }
        let error = Tokenizer::load(&folder.path().join("own").join(given)).err().unwrap().to_string();
        error.replace(&folder.path().display().to_string(), "…")
    };
    for (files, given, parts) in [
        (
            &["tokenizer.model"][..],
            "",
            &["only tokenizer.model", "AutoTokenizer", "cd …/own && python -c"][..],
        ),
        (
            &["tokenizer.model"],
            "tokenizer.model",
            &["SentencePiece", "AutoTokenizer", "cd …/own && python -c"],
        ),
        (&["tekken.json"], "", &["only tekken.json", "mistral-common"]),
        (&["qwen.tiktoken"], "", &["T(\"qwen.tiktoken\").converted().save(\"tokenizer.json\")"]),
        (&["merges.txt", "vocab.json"], "", &["only merges.txt", "GPT2TokenizerFast"]),
        (
            &["config.json", "merges.txt", "vocab.json"],
            "vocab.json",
            &["is no tokenizer.json", "AutoTokenizer"],
        ),
        (&["vocab.json"], "", &["contains no tokenizer.json; give"]),
    ] {
        let said = says(files, given);
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }
    let folder = Folder::new();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n";
    folder.file("own/tokenizer.json", pointer);
    let said = Tokenizer::load(&folder.path().join("own")).err().unwrap().to_string();
    assert!(said.contains("is a pointer of Git LFS") && said.contains("lfs pull"), "{said}");
}
