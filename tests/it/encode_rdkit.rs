//! `drift encode` beside RDKit: every format that holds a molecule, its stereo, and random molecules that RDKit judges.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Folder, more, python, rows, shared, sized};

/// What a sub-command of `tests/python/encode.py` prints, if it succeeds.
#[track_caller]
fn by_rdkit(folder: &Folder, arguments: &[&str]) -> String {
    python("python/encode.py", &folder.path(), arguments)
}

/// Encodes; gives the report.
#[track_caller]
fn encode(folder: &Folder, input: &str, output: &str, more: &[&str]) -> Value {
    folder.drift(&[&["encode", input, "-o", output, "--json"], more].concat()).done().json()
}

/// `SMILES NAME` lines of a JSONL file.
fn names(path: &Path) -> String {
    let reader = drift::io::open(path, &drift::job::Job::default()).reader;
    let line = |line: std::io::Result<String>| {
        let row: Value = serde_json::from_str(&line.unwrap()).unwrap();
        format!("{} {}\n", row["canonical_smiles"].as_str().unwrap(), row["id"].as_str().unwrap())
    };
    std::io::BufRead::lines(reader).map(line).collect()
}

/// The same molecules as SDF, GEOM's pickles, a test set, GEOM's msgpack and XYZ, the last two without bonds: all encoded, each text its
/// prompt's molecule by RDKit, and the texts of all formats equal but for the last decimal.
#[track_caller]
fn every_format_agrees(folder: &Folder, sdf: &str, conformers: u64, open_stereo: u64) {
    by_rdkit(folder, &["make", sdf, "names.smi", "made"]);
    encode(folder, sdf, "sdf.jsonl", &["--smiles", "names.smi"]);
    let inputs = [sdf, "made/rdkit_folder/drugs", "made/test.pickle", "made/crude.msgpack", "made/all.xyz"];
    for input in inputs {
        let more: &[&str] = if input == sdf { &["--smiles", "names.smi"] } else { &[] };
        let report = encode(folder, input, "out.jsonl", more);
        let counts = ["conformers", "skipped", "open_stereo"].map(|count| report[count].as_u64().unwrap());
        assert_eq!(counts, [conformers, 0, open_stereo], "{input}: {report:#}");
        let checked = by_rdkit(folder, &["check", "out.jsonl"]);
        let same = format!(
            "{} the molecule of their prompt, {open_stereo} with more stereo than it, 0 not",
            conformers - open_stereo
        );
        assert!(checked.contains(&same), "{input}: {checked}");
        eprintln!("{input}: {checked}; {}", by_rdkit(folder, &["compare", "out.jsonl", "sdf.jsonl"]));
    }
}

#[test]
#[cfg_attr(not(all(has_shared, has_rdkit)), ignore = "needs ../shared and RDKit")]
fn a_thousand_conformers_in_every_format() {
    let geom = shared().join("geom");
    let folder = Folder::new();
    let theirs = geom.join("xtb_moses_aq.jsonl.gz");
    folder.file("names.smi", names(&theirs));
    let sdf = geom.join("xtb_moses_aq.sdf.gz");
    // Three molecules have a double bond that their SMILES leaves open, since their SDF marks it as either.
    every_format_agrees(&folder, sdf.to_str().unwrap(), 1_000, 3);
    // Their text is in another frame.
    let compared = by_rdkit(&folder, &["compare", "sdf.jsonl", theirs.to_str().unwrap(), "--distances"]);
    eprintln!("{compared}");
    assert!(compared.ends_with("0 other and allowed, 0 other"), "{compared}");
}

/// Molecules of the embedded corpus, with conformers of their own.
#[test]
#[cfg_attr(not(has_rdkit), ignore = "needs RDKit")]
fn embedded_molecules_in_every_format() {
    let folder = Folder::new();
    let corpus = names(&Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora/default.jsonl.gz"));
    let mut seen = BTreeSet::new();
    let some: Vec<&str> =
        corpus.lines().filter(|line| seen.insert(line.split(' ').next())).take(60).collect();
    folder.file("names.smi", some.join("\n") + "\n");
    by_rdkit(&folder, &["embed", "names.smi", "all.sdf"]);
    every_format_agrees(&folder, "all.sdf", 60, 0);
    // An independent encoder writes the same texts.
    encode(&folder, "made/rdkit_folder/drugs", "ours.jsonl", &[]);
    by_rdkit(&folder, &["encode", "made/rdkit_folder", "peer.jsonl"]);
    let compared = by_rdkit(&folder, &["compare", "ours.jsonl", "peer.jsonl"]);
    assert!(compared.starts_with("60 rows:"), "{compared}");
}

/// What is otherwise than RDKit has it by default, and why that is right: its own newer perception of stereo says the same, or no text of
/// the molecule would pass, since 3DMolGen's validation leaves out the hydrogens of carbon radicals.
fn agrees(case: &Value, verdict: &str) -> bool {
    let said = [case["verdict"].as_str().unwrap(), case["newer"].as_str().unwrap()];
    let smiles = case["smiles"].as_str().unwrap();
    let has_no_text = ["[CH]", "[CH2]", "[CH3]"].iter().any(|radical| smiles.contains(radical));
    said.contains(&verdict) || said.contains(&"unknown") || (verdict == "other" && has_no_text)
}

/// Hard and random molecules, atoms shuffled, some mirrored, some with another SMILES than theirs: what RDKit finds to be the molecule of
/// its SMILES is encoded, what has more stereo is counted, the rest is refused. More with DRIFT_ENCODE_CASES.
#[test]
#[cfg_attr(not(has_rdkit), ignore = "needs RDKit")]
fn random_molecules_are_judged_as_rdkit_judges_them() {
    let folder = Folder::new();
    let count = std::env::var("DRIFT_ENCODE_CASES").unwrap_or_else(|_| sized("40", "20").to_owned());
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora/default.jsonl.gz");
    let mut arguments = ["cases", "cases", "--count", &count].map(str::to_owned).to_vec();
    let mut conformers = vec![corpus];
    if let Some(shared) = more() {
        arguments.extend(["--shared".to_owned(), shared.to_str().unwrap().to_owned()]);
        conformers.push(shared.join("geom/etkdg_drugs_test.jsonl.gz"));
    }
    for path in &conformers {
        arguments.extend(["--conformers".to_owned(), path.to_str().unwrap().to_owned()]);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    eprintln!("{}", by_rdkit(&folder, &arguments));
    assert!(judged(&folder, true) > 1_000);
}

/// Molecules grown at random, with rings, charges, isotopes, metals and stereo of every kind. Of some of them RDKit says one thing or another, as the
/// order of the file's atoms and bonds has it (cages whose centres lie outside of their neighbours): these are set aside. More with
/// DRIFT_RANDOM_MOLECULES.
#[test]
#[cfg_attr(not(has_rdkit), ignore = "needs RDKit")]
fn grown_molecules_are_judged_as_rdkit_judges_them() {
    let folder = Folder::new();
    let count = std::env::var("DRIFT_RANDOM_MOLECULES").unwrap_or_else(|_| "60".to_owned());
    let seed = std::env::var("DRIFT_RANDOM_SEED").unwrap_or_else(|_| "5".to_owned());
    eprintln!("{}", by_rdkit(&folder, &["cases", "cases", "--random", &count, "--seed", &seed]));
    assert!(judged(&folder, false) > 100);
}

/// Compares what becomes of all cases in a folder with RDKit's verdicts; gives their number.
#[track_caller]
fn judged(folder: &Folder, checks_texts: bool) -> usize {
    let expected = rows(&folder.read("cases/expected.jsonl"));
    for input in ["cases/v2000.sdf", "cases/v3000.sdf", "cases/all.pickle"] {
        let mut verdicts: BTreeMap<String, &str> = BTreeMap::new();
        let mut kept = BTreeSet::new();
        for (open_stereo, verdict) in [("keep", "open"), ("skip", "same")] {
            encode(folder, input, "out.jsonl", &["--open-stereo", open_stereo]);
            let encoded = rows(&folder.read("out.jsonl"));
            let texts: BTreeSet<String> = encoded.iter().map(Value::to_string).collect();
            if open_stereo == "skip" {
                assert!(texts.is_subset(&kept), "{input}");
            } else {
                if checks_texts {
                    let checked = by_rdkit(folder, &["check", "out.jsonl"]);
                    assert!(checked.contains(" 0 not,"), "{input}: {checked}");
                }
                kept = texts;
            }
            verdicts.extend(encoded.iter().map(|row| (row["id"].as_str().unwrap().to_owned(), verdict)));
        }
        let mut other: Vec<Value> = expected
            .iter()
            .map(|case| (case, verdicts.get(case["id"].as_str().unwrap()).copied().unwrap_or("other")))
            .filter(|(case, verdict)| !agrees(case, verdict))
            .map(|(case, verdict)| json!({"case": case, "drift": verdict}))
            .collect();
        if !other.is_empty() {
            let id = |case: &Value| case["case"]["id"].as_str().unwrap().to_owned();
            let names: Vec<String> = other.iter().map(id).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let undecided = by_rdkit(folder, &[&["undecided", "cases"], &names[..]].concat());
            let undecided: Vec<String> = serde_json::from_str(&undecided).unwrap();
            other.retain(|case| !undecided.contains(&id(case)));
            eprintln!("{input}: RDKit is undecided of {}", undecided.len());
        }
        assert!(other.is_empty(), "{input}: {} of {}: {other:#?}", other.len(), expected.len());
        let encoded: Vec<&str> = verdicts.values().copied().collect();
        let open = encoded.iter().filter(|verdict| **verdict == "open").count();
        eprintln!(
            "{input}: {} encoded, {open} of them with open stereo, of {}",
            encoded.len(),
            expected.len()
        );
    }
    expected.len()
}

/// Drawings, aromatic bonds, charges, hydrogens, bond orders and queries in the lines and keywords of both versions of SDF: taken, called a
/// drawing, or refused as RDKit's reader decides.
#[test]
#[cfg_attr(not(has_rdkit), ignore = "needs RDKit")]
fn statements_of_sdf_are_read_as_rdkit_reads_them() {
    let folder = Folder::new();
    python("python/sdf_statements.py", &folder.path(), &["made"]);
    let report = encode(&folder, "made/statements.sdf", "out.jsonl", &[]);
    let mut reasons: BTreeMap<usize, &str> = BTreeMap::new();
    for skipped in report["skipped_records"].as_array().unwrap() {
        let record = skipped["record"].as_str().unwrap().strip_prefix("molecule ").unwrap();
        let number = record.split([' ', ',']).next().unwrap().parse().unwrap();
        reasons.insert(number, skipped["reason"].as_str().unwrap());
    }
    for (number, expected) in (1..).zip(rows(&folder.read("made/expected.jsonl"))) {
        let reason = reasons.get(&number).copied();
        let verdict = match reason {
            None => "taken",
            Some(reason) if reason.starts_with("a 2D drawing") => "drawing",
            Some(_) => "refused",
        };
        assert_eq!(expected["verdict"], verdict, "record {number}: {expected}: {reason:?}");
    }
}
