//! The placeholders that the search looks through: three numbers as a writer could spell them.

use std::fmt::Write as _;

use crate::text::Dialect;

/// Placeholders that the users have or proposed, with where they stand.
pub const USERS_PLACEHOLDERS: [(&str, &str); 5] = [
    ("0.0000,0.0000,0.0000", "LP 2.1 generic, LP 3.8"),
    ("-0.0000,0.0000,0.0000", "with a sign on x"),
    ("0.000,0.000,0.000", "LP 3.9, 4.0, 4.3"),
    ("1.234,-5.678,9.012", "proposed"),
    ("1.23,-4.56,7.89", "proposed"),
];

/// How one number of a placeholder is spelled. Its digits are the smallest that the dialect allows: zeros, a leading
/// `1` before the point where there are two digits, a last `1` behind it in the stripped dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NumberShape {
    /// A `-` in front.
    pub negative: bool,
    /// One or two digits before the point.
    pub integer_digits: u8,
    /// Zero (no point) to four digits after it; four in the fixed dialect.
    pub decimals: u8,
}

/// A placeholder of the search: three number shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape(pub [NumberShape; 3]);

/// The placeholders that a writer of a dialect could write: fixed `-?(0|[1-9]\d?)\.\d{4}`, 64 shapes; stripped
/// `-?(0|[1-9]\d?)(\.\d{0,3}[1-9])?`, 8,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space(pub Dialect);

impl Space {
    /// The decimals that a number may have.
    pub fn decimals(self) -> std::ops::RangeInclusive<u8> {
        match self.0 {
            Dialect::Fixed => 4..=4,
            Dialect::Stripped => 0..=4,
        }
    }

    /// Where searches start: single digits, four decimals, no sign.
    pub fn start(self) -> Shape {
        Shape([NumberShape { negative: false, integer_digits: 1, decimals: 4 }; 3])
    }

    /// Every shape of a number.
    fn numbers(self) -> impl Iterator<Item = NumberShape> + Clone {
        self.decimals().flat_map(|decimals| {
            (0..4).map(move |n| NumberShape { negative: n % 2 == 1, integer_digits: 1 + n / 2, decimals })
        })
    }

    /// Every shape of a placeholder.
    pub fn all(self) -> impl Iterator<Item = Shape> {
        self.numbers().flat_map(move |x| {
            self.numbers().flat_map(move |y| self.numbers().map(move |z| Shape([x, y, z])))
        })
    }

    /// The placeholder of a shape, without brackets.
    pub fn text(self, shape: Shape) -> String {
        let last = match self.0 {
            Dialect::Fixed => 0,
            Dialect::Stripped => 1,
        };
        let mut out = String::with_capacity(26);
        for (axis, number) in shape.0.iter().enumerate() {
            if axis > 0 {
                out.push(',');
            }
            if number.negative {
                out.push('-');
            }
            out.push_str(if number.integer_digits == 2 { "10" } else { "0" });
            if number.decimals > 0 {
                // Writing to a string cannot fail.
                let _ = write!(out, ".{last:0width$}", width = usize::from(number.decimals));
            }
        }
        out
    }
}

/// The order of ties: fewest characters, then smallest bytes.
pub fn tie_key(placeholder: &str) -> (usize, &str) {
    (placeholder.len(), placeholder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_distinct_blocks_of_their_dialect() {
        for (dialect, count) in [(Dialect::Fixed, 64), (Dialect::Stripped, 8_000)] {
            let space = Space(dialect);
            let texts: std::collections::HashSet<String> = space.all().map(|s| space.text(s)).collect();
            assert_eq!(texts.len(), count);
            for text in &texts {
                let (_, written) = crate::text::parse_block(text.as_bytes()).unwrap();
                assert!(if dialect == Dialect::Fixed { written.fixed } else { written.stripped }, "{text}");
            }
            assert!(texts.contains(&space.text(space.start())));
        }
        assert_eq!(Space(Dialect::Fixed).text(Space(Dialect::Fixed).start()), "0.0000,0.0000,0.0000");
    }
}
