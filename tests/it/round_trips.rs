//! Texts of every encoding through every verb: what `encode` writes states how it is written, and all verbs read it so.

use serde_json::{Value, json};

use crate::support::{Folder, rows};

/// The conformers of a round trip.
const CONFORMERS: usize = 6;

/// An encoding, and the largest distance of an atom to what is read back, in Å: half a cell's diagonal, or a whole one's where
/// numbers are cut.
struct Case {
    name: &'static str,
    /// The content of its file, if it has one.
    file: Option<String>,
    loss_angstrom: f64,
}

/// An encoding of one's own.
fn own(name: &str, around: [&str; 3], number: &str) -> Option<String> {
    let [open, separator, close] = around;
    let around = format!(r#""open": "{open}", "separator": "{separator}", "close": "{close}""#);
    Some(format!(
        r#"{{"schema": "drift.encoding/1", "name": "{name}", {around}, "numbers": 3, "number": {number}}}"#
    ))
}

fn cases() -> Vec<Case> {
    let named = [
        ("fixed", 0.0),
        ("stripped", 0.0),
        ("fixed-4", 0.0),
        ("fixed-6", 0.0),
        ("fixed-2", 0.018),
        ("stripped-3", 0.0018),
        ("fixed-spaces", 0.0),
        ("stripped-2-spaces", 0.018),
        ("lines", 0.0),
        ("lines-3", 0.0018),
        ("binned-v1:-21,21,0.05", 0.044),
        ("binned-v2:-21,21,0.104", 0.091),
        ("integers:10,4,399", 0.087),
        ("integers:1000,7", 0.0009),
    ];
    let mut all: Vec<Case> =
        named.map(|(name, loss_angstrom)| Case { name, file: None, loss_angstrom }).into();
    let edges: Vec<String> = (0..=400).map(|at| (f64::from(at) / 10.0 - 20.0).to_string()).collect();
    let edges = edges.join(", ");
    let bins = format!(r#"{{"mode": "uniform", "L": -20.0, "H": 20.0, "n_bins": 400, "edges": [{edges}]}}"#);
    all.push(Case { name: "uniform.json", file: Some(bins), loss_angstrom: 0.088 });
    let decimals = |count: u8, zeros: bool| {
        format!(r#"{{"kind": "decimal", "decimals": {count}, "trailing_zeros": {zeros}}}"#)
    };
    let integer = |scale: u32, rounding: &str| {
        format!(
            r#"{{"kind": "integer", "scale": {scale}, "width": 0, "most": 99999, "signed": true, "rounding": "{rounding}"}}"#
        )
    };
    let axes = r#"{"kind": "index", "width": 4, "axes": [{"low": -20, "high": 20, "step": 0.05}]}"#;
    for (name, around, number, loss_angstrom) in [
        ("pipes.json", ["<", "|", ">"], decimals(4, true), 0.0),
        ("cut.json", ["{", ";", "}"], decimals(3, false), 0.0018),
        ("letters.json", ["<x", "y", "z>"], decimals(4, true), 0.0),
        ("braces.json", ["(", " ", "; "], integer(100, "truncate"), 0.018),
        ("floor.json", ["<", ",", ">"], integer(1_000, "floor"), 0.0018),
        ("nearest.json", ["<", ",", ">"], integer(1_000, "nearest"), 0.0009),
        ("bare.json", ["", "", "|"], axes.to_owned(), 0.044),
    ] {
        all.push(Case { name, file: own(name, around, &number), loss_angstrom });
    }
    all
}

/// A folder with the first conformers of the built-in corpus, and the files of all encodings.
fn folder() -> Folder {
    let folder = Folder::new();
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/corpora/default.jsonl.gz");
    let text = drift::io::open(std::path::Path::new(corpus), &drift::Job::default());
    let lines = std::io::BufRead::lines(text.reader).take(CONFORMERS).map(Result::unwrap);
    folder.file("given.jsonl", lines.collect::<Vec<_>>().join("\n") + "\n");
    for case in cases() {
        if let Some(file) = &case.file {
            folder.file(case.name, file);
        }
    }
    folder
}

/// What `audit` counts, apart from the names of the file and the encoding.
fn judged(folder: &Folder, arguments: &[&str]) -> (Value, Value) {
    let report = folder.drift(&[&["audit", "--json", "-q"], arguments].concat()).done().json();
    (report["total"].clone(), report["dialect"].clone())
}

/// Every text passes, none has faults, and it lies within the loss of its encoding from what was given.
#[track_caller]
fn assert_as_given(total: &Value, case: &Case) {
    for (count, expected) in [("samples", CONFORMERS), ("passed", CONFORMERS)] {
        assert_eq!(total[count], json!(expected), "{}: {total}", case.name);
    }
    for fault in ["invented_blocks", "junk_blocks_strict", "parse_failures", "invented_digits"] {
        assert_eq!(total[fault], json!(0), "{}: {fault}", case.name);
    }
    assert!(total["truncated_blocks"].as_u64().unwrap_or(0) == 0, "{}: {total}", case.name);
    let off = total["geometry"]["mat_precision_angstrom"]["mean"].as_f64();
    // References are read with four decimals, and superposition ends within 1e-6.
    assert!(off.is_some_and(|off| off <= case.loss_angstrom + 2e-4), "{}: {off:?}", case.name);
}

#[test]
fn what_is_encoded_is_judged_in_its_own_encoding() {
    let folder = folder();
    for case in cases() {
        let name = case.name;
        folder.drift(&["encode", "given.jsonl", "--encoding", name, "-o", "texts.jsonl", "-q"]).done();
        let references = ["texts.jsonl", "--references", "given.jsonl"];
        // The built-in texts are fixed, and both ways of writing decimals are in the file.
        let (stated, dialect) = judged(&folder, &references);
        assert_as_given(&stated, &case);
        let (asked, as_asked) = judged(&folder, &[&references[..], &["--encoding", name]].concat());
        assert_as_given(&asked, &case);
        if !["fixed", "stripped", "fixed-4"].contains(&name) {
            assert_eq!(dialect, as_asked, "{name}");
        }
        // Drift is counted against the zeros of the encoding, which nobody gave.
        let words = ["texts.jsonl", "--encoding", name, "--tokenizer", "qwen-like"];
        assert!(judged(&folder, &words).0["drift"].is_object(), "{name}");
    }
}

#[test]
fn what_is_encoded_is_read_by_every_verb() {
    let folder = folder();
    for case in cases() {
        let name = case.name;
        let text = |output: &str| {
            let texts = rows(&folder.read(output));
            let field = |row: &Value| row["embedded_smiles"].as_str().unwrap().to_owned();
            texts.iter().map(field).collect::<Vec<_>>()
        };
        folder.drift(&["encode", "given.jsonl", "--encoding", name, "-o", "texts.jsonl", "-q"]).done();
        folder.drift(&["encode", "texts.jsonl", "--encoding", name, "-o", "again.jsonl", "-q"]).done();
        let written = text("texts.jsonl");
        assert_eq!(written, text("again.jsonl"), "{name}: encode of its own text");
        let mined = folder.drift(&["mine", "texts.jsonl", "--encoding", name, "-o", "m.h5", "--json", "-q"]);
        let mined = mined.done().json();
        assert_eq!([&mined["conformers"], &mined["skipped"]], [CONFORMERS, 0], "{name}");
        folder.drift(&["encode", "m.h5", "--encoding", name, "-o", "stored.jsonl", "-q"]).done();
        assert_eq!(written, text("stored.jsonl"), "{name}: through a store");
        // Six decimals are not cut to four unless somebody says so.
        let cut: &[&str] = if name == "fixed-6" { &["--decimals", "4"] } else { &[] };
        let within = (case.loss_angstrom + 0.001).to_string();
        let against =
            ["mine", "texts.jsonl", "--against", "given.jsonl", "--within", &within, "--json", "-q"];
        let report = folder.drift(&[&against[..], cut].concat()).done().json();
        for count in ["conformers", "rows_of_shared_isomers", "rows_with_duplicate"] {
            assert_eq!(report[count], json!(CONFORMERS), "{name}: {count}");
        }
        // The slots of a text are found: as many as it has atoms.
        let first = &written[0];
        let report = folder.drift(&["inspect", "--json", "--encoding", name, first]).done().json();
        let atoms = first.matches('[').count();
        assert_eq!(report[0]["blocks"].as_array().map(Vec::len), Some(atoms), "{name}: {first}");
    }
}

#[test]
fn tokens_and_losses_are_those_of_the_given_conformers() {
    let folder = folder();
    for name in ["stripped-3", "binned-v1:-21,21,0.05", "letters.json", "nearest.json"] {
        folder.drift(&["encode", "given.jsonl", "--encoding", name, "-o", "texts.jsonl", "-q"]).done();
        let compared = |corpus: &str| {
            let words = ["encodings", "--corpus", corpus, "--encoding", name, "--tokenizer", "qwen-like"];
            let report = folder.drift(&[&words[..], &["--no-extensions", "--json", "-q"]].concat()).done();
            report.json()["rows"][0].clone()
        };
        let (given, own) = (compared("given.jsonl"), compared("texts.jsonl"));
        for figure in ["encoding", "tokenizer", "tokens_per_block", "tokens_per_conformer"] {
            assert_eq!(given[figure], own[figure], "{name}");
        }
        let fitted = |corpus: &str| {
            let words = ["fit", "--corpus", corpus, "--encoding", name, "--tokenizer", "qwen-like"];
            let report = folder.drift(&[&words[..], &["--no-classes", "--json", "-q"]].concat()).done();
            let result = report.json()["results"][0].clone();
            (result["placeholder"].clone(), result["blocks"].clone())
        };
        assert_eq!(fitted("given.jsonl"), fitted("texts.jsonl"), "{name}");
    }
}

/// The text may stand in any field that `audit` and `mine` read, and the encoding before or behind it.
#[test]
fn every_field_holds_the_encoding_that_its_row_states() {
    let folder = folder();
    for name in ["binned-v1:-21,21,0.05", "stripped-2-spaces", "cut.json", "lines"] {
        folder.drift(&["encode", "given.jsonl", "--encoding", name, "-o", "texts.jsonl", "-q"]).done();
        let texts = rows(&folder.read("texts.jsonl"));
        let smiles = |row: &Value| row.get("canonical_smiles").unwrap_or(&row["smiles"]).clone();
        for field in ["text", "decoded_text", "completion", "all_generations", "outputs"] {
            let row = |row: &Value| {
                // A stripped encoding is that of the second field.
                let own = row.get("embedded_smiles_stripped").filter(|_| name != "lines");
                let body = own.unwrap_or(&row["embedded_smiles"]).as_str().unwrap();
                let tagged = json!(format!("[CONFORMER]{body}[/CONFORMER]"));
                let text = match field {
                    "all_generations" => json!([tagged]),
                    "outputs" => json!([{ "text": tagged }]),
                    _ => tagged,
                };
                json!({"encoding": row["encoding"], "smiles": smiles(row), field: text}).to_string() + "\n"
            };
            folder.file("field.jsonl", texts.iter().map(row).collect::<String>());
            let (total, _) = judged(&folder, &["field.jsonl"]);
            assert_eq!(total["passed"], json!(CONFORMERS), "{name} {field}: {total}");
            assert_eq!(total["invented_blocks"], json!(0), "{name} {field}");
            if field == "text" {
                let mined = folder.drift(&["mine", "field.jsonl", "--json", "-q"]).done().json();
                assert_eq!(mined["conformers"], json!(CONFORMERS), "{name} {field}");
            }
        }
    }
}

#[test]
fn contradictions_are_refused_with_their_line() {
    let folder = folder();
    let bins = "binned-v1:-21,21,0.05";
    folder.drift(&["encode", "given.jsonl", "--encoding", bins, "-o", "bins.jsonl", "-q"]).done();
    let states = "bins.jsonl: line 1: states that it is written as binned-v1:-21,21,0.05, not as";
    for asked in ["stripped", "binned-v1:-11,11,0.05", "binned-v2:-21,21,0.05", "fixed-4"] {
        let refused = folder.drift(&["audit", "bins.jsonl", "--encoding", asked]).refused();
        assert!(refused.contains(states) && refused.contains("leave --encoding"), "{refused}");
    }
    folder.drift(&["audit", "bins.jsonl", "--dialect", "fixed"]).refused_for(states);
    let other = "binned-v1:-11,11,0.05";
    folder.drift(&["mine", "bins.jsonl", "--encoding", other]).refused_for(states);
    folder.drift(&["encode", "bins.jsonl", "--input-encoding", other, "-o", "x.jsonl"]).refused_for(states);
    assert!(!folder.path().join("x.jsonl").exists());
    // One row among others, and rows that state nothing.
    let both = [folder.read("bins.jsonl"), folder.read("given.jsonl")].concat();
    folder.file("both.jsonl", both);
    folder
        .drift(&["audit", "both.jsonl"])
        .refused_for("line 7: does not state its encoding, while both.jsonl: line 1");
    folder.drift(&["encode", "given.jsonl", "--encoding", "fixed-3", "-o", "three.jsonl", "-q"]).done();
    folder.drift(&["audit", "bins.jsonl", "three.jsonl"]).refused_for("three.jsonl: line 1: states");
    folder.drift(&["audit", "three.jsonl", "--decimals", "2"]).refused_for("as fixed-3, not as fixed-2");
    let (total, dialect) = judged(&folder, &["three.jsonl", "--encoding", "stripped-3"]);
    assert_eq!((&total["invented_blocks"], dialect), (&json!(0), json!("stripped-3")));
    // Bins whose rows state nothing are no decimals.
    let bare = rows(&folder.read("bins.jsonl")).into_iter().map(|mut row| {
        row.as_object_mut().unwrap().remove("encoding");
        row.to_string() + "\n"
    });
    folder.file("bare.jsonl", bare.collect::<String>());
    folder.drift(&["audit", "bare.jsonl"]).refused_for("its numbers look like bins");
    assert_eq!(judged(&folder, &["bare.jsonl", "--encoding", bins]).0["passed"], json!(CONFORMERS));
    // Of a conformer in both ways of writing decimals the one that was asked for is judged.
    folder.drift(&["encode", "given.jsonl", "-o", "both_ways.jsonl", "-q"]).done();
    for dialect in ["fixed", "stripped"] {
        let (total, judged_as) = judged(&folder, &["both_ways.jsonl", "--dialect", dialect]);
        assert_eq!((&total["invented_blocks"], judged_as), (&json!(0), json!(dialect)));
    }
    let stripped = r#"{"smiles": "C", "embedded_smiles_stripped": "[C]<1,2,3>"}"#;
    folder.file("stripped.jsonl", stripped);
    folder.drift(&["audit", "stripped.jsonl", "--dialect", "fixed"]).refused_for("as stripped, not as fixed");
}

/// Rows that state no encoding are decimals, with commas or spaces, whatever is written next.
#[test]
fn decimals_need_no_name() {
    let folder = folder();
    for (from, to) in [
        ("fixed", "stripped-spaces"),
        ("stripped-spaces", "fixed"),
        ("fixed-spaces", "binned-v1:-21,21,0.05"),
        ("fixed-spaces", "pipes.json"),
        ("fixed", "pipes.json"),
    ] {
        folder.drift(&["encode", "given.jsonl", "--encoding", from, "-o", "from.jsonl", "-q"]).done();
        let unnamed = rows(&folder.read("from.jsonl")).into_iter().map(|mut row| {
            row.as_object_mut().unwrap().remove("encoding");
            row.to_string() + "\n"
        });
        folder.file("from.jsonl", unnamed.collect::<String>());
        let encoded = |input: &str| {
            let ran = folder.drift(&["encode", input, "--encoding", to, "-o", "-", "-q"]).done();
            ran.text().to_owned()
        };
        assert_eq!(encoded("from.jsonl"), encoded("given.jsonl"), "{from} to {to}");
    }
}

#[test]
fn encodings_that_cannot_hold_coordinates_are_refused_by_their_field() {
    let folder = folder();
    let decimal = r#"{"kind": "decimal", "decimals": 4, "trailing_zeros": true}"#;
    let integer = |more: &str| {
        format!(r#"{{"kind": "integer", "width": 3, "signed": true, "rounding": "floor", {more}}}"#)
    };
    let index = |axis: &str| format!(r#"{{"kind": "index", "width": 3, "axes": [{axis}]}}"#);
    let brackets = ["<", ",", ">"];
    let file = |around: [&str; 3], number: &str| own("own", around, number).unwrap();
    for (field, file) in [
        ("slots", file(brackets, decimal).replace(r#""open""#, r#""slots": "symbols", "open""#)),
        ("numbers", file(brackets, decimal).replace(r#""numbers": 3"#, r#""numbers": 1"#)),
        ("most", file(brackets, &integer(r#""scale": 10, "most": 0"#))),
        ("scale", file(brackets, &integer(r#""scale": 1e300, "most": 99"#))),
        ("scale", file(brackets, &integer(r#""scale": -1, "most": 99"#))),
        ("edges", file(brackets, &index(r#"{"edges": [-1e308, 0, 1e308]}"#))),
        ("high", file(brackets, &index(r#"{"low": 0, "high": 1e300, "step": 1e299}"#))),
        ("tails", file(brackets, &index(r#"{"low": -1, "high": 1, "step": 0.1, "tails": [1, -1]}"#))),
        ("open", file(["[", ",", "]"], decimal)),
        ("close", file(["<", ",", "</s>"], decimal)),
        ("separator", file(["<", "<eos>", ">"], decimal)),
        ("name", file(brackets, decimal).replace(r#""own""#, r#""lines""#)),
    ] {
        folder.file("own.json", &file);
        let ran = folder.drift(&["encode", "given.jsonl", "--encoding", "own.json", "-o", "x.jsonl"]);
        let expected = format!("`{field}`: ");
        assert!(ran.code == Some(2) && ran.stderr.contains(&expected), "{file}: {}", ran.stderr);
        assert!(!folder.path().join("x.jsonl").exists());
    }
}

#[test]
fn integers_are_those_of_the_decimals() {
    let folder = Folder::new();
    folder.file("x.txt", "[C]<0.2900,-0.2900,0.5700>\n[C]<1.1500,-4.3500,8.2000>\n");
    for (rounding, expected) in [
        ("truncate", ["<29,-29,57>", "<115,-435,820>"]),
        ("floor", ["<29,-29,57>", "<115,-435,820>"]),
        ("nearest", ["<29,-29,57>", "<115,-435,820>"]),
    ] {
        let integer = format!(
            r#"{{"kind": "integer", "scale": 100, "width": 0, "most": 9999, "signed": true, "rounding": "{rounding}"}}"#
        );
        folder.file("own.json", own("own", ["<", ",", ">"], &integer).unwrap());
        let ran = folder.drift(&["encode", "x.txt", "--encoding", "own.json", "-o", "-", "-q"]).done();
        for (row, expected) in rows(ran.text().as_bytes()).iter().zip(expected) {
            assert_eq!(row["embedded_smiles"], format!("[C]{expected}"), "{rounding}");
        }
    }
}
