//! What a shard, or work that can go on, is of: the command, and the drift that ran it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use super::Shard;
use super::journal::{Journal, first, pieces};
use drift_core::error::{Error, Result};
use drift_core::job::Provenance;

/// The schema of [`Manifest`].
pub const SCHEMA: &str = "drift.shard/1";

/// The file of finished work in a folder.
pub const FILE: &str = "shard.jsonl";

/// What was asked for, and who does it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA`].
    pub schema: String,
    /// The verb.
    pub verb: String,
    /// Which shard it is; none of work that is not cut.
    pub shard: Option<Shard>,
    /// drift's version.
    pub version: String,
    /// The git revision that it was built from, or `unknown`.
    pub revision: String,
    /// What was asked for, by the long names of options; without what changes no result.
    pub options: BTreeMap<String, Vec<String>>,
    /// Where relative names of files start.
    pub folder: PathBuf,
}

impl Manifest {
    /// Of this drift.
    pub fn new(
        verb: &str,
        shard: Option<Shard>,
        options: BTreeMap<String, Vec<String>>,
        folder: PathBuf,
    ) -> Self {
        let Provenance { version, revision, .. } = Provenance::from_inputs(Vec::new());
        let (schema, verb) = (SCHEMA.to_owned(), verb.to_owned());
        Manifest { schema, verb, shard, version, revision, options, folder }
    }

    /// In what it is other work than `other`, whichever shard of it; none if in nothing.
    pub fn difference(&self, other: &Manifest) -> Option<String> {
        let version = |one: &Manifest| format!("{} ({})", one.version, one.revision);
        let fields = [
            ("the verb".to_owned(), self.verb.clone(), other.verb.clone()),
            ("drift".to_owned(), version(self), version(other)),
        ];
        let names = self.options.keys().chain(other.options.keys());
        let said = |one: &Manifest, name: &String| match one.options.get(name) {
            Some(values) if values.is_empty() => "given".to_owned(),
            Some(values) => values.join(" "),
            None => "not given".to_owned(),
        };
        let options = names.map(|name| (format!("--{name}"), said(self, name), said(other, name)));
        let mut all = fields.into_iter().chain(options);
        let (what, own, others) = all.find(|(_, own, other)| own != other)?;
        Some(format!("{what} is {own} there, {others} here"))
    }

    /// Begins the work in a folder, or goes on: what is finished of it, and where to add the rest. A folder that is not there
    /// yet, or holds nothing of the work, is made by the first piece.
    ///
    /// # Errors
    /// If the folder holds other work, or as [`Journal::open`].
    pub fn begin<P: Serialize + DeserializeOwned>(&self, folder: &Path) -> Result<(Work, Vec<P>)> {
        let path = folder.join(FILE);
        if !path.is_file() {
            return Ok((Work::Planned { manifest: self.clone(), folder: folder.to_owned() }, Vec::new()));
        }
        let (journal, finished) = self.open(&path)?;
        Ok((Work::Begun(journal), finished))
    }

    fn open<P: Serialize + DeserializeOwned>(&self, path: &Path) -> Result<(Journal, Vec<P>)> {
        let (mut journal, lines) = Journal::open::<Line<P>>(path)?;
        let mut lines = lines.into_iter();
        match lines.next() {
            None => journal.add(&[Line::<P>::Manifest(self.clone())])?,
            Some(Line::Manifest(other)) => {
                // First of all: with the folder of another shard, everything else agrees.
                let shard = (other.shard != self.shard)
                    .then(|| format!("it is {}, not {}", said(other.shard), said(self.shard)));
                if let Some(difference) = shard.or_else(|| other.difference(self)) {
                    let remedy = "give another folder, or delete the file to start again";
                    let problem = format!("belongs to other work: {difference}");
                    return Err(Error::input(path.display(), problem, remedy));
                }
            }
            Some(Line::Piece(_)) => return Err(no_manifest(path)),
        }
        Ok((journal, finished(lines, path)?))
    }

    /// Of the work in a folder.
    ///
    /// # Errors
    /// If there is none.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        if !path.is_file() {
            let remedy = "give the folders that shards were written to with -o";
            return Err(Error::input(folder.display(), format!("contains no {FILE}"), remedy));
        }
        match first::<Line<IgnoredAny>>(&path)? {
            Some(Line::Manifest(manifest)) => Ok(manifest),
            _ => Err(no_manifest(&path)),
        }
    }

    /// What is finished of the work in a folder.
    ///
    /// # Errors
    /// If there is none, or as [`pieces`].
    pub fn finished<P: DeserializeOwned>(folder: &Path) -> Result<Vec<P>> {
        let path = folder.join(FILE);
        finished(pieces::<Line<P>>(&path)?.into_iter().skip(1), &path)
    }
}

/// A shard in words.
fn said(shard: Option<Shard>) -> String {
    shard.map_or_else(|| "the whole".to_owned(), |shard| format!("shard {shard}"))
}

fn no_manifest(path: &Path) -> Error {
    Error::input(path.display(), "does not begin with a manifest", "delete it, and run its command again")
}

fn finished<P>(lines: impl Iterator<Item = Line<P>>, path: &Path) -> Result<Vec<P>> {
    lines
        .map(|line| match line {
            Line::Piece(piece) => Ok(piece),
            Line::Manifest(_) => Err(no_manifest(path)),
        })
        .collect()
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line<P> {
    Manifest(Manifest),
    Piece(P),
}

/// Work that is being done.
#[derive(Debug)]
pub enum Work {
    /// Nothing is finished.
    Planned {
        /// What it is.
        manifest: Manifest,
        /// Where it will be.
        folder: PathBuf,
    },
    /// Something is.
    Begun(Journal),
}

impl Work {
    /// Adds what is finished.
    ///
    /// # Errors
    /// As [`Journal::open`] and [`Journal::add`].
    pub fn add<P: Serialize + DeserializeOwned>(
        &mut self,
        pieces: impl IntoIterator<Item = P>,
    ) -> Result<()> {
        let lines: Vec<Line<P>> = pieces.into_iter().map(Line::Piece).collect();
        if let Work::Planned { manifest, folder } = self {
            std::fs::create_dir_all(&*folder).map_err(|e| Error::io(folder, e))?;
            let path = folder.join(FILE);
            let (journal, finished) = manifest.open::<P>(&path)?;
            // Between planning and the first piece nobody held the lock.
            if !finished.is_empty() {
                let problem = "was meanwhile started by another process";
                return Err(Error::input(path.display(), problem, "wait for it, or give another folder"));
            }
            *self = Work::Begun(journal);
        }
        match self {
            Work::Begun(journal) => journal.add(&lines),
            Work::Planned { .. } => Ok(()),
        }
    }

    /// Waits until all is on the disk.
    ///
    /// # Errors
    /// As [`Journal::sync`].
    pub fn sync(&self) -> Result<()> {
        match self {
            Work::Begun(journal) => journal.sync(),
            Work::Planned { .. } => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(seed: &str, shard: &str) -> Manifest {
        let options = BTreeMap::from([("seed".to_owned(), vec![seed.to_owned()])]);
        Manifest::new("eval", Some(shard.parse().unwrap()), options, PathBuf::from("/somewhere"))
    }

    #[test]
    fn work_goes_on_in_its_own_folder_alone() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let own = manifest("0", "1/2");
        let begin = |manifest: &Manifest| manifest.begin::<u32>(folder).map(|(_, done)| done);
        {
            let (mut work, done) = own.begin::<u32>(folder).unwrap();
            assert!(done.is_empty());
            work.add([5, 6]).unwrap();
            work.sync().unwrap();
        }
        assert_eq!(begin(&own).unwrap(), [5, 6]);
        let refused = |manifest: &Manifest| begin(manifest).unwrap_err().to_string();
        let other = refused(&manifest("1", "1/2"));
        assert!(other.contains("belongs to other work: --seed is 0 there, 1 here"), "{other}");
        let other = refused(&manifest("0", "2/2"));
        assert!(other.contains("belongs to other work: it is shard 1/2, not shard 2/2"), "{other}");
        let mut newer = own.clone();
        newer.version = "9.9.9".to_owned();
        assert!(refused(&newer).contains("drift is "));
        assert_eq!(Manifest::read(folder).unwrap(), own);
        assert_eq!(Manifest::finished::<u32>(folder).unwrap(), [5, 6]);
        assert!(Manifest::read(&folder.join("nowhere")).unwrap_err().to_string().contains("contains no"));
    }
}
