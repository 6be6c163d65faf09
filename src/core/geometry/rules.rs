//! What the positions of a molecule's atoms must satisfy, and the region of the next atom.

use serde::{Deserialize, Serialize};

use super::limits::DistanceLimits;
use super::molecule::Molecule;
use super::planes::{PlaneKind, planes, slab_width};
use super::region::{HalfSpace, ROUNDING, Region, Shell};
use super::senses::{RelativeSenses, Sense, are_known};
use super::slab::Slab;
use crate::chem::stereo::{DoubleBondMark, TetrahedralMark};
use crate::chem::{AtomLimit, SmilesError, SmilesReading};
use crate::error::{Error, Result};
use crate::parameter;
use crate::vector::{cross, distance, dot, minus};

/// How strictly the positions of atoms are limited.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GeometryStrength {
    /// The share by which bonds, and distances of atoms two bonds apart, may exceed the judge's bounds. The judge's own tolerance is
    /// 0.25. Atoms farther apart may be closer than the bounds by [`CLASH_RATIO`] times this share.
    pub bounds: f64,
    /// Whether stereocentres and double bonds must have the sense of their marks.
    pub signs: bool,
    /// Whether atoms of aromatic rings, of double bonds and around planar carbons must lie in planes.
    pub planes: bool,
}

impl Default for GeometryStrength {
    fn default() -> Self {
        GeometryStrength { bounds: 0.2, signs: true, planes: true }
    }
}

impl GeometryStrength {
    /// Refuses a share of bounds that is not above 0 and at most [`MOST_BOUNDS`].
    ///
    /// # Errors
    /// If it is refused.
    pub fn check(self) -> Result<()> {
        if self.bounds > 0.0 && self.bounds <= MOST_BOUNDS {
            return Ok(());
        }
        let problem = format!("{} is not a share of distances from 0 to {MOST_BOUNDS}", self.bounds);
        Err(Error::parameter(parameter::BOUNDS, problem, "give 0.2, or up to 0.25 as the judge"))
    }
}

/// The largest share by which bounds may be exceeded: twice the tolerance of the judge.
pub(crate) const MOST_BOUNDS: f64 = 0.5;

/// The tolerance of the judge for clashes, 0.3, in units of that for bonds, 0.25.
pub(crate) const CLASH_RATIO: f64 = 1.2;

/// The least volume of three bonds of a stereocentre, in Å³: below it the judge takes them as planar.
const LEAST_VOLUME: f64 = 0.1;

/// The largest molecule whose bounds are smoothed, which takes time cubic in the number of atoms.
const SMOOTHED_ATOMS: usize = 300;

/// By how much a bond may be longer or shorter than its limits where no position keeps all rules.
const LOOSENESS: f64 = 1.5;

/// The sizes of rings across which distances are limited. Smaller rings have no atoms three bonds apart, larger ones may be oblong.
const POLYGONS: std::ops::RangeInclusive<usize> = 6..=8;

/// The sides of a double bond.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sides {
    /// A neighbour of the first atom, the two atoms, a neighbour of the second atom.
    pub(super) atoms: [usize; 4],
    /// 1 if the neighbours lie on the same side, else -1.
    pub(super) sign: f64,
}

/// A rule that a position breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GeometryRule {
    /// Too close to an atom placed before.
    Near,
    /// Too far from an atom placed before.
    Far,
    /// A stereocentre gets the wrong sense.
    Centre,
    /// A double bond gets the wrong sides.
    DoubleBond,
    /// Off the plane of atoms placed before.
    Plane,
}

/// A position that breaks a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct GeometryConflict {
    /// The rule.
    pub rule: GeometryRule,
    /// The atom placed last, then the others.
    pub atoms: Vec<usize>,
    /// The number of bonds between the two atoms of a distance.
    pub bonds: Option<u16>,
}

/// The limits on the positions of a molecule's atoms. Atoms are numbered in the order of the SMILES, and placed in this order.
#[derive(Debug, Clone)]
pub struct GeometryRules {
    atoms: usize,
    /// By rows of pairs of atoms: the smallest and the largest distance, in Å, and the number of bonds between them.
    low: Vec<f64>,
    high: Vec<f64>,
    bonds: Vec<u16>,
    /// By the atom that is placed last.
    pub(super) senses: Vec<Vec<Sense>>,
    relative: RelativeSenses,
    pub(super) sides: Vec<Vec<Sides>>,
    /// By atom, the groups of atoms that lie in a plane with it.
    pub(super) planes: Vec<Vec<Slab>>,
}

impl GeometryRules {
    /// Returns the rules of a molecule.
    ///
    /// # Errors
    /// If RDKit would refuse the SMILES, it is larger than the limit, or it contains a `*`.
    pub fn from_smiles(smiles: &str, strength: GeometryStrength) -> std::result::Result<Self, SmilesError> {
        let molecule = Molecule::new(smiles)?;
        let atoms = molecule.len();
        let mut rules = GeometryRules {
            atoms,
            low: vec![0.0; atoms * atoms],
            high: vec![f64::INFINITY; atoms * atoms],
            bonds: (0..atoms * atoms).map(|at| molecule.distance(at / atoms, at % atoms)).collect(),
            senses: vec![Vec::new(); atoms],
            relative: RelativeSenses::default(),
            sides: vec![Vec::new(); atoms],
            planes: vec![Vec::new(); atoms],
        };
        rules.set_distances(&molecule, strength.bounds);
        if strength.signs {
            let reading = SmilesReading::new(smiles, AtomLimit::default());
            let reading = reading.map_err(|problem| SmilesError::new(smiles, &problem))?;
            rules.relative = RelativeSenses::new(reading.inversions());
            for (at, mark) in reading.marks().centres.iter().enumerate() {
                rules.add_centre(mark, rules.relative.index(at), &molecule);
            }
            reading.marks().double_bonds.iter().for_each(|mark| rules.add_double_bond(mark));
        }
        if strength.planes {
            rules.add_planes(&molecule);
        }
        Ok(rules)
    }

    /// Returns the number of atoms.
    pub fn atoms(&self) -> usize {
        self.atoms
    }

    /// Returns the smallest and the largest distance of two atoms, in Å.
    pub fn distance(&self, a: usize, b: usize) -> [f64; 2] {
        [self.low[a * self.atoms + b], self.high[a * self.atoms + b]]
    }

    fn set_distances(&mut self, molecule: &Molecule, tolerance: f64) {
        let limits = DistanceLimits::from_molecule(molecule);
        for [a, b] in molecule.heavy_pairs().filter(|[a, b]| molecule.distance(*a, *b) > 2) {
            let low = (1.0 - CLASH_RATIO * tolerance) * limits.of(a, b)[0];
            self.set(a, b, [low, f64::INFINITY]);
        }
        for ring in &molecule.shape.rings {
            self.set_ring(ring, &limits, tolerance);
        }
        for limits in limits.angles.iter().chain(&limits.bonds) {
            let [a, b] = limits.atoms;
            self.set(a, b, [(1.0 - tolerance) * limits.low, (1.0 + tolerance) * limits.high]);
        }
        if self.atoms <= SMOOTHED_ATOMS {
            self.smooth();
        }
    }

    /// Limits the distances across a ring by those in a regular polygon, which is wider than a puckered ring.
    fn set_ring(&mut self, ring: &[usize], limits: &DistanceLimits, tolerance: f64) {
        let n = ring.len();
        if !POLYGONS.contains(&n) {
            return;
        }
        let bonds = (0..n).map(|at| limits.of(ring[at], ring[(at + 1) % n])[1]);
        let side = bonds.sum::<f64>() / n as f64;
        let half_angle = |steps: usize| (std::f64::consts::PI * steps as f64 / n as f64).sin();
        for i in 0..n {
            for j in (0..i).filter(|j| (i - j).min(n + j - i) > 2) {
                let chord = side * half_angle(i - j) / half_angle(1);
                let [low, high] = self.distance(ring[i], ring[j]);
                self.set(ring[i], ring[j], [low, high.min((1.0 + tolerance) * chord)]);
            }
        }
    }

    fn set(&mut self, a: usize, b: usize, [low, high]: [f64; 2]) {
        for at in [a * self.atoms + b, b * self.atoms + a] {
            (self.low[at], self.high[at]) = (low, high);
        }
    }

    /// Triangle smoothing: the largest distances become shortest paths, and the smallest ones respect them. Where the bounds
    /// contradict each other, the smallest distance gives way.
    ///
    /// G. M. Crippen and T. F. Havel, Distance Geometry and Molecular Conformation (1988), pages 252 and 253.
    fn smooth(&mut self) {
        let n = self.atoms;
        for k in 0..n {
            for i in 0..n {
                let (high_ik, low_ik) = (self.high[i * n + k], self.low[i * n + k]);
                if i == k || high_ik == f64::INFINITY {
                    continue;
                }
                for j in (0..n).filter(|j| *j != k && *j != i) {
                    let at = i * n + j;
                    let (high_kj, low_kj) = (self.high[k * n + j], self.low[k * n + j]);
                    self.high[at] = self.high[at].min(high_ik + high_kj);
                    self.low[at] =
                        self.low[at].max(low_ik - high_kj).max(low_kj - high_ik).min(self.high[at]);
                }
            }
        }
    }

    fn add_centre(&mut self, mark: &TetrahedralMark, relative: Option<usize>, molecule: &Molecule) {
        if mark.needs_hydrogen() {
            return;
        }
        let missing = mark.neighbours.iter().position(Option::is_none);
        let strained = is_strained_centre(molecule, mark.atom);
        // All four bonds of a strained centre may point to one side, so that three of them have the sense of the other hand. Where a
        // small ring meets another one, more than those that the judge looks at would only cost time.
        let only = missing.or(is_in_small_ring(molecule, mark.atom).then_some(3));
        for left_out in (0..4).filter(|at| only.is_none_or(|only| only == *at)) {
            let mut rest = (0..4).filter(|at| *at != left_out).filter_map(|at| mark.neighbours[at]);
            let (Some(a), Some(b), Some(c)) = (rest.next(), rest.next(), rest.next()) else { continue };
            // The judge looks at the first three of four neighbours; the others need not span as much.
            let decides = missing.is_some() || left_out == 3;
            let least = match decides {
                // Where they span nothing, as in a bicyclo[2.1.0]pentane, the judge looks at others.
                true if strained && missing.is_none() => -LEAST_VOLUME,
                true => LEAST_VOLUME,
                false => 0.0,
            };
            let sign = if mark.counterclockwise == left_out.is_multiple_of(2) { -1.0 } else { 1.0 };
            let sense = Sense { atoms: [mark.atom, a, b, c], sign, least, relative };
            self.senses[last(&sense.atoms)].push(sense);
            self.relative.add(sense);
        }
    }

    fn add_double_bond(&mut self, mark: &DoubleBondMark) {
        let [a, b] = mark.atoms;
        let ends =
            |end: usize| [Some((mark.neighbours[end], 1.0)), mark.others[end].map(|other| (other, -1.0))];
        let same = if mark.together { 1.0 } else { -1.0 };
        for (x, x_sign) in ends(0).into_iter().flatten() {
            for (y, y_sign) in ends(1).into_iter().flatten() {
                let sides = Sides { atoms: [x, a, b, y], sign: same * x_sign * y_sign };
                let last = last(&sides.atoms);
                // The side is linear in the position of a neighbour, but not in that of an atom of the bond.
                if last == x || last == y {
                    self.sides[last].push(sides);
                }
            }
        }
    }

    fn add_planes(&mut self, molecule: &Molecule) {
        for plane in planes(molecule) {
            // A medium ring may twist its double bond.
            if plane.kind == PlaneKind::SaturatedRing || plane.ring.is_some() {
                continue;
            }
            let Some(width) = slab_width(molecule, &plane) else { continue };
            for atom in &plane.atoms {
                let before: Vec<usize> = plane.atoms.iter().copied().filter(|other| other < atom).collect();
                if before.len() >= 3 {
                    self.planes[*atom].push(Slab { before, width });
                }
            }
        }
    }

    /// Returns the region of the next atom, given the positions of the atoms before it in Å. Everything, if all atoms are placed.
    pub(crate) fn region(&self, placed: &[[f64; 3]]) -> Region {
        self.region_of(placed.len(), placed)
    }

    /// Returns the region of an atom, given the positions of the first atoms in Å, all of which come before it.
    pub(crate) fn region_of(&self, atom: usize, placed: &[[f64; 3]]) -> Region {
        if atom >= self.atoms {
            return Region::new(Vec::new(), Vec::new());
        }
        let shells = placed.iter().enumerate().map(|(other, centre)| self.shell([atom, other], *centre, 1.0));
        let half_spaces = self.half_spaces(atom, placed).into_iter().map(|(_, half_space)| half_space);
        Region::new(shells.collect(), half_spaces.collect())
    }

    /// Returns the region that senses and sides alone leave the next atom, given the positions of the atoms before it in Å: near the
    /// atoms that it is bonded to, but in no plane, and at any distance of the others.
    pub(crate) fn region_of_signs(&self, placed: &[[f64; 3]]) -> Region {
        let atom = placed.len();
        if atom >= self.atoms {
            return Region::new(Vec::new(), Vec::new());
        }
        let bonded =
            placed.iter().enumerate().filter(|(other, _)| self.bonds[atom * self.atoms + other] == 1);
        let shells = bonded.map(|(other, centre)| self.shell([atom, other], *centre, LOOSENESS));
        let half_spaces = self.half_spaces(atom, placed).into_iter();
        let of_signs = half_spaces.filter(|((rule, _), _)| *rule != GeometryRule::Plane);
        Region::new(shells.collect(), of_signs.map(|(_, half_space)| half_space).collect())
    }

    /// Returns the positions of an atom beside another one, whose limits are wider by a factor.
    fn shell(&self, [atom, other]: [usize; 2], centre: [f64; 3], looseness: f64) -> Shell {
        let [low, high] = self.distance(atom, other);
        Shell { centre, low: low / looseness, high: high * looseness }
    }

    /// Returns the half-spaces of an atom, given the positions of the atoms before it, each with its rule and the other atoms.
    fn half_spaces(&self, atom: usize, placed: &[[f64; 3]]) -> Vec<((GeometryRule, Vec<usize>), HalfSpace)> {
        let mut found = Vec::new();
        let known = placed.len();
        for sense in self.senses[atom].iter().filter(|sense| are_known(&sense.atoms, atom, known)) {
            let Some(sign) = self.relative.sign(sense, atom, placed) else { continue };
            let volume = |point| sign * sense.volume(&|at| if at == atom { point } else { placed[at] });
            let rule = (GeometryRule::Centre, sense.atoms.to_vec());
            found.push((rule, HalfSpace::of_linear(sense.least, volume)));
        }
        for sides in self.sides[atom].iter().filter(|sides| are_known(&sides.atoms, atom, known)) {
            let side = |point| sides.sign * sides.side(&|at| if at == atom { point } else { placed[at] });
            let rule = (GeometryRule::DoubleBond, sides.atoms.to_vec());
            found.push((rule, HalfSpace::of_linear(0.0, side)));
        }
        for slab in self.planes[atom].iter().filter(|slab| are_known(&slab.before, atom, known)) {
            for half_space in slab.half_spaces(placed, 0.0).into_iter().flatten() {
                found.push(((GeometryRule::Plane, slab.before.clone()), half_space));
            }
        }
        found
    }

    /// Returns the rules that the positions of all atoms break, in the order of atoms. Positions are in Å.
    pub fn conflicts(&self, points: &[[f64; 3]]) -> Vec<GeometryConflict> {
        let mut found = Vec::new();
        for atom in 0..points.len().min(self.atoms) {
            let placed = &points[..atom];
            for (other, place) in placed.iter().enumerate() {
                let ([low, high], between) = (self.distance(atom, other), distance(points[atom], *place));
                let bonds = Some(self.bonds[atom * self.atoms + other]);
                let atoms = vec![atom, other];
                if between < low - ROUNDING {
                    found.push(GeometryConflict { rule: GeometryRule::Near, atoms, bonds });
                } else if between > high + ROUNDING {
                    found.push(GeometryConflict { rule: GeometryRule::Far, atoms, bonds });
                }
            }
            for ((rule, atoms), half_space) in self.half_spaces(atom, placed) {
                if !half_space.contains(points[atom]) {
                    let atoms = [&[atom], &atoms[..]].concat();
                    found.push(GeometryConflict { rule, atoms, bonds: None });
                }
            }
        }
        found
    }
}

/// Returns the atom that is placed last.
fn last(atoms: &[usize; 4]) -> usize {
    atoms.iter().copied().fold(0, usize::max)
}

/// Returns whether two rings meet in an atom, one of at most four atoms.
fn is_in_small_ring(molecule: &Molecule, atom: usize) -> bool {
    let sizes = &molecule.ring_sizes[atom];
    sizes.len() > 1 && sizes.iter().any(|size| *size <= 4)
}

/// Returns whether the bonds of a centre may all point to one side: a bond of it is common to a ring of three atoms and one of at most
/// four, or, if more than two rings meet in it, of any size. In real conformers all others span at least 0.4 Å³ with the right sign.
fn is_strained_centre(molecule: &Molecule, atom: usize) -> bool {
    let has_more_rings = molecule.ring_sizes[atom].len() > 2;
    molecule.neighbours[atom].iter().any(|bond| {
        let sizes = &molecule.bond_ring_sizes[*bond];
        let small = sizes.iter().filter(|size| **size <= 4).count();
        sizes.contains(&3) && (small > 1 || sizes.len() > 1 && has_more_rings)
    })
}

impl Sides {
    /// Positive if both neighbours lie on the same side, in Å⁴.
    pub(super) fn side(&self, place: &dyn Fn(usize) -> [f64; 3]) -> f64 {
        let [x, a, b, y] = self.atoms.map(place);
        let bond = minus(b, a);
        dot(cross(minus(x, a), bond), cross(minus(y, b), bond))
    }
}
