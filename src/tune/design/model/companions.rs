//! The files in addition to the weights that make a checkpoint complete.

use std::path::Path;

use super::settings;
use super::source::SourceModel;
use crate::design::extension::config::UNCHANGED;
use drift_core::checkpoint::{
    ADDED_TOKENS, CONFIG, EXTENSION, ModelFolder, RECIPE, TOKENIZER_CONFIG, is_weights_file,
};
use drift_core::io::{file_name, read_to_limit};
use drift_core::tokenizer::config_beside;
use drift_core::{Error, Result, Tokenizer};

/// The list of new tokens written by `drift train-tokenizer`, taken only from the extension.
pub(super) const NEW_TOKENS: &str = "new_tokens.json";

/// Files that are not copied: tokenizers without the new tokens, tokens that are in the new `tokenizer.json`, and the state of a
/// training.
const LEFT: [&str; 9] = [
    ADDED_TOKENS,
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "tokenizer.model",
    "trainer_state.json",
    "report.json",
    "MODEL_CARD.md",
    EXTENSION,
];

/// The endings of other files that belong to a model: settings, templates, its own code, and documentation.
const KEPT: [&str; 5] = [".json", ".jinja", ".py", ".md", ".txt"];

/// The beginnings of the names of such files.
const KEPT_BEGINNINGS: [&str; 3] = ["LICENSE", "NOTICE", "USE_POLICY"];

/// The largest size of a file of settings or documentation, in bytes.
const MAX_BYTES: u64 = 1 << 26;

/// The files to write, and those that are not copied.
#[derive(Default)]
pub(super) struct Companions {
    /// The names and contents of the files to write.
    pub files: Vec<(String, Vec<u8>)>,
    /// The names of the model's files that are not copied, including weights in other layouts.
    pub left: Vec<String>,
}

/// Returns all files except the weights and their index; `config.json` and `tokenizer.json` come last.
///
/// # Errors
/// If a file cannot be read.
pub(super) fn companions(
    source: &SourceModel,
    rows: u64,
    path: &Path,
    extended: &Tokenizer,
    json: Vec<u8>,
) -> Result<Companions> {
    let mut all = handed_on(source, &extended.name)?;
    let embedded = Tokenizer::embedded_by_name(path).is_some();
    let beside = (!embedded).then(|| ModelFolder::around(path));
    let of_extension = |name: &str| beside.as_ref().map_or(Ok(None), |folder| folder.bytes(name));
    for name in UNCHANGED {
        // The model may have been trained further than the base of the extension, with templates of its own.
        let bytes = match source.folder.bytes(name)? {
            Some(bytes) => Some(bytes),
            None => of_extension(name)?,
        };
        all.files.extend(bytes.map(|bytes| (name.to_owned(), bytes)));
    }
    all.files.extend(of_extension(NEW_TOKENS)?.map(|bytes| (NEW_TOKENS.to_owned(), bytes)));
    let tokenizer = settings::tokenizer(config_beside(path)?.as_ref(), source.tokenizer_config.as_ref());
    all.files.push((TOKENIZER_CONFIG.to_owned(), settings::document(&tokenizer)));
    all.files.push((CONFIG.to_owned(), settings::document(&settings::config(&source.config, rows))));
    all.files.push(("tokenizer.json".to_owned(), json));
    Ok(all)
}

/// Returns the files of the model's folder that are copied.
fn handed_on(source: &SourceModel, tokenizer: &str) -> Result<Companions> {
    let mut all = Companions::default();
    let folder = source.folder.path();
    let refuse = |e| Error::io(folder, e);
    let mut names: Vec<String> = std::fs::read_dir(source.folder.opened())
        .map_err(refuse)?
        .map(|entry| Ok(file_name(&entry.map_err(refuse)?.path())))
        .collect::<Result<_>>()?;
    names.sort();
    for name in names {
        let file = folder.join(&name);
        let written = is_weights_file(&name) || source.shards.iter().any(|shard| shard.path == file);
        let own = [CONFIG, TOKENIZER_CONFIG, "tokenizer.json", "tokenizer.json.gz", NEW_TOKENS];
        // These files are written anew, or hidden. They are not copied, and not listed as left out.
        if name.starts_with('.') || written || own.contains(&&*name) || UNCHANGED.contains(&&*name) {
            continue;
        }
        if !belongs(&name, &file) {
            all.left.push(name);
            continue;
        }
        let mut bytes = read_to_limit(&file, MAX_BYTES)?;
        if name == RECIPE
            && let Ok(recipe) = serde_json::from_slice(&bytes)
        {
            bytes = settings::document(&settings::recipe(&recipe, tokenizer));
        }
        all.files.push((name, bytes));
    }
    Ok(all)
}

/// Returns whether a file of the model contains settings or documentation.
fn belongs(name: &str, file: &Path) -> bool {
    let kept = KEPT.iter().any(|ending| name.ends_with(ending))
        || KEPT_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning));
    let small = std::fs::metadata(file).is_ok_and(|file| file.is_file() && file.len() <= MAX_BYTES);
    kept && small && !LEFT.contains(&name) && !name.ends_with(".index.json")
}
