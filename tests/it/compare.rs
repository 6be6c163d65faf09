//! `drift compare`.

use crate::support::Folder;

const A: &str = r#"{"runs": [
 {"lp": "none", "placeholder": null, "model": "m", "tokenizer": "t", "device": "cpu", "passed": 10, "samples": 20, "rate": 2.0},
 {"lp": "automaton", "model": "m", "tokenizer": "t", "device": "cpu", "passed": 20, "samples": 20, "seconds": {"forward": 4.0}}]}"#;
const B: &str = r#"{"runs": [
 {"lp": "automaton", "model": "m", "tokenizer": "t", "device": "cpu", "passed": 20, "samples": 20, "seconds": {"forward": 1.0}},
 {"lp": "generic", "model": "m", "tokenizer": "t", "device": "cpu", "passed": 1, "samples": 20}]}"#;

#[test]
fn runs_are_matched_by_what_they_are() {
    let folder = Folder::new();
    folder.file("a.json", A);
    folder.file("b.json", B);
    let report = folder.drift(&["compare", "a.json", "b.json", "--json"]).good().json();
    assert_eq!(report["kind"], "eval");
    assert_eq!(report["groups"].as_array().unwrap().len(), 1);
    let figures = report["groups"][0]["figures"].as_array().unwrap();
    let forward = figures.iter().find(|figure| figure["name"] == "seconds.forward").unwrap();
    assert_eq!(forward["values"], serde_json::json!([4.0, 1.0]));
    assert_eq!(forward["ratio"], 0.25);
    assert_eq!(report["unmatched"], serde_json::json!([["m, t, none, cpu"], ["m, t, generic, cpu"]]));

    let ran = folder.drift(&["compare", "a.json", "b.json"]).good();
    let shown = ran.text();
    assert!(shown.contains("seconds.forward") && shown.contains("2 figures are equal."), "{shown}");
    assert!(shown.contains("m, t, generic, cpu"), "{shown}");
}

#[test]
fn traces_are_summed_by_name() {
    let folder = Folder::new();
    let a = r#"{"traceEvents": [{"name": "forward", "cat": "gpu", "ph": "X", "ts": 0, "dur": 1500000, "pid": 1, "tid": "x"},
        {"name": "forward", "cat": "gpu", "ph": "X", "ts": 9, "dur": 500000},
        {"name": "mask", "cat": "gpu", "ph": "B", "ts": 10, "pid": 1, "tid": 2}, {"ph": "E", "ts": 1000010, "pid": 1, "tid": 2}]}"#;
    let b = r#"[{"name": "forward", "cat": "gpu", "ph": "X", "ts": 0, "dur": 1000000}, {"ph": "M", "name": "process_name"}]"#;
    folder.file("a.json", a);
    folder.file("b.json", b);
    let report = folder.drift(&["compare", "a.json", "b.json", "--json"]).good().json();
    let figures = report["groups"][0]["figures"].as_array().unwrap();
    let figure = |name: &str| figures.iter().find(|figure| figure["name"] == name).unwrap()["values"].clone();
    assert_eq!(figure("forward: seconds"), serde_json::json!([2.0, 1.0]));
    assert_eq!(figure("forward: events"), serde_json::json!([2.0, 1.0]));
    assert_eq!(figure("mask: seconds"), serde_json::json!([1.0, null]));
}

#[test]
fn other_files_are_refused() {
    let folder = Folder::new();
    for (name, text) in [("a.json", A), ("t.json", "[]"), ("x.txt", "hello"), ("o.json", "{\"a\": 1}")] {
        folder.file(name, text);
    }
    for (pair, problem) in [
        (["a.json", "t.json"], "same kind"),
        (["x.txt", "a.json"], "is not JSON"),
        (["o.json", "a.json"], "neither `runs` nor `traceEvents`"),
    ] {
        let ran = folder.drift(&["compare", pair[0], pair[1]]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains(problem) && ran.stderr.trim().lines().count() == 1, "{}", ran.stderr);
    }
}
