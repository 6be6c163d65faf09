//! Shards to be merged: all shards of one work, each once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{Manifest, Shard};
use drift_core::{Error, Result};

/// The shards of one work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardSet {
    /// The description of the work, from the first shard.
    pub manifest: Manifest,
    /// The number of shards that the work is split into.
    pub of: u32,
    /// The folder of each shard.
    pub folders: BTreeMap<Shard, PathBuf>,
}

impl ShardSet {
    /// Opens the shards in these folders.
    ///
    /// # Errors
    /// If a folder contains no shard, or a shard of other work than the first folder, or if a shard occurs twice.
    pub fn open(folders: &[PathBuf]) -> Result<Self> {
        let mut set: Option<ShardSet> = None;
        for folder in folders {
            let manifest = Manifest::read(folder)?;
            let Some(shard) = manifest.shard else {
                let problem = "contains an unfinished run without shards, not a shard";
                return Err(Error::input(folder.display(), problem, "run its command again to finish it"));
            };
            match &mut set {
                None => {
                    let folders = BTreeMap::from([(shard, folder.clone())]);
                    set = Some(ShardSet { manifest, of: shard.of(), folders });
                }
                Some(set) => set.add(folder, &manifest, shard)?,
            }
        }
        set.ok_or_else(|| Error::internal("a merge", "no folders"))
    }

    fn add(&mut self, folder: &Path, manifest: &Manifest, shard: Shard) -> Result<()> {
        let first = self.folders.values().next().map_or_else(String::new, |path| path.display().to_string());
        // Reported first: with another number of shards, a shard contains entirely different items.
        let difference = match shard.of() == self.of {
            true => self.manifest.difference(manifest),
            false => Some(format!("it is shard {shard}, not one of {}", self.of)),
        };
        if let Some(difference) = difference {
            let problem = format!("belongs to other work than {first}: {difference}");
            return Err(Error::input(folder.display(), problem, "leave it out"));
        }
        if let Some(other) = self.folders.get(&shard) {
            let problem = format!("contains shard {shard}, as {} does", other.display());
            return Err(Error::input(folder.display(), problem, "leave one of them out"));
        }
        self.folders.insert(shard, folder.to_owned());
        Ok(())
    }

    /// Returns the numbers of the missing shards.
    pub fn missing(&self) -> Vec<u32> {
        let there: BTreeSet<u32> = self.folders.keys().map(|shard| shard.number()).collect();
        (1..=self.of).filter(|number| !there.contains(number)).collect()
    }
}
