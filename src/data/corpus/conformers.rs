//! Sources of conformers: files, or an embedded corpus.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use super::summary::ReadSummary;
use super::{BatchSink, Context, Frame, ReadOptions, Source, jsonl, lines, read};
use crate::parameter;
use drift_core::encoding::{DecimalForms, Precision, Reading};
use drift_core::io;
use drift_core::job::{InputHash, Unit};
use drift_core::{Encoding, Error, Job, Result};

/// A source of conformers that can be read repeatedly, with the same conformers in the same order.
pub trait Conformers: Sync {
    /// Passes all conformers to `emit`, batch by batch.
    ///
    /// # Errors
    /// As [`read`](super::read()).
    fn read(&self, job: &Job, emit: &mut BatchSink<'_>) -> Result<ReadSummary>;

    /// Refuses a source that can be read only once, such as a pipe.
    ///
    /// # Errors
    /// If it is such a source.
    fn can_be_read_again(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the encoding of its coordinates, and how its texts are read.
    fn reading(&self) -> Reading {
        Reading::default()
    }
}

/// Files and folders.
#[derive(Debug, Clone)]
pub struct Files {
    /// The paths.
    pub inputs: Vec<PathBuf>,
    /// The options for reading them.
    pub options: ReadOptions,
}

impl Conformers for Files {
    fn read(&self, job: &Job, emit: &mut BatchSink<'_>) -> Result<ReadSummary> {
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

/// Returns the conformers of files and folders. Without paths, or for the name of an embedded corpus, the embedded conformers.
pub fn files_or_embedded(inputs: &[PathBuf], options: ReadOptions) -> Box<dyn Conformers> {
    let named = match inputs {
        [] => Some(EmbeddedCorpus::default()),
        [one] => EmbeddedCorpus::by_name(one),
        _ => None,
    };
    if let Some(corpus) = named {
        let picks_rows = !options.rows.is_empty();
        return Box::new(EmbeddedConformers {
            corpus,
            frame: options.frame,
            reading: options.reading,
            picks_rows,
        });
    }
    Box::new(Files { inputs: inputs.to_vec(), options })
}

/// The embedded corpora (`corpora/`): molecules of the project with GFN2-xTB geometries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EmbeddedCorpus {
    /// `drug-like`: 6,630 conformers of molecules like those of GEOM-Drugs.
    #[default]
    DrugLike,
    /// `small`: 1,043 conformers of 423 molecules with 4 to 9 heavy atoms, similar to those of GEOM-QM9. All are for tests: the
    /// training corpus of the reference checkpoints contains none of their graphs.
    Small,
}

impl EmbeddedCorpus {
    /// All embedded corpora.
    pub const ALL: [EmbeddedCorpus; 2] = [EmbeddedCorpus::DrugLike, EmbeddedCorpus::Small];

    /// Returns its name in options.
    pub fn name(self) -> &'static str {
        self.entry().0
    }

    /// Returns the corpus with a name; `None` if there is none, or a file has this name.
    pub fn by_name(path: &Path) -> Option<Self> {
        Self::ALL.into_iter().find(|corpus| Path::new(corpus.name()) == path && !path.exists())
    }

    /// Returns the name, size and hash of its file.
    pub fn source(self) -> InputHash {
        let (_, file, bytes) = self.entry();
        io::hash_bytes(file, bytes)
    }

    /// Returns the SHA-256 of the training file for reference checkpoints of this domain. For `drug-like` it is the corpus file itself,
    /// whose molecules are split; for `small` it is `small-train.jsonl.gz`, which `corpora/small.py` makes.
    pub fn trained_on(self) -> String {
        match self {
            EmbeddedCorpus::DrugLike => self.source().sha256,
            EmbeddedCorpus::Small => SMALL_TRAIN_SHA256.to_owned(),
        }
    }

    /// Returns its name in options, the name of its file, and the file's content.
    fn entry(self) -> (&'static str, &'static str, &'static [u8]) {
        match self {
            EmbeddedCorpus::DrugLike => {
                ("drug-like", "default.jsonl.gz", include_bytes!("../embedded/default.jsonl.gz"))
            }
            EmbeddedCorpus::Small => {
                ("small", "small.jsonl.gz", include_bytes!("../embedded/small.jsonl.gz"))
            }
        }
    }
}

/// From `corpora/small-train.json`.
const SMALL_TRAIN_SHA256: &str = "f6f5d67778fdfb75113a6480f386731298d0ca61f89956e8b066252afc6119a4";

/// The conformers of an embedded corpus.
///
/// Its coordinates are valid in the fixed and the stripped encoding. They have four decimals; for fewer they are truncated.
#[derive(Debug, Clone, Copy, Default)]
pub struct EmbeddedConformers {
    /// The corpus.
    pub corpus: EmbeddedCorpus,
    /// The frame of the returned coordinates. Those in the file are in the principal axes.
    pub frame: Frame,
    /// The encoding to return; at most four decimals.
    pub reading: Reading,
    /// Whether rows are to be picked by columns. It has none, so reading is refused.
    pub picks_rows: bool,
}

impl Conformers for EmbeddedConformers {
    fn read(&self, job: &Job, emit: &mut BatchSink<'_>) -> Result<ReadSummary> {
        let (_, file, bytes) = self.corpus.entry();
        let name = format!("corpora/{file}");
        if self.picks_rows {
            let problem = "the built-in corpus has no columns by which rows could be picked";
            return Err(Error::parameter(
                parameter::WHERE,
                problem,
                format!("give {} too", parameter::CORPUS),
            ));
        }
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
        // Its file uses commas, whatever the separator of the requested encoding.
        let reading = Reading { texts: None, cut: true, ..self.reading };
        let reading = if reading.encoding.is_decimal_blocks() {
            Reading { encoding: reading.encoding.with_spaces(false), ..reading }
        } else {
            Reading { texts: Some(Encoding::FIXED), ..reading }
        };
        let mut reader = io::decompressed(Cursor::new(bytes))
            .map_err(|e| Error::internal(&name, format!("{e}; the build is damaged")))?;
        let source = Source { name: name.clone(), reader: &mut reader };
        let options = ReadOptions { frame: self.frame, reading, ..ReadOptions::default() };
        let mut summary = read_from(jsonl::read, source, &options, job, emit)?;
        summary.inputs.push(self.corpus.source());
        // Its texts are in one encoding, but the coordinates are valid in the fixed and the stripped one.
        summary.written = DecimalForms::ANY;
        Ok(summary)
    }

    fn reading(&self) -> Reading {
        self.reading
    }
}

/// Enriched SMILES in memory, one per line.
#[derive(Debug, Clone, Copy)]
pub struct Texts<'t>(pub &'t str);

impl Conformers for Texts<'_> {
    fn read(&self, job: &Job, emit: &mut BatchSink<'_>) -> Result<ReadSummary> {
        let name = "texts";
        let source = Source { name: name.to_owned(), reader: &mut self.0.as_bytes() };
        let mut summary = read_from(lines::read_plain, source, &ReadOptions::default(), job, emit)?;
        summary.refuse_if_empty(&[name.into()])?;
        summary.inputs.push(io::hash_bytes(name, self.0.as_bytes()));
        Ok(summary)
    }
}

/// The function that reads a format.
type Reader = fn(Source<'_>, Context<'_>, &mut BatchSink<'_>) -> Result<()>;

/// Reads data in memory.
fn read_from(
    reader: Reader,
    source: Source<'_>,
    options: &ReadOptions,
    job: &Job,
    emit: &mut BatchSink<'_>,
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
        let training = include_str!("../embedded/small-train.json");
        assert!(training.contains(SMALL_TRAIN_SHA256));
        let small = include_str!("../embedded/small.json");
        assert!(small.contains(&EmbeddedCorpus::Small.source().sha256));
    }
}
