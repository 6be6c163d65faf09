//! Everything that is found of one generated conformer, as one flat record.

use serde::{Deserialize, Serialize};

use super::super::chemistry::{ChemistryFinding, ChemistryRule, ConformerChemistry};
use super::super::outcome::Outcome;
use super::super::sample::TextVerdict;
use super::why::why;
use drift_core::encoding::Encoding;

/// How many broken rules are told in words.
const TOLD: usize = 20;

/// What is found of one generated conformer. The figures of chemistry are false and 0 where it was not checked: where the text does not
/// pass, or its molecule is larger than what is looked at.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ConformerVerdict {
    /// Whether it is the prompt's molecule with three numbers behind each atom: [`Outcome::Pass`].
    pub passed: bool,
    /// Whether it passes by the rules of 3DMolGen.
    pub passed_by_3dmolgen: bool,
    /// What became of the text.
    pub outcome: Outcome,
    /// Why it does not pass; empty if it does.
    pub why: String,
    /// Whether the rules of chemistry were checked.
    pub checked: bool,
    /// Whether it breaks no rule of chemistry, stereo among them.
    pub valid: bool,
    /// Whether it breaks no rule but those of stereo.
    pub valid_geometry: bool,
    /// Stereocentres that the prompt marks.
    pub stereocentres: u64,
    /// Of them, those with the handedness that is marked.
    pub stereocentres_right: u64,
    /// Double bonds that the prompt marks.
    pub double_bonds: u64,
    /// Of them, those with their neighbours on the sides that are marked.
    pub double_bonds_right: u64,
    /// Stereo marks that are not compared with coordinates; none counts as right.
    pub stereo_unchecked: u64,
    /// Whether two atoms, three or more bonds apart, are too near.
    pub clashing: bool,
    /// Pairs of atoms that are.
    pub clashes: u64,
    /// Whether a bond is too short or too long.
    pub bad_bonds: bool,
    /// Whether an angle is wrong.
    pub bad_angles: bool,
    /// Whether an aromatic ring is bent.
    pub bent_aromatic_rings: bool,
    /// Whether a saturated ring of six is flat.
    pub flat_rings: bool,
    /// Whether a double bond or a trigonal carbon is not flat.
    pub bent_double_bonds: bool,
    /// Whether it falls apart.
    pub fragmented: bool,
    /// Whether every z is 0, up to 0.05 Å.
    pub flat: bool,
    /// Whether all atoms lie in one plane.
    pub planar: bool,
    /// The first broken rules, in words, with atoms from 0 and Å.
    pub faults: Vec<String>,
    /// The mean over bonds of the difference from the references' mean length, in Å; none without references.
    pub bond_error_angstrom: Option<f64>,
    /// The least RMSD to a reference, in Å; none without references.
    pub rmsd_angstrom: Option<f64>,
    /// Which reference that is, from 0.
    pub nearest_reference: Option<usize>,
    /// How many references there are.
    pub references: u64,
}

impl ConformerVerdict {
    /// Of a tagged text of an encoding; `chemistry` is what was found of its conformer, if it has one.
    pub fn new(
        text: (&str, Encoding),
        verdict: &TextVerdict,
        prompt: Option<&str>,
        chemistry: Option<&ConformerChemistry>,
    ) -> Self {
        let mut out = ConformerVerdict {
            passed: verdict.outcome == Outcome::Pass,
            passed_by_3dmolgen: verdict.by_3dmolgen == Outcome::Pass,
            outcome: verdict.outcome,
            why: why(text, verdict, prompt),
            ..ConformerVerdict::default()
        };
        if let Some(found) = chemistry {
            out.take(found);
        }
        out
    }

    fn take(&mut self, found: &ConformerChemistry) {
        let breaks = |rule| found.breaks(rule);
        self.checked = true;
        (self.valid, self.valid_geometry) = (found.is_valid(), found.has_valid_geometry());
        (self.stereocentres, self.stereocentres_right) = (found.stereocentres, found.stereocentres_right);
        (self.double_bonds, self.double_bonds_right) = (found.double_bonds, found.double_bonds_right);
        self.stereo_unchecked = found.stereo_unchecked;
        let clashes = found.findings.iter().filter(|finding| finding.rule == ChemistryRule::Clash);
        self.clashes = clashes.count() as u64;
        self.clashing = self.clashes > 0;
        self.bad_bonds = breaks(ChemistryRule::ShortBond) || breaks(ChemistryRule::LongBond);
        self.bad_angles = breaks(ChemistryRule::Angle);
        self.bent_aromatic_rings = breaks(ChemistryRule::AromaticRing);
        self.flat_rings = breaks(ChemistryRule::FlatRing);
        self.bent_double_bonds = breaks(ChemistryRule::BentDoubleBond) || breaks(ChemistryRule::BentCentre);
        self.fragmented = breaks(ChemistryRule::Fragments);
        (self.flat, self.planar) = (found.flat, found.planar);
        self.faults = found.findings.iter().take(TOLD).map(told).collect();
    }

    /// Adds the distances to the references, in Å, and the error of the bonds.
    pub fn set_distances(&mut self, rmsd: &[f64], bond_error: Option<f64>) {
        let nearest = (0..rmsd.len()).min_by(|a, b| rmsd[*a].total_cmp(&rmsd[*b]));
        self.references = rmsd.len() as u64;
        self.nearest_reference = nearest;
        self.rmsd_angstrom = nearest.map(|at| rmsd[at]);
        self.bond_error_angstrom = bond_error;
    }
}

/// A broken rule in words: `clash 3-7: 1.21, limit 2.04`.
fn told(finding: &ChemistryFinding) -> String {
    let atoms: Vec<String> = finding.atoms.iter().map(usize::to_string).collect();
    let mut out = finding.rule.name().to_owned();
    if !atoms.is_empty() {
        out += &format!(" {}", atoms.join("-"));
    }
    if let (Some(value), Some(limit)) = (finding.value, finding.limit) {
        out += &format!(": {value:.3}, limit {limit:.3}");
    }
    out
}
