//! Little-endian reading from a byte slice, shared by the two binary formats that occur in one file: the pickle and the RDKit
//! molecules inside it.

/// The input ended before the end of the value that starts at `offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::corpus) struct UnexpectedEnd {
    /// Where the value starts.
    pub(in crate::corpus) offset: usize,
}

/// A position in a byte slice. Each read either moves past the value, or fails and leaves the position unchanged. No read
/// allocates: a declared length is compared with the remaining bytes before it is used.
#[derive(Debug, Clone)]
pub(in crate::corpus) struct Cursor<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Cursor<'a> {
    pub(in crate::corpus) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    /// Returns the number of bytes read so far.
    pub(in crate::corpus) fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the number of bytes that remain.
    pub(in crate::corpus) fn remaining(&self) -> usize {
        self.bytes.len() - self.offset
    }

    /// Returns the next byte, without consuming it.
    pub(in crate::corpus) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.offset).copied()
    }

    /// Consumes and returns the next `length` bytes.
    pub(in crate::corpus) fn take(&mut self, length: usize) -> Result<&'a [u8], UnexpectedEnd> {
        // `offset <= bytes.len()` always holds, so this slice exists, though it may be empty.
        let rest = &self.bytes[self.offset..];
        match rest.get(..length) {
            Some(taken) => {
                self.offset += length;
                Ok(taken)
            }
            None => Err(UnexpectedEnd { offset: self.offset }),
        }
    }

    /// Consumes and returns the next `count` items of `size` bytes each.
    pub(in crate::corpus) fn take_items(
        &mut self,
        count: u64,
        size: usize,
    ) -> Result<&'a [u8], UnexpectedEnd> {
        let length = usize::try_from(count).ok().and_then(|count| count.checked_mul(size));
        self.take(length.ok_or(UnexpectedEnd { offset: self.offset })?)
    }

    /// Consumes the bytes up to and including the next newline; returns them without the newline.
    pub(in crate::corpus) fn take_line(&mut self) -> Result<&'a [u8], UnexpectedEnd> {
        let rest = &self.bytes[self.offset..];
        let length =
            rest.iter().position(|&byte| byte == b'\n').ok_or(UnexpectedEnd { offset: self.offset })?;
        self.offset += length + 1;
        Ok(&rest[..length])
    }

    pub(in crate::corpus) fn array<const N: usize>(&mut self) -> Result<[u8; N], UnexpectedEnd> {
        match self.bytes[self.offset..].first_chunk::<N>() {
            Some(chunk) => {
                self.offset += N;
                Ok(*chunk)
            }
            None => Err(UnexpectedEnd { offset: self.offset }),
        }
    }

    pub(in crate::corpus) fn u8(&mut self) -> Result<u8, UnexpectedEnd> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(in crate::corpus) fn u16(&mut self) -> Result<u16, UnexpectedEnd> {
        self.array().map(u16::from_le_bytes)
    }

    pub(in crate::corpus) fn i32(&mut self) -> Result<i32, UnexpectedEnd> {
        self.array().map(i32::from_le_bytes)
    }

    pub(in crate::corpus) fn u32(&mut self) -> Result<u32, UnexpectedEnd> {
        self.array().map(u32::from_le_bytes)
    }

    pub(in crate::corpus) fn u64(&mut self) -> Result<u64, UnexpectedEnd> {
        self.array().map(u64::from_le_bytes)
    }
}
