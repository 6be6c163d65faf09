//! The values that the beginning of a number can still get.

use super::decimal::{Fixed, POWERS_OF_TEN, Precision, TrailingZeros};
use super::decimal_text::scan_prefix;
use super::definition::NumberFormat;

/// Values from the first to the second one, both included.
pub type ValueRange = [Fixed; 2];

impl NumberFormat {
    /// Returns the values of all numbers of an axis that begin with `prefix`, as ranges; none if no number does. The bounds are those of
    /// the format, not of generated text. An empty prefix has all values.
    pub fn completions(&self, prefix: &[u8], axis: usize) -> Vec<ValueRange> {
        let negative = prefix.first() == Some(&b'-');
        let magnitude = &prefix[usize::from(negative)..];
        let (least, most) = self.limits(axis);
        if negative && !self.is_signed() {
            return Vec::new();
        }
        if magnitude.is_empty() {
            return vec![[least, if negative { 0 } else { most }]];
        }
        let ranges = match self {
            NumberFormat::Decimal { precision, zeros } => decimals(magnitude, *precision, *zeros),
            _ => integers(magnitude, self.width().into()),
        };
        let clipped = ranges.into_iter().filter_map(|[low, high]| {
            let [low, high] = if negative { [-high, -low] } else { [low, high] };
            let [low, high] = [low.max(least.into()), high.min(most.into())];
            // Both lie between limits that fit.
            (low <= high).then_some([low as Fixed, high as Fixed])
        });
        clipped.collect()
    }

    /// Returns whether the coordinate of some value of a range lies between `low` and `high`, in Å. Coordinates must not descend with
    /// their values, except for tails.
    pub fn reaches(&self, range: ValueRange, axis: usize, [low, high]: [f64; 2]) -> bool {
        let is_inside = |value: Fixed| {
            self.angstrom(value, axis).is_some_and(|x| low - ROUNDING <= x && x <= high + ROUNDING)
        };
        // The two tails may stand for coordinates out of order.
        range.into_iter().any(|end| self.is_tail(end, axis) && is_inside(end))
            || self.values_inside(range, axis, [low, high]).is_some()
    }

    /// Returns the values of a range, but for tails, whose coordinates lie between `low` and `high`, in Å; `None` if there are none.
    pub fn values_inside(&self, range: ValueRange, axis: usize, [low, high]: [f64; 2]) -> Option<ValueRange> {
        let [mut from, mut to] = range;
        from += Fixed::from(self.is_tail(from, axis));
        to -= Fixed::from(self.is_tail(to, axis));
        let first = self.first_value_at([from, to], axis, low - ROUNDING);
        let last = self.first_value_at([from, to], axis, high + ROUNDING) - 1;
        (first <= last).then_some([first, last])
    }

    /// Returns the first value of a range whose coordinate is at least `limit`, in Å; the one behind the range if there is none.
    fn first_value_at(&self, range: ValueRange, axis: usize, limit: f64) -> Fixed {
        let [mut from, mut to] = [range[0], range[1] + 1];
        while from < to {
            let middle = from + (to - from) / 2;
            match self.angstrom(middle, axis).is_some_and(|x| x < limit) {
                true => from = middle + 1,
                false => to = middle,
            }
        }
        from
    }
}

/// Coordinates count as equal within this distance, in Å: far less than any encoding writes.
const ROUNDING: f64 = 1e-9;

/// Returns the magnitudes of decimals that begin with digits, and perhaps a point.
fn decimals(text: &[u8], precision: Precision, zeros: TrailingZeros) -> Vec<[i64; 2]> {
    let prefix = scan_prefix(text);
    let integer = prefix.integer(text);
    let unit = i64::from(precision.units_per_angstrom());
    let has_leading_zero = integer.len() > 1 && integer[0] == b'0';
    let Some(whole) = number(integer).filter(|_| !has_leading_zero) else { return Vec::new() };
    if !prefix.point {
        // Only a number that does not begin with a zero has more digits.
        let more = if whole == 0 { 0 } else { precision.integer_digits().saturating_sub(integer.len()) };
        let power = |digits: usize| 10_i64.pow(digits as u32) * unit;
        return (0..=more).map(|digits| [whole * power(digits), (whole + 1) * power(digits) - 1]).collect();
    }
    let decimals = &text[integer.len() + 1..];
    let (Some(fraction), true) = (number(decimals), decimals.len() <= precision.decimals()) else {
        return Vec::new();
    };
    let step = i64::from(POWERS_OF_TEN[precision.decimals() - decimals.len()]);
    let low = whole * unit + fraction * step;
    // A number without trailing zeros does not end with a point or a zero.
    let ends = decimals.last().is_some_and(|digit| *digit != b'0') || zeros == TrailingZeros::Kept;
    vec![[low + i64::from(!ends), low + step - 1]]
}

/// Returns the magnitudes of whole numbers that begin with digits and have at least `width` of them.
fn integers(digits: &[u8], width: usize) -> Vec<[i64; 2]> {
    let Some(value) = number(digits) else { return Vec::new() };
    let power = |length: usize| 10_i64.pow((length - digits.len()) as u32);
    let of_length = |length: usize| [value * power(length), (value + 1) * power(length) - 1];
    // Leading zeros fill the width and no more.
    let shortest = width.max(1);
    let longest = if digits.first() == Some(&b'0') { shortest } else { MOST_DIGITS.max(shortest) };
    (shortest.max(digits.len())..=longest).map(of_length).collect()
}

/// The digits of the largest value.
const MOST_DIGITS: usize = 10;

/// Returns the number that digits spell; 0 without digits. `None` for other characters, and for more digits than any value has.
fn number(digits: &[u8]) -> Option<i64> {
    let add = |n: i64, digit: &u8| digit.is_ascii_digit().then(|| n * 10 + i64::from(digit - b'0'));
    (digits.len() <= MOST_DIGITS).then(|| digits.iter().try_fold(0, add)).flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use crate::encoding::{Encoding, Fixed};

    /// Every value of a range is written by a number with the prefix, and no other.
    #[test]
    fn the_values_of_a_prefix_are_those_of_its_numbers() {
        let edges = r#"binned-v1:-2,2,0.05 binned-v2:-1,1,0.3 fixed-1 stripped-1 stripped-2 fixed-2"#;
        for name in edges.split(' ') {
            let encoding: Encoding = name.parse().unwrap();
            let number = encoding.number();
            let (least, most) = number.limits(0);
            let (least, most) = (least.max(-2_345), most.min(2_345));
            let mut values: BTreeMap<String, BTreeSet<Fixed>> = BTreeMap::new();
            for value in least..=most {
                let mut text = String::new();
                number.write(value, &mut text);
                for end in 0..=text.len() {
                    values.entry(text[..end].to_owned()).or_default().insert(value);
                }
            }
            for (prefix, expected) in values {
                let ranges = number.completions(prefix.as_bytes(), 0);
                let found: BTreeSet<Fixed> = ranges
                    .iter()
                    .flat_map(|[low, high]| (*low).max(least)..=(*high).min(most))
                    // `-0` is read as zero.
                    .filter(|value| *value != 0 || !prefix.starts_with('-'))
                    .collect();
                assert_eq!(found, expected, "{name} {prefix}");
            }
            assert!(number.completions(b"00000", 0).is_empty(), "{name}");
        }
    }

    #[test]
    fn ranges_reach_coordinates() {
        let fixed = Encoding::FIXED.number();
        assert!(fixed.reaches([12_000, 12_999], 0, [1.29985, 1.29995]));
        assert!(!fixed.reaches([12_000, 12_999], 0, [1.29995, 1.4]));
        assert!(fixed.reaches([-15_000, -15_000], 2, [-1.5, -1.5]));
        let bins: Encoding = "binned-v1:-1,1,0.5".parse().unwrap();
        // Indices 1 to 3 are read as -0.75, -0.25 and 0.25.
        let reaches = |range, bounds| bins.number().reaches(range, 0, bounds);
        assert!(
            reaches([0, 4], [-0.3, -0.2]) && !reaches([0, 4], [-0.2, 0.2]) && !reaches([3, 4], [-0.3, -0.2])
        );
        assert!(reaches([4, 4], [0.7, 0.8]) && reaches([0, 0], [-0.75, -0.75]));
    }
}
