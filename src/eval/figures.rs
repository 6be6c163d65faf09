//! The figures of a record or a trace, folded as its JSON is read: what else a file holds takes no memory.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::events::{Events, Figures, Kept, Trace, others_are};

/// Fields that say which run it is; runs that agree in them are compared.
const KEYS: [&str; 5] = ["model", "tokenizer", "lp", "placeholder", "device"];

/// What a document holds.
#[derive(Default)]
pub(super) struct Found {
    /// Its runs by name, of a record; none within if one is no object.
    pub runs: Option<Option<Vec<(String, Figures)>>>,
    /// Its events, of a trace.
    pub trace: Option<Trace>,
}

/// Reads a whole document: an object with `runs` or `traceEvents`, or an array of events.
pub(super) struct Document;

impl<'de> DeserializeSeed<'de> for Document {
    type Value = Found;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Found, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Document {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record or a trace")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, events: A) -> Result<Found, A::Error> {
        Ok(Found { trace: Events.visit_seq(events)?, runs: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Found, A::Error> {
        let mut found = Found::default();
        while let Some(field) = fields.next_key::<String>()? {
            match &*field {
                "runs" => found.runs = fields.next_value_seed(Runs)?,
                "traceEvents" => found.trace = fields.next_value_seed(Events)?,
                _ => _ = fields.next_value::<IgnoredAny>()?,
            }
        }
        Ok(found)
    }

    others_are!(Found::default(); visit_str: &str, visit_bool: bool, visit_u64: u64, visit_i64: i64, visit_f64: f64);
}

/// Reads the runs of a record with all their numbers; a name that comes twice is numbered.
struct Runs;

impl<'de> DeserializeSeed<'de> for Runs {
    type Value = Option<Option<Vec<(String, Figures)>>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Runs {
    type Value = Option<Option<Vec<(String, Figures)>>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("runs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let (mut kept, mut runs, mut are_objects) = (Kept::default(), Vec::new(), true);
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        loop {
            let mut run = Run { keys: Default::default(), figures: Vec::new(), kept: &mut kept };
            let Some(is_object) = list.next_element_seed(&mut run)? else { break };
            are_objects &= is_object;
            let parts: Vec<&str> = run.keys.iter().filter_map(Option::as_deref).collect();
            let (mut name, figures) = (parts.join(", "), std::mem::take(&mut run.figures));
            kept.add::<A::Error>(&[&name])?;
            let count = seen.entry(name.clone()).or_default();
            *count += 1;
            if *count > 1 {
                name.push_str(&format!(" ({count})"));
            }
            runs.push((name, figures));
        }
        Ok(Some(are_objects.then_some(runs)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    others_are!(None; visit_str: &str, visit_bool: bool, visit_u64: u64, visit_i64: i64, visit_f64: f64);
}

/// One run, as it is read.
struct Run<'k> {
    /// By [`KEYS`].
    keys: [Option<String>; KEYS.len()],
    figures: Figures,
    kept: &'k mut Kept,
}

impl<'de> DeserializeSeed<'de> for &mut Run<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Run<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a run")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<bool, A::Error> {
        while let Some(field) = fields.next_key::<String>()? {
            let at = KEYS.iter().position(|key| *key == field);
            let text = fields.next_value_seed(Flat { name: field, run: self })?;
            if let (Some(at), Some(text)) = (at, text) {
                self.kept.add::<A::Error>(&[&text])?;
                self.keys[at] = Some(text);
            }
        }
        Ok(true)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<bool, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(false)
    }

    others_are!(false; visit_str: &str, visit_bool: bool, visit_u64: u64, visit_i64: i64, visit_f64: f64);
}

/// A value of a run: numbers become figures, with dots between levels; lists are distributions and examples, not figures.
/// The text, if it is one.
struct Flat<'r, 'k> {
    name: String,
    run: &'r mut Run<'k>,
}

impl Flat<'_, '_> {
    fn number<E: serde::de::Error>(self, number: f64) -> Result<Option<String>, E> {
        self.run.kept.add(&[&self.name])?;
        self.run.figures.push((self.name, number));
        Ok(None)
    }
}

impl<'de> DeserializeSeed<'de> for Flat<'_, '_> {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<String>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Flat<'_, '_> {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Option<String>, E> {
        self.number(number as f64)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Option<String>, E> {
        self.number(number as f64)
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Option<String>, E> {
        self.number(number)
    }

    fn visit_str<E>(self, text: &str) -> Result<Option<String>, E> {
        Ok(Some(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Option<String>, A::Error> {
        while let Some(field) = fields.next_key::<String>()? {
            let name = format!("{}.{field}", self.name);
            fields.next_value_seed(Flat { name, run: &mut *self.run })?;
        }
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Option<String>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    others_are!(None; visit_bool: bool);
}
