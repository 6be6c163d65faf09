//! The elements: symbols, numbers and weights.

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

/// Returns the symbol of an element; `None` outside 1 to 118.
pub fn symbol(number: u8) -> Option<&'static str> {
    SYMBOLS.get(usize::from(number).checked_sub(1)?).copied()
}

/// Returns the atomic number of a symbol in its usual case (`C`, `Cl`).
pub(crate) fn of_symbol(symbol: &str) -> Option<u8> {
    number(|known| known == symbol)
}

fn number(is: impl Fn(&str) -> bool) -> Option<u8> {
    // The place is below 118, so the cast cannot truncate.
    SYMBOLS.iter().position(|known| is(known)).map(|at| at as u8 + 1)
}

/// Standard atomic weights in dalton (IUPAC 2021, abridged). Elements without one have the mass number of their longest-lived
/// isotope.
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

/// Mass numbers of the most common isotopes, as in RDKit 2026.09: mol blocks count mass differences from these. Other tables differ
/// for elements without a stable isotope.
#[rustfmt::skip]
const MOST_COMMON_ISOTOPES: [u16; 118] = [
    1, 4, 7, 9, 11, 12, 14, 16, 19, 20, 23, 24, 27, 28, 31, 32, 35, 40, 39, 40, 45, 48, 51, 52, 55, 56, 59, 58,
    63, 64, 69, 74, 75, 80, 79, 84, 85, 88, 89, 90, 93, 98, 97, 102, 103, 106, 107, 114, 115, 120, 121, 130,
    127, 132, 133, 138, 139, 140, 141, 142, 145, 152, 153, 158, 159, 164, 165, 166, 169, 174, 175, 180, 181,
    184, 187, 192, 193, 195, 197, 202, 205, 208, 209, 209, 210, 222, 223, 226, 227, 232, 231, 238, 236, 238,
    241, 243, 247, 249, 252, 257, 258, 259, 262, 267, 268, 271, 270, 269, 278, 281, 281, 285, 284, 289, 288,
    293, 292, 294,
];

/// The atomic number of hydrogen, the only element that is not heavy.
pub const HYDROGEN: u8 = 1;

/// Returns the mass number of a symbol that names an isotope, `D` or `T`, in either case.
pub fn isotope_of_name(symbol: &str) -> Option<u32> {
    match symbol {
        "D" | "d" => Some(2),
        "T" | "t" => Some(3),
        _ => None,
    }
}

/// Returns the atomic number of a symbol in any case (`C`, `CL`, `cl`). `D` and `T` are hydrogen, as in coordinate files.
pub fn atomic_number(symbol: &str) -> Option<u8> {
    if isotope_of_name(symbol).is_some() {
        Some(HYDROGEN)
    } else {
        number(|known| known.eq_ignore_ascii_case(symbol))
    }
}

/// Returns the atomic weight of an element in dalton; `None` outside 1 to 118.
pub fn weight_dalton(number: u8) -> Option<f64> {
    WEIGHTS_DALTON.get(usize::from(number).checked_sub(1)?).copied()
}

/// Returns the mass number of an element's most common isotope; `None` outside 1 to 118.
pub fn most_common_isotope(number: u8) -> Option<u16> {
    MOST_COMMON_ISOTOPES.get(usize::from(number).checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_and_numbers_agree() {
        for (number, name) in [(1, "H"), (6, "C"), (17, "Cl"), (53, "I"), (78, "Pt"), (118, "Og")] {
            assert_eq!(symbol(number), Some(name));
        }
        for number in 1..=118 {
            let symbol = symbol(number).unwrap();
            assert_eq!((of_symbol(symbol), atomic_number(symbol)), (Some(number), Some(number)));
            let weight = weight_dalton(number).unwrap();
            assert!(weight > f64::from(number), "{symbol}");
            let isotope = f64::from(most_common_isotope(number).unwrap());
            // RDKit has 238 for plutonium, whose weight is given as 244.
            assert!((isotope - weight).abs() < 6.5, "{symbol}");
        }
        assert_eq!((symbol(0), symbol(119), atomic_number("Q")), (None, None, None));
        assert_eq!((of_symbol("D"), of_symbol("CL")), (None, None));
        assert_eq!((atomic_number("D"), atomic_number("BR")), (Some(1), Some(35)));
    }
}
