//! Decimal coordinates: their number of decimals ([`Precision`]), and whether trailing zeros are written ([`TrailingZeros`]).

use serde::{Deserialize, Serialize};

use super::Encoding;

/// A coordinate as the integer that its encoding writes: a multiple of the last decimal (10⁻⁴ Å with four decimals, [`Precision`]),
/// the index of a bin, an integer, or a code.
pub type Fixed = i32;

/// A table, because every coordinate needs one of them.
pub(super) const POWERS_OF_TEN: [Fixed; 7] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];

/// The largest number of decimals in a text: 0 to 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Precision(u8);

impl Precision {
    /// No decimals.
    pub const ZERO: Precision = Precision(0);
    /// Four decimals, as the users write.
    pub const FOUR: Precision = Precision(4);
    /// The largest precision: six decimals.
    pub const MOST: Precision = Precision(6);

    /// Returns a precision of `decimals` decimals; `None` above 6.
    pub const fn new(decimals: usize) -> Option<Self> {
        if decimals <= 6 { Some(Precision(decimals as u8)) } else { None }
    }

    /// Returns the number of decimals.
    pub const fn decimals(self) -> usize {
        self.0 as usize
    }

    /// Returns the number of units of [`Fixed`] in one Å.
    pub const fn units_per_angstrom(self) -> Fixed {
        POWERS_OF_TEN[self.0 as usize]
    }

    /// Returns the most digits before the point: five, or fewer if [`Fixed`] cannot hold as many.
    pub const fn integer_digits(self) -> usize {
        if self.0 <= 4 { 5 } else { 9 - self.0 as usize }
    }

    /// Returns the largest magnitude of a coordinate, in units of the last decimal: 99,999.9999 Å with four decimals.
    pub const fn max_fixed(self) -> Fixed {
        (10 as Fixed).pow((self.integer_digits() + self.decimals()) as u32) - 1
    }

    /// Returns how many of a magnitude's decimals are trailing zeros, from 0 to all.
    pub fn trailing_zeros(self, magnitude: u32) -> usize {
        let (mut rest, mut zeros) = (magnitude, 0);
        while zeros < self.decimals() && rest.is_multiple_of(10) {
            rest /= 10;
            zeros += 1;
        }
        zeros
    }

    /// Returns the coordinate of a value, in Å.
    pub fn angstrom(self, value: Fixed) -> f64 {
        f64::from(value) / f64::from(self.units_per_angstrom())
    }

    /// Converts a value of another precision to this one. Excess decimals are truncated toward zero.
    pub fn convert(self, value: Fixed, from: Precision) -> Fixed {
        let (own, other) = (self.units_per_angstrom(), from.units_per_angstrom());
        if own <= other { value / (other / own) } else { value.saturating_mul(own / other) }
    }

    /// Returns the number of decimals as a word, such as `four`, for messages.
    pub fn in_words(self) -> &'static str {
        ["no", "one", "two", "three", "four", "five", "six"][self.decimals()]
    }
}

impl Default for Precision {
    fn default() -> Self {
        Precision::FOUR
    }
}

impl std::fmt::Display for Precision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for Precision {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().ok().and_then(Precision::new).ok_or("numbers have 0 to 6 decimals")
    }
}

/// Whether numbers keep their trailing zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TrailingZeros {
    /// `0.5000`
    Kept,
    /// `0.5`; a trailing point is removed too.
    Removed,
}

/// The conventions for trailing zeros that decimal numbers agree with. Both hold if no number ends in a zero and all have their
/// full decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecimalForms {
    /// Every number has all its decimals.
    pub fixed: bool,
    /// No number has trailing zeros.
    pub stripped: bool,
}

impl Default for DecimalForms {
    fn default() -> Self {
        DecimalForms::ANY
    }
}

impl DecimalForms {
    /// Agrees with both conventions: the state before the first number.
    pub const ANY: DecimalForms = DecimalForms { fixed: true, stripped: true };

    /// Returns the conventions that hold for both.
    pub fn join(self, other: DecimalForms) -> Self {
        DecimalForms { fixed: self.fixed && other.fixed, stripped: self.stripped && other.stripped }
    }

    /// Returns whether an encoding may have written the blocks.
    pub fn agrees_with(self, encoding: Encoding) -> bool {
        match encoding.zeros() {
            Some(TrailingZeros::Kept) => self.fixed,
            Some(TrailingZeros::Removed) => self.stripped,
            None => true,
        }
    }
}
