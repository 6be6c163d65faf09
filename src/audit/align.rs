//! Root mean square deviation after the best proper rotation and translation.

use crate::corpus::eigen::{Rounding, diagonalise};

/// The least `sqrt(Σ |R aᵢ + t - bᵢ|² / n)` over proper rotations R and translations t, in the unit of the coordinates;
/// 0 for no points.
///
/// With both sets centred, the least sum is `Σ |aᵢ|² + |bᵢ|² - 2 λ`, λ the largest eigenvalue of a symmetric 4×4 matrix
/// made of `Σ aᵢ bᵢᵀ`: B. K. P. Horn, J. Opt. Soc. Am. A 4 (1987) 629, and the same as Kabsch's with reflections left
/// out. `b[order[i]]` is the partner of `a[i]`.
///
/// # Panics
/// Never: points without a partner are left out.
pub fn aligned_rmsd(a: &[[f64; 3]], b: &[[f64; 3]], order: impl Fn(usize) -> usize) -> f64 {
    let pairs: Vec<([f64; 3], [f64; 3])> =
        a.iter().enumerate().filter_map(|(i, a)| Some((*a, *b.get(order(i))?))).collect();
    if pairs.is_empty() {
        return 0.0;
    }
    let n = pairs.len() as f64;
    let mut centres = [[0.0; 3]; 2];
    for (a, b) in &pairs {
        for axis in 0..3 {
            centres[0][axis] += a[axis] / n;
            centres[1][axis] += b[axis] / n;
        }
    }
    let mut sum = 0.0;
    let mut s = [[0.0; 3]; 3];
    for (a, b) in &pairs {
        let a: [f64; 3] = std::array::from_fn(|axis| a[axis] - centres[0][axis]);
        let b: [f64; 3] = std::array::from_fn(|axis| b[axis] - centres[1][axis]);
        for i in 0..3 {
            sum += a[i] * a[i] + b[i] * b[i];
            for j in 0..3 {
                s[i][j] += a[i] * b[j];
            }
        }
    }
    ((sum - 2.0 * overlap(s)).max(0.0) / n).sqrt()
}

/// The largest `Σ Raᵢ · bᵢ` over proper rotations R, of `Σ aᵢ bᵢᵀ`.
pub(super) fn overlap([[xx, xy, xz], [yx, yy, yz], [zx, zy, zz]]: [[f64; 3]; 3]) -> f64 {
    largest_eigenvalue([
        [xx + yy + zz, yz - zy, zx - xz, xy - yx],
        [yz - zy, xx - yy - zz, xy + yx, zx + xz],
        [zx - xz, xy + yx, yy - xx - zz, yz + zy],
        [xy - yx, zx + xz, yz + zy, zz - xx - yy],
    ])
}

/// The largest eigenvalue of a symmetric matrix.
fn largest_eigenvalue(mut m: [[f64; 4]; 4]) -> f64 {
    diagonalise(&mut m, Rounding::Root, |_, _, _, _| {});
    (0..4).map(|i| m[i][i]).fold(f64::NEG_INFINITY, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINTS: [[f64; 3]; 5] =
        [[0.0, 0.0, 0.0], [1.5, 0.0, 0.0], [2.0, 1.4, 0.1], [-0.7, 1.2, 0.4], [0.3, -0.6, 2.2]];

    fn rmsd(a: &[[f64; 3]], b: &[[f64; 3]]) -> f64 {
        aligned_rmsd(a, b, |i| i)
    }

    #[test]
    fn moved_points_are_the_same_and_mirrored_ones_are_not() {
        let moved = POINTS.map(|[x, y, z]| [-y + 3.0, x - 1.0, z + 0.5]);
        assert!(rmsd(&POINTS, &moved) < 1e-7);
        let mirrored = POINTS.map(|[x, y, z]| [x, y, -z]);
        assert!(rmsd(&POINTS, &mirrored) > 0.3);
        assert_eq!(rmsd(&[], &[]), 0.0);
        assert_eq!(rmsd(&POINTS[..1], &moved[1..2]), 0.0);
    }

    #[test]
    fn two_points_differ_by_their_distance() {
        // Distances 1 and 3: each point is half the difference off.
        let distance = rmsd(&[[0.0; 3], [1.0, 0.0, 0.0]], &[[5.0, 5.0, 0.0], [5.0, 5.0, 3.0]]);
        assert!((distance - 1.0).abs() < 1e-12);
    }
}
