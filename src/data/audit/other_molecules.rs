//! The molecules of references that no text was requested for.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use drift_core::chem::{AtomLimit, Isotopes, MolecularIdentity};
use drift_core::text::skeleton::smiles;

/// Counts the references of molecules that no text was requested for. The spellings of one molecule are counted together.
#[derive(Debug, Default)]
pub(super) struct OtherMolecules {
    isotopes: Isotopes,
    /// The molecules, each by its first skeleton, with the number of its references.
    molecules: Vec<OtherMolecule>,
    /// The index of the molecule of each skeleton.
    places: HashMap<Arc<str>, usize>,
    /// The molecules with this key of their graph.
    by_key: HashMap<u64, Vec<usize>>,
    /// The skeletons that have references of a requested molecule.
    requested: HashSet<Arc<str>>,
}

#[derive(Debug)]
struct OtherMolecule {
    skeleton: Arc<str>,
    /// `None` for a molecule that RDKit would refuse; no other spelling is known for it.
    identity: Option<MolecularIdentity>,
    references: usize,
}

impl OtherMolecules {
    /// Counts nothing yet.
    pub(super) fn new(isotopes: Isotopes) -> Self {
        OtherMolecules { isotopes, ..OtherMolecules::default() }
    }

    /// Counts a reference with this skeleton.
    pub(super) fn add(&mut self, skeleton: &Arc<str>) {
        let place = match self.places.get(skeleton) {
            Some(place) => *place,
            None => self.place(skeleton),
        };
        self.molecules[place].references += 1;
    }

    /// Leaves out a skeleton, some of whose references belong to a requested molecule: that of a SMILES with open stereo.
    pub(super) fn leave_out(&mut self, skeleton: &Arc<str>) {
        if !self.requested.contains(skeleton) {
            self.requested.insert(skeleton.clone());
        }
    }

    /// Returns the molecules by skeleton, with the number of their references.
    pub(super) fn counts(self) -> BTreeMap<Box<str>, usize> {
        let left_out: HashSet<usize> =
            self.requested.iter().filter_map(|skeleton| self.places.get(skeleton).copied()).collect();
        let counted = self.molecules.iter().enumerate().filter(|(at, _)| !left_out.contains(at));
        counted.map(|(_, one)| (Box::from(&*one.skeleton), one.references)).collect()
    }

    /// Returns the index of the molecule of a new skeleton, which is added unless another spelling of it is known.
    fn place(&mut self, skeleton: &Arc<str>) -> usize {
        let identity =
            MolecularIdentity::from_smiles(&smiles(skeleton), AtomLimit::default(), self.isotopes).ok();
        let key = identity.as_ref().map(MolecularIdentity::key);
        let alike = key.and_then(|key| self.by_key.get(&key)).into_iter().flatten().copied();
        let is_same = |place: &usize| match (&identity, &self.molecules[*place].identity) {
            (Some(own), Some(other)) => own.is_isomer(other),
            _ => false,
        };
        let place = alike.into_iter().find(is_same).unwrap_or(self.molecules.len());
        if place == self.molecules.len() {
            self.molecules.push(OtherMolecule { skeleton: skeleton.clone(), identity, references: 0 });
            if let Some(key) = key {
                self.by_key.entry(key).or_default().push(place);
            }
        }
        self.places.insert(skeleton.clone(), place);
        place
    }
}
