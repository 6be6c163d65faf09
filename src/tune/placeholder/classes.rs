//! Finds a placeholder for each class of blocks, if the gain is real.
//!
//! Molecules are split into halves by a seed. The placeholders are chosen on one half and judged on the other, so that a reported
//! gain is not due to chance.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::assignment::{ClassProblem, ClassifiedConformer};
use super::certificate::Certificate;
use super::comparison::{ComparedHarm, Comparison, HarmDifference};
use super::counts::{OPTIONS, ReplayTotals};
use super::grammar::{Numbers, Space};
use super::objective::{Harm, Objective};
use super::replay::BlockReplay;
use super::sample::key_of_text;
use super::search::{SearchSettings, search};
use drift_core::text::partition::Partition;
use drift_core::{Error, Result};
use drift_data::stats::interval::{LEVEL, PairedDifference, paired};

/// A conformer of the sample on which classes are judged.
pub(crate) struct SampleConformer {
    /// The molecule, which is the unit of independent observation.
    pub molecule: Arc<str>,
    /// Its skeleton, which determines the classes of its blocks.
    pub skeleton: Arc<str>,
    /// The replay of each block.
    pub blocks: Vec<BlockReplay>,
}

/// The gain from one way to classify blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartitionReport {
    /// The classification, which is a function of the skeleton.
    pub partition: Partition,
    /// The classes that occur, with the placeholder of each.
    pub classes: Vec<ClassReport>,
    /// The certificate of this assignment, on the half of molecules on which it was chosen.
    pub certificate: Certificate,
    /// `[u, r, j]` of the best single placeholder on the same half.
    pub single: [f64; 3],
    /// The results on the other half.
    pub judged: HeldOutResult,
    /// Whether the search with argmin reached the bound on its own.
    pub search_reached_bound: bool,
    /// The part of harm that is compared: the first part that differs on the other half or, for a weighted objective, the sum.
    pub compared: ComparedHarm,
    /// The harm of the single placeholder minus that of the classes on the other half, by molecule; null if nothing differs.
    pub gain: Option<PairedDifference>,
    /// Whether the gain is positive and significant: p < 0.01 over the number of partitions tried (Bonferroni).
    pub significant: bool,
}

/// Returns the partition with the least harm among those whose gain is significant; `None` if there is none.
pub fn best_partition<'p>(
    objective: &Objective,
    reported: impl IntoIterator<Item = &'p PartitionReport>,
) -> Option<&'p PartitionReport> {
    let significant = reported.into_iter().filter(|partition| partition.significant);
    // They were judged on the half of molecules on which nothing was chosen, so their harms are comparable.
    significant.min_by(|a, b| {
        objective.compare_harms(Harm::from_parts(a.judged.classes), Harm::from_parts(b.judged.classes))
    })
}

/// The results on one half of the molecules of what was chosen on the other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HeldOutResult {
    /// The number of conformers of that half.
    pub conformers: u64,
    /// `[u, r, j]` of the single placeholder.
    pub single: [f64; 3],
    /// `[u, r, j]` of one placeholder per class.
    pub classes: [f64; 3],
}

/// One class and its placeholder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassReport {
    /// The class.
    pub class: String,
    /// The number of blocks of the sample in the class.
    pub blocks: u64,
    /// Its placeholder.
    pub placeholder: String,
}

/// The possible choices, and how they are judged.
pub(super) struct ClassPlan<'a> {
    /// The strings of the encoding, which the search explores.
    pub space: Space,
    /// Numbers of FREE tokens with their placeholders, best first in the order of ties.
    pub choices: &'a [(u8, String)],
    /// Computes the F of a placeholder.
    pub free_tokens: &'a dyn Fn(&Numbers) -> Result<u8>,
    /// The definition of harm.
    pub objective: &'a Objective,
    /// The settings of the search; the seed also splits the molecules.
    pub settings: SearchSettings,
}

/// Tries every partition on a sample.
///
/// # Errors
/// If a placeholder cannot be counted, or argmin refuses its settings.
pub(super) fn analyse(plan: &ClassPlan<'_>, sample: &[SampleConformer]) -> Result<Vec<PartitionReport>> {
    Partition::ALL.iter().map(|&partition| analyse_one(plan, partition, sample)).collect()
}

fn analyse_one(
    plan: &ClassPlan<'_>,
    partition: Partition,
    sample: &[SampleConformer],
) -> Result<PartitionReport> {
    let objective = plan.objective;
    let (labels, conformers) = classify(partition, sample);
    let halves = Halves::new(plan.settings.seed, sample, conformers);
    let problem = ClassProblem::new(&halves.chosen_on, labels.len());
    let allowed: Vec<u8> = plan.choices.iter().map(|(free, _)| *free).collect();
    let nothing = || Error::input(partition.name(), "no placeholder to choose from", "");
    let single = best_single(&problem, objective, &allowed, labels.len()).ok_or_else(nothing)?;
    let (mut assignment, _) = problem.solve(objective, &allowed).ok_or_else(nothing)?;
    // A class without blocks in this half gives no information, so it keeps the single placeholder.
    for class in (0..labels.len()).filter(|class| !problem.has_blocks(*class)) {
        assignment[class] = single[class];
    }
    // All F, attainable or not: the bound must hold even for strings that were not constructed.
    let all: Vec<u8> = (0..OPTIONS as u8).collect();
    let (_, bound) = problem.solve(objective, &all).ok_or_else(nothing)?;
    let found = search_classes(plan, &problem, labels.len())?;
    let other = ClassProblem::new(&halves.judged_on, labels.len());
    let judged = Comparison {
        objective,
        problem: &other,
        conformers: &halves.judged_on,
        single: &single,
        classes: &assignment,
    };
    let HarmDifference { compared, by_conformer } = judged.difference();
    let gain = by_conformer.and_then(|all| paired(&by_molecule(&halves.judged_molecules, &all), LEVEL));
    let [judged_single, judged_classes] = judged.harms(objective).map(Harm::parts);
    let classes = labels.iter().enumerate().map(|(class, &label)| ClassReport {
        class: label.to_owned(),
        blocks: halves.blocks(class),
        placeholder: placeholder(plan.choices, assignment[class]),
    });
    Ok(PartitionReport {
        partition,
        classes: classes.collect(),
        certificate: Certificate::new(objective, &problem.damage(&assignment), &bound, None),
        single: objective.harm(&problem.damage(&single)).parts(),
        judged: HeldOutResult {
            conformers: halves.judged_on.len() as u64,
            single: judged_single,
            classes: judged_classes,
        },
        search_reached_bound: objective.compare(&found, &bound).is_le(),
        compared,
        // Bonferroni: with several partitions tried, one of them would look significant by chance.
        significant: gain.is_some_and(|g| g.mean > 0.0 && g.p_value < 0.01 / Partition::ALL.len() as f64),
        gain,
    })
}

fn placeholder(choices: &[(u8, String)], free: u8) -> String {
    choices.iter().find(|(f, _)| *f == free).map_or_else(String::new, |(_, text)| text.clone())
}

/// Returns the result of the search with argmin on its own.
fn search_classes(plan: &ClassPlan<'_>, problem: &ClassProblem, classes: usize) -> Result<ReplayTotals> {
    let known: std::cell::RefCell<HashMap<Numbers, u8>> = std::cell::RefCell::default();
    let free = |numbers: &Numbers| -> Result<u8> {
        if let Some(free) = known.borrow().get(numbers) {
            return Ok(*free);
        }
        let free = (plan.free_tokens)(numbers)?;
        known.borrow_mut().insert(*numbers, free);
        Ok(free)
    };
    // Many strings have the same few numbers of tokens.
    let damages: std::cell::RefCell<HashMap<Vec<u8>, ReplayTotals>> = std::cell::RefCell::default();
    let found = search(plan.space, classes, plan.objective, plan.settings, |placeholders| {
        let assignment: Vec<u8> = placeholders.iter().map(free).collect::<Result<_>>()?;
        let mut damages = damages.borrow_mut();
        Ok(*damages.entry(assignment).or_insert_with_key(|assignment| problem.damage(assignment)))
    })?;
    Ok(found.damage)
}

/// The sample, split into halves by molecule.
struct Halves {
    chosen_on: Vec<ClassifiedConformer>,
    judged_on: Vec<ClassifiedConformer>,
    /// The molecule of each judged conformer.
    judged_molecules: Vec<Arc<str>>,
}

impl Halves {
    fn new(seed: u64, sample: &[SampleConformer], conformers: Vec<ClassifiedConformer>) -> Self {
        let mut halves =
            Halves { chosen_on: Vec::new(), judged_on: Vec::new(), judged_molecules: Vec::new() };
        for (sampled, conformer) in sample.iter().zip(conformers) {
            if key_of_text(seed, &sampled.molecule).is_multiple_of(2) {
                halves.chosen_on.push(conformer);
            } else {
                halves.judged_on.push(conformer);
                halves.judged_molecules.push(sampled.molecule.clone());
            }
        }
        // With a single molecule there are no halves. It is used for choosing and nothing is judged, so no gain is called
        // significant.
        if halves.chosen_on.is_empty() {
            std::mem::swap(&mut halves.chosen_on, &mut halves.judged_on);
            halves.judged_molecules.clear();
        }
        halves
    }

    /// Returns the number of blocks of a class.
    fn blocks(&self, class: usize) -> u64 {
        let blocks = self.chosen_on.iter().chain(&self.judged_on).flatten();
        blocks.filter(|(c, _)| usize::from(*c) == class).count() as u64
    }
}

/// Classifies the blocks of a sample; classes that do not occur are left out.
fn classify(
    partition: Partition,
    sample: &[SampleConformer],
) -> (Vec<&'static str>, Vec<ClassifiedConformer>) {
    let mut raw = Vec::with_capacity(sample.len());
    let mut present = BTreeMap::new();
    for sampled in sample {
        let mut classes = Vec::with_capacity(sampled.blocks.len());
        partition.classes(&sampled.skeleton, &mut classes);
        classes.iter().for_each(|class| _ = present.insert(*class, 0u8));
        raw.push(classes);
    }
    let labels = present.keys().map(|class| partition.labels()[usize::from(*class)]).collect();
    // Classes that occur are numbered without gaps, since `ClassProblem` has a table for each.
    present.values_mut().enumerate().for_each(|(index, slot)| *slot = index as u8);
    let conformers = sample.iter().zip(raw).map(|(sampled, classes)| {
        let blocks = classes.iter().zip(&sampled.blocks);
        blocks.map(|(class, block)| (present[class], *block)).collect()
    });
    (labels, conformers.collect())
}

/// Returns the best number of FREE tokens for all classes together.
fn best_single(
    problem: &ClassProblem,
    objective: &Objective,
    allowed: &[u8],
    classes: usize,
) -> Option<Vec<u8>> {
    let damages = allowed.iter().map(|&free| (problem.damage(&vec![free; classes]), free));
    // Keeps the first of equal ones.
    let best =
        damages.reduce(|best, next| if objective.compare(&next.0, &best.0).is_lt() { next } else { best });
    best.map(|(_, free)| vec![free; classes])
}

/// Returns the mean of each molecule's conformers, which are not independent of each other.
pub(super) fn by_molecule(molecules: &[Arc<str>], by_conformer: &[f64]) -> Vec<f64> {
    let mut means: BTreeMap<&str, (f64, u32)> = BTreeMap::new();
    for (molecule, value) in molecules.iter().zip(by_conformer) {
        let entry = means.entry(molecule).or_default();
        entry.0 += value;
        entry.1 += 1;
    }
    means.values().map(|(sum, count)| sum / f64::from(*count)).collect()
}
