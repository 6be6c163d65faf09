//! Reads lines of bounded length.

use std::io::{self, BufRead};

use memchr::{memchr, memchr2};

/// The lines of a stream, numbered from 1. Memory is bounded whatever the input: the part of a line beyond the limit is skipped.
pub struct BoundedLines<R> {
    reader: R,
    line: Vec<u8>,
    /// The number of bytes kept of a line.
    limit: usize,
    number: u64,
    ends: LineEnds,
    /// Whether the previous line ended with a carriage return, whose line feed may follow.
    returned: bool,
}

/// The characters that end a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineEnds {
    /// A line feed, with or without a carriage return before it.
    #[default]
    Feeds,
    /// A lone carriage return too, as in old Macintosh files. A line that exceeds the limit is an error at once, because it may
    /// never end.
    Any,
}

/// The size of a byte-order mark and a carriage return, which do not count towards the limit.
const MARKS: usize = 4;

/// One line, without its end and without a byte-order mark at the start of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundedLine<'a> {
    /// The bytes of the line, up to the limit.
    pub bytes: &'a [u8],
    /// The line number, from 1.
    pub number: u64,
    /// Whether the line exceeded the limit.
    pub cut: bool,
}

impl<R: BufRead> BoundedLines<R> {
    /// Starts at the first line; `limit` in bytes.
    pub fn new(reader: R, limit: usize) -> Self {
        BoundedLines::with_ends(reader, limit, LineEnds::Feeds)
    }

    /// Starts at the first line of a stream with these line ends; `limit` in bytes.
    pub fn with_ends(reader: R, limit: usize, ends: LineEnds) -> Self {
        BoundedLines { reader, line: Vec::new(), limit, number: 0, ends, returned: false }
    }

    /// Returns the number of the line that was read last.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the next line; `None` at the end.
    ///
    /// # Errors
    /// If the stream cannot be read, or a line is too long under [`LineEnds::Any`].
    pub fn next_line(&mut self) -> io::Result<Option<BoundedLine<'_>>> {
        self.line.clear();
        let (mut found, mut cut, mut read) = (false, false, 0);
        while !found {
            let available = self.reader.fill_buf()?;
            if available.is_empty() {
                break;
            }
            // The carriage return may have been the last byte of the previous block.
            if std::mem::take(&mut self.returned) && available[0] == b'\n' {
                self.reader.consume(1);
                continue;
            }
            let end = match self.ends {
                LineEnds::Feeds => memchr(b'\n', available),
                LineEnds::Any => memchr2(b'\n', b'\r', available),
            };
            self.returned = self.ends == LineEnds::Any && end.is_some_and(|end| available[end] == b'\r');
            found = end.is_some();
            let content = &available[..end.unwrap_or(available.len())];
            // Leave room beyond the limit for a byte-order mark and a carriage return, which do not count.
            let kept = content.len().min(self.limit.saturating_add(MARKS) - self.line.len());
            cut |= kept < content.len();
            self.line.extend_from_slice(&content[..kept]);
            let n = content.len() + usize::from(found);
            read += n;
            self.reader.consume(n);
            if cut && self.ends == LineEnds::Any {
                return Err(too_long(self.number + 1, self.limit));
            }
        }
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        let line = if self.number == 1 { self.line.strip_prefix(b"\xef\xbb\xbf") } else { None };
        let line = line.unwrap_or(&self.line);
        let line = if cut { line } else { line.strip_suffix(b"\r").unwrap_or(line) };
        let bytes = &line[..line.len().min(self.limit)];
        let cut = cut || bytes.len() < line.len();
        if cut && self.ends == LineEnds::Any {
            return Err(too_long(self.number, self.limit));
        }
        Ok(Some(BoundedLine { bytes, number: self.number, cut }))
    }
}

fn too_long(number: u64, limit: usize) -> io::Error {
    let problem = format!("line {number} is longer than {limit} bytes");
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carriage_returns_alone_end_lines_where_they_are_asked_for() {
        let text = b"\xef\xbb\xbfa\rb\r\nc\n\rd";
        // In blocks of one byte each, so that an end may lie between two.
        let reader = io::BufReader::with_capacity(1, &text[..]);
        let mut lines = BoundedLines::with_ends(reader, 5, LineEnds::Any);
        let mut seen = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            seen.push((String::from_utf8(line.bytes.to_vec()).unwrap(), line.number));
        }
        let expected = [("a", 1), ("b", 2), ("c", 3), ("", 4), ("d", 5)];
        assert_eq!(seen, expected.map(|(line, number)| (line.to_owned(), number)));
        let mut lines = BoundedLines::with_ends(io::BufReader::new(io::repeat(0)), 5, LineEnds::Any);
        assert!(lines.next_line().unwrap_err().to_string().contains("line 1 is longer than 5 bytes"));
        // The room for marks that do not count is none for what does.
        for over in 0..8 {
            let text = format!("{}\nb", "a".repeat(5 + over));
            let mut lines = BoundedLines::with_ends(text.as_bytes(), 5, LineEnds::Any);
            let line = lines.next_line().map(|line| line.unwrap().bytes.to_vec());
            match over {
                0 => assert_eq!(line.unwrap(), b"aaaaa"),
                _ => assert!(line.unwrap_err().to_string().contains("line 1 is longer than 5 bytes")),
            }
        }
        let marked = b"\xef\xbb\xbfaaaaa\r\nb";
        let mut lines = BoundedLines::with_ends(&marked[..], 5, LineEnds::Any);
        assert_eq!(lines.next_line().unwrap().unwrap().bytes, b"aaaaa");
    }

    #[test]
    fn lines_are_cut_and_numbered() {
        let text = b"\xef\xbb\xbfab\r\n\nabcdefghijklm\nlast";
        let mut lines = BoundedLines::new(&text[..], 5);
        let mut seen = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            seen.push((line.bytes.to_vec(), line.number, line.cut));
        }
        let expected: [(&[u8], u64, bool); 4] =
            [(b"ab", 1, false), (b"", 2, false), (b"abcde", 3, true), (b"last", 4, false)];
        assert_eq!(seen, expected.map(|(line, number, cut)| (line.to_vec(), number, cut)));
    }
}
