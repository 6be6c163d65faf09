//! Puts the atoms of a file into the order of a SMILES, so that a conformer gets the text that users train on.

use std::sync::Arc;

use super::labels::{Items, Labels};
use super::names::{Names, leading_smiles, smiles_of};
use super::perceive::BondCounts;
use crate::parameter;
use drift_core::chem::{
    AtomLimit, AtomMapping, Graph, Isotopes, Mismatch, Molecule, Order, SmilesMolecule, SmilesNotes,
    SmilesProblem, SmilesReading, StereoDifference, same_molecule, without_needless_atoms,
};
use drift_core::error::shortened_end;
use drift_core::text::skeleton;

/// How the SMILES of a file's molecule is found, and what to do with molecules without one.
///
/// A SMILES found by name takes precedence over the file's own, which is the key under which the file stores the molecule, or a
/// data item.
#[derive(Debug, Clone, Default)]
pub struct SmilesSource {
    /// SMILES by molecule name.
    pub names: Option<Arc<Names>>,
    /// One SMILES for every molecule, regardless of the files.
    pub whole: Option<Arc<str>>,
    /// The data item that holds the SMILES. By default, the first one present of `canonical_smiles`, `smiles`, `SMILES` and
    /// PubChem's items.
    pub property: Option<Arc<str>>,
    /// The data item that holds the name to look up in `names`. By default, the title and the usual items are tried.
    pub name_property: Option<Arc<str>>,
    /// What to do with conformers with stereo that their SMILES leaves open.
    pub open_stereo: OpenStereo,
    /// Whether coordinates need not have the stereo of the SMILES, for conformers whose stereo is judged later.
    pub any_stereo: bool,
    /// Whether a conformer is skipped if it does not match a SMILES. Otherwise its atoms stay in file order.
    pub required: bool,
}

/// What to do with conformers with stereo that their SMILES leaves open. RDKit would write another SMILES for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OpenStereo {
    /// They match the SMILES, and are counted separately.
    #[default]
    Keep,
    /// They do not match the SMILES.
    Skip,
}

/// The atoms of a file in the order of a SMILES.
#[derive(Debug)]
pub(super) struct OrderedAtoms {
    /// The SMILES.
    pub smiles: Arc<str>,
    /// Its enriched text with every block emptied.
    pub skeleton: Arc<str>,
    /// The index in the file of each atom of the SMILES, from 0.
    pub order: Vec<u32>,
    /// Stereo of the coordinates that the SMILES leaves open.
    pub open: StereoDifference,
    /// What was found about the SMILES, if requested.
    pub notes: Option<SmilesNotes>,
}

/// An item with a shorter value is not proposed as a SMILES: `C` and `NO` may be anything.
const SHORTEST_SMILES: usize = 3;

/// The most data items that a message lists.
const ITEMS_SHOWN: usize = 8;

/// The number of SMILES cached at a time. Isomers that one key pools alternate, so one is not enough.
const MOST_KNOWN: usize = 8;

/// Finds the atom order of one molecule after another. The results for the most recent SMILES are cached, since conformers of a
/// molecule follow one another.
#[derive(Debug)]
pub(super) struct SmilesOrder {
    source: SmilesSource,
    /// The file name, with and without its extension.
    file: [Box<str>; 2],
    /// The cached SMILES, the most recently used first.
    known: Vec<CachedSmiles>,
}

#[derive(Debug)]
struct CachedSmiles {
    smiles: Arc<str>,
    /// The same SMILES as enriched texts write it.
    text: Arc<str>,
    molecule: Result<ParsedSmiles, Mismatch>,
    /// The structure it was last compared with, and the result.
    pairing: Option<(Arc<Graph>, Result<AtomMapping, Mismatch>)>,
}

/// A SMILES, parsed for comparison with the molecules of a file.
#[derive(Debug)]
struct ParsedSmiles {
    molecule: SmilesMolecule,
    skeleton: Arc<str>,
    notes: Option<SmilesNotes>,
}

impl ParsedSmiles {
    /// From a SMILES as enriched texts write it, already parsed.
    fn of(read: &SmilesReading<'_>, text: &str, notes: bool) -> Result<Self, Mismatch> {
        let skeleton = if text.is_empty() {
            skeleton::from_smiles(text).map_err(|error| Mismatch::Smiles(error.to_string()))?
        } else {
            skeleton::of_checked(text)
        };
        let notes = notes.then(|| SmilesNotes::from_reading(read));
        Ok(ParsedSmiles { molecule: SmilesMolecule::from_reading(read)?, skeleton: skeleton.into(), notes })
    }
}

impl ParsedSmiles {
    /// Returns the same text, whose molecule is compared without its stereo. `text` is the SMILES.
    fn without_stereo(self, text: &str) -> Result<Self, Mismatch> {
        let plain = without_marks(text);
        let read = SmilesReading::new(&plain, AtomLimit::default());
        let read = read.map_err(|problem| Mismatch::of_smiles(text, &problem))?;
        Ok(ParsedSmiles { molecule: SmilesMolecule::from_reading(&read)?, ..self })
    }
}

/// Returns a SMILES without its stereo marks, atom by atom the same.
fn without_marks(smiles: &str) -> String {
    let mut out = String::with_capacity(smiles.len());
    let (mut rest, mut in_brackets) = (smiles, false);
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        match character {
            '@' if in_brackets => {
                rest = rest.strip_prefix('@').unwrap_or(rest);
                let class = ["TH", "AL", "SP", "TB", "OH"].iter().find_map(|class| rest.strip_prefix(class));
                // `@H` is a mark and a hydrogen; only a number makes letters a class.
                if let Some(numbered) =
                    class.filter(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()))
                {
                    rest = numbered.trim_start_matches(|digit: char| digit.is_ascii_digit());
                }
            }
            '/' | '\\' if !in_brackets => {}
            _ => {
                in_brackets = character == '[' || in_brackets && character != ']';
                out.push(character);
            }
        }
    }
    out
}

impl SmilesOrder {
    /// For a file or, after `:`, a member of an archive.
    pub(super) fn new(source: &SmilesSource, file: &str) -> Self {
        let name = file.rsplit([':', '/']).next().unwrap_or(file);
        let name = [".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        SmilesOrder { source: source.clone(), file: [name.into(), stem.into()], known: Vec::new() }
    }

    /// Returns whether conformers without an order are skipped.
    pub(super) fn is_required(&self) -> bool {
        self.source.required
    }

    /// Returns the SMILES of a molecule, found from the molecule's labels in the file.
    ///
    /// # Errors
    /// A reason: no SMILES was found.
    pub(super) fn smiles<'s>(&'s self, labels: &'s Labels<'_>) -> Result<&'s str, String> {
        let names = self.source.names.as_deref();
        let by_name = |names: &'s Names| {
            self.candidates(labels).find_map(|name| names.get(name)).or_else(|| names.whole())
        };
        let named = self.source.whole.as_deref().or_else(|| names.and_then(by_name));
        let property = self.source.property.as_deref();
        if let Some(smiles) = named.or_else(|| labels.smiles(property).map(smiles_of).next()) {
            return Ok(smiles);
        }
        Err(self.no_smiles(labels))
    }

    /// Returns the names of a molecule that are looked up in a list, best first.
    fn candidates<'s>(&'s self, labels: &'s Labels<'_>) -> impl Iterator<Item = &'s str> {
        let chosen = self.source.name_property.as_deref();
        let item = chosen.and_then(|item| labels.items?.get(item));
        let usual =
            labels.names().chain(self.file.iter().map(|file| &**file)).filter(move |_| chosen.is_none());
        item.into_iter().chain(usual)
    }

    /// Returns why no SMILES was found, and which items or columns may hold one.
    fn no_smiles(&self, labels: &Labels<'_>) -> String {
        let items = || labels.items.into_iter().flat_map(Items::iter);
        let Some(names) = self.source.names.as_deref() else {
            let reason = match self.source.property.as_deref() {
                Some(property) => format!("no SMILES: no data item `{property}`"),
                None => "no SMILES: the file gives none".to_owned(),
            };
            let like =
                items().find(|(_, value)| value.len() >= SHORTEST_SMILES && leading_smiles(value).is_some());
            return match like {
                Some((name, _)) => {
                    format!("{reason}; its item `{name}` may be one: {} {name}", parameter::PROPERTY)
                }
                None => reason,
            };
        };
        let chosen = self.source.name_property.as_deref();
        let reason = match (chosen, self.candidates(labels).next()) {
            (Some(item), None) => format!("no data item `{item}` to look up in"),
            (None, _) if labels.names().next().is_none() => "no name to look up in".to_owned(),
            (_, name) => {
                format!("`{}` is not among the names in", shortened_end(name.unwrap_or_default(), 80))
            }
        };
        let place = names.column().unwrap_or_else(|| names.source.name.clone());
        let shown: Vec<String> = items().take(ITEMS_SHOWN).map(|(name, _)| format!("`{name}`")).collect();
        let other = match shown.is_empty() {
            true => String::new(),
            false => format!("; {} chooses from its items {}", parameter::NAME_PROPERTY, shown.join(", ")),
        };
        format!("no SMILES: {reason} {place}{other}")
    }

    /// Puts the atoms at `points` (in Å), whose bonds are `structure`, into the order of `smiles`.
    ///
    /// # Errors
    /// If they are not the molecule of `smiles`.
    pub(super) fn order(
        &mut self,
        smiles: &str,
        structure: &Arc<Graph>,
        points: &[[f64; 3]],
    ) -> Result<OrderedAtoms, Mismatch> {
        let open_stereo = self.source.open_stereo;
        let known = self.known(smiles);
        let asked = known.molecule.as_mut().map_err(|mismatch| mismatch.clone())?;
        let molecule = &mut asked.molecule;
        // Conformers of a molecule share their structure, so it is compared only once for all of them.
        let (_, pairing) = match known.pairing.take() {
            Some(pairing) if Arc::ptr_eq(&pairing.0, structure) => known.pairing.insert(pairing),
            _ => known.pairing.insert((structure.clone(), molecule.pair(structure))),
        };
        let pairing = pairing.as_ref().map_err(|mismatch| mismatch.clone())?;
        let (order, open) = molecule.order(pairing, points)?;
        let notes = asked.notes;
        // A file has the hydrogens on which some marks depend; a text does not.
        let notes =
            notes.map(|notes| SmilesNotes { has_unchecked_stereo: pairing.has_unchecked_stereo(), ..notes });
        if open_stereo == OpenStereo::Skip && !open.is_empty() {
            return Err(Mismatch::Open(open));
        }
        // The SMILES has this hydrogen at another atom than the file, so the file has no position for it.
        if let Some(at) = order.iter().position(|place| *place as usize >= points.len()) {
            let reason = format!("atom {} of the SMILES is a hydrogen that the file does not have", at + 1);
            return Err(Mismatch::Atoms(reason));
        }
        let (smiles, skeleton) = (known.text.clone(), asked.skeleton.clone());
        Ok(OrderedAtoms { smiles, skeleton, order, open, notes })
    }

    /// Returns the number of bonds between heavy atoms of a SMILES, by the elements of their ends; `None` if the SMILES is invalid.
    pub(super) fn bonds_by_elements(&mut self, smiles: &str) -> Option<BondCounts> {
        let text = self.known(smiles).text.clone();
        let molecule = Molecule::without_hydrogens(&text, AtomLimit::default(), Isotopes::Respect).ok()?;
        let mut counts = BondCounts::new();
        for bond in &molecule.bonds {
            let [a, b] = bond.atoms.map(|atom| molecule.atoms[atom].element);
            *counts.entry([a.min(b), a.max(b)]).or_default() += 1;
        }
        Some(counts)
    }

    fn known(&mut self, smiles: &str) -> &mut CachedSmiles {
        let place = self.known.iter().position(|known| *known.smiles == *smiles);
        match place {
            Some(at) => self.known[..=at].rotate_right(1),
            None => {
                let (text, mut molecule) = asked(smiles, self.source.required);
                if self.source.any_stereo {
                    molecule = molecule.and_then(|asked| asked.without_stereo(&text));
                }
                // Drops the least recently used SMILES.
                self.known.truncate(MOST_KNOWN - 1);
                self.known.insert(0, CachedSmiles { smiles: smiles.into(), text, molecule, pairing: None });
            }
        }
        &mut self.known[0]
    }
}

/// Returns a SMILES as enriched texts write it, and its parse for comparison with molecules of a file.
fn asked(smiles: &str, notes: bool) -> (Arc<str>, Result<ParsedSmiles, Mismatch>) {
    let read = |text| {
        let read = SmilesReading::new(text, AtomLimit::default());
        read.map_err(|problem| Mismatch::of_smiles(text, &problem))
    };
    let as_given = match read(smiles) {
        Ok(read) if read.is_as_in_texts() => return (smiles.into(), ParsedSmiles::of(&read, smiles, notes)),
        Ok(_) => text_of(smiles),
        Err(mismatch) => Err(mismatch),
    };
    match as_given {
        Ok(text) => {
            let asked = read(&text).and_then(|read| ParsedSmiles::of(&read, &text, notes));
            (text.into(), asked)
        }
        Err(mismatch) => (smiles.into(), Err(mismatch)),
    }
}

/// Returns a SMILES as enriched texts write it, if it has a text.
pub(crate) fn written_in_texts(smiles: &str) -> Option<String> {
    text_of(smiles).ok()
}

/// Rewrites a SMILES as enriched texts write it: without redundant hydrogens and map numbers, and without the arrows of dative
/// bonds.
///
/// # Errors
/// If it is not a valid SMILES, or if no text would be read back as its molecule.
fn text_of(smiles: &str) -> Result<String, Mismatch> {
    let fail = |problem: SmilesProblem| Mismatch::of_smiles(smiles, &problem);
    let mut text = without_needless_atoms(smiles).map_err(fail)?.unwrap_or_else(|| smiles.to_owned());
    if text.contains("->") || text.contains("<-") {
        // When RDKit reads the text, it makes a bond to a metal dative again if the other atom would otherwise exceed its valence.
        text = text.replace("->", "").replace("<-", "");
        if !same_molecule(smiles, &text, AtomLimit::default(), Isotopes::Respect) {
            return Err(Mismatch::Unreadable("its dative bonds"));
        }
    }
    let graph = Graph::parse(&text).map_err(fail)?;
    // 3DMolGen's reader of texts does not know `~`.
    if graph.bonds.iter().any(|bond| bond.order == Order::Any) {
        return Err(Mismatch::Unreadable("its bonds of order zero, `~`"));
    }
    if graph.has_unwritable_radicals() {
        return Err(Mismatch::Unreadable("its radicals, whose brackets mean nothing in a text"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_removed_and_atoms_are_not() {
        for (smiles, plain) in [
            ("C[C@H](F)[C@@](N)(O)C", "C[CH](F)[C](N)(O)C"),
            ("F/C=C\\Cl", "FC=CCl"),
            ("[Pt@SP2H2](N)(N)Cl", "[PtH2](N)(N)Cl"),
            ("[13C@TH1H](F)(Cl)Br", "[13CH](F)(Cl)Br"),
            ("[Co@OH12+3](F)", "[Co+3](F)"),
        ] {
            assert_eq!(without_marks(smiles), plain);
        }
    }
}
