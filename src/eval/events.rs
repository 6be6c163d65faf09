//! The events of a trace, summed as they are read.

use std::collections::BTreeMap;

use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use crate::io::{Folded, JsonFold, JsonPart};

/// The most figures, names and open events that are kept, by their bytes.
const MAX_KEPT_BYTES: usize = 256 << 20;

/// What an entry takes beside its texts.
const ENTRY_BYTES: usize = 64;

/// What is said of a file with more.
pub(super) const TOO_MANY: &str = "holds more figures than fit into memory";

/// Figures by name, in order.
pub(super) type Figures = Vec<(String, f64)>;

/// What is kept, against [`MAX_KEPT_BYTES`].
#[derive(Default)]
pub(super) struct Kept(usize);

impl Kept {
    /// Counts an entry.
    pub(super) fn add<E: serde::de::Error>(&mut self, texts: &[&str]) -> Result<(), E> {
        self.0 += ENTRY_BYTES + texts.iter().map(|text| text.len()).sum::<usize>();
        if self.0 > MAX_KEPT_BYTES { Err(E::custom(TOO_MANY)) } else { Ok(()) }
    }
}

/// Seconds and number of the events of a name.
type Sums = BTreeMap<String, (f64, u64)>;

/// Category, name and begin, in microseconds, of an event.
type Begun = (String, String, f64);

/// Seconds and events of each name, by category; complete events (`X`) and pairs of begin and end (`B`, `E`).
///
/// Nested events are all counted, as profilers show them: the seconds of a name include what it calls.
#[derive(Default)]
pub(super) struct Trace {
    sums: BTreeMap<String, Sums>,
    /// By process and thread: what is not over.
    open: BTreeMap<(String, String), Vec<Begun>>,
    kept: Kept,
}

impl Trace {
    fn add<E: serde::de::Error>(&mut self, event: Event) -> Result<(), E> {
        let [ph, cat, name, pid, tid, ts, dur] = event.0;
        let (category, name) =
            (cat.map_or_else(|| "events".to_owned(), Scalar::text), name.map(Scalar::text));
        let name = name.unwrap_or_default();
        let row = (pid.map(Scalar::text).unwrap_or_default(), tid.map(Scalar::text).unwrap_or_default());
        let (start, seconds) = (ts.and_then(|ts| ts.number()), dur.and_then(|dur| dur.number()));
        let Some(Scalar::Text(ph)) = ph else { return Ok(()) };
        match (&*ph, start) {
            ("X", _) => self.sum(category, name, seconds.unwrap_or(0.0)),
            ("B", Some(start)) => {
                self.kept.add(&[&category, &name, &row.0, &row.1])?;
                self.open.entry(row).or_default().push((category, name, start));
                Ok(())
            }
            ("E", Some(end)) => match self.open.get_mut(&row).and_then(Vec::pop) {
                Some((category, name, start)) => self.sum(category, name, end - start),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn sum<E: serde::de::Error>(&mut self, category: String, name: String, micros: f64) -> Result<(), E> {
        let known = self.sums.get(&category).is_some_and(|names| names.contains_key(&name));
        if !known {
            self.kept.add(&[&category, &name])?;
        }
        let sum = self.sums.entry(category).or_default().entry(name).or_default();
        sum.0 += micros / 1e6;
        sum.1 += 1;
        Ok(())
    }

    /// The figures of each category.
    pub(super) fn categories(self) -> Vec<(String, Figures)> {
        self.sums.into_iter().map(|(category, names)| (category, by_time(names))).collect()
    }
}

/// Figures of each name, most seconds first.
fn by_time(names: Sums) -> Figures {
    let mut names: Vec<(String, (f64, u64))> = names.into_iter().collect();
    names.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    let figures = |(name, (seconds, events)): (String, (f64, u64))| {
        [(format!("{name}: seconds"), seconds), (format!("{name}: events"), events as f64)]
    };
    names.into_iter().flat_map(figures).collect()
}

/// Reads a list of events; nothing of anything else.
pub(super) struct Events;

impl<'de> JsonFold<'de> for Events {
    type Value = Option<Trace>;

    fn part<E>(self, _: JsonPart<'_>) -> Result<Option<Trace>, E> {
        Ok(None)
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<Option<Trace>, A::Error> {
        let mut trace = Trace::default();
        while let Some(event) = list.next_element_seed(Folded(Event::default()))? {
            trace.add::<A::Error>(event)?;
        }
        Ok(Some(trace))
    }
}

/// The fields of an event that count, in this order.
const FIELDS: [&str; 7] = ["ph", "cat", "name", "pid", "tid", "ts", "dur"];

/// One event, by [`FIELDS`].
#[derive(Default)]
struct Event([Option<Scalar>; FIELDS.len()]);

impl<'de> JsonFold<'de> for Event {
    type Value = Event;

    fn part<E>(self, _: JsonPart<'_>) -> Result<Event, E> {
        Ok(self)
    }

    fn object<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<Event, A::Error> {
        while let Some(field) = fields.next_key::<String>()? {
            match FIELDS.iter().position(|name| *name == field) {
                Some(at) => self.0[at] = Some(fields.next_value_seed(Folded(Any))?),
                None => _ = fields.next_value::<IgnoredAny>()?,
            }
        }
        Ok(self)
    }
}

/// A value of an event.
enum Scalar {
    Text(String),
    /// A number, as it is written.
    Number(f64, String),
    Other(&'static str),
}

impl Scalar {
    fn text(self) -> String {
        match self {
            Scalar::Text(text) | Scalar::Number(_, text) => text,
            Scalar::Other(text) => text.to_owned(),
        }
    }

    fn number(&self) -> Option<f64> {
        if let Scalar::Number(number, _) = self { Some(*number) } else { None }
    }
}

/// Reads any value.
struct Any;

impl<'de> JsonFold<'de> for Any {
    type Value = Scalar;

    fn part<E>(self, part: JsonPart<'_>) -> Result<Scalar, E> {
        Ok(match part {
            JsonPart::Text(text) => Scalar::Text(text.to_owned()),
            JsonPart::Count(number) => Scalar::Number(number as f64, number.to_string()),
            JsonPart::Negative(number) => Scalar::Number(number as f64, number.to_string()),
            JsonPart::Number(number) => Scalar::Number(number, number.to_string()),
            JsonPart::Truth(true) => Scalar::Other("true"),
            JsonPart::Truth(false) => Scalar::Other("false"),
            JsonPart::Null => Scalar::Other("null"),
            JsonPart::List => Scalar::Other("[…]"),
            JsonPart::Object => Scalar::Other("{…}"),
        })
    }
}
