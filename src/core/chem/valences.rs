//! Data from RDKit's periodic table (release 2026.09).

/// Returns the valences of an element, the default one first. A final -1 allows any higher valence.
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

/// Returns whether an element stands left of carbon in RDKit's sense: a positive charge lowers its valence.
pub(super) fn is_early(element: u8) -> bool {
    matches!(element, 3..=5 | 11..=13 | 19..=22 | 30..=32 | 37..=41 | 48..=51 | 55..=61 | 72 | 73 | 80..=83 | 87..=93
        | 104..=118)
}

/// Returns whether RDKit counts an element as a metal.
pub(crate) fn is_metal(element: u8) -> bool {
    !matches!(element, 0..=2 | 5..=10 | 14..=18 | 33..=36 | 52..=54 | 85 | 86)
}
