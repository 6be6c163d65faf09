//! The complete procedure: turns a model and an extended tokenizer into a checkpoint.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::added::{added, replaced};
use super::companions::{Companions, NEW_TOKENS, companions};
use super::copy::GrowingFile;
use super::pieces::OrderedFile;
use super::report::{ExtendModelReport, SCHEMA, WrittenFile};
use super::settings;
use super::source::{Shard, SourceModel};
use super::tables::{GrownTable, grown, rows};
use crate::design::base_files::BaseFiles;
use crate::design::rows::initial::has_rows;
use crate::design::rows::recipe::RowInit;
use drift_core::checkpoint::{ADDED_TOKENS, EXTENSION, INDEX, ModelFolder, RECIPE};
use drift_core::io::OutputSet;
use drift_core::job::{Provenance, Unit};
use drift_core::tokenizer::encoding_beside;
use drift_core::{Encoding, Error, Job, Result, Tokenizer};

/// The name of the report file next to the checkpoint.
pub const REPORT: &str = EXTENSION;

/// The plan for extending a model.
#[derive(Debug, Clone)]
pub struct ExtendModelPlan {
    /// The model: a Hugging Face folder, its index of shards, or its single safetensors file. Its own tokenizer is next to it.
    pub model: PathBuf,
    /// The extended tokenizer: a file, a folder, or the name of an embedded one.
    pub tokenizer: PathBuf,
    /// How the rows of new tokens are computed.
    pub init: RowInit,
    /// The number of rows is rounded up to a multiple of this.
    pub pad_to_multiple_of: Option<u64>,
    /// The folder of the checkpoint; created if needed.
    pub output: PathBuf,
}

/// Writes a checkpoint with the rows of an extended tokenizer: everything that `from_pretrained` needs. Either all of it is
/// written, or nothing. Memory does not grow with the model.
///
/// # Errors
/// If the tokenizer is not an extension of the model's own, the model is incomplete, the system refuses, or the job was cancelled.
pub fn extend_model(plan: &ExtendModelPlan, job: &Job) -> Result<ExtendModelReport> {
    let source = SourceModel::open(&plan.model)?;
    let ordered: Vec<OrderedFile<'_>> =
        source.shards.iter().map(|shard| OrderedFile::open(shard, &source)).collect::<Result<_>>()?;
    let mut files = OutputSet::new();
    files.folder(&plan.output)?;
    job.observer().begin("weights", Some(source.shards.iter().map(Shard::bytes).sum()), Unit::Bytes);
    // Real tokenizers take a second to read, during which most of the weights can be copied.
    let unwanted = AtomicBool::new(false);
    let (prepared, growing) = std::thread::scope(|threads| {
        let growing = threads.spawn(|| fronts(&source, &ordered, plan, &unwanted, job));
        let prepared = prepare(&source, plan, job);
        unwanted.store(prepared.is_err(), Ordering::Relaxed);
        (prepared, growing.join())
    });
    // The error of reading tokenizers takes precedence, since it may be what stopped the copy.
    let Preparation { grown, mut small, mut report } = prepared?;
    // A panic of the thread is resumed here, as if there had been no thread.
    let mut growing = growing.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    for (file, ordered) in growing.iter_mut().zip(&ordered) {
        file.add(&ordered.rest(&grown), &unwanted, job)?;
    }
    job.observer().end();
    let rows = report.vocab_size;
    if let Some(index) = &source.index {
        let more =
            grown.iter().map(|grown| (grown.rows - grown.table.rows) * grown.table.hidden as u64).sum();
        let bytes = ordered.iter().map(|file| file.tensor_bytes(rows)).sum();
        small.push((INDEX.to_owned(), settings::document(&settings::index(index, bytes, more))));
    }
    let sizes = small.iter().map(|(name, bytes)| (name.clone(), bytes.len() as u64));
    let weights = source.shards.iter().zip(&ordered);
    let weights =
        weights.map(|(shard, file)| (shard.name.clone(), file.room as u64 + file.tensor_bytes(rows)));
    report.files = sizes.chain(weights).map(|(name, bytes)| WrittenFile { name, bytes }).collect();
    let text = serde_json::to_string_pretty(&report).map_err(|e| Error::internal("the report", e))?;
    files.put(&plan.output.join(REPORT), (text + "\n").as_bytes())?;
    for (name, bytes) in &small {
        files.put(&plan.output.join(name), bytes)?;
    }
    // The weights are committed last, so that their presence means that the checkpoint is complete.
    for (file, ordered) in growing.into_iter().zip(&ordered) {
        files.add(file.finish(&ordered.header(rows)?)?);
    }
    remove_stale(&mut files, &plan.output, &report);
    files.commit()?;
    Ok(report)
}

/// Removes what another run left and would be mistaken for a part of this model: weights, and settings that are not written.
fn remove_stale(files: &mut OutputSet, folder: &Path, report: &ExtendModelReport) {
    let is_written = |name: &str| report.files.iter().any(|file| file.name == name);
    let settings = [NEW_TOKENS, RECIPE, ADDED_TOKENS].into_iter().chain(BaseFiles::kept_names());
    let is_own = folder.join(REPORT).is_file();
    let stale = settings.filter(|name| is_own && !is_written(name)).map(|name| folder.join(name));
    stale.chain(ModelFolder::new(folder).stale_weights(is_written)).for_each(|file| files.remove(&file));
}

/// Starts all weights files, and copies them up to their tables.
fn fronts(
    source: &SourceModel,
    ordered: &[OrderedFile<'_>],
    plan: &ExtendModelPlan,
    unwanted: &AtomicBool,
    job: &Job,
) -> Result<Vec<GrowingFile>> {
    let mut files = Vec::new();
    for (shard, ordered) in source.shards.iter().zip(ordered) {
        let mut file = GrowingFile::begin(&shard.path, &plan.output.join(&shard.name), ordered.room)?;
        file.add(&ordered.front(), unwanted, job)?;
        files.push(file);
    }
    Ok(files)
}

/// What is known after reading the tokenizers.
struct Preparation<'s> {
    grown: Vec<GrownTable<'s>>,
    /// All files except the weights, their index and the report, with their names.
    small: Vec<(String, Vec<u8>)>,
    /// The report, without the list of files.
    report: ExtendModelReport,
}

fn prepare<'s>(source: &'s SourceModel, plan: &ExtendModelPlan, job: &Job) -> Result<Preparation<'s>> {
    let (own, (extended, json)) = tokenizers(source, plan, job)?;
    let replaced = match Tokenizer::embedded_by_name(&plan.tokenizer) {
        Some(_) => BTreeMap::new(),
        None => replaced(&plan.tokenizer)?,
    };
    let encoding = encoding_beside(&plan.tokenizer)?;
    // What the model was trained on, if the tokenizer is for no encoding.
    let wanted = encoding.or(encoding_beside(&plan.model)?).unwrap_or(Encoding::FIXED);
    let added = added(&own, &extended, &replaced, wanted)?;
    has_rows(&source.tables, &own.name, added.old_ids)?;
    source.check_special_tokens(&plan.tokenizer, &added.new)?;
    let rows = rows(source, &added, plan.pad_to_multiple_of);
    if added.new.new_tokens.is_empty() && rows == source.tables.embedding.rows {
        let problem = format!("already has every token of {}, so that nothing is to be added", extended.name);
        let remedy = "give a tokenizer that was extended since, or use the model as it is";
        return Err(Error::input(&source.tables.name, problem, remedy));
    }
    let grown = grown(source, &own, &added, plan.init, rows)?;
    let Companions { files, left } = companions(source, rows, &plan.tokenizer, &extended, json)?;
    let new = &added.new.new_tokens;
    let report = ExtendModelReport {
        schema: SCHEMA,
        provenance: Provenance::from_inputs(vec![own.source.clone(), extended.source.clone()]),
        model: source.tables.name.clone(),
        base: own.name.clone(),
        tokenizer: extended.name.clone(),
        encoding,
        init: plan.init,
        tied: source.tables.head.is_none(),
        old_tokens: added.old_tokens,
        new_tokens: new.len() as u64,
        ids: new.first().zip(new.last()).map(|(first, last)| (first.id, last.id)),
        vocab_size_before: source.tables.embedding.rows,
        vocab_size: rows,
        tables: grown.iter().map(|grown| grown.report.clone()).collect(),
        files: Vec::new(),
        left_out: left,
    };
    Ok(Preparation { grown, small: files, report })
}

/// Reads the model's own tokenizer, and the extended one with its JSON, in parallel.
fn tokenizers(
    source: &SourceModel,
    plan: &ExtendModelPlan,
    job: &Job,
) -> Result<(Tokenizer, (Tokenizer, Vec<u8>))> {
    let folder = &source.folder;
    if !folder.has_tokenizer() {
        let problem = "contains no tokenizer.json, which the new one is compared with";
        return Err(Error::input(
            folder.path().display(),
            problem,
            "put the model's own tokenizer.json there",
        ));
    }
    let (own, extended) = std::thread::scope(|threads| {
        let own = threads.spawn(|| Tokenizer::load_for(folder.opened(), job));
        let extended = Tokenizer::load_for(&plan.tokenizer, job);
        (own.join(), extended)
    });
    let own = own.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    Ok((own?.0, extended?))
}
