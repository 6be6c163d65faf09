//! The placeholders that the search looks through: three numbers as a writer could spell them.

use std::fmt::Write as _;

/// Placeholders that the users have or proposed, with where they stand.
pub const USERS_PLACEHOLDERS: [(&str, &str); 5] = [
    ("0.0000,0.0000,0.0000", "LP 2.1 generic, LP 3.8"),
    ("-0.0000,0.0000,0.0000", "with a sign on x"),
    ("0.000,0.000,0.000", "LP 3.9, 4.0, 4.3"),
    ("1.234,-5.678,9.012", "proposed"),
    ("1.23,-4.56,7.89", "proposed"),
];

/// How one number of a placeholder is spelled; its digits are zeros (a leading `1` where there are two).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NumberShape {
    /// A `-` in front.
    pub negative: bool,
    /// One or two digits before the point.
    pub integer_digits: u8,
    /// Zero (no point) to four digits after it.
    pub decimals: u8,
}

impl NumberShape {
    /// Every shape: 2 signs × 2 integer parts × 5 fractions.
    pub fn all() -> impl Iterator<Item = NumberShape> + Clone {
        (0..20u8).map(|n| NumberShape {
            negative: n % 2 == 1,
            integer_digits: 1 + n / 2 % 2,
            decimals: n / 4,
        })
    }
}

/// A placeholder of the search: three number shapes, 8,000 in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape(pub [NumberShape; 3]);

impl Shape {
    /// `0.0000,0.0000,0.0000`: where searches start.
    pub const PLAIN: Shape = Shape([NumberShape { negative: false, integer_digits: 1, decimals: 4 }; 3]);

    /// Every shape.
    pub fn all() -> impl Iterator<Item = Shape> {
        NumberShape::all().flat_map(|x| {
            NumberShape::all().flat_map(move |y| NumberShape::all().map(move |z| Shape([x, y, z])))
        })
    }

    /// The placeholder, without brackets.
    pub fn text(self) -> String {
        let mut out = String::with_capacity(26);
        for (axis, number) in self.0.iter().enumerate() {
            if axis > 0 {
                out.push(',');
            }
            if number.negative {
                out.push('-');
            }
            out.push_str(if number.integer_digits == 2 { "10" } else { "0" });
            if number.decimals > 0 {
                // Writing to a string cannot fail.
                let _ = write!(out, ".{:0width$}", 0, width = usize::from(number.decimals));
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
    fn shapes_are_distinct_blocks() {
        let texts: std::collections::HashSet<String> = Shape::all().map(Shape::text).collect();
        assert_eq!(texts.len(), 8_000);
        assert_eq!(Shape::PLAIN.text(), "0.0000,0.0000,0.0000");
        assert!(texts.iter().all(|text| crate::text::parse_block(text.as_bytes()).is_ok()));
        assert!(texts.contains("-0.0000,10,-10.00"));
    }
}
