//! Three lengths of a conformer that do not depend on its pose or its atom order: the spread of its atoms along the principal axes.
//!
//! Let the rows of X be the atoms x₁ … xₙ relative to their centre. The lengths are the singular values of X / √n. The singular
//! values of two matrices differ by no more than the matrices do (L. Mirsky, Quart. J. Math. 11 (1960) 50, theorem 5):
//! `Σ (σᵢ(X) - σᵢ(Y))² ≤ ‖X - Y‖²`. Rotating Y and reordering its rows changes no singular value, so the distance of two spreads
//! is at most the least RMSD.

use crate::corpus::eigen::{Rounding, diagonalise};
use drift_core::vector::{centre, minus};

/// Returns the spread of a conformer, longest first, in the unit of its coordinates; zeros without atoms.
///
/// Mirror images have the same spread.
pub fn spread(points: &[[f64; 3]]) -> [f64; 3] {
    let n = points.len().max(1) as f64;
    let centre = centre(points);
    let mut moments = [[0.0; 3]; 3];
    for point in points {
        let x = minus(*point, centre);
        for i in 0..3 {
            (0..3).for_each(|j| moments[i][j] += x[i] * x[j] / n);
        }
    }
    diagonalise(&mut moments, Rounding::Root, |_, _, _, _| {});
    let mut lengths: [f64; 3] = std::array::from_fn(|axis| moments[axis][axis].max(0.0).sqrt());
    lengths.sort_by(|a, b| b.total_cmp(a));
    lengths
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::audit::align::aligned_rmsd;

    #[test]
    fn spreads_deviate_no_more_than_atoms_do() {
        let mut random = ChaCha8Rng::seed_from_u64(5);
        let mut number = || random.random::<f64>() * 2.0 - 1.0;
        for round in 0..2_000 {
            let n = 1 + round % 30;
            let size = [1e-4, 0.1, 3.0][round % 3];
            let a: Vec<[f64; 3]> = (0..n).map(|_| std::array::from_fn(|_| 5.0 * number())).collect();
            let b: Vec<[f64; 3]> = a.iter().map(|p| p.map(|x| x + size * number())).collect();
            let between: f64 = spread(&a).iter().zip(spread(&b)).map(|(a, b)| (a - b).powi(2)).sum();
            assert!(between.sqrt() <= aligned_rmsd(&a, &b, |i| i) + 1e-7);
        }
    }

    #[test]
    fn pose_order_and_mirror_do_not_matter() {
        let points = [[0.0, 0.0, 0.0], [1.5, 0.0, 0.0], [2.0, 1.4, 0.1], [-0.7, 1.2, 0.4]];
        let mut moved = points.map(|[x, y, z]| [-y + 3.0, x - 1.0, -z]);
        moved.swap(0, 2);
        for (a, b) in spread(&points).iter().zip(spread(&moved)) {
            assert!((a - b).abs() < 1e-12);
        }
        assert_eq!((spread(&[]), spread(&[[7.0; 3]])), ([0.0; 3], [0.0; 3]));
        let line = spread(&[[0.0; 3], [0.0, 3.0, 0.0]]);
        assert!((line[0] - 1.5).abs() < 1e-12 && line[1] < 1e-7);
    }
}
