//! Finds duplicates among candidates, in the order of the corpus.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::kind::{FlawKind, Flaws};
use super::place::RowPlace;
use super::row_key::{Candidate, Candidates, Cells, touching};
use crate::against::{Fingerprint, fingerprint, text_fingerprint};
use crate::audit::geometry::Topology;
use crate::audit::in_angstrom;
use crate::audit::spread::spread;
use crate::corpus::{AtomOrder, Conformer};
use drift_core::Encoding;
use drift_core::chem::{AtomLimit, IdenticalAtoms, Isotopes, MolecularIdentity};
use drift_core::encoding::Fixed;
use drift_core::text::skeleton::smiles;

/// A conformer with its place.
#[derive(Debug, Clone)]
pub(super) struct PlacedRow<'b> {
    pub conformer: &'b Conformer,
    pub place: RowPlace,
}

/// What was found about a candidate.
#[derive(Debug, Clone, Default)]
pub(super) struct Duplicate {
    /// The earlier conformer; `None` if it is no duplicate.
    pub original: Option<RowPlace>,
    /// Whether it has the same text.
    pub has_text: bool,
    /// Whether it is the same conformer.
    pub is_conformer: bool,
    /// Whether too much symmetry kept it from being compared with some conformer.
    pub is_undecided: bool,
}

impl Duplicate {
    /// Adds the flaws.
    pub(super) fn add_to(&self, flaws: &mut Flaws) {
        flaws.set(FlawKind::DuplicateText, u64::from(self.has_text));
        flaws.set(FlawKind::DuplicateConformer, u64::from(self.is_conformer));
    }
}

/// How conformers are compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Closeness {
    pub encoding: Encoding,
    /// The largest RMSD of duplicates, in Å.
    pub bound: f64,
    pub cells: Cells,
}

/// Finds duplicates while the corpus is read again.
#[derive(Debug)]
pub(super) struct DuplicateFinder {
    candidates: Candidates,
    /// The index of the next candidate.
    next: usize,
    /// The groups of which some conformers were read, but not all.
    open: HashMap<u32, Group>,
    closeness: Closeness,
}

/// The candidates of one batch that belong together.
struct Turn {
    number: u32,
    group: Group,
    /// Indices of conformers in the batch.
    rows: Vec<usize>,
}

impl DuplicateFinder {
    pub(super) fn new(candidates: Candidates, closeness: Closeness) -> Self {
        DuplicateFinder { candidates, next: 0, open: HashMap::new(), closeness }
    }

    /// Returns what was found about the candidates among the next conformers, by index, in order. `first` is the number of the first
    /// among all conformers, from 0.
    pub(super) fn find(&mut self, rows: &[PlacedRow<'_>], first: u64) -> Vec<(usize, Duplicate)> {
        let mut turns: Vec<Turn> = Vec::new();
        let mut here: Vec<Candidate> = Vec::new();
        while let Some(one) = self.candidates.all.get(self.next) {
            if u64::from(one.row) >= first + rows.len() as u64 {
                break;
            }
            here.push(*one);
            self.next += 1;
        }
        here.sort_unstable_by_key(|one| (one.group, one.row));
        for of_group in here.chunk_by(|a, b| a.group == b.group) {
            let number = of_group[0].group;
            let group = self.open.remove(&number).unwrap_or_default();
            let rows = of_group.iter().map(|one| (u64::from(one.row) - first) as usize).collect();
            turns.push(Turn { number, group, rows });
        }
        let closeness = self.closeness;
        let done: Vec<(Turn, Vec<(usize, Duplicate)>)> = turns
            .into_par_iter()
            .map(|mut turn| {
                let found = turn.rows.iter().map(|at| (*at, turn.group.add(&rows[*at], closeness)));
                let found = found.collect();
                (turn, found)
            })
            .collect();
        let mut all = Vec::new();
        for (turn, found) in done {
            all.extend(found);
            let left = &mut self.candidates.sizes[turn.number as usize];
            *left -= turn.rows.len() as u32;
            // A group is dropped with its last conformer, so memory holds only what may still be met.
            if *left > 0 {
                self.open.insert(turn.number, turn.group);
            }
        }
        all.sort_unstable_by_key(|(at, _)| *at);
        all
    }
}

/// Conformers that may be duplicates of one another.
#[derive(Debug, Default)]
struct Group {
    /// The place of the first conformer with each text.
    texts: HashMap<Fingerprint, RowPlace>,
    /// The first conformer, until there is a second to compare it with: the molecules of most are never needed.
    waiting: Option<WaitingRow>,
    molecules: Vec<GroupMolecule>,
    spellings: HashMap<Fingerprint, Option<Spelling>>,
}

/// A conformer whose molecule is not known yet.
#[derive(Debug)]
struct WaitingRow {
    print: Fingerprint,
    skeleton: Arc<str>,
    coordinates: Vec<[Fixed; 3]>,
    place: RowPlace,
}

/// How a skeleton maps to a molecule of its group.
#[derive(Debug, Clone)]
struct Spelling {
    molecule: usize,
    /// For each compared atom of the molecule, the block of the skeleton.
    order: Arc<[u32]>,
}

/// A molecule with its conformers, none of which is a duplicate.
#[derive(Debug)]
struct GroupMolecule {
    skeleton: Arc<str>,
    identity: MolecularIdentity,
    /// Built on first use.
    topology: OnceLock<Option<Topology>>,
    kept: Vec<KeptConformer>,
    /// By cell of the spread, indices of `kept`.
    by_cell: HashMap<[u16; 3], Vec<usize>>,
}

#[derive(Debug)]
struct KeptConformer {
    /// The values of the compared atoms, in the molecule's order.
    values: Vec<[Fixed; 3]>,
    place: RowPlace,
}

impl Group {
    /// Compares a conformer with those before it.
    fn add(&mut self, row: &PlacedRow<'_>, closeness: Closeness) -> Duplicate {
        let PlacedRow { conformer, place } = row;
        let print = fingerprint(conformer);
        let has_geometry = conformer.order == AtomOrder::Smiles && closeness.encoding.has_coordinates();
        let text = text_fingerprint(print, conformer);
        if let Some(original) = self.texts.get(&text) {
            let original = Some(original.clone());
            return Duplicate { original, has_text: true, is_conformer: has_geometry, is_undecided: false };
        }
        self.texts.insert(text, place.clone());
        if !has_geometry {
            return Duplicate::default();
        }
        let own = WaitingRow {
            print,
            skeleton: conformer.skeleton.clone(),
            coordinates: conformer.coordinates.clone(),
            place: place.clone(),
        };
        if self.texts.len() == 1 {
            self.waiting = Some(own);
            return Duplicate::default();
        }
        if let Some(first) = self.waiting.take() {
            self.compare(first, closeness);
        }
        self.compare(own, closeness)
    }

    /// Compares a conformer with those of its molecule, and keeps it if it is no duplicate.
    fn compare(&mut self, row: WaitingRow, closeness: Closeness) -> Duplicate {
        let Some(spelling) = self.spelling(&row) else {
            return Duplicate { is_undecided: true, ..Duplicate::default() };
        };
        let molecule = &mut self.molecules[spelling.molecule];
        let values = spelling.order.iter().map(|block| row.coordinates[*block as usize]).collect();
        molecule.compare(KeptConformer { values, place: row.place }, closeness)
    }

    /// Returns how a skeleton maps to its molecule, which is added if it is new; `None` if it cannot be compared.
    fn spelling(&mut self, row: &WaitingRow) -> Option<Spelling> {
        if let Some(known) = self.spellings.get(&row.print) {
            return known.clone();
        }
        let found = self.find_spelling(row);
        self.spellings.insert(row.print, found.clone());
        found
    }

    fn find_spelling(&mut self, row: &WaitingRow) -> Option<Spelling> {
        let smiles = smiles(&row.skeleton);
        let identity =
            MolecularIdentity::from_smiles(&smiles, AtomLimit::default(), Isotopes::Ignore).ok()?;
        if identity.written() != row.coordinates.len() {
            return None;
        }
        for (molecule, known) in self.molecules.iter().enumerate() {
            match known.identity.atoms_in(&identity) {
                IdenticalAtoms::None => {}
                IdenticalAtoms::Order(order) => {
                    let order = order.iter().map(|at| identity.kept()[*at as usize]).collect();
                    return Some(Spelling { molecule, order });
                }
                IdenticalAtoms::Unknown => return None,
            }
        }
        let (molecule, order) = (self.molecules.len(), identity.kept().into());
        self.molecules.push(GroupMolecule {
            skeleton: row.skeleton.clone(),
            identity,
            topology: OnceLock::new(),
            kept: Vec::new(),
            by_cell: HashMap::new(),
        });
        Some(Spelling { molecule, order })
    }
}

impl GroupMolecule {
    fn topology(&self) -> Option<&Topology> {
        let new = || Topology::without_hydrogens(&self.skeleton, Isotopes::Ignore).ok();
        self.topology.get_or_init(new).as_ref()
    }

    fn compare(&mut self, row: KeptConformer, closeness: Closeness) -> Duplicate {
        let points = in_angstrom(&row.values, closeness.encoding);
        let cell = closeness.cells.cell(spread(&points));
        let mut near: Vec<usize> =
            touching(cell).filter_map(|near| self.by_cell.get(&near)).flatten().copied().collect();
        // The earliest of those within the bound is the original.
        near.sort_unstable();
        let mut found = Duplicate::default();
        for at in near {
            let kept = &self.kept[at];
            let other = in_angstrom(&kept.values, closeness.encoding);
            match self.topology().and_then(|topology| topology.least_rmsd(&points, &other)) {
                Some(least) if least.rmsd <= closeness.bound => {
                    found.is_conformer = true;
                    found.original = Some(kept.place.clone());
                    return found;
                }
                Some(least) if least.is_exact => {}
                _ => found.is_undecided = true,
            }
        }
        self.by_cell.entry(cell).or_default().push(self.kept.len());
        self.kept.push(row);
        found
    }
}
