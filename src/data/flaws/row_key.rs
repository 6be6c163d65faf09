//! A key of each conformer, 14 bytes, by which conformers are found that may be duplicates of one another.
//!
//! Beside the key of the molecule it has the three lengths of the conformer's [spread](crate::audit::spread) in cells that are as
//! wide as the bound. Spreads differ by no more than the RMSD does, so two conformers within the bound lie in one cell or in two
//! that touch. Cells that touch are joined, so nothing within the bound is missed, wherever the borders of cells lie.

use rayon::prelude::*;

use drift_core::chem::symmetry::UnionFind;
use drift_core::{Error, Result};

/// The least width of a cell, in Å: many cells in a molecule would be of no use, and a long molecule would run out of them.
const LEAST_WIDTH_ANGSTROM: f64 = 1e-3;

/// What rounding may add to the difference of two spreads, in Å.
const SLACK_ANGSTROM: f64 = 1e-6;

/// The cells of spreads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cells {
    width: f64,
}

impl Cells {
    /// Cells in which conformers within a bound, in Å, are neighbours.
    pub(super) fn within(bound: f64) -> Self {
        Cells { width: bound.max(LEAST_WIDTH_ANGSTROM) + SLACK_ANGSTROM }
    }

    /// Returns the cell of a spread. Beyond the last cell everything is in it.
    pub(super) fn cell(self, spread: [f64; 3]) -> [u16; 3] {
        // The cast saturates.
        spread.map(|length| (length / self.width) as u16)
    }
}

/// Returns the cells that touch a cell, the cell itself included.
pub(super) fn touching(cell: [u16; 3]) -> impl Iterator<Item = [u16; 3]> {
    (0..27u8).filter_map(move |at| moved(cell, [at % 3, at / 3 % 3, at / 9]))
}

/// Returns the cell that lies -1, 0 or 1 cells away along each axis, given one more than that.
fn moved(cell: [u16; 3], by: [u8; 3]) -> Option<[u16; 3]> {
    let mut moved = cell;
    for (length, by) in moved.iter_mut().zip(by) {
        *length = u16::try_from((u32::from(*length) + u32::from(by)).checked_sub(1)?).ok()?;
    }
    Some(moved)
}

/// The key of a conformer, in halves of numbers so that it has no gaps. Keys are ordered by molecule, then by cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RowKey {
    molecule: [u16; 2],
    cell: [u16; 3],
    row: [u16; 2],
}

fn halves(number: u32) -> [u16; 2] {
    [(number >> 16) as u16, number as u16]
}

impl RowKey {
    fn row(&self) -> u32 {
        u32::from(self.row[0]) << 16 | u32::from(self.row[1])
    }
}

/// The keys of a corpus.
#[derive(Debug)]
pub(super) struct RowKeys {
    /// By the first byte of the molecule's key, so that each list can be sorted alone, and grows by little.
    lists: Vec<Vec<RowKey>>,
    rows: u64,
}

/// A conformer that may be a duplicate, or of which there may be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    /// Its number among all conformers, from 0.
    pub row: u32,
    /// The number of the conformers that it may be a duplicate of.
    pub group: u32,
}

/// All candidates.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// By row.
    pub all: Vec<Candidate>,
    /// By group, the number of its conformers.
    pub sizes: Vec<u32>,
}

impl RowKeys {
    pub(super) fn new() -> Self {
        RowKeys { lists: vec![Vec::new(); 256], rows: 0 }
    }

    /// Adds the key of the next conformer.
    ///
    /// # Errors
    /// If there are more than 2³² conformers.
    pub(super) fn push(&mut self, molecule: u32, cell: [u16; 3]) -> Result<()> {
        let row = u32::try_from(self.rows).map_err(|_| too_many())?;
        let list = &mut self.lists[(molecule >> 24) as usize];
        if list.len() == list.capacity() {
            // Doubling would take up to twice the memory of the keys.
            list.reserve_exact(list.len() / 8 + 64);
        }
        list.push(RowKey { molecule: halves(molecule), cell, row: halves(row) });
        self.rows += 1;
        Ok(())
    }

    /// Passes over the next conformer, which is compared with none.
    pub(super) fn skip(&mut self) {
        self.rows += 1;
    }

    /// Returns the conformers that may have duplicates.
    pub(super) fn candidates(self) -> Candidates {
        let found: Vec<Candidates> = self.lists.into_par_iter().map(of_list).collect();
        let mut candidates = Candidates::default();
        for part in found {
            let before = candidates.sizes.len() as u32;
            let numbered = |one: Candidate| Candidate { group: one.group + before, ..one };
            candidates.all.extend(part.all.into_iter().map(numbered));
            candidates.sizes.extend(part.sizes);
        }
        candidates.all.par_sort_unstable();
        candidates
    }
}

fn too_many() -> Error {
    let problem = "has more than 4,294,967,295 conformers to compare with one another";
    Error::input("the corpus", problem, "check parts of it")
}

/// Returns the candidates among the keys of one list.
fn of_list(mut keys: Vec<RowKey>) -> Candidates {
    keys.sort_unstable();
    let mut found = Candidates::default();
    for molecule in keys.chunk_by(|a, b| a.molecule == b.molecule).filter(|keys| keys.len() > 1) {
        let cells: Vec<&[RowKey]> = molecule.chunk_by(|a, b| a.cell == b.cell).collect();
        for set in joined(&cells) {
            let size: usize = set.iter().map(|cell| cells[*cell].len()).sum();
            if size < 2 {
                continue;
            }
            let group = found.sizes.len() as u32;
            found.sizes.push(size as u32);
            let rows = set.iter().flat_map(|cell| cells[*cell]);
            found.all.extend(rows.map(|key| Candidate { row: key.row(), group }));
        }
    }
    found
}

/// Sets of cells that touch one another, those of one cell included. Cells are sorted.
fn joined(cells: &[&[RowKey]]) -> Vec<Vec<usize>> {
    let mut together = UnionFind::new(cells.len());
    for (at, keys) in cells.iter().enumerate().filter(|_| cells.len() > 1) {
        for near in touching(keys[0].cell).filter(|near| *near > keys[0].cell) {
            if let Ok(other) = cells[at..].binary_search_by(|other| other[0].cell.cmp(&near)) {
                together.join(at, at + other);
            }
        }
    }
    let mut sets = together.sets();
    let mut is_alone = vec![true; cells.len()];
    sets.iter().flatten().for_each(|cell| is_alone[*cell] = false);
    sets.extend((0..cells.len()).filter(|cell| is_alone[*cell]).map(|cell| vec![cell]));
    sets
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn a_key_has_no_gaps() {
        assert_eq!(size_of::<RowKey>(), 14);
    }

    #[test]
    fn the_last_cell_touches_itself() {
        let last = Cells::within(0.01).cell([1e9, 0.0, 1e9]);
        assert_eq!(last, [u16::MAX, 0, u16::MAX]);
        assert_eq!(touching(last).count(), 8);
        assert!(touching(last).any(|cell| cell == last));
        assert_eq!(touching([5, 5, 5]).count(), 27);
    }

    #[test]
    fn spreads_within_the_bound_are_always_candidates_of_one_group() {
        let cells = Cells::within(0.01);
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let mut number = move |most: f64| random.random::<f64>() * most;
        let mut spreads: Vec<[f64; 3]> = (0..400).map(|_| [number(0.4), number(0.2), number(0.1)]).collect();
        spreads.push([1e6, 0.0, 0.0]);
        spreads.push([2e6, 0.0, 0.0]);
        let mut keys = RowKeys::new();
        for (row, spread) in spreads.iter().enumerate() {
            if row == 7 {
                keys.skip()
            } else {
                keys.push((row as u32 % 2) << 25, cells.cell(*spread)).unwrap()
            }
        }
        let candidates = keys.candidates();
        assert!(candidates.all.is_sorted() && candidates.all.iter().all(|one| one.row != 7));
        let group = |row: usize| candidates.all.iter().find(|one| one.row == row as u32).map(|one| one.group);
        let mut near = 0;
        for a in 0..spreads.len() {
            for b in (a + 2..spreads.len()).step_by(2).filter(|b| a != 7 && *b != 7) {
                let between: f64 = spreads[a].iter().zip(spreads[b]).map(|(a, b)| (a - b).powi(2)).sum();
                if between.sqrt() <= 0.01 {
                    near += 1;
                    assert!(group(a).is_some() && group(a) == group(b), "{a} {b}");
                }
            }
        }
        assert!(near > 10 && candidates.all.len() < spreads.len());
        let mut sizes = vec![0; candidates.sizes.len()];
        candidates.all.iter().for_each(|one| sizes[one.group as usize] += 1);
        assert_eq!(sizes, candidates.sizes);
    }
}
