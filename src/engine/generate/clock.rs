//! The time of a generation by phase.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{Options, Traffic, WorkCounts};
use crate::model::Decoder;

/// A time in seconds.
pub(super) type Second = f64;

/// The kinds of work of a step, in the order of the times of [`Timing`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Everything before the first step: compiling the kernels of a device, and allocating its memory.
    Start,
    /// Forward passes over prompts, and copies of their keys and values.
    Prefill,
    /// Forward passes that write text, including the LM head.
    Forward,
    /// Logit processors: masks and states.
    LogitProcessor,
    /// Drawing tokens.
    Sampling,
    /// Everything else.
    Other,
}

drift_core::counters! {
    /// The time of each phase, in seconds.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
    pub struct Timing {
        /// Everything before the first step: compiling the kernels of a device, and allocating its memory.
        #[serde(default)]
        pub start: Second,
        /// Forward passes over prompts, and copies of their keys and values.
        pub prefill: Second,
        /// Forward passes that write text, including the LM head.
        pub forward: Second,
        /// Logit processors: masks and states.
        pub logit_processor: Second,
        /// Drawing tokens.
        pub sampling: Second,
        /// Everything else.
        pub other: Second,
    }
}

impl Timing {
    /// Returns the times in the order of [`Phase`].
    fn each(&mut self) -> [&mut Second; 6] {
        let Timing { start, prefill, forward, logit_processor, sampling, other } = self;
        [start, prefill, forward, logit_processor, sampling, other]
    }

    /// Returns the sum of all phases.
    pub fn total(&self) -> Second {
        self.start + self.prefill + self.forward + self.logit_processor + self.sampling + self.other
    }
}

/// One phase of one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// The phase.
    pub phase: Phase,
    /// The start, in seconds since generation began.
    pub start: Second,
    /// The duration.
    pub duration: Second,
    /// The number of rows of the batch.
    pub rows: usize,
    /// The work of the span's forward passes.
    pub work: WorkCounts,
    /// The least memory traffic and arithmetic of these passes.
    pub traffic: Option<Traffic>,
}

/// The time to finish as many texts as a batch has rows. The last batch of a run may have fewer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BatchSeconds {
    /// Wall-clock seconds.
    pub wall: Second,
    /// CPU seconds, if [`Options::cpu_clock`](super::Options) reports them.
    pub cpu: Option<Second>,
}

/// A function that returns the CPU seconds of this process so far, if they are known.
pub type CpuClock = fn() -> Option<f64>;

/// A stopwatch with a separate time for each phase.
pub(super) struct Clock {
    start: Instant,
    last: Instant,
    pub timing: Timing,
    pub spans: Vec<Span>,
    pub batches: Vec<BatchSeconds>,
    keeps_spans: bool,
    /// The number of texts of a batch, and the number of finished texts of the current one.
    batch: (usize, usize),
    began: (Instant, Option<Second>),
    cpu_clock: Option<CpuClock>,
}

impl Clock {
    pub(super) fn new(options: &Options) -> Self {
        let now = Instant::now();
        Clock {
            start: now,
            last: now,
            timing: Timing::default(),
            spans: Vec::new(),
            batches: Vec::new(),
            keeps_spans: options.trace,
            batch: (options.batch.max(1), 0),
            began: (now, options.cpu_clock.and_then(|clock| clock())),
            cpu_clock: options.cpu_clock,
        }
    }

    /// Begins the first step now: the time before it belongs to no batch.
    pub(super) fn started(&mut self) {
        self.lap(Phase::Start, 0);
        // The same moment as in the lap, so that no time is lost between the two.
        self.began = (self.last, self.cpu_clock.and_then(|clock| clock()));
    }

    /// Counts a finished text.
    pub(super) fn finished(&mut self) {
        self.batch.1 += 1;
        if self.batch.1 == self.batch.0 {
            self.end_batch();
        }
    }

    /// Ends the last batch, which may be incomplete.
    pub(super) fn end_batch(&mut self) {
        if self.batch.1 > 0 {
            let (wall, cpu) = (Instant::now(), self.cpu_clock.and_then(|clock| clock()));
            let spent = self.began.1.zip(cpu).map(|(before, after)| after - before);
            self.batches.push(BatchSeconds { wall: (wall - self.began.0).as_secs_f64(), cpu: spent });
            (self.batch.1, self.began) = (0, (wall, cpu));
        }
    }

    /// Adds the time since the last call to `phase`.
    pub(super) fn lap(&mut self, phase: Phase, rows: usize) {
        let now = Instant::now();
        let duration = (now - self.last).as_secs_f64();
        *self.timing.each()[phase as usize] += duration;
        if self.keeps_spans {
            let start = (self.last - self.start).as_secs_f64();
            let work = WorkCounts::default();
            self.spans.push(Span { phase, start, duration, rows, work, traffic: None });
        }
        self.last = now;
    }

    /// Sets the work of the last forward passes in the trace.
    pub(super) fn worked(&mut self, work: WorkCounts, decoder: &Decoder) {
        // The last span may be of another phase; the passes belong to the last span of forward passes.
        if let Some(span) = self.spans.iter_mut().rev().find(|span| span.phase == Phase::Forward) {
            span.work = work;
            span.traffic = work.traffic(decoder.config(), decoder.device().bytes_per_number());
        }
    }
}
