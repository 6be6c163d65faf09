//! Lower bounds on the RMSD of two conformers that do not depend on rotations or symmetric atom orders, so that few pairs have to be
//! superposed:
//!
//! - For centred points, `n RMSD² ≥ Σ (σᵢ - τᵢ)²`, where σ and τ are the singular values of the two sets. This holds because the
//!   trace of a product is at most the sum of the products of singular values (J. von Neumann, 1937).
//! - `n RMSD² ≥ Σ (|aᵢ| - |bᵢ|)²`, where distances from the centre are in the order of atoms, and sorted among atoms that may be
//!   exchanged.

use super::spread::spread;
use super::superposition::CentredConformer;

/// The largest rounding error of the sums, in Å.
const ROUNDING: f64 = 1e-9;

/// Quantities that neither rotations nor symmetric atom orders change.
#[derive(Debug)]
pub(super) struct Shape {
    /// The singular values of the centred points divided by √n, in Å, the largest first.
    pub singular: [f64; 3],
    /// The distances from the centre divided by √n, in Å.
    radii: Vec<f64>,
}

impl Shape {
    /// Returns the shape of a conformer. `orbits` are the sets of atoms that symmetric orders exchange.
    pub(super) fn from_config(
        conformer: &[[f64; 3]],
        centred: &CentredConformer,
        orbits: &[Vec<usize>],
    ) -> Self {
        let points = centred.points();
        let n = points.len() as f64;
        let mut radii: Vec<f64> =
            points.iter().map(|p| (p.iter().map(|x| x * x).sum::<f64>() / n).sqrt()).collect();
        for orbit in orbits {
            let mut own: Vec<f64> = orbit.iter().map(|atom| radii[*atom]).collect();
            // Atoms that may be exchanged are sorted, so that their order does not matter.
            own.sort_by(f64::total_cmp);
            orbit.iter().zip(own).for_each(|(atom, radius)| radii[*atom] = radius);
        }
        Shape { singular: spread(conformer), radii }
    }

    /// Returns whether the two bounds allow an RMSD within `bound`.
    pub(super) fn can_be_within(&self, other: &Shape, bound: f64) -> bool {
        let most = (bound + ROUNDING).powi(2);
        squared_distance(&self.singular, &other.singular) <= most
            && squared_distance(&self.radii, &other.radii) <= most
    }

    /// Returns the larger of the two bounds, in Å: no RMSD is below it.
    pub(super) fn least_rmsd(&self, other: &Shape) -> f64 {
        let squares = squared_distance(&self.singular, &other.singular);
        (squares.max(squared_distance(&self.radii, &other.radii)).sqrt() - ROUNDING).max(0.0)
    }
}

fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}
