//! Caches a program's answers, by a hash of the frame and of how the program is run.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{EnergyAnswer, EnergyPlan};
use crate::shard::journal::Journal;
use drift_core::Result;
use drift_core::io::hash_bytes;

/// The number of hexadecimal digits of a key: 128 bits of a SHA-256.
const KEY_DIGITS: usize = 32;

/// The answers, and the file in which they are stored.
#[derive(Debug)]
pub(super) struct Cache {
    /// The command and the unit, which are hashed before the frame.
    head: String,
    answers: HashMap<String, EnergyAnswer>,
    journal: Option<Journal>,
    /// The keys of frames that timed out. They are asked for again next time.
    timeouts: Vec<String>,
}

/// A line of the cache file.
#[derive(Debug, Serialize, Deserialize)]
struct CacheLine {
    key: String,
    energy: Option<f64>,
    relaxed: Option<f64>,
}

impl Cache {
    /// Reads the answers in the cache file, if there is one.
    pub(super) fn open(plan: &EnergyPlan) -> Result<Self> {
        // Another command or another unit may give other numbers for the same frame.
        let head = format!("{}\n{:?}\n", plan.command, plan.unit);
        let mut cache = Cache { head, answers: HashMap::new(), journal: None, timeouts: Vec::new() };
        if let Some(path) = &plan.cache {
            let (journal, kept) = Journal::open::<CacheLine>(path)?;
            cache.journal = Some(journal);
            let answer = |energy, relaxed| EnergyAnswer { energy, relaxed, timed_out: false };
            cache.answers =
                kept.into_iter().map(|kept| (kept.key, answer(kept.energy, kept.relaxed))).collect();
        }
        Ok(cache)
    }

    /// Returns the cache key of a frame.
    pub(super) fn key(&self, frame: &str) -> String {
        let hash = hash_bytes("", format!("{}{frame}", self.head).as_bytes());
        hash.sha256[..KEY_DIGITS].to_owned()
    }

    pub(super) fn get(&self, key: &str) -> Option<EnergyAnswer> {
        self.answers.get(key).copied()
    }

    /// Adds answers, and writes them to the file.
    pub(super) fn add(&mut self, told: &[(&str, EnergyAnswer)]) -> Result<()> {
        if let Some(journal) = &mut self.journal {
            let kept = |&(key, EnergyAnswer { energy, relaxed, .. }): &(&str, EnergyAnswer)| CacheLine {
                key: key.to_owned(),
                energy,
                relaxed,
            };
            journal.add(&told.iter().map(kept).collect::<Vec<_>>())?;
        }
        self.answers.extend(told.iter().map(|(key, answer)| ((*key).to_owned(), *answer)));
        Ok(())
    }

    /// Remembers that a frame timed out, only until the current request is complete; it is not written to the file.
    pub(super) fn add_timeout(&mut self, key: &str) {
        self.timeouts.push(key.to_owned());
        self.answers.insert(key.to_owned(), EnergyAnswer { timed_out: true, ..EnergyAnswer::default() });
    }

    /// Forgets the frames that timed out.
    pub(super) fn forget_timeouts(&mut self) {
        for key in std::mem::take(&mut self.timeouts) {
            self.answers.remove(&key);
        }
    }
}
