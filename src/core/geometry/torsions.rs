//! Distance bounds of atoms three and four bonds apart, from torsions: the steps of RDKit's `set14Bounds` and `set15Bounds`,
//! without stereo, and with amides and esters as RDKit forces them.

use std::collections::{BTreeMap, HashSet};
use std::f64::consts::{FRAC_PI_2, PI};

use super::elements::element;
use super::lengths::ANGLE_TOLERANCE;
use super::matrix::{Builder, FAR, FOUR_BONDS, LEAST_HYPERVALENT, NEAR, Set, pair};
use super::merge::merge;
use super::molecule::{Kind, Molecule};
use super::planar::{self, Planar};
use crate::chem::Hybridisation;

/// The tolerance of the distance of atoms four bonds apart if both torsions are known, in Å: RDKit's `DIST15_TOL`.
const TWO_TORSIONS: f64 = 0.08;

/// The torsion of a path of three bonds.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Torsion {
    /// 0°.
    Cis,
    /// 180°.
    Trans,
    /// Any angle.
    Flexible,
    /// This angle, in radians.
    At(f64),
}

/// The position of a path's middle bond relative to rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RingPosition {
    Chain,
    /// All three bonds lie in one ring of this size.
    Ring(usize),
    /// Two bonds lie in one ring; `flat` says whether the ring is flat at its sp² atoms.
    TwoInRing {
        flat: bool,
    },
    /// The middle bond lies in a ring, and at most one other bond in another ring.
    Beside,
}

/// A path of three consecutive bonds.
type Path = [usize; 3];

/// Returns a key that is the same for both directions of a path.
fn key([a, b, c]: Path) -> Path {
    [a.min(c), b, a.max(c)]
}

struct Torsions<'b, 'm> {
    builder: &'b mut Builder<'m>,
    paths: Vec<(Path, Torsion)>,
    cis: HashSet<Path>,
    trans: HashSet<Path>,
    /// By pair of atoms, the bounds found so far: a pair may be the ends of several paths.
    found: BTreeMap<(usize, usize), Vec<[f64; 2]>>,
}

/// Sets the bounds of atoms three and four bonds apart.
pub(super) fn set(builder: &mut Builder<'_>) {
    let mut torsions = Torsions {
        builder,
        paths: Vec::new(),
        cis: HashSet::new(),
        trans: HashSet::new(),
        found: BTreeMap::new(),
    };
    torsions.all();
    for ((a, b), bounds) in std::mem::take(&mut torsions.found) {
        let [low, high] = merge(bounds);
        torsions.builder.bounds.widen(a, b, low, high);
    }
    let mut set = HashSet::new();
    for (path, torsion) in std::mem::take(&mut torsions.paths) {
        let [a, b, c] = path;
        // A fifth atom may follow at either end.
        torsions.four_bonds(path, torsion, &mut set);
        torsions.four_bonds([c, b, a], torsion, &mut set);
    }
}

impl Torsions<'_, '_> {
    fn all(&mut self) {
        let molecule = self.builder.molecule;
        let (mut in_one_ring, mut flat, mut done) = (HashSet::new(), HashSet::new(), HashSet::new());
        let mut rings: Vec<&Vec<usize>> = molecule.ring_bonds.iter().collect();
        rings.sort_by_key(|ring| std::cmp::Reverse(ring.len()));
        for ring in rings {
            let size = ring.len();
            for at in 0..size {
                let path = [ring[(at + size - 1) % size], ring[at], ring[(at + 1) % size]];
                in_one_ring.insert(pair(path[0], path[1]));
                done.insert(key(path));
                if size > 5 {
                    self.collect(path, RingPosition::Ring(size));
                } else {
                    self.record_small_ring(path);
                }
                if size <= 8 {
                    flat.insert(pair(path[0], path[1]));
                }
            }
        }
        let is_ring = |bond: usize| !molecule.bond_ring_sizes[bond].is_empty();
        for middle in 0..molecule.bond_ring_sizes.len() {
            let [a, b] = molecule.ends(middle);
            for &first in molecule.neighbours[a].iter().filter(|first| **first != middle) {
                for &last in molecule.neighbours[b].iter().filter(|last| **last != middle) {
                    let path = [first, middle, last];
                    if done.contains(&key(path)) {
                        continue;
                    }
                    let pairs = [pair(first, middle), pair(middle, last)];
                    let place = if pairs.iter().any(|pair| in_one_ring.contains(pair)) {
                        RingPosition::TwoInRing { flat: pairs.iter().any(|pair| flat.contains(pair)) }
                    } else if is_ring(middle) {
                        RingPosition::Beside
                    } else {
                        RingPosition::Chain
                    };
                    self.collect(path, place);
                }
            }
        }
    }

    /// Records a path in a ring of five or fewer atoms, whose ends are closer than three bonds.
    fn record_small_ring(&mut self, path: Path) {
        let torsion = match self.middle(path) {
            Some((a, b)) if self.both_flat(a, b) => {
                self.cis.insert(key(path));
                Torsion::Cis
            }
            _ => Torsion::Flexible,
        };
        self.paths.push((path, torsion));
    }

    /// Returns the two middle atoms of a path.
    fn middle(&self, [first, middle, last]: Path) -> Option<(usize, usize)> {
        let ideal = &self.builder.ideal;
        Some((ideal.shared(first, middle)?, ideal.shared(middle, last)?))
    }

    fn both_flat(&self, a: usize, b: usize) -> bool {
        [a, b].iter().all(|atom| self.builder.molecule.hybridisation(*atom) == Hybridisation::Sp2)
    }

    /// Collects bounds for the ends of a path, if it is a shortest path between them.
    fn collect(&mut self, path: Path, place: RingPosition) {
        let molecule = self.builder.molecule;
        let Some((two, three)) = self.middle(path) else { return };
        let (one, four) = (molecule.other(path[0], two), molecule.other(path[2], three));
        let ends = pair(one, four);
        if matches!(self.builder.set.get(&ends), Some(Set::Bond | Set::Angle))
            || molecule.distance(one, four) < 3
        {
            return;
        }
        let Some(torsion) = self.torsion(path, [one, two, three, four], place) else { return };
        let (small, large) = (self.planar(path, false), self.planar(path, true));
        let bounds = match torsion {
            Torsion::Cis => {
                self.cis.insert(key(path));
                [small.cis(), large.cis()]
            }
            Torsion::Trans => {
                self.trans.insert(key(path));
                [small.trans(), large.trans()]
            }
            Torsion::At(angle) => [small.turned(angle), large.turned(angle)],
            Torsion::Flexible => {
                let (cis, trans) = (small.cis(), large.trans());
                [cis.min(trans), cis.max(trans)]
            }
        };
        self.paths.push((path, torsion));
        self.builder.set.insert(ends, Set::Torsion);
        // Several paths may connect the two atoms. Their bounds are merged at the end.
        self.found.entry(ends).or_default().push(bounds);
    }

    /// Returns a path with its lengths and angles at the lower or upper ends of their bounds.
    fn planar(&self, [first, middle, last]: Path, large: bool) -> Planar {
        let ideal = &self.builder.ideal;
        let length = |bond: usize| if large { ideal.lengths[bond].high } else { ideal.lengths[bond].low };
        let turn = if large { ANGLE_TOLERANCE } else { -ANGLE_TOLERANCE };
        let is_free = |a, b| ideal.shared(a, b).is_some_and(|atom| self.builder.is_hypervalent(atom));
        let angle = |a, b| match is_free(a, b) {
            true if large => PI,
            true => LEAST_HYPERVALENT,
            false => (ideal.angle(a, b) + turn).min(PI),
        };
        Planar {
            lengths: [first, middle, last].map(length),
            angles: [angle(first, middle), angle(middle, last)],
        }
    }

    /// Returns the torsion of a path; `None` if its ends are connected by a shorter path.
    fn torsion(
        &self,
        path: Path,
        [one, two, three, four]: [usize; 4],
        place: RingPosition,
    ) -> Option<Torsion> {
        let molecule = self.builder.molecule;
        let flat = self.both_flat(two, three);
        Some(match place {
            RingPosition::Ring(size) if size > 8 => Torsion::Flexible,
            RingPosition::Ring(_) | RingPosition::Beside if flat => Torsion::Cis,
            RingPosition::Ring(_) | RingPosition::Beside => Torsion::Flexible,
            RingPosition::TwoInRing { .. }
                if molecule.bond(one, three).is_some() || molecule.bond(four, two).is_some() =>
            {
                return None;
            }
            RingPosition::TwoInRing { flat: true } if flat => Torsion::Trans,
            RingPosition::TwoInRing { .. } => Torsion::Flexible,
            RingPosition::Chain => chain(molecule, path, [one, two, three, four]),
        })
    }

    /// Sets bounds for atoms four bonds apart, from a path of three bonds and each bond behind it.
    fn four_bonds(&mut self, path: Path, torsion: Torsion, set: &mut HashSet<(usize, usize)>) {
        let molecule = self.builder.molecule;
        let [first, middle, last] = path;
        let Some((two, three)) = self.middle(path) else { return };
        let (one, four) = (molecule.other(first, two), molecule.other(last, three));
        // Its angles may be anything, so van der Waals radii alone tell how near the ends are.
        if [two, three, four].into_iter().any(|atom| self.builder.is_hypervalent(atom)) {
            return;
        }
        for &next in molecule.neighbours[four].iter().filter(|next| **next != last) {
            let five = molecule.other(next, four);
            let ends = pair(one, five);
            // A path of fewer bonds has set these bounds already.
            if self.builder.set.contains_key(&ends) {
                continue;
            }
            if one == five || molecule.distance(one, five) < 4 {
                continue;
            }
            if self.builder.bounds.of(one, five)[0] >= NEAR && !set.contains(&ends) {
                continue;
            }
            let [low, high] = self.five_atoms([first, middle, last, next], [one, five], torsion);
            self.builder.bounds.widen(one, five, low, high);
            set.insert(ends);
        }
    }

    /// Returns the smallest and the largest distance between the ends of four bonds.
    fn five_atoms(&self, bonds: [usize; 4], ends: [usize; 2], torsion: Torsion) -> [f64; 2] {
        let Torsions { builder, cis, trans, .. } = self;
        let ideal = &builder.ideal;
        let lengths = bonds.map(|bond| ideal.lengths[bond].ideal);
        let angles = [0, 1, 2].map(|at| ideal.angle(bonds[at], bonds[at + 1]));
        let second = key([bonds[1], bonds[2], bonds[3]]);
        let far = |cis_first: bool, cis_second: bool| planar::far(lengths, angles, cis_first, cis_second);
        let back = |cis_first: bool, cis_second: bool| {
            let [a, b, c, d] = lengths;
            planar::far([d, c, b, a], [angles[2], angles[1], angles[0]], cis_first, cis_second)
        };
        let around = |distance: f64| [distance - TWO_TORSIONS, distance + TWO_TORSIONS];
        let between = |low: f64, high: f64| [low - TWO_TORSIONS, high + TWO_TORSIONS];
        match torsion {
            Torsion::Cis | Torsion::Trans => {
                let first = torsion == Torsion::Cis;
                if cis.contains(&second) {
                    around(far(first, true))
                } else if trans.contains(&second) {
                    around(far(first, false))
                } else {
                    between(far(first, true), far(first, false))
                }
            }
            Torsion::Flexible | Torsion::At(_) if cis.contains(&second) => {
                between(back(true, true), back(true, false))
            }
            Torsion::Flexible | Torsion::At(_) if trans.contains(&second) => {
                between(back(false, true), back(false, false))
            }
            Torsion::Flexible | Torsion::At(_) => {
                let radius = |atom: usize| element(builder.molecule.atom(atom).element).van_der_waals;
                [FOUR_BONDS * (radius(ends[0]) + radius(ends[1])), FAR]
            }
        }
    }
}

/// Returns the torsion of a path whose middle bond is not in a ring.
fn chain(molecule: &Molecule, path: Path, [one, two, three, four]: [usize; 4]) -> Torsion {
    let [first, middle, last] = path.map(|bond| molecule.kind(bond));
    let forward = Group { molecule, kinds: [first, last], atoms: [one, two, three, four] };
    let backward = Group { molecule, kinds: [last, first], atoms: [four, three, two, one] };
    let is_thioether =
        |atom: usize| molecule.atom(atom).element == 16 && molecule.neighbours[atom].len() == 2;
    let both_ways = [forward, backward];
    let has_amide_hydrogen = || both_ways.iter().any(Group::is_amide_hydrogen);
    match middle {
        Kind::Double if first == Kind::Double || last == Kind::Double => Torsion::Cis,
        Kind::Single if is_thioether(two) && is_thioether(three) => Torsion::At(FRAC_PI_2),
        Kind::Single if both_ways.iter().any(Group::is_to_oxygen) => match has_amide_hydrogen() {
            true => Torsion::Trans,
            false => Torsion::Cis,
        },
        Kind::Single if both_ways.iter().any(Group::is_along_ester) => match has_amide_hydrogen() {
            true => Torsion::Cis,
            false => Torsion::Trans,
        },
        _ => Torsion::Flexible,
    }
}

/// Four atoms in a chain, with the kinds of the first and the last bond.
struct Group<'m> {
    molecule: &'m Molecule,
    kinds: [Kind; 2],
    atoms: [usize; 4],
}

impl Group<'_> {
    fn element(&self, at: usize) -> u8 {
        self.molecule.atom(self.atoms[at]).element
    }

    /// Returns whether the second atom is the bridging oxygen of an ester or the NH of an amide.
    fn is_bridge(&self) -> bool {
        self.element(1) == 8 || self.element(1) == 7 && self.molecule.hydrogens(self.atoms[1]) == 1
    }

    /// `C-O-C=O`, `C-N-C=O`: the chain from a substituent of an ester or amide to the atom of its double bond.
    fn is_to_oxygen(&self) -> bool {
        self.element(2) == 6
            && self.kinds == [Kind::Single, Kind::Double]
            && matches!(self.element(3), 7 | 8)
            && self.is_bridge()
    }

    /// `C-O-C-C`, `C-N-C-C`: the chain from one side of an ester or amide to the other.
    fn is_along_ester(&self) -> bool {
        let [_, _, carbon, _] = self.atoms;
        let to_oxygen = |bond: &usize| {
            let other = self.molecule.other(*bond, carbon);
            matches!(self.molecule.atom(other).element, 7 | 8) && self.molecule.kind(*bond) == Kind::Double
        };
        let neighbours = &self.molecule.neighbours[carbon];
        self.is_bridge()
            && self.kinds == [Kind::Single, Kind::Single]
            && self.element(2) == 6
            && neighbours.len() > 2
            && neighbours.iter().any(to_oxygen)
    }

    /// Returns whether the first atom is the hydrogen of a secondary amide.
    fn is_amide_hydrogen(&self) -> bool {
        let nitrogen = self.atoms[1];
        self.element(0) == 1
            && self.element(1) == 7
            && self.molecule.neighbours[nitrogen].len() == 3
            && self.molecule.hydrogens(nitrogen) == 1
    }
}
