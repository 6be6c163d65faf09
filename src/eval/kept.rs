//! What an evaluation has finished, as it is kept while the rest is done, and put together again from shards.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use serde::{Deserialize, Serialize};

use super::environment::{cpu_seconds, peak_memory_bytes};
use super::record::{DialectEvidence, Environment};
use crate::error::{Error, Result};
use crate::generate::{
    BatchSeconds, End, Generated, GeneratedText, Keeper, News, Resampled, Timing, WorkCounts,
};
use crate::job::InputHash;
use crate::shard::{Share, Work};
use crate::text::Dialect;

/// The place of a run: that of its model, and its own among the model's.
pub(super) type RunPlace = (usize, usize);

/// Something finished.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Piece {
    /// When and where a part of it was done.
    Began(Environment),
    /// What is known of a model once it is loaded.
    Model(usize, KeptModel),
    /// Nats of a molecule's conformers: the model's place, the molecule's.
    Nats(usize, usize, Vec<f64>),
    /// A text.
    Text(RunPlace, KeptText),
    /// Texts that were resampled together.
    Group(RunPlace, Resampled),
    /// What a part of a run took.
    Spent(RunPlace, Spent),
    /// Nothing is left to do.
    Done,
}

/// What is known of a model once it is loaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptModel {
    /// Its name.
    pub name: String,
    /// How it writes numbers.
    pub dialect: Dialect,
    /// What says so.
    pub dialect_from: Option<DialectEvidence>,
    /// The files of its weights.
    pub files: Vec<InputHash>,
}

/// A text, with numbers that come back as they were.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptText {
    /// The place of its molecule.
    molecule: usize,
    /// Which of the molecule's texts.
    generation: usize,
    tokens: Vec<u32>,
    /// A character for each token: `1` where it was forced.
    forced: String,
    end: End,
    /// Bits of [`GeneratedText::log_probabilities`] and [`GeneratedText::log_allowed`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    logs: Option<[Vec<u32>; 2]>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    preferred: Vec<(usize, u32)>,
}

impl KeptText {
    fn of(text: &GeneratedText) -> Self {
        let bits =
            |logs: &Option<Vec<f32>>| -> Vec<u32> { logs.iter().flatten().map(|x| x.to_bits()).collect() };
        KeptText {
            molecule: text.prompt,
            generation: text.generation,
            tokens: text.tokens.clone(),
            forced: text.forced.iter().map(|forced| if *forced { '1' } else { '0' }).collect(),
            end: text.end,
            logs: text
                .log_probabilities
                .is_some()
                .then(|| [bits(&text.log_probabilities), bits(&text.log_allowed)]),
            preferred: text.preferred.clone(),
        }
    }

    fn into_text(self) -> GeneratedText {
        let numbers = |bits: Vec<u32>| -> Vec<f32> { bits.into_iter().map(f32::from_bits).collect() };
        let (log_probabilities, log_allowed) =
            self.logs.map(|logs| logs.map(numbers)).map(Into::into).unzip();
        GeneratedText {
            prompt: self.molecule,
            generation: self.generation,
            tokens: self.tokens,
            forced: self.forced.bytes().map(|byte| byte == b'1').collect(),
            end: self.end,
            log_probabilities,
            log_allowed,
            preferred: self.preferred,
        }
    }
}

/// What a part of a run took.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    counts: WorkCounts,
    timing: Timing,
    templates_seconds: f64,
    /// None on a GPU, or where the system doesn't tell.
    cpu_seconds: Option<f64>,
    batches: Vec<BatchSeconds>,
    /// The most that the process held; none where the system doesn't tell.
    peak_memory_bytes: Option<u64>,
}

impl Spent {
    fn add(&mut self, more: Spent) {
        self.counts.add(more.counts);
        self.timing.add(more.timing);
        self.templates_seconds += more.templates_seconds;
        self.cpu_seconds = match (self.cpu_seconds, more.cpu_seconds) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
        self.batches.extend(more.batches);
        self.peak_memory_bytes = self.peak_memory_bytes.max(more.peak_memory_bytes);
    }
}

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
    texts: Vec<GeneratedText>,
    groups: Vec<Resampled>,
    spent: Spent,
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
        let mut samples = take(&mut self.texts);
        samples.sort_unstable_by_key(|text| (text.prompt, text.generation));
        let mut resampled = take(&mut self.groups);
        resampled.sort_unstable_by_key(|group| (group.prompt, group.first));
        let Spent { mut counts, timing, templates_seconds, cpu_seconds, batches, peak_memory_bytes } =
            take(&mut self.spent);
        counts.generated_tokens = samples.iter().map(|text| text.tokens.len() as u64).sum();
        let forced = |text: &GeneratedText| text.forced.iter().filter(|forced| **forced).count() as u64;
        counts.forced_tokens = samples.iter().map(forced).sum();
        let generated = Generated { samples, counts, timing, resampled, batches, ..Generated::default() };
        KeptGenerated { generated, templates_seconds, cpu_seconds, peak_memory_bytes }
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

/// What an evaluation has finished, and where it keeps it.
#[derive(Debug, Default)]
pub struct Kept {
    work: Option<Work>,
    /// The shard to do; all without.
    share: Option<Share>,
    /// The shards that are put together; then nothing more is done.
    merged: Option<u32>,
    /// Whether some of it is missing.
    is_partial: bool,
    /// Finished, but not yet worth a file.
    held: Vec<Piece>,
    /// Where the parts were done.
    environments: Vec<Environment>,
    models: BTreeMap<usize, KeptModel>,
    nats: BTreeMap<usize, BTreeMap<usize, Vec<f64>>>,
    runs: BTreeMap<RunPlace, KeptRun>,
}

impl Kept {
    /// Work that begins, or goes on with what is finished.
    ///
    /// # Errors
    /// If what is finished does not fit together.
    pub fn new(work: Option<Work>, share: Option<Share>, finished: Vec<Piece>) -> Result<Self> {
        let mut kept = Kept { work, share, ..Kept::default() };
        kept.take_all(finished)?;
        Ok(kept)
    }

    /// All shards together, or those that there are; nothing more is generated.
    ///
    /// # Errors
    /// If they are of different models, or two hold the same.
    pub fn merged(shards: Vec<(Share, Vec<Piece>)>, is_partial: bool) -> Result<Self> {
        let mut kept = Kept { merged: Some(shards.len() as u32), is_partial, ..Kept::default() };
        for (share, pieces) in shards {
            kept.take_all(pieces).map_err(|error| match error {
                Error::Input { problem, remedy, .. } => {
                    Error::input(format!("shard {share}"), problem, remedy)
                }
                other => other,
            })?;
        }
        Ok(kept)
    }

    fn take_all(&mut self, pieces: Vec<Piece>) -> Result<()> {
        let mut of_these: BTreeMap<RunPlace, KeptRun> = BTreeMap::new();
        for piece in pieces {
            match piece {
                Piece::Began(environment) => self.environments.push(environment),
                Piece::Model(place, model) => {
                    let known = self.models.entry(place).or_insert_with(|| model.clone());
                    if *known != model {
                        let problem = format!("was made with another model {} than the others", model.name);
                        return Err(Error::input("the work", problem, "use one checkpoint for all"));
                    }
                }
                Piece::Nats(model, molecule, nats) => {
                    self.nats.entry(model).or_default().insert(molecule, nats);
                }
                Piece::Text(run, text) => of_these.entry(run).or_default().texts.push(text.into_text()),
                Piece::Group(run, group) => of_these.entry(run).or_default().groups.push(group),
                Piece::Spent(run, spent) => of_these.entry(run).or_default().spent.add(spent),
                Piece::Done => {}
            }
        }
        for (place, mut run) in of_these {
            let known = self.runs.entry(place).or_default();
            known.texts.append(&mut run.texts);
            known.groups.append(&mut run.groups);
            known.spent.add(run.spent);
        }
        Ok(())
    }

    /// Whether nothing more is to be done.
    pub(super) fn is_over(&self) -> bool {
        self.merged.is_some()
    }

    /// Whether some of what is put together is missing.
    pub(super) fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Whether the model's part is put together, and nobody began it.
    pub(super) fn lacks(&self, model: usize) -> bool {
        self.is_over() && !self.models.contains_key(&model)
    }

    /// When and where this is done; of shards, when and where the first of them was.
    pub(super) fn environment(&mut self) -> Environment {
        let here = Environment::here();
        match (self.merged, self.environments.first()) {
            (Some(shards), first) => Environment { shards: Some(shards), ..first.cloned().unwrap_or(here) },
            (None, _) => {
                self.held.push(Piece::Began(here.clone()));
                here
            }
        }
    }

    /// The shard to do; all without.
    pub fn share(&self) -> Option<Share> {
        self.share
    }

    /// Texts that are finished.
    pub fn texts(&self) -> usize {
        self.runs.values().map(|run| run.texts.len()).sum()
    }

    /// Whether the molecule at this place is to be done here.
    pub(super) fn has(&self, molecule: usize) -> bool {
        self.share.is_none_or(|share| share.has(molecule))
    }

    /// What is known of a model.
    pub(super) fn model(&self, place: usize) -> Option<&KeptModel> {
        self.models.get(&place)
    }

    /// Keeps what is known of a model.
    ///
    /// # Errors
    /// If it is another one than before, or the system refuses.
    pub(super) fn keep_model(&mut self, place: usize, model: KeptModel) -> Result<()> {
        match self.models.get(&place) {
            Some(known) if *known == model => Ok(()),
            Some(_) => {
                let problem = "is not what it was when this was begun";
                let remedy = "give another folder to begin anew";
                Err(Error::input(format!("model {}", model.name), problem, remedy))
            }
            None => {
                self.held.push(Piece::Model(place, model.clone()));
                self.models.insert(place, model);
                Ok(())
            }
        }
    }

    /// Nats of the conformers of each molecule that is scored.
    pub(super) fn nats(&mut self, model: usize) -> &mut BTreeMap<usize, Vec<f64>> {
        self.nats.entry(model).or_default()
    }

    /// Keeps the nats of a molecule's conformers.
    ///
    /// # Errors
    /// If the system refuses.
    pub(super) fn keep_nats(&mut self, model: usize, scored: Vec<(usize, Vec<f64>)>) -> Result<()> {
        self.add(
            scored.iter().map(|(molecule, nats)| Piece::Nats(model, *molecule, nats.clone())).collect(),
        )?;
        self.nats(model).extend(scored);
        Ok(())
    }

    /// What is kept of a run.
    pub(super) fn run(&mut self, place: RunPlace) -> &mut KeptRun {
        self.runs.entry(place).or_default()
    }

    /// Keeps what a run finishes; building its templates took so many seconds, and CPU seconds are told if they are wanted.
    pub(super) fn keeper(&mut self, place: RunPlace, templates_seconds: f64, on_cpu: bool) -> RunKeeper<'_> {
        let cpu = on_cpu.then(cpu_seconds).flatten();
        RunKeeper { kept: self, place, templates_seconds, cpu }
    }

    /// Notes that nothing is left to do.
    ///
    /// # Errors
    /// If the system refuses.
    pub(super) fn done(&mut self) -> Result<()> {
        self.add(vec![Piece::Done])?;
        self.work.as_ref().map_or(Ok(()), Work::sync)
    }

    /// Writes what is finished behind what was held.
    fn add(&mut self, pieces: Vec<Piece>) -> Result<()> {
        let held = take(&mut self.held);
        self.work.as_mut().map_or(Ok(()), |work| work.add(held.into_iter().chain(pieces)))
    }
}

/// Keeps what a run finishes.
pub(super) struct RunKeeper<'k> {
    kept: &'k mut Kept,
    place: RunPlace,
    /// What building templates took, until it is told.
    templates_seconds: f64,
    /// CPU seconds when it was last told something, where they are wanted.
    cpu: Option<f64>,
}

impl Keeper for RunKeeper<'_> {
    fn keep(&mut self, news: &News<'_>) -> Result<()> {
        let now = self.cpu.and_then(|_| cpu_seconds());
        let spent = Spent {
            counts: news.counts,
            timing: news.timing,
            templates_seconds: take(&mut self.templates_seconds),
            cpu_seconds: self.cpu.zip(now).map(|(before, now)| now - before),
            batches: news.batches.to_vec(),
            peak_memory_bytes: peak_memory_bytes(),
        };
        self.cpu = now;
        let place = self.place;
        if self.kept.work.is_some() {
            let groups = news.groups.iter().map(|group| Piece::Group(place, group.clone()));
            let texts = news.texts.iter().map(|text| Piece::Text(place, KeptText::of(text)));
            // A group counts once it is there, so it comes after its texts.
            let spent = [Piece::Spent(place, spent.clone())];
            match news.texts {
                [] => self.kept.held.extend(spent),
                _ => self.kept.add(texts.chain(groups).chain(spent).collect())?,
            }
        }
        let run = self.kept.run(place);
        run.texts.extend_from_slice(news.texts);
        run.groups.extend_from_slice(news.groups);
        run.spent.add(spent);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn texts_come_back_as_they_were(
            tokens in prop::collection::vec((any::<u32>(), any::<bool>(), any::<u32>(), any::<u32>()), 0..20),
            logs in any::<bool>(),
        ) {
            let text = GeneratedText {
                prompt: 7,
                generation: 3,
                tokens: tokens.iter().map(|one| one.0).collect(),
                forced: tokens.iter().map(|one| one.1).collect(),
                end: End::Length,
                log_probabilities: logs.then(|| tokens.iter().map(|one| f32::from_bits(one.2)).collect()),
                log_allowed: logs.then(|| tokens.iter().map(|one| f32::from_bits(one.3)).collect()),
                preferred: tokens.iter().map(|one| (one.2 as usize, one.3)).collect(),
            };
            let line = serde_json::to_string(&Piece::Text((0, 1), KeptText::of(&text))).unwrap();
            let Piece::Text((0, 1), back) = serde_json::from_str(&line).unwrap() else { panic!("{line}") };
            let back = back.into_text();
            // Numbers that are none are not equal to themselves.
            let bits = |logs: &Option<Vec<f32>>| logs.as_ref().map(|l| l.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
            prop_assert_eq!(bits(&back.log_probabilities), bits(&text.log_probabilities));
            prop_assert_eq!(bits(&back.log_allowed), bits(&text.log_allowed));
            prop_assert_eq!((back.tokens, back.forced, back.preferred), (text.tokens, text.forced, text.preferred));
            prop_assert_eq!((back.prompt, back.generation, back.end), (7, 3, End::Length));
        }
    }
}
