//! The rows of the tables for one trace.

use super::busy::{BusySpan, GAP_LIMITS};
use super::calls::{Call, is_attention};
use super::category::Category;
use super::kinds::DeviceKind;
use super::summary::{OPERATORS, Sum, Summary, all};

/// A row for one trace: its name and its values.
pub(super) struct SideRow {
    pub name: String,
    /// The names of the values, which include units, and the values; `None` if the trace does not have the data.
    pub values: Vec<(&'static str, Option<f64>)>,
}

/// The keys and titles of the tables, in order.
pub(super) const TABLES: [(&str, &str); 8] = [
    ("run", "Run"),
    ("kernel_launches", "Kernel launches"),
    ("device_time", "Device time by kind"),
    ("attention_calls", "Attention calls"),
    ("copies_and_concatenations", "Elementwise copies and concatenations"),
    ("synchronisation", "Synchronisation"),
    ("device_idle", "Device busy and idle"),
    ("phases", "Phases"),
];

/// Returns the rows of one trace for each of [`TABLES`]. `qualified` says whether the names of phases include their categories.
pub(super) fn rows(summary: &Summary, qualified: bool) -> [Vec<SideRow>; TABLES.len()] {
    [
        run(summary),
        launches(summary),
        device_time(summary),
        attention(summary),
        copies(summary),
        synchronisation(summary),
        device_idle(summary),
        phases(summary, qualified),
    ]
}

fn row(name: impl Into<String>, values: impl IntoIterator<Item = (&'static str, Option<f64>)>) -> SideRow {
    SideRow { name: name.into(), values: values.into_iter().collect() }
}

fn seconds(nanoseconds: i128) -> f64 {
    nanoseconds as f64 / 1e9
}

/// Returns the share of `part` in `whole`, both in the same unit; `None` if `whole` is zero.
fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// Returns a row of number, seconds, mean and share; the values are `None` if the trace cannot have such events.
fn timed(name: impl Into<String>, counted: &'static str, sum: Option<Sum>, whole_seconds: f64) -> SideRow {
    let of = |value: fn(Sum) -> f64| sum.map(value);
    let mean = |sum: Sum| (sum.events > 0).then(|| sum.nanoseconds as f64 / 1e3 / sum.events as f64);
    row(
        name,
        [
            (counted, of(|sum| sum.events as f64)),
            ("seconds", of(Sum::seconds)),
            ("mean_microseconds", sum.and_then(mean)),
            ("share", sum.and_then(|sum| share(sum.seconds(), whole_seconds))),
        ],
    )
}

fn wall(summary: &Summary) -> f64 {
    seconds(summary.span.into())
}

fn run(summary: &Summary) -> Vec<SideRow> {
    let events = &summary.events;
    let operators = summary.categories.get(&Category::Operator);
    let in_operators = operators.map(|_| seconds(summary.in_operators));
    let count = |name: &str, count: u64| row(name, [("count", Some(count as f64))]);
    let steps = summary.steps;
    let step = (steps.events > 0).then(|| steps.seconds() / steps.events as f64);
    vec![
        row("wall span", [("seconds", Some(wall(summary)))]),
        count("profiler steps", steps.events),
        row("mean profiler step", [("seconds", step)]),
        count("threads", summary.threads),
        row("operators", [("count", operators.map(|sum| sum.events as f64))]),
        row("in operators, threads added up", [("seconds", in_operators)]),
        count("devices", summary.device_names.len() as u64),
        count("streams", summary.streams),
        count("timed events", events.timed),
        count("events without a duration", events.untimed),
        count("events left out", events.left_out.values().sum()),
    ]
}

fn launches(summary: &Summary) -> Vec<SideRow> {
    let has_calls = summary.has(Category::Runtime);
    let wall = wall(summary);
    let call = |call: Call| has_calls.then(|| summary.calls.get(&call).copied().unwrap_or_default());
    let launch = |name: &str, sum: Option<Sum>| {
        let mut row = timed(name, "calls", sum, wall);
        row.values.push(("calls_per_second", sum.and_then(|sum| share(sum.events as f64, wall))));
        row
    };
    let mut rows = vec![launch("kernel launches", call(Call::KernelLaunch))];
    rows.extend(summary.launches.iter().map(|(name, sum)| launch(name, Some(*sum))));
    rows.push(launch("graph launches", call(Call::GraphLaunch)));
    let kernels = summary.categories.get(&Category::Kernel).copied();
    rows.push(launch("kernels on devices", kernels.or(summary.has_device().then(Sum::default))));
    rows
}

fn device_time(summary: &Summary) -> Vec<SideRow> {
    let whole = all(summary.kinds.values());
    let whole_seconds = whole.seconds();
    let known = |sum: Sum| summary.has_device().then_some(sum);
    let kind = |(kind, name): (DeviceKind, &str)| {
        let sum = summary.kinds.get(&kind).copied().unwrap_or_default();
        timed(name, "events", known(sum), whole_seconds)
    };
    let mut rows: Vec<SideRow> = DeviceKind::ALL.map(kind).into();
    rows.push(timed("all", "events", known(whole), whole_seconds));
    rows
}

fn attention(summary: &Summary) -> Vec<SideRow> {
    let wall = wall(summary);
    let has_operators = summary.has(Category::Operator);
    let outermost =
        summary.attention.map(|(events, covered)| Sum { events, nanoseconds: covered.unsigned_abs() });
    let mut rows = vec![timed("attention calls", "calls", outermost.filter(|_| has_operators), wall)];
    let operators = summary.operators.iter().filter(|(name, _)| is_attention(name));
    rows.extend(operators.map(|(name, sum)| timed(name, "calls", Some(*sum), wall)));
    let kernels = summary.kinds.get(&DeviceKind::Attention).copied().unwrap_or_default();
    rows.push(timed("attention kernels", "calls", summary.has_device().then_some(kernels), wall));
    rows.extend(summary.attention_kernels.iter().map(|(name, sum)| timed(*name, "calls", Some(*sum), wall)));
    rows
}

fn copies(summary: &Summary) -> Vec<SideRow> {
    let wall = wall(summary);
    let kernels = |name: &str, kind: DeviceKind| {
        let sum = summary.kinds.get(&kind).copied().unwrap_or_default();
        timed(name, "calls", summary.has_device().then_some(sum), wall)
    };
    let mut rows = vec![
        kernels("elementwise copies", DeviceKind::ElementwiseCopy),
        kernels("memcpy device to device", DeviceKind::DeviceToDevice),
        kernels("concatenations", DeviceKind::Concatenation),
    ];
    rows.extend(OPERATORS[..7].iter().map(|name| operator(summary, name, wall)));
    rows
}

/// Returns a row of an operator's calls, including nested events.
fn operator(summary: &Summary, name: &str, wall: f64) -> SideRow {
    let sum = summary.operators.get(name).copied().unwrap_or_default();
    timed(name, "calls", summary.has(Category::Operator).then_some(sum), wall)
}

fn synchronisation(summary: &Summary) -> Vec<SideRow> {
    let wall = wall(summary);
    let has_calls = summary.has(Category::Runtime);
    let sum = |call: Call| summary.calls.get(&call).copied().unwrap_or_default();
    let waits = [Call::DeviceWait, Call::StreamWait, Call::EventWait].map(sum);
    let calls = |name: &str, sum: Sum| timed(name, "calls", has_calls.then_some(sum), wall);
    let mut rows = vec![
        calls("waits for devices", all(&waits)),
        calls("of a device (cudaDeviceSynchronize)", waits[0]),
        calls("of a stream (cudaStreamSynchronize)", waits[1]),
        calls("of an event (cudaEventSynchronize)", waits[2]),
        calls("memcpy calls", sum(Call::Memcpy)),
        calls("memset calls", sum(Call::Memset)),
        calls("memory taken or given back", sum(Call::Allocation)),
    ];
    rows.extend(OPERATORS[7..].iter().map(|name| operator(summary, name, wall)));
    rows
}

fn device_idle(summary: &Summary) -> Vec<SideRow> {
    let devices = summary.device_names.iter().zip(&summary.devices.of);
    let known: Vec<(&String, BusySpan)> =
        devices.filter_map(|(name, occupied)| Some((name, (*occupied)?))).collect();
    let mut rows = Vec::new();
    let every = known.iter().map(|(_, occupied)| *occupied).reduce(added);
    rows.extend(of_device("", every, summary));
    if known.len() > 1 {
        for (name, occupied) in &known {
            let prefix = format!("device {name}: ");
            // Only span, busy and idle time: the gaps of every device would make the table too long.
            rows.extend(of_device(&prefix, Some(*occupied), summary).into_iter().take(3));
        }
    }
    rows
}

fn added(mut a: BusySpan, b: BusySpan) -> BusySpan {
    a.span += b.span;
    a.busy += b.busy;
    a.longest_gap = a.longest_gap.max(b.longest_gap);
    for (gap, more) in a.gaps.iter_mut().zip(b.gaps) {
        *gap = (gap.0 + more.0, gap.1 + more.1);
    }
    a
}

/// Rows of span, busy time, idle time, and gaps by length.
fn of_device(prefix: &str, occupied: Option<BusySpan>, summary: &Summary) -> Vec<SideRow> {
    let time = |value: fn(&BusySpan) -> i64| occupied.as_ref().map(|o| seconds(value(o).into()));
    let span = time(|o| o.span).unwrap_or_default();
    let part = |name: &str, gaps: Option<u64>, value: Option<f64>| {
        let values = [
            ("gaps", gaps.map(|gaps| gaps as f64)),
            ("seconds", value),
            ("share", value.and_then(|value| share(value, span))),
        ];
        row(format!("{prefix}{name}"), values)
    };
    let gaps = |index: usize| occupied.map(|o| o.gaps[index]);
    let limits = GAP_LIMITS.map(|limit| match limit / 1_000 {
        micros if micros < 1_000 => format!("{micros} µs"),
        micros => format!("{} ms", micros / 1_000),
    });
    let mut rows = vec![
        part("from first to last", None, time(|o| o.span)),
        part("busy", None, time(|o| o.busy)),
        part("idle", occupied.map(|o| o.gaps.iter().map(|gap| gap.0).sum()), time(|o| o.span - o.busy)),
    ];
    for index in 0..=GAP_LIMITS.len() {
        let name = match index {
            0 => format!("gaps under {}", limits[0]),
            last if last == GAP_LIMITS.len() => format!("gaps from {} on", limits[last - 1]),
            _ => format!("gaps from {} to {}", limits[index - 1], limits[index]),
        };
        let time = gaps(index).map(|gap| seconds(gap.1.into()));
        rows.push(part(&name, gaps(index).map(|gap| gap.0), time));
    }
    rows.push(part("longest gap", None, time(|o| o.longest_gap)));
    let whole = all(summary.kinds.values()).seconds();
    // The total time of all events minus the time in which any ran; above 0 if streams run at the same time.
    let overlapping = time(|o| o.busy).map(|busy| (whole - busy).max(0.0));
    rows.push(part("at once with other work of the device", None, overlapping));
    rows
}

fn phases(summary: &Summary, qualified: bool) -> Vec<SideRow> {
    let whole = summary.phase_time.map(|(time, _)| seconds(time)).unwrap_or_default();
    let values = |calls: Option<f64>, total: Option<i128>, own: Option<i128>, device: Option<i128>| {
        [
            ("calls", calls),
            ("seconds", total.map(seconds)),
            ("self_seconds", own.map(seconds)),
            ("share", own.and_then(|own| share(seconds(own), whole))),
            ("device_seconds", device.map(seconds)),
        ]
    };
    let mut phases: Vec<_> = summary.phases.iter().collect();
    // Most time first. Phases of equal time stay sorted by name.
    phases.sort_by_key(|(_, phase)| std::cmp::Reverse((phase.own.unwrap_or(phase.total), phase.total)));
    let mut rows: Vec<SideRow> = phases
        .into_iter()
        .map(|((category, name), phase)| {
            let name = if qualified { format!("{category} / {name}") } else { name.clone() };
            row(name, values(Some(phase.calls as f64), Some(phase.total), phase.own, phase.device))
        })
        .collect();
    if !rows.is_empty() {
        let outside = values(None, None, summary.phase_time.map(|time| time.1), None);
        rows.push(row("outside of all phases", outside));
    }
    rows
}
