//! The samples of one row of an audit: what is counted, and the conformers that can be compared.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::chemistry::{Chemistry, ChemistryReport, MoleculeChemistry};
use super::counts::{DriftHistogram, SampleCounts};
use super::geometry::Conformation;
use super::outcome::Outcome;
use super::references::{GeometryReport, References};
use super::sample::{TextVerdict, coordinates};
use crate::encoding::Encoding;
use crate::stats::interval::{Interval, LEVEL, wilson};
use crate::text::skeleton;

/// The samples of one file, or of one logit processor in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileReport {
    /// The file's name.
    pub file: String,
    /// The logit processor, where records name one.
    pub lp: Option<String>,
    /// What was found.
    #[serde(flatten)]
    pub counts: SampleCounts,
    /// The interval of the share that passed, Wilson's at 95 %.
    pub pass_interval: Option<Interval>,
    /// Blocks by drift, F - T; none without a tokenizer.
    pub drift: Option<DriftHistogram>,
    /// Geometry beside the references; none without references.
    pub geometry: Option<GeometryReport>,
    /// The chemistry of the texts that pass with their atoms in the order of their prompts; none without prompts.
    pub chemistry: Option<ChemistryReport>,
}

/// What was found in the samples of one row of the report.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Group {
    dialect: Encoding,
    lp: Option<String>,
    pub counts: SampleCounts,
    pub drift: Option<DriftHistogram>,
    /// Conformers that can be compared, by skeleton of the prompt; empty lists for prompts without.
    pub generated: BTreeMap<Box<str>, Vec<Conformation>>,
    /// By skeleton of the prompt.
    chemistry: BTreeMap<Box<str>, MoleculeChemistry>,
}

/// A text, beside its prompt.
#[derive(Clone, Copy)]
pub(super) struct PromptedText<'r> {
    pub prompt: &'r str,
    pub answer: &'r str,
    pub judged: &'r TextVerdict,
}

/// What checks the conformers of a molecule, by skeleton; none of a molecule that is too large.
#[derive(Default)]
pub(super) struct Checkers(HashMap<String, Option<Chemistry>>);

impl Checkers {
    fn of(&mut self, skeleton: &str) -> Option<&Chemistry> {
        if !self.0.contains_key(skeleton) {
            let checker = Chemistry::of(&skeleton::smiles(skeleton)).ok();
            self.0.insert(skeleton.to_owned(), checker);
        }
        self.0.get(skeleton)?.as_ref()
    }
}

impl Group {
    pub(super) fn new(lp: Option<&str>, has_tokenizer: bool, dialect: Encoding) -> Self {
        Group {
            dialect,
            lp: lp.map(str::to_owned),
            counts: SampleCounts::new(dialect),
            drift: has_tokenizer.then(DriftHistogram::default),
            generated: BTreeMap::new(),
            chemistry: BTreeMap::new(),
        }
    }

    /// Checks the conformer of a sample that passes in the atom order of its prompt, and keeps it if it is to be compared.
    pub(super) fn take_conformer(
        &mut self,
        checkers: &mut Checkers,
        sample: PromptedText<'_>,
        is_kept: bool,
    ) {
        // Prompts were parsed when they were read.
        let Ok(key) = skeleton::from_smiles(sample.prompt) else { return };
        let usable = sample.judged.outcome == Outcome::Pass && sample.judged.skeleton == key;
        let points = coordinates(sample.answer, self.dialect).filter(|_| usable);
        let found = points.as_ref().and_then(|points| checkers.of(&key)?.check(points));
        let key: Box<str> = key.into();
        self.chemistry.entry(key.clone()).or_default().add(found.as_ref());
        if is_kept {
            self.generated.entry(key).or_default().extend(points);
        }
    }

    pub(super) fn merge(&mut self, other: &Group) {
        self.counts.merge(&other.counts);
        if let (Some(all), Some(more)) = (&mut self.drift, &other.drift) {
            all.merge(more);
        }
        for (skeleton, conformers) in &other.generated {
            self.generated.entry(skeleton.clone()).or_default().extend_from_slice(conformers);
        }
        for (skeleton, chemistry) in &other.chemistry {
            self.chemistry.entry(skeleton.clone()).or_default().merge(chemistry);
        }
    }

    /// What it comes to, of a file of this name.
    pub(super) fn report(&self, file: &str, references: Option<&References>) -> FileReport {
        FileReport {
            file: file.to_owned(),
            lp: self.lp.clone(),
            counts: self.counts.clone(),
            pass_interval: wilson(self.counts.passed, self.counts.samples, LEVEL),
            drift: self.drift.clone(),
            geometry: references.map(|references| references.compare(&self.generated)),
            chemistry: (!self.chemistry.is_empty()).then(|| ChemistryReport::of(self.chemistry.values())),
        }
    }
}
