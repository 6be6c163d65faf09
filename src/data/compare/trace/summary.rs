//! The sums of a trace that the tables need.

use std::collections::{BTreeMap, BTreeSet};

use super::busy::{BusySpan, BusyTimes};
use super::calls::{Call, STEP, is_attention, phase};
use super::category::Category;
use super::kernels;
use super::kinds::DeviceKind;
use super::names::Entry;
use super::nesting::Nested;
use super::read::{Trace, TraceEvents};
use crate::compare::figure::Figures;

/// The number and total nanoseconds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sum {
    pub events: u64,
    pub nanoseconds: u128,
}

impl Sum {
    pub(super) fn seconds(self) -> f64 {
        self.nanoseconds as f64 / 1e9
    }
}

/// The times of an annotation in nanoseconds.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Phase {
    pub calls: u64,
    /// The time including nested annotations.
    pub total: i128,
    /// The time without nested annotations; `None` if there were too many to separate them.
    pub own: Option<i128>,
    /// The time on the device; `None` if the annotation does not appear there.
    pub device: Option<i128>,
}

/// The sums of a trace.
#[derive(Default)]
pub(in crate::compare) struct Summary {
    pub(in crate::compare) events: TraceEvents,
    /// The seconds and events of each name, by category as written in the file.
    pub(in crate::compare) figures: Vec<(String, Figures)>,
    /// The time from the first begin to the last end, in nanoseconds.
    pub(super) span: i64,
    pub(super) threads: u64,
    pub(super) streams: u64,
    /// The sums by category.
    pub(super) categories: BTreeMap<Category, Sum>,
    pub(super) calls: BTreeMap<Call, Sum>,
    /// The launching calls, by name.
    pub(super) launches: BTreeMap<String, Sum>,
    pub(super) operators: BTreeMap<String, Sum>,
    /// The nanoseconds in operators, summed over threads.
    pub(super) in_operators: i128,
    /// The number and nanoseconds of the outermost attention operators; `None` if there were too many to tell.
    pub(super) attention: Option<(u64, i128)>,
    pub(super) kinds: BTreeMap<DeviceKind, Sum>,
    pub(super) attention_kernels: BTreeMap<&'static str, Sum>,
    /// The names of a few kernels that match no rule, most time first.
    pub(super) other_kernels: Vec<String>,
    pub(super) devices: BusyTimes,
    pub(super) device_names: Vec<String>,
    /// The sum of the profiler's steps.
    pub(super) steps: Sum,
    /// The phases by category (empty for annotations) and name.
    pub(super) phases: BTreeMap<(String, String), Phase>,
    /// The nanoseconds of the threads that have phases, from their first event to their last, and how many of these are outside all
    /// phases. `None` if there were too many phases to tell.
    pub(super) phase_time: Option<(i128, i128)>,
}

/// The operators whose sums the tables show.
pub(super) const OPERATORS: [&str; 10] = [
    "aten::cat",
    "aten::stack",
    "aten::copy_",
    "aten::to",
    "aten::_to_copy",
    "aten::contiguous",
    "aten::clone",
    "aten::item",
    "aten::_local_scalar_dense",
    "aten::nonzero",
];

/// The number of names of unknown kernels that are shown.
const OTHER_KERNELS: usize = 3;

impl Sum {
    fn add(&mut self, entry: &Entry) {
        self.events += entry.events;
        self.nanoseconds += entry.nanoseconds;
    }
}

/// Returns the total of some sums.
pub(super) fn all<'s>(sums: impl IntoIterator<Item = &'s Sum>) -> Sum {
    sums.into_iter().fold(Sum::default(), |a, b| Sum {
        events: a.events + b.events,
        nanoseconds: a.nanoseconds + b.nanoseconds,
    })
}

impl Summary {
    /// Computes the sums.
    pub(in crate::compare) fn of(trace: Trace) -> Self {
        let attention = trace.attention.measure().map(|nested| (nested.outermost, nested.covered));
        let in_operators = trace.operators.measure();
        let busy = |occupied: &BusySpan| i128::from(occupied.busy);
        let mut summary = Summary {
            figures: trace.names.figures(),
            events: trace.events,
            span: trace.span.map_or(0, |(start, end)| end - start),
            threads: trace.threads.len() as u64,
            streams: trace.streams.len() as u64,
            in_operators: in_operators.of.iter().flatten().map(busy).sum(),
            attention,
            devices: trace.busy.measure(),
            device_names: trace.device_names,
            ..Summary::default()
        };
        let mut other: Vec<&Entry> = Vec::new();
        for entry in trace.names.entries() {
            summary.count(entry);
            if entry.category == Category::Kernel && kernels::kind(&entry.name) == DeviceKind::OtherKernel {
                other.push(entry);
            }
        }
        other.sort_by(|a, b| b.nanoseconds.cmp(&a.nanoseconds).then_with(|| a.name.cmp(&b.name)));
        summary.other_kernels = other.iter().take(OTHER_KERNELS).map(|entry| entry.name.clone()).collect();
        // In traces without a profiler, such as drift's own, the events of no profiler count as phases.
        let is_profiled = summary.categories.keys().any(|category| *category != Category::Foreign);
        let phases = if is_profiled { trace.annotations } else { trace.foreign };
        let written = trace.names.written_categories();
        let names = PhaseNames { entries: trace.names.entries(), written, is_profiled };
        summary.add_phases(phases.measure(), &names, &trace.threads);
        for (place, time) in trace.device_annotations.measure().unwrap_or_default().of {
            let phase = summary.phases.entry(names.key(place)).or_default();
            phase.device = Some(phase.device.unwrap_or_default() + time.total);
        }
        summary
    }

    /// Adds a name to all sums that it belongs to.
    fn count(&mut self, entry: &Entry) {
        self.categories.entry(entry.category).or_default().add(entry);
        match entry.category {
            Category::Runtime => {
                let Some(call) = Call::from_name(&entry.name) else { return };
                self.calls.entry(call).or_default().add(entry);
                if call == Call::KernelLaunch {
                    self.launches.entry(entry.name.clone()).or_default().add(entry);
                }
            }
            Category::Operator if OPERATORS.contains(&&*entry.name) || is_attention(&entry.name) => {
                self.operators.entry(entry.name.clone()).or_default().add(entry);
            }
            Category::Kernel => {
                let kind = kernels::kind(&entry.name);
                self.kinds.entry(kind).or_default().add(entry);
                if kind == DeviceKind::Attention {
                    let family = kernels::attention_family(&entry.name);
                    self.attention_kernels.entry(family).or_default().add(entry);
                }
            }
            Category::Memcpy => self.kinds.entry(DeviceKind::of_memcpy(&entry.name)).or_default().add(entry),
            Category::Memset => self.kinds.entry(DeviceKind::Memset).or_default().add(entry),
            Category::Annotation if phase(&entry.name) == STEP => self.steps.add(entry),
            _ => {}
        }
    }

    fn add_phases(
        &mut self,
        nested: Option<Nested>,
        names: &PhaseNames,
        threads: &BTreeMap<u32, (i64, i64)>,
    ) {
        let Some(nested) = nested else {
            // Too many to determine the nesting, so only their sums remain.
            let wanted = if names.is_profiled { Category::Annotation } else { Category::Foreign };
            let entries = names.entries.iter().enumerate();
            for (place, entry) in entries.filter(|(_, entry)| entry.category == wanted) {
                let phase = self.phases.entry(names.key(place as u32)).or_default();
                phase.calls += entry.events;
                phase.total += entry.nanoseconds as i128;
            }
            return;
        };
        for (place, time) in nested.of {
            let phase = self.phases.entry(names.key(place)).or_default();
            phase.calls += time.calls;
            phase.total += time.total;
            phase.own = Some(phase.own.unwrap_or_default() + time.own);
        }
        let spans = nested.rows.iter().filter_map(|row| threads.get(row));
        let time = spans.map(|(start, end)| i128::from(end - start)).sum();
        self.phase_time = Some((time, time - nested.covered));
    }

    /// Returns the categories of its phases that are not annotations.
    pub(super) fn phase_categories(&self) -> BTreeSet<&str> {
        let categories = self.phases.keys().map(|(category, _)| category.as_str());
        categories.filter(|category| !category.is_empty()).collect()
    }

    /// Returns whether the trace has any event of a category.
    pub(super) fn has(&self, category: Category) -> bool {
        self.categories.contains_key(&category)
    }

    /// Returns whether anything ran on a device.
    pub(super) fn has_device(&self) -> bool {
        self.categories.keys().any(|category| category.is_device())
    }
}

/// The names of phases.
struct PhaseNames<'t> {
    entries: &'t [Entry],
    written: std::collections::HashMap<usize, &'t str>,
    is_profiled: bool,
}

impl PhaseNames<'_> {
    /// Returns the category (empty for annotations) and the name of a phase.
    fn key(&self, place: u32) -> (String, String) {
        let place = place as usize;
        let category =
            if self.is_profiled { "" } else { self.written.get(&place).copied().unwrap_or_default() };
        (category.to_owned(), phase(&self.entries[place].name).to_owned())
    }
}
