//! Chemistry over many conformers: counts, and shares with intervals over molecules.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::finding::{ChemistryRule, ConformerChemistry};
use crate::stats::interval::{ClusterSums, Interval, LEVEL};

/// The findings in a set of conformers. Of generated texts, only those that pass are checked; of references, all.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ChemistryReport {
    /// The number of checked conformers.
    pub checked: u64,
    /// The number of stereocentres that their prompts mark.
    pub stereocentres: u64,
    /// Of these, the number with the marked handedness.
    pub stereocentres_right: u64,
    /// The number of double bonds that their prompts mark.
    pub double_bonds: u64,
    /// Of these, the number with their neighbours on the marked sides.
    pub double_bonds_right: u64,
    /// The number of stereo marks of these prompts that are not compared with coordinates and never count as right: allenes
    /// (`@AL`), and square-planar, trigonal-bipyramidal and octahedral atoms with missing neighbours.
    pub stereo_unchecked: u64,
    /// Conformers with two atoms, three or more bonds apart, that are too close.
    pub clashing: u64,
    /// Conformers with a bond too short or too long.
    pub bad_bonds: u64,
    /// Conformers with a wrong angle.
    pub bad_angles: u64,
    /// Conformers with a bent aromatic ring.
    pub bent_aromatic_rings: u64,
    /// Conformers with a flat saturated ring of six atoms.
    pub flat_rings: u64,
    /// Conformers with a double bond or a trigonal carbon that is not flat.
    pub bent_double_bonds: u64,
    /// Conformers that fall into more parts.
    pub fragmented: u64,
    /// Conformers with none of these faults.
    pub valid_geometry: u64,
    /// Of these, the conformers with every stereocentre and double bond as the prompt marks it.
    pub valid: u64,
    /// Conformers with every z within [`FLAT_ANGSTROM`](super::FLAT_ANGSTROM) of 0.
    pub flat: u64,
    /// Conformers in a plane, whatever its position.
    pub planar: u64,
    /// The number of atoms of the checked conformers.
    pub checked_blocks: u64,
    /// Of these, the number with a z of exactly 0.
    pub zero_z: u64,
    /// The 95 % intervals of the shares, over molecules; no entry if there is no share.
    pub chemistry_intervals: BTreeMap<ChemistryFigure, Interval>,
}

macro_rules! figures {
    ($($figure:ident: $field:ident, $conformer:ident => $counted:expr;)+) => {
        /// A count of [`ChemistryReport`] that has a share.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[allow(missing_docs)]
        pub enum ChemistryFigure {
            $($figure),+
        }

        impl ChemistryFigure {
            /// All figures.
            pub const ALL: [ChemistryFigure; [$(stringify!($field)),+].len()] = [$(ChemistryFigure::$figure),+];

            /// Returns how often one conformer counts, and out of how many.
            pub(in crate::audit) fn of(self, conformer: &ConformerChemistry) -> (u64, u64) {
                match self {
                    $(ChemistryFigure::$figure => {
                        let $conformer = conformer;
                        $counted
                    })+
                }
            }
        }

        impl ChemistryReport {
            fn field(&mut self, figure: ChemistryFigure) -> &mut u64 {
                match figure {
                    $(ChemistryFigure::$figure => &mut self.$field),+
                }
            }
        }
    };
}

// The figures, their counts in the report, and what a conformer adds to them.
figures! {
    StereocentresRight: stereocentres_right, found => (found.stereocentres_right, found.stereocentres);
    DoubleBondsRight: double_bonds_right, found => (found.double_bonds_right, found.double_bonds);
    Clashing: clashing, found => one(found.breaks(ChemistryRule::Clash));
    BadBonds: bad_bonds, found => one(found.breaks(ChemistryRule::ShortBond) || found.breaks(ChemistryRule::LongBond));
    BadAngles: bad_angles, found => one(found.breaks(ChemistryRule::Angle));
    BentAromaticRings: bent_aromatic_rings, found => one(found.breaks(ChemistryRule::AromaticRing));
    FlatRings: flat_rings, found => one(found.breaks(ChemistryRule::FlatRing));
    BentDoubleBonds: bent_double_bonds, found => one(
        found.breaks(ChemistryRule::BentDoubleBond) || found.breaks(ChemistryRule::BentCentre)
    );
    Fragmented: fragmented, found => one(found.breaks(ChemistryRule::Fragments));
    ValidGeometry: valid_geometry, found => one(found.has_valid_geometry());
    Valid: valid, found => one(found.is_valid());
    Flat: flat, found => one(found.flat);
    Planar: planar, found => one(found.planar);
    ZeroZ: zero_z, found => (found.zero_z, found.atoms);
}

fn one(is: bool) -> (u64, u64) {
    (u64::from(is), 1)
}

impl ChemistryFigure {
    /// Returns whether it is a share of all texts, checked or not, rather than of checked conformers.
    fn is_of_all(self) -> bool {
        matches!(self, ChemistryFigure::Valid | ChemistryFigure::ValidGeometry)
    }
}

/// The sums over the conformers of one molecule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoleculeChemistry {
    /// The number of all texts or references, including those that could not be checked.
    pub texts: u64,
    checked: u64,
    blocks: u64,
    stereocentres: u64,
    double_bonds: u64,
    #[serde(default)]
    stereo_unchecked: u64,
    /// By figure, its count, and out of how many.
    counts: [(u64, u64); ChemistryFigure::ALL.len()],
}

impl MoleculeChemistry {
    /// Adds a text or reference, with its findings if it was checked.
    pub fn add(&mut self, found: Option<&ConformerChemistry>) {
        self.merge(&found.map_or_else(MoleculeChemistry::default, |found| MoleculeChemistry {
            texts: 0,
            checked: 1,
            blocks: found.atoms,
            stereocentres: found.stereocentres,
            double_bonds: found.double_bonds,
            stereo_unchecked: found.stereo_unchecked,
            counts: ChemistryFigure::ALL.map(|figure| figure.of(found)),
        }));
        self.texts += 1;
    }

    /// Adds other conformers of the same molecule.
    pub fn merge(&mut self, other: &MoleculeChemistry) {
        self.texts += other.texts;
        self.checked += other.checked;
        self.blocks += other.blocks;
        self.stereocentres += other.stereocentres;
        self.double_bonds += other.double_bonds;
        self.stereo_unchecked += other.stereo_unchecked;
        for (sum, one) in self.counts.iter_mut().zip(other.counts) {
            *sum = (sum.0 + one.0, sum.1 + one.1);
        }
    }

    /// Returns the sums over these conformers; `None` stands for one that was not checked.
    pub(crate) fn from_conformers(found: impl Iterator<Item = Option<ConformerChemistry>>) -> Self {
        let mut out = MoleculeChemistry::default();
        found.for_each(|found| out.add(found.as_ref()));
        out
    }
}

impl ChemistryReport {
    /// Returns a sentence, if some stereo marks are not compared with coordinates.
    pub(in crate::audit) fn unchecked(&self) -> Option<String> {
        let count = self.stereo_unchecked;
        (count > 0).then(|| {
            format!("{count} stereo marks of the prompts are not checked (RDKit drops them, or neighbours are missing) and do not count as right")
        })
    }

    /// Returns the report over molecules.
    pub fn from_molecules<'m>(molecules: impl Iterator<Item = &'m MoleculeChemistry> + Clone) -> Self {
        let mut report = ChemistryReport::default();
        for molecule in molecules.clone() {
            report.checked += molecule.checked;
            report.stereocentres += molecule.stereocentres;
            report.double_bonds += molecule.double_bonds;
            report.stereo_unchecked += molecule.stereo_unchecked;
            report.checked_blocks += molecule.blocks;
        }
        for (at, figure) in ChemistryFigure::ALL.into_iter().enumerate() {
            let mut sums = ClusterSums::default();
            for molecule in molecules.clone() {
                let (count, of) = molecule.counts[at];
                let of = if figure.is_of_all() { molecule.texts } else { of };
                sums.add(i64::try_from(count).unwrap_or(i64::MAX), of);
                *report.field(figure) += count;
            }
            if let Some(interval) = sums.share_interval(LEVEL) {
                report.chemistry_intervals.insert(figure, interval);
            }
        }
        report
    }

    /// Returns a count, and the total of which it is a share. `texts` is the number of all texts or references.
    pub fn share(&self, figure: ChemistryFigure, texts: u64) -> (u64, u64) {
        let count = *self.clone().field(figure);
        let of = match figure {
            ChemistryFigure::StereocentresRight => self.stereocentres,
            ChemistryFigure::DoubleBondsRight => self.double_bonds,
            ChemistryFigure::ZeroZ => self.checked_blocks,
            figure if figure.is_of_all() => texts,
            _ => self.checked,
        };
        (count, of)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Chemistry;
    use super::*;

    #[test]
    fn counts_and_intervals_over_molecules() {
        let propane = Chemistry::from_smiles("CCCC").unwrap();
        let straight: Vec<[f64; 3]> =
            (0..4).map(|i| [1.27 * f64::from(i), if i % 2 == 0 { 0.0 } else { 0.86 }, 0.0]).collect();
        let mut torn = straight.clone();
        torn[3] = [9.0, 0.0, 1.0];
        let checked = [Some(&straight), Some(&torn), None];
        let mut one =
            MoleculeChemistry::from_conformers(checked.into_iter().map(|points| propane.check(points?)));
        let other = MoleculeChemistry::from_conformers([propane.check(&straight)].into_iter());
        one.merge(&MoleculeChemistry::default());
        let report = ChemistryReport::from_molecules([&one, &other].into_iter());
        assert_eq!((report.checked, report.valid, report.valid_geometry), (3, 2, 2));
        assert_eq!((report.bad_bonds, report.fragmented, report.flat), (1, 1, 2));
        assert_eq!((report.checked_blocks, report.zero_z, report.stereocentres), (12, 11, 0));
        assert_eq!(report.share(ChemistryFigure::Valid, 4), (2, 4));
        assert_eq!(report.share(ChemistryFigure::BadBonds, 4), (1, 3));
        assert!(!report.chemistry_intervals.contains_key(&ChemistryFigure::StereocentresRight));
        assert!(report.chemistry_intervals[&ChemistryFigure::Valid].contains(0.5));
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["valid"], 2);
        assert_eq!(serde_json::from_value::<ChemistryReport>(json).unwrap(), report);
        assert_eq!(ChemistryReport::from_molecules(std::iter::empty()), ChemistryReport::default());
    }
}
