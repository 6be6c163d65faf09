//! What is no block of the scheme's grammar: encoded as the base does.

use rayon::prelude::*;

use super::checker::Checker;
use super::texts::CONTEXTS;
use crate::design::scheme::grammar::Decimals;
use crate::error::Result;

impl Checker<'_> {
    /// What is not a block of the range is encoded as the base does; the number of such texts.
    pub(super) fn fallbacks(&self, new_tokens: &[(u32, String)]) -> Result<u64> {
        let grammar = self.scheme.grammar;
        let outside = grammar.range.angstrom();
        let fixed = grammar.decimals == Decimals::Four;
        let mut wrong: Vec<String> =
            ["123.4567", "-1000.1234", "1.50", "0.12345", "01.1234", "+1.1234", " 1.1234"]
                .into_iter()
                .chain(["--1.1234", "1,1234", "١.1234", "1.", "-", ""])
                .map(String::from)
                .collect();
        let ends = if fixed { ["0000", "0000", "9999"] } else { ["0001", "1234", "9999"] };
        wrong.extend([
            format!("{outside}.{}", ends[0]),
            format!("-{outside}.{}", ends[1]),
            format!("{}.{}", outside + 1, ends[2]),
        ]);
        if fixed {
            wrong.extend(["0.000".into(), "-2".into()]);
        } else {
            let few = ["2", "0.5", "0.25", "0.125"].into_iter().take(grammar.fewest_decimals());
            wrong.extend(few.map(String::from).chain(["0.0000", "-1.0500", "0.0"].map(String::from)));
        }
        let right = if fixed { ["0.0000", "-0.2500", "3.1416"] } else { ["0.1234", "-0.0005", "3.1416"] };
        let mut texts: Vec<String> = Vec::new();
        for wrong in &wrong {
            for context in CONTEXTS {
                for position in 0..3 {
                    let mut numbers = right;
                    numbers[position] = wrong;
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
        for context in CONTEXTS {
            self.kept(&format!("[C]<-{outside}.2345,{outside}.6789,0.1000>{context}"))?;
        }
        Ok(texts.len() as u64)
    }
}
