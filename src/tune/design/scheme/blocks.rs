//! Generates blocks for checks, with every number in every position and every shape; and finds blocks in texts.

use std::collections::HashSet;

use super::grammar::{Grammar, SpelledNumber, power};
use super::slots::{BlockSlot, MOST_SLOTS};

/// An expression for the position after the end of an atom.
pub(crate) const BEHIND_ATOM: &str = "(?<=\\])";

/// Returns the number of shapes of an axis's number: by its sign, digits before the point, and decimals.
pub fn shapes(grammar: Grammar, axis: usize) -> u64 {
    if grammar.encoding().is_decimal() {
        // Integer parts with two digits begin at 10, and a range of 10 Å ends below.
        let integers = if grammar.range.angstrom() > 10 { 2 } else { 1 };
        return 2 * integers * grammar.counts().count() as u64;
    }
    let row = grammar.row();
    row[row.first(axis)..]
        .iter()
        .find_map(|slot| match slot {
            BlockSlot::Number { below, width } => {
                let signs = if grammar.encoding().is_signed() { 2 } else { 1 };
                Some(signs * (digits(below - 1, *width) - digits(0, *width) + 1))
            }
            _ => None,
        })
        .unwrap_or(1)
}

/// Returns the number of shapes of blocks.
pub(crate) fn shapes_of_blocks(grammar: Grammar) -> u64 {
    (0..grammar.encoding().numbers()).map(|axis| shapes(grammar, axis)).product()
}

/// Returns the number of digits with which an integer is written.
fn digits(value: u32, width: u8) -> u64 {
    u64::from(value.checked_ilog10().unwrap_or(0) + 1).max(width.into())
}

/// Returns the shape of a block as a number.
pub fn shape(grammar: Grammar, numbers: &[SpelledNumber; 3]) -> u64 {
    let width = grammar.encoding().width() as u8;
    numbers.iter().take(grammar.encoding().numbers()).fold(0, |shape, number| {
        let digits = digits(number.integer, width);
        // One byte per number: its sign, up to fifteen digits, up to seven decimals.
        shape << 8 | u64::from(number.negative) << 7 | digits << 3 | number.decimals as u64
    })
}

/// The steps from number to number of y and z: two primes, and 1. The first prime that does not divide the count of numbers is used,
/// or else 1.
const STEPS: [[u64; 3]; 2] = [[7_919, 7_907, 1], [104_729, 104_723, 1]];

/// Returns the block in which number `index` is x, and two other numbers are y and z. Over all indices, every number occurs at least once
/// in every position, because the steps share no factor with the counts. Indices beyond the count of numbers give a block of every shape.
pub fn numbers(grammar: Grammar, index: u64) -> [SpelledNumber; 3] {
    let count = grammar.numbers();
    if index < count {
        return std::array::from_fn(|axis| {
            let own = grammar.numbers_of(axis);
            let step = |steps: [u64; 3]| {
                steps.into_iter().find(|step| *step == 1 || !own.is_multiple_of(*step)).unwrap_or(1)
            };
            let place = match axis {
                0 => index,
                1 => index * step(STEPS[0]) + 17,
                _ => index * step(STEPS[1]) + 4_711,
            };
            grammar.number(place % own, axis)
        });
    }
    let shapes = shapes(grammar, 0);
    let index = index - count;
    [index / (shapes * shapes), index / shapes % shapes, index % shapes].map(|kind| {
        let counts = grammar.counts().count() as u64;
        let (decimals, rest) = (grammar.fewest_decimals() + (kind % counts) as usize, kind / counts);
        let range = grammar.range.angstrom();
        let one = (index % u64::from(range.min(10))) as u32;
        let integer = if rest / 2 == 0 { one } else { 10 + one % (range - 10) };
        let step = power(grammar.decimals() - decimals);
        // The 7 keeps the last decimal from being zero, which the stripped encoding would not write.
        let fraction = if decimals == 0 { 0 } else { (index as u32 % 999 * 10 + 7) * step % grammar.units() };
        SpelledNumber { negative: rest % 2 == 1, integer, fraction, decimals }
    })
}

/// Returns a block of every shape that no block of [`numbers`] below the count of numbers has. In a small grammar these few blocks leave
/// out combinations, such as three numbers with two digits before the point.
pub(crate) fn blocks_of_missing_shapes(grammar: Grammar) -> Vec<[SpelledNumber; 3]> {
    let all = shapes_of_blocks(grammar);
    let mut seen = HashSet::new();
    for index in 0..grammar.numbers() {
        seen.insert(shape(grammar, &numbers(grammar, index)));
        if seen.len() as u64 == all {
            return Vec::new();
        }
    }
    let [xs, ys, zs] = [0, 1, 2].map(|axis| examples(grammar, axis));
    let mut blocks = Vec::new();
    for x in &xs {
        for y in &ys {
            blocks.extend(zs.iter().map(|z| [*x, *y, *z]));
        }
    }
    blocks.retain(|numbers| seen.insert(shape(grammar, numbers)));
    blocks
}

/// Returns a number of every shape of an axis.
fn examples(grammar: Grammar, axis: usize) -> Vec<SpelledNumber> {
    let mut seen = HashSet::new();
    let numbers = (0..grammar.numbers_of(axis)).map(|index| grammar.number(index, axis));
    numbers.filter(|number| seen.insert(shape(grammar, &[*number; 3]))).collect()
}

/// Returns the text of a block, with the byte offset at which each slot begins.
pub fn block(grammar: Grammar, numbers: &[SpelledNumber; 3]) -> (String, [usize; MOST_SLOTS]) {
    let mut text = String::with_capacity(16 + 3 * grammar.decimals());
    let mut starts = [0; MOST_SLOTS];
    let mut decimals = 0;
    let (row, slots) = (grammar.row(), grammar.slots(numbers.map(|number| number.decimals)));
    for (at, (slot, start)) in slots.iter().zip(&mut starts).enumerate() {
        *start = text.len();
        let Some(slot) = slot else { continue };
        let number = numbers[row.place(at).0];
        match slot {
            BlockSlot::Open(literal) | BlockSlot::Comma(literal) | BlockSlot::Close(literal) => {
                text.push_str(literal);
            }
            BlockSlot::Sign if number.negative => text.push('-'),
            BlockSlot::Sign => {}
            BlockSlot::Number { width, .. } => {
                text.push_str(&format!("{:0width$}", number.integer, width = usize::from(*width)));
                decimals = grammar.units() / 10;
            }
            BlockSlot::Point => text.push('.'),
            BlockSlot::Digit | BlockSlot::Last => {
                text.push(char::from(b'0' + (number.fraction / decimals % 10) as u8));
                decimals /= 10;
            }
        }
    }
    (text, starts)
}

impl Grammar {
    /// Returns whether a text is exactly one block of this grammar.
    #[cfg(test)]
    pub(crate) fn has_block(self, text: &str) -> bool {
        self.block_at(text) == Some(text.len())
    }

    /// Returns the length in bytes of the block at the start of a text, if there is one.
    fn block_at(self, text: &str) -> Option<usize> {
        let inside = self.encoding().open().len();
        let (after, end) = text
            .starts_with(self.encoding().open())
            .then(|| self.encoding().slot_end(text.as_bytes(), inside))??;
        let closed = text.as_bytes()[..end].ends_with(self.encoding().close().as_bytes());
        let (numbers, written) =
            self.encoding().parse_numbers(&text.as_bytes()[inside..after], false).ok()?;
        let known =
            written.agrees_with(self.encoding()) && numbers.into_iter().all(|number| self.holds(number));
        (closed && known).then_some(end)
    }

    /// Breaks the blocks of a text by a space after the first character of each.
    pub(crate) fn without_blocks(self, text: &str) -> String {
        let first = self.encoding().open().chars().next();
        let mut out = String::with_capacity(text.len());
        for (at, c) in text.char_indices() {
            out.push(c);
            // If blocks have no opening character, they begin with a digit or a sign. Other positions need not be parsed.
            let begins = first.map_or(c.is_ascii_digit() || c == '-', |first| c == first);
            if begins && self.block_at(&text[at..]).is_some() {
                out.push(' ');
            }
        }
        out
    }

    /// Returns the characters that can occur inside blocks.
    pub fn characters(self) -> String {
        let signs = if self.encoding().is_signed() { "-" } else { "" };
        let point = if self.encoding().is_decimal() { "." } else { "" };
        format!("{signs}{point}{}0123456789", self.encoding().separator())
    }

    /// Returns the expression that finds blocks in a text. If blocks have no opening character, a block must follow the `]` of its atom.
    pub(crate) fn isolating_pattern(self) -> String {
        let behind = if self.encoding().open().is_empty() { BEHIND_ATOM } else { "" };
        behind.to_owned() + &self.block_pattern()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::design::scheme::slots::Range;
    use drift_core::encoding::Encoding;

    /// Small grammars, whose blocks with one number each leave out shapes, and a large one.
    #[test]
    fn every_shape_has_a_block() {
        for (name, range, missing) in
            [("fixed-1", 15, true), ("fixed-2", 11, true), ("integers:10,4", 15, false), ("fixed", 15, false)]
        {
            let grammar = Grammar::constant(name.parse().unwrap(), Range::new(range).unwrap());
            let more = blocks_of_missing_shapes(grammar);
            assert_eq!(!more.is_empty(), missing, "{name}");
            let usual = (0..grammar.numbers()).map(|index| numbers(grammar, index));
            let seen: BTreeSet<u64> = usual.chain(more).map(|numbers| shape(grammar, &numbers)).collect();
            assert_eq!(seen.len() as u64, shapes_of_blocks(grammar), "{name}");
        }
    }

    /// Counts that the usual steps are factors of, or that differ by axis.
    #[test]
    fn every_number_is_in_every_position() {
        for counts in [[7_919, 7_919, 7_919], [840, 840, 840], [7_919, 300, 7_907], [100, 7_918, 15_838]] {
            // An index has one more number than edges.
            let axis = |count: u64| format!(r#"{{"low": 0, "high": {}, "step": 1}}"#, count - 1);
            let encoding: Encoding = format!(
                r#"{{"schema": "drift.encoding/1", "name": "own", "open": "<", "separator": ",", "close": ">", "numbers": 3,
                "number": {{"kind": "index", "width": 5, "axes": [{}]}}}}"#,
                counts.map(axis).join(", ")
            )
            .parse()
            .unwrap();
            let grammar = Grammar::constant(encoding, Range::new(15).unwrap());
            let mut seen = [(); 3].map(|()| BTreeSet::new());
            for index in 0..grammar.numbers() {
                let numbers = numbers(grammar, index);
                seen.iter_mut().zip(numbers).for_each(|(seen, number)| _ = seen.insert(number.integer));
            }
            assert_eq!(seen.map(|seen| seen.len() as u64), counts);
        }
    }
}
