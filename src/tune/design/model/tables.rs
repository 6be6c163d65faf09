//! Computes the tables with their new rows.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::added::AddedTokens;
use super::report::GrownTableReport;
use super::source::SourceModel;
use crate::design::rows::recipe::{Recipe, RowInit, TableRole, composed, recipes, shared};
use crate::design::rows::weights::TokenTable;
use drift_core::{Result, Tokenizer};

/// A table, and the rows that are added to it.
pub(super) struct GrownTable<'s> {
    /// The original table.
    pub table: &'s TokenTable,
    /// The number of rows afterwards.
    pub rows: u64,
    /// The byte ranges in `bytes` of the new tokens' rows, by id.
    pub made: BTreeMap<u32, Range<usize>>,
    /// The bytes of the new tokens' rows.
    pub bytes: Vec<u8>,
    /// The bytes of the row for ids without a token.
    pub unused: Vec<u8>,
    /// The report on the table.
    pub report: GrownTableReport,
}

/// Returns the number of rows that all tables will have: at least the number of ids and the number before, rounded up to the multiple.
pub(super) fn rows(source: &SourceModel, added: &AddedTokens, multiple: Option<u64>) -> u64 {
    let rows = source.tables.embedding.rows.max(added.ids);
    multiple.filter(|multiple| *multiple > 0).map_or(rows, |multiple| rows.next_multiple_of(multiple))
}

/// Returns all tables of a model with their new rows.
///
/// # Errors
/// If rows cannot be read, or a new token has no old pieces.
pub(super) fn grown<'s>(
    source: &'s SourceModel,
    base: &Tokenizer,
    added: &AddedTokens,
    init: RowInit,
    rows: u64,
) -> Result<Vec<GrownTable<'s>>> {
    let mut tables = Vec::new();
    for (name, table) in source.tables() {
        // A tied embedding is the head too.
        let is_head = name != "embed_tokens" || source.tables.head.is_none();
        let role = if is_head { TableRole::Head } else { TableRole::Embedding };
        let recipes = recipes(init, role, base, &added.new)?;
        tables.push(GrownTable::new(name, table, added, &recipes, rows)?);
    }
    Ok(tables)
}

impl<'s> GrownTable<'s> {
    /// Computes the new rows of a table that will have `rows` rows.
    fn new(
        name: &'static str,
        table: &'s TokenTable,
        added: &AddedTokens,
        recipes: &[Recipe],
        rows: u64,
    ) -> Result<Self> {
        let wanted: BTreeSet<u32> = recipes.iter().flat_map(|recipe| recipe.keys().copied()).collect();
        let (bytes, mean_norm) = composed(table, &table.read(wanted)?, recipes);
        let length = table.row_bytes();
        let ids = added.new.new_tokens.iter().map(|token| token.id);
        let made: BTreeMap<u32, Range<usize>> =
            ids.enumerate().map(|(at, id)| (id, at * length..(at + 1) * length)).collect();
        let overwritten = made.keys().filter(|id| u64::from(**id) < table.rows).count() as u64;
        let appended = made.len() as u64 - overwritten;
        let padding = rows - table.rows - appended;
        let mut unused = Vec::new();
        if padding > 0 {
            // Only rows with a token are averaged: the rows after the last token were never trained.
            let mean = table.mean(added.old_ids)?;
            table.float.write(mean, &mut unused);
        }
        let report = GrownTableReport {
            name,
            tensor: table.tensor.clone(),
            dtype: format!("{:?}", table.float.dtype()),
            hidden: table.hidden as u64,
            rows_before: table.rows,
            rows,
            overwritten,
            appended,
            padding,
            shared_rows: shared(recipes),
            mean_norm,
        };
        Ok(GrownTable { table, rows, made, bytes, unused, report })
    }
}
