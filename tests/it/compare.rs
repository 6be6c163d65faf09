//! `drift compare`.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

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
fn settings_that_differ_are_told_before_the_figures() {
    let folder = Folder::new();
    let record = |protocol: Value| {
        let mut record: Value = serde_json::from_str(A).unwrap();
        record["protocol"] = protocol;
        record.to_string()
    };
    let references = json!({"from": null, "used": 3, "unused": [1]});
    let a = json!({"molecules_from": "small", "molecules": 8, "seed": 0, "strip_junk": false, "references": references});
    let mut b = a.clone();
    b["molecules_from"] = json!("qm9-like");
    b["references"]["used"] = json!(4);
    folder.file("a.json", record(a));
    folder.file("b.json", record(b));
    let report = folder.drift(&["compare", "a.json", "b.json", "--json"]).good().json();
    let differ = json!([
        {"name": "molecules_from", "values": ["small", "qm9-like"]},
        {"name": "references.used", "values": ["3", "4"]}
    ]);
    assert_eq!(report["settings"], differ);
    let ran = folder.drift(&["compare", "a.json", "b.json"]).good();
    let (settings, note) = (ran.text().find("Settings that differ"), "The molecules differ, so");
    assert!(settings.is_some() && settings < ran.text().find("figures are equal"), "{}", ran.text());
    assert!(ran.text().contains(note), "{}", ran.text());
    let same = folder.drift(&["compare", "a.json", "a.json"]).good();
    assert!(!same.text().contains("Settings"), "{}", same.text());
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

/// Two traces in the layout of torch.profiler, made by `tests/fixtures/make_traces.py`.
const TRACES: [&str; 2] = ["processor.pt.trace.json.gz", "graphs.pt.trace.json.gz"];

fn traces() -> Folder {
    let folder = Folder::new();
    for name in TRACES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/traces").join(name);
        folder.file(name, std::fs::read(path).unwrap());
    }
    folder
}

/// The values of a figure in a table.
fn values(report: &Value, table: &str, row: &str, figure: &str) -> Value {
    let find = |list: &Value, field: &str, name: &str| -> Value {
        let mut list = list.as_array().unwrap().iter();
        list.find(|value| value[field] == name).unwrap_or_else(|| panic!("{name}")).clone()
    };
    let row = find(&find(&report["tables"], "key", table)["rows"], "name", row);
    find(&row["figures"], "name", figure)["values"].clone()
}

#[test]
fn traces_become_eight_tables() {
    let folder = traces();
    let report = folder.drift(&["compare", TRACES[0], TRACES[1], "--json"]).good().json();
    assert_eq!((&report["schema"], &report["kind"]), (&json!("drift.compare/3"), &json!("chrome_trace")));
    let keys: Vec<&str> =
        report["tables"].as_array().unwrap().iter().map(|table| table["key"].as_str().unwrap()).collect();
    let eight = [
        "run",
        "kernel_launches",
        "device_time",
        "attention_calls",
        "copies_and_concatenations",
        "synchronisation",
        "device_idle",
        "phases",
    ];
    assert_eq!(keys, eight);
    // What the script says of its layers: 3 steps of 2 layers, the second trace eager in its first step alone.
    for (table, row, figure, expected) in [
        ("run", "profiler steps", "count", json!([3.0, 3.0])),
        ("run", "events left out", "count", json!([0.0, 0.0])),
        ("kernel_launches", "kernel launches", "calls", json!([102.0, 32.0])),
        ("kernel_launches", "cuLaunchKernelEx", "calls", json!([24.0, 8.0])),
        ("kernel_launches", "graph launches", "calls", json!([0.0, 2.0])),
        ("kernel_launches", "kernels on devices", "calls", json!([102.0, 96.0])),
        ("kernel_launches", "kernel launches", "mean_microseconds", json!([3.75, 3.75])),
        ("device_time", "GEMM", "events", json!([27.0, 27.0])),
        ("device_time", "attention", "events", json!([6.0, 6.0])),
        ("device_time", "reductions", "events", json!([9.0, 9.0])),
        ("device_time", "indexing and embeddings", "events", json!([3.0, 0.0])),
        ("device_time", "memcpy device to host", "events", json!([3.0, 0.0])),
        ("device_time", "all", "share", json!([1.0, 1.0])),
        ("attention_calls", "attention calls", "calls", json!([6.0, 2.0])),
        ("attention_calls", "attention kernels", "calls", json!([6.0, 6.0])),
        ("attention_calls", "flash attention kernels", "mean_microseconds", json!([9.5, 9.5])),
        ("copies_and_concatenations", "elementwise copies", "calls", json!([18.0, 18.0])),
        ("copies_and_concatenations", "concatenations", "calls", json!([24.0, 24.0])),
        ("copies_and_concatenations", "aten::cat", "calls", json!([24.0, 8.0])),
        ("synchronisation", "waits for devices", "calls", json!([3.0, 0.0])),
        ("synchronisation", "aten::item", "calls", json!([3.0, 0.0])),
        ("phases", "forward", "calls", json!([3.0, 3.0])),
        ("phases", "logit_processor", "calls", json!([3.0, null])),
    ] {
        assert_eq!(values(&report, table, row, figure), expected, "{table}, {row}, {figure}");
    }
    for side in 0..2 {
        let value = |table: &str, row: &str, figure: &str| values(&report, table, row, figure)[side].as_f64();
        let of = |row: &str| value("device_idle", row, "seconds").unwrap();
        assert!((of("busy") + of("idle") - of("from first to last")).abs() < 1e-9);
        // One stream: nothing overlaps, so the busy time is that of all events.
        assert!((of("busy") - value("device_time", "all", "seconds").unwrap()).abs() < 1e-9);
        let rows = ["forward", "logit_processor", "ProfilerStep", "outside of all phases"];
        let shares: f64 = rows.iter().filter_map(|row| value("phases", row, "share")).sum();
        let outside = value("phases", "outside of all phases", "share");
        assert!(outside.is_some() && (shares - 1.0).abs() < 1e-9, "{shares}");
    }
}

#[test]
fn tables_are_shown_side_by_side() {
    let folder = traces();
    let ran = folder.drift(&["compare", TRACES[0], TRACES[1]]).good();
    let shown = ran.text();
    let phases = "\
Phases
                       calls   calls                s         s           self s    self s   share   share  device s  device s
                       first  second  ratio     first    second  ratio     first    second   first  second     first    second
──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
forward                    3       3   1.00  0.001038  0.000396  0.381  0.001038  0.000396  62.0 %  85.0 %         -         -
logit_processor            3       -      -  0.000567         -      -  0.000567         -  33.8 %       -         -         -
ProfilerStep               3       3   1.00  0.001615  0.000406  0.251  0.000010  0.000010  0.60 %   2.2 %         -         -
outside of all phases      -       -      -         -         -      -  0.000060  0.000060   3.6 %  12.9 %         -         -
";
    assert!(shown.contains(phases), "{shown}");
    assert!(
        shown.contains("The first is processor.pt.trace.json.gz, the second graphs.pt.trace.json.gz."),
        "{shown}"
    );
    assert!(shown.contains("more figures."), "{shown}");
    assert!(!shown.contains("softmax"), "{shown}");
}

#[test]
fn traces_of_the_cpu_alone_say_nothing_of_devices() {
    let folder = Folder::new();
    let event = |cat: &str, name: &str, ts: f64, dur: f64| json!({"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur});
    let trace = json!({"traceEvents": [
        event("cpu_op", "aten::scaled_dot_product_attention", 10.0, 20.0),
        event("cpu_op", "aten::_scaled_dot_product_attention_math", 11.0, 18.0),
        event("cpu_op", "aten::cat", 40.0, 5.0),
        event("user_annotation", "forward", 0.0, 50.0),
    ]});
    folder.file("cpu.json", trace.to_string());
    let report = folder.drift(&["compare", "cpu.json", "cpu.json", "--json"]).good().json();
    assert_eq!(values(&report, "attention_calls", "attention calls", "calls"), json!([1.0, 1.0]));
    assert_eq!(values(&report, "attention_calls", "attention calls", "seconds"), json!([2e-5, 2e-5]));
    assert_eq!(values(&report, "attention_calls", "attention kernels", "calls"), json!([null, null]));
    assert_eq!(values(&report, "run", "in operators, threads added up", "seconds"), json!([2.5e-5, 2.5e-5]));
    assert_eq!(values(&report, "kernel_launches", "kernel launches", "calls"), json!([null, null]));
    assert_eq!(values(&report, "device_idle", "busy", "seconds"), json!([null, null]));
    let ran = folder.drift(&["compare", "cpu.json", "cpu.json"]).good();
    assert!(ran.text().contains("Neither trace has any."), "{}", ran.text());
}

#[test]
fn phases_of_drifts_own_traces_compare() {
    let folder = Folder::new();
    let event = |pid: u32, cat: &str, name: &str, ts: f64, dur: f64| json!({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": 0, "ts": ts, "dur": dur, "args": {"rows": 4}});
    let one = json!({"traceEvents": [event(0, "none", "forward", 0.0, 3e6), event(0, "none", "sampling", 3e6, 1e6)]});
    let two = json!({"traceEvents": [
        event(0, "none", "forward", 0.0, 2e6),
        event(1, "automaton", "forward", 0.0, 1e6), event(1, "automaton", "logit_processor", 1e6, 1e6),
    ]});
    folder.file("one.json", one.to_string());
    folder.file("two.json", two.to_string());
    let report = folder.drift(&["compare", "one.json", "one.json", "--json"]).good().json();
    assert_eq!(values(&report, "phases", "forward", "share"), json!([0.75, 0.75]));
    // Several runs in a trace: phases carry their names, on both sides.
    let report = folder.drift(&["compare", "one.json", "two.json", "--json"]).good().json();
    assert_eq!(values(&report, "phases", "none / forward", "seconds"), json!([3.0, 2.0]));
    assert_eq!(values(&report, "phases", "automaton / logit_processor", "share"), json!([null, 0.25]));
}

#[test]
fn events_that_say_nothing_are_counted() {
    let folder = Folder::new();
    let good = r#"{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": "5.5", "dur": 2}"#;
    let bad = [
        (r#"{"ph": "X", "name": "a", "ts": 1}"#, "without a duration"),
        (r#"{"ph": "X", "name": "a", "dur": 1}"#, "without a time"),
        (r#"{"ph": "X", "name": "a", "ts": 1, "dur": -2}"#, "with a negative duration"),
        (r#"{"ph": "X", "name": "a", "ts": "NaN", "dur": 2}"#, "with a time that is not a number"),
        (r#"{"ph": "X", "name": "a", "ts": "inf", "dur": 2}"#, "with a time that is not a number"),
        (r#"{"ph": "X", "name": "a", "ts": 1, "dur": [2]}"#, "with a time that is not a number"),
        (r#"{"ph": "X", "name": "a", "ts": 1e300, "dur": 2}"#, "with a time out of range"),
        (r#"{"ph": "X", "name": "a", "ts": 4e15, "dur": 4e15}"#, "with a time out of range"),
        (r#"{"ph": "E", "ts": 1}"#, "that end without a begin"),
        (r#"{"ph": "B", "name": "a", "ts": 1, "pid": 7}"#, "that begin without an end"),
        (r#"{"name": "a"}"#, "without a type"),
        ("17", "that are not objects"),
    ];
    for (event, problem) in bad {
        folder.file("t.json", format!("[{good},{event}, {{\"ph\": \"M\"}}]"));
        let report = folder.drift(&["compare", "t.json", "t.json", "--json"]).good().json();
        let mut expected = json!({"timed": 1, "untimed": 1, "left_out": {}});
        expected["left_out"][problem] = 1.into();
        assert_eq!(report["events"], json!([expected, expected]), "{event}");
        assert_eq!(values(&report, "run", "events left out", "count"), json!([1.0, 1.0]));
        let ran = folder.drift(&["compare", "t.json", "t.json"]).good();
        assert!(
            ran.text().contains(&format!("Events left out of the second: 1 {problem}.")),
            "{}",
            ran.text()
        );
    }
}

#[test]
fn damaged_traces_are_refused_in_one_line() {
    let folder = traces();
    let packed = folder.read(TRACES[0]);
    folder.file("half.json.gz", &packed[..packed.len() / 2]);
    folder.file("cut.json", r#"{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "du"#);
    folder.file(
        "deep.json",
        format!(r#"{{"traceEvents": [{{"ph": "X", "args": {{"x": {}"#, "[{\"a\":".repeat(2 << 20)),
    );
    folder.file("record.json", A);
    for (pair, problem) in [
        (["half.json.gz", TRACES[1]], "half.json.gz"),
        (["cut.json", TRACES[1]], "ends in the middle of its JSON"),
        ([TRACES[1], "deep.json"], "levels"),
        ([TRACES[0], "record.json"], "same kind"),
        (["record.json", TRACES[0]], "same kind"),
    ] {
        let line = folder.drift(&["compare", pair[0], pair[1]]).refused();
        assert!(line.contains(problem), "{line}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// What a trace says does not depend on the order of its events, up to which of equal ones come first.
    #[test]
    fn the_order_of_events_does_not_matter(
        events in prop::collection::vec((0..4_usize, 0..3_u32, 0..2_000_u32, 0..400_u32), 1..40), seed in any::<u64>()
    ) {
        let cats = [("kernel", "nvjet_tst"), ("cpu_op", "aten::cat"), ("gpu_memcpy", "Memcpy HtoD"), ("cuda_runtime", "cudaLaunchKernel")];
        let mut events: Vec<Value> = events
            .into_iter()
            .map(|(kind, row, ts, dur)| json!({
                "ph": "X", "cat": cats[kind].0, "name": cats[kind].1, "pid": 0, "tid": row, "ts": ts, "dur": dur,
            }))
            .collect();
        let folder = Folder::new();
        folder.file("a.json", json!(events).to_string());
        let turn = seed as usize % events.len();
        events.rotate_left(turn);
        events.reverse();
        folder.file("b.json", json!(events).to_string());
        let report = drift::compare::compare(
            [&folder.path().join("a.json"), &folder.path().join("b.json")],
            &drift::job::Job::default(),
        )
        .unwrap();
        for figure in report.tables.iter().flat_map(|table| &table.rows).flat_map(|row| &row.figures) {
            prop_assert_eq!(figure.values[0], figure.values[1]);
        }
    }
}

#[test]
fn figures_at_thresholds_and_inputs_are_compared() {
    let folder = Folder::new();
    let record = |share: f64, hash: &str, is_interrupted: bool, command: &str| {
        let mut record: Value = serde_json::from_str(A).unwrap();
        record["runs"][1]["thresholds"] = json!([{"angstrom": 0.5, "cov_r": {"mean": share}}]);
        record["runs"][1]["hits"] = json!({"at": [{"k": 5, "share": share}]});
        record["runs"][1]["coverage_sweep"] = json!([{"angstrom": 0.5, "cov_r": {"mean": share}}]);
        record["provenance"] = json!({"inputs": [{"name": "a.smi", "bytes": 1, "sha256": hash}, {"name": "a.smi", "sha256": "0"}]});
        record["interrupted"] = json!(is_interrupted);
        record["command"] = json!(command);
        record.to_string()
    };
    folder.file("a.json", record(0.25, "1234567890abcdef", false, "drift eval --max-atoms=5"));
    folder.file("b.json", record(0.5, "fedcba0987654321", true, "drift eval"));
    let report = folder.drift(&["compare", "a.json", "b.json", "--json"]).good().json();
    let differ = json!([
        {"name": "SHA-256 of a.smi", "values": ["1234567890ab", "fedcba098765"]},
        {"name": "interrupted", "values": ["false", "true"]},
        {"name": "command", "values": ["drift eval --max-atoms=5", "drift eval"]},
    ]);
    let sorted = |value: &Value| {
        let mut all: Vec<String> = value.as_array().unwrap().iter().map(Value::to_string).collect();
        all.sort();
        all
    };
    assert_eq!(sorted(&report["settings"]), sorted(&differ));
    let figures =
        report["groups"].as_array().unwrap().iter().flat_map(|group| group["figures"].as_array().unwrap());
    let other: Vec<&Value> = figures.filter(|figure| figure["values"][0] != figure["values"][1]).collect();
    let names: Vec<&str> = other.iter().map(|figure| figure["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["thresholds.0.5.cov_r.mean", "hits.at.5.share"]);
}
