//! Skeletons against texts as the projects' code writes them, and files that must be refused.

use serde_json::{Map, Value, json};

use super::*;

fn built_in(name: &str) -> Skeleton {
    Skeleton::load(Path::new(name)).unwrap()
}

fn data(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// Returns the kinds of faults of a text, in the order of the text.
fn faults(skeleton: &Skeleton, prompt: Value, text: &str) -> Vec<FaultKind> {
    let bound = skeleton.bind(&data(prompt), "p").unwrap();
    bound.read(text).faults.iter().map(|fault| fault.kind).collect()
}

const CRYSTAL: &str = "4.0 4.0 5.6\n90 90 90\nNa\n0.12 0.34 0.00\nCl\n0.62 0.84 0.50\n";
const CIF: &str = "some reasoning\n<CIF>P1\n4.69532317 4.69532317 4.75149888\n85.5376 85.5376 108.609\n\
                   Na 1 0.00000000 0.00000000 0.00000000\nCl 1 0.50000000 0.50000000 0.50000000</CIF>\n";

#[test]
fn built_in_skeletons_load_and_name_their_sources() {
    for (name, _) in BUILT_IN {
        let skeleton = built_in(name);
        assert_eq!(skeleton.name, name);
        assert!(skeleton.source.is_some_and(|source| source.len() > 20), "{name}");
    }
    assert!(
        Skeleton::load(Path::new("crystal")).unwrap_err().to_string().contains("crystal-text, simple-cif")
    );
}

#[test]
fn texts_of_the_projects_are_read() {
    let xyz = "3\n\nC 0.00 0.00 0.00\nC 1.52 0.00 0.00\nO 2.03 1.33 0.00\n";
    let cplm = "[LIGAND] CCO [XYZ] 0.000 0.000 0.000 1.523 -0.012 0.004 2.031 1.334 -0.870";
    let smiles = json!({"smiles": "CCO"});
    for (name, prompt, text, values) in [
        ("crystal-text", json!({"species": ["Na", "Cl"]}), CRYSTAL, 12),
        ("crystal-text", json!({"formula": "ClNa"}), CRYSTAL.trim_end(), 12),
        ("simple-cif", json!({"formula": "NaCl"}), CIF, 12),
        ("xyz", json!({"species": ["C", "C", "O"]}), xyz, 9),
        ("smiles-then-xyz", smiles.clone(), cplm, 9),
        ("3dsmiles-padded", smiles.clone(), "CCO&{0000,0000,0000{0015,0000,0000{0020,0013,-0009", 9),
        ("3dsmiles-plain", smiles.clone(), "CCO&{0,0,0{15,0,-1921{20,13,-9", 9),
        ("3dsmiles-base62", smiles, "CCO&{0000zZ{0f0000{vZ0000", 0),
    ] {
        let skeleton = built_in(name);
        let bound = skeleton.bind(&data(prompt), "p").unwrap();
        let reading = bound.read(text);
        assert_eq!(reading.faults, [], "{name}");
        assert_eq!(reading.values.len(), values, "{name}");
        // Every shorter text is cut, or is whole without its last line break.
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            let reading = bound.read(&text[..end]);
            let kinds: Vec<FaultKind> = reading.faults.iter().map(|fault| fault.kind).collect();
            let is_short = matches!(
                kinds[..],
                [FaultKind::Cut | FaultKind::Marker | FaultKind::Count | FaultKind::Composition]
            );
            let is_whole = kinds.is_empty() && (text.len() - end == 1 || name == "3dsmiles-plain");
            assert!(is_short || is_whole, "{name}: {:?}: {:?}", &text[..end], reading.faults);
        }
    }
}

#[test]
fn cif_of_pymatgen_is_read_with_its_formulas() {
    let head = "# generated using pymatgen\ndata_NaCl\n_symmetry_space_group_name_H-M   'P 1'\n\
        _cell_length_a   3.98930000\n_cell_length_b   3.98930000\n_cell_length_c   5.64180000\n\
        _cell_angle_alpha   90.00000000\n_cell_angle_beta   90.00000000\n_cell_angle_gamma   90.00000000\n\
        _symmetry_Int_Tables_number   1\n_chemical_formula_structural   NaCl\n_chemical_formula_sum   'Na2 Cl2'\n\
        _cell_volume   89.78590000\n_cell_formula_units_Z   2\nloop_\n _symmetry_equiv_pos_site_id\n\
        \u{20}_symmetry_equiv_pos_as_xyz\n  1  'x, y, z'\nloop_\n _atom_site_type_symbol\n _atom_site_label\n\
        \u{20}_atom_site_symmetry_multiplicity\n _atom_site_fract_x\n _atom_site_fract_y\n _atom_site_fract_z\n\
        \u{20}_atom_site_occupancy\n";
    let atom =
        |word: &str, at: usize| format!("  {word}  {word}{at}  1  0.00000000  0.50000000  0.00000000  1\n");
    let text = format!("{head}{}{}{}{}", atom("Na", 0), atom("Na", 1), atom("Cl", 2), atom("Cl", 3));
    let cif = built_in("cif-p1");
    let species = json!({"species": ["Na", "Na", "Cl", "Cl"]});
    let formula = json!({"formula": "NaCl"});
    assert_eq!(faults(&cif, species.clone(), &text), []);
    assert_eq!(faults(&cif, formula.clone(), &text), []);
    // The text states two formula units and lists one.
    let one = format!("{head}{}{}", atom("Na", 0), atom("Cl", 1));
    assert_eq!(faults(&cif, formula.clone(), &one), [FaultKind::Count]);
    assert_eq!(faults(&cif, formula, &text.replace("Na2 Cl2", "Na2 Cl1")), [FaultKind::Composition]);
    assert_eq!(faults(&cif, species, &text.replace("Cl3", "Cl4")), [FaultKind::Format]);
    let swapped = format!("{head}{}{}{}{}", atom("Na", 0), atom("Cl", 1), atom("Na", 2), atom("Cl", 3));
    assert_eq!(faults(&cif, json!({"species": ["Na", "Na", "Cl", "Cl"]}), &swapped), [FaultKind::Order]);
    assert_eq!(faults(&cif, json!({"formula": "NaCl"}), &swapped), []);
}

#[test]
fn each_damage_has_its_kind() {
    use FaultKind::*;
    let crystal = built_in("crystal-text");
    for (from, to, kinds) in [
        ("0.12", "-0.00", vec![MinusZero]),
        ("0.12", "1.01", vec![Range]),
        ("0.12", "-0.12", vec![Range]),
        ("0.12", "0.123", vec![Format]),
        ("0.12", "0.1", vec![Format]),
        ("0.12", ".12", vec![Format]),
        ("0.12 0.34 0.00", "0.12 0.34", vec![Format]),
        ("0.12 0.34 0.00", "0.12 0.34 0.00 0.00", vec![Format]),
        ("90 90 90", "90 90 181", vec![Range]),
        ("90 90 90", "90 90 090", vec![Format]),
        ("90 90 90", "90 90", vec![Format]),
        ("Na", "K", vec![Composition]),
        ("Na", "Cl", vec![Composition]),
        ("4.0 4.0 5.6\n", "", vec![Format]),
        ("Cl\n0.62 0.84 0.50\n", "", vec![Composition]),
        ("Cl\n", "Cl\n0.00 0.00 0.00\nNa\n0.50 0.50 0.00\nCl\n", vec![Count]),
        ("0.50\n", "0.50\n\n", vec![Trailing]),
        ("0.50\n", "0.50\nThat is all.", vec![Format]),
        ("0.12 0.34", "-0.00 1.34", vec![MinusZero, Range]),
    ] {
        let text = CRYSTAL.replacen(from, to, 1);
        let prompt = json!({"species": ["Na", "Cl"]});
        let found = faults(&crystal, prompt, &text);
        let is_expected = kinds.iter().all(|kind| found.contains(kind)) && found.len() >= kinds.len();
        assert!(is_expected && (found.len() == kinds.len() || to.starts_with("0.50\n")), "{to:?}: {found:?}");
    }
    let swapped = "4.0 4.0 5.6\n90 90 90\nCl\n0.12 0.34 0.00\nNa\n0.62 0.84 0.50";
    assert_eq!(faults(&crystal, json!({"species": ["Na", "Cl"]}), swapped), [Order]);
    assert_eq!(faults(&crystal, json!({"formula": {"Na": 1, "Cl": 1}}), swapped), []);
    // Four formula units are the most.
    let many = |units: usize| {
        format!("4.0 4.0 5.6\n90 90 90{}", "\nNa\n0.12 0.34 0.00\nCl\n0.62 0.84 0.50".repeat(units))
    };
    assert_eq!(faults(&crystal, json!({"formula": "NaCl"}), &many(4)), []);
    assert_eq!(faults(&crystal, json!({"formula": "NaCl"}), &many(5)), [Count]);
    assert_eq!(faults(&crystal, json!({"formula": "Na2Cl2"}), &many(1)), [Count]);
    let simple = built_in("simple-cif");
    assert_eq!(faults(&simple, json!({"formula": "NaCl"}), "no marker"), [Marker]);
    assert_eq!(faults(&simple, json!({"formula": "NaCl"}), &CIF.replace("some", "<CIF>")), [Format, Marker]);
    for (from, to) in
        [("85.5376", "85.53760"), ("85.5376", "85.53761"), ("108.609", "108.6091"), ("90", "90.0")]
    {
        let text = CIF.replace("85.5376 108", "90 108").replacen(from, to, 1);
        assert_eq!(faults(&simple, json!({"formula": "NaCl"}), &text), [Format], "{to}");
    }
}

#[test]
fn faults_name_their_place() {
    let crystal = built_in("crystal-text");
    let bound = crystal.bind(&data(json!({"species": ["Na", "Cl"]})), "p").unwrap();
    let reading = bound.read(&CRYSTAL.replace("0.34", "-0.00").replace("0.84", "-0.00"));
    assert_eq!(reading.counts[&FaultKind::MinusZero], 2);
    let [fault] = &reading.faults[..] else { panic!("{:?}", reading.faults) };
    assert_eq!((fault.line, fault.column), (4, 6));
    assert!(
        fault.problem.contains("-0.00") && fault.problem.contains("from 0.00 to 1.00"),
        "{}",
        fault.problem
    );
    assert_eq!(bound.read(&CRYSTAL.replace("Cl\n0.62 0.84 0.50", "Na\n0.12 0.34 0.00")).repeated_items(), 1);
}

#[test]
fn scenes_and_frameworks_are_data_alone() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/skeletons");
    let scene = Skeleton::load(&folder.join("spatiallm.json")).unwrap();
    let text = "wall_0=Wall(-2.1,0.0,0.0,3.4,0.0,0.0,2.8,0.0)\ndoor_0=Door(wall_0,1.2,0.0,1.0,0.9,2.0)\n\
                bbox_0=Bbox(sofa,1.5,2.0,0.4,-1.57,2.0,0.9,0.8)\n";
    assert_eq!(faults(&scene, json!({}), text), []);
    assert_eq!(faults(&scene, json!({"walls": 1, "bboxs": 1}), text), []);
    assert_eq!(faults(&scene, json!({"walls": 2}), text), [FaultKind::Count]);
    assert_eq!(faults(&scene, json!({}), &text.replace("sofa", "boat")), [FaultKind::Format]);
    assert_eq!(faults(&scene, json!({}), ""), []);
    let mof = Skeleton::load(&folder.join("mof-lines.json")).unwrap();
    let text = "10.123 12.456 15.789 90.0 90.0 120.0\n[0] 0.250 0.250 0.500 0.000 1.571 -3.142\n\
                [1] 0.750 0.250 0.500 1.047 0.000 0.524\n";
    assert_eq!(faults(&mof, json!({"blocks": ["a", "b"]}), text), []);
    assert_eq!(faults(&mof, json!({"n_blocks": 3}), text), [FaultKind::Count]);
    assert_eq!(faults(&mof, json!({"n_blocks": 2}), &text.replace("[1]", "[2]")), [FaultKind::Format]);
    let atoms = Skeleton::load(&folder.join("geo2seq.json")).unwrap();
    let text = "C 0.00 0.00° 0.00° C 1.52 1.57° 0.00° O 2.43 1.57° 0.58° ";
    assert_eq!(faults(&atoms, json!({"species": ["C", "C", "O"]}), text), []);
    assert_eq!(faults(&atoms, json!({"species": ["C", "O"]}), text.trim_end()), [FaultKind::Composition]);
    assert_eq!(faults(&atoms, json!({"smiles": "O=C=O"}), "O 0.00 0.00° 3.20°").len(), 2);
    let fragments = Skeleton::load(&folder.join("frag2seq.json")).unwrap();
    let text = "CCO 0.00 0.00° 0.00° -0.20* 1.48* 0.33* c1ccccc1 3.21 1.57° -0.44° 2.02* -0.82* -0.34* ";
    assert_eq!(faults(&fragments, json!({"fragments": ["CCO", "c1ccccc1"]}), text), []);
    let broken = text.replace("-0.44°", "-0.44");
    assert_eq!(faults(&fragments, json!({"fragments": ["CCO", "c1ccccc1"]}), &broken)[0], FaultKind::Format);
    let mesh = Skeleton::load(&folder.join("llama-mesh.json")).unwrap();
    let text = "v 12 34 56\nv 0 63 10\nv 31 31 31\nf 1 2 3\n";
    assert_eq!(faults(&mesh, json!({}), text), []);
    assert_eq!(faults(&mesh, json!({"vertices": 4}), text), [FaultKind::Count]);
    assert_eq!(faults(&mesh, json!({}), &text.replace("63", "64")), [FaultKind::Range]);
}

/// Returns a file with one slot `x`, items `atom`, and a text.
fn file(slot: &str, text: &str) -> String {
    format!(
        r#"{{"schema": "drift.skeleton/1", "name": "t", "slots": {{"x": {slot}}},
            "items": {{"atom": {{"from": "list", "field": "species"}}}}, "text": {text}}}"#
    )
}

#[test]
fn what_cannot_be_read_back_is_refused() {
    let two = r#"{"kind": "decimal", "decimals": 2, "low": 0, "high": 1}"#;
    let plain = r#"{"kind": "integer", "low": 0, "high": 100}"#;
    let padded = r#"{"kind": "integer", "low": 0, "high": 99, "width": 2}"#;
    for (slot, text, part) in [
        (plain, r#"["{x}{x}"]"#, "could go on with the"),
        (plain, r#"["{x}0"]"#, "could go on with the `0`"),
        (plain, r#"[{"each": "atom", "text": "{x}"}]"#, "could go on"),
        (two, r#"[{"each": "atom", "text": "{atom}{x}"}]"#, "its words have no end"),
        (two, r#"[{"each": "atom", "text": "a{x}\n"}, "a0"]"#, "begin alike"),
        (two, r#"[{"each": "atom", "text": "{atom} {x}\n"}, "Ende"]"#, "begin alike"),
        (two, r#"["{y}"]"#, "is no slot"),
        (two, r#"["{x"]"#, "single `{`"),
        (two, r#"["x}"]"#, "single `}`"),
        (two, r#"["{atom} {x}"]"#, "outside of its `each`"),
        (two, r#"["{x}", {"each": "walls", "text": "{x}"}]"#, "no items `walls`"),
        (two, r#"["a"]"#, "stands nowhere"),
        (two, r#"[]"#, "is empty"),
        (r#"{"kind": "decimal", "decimals": 2, "low": 1, "high": 0}"#, r#"["{x}"]"#, "holds no number"),
        (
            r#"{"kind": "decimal", "decimals": 2, "low": 0.001, "high": 1}"#,
            r#"["{x}"]"#,
            "more than 2 decimals",
        ),
        (r#"{"kind": "decimal", "decimals": 99, "low": 0, "high": 1}"#, r#"["{x}"]"#, "at most 12"),
        (r#"{"kind": "decimal", "decimals": 2, "low": 0, "high": 1e300}"#, r#"["{x}"]"#, "too large"),
        (r#"{"kind": "integer", "low": 1, "high": 99, "widht": 2}"#, r#"["{x}"]"#, "unknown field `widht`"),
        (r#"{"kind": "float", "low": 1}"#, r#"["{x}"]"#, "unknown variant `float`"),
        (r#"{"kind": "words", "words": []}"#, r#"["{x}"]"#, "1 to 4096 words"),
        (r#"{"kind": "words", "words": ["a", "ab"]}"#, r#"["{x}b"]"#, "could go on with the `b`"),
        (r#"{"kind": "codes", "alphabet": "aa", "width": 2}"#, r#"["{x}"]"#, "each of its characters once"),
    ] {
        let error = file(slot, text).parse::<Skeleton>().expect_err(text);
        assert!(error.contains(part), "{slot} {text}: {error}");
    }
    assert!(file(padded, r#"["{x}{x}{x}0"]"#).parse::<Skeleton>().is_ok());
    let twice = file(two, r#"["{x}"]"#)
        .replace(r#""slots": {"#, r#""slots": {"x": {"kind": "integer", "low": 0, "high": 1}, "#);
    assert!(twice.parse::<Skeleton>().unwrap_err().contains("two slots"), "{twice}");
    let marker = file(two, r#"["{x}"]"#).replace(r#""name""#, r#""marker": " ", "name""#);
    assert!(marker.parse::<Skeleton>().unwrap_err().contains("`marker` is empty"));
    for deep in
        ["[".repeat(100_000), r#"{"a":"#.repeat(100_000), "\u{0}".to_owned(), "{".to_owned(), String::new()]
    {
        assert!(deep.parse::<Skeleton>().is_err());
    }
}

#[test]
fn prompts_without_what_a_loop_needs_are_refused() {
    let crystal = built_in("crystal-text");
    for (prompt, part) in [
        (json!({}), "no field for the items `atom`"),
        (json!({"species": "Na"}), "give a list of words"),
        (json!({"species": []}), "give one item at least"),
        (json!({"species": ["Na", 1]}), "give a list of words"),
        (json!({"species": ["Na Cl"]}), "without white space"),
        (json!({"formula": "NaX"}), "give a formula"),
        (json!({"formula": 7}), "give a formula"),
    ] {
        let error = crystal.bind(&data(prompt.clone()), "prompts.jsonl: line 3").unwrap_err().to_string();
        assert!(error.starts_with("prompts.jsonl: line 3: ") && error.contains(part), "{prompt}: {error}");
    }
    let words = r#"["{x} ", {"each": "atom", "text": "{atom}\n"}]"#;
    let slot = r#"{"kind": "integer", "low": 0, "high": 9}"#;
    let count = r#"{"from": "count", "field": "n"}"#;
    for (sources, part) in [
        (count.to_owned(), "take the items `atom` from a list"),
        (format!(r#"[{{"from": "list", "field": "species"}}, {count}]"#), "give it `species`"),
    ] {
        let wordless = file(slot, words).replace(r#"{"from": "list", "field": "species"}"#, &sources);
        let wordless: Skeleton = wordless.parse().unwrap();
        let error = wordless.bind(&data(json!({"n": 2})), "p").unwrap_err().to_string();
        assert!(error.contains("has only a number") && error.contains(part), "{error}");
    }
    let error = built_in("xyz").bind(&data(json!({"smiles": "C("})), "p").unwrap_err().to_string();
    assert!(error.contains("is not a SMILES"), "{error}");
}

/// Time and memory grow with the text: a quadratic reader would take minutes.
#[test]
fn a_hundred_thousand_atoms_are_read() {
    let crystal = built_in("crystal-text");
    let species = vec!["Na"; 100_000];
    let bound = crystal.bind(&data(json!({"species": species})), "p").unwrap();
    let text = format!("4.0 4.0 5.6\n90 90 90{}", "\nNa\n0.12 0.34 -0.00".repeat(100_000));
    let reading = bound.read(&text);
    assert_eq!(reading.counts[&FaultKind::MinusZero], 100_000);
    assert_eq!((reading.faults.len(), reading.items[0].len()), (1, 100_000));
}
