//! What is wrong with a conformer.

use serde::{Deserialize, Serialize};

/// A rule that a conformer breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChemistryRule {
    /// Two heavy atoms, three or more bonds apart, are too near.
    Clash,
    /// A bond is too short.
    ShortBond,
    /// A bond is too long.
    LongBond,
    /// Two bonds have a wrong angle: their ends are too near or too far.
    Angle,
    /// An aromatic ring is bent.
    AromaticRing,
    /// A saturated ring of six is flat.
    FlatRing,
    /// What is bonded to a double bond between carbons does not lie in its plane.
    BentDoubleBond,
    /// A carbon with three bonds does not lie in the plane of its neighbours.
    BentCentre,
    /// Bonds are so long that the molecule falls apart.
    Fragments,
    /// A stereocentre has the other handedness than the prompt's, or none.
    Stereocentre,
    /// A double bond has its substituents on other sides than the prompt's.
    DoubleBond,
}

impl ChemistryRule {
    /// All of them.
    pub const ALL: [ChemistryRule; 11] = [
        ChemistryRule::Clash,
        ChemistryRule::ShortBond,
        ChemistryRule::LongBond,
        ChemistryRule::Angle,
        ChemistryRule::AromaticRing,
        ChemistryRule::FlatRing,
        ChemistryRule::BentDoubleBond,
        ChemistryRule::BentCentre,
        ChemistryRule::Fragments,
        ChemistryRule::Stereocentre,
        ChemistryRule::DoubleBond,
    ];

    /// In words, of one that breaks it.
    pub fn name(self) -> &'static str {
        match self {
            ChemistryRule::Clash => "clash",
            ChemistryRule::ShortBond => "bond too short",
            ChemistryRule::LongBond => "bond too long",
            ChemistryRule::Angle => "wrong angle",
            ChemistryRule::AromaticRing => "bent aromatic ring",
            ChemistryRule::FlatRing => "flat saturated ring",
            ChemistryRule::BentDoubleBond => "bent double bond",
            ChemistryRule::BentCentre => "bent trigonal carbon",
            ChemistryRule::Fragments => "falls apart",
            ChemistryRule::Stereocentre => "wrong stereocentre",
            ChemistryRule::DoubleBond => "wrong double bond",
        }
    }

    /// Whether it is about the prompt's stereo rather than about the geometry of any molecule.
    pub fn is_stereo(self) -> bool {
        matches!(self, ChemistryRule::Stereocentre | ChemistryRule::DoubleBond)
    }
}

/// A rule broken at some atoms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChemistryFinding {
    /// The rule.
    pub rule: ChemistryRule,
    /// The atoms, numbered from 0 in SMILES order: the two of a bond, clash or double bond, the two ends of an angle, the ring or the
    /// plane, the stereocentre; none of fragments.
    pub atoms: Vec<usize>,
    /// What was measured, in Å: a distance, or the largest one from a plane; of fragments their number; none of stereo.
    pub value: Option<f64>,
    /// What it had to stay below or above.
    pub limit: Option<f64>,
}

/// What was found of one conformer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConformerChemistry {
    /// Every rule that is broken, and where.
    pub findings: Vec<ChemistryFinding>,
    /// Stereocentres that the SMILES marks.
    pub stereocentres: u64,
    /// Of them, those with the handedness that is marked.
    pub stereocentres_right: u64,
    /// Double bonds that the SMILES marks.
    pub double_bonds: u64,
    /// Of them, those with their neighbours on the sides that are marked.
    pub double_bonds_right: u64,
    /// Stereo marks that are not compared with coordinates: allenes, and polyhedra of which neighbours are missing.
    pub stereo_unchecked: u64,
    /// Whether every z is 0, up to [`FLAT_ANGSTROM`](super::FLAT_ANGSTROM); never of fewer than four atoms.
    pub flat: bool,
    /// Whether all atoms lie in one plane, up to [`FLAT_ANGSTROM`](super::FLAT_ANGSTROM); never of fewer than four atoms.
    pub planar: bool,
    /// Atoms.
    pub atoms: u64,
    /// Of them, those whose z is 0 to the last digit.
    pub zero_z: u64,
}

impl ConformerChemistry {
    /// Whether no rule is broken.
    pub fn is_valid(&self) -> bool {
        self.findings.is_empty()
    }

    /// Whether no rule is broken but those of stereo.
    pub fn has_valid_geometry(&self) -> bool {
        self.findings.iter().all(|finding| finding.rule.is_stereo())
    }

    /// Whether a rule is broken somewhere.
    pub fn breaks(&self, rule: ChemistryRule) -> bool {
        self.findings.iter().any(|finding| finding.rule == rule)
    }
}
