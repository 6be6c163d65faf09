//! Conformers from bare atoms: the builder that formats without text share.
//!
//! Atoms go in with hydrogens where the file has them (they weigh in for [`Frame::Principal`]) and a conformer of
//! the heavy atoms comes out, in file order, with a chain of bare atoms for its skeleton.

use std::sync::Arc;

use super::collect::Finished;
use super::frame::{self, fixed};
use super::{AtomOrder, Conformer, Frame, ReadOptions};
use crate::text::elements::{HYDROGEN, symbol};
use crate::text::number::{NumberError, truncate_decimal, truncate_f32, truncate_f64};
use crate::text::{Fixed, Precision, Written};

/// A conformer of the heavy atoms among `numbers`, in their order; hydrogens are left out.
///
/// # Errors
/// A reason, for [`super::Skipped`]: no heavy atom, an unknown element, or lists of different lengths.
pub fn from_elements(
    molecule: Arc<str>,
    numbers: &[u8],
    positions: &[[Fixed; 3]],
) -> Result<Conformer, String> {
    if numbers.len() != positions.len() {
        return Err(format!("{} elements but {} positions", numbers.len(), positions.len()));
    }
    let mut skeleton = String::with_capacity(numbers.len() * 5);
    let mut coordinates = Vec::with_capacity(numbers.len());
    for (&number, &position) in numbers.iter().zip(positions) {
        let symbol = symbol(number).ok_or_else(|| format!("no element has the number {number}"))?;
        if number != HYDROGEN {
            skeleton.extend(["[", symbol, "]<>"]);
            coordinates.push(position);
        }
    }
    if coordinates.is_empty() {
        return Err("no heavy atom".to_owned());
    }
    let skeleton = skeleton.into();
    Ok(Conformer { molecule, skeleton, coordinates, order: AtomOrder::File, written: Written::ANY, id: None })
}

/// Collects the atoms of one molecule after another; hydrogens too.
///
/// In [`Frame::Keep`] numbers are truncated as they come, exactly (`f32` and decimal text keep their own digits); in
/// [`Frame::Principal`] they are held in double precision until the molecule is turned.
///
/// Usage: [`push_text`](Self::push_text), [`push_f32`](Self::push_f32) or [`push_f64`](Self::push_f64) per atom,
/// [`finish`](Self::finish) per molecule, [`clear`](Self::clear) after a bad one.
#[derive(Debug)]
pub struct Atoms {
    frame: Frame,
    precision: Precision,
    numbers: Vec<u8>,
    fixed: Vec<[Fixed; 3]>,
    angstrom: Vec<[f64; 3]>,
}

impl Atoms {
    /// No atoms yet; molecules come out in the frame and with the decimals of `options`.
    pub fn new(options: &ReadOptions) -> Self {
        let (frame, precision) = (options.frame, options.reading.precision);
        Atoms { frame, precision, numbers: Vec::new(), fixed: Vec::new(), angstrom: Vec::new() }
    }

    /// How many atoms there are, with hydrogens.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Whether all lie in the plane z = 0 (within 10⁻⁴ Å).
    pub fn is_flat(&self) -> bool {
        self.fixed.iter().all(|p| p[2] == 0) && self.angstrom.iter().all(|p| p[2].abs() < 1e-4)
    }

    /// Forgets the atoms.
    pub fn clear(&mut self) {
        self.numbers.clear();
        self.fixed.clear();
        self.angstrom.clear();
    }

    /// Adds an atom whose position, in Å, was written as decimal text.
    ///
    /// # Errors
    /// A reason: not a number, not finite, or or beyond the range.
    pub fn push_text(&mut self, number: u8, xyz: [&str; 3]) -> Result<(), String> {
        let at = |text: &str| {
            truncate_decimal(text, self.precision)
                .map_err(|e| format!("{}: {e}", crate::error::excerpt(text.as_bytes())))
        };
        let fixed = [at(xyz[0])?, at(xyz[1])?, at(xyz[2])?];
        if self.frame == Frame::Keep {
            self.fixed.push(fixed);
        } else {
            // Rust's own parser takes what `truncate_decimal` takes; the fallback loses less than the last decimal.
            let exact =
                |axis: usize| xyz[axis].trim().parse().unwrap_or(self.precision.angstrom(fixed[axis]));
            self.angstrom.push([exact(0), exact(1), exact(2)]);
        }
        self.numbers.push(number);
        Ok(())
    }

    /// Adds an atom with a position in Å.
    ///
    /// # Errors
    /// A reason: not finite, or or beyond the range.
    pub fn push_f32(&mut self, number: u8, xyz: [f32; 3]) -> Result<(), String> {
        self.push(number, xyz.map(f64::from), xyz.map(|x| truncate_f32(x, self.precision)))
    }

    /// Adds an atom with a position in Å.
    ///
    /// # Errors
    /// A reason: not finite, or or beyond the range.
    pub fn push_f64(&mut self, number: u8, xyz: [f64; 3]) -> Result<(), String> {
        self.push(number, xyz, xyz.map(|x| truncate_f64(x, self.precision)))
    }

    fn push(
        &mut self,
        number: u8,
        exact: [f64; 3],
        fixed: [Result<Fixed, NumberError>; 3],
    ) -> Result<(), String> {
        let mut values = [0; 3];
        for (axis, value) in fixed.into_iter().enumerate() {
            values[axis] = value.map_err(|e| format!("atom {}: {}: {e}", self.len() + 1, exact[axis]))?;
        }
        match self.frame {
            Frame::Keep => self.fixed.push(values),
            Frame::Principal => self.angstrom.push(exact),
        }
        self.numbers.push(number);
        Ok(())
    }

    /// The conformer of the atoms since the last molecule, which are then forgotten, whatever comes out.
    ///
    /// # Errors
    /// A reason, as [`from_elements`] gives.
    pub(super) fn finish(&mut self, molecule: Arc<str>) -> Result<Finished, String> {
        let conformer = self.turned().and_then(|()| from_elements(molecule, &self.numbers, &self.fixed));
        self.clear();
        conformer.map(Finished::from)
    }

    /// In the principal frame, turns the positions and truncates them.
    fn turned(&mut self) -> Result<(), String> {
        if self.frame == Frame::Principal {
            frame::principal(&self.numbers, &mut self.angstrom);
            for position in &self.angstrom {
                self.fixed.push(fixed(*position, self.precision)?);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hydrogens_are_left_out() {
        let conformer = from_elements("CO".into(), &[6, 1, 8], &[[1, 2, 3], [4, 5, 6], [7, 8, 9]]).unwrap();
        assert_eq!(&*conformer.skeleton, "[C]<>[O]<>");
        assert_eq!(conformer.coordinates, [[1, 2, 3], [7, 8, 9]]);
        assert_eq!(conformer.order, AtomOrder::File);
        assert_eq!(from_elements("".into(), &[1], &[[0; 3]]), Err("no heavy atom".to_owned()));
        assert!(from_elements("".into(), &[0], &[[0; 3]]).is_err());
        assert!(from_elements("".into(), &[6], &[]).is_err());
    }

    #[test]
    fn the_builder_truncates_each_kind_its_own_way() {
        let mut atoms = Atoms::new(&ReadOptions::default());
        atoms.push_text(6, ["1.12829", "-0.00009", "1e1"]).unwrap();
        // The float32 nearest to 1.3 lies below it.
        atoms.push_f32(6, [1.3, 0.0, -2.5]).unwrap();
        atoms.push_f64(6, [1.1282, 0.0, -2.5]).unwrap();
        assert!(atoms.push_text(6, ["nan", "0", "0"]).unwrap_err().contains("not finite"));
        assert!(atoms.push_f64(6, [1e6, 0.0, 0.0]).unwrap_err().starts_with("atom 4: 1000000: beyond"));
        assert!(atoms.push_f32(6, [f32::INFINITY, 0.0, 0.0]).is_err());
        let conformer = atoms.finish("x".into()).unwrap().conformer;
        assert_eq!(conformer.coordinates, [[11_282, 0, 100_000], [12_999, 0, -25_000], [11_282, 0, -25_000]]);
        assert!(atoms.is_empty());
    }
}
