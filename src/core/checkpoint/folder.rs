//! The files of a model's folder.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::io::{file_name, read_to_limit};

/// The architecture of the model.
pub const CONFIG: &str = "config.json";

/// The default settings for generation.
pub const GENERATION_CONFIG: &str = "generation_config.json";

/// The settings by which drift trained it.
pub const RECIPE: &str = "recipe.json";
/// What `drift extend-model` says of the model that it made.
pub const EXTENSION: &str = "extension.json";
/// The remedy for settings that cannot be read.
pub(crate) const REPAIR: &str = "repair or remove it";

/// The settings of the tokenizer: its special tokens and chat template.
pub const TOKENIZER_CONFIG: &str = "tokenizer_config.json";

/// The special tokens, as older versions of transformers wrote them.
pub(crate) const SPECIAL_TOKENS_MAP: &str = "special_tokens_map.json";

/// The added tokens by text, as older versions of transformers wrote them.
pub const ADDED_TOKENS: &str = "added_tokens.json";

/// All weights in one file.
pub const WEIGHTS: &str = "model.safetensors";

/// Which shard holds which tensor.
pub const INDEX: &str = "model.safetensors.index.json";

/// The names of a tokenizer in the folder.
pub(crate) const TOKENIZER_FILES: [&str; 2] = ["tokenizer.json", "tokenizer.json.gz"];

/// Other files that a model or a tokenizer is read from, in the layout of Hugging Face or as drift writes them beside a tokenizer.
const OTHER_FILES: [&str; 10] = [
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "chat_template.json",
    "new_tokens.json",
    "report.json",
    EXTENSION,
    "adapter_config.json",
];

/// Endings of files with weights or with a tokenizer in another format.
const ENDINGS: [&str; 6] = [".safetensors", ".index.json", ".bin", ".pth", ".model", ".tiktoken"];

/// The remedy for weights in formats that only PyTorch reads.
const CONVERT: &str = "convert it to safetensors as docs/extend.md shows";

/// No real file of settings is larger.
const MAX_SETTINGS_BYTES: u64 = 1 << 26;

/// Returns whether a model or a tokenizer is read from a file of this name, if it is in the model's folder.
pub(crate) fn is_model_file(name: &str) -> bool {
    let settings = [CONFIG, GENERATION_CONFIG, RECIPE, TOKENIZER_CONFIG];
    settings.contains(&name)
        || TOKENIZER_FILES.contains(&name)
        || OTHER_FILES.contains(&name)
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Returns whether a name is that of a weights file or its index, in any layout in which models are written.
pub fn is_weights_file(name: &str) -> bool {
    name == INDEX || name == WEIGHTS || is_shard(name)
}

/// Returns whether a name is that of a shard: `model-00001-of-00002.safetensors`.
fn is_shard(name: &str) -> bool {
    let numbers = name.strip_prefix("model-").and_then(|rest| rest.strip_suffix(".safetensors"));
    numbers.and_then(|numbers| numbers.split_once("-of-")).is_some_and(|(number, all)| {
        [number, all].iter().all(|part| part.len() == 5 && part.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// The folder of a model; it need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFolder {
    path: PathBuf,
}

impl ModelFolder {
    /// Returns the folder at `path`.
    pub fn new(path: &Path) -> Self {
        ModelFolder { path: path.to_owned() }
    }

    /// Returns the folder at `path`, or, if `path` is a file, the folder that contains it.
    pub fn around(path: &Path) -> Self {
        ModelFolder::new(if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) })
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns where it is, as the system opens it: `.` for the current folder, whose path may be empty.
    pub fn opened(&self) -> &Path {
        if self.path.as_os_str().is_empty() { Path::new(".") } else { &self.path }
    }

    /// Returns whether a `tokenizer.json` lies in it.
    pub fn has_tokenizer(&self) -> bool {
        TOKENIZER_FILES.iter().any(|name| self.file(name).is_some())
    }

    /// Returns a file of this name, if there is one.
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        Some(self.path.join(name)).filter(|file| file.is_file())
    }

    /// Returns the bytes of a file of settings, if there is one.
    ///
    /// # Errors
    /// If the file cannot be read, or is larger than 64 MiB.
    pub fn bytes(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.file(name).map(|file| read_to_limit(&file, MAX_SETTINGS_BYTES)).transpose()
    }

    /// Returns a settings file parsed as JSON, if there is one. `refuse` turns a parse error into a problem and a remedy.
    ///
    /// # Errors
    /// As [`ModelFolder::bytes`], or if the file is not JSON of the type `T`.
    pub fn json<T: DeserializeOwned>(
        &self,
        name: &str,
        refuse: impl FnOnce(serde_json::Error) -> (String, &'static str),
    ) -> Result<Option<T>> {
        self.file(name).map(|_| self.needed_json(name, refuse)).transpose()
    }

    /// Returns a field of the recipe that `drift train-model` writes beside its weights; `None` if there is no recipe, or not this field.
    ///
    /// # Errors
    /// If the recipe is not JSON, or the field is not a `T`: a model must not be read as if nothing were known of it.
    pub fn recipe<T: DeserializeOwned>(&self, pointer: &str) -> Result<Option<T>> {
        self.field(RECIPE, "", pointer)
    }

    /// Returns a field of a JSON file, as [`ModelFolder::recipe`] reads it, if the file's schema begins with `schema`.
    ///
    /// # Errors
    /// As [`ModelFolder::recipe`].
    pub fn field<T: DeserializeOwned>(&self, name: &str, schema: &str, pointer: &str) -> Result<Option<T>> {
        let document: Option<Value> = self.json(name, |e| (e.to_string(), REPAIR))?;
        let own = document.filter(|document| {
            schema.is_empty() || document["schema"].as_str().is_some_and(|own| own.starts_with(schema))
        });
        let field = own.and_then(|mut document| document.pointer_mut(pointer).map(Value::take));
        field
            .filter(|field| !field.is_null())
            .map(serde_json::from_value)
            .transpose()
            .map_err(|e| Error::input(self.path.join(name).display(), format!("{pointer}: {e}"), REPAIR))
    }

    /// Returns a settings file parsed as JSON, which must exist.
    ///
    /// # Errors
    /// As [`ModelFolder::json`], or if the file does not exist.
    pub fn needed_json<T: DeserializeOwned>(
        &self,
        name: &str,
        refuse: impl FnOnce(serde_json::Error) -> (String, &'static str),
    ) -> Result<T> {
        let file = self.path.join(name);
        check_plain(&file)?;
        let bytes = read_to_limit(&file, MAX_SETTINGS_BYTES)?;
        serde_json::from_slice(&bytes).map_err(|e| {
            let (problem, remedy) = refuse(e);
            Error::input(file.display(), problem, remedy)
        })
    }

    /// Returns the file that says where the weights are: the one file with all weights, or else the index of the shards. transformers
    /// looks for them in this order.
    pub fn weights(&self) -> Option<PathBuf> {
        [WEIGHTS, INDEX].iter().find_map(|name| self.file(name))
    }

    /// Returns the files of weights that were not written with the others, and would be mistaken for weights of the same model.
    pub fn stale_weights(&self, is_written: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        let there = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        let names = there.filter_map(|entry| entry.file_name().into_string().ok());
        names
            .filter(|name| is_weights_file(name) && !is_written(name))
            .map(|name| self.path.join(name))
            .collect()
    }

    /// Returns the file that [`ModelFolder::weights`] finds, which must exist.
    ///
    /// # Errors
    /// If there is none. If the folder holds weights in another layout, the error names the layout and a remedy.
    pub fn needed_weights(&self) -> Result<PathBuf> {
        self.weights().ok_or_else(|| {
            let (problem, remedy) = match self.other_layout() {
                Some((layout, remedy)) => (format!("contains {layout}, not {WEIGHTS}"), remedy),
                None => (
                    format!("contains neither {WEIGHTS} nor {INDEX}"),
                    "give the folder of a Hugging Face checkpoint, or a safetensors file",
                ),
            };
            Error::input(self.path.display(), problem, remedy)
        })
    }

    /// Returns the layout of weights that are not safetensors, and the remedy for it.
    pub(super) fn other_layout(&self) -> Option<(&'static str, &'static str)> {
        let names: Vec<String> =
            std::fs::read_dir(&self.path).ok()?.flatten().map(|entry| file_name(&entry.path())).collect();
        // Prefix and suffix of a file name.
        let layouts = [
            (("", ".distcp"), "a checkpoint of torch.distributed", CONVERT),
            (("adapter_model.", ""), "an adapter alone", "merge it into its model first"),
            (("", ".gguf"), "a GGUF file", "give the safetensors that it was made from"),
            (("pytorch_model", ""), "PyTorch's pickles", CONVERT),
            (("", ".pth"), "PyTorch's pickles", CONVERT),
            (("", ".pt"), "PyTorch's pickles", CONVERT),
        ];
        // The order matters: an adapter lies beside pickles of its own, and a folder may hold several layouts.
        let found = layouts.into_iter().find(|((begin, end), ..)| {
            names.iter().any(|name| name.starts_with(begin) && name.ends_with(end))
        });
        found.map(|(_, layout, remedy)| (layout, remedy))
    }
}

/// # Errors
/// If a path is a pipe, a device or a folder: the files of a model are opened more than once and read at offsets.
pub(super) fn check_plain(path: &Path) -> Result<()> {
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => {
            Err(Error::input(path.display(), "is not a regular file", "give the file itself"))
        }
        // A missing file is reported by the code that opens it.
        _ => Ok(()),
    }
}

/// One token id or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Ids {
    /// One.
    One(u32),
    /// Several, or none.
    Many(Vec<u32>),
}

impl From<Ids> for Vec<u32> {
    fn from(ids: Ids) -> Self {
        match ids {
            Ids::One(id) => vec![id],
            Ids::Many(ids) => ids,
        }
    }
}

/// Returns the rows of the embedding according to a configuration. Multimodal models nest the settings of their text part in
/// `text_config`.
pub fn configured_rows(config: &Value) -> Option<u64> {
    let rows = |config: &Value| config["vocab_size"].as_u64();
    rows(config).or_else(|| rows(&config["text_config"]))
}

/// Returns whether a configuration says that the LM head shares the weights of the embedding.
pub fn is_tied(config: &Value) -> Option<bool> {
    let said = |config: &Value| config["tie_word_embeddings"].as_bool();
    said(config).or_else(|| said(&config["text_config"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_where_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let model = ModelFolder::new(folder.path());
        let refuse = |e: serde_json::Error| (format!("is wrong: {e}"), "mend it");
        assert_eq!(model.json::<Value>(CONFIG, refuse).unwrap(), None);
        assert_eq!(model.weights(), None);
        std::fs::write(folder.path().join(CONFIG), "{").unwrap();
        let error = model.json::<Value>(CONFIG, refuse).unwrap_err().to_string();
        assert!(error.contains("config.json: is wrong: EOF") && error.ends_with("; mend it"), "{error}");
        for (file, part) in
            [("pytorch_model.bin", "PyTorch's pickles"), ("__0_0.distcp", "torch.distributed")]
        {
            std::fs::write(folder.path().join(file), "").unwrap();
            let error = model.needed_weights().unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("not model.safetensors; "), "{error}");
        }
        let whole = folder.path().join("model.safetensors");
        std::fs::write(&whole, "").unwrap();
        assert_eq!(model.weights().as_ref(), Some(&whole));
        assert_eq!(ModelFolder::around(&whole), model);
    }

    #[test]
    fn text_parts_speak_for_models_of_several() {
        let config = serde_json::json!({"text_config": {"vocab_size": 7, "tie_word_embeddings": true}});
        assert_eq!((configured_rows(&config), is_tied(&config)), (Some(7), Some(true)));
        assert_eq!(configured_rows(&serde_json::json!({"vocab_size": 3})), Some(3));
    }
}
