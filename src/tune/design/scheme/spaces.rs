//! The design spaces of a plan: that of numbers with all their digits, or those of the stripped encoding by smallest number of
//! decimals.

use std::cell::OnceCell;
use std::ops::RangeInclusive;

use serde::Serialize;

use super::counting_bound::{UsableTokens, counting_bound};
use super::cuts::SchemeKind;
use super::distinct_digits_bound::distinct_digits_bound;
use super::fixed_space::FixedSpace;
use super::grammar::{Grammar, in_words};
use super::search::{AnnealingResult, search};
use super::slots::{MOST_DECIMALS, Range};
use super::space::{BaseTokens, Optimum};
use super::stripped_space::StrippedSpace;
use crate::parameter;
use drift_core::{Encoding, Error, Result};

/// The number of steps of the search with argmin.
pub(crate) const ITERATIONS: u64 = 20_000;

/// The proof of a lower bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BoundBy {
    /// There are too few sequences of so few tokens; see [`super::counting_bound`].
    Counting,
    /// Blocks with only one or two distinct digits need that many; see [`super::distinct_digits_bound`].
    #[serde(rename = "kinds")]
    DistinctDigits,
}

/// The design spaces of a plan, each of which is created when it is first used.
pub struct DesignSpaces<'v, V> {
    kind: SchemeKind,
    range: Range,
    encoding: Encoding,
    fewest_decimals: Option<usize>,
    vocabulary: &'v V,
    fixed: OnceCell<FixedSpace>,
    stripped: [OnceCell<StrippedSpace>; MOST_DECIMALS + 1],
}

impl<'v, V: BaseTokens> DesignSpaces<'v, V> {
    /// Returns the spaces over a base's vocabulary. Without `fewest_decimals`, as many blocks of the stripped encoding are included as
    /// can have the requested number of tokens.
    ///
    /// # Errors
    /// If the encoding has no numbers with so few decimals.
    pub fn new(
        kind: SchemeKind,
        range: Range,
        encoding: Encoding,
        fewest_decimals: Option<usize>,
        vocabulary: &'v V,
    ) -> Result<Self> {
        if let Some(fewest) = fewest_decimals {
            if !encoding.is_stripped() {
                let problem = match encoding.is_decimal() {
                    true => format!("numbers of the fixed dialect have {}", in_words(encoding.precision())),
                    false => format!("numbers of {encoding} have no decimals"),
                };
                let remedy = format!("give it with {} stripped", parameter::DIALECT);
                return Err(Error::parameter(parameter::FEWEST_DECIMALS, problem, remedy));
            }
            // Checked here so that later calls cannot fail.
            Grammar::stripped(range, encoding.precision(), fewest)?;
        }
        let (fixed, stripped) = Default::default();
        Ok(DesignSpaces { kind, range, encoding, fewest_decimals, vocabulary, fixed, stripped })
    }

    /// Returns the spaces of another kind and range over the same vocabulary.
    ///
    /// # Errors
    /// If the encoding has no numbers with so few decimals.
    pub fn with(&self, kind: SchemeKind, range: Range) -> Result<Self> {
        Self::new(kind, range, self.encoding, self.fewest_decimals, self.vocabulary)
    }

    /// Returns the kind of the schemes.
    pub fn kind(&self) -> SchemeKind {
        self.kind
    }

    /// Returns the range of the coordinates.
    pub fn range(&self) -> Range {
        self.range
    }

    /// Returns the encoding of the blocks.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Returns the vocabulary of the base.
    pub fn vocabulary(&self) -> &'v V {
        self.vocabulary
    }

    /// Returns the grammar of the blocks that have `tokens` tokens.
    pub fn grammar(&self, tokens: usize) -> Grammar {
        if !self.encoding.is_stripped() {
            return Grammar::constant(self.encoding, self.range);
        }
        let precision = self.encoding.precision();
        let fewest =
            self.fewest_decimals.and_then(|fewest| Grammar::stripped(self.range, precision, fewest).ok());
        fewest.unwrap_or_else(|| Grammar::widest(self.range, precision, tokens))
    }

    /// Returns the smallest and the largest number of tokens of schemes.
    pub fn tokens(&self) -> RangeInclusive<usize> {
        if !self.encoding.is_stripped() {
            return self.fixed().tokens();
        }
        // Blocks with the most decimals have the most tokens.
        *self.stripped(usize::MAX).tokens().start()..=self.grammar(usize::MAX).most_tokens()
    }

    /// Returns the scheme with exactly `tokens` tokens that has the fewest new ones, if it has at most `limit`.
    pub(crate) fn optimum(&self, tokens: usize, limit: u64) -> Option<Optimum> {
        if self.encoding.is_stripped() {
            self.stripped(tokens).optimum(tokens, limit)
        } else {
            self.fixed().optimum(tokens, limit)
        }
    }

    /// Runs the search with argmin.
    ///
    /// # Errors
    /// The errors of [`search`].
    pub fn search(&self, tokens: usize, seed: u64) -> Result<AnnealingResult> {
        let found = if self.encoding.is_stripped() {
            search(self.stripped(tokens), tokens, seed, ITERATIONS)
        } else {
            search(self.fixed(), tokens, seed, ITERATIONS)
        };
        found.map_err(|e| Error::internal("search", e))
    }

    /// Returns a lower bound on the number of new tokens of any tokenizer with `tokens` tokens per block, and how it is proved.
    pub fn lower_bound(&self, tokens: usize, base: impl Iterator<Item = &'v str> + Clone) -> (u64, BoundBy) {
        let grammar = self.grammar(tokens);
        let counting =
            counting_bound(self.kind, grammar, tokens, UsableTokens::from_vocabulary(grammar, base.clone()));
        let kinds = distinct_digits_bound(self.kind, grammar, tokens, base);
        if kinds > counting { (kinds, BoundBy::DistinctDigits) } else { (counting, BoundBy::Counting) }
    }

    fn fixed(&self) -> &FixedSpace {
        // The grammar of such an encoding is the same for every number of tokens, so 0 can stand for any number.
        self.fixed.get_or_init(|| FixedSpace::new(self.kind, self.grammar(0), self.vocabulary))
    }

    fn stripped(&self, tokens: usize) -> &StrippedSpace {
        let grammar = self.grammar(tokens);
        self.stripped[grammar.fewest_decimals()]
            .get_or_init(|| StrippedSpace::new(self.kind, grammar, self.vocabulary))
    }
}
