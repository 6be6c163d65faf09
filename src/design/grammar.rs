//! Which blocks a scheme is for: below which magnitude their numbers lie, and how their decimals are written.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::scheme::{BLOCK, Range, SLOTS, Slot, pattern};
use crate::error::{Error, Parameter, Result};
use crate::text::number::{UNITS_PER_ANGSTROM, decimals_stripped};
use crate::text::{Dialect, Fixed};

/// Decimals of a number at most.
pub const MAX_DECIMALS: usize = 4;

/// How the decimals of numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decimals {
    /// Exactly four: the fixed dialect.
    Four,
    /// At least this many, at most four, the last not zero; without any there is no point: the stripped dialect.
    From(usize),
}

/// The blocks that a scheme is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grammar {
    /// Their numbers are smaller.
    pub range: Range,
    /// Decimals of their numbers.
    pub decimals: Decimals,
}

/// One number of a grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    /// Whether it begins with `-`; zero may.
    pub negative: bool,
    /// Its integer part.
    pub integer: u32,
    /// Its decimals as four digits.
    pub fraction: u32,
    /// How many of them are written.
    pub decimals: usize,
}

impl Grammar {
    /// Blocks of exactly four decimals.
    pub fn fixed(range: Range) -> Self {
        Grammar { range, decimals: Decimals::Four }
    }

    /// Blocks of the stripped dialect whose numbers have `fewest` decimals or more.
    ///
    /// # Errors
    /// If numbers cannot have as many.
    pub fn stripped(range: Range, fewest: usize) -> Result<Self> {
        if fewest <= MAX_DECIMALS {
            return Ok(Grammar { range, decimals: Decimals::From(fewest) });
        }
        let problem = format!("no number has {fewest} decimals");
        Err(Error::parameter(Parameter::FewestDecimals, problem, "give 0 to 4"))
    }

    /// Blocks of the stripped dialect, as many of them as can have `tokens` tokens.
    ///
    /// A token has a character at least, so `<0,0,0>` has at most 7 tokens. Numbers of one decimal have two characters
    /// more, a point and the decimal, those of k decimals k + 1 more.
    pub fn widest(range: Range, tokens: usize) -> Self {
        let all = (0..MAX_DECIMALS).map(|fewest| Grammar { range, decimals: Decimals::From(fewest) });
        let holds = |grammar: &Grammar| grammar.most_tokens() >= tokens;
        all.into_iter().find(holds).unwrap_or(Grammar { range, decimals: Decimals::From(MAX_DECIMALS) })
    }

    /// The dialect of the blocks.
    pub fn dialect(self) -> Dialect {
        match self.decimals {
            Decimals::Four => Dialect::Fixed,
            Decimals::From(_) => Dialect::Stripped,
        }
    }

    /// The fewest decimals of a number.
    pub fn fewest_decimals(self) -> usize {
        match self.decimals {
            Decimals::Four => MAX_DECIMALS,
            Decimals::From(fewest) => fewest,
        }
    }

    /// How many decimals numbers have.
    pub fn counts(self) -> RangeInclusive<usize> {
        self.fewest_decimals()..=MAX_DECIMALS
    }

    /// The most tokens that every block can have: the characters of the shortest.
    pub fn most_tokens(self) -> usize {
        let fewest = self.fewest_decimals();
        7 + 3 * if fewest == 0 { 0 } else { fewest + 1 }
    }

    /// How many fractions there are.
    fn fractions(self) -> u64 {
        match self.decimals {
            Decimals::Four | Decimals::From(0) => 10_000,
            Decimals::From(fewest) => 10_000 - 10u64.pow(fewest as u32 - 1),
        }
    }

    /// How many spellings of one number there are: signs, integer parts, decimals. Zero with a sign is one of them.
    pub fn numbers(self) -> u64 {
        2 * u64::from(self.range.angstrom()) * self.fractions()
    }

    /// Number `index` of them, the non-negative ones first.
    pub fn number(self, index: u64) -> Number {
        let half = self.numbers() / 2;
        let (negative, index) = (index >= half, index % half);
        let (integer, fraction) = ((index / self.fractions()) as u32, index % self.fractions());
        let fraction = match self.decimals {
            Decimals::Four | Decimals::From(0) => fraction,
            // The multiples of `step`, which have fewer decimals, are passed over.
            Decimals::From(fewest) => {
                let step = 10u64.pow((MAX_DECIMALS + 1 - fewest) as u32);
                fraction / (step - 1) * step + fraction % (step - 1) + 1
            }
        } as u32;
        let decimals = match self.decimals {
            Decimals::Four => MAX_DECIMALS,
            Decimals::From(_) => MAX_DECIMALS - decimals_stripped(fraction),
        };
        Number { negative, integer, fraction, decimals }
    }

    /// Whether it has a spelling of this coordinate.
    pub fn holds(self, coordinate: Fixed) -> bool {
        let magnitude = coordinate.unsigned_abs();
        let decimals = MAX_DECIMALS - decimals_stripped(magnitude);
        let written = self.decimals == Decimals::Four || decimals >= self.fewest_decimals();
        written && magnitude / UNITS_PER_ANGSTROM.unsigned_abs() < self.range.angstrom()
    }

    /// The slots of a block whose numbers have these decimals; a slot that it lacks is none.
    pub fn slots(self, decimals: [usize; 3]) -> [Option<Slot>; SLOTS] {
        let stripped = self.dialect() == Dialect::Stripped;
        std::array::from_fn(|slot| {
            let (axis, place) = place(slot);
            let count = decimals[axis.min(2)];
            match BLOCK[slot] {
                Slot::Point if count == 0 => None,
                Slot::Digit if place - 3 >= count => None,
                Slot::Digit if stripped && place - 2 == count => Some(Slot::Last),
                known => Some(known),
            }
        })
    }

    /// The expression of a whole block. It has no anchors and looks at nothing around it, so a block is found in every
    /// context; two blocks cannot overlap, for each begins with its only `<` and ends with its only `>`.
    pub fn block_pattern(self) -> String {
        let number = self.rest(0, &self.counts().collect());
        format!("<{number},{number},{number}>")
    }

    /// The expression of what is left of a number from a place on, if it has one of these counts of decimals. Places are
    /// sign, integer part, point, four decimals, end: 0 to 7.
    pub fn rest(self, place: usize, counts: &BTreeSet<usize>) -> String {
        let head = match place {
            0 => pattern(&[Slot::Sign, Slot::Integer], self.range),
            1 => pattern(&[Slot::Integer], self.range),
            _ => String::new(),
        };
        if place >= 3 || self.decimals == Decimals::Four {
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

    /// The expression of the last decimals of a number, in one of these counts.
    fn digits(self, counts: &BTreeSet<usize>) -> String {
        let run = |count: usize| {
            let stripped = self.dialect() == Dialect::Stripped;
            let mut slots = vec![Slot::Digit; count];
            if let Some(last) = slots.last_mut().filter(|_| stripped) {
                *last = Slot::Last;
            }
            pattern(&slots, self.range)
        };
        let (Some(&first), Some(&last)) = (counts.first(), counts.last()) else { return String::new() };
        if first == last {
            return run(first);
        }
        let whole = counts.len() == last - first + 1;
        match (whole, first) {
            (true, 0) if last == 1 => "[1-9]?".to_owned(),
            (true, 0) => format!("(?:[0-9]{{0,{}}}[1-9])?", last - 1),
            (true, _) => format!("[0-9]{{{},{}}}[1-9]", first - 1, last - 1),
            (false, _) => {
                let runs: Vec<String> = counts.iter().rev().map(|count| run(*count)).collect();
                format!("(?:{})", runs.join("|"))
            }
        }
    }
}

/// The axis of a slot and its place there: sign, integer part, point, four decimals, end. `<` has none.
pub fn place(slot: usize) -> (usize, usize) {
    match slot {
        0 => (0, usize::MAX),
        _ => ((slot - 1) / 8, (slot - 1) % 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::number::{Digits, parse_number};

    fn range() -> Range {
        Range::new(15).unwrap()
    }

    #[test]
    fn numbers_are_those_of_the_dialect_each_once() {
        for fewest in 0..=MAX_DECIMALS {
            let grammar = Grammar::stripped(range(), fewest).unwrap();
            let mut seen = std::collections::HashSet::new();
            for index in 0..grammar.numbers() {
                let number = grammar.number(index);
                let digits = format!("{:04}", number.fraction);
                let mut text = format!("{}{}", if number.negative { "-" } else { "" }, number.integer);
                if number.decimals > 0 {
                    text += &format!(".{}", &digits[..number.decimals]);
                }
                let (_, written) = parse_number(text.as_bytes()).unwrap();
                assert!(matches!(written, Digits::Both | Digits::Stripped), "{text}");
                assert!(number.decimals >= fewest && number.integer < 15, "{text}");
                assert!(seen.insert(text));
            }
            let all = (0..10_000u32).filter(|fraction| MAX_DECIMALS - decimals_stripped(*fraction) >= fewest);
            assert_eq!(seen.len(), 30 * all.count());
        }
        assert!(Grammar::stripped(range(), 5).is_err());
    }

    #[test]
    fn the_widest_grammar_has_blocks_of_as_many_characters() {
        let fewest = |tokens| Grammar::widest(range(), tokens).fewest_decimals();
        assert_eq!([7, 8, 13, 14, 16, 17, 19, 20, 22].map(fewest), [0, 1, 1, 2, 2, 3, 3, 4, 4]);
        assert_eq!(Grammar::fixed(range()).most_tokens(), 22);
    }

    #[test]
    fn expressions_are_those_of_the_dialect() {
        let pattern = |fewest| Grammar::stripped(Range::new(10).unwrap(), fewest).unwrap().block_pattern();
        let blocks = |number: &str| format!("<{number},{number},{number}>");
        assert_eq!(pattern(0), blocks("-?[0-9](?:\\.[0-9]{0,3}[1-9])?"));
        assert_eq!(pattern(1), blocks("-?[0-9]\\.[0-9]{0,3}[1-9]"));
        assert_eq!(pattern(4), blocks("-?[0-9]\\.[0-9]{3}[1-9]"));
        let fixed = Grammar::fixed(Range::new(10).unwrap());
        assert_eq!(fixed.block_pattern(), blocks("-?[0-9]\\.[0-9]{4}"));
    }

    #[test]
    fn slots_are_there_as_numbers_have_decimals() {
        let grammar = Grammar::stripped(range(), 0).unwrap();
        let row: Vec<Slot> = grammar.slots([0, 1, 2]).into_iter().flatten().collect();
        use Slot::{Close, Comma, Digit, Integer, Last, Open, Point, Sign};
        let expected =
            [Open, Sign, Integer, Comma, Sign, Integer, Point, Last, Comma, Sign, Integer, Point, Digit];
        assert_eq!(row, [&expected[..], &[Last, Close]].concat());
        let fixed = Grammar::fixed(range());
        assert_eq!(fixed.slots([4; 3]).map(Option::unwrap), BLOCK);
    }
}
