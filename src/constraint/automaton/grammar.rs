//! From the grammar of coordinates to states: fixed, `-?(0|[1-9]\d?)\.\d{4}`; stripped,
//! `-?(0|[1-9]\d?)(\.\d{0,3}[1-9])?`; three of them with commas between.
//!
//! A tokenizer that isolates blocks does so if all three numbers have four decimals and lie in its range. So the states
//! of plain blocks remember whether some number was not of that kind; only then may a plain block end.

use std::collections::HashMap;

use super::learn::{Isolation, MAX_DIGITS, Pieces};
use super::states::{Mode, Node, Path, StateId, States};
use crate::design::scheme::{BLOCK, SLOTS, strings};
use crate::text::Dialect;

/// Integer parts have at most two digits.
const INTEGERS: usize = 100;

/// The states where blocks begin.
pub struct Starts {
    /// Plain, behind `<` or `<-`; none if every block is isolated.
    pub plain: Option<StateId>,
    /// Isolated, before `<`.
    pub isolated: Option<StateId>,
}

/// Builds the states of all blocks of a dialect. `None` if the tokens do not determine the text.
pub fn build(
    states: &mut States,
    pieces: &Pieces,
    isolation: Option<&Isolation>,
    dialect: Dialect,
    id: &dyn Fn(&str) -> Option<u32>,
) -> Option<Starts> {
    let mut grammar = Grammar { states, pieces, isolation, dialect, decimals: HashMap::new() };
    let plain = grammar.number(0, isolation.is_none())?;
    let isolated = match isolation {
        Some(isolation) => Some(isolated(states, isolation, dialect, id)?),
        None => None,
    };
    Some(Starts { plain, isolated })
}

struct Grammar<'a> {
    states: &'a mut States,
    pieces: &'a Pieces,
    isolation: Option<&'a Isolation>,
    dialect: Dialect,
    decimals: HashMap<(Option<StateId>, Option<StateId>), StateId>,
}

impl Grammar<'_> {
    /// The state before the digits of number `axis`; `plain` says that the block is known not to be isolated. The inner
    /// `None` says that no plain block goes on from there.
    fn number(&mut self, axis: usize, plain: bool) -> Option<Option<StateId>> {
        let mut paths = Vec::with_capacity(INTEGERS);
        let mut behind = [None; 2];
        for in_range in [false, true] {
            // Four decimals keep a number in the range isolated, fewer do not.
            let whole = self.after(axis, plain || !in_range)?;
            let short = self.after(axis, true)?;
            behind[usize::from(in_range)] = self.behind_integer(whole, short)?;
        }
        for integer in 0..INTEGERS {
            let in_range = self.isolation.is_some_and(|i| integer < i.range.angstrom() as usize);
            if let Some(then) = behind[usize::from(in_range)] {
                let digits = if integer < 10 { 1 } else { 2 };
                paths.push((self.pieces.run(digits, integer).to_vec(), then));
            }
        }
        if paths.is_empty() { Some(None) } else { self.states.trie(paths).map(Some) }
    }

    /// The state behind number `axis`.
    fn after(&mut self, axis: usize, plain: bool) -> Option<Option<StateId>> {
        if axis == 2 {
            return Some(plain.then(|| self.states.exit(Mode::Plain)));
        }
        let Some(next) = self.number(axis + 1, plain)? else { return Some(None) };
        let paths = vec![(self.pieces.comma.clone(), next), (self.pieces.comma_minus.clone(), next)];
        self.states.trie(paths).map(Some)
    }

    /// The state behind an integer part, if four decimals lead to `whole` and fewer, or none, to `short`.
    fn behind_integer(&mut self, whole: Option<StateId>, short: Option<StateId>) -> Option<Option<StateId>> {
        let mut paths: Vec<Path> = Vec::new();
        if self.dialect == Dialect::Stripped {
            paths.extend(short.map(|then| (Vec::new(), then)));
        }
        if whole.is_some() || (self.dialect == Dialect::Stripped && short.is_some()) {
            paths.push((self.pieces.point.clone(), self.decimals(whole, short)?));
        }
        if paths.is_empty() { Some(None) } else { self.states.trie(paths).map(Some) }
    }

    fn decimals(&mut self, whole: Option<StateId>, short: Option<StateId>) -> Option<StateId> {
        if let Some(known) = self.decimals.get(&(whole, short)) {
            return Some(*known);
        }
        let mut paths = Vec::new();
        for length in 1..=MAX_DIGITS {
            let then = if length == MAX_DIGITS { whole } else { short };
            let Some(then) = then.filter(|_| self.dialect == Dialect::Stripped || length == MAX_DIGITS)
            else {
                continue;
            };
            for value in 0..10usize.pow(length as u32) {
                if self.dialect == Dialect::Fixed || value % 10 != 0 {
                    paths.push((self.pieces.run(length, value).to_vec(), then));
                }
            }
        }
        let start = self.states.trie(paths)?;
        self.decimals.insert((whole, short), start);
        Some(start)
    }
}

/// The states of isolated blocks: one token a piece. `None` if a piece is no token.
fn isolated(
    states: &mut States,
    isolation: &Isolation,
    dialect: Dialect,
    id: &dyn Fn(&str) -> Option<u32>,
) -> Option<StateId> {
    let mut next = states.exit(Mode::Isolated);
    let mut end = SLOTS;
    for &start in isolation.starts.iter().rev() {
        let mut texts = vec![String::new()];
        for slot in start..end {
            // The fourth decimal is not zero in the stripped dialect.
            let last_decimal = slot % 8 == 7 && dialect == Dialect::Stripped;
            let options = strings(&BLOCK[slot..=slot], isolation.range);
            let options: Vec<&String> = options.iter().filter(|o| !(last_decimal && *o == "0")).collect();
            texts = texts.iter().flat_map(|head| options.iter().map(move |o| format!("{head}{o}"))).collect();
        }
        let mut edges =
            texts.iter().map(|text| Some((id(text)?, next))).collect::<Option<Vec<(u32, StateId)>>>()?;
        edges.sort_unstable();
        next = states.intern(Node { edges, exit: None });
        end = start;
    }
    Some(next)
}
