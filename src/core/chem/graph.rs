//! Atoms and bonds exactly as a text or a file has them, before any interpretation.

/// An atom as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Atom {
    /// Atomic number; 0 for `*`.
    pub element: u8,
    /// Mass number; 0 if none is written.
    pub isotope: u32,
    /// Formal charge.
    pub charge: i32,
    /// Hydrogens that are written in brackets, or counted by a file. Hydrogens that are atoms of their own are not included.
    pub hydrogens: u32,
    /// Whether it stands in brackets, or a file says the equivalent: no further hydrogen is implied.
    pub bracket: bool,
    /// Unpaired electrons that a file lists; 0 in a SMILES, which has no sign for them.
    pub radicals: u32,
    /// Whether its symbol is lower case.
    pub aromatic: bool,
    /// What is written behind `@`.
    pub chirality: Option<Chirality>,
    /// The number of an atom map, if one is written. RDKit takes 0 for none.
    pub map: Option<u32>,
}

impl Atom {
    /// Returns whether its brackets hold only an element of the organic subset and hydrogens.
    pub(super) fn is_plain_in_brackets(&self) -> bool {
        self.bracket
            && (self.charge, self.isotope, self.map, self.chirality) == (0, 0, None, None)
            && matches!(self.element, 5..=9 | 15..=17 | 35 | 53)
    }

    /// Returns whether it is a hydrogen without a mass number.
    pub(super) fn is_protium(&self) -> bool {
        (self.element, self.isotope) == (1, 0)
    }

    /// Returns whether the mark behind `@` is of a class other than tetrahedral.
    pub(super) fn has_polyhedral_mark(&self) -> bool {
        !matches!(self.chirality, None | Some(Chirality::Counterclockwise | Chirality::Clockwise))
    }
}

/// The arrangement of an atom's neighbours in the order of the text. An implied hydrogen comes right after the preceding atom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Chirality {
    /// `@`: from the first neighbour the others are seen counterclockwise.
    Counterclockwise,
    /// `@@`: clockwise.
    Clockwise,
    /// `@SP1` to `@SP3`.
    SquarePlanar(u32),
    /// `@TB1` to `@TB20`.
    TrigonalBipyramidal(u32),
    /// `@OH1` to `@OH30`.
    Octahedral(u32),
    /// `@AL1`, and numbers that no class has.
    Other,
}

/// The direction of a bond beside a double bond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// `/`: the second atom of [`Bond::atoms`] lies above the first.
    Up,
    /// `\`: it lies below.
    Down,
}

impl Direction {
    /// Returns the direction of the same bond, seen from its other end.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Direction::Up => Direction::Down,
            Direction::Down => Direction::Up,
        }
    }
}

/// The order of a bond.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bond {
    /// Its two atoms in the order in which they are written, except for `<-`, which is reversed.
    pub atoms: [usize; 2],
    /// What it is.
    pub order: Order,
    /// `/` or `\`, if it is written.
    pub direction: Option<Direction>,
    /// Whether its symbol is written.
    pub explicit: bool,
}

impl Bond {
    /// Returns a bond as a file has it.
    pub fn new(atoms: [usize; 2], order: Order) -> Self {
        Bond { atoms, order, direction: None, explicit: true }
    }

    /// Returns the other atom of the bond.
    pub fn other(&self, atom: usize) -> usize {
        self.atoms[usize::from(self.atoms[0] == atom)]
    }

    /// Returns what it adds to the valence of one of its atoms. An aromatic bond counts as 1, and a dative one only where it points to.
    pub fn valence(&self, atom: usize) -> u32 {
        match self.order {
            Order::Single | Order::Aromatic => 1,
            Order::Double => 2,
            Order::Triple => 3,
            Order::Quadruple => 4,
            Order::Dative => u32::from(self.atoms[1] == atom),
            Order::Any => 0,
        }
    }
}

/// Why a text is not a SMILES, or not a molecule.
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
    /// It has more heavy atoms than the limit.
    #[error("more than {0} heavy atoms")]
    TooLarge(usize),
    /// An atom has more bonds and hydrogens than its element takes.
    #[error("atom {0} has too many bonds")]
    Valence(usize),
    /// The aromatic atoms have no Kekulé structure.
    #[error("aromatic atoms without a Kekulé structure")]
    Kekule,
    /// Hydrogens written as atoms carry stereo that a text without them cannot express.
    #[error("its stereo cannot be written without its hydrogens")]
    Stereo,
    /// It has a `*`, whose element is unknown.
    #[error("an atom of an unknown element (`*`)")]
    Unperceived,
    /// An aromatic atom stands in no ring.
    #[error("atom {0} is aromatic but not in a ring")]
    NotInRing(usize),
}

/// The bonds of an atom, as indices into the bonds of its molecule. More than four are rare.
pub type BondsOfAtom = smallvec::SmallVec<[usize; 4]>;

/// Atoms and bonds as written: for a SMILES in the order of its text, for a file in the order of the file. Hydrogens are included
/// where they are written as atoms.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Graph {
    /// Atoms, in order.
    pub atoms: Vec<Atom>,
    /// Bonds, each once.
    pub bonds: Vec<Bond>,
    /// The bonds of each atom, as indices into `bonds`, in the order of the text. A ring bond stands where its ring-closure number
    /// does. Empty for a graph that has been changed or that comes from a file.
    pub written: Vec<BondsOfAtom>,
    /// By atom, whether it begins the text or a part behind `.`. Empty in the same cases.
    pub starts: Vec<bool>,
    /// The ring bonds, as indices into `bonds`, by their ring-closure numbers. Empty in the same cases.
    pub ring_bonds: Vec<usize>,
    /// Whether the bonds only say which atoms are bonded. Then orders, charges and unpaired electrons are unknown.
    pub pairs_only: bool,
}

impl Graph {
    /// Returns the graph of a file: the atoms of aromatic bonds are marked aromatic.
    pub fn of_file(mut atoms: Vec<Atom>, bonds: Vec<Bond>) -> Self {
        // Files mark only bonds as aromatic, but the rules look at atoms too.
        for bond in bonds.iter().filter(|bond| bond.order == Order::Aromatic) {
            bond.atoms.iter().for_each(|atom| atoms[*atom].aromatic = true);
        }
        Graph { atoms, bonds, ..Graph::default() }
    }

    /// Returns the graph of a format without bonds, whose bonds come from distances.
    pub fn of_distances(atoms: Vec<Atom>, bonds: Vec<Bond>) -> Self {
        Graph { atoms, bonds, pairs_only: true, ..Graph::default() }
    }

    /// Returns the bonds of each atom, as indices into [`Graph::bonds`].
    pub fn neighbours(&self) -> Vec<BondsOfAtom> {
        let mut neighbours = vec![BondsOfAtom::new(); self.atoms.len()];
        for (place, bond) in self.bonds.iter().enumerate() {
            bond.atoms.iter().for_each(|atom| neighbours[*atom].push(place));
        }
        neighbours
    }
}
