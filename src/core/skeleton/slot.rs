//! Slots: the free parts of a text, and how they are written.
//!
//! The languages of numbers are those of [`crate::encoding`]: digits between two bounds, as an automaton over bytes.

use std::collections::BTreeSet;

use crate::encoding::language::{Languages, Node, StateId};
use crate::encoding::parts::Digits;
use crate::encoding::{Dfa, DfaState, Encoding, Fixed, IntegersBelow, NumberFormat};

/// The most bytes of a word, and of the texts between words.
pub(super) const LONGEST_WORD: usize = 64;

/// What stands before the digits of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sign {
    /// `-` before negative numbers, nothing before others.
    #[default]
    Minus,
    /// `-` before negative numbers, `+` before others.
    Always,
}

/// A number, as a slot writes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    /// The least number of decimals. Beyond it trailing zeros are removed.
    pub least_decimals: u8,
    /// The largest number of decimals.
    pub decimals: u8,
    /// The smallest number, in units of the last decimal.
    pub low: i64,
    /// The largest number, in units of the last decimal.
    pub high: i64,
    /// The least number of digits, decimals included, filled with zeros.
    pub width: u8,
    /// What stands before the digits.
    pub sign: Sign,
    /// Whether zero may have a minus.
    pub minus_zero: bool,
    /// What it stands for.
    pub meaning: Meaning,
}

/// What a number stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Meaning {
    /// Itself.
    Itself,
    /// The middle of the bin with this index.
    Bins {
        /// The lower end of the first bin.
        low: f64,
        /// The width of a bin.
        step: f64,
    },
    /// What an encoding writes so on an axis; nothing, if it writes codes.
    Encoded(Encoding, usize),
}

/// How a slot may be written.
#[derive(Debug, Clone, PartialEq)]
pub enum SlotKind {
    /// A number.
    Number(Number),
    /// A code: as many characters of an alphabet as the width.
    Codes {
        /// The characters, all ASCII.
        alphabet: Box<[u8]>,
        /// The number of characters.
        width: u8,
    },
    /// One of these words.
    Words(Vec<String>),
}

/// Why the text of a slot is not one of its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotFault {
    Format,
    Range,
    MinusZero,
}

/// A free part of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot {
    /// Its name in the skeleton.
    pub name: String,
    /// How it may be written: as any of these.
    pub kinds: Vec<SlotKind>,
    /// Which of several numbers of a position it is; 0 if it is none of them, or all.
    pub axis: usize,
    /// The encoding whose numbers it is, if it is written as an encoding says.
    pub encoding: Option<Encoding>,
    dfa: Dfa,
}

/// 10 to the power of `decimals`, which is at most 12.
pub(super) fn power(decimals: u8) -> i64 {
    10i64.pow(decimals.into())
}

impl Number {
    /// Returns the numbers of an encoding on an axis, as texts are generated.
    pub(super) fn of(encoding: Encoding, axis: usize) -> Self {
        let format = encoding.number();
        let (low, high) = format.limits(axis);
        let (decimals, width) = (encoding.decimals() as u8, format.width());
        let most = i64::from(IntegersBelow::GENERATED.0) * power(decimals) - 1;
        let is_decimal = matches!(format, NumberFormat::Decimal { .. });
        Number {
            least_decimals: if is_decimal { encoding.least_decimals() as u8 } else { 0 },
            decimals,
            low: if is_decimal { -most } else { low.into() },
            high: if is_decimal { most } else { high.into() },
            width,
            sign: Sign::Minus,
            // Encodings read zero with a sign, though they never write it.
            minus_zero: encoding.is_signed(),
            meaning: if is_decimal { Meaning::Itself } else { Meaning::Encoded(encoding, axis) },
        }
    }

    /// Returns the texts of the numbers; `None` if the range holds none.
    fn language(&self, languages: &mut Languages<u8>) -> Option<StateId> {
        let mut all = None;
        for decimals in self.least_decimals..=self.decimals {
            let scale = power(self.decimals - decimals);
            // The bounds in units of this many decimals: the numbers between them, rounded inwards.
            let (low, high) = (-(-self.low).div_euclid(scale), self.high.div_euclid(scale));
            let zero = if self.minus_zero && (low..=high).contains(&0) { 0 } else { 1 };
            for (sign, least, most) in [("-", (-high).max(zero), -low), (self.plus(), low.max(0), high)] {
                if least > most {
                    continue;
                }
                let digits = Digits {
                    low: least.unsigned_abs(),
                    high: most.unsigned_abs(),
                    width: self.width.into(),
                    decimals: decimals.into(),
                    last_is_nonzero: decimals > self.least_decimals,
                };
                let Some(mut root) = digits.language(languages) else { continue };
                for byte in sign.bytes().rev() {
                    root = languages.intern(Node { edges: vec![(byte, root)], end: None });
                }
                all = all.map_or(Some(root), |others| languages.union(others, root));
            }
        }
        all
    }

    fn plus(&self) -> &'static str {
        if self.sign == Sign::Always { "+" } else { "" }
    }

    /// Returns what is wrong with a text that is none of the numbers.
    fn fault(&self, text: &str) -> SlotFault {
        let (negative, digits) = match text.as_bytes() {
            [b'-', ..] => (true, &text[1..]),
            [b'+', ..] if self.sign == Sign::Always => (false, &text[1..]),
            _ => (false, text),
        };
        let (integer, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let are_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let has_point = digits.contains('.');
        let decimals = usize::from(self.least_decimals)..=usize::from(self.decimals);
        if integer.is_empty()
            || !are_digits(integer)
            || !are_digits(fraction)
            || has_point == fraction.is_empty()
            || !decimals.contains(&fraction.len())
            || (fraction.len() > usize::from(self.least_decimals) && fraction.ends_with('0'))
        {
            return SlotFault::Format;
        }
        let is_zero = digits.bytes().all(|byte| matches!(byte, b'0' | b'.'));
        if negative && is_zero && !self.minus_zero {
            return SlotFault::MinusZero;
        }
        let scale = power(self.decimals - fraction.len() as u8);
        let units =
            format!("{integer}{fraction}").parse::<i64>().ok().and_then(|units| units.checked_mul(scale));
        match units.map(|units| if negative { -units } else { units }) {
            Some(units) if (self.low..=self.high).contains(&units) => SlotFault::Format,
            _ => SlotFault::Range,
        }
    }

    /// Returns the value of one of its texts.
    pub(super) fn value(&self, text: &str) -> Option<f64> {
        let number: f64 = text.parse().ok()?;
        match self.meaning {
            Meaning::Itself => Some(number),
            Meaning::Bins { low, step } => Some(low + (number + 0.5) * step),
            Meaning::Encoded(encoding, axis) => encoding.number().angstrom(number as Fixed, axis),
        }
    }
}

impl SlotKind {
    fn language(&self, languages: &mut Languages<u8>) -> Option<StateId> {
        let end = languages.end(());
        match self {
            SlotKind::Number(number) => number.language(languages),
            SlotKind::Codes { alphabet, width } => Some((0..*width).fold(end, |then, _| {
                languages
                    .intern(Node { edges: alphabet.iter().map(|byte| (*byte, then)).collect(), end: None })
            })),
            SlotKind::Words(words) => {
                languages.trie(words.iter().map(|word| (word.clone().into_bytes(), end)).collect())
            }
        }
    }
}

impl Slot {
    /// Returns a slot. The alphabets of its codes must ascend.
    ///
    /// # Errors
    /// A sentence, if a range holds no number.
    pub(super) fn new(name: String, kinds: Vec<SlotKind>) -> Result<Self, String> {
        let mut languages = Languages::default();
        let mut all = None;
        for kind in &kinds {
            let root = kind.language(&mut languages).ok_or("its range holds no number")?;
            // All texts have the same kind of end, so there is no conflict.
            all = all.map_or(Some(root), |others| languages.union(others, root));
        }
        let root = all.ok_or("it has no kind")?;
        if languages.reachable(root).len() >= usize::from(DfaState::MAX) {
            return Err("it has too many words".to_owned());
        }
        Ok(Slot { name, kinds, axis: 0, encoding: None, dfa: Dfa::new(&languages, root) })
    }

    /// This slot as that of an axis.
    pub(super) fn on_axis(self, axis: usize) -> Self {
        Slot { axis, ..self }
    }

    /// This slot as that of an encoding.
    pub(super) fn of_encoding(self, encoding: Encoding) -> Self {
        Slot { encoding: Some(encoding), ..self }
    }

    /// Returns the automaton of its texts.
    pub fn dfa(&self) -> &Dfa {
        &self.dfa
    }

    /// Returns the value of one of its texts; `None` for words and codes.
    pub fn value(&self, text: &str) -> Option<f64> {
        match &self.kinds[..] {
            [SlotKind::Number(number), ..] => number.value(text),
            _ => None,
        }
    }

    /// Returns whether it holds numbers.
    pub fn is_number(&self) -> bool {
        matches!(self.kinds[..], [SlotKind::Number(_), ..])
    }

    /// Returns what is wrong with a text that is none of its texts. A number in the range of another kind of the slot has the wrong
    /// format.
    pub(super) fn fault(&self, text: &str) -> SlotFault {
        let mut found = SlotFault::Format;
        for kind in &self.kinds {
            let SlotKind::Number(number) = kind else { continue };
            match number.fault(text) {
                SlotFault::Format => {}
                SlotFault::Range if self.kinds.iter().any(|kind| kind.holds(text)) => {}
                other => found = other,
            }
        }
        found
    }

    /// Returns the bytes that may follow a text of the slot without ending it: after a text, the slot would go on with them.
    pub(super) fn continuations(&self) -> BTreeSet<u8> {
        let states = 0..self.dfa.len() as DfaState;
        states.filter(|state| self.dfa.accepts(*state)).flat_map(|state| self.dfa.bytes(state)).collect()
    }

    /// Returns a short description of its texts, for messages: `a decimal with 2 decimals from 0.00 to 0.99`.
    pub fn description(&self) -> String {
        let kinds: Vec<String> = self.kinds.iter().map(SlotKind::description).collect();
        kinds.join(", or ")
    }
}

impl SlotKind {
    /// Returns whether a number lies in the range, however it is written.
    fn holds(&self, text: &str) -> bool {
        let (SlotKind::Number(number), Ok(value)) = (self, text.parse::<f64>()) else { return false };
        let units = value * power(number.decimals) as f64;
        (number.low as f64..=number.high as f64).contains(&units)
    }

    fn description(&self) -> String {
        match self {
            SlotKind::Codes { alphabet, width } => {
                format!("{width} of {} characters", alphabet.len())
            }
            SlotKind::Words(words) => match &words[..] {
                [one] => format!("`{one}`"),
                _ => format!("one of {} words", words.len()),
            },
            SlotKind::Number(number) => {
                let places = usize::from(number.decimals);
                let bound = |units: i64| format!("{:.places$}", units as f64 / power(number.decimals) as f64);
                let range = format!("from {} to {}", bound(number.low), bound(number.high));
                let digits = match number.width {
                    0 => String::new(),
                    width => format!(" of {width} digits"),
                };
                match (number.least_decimals, number.decimals) {
                    _ if matches!(number.meaning, Meaning::Bins { .. }) => format!("a bin{digits} {range}"),
                    (0, 0) => format!("an integer{digits} {range}"),
                    (1, 1) => format!("a number{digits} with 1 decimal {range}"),
                    (least, most) if least == most => {
                        format!("a number{digits} with {most} decimals {range}")
                    }
                    (least, most) => format!("a number{digits} with {least} to {most} decimals {range}"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(least: u8, decimals: u8, low: i64, high: i64) -> Number {
        let (width, sign, minus_zero, meaning) = (0, Sign::Minus, false, Meaning::Itself);
        Number { least_decimals: least, decimals, low, high, width, sign, minus_zero, meaning }
    }

    fn slot(number: Number) -> Slot {
        Slot::new("x".to_owned(), vec![SlotKind::Number(number)]).unwrap()
    }

    /// A number is legal if Rust writes it so and it lies in the range.
    #[test]
    fn numbers_are_those_of_the_range() {
        for (low, high) in [(-150, 99), (0, 99), (-5, -2), (3, 250), (-100, 100), (-99, -1)] {
            let fixed = slot(number(2, 2, low, high));
            let stripped = slot(number(0, 2, low, high));
            for units in -300..=300 {
                let text = format!("{:.2}", f64::from(units) / 100.0);
                let inside = (low..=high).contains(&i64::from(units));
                assert_eq!(fixed.dfa().matches(text.as_bytes()), inside, "{text} in {low} to {high}");
                let short = format!("{}", f64::from(units) / 100.0);
                assert_eq!(stripped.dfa().matches(short.as_bytes()), inside, "{short} in {low} to {high}");
                if !inside {
                    assert_eq!(fixed.fault(&text), SlotFault::Range, "{text}");
                }
            }
            for other in ["-0.00", "00.10", "0.1", "0.100", ".10", "+0.10", "1e1", "", "-", "0.1x"] {
                assert!(!fixed.dfa().matches(other.as_bytes()), "{other}");
            }
        }
        assert_eq!(slot(number(2, 2, -9, 9)).fault("-0.00"), SlotFault::MinusZero);
        assert_eq!(slot(number(2, 2, -9, 9)).fault("-0.000"), SlotFault::Format);
        assert_eq!(slot(number(2, 2, -9, 9)).fault("99999999999999999999.00"), SlotFault::Range);
        assert!(Slot::new("x".to_owned(), vec![SlotKind::Number(number(1, 1, 5, 4))]).is_err());
        // No number with one decimal lies between 0.11 and 0.19.
        let none = Number { least_decimals: 1, decimals: 1, ..number(2, 2, 11, 19) };
        assert!(
            Slot::new("x".to_owned(), vec![SlotKind::Number(Number { low: 2, high: 1, ..none })]).is_err()
        );
    }

    #[test]
    fn signs_widths_and_minus_zero_are_as_defined() {
        let padded = slot(Number { width: 4, ..number(0, 0, -1_995, 1_995) });
        for (text, legal) in [
            ("0012", true),
            ("-0034", true),
            ("1995", true),
            ("1996", false),
            ("12", false),
            ("-0000", false),
        ] {
            assert_eq!(padded.dfa().matches(text.as_bytes()), legal, "{text}");
        }
        let always = slot(Number { sign: Sign::Always, minus_zero: true, ..number(1, 1, -10, 10) });
        for (text, legal) in
            [("+0.5", true), ("-0.5", true), ("0.5", false), ("-0.0", true), ("+0.0", true), ("+1.1", false)]
        {
            assert_eq!(always.dfa().matches(text.as_bytes()), legal, "{text}");
        }
        let codes = SlotKind::Codes { alphabet: b"0aB".to_vec().into(), width: 2 };
        let codes = Slot::new("c".to_owned(), vec![codes]);
        // The alphabet of a language ascends; the file's reader sorts it.
        assert!(codes.is_ok());
    }
}
