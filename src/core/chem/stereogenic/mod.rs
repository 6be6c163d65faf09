//! Which stereo marks of a SMILES mean something: those that RDKit keeps when it reads the SMILES (`MolFromSmiles` of release
//! 2026.09, with its default perception).
//!
//! RDKit drops a mark if its atom cannot be a stereocentre, such as a nitrogen that inverts (`CC[N@](C)CO`), a carbon in a plane,
//! or one with two equal neighbours (`C[C@H](C)O`). It perceives stereo in rounds: a centre that is known may distinguish the
//! neighbours of others. Marks that decide only together, such as the two of `C[C@H]1CC[C@@H](C)CC1`, are found in their rings.
//! The source is `legacyStereoPerception` in `Code/GraphMol/Chirality.cpp`.

mod centre;
mod ranks;

use self::centre::Centres;
use self::ranks::Ranking;
use super::graph::{Graph, Order};
use super::hydrogens::places_without;
use super::molecule::Molecule;
use super::stereo::{DoubleBondMark, SMALLEST_RING, StereoMarks};

/// Returns the marks of a text; those that RDKit drops are listed as such. Atoms are numbered as in `written`, the graph of the text.
/// `molecule` is the same graph without the `removed` hydrogens, after sanitisation; `aromatic` tells which of its bonds are aromatic.
pub(super) fn perceived_marks(
    written: &Graph,
    removed: &[bool],
    molecule: &Molecule,
    aromatic: &[bool],
) -> StereoMarks {
    let all = StereoMarks::from_graph(written);
    if all.is_empty() && all.unchecked.is_empty() {
        return all;
    }
    let numbers = places_without(removed);
    let found = Perception::new(molecule, aromatic, all.renumbered(&numbers)).kept();
    let is_kept_atom = |atom: usize| numbers[atom].is_some_and(|atom| found.atoms[atom]);
    all.only(&is_kept_atom, &|atoms| {
        let atoms = atoms.map(|atom| numbers[atom]);
        found.double_bonds.iter().any(|bond| bond.map(Some) == atoms)
    })
}

/// What RDKit keeps.
struct KeptMarks {
    /// By atom, whether its mark is kept.
    atoms: Vec<bool>,
    /// The double bonds whose marks are kept.
    double_bonds: Vec<[usize; 2]>,
}

/// The state of RDKit's perception.
struct Perception<'m> {
    molecule: &'m Molecule,
    aromatic: &'m [bool],
    marks: StereoMarks,
    centres: Centres<'m>,
    ranking: Ranking,
    /// By stereocentre among the marks, whether it is R, once its neighbours are known to differ.
    is_r: Vec<Option<bool>>,
    /// By double bond among the marks, whether it is Z, once the neighbours of each end are known to differ.
    is_z: Vec<Option<bool>>,
}

impl<'m> Perception<'m> {
    /// `marks` has the numbers of the molecule.
    fn new(molecule: &'m Molecule, aromatic: &'m [bool], mut marks: StereoMarks) -> Self {
        let centres = Centres::new(molecule, aromatic);
        // Before all else, atoms whose bonds do not point to the corners of a tetrahedron lose their marks.
        marks.centres.retain(|mark| centres.is_tetrahedral(mark.atom));
        Perception {
            molecule,
            aromatic,
            centres,
            ranking: Ranking::new(molecule, aromatic),
            is_r: vec![None; marks.centres.len()],
            is_z: vec![None; marks.double_bonds.len()],
            marks,
        }
    }

    fn kept(mut self) -> KeptMarks {
        while self.find_centres() | self.find_double_bonds() {
            self.ranking.refine_by(&self.known_stereo());
        }
        let mut atoms = vec![false; self.molecule.atoms.len()];
        for (mark, is_r) in self.marks.centres.iter().zip(&self.is_r) {
            atoms[mark.atom] = is_r.is_some();
        }
        let open = self.marks.centres.iter().zip(&self.is_r).filter(|(_, is_r)| is_r.is_none());
        let open: Vec<usize> = open.map(|(mark, _)| mark.atom).collect();
        for atom in self.centres.in_shared_rings(&open, &self.ranking.ranks) {
            atoms[atom] = true;
        }
        let polyhedral =
            self.marks.polyhedra.iter().map(|mark| mark.atom).chain(self.marks.unchecked.iter().copied());
        for atom in polyhedral {
            atoms[atom] = self.centres.is_polyhedral(atom);
        }
        let double_bonds = self.marks.double_bonds.iter().zip(&self.is_z).filter(|(_, is_z)| is_z.is_some());
        KeptMarks { atoms, double_bonds: double_bonds.map(|(mark, _)| mark.atoms).collect() }
    }

    /// Finds R or S for centres whose neighbours differ by now. Returns whether there are any new ones.
    fn find_centres(&mut self) -> bool {
        let ranks = &self.ranking.ranks;
        let mut has_new = false;
        for (mark, is_r) in self.marks.centres.iter().zip(&mut self.is_r).filter(|(_, is_r)| is_r.is_none()) {
            if self.centres.is_possible(mark.atom) && self.centres.has_different_neighbours(mark.atom, ranks)
            {
                *is_r = Some(!mark.is_counterclockwise_by(ranks));
                has_new = true;
            }
        }
        has_new
    }

    /// Finds E or Z for double bonds whose ends have different neighbours by now. Returns whether there are any new ones.
    fn find_double_bonds(&mut self) -> bool {
        let mut has_new = false;
        for at in 0..self.is_z.len() {
            if self.is_z[at].is_none() && self.has_stereo(&self.marks.double_bonds[at]) {
                self.is_z[at] = Some(self.marks.double_bonds[at].is_together_by(&self.ranking.ranks));
                has_new = true;
            }
        }
        has_new
    }

    /// Returns whether a double bond can have stereo, and the neighbours of each end differ.
    fn has_stereo(&self, mark: &DoubleBondMark) -> bool {
        let ranks = &self.ranking.ranks;
        let [a, b] = mark.atoms;
        let bond = self.molecule.neighbours[a].iter().find(|bond| self.molecule.bonds[**bond].other(a) == b);
        let is_double = bond
            .is_some_and(|bond| self.molecule.bonds[*bond].order == Order::Double && !self.aromatic[*bond]);
        let has_ends = mark.atoms.iter().all(|atom| matches!(self.molecule.neighbours[*atom].len(), 2 | 3));
        let differ = (0..2)
            .all(|end| mark.others[end].is_none_or(|other| ranks[other] != ranks[mark.neighbours[end]]));
        is_double && has_ends && differ && !self.centres.is_in_ring_below([a, b], SMALLEST_RING)
    }

    /// By atom, a number for what is known of its own stereo and that of its double bonds, as RDKit counts it.
    fn known_stereo(&self) -> Vec<usize> {
        let mut known = vec![0; self.molecule.atoms.len()];
        for (mark, is_r) in self.marks.centres.iter().zip(&self.is_r) {
            known[mark.atom] += is_r.map_or(0, |is_r| if is_r { 20 } else { 10 });
        }
        for (mark, is_z) in self.marks.double_bonds.iter().zip(&self.is_z) {
            mark.atoms
                .iter()
                .for_each(|atom| known[*atom] += is_z.map_or(0, |is_z| if is_z { 2 } else { 1 }));
        }
        known
    }
}

#[cfg(test)]
mod tests;
