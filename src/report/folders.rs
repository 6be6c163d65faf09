//! Writes results into folders: reports as JSON, with their pages. Either all files of a folder appear, or none.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use super::card::model_card;
use super::design_page::design_page;
use super::fit_page::fit_page;
use super::learned_view::learned_card;
use super::slot_view::{slot_card, slot_page};
use drift_core::checkpoint::ModelFolder;
use drift_core::io::{OutputSet, parent};
use drift_core::{Error, Result};
use drift_tune::design::{BaseFiles, MadeTokenizer, TokenizerReport};
use drift_tune::placeholder::FitReport;

const TOKENIZER: &str = "tokenizer.json";
const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
const NEW_TOKENS: &str = "new_tokens.json";
const REPORT: &str = "report.json";
const CARD: &str = "MODEL_CARD.md";
const ROWS: &str = "embedding_rows.safetensors";
const PAGE: &str = "report.html";

/// Returns every file that the folder of a tokenizer may get, including those that are copied from the folder of its base.
pub fn tokenizer_files() -> Vec<&'static str> {
    let own = [TOKENIZER, NEW_TOKENS, REPORT, CARD, ROWS, PAGE, TOKENIZER_CONFIG];
    own.into_iter().chain(BaseFiles::kept_names()).collect()
}

/// Refuses a folder in which the tokenizer would overwrite its base, or the model that the rows are made from.
///
/// # Errors
/// If `folder` is the folder of one of `beside`: files or folders, each with a name for the error.
pub fn refuse_over(folder: &Path, beside: &[(&str, Option<&Path>)]) -> Result<()> {
    for (what, path) in beside.iter().filter_map(|(what, path)| Some((what, (*path)?))) {
        // A name that is not a file is of something built in, or in the cache of Hugging Face.
        let around = Some(path).filter(|path| path.exists());
        let around = around.map(|path| if path.is_dir() { path } else { parent(path) });
        let is_same =
            |around: &Path| around.canonicalize().is_ok_and(|a| folder.canonicalize().is_ok_and(|b| a == b));
        if around.is_some_and(is_same) {
            let problem = format!("is the folder of the {what}, which would be overwritten");
            return Err(Error::input(folder.display(), problem, "give another folder"));
        }
    }
    Ok(())
}

/// Writes the folder of a tokenizer. `tokenizer.json` comes last: if it is there, all files are.
///
/// # Errors
/// If a file cannot be written; then no file is.
pub fn write_tokenizer(folder: &Path, made: &MadeTokenizer) -> Result<()> {
    let mut files = OutputSet::new();
    files.folder(folder)?;
    let mut write = |name: &str, bytes: &[u8]| files.put(&folder.join(name), bytes);
    for (name, bytes) in made.beside.kept() {
        write(name, bytes)?;
    }
    let (card, page) = match &made.trained.report {
        TokenizerReport::Designed(report) => (model_card(report), Some(design_page(report).render())),
        TokenizerReport::Learned(report) => (learned_card(report), None),
        TokenizerReport::Slots(report) => (slot_card(report), Some(slot_page(report).render())),
    };
    let rows = made.rows.as_ref().map(|rows| &*rows.safetensors);
    let optional = [(ROWS, rows), (PAGE, page.as_ref().map(String::as_bytes))];
    for (name, bytes) in optional.iter().filter_map(|(name, bytes)| Some((name, (*bytes)?))) {
        write(name, bytes)?;
    }
    write(NEW_TOKENS, &json(&made.trained.new_tokens)?)?;
    write(REPORT, &json(&made.trained.report)?)?;
    write(CARD, card.as_bytes())?;
    write(TOKENIZER_CONFIG, &json(&made.beside.tokenizer_config())?)?;
    write(TOKENIZER, &made.trained.tokenizer_json)?;
    // Files that another run left do not belong to this tokenizer.
    let is_own = ModelFolder::new(folder).field::<String>(REPORT, "drift.train-", "/schema");
    let is_own = is_own.is_ok_and(|schema| schema.is_some());
    let missing = optional.iter().filter(|(_, bytes)| bytes.is_none()).map(|(name, _)| *name);
    let kept: Vec<&str> = made.beside.kept().map(|(name, _)| name).collect();
    let stale = missing.chain(BaseFiles::kept_names().filter(|name| is_own && !kept.contains(name)));
    stale.for_each(|name| files.remove(&folder.join(name)));
    files.commit()
}

/// The page of all tokenizers.
const FIT_PAGE: &str = "fit.html";

/// Returns the names of the files of a fit for these tokenizers.
pub fn fit_files<'t>(tokenizers: impl Iterator<Item = &'t str>) -> Vec<String> {
    tokenizers.map(fit_file).chain([FIT_PAGE.to_owned()]).collect()
}

/// Returns the name of the file with a tokenizer's results.
fn fit_file(tokenizer: &str) -> String {
    format!("{tokenizer}.json")
}

/// Writes one JSON file per tokenizer, and one page for all.
///
/// # Errors
/// If a file cannot be written; then no file is.
pub fn write_fit(folder: &Path, report: &FitReport) -> Result<()> {
    let mut files = OutputSet::new();
    files.folder(folder)?;
    let names: BTreeSet<&str> = report.results.iter().map(|result| result.tokenizer.as_str()).collect();
    for name in names {
        let mut part = report.clone();
        part.results.retain(|result| result.tokenizer == name);
        files.put(&folder.join(fit_file(name)), &json(&part)?)?;
    }
    files.put(&folder.join(FIT_PAGE), fit_page(report).render().as_bytes())?;
    files.commit()
}

/// Returns the report as the bytes of a JSON file.
fn json(report: &impl Serialize) -> Result<Vec<u8>> {
    let text = serde_json::to_string_pretty(report).map_err(|e| Error::internal("the report", e))?;
    Ok((text + "\n").into_bytes())
}
