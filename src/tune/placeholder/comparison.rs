//! The harm of a single placeholder and that of one placeholder for each class, conformer by conformer.

use serde::{Deserialize, Serialize};

use super::assignment::{ClassProblem, ClassifiedConformer};
use super::objective::{Harm, Objective};
use super::replay::BlockReplay;

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

drift_core::named!(ComparedHarm {
    UnparsableBlocks: "unparsable_blocks",
    Rmsd: "rmsd_angstrom",
    JunkTokens: "junk_tokens_per_block",
    WeightedSum: "weighted_harm",
    Nothing: "nothing differs"
});

impl ComparedHarm {
    /// Returns the index of the part in `[u, r, j]`.
    pub fn place(self) -> Option<usize> {
        match self {
            ComparedHarm::UnparsableBlocks => Some(0),
            ComparedHarm::Rmsd => Some(1),
            ComparedHarm::JunkTokens => Some(2),
            ComparedHarm::WeightedSum | ComparedHarm::Nothing => None,
        }
    }

    /// Returns the value of this part for a harm `[u, r, j]`; `None` if nothing differs.
    pub fn of(self, harm: [f64; 3], objective: &Objective) -> Option<f64> {
        match (self, objective) {
            (ComparedHarm::WeightedSum, Objective::Weighted { weights, .. }) => {
                Some(harm.iter().zip(weights).map(|(part, weight)| part * weight).sum())
            }
            _ => Some(harm[self.place()?]),
        }
    }
}

/// A single placeholder beside one for each class, on the conformers that judge them.
pub(super) struct Comparison<'a> {
    pub(super) objective: &'a Objective,
    pub(super) problem: &'a ClassProblem,
    pub(super) conformers: &'a [ClassifiedConformer],
    /// F by class, the same for all.
    pub(super) single: &'a [u8],
    /// F by class.
    pub(super) classes: &'a [u8],
}

/// By how much one choice is more harmful than another.
pub(super) struct HarmDifference {
    pub(super) compared: ComparedHarm,
    /// By conformer; `None` if nothing differs.
    pub(super) by_conformer: Option<Vec<f64>>,
}

impl Comparison<'_> {
    /// Returns the harm of the single placeholder minus that of the classes: in the first part of harm that differs, or in the weighted
    /// sum.
    pub(super) fn difference(&self) -> HarmDifference {
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

    /// Returns the harm of the single placeholder, and that of the classes.
    pub(super) fn harms(&self, objective: &Objective) -> [Harm; 2] {
        [self.single, self.classes].map(|assignment| objective.harm(&self.problem.damage(assignment)))
    }

    /// Returns the difference in the weighted sum, given both harms.
    fn weighted_sum(&self, [u, r, j]: [f64; 3], [one, many]: [Harm; 2]) -> Vec<f64> {
        // RMSD up to the tolerance is no harm, so only the share of the difference above the tolerance counts.
        let [single, classes] = self.harms(&self.objective.without_tolerance());
        let whole = single.excess_rmsd - classes.excess_rmsd;
        let share = if whole == 0.0 { 0.0 } else { (one.excess_rmsd - many.excess_rmsd) / whole };
        let parts = self.unparsable().into_iter().zip(self.rmsd()).zip(self.junk());
        parts.map(|((blocks, rmsd), junk)| u * blocks + r * share * rmsd + j * junk).collect()
    }

    /// Returns the difference in unparsable blocks per block.
    fn unparsable(&self) -> Vec<f64> {
        self.per_block(|free, block| f64::from(u8::from(block.error(free).is_none())))
    }

    /// Returns the difference in junk tokens per block.
    fn junk(&self) -> Vec<f64> {
        self.per_block(|free, block| f64::from(free.saturating_sub(block.tokens)))
    }

    /// Returns the difference in the mean of a cost over the blocks of each conformer.
    fn per_block(&self, cost: fn(u8, &BlockReplay) -> f64) -> Vec<f64> {
        let conformers = self.conformers.iter();
        conformers.map(|blocks| mean(blocks, self.single, cost) - mean(blocks, self.classes, cost)).collect()
    }

    /// Returns the difference in RMSD. A conformer that is readable with only one of them gives no information about the RMSD.
    fn rmsd(&self) -> Vec<f64> {
        let [one, many] =
            [self.single, self.classes].map(|assignment| self.problem.rmsd_by_conformer(assignment));
        one.into_iter().zip(many).map(|(one, many)| one.zip(many).map_or(0.0, |(a, b)| a - b)).collect()
    }
}

/// Returns the mean of a cost over the blocks of a conformer.
fn mean(blocks: &ClassifiedConformer, assignment: &[u8], cost: fn(u8, &BlockReplay) -> f64) -> f64 {
    let costs = blocks.iter().map(|(class, block)| cost(assignment[usize::from(*class)], block));
    costs.sum::<f64>() / blocks.len() as f64
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
