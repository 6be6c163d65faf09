//! The molecules that texts are generated for.

use std::collections::HashMap;
use std::path::Path;

use rayon::prelude::*;

use crate::corpus::{AtomOrder, Conformers, Part, SKIPPED_LISTED, Skipped};
use crate::error::{Error, Parameter, Result};
use crate::io::{self, BoundedLines, LineEnds};
use crate::job::{InputHash, Job};
use crate::text::skeleton::{Spelling, from_smiles, smiles};
use crate::text::spelling::foreign;
use crate::text::{Fixed, Precision};

/// The longest line of a file of SMILES: far more than a molecule and its name.
pub const MAX_SMILES_LINE_BYTES: usize = 1 << 20;

/// One molecule.
#[derive(Debug, Clone, PartialEq)]
pub struct Molecule {
    /// As the prompt has it.
    pub smiles: String,
    /// Its text with every block emptied.
    pub skeleton: String,
    /// The decimals of its conformers.
    pub precision: Precision,
    /// Reference conformers in units of the last decimal, atoms in the order of the skeleton; may be none.
    pub conformers: Vec<Vec<[Fixed; 3]>>,
}

/// The molecules of an evaluation.
#[derive(Debug, Clone, Default)]
pub struct Molecules {
    /// Where they come from, in words.
    pub source: String,
    /// The molecules, each once.
    pub molecules: Vec<Molecule>,
    /// How the source spells hydrogens; none where drift wrote the skeletons.
    pub spelling: Option<Spelling>,
    /// Records that are none.
    pub skipped: u64,
    /// The first of them.
    pub skipped_records: Vec<Skipped>,
    /// What was read.
    pub inputs: Vec<InputHash>,
}

impl Molecules {
    /// The test molecules of a corpus, which no training sees, with all their conformers as reference; `most` of them,
    /// spread evenly.
    ///
    /// # Errors
    /// As [`Conformers::read`], or if none of them is a test molecule.
    pub fn of_corpus(corpus: &dyn Conformers, name: &str, most: Option<usize>, job: &Job) -> Result<Self> {
        let mut places: HashMap<std::sync::Arc<str>, usize> = HashMap::new();
        let mut found: Vec<Molecule> = Vec::new();
        let mut spelling: Option<Spelling> = None;
        let precision = corpus.reading().precision;
        let summary = corpus.read(job, &mut |batch| {
            for conformer in &batch.conformers {
                if conformer.order == AtomOrder::File || Part::of(conformer) != Part::Test {
                    continue;
                }
                let place = *places.entry(conformer.skeleton.clone()).or_insert_with(|| {
                    let own = Spelling::of(&conformer.skeleton);
                    spelling = Some(spelling.map_or(own, |known| known.join(own)));
                    let (smiles, skeleton) = (smiles(&conformer.skeleton), conformer.skeleton.to_string());
                    found.push(Molecule { smiles, skeleton, precision, conformers: Vec::new() });
                    found.len() - 1
                });
                found[place].conformers.push(conformer.coordinates.clone());
            }
            Ok(())
        })?;
        if found.is_empty() {
            let problem = "holds no test molecule";
            return Err(Error::input(
                name,
                problem,
                format!("give more molecules, or SMILES with {}", Parameter::Smiles),
            ));
        }
        Ok(Molecules {
            source: format!("the test part of {name}"),
            molecules: spread(found, most),
            spelling,
            skipped: summary.skipped,
            skipped_records: summary.skipped_records,
            inputs: summary.inputs,
        })
    }

    /// The molecules of a file with one SMILES a line, and anything after a space; `most` of them, the first ones. The file
    /// is read to its end all the same: one that is damaged there is refused.
    ///
    /// # Errors
    /// If the file cannot be read or is not UTF-8, a line has more than [`MAX_SMILES_LINE_BYTES`], no line holds a SMILES, or
    /// the job was cancelled.
    pub fn of_file(path: &Path, most: Option<usize>, job: &Job) -> Result<Self> {
        let mut out = Molecules { source: io::file_name(path), ..Molecules::default() };
        let mut opened = io::open(path, job);
        let fail = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::InvalidData => {
                Error::input(path.display(), error, "give one SMILES a line, whole and as text")
            }
            _ => job.check().err().unwrap_or_else(|| Error::io(path, error)),
        };
        let mut lines = BoundedLines::with_ends(&mut opened.reader, MAX_SMILES_LINE_BYTES, LineEnds::Any);
        while let Some(line) = lines.next_line().map_err(fail)? {
            if most.is_some_and(|most| out.molecules.len() == most) {
                break;
            }
            if line.cut {
                let problem = format!("line {} is longer than {MAX_SMILES_LINE_BYTES} bytes", line.number);
                return Err(Error::input(
                    path.display(),
                    problem,
                    "give one SMILES a line, whole and as text",
                ));
            }
            let text = std::str::from_utf8(line.bytes).map_err(|e| {
                let problem = format!("line {}: byte {} is not UTF-8", line.number, e.valid_up_to() + 1);
                Error::input(path.display(), problem, "save the file as UTF-8")
            })?;
            let smiles = text.split_whitespace().next().filter(|smiles| !smiles.starts_with('#'));
            match smiles.map(molecule) {
                Some(Ok(molecule)) => out.molecules.push(molecule),
                Some(Err(reason)) => out.skip(path, line.number, reason),
                None => {}
            }
        }
        if out.molecules.is_empty() {
            let why = out.skipped_records.first().map_or("is empty".to_owned(), |skipped| {
                format!("holds no SMILES: {}, {}", skipped.record, skipped.reason)
            });
            return Err(Error::input(path.display(), why, "give one SMILES a line"));
        }
        out.inputs.push(opened.finish(io::file_name(path)).map_err(fail)?);
        Ok(out)
    }

    /// Molecules whose SMILES RDKit certainly writes otherwise.
    pub fn foreign_prompts(&self) -> usize {
        self.molecules.par_iter().filter(|molecule| foreign(&molecule.smiles).is_some()).count()
    }

    fn skip(&mut self, path: &Path, line: u64, reason: String) {
        self.skipped += 1;
        if self.skipped_records.len() < SKIPPED_LISTED {
            let record = format!("line {line}");
            self.skipped_records.push(Skipped { file: io::file_name(path), record, reason }.shown());
        }
    }
}

/// A molecule that the user names; why it is none.
fn molecule(smiles: &str) -> std::result::Result<Molecule, String> {
    let skeleton = from_smiles(smiles).map_err(|e| e.to_string())?;
    Ok(Molecule { smiles: smiles.to_owned(), skeleton, precision: Precision::FOUR, conformers: Vec::new() })
}

/// At most `most` of `all`, spread evenly, in order.
fn spread(all: Vec<Molecule>, most: Option<usize>) -> Vec<Molecule> {
    let (total, most) = (all.len(), most.unwrap_or(all.len()).min(all.len()));
    let is_taken = |index: usize| index * most / total != (index + 1) * most / total;
    all.into_iter().enumerate().filter(|(index, _)| is_taken(*index)).map(|(_, molecule)| molecule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::geometry;
    use crate::corpus::Embedded;

    #[test]
    fn test_molecules_of_the_embedded_corpus() {
        let all =
            Molecules::of_corpus(&Embedded::default(), "the embedded corpus", None, &Job::default()).unwrap();
        assert!((150..300).contains(&all.molecules.len()), "{}", all.molecules.len());
        for molecule in &all.molecules {
            let atoms = geometry::Topology::new(&molecule.skeleton).unwrap().atoms();
            assert!(!molecule.conformers.is_empty());
            assert!(molecule.conformers.iter().all(|points| points.len() == atoms));
        }
        let some =
            Molecules::of_corpus(&Embedded::default(), "the embedded corpus", Some(7), &Job::default())
                .unwrap();
        assert_eq!(some.molecules.len(), 7);
        assert!(some.molecules.iter().all(|molecule| all.molecules.contains(molecule)));
        let more =
            Molecules::of_corpus(&Embedded::default(), "the embedded corpus", Some(9999), &Job::default())
                .unwrap();
        assert_eq!(more.molecules, all.molecules);
    }

    #[test]
    fn files_of_smiles() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.smi");
        std::fs::write(&path, "# header\nCC=O ethanal\n\nC(\nc1ccccc1\nN\n").unwrap();
        let read = Molecules::of_file(&path, Some(2), &Job::default()).unwrap();
        let smiles: Vec<&str> = read.molecules.iter().map(|molecule| &*molecule.smiles).collect();
        assert_eq!(smiles, ["CC=O", "c1ccccc1"]);
        assert_eq!((read.skipped, &*read.skipped_records[0].record), (1, "line 4"));
        assert_eq!(read.molecules[0].skeleton, "[C]<>[C]<>=[O]<>");
        std::fs::write(&path, b"CC=O\r\nCCO\xe9thanol\n").unwrap();
        let error = Molecules::of_file(&path, None, &Job::default()).unwrap_err().to_string();
        assert!(error.ends_with("some.smi: line 2: byte 4 is not UTF-8; save the file as UTF-8"), "{error}");
        std::fs::write(&path, b"\xef\xbb\xbfCC=O\rCCO\rN").unwrap();
        assert_eq!(Molecules::of_file(&path, None, &Job::default()).unwrap().molecules.len(), 3);
        std::fs::write(&path, "C".repeat(MAX_SMILES_LINE_BYTES + 1)).unwrap();
        let error = Molecules::of_file(&path, None, &Job::default()).unwrap_err().to_string();
        assert!(error.contains("line 1 is longer than 1048576 bytes"), "{error}");
        std::fs::write(&path, format!("CCO\n{}\n", "C".repeat(200_000))).unwrap();
        let read = Molecules::of_file(&path, None, &Job::default()).unwrap();
        assert_eq!((read.molecules.len(), read.skipped), (1, 1));
        assert!(read.skipped_records[0].reason.ends_with("more than 100000 heavy atoms"));
        std::fs::write(&path, "C(\n").unwrap();
        let error = Molecules::of_file(&path, None, &Job::default()).unwrap_err().to_string();
        assert!(error.contains("line 1"), "{error}");
    }
}
