//! What is no block of the scheme's grammar: encoded as the base does.

use rayon::prelude::*;

use super::checker::Checker;
use super::texts::CONTEXTS;
use crate::design::scheme::grammar::Grammar;
use crate::error::Result;

impl Checker<'_> {
    /// What is not a block of the range is encoded as the base does; the number of such texts.
    pub(super) fn fallbacks(&self, new_tokens: &[(u32, String)]) -> Result<u64> {
        let grammar = self.scheme.grammar;
        let right = right(grammar);
        let mut texts: Vec<String> = Vec::new();
        for wrong in wrong(grammar) {
            for context in CONTEXTS {
                for position in 0..3 {
                    let mut numbers = right.clone();
                    numbers[position].clone_from(&wrong);
                    texts.push(format!("[C]<{}>{context}", numbers.join(",")));
                    texts.push(format!("<{}>", numbers.join(",")));
                }
            }
        }
        let [x, y, z] = right;
        for part in
            [format!("<{x},{y},{z}"), format!("{x},{y},{z}>"), format!("{x},{y},{z}"), format!("<{x},{y}>")]
        {
            texts.extend([part.clone(), format!("[C]{part}"), format!("{part}[C]")]);
        }
        for (_, text) in new_tokens {
            texts.extend([text.clone(), format!("[C]{text}"), format!("{text}[C]"), format!("1.{text}")]);
        }
        texts.par_iter().try_for_each(|text| self.same_ids(text).map(|_| ()))?;
        let decimals = |digits: &str| digits[..grammar.decimals()].to_owned();
        let outside = grammar.range.angstrom();
        let [x, y, z] = ["234567", "678923", "100000"].map(decimals);
        for context in CONTEXTS {
            self.kept(&format!("[C]<-{outside}.{x},{outside}.{y},0.{z}>{context}"))?;
        }
        Ok(texts.len() as u64)
    }
}

/// Three numbers of a grammar.
fn right(grammar: Grammar) -> [String; 3] {
    let decimals = grammar.decimals();
    let [x, y] = if grammar.is_stripped() {
        ["123456"[..decimals].to_owned(), format!("{:01$}", 5, decimals)]
    } else {
        ["000000", "250000"].map(|digits| digits[..decimals].to_owned())
    };
    [format!("0.{x}"), format!("-0.{y}"), format!("3.{}", &"141659"[..decimals])]
}

/// What is no number of a grammar: out of its range, of other decimals, or no number at all.
fn wrong(grammar: Grammar) -> Vec<String> {
    let (outside, decimals) = (grammar.range.angstrom(), grammar.decimals());
    let digits = &"123456"[..decimals];
    let (zeros, nines) = (&"000000"[..decimals], &"999999"[..decimals]);
    let mut wrong = vec![
        format!("123.{}", &"456789"[..decimals]),
        format!("-1000.{digits}"),
        // Two decimals, where those are not all that there can be.
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
    use crate::design::scheme::slots::Range;
    use crate::encoding::Precision;

    #[test]
    fn numbers_are_right_or_wrong_for_every_count_of_decimals() {
        let range = Range::new(15).unwrap();
        for decimals in 1..=6 {
            let stripped = (0..=decimals)
                .map(|fewest| Grammar::stripped(range, Precision::new(decimals).unwrap(), fewest).unwrap());
            for grammar in stripped.chain([Grammar::fixed(range, Precision::new(decimals).unwrap())]) {
                let whole = |number: &str| grammar.has_block(&format!("<{number},{number},{number}>"));
                assert!(right(grammar).iter().all(|number| whole(number)), "{grammar:?}");
                for number in wrong(grammar) {
                    assert!(!whole(&number), "{number} in {grammar:?}");
                }
            }
        }
    }
}
