//! The tokens that begin and end texts, and the `tokenizer_config.json` that names them.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::Tokenizer;
use super::companions::CompanionFiles;
use super::special_tokens::content;
use crate::checkpoint::{CONFIG, EXTENSION, GENERATION_CONFIG, Ids, ModelFolder, RECIPE, REPAIR};
use crate::encoding::Encoding;
use crate::error::{Error, Result};
use crate::io;

/// Usual names of the end-of-text token, for tokenizers whose config names none.
const USUAL_ENDS: [&str; 5] = ["<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|im_end|>"];

/// Returns the settings of a tokenizer file, a model folder, or an embedded tokenizer: its `tokenizer_config.json`, overridden by its
/// `special_tokens_map.json` where transformers does that; `None` if there is neither.
///
/// # Errors
/// If a file cannot be read or is not a JSON object.
pub fn config_beside(tokenizer: &Path) -> Result<Option<Value>> {
    if let Some(embedded) = Tokenizer::embedded_by_name(tokenizer) {
        return serde_json::from_str(embedded.config)
            .map(Some)
            .map_err(|e| Error::internal(tokenizer.display(), e));
    }
    settings(ModelFolder::around(tokenizer))
}

/// Returns the settings of the tokenizer in a folder.
fn settings(folder: ModelFolder) -> Result<Option<Value>> {
    Ok(CompanionFiles::read(folder)?.settings().map(Value::Object))
}

/// Returns the ids that end a text of the checkpoint in `folder`. They come from `generation_config.json`, else from `config.json` (or
/// `configured`, if it was read already), else from `tokenizer_config.json`, else from a token like `<|endoftext|>`. Empty if no source
/// has any.
///
/// # Errors
/// If a file cannot be read, is not JSON or has malformed ids, or names an id that the tokenizer does not have.
pub fn ends_of_text(
    folder: &ModelFolder,
    configured: Option<&[u32]>,
    tokenizer: &Tokenizer,
) -> Result<Vec<u32>> {
    let mut ends = ends_in_file(folder, GENERATION_CONFIG)?;
    if ends.is_empty() {
        ends = configured.map_or_else(|| ends_in_file(folder, CONFIG), |ids| Ok(ids.to_vec()))?;
    }
    let settings = settings(folder.clone())?;
    if ends.is_empty() {
        ends.extend(tokenizer.likely_end(settings.as_ref()).map(|end| end.id));
    }
    let vocabulary = tokenizer.vocabulary();
    if let Some(id) = ends.iter().find(|id| !vocabulary.values().any(|known| known == *id)) {
        let problem = format!("eos_token_id {id} is not a token of {}", tokenizer.source.name);
        return Err(Error::input(folder.path().display(), problem, "give the tokenizer of this model"));
    }
    // The order of the ids says nothing: models learn the one that their tokenizer names.
    let own = tokenizer.stated_end(settings.as_ref());
    if let Some(at) = own.and_then(|own| ends.iter().position(|id| *id == own.id)) {
        ends[..=at].rotate_right(1);
    }
    Ok(ends)
}

/// Returns the `eos_token_id` of a file of settings.
fn ends_in_file(folder: &ModelFolder, name: &str) -> Result<Vec<u32>> {
    let ends: Option<Ends> = folder.json(name, |e| (e.to_string(), REPAIR))?;
    Ok(ends.and_then(|ends| ends.eos_token_id).map(Vec::from).unwrap_or_default())
}

/// Returns the id that ends a text, from the files beside a tokenizer file, a model folder or an embedded tokenizer, by the rules of
/// [`ends_of_text`]; `None` if no source has one.
///
/// # Errors
/// As [`ends_of_text`].
pub fn end_beside(path: &Path, tokenizer: &Tokenizer) -> Result<Option<u32>> {
    if Tokenizer::embedded_by_name(path).is_some() {
        return Ok(tokenizer.likely_end(config_beside(path)?.as_ref()).map(|end| end.id));
    }
    Ok(ends_of_text(&ModelFolder::around(path), None, tokenizer)?.first().copied())
}

/// Returns the encoding that a model or a tokenizer is made for, from the files that drift wrote beside it: the report of an extended
/// model, the recipe of a trained model, or the report of an extended tokenizer. `None` if no file states it. An extended model has the
/// recipe of the model before, by which it writes texts until it is trained.
///
/// # Errors
/// If one of these files is not JSON, or states something that is no encoding.
pub fn encoding_beside(tokenizer: &Path) -> Result<Option<Encoding>> {
    if Tokenizer::embedded_by_name(tokenizer).is_some() {
        return Ok(None);
    }
    // A tokenizer under another name may lie beside the files of another tokenizer.
    let name = io::file_name(tokenizer);
    let json = name.trim_end_matches(".gz").strip_suffix(".json");
    let is_other = json.is_some_and(|stem| {
        !["tokenizer", "vocabulary", "vocab"].contains(&stem) && !stem.ends_with(".index")
    });
    if is_other && tokenizer.is_file() {
        return Ok(None);
    }
    let folder = ModelFolder::around(tokenizer);
    let files = [
        (EXTENSION, "drift.extend-model/", "/encoding"),
        (RECIPE, "", "/recipe/dialect"),
        ("report.json", "drift.train-tokenizer/", "/dialect"),
    ];
    let mut said = files.into_iter().map(|(name, schema, pointer)| folder.field(name, schema, pointer));
    said.find_map(Result::transpose).transpose()
}

/// The only field of a settings file that matters here.
#[derive(Deserialize)]
struct Ends {
    eos_token_id: Option<Ids>,
}

/// A token with its text and id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedToken {
    /// Its text.
    pub text: String,
    /// Its id.
    pub id: u32,
}

impl Tokenizer {
    /// Returns the end-of-text token: `eos_token` of the config, else a token with a usual name.
    ///
    /// # Errors
    /// If there is none, or the config names a text that is not a token.
    pub fn end_of_text(&self, config: Option<&Value>) -> Result<NamedToken> {
        if let Some(text) = config.and_then(|config| special_token(config, "eos_token")) {
            return self.named(text).ok_or_else(|| {
                let problem = format!("eos_token {text} of its tokenizer_config.json is not a token");
                Error::input(&self.name, problem, "name a token of the vocabulary")
            });
        }
        self.usual_end().ok_or_else(|| {
            let remedy = "put a tokenizer_config.json with an eos_token beside the tokenizer.json";
            Error::input(&self.name, "has no end-of-text token (EOS)", remedy)
        })
    }

    /// Returns the end-of-text token that the config names, if it is a token; else a token with a usual name, if there is one.
    pub fn likely_end(&self, config: Option<&Value>) -> Option<NamedToken> {
        self.stated_end(config).or_else(|| self.usual_end())
    }

    /// Returns the end-of-text token that the config names, if it is a token.
    fn stated_end(&self, config: Option<&Value>) -> Option<NamedToken> {
        self.named(special_token(config?, "eos_token")?)
    }

    /// Returns the beginning-of-text token that the config names, if it is a token.
    pub fn beginning_of_text(&self, config: Option<&Value>) -> Option<NamedToken> {
        self.named(special_token(config?, "bos_token")?)
    }

    /// Returns the token that the post-processor appends, if it has a usual name; else an added token with a usual name, else a plain
    /// one. The order matters: the vocabulary of RoBERTa has `<|endoftext|>` from GPT-2, but ends texts with `</s>`.
    fn usual_end(&self) -> Option<NamedToken> {
        // Any text shows what the post-processor appends.
        let whole = self.encoded("C", true, false).ok();
        let last = whole.and_then(|whole| whole.get_tokens().last().cloned());
        let put_behind = last.filter(|last| USUAL_ENDS.contains(&last.as_str()));
        let added = || USUAL_ENDS.into_iter().find(|text| self.is_added(text)).map(str::to_owned);
        match put_behind.or_else(added) {
            Some(text) => self.named(&text),
            None => USUAL_ENDS.into_iter().find_map(|text| self.named(text)),
        }
    }

    fn named(&self, text: &str) -> Option<NamedToken> {
        Some(NamedToken { text: text.to_owned(), id: self.inner().token_to_id(text)? })
    }
}

/// Returns a special token of the settings: a text, or an object with a `content`.
fn special_token<'s>(settings: &'s Value, name: &str) -> Option<&'s str> {
    content(settings.get(name)?)
}
