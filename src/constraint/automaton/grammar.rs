//! From the grammar of coordinates ([`crate::text::block`]) to states: with four decimals, fixed, `-?(0|[1-9]\d?)\.\d{4}`; stripped,
//! `-?(0|[1-9]\d?)(\.\d{0,3}[1-9])?`; three of them with commas between.
//!
//! A tokenizer that isolates blocks does so if all three numbers lie in its range and have so many decimals as it knows.
//! So the states of plain blocks remember whether some number was not of that kind; only then may a plain block end.

use std::collections::HashMap;

use super::learn::{Isolation, Pieces, PreToken};
use super::states::{Mode, Path, StateId, States};
use crate::design::Range;
use crate::design::scheme::slots::strings;
use crate::encoding::Encoding;
use crate::tokenizer::Tokenizer;

/// Integer parts have at most two digits.
const INTEGERS: usize = 100;

/// The states where blocks begin.
pub(super) struct Starts {
    /// Plain, behind `<` or `<-`; none if every block is isolated.
    pub plain: Option<StateId>,
    /// Isolated, before `<`.
    pub isolated: Option<StateId>,
}

/// Builds the states of all blocks of a dialect. `None` if the tokens do not determine the text.
pub(super) fn build(
    states: &mut States,
    pieces: &Pieces,
    isolation: Option<&Isolation>,
    dialect: Encoding,
    tokenizer: &Tokenizer,
) -> Option<Starts> {
    let mut grammar = Grammar { states, pieces, isolation, dialect, decimals: HashMap::new() };
    let plain = grammar.number(0, isolation.is_none())?;
    let isolated = match isolation {
        Some(isolation) => Some(isolated(states, isolation, tokenizer)?),
        None => None,
    };
    Some(Starts { plain, isolated })
}

struct Grammar<'a> {
    states: &'a mut States,
    pieces: &'a Pieces,
    isolation: Option<&'a Isolation>,
    dialect: Encoding,
    decimals: HashMap<(Option<StateId>, Option<StateId>), Option<StateId>>,
}

impl Grammar<'_> {
    /// The state before the digits of number `axis`; `plain` says that the block is known not to be isolated. The inner
    /// `None` says that no plain block goes on from there.
    fn number(&mut self, axis: usize, plain: bool) -> Option<Option<StateId>> {
        let mut paths = Vec::with_capacity(INTEGERS);
        let mut behind = [None; 2];
        for in_range in [false, true] {
            // Decimals that the tokenizer knows keep a number in the range isolated, others do not.
            let known = self.after(axis, plain || !in_range)?;
            let other = self.after(axis, true)?;
            behind[usize::from(in_range)] = self.behind_integer(known, other)?;
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

    /// Where a number with `count` decimals leads: to `known` if the tokenizer may isolate it, else to `other`.
    fn behind(&self, count: usize, known: Option<StateId>, other: Option<StateId>) -> Option<StateId> {
        if self.isolation.is_some_and(|isolation| isolation.decimals.contains(&count)) {
            known
        } else {
            other
        }
    }

    /// The state behind an integer part.
    fn behind_integer(&mut self, known: Option<StateId>, other: Option<StateId>) -> Option<Option<StateId>> {
        let mut paths: Vec<Path> = Vec::new();
        if self.dialect.is_stripped() {
            paths.extend(self.behind(0, known, other).map(|then| (Vec::new(), then)));
        }
        let decimals = self.decimals(known, other)?;
        paths.extend(decimals.map(|decimals| (self.pieces.point.clone(), decimals)));
        if paths.is_empty() { Some(None) } else { self.states.trie(paths).map(Some) }
    }

    /// The state behind a point.
    fn decimals(&mut self, known: Option<StateId>, other: Option<StateId>) -> Option<Option<StateId>> {
        if let Some(made) = self.decimals.get(&(known, other)) {
            return Some(*made);
        }
        let most = self.dialect.decimals();
        let fewest = self.dialect.least_decimals().max(1);
        let mut paths = Vec::new();
        for count in fewest..=most {
            let Some(then) = self.behind(count, known, other) else { continue };
            for value in 0..10usize.pow(count as u32) {
                if self.dialect.is_fixed() || value % 10 != 0 {
                    paths.push((self.pieces.run(count, value).to_vec(), then));
                }
            }
        }
        let start = if paths.is_empty() { None } else { Some(self.states.trie(paths)?) };
        self.decimals.insert((known, other), start);
        Some(start)
    }
}

/// The states of isolated blocks: each piece takes the tokens that the model makes of it, by itself.
fn isolated(states: &mut States, isolation: &Isolation, tokenizer: &Tokenizer) -> Option<StateId> {
    let mut tokens: HashMap<&PreToken, Vec<Vec<u32>>> = HashMap::new();
    for piece in isolation.ways.iter().flatten() {
        if !tokens.contains_key(piece) {
            let all = texts(piece, isolation.range);
            let all = all.iter().map(|text| tokenizer.model_ids(text)).collect::<Option<Vec<_>>>()?;
            tokens.insert(piece, all);
        }
    }
    let mut start = None;
    for way in &isolation.ways {
        let mut next = states.exit(Mode::Isolated);
        for piece in way.iter().rev() {
            next = states.trie(tokens[piece].iter().map(|path| (path.clone(), next)).collect())?;
        }
        start = Some(match start {
            Some(others) => states.union(others, next)?,
            None => next,
        });
    }
    start
}

/// Every text of a piece.
fn texts(piece: &PreToken, range: Range) -> Vec<String> {
    let mut texts = vec![String::new()];
    for (slot, not_zero) in piece {
        let mut options = strings(&[*slot], range);
        options.retain(|option| !(*not_zero && option == "0"));
        texts = texts.iter().flat_map(|head| options.iter().map(move |o| format!("{head}{o}"))).collect();
    }
    texts
}
