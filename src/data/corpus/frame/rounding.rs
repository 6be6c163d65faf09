//! Whether a text lies in a frame already, as far as its rounding tells.
//!
//! A number of a text stands for an interval of coordinates. If the positions that were rounded to a text can have lain in a frame,
//! the text is not moved again. Otherwise each pass would turn it further: the axes of inertia of a symmetric molecule, and the
//! plane of an atom that is hardly off the line of the first two, change with the last decimal.

use super::{LEAST_SINE, Vector};
use drift_core::Encoding;
use drift_core::encoding::Fixed;

/// The positions of a text, and how far the coordinates that were rounded to them can have been away, both in Å.
pub(super) struct RoundedPositions<'p> {
    positions: &'p [Vector],
    errors: Vec<Vector>,
}

impl<'p> RoundedPositions<'p> {
    /// Returns the positions of values of an encoding.
    pub(super) fn new(positions: &'p [Vector], values: &[[Fixed; 3]], encoding: Encoding) -> Self {
        let error = |value: Fixed, axis: usize, x: f64| {
            let [low, high] = encoding.number().cell(value, axis).unwrap_or([x; 2]);
            // Beyond the end of the range nothing is known. The position counts as exact there.
            let reach = [x - low, high - x].into_iter().filter(|reach| reach.is_finite());
            reach.fold(0.0, f64::max)
        };
        let errors = values
            .iter()
            .zip(positions)
            .map(|(values, p)| std::array::from_fn(|axis| error(values[axis], axis, p[axis]) + FLOAT_ERROR));
        RoundedPositions { positions, errors: errors.collect() }
    }

    /// Returns whether they can lie in the [principal frame](super::principal) of these masses, in dalton.
    pub(super) fn can_be_principal(&self, masses: &[f64]) -> bool {
        let sum = |term: &dyn Fn(&Vector, &Vector) -> f64| -> f64 {
            let atoms = masses.iter().zip(self.positions).zip(&self.errors);
            atoms.map(|((mass, p), e)| mass * term(p, e)).sum()
        };
        let is_centred = |axis: usize| sum(&|p, _| p[axis]).abs() <= sum(&|_, e| e[axis]);
        // The products of inertia of the exact positions are 0.
        let is_diagonal = |[i, j]: [usize; 2]| {
            let most = sum(&|p, e| p[i].abs() * e[j] + p[j].abs() * e[i] + e[i] * e[j]);
            sum(&|p, _| p[i] * p[j]).abs() <= most
        };
        // The smallest moment of inertia belongs to the axis with the largest sum of squares.
        let is_ordered = |[i, j]: [usize; 2]| {
            let largest = sum(&|p, e| (p[i].abs() + e[i]).powi(2));
            let smallest = sum(&|p, e| (p[j].abs() - e[j]).max(0.0).powi(2));
            largest >= smallest
        };
        (0..3).all(is_centred)
            && [[0, 1], [0, 2], [1, 2]].into_iter().all(is_diagonal)
            && [[0, 1], [1, 2]].into_iter().all(is_ordered)
    }

    /// Returns whether they can lie in the [frame of the first atoms](super::first_atoms).
    pub(super) fn can_be_of_first_atoms(&self) -> bool {
        let n = self.positions.len();
        let is_zero = |atom: usize, axis: usize| self.positions[atom][axis].abs() <= self.errors[atom][axis];
        let is_positive =
            |atom: usize, axis: usize| self.positions[atom][axis] + self.errors[atom][axis] > 0.0;
        if n == 0 || (0..3).any(|axis| !is_zero(0, axis)) {
            return n == 0;
        }
        if n == 1 || (0..3).all(|axis| is_zero(1, axis)) {
            return true;
        }
        if !(is_positive(1, 0) && is_zero(1, 1) && is_zero(1, 2)) {
            return false;
        }
        let sines: Vec<[f64; 2]> = (2..n).map(|atom| self.sine_off_x(atom)).collect();
        // Up to this atom none is off the line for certain.
        let first = sines.iter().position(|[low, _]| *low > LEAST_SINE).map_or(n, |at| at + 3);
        let most = sines.iter().map(|[low, _]| *low).fold(0.0, f64::max).min(LEAST_SINE);
        let spans_plane =
            |atom: usize| is_zero(atom, 2) && is_positive(atom, 1) && sines[atom - 2][1] >= most;
        n == 2 || (2..first.min(n)).any(spans_plane)
    }

    /// Bounds on the sine of the angle between the x axis and the direction of an atom.
    fn sine_off_x(&self, atom: usize) -> [f64; 2] {
        let ([x, y, z], [ex, ey, ez]) = (self.positions[atom], self.errors[atom]);
        let (off, distance) = (y.hypot(z), x.hypot(y).hypot(z));
        let (of_off, of_distance) = (ey.hypot(ez), ex.hypot(ey).hypot(ez));
        let low = (off - of_off).max(0.0) / (distance + of_distance);
        let high = (off + of_off) / (distance - of_distance).max(f64::MIN_POSITIVE);
        [low, high.min(1.0)]
    }
}

/// More than the rounding error of coordinates in double precision, in Å.
const FLOAT_ERROR: f64 = 1e-9;
