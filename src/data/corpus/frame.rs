//! Coordinate frames: the principal axes, and the frame of the first atoms.
//!
//! A frame is a property of the atoms that the text writes. So a file with hydrogens, its text, and the text of that text all lie
//! in one frame.

use std::array::from_fn;
use std::cmp::Ordering;

mod rounding;

use self::rounding::RoundedPositions;
use super::eigen::{Rounding, diagonalise, turn_rows};
use super::{Conformer, Frame};
use drift_core::Encoding;
use drift_core::chem::elements::{atomic_number, weight_dalton};
use drift_core::encoding::{Fixed, NumberError};
use drift_core::vector::{cross, dot, minus};

type Vector = [f64; 3];
type Matrix = [Vector; 3];

/// Moves atoms into their principal frame by a proper rotation: the centre of mass at the origin, and the axes of inertia on x
/// (smallest moment, so the longest extent), y and z.
///
/// `positions` are in Å. `numbers` are atomic numbers; one outside 1 to 118 has no mass. All given atoms count. GEOM's conformers
/// lie in such a frame, but theirs weighs the hydrogens too, which texts do not have.
///
/// There are four such proper rotations. The one with the smallest angle is taken (the largest trace, then the first in a fixed
/// order). So a conformer that is already in the frame stays unchanged, and the signs of coordinates keep the balance that they
/// have in the file. A rule based on the molecule itself, such as a positive third moment, would make 52.5 to 54 % of the
/// coordinates negative (xtb_moses_aq, etkdg_drugs_test), and the sign matters for drift.
pub fn principal(numbers: &[u8], positions: &mut [[f64; 3]]) {
    let masses = masses(numbers);
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
/// An atom counts as off the line if its direction differs from it by more than 5.7° (a sine of 0.1). If there is no such atom, the
/// atom with the largest angle is taken. If all atoms are on the line, any rotation about it is equally good.
pub fn first_atoms(positions: &mut [[f64; 3]]) {
    let Some(&origin) = positions.first() else { return };
    positions.iter_mut().for_each(|p| *p = minus(*p, origin));
    let Some(x) = positions.get(1).and_then(|&second| unit(second)) else { return };
    let third = third_atom(positions, x);
    let y = third.and_then(|at| unit(off_line(positions[at], x))).unwrap_or_else(|| across(x));
    let rotation = [x, y, cross(x, y)];
    for position in positions.iter_mut() {
        *position = rotation.map(|axis| dot(axis, *position));
    }
    // Coordinates that are zero by the choice of axes are set to exactly zero, not to some 10⁻¹⁷ on either side of a bin edge.
    positions[1] = [positions[1][0], 0.0, 0.0];
    if let Some(at) = third {
        positions[at][2] = 0.0;
    }
}

/// Returns the atom that spans the plane of x and y with the line of the unit vector `x`; `None` if all atoms lie on the line.
fn third_atom(positions: &[Vector], x: Vector) -> Option<usize> {
    let squared_sine = |at: usize| {
        let (p, off) = (positions[at], off_line(positions[at], x));
        // An atom at the origin has no direction.
        if dot(p, p) > 0.0 { dot(off, off) / dot(p, p) } else { 0.0 }
    };
    let rest = 2..positions.len();
    let first_off = rest.clone().find(|at| squared_sine(*at) > LEAST_SINE * LEAST_SINE);
    // The first of equal ones.
    let widest = || rest.rev().max_by(|a, b| squared_sine(*a).total_cmp(&squared_sine(*b)));
    first_off.or_else(widest).filter(|at| squared_sine(*at) > 0.0)
}

/// Returns the part of a vector that is perpendicular to the unit vector `x`.
fn off_line(p: Vector, x: Vector) -> Vector {
    let along = dot(p, x);
    from_fn(|axis| p[axis] - along * x[axis])
}

/// The least sine of the angle at which a direction counts as off the line.
const LEAST_SINE: f64 = 0.1;

/// Returns the unit vector in this direction; `None` for a zero vector.
fn unit(v: Vector) -> Option<Vector> {
    let length = dot(v, v).sqrt();
    (length > 0.0).then(|| v.map(|x| x / length))
}

/// Returns a unit vector perpendicular to the unit vector `x`; for the x axis, the y axis.
fn across(x: Vector) -> Vector {
    // The coordinate axis that is farthest from it.
    let least = if x[0].abs() <= x[1].abs() && x[0].abs() <= x[2].abs() {
        [1.0, 0.0, 0.0]
    } else if x[1].abs() <= x[2].abs() {
        [0.0, 1.0, 0.0]
    } else {
        [0.0, 0.0, 1.0]
    };
    unit(off_line(least, x)).unwrap_or(least)
}

/// Moves atoms into a frame, as [`principal`] and [`first_atoms`] do.
pub(super) fn place(frame: Frame, numbers: &[u8], positions: &mut [Vector]) {
    match frame {
        Frame::Keep => {}
        Frame::Principal => principal(numbers, positions),
        Frame::FirstAtoms => first_atoms(positions),
    }
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
/// A text that lies in the frame already, as far as its rounding tells, is not moved: its values are only converted.
///
/// # Errors
/// A reason: an atom of the skeleton has no element, a value has no coordinate, or a coordinate is out of range.
pub fn rewritten(
    skeleton: &str,
    values: &[[Fixed; 3]],
    frame: Frame,
    (from, to): (Encoding, Encoding),
) -> Result<Vec<[Fixed; 3]>, String> {
    // Between decimals this conversion is exact.
    let kept = || -> Result<Vec<_>, String> {
        let kept: Result<Vec<_>, NumberError> =
            values.iter().map(|values| to.convert(values, from)).collect();
        kept.map_err(|problem| problem.to_string())
    };
    if frame == Frame::Keep {
        return kept();
    }
    let positions: Option<Vec<Vector>> = values.iter().map(|values| from.angstrom(values)).collect();
    let mut positions = positions.ok_or_else(|| NumberError::NoCoordinate.to_string())?;
    // The frame of the first atoms needs no elements.
    let numbers = if frame == Frame::Principal { elements(skeleton)? } else { Vec::new() };
    let rounded = RoundedPositions::new(&positions, values, from);
    let is_there = match frame {
        Frame::Principal => rounded.can_be_principal(&masses(&numbers)),
        _ => rounded.can_be_of_first_atoms(),
    };
    if is_there {
        return kept();
    }
    place(frame, &numbers, &mut positions);
    positions.into_iter().map(|position| fixed(position, to)).collect()
}

/// Returns the masses of atoms, in dalton; 0 for an atomic number outside 1 to 118.
fn masses(numbers: &[u8]) -> Vec<f64> {
    numbers.iter().map(|&number| weight_dalton(number).unwrap_or(0.0)).collect()
}

/// Returns the atomic numbers of a skeleton's atoms.
fn elements(skeleton: &str) -> Result<Vec<u8>, String> {
    let atoms = skeleton.split('[').skip(1).map(|rest| rest.split(']').next().unwrap_or(rest));
    atoms.map(|atom| element(atom).ok_or_else(|| format!("atom [{atom}] has no mass"))).collect()
}

/// Returns the atomic number of the text inside a bracket atom: `13CH3`, `nH`, `C@@H`, `se`.
fn element(atom: &str) -> Option<u8> {
    let atom = atom.trim_start_matches(|c: char| c.is_ascii_digit());
    let second = atom.as_bytes().get(1).is_some_and(u8::is_ascii_lowercase);
    let two = if second { atom.get(..2).and_then(atomic_number) } else { None };
    two.or_else(|| atom.get(..1).and_then(atomic_number))
}

/// Returns the inertia tensor about the origin, in dalton Å².
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

/// Returns the eigenvectors of a symmetric matrix as rows, by ascending eigenvalue. A diagonal matrix gives the unit vectors, so ties
/// keep the file's axes.
fn principal_axes(mut a: Matrix) -> Matrix {
    let mut vectors: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    diagonalise(&mut a, Rounding::Hypot, |p, q, cosine, sine| turn_rows(&mut vectors, p, q, cosine, sine));
    let mut order = [0, 1, 2];
    // A stable sort: equal moments keep the order of the file's axes.
    order.sort_by(|&i, &j| a[i][i].partial_cmp(&a[j][j]).unwrap_or(Ordering::Equal));
    order.map(|i| vectors[i])
}

/// Returns the one with the largest trace among the four proper rotations that have these rows up to sign.
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

/// Returns the values of a position given in Å.
pub(super) fn fixed(position: [f64; 3], encoding: Encoding) -> Result<[Fixed; 3], String> {
    let at = |axis: usize| {
        let x = position[axis];
        encoding.number().quantize(x, axis).map_err(|e| format!("{x}: {e}"))
    };
    Ok([at(0)?, at(1)?, at(2)?])
}

#[cfg(test)]
mod tests;
