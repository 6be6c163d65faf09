//! The spelling of numbers as data: rows of parts, each of which stands for a small set of strings.
//!
//! A slot is a sequence of parts, or one of several such rows (for numbers with two and with four decimals). All knowledge about
//! the spelling of numbers is derived from these rows: their language ([`super::Dfa`]), their regular expression, and all their
//! strings as a product of parts, for code that counts or constructs them.

use super::language::{Languages, Node, StateId};

/// A part of a slot, which stands for one of a few strings.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SlotPart {
    /// This text.
    Literal(Box<str>),
    /// This text or nothing: a sign.
    Optional(Box<str>),
    /// One digit.
    Digit {
        /// The smallest allowed digit: 0, or 1 for a digit that is not zero.
        least: u8,
    },
    /// An integer without leading zeros.
    Integer {
        /// Integers are smaller than this.
        below: u32,
    },
    /// An integer with leading zeros.
    Padded {
        /// Integers are smaller than this.
        below: u32,
        /// The least number of digits.
        width: u8,
    },
}

/// A sequence of parts.
pub type PartRow = Vec<SlotPart>;

impl SlotPart {
    /// Returns a row of one literal part; without parts for the empty text.
    pub(super) fn literal(text: &str) -> PartRow {
        if text.is_empty() { Vec::new() } else { vec![SlotPart::Literal(text.into())] }
    }

    /// Returns the number of strings that the part stands for.
    pub fn count(&self) -> u64 {
        match self {
            SlotPart::Literal(_) => 1,
            SlotPart::Optional(_) => 2,
            SlotPart::Digit { least } => u64::from(10 - least),
            SlotPart::Integer { below } | SlotPart::Padded { below, .. } => u64::from(*below),
        }
    }

    /// Returns all strings of the part, ordered by value.
    pub fn strings(&self) -> Vec<String> {
        match self {
            SlotPart::Literal(text) => vec![text.to_string()],
            SlotPart::Optional(text) => vec![String::new(), text.to_string()],
            SlotPart::Digit { least } => (*least..10).map(|digit| digit.to_string()).collect(),
            SlotPart::Integer { below } => (0..*below).map(|value| value.to_string()).collect(),
            SlotPart::Padded { below, width } => {
                (0..*below).map(|value| format!("{value:0width$}", width = usize::from(*width))).collect()
            }
        }
    }

    /// Returns the language of the part.
    fn language(&self, languages: &mut Languages<u8>) -> StateId {
        let end = languages.end(());
        match self {
            SlotPart::Integer { below } => integers(below.saturating_sub(1), 1, languages),
            SlotPart::Padded { below, width } => {
                integers(below.saturating_sub(1), usize::from(*width).max(1), languages)
            }
            SlotPart::Literal(_) | SlotPart::Optional(_) | SlotPart::Digit { .. } => {
                let paths = self.strings().into_iter().map(|text| (text.into_bytes(), end)).collect();
                // All strings have the same kind of end, so there is no conflict.
                languages.trie(paths).unwrap_or(end)
            }
        }
    }

    /// Returns a regular expression for the part, in the syntax that Rust, Python, Lark and ECMAScript share.
    pub fn expression(&self) -> String {
        match self {
            SlotPart::Literal(text) => escaped(text),
            SlotPart::Optional(text) if text.chars().count() == 1 => format!("{}?", escaped(text)),
            SlotPart::Optional(text) => format!("(?:{})?", escaped(text)),
            SlotPart::Digit { least } => format!("[{least}-9]"),
            SlotPart::Integer { below } if *below <= 100 => below_hundred(*below),
            SlotPart::Integer { below } => {
                let last = below.saturating_sub(1);
                let digits = last.to_string().len() as u32;
                let mut options = Vec::new();
                // Longest first: many engines take the first alternative that matches.
                for length in (1..=digits).rev() {
                    let low = if length == 1 { 0 } else { 10u32.pow(length - 1) };
                    let high = last.min(10u32.pow(length) - 1);
                    options.extend(ranges(low, high, length as usize));
                }
                alternatives(options)
            }
            SlotPart::Padded { below, width } => {
                let last = below.saturating_sub(1);
                let width = usize::from(*width);
                let fits = last.min(10u32.pow(width as u32) - 1);
                let mut options = ranges(0, fits, width);
                for length in width + 1..=last.to_string().len() {
                    let low = 10u32.pow(length as u32 - 1);
                    options.extend(ranges(low, last.min(10u32.pow(length as u32) - 1), length));
                }
                alternatives(options)
            }
        }
    }
}

/// Returns the language of the integers up to `last`, with leading zeros up to `width` digits.
fn integers(last: u32, width: usize, languages: &mut Languages<u8>) -> StateId {
    let digits = Digits { low: 0, high: last.into(), width, decimals: 0, last_is_nonzero: false };
    let empty = languages.end(());
    // Never empty: 0 is among them.
    digits.language(languages).unwrap_or(empty)
}

/// The digits of numbers without a sign, all with the same number of decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digits {
    /// The smallest number, in units of the last decimal.
    pub low: u64,
    /// The largest number, in units of the last decimal; at most 10¹⁸.
    pub high: u64,
    /// The least number of digits, decimals included, filled with zeros.
    pub width: usize,
    /// The number of decimals. A point stands before them, and a digit before it.
    pub decimals: usize,
    /// Whether the last digit is not zero, as where trailing zeros are removed.
    pub last_is_nonzero: bool,
}

impl Digits {
    /// Returns the language of the numbers; `None` if there is none. Its states are made digit by digit, so they are as many as the
    /// digits, not as the numbers.
    pub(crate) fn language(&self, languages: &mut Languages<u8>) -> Option<StateId> {
        let width = self.width.max(self.decimals + 1);
        let longest = self.high.to_string().len().max(width);
        let free = self.free(longest, languages);
        let mut all = None;
        for length in width..=longest {
            let least = if length == width { 0 } else { 10u64.pow(length as u32 - 1) };
            let nines = 10u64.checked_pow(length as u32).map_or(u64::MAX, |power| power - 1);
            let (low, high) = (self.low.max(least), self.high.min(nines));
            if low > high {
                continue;
            }
            let (low, high) = (self.written(low, length), self.written(high, length));
            let Some(of_length) = self.between(Some(&low), Some(&high), &free[..=low.len()], languages)
            else {
                continue;
            };
            // All strings have the same kind of end, so there is no conflict.
            all = all.map_or(Some(of_length), |shorter| languages.union(shorter, of_length));
        }
        all
    }

    /// By number of characters: the language in which all digits are free.
    fn free(&self, digits: usize, languages: &mut Languages<u8>) -> Vec<StateId> {
        let mut free = vec![languages.end(())];
        for length in 1..=digits + usize::from(self.decimals > 0) {
            let bytes = self.bytes(length, b'0', b'9');
            let edges = bytes.map(|byte| (byte, free[length - 1])).collect();
            free.push(languages.intern(Node { edges, end: None }));
        }
        free
    }

    /// Returns the bytes that may stand where `length` characters are left: digits from `first` to `last`, or the point.
    fn bytes(&self, length: usize, first: u8, last: u8) -> std::ops::RangeInclusive<u8> {
        match length {
            _ if self.decimals > 0 && length == self.decimals + 1 => b'.'..=b'.',
            1 if self.last_is_nonzero => first.max(b'1')..=last,
            _ => first..=last,
        }
    }

    /// Returns a number of `length` digits, with its point.
    fn written(&self, number: u64, length: usize) -> Vec<u8> {
        let mut text = format!("{number:0length$}").into_bytes();
        if self.decimals > 0 {
            text.insert(length - self.decimals, b'.');
        }
        text
    }

    /// Returns the numbers from `low` to `high`, written with as many characters, where `None` is no bound; `None` if there is none.
    /// `free` has the languages without bounds, by length.
    fn between(
        &self,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
        free: &[StateId],
        languages: &mut Languages<u8>,
    ) -> Option<StateId> {
        let length = free.len() - 1;
        if length == 0 || (low.is_none() && high.is_none()) {
            return Some(free[length]);
        }
        let (first, last) = (low.map_or(b'0', |low| low[0]), high.map_or(b'9', |high| high[0]));
        let mut edges = Vec::new();
        for byte in self.bytes(length, first, last) {
            let low = low.filter(|low| low[0] == byte).map(|low| &low[1..]);
            let high = high.filter(|high| high[0] == byte).map(|high| &high[1..]);
            edges.extend(self.between(low, high, &free[..length], languages).map(|then| (byte, then)));
        }
        (!edges.is_empty()).then(|| languages.intern(Node { edges, end: None }))
    }
}

/// Returns the number of strings of a row; saturates at 2⁶⁴ - 1.
pub fn count(row: &[SlotPart]) -> u64 {
    row.iter().fold(1, |count: u64, part| count.saturating_mul(part.count()))
}

/// Returns all strings of a row, ordered by its parts.
pub fn strings(row: &[SlotPart]) -> Vec<String> {
    let mut all = vec![String::new()];
    for part in row {
        let options = part.strings();
        all = all.iter().flat_map(|head| options.iter().map(move |tail| format!("{head}{tail}"))).collect();
    }
    all
}

/// Returns a regular expression for a row. Repeated digits get a count.
pub fn expression(row: &[SlotPart]) -> String {
    let mut out = String::new();
    let mut rest = row;
    while let Some(part) = rest.first() {
        let same = rest.iter().take_while(|other| *other == part).count();
        rest = &rest[same..];
        out += &part.expression();
        match (same, part) {
            (1, _) => {}
            (_, SlotPart::Digit { .. }) => out += &format!("{{{same}}}"),
            _ => (1..same).for_each(|_| out += &part.expression()),
        }
    }
    out
}

/// Returns the language of a row.
pub fn language(row: &[SlotPart], languages: &mut Languages<u8>) -> StateId {
    let end = languages.end(());
    row.iter().rev().fold(end, |then, part| {
        let head = part.language(languages);
        // No conflict, as in `SlotPart::language`.
        languages.concatenation(head, then).unwrap_or(then)
    })
}

/// Returns the language of several rows; `None` if there are no rows.
pub(crate) fn language_of_rows(rows: &[PartRow], languages: &mut Languages<u8>) -> Option<StateId> {
    let roots: Vec<StateId> = rows.iter().map(|row| language(row, languages)).collect();
    let mut roots = roots.into_iter();
    let first = roots.next()?;
    roots.try_fold(first, |all, root| languages.union(all, root))
}

/// Returns an expression that matches exactly this text.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '.' | '{' | '}' | '(' | ')' | '[' | ']' | '+' | '*' | '?' | '|' | '^' | '$' | '\\' => {
                out.extend(['\\', c]);
            }
            _ => out.push(c),
        }
    }
    out
}

fn alternatives(options: Vec<String>) -> String {
    match &options[..] {
        [one] => one.clone(),
        _ => format!("(?:{})", options.join("|")),
    }
}

/// Returns the integers below a bound of at most 100, spelled exactly as in extended tokenizers since their first version: these
/// tokenizers are recognised by this spelling.
fn below_hundred(below: u32) -> String {
    let last = below.saturating_sub(1);
    let (tens, ones) = (last / 10, last % 10);
    let mut options = Vec::new();
    match tens {
        0 => return format!("[0-{ones}]"),
        1 => {}
        2 => options.push("1[0-9]".to_owned()),
        _ => options.push(format!("[1-{}][0-9]", tens - 1)),
    }
    options.push(format!("{tens}[0-{ones}]"));
    options.push("[0-9]".to_owned());
    alternatives(options)
}

/// Expressions for the integers `low..=high`, all written with `width` digits.
fn ranges(low: u32, high: u32, width: usize) -> Vec<String> {
    if width == 0 || low > high {
        return Vec::new();
    }
    let unit = 10u32.pow(width as u32 - 1);
    let (first, last) = (low / unit, high / unit);
    let digit = |a: u32, b: u32| if a == b { a.to_string() } else { format!("[{a}-{b}]") };
    if width == 1 {
        return vec![digit(first, last)];
    }
    let any = |count: usize| if count == 1 { "[0-9]".to_owned() } else { format!("[0-9]{{{count}}}") };
    let mut out = Vec::new();
    // The range of leading digits behind which all other digits are free.
    let whole_first = if low.is_multiple_of(unit) { first } else { first + 1 };
    let whole_last = if high % unit == unit - 1 { Some(last) } else { last.checked_sub(1) };
    if whole_first > first {
        let end = if first == last { high % unit } else { unit - 1 };
        out.extend(ranges(low % unit, end, width - 1).into_iter().map(|tail| format!("{first}{tail}")));
    }
    if let Some(whole_last) = whole_last.filter(|last| *last >= whole_first) {
        out.push(format!("{}{}", digit(whole_first, whole_last), any(width - 1)));
    }
    if whole_last != Some(last) && last >= whole_first {
        out.extend(ranges(0, high % unit, width - 1).into_iter().map(|tail| format!("{last}{tail}")));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The states of integers are those of the minimal automaton of all their strings.
    #[test]
    fn integers_have_the_language_of_their_strings() {
        let mut languages = Languages::default();
        let end = languages.end(());
        for below in [1, 2, 9, 10, 11, 99, 100, 101, 250, 399, 977, 1_000, 1_001, 1_234, 10_001] {
            for width in 0..=6 {
                let part =
                    if width == 0 { SlotPart::Integer { below } } else { SlotPart::Padded { below, width } };
                let paths = part.strings().into_iter().map(|text| (text.into_bytes(), end)).collect();
                assert_eq!(Some(part.language(&mut languages)), languages.trie(paths), "{part:?}");
            }
        }
        let part = SlotPart::Padded { below: 100_000_000, width: 8 };
        let root = part.language(&mut languages);
        assert_eq!((languages.count(root), languages.reachable(root).len()), (100_000_000, 9));
    }

    /// Numbers with a point: the language is that of all strings that Rust writes.
    #[test]
    fn decimals_have_the_language_of_their_strings() {
        let mut languages = Languages::default();
        let end = languages.end(());
        for (low, high) in [(0, 0), (0, 99), (1, 100), (50, 1_234), (999, 1_001), (37, 37), (100, 2_000)] {
            for decimals in 0..=3 {
                for last_is_nonzero in [false, true] {
                    let digits = Digits { low, high, width: 0, decimals, last_is_nonzero };
                    let scale = 10u64.pow(decimals as u32);
                    let text = |v: u64| match decimals {
                        0 => v.to_string(),
                        _ => format!("{}.{:0decimals$}", v / scale, v % scale),
                    };
                    let all = (low..=high).filter(|v| !last_is_nonzero || v % 10 > 0);
                    let paths: Vec<_> = all.map(|v| (text(v).into_bytes(), end)).collect();
                    let expected = if paths.is_empty() { None } else { languages.trie(paths) };
                    assert_eq!(digits.language(&mut languages), expected, "{digits:?}");
                }
            }
        }
    }

    #[test]
    fn a_row_is_a_language_of_as_many_strings() {
        let mut languages = Languages::default();
        let row = [SlotPart::Optional("-".into()), SlotPart::Padded { below: 1_001, width: 3 }];
        let root = language(&row, &mut languages);
        assert_eq!(languages.count(root), 2_002);
        assert_eq!(strings(&row).len(), 2_002);
    }
}
