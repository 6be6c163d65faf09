//! Writes the file of initial rows for the new tokens in a model's embedding and LM head, for two methods. [`super::recipe`]
//! defines the methods.

use std::collections::{BTreeSet, HashMap};

use safetensors::tensor::{Dtype, TensorView, serialize};
use serde::Serialize;

use super::recipe::{RowInit, TableRole, composed, recipes, shared};
use super::weights::{Model, REMEDY};
use crate::design::extension::new_tokens::NewTokens;
use drift_core::{Error, Result, Tokenizer};

/// The schema of the file's metadata.
pub const SCHEMA: &str = "drift.embedding-rows/1";

/// The key of the file's metadata. There is only one key, since a map with several would be written in random order.
const METADATA: &str = "drift";

/// The methods whose rows the file contains; they are the same for both tables.
const IN_FILE: [RowInit; 2] = [RowInit::Mean, RowInit::Digits];

/// The initial rows of the new tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// The bytes of `embedding_rows.safetensors`.
    pub safetensors: Vec<u8>,
    /// The description of the file's contents.
    pub report: RowsReport,
}

/// The contents of `embedding_rows.safetensors`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowsReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The model's name.
    pub model: String,
    /// The base tokenizer's name.
    pub base: String,
    /// The first and last of the new ids.
    pub ids: Option<(u32, u32)>,
    /// The tables for which rows were computed: the embedding, and the LM head if it is a separate table.
    pub tables: Vec<TableReport>,
    /// The methods by which rows were computed.
    pub variants: Vec<VariantReport>,
}

/// A table of the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableReport {
    /// The beginning of the names of the file's tensors: `embed_tokens` or `lm_head`.
    pub name: &'static str,
    /// The name of the tensor in the model.
    pub tensor: String,
    /// The number type `F32`, `F16` or `BF16`; the new rows have the same.
    pub dtype: String,
    /// The number of rows of the table.
    pub rows: u64,
    /// The number of values in a row.
    pub hidden: u64,
}

/// One method to compute rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantReport {
    /// The end of the names of the file's tensors: `mean` or `digits`.
    pub name: &'static str,
    /// The number of new tokens that have the same row as another new token.
    pub shared_rows: u64,
    /// The mean norm of the new rows, for each table.
    pub norms: Vec<f64>,
}

/// Refuses a model that cannot belong to the base, because it has fewer rows than the base has ids.
///
/// # Errors
/// If the model has too few rows.
pub fn belongs(model: &Model, base: &Tokenizer) -> Result<()> {
    has_rows(model, &base.name, base.rows().into())
}

/// Refuses a model with fewer rows than `needed`, the number of ids of `base`.
///
/// # Errors
/// If the model has too few rows.
pub(in crate::design) fn has_rows(model: &Model, base: &str, needed: u64) -> Result<()> {
    let table = &model.embedding;
    if table.rows < needed {
        let problem = format!("has {} rows, but {base} has {needed} ids", table.rows);
        return Err(Error::input(table.place(), problem, REMEDY));
    }
    Ok(())
}

/// Returns the initial rows for new tokens of a base, computed from the rows of its model.
///
/// # Errors
/// If the model does not belong to the base, or its file cannot be read.
pub fn rows(model: &Model, base: &Tokenizer, new: &NewTokens) -> Result<Rows> {
    belongs(model, base)?;
    // The methods of this file do not depend on the table's role, so any role will do.
    let of = |init| recipes(init, TableRole::Head, base, new);
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
    // 64-bit ids, since torch uses them to index rows.
    let ids: Vec<u8> = new.new_tokens.iter().flat_map(|token| i64::from(token.id).to_le_bytes()).collect();
    tensors.push(("ids".into(), Dtype::I64, vec![new.new_tokens.len()], ids));
    Ok(Rows { safetensors: file(&tensors, &report)?, report })
}

/// Returns the bytes of a safetensors file that has the report as its metadata.
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
