//! A file's atoms in the order of a SMILES.

use super::labelled::{Hydrogens, LabelledGraph};
use super::mismatch::{Mismatch, StereoDifference};
use super::open::OpenStereo;
use super::search::{Ended, Question, colours, isomorphisms};
use super::structure::Structure;
use crate::text::smiles::{AtomLimit, Graph};

/// Orders that are kept; a molecule with more is searched again for each conformer.
const MAX_ORDERS: usize = 64;

/// Heavy atoms nearer than this, in Å, lie at one place.
const ONE_PLACE_ANGSTROM: f64 = 0.1;

/// The molecule of a SMILES, to which files' molecules are compared.
#[derive(Debug, Clone)]
pub struct SmilesMolecule {
    /// Atoms of the text.
    written: usize,
    graph: LabelledGraph,
    hydrogens: Hydrogens,
    open: OpenStereo,
}

/// The orders in which a file's atoms are those of a SMILES, stereo aside.
#[derive(Debug, Clone)]
pub struct Pairing {
    file: LabelledGraph,
    /// That of the SMILES, without orders where the file has none.
    asked: LabelledGraph,
    colours: [Vec<u64>; 2],
    /// In their order: all of them, or the first.
    orders: Vec<Vec<u32>>,
    are_all: bool,
}

impl SmilesMolecule {
    /// Reads a SMILES of at most so many atoms.
    ///
    /// # Errors
    /// [`Mismatch::Smiles`] if RDKit would refuse it, or it is too large.
    pub fn new(smiles: &str, limit: AtomLimit) -> Result<Self, Mismatch> {
        let fail = |problem: crate::text::smiles::SmilesProblem| {
            let shown = crate::error::shortened_end(smiles, 100);
            Mismatch::Smiles(format!("`{shown}` is not a SMILES: {problem}"))
        };
        limit.check(smiles).map_err(fail)?;
        let written = Graph::parse(smiles).map_err(fail)?;
        let mut hydrogens = Hydrogens::Needed;
        let mut graph = LabelledGraph::of_graph(&written, hydrogens).map_err(fail)?;
        // One that is written has a block, so that a file has to have it.
        if graph.has_hydrogens() || graph.places.len() < written.atoms.len() {
            hydrogens = Hydrogens::All;
            graph = LabelledGraph::of_graph(&written, hydrogens).map_err(fail)?;
        }
        let open = OpenStereo::of(&graph);
        Ok(SmilesMolecule { written: written.atoms.len(), graph, hydrogens, open })
    }

    /// Finds the atoms of a file's molecule.
    ///
    /// # Errors
    /// If they are not those of the SMILES, or not bonded so.
    pub fn pair(&self, structure: &Structure) -> Result<Pairing, Mismatch> {
        let file = LabelledGraph::of_structure(structure, self.hydrogens)
            .map_err(|problem| Mismatch::File(problem.to_string()))?;
        let asked = if file.has_orders { self.graph.clone() } else { self.graph.without_orders() };
        let (of_file, of_smiles) = (file.formula(), asked.formula());
        if of_file != of_smiles {
            return Err(Mismatch::Formula { file: of_file, smiles: of_smiles });
        }
        if let Some(difference) = labels_differ(&asked, &file) {
            return Err(Mismatch::Atoms(difference));
        }
        let colours = colours(&asked, &file);
        let sorted = |colours: &Vec<u64>| {
            let mut sorted = colours.clone();
            sorted.sort_unstable();
            sorted
        };
        if sorted(&colours[0]) != sorted(&colours[1]) {
            return Err(Mismatch::Bonds);
        }
        let mut all = All { orders: Vec::new() };
        let ended = isomorphisms(&asked, &file, &colours, &mut all);
        if ended == Ended::Whole && all.orders.is_empty() {
            return Err(Mismatch::Bonds);
        }
        let are_all = ended == Ended::Whole;
        all.orders.truncate(if are_all { usize::MAX } else { 1 });
        Ok(Pairing { file, asked, colours, orders: all.orders, are_all })
    }

    /// For each atom of the SMILES the number of a file's atom, from 0, in a conformer whose atoms lie at `points`, in Å: of all orders
    /// that keep bonds and stereo, the one whose numbers come first. And the stereo of the coordinates that the SMILES leaves open.
    ///
    /// # Errors
    /// If there is none, or two heavy atoms lie at one place.
    pub fn order(
        &mut self,
        pairing: &Pairing,
        points: &[[f64; 3]],
    ) -> Result<(Vec<u32>, StereoDifference), Mismatch> {
        let images = pairing.order(points)?;
        let place = |atom: usize| pairing.place(points, images[atom]);
        one_place(&self.graph, &place)?;
        let mut open = StereoDifference::default();
        if !self.open.is_empty() {
            let (centres, double_bonds) = self.open.found(&self.graph, &place);
            open = numbered(&self.graph, &centres, &double_bonds);
        }
        let mut order = vec![u32::MAX; self.written];
        let images = self.graph.places.iter().zip(&images);
        for (at, image) in images.filter_map(|(at, image)| Some((at.as_ref()?, image))) {
            // A hydrogen of the file that is no atom there has no place of its own, and the SMILES asks for none.
            order[*at as usize] = pairing.file.places[*image as usize].unwrap_or(u32::MAX);
        }
        Ok((order, open))
    }
}

impl Pairing {
    /// The first order that keeps the stereo of the coordinates, as atoms of the file's graph.
    fn order(&self, points: &[[f64; 3]]) -> Result<Vec<u32>, Mismatch> {
        let mut differences = self.orders.iter().map(|order| self.difference(order, points));
        if let Some(at) = differences.position(|difference| difference.is_empty()) {
            return Ok(self.orders[at].clone());
        }
        let mut first = First { pairing: self, points, found: None };
        let are_all = self.are_all
            || isomorphisms(&self.asked, &self.file, &self.colours, &mut first) != Ended::GivenUp;
        if let Some(order) = first.found {
            return Ok(order);
        }
        let differences = self.orders.iter().map(|order| self.difference(order, points));
        match differences.min_by_key(StereoDifference::len) {
            Some(least) if are_all => Err(Mismatch::Stereo(least)),
            _ => Err(Mismatch::Symmetry),
        }
    }

    /// Where an atom of the file's graph lies.
    fn place(&self, points: &[[f64; 3]], atom: u32) -> [f64; 3] {
        let place = self.file.places[atom as usize].and_then(|at| points.get(at as usize));
        // What is no atom of the file lies nowhere: no comparison holds for it.
        place.copied().unwrap_or([f64::NAN; 3])
    }

    /// The marks that coordinates do not agree with.
    fn difference(&self, images: &[u32], points: &[[f64; 3]]) -> StereoDifference {
        let marks = &self.asked.marks;
        let place = |atom: usize| self.place(points, images[atom]);
        let centres =
            marks.centres.iter().filter(|mark| mark.agrees(place) != Some(true)).map(|mark| mark.atom);
        let bonds =
            marks.double_bonds.iter().filter(|mark| mark.agrees(place) != Some(true)).map(|mark| mark.atoms);
        numbered(&self.asked, &centres.collect::<Vec<_>>(), &bonds.collect::<Vec<_>>())
    }
}

/// Atoms as the SMILES numbers them, from 1.
fn numbered(graph: &LabelledGraph, centres: &[usize], double_bonds: &[[usize; 2]]) -> StereoDifference {
    let number = |atom: usize| graph.places[atom].map_or(0, |at| at as usize + 1);
    StereoDifference {
        centres: centres.iter().map(|atom| number(*atom)).collect(),
        double_bonds: double_bonds.iter().map(|bond| bond.map(number)).collect(),
    }
}

/// Gathers orders.
struct All {
    orders: Vec<Vec<u32>>,
}

impl Question for All {
    fn allows(&mut self, _: usize, _: &[u32]) -> bool {
        true
    }

    fn found(&mut self, images: &[u32]) -> bool {
        self.orders.push(images.to_vec());
        self.orders.len() <= MAX_ORDERS
    }
}

/// Looks for the first order that keeps all marks.
struct First<'p> {
    pairing: &'p Pairing,
    points: &'p [[f64; 3]],
    found: Option<Vec<u32>>,
}

impl Question for First<'_> {
    fn allows(&mut self, last: usize, images: &[u32]) -> bool {
        let marks = &self.pairing.asked.marks;
        let place = |atom: usize| self.pairing.place(self.points, images[atom]);
        let is_last = |atoms: &mut dyn Iterator<Item = usize>| atoms.max() == Some(last);
        let centres = marks.centres.iter().all(|mark| {
            let mut atoms = mark.neighbours.iter().flatten().copied().chain([mark.atom]);
            !is_last(&mut atoms) || mark.agrees(place) == Some(true)
        });
        centres
            && marks.double_bonds.iter().all(|mark| {
                let mut atoms = mark.atoms.iter().chain(&mark.neighbours).copied();
                !is_last(&mut atoms) || mark.agrees(place) == Some(true)
            })
    }

    fn found(&mut self, images: &[u32]) -> bool {
        self.found = Some(images.to_vec());
        false
    }
}

/// The first atom of the SMILES that the file has not, in words; none if labels agree.
fn labels_differ(asked: &LabelledGraph, file: &LabelledGraph) -> Option<String> {
    let sorted = |graph: &LabelledGraph| {
        let mut labels = graph.labels.clone();
        labels.sort_unstable();
        labels
    };
    let (asked, file) = (sorted(asked), sorted(file));
    let lacks = |list: &[super::labelled::Label], other: &[super::labelled::Label]| {
        let mut rest = other.to_vec();
        list.iter().copied().find(|label| match rest.iter().position(|known| known == label) {
            Some(at) => {
                rest.swap_remove(at);
                false
            }
            None => true,
        })
    };
    let (missing, over) = (lacks(&asked, &file)?, lacks(&file, &asked)?);
    if missing.to_string() == over.to_string() {
        return Some(format!("{missing} with a valence of {}, not {}", missing.valence, over.valence));
    }
    Some(format!("{missing} is missing, {over} is over"))
}

/// Whether two heavy atoms lie at one place.
fn one_place(graph: &LabelledGraph, place: &dyn Fn(usize) -> [f64; 3]) -> Result<(), Mismatch> {
    let n = graph.labels.len();
    let points: Vec<[f64; 3]> = (0..n).map(place).collect();
    for i in 0..n {
        for j in 0..i {
            let square: f64 = (0..3).map(|axis| (points[i][axis] - points[j][axis]).powi(2)).sum();
            if square < ONE_PLACE_ANGSTROM * ONE_PLACE_ANGSTROM {
                let number = |atom: usize| graph.places[atom].map_or(0, |at| at as usize + 1);
                return Err(Mismatch::OnePlace(number(j), number(i)));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
