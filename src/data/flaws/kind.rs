//! What may be wrong with a conformer of a corpus.

use serde::Serialize;

/// A reason why a conformer may not belong in a training set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlawKind {
    /// An earlier conformer has the same text, however decimals are written.
    DuplicateText,
    /// An earlier conformer of the same molecule, itself no duplicate, lies within the bound.
    DuplicateConformer,
    /// Two atoms lie on one point ([`ONE_POINT_ANGSTROM`](crate::stats::faults::ONE_POINT_ANGSTROM)).
    CoincidentAtoms,
    /// A bond is shorter than 0.7 Å.
    ShortBond,
    /// A bond is longer than 2.5 Å.
    LongBond,
    /// The text has several molecules.
    Fragments,
    /// A stereo mark of the text is not that of the coordinates.
    Stereo,
}

drift_core::named!(FlawKind {
    DuplicateText: "duplicate-text",
    DuplicateConformer: "duplicate-conformer",
    CoincidentAtoms: "coincident-atoms",
    ShortBond: "short-bond",
    LongBond: "long-bond",
    Fragments: "fragments",
    Stereo: "stereo"
});

impl FlawKind {
    /// Returns whether it depends on other conformers.
    pub fn is_duplicate(self) -> bool {
        matches!(self, FlawKind::DuplicateText | FlawKind::DuplicateConformer)
    }
}

/// The flaws of a conformer, each with a number: of pairs of atoms, of bonds, of parts, of stereo marks; 1 for a duplicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flaws([u32; FlawKind::ALL.len()]);

impl Flaws {
    /// Sets the number of a kind; 0 if there is no such flaw.
    pub(super) fn set(&mut self, kind: FlawKind, count: u64) {
        self.0[kind as usize] = u32::try_from(count).unwrap_or(u32::MAX);
    }

    /// Returns the number of a kind.
    pub fn of(&self, kind: FlawKind) -> u32 {
        self.0[kind as usize]
    }

    /// Returns the kinds that it has.
    pub fn kinds(&self) -> impl Iterator<Item = FlawKind> {
        FlawKind::ALL.into_iter().filter(|kind| self.of(*kind) > 0)
    }

    /// Returns the first of these kinds that it has.
    pub fn first_of(&self, kinds: &[FlawKind]) -> Option<FlawKind> {
        self.kinds().find(|kind| kinds.contains(kind))
    }
}

/// Numbers of conformers by flaw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct FlawCounts {
    /// Those whose text an earlier conformer has.
    pub duplicate_text: u64,
    /// Those that are an earlier conformer of the same molecule once more.
    pub duplicate_conformer: u64,
    /// Those with atoms on one point.
    pub coincident_atoms: u64,
    /// Those with a bond shorter than 0.7 Å.
    pub short_bond: u64,
    /// Those with a bond longer than 2.5 Å.
    pub long_bond: u64,
    /// Those of several molecules.
    pub fragments: u64,
    /// Those with a stereo mark that is not that of their coordinates.
    pub stereo: u64,
}

impl FlawCounts {
    /// Counts a conformer.
    pub(super) fn add(&mut self, flaws: &Flaws) {
        flaws.kinds().for_each(|kind| *self.of_mut(kind) += 1);
    }

    /// Returns the number of a kind.
    pub fn of(&self, kind: FlawKind) -> u64 {
        *self.clone().of_mut(kind)
    }

    fn of_mut(&mut self, kind: FlawKind) -> &mut u64 {
        match kind {
            FlawKind::DuplicateText => &mut self.duplicate_text,
            FlawKind::DuplicateConformer => &mut self.duplicate_conformer,
            FlawKind::CoincidentAtoms => &mut self.coincident_atoms,
            FlawKind::ShortBond => &mut self.short_bond,
            FlawKind::LongBond => &mut self.long_bond,
            FlawKind::Fragments => &mut self.fragments,
            FlawKind::Stereo => &mut self.stereo,
        }
    }
}
