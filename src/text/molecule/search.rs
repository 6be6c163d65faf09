//! Isomorphisms of labelled graphs, in a fixed order.

use super::labelled::{Label, LabelledGraph};

/// How many atoms are placed before a search is given up.
const MAX_STEPS: u64 = 400_000;

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// All were seen.
    Whole,
    /// The caller had enough.
    Stopped,
    /// It was given up.
    GivenUp,
}

/// Colours of the atoms of two graphs that no isomorphism mixes: labels, refined by the colours around until nothing changes.
pub(super) fn colours(a: &LabelledGraph, b: &LabelledGraph) -> [Vec<u64>; 2] {
    let mut colours = [a, b].map(|graph| graph.labels.iter().map(hash).collect::<Vec<u64>>());
    let mut distinct = count(&colours);
    loop {
        let next = [(a, 0), (b, 1)].map(|(graph, side)| refined(graph, &colours[side]));
        let now = count(&next);
        if now == distinct {
            return colours;
        }
        (colours, distinct) = (next, now);
    }
}

fn refined(graph: &LabelledGraph, colours: &[u64]) -> Vec<u64> {
    let colour = |(at, around): (usize, &Vec<u32>)| {
        let around =
            around.iter().fold(0u64, |sum, other| sum.wrapping_add(mixed(colours[*other as usize] ^ SIDE)));
        mixed(colours[at].wrapping_mul(3).wrapping_add(around))
    };
    graph.neighbours.iter().enumerate().map(colour).collect()
}

fn count(colours: &[Vec<u64>; 2]) -> usize {
    let mut all: Vec<u64> = colours.iter().flatten().copied().collect();
    all.sort_unstable();
    all.dedup();
    all.len()
}

/// Keeps the colour of an atom apart from that of a neighbour.
const SIDE: u64 = 0x5bd1_e995_9e37_79b9;

fn hash(label: &Label) -> u64 {
    let Label { element, hydrogens, charge, isotope, valence } = *label;
    [u64::from(element), hydrogens.into(), u64::from(charge.cast_unsigned()), isotope.into(), valence.into()]
        .into_iter()
        .fold(SIDE, |all, part| mixed(all ^ part))
}

/// The finaliser of SplitMix64.
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// What a search is asked.
pub(super) trait Question {
    /// Whether to go on where the atoms up to `last` have been given their images.
    fn allows(&mut self, last: usize, images: &[u32]) -> bool;
    /// What to do with a whole isomorphism: whether to go on.
    fn found(&mut self, images: &[u32]) -> bool;
}

/// Goes through the isomorphisms of `a` to `b`, as images of the atoms of `a`, in the order of the images: the smallest image of the
/// first atom first. `[a, b]` of `colours` are those of [`colours`].
pub(super) fn isomorphisms(
    a: &LabelledGraph,
    b: &LabelledGraph,
    colours: &[Vec<u64>; 2],
    question: &mut dyn Question,
) -> Ended {
    let n = a.labels.len();
    if n != b.labels.len() {
        return Ended::Whole;
    }
    let mut search = Search { a, b, colours, images: vec![u32::MAX; n], used: vec![false; n], steps: 0 };
    // The images that are still to be tried, by atom.
    let mut open: Vec<std::vec::IntoIter<u32>> = Vec::with_capacity(n);
    loop {
        if open.len() == n {
            if !question.found(&search.images) {
                return Ended::Stopped;
            }
        } else {
            open.push(search.candidates(open.len()).into_iter());
        }
        if !search.advance(&mut open, question) {
            return if search.steps >= MAX_STEPS { Ended::GivenUp } else { Ended::Whole };
        }
    }
}

struct Search<'g> {
    a: &'g LabelledGraph,
    b: &'g LabelledGraph,
    colours: &'g [Vec<u64>; 2],
    images: Vec<u32>,
    used: Vec<bool>,
    steps: u64,
}

impl Search<'_> {
    /// Where an atom may go: beside the image of a neighbour that was placed before, or anywhere if there is none.
    fn candidates(&self, at: usize) -> Vec<u32> {
        let fits = |image: &u32| self.colours[0][at] == self.colours[1][*image as usize];
        match self.a.neighbours[at].first().filter(|other| (**other as usize) < at) {
            Some(other) => {
                let beside = &self.b.neighbours[self.images[*other as usize] as usize];
                beside.iter().copied().filter(fits).collect()
            }
            None => (0..self.b.labels.len() as u32).filter(fits).collect(),
        }
    }

    /// Takes the next image of the last open atom, or of one before it; false if there is none, or too much was tried.
    fn advance(&mut self, open: &mut Vec<std::vec::IntoIter<u32>>, question: &mut dyn Question) -> bool {
        while let Some(candidates) = open.last_mut() {
            let next = candidates.next();
            let at = open.len() - 1;
            self.release(at);
            let Some(image) = next else {
                open.pop();
                continue;
            };
            self.steps += 1;
            if self.steps >= MAX_STEPS {
                return false;
            }
            if self.fits(at, image) {
                self.images[at] = image;
                self.used[image as usize] = true;
                if question.allows(at, &self.images) {
                    return true;
                }
            }
        }
        false
    }

    fn release(&mut self, at: usize) {
        let image = std::mem::replace(&mut self.images[at], u32::MAX);
        if let Some(used) = self.used.get_mut(image as usize) {
            *used = false;
        }
    }

    /// Whether an atom may have an image: it is free, and bonded as the atoms before it are.
    fn fits(&self, at: usize, image: u32) -> bool {
        let beside = &self.b.neighbours[image as usize];
        let before = self.a.neighbours[at].iter().take_while(|other| (**other as usize) < at);
        let bonded = |other: &u32| beside.binary_search(&self.images[*other as usize]).is_ok();
        !self.used[image as usize] && before.copied().all(|other| bonded(&other))
    }
}
