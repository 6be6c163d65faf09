//! Text in UTF-16, as spreadsheets and PowerShell save it, read as UTF-8.

use std::io::{self, BufRead, Read};

/// The characters that are decoded at a time.
const CHARACTERS: usize = 32 << 10;

/// The byte order of UTF-16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// Returns the order that the byte order mark at the start of a text states. The character behind the mark must be ASCII, with which
    /// all text files begin that drift reads.
    fn of(start: &[u8]) -> Option<Self> {
        match start {
            [0xff, 0xfe, 1..=127, 0, ..] => Some(ByteOrder::Little),
            [0xfe, 0xff, 0, 1..=127, ..] => Some(ByteOrder::Big),
            _ => None,
        }
    }
}

/// `inner` as UTF-8 if it begins like UTF-16 text; otherwise unchanged.
///
/// # Errors
/// If its first bytes cannot be read.
pub(super) fn utf8<'r, R: BufRead + 'r>(mut inner: R) -> io::Result<Box<dyn BufRead + 'r>> {
    Ok(match ByteOrder::of(inner.fill_buf()?) {
        Some(order) => Box::new(Utf16 { inner, order, high: None, decoded: String::new(), taken: 0 }),
        None => Box::new(inner),
    })
}

/// Decodes UTF-16. Surrogates without a partner become the replacement character.
struct Utf16<R> {
    inner: R,
    order: ByteOrder,
    /// The first half of a character outside the basic plane whose second half has not been read.
    high: Option<u16>,
    decoded: String,
    /// The bytes of `decoded` that were taken.
    taken: usize,
}

impl<R: BufRead> Utf16<R> {
    /// Decodes the next characters. Leaves `decoded` empty only at the end.
    fn decode(&mut self) -> io::Result<()> {
        self.decoded.clear();
        self.taken = 0;
        while self.decoded.is_empty() {
            let mut bytes = Vec::new();
            self.inner.by_ref().take(2 * CHARACTERS as u64).read_to_end(&mut bytes)?;
            let (pairs, rest) = bytes.as_chunks::<2>();
            if !rest.is_empty() {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "UTF-16 text that ends within a character",
                ));
            }
            let is_end = pairs.is_empty();
            let mut units: Vec<u16> = self.high.take().into_iter().collect();
            units.extend(pairs.iter().map(|pair| match self.order {
                ByteOrder::Little => u16::from_le_bytes(*pair),
                ByteOrder::Big => u16::from_be_bytes(*pair),
            }));
            if !is_end {
                self.high = units.pop_if(|last| matches!(last, 0xd800..0xdc00));
            }
            self.decoded.extend(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
            if is_end {
                break;
            }
        }
        Ok(())
    }
}

impl<R: BufRead> BufRead for Utf16<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.taken == self.decoded.len() {
            self.decode()?;
        }
        Ok(&self.decoded.as_bytes()[self.taken..])
    }

    fn consume(&mut self, amount: usize) {
        self.taken = (self.taken + amount).min(self.decoded.len());
    }
}

impl<R: BufRead> Read for Utf16<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        super::read_buffered(self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: Vec<u8>) -> io::Result<String> {
        let mut text = String::new();
        utf8(io::Cursor::new(bytes))?.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn both_orders_are_read_and_other_bytes_are_left_alone() {
        // Longer than a chunk, with characters of two units on both sides of its end.
        let text = format!("CCO Äthanol\r\n{}\n", "x😀".repeat(CHARACTERS));
        for mark in [0, 1] {
            let text = format!("\u{feff}{}{text}", "a".repeat(mark));
            let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
            assert_eq!(read(little).unwrap(), text);
            assert_eq!(read(big).unwrap(), text);
        }
        assert_eq!(read(b"\xff\xfeC\0\x00\xd8".to_vec()).unwrap(), "\u{feff}C\u{fffd}");
        assert_eq!(read(b"\xff\xfeC\0C".to_vec()).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(read("CCO Äthanol".into()).unwrap(), "CCO Äthanol");
        assert_eq!(read(Vec::new()).unwrap(), "");
    }
}
