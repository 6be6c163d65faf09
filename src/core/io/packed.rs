//! Compressed streams and packed files, recognized by their first bytes: gzip and zstd are decompressed, others are only named.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;

use super::utf16::utf8;

const BUFFER_BYTES: usize = 256 << 10;

/// The number of bytes at the start of a file that [`Compression::of`] and [`Unread::of`] look at.
pub(crate) const PACKED_MAGIC_BYTES: usize = 16;

/// A way of compressing that drift reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// RFC 1952, of one or several members.
    Gzip,
    /// RFC 8878, of one or several frames.
    Zstd,
}

impl Compression {
    /// Returns the compression of a stream that begins with `prefix`.
    pub fn of(prefix: &[u8]) -> Option<Self> {
        match prefix {
            [0x1f, 0x8b, ..] => Some(Compression::Gzip),
            // A frame, or one that holds no data of the stream, as pzstd and zstd's seekable format write them.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Compression::Zstd),
            _ => None,
        }
    }
}

/// `inner`, decompressed if it starts like gzip or zstd, and as UTF-8 if its content is UTF-16 text. Memory is bounded: zstd's frames may refer back to at most 128 MiB, which is
/// what the zstd program accepts without an option.
///
/// # Errors
/// If its first bytes cannot be read, or the decoder cannot be created.
pub fn decompressed<'r, R: BufRead + 'r>(mut inner: R) -> io::Result<Box<dyn BufRead + 'r>> {
    let mut start = Vec::new();
    // A single `fill_buf` may end within the mark.
    inner.by_ref().take(PACKED_MAGIC_BYTES as u64).read_to_end(&mut start)?;
    let compression = Compression::of(&start);
    let whole = io::Cursor::new(start).chain(inner);
    match compression {
        None => utf8(whole),
        Some(Compression::Gzip) => utf8(BufReader::with_capacity(BUFFER_BYTES, Gzip::new(whole))),
        Some(Compression::Zstd) => {
            let decoder = Zstd(zstd::stream::read::Decoder::with_buffer(whole)?);
            utf8(BufReader::with_capacity(BUFFER_BYTES, decoder))
        }
    }
}

/// The members of a gzip file. Zeros behind a member are padding, as for the gzip program and Python: tapes and object stores fill
/// whole blocks. Anything else there is an error.
struct Gzip<R> {
    /// `None` behind the end.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Gzip<R> {
    fn new(inner: R) -> Self {
        Gzip { member: Some(GzDecoder::new(inner)) }
    }
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let n = member.read(out)?;
            if n > 0 || out.is_empty() {
                return Ok(n);
            }
            let inner = self.member.take().map(GzDecoder::into_inner);
            self.member = inner.map(next_member).transpose()?.flatten();
        }
        Ok(0)
    }
}

/// Returns the member behind another one; `None` if only padding follows.
fn next_member<R: BufRead>(mut inner: R) -> io::Result<Option<GzDecoder<R>>> {
    loop {
        let available = inner.fill_buf()?;
        if available.is_empty() {
            return Ok(None);
        }
        let zeros = available.iter().take_while(|byte| **byte == 0).count();
        let is_padding = zeros == available.len();
        inner.consume(zeros);
        if !is_padding {
            return Ok(Some(GzDecoder::new(inner)));
        }
    }
}

/// The frames of a zstd file.
struct Zstd<R: BufRead>(zstd::stream::read::Decoder<'static, R>);

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out).map_err(|error| match error.to_string() {
            // libzstd's own words do not say what to do.
            words if words.contains("too much memory") => {
                let problem = "is compressed by zstd with a window of more than 128 MiB; unpack it first with `zstd -d --long=31`";
                io::Error::new(io::ErrorKind::Unsupported, problem)
            }
            _ => error,
        })
    }
}

/// A kind of packed file that drift does not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsupportedKind {
    /// What it is.
    pub name: &'static str,
    /// What to do with it.
    pub remedy: &'static str,
}

/// The first bytes of the kinds of [`UnsupportedKind`], their names and what to do with them. None of the bytes is text: a title of SDF may begin with `PAR1`. Sources: the
/// formats' own descriptions, and the list of `file` (libmagic).
const UNREAD: [(&[u8], &str, &str); 14] = [
    (ZIP, "a zip archive", "unpack it first, for example with `unzip`"),
    (b"PK\x05\x06", "an empty zip archive", "check that this is the right file"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it first, for example with `7z x`"),
    (b"\xfd7zXZ\0", "an xz file", "unpack it first, for example with `xz -d`"),
    (b"]\0\0", "an lzma file", "unpack it first, for example with `xz -d`"),
    (b"LZIP\x01", "an lzip file", "unpack it first, for example with `lzip -d`"),
    (b"\x04\x22\x4d\x18", "an lz4 file", "unpack it first, for example with `lz4 -d`"),
    (b"Rar!\x1a\x07", "a rar archive", "unpack it first, for example with `unrar x`"),
    (b"\x1f\x9d", "a file of compress", "unpack it first, for example with `gzip -d`"),
    (b"\xff\x06\0\0sNaPpY", "a snappy file", "unpack it first"),
    (b"PAR1\x15", "a Parquet file", TO_CSV),
    (b"ARROW1\0\0", "an Arrow file", TO_CSV),
    (b"SQLite format 3\0", "an SQLite database", "export its table as CSV"),
    (b"MSCF\0\0\0\0", "a cabinet archive", "unpack it first"),
];

/// What to do with a table that drift does not read.
const TO_CSV: &str = "write it as CSV or JSON Lines, for example with `to_csv` of pandas";

/// The first bytes of a zip archive that is not empty.
const ZIP: &[u8] = b"PK\x03\x04";

impl UnsupportedKind {
    /// Returns the kind of a file that begins with `prefix`; `None` for any other file, also for one that drift reads.
    pub fn of(prefix: &[u8]) -> Option<Self> {
        if is_bzip2(prefix) {
            let remedy = "unpack it first, for example with `bzip2 -d`";
            return Some(UnsupportedKind { name: "a bzip2 file", remedy });
        }
        let (_, name, remedy) = *UNREAD.iter().find(|(magic, ..)| prefix.starts_with(magic))?;
        Some(UnsupportedKind { name, remedy })
    }

    /// Returns the error of a file of this kind.
    pub(super) fn error(self) -> io::Error {
        io::Error::new(io::ErrorKind::Unsupported, format!("is {}; {}", self.name, self.remedy))
    }
}

/// Returns whether a file is a zip archive with members.
pub fn is_zip(prefix: &[u8]) -> bool {
    prefix.starts_with(ZIP)
}

/// `BZh`, the size of blocks, and the mark of the first block or of the end. Text may begin with `BZh` too.
fn is_bzip2(prefix: &[u8]) -> bool {
    let marks: [&[u8]; 2] = [b"\x31\x41\x59\x26\x53\x59", b"\x17\x72\x45\x38\x50\x90"];
    prefix.starts_with(b"BZh")
        && prefix.get(3).is_some_and(|level| (b'1'..=b'9').contains(level))
        && prefix.get(4..10).is_some_and(|mark| marks.contains(&mark))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: &[u8]) -> io::Result<Vec<u8>> {
        // In blocks of three bytes, so that marks lie across their borders.
        let inner = BufReader::with_capacity(3, bytes);
        let mut out = Vec::new();
        decompressed(inner)?.read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn zeros_behind_gzip_are_padding_and_nothing_else_is() {
        let (one, two) = (gzip(b"one"), gzip(b"two"));
        for padding in [0, 1, 2, 511, 70_000] {
            let zeros = vec![0; padding];
            assert_eq!(read(&[&one[..], &zeros].concat()).unwrap(), b"one", "{padding}");
            assert_eq!(read(&[&one[..], &zeros, &two, &zeros].concat()).unwrap(), b"onetwo", "{padding}");
            for garbage in [&b"x"[..], b"\x1f", b"\x1f\x8b", b"\n", &two[..two.len() - 1]] {
                assert!(read(&[&one[..], &zeros, garbage].concat()).is_err(), "{padding} {garbage:?}");
            }
        }
        for cut in 2..one.len() {
            assert!(read(&one[..cut]).is_err(), "cut to {cut}");
        }
    }

    #[test]
    fn zstd_frames_follow_one_another_and_cuts_are_found() {
        let frame = |text: &[u8]| zstd::encode_all(text, 3).unwrap();
        let (one, two) = (frame(b"one"), frame(b"two"));
        let skipped = b"\x53\x2a\x4d\x18\x02\0\0\0xx";
        assert_eq!(read(&[&one[..], skipped, &two].concat()).unwrap(), b"onetwo");
        assert_eq!(read(&[&skipped[..], &one].concat()).unwrap(), b"one");
        for cut in 4..one.len() {
            assert!(read(&one[..cut]).is_err(), "cut to {cut}");
        }
        assert!(read(&[&one[..], b"garbage"].concat()).is_err());
    }

    #[test]
    fn a_window_larger_than_128_mib_is_refused_before_it_is_allocated() {
        // A frame of unknown size whose window has 2^31 bytes: no single segment, exponent 21 of 2^10.
        let error = read(b"\x28\xb5\x2f\xfd\0\xa8\x01\0\0").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains("--long=31"), "{error}");
    }

    #[test]
    fn other_packed_files_are_named() {
        let name = |prefix: &[u8]| UnsupportedKind::of(prefix).map(|kind| kind.name);
        assert_eq!(name(b"PK\x03\x04\x14\0"), Some("a zip archive"));
        assert_eq!(name(b"BZh91AY&SY"), Some("a bzip2 file"));
        assert_eq!(name(b"\xfd7zXZ\0\0"), Some("an xz file"));
        for text in [
            &b"BZh9 is a level"[..],
            b"PK",
            b"PAR1 of a title",
            b"LZIP\n",
            b"MSCF1\n",
            b"[C]<1,2,3>",
            b"",
            b"name,enriched_text\n",
            b"\x1f\x8b",
        ] {
            assert_eq!(name(text), None, "{text:?}");
        }
    }
}
