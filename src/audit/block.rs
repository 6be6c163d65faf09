//! Judging one generated block, the text between `<` and `>`.

use super::threedmolgen::is_junk;
use crate::text::Dialect;

/// Decimals of the format.
pub(super) const DECIMALS: usize = 4;

/// What is wrong with a block; nothing, by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockVerdict {
    /// It is not exactly three numbers, `-?digits[.[digits]]` between commas.
    pub junk_strict: bool,
    /// It holds one of the letters `a` to `z`, small or capital.
    pub junk_letters: bool,
    /// It is not three floats in the users' sense, who take `0.` for none.
    pub junk_by_3dmolgen: bool,
    /// Fixed dialect: a number is missing or has fewer than four decimals. `None` in the stripped dialect, where fewer
    /// decimals may be meant: only who saw the model write can tell, by [`goes_on`].
    pub truncated: Option<bool>,
    /// A number has more than four decimals, or, in the stripped dialect, trailing zeros.
    pub invented: bool,
    /// Fixed dialect: decimals that are missing to four in each of three numbers.
    pub lost_digits: u32,
    /// Decimals beyond the fourth and, in the stripped dialect, trailing zeros before it.
    pub invented_digits: u32,
}

/// Judges a block.
pub fn judge_block(inside: &str, dialect: Dialect) -> BlockVerdict {
    let parts: Vec<Part> = inside.split(',').map(Part::of).collect();
    let mut verdict = BlockVerdict {
        junk_strict: parts.len() != 3 || parts.iter().any(|part| !part.is_number()),
        junk_letters: inside.bytes().any(|byte| byte.is_ascii_alphabetic()),
        junk_by_3dmolgen: is_junk(inside),
        ..BlockVerdict::default()
    };
    let present = parts.iter().filter(|part| part.has_digits);
    for part in present.clone() {
        verdict.invented_digits += part.decimals.saturating_sub(DECIMALS) as u32;
        if dialect == Dialect::Stripped {
            // Those among the first four; the others are counted already.
            let kept = part.decimals.min(DECIMALS);
            verdict.invented_digits += part.trailing_zeros.saturating_sub(part.decimals - kept) as u32;
        }
    }
    verdict.invented = verdict.invented_digits > 0;
    if dialect == Dialect::Fixed {
        let numbers: Vec<usize> = present.map(|part| part.decimals).take(3).collect();
        let lost = numbers.iter().map(|decimals| DECIMALS.saturating_sub(*decimals)).sum::<usize>()
            + (3 - numbers.len()) * DECIMALS;
        verdict.lost_digits = lost as u32;
        verdict.truncated = Some(lost > 0);
    }
    verdict
}

/// Whether a model that would write `next` behind `written`, the beginning of a block, would go on with the block: with
/// decimals up to the fourth, or with a number that is missing. Junk and a fifth decimal are none of that.
pub fn goes_on(written: &str, next: &str) -> bool {
    let numbers = written.split(',').count();
    let last = written.rsplit(',').next().unwrap_or_default();
    let part = Part::of(last);
    if numbers > 3 || part.rest > 0 && last != "-" {
        return false;
    }
    let mut characters = next.chars();
    match characters.next() {
        Some('0'..='9') => part.decimals < DECIMALS,
        Some('.') => {
            part.has_digits && !last.contains('.') && characters.next().is_none_or(|c| c.is_ascii_digit())
        }
        Some(',') => part.has_digits && numbers < 3,
        Some('-') => last.is_empty(),
        _ => false,
    }
}

/// The number that a part of a block begins with.
pub(super) struct Part {
    pub has_digits: bool,
    pub decimals: usize,
    /// Among the decimals.
    pub trailing_zeros: usize,
    /// Bytes behind the number.
    pub rest: usize,
}

impl Part {
    pub fn of(text: &str) -> Self {
        let digits = |from: usize| text.as_bytes()[from..].iter().take_while(|b| b.is_ascii_digit()).count();
        let start = usize::from(text.starts_with('-'));
        let mut end = start + digits(start);
        let has_digits = end > start;
        let mut decimals = 0;
        if has_digits && text[end..].starts_with('.') {
            decimals = digits(end + 1);
            end += 1 + decimals;
        }
        let zeros = text[end - decimals..end].bytes().rev().take_while(|b| *b == b'0').count();
        Part { has_digits, decimals, trailing_zeros: zeros, rest: text.len() - end }
    }

    pub fn is_number(&self) -> bool {
        self.has_digits && self.rest == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Junk strict, junk letters, truncated, invented, lost and invented digits.
    fn fixed(block: &str) -> (bool, bool, bool, bool, u32, u32) {
        let v = judge_block(block, Dialect::Fixed);
        (v.junk_strict, v.junk_letters, v.truncated.unwrap(), v.invented, v.lost_digits, v.invented_digits)
    }

    #[test]
    fn the_fixed_dialect() {
        assert_eq!(fixed("1.2345,-0.0000,-12.3456"), (false, false, false, false, 0, 0));
        assert_eq!(fixed("1.2345,0.0000,0.9587abra"), (true, true, false, false, 0, 0));
        assert_eq!(fixed("1.2345,0.0000,0.33 \u{ff08}C"), (true, true, true, false, 2, 0));
        assert_eq!(fixed("1.2345,0.0000,0.33 \u{ff08}\u{441}"), (true, false, true, false, 2, 0));
        assert_eq!(fixed("-10.4289,-0.243592"), (true, false, true, true, 4, 2));
        assert_eq!(fixed("1.2345,0.0000,0."), (false, false, true, false, 4, 0));
        assert_eq!(fixed("1.2345,0.0000,0"), (false, false, true, false, 4, 0));
        assert_eq!(fixed("1.2345,0.0000,1.6741."), (true, false, false, false, 0, 0));
        assert_eq!(fixed("1.2345,0.0000,0.87503"), (false, false, false, true, 0, 1));
        assert_eq!(fixed("1.2345,,0.8750"), (true, false, true, false, 4, 0));
        assert_eq!(fixed("1.2345,2.3456,3.4567,4.5678"), (true, false, false, false, 0, 0));
        assert_eq!(fixed(""), (true, false, true, false, 12, 0));
        assert_eq!(fixed("--1.0000,.5,1.0000"), (true, false, true, false, 8, 0));
    }

    #[test]
    fn the_stripped_dialect() {
        let stripped = |block| {
            let v = judge_block(block, Dialect::Stripped);
            assert_eq!((v.truncated, v.lost_digits), (None, 0));
            (v.junk_strict, v.invented, v.invented_digits)
        };
        assert_eq!(stripped("1,-0.5,10"), (false, false, 0));
        assert_eq!(stripped("1.50,0.5,10.0000"), (false, true, 5));
        assert_eq!(stripped("1.23456,0.500000,10"), (false, true, 1 + 5));
        assert_eq!(stripped("1.5,0.5"), (true, false, 0));
    }

    #[test]
    fn a_block_goes_on_with_digits_and_missing_numbers() {
        for (written, next) in [
            ("1.5,2,0.3", "2"),
            ("1.5,2,0.324", "1"),
            ("1.5,2,0.", "7"),
            ("1.5,2,0", ".25"),
            ("1.5,2,0", "."),
            ("1.5,2,1", "2.5>"),
            ("1.5,2,-", "0"),
            ("1.5,2,", "-3"),
            ("1.5,2", ",-"),
            ("", "1"),
        ] {
            assert!(goes_on(written, next), "{written} {next}");
        }
        for (written, next) in [
            ("1.5,2,0.3", ">"),
            ("1.5,2,0.3", ">["),
            ("1.5,2,0.3", ","),
            ("1.5,2,0.3", "."),
            ("1.5,2,0.3", "-1"),
            ("1.5,2,0", ".>"),
            ("1.5,2,0.3241", "5"),
            ("1.5,2,0.3x", "5"),
            ("1.5,2,3,4", "5"),
            ("1.5,", ","),
            ("1.5,2,0.3", " 1"),
            ("1.5,2,0.3", ""),
        ] {
            assert!(!goes_on(written, next), "{written} {next}");
        }
    }
}
