//! Checks variable-length texts, which lie in a heap of the file: that they exist, in the stated length.
//!
//! Source: HDF5 File Format Specification 3.0, section III.E.

use rust_hdf5::format::global_heap::{GlobalHeapCollection, decode_vlen_reference};
use rust_hdf5::format::messages::datatype::DatatypeMessage;

use super::blocks::Blocks;
use super::damaged::{Hdf5Result, bad};
use super::links::CONTEXT;
use crate::corpus::pickle::cursor::Cursor;

/// The size of a reference to a text, in bytes.
const REFERENCE_BYTES: usize = 16;

/// Returns whether a stored type is variable-length text.
///
/// # Errors
/// If it is variable-length text of a kind that no library writes.
pub(super) fn is_text(stored: &[u8]) -> Hdf5Result<bool> {
    let (datatype, _) = DatatypeMessage::decode(stored, &CONTEXT)?;
    if !matches!(datatype, DatatypeMessage::VarLenString { .. }) {
        return Ok(false);
    }
    // Text, padding and character set, followed by the type of a character.
    match stored.first_chunk::<8>() {
        Some([_, text, set, 0, 16, 0, 0, 0])
            if text & 0x0f == 1 && text >> 4 <= 2 && *set <= 1 && is_character(&stored[8..]) =>
        {
            Ok(true)
        }
        _ => bad("text of an unknown kind"),
    }
}

/// Returns whether a stored type is a character: text of one byte, or an integer of one byte whose bits lie inside it.
fn is_character(stored: &[u8]) -> bool {
    match *stored {
        [class, kind, 0, 0, 1, 0, 0, 0, ..] if class & 0x0f == 3 => kind & 0x0f <= 2 && kind >> 4 <= 1,
        [class, kind, 0, 0, 1, 0, 0, 0, first, 0, bits, 0, ..] if class & 0x0f == 0 => {
            kind & !8 == 0 && bits > 0 && first.checked_add(bits).is_some_and(|end| end <= 8)
        }
        _ => false,
    }
}

/// Checks texts by their references.
pub(super) fn check(blocks: &mut Blocks, values: &[u8]) -> Hdf5Result<()> {
    for reference in values.chunks_exact(REFERENCE_BYTES) {
        let (len, address, index) = decode_vlen_reference(reference, &CONTEXT)?;
        if len == 0 {
            continue;
        }
        let prefix = blocks.read(address, 16)?;
        let mut cursor = Cursor::new(&prefix);
        cursor.take(8)?;
        let bytes = blocks.read(address, cursor.u64()?)?;
        whole(&bytes)?;
        let (heap, _) = GlobalHeapCollection::decode(&bytes, &CONTEXT)?;
        let found = u16::try_from(index).ok().and_then(|index| heap.get_object(index)).map(<[u8]>::len);
        if found != Some(len as usize) {
            return bad("a text that is missing from the heap, or has another length there");
        }
    }
    Ok(())
}

/// Refuses a heap whose objects exceed its end, as libhdf5 does.
fn whole(heap: &[u8]) -> Hdf5Result<()> {
    let mut cursor = Cursor::new(heap);
    cursor.take(16)?;
    while cursor.remaining() >= 16 {
        let index = cursor.u16()?;
        cursor.take(6)?;
        let size = cursor.u64()?;
        // The free space includes its own header, and comes last.
        let (len, is_last) = match index {
            0 => (size.saturating_sub(16), true),
            _ => (size.checked_next_multiple_of(8).unwrap_or(u64::MAX), false),
        };
        cursor.take_items(len, 1)?;
        if is_last {
            break;
        }
    }
    Ok(())
}
