//! Judges one generated block: the text between `<` and `>`.

use super::threedmolgen::is_junk;
use drift_core::Encoding;
use drift_core::encoding::{decimal_text::NumberPrefix, scan_prefix};

/// The faults of a block; none by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockVerdict {
    /// The block is not exactly three numbers, `-?digits[.[digits]]`, between separators.
    pub junk_strict: bool,
    /// It contains a letter, `a` to `z` or `A` to `Z`.
    pub junk_letters: bool,
    /// It is not three floats by 3DMolGen's definition, which does not accept `0.`.
    pub junk_by_3dmolgen: bool,
    /// A number is missing or lacks digits. `None` in the stripped encoding, where fewer decimals may be intended: only an observer
    /// of the generation can tell, with [`goes_on`].
    pub truncated: Option<bool>,
    /// A number has more decimals than the encoding allows, or, in the stripped encoding, trailing zeros.
    pub invented: bool,
    /// The number of missing digits over all numbers: of decimal numbers the missing decimals. 0 in the stripped encoding.
    pub lost_digits: u32,
    /// The number of decimals beyond the encoding's last one and, in the stripped encoding, of trailing zeros before it.
    pub invented_digits: u32,
}

/// Returns a part of a block without leading white space or plus signs. These are junk, but they take no digit from the number.
pub(super) fn led(part: &str) -> &str {
    part.trim_start_matches(|c: char| c.is_whitespace() || c == '+')
}

/// Judges a block.
pub fn judge_block(inside: &str, encoding: Encoding) -> BlockVerdict {
    if !encoding.is_decimal() {
        return judge_digits(inside, encoding);
    }
    let decimals = encoding.decimals();
    let texts = || inside.split(encoding.separator());
    let parts: Vec<NumberPrefix> = texts().map(|part| scan_prefix(part.as_bytes())).collect();
    // Digits are counted behind leading junk; junk itself is judged on the unchanged part.
    let numbers: Vec<NumberPrefix> = texts().map(|part| scan_prefix(led(part).as_bytes())).collect();
    let mut verdict = BlockVerdict {
        junk_strict: parts.len() != 3 || parts.iter().any(|part| !part.is_number()),
        junk_letters: inside.bytes().any(|byte| byte.is_ascii_alphabetic()),
        junk_by_3dmolgen: is_junk(inside),
        ..BlockVerdict::default()
    };
    let present = numbers.iter().filter(|part| part.has_digits());
    for part in present.clone() {
        verdict.invented_digits += part.decimals.saturating_sub(decimals) as u32;
        if encoding.is_stripped() {
            // Only the zeros among the encoding's decimals; those beyond are counted already.
            let kept = part.decimals.min(decimals);
            verdict.invented_digits += part.trailing_zeros.saturating_sub(part.decimals - kept) as u32;
        }
    }
    verdict.invented = verdict.invented_digits > 0;
    if encoding.is_fixed() {
        // A missing number lacks all its decimals.
        let numbers: Vec<usize> = present.map(|part| part.decimals).take(3).collect();
        let lost = numbers.iter().map(|found| decimals.saturating_sub(*found)).sum::<usize>()
            + (3 - numbers.len()) * decimals;
        verdict.lost_digits = lost as u32;
        verdict.truncated = Some(lost > 0);
    }
    verdict
}

/// Judges a block with numbers that are not decimals, separated by commas.
fn judge_digits(inside: &str, encoding: Encoding) -> BlockVerdict {
    let parts: Vec<&str> = inside.split(',').collect();
    let is_number =
        |(axis, part): (usize, &&str)| encoding.number().parse(part.as_bytes(), axis, false).is_ok();
    let wanted = encoding.numbers();
    let mut verdict = BlockVerdict {
        junk_strict: parts.len() != 3 || !parts.iter().take(wanted).enumerate().all(is_number),
        junk_letters: inside.bytes().any(|byte| byte.is_ascii_alphabetic()),
        junk_by_3dmolgen: is_junk(inside),
        ..BlockVerdict::default()
    };
    // For fixed-width numbers, missing and excess digits can be counted.
    let digits: Vec<usize> =
        parts.iter().take(wanted).map(|part| scan_prefix(part.as_bytes()).integer_digits).collect();
    let (width, longest) = (encoding.width(), encoding.longest_digits());
    let lost = digits.iter().map(|found| width.saturating_sub(*found)).sum::<usize>()
        + (wanted - digits.len()) * width;
    verdict.invented_digits = digits.iter().map(|found| found.saturating_sub(longest)).sum::<usize>() as u32;
    verdict.invented = verdict.invented_digits > 0;
    verdict.lost_digits = lost as u32;
    verdict.truncated = Some(lost > 0);
    verdict
}

/// Returns whether a model that would write `next` behind `written`, the beginning of a block, would continue the block: with decimals up
/// to the encoding's last one, or with a missing number. Junk and excess decimals do not count.
pub fn goes_on(written: &str, next: &str, encoding: Encoding) -> bool {
    let separator = encoding.separator();
    let numbers = written.split(separator).count();
    let last = written.rsplit(separator).next().unwrap_or_default();
    let part = scan_prefix(last.as_bytes());
    if numbers > 3 || part.rest > 0 {
        return false;
    }
    let mut characters = next.chars();
    match characters.next() {
        Some('0'..='9') => part.decimals < encoding.decimals(),
        // `.,` would end the number at its point, so it does not continue it.
        Some('.') => part.has_digits() && !part.point && characters.next().is_none_or(|c| c.is_ascii_digit()),
        Some(other) if separator.starts_with(other) => part.has_digits() && numbers < 3,
        // A sign is valid only at the beginning of a number.
        Some('-') => last.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Junk strict, junk letters, truncated, invented, lost and invented digits.
    fn fixed(block: &str) -> (bool, bool, bool, bool, u32, u32) {
        let v = judge_block(block, Encoding::FIXED);
        (v.junk_strict, v.junk_letters, v.truncated.unwrap(), v.invented, v.lost_digits, v.invented_digits)
    }

    #[test]
    fn the_fixed_encoding() {
        assert_eq!(fixed("1.2345,-0.0000,-12.3456"), (false, false, false, false, 0, 0));
        assert_eq!(fixed("1.2345,0.0000,0.9587abra"), (true, true, false, false, 0, 0));
        assert_eq!(fixed("1.2345,0.0000,0.33 \u{ff08}C"), (true, true, true, false, 2, 0));
        assert_eq!(fixed("1.2345,0.0000,0.33 \u{ff08}\u{441}"), (true, false, true, false, 2, 0));
        assert_eq!(fixed("-10.4289,-0.243592"), (true, false, true, true, 4, 2));
        assert_eq!(fixed("1.2345,0.0000,0."), (false, false, true, false, 4, 0));
        assert_eq!(fixed("1.2345,0.0000,0"), (false, false, true, false, 4, 0));
        assert_eq!(fixed("1.2345,0.0000,1.6741."), (true, false, false, false, 0, 0));
        assert_eq!(fixed("1.2345,0.0000,0.87503"), (false, false, false, true, 0, 1));
        assert_eq!(fixed("1.2345, 2.3456, 3.0000"), (true, false, false, false, 0, 0));
        assert_eq!(fixed("+1.2345,\t+2.34567,3.0"), (true, false, true, true, 3, 1));
        assert_eq!(fixed("1.2345,,0.8750"), (true, false, true, false, 4, 0));
        assert_eq!(fixed("1.2345,2.3456,3.4567,4.5678"), (true, false, false, false, 0, 0));
        assert_eq!(fixed(""), (true, false, true, false, 12, 0));
        assert_eq!(fixed("--1.0000,.5,1.0000"), (true, false, true, false, 8, 0));
    }

    #[test]
    fn the_stripped_encoding() {
        let stripped = |block| {
            let v = judge_block(block, Encoding::STRIPPED);
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
            assert!(goes_on(written, next, Encoding::STRIPPED), "{written} {next}");
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
            assert!(!goes_on(written, next, Encoding::STRIPPED), "{written} {next}");
        }
    }
}
