//! Bounds of the distances of all pairs, while they are made and after.

use std::collections::{BTreeMap, HashMap};
use std::f64::consts::PI;

use super::lengths::Length;
use super::molecule::Molecule;

/// No bound is known below this, or above [`FAR`].
pub(super) const NEAR: f64 = 0.01;
pub(super) const FAR: f64 = 1000.0;

/// The share of the sum of radii that atoms four bonds apart keep; of five bonds it is half way to all of it.
pub(super) const FOUR_BONDS: f64 = 0.7;

/// Bounds of the distances of all pairs.
pub(super) struct Bounds {
    pub low: Vec<f64>,
    pub high: Vec<f64>,
}

/// The place of a pair in a triangle.
pub(super) fn place(a: usize, b: usize) -> usize {
    let (a, b) = (a.min(b), a.max(b));
    b * b.saturating_sub(1) / 2 + a
}

impl Bounds {
    pub(super) fn unknown(atoms: usize) -> Self {
        let pairs = place(0, atoms);
        Bounds { low: vec![0.0; pairs], high: vec![FAR; pairs] }
    }

    /// The least and the greatest distance of two atoms.
    pub(super) fn of(&self, a: usize, b: usize) -> [f64; 2] {
        let at = place(a, b);
        [self.low[at], self.high[at]]
    }

    /// Sets bounds, or widens those that are known.
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

    /// Makes the bounds fit one another: no distance is longer than the sum of two others in a triangle, or shorter than their
    /// difference. Ends where they contradict one another.
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

/// Two bonds with an atom in common.
pub(super) fn pair(a: usize, b: usize) -> (usize, usize) {
    (a.min(b), a.max(b))
}

/// Lengths of bonds and angles between them, as far as they are known.
pub(super) struct Ideal {
    /// By bond.
    pub lengths: Vec<Length>,
    /// By pair of bonds: the angle, and the atom that they share.
    pub angles: HashMap<(usize, usize), (f64, usize)>,
}

impl Ideal {
    /// The angle between two bonds with an atom in common.
    pub(super) fn angle(&self, a: usize, b: usize) -> f64 {
        // Every pair that shares an atom has got one.
        self.angles.get(&pair(a, b)).map_or(2.0 * PI / 3.0, |(angle, _)| *angle)
    }

    /// The atom that two bonds share.
    pub(super) fn shared(&self, a: usize, b: usize) -> Option<usize> {
        self.angles.get(&pair(a, b)).map(|(_, atom)| *atom)
    }
}

/// What is set so far, by pair of atoms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Set {
    Bond,
    Angle,
    Torsion,
}

/// Bounds while they are made.
pub(super) struct Builder<'m> {
    pub molecule: &'m Molecule,
    pub bounds: Bounds,
    pub ideal: Ideal,
    /// What set the bounds of a pair.
    pub set: BTreeMap<(usize, usize), Set>,
}
