//! The senses of stereocentres, and those of which only the relation to others has a meaning.

use std::collections::BTreeSet;

use crate::vector::{minus, triple};

/// The sense of a stereocentre.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sense {
    /// The centre and three of its neighbours.
    pub(super) atoms: [usize; 4],
    /// 1 or -1: the sign of the volume that the three bonds span.
    pub(super) sign: f64,
    /// The least volume with this sign, in Å³.
    pub(super) least: f64,
    /// The index of the centre among those that may be inverted together with others; `None` if it has its own sense.
    pub(super) relative: Option<usize>,
}

impl Sense {
    /// Returns the volume that the bonds span, in Å³.
    pub(super) fn volume(&self, place: &dyn Fn(usize) -> [f64; 3]) -> f64 {
        let [centre, a, b, c] = self.atoms.map(place);
        triple(minus(a, centre), minus(b, centre), minus(c, centre))
    }
}

/// The centres that may be inverted together, as the two of `O[C@H]1CC[C@@H](C)CC1`: the first one is free, and decides the others.
#[derive(Debug, Clone, Default)]
pub(super) struct RelativeSenses {
    /// By centre of the marks, its index among the relative ones.
    indices: Vec<Option<usize>>,
    /// The ways to invert them: by relative centre, whether it is inverted.
    ways: Vec<Vec<bool>>,
    /// By relative centre, its senses.
    senses: Vec<Vec<Sense>>,
}

impl RelativeSenses {
    /// Takes the ways to invert all centres of the marks.
    pub(super) fn new(ways: BTreeSet<Vec<bool>>) -> Self {
        let centres = ways.first().map_or(0, Vec::len);
        let relative: Vec<usize> =
            (0..centres).filter(|centre| ways.iter().any(|way| way[*centre])).collect();
        let indices = (0..centres).map(|centre| relative.iter().position(|one| *one == centre)).collect();
        let ways = ways.iter().map(|way| relative.iter().map(|centre| way[*centre]).collect()).collect();
        RelativeSenses { indices, ways, senses: vec![Vec::new(); relative.len()] }
    }

    /// Returns the index of a centre among the relative ones.
    pub(super) fn index(&self, centre: usize) -> Option<usize> {
        self.indices.get(centre).copied().flatten()
    }

    /// Adds a sense of a centre, if it is relative.
    pub(super) fn add(&mut self, sense: Sense) {
        if let Some(relative) = sense.relative {
            self.senses[relative].push(sense);
        }
    }

    /// Returns the sign of a sense of an atom, given the positions of the first atoms; `None` if both are possible. If these contradict
    /// all ways, it is that of the mark. Centres that the same atom completes cannot choose together, so they take the first way.
    pub(super) fn sign(&self, sense: &Sense, atom: usize, placed: &[[f64; 3]]) -> Option<f64> {
        let Some(relative) = sense.relative else { return Some(sense.sign) };
        let inverted: Vec<Option<bool>> =
            self.senses.iter().map(|senses| is_inverted(senses, placed)).collect();
        let mut ways = self.ways.iter().filter(|way| agrees(way, &inverted)).map(|way| way[relative]);
        let Some(is_inverted) = ways.next() else { return Some(sense.sign) };
        let is_completed =
            |sense: &Sense| sense.atoms.contains(&atom) && are_known(&sense.atoms, atom, placed.len());
        let is_with_others = self.senses.iter().zip(&inverted).enumerate().any(|(other, (senses, found))| {
            other != relative && found.is_none() && senses.iter().any(is_completed)
        });
        let is_certain = is_with_others || ways.all(|other| other == is_inverted);
        is_certain.then_some(if is_inverted { -sense.sign } else { sense.sign })
    }
}

/// Returns whether a way is that of all centres of which it is known whether they are inverted.
fn agrees(way: &[bool], inverted: &[Option<bool>]) -> bool {
    way.iter().zip(inverted).all(|(own, found)| found.is_none_or(|found| found == *own))
}

/// Returns whether a centre has the other sense; `None` if no three of its bonds are placed.
fn is_inverted(senses: &[Sense], placed: &[[f64; 3]]) -> Option<bool> {
    let known = senses.iter().find(|sense| sense.atoms.iter().all(|atom| *atom < placed.len()))?;
    Some(known.sign * known.volume(&|atom| placed[atom]) < 0.0)
}

/// Returns whether all atoms but this one are among the first `known` ones.
pub(super) fn are_known(atoms: &[usize], atom: usize, known: usize) -> bool {
    atoms.iter().all(|at| *at == atom || *at < known)
}
