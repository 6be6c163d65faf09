//! Reads the figures of a record or a trace, aggregating while the JSON is read. Other content of a file takes no memory.

use std::collections::BTreeMap;

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess};

use super::figure::{Figures, RetainedSize};
use super::trace::{Events, Trace};
use drift_core::io::{FoldSeed, JsonFold, JsonPart};

/// The fields that identify a run. Runs with the same values are compared.
const KEYS: &[&str] = &["model", "tokenizer", "lp", "placeholder", "device"];

/// The fields that identify the energies of a run, which are beside the runs.
const ENERGY_KEYS: &[&str] = &["file", "model", "lp"];

/// The relevant content of a document.
#[derive(Default)]
pub(super) struct DocumentFigures {
    /// For a record, its runs by name; the inner `None` means that a run is not an object.
    pub runs: NamedRuns,
    /// For a record, its settings: the command, the hashes of its inputs, the protocol, and whether it was interrupted.
    pub settings: Vec<(String, String)>,
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
        let (mut kept, mut energies) = (RetainedSize::default(), None);
        while let Some(field) = fields.next_key::<String>()? {
            match &*field {
                "runs" => found.runs = fields.next_value_seed(FoldSeed(Runs { keys: KEYS }))?,
                "energy" => energies = fields.next_value_seed(FoldSeed(Energies))?,
                "protocol" | "command" | "interrupted" => {
                    let name = if field == "protocol" { String::new() } else { field };
                    let settings = Settings { name, found: &mut found.settings, kept: &mut kept };
                    fields.next_value_seed(FoldSeed(settings))?;
                }
                "provenance" => {
                    let inputs = Inputs { found: &mut found.settings, kept: &mut kept };
                    fields.next_value_seed(FoldSeed(inputs))?;
                }
                "traceEvents" => found.trace = fields.next_value_seed(FoldSeed(Events))?,
                _ => _ = fields.next_value::<IgnoredAny>()?,
            }
        }
        if let Some(Some(runs)) = &mut found.runs {
            let energies = energies.flatten().into_iter().flatten();
            runs.extend(energies.map(|(name, figures)| (format!("energy of {name}"), figures)));
        }
        Ok(found)
    }
}

/// The runs of a record by name, with their figures; the inner `None` means that one is no object.
type NamedRuns = Option<Option<Vec<(String, Figures)>>>;

/// Reads the energies of a record, which has those of each run in a list.
struct Energies;

impl<'de> JsonFold<'de> for Energies {
    type Value = NamedRuns;

    fn part<E>(self, _: JsonPart<'_>) -> Result<NamedRuns, E> {
        Ok(None)
    }

    fn object<A: MapAccess<'de>>(self, mut fields: A) -> Result<NamedRuns, A::Error> {
        let mut found = None;
        while let Some(field) = fields.next_key::<String>()? {
            match &*field {
                "files" => found = fields.next_value_seed(FoldSeed(Runs { keys: ENERGY_KEYS }))?,
                _ => _ = fields.next_value::<IgnoredAny>()?,
            }
        }
        Ok(found)
    }
}

/// Reads the runs of a record with all their numbers. If a name occurs more than once, the repetitions are numbered.
struct Runs {
    /// The fields that identify a run.
    keys: &'static [&'static str],
}

impl<'de> JsonFold<'de> for Runs {
    type Value = NamedRuns;

    fn part<E>(self, _: JsonPart<'_>) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let (mut kept, mut runs, mut are_objects) = (RetainedSize::default(), Vec::new(), true);
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        loop {
            let values = vec![None; self.keys.len()];
            let mut run = Run { keys: self.keys, values, figures: Vec::new(), kept: &mut kept };
            let Some(is_object) = list.next_element_seed(FoldSeed(&mut run))? else { break };
            are_objects &= is_object;
            let parts: Vec<&str> = run.values.iter().filter_map(Option::as_deref).collect();
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
    /// The fields that identify it.
    keys: &'static [&'static str],
    /// Their values.
    values: Vec<Option<String>>,
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
            let at = self.keys.iter().position(|key| *key == field);
            let text = fields.next_value_seed(FoldSeed(Flat { name: field, run: self }))?;
            if let (Some(at), Some(text)) = (at, text) {
                self.kept.add::<A::Error>(&[&text])?;
                self.values[at] = Some(text);
            }
        }
        Ok(true)
    }
}

/// The lists whose items are figures: at thresholds and at ranks, which are the first number of each item.
const LISTS: [&str; 3] = ["thresholds", "hits.at", "clusters.thresholds"];

/// Reads a value of a run. Numbers become figures, with dots between levels in their names. Other lists than [`LISTS`] are ignored, since
/// they are distributions and examples. Returns the text if the value is one.
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

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<Option<String>, A::Error> {
        if !LISTS.contains(&&*self.name) {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(None);
        }
        while list.next_element_seed(FoldSeed(ListItem { name: &self.name, run: &mut *self.run }))?.is_some()
        {
        }
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

/// Reads an item of one of the [`LISTS`]. Its first number is a part of the names of its figures: `thresholds.0.75.cov_r.mean`.
struct ListItem<'r, 'k> {
    name: &'r str,
    run: &'r mut Run<'k>,
}

impl<'de> JsonFold<'de> for ListItem<'_, '_> {
    type Value = ();

    fn part<E>(self, _: JsonPart<'_>) -> Result<(), E> {
        Ok(())
    }

    fn object<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        if fields.next_key::<String>()?.is_none() {
            return Ok(());
        }
        let at = fields.next_value_seed(FoldSeed(Scalar))?.unwrap_or_default();
        while let Some(field) = fields.next_key::<String>()? {
            let name = format!("{}.{at}.{field}", self.name);
            fields.next_value_seed(FoldSeed(Flat { name, run: &mut *self.run }))?;
        }
        Ok(())
    }
}

/// Reads a text, a number or a truth value as text.
struct Scalar;

impl<'de> JsonFold<'de> for Scalar {
    type Value = Option<String>;

    fn part<E>(self, part: JsonPart<'_>) -> Result<Option<String>, E> {
        Ok(match part {
            JsonPart::Text(text) => Some(text.to_owned()),
            JsonPart::Count(number) => Some(number.to_string()),
            JsonPart::Negative(number) => Some(number.to_string()),
            JsonPart::Number(number) => Some(number.to_string()),
            JsonPart::Truth(truth) => Some(truth.to_string()),
            JsonPart::Null | JsonPart::List | JsonPart::Object => None,
        })
    }
}

/// Reads the inputs of a record: the SHA-256 by the name of each.
struct Inputs<'f> {
    found: &'f mut Vec<(String, String)>,
    kept: &'f mut RetainedSize,
}

impl<'de> JsonFold<'de> for Inputs<'_> {
    type Value = ();

    fn part<E>(self, _: JsonPart<'_>) -> Result<(), E> {
        Ok(())
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list
            .next_element_seed(FoldSeed(Inputs { found: &mut *self.found, kept: &mut *self.kept }))?
            .is_some()
        {}
        Ok(())
    }

    fn object<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let [mut name, mut hash] = [None, None];
        while let Some(field) = fields.next_key::<String>()? {
            match &*field {
                "inputs" => {
                    let inputs = Inputs { found: &mut *self.found, kept: &mut *self.kept };
                    fields.next_value_seed(FoldSeed(inputs))?;
                }
                "name" => name = fields.next_value_seed(FoldSeed(Scalar))?,
                "sha256" => hash = fields.next_value_seed(FoldSeed(Scalar))?,
                _ => _ = fields.next_value::<IgnoredAny>()?,
            }
        }
        if let (Some(name), Some(hash)) = (name, hash) {
            let name = format!("SHA-256 of {name}");
            self.kept.add(&[&name, &hash])?;
            // Files of several folders may have one name.
            let count = self.found.iter().filter(|(known, _)| is_called(known, &name)).count();
            let name = if count > 0 { format!("{name} ({})", count + 1) } else { name };
            self.found.push((name, hash.chars().take(12).collect()));
        }
        Ok(())
    }
}

/// Returns whether a setting has a name, or is a further one of this name.
fn is_called(setting: &str, name: &str) -> bool {
    setting.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
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
        let Some(text) = Scalar.part(part)? else { return Ok(()) };
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
