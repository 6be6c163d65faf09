//! The harm of a placeholder, and how harms are compared.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::counts::{PICO, ReplayTotals};
use crate::parameter;
use drift_core::{Error, Result};

/// The harm of a placeholder in replay, `[u, r, j]`, for reports. Comparisons use the counts before division.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Harm {
    /// u: the share of unparsable blocks, 0 to 1.
    pub unparsable: f64,
    /// r: the induced RMSD above the tolerance, in Å.
    pub excess_rmsd: f64,
    /// j: the number of junk tokens per block.
    pub junk: f64,
}

impl Harm {
    /// `[u, r, j]`, as in reports.
    pub fn parts(self) -> [f64; 3] {
        [self.unparsable, self.excess_rmsd, self.junk]
    }

    /// Returns the harm with these [`parts`](Self::parts).
    pub(super) fn from_parts([unparsable, excess_rmsd, junk]: [f64; 3]) -> Self {
        Harm { unparsable, excess_rmsd, junk }
    }
}

/// How two harms are compared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Objective {
    /// First u, then r, then j: one lost last digit is better than a junk slot, as closed-loop generation shows.
    Lexicographic {
        /// The induced RMSD up to which there is no harm, in Å.
        tolerance_angstrom: f64,
    },
    /// The weighted sum of u, r and j.
    Weighted {
        /// The induced RMSD up to which there is no harm, in Å.
        tolerance_angstrom: f64,
        /// The weights of u (a share), r (Å) and j (tokens per block), each 0 or more.
        weights: [f64; 3],
    },
}

impl Default for Objective {
    fn default() -> Self {
        Objective::Lexicographic { tolerance_angstrom: 1e-3 }
    }
}

impl Objective {
    /// Returns the weighted sum of u, r and j or, without weights, their lexicographic order.
    pub fn new(tolerance_angstrom: f64, weights: Option<[f64; 3]>) -> Self {
        match weights {
            None => Objective::Lexicographic { tolerance_angstrom },
            Some(weights) => Objective::Weighted { tolerance_angstrom, weights },
        }
    }

    /// Refuses invalid parameters.
    ///
    /// # Errors
    /// If the tolerance or a weight is negative or not finite.
    pub fn check(&self) -> Result<()> {
        let is_amount = |value: f64| value.is_finite() && value >= 0.0;
        if !is_amount(self.tolerance_angstrom()) {
            return Err(Error::parameter(parameter::TOLERANCE, "not a length", "give Å, such as 0.001"));
        }
        match self {
            Objective::Weighted { weights, .. } if !weights.iter().copied().all(is_amount) => {
                Err(Error::parameter(parameter::WEIGHTS, "not three weights of 0 or more", ""))
            }
            Objective::Weighted { weights, .. } if weights.iter().all(|weight| *weight == 0.0) => {
                let problem = "all are 0, so that every placeholder is as good as any other";
                Err(Error::parameter(parameter::WEIGHTS, problem, "give one weight above 0"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the induced RMSD up to which there is no harm, in Å.
    pub fn tolerance_angstrom(&self) -> f64 {
        let (Objective::Lexicographic { tolerance_angstrom }
        | Objective::Weighted { tolerance_angstrom, .. }) = *self;
        tolerance_angstrom
    }

    /// This objective with a tolerance of 0 Å, under which every lost digit counts.
    pub fn without_tolerance(self) -> Self {
        match self {
            Objective::Lexicographic { .. } => Objective::Lexicographic { tolerance_angstrom: 0.0 },
            Objective::Weighted { weights, .. } => Objective::Weighted { tolerance_angstrom: 0.0, weights },
        }
    }

    /// Returns the harm of a damage. Without a readable conformer there is no RMSD and r is 0; [`compare`](Self::compare) does not treat
    /// this as harmless.
    pub fn harm(&self, damage: &ReplayTotals) -> Harm {
        let rmsd = damage.rmsd_angstrom().unwrap_or(0.0);
        Harm {
            unparsable: damage.share(damage.unparsable_blocks),
            excess_rmsd: (rmsd - self.tolerance_angstrom()).max(0.0),
            junk: damage.share(damage.junk_tokens),
        }
    }

    /// Orders damages to the same blocks by harm, the least first. The order u, r, j compares integers, not quotients.
    pub fn compare(&self, a: &ReplayTotals, b: &ReplayTotals) -> Ordering {
        match self {
            Objective::Lexicographic { .. } => a
                .unparsable_blocks
                .cmp(&b.unparsable_blocks)
                .then_with(|| loses_all(a).cmp(&loses_all(b)))
                .then_with(|| self.compare_excess(a, b))
                .then(a.junk_tokens.cmp(&b.junk_tokens)),
            // Compared first, since no weighted sum defines the RMSD of nothing: losing every conformer would beat losing a few.
            Objective::Weighted { .. } => {
                loses_all(a).cmp(&loses_all(b)).then_with(|| self.compare_harms(self.harm(a), self.harm(b)))
            }
        }
    }

    /// Compares harms from a report as floats, since the report does not contain the integers behind them.
    pub(crate) fn compare_harms(&self, a: Harm, b: Harm) -> Ordering {
        match self {
            Objective::Lexicographic { .. } => a
                .unparsable
                .total_cmp(&b.unparsable)
                .then(a.excess_rmsd.total_cmp(&b.excess_rmsd))
                .then(a.junk.total_cmp(&b.junk)),
            Objective::Weighted { weights, .. } => {
                let sum = |h: Harm| h.parts().iter().zip(weights).map(|(part, w)| part * w).sum::<f64>();
                sum(a).total_cmp(&sum(b))
            }
        }
    }

    /// Compares `max(0, sum / n - tolerance)` as `max(0, sum - tolerance · n) / n`, cross-multiplied.
    fn compare_excess(&self, a: &ReplayTotals, b: &ReplayTotals) -> Ordering {
        // Integers throughout: float quotients can differ even if the fractions are equal.
        let tolerance = (self.tolerance_angstrom() * PICO).round() as u128;
        let excess = |damage: &ReplayTotals| {
            // At least 1, since a damage without a readable conformer would be 0 / 0; that case was compared before.
            let readable = u128::from(damage.readable_conformers());
            (damage.rmsd_pico.saturating_sub(tolerance.saturating_mul(readable)), readable.max(1))
        };
        let ((a, over_a), (b, over_b)) = (excess(a), excess(b));
        a.saturating_mul(over_b).cmp(&b.saturating_mul(over_a))
    }

    /// Returns one number for annealing, which needs a sum: u outweighs any relevant r, and r any j. Results are compared only by
    /// [`Objective::compare`], never by this number.
    pub fn scalar(&self, damage: &ReplayTotals) -> f64 {
        let harm = self.harm(damage);
        match self {
            Objective::Lexicographic { .. } => {
                // The factors keep the order where it matters: all blocks unparsable is 1,000, 1 Å is 100, and a junk slot per
                // block is 0.1. The RMSD is capped, so that it seldom outweighs u.
                1_000.0 * harm.unparsable + 100.0 * harm.excess_rmsd.min(1.0) + harm.junk / 10.0
            }
            Objective::Weighted { weights, .. } => {
                let sum: f64 = harm.parts().iter().zip(weights).map(|(p, w)| p * w).sum();
                // As if the RMSD of nothing were 10 Å more than any other.
                sum + if loses_all(damage) { 10.0 * weights[1].max(1.0) } else { 0.0 }
            }
        }
    }
}

/// Returns whether no readable conformer is left.
fn loses_all(damage: &ReplayTotals) -> bool {
    damage.conformers > 0 && damage.readable_conformers() == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `1/3 + 1/3 + 1/3` of a mean is not always a third of the sum in floats; integers do not mind.
    #[test]
    fn equal_means_are_equal_whatever_they_are_means_of() {
        let damage = |unparsable_conformers, rmsd_pico| ReplayTotals {
            conformers: 12,
            blocks: 120,
            unparsable_conformers,
            rmsd_pico,
            ..ReplayTotals::default()
        };
        let objective = Objective::Lexicographic { tolerance_angstrom: 1e-3 };
        // Means of 0.01 Å over 11 and over 7 conformers.
        let (a, b) = (damage(1, 110_000_000_000), damage(5, 70_000_000_000));
        assert_eq!(objective.compare(&a, &b), Ordering::Equal);
        assert_eq!(objective.compare(&damage(1, 110_000_000_001), &b), Ordering::Greater);
        // Below the tolerance all are alike; without it they are not.
        let (a, b) = (damage(0, 11_000_000_000), damage(0, 1));
        assert_eq!(objective.compare(&a, &b), Ordering::Equal);
        assert_eq!(objective.without_tolerance().compare(&a, &b), Ordering::Greater);
    }

    /// The mean over conformers that can be read is no gain where none is left.
    #[test]
    fn losing_every_conformer_is_worse_than_losing_few() {
        let damage = |unparsable_conformers, unparsable_blocks, rmsd_pico| ReplayTotals {
            conformers: 10,
            blocks: 300,
            unparsable_blocks,
            unparsable_conformers,
            rmsd_pico,
            ..ReplayTotals::default()
        };
        // A block of each conformer; all blocks of one, and 0.3 Å in each of the others.
        let (all, few) = (damage(10, 10, 0), damage(1, 30, 2_700_000_000_000));
        let weighted = Objective::new(1e-3, Some([1.0, 1.0, 1.0]));
        assert!(weighted.compare_harms(weighted.harm(&all), weighted.harm(&few)).is_lt());
        assert!(weighted.compare(&all, &few).is_gt() && weighted.compare(&few, &all).is_lt());
        assert!(weighted.scalar(&all) > weighted.scalar(&few));
        // As many blocks, spread and not.
        let (all, few) = (damage(10, 30, 0), damage(1, 30, 2_700_000_000_000));
        assert!(Objective::default().compare(&all, &few).is_gt() && weighted.compare(&all, &few).is_gt());
        assert!(weighted.compare(&damage(10, 20, 0), &all).is_lt());
    }
}
