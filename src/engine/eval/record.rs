//! The record of an evaluation: what was run, with which settings and inputs, and the results.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::texts::SameTexts;
use drift_core::constraint::ProcessorKind;
use drift_core::io::read_whole;
use drift_core::job::Provenance;
use drift_core::{Encoding, Error, Job, Result};
use drift_data::audit::chemistry::ChemistryReport;
use drift_data::audit::coverage::CoverageReport;
use drift_data::audit::ensemble::{ClusterReport, HitReport};
pub use drift_data::audit::pairs::{
    ComparedFigure, FigureDifference, PairedComparison, RescuedTexts, SpeedMeasure, SpeedRatio,
};
use drift_data::audit::{
    AuditRun, DriftHistogram, EnergyReport, Example, GeometryReport, MissingPolicy, PicturedText, RankedText,
    RowLabel, SampleCounts,
};
pub use drift_data::generation::{
    ClassPlaceholder, ClassProbability, Cost, EncodingEvidence, Environment, GenerationProtocol, Roofline,
    Seconds, Unseen,
};
use drift_data::generation::{GenerationRun, MaskCost, ResamplingReport, SelfCheck};
use drift_data::prompts::ReferenceCounts;
use drift_data::stats::Interval;
use drift_data::stats::bootstrap::Mean;

/// The schema of [`EvalReport`].
pub const SCHEMA: &str = "drift.eval/1";

/// The largest record that is read, in bytes after decompression. Records with examples of all runs have some megabytes.
const MAX_BYTES: u64 = 1 << 30;

/// What `drift eval` measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvalReport {
    /// [`SCHEMA`].
    pub schema: String,
    /// The program and its inputs.
    pub provenance: Provenance,
    /// The command that gives these results, without the files that it wrote; null in records of a library, and from before this
    /// was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The date and the machine.
    pub environment: Environment,
    /// The settings of the evaluation.
    pub protocol: Protocol,
    /// Whether it was interrupted; the figures are then for the samples that were finished.
    pub interrupted: bool,
    /// One entry per model, logit processor and placeholder.
    pub runs: Vec<RunReport>,
    /// Each run compared with the one without a logit processor on the same model; paired.
    pub comparisons: Vec<PairedComparison>,
    /// The chemistry of the reference conformers, with the same method as for the runs; null without references.
    #[serde(default)]
    pub reference_chemistry: Option<ChemistryReport>,
    /// The likelihood of the reference conformers under each model, if requested.
    pub likelihoods: Vec<Likelihood>,
    /// Recommendations, in words.
    pub advice: Vec<String>,
    /// How far the texts are identical to those of another run, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_texts: Option<SameTexts>,
    /// The energies of the texts, computed by a program of the user, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyReport>,
}

impl EvalReport {
    /// Reads a record, also one that was written before some of the fields existed.
    ///
    /// # Errors
    /// [`Error::Input`] if the file is no record of `drift eval` or is too large; or if it cannot be read, or the job was cancelled.
    pub fn read(path: &Path, job: &Job) -> Result<Self> {
        let refuse =
            |problem: String| Error::input(path.display(), problem, "give a record.json of drift eval");
        let content = read_whole(path, MAX_BYTES, job)?;
        let json: serde_json::Value = serde_json::from_slice(&content.bytes).map_err(|e| {
            refuse(if e.is_eof() {
                "ends in the middle of its JSON".into()
            } else {
                format!("is not JSON: {e}")
            })
        })?;
        match json.get("schema").map(|schema| schema.as_str().unwrap_or_default()) {
            Some(SCHEMA) => {}
            Some(schema) => return Err(refuse(format!("has the schema {schema:?}, not {SCHEMA:?}"))),
            None => return Err(refuse("is no record of drift eval".to_owned())),
        }
        serde_json::from_value(json).map_err(|e| refuse(format!("is no complete record: {e}")))
    }
}

/// The settings of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Protocol {
    /// The settings of the generation.
    #[serde(flatten)]
    pub generation: GenerationProtocol,
    /// The counts of reference conformers.
    #[serde(default)]
    pub references: ReferenceCounts,
    /// Whether junk was stripped from numbers before the texts were judged.
    pub strip_junk: bool,
    /// How molecules without a comparable text count in coverage and matching.
    #[serde(default)]
    pub missing: MissingPolicy,
}

/// The results of one model with one logit processor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// The logit processor.
    pub lp: ProcessorKind,
    /// The placeholder, without brackets. If each class of blocks has its own, how blocks are classified and in which file. Null if
    /// the processor needs none.
    pub placeholder: Option<String>,
    /// The placeholder of each class of blocks, if blocks are classified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placeholder_classes: Vec<ClassPlaceholder>,
    /// The tokenizer's name.
    pub tokenizer: String,
    /// The model's name.
    pub model: String,
    /// `cpu` or `cuda:0`.
    pub device: String,
    /// The number type of the weights and the cache.
    pub dtype: String,
    /// The number of rows of a batch.
    pub batch: usize,
    /// How coordinates are written.
    #[serde(rename = "dialect")]
    pub encoding: Encoding,
    /// How the encoding was determined; null in records from before this was recorded.
    #[serde(default, rename = "dialect_from")]
    pub encoding_from: Option<EncodingEvidence>,
    /// Whether the molecules are known to be new to the model.
    #[serde(default)]
    pub unseen: Unseen,
    /// The counts of texts by outcome.
    #[serde(flatten)]
    pub outcome: SampleCounts,
    /// The 95 % confidence interval of the share that passed, over molecules.
    pub passed_interval: Option<Interval>,
    /// The chemistry of the texts that pass; zeros in records from before this was recorded.
    #[serde(flatten)]
    pub chemistry: ChemistryReport,
    /// The texts that break the most rules.
    #[serde(default)]
    pub worst: Vec<PicturedText>,
    /// The best, the median and the worst text by RMSD to the nearest reference; left out without references, and in records from
    /// before this was recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranked: Vec<RankedText>,
    /// The cost of the run.
    #[serde(flatten)]
    pub cost: Cost,
    /// The result of a GPU's self-check before it wrote texts; null on the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub self_check: Option<SelfCheck>,
    /// How the seconds of `batch_seconds` are measured.
    #[serde(default)]
    pub speed_measure: SpeedMeasure,
    /// The seconds of generation for each consecutive group of as many finished texts as a batch has rows. The last entry is for
    /// the remaining texts.
    #[serde(default)]
    pub batch_seconds: Vec<f64>,
    /// The geometry of texts that passed; null without reference conformers.
    pub geometry: Option<GeometryReport>,
    /// Coverage and matching as usual in the field; empty without reference conformers.
    #[serde(flatten)]
    pub coverage: CoverageReport,
    /// Hit@K, if requested; left out without reference conformers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hits: Option<HitReport>,
    /// Clusters and torsions, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters: Option<ClusterReport>,
    /// The number of blocks by drift, which is the number of FREE tokens of the template minus the number of tokens of the block.
    /// Only for position templates.
    pub drift: DriftHistogram,
    /// The model's probability of the tokens that were written.
    pub probabilities: Vec<ClassProbability>,
    /// The effect of the mask on the model's distribution, if all logits were computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask_cost: Option<MaskCost>,
    /// The results of resampling by it, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resampling: Option<ResamplingReport>,
    /// Some of the texts that did not pass, or that contain junk or lost digits.
    pub examples: Vec<Example>,
}

/// The likelihood of the reference conformers under a model. It shows what a tokenizer costs the model, since nats of whole texts
/// are comparable between tokenizers while nats of tokens are not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Likelihood {
    /// The model's name.
    pub model: String,
    /// The name of its tokenizer.
    pub tokenizer: String,
    /// The number of conformers that were scored.
    pub conformers: u64,
    /// The mean number of tokens of an answer, including the end of text.
    pub tokens_per_conformer: f64,
    /// The negative log-likelihood of an answer after its prompt, in nats, summed over its tokens. It is averaged over the
    /// conformers of each molecule, then over molecules.
    pub nats_per_conformer: Mean,
    /// The nats per conformer minus those of the first model, paired by molecule; null for the first model.
    #[serde(default)]
    pub difference: Option<Mean>,
}

impl RunReport {
    /// Returns what a run knows of its generation, with the verdicts on its texts and their drift.
    pub(super) fn new(run: GenerationRun, judged: AuditRun, drift: DriftHistogram) -> Self {
        RunReport {
            lp: run.lp,
            placeholder: run.placeholder,
            placeholder_classes: run.placeholder_classes,
            tokenizer: run.tokenizer,
            model: run.model,
            device: run.device,
            dtype: run.dtype,
            batch: run.batch,
            encoding: run.encoding,
            encoding_from: run.encoding_from,
            unseen: run.unseen,
            outcome: judged.counts,
            passed_interval: judged.passed_interval,
            chemistry: judged.chemistry,
            worst: judged.worst,
            ranked: judged.ranked,
            cost: run.cost,
            self_check: run.self_check,
            speed_measure: run.speed_measure,
            batch_seconds: run.batch_seconds,
            geometry: judged.geometry.filter(|geometry| geometry.molecules > 0),
            coverage: judged.coverage,
            hits: judged.hits,
            clusters: judged.clusters,
            drift,
            probabilities: run.probabilities,
            mask_cost: run.mask_cost,
            resampling: run.resampling,
            examples: judged.examples,
        }
    }

    /// Returns the name of the logit processor with its placeholder, as in `allowlist 0.0000,0.0000,0.0000`.
    pub fn label(&self) -> String {
        self.row_label().processor()
    }

    /// Returns what is known of its texts.
    pub fn row_label(&self) -> RowLabel {
        RowLabel::new(&self.model, self.lp, self.placeholder.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drift_data::audit::ExampleProblem;
    use drift_data::generation::{EngineChoice, Room, Synthetic};

    #[test]
    fn names_are_those_of_records() {
        for (name, json) in [
            ExampleProblem::Junk,
            ExampleProblem::Lost,
            ExampleProblem::Invented,
            ExampleProblem::NoEnd,
            ExampleProblem::Unreadable,
            ExampleProblem::OtherMolecule,
            ExampleProblem::Passes,
        ]
        .map(|problem| (problem.name(), serde_json::to_value(problem).unwrap()))
        {
            assert_eq!(json, name);
        }
        for kind in ProcessorKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        for shape in Synthetic::ALL {
            assert_eq!(serde_json::to_value(shape).unwrap(), shape.name());
        }
        for engine in EngineChoice::ALL {
            assert_eq!(serde_json::to_value(engine).unwrap(), engine.name());
        }
        for room in Room::ALL {
            assert_eq!(serde_json::to_value(room).unwrap(), room.name());
        }
    }

    #[test]
    fn comparisons_without_the_newer_fields_are_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../eval/records");
        let path = folder.join("2026-11-20-reference-qwen-like/record.json");
        let read = EvalReport::read(&path, &Job::default()).unwrap().comparisons;
        assert_eq!(read.len(), 13);
        assert!(
            read.iter().all(|pair| pair.figures.is_empty() && pair.speed.is_none() && pair.rescued.is_none())
        );
    }
}
