//! The possible placeholders: three numbers of an encoding, digit by digit.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use rand::Rng;

use drift_core::Encoding;
use drift_core::encoding::Fixed;

/// The placeholders that users have or proposed, with their sources.
pub(crate) const USERS_PLACEHOLDERS: [(&str, &str); 5] = [
    ("0.0000,0.0000,0.0000", "LP 2.1 generic, LP 3.8"),
    ("-0.0000,0.0000,0.0000", "with a sign on x"),
    ("0.000,0.000,0.000", "LP 3.9, 4.0, 4.3"),
    ("1.234,-5.678,9.012", "proposed"),
    ("1.23,-4.56,7.89", "proposed"),
];

/// The largest number of digits before the point in a placeholder's number, which is that of the digit runs in counting tables.
pub(super) const MAX_INTEGER_DIGITS: u32 = 4;

/// Integer parts are below this value.
pub(super) const INTEGERS: u16 = 10u16.pow(MAX_INTEGER_DIGITS);

/// One number of a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Number {
    /// Whether it begins with `-`.
    pub negative: bool,
    /// The digits before the point, as a number below [`INTEGERS`].
    pub integer: u16,
    /// The number of digits after the point; without any there is no point.
    pub decimals: u8,
    /// The digits after the point as an integer; for encodings that are not decimal, the magnitude of the value.
    pub fraction: u32,
}

impl Number {
    /// Returns the value of a number that is written without a point.
    fn value(self) -> Fixed {
        if self.negative { -(self.fraction as Fixed) } else { self.fraction as Fixed }
    }
}

/// The numbers of a placeholder.
pub type Numbers = [Number; 3];

/// All strings of three numbers that a writer of an encoding could write: with four decimals, fixed
/// `-?(0|[1-9]\d{0,3})\.\d{4}`; stripped `-?(0|[1-9]\d{0,3})(\.\d{0,3}[1-9])?`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space(pub Encoding);

impl Space {
    /// Returns the possible numbers of decimals.
    pub fn decimals(self) -> RangeInclusive<u8> {
        self.0.least_decimals() as u8..=self.0.decimals() as u8
    }

    /// Returns the fractions with `decimals` digits, in order.
    pub fn fractions(self, decimals: u8) -> impl Iterator<Item = u32> {
        let fixed = self.0.is_fixed();
        (0..10u32.pow(decimals.into())).filter(move |value| fixed || decimals == 0 || value % 10 != 0)
    }

    /// Returns the text of a placeholder, without the opening and closing characters of the slot.
    pub fn text(self, numbers: &Numbers) -> String {
        if self.0.is_decimal() {
            return text(numbers, self.0.separator());
        }
        self.0.numbers_text(&numbers.map(Number::value))
    }

    /// Returns the number of values of an axis.
    fn values(self, axis: usize) -> u32 {
        let (low, high) = self.0.number().limits(axis);
        (high - low) as u32 + 1
    }

    /// Returns the number for the value at index `place` of an axis.
    fn of_value(self, axis: usize, place: u32) -> Number {
        let value = self.0.number().limits(axis).0 + place as Fixed;
        Number { negative: value < 0, integer: 0, decimals: 0, fraction: value.unsigned_abs() }
    }

    /// Returns the number of strings.
    pub fn size(self) -> u128 {
        if !self.0.is_decimal() {
            return (0..self.0.numbers()).map(|axis| u128::from(self.values(axis))).product();
        }
        let fractions: u128 = self.decimals().map(|decimals| self.fractions(decimals).count() as u128).sum();
        (2 * u128::from(INTEGERS) * fractions).pow(3)
    }

    /// Returns the start of searches: single digits, all decimals, no sign.
    pub fn start(self) -> Numbers {
        if !self.0.is_decimal() {
            let (low, high) = self.0.number().limits(0);
            return std::array::from_fn(|axis| {
                // 0 is `-low` values above the smallest value. A range without 0 starts at its end.
                self.of_value(axis, if (low..=high).contains(&0) { low.unsigned_abs() } else { 0 })
            });
        }
        // The smallest fraction: 1 in the stripped encoding, which removes a trailing zero.
        let fraction = u32::from(self.0.is_stripped());
        [Number { negative: false, integer: 0, decimals: self.0.decimals() as u8, fraction }; 3]
    }

    /// Returns a random placeholder: first the number of digits is drawn, then the digits, so that no shape is rare.
    pub fn random(self, random: &mut impl Rng) -> Numbers {
        if !self.0.is_decimal() {
            return std::array::from_fn(|axis| {
                self.of_value(axis, random.random_range(0..self.values(axis)))
            });
        }
        std::array::from_fn(|_| {
            let decimals = random.random_range(self.decimals());
            Number {
                negative: random.random(),
                integer: random_integer(random),
                decimals,
                fraction: self.random_fraction(decimals, random),
            }
        })
    }

    /// Returns a random step: another sign, integer part, number of decimals, or digit of one number.
    pub(crate) fn vary(self, numbers: &Numbers, random: &mut impl Rng) -> Numbers {
        let mut next = *numbers;
        if !self.0.is_decimal() {
            let axis = random.random_range(0..self.0.numbers());
            next[axis] = self.of_value(axis, random.random_range(0..self.values(axis)));
            return next;
        }
        let number = &mut next[random.random_range(0..3)];
        match random.random_range(0..4) {
            0 => number.negative = !number.negative,
            1 => number.integer = random_integer(random),
            2 => {
                number.decimals = random.random_range(self.decimals());
                number.fraction = self.random_fraction(number.decimals, random);
            }
            _ => number.fraction = self.other_digit(*number, random),
        }
        next
    }

    /// Returns the fraction of a number with one digit redrawn.
    fn other_digit(self, number: Number, random: &mut impl Rng) -> u32 {
        if number.decimals == 0 {
            return 0;
        }
        let place = random.random_range(0..u32::from(number.decimals));
        let unit = 10u32.pow(place);
        // The last digit of the stripped encoding is not zero.
        let lowest = u32::from(place == 0 && self.0.is_stripped());
        let old = number.fraction / unit % 10;
        number.fraction - old * unit + random.random_range(lowest..10) * unit
    }

    fn random_fraction(self, decimals: u8, random: &mut impl Rng) -> u32 {
        if decimals == 0 {
            return 0;
        }
        let head = random.random_range(0..10u32.pow(u32::from(decimals) - 1));
        head * 10 + random.random_range(u32::from(self.0.is_stripped())..10)
    }
}

fn random_integer(random: &mut impl Rng) -> u16 {
    match random.random_range(1..=MAX_INTEGER_DIGITS) {
        // One digit includes 0, and longer integers do not begin with 0, as writers write them.
        1 => random.random_range(0..10),
        digits => random.random_range(10u16.pow(digits - 1)..10u16.pow(digits)),
    }
}

/// Returns the text of a number, such as `-12.0500`.
pub(crate) fn number_text(number: Number) -> String {
    let sign = if number.negative { "-" } else { "" };
    let mut out = format!("{sign}{}", number.integer);
    if number.decimals > 0 {
        // Writing to a string cannot fail.
        let _ = write!(out, ".{:0width$}", number.fraction, width = usize::from(number.decimals));
    }
    out
}

/// Returns the text of a placeholder, without brackets.
pub fn text(numbers: &Numbers, separator: &str) -> String {
    numbers.map(number_text).join(separator)
}

/// Returns the order of ties: first placeholders that are in use or were requested, then the fewest characters, then the smallest bytes.
pub(crate) fn tie_key(in_use: bool, placeholder: &str) -> (bool, usize, &str) {
    (!in_use, placeholder.len(), placeholder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use drift_core::encoding::{Precision, is_three_numbers};
    use rand::SeedableRng;

    #[test]
    fn every_string_of_the_space_is_a_block_of_its_encoding() {
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        // Six decimals leave three digits before the point, and placeholders may have four.
        let encodings = (1..=5).filter_map(Precision::new).flat_map(Encoding::both);
        for encoding in encodings.flat_map(|e| [e, e.with_spaces(true)]) {
            let space = Space(encoding);
            let mut numbers = space.start();
            for _ in 0..2_000 {
                for numbers in [numbers, space.random(&mut random)] {
                    let text = space.text(&numbers);
                    let (_, written) = encoding.parse_numbers(text.as_bytes(), false).unwrap();
                    assert!(written.agrees_with(encoding), "{text}");
                    assert!(is_three_numbers(&text, encoding.separator()), "{text}");
                }
                numbers = space.vary(&numbers, &mut random);
            }
        }
        assert_eq!(Space(Encoding::FIXED).text(&Space(Encoding::FIXED).start()), "0.0000,0.0000,0.0000");
        assert_eq!(Space(Encoding::FIXED).size(), 8_000_000_000_000_000_000_000_000);
    }
}
