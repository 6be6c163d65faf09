//! How the row of a new token is made from old ones.
//!
//! A new row is a weighted sum of old ones, brought to their norm. With weights `w` (positive, of sum 1) over old rows
//! `E`:
//!
//! ```text
//! v = Σ w_i E_i        row = v · Σ w_i |E_i| / |v|
//! ```
//!
//! Rows that begin in the convex hull of the old ones disturb a model least (Mundra et al. 2024, arXiv 2407.05841). But the
//! mean of k rows that point apart is shorter than each, by up to √k: hence the norm. It is that of the token's own
//! pieces, not of the table, whose mean counts rare tokens and rows that were never trained.
//!
//! Three ways ([`RowInit`]):
//! - *mean* (fast vocabulary transfer, Gee et al. 2022, arXiv 2402.09977): over the n pieces that the base cuts the
//!   token's text into, each `1/n`. It is blind to order: `45` and `54` begin with one row.
//! - *digits*: the text is cut into single digits and the base's pieces of what stands between them, n in all, m of them
//!   digits. What is no digit weighs `1/n`; the j-th digit weighs `(m/n) · 2^(m-j) / (2^m - 1)`. So the digits together
//!   weigh as much as in a mean, and each twice the next: a more significant digit moves a row more, so that near numbers
//!   have near rows. Sums of different subsets of the weights `1, 2, 4, …` differ, so the weight of a digit's
//!   row tells every place where the digit stands: tokens that differ in their digits alone have different rows, as long as
//!   the rows of the ten digits are linearly independent.
//! - *ends*: a block without drift has every new token in one place, where the model has been choosing the first of its
//!   pieces, and behind which it goes on from the last. So in the LM head each piece weighs twice the next, and in the
//!   embedding each twice the one before. A table that is both has the weights of the head.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::weights::TokenTable;
use crate::design::extension::layout::ids_inside;
use crate::design::extension::new_tokens::{NewToken, NewTokens};
use drift_core::error::{Error, Result};
use drift_core::tokenizer::Tokenizer;

/// The pieces of a longer token would weigh less than a rounding error.
const MAX_PIECES: usize = 24;

/// How new rows are made; see the module's documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowInit {
    /// The mean of the old pieces.
    Mean,
    /// Composed digit by digit, each place weighing twice the next.
    #[default]
    Digits,
    /// By the first piece where a token is predicted, by the last where it is read.
    Ends,
}

impl RowInit {
    /// All of them.
    pub const ALL: [RowInit; 3] = [RowInit::Mean, RowInit::Digits, RowInit::Ends];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            RowInit::Mean => "mean",
            RowInit::Digits => "digits",
            RowInit::Ends => "ends",
        }
    }
}

/// What a table is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::design) enum TableRole {
    /// Tokens are read by it.
    Embedding,
    /// Tokens are predicted by it.
    Head,
    /// Both.
    Tied,
}

/// A row as a sum of old ones: whole-number weights by id. The sum of the weights divides them all.
pub(in crate::design) type Recipe = BTreeMap<u32, u64>;

/// The recipe of each new token, in a table of this use.
///
/// # Errors
/// If the base encodes a text to nothing, or does not have a token for each digit.
pub(in crate::design) fn recipes(
    init: RowInit,
    role: TableRole,
    base: &Tokenizer,
    new: &NewTokens,
) -> Result<Vec<Recipe>> {
    let recipe = |token: &NewToken| match (init, role) {
        _ if token.base_ids.is_empty() => {
            let problem = format!("encodes the new token {:?} to nothing", token.text);
            Err(Error::input(&base.name, problem, "give an extension of tokens that it can write"))
        }
        (RowInit::Mean, _) => Ok(mean(&token.base_ids)),
        (RowInit::Digits, _) => digits(&token.text, base),
        (RowInit::Ends, TableRole::Embedding) => Ok(leading(token.base_ids.iter().rev())),
        (RowInit::Ends, TableRole::Head | TableRole::Tied) => Ok(leading(token.base_ids.iter())),
    };
    new.new_tokens.iter().map(recipe).collect()
}

/// Each piece weighs twice the next; those far behind weigh as the last one that counts.
fn leading<'p>(pieces: impl ExactSizeIterator<Item = &'p u32>) -> Recipe {
    let count = pieces.len().min(MAX_PIECES);
    let mut recipe = Recipe::new();
    for (at, id) in pieces.enumerate() {
        *recipe.entry(*id).or_default() += 1 << count.saturating_sub(at + 1);
    }
    recipe
}

/// Every piece as often as it occurs.
fn mean(pieces: &[u32]) -> Recipe {
    let mut recipe = Recipe::new();
    pieces.iter().for_each(|id| *recipe.entry(*id).or_default() += 1);
    recipe
}

/// See the module's documentation; all weights are multiplied by `n · (2^m - 1)`.
fn digits(text: &str, base: &Tokenizer) -> Result<Recipe> {
    let mut recipe = Recipe::new();
    let count = text.bytes().filter(u8::is_ascii_digit).count();
    if count > MAX_PIECES {
        let problem = format!("the new token {text:?} has {count} digits");
        return Err(Error::input(&base.name, problem, format!("at most {MAX_PIECES} can be composed")));
    }
    let whole = (1u64 << count) - 1;
    let mut digits = 0;
    let mut between = 0;
    // One digit more behind the end, so that what stands behind the last digit is added too.
    for (at, byte) in text.bytes().enumerate().chain([(text.len(), b'0')]) {
        if !byte.is_ascii_digit() {
            continue;
        }
        if between < at {
            // Without digits there is nothing to weigh: all pieces are alike.
            let weight = whole.max(1);
            ids_inside(base, &text[between..at])?
                .into_iter()
                .for_each(|id| *recipe.entry(id).or_default() += weight);
        }
        between = at + 1;
        if at < text.len() {
            digits += 1;
            let weight = count as u64 * (1 << (count - digits));
            let &[id] = ids_inside(base, &text[at..=at])?.as_slice() else {
                let problem = format!("has no token for the digit {}", char::from(byte));
                return Err(Error::input(&base.name, problem, "give a base that has one for every digit"));
            };
            *recipe.entry(id).or_default() += weight;
        }
    }
    Ok(recipe)
}

/// How many recipes are proportional to another one.
pub(in crate::design) fn shared(recipes: &[Recipe]) -> u64 {
    let mut seen: HashMap<Vec<(u32, u64)>, u64> = HashMap::new();
    for recipe in recipes {
        // Weights are divided by their sum in the end, so recipes that differ by a factor make one row.
        let divisor = recipe.values().copied().reduce(gcd).unwrap_or(1);
        *seen.entry(recipe.iter().map(|(id, weight)| (*id, weight / divisor)).collect()).or_default() += 1;
    }
    seen.into_values().filter(|count| *count > 1).sum()
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The rows of recipes `[recipes, hidden]` as the table's bytes, and their mean norm; `old` has all rows that they are of.
pub(in crate::design) fn composed(
    table: &TokenTable,
    old: &BTreeMap<u32, Vec<f32>>,
    recipes: &[Recipe],
) -> (Vec<u8>, f64) {
    let mut bytes = Vec::with_capacity(recipes.len() * table.hidden * table.float.bytes());
    let mut norms = 0.0;
    for recipe in recipes {
        let whole = recipe.values().sum::<u64>() as f64;
        let mut row = vec![0.0; table.hidden];
        let mut target = 0.0;
        // Ids in order, in f64: the sum is the same in every run, and rounded once.
        for (id, weight) in recipe {
            let weight = *weight as f64 / whole;
            target += weight * norm(old[id].iter().map(|value| f64::from(*value)));
            row.iter_mut().zip(&old[id]).for_each(|(sum, value)| *sum += weight * f64::from(*value));
        }
        let length = norm(row.iter().copied());
        // Rows that cancel out have no direction to be stretched in, and single numbers none at all.
        let scale = if length > 0.0 && !table.is_vector { target / length } else { 1.0 };
        table.float.write(row.iter().map(|value| value * scale), &mut bytes);
        norms += length * scale;
    }
    (bytes, norms / recipes.len().max(1) as f64)
}

/// The Euclidean norm.
fn norm(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|value| value * value).sum::<f64>().sqrt()
}
