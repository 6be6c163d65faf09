//! Reads files of generated text that are one JSON document: arrays, and 3DMolGen's smoke reports.

use serde::de::{IgnoredAny, MapAccess};

use super::records::{FULL, Reader, SmokeHead};
use super::rows::{LP_FIELD, ListVisitor, Read, Reading};
use drift_core::io::{FoldSeed, JsonFold, JsonPart};

/// Reads a value with drift's own names of fields.
const OWN: Reading<'static> = Reading { lp: LP_FIELD };

/// Returns a fold that passes the entries of a list to a reader. `null` counts as an empty list.
pub(super) fn rows_of<'r>(
    reader: &'r mut Reader,
    list: &'static str,
) -> ListVisitor<impl FnMut(Read) -> Result<(), &'static str> + 'r> {
    let mut index = 0u64;
    let lp = reader.row_field.lp().to_owned();
    let each = move |row| {
        reader.object(&format!("{list}[{index}]"), (list != "record").then_some(list == "passes"), row);
        index += 1;
        if reader.is_full() { Err(FULL) } else { Ok(()) }
    };
    ListVisitor { each, null_is_list: true, lp }
}

/// Passes the entries of a smoke report to a reader, and returns the report's own figures.
pub(super) struct Report<'r>(pub &'r mut Reader);

impl<'de> JsonFold<'de> for Report<'_> {
    type Value = SmokeHead;

    fn part<E>(self, _: JsonPart<'_>) -> Result<SmokeHead, E> {
        Ok(SmokeHead::default())
    }

    fn object<A: MapAccess<'de>>(self, mut fields: A) -> Result<SmokeHead, A::Error> {
        let mut head = SmokeHead::default();
        while let Some(field) = fields.next_key::<String>()? {
            let list = ["passes", "failures"].into_iter().find(|list| *list == field);
            if let Some(list) = list {
                if !fields.next_value_seed(FoldSeed(rows_of(self.0, list)))? {
                    self.0.skip(list.to_owned(), "not an array".to_owned());
                }
                continue;
            }
            match &*field {
                "metadata" => {
                    let [version, kind] =
                        fields.next_value_seed(FoldSeed(Fields(["version", "processor_type"])))?;
                    (head.version, head.processor_type) = (version.text(), kind.text());
                }
                "summary" => {
                    let [failures] = fields.next_value_seed(FoldSeed(Fields(["parse_failures"])))?;
                    head.parse_failures = failures.count();
                }
                "num_passed" => head.num_passed = fields.next_value_seed(FoldSeed(OWN))?.count(),
                "num_failed" => head.num_failed = fields.next_value_seed(FoldSeed(OWN))?.count(),
                _ => _ = fields.next_value::<IgnoredAny>()?,
            }
        }
        Ok(head)
    }
}

/// Reads some fields of an object; the fields are empty for any other value.
struct Fields<const N: usize>([&'static str; N]);

impl<'de, const N: usize> JsonFold<'de> for Fields<N> {
    type Value = [Read; N];

    fn part<E>(self, _: JsonPart<'_>) -> Result<[Read; N], E> {
        Ok(self.0.map(|_| Read::Other))
    }

    fn object<A: MapAccess<'de>>(self, mut fields: A) -> Result<[Read; N], A::Error> {
        let mut found = self.0.map(|_| Read::Other);
        while let Some(name) = fields.next_key::<String>()? {
            let read = fields.next_value_seed(FoldSeed(OWN))?;
            if let Some(at) = self.0.iter().position(|known| *known == name) {
                found[at] = read;
            }
        }
        Ok(found)
    }
}
