//! Describes the work of a shard, or of a run that can be continued: the command, and the version of drift that runs it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use super::Shard;
use super::journal::{Journal, first, pieces};
use drift_core::io;
use drift_core::job::Provenance;
use drift_core::{Error, Result};

/// The schema of [`Manifest`].
pub const SCHEMA: &str = "drift.shard/1";

/// The name of the journal in a folder.
pub const FILE: &str = "shard.jsonl";

/// The requested work, and the program that does it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA`].
    pub schema: String,
    /// The verb of the command line.
    pub verb: String,
    /// The shard; `None` for work that is not split.
    pub shard: Option<Shard>,
    /// drift's version.
    pub version: String,
    /// The git revision that it was built from, or `unknown`.
    pub revision: String,
    /// The requested options by their long names, without options that do not change the result.
    pub options: BTreeMap<String, Vec<String>>,
    /// The folder to which relative file names refer.
    pub folder: PathBuf,
}

impl Manifest {
    /// Returns the manifest of work by this build of drift.
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

    /// Returns the first difference between this work and `other`, regardless of the shard; `None` if they are the same work.
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

    /// Begins or continues the work in a folder: returns the finished pieces, and where to add the rest. If the folder does not
    /// exist or contains nothing of the work, it is created with the first piece.
    ///
    /// # Errors
    /// If the folder contains other work, and the errors of [`Journal::open`].
    pub fn begin<P: Serialize + DeserializeOwned>(&self, folder: &Path) -> Result<(Work, Vec<P>)> {
        self.begin_at(&folder.join(FILE))
    }

    /// Begins or continues the work of a journal with a name of its own.
    ///
    /// # Errors
    /// As [`Manifest::begin`].
    pub fn begin_at<P: Serialize + DeserializeOwned>(&self, path: &Path) -> Result<(Work, Vec<P>)> {
        let (journal, finished) = if path.is_file() {
            let (journal, finished) = self.open(path)?;
            (Some(journal), finished)
        } else {
            (None, Vec::new())
        };
        Ok((Work { manifest: self.clone(), path: path.to_owned(), journal }, finished))
    }

    fn open<P: Serialize + DeserializeOwned>(&self, path: &Path) -> Result<(Journal, Vec<P>)> {
        let (mut journal, lines) = Journal::open::<Line<P>>(path)?;
        let mut lines = lines.into_iter();
        match lines.next() {
            None => journal.add(&[Line::<P>::Manifest(self.clone())])?,
            Some(Line::Manifest(other)) => {
                // Compared first: with the folder of another shard, everything else is equal.
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

    /// Reads the manifest in a folder.
    ///
    /// # Errors
    /// If the folder contains no manifest.
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

    /// Returns the finished pieces of the work in a folder.
    ///
    /// # Errors
    /// If there is no journal, and the errors of [`pieces`].
    pub fn finished<P: DeserializeOwned>(folder: &Path) -> Result<Vec<P>> {
        let path = folder.join(FILE);
        finished(pieces::<Line<P>>(&path)?.into_iter().skip(1), &path)
    }
}

/// Returns a shard, in words for a message.
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

/// A line of the journal.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line<P> {
    Manifest(Manifest),
    Piece(P),
}

/// Work in progress.
#[derive(Debug)]
pub struct Work {
    manifest: Manifest,
    /// The path of the journal.
    path: PathBuf,
    /// `None` as long as no piece is finished; then nothing is written.
    journal: Option<Journal>,
}

impl Work {
    /// Adds finished pieces.
    ///
    /// # Errors
    /// The errors of [`Journal::open`] and [`Journal::add`].
    pub fn add<P: Serialize + DeserializeOwned>(
        &mut self,
        pieces: impl IntoIterator<Item = P>,
    ) -> Result<()> {
        let lines: Vec<Line<P>> = pieces.into_iter().map(Line::Piece).collect();
        if let Some(journal) = &mut self.journal {
            return journal.add(&lines);
        }
        let path = &self.path;
        let folder = io::parent(path);
        std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
        let (journal, finished) = self.manifest.open::<P>(path)?;
        // Between planning and the first piece, no process held the lock.
        if !finished.is_empty() {
            let problem = "was meanwhile started by another process";
            return Err(Error::input(path.display(), problem, "wait for it, or give another folder"));
        }
        self.journal.insert(journal).add(&lines)
    }

    /// Waits until everything is on disk.
    ///
    /// # Errors
    /// The errors of [`Journal::sync`].
    pub fn sync(&self) -> Result<()> {
        self.journal.as_ref().map_or(Ok(()), Journal::sync)
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
