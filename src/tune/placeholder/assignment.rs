//! Finds the best placeholder for each class of blocks, by exhaustive branch and bound over numbers of FREE tokens.
//!
//! If F is given for every class, then `u = Σ unparsable / blocks`, `j = Σ junk / blocks`, and `r` follows from the mean over
//! conformers of `sqrt(Σ_class error² / atoms)`. Each of them increases with each class's own contribution. So a partial assignment
//! in which the remaining classes have their least u and j, and no error, is a lower bound for every completion.

use super::counts::{BlockHistogram, OPTIONS, ReplayTotals, add_errors, precision_of, rmsd_pico};
use super::objective::Objective;
use super::replay::BlockReplay;
use drift_core::encoding::Precision;

/// The blocks of one conformer, each with its class and replay.
pub type ClassifiedConformer = Vec<(u8, BlockReplay)>;

/// The effect of every number of FREE tokens on every class.
pub struct ClassProblem {
    blocks: u64,
    /// The number of atoms of each conformer.
    atoms: Vec<usize>,
    /// The precision of all numbers.
    precision: Precision,
    /// The costs by class, then by F.
    classes: Vec<Vec<Cost>>,
}

/// The effect of a number of FREE tokens on the blocks of one class.
#[derive(Debug, Clone, Default)]
struct Cost {
    free: u8,
    unparsable: u64,
    junk: u64,
    /// The squared error by conformer, in squares of the last decimal, up to the last conformer that loses anything.
    errors: Vec<u64>,
    /// For each of these conformers, whether it has an unparsable block of this class.
    lost: Vec<bool>,
}

impl ClassProblem {
    /// Tabulates conformers whose blocks were sorted into `class_count` classes.
    pub fn new(conformers: &[ClassifiedConformer], class_count: usize) -> Self {
        ClassProblem {
            blocks: conformers.iter().map(Vec::len).sum::<usize>() as u64,
            atoms: conformers.iter().map(Vec::len).collect(),
            precision: precision_of(conformers.iter().flatten().map(|(_, block)| block)),
            classes: tabulate(conformers, class_count),
        }
    }

    /// Returns whether a class has blocks.
    pub(crate) fn has_blocks(&self, class: usize) -> bool {
        // Without any FREE token every block is unparsable.
        self.classes[class][0].unparsable > 0
    }

    /// Returns the effect of an assignment, which is F for each class.
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
        // A conformer with an unparsable block has no RMSD. It is counted separately, so that the missing value does not improve
        // the mean.
        for rmsd in self.rmsds(chosen) {
            match rmsd {
                Some(rmsd) => damage.rmsd_pico += rmsd,
                None => damage.unparsable_conformers += 1,
            }
        }
        damage
    }

    /// Returns the RMSD of each conformer in 10⁻¹² Å; `None` if one of its blocks is unparsable.
    fn rmsds(&self, chosen: &[&Cost]) -> impl Iterator<Item = Option<u128>> {
        // Class by class, so that the inner loops run along arrays; those of costs that lose nothing are empty.
        let (mut sums, mut lost) = (vec![0u64; self.atoms.len()], vec![false; self.atoms.len()]);
        for cost in chosen {
            sums.iter_mut().zip(&cost.errors).for_each(|(sum, error)| *sum = sum.saturating_add(*error));
            lost.iter_mut().zip(&cost.lost).for_each(|(lost, is_lost)| *lost |= is_lost);
        }
        let atoms = self.atoms.iter();
        sums.into_iter()
            .zip(lost)
            .zip(atoms)
            .map(|((sum, is_lost), &atoms)| (!is_lost).then(|| rmsd_pico(sum, atoms, self.precision)))
    }

    /// Returns the RMSD by conformer in Å; `None` if one of its blocks is unparsable.
    pub(crate) fn rmsd_by_conformer(&self, assignment: &[u8]) -> Vec<Option<f64>> {
        let chosen = self.costs(assignment);
        self.rmsds(&chosen).map(|rmsd| Some(rmsd? as f64 / super::counts::PICO)).collect()
    }

    /// Returns the assignment with the least harm among the `allowed` numbers of FREE tokens, by exhaustive branch and bound. Ties go to
    /// the numbers listed first. `None` if none is allowed.
    pub(crate) fn solve(&self, objective: &Objective, allowed: &[u8]) -> Option<(Vec<u8>, ReplayTotals)> {
        // Dominated options are dropped before the search. The search tree has one level per class and one branch per option.
        let lists: Vec<Vec<&Cost>> =
            self.classes.iter().map(|costs| undominated(objective, costs, allowed)).collect();
        let mut search = BranchAndBound { problem: self, objective, lists: &lists, best: None };
        search.descend(&mut Vec::with_capacity(lists.len()));
        search.best.map(|(chosen, damage)| (chosen.iter().map(|cost| cost.free).collect(), damage))
    }
}

/// Returns the costs of a class that can be part of a best assignment, those with the least junk first.
fn undominated<'a>(objective: &Objective, costs: &'a [Cost], allowed: &[u8]) -> Vec<&'a Cost> {
    let mut list: Vec<(usize, &Cost)> =
        allowed.iter().enumerate().map(|(rank, &free)| (rank, &costs[usize::from(free)])).collect();
    if matches!(objective, Objective::Lexicographic { .. }) {
        // u is compared first and is a sum over classes, so each class must have its own minimum.
        let least = list.iter().map(|(_, cost)| cost.unparsable).min().unwrap_or(0);
        list.retain(|(_, cost)| cost.unparsable == least);
    }
    // Least junk first, so that a good assignment is found early and cuts off more. Also, a cost comes after all costs that
    // dominate it, on which the single pass over the list relies.
    list.sort_by_key(|(rank, cost)| (cost.junk, cost.total_error(), *rank));
    let mut kept: Vec<&Cost> = Vec::new();
    for (_, cost) in list {
        if !kept.iter().any(|other| other.dominates(cost)) {
            kept.push(cost);
        }
    }
    kept
}

/// The blocks of one class.
#[derive(Clone)]
struct Blocks {
    histogram: BlockHistogram,
    /// Of one conformer: the squared errors by F, and the smallest F that leaves all its blocks readable; 0 without blocks, which
    /// make no conformer unparsable.
    errors: [u64; OPTIONS],
    readable_from: usize,
}

/// Returns the costs by class, then by F.
fn tabulate(conformers: &[ClassifiedConformer], class_count: usize) -> Vec<Vec<Cost>> {
    let empty = Blocks { histogram: BlockHistogram::EMPTY, errors: [0; OPTIONS], readable_from: 0 };
    let mut classes = vec![(empty, vec![Cost::default(); OPTIONS]); class_count];
    for (at, conformer) in conformers.iter().enumerate() {
        for (class, block) in conformer {
            let (blocks, _) = &mut classes[usize::from(*class)];
            blocks.histogram.add(block);
            blocks.readable_from = blocks.readable_from.max(usize::from(block.parsable_from));
            add_errors(&mut blocks.errors, block);
        }
        for (blocks, costs) in &mut classes {
            for (free, (cost, error)) in costs.iter_mut().zip(&mut blocks.errors).enumerate() {
                let is_lost = free < blocks.readable_from;
                if is_lost || *error > 0 {
                    cost.errors.resize(at, 0);
                    cost.errors.push(std::mem::take(error));
                    cost.lost.resize(at, false);
                    cost.lost.push(is_lost);
                }
            }
            blocks.readable_from = 0;
        }
    }
    for (blocks, costs) in &mut classes {
        for (free, cost) in costs.iter_mut().enumerate() {
            let damage = blocks.histogram.damage(free);
            (cost.free, cost.unparsable, cost.junk) =
                (free as u8, damage.unparsable_blocks, damage.junk_tokens);
        }
    }
    classes.into_iter().map(|(_, costs)| costs).collect()
}

impl Cost {
    fn total_error(&self) -> u128 {
        self.errors.iter().map(|e| u128::from(*e)).sum()
    }

    /// Returns whether this cost is at least as good in everything and for every conformer. The same conformers must be lost, because the
    /// RMSD is a mean over the others and decreases when a bad conformer is lost.
    fn dominates(&self, other: &Cost) -> bool {
        let conformers = self.lost.len().max(other.lost.len());
        let lost = |cost: &Cost, at: usize| cost.lost.get(at).copied().unwrap_or(false);
        let error = |cost: &Cost, at: usize| cost.errors.get(at).copied().unwrap_or(0);
        self.unparsable <= other.unparsable
            && self.junk <= other.junk
            && (0..conformers)
                .all(|at| lost(self, at) == lost(other, at) && error(self, at) <= error(other, at))
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
            // Equal bounds are cut off too, so the first of equal assignments is kept.
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

    /// Returns a lower bound on the damage of any completion of `chosen`, and the exact damage if nothing is left to choose. Counts are
    /// added before any division.
    fn bound(&self, chosen: &[&Cost]) -> ReplayTotals {
        let mut damage = self.problem.damage_of(chosen);
        let rest = &self.lists[chosen.len()..];
        for costs in rest {
            damage.unparsable_blocks += costs.iter().map(|cost| cost.unparsable).min().unwrap_or(0);
            damage.junk_tokens += costs.iter().map(|cost| cost.junk).min().unwrap_or(0);
        }
        // The mean is over readable conformers only. If the remaining classes may lose some, the mean may decrease.
        if rest.iter().flatten().any(|cost| cost.unparsable > 0) {
            damage.rmsd_pico = 0;
        }
        damage
    }
}
