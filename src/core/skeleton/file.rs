//! `drift.skeleton/1`: skeletons as JSON files.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::prompt::{LONGEST_WORD, Source};
use super::slot::{Number, Sign, Slot, SlotKind, power};
use super::template::{Names, Part, Repetition};
use super::{Geometry, Skeleton, borders};
use crate::chem::elements;

/// The value of `schema`.
pub(super) const SKELETON_SCHEMA: &str = "drift.skeleton/1";

/// The most words of a slot.
const MOST_WORDS: usize = 4_096;

/// The most decimals of a number.
const MOST_DECIMALS: u8 = 12;

/// The largest magnitude of a number, in units of its last decimal.
const LARGEST: f64 = 1e15;

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

/// A kind of a slot.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum SlotFile {
    Decimal {
        decimals: u8,
        least_decimals: Option<u8>,
        low: f64,
        high: f64,
        #[serde(default)]
        width: u8,
        #[serde(default)]
        sign: Sign,
        #[serde(default)]
        minus_zero: bool,
    },
    Integer {
        low: f64,
        high: f64,
        #[serde(default)]
        width: u8,
        #[serde(default)]
        sign: Sign,
        #[serde(default)]
        minus_zero: bool,
    },
    Bins {
        low: f64,
        step: f64,
        bins: u32,
        #[serde(default)]
        width: u8,
    },
    Codes {
        alphabet: String,
        width: u8,
    },
    Words {
        words: WordsFile,
    },
}

enum WordsFile {
    /// `elements`
    Named(String),
    Listed(Vec<String>),
}

impl SlotFile {
    fn kind(self) -> Result<SlotKind, String> {
        Ok(match self {
            SlotFile::Decimal { decimals, least_decimals, low, high, width, sign, minus_zero } => {
                let least_decimals = least_decimals.unwrap_or(decimals);
                if decimals > MOST_DECIMALS || least_decimals > decimals {
                    return Err(format!(
                        "`decimals` are at most {MOST_DECIMALS}, and at least `least_decimals`"
                    ));
                }
                let (low, high) = (units("low", low, decimals)?, units("high", high, decimals)?);
                let (width, bins) = (checked_width(width)?, None);
                SlotKind::Number(Number {
                    least_decimals,
                    decimals,
                    low,
                    high,
                    width,
                    sign,
                    minus_zero,
                    bins,
                })
            }
            SlotFile::Integer { low, high, width, sign, minus_zero } => {
                let (decimals, least_decimals) = (0, None);
                SlotFile::Decimal { decimals, least_decimals, low, high, width, sign, minus_zero }.kind()?
            }
            SlotFile::Bins { low, step, bins, width } => {
                if bins == 0 || !low.is_finite() || !step.is_finite() || step <= 0.0 {
                    return Err("`bins` and `step` are above 0".to_owned());
                }
                SlotKind::Number(Number {
                    least_decimals: 0,
                    decimals: 0,
                    low: 0,
                    high: i64::from(bins) - 1,
                    width: checked_width(width)?,
                    sign: Sign::Minus,
                    minus_zero: false,
                    bins: Some([low, step]),
                })
            }
            SlotFile::Codes { alphabet, width } => codes(&alphabet, width)?,
            SlotFile::Words { words } => SlotKind::Words(words.list()?),
        })
    }
}

/// Codes of these characters.
fn codes(alphabet: &str, width: u8) -> Result<SlotKind, String> {
    let mut characters = alphabet.as_bytes().to_vec();
    characters.sort_unstable();
    characters.dedup();
    let is_plain = alphabet.bytes().all(|byte| byte.is_ascii_graphic());
    if characters.len() != alphabet.len() || alphabet.is_empty() || !is_plain {
        return Err("`alphabet` lists each of its characters once, and all are ASCII".to_owned());
    }
    if !(1..=32).contains(&width) {
        return Err("`width` is 1 to 32".to_owned());
    }
    Ok(SlotKind::Codes { alphabet: characters.into(), width })
}

impl WordsFile {
    fn list(self) -> Result<Vec<String>, String> {
        let words = match self {
            WordsFile::Named(name) if name == "elements" => {
                (1..=118).filter_map(elements::symbol).map(str::to_owned).collect()
            }
            WordsFile::Named(name) => return Err(format!("`words` is a list, or `elements`, not `{name}`")),
            WordsFile::Listed(words) => words,
        };
        let is_wrong = |word: &String| word.is_empty() || word.len() > LONGEST_WORD || word.contains('\n');
        if words.is_empty() || words.len() > MOST_WORDS || words.iter().any(is_wrong) {
            return Err(format!(
                "`words` are 1 to {MOST_WORDS} words of 1 to {LONGEST_WORD} bytes on a line"
            ));
        }
        Ok(words)
    }
}

fn checked_width(width: u8) -> Result<u8, String> {
    if width > 18 { Err("`width` is at most 18 digits".to_owned()) } else { Ok(width) }
}

/// Returns a bound in units of the last decimal.
fn units(field: &str, value: f64, decimals: u8) -> Result<i64, String> {
    let scaled = value * power(decimals) as f64;
    // A bound is written with few decimals, and the product of a double with a power of ten is off by less than this.
    if !value.is_finite() || scaled.abs() > LARGEST {
        return Err(format!("`{field}` {value} is too large for {decimals} decimals"));
    }
    if (scaled - scaled.round()).abs() > 1e-6 * scaled.abs().max(1.0) {
        return Err(format!("`{field}` {value} has more than {decimals} decimals"));
    }
    Ok(scaled.round() as i64)
}

impl Skeleton {
    /// Reads a file's content.
    ///
    /// # Errors
    /// What is wrong and where in the file; not the file's name.
    pub(super) fn parse(json: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(json).map_err(|_| "it is not UTF-8".to_owned())?;
        let file: SkeletonFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let skeleton = file.skeleton()?;
        borders::check(&skeleton)?;
        Ok(skeleton)
    }
}

impl SkeletonFile {
    fn skeleton(self) -> Result<Skeleton, String> {
        if self.schema != SKELETON_SCHEMA {
            return Err(format!("`schema` is `{}`, not `{SKELETON_SCHEMA}`", self.schema));
        }
        let slots = self
            .slots
            .0
            .into_iter()
            .map(|(name, kinds)| slot(name, kinds))
            .collect::<Result<Vec<Slot>, String>>()?;
        let mut items = Vec::new();
        for (name, OneOrMore(sources)) in self.items.0 {
            if sources.is_empty() {
                return Err(format!("items `{name}`: there is no source"));
            }
            let checked = sources.iter().try_for_each(Source::check);
            checked.map_err(|problem| format!("items `{name}`: {problem}"))?;
            items.push((name, sources));
        }
        let item_names: Vec<String> = items.iter().map(|(name, _)| name.clone()).collect();
        check_names(slots.iter().map(|slot| &slot.name).chain(&item_names).chain(&self.fields))?;
        let names = Names { slots: &slots, items: &item_names, fields: &self.fields, around: None };
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
            one_text: self.one_text,
        })
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
