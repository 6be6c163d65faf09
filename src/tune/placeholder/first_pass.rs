//! The first pass over a corpus: finds its atoms and its encoding, and whether it fits into memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::sample::{Reservoir, key_of_place, key_of_text};
use drift_core::text::skeleton::atoms;
use drift_core::{Error, Job, Result};
use drift_data::corpus::{AtomOrder, BatchSink, Conformer, Conformers, ReadSummary};

/// Corpora with up to this many blocks are kept in memory (about 20 bytes each); larger ones are read again.
const KEPT_BLOCKS: u64 = 4_000_000;

/// The number of distinct skeletons on which tables and templates are checked.
const SKELETONS: usize = 64;

/// The number of conformers that are used to show that no template is without harm.
const FIRST: usize = 200;

/// The number of conformers on which intervals and classes of blocks are judged.
const CONFORMERS: usize = 10_000;

/// The result of the first pass over a corpus.
pub(super) struct FirstPass {
    /// What was read and skipped.
    pub summary: ReadSummary,
    /// The number of heavy atoms, each of which has one block.
    pub blocks: u64,
    /// The number of conformers whose atoms are in file order because they have no text.
    pub in_file_order: u64,
    /// Every distinct atom, such as `[C@@H]`.
    pub atoms: BTreeSet<Box<str>>,
    /// A sample of the corpus's distinct skeletons.
    pub skeletons: Vec<Arc<str>>,
    /// The first conformers.
    pub first: Vec<Conformer>,
    /// Which conformers are in the sample.
    pub sample: Sample,
    /// All conformers, if there are few enough.
    kept: Option<Vec<Conformer>>,
}

/// A sample of conformers, identified by their position in the corpus.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    seed: u64,
    limit: u64,
}

impl Sample {
    /// Returns whether the conformer at a position is in the sample.
    pub(super) fn holds(self, place: u64) -> bool {
        key_of_place(self.seed, place) <= self.limit
    }
}

impl FirstPass {
    /// Reads the corpus once. The samples depend on `seed`.
    ///
    /// # Errors
    /// The errors of [`Conformers::read`].
    pub(super) fn run(corpus: &dyn Conformers, seed: u64, job: &Job) -> Result<Self> {
        let mut kept = Some(Vec::new());
        let (mut blocks, mut in_file_order) = (0u64, 0u64);
        let mut found = BTreeSet::new();
        let mut skeletons: Reservoir<Arc<str>> = Reservoir::new(SKELETONS);
        let mut sample = Reservoir::new(CONFORMERS);
        let (mut place, mut first) = (0u64, Vec::new());
        let mut last: Option<Arc<str>> = None;
        let summary = corpus.read(job, &mut |batch| {
            first.extend(batch.conformers.iter().take(FIRST - first.len()).cloned());
            for conformer in &batch.conformers {
                // The key depends only on the position, so that the sample does not depend on how the corpus was split into
                // batches.
                sample.offer(key_of_place(seed, place), ());
                place += 1;
                blocks += conformer.coordinates.len() as u64;
                in_file_order += u64::from(conformer.order == AtomOrder::File);
                // Conformers of one molecule are adjacent.
                if last.as_deref() != Some(&*conformer.skeleton) {
                    last = Some(conformer.skeleton.clone());
                    for atom in atoms(&conformer.skeleton) {
                        if !found.contains(atom) {
                            found.insert(atom.into());
                        }
                    }
                    skeletons.offer(key_of_text(seed, &conformer.skeleton), conformer.skeleton.clone());
                }
            }
            if blocks > KEPT_BLOCKS {
                // A pipe that was read to its end cannot be read again, which must be reported before the second pass begins.
                corpus.can_be_read_again()?;
                // Dropped for good: the second pass cannot use a part of a corpus.
                kept = None;
            }
            if let Some(kept) = &mut kept {
                kept.extend(batch.conformers);
            }
            Ok(())
        })?;
        let skeletons = skeletons.into_items();
        let sample = Sample { seed, limit: sample.limit() };
        Ok(FirstPass { summary, blocks, in_file_order, atoms: found, skeletons, first, sample, kept })
    }

    /// Returns the error for a corpus that differed in the second pass.
    fn changed(&self, again: &ReadSummary) -> Error {
        let pairs = self.summary.inputs.iter().zip(&again.inputs);
        let input =
            // If no input differs in its hash, the number of conformers does, and the error can name only the corpus as a whole.
            pairs.clone().find(|(first, second)| first != second).map(|(first, _)| first.name.as_str());
        let problem = format!(
            "changed while it was read: {} conformers the first time, {} the second",
            self.summary.conformers, again.conformers
        );
        let remedy = "it is read twice: wait until it is completely written";
        Error::input(input.unwrap_or("the corpus"), problem, remedy)
    }

    /// Passes the corpus on again, from memory or from its source.
    ///
    /// # Errors
    /// The errors of [`Conformers::read`], or if the corpus differs from the first pass.
    pub(super) fn again(
        &self,
        corpus: &dyn Conformers,
        job: &Job,
        each: &mut dyn FnMut(&[Conformer]) -> Result<()>,
    ) -> Result<()> {
        match &self.kept {
            Some(kept) => {
                for part in kept.chunks(4_096) {
                    job.check()?;
                    each(part)?;
                }
                Ok(())
            }
            None => {
                let emit: &mut BatchSink<'_> = &mut |batch| each(&batch.conformers);
                // The whole summary is compared, including hashes: results of the first pass would not hold for a different corpus.
                let again = corpus.read(job, emit)?;
                if again == self.summary { Ok(()) } else { Err(self.changed(&again)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use drift_data::corpus::Batch;

    /// A corpus that has one conformer more each time.
    struct GrowingCorpus(AtomicU64);

    impl Conformers for GrowingCorpus {
        fn read(&self, _: &Job, emit: &mut BatchSink<'_>) -> Result<ReadSummary> {
            let blocks = 5_000;
            let conformer = Conformer::new("C".into(), "[C]<>".repeat(blocks).into(), vec![[0; 3]; blocks]);
            let conformers = KEPT_BLOCKS / blocks as u64 + 1 + self.0.fetch_add(1, Ordering::Relaxed);
            for _ in 0..conformers {
                emit(Batch { conformers: vec![conformer.clone()], ..Batch::default() })?;
            }
            Ok(ReadSummary { conformers, ..ReadSummary::default() })
        }
    }

    #[test]
    fn a_corpus_that_grows_between_the_passes_is_refused() {
        let (corpus, job) = (GrowingCorpus(AtomicU64::new(0)), Job::default());
        let pass = FirstPass::run(&corpus, 0, &job).unwrap();
        let message = pass.again(&corpus, &job, &mut |_| Ok(())).unwrap_err().to_string();
        assert!(message.contains("changed while it was read: 801 conformers the first time, 802 the second"));
    }
}
