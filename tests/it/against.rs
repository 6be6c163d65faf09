//! `mine --against`: beside RDKit, in shards, over the same corpus, and what is refused.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::support::{Folder, python};

/// Pairs of lines by whether they are mirror images, with their deviation.
fn listed(list: &[u8]) -> BTreeMap<(u64, u64, bool), f64> {
    let lines = std::str::from_utf8(list).unwrap().lines();
    let rows = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.filter_map(|row| {
        let rmsd = row["rmsd_angstrom"].as_f64()?;
        let line = |name: &str| row[name].as_u64().unwrap() - 1;
        Some(((line("line"), line("other_line"), row["mirror_image"].as_bool().unwrap()), rmsd))
    })
    .collect()
}

fn rows_of(list: &[u8], is: impl Fn(&Value) -> bool) -> BTreeSet<u64> {
    let lines = std::str::from_utf8(list).unwrap().lines();
    let rows = lines.map(|line| serde_json::from_str::<Value>(line).unwrap()).filter(is);
    rows.map(|row| row["line"].as_u64().unwrap() - 1).collect()
}

/// No pair is missed and none is false, beside every pair measured by RDKit; `DRIFT_WHOLE=1` takes 10,000 rows against 1,000.
#[test]
#[cfg_attr(not(has_rdkit), ignore = "needs a Python with rdkit")]
fn pairs_are_those_that_rdkit_measures() {
    let folder = Folder::new();
    let [rows, others] =
        if std::env::var_os("DRIFT_WHOLE").is_some() { ["10000", "1000"] } else { ["500", "200"] };
    let options = [".", "--rows", rows, "--others", others];
    python("python/against.py", &folder.path(), &options);
    let expected: Value = serde_json::from_slice(&folder.read("expected.json")).unwrap();
    let ran = folder.drift(&["mine", "train.jsonl", "--against", "test.jsonl", "-o", "list.jsonl", "--json"]);
    let report = ran.good().json();
    let list = folder.read("list.jsonl");
    let mut found = listed(&list);
    let number = |value: &Value| value.as_u64().unwrap();
    for pair in expected["doubtful"].as_array().unwrap() {
        found.retain(|(row, other, _), _| [*row, *other] != [number(&pair[0]), number(&pair[1])]);
    }
    let mut wanted = BTreeMap::new();
    for (name, is_mirrored) in [("pairs", false), ("mirror_pairs", true)] {
        for pair in expected[name].as_array().unwrap() {
            let rmsd = pair[2].as_f64().unwrap();
            wanted.insert((number(&pair[0]), number(&pair[1]), is_mirrored), rmsd);
        }
    }
    assert!(wanted.len() > 200 && wanted.keys().any(|(.., is_mirrored)| *is_mirrored));
    assert_eq!(found.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
    for (pair, rmsd) in &found {
        assert!((rmsd - wanted[pair]).abs() < 1e-6, "{pair:?}: {rmsd} {}", wanted[pair]);
    }
    let set = |name: &str| expected[name].as_array().unwrap().iter().map(number).collect::<BTreeSet<_>>();
    assert_eq!(rows_of(&list, |_| true), set("molecules"));
    assert_eq!(report["rows_of_shared_molecules"], set("molecules").len());
    assert_eq!(report["rows_of_shared_isomers"], set("isomers").len());
    assert!(set("isomers").len() < set("molecules").len());
}

/// A row of ethanol, one atom moved by so much.
fn ethanol(moved: f64) -> String {
    json!({ "embedded_smiles": format!("[C]<0.0000,0.0000,0.0000>[C]<1.5000,0.0000,0.0000>[O]<{:.4},1.4000,0.0000>", 2.0 + moved) })
        .to_string()
        + "\n"
}

/// The same the other way round, spelled anew, in another pose.
const TURNED: &str = r#"{"embedded_smiles": "[O]<1.4000,7.0000,-2.0000>[C]<0.0000,7.0000,-1.5000>[C]<0.0000,7.0000,0.0000>"}
"#;

#[test]
fn spelling_pose_and_bound() {
    let folder = Folder::new();
    folder.file("test.jsonl", ethanol(0.0) + &ethanol(0.1));
    folder.file(
        "train.jsonl",
        TURNED.to_owned() + &ethanol(0.0006) + "{broken\n" + &ethanol(0.05) + "[C]<0,0,0>[N]<1.5,0,0>\n",
    );
    let run = |more: &[&str]| {
        let command = ["mine", "train.jsonl", "--against", "test.jsonl", "--json"];
        folder.drift(&[&command, more].concat()).good().json()
    };
    let report = run(&[]);
    assert_eq!(report["schema"], "drift.against/1");
    assert_eq!((&report["conformers"], &report["skipped"]), (&json!(3), &json!(2)));
    assert_eq!((&report["pairs"], &report["rows_with_duplicate"]), (&json!(2), &json!(2)));
    assert_eq!((&report["rows_of_shared_molecules"], &report["molecules_shared"]), (&json!(3), &json!(1)));
    assert_eq!((&report["other"]["conformers"], &report["other_conformers_found"]), (&json!(2), &json!(1)));
    assert_eq!(run(&["--within", "0.0001"])["pairs"], 1);
    assert_eq!(run(&["--within", "0.03"])["pairs"], 4);
    // The list, and nothing but the list, on stdout.
    let list = folder.drift(&["mine", "train.jsonl", "--against", "test.jsonl", "-o", "-", "--quiet"]);
    assert!(
        list.code == Some(0) && list.stderr.lines().all(|line| line.starts_with("skipped: ")),
        "{}",
        list.stderr
    );
    let rows: Vec<Value> = list.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(
        (&rows[0]["line"], &rows[0]["conformer"], &rows[0]["other_line"]),
        (&json!(1), &json!(1), &json!(1))
    );
    assert_eq!(
        (&rows[2]["line"], &rows[2]["conformer"], &rows[2]["rmsd_angstrom"]),
        (&json!(4), &json!(3), &Value::Null)
    );
    assert_eq!((&rows[2]["other_molecule"], &rows[2]["same_stereo"]), (&json!("CCO"), &json!(true)));
    let table = folder.drift(&["mine", "train.jsonl", "--against", "test.jsonl", "--quiet"]).done();
    assert!(table.text().contains("with a geometry of the other corpus"), "{}", table.text());
}

#[test]
fn mirror_images_are_counted_apart() {
    let folder = Folder::new();
    // A chain that is no mirror image of itself, and its mirror image.
    let chain = |z: f64| {
        let text = format!(
            "[F]<0.0000,1.2000,0.0000>[C]<0.0000,0.0000,0.0000>[C]<1.5000,0.0000,0.0000>[Cl]<2.0000,0.8000,{z:.4}>"
        );
        json!({ "embedded_smiles": text }).to_string() + "\n"
    };
    folder.file("test.jsonl", chain(1.2));
    folder.file("train.jsonl", chain(-1.2) + &chain(1.2));
    let ran = folder.drift(&["mine", "train.jsonl", "--against", "test.jsonl", "-o", "list.jsonl", "--json"]);
    let report = ran.good().json();
    assert_eq!((&report["rows_with_duplicate"], &report["rows_with_mirror_image"]), (&json!(1), &json!(1)));
    let found: Vec<(u64, u64, bool)> = listed(&folder.read("list.jsonl")).into_keys().collect();
    assert_eq!(found, [(0, 0, true), (1, 0, false)]);
}

#[test]
fn a_corpus_against_itself_shows_its_own_duplicates() {
    let folder = Folder::new();
    folder.file("a.jsonl", ethanol(0.0) + &ethanol(0.3) + TURNED);
    let report = folder.drift(&["mine", "a.jsonl", "--against", "./a.jsonl", "--json"]).good().json();
    // Each of the two is found beside the other, and no row beside itself.
    assert_eq!((&report["pairs"], &report["rows_with_duplicate"]), (&json!(2), &json!(2)));
    assert_eq!(report["other"]["duplicate_conformers"], 1);
}

#[test]
fn shards_merge_to_one_list() {
    let folder = Folder::new();
    for file in 0..5 {
        let rows = (0..20).map(|row| ethanol(f64::from((row * 7 + file) % 13) * 0.0004));
        folder.file(&format!("train/{file}.jsonl"), rows.collect::<String>());
    }
    folder.file("test.jsonl", ethanol(0.0) + TURNED + &ethanol(0.002));
    let command = ["mine", "train", "--against", "test.jsonl", "--quiet"];
    let whole = folder.drift(&[&command[..], &["-o", "whole.jsonl", "--json"]].concat()).good();
    let one = folder.drift(&[&command[..], &["-o", "one.jsonl", "--json", "--threads", "1"]].concat()).good();
    assert_eq!(one, whole);
    assert_eq!(folder.read("one.jsonl"), folder.read("whole.jsonl"));
    for shard in ["1/3", "2/3", "3/3"] {
        let to = format!("shard{}", &shard[..1]);
        folder.drift(&[&command[..], &["--shard", shard, "-o", &to]].concat()).good();
    }
    let merged =
        folder.drift(&["merge", "shard1", "shard2", "shard3", "-o", "merged.jsonl", "--json"]).good();
    assert_eq!(merged.text(), whole.text());
    assert!(folder.read("merged.jsonl") == folder.read("whole.jsonl"));
    let list = folder.drift(&["merge", "shard1", "shard2", "shard3", "-o", "-"]).good();
    assert!(list.stdout == folder.read("whole.jsonl"));
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let folder = Folder::new();
    folder.file("a.jsonl", ethanol(0.0));
    folder.file("bare.xyz", "2\nno text\nC 0 0 0\nO 0 0 1.2\n");
    folder.file("bad.jsonl", "{broken\n");
    folder.file("codes.txt", "[C]<12>[O]<30>\n");
    let against = |more: &[&str]| folder.drift(&[&["mine", "a.jsonl"], more].concat());
    against(&["--against", "none.jsonl"]).refused_for("none.jsonl: no such file or folder");
    against(&["--against", "bad.jsonl"])
        .refused_for("bad.jsonl: no conformer could be read: 1 record skipped");
    against(&["--against", "bare.xyz"]).refused_for("bare.xyz: contains no conformer with a SMILES");
    against(&["--against", "a.jsonl", "--within", "-1"]).refused_for("within");
    against(&["--against", "a.jsonl", "--within", "nan"]).refused_for("within");
    against(&["--against", "a.jsonl", "--within", "2"]).refused_for("one geometry lies within 0 to 1 Å");
    against(&["--against", "a.jsonl", "-o", "a.jsonl"]).refused_for("a.jsonl");
    against(&["--against", "a.jsonl", "-o", "corpus.h5"]).refused_for("is named like a store");
    against(&["--against", "a.jsonl", "-o", "-", "--json"]).refused_for("--json already writes to stdout");
    against(&["--against", "a.jsonl", "--shard", "1/2", "-o", "shards"]).refused_for("there is one file");
    folder
        .drift(&["mine", "codes.txt", "--against", "codes.txt", "--encoding", "fsq:4096"])
        .refused_for("its numbers are codes");
    // Conformers without a SMILES are counted, not compared.
    folder.file("mixed/a.jsonl", ethanol(0.0));
    folder.file("mixed/b.xyz", "2\nno text\nC 0 0 0\nO 0 0 1.2\n");
    let report = folder.drift(&["mine", "mixed", "--against", "a.jsonl", "--json"]).good().json();
    assert_eq!((&report["rows_not_compared"], &report["in_file_order"]), (&json!(1), &json!(1)));
    assert_eq!(report["pairs"], 1);
}

#[test]
fn isotope_labels_do_not_hide_a_copy() {
    let folder = Folder::new();
    let run = |input: &str, other: &str, more: &[&str]| {
        folder.file("input.jsonl", input);
        folder.file("other.jsonl", other);
        let command = ["mine", "input.jsonl", "--against", "other.jsonl", "--json"];
        folder.drift(&[&command, more].concat()).good().json()
    };
    // Dimethyl ether with bonds of 1.3 and 1.5 Å, from one end and from the other, in another pose.
    let row = |text: &str| json!({ "embedded_smiles": text }).to_string() + "\n";
    let short = |a: &str, b: &str| {
        row(&format!("[{a}]<0.0000,0.0000,0.0000>[O]<1.3000,0.0000,0.0000>[{b}]<1.3000,1.5000,0.0000>"))
    };
    let turned = |a: &str, b: &str| {
        row(&format!("[{a}]<1.5000,1.0000,1.0000>[O]<0.0000,1.0000,1.0000>[{b}]<0.0000,2.3000,1.0000>"))
    };
    let labelled = &row("[13CH3]<0.0000,0.0000,0.0000>[O]<1.4000,0.0000,0.0000>[C]<2.0000,1.4000,0.0000>");
    for other in [labelled.clone() + &turned("C", "C"), turned("C", "C") + labelled] {
        for input in [short("C", "C"), short("13CH3", "C"), short("C", "14CH3")] {
            let report = run(&input, &other, &[]);
            assert_eq!(
                (&report["pairs"], &report["molecules_shared"]),
                (&json!(1), &json!(1)),
                "{input}{other}"
            );
            assert_eq!(report["isotopes"], "ignore");
        }
        // Respected labels tell both ends apart: only the plain molecule is in both.
        let respected = ["--isotopes", "respect"];
        assert_eq!(run(&short("C", "C"), &other, &respected)["pairs"], 1);
        let report = run(&short("13CH3", "C"), &other, &respected);
        assert_eq!((&report["pairs"], &report["molecules_shared"]), (&json!(0), &json!(1)));
        assert_eq!(run(&short("14CH3", "C"), &other, &respected)["molecules_shared"], 0);
    }
    let labels = |input: String| {
        let one = run(&input, &turned("13CH3", "C"), &["--isotopes", "respect"]);
        (one["pairs"].clone(), run(&input, &turned("13CH3", "C"), &[])["pairs"].clone())
    };
    assert_eq!(labels(short("C", "13CH3")), (json!(1), json!(1)));
    assert_eq!(labels(short("13CH3", "C")), (json!(0), json!(1)));
}

#[test]
fn deuterium_is_hydrogen() {
    let folder = Folder::new();
    let row = |text: &str| json!({ "embedded_smiles": text }).to_string() + "\n";
    folder.file(
        "plain.jsonl",
        row("[C]<0.9242,-0.0654,0.0674>[C]<-0.5747,-0.3362,0.0215>[O]<-1.2898,0.8218,0.3559>"),
    );
    folder.file(
        "deuterated.jsonl",
        row("[O]<-1.2898,0.8218,0.3559>([2H]<-2.2000,0.7000,0.3000>)[C]<-0.5747,-0.3362,0.0215>[C]<0.9242,-0.0654,0.0674>[2H]<1.2171,0.2801,1.0814>"),
    );
    for files in [["plain.jsonl", "deuterated.jsonl"], ["deuterated.jsonl", "plain.jsonl"]] {
        let run = |more: &[&str]| {
            let command = ["mine", files[0], "--against", files[1], "--json"];
            folder.drift(&[&command, more].concat()).good().json()
        };
        let report = run(&[]);
        assert_eq!((&report["pairs"], &report["isomers_shared"]), (&json!(1), &json!(0)));
        assert_eq!(run(&["--isotopes", "respect"])["molecules_shared"], 0);
    }
}
