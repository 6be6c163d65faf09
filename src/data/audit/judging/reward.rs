//! A reward of named parts and weights.

use std::str::FromStr;

use super::verdict::ConformerVerdict;

/// How fast [`RewardPart::Bonds`] falls, in Å.
const BONDS_ANGSTROM: f64 = 0.05;

/// A part of a reward: from 0 to 1, and 0 for a text that does not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewardPart {
    /// 1 for a text that passes.
    Passed,
    /// 1 for a conformer that breaks no rule of chemistry but those of stereo.
    ValidGeometry,
    /// 1 for a conformer that breaks no rule of chemistry.
    Valid,
    /// The share of stereocentres and double bonds that are as the prompt marks them; 1 where it marks none.
    Stereo,
    /// `exp(-e / 0.05)`, e the error of the bonds beside the references, in Å.
    Bonds,
    /// `exp(-d / t)`, d the least RMSD to a reference and t the first threshold.
    Rmsd,
    /// The share of thresholds that the least RMSD to a reference is within.
    Hit,
    /// The share of references within the threshold, averaged over thresholds.
    Coverage,
    /// The share of references that are within the threshold of this conformer and of no other one of its group, averaged over
    /// thresholds: what the recall of the group would lose without it.
    NewCoverage,
    /// 1 for a conformer that is no duplicate of one before it in its group.
    Unique,
}

impl RewardPart {
    /// All of them.
    pub const ALL: [RewardPart; 10] = [
        RewardPart::Passed,
        RewardPart::ValidGeometry,
        RewardPart::Valid,
        RewardPart::Stereo,
        RewardPart::Bonds,
        RewardPart::Rmsd,
        RewardPart::Hit,
        RewardPart::Coverage,
        RewardPart::NewCoverage,
        RewardPart::Unique,
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            RewardPart::Passed => "passed",
            RewardPart::ValidGeometry => "valid_geometry",
            RewardPart::Valid => "valid",
            RewardPart::Stereo => "stereo",
            RewardPart::Bonds => "bonds",
            RewardPart::Rmsd => "rmsd",
            RewardPart::Hit => "hit",
            RewardPart::Coverage => "coverage",
            RewardPart::NewCoverage => "new_coverage",
            RewardPart::Unique => "unique",
        }
    }

    /// Whether it is measured beside references.
    pub fn needs_references(self) -> bool {
        use RewardPart::{Bonds, Coverage, Hit, NewCoverage, Rmsd};
        matches!(self, Bonds | Rmsd | Hit | Coverage | NewCoverage)
    }
}

impl FromStr for RewardPart {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        RewardPart::ALL.into_iter().find(|part| part.name() == name).ok_or_else(|| {
            let names: Vec<&str> = RewardPart::ALL.iter().map(|part| part.name()).collect();
            format!("`{name}` is not a part of the reward; the parts are {}", names.join(", "))
        })
    }
}

/// Parts with their weights: the reward of a text is the sum of weight times part.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reward(pub Vec<(RewardPart, f64)>);

/// What the parts of one conformer's reward follow from.
pub(super) struct Rewarded<'r> {
    pub verdict: &'r ConformerVerdict,
    /// `[references]`, in Å.
    pub rmsd: &'r [f64],
    pub is_duplicate: bool,
    /// By threshold and reference, how many conformers of the group are within it.
    pub within: &'r [Vec<u32>],
    /// In Å; at least one.
    pub thresholds: &'r [f64],
}

impl Reward {
    /// The weighted sum.
    pub(super) fn of(&self, rewarded: &Rewarded<'_>) -> f64 {
        self.0.iter().map(|(part, weight)| weight * rewarded.part(*part)).sum()
    }

    /// The first part that cannot be measured without references.
    pub(super) fn needing_references(&self) -> Option<RewardPart> {
        self.0.iter().map(|(part, _)| *part).find(|part| part.needs_references())
    }
}

impl Rewarded<'_> {
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
                // A molecule that is not checked has no mark that is known to be right.
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

    /// The share of references within a threshold that count, over thresholds.
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
