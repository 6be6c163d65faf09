//! Recognizes formats by content.

use std::io::{self, BufRead, Read};

use super::table::FirstLine;
use super::{plain, table, tar};
use drift_core::io::{UnsupportedKind, is_zip};
use memchr::memmem;

/// The number of bytes at the start of a stream that are examined to recognize its format.
pub(super) const PREFIX_BYTES: u64 = 64 << 10;

/// The formats that drift reads, recognized by content, never by file name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object per line.
    Jsonl,
    /// One enriched SMILES per line, with or without tags.
    Plain,
    /// CSV or TSV with a header that names a column of texts.
    Table,
    /// MDL structure-data file, V2000 or V3000.
    Sdf,
    /// Concatenated XYZ frames.
    Xyz,
    /// GEOM's `*_crude.msgpack`.
    Msgpack,
    /// GEOM's `rdkit_folder`, one pickle per molecule.
    Pickle,
    /// HDF5: drift's own store, SPICE, ANI-1x.
    Hdf5,
}

/// The list of formats for messages.
pub(super) const KNOWN_FORMATS: &str = "drift reads JSONL, CSV, TSV, enriched text, SDF, XYZ, msgpack, pickle and HDF5, each also as .gz, .zst, .tar or .zip";

const HDF5_MAGIC: &[u8] = b"\x89HDF\r\n\x1a\n";
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

drift_core::named!(Format {
    Jsonl: "JSON Lines",
    Plain: "enriched text",
    Table: "a table",
    Sdf: "SDF",
    Xyz: "XYZ",
    Msgpack: "msgpack",
    Pickle: "a pickle",
    Hdf5: "HDF5"
});

impl Format {
    /// Returns the format of a stream that begins with `prefix`; `None` if it is unknown.
    pub fn from_prefix(prefix: &[u8]) -> Option<Format> {
        if prefix.starts_with(HDF5_MAGIC) {
            return Some(Format::Hdf5);
        }
        // The lines of an archive may look like those of a file: they may be those of its first member.
        if is_tar(prefix) || UnsupportedKind::of(prefix).is_some() {
            return None;
        }
        // A pickle of protocol 2 to 5. An empty msgpack map is also 0x80, but in a file of maps the next byte is not 2 to 5.
        if let [0x80, 2..=5, ..] = prefix {
            return Some(Format::Pickle);
        }
        if is_old_pickle(prefix) {
            return Some(Format::Pickle);
        }
        if is_msgpack_map(prefix) {
            return Some(Format::Msgpack);
        }
        Format::of_text(prefix.strip_prefix(BYTE_ORDER_MARK).unwrap_or(prefix))
    }

    fn of_text(prefix: &[u8]) -> Option<Format> {
        // SDF is checked first, since its title may look like any other format. No other format ends its fourth line like this.
        let fourth = prefix.split(|&b| b == b'\n').nth(3).unwrap_or(b"").trim_ascii_end();
        if fourth.ends_with(b"V2000") || fourth.ends_with(b"V3000") || is_bare_counts(fourth, prefix) {
            return Some(Format::Sdf);
        }
        let text = prefix.trim_ascii_start();
        let line = text.split(|&b| b == b'\n').next().unwrap_or(text);
        if line.first() == Some(&b'{') {
            // A line with only a brace begins a JSON document that spans lines.
            return (line.trim_ascii_end() != b"{" && !is_geom_summary(line)).then_some(Format::Jsonl);
        }
        if plain::begins_like_text(line) {
            return Some(Format::Plain);
        }
        if let FirstLine::Header(_) = FirstLine::of_content(text) {
            return Some(Format::Table);
        }
        let number = line.trim_ascii_end();
        (!number.is_empty() && number.len() <= 10 && number.iter().all(u8::is_ascii_digit))
            .then_some(Format::Xyz)
    }
}

/// Returns what can be said of content that is no format that drift reads.
pub(super) fn unknown(prefix: &[u8]) -> (String, String) {
    if prefix.is_empty() {
        return ("the file is empty".to_owned(), KNOWN_FORMATS.to_owned());
    }
    if is_tar(prefix) || is_zip(prefix) {
        return ("an archive inside an archive".to_owned(), KNOWN_FORMATS.to_owned());
    }
    if let Some(kind) = UnsupportedKind::of(prefix) {
        return (format!("is {}", kind.name), kind.remedy.to_owned());
    }
    let text = prefix.strip_prefix(BYTE_ORDER_MARK).unwrap_or(prefix).trim_ascii_start();
    if is_geom_summary(text) {
        let remedy =
            "its conformers are in the pickles beside it: give their folder, such as rdkit_folder/drugs";
        return ("is GEOM's summary, which has no conformers".to_owned(), remedy.to_owned());
    }
    if is_json_document(text) {
        let remedy = "write one object a line, for an array as `jq -c '.[]' FILE` does";
        return ("is one JSON document, not JSON Lines".to_owned(), remedy.to_owned());
    }
    match table::problem(&FirstLine::of_content(text)) {
        Some(problem) => problem,
        None => ("unknown content".to_owned(), KNOWN_FORMATS.to_owned()),
    }
}

/// Returns whether a text is an array of objects, or an object that spans lines. Behind `[` enriched text has an atom.
fn is_json_document(text: &[u8]) -> bool {
    let inside = text.strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
    text.starts_with(b"{") || inside.is_some_and(|inside| matches!(inside.first(), Some(b'{' | b']')))
}

/// Returns whether a text is the summary of GEOM's `rdkit_folder`: an object from SMILES to objects that name a pickle. A row that
/// names one among its own fields may hold a text.
fn is_geom_summary(text: &[u8]) -> bool {
    let key = text.strip_prefix(b"{").and_then(|rest| rest.trim_ascii_start().strip_prefix(b"\""));
    let value = key.and_then(|key| Some(key[memchr::memchr(b'"', key)? + 1..].trim_ascii_start()));
    let value = value.and_then(|rest| rest.strip_prefix(b":")).map(<[u8]>::trim_ascii_start);
    value.is_some_and(|value| value.starts_with(b"{") && memmem::find(value, b"\"pickle_path\":").is_some())
}

/// Returns whether the fourth line of a text is a counts line of a mol block without a version: two numbers of three columns each, more
/// columns of numbers, and an `M  END` later in the text.
fn is_bare_counts(line: &[u8], text: &[u8]) -> bool {
    let is_number = |field: &[u8]| {
        let field = field.trim_ascii();
        !field.is_empty() && field.iter().all(u8::is_ascii_digit)
    };
    let counts =
        line.first_chunk::<6>().is_some_and(|counts| is_number(&counts[..3]) && is_number(&counts[3..]));
    counts
        && line.iter().all(|b| b.is_ascii_digit() || *b == b' ')
        && memmem::find(text, b"\nM  END").is_some()
}

/// Returns whether this is a pickle of protocol 0 or 1, which have no mark. Recognized are a container that is put into the memo at once,
/// and a class with which pickles of molecules begin.
fn is_old_pickle(prefix: &[u8]) -> bool {
    match prefix {
        [b'(', b'd' | b'l' | b't', b'p', digit, ..] => digit.is_ascii_digit(),
        [b'(', b'd' | b'l' | b't', b'q', ..] | [b'}' | b']' | b')', b'q', _, ..] => true,
        [b'c', rest @ ..] => [&b"rdkit.Chem"[..], b"copy_reg\n", b"collections\n"]
            .iter()
            .any(|module| rest.starts_with(module)),
        _ => false,
    }
}

/// Returns whether this is a map whose first key is a string. `prefix` may be the whole input.
fn is_msgpack_map(prefix: &[u8]) -> bool {
    let key = match prefix.first() {
        Some(0x81..=0x8f) => prefix.get(1),
        Some(0xde) => prefix.get(3),
        Some(0xdf) => prefix.get(5),
        _ => None,
    };
    matches!(key, Some(0xa0..=0xbf | 0xd9..=0xdb))
}

/// Returns whether a stream that begins with `prefix` is a tar archive. POSIX and GNU archives have a mark; older ones are recognized by
/// their checksum.
pub(crate) fn is_tar(prefix: &[u8]) -> bool {
    prefix.get(257..262) == Some(b"ustar") || prefix.first_chunk().is_some_and(tar::is_header)
}

/// Reads the beginning of a stream, up to [`PREFIX_BYTES`]. The caller chains it before the rest.
pub(super) fn prefix(reader: &mut dyn BufRead) -> io::Result<Vec<u8>> {
    let mut prefix = Vec::new();
    reader.take(PREFIX_BYTES).read_to_end(&mut prefix)?;
    Ok(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_json_document_is_no_json_lines() {
        for text in ["[{\"text\": \"[C]<1,2,3>\"}]", "\n[\n  {\n", "[]", "{\n  \"text\": 1\n}"] {
            let (reason, remedy) = unknown(text.as_bytes());
            assert_eq!(reason, "is one JSON document, not JSON Lines", "{text}");
            assert!(remedy.contains("jq"), "{text}: {remedy}");
        }
        assert_eq!(unknown(b"[CH3] and more").0, "unknown content");
    }

    #[test]
    fn content_tells_the_format() {
        let sdf = b"7\n  x\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\r\n";
        let cases: &[(&[u8], Option<Format>)] = &[
            (b"\x89HDF\r\n\x1a\n\0\0", Some(Format::Hdf5)),
            (b"\x80\x04\x95", Some(Format::Pickle)),
            (b"(dp0\nVCCO\np1\n", Some(Format::Pickle)),
            (b"}q\x00X\x03", Some(Format::Pickle)),
            (b"crdkit.Chem.rdchem\nMol\n", Some(Format::Pickle)),
            (b"(CCO)\n", None),
            (b"\x81\xa3CCO\x81", Some(Format::Msgpack)),
            (b"\xde\x03\xe8\xd9\x20", Some(Format::Msgpack)),
            (b"\x80\x81", None),
            (b"\n {\"a\": 1}\n", Some(Format::Jsonl)),
            (b"\xef\xbb\xbf{\"a\": 1}", Some(Format::Jsonl)),
            (b"{\"a\": [1,", Some(Format::Jsonl)),
            (b"{\"broken\n{\"a\": 1}\n", Some(Format::Jsonl)),
            (b"{\n  \"a\": 1\n}\n", None),
            (b"[C]<1,2,3>", Some(Format::Plain)),
            (b"<|begin_of_text|>[SMILES]C[/SMILES]", Some(Format::Plain)),
            (b"[{\"a\": 1}]", None),
            (b"{\"CCO\": {\"uniqueconfs\": 3, \"pickle_path\": \"drugs/CCO.pickle\"}}", None),
            (b"{\"pickle_path\": \"drugs/CCO.pickle\", \"text\": \"[C]<1,2,3>\"}", Some(Format::Jsonl)),
            (b"12\ncomment\nC 0 0 0\n", Some(Format::Xyz)),
            (sdf, Some(Format::Sdf)),
            (b"7\n\n\n  1  0  0  0\n    0.0000    0.0000    0.0000 C\nM  END\n", Some(Format::Sdf)),
            (b"7\n\n\n  1  0  0  0\n    0.0000    0.0000    0.0000 C\n", Some(Format::Xyz)),
            (b"", None),
            (b"SMILES,n\nC,1\n", None),
            (b"name,enriched_text\r\n", Some(Format::Table)),
            (b"# made today\n\n#,\nname,enriched_text\r\n", Some(Format::Table)),
            (b"# made today\nnothing else", None),
            (b"\xef\xbb\xbf\"enriched_text\"\tname\nx", Some(Format::Table)),
            (b"PK\x03\x04\x14\0\0\0\0\0a.sdf\n1\n2\n  1  0  0  0  0  0  0  0  0  0999 V2000", None),
        ];
        for (prefix, format) in cases {
            assert_eq!(Format::from_prefix(prefix), *format, "{:?}", String::from_utf8_lossy(prefix));
        }
    }
}
