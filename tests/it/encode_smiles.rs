//! Where `drift encode` finds the SMILES of a molecule that comes as atoms, and what it says where it finds none.

use serde_json::Value;

use crate::encode::sdf;
use crate::support::{Folder, Ran, rows};

/// Methanol, with all hydrogens.
const METHANOL: [(&str, [f64; 3]); 6] = [
    ("C", [-0.36, 0.0, 0.0]),
    ("O", [1.05, -0.03, 0.0]),
    ("H", [-0.7, 1.03, 0.0]),
    ("H", [-0.75, -0.5, 0.9]),
    ("H", [-0.75, -0.5, -0.9]),
    ("H", [1.35, 0.87, 0.0]),
];

/// A frame of XYZ.
fn xyz(comment: &str, atoms: &[(&str, [f64; 3])]) -> String {
    let lines: String = atoms.iter().map(|(symbol, [x, y, z])| format!("{symbol} {x} {y} {z}\n")).collect();
    format!("{}\n{comment}\n{lines}", atoms.len())
}

/// Methanol's heavy atoms as SDF.
fn methanol(title: &str, items: &[(&str, &str)]) -> String {
    sdf(title, &[("C", [0.0, 0.0, 0.5]), ("O", [1.4, 0.0, 0.0])], &[[1, 2, 1]], "", items)
}

/// Encodes a file of this content.
fn encode(content: impl AsRef<[u8]>, more: &[&str]) -> (Vec<Value>, Ran) {
    let folder = Folder::new();
    folder.file("input", content);
    encode_in(&folder, more)
}

/// Encodes the file `input` of a folder.
fn encode_in(folder: &Folder, more: &[&str]) -> (Vec<Value>, Ran) {
    let ran = folder.drift(&[&["encode", "input", "-o", "-"], more].concat());
    (rows(&ran.stdout), ran)
}

#[track_caller]
fn smiles_of(content: impl AsRef<[u8]>, more: &[&str]) -> Vec<String> {
    let (rows, ran) = encode(content, more);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    rows.iter()
        .map(|row| row["canonical_smiles"].as_str().or(row["smiles"].as_str()).unwrap().to_owned())
        .collect()
}

#[test]
fn charges_of_single_ions_are_those_of_the_smiles() {
    for (comment, atoms) in [
        ("[Na+].[Cl-]", &[("Na", [0.0; 3]), ("Cl", [0.0, 0.0, 2.9])][..]),
        ("[K+].[Br-]", &[("K", [0.0; 3]), ("Br", [0.0, 5.0, 0.0])]),
        ("[Cl-]", &[("Cl", [0.0; 3])]),
        ("[Mg+2].[Cl-].[Cl-]", &[("Mg", [0.0; 3]), ("Cl", [0.0, 0.0, 2.4]), ("Cl", [0.0, 0.0, -6.0])]),
        ("[He]", &[("He", [0.0; 3])]),
    ] {
        assert_eq!(smiles_of(xyz(comment, atoms), &[]), [comment]);
    }
    // Charges cannot be compared, but elements are.
    let (_, ran) = encode(xyz("[Na+].[Br-]", &[("Na", [0.0; 3]), ("Cl", [0.0, 0.0, 2.9])]), &[]);
    assert!(ran.code == Some(2) && ran.stderr.contains("its atoms are ClNa"), "{}", ran.stderr);
}

#[test]
fn comments_and_titles_begin_with_a_smiles() {
    for text in ["CO", "CO methanol", "\"CO\"", "'CO' methanol", "CO |atomProp:0.a.b| methanol", "  CO\tx"] {
        assert_eq!(smiles_of(xyz(text, &METHANOL), &[]), ["CO"], "{text}");
        assert_eq!(smiles_of(methanol(text, &[]), &[]), ["CO"], "{text}");
    }
    // A longer text than a name may be.
    let long = format!("CO {}", "x".repeat(400));
    assert_eq!(smiles_of(xyz(&long, &METHANOL), &[]), ["CO"]);
    // A data item goes before the title, and a title that is no SMILES is a name.
    assert_eq!(smiles_of(methanol("CC", &[("smiles", "CO")]), &[]), ["CO"]);
    let (_, ran) = encode(methanol("methanol CO", &[]), &[]);
    assert!(ran.stderr.contains("no SMILES: the file gives none"), "{}", ran.stderr);
    let (_, ran) = encode(methanol("CC", &[]), &[]);
    assert!(ran.stderr.contains("its atoms are CH4O, those of the SMILES C2H6"), "{}", ran.stderr);
}

#[test]
fn heavy_atoms_without_bonds_are_said_to_lack_hydrogens() {
    let (_, ran) = encode(xyz("CO", &METHANOL[..2]), &[]);
    let reason = "its atoms are CO, those of the SMILES CH4O; the file has no hydrogens, and formats without bonds need all of them";
    assert!(ran.code == Some(2) && ran.stderr.contains(reason), "{}", ran.stderr);
}

#[test]
fn a_smiles_on_the_command_line_may_have_extensions() {
    let alanine = sdf(
        "5950",
        &[
            ("C", [-0.6713, -1.0165, -0.8386]),
            ("C", [-0.3371, 0.0963, 0.1574]),
            ("N", [-0.8122, 1.3851, -0.3470]),
            ("C", [1.1461, 0.1479, 0.3888]),
            ("O", [1.9144, 0.5967, -0.5045]),
            ("O", [1.6764, -0.3295, 1.5833]),
        ],
        &[[2, 1, 1], [2, 3, 1], [2, 4, 1], [4, 5, 2], [4, 6, 1]],
        "",
        &[],
    );
    for given in ["C[C@H](N)C(=O)O |&1:1|", "C[C@H](N)C(=O)O |a:1| alanine", "C[C@H](N)C(=O)O"] {
        assert_eq!(smiles_of(&alanine, &["--smiles", given]), ["C[C@H](N)C(=O)O"], "{given}");
    }
    // Not a SMILES with something else behind it, which could be a file's name.
    let (_, ran) = encode(&alanine, &["--smiles", "CO names.csv"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("CO names.csv: No such file"), "{}", ran.stderr);
}

#[test]
fn items_that_may_hold_the_smiles_are_named_with_the_option() {
    let text = methanol("5950", &[("energy", "-1.5"), ("isomeric_smiles", "CO")]);
    let (_, ran) = encode(&text, &[]);
    let remedy = "its item `isomeric_smiles` may be one: --property isomeric_smiles";
    // Two characters may be anything; the name of the item is not looked at.
    assert!(ran.code == Some(2) && !ran.stderr.contains(remedy), "{}", ran.stderr);
    let text = methanol("5950", &[("energy", "-1.5"), ("isomeric_smiles", "[CH3]O")]);
    let (_, ran) = encode(&text, &[]);
    assert!(ran.code == Some(2) && ran.stderr.contains(remedy), "{}", ran.stderr);
    assert_eq!(smiles_of(&text, &["--property", "isomeric_smiles"]), ["[CH3]O"]);
}

#[test]
fn tables_of_databases_are_read_or_their_columns_named() {
    let folder = Folder::new();
    let chembl =
        "\"ChEMBL ID\";\"Name\";\"Smiles\"\n\"CHEMBL14688\";\"\";\"CO\"\n\"CHEMBL1\";\"antibody\";\"\"\n";
    folder.file("chembl.csv", chembl);
    folder.file("qmugs.csv", "chembl_id,conf_id,smiles\nCHEMBL14688,conf_00,CO\nCHEMBL14688,conf_01,CO\n");
    folder.file("own.tsv", "Compound\tStructure\nm1\tCO\n");
    folder.file(
        "pubchem.csv",
        " cid,cmpdname,isosmiles,canonicalsmiles\n887,\"methanol, wood alcohol\",CO,CO\n",
    );
    let encode = |content: String, more: &[&str]| {
        folder.file("input", content);
        let (rows, ran) = encode_in(&folder, more);
        (rows.len(), ran.stderr)
    };
    for (content, more) in [
        (methanol("CHEMBL14688", &[]), &["--smiles", "chembl.csv"][..]),
        (methanol("", &[("CHEMBL_ID", "CHEMBL14688"), ("CONF_ID", "conf_00")]), &["--smiles", "qmugs.csv"]),
        (
            methanol("x", &[("CHEMBL_ID", "x"), ("CONF_ID", "conf_01")]),
            &["--smiles", "qmugs.csv", "--name-property", "CONF_ID", "--name-column", "conf_id"],
        ),
        (
            methanol("m1", &[]),
            &["--smiles", "own.tsv", "--name-column", "Compound", "--smiles-column", "structure"],
        ),
        (methanol("887", &[]), &["--smiles", "pubchem.csv"]),
    ] {
        let (count, told) = encode(content, more);
        assert_eq!(count, 1, "{more:?}: {told}");
    }
    for (content, more, reason) in [
        (
            methanol("5950", &[]),
            &["--smiles", "chembl.csv"][..],
            "no SMILES: `5950` is not among the names in column `ChEMBL ID` of chembl.csv; \
             --name-column chooses from `ChEMBL ID`, `Name`, `Smiles`",
        ),
        (
            methanol("", &[("CONF_ID", "conf_00")]),
            &["--smiles", "qmugs.csv"],
            "no SMILES: no name to look up in column `chembl_id` of qmugs.csv; \
             --name-column chooses from `chembl_id`, `conf_id`, `smiles`; --name-property chooses from its items `CONF_ID`",
        ),
        (
            methanol("m1", &[]),
            &["--smiles", "own.tsv"],
            "own.tsv: line 1: no column of SMILES; --name-column and --smiles-column choose from `Compound`, `Structure`",
        ),
        (
            methanol("m1", &[]),
            &["--smiles", "own.tsv", "--smiles-column", "Structure"],
            "own.tsv: line 1: a column of SMILES, but none of names; --name-column and --smiles-column choose from `Compound`, `Structure`",
        ),
        (
            methanol("m1", &[]),
            &["--smiles", "chembl.csv", "--name-property", "ID"],
            "no SMILES: no data item `ID` to look up in column `ChEMBL ID`",
        ),
    ] {
        let (count, told) = encode(content, more);
        assert!(count == 0 && told.contains(reason), "{more:?}: {told}");
    }
}

#[test]
fn text_in_utf16_is_read() {
    let utf16 = |text: &str| -> Vec<u8> {
        format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect()
    };
    assert_eq!(smiles_of(utf16(&xyz("CO", &METHANOL)), &[]), ["CO"]);
    assert_eq!(smiles_of(utf16(&methanol("x", &[("smiles", "CO")])), &[]), ["CO"]);
    let folder = Folder::new();
    folder.file("names.csv", utf16("name;smiles\r\nméthanol;CO\r\n"));
    folder.file("input", methanol("méthanol", &[]));
    let (rows, ran) = encode_in(&folder, &["--smiles", "names.csv"]);
    assert_eq!(rows.len(), 1, "{}", ran.stderr);
}

#[test]
fn texts_without_an_encoding_are_decimals_whatever_is_written() {
    let row = "{\"canonical_smiles\": \"CO\", \"embedded_smiles\": \"[C]<0.0000,0.5000,1.0000>[O]<1.4000,0.0000,0.0000>\"}\n";
    for (encoding, text) in [
        ("stripped-spaces", "[C]<0 0.5 1>[O]<1.4 0 0>"),
        ("fixed-2-spaces", "[C]<0.00 0.50 1.00>[O]<1.40 0.00 0.00>"),
        ("stripped", "[C]<0,0.5,1>[O]<1.4,0,0>"),
    ] {
        let (rows, ran) = encode(row, &["--encoding", encoding]);
        assert_eq!(ran.code, Some(0), "{encoding}: {}", ran.stderr);
        let texts = [&rows[0]["embedded_smiles"], &rows[0]["embedded_smiles_stripped"]];
        assert!(texts.contains(&&Value::from(text)), "{encoding}: {rows:?}");
    }
}

#[test]
fn bonds_of_order_zero_are_read_and_no_text_is_written() {
    let adduct = |smiles: &str| {
        let atoms = [("N", [0.0, 0.0, 0.0]), ("B", [1.6, 0.0, 0.3])];
        let more = "M  ZBO  1   1   0\nM  HYD  2   1   3   2   3\n";
        sdf("x", &atoms, &[[1, 2, 1]], more, &[("smiles", smiles)])
    };
    for (smiles, reason) in [
        ("NB", "its atoms are H6BN, those of the SMILES H4BN"),
        ("N.B", "its bonds differ from the SMILES"),
        ("N~B", "no text reads back as the SMILES: its bonds of order zero, `~`"),
    ] {
        let (_, ran) = encode(adduct(smiles), &[]);
        assert!(ran.code == Some(2) && ran.stderr.contains(reason), "{smiles}: {}", ran.stderr);
    }
    // Without the lines it is the molecule of another SMILES.
    let plain = adduct("NB").replace("M  ZBO  1   1   0\nM  HYD  2   1   3   2   3\n", "");
    assert_eq!(smiles_of(plain, &[]), ["NB"]);
}
