//! Statistics and comparisons of corpora of which a figure was wrong, or missing, without a word.

use serde_json::{Value, json};

use crate::support::Folder;

/// A row with a text, in which ethane lies at `x` and `x + 1.5` Å.
fn ethane(x: f64) -> String {
    let (a, b) = (x, x + 1.5);
    format!(
        "{{\"canonical_smiles\":\"CC\",\"embedded_smiles\":\"[C]<{a:.4},1.0000,1.0000>[C]<{b:.4},1.0000,1.0000>\"}}\n"
    )
}

/// The same in a file of molecules.
fn drawn(x: f64, length: f64) -> String {
    let atom = |x: f64| format!("{x:10.4}    1.0000    1.0000 C   0  0\n");
    format!(
        "\n\n\n  2  1  0  0  0  0  0  0  0  0999 V2000\n{}{}  1  2  1  0\nM  END\n$$$$\n",
        atom(x),
        atom(x + length)
    )
}

#[test]
fn atoms_beyond_the_range_of_bins_have_no_impossible_geometry() {
    let folder = Folder::new();
    folder.file("far.sdf", [drawn(4.0, 1.5), drawn(0.0, 1.5)].concat());
    let bins = "--encoding binned-v2:-3,3,0.104";
    let mined = folder.line(&format!("mine far.sdf --smiles-of CC {bins} --check --json")).done().json();
    let faults = &mined["faults"];
    assert_eq!((&faults["coincident_pairs"], &faults["short_bonds"]), (&json!(0), &json!(0)), "{faults}");
    assert_eq!((&mined["out_of_range"], &mined["out_of_range_conformers"]), (&json!(2), &json!(1)));
    let shown = folder.line(&format!("mine far.sdf --smiles-of CC {bins}")).done();
    assert!(shown.text().contains("Out of range: 2 coordinates of 1 conformer."), "{}", shown.text());
    let encoded = folder.line(&format!(
        "encode far.sdf --smiles CC {bins} --drop short-bond,coincident-atoms -o o.jsonl --json"
    ));
    assert_eq!(encoded.done().json()["conformers"], 2);
    // Within the range they are still found.
    folder.file("near.sdf", drawn(0.0, 0.5));
    let mined = folder.line(&format!("mine near.sdf --smiles-of CC {bins} --json")).done().json();
    assert_eq!(mined["faults"]["short_bonds"], 1);
}

#[test]
fn an_aromatic_ring_in_kekule_form_leaves_no_stereo_open() {
    let folder = Folder::new();
    let angle = |at: usize| (20.0 * at as f64).to_radians();
    let atom = |at: usize| {
        format!("{:10.4}{:10.4}    0.0000 C   0  0\n", 4.03 * angle(at).cos(), 4.03 * angle(at).sin())
    };
    let bond = |at: usize| format!("{:3}{:3}{:3}  0\n", at + 1, (at + 1) % 18 + 1, 2 - at % 2);
    let (atoms, bonds): (String, String) = ((0..18).map(atom).collect(), (0..18).map(bond).collect());
    folder.file(
        "annulene.sdf",
        format!("\n{:>22}\n\n 18 18  0  0  0  0  0  0  0  0999 V2000\n{atoms}{bonds}M  END\n$$$$\n", "3D"),
    );
    for smiles in ["c1ccccccccccccccccc1", "C1=CC=CC=CC=CC=CC=CC=CC=CC=C1"] {
        let line = format!("encode annulene.sdf --smiles {smiles} --open-stereo skip -o out.jsonl --json");
        assert_eq!(folder.line(&line).done().json()["conformers"], 1, "{smiles}");
    }
}

#[test]
fn quantiles_of_a_crystal_frame_are_exact_to_a_bin() {
    let folder = Folder::new();
    folder.file("crystal.jsonl", (0..100).map(|at| ethane(50.0 + f64::from(at))).collect::<String>());
    let axis = &folder.line("mine crystal.jsonl --html page.html --json").done().json()["axes"][0];
    let median = axis["summary"]["quantiles"]["p50"].as_f64().unwrap();
    assert!((median - 100.25).abs() < 0.6, "{median}");
    assert_eq!((&axis["histogram"]["above"], &axis["histogram"]["from_angstrom"]), (&json!(0), &json!(50.0)));
}

#[test]
fn texts_without_decimals_have_no_zeros_to_strip() {
    let folder = Folder::new();
    folder.file("two.sdf", [drawn(0.0, 1.5), drawn(1.0, 1.5)].concat());
    for options in ["--decimals 0", "--encoding integers:10,4", "--encoding binned-v2:-13,13,0.104"] {
        let line = format!("mine two.sdf --smiles-of CC {options}");
        let mined = folder.line(&format!("{line} --json --html page.html")).done().json();
        assert_eq!(mined["stripped_characters_per_block"], Value::Null, "{options}");
        assert_eq!((&mined["shortened"]["of"], &mined["axes"][0]["trailing_zeros"]), (&json!(0), &json!([])));
        let shown = folder.line(&line).done();
        assert!(!shown.text().contains("stripped") && !shown.text().contains("zeros "), "{}", shown.text());
    }
    let mined = folder.line("mine two.sdf --smiles-of CC --json").done().json();
    assert_eq!(mined["shortened"]["of"], 12);
}

#[test]
fn a_page_tells_what_the_terminal_tells() {
    let folder = Folder::new();
    let broken = "{\"embedded_smiles\": 3}\n";
    folder.file("texts.jsonl", [ethane(0.0).replace("1.5000", "0.0000"), broken.to_owned()].concat());
    folder.line("mine texts.jsonl --html page.html").done();
    let page = String::from_utf8(folder.read("page.html")).unwrap();
    for told in ["1 record skipped", "1 with atoms on one point", "1 with bonds shorter than 0.7 Å"] {
        assert!(page.contains(told), "{told}");
    }
}

#[test]
fn equal_shares_of_a_few_molecules_are_not_certain() {
    let folder = Folder::new();
    let text = |smiles: &str, generation: usize, end: &str| {
        let text = format!("[CONFORMER][{}]<0.0,0.0,0.0>[{}]<1.5,0.0,0.0>{end}", &smiles[..1], &smiles[1..]);
        format!("{}\n", json!({"smiles": smiles, "generation": generation, "text": text}))
    };
    let lines = |smiles: &'static str| [text(smiles, 0, "[/CONFORMER]"), text(smiles, 1, "")].concat();
    folder.file("texts.jsonl", ["CC", "CO", "CN"].map(lines).concat());
    let record = folder.line("audit texts.jsonl --dialect stripped --json").done().json();
    assert_eq!(record["total"]["passed"], 3);
    let (whole, row) = (&record["total"]["pass_interval"], &record["runs"][0]["passed_interval"]);
    assert_eq!(whole, row);
    assert!(row["low"].as_f64().unwrap() < 0.2 && row["high"].as_f64().unwrap() > 0.8, "{row}");
}

#[test]
fn a_merge_of_some_shards_says_so() {
    let folder = Folder::new();
    for at in 0..2 {
        folder.file(&format!("in/{at}.jsonl"), ethane(f64::from(at)));
    }
    let text = |smiles: &str, atoms: &str| {
        format!("{}\n", json!({"smiles": smiles, "text": format!("[CONFORMER]{atoms}[/CONFORMER]")}))
    };
    folder.file("texts/0.jsonl", text("CC", "[C]<0.0000,0.0000,0.0000>[C]<1.5000,0.0000,0.0000>"));
    folder.file("texts/1.jsonl", text("CO", "[C]<0.0000,0.0000,0.0000>[O]<1.4000,0.0000,0.0000>"));
    let methanol = "{\"canonical_smiles\":\"CO\",\"embedded_smiles\":\"[C]<0.0000,0.0000,0.0000>[O]<1.4000,0.0000,0.0000>\"}\n";
    folder.file("references.jsonl", [ethane(0.0), methanol.to_owned()].concat());
    for (name, command) in [
        ("mined", "mine in"),
        ("encoded", "encode in"),
        ("against", "mine in --against in/1.jsonl"),
        ("audited", "audit texts/0.jsonl texts/1.jsonl --references references.jsonl --dialect fixed"),
    ] {
        for shard in 1..=2 {
            folder.line(&format!("{command} --shard {shard}/2 -o {name}{shard} --quiet")).done();
        }
        let merged =
            |shards: &str| folder.line(&format!("merge {shards} --json -o {name}.out")).done().json();
        let whole = merged(&format!("{name}1 {name}2"));
        assert_eq!(whole["interrupted"], false, "{name}");
        let part = merged(&format!("{name}1 --partial"));
        assert_eq!(part["interrupted"], true, "{name}");
        if name == "audited" {
            // The other molecule's text may be in the shard that is missing.
            assert_eq!(part["total"]["geometry"]["molecules"], 1);
            assert!(
                part["warnings"][0]
                    .as_str()
                    .unwrap()
                    .starts_with("some of the work of the shards is missing")
            );
        }
    }
}

#[test]
fn a_file_that_is_named_twice_is_no_copy_of_itself() {
    let folder = Folder::new();
    folder.file("in/a.jsonl", [ethane(0.0), ethane(1.0)].concat());
    for others in ["in", "in in/a.jsonl", "in/a.jsonl in/../in/a.jsonl"] {
        let line = format!("mine in/a.jsonl --shared-by text --json --against {others}");
        let found = folder.line(&line).done().json();
        assert_eq!(
            (&found["rows_with_shared_text"], &found["other"]["conformers"]),
            (&json!(0), &json!(2)),
            "{others}"
        );
    }
}

#[test]
fn texts_of_two_test_subsets_are_of_the_other_one() {
    let folder = Folder::new();
    let row = |subset: &str| {
        ethane(0.0).replacen('{', &format!("{{\"test_subset\":\"{subset}\",\"dataset\":\"D\","), 1)
    };
    folder.file("test.jsonl", [row("A"), row("B")].concat());
    let found = folder.line("mine test.jsonl --against test.jsonl --json").done().json();
    assert_eq!(found["rows_with_shared_text"], 2, "{found}");
    let shares = found["datasets"][0]["by_test_subset"].as_array().unwrap();
    let texts: Vec<&Value> = shares.iter().map(|share| &share["text"]).collect();
    assert_eq!(texts, [1, 1], "{found}");
}

#[test]
fn the_summary_names_references_of_the_name_of_the_texts() {
    let folder = Folder::new();
    let text = "{\"smiles\":\"CC\",\"text\":\"[CONFORMER][C]<0.0000,0.0000,0.0000>[C]<1.5000,0.0000,0.0000>[/CONFORMER]\"}\n";
    folder.file("a/x.jsonl", text);
    folder.file("b/x.jsonl", ethane(0.0));
    folder.line("audit a/x.jsonl --references b/x.jsonl --dialect fixed --summary s.txt").done();
    let summary = String::from_utf8(folder.read("s.txt")).unwrap();
    assert!(summary.contains("Ground truth file: x.jsonl"), "{summary}");
}

/// Ethanol with all its hydrogens, and some lines of properties.
fn ethanol(properties: &str) -> String {
    let line = |(at, symbol): (usize, char)| {
        format!("{:10.4}{:10.4}    0.0000 {symbol}   0  0\n", at as f64, (at % 2) as f64)
    };
    let atoms: String = "CCOHHHHHH".char_indices().map(line).collect();
    let bonds = [(1, 2), (2, 3), (1, 4), (1, 5), (1, 6), (2, 7), (2, 8), (3, 9)];
    let bonds: String = bonds.iter().map(|(from, to)| format!("{from:3}{to:3}  1  0\n")).collect();
    let counts = "  9  8  0  0  0  0  0  0  0  0999 V2000";
    format!("\n{:>22}\n\n{counts}\n{atoms}{bonds}{properties}M  END\n$$$$\n", "3D")
}

#[test]
fn radicals_need_a_place() {
    let folder = Folder::new();
    folder.file("one.sdf", ethanol(""));
    let line = "encode one.sdf --smiles CCO -o o.jsonl --json";
    assert_eq!(folder.line(line).done().json()["conformers"], 1);
    for (atom, kind) in [1, 2, 3, 9].into_iter().flat_map(|atom| [1, 2, 3].map(|kind| (atom, kind))) {
        let radical = format!("M  RAD  1{atom:4}{kind:4}\n");
        folder.file("one.sdf", ethanol(&radical));
        assert!(folder.line(line).refused().contains("too many bonds"), "{radical}");
    }
}

#[test]
fn a_wide_z_keeps_its_last_digit() {
    let folder = Folder::new();
    for (z, expected) in [("     0.1234", "0.1234"), ("     13.456", "13.4560"), ("   -10.0934", "-10.0934")]
    {
        let sdf = drawn(0.0, 1.4).replacen("    1.0000 C", &format!("{z} C"), 1);
        folder.file("wide.sdf", sdf);
        folder.line("encode wide.sdf --smiles CC -o o.jsonl").done();
        let text = String::from_utf8(folder.read("o.jsonl")).unwrap();
        assert!(text.contains(&format!("<0.0000,1.0000,{expected}>")), "{text}");
    }
}

#[test]
fn units_of_hdf5_are_found_by_other_names_too() {
    let folder = Folder::new();
    let written = |of_group: Option<&str>, of_dataset: Option<(&str, &str)>| {
        let path = folder.path().join("one.h5");
        let file = rust_hdf5::H5File::create(&path).unwrap();
        let group = file.create_group("chlorine").unwrap();
        let numbers = group.new_dataset::<i32>().shape([2]).create("atomic_numbers").unwrap();
        numbers.write_raw(&[17, 17]).unwrap();
        let coordinates = group.new_dataset::<f64>().shape([1, 2, 3]).create("coordinates").unwrap();
        coordinates.write_raw(&[0.0, 0.0, 0.0, 2.0, 0.0, 0.0]).unwrap();
        if let Some(unit) = of_group {
            group.set_attr_string("units", unit).unwrap();
        }
        if let Some((name, unit)) = of_dataset {
            let attribute =
                coordinates.new_attr::<rust_hdf5::types::VarLenUnicode>().shape(()).create(name).unwrap();
            attribute.write_scalar(&rust_hdf5::types::VarLenUnicode(unit.to_owned())).unwrap();
        }
        drop((numbers, coordinates, group));
        file.close().unwrap();
        folder.line("encode one.h5 --smiles ClCl -o o.jsonl")
    };
    for (of_group, of_dataset, expected) in [
        (None, None, "2.0000"),
        (Some("Bohr"), None, "1.0583"),
        (Some("hartree"), None, "2.0000"),
        (Some("bohr"), Some(("units", "angstrom")), "2.0000"),
        (None, Some(("unit", "bohr")), "1.0583"),
        (None, Some(("Units", "bohr")), "1.0583"),
    ] {
        written(of_group, of_dataset).done();
        let text = String::from_utf8(folder.read("o.jsonl")).unwrap();
        assert!(text.contains(&format!("<{expected},")), "{of_group:?} {of_dataset:?}: {text}");
    }
    assert!(written(None, Some(("unit", "nm"))).refused().contains("unknown unit `nm`"));
}

#[test]
fn map_numbers_are_dropped_and_spellings_named_whatever_they_are() {
    let folder = Folder::new();
    let lines = |rows: &str| {
        folder.file("rows.jsonl", rows);
        folder.line("encode rows.jsonl -o o.jsonl").done();
        crate::support::rows(&folder.read("o.jsonl")).remove(0)
    };
    folder.file("mapped.sdf", drawn(0.0, 1.5));
    folder.line("encode mapped.sdf --smiles [CH3:0]C -o mapped.jsonl").done();
    let mapped = crate::support::rows(&folder.read("mapped.jsonl")).remove(0);
    assert_eq!(mapped["canonical_smiles"], "CC");
    assert!(mapped["embedded_smiles"].as_str().unwrap().starts_with("[C]<"), "{mapped}");
    let wild = lines("{\"text\":\"[*]<0,0,0>[C]<1.5,0,0>\"}\n");
    assert_eq!(wild["canonical_smiles"], "*C");
    let numbered = lines("{\"smiles\":\"[#6]C\",\"text\":\"[#6]<0,0,0>[C]<1.5,0,0>\"}\n");
    assert_eq!((&numbered["smiles"], &numbered["canonical_smiles"]), (&json!("[#6]C"), &Value::Null));
}
