//! `mine --check` and `encode --drop`: what is planted is found, beside RDKit, in shards, by any number of threads, and left out.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{Folder, Ran, python, rows, shared};

const KINDS: [&str; 7] = [
    "duplicate-text",
    "duplicate-conformer",
    "coincident-atoms",
    "short-bond",
    "long-bond",
    "fragments",
    "stereo",
];

/// The lines of rows by kind.
fn lines_by_kind(list: &[u8]) -> BTreeMap<String, Vec<u64>> {
    let mut lines: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for row in rows(list) {
        let line = row["line"].as_u64().unwrap();
        lines.entry(row["kind"].as_str().unwrap().to_owned()).or_default().push(line);
    }
    lines
}

/// Rows of a table: what they are, texts, and what RDKit finds. Texts are of alanine and of what is made from it.
const ROWS: [(&str, &str, &[&str]); 14] = [
    (
        "the first",
        "[C]<1.5,0,0>[C@H]<0,0,0>([N]<-0.5,1.4,0>)[C]<-0.5,-0.7,1.2>(=[O]<-0.2,-1.9,1.3>)[O]<-1.2,0,2.1>",
        &[],
    ),
    (
        "the same text",
        "[C]<1.5,0,0>[C@H]<0,0,0>([N]<-0.5,1.4,0>)[C]<-0.5,-0.7,1.2>(=[O]<-0.2,-1.9,1.3>)[O]<-1.2,0,2.1>",
        &["duplicate-text", "duplicate-conformer"],
    ),
    (
        "in the other dialect",
        "[C]<1.5000,0.0000,0.0000>[C@H]<0.0000,0.0000,0.0000>([N]<-0.5000,1.4000,0.0000>)[C]<-0.5000,-0.7000,1.2000>(=[O]<-0.2000,-1.9000,1.3000>)[O]<-1.2000,0.0000,2.1000>",
        &["duplicate-text", "duplicate-conformer"],
    ),
    (
        "a tenth of an angstrom along x",
        "[C]<1.6,0,0>[C@H]<0,0,0>([N]<-0.5,1.4,0>)[C]<-0.5,-0.7,1.2>(=[O]<-0.2,-1.9,1.3>)[O]<-1.2,0,2.1>",
        &[],
    ),
    (
        "turned, moved and spelled from the other end",
        "[O]<11.9,-0.2,1.3>=[C]<10.7,-0.5,1.2>([O]<10,-1.2,2.1>)[C@@H]<10,0,0>([N]<8.6,-0.5,0>)[C]<10,1.5,0>",
        &["duplicate-conformer"],
    ),
    (
        "with the other mark",
        "[C]<1.5,0,0>[C@@H]<0,0,0>([N]<-0.5,1.4,0>)[C]<-0.5,-0.7,1.2>(=[O]<-0.2,-1.9,1.3>)[O]<-1.2,0,2.1>",
        &["duplicate-conformer", "stereo"],
    ),
    (
        "the mirror image",
        "[C]<1.5,0,0>[C@H]<0,0,0>([N]<-0.5,1.4,0>)[C]<-0.5,-0.7,-1.2>(=[O]<-0.2,-1.9,-1.3>)[O]<-1.2,0,-2.1>",
        &["stereo"],
    ),
    (
        "two atoms on one point",
        "[C]<1.5,0,0>[C@H]<0,0,0>([N]<-0.5,1.4,0>)[C]<-0.5,-0.7,1.2>(=[O]<-1.2,0.01,2.1>)[O]<-1.2,0,2.1>",
        &["coincident-atoms"],
    ),
    ("a short bond", "[C]<0,0,0>[O]<0.6999,0,0>", &["short-bond"]),
    ("no short bond, 0.0001 more", "[C]<0,0,0>[O]<0.7,0,0>", &["duplicate-conformer"]),
    ("a long bond", "[C]<0,0,0>[O]<2.5001,0,0>", &["long-bond"]),
    ("no long bond, 0.0001 less", "[O]<0,2.5,0>[C]<0,0,0>", &["duplicate-conformer"]),
    ("two molecules", "[Na+]<0,0,0>.[Cl-]<2.6,0,0>", &["fragments"]),
    ("one molecule with a dot", "[C]<0,0,0>1[C]<1.5,0,0>[O]<0.7,1.2,0>.[C]<-1.5,0,0>1", &[]),
];

fn table<'r>(texts: impl IntoIterator<Item = (&'r str, &'r str, &'r str)>) -> String {
    let rows = texts
        .into_iter()
        .map(|(name, text, dataset)| format!("\"{name}, \"\"x\"\"\",\"{text}\",{dataset}\n"));
    std::iter::once("name,enriched_text,dataset\n".to_owned()).chain(rows).collect()
}

/// A table of the rows, and the lines that should be found, by kind.
fn planted() -> (String, BTreeMap<String, Vec<u64>>) {
    let mut wanted: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (line, (_, _, kinds)) in (2..).zip(&ROWS) {
        kinds.iter().for_each(|kind| wanted.entry((*kind).to_owned()).or_default().push(line));
    }
    let dataset = |at: usize| ["GEOM", "ZINC", ""][at % 3];
    (table(ROWS.iter().enumerate().map(|(at, (name, text, _))| (*name, *text, dataset(at)))), wanted)
}

fn check(folder: &Folder, input: &str, more: &[&str]) -> Ran {
    folder.drift(&[&["mine", input, "--check", "--list", "list.jsonl", "--json"], more].concat()).good()
}

#[test]
fn what_is_planted_is_found() {
    let folder = Folder::new();
    let (content, wanted) = planted();
    folder.file("t.csv.zst", zstd::encode_all(content.as_bytes(), 3).unwrap());
    let report = check(&folder, "t.csv.zst", &[]).json()["check"].clone();
    let list = folder.read("list.jsonl");
    assert_eq!(lines_by_kind(&list), wanted, "{report:#}");
    for kind in KINDS {
        let count = wanted.get(kind).map_or(0, Vec::len);
        assert_eq!(report[kind.replace('-', "_")], count, "{kind}");
    }
    assert_eq!((&report["conformers"], &report["undecided"]), (&json!(ROWS.len()), &json!(0)));
    let flawed = ROWS.iter().filter(|(_, _, kinds)| !kinds.is_empty()).count();
    assert_eq!(report["flawed"], flawed);
    let named = rows(&list);
    let of = |line: u64, kind: &str| {
        named.iter().find(|row| row["line"] == line && row["kind"] == kind).unwrap().clone()
    };
    let copy = of(4, "duplicate-text");
    assert_eq!((&copy["name"], &copy["of_line"]), (&json!("in the other dialect, \"x\""), &json!(2)));
    assert_eq!((&copy["of_file"], &copy["of_conformer"]), (&json!("t.csv.zst"), &json!(1)));
    assert_eq!(
        (&of(13, "duplicate-conformer")["of_line"], &of(7, "stereo")["count"]),
        (&json!(12), &json!(1))
    );
    let dataset = |name: Value| {
        let all = report["datasets"].as_array().unwrap();
        all.iter().find(|one| one["dataset"] == name).unwrap().clone()
    };
    let (geom, none) = (dataset(json!("GEOM")), dataset(Value::Null));
    assert_eq!((&geom["conformers"], &geom["stereo"], &none["stereo"]), (&json!(5), &json!(1), &json!(1)));
    let shown = folder.drift(&["mine", "t.csv.zst", "--check", "--quiet"]).done();
    for words in ["duplicate-conformer", "By data set", "within 0.01 Å of an earlier one"] {
        assert!(shown.text().contains(words), "{words}: {}", shown.text());
    }
    folder.drift(&["mine", "t.csv.zst", "--check", "--quiet", "--html", "page.html"]).done();
    let page = String::from_utf8(folder.read("page.html")).unwrap();
    for words in ["What may not belong in a training set", "<td>duplicate-conformer</td>", "By data set"] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn without_the_check_nothing_changes() {
    let folder = Folder::new();
    folder.file("t.csv", planted().0);
    let run = |more: &[&str]| folder.drift(&[&["mine", "t.csv", "--json"], more].concat()).good();
    let (plain, mut checked) = (run(&[]), run(&["--check"]).json());
    assert!(checked.as_object_mut().unwrap().remove("check").is_some());
    assert_eq!(plain.json(), checked);
    run(&["-o", "plain.h5"]);
    run(&["--check", "-o", "checked.h5"]);
    assert!(folder.read("plain.h5") == folder.read("checked.h5"));
}

/// Every kind beside RDKit, on conformers with planted flaws; in shards, and by one thread and by several.
#[test]
#[cfg_attr(not(all(has_shared, has_rdkit)), ignore = "needs ../shared and RDKit")]
fn flaws_are_those_that_rdkit_finds() {
    let conformers = shared().join("geom/etkdg_drugs_test.jsonl.gz");
    let folder = Folder::new();
    let options = [conformers.to_str().unwrap(), ".", "--molecules", "60", "--seed", "5"];
    python("python/flaws.py", &folder.path(), &options);
    let expected: Value = serde_json::from_slice(&folder.read("expected.json")).unwrap();
    assert_eq!(expected["doubtful"], json!([]));
    let whole = check(&folder, "rows.csv", &["--threads", "3"]);
    let (list, mut found) = (folder.read("list.jsonl"), lines_by_kind(&folder.read("list.jsonl")));
    for kind in KINDS {
        assert_eq!(json!(found.remove(kind).unwrap_or_default()), expected["lines"][kind], "{kind}");
    }
    assert_eq!(check(&folder, "rows.csv", &["--threads", "1"]).text(), whole.text());
    assert!(folder.read("list.jsonl") == list);
    // In shards.
    let text = String::from_utf8(folder.read("rows.csv")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for part in 0..3 {
        let own = lines[1..].iter().skip(part).step_by(3).copied();
        let own: Vec<&str> = std::iter::once(lines[0]).chain(own).collect();
        folder.file(&format!("in/{part}.csv"), own.join("\n") + "\n");
    }
    let whole = check(&folder, "in", &[]);
    let list = folder.read("list.jsonl");
    for shard in ["1/2", "2/2"] {
        let to = format!("shard{}", &shard[..1]);
        folder.drift(&["mine", "in", "--check", "--quiet", "--shard", shard, "-o", &to]).done();
    }
    let merge = ["merge", "shard1", "shard2", "-o", "m.h5", "--list", "merged.jsonl", "--json"];
    assert_eq!(folder.drift(&merge).good().text(), whole.text());
    assert!(folder.read("merged.jsonl") == list);
}

/// The first row of a chain stays and the one that is too far from it, though a row that goes lies between them.
#[test]
fn each_duplicate_is_near_a_conformer_that_stays() {
    let folder = Folder::new();
    // A single bond of two atoms: half the difference of its lengths is the RMSD.
    let text = |length: f64| format!("[C]<0,0,0>[O]<{length:.4},0,0>\n");
    let lengths = [1.4, 1.4199, 1.4201, 1.4399, 1.4402, 1.44];
    folder.file("t.txt", lengths.map(text).concat());
    check(&folder, "t.txt", &[]);
    let found = lines_by_kind(&folder.read("list.jsonl"));
    assert_eq!(found["duplicate-conformer"], [2, 4, 6]);
    let of: Vec<Value> = rows(&folder.read("list.jsonl")).iter().map(|row| row["of_line"].clone()).collect();
    assert_eq!(of, [1, 3, 3]);
}

#[test]
fn what_is_left_out_is_counted_and_the_rest_is_clean() {
    let folder = Folder::new();
    let (content, wanted) = planted();
    folder.file("t.csv", content);
    let encode = |more: &[&str]| {
        folder.drift(&[&["encode", "t.csv", "-o", "out.jsonl", "--json"], more].concat()).good().json()
    };
    let plain = encode(&[]);
    assert!(plain.get("dropped").is_none() && plain.get("pack").is_none());
    assert_eq!(plain["conformers"], ROWS.len());
    for kind in KINDS {
        let report = encode(&["--drop", kind]);
        let count = wanted.get(kind).map_or(0, Vec::len);
        assert_eq!(report["dropped"], json!({ kind: count }), "{kind}");
        assert_eq!((&report["skipped"], &report["conformers"]), (&json!(count), &json!(ROWS.len() - count)));
        assert_eq!(rows(&folder.read("out.jsonl")).len(), ROWS.len() - count);
        let listed = report["skipped_records"].as_array().unwrap();
        let lines: Vec<String> =
            listed.iter().map(|one| one["record"].as_str().unwrap().to_owned()).collect();
        let right = wanted.get(kind).into_iter().flatten().map(|line| format!("line {line}"));
        assert_eq!(lines, right.collect::<Vec<_>>(), "{kind}");
        let reason = listed.first().map(|one| one["reason"].as_str().unwrap());
        assert!(reason.is_none_or(|reason| reason.starts_with(&format!("left out as {kind}"))), "{reason:?}");
    }
    // A row that goes for its mark is no original: the same conformer with the right mark stays.
    let (right, wrong) = (ROWS[0].1, ROWS[5].1);
    folder.file("two.csv", table([("wrong", wrong, ""), ("right", right, ""), ("again", right, "")]));
    let run = ["encode", "two.csv", "--drop", "stereo,duplicate-conformer", "-o", "two.jsonl", "--json"];
    let report = folder.drift(&run).good().json();
    assert_eq!(report["dropped"], json!({ "stereo": 1, "duplicate-conformer": 1 }));
    assert_eq!(
        report["skipped_by_reason"],
        json!({ "left out as stereo": 1, "left out as duplicate-conformer": 1 })
    );
    let left = rows(&folder.read("two.jsonl"));
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["embedded_smiles_stripped"], right);
    // What stays has nothing to leave out.
    encode(&["--drop", &KINDS.join(",")]);
    folder.file("clean.jsonl", folder.read("out.jsonl"));
    let again = folder.drift(&["mine", "clean.jsonl", "--check", "--json"]).good().json();
    assert_eq!(again["check"]["flawed"], 0);
}

#[test]
fn texts_of_codes_are_compared_as_texts() {
    let folder = Folder::new();
    let text = "[C]<1>-<900>[C]<2>(<3>[O]<7>)<4>\n";
    folder.file("t.txt", [text, "[C]<1>-<900>[C]<2>(<3>[O]<8>)<4>\n", text].concat());
    let report = check(&folder, "t.txt", &["--encoding", "fsq:4096"]).json()["check"].clone();
    assert_eq!((&report["duplicate_text"], &report["duplicate_conformer"]), (&json!(1), &json!(0)));
    assert_eq!((&report["not_compared"], &report["flawed"]), (&json!(3), &json!(1)));
}

#[test]
fn what_cannot_be_checked_is_refused() {
    let folder = Folder::new();
    folder.file("t.csv", planted().0);
    folder.file("other.csv", planted().0);
    let refused = |line: &str, part: &str| folder.line(line).refused_for(part);
    refused("mine t.csv --check --list t.csv", "t.csv");
    refused("mine t.csv --check --list -", "--list -: stdout takes either the table or the store");
    refused("mine t.csv --check --list none/list.jsonl", "none");
    refused(
        "encode t.csv other.csv --drop duplicate-text --shard 1/2 -o s",
        "--drop: finds duplicates among all conformers",
    );
    for (line, option) in [
        ("mine t.csv --list list.jsonl", "--check"),
        ("mine t.csv --check --against other.csv", "--against"),
        ("encode t.csv --drop nothing -o out.jsonl", "nothing"),
    ] {
        folder.line(line).refused_usage(option);
    }
    folder.line("mine t.csv other.csv --quiet --shard 1/1 -o plain").done();
    refused("merge plain -o m.h5 --list list.jsonl", "--list: the shards were not checked");
    assert!(!folder.path().join("list.jsonl").exists() && !folder.path().join("s").exists());
    // What depends on one row alone is left out in shards too.
    folder.line("encode t.csv other.csv --drop stereo,fragments --quiet --shard 1/1 -o s").done();
    let merged = folder.line("merge s -o m.jsonl --json").good().json();
    let whole = folder.line("encode t.csv other.csv --drop stereo,fragments -o w.jsonl --json").good().json();
    assert_eq!(
        (&merged["dropped"], &merged["skipped_records"]),
        (&whole["dropped"], &whole["skipped_records"])
    );
    assert!(folder.read("m.jsonl") == folder.read("w.jsonl"));
}
