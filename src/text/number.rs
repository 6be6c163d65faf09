//! Coordinates as fixed-point integers, parsed and written without floats.
//!
//! The users' `trunc(x * 10000) / 10000` in floating point loses 0.0001 on about 7 % of four-decimal numbers;
//! decimal text is cut here digit by digit instead.

use super::Dialect;

/// A coordinate in units of 10⁻⁴ Å.
pub type Fixed = i32;

/// Units of [`Fixed`] in one Å.
pub const UNITS_PER_ANGSTROM: Fixed = 10_000;

/// The largest magnitude that a coordinate may have: 99,999.9999 Å.
pub const MAX_FIXED: Fixed = 999_999_999;

/// How the digits of a number were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digits {
    /// Exactly four decimals, the last one not zero: legal in both dialects.
    Both,
    /// Exactly four decimals, the last one zero.
    Fixed,
    /// Fewer than four decimals and no trailing zero.
    Stripped,
    /// Fewer than four decimals with a trailing zero: neither dialect.
    Neither,
}

/// Why a number was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// Not of the form `-?(0|[1-9]\d*)(\.\d+)?`.
    #[error("not a number of the form -?digits[.digits]")]
    Malformed,
    /// More than four decimals.
    #[error("more than four decimals")]
    TooManyDecimals,
    /// NaN or infinity.
    #[error("not finite")]
    NotFinite,
    /// Beyond [`MAX_FIXED`].
    #[error("beyond 99,999.9999 Å")]
    OutOfRange,
}

/// Parses a number of the block grammar, `-?(0|[1-9]\d*)(\.\d{1,4})?`.
///
/// `-0.0000` is read as zero: writers never produce it, models sometimes do.
pub fn parse_number(text: &[u8]) -> Result<(Fixed, Digits), NumberError> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let integer_len = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    if integer_len == 0 || (integer_len > 1 && digits[0] == b'0') {
        return Err(NumberError::Malformed);
    }
    let fraction = match &digits[integer_len..] {
        [] => &[][..],
        [b'.', rest @ ..] if !rest.is_empty() && rest.iter().all(u8::is_ascii_digit) => rest,
        _ => return Err(NumberError::Malformed),
    };
    if fraction.len() > 4 {
        return Err(NumberError::TooManyDecimals);
    }
    let magnitude = magnitude(&digits[..integer_len], fraction)?;
    let ends_in_zero = fraction.last() == Some(&b'0');
    let written = match (fraction.len() == 4, ends_in_zero) {
        (true, false) => Digits::Both,
        (true, true) => Digits::Fixed,
        (false, false) => Digits::Stripped,
        (false, true) => Digits::Neither,
    };
    Ok((if negative { -magnitude } else { magnitude }, written))
}

/// The fixed-point magnitude of `integer.fraction`, decimals beyond the fourth dropped.
fn magnitude(integer: &[u8], fraction: &[u8]) -> Result<Fixed, NumberError> {
    if integer.len() > 5 {
        return Err(NumberError::OutOfRange);
    }
    let mut value: Fixed = 0;
    for &digit in integer {
        value = value * 10 + Fixed::from(digit - b'0');
    }
    for place in 0..4 {
        let digit = fraction.get(place).map_or(0, |d| d - b'0');
        value = value * 10 + Fixed::from(digit);
    }
    Ok(value)
}

/// Truncates decimal text toward zero to four decimals, exactly: `[+-]?digits[.digits][(e|E)[+-]?digits]`.
///
/// For file formats that write numbers as text (SDF, XYZ, JSON).
pub fn truncate_decimal(text: &str) -> Result<Fixed, NumberError> {
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
    let digits: Vec<u8> = integer.iter().chain(fraction).copied().collect();
    let magnitude = shifted(&digits, integer.len() as i64 + exponent)?;
    Ok(if negative { -magnitude } else { magnitude })
}

fn parse_exponent(text: &[u8]) -> Result<i64, NumberError> {
    let text = std::str::from_utf8(text).map_err(|_| NumberError::Malformed)?;
    let exponent: i64 = text.parse().map_err(|_| NumberError::Malformed)?;
    Ok(exponent.clamp(-10_000, 10_000))
}

/// The value `0.d1d2d3… × 10^point` in units of 10⁻⁴ Å, truncated.
fn shifted(digits: &[u8], point: i64) -> Result<Fixed, NumberError> {
    let mut value: i64 = 0;
    for place in 0..(point + 4).max(0) {
        let digit = usize::try_from(place).ok().and_then(|i| digits.get(i)).map_or(0, |d| d - b'0');
        value = value * 10 + i64::from(digit);
        if value > i64::from(MAX_FIXED) {
            return Err(NumberError::OutOfRange);
        }
        if value == 0 && place > digits.len() as i64 {
            return Ok(0);
        }
    }
    Ok(value as Fixed)
}

/// Truncates a single-precision value toward zero, exactly: `x · 10⁴` has at most 38 significant bits, so the
/// product in double precision is exact.
pub fn truncate_f32(x: f32) -> Result<Fixed, NumberError> {
    if !x.is_finite() {
        return Err(NumberError::NotFinite);
    }
    let scaled = (f64::from(x) * f64::from(UNITS_PER_ANGSTROM)).trunc();
    if scaled.abs() > f64::from(MAX_FIXED) {
        return Err(NumberError::OutOfRange);
    }
    Ok(scaled as Fixed)
}

/// Truncates a double toward zero by its shortest decimal spelling, so that a number that was written with four
/// decimals keeps them (`1.1282` stored as 1.128199999… stays 1.1282).
pub fn truncate_f64(x: f64) -> Result<Fixed, NumberError> {
    if !x.is_finite() {
        return Err(NumberError::NotFinite);
    }
    // Fast path: away from a four-decimal boundary the truncation of the product is certain.
    let scaled = x * f64::from(UNITS_PER_ANGSTROM);
    if scaled.abs() > f64::from(MAX_FIXED) {
        return Err(NumberError::OutOfRange);
    }
    if (scaled - scaled.round()).abs() > 1e-4 {
        return Ok(scaled.trunc() as Fixed);
    }
    truncate_decimal(&format!("{x:?}"))
}

/// Appends `value` in `dialect`; never `-0.0000`.
pub fn write_number(value: Fixed, dialect: Dialect, out: &mut String) {
    let magnitude = value.unsigned_abs();
    // A sign, six digits (an i32 has at most that many before the point), a point and four decimals.
    let mut buffer = [0u8; 12];
    let mut end = buffer.len();
    let dropped = match dialect {
        Dialect::Fixed => 0,
        Dialect::Stripped => decimals_stripped(magnitude),
    };
    let (mut integer, mut fraction) = (magnitude / 10_000, magnitude % 10_000);
    if dropped < 4 {
        for place in (0..4).rev() {
            buffer[8 + place] = b'0' + (fraction % 10) as u8;
            fraction /= 10;
        }
        buffer[7] = b'.';
        end -= dropped;
    } else {
        end = 7;
    }
    let mut start = 7;
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

/// How many of the four decimals of a magnitude are trailing zeros (0 to 4).
pub fn decimals_stripped(magnitude: u32) -> usize {
    match magnitude % 10_000 {
        0 => 4,
        f if f % 1000 == 0 => 3,
        f if f % 100 == 0 => 2,
        f if f % 10 == 0 => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncation_is_exact_where_floats_are_not() {
        // 1.1282 * 10000 is 11281.999… in binary floating point.
        assert_eq!(truncate_decimal("1.1282"), Ok(11_282));
        assert_eq!(truncate_f64(1.1282), Ok(11_282));
        assert_eq!(truncate_decimal("-0.00009"), Ok(0));
        assert_eq!(truncate_decimal("-1.23456789e1"), Ok(-123_456));
        assert_eq!(truncate_decimal("12e-9999999"), Ok(0));
        assert_eq!(truncate_decimal("1e6"), Err(NumberError::OutOfRange));
        assert_eq!(truncate_decimal("nan"), Err(NumberError::NotFinite));
        assert_eq!(truncate_f32(f32::INFINITY), Err(NumberError::NotFinite));
        // The float32 nearest to 1.005 is 1.00499999….
        assert_eq!(truncate_f32(1.005), Ok(10_049));
    }

    #[test]
    fn every_four_decimal_number_survives_a_double() {
        for value in -200_000..=200_000 {
            assert_eq!(truncate_f64(f64::from(value) / 1e4), Ok(value));
        }
    }

    #[test]
    fn writes_both_dialects() {
        let spell = |v, d| {
            let mut s = String::new();
            write_number(v, d, &mut s);
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
            assert_eq!(spell(value, Dialect::Fixed), fixed);
            assert_eq!(spell(value, Dialect::Stripped), stripped);
            assert_eq!(parse_number(fixed.as_bytes()).map(|n| n.0), Ok(value));
            assert_eq!(parse_number(stripped.as_bytes()).map(|n| n.0), Ok(value));
        }
    }
}
