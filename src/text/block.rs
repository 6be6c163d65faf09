//! The grammar of a block: three numbers ([`super::number`]) of a [`Dialect`], with its separator between them.
//!
//! The brackets around a block are `<` and `>` in every dialect: by them tokens are FREE or COPY.

use super::dialect::{Dialect, Fixed, Reading, Separator, Written};
use super::number::{NumberError, ParsedNumber, scan_prefix, write_number};

/// Whether a text is three numbers `-?digits[.[digits]]` and nothing else: what replay takes for a block that can be
/// read.
pub fn is_three_numbers(text: &str, separator: Separator) -> bool {
    let mut parts = text.as_bytes().split(|byte| *byte == separator.byte());
    let numbers = parts.by_ref().take(3).filter(|part| scan_prefix(part).is_number()).count();
    numbers == 3 && parts.next().is_none()
}

/// What is wrong inside a block.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// It does not hold three numbers.
    #[error("block holds {0} numbers, not three")]
    Count(usize),
    /// A number that is not one.
    #[error("number {0}: {1}")]
    Number(String, NumberError),
}

/// Parses what stands between `<` and `>`: exactly three numbers, in units of the last decimal.
///
/// # Errors
/// The number at fault, or how many there are.
pub fn parse_block(inside: &[u8], reading: Reading) -> Result<([Fixed; 3], Written), BlockError> {
    let mut values = [0; 3];
    let mut written = Written::ANY;
    let mut count = 0;
    for part in inside.split(|&b| b == reading.separator.byte()) {
        if count < 3 {
            let number = ParsedNumber::parse(part, reading.precision, reading.cut)
                .map_err(|e| BlockError::Number(crate::error::excerpt(part), e))?;
            values[count] = number.value;
            written = written.join(number.written);
        }
        count += 1;
    }
    if count == 3 { Ok((values, written)) } else { Err(BlockError::Count(count)) }
}

/// Appends `x,y,z`.
pub fn write_block(block: &[Fixed; 3], dialect: Dialect, out: &mut String) {
    for (axis, &value) in block.iter().enumerate() {
        if axis > 0 {
            out.push(dialect.separator().character());
        }
        write_number(value, dialect, out);
    }
}

/// How far a block has been written, token by token; holds no text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Separators so far, at most 3.
    pub separators: u32,
    /// Whether the present number has a digit.
    pub digit: bool,
    /// 0 before the point, else 1 more than the decimals, at most 7.
    pub point: u32,
}

impl Progress {
    /// Goes on by what a token writes; characters that no block holds change nothing.
    pub fn write(&mut self, text: &str, separator: Separator) {
        for byte in text.bytes() {
            match byte {
                b'.' => self.point = self.point.max(1),
                b'0'..=b'9' => {
                    self.digit = true;
                    self.point = if self.point > 0 { (self.point + 1).min(7) } else { 0 };
                }
                _ if byte == separator.byte() => {
                    let separators = (self.separators + 1).min(3);
                    *self = Progress { separators, ..Progress::default() };
                }
                _ => {}
            }
        }
    }

    /// Whether the third number has begun to stand: it has a digit, and in the fixed dialect all its decimals.
    pub fn is_whole(self, dialect: Dialect) -> bool {
        self.separators == 2
            && if dialect.is_fixed() { self.point > dialect.decimals() as u32 } else { self.digit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Precision;

    #[test]
    fn three_numbers_and_nothing_else() {
        for good in ["0,0,0", "-1.,0.5,12", "0.0000,0.0000,0.0000"] {
            assert!(is_three_numbers(good, Separator::Comma), "{good}");
            assert!(is_three_numbers(&good.replace(',', " "), Separator::Space), "{good}");
        }
        for bad in ["", "abc", "0,0", "0,0,0,0", ".5,0,0", "0,-,0", "0,0,1e2", "0, 0,0", "<0,0,0>"] {
            assert!(!is_three_numbers(bad, Separator::Comma), "{bad}");
        }
    }

    #[test]
    fn blocks_of_every_precision_come_back() {
        for precision in (1..=6).filter_map(Precision::new) {
            let max = precision.max_fixed();
            for dialect in Dialect::both(precision) {
                for dialect in [dialect, dialect.separated_by(Separator::Space)] {
                    for block in
                        [[0, 1, -1], [max, -max, 10], [-100, 123_456, precision.units_per_angstrom()]]
                    {
                        let mut text = String::new();
                        write_block(&block, dialect, &mut text);
                        let (values, written) = parse_block(text.as_bytes(), Reading::of(dialect)).unwrap();
                        assert_eq!(values, block, "{text}");
                        assert!(written.agrees_with(dialect), "{text}");
                    }
                }
            }
        }
    }

    #[test]
    fn longer_numbers_are_cut_where_that_is_asked_for() {
        let three = Reading { precision: Precision::new(3).unwrap(), cut: true, ..Reading::default() };
        let (values, written) = parse_block(b"-1.2345,0.5000,0.1239", three).unwrap();
        assert_eq!((values, written.fixed, written.stripped), ([-1_234, 500, 123], true, false));
        let (values, written) = parse_block(b"1.2345,0.5,-0.0009", three).unwrap();
        assert_eq!((values, written.fixed, written.stripped), ([1_234, 500, 0], false, true));
        let error = parse_block(b"1.2345,0,0", Reading { cut: false, ..three }).unwrap_err();
        assert_eq!(error.to_string(), "number `1.2345`: more than three decimals");
    }
}
