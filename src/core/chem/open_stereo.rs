//! Stereo that coordinates have and a SMILES leaves open: what RDKit would mark in its own SMILES.

use std::collections::HashMap;

use super::elements::HYDROGEN;
use super::labelled::LabelledGraph;
use super::polyhedra::is_polyhedron;
use super::search::{BondColours, IdenticalAtoms, all_differ, colours, first_of_colours};
pub(super) use super::stereo::SMALLEST_RING;
use super::stereo::{DoubleBondMark, MarkImage, StereoMarks, TetrahedralMark, is_last};

/// The neighbours of lighter elements lie at the corners of a tetrahedron.
const LIGHTEST_POLYHEDRON: u8 = 15;

/// The atoms and double bonds that could have stereo, marked or not, and which of them are not marked.
///
/// Indices count the centres first, then the double bonds.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenStereo {
    /// Each as if it were marked `@` with neighbours in ascending order.
    centres: Vec<TetrahedralMark>,
    double_bonds: Vec<DoubleBondMark>,
    /// Unmarked atoms with several possible arrangements if their neighbours form a square, a bipyramid or an octahedron.
    polyhedra: Vec<usize>,
    /// Indices of unmarked places whose neighbours are all different.
    certain: Vec<usize>,
    /// Indices of unmarked places with two neighbours that look the same, so that their stereo depends on the rest of the molecule.
    dependent: Vec<usize>,
    /// Cached results, by the sense of each centre and double bond, and by whether each polyhedron is one.
    cache: HashMap<Vec<Option<bool>>, StereoPlaces>,
}

/// The places of a molecule that have stereo.
#[derive(Debug, Clone, Default)]
pub(super) struct StereoPlaces {
    /// Atoms, ascending.
    pub(super) centres: Vec<usize>,
    /// Double bonds, ascending.
    pub(super) double_bonds: Vec<[usize; 2]>,
}

impl OpenStereo {
    pub(super) fn from_graph(graph: &LabelledGraph) -> Self {
        let [colours] = colours([graph], BondColours::LeftOut);
        let (centres, double_bonds) = possible(graph, &colours);
        let polyhedra = (0..graph.labels.len()).filter(|atom| has_corners(graph, &colours, *atom)).collect();
        let mut open = OpenStereo { centres, double_bonds, polyhedra, ..OpenStereo::default() };
        let places = 0..open.centres.len() + open.double_bonds.len();
        let unmarked = places.filter(|place| !open.is_marked(&graph.marks, *place));
        (open.certain, open.dependent) =
            unmarked.partition(|place| open.neighbours_differ(graph, &colours, *place));
        open
    }

    /// Returns whether a place has a mark. A mark that RDKit drops decides nothing, but it is not left open either.
    fn is_marked(&self, marks: &StereoMarks, place: usize) -> bool {
        let Some(centre) = self.centres.get(place) else {
            let atoms = self.double_bonds[place - self.centres.len()].atoms;
            let mut marked = marks.double_bonds.iter().map(|mark| &mark.atoms).chain(&marks.dropped_bonds);
            return marked.any(|bond| bond.iter().all(|atom| atoms.contains(atom)));
        };
        marks.centres.iter().any(|mark| mark.atom == centre.atom) || marks.dropped.contains(&centre.atom)
    }

    /// Returns whether the neighbours of a place all look different.
    fn neighbours_differ(&self, graph: &LabelledGraph, colours: &[u64], place: usize) -> bool {
        let Some(centre) = self.centres.get(place) else {
            let [a, b] = self.double_bonds[place - self.centres.len()].atoms;
            return twin(graph, colours, a, b).is_none() && twin(graph, colours, b, a).is_none();
        };
        all_differ(centre.neighbours.iter().flatten().map(|atom| colours[*atom]))
    }

    /// Returns whether nothing can be open, whatever the coordinates.
    fn is_empty(&self) -> bool {
        self.certain.is_empty() && self.dependent.is_empty() && self.polyhedra.is_empty()
    }

    /// Returns the atoms and double bonds that have stereo in a conformer but no mark.
    pub(super) fn found(&mut self, graph: &LabelledGraph, place: &dyn Fn(usize) -> [f64; 3]) -> StereoPlaces {
        if self.is_empty() {
            return StereoPlaces::default();
        }
        let senses: Vec<Option<bool>> = self
            .centres
            .iter()
            .map(|mark| mark.agrees(place))
            .chain(self.double_bonds.iter().map(|mark| mark.agrees(place)))
            .chain(self.polyhedra.iter().map(|atom| Some(is_polyhedral(graph, *atom, place))))
            .collect();
        // Conformers of a molecule mostly have the same senses, and the search for mirror images is slow.
        if let Some(known) = self.cache.get(&senses) {
            return known.clone();
        }
        let dependent = self
            .dependent
            .iter()
            .filter(|at| senses[**at].is_some_and(|_| !self.is_mirrored(graph, &senses, **at)));
        let certain = self.certain.iter().filter(|at| senses[**at].is_some());
        let mut open: Vec<usize> = certain.chain(dependent).copied().collect();
        open.sort_unstable();
        let bonds = open.split_off(open.partition_point(|at| *at < self.centres.len()));
        let polyhedra = self.polyhedra.iter().zip(&senses[self.centres.len() + self.double_bonds.len()..]);
        let polyhedral = polyhedra.filter(|(_, sense)| **sense == Some(true)).map(|(atom, _)| *atom);
        let mut centres: Vec<usize> =
            open.into_iter().map(|at| self.centres[at].atom).chain(polyhedral).collect();
        centres.sort_unstable();
        centres.dedup();
        let double_bonds =
            bonds.into_iter().map(|at| self.double_bonds[at - self.centres.len()].atoms).collect();
        let places = StereoPlaces { centres, double_bonds };
        self.cache.insert(senses, places.clone());
        places
    }

    /// Returns whether the molecule stays the same with one place inverted, which means that this place has no stereo. If there is too
    /// much symmetry to decide, the place counts as having none.
    fn is_mirrored(&self, graph: &LabelledGraph, senses: &[Option<bool>], mirrored: usize) -> bool {
        let mirror = MirrorImage { stereo: self, senses, mirrored };
        let colours = colours([graph; 2], BondColours::LeftOut);
        let allows = |last: usize, images: &[u32]| mirror.allows(last, images);
        first_of_colours(graph, graph, &colours, &allows) != IdenticalAtoms::None
    }
}

/// An image of a molecule in itself that inverts one place with stereo.
struct MirrorImage<'a> {
    stereo: &'a OpenStereo,
    /// By place, its sense in a conformer; `None` if it is flat.
    senses: &'a [Option<bool>],
    /// The place that is inverted.
    mirrored: usize,
}

impl MirrorImage<'_> {
    /// Returns whether each place that is complete once `last` has an image may have the place that it is mapped to.
    fn allows(&self, last: usize, images: &[u32]) -> bool {
        let OpenStereo { centres, double_bonds, .. } = self.stereo;
        let image = |atom: usize| images[atom] as usize;
        let mut due_centres = centres.iter().enumerate().filter(|(_, mark)| is_last(last, mark.all()));
        let mut due_bonds = double_bonds.iter().enumerate().filter(|(_, mark)| is_last(last, mark.all()));
        due_centres.all(|(at, mark)| self.keeps(at, mark.image_in(centres, &image)))
            && due_bonds.all(|(at, mark)| {
                let place = mark.image_in(double_bonds, &image);
                let place = place.map(|bond| MarkImage { index: centres.len() + bond.index, ..bond });
                self.keeps(centres.len() + at, place)
            })
    }

    /// Returns whether a place keeps its sense in its image, or inverts it if it is the mirrored one. An unknown sense counts as kept.
    fn keeps(&self, at: usize, image: Option<MarkImage>) -> bool {
        let after = image.and_then(|image| Some(self.senses[image.index]? ^ image.inverted));
        match (self.senses[at], after) {
            (Some(before), Some(after)) => (before != after) == (at == self.mirrored),
            _ => at != self.mirrored,
        }
    }
}

/// Returns whether an unmarked atom has four to six neighbours that can be arranged around it in more than one way.
fn has_corners(graph: &LabelledGraph, colours: &[u64], atom: usize) -> bool {
    if graph.labels[atom].element < LIGHTEST_POLYHEDRON || is_marked_polyhedron(graph, atom) {
        return false;
    }
    let alike = alike(graph, colours, atom);
    let most = alike.iter().copied().max().unwrap_or(0);
    match alike.len() {
        // Three of four equal neighbours, five of five, or five of six leave a single arrangement.
        4 => most < 3,
        5 | 6 => most < 5,
        _ => false,
    }
}

/// By neighbour of an atom, how many of its neighbours look like that one.
fn alike(graph: &LabelledGraph, colours: &[u64], atom: usize) -> Vec<usize> {
    let around = around(graph, atom);
    let like = |a: &u32| around.iter().filter(|b| colours[**b as usize] == colours[*a as usize]).count();
    around.iter().map(like).collect()
}

fn is_marked_polyhedron(graph: &LabelledGraph, atom: usize) -> bool {
    graph.marks.polyhedra.iter().any(|mark| mark.atom == atom) || graph.marks.unchecked.contains(&atom)
}

fn is_polyhedral(graph: &LabelledGraph, atom: usize, place: &dyn Fn(usize) -> [f64; 3]) -> bool {
    is_polyhedron(place(atom), graph.neighbours[atom].iter().map(|link| place(link.atom as usize)))
}

/// Returns the centres and double bonds that can have stereo. Two equal branches without any stereo of their own rule a place out.
fn possible(graph: &LabelledGraph, colours: &[u64]) -> (Vec<TetrahedralMark>, Vec<DoubleBondMark>) {
    let mut centres: Vec<TetrahedralMark> = (0..graph.labels.len())
        .filter(|atom| {
            !has_three_equal_branches(graph, colours, *atom) && !is_marked_polyhedron(graph, *atom)
        })
        .filter_map(|atom| possible_centre(graph, atom))
        .collect();
    let mut double_bonds: Vec<DoubleBondMark> =
        graph.double_bonds.iter().filter_map(|atoms| possible_bond(graph, *atoms)).collect();
    loop {
        let mut has_stereo = vec![false; graph.labels.len()];
        centres.iter().for_each(|mark| has_stereo[mark.atom] = true);
        double_bonds.iter().flat_map(|mark| mark.atoms).for_each(|atom| has_stereo[atom] = true);
        // A place that is ruled out may make the branches of others equal, so this repeats until nothing changes.
        let before = centres.len() + double_bonds.len();
        centres.retain(|mark| !has_equal_branches(graph, colours, &has_stereo, mark.atom));
        double_bonds.retain(|mark| {
            let [a, b] = mark.atoms;
            // The bond's own atoms lie behind both branches, so they must not count.
            let mut elsewhere = has_stereo.clone();
            mark.atoms.iter().for_each(|atom| elsewhere[*atom] = false);
            [(a, b), (b, a)].into_iter().all(|(atom, across)| {
                twin(graph, colours, atom, across)
                    .is_none_or(|start| !is_plain(graph, &elsewhere, atom, start))
            })
        });
        if centres.len() + double_bonds.len() == before {
            return (centres, double_bonds);
        }
    }
}

/// Returns one of the two neighbours of a double-bond atom, if both look the same.
fn twin(graph: &LabelledGraph, colours: &[u64], atom: usize, across: usize) -> Option<u32> {
    let mut others =
        graph.neighbours[atom].iter().map(|link| link.atom).filter(|other| *other as usize != across);
    let (x, y) = (others.next()?, others.next()?);
    (colours[x as usize] == colours[y as usize]).then_some(x)
}

fn around(graph: &LabelledGraph, atom: usize) -> Vec<u32> {
    graph.neighbours[atom].iter().map(|link| link.atom).collect()
}

/// Returns whether three branches of an atom look the same and the fourth does not, as at the bridgeheads of adamantane. RDKit does not
/// take such an atom for a stereocentre.
fn has_three_equal_branches(graph: &LabelledGraph, colours: &[u64], atom: usize) -> bool {
    alike(graph, colours, atom).contains(&3)
}

/// Returns whether two branches of an atom look the same and contain nothing with stereo.
fn has_equal_branches(graph: &LabelledGraph, colours: &[u64], has_stereo: &[bool], atom: usize) -> bool {
    let around = around(graph, atom);
    let has_twin = |a: &u32| around.iter().any(|b| a != b && colours[*a as usize] == colours[*b as usize]);
    around.iter().any(|a| has_twin(a) && is_plain(graph, has_stereo, atom, *a))
}

/// Returns whether the branch of an atom that starts at a neighbour contains nothing with stereo and does not lead back to the atom.
fn is_plain(graph: &LabelledGraph, has_stereo: &[bool], atom: usize, start: u32) -> bool {
    let around = around(graph, atom);
    let (mut seen, mut next) = (vec![start], 0);
    while let Some(&at) = seen.get(next) {
        if has_stereo[at as usize] {
            return false;
        }
        for other in graph.neighbours[at as usize].iter().map(|link| link.atom) {
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
}

/// Returns an atom that RDKit considers as a stereocentre: one with four neighbours, at most one of them an implied hydrogen; or sulfur
/// or selenium with three neighbours and valence 4, or valence 3 and a charge of +1.
fn possible_centre(graph: &LabelledGraph, atom: usize) -> Option<TetrahedralMark> {
    let (label, around) = (&graph.labels[atom], around(graph, atom));
    let tetrahedral = around.len() == 4 || around.len() == 3 && label.hydrogens == 1;
    let sulfonium = matches!(label.element, 16 | 34)
        && around.len() == 3
        && label.hydrogens == 0
        && around.iter().all(|other| graph.labels[*other as usize].element != HYDROGEN)
        && (label.valence == 4 || label.valence == 3 && label.charge == 1);
    if !tetrahedral && !sulfonium {
        return None;
    }
    let neighbours = std::array::from_fn(|at| around.get(at).map(|other| *other as usize));
    let has_lone_pair = around.len() + label.hydrogens as usize == 3;
    Some(TetrahedralMark { atom, neighbours, has_lone_pair, counterclockwise: true })
}

/// Returns a double bond outside of small rings, with neighbours on each side.
fn possible_bond(graph: &LabelledGraph, [a, b]: [usize; 2]) -> Option<DoubleBondMark> {
    let (at_a, at_b) = (Substituents::new(graph, a, b)?, Substituents::new(graph, b, a)?);
    let ring = ring_size(graph, a, b);
    (ring >= SMALLEST_RING).then_some(DoubleBondMark {
        atoms: [a, b],
        neighbours: [at_a.first, at_b.first],
        others: [at_a.second, at_b.second],
        together: true,
    })
}

/// The substituents of an atom of a double bond, ascending.
struct Substituents {
    first: usize,
    second: Option<usize>,
}

impl Substituents {
    /// `None` if the atom cannot have stereo.
    fn new(graph: &LabelledGraph, atom: usize, across: usize) -> Option<Self> {
        let mut others: Vec<usize> = graph.neighbours[atom]
            .iter()
            .map(|link| link.atom as usize)
            .filter(|other| *other != across)
            .collect();
        others.sort_unstable();
        let has_other_double =
            graph.double_bonds.iter().any(|bond| bond.contains(&atom) && !bond.contains(&across));
        match others[..] {
            _ if has_other_double => None,
            [first] if graph.labels[atom].hydrogens <= 1 => Some(Substituents { first, second: None }),
            [first, second] => Some(Substituents { first, second: Some(second) }),
            _ => None,
        }
    }
}

/// Returns the size of the smallest ring with this bond; [`SMALLEST_RING`] also if the ring is larger or there is none.
pub(super) fn ring_size(graph: &LabelledGraph, a: usize, b: usize) -> usize {
    let mut seen = vec![a];
    let mut shell = vec![a];
    for size in 2..SMALLEST_RING {
        let mut next = Vec::new();
        for &atom in &shell {
            for other in graph.neighbours[atom].iter().map(|link| link.atom as usize) {
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
