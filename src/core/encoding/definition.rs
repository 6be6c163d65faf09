//! The definition of an encoding: where slots stand, what is around their numbers, and how a number is written.

use std::borrow::Cow;

use super::decimal::{Fixed, Precision, TrailingZeros, Written};
use super::decimal_text::{
    NumberError, ParsedNumber, scan_prefix, truncate_decimal, truncate_f32, truncate_f64, write_decimal,
};
use super::index::Bins;
use super::parts::{PartRow, SlotPart};

/// Where slots stand in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Slots {
    /// Behind each atom.
    Atoms,
    /// Behind each symbol of the SMILES: atoms, bonds, brackets of branches, ring numbers, dots.
    Symbols,
}

/// How a number is written, and what it means.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub enum NumberFormat {
    /// `-12.0500`: a coordinate in Å, truncated toward zero to its last decimal.
    Decimal {
        /// How many decimals there are at most.
        precision: Precision,
        /// Whether they are written where they are zeros at the end.
        zeros: TrailingZeros,
    },
    /// `0586`: the number of the bin that holds a coordinate.
    Index {
        /// The bins of x, y and z; of all three if there is one.
        axes: Vec<Bins>,
        /// Digits at least, with leading zeros.
        width: u8,
    },
    /// `-0034`: a coordinate in a unit of its own, without a point.
    Integer {
        /// Units of 1 Å.
        scale: f64,
        /// Digits at least, with leading zeros.
        width: u8,
        /// The largest magnitude.
        most: u32,
        /// Whether it may have a sign; else negative coordinates are out of range.
        signed: bool,
        /// How a coordinate becomes an integer.
        rounding: RoundTo,
    },
    /// `4095`: a code of another program; it stands for no coordinate by itself.
    Code {
        /// Codes are smaller.
        below: u32,
        /// Digits at least, with leading zeros.
        width: u8,
    },
}

/// How a coordinate becomes an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RoundTo {
    /// Toward zero.
    Truncate,
    /// To the nearest, halves to even, as NumPy's `rint`.
    Nearest,
    /// Downward.
    Floor,
}

/// What an encoding is. [`super::Encoding`] is a handle of it.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub struct Definition {
    /// What it is called.
    pub name: Cow<'static, str>,
    /// Where slots stand.
    pub slots: Slots,
    /// What stands before the first number of a slot; may be empty.
    pub open: Cow<'static, str>,
    /// What stands between numbers; may be empty.
    pub separator: Cow<'static, str>,
    /// What stands behind the last number of a slot; may be empty.
    pub close: Cow<'static, str>,
    /// Numbers of a slot, 1 or 3.
    pub numbers: usize,
    /// How they are written.
    pub number: NumberFormat,
}

/// Which integer parts decimals may have, where a format itself sets no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IntegersBelow(pub u32);

impl IntegersBelow {
    /// What may be generated: one or two digits before the point.
    pub const GENERATED: IntegersBelow = IntegersBelow(100);
}

impl NumberFormat {
    /// The bins of an axis.
    pub(super) fn bins(axes: &[Bins], axis: usize) -> &Bins {
        &axes[axis.min(axes.len() - 1)]
    }

    /// The smallest and the largest value that a number of this axis can have, in its own units.
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

    /// What a value stands for, in Å; `None` for codes.
    pub fn angstrom(&self, value: Fixed, axis: usize) -> Option<f64> {
        match self {
            NumberFormat::Decimal { precision, .. } => Some(precision.angstrom(value)),
            NumberFormat::Index { axes, .. } => Some(NumberFormat::bins(axes, axis).angstrom(value)),
            NumberFormat::Integer { scale, .. } => Some(f64::from(value) / scale),
            NumberFormat::Code { .. } => None,
        }
    }

    /// The coordinates that are written as a value, in Å; `None` for codes.
    pub fn cell(&self, value: Fixed, axis: usize) -> Option<[f64; 2]> {
        let of = |low: f64, high: f64, unit: f64| Some([low / unit, high / unit]);
        let v = f64::from(value);
        match self {
            NumberFormat::Decimal { precision, .. } => {
                let unit = f64::from(precision.units_per_angstrom());
                let (low, high) = truncated(v);
                of(low, high, unit)
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
                of(low, high, *scale)
            }
            NumberFormat::Code { .. } => None,
        }
    }

    /// Whether a value stands for all coordinates beyond some end: nothing tells how far.
    pub fn is_tail(&self, value: Fixed, axis: usize) -> bool {
        match self {
            NumberFormat::Index { axes, .. } => NumberFormat::bins(axes, axis).is_tail(value),
            // The smallest and the largest number are written for all beyond: 0 for all that is negative where there is no sign.
            NumberFormat::Integer { .. } => {
                let (low, high) = self.limits(axis);
                value <= low || value >= high
            }
            _ => false,
        }
    }

    /// The value of a coordinate in Å.
    ///
    /// # Errors
    /// If it is not finite, or beyond what can be written.
    pub fn quantize(&self, x: f64, axis: usize) -> Result<Fixed, NumberError> {
        match self {
            NumberFormat::Decimal { precision, .. } => truncate_f64(x, *precision),
            NumberFormat::Index { axes, .. } => NumberFormat::bins(axes, axis).index(x),
            NumberFormat::Integer { scale, rounding, .. } => self.rounded(x * scale, *rounding),
            NumberFormat::Code { .. } => Err(NumberError::NoCoordinate),
        }
    }

    /// The value of a coordinate in Å in single precision; decimals are cut from its product in double precision, which is exact.
    ///
    /// # Errors
    /// If it is not finite, or beyond what can be written.
    pub fn quantize_f32(&self, x: f32, axis: usize) -> Result<Fixed, NumberError> {
        match self {
            NumberFormat::Decimal { precision, .. } => truncate_f32(x, *precision),
            _ => self.quantize(f64::from(x), axis),
        }
    }

    /// The value of a coordinate in Å that is decimal text: decimals are cut digit by digit, other numbers made of the nearest
    /// double.
    ///
    /// # Errors
    /// If it is no number, not finite, or beyond what can be written.
    pub fn quantize_text(&self, text: &str, axis: usize) -> Result<Fixed, NumberError> {
        match self {
            NumberFormat::Decimal { precision, .. } => truncate_decimal(text, *precision),
            _ => {
                // Refuses what is no number in the words that decimals are refused in.
                let coarse = truncate_decimal(text, Precision::FOUR);
                match (coarse, text.trim().parse()) {
                    (Ok(_) | Err(NumberError::OutOfRange(_)), Ok(x)) => self.quantize(x, axis),
                    (Err(error), _) => Err(error),
                    (_, Err(_)) => Err(NumberError::Malformed),
                }
            }
        }
    }

    fn rounded(&self, x: f64, rounding: RoundTo) -> Result<Fixed, NumberError> {
        if !x.is_finite() {
            return Err(NumberError::NotFinite);
        }
        let x = match rounding {
            RoundTo::Truncate => x.trunc(),
            RoundTo::Nearest => x.round_ties_even(),
            RoundTo::Floor => x.floor(),
        };
        // Integers have the same limits on every axis.
        let (low, high) = self.limits(0);
        Ok(x.clamp(f64::from(low), f64::from(high)) as Fixed)
    }

    /// Appends a value as it is written.
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

    /// Parses a number and nothing else. Of decimals both conventions for trailing zeros are taken, and the result says which
    /// it agrees with; `cut` drops decimals beyond the last.
    ///
    /// # Errors
    /// If it is none, or none that is ever written.
    pub fn parse(&self, text: &[u8], axis: usize, cut: bool) -> Result<ParsedNumber, NumberError> {
        if let NumberFormat::Decimal { precision, .. } = self {
            return ParsedNumber::parse(text, *precision, cut);
        }
        let (low, high) = self.limits(axis);
        let (width, signed) = match self {
            NumberFormat::Index { width, .. } | NumberFormat::Code { width, .. } => (*width, false),
            NumberFormat::Integer { width, signed, .. } => (*width, *signed),
            NumberFormat::Decimal { .. } => (0, true),
        };
        let prefix = scan_prefix(text);
        let digits = prefix.integer(text);
        let padded =
            // Zeros stand in front up to the width and no further, so that each value has one spelling.
            digits.len() == usize::from(width) || (digits.len() > usize::from(width) && digits[0] != b'0');
        let unsigned = prefix.negative && !signed;
        if !prefix.is_number() || prefix.point || unsigned || !(padded || (width == 0 && digits == b"0")) {
            return Err(NumberError::NotDigits { width });
        }
        // Nine digits fit; more are beyond any limit.
        let magnitude = digits.iter().take(10).fold(0i64, |n, digit| n * 10 + i64::from(digit - b'0'));
        let value = if prefix.negative { -magnitude } else { magnitude };
        if digits.len() > 9 || value < i64::from(low) || value > i64::from(high) {
            return Err(NumberError::Beyond { low, high });
        }
        Ok(ParsedNumber { value: value as Fixed, written: Written::ANY })
    }

    /// The rows of parts that the numbers of an axis are made of, one row for each number of decimals.
    pub fn rows(&self, axis: usize, integers: IntegersBelow) -> Vec<PartRow> {
        let minus = SlotPart::Optional("-".into());
        match self {
            NumberFormat::Decimal { precision, zeros } => {
                let most = precision.decimals();
                let fewest = if *zeros == TrailingZeros::Kept { most } else { 0 };
                let row = |count: usize| {
                    let mut row = vec![minus.clone(), SlotPart::Integer { below: integers.0 }];
                    if count > 0 {
                        row.push(SlotPart::Literal(".".into()));
                        row.extend(vec![SlotPart::Digit { least: 0 }; count]);
                        // Of removed zeros the last decimal that stands is none.
                        if *zeros == TrailingZeros::Removed {
                            row.pop();
                            row.push(SlotPart::Digit { least: 1 });
                        }
                    }
                    row
                };
                (fewest..=most).map(row).collect()
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

/// The reals that are truncated to a whole number: from the first up to the second.
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
