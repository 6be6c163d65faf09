//! The molecules for which texts are generated.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use super::counts::ReferenceCounts;
use super::molecule::PromptMolecule;
use super::pools::{Pools, grouped, references};
use crate::corpus::{
    AtomOrder, Conformers, EmbeddedConformers, EmbeddedCorpus, Part, Rest, SKIPPED_LISTED, SkippedRecord,
    SmilesLine, each_prompt, no_prompt,
};
use crate::generation::EvalPart;
use crate::parameter;
use drift_core::chem::foreign;
use drift_core::encoding::DecimalForms;
use drift_core::io;
use drift_core::job::InputHash;
use drift_core::text::skeleton::{Spelling, smiles};
use drift_core::{Encoding, Error, Job, Result};

/// Which molecules of a corpus are used.
#[derive(Debug, Clone, Default)]
pub struct CorpusChoice {
    /// The part of the corpus. By default the test part if the models were trained on the corpus, and otherwise the whole corpus.
    pub part: Option<EvalPart>,
    /// The SHA-256 of the inputs on which drift trained all models.
    pub trained_on: BTreeSet<String>,
    /// The largest number of molecules, which are spread evenly.
    pub most: Option<usize>,
    /// Whether isomers that the corpus pools are measured together.
    pub pools: bool,
}

/// The molecules of an evaluation.
#[derive(Debug, Clone, Default)]
pub struct Molecules {
    /// The source, in words.
    pub source: String,
    /// The molecules, each once.
    pub molecules: Vec<PromptMolecule>,
    /// How the source spells hydrogens; `None` if drift wrote the skeletons.
    pub spelling: Option<Spelling>,
    /// The number of records that are not molecules.
    pub skipped: u64,
    /// The first of these records.
    pub skipped_records: Vec<SkippedRecord>,
    /// The files that were read.
    pub inputs: Vec<InputHash>,
    /// The part of the corpus from which they are; `None` for SMILES.
    pub part: Option<EvalPart>,
    /// The files of the corpus from which they are; empty for SMILES.
    pub corpus: Vec<InputHash>,
    /// Which decimals the texts of their conformers agree with, fixed or stripped; both if there are no texts.
    pub written: DecimalForms,
    /// The counts of reference conformers.
    pub references: ReferenceCounts,
}

impl Molecules {
    /// Returns the molecules of a corpus embedded in drift, at most `most`: those for testing, unless a part is requested.
    ///
    /// # Errors
    /// If the reading does not fit the corpus, or the job was cancelled.
    pub fn of_embedded(
        corpus: EmbeddedConformers,
        part: Option<EvalPart>,
        most: Option<usize>,
        job: &Job,
    ) -> Result<Self> {
        // No training uses the small corpus. On the other one, drift trains on all but a tenth.
        let for_tests = match corpus.corpus {
            EmbeddedCorpus::Small => EvalPart::All,
            EmbeddedCorpus::DrugLike => EvalPart::Test,
        };
        let choice = CorpusChoice { part: part.or(Some(for_tests)), most, ..CorpusChoice::default() };
        let name = format!("the built-in corpus `{}`", corpus.corpus.name());
        Molecules::of_corpus(&corpus, &name, &choice, job)
    }

    /// Returns the molecules of a corpus, with all their conformers as references.
    ///
    /// # Errors
    /// The errors of [`Conformers::read`], or if no conformer has its atoms in the order of a SMILES, or no molecule is in the
    /// requested part.
    pub fn of_corpus(corpus: &dyn Conformers, name: &str, choice: &CorpusChoice, job: &Job) -> Result<Self> {
        let mut places: HashMap<Arc<str>, usize> = HashMap::new();
        let mut found: Vec<PromptMolecule> = Vec::new();
        let mut spelling: Option<Spelling> = None;
        let mut written = DecimalForms::ANY;
        let (mut without_order, mut pools) = (0, Pools::default());
        let encoding = corpus.reading().encoding;
        let summary = corpus.read(job, &mut |batch| {
            for conformer in &batch.conformers {
                if conformer.order == AtomOrder::File {
                    without_order += 1;
                    continue;
                }
                written = written.join(conformer.written);
                let place = *places.entry(conformer.skeleton.clone()).or_insert_with(|| {
                    let own = Spelling::from_skeleton(&conformer.skeleton);
                    spelling = Some(spelling.map_or(own, |known| known.join(own)));
                    let (smiles, skeleton) = (smiles(&conformer.skeleton), conformer.skeleton.to_string());
                    let part = Some(Part::from_conformer(conformer));
                    found.push(PromptMolecule { part, ..unpooled(smiles, skeleton, encoding) });
                    found.len() - 1
                });
                pools.add(conformer.pool.as_ref(), place);
                found[place].conformers.push(conformer.coordinates.clone());
            }
            Ok(())
        })?;
        let (all, conformers) = (found.len(), summary.conformers);
        let found = if choice.pools && all > 0 { pools.prompts(found, name)? } else { found };
        let mut found = grouped(found);
        let was_trained_on = summary.inputs.iter().all(|input| choice.trained_on.contains(&input.sha256));
        let part = choice.part.unwrap_or(if was_trained_on { EvalPart::Test } else { EvalPart::All });
        if part == EvalPart::Test {
            // Isomers may be in different parts. Training has seen a pool if it has seen one of its isomers.
            found.retain(|group| group.iter().all(|molecule| molecule.part == Some(Part::Test)));
        }
        if found.is_empty() {
            return Err(nothing_of(name, all, conformers, summary.in_file_order_records.first()));
        }
        let groups = spread(found, choice.most);
        let used = references(&groups);
        let unused = summary.in_file_order_records.iter().take(UNUSED_LISTED).cloned().collect();
        Ok(Molecules {
            source: if part == EvalPart::Test { format!("the test part of {name}") } else { name.to_owned() },
            molecules: groups.into_iter().flatten().collect(),
            spelling,
            skipped: summary.skipped,
            skipped_records: summary.skipped_records,
            corpus: summary.inputs.clone(),
            inputs: summary.inputs,
            part: Some(part),
            written: if summary.written == DecimalForms::ANY { DecimalForms::ANY } else { written },
            references: ReferenceCounts { used, without_order, unused, ..ReferenceCounts::default() },
        })
    }

    /// Returns the molecules of a file with one SMILES per line; anything after white space is ignored. Uses the first `most` molecules.
    /// A SMILES that is there before is skipped. The file is still read to its end, so that damage is noticed.
    ///
    /// # Errors
    /// If the file cannot be read or is not UTF-8, a line has more than
    /// [`MAX_SMILES_LINE_BYTES`](crate::corpus::MAX_SMILES_LINE_BYTES) bytes, no line contains a SMILES, or the job was
    /// cancelled.
    pub fn of_file(path: &Path, most: Option<usize>, job: &Job) -> Result<Self> {
        let mut out = Molecules { source: io::file_name(path), ..Molecules::default() };
        let mut lines: HashMap<String, u64> = HashMap::new();
        let hash = each_prompt(path, job, &mut |prompt| {
            if most.is_some_and(|most| out.molecules.len() == most) {
                return Ok(Rest::Unwanted);
            }
            let skipped = match prompt {
                Ok(SmilesLine { number, smiles, skeleton }) => {
                    let first = *lines.entry(skeleton.to_owned()).or_insert(number);
                    if first == number {
                        out.molecules.push(unpooled(smiles.to_owned(), skeleton.to_owned(), Encoding::FIXED));
                        return Ok(Rest::Wanted);
                    }
                    // The texts of a molecule are counted under its SMILES, so each molecule is a prompt once.
                    let (file, record) = (io::file_name(path), format!("line {number}"));
                    SkippedRecord { file, record, reason: format!("the SMILES of line {first} again") }
                }
                Err(skipped) => skipped,
            };
            out.skipped += 1;
            if out.skipped_records.len() < SKIPPED_LISTED {
                out.skipped_records.push(skipped);
            }
            Ok(Rest::Wanted)
        })?;
        if out.molecules.is_empty() {
            return Err(no_prompt(path, out.skipped_records.first()));
        }
        out.inputs.push(hash);
        Ok(out)
    }

    /// Leaves out molecules, which then count as skipped. `why` has the reason for each of them.
    pub fn leave_out(&mut self, why: impl Fn(&PromptMolecule) -> Option<String> + Sync + Send) {
        let reasons: Vec<Option<String>> = self.molecules.par_iter().map(why).collect();
        for (molecule, reason) in self.molecules.iter().zip(&reasons) {
            let Some(reason) = reason else { continue };
            self.skipped += 1;
            if self.skipped_records.len() < SKIPPED_LISTED {
                let (file, record) = (self.source.clone(), molecule.smiles.clone());
                self.skipped_records.push(SkippedRecord { file, record, reason: reason.clone() }.shown());
            }
        }
        let mut reasons = reasons.into_iter();
        self.molecules.retain(|_| matches!(reasons.next(), Some(None)));
    }

    /// Returns the number of molecules whose SMILES RDKit would certainly write differently.
    pub fn foreign_prompts(&self) -> usize {
        self.molecules.par_iter().filter(|molecule| foreign(&molecule.smiles).is_some()).count()
    }

    /// Returns the number of molecules that are measured; the molecules of a pool count as one.
    pub fn measured(&self) -> usize {
        self.molecules.chunk_by(|a, b| b.is_pooled_with(a)).count()
    }

    /// Returns whether some molecules are measured together.
    pub fn is_pooled(&self) -> bool {
        self.molecules.iter().any(|molecule| molecule.pool.is_some())
    }
}

/// Returns a molecule without part, conformers and pool.
fn unpooled(smiles: String, skeleton: String, encoding: Encoding) -> PromptMolecule {
    let conformers = Vec::new();
    PromptMolecule { smiles, skeleton, encoding, conformers, part: None, counted: None, pool: None }
}

/// Returns the error for a corpus without molecules to evaluate.
fn nothing_of(name: &str, molecules: usize, conformers: u64, first: Option<&SkippedRecord>) -> Error {
    if molecules == 0 {
        return without_order(name, conformers, first);
    }
    let problem = format!("none of its {molecules} molecules is in the test part");
    Error::input(name, problem, format!("give {} all, or more molecules", parameter::SPLIT))
}

/// Returns the error if no conformer has its atoms in the order of a SMILES.
pub(super) fn without_order(place: &str, conformers: u64, first: Option<&SkippedRecord>) -> Error {
    let why = first.map_or_else(String::new, |first| format!(", such as {}: {}", first.record, first.reason));
    let problem = format!("none of its {conformers} conformers has its atoms in the order of a SMILES{why}");
    Error::input(place, problem, format!("give their SMILES with {}, or enriched text", parameter::SMILES_OF))
}

/// The number of unused conformers that a record lists.
pub(super) const UNUSED_LISTED: usize = 10;

/// At most `most` of `all`, spread evenly, in order.
fn spread<T>(all: Vec<T>, most: Option<usize>) -> Vec<T> {
    let (total, most) = (all.len(), most.unwrap_or(all.len()).min(all.len()));
    // An item is taken where `index · most / total` reaches the next integer. This spreads evenly without a list of indices.
    let is_taken = |index: usize| index * most / total != (index + 1) * most / total;
    all.into_iter().enumerate().filter(|(index, _)| is_taken(*index)).map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::geometry;
    use crate::corpus::MAX_SMILES_LINE_BYTES;

    fn of_embedded(part: EvalPart, most: Option<usize>) -> Molecules {
        let choice = CorpusChoice { part: Some(part), most, ..CorpusChoice::default() };
        Molecules::of_corpus(&EmbeddedConformers::default(), "the embedded corpus", &choice, &Job::default())
            .unwrap()
    }

    #[test]
    fn test_molecules_of_the_embedded_corpus() {
        let all = of_embedded(EvalPart::Test, None);
        assert!((150..300).contains(&all.molecules.len()), "{}", all.molecules.len());
        for molecule in &all.molecules {
            let atoms = geometry::Topology::new(&molecule.skeleton).unwrap().atoms();
            assert!(!molecule.conformers.is_empty() && molecule.part == Some(Part::Test));
            assert!(molecule.conformers.iter().all(|points| points.len() == atoms));
        }
        let some = of_embedded(EvalPart::Test, Some(7));
        assert_eq!(some.molecules.len(), 7);
        assert!(some.molecules.iter().all(|molecule| all.molecules.contains(molecule)));
        assert_eq!(of_embedded(EvalPart::Test, Some(9999)).molecules, all.molecules);
        let whole = of_embedded(EvalPart::All, None);
        assert!(whole.molecules.len() > 1_900 && whole.references.used == 6_630, "{:?}", whole.references);
    }

    #[test]
    fn the_part_follows_from_what_models_were_trained_on() {
        let trained_on = BTreeSet::from([EmbeddedCorpus::DrugLike.source().sha256]);
        let part = |choice: CorpusChoice| {
            let read =
                Molecules::of_corpus(&EmbeddedConformers::default(), "it", &choice, &Job::default()).unwrap();
            (read.part.unwrap(), read.source)
        };
        let most = Some(3);
        let known = CorpusChoice { trained_on, most, ..CorpusChoice::default() };
        assert_eq!(part(known.clone()), (EvalPart::Test, "the test part of it".to_owned()));
        let asked = CorpusChoice { part: Some(EvalPart::All), ..known };
        assert_eq!(part(asked), (EvalPart::All, "it".to_owned()));
        assert_eq!(part(CorpusChoice { most, ..CorpusChoice::default() }).0, EvalPart::All);
    }

    #[test]
    fn a_corpus_without_text_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.xyz");
        std::fs::write(&path, "3\nwater\nO 0 0 0\nH 0 0 1\nH 0 1 0\n").unwrap();
        let files = crate::corpus::Files { inputs: vec![path], options: Default::default() };
        let read = Molecules::of_corpus(&files, "some.xyz", &CorpusChoice::default(), &Job::default());
        let error = read.unwrap_err().to_string();
        assert!(error.contains("none of its 1 conformers has its atoms in the order of a SMILES"), "{error}");
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
        std::fs::write(&path, "CCO\nN\nCCO again\n").unwrap();
        let read = Molecules::of_file(&path, None, &Job::default()).unwrap();
        assert_eq!((read.molecules.len(), read.skipped), (2, 1));
        assert_eq!(read.skipped_records[0].reason, "the SMILES of line 1 again");
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
