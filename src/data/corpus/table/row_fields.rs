//! The fields of a row of a table.

use std::borrow::Cow;

use memchr::memchr;

use drift_core::error::excerpt;

/// The fields of a row, without their quotes. A field is an error if its quotes are broken.
pub(crate) struct Fields<'r> {
    /// `None` behind the last field.
    rest: Option<&'r [u8]>,
    delimiter: u8,
}

impl<'r> Fields<'r> {
    /// Returns the fields of a row without its line end.
    pub(crate) fn new(row: &'r [u8], delimiter: u8) -> Self {
        Fields { rest: Some(row), delimiter }
    }

    /// Returns a field whose text begins behind its first quote.
    fn quoted(&mut self, rest: &'r [u8]) -> Result<Cow<'r, [u8]>, String> {
        let mut from = 0;
        let mut has_quotes = false;
        let end = loop {
            let Some(at) = memchr(b'"', &rest[from..]) else {
                return Err("a quote is not closed".to_owned());
            };
            let at = from + at;
            if rest.get(at + 1) != Some(&b'"') {
                break at;
            }
            has_quotes = true;
            from = at + 2;
        };
        self.rest = match rest[end + 1..].split_first() {
            None => None,
            Some((byte, behind)) if *byte == self.delimiter => Some(behind),
            Some(_) => {
                return Err(format!("{} stands behind a closing quote", excerpt(&rest[end + 1..])));
            }
        };
        let inside = &rest[..end];
        if !has_quotes {
            return Ok(Cow::Borrowed(inside));
        }
        let mut field = Vec::with_capacity(inside.len());
        let mut bytes = inside.iter();
        while let Some(byte) = bytes.next() {
            field.push(*byte);
            if *byte == b'"' {
                // The second of two quotes.
                bytes.next();
            }
        }
        Ok(Cow::Owned(field))
    }
}

impl<'r> Iterator for Fields<'r> {
    type Item = Result<Cow<'r, [u8]>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take()?;
        if let Some(inside) = rest.strip_prefix(b"\"") {
            return Some(self.quoted(inside));
        }
        let end = memchr(self.delimiter, rest);
        self.rest = end.map(|end| &rest[end + 1..]);
        Some(Ok(Cow::Borrowed(&rest[..end.unwrap_or(rest.len())])))
    }
}
