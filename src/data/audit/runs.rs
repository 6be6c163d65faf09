//! The rows of an audit over all files: one for each model, logit processor and placeholder.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::chemistry::ChemistryReport;
use super::counts::{DriftHistogram, SampleCounts};
use super::coverage::CoverageReport;
use super::group::{Group, InOrder, TextTimes};
use super::judged::JudgedFile;
use super::pairs::{AdvisedRow, BatchTimes, ComparedRow, SpeedMeasure};
use super::references::{GeometryReport, Measured};
use super::request::AuditPlan;
use super::row_label::RowLabel;
use super::text_encoding::EncodingFrom;
use crate::generation::GenerationRun;
use crate::stats::interval::{ClusterSums, Interval, LEVEL};
use drift_core::encoding::Encoding;

/// The number of texts whose seconds are added up, so that the speeds of rows can be compared, if no batches are stated.
const TIMED_TEXTS: usize = 32;

/// The names of figures that a row has by itself, whatever a header says.
const OWN_FIGURES: [&str; 7] =
    ["model", "lp", "placeholder", "dialect", "dialect_from", "speed_measure", "batch_seconds"];

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
    /// The geometry of texts that passed; null without references.
    pub geometry: Option<GeometryReport>,
    /// Coverage and matching; empty without references.
    #[serde(flatten)]
    pub coverage: CoverageReport,
    /// The number of blocks by drift; null without a tokenizer.
    pub drift: Option<DriftHistogram>,
    /// How the seconds of `batch_seconds` are measured.
    pub speed_measure: SpeedMeasure,
    /// The seconds of each batch, or of each 32 texts; empty if they are not known.
    pub batch_seconds: Vec<f64>,
    /// What generation measured, as far as the file says it.
    #[serde(flatten)]
    pub generation: Map<String, Value>,
}

/// The results of a row before the report.
pub(super) struct RowResults {
    pub row: RowLabel,
    group: Group,
    pub measured: Option<Measured>,
    stated: Option<GenerationRun>,
    /// The skeletons under which its texts are compared, in the order of their first prompts.
    order: Vec<Box<str>>,
}

impl RowResults {
    /// The rows of files, in the order of their first texts. `measured` has the comparisons of all groups in order.
    pub(super) fn of_files(files: &[JudgedFile], measured: Option<&[Measured]>) -> Vec<Self> {
        let mut rows: Vec<RowResults> = Vec::new();
        let groups = files.iter().flat_map(|file| file.groups.iter().map(move |group| (file, group)));
        for (at, (file, group)) in groups.enumerate() {
            let row = group.row.reported(&file.input.name);
            let measured = measured.map(|measured| &measured[at]);
            let stated =
                file.header.iter().flat_map(|header| &header.runs).find(|run| RowLabel::of_run(run) == row);
            match rows.iter_mut().find(|known| known.row == row) {
                Some(known) => {
                    known.add(group, measured);
                    known.order.extend(file.compared_under(group));
                }
                None => rows.push(RowResults {
                    row,
                    group: group.clone(),
                    measured: measured.cloned(),
                    stated: stated.cloned(),
                    order: file.compared_under(group),
                }),
            }
        }
        // Groups of a file are sorted by name.
        let order: Vec<RowLabel> = files.iter().flat_map(JudgedFile::reported_rows).collect();
        rows.sort_by_key(|row| order.iter().position(|known| *known == row.row));
        rows
    }

    /// Adds a group of another file to the row.
    fn add(&mut self, group: &Group, measured: Option<&Measured>) {
        self.group.merge(group);
        // What is stated holds for one file alone.
        self.stated = None;
        for (skeleton, deviations) in measured.into_iter().flatten() {
            let all = self.measured.get_or_insert_with(Measured::new);
            match all.get_mut(skeleton) {
                Some(known) => known.append(deviations.clone()),
                None => _ = all.insert(skeleton.clone(), deviations.clone()),
            }
        }
    }

    /// The row of the report.
    pub(super) fn report(
        &self,
        plan: &AuditPlan,
        encoding: Encoding,
        encoding_from: EncodingFrom,
    ) -> AuditRun {
        let measured = self.measured.as_ref().map(|measured| InOrder { measured, first: &self.order });
        let report = self.group.report("", measured, plan);
        let mut passed = ClusterSums::default();
        for molecule in self.group.passed.values() {
            passed.add(molecule.passed as i64, molecule.texts);
        }
        let times = self.times();
        AuditRun {
            row: self.row.clone(),
            encoding,
            encoding_from,
            counts: report.counts,
            passed_interval: passed.share_interval(LEVEL),
            chemistry: report.chemistry.unwrap_or_default(),
            geometry: report.geometry,
            coverage: report.coverage.unwrap_or_default(),
            drift: report.drift,
            speed_measure: times.measure,
            batch_seconds: times.seconds,
            generation: self.generation(),
        }
    }

    /// The seconds of batches: those of the header, or else of the texts.
    pub(super) fn times(&self) -> BatchTimes {
        let stated = self
            .stated
            .as_ref()
            .map(|run| BatchTimes { measure: run.speed_measure, seconds: run.batch_seconds.clone() });
        let stated = stated.filter(|times| !times.seconds.is_empty());
        stated.unwrap_or_else(|| {
            let seconds = self.known_seconds().unwrap_or_default();
            let seconds = seconds.chunks(TIMED_TEXTS).map(|texts| texts.iter().sum()).collect();
            BatchTimes { measure: SpeedMeasure::Wall, seconds }
        })
    }

    /// The seconds of the texts, if all records state them.
    fn known_seconds(&self) -> Option<&[f64]> {
        let TextTimes { texts, seconds, .. } = &self.group.times;
        (seconds.len() as u64 == *texts).then_some(seconds)
    }

    /// What is known of generation: the figures of the header, or else those that seconds and tokens of texts give.
    fn generation(&self) -> Map<String, Value> {
        if let Some(stated) = &self.stated {
            // The types of a header can always be written as JSON.
            let Ok(Value::Object(mut figures)) = serde_json::to_value(stated) else { return Map::new() };
            OWN_FIGURES.iter().for_each(|name| _ = figures.remove(*name));
            return figures;
        }
        let mut figures = Map::new();
        if let Some(seconds) = self.known_seconds() {
            let total = seconds.iter().sum::<f64>().max(f64::MIN_POSITIVE);
            figures.insert("conformers_per_second".to_owned(), (seconds.len() as f64 / total).into());
            let TextTimes { texts, tokens, .. } = &self.group.times;
            if tokens.len() as u64 == *texts {
                let tokens: u64 = tokens.iter().sum();
                figures.insert("generated_tokens".to_owned(), tokens.into());
                figures.insert("tokens_per_second".to_owned(), (tokens as f64 / total).into());
            }
        }
        figures
    }
}

impl AuditRun {
    /// A figure of generation, if it is known.
    pub fn generation_figure(&self, name: &str) -> Option<f64> {
        self.generation.get(name)?.as_f64()
    }
}

impl AuditRun {
    /// The figures on which advice rests.
    pub(super) fn advised<'r>(&'r self, times: &'r BatchTimes) -> AdvisedRow<'r> {
        AdvisedRow {
            label: &self.row,
            tokenizer: self.generation.get("tokenizer").and_then(Value::as_str),
            counts: &self.counts,
            geometry: self.geometry.as_ref(),
            times,
        }
    }
}

impl RowResults {
    /// The row without its texts.
    pub(super) fn compared(&self) -> ComparedRow<'_> {
        let texts = self.group.times.texts as f64;
        let total = self.known_seconds().map(|seconds| seconds.iter().sum::<f64>());
        let cost = self.stated.as_ref().map(|run| &run.cost);
        let cpu_seconds = cost.and_then(|cost| cost.cpu_seconds).filter(|seconds| *seconds > 0.0);
        let per_second = total.filter(|seconds| *seconds > 0.0).map(|seconds| texts / seconds);
        ComparedRow {
            label: &self.row,
            texts: Vec::new(),
            deviations: BTreeMap::new(),
            times: self.times(),
            texts_per_cpu_second: cpu_seconds.map(|seconds| texts / seconds),
            texts_per_second: cost.map(|cost| cost.conformers_per_second).or(per_second),
        }
    }
}
