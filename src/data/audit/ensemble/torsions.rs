//! How far the torsions of a molecule's conformers spread.

use super::super::geometry::Conformation;
use drift_core::vector::{cross, dot, minus};

/// Returns the mean over torsions of their angular deviation over conformers, in degrees: `√(2 (1 - R))`, where R is the length of the
/// mean of the unit vectors of the angles (E. Batschelet, Circular Statistics in Biology, 1981). It is 0 if all angles are equal, the
/// standard deviation if they are nearly so, and at most 81.03. `None` without torsions or conformers.
///
/// Torsions are `[beside a, a, b, beside b]`, as [`drift_core::chem::Molecule::torsions`] lists them.
pub fn torsion_spread(torsions: &[[usize; 4]], conformers: &[Conformation]) -> Option<f64> {
    if torsions.is_empty() || conformers.is_empty() {
        return None;
    }
    let deviations = torsions.iter().map(|torsion| {
        angular_deviation(conformers.iter().map(|points| dihedral(torsion.map(|atom| points[atom]))))
    });
    Some(deviations.sum::<f64>() / torsions.len() as f64)
}

/// Returns the angular deviation of angles in radians, in degrees. There is at least one.
fn angular_deviation(angles: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = angles.len() as f64;
    let (mut cosines, mut sines) = (0.0, 0.0);
    for angle in angles {
        cosines += angle.cos();
        sines += angle.sin();
    }
    (2.0 * (1.0 - f64::hypot(cosines, sines) / count).max(0.0)).sqrt().to_degrees()
}

/// Returns the dihedral angle of four points, in radians; 0 if three of them lie on a line.
fn dihedral([a, b, c, d]: [[f64; 3]; 4]) -> f64 {
    let (first, axis, last) = (minus(b, a), minus(c, b), minus(d, c));
    let (left, right) = (cross(first, axis), cross(axis, last));
    let length = dot(axis, axis).sqrt();
    f64::atan2(length * dot(first, right), dot(left, right))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four atoms whose torsion has an angle in degrees.
    fn at(degrees: f64) -> Conformation {
        let angle = degrees.to_radians();
        vec![[1.0, 0.0, 0.0], [0.0; 3], [0.0, 0.0, 1.5], [angle.cos(), angle.sin(), 1.5]]
    }

    fn spread(degrees: &[f64]) -> f64 {
        let conformers: Vec<Conformation> = degrees.iter().map(|one| at(*one)).collect();
        torsion_spread(&[[0, 1, 2, 3]], &conformers).unwrap()
    }

    #[test]
    fn spreads_of_angles() {
        assert!((dihedral([0, 1, 2, 3].map(|atom| at(-120.0)[atom])).to_degrees() + 120.0).abs() < 1e-9);
        assert!(spread(&[77.0]) < 1e-5 && spread(&[77.0; 3]) < 1e-5);
        // The mean of unit vectors at ± 60° is 0.5 long.
        assert!((spread(&[60.0, -60.0]) - 1f64.to_degrees()).abs() < 1e-9);
        // 180° and -180° are the same angle.
        assert!((spread(&[179.0, -179.0]) - 1.0).abs() < 1e-3);
        assert!((spread(&[0.0, 90.0, 180.0, 270.0]) - 2f64.sqrt().to_degrees()).abs() < 1e-6);
        assert_eq!((torsion_spread(&[], &[at(0.0)]), torsion_spread(&[[0, 1, 2, 3]], &[])), (None, None));
        assert_eq!(torsion_spread(&[[0, 1, 2, 3]], &[vec![[0.0; 3]; 4]]), Some(0.0));
    }
}
