//! Hit@K, clusters and torsions: `audit` and `eval` beside each other, and beside RDKit and NumPy.

use drift::chem::Molecule;
use serde_json::{Value, json};

use crate::support::{self, Folder, drift, words};

/// How far figures may be from NumPy's: RMSDs are sums of squares of many terms.
const TOLERANCE: f64 = 1e-6;

/// Compares all fields of `expected` with those of `found`, which may have more.
#[track_caller]
fn assert_close(found: &Value, expected: &Value, place: &str) {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            for (name, value) in expected {
                let place = format!("{place}.{name}");
                assert_close(found.get(name).unwrap_or_else(|| panic!("no {place}")), value, &place);
            }
        }
        (Value::Array(found), Value::Array(expected)) => {
            assert_eq!(found.len(), expected.len(), "{place}");
            let both = found.iter().zip(expected).enumerate();
            both.for_each(|(at, (found, expected))| assert_close(found, expected, &format!("{place}[{at}]")));
        }
        (Value::Number(found), Value::Number(expected)) => {
            let off = (found.as_f64().unwrap() - expected.as_f64().unwrap()).abs();
            assert!(
                off < TOLERANCE * expected.as_f64().unwrap().abs().max(1.0),
                "{place}: {found} {expected}"
            );
        }
        _ => assert_eq!(found, expected, "{place}"),
    }
}

#[test]
#[cfg_attr(not(has_rdkit), ignore = "needs a Python with rdkit")]
fn figures_are_those_of_numpy_and_rdkit() {
    let folder = Folder::new();
    let corpus = format!("{}/corpora/default.jsonl.gz", env!("CARGO_MANIFEST_DIR"));
    let (molecules, texts) = support::sized(("120", "20"), ("30", "9"));
    let python = |arguments: &[&str]| -> Value {
        let said = support::python("python/ensembles.py", &folder.path(), arguments);
        serde_json::from_str(&said).unwrap()
    };
    python(&["make", &corpus, ".", molecules, texts]);
    let expected = python(&["measure", ".", "0.01,0.25,0.75,2", "1,2,5,9,50", "0,0.1,0.5,1,3"]);
    let audit = "audit texts.jsonl --dialect fixed --references references.jsonl --hits 0.75,0.01,0.25,2 \
                 --at 50,1,2,5,9 --clusters 0.5,0,0.1,1,3 --json";
    let found = folder.line(audit).done().json();
    let run = &found["runs"][0];
    assert_close(&run["hits"], &expected["hits"], "hits");
    assert_close(&run["clusters"], &expected["clusters"], "clusters");
    let left_out = folder.line(&format!("{audit} --missing leave-out")).done().json();
    assert_close(&left_out["runs"][0]["hits"], &expected["left_out"], "left out");

    // Every kind of molecule was there: some without a text to compare, some with few texts, several classes.
    let hits = &run["hits"];
    assert!(hits["molecules"].as_u64() > left_out["runs"][0]["hits"]["molecules"].as_u64());
    assert!(
        hits["at"][0]["molecules_with_k_texts"].as_u64() > hits["at"][2]["molecules_with_k_texts"].as_u64()
    );
    assert!(hits["strata"].as_array().unwrap().len() > 3);
    assert!(run["clusters"]["texts"].as_u64() > run["clusters"]["conformers"].as_u64());
}

/// `DRIFT_ALL` takes more molecules.
#[test]
#[cfg_attr(not(has_rdkit), ignore = "needs a Python with rdkit")]
fn rotatable_bonds_and_torsions_are_those_of_rdkit() {
    let folder = Folder::new();
    let sizes = support::sized(["5000", "3000", "1"], ["400", "200", "1"]);
    let said = support::python("python/rotors.py", &folder.path(), &sizes);
    let mut different = Vec::new();
    let rows = support::rows(said.as_bytes());
    for row in &rows {
        // drift refuses some spellings of metal complexes.
        let Ok(molecule) = Molecule::of_smiles(row["smiles"].as_str().unwrap()) else { continue };
        let mut bonds: Vec<[usize; 2]> = molecule
            .torsions()
            .iter()
            .map(|torsion| [torsion[1].min(torsion[2]), torsion[1].max(torsion[2])])
            .collect();
        bonds.sort_unstable();
        let found = json!({
            "smiles": row["smiles"],
            "rotatable_bonds": molecule.rotatable_bonds(),
            "heavy_atoms": molecule.heavy_atoms(),
            "torsions": bonds,
        });
        different.extend((found != *row).then(|| format!("{found} {row}")));
    }
    assert!(
        different.is_empty() && rows.len() > 500,
        "{} of {}: {different:#?}",
        different.len(),
        rows.len()
    );
}

/// Three texts of ethanol, of which one is broken, and two of another molecule, which has no references.
fn scene(folder: &Folder) {
    let ethanol = |z: &str| {
        format!(
            "[CONFORMER][C]<-1.2000,-0.2000,0.0000>[C]<0.0000,0.5500,0.0000>[O]<1.1700,-0.3000,{z}>[/CONFORMER]"
        )
    };
    let butane = |z: &str| {
        format!(
            "[CONFORMER][C]<0.0000,0.0000,0.0000>[C]<1.5000,0.0000,0.0000>[C]<2.0000,1.4000,0.0000>[C]<3.5000,1.4000,{z}>[/CONFORMER]"
        )
    };
    let rows = [
        json!({"smiles": "CCO", "text": ethanol("0.0000")}),
        json!({"smiles": "CCO", "text": "[CONFORMER][C]<1"}),
        json!({"smiles": "CCO", "text": ethanol("2.0000")}),
        json!({"smiles": "CCCC", "text": butane("0.0000")}),
        json!({"smiles": "CCCC", "text": butane("0.0001")}),
    ];
    let lines: String = rows.iter().map(|row| row.to_string() + "\n").collect();
    folder.file("texts.jsonl", lines);
    let inside = ethanol("0.0000");
    let inside = inside.trim_start_matches("[CONFORMER]").trim_end_matches("[/CONFORMER]");
    folder.file("references.jsonl", json!({"embedded_smiles": inside}).to_string() + "\n");
}

#[test]
fn molecules_of_few_texts() {
    let folder = Folder::new();
    scene(&folder);
    let audit = "audit texts.jsonl --dialect fixed --references references.jsonl --hits 0.2 --at 1,2,7 --clusters 0.2";
    let run = folder.line(&format!("{audit} --json")).done().json()["runs"][0].clone();
    let means = |figure: &str| -> Vec<f64> {
        let at = run["hits"]["at"].as_array().unwrap().iter();
        at.map(|at| at["thresholds"][0][figure]["mean"].as_f64().unwrap()).collect()
    };
    folder.line(&format!("{audit} --molecules m.csv --quiet")).done();
    let csv = String::from_utf8(folder.read("m.csv")).unwrap();
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let cell = |line: usize, name: &str| -> Option<f64> {
        let column = lines[0].iter().position(|title| *title == name).unwrap();
        lines[line][column].parse().ok()
    };
    assert_close(
        &json!([cell(1, "hit_at_1_0.2"), cell(1, "hit_at_7_0.2")]),
        &json!([1.0 / 3.0, 1.0]),
        "hit_at",
    );
    assert_eq!([cell(2, "hit_at_1_0.2"), cell(2, "rmsd_best_of_2")], [None, None], "no references");
    let clusters = [cell(1, "clusters_0.2"), cell(2, "clusters_0.2"), cell(2, "largest_0.2")];
    assert_eq!(clusters, [Some(2.0), Some(1.0), Some(2.0)]);
    let spreads = [cell(1, "torsion_spread_degrees"), cell(2, "torsion_spread_degrees")];
    assert!(spreads[0].is_none() && spreads[1].is_some_and(|spread| spread < 1.0), "{spreads:?}");
    // One of three texts hits, and two of them have a conformer. Butane has no reference, so it is not there.
    assert_close(&json!(means("hit")), &json!([1.0 / 3.0, 2.0 / 3.0, 1.0]), "hit");
    assert_close(&json!(means("hit_of_conformers")), &json!([0.5, 1.0, 1.0]), "hit_of_conformers");
    assert_eq!(
        (&run["hits"]["molecules"], &run["hits"]["at"][2]["molecules_with_k_texts"]),
        (&json!(1), &json!(0))
    );
    let clusters = &run["clusters"]["thresholds"][0];
    assert_eq!((&run["clusters"]["molecules"], &clusters["total"]), (&json!(2), &json!(3)));
    assert_close(&clusters["per_100_texts"]["mean"], &json!((200.0 / 3.0 + 50.0) / 2.0), "per_100_texts");
    // Of both molecules only butane has a torsion.
    assert!(run["clusters"]["torsion_spread_degrees"]["interval"].is_null());
    let table = folder.line(audit).done();
    assert!(
        table.text().contains("Hit@K, in percent of molecules")
            && table.text().contains("0-4 rotatable bonds")
    );

    // Clusters need no references.
    let alone = folder.line("audit texts.jsonl --dialect fixed --clusters 0.2 --json").done().json();
    assert_eq!(alone["runs"][0]["clusters"], run["clusters"]);
    // Without the options nothing is added.
    let plain = folder.line("audit texts.jsonl --dialect fixed --references references.jsonl --json").done();
    assert!(plain.json()["runs"][0]["hits"].is_null() && !plain.text().contains("\"clusters\""));

    // No text that passes.
    folder.file("broken.jsonl", "{\"smiles\": \"CCO\", \"text\": \"[CONFORMER][C]<1\"}\n");
    let none = folder.line(&format!("{} --json", audit.replace("texts", "broken"))).done().json();
    let (hits, clusters) = (&none["runs"][0]["hits"], &none["runs"][0]["clusters"]);
    assert_eq!(
        (&hits["at"][0]["thresholds"][0]["hit"]["mean"], &clusters["molecules"]),
        (&json!(0.0), &json!(0))
    );
    assert!(hits["at"][0]["best_rmsd_angstrom"].is_null() && clusters["thresholds"] == json!([]));
}

#[test]
fn shards_and_threads_do_not_matter() {
    let folder = Folder::new();
    // One row in two files: the texts of a molecule are measured together.
    for seed in ["1", "2"] {
        let generate = "generate --samples 4 --generations 3 --lp automaton --max-new-tokens 400";
        folder.line(&format!("{generate} --seed {seed} -o {seed}.jsonl")).done();
    }
    let audit = words("audit 1.jsonl 2.jsonl --references small --hits 0.5,1 --at 1,6 --clusters 0.5,1");
    let runs = |path: &str| -> Value {
        let report: Value = serde_json::from_slice(&folder.read(path)).unwrap();
        report["runs"].clone()
    };
    folder.drift(&[&audit[..], &["-o", "whole.json"]].concat()).done();
    folder.drift(&[&audit[..], &["--threads", "1", "-o", "one.json"]].concat()).done();
    for shard in ["1/2", "2/2"] {
        let to = shard.replace('/', "of");
        folder.drift(&[&audit[..], &["--shard", shard, "-o", &to]].concat()).done();
    }
    folder.drift(&["merge", "1of2", "2of2", "-o", "merged.json"]).done();
    let whole = runs("whole.json");
    assert_eq!((&whole, &whole), (&runs("one.json"), &runs("merged.json")));
    assert_eq!(
        (&whole[0]["hits"]["molecules"], &whole[0]["hits"]["at"][1]["molecules_with_k_texts"]),
        (&json!(4), &json!(4))
    );
    assert!(whole[0]["clusters"]["conformers"].as_u64() > Some(12));
}

#[test]
fn eval_measures_what_audit_does() {
    let folder = Folder::new();
    let measures = "--hits 0.5,1 --at 1,3 --clusters 0.5,1 --missing leave-out";
    let eval = "eval --samples 4 --generations 4 --lp automaton --max-new-tokens 400 --texts t.jsonl --json";
    let evaluated = folder.line(&format!("{eval} {measures}")).done().json();
    let audited = folder.line(&format!("audit t.jsonl --references small {measures} --json")).done().json();
    for name in ["hits", "clusters"] {
        assert_eq!(evaluated["runs"][0][name], audited["runs"][0][name], "{name}");
    }
    assert!(evaluated["runs"][0]["clusters"]["conformers"].as_u64() > Some(8));
    let shown = folder.line("eval --samples 2 --lp automaton --max-new-tokens 400 --clusters 1").done();
    assert!(shown.text().contains("Clusters, means over molecules") && !shown.text().contains("Hit@K"));
}

#[test]
fn isomers_of_a_pool_are_one_molecule() {
    let folder = Folder::new();
    let text = |smiles: &str, mark: &str, x: &str| {
        let text = format!(
            "[CONFORMER][C]<{x},1.2000,0.0000>{mark}<0.0000,0.0000,0.3000>([O]<-0.7000,-1.2000,0.0000>)[N]<-0.7000,1.2000,0.1000>[/CONFORMER]"
        );
        json!({"smiles": smiles, "geom_smiles": "CC(O)N", "text": text}).to_string() + "\n"
    };
    let left = text("C[C@@H](O)N", "[C@@H]", "1.2000") + &text("C[C@@H](O)N", "[C@@H]", "1.2010");
    folder.file("texts.jsonl", left + &text("C[C@H](O)N", "[C@H]", "3.2000"));
    let reference = "{\"embedded_smiles\": \"[C]<1.2000,1.2000,0.0000>[C@@H]<0.0000,0.0000,0.3000>([O]<-0.7000,-1.2000,0.0000>)[N]<-0.7000,1.2000,0.1000>\"}\n";
    folder.file("references.jsonl", reference);
    let audit = "audit texts.jsonl --dialect fixed --references references.jsonl --hits 0.1 --at 1 --clusters 0.1 --json";
    let figures = |more: &str| {
        let run = folder.line(&format!("{audit} {more}")).done().json()["runs"][0].clone();
        let hit = run["hits"]["at"][0]["thresholds"][0]["hit"]["mean"].as_f64().unwrap();
        (run["clusters"]["molecules"].as_u64(), run["clusters"]["thresholds"][0]["total"].as_u64(), hit)
    };
    // Both isomers match the reference's graph under the pool; the other isomer alone has no reference.
    assert_eq!(figures(""), (Some(2), Some(2), 1.0));
    let pooled = figures("--pool");
    assert_eq!((pooled.0, pooled.1), (Some(1), Some(2)));
    assert!((pooled.2 - 2.0 / 3.0).abs() < 1e-12, "{pooled:?}");
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let folder = Folder::new();
    scene(&folder);
    folder.line("audit texts.jsonl --dialect fixed --hits 0.5").refused_for("--hits");
    folder.line("audit texts.jsonl --references references.jsonl --hits 0.5 --at 0").refused_usage("--at");
    folder.line("audit texts.jsonl --references references.jsonl --at 3").refused_usage("--hits");
    for wrong in ["-1", "nan", "101", "x"] {
        folder.line(&format!("audit texts.jsonl --clusters={wrong}")).refused_usage("--clusters");
    }
    drift(&["eval", "--smiles", "/dev/null", "--hits", "0.5"]).refused();
    folder.file("smiles.txt", "CCO\n");
    folder.line("eval --smiles smiles.txt --lp automaton --hits 0.5").refused_for("--hits");
}
