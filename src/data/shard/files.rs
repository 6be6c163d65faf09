//! Work on files, one after another, where what comes of a run of files is kept in a file of its own.
//!
//! A shard has a run of the files, and does it part by part: a part is finished once its file has its name and its line is in
//! the journal. All parts of all shards in order are the whole.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::progress::FinishedPiece;
use super::{Manifest, Shard, Work};
use crate::corpus::{Listing, ReadSummary};
use drift_core::error::{Error, Result};
use drift_core::io::{AtomicFile, hash_file};
use drift_core::job::{InputHash, Job};

/// Bytes of input after which a part is full: what a process that is killed may lose.
const PART_BYTES: u64 = 128 << 20;

/// Something finished.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilesFinished {
    /// A part.
    Part(Box<FilesPart>),
    /// Nothing is left to do.
    Done,
}

impl FinishedPiece for FilesFinished {
    const UNIT: &'static str = "records";

    fn finished(&self) -> u64 {
        match self {
            FilesFinished::Part(part) => part.came.records,
            FilesFinished::Done => 0,
        }
    }

    fn seconds(&self) -> f64 {
        match self {
            FilesFinished::Part(part) => part.seconds,
            FilesFinished::Done => 0.0,
        }
    }

    fn is_done(&self) -> bool {
        *self == FilesFinished::Done
    }
}

/// What came of a run of files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FilesPart {
    /// Which files, by their places among all.
    pub files: Range<usize>,
    /// How many files there are in all, and their bytes.
    pub of: (usize, u64),
    /// The file beside the journal that holds it.
    pub kept: InputHash,
    /// What there is to say of it.
    pub came: FilesSummary,
    /// How long it took, in seconds.
    pub seconds: f64,
}

/// What there is to say of a run of files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FilesSummary {
    /// How many conformers or texts.
    pub records: u64,
    /// What was read of conformers.
    pub summary: ReadSummary,
    /// How many records were skipped for which reason, where that is told.
    pub skipped_by_reason: BTreeMap<String, u64>,
    /// How many records have what a reader should know of, by what it is.
    #[serde(default)]
    pub notes: BTreeMap<String, u64>,
    /// What was read beside the files.
    pub beside: Vec<InputHash>,
}

impl FilesSummary {
    /// Adds what came of the files behind.
    pub fn append(&mut self, behind: FilesSummary) {
        self.records += behind.records;
        self.summary.append(behind.summary);
        for (note, count) in behind.notes {
            *self.notes.entry(note).or_default() += count;
        }
        for (reason, count) in behind.skipped_by_reason {
            *self.skipped_by_reason.entry(reason).or_default() += count;
        }
        // `MergedFiles::add` refuses parts that differ in it, so the last stands for all.
        self.beside = behind.beside;
    }
}

/// What a shard has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilesDone {
    /// Files that were read.
    pub files: usize,
    /// Conformers or texts of them.
    pub records: u64,
    /// Records that could not be read.
    pub skipped: u64,
}

/// The files of a shard, and what is finished of them.
#[derive(Debug)]
pub struct FilesShard {
    listing: Listing,
    /// Those of the shard.
    files: Range<usize>,
    folder: PathBuf,
    work: Work,
    finished: Vec<FilesFinished>,
    /// Bytes of input after which a part is full.
    part_bytes: u64,
}

/// Does a run of files: what came of them, and the file that holds it, whole, but not yet under the name that it was given.
pub type DoFiles<'d> = dyn FnMut(&Listing, Range<usize>, &Path) -> Result<(FilesSummary, AtomicFile)> + 'd;

impl FilesShard {
    /// Work that begins, or goes on.
    ///
    /// # Errors
    /// If there are fewer files than shards, what is there is of other files, or as [`Manifest::begin`].
    pub fn begin(manifest: &Manifest, shard: Shard, folder: &Path, inputs: &[PathBuf]) -> Result<Self> {
        let listing = Listing::from_inputs(inputs)?;
        let sizes = listing.sizes();
        if sizes.len() < shard.of() as usize {
            let count = match sizes.len() {
                1 => "is one file".to_owned(),
                many => format!("are {many} files"),
            };
            let remedy = "give fewer shards, or unpack archives: a shard reads whole files";
            return Err(Error::input(format!("--shard {shard}"), format!("there {count}"), remedy));
        }
        let (work, finished) = manifest.begin::<FilesFinished>(folder)?;
        let of = (sizes.len(), sizes.iter().sum());
        let others = |one: &FilesFinished| matches!(one, FilesFinished::Part(part) if part.of != of);
        if finished.iter().any(others) {
            let remedy = "give another folder, or delete it to start again";
            return Err(Error::input(folder.display(), "was started with other input files", remedy));
        }
        let files = shard.run_of(&sizes);
        Ok(FilesShard { listing, files, folder: folder.to_owned(), work, finished, part_bytes: PART_BYTES })
    }

    /// This shard with smaller parts, or larger ones: so many bytes of input.
    #[must_use]
    pub fn with_parts_of(mut self, bytes: u64) -> Self {
        self.part_bytes = bytes;
        self
    }

    /// How many files are finished, and how many there are.
    pub fn progress(&self) -> (usize, usize) {
        (self.first() - self.files.start, self.files.len())
    }

    /// Where the rest begins.
    fn first(&self) -> usize {
        let ends = self.finished.iter().filter_map(|one| match one {
            FilesFinished::Part(part) => Some(part.files.end),
            FilesFinished::Done => None,
        });
        // Parts are done in order, so nothing before the furthest end is missing.
        ends.fold(self.files.start, usize::max)
    }

    /// Does what is left. `extension` is that of the parts' files.
    ///
    /// # Errors
    /// What `each` gives, or if the system refuses.
    pub fn run(&mut self, extension: &str, job: &Job, each: &mut DoFiles<'_>) -> Result<FilesDone> {
        let sizes = self.listing.sizes();
        let of = (sizes.len(), sizes.iter().sum());
        let is_new = !self.folder.exists();
        std::fs::create_dir_all(&self.folder).map_err(|e| Error::io(&self.folder, e))?;
        for files in parts(&sizes, self.part_bytes, self.first()..self.files.end) {
            let begun = std::time::Instant::now();
            let path = self.folder.join(format!("part-{:08}.{extension}", files.start));
            let done = each(&self.listing, files.clone(), &path);
            if done.is_err() && is_new {
                // Only if nothing is in it.
                let _ = std::fs::remove_dir(&self.folder);
            }
            let (came, file) = done?;
            // The file has its name before the journal has its line: a part that is listed is there.
            file.commit()?;
            // Of what lies on the disk, so that a merge can tell whether it still does.
            let kept = hash_file(&path, job)?;
            let part = FilesPart { files, of, kept, came, seconds: begun.elapsed().as_secs_f64() };
            self.add(FilesFinished::Part(Box::new(part)))?;
        }
        // A shard that is run once more when it is done must not grow its journal.
        if !self.finished.contains(&FilesFinished::Done) {
            self.add(FilesFinished::Done)?;
            self.work.sync()?;
        }
        let mut done = FilesDone { files: self.files.len(), records: 0, skipped: 0 };
        for part in self.finished.iter().filter_map(FilesFinished::part) {
            done.records += part.came.records;
            done.skipped += part.came.summary.skipped;
        }
        Ok(done)
    }

    fn add(&mut self, finished: FilesFinished) -> Result<()> {
        self.work.add([finished.clone()])?;
        self.finished.push(finished);
        Ok(())
    }
}

impl FilesFinished {
    fn part(&self) -> Option<&FilesPart> {
        match self {
            FilesFinished::Part(part) => Some(part),
            FilesFinished::Done => None,
        }
    }
}

/// Files in runs of at least so many bytes, the last one aside.
fn parts(sizes: &[u64], full: u64, files: Range<usize>) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut start, mut bytes) = (files.start, 0);
    for file in files.clone() {
        bytes += sizes[file];
        if bytes >= full {
            parts.push(start..file + 1);
            (start, bytes) = (file + 1, 0);
        }
    }
    if start < files.end {
        parts.push(start..files.end);
    }
    parts
}

/// All parts of all shards, or those that there are.
#[derive(Debug, Clone, Default)]
pub struct MergedFiles {
    /// Where they lie, and what they are, in order.
    pub parts: Vec<(PathBuf, FilesPart)>,
    /// Whether some of it is missing.
    pub is_partial: bool,
}

impl MergedFiles {
    /// Of the folders of shards, in their order.
    ///
    /// # Errors
    /// If they were not of the same files.
    pub fn from_shards(shards: Vec<(PathBuf, Vec<FilesFinished>)>, is_partial: bool) -> Result<Self> {
        let mut merged = MergedFiles { parts: Vec::new(), is_partial };
        for (folder, finished) in shards {
            for part in finished.iter().filter_map(FilesFinished::part) {
                merged.add(&folder, part)?;
            }
        }
        match merged.parts.last() {
            Some((path, last)) if last.files.end != last.of.0 && !is_partial => Err(other_files(path)),
            _ => Ok(merged),
        }
    }

    fn add(&mut self, folder: &Path, part: &FilesPart) -> Result<()> {
        let (mut end, mut same) = (0, true);
        if let Some((_, last)) = self.parts.last() {
            end = last.files.end;
            same = last.of == part.of && last.came.beside == part.came.beside;
        }
        // Of a partial merge parts may be missing between two, but none may come twice.
        let follows = if self.is_partial { part.files.start >= end } else { part.files.start == end };
        if !same || !follows {
            return Err(other_files(folder));
        }
        self.parts.push((folder.join(&part.kept.name), part.clone()));
        Ok(())
    }

    /// What there is to say of all of them.
    pub fn came(&self) -> FilesSummary {
        let mut all = FilesSummary::default();
        self.parts.iter().for_each(|(_, part)| all.append(part.came.clone()));
        all
    }
}

fn other_files(place: &Path) -> Error {
    let problem = "was made from other input files, or one of them has changed since";
    Error::input(place.display(), problem, "make the shards again")
}

/// Refuses a part that is not what it was when it was made.
///
/// # Errors
/// If it is not.
pub fn check_part(path: &Path, found: &InputHash, part: &FilesPart) -> Result<()> {
    if *found == part.kept {
        return Ok(());
    }
    let problem = "is not what the shard wrote: its bytes changed";
    Err(Error::input(path.display(), problem, "delete the shard and run its command again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_runs_of_files() {
        const MEGABYTE: u64 = 1 << 20;
        let sizes = [10, 20, 200, 100, 30, 1, 500].map(|size| size * MEGABYTE);
        assert_eq!(parts(&sizes, PART_BYTES, 0..7), [0..3, 3..5, 5..7]);
        assert_eq!(parts(&sizes, PART_BYTES, 6..7).len(), 1);
        assert_eq!(parts(&sizes, PART_BYTES, 5..6).len(), 1);
        assert!(parts(&sizes, PART_BYTES, 4..4).is_empty());
        assert_eq!(parts(&[0; 3], 1, 0..3).len(), 1);
    }
}
