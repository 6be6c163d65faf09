use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::corpus::rdkit::{Positions, RdConformer};
use drift_core::chem::{Bond, Order};

/// Returns the pickles that `tests/fixtures/make_pickles.py` wrote.
fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/pickles");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pickle"));
    paths.sort();
    assert!(paths.len() >= 15, "{paths:?}");
    paths
}

fn found(bytes: &[u8]) -> Vec<FoundMolecule> {
    molecules(&Pickle::parse(bytes).unwrap()).collect()
}

fn hexadecimal(bytes: impl Iterator<Item = u8>) -> String {
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the same description as the script's `described`.
fn described(found: &FoundMolecule) -> Json {
    let molecule = found.molecule.as_ref().unwrap();
    let atoms: Vec<Json> = molecule
        .graph
        .atoms
        .iter()
        .map(|a| json!([a.element, a.charge, a.isotope, a.hydrogens, a.radicals, i32::from(a.bracket)]))
        .collect();
    let bond = |bond: &Bond| {
        // RDKit's `BondType`, of the kinds that the fixtures have.
        let kind = match bond.order {
            Order::Single => 1,
            Order::Double => 2,
            Order::Aromatic => 12,
            other => panic!("{other:?}"),
        };
        json!([bond.atoms[0], bond.atoms[1], kind])
    };
    let bonds: Vec<Json> = molecule.graph.bonds.iter().map(bond).collect();
    let mut double = false;
    let conformers: Vec<Json> = molecule
        .conformers
        .iter()
        .map(|conformer| {
            let positions = match &conformer.positions {
                Positions::Single(all) => hexadecimal(all.iter().flatten().flat_map(|x| x.to_le_bytes())),
                Positions::Double(all) => {
                    double = true;
                    hexadecimal(all.iter().flatten().flat_map(|x| x.to_le_bytes()))
                }
            };
            json!([conformer.id, conformer.is_3d, positions])
        })
        .collect();
    json!({"smiles": found.smiles, "double": double, "atoms": atoms, "bonds": bonds, "conformers": conformers})
}

/// Every version of the binary format, every protocol and every layout, against what RDKit itself sees:
/// coordinates bit for bit.
#[test]
fn fixtures_hold_what_rdkit_sees_in_them() {
    for path in fixtures() {
        let bytes = fs::read(&path).unwrap();
        let expected: Vec<Json> =
            serde_json::from_slice(&fs::read(path.with_extension("json")).unwrap()).unwrap();
        let found: Vec<Json> = found(&bytes).iter().map(described).collect();
        assert_eq!(found, expected, "{}", path.display());
        let name = path.file_stem().unwrap().to_str().unwrap();
        if let Some(version) = name.strip_prefix("rdkit-") {
            let pickle = Pickle::parse(&bytes).unwrap();
            let (major, minor, patch) = molecules(&pickle).next().unwrap().molecule.unwrap().version;
            assert_eq!(format!("{major}.{minor}.{patch}"), version);
        }
    }
}

#[test]
fn places_read_like_python() {
    let layouts = fs::read(fixtures().iter().find(|path| path.ends_with("layouts.pickle")).unwrap()).unwrap();
    let places: Vec<String> = found(&layouts).into_iter().map(|found| found.place).collect();
    assert_eq!(places, ["['O'][0]", "['N']['confs'][0]", "[3]['conformers'][0]['rd_mol']"]);
}

#[test]
fn a_pickle_cut_anywhere_is_an_error() {
    for path in fixtures() {
        let bytes = fs::read(&path).unwrap();
        for length in 0..bytes.len() {
            assert!(Pickle::parse(&bytes[..length]).is_err(), "{} cut to {length}", path.display());
        }
    }
}

#[test]
fn a_molecule_cut_anywhere_is_an_error() {
    for path in fixtures() {
        let bytes = fs::read(&path).unwrap();
        let pickle = Pickle::parse(&bytes).unwrap();
        let mut walk = Walk::new(&pickle);
        while let Some(visit) = walk.todo.pop() {
            let Value::Object(object) = &pickle[visit.id] else {
                walk.enter(visit);
                continue;
            };
            let Value::Tuple(args) = &pickle[object.args] else { panic!("{object:?}") };
            match args.first().map(|&id| &pickle[id]) {
                Some(Value::Bytes(molecule)) => {
                    let first_good =
                        (0..=molecule.len()).find(|&length| rdkit::parse(&molecule[..length]).is_ok());
                    assert_eq!(first_good, Some(molecule.len()), "{}", path.display());
                }
                _ => walk.enter(visit),
            }
        }
    }
}

#[test]
fn deep_nesting_is_walked_and_its_place_cut() {
    // {'k': {'k': … Mol()}}
    let mut pickle = b"U\x01kq\x00".to_vec();
    pickle.extend(b"}h\x00".repeat(50_000));
    pickle.extend(b"crdkit.Chem.rdchem\nMol\n)R");
    pickle.extend(b"s".repeat(50_000));
    pickle.push(b'.');
    let found = found(&pickle);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].place, format!("…{}", "['k']".repeat(SHOWN_STEPS)));
}

#[test]
fn a_broken_molecule_does_not_end_the_walk() {
    // [Mol(b'junk'), Mol()], then a molecule of RDKit 2015.
    let pickle = b"\x80\x03](crdkit.Chem.rdchem\nMol\nq\x00C\x04junk\x85Rh\x00)Rh\x00C\x14\xef\xbe\xad\xde\
        \0\0\0\0\x07\0\0\0\x01\0\0\0\0\0\0\0\x85Re.";
    let errors: Vec<String> = found(pickle).into_iter().map(|found| found.molecule.unwrap_err()).collect();
    assert_eq!(
        errors,
        [
            "not an RDKit molecule: the bytes do not begin with RDKit's mark 0xDEADBEEF",
            "the pickled molecule contains no bytes in RDKit's format",
            "RDKit binary version 7.1; drift reads 12.1 to 16",
        ]
    );
}

#[test]
fn a_neighbour_in_a_tuple_is_the_smiles() {
    // [('CC', Mol(b'')), ('a name', Mol(b''))]
    let pickle =
        b"\x80\x03](U\x02CCcrdkit.Chem.rdchem\nMol\nq\x00C\x00\x85R\x86U\x06a nameh\x00C\x00\x85R\x86e.";
    let smiles: Vec<_> = found(pickle).into_iter().map(|found| found.smiles).collect();
    assert_eq!(smiles, [Some("CC".to_owned()), None]);
}

#[test]
fn keys_are_told_from_smiles() {
    for smiles in
        ["C", "CCO", "c1ccccc1", "[Na+].[Cl-]", "C[C@H](N)C(=O)O", "F/C=C/F", "BrCCl", "*C", "n1ccc2c1cccc2"]
    {
        assert!(may_be_smiles(smiles), "{smiles}");
    }
    for name in [
        "",
        "conformers",
        "confs",
        "rd_mol",
        "mols",
        "pos",
        "smiles",
        "geom_id",
        "1",
        "(C)",
        "C(",
        "C[",
        "train",
    ] {
        assert!(!may_be_smiles(name), "{name}");
    }
}

#[test]
fn cycles_are_walked_once_and_shared_molecules_wherever_they_stand() {
    // a = [Mol]; a.append(a); a.append(a[0])
    let pickle = b"\x80\x03]q\x00crdkit.Chem.rdchem\nMol\nC\x00\x85Rq\x01ah\x00ah\x01a.";
    assert_eq!(found(pickle).len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever happens to a file, the answer is a value or an error.
    #[test]
    fn no_mutation_panics(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = fs::read(which.get(&fixtures())).unwrap();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Some(cut) = cut {
            bytes.remove(cut.index(bytes.len()));
        }
        if let Ok(pickle) = Pickle::parse(&bytes) {
            for found in molecules(&pickle) {
                if let Ok(molecule) = found.molecule {
                    let positions = |conformer: &RdConformer| match &conformer.positions {
                        Positions::Single(all) => all.len(),
                        Positions::Double(all) => all.len(),
                    };
                    prop_assert!(molecule.conformers.iter().all(|one| positions(one) == molecule.graph.atoms.len()));
                }
            }
        }
    }
}
