//! A reward made of named, weighted parts.

use std::str::FromStr;

use super::verdict::ConformerVerdict;

/// The decay length of [`RewardPart::Bonds`], in Å.
const BONDS_ANGSTROM: f64 = 0.05;

/// A part of a reward: between 0 and 1, and 0 for a text that does not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewardPart {
    /// 1 for a text that passes.
    Passed,
    /// 1 for a conformer that breaks no chemistry rule except those of stereo.
    ValidGeometry,
    /// 1 for a conformer that breaks no chemistry rule.
    Valid,
    /// The share of stereocentres and double bonds that agree with the prompt's marks; 1 if it marks none, and 0
    /// if the chemistry was not checked.
    Stereo,
    /// `exp(-e / 0.05)`, where e is the bond-length error against the references, in Å.
    Bonds,
    /// `exp(-d / t)`, where d is the least RMSD to a reference and t the first threshold.
    Rmsd,
    /// The share of thresholds that the least RMSD to a reference does not exceed.
    Hit,
    /// The share of references within the threshold, averaged over thresholds.
    Coverage,
    /// The share of references that only this conformer of its group covers, averaged over thresholds: the recall that the group
    /// would lose without it.
    NewCoverage,
    /// 1 for a conformer whose chemistry was checked and that is not a duplicate of an earlier one in its group.
    Unique,
}

drift_core::named!(RewardPart {
    Passed: "passed",
    ValidGeometry: "valid_geometry",
    Valid: "valid",
    Stereo: "stereo",
    Bonds: "bonds",
    Rmsd: "rmsd",
    Hit: "hit",
    Coverage: "coverage",
    NewCoverage: "new_coverage",
    Unique: "unique"
});

impl RewardPart {
    /// Returns whether it is measured against references.
    pub(crate) fn needs_references(self) -> bool {
        use RewardPart::{Bonds, Coverage, Hit, NewCoverage, Rmsd};
        matches!(self, Bonds | Rmsd | Hit | Coverage | NewCoverage)
    }
}

impl FromStr for RewardPart {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        RewardPart::ALL.into_iter().find(|part| part.name() == name).ok_or_else(|| {
            let names = RewardPart::ALL.map(RewardPart::name);
            format!("`{name}` is not a part of the reward; the parts are {}", names.join(", "))
        })
    }
}

/// Parts with weights: the reward of a text is the sum of weight times part.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reward(pub Vec<(RewardPart, f64)>);

/// The data from which the parts of one conformer's reward are computed.
pub(super) struct RewardInput<'r> {
    pub verdict: &'r ConformerVerdict,
    /// The least RMSD to each reference, `[references]` in Å.
    pub rmsd: &'r [f64],
    pub is_duplicate: bool,
    /// By threshold and reference, the number of conformers of the group within the threshold.
    pub within: &'r [Vec<u32>],
    /// The thresholds in Å; at least one.
    pub thresholds: &'r [f64],
}

impl Reward {
    /// Returns the weighted sum.
    pub(super) fn of(&self, rewarded: &RewardInput<'_>) -> f64 {
        // The sum of no part would be -0.
        self.0.iter().fold(0.0, |sum, (part, weight)| sum + weight * rewarded.part(*part))
    }

    /// Returns the first part that cannot be measured without references.
    pub(super) fn needing_references(&self) -> Option<RewardPart> {
        self.0.iter().map(|(part, _)| *part).find(|part| part.needs_references())
    }
}

impl RewardInput<'_> {
    fn part(&self, part: RewardPart) -> f64 {
        let verdict = self.verdict;
        if !verdict.passed {
            return 0.0;
        }
        let one = |is: bool| f64::from(u8::from(is));
        match part {
            RewardPart::Passed => 1.0,
            RewardPart::ValidGeometry => one(verdict.valid_geometry),
            RewardPart::Valid => one(verdict.valid),
            RewardPart::Stereo => {
                let marked = verdict.stereocentres + verdict.double_bonds;
                let right = verdict.stereocentres_right + verdict.double_bonds_right;
                // A molecule that was not checked has no stereo that is known to be right.
                if marked > 0 { right as f64 / marked as f64 } else { one(verdict.checked) }
            }
            RewardPart::Bonds => {
                verdict.bond_error_angstrom.map_or(0.0, |error| (-error / BONDS_ANGSTROM).exp())
            }
            RewardPart::Rmsd => {
                let scale = self.thresholds.first().copied().unwrap_or(f64::NAN);
                verdict.rmsd_angstrom.map_or(0.0, |rmsd| (-rmsd / scale).exp())
            }
            RewardPart::Hit => {
                self.mean(|_, threshold| one(verdict.rmsd_angstrom.is_some_and(|rmsd| rmsd <= threshold)))
            }
            RewardPart::Coverage => self.share(|_, _| true),
            RewardPart::NewCoverage => self.share(|at, reference| self.within[at][reference] == 1),
            RewardPart::Unique => one(verdict.checked && !self.is_duplicate),
        }
    }

    fn mean(&self, at: impl Fn(usize, f64) -> f64) -> f64 {
        let sum: f64 =
            self.thresholds.iter().enumerate().map(|(index, threshold)| at(index, *threshold)).sum();
        sum / self.thresholds.len() as f64
    }

    /// Returns the share of references within a threshold for which `counts` holds, averaged over thresholds.
    fn share(&self, counts: impl Fn(usize, usize) -> bool) -> f64 {
        if self.rmsd.is_empty() {
            return 0.0;
        }
        self.mean(|at, threshold| {
            let within = self.rmsd.iter().enumerate().filter(|(_, rmsd)| **rmsd <= threshold);
            within.filter(|(reference, _)| counts(at, *reference)).count() as f64 / self.rmsd.len() as f64
        })
    }
}
