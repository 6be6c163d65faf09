//! Where the time goes.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{Options, Traffic, WorkCounts};
use crate::model::Decoder;

/// Seconds.
pub(super) type Second = f64;

/// What a step spends time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// What comes before the first step: a device's kernels compiled, its memory taken.
    Start,
    /// Forward passes over prompts, and copies of their keys and values.
    Prefill,
    /// Forward passes that write text, LM head included.
    Forward,
    /// Logit processors: masks and states.
    LogitProcessor,
    /// Drawing tokens.
    Sampling,
    /// Everything else.
    Other,
}

/// Time by phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// What comes before the first step: a device's kernels compiled, its memory taken.
    #[serde(default)]
    pub start: Second,
    /// Forward passes over prompts, and copies of their keys and values.
    pub prefill: Second,
    /// Forward passes that write text, LM head included.
    pub forward: Second,
    /// Logit processors: masks and states.
    pub logit_processor: Second,
    /// Drawing tokens.
    pub sampling: Second,
    /// Everything else.
    pub other: Second,
}

impl Timing {
    /// All of it.
    pub fn total(&self) -> Second {
        self.start + self.prefill + self.forward + self.logit_processor + self.sampling + self.other
    }

    fn each(&mut self) -> [&mut Second; 6] {
        let Timing { start, prefill, forward, logit_processor, sampling, other } = self;
        [start, prefill, forward, logit_processor, sampling, other]
    }

    /// This and more.
    pub fn add(&mut self, mut more: Timing) {
        self.each().into_iter().zip(more.each()).for_each(|(sum, more)| *sum += *more);
    }

    /// What came after `before`, which is a part of this.
    pub(super) fn since(mut self, before: &Timing) -> Timing {
        let mut before = *before;
        self.each().into_iter().zip(before.each()).for_each(|(sum, less)| *sum -= *less);
        self
    }
}

/// One phase of one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// What it was spent on.
    pub phase: Phase,
    /// Since generation began.
    pub start: Second,
    /// How long it took.
    pub duration: Second,
    /// Rows of the batch.
    pub rows: usize,
    /// What its forward passes did.
    pub work: WorkCounts,
    /// What they had to move and compute at least.
    pub traffic: Option<Traffic>,
}

/// What it took to finish as many texts as a batch has rows; the last of a run may be fewer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BatchSeconds {
    /// Seconds of the clock.
    pub wall: Second,
    /// CPU seconds, where [`Options::cpu_clock`](super::Options) tells them.
    pub cpu: Option<Second>,
}

/// CPU seconds of this process so far, where they are known.
pub type CpuClock = fn() -> Option<f64>;

/// A stopwatch with one hand per phase.
pub(super) struct Clock {
    start: Instant,
    last: Instant,
    pub timing: Timing,
    pub spans: Vec<Span>,
    pub batches: Vec<BatchSeconds>,
    keeps_spans: bool,
    /// Texts of a batch, and those of the present one that are finished.
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

    /// The first step may begin: what was before is no time of a batch.
    pub(super) fn started(&mut self) {
        self.lap(Phase::Start, 0);
        // The moment that the lap read, so that no time falls between the two.
        self.began = (self.last, self.cpu_clock.and_then(|clock| clock()));
    }

    /// A text is finished.
    pub(super) fn finished(&mut self) {
        self.batch.1 += 1;
        if self.batch.1 == self.batch.0 {
            self.end_batch();
        }
    }

    /// The last batch is over, though it may not be whole.
    pub(super) fn end_batch(&mut self) {
        if self.batch.1 > 0 {
            let (wall, cpu) = (Instant::now(), self.cpu_clock.and_then(|clock| clock()));
            let spent = self.began.1.zip(cpu).map(|(before, after)| after - before);
            self.batches.push(BatchSeconds { wall: (wall - self.began.0).as_secs_f64(), cpu: spent });
            (self.batch.1, self.began) = (0, (wall, cpu));
        }
    }

    /// Books the time since the last call on `phase`.
    pub(super) fn lap(&mut self, phase: Phase, rows: usize) {
        let now = Instant::now();
        let duration = (now - self.last).as_secs_f64();
        *match phase {
            Phase::Start => &mut self.timing.start,
            Phase::Prefill => &mut self.timing.prefill,
            Phase::Forward => &mut self.timing.forward,
            Phase::LogitProcessor => &mut self.timing.logit_processor,
            Phase::Sampling => &mut self.timing.sampling,
            Phase::Other => &mut self.timing.other,
        } += duration;
        if self.keeps_spans {
            let start = (self.last - self.start).as_secs_f64();
            self.spans.push(Span {
                phase,
                start,
                duration,
                rows,
                work: WorkCounts::default(),
                traffic: None,
            });
        }
        self.last = now;
    }

    /// Says what the forward passes did that were booked last, on a decoder.
    pub(super) fn worked(&mut self, work: WorkCounts, decoder: &Decoder) {
        // What was booked last may be of another phase; the pass is the last forward one.
        if let Some(span) = self.spans.iter_mut().rev().find(|span| span.phase == Phase::Forward) {
            span.work = work;
            span.traffic = Traffic::new(decoder.config(), decoder.device().bytes_per_number(), &work);
        }
    }
}
