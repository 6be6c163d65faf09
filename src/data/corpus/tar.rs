//! Reads the headers of tar archives: v7, POSIX (`ustar`, pax) and GNU, with names of bounded length.
//!
//! Source: POSIX.1-2017, `pax`; the GNU tar manual, "Basic Tar Format".

use std::io::{self, BufRead, Read};

use drift_core::io::read_buffered;

const BLOCK: usize = 512;

/// The largest size, in bytes, of a name or of a member's pax header.
const MAX_HEADER_BYTES: u64 = 64 << 10;

/// The kind of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    /// A file with holes, whose positions are in a separate map.
    Sparse,
    /// A link or a device.
    Other,
}

/// A member whose content follows.
pub(super) struct Member {
    pub name: String,
    pub kind: Kind,
}

/// An archive, or several concatenated ones, read once from front to back.
pub(super) struct Tar<'a> {
    reader: &'a mut dyn BufRead,
    /// The number of unread bytes of the current member; `padding` counts the fill bytes after the member.
    left: u64,
    padding: u64,
    /// Whether the last block read consisted of zeros.
    zeros: bool,
}

/// What extra headers before a member's own header state about it.
#[derive(Default)]
struct TarExtensions {
    name: Option<Vec<u8>>,
    size: Option<u64>,
    sparse: bool,
}

impl<'a> Tar<'a> {
    /// Starts at the first header.
    pub(super) fn new(reader: &'a mut dyn BufRead) -> Self {
        Tar { reader, left: 0, padding: 0, zeros: false }
    }

    /// Returns whether the archive ended with a block of zeros. Without this check, an archive truncated between two members would go
    /// unnoticed.
    pub(super) fn has_end_mark(&self) -> bool {
        self.zeros
    }

    /// Returns the content of the current member.
    pub(super) fn content(&mut self) -> Content<'_, 'a> {
        Content(self)
    }

    /// Returns the next member; `None` at the end of the stream.
    pub(super) fn next(&mut self) -> io::Result<Option<Member>> {
        let mut said = TarExtensions::default();
        loop {
            self.skip()?;
            let Some(block) = self.block()? else { return Ok(None) };
            self.zeros = block.iter().all(|&b| b == 0);
            if self.zeros {
                // Archives may be concatenated, so reading continues after an end mark.
                continue;
            }
            if !is_header(&block) {
                return Err(invalid("no tar header where one should be"));
            }
            let (flag, size) = (block[156], number(&block[124..136])?);
            self.expect(size)?;
            match flag {
                b'L' => said.name = Some(self.small(size)?),
                // GNU's long name of a link target. Links are not followed.
                b'K' => drop(self.small(size)?),
                b'x' => pax(&self.small(size)?, &mut said)?,
                // A global header, as git writes for its commit, does not describe a single member.
                b'g' => {}
                _ => return self.member(&block, flag, said).map(Some),
            }
        }
    }

    fn member(&mut self, block: &[u8; BLOCK], flag: u8, said: TarExtensions) -> io::Result<Member> {
        if let Some(size) = said.size {
            self.expect(size)?;
        }
        // Headers before the member's own have room for long names, so they take precedence.
        let name = said.name.unwrap_or_else(|| own_name(block));
        let name = name.split(|&b| b == 0).next().unwrap_or_default();
        let is_folder = name.ends_with(b"/");
        let kind = match flag {
            b'5' => Kind::Folder,
            b'0' | b'7' | 0 if said.sparse => Kind::Sparse,
            b'0' | b'7' | 0 if is_folder => Kind::Folder,
            b'0' | b'7' | 0 => Kind::File,
            b'S' => {
                self.sparse_map(block)?;
                Kind::Sparse
            }
            _ => Kind::Other,
        };
        if matches!(flag, b'1'..=b'6') {
            // No content follows, whatever size the header states.
            self.expect(0)?;
        }
        Ok(Member { name: String::from_utf8_lossy(name).into_owned(), kind })
    }

    /// Skips the blocks that continue the map of a sparse file.
    fn sparse_map(&mut self, block: &[u8; BLOCK]) -> io::Result<()> {
        let mut more = block[482] != 0;
        while more {
            let block = self.block()?.ok_or(io::ErrorKind::UnexpectedEof)?;
            more = block[504] != 0;
        }
        Ok(())
    }

    /// Prepares to read a content of `size` bytes.
    fn expect(&mut self, size: u64) -> io::Result<()> {
        let padded = size.checked_next_multiple_of(BLOCK as u64).filter(|&n| n <= i64::MAX as u64);
        let Some(padded) = padded else { return Err(invalid("a member larger than any file")) };
        (self.left, self.padding) = (size, padded - size);
        Ok(())
    }

    /// Reads the whole content of an extra header.
    fn small(&mut self, size: u64) -> io::Result<Vec<u8>> {
        if size > MAX_HEADER_BYTES {
            return Err(invalid(&format!("a name of {size} bytes; at most {MAX_HEADER_BYTES} are read")));
        }
        let mut bytes = Vec::new();
        self.content().read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Skips the rest of the current member.
    fn skip(&mut self) -> io::Result<()> {
        // Members are padded to whole blocks.
        self.left += std::mem::take(&mut self.padding);
        loop {
            let mut content = self.content();
            let n = content.fill_buf()?.len();
            if n == 0 {
                return Ok(());
            }
            content.consume(n);
        }
    }

    /// Returns the next block; `None` at the end, where a trailing block of zeros may be incomplete.
    fn block(&mut self) -> io::Result<Option<[u8; BLOCK]>> {
        let mut block = [0; BLOCK];
        let mut len = 0;
        while len < BLOCK {
            match self.reader.read(&mut block[len..]) {
                Ok(0) if len == 0 || self.zeros && block.iter().all(|&b| b == 0) => return Ok(None),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => len += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(block))
    }
}

/// Reads the content of a member. A truncated content is an error.
pub(super) struct Content<'t, 'a>(&'t mut Tar<'a>);

impl Read for Content<'_, '_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, out)
    }
}

impl BufRead for Content<'_, '_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.0.left == 0 {
            return Ok(&[]);
        }
        let available = self.0.reader.fill_buf()?;
        if available.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let n = usize::try_from(self.0.left).unwrap_or(usize::MAX).min(available.len());
        Ok(&available[..n])
    }

    fn consume(&mut self, n: usize) {
        self.0.left -= n as u64;
        self.0.reader.consume(n);
    }
}

/// Returns whether a block is a header: its stored checksum equals the sum of its bytes, with the checksum field taken as spaces.
pub(super) fn is_header(block: &[u8; BLOCK]) -> bool {
    let at = |i: usize, b: u8| if (148..156).contains(&i) { b' ' } else { b };
    let bytes = || block.iter().enumerate().map(|(i, &b)| at(i, b));
    let unsigned: i64 = bytes().map(i64::from).sum();
    // Some old programs summed signed bytes.
    let signed: i64 = bytes().map(|b| i64::from(b as i8)).sum();
    let stored = octal(&block[148..156]).and_then(|n| i64::try_from(n).ok());
    stored.is_some_and(|stored| stored == unsigned || stored == signed)
}

/// Parses a number in octal digits, up to the first space or NUL.
fn octal(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?.trim_matches(|c: char| c == ' ' || c == '\0');
    let text = text.split(['\0', ' ']).next().unwrap_or_default();
    if text.is_empty() { None } else { u64::from_str_radix(text, 8).ok() }
}

/// Parses a size: octal digits, or a big-endian binary number for sizes too large for them.
fn number(field: &[u8]) -> io::Result<u64> {
    if field.iter().all(|&b| b == 0 || b == b' ') {
        return Ok(0);
    }
    let Some(&0x80) = field.first() else {
        return octal(field).ok_or_else(|| invalid("a size that is not a number"));
    };
    field[1..]
        .iter()
        .try_fold(0u64, |n, &b| n.checked_mul(256).map(|n| n + u64::from(b)))
        .ok_or_else(|| invalid("a member larger than any file"))
}

/// Returns the name in the member's own header.
fn own_name(block: &[u8; BLOCK]) -> Vec<u8> {
    let text = |field: &[u8]| field.split(|&b| b == 0).next().unwrap_or_default().to_vec();
    let name = text(&block[..100]);
    // GNU stores other data where POSIX stores the folder.
    let prefix = if &block[257..263] == b"ustar\0" { text(&block[345..500]) } else { Vec::new() };
    if prefix.is_empty() { name } else { [prefix, name].join(&b'/') }
}

/// Reads name and size from a pax header, a sequence of `len key=value\n`.
fn pax(bytes: &[u8], said: &mut TarExtensions) -> io::Result<()> {
    let broken = || invalid("a broken pax header");
    let mut rest = bytes;
    while !rest.is_empty() {
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let len = std::str::from_utf8(&rest[..digits]).ok().and_then(|n| n.parse::<usize>().ok());
        let record =
            len.filter(|&len| len > digits + 1).and_then(|len| rest.get(..len)).ok_or_else(broken)?;
        let pair = record[digits + 1..].strip_suffix(b"\n").ok_or_else(broken)?;
        let at = pair.iter().position(|&b| b == b'=').ok_or_else(broken)?;
        let (key, value) = (&pair[..at], &pair[at + 1..]);
        match key {
            b"path" => said.name = Some(value.to_vec()),
            b"size" => {
                let size = std::str::from_utf8(value).ok().and_then(|n| n.parse().ok());
                said.size = Some(size.ok_or_else(broken)?);
            }
            _ => said.sparse |= key.starts_with(b"GNU.sparse."),
        }
        rest = &rest[record.len()..];
    }
    Ok(())
}

fn invalid(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem.to_owned())
}
