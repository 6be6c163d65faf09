//! Passes texts on as soon as they are finished, so that an interrupted run loses only the unfinished ones.

use super::{BatchSeconds, GeneratedText, ResampledGroup, Timing, WorkCounts};
use drift_core::Result;

/// A receiver of finished texts during a run.
pub trait TextSink: Send {
    /// Receives the results since the last call. Groups of resampled texts come with their texts.
    ///
    /// # Errors
    /// If they cannot be kept; then generation stops.
    fn keep(&mut self, news: &TextDelta<'_>) -> Result<()>;
}

/// A receiver that keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSink;

impl TextSink for NoSink {
    fn keep(&mut self, _: &TextDelta<'_>) -> Result<()> {
        Ok(())
    }
}

/// The results since the last call.
#[derive(Debug, Clone, Copy)]
pub struct TextDelta<'g> {
    /// Finished texts.
    pub texts: &'g [GeneratedText],
    /// The finished groups of resampled texts.
    pub groups: &'g [ResampledGroup],
    /// The work done since the last call, without the counts of generated and forced tokens.
    pub counts: WorkCounts,
    /// The time since the last call, by phase.
    pub timing: Timing,
    /// The finished batches.
    pub batches: &'g [BatchSeconds],
}

/// How much of a run was passed on already.
#[derive(Default)]
pub(super) struct SentSoFar {
    texts: usize,
    groups: usize,
    batches: usize,
    counts: WorkCounts,
    timing: Timing,
}

impl SentSoFar {
    /// Passes on the new part of a whole run if a text is new, or at the end in any case.
    pub(super) fn tell(
        &mut self,
        whole: TextDelta<'_>,
        keeper: &mut dyn TextSink,
        is_end: bool,
    ) -> Result<()> {
        let TextDelta { texts, groups, counts, timing, batches } = whole;
        if texts.len() == self.texts && !is_end {
            return Ok(());
        }
        keeper.keep(&TextDelta {
            texts: &texts[self.texts..],
            groups: &groups[self.groups..],
            counts: counts.since(&self.counts),
            timing: timing.since(&self.timing),
            batches: &batches[self.batches..],
        })?;
        let (texts, groups, batches) = (texts.len(), groups.len(), batches.len());
        *self = SentSoFar { texts, groups, batches, counts, timing };
        Ok(())
    }
}
