//! The way through: a model and an extended tokenizer become a checkpoint.

use std::path::PathBuf;

use super::added::{Added, added};
use super::companions::{Companions, companions};
use super::copy::copy;
use super::pieces::PlannedFile;
use super::report::{ExtendModelReport, SCHEMA, WrittenFile};
use super::settings;
use super::source::{SourceModel, is_weights};
use super::tables::{GrownTable, grown, rows};
use crate::checkpoint::INDEX;
use crate::design::rows::initial::has_rows;
use crate::design::rows::recipe::RowInit;
use crate::error::{Error, Result};
use crate::io::OutputSet;
use crate::job::{Job, Provenance, Unit};
use crate::tokenizer::Tokenizer;

/// The report beside the checkpoint.
pub const REPORT: &str = "extension.json";

/// A model to extend.
#[derive(Debug, Clone)]
pub struct ExtendModelPlan {
    /// The model: a folder of Hugging Face, its index of shards, or its one safetensors file. Its own tokenizer lies beside it.
    pub model: PathBuf,
    /// The extension of that tokenizer: a file, a folder, or the name of an embedded one.
    pub tokenizer: PathBuf,
    /// How new rows are made.
    pub init: RowInit,
    /// What the number of rows is to be a multiple of.
    pub pad_to_multiple_of: Option<u64>,
    /// The folder of the checkpoint; made if need be.
    pub output: PathBuf,
}

/// Writes a checkpoint with the rows of an extended tokenizer: everything that `from_pretrained` needs. All of it appears, or
/// nothing. Memory does not grow with the model.
///
/// # Errors
/// If the tokenizer is no extension of the model's own, the model is not whole, or the system refuses; if the job was
/// cancelled.
pub fn extend_model(plan: &ExtendModelPlan, job: &Job) -> Result<ExtendModelReport> {
    let source = SourceModel::open(&plan.model)?;
    let (own, (extended, json)) = tokenizers(&source, plan, job)?;
    let added = added(&own, &extended)?;
    has_rows(&source.tables, &own.name, added.old_ids)?;
    source.check_special_tokens(&plan.tokenizer, &added.new)?;
    let rows = rows(&source, &added, plan.pad_to_multiple_of);
    let grown = grown(&source, &own, &added, (plan.init, rows))?;
    let companions = companions(&source, rows, (&plan.tokenizer, &extended, json))?;
    let inputs = vec![own.source.clone(), extended.source.clone()];
    let names = (own.name, extended.name);
    let mut report = said(plan, &source, (&added, rows, &grown), names, Provenance::of(inputs));
    report.left_out.clone_from(&companions.left);
    write(plan, &source, &grown, companions, &mut report, job)?;
    Ok(report)
}

/// The model's own tokenizer, and the extended one with its JSON; read at the same time, for real ones take a second each.
fn tokenizers(
    source: &SourceModel,
    plan: &ExtendModelPlan,
    job: &Job,
) -> Result<(Tokenizer, (Tokenizer, Vec<u8>))> {
    let folder = source.folder.path();
    if !["tokenizer.json", "tokenizer.json.gz"].iter().any(|name| source.folder.file(name).is_some()) {
        let problem = "holds no tokenizer.json, which the new one is compared with";
        return Err(Error::input(folder.display(), problem, "put the model's own tokenizer.json there"));
    }
    let own = if folder.as_os_str().is_empty() { std::path::Path::new(".") } else { folder };
    let (own, extended) = std::thread::scope(|threads| {
        let own = threads.spawn(|| Tokenizer::load_for(own, job));
        let extended = Tokenizer::load_for(&plan.tokenizer, job);
        (own.join(), extended)
    });
    let own = own.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    Ok((own?.0, extended?))
}

/// The report, but for the files.
fn said(
    plan: &ExtendModelPlan,
    source: &SourceModel,
    (added, rows, grown): (&Added, u64, &[GrownTable<'_>]),
    (base, tokenizer): (String, String),
    provenance: Provenance,
) -> ExtendModelReport {
    let new = &added.new.new_tokens;
    ExtendModelReport {
        schema: SCHEMA,
        provenance,
        model: source.tables.name.clone(),
        base,
        tokenizer,
        init: plan.init,
        tied: source.tables.head.is_none(),
        old_tokens: added.old_tokens,
        new_tokens: new.len() as u64,
        ids: new.first().zip(new.last()).map(|(first, last)| (first.id, last.id)),
        vocab_size_before: source.tables.embedding.rows,
        vocab_size: rows,
        tables: grown.iter().map(|grown| grown.report.clone()).collect(),
        files: Vec::new(),
        left_out: Vec::new(),
    }
}

/// Writes all files, or none; the weights last, so that they stand for the whole.
fn write(
    plan: &ExtendModelPlan,
    source: &SourceModel,
    grown: &[GrownTable<'_>],
    companions: Companions,
    report: &mut ExtendModelReport,
    job: &Job,
) -> Result<()> {
    let planned: Vec<PlannedFile<'_>> =
        source.shards.iter().map(|shard| PlannedFile::of(shard, grown)).collect::<Result<_>>()?;
    let mut small = companions.files;
    if let Some(index) = &source.index {
        let more =
            grown.iter().map(|grown| (grown.rows - grown.table.rows) * grown.table.hidden as u64).sum();
        let bytes = planned.iter().map(|file| file.tensor_bytes).sum();
        small.push((INDEX.to_owned(), settings::document(&settings::index(index, bytes, more))));
    }
    let sizes = small.iter().map(|(name, bytes)| (name.clone(), bytes.len() as u64));
    let weights = source.shards.iter().zip(&planned).map(|(shard, file)| (shard.name.clone(), file.bytes()));
    report.files = sizes.chain(weights).map(|(name, bytes)| WrittenFile { name, bytes }).collect();

    let folder = &plan.output;
    let mut files = OutputSet::new();
    files.folder(folder)?;
    let text = serde_json::to_string_pretty(report).map_err(|e| Error::internal("the report", e))?;
    files.put(&folder.join(REPORT), (text + "\n").as_bytes())?;
    for (name, bytes) in &small {
        files.put(&folder.join(name), bytes)?;
    }
    job.observer().begin("weights", Some(planned.iter().map(PlannedFile::bytes).sum()), Unit::Bytes);
    for (shard, planned) in source.shards.iter().zip(&planned) {
        files.add(copy(&shard.path, planned, &folder.join(&shard.name), job)?);
    }
    job.observer().end();
    // Weights of another run would be taken for this one's.
    let stale = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    for name in stale.filter_map(|name| name.into_string().ok()) {
        if is_weights(&name) && report.files.iter().all(|file| file.name != name) {
            files.remove(&folder.join(name));
        }
    }
    files.commit()
}
