//! The atoms of a file in the order of a SMILES, so that a conformer has the text that users train on.

use std::sync::Arc;

use super::labels::Labels;
use super::names::{Names, smiles_of};
use super::perceive::BondCounts;
use drift_core::chem::{
    AtomLimit, AtomMapping, Graph, Mismatch, Molecule, SmilesMolecule, SmilesNotes, SmilesProblem,
    SmilesReading, StereoDifference, same_molecule, without_needless_atoms,
};
use drift_core::text::skeleton;

/// Which SMILES belongs to a molecule of a file, and what becomes of one that has none.
///
/// The SMILES is that of the names, else the file's own: the key under which it puts the molecule, or a data item.
#[derive(Debug, Clone, Default)]
pub struct SmilesSource {
    /// SMILES by name.
    pub names: Option<Arc<Names>>,
    /// The SMILES of every molecule, whatever the files say.
    pub whole: Option<Arc<str>>,
    /// The data item that holds the SMILES; by default `canonical_smiles`, `smiles` or `SMILES`, the first that is there.
    pub property: Option<Arc<str>>,
    /// What becomes of conformers with stereo that their SMILES leaves open.
    pub open_stereo: OpenStereo,
    /// Whether a conformer that is not the molecule of a SMILES is skipped; else its atoms stay in the order of the file.
    pub required: bool,
}

/// What becomes of conformers with stereo that their SMILES leaves open: RDKit would write another SMILES for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OpenStereo {
    /// They are the SMILES' molecule, and counted apart.
    #[default]
    Keep,
    /// They are not.
    Skip,
}

/// A file's atoms in the order of a SMILES.
#[derive(Debug)]
pub(super) struct Ordered {
    /// The SMILES.
    pub smiles: Arc<str>,
    /// Its text with every block emptied.
    pub skeleton: Arc<str>,
    /// The number of each atom in the file, from 0.
    pub order: Vec<u32>,
    /// Stereo of the coordinates that the SMILES leaves open.
    pub open: StereoDifference,
    /// What is to be known of the SMILES, where that is asked for.
    pub notes: Option<SmilesNotes>,
}

/// How many SMILES are known at a time: isomers that one key pools take turns.
const MOST_KNOWN: usize = 8;

/// Finds the order of one molecule after another; what is known of the last ones is kept, since conformers of a molecule follow one another.
#[derive(Debug)]
pub(super) struct SmilesOrder {
    source: SmilesSource,
    /// The name of the file, and without what ends it.
    file: [Box<str>; 2],
    /// The last one first.
    known: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    smiles: Arc<str>,
    /// The same as a text has it.
    text: Arc<str>,
    molecule: Result<Asked, Mismatch>,
    /// With the structure that was set beside it last.
    pairing: Option<(Arc<Graph>, Result<AtomMapping, Mismatch>)>,
}

/// What is asked of a file's molecule.
#[derive(Debug)]
struct Asked {
    molecule: SmilesMolecule,
    skeleton: Arc<str>,
    notes: Option<SmilesNotes>,
}

impl Asked {
    /// Of a SMILES as a text has it.
    fn of(read: &SmilesReading<'_>, text: &str, notes: bool) -> Result<Self, Mismatch> {
        let skeleton = if text.is_empty() {
            skeleton::from_smiles(text).map_err(|error| Mismatch::Smiles(error.to_string()))?
        } else {
            skeleton::of_checked(text)
        };
        let notes = notes.then(|| SmilesNotes::from_reading(read));
        Ok(Asked { molecule: SmilesMolecule::from_reading(read)?, skeleton: skeleton.into(), notes })
    }
}

impl SmilesOrder {
    /// For a file, or a member of an archive behind `:`.
    pub(super) fn new(source: &SmilesSource, file: &str) -> Self {
        let name = file.rsplit([':', '/']).next().unwrap_or(file);
        let name = name.strip_suffix(".gz").unwrap_or(name);
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        SmilesOrder { source: source.clone(), file: [name.into(), stem.into()], known: Vec::new() }
    }

    /// Whether what has no order is skipped.
    pub(super) fn is_required(&self) -> bool {
        self.source.required
    }

    /// The SMILES of a molecule, by what its file says of it.
    ///
    /// # Errors
    /// A reason: there is none.
    pub(super) fn smiles<'s>(&'s self, labels: &'s Labels<'_>) -> Result<&'s str, String> {
        let names = self.source.names.as_deref();
        let by_name = |names: &'s Names| {
            let files = self.file.iter().map(|file| &**file);
            labels.names().chain(files).find_map(|name| names.get(name)).or_else(|| names.whole())
        };
        let named = self.source.whole.as_deref().or_else(|| names.and_then(by_name));
        let property = self.source.property.as_deref();
        if let Some(smiles) =
            named.or_else(|| labels.smiles(property).map(|(smiles, _)| smiles_of(smiles)).next())
        {
            return Ok(smiles);
        }
        let name = labels.names().next().map(|name| drift_core::error::shortened_end(name, 80));
        Err(match (names, property, name) {
            (Some(_), _, Some(name)) => format!("no SMILES: `{name}` is not among the names"),
            (_, Some(property), _) => format!("no SMILES: no data item `{property}`"),
            _ => "no SMILES: the file gives none".to_owned(),
        })
    }

    /// The atoms at `points`, in Å, bonded as `structure` says, in the order of `smiles`.
    ///
    /// # Errors
    /// If they are not its molecule.
    pub(super) fn order(
        &mut self,
        smiles: &str,
        structure: &Arc<Graph>,
        points: &[[f64; 3]],
    ) -> Result<Ordered, Mismatch> {
        let open_stereo = self.source.open_stereo;
        let known = self.known(smiles);
        let asked = known.molecule.as_mut().map_err(|mismatch| mismatch.clone())?;
        let molecule = &mut asked.molecule;
        // Conformers of a molecule share their structure, so it is compared once for all of them.
        let (_, pairing) = match known.pairing.take() {
            Some(pairing) if Arc::ptr_eq(&pairing.0, structure) => known.pairing.insert(pairing),
            _ => known.pairing.insert((structure.clone(), molecule.pair(structure))),
        };
        let pairing = pairing.as_ref().map_err(|mismatch| mismatch.clone())?;
        let (order, open) = molecule.order(pairing, points)?;
        if open_stereo == OpenStereo::Skip && !open.is_empty() {
            return Err(Mismatch::Open(open));
        }
        // The file counts this hydrogen at another atom, and has no place for it.
        if let Some(at) = order.iter().position(|place| *place as usize >= points.len()) {
            let reason = format!("atom {} of the SMILES is a hydrogen that the file does not have", at + 1);
            return Err(Mismatch::Atoms(reason));
        }
        let (smiles, skeleton, notes) = (known.text.clone(), asked.skeleton.clone(), asked.notes);
        Ok(Ordered { smiles, skeleton, order, open, notes })
    }

    /// How many bonds between heavy atoms a SMILES has, by the elements of their ends; none if it is no SMILES.
    pub(super) fn bonds_by_elements(&mut self, smiles: &str) -> Option<BondCounts> {
        let text = self.known(smiles).text.clone();
        let molecule = Molecule::without_hydrogens(&text, AtomLimit::default()).ok()?;
        let mut counts = BondCounts::new();
        for bond in &molecule.bonds {
            let [a, b] = bond.atoms.map(|atom| molecule.atoms[atom].element);
            *counts.entry([a.min(b), a.max(b)]).or_default() += 1;
        }
        Some(counts)
    }

    fn known(&mut self, smiles: &str) -> &mut Known {
        let place = self.known.iter().position(|known| *known.smiles == *smiles);
        match place {
            Some(at) => self.known[..=at].rotate_right(1),
            None => {
                let (text, molecule) = asked(smiles, self.source.required);
                // The one that was used longest ago goes.
                self.known.truncate(MOST_KNOWN - 1);
                self.known.insert(0, Known { smiles: smiles.into(), text, molecule, pairing: None });
            }
        }
        &mut self.known[0]
    }
}

/// A SMILES as a text has it, and what it asks of a file's molecule.
fn asked(smiles: &str, notes: bool) -> (Arc<str>, Result<Asked, Mismatch>) {
    let read = |text| {
        let read = SmilesReading::new(text, AtomLimit::default());
        read.map_err(|problem| Mismatch::of_smiles(text, &problem))
    };
    let as_given = match read(smiles) {
        Ok(read) if read.is_as_in_texts() => return (smiles.into(), Asked::of(&read, smiles, notes)),
        Ok(_) => text_of(smiles),
        Err(mismatch) => Err(mismatch),
    };
    match as_given {
        Ok(text) => {
            let asked = read(&text).and_then(|read| Asked::of(&read, &text, notes));
            (text.into(), asked)
        }
        Err(mismatch) => (smiles.into(), Err(mismatch)),
    }
}

/// A SMILES as a text has it: without hydrogens and map numbers that mean nothing, and without arrows.
///
/// # Errors
/// If it is no SMILES, or no text can be read back as its molecule.
fn text_of(smiles: &str) -> Result<String, Mismatch> {
    let fail = |problem: SmilesProblem| Mismatch::of_smiles(smiles, &problem);
    let mut text = without_needless_atoms(smiles).map_err(fail)?.unwrap_or_else(|| smiles.to_owned());
    if text.contains("->") || text.contains("<-") {
        // RDKit makes a bond to a metal dative again where the other atom has too many without.
        text = text.replace("->", "").replace("<-", "");
        if !same_molecule(smiles, &text, AtomLimit::default()) {
            return Err(Mismatch::Unreadable("its dative bonds"));
        }
    }
    if Graph::parse(&text).map_err(fail)?.has_bare_radicals() {
        return Err(Mismatch::Unreadable("its radicals, whose brackets mean nothing in a text"));
    }
    Ok(text)
}
