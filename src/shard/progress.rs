//! How far the shards of an evaluation are, by their own files: nobody has to keep a list.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::finished::Finished;
use crate::error::{Error, Result};
use crate::shard::journal::is_being_written;
use crate::shard::{FILE, Manifest, ShardSet};

/// How far shards are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShardsProgress {
    /// Each shard, by number.
    pub shards: Vec<ShardProgress>,
    /// Texts that are finished.
    pub texts: u64,
    /// Texts a second of a running shard, a mean over what is finished.
    pub texts_per_second: Option<f64>,
    /// Seconds that are left if as many shards run on: by the texts of shards that are done; none before the first one is, or
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
    /// Texts that are finished.
    pub texts: u64,
    /// Seconds of generating them.
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
    /// Of the shards in the folders of this one.
    ///
    /// # Errors
    /// If none has kept anything yet, they are not of one work, or a file is damaged.
    pub fn of(folder: &Path) -> Result<Self> {
        let entries = std::fs::read_dir(folder).map_err(|e| Error::io(folder, e))?;
        let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        folders.retain(|folder| folder.join(FILE).is_file());
        folders.sort();
        if folders.is_empty() {
            let problem = "no shard has kept anything yet";
            return Err(Error::input(folder.display(), problem, "wait, or look into the logs"));
        }
        let set = ShardSet::of(&folders)?;
        let begun: BTreeMap<u32, ShardProgress> = set
            .folders
            .iter()
            .map(|(number, folder)| Ok((*number, of_shard(*number, folder)?)))
            .collect::<Result<_>>()?;
        let missing = |number| ShardProgress { number, state: ShardState::Missing, texts: 0, seconds: 0.0 };
        let shards =
            (1..=set.of).map(|number| begun.get(&number).cloned().unwrap_or_else(|| missing(number)));
        Ok(ShardsProgress::sum(shards.collect()))
    }

    fn sum(shards: Vec<ShardProgress>) -> Self {
        let of_state = |state: ShardState| shards.iter().filter(move |shard| shard.state == state);
        let texts: u64 = shards.iter().map(|shard| shard.texts).sum();
        let seconds: f64 = shards.iter().map(|shard| shard.seconds).sum();
        let texts_per_second = (texts > 0 && seconds > 0.0).then(|| texts as f64 / seconds);
        let (done, running) = (of_state(ShardState::Done).count(), of_state(ShardState::Running).count());
        let done_texts: u64 = of_state(ShardState::Done).map(|shard| shard.texts).sum();
        let whole = (done > 0).then(|| done_texts as f64 / done as f64 * shards.len() as f64);
        let is_over = done == shards.len();
        let left = whole.filter(|_| running > 0 && !is_over).zip(texts_per_second);
        let seconds_left = left.map(|(whole, rate)| (whole - texts as f64).max(0.0) / rate / running as f64);
        ShardsProgress { shards, texts, texts_per_second, seconds_left }
    }
}

fn of_shard(number: u32, folder: &Path) -> Result<ShardProgress> {
    let is_running = is_being_written(&folder.join(FILE))?;
    let mut progress = ShardProgress { number, state: ShardState::Stopped, texts: 0, seconds: 0.0 };
    if is_running {
        progress.state = ShardState::Running;
    }
    for finished in Manifest::finished::<Finished>(folder)? {
        match finished {
            Finished::Text(..) => progress.texts += 1,
            Finished::Spent(_, spent) => progress.seconds += spent.seconds(),
            Finished::Done => progress.state = ShardState::Done,
            _ => {}
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
                texts: *texts,
                seconds: *texts as f64 * 2.0,
            });
            ShardsProgress::sum(shards.collect())
        };
        let some = of(&[(Done, 100), (Running, 60), (Running, 40), (Missing, 0)]);
        assert_eq!((some.texts, some.texts_per_second), (200, Some(0.5)));
        // 200 texts are left, two shards write half a text a second each.
        assert_eq!(some.seconds_left, Some(200.0));
        assert_eq!(of(&[(Running, 5), (Missing, 0)]).seconds_left, None);
        assert_eq!(of(&[(Done, 5), (Stopped, 2)]).seconds_left, None);
        assert_eq!(of(&[(Done, 5), (Done, 5)]).seconds_left, None);
        assert_eq!(of(&[(Missing, 0)]).texts_per_second, None);
    }
}
