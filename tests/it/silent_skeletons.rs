//! Texts by skeletons that were judged wrongly without a word.

use serde_json::{Value, json};

use crate::support::{Folder, rows};

/// The verdicts on texts of one prompt, and the row of all of them.
fn audited(skeleton: &Value, prompt: &Value, texts: &[&str]) -> (Vec<Value>, Value) {
    let folder = Folder::new();
    folder.file("skeleton.json", skeleton.to_string());
    folder.file("prompts.jsonl", format!("{prompt}\n"));
    let lines = texts.iter().map(|text| format!("{}\n", json!({"prompt": "p", "text": text})));
    folder.file("texts.jsonl", lines.collect::<String>());
    let line = "audit texts.jsonl --skeleton skeleton.json --prompts prompts.jsonl --verdicts v.jsonl --json";
    let report = folder.line(line).done().json();
    (rows(&folder.read("v.jsonl")), report["rows"][0].clone())
}

/// Whether each text passes.
fn passed(skeleton: &Value, prompt: &Value, texts: &[&str]) -> Vec<bool> {
    let (verdicts, _) = audited(skeleton, prompt, texts);
    verdicts.iter().map(|verdict| verdict["passed"].as_bool().unwrap()).collect()
}

/// A skeleton with a digit `x`.
fn digits(items: &Value, text: &Value) -> Value {
    json!({
        "schema": "drift.skeleton/1",
        "name": "digits",
        "slots": {"x": {"kind": "integer", "low": 0, "high": 9}},
        "items": items,
        "text": text,
        "ends": [""],
    })
}

/// crystal-text, as it is built in.
fn crystal() -> Value {
    serde_json::from_str(include_str!("../../src/core/skeleton/builtin/crystal-text.json")).unwrap()
}

#[test]
fn formulas_come_in_whole_multiples_without_words_too() {
    let items = json!({"a": [{"from": "formula", "field": "formula", "times": [1, 4], "order": "any"}]});
    let skeleton = digits(&items, &json!([{"each": "a", "text": "{x} {x}\n"}]));
    let texts = [1, 2, 3, 4, 7, 8, 9].map(|count| "1 2\n".repeat(count));
    let found =
        passed(&skeleton, &json!({"prompt": "p", "formula": "NaCl"}), &texts.each_ref().map(String::as_str));
    assert_eq!(found, [false, true, false, true, false, true, false]);
}

#[test]
fn ends_that_look_like_tokens_are_the_skeletons_own() {
    let (items, prompt) = (json!({}), json!({"prompt": "p"}));
    let tags = digits(&items, &json!(["<sites>{x}</sites>"]));
    assert_eq!(
        passed(&tags, &prompt, &["<sites>1</sites>", "<sites>1</sites></s>", "<sites>1"]),
        [true, true, false]
    );
    let bars = digits(&items, &json!(["{x}<|b|>"]));
    assert_eq!(passed(&bars, &prompt, &["1<|b|>", "1<|b|><|im_end|>", "1"]), [true, true, false]);
}

#[test]
fn numbers_of_several_damaged_atoms_are_no_atom() {
    let atoms = |numbers: [&str; 4]| {
        let lines: String = numbers.iter().map(|numbers| format!("Na\n{numbers}\n")).collect();
        format!("4.0 4.0 4.0\n90 90 90\n{lines}")
    };
    let whole = atoms(["0.00 0.00 0.00", "0.50 0.00 0.50", "0.00 0.50 0.50", "0.50 0.50 0.50"]);
    let damaged = atoms(["0.00 0.00 0.00", "0.50 0.00 x", "0.00 x 0.50", "0.50 0.50 0.50"]);
    let lost = atoms(["x 0.00 0.00", "0.50 0.00 0.50", "0.00 0.50 0.50", "0.50 0.50 0.50"]);
    let prompt = json!({"prompt": "p", "species": ["Na", "Na", "Na", "Na"]});
    let (verdicts, _) = audited(&crystal(), &prompt, &[&whole, &damaged, &lost]);
    let distance = verdicts[0]["geometry"]["shortest_distance_angstrom"].as_f64().unwrap();
    assert!((distance - 2.0).abs() < 1e-9, "{distance}");
    assert!(verdicts[1]["geometry"].is_null() && verdicts[2]["geometry"].is_null(), "{verdicts:?}");
}

#[test]
fn cells_without_volume_are_counted_where_no_cell_has_one() {
    let text = "4.0 4.0 4.0\n10 10 170\nNa\n0.00 0.00 0.00";
    let (_, row) = audited(&crystal(), &json!({"prompt": "p", "species": ["Na"]}), &[text, text]);
    assert_eq!(
        (&row["geometry"]["texts"], &row["geometry"]["without_volume"]),
        (&json!(2), &json!(2)),
        "{row}"
    );
}
