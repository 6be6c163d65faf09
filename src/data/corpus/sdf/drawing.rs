//! Distinguishes conformers from drawings of structures, which SDF stores in the same format with all z equal.

use crate::corpus::atoms::Atoms;

/// The number of characters before the dimension code in the second line of a mol block.
const CODE_COLUMN: usize = 20;

/// Molecules with more atoms than this are drawings if all z are equal but not 0: a conformer of so many atoms would seldom lie in
/// a plane parallel to that of x and y.
const MAX_LEVEL_ATOMS: usize = 4;

/// The dimension that the second line of a mol block states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dimension {
    Two,
    Three,
    Unstated,
}

impl Dimension {
    fn of(second_line: &str) -> Self {
        match second_line.get(CODE_COLUMN..CODE_COLUMN + 2) {
            Some("2D" | "2d") => Dimension::Two,
            Some("3D" | "3d") => Dimension::Three,
            _ => Dimension::Unstated,
        }
    }
}

/// Returns why the atoms are those of a drawing; `None` for a conformer. `second_line` is that of the mol block, `has_wedges` whether
/// some bond is drawn as a wedge.
///
/// The rules are those by which RDKit sets `Is3D` (`calculate3dFlag` in `MolFileParser.cpp`): coordinates outside the plane z = 0
/// are three-dimensional whatever the code says, and a planar molecule is a conformer if its code is `3D` and it has no wedges.
/// In addition, more than four atoms at one other height are a drawing unless the code is `3D`.
pub(super) fn drawing(second_line: &str, atoms: &Atoms, has_wedges: bool) -> Option<&'static str> {
    let dimension = Dimension::of(second_line);
    let is_flat = atoms.is_at_zero();
    let is_level = atoms.is_level() && atoms.len() > MAX_LEVEL_ATOMS;
    match dimension {
        Dimension::Three if is_flat && has_wedges => Some(
            "a 2D drawing, not a conformer: all z are 0, and bonds are wedges, though its header says 3D",
        ),
        Dimension::Two if is_flat || is_level => Some("a 2D drawing, not a conformer"),
        Dimension::Unstated if is_flat || is_level => Some(
            "a 2D drawing, not a conformer: all z are equal, and its header has no dimension code \
             (`3D` in columns 21 and 22 of its second line states a planar conformer)",
        ),
        _ => None,
    }
}
