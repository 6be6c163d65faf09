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

/// A skeleton with items `a` from the list `w`, a digit `x` and a code `c` of two characters.
fn listed(text: &Value) -> Value {
    json!({
        "schema": "drift.skeleton/1",
        "name": "listed",
        "slots": {
            "x": {"kind": "integer", "low": 0, "high": 9},
            "c": {"kind": "codes", "alphabet": "0123456789ab", "width": 2},
        },
        "items": {"a": {"from": "list", "field": "w"}},
        "text": text,
    })
}

/// Removes the slots that stand nowhere, which are refused.
fn used(mut skeleton: Value) -> Value {
    let text = skeleton["text"].to_string();
    skeleton["slots"].as_object_mut().unwrap().retain(|name, _| text.contains(&format!("{{{name}}}")));
    skeleton
}

#[test]
fn texts_end_where_the_skeleton_says() {
    for (text, prompt, texts, expected) in [
        // A word is the last of a text.
        (
            json!([{"each": "a", "text": "{a}", "between": " "}]),
            json!(["N", "Na"]),
            &["N Na", "N Na\n", "N N", "N", "N C"][..],
            &[true, false, false, false, false][..],
        ),
        // Slots of fixed widths stand one behind another over the ends of items.
        (
            json!([{"each": "a", "text": "{c}{c}"}]),
            json!(["N", "O"]),
            &["01ab0b22", "01ab0b2", "01ab0bx2"],
            &[true, false, false],
        ),
        (
            json!(["{c}", {"each": "a", "text": ";{c}"}, "{c}"]),
            json!(["N", "O"]),
            &["01;01;0a0b", "01;01;0a"],
            &[true, false],
        ),
        // What follows the loop is the beginning of what stands between its items.
        (
            json!([{"each": "a", "text": "{a} {x}", "between": "\n\n"}, "\nend"]),
            json!(["N", "O"]),
            &["N 1\n\nO 2\nend", "N 1\nend", "N 1\n\nO 2\n\nend"],
            &[true, false, false],
        ),
        // Words hold the text that follows words.
        (
            json!([{"each": "a", "text": "{a}({x})"}]),
            json!(["C(=O)O", "N", "C"]),
            &["C(=O)O(1)N(2)C(3)", "C(=O)(1)N(2)C(3)", "C(=O)O(1)N(2)C(=O"],
            &[true, false, false],
        ),
        (
            json!([{"each": "a", "text": "{a}: {x}\n"}]),
            json!(["A:B", "N"]),
            &["A:B: 1\nN: 2\n", "N: 1\nA:B: 2\n"],
            &[true, false],
        ),
    ] {
        let mut skeleton = used(listed(&text));
        for order in ["given", "any"] {
            skeleton["items"]["a"]["order"] = json!(order);
            let found = passed(&skeleton, &json!({"prompt": "p", "w": prompt}), texts);
            let expected: Vec<bool> = expected
                .iter()
                .zip(texts)
                .map(|(one, text)| *one || (order == "any" && text.starts_with("N: ")))
                .collect();
            assert_eq!(found, expected, "{order} {text}");
        }
    }
}

#[test]
fn skeletons_whose_texts_cannot_be_read_back_are_refused() {
    let count = |least: u32| json!({"a": [{"from": "between", "least": least, "most": 12}]});
    let wall = json!([{"each": "a", "text": "wall {x}", "between": "\n"}, "wall height {x}"]);
    let comma = json!([{"each": "a", "text": "{x}", "between": ","}, "{x};"]);
    let twice = json!([{"each": "a", "text": "{x};"}, "\n", {"each": "a", "text": "{x},"}]);
    let folder = Folder::new();
    folder.file("texts.jsonl", "{\"prompt\": \"p\", \"text\": \"1\"}\n");
    let line = "audit texts.jsonl --skeleton skeleton.json --prompts prompts.jsonl";
    for (mut skeleton, field, part) in [
        (digits(&count(0), &comma), "", "an item begins like what follows"),
        (digits(&count(1), &twice), "", "it has two loops over `a`"),
        (
            digits(&count(1), &json!(["{a.count}{x}", {"each": "a", "text": ";{x}"}])),
            "",
            "stated of `a` could go on",
        ),
        (digits(&json!({}), &json!(["a\n", "b{x}"])), "", "`text` has `marker` itself in `a\\nb`"),
        (digits(&json!({}), &json!(["{f}:{x}"])), "-a\nb-", "`text` has `marker` itself in `-a\\nb-:`"),
    ] {
        if part.contains("marker") {
            skeleton["marker"] = json!("a\nb");
        }
        if !field.is_empty() {
            skeleton["fields"] = json!(["f"]);
        }
        folder.file("skeleton.json", skeleton.to_string());
        folder.file("prompts.jsonl", format!("{}\n", json!({"prompt": "p", "f": field})));
        folder.line(line).refused_for(part);
    }
    // An item begins otherwise than what follows, so that there may be none.
    let found =
        passed(&digits(&count(0), &wall), &json!({"prompt": "p"}), &["wall height 3", "wall 1wall height 3"]);
    assert_eq!(found, [true, true]);
}

#[test]
fn grammars_that_llguidance_does_not_take_are_refused() {
    let folder = Folder::new();
    folder.file("prompts.jsonl", "{\"smiles\": \"CN\"}\n");
    let line =
        "export-grammar --tokenizer qwen-like --skeleton 3dsmiles-base62 --prompts prompts.jsonl -o g.jsonl";
    folder.line(&format!("{line} --format lark")).refused_for("give ebnf, for XGrammar");
    folder.line(&format!("{line} --format ebnf")).done();
}
