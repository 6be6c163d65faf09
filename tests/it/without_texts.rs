//! Coverage over molecules of the references that have no text, beside RDKit and NumPy.

use serde_json::{Value, json};

use crate::support::{self, Folder};

/// RMSDs of drift and RDKit differ by less; means over a few molecules too.
const TOLERANCE: f64 = 1e-6;

#[test]
#[cfg_attr(not(has_rdkit), ignore = "needs a Python with rdkit")]
fn molecules_without_a_text_count_as_rdkit_and_numpy_count_them() {
    let folder = Folder::new();
    let python = |arguments: &[&str]| -> Value {
        let said = support::python("python/without_texts.py", &folder.path(), arguments);
        serde_json::from_str(&said).unwrap()
    };
    let expected = python(&["make", "."]);
    let line = "audit texts.jsonl --dialect fixed --references references.jsonl --threshold 0.1 --json";
    for missing in ["zero", "leave-out"] {
        let report = folder.line(&format!("{line} --matrix m.npz --missing {missing}")).done().json();
        let files = report["files"].as_array().unwrap();
        let rows = [("total", &report["total"]), ("a", &files[0]), ("b", &files[1])];
        for (name, row) in rows {
            assert!(name == "total" || row["lp"] == name, "{row}");
            let (expected, without) = (&expected[missing][name], &expected["without_text"][name]);
            let geometry = &row["geometry"];
            assert_eq!(
                (&geometry["molecules"], &geometry["without_text"]),
                (&expected["molecules"], without)
            );
            let left_out = 11 - geometry["molecules"].as_u64().unwrap();
            assert_eq!(geometry["left_out"], left_out, "{name}");
            let coverage = &row["coverage"];
            let at = &coverage["thresholds"][0];
            let figures = [&at["cov_r"], &at["cov_p"], &coverage["mat_r"], &coverage["mat_p"]];
            for (place, figure) in figures.into_iter().enumerate() {
                for kind in ["mean", "median"] {
                    let (ours, theirs) = (&figure[kind], &expected[kind][place]);
                    let off = (ours.as_f64().unwrap() - theirs.as_f64().unwrap()).abs();
                    assert!(off < TOLERANCE, "{missing} {name} {place} {kind}: {ours} {theirs}");
                }
            }
        }
        let warnings = report["warnings"].as_array().unwrap().iter().map(|one| one.as_str().unwrap());
        let told = "4 of the 11 molecules of the references have no text and count 0 in COV";
        assert_eq!(warnings.filter(|warning| *warning == told).count(), usize::from(missing == "zero"));
        let rows = python(&["matrix", "m.npz"]);
        let rows = rows.as_array().unwrap();
        assert!(rows.len() == 11 && rows.iter().all(|row| row[2] == 4), "{rows:?}");
        assert_eq!(rows.iter().filter(|row| row[1] == 0).count(), 4);
    }
    let summary = "--missing leave-out --summary covmat.txt";
    folder.line(&format!("{line} {summary}")).done();
    let summary = String::from_utf8(folder.read("covmat.txt")).unwrap();
    assert!(summary.contains("Missing molecules (no conformers): 5\n"), "{summary}");
    assert!(summary.contains("Total conformers in ground truth: 44\n"), "{summary}");
}

/// References of two molecules, texts of one.
fn two_molecules() -> Folder {
    let folder = Folder::new();
    let one = "[C]<0.0000,0.0000,0.0000>[O]<1.4000,0.0000,0.0000>";
    let row = |text: &str| json!({ "embedded_smiles": text }).to_string() + "\n";
    // The second molecule is spelled in two ways.
    let two = "[N]<0.0000,0.0000,0.0000>[C]<1.4000,0.0000,0.0000>";
    let back = "[C]<0.0000,0.0000,0.0000>[N]<1.4000,0.0000,0.0000>";
    folder.file("references.jsonl", row(one) + &row(two) + &row(back));
    let text = json!({"smiles": "CO", "text": format!("[CONFORMER]{one}[/CONFORMER]")});
    folder.file("texts.jsonl", text.to_string() + "\n");
    folder.file("same.jsonl", text.to_string() + "\n");
    folder
}

#[test]
fn one_of_two_molecules_is_half_of_them() {
    let folder = two_molecules();
    let line = "audit texts.jsonl --dialect fixed --references references.jsonl";
    let figures = |line: &str| {
        let report = folder.line(&format!("{line} --json")).done().json();
        let total = report["total"].clone();
        let at = &total["coverage"]["thresholds"][0];
        let means = [&at["cov_r"]["mean"], &at["cov_p"]["mean"], &total["coverage"]["mat_r"]["mean"]];
        let counts = ["molecules", "references", "left_out", "without_text"];
        (
            means.map(|mean| mean.as_f64().unwrap()),
            counts.map(|count| total["geometry"][count].as_u64().unwrap()),
        )
    };
    assert_eq!(figures(line), ([0.5, 0.5, 0.0], [2, 3, 0, 1]));
    assert_eq!(figures(&format!("{line} --missing leave-out")), ([1.0, 1.0, 0.0], [1, 1, 1, 1]));
    let shown = folder.line(line).done();
    assert!(shown.stderr.contains("warning: 1 of the 2 molecules of the references have no text"));

    // Shards come to the same, and both files have the same molecules.
    let both = line.replace("texts.jsonl", "texts.jsonl same.jsonl");
    let whole = folder.line(&format!("{both} --json --matrix m.npz")).done().json();
    for (shard, place) in [("1/2", "a"), ("2/2", "b")] {
        folder.line(&format!("{both} --shard {shard} -o {place}")).done();
    }
    let merged = folder.line("merge a b -o r.json --matrix n.npz --json").done().json();
    assert_eq!(merged["total"]["coverage"], whole["total"]["coverage"]);
    assert_eq!(
        (&merged["files"][1]["coverage"], whole["files"][0]["geometry"]["molecules"].as_u64()),
        (&whole["files"][1]["coverage"], Some(2))
    );
    assert_eq!(folder.read("m.npz"), folder.read("n.npz"));
}
