//! The stored parts of one run: its texts and their cost.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use super::finished::PartCost;
use super::text_seconds::{FinishTimes, TextPlace, TextSeconds};
use crate::generate::{GeneratedText, GenerationResult, ResampledGroup, SelfCheck, Verdict};
use drift_core::{Error, Result};

/// The stored parts of a run.
#[derive(Debug, Default)]
pub(crate) struct KeptRun {
    /// The texts, in any order.
    pub(crate) texts: Vec<GeneratedText>,
    /// The groups of texts that were drawn together, with `--resample`.
    pub(crate) groups: Vec<ResampledGroup>,
    /// The seconds and counts of all parts.
    pub(crate) spent: PartCost,
    /// When the texts finished.
    times: FinishTimes,
    /// The last self-check, or the first one that did not pass.
    check: Option<SelfCheck>,
}

impl KeptRun {
    /// Returns the finished generations of each molecule, sorted.
    pub(crate) fn done(&self) -> BTreeMap<usize, Vec<usize>> {
        let mut done: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for text in &self.texts {
            done.entry(text.prompt).or_default().push(text.generation);
        }
        done.values_mut().for_each(|generations| generations.sort_unstable());
        done
    }

    /// Counts the cost of texts that finished together; there may be none.
    pub(crate) fn spend(&mut self, texts: Vec<TextPlace>, spent: PartCost) {
        self.times.add(texts, TextSeconds { wall: spent.seconds(), cpu: spent.cpu_seconds });
        self.spent.add(spent);
    }

    /// Returns the share of each text in the time of the run.
    pub(crate) fn text_seconds(&self) -> BTreeMap<TextPlace, TextSeconds> {
        self.times.shares(&self.texts.iter().map(|text| (text.prompt, text.generation)).collect())
    }

    /// Takes the texts of the run as if they had been generated at once. What else was spent stays in `spent`.
    pub(crate) fn generated(&mut self) -> GenerationResult {
        let (samples, resampled) = (take(&mut self.texts), take(&mut self.groups));
        let PartCost { counts, timing, .. } = self.spent;
        let (batches, self_check) = (take(&mut self.spent.batches), self.check.take());
        let generated = GenerationResult {
            samples,
            counts,
            timing,
            resampled,
            batches,
            self_check,
            ..GenerationResult::default()
        };
        generated.settled()
    }

    /// Stores the result of a self-check. Once one has not passed, it is kept.
    pub(crate) fn take_check(&mut self, check: SelfCheck) {
        if self.check.as_ref().is_none_or(|known| known.verdict == Verdict::Passed) {
            self.check = Some(check);
        }
    }

    /// If texts or groups occur twice, keeps the later ones. A group whose end was not written is drawn again, and the texts of its
    /// first drawing are still in the journal.
    pub(crate) fn keep_latest(&mut self) {
        let texts = take(&mut self.texts).into_iter().map(|text| ((text.prompt, text.generation), text));
        self.texts = texts.collect::<BTreeMap<_, _>>().into_values().collect();
        let groups = take(&mut self.groups).into_iter().map(|group| ((group.prompt, group.first), group));
        self.groups = groups.collect::<BTreeMap<_, _>>().into_values().collect();
    }

    /// Adds the parts of another shard.
    ///
    /// # Errors
    /// If a text is contained in both.
    pub(crate) fn join(&mut self, mut more: KeptRun) -> Result<()> {
        let known: BTreeSet<_> = self.texts.iter().map(|text| (text.prompt, text.generation)).collect();
        if let Some(text) = more.texts.iter().find(|text| known.contains(&(text.prompt, text.generation))) {
            return Err(held_twice(text.prompt));
        }
        self.texts.append(&mut more.texts);
        self.groups.append(&mut more.groups);
        self.spent.add(more.spent);
        self.times.join(more.times);
        more.check.into_iter().for_each(|check| self.take_check(check));
        Ok(())
    }

    /// Adds generated texts; their cost is already counted.
    pub(crate) fn take(&mut self, generated: &mut GenerationResult) {
        self.texts.append(&mut generated.samples);
        self.groups.append(&mut generated.resampled);
    }

    /// Removes texts of unfinished groups, which are drawn together again.
    pub(crate) fn forget_parts_of_groups(&mut self) {
        let whole: BTreeSet<(usize, usize)> = self
            .groups
            .iter()
            .flat_map(|group| {
                (group.first..group.first + group.draws).map(|generation| (group.prompt, generation))
            })
            .collect();
        self.texts.retain(|text| whole.contains(&(text.prompt, text.generation)));
    }
}

/// Returns the error for two shards that contain the same work.
pub(crate) fn held_twice(molecule: usize) -> Error {
    let problem = format!("contains what another shard contains of molecule {}", molecule + 1);
    Error::input("the work", problem, "give each shard once")
}
