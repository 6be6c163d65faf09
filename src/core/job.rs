//! The context of a running job: progress and cancellation, and the provenance of results. It is passed down as an argument; there
//! is no global state.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Receives progress: the library reports it, the command line shows it.
pub trait Observer: Send + Sync {
    /// Begins a new phase of work; `total` is its size in `unit`s, if known.
    fn begin(&self, phase: &str, total: Option<u64>, unit: Unit);
    /// Reports `n` more finished units.
    fn advance(&self, n: u64);
    /// Reports a part of the result that is ready before the whole, as a line.
    fn ready(&self, _line: &str) {}
    /// Ends the phase.
    fn end(&self);
}

/// The unit of progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of input.
    Bytes,
    /// Other items: conformers, candidates, probes.
    Items,
}

/// An observer that ignores progress.
#[derive(Debug, Clone, Copy, Default)]
pub struct SilentObserver;

impl Observer for SilentObserver {
    fn begin(&self, _: &str, _: Option<u64>, _: Unit) {}
    fn advance(&self, _: u64) {}
    fn end(&self) {}
}

/// The progress observer and the cancellation flag of one run.
#[derive(Clone)]
pub struct Job {
    observer: Arc<dyn Observer>,
    cancelled: Arc<AtomicBool>,
}

impl Default for Job {
    fn default() -> Self {
        Job::new(Arc::new(SilentObserver), Arc::new(AtomicBool::new(false)))
    }
}

impl Job {
    /// Returns a job that reports to `observer` and stops once `cancelled` is set.
    pub fn new(observer: Arc<dyn Observer>, cancelled: Arc<AtomicBool>) -> Self {
        Job { observer, cancelled }
    }

    /// Returns the observer of the job.
    pub fn observer(&self) -> &dyn Observer {
        &*self.observer
    }

    /// # Errors
    /// [`Error::Interrupted`] once the job was cancelled. Long work must call this at least every few hundred milliseconds.
    pub fn check(&self) -> Result<()> {
        // The flag guards no other data, so relaxed ordering is enough.
        if self.cancelled.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// The origin of a result. It has no date and no thread count, so that equal runs give equal bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Always `drift`.
    pub program: String,
    /// The version of the crate.
    pub version: String,
    /// The git revision of the build, or `unknown` if the program did not [say it](set_revision).
    pub revision: String,
    /// The inputs, by name and SHA-256.
    pub inputs: Vec<InputHash>,
}

/// An input file and its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputHash {
    /// The file name without folders, so that results do not depend on the location of a file.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of the bytes, hexadecimal.
    pub sha256: String,
}

/// The revision that the program was built from.
static REVISION: OnceLock<&'static str> = OnceLock::new();

/// Says which git revision the running program was built from, for the provenance of all that it makes. Only the first call counts.
pub fn set_revision(revision: &'static str) {
    REVISION.get_or_init(|| revision);
}

impl Provenance {
    /// Returns the provenance of something made from `inputs` by this build.
    pub fn from_inputs(inputs: Vec<InputHash>) -> Self {
        Provenance {
            // Always the name of the program, whichever crate asks, because stores record it.
            program: "drift".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            revision: REVISION.get().copied().unwrap_or("unknown").to_owned(),
            inputs,
        }
    }
}
