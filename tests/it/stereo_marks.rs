//! Which stereo marks count, and against what they are checked: centres whose hydrogen decides, marks that RDKit drops, radicals that no
//! text can express.

use serde_json::Value;

use crate::encode::sdf;
use crate::support::{Folder, Ran, python, rows};

type PlacedAtom = (&'static str, [f64; 3]);

/// `CC[P@H]F` with all its hydrogens.
const PHOSPHINE: [PlacedAtom; 10] = [
    ("C", [-1.12, 0.58, 0.14]),
    ("C", [-0.15, -0.55, -0.07]),
    ("P", [1.55, 0.11, 0.22]),
    ("F", [2.21, 0.51, -1.31]),
    ("H", [2.3, -0.95, 0.88]),
    ("H", [-0.6, 1.4, 0.67]),
    ("H", [-2.01, 0.23, 0.72]),
    ("H", [-1.47, 1.0, -0.84]),
    ("H", [-0.29, -0.99, -1.07]),
    ("H", [-0.42, -1.34, 0.67]),
];
const PHOSPHINE_BONDS: [[usize; 3]; 9] =
    [[1, 2, 1], [2, 3, 1], [3, 4, 1], [3, 5, 1], [1, 6, 1], [1, 7, 1], [1, 8, 1], [2, 9, 1], [2, 10, 1]];

/// `C[As@@H]Cl` with all its hydrogens.
const ARSINE: [PlacedAtom; 7] = [
    ("C", [-0.91, -0.13, -0.05]),
    ("As", [0.92, 0.34, 0.44]),
    ("Cl", [2.37, -1.29, 0.18]),
    ("H", [-1.3, 0.62, -0.76]),
    ("H", [-1.56, -0.13, 0.83]),
    ("H", [-0.91, -1.11, -0.57]),
    ("H", [1.4, 1.71, -0.07]),
];
const ARSINE_BONDS: [[usize; 3]; 6] = [[1, 2, 1], [2, 3, 1], [1, 4, 1], [1, 5, 1], [1, 6, 1], [2, 7, 1]];

/// A conformer of a file.
#[derive(Clone, Copy)]
struct Conformer<'c> {
    atoms: &'c [PlacedAtom],
    bonds: &'c [[usize; 3]],
}

/// Encodes a conformer with a SMILES, and gives the run and its rows.
fn encoded(folder: &Folder, conformer: Conformer<'_>, smiles: &str) -> (Ran, Vec<Value>) {
    folder.file("in.sdf", sdf("a", conformer.atoms, conformer.bonds, "", &[("smiles", smiles)]));
    let ran = folder.drift(&["encode", "in.sdf", "-o", "out.jsonl", "--json"]);
    if ran.code == Some(2) {
        return (ran, Vec::new());
    }
    let rows = rows(&folder.read("out.jsonl"));
    (ran, rows)
}

/// The verdict of `audit` on the only text that was encoded.
fn verdict(folder: &Folder) -> Value {
    let ran = folder.drift(&["audit", "out.jsonl", "--dialect", "fixed", "--verdicts", "v.jsonl"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    rows(&folder.read("v.jsonl")).swap_remove(0)
}

/// What RDKit 2026.09 reads as the same and as the other molecule.
#[test]
fn the_hydrogen_of_phosphorus_and_arsenic_decides() {
    let folder = Folder::new();
    let phosphine = Conformer { atoms: &PHOSPHINE, bonds: &PHOSPHINE_BONDS };
    let arsine = Conformer { atoms: &ARSINE, bonds: &ARSINE_BONDS };
    for (molecule, smiles, text) in [
        (phosphine, "CC[P@H]F", Some("[C]<>[C]<>[P@H]<>[F]<>")),
        (phosphine, "CC[P@@H]F", None),
        (phosphine, "F[P@@H]CC", Some("[F]<>[P@@H]<>[C]<>[C]<>")),
        (phosphine, "CC[P@@]([H])F", Some("[C]<>[C]<>[P@H]<>[F]<>")),
        (phosphine, "CC[P@]([H])F", None),
        (phosphine, "[H][P@](CC)F", Some("[P@H]<>([C]<>[C]<>)[F]<>")),
        (phosphine, "[H][P@@](CC)F", None),
        (arsine, "C[As@@H]Cl", Some("[C]<>[As@@H]<>[Cl]<>")),
        (arsine, "C[As@H]Cl", None),
    ] {
        let (ran, rows) = encoded(&folder, molecule, smiles);
        let Some(text) = text else {
            assert!(ran.stderr.contains("its stereo differs"), "{smiles}: {}", ran.stderr);
            continue;
        };
        assert_eq!(rows.len(), 1, "{smiles}: {}", ran.stderr);
        assert_eq!(ran.json()["stereo_unchecked"], 0, "{smiles}");
        let found = rows[0]["embedded_smiles"].as_str().unwrap();
        let blocks = found.split('<').map(|part| part.split_once('>').map_or(part, |(_, rest)| rest));
        assert_eq!(blocks.collect::<Vec<_>>().join("<>"), text, "{smiles}");
        // The text has no hydrogen, so nothing can be said of its handedness.
        let said = verdict(&folder);
        let counts = ["stereocentres", "stereocentres_right", "stereo_unchecked"]
            .map(|key| said[key].as_u64().unwrap());
        assert_eq!((counts, &said["valid"]), ([0, 0, 1], &true.into()), "{smiles}: {said}");
    }
}

#[test]
fn a_file_without_the_hydrogen_leaves_the_centre_unchecked() {
    let folder = Folder::new();
    let heavy = Conformer { atoms: &PHOSPHINE[..4], bonds: &PHOSPHINE_BONDS[..3] };
    for smiles in ["CC[P@H]F", "CC[P@@H]F"] {
        let (ran, rows) = encoded(&folder, heavy, smiles);
        assert_eq!((rows.len(), &ran.json()["stereo_unchecked"]), (1, &1.into()), "{smiles}: {}", ran.stderr);
    }
}

/// An amine inverts, so RDKit drops its mark.
#[test]
fn marks_that_rdkit_drops_do_not_count() {
    let folder = Folder::new();
    let amine = [
        ("C", [-1.4, 0.2, 0.0]),
        ("N", [0.0, 0.0, 0.4]),
        ("C", [0.6, 1.3, 0.0]),
        ("C", [0.9, -1.2, 0.0]),
        ("O", [2.2, -1.1, 0.5]),
    ];
    let mirrored = amine.map(|(symbol, [x, y, z])| (symbol, [x, y, -z]));
    let bonds = [[1, 2, 1], [2, 3, 1], [2, 4, 1], [4, 5, 1]];
    for (atoms, smiles) in [(amine, "C[N@](C)CO"), (mirrored, "C[N@](C)CO"), (mirrored, "C[N@@](C)CO")] {
        let (ran, rows) = encoded(&folder, Conformer { atoms: &atoms, bonds: &bonds }, smiles);
        assert_eq!(rows.len(), 1, "{smiles}: {}", ran.stderr);
        let said = verdict(&folder);
        assert_eq!((&said["stereocentres"], &said["stereo_unchecked"]), (&0.into(), &1.into()), "{said}");
        assert_eq!((&said["valid"], &said["passed"]), (&true.into(), &true.into()), "{said}");
    }
}

/// 3DMolGen's validation reads `[CH2]` as a plain carbon, so that no text of such a radical passes. It leaves `[13CH2]` alone.
#[test]
fn what_is_encoded_of_a_radical_passes() {
    let folder = Folder::new();
    let atoms = [
        ("C", [1.18, -0.16, 0.32]),
        ("C", [-0.03, 0.25, -0.4]),
        ("C", [-1.25, -0.03, 0.12]),
        ("H", [1.58, -1.14, 0.06]),
        ("H", [1.89, 0.63, 0.56]),
        ("H", [0.07, 0.76, -1.34]),
        ("H", [-2.16, 0.25, -0.39]),
        ("H", [-1.27, -0.55, 1.07]),
    ];
    let bonds = [[1, 2, 1], [2, 3, 2], [1, 4, 1], [1, 5, 1], [2, 6, 1], [3, 7, 1], [3, 8, 1]];
    let with = |more: &str, smiles: &str| {
        folder.file("in.sdf", sdf("a", &atoms, &bonds, more, &[("smiles", smiles)]));
        folder.drift(&["encode", "in.sdf", "-o", "out.jsonl"])
    };
    let ran = with("M  RAD  1   1   2\n", "[CH2]C=C");
    assert!(
        ran.code == Some(2) && ran.stderr.contains("no text reads back as the SMILES: its radicals"),
        "{}",
        ran.stderr
    );
    let ran = with("M  ISO  1   1  13\nM  RAD  1   1   2\n", "[13CH2]C=C");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(verdict(&folder)["passed"], true);
}

/// Marks at random places: which count, which agree with a conformer, and in which order its atoms are encoded. More with
/// DRIFT_STEREO_CASES.
#[test]
#[cfg_attr(not(has_rdkit), ignore = "needs RDKit")]
fn random_marks_are_read_as_rdkit_reads_them() {
    let folder = Folder::new();
    let count = std::env::var("DRIFT_STEREO_CASES").unwrap_or_else(|_| "150".to_owned());
    let by_rdkit = |arguments: &[&str]| python("python/stereo_marks.py", &folder.path(), arguments);
    eprintln!("{}", by_rdkit(&["make", "made", "--count", &count, "--seed", "5"]));
    let ran = folder.drift(&["encode", "made/cases.sdf", "-o", "made/encoded.jsonl"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = folder.drift(&[
        "audit",
        "made/texts.jsonl",
        "--dialect",
        "fixed",
        "--verdicts",
        "made/verdicts.jsonl",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let found = by_rdkit(&["check", "made"]);
    eprintln!("{found}");
    assert!(!found.contains("differ"), "{found}");
}
