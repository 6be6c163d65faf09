//! Where conformers come from: files, or the corpus that comes with drift.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use super::summary::ReadSummary;
use super::{Context, Emit, Frame, ReadOptions, Source, jsonl, plain, read};
use crate::parameter;
use drift_core::encoding::{Encoding, Precision, Reading, Written};
use drift_core::error::{Error, Result};
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
                let problem = "a pipe cannot be read twice, and it has more data than is kept in memory";
                Err(Error::input(pipe.display(), problem, "write it to a file first"))
            }
        }
    }

    fn reading(&self) -> Reading {
        self.options.reading
    }
}

/// The conformers of files and folders; without any, or of the name of one, those of a corpus that comes with drift.
pub fn files_or_embedded(inputs: &[PathBuf], options: ReadOptions) -> Box<dyn Conformers> {
    let named = match inputs {
        [] => Some(EmbeddedCorpus::default()),
        [one] => EmbeddedCorpus::by_name(one),
        _ => None,
    };
    if let Some(corpus) = named {
        return Box::new(Embedded { corpus, frame: options.frame, reading: options.reading });
    }
    Box::new(Files { inputs: inputs.to_vec(), options })
}

/// The corpora that come with drift (`corpora/`): molecules of our own, GFN2-xTB geometries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EmbeddedCorpus {
    /// `drug-like`: 6,630 conformers of molecules like those of GEOM-Drugs.
    #[default]
    DrugLike,
    /// `small`: 1,043 conformers of 423 molecules of 4 to 9 heavy atoms, like those of GEOM-QM9. All are for tests: the corpus that
    /// reference checkpoints learn from has none of their graphs.
    Small,
}

impl EmbeddedCorpus {
    /// All of them.
    pub const ALL: [EmbeddedCorpus; 2] = [EmbeddedCorpus::DrugLike, EmbeddedCorpus::Small];

    /// What options call it.
    pub fn name(self) -> &'static str {
        match self {
            EmbeddedCorpus::DrugLike => "drug-like",
            EmbeddedCorpus::Small => "small",
        }
    }

    /// The corpus of a name; none if a file has this name.
    pub fn by_name(path: &Path) -> Option<Self> {
        Self::ALL.into_iter().find(|corpus| Path::new(corpus.name()) == path && !path.exists())
    }

    /// Name, size and hash of its file.
    pub fn source(self) -> InputHash {
        io::hash_bytes(self.file(), self.bytes())
    }

    /// SHA-256 of the file that reference checkpoints of its domain learn from: of `drug-like` its own, whose molecules are split; of
    /// `small` that of `small-train.jsonl.gz`, which `corpora/small.py` makes.
    pub fn trained_on(self) -> String {
        match self {
            EmbeddedCorpus::DrugLike => self.source().sha256,
            EmbeddedCorpus::Small => SMALL_TRAIN_SHA256.to_owned(),
        }
    }

    fn file(self) -> &'static str {
        match self {
            EmbeddedCorpus::DrugLike => "default.jsonl.gz",
            EmbeddedCorpus::Small => "small.jsonl.gz",
        }
    }

    fn bytes(self) -> &'static [u8] {
        match self {
            EmbeddedCorpus::DrugLike => include_bytes!("../../../corpora/default.jsonl.gz"),
            EmbeddedCorpus::Small => include_bytes!("../../../corpora/small.jsonl.gz"),
        }
    }
}

/// As `corpora/small-train.json` has it.
const SMALL_TRAIN_SHA256: &str = "f6f5d67778fdfb75113a6480f386731298d0ca61f89956e8b066252afc6119a4";

/// The conformers of a corpus that comes with drift.
///
/// Its coordinates stand for both dialects, so it agrees with both. They have four decimals; fewer are cut from them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Embedded {
    /// Which one.
    pub corpus: EmbeddedCorpus,
    /// The frame of its coordinates; in its file they lie in the principal axes.
    pub frame: Frame,
    /// At most four decimals; the separator says how its text is taken to be written.
    pub reading: Reading,
}

impl Conformers for Embedded {
    fn read(&self, job: &Job, emit: &mut Emit<'_>) -> Result<ReadSummary> {
        let name = format!("corpora/{}", self.corpus.file());
        if self.reading.encoding.is_decimal() && self.reading.precision() > Precision::FOUR {
            let problem = format!("has four decimals, not {}", self.reading.precision().in_words());
            let remedy = format!("give {} with conformers of your own", parameter::CORPUS);
            return Err(Error::input("the built-in corpus", problem, remedy));
        }
        if !self.reading.encoding.has_coordinates() {
            let problem = format!("has coordinates, and the numbers of {} are codes", self.reading.encoding);
            let remedy = format!("give {} with texts of this encoding", parameter::CORPUS);
            return Err(Error::input("the built-in corpus", problem, remedy));
        }
        // Its file has commas, whatever its blocks are to be written with.
        let reading = Reading { texts: None, cut: true, ..self.reading };
        let reading = if reading.encoding.is_decimal_blocks() {
            Reading { encoding: reading.encoding.with_spaces(false), ..reading }
        } else {
            Reading { texts: Some(Encoding::FIXED), ..reading }
        };
        let mut reader = io::decompressed(Cursor::new(self.corpus.bytes()))
            .map_err(|e| Error::internal(&name, format!("{e}; the build is damaged")))?;
        let source = Source { name: name.clone(), reader: &mut *reader };
        let options = ReadOptions { frame: self.frame, reading, ..ReadOptions::default() };
        let mut summary = read_from(jsonl::read, source, &options, job, emit)?;
        summary.inputs.push(self.corpus.source());
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
        let mut summary = read_from(plain::read, source, &ReadOptions::default(), job, emit)?;
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
    options: &ReadOptions,
    job: &Job,
    emit: &mut Emit<'_>,
) -> Result<ReadSummary> {
    let mut summary = ReadSummary::default();
    job.observer().begin("reading", None, Unit::Items);
    let context = Context { options, job };
    let outcome = reader(source, context, &mut |batch| {
        job.check()?;
        summary.count(&batch, options.reading.encoding);
        emit(batch)
    });
    job.observer().end();
    outcome?;
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_manifests() {
        let training = include_str!("../../../corpora/small-train.json");
        assert!(training.contains(SMALL_TRAIN_SHA256));
        let small = include_str!("../../../corpora/small.json");
        assert!(small.contains(&EmbeddedCorpus::Small.source().sha256));
    }
}
