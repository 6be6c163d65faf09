//! The objects of a file of generated text: of each only the fields that are asked for are kept, so that what a file holds
//! beside its texts takes no memory.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Where the text of a record may be, the first that is there.
pub(super) const TEXT_FIELDS: [&str; 6] =
    ["decoded_text", "text", "completion", "generated_text", "embedded_smiles", "embedded_smiles_stripped"];

/// Where the prompt of a record may be, the first that is there.
const PROMPT_FIELDS: [&str; 3] = ["prompt_smiles", "smiles", "canonical_smiles"];

/// The most texts of one molecule.
const MAX_GENERATIONS: usize = 1 << 20;

/// One object.
#[derive(Debug, Default)]
pub(super) struct Row {
    texts: [Option<String>; TEXT_FIELDS.len()],
    prompts: [Option<String>; PROMPT_FIELDS.len()],
    /// The logit processor.
    pub lp: Option<String>,
    /// The texts of `all_generations`, none where one holds none; none if there is no such list.
    pub all: Option<Vec<Option<FieldText>>>,
}

/// A text, and the field that it is from; none if it stood in a list by itself.
pub(super) type FieldText = (Option<&'static str>, String);

impl Row {
    /// Its own text.
    pub(super) fn text(self) -> Option<FieldText> {
        let texts = TEXT_FIELDS.into_iter().zip(self.texts);
        texts.into_iter().find_map(|(field, text)| Some((Some(field), text?)))
    }

    /// Its prompt.
    pub(super) fn prompt(&self) -> Option<&str> {
        self.prompts.iter().find_map(Option::as_deref)
    }
}

/// What is read of a value: of an object its [`Row`], of a string the string; of others nothing.
#[derive(Debug)]
pub(super) enum Read {
    /// An object.
    Row(Box<Row>),
    /// A string.
    Text(String),
    /// A number that is no fraction.
    Count(u64),
    /// Anything else.
    Other,
}

impl Read {
    /// The string, if it is one.
    pub(super) fn text(self) -> Option<String> {
        if let Read::Text(text) = self { Some(text) } else { None }
    }

    /// The number, if it is one.
    pub(super) fn count(self) -> Option<u64> {
        if let Read::Count(count) = self { Some(count) } else { None }
    }

    fn generation(self) -> Option<FieldText> {
        match self {
            Read::Text(text) => Some((None, text)),
            Read::Row(row) => row.text(),
            Read::Count(_) | Read::Other => None,
        }
    }
}

/// What a visitor says to values that are neither list nor object.
macro_rules! ignored_scalars {
    ($type:ty, $value:expr) => {
        fn visit_str<E>(self, _: &str) -> Result<$type, E> {
            Ok($value)
        }

        fn visit_u64<E>(self, _: u64) -> Result<$type, E> {
            Ok($value)
        }

        fn visit_i64<E>(self, _: i64) -> Result<$type, E> {
            Ok($value)
        }

        fn visit_f64<E>(self, _: f64) -> Result<$type, E> {
            Ok($value)
        }

        fn visit_bool<E>(self, _: bool) -> Result<$type, E> {
            Ok($value)
        }

        fn visit_unit<E>(self) -> Result<$type, E> {
            Ok($value)
        }
    };
}

/// Reads any value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading;

impl<'de> DeserializeSeed<'de> for Reading {
    type Value = Read;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Read, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reading {
    type Value = Read;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Read, E> {
        Ok(Read::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Read, E> {
        Ok(Read::Text(text))
    }

    fn visit_u64<E>(self, count: u64) -> Result<Read, E> {
        Ok(Read::Count(count))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Read, E> {
        Ok(Read::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Read, E> {
        Ok(Read::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Read, E> {
        Ok(Read::Other)
    }

    fn visit_unit<E>(self) -> Result<Read, E> {
        Ok(Read::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Read, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Read::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Read, A::Error> {
        let mut row = Box::<Row>::default();
        while let Some(field) = fields.next_key::<String>()? {
            let place = |names: &[&str]| names.iter().position(|name| *name == field);
            if let Some(at) = place(&TEXT_FIELDS) {
                row.texts[at] = fields.next_value_seed(Reading)?.text();
            } else if let Some(at) = place(&PROMPT_FIELDS) {
                row.prompts[at] = fields.next_value_seed(Reading)?.text();
            } else if field == "lp" {
                row.lp = fields.next_value_seed(Reading)?.text();
            } else if field == "all_generations" {
                row.all = fields.next_value_seed(Generations)?;
            } else {
                fields.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Read::Row(row))
    }
}

/// Reads the texts of a molecule; none if they are no list.
struct Generations;

impl<'de> DeserializeSeed<'de> for Generations {
    type Value = Option<Vec<Option<FieldText>>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let mut texts = Vec::new();
        let list = Each(|read: Read| {
            texts.push(read.generation());
            if texts.len() > MAX_GENERATIONS {
                Err("more texts of one molecule than are read")
            } else {
                Ok(())
            }
        });
        let is_list = list.deserialize(deserializer)?;
        Ok(is_list.then_some(texts))
    }
}

/// Hands each value of a list to a function, as it is read; whether it is a list.
pub(super) struct Each<F>(pub F);

impl<'de, F: FnMut(Read) -> Result<(), &'static str>> DeserializeSeed<'de> for Each<F> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F: FnMut(Read) -> Result<(), &'static str>> Visitor<'de> for Each<F> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<bool, A::Error> {
        while let Some(read) = list.next_element_seed(Reading)? {
            (self.0)(read).map_err(A::Error::custom)?;
        }
        Ok(true)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<bool, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(false)
    }

    ignored_scalars!(bool, false);
}

/// Hands each field of an object to a function, by name; of anything else, nothing.
pub(super) struct Named<F>(pub F);

impl<'de, F: FnMut(&str, Read)> Visitor<'de> for Named<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        while let Some(name) = fields.next_key::<String>()? {
            (self.0)(&name, fields.next_value_seed(Reading)?);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    ignored_scalars!((), ());
}
