//! Collects the events of a trace while they are read.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde::de::SeqAccess;

use super::busy::Busy;
use super::calls::is_attention;
use super::category::Category;
use super::event::{Event, Micros};
use super::names::Names;
use super::nesting::Nesting;
use super::rows::Rows;
use crate::compare::figure::RetainedSize;
use drift_core::io::{FoldSeed, JsonFold, JsonPart};

/// The numbers of used and unused events in a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct TraceEvents {
    /// Events with a begin and an end, from which all figures are computed.
    pub timed: u64,
    /// Events without a duration: names of rows, flows, counters and marks.
    pub untimed: u64,
    /// Unusable events, by the reason.
    pub left_out: BTreeMap<&'static str, u64>,
}

/// The collected data of a trace, from complete events (`X`) and from pairs of begin and end (`B`, `E`).
#[derive(Default)]
pub(in crate::compare) struct Trace {
    pub(super) names: Names,
    pub(super) events: TraceEvents,
    /// The first begin and the last end in nanoseconds, of all events except those about the recording itself.
    pub(super) span: Option<(i64, i64)>,
    /// Threads and streams.
    rows: Rows,
    /// The first begin and the last end on each thread.
    pub(super) threads: BTreeMap<u32, (i64, i64)>,
    pub(super) streams: BTreeSet<u32>,
    devices: Rows,
    pub(super) device_names: Vec<String>,
    /// The busy times by device.
    pub(super) busy: Busy,
    /// The times in operators, by thread.
    pub(super) operators: Busy,
    pub(super) attention: Nesting,
    pub(super) annotations: Nesting,
    pub(super) device_annotations: Nesting,
    /// The events that no profiler wrote.
    pub(super) foreign: Nesting,
    /// The events that have begun and not ended, by process and thread.
    begun: BTreeMap<[String; 2], Vec<OpenEvent>>,
    kept: RetainedSize,
}

/// An event that has begun.
struct OpenEvent {
    category: String,
    name: String,
    device: String,
    /// The begin in nanoseconds.
    start: i64,
}

impl Trace {
    fn add<E: serde::de::Error>(&mut self, event: &Event) -> Result<(), E> {
        let added = match event.phase.as_str() {
            "X" => self.complete(event),
            "B" => self.begin(event),
            "E" => self.end(event),
            "" => Ok(Err("without a type")),
            // Names of rows, flows, counters, marks.
            _ => {
                self.events.untimed += 1;
                return Ok(());
            }
        };
        match added? {
            Ok(()) => {}
            Err(problem) => self.leave_out(problem, 1),
        }
        Ok(())
    }

    fn leave_out(&mut self, problem: &'static str, events: u64) {
        if events > 0 {
            *self.events.left_out.entry(problem).or_default() += events;
        }
    }

    fn complete<E: serde::de::Error>(&mut self, event: &Event) -> AddedEvent<E> {
        let (start, duration) = match (event.start.nanoseconds(), event.duration) {
            (Err(problem), _) => return Ok(Err(problem)),
            (_, Micros::Missing) => return Ok(Err("without a duration")),
            (Ok(start), duration) => match duration.nanoseconds() {
                Err(problem) => return Ok(Err(problem)),
                Ok(duration) => (start, duration),
            },
        };
        let (names, row) = ([category(event), &event.name], [&*event.process, &event.thread]);
        self.timed(names, row, &event.device, (start, start.saturating_add(duration)))
    }

    fn begin<E: serde::de::Error>(&mut self, event: &Event) -> AddedEvent<E> {
        let start = match event.start.nanoseconds() {
            Ok(start) => start,
            Err(problem) => return Ok(Err(problem)),
        };
        let row = [event.process.clone(), event.thread.clone()];
        let (category, name, device) = (category(event).to_owned(), event.name.clone(), event.device.clone());
        self.kept.add(&[&category, &name, &device, &row[0], &row[1]])?;
        self.begun.entry(row).or_default().push(OpenEvent { category, name, device, start });
        Ok(Ok(()))
    }

    fn end<E: serde::de::Error>(&mut self, event: &Event) -> AddedEvent<E> {
        let end = match event.start.nanoseconds() {
            Ok(end) => end,
            Err(problem) => return Ok(Err(problem)),
        };
        let row = [event.process.clone(), event.thread.clone()];
        let Some(begun) = self.begun.get_mut(&row).and_then(Vec::pop) else {
            return Ok(Err("that end without a begin"));
        };
        let row = [row[0].as_str(), &row[1]];
        self.timed([&begun.category, &begun.name], row, &begun.device, (begun.start, end))
    }

    /// Counts an event that has a begin and an end.
    fn timed<E: serde::de::Error>(
        &mut self,
        names: [&str; 2],
        row: [&str; 2],
        device: &str,
        (start, end): (i64, i64),
    ) -> AddedEvent<E> {
        if end < start {
            return Ok(Err("with a negative duration"));
        }
        if end > super::event::LAST {
            return Ok(Err("with a time out of range"));
        }
        let (name, category) = self.names.add(names, end - start, &mut self.kept)?;
        self.events.timed += 1;
        if category != Category::Recording {
            widen(self.span.get_or_insert((start, end)), start, end);
        }
        let id = self.rows.id(row, &mut self.kept)?;
        // Names are limited by their total bytes, so there are fewer than 2^32.
        let place = name as u32;
        match category {
            Category::Kernel | Category::Memcpy | Category::Memset => {
                // If `args` names no device, the process of the row is the device.
                let device = if device.is_empty() { row[0] } else { device };
                let key = self.devices.id([device, ""], &mut self.kept)?;
                if key as usize == self.device_names.len() {
                    self.device_names.push(device.to_owned());
                }
                self.busy.add(key, start, end);
                self.streams.insert(id);
            }
            Category::Operator => {
                self.operators.add(id, start, end);
                if is_attention(names[1]) {
                    self.attention.add(id, place, start, end);
                }
            }
            Category::Annotation => self.annotations.add(id, place, start, end),
            Category::DeviceAnnotation => self.device_annotations.add(id, place, start, end),
            Category::Foreign => self.foreign.add(id, place, start, end),
            Category::Runtime | Category::Recording | Category::Other => {}
        }
        if let Category::Operator | Category::Annotation | Category::Runtime | Category::Foreign = category {
            widen(self.threads.entry(id).or_insert((start, end)), start, end);
        }
        Ok(Ok(()))
    }

    /// Counts events that began and never ended as unusable too.
    fn close(&mut self) {
        let unfinished = self.begun.values().map(|begun| begun.len() as u64).sum();
        self.begun.clear();
        self.leave_out("that begin without an end", unfinished);
    }
}

/// Nothing, or the reason why an event is unusable; an outer error ends the reading.
type AddedEvent<E> = Result<Result<(), &'static str>, E>;

/// Returns the category of an event; events without one get a category of their own.
fn category(event: &Event) -> &str {
    if event.category.is_empty() { "events" } else { &event.category }
}

fn widen(span: &mut (i64, i64), start: i64, end: i64) {
    *span = (span.0.min(start), span.1.max(end));
}

/// Reads a list of events; reads nothing from any other value.
pub(in crate::compare) struct Events;

impl<'de> JsonFold<'de> for Events {
    type Value = Option<Box<Trace>>;

    fn part<E>(self, _: JsonPart<'_>) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let (mut trace, mut event) = (Box::new(Trace::default()), Event::default());
        loop {
            event.clear();
            match list.next_element_seed(FoldSeed(&mut event))? {
                None => break,
                Some(true) => trace.add::<A::Error>(&event)?,
                Some(false) => trace.leave_out("that are not objects", 1),
            }
        }
        trace.close();
        Ok(Some(trace))
    }
}
