//! The proof that no assignment of tokens to classes does less harm: branch and bound over integer vectors.
//!
//! One placeholder is the case of one class. Given to every class an option (F by left group), harm is
//! `u = Σ unparsable / blocks`, `j = Σ junk / blocks` and `r` from the mean over conformers of
//! `sqrt(Σ_class error² / atoms)`. Each grows with each class's own share, so a partial assignment with the other
//! classes at their least u and j and at no error bounds every completion from below.

use serde::Serialize;

use super::evidence::rmsd_angstrom;
use super::objective::{Harm, Objective};
use super::options::Options;
use super::replay::BlockReplay;

/// Least harm reached, least harm possible, and the difference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Certificate {
    /// `[u, r, j]` of the chosen placeholder.
    pub objective: [f64; 3],
    /// `[u, r, j]` below which nothing goes: the least over all integer numbers of FREE tokens.
    pub lower_bound: [f64; 3],
    /// The largest difference of the two.
    pub gap: f64,
}

impl Certificate {
    /// Compares what was reached with what is possible.
    pub fn new(reached: Harm, bound: Harm) -> Self {
        let (objective, lower_bound) = (reached.parts(), bound.parts());
        let gap = objective.iter().zip(lower_bound).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        Certificate { objective, lower_bound, gap }
    }
}

/// One conformer's blocks: (class, left group, replay).
pub type ClassifiedConformer = Vec<(u8, u8, BlockReplay)>;

/// Costs of every option in every class.
pub struct ClassProblem {
    blocks: f64,
    /// Atoms of each conformer.
    atoms: Vec<f64>,
    classes: Vec<Vec<Cost>>,
}

/// What an option does to the blocks of one class.
#[derive(Debug, Clone)]
struct Cost {
    option: usize,
    unparsable: u64,
    junk: u64,
    /// Squared error by conformer, in (10⁻⁴ Å)².
    errors: Vec<u64>,
    /// Conformers with an unparsable block of this class.
    lost: Vec<bool>,
}

impl ClassProblem {
    /// Tabulates conformers whose blocks were sorted into `class_count` classes.
    pub fn new(options: &Options, conformers: &[ClassifiedConformer], class_count: usize) -> Self {
        let blocks: usize = conformers.iter().map(Vec::len).sum();
        let classes = (0..class_count).map(|class| {
            let mut costs: Vec<Cost> = Vec::with_capacity(options.list.len());
            for (option, placeholders) in options.list.iter().enumerate() {
                costs.push(Cost::tabulate(option, &placeholders.vector, conformers, class as u8));
            }
            costs
        });
        ClassProblem {
            blocks: blocks as f64,
            atoms: conformers.iter().map(|c| c.len() as f64).collect(),
            classes: classes.collect(),
        }
    }

    /// The harm of an assignment: an option for each class.
    pub fn harm(&self, objective: &Objective, assignment: &[usize]) -> Harm {
        let chosen: Vec<&Cost> =
            assignment.iter().zip(&self.classes).map(|(&option, costs)| &costs[option]).collect();
        self.harm_of(objective, &chosen)
    }

    fn harm_of(&self, objective: &Objective, chosen: &[&Cost]) -> Harm {
        let unparsable: u64 = chosen.iter().map(|c| c.unparsable).sum();
        let junk: u64 = chosen.iter().map(|c| c.junk).sum();
        let rmsds: Vec<f64> = self.rmsds(chosen).into_iter().flatten().collect();
        let mean = if rmsds.is_empty() { 0.0 } else { rmsds.iter().sum::<f64>() / rmsds.len() as f64 };
        objective.harm(unparsable as f64 / self.blocks, mean, junk as f64 / self.blocks)
    }

    /// RMSD of each conformer in Å; none where a block is unparsable.
    fn rmsds(&self, chosen: &[&Cost]) -> Vec<Option<f64>> {
        let one = |conformer: usize| {
            if chosen.iter().any(|cost| cost.lost[conformer]) {
                return None;
            }
            let sum = chosen.iter().map(|cost| cost.errors[conformer]).fold(0, u64::saturating_add);
            Some(rmsd_angstrom(sum, self.atoms[conformer]))
        };
        (0..self.atoms.len()).map(one).collect()
    }

    /// RMSD (Å; zero where unparsable) and junk tokens per block of each conformer are not additive over classes, so
    /// comparisons of two assignments are made on RMSDs by conformer.
    pub fn rmsd_by_conformer(&self, assignment: &[usize]) -> Vec<f64> {
        let chosen: Vec<&Cost> =
            assignment.iter().zip(&self.classes).map(|(&option, costs)| &costs[option]).collect();
        self.rmsds(&chosen).into_iter().map(|rmsd| rmsd.unwrap_or(0.0)).collect()
    }

    /// The assignment of least harm among the options that `allowed` lets through, by exhaustive branch and bound.
    pub fn solve(
        &self,
        objective: &Objective,
        allowed: impl Fn(usize) -> bool,
    ) -> Option<(Vec<usize>, Harm)> {
        let lists: Vec<Vec<&Cost>> =
            self.classes.iter().map(|costs| self.undominated(objective, costs, &allowed)).collect();
        let mut search = BranchAndBound { problem: self, objective, lists: &lists, best: None };
        search.descend(&mut Vec::with_capacity(lists.len()));
        search.best.map(|(chosen, harm)| (chosen.iter().map(|cost| cost.option).collect(), harm))
    }

    /// The options of a class that can be part of a best assignment, least junk first.
    fn undominated<'a>(
        &self,
        objective: &Objective,
        costs: &'a [Cost],
        allowed: &impl Fn(usize) -> bool,
    ) -> Vec<&'a Cost> {
        let mut list: Vec<&Cost> = costs.iter().filter(|cost| allowed(cost.option)).collect();
        if matches!(objective, Objective::Lexicographic { .. }) {
            // u comes first and classes add up in it, so each class must reach its own least.
            let least = list.iter().map(|cost| cost.unparsable).min().unwrap_or(0);
            list.retain(|cost| cost.unparsable == least);
        }
        list.sort_by_key(|cost| (cost.junk, cost.total_error(), cost.option));
        let mut kept: Vec<&Cost> = Vec::new();
        for cost in list {
            if !kept.iter().any(|other| other.dominates(cost)) {
                kept.push(cost);
            }
        }
        kept
    }
}

impl Cost {
    fn tabulate(option: usize, vector: &[u8], conformers: &[ClassifiedConformer], class: u8) -> Self {
        let mut cost = Cost {
            option,
            unparsable: 0,
            junk: 0,
            errors: Vec::with_capacity(conformers.len()),
            lost: Vec::new(),
        };
        for conformer in conformers {
            let (mut sum, mut lost) = (0u64, false);
            for (_, group, block) in conformer.iter().filter(|(c, _, _)| *c == class) {
                let f = vector[usize::from(*group)];
                cost.junk += u64::from(f.saturating_sub(block.tokens));
                match block.error(f) {
                    Some(error) => {
                        sum = sum.saturating_add(u64::from(error).saturating_mul(u64::from(error)))
                    }
                    None => {
                        lost = true;
                        cost.unparsable += 1;
                    }
                }
            }
            cost.errors.push(sum);
            cost.lost.push(lost);
        }
        cost
    }

    fn total_error(&self) -> u128 {
        self.errors.iter().map(|e| u128::from(*e)).sum()
    }

    /// Never worse in anything, for no conformer.
    fn dominates(&self, other: &Cost) -> bool {
        self.unparsable <= other.unparsable
            && self.junk <= other.junk
            && self.errors.iter().zip(&other.errors).all(|(a, b)| a <= b)
            && self.lost.iter().zip(&other.lost).all(|(a, b)| a <= b)
    }
}

struct BranchAndBound<'a> {
    problem: &'a ClassProblem,
    objective: &'a Objective,
    lists: &'a [Vec<&'a Cost>],
    best: Option<(Vec<&'a Cost>, Harm)>,
}

impl<'a> BranchAndBound<'a> {
    fn descend(&mut self, chosen: &mut Vec<&'a Cost>) {
        let depth = chosen.len();
        let harm = self.bound(chosen);
        if let Some((_, best)) = &self.best
            && self.objective.compare(harm, *best).is_ge()
        {
            return;
        }
        if depth == self.lists.len() {
            self.best = Some((chosen.clone(), harm));
            return;
        }
        for cost in &self.lists[depth] {
            chosen.push(cost);
            self.descend(chosen);
            chosen.pop();
        }
    }

    /// At most the harm of any completion of `chosen`; the harm itself where nothing is left to choose.
    fn bound(&self, chosen: &[&Cost]) -> Harm {
        let mut harm = self.problem.harm_of(self.objective, chosen);
        let rest = &self.lists[chosen.len()..];
        if rest.is_empty() {
            return harm;
        }
        let least = |part: fn(&Cost) -> u64| -> u64 {
            rest.iter().filter_map(|costs| costs.iter().map(|c| part(c)).min()).sum()
        };
        harm.unparsable += least(|c| c.unparsable) as f64 / self.problem.blocks;
        harm.junk += least(|c| c.junk) as f64 / self.problem.blocks;
        // The mean is over parsable conformers only: where the rest may lose some, it may fall.
        if rest.iter().flatten().any(|cost| cost.unparsable > 0) {
            harm.excess_rmsd = 0.0;
        }
        harm
    }
}
