//! The rows of an audit over all files: one for each model, logit processor and placeholder.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::chemistry::ChemistryReport;
use super::counts::{DriftHistogram, SampleCounts};
use super::coverage::{CoverageReport, Deviations};
use super::ensemble::{ClusterReport, HitReport};
use super::example::Example;
use super::group::{Group, InOrder, TextTimes};
use super::judged::JudgedFile;
use super::pairs::{AdvisedRow, BatchTimes, SpeedMeasure};
use super::pictured::PicturedText;
use super::ranked::{RankedText, ranked_texts};
use super::references::{DeviationsBySkeleton, GeometryReport, Reference, References, join};
use super::request::AuditPlan;
use super::row_ensembles::RowEnsembles;
use super::row_label::RowLabel;
use super::text_encoding::{EncodingFrom, TextEncoding};
use super::worst::WorstTexts;
use crate::generation::GenerationRun;
use crate::stats::interval::{Interval, LEVEL};
use drift_core::Encoding;

/// The number of texts whose seconds are added up, so that the speeds of rows can be compared, if no batches are stated.
const TIMED_TEXTS: usize = 32;

/// The names of figures that a row has by itself, whatever a header says.
const OWN_FIGURES: [&str; 7] =
    ["model", "lp", "placeholder", "dialect", "dialect_from", "speed_measure", "batch_seconds"];

/// The names of further figures of a header that hold for its texts as a whole, beside their cost.
const OF_ITS_TEXTS: [&str; 4] = ["texts", "probabilities", "mask_cost", "resampling"];

/// The results for one row, with the names that records of `drift eval` have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditRun {
    /// The model, logit processor and placeholder. Texts whose records name neither model nor logit processor are a row with the
    /// name of their file.
    #[serde(flatten)]
    pub row: RowLabel,
    /// The encoding by which texts were judged.
    #[serde(rename = "dialect")]
    pub encoding: Encoding,
    /// How the encoding was determined.
    #[serde(rename = "dialect_from")]
    pub encoding_from: EncodingFrom,
    /// The counts of texts by outcome.
    #[serde(flatten)]
    pub counts: SampleCounts,
    /// The 95 % interval of the share that passed, over molecules.
    pub passed_interval: Option<Interval>,
    /// The chemistry of the texts that pass.
    #[serde(flatten)]
    pub chemistry: ChemistryReport,
    /// The texts that break the most rules of chemistry.
    pub worst: Vec<PicturedText>,
    /// The best, the median and the worst text by RMSD to the nearest reference; left out without references.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranked: Vec<RankedText>,
    /// The geometry of texts that passed; null without references.
    pub geometry: Option<GeometryReport>,
    /// Coverage and matching; empty without references.
    #[serde(flatten)]
    pub coverage: CoverageReport,
    /// Hit@K, if requested; left out without references.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hits: Option<HitReport>,
    /// Clusters and torsions, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<ClusterReport>,
    /// The number of blocks by drift; null without a tokenizer.
    pub drift: Option<DriftHistogram>,
    /// Some of the texts that did not pass, or that contain junk or lost digits.
    pub examples: Vec<Example>,
    /// How the seconds of `batch_seconds` are measured.
    pub speed_measure: SpeedMeasure,
    /// The seconds of each batch, or of each 32 texts; empty if they are not known.
    pub batch_seconds: Vec<f64>,
    /// The number of texts in these batches.
    #[serde(skip)]
    timed_texts: u64,
    /// What generation measured, as far as the file says it.
    #[serde(flatten)]
    pub generation: Map<String, Value>,
}

/// What a comparison of a row needs beside its texts and its report.
#[derive(Debug)]
pub(super) struct RowMeasure {
    /// The index of its first group among those of all files.
    group: usize,
    /// The comparisons with the references of all its groups, if it has several.
    joined: Option<DeviationsBySkeleton>,
    /// The texts per CPU second, if it is known.
    pub texts_per_cpu_second: Option<f64>,
    /// The texts per second of wall time, if it is known.
    pub texts_per_second: Option<f64>,
}

impl RowMeasure {
    /// Returns the comparison of a molecule with its references. `measured` has those of all groups.
    pub(super) fn deviations<'m>(
        &'m self,
        measured: &'m [DeviationsBySkeleton],
        skeleton: &str,
    ) -> Option<&'m Deviations> {
        self.joined.as_ref().or_else(|| measured.get(self.group))?.get(skeleton)
    }
}

/// The groups of a row, of one file or several. RMSDs of all pairs are large, so those of a single group are not copied.
struct RowGroups<'f> {
    row: RowLabel,
    /// The index of its first group among those of all files.
    first: usize,
    group: Cow<'f, Group>,
    measured: Option<Cow<'f, DeviationsBySkeleton>>,
    stated: Option<&'f GenerationRun>,
    /// The skeletons under which its texts are compared, in the order of their first prompts.
    order: Vec<Box<str>>,
}

/// What is known of the references when rows are reported.
#[derive(Clone, Copy)]
pub(super) struct RowReferences<'r> {
    /// The comparisons of all groups, in order; `None` without references.
    pub measured: Option<&'r [DeviationsBySkeleton]>,
    /// By row, the texts that break the most rules of chemistry.
    pub worst: &'r BTreeMap<RowLabel, Vec<PicturedText>>,
    /// The references that texts of a skeleton are compared with.
    pub of: &'r dyn Fn(&str) -> Option<&'r Reference>,
}

/// By row, the texts that break the most rules of chemistry, beside their own references: those of their isomer, not of its pool.
pub(super) fn worst_by_row(
    files: &[JudgedFile],
    references: Option<&References>,
) -> BTreeMap<RowLabel, Vec<PicturedText>> {
    let mut rows: BTreeMap<RowLabel, WorstTexts> = BTreeMap::new();
    for file in files {
        for group in &file.groups {
            rows.entry(group.row.reported(&file.input.name)).or_default().merge(&group.worst);
        }
    }
    let reported = rows.into_iter().map(|(row, worst)| {
        (row, worst.report(|skeleton| references.and_then(|references| references.get(skeleton))))
    });
    reported.collect()
}

/// Returns the rows of files, in the order of their first texts.
pub(super) fn rows_of_files(
    plan: &AuditPlan,
    texts: TextEncoding,
    files: &[JudgedFile],
    references: RowReferences<'_>,
) -> (Vec<AuditRun>, Vec<RowMeasure>) {
    let measured = references.measured;
    let mut rows: Vec<RowGroups<'_>> = Vec::new();
    let groups = files.iter().flat_map(|file| file.groups.iter().map(move |group| (file, group)));
    for (at, (file, group)) in groups.enumerate() {
        let own = RowGroups::new(at, file, group, measured.map(|measured| &measured[at]));
        match rows.iter_mut().find(|known| known.row == own.row) {
            Some(known) => known.add(own),
            None => rows.push(own),
        }
    }
    // Groups of a file are sorted by name.
    let order: Vec<RowLabel> = files.iter().flat_map(JudgedFile::reported_rows).collect();
    rows.sort_by_key(|row| order.iter().position(|known| *known == row.row));
    rows.into_iter().map(|row| row.finish(plan, texts, references)).unzip()
}

impl<'f> RowGroups<'f> {
    fn new(
        at: usize,
        file: &'f JudgedFile,
        group: &'f Group,
        measured: Option<&'f DeviationsBySkeleton>,
    ) -> Self {
        let row = group.row.reported(&file.input.name);
        let mut stated = file.generation.iter().flat_map(|generation| &generation.runs);
        RowGroups {
            stated: stated.find(|run| RowLabel::of_run(run) == row),
            row,
            first: at,
            group: Cow::Borrowed(group),
            measured: measured.map(Cow::Borrowed),
            order: file.compared_under(group),
        }
    }

    /// Adds a group of another file to the row.
    fn add(&mut self, other: RowGroups<'f>) {
        self.group.to_mut().merge(&other.group);
        // What is stated holds for one file alone.
        self.stated = None;
        if let Some((all, more)) = self.measured.as_mut().zip(other.measured) {
            join(all.to_mut(), &more);
        }
        self.order.extend(other.order);
    }

    /// Returns the row of the report, and what a comparison needs.
    fn finish(
        self,
        plan: &AuditPlan,
        texts: TextEncoding,
        references: RowReferences<'_>,
    ) -> (AuditRun, RowMeasure) {
        let RowEnsembles { hits, clusters } =
            RowEnsembles::of_row(&self.group, self.measured.as_deref(), &plan.request);
        let measured = self.measured.as_deref().map(|measured| InOrder { measured, first: &self.order });
        let report = self.group.report("", measured, plan);
        let ranked = self.measured.as_deref().map(|all| ranked_texts(&self.group, all, references.of));
        let ranked = ranked.unwrap_or_default();
        let BatchTimes { measure: speed_measure, seconds: batch_seconds, texts: timed_texts } = self.times();
        let run = AuditRun {
            row: self.row.clone(),
            encoding: texts.encoding,
            encoding_from: texts.from,
            counts: report.counts,
            passed_interval: self.group.passed_sums().share_interval(LEVEL),
            chemistry: report.chemistry.unwrap_or_default(),
            worst: references.worst.get(&self.row).cloned().unwrap_or_default(),
            ranked,
            geometry: report.geometry,
            coverage: report.coverage.unwrap_or_default(),
            hits,
            clusters,
            drift: report.drift,
            examples: self.group.examples.report(),
            speed_measure,
            batch_seconds,
            timed_texts,
            generation: self.generation(),
        };
        let cost = self.stated_of_all().map(|run| &run.cost);
        let cpu_seconds = cost.and_then(|cost| cost.cpu_seconds).filter(|seconds| *seconds > 0.0);
        let measure = RowMeasure {
            group: self.first,
            texts_per_cpu_second: cpu_seconds.map(|seconds| self.group.times.texts as f64 / seconds),
            texts_per_second: cost.map(|cost| cost.conformers_per_second).or(self.texts_per_second()),
            joined: self.measured.and_then(|measured| match measured {
                Cow::Owned(joined) => Some(joined),
                Cow::Borrowed(_) => None,
            }),
        };
        (run, measure)
    }

    /// Returns the seconds of batches: those of the header, or else of the texts.
    fn times(&self) -> BatchTimes {
        let texts = self.group.times.texts;
        if let Some(run) = self.stated_of_all().filter(|run| !run.batch_seconds.is_empty()) {
            return BatchTimes { measure: run.speed_measure, seconds: run.batch_seconds.clone(), texts };
        }
        let seconds = self.known_seconds().unwrap_or_default();
        let seconds = seconds.chunks(TIMED_TEXTS).map(|texts| texts.iter().sum()).collect();
        BatchTimes { measure: SpeedMeasure::Wall, seconds, texts }
    }

    /// Returns what the header states, if it is of as many texts as were read: lines may be cut, or left out on request.
    fn stated_of_all(&self) -> Option<&'f GenerationRun> {
        self.stated.filter(|run| run.texts == self.group.times.texts)
    }

    /// Returns the seconds of the texts, if all records state them.
    fn known_seconds(&self) -> Option<&[f64]> {
        let TextTimes { texts, seconds, .. } = &self.group.times;
        (seconds.len() as u64 == *texts).then_some(seconds)
    }

    /// Returns the sum of the seconds of the texts, if all records state them.
    fn total_seconds(&self) -> Option<f64> {
        self.known_seconds().map(|seconds| seconds.iter().sum::<f64>()).filter(|total| *total > 0.0)
    }

    /// Returns the texts per second that records state.
    fn texts_per_second(&self) -> Option<f64> {
        self.total_seconds().map(|total| self.group.times.texts as f64 / total)
    }

    /// Returns what is known of generation: the figures of the header. Of the cost of its texts it has those that seconds and tokens of the
    /// texts give, unless the header is of the same texts.
    fn generation(&self) -> Map<String, Value> {
        let mut figures = self.stated.map(object).unwrap_or_default();
        OWN_FIGURES.iter().for_each(|name| _ = figures.remove(*name));
        if self.stated_of_all().is_some() {
            return figures;
        }
        if let Some(stated) = self.stated {
            object(&stated.cost).keys().for_each(|name| _ = figures.remove(name));
            OF_ITS_TEXTS.iter().for_each(|name| _ = figures.remove(*name));
        }
        if let Some(total) = self.total_seconds() {
            let TextTimes { texts, tokens, .. } = &self.group.times;
            figures.insert("conformers_per_second".to_owned(), (*texts as f64 / total).into());
            if tokens.len() as u64 == *texts {
                let tokens: u64 = tokens.iter().sum();
                figures.insert("generated_tokens".to_owned(), tokens.into());
                figures.insert("tokens_per_second".to_owned(), (tokens as f64 / total).into());
            }
        }
        figures
    }
}

/// Returns the fields of a part of a header, all of which can be written as JSON.
fn object(part: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(part) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

impl AuditRun {
    /// Returns a figure of generation, if it is known.
    pub fn generation_figure(&self, name: &str) -> Option<f64> {
        self.generation.get(name)?.as_f64()
    }

    /// Returns the seconds of its batches.
    pub(super) fn times(&self) -> BatchTimes {
        let (measure, seconds) = (self.speed_measure, self.batch_seconds.clone());
        BatchTimes { measure, seconds, texts: self.timed_texts }
    }

    /// Returns the figures on which advice rests.
    pub(super) fn advised(&self) -> AdvisedRow<'_> {
        AdvisedRow {
            label: self.row.clone(),
            tokenizer: self.generation.get("tokenizer").and_then(Value::as_str),
            counts: &self.counts,
            chemistry: &self.chemistry,
            geometry: self.geometry.as_ref(),
            times: self.times(),
        }
    }
}
