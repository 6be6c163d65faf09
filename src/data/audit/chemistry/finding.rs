//! The chemical faults of a conformer.

use serde::{Deserialize, Serialize};

/// A rule that a conformer breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChemistryRule {
    /// Two heavy atoms, three or more bonds apart, are too close.
    Clash,
    /// A bond is too short.
    ShortBond,
    /// A bond is too long.
    LongBond,
    /// Two bonds have a wrong angle: their ends are too close or too far apart.
    Angle,
    /// An aromatic ring is bent.
    AromaticRing,
    /// A saturated six-membered ring is flat.
    FlatRing,
    /// The substituents of a double bond between carbons do not lie in its plane.
    BentDoubleBond,
    /// A carbon with three neighbours does not lie in their plane.
    BentCentre,
    /// Bonds are so long that the molecule falls into more parts.
    Fragments,
    /// A stereocentre does not have the handedness of the prompt.
    Stereocentre,
    /// A double bond does not have its substituents on the sides given by the prompt.
    DoubleBond,
}

drift_core::named!(ChemistryRule {
    Clash: "clash",
    ShortBond: "bond too short",
    LongBond: "bond too long",
    Angle: "wrong angle",
    AromaticRing: "bent aromatic ring",
    FlatRing: "flat saturated ring",
    BentDoubleBond: "bent double bond",
    BentCentre: "bent trigonal carbon",
    Fragments: "falls apart",
    Stereocentre: "wrong stereocentre",
    DoubleBond: "wrong double bond"
});

impl ChemistryRule {
    /// Returns whether it concerns the prompt's stereo, and not the geometry of molecules in general.
    pub fn is_stereo(self) -> bool {
        matches!(self, ChemistryRule::Stereocentre | ChemistryRule::DoubleBond)
    }
}

/// A rule broken at some atoms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChemistryFinding {
    /// The rule.
    pub rule: ChemistryRule,
    /// The atoms, numbered from 0 in SMILES order: the two atoms of a bond, clash or double bond, the two ends of an angle, the
    /// atoms of the ring or plane, or the stereocentre. Empty for fragments.
    pub atoms: Vec<usize>,
    /// The measured value: a distance in Å, the largest distance from a plane in Å, or the number of fragments; `None` for stereo.
    pub value: Option<f64>,
    /// The limit that the value broke, in the same unit.
    pub limit: Option<f64>,
}

/// The findings on one conformer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConformerChemistry {
    /// Every broken rule, with its atoms.
    pub findings: Vec<ChemistryFinding>,
    /// The number of stereocentres that the SMILES marks.
    pub stereocentres: u64,
    /// Of these, the number with the marked handedness.
    pub stereocentres_right: u64,
    /// The number of double bonds that the SMILES marks.
    pub double_bonds: u64,
    /// Of these, the number with their neighbours on the marked sides.
    pub double_bonds_right: u64,
    /// The number of stereo marks that are not compared with coordinates: allenes, and polyhedra with missing neighbours.
    pub stereo_unchecked: u64,
    /// Whether every |z| is at most [`FLAT_ANGSTROM`](super::FLAT_ANGSTROM); always false for fewer than four atoms.
    pub flat: bool,
    /// Whether all atoms lie in one plane, within [`FLAT_ANGSTROM`](super::FLAT_ANGSTROM); always false for fewer than four atoms.
    pub planar: bool,
    /// The number of atoms.
    pub atoms: u64,
    /// Of these, the number with a z of exactly 0.
    pub zero_z: u64,
}

impl ConformerChemistry {
    /// Returns whether no rule is broken.
    pub fn is_valid(&self) -> bool {
        self.findings.is_empty()
    }

    /// Returns whether no rule except those of stereo is broken.
    pub fn has_valid_geometry(&self) -> bool {
        self.findings.iter().all(|finding| finding.rule.is_stereo())
    }

    /// Returns whether a rule is broken somewhere.
    pub fn breaks(&self, rule: ChemistryRule) -> bool {
        self.findings.iter().any(|finding| finding.rule == rule)
    }
}
