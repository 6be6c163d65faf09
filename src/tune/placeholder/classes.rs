//! Finds a placeholder for each class of blocks, if the gain is real.
//!
//! Molecules are split into halves by a seed. The placeholders are chosen on one half and judged on the other, so that a reported
//! gain is not due to chance.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::assignment::{ClassProblem, ClassifiedConformer};
use super::certificate::Certificate;
use super::counts::{OPTIONS, ReplayTotals};
use super::grammar::{Numbers, Space};
use super::objective::{Harm, Objective};
use super::replay::BlockReplay;
use super::sample::key_of_text;
use super::search::{SearchSettings, search};
use drift_core::error::{Error, Result};
use drift_core::text::partition::Partition;
use drift_data::stats::interval::{LEVEL, PairedDifference, paired};

/// A conformer of the sample on which classes are judged.
pub struct Sampled {
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
    pub judged: Judged,
    /// Whether the search with argmin reached the bound on its own.
    pub search_reached_bound: bool,
    /// The part of harm that is compared: the first part that differs on the other half or, for a weighted objective, the sum.
    pub compared: ComparedHarm,
    /// The harm of the single placeholder minus that of the classes on the other half, by molecule; null if nothing differs.
    pub gain: Option<PairedDifference>,
    /// Whether the gain is positive and significant: p < 0.01 over the number of partitions tried (Bonferroni).
    pub significant: bool,
}

/// The part of harm by which two choices are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ComparedHarm {
    /// u.
    #[serde(rename = "unparsable_blocks")]
    UnparsableBlocks,
    /// r.
    #[serde(rename = "rmsd_angstrom")]
    Rmsd,
    /// j.
    #[serde(rename = "junk_tokens_per_block")]
    JunkTokens,
    /// The weighted sum of all three.
    #[serde(rename = "weighted_harm")]
    WeightedSum,
    /// The choices are equal.
    #[serde(rename = "nothing differs")]
    Nothing,
}

impl ComparedHarm {
    /// The index of the part in `[u, r, j]`.
    pub fn place(self) -> Option<usize> {
        match self {
            ComparedHarm::UnparsableBlocks => Some(0),
            ComparedHarm::Rmsd => Some(1),
            ComparedHarm::JunkTokens => Some(2),
            ComparedHarm::WeightedSum | ComparedHarm::Nothing => None,
        }
    }

    /// The value of this part for a harm `[u, r, j]`; `None` if nothing differs.
    pub fn of(self, harm: [f64; 3], objective: &Objective) -> Option<f64> {
        match (self, objective) {
            (ComparedHarm::WeightedSum, Objective::Weighted { weights, .. }) => {
                Some(harm.iter().zip(weights).map(|(part, weight)| part * weight).sum())
            }
            _ => Some(harm[self.place()?]),
        }
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            ComparedHarm::UnparsableBlocks => "unparsable_blocks",
            ComparedHarm::Rmsd => "rmsd_angstrom",
            ComparedHarm::JunkTokens => "junk_tokens_per_block",
            ComparedHarm::WeightedSum => "weighted_harm",
            ComparedHarm::Nothing => "nothing differs",
        }
    }
}

/// The partition with the least harm among those whose gain is significant; `None` if there is none.
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
pub struct Judged {
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
pub(super) fn analyse(plan: &ClassPlan<'_>, sample: &[Sampled]) -> Result<Vec<PartitionReport>> {
    Partition::ALL.iter().map(|&partition| analyse_one(plan, partition, sample)).collect()
}

fn analyse_one(plan: &ClassPlan<'_>, partition: Partition, sample: &[Sampled]) -> Result<PartitionReport> {
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
        judged: Judged {
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

/// The result of the search with argmin on its own.
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
    fn new(seed: u64, sample: &[Sampled], conformers: Vec<ClassifiedConformer>) -> Self {
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

    /// The number of blocks of a class.
    fn blocks(&self, class: usize) -> u64 {
        let blocks = self.chosen_on.iter().chain(&self.judged_on).flatten();
        blocks.filter(|(c, _)| usize::from(*c) == class).count() as u64
    }
}

/// Classifies the blocks of a sample; classes that do not occur are left out.
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
    // Classes that occur are numbered without gaps, since `ClassProblem` has a table for each.
    present.values_mut().enumerate().for_each(|(index, slot)| *slot = index as u8);
    let conformers = sample.iter().zip(raw).map(|(sampled, classes)| {
        let blocks = classes.iter().zip(&sampled.blocks);
        blocks.map(|(class, block)| (present[class], *block)).collect()
    });
    (labels, conformers.collect())
}

/// The best number of FREE tokens for all classes together.
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

/// A single placeholder beside one for each class, on the conformers that judge them.
struct Comparison<'a> {
    objective: &'a Objective,
    problem: &'a ClassProblem,
    conformers: &'a [ClassifiedConformer],
    /// F by class, the same for all.
    single: &'a [u8],
    /// F by class.
    classes: &'a [u8],
}

/// By how much one choice is more harmful than another.
struct HarmDifference {
    compared: ComparedHarm,
    /// By conformer; `None` if nothing differs.
    by_conformer: Option<Vec<f64>>,
}

impl Comparison<'_> {
    /// The harm of the single placeholder minus that of the classes: in the first part of harm that differs, or in the weighted sum.
    fn difference(&self) -> HarmDifference {
        let [one, many] = self.harms(self.objective);
        let nothing = HarmDifference { compared: ComparedHarm::Nothing, by_conformer: None };
        let differs = |compared, by_conformer| HarmDifference { compared, by_conformer: Some(by_conformer) };
        if let Objective::Weighted { weights, .. } = self.objective {
            if one == many {
                return nothing;
            }
            return differs(ComparedHarm::WeightedSum, self.weighted_sum(*weights, [one, many]));
        }
        // By default harms are compared in the order u, r, j, so the first part that differs decides.
        if one.unparsable != many.unparsable {
            differs(ComparedHarm::UnparsableBlocks, self.unparsable())
        } else if one.excess_rmsd != many.excess_rmsd {
            differs(ComparedHarm::Rmsd, self.rmsd())
        } else if one.junk != many.junk {
            differs(ComparedHarm::JunkTokens, self.junk())
        } else {
            nothing
        }
    }

    /// The harm of the single placeholder, and that of the classes.
    fn harms(&self, objective: &Objective) -> [Harm; 2] {
        [self.single, self.classes].map(|assignment| objective.harm(&self.problem.damage(assignment)))
    }

    /// The difference in the weighted sum, given both harms.
    fn weighted_sum(&self, [u, r, j]: [f64; 3], [one, many]: [Harm; 2]) -> Vec<f64> {
        // RMSD up to the tolerance is no harm, so only the share of the difference above the tolerance counts.
        let [single, classes] = self.harms(&self.objective.without_tolerance());
        let whole = single.excess_rmsd - classes.excess_rmsd;
        let share = if whole == 0.0 { 0.0 } else { (one.excess_rmsd - many.excess_rmsd) / whole };
        let parts = self.unparsable().into_iter().zip(self.rmsd()).zip(self.junk());
        parts.map(|((blocks, rmsd), junk)| u * blocks + r * share * rmsd + j * junk).collect()
    }

    /// The difference in unparsable blocks per block.
    fn unparsable(&self) -> Vec<f64> {
        self.per_block(|free, block| f64::from(u8::from(block.error(free).is_none())))
    }

    /// The difference in junk tokens per block.
    fn junk(&self) -> Vec<f64> {
        self.per_block(|free, block| f64::from(free.saturating_sub(block.tokens)))
    }

    /// The difference in the mean of a cost over the blocks of each conformer.
    fn per_block(&self, cost: fn(u8, &BlockReplay) -> f64) -> Vec<f64> {
        let conformers = self.conformers.iter();
        conformers.map(|blocks| mean(blocks, self.single, cost) - mean(blocks, self.classes, cost)).collect()
    }

    /// The difference in RMSD. A conformer that is readable with only one of them gives no information about the RMSD.
    fn rmsd(&self) -> Vec<f64> {
        let [one, many] =
            [self.single, self.classes].map(|assignment| self.problem.rmsd_by_conformer(assignment));
        one.into_iter().zip(many).map(|(one, many)| one.zip(many).map_or(0.0, |(a, b)| a - b)).collect()
    }
}

/// The mean of a cost over the blocks of a conformer.
fn mean(blocks: &ClassifiedConformer, assignment: &[u8], cost: fn(u8, &BlockReplay) -> f64) -> f64 {
    let costs = blocks.iter().map(|(class, block)| cost(assignment[usize::from(*class)], block));
    costs.sum::<f64>() / blocks.len() as f64
}

/// The mean of each molecule's conformers, which are not independent of each other.
pub(super) fn by_molecule(molecules: &[Arc<str>], by_conformer: &[f64]) -> Vec<f64> {
    let mut means: BTreeMap<&str, (f64, u32)> = BTreeMap::new();
    for (molecule, value) in molecules.iter().zip(by_conformer) {
        let entry = means.entry(molecule).or_default();
        entry.0 += value;
        entry.1 += 1;
    }
    means.values().map(|(sum, count)| sum / f64::from(*count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use drift_core::encoding::Precision;

    /// Of a conformer's two blocks one takes five tokens and the other six; with five of these z is 0.1 Å off.
    fn conformers() -> Vec<ClassifiedConformer> {
        let block = |tokens: u8, last: u32| {
            let mut errors = [0; 12];
            errors[usize::from(tokens) - 4] = last;
            BlockReplay { tokens, parsable_from: 3, precision: Precision::FOUR, errors }
        };
        vec![vec![(0, block(5, 0)), (1, block(6, 1_000))]; 3]
    }

    fn compared(objective: Objective, single: [u8; 2], classes: [u8; 2]) -> (ComparedHarm, f64) {
        let conformers = conformers();
        let problem = ClassProblem::new(&conformers, 2);
        let comparison = Comparison {
            objective: &objective,
            problem: &problem,
            conformers: &conformers,
            single: &single,
            classes: &classes,
        };
        let difference = comparison.difference();
        let gains = difference.by_conformer.unwrap();
        assert!(gains.len() == 3 && gains.iter().all(|gain| *gain == gains[0]));
        (difference.compared, gains[0])
    }

    #[test]
    fn a_weighted_objective_is_compared_by_its_sum() {
        // One placeholder leaves a junk slot in half of the blocks; the classes lose these blocks.
        let by_order = compared(Objective::default(), [6, 6], [2, 6]);
        assert_eq!(by_order, (ComparedHarm::UnparsableBlocks, -0.5));
        let weights = [0.1, 0.0, 1.0];
        let (what, gain) = compared(Objective::new(1e-3, Some(weights)), [6, 6], [2, 6]);
        assert!(what == ComparedHarm::WeightedSum && (gain - (0.5 - 0.05)).abs() < 1e-12, "{gain}");
        let objective = Objective::new(1e-3, Some(weights));
        assert_eq!(what.of([0.5, 7.0, 0.25], &objective), Some(0.3));
        assert_eq!(ComparedHarm::Rmsd.of([0.5, 7.0, 0.25], &objective), Some(7.0));
        assert_eq!(ComparedHarm::Nothing.of([0.5, 7.0, 0.25], &objective), None);
    }

    #[test]
    fn rmsd_below_the_tolerance_is_no_gain() {
        let rmsd = 0.1 / f64::sqrt(2.0);
        let gain = |tolerance| compared(Objective::new(tolerance, Some([0.0, 1.0, 0.0])), [5, 5], [5, 6]).1;
        assert!(
            (gain(0.0) - rmsd).abs() < 1e-9 && (gain(0.05) - (rmsd - 0.05)).abs() < 1e-9,
            "{}",
            gain(0.05)
        );
    }
}
