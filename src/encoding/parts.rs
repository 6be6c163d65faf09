//! What numbers look like, as data: rows of parts, each of which stands for a few strings.
//!
//! A slot of a text is a row of parts side by side, or one of several rows (numbers of two and of four decimals). All that has to
//! know how numbers look is derived from these rows: their language ([`super::Dfa`]), their expression, and all their strings as
//! a product of parts, for whoever counts or constructs them.

use super::language::{Languages, StateId};

/// A part of a slot, that stands for any of a few strings.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// This text.
    Literal(Box<str>),
    /// This text or nothing: a sign.
    Optional(Box<str>),
    /// One digit, this one or a larger one.
    Digit {
        /// 0, or 1 for a digit that is not zero.
        least: u8,
    },
    /// A whole number without leading zeros.
    Integer {
        /// It is smaller.
        below: u32,
    },
    /// A whole number with leading zeros.
    Padded {
        /// It is smaller.
        below: u32,
        /// It has at least so many digits.
        width: u8,
    },
}

/// A row of parts side by side.
pub type Row = Vec<Part>;

impl Part {
    /// A literal, or nothing for the empty text.
    pub(super) fn literal(text: &str) -> Option<Part> {
        (!text.is_empty()).then(|| Part::Literal(text.into()))
    }

    /// How many strings it stands for.
    pub fn count(&self) -> u64 {
        match self {
            Part::Literal(_) => 1,
            Part::Optional(_) => 2,
            Part::Digit { least } => u64::from(10 - least),
            Part::Integer { below } | Part::Padded { below, .. } => u64::from(*below),
        }
    }

    /// All of them, in the order of their values.
    pub fn strings(&self) -> Vec<String> {
        match self {
            Part::Literal(text) => vec![text.to_string()],
            Part::Optional(text) => vec![String::new(), text.to_string()],
            Part::Digit { least } => (*least..10).map(|digit| digit.to_string()).collect(),
            Part::Integer { below } => (0..*below).map(|value| value.to_string()).collect(),
            Part::Padded { below, width } => {
                (0..*below).map(|value| format!("{value:0width$}", width = usize::from(*width))).collect()
            }
        }
    }

    /// Its language.
    fn language(&self, languages: &mut Languages<u8>) -> StateId {
        let end = languages.end(());
        let paths = self.strings().into_iter().map(|text| (text.into_bytes(), end)).collect();
        // Strings end in one way alone, so none can end in two.
        languages.trie(paths).unwrap_or(end)
    }

    /// A regular expression of it, in the syntax that Rust, Python, Lark and ECMAScript share.
    pub fn expression(&self) -> String {
        match self {
            Part::Literal(text) => escaped(text),
            Part::Optional(text) if text.chars().count() == 1 => format!("{}?", escaped(text)),
            Part::Optional(text) => format!("(?:{})?", escaped(text)),
            Part::Digit { least } => format!("[{least}-9]"),
            Part::Integer { below } => {
                let last = below.saturating_sub(1);
                let digits = last.to_string().len() as u32;
                let mut options = Vec::new();
                for length in (1..=digits).rev() {
                    let low = if length == 1 { 0 } else { 10u32.pow(length - 1) };
                    let high = last.min(10u32.pow(length) - 1);
                    options.extend(ranges(low, high, length as usize));
                }
                alternatives(options)
            }
            Part::Padded { below, width } => {
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

/// How many strings a row stands for, at most 2⁶⁴ - 1.
pub fn count(row: &[Part]) -> u64 {
    row.iter().fold(1, |count: u64, part| count.saturating_mul(part.count()))
}

/// All strings of a row, in the order of its parts.
pub fn strings(row: &[Part]) -> Vec<String> {
    let mut all = vec![String::new()];
    for part in row {
        let options = part.strings();
        all = all.iter().flat_map(|head| options.iter().map(move |tail| format!("{head}{tail}"))).collect();
    }
    all
}

/// The expression of a row; equal parts side by side are counted.
pub fn expression(row: &[Part]) -> String {
    let mut out = String::new();
    let mut rest = row;
    while let Some(part) = rest.first() {
        let same = rest.iter().take_while(|other| *other == part).count();
        rest = &rest[same..];
        out += &part.expression();
        match (same, part) {
            (1, _) => {}
            (_, Part::Digit { .. }) => out += &format!("{{{same}}}"),
            _ => (1..same).for_each(|_| out += &part.expression()),
        }
    }
    out
}

/// The language of a row.
pub fn language(row: &[Part], languages: &mut Languages<u8>) -> StateId {
    let end = languages.end(());
    row.iter().rev().fold(end, |then, part| {
        let head = part.language(languages);
        // As in `Part::language`.
        languages.concatenation(head, then).unwrap_or(then)
    })
}

/// The language of several rows.
pub fn language_of_rows(rows: &[Row], languages: &mut Languages<u8>) -> Option<StateId> {
    let roots: Vec<StateId> = rows.iter().map(|row| language(row, languages)).collect();
    let mut roots = roots.into_iter();
    let first = roots.next()?;
    roots.try_fold(first, |all, root| languages.union(all, root))
}

/// A text as an expression that matches it.
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

/// Expressions of the numbers `low..=high`, all written with `width` digits.
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
    // The leading digits whose other digits may be anything, between those of the two ends.
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

    fn matches(expression: &str, text: &str) -> bool {
        fancy_regex::Regex::new(&format!("^(?:{expression})$")).unwrap().is_match(text).unwrap()
    }

    #[test]
    fn expressions_are_the_strings_and_nothing_else() {
        for below in [1, 2, 9, 10, 11, 15, 99, 100, 101, 250, 841, 977, 1_000, 1_001, 1_234] {
            for part in
                [Part::Integer { below }, Part::Padded { below, width: 3 }, Part::Padded { below, width: 4 }]
            {
                let expression = part.expression();
                let strings = part.strings();
                assert_eq!(strings.len() as u64, part.count());
                assert!(strings.iter().all(|text| matches(&expression, text)), "{part:?} {expression}");
                let others = (below..below + 1_100).map(|value| format!("{value:03}"));
                let others = others.chain(["00".into(), "007".into(), "0007".into(), String::new()]);
                for other in others.filter(|other| !strings.contains(other)) {
                    assert!(!matches(&expression, &other), "{part:?} {expression} {other}");
                }
            }
        }
        let row = [Part::Optional("-".into()), Part::Integer { below: 100 }, Part::Literal(".".into())];
        let row: Row = row.into_iter().chain(vec![Part::Digit { least: 0 }; 4]).collect();
        assert_eq!(expression(&row), "-?(?:[1-9][0-9]|[0-9])\\.[0-9]{4}");
        assert_eq!(count(&row), 2 * 100 * 10_000);
    }

    #[test]
    fn a_row_is_a_language_of_as_many_strings() {
        let mut languages = Languages::default();
        let row = [Part::Optional("-".into()), Part::Padded { below: 1_001, width: 3 }];
        let root = language(&row, &mut languages);
        assert_eq!(languages.count(root), 2_002);
        assert_eq!(strings(&row).len(), 2_002);
    }
}
