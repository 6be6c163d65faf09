//! Texts that are handed over as soon as they are finished: a run that is cut short loses no more than what it was writing.

use super::{BatchSeconds, GeneratedText, Resampled, Timing, WorkCounts};
use drift_core::error::Result;

/// Takes what is finished while the rest is written.
pub trait TextSink: Send {
    /// Takes what is new since the last call; groups of resampled texts come with their texts.
    ///
    /// # Errors
    /// If it cannot be kept: generation then stops.
    fn keep(&mut self, news: &TextDelta<'_>) -> Result<()>;
}

/// Keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSink;

impl TextSink for NoSink {
    fn keep(&mut self, _: &TextDelta<'_>) -> Result<()> {
        Ok(())
    }
}

/// What is new since the last time.
#[derive(Debug, Clone, Copy)]
pub struct TextDelta<'g> {
    /// Finished texts.
    pub texts: &'g [GeneratedText],
    /// Finished groups of resampled texts.
    pub groups: &'g [Resampled],
    /// The work done meanwhile, those of finished texts' tokens apart.
    pub counts: WorkCounts,
    /// The time that it took.
    pub timing: Timing,
    /// Batches that are over.
    pub batches: &'g [BatchSeconds],
}

/// How much of a run was told already.
#[derive(Default)]
pub(super) struct SentSoFar {
    texts: usize,
    groups: usize,
    batches: usize,
    counts: WorkCounts,
    timing: Timing,
}

impl SentSoFar {
    /// Tells what is new of a whole run, if a text is; at the end whatever there is.
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
