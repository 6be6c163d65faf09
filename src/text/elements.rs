//! The elements by symbol and number.

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

/// The symbol of an element, `None` beyond 1 to 118.
pub fn symbol(number: u8) -> Option<&'static str> {
    SYMBOLS.get(usize::from(number).checked_sub(1)?).copied()
}

/// The atomic number of a symbol as it is written (`C`, `Cl`).
pub fn of_symbol(symbol: &str) -> Option<u8> {
    number(|known| known == symbol)
}

/// The atomic number of a symbol in any case (`C`, `CL`, `cl`).
pub fn of_symbol_in_any_case(symbol: &str) -> Option<u8> {
    number(|known| known.eq_ignore_ascii_case(symbol))
}

fn number(is: impl Fn(&str) -> bool) -> Option<u8> {
    // At most 118, so the cast cannot cut.
    SYMBOLS.iter().position(|known| is(known)).map(|at| at as u8 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_and_numbers() {
        for (number, name) in [(1, "H"), (6, "C"), (17, "Cl"), (53, "I"), (78, "Pt"), (118, "Og")] {
            assert_eq!((of_symbol(name), symbol(number)), (Some(number), Some(name)));
        }
        assert_eq!((of_symbol("D"), symbol(0), symbol(119)), (None, None, None));
        assert_eq!((of_symbol("CL"), of_symbol_in_any_case("CL")), (None, Some(17)));
    }
}
