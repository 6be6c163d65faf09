//! The same random molecules in every way in which people write files: columns, exponents, comments, items, containers. Made by
//! `tests/python/ways.py` with a seed, RDKit as judge.

use std::collections::BTreeMap;

use crate::support::{Folder, python, rows};

/// The seed of what is made.
const SEED: &str = "3";

/// What a sub-command of the script prints.
#[track_caller]
fn by_rdkit(folder: &Folder, arguments: &[&str]) -> String {
    python("python/ways.py", &folder.path(), arguments)
}

/// Twelve molecules a way: all are encoded, but for radicals and the wrong enantiomers of deuterated ones, and each text is the molecule of its
/// name.
#[test]
#[cfg_attr(not(all(has_rdkit, has_h5py)), ignore = "needs RDKit and h5py")]
fn molecules_come_in_every_way_that_people_write_them() {
    let folder = Folder::new();
    let expected: BTreeMap<String, usize> =
        serde_json::from_str(&by_rdkit(&folder, &["make", ".", SEED])).unwrap();
    assert!(expected.len() >= 14);
    let mut outputs = vec!["check".to_owned()];
    for (input, count) in &expected {
        let output = format!("{input}.jsonl");
        let mut arguments = vec!["encode", input, "-o", &output, "--json"];
        if input == "cid.sdf" {
            arguments.extend(["--smiles", "cid.csv"]);
        }
        let ran = folder.drift(&arguments);
        if *count == 0 {
            assert!(ran.stderr.contains("no conformer could be read"), "{input}: {}", ran.stderr);
            continue;
        }
        assert_eq!(ran.code, Some(0), "{input}: {}", ran.stderr);
        let found = rows(&folder.read(&output));
        assert_eq!(found.len(), *count, "{input}: {}", String::from_utf8_lossy(&ran.stdout));
        // Kekulé structures, and SMILES with hydrogens in an order of their own, are not what RDKit would write.
        let foreign = found.iter().filter(|row| row.get("smiles").is_some()).count();
        match input.as_str() {
            "kekule.sdf" => assert_eq!(foreign, *count),
            "spice.h5" | "ani1.h5" | "dative.sdf" => {}
            _ => assert_eq!(foreign, 0, "{input}: {}", String::from_utf8_lossy(&ran.stdout)),
        }
        // On which side the hydrogen of an imine lies is left open by all of its SMILES, and by none of the others.
        let open_stereo = ran.json()["open_stereo"].as_u64().unwrap();
        match input.as_str() {
            "imines.sdf" => assert_eq!(open_stereo, found.len() as u64),
            // RDKit's canonical SMILES does not tell the corners of metals apart.
            "dative.sdf" => {}
            _ => {
                assert_eq!(open_stereo, 0, "{input}");
                outputs.push(output);
            }
        }
    }
    let outputs: Vec<&str> = outputs.iter().map(String::as_str).collect();
    assert_eq!(by_rdkit(&folder, &outputs), "[]");
}
