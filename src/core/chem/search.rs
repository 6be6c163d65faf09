//! The graph matcher: isomorphisms of graphs with labelled atoms and bonds, atom by atom.

use super::labelled::{Label, LabelledGraph, Link, LinksOfAtom};

/// The number of placements after which a search is given up.
const MAX_STEPS: u64 = 400_000;

/// How the atoms of another molecule correspond to those of this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdenticalAtoms {
    /// No order is possible. If only the graphs were compared, they are different molecules.
    None,
    /// One of the possible orders: for each compared atom of this molecule, the index of its image among the other's compared
    /// atoms.
    Order(Vec<u32>),
    /// The search for an order was given up because there is too much symmetry.
    Unknown,
}

/// Whether bond orders count in colours. They must not if one graph has free bonds where the other has orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BondColours {
    Counted,
    LeftOut,
}

/// Colours of the atoms of graphs. No isomorphism maps between different colours. They start from the labels and are refined by the
/// neighbours' colours until nothing changes.
pub(crate) fn colours<const N: usize>(graphs: [&LabelledGraph; N], bonds: BondColours) -> [Vec<u64>; N] {
    let mut colours = graphs.map(|graph| graph.labels.iter().map(hash).collect::<Vec<u64>>());
    let mut distinct = count(&colours);
    loop {
        let next = std::array::from_fn(|side| refined(graphs[side], &colours[side], bonds));
        let now = count(&next);
        // A round only splits colours, so an equal number means that nothing changed.
        if now == distinct {
            return colours;
        }
        (colours, distinct) = (next, now);
    }
}

/// Returns whether two lists hold the same colours, each equally often.
pub(crate) fn are_same(colours: &[Vec<u64>; 2]) -> bool {
    let [a, b] = colours.each_ref().map(|colours| sorted(colours.iter().copied()));
    a == b
}

/// Returns whether no colour occurs twice.
pub(super) fn all_differ(colours: impl Iterator<Item = u64>) -> bool {
    sorted(colours).windows(2).all(|pair| pair[0] != pair[1])
}

fn sorted(colours: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut sorted: Vec<u64> = colours.collect();
    sorted.sort_unstable();
    sorted
}

fn refined(graph: &LabelledGraph, colours: &[u64], bonds: BondColours) -> Vec<u64> {
    let atoms = colours.iter().zip(&graph.neighbours).map(|(colour, links)| {
        // A sum, because neighbours have no order. Each term is hashed first, so that different neighbours rarely have the same
        // sum.
        let neighbours =
            links.iter().map(|link| colour_of_link(link, colours, bonds)).fold(0, u64::wrapping_add);
        mixed(colour.wrapping_mul(3).wrapping_add(neighbours))
    });
    atoms.collect()
}

fn colour_of_link(link: &Link, colours: &[u64], bonds: BondColours) -> u64 {
    let bond = match (bonds, link.order) {
        // 0 is reserved for bonds that do not count.
        (BondColours::Counted, Some(order)) => order as u64 + 1,
        _ => 0,
    };
    mixed(colours[link.atom as usize] ^ SIDE ^ bond)
}

fn count(colours: &[Vec<u64>]) -> usize {
    let mut all: Vec<u64> = colours.iter().flatten().copied().collect();
    all.sort_unstable();
    all.dedup();
    all.len()
}

/// Makes the colour of a neighbour differ from that of the atom itself.
const SIDE: u64 = 0x5bd1_e995_9e37_79b9;

fn hash(label: &Label) -> u64 {
    let Label { element, hydrogens, charge, isotope, valence, other } = *label;
    let parts = [
        element.into(),
        hydrogens.into(),
        u64::from(charge.cast_unsigned()),
        isotope.into(),
        valence.into(),
        other.into(),
    ];
    parts.into_iter().fold(SIDE, |all, part| mixed(all ^ part))
}

/// Returns the finaliser of SplitMix64.
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Whether to continue after an atom got its image. All atoms before it in the order of the search have theirs.
pub(crate) type PlacementRule<'a> = dyn Fn(usize, &[u32]) -> bool + 'a;

/// Returns the first isomorphism from `a` to `b` that `allows` accepts at each of its atoms, as images of the atoms of `a`: the smallest
/// images first. Bond orders count.
pub(crate) fn first_order(
    a: &LabelledGraph,
    b: &LabelledGraph,
    allows: &PlacementRule<'_>,
) -> IdenticalAtoms {
    let colours = colours([a, b], BondColours::Counted);
    if are_same(&colours) { first_of_colours(a, b, &colours, allows) } else { IdenticalAtoms::None }
}

/// [`first_order`] for graphs of the same size. `colours` are those that [`colours()`] gives for `[a, b]`.
pub(crate) fn first_of_colours(
    a: &LabelledGraph,
    b: &LabelledGraph,
    colours: &[Vec<u64>; 2],
    allows: &PlacementRule<'_>,
) -> IdenticalAtoms {
    Search::new(a, b, colours, (0..a.labels.len()).collect()).first(0, allows)
}

/// A search that places the atoms of `a` in a given order.
pub(crate) struct Search<'g> {
    b: &'g LabelledGraph,
    colours: &'g [Vec<u64>; 2],
    /// The order in which atoms are placed.
    pub sequence: Vec<usize>,
    /// By atom, those of its neighbours that are placed before it.
    before: Vec<LinksOfAtom>,
    images: Vec<u32>,
    used: Vec<bool>,
    steps: u64,
    /// Whether an atom's own number is tried first, so that few atoms move; otherwise images are tried in ascending order.
    pub prefers_own: bool,
    /// The largest number of placements.
    pub limit: u64,
}

impl<'g> Search<'g> {
    /// Returns a search between two graphs of the same size. `sequence` contains each atom once.
    pub(crate) fn new(
        a: &'g LabelledGraph,
        b: &'g LabelledGraph,
        colours: &'g [Vec<u64>; 2],
        sequence: Vec<usize>,
    ) -> Self {
        let n = sequence.len();
        let mut rank = vec![0; n];
        sequence.iter().enumerate().for_each(|(at, atom)| rank[*atom] = at);
        let before = a.neighbours.iter().zip(&rank).map(|(links, own)| {
            links.iter().filter(|link| rank[link.atom as usize] < *own).copied().collect()
        });
        let before = before.collect();
        let (images, used) = (vec![u32::MAX; n], vec![false; n]);
        Search { b, colours, sequence, before, images, used, steps: 0, prefers_own: false, limit: MAX_STEPS }
    }

    /// Returns whether the search was given up.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.steps >= self.limit
    }

    /// Gives an atom its image before the search, if the two fit; returns whether they do.
    pub(crate) fn place(&mut self, atom: usize, image: u32) -> bool {
        let fits = self.fits(atom, image);
        if fits {
            self.images[atom] = image;
            self.used[image as usize] = true;
        }
        fits
    }

    /// Removes the images of the atoms from index `first` of the sequence on.
    pub(crate) fn release_from(&mut self, first: usize) {
        (first..self.sequence.len()).for_each(|at| self.release(at));
    }

    /// Returns the first isomorphism, with the atoms before index `first` of the sequence as they are placed.
    pub(crate) fn first(&mut self, first: usize, allows: &PlacementRule<'_>) -> IdenticalAtoms {
        let mut order = None;
        let is_whole = self.run(first, allows, &mut |images| {
            order = Some(images.to_vec());
            false
        });
        match order {
            Some(order) => IdenticalAtoms::Order(order),
            None if is_whole => IdenticalAtoms::None,
            None => IdenticalAtoms::Unknown,
        }
    }

    /// Passes isomorphisms to `found` until it returns false, in lexicographic order of the images, with the atoms before index
    /// `first` of the sequence as they are placed. Returns whether all were visited: if not, `found` stopped the search, or it
    /// took more steps than the limit.
    pub(crate) fn run(
        &mut self,
        first: usize,
        allows: &PlacementRule<'_>,
        found: &mut dyn FnMut(&[u32]) -> bool,
    ) -> bool {
        // The images left to try, by place in the sequence. An explicit stack, because a molecule may have more atoms than
        // recursion could handle.
        let mut open: Vec<std::vec::IntoIter<u32>> = Vec::with_capacity(self.sequence.len() - first);
        loop {
            if first + open.len() == self.sequence.len() {
                if !found(&self.images) {
                    return false;
                }
            } else {
                open.push(self.candidates(self.sequence[first + open.len()]).into_iter());
            }
            if !self.advance(first, &mut open, allows) {
                return !self.is_exhausted();
            }
        }
    }

    /// Returns the possible images of an atom: neighbours of the image of a placed neighbour, or all atoms if no neighbour is placed.
    pub(crate) fn candidates(&self, atom: usize) -> Vec<u32> {
        let fits = |image: &u32| self.colours[0][atom] == self.colours[1][*image as usize];
        let mut candidates: Vec<u32> = match self.before[atom].first() {
            Some(other) => {
                let beside = &self.b.neighbours[self.images[other.atom as usize] as usize];
                beside.iter().map(|link| link.atom).filter(fits).collect()
            }
            None => (0..self.b.labels.len() as u32).filter(fits).collect(),
        };
        if self.prefers_own {
            candidates.sort_by_key(|image| *image as usize != atom);
        }
        candidates
    }

    /// Takes the next image for the last open atom, or for an earlier one. Returns false if there is none, or the limit is reached.
    fn advance(
        &mut self,
        first: usize,
        open: &mut Vec<std::vec::IntoIter<u32>>,
        allows: &PlacementRule<'_>,
    ) -> bool {
        while let Some(candidates) = open.last_mut() {
            let next = candidates.next();
            let at = first + open.len() - 1;
            self.release(at);
            let Some(image) = next else {
                open.pop();
                continue;
            };
            self.steps += 1;
            if self.is_exhausted() {
                return false;
            }
            let atom = self.sequence[at];
            if self.place(atom, image) && allows(atom, &self.images) {
                return true;
            }
        }
        false
    }

    fn release(&mut self, at: usize) {
        let image = std::mem::replace(&mut self.images[self.sequence[at]], u32::MAX);
        if let Some(used) = self.used.get_mut(image as usize) {
            *used = false;
        }
    }

    /// Returns whether an atom may have an image: the image is unused, and bonded to the images of placed neighbours in the same way.
    fn fits(&self, atom: usize, image: u32) -> bool {
        !self.used[image as usize]
            && self.colours[0][atom] == self.colours[1][image as usize]
            && self.before[atom].iter().all(|link| {
                let there = self.b.link(image as usize, self.images[link.atom as usize]);
                there.is_some_and(|there| link.fits(there))
            })
    }
}

/// Returns whether two graphs are isomorphic. If the search exceeds its limit, graphs with equal colours count as the same.
pub(crate) fn are_isomorphic(a: &LabelledGraph, b: &LabelledGraph) -> bool {
    let bonds = |graph: &LabelledGraph| graph.neighbours.iter().map(|links| links.len()).sum::<usize>();
    a.labels.len() == b.labels.len()
        && bonds(a) == bonds(b)
        && first_order(a, b, &|_, _| true) != IdenticalAtoms::None
}
