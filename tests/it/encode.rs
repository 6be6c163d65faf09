//! `drift encode`: conformers of files as the text that models are trained on.

use std::collections::BTreeMap;

use drift::chem::Molecule;
use drift::encoding::Reading;
use drift::text::{parse, skeleton};
use serde_json::Value;

use crate::support::{Folder, Ran, drift, rows, shared};

/// An SDF molecule of V2000: atoms with what follows their symbol, bonds, and lines before `M  END`.
pub(crate) fn sdf(
    name: &str,
    atoms: &[(&str, [f64; 3])],
    bonds: &[[usize; 3]],
    more: &str,
    items: &[(&str, &str)],
) -> String {
    let mut out = format!(
        "{name}\n  drift             3D\n\n{:3}{:3}  0  0  0  0  0  0  0  0999 V2000\n",
        atoms.len(),
        bonds.len()
    );
    for (symbol, [x, y, z]) in atoms {
        out += &format!("{x:10.4}{y:10.4}{z:10.4} {symbol:<3} 0  0  0  0  0  0  0  0  0  0  0  0\n");
    }
    for [a, b, order] in bonds {
        out += &format!("{a:3}{b:3}{order:3}  0\n");
    }
    out += &format!("{more}M  END\n");
    for (item, value) in items {
        out += &format!(">  <{item}>\n{value}\n\n");
    }
    out + "$$$$\n"
}

/// A stereocentre: F, Cl, Br and I around carbon. From F the others are seen counterclockwise.
fn centre(name: &str, smiles: &str) -> String {
    let places = [[0.0, 0.0, 0.0], [0.0, 0.0, 1.4], [1.6, 0.0, -0.5], [-0.8, 1.6, -0.5], [-0.9, -1.7, -0.5]];
    let atoms: Vec<(&str, [f64; 3])> = ["C", "F", "Cl", "Br", "I"].into_iter().zip(places).collect();
    sdf(name, &atoms, &[[1, 2, 1], [1, 3, 1], [1, 4, 1], [1, 5, 1]], "", &[("smiles", smiles)])
}

/// What `drift encode` makes of an SDF: the rows, and what it says on stderr.
pub(crate) fn encoded(content: &str, more: &[&str]) -> (Vec<Value>, Ran) {
    let folder = Folder::new();
    folder.file("in.sdf", content);
    let ran = folder.drift(&[&["encode", "in.sdf", "-o", "out.jsonl"], more].concat());
    let made = if ran.code == Some(0) { rows(&folder.read("out.jsonl")) } else { Vec::new() };
    if ran.code != Some(0) {
        assert!(!folder.listing().keys().any(|path| path.ends_with("out.jsonl")), "{}", ran.stderr);
    }
    (made, ran)
}

/// Blocks in the order of the text, and the text without them.
pub(crate) fn parsed(row: &Value) -> (String, Vec<[f64; 3]>) {
    let enriched = parse(row["embedded_smiles"].as_str().unwrap(), Reading::default()).unwrap();
    let points = enriched.coordinates.iter().map(|block| block.map(|value| f64::from(value) / 1e4)).collect();
    (enriched.skeleton, points)
}

/// Whether two conformers of a skeleton have the same coordinates, 10⁻⁴ Å aside, outright, and in an order of atoms that keeps bonds and
/// symbols.
fn same_places(skeleton: &str, ours: &[[f64; 3]], theirs: &[[f64; 3]]) -> (bool, bool) {
    let near = |a: &[f64; 3], b: &[f64; 3]| (0..3).all(|axis| (a[axis] - b[axis]).abs() < 1.0001e-4);
    let order: Option<Vec<usize>> = ours.iter().map(|a| theirs.iter().position(|b| near(a, b))).collect();
    let Some(order) = order else { return (false, false) };
    let symbols: Vec<&str> = skeleton::atoms(skeleton).collect();
    let bonded = Molecule::of_smiles(&skeleton::smiles(skeleton)).unwrap().pairs();
    let keeps_symbols = order.iter().enumerate().all(|(at, other)| symbols[at] == symbols[*other]);
    let keeps_bonds = bonded.iter().all(|[a, b]| {
        let moved = [order[*a].min(order[*b]), order[*a].max(order[*b])];
        bonded.contains(&moved)
    });
    (order.iter().enumerate().all(|(at, other)| at == *other), keeps_symbols && keeps_bonds)
}

/// Compares rows with those of a JSONL file of the same conformers, by id: how many skeletons are equal, how many have the same
/// coordinates outright, and how many up to a symmetry.
fn compared(ours: &[Value], theirs: &[Value]) -> [usize; 3] {
    let by_id: BTreeMap<&str, &Value> = ours.iter().map(|row| (row["id"].as_str().unwrap(), row)).collect();
    let mut counts = [0; 3];
    for row in theirs {
        let Some(own) = by_id.get(row["id"].as_str().unwrap()) else { continue };
        let ((own_skeleton, own_points), (skeleton, points)) = (parsed(own), parsed(row));
        if own_skeleton == skeleton {
            let (outright, symmetric) = same_places(&skeleton, &own_points, &points);
            let found = [true, outright, symmetric];
            counts.iter_mut().zip(found).for_each(|(count, found)| *count += usize::from(found));
        }
    }
    counts
}

#[test]
#[cfg_attr(not(has_shared), ignore = "needs ../shared or DRIFT_SHARED")]
fn real_conformers_have_the_text_that_users_train_on() {
    let geom = shared().join("geom");
    let folder = Folder::new();
    let output = folder.path().join("out.jsonl");
    let ran = drift(&[
        "encode",
        geom.join("geom_conformers.sdf").to_str().unwrap(),
        "-o",
        output.to_str().unwrap(),
    ]);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), "13 conformers encoded, 0 skipped\n"));
    let theirs = rows(&std::fs::read(geom.join("geom_conformers.jsonl")).unwrap());
    let [skeletons, outright, symmetric] = compared(&rows(&folder.read("out.jsonl")), &theirs);
    eprintln!(
        "13 conformers: {skeletons} skeletons, {outright} equal outright, {symmetric} up to a symmetry"
    );
    assert_eq!((skeletons, symmetric), (13, 13));
}

#[test]
fn stereo_is_that_of_the_coordinates() {
    let (rows, ran) = encoded(&centre("x", "F[C@](Cl)(Br)I"), &[]);
    assert_eq!((rows.len(), &*ran.stderr), (1, "1 conformer encoded, 0 skipped\n"));
    let fields = ["id", "canonical_smiles", "embedded_smiles", "embedded_smiles_stripped"];
    assert_eq!(rows[0].as_object().unwrap().keys().collect::<Vec<_>>(), fields);
    assert_eq!(
        rows[0]["embedded_smiles_stripped"],
        "[F]<0,0,1.4>[C@]<0,0,0>([Cl]<1.6,0,-0.5>)([Br]<-0.8,1.6,-0.5>)[I]<-0.9,-1.7,-0.5>"
    );
    assert_eq!((&rows[0]["id"], &rows[0]["canonical_smiles"]), (&"x".into(), &"F[C@](Cl)(Br)I".into()));
    for (smiles, reason) in [
        ("F[C@@](Cl)(Br)I", "its stereo differs from the SMILES: stereocentre 2"),
        ("FC(Cl)(Cl)I", "its atoms are CBrClFI, those of the SMILES CCl2FI"),
        ("FC(Cl)(Br)[I+]", "its atoms differ from the SMILES"),
        ("FC(Cl)BrI", "is not a SMILES"),
    ] {
        let (_, ran) = encoded(&centre("x", smiles), &[]);
        assert_eq!(ran.code, Some(2));
        let expected = "in.sdf: no conformer could be read: 1 record skipped, first: molecule 1 (";
        assert!(ran.stderr.contains(expected) && ran.stderr.contains(reason), "{smiles}: {}", ran.stderr);
        // What is skipped here is a chain of bare atoms for statistics, and said to be.
        let folder = Folder::new();
        folder.file("in.sdf", centre("x", smiles));
        let mined = folder.drift(&["mine", "in.sdf"]);
        assert!(mined.code == Some(0) && mined.stderr.contains(reason), "{}", mined.stderr);
        assert!(mined.stderr.contains("note: 1 conformer read as chains of bare atoms"), "{}", mined.stderr);
    }
}

#[test]
fn stereo_that_a_smiles_leaves_open_is_said() {
    let both = centre("x", "FC(Cl)(Br)I") + &centre("y", "F[C@](Cl)(Br)I");
    let (rows, ran) = encoded(&both, &[]);
    assert_eq!(rows.len(), 2);
    assert!(
        ran.stderr.contains("note: 1 conformer with stereo that the SMILES leaves open"),
        "{}",
        ran.stderr
    );
    let (rows, ran) = encoded(&both, &["--open-stereo", "skip"]);
    assert_eq!(rows[0]["id"], "y");
    assert!(ran.stderr.contains("the SMILES leaves stereo open: stereocentre 2"), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("1 conformer encoded, 1 skipped\n"), "{}", ran.stderr);
}

/// Conformers with a SMILES that is theirs, and what is special about them.
#[test]
fn hydrogens_charges_isotopes_radicals_salts_and_metals() {
    let line = |symbols: &[&'static str]| -> Vec<(&'static str, [f64; 3])> {
        symbols
            .iter()
            .enumerate()
            .map(|(at, symbol)| (*symbol, [1.4 * at as f64, 0.3 * (at * at) as f64, 0.0]))
            .collect()
    };
    let cases = [
        ("hydrogens missing", "CO", line(&["O", "C"]), vec![[1, 2, 1]], ""),
        (
            "hydrogens explicit",
            "CO",
            line(&["H", "O", "C", "H", "H", "H"]),
            vec![[1, 2, 1], [2, 3, 1], [3, 4, 1], [3, 5, 1], [3, 6, 1]],
            "",
        ),
        ("some hydrogens explicit", "CO", line(&["H", "O", "C"]), vec![[1, 2, 1], [2, 3, 1]], ""),
        ("a charge", "C[NH3+]", line(&["N", "C"]), vec![[1, 2, 1]], "M  CHG  1   1   1\n"),
        ("an isotope", "[13CH3]O", line(&["O", "C"]), vec![[1, 2, 1]], "M  ISO  1   2  13\n"),
        ("deuterium", "[2H]CO", line(&["O", "C", "D"]), vec![[1, 2, 1], [2, 3, 1]], ""),
        (
            "a radical",
            "[13CH2]O",
            line(&["O", "C"]),
            vec![[1, 2, 1]],
            "M  RAD  1   2   2\nM  ISO  1   2  13\n",
        ),
        ("a salt", "C[O-].[Na+]", line(&["Na", "O", "C"]), vec![[2, 3, 1]], "M  CHG  2   1   1   2  -1\n"),
        ("a metal", "C[Hg]C", line(&["Hg", "C", "C"]), vec![[1, 2, 1], [1, 3, 1]], ""),
        (
            "a nitro group",
            "C[N+](=O)[O-]",
            line(&["O", "N", "O", "C"]),
            vec![[1, 2, 2], [2, 3, 2], [2, 4, 1]],
            "",
        ),
        (
            "a Kekulé structure",
            "c1ccncc1",
            line(&["C", "C", "N", "C", "C", "C"]),
            vec![[1, 2, 1], [2, 3, 2], [3, 4, 1], [4, 5, 2], [5, 6, 1], [6, 1, 2]],
            "",
        ),
        (
            "aromatic bonds",
            "c1ccncc1",
            line(&["C", "C", "N", "C", "C", "C"]),
            vec![[1, 2, 4], [2, 3, 4], [3, 4, 4], [4, 5, 4], [5, 6, 4], [6, 1, 4]],
            "",
        ),
    ];
    for (what, smiles, atoms, bonds, more) in cases {
        let (rows, ran) = encoded(&sdf("x", &atoms, &bonds, more, &[("canonical_smiles", smiles)]), &[]);
        assert_eq!(rows.len(), 1, "{what}: {}", ran.stderr);
        assert_eq!(rows[0]["canonical_smiles"], smiles, "{what}");
        let written = skeleton::from_smiles(smiles).unwrap();
        assert_eq!(parsed(&rows[0]).0, written, "{what}");
    }
    for (what, smiles, more, reason) in [
        ("a charge that the file has not", "C[NH3+]", "", "its atoms are CH5N, those of the SMILES CH6N"),
        ("an isotope that the file has not", "[13CH3]N", "", "[13CH3] is missing, [CH3] is over"),
        (
            "a radical that the SMILES has not",
            "CN",
            "M  RAD  1   2   2\n",
            "its atoms are CH4N, those of the SMILES CH5N",
        ),
    ] {
        let (_, ran) = encoded(&sdf("x", &line(&["N", "C"]), &[[1, 2, 1]], more, &[("smiles", smiles)]), &[]);
        assert!(ran.code == Some(2) && ran.stderr.contains(reason), "{what}: {}", ran.stderr);
    }
    let one_place = sdf("x", &[("C", [0.0; 3]), ("O", [0.0; 3])], &[[1, 2, 1]], "", &[("smiles", "CO")]);
    assert!(encoded(&one_place, &[]).1.stderr.contains("atoms 1 and 2 have the same position"));
}

#[test]
fn the_smiles_comes_from_names_then_from_a_property() {
    let molecule = sdf(
        "m1",
        &[("C", [0.0; 3]), ("O", [1.4, 0.0, 0.0])],
        &[[1, 2, 1]],
        "",
        &[("mine", "OC"), ("smiles", "CO")],
    );
    // What RDKit would write otherwise is not called canonical.
    let smiles = |more: &[&str]| {
        let row = encoded(&molecule, more).0.swap_remove(0);
        assert!(row.get("canonical_smiles").is_none() || row.get("smiles").is_none());
        row.get("canonical_smiles").or(row.get("smiles")).unwrap().as_str().unwrap().to_owned()
    };
    assert_eq!(smiles(&[]), "CO");
    assert_eq!(smiles(&["--property", "mine"]), "OC");
    let folder = Folder::new();
    for (name, content) in [
        ("names.smi", "CO other\n[CH3][OH] m1\n"),
        ("names.csv", "id,smiles\nother,CO\nm1,[CH3][OH]\n"),
        ("names.jsonl", "{\"id\": \"m1\", \"canonical_smiles\": \"[CH3][OH]\"}\n"),
    ] {
        let names = folder.file(name, content);
        assert_eq!(
            smiles(&["--smiles", names.to_str().unwrap(), "--property", "mine"]),
            "[CH3][OH]",
            "{name}"
        );
    }
    let (_, ran) = encoded(&molecule, &["--property", "absent"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("no SMILES: no data item `absent`"), "{}", ran.stderr);
}

#[test]
fn output_is_all_or_nothing_and_never_an_input() {
    let folder = Folder::new();
    folder.file("in.sdf", centre("x", "F[C@](Cl)(Br)I"));
    let printed = folder.drift(&["encode", "in.sdf", "-o", "-"]);
    folder.drift(&["encode", "in.sdf", "-o", "out.jsonl"]);
    assert_eq!(printed.stdout, folder.read("out.jsonl"));
    let report = folder.drift(&["encode", "in.sdf", "-o", "again.jsonl", "--json"]).good().json();
    assert_eq!((&report["conformers"], &report["skipped"]), (&1.into(), &0.into()));
    for arguments in [["in.sdf", "-o", "in.sdf"], ["in.sdf", "-o", "missing/out.jsonl"]] {
        let ran = folder.drift(&[&["encode"], &arguments[..]].concat());
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    }
    // What was encoded is read back as what it is.
    let mined = folder.drift(&["mine", "out.jsonl", "--json"]).good().json();
    assert_eq!((&mined["conformers"], &mined["in_file_order"]), (&1.into(), &0.into()));
}
