//! Bad input: refused or skipped with a reason, never a panic, never silence.

use proptest::prelude::*;

use crate::bad_input::bad_rows;
use crate::readers::{LINE, ROW, SDF, XYZ, gzip, read, refusal, tar};
use crate::support::Folder;

/// Reads the good row after `bad`, and gives the reason why the bad one was skipped.
fn skipped(bad: &[u8]) -> String {
    let folder = Folder::new();
    let content = [ROW.as_bytes(), bad, ROW.as_bytes()].join(&b'\n');
    let (conformers, summary) = read(folder.file("x", content)).unwrap();
    assert_eq!((conformers.len(), summary.skipped), (2, 1), "{}", String::from_utf8_lossy(bad));
    assert_eq!(summary.skipped_records[0].record, "line 2");
    summary.skipped_records[0].reason.clone()
}

#[test]
fn bad_rows_are_skipped_with_a_reason() {
    let row = |text: &str| format!(r#"{{"embedded_smiles": "{text}"}}"#).into_bytes();
    let own = [
        (row("[C]<0.0000,inf,0.0000>"), "byte 4: number `inf`: not a number of the form -?digits[.digits]"),
        (row("[C]<0.0000,0.0000,1000000.0000>"), "byte 4: number `1000000.0000`: beyond 99,999.9999 Å"),
        (row("[C]<0,0,0>([C]<0,0,0>"), "byte 21: unbalanced parentheses"),
        (row("[C]<0,0,0>\\u0000"), "byte 10: unexpected '\\0'"),
        (b"\xff\xfe{}".to_vec(), "byte 0: not UTF-8"),
        (b"{\"embedded_smiles\": \"[C]<1,2,3>\xc3\"}".to_vec(), "byte 31: not UTF-8"),
        (b"\x00".to_vec(), "not a JSON object: `\\u{0}`"),
        (b"[]".to_vec(), "not a JSON object: `[]`"),
        (b"{".to_vec(), "column 1: EOF while parsing an object"),
    ];
    for (bad, reason) in bad_rows().into_iter().chain(own) {
        assert_eq!(skipped(&bad), reason);
    }
    assert!(skipped(&b"{\"a\":".repeat(500_000)).ends_with("EOF while parsing a value"));
}

#[test]
fn a_line_of_100_mb_is_passed_over() {
    let folder = Folder::new();
    let mut content = format!("{ROW}\n{{\"embedded_smiles\": \"").into_bytes();
    content.resize(content.len() + 100_000_000, b'[');
    content.extend(format!("\n{ROW}\n").bytes());
    let (conformers, summary) = read(folder.file("x.gz", gzip(&content))).unwrap();
    assert_eq!((conformers.len(), summary.skipped), (2, 1));
    let skipped = &summary.skipped_records[0];
    assert_eq!((&*skipped.record, &*skipped.reason), ("line 2", "longer than 16 MiB"));
}

#[test]
fn what_cannot_be_a_corpus_is_refused() {
    let folder = Folder::new();
    for (content, problem) in [
        (b"".to_vec(), "the file is empty; drift reads JSONL"),
        (gzip(b""), "the file is empty"),
        (b"smiles,n\nC,1\n".to_vec(), "is a table without a column of texts; its columns are `smiles`, `n`"),
        (b"{\n  \"smiles\": \"C\"\n}\n".to_vec(), "is one JSON document, not JSON Lines"),
        (gzip(&gzip(ROW.as_bytes())), "unknown content"),
        (b"{}\n{}\n".to_vec(), "no conformer could be read: 2 records skipped, first: line 1: no field"),
        (b"[C]<1,2>".to_vec(), "no conformer could be read: 1 record skipped, first: line 1: byte 4"),
        (tar(&[]), "unknown content"),
        (tar(&[("a", b"unknown")]), "no conformer could be read: 1 record skipped, first: file: unknown"),
        (tar(&[("a", &tar(&[("b", ROW.as_bytes())]))]), "an archive inside an archive"),
    ] {
        let message = refusal(folder.file("x", content));
        assert!(message.contains(problem), "{message}");
    }
    assert!(refusal(folder.path().join("none")).ends_with("none: no such file or folder; check the path"));
}

#[test]
fn truncated_and_damaged_containers_are_refused() {
    let folder = Folder::new();
    let rows: String = (0..500).map(|i| ROW.replace("1.0", &format!("{i}.0")) + "\n").collect();
    let zipped = gzip(rows.as_bytes());
    let archive = tar(&[("a", rows.as_bytes()), ("b", LINE.as_bytes())]);
    let zipped_archive = gzip(&archive);
    let refused = |bytes: &[u8]| {
        let message = refusal(folder.file("x", bytes));
        assert!(
            message.contains("the file is truncated or damaged") && message.ends_with("fetch it again"),
            "{message}"
        );
    };
    for bytes in [&zipped, &zipped_archive] {
        for cut in [bytes.len() - 1, bytes.len() - 8, bytes.len() / 2, 12] {
            refused(&bytes[..cut]);
        }
        let mut flipped = bytes.clone();
        let crc = bytes.len() - 6;
        flipped[crc] ^= 1;
        refused(&flipped);
        refused(&[&bytes[..], b"trailing"].concat());
    }
    for cut in [archive.len() - 1024, archive.len() - 1100, archive.len() / 2] {
        refused(&archive[..cut]);
    }
    // The checksum of the second header.
    let mut flipped = archive.clone();
    let second = archive.len() - 1024 - 1024;
    flipped[second + 1] ^= 1;
    refused(&flipped);
    // A good file beside a broken one does not make it good.
    folder.file("folder/a", ROW);
    folder.file("folder/b.gz", &zipped[..zipped.len() - 4]);
    assert!(refusal(folder.path().join("folder")).contains("folder/b.gz: the file is truncated or damaged"));
}

#[test]
fn a_compressed_member_with_a_bad_end_is_refused() {
    let folder = Folder::new();
    let zipped = gzip(ROW.as_bytes());
    let archive = tar(&[("a.gz", &zipped[..zipped.len() - 3])]);
    let message = refusal(folder.file("x.tar", archive));
    assert!(message.contains("x.tar:a.gz: the file is truncated or damaged"), "{message}");
}

/// Reads `content` as a file; whatever comes of it, it is no panic, and messages are one line.
pub(crate) fn survives(content: &[u8]) {
    let folder = Folder::new();
    match read(folder.file("x", content)) {
        Ok((conformers, _)) => assert!(conformers.iter().all(|c| !c.coordinates.is_empty())),
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
}

/// A few bytes changed, inserted, cut off or doubled.
pub(crate) fn mutated(good: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let edit = (any::<prop::sample::Index>(), 0..4u8, any::<u8>(), any::<prop::sample::Index>());
    prop::collection::vec(edit, 1..6).prop_map(move |edits| {
        let mut bytes = good.clone();
        for (at, kind, byte, other) in edits {
            if bytes.is_empty() {
                break;
            }
            let (at, other) = (at.index(bytes.len()), other.index(bytes.len()));
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => bytes.truncate(at.max(1)),
                _ => bytes.extend_from_within(at.min(other)..at.max(other)),
            }
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        survives(&bytes);
    }

    #[test]
    fn mutated_text_never_panics(bytes in prop_oneof![
        mutated([ROW, ROW, ""].join("\n").into_bytes()),
        mutated([LINE, LINE, ""].join("\n").into_bytes()),
        mutated([XYZ, XYZ].concat().into_bytes()),
        mutated([SDF, SDF].concat().into_bytes()),
    ]) {
        survives(&bytes);
    }

    #[test]
    fn mutated_containers_never_panic(bytes in prop_oneof![
        mutated(gzip(ROW.as_bytes())),
        mutated(tar(&[("a", ROW.as_bytes()), ("b", XYZ.as_bytes())])),
        mutated(gzip(&tar(&[("a", ROW.as_bytes()), ("b", &gzip(SDF.as_bytes()))]))),
    ]) {
        survives(&bytes);
    }
}
