//! Reads text files by lines: in parallel if each line is a record ([`read`]), or line by line if records span lines ([`Lines`]).
//!
//! [`read`] cuts the stream into blocks of whole lines and parses each block in its own task, so that reading, parsing and the
//! caller's processing of the conformers overlap. The bytes of tasks in flight are bounded, and so is the length of a line, so
//! memory is bounded for any input.

use std::io::{self, BufRead};
use std::sync::Arc;

use memchr::{memchr, memchr_iter, memrchr};

use super::damage::read_error;
use super::queue::Queue;
use super::row_text::{RowLine, RowText, take_row};
use super::{Batch, BatchSink, Context, Format, ReadOptions, RowLayout, Source};
use drift_core::Result;
use drift_core::io::BoundedLines;

/// The longest line that is read as a record, in bytes (16 MiB). Longer lines are skipped without being stored.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// Splits one non-blank line, without its line end, into the texts of its conformers; `None` if the line is to be left out. An error
/// is the reason why it cannot.
pub(super) type ParseLine =
    for<'t> fn(&'t str, &ReadOptions) -> std::result::Result<Option<Vec<RowText<'t>>>, String>;

/// A format with one record per line.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineFormat {
    pub format: Format,
    pub parse: ParseLine,
}

const BLOCK_BYTES: usize = 1 << 20;
/// Bounds the number of skipped records that one block can produce.
const BLOCK_LINES: usize = 1 << 14;

/// Reads a stream with one record per line; blank lines are ignored.
///
/// # Errors
/// If the stream is damaged, the job was cancelled, or `emit` fails.
pub(super) fn read(
    source: Source<'_>,
    context: Context<'_>,
    emit: &mut BatchSink<'_>,
    LineFormat { format, parse }: LineFormat,
) -> Result<()> {
    let file: Arc<str> = source.name.into();
    let layout = context.options.needs.bytes_for.map(|_| Arc::new(RowLayout::new(format, b"")));
    let mut blocks = Blocks { reader: source.reader, buffer: Vec::new(), line: 1 };
    let mut queue = Queue::default();
    while let Some(block) = blocks.next().map_err(|e| read_error(&file, e))? {
        context.job.check()?;
        let bytes = block.bytes.len();
        let options = context.options.clone();
        let task = Task { block, file: file.clone(), parse, options, layout: layout.clone() };
        queue.push(bytes, move || task.run(), emit)?;
    }
    queue.finish(emit)
}

/// Reads a stream with one enriched SMILES per line.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_plain(source: Source<'_>, context: Context<'_>, emit: &mut BatchSink<'_>) -> Result<()> {
    let parse: ParseLine = |line, _| Ok(Some(vec![RowText::alone(line)]));
    read(source, context, emit, LineFormat { format: Format::Plain, parse })
}

/// Whole lines, or the number of a line that is too long.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    bytes: Vec<u8>,
    first_line: u64,
    /// If true, `bytes` is empty, and the line `first_line` is longer than [`MAX_LINE_BYTES`].
    too_long: bool,
}

/// Cuts a stream into blocks.
struct Blocks<'a> {
    reader: &'a mut dyn BufRead,
    /// Begins at the start of a line; contains no complete block.
    buffer: Vec<u8>,
    line: u64,
}

impl Blocks<'_> {
    fn next(&mut self) -> io::Result<Option<Block>> {
        // The buffer has no line end before this position, unless BLOCK_LINES cut the last block short.
        let mut searched = 0;
        loop {
            if self.buffer.len() >= BLOCK_BYTES {
                match memrchr(b'\n', &self.buffer[searched..]) {
                    Some(at) => return Ok(Some(self.cut(searched + at + 1))),
                    None if self.buffer.len() > MAX_LINE_BYTES => return self.skip_line().map(Some),
                    // No line end so far, so only the bytes read next have to be searched.
                    None => searched = self.buffer.len(),
                }
            }
            let available = self.reader.fill_buf()?;
            let n = available.len().min(BLOCK_BYTES);
            if n == 0 {
                return Ok((!self.buffer.is_empty()).then(|| self.cut(self.buffer.len())));
            }
            self.buffer.extend_from_slice(&available[..n]);
            self.reader.consume(n);
        }
    }

    /// Cuts off the lines in the first `length` bytes, or the first [`BLOCK_LINES`] of them.
    fn cut(&mut self, length: usize) -> Block {
        let mut lines = 0;
        let mut end = length;
        for at in memchr_iter(b'\n', &self.buffer[..length]) {
            lines += 1;
            if lines == BLOCK_LINES {
                end = at + 1;
                break;
            }
        }
        let rest = self.buffer.split_off(end);
        let bytes = std::mem::replace(&mut self.buffer, rest);
        let first_line = self.line;
        self.line += lines as u64;
        Block { bytes, first_line, too_long: false }
    }

    /// Skips the rest of the line that the buffer begins with.
    fn skip_line(&mut self) -> io::Result<Block> {
        self.buffer = Vec::new();
        skip_to_line_end(self.reader)?;
        self.line += 1;
        Ok(Block { bytes: Vec::new(), first_line: self.line - 1, too_long: true })
    }
}

pub(super) fn skip_to_line_end(reader: &mut dyn BufRead) -> io::Result<()> {
    loop {
        let available = reader.fill_buf()?;
        let (n, found) = match memchr(b'\n', available) {
            Some(at) => (at + 1, true),
            None => (available.len(), available.is_empty()),
        };
        reader.consume(n);
        if found {
            return Ok(());
        }
    }
}

/// The task of parsing one block.
struct Task {
    block: Block,
    file: Arc<str>,
    parse: ParseLine,
    options: ReadOptions,
    /// `None` if the bytes of lines are not kept.
    layout: Option<Arc<RowLayout>>,
}

impl Task {
    fn run(self) -> Result<Batch> {
        let mut batch = Batch::default();
        batch.rows.layout = self.layout.clone();
        if self.block.too_long {
            self.take(&mut batch, self.at(self.block.first_line, b""), Err(too_long()))?;
        }
        let bytes = &self.block.bytes;
        let mut start = 0;
        for (line, end) in (self.block.first_line..).zip(memchr_iter(b'\n', bytes).chain([bytes.len()])) {
            let record = trimmed(&bytes[start..end], line);
            let whole = without_mark(&bytes[start..bytes.len().min(end + 1)], line);
            start = end + 1;
            if !record.is_empty() {
                self.take(&mut batch, self.at(line, whole), self.texts(record))?;
            }
        }
        Ok(batch)
    }

    fn take(
        &self,
        batch: &mut Batch,
        at: RowLine<'_>,
        texts: Result<Option<Vec<RowText<'_>>>, String>,
    ) -> Result<()> {
        take_row(batch, texts, at, &self.options)
    }

    fn at<'f>(&'f self, line: u64, bytes: &'f [u8]) -> RowLine<'f> {
        RowLine { file: &self.file, line, bytes }
    }

    fn texts<'t>(&self, record: &'t [u8]) -> Result<Option<Vec<RowText<'t>>>, String> {
        if record.len() > MAX_LINE_BYTES {
            return Err(too_long());
        }
        let text = std::str::from_utf8(record).map_err(|e| format!("byte {}: not UTF-8", e.valid_up_to()))?;
        (self.parse)(text, &self.options)
    }
}

pub(super) fn too_long() -> String {
    format!("longer than {} MiB", MAX_LINE_BYTES >> 20)
}

/// Returns a line without surrounding white space, and without the byte order mark that may begin a file.
fn trimmed(line: &[u8], number: u64) -> &[u8] {
    without_mark(line, number).trim_ascii()
}

/// Returns a line without the byte order mark that may begin a file.
fn without_mark(line: &[u8], number: u64) -> &[u8] {
    if number == 1 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line }
}

/// Lines one by one, as text.
pub(super) struct Lines<'a>(BoundedLines<&'a mut dyn BufRead>);

/// The number of bytes that [`Lines`] keeps of a line. Nothing meaningful in SDF or XYZ is beyond it.
const KEPT_BYTES: usize = 64 << 10;

impl<'a> Lines<'a> {
    /// Starts at the first line.
    pub(super) fn new(reader: &'a mut dyn BufRead) -> Self {
        Lines(BoundedLines::new(reader, KEPT_BYTES))
    }

    /// Returns the number of the line read last, from 1.
    pub(super) fn number(&self) -> u64 {
        self.0.number()
    }

    /// Returns the next line without its end, truncated to [`KEPT_BYTES`]. Bytes that are not UTF-8 are replaced. `None` at the end of
    /// the input.
    pub(super) fn next(&mut self) -> io::Result<Option<std::borrow::Cow<'_, str>>> {
        Ok(self.0.next_line()?.map(|line| String::from_utf8_lossy(line.bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(text: &[u8]) -> Vec<Block> {
        let mut reader = text;
        let mut blocks = Blocks { reader: &mut reader, buffer: Vec::new(), line: 1 };
        std::iter::from_fn(|| blocks.next().unwrap()).collect()
    }

    #[test]
    fn blocks_are_whole_lines_and_lose_nothing() {
        let text: Vec<u8> = (0..200_000).flat_map(|i| format!("line {i}\n").into_bytes()).collect();
        let all = blocks(&text);
        assert_eq!(all.iter().flat_map(|b| b.bytes.clone()).collect::<Vec<_>>(), text);
        for block in all {
            assert!(block.bytes.starts_with(format!("line {}\n", block.first_line - 1).as_bytes()));
            assert!(block.bytes.ends_with(b"\n"));
            assert!(memchr_iter(b'\n', &block.bytes).count() <= BLOCK_LINES);
        }
    }

    #[test]
    fn too_long_lines_are_passed_over() {
        let mut text = b"a\n".to_vec();
        text.extend(std::iter::repeat_n(b'x', 3 * MAX_LINE_BYTES));
        text.extend(b"\nb");
        let all = blocks(&text);
        let kept: Vec<_> = all.iter().filter(|b| !b.too_long).map(|b| (&b.bytes[..], b.first_line)).collect();
        assert_eq!(kept, [(&b"a\n"[..], 1), (&b"b"[..], 3)]);
        assert_eq!(all.iter().filter(|b| b.too_long).map(|b| b.first_line).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn lines_one_by_one() {
        let long = "y".repeat(KEPT_BYTES * 2);
        let text = format!("\u{feff}a\r\n\n{long}\nlast");
        let mut reader = text.as_bytes();
        let mut lines = Lines::new(&mut reader);
        let mut seen = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            seen.push(line.len());
        }
        assert_eq!((seen, lines.number()), (vec![1, 0, KEPT_BYTES, 4], 4));
    }
}
