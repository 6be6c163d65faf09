//! Streaming JSON of any size. The memory for one name, text or number is bounded, and values that are not asked for are skipped.

use std::fmt;
use std::io::{self, Read};

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Computes a value while JSON is read. Lists and objects that a fold does not handle itself are skipped.
pub trait JsonFold<'de>: Sized {
    /// The computed value.
    type Value;

    /// Handles a value without parts, or one whose parts were skipped.
    ///
    /// # Errors
    /// Any error that ends the reading.
    fn part<E: Error>(self, part: JsonPart<'_>) -> Result<Self::Value, E>;

    /// Handles a string that the input holds as it is, so a fold can keep it without a copy.
    ///
    /// # Errors
    /// As [`JsonFold::part`].
    fn borrowed<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        self.part(JsonPart::Text(text))
    }

    /// Handles a list.
    ///
    /// # Errors
    /// If the input is not JSON, or any error that ends the reading.
    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        self.part(JsonPart::List)
    }

    /// Handles an object.
    ///
    /// # Errors
    /// As [`JsonFold::list`].
    fn object<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        self.part(JsonPart::Object)
    }
}

/// A value as it is passed to a [`JsonFold`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum JsonPart<'t> {
    /// A string.
    Text(&'t str),
    /// An integer of 0 or more.
    Count(u64),
    /// An integer below 0.
    Negative(i64),
    /// Any other number.
    Number(f64),
    /// `true` or `false`.
    Truth(bool),
    /// `null`.
    Null,
    /// A list that was skipped.
    List,
    /// An object that was skipped.
    Object,
}

/// Reads a value with a fold: a seed for `serde`.
pub struct FoldSeed<F>(pub F);

impl<'de, F: JsonFold<'de>> DeserializeSeed<'de> for FoldSeed<F> {
    type Value = F::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<F::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F: JsonFold<'de>> Visitor<'de> for FoldSeed<F> {
    type Value = F::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<F::Value, E> {
        self.0.part(JsonPart::Text(text))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<F::Value, E> {
        self.0.borrowed(text)
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

/// The deepest nesting of lists and objects. No meaningful file goes deeper, and skipping them takes a byte for each level.
const MAX_LEVELS: usize = 1 << 20;

/// Passes JSON through, and fails if a text, a name or a number has more than `limit` bytes, because a parser holds one of them at
/// a time. It also fails if lists and objects are nested more than a million levels deep.
pub struct BoundedJson<R> {
    inner: R,
    limit: usize,
    /// The number of bytes of the current text, name or number.
    length: usize,
    /// The number of open lists and objects.
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
