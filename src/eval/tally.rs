//! From judged texts to the figures of a run.

use super::checkpoint::Checkpoint;
use super::environment::peak_memory_bytes;
use super::examples::examples;
use super::judged::Judged;
use super::paired::{conformers_per_second, total_seconds};
use super::plan::EvalPlan;
use super::probabilities::probabilities;
use super::record::{Cost, Geometry, RunReport, Seconds};
use super::run::{Run, Subject};
use crate::audit::geometry::{COVERAGE_THRESHOLD_ANGSTROM, coverage};
use crate::audit::{Counts, DriftHistogram};
use crate::stats::bootstrap::Mean;
use crate::stats::interval::{ClusterSums, LEVEL};

/// The geometry of one molecule's texts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PerMolecule {
    pub bond_error: Option<f64>,
    pub mat_precision: f64,
    pub mat_recall: f64,
    pub cov_precision: f64,
    pub cov_recall: f64,
}

/// The figures of a run.
pub(super) fn run_report(
    plan: &EvalPlan,
    checkpoint: &Checkpoint,
    subjects: &[Subject],
    run: &Run,
) -> RunReport {
    let judged: Vec<&Judged> = run.judged.iter().collect();
    let mut passed = ClusterSums::default();
    for texts in run.judged.chunk_by(|a, b| a.subject == b.subject) {
        passed.add(texts.iter().filter(|judged| judged.passed()).count() as i64, texts.len() as u64);
    }
    let mut counts = Counts::new(checkpoint.dialect);
    let mut drift = DriftHistogram::default();
    for judged in &run.judged {
        counts.add(&judged.verdict, true);
        drift.merge(&judged.drift);
    }
    RunReport {
        lp: run.processor.name(),
        placeholder: run.placeholder.clone(),
        tokenizer: checkpoint.tokenizer.name.clone(),
        model: checkpoint.name.clone(),
        device: plan.device.name().to_owned(),
        dtype: plan.device.dtype().as_str().to_owned(),
        batch: plan.batch,
        dialect: checkpoint.dialect,
        outcome: counts,
        passed_interval: passed.share_interval(LEVEL),
        cost: cost(run),
        geometry: geometry(&per_molecule(subjects, &judged), plan.seed),
        drift,
        probabilities: probabilities(checkpoint, run),
        examples: examples(subjects, &run.judged),
    }
}

/// The geometry of each molecule with a text that passed and reference conformers; in order.
pub(super) fn per_molecule(subjects: &[Subject], judged: &[&Judged]) -> Vec<PerMolecule> {
    let of_molecule = |texts: &[&Judged]| {
        let Subject { molecule, geometry } = &subjects[texts[0].subject];
        let references = &molecule.references;
        let generated: Vec<_> = texts.iter().filter_map(|judged| judged.points.clone()).collect();
        let deviations = geometry.deviations(&generated, references)?;
        let coverage = coverage(&deviations, references.len(), COVERAGE_THRESHOLD_ANGSTROM)?;
        let errors = generated.iter().map(|points| geometry.bond_length_error(points, references));
        let errors: Option<Vec<f64>> = errors.collect();
        Some(PerMolecule {
            bond_error: errors.map(|errors| errors.iter().sum::<f64>() / errors.len() as f64),
            mat_precision: coverage.mat_precision_angstrom?,
            mat_recall: coverage.mat_recall_angstrom?,
            cov_precision: coverage.cov_precision?,
            cov_recall: coverage.cov_recall,
        })
    };
    judged.chunk_by(|a, b| a.subject == b.subject).filter_map(of_molecule).collect()
}

fn geometry(molecules: &[PerMolecule], seed: u64) -> Option<Geometry> {
    let figure = |value: fn(&PerMolecule) -> Option<f64>| -> Option<Mean> {
        Mean::of(&molecules.iter().filter_map(value).collect::<Vec<f64>>(), seed)
    };
    Some(Geometry {
        threshold_angstrom: COVERAGE_THRESHOLD_ANGSTROM,
        bond_error_angstrom: figure(|molecule| molecule.bond_error)?,
        mat_precision_angstrom: figure(|molecule| Some(molecule.mat_precision))?,
        mat_recall_angstrom: figure(|molecule| Some(molecule.mat_recall))?,
        cov_precision: figure(|molecule| Some(molecule.cov_precision))?,
        cov_recall: figure(|molecule| Some(molecule.cov_recall))?,
    })
}

fn cost(run: &Run) -> Cost {
    let (counts, timing) = (&run.generated.counts, &run.generated.timing);
    let total = total_seconds(run);
    let per_second = |count: u64| count as f64 / total.max(f64::MIN_POSITIVE);
    let characters = run.judged.iter().map(|judged| judged.text.chars().count() as u64).sum();
    Cost {
        generated_tokens: counts.generated_tokens,
        forced_tokens: counts.forced_tokens,
        decode_steps: counts.decode_steps,
        wasted_tokens: run.judged.iter().map(|judged| judged.wasted_tokens).sum(),
        tokens_per_second: per_second(counts.generated_tokens),
        characters_per_second: per_second(characters),
        conformers_per_second: conformers_per_second(run),
        seconds: Seconds {
            total,
            prefill: timing.prefill,
            forward: timing.forward,
            lp: timing.logit_processor,
            sampling: timing.sampling,
            templates: run.templates_seconds,
            other: timing.other,
        },
        peak_memory_bytes: peak_memory_bytes(),
    }
}
