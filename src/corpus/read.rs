//! Reading corpora: inputs to files, files to streams, streams to the reader of their format.

use std::io::{BufRead, Cursor, Read, Write};
use std::path::{Path, PathBuf};

use super::archive::{self, Member};
use super::damage::read_error;
use super::source::{self, Format, KNOWN_FORMATS};
use super::walk::{self, InputFile};
use super::{
    AtomOrder, Batch, Context, Emit, ReadOptions, Skipped, Source, jsonl, msgpack, pickles, plain, sdf,
    side_by_side, xyz,
};
use crate::error::{Error, Result};
use crate::io;
use crate::job::{InputHash, Job, Unit};
use crate::text::Written;

/// How many skipped records a summary lists; it counts them all.
pub const SKIPPED_LISTED: usize = 1_000;

/// The largest pickle that is read, in bytes: they are read whole.
const MAX_PICKLE_BYTES: u64 = 2 << 30;

/// The largest HDF5 file that is unpacked, in bytes: into a temporary file.
const MAX_UNPACKED_BYTES: u64 = 8 << 30;

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadSummary {
    /// How many conformers.
    pub conformers: u64,
    /// How many records could not be read.
    pub skipped: u64,
    /// The first [`SKIPPED_LISTED`] of them.
    pub skipped_records: Vec<Skipped>,
    /// The files, in the order read.
    pub inputs: Vec<InputHash>,
    /// The dialects that all texts agreed with; both where no file held text.
    pub written: Written,
    /// Conformers whose atoms are in the order of the file, not of a SMILES.
    pub in_file_order: u64,
    /// The first [`SKIPPED_LISTED`] of them, and why.
    pub in_file_order_records: Vec<Skipped>,
    /// Conformers with stereo that their SMILES leaves open.
    pub open_stereo: u64,
    /// The first [`SKIPPED_LISTED`] of them, and where.
    pub open_stereo_records: Vec<Skipped>,
}

/// Reads `inputs`, files and folders, and hands their conformers to `emit`, batch by batch, in order.
///
/// Content decides how a file is read. What cannot be read of a file is skipped, counted and listed; so is a file of
/// unknown content in a folder or an archive. Pickles of up to 4 MiB are read side by side, a few a thread. Memory is bounded by
/// these, a few blocks of text and one pickle (2 GiB at most); HDF5 inside gzip or an archive goes through a temporary file (8 GiB at most).
///
/// # Errors
/// - an input does not exist, or is a file of unknown content;
/// - a container (gzip, tar, HDF5) is truncated or damaged;
/// - no conformer could be read at all;
/// - the job was cancelled; and whatever `emit` returns.
pub fn read(
    inputs: &[PathBuf],
    options: &ReadOptions,
    job: &Job,
    emit: &mut Emit<'_>,
) -> Result<ReadSummary> {
    if inputs.is_empty() {
        return Err(Error::input("INPUT", "no input given", "name a file or a folder"));
    }
    let mut summary = ReadSummary::new();
    let mut not_files = Vec::new();
    let files = walk::files(inputs, &mut not_files)?;
    summary.count(&Batch { skipped: not_files, ..Batch::default() });
    let total = files.iter().all(|f| f.regular).then(|| files.iter().map(|f| f.bytes).sum());
    let context = Context { options, job };
    job.observer().begin("reading", total, Unit::Bytes);
    let mut counted = |batch: Batch, summary: &mut ReadSummary| {
        job.check()?;
        summary.count(&batch);
        emit(batch)
    };
    let outcome = side_by_side::runs(&files).try_for_each(|run| {
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
    // First, since a read that a cancelled job gave up looks like a damaged file.
    job.check()?;
    outcome?;
    summary.inputs.extend(options.smiles.names.iter().map(|names| names.source.clone()));
    summary.refuse_if_empty(inputs)?;
    Ok(summary)
}

impl ReadSummary {
    /// Nothing read yet.
    pub(crate) fn new() -> Self {
        ReadSummary {
            conformers: 0,
            skipped: 0,
            skipped_records: Vec::new(),
            inputs: Vec::new(),
            written: Written::ANY,
            in_file_order: 0,
            in_file_order_records: Vec::new(),
            open_stereo: 0,
            open_stereo_records: Vec::new(),
        }
    }

    /// Counts a batch.
    pub(super) fn count(&mut self, batch: &Batch) {
        self.conformers += batch.conformers.len() as u64;
        self.skipped += batch.skipped.len() as u64;
        list(&mut self.skipped_records, &batch.skipped);
        self.in_file_order += batch.conformers.iter().filter(|c| c.order == AtomOrder::File).count() as u64;
        list(&mut self.in_file_order_records, &batch.in_file_order);
        self.open_stereo += batch.open_stereo_count;
        list(&mut self.open_stereo_records, &batch.open_stereo);
        self.written = batch.conformers.iter().fold(self.written, |all, c| all.join(c.written));
    }

    pub(super) fn refuse_if_empty(&self, inputs: &[PathBuf]) -> Result<()> {
        if self.conformers > 0 {
            return Ok(());
        }
        let Some(first) = self.skipped_records.first() else {
            let place = inputs.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
            return Err(Error::input(place, "no conformer could be read: no record", KNOWN_FORMATS));
        };
        let (skipped, Skipped { file, record, reason }) = (self.skipped, first);
        let records = if skipped == 1 { "record" } else { "records" };
        let problem =
            format!("no conformer could be read: {skipped} {records} skipped, first: {record}: {reason}");
        Err(Error::input(file, problem, "is this the right file?"))
    }
}

/// Adds records to a list, as far as it goes.
fn list(records: &mut Vec<Skipped>, more: &[Skipped]) {
    let room = SKIPPED_LISTED - records.len();
    records.extend(more.iter().take(room).map(Skipped::shown));
}

/// Reads one file of any content.
fn read_file(file: &InputFile, context: Context<'_>, emit: &mut Emit<'_>) -> Result<InputHash> {
    let place = file.place();
    let mut opened = io::open(&file.path, context.job);
    let prefix = source::prefix(&mut opened.reader).map_err(|e| read_error(&place, e))?;
    let format = Format::of(&prefix);
    if format == Some(Format::Hdf5) && file.regular && !opened.compressed() {
        // HDF5 is read from its path; this pass only hashes.
        let before = stamp(&file.path)?;
        let hash = opened.finish(file.name()).map_err(|e| read_error(&place, e))?;
        read_hdf5(&file.path, &place, context, emit)?;
        if before != stamp(&file.path)? || before.0 != hash.bytes {
            return Err(Error::input(place, "changed while it was read", "wait until it is written"));
        }
        return Ok(hash);
    }
    let is_tar = source::is_tar(&prefix);
    let mut stream = Cursor::new(prefix.as_slice()).chain(&mut opened.reader);
    if is_tar {
        archive::read(&place, &mut stream, context, &mut |member| match member {
            Member::File(name, content) => read_member(name, content, context, emit),
            Member::Skipped(skipped) => emit(Batch { skipped: vec![skipped], ..Batch::default() }),
        })?;
    } else if let Some(format) = format {
        read_format(format, Source { name: place.clone(), reader: &mut stream }, context, emit)?;
    } else if file.folder.is_some() {
        emit(unknown(place.clone(), &prefix))?;
    } else {
        let reason = unknown_reason(&prefix);
        return Err(Error::input(place, reason, KNOWN_FORMATS));
    }
    opened.finish(file.name()).map_err(|e| read_error(&place, e))
}

/// Size and time of the last change of a file.
fn stamp(path: &Path) -> Result<(u64, Option<std::time::SystemTime>)> {
    let metadata = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
    Ok((metadata.len(), metadata.modified().ok()))
}

/// Reads a member of an archive, of any content but another archive.
fn read_member(
    name: String,
    content: &mut dyn BufRead,
    context: Context<'_>,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let prefix = source::prefix(content).map_err(|e| read_error(&name, e))?;
    let Some(format) = Format::of(&prefix) else { return emit(unknown(name, &prefix)) };
    let mut stream = Cursor::new(prefix.as_slice()).chain(content);
    read_format(format, Source { name, reader: &mut stream }, context, emit)
}

/// The note that a file of unknown content was passed over.
fn unknown(file: String, prefix: &[u8]) -> Batch {
    let reason = unknown_reason(prefix).to_owned();
    Batch { skipped: vec![Skipped { file, record: "file".to_owned(), reason }], ..Batch::default() }
}

fn unknown_reason(prefix: &[u8]) -> &'static str {
    if prefix.is_empty() {
        "the file is empty"
    } else if source::is_tar(prefix) {
        "an archive inside an archive"
    } else {
        "unknown content"
    }
}

/// Hands a stream to the reader of its format.
fn read_format(format: Format, source: Source<'_>, context: Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
    match format {
        Format::Jsonl => jsonl::read(source, context, emit),
        Format::Plain => plain::read(source, context, emit),
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
fn read_hdf5(path: &Path, name: &str, context: Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
    super::hdf5::read(path, name, context, emit)
}

/// Without its library HDF5 is known, but cannot be read.
#[cfg(not(feature = "hdf5"))]
fn read_hdf5(_: &Path, name: &str, _: Context<'_>, _: &mut Emit<'_>) -> Result<()> {
    Err(Error::input(name, "is HDF5, which this drift was built without", "build it with --features hdf5"))
}

/// The whole of a stream, of at most [`MAX_PICKLE_BYTES`].
fn whole(reader: &mut dyn BufRead, name: &str, job: &Job) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    copy(reader, name, job, MAX_PICKLE_BYTES, &mut |block| {
        bytes.try_reserve(block.len()).map_err(|_| Error::input(name, "does not fit memory", ""))?;
        bytes.extend_from_slice(block);
        Ok(())
    })?;
    Ok(bytes)
}

/// A stream as a temporary file, gone when dropped.
fn spool(reader: &mut dyn BufRead, name: &str, job: &Job) -> Result<tempfile::NamedTempFile> {
    // The kind alone: the whole error may name the temporary file.
    let fail = |error: std::io::Error| {
        let problem = format!("cannot be unpacked into {}: {}", std::env::temp_dir().display(), error.kind());
        Error::input(name, problem, "unpack it first, or set TMPDIR to a folder with room")
    };
    let mut file = tempfile::Builder::new().prefix("drift-").tempfile().map_err(fail)?;
    copy(reader, name, job, MAX_UNPACKED_BYTES, &mut |block| file.write_all(block).map_err(fail))?;
    Ok(file)
}

/// Hands on a stream of at most `limit` bytes.
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
            return Err(Error::input(name, problem, "is this the right file? if it is, unpack it first"));
        }
        out(bytes)?;
        reader.consume(n);
    }
}
