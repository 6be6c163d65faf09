//! The characters that a pre-tokenizer counts as digits or punctuation, as a character class of a regular expression.

use std::sync::OnceLock;

use tokenizers::PreTokenizedString;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::punctuation::Punctuation;
use tokenizers::tokenizer::{OffsetReferential, OffsetType, PreTokenizer, SplitDelimiterBehavior};

/// A kind of characters at which `tokenizers` cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CharacterKind {
    /// The characters of its pre-tokenizer `Digits`: all that Rust calls numeric.
    Digits,
    /// The characters of its pre-tokenizer `Punctuation`: those of ASCII, and those of its own Unicode tables.
    Punctuation,
}

impl CharacterKind {
    /// Returns the class, `[0-9\x{B2}-\x{B3}…]`. The pre-tokenizer itself is tried on every character, so the class contains exactly the
    /// characters that it cuts off, whatever version of Unicode a regex engine has.
    pub fn class(self) -> &'static str {
        static CLASSES: [OnceLock<String>; 2] = [OnceLock::new(), OnceLock::new()];
        CLASSES[self as usize].get_or_init(|| match self {
            CharacterKind::Digits => class(&Digits::new(true)),
            CharacterKind::Punctuation => class(&Punctuation::new(SplitDelimiterBehavior::Isolated)),
        })
    }
}

/// The number of characters that are tried at once.
const CHUNK: usize = 4_096;

/// Returns the class of the characters that a pre-tokenizer isolates.
fn class(pre_tokenizer: &impl PreTokenizer) -> String {
    let all: Vec<char> = ('\0'..=char::MAX).collect();
    let mut ranges: Vec<(char, char)> = Vec::new();
    for chunk in all.chunks(CHUNK) {
        for c in isolated(pre_tokenizer, chunk) {
            match ranges.last_mut() {
                Some((_, last)) if *last as u32 + 1 == c as u32 => *last = c,
                _ => ranges.push((c, c)),
            }
        }
    }
    let ranges = ranges.into_iter().map(|(first, last)| match first == last {
        true => written(first),
        false => format!("{}-{}", written(first), written(last)),
    });
    format!("[{}]", ranges.collect::<String>())
}

/// Returns the characters that a pre-tokenizer cuts off from adjacent letters.
fn isolated(pre_tokenizer: &impl PreTokenizer, characters: &[char]) -> Vec<char> {
    // Each character stands between two `a`s, so it shares a pre-token with a letter unless it is cut off.
    let text: String = characters.iter().flat_map(|c| ['a', *c]).chain(['a']).collect();
    let mut pieces = PreTokenizedString::from(text.as_str());
    if pre_tokenizer.pre_tokenize(&mut pieces).is_err() {
        return Vec::new();
    }
    let pieces = pieces.get_splits(OffsetReferential::Original, OffsetType::Byte);
    let borders: std::collections::HashSet<usize> =
        pieces.into_iter().flat_map(|(_, (start, end), _)| [start, end]).collect();
    let mut at = 0;
    let mut found = Vec::new();
    for c in characters {
        let start = at + 1;
        at = start + c.len_utf8();
        if *c != 'a' && borders.contains(&start) && borders.contains(&at) {
            found.push(*c);
        }
    }
    found
}

/// Returns the spelling of a character in a class.
fn written(c: char) -> String {
    if c.is_ascii_alphanumeric() { c.to_string() } else { format!("\\x{{{:X}}}", c as u32) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_is_cut_off_and_nothing_else() {
        let digits = CharacterKind::Digits.class();
        assert!(digits.starts_with("[0-9\\x{B2}-\\x{B3}\\x{B9}\\x{BC}-\\x{BE}"), "{digits}");
        let expression = fancy_regex::Regex::new(&format!("\\A{digits}\\z")).unwrap();
        for c in '\0'..=char::MAX {
            assert_eq!(expression.is_match(c.encode_utf8(&mut [0; 4])).unwrap(), c.is_numeric(), "{c:?}");
        }
        let punctuation = CharacterKind::Punctuation.class();
        let expression = fancy_regex::Regex::new(&format!("\\A{punctuation}\\z")).unwrap();
        let holds = |text: &str| expression.is_match(text).unwrap();
        assert!("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~«»–…。、".chars().all(|c| holds(&c.to_string())));
        assert!("a0 é²½\n\u{301}中".chars().all(|c| !holds(&c.to_string())));
    }
}
