//! The plane of points.

use crate::corpus::eigen::{Rounding, diagonalise, turn_rows};
use drift_core::vector::{add_product, centred, dot};

/// Returns the largest distance of points from their best plane, in the unit of the points (Å). The plane goes through their mean, and
/// its normal is the direction of least spread. 0 for three points or fewer.
pub(super) fn off_plane(points: &[[f64; 3]]) -> f64 {
    if points.len() < 4 {
        return 0.0;
    }
    let centred = centred(points);
    let mut spread = [[0.0; 3]; 3];
    centred.iter().for_each(|p| add_product(&mut spread, *p, *p));
    let mut axes = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    diagonalise(&mut spread, Rounding::Root, |p, q, cosine, sine| turn_rows(&mut axes, p, q, cosine, sine));
    // The eigenvector of the smallest eigenvalue is the normal.
    let least = (0..3).min_by(|a, b| spread[*a][*a].total_cmp(&spread[*b][*b])).unwrap_or(2);
    let normal = axes[least];
    centred.iter().map(|p| dot(*p, normal).abs()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_from_the_best_plane() {
        let square = [[0.0, 0.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]];
        assert!(off_plane(&square) < 1e-12);
        // Turned by 45° about x, in no plane of the axes.
        let turned = square.map(|[x, y, z]| [x, y - z, y + z]);
        assert!(off_plane(&turned) < 1e-12);
        let bent = [[0.0, 0.0, 0.1], [1.0, 0.0, -0.1], [1.0, 1.0, 0.1], [0.0, 1.0, -0.1]];
        assert!((off_plane(&bent) - 0.1).abs() < 1e-12);
        assert_eq!(off_plane(&square[..3]), 0.0);
    }
}
