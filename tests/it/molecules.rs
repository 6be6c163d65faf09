//! Molecules that readers and matchers go wrong on: conjugated rings, isomers, numbered hydrogens, metals, doubtful distances, symmetry. Made by
//! `tests/python/molecules.py` with a seed, RDKit as judge.

use std::collections::BTreeMap;

use drift::audit::geometry::{Conformation, Topology};
use drift::chem::{Molecule, SameGraph, same_graph};
use drift::text::skeleton::from_smiles;
use serde::Deserialize;
use serde_json::Value;

use crate::encode::sdf;
use crate::support::{Folder, python, rows, sized};

/// The seed of what is made.
const SEED: &str = "3";

/// What a sub-command of the script prints.
#[track_caller]
fn by_rdkit(folder: &Folder, arguments: &[&str]) -> String {
    python("python/molecules.py", &folder.path(), arguments)
}

/// Makes molecules of a kind: what is expected of each by its name.
fn made(folder: &Folder, kind: &str) -> BTreeMap<String, String> {
    serde_json::from_str(&by_rdkit(folder, &[kind, "made", SEED])).unwrap()
}

/// Encodes a file, and has RDKit look at the texts: the rows by name.
#[track_caller]
fn encoded(folder: &Folder, input: &str) -> BTreeMap<String, Value> {
    let ran = folder.drift(&["encode", input, "-o", "out.jsonl", "--json"]);
    if ran.code == Some(2) {
        assert!(ran.stderr.contains("no conformer could be read"), "{}", ran.stderr);
        return BTreeMap::new();
    }
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(by_rdkit(folder, &["check", "out.jsonl"]), "[]", "{input}");
    // Of an XYZ frame the whole comment is the name.
    let name = |row: &Value| row["id"].as_str().unwrap().rsplit("id=").next().unwrap().to_owned();
    rows(&folder.read("out.jsonl")).into_iter().map(|row| (name(&row), row)).collect()
}

#[test]
#[cfg_attr(not(has_rdkit), ignore = "needs RDKit")]
fn double_bonds_of_conjugated_rings_stay_where_they_are() {
    let folder = Folder::new();
    let expected = made(&folder, "rings");
    assert!(expected.len() >= 40);
    for input in ["made.sdf", "made.xyz"] {
        let found = encoded(&folder, input);
        assert!(expected.keys().eq(found.keys()), "{input}: {:?} of {}", found.keys(), expected.len());
    }
}

#[test]
#[cfg_attr(not(has_rdkit), ignore = "needs RDKit")]
fn a_bond_shift_isomer_is_another_molecule() {
    let folder = Folder::new();
    assert!(made(&folder, "named").len() >= 20);
    assert_eq!(encoded(&folder, "made.sdf"), BTreeMap::new());
}

#[test]
#[cfg_attr(not(has_rdkit), ignore = "needs RDKit")]
fn hydrogens_and_numbers_of_a_smiles_are_left_out() {
    let folder = Folder::new();
    let expected = made(&folder, "mapped");
    let found = encoded(&folder, "made.sdf");
    assert!(expected.len() >= 20 && expected.keys().eq(found.keys()), "{:?}", found.keys());
    for row in found.values() {
        let text = row["embedded_smiles"].as_str().unwrap();
        assert!(!text.contains(':') && !text.contains("[H]"), "{text}");
    }
}

#[test]
#[cfg_attr(not(has_rdkit), ignore = "needs RDKit")]
fn polyhedra_have_the_stereo_that_rdkit_sees() {
    let folder = Folder::new();
    let expected = made(&folder, "polyhedra");
    folder.drift(&["encode", "made.sdf", "-o", "out.jsonl"]).done();
    let rows = rows(&folder.read("out.jsonl"));
    let found: std::collections::BTreeSet<&str> =
        rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    let mut counts = [0; 2];
    for (name, verdict) in &expected {
        assert_eq!(found.contains(&**name), verdict == "same", "{name}");
        counts[usize::from(verdict == "same")] += 1;
    }
    assert!(counts.iter().all(|count| *count > 20), "{counts:?}");
}

#[test]
#[cfg_attr(not(has_rdkit), ignore = "needs RDKit")]
fn the_smiles_decides_where_a_distance_is_doubtful() {
    let folder = Folder::new();
    let expected = made(&folder, "doubtful");
    let ran = folder.drift(&["encode", "made.xyz", "-o", "out.jsonl"]);
    assert_eq!(rows(&folder.read("out.jsonl")).len(), expected.len(), "{}", ran.stderr);
}

#[test]
#[cfg_attr(not(has_rdkit), ignore = "needs RDKit")]
fn pickles_of_the_users_keep_key_and_sub_smiles() {
    let folder = Folder::new();
    let expected = made(&folder, "pickles");
    let all: usize = expected.values().map(|count| count.parse::<usize>().unwrap()).sum();
    let run = |input: &str| {
        let ran = folder.drift(&["encode", input, "-o", "out.jsonl", "--json"]).done();
        assert_eq!(by_rdkit(&folder, &["check", "out.jsonl"]), "[]", "{input}");
        (ran.json(), rows(&folder.read("out.jsonl")))
    };
    // Each conformer has the isomer that it is for its SMILES, and the key that pools them for its name.
    let (report, found) = run("made.pickle");
    assert_eq!((found.len(), &report["skipped"], &report["open_stereo"]), (all, &0.into(), &0.into()));
    for (key, count) in &expected {
        let of_key: Vec<&Value> = found.iter().filter(|row| row["id"].as_str() == Some(key)).collect();
        assert_eq!(of_key.len().to_string(), *count);
        let isomers: std::collections::BTreeSet<&str> =
            of_key.iter().map(|row| row["canonical_smiles"].as_str().unwrap()).collect();
        assert_eq!(isomers.len(), of_key.len() / 2, "{isomers:?}");
    }
    for input in ["made_plain.pkl", "made_shard.pkl"] {
        let (report, found) = run(input);
        assert_eq!((found.len(), &report["open_stereo"]), (all, &all.into()), "{input}");
    }
    // The same object three times is three conformers; an object of another class costs itself.
    let (report, found) = run("made_odd.pickle");
    assert_eq!((found.len(), &report["skipped"]), (3 + 4, &2.into()), "{report:#}");
    let reason = report["skipped_records"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("an object of __main__.Odd, which drift does not know"), "{reason}");
}

#[derive(Deserialize)]
struct Relabelled {
    smiles: String,
    a: Conformation,
    b: Conformation,
}

#[test]
#[cfg_attr(not(has_rdkit), ignore = "needs RDKit")]
fn a_conformer_in_another_order_of_equal_atoms_is_the_same() {
    let folder = Folder::new();
    let kinds = made(&folder, "relabelled").len();
    let text = String::from_utf8(folder.read("made.jsonl")).unwrap();
    let mut topologies: BTreeMap<String, Topology> = BTreeMap::new();
    let mut count = 0;
    for line in text.lines() {
        let Relabelled { smiles, a, b } = serde_json::from_str(line).unwrap();
        let topology = topologies
            .entry(smiles.clone())
            .or_insert_with(|| Topology::new(&from_smiles(&smiles).unwrap()).unwrap());
        let found = topology.least_rmsd(&a, &b).unwrap();
        assert!(found.rmsd < 1e-5 && found.is_exact, "{smiles}: {found:?}");
        count += 1;
    }
    assert_eq!(count, 40 * kinds);
}

/// A spelling of a ring system, from `tests/python/aromaticity.py`.
#[derive(Deserialize)]
struct RingSystem {
    smiles: String,
    /// The pairs of atoms whose bond RDKit finds aromatic.
    aromatic: Vec<[usize; 2]>,
    /// RDKit's canonical SMILES, in the first spelling of a system.
    canonical: Option<String>,
}

#[test]
#[cfg_attr(not(has_rdkit), ignore = "needs RDKit")]
fn aromatic_bonds_are_those_of_rdkit_in_every_spelling() {
    let count = sized("2000", "200");
    let made = python("python/aromaticity.py", &Folder::new().path(), &["--count", count]);
    let (mut canonical, mut aromatic) = (String::new(), 0);
    for line in made.lines() {
        let system: RingSystem = serde_json::from_str(line).unwrap();
        let molecule = Molecule::of_smiles(&system.smiles).unwrap();
        let bonds = molecule.bonds.iter().zip(molecule.aromatic_bonds());
        let pair = |[a, b]: [usize; 2]| [a.min(b), a.max(b)];
        let mut found: Vec<[usize; 2]> =
            bonds.filter(|(_, is_aromatic)| *is_aromatic).map(|(bond, _)| pair(bond.atoms)).collect();
        found.sort_unstable();
        assert_eq!(found, system.aromatic, "{}", system.smiles);
        aromatic += usize::from(!found.is_empty());
        canonical = system.canonical.unwrap_or(canonical);
        let verdict = same_graph(&system.smiles, &canonical).unwrap();
        assert!(verdict != SameGraph::Different, "{} {canonical}", system.smiles);
    }
    assert!(aromatic > 150, "{aromatic}");
}

/// A carbon chain of three with a double bond to nitrogen, whose hydrogen lies on one side.
#[test]
fn the_hydrogen_of_an_imine_leaves_stereo_open() {
    let atoms = [
        ("C", [-2.5, 0.9, 0.0]),
        ("C", [-1.3, 0.1, 0.0]),
        ("C", [0.0, 0.7, 0.0]),
        ("C", [1.3, 0.0, 0.0]),
        ("N", [0.0, 2.0, 0.0]),
        ("H", [0.9, 2.5, 0.0]),
    ];
    let bonds = [[1, 2, 1], [2, 3, 1], [3, 4, 1], [3, 5, 2], [5, 6, 1]];
    let run = |smiles: &str| {
        let folder = Folder::new();
        folder.file("in.sdf", sdf("imine", &atoms, &bonds, "", &[("smiles", smiles)]));
        folder.drift(&["encode", "in.sdf", "-o", "out.jsonl", "--json"])
    };
    assert_eq!(run("CCC(C)=N").json()["open_stereo"], 1);
    // Of the two sides that a SMILES can say one is that of the coordinates.
    let codes = ["[H]/N=C(\\C)CC", "[H]/N=C(/C)CC"].map(|smiles| run(smiles).code);
    assert!(codes == [Some(0), Some(2)] || codes == [Some(2), Some(0)], "{codes:?}");
}

/// Methanol.
const METHANOL: &str = "C -0.36 0.0 0.0\nO 1.05 -0.03 0.0\nH -0.7 1.03 0.0\nH -0.75 -0.5 0.9\nH -0.75 -0.5 -0.9\nH 1.35 0.87 0.0\n";

/// The rows that `drift encode` makes of a file in a folder, and what it says.
fn encode_in(folder: &Folder, input: &str, more: &[&str]) -> (Vec<Value>, String) {
    let ran = folder.drift(&[&["encode", input, "-o", "-"], more].concat());
    (rows(&ran.stdout), ran.stderr)
}

#[test]
fn a_smiles_comes_as_people_write_it() {
    let folder = Folder::new();
    let frame = |comment: &str| format!("6\n{comment}\n{METHANOL}");
    folder.file("two.xyz", frame("-1.5 energy") + &frame("-1.4 energy"));
    // One SMILES for the whole file: as an option, alone in a file, by the name of the file.
    folder.file("one.smi", "\"CO\"\n");
    folder.file("by_file.smi", "CC other\nCO two\n");
    folder.file("by_name.csv", "CID,CanonicalSMILES\nother,CC\ntwo.xyz,CO\n");
    for smiles in ["CO", "one.smi", "by_file.smi", "by_name.csv"] {
        let (found, said) = encode_in(&folder, "two.xyz", &["--smiles", smiles]);
        assert_eq!(found.len(), 2, "{smiles}: {said}");
    }
    assert!(encode_in(&folder, "two.xyz", &[]).1.contains("no SMILES: the file gives none"));
    assert!(encode_in(&folder, "two.xyz", &["--smiles", "CC"]).1.contains("its atoms are CH4O"));
    // A comment that is a SMILES, and one that is another.
    folder.file("comment.xyz", frame("CO"));
    assert_eq!(encode_in(&folder, "comment.xyz", &[]).0.len(), 1);
    folder.file("comment.xyz", frame("C"));
    assert_eq!(encode_in(&folder, "comment.xyz", &[]).0.len(), 0);
    // Items.
    let atoms = [("C", [0.0; 3]), ("O", [1.4, 0.0, 0.0])];
    for (item, value) in [
        ("PUBCHEM_OPENEYE_ISO_SMILES", "CO"),
        ("PUBCHEM_SMILES", "CO"),
        ("smiles", "CO methanol"),
        ("smiles", "CO |$;;$|"),
        ("canonical_smiles", "\"CO\""),
        ("SMILES", "'CO'"),
        ("smiles", "[CH3:1][O:2][H:3]"),
    ] {
        folder.file("item.sdf", sdf("m", &atoms, &[[1, 2, 1]], "", &[(item, value)]));
        let (found, said) = encode_in(&folder, "item.sdf", &[]);
        assert_eq!(found.len(), 1, "{item} {value}: {said}");
        assert_eq!(found[0]["canonical_smiles"], "CO", "{item} {value}");
    }
    // Old writers say no version.
    let old = sdf("m", &atoms, &[[1, 2, 1]], "", &[("smiles", "CO")]).replace(" V2000", "");
    folder.file("old.sdf", old);
    assert_eq!(encode_in(&folder, "old.sdf", &[]).0.len(), 1);
}

#[test]
fn what_no_text_can_say_is_refused_and_arrows_are_left_out() {
    let folder = Folder::new();
    let atoms = [("C", [0.0; 3]), ("O", [1.4, 0.0, 0.0])];
    folder.file("radical.sdf", sdf("m", &atoms, &[[1, 2, 1]], "M  RAD  1   2   2\n", &[("smiles", "C[O]")]));
    let (found, said) = encode_in(&folder, "radical.sdf", &[]);
    assert!(found.is_empty() && said.contains("no text reads back as the SMILES: its radicals"), "{said}");
    // Zinc beside methylamine.
    let zinc = "8\nsmiles=C[NH2]->[Zn]\nC 0 0 0\nN 1.47 0 0\nZn 2.2 1.9 0\nH 1.8 -0.5 0.8\nH 1.8 -0.5 -0.8\nH -0.4 1 0\n\
                H -0.4 -0.5 0.9\nH -0.4 -0.5 -0.9\n";
    folder.file("zinc.xyz", zinc);
    let (found, said) = encode_in(&folder, "zinc.xyz", &[]);
    assert_eq!(found.len(), 1, "{said}");
    assert!(
        found[0]["embedded_smiles"].as_str().unwrap().starts_with("[C]<0.0000,0.0000,0.0000>[NH2]<"),
        "{found:?}"
    );
}

/// A mark that is not compared is counted, in `encode` and in `audit`, and is never right.
#[test]
fn stereo_that_is_not_checked_is_counted() {
    let folder = Folder::new();
    let atoms = [
        ("F", [-2.5, 0.8, 0.0]),
        ("C", [-1.3, 0.0, 0.0]),
        ("Cl", [-1.4, -1.7, 0.0]),
        ("C", [0.0, 0.0, 0.0]),
        ("C", [1.3, 0.0, 0.0]),
        ("F", [2.1, 0.0, 1.1]),
        ("Cl", [2.1, 0.0, -1.5]),
    ];
    let bonds = [[1, 2, 1], [2, 3, 1], [2, 4, 2], [4, 5, 2], [5, 6, 1], [5, 7, 1]];
    let smiles = "FC(Cl)=[C@AL1]=C(F)Cl";
    folder.file("allene.sdf", sdf("a", &atoms, &bonds, "", &[("smiles", smiles)]));
    let ran = folder.drift(&["encode", "allene.sdf", "-o", "allene.jsonl", "--json"]);
    assert_eq!((&ran.json()["stereo_unchecked"], &ran.json()["conformers"]), (&1.into(), &1.into()));
    let row = rows(&folder.read("allene.jsonl")).swap_remove(0);
    let text = format!("[CONFORMER]{}[/CONFORMER]", row["embedded_smiles"].as_str().unwrap());
    folder.file("texts.jsonl", serde_json::json!({"smiles": smiles, "text": text}).to_string() + "\n");
    let report = folder.drift(&["audit", "texts.jsonl", "--dialect", "fixed", "--json"]).json();
    let chemistry = &report["total"]["chemistry"];
    assert_eq!(
        (&chemistry["stereo_unchecked"], &chemistry["stereocentres"]),
        (&1.into(), &0.into()),
        "{chemistry:#}"
    );
    assert!(
        report["warnings"][0].as_str().unwrap().contains("1 stereo marks of the prompts are not checked")
    );
}

/// Cisplatin and an ether beside a metal: what its text leaves open, and that it can be read back.
#[test]
fn corners_without_a_mark_leave_stereo_open_and_ethers_beside_metals_have_texts() {
    let folder = Folder::new();
    let corners = [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [-2.3, 0.0, 0.0], [0.0, -2.3, 0.0]];
    let complex = |ligands: [&str; 4], smiles: &str| {
        let mut atoms = vec![("Pt", [0.0; 3])];
        atoms.extend(ligands.into_iter().zip(corners));
        let bonds: Vec<[usize; 3]> = (2..=5).map(|ligand| [1, ligand, 1]).collect();
        folder.file("pt.sdf", sdf("pt", &atoms, &bonds, "", &[("smiles", smiles)]));
        let ran = folder.drift(&["encode", "pt.sdf", "-o", "pt.jsonl", "--json"]);
        assert_eq!(ran.code, Some(0), "{smiles}: {}", ran.stderr);
        ran.json()["open_stereo"].clone()
    };
    assert_eq!(complex(["F", "F", "Cl", "Cl"], "F[Pt](F)(Cl)Cl"), 1);
    // Cis, as marked; and of one kind or three of one there is nothing to mark.
    assert_eq!(complex(["F", "F", "Cl", "Cl"], "F[Pt@SP1](F)(Cl)Cl"), 0);
    assert_eq!(complex(["F", "Cl", "Cl", "Cl"], "F[Pt](Cl)(Cl)Cl"), 0);
    let ether = "10\nsmiles=C[O](C)->[Zn]\nC -1.2 -0.7 0\nO 0 0.1 0\nC 1.2 -0.7 0\nZn 0 2.1 0\nH -1.2 -1.3 0.9\nH -1.2 -1.3 -0.9\n\
                 H -2.1 -0.1 0\nH 1.2 -1.3 0.9\nH 1.2 -1.3 -0.9\nH 2.1 -0.1 0\n";
    folder.file("ether.xyz", ether);
    let (found, said) = encode_in(&folder, "ether.xyz", &[]);
    assert_eq!(found.len(), 1, "{said}");
    assert!(
        found[0]["embedded_smiles"].as_str().unwrap().contains("[O]<0.0000,0.1000,0.0000>("),
        "{found:?}"
    );
}
