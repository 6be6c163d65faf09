//! The values of named fields of a row of JSON Lines.

use memchr::memmem;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess};
use serde_json::value::RawValue;

use drift_core::io::{FoldSeed, JsonFold, JsonPart};

/// Returns whether a row may have one of these fields: it names one, or has characters that are written as numbers.
pub(super) fn may_have(row: &str, columns: &[&str]) -> bool {
    let has = |part: &str| memmem::find(row.as_bytes(), part.as_bytes()).is_some();
    !columns.is_empty() && (columns.iter().any(|column| has(column)) || has("\\u"))
}

/// Returns the values of these fields as text. Numbers and truth values count as they are written in JSON, `null` as the empty text.
/// `None` for a field that is missing, a list or an object.
///
/// # Errors
/// A reason: the row is not an object.
pub(super) fn values(row: &str, columns: &[&str]) -> Result<Vec<Option<String>>, String> {
    let mut values = vec![None; columns.len()];
    let mut json = serde_json::Deserializer::from_str(row);
    let read = FoldSeed(Columns { columns, values: &mut values }).deserialize(&mut json);
    read.map_err(|e| format!("column {}: not a JSON object", e.column()))?;
    Ok(values)
}

/// Collects the values of columns.
struct Columns<'f> {
    columns: &'f [&'f str],
    values: &'f mut [Option<String>],
}

impl<'de> JsonFold<'de> for Columns<'_> {
    type Value = ();

    fn part<E: serde::de::Error>(self, _: JsonPart<'_>) -> Result<(), E> {
        Err(E::custom("not an object"))
    }

    fn object<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(field) = fields.next_key::<String>()? {
            match self.columns.iter().position(|column| *column == field) {
                Some(at) => self.values[at] = as_written(fields.next_value()?),
                None => _ = fields.next_value::<IgnoredAny>()?,
            }
        }
        Ok(())
    }
}

/// Returns a value as text, numbers as they are written; `None` for a list or an object.
fn as_written(value: &RawValue) -> Option<String> {
    match value.get() {
        "null" => Some(String::new()),
        text if text.starts_with('"') => serde_json::from_str(text).ok(),
        text if text.starts_with(['[', '{']) => None,
        text => Some(text.to_owned()),
    }
}
