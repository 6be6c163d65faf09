//! JSON of any size, read as it comes: what one name, text or number takes of memory is bounded.

use std::io::{self, Read};

/// Passes on JSON, and fails where a text, a name or a number has more than `limit` bytes: whoever parses it holds one of
/// them at a time.
pub struct BoundedJson<R> {
    inner: R,
    limit: usize,
    /// Bytes of what is being read.
    length: usize,
    in_text: bool,
    is_escaped: bool,
}

impl<R: Read> BoundedJson<R> {
    /// Reads `inner`.
    pub fn new(inner: R, limit: usize) -> Self {
        BoundedJson { inner, limit, length: 0, in_text: false, is_escaped: false }
    }

    fn watch(&mut self, byte: u8) {
        self.length += 1;
        if self.in_text {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => (self.in_text, self.length) = (false, 0),
                _ => {}
            }
        } else if byte == b'"' {
            (self.in_text, self.length) = (true, 0);
        } else if matches!(byte, b',' | b':' | b'{' | b'}' | b'[' | b']') || byte.is_ascii_whitespace() {
            self.length = 0;
        }
    }
}

impl<R: Read> Read for BoundedJson<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(out)?;
        for byte in &out[..n] {
            self.watch(*byte);
            if self.length > self.limit {
                let problem = format!("a text or number of more than {} bytes", self.limit);
                return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
            }
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_and_numbers_are_refused() {
        let read = |text: &str| io::copy(&mut BoundedJson::new(text.as_bytes(), 5), &mut io::sink());
        for text in [r#"{"abc": [1, 23456, "xxxx", "a\"b"]}"#, r#"["","",   "", {}]"#, "          "] {
            read(text).unwrap();
        }
        for text in [r#"["xxxxxxx"]"#, "[1234567]", r#"["\"\"\"\""]"#] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
