//! Models by name: what is found in the cache of Hugging Face, and what is said where it is not.

#![cfg(unix)]

use std::os::unix::fs::symlink;
use std::path::Path;

use drift::tokenizer::Tokenizer;
use serde_json::Value;

use crate::support::{Folder, Ran, program};

const COMMITS: [&str; 3] = [
    "0123456789abcdef0123456789abcdef01234567",
    "01aa456789abcdef0123456789abcdef01234567",
    "ffff456789abcdef0123456789abcdef01234567",
];

/// A cache as `huggingface_hub` fills it: a checkpoint that comes with drift as `Own/qwen-like`, its tokenizer in two more
/// commits.
fn cache() -> Folder {
    let folder = Folder::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("eval/qwen-like");
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        put(&folder, COMMITS[0], name, &std::fs::read(&path).unwrap());
    }
    let json = |name| Tokenizer::embedded_by_name(Path::new(name)).unwrap().json;
    put(&folder, COMMITS[1], "tokenizer.json", json("qwen-like-separate"));
    put(&folder, COMMITS[2], "tokenizer.json", json("qwen-like-fused"));
    for (name, commit) in [("main", COMMITS[0]), ("v2", COMMITS[1]), ("refs/pr/1", COMMITS[2])] {
        folder.file(&format!("hub/models--Own--qwen-like/refs/{name}"), commit);
    }
    folder
}

/// Puts a file into a snapshot: a blob, and a link to it.
fn put(folder: &Folder, commit: &str, name: &str, content: &[u8]) {
    let repository = "hub/models--Own--qwen-like";
    let blob = drift::io::hash_bytes("", content).sha256;
    folder.file(&format!("{repository}/blobs/{blob}"), content);
    let snapshot = folder.path().join(repository).join("snapshots").join(commit);
    std::fs::create_dir_all(&snapshot).unwrap();
    symlink(Path::new("../../blobs").join(blob), snapshot.join(name)).unwrap();
}

/// Runs drift with this cache and no other.
fn run(folder: &Folder, words: &[&str]) -> Ran {
    let mut command = program();
    for name in ["HF_HOME", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME"] {
        command.env_remove(name);
    }
    command.env("HF_HUB_CACHE", folder.path().join("hub")).current_dir(folder.path());
    command.args(words).output().unwrap().into()
}

const TEXT: &str = "[C]<0.5000,-0.2000,0.0000>";

/// Tokens of a block with a tokenizer of this name.
#[track_caller]
fn count(folder: &Folder, name: &str) -> Value {
    run(folder, &["inspect", "--json", "--tokenizer", name, TEXT]).good().json()[0]["count"].clone()
}

#[test]
fn names_refs_and_commits_are_found() {
    let folder = cache();
    let [plain, separate, fused] =
        ["qwen-like", "qwen-like-separate", "qwen-like-fused"].map(|name| count(&folder, name));
    assert!(plain != separate && separate != fused);
    for (name, expected) in [
        ("Own/qwen-like", &plain),
        ("Own/qwen-like@main", &plain),
        ("Own/qwen-like@v2", &separate),
        ("Own/qwen-like@refs/pr/1", &fused),
        (&format!("Own/qwen-like@{}", COMMITS[1]), &separate),
        ("Own/qwen-like@ff", &fused),
        ("Own/qwen-like@012", &plain),
    ] {
        assert_eq!(count(&folder, name), *expected, "{name}");
    }
    // A path wins.
    folder.file(
        "Own/qwen-like/tokenizer.json",
        Tokenizer::embedded_by_name(Path::new("qwen-like-fused")).unwrap().json,
    );
    assert_eq!(count(&folder, "Own/qwen-like"), fused);
    assert_eq!(count(&folder, "Own/qwen-like@main"), plain);
}

#[test]
fn every_verb_takes_names() {
    let folder = cache();
    let name = "Own/qwen-like";
    folder.file("one.txt", format!("{TEXT}\n"));
    folder.file("smiles.txt", "C\n");
    let good = |words: &[&str]| run(&folder, words).done();
    let fit = ["fit", "--corpus", "one.txt", "--tokenizer", name, "--no-classes", "--json", "-q"];
    assert_eq!(good(&fit).json()["results"][0]["tokenizer"], "qwen-like");
    good(&["export-grammar", "--tokenizer", name, "C", "-q"]);
    good(&["audit", "one.txt", "--model", name, "--tokenizer", name, "--json", "-q"]);
    let eval = ["eval", "--model", name, "--smiles", "smiles.txt", "--lp", "automaton", "--json", "-q"];
    let runs = good(&[&eval[..], &["--max-new-tokens", "9"]].concat()).json();
    assert_eq!(
        (&runs["runs"][0]["model"], &runs["runs"][0]["tokenizer"]),
        (&"qwen-like".into(), &"qwen-like".into())
    );
}

#[test]
#[cfg_attr(not(all_tests), ignore = "takes long: DRIFT_ALL=1")]
fn what_is_extended_is_taken_by_name() {
    let folder = cache();
    let name = "Own/qwen-like";
    folder.file("one.txt", format!("{TEXT}\n"));
    let good = |words: &[&str]| run(&folder, words).done();
    let train =
        ["train-tokenizer", "--base", name, "--model", name, "--range", "1", "--tokens-per-block", "11"];
    good(&[&train[..], &["--corpus", "one.txt", "-o", "extended", "-q"]].concat());
    let report =
        good(&["extend-model", "--model", name, "--tokenizer", "extended", "-o", "out", "-q", "--json"])
            .json();
    assert_eq!((&report["model"], &report["base"]), (&"qwen-like".into(), &"qwen-like".into()));
    // Links are followed: what is written are files.
    assert!(!folder.path().join("out/model.safetensors").is_symlink());
}

#[test]
fn what_is_not_there_is_said_with_the_command_that_fetches_it() {
    let folder = cache();
    let hub = folder.path().join("hub/models--Own--qwen-like");
    let snapshot = hub.join("snapshots").join(COMMITS[0]);
    let says = |words: &[&str], parts: &[&str]| {
        let line = run(&folder, words).refused();
        assert!(parts.iter().all(|part| line.contains(part)), "{line}");
    };
    let inspect = |name| ["inspect", "--tokenizer", name, TEXT];
    says(
        &inspect("Own/other"),
        &[
            "Own/other: is neither a path nor in the Hugging Face cache",
            "hub; fetch it: hf download Own/other",
        ],
    );
    says(
        &inspect("Own/qwen-like@v3"),
        &[
            "revision v3 is not in the cache, only 01234567 and 01aa4567; fetch it: hf download Own/qwen-like --revision v3",
        ],
    );
    says(
        &inspect("Own/qwen-like@01"),
        &["01 begins both 0123456789abcdef", "give more characters of the commit"],
    );
    says(&inspect("Own/qwen-like.json"), &["Own/qwen-like.json: No such file or directory"]);
    let eval = ["eval", "--model", "Own/qwen-like@v2", "-q"];
    says(
        &eval,
        &[
            "Own/qwen-like@v2: is in the cache without config.json; fetch it: hf download Own/qwen-like --revision v2",
        ],
    );
    // A link that leads nowhere, whatever file it is.
    let eval = ["eval", "--model", "Own/qwen-like", "-q"];
    let link = snapshot.join("generation_config.json");
    std::fs::remove_file(snapshot.join(std::fs::read_link(&link).unwrap())).unwrap();
    says(
        &eval,
        &[
            "its generation_config.json in the cache is a link to the blob ",
            "which is missing; fetch it: hf download Own/qwen-like",
        ],
    );
    std::fs::remove_file(link).unwrap();
    // A shard that was not fetched.
    std::fs::remove_file(snapshot.join("model.safetensors")).unwrap();
    says(
        &eval,
        &["Own/qwen-like: is in the cache, but its weights are missing; fetch it: hf download Own/qwen-like"],
    );
    put(
        &folder,
        COMMITS[0],
        "model.safetensors.index.json",
        br#"{"weight_map": {"a": "model-1.safetensors"}}"#,
    );
    says(&eval, &["without `model-1.safetensors`, which model.safetensors.index.json lists; fetch it"]);
    // The tokenizer alone is enough where nothing else is wanted.
    assert_eq!(count(&folder, "Own/qwen-like"), count(&folder, "qwen-like"));
    std::fs::remove_file(snapshot.join("tokenizer.json")).unwrap();
    says(&inspect("Own/qwen-like"), &["is in the cache without tokenizer.json; fetch it"]);
    std::fs::remove_file(hub.join("refs/main")).unwrap();
    says(&inspect("Own/qwen-like"), &["revision main is not in the cache"]);
    std::fs::remove_dir_all(hub.join("snapshots")).unwrap();
    says(&inspect("Own/qwen-like"), &["is in the cache, but has no files there; fetch it"]);
}
