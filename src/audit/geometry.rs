//! Generated conformers against reference conformers: bond lengths, RMSD after alignment, coverage and matching.

use nalgebra::{Matrix3, Vector3};
use serde::Serialize;

use crate::text::Fixed;
use crate::text::number::angstrom;
use crate::text::symmetry::MolecularGraph;

/// A conformer counts as found if another lies within this RMSD, in Å: the users' threshold for GEOM.
pub const THRESHOLD_ANGSTROM: f64 = 0.75;

/// A position, in Å.
pub type Point = [f64; 3];

/// Positions of a text's blocks, in Å.
pub fn points(coordinates: &[[Fixed; 3]]) -> Vec<Point> {
    coordinates.iter().map(|block| block.map(angstrom)).collect()
}

/// The least RMSD of `a` against `b` over all proper rotations and translations, in Å; 0 for no atoms.
///
/// `sqrt(max(0, |a|² + |b|² - 2 (σ₁ + σ₂ ± σ₃)) / n)` with both centred, σ the singular values of `aᵀb` and the sign
/// that of its determinant: W. Kabsch, Acta Cryst. A 34 (1978) 827.
///
/// # Panics
/// If they differ in length.
pub fn rmsd(a: &[Point], b: &[Point]) -> f64 {
    assert_eq!(a.len(), b.len(), "both have the same atoms");
    if a.is_empty() {
        return 0.0;
    }
    let (a, b) = (centred(a), centred(b));
    let mut covariance = Matrix3::zeros();
    let mut squares = 0.0;
    for (a, b) in a.iter().zip(&b) {
        covariance += a * b.transpose();
        squares += a.norm_squared() + b.norm_squared();
    }
    let mut singular = covariance.singular_values();
    singular.as_mut_slice().sort_unstable_by(|x, y| y.total_cmp(x));
    let sign = if covariance.determinant() < 0.0 { -1.0 } else { 1.0 };
    let overlap = singular[0] + singular[1] + sign * singular[2];
    ((squares - 2.0 * overlap).max(0.0) / a.len() as f64).sqrt()
}

fn centred(points: &[Point]) -> Vec<Vector3<f64>> {
    let points: Vec<Vector3<f64>> = points.iter().map(|&point| Vector3::from(point)).collect();
    let centre = points.iter().sum::<Vector3<f64>>() / points.len() as f64;
    points.into_iter().map(|point| point - centre).collect()
}

/// The least RMSD over all renumberings that leave the molecule as it is, in Å.
pub fn best_rmsd(a: &[Point], b: &[Point], symmetries: &[Vec<usize>]) -> f64 {
    let renumbered = |permutation: &Vec<usize>| {
        let moved: Vec<Point> = permutation.iter().map(|&atom| b[atom]).collect();
        rmsd(a, &moved)
    };
    symmetries.iter().map(renumbered).fold(f64::INFINITY, f64::min)
}

/// Lengths of bonds, in Å.
fn lengths(points: &[Point], bonds: &[[usize; 2]]) -> Vec<f64> {
    let length = |&[a, b]: &[usize; 2]| (Vector3::from(points[a]) - Vector3::from(points[b])).norm();
    bonds.iter().map(length).collect()
}

/// What the reference conformers of a molecule say of a generated one.
#[derive(Debug, Clone)]
pub struct Reference {
    symmetries: Vec<Vec<usize>>,
    bonds: Vec<[usize; 2]>,
    /// Mean length of each bond over the reference conformers.
    lengths: Vec<f64>,
    conformers: Vec<Vec<Point>>,
}

/// The generated conformers of one molecule against its reference conformers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Matching {
    /// For each generated conformer the mean absolute difference of its bond lengths from the reference means, in Å;
    /// none for a molecule without bonds.
    pub bond_error_angstrom: Vec<Option<f64>>,
    /// For each generated conformer the RMSD to the nearest reference conformer, in Å.
    pub nearest_reference_angstrom: Vec<f64>,
    /// For each reference conformer the RMSD to the nearest generated one, in Å.
    pub nearest_generated_angstrom: Vec<f64>,
}

impl Reference {
    /// The reference `conformers` of the molecule `graph`, atoms in SMILES order.
    ///
    /// None without a conformer, or if one has another number of atoms than the graph.
    pub fn new(graph: &MolecularGraph, conformers: Vec<Vec<Point>>) -> Option<Self> {
        if conformers.is_empty() || conformers.iter().any(|points| points.len() != graph.atoms()) {
            return None;
        }
        let bonds = graph.bonds.clone();
        let mut sums = vec![0.0; bonds.len()];
        for points in &conformers {
            for (sum, length) in sums.iter_mut().zip(lengths(points, &bonds)) {
                *sum += length;
            }
        }
        let lengths = sums.into_iter().map(|sum| sum / conformers.len() as f64).collect();
        Some(Reference { symmetries: graph.symmetries(), bonds, lengths, conformers })
    }

    /// How many heavy atoms.
    pub fn atoms(&self) -> usize {
        self.conformers[0].len()
    }

    /// Sets `generated` against the reference; every one must have [`Reference::atoms`] positions.
    ///
    /// The nearest distances give COV and MAT of both directions: P. Ganea et al., GeoMol, NeurIPS 2021, section 5.
    pub fn matching(&self, generated: &[Vec<Point>]) -> Matching {
        let mut nearest_generated = vec![f64::INFINITY; self.conformers.len()];
        let mut matching = Matching {
            bond_error_angstrom: generated.iter().map(|points| self.bond_error(points)).collect(),
            nearest_reference_angstrom: Vec::with_capacity(generated.len()),
            nearest_generated_angstrom: Vec::new(),
        };
        for points in generated {
            let mut nearest = f64::INFINITY;
            for (reference, nearest_generated) in self.conformers.iter().zip(&mut nearest_generated) {
                let distance = best_rmsd(points, reference, &self.symmetries);
                nearest = nearest.min(distance);
                *nearest_generated = nearest_generated.min(distance);
            }
            matching.nearest_reference_angstrom.push(nearest);
        }
        if !generated.is_empty() {
            matching.nearest_generated_angstrom = nearest_generated;
        }
        matching
    }

    fn bond_error(&self, points: &[Point]) -> Option<f64> {
        let differences = lengths(points, &self.bonds).into_iter().zip(&self.lengths);
        let sum: f64 = differences.map(|(length, reference)| (length - reference).abs()).sum();
        (!self.bonds.is_empty()).then(|| sum / self.bonds.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lactic acid of ETKDG, heavy atoms, and the same turned, shifted and disturbed.
    const A: [Point; 6] = [
        [-1.3, 1.1, 0.2],
        [-0.5, -0.1, 0.5],
        [-1.2, -1.3, 0.1],
        [0.9, -0.1, -0.1],
        [1.5, 1.0, -0.3],
        [1.4, -1.3, -0.4],
    ];

    fn turned(points: &[Point]) -> Vec<Point> {
        let rotation = nalgebra::Rotation3::from_euler_angles(0.4, -1.1, 2.3);
        let moved = |&point: &Point| rotation * Vector3::from(point) + Vector3::new(3.0, -2.0, 0.5);
        points.iter().map(|point| moved(point).into()).collect()
    }

    #[test]
    fn rotation_and_translation_do_not_matter_but_reflection_does() {
        assert!(rmsd(&A, &turned(&A)) < 1e-7);
        let mirrored: Vec<Point> = A.iter().map(|[x, y, z]| [*x, *y, -z]).collect();
        assert!(rmsd(&A, &mirrored) > 0.1);
        assert!(rmsd(&A, &turned(&mirrored)) - rmsd(&A, &mirrored) < 1e-9);
        assert_eq!(rmsd(&[], &[]), 0.0);
        assert!(rmsd(&[[1.0, 2.0, 3.0]], &[[0.0, 0.0, 0.0]]) < 1e-12);
    }

    #[test]
    fn no_rotation_does_better() {
        use rand::{Rng, SeedableRng};
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(11);
        let b: Vec<Point> = turned(&A).iter().map(|p| p.map(|x| x + rng.random_range(-0.5..0.5))).collect();
        let best = rmsd(&A, &b);
        let (a, b) = (centred(&A), centred(&b));
        let distance = |rotation: &nalgebra::Rotation3<f64>| {
            let sum: f64 = a.iter().zip(&b).map(|(a, b)| (rotation * a - b).norm_squared()).sum();
            (sum / a.len() as f64).sqrt()
        };
        let mut least = f64::INFINITY;
        let mut at = nalgebra::Rotation3::identity();
        // Random descent comes as near as one likes, and never below.
        for step in 0..20_000 {
            let size = 3.0 * (1.0 - f64::from(step) / 20_000.0).powi(3) + 1e-4;
            let mut angle = || rng.random_range(-size..size);
            let next = nalgebra::Rotation3::from_euler_angles(angle(), angle(), angle()) * at;
            if distance(&next) < least {
                (least, at) = (distance(&next), next);
            }
        }
        assert!(least >= best - 1e-9 && least - best < 1e-3, "{least} {best}");
    }

    #[test]
    fn equal_atoms_may_change_places() {
        let graph = MolecularGraph::new("CC(C)O").unwrap();
        let a = vec![[1.4, 0.0, 0.0], [0.0, 0.0, 0.5], [-0.7, 1.2, 0.0], [-0.7, -1.2, 0.1]];
        let swapped = vec![a[2], a[1], a[0], a[3]];
        assert!(rmsd(&a, &swapped) > 0.1);
        let reference = Reference::new(&graph, vec![a.clone()]).unwrap();
        let matching = reference.matching(&[swapped, turned(&a)]);
        assert!(matching.nearest_reference_angstrom.iter().all(|distance| *distance < 1e-7));
        assert!(matching.nearest_generated_angstrom[0] < 1e-7);
        // Bonds are matched by number: a swap of equal atoms changes which length is which.
        assert!(matching.bond_error_angstrom[1].unwrap() < 1e-9);
    }

    #[test]
    fn bond_errors_are_means_over_bonds() {
        let graph = MolecularGraph::new("CCO").unwrap();
        let chain = |first: f64, second: f64| vec![[0.0; 3], [first, 0.0, 0.0], [first, second, 0.0]];
        let reference = Reference::new(&graph, vec![chain(1.5, 1.4), chain(1.6, 1.4)]).unwrap();
        let error = reference.matching(&[chain(1.65, 1.2)]).bond_error_angstrom[0].unwrap();
        assert!((error - 0.15).abs() < 1e-12, "{error}");
        assert_eq!(reference.matching(&[]).nearest_generated_angstrom, Vec::<f64>::new());
        assert!(Reference::new(&graph, vec![]).is_none());
        assert!(Reference::new(&graph, vec![vec![[0.0; 3]]]).is_none());
    }
}
