//! How the row of a new token is computed from old rows.
//!
//! A new row is a weighted sum of old rows, rescaled to their mean norm. With weights `w` (positive, with sum 1) over old rows `E`:
//!
//! ```text
//! v = Σ w_i E_i        row = v · Σ w_i |E_i| / |v|
//! ```
//!
//! Initial rows within the convex hull of the old ones disturb a model least (Mundra et al. 2024, arXiv 2407.05841). But the mean
//! of k rows with different directions is shorter than each of them, by a factor of up to √k, so the norm is restored. It is the
//! norm of the token's own pieces. The mean norm of the whole table would include rare tokens and rows that were never trained.
//!
//! There are three methods ([`RowInit`]):
//! - *mean* (fast vocabulary transfer, Gee et al. 2022, arXiv 2402.09977): each of the n pieces into which the base cuts the
//!   token's text has weight `1/n`. This ignores the order: `45` and `54` start with the same row.
//! - *digits*: the text is cut into single digits and the base's pieces of the text between them. There are n parts, m of them
//!   digits. A part that is not a digit has weight `1/n`; the j-th digit has weight `(m/n) · 2^(m-j) / (2^m - 1)`. So the digits
//!   together weigh as much as in the mean, and each digit weighs twice as much as the next. A more significant digit moves a row
//!   more, so near numbers have near rows. Sums of different subsets of the weights `1, 2, 4, …` differ, so the weight of a digit's
//!   row determines every place of the digit. Tokens that differ only in their digits have different rows, as long as the rows of
//!   the ten digits are linearly independent.
//! - *ends*: in a block without drift, every new token is at a place where the model has so far predicted the first of its pieces,
//!   and after which it has so far continued from the last. So in the LM head each piece weighs twice as much as the next, and in
//!   the embedding twice as much as the previous one. A tied table uses the weights of the LM head.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::weights::TokenTable;
use crate::design::extension::layout::ids_inside;
use crate::design::extension::new_tokens::NewTokens;
use drift_core::{Error, Result, Tokenizer};

/// The largest number of pieces with different weights. The weights of further pieces would be below rounding errors.
const MAX_PIECES: usize = 24;

/// The method to compute new rows; see the module's documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowInit {
    /// The mean of the old pieces.
    Mean,
    /// Composed digit by digit, where each place weighs twice as much as the next.
    #[default]
    Digits,
    /// Dominated by the first piece where a token is predicted, and by the last where it is read.
    Ends,
}

drift_core::named!(RowInit { Mean: "mean", Digits: "digits", Ends: "ends" });

/// The role of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::design) enum TableRole {
    /// The table with which tokens are only read.
    Embedding,
    /// The table with which tokens are predicted.
    Head,
}

/// A row as a weighted sum of old rows: integer weights by id, to be divided by their sum.
pub(in crate::design) type Recipe = BTreeMap<u32, u64>;

/// Returns the recipe of each new token, for a table with this role.
///
/// # Errors
/// If the base encodes a token's text to nothing, or lacks a token for a digit.
pub(in crate::design) fn recipes(
    init: RowInit,
    role: TableRole,
    base: &Tokenizer,
    new: &NewTokens,
) -> Result<Vec<Recipe>> {
    let recipes = new.new_tokens.iter().map(|token| match (init, role) {
        _ if token.base_ids.is_empty() => {
            let problem = format!("encodes the new token {:?} to nothing", token.text);
            Err(Error::input(&base.name, problem, "give an extension of tokens that it can write"))
        }
        (RowInit::Mean, _) => Ok(mean(&token.base_ids)),
        (RowInit::Digits, _) => digits(&token.text, base),
        (RowInit::Ends, TableRole::Embedding) => Ok(leading(token.base_ids.iter().rev())),
        (RowInit::Ends, TableRole::Head) => Ok(leading(token.base_ids.iter())),
    });
    recipes.collect()
}

/// Returns each piece weighs twice as much as the next. Pieces beyond [`MAX_PIECES`] weigh as much as the last one within it.
fn leading<'p>(pieces: impl ExactSizeIterator<Item = &'p u32>) -> Recipe {
    let count = pieces.len().min(MAX_PIECES);
    let mut recipe = Recipe::new();
    for (at, id) in pieces.enumerate() {
        *recipe.entry(*id).or_default() += 1 << count.saturating_sub(at + 1);
    }
    recipe
}

/// Returns each piece weighs as much as its number of occurrences.
fn mean(pieces: &[u32]) -> Recipe {
    let mut recipe = Recipe::new();
    pieces.iter().for_each(|id| *recipe.entry(*id).or_default() += 1);
    recipe
}

/// Returns the *digits* method of the module's documentation, with all weights multiplied by `n · (2^m - 1)`.
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
    // One extra digit after the end, so that the text after the last digit is added too.
    for (at, byte) in text.bytes().enumerate().chain([(text.len(), b'0')]) {
        if !byte.is_ascii_digit() {
            continue;
        }
        if between < at {
            // Without digits, all pieces weigh the same.
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

/// Returns the number of recipes that are proportional to another one.
pub(in crate::design) fn shared(recipes: &[Recipe]) -> u64 {
    let mut seen: HashMap<Vec<(u32, u64)>, u64> = HashMap::new();
    for recipe in recipes {
        // Weights are later divided by their sum, so recipes that differ by a factor give the same row.
        let divisor = recipe.values().copied().reduce(gcd).unwrap_or(1);
        *seen.entry(recipe.iter().map(|(id, weight)| (*id, weight / divisor)).collect()).or_default() += 1;
    }
    seen.into_values().filter(|count| *count > 1).sum()
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Computes the rows of recipes, `[recipes, hidden]`, as the table's bytes, and their mean norm. `old` contains all rows that the
/// recipes use.
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
        // Summed in order of ids and in f64, so that the result is the same in every run and rounded only once.
        for (id, weight) in recipe {
            let weight = *weight as f64 / whole;
            target += weight * norm(old[id].iter().map(|value| f64::from(*value)));
            row.iter_mut().zip(&old[id]).for_each(|(sum, value)| *sum += weight * f64::from(*value));
        }
        let length = norm(row.iter().copied());
        // Not rescaled: rows that cancel out have no direction, and the rows of a vector are single numbers.
        let scale = if length > 0.0 && !table.is_vector { target / length } else { 1.0 };
        table.float.write(row.iter().map(|value| value * scale), &mut bytes);
        norms += length * scale;
    }
    (bytes, norms / recipes.len().max(1) as f64)
}

/// Returns the Euclidean norm.
fn norm(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|value| value * value).sum::<f64>().sqrt()
}
