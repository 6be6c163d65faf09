//! Rules as text: the Lark of llguidance, the EBNF of XGrammar.

use std::fmt::Write;

use super::rules::{Head, Rules, Symbol};

/// How a grammar is spelled.
struct Spelling {
    /// What the first rule is called.
    start: &'static str,
    /// Between the name of a rule and its ways.
    derives: &'static str,
    /// Around ids.
    tokens: (&'static str, &'static str),
    /// Between the first and the last of a row of ids; none if rows are written out.
    range: Option<char>,
}

/// As llguidance reads it: <https://github.com/guidance-ai/llguidance/blob/main/docs/syntax.md>.
pub(super) fn lark(rules: &Rules) -> String {
    let spelling = Spelling { start: "start", derives: ": ", tokens: ("<[", "]>"), range: Some('-') };
    written(rules, &spelling)
}

/// As XGrammar reads it: <https://xgrammar.mlc.ai/docs/>.
pub(super) fn ebnf(rules: &Rules) -> String {
    let spelling = Spelling { start: "root", derives: " ::= ", tokens: ("Token(", ")"), range: None };
    written(rules, &spelling)
}

fn written(rules: &Rules, spelling: &Spelling) -> String {
    let mut out = String::new();
    for (head, ways) in rules {
        name(&mut out, *head, spelling);
        out.push_str(spelling.derives);
        for (at, way) in ways.iter().enumerate() {
            if at > 0 {
                out.push_str(" | ");
            }
            if way.is_empty() {
                out.push_str("\"\"");
            }
            for (at, symbol) in way.iter().enumerate() {
                if at > 0 {
                    out.push(' ');
                }
                match symbol {
                    Symbol::Rule(head) => name(&mut out, *head, spelling),
                    Symbol::Tokens(ids) => tokens(&mut out, ids, spelling),
                }
            }
        }
        out.push('\n');
    }
    out
}

/// Writing to a text cannot fail.
const WRITTEN: &str = "a text takes what is written to it";

fn name(out: &mut String, head: Head, spelling: &Spelling) {
    let mode = |mode: usize| ['p', 'i'][mode];
    match head {
        Head::Start => write!(out, "{}", spelling.start),
        Head::From(at, before) => write!(out, "m{at}{}", mode(before)),
        Head::Segment(segment, before, Some(after)) => {
            write!(out, "s{segment}{}{}", mode(before), mode(after))
        }
        Head::Segment(segment, before, None) => write!(out, "s{segment}{}", mode(before)),
        Head::Block(state, after) => write!(out, "b{state}{}", mode(after)),
        Head::Nothing(number) => write!(out, "u{number}"),
    }
    .expect(WRITTEN);
}

/// Sorted ids, rows of three and more as a range where there are any.
fn tokens(out: &mut String, ids: &[u32], spelling: &Spelling) {
    out.push_str(spelling.tokens.0);
    let mut rest = ids;
    while let [first, ..] = rest {
        if rest.len() < ids.len() {
            out.push(',');
        }
        let row = rest.iter().zip(*first..).take_while(|(id, expected)| **id == *expected).count();
        let taken = match spelling.range {
            Some(range) if row > 2 => {
                write!(out, "{first}{range}{}", rest[row - 1]).expect(WRITTEN);
                row
            }
            _ => {
                write!(out, "{first}").expect(WRITTEN);
                1
            }
        };
        rest = &rest[taken..];
    }
    out.push_str(spelling.tokens.1);
}
