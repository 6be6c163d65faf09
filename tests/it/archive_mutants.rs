//! Damaged archives and pickles, judged by Python's `tarfile` and `pickletools`: drift never reads a pickle that they
//! refuse, and never gives fewer members of an archive without saying so.

use std::collections::BTreeMap;
use std::path::Path;

use drift::corpus::{ReadOptions, ReadSummary, read};
use drift::job::Job;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::common::fixture;
use crate::support::python;

fn summary(path: &Path) -> drift::Result<ReadSummary> {
    read(&[path.to_owned()], &ReadOptions::default(), &Job::default(), &mut |_| Ok(()))
}

/// Compares drift with Python on mutants of a file, all judged in one process.
fn check(seed: &[u8], extension: &str, fault: fn(&Value, &ReadSummary) -> bool) {
    let folder = tempfile::tempdir().unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(17);
    for index in 0..200 {
        let mut bytes = seed.to_vec();
        // The whole first; headers and beginnings are hit more often than their share.
        let end = if index % 2 == 0 { bytes.len() } else { bytes.len().min(2_000) };
        if index > 0 {
            bytes[random.random_range(0..end)] ^= random.random_range(1..=255u8);
        }
        std::fs::write(folder.path().join(format!("{index:03}.{extension}")), bytes).unwrap();
    }
    let said = python("fixtures/judge_archives.py", folder.path(), &["."]);
    let judged: BTreeMap<String, Value> = serde_json::from_str(&said).unwrap();
    for (name, verdict) in &judged {
        match summary(&folder.path().join(name)) {
            Ok(summary) => {
                assert!(!fault(verdict, &summary), "{name}: {verdict}, {summary:?}");
                assert!(!name.starts_with("000") || summary.skipped == 0, "{summary:?}");
            }
            Err(error) => assert!(!name.starts_with("000"), "{error}"),
        }
    }
}

/// An archive of `members`, with a long name, a link and a folder.
fn archive(magic: bool) -> Vec<u8> {
    let text = "[C]<1.0000,2.0000,3.0000>[O]<0.0000,0.0000,0.0000>\n";
    let mut builder = tar::Builder::new(Vec::new());
    for name in ["a", "b/c", &"x".repeat(if magic { 150 } else { 50 })] {
        let mut header = if magic { tar::Header::new_gnu() } else { tar::Header::new_old() };
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

#[test]
#[cfg_attr(not(has_h5py), ignore = "needs a Python of its own")]
fn archives_lose_no_member_in_silence() {
    for magic in [true, false] {
        check(&archive(magic), "tar", |verdict, summary| {
            verdict.as_u64().is_none_or(|members| summary.conformers + summary.skipped < members)
        });
    }
}

#[test]
#[cfg_attr(not(has_h5py), ignore = "needs a Python of its own")]
fn what_pickletools_refuses_is_refused() {
    let seed = std::fs::read(fixture("test_set.pickle")).unwrap();
    check(&seed, "pickle", |verdict, _| verdict.is_null());
}

#[test]
fn old_archives_are_read_and_endless_names_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar");
    std::fs::write(&path, archive(false)).unwrap();
    assert_eq!(summary(&path).unwrap().conformers, 3);
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::GNULongName);
    header.set_size(6 << 30);
    header.set_cksum();
    std::fs::write(&path, header.as_bytes()).unwrap();
    let message = summary(&path).unwrap_err().to_string();
    assert!(message.contains("a name of 6442450944 bytes; at most 65536 are read"), "{message}");
}
