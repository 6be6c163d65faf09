//! `drift encode` of every format that has atoms: the same molecule gives the same text.

use std::path::{Path, PathBuf};

use drift::chem::Molecule;
use drift::text::skeleton;
use serde_json::Value;

use crate::encode::{encoded, parsed, sdf};
use crate::support::{Folder, Ran, drift, rows, shared};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// The rows that `drift encode` makes of a file, and how it ran.
fn encode(file: &Path, more: &[&str]) -> (Vec<Value>, Ran) {
    let ran = drift(&[&["encode", file.to_str().unwrap(), "-o", "-"], more].concat());
    (rows(&ran.stdout), ran)
}

fn texts(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["embedded_smiles"].as_str().unwrap()).collect()
}

#[test]
fn both_layouts_of_geom() {
    let (folder, ran) = encode(&fixture("rdkit_folder.tar.gz"), &[]);
    assert!(ran.stderr.ends_with("6 conformers encoded, 1 skipped\n"), "{}", ran.stderr);
    let (set, ran) = encode(&fixture("test_set.pickle"), &[]);
    assert!(ran.stderr.ends_with("6 conformers encoded, 0 skipped\n"), "{}", ran.stderr);
    assert_eq!(texts(&folder), texts(&set));
    // Atom i of conformer k lies at (i, -k, i / 4).
    let second = "[O]<0.0000,-1.0000,0.0000>[C]<1.0000,-1.0000,0.2500>[C]<2.0000,-1.0000,0.5000>[N]<3.0000,-1.0000,0.7500>";
    assert!(texts(&set).contains(&second));
    // Nothing names them but their SMILES, so they are counted.
    let ids: Vec<_> = set.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["0", "1", "2", "3", "4", "5"]);
}

#[test]
fn molecules_by_name_and_without_smiles() {
    let named = fixture("named.pickle");
    let (_, ran) = encode(&named, &[]);
    assert_eq!(ran.code, Some(2));
    let reason = "['ethanal']['conformers'][0]['mol'], conformer 1: no SMILES: the file gives none";
    assert!(ran.stderr.contains(reason), "{}", ran.stderr);
    let folder = Folder::new();
    let names = folder.file("names.smi", "c1ccoc1 furan\nO=CC ethanal\n");
    let (rows, ran) = encode(&named, &["--smiles", names.to_str().unwrap()]);
    assert!(ran.stderr.ends_with("3 conformers encoded, 0 skipped\n"), "{}", ran.stderr);
    let ids: Vec<_> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["ethanal", "ethanal", "furan"]);
    assert!(texts(&rows)[0].starts_with("[O]<2.0000,0.0000,0.5000>=[C]<1.0000,"), "{rows:?}");
    let names = folder.file("names.smi", "c1ccoc1 furan\n");
    let (rows, ran) = encode(&named, &["--smiles", names.to_str().unwrap()]);
    let reason = "no SMILES: `ethanal` is not among the names";
    assert!(rows.len() == 1 && ran.stderr.contains(reason), "{}", ran.stderr);
    // Where text is not the point, the coordinates count all the same, and it is said.
    let mined = drift(&["mine", named.to_str().unwrap(), "--json"]).json();
    assert_eq!((&mined["conformers"], &mined["in_file_order"]), (&3.into(), &3.into()));
}

#[test]
fn every_binary_version_of_rdkit() {
    let mut versions = 0;
    for entry in std::fs::read_dir(fixture("pickles")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with("rdkit-") && name.ends_with(".pickle") {
            // Four molecules under one SMILES, of which the first is its molecule.
            let (rows, ran) = encode(&path, &[]);
            assert_eq!((rows.len(), &rows[0]["canonical_smiles"]), (1, &"CO".into()), "{name}");
            assert!(ran.stderr.contains("its atoms are C4H4O, those of the SMILES CH4O"), "{}", ran.stderr);
            versions += 1;
        }
    }
    assert_eq!(versions, 8);
}

/// Methanol: atomic numbers, symbols and positions.
const METHANOL: [(u8, &str, [f64; 3]); 6] = [
    (1, "H", [-0.7, 1.03, 0.0]),
    (8, "O", [1.05, -0.03, 0.0]),
    (6, "C", [-0.36, 0.0, 0.0]),
    (1, "H", [-0.75, -0.5, 0.9]),
    (1, "H", [-0.75, -0.5, -0.9]),
    (1, "H", [1.35, 0.87, 0.0]),
];
const METHANOL_TEXT: &str = "[C]<-0.3600,0.0000,0.0000>[O]<1.0500,-0.0300,0.0000>";

fn xyz(smiles: &str, edit: impl Fn(usize, [f64; 3]) -> [f64; 3]) -> String {
    let atoms = METHANOL.iter().enumerate().map(|(at, (_, symbol, place))| {
        let [x, y, z] = edit(at, *place);
        format!("{symbol} {x} {y} {z}\n")
    });
    format!("6\nsmiles={smiles} energy=-1.5\n{}", atoms.collect::<String>())
}

/// GEOM's msgpack of one conformer.
fn msgpack(smiles: &str) -> Vec<u8> {
    let text = |text: &str| [&[0xa0 | text.len() as u8], text.as_bytes()].concat();
    let mut out =
        [vec![0x81], text(smiles), vec![0x81], text("conformers"), vec![0x91, 0x81], text("xyz")].concat();
    out.push(0x90 | METHANOL.len() as u8);
    for (number, _, place) in METHANOL {
        out.push(0x94);
        for value in [f64::from(number), place[0], place[1], place[2]] {
            out.push(0xcb);
            out.extend(value.to_be_bytes());
        }
    }
    out
}

#[test]
fn rows_of_text_keep_their_names() {
    let folder = Folder::new();
    let block = |x: &str| format!("[C]<{x},0.0000,0.0000>");
    let csv = format!("name,enriched_text\nfirst,\"{}\"\n,\"{}\"\n", block("0.1000"), block("0.2000"));
    let rows = [
        serde_json::json!({"name": "n", "id": 7, "text": block("0.3000")}),
        serde_json::json!({"name": "fourth", "text": block("0.3000")}),
        serde_json::json!({"text": block("0.4000")}),
    ];
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    let numbered = format!("{}\n", block("0.5000"));
    for (name, content, ids) in [
        ("a.csv", csv, &["first", "1"][..]),
        ("b.jsonl", lines, &["7", "fourth", "2"]),
        ("c.txt", numbered, &["0"]),
    ] {
        let file = folder.file(name, content);
        for drop in [&[][..], &["--drop", "coincident-atoms"]] {
            let (rows, _) = encode(&file, drop);
            let found: Vec<&str> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
            assert_eq!(found, ids, "{name} {drop:?}");
        }
    }
}

#[test]
fn bonds_are_perceived_where_a_file_has_none() {
    let folder = Folder::new();
    let (rows, _) = encode(&folder.file("m.xyz", xyz("CO", |_, place| place)), &[]);
    assert_eq!(texts(&rows), [METHANOL_TEXT]);
    let (rows, _) = encode(&folder.file("m.msgpack", msgpack("CO")), &[]);
    assert_eq!((texts(&rows), &rows[0]["id"]), (vec![METHANOL_TEXT], &"0".into()));
    // Farther apart than a bond, a hydrogen at the other atom, two atoms at one place, another molecule.
    let moved = |which: usize, to: [f64; 3]| move |at, place| if at == which { to } else { place };
    for (content, reason) in [
        (xyz("CO", moved(5, [9.0, 0.0, 0.0])), "its atoms differ from the SMILES"),
        (xyz("CO", moved(0, [1.35, -0.9, 0.0])), "its atoms differ from the SMILES"),
        (xyz("CO", moved(0, [1.05, -0.03, 0.00001])), "atoms 1 and 2 have the same position"),
        (xyz("C=O", |_, place| place), "its atoms are CH4O, those of the SMILES CH2O"),
        (xyz("", |_, place| place), "no SMILES: the file gives none"),
    ] {
        let file = folder.file("bad.xyz", content);
        let (_, ran) = encode(&file, &[]);
        assert!(ran.code == Some(2) && ran.stderr.contains(reason), "{reason}: {}", ran.stderr);
        let mined = drift(&["mine", file.to_str().unwrap(), "--json"]).json();
        assert_eq!((&mined["conformers"], &mined["in_file_order"]), (&1.into(), &1.into()), "{reason}");
    }
}

#[test]
fn v3000_and_v2000_give_the_same() {
    let atoms = [("N", [1.4, 0.0, 0.5]), ("C", [0.0; 3]), ("C", [-0.9, 1.2, -0.3]), ("O", [-1.0, -1.1, 0.2])];
    let table = [[1, 2, 1], [2, 3, 1], [2, 4, 1]];
    let listed = "M  CHG  2   1   1   4  -1\nM  ISO  1   3  13\n";
    let items = [("smiles", "[13CH3]C([NH3+])[O-]")];
    let v2000 = sdf("x", &atoms, &table, listed, &items);
    // Indices of the atoms need not be their places.
    let v3000 = "x\n  drift             3D\n\n  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\nM  V30 COUNTS 4 3 0 0 0\n\
        M  V30 BEGIN ATOM\nM  V30 40 N 1.4000 0.0000 0.5000 0 CHG=1\nM  V30 7 C 0.0000 0.0000 0.0000 0\n\
        M  V30 2 C -0.9000 1.2000 -0.3000 0 MASS=13\nM  V30 1 O -1.0000 -1.1000 -\nM  V30 0.2000 0 CHG=-1\nM  V30 END ATOM\n\
        M  V30 BEGIN BOND\nM  V30 1 1 40 7 CFG=1\nM  V30 2 1 7 2\nM  V30 3 1 7 1\nM  V30 END BOND\nM  V30 END CTAB\nM  END\n\
        > <smiles>\n[13CH3]C([NH3+])[O-]\n\n$$$$\n";
    let (from_v2000, ran) = encoded(&v2000, &[]);
    assert_eq!(from_v2000.len(), 1, "{}", ran.stderr);
    let (from_v3000, ran) = encoded(v3000, &[]);
    assert_eq!(from_v3000, from_v2000, "{}", ran.stderr);
    let (skeleton, places) = parsed(&from_v2000[0]);
    assert_eq!(skeleton, "[13CH3]<>[C]<>([NH3+]<>)[O-]<>");
    assert_eq!(places, [atoms[2].1, atoms[1].1, atoms[0].1, atoms[3].1]);
}

#[test]
fn a_large_molecule_of_high_symmetry() {
    fn branch(depth: usize) -> String {
        if depth == 0 { "CC".to_owned() } else { format!("[Si]({0})({0}){0}", branch(depth - 1)) }
    }
    let smiles = format!("[Si]({0})({0})({0}){0}", branch(3));
    let written = skeleton::from_smiles(&smiles).unwrap();
    let symbols: Vec<&str> = skeleton::atoms(&written).collect();
    let count = symbols.len();
    assert_eq!(count, 269);
    // In the file the atoms come in reverse.
    let atoms: Vec<(&str, [f64; 3])> = symbols
        .iter()
        .rev()
        .zip(0u32..)
        .map(|(symbol, at)| (symbol.trim_matches(['[', ']']), [f64::from(at), f64::from(at * at % 97), 0.5]))
        .collect();
    let table: Vec<[usize; 3]> = Molecule::of_smiles(&smiles)
        .unwrap()
        .pairs()
        .into_iter()
        .map(|[a, b]| [count - a, count - b, 1])
        .collect();
    let content = sdf("dendrimer", &atoms, &table, "", &[("smiles", &smiles)]);
    let (rows, ran) = encoded(&content, &[]);
    assert_eq!(rows.len(), 1, "{}", ran.stderr);
    let (skeleton, places) = parsed(&rows[0]);
    assert_eq!(skeleton, written);
    // Each atom once, bonded atoms bonded.
    let order: Vec<usize> =
        places.iter().map(|place| atoms.iter().position(|(_, known)| known == place).unwrap()).collect();
    let known: Vec<[usize; 2]> = table.iter().map(|[a, b, _]| [*a.min(b) - 1, *a.max(b) - 1]).collect();
    for [a, b] in Molecule::of_smiles(&smiles).unwrap().pairs() {
        let (a, b) = (order[a], order[b]);
        assert!(known.contains(&[a.min(b), a.max(b)]));
    }
    assert_eq!(encoded(&content, &[]).0, rows);
}

#[test]
#[cfg_attr(not(has_shared), ignore = "needs ../shared or DRIFT_SHARED")]
fn a_thousand_conformers_by_name_have_the_text_that_users_train_on() {
    let geom = shared().join("geom");
    let names = geom.join("xtb_moses_aq.jsonl.gz");
    let (ours, ran) = encode(&geom.join("xtb_moses_aq.sdf.gz"), &["--smiles", names.to_str().unwrap()]);
    assert!(ran.stderr.ends_with("1,000 conformers encoded, 0 skipped\n"), "{}", ran.stderr);
    let mut bytes = Vec::new();
    let job = drift::job::Job::default();
    std::io::Read::read_to_end(&mut drift::io::open(&names, &job).reader, &mut bytes).unwrap();
    let theirs = rows(&bytes);
    assert_eq!((ours.len(), theirs.len()), (1_000, 1_000));
    let (mut skeletons, mut outright) = (0, 0);
    for (own, row) in ours.iter().zip(&theirs) {
        assert_eq!(own["id"], row["id"]);
        let ((own_skeleton, own), (skeleton, points)) = (parsed(own), parsed(row));
        skeletons += usize::from(own_skeleton == skeleton);
        // Their file is in another frame: distances are what can be compared.
        let far = |p: &[[f64; 3]], a: usize, b: usize| {
            (0..3).map(|axis| (p[a][axis] - p[b][axis]).powi(2)).sum::<f64>().sqrt()
        };
        let near = |a, b| (far(&own, a, b) - far(&points, a, b)).abs() <= 3e-4;
        outright += usize::from((0..own.len()).all(|a| (0..a).all(|b| near(a, b))));
    }
    eprintln!("1,000 conformers: {skeletons} skeletons, {outright} with the same distances outright");
    assert_eq!(skeletons, 1_000);
    // The others differ by a symmetry of the graph.
    assert!(outright >= 990, "{outright}");
}
