//! The limits that bonds and angles set on the distances of heavy atoms.

use super::bounds::bounds;
use super::matrix::Bounds;
use super::molecule::Molecule;

/// The bounds on the distance of two atoms, in Å.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The two atoms.
    pub atoms: [usize; 2],
    /// The smallest distance.
    pub low: f64,
    /// The largest distance.
    pub high: f64,
}

/// The limits on all distances of a molecule, before any tolerance.
pub struct DistanceLimits {
    /// Of the bonds between heavy atoms.
    pub bonds: Vec<Limits>,
    /// Of heavy atoms two bonds apart.
    pub angles: Vec<Limits>,
    bounds: Bounds,
}

impl DistanceLimits {
    /// Returns the limits of a molecule.
    pub fn from_molecule(molecule: &Molecule) -> Self {
        let bounds = bounds(molecule);
        let limits = |atoms: [usize; 2]| {
            let [low, high] = bounds.of(atoms[0], atoms[1]);
            Limits { atoms, low, high }
        };
        let mut bonds: Vec<Limits> = molecule.heavy_bonds().map(limits).collect();
        even_out(molecule, &mut bonds);
        let is_angle = |atoms: &[usize; 2]| molecule.distance(atoms[0], atoms[1]) == 2;
        let angles = molecule.heavy_pairs().filter(is_angle).map(limits).collect();
        DistanceLimits { bonds, angles, bounds }
    }

    /// Returns the smallest and the largest distance of two atoms, in Å.
    pub fn of(&self, a: usize, b: usize) -> [f64; 2] {
        self.bounds.of(a, b)
    }
}

/// The two oxygens of a carboxylate, and similar atoms, have equivalent bonds that are written differently: both get the union of
/// their bounds. This follows `symmetrize_conjugated_terminal_bonds` of PoseBusters, which treats all bonds of one pair of elements
/// together.
fn even_out(molecule: &Molecule, bonds: &mut [Limits]) {
    let elements = |limits: &Limits| -> Option<(u8, u8)> {
        // An atom with a twin has only this one bond.
        let matched = limits.atoms.iter().any(|atom| molecule.shape.molecule.has_twin(*atom));
        let [x, y] = limits.atoms.map(|atom| molecule.atom(atom).element);
        matched.then_some((x.min(y), x.max(y)))
    };
    let keys: Vec<Option<(u8, u8)>> = bonds.iter().map(elements).collect();
    // Computed from a copy, because a widened bond must not widen others.
    let old = bonds.to_vec();
    for (at, key) in keys.iter().enumerate().filter(|(_, key)| key.is_some()) {
        let same = || old.iter().zip(&keys).filter(|(_, other)| *other == key).map(|(limits, _)| limits);
        bonds[at].low = same().map(|limits| limits.low).fold(f64::INFINITY, f64::min);
        bonds[at].high = same().map(|limits| limits.high).fold(0.0, f64::max);
    }
}
