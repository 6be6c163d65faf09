//! The samples behind one row of an audit: their counts, and the conformers that can be compared.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::chemistry::{Chemistry, ChemistryReport, ConformerChemistry, MoleculeChemistry};
use super::counts::{DriftHistogram, SampleCounts};
use super::coverage::{CoverageReport, Deviations, MissingPolicy};
use super::examples::TextExamples;
use super::judging::{points_by_3dmolgen, reordered, usable_points};
use super::outcome::Outcome;
use super::records::Record;
use super::references::{BySkeleton, DeviationsBySkeleton, GeometryReport};
use super::request::AuditPlan;
use super::row_label::RowLabel;
use super::sample::TextVerdict;
use super::worst::{BrokenText, WorstTexts, broken_share};
use crate::stats::interval::{ClusterSums, Interval, LEVEL};
use drift_core::Encoding;
use drift_core::text::skeleton;

/// The report on one file, or on one logit processor in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileReport {
    /// The file's name.
    pub file: String,
    /// The model, logit processor and placeholder, as far as records name them.
    #[serde(flatten)]
    pub row: RowLabel,
    /// The counts.
    #[serde(flatten)]
    pub counts: SampleCounts,
    /// The 95 % interval of the share of texts that passed, with molecules as clusters; `None` if it is of one molecule.
    pub pass_interval: Option<Interval>,
    /// The number of blocks by drift, F - T; `None` without a tokenizer.
    pub drift: Option<DriftHistogram>,
    /// The geometry compared with the references; `None` without references.
    pub geometry: Option<GeometryReport>,
    /// Coverage and matching at every threshold; `None` without references.
    pub coverage: Option<CoverageReport>,
    /// The chemistry of the texts that pass; `None` without prompts.
    pub chemistry: Option<ChemistryReport>,
}

impl FileReport {
    /// Returns what a reader of its geometry and chemistry should know: one sentence each.
    pub(super) fn warnings(&self, missing: MissingPolicy) -> impl Iterator<Item = String> {
        let geometry = self.geometry.iter().flat_map(move |one| one.warnings(missing));
        geometry.chain(self.chemistry.as_ref().and_then(ChemistryReport::unchecked))
    }
}

/// The results for the samples of one row of the report.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Group {
    #[serde(rename = "dialect")]
    encoding: Encoding,
    /// What its records say of their origin.
    pub row: RowLabel,
    pub counts: SampleCounts,
    /// By prompt, or by the SMILES that pools it, how many of how many texts pass.
    pub passed: BTreeMap<Box<str>, PassedTexts>,
    /// How many of how many texts of no known molecule pass.
    #[serde(default)]
    unknown: PassedTexts,
    /// The times of its texts, as far as records state them.
    pub times: TextTimes,
    pub drift: Option<DriftHistogram>,
    /// Conformers that can be compared, by skeleton of the prompt. A prompt without any has an empty list.
    pub generated: BySkeleton,
    /// By the same skeletons, the index of each conformer's text among those of its molecule, if its file states it.
    #[serde(default)]
    pub numbers: BTreeMap<Box<str>, Vec<Option<u64>>>,
    /// By the same skeletons, how many texts are compared under them, with those that have no conformer.
    #[serde(default)]
    pub compared: BTreeMap<Box<str>, u64>,
    /// The skeletons of prompts whose conformers are compared under another skeleton, with that skeleton.
    #[serde(default)]
    pub pools: BTreeMap<Box<str>, Box<str>>,
    /// By prompt, or by the SMILES that pools it, its chemistry.
    chemistry: BTreeMap<Box<str>, MoleculeChemistry>,
    /// The texts that break the most rules of chemistry.
    #[serde(default)]
    pub worst: WorstTexts,
    /// The first texts with each problem.
    #[serde(default)]
    pub examples: TextExamples,
}

/// The comparisons of molecules with references, in an order that sums and bootstrap samples follow.
#[derive(Clone, Copy)]
pub(super) struct InOrder<'m> {
    pub measured: &'m DeviationsBySkeleton,
    /// The molecules that come first; the others follow by their skeletons.
    pub first: &'m [Box<str>],
}

impl<'m> InOrder<'m> {
    /// Returns the order of skeletons.
    pub(super) fn by_skeleton(measured: &'m DeviationsBySkeleton) -> Self {
        InOrder { measured, first: &[] }
    }

    fn deviations(self) -> Vec<&'m Deviations> {
        let mut seen = HashSet::new();
        let skeletons = self.first.iter().chain(self.measured.keys());
        let distinct = skeletons.filter(|skeleton| seen.insert(&***skeleton));
        distinct.filter_map(|skeleton| self.measured.get(skeleton)).collect()
    }
}

drift_core::counters! {
    /// How many of how many texts of a molecule pass.
    #[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
    pub(super) struct PassedTexts {
        pub passed: u64,
        pub texts: u64,
    }
}

/// The times and tokens that records state, in the order of texts.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct TextTimes {
    /// The number of records.
    pub texts: u64,
    /// The seconds of those that state them.
    pub seconds: Vec<f64>,
    /// The number of tokens of those that state them.
    pub tokens: Vec<u64>,
}

impl TextTimes {
    /// Counts a record.
    pub(super) fn add(&mut self, record: &Record) {
        self.texts += 1;
        self.seconds.extend(record.seconds);
        self.tokens.extend(record.tokens);
    }

    fn merge(&mut self, other: &TextTimes) {
        self.texts += other.texts;
        self.seconds.extend_from_slice(&other.seconds);
        self.tokens.extend_from_slice(&other.tokens);
    }
}

/// The prompt of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupPrompt<'p> {
    pub smiles: &'p str,
    /// The SMILES that pools it with other isomers, if they are pooled.
    pub pool: Option<&'p str>,
    /// The index of the text among those of its molecule, if the file states it.
    pub generation: Option<u64>,
}

impl<'p> GroupPrompt<'p> {
    /// Returns the SMILES of the molecule that the text counts for.
    fn molecule(self) -> &'p str {
        self.pool.unwrap_or(self.smiles)
    }
}

/// The molecule under which a text is compared.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ComparedMolecule {
    /// The skeleton that it is compared under.
    pub under: Box<str>,
    /// Whether it has a conformer to compare.
    pub is_usable: bool,
}

/// Cached chemistry checkers, by skeleton; `None` for a molecule that is too large.
#[derive(Default)]
pub(super) struct Checkers(HashMap<String, Option<Chemistry>>);

impl Checkers {
    pub(super) fn of(&mut self, skeleton: &str) -> Option<&Chemistry> {
        if !self.0.contains_key(skeleton) {
            let checker = Chemistry::from_smiles(&skeleton::smiles(skeleton)).ok();
            self.0.insert(skeleton.to_owned(), checker);
        }
        self.0.get(skeleton)?.as_ref()
    }
}

impl Group {
    pub(super) fn new(row: RowLabel, plan: &AuditPlan, encoding: Encoding) -> Self {
        Group {
            encoding,
            row,
            counts: SampleCounts::new(encoding),
            passed: BTreeMap::new(),
            unknown: PassedTexts::default(),
            times: TextTimes::default(),
            drift: plan.request.tokenizer.as_ref().map(|_| DriftHistogram::default()),
            generated: BySkeleton::new(),
            numbers: BTreeMap::new(),
            compared: BTreeMap::new(),
            pools: BTreeMap::new(),
            chemistry: BTreeMap::new(),
            worst: WorstTexts::default(),
            examples: TextExamples::default(),
        }
    }

    /// Checks the conformer of an answer that passes, and keeps it if it is to be compared: under its prompt, or under `pool`.
    /// Returns the findings, and the molecule under which it is compared.
    pub(super) fn take_conformer(
        &mut self,
        plan: &AuditPlan,
        checkers: &mut Checkers,
        prompt: GroupPrompt<'_>,
        answer: &str,
        judged: &TextVerdict,
    ) -> (Option<ConformerChemistry>, Option<ComparedMolecule>) {
        let GroupPrompt { smiles, pool, generation } = prompt;
        // Prompts were parsed when they were read.
        let Ok(key) = skeleton::from_smiles(smiles) else { return (None, None) };
        let limit = plan.request.max_atoms;
        let points = usable_points(answer, judged, &key, self.encoding, limit);
        let found = points.as_ref().and_then(|points| checkers.of(&key)?.check(points));
        let key: Box<str> = key.into();
        // A text that does not pass counts for its molecule too.
        self.chemistry.entry(prompt.molecule().into()).or_default().add(found.as_ref());
        if let (Some(found), Some(points)) = (&found, &points)
            && self.worst.takes(found)
        {
            self.worst.add(BrokenText {
                molecule: prompt.molecule().into(),
                skeleton: key.clone(),
                smiles: smiles.into(),
                generation,
                share: broken_share(found),
                points: points.clone(),
            });
        }
        if !plan.keeps_conformers() {
            return (found, None);
        }
        let points = points.or_else(|| {
            let has_commas = self.encoding.is_decimal() && self.encoding.separator() == ",";
            if !plan.request.as_3dmolgen || !has_commas {
                return None;
            }
            points_by_3dmolgen(answer, judged, &key, limit)
        });
        let (under, points) = match pool.map(skeleton::from_smiles) {
            Some(Ok(pool)) if *pool != *key => {
                self.pools.insert(key.clone(), pool.clone().into());
                let points = points.and_then(|points| reordered(points, &key, &pool, limit));
                (pool.into(), points)
            }
            _ => (key, points),
        };
        let is_usable = points.is_some();
        *self.compared.entry(Box::clone(&under)).or_default() += 1;
        if let Some(points) = points {
            self.numbers.entry(Box::clone(&under)).or_default().push(generation);
            self.generated.entry(Box::clone(&under)).or_default().push(points);
        } else {
            self.generated.entry(Box::clone(&under)).or_default();
        }
        (found, Some(ComparedMolecule { under, is_usable }))
    }

    /// Counts a text of a molecule, given by its SMILES, or of none that is known.
    pub(super) fn count_passed(&mut self, molecule: Option<&str>, judged: &TextVerdict) {
        let known = match molecule {
            Some(molecule) => self.passed.entry(molecule.into()).or_default(),
            None => &mut self.unknown,
        };
        known.passed += u64::from(judged.outcome == Outcome::Pass);
        known.texts += 1;
    }

    /// Counts and conformers of another group as well.
    pub(super) fn merge(&mut self, other: &Group) {
        self.counts.merge(&other.counts);
        self.times.merge(&other.times);
        self.unknown.merge(&other.unknown);
        for (molecule, passed) in &other.passed {
            self.passed.entry(molecule.clone()).or_default().merge(passed);
        }
        if let (Some(all), Some(more)) = (&mut self.drift, &other.drift) {
            all.merge(more);
        }
        for (skeleton, conformers) in &other.generated {
            self.generated.entry(skeleton.clone()).or_default().extend_from_slice(conformers);
        }
        for (skeleton, numbers) in &other.numbers {
            self.numbers.entry(skeleton.clone()).or_default().extend_from_slice(numbers);
        }
        for (skeleton, texts) in &other.compared {
            *self.compared.entry(skeleton.clone()).or_default() += texts;
        }
        self.pools.extend(other.pools.clone());
        for (skeleton, chemistry) in &other.chemistry {
            self.chemistry.entry(skeleton.clone()).or_default().merge(chemistry);
        }
        self.worst.merge(&other.worst);
        self.examples.merge(&other.examples);
    }

    /// Returns the chemistry of all texts. A text of no known molecule is one of those of which the valid ones are a share.
    fn chemistry_report(&self) -> ChemistryReport {
        let mut unknown = MoleculeChemistry::default();
        unknown.add(None);
        let known: u64 = self.chemistry.values().map(|molecule| molecule.texts).sum();
        let unknown = std::iter::repeat_n(&unknown, self.counts.samples.saturating_sub(known) as usize);
        ChemistryReport::from_molecules(self.chemistry.values().chain(unknown))
    }

    /// Returns the intervals' sums for the share of texts that pass, with molecules as clusters. A text of no known molecule is a cluster.
    pub(super) fn passed_sums(&self) -> ClusterSums {
        let mut sums = ClusterSums::default();
        self.passed.values().for_each(|molecule| sums.add(molecule.passed as i64, molecule.texts));
        let PassedTexts { passed, texts } = self.unknown;
        (0..texts).for_each(|text| sums.add(i64::from(text < passed), 1));
        sums
    }

    /// Returns the report row of this group. `measured` has the comparisons of its conformers with the references.
    pub(super) fn report(&self, file: &str, measured: Option<InOrder<'_>>, plan: &AuditPlan) -> FileReport {
        let counted = measured.map(|measured| plan.request.missing.counted(measured.deviations()));
        let measured = measured.map(|measured| measured.measured);
        let geometry = counted.as_ref().map(|counted| {
            let left_out = measured.map_or(0, |all| all.len() - counted.len()) as u64;
            let without_text = measured.into_iter().flat_map(|all| all.keys());
            let without_text = without_text.filter(|key| !self.generated.contains_key(*key)).count() as u64;
            GeometryReport { left_out, without_text, ..GeometryReport::of_deviations(counted) }
        });
        FileReport {
            file: file.to_owned(),
            row: self.row.clone(),
            counts: self.counts.clone(),
            pass_interval: self.passed_sums().share_interval(LEVEL),
            drift: self.drift.clone(),
            geometry,
            coverage: counted
                .map(|counted| CoverageReport::from_molecules(&counted, &plan.request.thresholds)),
            chemistry: (!self.chemistry.is_empty()).then(|| self.chemistry_report()),
        }
    }
}
