//! Planes near which an atom lies.

use super::region::HalfSpace;
use crate::vector::{centre, cross, dot, minus};

/// Atoms that span less than this area, in Å², define no plane.
pub(super) const LEAST_AREA: f64 = 0.5;

/// The atoms of a plane that are placed before an atom, and how far from it the atom may lie, in Å.
#[derive(Debug, Clone)]
pub(super) struct Slab {
    pub(super) before: Vec<usize>,
    pub(super) width: f64,
}

impl Slab {
    /// Returns its two half-spaces, wider by a slack in Å on both sides; `None` if its atoms span no plane.
    pub(super) fn half_spaces(&self, placed: &[[f64; 3]], slack: f64) -> Option<[HalfSpace; 2]> {
        let points: Vec<[f64; 3]> = self.before.iter().map(|at| placed[*at]).collect();
        let (normal, offset) = plane(&points)?;
        let least = |offset: f64| offset - self.width - slack;
        let opposite = normal.map(|x| -x);
        Some(
            [(normal, offset), (opposite, -offset)]
                .map(|(normal, at)| HalfSpace { normal, least: least(at) }),
        )
    }
}

/// Returns the unit normal of a plane through points, and the offset of the plane along it, in Å; `None` if they span no area.
fn plane(points: &[[f64; 3]]) -> Option<([f64; 3], f64)> {
    let middle = centre(points);
    let mut sum = [0.0; 3];
    for b in 1..points.len() {
        for a in 0..b {
            let area = cross(minus(points[a], middle), minus(points[b], middle));
            // The areas of a flat group have one direction, but either sense.
            let sign = if dot(area, sum) < 0.0 { -1.0 } else { 1.0 };
            sum = std::array::from_fn(|axis| sum[axis] + sign * area[axis]);
        }
    }
    let length = dot(sum, sum).sqrt();
    let normal = sum.map(|x| x / length);
    (length > LEAST_AREA).then(|| (normal, dot(normal, middle)))
}
