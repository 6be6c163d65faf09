//! The textual values of protocol 0, and the text that represents bytes in protocols 0 to 2.

use std::borrow::Cow;

use super::Value;

/// Returns a line of text without surrounding white space; protocol 0 writes numbers in ASCII.
pub(super) fn ascii(line: &[u8]) -> Option<&str> {
    std::str::from_utf8(line).ok().map(str::trim)
}

/// Parses an integer in decimal digits.
pub(super) fn integer(line: &[u8]) -> Option<Value<'static>> {
    let text = ascii(line)?;
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // All characters are digits, so parsing can fail only because the number is out of range.
    Some(text.parse().map_or(Value::BigInt, Value::Int))
}

/// Parses a little-endian two's complement integer of any length, as `LONG1` and `LONG4` write it.
pub(super) fn long(bytes: &[u8]) -> Value<'static> {
    // The sign is the top bit of the last byte.
    let fill = match bytes.last() {
        Some(&last) if last >= 0x80 => 0xff,
        Some(_) => 0,
        None => return Value::Int(0),
    };
    let mut word = [fill; 8];
    if let Some(taken) = bytes.get(..8) {
        // Python writes no more bytes than needed, so bytes after the eighth can only be a sign or higher digits.
        if bytes[8..].iter().any(|&byte| byte != fill) || (taken[7] >= 0x80) != (fill == 0xff) {
            return Value::BigInt;
        }
        word.copy_from_slice(taken);
    } else {
        word[..bytes.len()].copy_from_slice(bytes);
    }
    Value::Int(i64::from_le_bytes(word))
}

/// Parses a string literal of Python 2 (`STRING`): quoted text with backslash escapes.
pub(super) fn string_literal(line: &[u8]) -> Option<Cow<'_, [u8]>> {
    let line = line.trim_ascii();
    let (&quote, rest) = line.split_first()?;
    let (&end, inner) = rest.split_last()?;
    if quote != end || !matches!(quote, b'\'' | b'"') {
        return None;
    }
    if !inner.contains(&b'\\') {
        return Some(Cow::Borrowed(inner));
    }
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let (&escape, after) = rest.split_first()?;
        rest = after;
        match escape {
            b'n' => bytes.push(b'\n'),
            b't' => bytes.push(b'\t'),
            b'r' => bytes.push(b'\r'),
            b'a' => bytes.push(0x07),
            b'b' => bytes.push(0x08),
            b'f' => bytes.push(0x0c),
            b'v' => bytes.push(0x0b),
            b'x' => {
                let (digits, after) = rest.split_at_checked(2)?;
                bytes.push(u8::try_from(hexadecimal(digits)?).ok()?);
                rest = after;
            }
            b'0'..=b'7' => {
                let more = rest.iter().take(2).take_while(|digit| matches!(digit, b'0'..=b'7')).count();
                let octal = rest[..more]
                    .iter()
                    .fold(u32::from(escape - b'0'), |sum, digit| sum * 8 + u32::from(digit - b'0'));
                // Like Python, keeps only the low eight bits of an octal escape above `\377`.
                bytes.push((octal & 0xff) as u8);
                rest = &rest[more..];
            }
            b'\\' | b'\'' | b'"' => bytes.push(escape),
            // Like Python, keeps the backslash of an unknown escape.
            _ => bytes.extend([b'\\', escape]),
        }
    }
    Some(Cow::Owned(bytes))
}

/// Decodes UTF-8 as Python's pickles write it. Lone surrogates, which UTF-8 does not allow, become three U+FFFD. `None` for any
/// other invalid byte.
pub(super) fn utf8(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let mut rest = bytes;
    let mut text = String::new();
    loop {
        match std::str::from_utf8(rest) {
            Ok(whole) if text.is_empty() => return Some(Cow::Borrowed(whole)),
            Ok(end) => return Some(Cow::Owned(text + end)),
            Err(error) => {
                let (valid, after) = rest.split_at(error.valid_up_to());
                let [0xed, 0xa0..=0xbf, 0x80..=0xbf, more @ ..] = after else { return None };
                // This part is valid UTF-8, by the error's offset.
                text.push_str(std::str::from_utf8(valid).unwrap_or_default());
                // One replacement character per byte, as elsewhere.
                text.extend([char::REPLACEMENT_CHARACTER; 3]);
                rest = more;
            }
        }
    }
}

/// Decodes Python's `raw-unicode-escape` (`UNICODE`): Latin-1 with `\uXXXX` and `\UXXXXXXXX`.
pub(super) fn raw_unicode(line: &[u8]) -> Option<Cow<'_, str>> {
    if line.is_ascii() && !line.contains(&b'\\') {
        return std::str::from_utf8(line).ok().map(Cow::Borrowed);
    }
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((&byte, after)) = rest.split_first() {
        let width = match (byte, after.first()) {
            (b'\\', Some(b'u')) => 4,
            (b'\\', Some(b'U')) => 8,
            _ => {
                text.push(char::from(byte));
                rest = after;
                continue;
            }
        };
        let digits = after.get(1..=width)?;
        text.push(char::from_u32(hexadecimal(digits)?).unwrap_or(char::REPLACEMENT_CHARACTER));
        rest = &after[1 + width..];
    }
    Some(Cow::Owned(text))
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0u32, |sum, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        // At most eight digits, so no bits are shifted out.
        Some(sum << 4 | digit)
    })
}

/// Returns the bytes that Python's `text.encode(codec)` returns, for the codecs that pickles of bytes use; `None` for other codecs.
pub(super) fn encode<'a>(text: &Cow<'a, str>, codec: &str) -> Option<Cow<'a, [u8]>> {
    let latin = matches!(codec, "latin1" | "latin-1" | "iso-8859-1");
    let same = text.is_ascii() && (latin || codec == "ascii") || matches!(codec, "utf-8" | "utf8");
    if same {
        return Some(match text {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.clone().into_bytes()),
        });
    }
    if !latin {
        return None;
    }
    text.chars()
        .map(|character| u8::try_from(u32::from(character)).ok())
        .collect::<Option<Vec<u8>>>()
        .map(Cow::Owned)
}
