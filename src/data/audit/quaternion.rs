//! The largest overlap of two sets of points over rotations, and its sharpness, from the inner products of their coordinates.
//!
//! The largest eigenvalue of Horn's 4×4 matrix is found by D. L. Theobald's method (Acta Cryst. A 61 (2005) 478): Newton's method
//! from above on the characteristic polynomial, whose coefficients follow from the inner products.

use super::align::{horn, of_quaternion, overlap, rotation};

/// `Σ aᵢ bᵢᵀ`.
pub(super) type Matrix = [[f64; 3]; 3];

/// The rotation R with the largest `Σ Raᵢ · bᵢ`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    /// The largest sum.
    pub overlap: f64,
    /// R, as rows.
    pub rotation: Matrix,
    /// For a rotation by an angle θ away from R, the sum is at most `overlap - 2 κ sin²(θ/2)`. This κ is at most half the gap
    /// between the two largest eigenvalues.
    pub sharpness: f64,
}

/// If the derivative divided by the cube of the eigenvalue is below this, the largest eigenvalue is nearly double, and Newton's
/// method is inaccurate.
const DOUBLE: f64 = 1e-5;

/// Returns the largest sum over all rotations.
pub(super) fn largest_overlap(s: &Matrix) -> f64 {
    newton(s).map_or_else(|| overlap(*s), |(largest, _)| largest)
}

/// Returns the largest sum, its rotation, and its sharpness.
pub(super) fn turn(s: &Matrix) -> Turn {
    let found = newton(s).and_then(|(largest, slope)| {
        // (λ₁-λ₂)(λ₁-λ₃)(λ₁-λ₄) is the slope, and the product of the last two factors is at most the square of their mean, which
        // follows from λ₁ and λ₂ because the trace is 0. The value used for λ₂ is never too small, so the gap is never
        // overestimated.
        let half_sum = |second: f64| 1.5 * largest + 0.5 * second;
        let gap = |second: f64| slope / half_sum(second).powi(2);
        // λ₂ is at most λ₁, which gives a first gap. That gap gives a better bound on λ₂, which gives a wider gap.
        let first = gap(largest);
        let sharpness = 0.5 * gap(largest - first);
        Some(Turn { overlap: largest, rotation: of_eigenvalue(s, largest)?, sharpness })
    });
    found.unwrap_or_else(|| Turn { overlap: overlap(*s), rotation: rotation(*s), sharpness: 0.0 })
}

/// Returns the largest eigenvalue, and the slope of the characteristic polynomial there; `None` if the eigenvalue is nearly double.
fn newton(s: &Matrix) -> Option<(f64, f64)> {
    let [c0, c1, c2] = coefficients(s);
    // √3 times the Frobenius norm is at least the sum of singular values.
    let mut x = (3.0 * squares(s)).sqrt();
    if x <= 0.0 {
        return None;
    }
    // Starting from above, the steps decrease monotonically to the largest root.
    for _ in 0..50 {
        let value = ((x * x + c2) * x + c1) * x + c0;
        let slope = (4.0 * x * x + 2.0 * c2) * x + c1;
        if slope < DOUBLE * x * x * x {
            return None;
        }
        let next = x - value / slope;
        if (next - x).abs() <= 1e-14 * x {
            return Some((next, (4.0 * next * next + 2.0 * c2) * next + c1));
        }
        x = next;
    }
    None
}

fn squares(s: &Matrix) -> f64 {
    s.iter().flatten().map(|x| x * x).sum()
}

/// Returns the coefficients of x⁰, x¹ and x² of the characteristic polynomial; that of x³ is 0. The coefficients of x¹ and x⁰ are -8 |S|
/// and the determinant of Horn's matrix.
fn coefficients(s: &Matrix) -> [f64; 3] {
    let squares = squares(s);
    // The sum of the squared 2×2 minors is Σ σᵢ²σⱼ².
    let minor = |i: usize, j: usize, k: usize, l: usize| s[i][k] * s[j][l] - s[i][l] * s[j][k];
    let pairs = [(0, 1), (0, 2), (1, 2)];
    let minors: f64 =
        pairs.iter().flat_map(|(i, j)| pairs.iter().map(|(k, l)| minor(*i, *j, *k, *l).powi(2))).sum();
    let determinant = s[0][0] * minor(1, 2, 1, 2) - s[0][1] * minor(1, 2, 0, 2) + s[0][2] * minor(1, 2, 0, 1);
    // (x²-Σσ²)² - 8 d x - 4 Σσᵢ²σⱼ² + …: the polynomial of λ = ±σ₁±σ₂±σ₃.
    [squares * squares - 4.0 * minors, -8.0 * determinant, -2.0 * squares]
}

/// Returns the rotation of an eigenvalue. Its eigenvector is a column of the adjugate of `N - λ`.
fn of_eigenvalue(s: &Matrix, eigenvalue: f64) -> Option<Matrix> {
    let mut m = horn(*s);
    (0..4).for_each(|i| m[i][i] -= eigenvalue);
    let minor = |row: usize, column: usize| {
        let rows: [usize; 3] = std::array::from_fn(|at| at + usize::from(at >= row));
        let columns: [usize; 3] = std::array::from_fn(|at| at + usize::from(at >= column));
        let at = |i: usize, j: usize| m[rows[i]][columns[j]];
        let value = at(0, 0) * (at(1, 1) * at(2, 2) - at(1, 2) * at(2, 1))
            - at(0, 1) * (at(1, 0) * at(2, 2) - at(1, 2) * at(2, 0))
            + at(0, 2) * (at(1, 0) * at(2, 1) - at(1, 1) * at(2, 0));
        if (row + column).is_multiple_of(2) { value } else { -value }
    };
    // The adjugate is a multiple of qqᵀ. Its largest diagonal entry selects the column that is furthest from 0.
    let diagonal: [f64; 4] = std::array::from_fn(|at| minor(at, at).abs());
    let column = (0..4).max_by(|a, b| diagonal[*a].total_cmp(&diagonal[*b]))?;
    let q: [f64; 4] = std::array::from_fn(|row| minor(row, column));
    let length = q.iter().map(|x| x * x).sum::<f64>().sqrt();
    (length > 0.0 && length.is_finite()).then(|| of_quaternion(q.map(|x| x / length)))
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn trace(rotation: &Matrix, s: &Matrix) -> f64 {
        (0..3).flat_map(|i| (0..3).map(move |j| (i, j))).map(|(i, j)| rotation[i][j] * s[j][i]).sum()
    }

    #[test]
    fn the_overlap_is_that_of_jacobi_and_its_bound_holds() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let mut number = || random.random::<f64>() * 2.0 - 1.0;
        for round in 0..2_000 {
            let mut s: Matrix = std::array::from_fn(|_| std::array::from_fn(|_| number()));
            // Some are flat, some are lines, some are mirrored.
            if round % 4 == 1 {
                s[2] = [0.0; 3];
            } else if round % 4 == 2 {
                s = std::array::from_fn(|i| std::array::from_fn(|j| s[0][i] * s[1][j]));
            }
            let found = turn(&s);
            let exact = overlap(s);
            assert!((found.overlap - exact).abs() < 1e-10, "{s:?}: {found:?} {exact}");
            assert!((largest_overlap(&s) - exact).abs() < 1e-10);
            assert!((trace(&found.rotation, &s) - exact).abs() < 1e-6, "{s:?}: {found:?}");
            // Any other rotation has less, by as much as the sharpness says.
            let q: [f64; 4] = std::array::from_fn(|_| number());
            let length = q.iter().map(|x| x * x).sum::<f64>().sqrt();
            let other = of_quaternion(q.map(|x| x / length));
            let between: f64 =
                found.rotation.iter().flatten().zip(other.iter().flatten()).map(|(a, b)| a * b).sum();
            let versed = 1.0 - (between - 1.0) / 2.0;
            assert!(trace(&other, &s) <= exact - found.sharpness * versed + 1e-9, "{s:?}");
        }
    }
}
