//! Stereo that a SMILES leaves open although its molecule has some: what RDKit would mark in a SMILES of its own.

use std::collections::HashMap;

use super::labelled::LabelledGraph;
use super::search::{Ended, Question, colours, isomorphisms};
use super::stereo::{DoubleBondMark, TetrahedralMark};

/// Double bonds in smaller rings have no stereo.
const SMALLEST_RING: usize = 8;

/// What could be a stereocentre or a double bond with stereo, marked or not, and which of it is not marked.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenStereo {
    /// As if all were marked `@`, neighbours ascending.
    centres: Vec<TetrahedralMark>,
    double_bonds: Vec<DoubleBondMark>,
    /// Places in `centres` without a mark whose neighbours are all different.
    certain: Vec<usize>,
    /// Places in `centres` without a mark of which two neighbours look the same, so that it depends on the rest.
    dependent: Vec<usize>,
    /// Double bonds without a mark.
    open_bonds: Vec<[usize; 2]>,
    /// What was found for each sense of the centres and double bonds.
    known: HashMap<Vec<Option<bool>>, Vec<usize>>,
}

impl OpenStereo {
    pub(super) fn of(graph: &LabelledGraph) -> Self {
        let [colours, _] = colours(graph, graph);
        let double_bonds: Vec<DoubleBondMark> =
            graph.double_bonds.iter().filter_map(|atoms| possible_bond(graph, &colours, *atoms)).collect();
        let centres = possible_centres(graph, &colours, &double_bonds);
        let marked = |atom: usize| graph.marks.centres.iter().any(|mark| mark.atom == atom);
        let differ = |mark: &TetrahedralMark| {
            let mut around: Vec<u64> = mark.neighbours.iter().flatten().map(|atom| colours[*atom]).collect();
            around.sort_unstable();
            around.windows(2).all(|pair| pair[0] != pair[1])
        };
        let unmarked = (0..centres.len()).filter(|place| !marked(centres[*place].atom));
        let (certain, dependent) = unmarked.partition(|place| differ(&centres[*place]));
        let open = |mark: &&DoubleBondMark| {
            !graph
                .marks
                .double_bonds
                .iter()
                .any(|known| known.atoms.iter().all(|atom| mark.atoms.contains(atom)))
        };
        let open_bonds = double_bonds.iter().filter(open).map(|mark| mark.atoms).collect();
        OpenStereo { centres, double_bonds, certain, dependent, open_bonds, known: HashMap::new() }
    }

    /// Whether there can be none, whatever the coordinates.
    pub(super) fn is_empty(&self) -> bool {
        self.certain.is_empty() && self.dependent.is_empty() && self.open_bonds.is_empty()
    }

    /// Double bonds without a mark, the same for all coordinates.
    pub(super) fn bonds(&self) -> &[[usize; 2]] {
        &self.open_bonds
    }

    /// Stereocentres without a mark in a conformer, ascending.
    pub(super) fn centres(&mut self, graph: &LabelledGraph, place: &dyn Fn(usize) -> [f64; 3]) -> Vec<usize> {
        let senses: Vec<Option<bool>> = self
            .centres
            .iter()
            .map(|mark| mark.agrees(place))
            .chain(self.double_bonds.iter().map(|mark| mark.agrees(place)))
            .collect();
        if let Some(known) = self.known.get(&senses) {
            return known.clone();
        }
        let is_open = |at: &usize| senses[*at].is_some() && !self.is_mirrored(graph, &senses, *at);
        let mut open: Vec<usize> = self.certain.iter().filter(|at| senses[**at].is_some()).copied().collect();
        open.extend(self.dependent.iter().copied().filter(is_open));
        let mut atoms: Vec<usize> = open.into_iter().map(|at| self.centres[at].atom).collect();
        atoms.sort_unstable();
        self.known.insert(senses, atoms.clone());
        atoms
    }

    /// Whether the molecule is the same with one centre the other way round: then that is no stereocentre. Where there is too much
    /// symmetry to tell, it is taken for none.
    fn is_mirrored(&self, graph: &LabelledGraph, senses: &[Option<bool>], mirrored: usize) -> bool {
        let colours = colours(graph, graph);
        let mut question = Mirror { open: self, senses, mirrored, found: false };
        let ended = isomorphisms(graph, graph, &colours, &mut question);
        question.found || ended == Ended::GivenUp
    }
}

/// An order of atoms that keeps every sense but one, which it turns round.
struct Mirror<'o> {
    open: &'o OpenStereo,
    senses: &'o [Option<bool>],
    mirrored: usize,
    found: bool,
}

impl Question for Mirror<'_> {
    fn allows(&mut self, last: usize, images: &[u32]) -> bool {
        let OpenStereo { centres, double_bonds, .. } = self.open;
        let sense = |at: usize| self.senses[at];
        let due = |atoms: &mut dyn Iterator<Item = usize>| atoms.max() == Some(last);
        let centres_agree = centres.iter().enumerate().all(|(at, mark)| {
            let mut all = mark.neighbours.iter().flatten().copied().chain([mark.atom]);
            !due(&mut all) || self.keeps(at, sense(at), image_of_centre(centres, mark, images, &sense))
        });
        centres_agree
            && double_bonds.iter().enumerate().all(|(at, mark)| {
                let mut all = mark.atoms.iter().chain(&mark.neighbours).copied();
                let bonds = |at: usize| sense(centres.len() + at);
                !due(&mut all)
                    || self.keeps(usize::MAX, bonds(at), image_of_bond(double_bonds, mark, images, &bonds))
            })
    }

    fn found(&mut self, _: &[u32]) -> bool {
        self.found = true;
        false
    }
}

impl Mirror<'_> {
    /// Whether a sense is as it has to be; what cannot be told is.
    fn keeps(&self, at: usize, before: Option<bool>, after: Option<bool>) -> bool {
        match (before, after) {
            (Some(before), Some(after)) => (before != after) == (at == self.mirrored),
            _ => at != self.mirrored,
        }
    }
}

/// The sense that the image of a centre has in the order of the images of its neighbours.
fn image_of_centre(
    centres: &[TetrahedralMark],
    mark: &TetrahedralMark,
    images: &[u32],
    sense: &dyn Fn(usize) -> Option<bool>,
) -> Option<bool> {
    let image = images[mark.atom] as usize;
    let at = centres.iter().position(|centre| centre.atom == image)?;
    let moved = mark.neighbours.map(|atom| atom.map(|atom| images[atom] as usize));
    Some(sense(at)? ^ is_odd(&moved))
}

/// Likewise of a double bond.
fn image_of_bond(
    bonds: &[DoubleBondMark],
    mark: &DoubleBondMark,
    images: &[u32],
    sense: &dyn Fn(usize) -> Option<bool>,
) -> Option<bool> {
    let [a, b] = mark.atoms.map(|atom| images[atom] as usize);
    let [x, y] = mark.neighbours.map(|atom| images[atom] as usize);
    let at = bonds.iter().position(|bond| bond.atoms == [a, b] || bond.atoms == [b, a])?;
    let known = &bonds[at];
    let [own_a, own_b] =
        if known.atoms == [a, b] { known.neighbours } else { [known.neighbours[1], known.neighbours[0]] };
    Some(sense(at)? ^ (own_a != x) ^ (own_b != y))
}

/// Whether an odd number of swaps sorts neighbours, the implied one last.
fn is_odd(neighbours: &[Option<usize>; 4]) -> bool {
    let rank = |atom: &Option<usize>| atom.unwrap_or(usize::MAX);
    let pairs = (0..4).flat_map(|i| (i + 1..4).map(move |j| (i, j)));
    pairs.filter(|(i, j)| rank(&neighbours[*i]) > rank(&neighbours[*j])).count() % 2 == 1
}

/// The atoms that can be stereocentres. An atom with two branches that are the same, and hold nothing that has stereo, is none.
fn possible_centres(
    graph: &LabelledGraph,
    colours: &[u64],
    double_bonds: &[DoubleBondMark],
) -> Vec<TetrahedralMark> {
    let mut centres: Vec<TetrahedralMark> = (0..graph.labels.len())
        .filter(|atom| !has_three_equal_branches(graph, colours, *atom))
        .filter_map(|atom| possible_centre(graph, atom))
        .collect();
    loop {
        let mut has_stereo = vec![false; graph.labels.len()];
        centres.iter().for_each(|mark| has_stereo[mark.atom] = true);
        double_bonds.iter().flat_map(|mark| mark.atoms).for_each(|atom| has_stereo[atom] = true);
        let before = centres.len();
        centres.retain(|mark| !has_equal_branches(graph, colours, &has_stereo, mark.atom));
        if centres.len() == before {
            return centres;
        }
    }
}

/// Whether three branches of an atom look the same, as at the bridgeheads of adamantane: RDKit takes it for no stereocentre.
fn has_three_equal_branches(graph: &LabelledGraph, colours: &[u64], atom: usize) -> bool {
    let around = &graph.neighbours[atom];
    let like = |a: &u32| around.iter().filter(|b| colours[**b as usize] == colours[*a as usize]).count();
    around.iter().any(|a| like(a) >= 3)
}

/// Whether two branches of an atom are the same and hold nothing that has stereo.
fn has_equal_branches(graph: &LabelledGraph, colours: &[u64], has_stereo: &[bool], atom: usize) -> bool {
    let around = &graph.neighbours[atom];
    let plain = |start: u32| {
        let (mut seen, mut next) = (vec![start], 0);
        while let Some(&at) = seen.get(next) {
            if has_stereo[at as usize] {
                return false;
            }
            for &other in &graph.neighbours[at as usize] {
                let is_ring = other as usize != atom && around.contains(&other) && other != start;
                if is_ring {
                    return false;
                }
                if other as usize != atom && !seen.contains(&other) {
                    seen.push(other);
                }
            }
            next += 1;
        }
        true
    };
    let twins = |a: &u32, b: &u32| a != b && colours[*a as usize] == colours[*b as usize];
    around.iter().any(|a| around.iter().any(|b| twins(a, b)) && plain(*a))
}

/// An atom that RDKit would look at: four neighbours, one of them at most a hydrogen; or sulfur and selenium with three neighbours, of
/// valence 4, or 3 and charged.
fn possible_centre(graph: &LabelledGraph, atom: usize) -> Option<TetrahedralMark> {
    let (label, around) = (&graph.labels[atom], &graph.neighbours[atom]);
    let tetrahedral = around.len() == 4 || around.len() == 3 && label.hydrogens == 1;
    let sulfonium = matches!(label.element, 16 | 34)
        && around.len() == 3
        && label.hydrogens == 0
        && (label.valence == 4 || label.valence == 3 && label.charge == 1);
    if !tetrahedral && !sulfonium {
        return None;
    }
    let neighbours = std::array::from_fn(|at| around.get(at).map(|other| *other as usize));
    Some(TetrahedralMark { atom, neighbours, counterclockwise: true })
}

/// A double bond that is in no small ring, with different neighbours on each side.
fn possible_bond(graph: &LabelledGraph, colours: &[u64], [a, b]: [usize; 2]) -> Option<DoubleBondMark> {
    let side = |atom: usize, across: usize| -> Option<usize> {
        let others: Vec<usize> = graph.neighbours[atom]
            .iter()
            .map(|other| *other as usize)
            .filter(|other| *other != across)
            .collect();
        let has_other_double =
            graph.double_bonds.iter().any(|bond| bond.contains(&atom) && !bond.contains(&across));
        let differ = match others[..] {
            [_] => graph.labels[atom].hydrogens <= 1,
            [x, y] => colours[x] != colours[y],
            _ => false,
        };
        others.into_iter().min().filter(|_| differ && !has_other_double)
    };
    let neighbours = [side(a, b)?, side(b, a)?];
    let ring = ring_size(graph, a, b);
    (ring >= SMALLEST_RING).then_some(DoubleBondMark { atoms: [a, b], neighbours, together: true })
}

/// The atoms of the smallest ring that a bond lies in, up to [`SMALLEST_RING`], which also stands for larger ones and for none.
fn ring_size(graph: &LabelledGraph, a: usize, b: usize) -> usize {
    let mut seen = vec![a];
    let mut shell = vec![a];
    for size in 2..SMALLEST_RING {
        let mut next = Vec::new();
        for &atom in &shell {
            for &other in &graph.neighbours[atom] {
                let other = other as usize;
                if other == b && atom != a {
                    return size;
                }
                if other != b && !seen.contains(&other) {
                    seen.push(other);
                    next.push(other);
                }
            }
        }
        shell = next;
    }
    SMALLEST_RING
}
