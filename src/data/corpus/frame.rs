//! Coordinate frames: the principal axes, in which GEOM's conformers are given, and the frame of the first atoms.

use std::array::from_fn;
use std::cmp::Ordering;

use super::eigen::{Rounding, diagonalise, turn_rows};
use super::{Conformer, Frame};
use drift_core::chem::elements::{atomic_number, weight_dalton};
use drift_core::encoding::{Encoding, Fixed, NumberError};
use drift_core::vector::{cross, dot, minus};

type Vector = [f64; 3];
type Matrix = [Vector; 3];

/// Moves atoms into their principal frame by a proper rotation: the centre of mass at the origin, and the axes of inertia on x
/// (smallest moment, so the longest extent), y and z.
///
/// `positions` are in Å. `numbers` are atomic numbers; one outside 1 to 118 has no mass. All given atoms count, hydrogens too.
///
/// There are four such proper rotations. The one with the smallest angle is taken (the largest trace, then the first in a fixed
/// order). So a conformer that is already in the frame stays unchanged, and the signs of coordinates keep the balance that they
/// have in the file. A rule based on the molecule itself, such as a positive third moment, would make 52.5 to 54 % of the
/// coordinates negative (xtb_moses_aq, etkdg_drugs_test), and the sign matters for drift.
pub fn principal(numbers: &[u8], positions: &mut [[f64; 3]]) {
    let masses: Vec<f64> = numbers.iter().map(|&n| weight_dalton(n).unwrap_or(0.0)).collect();
    let total: f64 = masses.iter().sum();
    // Without mass there is no centre of mass.
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

/// Moves atoms into the frame of the first ones by a proper rotation: the first atom at the origin, the second on the positive x
/// axis, and the next one off their line in the half plane of x and positive y.
///
/// `positions` are in Å, in the order of the text. A model that writes atoms one by one knows this frame from the atoms written so
/// far, while the principal axes depend on atoms still to come. A mirror image differs only in the signs of z.
///
/// An atom counts as off the line if its direction differs from it by more than 5.7° (a sine of 0.1). If there is no such atom, any
/// rotation about the line is equally good.
pub fn first_atoms(positions: &mut [[f64; 3]]) {
    let Some(&origin) = positions.first() else { return };
    positions.iter_mut().for_each(|p| *p = minus(*p, origin));
    let Some(x) = positions.get(1).and_then(|&second| unit(second)) else { return };
    let off = |p: Vector| {
        let along = dot(p, x);
        let off: Vector = from_fn(|axis| p[axis] - along * x[axis]);
        (dot(off, off) > LEAST_SINE * LEAST_SINE * dot(p, p)).then(|| unit(off)).flatten()
    };
    let third = (2..positions.len()).find_map(|at| off(positions[at]).map(|y| (at, y)));
    let y = third.map_or_else(|| across(x), |(_, y)| y);
    let rotation = [x, y, cross(x, y)];
    for position in positions.iter_mut() {
        *position = rotation.map(|axis| dot(axis, *position));
    }
    // Coordinates that are zero by the choice of axes are set to exactly zero, not to some 10⁻¹⁷ on either side of a bin edge.
    positions[1] = [positions[1][0], 0.0, 0.0];
    if let Some((at, _)) = third {
        positions[at][2] = 0.0;
    }
}

/// The least sine of the angle at which a direction counts as off the line.
const LEAST_SINE: f64 = 0.1;

/// The unit vector in this direction; `None` for a zero vector.
fn unit(v: Vector) -> Option<Vector> {
    let length = dot(v, v).sqrt();
    (length > 0.0).then(|| v.map(|x| x / length))
}

/// A unit vector perpendicular to the unit vector `x`.
fn across(x: Vector) -> Vector {
    // The coordinate axis that is farthest from it.
    let least = if x[0].abs() <= x[1].abs() && x[0].abs() <= x[2].abs() {
        [1.0, 0.0, 0.0]
    } else if x[1].abs() <= x[2].abs() {
        [0.0, 1.0, 0.0]
    } else {
        [0.0, 0.0, 1.0]
    };
    unit(cross(x, least)).unwrap_or(least)
}

/// Moves a conformer into `frame`, and converts its values to another encoding, as [`rewritten`] does. With [`Frame::Keep`] it
/// changes nothing, because the values are in that encoding already.
///
/// # Errors
/// As [`rewritten`].
pub(super) fn turn(
    conformer: &mut Conformer,
    frame: Frame,
    encodings: (Encoding, Encoding),
) -> Result<(), String> {
    if frame != Frame::Keep {
        conformer.coordinates = rewritten(&conformer.skeleton, &conformer.coordinates, frame, encodings)?;
    }
    Ok(())
}

/// Converts the values of a text to another frame and encoding: `[atoms, 3]`, for the encodings `(from, to)`.
///
/// A text has hardly any hydrogens, so the principal axes are those of its heavy atoms.
///
/// # Errors
/// A reason: an atom of the skeleton has no element, a value has no coordinate, or a coordinate is out of range.
pub fn rewritten(
    skeleton: &str,
    values: &[[Fixed; 3]],
    frame: Frame,
    (from, to): (Encoding, Encoding),
) -> Result<Vec<[Fixed; 3]>, String> {
    if frame == Frame::Keep {
        // Between decimals this conversion is exact.
        let kept: Result<Vec<_>, NumberError> =
            values.iter().map(|values| to.convert(values, from)).collect();
        return kept.map_err(|problem| problem.to_string());
    }
    let positions: Option<Vec<Vector>> = values.iter().map(|values| from.angstrom(values)).collect();
    let mut positions = positions.ok_or_else(|| NumberError::NoCoordinate.to_string())?;
    match frame {
        Frame::Keep => {}
        Frame::Principal => principal(&elements(skeleton)?, &mut positions),
        Frame::FirstAtoms => first_atoms(&mut positions),
    }
    positions.into_iter().map(|position| fixed(position, to)).collect()
}

/// The atomic numbers of a skeleton's atoms.
fn elements(skeleton: &str) -> Result<Vec<u8>, String> {
    let atoms = skeleton.split('[').skip(1).map(|rest| rest.split(']').next().unwrap_or(rest));
    atoms.map(|atom| element(atom).ok_or_else(|| format!("atom [{atom}] has no mass"))).collect()
}

/// The atomic number of the text inside a bracket atom: `13CH3`, `nH`, `C@@H`, `se`.
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

/// The eigenvectors of a symmetric matrix as rows, by ascending eigenvalue. A diagonal matrix gives the unit vectors, so ties keep
/// the file's axes.
fn principal_axes(mut a: Matrix) -> Matrix {
    let mut vectors: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    diagonalise(&mut a, Rounding::Hypot, |p, q, cosine, sine| turn_rows(&mut vectors, p, q, cosine, sine));
    let mut order = [0, 1, 2];
    // A stable sort: equal moments keep the order of the file's axes.
    order.sort_by(|&i, &j| a[i][i].partial_cmp(&a[j][j]).unwrap_or(Ordering::Equal));
    order.map(|i| vectors[i])
}

/// The one with the largest trace among the four proper rotations that have these rows up to sign.
fn least_turn(axes: Matrix) -> Matrix {
    let handedness = dot(cross(axes[0], axes[1]), axes[2]).signum();
    let mut best = (f64::NEG_INFINITY, axes);
    for (x, y) in [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)] {
        // The third sign follows from the others, because a proper rotation must not mirror.
        let signs = [x, y, x * y * handedness];
        let rotation: Matrix = from_fn(|i| axes[i].map(|v| v * signs[i]));
        let trace: f64 = (0..3).map(|i| rotation[i][i]).sum();
        // Ties within rounding go to the first, so that equal molecules are rotated equally.
        if trace > best.0 + 1e-9 {
            best = (trace, rotation);
        }
    }
    best.1
}

/// The values of a position given in Å.
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
    use drift_core::vector::{distance, triple};

    const NUMBERS: [u8; 5] = [6, 7, 8, 1, 16];
    const POSITIONS: [Vector; 5] =
        [[0.1, 2.0, -0.7], [1.4, -0.3, 3.3], [-2.2, 0.9, 0.4], [5.0, 1.0, 1.0], [0.0, -1.5, -0.2]];

    /// Checks that [`POSITIONS`] have the same distances after they were `turned`.
    fn check_distances(turned: &[Vector; 5]) {
        for i in 0..5 {
            for j in 0..5 {
                let (before, after) = (distance(POSITIONS[i], POSITIONS[j]), distance(turned[i], turned[j]));
                assert!((before - after).abs() < 1e-12);
            }
        }
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
        check_distances(&turned);
        let volume = |p: &[Vector; 5]| {
            let edge = |k: usize| minus(p[k], p[0]);
            triple(edge(3), edge(1), edge(2))
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
    fn the_first_atoms_span_the_frame() {
        let mut turned = POSITIONS;
        first_atoms(&mut turned);
        assert_eq!(turned[0], [0.0; 3]);
        assert!(turned[1][0] > 0.0 && turned[1][1..] == [0.0, 0.0]);
        assert!(turned[2][1] > 0.0 && turned[2][2] == 0.0);
        check_distances(&turned);
        let mut mirrored = POSITIONS.map(|[x, y, z]| [-x, y, z]);
        first_atoms(&mut mirrored);
        for (a, b) in turned.iter().zip(mirrored) {
            assert!(
                distance(*a, [b[0], b[1], -b[2]]) < 1e-12,
                "a mirror image differs in the signs of z alone"
            );
        }
        let mut twice = turned;
        first_atoms(&mut twice);
        assert!(
            turned.iter().zip(&twice).all(|(a, b)| distance(*a, *b) < 1e-12),
            "what lies in the frame stays"
        );
    }

    #[test]
    fn atoms_on_the_line_of_the_first_two_span_no_plane() {
        // The third atom is on the line but for 10⁻³ Å; the fourth is the first that is off it.
        let mut nitrile =
            [[0.0, 0.0, 0.0], [0.0, 0.0, 1.2], [0.001, 0.0, 2.6], [0.0, -1.4, 3.1], [0.0, 0.0, 9.0]];
        first_atoms(&mut nitrile);
        assert!(nitrile[3][1] > 1.39 && nitrile[3][2] == 0.0);
        assert!((nitrile[2][2].abs() - 0.001).abs() < 1e-9);
        let mut line = [[1.0, 1.0, 1.0], [1.0, 1.0, 2.0], [1.0, 1.0, 3.5]];
        first_atoms(&mut line);
        assert_eq!(line, [[0.0; 3], [1.0, 0.0, 0.0], [2.5, 0.0, 0.0]]);
        for mut few in [vec![], vec![[1.0, 2.0, 3.0]], vec![[1.0, 2.0, 3.0]; 2]] {
            first_atoms(&mut few);
            assert!(few.iter().all(|p| *p == [0.0; 3]));
        }
    }

    #[test]
    fn elements_of_bracket_atoms() {
        let skeleton = "[13CH3]<>[nH]<>[C@@H]<>[se]<>[Cl]<>[NH2+]<>[Sc]<>[2H]<>[Cu+2]<>";
        assert_eq!(elements(skeleton), Ok(vec![6, 7, 6, 34, 17, 7, 21, 1, 29]));
        assert!(elements("[*]<>").is_err());
    }
}
