//! Whether the next atom leaves a place for each atom after it, next to the atoms before.
//!
//! For a position this is one search for each later atom. For a box of positions, which the beginning of a number stands for, boxes are
//! halved until one holds a position that leaves a place for all, or until for each of them some later atom surely has none: the
//! shells around the box, and the half-spaces that depend on it, are widened by its radius. So nothing that can be completed is left
//! out.

use std::collections::VecDeque;

use super::intervals::Intervals;
use super::region::{COARSE, FINE, HalfSpace, MOST_CELLS, Range, Region, Search, Shell, middle};
use super::rules::GeometryRules;
use super::senses::Sense;
use super::slab::LEAST_AREA;
use crate::vector::{cross, distance, dot, minus};

/// The most boxes of positions that are tried: if there are more, some position is taken to leave a place for all. With 64 hardly
/// fewer tokens are written in vain, and masks take 1.5 times as long.
const MOST_BOXES: usize = 16;

/// The most cells in which a place is sought beside a box of positions.
const MOST_CELLS_BESIDE: usize = 64;

/// The largest radius of a box beside which places are sought, in Å. A larger one leaves a place for nearly everything.
const LARGEST_RADIUS: f64 = 1.2;

/// The places of the atoms after the next one.
#[derive(Debug, Clone)]
pub(crate) struct Outlook {
    /// The positions of the atoms before, and behind them the one that is tried.
    points: Vec<[f64; 3]>,
    /// The region of the next atom.
    region: Region,
    /// Those that some position might leave no place first.
    later: Vec<LaterAtom>,
    /// A position of the next atom that leaves a place for all later ones.
    known: Option<[f64; 3]>,
}

/// An atom after the next one.
#[derive(Debug, Clone)]
struct LaterAtom {
    atom: usize,
    /// Its region beside the atoms that are placed.
    region: Region,
    /// The smallest and the largest distance to the next atom, in Å.
    distance: [f64; 2],
    /// Whether half-spaces depend on the next atom.
    has_half_spaces: bool,
    /// A place that it had.
    known: Option<[f64; 3]>,
}

impl Outlook {
    /// Returns the outlook of the next atom, given the positions of the atoms before it in Å.
    pub(crate) fn new(rules: &GeometryRules, placed: &[[f64; 3]]) -> Self {
        let next = placed.len();
        let later = (next + 1..rules.atoms()).map(|atom| LaterAtom {
            atom,
            region: rules.region_of(atom, placed),
            distance: rules.distance(atom, next),
            has_half_spaces: rules.depends_on(atom, next),
            known: None,
        });
        Outlook {
            points: [placed, &[[0.0; 3]]].concat(),
            region: rules.region(placed),
            later: later.collect(),
            known: None,
        }
    }

    /// Returns the outlook of the next atom by the signs of centres and double bonds alone, whatever it leaves later atoms.
    pub(crate) fn of_signs(rules: &GeometryRules, placed: &[[f64; 3]]) -> Self {
        let points = [placed, &[[0.0; 3]]].concat();
        Outlook { points, region: rules.region_of_signs(placed), later: Vec::new(), known: None }
    }

    /// Returns the region of the next atom.
    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    /// Returns whether a position of the next atom leaves a place for each later atom.
    pub(crate) fn leaves_places_beside(&mut self, rules: &GeometryRules, point: [f64; 3]) -> bool {
        self.leaves_all(rules, point, 0.0)
    }

    /// Returns whether some position of the next atom in a box leaves a place for each later atom: surely not if not. Ranges may be
    /// infinite.
    pub(crate) fn leaves_places(&mut self, rules: &GeometryRules, bounds: [Range; 3]) -> bool {
        if self.later.is_empty()
            || self.region.is_wide()
            || self.known.is_some_and(|point| (0..3).all(|axis| holds(bounds[axis], point[axis])))
        {
            return true;
        }
        let extent = self.region.extent();
        let first: [Range; 3] = std::array::from_fn(|axis| common(bounds[axis], extent[axis]));
        let (mut boxes, mut set) = (VecDeque::from([first]), Intervals::default());
        for _ in 0..MOST_BOXES {
            let Some([x, y, z]) = boxes.pop_front() else { return false };
            if x[0] > x[1] || y[0] > y[1] {
                continue;
            }
            self.region.fill(x, y, &mut set);
            let Some(z) = set.inside(z).reduce(|hull, part| [hull[0], part[1]]) else { continue };
            let centre = [x, y, z].map(middle);
            self.region.fill([centre[0]; 2], [centre[1]; 2], &mut set);
            if let Some(part) = set.inside(z).max_by(|a, b| width(*a).total_cmp(&width(*b))) {
                let point = [centre[0], centre[1], middle(part)];
                if self.leaves_all(rules, point, 0.0) {
                    self.known = Some(point);
                    return true;
                }
            }
            let widths = [x, y, z].map(width);
            let radius = dot(widths, widths).sqrt() / 2.0;
            if radius <= LARGEST_RADIUS && !self.leaves_all(rules, centre, radius) {
                continue;
            }
            let axis = (0..3).max_by(|a, b| widths[*a].total_cmp(&widths[*b])).unwrap_or(0);
            if widths[axis] <= FINE {
                return true;
            }
            let [mut lower, mut upper] = [[x, y, z]; 2];
            lower[axis][1] = middle(lower[axis]);
            upper[axis][0] = lower[axis][1];
            boxes.extend([lower, upper]);
        }
        true
    }

    /// Returns whether some position within `radius` of a point may leave a place for each later atom.
    fn leaves_all(&mut self, rules: &GeometryRules, point: [f64; 3], radius: f64) -> bool {
        if let Some(last) = self.points.last_mut() {
            *last = point;
        }
        let points = &self.points;
        let lacking = self.later.iter_mut().position(|later| !later.has_place(rules, points, radius));
        // The one that has no place here has none in the neighbourhood.
        if let Some(at) = lacking {
            self.later[..=at].rotate_right(1);
        }
        lacking.is_none()
    }
}

impl LaterAtom {
    /// Returns whether it may have a place if the atom of the last point lies within `radius` of it.
    fn has_place(&mut self, rules: &GeometryRules, points: &[[f64; 3]], radius: f64) -> bool {
        let Some(centre) = points.last().copied() else { return true };
        let half_spaces = match self.has_half_spaces {
            true => rules.half_spaces_beside(self.atom, points, radius),
            false => Vec::new(),
        };
        let [low, high] = [(self.distance[0] - radius).max(0.0), self.distance[1] + radius];
        if let Some(place) = self.known
            && holds([low, high], distance(place, centre))
            && half_spaces.iter().all(|one| dot(one.normal, place) >= one.least)
        {
            return true;
        }
        let part = self.region.inside(Shell { centre, low, high }, half_spaces);
        let most_cells = if radius > 0.0 { MOST_CELLS_BESIDE } else { MOST_CELLS };
        match part.some_position(COARSE.max(radius / 4.0), most_cells) {
            Search::Nowhere => false,
            Search::Undecided => true,
            Search::At(place) => {
                self.known = Some(place);
                true
            }
        }
    }
}

impl GeometryRules {
    /// Returns whether half-spaces of an atom depend on the position of another one, and on no later one.
    fn depends_on(&self, atom: usize, other: usize) -> bool {
        self.senses[atom].iter().any(|sense| joins(&sense.atoms, atom, other))
            || self.sides[atom].iter().any(|sides| joins(&sides.atoms, atom, other))
            || self.planes[atom].iter().any(|slab| joins(&slab.before, atom, other))
    }

    /// Returns the half-spaces of an atom that depend on the atom of the last point, if this lies within `radius` of its point. With a
    /// radius they are wider, and those that do not change evenly are left out.
    fn half_spaces_beside(&self, atom: usize, points: &[[f64; 3]], radius: f64) -> Vec<HalfSpace> {
        let other = points.len() - 1;
        let mut found = Vec::new();
        let own = |sense: &&Sense| joins(&sense.atoms, atom, other) && sense.relative.is_none();
        for sense in self.senses[atom].iter().filter(own) {
            // The volume changes with a corner by at most the area that the others span.
            let slack = times(radius, || {
                let [u, v] = others(&sense.atoms, [atom, other]);
                distance(points[u], points[v]) * self.farthest(atom, [u, v])
            });
            let volume = |point| sense.sign * sense.volume(&|at| if at == atom { point } else { points[at] });
            found.push(HalfSpace::of_linear(sense.least - slack, volume));
        }
        for sides in self.sides[atom].iter().filter(|sides| joins(&sides.atoms, atom, other)) {
            let [x, a, b, y] = sides.atoms;
            if radius <= 0.0 || other == x || other == y {
                let slack = times(radius, || {
                    let bond = minus(points[a], points[b]);
                    dot(bond, bond) * self.farthest(atom, [if atom == x { a } else { b }; 2])
                });
                let side = |point| sides.sign * sides.side(&|at| if at == atom { point } else { points[at] });
                found.push(HalfSpace::of_linear(-slack, side));
            }
        }
        for slab in self.planes[atom].iter().filter(|slab| joins(&slab.before, atom, other)) {
            if let Some(slack) = self.slack_of_plane(atom, &slab.before, points, radius) {
                found.extend(slab.half_spaces(points, slack).into_iter().flatten());
            }
        }
        found
    }

    /// By how much the distance of an atom from the plane through others changes at most, in Å, if the last of them moves by `radius`.
    /// It is not known for more than three of them, or if they may come to lie in a line.
    fn slack_of_plane(&self, atom: usize, before: &[usize], points: &[[f64; 3]], radius: f64) -> Option<f64> {
        let (&[a, b, c], true) = (before, radius > 0.0) else { return (radius <= 0.0).then_some(0.0) };
        let [u, v] = others(before, [points.len() - 1; 2]);
        let spanned = cross(minus(points[b], points[a]), minus(points[c], points[a]));
        let area = dot(spanned, spanned).sqrt();
        let change = radius * distance(points[u], points[v]);
        // A unit normal moves by at most the root of two times the sine of its angle.
        let turned = std::f64::consts::SQRT_2 * change / area;
        (area - change > LEAST_AREA).then(|| turned * self.farthest(atom, [u, v]))
    }

    /// Returns the largest distance of an atom from either of two others, whichever is smaller, in Å.
    fn farthest(&self, atom: usize, [u, v]: [usize; 2]) -> f64 {
        self.distance(atom, u)[1].min(self.distance(atom, v)[1])
    }
}

/// Returns the product of a radius with what a function gives, which is not needed for a radius of zero.
fn times(radius: f64, function: impl Fn() -> f64) -> f64 {
    if radius > 0.0 { radius * function() } else { 0.0 }
}

/// Returns two atoms of a group that are not these.
fn others(group: &[usize], these: [usize; 2]) -> [usize; 2] {
    let mut others = group.iter().copied().filter(|at| !these.contains(at));
    [(); 2].map(|()| others.next().unwrap_or_default())
}

/// Returns whether another atom is among the atoms of a mark or plane, and the rest of them, but for `atom`, come before it.
fn joins(atoms: &[usize], atom: usize, other: usize) -> bool {
    atoms.contains(&other) && atoms.iter().all(|at| *at == atom || *at <= other)
}

fn holds([low, high]: Range, x: f64) -> bool {
    low <= x && x <= high
}

fn common(a: Range, b: Range) -> Range {
    [a[0].max(b[0]), a[1].min(b[1])]
}

fn width([low, high]: Range) -> f64 {
    high - low
}
