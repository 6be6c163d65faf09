//! Rows of texts of which a figure or a sentence was wrong without a word.

use serde_json::{Value, json};

use crate::support::{Folder, rows};

/// Ethane that passes.
const GOOD: &str = "[CONFORMER][C]<0.0000,0.0000,0.0000>[C]<1.5000,0.0000,0.0000>[/CONFORMER]";

/// The same without an end.
const CUT: &str = "[CONFORMER][C]<0.0000,0.0000,0.0000>[C]<1.5000,0.0000";

fn line(generation: usize, lp: &str, text: &str, more: Value) -> String {
    let mut row = json!({"smiles": "CC", "generation": generation, "lp": lp, "text": text});
    row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    format!("{row}\n")
}

fn audited(lines: &str, more: &[&str]) -> Value {
    let folder = Folder::new();
    folder.file("texts.jsonl", lines);
    folder.drift(&[&["audit", "texts.jsonl", "--dialect", "fixed", "--json"], more].concat()).done().json()
}

fn advice(record: &Value) -> String {
    let lines: Vec<&str> = record["advice"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    lines.join("\n")
}

#[test]
fn rows_of_unequal_numbers_of_texts_are_compared_by_what_both_have() {
    let without = (0..100).map(|at| line(at, "none", if at % 2 == 0 { GOOD } else { CUT }, json!({})));
    let with = (0..40).map(|at| line(at, "automaton", GOOD, json!({})));
    let record = audited(&without.chain(with).collect::<String>(), &["--against-row", "none"]);
    assert_eq!(record["comparisons"][0]["passed_difference"], 20);
    let said = advice(&record);
    assert!(said.contains("use `automaton`: more texts pass"), "{said}");
    assert!(said.contains("40 of 40 pass instead of 50 of 100"), "{said}");
}

#[test]
fn a_row_that_is_cut_has_the_speed_of_its_texts() {
    let row = |lp, count| (0..count).map(move |at| line(at, lp, GOOD, json!({"seconds": 1.0, "tokens": 20})));
    let lines: String = row("none", 64).chain(row("automaton", 40)).collect();
    let comparison = &audited(&lines, &["--against-row", "none"])["comparisons"][0];
    assert_eq!((&comparison["speed"]["ratio"], &comparison["speed_ratio"]), (&json!(1.0), &json!(1.0)));
}

#[test]
fn a_header_tells_nothing_of_texts_that_are_left_out() {
    let folder = Folder::new();
    let generate =
        ["generate", "--samples", "3", "--generations", "2", "--lp", "none,automaton", "-o", "g.jsonl"];
    folder.drift(&generate).done();
    let whole = folder.drift(&["audit", "g.jsonl", "--json"]).done().json();
    assert!(whole["runs"][0]["decode_steps"].is_u64() && whole["runs"][0]["texts"] == 6);
    let part = folder.drift(&["audit", "g.jsonl", "--where", "generation=0", "--json"]).done().json();
    let run = &part["runs"][0];
    assert_eq!(run["samples"], 3);
    assert!(run.get("texts").is_none() && run.get("decode_steps").is_none(), "{run}");
    assert_eq!(run["tokenizer"], whole["runs"][0]["tokenizer"]);
    let tokens = |record: &Value| record["runs"][0]["generated_tokens"].as_u64().unwrap();
    assert!(tokens(&part) < tokens(&whole), "{} of {}", tokens(&part), tokens(&whole));
}

#[test]
fn rows_of_two_models_need_not_be_adjacent() {
    let is_cut = |lp: &str, at: usize| lp == "none" && at.is_multiple_of(2);
    let texts = |lp: &str, at: usize| if is_cut(lp, at) { CUT } else { GOOD };
    let one = |at: usize, lp: &str, model: &str| line(at, lp, texts(lp, at), json!({"model": model}));
    let mut lines = String::new();
    for at in 0..30 {
        for lp in ["none", "automaton"] {
            lines.extend(["a", "b"].map(|model| one(at, lp, model)));
        }
    }
    let said = advice(&audited(&lines, &["--against-row", "none"]));
    for model in ["a: use `automaton`", "b: use `automaton`"] {
        assert_eq!(said.matches(model).count(), 1, "{said}");
    }
    // There are no references, which is another reason than too few texts.
    assert!(said.contains("there are no references to compare geometry with"), "{said}");
    assert!(!said.contains("too few"), "{said}");
}

#[test]
fn truncated_blocks_are_counted_through_all_conformers_of_a_text() {
    let one = "[CONFORMER][C]<0,0,0>[C]<1.5,0.1234,0>[/CONFORMER]";
    let row = json!({"smiles": "CC", "text": format!("{one}{one}"), "truncated_blocks": [2]});
    let folder = Folder::new();
    folder.file("texts.jsonl", format!("{row}\n"));
    let command = ["audit", "texts.jsonl", "--dialect", "stripped", "--conformers", "all", "--json"];
    let record = folder.drift(&command).done().json();
    assert_eq!(
        (&record["runs"][0]["blocks"], &record["runs"][0]["truncated_blocks"]),
        (&json!(4), &json!(1))
    );
}

#[test]
fn texts_without_a_prompt_are_a_share_of_all_texts_and_have_energies() {
    // Chains of carbon of twenty lengths, zigzag, half of them cut.
    let chain = |atoms: usize| -> String {
        let block = |at: usize| format!("[C]<{:.4},{:.4},0.0000>", 1.27 * at as f64, 0.83 * (at % 2) as f64);
        format!("[CONFORMER]{}", (0..atoms).map(block).collect::<String>())
    };
    let line = |text: String| format!("{}\n", json!({"text": text}));
    let lines: String = (3..23)
        .flat_map(|atoms| [line(format!("{}[/CONFORMER]", chain(atoms))), line(chain(atoms))])
        .collect();
    let program = "awk '/^[0-9]+$/ {print -10 * $1, -10 * $1}'";
    let record = audited(&lines, &["--energy", program]);
    let run = &record["runs"][0];
    assert_eq!((&run["samples"], &run["checked"]), (&json!(40), &json!(20)));
    let interval = &run["chemistry_intervals"]["valid"];
    let (low, high) = (interval["low"].as_f64().unwrap(), interval["high"].as_f64().unwrap());
    let share = run["valid"].as_f64().unwrap() / 40.0;
    assert!(low <= share && share <= high && low < 0.6, "{share}: {interval}");
    assert_eq!(record["energy"]["total"]["texts"], 20, "{}", record["energy"]["total"]);
}

#[test]
fn the_cost_of_a_row_with_several_texts_is_that_of_all_of_them() {
    let row =
        json!({"smiles": "CC", "all_generations": [GOOD, GOOD, GOOD, GOOD], "seconds": 2.0, "tokens": 42});
    let record = audited(&format!("{row}\n"), &[]);
    let run = &record["runs"][0];
    assert_eq!((&run["samples"], &run["generated_tokens"]), (&json!(4), &json!(42)));
    assert_eq!(run["conformers_per_second"], 2.0);
}

#[test]
fn isomers_without_a_text_are_listed() {
    let empty = "{\"geom_smiles\": \"CC\", \"isomers\": {\"CC\": []}}\n";
    let record = audited(&[line(0, "none", GOOD, json!({})), empty.to_owned()].concat(), &[]);
    assert_eq!((&record["total"]["samples"], &record["skipped"]), (&json!(1), &json!(1)));
    let skipped = &record["skipped_records"][0];
    assert_eq!(
        (&skipped["record"], &skipped["reason"]),
        (&json!("line 2.isomers.CC"), &json!("contains no text"))
    );
}

#[test]
fn generations_are_numbers_however_tables_write_them() {
    let rows = |generations: [Value; 2], lp: &str| {
        let [first, second] = generations;
        let texts = [(first, GOOD), (second, CUT)];
        texts.map(|(generation, text)| line(0, lp, text, json!({"generation": generation}))).concat()
    };
    // A column with an empty cell is one of floats in pandas. The texts of the two rows are the same, in another order.
    let other = [json!("1"), json!(0.0)];
    let reversed = line(0, "b", CUT, json!({"generation": other[0]}))
        + &line(0, "b", GOOD, json!({"generation": other[1]}));
    let record = audited(&[rows([json!(0), json!(1)], "a"), reversed].concat(), &["--against-row", "a"]);
    let comparison = &record["comparisons"][0];
    assert_eq!((&comparison["identical"], &comparison["well_formed_without"]), (&json!(1), &json!(1)));
    // Anything else is no number of a text.
    let record = audited(&[rows([json!(-1), json!(0.5)], "a"), line(2, "a", GOOD, json!({}))].concat(), &[]);
    assert_eq!((&record["total"]["samples"], &record["skipped"]), (&json!(1), &json!(2)));
}

#[test]
fn the_page_tells_what_was_not_read() {
    let folder = Folder::new();
    let text = "[CONFORMER][C]<0.0000,0.0000,0.0000>[O]<1.4000,0.0000,0.0000>[/CONFORMER]";
    let row = |set: &str| format!("{{\"smiles\":\"CO\",\"set\":\"{set}\",\"text\":\"{text}\"}}\n");
    folder.file("texts.jsonl", [row("a"), "{\"smiles\":\n".to_owned(), row("b")].concat());
    folder.line("audit texts.jsonl --dialect fixed --where set=a --html page.html").done();
    let page = String::from_utf8(folder.read("page.html")).unwrap();
    assert!(page.contains("1 record skipped. The first: texts.jsonl: line 2"), "{page}");
    assert!(page.contains("1 row left out by --where."));
}

/// Energies are asked for each conformer that is a row of its own.
#[test]
fn each_conformer_has_its_energy() {
    let folder = Folder::new();
    let conformer = |x: &str| {
        format!(
            "[CONFORMER][CH3]<0.0000,0.0000,0.0000>[CH2]<{x},0.0000,0.0000>[OH]<2.0000,1.3000,0.0000>[/CONFORMER]"
        )
    };
    let whole = format!("[SMILES]CCO[/SMILES]{}{}", conformer("1.5000"), conformer("1.5100"));
    let wrong = whole.replacen("[CONFORMER][CH3]", "[CONFORMER][NH2]", 1);
    let lines = [whole, wrong].map(|text| format!("{}\n", json!({"smiles": "CCO", "text": text})));
    folder.file("texts.jsonl", lines.concat());
    let program = "while read -r n; do read -r _; i=0; while [ $i -lt $n ]; do read -r _; i=$((i+1)); done; echo 1.0; done";
    folder.file("energy.sh", format!("{program}\n"));
    let line = "audit texts.jsonl --dialect fixed --conformers all --energy";
    let arguments: Vec<&str> =
        line.split(' ').chain(["sh energy.sh", "--energy-list", "list.jsonl", "--json"]).collect();
    let report = folder.drift(&arguments).good().json();
    let listed = rows(&folder.read("list.jsonl"));
    let records: Vec<&str> = listed.iter().map(|one| one["record"].as_str().unwrap()).collect();
    assert_eq!(records, ["line 1, conformer 1", "line 1, conformer 2", "line 2, conformer 2"], "{report}");
}

/// "another molecule: c1cccn1, not c1cccn1" would say nothing.
#[test]
fn a_prompt_that_is_no_molecule_is_said_to_be_none() {
    let folder = Folder::new();
    let line = |prompt: &str, text: &str| {
        format!(r#"{{"prompt":"[SMILES]{prompt}[/SMILES]","text":"[CONFORMER]{text}[/CONFORMER]"}}"#)
    };
    let ring = "[c]<0.0000,1.1000,0.0000>1[c]<1.0000,0.3000,0.0000>[c]<0.6000,-0.9000,0.0000>[c]<-0.6000,-0.9000,0.0000>[n]<-1.0000,0.3000,0.0000>1";
    folder.file("texts.jsonl", [line("c1cccn1", ring), line("CCCCN", ring)].join("\n"));
    folder.line("audit texts.jsonl --dialect fixed --verdicts verdicts.jsonl").good();
    let verdicts = rows(&folder.read("verdicts.jsonl"));
    let why = "c1cccn1: aromatic atoms without a Kekulé structure";
    assert_eq!(verdicts[0]["why"], format!("the prompt is not a molecule: {why}"));
    assert_eq!(verdicts[1]["why"], "another molecule: c1cccn1, not CCCCN");
}
