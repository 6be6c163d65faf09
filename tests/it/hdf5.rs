//! SPICE, ANI-1x and ANI-1 files, made by `tests/fixtures/make_hdf5.py`.

use crate::common::{fixture, read_hdf5, reads_or_refuses};

fn expected(file: &str) -> Vec<serde_json::Value> {
    let json = std::fs::read(fixture("hdf5_expected.json")).unwrap();
    let mut files: serde_json::Value = serde_json::from_slice(&json).unwrap();
    serde_json::from_value(files[file].take()).unwrap()
}

/// Reads a fixture, compares its conformers with those expected, and gives the skipped records.
fn check(file: &str) -> Vec<String> {
    let (conformers, skipped) = read_hdf5(&fixture(file)).unwrap();
    let seen: Vec<serde_json::Value> =
        conformers.iter().map(|c| serde_json::json!([&*c.molecule, &*c.skeleton, c.coordinates])).collect();
    assert_eq!(seen, expected(file));
    skipped.into_iter().map(|s| format!("{}: {}: {}", s.file, s.record, s.reason)).collect()
}

#[test]
fn spice_comes_in_bohr() {
    assert_eq!(check("spice.h5"), [] as [String; 0]);
}

#[test]
fn ani1x_comes_in_angstrom_and_skips_what_is_bad() {
    assert_eq!(
        check("ani1x.h5"),
        [
            "file.h5: group H2, conformer 1: no heavy atom",
            "file.h5: group H2O1, conformer 2: atom 1: NaN: not finite",
        ]
    );
}

/// Symbols, a SMILES a character, groups in groups; what is of high energy is another dataset, and not read.
#[test]
fn ani1_comes_in_symbols() {
    assert_eq!(check("ani1.h5"), [] as [String; 0]);
}

#[test]
#[cfg_attr(not(all_tests), ignore = "takes long: DRIFT_ALL=1")]
fn truncated_and_damaged_files_are_refused_or_read_but_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.h5");
    for file in ["spice.h5", "ani1x.h5"] {
        let whole = std::fs::read(fixture(file)).unwrap();
        for len in (0..whole.len()).step_by(31) {
            assert!(
                !reads_or_refuses(&path, &whole[..len], &format!("{file}: {len} bytes")),
                "{file}: {len}"
            );
        }
        for at in (0..whole.len()).step_by(7) {
            for value in [0x00, 0xff, whole[at] ^ 0x01] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                reads_or_refuses(&path, &bytes, &format!("{file}: byte {at} = {value}"));
            }
        }
    }
}

#[test]
fn other_hdf5_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.h5");
    let file = rust_hdf5::H5File::create(&path).unwrap();
    file.new_dataset::<i32>().shape([3]).create("numbers").unwrap().write_raw(&[1, 2, 3]).unwrap();
    file.close().unwrap();
    let message = read_hdf5(&path).unwrap_err().to_string();
    assert_eq!(
        message,
        "file.h5: an HDF5 file without molecules in a known layout; drift reads its own stores, SPICE and ANI-1x"
    );
}
