//! The smallest and the largest distance of each pair of atoms that bonds, angles and torsions allow. This is the bounds matrix of
//! distance geometry as RDKit builds it (`Code/GraphMol/DistGeomHelpers/BoundsMatrixBuilder.cpp`, release 2026.09, without stereo),
//! against which PoseBusters compares. Lengths are in Å, angles in radians.
//!
//! The order of the steps is that of RDKit, because later steps widen the bounds of earlier ones.

use std::collections::{BTreeMap, HashMap};
use std::f64::consts::PI;

use super::elements::element;
use super::lengths::{ANGLE_TOLERANCE, lengths};
use super::matrix::{Bounds, Builder, FOUR_BONDS, Ideal, LEAST_HYPERVALENT, NEAR, Set, pair, place};
use super::molecule::{Molecule, UNCONNECTED};
use super::torsions;
use crate::chem::Hybridisation;

/// For atoms five bonds apart, the smallest distance as a share of the sum of van der Waals radii: half way between four bonds and
/// all of it.
const FIVE_BONDS: f64 = 0.85;

/// The largest molecule whose bounds are smoothed, which takes time cubic in the number of atoms.
pub(super) const SMOOTHED_ATOMS: usize = 300;

/// Returns the distance bounds of a molecule.
pub(super) fn bounds(molecule: &Molecule) -> Bounds {
    let atoms = molecule.len();
    let mut bounds = Bounds::unknown(atoms);
    let mut set = BTreeMap::new();
    let lengths = lengths(molecule);
    for (bond, length) in lengths.iter().enumerate() {
        let [a, b] = molecule.ends(bond);
        bounds.low[place(a, b)] = length.low;
        bounds.high[place(a, b)] = length.high;
        set.insert(pair(a, b), Set::Bond);
    }
    let ideal = Ideal { lengths, angles: HashMap::new() };
    let mut builder = Builder { molecule, bounds, ideal, set };
    builder.angles();
    torsions::set(&mut builder);
    let mut bounds = builder.bounds;
    radii(molecule, &mut bounds);
    if atoms <= SMOOTHED_ATOMS {
        bounds.smooth(atoms);
    }
    bounds
}

/// Uses sums of van der Waals radii for pairs without another lower bound.
fn radii(molecule: &Molecule, bounds: &mut Bounds) {
    let radius: Vec<f64> =
        (0..molecule.len()).map(|atom| element(molecule.atom(atom).element).van_der_waals).collect();
    for b in 1..molecule.len() {
        for a in 0..b {
            let at = place(a, b);
            // Bonds, angles and torsions have set their bounds already.
            if bounds.low[at] < NEAR {
                let scale = match molecule.distance(a, b) {
                    4 => FOUR_BONDS,
                    5 => FIVE_BONDS,
                    UNCONNECTED => UNCONNECTED_SCALE,
                    _ => 1.0,
                };
                bounds.low[at] = scale * (radius[a] + radius[b]);
            }
        }
    }
}

/// For separate parts of a molecule, such as ions, the smallest distance as a share of the sum of van der Waals radii. RDKit uses
/// the whole sum, which exceeds the distance of a sodium ion and an oxygen.
const UNCONNECTED_SCALE: f64 = 0.7;

/// The angle between two bonds, as bounds take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AngleRange {
    /// The ideal one.
    Ideal,
    /// Anything from a right angle, or a little less, to a straight one: T-shaped, seesaw and linear groups, as of ICl₂ and TeCl₂. RDKit
    /// takes 105° for all of them, by which PhICl₂, whose chlorine atoms lie opposite each other, has a wrong angle.
    Hypervalent,
    /// Any angle.
    Free,
}

/// Returns the distance between the ends of two bonds with this angle between them.
fn across(first: f64, second: f64, angle: f64) -> f64 {
    (first * first + second * second - 2.0 * first * second * angle.cos()).sqrt()
}

impl Builder<'_> {
    /// Sets bounds for atoms two bonds apart: first in rings, then around ring atoms, then around others.
    fn angles(&mut self) {
        let atoms = self.molecule.len();
        let (mut taken, mut known) = (vec![0.0; atoms], vec![0; atoms]);
        let mut rings: Vec<usize> = (0..self.molecule.shape.rings.len()).collect();
        // The smallest ring of a pair of bonds decides.
        rings.sort_by_key(|ring| self.molecule.shape.rings[*ring].len());
        for ring in rings {
            let (ring, bonds) = (&self.molecule.shape.rings[ring], &self.molecule.ring_bonds[ring]);
            for at in 0..ring.len() {
                let (first, second) = (bonds[(at + ring.len() - 1) % ring.len()], bonds[at]);
                if !self.ideal.angles.contains_key(&pair(first, second)) {
                    let angle = ring_angle(self.molecule.hybridisation(ring[at]), ring.len());
                    let range = self.range(ring[at], true);
                    self.set_angle([first, second], ring[at], angle, range);
                    known[ring[at]] += 1;
                    taken[ring[at]] += angle;
                }
            }
        }
        for atom in 0..atoms {
            let degree = self.molecule.neighbours[atom].len();
            let all = degree * degree.saturating_sub(1) / 2;
            let in_ring = known[atom] > 0;
            for one in 0..degree {
                for other in 0..one {
                    let bonds = &self.molecule.neighbours[atom];
                    let (first, second) = (bonds[one], bonds[other]);
                    if self.ideal.angles.contains_key(&pair(first, second)) {
                        continue;
                    }
                    let angle = match self.molecule.hybridisation(atom) {
                        // The remainder of the full turn that the ring leaves.
                        Hybridisation::Sp2 if in_ring => {
                            // The current pair is not set yet, so the divisor is not zero.
                            (2.0 * PI - taken[atom]) / (all - known[atom]) as f64
                        }
                        hybridisation if in_ring => self.beside_ring(atom, hybridisation, degree),
                        hybridisation => chain_angle(hybridisation),
                    };
                    self.set_angle([first, second], atom, angle, self.range(atom, in_ring));
                    known[atom] += 1;
                    taken[atom] += angle;
                }
            }
        }
    }

    /// Returns the angles that bonds of an atom may have.
    fn range(&self, atom: usize, in_ring: bool) -> AngleRange {
        if self.is_hypervalent(atom) {
            AngleRange::Hypervalent
        } else if !in_ring && self.molecule.neighbours[atom].len() > 4 {
            // Around an atom with more than four bonds outside of rings, any angle is allowed.
            AngleRange::Free
        } else {
            AngleRange::Ideal
        }
    }

    /// Returns the angle at a ring atom between bonds that do not lie in one ring.
    fn beside_ring(&self, atom: usize, hybridisation: Hybridisation, degree: usize) -> f64 {
        let degrees = match hybridisation {
            Hybridisation::Sp3 if self.molecule.is_in_ring_of(atom, 3) => 116.0,
            Hybridisation::Sp3 if self.molecule.is_in_ring_of(atom, 4) => 112.0,
            Hybridisation::Sp3 => 109.5,
            _ if degree == 5 => 105.0,
            _ if degree == 6 => 135.0,
            _ => 120.0,
        };
        f64::to_radians(degrees)
    }

    /// Sets the angle between two bonds of an atom, and the bounds of their ends.
    fn set_angle(&mut self, bonds: [usize; 2], atom: usize, angle: f64, range: AngleRange) {
        let ends = bonds.map(|bond| self.molecule.other(bond, atom));
        let [x, y] = bonds.map(|bond| self.ideal.lengths[bond]);
        // Two small rings may leave more than half a turn, as between the outer atoms of `c1on2c1O2`. RDKit then takes the angle as
        // straight.
        let angle = angle.min(PI);
        if self.set.get(&pair(ends[0], ends[1])) != Some(&Set::Bond) {
            let large = |atom: usize| {
                self.molecule.atom(atom).element > 13
                    && self.molecule.hybridisation(atom) == Hybridisation::Sp2
                    && !self.molecule.ring_sizes[atom].is_empty()
            };
            let doubled = [ends[0], atom, ends[1]].into_iter().filter(|atom| large(*atom)).count();
            // Each such atom doubles the tolerance, as in RDKit's `set13Bounds`.
            let tolerance = ANGLE_TOLERANCE * f64::from(1_u32 << doubled);
            let low = across(x.low, y.low, angle - tolerance);
            let high = across(x.high, y.high, (angle + tolerance).min(PI));
            let [low, high] = match range {
                AngleRange::Ideal => [low, high],
                AngleRange::Hypervalent => [across(x.low, y.low, LEAST_HYPERVALENT), x.high + y.high],
                AngleRange::Free => [1.0, 1.2 * (x.ideal + y.ideal)],
            };
            self.bounds.widen(ends[0], ends[1], low, high);
            self.set.insert(pair(ends[0], ends[1]), Set::Angle);
        }
        self.ideal.angles.insert(pair(bonds[0], bonds[1]), (angle, atom));
    }
}

/// Returns the angle between two bonds of a ring.
fn ring_angle(hybridisation: Hybridisation, size: usize) -> f64 {
    let degrees = match hybridisation {
        Hybridisation::Sp2 if size <= 8 => 180.0 * (1.0 - 2.0 / size as f64),
        _ if size <= 4 => 180.0 * (1.0 - 2.0 / size as f64),
        Hybridisation::Sp3 if size == 5 => 104.0,
        Hybridisation::Sp3 => 109.5,
        Hybridisation::Sp3d => 105.0,
        Hybridisation::Sp3d2 => 90.0,
        _ => 120.0,
    };
    f64::to_radians(degrees)
}

/// Returns the angle between two bonds at an atom outside of rings.
fn chain_angle(hybridisation: Hybridisation) -> f64 {
    let degrees = match hybridisation {
        Hybridisation::Sp => 180.0,
        Hybridisation::Sp3 => 109.5,
        Hybridisation::Sp3d => 105.0,
        Hybridisation::Sp3d2 => 135.0,
        _ => 120.0,
    };
    f64::to_radians(degrees)
}
