//! drift's HDF5 store: round trip, equal bytes, damaged files, and h5py's view of it.

use std::path::Path;

use drift::Error;
use drift::corpus::store::StoreWriter;
use drift::corpus::{AtomOrder, Conformer};
use drift::encoding::DecimalForms;
use drift::io::AtomicFile;
use proptest::prelude::*;

use crate::common::{read_hdf5, reads_or_refuses};
use crate::support::python;

fn conformer(molecule: &str, coordinates: Vec<[i32; 3]>, bits: u8) -> Conformer {
    let skeleton = "[C]<>".repeat(coordinates.len());
    let order = if bits & 1 == 0 { AtomOrder::Smiles } else { AtomOrder::File };
    let written = DecimalForms { fixed: bits & 2 == 0, stripped: bits & 4 == 0 };
    Conformer { order, written, ..Conformer::new(molecule.into(), skeleton.into(), coordinates) }
}

fn write(path: &Path, conformers: &[Conformer]) {
    let mut writer = StoreWriter::create(path, drift::Encoding::FIXED).unwrap();
    for batch in conformers.chunks(3) {
        writer.push(batch).unwrap();
    }
    let inputs = vec![drift::io::hash_bytes("input.jsonl", b"input")];
    writer.finish(inputs, 7).and_then(AtomicFile::commit).unwrap();
}

fn read(path: &Path) -> Result<Vec<Conformer>, Error> {
    let (conformers, skipped) = read_hdf5(path)?;
    assert_eq!(skipped, []);
    Ok(conformers)
}

/// More than one chunk in most datasets: 100,000 blocks, 5,000 conformers of 1,700 molecules.
fn many() -> Vec<Conformer> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as i32 % 80_000
    };
    (0..5_000u32)
        .map(|i| {
            let blocks = 5 + i as usize % 31;
            let name = format!("{}{}", "C".repeat(blocks), i / 3);
            conformer(&name, (0..blocks).map(|_| [next(), next() - 40_000, -next()]).collect(), (i % 8) as u8)
        })
        .collect()
}

#[test]
fn many_conformers_come_back_and_the_bytes_do_not_depend_on_threads() {
    let folder = tempfile::tempdir().unwrap();
    let conformers = many();
    let files: Vec<Vec<u8>> = [1, 2, 5]
        .into_iter()
        .map(|threads| {
            let path = folder.path().join(format!("{threads}.h5"));
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| write(&path, &conformers));
            assert!(read(&path).unwrap() == conformers);
            std::fs::read(path).unwrap()
        })
        .collect();
    assert!(files[0] == files[1] && files[1] == files[2]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn round_trip(
        conformers in prop::collection::vec(
            (".{0,12}", prop::collection::vec(prop::array::uniform3(-999_999_999..=999_999_999i32), 1..9), 0u8..8),
            0..40,
        )
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.h5");
        let conformers: Vec<Conformer> = conformers.into_iter().map(|(m, c, b)| conformer(&m, c, b)).collect();
        write(&path, &conformers);
        prop_assert_eq!(read(&path).unwrap(), conformers);
    }
}

#[test]
fn repeated_molecules_share_a_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.h5");
    let mut writer = StoreWriter::create(&path, drift::Encoding::FIXED).unwrap();
    let row = |name: &str| conformer(name, vec![[1, 2, 3]], 0);
    writer.push(&[row("a"), row("a"), row("b"), row("a")]).unwrap();
    writer.finish(vec![], 0).and_then(AtomicFile::commit).unwrap();
    let offsets = rust_hdf5::H5File::open(&path).unwrap().dataset("molecules/smiles_offset").unwrap();
    assert_eq!(offsets.shape(), [3], "one more than molecules");
}

#[test]
fn nothing_is_left_when_a_store_is_not_finished() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.h5");
    let mut writer = StoreWriter::create(&path, drift::Encoding::FIXED).unwrap();
    writer.push(&many()).unwrap();
    drop(writer);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn truncated_stores_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.h5");
    write(&path, &many()[..40]);
    let whole = std::fs::read(&path).unwrap();
    for len in (0..whole.len()).step_by(whole.len() / 400 + 1) {
        assert!(!reads_or_refuses(&path, &whole[..len], &format!("{len} bytes")), "{len} of {}", whole.len());
    }
}

#[test]
fn damaged_stores_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.h5");
    write(&path, &many()[..40]);
    let whole = std::fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 200 + 1) {
        for value in [0x00, 0xff, whole[at] ^ 0x01] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            reads_or_refuses(&path, &bytes, &format!("byte {at} = {value}"));
        }
    }
}

#[test]
fn a_newer_schema_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.h5");
    write(&path, &many()[..4]);
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(14).position(|w| w == b"drift.corpus/1").unwrap();
    bytes[at + 13] = b'2';
    std::fs::write(&path, bytes).unwrap();
    let message = read(&path).unwrap_err().to_string();
    assert!(message.contains("drift.corpus/2") && message.contains("drift.corpus/1"), "{message}");
}

#[test]
#[cfg_attr(not(has_h5py), ignore = "needs a Python with h5py")]
fn h5py_reads_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.h5");
    let conformers = many();
    write(&path, &conformers);
    let said = python("fixtures/check_store.py", folder.path(), &["store.h5"]);
    let seen: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(seen["schema"], "drift.corpus/1");
    assert_eq!(seen["unit"], "1e-4 angstrom");
    assert_eq!(seen["skipped"], "7");
    assert_eq!(seen["provenance"]["inputs"][0]["name"], "input.jsonl");
    assert_eq!(seen["filters"], serde_json::json!(["gzip", "shuffle"]));
    let expected: Vec<serde_json::Value> = conformers
        .iter()
        .map(|c| {
            let flags = u8::from(c.order == AtomOrder::Smiles)
                | u8::from(c.written.fixed) << 1
                | u8::from(c.written.stripped) << 2;
            serde_json::json!([&*c.molecule, &*c.skeleton, flags, c.coordinates])
        })
        .collect();
    assert!(seen["conformers"] == serde_json::Value::Array(expected));
}
