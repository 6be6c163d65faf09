//! The progress of shards, read from their own files, so that no separate list is needed.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::journal::is_being_written;
use super::{FILE, Manifest, ShardSet};
use drift_core::{Error, Result};

/// A finished piece of work in the journal of a shard.
pub trait FinishedPiece: DeserializeOwned {
    /// What is counted, as a plural noun.
    const UNIT: &'static str;

    /// Returns the number of units in this piece.
    fn finished(&self) -> u64;

    /// Returns the time that it took, in seconds.
    fn seconds(&self) -> f64;

    /// Returns whether this piece marks the shard as finished.
    fn is_done(&self) -> bool;
}

/// The progress of a set of shards.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShardsProgress {
    /// The progress of each shard, by number.
    pub shards: Vec<ShardProgress>,
    /// What is counted, such as `texts` or `conformers`.
    pub unit: &'static str,
    /// The number of finished units.
    pub finished: u64,
    /// The number of units per second in a running shard: the mean over all finished work.
    pub per_second: Option<f64>,
    /// The estimated number of seconds left if as many shards keep running, with the mean size of the finished shards. `None`
    /// before the first shard is finished, or if no shard is running.
    pub seconds_left: Option<f64>,
}

/// The progress of a shard.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShardProgress {
    /// The shard's number, from 1.
    pub number: u32,
    /// The state of the shard.
    pub state: ShardState,
    /// The number of finished units.
    pub finished: u64,
    /// The time that the finished units took, in seconds.
    pub seconds: f64,
}

/// The state of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ShardState {
    /// Nothing of it is stored yet.
    Missing,
    /// A process is writing its journal.
    Running,
    /// It is not finished, and no process is working on it.
    Stopped,
    /// It is finished.
    Done,
}

drift_core::named!(ShardState { Done: "done", Running: "running", Stopped: "stopped", Missing: "missing" });

impl ShardsProgress {
    /// Reads the progress of the shards in these folders.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub fn read<P: FinishedPiece>(set: &ShardSet) -> Result<Self> {
        let mut shards: Vec<ShardProgress> = (1..=set.of)
            .map(|number| ShardProgress { number, state: ShardState::Missing, finished: 0, seconds: 0.0 })
            .collect();
        for (shard, folder) in &set.folders {
            shards[shard.number() as usize - 1] = of_shard::<P>(shard.number(), folder)?;
        }
        Ok(ShardsProgress::sum(P::UNIT, shards))
    }

    fn sum(unit: &'static str, shards: Vec<ShardProgress>) -> Self {
        let of_state = |state: ShardState| shards.iter().filter(move |shard| shard.state == state);
        let finished: u64 = shards.iter().map(|shard| shard.finished).sum();
        let seconds: f64 = shards.iter().map(|shard| shard.seconds).sum();
        let per_second = (finished > 0 && seconds > 0.0).then(|| finished as f64 / seconds);
        let (done, running) = (of_state(ShardState::Done).count(), of_state(ShardState::Running).count());
        let in_done: u64 = of_state(ShardState::Done).map(|shard| shard.finished).sum();
        // Shards are split evenly, so the finished ones are representative.
        let whole = (done > 0).then(|| in_done as f64 / done as f64 * shards.len() as f64);
        let is_over = done == shards.len();
        let left = whole.filter(|_| running > 0 && !is_over).zip(per_second);
        let seconds_left =
            left.map(|(whole, rate)| (whole - finished as f64).max(0.0) / rate / running as f64);
        ShardsProgress { shards, unit, finished, per_second, seconds_left }
    }
}

/// Returns the subfolders that contain shards.
///
/// # Errors
/// If the folder cannot be read, or no shard has stored anything yet.
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
