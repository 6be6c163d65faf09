//! Reads the figures of a record or a trace, aggregating while the JSON is read. Other content of a file takes no memory.

use std::collections::BTreeMap;

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess};

use super::figure::{Figures, RetainedSize};
use super::trace::{Events, Trace};
use drift_core::io::{FoldSeed, JsonFold, JsonPart};

/// The fields that identify a run. Runs with the same values are compared.
const KEYS: [&str; 5] = ["model", "tokenizer", "lp", "placeholder", "device"];

/// The relevant content of a document.
#[derive(Default)]
pub(super) struct DocumentFigures {
    /// For a record, its runs by name; the inner `None` means that a run is not an object.
    pub runs: Option<Option<Vec<(String, Figures)>>>,
    /// For a record, the settings of its protocol.
    pub protocol: Vec<(String, String)>,
    /// For a trace, its events.
    pub trace: Option<Box<Trace>>,
}

/// Reads a whole document, which is an object with `runs` or `traceEvents`, or an array of events.
pub(super) struct Document;

impl<'de> JsonFold<'de> for Document {
    type Value = DocumentFigures;

    fn part<E>(self, _: JsonPart<'_>) -> Result<DocumentFigures, E> {
        Ok(DocumentFigures::default())
    }

    fn list<A: SeqAccess<'de>>(self, events: A) -> Result<DocumentFigures, A::Error> {
        Ok(DocumentFigures { trace: Events.list(events)?, ..DocumentFigures::default() })
    }

    fn object<A: MapAccess<'de>>(self, mut fields: A) -> Result<DocumentFigures, A::Error> {
        let mut found = DocumentFigures::default();
        while let Some(field) = fields.next_key::<String>()? {
            match &*field {
                "runs" => found.runs = fields.next_value_seed(FoldSeed(Runs))?,
                "protocol" => {
                    let mut kept = RetainedSize::default();
                    let settings =
                        Settings { name: String::new(), found: &mut found.protocol, kept: &mut kept };
                    fields.next_value_seed(FoldSeed(settings))?;
                }
                "traceEvents" => found.trace = fields.next_value_seed(FoldSeed(Events))?,
                _ => _ = fields.next_value::<IgnoredAny>()?,
            }
        }
        Ok(found)
    }
}

/// Reads the runs of a record with all their numbers. If a name occurs more than once, the repetitions are numbered.
struct Runs;

impl<'de> JsonFold<'de> for Runs {
    type Value = Option<Option<Vec<(String, Figures)>>>;

    fn part<E>(self, _: JsonPart<'_>) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let (mut kept, mut runs, mut are_objects) = (RetainedSize::default(), Vec::new(), true);
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        loop {
            let mut run = Run { keys: Default::default(), figures: Vec::new(), kept: &mut kept };
            let Some(is_object) = list.next_element_seed(FoldSeed(&mut run))? else { break };
            are_objects &= is_object;
            let parts: Vec<&str> = run.keys.iter().filter_map(Option::as_deref).collect();
            let (mut name, figures) = (parts.join(", "), std::mem::take(&mut run.figures));
            kept.add::<A::Error>(&[&name])?;
            let count = seen.entry(name.clone()).or_default();
            // Runs are matched by name, so a second run of the same name would never be found.
            *count += 1;
            if *count > 1 {
                name.push_str(&format!(" ({count})"));
            }
            runs.push((name, figures));
        }
        Ok(Some(are_objects.then_some(runs)))
    }
}

/// A run while it is read.
struct Run<'k> {
    /// The values of the fields in [`KEYS`].
    keys: [Option<String>; KEYS.len()],
    figures: Figures,
    kept: &'k mut RetainedSize,
}

impl<'de> JsonFold<'de> for &mut Run<'_> {
    type Value = bool;

    fn part<E>(self, _: JsonPart<'_>) -> Result<bool, E> {
        Ok(false)
    }

    fn object<A: MapAccess<'de>>(self, mut fields: A) -> Result<bool, A::Error> {
        while let Some(field) = fields.next_key::<String>()? {
            let at = KEYS.iter().position(|key| *key == field);
            let text = fields.next_value_seed(FoldSeed(Flat { name: field, run: self }))?;
            if let (Some(at), Some(text)) = (at, text) {
                self.kept.add::<A::Error>(&[&text])?;
                self.keys[at] = Some(text);
            }
        }
        Ok(true)
    }
}

/// Reads a value of a run. Numbers become figures, with dots between levels in their names. Lists are ignored, since they are
/// distributions and examples. Returns the text if the value is one.
struct Flat<'r, 'k> {
    name: String,
    run: &'r mut Run<'k>,
}

impl<'de> JsonFold<'de> for Flat<'_, '_> {
    type Value = Option<String>;

    fn part<E: Error>(self, part: JsonPart<'_>) -> Result<Option<String>, E> {
        let number = match part {
            JsonPart::Text(text) => return Ok(Some(text.to_owned())),
            JsonPart::Count(number) => number as f64,
            JsonPart::Negative(number) => number as f64,
            JsonPart::Number(number) => number,
            JsonPart::Truth(_) | JsonPart::Null | JsonPart::List | JsonPart::Object => return Ok(None),
        };
        self.run.kept.add(&[&self.name])?;
        self.run.figures.push((self.name, number));
        Ok(None)
    }

    fn object<A: MapAccess<'de>>(self, mut fields: A) -> Result<Option<String>, A::Error> {
        while let Some(field) = fields.next_key::<String>()? {
            let name = format!("{}.{field}", self.name);
            fields.next_value_seed(FoldSeed(Flat { name, run: &mut *self.run }))?;
        }
        Ok(None)
    }
}

/// Reads the settings of a protocol as text, with dots between levels in their names. Lists are ignored: they tell what was found.
struct Settings<'f> {
    /// Empty for the protocol itself.
    name: String,
    found: &'f mut Vec<(String, String)>,
    kept: &'f mut RetainedSize,
}

impl<'de> JsonFold<'de> for Settings<'_> {
    type Value = ();

    fn part<E: Error>(self, part: JsonPart<'_>) -> Result<(), E> {
        let text = match part {
            JsonPart::Text(text) => text.to_owned(),
            JsonPart::Count(number) => number.to_string(),
            JsonPart::Negative(number) => number.to_string(),
            JsonPart::Number(number) => number.to_string(),
            JsonPart::Truth(truth) => truth.to_string(),
            JsonPart::Null | JsonPart::List | JsonPart::Object => return Ok(()),
        };
        self.kept.add(&[&self.name, &text])?;
        self.found.push((self.name, text));
        Ok(())
    }

    fn object<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(field) = fields.next_key::<String>()? {
            let name = if self.name.is_empty() { field } else { format!("{}.{field}", self.name) };
            fields.next_value_seed(FoldSeed(Settings {
                name,
                found: &mut *self.found,
                kept: &mut *self.kept,
            }))?;
        }
        Ok(())
    }
}
