//! Locates flaws in an answer, and reads its blocks without them.

use std::ops::Range;

use super::block::led;
use drift_core::Encoding;
use drift_core::encoding::decimal_text::NumberPrefix;
use drift_core::encoding::decimal_text::truncate_decimal;
use drift_core::encoding::{Fixed, scan_prefix};

/// The kind of flaw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkKind {
    /// Text that does not belong to a number.
    Junk,
    /// A number that lacks decimals, or a block that lacks numbers.
    Lost,
    /// Digits beyond the format.
    Invented,
}

/// A flaw and the bytes that show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// What is wrong.
    pub flaw: MarkKind,
    /// The position of the flaw, in bytes.
    pub range: Range<usize>,
}

/// Returns the flaws of an answer's blocks, in text order. Ranges may touch or contain each other.
pub fn marks(answer: &str, encoding: Encoding) -> Vec<Mark> {
    let mut marks = Vec::new();
    if !encoding.is_decimal() {
        // Fixed-width numbers are either complete or junk.
        let junk =
            |range: &Range<usize>| encoding.parse_numbers(answer[range.clone()].as_bytes(), false).is_err();
        let blocks = encoding.slot_ranges(answer).into_iter().filter(junk);
        return blocks.map(|range| Mark { flaw: MarkKind::Junk, range }).collect();
    }
    let between = encoding.separator().len();
    for block in encoding.slot_ranges(answer) {
        let mut at = block.start;
        let mut numbers = 0;
        for text in answer[block.clone()].split(encoding.separator()) {
            let end = at + text.len();
            numbers += 1;
            if numbers > 3 {
                marks.push(Mark { flaw: MarkKind::Junk, range: at - between..end });
            } else {
                let number = scan_prefix(led(text).as_bytes());
                // Text before a number is junk by itself. If no number follows, the whole part is junk.
                let start = if number.has_digits() { end - led(text).len() } else { at };
                if start > at {
                    marks.push(Mark { flaw: MarkKind::Junk, range: at..start });
                }
                number_marks(&number, start..end, encoding, &mut marks);
            }
            at = end + between;
        }
        if numbers < 3 && encoding.is_fixed() {
            marks.push(Mark { flaw: MarkKind::Lost, range: block });
        }
    }
    marks
}

fn number_marks(part: &NumberPrefix, range: Range<usize>, encoding: Encoding, marks: &mut Vec<Mark>) {
    let mut mark = |flaw, range: Range<usize>| marks.push(Mark { flaw, range });
    let end = range.end - part.rest;
    if !part.has_digits() {
        mark(MarkKind::Junk, range);
        return;
    }
    if part.decimals < encoding.decimals() && encoding.is_fixed() {
        mark(MarkKind::Lost, range.start..end);
    }
    let beyond = part.decimals.saturating_sub(encoding.decimals());
    let zeros = if encoding.is_stripped() { part.trailing_zeros } else { 0 };
    // Both are counted from the end, so the longer one contains the shorter one.
    let invented = beyond.max(zeros);
    if invented > 0 {
        mark(MarkKind::Invented, end - invented..end);
    }
    if part.rest > 0 {
        mark(MarkKind::Junk, end..range.end);
    }
}

/// Returns the values of each block without junk, truncated to the encoding's decimals, in units of the last one; `None` for a block that
/// lacks a number.
pub fn readable(answer: &str, encoding: Encoding) -> Vec<Option<[Fixed; 3]>> {
    if !encoding.is_decimal() {
        let values = |range: Range<usize>| encoding.parse_numbers(answer[range].as_bytes(), false).ok();
        return encoding.slot_ranges(answer).into_iter().map(|range| Some(values(range)?.0)).collect();
    }
    let number = |text: &str| {
        let text = led(text);
        let part = scan_prefix(text.as_bytes());
        let number = text[..text.len() - part.rest].trim_end_matches('.');
        if part.has_digits() { truncate_decimal(number, encoding.precision()).ok() } else { None }
    };
    let block = |range: Range<usize>| {
        let mut numbers = answer[range].split(encoding.separator()).map(number);
        Some([numbers.next()??, numbers.next()??, numbers.next()??])
    };
    encoding.slot_ranges(answer).into_iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(answer: &str, encoding: Encoding) -> Vec<(MarkKind, &str)> {
        marks(answer, encoding).into_iter().map(|mark| (mark.flaw, &answer[mark.range])).collect()
    }

    #[test]
    fn marks_show_the_flaw() {
        assert_eq!(shown("[C]<0.1234,-5.6789,10.0000>", Encoding::FIXED), []);
        assert_eq!(
            shown("[C]<1.0000,2.00,3.00001abra>", Encoding::FIXED),
            [(MarkKind::Lost, "2.00"), (MarkKind::Invented, "1"), (MarkKind::Junk, "abra")]
        );
        // Of a space or a plus the number behind it takes no harm.
        assert_eq!(
            shown("[C]<1.0000, 2.0000,+ 3.00>", Encoding::FIXED),
            [(MarkKind::Junk, " "), (MarkKind::Junk, "+ "), (MarkKind::Lost, "3.00")]
        );
        assert_eq!(shown("[C]<1.0000, ,3.0000>", Encoding::FIXED), [(MarkKind::Junk, " ")]);
        assert_eq!(
            shown("[C]<1.0000,x,3.0000,4>", Encoding::FIXED),
            [(MarkKind::Junk, "x"), (MarkKind::Junk, ",4")]
        );
        assert_eq!(shown("[C]<1.0000,2.0000>", Encoding::FIXED), [(MarkKind::Lost, "1.0000,2.0000")]);
        assert_eq!(
            shown("[C]<0.5,-2.0,10.12300>", Encoding::STRIPPED),
            [(MarkKind::Invented, "0"), (MarkKind::Invented, "00")]
        );
    }

    #[test]
    fn blocks_are_read_as_far_as_they_go() {
        let answer = "[C]<0.1234x,1.,2.00009>[C]<1.0,x,2.0>[C]<1,2>";
        assert_eq!(readable(answer, Encoding::FIXED), [Some([1_234, 10_000, 20_000]), None, None]);
        assert_eq!(readable("[C]< 1.0, +2.0,3.0>", Encoding::FIXED), [Some([10_000, 20_000, 30_000])]);
    }
}
