//! What is kept of one run: its texts, and what they took.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use super::finished::Spent;
use crate::generate::{Generated, GeneratedText, Resampled, SelfCheck, Verdict};
use drift_core::error::{Error, Result};

/// All texts of a run, and what they took.
pub(super) struct KeptGenerated {
    pub generated: Generated,
    /// Building templates.
    pub templates_seconds: f64,
    /// None on a GPU, or where the system doesn't tell.
    pub cpu_seconds: Option<f64>,
    /// None where the system doesn't tell.
    pub peak_memory_bytes: Option<u64>,
}

/// What is kept of a run.
#[derive(Debug, Default)]
pub(super) struct KeptRun {
    /// In any order.
    pub(super) texts: Vec<GeneratedText>,
    /// Of texts that were drawn together, with `--resample`.
    pub(super) groups: Vec<Resampled>,
    /// Seconds and counts of all of it.
    pub(super) spent: Spent,
    /// The last one, or the last that did not pass.
    check: Option<SelfCheck>,
}

impl KeptRun {
    /// The generations of each molecule that are there, sorted.
    pub(super) fn done(&self) -> BTreeMap<usize, Vec<usize>> {
        let mut done: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for text in &self.texts {
            done.entry(text.prompt).or_default().push(text.generation);
        }
        done.values_mut().for_each(|generations| generations.sort_unstable());
        done
    }

    /// As if it had been generated at once.
    pub(super) fn generated(&mut self) -> KeptGenerated {
        let (samples, resampled) = (take(&mut self.texts), take(&mut self.groups));
        let Spent { counts, timing, templates_seconds, cpu_seconds, batches, peak_memory_bytes } =
            take(&mut self.spent);
        let self_check = self.check.take();
        let generated =
            Generated { samples, counts, timing, resampled, batches, self_check, ..Generated::default() };
        let generated = generated.settled();
        KeptGenerated { generated, templates_seconds, cpu_seconds, peak_memory_bytes }
    }

    /// Takes what a self-check came to: of several, one that did not pass is kept.
    pub(super) fn take_check(&mut self, check: SelfCheck) {
        if self.check.as_ref().is_none_or(|known| known.verdict == Verdict::Passed) {
            self.check = Some(check);
        }
    }

    /// Of texts and groups that are there twice, keeps the later ones: a group whose end was not written is drawn again, and the
    /// texts of its first drawing stand in the journal all the same.
    pub(super) fn keep_latest(&mut self) {
        let texts = take(&mut self.texts).into_iter().map(|text| ((text.prompt, text.generation), text));
        self.texts = texts.collect::<BTreeMap<_, _>>().into_values().collect();
        let groups = take(&mut self.groups).into_iter().map(|group| ((group.prompt, group.first), group));
        self.groups = groups.collect::<BTreeMap<_, _>>().into_values().collect();
    }

    /// Adds what another shard has of the run.
    ///
    /// # Errors
    /// If it is a text that is there already.
    pub(super) fn join(&mut self, mut more: KeptRun) -> Result<()> {
        let known: BTreeSet<_> = self.texts.iter().map(|text| (text.prompt, text.generation)).collect();
        if let Some(text) = more.texts.iter().find(|text| known.contains(&(text.prompt, text.generation))) {
            return Err(held_twice(text.prompt));
        }
        self.texts.append(&mut more.texts);
        self.groups.append(&mut more.groups);
        self.spent.add(more.spent);
        more.check.into_iter().for_each(|check| self.take_check(check));
        Ok(())
    }

    /// Takes what was generated; what it took is known already.
    pub(super) fn take(&mut self, generated: &mut Generated) {
        self.texts.append(&mut generated.samples);
        self.groups.append(&mut generated.resampled);
    }

    /// Forgets texts of groups that were not finished: they are drawn together again.
    pub(super) fn forget_parts_of_groups(&mut self) {
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

/// Two shards hold the same work.
pub(super) fn held_twice(molecule: usize) -> Error {
    let problem = format!("contains what another shard contains of molecule {}", molecule + 1);
    Error::input("the work", problem, "give each shard once")
}
