//! Harm of a placeholder, and how harms compare.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// The harm that a placeholder does in replay: `[u, r, j]`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Harm {
    /// u: share of blocks that cannot be parsed, 0 to 1.
    pub unparsable: f64,
    /// r: induced RMSD above the tolerance, in Å.
    pub excess_rmsd: f64,
    /// j: junk tokens per block.
    pub junk: f64,
}

impl Harm {
    /// `[u, r, j]`, as in reports.
    pub fn parts(self) -> [f64; 3] {
        [self.unparsable, self.excess_rmsd, self.junk]
    }
}

/// How two harms compare.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Objective {
    /// u, then r, then j: one clipped last digit is better than a junk slot, as closed-loop generation shows.
    Lexicographic {
        /// Induced RMSD up to this is no harm, in Å.
        tolerance_angstrom: f64,
    },
    /// The weighted sum of u, r and j.
    Weighted {
        /// As above.
        tolerance_angstrom: f64,
        /// Of u, r and j.
        weights: [f64; 3],
    },
}

impl Default for Objective {
    fn default() -> Self {
        Objective::Lexicographic { tolerance_angstrom: 1e-3 }
    }
}

impl Objective {
    /// RMSD up to this is no harm, in Å.
    pub fn tolerance_angstrom(&self) -> f64 {
        match *self {
            Objective::Lexicographic { tolerance_angstrom } => tolerance_angstrom,
            Objective::Weighted { tolerance_angstrom, .. } => tolerance_angstrom,
        }
    }

    /// The harm of these measures.
    pub fn harm(&self, unparsable: f64, rmsd_angstrom: f64, junk: f64) -> Harm {
        Harm { unparsable, excess_rmsd: (rmsd_angstrom - self.tolerance_angstrom()).max(0.0), junk }
    }

    /// Less harm is less.
    pub fn compare(&self, a: Harm, b: Harm) -> Ordering {
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

    /// One number for annealing, which needs a sum: u outweighs any r that matters, and r any j. Results are compared
    /// by [`Objective::compare`], never by this.
    pub fn scalar(&self, harm: Harm) -> f64 {
        match self {
            Objective::Lexicographic { .. } => {
                1_000.0 * harm.unparsable + 100.0 * harm.excess_rmsd.min(1.0) + harm.junk / 10.0
            }
            Objective::Weighted { weights, .. } => harm.parts().iter().zip(weights).map(|(p, w)| p * w).sum(),
        }
    }
}
