//! RMSD after the best proper rotation and translation.

use crate::corpus::eigen::{Rounding, diagonalise, turn_rows};
use drift_core::vector::{add_product, centre, dot, minus};

/// Returns the least `sqrt(Σ |R aᵢ + t - bᵢ|² / n)` over proper rotations R and translations t, in the unit of the coordinates; 0 without
/// points.
///
/// If both sets are centred, the least sum is `Σ |aᵢ|² + |bᵢ|² - 2 λ`, where λ is the largest eigenvalue of a symmetric 4×4 matrix
/// built from `Σ aᵢ bᵢᵀ`: B. K. P. Horn, J. Opt. Soc. Am. A 4 (1987) 629. This equals Kabsch's result without reflections.
/// `b[order[i]]` is the partner of `a[i]`.
///
/// # Panics
/// Never: points without a partner are skipped.
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
        let (a, b) = (minus(*a, centres[0]), minus(*b, centres[1]));
        (0..3).for_each(|i| sum += a[i] * a[i] + b[i] * b[i]);
        add_product(&mut s, a, b);
    }
    // Rounding can make the sum for equal sets slightly negative.
    ((sum - 2.0 * overlap(s)).max(0.0) / n).sqrt()
}

/// Returns the points of `a`, rotated and moved onto `b` with the least RMSD; `a` itself if the numbers of points differ.
pub fn superposed(a: &[[f64; 3]], b: &[[f64; 3]]) -> Vec<[f64; 3]> {
    if a.len() != b.len() || a.is_empty() {
        return a.to_vec();
    }
    let (from, to) = (centre(a), centre(b));
    let mut s = [[0.0; 3]; 3];
    for (a, b) in a.iter().zip(b) {
        add_product(&mut s, minus(*a, from), minus(*b, to));
    }
    let turn = rotation(s);
    let moved = |p: &[f64; 3]| -> [f64; 3] { std::array::from_fn(|i| dot(turn[i], minus(*p, from)) + to[i]) };
    a.iter().map(moved).collect()
}

/// Returns the proper rotation R with the largest `Σ Raᵢ · bᵢ`, given `Σ aᵢ bᵢᵀ`: Horn's unit quaternion as a matrix.
pub(super) fn rotation(s: [[f64; 3]; 3]) -> [[f64; 3]; 3] {
    let mut m = horn(s);
    let mut vectors: [[f64; 4]; 4] =
        std::array::from_fn(|i| std::array::from_fn(|j| f64::from(u8::from(i == j))));
    diagonalise(&mut m, Rounding::Root, |p, q, cosine, sine| turn_rows(&mut vectors, p, q, cosine, sine));
    let largest = (0..4).max_by(|i, j| m[*i][*i].total_cmp(&m[*j][*j])).unwrap_or(0);
    of_quaternion(vectors[largest])
}

/// Returns the rotation matrix of a unit quaternion, as rows.
pub(super) fn of_quaternion([w, x, y, z]: [f64; 4]) -> [[f64; 3]; 3] {
    [
        [w * w + x * x - y * y - z * z, 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), w * w - x * x + y * y - z * z, 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ]
}

/// Returns the largest `Σ Raᵢ · bᵢ` over proper rotations R, given `Σ aᵢ bᵢᵀ`.
pub(super) fn overlap(s: [[f64; 3]; 3]) -> f64 {
    let mut m = horn(s);
    diagonalise(&mut m, Rounding::Root, |_, _, _, _| {});
    (0..4).map(|i| m[i][i]).fold(f64::NEG_INFINITY, f64::max)
}

/// Horn's symmetric matrix: its largest eigenvalue is the overlap, and the eigenvector is the quaternion of the rotation.
pub(super) fn horn([[xx, xy, xz], [yx, yy, yz], [zx, zy, zz]]: [[f64; 3]; 3]) -> [[f64; 4]; 4] {
    [
        [xx + yy + zz, yz - zy, zx - xz, xy - yx],
        [yz - zy, xx - yy - zz, xy + yx, zx + xz],
        [zx - xz, xy + yx, yy - xx - zz, yz + zy],
        [xy - yx, zx + xz, yz + zy, zz - xx - yy],
    ]
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
    fn points_are_laid_onto_others() {
        let moved = POINTS.map(|[x, y, z]| [-y + 3.0, x - 1.0, z + 0.5]);
        for (laid, to) in superposed(&POINTS, &moved).iter().zip(&moved) {
            assert!((0..3).all(|axis| (laid[axis] - to[axis]).abs() < 1e-6), "{laid:?} {to:?}");
        }
        // As near as they can be, where they are not the same.
        let bent = POINTS.map(|[x, y, z]| [z, x + 0.3 * y * y, y]);
        let laid = superposed(&POINTS, &bent);
        let squares: f64 =
            laid.iter().zip(&bent).flat_map(|(a, b)| (0..3).map(move |i| (a[i] - b[i]).powi(2))).sum();
        assert!(((squares / 5.0).sqrt() - rmsd(&POINTS, &bent)).abs() < 1e-9);
        assert_eq!(superposed(&POINTS, &bent[..2]), POINTS);
    }

    #[test]
    fn two_points_differ_by_their_distance() {
        // Distances 1 and 3: each point is half the difference off.
        let distance = rmsd(&[[0.0; 3], [1.0, 0.0, 0.0]], &[[5.0, 5.0, 0.0], [5.0, 5.0, 3.0]]);
        assert!((distance - 1.0).abs() < 1e-12);
    }
}
