//! Reads corpora: resolves inputs to files, opens files as streams, and passes each stream to the reader of its format.

use std::collections::HashSet;
use std::io::{BufRead, Cursor, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::archive::{Member, read_tar, read_zip};
use super::damage::read_error;
use super::source::{self, Format};
use super::summary::ReadSummary;
use super::walk::{self, InputFile};
use super::{
    Batch, BatchSink, Context, ReadOptions, SkippedRecord, Source, jsonl, lines, msgpack, pickles, sdf,
    side_by_side, table, xyz,
};
use drift_core::io;
use drift_core::job::{InputHash, Unit};
use drift_core::{Error, Job, Result};

/// The largest pickle that is read, in bytes, since a pickle is read into memory whole.
const MAX_PICKLE_BYTES: u64 = 2 << 30;

/// The largest HDF5 file that is unpacked into a temporary file, in bytes.
const MAX_UNPACKED_BYTES: u64 = 8 << 30;

/// Reads `inputs`, which are files and folders, and passes their conformers to `emit`, batch by batch, in order.
///
/// The content of a file determines how it is read. Records that cannot be read are skipped, counted and listed, and so are files
/// of unknown content in a folder or an archive. Pickles of up to 4 MiB are read in parallel, a few per thread. Memory is bounded
/// by these pickles, a few blocks of text and one large pickle (at most 2 GiB). HDF5 or zip inside gzip or an archive
/// goes through a temporary file (at most 8 GiB).
///
/// # Errors
/// - an input does not exist, or is a file of unknown content;
/// - a container (gzip, zstd, tar, zip, HDF5) is truncated or damaged;
/// - no conformer could be read at all;
/// - the job was cancelled, or `emit` failed.
pub fn read(
    inputs: &[PathBuf],
    options: &ReadOptions,
    job: &Job,
    emit: &mut BatchSink<'_>,
) -> Result<ReadSummary> {
    let mut listing = Listing::from_inputs(inputs)?;
    if options.once {
        listing.leave_out_repeated();
    }
    let mut summary = listing.read(0..listing.len(), options, job, emit)?;
    summary.inputs.extend(options.smiles.names.iter().map(|names| names.source.clone()));
    summary.refuse_if_empty(inputs)?;
    Ok(summary)
}

/// What tells the files of a listing from others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListingIdentity {
    /// The number of files.
    pub files: usize,
    /// Their total size in bytes.
    pub bytes: u64,
    /// The hash of their names and sizes, in order.
    pub sha256: String,
}

/// The files of the inputs, in reading order.
#[derive(Debug)]
pub struct Listing {
    files: Vec<InputFile>,
    not_files: Vec<SkippedRecord>,
}

impl Listing {
    /// Lists the named files, and the files in the named folders.
    ///
    /// # Errors
    /// If `inputs` is empty, an input does not exist, or a folder cannot be listed or contains no file.
    pub fn from_inputs(inputs: &[PathBuf]) -> Result<Self> {
        if inputs.is_empty() {
            return Err(Error::input("INPUT", "no input given", "give a file or a folder"));
        }
        let mut not_files = Vec::new();
        let files = walk::files(inputs, &mut not_files)?;
        Ok(Listing { files, not_files })
    }

    /// Leaves out files that were listed before, by whatever path.
    fn leave_out_repeated(&mut self) {
        let mut listed = HashSet::new();
        // A file that is no longer there is told when it is read.
        self.files.retain(|file| file.path.canonicalize().map_or(true, |path| listed.insert(path)));
    }

    /// Returns the number of files.
    #[allow(clippy::len_without_is_empty, reason = "there is always a file")]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Returns the size of each file in bytes, in order; 0 for a pipe.
    pub fn sizes(&self) -> Vec<u64> {
        self.files.iter().map(|file| file.bytes).collect()
    }

    /// Returns what tells these files from others without reading them: how many, how large, and a hash of their names and sizes. Names
    /// are relative to the folder that was given, so that the location of the folder does not matter.
    pub fn identity(&self) -> ListingIdentity {
        let names: String =
            self.files.iter().map(|file| format!("{} {:?}\n", file.bytes, file.name())).collect();
        ListingIdentity {
            files: self.files.len(),
            bytes: self.files.iter().map(|file| file.bytes).sum(),
            sha256: io::hash_bytes("", names.as_bytes()).sha256,
        }
    }

    /// Reads a range of the files as [`read()`] does, but accepts files without any conformer. Inputs that are not files count as
    /// skipped before the first file.
    ///
    /// # Errors
    /// The errors of [`read()`], except that no conformer is needed.
    pub fn read(
        &self,
        files: Range<usize>,
        options: &ReadOptions,
        job: &Job,
        emit: &mut BatchSink<'_>,
    ) -> Result<ReadSummary> {
        let mut summary = ReadSummary::default();
        // If parts of the listing are read separately, only the first part counts these, so that none is counted twice.
        if files.start == 0 {
            summary.count(
                &Batch { skipped: self.not_files.clone(), ..Batch::default() },
                options.reading.encoding,
            );
        }
        let files = &self.files[files];
        let total = files.iter().all(|f| f.regular).then(|| files.iter().map(|f| f.bytes).sum());
        let context = Context { options, job };
        job.observer().begin("reading", total, Unit::Bytes);
        let mut counted = |batch: Batch, summary: &mut ReadSummary| {
            job.check()?;
            summary.count(&batch, options.reading.encoding);
            emit(batch)
        };
        let outcome = side_by_side::runs(files).try_for_each(|run| {
            for (file, read) in run.iter().zip(side_by_side::read(run, context)) {
                let hash = match read {
                    Some(read) => {
                        let (hash, batches) = read?;
                        batches.into_iter().try_for_each(|batch| counted(batch, &mut summary))?;
                        hash
                    }
                    None => read_file(file, context, &mut |batch| counted(batch, &mut summary))?,
                };
                summary.inputs.push(hash);
            }
            Ok(())
        });
        job.observer().end();
        // Checked first, since a read that a cancelled job aborted looks like a damaged file.
        job.check()?;
        outcome?;
        Ok(summary)
    }
}

/// Reads one file of any format.
fn read_file(file: &InputFile, context: Context<'_>, emit: &mut BatchSink<'_>) -> Result<InputHash> {
    let place = file.place();
    let mut opened = io::open_any(&file.path, context.job);
    let prefix = source::prefix(&mut opened.reader).map_err(|e| read_error(&place, e))?;
    let format = Format::from_prefix(&prefix);
    let (is_hdf5, is_zip) = (format == Some(Format::Hdf5), io::is_zip(&prefix));
    if (is_hdf5 || is_zip) && file.regular && !opened.compressed() {
        // Both are read through the path; this pass only hashes the file.
        let before = stamp(&file.path)?;
        let hash = opened.finish(file.name()).map_err(|e| read_error(&place, e))?;
        if is_zip {
            read_members(&file.path, &place, context, emit)?;
        } else {
            context.options.rows.refuse(&place, Format::Hdf5.name())?;
            context.options.needs.refuse(&place, Format::Hdf5)?;
            let name: Arc<str> = place.as_str().into();
            read_hdf5(&file.path, &place, context, &mut |batch| emit(batch.of_file(&name)))?;
        }
        if before != stamp(&file.path)? || before.0 != hash.bytes {
            return Err(Error::input(
                place,
                "changed while it was read",
                "wait until it is completely written",
            ));
        }
        return Ok(hash);
    }
    let is_tar = source::is_tar(&prefix);
    let mut stream = Cursor::new(prefix.as_slice()).chain(&mut opened.reader);
    if is_tar {
        read_tar(&place, &mut stream, context, &mut |member| take_member(member, context, emit))?;
    } else if is_zip {
        let spooled = spool(&mut stream, &place, context.job)?;
        read_members(spooled.path(), &place, context, emit)?;
    } else if let Some(format) = format {
        read_format(format, Source { name: place.clone(), reader: &mut stream }, context, emit)?;
    } else if file.folder.is_some() {
        emit(unknown(place.clone(), &prefix))?;
    } else {
        let (reason, remedy) = source::unknown(&prefix);
        return Err(Error::input(place, reason, remedy));
    }
    opened.finish(file.name()).map_err(|e| read_error(&place, e))
}

/// Reads the members of the zip archive at `path`, which is called `name`.
fn read_members(path: &Path, name: &str, context: Context<'_>, emit: &mut BatchSink<'_>) -> Result<()> {
    let archive = std::fs::File::open(path).map_err(|e| Error::io(path, e))?;
    read_zip(name, archive, context, &mut |member| take_member(member, context, emit))
}

fn take_member(member: Member<'_>, context: Context<'_>, emit: &mut BatchSink<'_>) -> Result<()> {
    match member {
        Member::File(name, content) => read_member(name, content, context, emit),
        Member::Skipped(skipped) => emit(Batch { skipped: vec![skipped], ..Batch::default() }),
    }
}

/// Returns the size of a file and its time of last change.
fn stamp(path: &Path) -> Result<(u64, Option<std::time::SystemTime>)> {
    let metadata = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
    Ok((metadata.len(), metadata.modified().ok()))
}

/// Reads a member of an archive. An archive inside the archive is not read.
fn read_member(
    name: String,
    content: &mut dyn BufRead,
    context: Context<'_>,
    emit: &mut BatchSink<'_>,
) -> Result<()> {
    let prefix = source::prefix(content).map_err(|e| read_error(&name, e))?;
    let Some(format) = Format::from_prefix(&prefix) else { return emit(unknown(name, &prefix)) };
    let mut stream = Cursor::new(prefix.as_slice()).chain(content);
    read_format(format, Source { name, reader: &mut stream }, context, emit)
}

/// Returns a batch that reports a file of unknown content as skipped.
fn unknown(file: String, prefix: &[u8]) -> Batch {
    let (reason, _) = source::unknown(prefix);
    Batch { skipped: vec![SkippedRecord { file, record: "file".to_owned(), reason }], ..Batch::default() }
}

/// Passes a stream to the reader of its format.
fn read_format(
    format: Format,
    source: Source<'_>,
    context: Context<'_>,
    emit: &mut BatchSink<'_>,
) -> Result<()> {
    if !matches!(format, Format::Jsonl | Format::Table) {
        context.options.rows.refuse(&source.name, format.name())?;
    }
    context.options.needs.refuse(&source.name, format)?;
    let file: Arc<str> = source.name.as_str().into();
    let emit: &mut BatchSink<'_> = &mut |batch| emit(batch.of_file(&file));
    match format {
        Format::Jsonl => jsonl::read(source, context, emit),
        Format::Plain => lines::read_plain(source, context, emit),
        Format::Table => table::read(source, context, emit),
        Format::Sdf => sdf::read(source, context, emit),
        Format::Xyz => xyz::read(source, context, emit),
        Format::Msgpack => msgpack::read(source, context, emit),
        Format::Pickle => {
            let bytes = whole(source.reader, &source.name, context.job)?;
            pickles::read(&bytes, &source.name, context, emit)
        }
        Format::Hdf5 => {
            let spooled = spool(source.reader, &source.name, context.job)?;
            read_hdf5(spooled.path(), &source.name, context, emit)
        }
    }
}

#[cfg(feature = "hdf5")]
fn read_hdf5(path: &Path, name: &str, context: Context<'_>, emit: &mut BatchSink<'_>) -> Result<()> {
    super::hdf5::read(path, name, context, emit)
}

/// Without the HDF5 library, the format is recognized but cannot be read.
#[cfg(not(feature = "hdf5"))]
fn read_hdf5(_: &Path, name: &str, _: Context<'_>, _: &mut BatchSink<'_>) -> Result<()> {
    Err(Error::input(
        name,
        "is HDF5, which this build of drift does not support",
        "build it with --features hdf5",
    ))
}

/// Reads a whole stream of at most 2 GiB.
///
/// # Errors
/// If it is larger or damaged, does not fit into memory, or the job was cancelled.
pub(crate) fn whole(reader: &mut dyn BufRead, name: &str, job: &Job) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    copy(reader, name, job, MAX_PICKLE_BYTES, &mut |block| {
        // Memory that cannot be reserved is an error of this file, whereas a failed allocation would abort the program.
        bytes.try_reserve(block.len()).map_err(|_| Error::input(name, "does not fit into memory", ""))?;
        bytes.extend_from_slice(block);
        Ok(())
    })?;
    Ok(bytes)
}

/// Copies a stream into a temporary file, which is deleted when dropped.
fn spool(reader: &mut dyn BufRead, name: &str, job: &Job) -> Result<tempfile::NamedTempFile> {
    // Only the error's kind is shown: the full error may name the temporary file.
    let fail = |error: std::io::Error| {
        let problem = format!("cannot be unpacked into {}: {}", std::env::temp_dir().display(), error.kind());
        Error::input(name, problem, "unpack it first, or set TMPDIR to a folder with room")
    };
    let mut file = tempfile::Builder::new().prefix("drift-").tempfile().map_err(fail)?;
    copy(reader, name, job, MAX_UNPACKED_BYTES, &mut |block| file.write_all(block).map_err(fail))?;
    Ok(file)
}

/// Passes a stream of at most `limit` bytes to `out`, block by block.
fn copy(
    reader: &mut dyn BufRead,
    name: &str,
    job: &Job,
    limit: u64,
    out: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut copied = 0;
    loop {
        job.check()?;
        let bytes = reader.fill_buf().map_err(|e| read_error(name, e))?;
        let n = bytes.len();
        if n == 0 {
            return Ok(());
        }
        copied += n as u64;
        if copied > limit {
            let problem = format!("larger than {} MiB unpacked", limit >> 20);
            return Err(Error::input(name, problem, "if this is the right file, unpack it first"));
        }
        out(bytes)?;
        reader.consume(n);
    }
}
