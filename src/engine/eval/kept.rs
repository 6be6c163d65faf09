//! What an evaluation has finished, as it is kept while the rest is done, and put together again from shards.

use std::collections::BTreeMap;
use std::mem::take;

use super::environment::{cpu_seconds, peak_memory_bytes};
use super::finished::{Finished, KeptModel, KeptText, RunPlace, Spent};
use super::kept_run::{KeptRun, held_twice};
use super::record::Environment;
use crate::generate::{SelfCheck, TextDelta, TextSink};
use drift_core::error::{Error, Result};
use drift_core::job::InputHash;
use drift_data::shard::{Shard, Work};
/// What an evaluation has finished, and where it keeps it.
#[derive(Debug, Default)]
pub struct Kept {
    work: Option<Work>,
    /// The shard to do; all without.
    shard: Option<Shard>,
    /// The shards that are put together; then nothing more is done.
    merged: Option<u32>,
    /// Whether some of it is missing.
    is_partial: bool,
    /// Finished, but not yet worth a file.
    held: Vec<Finished>,
    /// Where the parts were done.
    environments: Vec<Environment>,
    inputs: Option<Vec<InputHash>>,
    models: BTreeMap<usize, KeptModel>,
    nats: BTreeMap<usize, BTreeMap<usize, Vec<f64>>>,
    runs: BTreeMap<RunPlace, KeptRun>,
}

impl Kept {
    /// Work that begins, or goes on with what is finished.
    ///
    /// # Errors
    /// If what is finished does not fit together.
    pub fn new(work: Option<Work>, shard: Option<Shard>, finished: Vec<Finished>) -> Result<Self> {
        let mut kept = Kept { work, shard, ..Kept::default() };
        kept.take_all(finished)?;
        Ok(kept)
    }

    /// All shards together, or those that there are; nothing more is generated.
    ///
    /// # Errors
    /// If they are of different models, or two hold the same.
    pub fn merged(shards: Vec<(Shard, Vec<Finished>)>, is_partial: bool) -> Result<Self> {
        let mut kept = Kept { merged: Some(shards.len() as u32), is_partial, ..Kept::default() };
        for (shard, pieces) in shards {
            kept.take_all(pieces).map_err(|error| match error {
                Error::Input { problem, remedy, .. } => {
                    Error::input(format!("shard {shard}"), problem, remedy)
                }
                other => other,
            })?;
        }
        Ok(kept)
    }

    fn take_all(&mut self, pieces: Vec<Finished>) -> Result<()> {
        let mut of_these: BTreeMap<RunPlace, KeptRun> = BTreeMap::new();
        let mut nats_of_these: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
        for piece in pieces {
            match piece {
                Finished::Began(environment) => self.environments.push(environment),
                Finished::Inputs(inputs) => {
                    if *self.inputs.get_or_insert_with(|| inputs.clone()) != inputs {
                        return Err(other_inputs("was made from other files than the others"));
                    }
                }
                Finished::Model(place, model) => {
                    let known = self.models.entry(place).or_insert_with(|| model.clone());
                    if *known != model {
                        let problem = format!("was made with another model {} than the others", model.name);
                        return Err(Error::input("the work", problem, "use one checkpoint for all"));
                    }
                }
                Finished::Nats(model, molecule, nats) => {
                    nats_of_these.insert((model, molecule), nats);
                }
                Finished::Text(run, text) => of_these.entry(run).or_default().texts.push(text.into_text()),
                Finished::Group(run, group) => of_these.entry(run).or_default().groups.push(group),
                Finished::Spent(run, spent) => of_these.entry(run).or_default().spent.add(spent),
                Finished::Checked(run, check) => of_these.entry(run).or_default().take_check(*check),
                Finished::Done => {}
            }
        }
        for ((model, molecule), nats) in nats_of_these {
            if self.nats.entry(model).or_default().insert(molecule, nats).is_some() {
                return Err(held_twice(molecule));
            }
        }
        for (place, mut run) in of_these {
            run.keep_latest();
            self.runs.entry(place).or_default().join(run)?;
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
                self.held.push(Finished::Began(here.clone()));
                here
            }
        }
    }

    /// Texts that are finished.
    pub fn texts(&self) -> usize {
        self.runs.values().map(|run| run.texts.len()).sum()
    }

    /// Whether the molecule at this place is to be done here.
    pub(super) fn has(&self, molecule: usize) -> bool {
        self.shard.is_none_or(|shard| shard.has(molecule))
    }

    /// Keeps what the molecules and placeholders were read from.
    ///
    /// # Errors
    /// If it is not what it was before.
    pub(super) fn keep_inputs(&mut self, inputs: &[InputHash]) -> Result<()> {
        match &self.inputs {
            Some(known) if known != inputs => Err(other_inputs("was started with other files")),
            Some(_) => Ok(()),
            None => {
                self.held.push(Finished::Inputs(inputs.to_vec()));
                self.inputs = Some(inputs.to_vec());
                Ok(())
            }
        }
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
                let problem = "has changed since this was started";
                let remedy = "give another folder to start again";
                Err(Error::input(format!("model {}", model.name), problem, remedy))
            }
            None => {
                self.held.push(Finished::Model(place, model.clone()));
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
            scored.iter().map(|(molecule, nats)| Finished::Nats(model, *molecule, nats.clone())).collect(),
        )?;
        self.nats(model).extend(scored);
        Ok(())
    }

    /// Keeps what the self-check of a run came to.
    ///
    /// # Errors
    /// If the system refuses.
    pub(super) fn keep_check(&mut self, place: RunPlace, check: SelfCheck) -> Result<()> {
        self.add(vec![Finished::Checked(place, Box::new(check.clone()))])?;
        self.run(place).take_check(check);
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
        self.add(vec![Finished::Done])?;
        self.work.as_ref().map_or(Ok(()), Work::sync)
    }

    /// Writes what is finished behind what was held.
    fn add(&mut self, pieces: Vec<Finished>) -> Result<()> {
        let held = take(&mut self.held);
        self.work.as_mut().map_or(Ok(()), |work| work.add(held.into_iter().chain(pieces)))
    }
}

/// Molecules or placeholders were read from other files.
fn other_inputs(problem: &str) -> Error {
    let problem = format!("{problem} of molecules, references or placeholders");
    Error::input("the work", problem, "give the same files, or another folder")
}

/// Writes what a run finishes, and counts what it took; its texts are taken when it ends.
pub(super) struct RunKeeper<'k> {
    kept: &'k mut Kept,
    place: RunPlace,
    /// What building templates took, until it is told.
    templates_seconds: f64,
    /// CPU seconds when it was last told something, where they are wanted.
    cpu: Option<f64>,
}

impl TextSink for RunKeeper<'_> {
    fn keep(&mut self, news: &TextDelta<'_>) -> Result<()> {
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
            let groups = news.groups.iter().map(|group| Finished::Group(place, group.clone()));
            let texts = news.texts.iter().map(|text| Finished::Text(place, KeptText::from_generated(text)));
            // A group counts once it is there, so it comes after its texts.
            let spent = [Finished::Spent(place, spent.clone())];
            match news.texts {
                [] => self.kept.held.extend(spent),
                _ => self.kept.add(texts.chain(groups).chain(spent).collect())?,
            }
        }
        self.kept.run(place).spent.add(spent);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{End, GeneratedText, Resampled};

    fn text(molecule: usize, generation: usize, token: u32) -> Finished {
        let text = GeneratedText {
            prompt: molecule,
            generation,
            tokens: vec![token],
            forced: vec![false],
            end: End::Eos,
            log_probabilities: None,
            log_allowed: None,
            preferred: Vec::new(),
        };
        Finished::Text((0, 0), KeptText::from_generated(&text))
    }

    fn group(molecule: usize) -> Finished {
        let group = Resampled {
            prompt: molecule,
            first: 0,
            draws: 2,
            effective: 2.0,
            least_effective: 2.0,
            resamplings: 0,
            ancestors: 2,
            log_legal: 0.0,
        };
        Finished::Group((0, 0), group)
    }

    /// A journal was cut before the end of a group, which was drawn again behind it.
    #[test]
    fn texts_that_were_drawn_again_count_once() {
        let cut = vec![text(0, 0, 1), text(0, 1, 2)];
        let again = [text(0, 0, 3), text(0, 1, 4), group(0)];
        let mut kept = Kept::new(None, None, cut.clone()).unwrap();
        kept.run((0, 0)).forget_parts_of_groups();
        assert_eq!(kept.texts(), 0);
        let mut kept = Kept::new(None, None, cut.into_iter().chain(again).collect()).unwrap();
        let run = kept.run((0, 0));
        run.forget_parts_of_groups();
        assert_eq!(run.done(), BTreeMap::from([(0, vec![0, 1])]));
        let samples = run.generated().generated.samples;
        assert_eq!(samples.iter().map(|text| text.tokens[0]).collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn shards_that_hold_the_same_are_refused() {
        let shard = |number: &str| number.parse::<Shard>().unwrap();
        let merged = |second: Vec<Finished>| {
            let first = vec![text(0, 0, 1), Finished::Nats(0, 4, vec![1.0]), Finished::Nats(0, 4, vec![1.0])];
            Kept::merged(vec![(shard("1/2"), first), (shard("2/2"), second)], false)
        };
        assert_eq!(merged(vec![text(1, 0, 1), text(0, 1, 1)]).unwrap().texts(), 3);
        for second in [text(0, 0, 1), Finished::Nats(0, 4, vec![2.0])] {
            let error = merged(vec![second]).unwrap_err().to_string();
            assert!(error.starts_with("shard 2/2: contains what another shard contains"), "{error}");
        }
    }
}
