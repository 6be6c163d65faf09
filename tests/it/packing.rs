//! `encode --pack`: units fit, as Hugging Face's `tokenizers` count them, nothing is cut or lost, and the same units come out again.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokenizers::Tokenizer as HfTokenizer;

use crate::support::{Folder, more, rows};

/// Conformers of molecules, some of them of many: chains of different lengths in random walks.
fn corpus() -> String {
    let mut lines = String::new();
    for molecule in 0..8usize {
        for conformer in 0..[1, 9, 2, 30, 4][molecule % 5] {
            let block = |at: usize| {
                let value = |axis: usize| {
                    ((at * 7 + axis * 13 + conformer * 29 + molecule * 3) % 1_900) as f64 / 100.0 - 9.0
                };
                format!("[C]<{:.4},{:.4},{:.4}>", value(0), value(1), value(2))
            };
            let text: String = (0..2 + molecule * 2).map(block).collect();
            let smiles = "C".repeat(2 + molecule * 2);
            let row = json!({ "id": format!("{molecule}-{conformer}"), "canonical_smiles": smiles, "embedded_smiles": text });
            lines.push_str(&(row.to_string() + "\n"));
        }
    }
    lines
}

fn texts_of(unit: &Value) -> Vec<String> {
    let text = unit["text"].as_str().unwrap();
    text.split("[CONFORMER]")
        .skip(1)
        .map(|part| part.split("[/CONFORMER]").next().unwrap().to_owned())
        .collect()
}

/// Packs the corpus, and counts each unit by `tokenizers` itself.
fn packed(
    folder: &Folder,
    tokenizer: &str,
    json: &std::path::Path,
    most: usize,
    more: &[&str],
) -> (Value, Vec<Value>) {
    let most_text = most.to_string();
    let command =
        ["encode", "c.jsonl", "-o", "u.jsonl", "--json", "--pack", &most_text, "--tokenizer", tokenizer];
    let report = folder.drift(&[&command[..], more].concat()).good().json();
    let units = rows(&folder.read("u.jsonl"));
    let reference = HfTokenizer::from_file(json).unwrap();
    let mut tokens = 0;
    for unit in &units {
        let count = reference.encode(unit["text"].as_str().unwrap(), true).unwrap().get_ids().len();
        assert_eq!(unit["tokens"], count);
        assert!(count <= most, "{count} of {most}");
        tokens += count;
    }
    assert_eq!((&report["pack"]["units"], &report["pack"]["tokens"]), (&json!(units.len()), &json!(tokens)));
    let share = report["pack"]["filled_share"].as_f64().unwrap();
    assert!((share - tokens as f64 / (units.len() * most) as f64).abs() < 1e-12);
    (report, units)
}

fn tokenizers() -> Vec<(String, std::path::PathBuf)> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all: Vec<(String, std::path::PathBuf)> = ["qwen-like", "llama-like", "qwen-like-fused"]
        .map(|name| (name.to_owned(), root.join("tokenizers").join(name).join("tokenizer.json")))
        .into();
    for name in ["llama-3.2", "mistral-v1", "qwen3-custom"] {
        let path = more().map(|shared| shared.join("tokenizers").join(name).join("tokenizer.json"));
        all.extend(path.filter(|path| path.is_file()).map(|path| (path.display().to_string(), path)));
    }
    all
}

#[test]
fn units_of_a_molecule_fit_and_hold_every_conformer_once() {
    let folder = Folder::new();
    folder.file("c.jsonl", corpus());
    let given = rows(corpus().as_bytes());
    for (tokenizer, json) in tokenizers() {
        let (report, units) = packed(&folder, &tokenizer, &json, 1_000, &[]);
        let ids = |unit: &Value| {
            unit["ids"]
                .as_array()
                .unwrap()
                .iter()
                .map(|id| id.as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        let mut found: Vec<String> = units.iter().flat_map(ids).collect();
        found.sort();
        let mut wanted: Vec<String> =
            given.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect();
        wanted.sort();
        assert_eq!(found, wanted);
        assert_eq!((&report["conformers"], &report["pack"]["too_long"]), (&json!(given.len()), &json!(0)));
        for unit in &units {
            let smiles = unit["canonical_smiles"].as_str().unwrap();
            assert!(
                unit["text"].as_str().unwrap().starts_with(&format!("[SMILES]{smiles}[/SMILES][CONFORMER]"))
            );
            let texts: Vec<String> = ids(unit)
                .iter()
                .map(|id| {
                    given.iter().find(|row| row["id"] == **id).unwrap()["embedded_smiles"]
                        .as_str()
                        .unwrap()
                        .to_owned()
                })
                .collect();
            assert_eq!(texts_of(unit), texts);
            assert!(
                given
                    .iter()
                    .filter(|row| ids(unit).iter().any(|id| row["id"] == **id))
                    .all(|row| row["canonical_smiles"] == smiles)
            );
        }
        // Thirty conformers of a molecule are packed: fewer units than conformers.
        assert!(units.len() * 2 < given.len(), "{} units", units.len());
        // No two units of a molecule that are half empty.
        let half = |smiles: &str| {
            units
                .iter()
                .filter(|unit| unit["canonical_smiles"] == smiles && unit["tokens"].as_u64().unwrap() < 480)
                .count()
        };
        let molecules: BTreeSet<&str> =
            given.iter().map(|row| row["canonical_smiles"].as_str().unwrap()).collect();
        assert!(molecules.iter().all(|smiles| half(smiles) <= 1));
    }
}

#[test]
fn units_of_any_molecules_are_full() {
    let folder = Folder::new();
    folder.file("c.jsonl", corpus());
    let given = rows(corpus().as_bytes());
    for (tokenizer, json) in tokenizers() {
        let (report, units) = packed(&folder, &tokenizer, &json, 1_000, &["--mixed"]);
        let mut found: Vec<Value> =
            units.iter().flat_map(|unit| unit["ids"].as_array().unwrap().clone()).collect();
        for unit in &units {
            let of = |id: &Value| given.iter().find(|row| row["id"] == *id).unwrap();
            let records: Vec<String> =
                unit["ids"].as_array().unwrap().iter().map(|id| record(of(id))).collect();
            assert_eq!(unit["text"], records.join("\n"));
        }
        let mut wanted: Vec<Value> = given.iter().map(|row| row["id"].clone()).collect();
        found.sort_by_key(Value::to_string);
        wanted.sort_by_key(Value::to_string);
        assert_eq!((found, &report["skipped"]), (wanted, &json!(0)));
        assert!(report["pack"]["filled_share"].as_f64().unwrap() > 0.85, "{tokenizer}: {}", report["pack"]);
    }
}

/// A conformer behind its prompt.
fn record(row: &Value) -> String {
    let [smiles, text] = ["canonical_smiles", "embedded_smiles"].map(|field| row[field].as_str().unwrap());
    format!("[SMILES]{smiles}[/SMILES][CONFORMER]{text}[/CONFORMER]")
}

#[test]
fn what_does_not_fit_alone_is_skipped_and_listed() {
    let folder = Folder::new();
    folder.file("c.jsonl", corpus());
    let (tokenizer, json) = tokenizers().swap_remove(0);
    let (report, units) = packed(&folder, &tokenizer, &json, 150, &[]);
    let reference = HfTokenizer::from_file(&json).unwrap();
    let mut too_long = Vec::new();
    for (line, row) in (1..).zip(rows(corpus().as_bytes())) {
        let count = reference.encode(record(&row), true).unwrap().get_ids().len();
        too_long.extend((count > 150).then(|| (format!("line {line}"), count)));
    }
    assert!(!too_long.is_empty() && !units.is_empty());
    assert_eq!(
        (&report["pack"]["too_long"], &report["skipped"]),
        (&json!(too_long.len()), &json!(too_long.len()))
    );
    assert_eq!(report["skipped_by_reason"], json!({ "longer than a unit": too_long.len() }));
    for ((record, count), listed) in too_long.iter().zip(report["skipped_records"].as_array().unwrap()) {
        assert_eq!((&listed["record"], &listed["file"]), (&json!(record), &json!("c.jsonl")));
        assert_eq!(listed["reason"], format!("longer than a unit: it takes {count} tokens alone, of 150"));
    }
}

#[test]
fn examples_stand_before_their_target() {
    let folder = Folder::new();
    folder.file("c.jsonl", corpus());
    let given = rows(corpus().as_bytes());
    for (tokenizer, json) in tokenizers() {
        let (report, units) = packed(&folder, &tokenizer, &json, 2_000, &["--examples", "3"]);
        assert_eq!((units.len(), &report["conformers"]), (given.len(), &json!(given.len())));
        let mut most = 0;
        for (unit, row) in units.iter().zip(&given) {
            assert_eq!(unit["ids"], json!([row["id"]]));
            let examples = unit["examples"].as_array().unwrap();
            most = most.max(examples.len());
            let of = |id: &Value| given.iter().find(|row| row["id"] == *id).unwrap();
            let mut wanted: String = examples.iter().map(|id| record(of(id)) + "\n").collect();
            wanted.push_str(&record(row));
            assert_eq!(unit["text"], wanted);
            // Other molecules, each once, and the nearest.
            let molecules: BTreeSet<&str> =
                examples.iter().map(|id| of(id)["canonical_smiles"].as_str().unwrap()).collect();
            assert!(
                molecules.len() == examples.len()
                    && !molecules.contains(row["canonical_smiles"].as_str().unwrap())
            );
        }
        assert!(most == 3 || tokenizer.contains("qwen"), "{tokenizer}: {most}");
        // More than there are molecules, and the largest number that can be given.
        let [all, more] = ["1000", "18446744073709551615"]
            .map(|most| packed(&folder, &tokenizer, &json, 2_000, &["--examples", most]).1);
        assert!(all == more && all.iter().any(|unit| unit["examples"].as_array().unwrap().len() >= most));
    }
}

#[test]
fn separators_and_threads() {
    let folder = Folder::new();
    folder.file("c.jsonl", corpus());
    let (tokenizer, json) = tokenizers().swap_remove(0);
    let (report, units) =
        packed(&folder, &tokenizer, &json, 700, &["--pack-separator", "\\n", "--threads", "1"]);
    assert_eq!(report["pack"]["separator"], "\n");
    assert!(units.iter().any(|unit| unit["text"].as_str().unwrap().contains("[/CONFORMER]\n[CONFORMER]")));
    let once = folder.read("u.jsonl");
    packed(&folder, &tokenizer, &json, 700, &["--pack-separator", "\\n", "--threads", "3"]);
    assert!(folder.read("u.jsonl") == once);
    let (_, bins) = packed(&folder, &tokenizer, &json, 700, &["--encoding", "binned-v1:-21,21,0.05"]);
    assert!(bins.len() < units.len() && bins[0]["text"].as_str().unwrap().contains("[C]<2"));
    for (line, option) in [
        ("encode c.jsonl -o u.jsonl --pack 100", "--tokenizer"),
        ("encode c.jsonl -o u.jsonl --examples 2", "--pack"),
        ("encode c.jsonl -o s --pack 100 --tokenizer qwen-like --shard 1/1", "--shard"),
    ] {
        folder.line(line).refused_usage(option);
    }
    folder
        .line("encode c.jsonl -o u.jsonl --pack 0 --tokenizer qwen-like")
        .refused_for("--pack: a unit without tokens");
    folder.line("encode c.jsonl -o u.jsonl --pack 9 --tokenizer none").refused_for("none");
    folder
        .line("encode c.jsonl -o v.jsonl --pack 3 --tokenizer qwen-like")
        .refused_for("no conformer could be read");
}
