//! Shards that are to be merged: all of one work, each once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Manifest, Share};
use crate::error::{Error, Result};

/// The shards of one work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardSet {
    /// What the work is, as the first shard has it.
    pub manifest: Manifest,
    /// How many shards it is cut into.
    pub of: u32,
    /// Their folders, by number.
    pub folders: BTreeMap<u32, PathBuf>,
}

impl ShardSet {
    /// The shards in these folders.
    ///
    /// # Errors
    /// If one is none, of other work than the first, or there twice.
    pub fn of(folders: &[PathBuf]) -> Result<Self> {
        let mut set: Option<ShardSet> = None;
        for folder in folders {
            let manifest = Manifest::of(folder)?;
            let Some(share) = manifest.share else {
                let problem = "holds whole work that was not finished, no shard";
                return Err(Error::input(folder.display(), problem, "run its command again to finish it"));
            };
            match &mut set {
                None => {
                    let folders = BTreeMap::from([(share.number(), folder.clone())]);
                    set = Some(ShardSet { manifest, of: share.of(), folders });
                }
                Some(set) => set.add(folder, &manifest, share)?,
            }
        }
        set.ok_or_else(|| Error::internal("a merge", "no folders"))
    }

    fn add(&mut self, folder: &Path, manifest: &Manifest, share: Share) -> Result<()> {
        let first = self.folders.values().next().map_or_else(String::new, |path| path.display().to_string());
        let difference = match share.of() == self.of {
            true => self.manifest.difference(manifest),
            false => Some(format!("it is shard {share}, not one of {}", self.of)),
        };
        if let Some(difference) = difference {
            let problem = format!("is of other work than {first}: {difference}");
            return Err(Error::input(folder.display(), problem, "leave it out"));
        }
        if let Some(other) = self.folders.get(&share.number()) {
            let problem = format!("holds shard {share}, as {} does", other.display());
            return Err(Error::input(folder.display(), problem, "leave one of them out"));
        }
        self.folders.insert(share.number(), folder.to_owned());
        Ok(())
    }

    /// The numbers of the shards that are not there.
    pub fn missing(&self) -> Vec<u32> {
        (1..=self.of).filter(|number| !self.folders.contains_key(number)).collect()
    }
}
