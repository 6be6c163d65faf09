//! Damaged HDF5 files, judged by h5py: drift may refuse what h5py reads, but it never reads what h5py refuses, and never
//! gives fewer records without saying so.

use std::collections::BTreeMap;
use std::path::Path;

use drift::corpus::store::StoreWriter;
use drift::corpus::{Conformer, SkippedRecord};
use drift::encoding::DecimalForms;
use drift::io::AtomicFile;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::common::{fixture, read_hdf5};
use crate::support::python;

/// Mutants of each file; `DRIFT_MUTANTS` for more.
fn mutants() -> usize {
    std::env::var("DRIFT_MUTANTS").ok().and_then(|n| n.parse().ok()).unwrap_or(150)
}

/// What h5py says of the files in a folder, in one process.
fn judged(folder: &Path) -> BTreeMap<String, Value> {
    serde_json::from_str(&python("fixtures/judge_hdf5.py", folder, &["."])).unwrap()
}

/// One byte, or two that change places, or a piece of the end that is gone.
fn mutate(random: &mut ChaCha8Rng, whole: &[u8]) -> (Vec<u8>, String) {
    let mut bytes = whole.to_vec();
    let at = random.random_range(0..bytes.len());
    match random.random_range(0..20) {
        0 => {
            bytes.truncate(at);
            (bytes, format!("cut to {at}"))
        }
        1..5 => {
            let other = (at + [1, 2, 8][random.random_range(0..3)]).min(bytes.len() - 1);
            bytes.swap(at, other);
            (bytes, format!("{at} and {other} swapped"))
        }
        5..9 => {
            bytes[at] = [0, 1, 0xff, 0x80][random.random_range(0..4)];
            let value = bytes[at];
            (bytes, format!("{at} = {value}"))
        }
        _ => {
            let bits = random.random_range(1..=255u8);
            bytes[at] ^= bits;
            (bytes, format!("{at} ^ {bits:#x}"))
        }
    }
}

/// What is wrong with drift's reading of a file, by what h5py says of it.
fn compare(h5py: &Value, conformers: &[Conformer], skipped: &[SkippedRecord]) -> Result<(), String> {
    let Some(groups) = h5py.as_object() else {
        return if conformers.is_empty() { Ok(()) } else { Err("read what h5py refuses".to_owned()) };
    };
    let is_store = groups.contains_key("");
    let mut left: Vec<&Conformer> = conformers.iter().rev().collect();
    let mut missing = Vec::new();
    // In drift's order.
    let mut paths: Vec<&String> = groups.keys().collect();
    paths.sort_by_key(|path| format!("{path}/"));
    for path in paths {
        let records: Vec<&str> = skipped.iter().map(|s| s.record.as_str()).collect();
        let is_skipped =
            [format!("group {path}"), format!("link {path}")].iter().any(|r| records.contains(&r.as_str()));
        let prefix = format!("group {path},");
        let one_by_one = records.iter().filter(|r| r.starts_with(&prefix)).count();
        let Some([molecule, rows]) = groups[path].as_array().map(Vec::as_slice) else {
            // Not read by h5py, or a link.
            missing.extend((!is_skipped && one_by_one == 0).then(|| path.clone()));
            continue;
        };
        let mut read = 0;
        for row in rows.as_array().unwrap() {
            if left.last().is_some_and(|c| (is_store || *molecule == *c.molecule) && same(row, c)) {
                left.pop();
                read += 1;
            }
        }
        if !is_skipped && read + one_by_one < rows.as_array().unwrap().len() {
            missing.push(path.clone());
        }
    }
    match (left.last(), missing.first()) {
        (None, None) => Ok(()),
        (Some(more), _) => Err(format!("read what h5py does not: {} {:?}", more.molecule, more.coordinates)),
        (None, Some(path)) => Err(format!("lost records of `{path}`; skipped {skipped:?}")),
    }
}

/// Whether the coordinates are the same, but for the last digit.
fn same(row: &Value, conformer: &Conformer) -> bool {
    let row = row.as_array().unwrap();
    row.len() == conformer.coordinates.len()
        && row.iter().zip(&conformer.coordinates).all(|(row, xyz)| {
            (0..3).all(|axis| row[axis].as_i64().is_some_and(|x| (x - i64::from(xyz[axis])).abs() <= 1))
        })
}

/// Compares drift with h5py on a file, which holds so many conformers that are none, and its mutants.
fn check(name: &str, whole: &[u8], unsound: usize, more: &[(usize, u8)]) {
    let folder = tempfile::tempdir().unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(13);
    let mut cases = vec![(whole.to_vec(), "whole".to_owned())];
    for &(at, bits) in more {
        let mut bytes = whole.to_vec();
        bytes[at] ^= bits;
        cases.push((bytes, format!("{at} ^ {bits:#x}")));
    }
    cases.extend((0..mutants()).map(|_| mutate(&mut random, whole)));
    for (index, (bytes, _)) in cases.iter().enumerate() {
        std::fs::write(folder.path().join(format!("{index:06}.h5")), bytes).unwrap();
    }
    let judged = judged(folder.path());
    let (mut read, mut refused) = (0, 0);
    let mut faults = Vec::new();
    for ((_, what), (file, h5py)) in cases.iter().zip(&judged) {
        match read_hdf5(&folder.path().join(file)) {
            Ok((conformers, skipped)) => {
                read += 1;
                assert!(
                    what != "whole" || skipped.len() == unsound && !conformers.is_empty(),
                    "{name}: {skipped:?}"
                );
                if let Err(fault) = compare(h5py, &conformers, &skipped) {
                    faults.push(format!("{what}: {fault}"));
                }
            }
            Err(error) => {
                refused += 1;
                assert!(what != "whole", "{error}");
            }
        }
    }
    eprintln!("{name}: {read} read, {refused} refused, {} faults", faults.len());
    assert!(faults.is_empty(), "{name}: {} faults\n{}", faults.len(), faults.join("\n"));
}

#[test]
#[cfg_attr(not(has_h5py), ignore = "needs a Python with h5py")]
fn ani1x_mutants_lose_nothing_in_silence() {
    // The header of a group: its conformers were left out before.
    check("ani1x.h5", &std::fs::read(fixture("ani1x.h5")).unwrap(), 2, &[(8160, 0x7f)]);
}

#[test]
#[cfg_attr(not(has_h5py), ignore = "needs a Python with h5py")]
fn spice_mutants_lose_nothing_in_silence() {
    check("spice.h5", &std::fs::read(fixture("spice.h5")).unwrap(), 0, &[]);
}

#[test]
#[cfg_attr(not(has_h5py), ignore = "needs a Python with h5py")]
fn store_mutants_lose_nothing_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.h5");
    let mut writer = StoreWriter::create(&path, drift::Encoding::FIXED).unwrap();
    for at in 0..40 {
        let coordinates: Vec<[i32; 3]> = (0..3 + at % 4).map(|i| [at * 31, i * 777, -at]).collect();
        let (molecule, skeleton) = (format!("C{}", at / 3), "[C]<>".repeat(coordinates.len()));
        let written = DecimalForms { fixed: true, stripped: false };
        let conformer =
            Conformer { written, ..Conformer::new(molecule.into(), skeleton.into(), coordinates) };
        writer.push(&[conformer]).unwrap();
    }
    writer.finish(Vec::new(), 0).and_then(AtomicFile::commit).unwrap();
    check("store.h5", &std::fs::read(path).unwrap(), 0, &[]);
}
