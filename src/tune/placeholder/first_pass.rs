//! A first look at a corpus: its atoms, its dialect, and whether it fits into memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::sample::{Reservoir, key_of_place, key_of_text};
use drift_core::error::{Error, Result};
use drift_core::job::Job;
use drift_core::text::skeleton::atoms;
use drift_data::corpus::{AtomOrder, Conformer, Conformers, Emit, ReadSummary};

/// Corpora of up to this many blocks are kept in memory (about 20 bytes each); larger ones are read again.
const KEPT_BLOCKS: u64 = 4_000_000;

/// Distinct skeletons that tables and templates are checked on.
const SKELETONS: usize = 64;

/// Conformers in which it is shown that no template does without harm.
const FIRST: usize = 200;

/// Conformers that intervals and classes of block are judged on.
const CONFORMERS: usize = 10_000;

/// What the first pass over a corpus found.
pub(super) struct FirstPass {
    /// What was read and skipped.
    pub summary: ReadSummary,
    /// Heavy atoms, one block each.
    pub blocks: u64,
    /// Conformers whose atoms are in file order, for want of a text.
    pub in_file_order: u64,
    /// Every distinct atom, `[C@@H]`.
    pub atoms: BTreeSet<Box<str>>,
    /// A sample of the corpus's distinct skeletons.
    pub skeletons: Vec<Arc<str>>,
    /// The first conformers.
    pub first: Vec<Conformer>,
    /// Which conformers are in the sample.
    pub sample: Sample,
    /// All conformers, if they are few enough.
    kept: Option<Vec<Conformer>>,
}

/// A sample of conformers, by their place in the corpus.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    seed: u64,
    limit: u64,
}

impl Sample {
    /// Whether the conformer at a place is in it.
    pub(super) fn holds(self, place: u64) -> bool {
        key_of_place(self.seed, place) <= self.limit
    }
}

impl FirstPass {
    /// Reads the corpus once; samples are drawn by `seed`.
    ///
    /// # Errors
    /// As [`Conformers::read`].
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
                // The key is of the place alone, so that the sample is the same however the corpus was cut into batches.
                sample.offer(key_of_place(seed, place), ());
                place += 1;
                blocks += conformer.coordinates.len() as u64;
                in_file_order += u64::from(conformer.order == AtomOrder::File);
                // Conformers of one molecule follow each other.
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
                // A pipe that was read to its end has nothing left, which must be said before the second pass begins.
                corpus.can_be_read_again()?;
                // Dropped for good: a part of a corpus is no use to the second pass.
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

    /// The error of a corpus that was not the same again.
    fn changed(&self, again: &ReadSummary) -> Error {
        let pairs = self.summary.inputs.iter().zip(&again.inputs);
        let input =
            // If no input differs in its hash, the number of conformers does, and nothing is to blame but the corpus as a
            // whole.
            pairs.clone().find(|(first, second)| first != second).map(|(first, _)| first.name.as_str());
        let problem = format!(
            "changed while it was read: {} conformers the first time, {} the second",
            self.summary.conformers, again.conformers
        );
        Error::input(
            input.unwrap_or("the corpus"),
            problem,
            "it is read twice: wait until it is completely written",
        )
    }

    /// Hands the corpus out again, from memory or from where it came.
    ///
    /// # Errors
    /// As [`Conformers::read`]; if it is not what the first pass saw.
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
                let emit: &mut Emit<'_> = &mut |batch| each(&batch.conformers);
                // All that was read is compared, hashes among it: what was learned from the first pass would not hold for
                // another corpus.
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
    use drift_core::encoding::Written;
    use drift_data::corpus::Batch;

    /// A corpus that has one conformer more each time.
    struct Growing(AtomicU64);

    impl Conformers for Growing {
        fn read(&self, _: &Job, emit: &mut Emit<'_>) -> Result<ReadSummary> {
            let blocks = 5_000;
            let conformer = Conformer {
                molecule: "C".into(),
                skeleton: "[C]<>".repeat(blocks).into(),
                coordinates: vec![[0; 3]; blocks],
                order: AtomOrder::File,
                written: Written::ANY,
                id: None,
                notes: None,
                pool: None,
            };
            let conformers = KEPT_BLOCKS / blocks as u64 + 1 + self.0.fetch_add(1, Ordering::Relaxed);
            for _ in 0..conformers {
                emit(Batch { conformers: vec![conformer.clone()], ..Batch::default() })?;
            }
            Ok(ReadSummary { conformers, ..ReadSummary::default() })
        }
    }

    #[test]
    fn a_corpus_that_grows_between_the_passes_is_refused() {
        let (corpus, job) = (Growing(AtomicU64::new(0)), Job::default());
        let pass = FirstPass::run(&corpus, 0, &job).unwrap();
        let message = pass.again(&corpus, &job, &mut |_| Ok(())).unwrap_err().to_string();
        assert!(message.contains("changed while it was read: 801 conformers the first time, 802 the second"));
    }
}
