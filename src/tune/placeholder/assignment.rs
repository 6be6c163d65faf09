//! The best placeholder for each class of block, by branch and bound over numbers of FREE tokens: exhaustive.
//!
//! Given F for every class, `u = Σ unparsable / blocks`, `j = Σ junk / blocks` and `r` follows from the mean over
//! conformers of `sqrt(Σ_class error² / atoms)`. Each grows with each class's own share, so a partial assignment with the
//! other classes at their least u and j and at no error bounds every completion from below.

use super::counts::{OPTIONS, ReplayTotals, add_errors, precision_of, rmsd_pico};
use super::objective::Objective;
use super::replay::BlockReplay;
use drift_core::encoding::Precision;

/// One conformer's blocks: class and replay.
pub type ClassifiedConformer = Vec<(u8, BlockReplay)>;

/// What every number of FREE tokens does in every class.
pub struct ClassProblem {
    blocks: u64,
    /// Atoms of each conformer.
    atoms: Vec<usize>,
    /// Of all numbers.
    precision: Precision,
    /// By class, then by F.
    classes: Vec<Vec<Cost>>,
}

/// What a number of FREE tokens does to the blocks of one class.
#[derive(Debug, Clone)]
struct Cost {
    free: u8,
    unparsable: u64,
    junk: u64,
    /// Squared error by conformer, in squares of the last decimal.
    errors: Vec<u64>,
    /// Conformers with an unparsable block of this class.
    lost: Vec<bool>,
}

impl ClassProblem {
    /// Tabulates conformers whose blocks were sorted into `class_count` classes.
    pub fn new(conformers: &[ClassifiedConformer], class_count: usize) -> Self {
        ClassProblem {
            blocks: conformers.iter().map(Vec::len).sum::<usize>() as u64,
            atoms: conformers.iter().map(Vec::len).collect(),
            precision: precision_of(conformers.iter().flatten().map(|(_, block)| block)),
            classes: (0..class_count).map(|class| tabulate(conformers, class as u8)).collect(),
        }
    }

    /// Whether a class has blocks.
    pub fn has_blocks(&self, class: usize) -> bool {
        // Without any token left every block is unparsable.
        self.classes[class][0].unparsable > 0
    }

    /// What an assignment does: F for each class.
    pub fn damage(&self, assignment: &[u8]) -> ReplayTotals {
        self.damage_of(&self.costs(assignment))
    }

    fn costs(&self, assignment: &[u8]) -> Vec<&Cost> {
        assignment.iter().zip(&self.classes).map(|(&free, costs)| &costs[usize::from(free)]).collect()
    }

    fn damage_of(&self, chosen: &[&Cost]) -> ReplayTotals {
        let mut damage = ReplayTotals {
            conformers: self.atoms.len() as u64,
            blocks: self.blocks,
            unparsable_blocks: chosen.iter().map(|c| c.unparsable).sum(),
            junk_tokens: chosen.iter().map(|c| c.junk).sum(),
            ..ReplayTotals::default()
        };
        // A conformer whose block is unparsable has no RMSD; it is counted apart, so that its absence does not pass for a good
        // mean.
        for rmsd in self.rmsds(chosen) {
            match rmsd {
                Some(rmsd) => damage.rmsd_pico += rmsd,
                None => damage.unparsable_conformers += 1,
            }
        }
        damage
    }

    /// RMSD of each conformer in 10⁻¹² Å; none where a block is unparsable.
    fn rmsds(&self, chosen: &[&Cost]) -> impl Iterator<Item = Option<u128>> {
        (0..self.atoms.len()).map(|conformer| {
            if chosen.iter().any(|cost| cost.lost[conformer]) {
                return None;
            }
            let sum = chosen.iter().map(|cost| cost.errors[conformer]).fold(0, u64::saturating_add);
            Some(rmsd_pico(sum, self.atoms[conformer], self.precision))
        })
    }

    /// RMSD by conformer in Å; none where a block is unparsable.
    pub fn rmsd_by_conformer(&self, assignment: &[u8]) -> Vec<Option<f64>> {
        let chosen = self.costs(assignment);
        self.rmsds(&chosen).map(|rmsd| Some(rmsd? as f64 / super::counts::PICO)).collect()
    }

    /// The assignment of least harm among the numbers of FREE tokens that are `allowed`, by exhaustive branch and bound;
    /// ties go to those that stand first there. `None` if none is allowed.
    pub fn solve(&self, objective: &Objective, allowed: &[u8]) -> Option<(Vec<u8>, ReplayTotals)> {
        // Options that another one dominates are dropped before the search: the tree has one level for each class and one
        // branch for each option.
        let lists: Vec<Vec<&Cost>> =
            self.classes.iter().map(|costs| undominated(objective, costs, allowed)).collect();
        let mut search = BranchAndBound { problem: self, objective, lists: &lists, best: None };
        search.descend(&mut Vec::with_capacity(lists.len()));
        search.best.map(|(chosen, damage)| (chosen.iter().map(|cost| cost.free).collect(), damage))
    }
}

/// The costs of a class that can be part of a best assignment, least junk first.
fn undominated<'a>(objective: &Objective, costs: &'a [Cost], allowed: &[u8]) -> Vec<&'a Cost> {
    let mut list: Vec<(usize, &Cost)> =
        allowed.iter().enumerate().map(|(rank, &free)| (rank, &costs[usize::from(free)])).collect();
    if matches!(objective, Objective::Lexicographic { .. }) {
        // u comes first and classes add up in it, so each class must reach its own least.
        let least = list.iter().map(|(_, cost)| cost.unparsable).min().unwrap_or(0);
        list.retain(|(_, cost)| cost.unparsable == least);
    }
    // Least junk first, so that a good assignment is found early and cuts more. A cost also stands behind all that dominate it,
    // which one pass over the list relies on.
    list.sort_by_key(|(rank, cost)| (cost.junk, cost.total_error(), *rank));
    let mut kept: Vec<&Cost> = Vec::new();
    for (_, cost) in list {
        if !kept.iter().any(|other| other.dominates(cost)) {
            kept.push(cost);
        }
    }
    kept
}

/// The costs of one class, by F.
fn tabulate(conformers: &[ClassifiedConformer], class: u8) -> Vec<Cost> {
    let empty = |free: usize| Cost {
        free: free as u8,
        unparsable: 0,
        junk: 0,
        errors: Vec::with_capacity(conformers.len()),
        lost: Vec::with_capacity(conformers.len()),
    };
    let mut costs: Vec<Cost> = (0..OPTIONS).map(empty).collect();
    for conformer in conformers {
        let (mut errors, mut readable_from) = ([0u64; OPTIONS], 0);
        for (_, block) in conformer.iter().filter(|(c, _)| *c == class) {
            let (from, tokens) = (usize::from(block.parsable_from), usize::from(block.tokens));
            readable_from = readable_from.max(from);
            costs[..from].iter_mut().for_each(|cost| cost.unparsable += 1);
            add_errors(&mut errors, block);
            for (junk, cost) in (1..).zip(costs.iter_mut().skip(tokens + 1)) {
                cost.junk += junk;
            }
        }
        // A conformer without blocks of this class has `readable_from` 0: it is never lost by it.
        for (free, (cost, error)) in costs.iter_mut().zip(errors).enumerate() {
            cost.errors.push(error);
            cost.lost.push(free < readable_from);
        }
    }
    costs
}

impl Cost {
    fn total_error(&self) -> u128 {
        self.errors.iter().map(|e| u128::from(*e)).sum()
    }

    /// Never worse in anything, for no conformer. The same conformers must be lost: RMSD is a mean over the others,
    /// which falls when a bad one is lost.
    fn dominates(&self, other: &Cost) -> bool {
        self.unparsable <= other.unparsable
            && self.junk <= other.junk
            && self.lost == other.lost
            && self.errors.iter().zip(&other.errors).all(|(a, b)| a <= b)
    }
}

struct BranchAndBound<'a> {
    problem: &'a ClassProblem,
    objective: &'a Objective,
    lists: &'a [Vec<&'a Cost>],
    best: Option<(Vec<&'a Cost>, ReplayTotals)>,
}

impl<'a> BranchAndBound<'a> {
    fn descend(&mut self, chosen: &mut Vec<&'a Cost>) {
        let depth = chosen.len();
        let damage = self.bound(chosen);
        if let Some((_, best)) = &self.best
            && self.objective.compare(&damage, best).is_ge()
        {
            // Equal is cut too: the first of equal assignments stays.
            return;
        }
        if depth == self.lists.len() {
            self.best = Some((chosen.clone(), damage));
            return;
        }
        for cost in &self.lists[depth] {
            chosen.push(cost);
            self.descend(chosen);
            chosen.pop();
        }
    }

    /// At most the damage of any completion of `chosen`; the damage itself where nothing is left to choose. Counts are
    /// added before anything is divided.
    fn bound(&self, chosen: &[&Cost]) -> ReplayTotals {
        let mut damage = self.problem.damage_of(chosen);
        let rest = &self.lists[chosen.len()..];
        let least = |part: fn(&Cost) -> u64| -> u64 {
            rest.iter().filter_map(|costs| costs.iter().map(|c| part(c)).min()).sum()
        };
        damage.unparsable_blocks += least(|c| c.unparsable);
        damage.junk_tokens += least(|c| c.junk);
        // The mean is over readable conformers only: where the rest may lose some, it may fall.
        if rest.iter().flatten().any(|cost| cost.unparsable > 0) {
            damage.rmsd_pico = 0;
        }
        damage
    }
}
