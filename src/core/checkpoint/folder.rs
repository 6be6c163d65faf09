//! The files of a model's folder.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::io::{file_name, read_to_limit};

/// The shape of the model.
pub const CONFIG: &str = "config.json";

/// How the model is asked to generate.
pub const GENERATION_CONFIG: &str = "generation_config.json";

/// What drift trained it by.
pub const RECIPE: &str = "recipe.json";

/// What the tokenizer's tokens mean.
pub const TOKENIZER_CONFIG: &str = "tokenizer_config.json";

/// All weights in one file.
pub const WEIGHTS: &str = "model.safetensors";

/// Which shard holds which tensor.
pub const INDEX: &str = "model.safetensors.index.json";

/// What to do about weights that only PyTorch reads.
const CONVERT: &str = "convert it to safetensors as docs/use.md, extend-model, shows";

/// No real file of settings is larger.
const MAX_SETTINGS_BYTES: u64 = 1 << 26;

/// A folder; it need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFolder {
    path: PathBuf,
}

impl ModelFolder {
    /// The folder at `path`.
    pub fn new(path: &Path) -> Self {
        ModelFolder { path: path.to_owned() }
    }

    /// The folder that `path` is, or that the file `path` lies in.
    pub fn around(path: &Path) -> Self {
        ModelFolder::new(if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file of this name, if there is one.
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        Some(self.path.join(name)).filter(|file| file.is_file())
    }

    /// The bytes of a file of settings, if there is one.
    ///
    /// # Errors
    /// If it cannot be read, or is larger than any file of settings.
    pub fn bytes(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.file(name).map(|file| read_to_limit(&file, MAX_SETTINGS_BYTES)).transpose()
    }

    /// A file of settings in JSON, if there is one; `refuse` says what is wrong, and what to do.
    ///
    /// # Errors
    /// As [`ModelFolder::bytes`], or if it is not the JSON that is wanted.
    pub fn json<T: DeserializeOwned>(
        &self,
        name: &str,
        refuse: impl FnOnce(serde_json::Error) -> (String, &'static str),
    ) -> Result<Option<T>> {
        self.file(name).map(|_| self.needed_json(name, refuse)).transpose()
    }

    /// A field of the recipe that `drift train-model` leaves beside its weights, where there is one that can be read.
    pub fn recipe<T: DeserializeOwned>(&self, pointer: &str) -> Option<T> {
        let recipe: Value = self.json(RECIPE, |e| (e.to_string(), "")).ok()??;
        serde_json::from_value(recipe.pointer(pointer)?.clone()).ok()
    }

    /// A file of settings in JSON that has to be there.
    ///
    /// # Errors
    /// As [`ModelFolder::json`], or if there is none.
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

    /// The file that says where the weights are: the index of their shards, else the one file that holds them all.
    pub fn weights(&self) -> Option<PathBuf> {
        [INDEX, WEIGHTS].iter().find_map(|name| self.file(name))
    }

    /// The file that says where the weights are, as [`ModelFolder::weights`] finds it, where there has to be one.
    ///
    /// # Errors
    /// If there is none; where the folder holds weights in another layout, it says which, and what to do.
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

    /// What the weights are where they are not safetensors, and what to do about it.
    pub(super) fn other_layout(&self) -> Option<(&'static str, &'static str)> {
        let names: Vec<String> =
            std::fs::read_dir(&self.path).ok()?.flatten().map(|entry| file_name(&entry.path())).collect();
        // Beginning and ending of a name.
        let layouts = [
            (("", ".distcp"), "a checkpoint of torch.distributed", CONVERT),
            (("adapter_model.", ""), "an adapter alone", "merge it into its model first"),
            (("", ".gguf"), "a GGUF file", "give the safetensors that it was made from"),
            (("pytorch_model", ""), "PyTorch's pickles", CONVERT),
            (("", ".pth"), "PyTorch's pickles", CONVERT),
            (("", ".pt"), "PyTorch's pickles", CONVERT),
        ];
        let is_there = |(begin, end): (&str, &str)| {
            names.iter().any(|name| name.starts_with(begin) && name.ends_with(end))
        };
        // In this order: an adapter lies beside pickles of its own, and a folder may hold several.
        let found = layouts.into_iter().find(|(name, ..)| is_there(*name));
        found.map(|(_, layout, remedy)| (layout, remedy))
    }
}

/// # Errors
/// If a path is a pipe, a device or a folder: files of a model are opened more than once, and read in places.
pub(super) fn check_plain(path: &Path) -> Result<()> {
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => {
            Err(Error::input(path.display(), "is not a regular file", "give the file itself"))
        }
        // That it is not there is for whoever opens it to say.
        _ => Ok(()),
    }
}

/// One id or several.
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

/// Rows of the embedding as a configuration has them. Models of several parts keep their text part's apart.
pub fn configured_rows(config: &Value) -> Option<u64> {
    let rows = |config: &Value| config["vocab_size"].as_u64();
    rows(config).or_else(|| rows(&config["text_config"]))
}

/// Whether a configuration says that the LM head is the embedding.
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
