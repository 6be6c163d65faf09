//! How the numbers of blocks are written: with how many decimals ([`Precision`]), whether trailing zeros stand
//! ([`TrailingZeros`]), and what separates them ([`Separator`]); together a [`Dialect`].

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A coordinate in units of its last decimal: of 10⁻⁴ Å with four decimals ([`Precision`]).
pub type Fixed = i32;

/// Looked up for every coordinate.
pub(super) const POWERS_OF_TEN: [Fixed; 7] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];

/// How many decimals the numbers of a text have at most: 1 to 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Precision(u8);

impl Precision {
    /// The users': four decimals.
    pub const FOUR: Precision = Precision(4);
    /// The most that there can be.
    pub const MOST: Precision = Precision(6);

    /// So many decimals; `None` if they are not 1 to 6.
    pub const fn new(decimals: usize) -> Option<Self> {
        if decimals >= 1 && decimals <= 6 { Some(Precision(decimals as u8)) } else { None }
    }

    /// How many decimals.
    pub const fn decimals(self) -> usize {
        self.0 as usize
    }

    /// Units of [`Fixed`] in one Å.
    pub const fn units_per_angstrom(self) -> Fixed {
        POWERS_OF_TEN[self.0 as usize]
    }

    /// The most digits before the point: five, fewer where [`Fixed`] holds no more.
    pub const fn integer_digits(self) -> usize {
        if self.0 <= 4 { 5 } else { 9 - self.0 as usize }
    }

    /// The largest magnitude that a coordinate may have; 99,999.9999 Å with four decimals.
    pub const fn max_fixed(self) -> Fixed {
        (10 as Fixed).pow((self.integer_digits() + self.decimals()) as u32) - 1
    }

    /// How many of a magnitude's decimals are trailing zeros, 0 to all.
    pub fn trailing_zeros(self, magnitude: u32) -> usize {
        let (mut rest, mut zeros) = (magnitude, 0);
        while zeros < self.decimals() && rest.is_multiple_of(10) {
            rest /= 10;
            zeros += 1;
        }
        zeros
    }

    /// A coordinate in Å.
    pub fn angstrom(self, value: Fixed) -> f64 {
        f64::from(value) / f64::from(self.units_per_angstrom())
    }

    /// A coordinate of another precision in this one: further decimals are cut, toward zero.
    pub fn convert(self, value: Fixed, from: Precision) -> Fixed {
        let (own, other) = (self.units_per_angstrom(), from.units_per_angstrom());
        if own <= other { value / (other / own) } else { value.saturating_mul(own / other) }
    }

    /// `four`, for messages.
    pub fn in_words(self) -> &'static str {
        ["one", "two", "three", "four", "five", "six"][self.decimals() - 1]
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
        text.parse().ok().and_then(Precision::new).ok_or("numbers have 1 to 6 decimals")
    }
}

/// Whether numbers keep the zeros at their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TrailingZeros {
    /// `0.5000`
    Kept,
    /// `0.5`; a trailing point goes too.
    Removed,
}

/// What stands between the numbers of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Separator {
    /// `0.5,1,2`
    #[default]
    Comma,
    /// `0.5 1 2`
    Space,
}

impl Separator {
    /// The character.
    pub const fn byte(self) -> u8 {
        match self {
            Separator::Comma => b',',
            Separator::Space => b' ',
        }
    }

    /// Three numbers that were written with commas, with this between them.
    pub fn put_into(self, numbers: &str) -> String {
        match self {
            Separator::Comma => numbers.to_owned(),
            Separator::Space => numbers.replace(',', " "),
        }
    }

    /// The same.
    pub const fn character(self) -> char {
        self.byte() as char
    }
}

/// How the blocks of a text are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dialect {
    zeros: TrailingZeros,
    precision: Precision,
    separator: Separator,
}

/// Names by separator, dialect and decimals.
const NAMES: [[[&str; 6]; 2]; 2] = [
    [
        ["fixed-1", "fixed-2", "fixed-3", "fixed", "fixed-5", "fixed-6"],
        ["stripped-1", "stripped-2", "stripped-3", "stripped", "stripped-5", "stripped-6"],
    ],
    [
        [
            "fixed-1-spaces",
            "fixed-2-spaces",
            "fixed-3-spaces",
            "fixed-spaces",
            "fixed-5-spaces",
            "fixed-6-spaces",
        ],
        [
            "stripped-1-spaces",
            "stripped-2-spaces",
            "stripped-3-spaces",
            "stripped-spaces",
            "stripped-5-spaces",
            "stripped-6-spaces",
        ],
    ],
];

impl Dialect {
    /// Exactly four decimals, `0.5000`.
    pub const FIXED: Dialect = Dialect::new(TrailingZeros::Kept, Precision::FOUR);
    /// At most four decimals, trailing zeros and a trailing point removed, `0.5`.
    pub const STRIPPED: Dialect = Dialect::new(TrailingZeros::Removed, Precision::FOUR);
    /// Both dialects of four decimals, in the order of reports.
    pub const ALL: [Dialect; 2] = Dialect::both(Precision::FOUR);

    /// Numbers with commas between them.
    pub const fn new(zeros: TrailingZeros, precision: Precision) -> Self {
        Dialect { zeros, precision, separator: Separator::Comma }
    }

    /// The fixed and the stripped dialect of as many decimals, in the order of reports.
    pub const fn both(precision: Precision) -> [Dialect; 2] {
        [Dialect::new(TrailingZeros::Kept, precision), Dialect::new(TrailingZeros::Removed, precision)]
    }

    /// The same with another separator.
    pub const fn separated_by(self, separator: Separator) -> Self {
        Dialect { separator, ..self }
    }

    /// The same decimals and separator with trailing zeros kept or removed.
    pub const fn with_zeros(self, zeros: TrailingZeros) -> Self {
        Dialect { zeros, ..self }
    }

    /// The same decimals and separator with the zeros of the other dialect.
    pub const fn other(self) -> Self {
        let zeros = match self.zeros {
            TrailingZeros::Kept => TrailingZeros::Removed,
            TrailingZeros::Removed => TrailingZeros::Kept,
        };
        Dialect { zeros, ..self }
    }

    /// What becomes of trailing zeros.
    pub const fn zeros(self) -> TrailingZeros {
        self.zeros
    }

    /// Whether all numbers have the same number of decimals.
    pub const fn is_fixed(self) -> bool {
        matches!(self.zeros, TrailingZeros::Kept)
    }

    /// Whether trailing zeros are removed.
    pub const fn is_stripped(self) -> bool {
        !self.is_fixed()
    }

    /// How many decimals numbers have at most.
    pub const fn precision(self) -> Precision {
        self.precision
    }

    /// The same as a number.
    pub const fn decimals(self) -> usize {
        self.precision.decimals()
    }

    /// The fewest decimals of a number: all, or none.
    pub const fn least_decimals(self) -> usize {
        if self.is_fixed() { self.decimals() } else { 0 }
    }

    /// What stands between numbers.
    pub const fn separator(self) -> Separator {
        self.separator
    }

    /// `fixed` or `stripped`; other than four decimals and commas are named: `fixed-3`, `stripped-spaces`.
    pub fn name(self) -> &'static str {
        NAMES[self.separator as usize][self.zeros as usize][self.decimals() - 1]
    }
}

impl std::str::FromStr for Dialect {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let precisions = (1..=6).filter_map(Precision::new);
        let all = precisions.flat_map(Dialect::both);
        let all =
            all.flat_map(|dialect| [Separator::Comma, Separator::Space].map(|s| dialect.separated_by(s)));
        let found = all.into_iter().find(|dialect| dialect.name() == name);
        found.ok_or_else(|| format!("unknown variant `{name}`, expected `fixed` or `stripped`"))
    }
}

impl Serialize for Dialect {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Dialect {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

/// What of a dialect was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AskedDialect {
    /// What becomes of trailing zeros.
    pub zeros: Option<TrailingZeros>,
    /// How many decimals there are.
    pub precision: Option<Precision>,
    /// What stands between numbers.
    pub separator: Option<Separator>,
}

impl AskedDialect {
    /// `dialect`, but for what was asked for.
    pub fn over(self, dialect: Dialect) -> Dialect {
        Dialect {
            zeros: self.zeros.unwrap_or(dialect.zeros),
            precision: self.precision.unwrap_or(dialect.precision),
            separator: self.separator.unwrap_or(dialect.separator),
        }
    }
}

/// Which dialects a text agrees with; both hold for a text without trailing zeros in any number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Every number has all its decimals.
    pub fixed: bool,
    /// No number has trailing zeros.
    pub stripped: bool,
}

impl Default for Written {
    fn default() -> Self {
        Written::ANY
    }
}

impl Written {
    /// Agrees with everything: the state before the first number.
    pub const ANY: Written = Written { fixed: true, stripped: true };

    /// What holds for both.
    pub fn join(self, other: Written) -> Self {
        Written { fixed: self.fixed && other.fixed, stripped: self.stripped && other.stripped }
    }

    /// Whether blocks may have been written in a dialect.
    pub fn agrees_with(self, dialect: Dialect) -> bool {
        if dialect.is_fixed() { self.fixed } else { self.stripped }
    }
}

/// How the blocks of a file are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// The decimals of the result.
    pub precision: Precision,
    /// Whether longer numbers are cut to them, toward zero; else they are refused.
    pub cut: bool,
    /// What stands between numbers.
    pub separator: Separator,
}

impl Reading {
    /// As a dialect is written; longer numbers are refused.
    pub fn of(dialect: Dialect) -> Self {
        Reading { precision: dialect.precision, cut: false, separator: dialect.separator }
    }

    /// The dialect of what is read, with trailing zeros kept or removed.
    pub fn dialect(self, zeros: TrailingZeros) -> Dialect {
        Dialect { zeros, precision: self.precision, separator: self.separator }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_dialects_are_one_to_one() {
        for precision in (1..=6).filter_map(Precision::new) {
            for dialect in Dialect::both(precision) {
                for dialect in [dialect, dialect.separated_by(Separator::Space)] {
                    assert_eq!(dialect.name().parse(), Ok(dialect));
                    let json = serde_json::to_string(&dialect).unwrap();
                    assert_eq!(serde_json::from_str::<Dialect>(&json).unwrap(), dialect);
                }
            }
        }
        assert_eq!((Dialect::FIXED.name(), Dialect::STRIPPED.name()), ("fixed", "stripped"));
        assert!(
            "fixed-4".parse::<Dialect>().is_err()
                && Precision::new(0).is_none()
                && Precision::new(7).is_none()
        );
    }
}
