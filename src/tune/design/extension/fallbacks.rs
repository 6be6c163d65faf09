//! Checks that texts which are not blocks of the scheme's grammar are encoded as by the base.

use super::checker::Checker;
use super::plain::first_error;
use super::texts::CONTEXTS;
use crate::design::scheme::grammar::Grammar;
use drift_core::Result;
use drift_core::encoding::Fixed;

impl Checker<'_> {
    /// Checks that anything that is not a block of the range is encoded as by the base; returns the number of texts tried.
    pub(super) fn fallbacks(&self, new_tokens: &[(u32, String)]) -> Result<u64> {
        let grammar = self.scheme.grammar;
        let encoding = grammar.encoding();
        let (open, separator, close) = (encoding.open(), encoding.separator(), encoding.close());
        let right = right(grammar);
        let mut texts: Vec<String> = Vec::new();
        for wrong in wrong(grammar) {
            for context in CONTEXTS {
                for position in 0..right.len() {
                    let mut numbers = right.clone();
                    numbers[position].clone_from(&wrong);
                    let block = format!("{open}{}{close}", numbers.join(separator));
                    texts.push(format!("[C]{block}{context}"));
                    texts.push(block);
                }
            }
        }
        // Parts of a block are not blocks: without the opening, without the closing, or with one number less.
        let [inside, fewer] = [&right[..], &right[..right.len() - 1]].map(|numbers| numbers.join(separator));
        let parts =
            [format!("{open}{inside}"), format!("{inside}{close}"), inside, format!("{open}{fewer}{close}")];
        for part in parts {
            texts.extend([part.clone(), format!("[C]{part}"), format!("{part}[C]")]);
        }
        for (_, text) in new_tokens {
            // A new token on its own must not be used in a text without blocks.
            texts.extend([text.clone(), format!("[C]{text}"), format!("{text}[C]"), format!("1.{text}")]);
        }
        if !encoding.is_decimal() {
            // Wrong numbers next to each other can form a correct block.
            texts.retain(|text| *text == grammar.without_blocks(text));
        }
        first_error(&texts, |text| self.same_ids(text).map(|_| ()))?;
        if !encoding.is_decimal() {
            return Ok(texts.len() as u64);
        }
        // A block just outside the range must also be decoded to itself, since it is the kind that real molecules contain.
        let decimals = |digits: &str| digits[..grammar.decimals()].to_owned();
        let outside = grammar.range.angstrom();
        let [x, y, z] = ["234567", "678923", "100000"].map(decimals);
        for context in CONTEXTS {
            self.kept(&format!("[C]<-{outside}.{x},{outside}.{y},0.{z}>{context}"))?;
        }
        Ok(texts.len() as u64)
    }
}

/// Returns the numbers of a valid block of a grammar.
fn right(grammar: Grammar) -> Vec<String> {
    if !grammar.encoding().is_decimal() {
        let of = |axis: usize| grammar.encoding().number().limits(axis).1 / [1, 2, 3][axis];
        return (0..grammar.encoding().numbers()).map(|axis| spelled(grammar, of(axis))).collect();
    }
    let decimals = grammar.decimals();
    let [x, y] = if grammar.is_stripped() {
        ["123456"[..decimals].to_owned(), format!("{:01$}", 5, decimals)]
    } else {
        ["000000", "250000"].map(|digits| digits[..decimals].to_owned())
    };
    vec![format!("0.{x}"), format!("-0.{y}"), format!("3.{}", &"141659"[..decimals])]
}

/// Returns a value as written by the encoding.
fn spelled(grammar: Grammar, value: Fixed) -> String {
    let mut text = String::new();
    grammar.encoding().number().write(value, &mut text);
    text
}

/// Texts that are not numbers of an encoding without decimals: outside its range, with other digits, or not numbers at all.
fn wrong_whole(grammar: Grammar) -> Vec<String> {
    let number = grammar.encoding().number();
    let last = (0..grammar.encoding().numbers()).map(|axis| number.limits(axis).1).max().unwrap_or(0);
    let good = spelled(grammar, last);
    let mut wrong = vec![spelled(grammar, last + 1), spelled(grammar, last.saturating_mul(10))];
    wrong.extend(["0", "+", " ", "--"].map(|before| format!("{before}{good}")));
    // Encodings whose numbers have leading zeros need all of their digits. Non-ASCII digits are not digits.
    wrong.extend([good[1..].to_owned(), format!("{good}.0"), "١".repeat(good.len())]);
    wrong.extend(["-", "", "1x"].map(String::from));
    if !grammar.encoding().is_signed() {
        wrong.push(format!("-{good}"));
    }
    wrong
}

/// Texts that are not numbers of a grammar: outside its range, with other decimals, or not numbers at all.
fn wrong(grammar: Grammar) -> Vec<String> {
    if !grammar.encoding().is_decimal() {
        return wrong_whole(grammar);
    }
    let (outside, decimals) = (grammar.range.angstrom(), grammar.decimals());
    let digits = &"123456"[..decimals];
    let (zeros, nines) = (&"000000"[..decimals], &"999999"[..decimals]);
    let mut wrong = vec![
        format!("123.{}", &"456789"[..decimals]),
        format!("-1000.{digits}"),
        // Two decimals, unless two decimals are valid.
        if decimals == 2 { "1.500" } else { "1.50" }.to_owned(),
        format!("0.{}", &"1234567"[..=decimals]),
    ];
    wrong.extend(["01.", "+1.", " 1.", "--1.", "1,", "١."].map(|head| format!("{head}{digits}")));
    wrong.extend(["1.", "-", ""].map(String::from));
    let one = format!("{:01$}", 1, decimals);
    let [first, second] = if grammar.is_stripped() { [&*one, digits] } else { [zeros, zeros] };
    wrong.extend([
        format!("{outside}.{first}"),
        format!("-{outside}.{second}"),
        format!("{}.{nines}", outside + 1),
    ]);
    if grammar.is_stripped() {
        let few = ["2", "0.5", "0.25", "0.125", "0.0625", "0.03125"];
        wrong.extend(few.into_iter().take(grammar.fewest_decimals()).map(String::from));
        wrong.extend(["0.0000", "-1.0500", "0.0"].map(String::from));
    } else {
        let fewer = if decimals > 1 { format!("0.{}", &"00000"[..decimals - 1]) } else { "0".to_owned() };
        wrong.extend([fewer, "-2".to_owned()]);
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::scheme::grammar::{fixed_grammar, stripped_grammar};

    #[test]
    fn numbers_are_right_or_wrong_for_every_count_of_decimals() {
        for decimals in 1..=6 {
            let stripped = (0..=decimals).map(|fewest| stripped_grammar(15, decimals, fewest));
            for grammar in stripped.chain([fixed_grammar(15, decimals)]) {
                let whole = |number: &str| grammar.has_block(&format!("<{number},{number},{number}>"));
                assert!(right(grammar).iter().all(|number| whole(number)), "{grammar:?}");
                for number in wrong(grammar) {
                    assert!(!whole(&number), "{number} in {grammar:?}");
                }
            }
        }
    }
}
