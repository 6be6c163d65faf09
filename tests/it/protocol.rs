//! `drift eval`: which molecules and references it takes, how many texts it writes, what tells the encoding.

use std::collections::BTreeMap;
use std::path::Path;

use drift::corpus::{Conformer, EmbeddedConformers};
use drift::encoding::Encoding;
use drift::text::{skeleton, write};
use serde_json::{Value, json};

use crate::support::{self, Folder, Ran, rows};

/// The shortest run that there is: the texts are cut off.
const SHORT: [&str; 6] = ["--lp", "none", "--max-new-tokens", "4", "--json", "-q"];

/// One conformer of each of the first molecules of the embedded corpus, and the second of each where there is one.
fn conformers(molecules: usize) -> Vec<Conformer> {
    let mut found = support::conformers(&EmbeddedConformers::default());
    let mut names: Vec<_> = found.iter().map(|one| one.skeleton.clone()).collect();
    names.dedup();
    names.truncate(molecules);
    found.retain(|one| names.contains(&one.skeleton));
    found
}

fn text(conformers: &[Conformer], encoding: Encoding) -> String {
    let line = |one: &Conformer| write(&one.skeleton, &one.coordinates, encoding) + "\n";
    conformers.iter().map(line).collect()
}

fn smiles(conformers: &[Conformer]) -> String {
    let mut all: Vec<String> = conformers.iter().map(|one| skeleton::smiles(&one.skeleton) + "\n").collect();
    all.dedup();
    all.concat()
}

fn eval(folder: &Folder, more: &[&str]) -> Ran {
    folder.drift(&[&["eval"], more, &SHORT].concat())
}

#[test]
fn all_molecules_of_a_corpus_are_evaluated() {
    let folder = Folder::new();
    folder.file("some.txt", text(&conformers(69), Encoding::FIXED));
    let report = eval(&folder, &["--corpus", "some.txt"]).good().json();
    assert_eq!((&report["protocol"]["molecules"], &report["runs"][0]["samples"]), (&69.into(), &69.into()));
    assert_eq!(
        (&report["protocol"]["split"], &report["runs"][0]["unseen"]),
        (&"all".into(), &"unknown".into())
    );
    let few = eval(&folder, &["--corpus", "some.txt", "--samples", "5"]).good().json();
    assert_eq!(few["protocol"]["molecules"], 5);
    let part = eval(&folder, &["--corpus", "some.txt", "--split", "test"]).good().json();
    let molecules = part["protocol"]["molecules"].as_u64().unwrap();
    assert!((1..20).contains(&molecules), "{molecules}");
    // Another file than the one that the checkpoint learned from: its test part may be in that.
    assert_eq!((&part["protocol"]["split"], &part["runs"][0]["unseen"]), (&"test".into(), &"unknown".into()));
}

#[test]
fn what_drift_trained_on_is_evaluated_on_its_test_part() {
    let folder = Folder::new();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora/default.jsonl.gz");
    let corpus = corpus.to_str().unwrap();
    let unseen = |more: &[&str]| {
        let report = eval(&folder, &[&["--samples", "9"], more].concat()).good().json();
        (report["protocol"]["split"].clone(), report["runs"][0]["unseen"].clone())
    };
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/eval/llama-like");
    assert_eq!(unseen(&["--model", model]), ("test".into(), "yes".into()));
    assert_eq!(unseen(&["--model", model, "--corpus", "drug-like"]), ("test".into(), "yes".into()));
    assert_eq!(unseen(&["--model", model, "--corpus", corpus]), ("test".into(), "yes".into()));
    assert_eq!(
        unseen(&["--model", model, "--corpus", corpus, "--split", "all"]),
        ("all".into(), "no".into())
    );
    // The built-in model learned from a corpus without the molecules of the small one.
    assert_eq!(unseen(&[]), ("all".into(), "yes".into()));
    assert_eq!(unseen(&["--corpus", "drug-like"]), ("test".into(), "unknown".into()));
    folder.file("some.smi", "CCO\n");
    assert_eq!(unseen(&["--smiles", "some.smi"]), (Value::Null, "unknown".into()));
    eval(&folder, &["--smiles", "missing.smi"]).refused_for("missing.smi");
}

#[test]
fn references_beside_smiles_and_twice_as_many_texts() {
    let folder = Folder::new();
    let found = conformers(4);
    // The first three molecules, the first spelled the other way round, and one without a reference.
    let asked: Vec<Conformer> =
        found.iter().filter(|one| one.skeleton != found[found.len() - 1].skeleton).cloned().collect();
    folder.file("some.smi", smiles(&asked) + "CCCCCCCC\n");
    folder.file("references.txt", text(&found, Encoding::FIXED));
    let arguments = ["--smiles", "some.smi", "--references", "references.txt", "--generations", "2k"];
    let more = ["--threshold", "1.25", "--threshold", "0.5", "--molecules", "lines.jsonl", "--likelihood"];
    let ran = eval(&folder, &[&arguments[..], &more].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("of molecules that were not asked for; molecules without a reference: 1"),
        "{}",
        ran.stderr
    );
    let report = ran.json();
    let counts = &report["protocol"]["references"];
    let (used, others) = (asked.len() as u64, (found.len() - asked.len()) as u64);
    assert_eq!((&counts["used"], &counts["not_asked_for"]), (&used.into(), &others.into()));
    assert_eq!((&counts["molecules_not_asked_for"], &counts["prompts_without"]), (&1.into(), &1.into()));
    let run = &report["runs"][0];
    assert_eq!(run["samples"], 2 * used, "none for the molecule without references");
    assert_eq!(report["protocol"]["generations_per_reference"], 2);
    assert_eq!(report["likelihoods"][0]["conformers"], used);
    let thresholds: Vec<f64> =
        run["thresholds"].as_array().unwrap().iter().map(|one| one["angstrom"].as_f64().unwrap()).collect();
    assert_eq!(thresholds, [0.5, 1.25]);
    assert_eq!(run["coverage_sweep"].as_array().unwrap().len(), 60);
    // Nothing that is cut off passes: no coverage, and nothing to match.
    assert_eq!((&run["thresholds"][0]["cov_p"]["mean"], &run["mat_r"]), (&0.0.into(), &Value::Null));
    let lines = rows(&folder.read("lines.jsonl"));
    assert_eq!(lines.len(), 3);
    assert_eq!(lines.iter().map(|line| line["texts"].as_u64().unwrap()).sum::<u64>(), 2 * used);
}

#[test]
fn figures_of_the_field_are_those_of_the_molecules() {
    let folder = Folder::new();
    let arguments = ["eval", "--samples", "4", "--generations", "2k", "--lp", "automaton", "--json"];
    let more = ["--threshold", "1.5", "--molecules", "lines.csv", "-o", "out"];
    let report = folder.drift(&[&arguments[..], &more].concat()).good().json();
    let csv = String::from_utf8(folder.read("lines.csv")).unwrap();
    let rows: Vec<Vec<f64>> = csv
        .lines()
        .skip(1)
        .map(|line| line.split(',').skip(4).filter_map(|cell| cell.parse().ok()).collect())
        .collect();
    assert_eq!((rows.len(), rows[0].len()), (4, 9), "{csv}");
    let figures = |column: usize| {
        let mut values: Vec<f64> = rows.iter().map(|row| row[column]).collect();
        values.sort_by(f64::total_cmp);
        (values.iter().sum::<f64>() / 4.0, f64::midpoint(values[1], values[2]))
    };
    let run = &report["runs"][0];
    let at = &run["thresholds"][0];
    for (column, figure) in [(5, &at["cov_r"]), (6, &at["cov_p"]), (7, &run["mat_r"]), (8, &run["mat_p"])] {
        let (mean, median) = figures(column);
        let close = |name: &str, value: f64| (figure[name].as_f64().unwrap() - value).abs() < 1e-9;
        assert!(close("mean", mean) && close("median", median), "{column} {figure}");
    }
    assert!(at["cov_r"]["mean"].as_f64().unwrap() > 0.0);
    // Of each of the first four columns: texts, passed, compared, references.
    assert!(rows.iter().all(|row| row[0] == 2.0 * row[3] && row[1] == row[2]));
    let page = String::from_utf8(folder.read("out/eval.html")).unwrap();
    assert!(page.contains("Coverage against the threshold"));
}

#[test]
fn references_that_cannot_be_used_are_told_apart() {
    let folder = Folder::new();
    let found = conformers(2);
    folder.file("some.smi", "CCCCCCCC\n");
    folder.file("references.txt", text(&found, Encoding::FIXED));
    folder.file("bare.xyz", "3\nwater\nO 0 0 0\nH 0 0 1\nH 0 1 0\n");
    let with = |references: &str| eval(&folder, &["--smiles", "some.smi", "--references", references]);
    with("references.txt")
        .refused_for("contain none of the molecules that were asked for, but 2 others, such as");
    with("bare.xyz").refused_for("none of its 1 conformers has its atoms in the order of a SMILES");
    with("missing.sdf").refused_for("missing.sdf");
    eval(&folder, &["--corpus", "bare.xyz"])
        .refused_for("none of its 1 conformers has its atoms in the order");
    eval(&folder, &["--smiles", "some.smi", "--generations", "2k"]).refused_for("--generations: ");
    eval(&folder, &["--smiles", "some.smi", "--likelihood"]).refused_for("--likelihood: ");
    eval(&folder, &["--molecules", "lines.txt"]).refused_for("--molecules lines.txt: ");
    for usage in
        [["--generations", "2kk"], ["--threshold", "0"], ["--threshold", "nan"], ["--references", "x"]]
    {
        let ran = eval(&folder, &usage);
        assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0), "{usage:?} {}", ran.stderr);
    }
}

/// The reference checkpoint without its recipe, as a foreign one comes.
fn foreign(folder: &Folder) {
    folder.reference_checkpoint("model");
    std::fs::remove_file(folder.path().join("model/recipe.json")).unwrap();
}

#[test]
fn the_encoding_of_a_foreign_checkpoint_comes_from_evidence() {
    let folder = Folder::new();
    foreign(&folder);
    let found = conformers(8);
    folder.file("fixed.txt", text(&found, Encoding::FIXED));
    folder.file("stripped.txt", text(&found, Encoding::STRIPPED));
    let run = |more: &[&str]| eval(&folder, &[&["--model", "model", "--samples", "8"], more].concat());
    let told = |more: &[&str]| {
        let report = run(more).good().json();
        (report["runs"][0]["dialect"].clone(), report["runs"][0]["dialect_from"].clone())
    };
    // The embedded corpus agrees with both.
    assert_eq!(told(&[]), ("fixed".into(), "own_text".into()));
    assert_eq!(told(&["--corpus", "fixed.txt"]), ("fixed".into(), "both".into()));
    let disagree = "writes fixed text by itself, stripped.txt is stripped; say with --dialect";
    run(&["--corpus", "stripped.txt"]).refused_for(disagree);
    let asked = ["--corpus", "stripped.txt", "--dialect", "stripped"];
    assert_eq!(told(&asked), ("stripped".into(), "given".into()));
    let unseen = run(&[]).good().json()["runs"][0]["unseen"].clone();
    assert_eq!(unseen, "unknown", "nobody knows what a foreign checkpoint has seen");
    // The embedded checkpoint has a recipe, and random weights tell nothing.
    let report = eval(&folder, &["--samples", "1"]).good().json();
    assert_eq!(report["runs"][0]["dialect_from"], "recipe");
}

#[test]
fn a_model_that_tells_nothing_is_not_run_in_an_encoding_by_guess() {
    let folder = Folder::new();
    let shape =
        "--hidden 32 --layers 1 --heads 2 --kv-heads 1 --head-dim 16 --intermediate 48 --context 1024";
    let schedule = "--steps 1 --batch-tokens 1500 --warmup 1 -q --json";
    let begin = ["train-model", "--tokenizer", "qwen-like", "--arch", "qwen3", "-o", "model"];
    let words = shape.split(' ').chain(schedule.split(' '));
    folder.drift(&begin.into_iter().chain(words).collect::<Vec<_>>()).good();
    std::fs::remove_file(folder.path().join("model/recipe.json")).unwrap();
    let run = |more: &[&str]| eval(&folder, &[&["--model", "model", "--samples", "2"], more].concat());
    run(&[]).refused_for("give --dialect fixed, --dialect stripped or --encoding, as it was trained");
    folder.file("stripped.txt", text(&conformers(8), Encoding::STRIPPED));
    let report = run(&["--corpus", "stripped.txt"]).good().json();
    assert_eq!(
        (&report["runs"][0]["dialect"], &report["runs"][0]["dialect_from"]),
        (&"stripped".into(), &"conformers".into())
    );
}

/// The figures of an evaluation that pools isomers are those of an audit that does.
#[test]
#[cfg_attr(not(has_rdkit), ignore = "needs a Python with rdkit")]
fn isomers_are_pooled_as_an_audit_of_the_texts_pools_them() {
    let folder = Folder::new();
    support::python("python/molecules.py", &folder.path(), &["pickles", "made", "3"]);
    let run = ["eval", "--corpus", "made.pickle", "--generations", "2k", "--lp", "automaton", "--json", "-q"];
    let files =
        ["--texts", "texts.jsonl", "--matrix", "m.npz", "--verdicts", "v.jsonl", "--molecules", "m.jsonl"];
    let report = folder.drift(&[&run[..], &["--pool"], &files].concat()).good().json();

    // Three keys of two, two and three isomers, of which the pickle counts 1, 2, 3 conformers, and two are there of each; and a molecule
    // that is counted among the isomers and is none.
    let protocol = &report["protocol"];
    assert_eq!((&protocol["molecules"], &protocol["pooled_prompts"]), (&json!(4), &json!(8)));
    assert_eq!(protocol["references"]["used"], 14);
    let mut texts: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for row in rows(&folder.read("texts.jsonl")) {
        let smiles = row["smiles"].as_str().unwrap();
        assert_eq!(row.get("geom_smiles").is_none(), smiles == "CCO", "{row}");
        let key = row["geom_smiles"].as_str().unwrap_or(smiles);
        *texts.entry(key.to_owned()).or_default().entry(smiles.to_owned()).or_default() += 1;
    }
    let counts = |key: &str| {
        let mut counts: Vec<usize> = texts[key].values().copied().collect();
        counts.sort_unstable();
        counts
    };
    assert_eq!(counts("CC(F)CO"), [2, 4]);
    assert_eq!((texts.len(), counts("CC(O)C(C)Cl"), counts("CCO")), (4, vec![2, 4, 6], vec![2]));
    for (row, references) in rows(&folder.read("m.jsonl")).iter().zip([4, 4, 6, 0]) {
        let key = row["smiles"].as_str().unwrap();
        let asked: usize = texts[key].values().sum();
        assert_eq!((&row["texts"], &row["references"]), (&json!(asked), &json!(references)));
    }
    let verdicts = rows(&folder.read("v.jsonl"));
    let pooled =
        verdicts.iter().filter(|row| row["geom_smiles"].as_str().is_some_and(|key| texts.contains_key(key)));
    assert_eq!((verdicts.len(), pooled.count()), (26, 24));

    folder.drift(&["encode", "made.pickle", "-o", "references.jsonl", "-q"]).done();
    let audit =
        ["audit", "texts.jsonl", "--dialect", "fixed", "--references", "references.jsonl", "--json", "-q"];
    let audited = folder.drift(&[&audit[..], &["--pool"]].concat()).good().json();
    let (own, theirs) = (&report["runs"][0], &audited["total"]);
    assert_eq!(own["geometry"]["molecules"], 3);
    for figure in ["molecules", "molecules_with_conformers", "conformers", "references"] {
        assert_eq!(own["geometry"][figure], theirs["geometry"][figure], "{figure}");
    }
    let close =
        |ours: &Value, theirs: &Value| (ours.as_f64().unwrap() - theirs.as_f64().unwrap()).abs() < 1e-9;
    for figure in ["mat_r", "mat_p"] {
        assert!(close(&own[figure]["mean"], &theirs["coverage"][figure]["mean"]), "{figure}: {own}");
    }
    for step in 0..60 {
        for figure in ["cov_r", "cov_p"] {
            let [ours, theirs] =
                [own, &theirs["coverage"]].map(|report| &report["coverage_sweep"][step][figure]["mean"]);
            assert!(close(ours, theirs), "{figure} {step}: {ours} {theirs}");
        }
    }

    // Without the option each isomer is a molecule, and has the conformers that are its own.
    let apart = folder.drift(&run).good().json();
    assert_eq!((&apart["protocol"]["molecules"], &apart["protocol"]["generations"]), (&json!(7), &json!(4)));
    // Whole pools are chosen: the last two, and the molecule that stands for itself and has no references.
    let some = folder.drift(&[&run[..], &["--pool", "--samples", "3"]].concat()).good().json();
    let protocol = &some["protocol"];
    assert_eq!((&protocol["molecules"], &protocol["pooled_prompts"]), (&json!(3), &json!(6)));
    assert_eq!(some["runs"][0]["geometry"]["molecules"], 2);

    folder.drift(&["eval", "--pool"]).refused_usage("--corpus");
    folder
        .drift(&["eval", "--pool", "--corpus", "small"])
        .refused_for("--pool: the built-in corpora pool no isomers");
    let unpooled = folder.drift(&["eval", "--pool", "--corpus", "references.jsonl"]);
    unpooled.refused_for("references.jsonl: does not say which isomers are pooled");
}
