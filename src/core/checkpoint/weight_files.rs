//! Which file holds which tensor.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::folder::{ModelFolder, check_plain};
use super::header::Header;
use crate::error::{Error, Result};
use crate::io::read_to_limit;

/// An index names a few thousand tensors.
const MAX_INDEX_BYTES: u64 = 1 << 26;

/// The files of a model's weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WeightFiles {
    /// One file.
    Whole(PathBuf),
    /// Shards: the file of each tensor, according to the index. The files need not exist.
    Shards(BTreeMap<String, PathBuf>),
}

impl WeightFiles {
    /// Returns the files of an index of shards (`.json`), or of one safetensors file, which is not opened.
    ///
    /// # Errors
    /// If the index cannot be read, is not an index, or names a file outside its folder. `remedy` becomes the remedy of the error.
    pub fn find(file: &Path, remedy: &str) -> Result<Self> {
        if file.extension().is_none_or(|extension| extension != "json") {
            return Ok(WeightFiles::Whole(file.to_owned()));
        }
        let folder = ModelFolder::around(file);
        let refuse = |problem: String| Error::input(file.display(), problem, remedy);
        check_plain(file)?;
        let bytes = read_to_limit(file, MAX_INDEX_BYTES)?;
        let index: Value = serde_json::from_slice(&bytes).map_err(|e| refuse(format!("is not JSON: {e}")))?;
        let map = index["weight_map"].as_object().ok_or_else(|| refuse("has no weight_map".into()))?;
        let shards = map.iter().map(|(tensor, shard)| {
            // Only a plain file name is allowed, so that an index cannot lead out of its folder.
            let plain = shard.as_str().filter(|name| Path::new(name).file_name() == Some(name.as_ref()));
            let name =
                plain.ok_or_else(|| refuse(format!("{tensor} is in {shard}, which is not a file name")))?;
            Ok((tensor.clone(), folder.path().join(name)))
        });
        shards.collect::<Result<_>>().map(WeightFiles::Shards)
    }

    /// Returns the files, each listed once, sorted by path.
    pub fn files(&self) -> BTreeSet<&Path> {
        match self {
            WeightFiles::Whole(file) => BTreeSet::from([&**file]),
            WeightFiles::Shards(shards) => shards.values().map(|file| &**file).collect(),
        }
    }

    /// Returns the file of each tensor, by the tensor's name.
    ///
    /// # Errors
    /// As [`Header::read`], for a single file. Shards are not opened.
    pub fn tensors(self) -> Result<BTreeMap<String, PathBuf>> {
        match self {
            WeightFiles::Shards(shards) => Ok(shards),
            WeightFiles::Whole(file) => {
                let names = Header::read(&file)?.tensors.offset_keys();
                Ok(names.into_iter().map(|name| (name, file.clone())).collect())
            }
        }
    }
}
