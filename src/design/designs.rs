//! The design spaces of a plan: that of the fixed dialect, or those of the stripped one by fewest decimals.

use std::cell::OnceCell;
use std::ops::RangeInclusive;

use serde::Serialize;

use super::bound::{Usable, counting_bound};
use super::grammar::{Decimals, Grammar, MAX_DECIMALS};
use super::kinds::kinds_bound;
use super::scheme::{Kind, MAX_TOKENS, Range};
use super::search::{Found, search};
use super::space::{Optimum, Space, Vocabulary};
use super::stripped::StrippedSpace;
use crate::error::{Error, Parameter, Result};
use crate::text::Dialect;

/// Steps of the search by argmin.
pub const ITERATIONS: u64 = 20_000;

/// How a lower bound is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BoundBy {
    /// There are too few sequences of so few tokens; see [`super::bound`].
    Counting,
    /// Blocks of one or two kinds of digits need as many; see [`super::kinds`].
    Kinds,
}

/// See the module's documentation; spaces are made when they are first asked for.
pub struct Designs<'v, V> {
    kind: Kind,
    range: Range,
    dialect: Dialect,
    fewest_decimals: Option<usize>,
    vocabulary: &'v V,
    fixed: OnceCell<Space>,
    stripped: [OnceCell<StrippedSpace>; MAX_DECIMALS + 1],
}

impl<'v, V: Vocabulary> Designs<'v, V> {
    /// The spaces over a base's vocabulary. Without `fewest_decimals`, blocks of the stripped dialect are as many as can
    /// have the asked number of tokens.
    ///
    /// # Errors
    /// If no number of the dialect has so few decimals.
    pub fn new(
        kind: Kind,
        range: Range,
        (dialect, fewest_decimals): (Dialect, Option<usize>),
        vocabulary: &'v V,
    ) -> Result<Self> {
        match (dialect, fewest_decimals) {
            (Dialect::Fixed, Some(_)) => {
                let problem = "numbers of the fixed dialect have four decimals";
                return Err(Error::parameter(
                    Parameter::FewestDecimals,
                    problem,
                    format!("give it with {} stripped", Parameter::Dialect),
                ));
            }
            (Dialect::Stripped, Some(fewest)) => drop(Grammar::stripped(range, fewest)?),
            (_, None) => {}
        }
        let (fixed, stripped) = Default::default();
        Ok(Designs { kind, range, dialect, fewest_decimals, vocabulary, fixed, stripped })
    }

    /// The blocks that have as many tokens.
    pub fn grammar(&self, tokens: usize) -> Grammar {
        match (self.dialect, self.fewest_decimals) {
            (Dialect::Fixed, _) => Grammar::fixed(self.range),
            (Dialect::Stripped, None) => Grammar::widest(self.range, tokens),
            (Dialect::Stripped, Some(fewest)) => {
                Grammar { range: self.range, decimals: Decimals::From(fewest) }
            }
        }
    }

    /// The fewest and the most tokens that schemes can have.
    pub fn tokens(&self) -> RangeInclusive<usize> {
        match self.dialect {
            Dialect::Fixed => self.fixed().tokens(),
            Dialect::Stripped => {
                *self.stripped(MAX_TOKENS).tokens().start()..=self.grammar(MAX_TOKENS).most_tokens()
            }
        }
    }

    /// The scheme of exactly `tokens` tokens with the fewest new ones, if it has at most `limit`.
    pub fn optimum(&self, tokens: usize, limit: u64) -> Option<Optimum> {
        match self.dialect {
            Dialect::Fixed => self.fixed().optimum(tokens, limit),
            Dialect::Stripped => self.stripped(tokens).optimum(tokens, limit),
        }
    }

    /// The search by argmin.
    ///
    /// # Errors
    /// See [`search`].
    pub fn search(&self, tokens: usize, seed: u64) -> Result<Found> {
        let found = match self.dialect {
            Dialect::Fixed => search(self.fixed(), tokens, seed, ITERATIONS),
            Dialect::Stripped => search(self.stripped(tokens), tokens, seed, ITERATIONS),
        };
        found.map_err(|e| Error::internal("search", e))
    }

    /// A number of new tokens that no tokenizer with as many tokens a block does without, and how it is known.
    pub fn lower_bound(&self, tokens: usize, base: impl Iterator<Item = &'v str> + Clone) -> (u64, BoundBy) {
        let grammar = self.grammar(tokens);
        let counting = counting_bound(self.kind, grammar, tokens, Usable::of(grammar, base.clone()));
        let kinds = kinds_bound(self.kind, grammar, tokens, base);
        if kinds > counting { (kinds, BoundBy::Kinds) } else { (counting, BoundBy::Counting) }
    }

    fn fixed(&self) -> &Space {
        self.fixed.get_or_init(|| Space::new(self.kind, self.range, self.vocabulary))
    }

    fn stripped(&self, tokens: usize) -> &StrippedSpace {
        let grammar = self.grammar(tokens);
        self.stripped[grammar.fewest_decimals()]
            .get_or_init(|| StrippedSpace::new(self.kind, grammar, self.vocabulary))
    }
}
