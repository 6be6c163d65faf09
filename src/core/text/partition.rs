//! Classes of blocks, which depend only on the skeleton.

use serde::{Deserialize, Serialize};

use crate::text::size::{SIZE_CLASSES, size_class};
use crate::text::skeleton::{Piece, pieces};

/// A classification of blocks by properties of the skeleton.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Partition {
    /// The number of heavy atoms of the molecule.
    #[serde(rename = "heavy atoms")]
    Size,
    /// The index of the atom in the text.
    #[serde(rename = "atom index")]
    Index,
    /// The atom's symbol.
    #[serde(rename = "element")]
    Element,
    /// The text between the previous block and the atom.
    #[serde(rename = "left context")]
    Left,
}

crate::named!(Partition {
    Size: "heavy atoms",
    Index: "atom index",
    Element: "element",
    Left: "left context"
});

impl Partition {
    /// Returns the names of its classes.
    pub fn labels(self) -> [&'static str; 5] {
        match self {
            Partition::Size => SIZE_CLASSES.map(|class| class.label),
            Partition::Index => ["first", "2-5", "6-10", "11-20", "21+"],
            Partition::Element => ["C", "c", "N, O", "n, o, s", "other"],
            Partition::Left => ["start", "none", "bond", "branch opens", "branch or ring closes"],
        }
    }

    /// Appends the class of each block of a skeleton to `out`.
    pub fn classes(self, skeleton: &str, out: &mut Vec<u8>) {
        let heavy_atoms = skeleton.matches("<>").count();
        let mut between = "";
        let mut index = 0;
        for piece in pieces(skeleton) {
            match piece {
                Piece::Between(text) => between = text,
                Piece::Atom(atom) => {
                    out.push(match self {
                        Partition::Size => size_class(heavy_atoms) as u8,
                        Partition::Index => index_class(index),
                        Partition::Element => element_class(atom),
                        Partition::Left => left_class(index, between),
                    });
                    between = "";
                    index += 1;
                }
            }
        }
    }
}

fn index_class(index: usize) -> u8 {
    match index {
        0 => 0,
        1..5 => 1,
        5..10 => 2,
        10..20 => 3,
        _ => 4,
    }
}

fn element_class(atom: &str) -> u8 {
    let inside = atom.trim_start_matches('[').trim_end_matches(']');
    let symbol = inside.trim_start_matches(|c: char| c.is_ascii_digit());
    // Checked before single letters: neither `Cl` nor `Co` is carbon.
    let two_letters = ["Cl", "Br", "Si", "Se", "Na", "Ca", "Co", "Cu", "Cr", "Ni", "Os", "Sn", "Sc"];
    if two_letters.iter().any(|two| symbol.starts_with(two)) {
        return 4;
    }
    match symbol.chars().next() {
        Some('C') => 0,
        Some('c') => 1,
        Some('N' | 'O') => 2,
        Some('n' | 'o' | 's') => 3,
        _ => 4,
    }
}

fn left_class(index: usize, between: &str) -> u8 {
    match between.chars().next_back() {
        None if index == 0 => 0,
        None => 1,
        Some('(') => 3,
        Some(_) if between.contains('(') => 3,
        Some(')' | '0'..='9') => 4,
        Some(_) => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_from_the_skeleton() {
        let skeleton = "[C]<>[c]<>1([N]<>)[c]<>=[Cl]<>1";
        let classes = |p: Partition| {
            let mut out = Vec::new();
            p.classes(skeleton, &mut out);
            out
        };
        assert_eq!(classes(Partition::Size), [0; 5]);
        assert_eq!(classes(Partition::Index), [0, 1, 1, 1, 1]);
        assert_eq!(classes(Partition::Element), [0, 1, 2, 1, 4]);
        assert_eq!(classes(Partition::Left), [0, 1, 3, 4, 2]);
    }
}
