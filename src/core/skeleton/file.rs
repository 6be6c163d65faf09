//! `drift.skeleton/1`: skeletons as JSON files.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::prompt::Source;
use super::slot::{LONGEST_WORD, Slot, SlotKind};
use super::slot_file::{EncodedSlot, SlotFile, WordsFile};
use super::template::{Names, Part, Repetition};
use super::{Geometry, Skeleton, borders};
use crate::encoding::{Encoding, Slots};

/// The value of `schema`.
pub(super) const SKELETON_SCHEMA: &str = "drift.skeleton/1";

/// The fields of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SkeletonFile {
    schema: String,
    name: String,
    source: Option<String>,
    #[serde(default)]
    slots: OrderedEntries<OneOrMore<SlotFile>>,
    #[serde(default)]
    items: OrderedEntries<OneOrMore<Source>>,
    #[serde(default)]
    fields: Vec<String>,
    marker: Option<String>,
    text: Vec<PartFile>,
    #[serde(default = "no_end")]
    ends: Vec<String>,
    geometry: Option<Geometry<String>>,
    #[serde(default)]
    one_text: bool,
    prompt: Option<String>,
}

fn no_end() -> Vec<String> {
    vec![String::new()]
}

/// An object or a list of objects.
struct OneOrMore<T>(Vec<T>);

/// A part of the text.
enum PartFile {
    Text(String),
    Each(EachFile),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EachFile {
    each: String,
    text: String,
    #[serde(default)]
    between: String,
}

impl Skeleton {
    /// Reads a file's content.
    ///
    /// # Errors
    /// What is wrong and where in the file; not the file's name.
    pub(super) fn parse(json: &[u8]) -> Result<Self, String> {
        Skeleton::read(json, None)
    }

    /// Reads a file's content, with another encoding in place of its own.
    ///
    /// # Errors
    /// As [`Skeleton::parse`], or if the encoding is unknown or the skeleton has none.
    pub(super) fn encoded(json: &[u8], encoding: &str) -> Result<Self, String> {
        let known =
            encoding.parse().map_err(|problem: String| format!("encoding `{encoding}`: {problem}"))?;
        let skeleton = Skeleton::read(json, Some(known))?;
        Ok(Skeleton { name: format!("{}:{encoding}", skeleton.name), ..skeleton })
    }

    fn read(json: &[u8], encoding: Option<Encoding>) -> Result<Self, String> {
        let text = std::str::from_utf8(json).map_err(|_| "it is not UTF-8".to_owned())?;
        let file: SkeletonFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let skeleton = file.skeleton(encoding)?;
        borders::check(&skeleton)?;
        Ok(skeleton)
    }
}

impl SkeletonFile {
    fn skeleton(self, encoding: Option<Encoding>) -> Result<Skeleton, String> {
        if self.schema != SKELETON_SCHEMA {
            return Err(format!("`schema` is `{}`, not `{SKELETON_SCHEMA}`", self.schema));
        }
        let FileSlots { slots, encoded, behind } = FileSlots::of(self.slots, encoding)?;
        let mut items = Vec::new();
        for (name, OneOrMore(mut sources)) in self.items.0 {
            sources.iter_mut().for_each(|source| source.place_behind(behind));
            if sources.is_empty() {
                return Err(format!("items `{name}`: there is no source"));
            }
            let checked = sources.iter().try_for_each(|source| source.check(sources.len()));
            checked.map_err(|problem| format!("items `{name}`: {problem}"))?;
            items.push((name, sources));
        }
        let item_names: Vec<String> = items.iter().map(|(name, _)| name.clone()).collect();
        check_names(slots.iter().map(|slot| &slot.name).chain(&item_names).chain(&self.fields))?;
        let names = Names {
            slots: &slots,
            encoded: &encoded,
            items: &item_names,
            fields: &self.fields,
            around: None,
        };
        let prompt = self.prompt.map(|prompt| names.parts(&prompt)).transpose()?;
        if prompt.iter().flatten().any(|part| !matches!(part, Part::Text(_) | Part::Field(_))) {
            return Err("`prompt` holds texts and fields alone".to_owned());
        }
        let mut parts = Vec::new();
        for part in self.text {
            match part {
                PartFile::Text(template) => parts.extend(names.parts(&template)?),
                PartFile::Each(each) => parts.push(Part::Each(each.part(&names)?)),
            }
        }
        let geometry = self.geometry.map(|geometry| geometry.resolved(&slots)).transpose()?;
        if self.marker.as_deref().is_some_and(|marker| marker.trim().is_empty()) {
            return Err("`marker` is empty".to_owned());
        }
        if self.ends.is_empty() {
            return Err("`ends` lists no text; leave it out if the text ends with its last part".to_owned());
        }
        Ok(Skeleton {
            name: self.name,
            source: self.source,
            slots,
            items,
            fields: self.fields,
            marker: self.marker,
            parts,
            ends: self.ends,
            geometry,
            one_text: self.one_text || prompt.is_some(),
            prompt,
        })
    }
}

/// The slots of a file.
struct FileSlots {
    slots: Vec<Slot>,
    /// Those of encodings, and behind what they stand.
    encoded: Vec<EncodedSlot>,
    behind: Slots,
}

impl FileSlots {
    /// Returns the slots, perhaps with another encoding in place of their own.
    fn of(entries: OrderedEntries<OneOrMore<SlotFile>>, encoding: Option<Encoding>) -> Result<Self, String> {
        let (mut slots, mut encoded, mut behind) = (Vec::new(), Vec::new(), Slots::Atoms);
        for (name, kinds) in entries.0 {
            let [SlotFile::Encoding { encoding: own }] = &kinds.0[..] else {
                slots.push(slot(name, kinds)?);
                continue;
            };
            let encoding = encoding.unwrap_or(*own);
            behind = behind.max(encoding.slots());
            encoded.push(EncodedSlot::add(name, encoding, &mut slots)?);
        }
        if encoding.is_some() && encoded.is_empty() {
            return Err("no slot has an encoding that another could replace".to_owned());
        }
        Ok(FileSlots { slots, encoded, behind })
    }
}

/// Returns the slot of a name with its kinds.
fn slot(name: String, kinds: OneOrMore<SlotFile>) -> Result<Slot, String> {
    let kinds: Result<Vec<SlotKind>, String> = kinds.0.into_iter().map(SlotFile::kind).collect();
    let slot = kinds.and_then(|kinds| Slot::new(name.clone(), kinds));
    slot.map_err(|problem| format!("slot `{name}`: {problem}"))
}

impl EachFile {
    fn part(self, names: &Names<'_>) -> Result<Repetition, String> {
        let items = names.items.iter().position(|name| *name == self.each);
        let items = items.ok_or_else(|| format!("each: there are no items `{}`", self.each))?;
        let parts = Names { around: Some(items), ..*names }.parts(&self.text)?;
        if parts.is_empty() || self.between.len() > LONGEST_WORD {
            let problem = format!("its `text` is empty, or `between` is over {LONGEST_WORD} bytes");
            return Err(format!("each `{}`: {problem}", self.each));
        }
        Ok(Repetition { items, parts, between: self.between.into() })
    }
}

/// Refuses names that cannot stand in braces, and names that stand for two things.
fn check_names<'n>(names: impl Iterator<Item = &'n String>) -> Result<(), String> {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if name.is_empty() || name.len() > LONGEST_WORD || !is_plain {
            return Err(format!("`{name}` is no name: give letters, digits and `_`"));
        }
        if !seen.insert(name) {
            return Err(format!("two slots, items or fields are called `{name}`"));
        }
    }
    Ok(())
}

fn slot_called(slots: &[Slot], name: &str) -> Result<usize, String> {
    let place = slots.iter().position(|slot| slot.name == name);
    place.ok_or_else(|| format!("geometry: there is no slot `{name}`"))
}

impl Geometry<String> {
    fn resolved(self, slots: &[Slot]) -> Result<Geometry<usize>, String> {
        let of = |name: &String| slot_called(slots, name);
        if self.lengths.is_some() != self.angles.is_some() {
            return Err("geometry: a cell has `lengths` and `angles`".to_owned());
        }
        Ok(Geometry {
            lengths: self.lengths.as_ref().map(of).transpose()?,
            angles: self.angles.as_ref().map(of).transpose()?,
            positions: of(&self.positions)?,
        })
    }
}

/// The entries of an object, in order.
struct OrderedEntries<T>(Vec<(String, T)>);

impl<T> Default for OrderedEntries<T> {
    fn default() -> Self {
        OrderedEntries(Vec::new())
    }
}

/// Reads what may have several JSON types. Unlike an untagged enum it keeps the message of what is inside.
struct JsonTypes<T>(&'static str, PhantomData<T>);

macro_rules! deserialize_by_type {
    ([$($generic:ident)?] $type:ty, $expected:literal, $($visit:item)+) => {
        impl<'de, $($generic: Deserialize<'de>)?> Visitor<'de> for JsonTypes<$type> {
            type Value = $type;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.0)
            }

            $($visit)+
        }

        impl<'de, $($generic: Deserialize<'de>)?> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(JsonTypes::<$type>($expected, PhantomData))
            }
        }
    };
}

deserialize_by_type! { [T] OrderedEntries<T>, "an object",
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OrderedEntries<T>, A::Error> {
        let mut all = Vec::new();
        while let Some(entry) = map.next_entry()? {
            all.push(entry);
        }
        Ok(OrderedEntries(all))
    }
}

deserialize_by_type! { [T] OneOrMore<T>, "an object or a list of objects",
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<OneOrMore<T>, A::Error> {
        Ok(OneOrMore(vec![T::deserialize(MapAccessDeserializer::new(map))?]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<OneOrMore<T>, A::Error> {
        Ok(OneOrMore(Vec::deserialize(SeqAccessDeserializer::new(list))?))
    }
}

deserialize_by_type! { [] PartFile, "a text, or an object with `each`",
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<PartFile, E> {
        Ok(PartFile::Text(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PartFile, A::Error> {
        Ok(PartFile::Each(EachFile::deserialize(MapAccessDeserializer::new(map))?))
    }
}

deserialize_by_type! { [] WordsFile, "a list of words, or `elements`",
    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<WordsFile, E> {
        Ok(WordsFile::Named(name.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<WordsFile, A::Error> {
        Ok(WordsFile::Listed(Vec::deserialize(SeqAccessDeserializer::new(list))?))
    }
}
