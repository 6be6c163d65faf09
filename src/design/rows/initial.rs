//! Rows to begin with for the new tokens, in a model's embedding and its LM head.
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
//! Two variants:
//! - *mean* (fast vocabulary transfer, Gee et al. 2022, arXiv 2402.09977): over the n pieces that the base cuts the
//!   token's text into, each `1/n`. It is blind to order: `45` and `54` begin with one row.
//! - *digits*: the text is cut into single digits and the base's pieces of what stands between them, n in all, m of them
//!   digits. What is no digit weighs `1/n`; the j-th digit weighs `(m/n) · 2^(m-j) / (2^m - 1)`. So the digits together
//!   weigh as much as in a mean, and each twice the next: a more significant digit moves a row more, so that near numbers
//!   have near rows. Sums of different subsets of the weights `1, 2, 4, …` differ, so the weight of a digit's
//!   row tells every place where the digit stands: tokens that differ in their digits alone have different rows, as long as
//!   the rows of the ten digits are linearly independent.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use safetensors::tensor::{Dtype, TensorView, serialize};
use serde::Serialize;

use super::weights::{Model, REMEDY, TokenTable};
use crate::design::extension::layout::ids_inside;
use crate::design::extension::new_tokens::NewTokens;
use crate::error::{Error, Result};
use crate::tokenizer::Tokenizer;

/// The schema of the file's metadata.
pub const SCHEMA: &str = "drift.embedding-rows/1";

/// The key of the file's metadata; one, for a map of several would be written in any order.
const METADATA: &str = "drift";

/// The digits of a longer token would weigh less than a rounding error.
const MAX_DIGITS: usize = 24;

/// Rows of the new tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// The bytes of `embedding_rows.safetensors`.
    pub safetensors: Vec<u8>,
    /// What is in it.
    pub report: RowsReport,
}

/// What `embedding_rows.safetensors` holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowsReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The model's name.
    pub model: String,
    /// The base tokenizer's name.
    pub base: String,
    /// The new ids: first and last.
    pub ids: Option<(u32, u32)>,
    /// Tables that rows were made for: the embedding, and the LM head if it is a table of its own.
    pub tables: Vec<TableReport>,
    /// The ways in which rows were made.
    pub variants: Vec<VariantReport>,
}

/// A table of the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableReport {
    /// How the file's tensors begin: `embed_tokens` or `lm_head`.
    pub name: &'static str,
    /// The tensor in the model.
    pub tensor: String,
    /// `F32`, `F16` or `BF16`; the new rows have the same.
    pub dtype: String,
    /// Its rows.
    pub rows: u64,
    /// Numbers of a row.
    pub hidden: u64,
}

/// One way to make rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantReport {
    /// How the file's tensors end: `mean` or `digits`.
    pub name: &'static str,
    /// New tokens whose row is also that of another new token.
    pub shared_rows: u64,
    /// Mean norm of the new rows, for each table.
    pub norms: Vec<f64>,
}

/// Which weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    Mean,
    Digits,
}

impl Variant {
    const ALL: [Variant; 2] = [Variant::Mean, Variant::Digits];

    fn name(self) -> &'static str {
        match self {
            Variant::Mean => "mean",
            Variant::Digits => "digits",
        }
    }
}

/// A row as a sum of old ones: whole-number weights by id. The sum of the weights divides them all.
type Recipe = BTreeMap<u32, u64>;

/// Refuses a model that cannot be the base's: one with fewer rows than the base has ids.
///
/// # Errors
/// If it is such a model.
pub fn belongs(model: &Model, base: &Tokenizer) -> Result<()> {
    let needed = base.vocabulary().into_values().max().map_or(0, |id| u64::from(id) + 1);
    let table = &model.embedding;
    if table.rows < needed {
        let problem = format!("has {} rows, but {} has {needed} ids", table.rows, base.name);
        return Err(Error::input(table.place(), problem, REMEDY));
    }
    Ok(())
}

/// Rows for new tokens of a base, from the rows of its model.
///
/// # Errors
/// If the model is not the base's, or its file cannot be read.
pub fn rows(model: &Model, base: &Tokenizer, new: &NewTokens) -> Result<Rows> {
    belongs(model, base)?;
    let recipes = [recipes(Variant::Mean, base, new)?, recipes(Variant::Digits, base, new)?];
    let wanted: BTreeSet<u32> = recipes.iter().flatten().flat_map(|recipe| recipe.keys().copied()).collect();
    let tables = [("embed_tokens", Some(&model.embedding)), ("lm_head", model.head.as_ref())];
    let mut tensors: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = Vec::new();
    let mut report = RowsReport {
        schema: SCHEMA,
        model: model.name.clone(),
        base: base.name.clone(),
        ids: new.new_tokens.first().zip(new.new_tokens.last()).map(|(first, last)| (first.id, last.id)),
        tables: Vec::new(),
        variants: Vec::new(),
    };
    let mut norms: [Vec<f64>; 2] = Default::default();
    for (name, table) in tables {
        let Some(table) = table else { continue };
        let old = table.read(wanted.iter().copied())?;
        for (at, variant) in Variant::ALL.into_iter().enumerate() {
            let (bytes, norm) = composed(table, &old, &recipes[at]);
            let shape = vec![recipes[at].len(), table.hidden];
            tensors.push((format!("{name}.{}", variant.name()), table.element.dtype(), shape, bytes));
            norms[at].push(norm);
        }
        report.tables.push(TableReport {
            name,
            tensor: table.tensor.clone(),
            dtype: format!("{:?}", table.element.dtype()),
            rows: table.rows,
            hidden: table.hidden as u64,
        });
    }
    for ((variant, recipes), norms) in Variant::ALL.into_iter().zip(&recipes).zip(norms) {
        report.variants.push(VariantReport { name: variant.name(), shared_rows: shared(recipes), norms });
    }
    let ids: Vec<u8> = new.new_tokens.iter().flat_map(|token| i64::from(token.id).to_le_bytes()).collect();
    tensors.push(("ids".into(), Dtype::I64, vec![new.new_tokens.len()], ids));
    Ok(Rows { safetensors: file(&tensors, &report)?, report })
}

/// The bytes of a safetensors file with the report as its metadata.
fn file(tensors: &[(String, Dtype, Vec<usize>, Vec<u8>)], report: &RowsReport) -> Result<Vec<u8>> {
    let refuse = |e: &dyn std::fmt::Display| Error::internal("embedding_rows.safetensors", e);
    let metadata = serde_json::to_string(report).map_err(|e| refuse(&e))?;
    let views: Vec<(&str, TensorView<'_>)> = tensors
        .iter()
        .map(|(name, dtype, shape, bytes)| {
            Ok((name.as_str(), TensorView::new(*dtype, shape.clone(), bytes)?))
        })
        .collect::<std::result::Result<_, safetensors::SafeTensorError>>()
        .map_err(|e| refuse(&e))?;
    serialize(views, Some(HashMap::from([(METADATA.to_owned(), metadata)]))).map_err(|e| refuse(&e))
}

/// The recipe of each new token.
fn recipes(variant: Variant, base: &Tokenizer, new: &NewTokens) -> Result<Vec<Recipe>> {
    new.new_tokens
        .iter()
        .map(|token| match variant {
            Variant::Mean => Ok(mean(&token.base_ids)),
            Variant::Digits => digits(&token.text, base),
        })
        .collect()
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
    if count > MAX_DIGITS {
        let problem = format!("the new token {text:?} has {count} digits");
        return Err(Error::input(&base.name, problem, format!("at most {MAX_DIGITS} can be composed")));
    }
    let whole = (1u64 << count) - 1;
    let mut digits = 0;
    let mut between = 0;
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
fn shared(recipes: &[Recipe]) -> u64 {
    let mut seen: HashMap<Vec<(u32, u64)>, u64> = HashMap::new();
    for recipe in recipes {
        let divisor = recipe.values().copied().reduce(gcd).unwrap_or(1);
        *seen.entry(recipe.iter().map(|(id, weight)| (*id, weight / divisor)).collect()).or_default() += 1;
    }
    seen.into_values().filter(|count| *count > 1).sum()
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The rows of recipes `[recipes, hidden]`, and their mean norm.
fn composed(table: &TokenTable, old: &BTreeMap<u32, Vec<f32>>, recipes: &[Recipe]) -> (Vec<u8>, f64) {
    let mut bytes = Vec::with_capacity(recipes.len() * table.hidden * table.element.bytes());
    let mut norms = 0.0;
    for recipe in recipes {
        let whole = recipe.values().sum::<u64>() as f64;
        let mut row = vec![0.0; table.hidden];
        let mut target = 0.0;
        for (id, weight) in recipe {
            let weight = *weight as f64 / whole;
            target += weight * norm(old[id].iter().map(|value| f64::from(*value)));
            row.iter_mut().zip(&old[id]).for_each(|(sum, value)| *sum += weight * f64::from(*value));
        }
        let length = norm(row.iter().copied());
        // Rows that cancel out have no direction to be stretched in.
        let scale = if length > 0.0 { target / length } else { 1.0 };
        row.iter().for_each(|value| table.element.write(value * scale, &mut bytes));
        norms += length * scale;
    }
    (bytes, norms / recipes.len().max(1) as f64)
}

/// The Euclidean norm.
fn norm(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|value| value * value).sum::<f64>().sqrt()
}
