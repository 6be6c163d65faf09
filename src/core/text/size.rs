//! Size classes of molecules: the single table for statistics and placeholders.

/// A range of heavy-atom counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeClass {
    /// `1-14`, `50+`.
    pub label: &'static str,
    /// The fewest heavy atoms.
    pub from: usize,
    /// The most heavy atoms; `None` for the last class.
    pub to: Option<usize>,
}

/// The classes in ascending order, without gaps.
pub const SIZE_CLASSES: [SizeClass; 5] = [
    SizeClass { label: "1-14", from: 1, to: Some(14) },
    SizeClass { label: "15-24", from: 15, to: Some(24) },
    SizeClass { label: "25-34", from: 25, to: Some(34) },
    SizeClass { label: "35-49", from: 35, to: Some(49) },
    SizeClass { label: "50+", from: 50, to: None },
];

/// Returns the index in [`SIZE_CLASSES`] of a molecule with `heavy_atoms` heavy atoms.
pub fn size_class(heavy_atoms: usize) -> usize {
    SIZE_CLASSES.iter().rposition(|class| heavy_atoms >= class.from).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_no_gap() {
        for pair in SIZE_CLASSES.windows(2) {
            assert_eq!(pair[0].to.map(|to| to + 1), Some(pair[1].from));
        }
        for (index, class) in SIZE_CLASSES.iter().enumerate() {
            assert_eq!(size_class(class.from), index);
            assert_eq!(size_class(class.to.unwrap_or(10_000)), index);
        }
        assert_eq!(size_class(0), 0);
    }
}
