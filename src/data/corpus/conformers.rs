//! Where conformers come from: files, or the corpus that comes with drift.

use std::io::Cursor;
use std::path::PathBuf;

use super::smiles_order::SmilesSource;
use super::summary::ReadSummary;
use super::{Context, Emit, ReadOptions, Source, jsonl, plain, read};
use drift_core::encoding::{Encoding, Precision, Reading, Written};
use drift_core::error::{Error, Parameter, Result};
use drift_core::io;
use drift_core::job::{InputHash, Job, Unit};

/// A source of conformers that can be read again and gives the same ones in the same order.
pub trait Conformers: Sync {
    /// Hands all conformers to `emit`, batch by batch.
    ///
    /// # Errors
    /// As [`read`](super::read()).
    fn read(&self, job: &Job, emit: &mut Emit<'_>) -> Result<ReadSummary>;

    /// Refuses a source that is gone once it was read, such as a pipe.
    ///
    /// # Errors
    /// If it is one.
    fn can_be_read_again(&self) -> Result<()> {
        Ok(())
    }

    /// The decimals of its coordinates, and how its texts are read.
    fn reading(&self) -> Reading {
        Reading::default()
    }
}

/// Files and folders.
#[derive(Debug, Clone)]
pub struct Files {
    /// Where they are.
    pub inputs: Vec<PathBuf>,
    /// How they are read.
    pub options: ReadOptions,
}

impl Conformers for Files {
    fn read(&self, job: &Job, emit: &mut Emit<'_>) -> Result<ReadSummary> {
        read(&self.inputs, &self.options, job, emit)
    }

    fn can_be_read_again(&self) -> Result<()> {
        let gone = |path: &&PathBuf| std::fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir());
        match self.inputs.iter().find(gone) {
            None => Ok(()),
            Some(pipe) => {
                let problem = "a pipe cannot be read twice, and it holds more than is kept in memory";
                Err(Error::input(pipe.display(), problem, "write it to a file first"))
            }
        }
    }

    fn reading(&self) -> Reading {
        self.options.reading
    }
}

/// The conformers of files and folders, or without any the corpus that comes with drift.
pub fn files_or_embedded(inputs: &[PathBuf], reading: Reading, smiles: SmilesSource) -> Box<dyn Conformers> {
    if inputs.is_empty() {
        return Box::new(Embedded { reading });
    }
    let options = ReadOptions { reading, smiles, ..ReadOptions::default() };
    Box::new(Files { inputs: inputs.to_vec(), options })
}

/// The corpus that comes with drift (`corpora/`): drug-like molecules of our own, GFN2-xTB geometries.
///
/// Its coordinates stand for both dialects, so it agrees with both. They have four decimals; fewer are cut from them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Embedded {
    /// At most four decimals; the separator says how its text is taken to be written.
    pub reading: Reading,
}

impl Embedded {
    /// Name, size and hash of its file.
    pub fn source() -> InputHash {
        io::hash_bytes("default.jsonl.gz", EMBEDDED)
    }
}

/// The bytes of the embedded corpus.
const EMBEDDED: &[u8] = include_bytes!("../../../corpora/default.jsonl.gz");

impl Conformers for Embedded {
    fn read(&self, job: &Job, emit: &mut Emit<'_>) -> Result<ReadSummary> {
        let name = "corpora/default.jsonl.gz";
        if self.reading.encoding.is_decimal() && self.reading.precision() > Precision::FOUR {
            let problem = format!("has four decimals, not {}", self.reading.precision().in_words());
            let remedy = format!("give {} with conformers of your own", Parameter::Corpus);
            return Err(Error::input("the built-in corpus", problem, remedy));
        }
        if !self.reading.encoding.has_coordinates() {
            let problem = format!("has coordinates, and the numbers of {} are codes", self.reading.encoding);
            let remedy = format!("give {} with texts of this encoding", Parameter::Corpus);
            return Err(Error::input("the built-in corpus", problem, remedy));
        }
        // Its file has commas, whatever its blocks are to be written with.
        let reading = Reading { texts: None, cut: true, ..self.reading };
        let reading = if reading.encoding.is_decimal_blocks() {
            Reading { encoding: reading.encoding.with_spaces(false), ..reading }
        } else {
            Reading { texts: Some(Encoding::FIXED), ..reading }
        };
        let mut reader = io::decompressed(Cursor::new(EMBEDDED))
            .map_err(|e| Error::internal(name, format!("{e}; the build is damaged")))?;
        let source = Source { name: name.to_owned(), reader: &mut *reader };
        let mut summary = read_from(jsonl::read, source, reading, job, emit)?;
        summary.inputs.push(Self::source());
        // Its texts are of one dialect, but the coordinates stand for both.
        summary.written = Written::ANY;
        Ok(summary)
    }

    fn reading(&self) -> Reading {
        self.reading
    }
}

/// Enriched SMILES in memory, one a line.
#[derive(Debug, Clone, Copy)]
pub struct Texts<'t>(pub &'t str);

impl Conformers for Texts<'_> {
    fn read(&self, job: &Job, emit: &mut Emit<'_>) -> Result<ReadSummary> {
        let name = "texts";
        let source = Source { name: name.to_owned(), reader: &mut self.0.as_bytes() };
        let mut summary = read_from(plain::read, source, Reading::default(), job, emit)?;
        summary.refuse_if_empty(&[name.into()])?;
        summary.inputs.push(io::hash_bytes(name, self.0.as_bytes()));
        Ok(summary)
    }
}

/// The reader of a format.
type Reader = fn(Source<'_>, Context<'_>, &mut Emit<'_>) -> Result<()>;

/// Reads what is in memory.
fn read_from(
    reader: Reader,
    source: Source<'_>,
    reading: Reading,
    job: &Job,
    emit: &mut Emit<'_>,
) -> Result<ReadSummary> {
    let mut summary = ReadSummary::default();
    job.observer().begin("reading", None, Unit::Items);
    let options = ReadOptions { reading, ..ReadOptions::default() };
    let context = Context { options: &options, job };
    let outcome = reader(source, context, &mut |batch| {
        job.check()?;
        summary.count(&batch, reading.encoding);
        emit(batch)
    });
    job.observer().end();
    outcome?;
    Ok(summary)
}
