//! What RDKit's periodic table says of elements (release 2026.09).

/// Symbols by atomic number, from 1.
const SYMBOLS: [&str; 118] = [
    "H", "He", "Li", "Be", "B", "C", "N", "O", "F", "Ne", "Na", "Mg", "Al", "Si", "P", "S", "Cl", "Ar", "K",
    "Ca", "Sc", "Ti", "V", "Cr", "Mn", "Fe", "Co", "Ni", "Cu", "Zn", "Ga", "Ge", "As", "Se", "Br", "Kr",
    "Rb", "Sr", "Y", "Zr", "Nb", "Mo", "Tc", "Ru", "Rh", "Pd", "Ag", "Cd", "In", "Sn", "Sb", "Te", "I", "Xe",
    "Cs", "Ba", "La", "Ce", "Pr", "Nd", "Pm", "Sm", "Eu", "Gd", "Tb", "Dy", "Ho", "Er", "Tm", "Yb", "Lu",
    "Hf", "Ta", "W", "Re", "Os", "Ir", "Pt", "Au", "Hg", "Tl", "Pb", "Bi", "Po", "At", "Rn", "Fr", "Ra",
    "Ac", "Th", "Pa", "U", "Np", "Pu", "Am", "Cm", "Bk", "Cf", "Es", "Fm", "Md", "No", "Lr", "Rf", "Db",
    "Sg", "Bh", "Hs", "Mt", "Ds", "Rg", "Cn", "Nh", "Fl", "Mc", "Lv", "Ts", "Og",
];

/// The element of a symbol; `None` if there is none.
pub(super) fn of_symbol(symbol: &str) -> Option<u8> {
    let place = SYMBOLS.iter().position(|known| *known == symbol)?;
    Some(place as u8 + 1)
}

/// The symbol of an element; `*` for 0 and for numbers that no element has.
pub(super) fn symbol(element: u8) -> &'static str {
    usize::from(element).checked_sub(1).and_then(|place| SYMBOLS.get(place)).copied().unwrap_or("*")
}

/// The valences that an element takes, the default one first; a last -1 stands for any higher one.
pub(super) fn valences(element: u8) -> &'static [i32] {
    match element {
        1 | 9 | 17 | 35 | 55 | 87 => &[1],
        2 | 10 | 18 | 36 | 86 => &[0],
        3 | 11 | 19 | 37 => &[1, -1],
        4 | 8 => &[2],
        12 | 20 | 38 | 56 | 88 => &[2, -1],
        5 | 7 | 13 | 31 | 49 => &[3],
        6 | 14 | 32 => &[4],
        15 | 33 | 51 | 83 => &[3, 5],
        16 | 34 | 52 | 84 => &[2, 4, 6],
        50 | 82 => &[2, 4],
        53 | 85 => &[1, 3, 5],
        54 => &[0, 2, 4, 6],
        _ => &[-1],
    }
}

/// Whether an element stands left of carbon in RDKit's sense: a positive charge takes bonds from it.
pub(super) fn is_early(element: u8) -> bool {
    matches!(element, 3..=5 | 11..=13 | 19..=22 | 30..=32 | 37..=41 | 48..=51 | 55..=61 | 72 | 73 | 80..=83 | 87..=93
        | 104..=118)
}

/// Whether RDKit holds an element for a metal.
pub(super) fn is_metal(element: u8) -> bool {
    !matches!(element, 0..=2 | 5..=10 | 14..=18 | 33..=36 | 52..=54 | 85 | 86)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_and_numbers() {
        for (number, name) in [(1, "H"), (6, "C"), (17, "Cl"), (53, "I"), (78, "Pt"), (118, "Og")] {
            assert_eq!((of_symbol(name), symbol(number)), (Some(number), name));
        }
        assert_eq!((of_symbol("D"), symbol(0), symbol(119)), (None, "*", "*"));
    }
}
