//! Eigenvalues and eigenvectors of small symmetric matrices, by Jacobi's cyclic rotations (Golub and Van Loan, Matrix
//! Computations, 8.5).

/// More sweeps than any matrix needs: a 4×4 matrix takes about 6.
const SWEEPS: usize = 50;

/// How a rotation is rounded, and when a matrix counts as diagonal. Both variants have full double precision but differ in the last
/// bits, and results written with one of them must be reproducible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// With `hypot`, until the largest off-diagonal entry is negligible.
    Hypot,
    /// With the square root of a sum, until the sum of squared off-diagonal entries is negligible.
    Root,
}

impl Rounding {
    /// `√(1 + x²)`.
    fn secant(self, x: f64) -> f64 {
        match self {
            Rounding::Hypot => x.hypot(1.0),
            Rounding::Root => (1.0 + x * x).sqrt(),
        }
    }

    fn is_diagonal<const N: usize>(self, m: &[[f64; N]; N], scale: f64) -> bool {
        let pairs = (0..N).flat_map(|i| (0..i).map(move |j| (i, j)));
        match self {
            Rounding::Hypot => pairs.map(|(i, j)| m[j][i].abs()).fold(0.0, f64::max) <= 1e-15 * scale,
            Rounding::Root => pairs.map(|(i, j)| m[i][j] * m[i][j]).sum::<f64>() <= 1e-32 * scale,
        }
    }

    /// Returns the scale that [`Rounding::is_diagonal`] compares with.
    fn scale<const N: usize>(self, m: &[[f64; N]; N]) -> f64 {
        let entries = m.iter().flatten();
        match self {
            Rounding::Hypot => entries.fold(0.0, |most: f64, x| most.max(x.abs())),
            Rounding::Root => entries.map(|x| x * x).sum(),
        }
    }
}

/// Diagonalises a symmetric matrix: its eigenvalues remain on the diagonal. `turned` receives each rotation as rows p and q, cosine
/// and sine. Applying all of them to the unit matrix with [`turn_rows`] gives the eigenvectors, as rows.
///
/// A diagonal matrix is left unchanged.
pub(crate) fn diagonalise<const N: usize>(
    m: &mut [[f64; N]; N],
    rounding: Rounding,
    mut turned: impl FnMut(usize, usize, f64, f64),
) {
    let scale = rounding.scale(m);
    for _ in 0..SWEEPS {
        if rounding.is_diagonal(m, scale) {
            break;
        }
        for p in 0..N - 1 {
            for q in p + 1..N {
                // A zero entry needs no rotation, and would be a divisor.
                if m[p][q] != 0.0 {
                    let (cosine, sine) = rotate(m, rounding, p, q);
                    turned(p, q, cosine, sine);
                }
            }
        }
    }
}

/// Returns the rotation in the plane (p, q) that zeroes `m[p][q]`.
fn rotate<const N: usize>(m: &mut [[f64; N]; N], rounding: Rounding, p: usize, q: usize) -> (f64, f64) {
    let theta = (m[q][q] - m[p][p]) / (2.0 * m[p][q]);
    // The smaller of the two angles, for which the method converges (Golub and Van Loan, 8.5.2).
    let tangent = theta.signum() / (theta.abs() + rounding.secant(theta));
    let cosine = 1.0 / rounding.secant(tangent);
    let sine = tangent * cosine;
    for row in m.iter_mut() {
        (row[p], row[q]) = (cosine * row[p] - sine * row[q], sine * row[p] + cosine * row[q]);
    }
    turn_rows(m, p, q, cosine, sine);
    (cosine, sine)
}

/// Rotates two rows of a matrix into each other.
pub(crate) fn turn_rows<const N: usize>(m: &mut [[f64; N]; N], p: usize, q: usize, cosine: f64, sine: f64) {
    let (x, y) = (m[p], m[q]);
    m[p] = std::array::from_fn(|k| cosine * x[k] - sine * y[k]);
    m[q] = std::array::from_fn(|k| sine * x[k] + cosine * y[k]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn theta_of_zero_turns_by_an_eighth() {
        let mut m = [[0.0; 4]; 4];
        (m[0][0], m[1][1], m[0][1], m[1][0]) = (1.0, 1.0, 0.5, 0.5);
        diagonalise(&mut m, Rounding::Root, |_, _, _, _| {});
        assert!((m[0][0].max(m[1][1]) - 1.5).abs() < 1e-12 && m[0][1].abs() < 1e-12, "{m:?}");
    }

    #[test]
    fn vectors_turn_the_matrix_into_its_diagonal() {
        let a = [[2.0, -1.0, 0.5], [-1.0, 3.0, 0.25], [0.5, 0.25, -1.0]];
        let (mut diagonal, mut vectors) = (a, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
        diagonalise(&mut diagonal, Rounding::Hypot, |p, q, cosine, sine| {
            turn_rows(&mut vectors, p, q, cosine, sine)
        });
        for (i, vector) in vectors.iter().enumerate() {
            for (k, row) in a.iter().enumerate() {
                let image: f64 = row.iter().zip(vector).map(|(x, y)| x * y).sum();
                assert!((image - diagonal[i][i] * vector[k]).abs() < 1e-12);
            }
        }
    }
}
