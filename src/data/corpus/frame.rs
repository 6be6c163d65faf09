//! The principal-axis frame, in which GEOM's conformers lie.

use std::cmp::Ordering;

use super::eigen::{Rounding, diagonalise, turn_rows};
use super::{Conformer, Frame, ReadOptions};
use drift_core::chem::elements::{atomic_number, weight_dalton};
use drift_core::encoding::{Encoding, Fixed, NumberError};

type Vector = [f64; 3];
type Matrix = [Vector; 3];

/// Moves atoms into their principal frame: the centre of mass at the origin, the axes of inertia on x (smallest
/// moment, so the longest extent), y and z, by a proper rotation.
///
/// `positions` are in Å; `numbers` are atomic numbers, and one beyond 1 to 118 weighs nothing. All atoms given count,
/// hydrogens too.
///
/// Of the four proper rotations that do so, the one that turns least is taken (the largest trace, then the first in a
/// fixed order). So a conformer that lies in the frame already stays as it is, and the signs of coordinates keep
/// the balance that they have in the file: a rule on the molecule itself, such as a positive third moment, makes
/// 52.5 to 54 % of the coordinates negative (xtb_moses_aq, etkdg_drugs_test), and the sign is what drift is about.
pub fn principal(numbers: &[u8], positions: &mut [[f64; 3]]) {
    let masses: Vec<f64> = numbers.iter().map(|&n| weight_dalton(n).unwrap_or(0.0)).collect();
    let total: f64 = masses.iter().sum();
    // Nothing has a centre of mass then.
    if total <= 0.0 || masses.len() != positions.len() {
        return;
    }
    for axis in 0..3 {
        let moment: f64 = masses.iter().zip(positions.iter()).map(|(m, p)| m * p[axis]).sum();
        positions.iter_mut().for_each(|p| p[axis] -= moment / total);
    }
    let rotation = least_turn(principal_axes(inertia(&masses, positions)));
    for position in positions {
        *position = rotation.map(|axis| dot(axis, *position));
    }
}

/// `conformer` in the frame of `options`; the text gives no hydrogens but a few, so its heavy atoms are what is weighed.
///
/// # Errors
/// A reason: an atom of the skeleton has no element, or a coordinate leaves the range.
pub(super) fn turn(conformer: &mut Conformer, options: &ReadOptions) -> Result<(), String> {
    if options.frame == Frame::Keep {
        return Ok(());
    }
    let encoding = options.reading.encoding;
    let numbers = elements(&conformer.skeleton)?;
    let positions: Option<Vec<Vector>> = conformer.coordinates.iter().map(|c| encoding.angstrom(c)).collect();
    let mut positions = positions.ok_or_else(|| NumberError::NoCoordinate.to_string())?;
    principal(&numbers, &mut positions);
    for (coordinate, position) in conformer.coordinates.iter_mut().zip(positions) {
        *coordinate = fixed(position, encoding)?;
    }
    Ok(())
}

/// The atomic numbers of a skeleton's atoms.
fn elements(skeleton: &str) -> Result<Vec<u8>, String> {
    let atoms = skeleton.split('[').skip(1).map(|rest| rest.split(']').next().unwrap_or(rest));
    atoms.map(|atom| element(atom).ok_or_else(|| format!("atom [{atom}] has no mass"))).collect()
}

/// The atomic number of a bracket atom's inside: `13CH3`, `nH`, `C@@H`, `se`.
fn element(atom: &str) -> Option<u8> {
    let atom = atom.trim_start_matches(|c: char| c.is_ascii_digit());
    let second = atom.as_bytes().get(1).is_some_and(u8::is_ascii_lowercase);
    let two = if second { atom.get(..2).and_then(atomic_number) } else { None };
    two.or_else(|| atom.get(..1).and_then(atomic_number))
}

/// The inertia tensor about the origin, in dalton Å².
fn inertia(masses: &[f64], positions: &[Vector]) -> Matrix {
    let mut tensor = [[0.0; 3]; 3];
    for (&mass, &p) in masses.iter().zip(positions) {
        for (i, row) in tensor.iter_mut().enumerate() {
            row[i] += mass * dot(p, p);
            for (j, value) in row.iter_mut().enumerate() {
                *value -= mass * p[i] * p[j];
            }
        }
    }
    tensor
}

/// The eigenvectors of a symmetric matrix as rows, by ascending eigenvalue. A diagonal matrix gives the unit vectors, so ties
/// keep the file's axes.
fn principal_axes(mut a: Matrix) -> Matrix {
    let mut vectors: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    diagonalise(&mut a, Rounding::Hypot, |p, q, cosine, sine| turn_rows(&mut vectors, p, q, cosine, sine));
    let mut order = [0, 1, 2];
    // A stable sort: equal moments keep the order of the file's axes.
    order.sort_by(|&i, &j| a[i][i].partial_cmp(&a[j][j]).unwrap_or(Ordering::Equal));
    order.map(|i| vectors[i])
}

/// Of the four proper rotations with these rows, up to sign, the one with the largest trace.
fn least_turn(axes: Matrix) -> Matrix {
    let handedness = dot(cross(axes[0], axes[1]), axes[2]).signum();
    let mut best = (f64::NEG_INFINITY, axes);
    for (x, y) in [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)] {
        // The third sign follows from the others: a rotation must not mirror.
        let signs = [x, y, x * y * handedness];
        let rotation: Matrix = std::array::from_fn(|i| axes[i].map(|v| v * signs[i]));
        let trace: f64 = (0..3).map(|i| rotation[i][i]).sum();
        // Ties by rounding go to the first, so that the same molecule turns the same way.
        if trace > best.0 + 1e-9 {
            best = (trace, rotation);
        }
    }
    best.1
}

fn dot(a: Vector, b: Vector) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: Vector, b: Vector) -> Vector {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// A position in Å as an encoding writes it.
pub(super) fn fixed(position: [f64; 3], encoding: Encoding) -> Result<[Fixed; 3], String> {
    let at = |axis: usize| {
        let x = position[axis];
        encoding.number().quantize(x, axis).map_err(|e| format!("{x}: {e}"))
    };
    Ok([at(0)?, at(1)?, at(2)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: [u8; 5] = [6, 7, 8, 1, 16];
    const POSITIONS: [Vector; 5] =
        [[0.1, 2.0, -0.7], [1.4, -0.3, 3.3], [-2.2, 0.9, 0.4], [5.0, 1.0, 1.0], [0.0, -1.5, -0.2]];

    fn distance(a: Vector, b: Vector) -> f64 {
        (0..3).map(|i| (a[i] - b[i]).powi(2)).sum::<f64>().sqrt()
    }

    #[test]
    fn centre_axes_distances_and_handedness() {
        let mut turned = POSITIONS;
        principal(&NUMBERS, &mut turned);
        let masses = NUMBERS.map(|n| weight_dalton(n).unwrap());
        for axis in 0..3 {
            let centre: f64 = masses.iter().zip(&turned).map(|(m, p)| m * p[axis]).sum();
            assert!(centre.abs() < 1e-9);
        }
        let tensor = inertia(&masses, &turned);
        assert!(tensor[0][0] <= tensor[1][1] && tensor[1][1] <= tensor[2][2]);
        assert!(tensor[0][1].abs().max(tensor[0][2].abs()).max(tensor[1][2].abs()) < 1e-9);
        for i in 0..5 {
            for j in 0..5 {
                let (before, after) = (distance(POSITIONS[i], POSITIONS[j]), distance(turned[i], turned[j]));
                assert!((before - after).abs() < 1e-12);
            }
        }
        let volume = |p: &[Vector; 5]| {
            let edge = |k: usize| [p[k][0] - p[0][0], p[k][1] - p[0][1], p[k][2] - p[0][2]];
            dot(cross(edge(1), edge(2)), edge(3))
        };
        assert!((volume(&POSITIONS) - volume(&turned)).abs() < 1e-9, "a mirror image");
    }

    #[test]
    fn what_lies_in_the_frame_stays() {
        let mut once = POSITIONS;
        principal(&NUMBERS, &mut once);
        let mut twice = once;
        principal(&NUMBERS, &mut twice);
        assert!(once.iter().zip(&twice).all(|(a, b)| distance(*a, *b) < 1e-12));
    }

    #[test]
    fn degenerate_molecules() {
        let mut atom = [[1.0, 2.0, 3.0]];
        principal(&[6], &mut atom);
        assert!(distance(atom[0], [0.0; 3]) < 1e-12);
        let mut linear = [[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]];
        principal(&[6, 6], &mut linear);
        assert!((linear[0][0].abs() - 1.0).abs() < 1e-12, "the axis goes to x");
        principal(&[], &mut []);
        let mut dummy = [[1.0, 0.0, 0.0]];
        principal(&[0], &mut dummy);
        assert_eq!(dummy, [[1.0, 0.0, 0.0]]);
    }

    #[test]
    fn elements_of_bracket_atoms() {
        let skeleton = "[13CH3]<>[nH]<>[C@@H]<>[se]<>[Cl]<>[NH2+]<>[Sc]<>[2H]<>[Cu+2]<>";
        assert_eq!(elements(skeleton), Ok(vec![6, 7, 6, 34, 17, 7, 21, 1, 29]));
        assert!(elements("[*]<>").is_err());
    }
}
