//! The file of rows to begin with for the new tokens, in a model's embedding and its LM head: in each of two ways.
//! [`super::recipe`] says which.

use std::collections::{BTreeSet, HashMap};

use safetensors::tensor::{Dtype, TensorView, serialize};
use serde::Serialize;

use super::recipe::{RowInit, TableRole, composed, recipes, shared};
use super::weights::{Model, REMEDY};
use crate::design::extension::new_tokens::NewTokens;
use drift_core::error::{Error, Result};
use drift_core::tokenizer::Tokenizer;

/// The schema of the file's metadata.
pub const SCHEMA: &str = "drift.embedding-rows/1";

/// The key of the file's metadata; one, for a map of several would be written in any order.
const METADATA: &str = "drift";

/// The ways whose rows the file holds; they are the same for both tables.
const IN_FILE: [RowInit; 2] = [RowInit::Mean, RowInit::Digits];

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

/// Refuses a model that cannot be the base's: one with fewer rows than the base has ids.
///
/// # Errors
/// If it is such a model.
pub fn belongs(model: &Model, base: &Tokenizer) -> Result<()> {
    let needed = base.vocabulary().into_values().max().map_or(0, |id| u64::from(id) + 1);
    has_rows(model, &base.name, needed)
}

/// Refuses a model with fewer rows than `base` has ids.
///
/// # Errors
/// If it is such a model.
pub(in crate::design) fn has_rows(model: &Model, base: &str, needed: u64) -> Result<()> {
    let table = &model.embedding;
    if table.rows < needed {
        let problem = format!("has {} rows, but {base} has {needed} ids", table.rows);
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
    // The ways of this file do not depend on the table, so any role will do.
    let of = |init| recipes(init, TableRole::Tied, base, new);
    let recipes = [of(IN_FILE[0])?, of(IN_FILE[1])?];
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
        for (at, variant) in IN_FILE.into_iter().enumerate() {
            let (bytes, norm) = composed(table, &old, &recipes[at]);
            let shape = vec![recipes[at].len(), table.hidden];
            tensors.push((format!("{name}.{}", variant.name()), table.float.dtype(), shape, bytes));
            norms[at].push(norm);
        }
        report.tables.push(TableReport {
            name,
            tensor: table.tensor.clone(),
            dtype: format!("{:?}", table.float.dtype()),
            rows: table.rows,
            hidden: table.hidden as u64,
        });
    }
    for ((variant, recipes), norms) in IN_FILE.into_iter().zip(&recipes).zip(norms) {
        report.variants.push(VariantReport { name: variant.name(), shared_rows: shared(recipes), norms });
    }
    // 64 bits, as torch indexes rows.
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
