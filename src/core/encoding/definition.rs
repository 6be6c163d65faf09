//! The definition of an encoding: where its slots stand, what surrounds their numbers, and how a number is written.

use std::borrow::Cow;

use super::decimal::{DecimalForms, Fixed, Precision, TrailingZeros};
use super::decimal_text::{
    NumberError, ParsedNumber, scan_prefix, truncate_decimal, truncate_f32, truncate_f64, write_decimal,
};
use super::index::Bins;
use super::parts::{PartRow, SlotPart};
use super::scale::{RoundTo, Scale};

/// Where slots stand in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Slots {
    /// Behind each atom.
    Atoms,
    /// Behind each symbol of the SMILES: atoms, bonds, parentheses, ring numbers and dots.
    Symbols,
}

/// How a number is written, and what it means.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub enum NumberFormat {
    /// `-12.0500`: a coordinate in Å, truncated toward zero to its last decimal.
    Decimal {
        /// The largest number of decimals.
        precision: Precision,
        /// Whether trailing zeros are written.
        zeros: TrailingZeros,
    },
    /// `0586`: the index of the bin that contains a coordinate.
    Index {
        /// The bins of x, y and z; a single entry applies to all three.
        axes: Vec<Bins>,
        /// The least number of digits, with leading zeros.
        width: u8,
    },
    /// `-0034`: a coordinate as an integer in its own unit.
    Integer {
        /// The number of units in 1 Å.
        scale: Scale,
        /// The least number of digits, with leading zeros.
        width: u8,
        /// The largest magnitude.
        most: u32,
        /// Whether numbers may have a sign. If not, negative coordinates are out of range.
        signed: bool,
        /// The rounding of coordinates.
        rounding: RoundTo,
    },
    /// `4095`: a code of another program, which has no coordinate by itself.
    Code {
        /// All codes are smaller than this.
        below: u32,
        /// The least number of digits, with leading zeros.
        width: u8,
    },
}

/// The data of an encoding. [`super::Encoding`] is a handle to it.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub struct Definition {
    /// The name of the encoding.
    pub name: Cow<'static, str>,
    /// Where slots stand.
    pub slots: Slots,
    /// The text before the first number of a slot; may be empty.
    pub open: Cow<'static, str>,
    /// The text between numbers; may be empty.
    pub separator: Cow<'static, str>,
    /// The text behind the last number of a slot; may be empty.
    pub close: Cow<'static, str>,
    /// How many numbers a slot has: 1 or 3.
    pub numbers: usize,
    /// The format of each number.
    pub number: NumberFormat,
}

/// A bound on the integer parts of decimals, whose format itself sets none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IntegersBelow(pub u32);

impl IntegersBelow {
    /// The range of generated coordinates: one or two digits before the point.
    pub const GENERATED: IntegersBelow = IntegersBelow(100);
}

impl NumberFormat {
    /// Returns the bins of an axis.
    pub(super) fn bins(axes: &[Bins], axis: usize) -> &Bins {
        &axes[axis.min(axes.len() - 1)]
    }

    /// Returns the number of digits of fixed-width numbers; 0 for decimals, and for integers without a fixed width.
    pub(crate) fn width(&self) -> u8 {
        match self {
            NumberFormat::Index { width, .. }
            | NumberFormat::Integer { width, .. }
            | NumberFormat::Code { width, .. } => *width,
            NumberFormat::Decimal { .. } => 0,
        }
    }

    /// Returns whether numbers may begin with a sign.
    pub(super) fn is_signed(&self) -> bool {
        match self {
            NumberFormat::Decimal { .. } => true,
            NumberFormat::Integer { signed, .. } => *signed,
            NumberFormat::Index { .. } | NumberFormat::Code { .. } => false,
        }
    }

    /// Returns the smallest and the largest value that a number of this axis can have, in its own units.
    pub fn limits(&self, axis: usize) -> (Fixed, Fixed) {
        match self {
            NumberFormat::Decimal { precision, .. } => (-precision.max_fixed(), precision.max_fixed()),
            NumberFormat::Index { axes, .. } => (0, NumberFormat::bins(axes, axis).last()),
            NumberFormat::Integer { most, signed, .. } => {
                (if *signed { -(*most as Fixed) } else { 0 }, *most as Fixed)
            }
            NumberFormat::Code { below, .. } => (0, *below as Fixed - 1),
        }
    }

    /// Returns the coordinate of a value, in Å; `None` for codes.
    pub fn angstrom(&self, value: Fixed, axis: usize) -> Option<f64> {
        match self {
            NumberFormat::Decimal { precision, .. } => Some(precision.angstrom(value)),
            NumberFormat::Index { axes, .. } => Some(NumberFormat::bins(axes, axis).angstrom(value)),
            NumberFormat::Integer { scale, .. } => Some(scale.angstrom(value.into())),
            NumberFormat::Code { .. } => None,
        }
    }

    /// Returns the interval of coordinates that are written as a value, in Å; `None` for codes.
    pub fn cell(&self, value: Fixed, axis: usize) -> Option<[f64; 2]> {
        let of = |low: f64, high: f64, unit: f64| Some([low / unit, high / unit]);
        let v = f64::from(value);
        match self {
            NumberFormat::Decimal { precision, .. } => {
                let (low, high) = truncated(v);
                of(low, high, precision.units_per_angstrom().into())
            }
            NumberFormat::Index { axes, .. } => Some(NumberFormat::bins(axes, axis).cell(value)),
            NumberFormat::Integer { scale, rounding, .. } => {
                let (least, most) = self.limits(axis);
                let (mut low, mut high) = match rounding {
                    RoundTo::Truncate => truncated(v),
                    RoundTo::Nearest => (v - 0.5, v + 0.5),
                    RoundTo::Floor => (v, v + 1.0),
                };
                if value <= least {
                    low = f64::NEG_INFINITY;
                }
                if value >= most {
                    high = f64::INFINITY;
                }
                of(low, high, scale.units())
            }
            NumberFormat::Code { .. } => None,
        }
    }

    /// Returns whether a value stands for all coordinates beyond one end of the range, however far.
    pub fn is_tail(&self, value: Fixed, axis: usize) -> bool {
        match self {
            NumberFormat::Index { axes, .. } => NumberFormat::bins(axes, axis).is_tail(value),
            // The smallest and the largest number stand for everything beyond them; without a sign, 0 stands for all negative
            // coordinates.
            NumberFormat::Integer { .. } => {
                let (low, high) = self.limits(axis);
                value <= low || value >= high
            }
            _ => false,
        }
    }

    /// Returns the value of a coordinate given in Å.
    ///
    /// # Errors
    /// If the coordinate is not finite, or too large to be written, or if numbers are codes.
    pub fn quantize(&self, x: f64, axis: usize) -> Result<Fixed, NumberError> {
        match self {
            NumberFormat::Decimal { precision, .. } => truncate_f64(x, *precision),
            NumberFormat::Index { axes, .. } => NumberFormat::bins(axes, axis).index(x),
            NumberFormat::Integer { scale, rounding, .. } => Ok(self.clipped(scale.round(x, *rounding)?)),
            NumberFormat::Code { .. } => Err(NumberError::NoCoordinate),
        }
    }

    /// Returns the value of a coordinate given in Å in single precision. Decimals are truncated from its product in double precision,
    /// which is exact.
    ///
    /// # Errors
    /// If the coordinate is not finite, or too large to be written, or if numbers are codes.
    pub fn quantize_f32(&self, x: f32, axis: usize) -> Result<Fixed, NumberError> {
        match self {
            NumberFormat::Decimal { precision, .. } => truncate_f32(x, *precision),
            _ => self.quantize(f64::from(x), axis),
        }
    }

    /// Returns the value of a coordinate given in Å as decimal text. Decimals are truncated, and integers rounded, digit by digit; bins
    /// use the nearest double.
    ///
    /// # Errors
    /// If the text is not a finite number, or too large to be written, or if numbers are codes.
    pub fn quantize_text(&self, text: &str, axis: usize) -> Result<Fixed, NumberError> {
        match self {
            NumberFormat::Decimal { precision, .. } => truncate_decimal(text, *precision),
            NumberFormat::Integer { scale, rounding, .. } => {
                Ok(self.clipped(scale.round_text(text, *rounding)?))
            }
            _ => {
                // So that malformed text gives the same error as with decimals.
                match (truncate_decimal(text, Precision::FOUR), text.trim().parse()) {
                    (Ok(_) | Err(NumberError::OutOfRange(_)), Ok(x)) => self.quantize(x, axis),
                    (Err(error), _) => Err(error),
                    (_, Err(_)) => Err(NumberError::Malformed),
                }
            }
        }
    }

    /// Returns an integer, or the end of the range that it is beyond.
    fn clipped(&self, integer: i64) -> Fixed {
        // Integers have the same limits on every axis.
        let (low, high) = self.limits(0);
        // Between two limits that fit.
        integer.clamp(low.into(), high.into()) as Fixed
    }

    /// Appends the text of a value.
    pub fn write(&self, value: Fixed, out: &mut String) {
        match self {
            NumberFormat::Decimal { precision, zeros } => write_decimal(value, *precision, *zeros, out),
            NumberFormat::Index { width, .. } | NumberFormat::Code { width, .. } => {
                write_padded(value, *width, out)
            }
            NumberFormat::Integer { width, .. } => {
                if value < 0 {
                    out.push('-');
                }
                write_padded(value.saturating_abs(), *width, out);
            }
        }
    }

    /// Parses text that must be exactly one number. Decimals may follow either convention for trailing zeros, and the result says
    /// which ones the text agrees with; `cut` drops excess decimals.
    ///
    /// # Errors
    /// If the text is not a number, or a number that the encoding never writes.
    pub fn parse(&self, text: &[u8], axis: usize, cut: bool) -> Result<ParsedNumber, NumberError> {
        if let NumberFormat::Decimal { precision, .. } = self {
            return ParsedNumber::parse(text, *precision, cut);
        }
        let ((low, high), width) = (self.limits(axis), self.width());
        let prefix = scan_prefix(text);
        let digits = prefix.integer(text);
        let padded =
            // Leading zeros fill the width and no more, so that each value has one spelling.
            digits.len() == usize::from(width) || (digits.len() > usize::from(width) && digits[0] != b'0');
        let unsigned = prefix.negative && !self.is_signed();
        if !prefix.is_number() || prefix.point || unsigned || !(padded || (width == 0 && digits == b"0")) {
            return Err(NumberError::NotDigits { width });
        }
        // Nine digits fit; longer numbers exceed every limit.
        let magnitude = digits.iter().take(10).fold(0i64, |n, digit| n * 10 + i64::from(digit - b'0'));
        let value = if prefix.negative { -magnitude } else { magnitude };
        if digits.len() > 9 || value < i64::from(low) || value > i64::from(high) {
            return Err(NumberError::Beyond { low, high });
        }
        Ok(ParsedNumber { value: value as Fixed, written: DecimalForms::ANY })
    }

    /// Returns the numbers of an axis as rows of parts: one row for each possible number of decimals.
    pub fn rows(&self, axis: usize, integers: IntegersBelow) -> Vec<PartRow> {
        let minus = SlotPart::Optional("-".into());
        match self {
            NumberFormat::Decimal { precision, zeros } => {
                let most = precision.decimals();
                let fewest = if *zeros == TrailingZeros::Kept { most } else { 0 };
                let rows = (fewest..=most).map(|count| {
                    let mut row = vec![minus.clone(), SlotPart::Integer { below: integers.0 }];
                    if count > 0 {
                        row.push(SlotPart::Literal(".".into()));
                        row.extend(vec![SlotPart::Digit { least: 0 }; count]);
                        // If trailing zeros are removed, the last remaining decimal is not zero.
                        if *zeros == TrailingZeros::Removed {
                            row.pop();
                            row.push(SlotPart::Digit { least: 1 });
                        }
                    }
                    row
                });
                rows.collect()
            }
            NumberFormat::Integer { signed, most, width, .. } => {
                let digits = padded(*most + 1, *width);
                vec![if *signed { vec![minus, digits] } else { vec![digits] }]
            }
            NumberFormat::Index { width, .. } | NumberFormat::Code { width, .. } => {
                vec![vec![padded(self.limits(axis).1 as u32 + 1, *width)]]
            }
        }
    }
}

/// Returns the interval of reals that truncate to an integer.
fn truncated(value: f64) -> (f64, f64) {
    match value {
        0.0 => (-1.0, 1.0),
        value if value > 0.0 => (value, value + 1.0),
        value => (value - 1.0, value),
    }
}

fn padded(below: u32, width: u8) -> SlotPart {
    if width == 0 { SlotPart::Integer { below } } else { SlotPart::Padded { below, width } }
}

/// Appends a number that is not negative, with leading zeros.
fn write_padded(value: Fixed, width: u8, out: &mut String) {
    let mut buffer = [b'0'; 10];
    let (mut rest, mut start) = (value.unsigned_abs(), buffer.len());
    while rest > 0 {
        start -= 1;
        buffer[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let start = start.min(buffer.len() - usize::from(width.clamp(1, 10)));
    // The buffer is ASCII.
    out.push_str(std::str::from_utf8(&buffer[start..]).unwrap_or_default());
}
