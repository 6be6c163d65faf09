//! Decimal numbers, `-?(0|[1-9]\d*)(\.\d+)?`: scanned, parsed and written as fixed-point integers, without floats.
//!
//! 3DMolGen's `trunc(x * 10000) / 10000` in floating point loses 0.0001 on about 7 % of four-decimal numbers. This module truncates
//! decimal text digit by digit instead.

use super::decimal::{DecimalForms, Fixed, POWERS_OF_TEN, Precision, TrailingZeros};

/// The longest prefix of a text of the form `-?\d*(\.\d*)?`. A point counts only behind a digit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberPrefix {
    /// Whether it begins with `-`.
    pub negative: bool,
    /// The number of digits before the point.
    pub integer_digits: usize,
    /// Whether there is a point.
    pub point: bool,
    /// The number of digits behind the point.
    pub decimals: usize,
    /// The number of zeros at the end of the decimals.
    pub trailing_zeros: usize,
    /// The length of the prefix, in bytes.
    pub length: usize,
    /// The number of bytes behind it.
    pub rest: usize,
}

impl NumberPrefix {
    /// Returns whether there is a digit before the point.
    pub fn has_digits(&self) -> bool {
        self.integer_digits > 0
    }

    /// Returns whether the whole text is a number, `-?\d+(\.\d*)?`. Replay counts such a number as readable.
    pub fn is_number(&self) -> bool {
        self.has_digits() && self.rest == 0
    }

    /// Returns the digits before the point; `text` is the text that was scanned.
    pub fn integer<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        let start = usize::from(self.negative);
        &text[start..start + self.integer_digits]
    }

    /// Returns the value in units of the last decimal; `text` is the text that was scanned. Missing decimals count as zeros, excess
    /// decimals are dropped. The digits before the point must fit into [`Fixed`].
    #[inline]
    pub fn value(&self, text: &[u8], precision: Precision) -> Fixed {
        let fraction = self.fraction(text);
        let kept = &fraction[..fraction.len().min(precision.decimals())];
        let digits = self.integer(text).iter().chain(kept);
        let value = digits.fold(0, |value: Fixed, digit| value * 10 + Fixed::from(digit - b'0'));
        let missing = POWERS_OF_TEN[precision.decimals() - kept.len()];
        if self.negative { -value * missing } else { value * missing }
    }

    /// Returns the digits behind the point; `text` is the text that was scanned.
    pub fn fraction<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        &text[self.length - self.decimals..self.length]
    }
}

/// Scans the number at the beginning of `text`.
pub fn scan_prefix(text: &[u8]) -> NumberPrefix {
    let negative = text.first() == Some(&b'-');
    let start = usize::from(negative);
    let integer_digits = count_digits(&text[start..]);
    let mut length = start + integer_digits;
    let point = integer_digits > 0 && text.get(length) == Some(&b'.');
    let decimals = if point { count_digits(&text[length + 1..]) } else { 0 };
    length += usize::from(point) + decimals;
    let mut trailing_zeros = 0;
    while trailing_zeros < decimals && text[length - 1 - trailing_zeros] == b'0' {
        trailing_zeros += 1;
    }
    let rest = text.len() - length;
    NumberPrefix { negative, integer_digits, point, decimals, trailing_zeros, length, rest }
}

/// Returns whether a decimal number may have this byte: a digit, the sign or the point.
pub const fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'.')
}

/// Returns the number of digits at the start of a text.
fn count_digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Why a number was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// Not of the form `-?(0|[1-9]\d*)(\.\d+)?`.
    #[error("not a number of the form -?digits[.digits]")]
    Malformed,
    /// More decimals than the precision allows.
    #[error("more than {} decimals", .0.in_words())]
    TooManyDecimals(Precision),
    /// NaN or infinity.
    #[error("not finite")]
    NotFinite,
    /// Beyond [`Precision::max_fixed`].
    #[error("beyond {} Å", largest(*.0))]
    OutOfRange(Precision),
    /// Not an integer with the required digits.
    #[error("{}", digits_in_words(*.width))]
    NotDigits {
        /// The least number of digits, with leading zeros; 0 if leading zeros are not allowed.
        width: u8,
    },
    /// Outside the range that the encoding writes, in its own units.
    #[error("beyond {low} to {high}")]
    Beyond {
        /// The smallest allowed value.
        low: Fixed,
        /// The largest allowed value.
        high: Fixed,
    },
    /// A code where a coordinate is needed, or the reverse.
    #[error("its numbers are codes, so no coordinate can be written")]
    NoCoordinate,
}

fn digits_in_words(width: u8) -> String {
    match width {
        0 => "not a whole number without leading zeros".to_owned(),
        width => format!("not a whole number of {width} digits"),
    }
}

/// Returns the largest number as a text, `99,999.9999`.
fn largest(precision: Precision) -> String {
    let nines = |count: usize| "9".repeat(count);
    let digits = precision.integer_digits();
    let integer = if digits > 3 { format!("{},{}", nines(digits - 3), nines(3)) } else { nines(digits) };
    format!("{integer}.{}", nines(precision.decimals()))
}

/// A number of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParsedNumber {
    /// The value in units of the last decimal.
    pub value: Fixed,
    /// Which encodings its spelling agrees with, fixed or stripped.
    pub written: DecimalForms,
}

impl ParsedNumber {
    /// Parses a number of the block grammar, `-?(0|[1-9]\d*)(\.\d+)?`, with at most `precision` decimals. With `cut`, excess
    /// decimals are dropped.
    ///
    /// `-0.0000` is read as zero: writers never produce it, but models sometimes do.
    ///
    /// # Errors
    /// If the text is not such a number, has too many decimals, or is too large.
    pub fn parse(text: &[u8], precision: Precision, cut: bool) -> Result<Self, NumberError> {
        let prefix = scan_prefix(text);
        let integer = prefix.integer(text);
        let leading_zero = integer.len() > 1 && integer[0] == b'0';
        if !prefix.is_number() || leading_zero || (prefix.point && prefix.decimals == 0) {
            return Err(NumberError::Malformed);
        }
        if prefix.decimals > precision.decimals() && !cut {
            return Err(NumberError::TooManyDecimals(precision));
        }
        if integer.len() > precision.integer_digits() {
            return Err(NumberError::OutOfRange(precision));
        }
        let fixed = prefix.decimals >= precision.decimals();
        let written = DecimalForms { fixed, stripped: prefix.trailing_zeros == 0 };
        Ok(ParsedNumber { value: prefix.value(text, precision), written })
    }
}

/// A decimal number digit by digit: `±0.d1d2d3… × 10^point`.
pub(super) struct DecimalDigits {
    /// Whether it begins with `-`.
    pub negative: bool,
    /// The digits, from 0 to 9.
    pub digits: Vec<u8>,
    /// The number of digits before the point; negative for a point further to the left.
    pub point: i64,
}

impl DecimalDigits {
    /// Reads `[+-]?digits[.digits][(e|E)[+-]?digits]`.
    ///
    /// # Errors
    /// If the text is not such a number, or NaN or infinity.
    pub(super) fn parse(text: &str) -> Result<Self, NumberError> {
        let text = text.trim();
        let lower = text.trim_start_matches(['+', '-']).to_ascii_lowercase();
        if lower.starts_with("nan") || lower.starts_with("inf") {
            return Err(NumberError::NotFinite);
        }
        let (negative, rest) = match text.as_bytes() {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            all => (false, all),
        };
        let (mantissa, exponent) = match rest.iter().position(|b| matches!(b, b'e' | b'E')) {
            Some(at) => (&rest[..at], parse_exponent(&rest[at + 1..])?),
            None => (rest, 0),
        };
        let point = mantissa.iter().position(|&b| b == b'.').unwrap_or(mantissa.len());
        let integer = &mantissa[..point];
        let fraction = mantissa.get(point + 1..).unwrap_or(&[]);
        if integer.len() + fraction.len() == 0 || !integer.iter().chain(fraction).all(u8::is_ascii_digit) {
            return Err(NumberError::Malformed);
        }
        let digits = integer.iter().chain(fraction).map(|digit| digit - b'0').collect();
        Ok(DecimalDigits { negative, digits, point: integer.len() as i64 + exponent })
    }
}

/// Truncates decimal text toward zero, exactly. The grammar is that of [`DecimalDigits::parse`].
///
/// For file formats that store numbers as text (SDF, XYZ, JSON).
pub fn truncate_decimal(text: &str, precision: Precision) -> Result<Fixed, NumberError> {
    let number = DecimalDigits::parse(text)?;
    let magnitude = shifted(&number.digits, number.point, precision)?;
    Ok(if number.negative { -magnitude } else { magnitude })
}

fn parse_exponent(text: &[u8]) -> Result<i64, NumberError> {
    let text = std::str::from_utf8(text).map_err(|_| NumberError::Malformed)?;
    let exponent: i64 = text.parse().map_err(|_| NumberError::Malformed)?;
    // Larger exponents give zero or an overflow anyway, and the digits are processed one by one.
    Ok(exponent.clamp(-10_000, 10_000))
}

/// Returns the value `0.d1d2d3… × 10^point` in units of the last decimal, truncated.
fn shifted(digits: &[u8], point: i64, precision: Precision) -> Result<Fixed, NumberError> {
    let mut value: i64 = 0;
    for place in 0..(point + precision.decimals() as i64).max(0) {
        let digit = usize::try_from(place).ok().and_then(|i| digits.get(i)).map_or(0, |d| *d);
        value = value * 10 + i64::from(digit);
        if value > i64::from(precision.max_fixed()) {
            return Err(NumberError::OutOfRange(precision));
        }
        // Only zeros are left, however large the exponent.
        if value == 0 && place > digits.len() as i64 {
            return Ok(0);
        }
    }
    Ok(value as Fixed)
}

/// Truncates a single-precision value toward zero, exactly: `x · 10⁶` has at most 44 significant bits, so the product in double
/// precision is exact.
pub(crate) fn truncate_f32(x: f32, precision: Precision) -> Result<Fixed, NumberError> {
    if !x.is_finite() {
        return Err(NumberError::NotFinite);
    }
    let scaled = (f64::from(x) * f64::from(precision.units_per_angstrom())).trunc();
    if scaled.abs() > f64::from(precision.max_fixed()) {
        return Err(NumberError::OutOfRange(precision));
    }
    Ok(scaled as Fixed)
}

/// Truncates a double toward zero by its shortest decimal spelling. So a number that was written with this many decimals keeps them
/// (`1.1282`, stored as 1.128199999…, stays 1.1282).
pub(crate) fn truncate_f64(x: f64, precision: Precision) -> Result<Fixed, NumberError> {
    if !x.is_finite() {
        return Err(NumberError::NotFinite);
    }
    // Fast path: away from a boundary of the last decimal, truncating the product is safe.
    let scaled = x * f64::from(precision.units_per_angstrom());
    if scaled.abs() > f64::from(precision.max_fixed()) {
        return Err(NumberError::OutOfRange(precision));
    }
    // Below 10⁹, adjacent doubles differ by at most about 10⁻⁷, which is far less than this margin.
    if (scaled - scaled.round()).abs() > 1e-4 {
        return Ok(scaled.trunc() as Fixed);
    }
    truncate_decimal(&format!("{x:?}"), precision)
}

/// Appends `value`, given in units of the last decimal. It never writes `-0.0000`.
pub(crate) fn write_decimal(value: Fixed, precision: Precision, zeros: TrailingZeros, out: &mut String) {
    let (magnitude, unit) = (value.unsigned_abs(), precision.units_per_angstrom().unsigned_abs());
    // Room for a sign, the ten digits of an i32 and a point.
    let mut buffer = [0u8; 12];
    let point = buffer.len() - 1 - precision.decimals();
    let dropped = if zeros == TrailingZeros::Kept { 0 } else { precision.trailing_zeros(magnitude) };
    let (mut integer, mut fraction) = (magnitude / unit, magnitude % unit);
    let mut end = point;
    if dropped < precision.decimals() {
        for digit in buffer[point + 1..].iter_mut().rev() {
            *digit = b'0' + (fraction % 10) as u8;
            fraction /= 10;
        }
        buffer[point] = b'.';
        end = buffer.len() - dropped;
    }
    let mut start = point;
    loop {
        start -= 1;
        buffer[start] = b'0' + (integer % 10) as u8;
        integer /= 10;
        if integer == 0 {
            break;
        }
    }
    if value < 0 {
        start -= 1;
        buffer[start] = b'-';
    }
    // The buffer is ASCII.
    out.push_str(std::str::from_utf8(&buffer[start..end]).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_scanned_as_far_as_it_goes() {
        let scan = |text: &str| {
            let p = scan_prefix(text.as_bytes());
            (p.negative, p.integer_digits, p.point, p.decimals, p.trailing_zeros, p.rest)
        };
        assert_eq!(scan("-12.500x"), (true, 2, true, 3, 2, 1));
        assert_eq!(scan("0."), (false, 1, true, 0, 0, 0));
        assert_eq!(scan("7"), (false, 1, false, 0, 0, 0));
        assert_eq!(scan("-"), (true, 0, false, 0, 0, 0));
        assert_eq!(scan(".5"), (false, 0, false, 0, 0, 2));
        assert_eq!(scan("--1"), (true, 0, false, 0, 0, 2));
        assert_eq!(scan(""), (false, 0, false, 0, 0, 0));
        assert_eq!(scan("1.0.0"), (false, 1, true, 1, 1, 2));
    }

    #[test]
    fn truncation_is_exact_where_floats_are_not() {
        // 1.1282 * 10000 is 11281.999… in binary floating point.
        let truncate_decimal = |text| super::truncate_decimal(text, Precision::FOUR);
        assert_eq!(truncate_decimal("1.1282"), Ok(11_282));
        assert_eq!(truncate_f64(1.1282, Precision::FOUR), Ok(11_282));
        assert_eq!(truncate_decimal("-0.00009"), Ok(0));
        assert_eq!(truncate_decimal("-1.23456789e1"), Ok(-123_456));
        assert_eq!(truncate_decimal("12e-9999999"), Ok(0));
        assert_eq!(truncate_decimal("1e6"), Err(NumberError::OutOfRange(Precision::FOUR)));
        assert_eq!(truncate_decimal("nan"), Err(NumberError::NotFinite));
        assert_eq!(truncate_f32(f32::INFINITY, Precision::FOUR), Err(NumberError::NotFinite));
        // The float32 nearest to 1.005 is 1.00499999….
        assert_eq!(truncate_f32(1.005, Precision::FOUR), Ok(10_049));
    }

    #[test]
    fn every_four_decimal_number_survives_a_double() {
        for value in -200_000..=200_000 {
            assert_eq!(truncate_f64(f64::from(value) / 1e4, Precision::FOUR), Ok(value));
        }
    }

    #[test]
    fn writes_fixed_and_stripped_numbers() {
        let parse =
            |text: &str| ParsedNumber::parse(text.as_bytes(), Precision::FOUR, false).map(|n| n.value);
        let spell = |v, zeros| {
            let mut s = String::new();
            write_decimal(v, Precision::FOUR, zeros, &mut s);
            s
        };
        for (value, fixed, stripped) in [
            (0, "0.0000", "0"),
            (-6_413, "-0.6413", "-0.6413"),
            (-120_500, "-12.0500", "-12.05"),
            (999_999_999, "99999.9999", "99999.9999"),
            (-999_999_999, "-99999.9999", "-99999.9999"),
            (10_000, "1.0000", "1"),
        ] {
            assert_eq!(spell(value, TrailingZeros::Kept), fixed);
            assert_eq!(spell(value, TrailingZeros::Removed), stripped);
            assert_eq!(parse(fixed), Ok(value));
            assert_eq!(parse(stripped), Ok(value));
        }
    }
}
