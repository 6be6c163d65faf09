//! The grammar of the blocks that a scheme is for: the range of their numbers, and the spelling of their decimals.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::slots::{BlockSlot, MOST_SLOTS, Range, SlotRow, pattern};
use crate::parameter;
use drift_core::encoding::{Fixed, Precision, TrailingZeros};
use drift_core::{Encoding, Error, Result};

/// The blocks that a scheme is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grammar {
    /// All numbers are below this magnitude.
    pub range: Range,
    encoding: Encoding,
    /// The smallest number of decimals; in the fixed encoding, all decimals.
    fewest: usize,
}

/// One number of a grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpelledNumber {
    /// Whether it begins with `-`, which zero may do too.
    pub negative: bool,
    /// The integer part; for an index, an integer or a code, the whole number.
    pub integer: u32,
    /// The decimals as an integer, as if all of them were written; 0 for numbers without decimals.
    pub fraction: u32,
    /// The number of decimals that are written.
    pub decimals: usize,
}

impl Grammar {
    /// Blocks of the fixed encoding.
    pub fn fixed(range: Range, precision: Precision) -> Self {
        Grammar::constant(Encoding::decimal(TrailingZeros::Kept, precision), range)
    }

    /// Blocks of an encoding whose numbers always have all their digits. `range` applies to decimals; the numbers of other
    /// encodings are limited by their definition.
    pub fn constant(encoding: Encoding, range: Range) -> Self {
        Grammar { range, encoding, fewest: encoding.decimals() }
    }

    /// Blocks of the stripped encoding whose numbers have `fewest` decimals or more.
    ///
    /// # Errors
    /// If no number can have that many decimals.
    pub fn stripped(range: Range, precision: Precision, fewest: usize) -> Result<Self> {
        if fewest <= precision.decimals() {
            return Ok(Grammar {
                range,
                encoding: Encoding::decimal(TrailingZeros::Removed, precision),
                fewest,
            });
        }
        let problem = format!("no number has {fewest} decimals");
        Err(Error::parameter(parameter::FEWEST_DECIMALS, problem, format!("give 0 to {precision}")))
    }

    /// Returns the blocks of the stripped encoding that can be written with `tokens` tokens.
    ///
    /// A token has at least one character, so `<0,0,0>` has at most 7 tokens. A number with one decimal has two more characters, a
    /// point and the decimal; a number with k decimals has k + 1 more.
    pub fn widest(range: Range, precision: Precision, tokens: usize) -> Self {
        let encoding = Encoding::decimal(TrailingZeros::Removed, precision);
        let of = |fewest| Grammar { range, encoding, fewest };
        let most = precision.decimals();
        // The smallest sufficient number of decimals, since each decimal less adds blocks to those that are covered.
        (0..most).map(of).find(|grammar| grammar.most_tokens() >= tokens).unwrap_or(of(most))
    }

    /// Returns the encoding of the blocks.
    pub fn encoding(self) -> Encoding {
        self.encoding
    }

    /// Returns whether numbers are written without trailing zeros.
    pub fn is_stripped(self) -> bool {
        self.encoding.is_stripped()
    }

    /// Returns the largest number of decimals; in the fixed encoding every number has that many.
    pub fn decimals(self) -> usize {
        self.encoding.decimals()
    }

    /// Returns the smallest number of decimals.
    pub fn fewest_decimals(self) -> usize {
        self.fewest
    }

    /// Returns the possible numbers of decimals.
    pub fn counts(self) -> RangeInclusive<usize> {
        self.fewest..=self.decimals()
    }

    /// Returns the slots of a block whose numbers have all their decimals.
    pub fn row(self) -> SlotRow {
        SlotRow::new(self.encoding, self.range)
    }

    /// Returns the magnitude below which its numbers lie, if they are decimals.
    pub(crate) fn decimal_range(self) -> Option<Range> {
        self.encoding.is_decimal().then_some(self.range)
    }

    /// Returns the number of units of a coordinate in one Å.
    pub fn units(self) -> u32 {
        self.encoding.precision().units_per_angstrom().unsigned_abs()
    }

    /// Returns the number of decimals with which a magnitude is written without trailing zeros.
    pub(crate) fn decimals_of(self, magnitude: u32) -> usize {
        self.decimals() - self.encoding.precision().trailing_zeros(magnitude)
    }

    /// Returns the largest number of tokens that every block can have: the number of characters of the shortest block.
    pub fn most_tokens(self) -> usize {
        if !self.encoding.is_decimal() {
            return self.row().most_tokens();
        }
        // `<0,0,0>` has seven characters. Each number also has a point and the smallest number of decimals.
        7 + 3 * if self.fewest == 0 { 0 } else { self.fewest + 1 }
    }

    /// Returns the number of different fractions.
    fn fractions(self) -> u64 {
        let all = u64::from(self.units());
        // Numbers with too few decimals are the multiples of a power of ten, as many as there are shorter fractions.
        let shorter = if self.is_stripped() && self.fewest > 0 { power(self.fewest - 1) } else { 0 };
        all - u64::from(shorter)
    }

    /// Returns the number of spellings of one number: signs, integer parts and decimals. Zero with a sign is one of them. If each number
    /// of a block has its own bins, the largest number of spellings of any of them.
    pub fn numbers(self) -> u64 {
        (0..self.encoding.numbers()).map(|axis| self.numbers_of(axis)).max().unwrap_or(0)
    }

    /// Returns the number of spellings of an axis's number.
    pub(crate) fn numbers_of(self, axis: usize) -> u64 {
        self.magnitudes(axis) * if self.encoding.is_signed() { 2 } else { 1 }
    }

    /// Returns the number of spellings without a sign.
    fn magnitudes(self, axis: usize) -> u64 {
        if self.encoding.is_decimal() {
            return u64::from(self.range.angstrom()) * self.fractions();
        }
        u64::from(self.encoding.number().limits(axis).1.unsigned_abs()) + 1
    }

    /// Returns the number of blocks, at most 2¹²⁸ - 1.
    pub fn blocks(self) -> u128 {
        (0..self.encoding.numbers())
            .fold(1, |all: u128, axis| all.saturating_mul(self.numbers_of(axis).into()))
    }

    /// Number `index` of an axis. The non-negative numbers come first.
    pub fn number(self, index: u64, axis: usize) -> SpelledNumber {
        let magnitudes = self.magnitudes(axis);
        let (negative, index) = (index >= magnitudes, index % magnitudes);
        if !self.encoding.is_decimal() {
            return SpelledNumber { negative, integer: index as u32, fraction: 0, decimals: 0 };
        }
        let (integer, fraction) = ((index / self.fractions()) as u32, (index % self.fractions()) as u32);
        if !self.is_stripped() {
            return SpelledNumber { negative, integer, fraction, decimals: self.decimals() };
        }
        let fraction = if self.fewest == 0 {
            fraction
        } else {
            // The multiples of `step` have fewer decimals and are skipped: each run of `step` numbers lacks its first.
            let step = power(self.decimals() + 1 - self.fewest);
            fraction / (step - 1) * step + fraction % (step - 1) + 1
        };
        SpelledNumber { negative, integer, fraction, decimals: self.decimals_of(fraction) }
    }

    /// Returns whether the grammar has a spelling of this coordinate.
    pub fn holds(self, coordinate: Fixed) -> bool {
        if !self.encoding.is_decimal() {
            // Everything that the encoding writes is included.
            return true;
        }
        let magnitude = coordinate.unsigned_abs();
        let written = !self.is_stripped() || self.decimals_of(magnitude) >= self.fewest;
        written && magnitude / self.units() < self.range.angstrom()
    }

    /// Returns the slots of a block whose numbers have these decimals; a slot that the block lacks is `None`.
    pub fn slots(self, decimals: [usize; 3]) -> [Option<BlockSlot>; MOST_SLOTS] {
        let row = self.row();
        let mut slots = [None; MOST_SLOTS];
        for (at, (&known, slot)) in row.iter().zip(&mut slots).enumerate() {
            let (axis, place) = row.place(at);
            let count = decimals[axis];
            *slot = match known {
                BlockSlot::Point if count == 0 => None,
                BlockSlot::Digit if place - 3 >= count => None,
                BlockSlot::Digit if self.is_stripped() && place - 2 == count => Some(BlockSlot::Last),
                known => Some(known),
            };
        }
        slots
    }

    /// Returns the expression of a whole block. It has no anchors and does not look at the surrounding text, so a block is found in every
    /// context. Two blocks cannot overlap, since each begins with its only `<` and ends with its only `>`.
    pub(crate) fn block_pattern(self) -> String {
        if !self.is_stripped() {
            return pattern(&self.row());
        }
        let number = self.rest(0, &self.counts().collect());
        format!("<{number},{number},{number}>")
    }

    /// Returns the expression for the rest of a number from a place on, if the number has one of these numbers of decimals. The places
    /// are sign, integer part, point, decimals and end, counted from 0.
    pub fn rest(self, place: usize, counts: &BTreeSet<usize>) -> String {
        let head = match place {
            0 => pattern(&[BlockSlot::Sign, self.integer()]),
            1 => pattern(&[self.integer()]),
            _ => String::new(),
        };
        // After the point, or if there always is a point, only the number of digits remains to be stated.
        if place >= 3 || !self.is_stripped() {
            let left = counts.iter().map(|count| count.saturating_sub(place.max(3) - 3)).collect();
            let point = if place < 3 { "\\." } else { "" };
            return format!("{head}{point}{}", self.digits(&left));
        }
        let some: BTreeSet<usize> = counts.iter().copied().filter(|count| *count > 0).collect();
        match (some.is_empty(), counts.contains(&0)) {
            (true, _) => head,
            (false, false) => format!("{head}\\.{}", self.digits(&some)),
            (false, true) => format!("{head}(?:\\.{})?", self.digits(&some)),
        }
    }

    /// Returns the integer part of a decimal.
    fn integer(self) -> BlockSlot {
        BlockSlot::Number { below: self.range.angstrom(), width: 0 }
    }

    /// Returns the expression for the last decimals of a number, for one of these numbers of digits.
    fn digits(self, counts: &BTreeSet<usize>) -> String {
        let (Some(&first), Some(&last)) = (counts.first(), counts.last()) else { return String::new() };
        if first == last {
            return self.run_of_digits(first);
        }
        let whole = counts.len() == last - first + 1;
        match (whole, first) {
            (true, 0) if last == 1 => "[1-9]?".to_owned(),
            (true, 0) => format!("(?:[0-9]{{0,{}}}[1-9])?", last - 1),
            (true, _) => format!("[0-9]{{{},{}}}[1-9]", first - 1, last - 1),
            (false, _) => {
                let runs: Vec<String> = counts.iter().rev().map(|count| self.run_of_digits(*count)).collect();
                format!("(?:{})", runs.join("|"))
            }
        }
    }

    /// Returns the expression for this many decimals.
    fn run_of_digits(self, count: usize) -> String {
        let mut slots = vec![BlockSlot::Digit; count];
        if let Some(last) = slots.last_mut().filter(|_| self.is_stripped()) {
            *last = BlockSlot::Last;
        }
        pattern(&slots)
    }
}

/// Returns the number of decimals in words.
pub fn in_words(precision: Precision) -> String {
    let plural = if precision.decimals() == 1 { "" } else { "s" };
    format!("{} decimal{plural}", precision.in_words())
}

/// Returns a power of ten.
pub(super) fn power(decimals: usize) -> u32 {
    10u32.pow(decimals as u32)
}

/// Returns a grammar of the fixed encoding, for tests.
#[cfg(test)]
pub(in crate::design) fn fixed_grammar(angstrom: u32, decimals: usize) -> Grammar {
    Grammar::fixed(Range::new(angstrom).unwrap(), Precision::new(decimals).unwrap())
}

/// Returns a grammar of the stripped encoding, for tests.
#[cfg(test)]
pub(in crate::design) fn stripped_grammar(angstrom: u32, decimals: usize, fewest: usize) -> Grammar {
    Grammar::stripped(Range::new(angstrom).unwrap(), Precision::new(decimals).unwrap(), fewest).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::scheme::slots::MOST_DECIMALS;

    /// Returns the text of a number.
    fn spelled(grammar: Grammar, number: SpelledNumber) -> String {
        let digits = format!("{:01$}", number.fraction, grammar.decimals());
        let mut text = format!("{}{}", if number.negative { "-" } else { "" }, number.integer);
        if number.decimals > 0 {
            text += &format!(".{}", &digits[..number.decimals]);
        }
        text
    }

    #[test]
    fn numbers_are_those_of_the_encoding_each_once() {
        for (decimals, fewest) in (1..=4).flat_map(|most| (0..=most).map(move |fewest| (most, fewest))) {
            let grammar = stripped_grammar(15, decimals, fewest);
            let mut seen = std::collections::HashSet::new();
            for index in 0..grammar.numbers() {
                let number = grammar.number(index, 0);
                let text = spelled(grammar, number);
                assert!(!text.contains('.') || !text.ends_with('0'), "{text}");
                assert!((fewest..=decimals).contains(&number.decimals) && number.integer < 15, "{text}");
                assert!(text.parse::<f64>().unwrap().abs() < 15.0, "{text}");
                assert!(seen.insert(text));
            }
            // Of all fractions, those that are long enough without their trailing zeros.
            let fractions = (0..power(decimals)).map(|fraction| format!("{fraction:0decimals$}"));
            let all = fractions.filter(|digits| digits.trim_end_matches('0').len() >= fewest);
            assert_eq!(seen.len(), 30 * all.count());
        }
        let refused =
            |most, fewest| Grammar::stripped(Range::USUAL, Precision::new(most).unwrap(), fewest).is_err();
        assert!(refused(4, 5) && refused(3, 4));
    }

    #[test]
    fn fixed_numbers_have_all_their_decimals() {
        for decimals in 1..=4 {
            let grammar = fixed_grammar(15, decimals);
            let numbers: std::collections::HashSet<String> =
                (0..grammar.numbers()).map(|index| spelled(grammar, grammar.number(index, 0))).collect();
            assert_eq!(numbers.len() as u64, 30 * u64::from(power(decimals)));
            assert!(numbers.iter().all(|text| text.split('.').nth(1).is_some_and(|d| d.len() == decimals)));
        }
    }

    #[test]
    fn coordinates_are_held_by_range_and_decimals() {
        let held = |grammar: Grammar, coordinates: [Fixed; 4]| coordinates.map(|c| grammar.holds(c));
        let three = fixed_grammar(15, 3);
        assert_eq!(held(three, [0, -14_999, 15_000, 14_000]), [true, true, false, true]);
        let two = stripped_grammar(15, 3, 2);
        assert_eq!(held(two, [1_230, 1_234, -1_200, 15_234]), [true, true, false, false]);
        assert_eq!([0, 1_000, 1_200, 1_230, 1_234].map(|c| two.decimals_of(c)), [0, 0, 1, 2, 3]);
    }

    #[test]
    fn the_widest_grammar_has_blocks_of_as_many_characters() {
        let fewest =
            |tokens| Grammar::widest(Range::USUAL, Precision::new(4).unwrap(), tokens).fewest_decimals();
        assert_eq!([7, 8, 13, 14, 16, 17, 19, 20, 22].map(fewest), [0, 1, 1, 2, 2, 3, 3, 4, 4]);
        assert_eq!(fixed_grammar(15, 4).most_tokens(), 22);
        let fewest =
            |tokens| Grammar::widest(Range::USUAL, Precision::new(3).unwrap(), tokens).fewest_decimals();
        assert_eq!([7, 8, 16, 17, 19, 25].map(fewest), [0, 1, 2, 3, 3, 3]);
        assert_eq!(fixed_grammar(15, 3).most_tokens(), 19);
    }

    #[test]
    fn expressions_are_those_of_the_encoding() {
        let pattern = |most, fewest| stripped_grammar(10, most, fewest).block_pattern();
        let blocks = |number: &str| format!("<{number},{number},{number}>");
        assert_eq!(pattern(4, 0), blocks("-?[0-9](?:\\.[0-9]{0,3}[1-9])?"));
        assert_eq!(pattern(4, 1), blocks("-?[0-9]\\.[0-9]{0,3}[1-9]"));
        assert_eq!(pattern(4, 4), blocks("-?[0-9]\\.[0-9]{3}[1-9]"));
        assert_eq!(pattern(3, 0), blocks("-?[0-9](?:\\.[0-9]{0,2}[1-9])?"));
        assert_eq!(pattern(1, 0), blocks("-?[0-9](?:\\.[1-9])?"));
        assert_eq!(pattern(6, 2), blocks("-?[0-9]\\.[0-9]{1,5}[1-9]"));
        let fixed = |decimals| fixed_grammar(10, decimals).block_pattern();
        assert_eq!(fixed(4), blocks("-?[0-9]\\.[0-9]{4}"));
        assert_eq!((fixed(3), fixed(1)), (blocks("-?[0-9]\\.[0-9]{3}"), blocks("-?[0-9]\\.[0-9]")));
    }

    #[test]
    fn blocks_are_told_from_other_texts() {
        let three = fixed_grammar(15, 3);
        assert_eq!(three.without_blocks("a<1.000,2.000,-3.000><b<"), "a< 1.000,2.000,-3.000><b<");
        for other in
            ["<1.0000,2.0000,3.0000>", "<1.000,2.000>", "<15.000,2.000,3.000>", "<01.000,2.000,3.000>"]
        {
            assert_eq!(three.without_blocks(other), other);
        }
        for (decimals, fewest) in [(1, 0), (3, 0), (3, 2)] {
            let grammar = stripped_grammar(15, decimals, fewest);
            for index in 0..grammar.numbers() {
                let number = spelled(grammar, grammar.number(index, 0));
                assert!(grammar.has_block(&format!("<{number},{number},{number}>")), "{number}");
                let longer = format!("<{number},{number},{number}0>");
                assert!(!number.contains('.') || !grammar.has_block(&longer), "{longer}");
            }
        }
    }

    #[test]
    fn slots_are_there_as_numbers_have_decimals() {
        use BlockSlot::{Digit, Last, Point, Sign};
        let (open, comma, close) = (BlockSlot::Open("<"), BlockSlot::Comma(","), BlockSlot::Close(">"));
        let integer = BlockSlot::Number { below: 15, width: 0 };
        let expected =
            [open, Sign, integer, comma, Sign, integer, Point, Last, comma, Sign, integer, Point, Digit];
        for decimals in 2..=MOST_DECIMALS {
            let grammar = stripped_grammar(15, decimals, 0);
            let row: Vec<BlockSlot> = grammar.slots([0, 1, 2]).into_iter().flatten().collect();
            assert_eq!(row, [&expected[..], &[Last, close]].concat());
            let fixed = fixed_grammar(15, decimals);
            let all: Vec<BlockSlot> = fixed.slots([decimals; 3]).into_iter().flatten().collect();
            assert_eq!((&*all, all.len()), (&*fixed.row(), 13 + 3 * decimals));
        }
    }
}
