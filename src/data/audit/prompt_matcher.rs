//! Finds the prompts that reference conformers belong to, whatever the order of their atoms.

use std::collections::HashMap;
use std::sync::Arc;

use super::geometry::Conformation;
use super::sample::in_angstrom;
use crate::corpus::Conformer;
use drift_core::Encoding;
use drift_core::chem::{AtomLimit, AtomMapping, Graph, Isotopes, Mismatch, SmilesMolecule, graph_key};
use drift_core::text::skeleton::smiles;

/// The relation of a reference conformer to the prompts.
#[derive(Debug)]
pub enum FoundPrompts {
    /// The prompts of the same molecule.
    Prompts(Vec<FoundPrompt>),
    /// A prompt has the same graph, but the coordinates are another stereoisomer, for the reason given.
    OtherStereo(String),
    /// No prompt has this graph.
    NotAskedFor,
}

/// A prompt of the molecule of a conformer.
#[derive(Debug)]
pub struct FoundPrompt {
    /// The index of the prompt.
    pub prompt: usize,
    /// By atom of the prompt, the atom of the conformer; `None` if both have the same order.
    pub order: Option<Vec<u32>>,
}

/// Finds the prompts that conformers belong to.
pub struct PromptMatcher {
    /// The prompts by skeleton.
    exact: HashMap<String, Vec<usize>>,
    /// The prompts by a hash of the graph without stereo.
    graphs: HashMap<u64, Vec<usize>>,
    smiles: Vec<String>,
    /// Whether labels tell prompts and references apart. If not, a reference without a prompt of its labels belongs to those with others.
    isotopes: Isotopes,
    /// For the skeleton of a conformer: the prompts with the same graph but another skeleton, each with the orders of atoms.
    known: HashMap<Arc<str>, Vec<Candidate>>,
}

/// How the atoms of a skeleton are matched to those of a prompt.
type Pairing = fn(&SmilesMolecule, &Graph) -> Result<AtomMapping, Mismatch>;

/// A prompt that may be the same molecule as a skeleton, in another order of atoms.
struct Candidate {
    prompt: usize,
    molecule: SmilesMolecule,
    pairing: AtomMapping,
}

impl FoundPrompt {
    /// Returns what belongs to the atoms of the conformer, in the order of the prompt; `None` if it does not have all atoms.
    pub fn ordered<T: Copy>(&self, atoms: &[T]) -> Option<Vec<T>> {
        match &self.order {
            None => Some(atoms.to_vec()),
            Some(order) => order.iter().map(|atom| atoms.get(*atom as usize).copied()).collect(),
        }
    }
}

impl PromptMatcher {
    /// Returns a matcher for prompts, each with its SMILES and its skeleton.
    pub fn new<'p>(prompts: impl IntoIterator<Item = (&'p str, &'p str)>, isotopes: Isotopes) -> Self {
        let mut matcher = PromptMatcher {
            exact: HashMap::new(),
            graphs: HashMap::new(),
            smiles: Vec::new(),
            isotopes,
            known: HashMap::new(),
        };
        for (place, (smiles, skeleton)) in prompts.into_iter().enumerate() {
            matcher.exact.entry(skeleton.to_owned()).or_default().push(place);
            if let Ok(graph) = graph_key(smiles) {
                matcher.graphs.entry(graph).or_default().push(place);
            }
            matcher.smiles.push(smiles.to_owned());
        }
        matcher
    }

    /// Returns the prompts of a conformer: those of the same text, else those of the same graph whose stereo the coordinates have. Stereo
    /// that a prompt leaves open counts as equal.
    pub fn find(&mut self, conformer: &Conformer, encoding: Encoding) -> FoundPrompts {
        // The same text has its atoms in the same order, so no atoms have to be matched.
        if let Some(prompts) = self.exact.get(&*conformer.skeleton) {
            let own = |prompt: &usize| FoundPrompt { prompt: *prompt, order: None };
            return FoundPrompts::Prompts(prompts.iter().map(own).collect());
        }
        if !self.known.contains_key(&conformer.skeleton) {
            let mut candidates = self.candidates(&conformer.skeleton, SmilesMolecule::pair);
            if candidates.is_empty() && self.isotopes == Isotopes::Ignore {
                candidates = self.candidates(&conformer.skeleton, SmilesMolecule::pair_without_labels);
            }
            self.known.insert(conformer.skeleton.clone(), candidates);
        }
        let candidates = self.known.get_mut(&conformer.skeleton).map_or(&mut [][..], Vec::as_mut_slice);
        if candidates.is_empty() {
            return FoundPrompts::NotAskedFor;
        }
        let points: Conformation = in_angstrom(&conformer.coordinates, encoding);
        let (mut prompts, mut mismatch) = (Vec::new(), String::new());
        for candidate in candidates {
            match candidate.molecule.order(&candidate.pairing, &points) {
                Ok((order, _)) => {
                    prompts.push(FoundPrompt { prompt: candidate.prompt, order: Some(order) });
                }
                Err(reason) => mismatch = reason.to_string(),
            }
        }
        if prompts.is_empty() { FoundPrompts::OtherStereo(mismatch) } else { FoundPrompts::Prompts(prompts) }
    }

    /// Returns the prompts that may be the same molecule as a skeleton, in another order of atoms.
    fn candidates(&self, skeleton: &str, pair: Pairing) -> Vec<Candidate> {
        let own = smiles(skeleton);
        let prompts = graph_key(&own).ok().and_then(|graph| self.graphs.get(&graph));
        let Some((prompts, graph)) = prompts.zip(Graph::parse(&own).ok()) else { return Vec::new() };
        let candidate = |prompt: &usize| {
            let molecule = SmilesMolecule::new(&self.smiles[*prompt], AtomLimit::default()).ok()?;
            let pairing = pair(&molecule, &graph).ok()?;
            Some(Candidate { prompt: *prompt, molecule, pairing })
        };
        prompts.iter().filter_map(candidate).collect()
    }
}
