//! Prints rules as text: Lark for llguidance, EBNF for XGrammar.

use std::fmt::Write;

use super::rules::{Head, Rules, Symbol};

/// The syntax elements of a format.
pub(super) struct Spelling {
    /// The name of the first rule.
    start: &'static str,
    /// The text between the name of a rule and its alternatives.
    derives: &'static str,
    /// The text before and behind a list of ids.
    tokens: (&'static str, &'static str),
    /// The character between the first and the last id of a range; `None` if the format has no ranges.
    range: Option<char>,
}

/// Lark as llguidance reads it: <https://github.com/guidance-ai/llguidance/blob/main/docs/syntax.md>.
pub(super) const LARK: Spelling =
    Spelling { start: "start", derives: ": ", tokens: ("<[", "]>"), range: Some('-') };

/// EBNF as XGrammar reads it: <https://xgrammar.mlc.ai/docs/>.
pub(super) const EBNF: Spelling =
    Spelling { start: "root", derives: " ::= ", tokens: ("Token(", ")"), range: None };

/// Returns the text of rules in a format.
pub(super) fn written(rules: &Rules, spelling: &Spelling) -> String {
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
                    Symbol::Character(c) => character(&mut out, *c),
                }
            }
        }
        out.push('\n');
    }
    out
}

/// Writing to a string cannot fail.
const WRITTEN: &str = "a text takes what is written to it";

fn name(out: &mut String, head: Head, spelling: &Spelling) {
    let end = |end: usize| ['p', 'i', 'q', 'j'][end];
    match head {
        Head::Start => write!(out, "{}", spelling.start),
        Head::From(at, before) => write!(out, "m{at}{}", end(before)),
        Head::Segment(segment, before, Some(after)) => {
            write!(out, "s{segment}{}{}", end(before), end(after))
        }
        Head::Segment(segment, before, None) => write!(out, "s{segment}{}", end(before)),
        Head::Block(state, after) => write!(out, "b{state}{}", end(after)),
        Head::Place(place) => write!(out, "p{place}"),
        Head::Part(part, state) => write!(out, "c{part}x{state}"),
        Head::Nothing(number) => write!(out, "u{number}"),
    }
    .expect(WRITTEN);
}

/// Prints a character as a quoted string. White space is escaped, so that symbols can be told apart by the spaces between them.
fn character(out: &mut String, c: char) {
    match c {
        '"' | '\\' => write!(out, "\"\\{c}\""),
        '!'..='~' => write!(out, "\"{c}\""),
        _ => write!(out, "\"\\u{:04x}\"", u32::from(c)),
    }
    .expect(WRITTEN);
}

/// Prints sorted ids. Three or more consecutive ids become a range, if the format has ranges.
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
