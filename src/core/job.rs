//! What a running job is handed: progress, cancellation, and where it runs. Handed down, never reached for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Watches progress; the library reports, the command line draws.
pub trait Observer: Send + Sync {
    /// A new phase of work begins, with its size in `unit`s if known.
    fn begin(&self, phase: &str, total: Option<u64>, unit: Unit);
    /// `n` more units are done.
    fn advance(&self, n: u64);
    /// The phase is over.
    fn end(&self);
}

/// What a progress figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of input.
    Bytes,
    /// Anything else: conformers, candidates, probes.
    Items,
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn begin(&self, _: &str, _: Option<u64>, _: Unit) {}
    fn advance(&self, _: u64) {}
    fn end(&self) {}
}

/// The surroundings of one run.
#[derive(Clone)]
pub struct Job {
    observer: Arc<dyn Observer>,
    cancelled: Arc<AtomicBool>,
}

impl Default for Job {
    fn default() -> Self {
        Job::new(Arc::new(Silent), Arc::new(AtomicBool::new(false)))
    }
}

impl Job {
    /// A job watched by `observer` that stops once `cancelled` is set.
    pub fn new(observer: Arc<dyn Observer>, cancelled: Arc<AtomicBool>) -> Self {
        Job { observer, cancelled }
    }

    /// Whoever watches.
    pub fn observer(&self) -> &dyn Observer {
        &*self.observer
    }

    /// # Errors
    /// [`Error::Interrupted`] once the job was cancelled. To be called at least every few hundred milliseconds.
    pub fn check(&self) -> Result<()> {
        // Nothing else is read by it, so no order of memory is needed.
        if self.cancelled.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// What made a result; no date and no thread count, so that data files are the same bytes again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Always `drift`.
    pub program: String,
    /// The crate's version.
    pub version: String,
    /// The git revision it was built from, or `unknown`.
    pub revision: String,
    /// The inputs, by name and SHA-256.
    pub inputs: Vec<InputHash>,
}

/// An input and what it held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputHash {
    /// File name without folders, so that results do not depend on where a file lay.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of the bytes, hexadecimal.
    pub sha256: String,
}

impl Provenance {
    /// The provenance of something made from `inputs` by this build.
    pub fn from_inputs(inputs: Vec<InputHash>) -> Self {
        Provenance {
            // The program, whichever crate asks: stores hold it.
            program: "drift".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            revision: option_env!("DRIFT_REVISION").unwrap_or("unknown").to_owned(),
            inputs,
        }
    }
}
