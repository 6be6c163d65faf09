//! The chemistry of a conformer: whether its stereo agrees with its SMILES, whether its bonds, angles and planes are plausible, and
//! whether atoms clash. The rules are those of PoseBusters (M. Buttenschoen, G. Morris and C. Deane, Chem. Sci. 15 (2024) 3130),
//! applied to heavy atoms only. `docs/chemistry.md` lists them with their limits.
//!
//! Usage: call [`Chemistry::from_smiles`] once for a SMILES, then [`Chemistry::check`] for each conformer.

mod finding;
mod planes;
mod report;

pub use finding::{ChemistryFinding, ChemistryRule, ConformerChemistry};
pub use report::{ChemistryFigure, ChemistryReport, MoleculeChemistry};

use drift_core::chem::elements::symbol;
use drift_core::chem::stereo::are_together;
use drift_core::chem::symmetry::UnionFind;
use drift_core::chem::{AtomLimit, SmilesError, SmilesMolecule, StereoAgreement};
use drift_core::geometry::{DistanceLimits, Limits, Molecule, Plane, PlaneKind, planes};
use drift_core::vector::{distance, squared_distance};

/// The share by which a bond, or the distance of atoms two bonds apart, may exceed its bounds.
pub(crate) const BOND_TOLERANCE: f64 = 0.25;

/// The share by which atoms three or more bonds apart may be closer than their bounds.
pub(crate) const CLASH_TOLERANCE: f64 = 0.3;

/// The largest distance of an atom from the plane of its ring or double bond, in Å.
pub(crate) const PLANE_ANGSTROM: f64 = 0.25;

/// The least distance from the plane that some atom of a saturated six-membered ring must have, in Å.
pub(crate) const PUCKER_ANGSTROM: f64 = 0.05;

/// The largest distance of an atom from the plane of a flat conformer, in Å.
pub(crate) const FLAT_ANGSTROM: f64 = 0.05;

/// The precomputed limits of a molecule, for checking its conformers.
#[derive(Debug, Clone)]
pub struct Chemistry {
    /// Atomic numbers.
    elements: Vec<u8>,
    stereo: SmilesMolecule,
    bonds: Vec<Limits>,
    angles: Vec<Limits>,
    /// The smallest distances of pairs that can clash, in Å, in rows of the triangular matrix (the second atom is the larger one);
    /// 0 for other pairs.
    nearest: Vec<f32>,
    planes: Vec<Plane>,
    /// Bonds to hydrogens that are atoms. Their lengths are not checked.
    hydrogens: Vec<[usize; 2]>,
    parts: usize,
}

impl Chemistry {
    /// Returns the molecule of a SMILES. Hydrogens written as atoms are atoms of its conformers, but cannot break a rule.
    ///
    /// # Errors
    /// If RDKit would refuse it, it is larger than the limit, or it contains a `*`.
    pub fn from_smiles(smiles: &str) -> Result<Self, SmilesError> {
        let molecule = Molecule::new(smiles)?;
        let stereo = SmilesMolecule::new(smiles, AtomLimit::default()).map_err(|why| SmilesError {
            smiles: drift_core::error::shortened_end(smiles, 100),
            reason: why.to_string(),
        })?;
        let limits = DistanceLimits::from_molecule(&molecule);
        let mut nearest = Vec::new();
        for b in 1..molecule.len() {
            for a in 0..b {
                let far = molecule.distance(a, b) > 2 && molecule.is_heavy(a) && molecule.is_heavy(b);
                // Single precision halves the table of all pairs, and is far more precise than the tolerance.
                nearest.push(if far { ((1.0 - CLASH_TOLERANCE) * limits.of(a, b)[0]) as f32 } else { 0.0 });
            }
        }
        let hydrogens = molecule.bonds().filter(|atoms| !atoms.iter().all(|atom| molecule.is_heavy(*atom)));
        Ok(Chemistry {
            elements: (0..molecule.len()).map(|atom| molecule.atom(atom).element).collect(),
            stereo,
            nearest,
            planes: planes(&molecule),
            hydrogens: hydrogens.collect(),
            parts: parts_of(molecule.len(), molecule.bonds()),
            bonds: limits.bonds,
            angles: limits.angles,
        })
    }

    /// Returns the number of atoms of a conformer.
    pub fn atoms(&self) -> usize {
        self.elements.len()
    }

    /// Returns the symbol of each atom's element.
    pub fn elements(&self) -> impl Iterator<Item = &'static str> {
        self.elements.iter().map(|element| symbol(*element).unwrap_or("*"))
    }

    /// Returns the bonds between heavy atoms, each once.
    pub fn bonds(&self) -> impl Iterator<Item = [usize; 2]> {
        self.bonds.iter().map(|limits| limits.atoms)
    }

    /// Checks a conformer with positions in Å and atoms in the order of the SMILES; `None` if the number of atoms differs, or a
    /// coordinate is not finite.
    pub fn check(&self, points: &[[f64; 3]]) -> Option<ConformerChemistry> {
        if points.len() != self.atoms() || points.iter().flatten().any(|x| !x.is_finite()) {
            return None;
        }
        let mut out = ConformerChemistry { atoms: points.len() as u64, ..ConformerChemistry::default() };
        self.check_bonds(points, &mut out.findings);
        self.check_clashes(points, &mut out.findings);
        self.check_planes(points, &mut out.findings);
        self.check_stereo(points, &mut out);
        let enough = points.len() > 3;
        out.flat = enough && points.iter().all(|p| p[2].abs() <= FLAT_ANGSTROM);
        out.planar = enough && planes::off_plane(points) <= FLAT_ANGSTROM;
        out.zero_z = points.iter().filter(|p| p[2] == 0.0).count() as u64;
        Some(out)
    }

    fn check_bonds(&self, points: &[[f64; 3]], findings: &mut Vec<ChemistryFinding>) {
        let mut whole = Vec::with_capacity(self.bonds.len());
        for limits in &self.bonds {
            let length = length_of(limits, points);
            let (least, most) = widened(limits);
            if length < least {
                findings.push(finding(ChemistryRule::ShortBond, &limits.atoms, length, least));
            }
            if length > most {
                findings.push(finding(ChemistryRule::LongBond, &limits.atoms, length, most));
            } else {
                whole.push(limits.atoms);
            }
        }
        for limits in &self.angles {
            let length = length_of(limits, points);
            let (least, most) = widened(limits);
            if length < least || length > most {
                let limit = if length < least { least } else { most };
                findings.push(finding(ChemistryRule::Angle, &limits.atoms, length, limit));
            }
        }
        // Bonds that are too long do not connect. Bonds to written hydrogens always do, whatever their length.
        let parts = parts_of(self.atoms(), whole.into_iter().chain(self.hydrogens.iter().copied()));
        if parts > self.parts {
            findings.push(finding(ChemistryRule::Fragments, &[], parts as f64, self.parts as f64));
        }
    }

    fn check_clashes(&self, points: &[[f64; 3]], findings: &mut Vec<ChemistryFinding>) {
        let mut nearest = self.nearest.iter();
        for b in 1..self.atoms() {
            for (a, &least) in (0..b).zip(nearest.by_ref().take(b)) {
                let least = f64::from(least);
                let squared = squared_distance(points[a], points[b]);
                if squared < least * least {
                    findings.push(finding(ChemistryRule::Clash, &[a, b], squared.sqrt(), least));
                }
            }
        }
    }

    fn check_planes(&self, points: &[[f64; 3]], findings: &mut Vec<ChemistryFinding>) {
        for Plane { kind, atoms, ring } in &self.planes {
            let is_twisted = |ring: [usize; 4]| are_together(ring.map(|atom| points[atom])) == Some(false);
            // For example *trans*-cyclooctene, whose double bond cannot be flat in a ring of this size.
            if ring.is_some_and(is_twisted) {
                continue;
            }
            let own: Vec<[f64; 3]> = atoms.iter().map(|atom| points[*atom]).collect();
            let off = planes::off_plane(&own);
            let (rule, broken, limit) = match kind {
                PlaneKind::SaturatedRing => (ChemistryRule::FlatRing, off < PUCKER_ANGSTROM, PUCKER_ANGSTROM),
                PlaneKind::AromaticRing => {
                    (ChemistryRule::AromaticRing, off > PLANE_ANGSTROM, PLANE_ANGSTROM)
                }
                PlaneKind::DoubleBond => {
                    (ChemistryRule::BentDoubleBond, off > PLANE_ANGSTROM, PLANE_ANGSTROM)
                }
                PlaneKind::Centre => (ChemistryRule::BentCentre, off > PLANE_ANGSTROM, PLANE_ANGSTROM),
            };
            if broken {
                findings.push(finding(rule, atoms, off, limit));
            }
        }
    }

    fn check_stereo(&self, points: &[[f64; 3]], out: &mut ConformerChemistry) {
        let wrong = |rule, atoms: &[usize]| {
            let atoms = atoms.to_vec();
            ChemistryFinding { rule, atoms, value: None, limit: None }
        };
        let StereoAgreement { centres, double_bonds } = self.stereo.agreement(points);
        for (atom, right) in centres {
            out.stereocentres += 1;
            out.stereocentres_right += u64::from(right);
            if !right {
                out.findings.push(wrong(ChemistryRule::Stereocentre, &[atom]));
            }
        }
        for (atoms, right) in double_bonds {
            out.double_bonds += 1;
            out.double_bonds_right += u64::from(right);
            if !right {
                out.findings.push(wrong(ChemistryRule::DoubleBond, &atoms));
            }
        }
        out.stereo_unchecked = self.stereo.unchecked() as u64;
    }
}

/// Returns the distance of the two atoms of `limits`, in Å.
fn length_of(limits: &Limits, points: &[[f64; 3]]) -> f64 {
    distance(points[limits.atoms[0]], points[limits.atoms[1]])
}

/// Returns the bounds with the tolerance, in Å.
fn widened(limits: &Limits) -> (f64, f64) {
    ((1.0 - BOND_TOLERANCE) * limits.low, (1.0 + BOND_TOLERANCE) * limits.high)
}

fn finding(rule: ChemistryRule, atoms: &[usize], value: f64, limit: f64) -> ChemistryFinding {
    ChemistryFinding { rule, atoms: atoms.to_vec(), value: Some(value), limit: Some(limit) }
}

/// Returns the number of connected parts of atoms and bonds.
fn parts_of(atoms: usize, bonds: impl Iterator<Item = [usize; 2]>) -> usize {
    let mut together = UnionFind::new(atoms);
    // Each bond between two parts makes them one.
    atoms - bonds.filter(|[a, b]| together.join(*a, *b)).count()
}

#[cfg(test)]
mod tests;
