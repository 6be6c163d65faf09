//! Finds the `tokenizer.json` of a path, and says how other formats are converted to one.

use std::path::{Path, PathBuf};

use crate::checkpoint::{ModelFolder, folder_around};
use crate::error::{Error, Result};
use crate::io;

/// The names of a `tokenizer.json` in a folder.
const NAMES: [&str; 2] = ["tokenizer.json", "tokenizer.json.gz"];

/// The beginning of a file that Git LFS puts in place of a large one.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/";

/// The file of a tokenizer.
pub(super) struct TokenizerFile {
    /// Where it is.
    pub(super) path: PathBuf,
}

impl TokenizerFile {
    /// The file at a path, or the `tokenizer.json` of the folder at a path.
    ///
    /// # Errors
    /// If a folder has none.
    pub(super) fn find(path: &Path) -> Result<Self> {
        if !path.is_dir() {
            return Ok(TokenizerFile { path: path.to_owned() });
        }
        let mut files = NAMES.iter().map(|name| path.join(name));
        match files.find(|file| file.is_file()) {
            Some(path) => Ok(TokenizerFile { path }),
            None => {
                let remedy = "give a tokenizer.json or a folder that contains one";
                Err(Error::input(path.display(), "contains no tokenizer.json", remedy))
            }
        }
    }

    /// # Errors
    /// If these bytes of it are no JSON, but something that stands for it, or another format of tokenizers.
    pub(super) fn check(&self, bytes: &[u8]) -> Result<()> {
        if bytes.starts_with(LFS) {
            return Err(Error::input(
                self.path.display(),
                "is a pointer of Git LFS, not the file itself",
                "run `git lfs pull` there",
            ));
        }
        Ok(())
    }

    /// The folder whose other files belong to it. `None` if it has another name than `tokenizer.json`: transformers would not read
    /// it there.
    pub(super) fn folder(&self) -> Option<ModelFolder> {
        NAMES.contains(&&*io::file_name(&self.path)).then(|| ModelFolder::around(&self.path))
    }

    /// Its name in reports: `…/qwen3/tokenizer.json.gz` is `qwen3`, `mine.json` is `mine`.
    pub(super) fn name(&self) -> String {
        let name = io::file_name(&self.path);
        let stem = name.trim_end_matches(".gz").trim_end_matches(".json");
        let folder = || folder_around(&self.path).filter(|_| stem == "tokenizer");
        folder().unwrap_or_else(|| stem.to_owned())
    }
}
