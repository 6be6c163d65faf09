//! A pull parser for MessagePack (github.com/msgpack/msgpack, spec.md). It reads one header at a time from a window of the input.
//! It allocates nothing by a length that the input declares.

use std::io::BufRead;

use crate::corpus::damage::read_error;
use drift_core::{Error, Job, Result};

/// The size of the window in bytes. The longest text that can be returned is a quarter of it.
const WINDOW: usize = 256 << 10;

/// The longest text, in bytes, that [`Pull::text`] returns.
pub(super) const MAX_TEXT: usize = WINDOW / 4;

/// The deepest nesting of a value that can be skipped.
const MAX_DEPTH: usize = 64;

/// The start of a value: a whole scalar, or the size of what follows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Header {
    /// Nil, true or false.
    Other,
    /// An integer or a float, converted to a double.
    Number(f64),
    /// A text of this many bytes, which follow.
    Text(usize),
    /// This many bytes follow: binary data, or an extension with its type.
    Bytes(usize),
    /// This many values follow.
    Array(u32),
    /// This many key-value pairs follow.
    Map(u32),
}

/// The input and the current position in it.
pub(super) struct Pull<'a> {
    name: String,
    reader: &'a mut dyn BufRead,
    job: &'a Job,
    window: Box<[u8]>,
    /// The bytes in the window that are not consumed yet are `window[at..end]`.
    at: usize,
    end: usize,
    /// The number of bytes of the input before the window.
    before: u64,
}

impl<'a> Pull<'a> {
    /// Reads from `reader`; `name` is its name in messages.
    pub(super) fn new(name: String, reader: &'a mut dyn BufRead, job: &'a Job) -> Self {
        Pull { name, reader, job, window: vec![0; WINDOW].into(), at: 0, end: 0, before: 0 }
    }

    /// Returns the number of bytes consumed so far.
    pub(super) fn offset(&self) -> u64 {
        self.before + self.at as u64
    }

    /// Returns an error at byte `offset`.
    pub(super) fn error(&self, offset: u64, problem: &str) -> Error {
        Error::input(
            format!("{}: byte {offset}", self.name),
            problem,
            "check that it is complete, and GEOM's *_crude.msgpack",
        )
    }

    /// Returns whether the input is exhausted.
    pub(super) fn is_end(&mut self) -> Result<bool> {
        Ok(self.at == self.end && self.refill()? == 0)
    }

    /// Returns the unconsumed bytes in the window, without reading more.
    pub(super) fn peek(&self) -> &[u8] {
        &self.window[self.at..self.end]
    }

    /// Consumes `n` bytes of the window.
    pub(super) fn advance(&mut self, n: usize) {
        self.at = (self.at + n).min(self.end);
    }

    /// Moves the unconsumed bytes to the front and reads more behind them. Returns the number of bytes read, 0 at the end of the
    /// input.
    fn refill(&mut self) -> Result<usize> {
        self.job.check()?;
        self.window.copy_within(self.at..self.end, 0);
        self.before += self.at as u64;
        (self.at, self.end) = (0, self.end - self.at);
        let mut read = 0;
        // Filling at least half the window keeps such moves rare.
        while self.end < WINDOW / 2 {
            let block = match self.reader.fill_buf() {
                Ok(block) => block,
                Err(error) => return Err(read_error(&self.name, error)),
            };
            let n = block.len().min(WINDOW - self.end);
            if n == 0 {
                break;
            }
            self.window[self.end..self.end + n].copy_from_slice(&block[..n]);
            self.reader.consume(n);
            self.end += n;
            read += n;
        }
        Ok(read)
    }

    /// Consumes and returns the next `N` bytes.
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.need(N)?;
        let mut out = [0; N];
        out.copy_from_slice(&self.window[self.at..self.at + N]);
        self.at += N;
        Ok(out)
    }

    /// Ensures that `n` bytes, at most a quarter of the window, are in the window.
    fn need(&mut self, n: usize) -> Result<()> {
        if self.end - self.at >= n {
            return Ok(());
        }
        self.refill()?;
        if self.end - self.at < n {
            return Err(self.error(self.before + self.end as u64, "ends in the middle of a value"));
        }
        Ok(())
    }

    /// Reads the next header.
    pub(super) fn header(&mut self) -> Result<Header> {
        let [first] = self.bytes()?;
        Ok(match first {
            0x00..=0x7f => Header::Number(f64::from(first)),
            0x80..=0x8f => Header::Map(u32::from(first & 0x0f)),
            0x90..=0x9f => Header::Array(u32::from(first & 0x0f)),
            0xa0..=0xbf => Header::Text(usize::from(first & 0x1f)),
            0xc0 | 0xc2 | 0xc3 => Header::Other,
            0xc1 => return Err(self.error(self.offset() - 1, "byte 0xc1, which MessagePack never uses")),
            0xc4..=0xc6 => Header::Bytes(self.length(first - 0xc4)?),
            // An extension has one more byte, for its type.
            0xc7..=0xc9 => Header::Bytes(self.length(first - 0xc7)? + 1),
            0xca => Header::Number(f64::from(f32::from_be_bytes(self.bytes()?))),
            0xcb => Header::Number(f64::from_be_bytes(self.bytes()?)),
            0xcc => Header::Number(f64::from(u8::from_be_bytes(self.bytes()?))),
            0xcd => Header::Number(f64::from(u16::from_be_bytes(self.bytes()?))),
            0xce => Header::Number(f64::from(u32::from_be_bytes(self.bytes()?))),
            // Beyond 2⁵³ the last bits are lost, but no number of GEOM that is read is so large.
            0xcf => Header::Number(u64::from_be_bytes(self.bytes()?) as f64),
            0xd0 => Header::Number(f64::from(i8::from_be_bytes(self.bytes()?))),
            0xd1 => Header::Number(f64::from(i16::from_be_bytes(self.bytes()?))),
            0xd2 => Header::Number(f64::from(i32::from_be_bytes(self.bytes()?))),
            0xd3 => Header::Number(i64::from_be_bytes(self.bytes()?) as f64),
            0xd4..=0xd8 => Header::Bytes((1 << (first - 0xd4)) + 1),
            0xd9..=0xdb => Header::Text(self.length(first - 0xd9)?),
            0xdc => Header::Array(u32::from(u16::from_be_bytes(self.bytes()?))),
            0xdd => Header::Array(u32::from_be_bytes(self.bytes()?)),
            0xde => Header::Map(u32::from(u16::from_be_bytes(self.bytes()?))),
            0xdf => Header::Map(u32::from_be_bytes(self.bytes()?)),
            0xe0..=0xff => Header::Number(f64::from(first as i8)),
        })
    }

    /// Reads a length of 1, 2 or 4 bytes (`class` 0, 1 or 2).
    fn length(&mut self, class: u8) -> Result<usize> {
        Ok(match class {
            0 => usize::from(u8::from_be_bytes(self.bytes()?)),
            1 => usize::from(u16::from_be_bytes(self.bytes()?)),
            _ => u32::from_be_bytes(self.bytes()?) as usize,
        })
    }

    /// Reads the next value if it is UTF-8 text (or bytes) of at most [`MAX_TEXT`] bytes; otherwise consumes it and returns `None`.
    pub(super) fn text(&mut self) -> Result<Option<&str>> {
        match self.header()? {
            Header::Text(len) | Header::Bytes(len) if len <= MAX_TEXT => {
                self.need(len)?;
                self.at += len;
                Ok(std::str::from_utf8(&self.window[self.at - len..self.at]).ok())
            }
            other => {
                self.skip_rest(other)?;
                Ok(None)
            }
        }
    }

    /// Reads the header of the next value if it is a map, and returns its number of pairs; otherwise consumes it and returns `None`.
    pub(super) fn map(&mut self) -> Result<Option<u32>> {
        match self.header()? {
            Header::Map(pairs) => Ok(Some(pairs)),
            other => self.skip_rest(other).map(|()| None),
        }
    }

    /// Skips the next value.
    pub(super) fn skip(&mut self) -> Result<()> {
        let header = self.header()?;
        self.skip_rest(header)
    }

    /// Skips the rest of a value whose header was read.
    pub(super) fn skip_rest(&mut self, header: Header) -> Result<()> {
        // The number of values that remain at each level of nesting.
        let mut open: Vec<u64> = Vec::new();
        let mut header = header;
        loop {
            match header {
                Header::Other | Header::Number(_) => {}
                Header::Text(len) | Header::Bytes(len) => self.skip_bytes(len)?,
                Header::Array(n) => open.push(u64::from(n)),
                Header::Map(n) => open.push(u64::from(n) * 2),
            }
            if open.len() > MAX_DEPTH {
                return Err(self.error(self.offset(), "nested deeper than 64 levels"));
            }
            while open.last() == Some(&0) {
                open.pop();
            }
            let Some(left) = open.last_mut() else { return Ok(()) };
            *left -= 1;
            header = self.header()?;
        }
    }

    fn skip_bytes(&mut self, mut n: usize) -> Result<()> {
        loop {
            let now = n.min(self.end - self.at);
            self.at += now;
            n -= now;
            if n == 0 {
                return Ok(());
            }
            self.need(1)?;
        }
    }
}
