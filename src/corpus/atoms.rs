//! Conformers from bare atoms: the elements, and the builder that formats without text share.
//!
//! Atoms go in with hydrogens where the file has them (they weigh in for [`Frame::Principal`]) and a conformer of
//! the heavy atoms comes out, in file order, with a chain of bare atoms for its skeleton.

use std::sync::Arc;

use super::{AtomOrder, Conformer, Frame, ReadOptions, frame};
use crate::text::number::{NumberError, truncate_decimal, truncate_f32, truncate_f64};
use crate::text::{Fixed, Precision, Written};

/// Symbols of the elements 1 to 118 (IUPAC).
#[rustfmt::skip]
const SYMBOLS: [&str; 118] = [
    "H", "He", "Li", "Be", "B", "C", "N", "O", "F", "Ne", "Na", "Mg", "Al", "Si", "P", "S", "Cl", "Ar", "K", "Ca",
    "Sc", "Ti", "V", "Cr", "Mn", "Fe", "Co", "Ni", "Cu", "Zn", "Ga", "Ge", "As", "Se", "Br", "Kr", "Rb", "Sr", "Y",
    "Zr", "Nb", "Mo", "Tc", "Ru", "Rh", "Pd", "Ag", "Cd", "In", "Sn", "Sb", "Te", "I", "Xe", "Cs", "Ba", "La", "Ce",
    "Pr", "Nd", "Pm", "Sm", "Eu", "Gd", "Tb", "Dy", "Ho", "Er", "Tm", "Yb", "Lu", "Hf", "Ta", "W", "Re", "Os", "Ir",
    "Pt", "Au", "Hg", "Tl", "Pb", "Bi", "Po", "At", "Rn", "Fr", "Ra", "Ac", "Th", "Pa", "U", "Np", "Pu", "Am", "Cm",
    "Bk", "Cf", "Es", "Fm", "Md", "No", "Lr", "Rf", "Db", "Sg", "Bh", "Hs", "Mt", "Ds", "Rg", "Cn", "Nh", "Fl", "Mc",
    "Lv", "Ts", "Og",
];

/// Standard atomic weights in dalton (IUPAC 2021, abridged); the mass number of the longest-lived isotope for
/// elements without one.
#[rustfmt::skip]
const WEIGHTS_DALTON: [f64; 118] = [
    1.008, 4.0026, 6.94, 9.0122, 10.81, 12.011, 14.007, 15.999, 18.998, 20.180, 22.990, 24.305, 26.982, 28.085,
    30.974, 32.06, 35.45, 39.95, 39.098, 40.078, 44.956, 47.867, 50.942, 51.996, 54.938, 55.845, 58.933, 58.693,
    63.546, 65.38, 69.723, 72.630, 74.922, 78.971, 79.904, 83.798, 85.468, 87.62, 88.906, 91.224, 92.906, 95.95,
    97.0, 101.07, 102.91, 106.42, 107.87, 112.41, 114.82, 118.71, 121.76, 127.60, 126.90, 131.29, 132.91, 137.33,
    138.91, 140.12, 140.91, 144.24, 145.0, 150.36, 151.96, 157.25, 158.93, 162.50, 164.93, 167.26, 168.93, 173.05,
    174.97, 178.49, 180.95, 183.84, 186.21, 190.23, 192.22, 195.08, 196.97, 200.59, 204.38, 207.2, 208.98, 209.0,
    210.0, 222.0, 223.0, 226.0, 227.0, 232.04, 231.04, 238.03, 237.0, 244.0, 243.0, 247.0, 247.0, 251.0, 252.0,
    257.0, 258.0, 259.0, 262.0, 267.0, 268.0, 269.0, 270.0, 269.0, 277.0, 281.0, 282.0, 285.0, 286.0, 290.0, 290.0,
    293.0, 294.0, 294.0,
];

/// The atomic number of hydrogen, the one element that is not heavy.
pub const HYDROGEN: u8 = 1;

/// The symbol of an element, `None` beyond 1 to 118.
pub fn symbol(number: u8) -> Option<&'static str> {
    SYMBOLS.get(usize::from(number).checked_sub(1)?).copied()
}

/// The atomic number of a symbol in any case (`C`, `CL`, `cl`); `D` and `T` are hydrogen.
pub fn atomic_number(symbol: &str) -> Option<u8> {
    if symbol.eq_ignore_ascii_case("D") || symbol.eq_ignore_ascii_case("T") {
        return Some(HYDROGEN);
    }
    // At most 118, so the cast cannot cut.
    SYMBOLS.iter().position(|s| s.eq_ignore_ascii_case(symbol)).map(|at| at as u8 + 1)
}

/// The atomic weight of an element in dalton, `None` beyond 1 to 118.
pub fn weight_dalton(number: u8) -> Option<f64> {
    WEIGHTS_DALTON.get(usize::from(number).checked_sub(1)?).copied()
}

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
    Ok(Conformer { molecule, skeleton, coordinates, order: AtomOrder::File, written: Written::ANY })
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
    pub fn new(options: ReadOptions) -> Self {
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
                |axis: usize| xyz[axis].trim().parse().unwrap_or(angstrom(fixed[axis], self.precision));
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
    pub fn finish(&mut self, molecule: Arc<str>) -> Result<Conformer, String> {
        let conformer = self.turned().and_then(|()| from_elements(molecule, &self.numbers, &self.fixed));
        self.clear();
        conformer
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

/// A fixed-point coordinate in Å.
pub(super) fn angstrom(value: Fixed, precision: Precision) -> f64 {
    f64::from(value) / f64::from(precision.units_per_angstrom())
}

/// A position in Å, truncated.
pub(super) fn fixed(position: [f64; 3], precision: Precision) -> Result<[Fixed; 3], String> {
    let at = |x: f64| truncate_f64(x, precision).map_err(|e| format!("{x}: {e}"));
    Ok([at(position[0])?, at(position[1])?, at(position[2])?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_and_numbers_agree() {
        for number in 1..=118 {
            let symbol = symbol(number).unwrap();
            assert_eq!(atomic_number(symbol), Some(number));
            assert!(weight_dalton(number).unwrap() > f64::from(number), "{symbol}");
        }
        assert_eq!((symbol(0), symbol(119), atomic_number("Q")), (None, None, None));
        assert_eq!((symbol(6), symbol(17), symbol(118)), (Some("C"), Some("Cl"), Some("Og")));
        assert_eq!((atomic_number("D"), atomic_number("BR")), (Some(1), Some(35)));
    }

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
        let mut atoms = Atoms::new(ReadOptions::default());
        atoms.push_text(6, ["1.12829", "-0.00009", "1e1"]).unwrap();
        // The float32 nearest to 1.3 lies below it.
        atoms.push_f32(6, [1.3, 0.0, -2.5]).unwrap();
        atoms.push_f64(6, [1.1282, 0.0, -2.5]).unwrap();
        assert!(atoms.push_text(6, ["nan", "0", "0"]).unwrap_err().contains("not finite"));
        assert!(atoms.push_f64(6, [1e6, 0.0, 0.0]).unwrap_err().starts_with("atom 4: 1000000: beyond"));
        assert!(atoms.push_f32(6, [f32::INFINITY, 0.0, 0.0]).is_err());
        let conformer = atoms.finish("x".into()).unwrap();
        assert_eq!(conformer.coordinates, [[11_282, 0, 100_000], [12_999, 0, -25_000], [11_282, 0, -25_000]]);
        assert!(atoms.is_empty());
    }
}
