//! Skeletons as data: texts with numbers whose fixed part comes from a prompt.
//!
//! A [`Skeleton`] says where [`slot`]s stand in a text, which lines are repeated for which items of a prompt, and which text is
//! fixed. It is a JSON file, `drift.skeleton/1` ([`BUILT_IN`] lists those inside of drift). How a number is written is the subject
//! of [`crate::encoding`], whose languages slots use.
//!
//! - [`Skeleton::parse`] in `file` reads a file. `template` has the parts of a text, and `borders` refuses skeletons whose texts could
//!   not be read back.
//! - [`Skeleton::bind`] combines a skeleton with the data of a [`prompt`], and refuses those that `borders` refuses. `items` are what a text repeats.
//! - [`Bound::read`] in `read` reads a text: its values, or what is wrong and where ([`reading`]), with those of items in `words`. `compare` compares its items with the prompt's.
//! - [`Skeleton::alternatives`] writes slots otherwise, to compare what they take. [`Skeleton::number_places`] has what stands around numbers.

mod alternatives;
mod borders;
mod compare;
mod file;
mod formula;
mod items;
mod places;
pub mod prompt;
mod read;
pub mod reading;
pub mod slot;
mod slot_file;
pub mod template;
mod words;

use std::collections::BTreeSet;
use std::path::Path;

pub use alternatives::{Alternative, SlotChange};
pub use items::{Arrangement, Items};
pub use places::{Neighbours, NumberPlace};
pub use prompt::{Bound, Source};
pub use reading::{Fault, FaultKind, ReadItem, Reading};
pub use slot::{Slot, SlotKind};
pub use template::{ItemText, Part, Repetition};

use crate::error::{Error, Result};
use crate::io;

/// A description of texts: their fixed parts, their slots, and their repetitions.
#[derive(Debug, Clone, PartialEq)]
pub struct Skeleton {
    /// Its name.
    pub name: String,
    /// Where texts of this kind are from.
    pub source: Option<String>,
    /// The slots.
    pub slots: Vec<Slot>,
    /// The names of items, and where they are from: the first source whose field a prompt has.
    pub items: Vec<(String, Vec<Source>)>,
    /// The fields of a prompt that stand in the text as they are.
    pub fields: Vec<String>,
    /// The text behind which the skeleton begins; what stands before it is free.
    pub marker: Option<String>,
    /// The text.
    pub parts: Vec<Part>,
    /// The texts with which it may end.
    pub ends: Vec<String>,
    /// Which slots are a geometry, if any.
    pub geometry: Option<Geometry<usize>>,
    /// Whether prompt and answer are tokenized as one text.
    pub one_text: bool,
    /// The text of the prompt: texts and fields; `None` if a prompt brings it, or is a text of its own.
    pub prompt: Option<Vec<Part>>,
}

/// The slots of a geometry.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Geometry<S> {
    /// The three lengths of the cell in Å. Without a cell, positions are in Å.
    pub lengths: Option<S>,
    /// The three angles of the cell in degrees.
    pub angles: Option<S>,
    /// Three for each atom: fractions of the cell, or positions in Å.
    pub positions: S,
}

/// The skeletons inside of drift: their names and files.
pub const BUILT_IN: [(&str, &str); 9] = [
    ("enriched-smiles", include_str!("builtin/enriched-smiles.json")),
    ("crystal-text", include_str!("builtin/crystal-text.json")),
    ("simple-cif", include_str!("builtin/simple-cif.json")),
    ("cif-p1", include_str!("builtin/cif-p1.json")),
    ("xyz", include_str!("builtin/xyz.json")),
    ("smiles-then-xyz", include_str!("builtin/smiles-then-xyz.json")),
    ("3dsmiles-padded", include_str!("builtin/3dsmiles-padded.json")),
    ("3dsmiles-plain", include_str!("builtin/3dsmiles-plain.json")),
    ("3dsmiles-base62", include_str!("builtin/3dsmiles-base62.json")),
];

/// The largest size of a skeleton's file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

impl Skeleton {
    /// Returns the skeleton of a name or a file. A name may have an encoding of coordinates behind a colon:
    /// `enriched-smiles:stripped-3`.
    ///
    /// # Errors
    /// If it is neither, or the file is no skeleton; the message names the place in the file.
    pub fn load(name: &Path) -> Result<Self> {
        let refused =
            |problem: String| Error::input(name.display(), problem, "docs/skeletons.md describes the file");
        let shown = name.to_string_lossy();
        if let Some((own, encoding)) = shown.split_once(':')
            && let Some((_, json)) = BUILT_IN.iter().find(|(known, _)| own == *known)
        {
            return Skeleton::encoded(json.as_bytes(), encoding).map_err(refused);
        }
        let known = BUILT_IN.iter().find(|(known, _)| shown == *known);
        let json = match known {
            Some((_, json)) => json.as_bytes().to_vec(),
            None if !name.exists() && !shown.contains(['.', '/']) => {
                let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
                let remedy = format!("give a file, or one of {}", names.join(", "));
                return Err(Error::input(name.display(), "no skeleton has this name", remedy));
            }
            None => io::read_to_limit(name, MAX_BYTES)?,
        };
        Skeleton::parse(&json).map_err(refused)
    }

    /// Returns whether items are the pieces of a SMILES, whose words and number are known.
    pub(crate) fn are_pieces(&self, items: usize) -> bool {
        matches!(self.items[items].1[..], [Source::Pieces { .. }])
    }

    /// Returns whether there may be no item of these.
    pub(crate) fn may_be_empty(&self, items: usize) -> bool {
        let may = |source: &Source| matches!(source, Source::Between { least: 0, .. } | Source::Count { .. });
        self.items[items].1.iter().any(may)
    }

    /// Returns the ASCII characters of its fixed texts and of its slots.
    pub(crate) fn characters(&self) -> BTreeSet<char> {
        let loops = self.loops();
        let inner = loops.clone().flat_map(|each| &each.parts);
        let fixed = self.parts.iter().chain(inner);
        let fixed = fixed.filter_map(|part| if let Part::Text(text) = part { Some(&**text) } else { None });
        let ends = self.ends.iter().map(String::as_str).chain(self.marker.as_deref());
        let texts = fixed.chain(ends).chain(loops.map(|each| &*each.between));
        let slots = self.slots.iter().flat_map(|slot| slot.dfa().alphabet()).map(char::from);
        texts.flat_map(str::chars).chain(slots).filter(char::is_ascii).collect()
    }

    fn loops(&self) -> impl Iterator<Item = &Repetition> + Clone {
        self.parts.iter().filter_map(|part| if let Part::Each(each) = part { Some(each) } else { None })
    }

    fn has(&self, is: impl Fn(&Part) -> bool + Copy) -> bool {
        self.parts
            .iter()
            .any(|part| is(part) || matches!(part, Part::Each(each) if each.parts.iter().any(is)))
    }

    /// Returns whether the text has a loop over these items.
    pub(crate) fn loops_over(&self, items: usize) -> bool {
        self.loops().any(|each| each.items == items)
    }

    /// Returns whether the text writes the words of these items.
    pub(crate) fn writes_words(&self, items: usize) -> bool {
        self.has(|part| matches!(part, Part::Item { items: own, text: ItemText::Word } if *own == items))
    }

    /// Returns whether the text writes what depends on the words of these items.
    pub(crate) fn needs_words(&self, items: usize) -> bool {
        use ItemText::{Reduced, Sum, Units, Word};
        self.has(
            |part| matches!(part, Part::Item { items: own, text: Word | Sum | Reduced | Units } if *own == items),
        )
    }
}

impl std::str::FromStr for Skeleton {
    type Err = String;

    /// Reads the content of a file.
    fn from_str(json: &str) -> std::result::Result<Self, String> {
        Skeleton::parse(json.as_bytes())
    }
}

#[cfg(test)]
mod tests;
