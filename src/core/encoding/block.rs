//! Slots as text: parsing and writing their numbers, also of incomplete slots.

use super::Encoding;
use super::decimal::{DecimalForms, Fixed};
use super::decimal_text::{NumberError, ParsedNumber, scan_prefix};
use super::definition::{Definition, NumberFormat, Slots};

/// Returns whether a text consists of exactly three numbers `-?digits[.[digits]]`. Replay counts such a block as readable.
pub fn is_three_numbers(text: &str, separator: &str) -> bool {
    let mut parts = text.split(separator);
    let numbers = parts.by_ref().take(3).filter(|part| scan_prefix(part.as_bytes()).is_number()).count();
    numbers == 3 && parts.next().is_none()
}

/// The problem with the content of a slot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// It does not hold three numbers.
    #[error("block contains {0} numbers, not three")]
    Count(usize),
    /// It does not hold the one number that it should.
    #[error("slot contains {0} numbers, not one")]
    NotOne(usize),
    /// One of its numbers is malformed.
    #[error("number {0}: {1}")]
    Number(String, NumberError),
}

/// The values of a slot's text, and the conventions for trailing zeros that it agrees with.
pub(crate) type ParsedSlot = ([Fixed; 3], DecimalForms);

impl Encoding {
    /// Returns whether a text may be the content of a slot in a template: of decimals three numbers, which may be in another decimal
    /// encoding, as 3DMolGen's placeholders are.
    pub fn reads(self, inside: &str) -> bool {
        if self.is_decimal() {
            return is_three_numbers(inside, self.separator());
        }
        self.parse_numbers(inside.as_bytes(), false).is_ok()
    }

    /// Parses the content of a slot. In a slot with one number, the other two values are zero. Decimals may follow either
    /// convention for trailing zeros; with `cut`, excess decimals are dropped.
    ///
    /// # Errors
    /// The malformed number, or the wrong count of numbers.
    pub fn parse_numbers(self, inside: &[u8], cut: bool) -> Result<ParsedSlot, BlockError> {
        let mut values = [0; 3];
        let mut written = DecimalForms::ANY;
        let mut count = 0;
        let number = self.number();
        let mut take = |part: &[u8]| {
            // Excess numbers are only counted, for the error.
            if count < self.numbers() {
                let parsed = match number {
                    NumberFormat::Decimal { precision, .. } => ParsedNumber::parse(part, *precision, cut),
                    other => other.parse(part, count, cut),
                };
                let parsed = parsed.map_err(|e| BlockError::Number(crate::error::excerpt(part), e))?;
                values[count] = parsed.value;
                written = written.join(parsed.written);
            }
            count += 1;
            Ok(())
        };
        match self.separator().as_bytes() {
            [] if self.numbers() == 1 => take(inside)?,
            // Without separators, all numbers have the same width.
            [] => inside.chunks(self.width().max(1)).try_for_each(take)?,
            [separator] => inside.split(|byte| byte == separator).try_for_each(take)?,
            separator => {
                let mut rest = inside;
                while let Some(at) = memchr::memmem::find(rest, separator) {
                    take(&rest[..at])?;
                    rest = &rest[at + separator.len()..];
                }
                take(rest)?;
            }
        }
        match self.numbers() {
            expected if expected == count => Ok((values, written)),
            1 => Err(BlockError::NotOne(count)),
            _ => Err(BlockError::Count(count)),
        }
    }

    /// Returns whether slots stand behind atoms as `<a,b,c>`; for decimals also as `<a b c>`.
    pub fn is_bracketed(self) -> bool {
        let between = self.separator() == "," || (self.is_decimal() && self.separator() == " ");
        let around = (self.open(), self.close(), self.numbers()) == ("<", ">", 3);
        between && around && self.slots() == Slots::Atoms
    }

    /// Returns whether it writes decimals between `<` and `>`. Texts that do not state their encoding are assumed to be of this kind.
    pub fn is_decimal_blocks(self) -> bool {
        self.is_decimal() && self.is_bracketed()
    }

    /// Returns the same numbers between `<` and `>` behind atoms, separated by commas; unchanged if slots already look like this.
    pub fn bracketed(self) -> Self {
        if self.is_bracketed() {
            return self;
        }
        if let Some(zeros) = self.zeros().filter(|_| self.numbers() == 3) {
            return Encoding::decimal(zeros, self.precision());
        }
        let definition = Definition {
            name: format!("{}, bracketed", self.name()).into(),
            slots: Slots::Atoms,
            open: "<".into(),
            separator: ",".into(),
            close: ">".into(),
            ..self.0.clone()
        };
        // Brackets and commas work for any numbers; otherwise the encoding stays unchanged.
        Encoding::new(definition).unwrap_or(self)
    }

    /// Appends the numbers of a slot, without its opening and closing characters: `x,y,z`.
    pub(crate) fn write_numbers(self, values: &[Fixed; 3], out: &mut String) {
        for (axis, &value) in values[..self.numbers()].iter().enumerate() {
            if axis > 0 {
                out.push_str(self.separator());
            }
            self.number().write(value, out);
        }
    }

    /// Returns the numbers of a slot, as [`Encoding::write_numbers`] appends them.
    pub fn numbers_text(self, values: &[Fixed; 3]) -> String {
        let mut out = String::new();
        self.write_numbers(values, &mut out);
        out
    }

    /// Appends a whole slot: `<x,y,z>`.
    pub fn write_slot(self, values: &[Fixed; 3], out: &mut String) {
        out.push_str(self.open());
        self.write_numbers(values, out);
        out.push_str(self.close());
    }

    /// For a slot whose content begins at `start`: the end of the content, and the beginning of the text behind the slot; `None` if
    /// the slot is not closed. Fixed-width numbers without separators end by themselves, so such a slot may lack its closing
    /// character.
    pub fn slot_end(self, bytes: &[u8], start: usize) -> Option<(usize, usize)> {
        let close = self.close().as_bytes();
        if self.separator().is_empty() && self.numbers() > 1 {
            let end = bytes.len().min(start + self.numbers() * self.width());
            let digits = bytes[start..end].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let end = start + digits;
            let behind = if bytes[end..].starts_with(close) { end + close.len() } else { end };
            return Some((end, behind));
        }
        let end = match close {
            [one] => memchr::memchr(*one, &bytes[start..]),
            close => memchr::memmem::find(&bytes[start..], close),
        };
        match end {
            Some(end) => Some((start + end, start + end + close.len())),
            // Readers of lines trim white space, so the white space that ends a closing text may be missing at the end.
            None => {
                let inside = bytes[start..].strip_suffix(close.trim_ascii_end())?;
                close.last()?.is_ascii_whitespace().then_some((start + inside.len(), bytes.len()))
            }
        }
    }

    /// Returns the byte ranges of the contents of a text's slots, in order, as far as they can be determined.
    pub fn slot_ranges(self, text: &str) -> Vec<std::ops::Range<usize>> {
        let bytes = text.as_bytes();
        let mut ranges = Vec::new();
        // A single opening character marks the beginning of a slot, unless it also separates numbers.
        if let ([open], [close]) = (self.open().as_bytes(), self.close().as_bytes())
            && !self.separator().as_bytes().contains(open)
            && open != close
        {
            let mut start = None;
            for (at, byte) in bytes.iter().enumerate() {
                if byte == open {
                    // Also if a slot is open: generated text may leave it without its end.
                    start = Some(at + 1);
                } else if byte == close {
                    ranges.extend(start.take().map(|start| start..at));
                }
            }
            return ranges;
        }
        let mut at = 0;
        while let Some(found) = memchr::memchr(b']', &bytes[at..]) {
            at += found + 1;
            let start = at + self.open().len();
            if bytes[at..].starts_with(self.open().as_bytes())
                && let Some((end, behind)) = self.slot_end(bytes, start).filter(|(end, _)| *end > start)
                // If the content runs into the next atom, this atom has no slot. The `]` of a tag has none either.
                && memchr::memchr(b'[', &bytes[start..end]).is_none()
            {
                ranges.push(start..end);
                at = behind;
            }
        }
        ranges
    }

    /// Returns the largest number of digits of a number.
    pub fn longest_digits(self) -> usize {
        let longest = |axis| self.number().limits(axis).1.to_string().len();
        (0..3).map(longest).max().unwrap_or(0).max(self.width())
    }

    /// Returns the number of digits of fixed-width numbers; 0 for decimals, and for integers without a fixed width.
    pub fn width(self) -> usize {
        self.number().width().into()
    }
}

/// The progress of a block that is written token by token. It stores no text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// The number of separators so far, at most 3.
    pub separators: u32,
    /// Whether the current number has a digit.
    pub digit: bool,
    /// 0 before the point, afterwards 1 plus the number of decimals; at most 7.
    pub point: u32,
}

impl Progress {
    /// Advances by the text of a token. Characters that occur in no block are ignored.
    pub fn write(&mut self, text: &str, separator: &str) {
        for byte in text.bytes() {
            match byte {
                b'.' => self.point = self.point.max(1),
                b'0'..=b'9' => {
                    self.digit = true;
                    // Seven is one more than the most decimals, and the largest value of three bits.
                    self.point = if self.point > 0 { (self.point + 1).min(7) } else { 0 };
                }
                _ if separator.as_bytes() == [byte] => {
                    let separators = (self.separators + 1).min(3);
                    *self = Progress { separators, ..Progress::default() };
                }
                _ => {}
            }
        }
    }

    /// Returns whether the third number can be complete: it has a digit, or, if zeros are kept, all its decimals.
    pub fn is_whole(self, encoding: Encoding) -> bool {
        self.separators == 2
            && if encoding.is_fixed() { self.point > encoding.decimals() as u32 } else { self.digit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::{Precision, TrailingZeros};

    #[test]
    fn three_numbers_and_nothing_else() {
        for good in ["0,0,0", "-1.,0.5,12", "0.0000,0.0000,0.0000"] {
            assert!(is_three_numbers(good, ","), "{good}");
            assert!(is_three_numbers(&good.replace(',', " "), " "), "{good}");
        }
        for bad in ["", "abc", "0,0", "0,0,0,0", ".5,0,0", "0,-,0", "0,0,1e2", "0, 0,0", "<0,0,0>"] {
            assert!(!is_three_numbers(bad, ","), "{bad}");
        }
    }

    #[test]
    fn blocks_of_every_precision_come_back() {
        for precision in (0..=6).filter_map(Precision::new) {
            let max = precision.max_fixed();
            for encoding in Encoding::both(precision) {
                for encoding in [encoding, encoding.with_spaces(true)] {
                    for block in [[0, 1, -1], [max, -max, 10], [-100, 12_345, precision.units_per_angstrom()]]
                    {
                        let text = encoding.numbers_text(&block);
                        let (values, written) = encoding.parse_numbers(text.as_bytes(), false).unwrap();
                        assert_eq!(values, block, "{text}");
                        assert!(written.agrees_with(encoding), "{text}");
                    }
                }
            }
        }
    }

    #[test]
    fn longer_numbers_are_cut_where_that_is_asked_for() {
        let three = Encoding::decimal(TrailingZeros::Kept, Precision::new(3).unwrap());
        let (values, written) = three.parse_numbers(b"-1.2345,0.5000,0.1239", true).unwrap();
        assert_eq!((values, written.fixed, written.stripped), ([-1_234, 500, 123], true, false));
        let (values, written) = three.parse_numbers(b"1.2345,0.5,-0.0009", true).unwrap();
        assert_eq!((values, written.fixed, written.stripped), ([1_234, 500, 0], false, true));
        let error = three.parse_numbers(b"1.2345,0,0", false).unwrap_err();
        assert_eq!(error.to_string(), "number `1.2345`: more than three decimals");
    }

    #[test]
    fn bins_are_read_by_their_digits_alone() {
        let encoding = |name: &str| name.parse::<Encoding>().unwrap();
        let v1 = encoding("binned-v1:-21,21,0.05");
        let read = |text: &str| v1.parse_numbers(text.as_bytes(), false).map(|(values, _)| values);
        assert_eq!(read("390,000,840"), Ok([390, 0, 840]));
        for (text, problem) in [
            ("390,000", "block contains 2 numbers, not three"),
            ("390,000,841", "number `841`: beyond 0 to 840"),
            ("390,000,1000", "number `1000`: beyond 0 to 840"),
            ("390,000,84", "number `84`: not a whole number of 3 digits"),
            ("390,000,0084", "number `0084`: not a whole number of 3 digits"),
            ("390,000,-84", "number `-84`: not a whole number of 3 digits"),
            ("390,000,8.4", "number `8.4`: not a whole number of 3 digits"),
        ] {
            assert_eq!(read(text).unwrap_err().to_string(), problem);
        }
        let v2 = encoding("binned-v2:-13,13,0.104");
        assert_eq!(v2.parse_numbers(b"166156135", false).unwrap().0, [166, 156, 135]);
        assert!(
            v2.parse_numbers(b"16615613", false).is_err() && v2.parse_numbers(b"1661561351", false).is_err()
        );
        assert_eq!(v2.slot_end(b"[C]166156135;1[C]", 3), Some((12, 13)));
        assert_eq!(v2.slot_end(b"[C]1661561351[C]", 3), Some((12, 12)));
        let fsq = encoding("fsq:4096");
        assert_eq!(fsq.parse_numbers(b"4095", false).unwrap().0, [4095, 0, 0]);
        assert!(fsq.parse_numbers(b"4096", false).is_err() && fsq.parse_numbers(b"007", false).is_err());
    }
}
