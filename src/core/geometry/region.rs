//! The positions that the next atom of a molecule can have.
//!
//! A region is an intersection of shells around the atoms placed before, and of half-spaces. With x and y known the allowed z are a
//! union of intervals, which is exact. For the other two coordinates cells of x, or of x and y, are tried: a cell is left out only if
//! interval arithmetic proves that it holds no position, and cells at the ends of an interval are halved. So no allowed value is ever
//! left out, and only values next to the ends may remain that the next coordinate cannot complete.

use super::intervals::Intervals;
use crate::vector::dot;

/// The width of the cells in which a coordinate is sought first, in Å.
const WIDE: f64 = 0.06;

/// How exactly the ends of a coordinate's intervals are sought, in Å.
pub(super) const FINE: f64 = 0.004;

/// The width of the cells in which a position is sought at all, in Å.
pub(super) const COARSE: f64 = 0.02;

/// The most cells that are tried for a position: a region that has none to be found so far may have one.
pub(super) const MOST_CELLS: usize = 4_000;

/// The largest extent of a region that is searched for its x and y, in Å. A larger one is not bounded by a bond.
const LARGEST: f64 = 60.0;

/// Positions at least `low` and at most `high` away from a point, in Å.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shell {
    pub centre: [f64; 3],
    pub low: f64,
    pub high: f64,
}

/// Positions `p` with `normal · p ≥ least`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct HalfSpace {
    pub normal: [f64; 3],
    pub least: f64,
}

/// A range of a coordinate.
pub(super) type Range = [f64; 2];

/// The result of a search for a position.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Search {
    /// There is none.
    Nowhere,
    /// There may be one.
    Undecided,
    /// This is one.
    At([f64; 3]),
}

/// The positions that an atom can have, in Å.
#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    shells: Vec<Shell>,
    half_spaces: Vec<HalfSpace>,
    /// A box around the region.
    extent: [Range; 3],
}

impl Region {
    /// Returns the intersection of shells and half-spaces. Constraints that the others imply are dropped.
    pub(super) fn new(shells: Vec<Shell>, half_spaces: Vec<HalfSpace>) -> Self {
        let mut extent = [[f64::NEG_INFINITY, f64::INFINITY]; 3];
        for shell in &shells {
            for (range, centre) in extent.iter_mut().zip(shell.centre) {
                *range = [range[0].max(centre - shell.high), range[1].min(centre + shell.high)];
            }
        }
        let shells = shells.into_iter().filter(|shell| shell.matters(&extent)).collect();
        Region { shells, half_spaces, extent }
    }

    /// Returns whether a position belongs to it.
    pub fn contains(&self, point: [f64; 3]) -> bool {
        let [x, y, z] = point;
        (self.extent.iter().zip(point)).all(|([low, high], x)| (*low..=*high).contains(&x))
            && self.z(x, y).contains(z)
    }

    /// Returns whether it surely has no position.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.some_position(COARSE, MOST_CELLS) == Search::Nowhere
    }

    /// Returns the x of its positions: all of them, and perhaps values nearer than [`FINE`] to them.
    pub fn x(&self) -> Intervals {
        self.coordinates(0, |x| self.has_position(x, self.extent[1], FINE.max(x[1] - x[0])))
    }

    /// Returns the y of its positions with this x: all of them, and perhaps values nearer than [`FINE`] to them.
    pub fn y(&self, x: f64) -> Intervals {
        let mut set = Intervals::default();
        self.coordinates(1, |y| {
            self.fill([x, x], y, &mut set);
            !set.is_empty()
        })
    }

    /// Returns the values of a coordinate where a test finds positions. The test is given a range, and finds all positions, and perhaps
    /// more if the range is wide.
    fn coordinates(&self, axis: usize, mut test: impl FnMut(Range) -> bool) -> Intervals {
        let [low, high] = self.extent[axis];
        if self.has_empty_extent() {
            return Intervals::default();
        }
        if self.is_wide() {
            return Intervals::of(low, high);
        }
        let mut found = Intervals::default();
        let mut starts_inside = test([low, low]);
        for cell in cells([low, high], WIDE) {
            let ends_inside = test([cell[1], cell[1]]);
            refine(cell, [starts_inside, ends_inside], &mut test, &mut found);
            starts_inside = ends_inside;
        }
        found
    }

    /// Returns whether there is a position with x and y in these ranges: surely not if not.
    fn has_position(&self, x: Range, y: Range, finest: f64) -> bool {
        self.search(x, y, finest, MOST_CELLS) != Search::Nowhere
    }

    /// Looks for some position. At most so many cells are tried; they are halved down to the width `finest`, in Å.
    pub(super) fn some_position(&self, finest: f64, most_cells: usize) -> Search {
        match (self.has_empty_extent(), self.is_wide()) {
            (true, _) => Search::Nowhere,
            (false, true) => Search::Undecided,
            _ => self.search(self.extent[0], self.extent[1], finest.max(COARSE), most_cells),
        }
    }

    /// Looks for a position with x and y in these ranges. Cells are halved down to the width `finest`, in Å.
    fn search(&self, x: Range, y: Range, finest: f64, most_cells: usize) -> Search {
        let mut set = Intervals::default();
        let mut cells = vec![(x, y)];
        for _ in 0..most_cells {
            let Some((x, y)) = cells.pop() else { return Search::Nowhere };
            self.fill(x, y, &mut set);
            if set.is_empty() {
                continue;
            }
            let (middle_x, middle_y) = (middle(x), middle(y));
            self.fill([middle_x; 2], [middle_y; 2], &mut set);
            if let Some(z) = set.parts().first() {
                return Search::At([middle_x, middle_y, middle(*z)]);
            }
            let widths = [x[1] - x[0], y[1] - y[0]];
            if widths[0] <= finest && widths[1] <= finest {
                return Search::Undecided;
            }
            if widths[0] > widths[1] {
                cells.extend([([x[0], middle_x], y), ([middle_x, x[1]], y)]);
            } else {
                cells.extend([(x, [y[0], middle_y]), (x, [middle_y, y[1]])]);
            }
        }
        Search::Undecided
    }

    /// Returns the part of it inside of a shell and half-spaces.
    pub(super) fn inside(&self, shell: Shell, half_spaces: Vec<HalfSpace>) -> Region {
        let mut part = self.clone();
        for (range, centre) in part.extent.iter_mut().zip(shell.centre) {
            *range = [range[0].max(centre - shell.high), range[1].min(centre + shell.high)];
        }
        part.shells.push(shell);
        part.half_spaces.extend(half_spaces);
        let extent = part.extent;
        part.shells.retain(|shell| shell.matters(&extent));
        part
    }

    /// Returns a box around it.
    pub(super) fn extent(&self) -> [Range; 3] {
        self.extent
    }

    /// Returns the z of its positions with these x and y.
    pub fn z(&self, x: f64, y: f64) -> Intervals {
        let mut set = Intervals::default();
        self.fill([x, x], [y, y], &mut set);
        set
    }

    /// Returns whether the shells around two atoms do not even overlap along an axis.
    fn has_empty_extent(&self) -> bool {
        self.extent.iter().any(|[low, high]| low > high)
    }

    /// Returns whether no bond limits its extent, as for the first atom of a separate part.
    pub(super) fn is_wide(&self) -> bool {
        self.extent.iter().any(|[low, high]| high - low > LARGEST)
    }

    /// Sets `set` to the z of positions with x and y in these ranges: all of them, and perhaps more unless both are single values.
    pub(super) fn fill(&self, x: Range, y: Range, set: &mut Intervals) {
        let [low, high] = self.extent[2];
        set.reset(low, high);
        let [mut low, mut high] = [low, high];
        for HalfSpace { normal: [a, b, c], least } in &self.half_spaces {
            let most = (a * x[0]).max(a * x[1]) + (b * y[0]).max(b * y[1]);
            let rest = least - most;
            if *c > FLAT {
                low = low.max(rest / c);
            } else if *c < -FLAT {
                high = high.min(rest / c);
            } else if rest > FLAT {
                return set.reset(1.0, 0.0);
            }
        }
        for shell in &self.shells {
            let ([near_x, _], [near_y, _]) = (squares(shell.centre[0], x), squares(shell.centre[1], y));
            let left = shell.high * shell.high - near_x - near_y;
            if left < 0.0 {
                return set.reset(1.0, 0.0);
            }
            let centre = shell.centre[2];
            let [below, above] = [centre - low, high - centre];
            // Most shells reach beyond both ends, for which no root is needed.
            if below < 0.0 || above < 0.0 || below * below > left || above * above > left {
                let half = left.sqrt();
                (low, high) = (low.max(centre - half), high.min(centre + half));
            }
        }
        set.reset(low, high);
        for shell in &self.shells {
            let ([_, far_x], [_, far_y]) = (squares(shell.centre[0], x), squares(shell.centre[1], y));
            let left = shell.low * shell.low - far_x - far_y;
            if left > 0.0 {
                let half = left.sqrt();
                set.remove(shell.centre[2] - half, shell.centre[2] + half);
            }
        }
    }
}

/// Positions count as allowed within this distance of a limit, in Å: encodings of 0.05 Å meet limits such as 0.45 Å exactly.
pub(super) const ROUNDING: f64 = 1e-9;

/// A normal whose z is smaller is taken as horizontal; in the units of half-spaces.
const FLAT: f64 = 1e-12;

/// Returns the smallest and the largest square of the distance of a coordinate from those of a range.
fn squares(centre: f64, [low, high]: Range) -> [f64; 2] {
    let nearest = centre.clamp(low, high) - centre;
    let farthest = (low - centre).abs().max((high - centre).abs());
    [nearest * nearest, farthest * farthest]
}

/// Returns the smallest and the largest squared distance of a point from a box.
fn distances(point: [f64; 3], extent: &[Range; 3]) -> (f64, f64) {
    let mut sums = (0.0, 0.0);
    for (centre, range) in point.into_iter().zip(extent) {
        // A box that is empty in one direction has no distances; its region is empty anyway.
        if range[0] > range[1] {
            return (0.0, f64::INFINITY);
        }
        let [nearest, farthest] = squares(centre, *range);
        sums = (sums.0 + nearest, sums.1 + farthest);
    }
    sums
}

pub(super) fn middle([low, high]: Range) -> f64 {
    low + (high - low) / 2.0
}

/// Adds the parts of a range where a test finds positions; whether it does at the ends of the range is known.
fn refine(range: Range, inside: [bool; 2], test: &mut impl FnMut(Range) -> bool, found: &mut Intervals) {
    if inside == [true; 2] || (range[1] - range[0] <= FINE && test(range)) {
        found.push(range[0], range[1]);
    } else if range[1] - range[0] > FINE && test(range) {
        let between = middle(range);
        let is_inside = test([between; 2]);
        refine([range[0], between], [inside[0], is_inside], test, found);
        refine([between, range[1]], [is_inside, inside[1]], test, found);
    }
}

/// Cuts a range into cells of at most this width.
fn cells([low, high]: Range, width: f64) -> Vec<Range> {
    if low > high {
        return Vec::new();
    }
    let count = ((high - low) / width).ceil().max(1.0);
    let at = |n: f64| low + (high - low) * n / count;
    (0..count as usize).map(|n| [at(n as f64), at(n as f64 + 1.0)]).collect()
}

impl Shell {
    /// Returns whether it excludes a position of a box.
    fn matters(&self, extent: &[Range; 3]) -> bool {
        let (nearest, farthest) = distances(self.centre, extent);
        nearest < self.low * self.low || farthest > self.high * self.high
    }
}

impl HalfSpace {
    /// Positions where a function that is linear in the position is at least `least`.
    pub(super) fn of_linear(least: f64, function: impl Fn([f64; 3]) -> f64) -> Self {
        let origin = function([0.0; 3]);
        let unit = |axis: usize| std::array::from_fn(|at| f64::from(u8::from(at == axis)));
        HalfSpace { normal: [0, 1, 2].map(|axis| function(unit(axis)) - origin), least: least - origin }
    }

    /// Returns whether a position belongs to it.
    pub(super) fn contains(&self, point: [f64; 3]) -> bool {
        dot(self.normal, point) >= self.least - ROUNDING
    }
}
