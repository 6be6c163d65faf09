//! Maps the atoms of a file to the order of a SMILES.

use std::sync::{Arc, OnceLock};

use super::distances::{BondOrders, UnclearBonds};
use super::graph::Graph;
use super::handedness::Handedness;
use super::isotopes::Isotopes;
use super::labelled::{Hydrogens, Label, LabelledGraph};
use super::limit::AtomLimit;
use super::mismatch::{Mismatch, StereoDifference};
use super::open_stereo::OpenStereo;
use super::reading::SmilesReading;
use super::search::{BondColours, IdenticalAtoms, Search, are_same, colours, first_of_colours};
use crate::vector::squared_distance;

/// The number of orders that are kept. For a molecule with more, the search is repeated for each conformer.
const MAX_ORDERS: usize = 64;

/// Heavy atoms that are nearer than this, in Å, count as having the same position.
const ONE_PLACE_ANGSTROM: f64 = 0.1;

/// The molecule of a SMILES, with which molecules of files are compared.
#[derive(Debug, Clone)]
pub struct SmilesMolecule {
    /// The number of atoms in the text.
    written: usize,
    graph: Arc<LabelledGraph>,
    /// The same graph without the marks that depend on the place of an implied hydrogen; `None` if there are none.
    without_hydrogens: Option<Arc<LabelledGraph>>,
    hydrogens: Hydrogens,
    open: OpenStereo,
    /// Built on first use: a molecule whose stereo agrees does not need it.
    handedness: OnceLock<Handedness>,
}

/// All orders in which a file's atoms correspond to those of a SMILES, ignoring stereo.
#[derive(Debug, Clone)]
pub struct AtomMapping {
    file: LabelledGraph,
    /// The graph of the SMILES, with the marks that the file's atoms can be compared with, and without bond orders if the file has
    /// none.
    asked: Arc<LabelledGraph>,
    colours: [Vec<u64>; 2],
    /// Only for files without bond orders.
    unclear: UnclearBonds,
    /// Each order lists the images of the atoms of the SMILES; sorted by these images.
    orders: Vec<Vec<u32>>,
    /// Whether `orders` is complete.
    are_all: bool,
}

/// Which stereo marks of a SMILES a conformer agrees with. Atoms are numbered in the order of the text, from 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StereoAgreement {
    /// Stereocentres, polyhedral ones with four to six neighbours included, and whether each agrees.
    pub centres: Vec<(usize, bool)>,
    /// Double bonds, and whether each agrees.
    pub double_bonds: Vec<([usize; 2], bool)>,
}

impl SmilesMolecule {
    /// Reads a SMILES with at most `limit` heavy atoms.
    ///
    /// # Errors
    /// [`Mismatch::Smiles`] if RDKit would refuse it, or it is too large.
    pub fn new(smiles: &str, limit: AtomLimit) -> Result<Self, Mismatch> {
        let read = SmilesReading::new(smiles, limit);
        SmilesMolecule::from_reading(&read.map_err(|problem| Mismatch::of_smiles(smiles, &problem))?)
    }

    /// Takes the molecule of a SMILES that has been read already.
    ///
    /// # Errors
    /// [`Mismatch::Smiles`] if RDKit would refuse it with its written hydrogens.
    pub fn from_reading(read: &SmilesReading<'_>) -> Result<Self, Mismatch> {
        let (graph, hydrogens) =
            LabelledGraph::of_reading(read).map_err(|problem| Mismatch::of_smiles(read.text, &problem))?;
        let (written, open) = (read.written.atoms.len(), OpenStereo::from_graph(&graph));
        let without_hydrogens = graph.where_placed(&|atom| graph.places[atom].is_some()).map(Arc::new);
        Ok(SmilesMolecule {
            written,
            graph: Arc::new(graph),
            without_hydrogens,
            hydrogens,
            open,
            handedness: OnceLock::new(),
        })
    }

    /// Returns the number of stereo marks that are not compared with the coordinates of a text: those that RDKit drops, polyhedra with
    /// missing neighbours, and phosphorus and arsenic whose hydrogen is not written (`C[P@H]CC`).
    pub fn unchecked(&self) -> usize {
        self.as_in_texts().marks.unchecked_count()
    }

    /// Returns the graph with the marks that can be compared with the coordinates of a text.
    fn as_in_texts(&self) -> &LabelledGraph {
        self.without_hydrogens.as_deref().unwrap_or(&self.graph)
    }

    /// Matches the atoms of a file's molecule to those of the SMILES, ignoring stereo.
    ///
    /// # Errors
    /// If the file has other atoms or other bonds than the SMILES.
    pub fn pair(&self, file: &Graph) -> Result<AtomMapping, Mismatch> {
        self.mapping(self.labelled(file)?, Isotopes::Respect)
    }

    /// [`SmilesMolecule::pair`], whatever isotope labels the atoms have. A written hydrogen with a label stays an atom.
    ///
    /// # Errors
    /// As [`SmilesMolecule::pair`].
    pub fn pair_without_labels(&self, file: &Graph) -> Result<AtomMapping, Mismatch> {
        self.mapping(self.labelled(file)?, Isotopes::Ignore)
    }

    fn labelled(&self, file: &Graph) -> Result<LabelledGraph, Mismatch> {
        LabelledGraph::of_graph(file, self.hydrogens).map_err(|problem| Mismatch::File(problem.to_string()))
    }

    fn mapping(&self, mut file: LabelledGraph, isotopes: Isotopes) -> Result<AtomMapping, Mismatch> {
        let graph = self.without_hydrogens.as_ref().filter(|_| file.lacks_hydrogens()).unwrap_or(&self.graph);
        let mut asked = match file.has_orders {
            true => graph.clone(),
            false => {
                let has_isotopes = file.labels.iter().any(|label| label.isotope > 0);
                Arc::new(graph.without_orders(has_isotopes))
            }
        };
        if isotopes == Isotopes::Ignore {
            // An atom because of its label; the other graph may only count it.
            if asked.labelled_hydrogens() != file.labelled_hydrogens() {
                return Err(graphs_differ(&asked, &file));
            }
            file.drop_isotopes();
            Arc::make_mut(&mut asked).drop_isotopes();
        }
        // The initial colours are the labels.
        let colours = colours([&asked, &file], BondColours::LeftOut);
        if !are_same(&colours) {
            return Err(graphs_differ(&asked, &file));
        }
        let mut orders: Vec<Vec<u32>> = Vec::new();
        let mut search = Search::new(&asked, &file, &colours, (0..asked.labels.len()).collect());
        let are_all = search.run(0, &|_, _| true, &mut |images| {
            orders.push(images.to_vec());
            orders.len() <= MAX_ORDERS
        });
        if are_all && orders.is_empty() {
            return Err(Mismatch::Bonds);
        }
        // If there are too many orders, one is kept: it may fit, and if none fits, it shows how a conformer differs.
        orders.truncate(if are_all { usize::MAX } else { 1 });
        let unclear = match file.has_orders {
            true => UnclearBonds::default(),
            false => UnclearBonds::new(&self.graph, &file, &colours),
        };
        Ok(AtomMapping { file, asked, colours, unclear, orders, are_all })
    }

    /// Returns the atom order of a conformer whose atoms lie at `points`, in Å: for each atom of the SMILES, the number of the file's
    /// atom, from 0. Of all orders that preserve bonds and stereo, it is the one with the smallest numbers first. Also returns the stereo
    /// of the coordinates that the SMILES leaves open.
    ///
    /// # Errors
    /// If no order preserves bonds and stereo, or two heavy atoms have the same position.
    pub fn order(
        &mut self,
        pairing: &AtomMapping,
        points: &[[f64; 3]],
    ) -> Result<(Vec<u32>, StereoDifference), Mismatch> {
        let images = pairing.order(points).map_err(|why| self.mismatch(pairing, points, why))?;
        let place = |atom: usize| pairing.place(points, images[atom]);
        one_place(&self.graph, &place)?;
        let open = self.open.found(&self.graph, &place);
        let open = StereoDifference {
            centres: open.centres.into_iter().map(|atom| number(&self.graph, atom)).collect(),
            double_bonds: open
                .double_bonds
                .into_iter()
                .map(|bond| bond.map(|atom| number(&self.graph, atom)))
                .collect(),
        };
        let mut order = vec![u32::MAX; self.written];
        let images = self.graph.places.iter().zip(&images);
        for (at, image) in images.filter_map(|(at, image)| Some((at.as_ref()?, image))) {
            // A hydrogen that is not an atom of the file has no index there, and the SMILES does not ask for one.
            order[*at as usize] = pairing.file.places[*image as usize].unwrap_or(u32::MAX);
        }
        Ok((order, open))
    }

    /// Returns which marks agree with a conformer whose atoms lie at `points`, in Å, in the order of the text.
    pub fn agreement(&self, points: &[[f64; 3]]) -> StereoAgreement {
        let graph = self.as_in_texts();
        marked(graph, &self.handedness().agreement(graph, &|atom| position(&self.graph, points, atom)))
    }

    fn handedness(&self) -> &Handedness {
        self.handedness.get_or_init(|| Handedness::from_graph(&self.graph))
    }

    /// Explains why no order preserves bonds and stereo.
    fn mismatch(&self, pairing: &AtomMapping, points: &[[f64; 3]], why: MappingFailure) -> Mismatch {
        let (MappingFailure::Stereo, Some(first)) = (why, pairing.orders.first()) else {
            return if why == MappingFailure::Bonds { Mismatch::Bonds } else { Mismatch::Symmetry };
        };
        let graph = self.without_hydrogens.as_deref().filter(|_| pairing.file.lacks_hydrogens());
        let graph = graph.unwrap_or(&self.graph);
        let agrees = self.handedness().agreement(graph, &|atom| pairing.place(points, first[atom]));
        let StereoAgreement { centres, double_bonds } = marked(graph, &agrees);
        Mismatch::Stereo(StereoDifference {
            centres: centres.into_iter().filter(|(_, agrees)| !agrees).map(|(atom, _)| atom + 1).collect(),
            double_bonds: double_bonds
                .into_iter()
                .filter(|(_, agrees)| !agrees)
                .map(|(atoms, _)| atoms.map(|atom| atom + 1))
                .collect(),
        })
    }
}

/// What no order of atoms preserves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MappingFailure {
    /// The double bonds that the bond lengths show.
    Bonds,
    /// The stereo of the coordinates.
    Stereo,
    /// Unknown: the search took more steps than the limit.
    TooMuch,
}

impl AtomMapping {
    /// Returns whether the SMILES has stereo marks that are not compared with the file's coordinates.
    pub fn has_unchecked_stereo(&self) -> bool {
        self.asked.marks.unchecked_count() > 0
    }

    /// Returns the first order that preserves the stereo of the coordinates, as atoms of the file's graph.
    fn order(&self, points: &[[f64; 3]]) -> Result<Vec<u32>, MappingFailure> {
        let bond_orders = self.unclear.bond_orders(&|atom| self.place(points, atom));
        let conformer = MappedConformer { mapping: self, points, bond_orders };
        let listed =
            self.orders.iter().find(|order| conformer.has_bonds(order) && conformer.has_stereo(order));
        if let Some(order) = listed {
            return Ok(order.clone());
        }
        let found = conformer.search(true);
        if let IdenticalAtoms::Order(order) = found {
            return Ok(order);
        }
        // Search again without the marks, to tell whether bonds or stereo are at fault.
        if !self.unclear.is_empty()
            && !self.orders.iter().any(|order| conformer.has_bonds(order))
            && conformer.search(false) == IdenticalAtoms::None
        {
            return Err(MappingFailure::Bonds);
        }
        Err(if found == IdenticalAtoms::Unknown { MappingFailure::TooMuch } else { MappingFailure::Stereo })
    }

    /// Returns the position of an atom of the file's graph, in Å.
    fn place(&self, points: &[[f64; 3]], atom: u32) -> [f64; 3] {
        position(&self.file, points, atom as usize)
    }
}

/// A conformer, with the atoms of a SMILES mapped to those of its file.
struct MappedConformer<'a> {
    mapping: &'a AtomMapping,
    points: &'a [[f64; 3]],
    /// The bond orders that its bond lengths imply.
    bond_orders: BondOrders,
}

impl MappedConformer<'_> {
    /// Returns the position of the image of an atom, in Å.
    fn place(&self, images: &[u32], atom: usize) -> [f64; 3] {
        self.mapping.place(self.points, images[atom])
    }

    /// Returns whether an atom order preserves the bond orders.
    fn has_bonds(&self, images: &[u32]) -> bool {
        let unclear = &self.mapping.unclear;
        unclear.is_empty() || (0..images.len()).all(|atom| unclear.agree_at(atom, images, &self.bond_orders))
    }

    /// Returns whether an atom order preserves all marks.
    fn has_stereo(&self, images: &[u32]) -> bool {
        self.mapping.asked.marks.agreement(&|atom| self.place(images, atom)).all(|agrees| agrees)
    }

    /// Returns the first atom order that preserves the bond orders, and all marks if `marks` is set, beyond those that the mapping lists.
    fn search(&self, marks: bool) -> IdenticalAtoms {
        let AtomMapping { file, asked, colours, unclear, are_all, .. } = self.mapping;
        if *are_all {
            return IdenticalAtoms::None;
        }
        first_of_colours(asked, file, colours, &|last, images| {
            (unclear.is_empty() || unclear.agree_at(last, images, &self.bond_orders))
                && (!marks || asked.marks.agree_at(last, &|atom| self.place(images, atom)))
        })
    }
}

/// Returns the position of an atom of a graph, in Å. An atom without a point gets NaN, so no comparison with it holds.
fn position(graph: &LabelledGraph, points: &[[f64; 3]], atom: usize) -> [f64; 3] {
    let point = graph.places[atom].and_then(|at| points.get(at as usize));
    point.copied().unwrap_or([f64::NAN; 3])
}

/// Pairs each mark's result with its atoms, by their numbers in the text.
fn marked(graph: &LabelledGraph, agrees: &[bool]) -> StereoAgreement {
    let marks = &graph.marks;
    let number = |atom: usize| graph.places[atom].map_or(0, |at| at as usize);
    let atoms =
        marks.centres.iter().map(|mark| mark.atom).chain(marks.polyhedra.iter().map(|mark| mark.atom));
    let (centres, bonds) = agrees.split_at(marks.centres.len() + marks.polyhedra.len());
    let double_bonds = marks.double_bonds.iter().map(|mark| mark.atoms.map(number));
    StereoAgreement {
        centres: atoms.map(number).zip(centres.iter().copied()).collect(),
        double_bonds: double_bonds.zip(bonds.iter().copied()).collect(),
    }
}

/// Returns the number of an atom of the graph in the SMILES, from 1.
fn number(graph: &LabelledGraph, atom: usize) -> usize {
    graph.places[atom].map_or(0, |at| at as usize + 1)
}

/// Explains how two graphs differ.
fn graphs_differ(asked: &LabelledGraph, file: &LabelledGraph) -> Mismatch {
    let (of_file, of_smiles) = (file.formula(), asked.formula());
    if of_file != of_smiles {
        return Mismatch::Formula { file: of_file, smiles: of_smiles };
    }
    labels_differ(asked, file).map_or(Mismatch::Bonds, Mismatch::Atoms)
}

/// Returns a sentence on the first atom of the SMILES that the file lacks; `None` if the labels agree.
fn labels_differ(asked: &LabelledGraph, file: &LabelledGraph) -> Option<String> {
    let (missing, extra) = (first_lacking(asked, file)?, first_lacking(file, asked)?);
    if missing.to_string() == extra.to_string() {
        return Some(format!("{missing} with a valence of {}, not {}", missing.valence, extra.valence));
    }
    Some(format!("{missing} is missing, {extra} is over"))
}

/// Returns the first label of a graph, in ascending order, that another graph has less often.
fn first_lacking(graph: &LabelledGraph, other: &LabelledGraph) -> Option<Label> {
    let mut labels = graph.labels.clone();
    labels.sort_unstable();
    let mut rest = other.labels.clone();
    labels.into_iter().find(|label| match rest.iter().position(|known| known == label) {
        Some(at) => {
            rest.swap_remove(at);
            false
        }
        None => true,
    })
}

/// Refuses a conformer in which two heavy atoms have the same position.
fn one_place(graph: &LabelledGraph, place: &dyn Fn(usize) -> [f64; 3]) -> Result<(), Mismatch> {
    let n = graph.labels.len();
    let points: Vec<[f64; 3]> = (0..n).map(place).collect();
    for i in 0..n {
        for j in 0..i {
            if squared_distance(points[i], points[j]) < ONE_PLACE_ANGSTROM * ONE_PLACE_ANGSTROM {
                return Err(Mismatch::OnePlace(number(graph, j), number(graph, i)));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
