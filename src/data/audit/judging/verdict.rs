//! All results for one generated conformer, as a flat record.

use serde::{Deserialize, Serialize};

use super::super::chemistry::{ChemistryFigure, ChemistryFinding, ChemistryRule, ConformerChemistry};
use super::super::outcome::Outcome;
use super::super::sample::TextVerdict;
use super::why::why;
use drift_core::Encoding;

/// The largest number of broken rules that are described.
const TOLD: usize = 20;

/// The results for one generated conformer. The chemistry fields are false and 0 if chemistry was not checked, because the text
/// does not pass or its molecule is too large.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ConformerVerdict {
    /// Whether it is the prompt's molecule with numbers behind each atom: [`Outcome::Pass`].
    pub passed: bool,
    /// Whether it passes by the rules of 3DMolGen.
    pub passed_by_3dmolgen: bool,
    /// The outcome of the text.
    pub outcome: Outcome,
    /// The reason why it does not pass; empty if it does.
    pub why: String,
    /// Whether the chemistry rules were checked.
    pub checked: bool,
    /// Whether it breaks no chemistry rule, including those of stereo.
    pub valid: bool,
    /// Whether it breaks no chemistry rule except those of stereo.
    pub valid_geometry: bool,
    /// The number of stereocentres that the prompt marks.
    pub stereocentres: u64,
    /// Of these, the number with the marked handedness.
    pub stereocentres_right: u64,
    /// The number of double bonds that the prompt marks.
    pub double_bonds: u64,
    /// Of these, the number with their neighbours on the marked sides.
    pub double_bonds_right: u64,
    /// The number of stereo marks that are not compared with coordinates. They never count as right.
    pub stereo_unchecked: u64,
    /// Whether two atoms, three or more bonds apart, are too close.
    pub clashing: bool,
    /// The number of such pairs of atoms.
    pub clashes: u64,
    /// Whether a bond is too short or too long.
    pub bad_bonds: bool,
    /// Whether an angle is wrong.
    pub bad_angles: bool,
    /// Whether an aromatic ring is bent.
    pub bent_aromatic_rings: bool,
    /// Whether a saturated ring of six atoms is flat.
    pub flat_rings: bool,
    /// Whether a double bond or a trigonal carbon is not flat.
    pub bent_double_bonds: bool,
    /// Whether it falls into more parts.
    pub fragmented: bool,
    /// Whether every |z| is at most 0.05 Å.
    pub flat: bool,
    /// Whether all atoms lie in one plane.
    pub planar: bool,
    /// Descriptions of the first broken rules, with atoms from 0 and lengths in Å.
    pub faults: Vec<String>,
    /// The mean over bonds of the deviation from the references' mean length, in Å; `None` without references.
    pub bond_error_angstrom: Option<f64>,
    /// The least RMSD to a reference, in Å; `None` without references.
    pub rmsd_angstrom: Option<f64>,
    /// The index of that reference, from 0.
    pub nearest_reference: Option<usize>,
    /// The number of references.
    pub references: u64,
}

impl ConformerVerdict {
    /// Returns the verdict on a tagged text of an encoding. `chemistry` has the findings on its conformer, if it has one.
    pub fn new(
        text: &str,
        encoding: Encoding,
        verdict: &TextVerdict,
        prompt: Option<&str>,
        chemistry: Option<&ConformerChemistry>,
    ) -> Self {
        let mut out = ConformerVerdict {
            passed: verdict.outcome == Outcome::Pass,
            passed_by_3dmolgen: verdict.by_3dmolgen == Outcome::Pass,
            outcome: verdict.outcome,
            why: why(text, encoding, verdict, prompt),
            ..ConformerVerdict::default()
        };
        if let Some(found) = chemistry {
            out.take(found);
        }
        out
    }

    fn take(&mut self, found: &ConformerChemistry) {
        let counts = |figure: ChemistryFigure| figure.of(found).0 > 0;
        self.checked = true;
        (self.valid, self.valid_geometry) = (found.is_valid(), found.has_valid_geometry());
        (self.stereocentres, self.stereocentres_right) = (found.stereocentres, found.stereocentres_right);
        (self.double_bonds, self.double_bonds_right) = (found.double_bonds, found.double_bonds_right);
        self.stereo_unchecked = found.stereo_unchecked;
        let clashes = found.findings.iter().filter(|finding| finding.rule == ChemistryRule::Clash);
        self.clashes = clashes.count() as u64;
        self.clashing = self.clashes > 0;
        self.bad_bonds = counts(ChemistryFigure::BadBonds);
        self.bad_angles = counts(ChemistryFigure::BadAngles);
        self.bent_aromatic_rings = counts(ChemistryFigure::BentAromaticRings);
        self.flat_rings = counts(ChemistryFigure::FlatRings);
        self.bent_double_bonds = counts(ChemistryFigure::BentDoubleBonds);
        self.fragmented = counts(ChemistryFigure::Fragmented);
        (self.flat, self.planar) = (found.flat, found.planar);
        self.faults = found.findings.iter().take(TOLD).map(told).collect();
    }

    /// Sets the least RMSDs to the references, in Å, and the bond-length error.
    pub fn set_distances(&mut self, rmsd: &[f64], bond_error: Option<f64>) {
        let nearest = (0..rmsd.len()).min_by(|a, b| rmsd[*a].total_cmp(&rmsd[*b]));
        self.references = rmsd.len() as u64;
        self.nearest_reference = nearest;
        self.rmsd_angstrom = nearest.map(|at| rmsd[at]);
        self.bond_error_angstrom = bond_error;
    }
}

/// Returns a description of a broken rule: `clash 3-7: 1.210, limit 2.040`.
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
