//! Work on files in order, in which the result of each run of consecutive files is stored in its own file.
//!
//! A shard is a run of the files and is processed part by part. A part is finished once its file has its final name and its line is
//! in the journal. All parts of all shards, in order, give the whole.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::progress::FinishedPiece;
use super::{Manifest, Shard, Work};
use crate::corpus::{Listing, ListingIdentity, ReadOptions, ReadSummary};
use drift_core::io::{AtomicFile, hash_file};
use drift_core::job::InputHash;
use drift_core::{Error, Job, Result};

/// A part is full after this many bytes of input. At most this much work is lost when a process is killed.
const PART_BYTES: u64 = 128 << 20;

/// A finished piece of work, as a line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilesEntry {
    /// A part is finished.
    Part(Box<FilesPart>),
    /// The whole shard is finished.
    Done,
}

impl FinishedPiece for FilesEntry {
    const UNIT: &'static str = "records";

    fn finished(&self) -> u64 {
        self.part().map_or(0, |part| part.came.records)
    }

    fn seconds(&self) -> f64 {
        self.part().map_or(0.0, |part| part.seconds)
    }

    fn is_done(&self) -> bool {
        *self == FilesEntry::Done
    }
}

/// The result of a run of files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FilesPart {
    /// The files, by their indices among all files.
    pub files: Range<usize>,
    /// All files.
    pub of: ListingIdentity,
    /// The file next to the journal that contains the result.
    pub kept: InputHash,
    /// The summary of the result.
    pub came: FilesSummary,
    /// The time that it took, in seconds.
    pub seconds: f64,
}

/// The summary of a run of files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FilesSummary {
    /// The number of conformers or texts.
    pub records: u64,
    /// The summary of reading conformers.
    pub summary: ReadSummary,
    /// The number of skipped records by reason, if the work counts reasons.
    pub skipped_by_reason: BTreeMap<String, u64>,
    /// The number of records that need the reader's attention, by note.
    #[serde(default)]
    pub notes: BTreeMap<String, u64>,
    /// The number of conformers that were left out on request, by kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dropped: BTreeMap<String, u64>,
    /// The inputs that were read in addition to the files.
    pub beside: Vec<InputHash>,
}

/// Adds counts by name.
pub(crate) fn add_counts(counts: &mut BTreeMap<String, u64>, more: BTreeMap<String, u64>) {
    for (name, count) in more {
        *counts.entry(name).or_default() += count;
    }
}

impl FilesSummary {
    /// Returns the summary of files whose conformers were read with these options.
    pub(crate) fn new(summary: ReadSummary, options: &ReadOptions) -> Self {
        let beside = options.smiles.names.iter().map(|names| names.source.clone()).collect();
        FilesSummary { records: summary.conformers, summary, beside, ..FilesSummary::default() }
    }

    /// Appends the summary of the files that follow.
    pub fn append(&mut self, behind: FilesSummary) {
        self.records += behind.records;
        self.summary.append(behind.summary);
        add_counts(&mut self.notes, behind.notes);
        add_counts(&mut self.skipped_by_reason, behind.skipped_by_reason);
        add_counts(&mut self.dropped, behind.dropped);
        // `MergedFiles::add` refuses parts with different values, so the last one is representative.
        self.beside = behind.beside;
    }
}

/// The result of a shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilesDone {
    /// The number of files that were read.
    pub files: usize,
    /// The number of conformers or texts in them.
    pub records: u64,
    /// The number of records that could not be read.
    pub skipped: u64,
}

/// The files of a shard, and which of them are finished.
#[derive(Debug)]
pub struct FilesShard {
    listing: Listing,
    /// The indices of the shard's files.
    files: Range<usize>,
    folder: PathBuf,
    work: Work,
    finished: Vec<FilesEntry>,
    /// A part is full after this many bytes of input.
    part_bytes: u64,
}

/// Processes a run of files. Returns its summary, and the complete file with the result before the file gets the given name.
pub(crate) type DoFiles<'d> =
    dyn FnMut(&Listing, Range<usize>, &Path) -> Result<(FilesSummary, AtomicFile)> + 'd;

impl FilesShard {
    /// Begins or continues the work of a shard.
    ///
    /// # Errors
    /// If there are fewer files than shards, if the folder contains results for other files, and the errors of [`Manifest::begin`].
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
        let (work, finished) = manifest.begin::<FilesEntry>(folder)?;
        let of = listing.identity();
        if finished.iter().filter_map(FilesEntry::part).any(|part| part.of != of) {
            let remedy = "give another folder, or delete it to start again";
            return Err(Error::input(folder.display(), "was started with other input files", remedy));
        }
        let files = shard.run_of(&sizes);
        Ok(FilesShard { listing, files, folder: folder.to_owned(), work, finished, part_bytes: PART_BYTES })
    }

    /// This shard with parts of another size: `bytes` of input.
    #[must_use]
    pub fn with_parts_of(mut self, bytes: u64) -> Self {
        self.part_bytes = bytes;
        self
    }

    /// Returns the number of finished files, and the number of the shard's files.
    pub fn progress(&self) -> (usize, usize) {
        (self.first() - self.files.start, self.files.len())
    }

    /// Returns the index of the first file that is not finished.
    fn first(&self) -> usize {
        let ends = self.finished.iter().filter_map(FilesEntry::part).map(|part| part.files.end);
        // Parts are done in order, so all files before the largest end are finished.
        ends.fold(self.files.start, usize::max)
    }

    /// Processes the remaining files. `extension` is the extension of the parts' files.
    ///
    /// # Errors
    /// The errors of `each`, or if the system refuses to write.
    pub fn run(&mut self, extension: &str, job: &Job, each: &mut DoFiles<'_>) -> Result<FilesDone> {
        let sizes = self.listing.sizes();
        let of = self.listing.identity();
        let is_new = !self.folder.exists();
        std::fs::create_dir_all(&self.folder).map_err(|e| Error::io(&self.folder, e))?;
        for files in parts(&sizes, self.part_bytes, self.first()..self.files.end) {
            let begun = std::time::Instant::now();
            let path = self.folder.join(format!("part-{:08}.{extension}", files.start));
            let done = each(&self.listing, files.clone(), &path);
            if done.is_err() && is_new {
                // Fails, harmlessly, if the folder is not empty.
                let _ = std::fs::remove_dir(&self.folder);
            }
            let (came, file) = done?;
            // The file gets its name before the journal gets its line, so every listed part exists.
            file.commit()?;
            // The hash of the file on disk, so that a merge can detect any change.
            let kept = hash_file(&path, job)?;
            let part =
                FilesPart { files, of: of.clone(), kept, came, seconds: begun.elapsed().as_secs_f64() };
            self.add(FilesEntry::Part(Box::new(part)))?;
        }
        // Running a finished shard again must not extend its journal.
        if !self.finished.contains(&FilesEntry::Done) {
            self.add(FilesEntry::Done)?;
            self.work.sync()?;
        }
        let mut done = FilesDone { files: self.files.len(), records: 0, skipped: 0 };
        for part in self.finished.iter().filter_map(FilesEntry::part) {
            done.records += part.came.records;
            done.skipped += part.came.summary.skipped;
        }
        Ok(done)
    }

    fn add(&mut self, finished: FilesEntry) -> Result<()> {
        self.work.add([finished.clone()])?;
        self.finished.push(finished);
        Ok(())
    }
}

impl FilesEntry {
    fn part(&self) -> Option<&FilesPart> {
        match self {
            FilesEntry::Part(part) => Some(part),
            FilesEntry::Done => None,
        }
    }
}

/// Splits the files into runs of at least `full` bytes each, except for the last run.
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

/// All parts of all shards; in a partial merge, those that exist.
#[derive(Debug, Clone, Default)]
pub struct MergedFiles {
    /// The path of each part and its description, in order.
    pub parts: Vec<(PathBuf, FilesPart)>,
    /// Whether some parts are missing.
    pub is_partial: bool,
}

impl MergedFiles {
    /// Merges the parts from the folders of shards, in order.
    ///
    /// # Errors
    /// If the shards are not from the same files.
    pub fn from_shards(shards: Vec<(PathBuf, Vec<FilesEntry>)>, is_partial: bool) -> Result<Self> {
        let mut merged = MergedFiles { parts: Vec::new(), is_partial };
        for (folder, finished) in shards {
            for part in finished.iter().filter_map(FilesEntry::part) {
                merged.add(&folder, part)?;
            }
        }
        match merged.parts.last() {
            Some((path, last)) if last.files.end != last.of.files && !is_partial => Err(other_files(path)),
            _ => Ok(merged),
        }
    }

    fn add(&mut self, folder: &Path, part: &FilesPart) -> Result<()> {
        let (mut end, mut same) = (0, true);
        if let Some((_, last)) = self.parts.last() {
            end = last.files.end;
            same = last.of == part.of && last.came.beside == part.came.beside;
        }
        // In a partial merge, parts may be missing in between, but none may occur twice.
        let follows = if self.is_partial { part.files.start >= end } else { part.files.start == end };
        if !same || !follows {
            return Err(other_files(folder));
        }
        self.parts.push((folder.join(&part.kept.name), part.clone()));
        Ok(())
    }

    /// Returns the summary of all parts.
    pub fn came(&self) -> FilesSummary {
        let mut all = FilesSummary::default();
        self.parts.iter().for_each(|(_, part)| all.append(part.came.clone()));
        all.summary.is_partial = self.is_partial;
        all
    }

    /// Returns the summary of the conformers of all parts, with every input.
    ///
    /// # Errors
    /// If there are no conformers.
    pub(crate) fn read_summary(&self) -> Result<ReadSummary> {
        let FilesSummary { mut summary, beside, .. } = self.came();
        summary.inputs.extend(beside);
        let folders: Vec<PathBuf> = self.parts.iter().map(|(path, _)| path.clone()).collect();
        summary.refuse_if_empty(&folders)?;
        Ok(summary)
    }
}

fn other_files(place: &Path) -> Error {
    let problem = "was made from other input files, or one of them has changed since";
    Error::input(place.display(), problem, "make the shards again")
}

/// Refuses a part whose file has changed since it was made.
///
/// # Errors
/// If the file has changed.
pub(crate) fn check_part(path: &Path, found: &InputHash, part: &FilesPart) -> Result<()> {
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
