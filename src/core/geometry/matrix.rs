//! The matrix of distance bounds, and its builder.

use std::collections::{BTreeMap, HashMap};
use std::f64::consts::PI;

use super::lengths::Length;
use super::molecule::Molecule;
use crate::chem::Hybridisation;

/// Lower bounds up to this value, and upper bounds from [`FAR`] on, count as unknown; in Å.
pub(super) const NEAR: f64 = 0.01;
pub(super) const FAR: f64 = 1000.0;

/// For atoms four bonds apart, the smallest distance as a share of the sum of van der Waals radii.
pub(super) const FOUR_BONDS: f64 = 0.7;

/// The smallest angle between two bonds of a hypervalent atom, as of the ring of a benziodoxole, in radians.
pub(super) const LEAST_HYPERVALENT: f64 = 75.0 / 180.0 * PI;

const IODINE: u8 = 53;

/// Bounds on the distances of all pairs of atoms, in Å.
pub(super) struct Bounds {
    pub low: Vec<f64>,
    pub high: Vec<f64>,
}

/// Returns the index of a pair in the triangular matrix.
pub(super) fn place(a: usize, b: usize) -> usize {
    let (a, b) = (a.min(b), a.max(b));
    b * b.saturating_sub(1) / 2 + a
}

impl Bounds {
    pub(super) fn unknown(atoms: usize) -> Self {
        let pairs = place(0, atoms);
        Bounds { low: vec![0.0; pairs], high: vec![FAR; pairs] }
    }

    /// Returns the smallest and the largest distance of two atoms, in Å.
    pub(super) fn of(&self, a: usize, b: usize) -> [f64; 2] {
        let at = place(a, b);
        [self.low[at], self.high[at]]
    }

    /// Sets the bounds of a pair, or widens known ones.
    pub(super) fn widen(&mut self, a: usize, b: usize, low: f64, high: f64) {
        let at = place(a, b);
        // The first bound is taken, and later ones only widen it, as in RDKit's `_checkAndSetBounds`.
        if self.low[at] <= NEAR || low < self.low[at] && low > NEAR {
            self.low[at] = low;
        }
        if self.high[at] >= FAR || high > self.high[at] && high < FAR {
            self.high[at] = high;
        }
    }

    /// Triangle smoothing: no distance may be longer than the sum of the other two in a triangle, or shorter than their difference.
    /// It stops if the bounds contradict each other.
    ///
    /// G. M. Crippen and T. F. Havel, Distance Geometry and Molecular Conformation (1988), pages 252 and 253.
    pub(super) fn smooth(&mut self, atoms: usize) {
        for k in 0..atoms {
            for i in (0..atoms.saturating_sub(1)).filter(|i| *i != k) {
                let [low_ik, high_ik] = self.of(i, k);
                for j in (i + 1..atoms).filter(|j| *j != k) {
                    let [low_jk, high_jk] = self.of(j, k);
                    let at = place(i, j);
                    self.high[at] = self.high[at].min(high_ik + high_jk);
                    if self.low[at] < low_ik - high_jk {
                        self.low[at] = low_ik - high_jk;
                    } else if self.low[at] < low_jk - high_ik {
                        self.low[at] = low_jk - high_ik;
                    }
                    if self.low[at] > self.high[at] {
                        return;
                    }
                }
            }
        }
    }
}

/// Returns the key of two bonds or two atoms, the smaller number first.
pub(super) fn pair(a: usize, b: usize) -> (usize, usize) {
    (a.min(b), a.max(b))
}

/// Bond lengths, and the angles between bonds as far as they are known.
pub(super) struct Ideal {
    /// By bond, its length.
    pub lengths: Vec<Length>,
    /// By pair of bonds, the angle in radians and the shared atom.
    pub angles: HashMap<(usize, usize), (f64, usize)>,
}

impl Ideal {
    /// Returns the angle between two bonds with a common atom, in radians.
    pub(super) fn angle(&self, a: usize, b: usize) -> f64 {
        // By now every pair with a common atom has one.
        self.angles.get(&pair(a, b)).map_or(2.0 * PI / 3.0, |(angle, _)| *angle)
    }

    /// Returns the atom that two bonds share.
    pub(super) fn shared(&self, a: usize, b: usize) -> Option<usize> {
        self.angles.get(&pair(a, b)).map(|(_, atom)| *atom)
    }
}

/// The source of the bounds of a pair of atoms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Set {
    Bond,
    Angle,
    Torsion,
}

/// The bounds while they are built.
pub(super) struct Builder<'m> {
    pub molecule: &'m Molecule,
    pub bounds: Bounds,
    pub ideal: Ideal,
    /// By pair of atoms, the source of its bounds.
    pub set: BTreeMap<(usize, usize), Set>,
}

impl Builder<'_> {
    /// Returns whether an atom with at most four bonds has more than four pairs of electrons, or is iodine, whose cation has a counter-ion
    /// as its third neighbour.
    pub(super) fn is_hypervalent(&self, atom: usize) -> bool {
        let is_alike = match self.molecule.hybridisation(atom) {
            Hybridisation::Sp3d | Hybridisation::Sp3d2 => true,
            Hybridisation::Sp3 => self.molecule.atom(atom).element == IODINE,
            _ => false,
        };
        is_alike && self.molecule.neighbours[atom].len() <= 4
    }
}
