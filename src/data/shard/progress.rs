//! How far shards are, by their own files: nobody has to keep a list.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::journal::is_being_written;
use super::{FILE, Manifest, ShardSet};
use drift_core::error::{Error, Result};

/// Something finished, in the journal of a shard.
pub trait FinishedPiece: DeserializeOwned {
    /// What is counted, in the plural.
    const UNIT: &'static str;

    /// How many of these it holds.
    fn finished(&self) -> u64;

    /// How long it took, in seconds.
    fn seconds(&self) -> f64;

    /// Whether it says that nothing is left to do.
    fn is_done(&self) -> bool;
}

/// How far shards are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShardsProgress {
    /// Each shard, by number.
    pub shards: Vec<ShardProgress>,
    /// What is counted: `texts`, `conformers`.
    pub unit: &'static str,
    /// How many of these are finished.
    pub finished: u64,
    /// How many a second in a running shard, a mean over what is finished.
    pub per_second: Option<f64>,
    /// Seconds that are left if as many shards run on: by what is in shards that are done; none before the first one is, or
    /// where none runs.
    pub seconds_left: Option<f64>,
}

/// How far a shard is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShardProgress {
    /// Its number.
    pub number: u32,
    /// What it does.
    pub state: ShardState,
    /// How much is finished.
    pub finished: u64,
    /// How long that took, in seconds.
    pub seconds: f64,
}

/// What a shard does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ShardState {
    /// It has kept nothing yet.
    Missing,
    /// A process writes its file.
    Running,
    /// It is not finished, and nobody goes on.
    Stopped,
    /// Nothing is left to do.
    Done,
}

impl ShardState {
    /// All of them.
    pub const ALL: [ShardState; 4] =
        [ShardState::Done, ShardState::Running, ShardState::Stopped, ShardState::Missing];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            ShardState::Missing => "missing",
            ShardState::Running => "running",
            ShardState::Stopped => "stopped",
            ShardState::Done => "done",
        }
    }
}

impl ShardsProgress {
    /// Of the shards in these folders.
    ///
    /// # Errors
    /// If they are not of one work, or a file is damaged.
    pub fn read<P: FinishedPiece>(set: &ShardSet) -> Result<Self> {
        let begun: BTreeMap<u32, ShardProgress> = set
            .folders
            .iter()
            .map(|(shard, folder)| Ok((shard.number(), of_shard::<P>(shard.number(), folder)?)))
            .collect::<Result<_>>()?;
        let missing =
            |number| ShardProgress { number, state: ShardState::Missing, finished: 0, seconds: 0.0 };
        let shards =
            (1..=set.of).map(|number| begun.get(&number).cloned().unwrap_or_else(|| missing(number)));
        Ok(ShardsProgress::sum(P::UNIT, shards.collect()))
    }

    fn sum(unit: &'static str, shards: Vec<ShardProgress>) -> Self {
        let of_state = |state: ShardState| shards.iter().filter(move |shard| shard.state == state);
        let finished: u64 = shards.iter().map(|shard| shard.finished).sum();
        let seconds: f64 = shards.iter().map(|shard| shard.seconds).sum();
        let per_second = (finished > 0 && seconds > 0.0).then(|| finished as f64 / seconds);
        let (done, running) = (of_state(ShardState::Done).count(), of_state(ShardState::Running).count());
        let in_done: u64 = of_state(ShardState::Done).map(|shard| shard.finished).sum();
        // Shards are cut alike, so those that are done stand for all.
        let whole = (done > 0).then(|| in_done as f64 / done as f64 * shards.len() as f64);
        let is_over = done == shards.len();
        let left = whole.filter(|_| running > 0 && !is_over).zip(per_second);
        let seconds_left =
            left.map(|(whole, rate)| (whole - finished as f64).max(0.0) / rate / running as f64);
        ShardsProgress { shards, unit, finished, per_second, seconds_left }
    }
}

/// The folders in one that hold shards.
///
/// # Errors
/// If none has kept anything yet.
pub fn shard_folders(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(|e| Error::io(folder, e))?;
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.retain(|folder| folder.join(FILE).is_file());
    folders.sort();
    if folders.is_empty() {
        let problem = "no shard has finished anything yet";
        return Err(Error::input(folder.display(), problem, "wait, or read the logs"));
    }
    Ok(folders)
}

fn of_shard<P: FinishedPiece>(number: u32, folder: &Path) -> Result<ShardProgress> {
    let is_running = is_being_written(&folder.join(FILE))?;
    let state = if is_running { ShardState::Running } else { ShardState::Stopped };
    let mut progress = ShardProgress { number, state, finished: 0, seconds: 0.0 };
    for piece in Manifest::finished::<P>(folder)? {
        progress.finished += piece.finished();
        progress.seconds += piece.seconds();
        if piece.is_done() {
            progress.state = ShardState::Done;
        }
    }
    Ok(progress)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_told_from_what_is_done() {
        use ShardState::{Done, Missing, Running, Stopped};
        let of = |states: &[(ShardState, u64)]| {
            let shards = states.iter().zip(1..).map(|((state, texts), number)| ShardProgress {
                number,
                state: *state,
                finished: *texts,
                seconds: *texts as f64 * 2.0,
            });
            ShardsProgress::sum("texts", shards.collect())
        };
        let some = of(&[(Done, 100), (Running, 60), (Running, 40), (Missing, 0)]);
        assert_eq!((some.finished, some.per_second), (200, Some(0.5)));
        // 200 texts are left, two shards write half a text a second each.
        assert_eq!(some.seconds_left, Some(200.0));
        assert_eq!(of(&[(Running, 5), (Missing, 0)]).seconds_left, None);
        assert_eq!(of(&[(Done, 5), (Stopped, 2)]).seconds_left, None);
        assert_eq!(of(&[(Done, 5), (Done, 5)]).seconds_left, None);
        assert_eq!(of(&[(Missing, 0)]).per_second, None);
    }
}
