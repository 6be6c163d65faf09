//! A placeholder for each class of block, where the gain is real.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::certificate::{Certificate, ClassProblem, ClassifiedConformer};
use super::objective::{Harm, Objective};
use super::options::Options;
use super::partition::Partition;
use super::replay::BlockReplay;
use super::search::{SearchSettings, search};
use crate::error::{Error, Result};
use crate::stats::interval::{Paired, paired};

/// A conformer of the sample that classes are judged on.
pub struct Sampled {
    /// The molecule, which is the unit of independent observation.
    pub molecule: Arc<str>,
    /// Its skeleton, of which classes are functions.
    pub skeleton: Arc<str>,
    /// Left group and replay of each block.
    pub blocks: Vec<(u8, BlockReplay)>,
}

/// What one way to class blocks would gain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartitionReport {
    /// The function of the skeleton.
    pub partition: &'static str,
    /// The classes that occur, with the placeholder of each.
    pub classes: Vec<ClassReport>,
    /// Of this assignment.
    pub certificate: Certificate,
    /// `[u, r, j]` of the best single placeholder on the same conformers.
    pub single: [f64; 3],
    /// Whether argmin's search reached the bound by itself.
    pub search_reached_bound: bool,
    /// The part of harm that is compared: the first one that differs.
    pub compared: &'static str,
    /// Single placeholder minus classes, by molecule; none if nothing differs.
    pub gain: Option<Paired>,
    /// Whether the gain is positive and significant: p < 0.01 over the number of partitions tried (Bonferroni).
    pub significant: bool,
}

/// One class and its placeholder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassReport {
    /// The class.
    pub class: &'static str,
    /// How many blocks of the sample are in it.
    pub blocks: u64,
    /// Its placeholder.
    pub placeholder: String,
}

/// Tries every partition on a sample.
///
/// # Errors
/// If argmin refuses its settings.
pub fn analyse(
    options: &Options,
    objective: &Objective,
    sample: &[Sampled],
    settings: SearchSettings,
) -> Result<Vec<PartitionReport>> {
    Partition::ALL
        .iter()
        .map(|&partition| analyse_one(partition, options, objective, sample, settings))
        .collect()
}

fn analyse_one(
    partition: Partition,
    options: &Options,
    objective: &Objective,
    sample: &[Sampled],
    settings: SearchSettings,
) -> Result<PartitionReport> {
    let (labels, conformers) = classify(partition, sample);
    let problem = ClassProblem::new(options, &conformers, labels.len());
    let attainable = |option: usize| options.list[option].best.is_some();
    // An empty list of options cannot be: the search space has 8,000 placeholders.
    let (assignment, harm) = problem
        .solve(objective, attainable)
        .ok_or_else(|| Error::input(partition.name(), "no placeholder to choose from", ""))?;
    let (_, bound) = problem.solve(objective, |_| true).unwrap_or((Vec::new(), harm));
    let (single, single_harm) = best_single(&problem, options, objective, labels.len());
    let found = search(labels.len(), objective, settings, |shapes| {
        let chosen: Vec<usize> = shapes.iter().map(|shape| options.of_shape(*shape)).collect();
        problem.harm(objective, &chosen)
    })
    .map_err(|e| Error::input("search", e, ""))?;
    let (compared, differences) =
        differences(&problem, options, &conformers, (&single, single_harm), (&assignment, harm));
    let gain = differences.and_then(|by_conformer| paired(&by_molecule(sample, &by_conformer), 0.95));
    let significant = gain.is_some_and(|g| g.mean > 0.0 && g.p_value < 0.01 / Partition::ALL.len() as f64);
    let classes = labels.iter().enumerate().map(|(class, &label)| ClassReport {
        class: label,
        blocks: conformers.iter().flatten().filter(|(c, _, _)| usize::from(*c) == class).count() as u64,
        placeholder: options.list[assignment[class]].best.map_or_else(String::new, |shape| shape.text()),
    });
    Ok(PartitionReport {
        partition: partition.name(),
        classes: classes.collect(),
        certificate: Certificate::new(harm, bound),
        single: single_harm.parts(),
        search_reached_bound: objective.compare(found.harm, bound).is_le(),
        compared,
        gain,
        significant,
    })
}

/// Sorts the blocks of a sample; classes that do not occur are left out.
fn classify(partition: Partition, sample: &[Sampled]) -> (Vec<&'static str>, Vec<ClassifiedConformer>) {
    let mut raw = Vec::with_capacity(sample.len());
    let mut present = BTreeMap::new();
    for sampled in sample {
        let mut classes = Vec::with_capacity(sampled.blocks.len());
        partition.classes(&sampled.skeleton, &mut classes);
        classes.iter().for_each(|class| _ = present.insert(*class, 0u8));
        raw.push(classes);
    }
    let labels = present.keys().map(|class| partition.labels()[usize::from(*class)]).collect();
    present.values_mut().enumerate().for_each(|(index, slot)| *slot = index as u8);
    let conformers = sample.iter().zip(raw).map(|(sampled, classes)| {
        let blocks = classes.iter().zip(&sampled.blocks);
        blocks.map(|(class, (group, block))| (present[class], *group, *block)).collect()
    });
    (labels, conformers.collect())
}

/// The best option for all classes together.
fn best_single(
    problem: &ClassProblem,
    options: &Options,
    objective: &Objective,
    classes: usize,
) -> (Vec<usize>, Harm) {
    options
        .attainable()
        .map(|(option, _)| {
            let assignment = vec![option; classes];
            let harm = problem.harm(objective, &assignment);
            (assignment, harm)
        })
        .min_by(|a, b| objective.compare(a.1, b.1))
        .unwrap_or_else(|| (Vec::new(), objective.harm(1.0, 0.0, 0.0)))
}

/// Single minus classes, by conformer, in the first part of harm that differs.
fn differences(
    problem: &ClassProblem,
    options: &Options,
    conformers: &[ClassifiedConformer],
    single: (&[usize], Harm),
    classes: (&[usize], Harm),
) -> (&'static str, Option<Vec<f64>>) {
    let subtract = |a: Vec<f64>, b: Vec<f64>| Some(a.iter().zip(&b).map(|(a, b)| a - b).collect());
    let counts = |cost: fn(u8, &BlockReplay) -> f64| {
        let by_conformer = |assignment: &[usize]| -> Vec<f64> {
            let one = |blocks: &ClassifiedConformer| {
                let sum: f64 = blocks
                    .iter()
                    .map(|(class, group, block)| {
                        let vector = &options.list[assignment[usize::from(*class)]].vector;
                        cost(vector[usize::from(*group)], block)
                    })
                    .sum();
                sum / blocks.len() as f64
            };
            conformers.iter().map(one).collect()
        };
        subtract(by_conformer(single.0), by_conformer(classes.0))
    };
    if single.1.unparsable != classes.1.unparsable {
        ("unparsable_blocks", counts(|f, block| f64::from(u8::from(block.error(f).is_none()))))
    } else if single.1.excess_rmsd != classes.1.excess_rmsd {
        ("rmsd_angstrom", subtract(problem.rmsd_by_conformer(single.0), problem.rmsd_by_conformer(classes.0)))
    } else if single.1.junk != classes.1.junk {
        ("junk_tokens_per_block", counts(|f, block| f64::from(f.saturating_sub(block.tokens))))
    } else {
        ("nothing differs", None)
    }
}

/// The mean of each molecule's conformers: they are not independent of each other.
fn by_molecule(sample: &[Sampled], by_conformer: &[f64]) -> Vec<f64> {
    let mut molecules: BTreeMap<&str, (f64, u32)> = BTreeMap::new();
    for (sampled, value) in sample.iter().zip(by_conformer) {
        let entry = molecules.entry(&sampled.molecule).or_default();
        entry.0 += value;
        entry.1 += 1;
    }
    molecules.values().map(|(sum, count)| sum / f64::from(*count)).collect()
}
