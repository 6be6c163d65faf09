//! Object headers: the messages that describe a group or a dataset.
//!
//! This is stricter than rust-hdf5, which skips what it does not understand: a header is refused unless its messages fill it, their
//! number is as announced, and their types are known.
//!
//! Source: HDF5 File Format Specification 3.0, section IV.A.

use std::collections::HashSet;

use rust_hdf5::format::checksum::checksum_metadata;

use super::blocks::Blocks;
use super::damaged::{Hdf5Result, bad};
use crate::corpus::pickle::cursor::Cursor;

/// One message: its type and its content.
pub(super) struct Message {
    /// See [`kind`].
    pub kind: u8,
    /// If bit 1 is set, the content is elsewhere.
    flags: u8,
    /// The content as stored, including the padding of old headers.
    pub data: Vec<u8>,
}

/// Types of message.
pub(super) mod kind {
    pub(crate) const DATASPACE: u8 = 0x01;
    pub(crate) const LINK_INFO: u8 = 0x02;
    pub(crate) const DATATYPE: u8 = 0x03;
    pub(crate) const OLD_FILL_VALUE: u8 = 0x04;
    pub(crate) const FILL_VALUE: u8 = 0x05;
    pub(crate) const LINK: u8 = 0x06;
    pub(crate) const EXTERNAL_FILES: u8 = 0x07;
    pub(crate) const LAYOUT: u8 = 0x08;
    pub(crate) const GROUP_INFO: u8 = 0x0a;
    pub(crate) const FILTERS: u8 = 0x0b;
    pub(crate) const ATTRIBUTE: u8 = 0x0c;
    pub(crate) const SHARED_TABLE: u8 = 0x0f;
    pub(crate) const CONTINUATION: u8 = 0x10;
    pub(crate) const SYMBOL_TABLE: u8 = 0x11;
    pub(crate) const NODE_SIZES: u8 = 0x13;
    pub(crate) const DRIVER: u8 = 0x14;
    /// The largest known type.
    pub(crate) const LAST: u8 = 0x18;
}

const SHARED: u8 = 0x02;
/// A reader that does not know this message must not read the object.
const FAIL_IF_UNKNOWN: u8 = 0x80;

/// Returns whether libhdf5 would refuse this combination of flags: shared and not to be shared, or marked as once unknown in a way that
/// no writer leaves.
fn contradict(flags: u8) -> bool {
    let has = |flag: u8| flags & flag != 0;
    let (not_to_share, fails_writers, marks, was_unknown) = (0x04, 0x08, 0x10, 0x20);
    has(SHARED) && has(not_to_share) || has(was_unknown) && (has(fails_writers) || !has(marks))
}

/// The messages of an object, with continuations joined.
pub(super) struct Header(Vec<Message>);

impl Header {
    /// Reads the header at an address.
    pub(super) fn read(blocks: &mut Blocks, address: u64) -> Hdf5Result<Header> {
        let first = blocks.read(address, 4)?;
        let messages = if first == *b"OHDR" { new(blocks, address)? } else { old(blocks, address)? };
        if let Some(message) = messages.iter().find(|m| m.kind > kind::LAST || m.flags & FAIL_IF_UNKNOWN != 0)
        {
            return bad(format!("a message of unknown type {}", message.kind));
        }
        if messages.iter().any(|message| contradict(message.flags)) {
            return bad("a message whose flags contradict each other");
        }
        Ok(Header(messages))
    }

    /// Returns the messages of a type.
    pub(super) fn all(&self, kind: u8) -> impl Iterator<Item = &Message> {
        self.0.iter().filter(move |m| m.kind == kind)
    }

    /// Returns whether there is a message of a type.
    pub(super) fn has(&self, kind: u8) -> bool {
        self.all(kind).next().is_some()
    }

    /// Returns the content of the message of a type, if there is one. There must not be two.
    pub(super) fn one(&self, kind: u8) -> Hdf5Result<Option<&[u8]>> {
        let mut all = self.all(kind);
        match (all.next(), all.next()) {
            (None, _) => Ok(None),
            (Some(message), None) if message.flags & SHARED == 0 => Ok(Some(&message.data)),
            (Some(_), None) => bad("it shares its description with another object"),
            (Some(_), Some(_)) => bad(format!("two messages of type {kind}")),
        }
    }
}

/// Reads a header of version 1, which has no checksum.
fn old(blocks: &mut Blocks, address: u64) -> Hdf5Result<Vec<Message>> {
    let prefix = blocks.read(address, 16)?;
    let mut cursor = Cursor::new(&prefix);
    let (version, _, announced) = (cursor.u8()?, cursor.u8()?, cursor.u16()?);
    let (links, size) = (cursor.u32()?, cursor.u32()?);
    if version != 1 || links == 0 {
        return bad("no object header");
    }
    let mut messages = Vec::new();
    let mut seen = HashSet::new();
    let mut parts = vec![(address + 16, u64::from(size))];
    while let Some((at, len)) = parts.pop() {
        if !seen.insert(at) {
            return bad("an object header that refers back to itself");
        }
        let bytes = blocks.read(at, len)?;
        let mut cursor = Cursor::new(&bytes);
        while cursor.remaining() > 0 {
            let (kind, len, flags) = (cursor.u16()?, cursor.u16()?, cursor.u8()?);
            cursor.take(3)?;
            let Ok(kind) = u8::try_from(kind) else {
                return bad(format!("a message of unknown type {kind}"));
            };
            if len % 8 != 0 {
                return bad("a message that is not padded");
            }
            let data = cursor.take(len.into())?.to_vec();
            if kind == self::kind::CONTINUATION {
                parts.push(continuation(&data)?);
            }
            messages.push(Message { kind, flags, data });
        }
    }
    if messages.len() != usize::from(announced) {
        return bad(format!("{announced} messages announced, {} found", messages.len()));
    }
    Ok(messages)
}

/// Reads a header of version 2, in which each part has a checksum.
fn new(blocks: &mut Blocks, address: u64) -> Hdf5Result<Vec<Message>> {
    let fixed = blocks.read(address, 6)?;
    let flags = fixed[5];
    if fixed[4] != 2 || flags & 0xc0 != 0 {
        return bad("an object header of an unknown version");
    }
    let optional = if flags & 0x20 != 0 { 16 } else { 0 } + if flags & 0x10 != 0 { 4 } else { 0 };
    let width = 1u64 << (flags & 3);
    let prefix = 6 + optional + width;
    let size =
        blocks.read(address + 6 + optional, width)?.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b));
    let whole = prefix.checked_add(size).and_then(|n| n.checked_add(4));
    let Some(whole) = whole else { return bad("an object header that does not end") };
    let mut messages = Vec::new();
    let mut seen = HashSet::new();
    let mut parts = vec![(address, whole, prefix)];
    while let Some((at, len, prefix)) = parts.pop() {
        if !seen.insert(at) {
            return bad("an object header that refers back to itself");
        }
        let bytes = blocks.read(at, len)?;
        let Some((body, sum)) = bytes.split_last_chunk::<4>() else { return bad("an empty object header") };
        if checksum_metadata(body) != u32::from_le_bytes(*sum) {
            return bad("an object header whose checksum is wrong");
        }
        if prefix == 4 && !body.starts_with(b"OCHK") {
            return bad("no continuation of an object header");
        }
        // The part was read into memory, so its size fits.
        let Some(body) = body.get(prefix as usize..) else {
            return bad("an object header that does not end");
        };
        parts.extend(new_messages(body, flags, &mut messages)?.into_iter().map(|(at, len)| (at, len, 4)));
    }
    Ok(messages)
}

/// Returns the messages of one part, and the positions of its continuations.
fn new_messages(body: &[u8], flags: u8, messages: &mut Vec<Message>) -> Hdf5Result<Vec<(u64, u64)>> {
    let mut cursor = Cursor::new(body);
    let mut more = Vec::new();
    let order = if flags & 0x04 != 0 { 2 } else { 0 };
    // Bytes that are too short for a message are a gap.
    while cursor.remaining() >= 4 + order {
        let (kind, len, flags) = (cursor.u8()?, cursor.u16()?, cursor.u8()?);
        cursor.take(order)?;
        let data = cursor.take(len.into())?.to_vec();
        if kind == self::kind::CONTINUATION {
            more.push(continuation(&data)?);
        }
        messages.push(Message { kind, flags, data });
    }
    Ok(more)
}

/// Returns the address and length of the next part.
fn continuation(data: &[u8]) -> Hdf5Result<(u64, u64)> {
    let mut cursor = Cursor::new(data);
    Ok((cursor.u64()?, cursor.u64()?))
}
