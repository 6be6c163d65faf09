//! JSON of any size, read as it comes: what one name, text or number takes of memory is bounded, and what is not asked for
//! is passed over.

use std::fmt;
use std::io::{self, Read};

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// What is made of a value while it is read. Lists and objects that a fold does not read itself are passed over.
pub trait JsonFold<'de>: Sized {
    /// What comes out.
    type Value;

    /// Of a value without parts, or one whose parts were passed over.
    ///
    /// # Errors
    /// Whatever ends the reading.
    fn part<E: Error>(self, part: JsonPart<'_>) -> Result<Self::Value, E>;

    /// Of a list.
    ///
    /// # Errors
    /// If it is no JSON, or whatever ends the reading.
    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        self.part(JsonPart::List)
    }

    /// Of an object.
    ///
    /// # Errors
    /// As [`JsonFold::list`].
    fn object<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        self.part(JsonPart::Object)
    }
}

/// A value as a [`JsonFold`] is told of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum JsonPart<'t> {
    /// A string.
    Text(&'t str),
    /// A whole number of 0 or more.
    Count(u64),
    /// A whole number below 0.
    Negative(i64),
    /// Any other number.
    Number(f64),
    /// `true` or `false`.
    Truth(bool),
    /// `null`.
    Null,
    /// A list that was passed over.
    List,
    /// An object that was passed over.
    Object,
}

/// Reads a value by a fold: a seed for `serde`.
pub struct Folded<F>(pub F);

impl<'de, F: JsonFold<'de>> DeserializeSeed<'de> for Folded<F> {
    type Value = F::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<F::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F: JsonFold<'de>> Visitor<'de> for Folded<F> {
    type Value = F::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<F::Value, E> {
        self.0.part(JsonPart::Text(text))
    }

    fn visit_u64<E: Error>(self, count: u64) -> Result<F::Value, E> {
        self.0.part(JsonPart::Count(count))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<F::Value, E> {
        self.0.part(JsonPart::Negative(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<F::Value, E> {
        self.0.part(JsonPart::Number(number))
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<F::Value, E> {
        self.0.part(JsonPart::Truth(truth))
    }

    fn visit_unit<E: Error>(self) -> Result<F::Value, E> {
        self.0.part(JsonPart::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<F::Value, A::Error> {
        self.0.list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<F::Value, A::Error> {
        self.0.object(fields)
    }
}

/// Lists and objects inside one another, beyond which no file means anything: whoever passes over them holds a byte for each.
const MAX_LEVELS: usize = 1 << 20;

/// Passes on JSON, and fails where a text, a name or a number has more than `limit` bytes: whoever parses it holds one of
/// them at a time; and where lists and objects lie a million levels deep.
pub struct BoundedJson<R> {
    inner: R,
    limit: usize,
    /// Bytes of what is being read.
    length: usize,
    /// Lists and objects that are open.
    level: usize,
    in_text: bool,
    is_escaped: bool,
}

impl<R: Read> BoundedJson<R> {
    /// Reads `inner`.
    pub fn new(inner: R, limit: usize) -> Self {
        BoundedJson { inner, limit, length: 0, level: 0, in_text: false, is_escaped: false }
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
            match byte {
                b'{' | b'[' => self.level += 1,
                b'}' | b']' => self.level = self.level.saturating_sub(1),
                _ => {}
            }
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
            if self.level > MAX_LEVELS {
                let problem = format!("lists and objects of more than {MAX_LEVELS} levels");
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
    fn long_texts_and_numbers_and_deep_lists_are_refused() {
        let read = |text: &str| io::copy(&mut BoundedJson::new(text.as_bytes(), 5), &mut io::sink());
        for text in [r#"{"abc": [1, 23456, "xxxx", "a\"b"]}"#, r#"["","",   "", {}]"#, "          "] {
            read(text).unwrap();
        }
        for text in [r#"["xxxxxxx"]"#, "[1234567]", r#"["\"\"\"\""]"#] {
            assert!(read(text).is_err(), "{text}");
        }
        read(&"{},".repeat(MAX_LEVELS)).unwrap();
        assert!(read(&"[{".repeat(MAX_LEVELS / 2 + 1)).is_err());
    }
}
