//! The output of a part of a shard: frames of one list, of kept rows, and of results.

use std::io::Read;

use serde::{Deserialize, Serialize};

use super::found::FoundInOther;
use super::other::OtherSummary;
use crate::corpus::RowLayout;
use drift_core::io::{AtomicFile, pack};
use drift_core::{Error, Result};

/// The bytes before the content of a frame: its kind, the length of the content in hexadecimal, and a line end. A file that began
/// with binary numbers could be taken for one in another encoding.
const HEAD_BYTES: usize = 18;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    /// Lines of the list.
    List,
    /// The [`RowLayout`] of the rows that follow, as JSON.
    Layout,
    /// Rows that stay, compressed.
    Rows,
    /// The results, as JSON: the last frame.
    Results,
}

impl FrameKind {
    const ALL: [(FrameKind, u8); 4] = [
        (FrameKind::List, b'l'),
        (FrameKind::Layout, b'h'),
        (FrameKind::Rows, b'r'),
        (FrameKind::Results, b'e'),
    ];
}

/// The results of one part.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PartResult {
    pub found: FoundInOther,
    pub other: OtherSummary,
}

/// Writes a frame.
fn put(file: &mut AtomicFile, kind: FrameKind, content: &[u8]) -> Result<()> {
    // Every kind is listed.
    let tag = FrameKind::ALL.iter().find(|(known, _)| *known == kind).map_or(0, |(_, tag)| *tag);
    file.put(format!("{}{:016x}\n", char::from(tag), content.len()).as_bytes())?;
    file.put(content)
}

/// Writes lines of the list.
pub(super) fn put_list(file: &mut AtomicFile, lines: &[u8]) -> Result<()> {
    if lines.is_empty() { Ok(()) } else { put(file, FrameKind::List, lines) }
}

/// Writes the layout of rows.
pub(super) fn put_layout(file: &mut AtomicFile, layout: &RowLayout) -> Result<()> {
    put(file, FrameKind::Layout, &json(layout)?)
}

/// Writes rows.
pub(super) fn put_rows(file: &mut AtomicFile, rows: &[u8]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    put(file, FrameKind::Rows, &pack(rows).map_err(|e| Error::internal("the rows that stay", e))?)
}

/// Writes the results.
pub(super) fn put_results(file: &mut AtomicFile, results: &PartResult) -> Result<()> {
    put(file, FrameKind::Results, &json(results)?)
}

fn json(value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|e| Error::internal("what was found", e))
}

/// Returns the next frame; `None` at the end of the file.
pub(super) fn next(reader: &mut dyn Read) -> std::io::Result<Option<(FrameKind, Vec<u8>)>> {
    let mut head = Vec::new();
    reader.take(HEAD_BYTES as u64).read_to_end(&mut head)?;
    if head.is_empty() {
        return Ok(None);
    }
    let damaged = || std::io::Error::from(std::io::ErrorKind::InvalidData);
    let (tag, length) = head.split_first().ok_or_else(damaged)?;
    let length = std::str::from_utf8(length.trim_ascii_end()).map_err(|_| damaged())?;
    let length = u64::from_str_radix(length, 16).map_err(|_| damaged())?;
    let (kind, _) = FrameKind::ALL.into_iter().find(|(_, known)| known == tag).ok_or_else(damaged)?;
    let mut content = Vec::new();
    reader.take(length).read_to_end(&mut content)?;
    if content.len() as u64 == length { Ok(Some((kind, content))) } else { Err(damaged()) }
}
