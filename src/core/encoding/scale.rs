//! The unit of integers: coordinates times a scale, rounded to whole numbers exactly.
//!
//! In binary floating point 0.29 · 100 is 28.999…, so a product of doubles gives another integer than the decimal that a file
//! contains. Here a number is multiplied digit by digit wherever its product is close to a border of the rounding.

use super::decimal_text::{DecimalDigits, NumberError};

/// The rounding of a coordinate to an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RoundTo {
    /// Toward zero.
    Truncate,
    /// To the nearest integer, halves to even, like NumPy's `rint`.
    Nearest,
    /// Downward.
    Floor,
}

/// The number of units in 1 Å, as the decimal number that was given: `mantissa · 10^exponent`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Scale {
    units: f64,
    mantissa: u64,
    exponent: i32,
}

/// The largest magnitude of a product. It is beyond every integer that an encoding writes.
const LARGEST: i64 = 1_000_000_000;

/// Products of doubles below [`LARGEST`] differ from the exact product by less than this.
const MARGIN: f64 = 1e-6;

impl Scale {
    /// The smallest scale: an integer for every 1,000 Å.
    pub const LEAST: f64 = 1e-3;
    /// The largest scale.
    pub const MOST: f64 = 1e9;

    /// Returns a scale of this many units in 1 Å; `None` unless it is from [`Scale::LEAST`] to [`Scale::MOST`].
    pub fn new(units: f64) -> Option<Self> {
        if !(Scale::LEAST..=Scale::MOST).contains(&units) {
            return None;
        }
        // The shortest decimal number that is this double has at most 17 digits.
        let spelled = format!("{units:e}");
        let (digits, power) = spelled.split_once('e')?;
        let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let exponent = power.parse::<i32>().ok()? - i32::try_from(decimals).ok()?;
        Some(Scale { units, mantissa: digits.replace('.', "").parse().ok()?, exponent })
    }

    /// Returns the number of units in 1 Å.
    pub fn units(self) -> f64 {
        self.units
    }

    /// Returns the coordinate of an integer, in Å.
    pub fn angstrom(self, value: f64) -> f64 {
        if self.exponent < 0 {
            // Both are whole numbers, so for scales of few digits the quotient is rounded only once.
            return value * 10f64.powi(-self.exponent) / self.mantissa as f64;
        }
        value / self.units
    }

    /// Returns a coordinate in Å as an integer. A double stands for the shortest decimal number that is read as it. Magnitudes beyond 10⁹
    /// count as 10⁹.
    ///
    /// # Errors
    /// If the coordinate is not finite.
    pub(super) fn round(self, x: f64, rounding: RoundTo) -> Result<i64, NumberError> {
        if !x.is_finite() {
            return Err(NumberError::NotFinite);
        }
        let product = x * self.units;
        if product.abs() >= LARGEST as f64 {
            return Ok(if product < 0.0 { -LARGEST } else { LARGEST });
        }
        let (rounded, from_border) = match rounding {
            RoundTo::Truncate => (product.trunc(), (product - product.round()).abs()),
            RoundTo::Floor => (product.floor(), (product - product.round()).abs()),
            RoundTo::Nearest => (product.round_ties_even(), (product - product.floor() - 0.5).abs()),
        };
        if from_border > MARGIN {
            return Ok(rounded as i64);
        }
        self.round_digits(&DecimalDigits::parse(&format!("{x:?}"))?, rounding)
    }

    /// Returns a coordinate in Å, given as decimal text, as an integer. Magnitudes beyond 10⁹ count as 10⁹.
    ///
    /// # Errors
    /// If the text is not a finite number.
    pub(super) fn round_text(self, text: &str, rounding: RoundTo) -> Result<i64, NumberError> {
        self.round_digits(&DecimalDigits::parse(text)?, rounding)
    }

    fn round_digits(self, number: &DecimalDigits, rounding: RoundTo) -> Result<i64, NumberError> {
        let product = product(&number.digits, self.mantissa);
        let carried = (product.len() - number.digits.len()) as i64;
        let whole = number.point + carried + i64::from(self.exponent);
        let mut integer: i64 = 0;
        for place in 0..whole.max(0) {
            let digit = usize::try_from(place).ok().and_then(|at| product.get(at)).map_or(0, |digit| *digit);
            integer = integer * 10 + i64::from(digit);
            // Beyond the digits only zeros are left.
            if integer >= LARGEST || (integer == 0 && place > product.len() as i64) {
                break;
            }
        }
        let behind = usize::try_from(whole).map_or(&product[..], |whole| product.get(whole..).unwrap_or(&[]));
        let is_whole = behind.iter().all(|digit| *digit == 0);
        let up = match rounding {
            RoundTo::Truncate => false,
            RoundTo::Floor => number.negative && !is_whole,
            // With zeros between the point and the first digit it is far below a half.
            RoundTo::Nearest => whole >= 0 && is_above_half(behind, integer % 2 == 1),
        };
        let magnitude = (integer + i64::from(up)).min(LARGEST);
        Ok(if number.negative { -magnitude } else { magnitude })
    }
}

/// Returns whether a fraction `0.d1d2d3…` is rounded up: above a half, or a half behind an odd number.
fn is_above_half(fraction: &[u8], behind_odd: bool) -> bool {
    match fraction {
        [5, rest @ ..] if rest.iter().all(|digit| *digit == 0) => behind_odd,
        [first, ..] => *first >= 5,
        [] => false,
    }
}

/// Returns the digits of a product, at least as many as `digits` has.
fn product(digits: &[u8], factor: u64) -> Vec<u8> {
    let mut reversed = Vec::with_capacity(digits.len() + 20);
    let mut carry: u128 = 0;
    for digit in digits.iter().rev() {
        let sum = u128::from(*digit) * u128::from(factor) + carry;
        // The last digit of the sum is below 10.
        reversed.push((sum % 10) as u8);
        carry = sum / 10;
    }
    while carry > 0 {
        reversed.push((carry % 10) as u8);
        carry /= 10;
    }
    reversed.reverse();
    reversed
}

impl std::fmt::Display for Scale {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.units.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [RoundTo; 3] = [RoundTo::Truncate, RoundTo::Floor, RoundTo::Nearest];

    /// `numerator / denominator` by whole numbers alone.
    fn quotient(numerator: i64, denominator: i64, rounding: RoundTo) -> i64 {
        let (floor, rest) = (numerator.div_euclid(denominator), numerator.rem_euclid(denominator));
        match rounding {
            RoundTo::Floor => floor,
            RoundTo::Truncate => numerator / denominator,
            RoundTo::Nearest => {
                let up = 2 * rest > denominator || (2 * rest == denominator && floor % 2 != 0);
                floor + i64::from(up)
            }
        }
    }

    #[test]
    fn products_are_those_of_the_decimals() {
        // Scale as a fraction of whole numbers.
        for (units, numerator, denominator) in [
            (10.0, 10, 1),
            (100.0, 100, 1),
            (1_000.0, 1_000, 1),
            (2.54, 254, 100),
            (1.1, 11, 10),
            (0.25, 1, 4),
        ] {
            let scale = Scale::new(units).unwrap();
            for value in (-210_000..210_000).step_by(19) {
                let x = f64::from(value) / 1e4;
                for rounding in ALL {
                    let exact = quotient(i64::from(value) * numerator, 10_000 * denominator, rounding);
                    assert_eq!(scale.round(x, rounding), Ok(exact), "{x} · {units} {rounding:?}");
                    let text = format!("{x:.4}");
                    assert_eq!(scale.round_text(&text, rounding), Ok(exact), "{text} · {units} {rounding:?}");
                }
            }
        }
    }

    #[test]
    fn every_digit_of_a_text_counts() {
        let scale = Scale::new(100.0).unwrap();
        let all = |text: &str| ALL.map(|rounding| scale.round_text(text, rounding).unwrap());
        assert_eq!(all("0.29"), [29, 29, 29]);
        assert_eq!(all("0.289999999999999999999999"), [28, 28, 29]);
        assert_eq!(all("-0.290000000000000000000001"), [-29, -30, -29]);
        assert_eq!(all("0.285"), [28, 28, 28]);
        assert_eq!(all("0.2850000000000000000000001"), [28, 28, 29]);
        assert_eq!(all("-1e-300"), [0, -1, 0]);
        assert_eq!(all("2.9e-1"), [29, 29, 29]);
        assert_eq!(all("0e9999999"), [0, 0, 0]);
        assert_eq!(all("-1e9999"), [-LARGEST; 3]);
        assert_eq!(scale.round_text("inf", RoundTo::Floor), Err(NumberError::NotFinite));
        assert_eq!(scale.round_text("1,5", RoundTo::Floor), Err(NumberError::Malformed));
        assert_eq!(scale.round(f64::NAN, RoundTo::Floor), Err(NumberError::NotFinite));
        assert_eq!(scale.round(1e300, RoundTo::Floor), Ok(LARGEST));
    }

    #[test]
    fn integers_are_read_as_the_nearest_double() {
        // 110 / 1.1 is 99.99999999999999 in floating point.
        for value in 1..20_000 {
            let x = Scale::new(1.1).unwrap().angstrom(f64::from(value));
            assert_eq!(x, f64::from(value * 10) / 11.0);
        }
        assert_eq!(Scale::new(1.1).unwrap().angstrom(110.0), 100.0);
        for wrong in [0.0, -1.0, 1e-4, 1e10, f64::NAN, f64::INFINITY] {
            assert_eq!(Scale::new(wrong), None);
        }
        assert_eq!(Scale::new(1e3).unwrap().to_string(), "1000");
    }
}
