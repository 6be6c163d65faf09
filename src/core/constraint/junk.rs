//! Removes junk from numbers after generation: `<5.799,-0.2748,-0.9587abra>` becomes `<5.799,-0.2748,-0.9587>`.

use crate::encoding::{Encoding, scan_prefix};

/// Cuts each number of each block to the form of the encoding: its longest prefix that is a number, without excess decimals, and in
/// the stripped encoding without trailing zeros. Nothing is added, so a number with too few decimals keeps them. A block is left
/// unchanged if its first three numbers cannot be determined. So is a block of bins or codes in which a number lacks a digit,
/// because fewer digits mean another bin.
pub fn strip_junk(text: &str, encoding: Encoding) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    let separator = encoding.separator();
    for block in encoding.slot_ranges(text) {
        if let Some(numbers) = cut_block(&text[block.clone()], encoding) {
            out.push_str(&text[copied..block.start]);
            out.push_str(&numbers.join(separator));
            copied = block.end;
        }
    }
    out.push_str(&text[copied..]);
    out
}

fn cut_block(inside: &str, encoding: Encoding) -> Option<Vec<&str>> {
    let separator = encoding.separator();
    if separator.is_empty() && encoding.numbers() > 1 {
        // Such a slot ends behind its last digit, so nothing is cut.
        return None;
    }
    let mut parts = inside.split(separator).map(|part| cut_number(part, encoding));
    let numbers: Vec<&str> = (0..encoding.numbers()).map(|_| parts.next()?).collect::<Option<_>>()?;
    let whole = |number: &&str| encoding.number().parse(number.as_bytes(), 0, false).is_ok();
    (encoding.is_decimal() || numbers.iter().all(whole)).then_some(numbers)
}

/// Returns the longest prefix of `text` that is a number of the encoding, except that decimals may be missing.
fn cut_number(text: &str, encoding: Encoding) -> Option<&str> {
    let prefix = scan_prefix(text.as_bytes());
    if !prefix.has_digits() {
        return None;
    }
    if !encoding.is_decimal() {
        // Digits beyond a number's width are junk too.
        let digits = prefix.integer(text.as_bytes()).len();
        let beyond = if encoding.width() > 0 { digits.saturating_sub(encoding.width()) } else { 0 };
        return Some(&text[..usize::from(prefix.negative) + digits - beyond]);
    }
    let decimals = prefix.decimals.min(encoding.decimals());
    let number = &text[..prefix.length - (prefix.decimals - decimals)];
    Some(match (prefix.point, encoding.is_stripped()) {
        (true, true) => number.trim_end_matches('0').trim_end_matches('.'),
        // A point needs a decimal behind it.
        (true, false) if decimals == 0 => &number[..number.len() - 1],
        _ => number,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn junk_of_the_users_reports_is_cut() {
        let strip = |text| strip_junk(text, Encoding::STRIPPED);
        assert_eq!(strip("[C]<5.799,-0.2748,-0.9587abra>"), "[C]<5.799,-0.2748,-0.9587>");
        assert_eq!(strip("[C]<3.601,0.363,0.3325 \u{ff08}C>[O]<1,2,3>"), "[C]<3.601,0.363,0.3325>[O]<1,2,3>");
        assert_eq!(strip("[C]<3.0644,0.625,0.9841C>"), "[C]<3.0644,0.625,0.9841>");
        assert_eq!(strip("[C]<1.50000,2.0,-0.>"), "[C]<1.5,2,-0>");
        let bins = |text| strip_junk(text, "binned-v1:-21,21,0.05".parse().unwrap());
        assert_eq!(bins("[C]<390,420abra,4621>[O]<390,42,462>"), "[C]<390,420,462>[O]<390,42,462>");
        let fixed = |text| strip_junk(text, Encoding::FIXED);
        assert_eq!(fixed("[C]<1.23456,2.0000,-0.10001.>"), "[C]<1.2345,2.0000,-0.1000>");
        assert_eq!(fixed("[C]<1.2345,2.0000,3.0000,4>"), "[C]<1.2345,2.0000,3.0000>");
    }

    #[test]
    fn what_holds_no_three_numbers_is_left() {
        for text in ["[C]<-10.4289,-0.243592>", "[C]<,1,2>", "[C]<a,1,2>", "no blocks", "[C]<1,2"] {
            assert_eq!(strip_junk(text, Encoding::FIXED), text);
        }
    }
}
