//! Reading SMILES as RDKit reads them, so that what RDKit refuses is refused here too.
//!
//! [`Graph::parse`] takes the grammar of RDKit's parser, which is stricter than OpenSMILES in some places (`C(1CC1)`, `C()C`)
//! and laxer in others (`C%(5)CC5`). [`Graph::checked`] does what its sanitisation does before aromaticity is perceived:
//! charges of nitro groups and their like, valences, Kekulé structures. Stereo is kept as it is written. `docs/audit.md` says what is not
//! covered.

mod brackets;
mod elements;
mod hydrogens;
mod kekule;
mod limit;
mod matching;
mod parse;
mod spelled;
mod valence;

pub(in crate::text) use elements::valences;
pub use limit::{AtomLimit, MAX_HEAVY_ATOMS};
pub use valence::Checked;

/// An atom as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Atom {
    /// Atomic number; 0 for `*`.
    pub element: u8,
    /// Mass number; 0 if none is written.
    pub isotope: u32,
    /// Formal charge.
    pub charge: i32,
    /// Hydrogens that are written in brackets.
    pub hydrogens: u32,
    /// Whether it stands in brackets: then no hydrogen is implied.
    pub bracket: bool,
    /// Whether it is written in small letters.
    pub aromatic: bool,
    /// What is written behind `@`.
    pub chirality: Option<Chirality>,
    /// The number of an atom map; 0 if none is written.
    pub map: u32,
}

/// How the neighbours of an atom lie, in the order of the text, an implied hydrogen right behind what stands before the atom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Chirality {
    /// `@`: from the first neighbour the others are seen counterclockwise.
    Counterclockwise,
    /// `@@`: clockwise.
    Clockwise,
    /// A class other than tetrahedra, `@SP1`.
    Other,
}

/// The direction of a bond beside a double bond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// `/`: the second atom of [`Bond::atoms`] lies above the first.
    Up,
    /// `\`: it lies below.
    Down,
}

impl Direction {
    /// As seen from the other end.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Direction::Up => Direction::Down,
            Direction::Down => Direction::Up,
        }
    }
}

/// What a bond is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Order {
    /// `-`, or nothing between atoms that are not both aromatic.
    Single,
    /// `=`
    Double,
    /// `#`
    Triple,
    /// `$`
    Quadruple,
    /// `:`, or nothing between aromatic atoms.
    Aromatic,
    /// `->`, from the first atom to the second.
    Dative,
    /// `~`
    Any,
}

/// A bond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bond {
    /// Its atoms; the first one is written first, but for `<-`.
    pub atoms: [usize; 2],
    /// What it is.
    pub order: Order,
    /// `/` or `\`, if it is written.
    pub direction: Option<Direction>,
    /// Whether its symbol is written.
    pub explicit: bool,
}

impl Bond {
    /// The atom at the other end.
    pub fn other(&self, atom: usize) -> usize {
        self.atoms[usize::from(self.atoms[0] == atom)]
    }
}

/// Why a text is no SMILES, or no molecule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SmilesProblem {
    /// The grammar is broken.
    #[error("byte {at}: {what}")]
    Syntax {
        /// Byte offset.
        at: usize,
        /// What is wrong there.
        what: &'static str,
    },
    /// It has more atoms than are looked at.
    #[error("more than {0} heavy atoms")]
    TooLarge(usize),
    /// An atom has more bonds and hydrogens than its element takes.
    #[error("atom {0} has too many bonds")]
    Valence(usize),
    /// No single and double bonds can be given to aromatic atoms.
    #[error("aromatic atoms without a Kekulé structure")]
    Kekule,
    /// An aromatic atom stands in no ring.
    #[error("atom {0} is aromatic and in no ring")]
    NotInRing(usize),
}

/// Atoms and bonds as they are written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Graph {
    /// Atoms, in text order.
    pub atoms: Vec<Atom>,
    /// Bonds, each once.
    pub bonds: Vec<Bond>,
    /// The bonds of each atom, as places in `bonds`, in the order in which the text has them: a ring bond stands where its number
    /// does. Empty for a graph that is not as it was written.
    pub written: Vec<Vec<usize>>,
    /// By atom, whether it begins the text or a part behind `.`; likewise.
    pub starts: Vec<bool>,
}

impl Graph {
    /// The bonds of each atom, as places in [`Graph::bonds`].
    pub fn neighbours(&self) -> Vec<Vec<usize>> {
        let mut neighbours = vec![Vec::new(); self.atoms.len()];
        for (place, bond) in self.bonds.iter().enumerate() {
            bond.atoms.iter().for_each(|atom| neighbours[*atom].push(place));
        }
        neighbours
    }
}

impl Checked {
    /// The elements of its atoms, sorted: other elements are another molecule.
    pub(in crate::text) fn elements(&self) -> Vec<u8> {
        let mut elements: Vec<u8> = self.graph.atoms.iter().map(|atom| atom.element).collect();
        elements.sort_unstable();
        elements
    }
}
