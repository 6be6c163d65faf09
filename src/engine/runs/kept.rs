//! Stores the finished parts of an evaluation while the rest is computed, and combines the parts from shards.

use std::collections::BTreeMap;
use std::mem::take;

use super::environment::{cpu_seconds, here, peak_memory_bytes};
use super::finished::{JournalEntry, KeptModel, KeptText, PartCost, RunPlace};
use super::kept_run::{KeptRun, held_twice};
use super::text_seconds::TextPlace;
use crate::generate::{SelfCheck, TextDelta, TextSink};
use drift_core::job::InputHash;
use drift_core::{Error, Result};
use drift_data::generation::Environment;
use drift_data::shard::{Shard, Work};

/// The finished parts of an evaluation, and where they are stored.
#[derive(Debug, Default)]
pub struct TextStore {
    work: Option<Work>,
    /// The shard to compute; `None` for the whole evaluation.
    shard: Option<Shard>,
    /// The number of shards that are combined; then nothing more is generated.
    merged: Option<u32>,
    /// Whether some of the combined parts are missing.
    pub(crate) is_partial: bool,
    /// Finished pieces that are held back until the next write.
    held: Vec<JournalEntry>,
    /// The environments in which the parts were computed.
    environments: Vec<Environment>,
    inputs: Option<Vec<InputHash>>,
    models: BTreeMap<usize, KeptModel>,
    nats: BTreeMap<usize, BTreeMap<usize, Vec<f64>>>,
    runs: BTreeMap<RunPlace, KeptRun>,
}

impl TextStore {
    /// Begins the texts of these inputs, or continues the work that was begun, with what is finished of it. Without work, what is
    /// finished is stored nowhere.
    ///
    /// # Errors
    /// If the finished pieces are inconsistent, or of other inputs.
    pub fn new(
        inputs: Vec<InputHash>,
        begun: Option<(Work, Vec<JournalEntry>)>,
        shard: Option<Shard>,
    ) -> Result<Self> {
        let (work, finished) = begun.unzip();
        let mut kept = TextStore { work, shard, ..TextStore::default() };
        kept.take_all(finished.unwrap_or_default())?;
        kept.of_inputs(inputs)
    }

    /// Combines all shards of the texts of these inputs, or those that exist. Nothing more is generated.
    ///
    /// # Errors
    /// If the shards are of different models or inputs, or two contain the same work.
    pub fn merged(
        inputs: Vec<InputHash>,
        shards: Vec<(Shard, Vec<JournalEntry>)>,
        is_partial: bool,
    ) -> Result<Self> {
        let mut kept = TextStore { merged: Some(shards.len() as u32), is_partial, ..TextStore::default() };
        for (shard, pieces) in shards {
            kept.take_all(pieces).map_err(|error| match error {
                Error::Input { problem, remedy, .. } => {
                    Error::input(format!("shard {shard}"), problem, remedy)
                }
                other => other,
            })?;
        }
        kept.of_inputs(inputs)
    }

    /// Returns the store if its finished pieces are of these inputs.
    fn of_inputs(mut self, inputs: Vec<InputHash>) -> Result<Self> {
        match &self.inputs {
            Some(known) if *known != inputs => return Err(other_inputs("was started with other files")),
            Some(_) => {}
            None => {
                self.held.push(JournalEntry::Inputs(inputs.clone()));
                self.inputs = Some(inputs);
            }
        }
        Ok(self)
    }

    fn take_all(&mut self, pieces: Vec<JournalEntry>) -> Result<()> {
        let mut of_these: BTreeMap<RunPlace, KeptRun> = BTreeMap::new();
        let mut nats_of_these: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
        // The texts of each run whose cost was not read yet; it follows them.
        let mut without_cost: BTreeMap<RunPlace, Vec<TextPlace>> = BTreeMap::new();
        for piece in pieces {
            match piece {
                JournalEntry::Began(environment) => self.environments.push(environment),
                JournalEntry::Inputs(inputs) => {
                    if *self.inputs.get_or_insert_with(|| inputs.clone()) != inputs {
                        return Err(other_inputs("was made from other files than the others"));
                    }
                }
                JournalEntry::Model(place, model) => {
                    let known = self.models.entry(place).or_insert_with(|| model.clone());
                    if *known != model {
                        let problem = format!("was made with another model {} than the others", model.name);
                        return Err(Error::input("the work", problem, "use one checkpoint for all"));
                    }
                }
                JournalEntry::Nats(model, molecule, nats) => {
                    nats_of_these.insert((model, molecule), nats);
                }
                JournalEntry::Text(run, text) => {
                    let text = text.into_text();
                    without_cost.entry(run).or_default().push((text.prompt, text.generation));
                    of_these.entry(run).or_default().texts.push(text);
                }
                JournalEntry::Group(run, group) => of_these.entry(run).or_default().groups.push(group),
                JournalEntry::Spent(run, spent) => {
                    let texts = without_cost.remove(&run).unwrap_or_default();
                    of_these.entry(run).or_default().spend(texts, spent);
                }
                JournalEntry::Checked(run, check) => of_these.entry(run).or_default().take_check(*check),
                JournalEntry::Done => {}
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

    /// Returns whether nothing more is to be generated.
    pub(crate) fn is_over(&self) -> bool {
        self.merged.is_some()
    }

    /// Returns whether shards are combined and none of them has started this model.
    pub(crate) fn lacks(&self, model: usize) -> bool {
        self.is_over() && !self.models.contains_key(&model)
    }

    /// Returns the environment of this run; for combined shards, that of the first shard.
    pub(crate) fn environment(&mut self) -> Environment {
        let here = here();
        match (self.merged, self.environments.first()) {
            (Some(shards), first) => Environment { shards: Some(shards), ..first.cloned().unwrap_or(here) },
            (None, _) => {
                self.held.push(JournalEntry::Began(here.clone()));
                here
            }
        }
    }

    /// Returns the number of finished texts.
    pub fn texts(&self) -> usize {
        self.runs.values().map(|run| run.texts.len()).sum()
    }

    /// Returns whether the molecule with this index belongs to this shard.
    pub(crate) fn has(&self, molecule: usize) -> bool {
        self.shard.is_none_or(|shard| shard.has(molecule))
    }

    /// Returns the files from which molecules and placeholders were read.
    pub(crate) fn inputs(&self) -> Vec<InputHash> {
        self.inputs.clone().unwrap_or_default()
    }

    /// Returns the stored description of a model.
    pub(crate) fn model(&self, place: usize) -> Option<&KeptModel> {
        self.models.get(&place)
    }

    /// Stores the description of a model.
    ///
    /// # Errors
    /// If it differs from the stored one.
    pub(crate) fn keep_model(&mut self, place: usize, model: KeptModel) -> Result<()> {
        match self.models.get(&place) {
            Some(known) if *known == model => Ok(()),
            Some(_) => {
                let problem = "has changed since this was started";
                let remedy = "give another folder to start again";
                Err(Error::input(format!("model {}", model.name), problem, remedy))
            }
            None => {
                self.held.push(JournalEntry::Model(place, model.clone()));
                self.models.insert(place, model);
                Ok(())
            }
        }
    }

    /// Returns the nats of the conformers of each scored molecule.
    pub(crate) fn nats(&mut self, model: usize) -> &mut BTreeMap<usize, Vec<f64>> {
        self.nats.entry(model).or_default()
    }

    /// Stores the nats of molecules' conformers.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn keep_nats(&mut self, model: usize, scored: Vec<(usize, Vec<f64>)>) -> Result<()> {
        let pieces = scored.iter().map(|(molecule, nats)| JournalEntry::Nats(model, *molecule, nats.clone()));
        self.add(pieces.collect())?;
        self.nats(model).extend(scored);
        Ok(())
    }

    /// Stores the result of a run's self-check.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn keep_check(&mut self, place: RunPlace, check: SelfCheck) -> Result<()> {
        self.add(vec![JournalEntry::Checked(place, Box::new(check.clone()))])?;
        self.run(place).take_check(check);
        Ok(())
    }

    /// Returns the stored parts of a run.
    pub(crate) fn run(&mut self, place: RunPlace) -> &mut KeptRun {
        self.runs.entry(place).or_default()
    }

    /// Returns a sink that stores what a run finishes. `templates_seconds` is the time of building its templates; CPU seconds are
    /// measured if `on_cpu`.
    pub(crate) fn keeper(&mut self, place: RunPlace, templates_seconds: f64, on_cpu: bool) -> RunKeeper<'_> {
        let cpu = on_cpu.then(cpu_seconds).flatten();
        RunKeeper { kept: self, place, templates_seconds, cpu }
    }

    /// Records that the work is finished.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn done(&mut self) -> Result<()> {
        self.add(vec![JournalEntry::Done])?;
        self.work.as_ref().map_or(Ok(()), Work::sync)
    }

    /// Writes the pieces held back, then `pieces`.
    fn add(&mut self, pieces: Vec<JournalEntry>) -> Result<()> {
        let held = take(&mut self.held);
        self.work.as_mut().map_or(Ok(()), |work| work.add(held.into_iter().chain(pieces)))
    }
}

/// Returns the error for molecules or placeholders that were read from other files.
fn other_inputs(problem: &str) -> Error {
    let problem = format!("{problem} of molecules, references, examples or placeholders");
    Error::input("the work", problem, "give the same files, or another folder")
}

/// Stores what a run finishes, and its cost. The texts themselves are taken when the run ends.
pub(crate) struct RunKeeper<'k> {
    kept: &'k mut TextStore,
    place: RunPlace,
    /// The seconds of building templates, until they are counted.
    templates_seconds: f64,
    /// The CPU seconds at the last update, if they are measured.
    cpu: Option<f64>,
}

impl TextSink for RunKeeper<'_> {
    fn keep(&mut self, news: &TextDelta<'_>) -> Result<()> {
        let now = self.cpu.and_then(|_| cpu_seconds());
        let spent = PartCost {
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
            let groups = news.groups.iter().map(|group| JournalEntry::Group(place, group.clone()));
            let texts =
                news.texts.iter().map(|text| JournalEntry::Text(place, KeptText::from_generated(text)));
            // The group is written after its texts, since a group counts as finished once it is stored.
            let spent = [JournalEntry::Spent(place, spent.clone())];
            match news.texts {
                [] => self.kept.held.extend(spent),
                _ => self.kept.add(texts.chain(groups).chain(spent).collect())?,
            }
        }
        let texts = news.texts.iter().map(|text| (text.prompt, text.generation)).collect();
        self.kept.run(place).spend(texts, spent);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{End, GeneratedText, ResampledGroup};

    fn text(molecule: usize, generation: usize, token: u32) -> JournalEntry {
        let text = GeneratedText {
            prompt: molecule,
            generation,
            tokens: vec![token],
            forced: vec![false],
            end: End::Eos,
            log_probabilities: None,
            log_allowed: None,
            preferred: Vec::new(),
            dead_ends: None,
        };
        JournalEntry::Text((0, 0), KeptText::from_generated(&text))
    }

    fn group(molecule: usize) -> JournalEntry {
        JournalEntry::Group(
            (0, 0),
            ResampledGroup { prompt: molecule, draws: 2, ..ResampledGroup::default() },
        )
    }

    /// A journal was cut before the end of a group, which was drawn again behind it.
    #[test]
    fn texts_that_were_drawn_again_count_once() {
        let cut = vec![text(0, 0, 1), text(0, 1, 2)];
        let again = [text(0, 0, 3), text(0, 1, 4), group(0)];
        let of = |pieces: Vec<JournalEntry>| {
            let mut kept = TextStore::default();
            kept.take_all(pieces).map(|()| kept)
        };
        let mut kept = of(cut.clone()).unwrap();
        kept.run((0, 0)).forget_parts_of_groups();
        assert_eq!(kept.texts(), 0);
        let mut kept = of(cut.into_iter().chain(again).collect()).unwrap();
        let run = kept.run((0, 0));
        run.forget_parts_of_groups();
        assert_eq!(run.done(), BTreeMap::from([(0, vec![0, 1])]));
        let samples = run.generated().samples;
        assert_eq!(samples.iter().map(|text| text.tokens[0]).collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn shards_that_hold_the_same_are_refused() {
        let shard = |number: &str| number.parse::<Shard>().unwrap();
        let merged = |second: Vec<JournalEntry>| {
            let first =
                vec![text(0, 0, 1), JournalEntry::Nats(0, 4, vec![1.0]), JournalEntry::Nats(0, 4, vec![1.0])];
            TextStore::merged(Vec::new(), vec![(shard("1/2"), first), (shard("2/2"), second)], false)
        };
        assert_eq!(merged(vec![text(1, 0, 1), text(0, 1, 1)]).unwrap().texts(), 3);
        for second in [text(0, 0, 1), JournalEntry::Nats(0, 4, vec![2.0])] {
            let error = merged(vec![second]).unwrap_err().to_string();
            assert!(error.starts_with("shard 2/2: contains what another shard contains"), "{error}");
        }
    }
}
