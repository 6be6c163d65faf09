//! GEOM's MessagePack: the fixture of `tests/fixtures/make_msgpack.py`, and damaged input.

use std::io::{BufReader, Cursor};

use drift::corpus::{Conformer, SkippedRecord, Source, msgpack};
use drift::{Error, Result};

use crate::common::{collect, fixture};

/// Reads bytes through a buffer of `capacity`.
fn read_through(bytes: &[u8], capacity: usize) -> Result<(Vec<Conformer>, Vec<SkippedRecord>)> {
    let mut reader = BufReader::with_capacity(capacity, Cursor::new(bytes));
    collect(|context, emit| {
        let source = Source { name: "crude.msgpack".to_owned(), reader: &mut reader };
        msgpack::read(source, context, emit)
    })
}

fn read(bytes: &[u8]) -> Result<(Vec<Conformer>, Vec<SkippedRecord>)> {
    read_through(bytes, 1 << 16)
}

fn geom() -> Vec<u8> {
    std::fs::read(fixture("geom_crude.msgpack")).unwrap()
}

#[test]
fn good_conformers_are_read_in_any_order_of_keys() {
    let (conformers, _) = read(&geom()).unwrap();
    let long = "C".repeat(300);
    let seen: Vec<(&str, &str, i32)> =
        conformers.iter().map(|c| (&*c.molecule, &*c.skeleton, c.coordinates[0][0])).collect();
    assert_eq!(
        seen,
        [
            ("CO", "[C]<>[O]<>", 5_000),
            ("CO", "[C]<>[O]<>", 15_000),
            ("CO", "[C]<>[O]<>", 25_000),
            ("[O-]C", "[C]<>[O]<>", 35_000),
            ("[O-]C", "[C]<>[O]<>", 45_000),
            (long.as_str(), "[C]<>[O]<>", 55_000),
        ]
    );
    assert_eq!(conformers[0].coordinates, [[5_000, -12_500, 1], [-1_234, 20_000, 31_415]]);
}

#[test]
fn bad_records_are_named() {
    let (_, skipped) = read(&geom()).unwrap();
    let seen: Vec<String> = skipped.iter().map(|s| format!("{}: {}", s.record, s.reason)).collect();
    assert_eq!(
        seen,
        [
            "molecule 1 (CO), conformer 3: atom 1: NaN: not finite",
            "molecule 1 (CO), conformer 4: atom 1: it is not a list of four numbers",
            "molecule 1 (CO), conformer 5: atom 1: 6.5 is no atomic number",
            "molecule 1 (CO), conformer 6: atom 1: inf: not finite",
            "molecule 1 (CO), conformer 7: atom 1: 1000000000: beyond 99,999.9999 Å",
            "molecule 1 (CO), conformer 8: no heavy atom",
            "molecule 1 (CO), conformer 9: its `xyz` is not a list",
            "molecule 1 (CO), conformer 10: atom 1: it is not a list of four numbers",
            "molecule 1 (CO), conformer 11: it has no `xyz`",
            "molecule 1 (CO), conformer 12: it is not a map",
            "molecule 2 (C): it has no `conformers`",
            "molecule 3 (N): it is not a map",
            "molecule 4 (O): its `conformers` are neither a list nor a map",
            "molecule 6 (?): its key is not a text of at most 65,536 bytes in UTF-8",
        ]
    );
}

#[test]
fn the_reader_s_blocks_make_no_difference() {
    let whole = read(&geom()).unwrap();
    for capacity in [1, 2, 7, 36, 37, 1000] {
        assert!(read_through(&geom(), capacity).unwrap() == whole, "{capacity}");
    }
}

/// The message of an input error.
fn refusal(bytes: &[u8]) -> String {
    match read(bytes) {
        Err(error @ Error::Input { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_truncated_file_is_refused_at_every_length() {
    let whole = geom();
    // Between the two top-level maps the file may end.
    let ends: Vec<usize> = (0..whole.len()).filter(|&len| read(&whole[..len]).is_ok()).collect();
    assert_eq!(ends.len(), 2, "{ends:?}");
    for len in (1..whole.len()).filter(|len| !ends.contains(len)) {
        let message = refusal(&whole[..len]);
        assert!(
            message.starts_with(&format!("crude.msgpack: byte {len}: ends in the middle of a value")),
            "{message}"
        );
    }
}

#[test]
#[cfg_attr(not(all_tests), ignore = "takes long: DRIFT_ALL=1")]
fn damaged_files_never_panic() {
    let whole = geom();
    for at in 0..whole.len() {
        // Every marker, and of those that hold a number in their bits every eighth.
        for value in (0..=255).filter(|value| (0xc0..=0xdf).contains(value) || value % 8 == 0) {
            let mut bytes = whole.clone();
            bytes[at] = value;
            assert!(matches!(read(&bytes), Ok(_) | Err(Error::Input { .. })));
        }
    }
}

#[test]
fn deep_nesting_and_huge_lengths_are_refused() {
    let mut deep = vec![0x81, 0xa1, b'C'];
    deep.resize(10_000, 0x91);
    assert_eq!(
        refusal(&deep),
        "crude.msgpack: byte 68: nested deeper than 64 levels; check that it is complete, and GEOM's *_crude.msgpack"
    );
    for huge in [
        &[0xdf, 0xff, 0xff, 0xff, 0xff][..],
        &[0x81, 0xdb, 0xff, 0xff, 0xff, 0xff, b'C'],
        &[0x81, 0xa1, b'C', 0xdd, 0xff, 0xff, 0xff, 0xff, 0x01],
        &[0x81, 0xa1, b'C', 0xc9, 0xff, 0xff, 0xff, 0xff, 0x01],
    ] {
        assert!(refusal(huge).contains("ends in the middle of a value"));
    }
    assert!(refusal(b"\x93\x01\x02\x03").contains("byte 0: a top-level value is not a map of molecules"));
    assert!(refusal(b"\x81\xc1").contains("byte 1: byte 0xc1, which MessagePack never uses"));
}
