//! Long work for Python. It runs in a thread of its own, without the interpreter's lock, while the calling thread checks for
//! signals and reports progress.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use drift::job::{Job, Observer, Unit};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::raised;

/// The process that loaded the package.
static LOADED_BY: OnceLock<u32> = OnceLock::new();

/// The threads of a process that was forked from it: those of rayon's own pool stay with the parent, and work for them would wait forever.
static OF_FORK: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Remembers the process, before anything runs in parallel.
pub(crate) fn loaded() {
    LOADED_BY.get_or_init(std::process::id);
}

/// Runs work without the interpreter's lock, on threads of this process.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| on_own_threads(work))
}

fn on_own_threads<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match pool_of_fork() {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// Returns the threads of a forked process; `None` in one that was not forked since the package was loaded, or has no threads.
fn pool_of_fork() -> Option<Arc<ThreadPool>> {
    let process = std::process::id();
    if LOADED_BY.get().is_none_or(|loaded| *loaded == process) {
        return None;
    }
    let mut known = OF_FORK.lock().unwrap_or_else(PoisonError::into_inner);
    match &*known {
        Some((of, pool)) if *of == process => Some(pool.clone()),
        _ => {
            let pool = Arc::new(ThreadPoolBuilder::new().build().ok()?);
            *known = Some((process, pool.clone()));
            Some(pool)
        }
    }
}

/// How long the calling thread sleeps between two checks for signals.
const PATIENCE: Duration = Duration::from_millis(100);

/// Runs `work` and returns its result. A signal whose handler raises an exception, such as Ctrl-C, cancels the job; so does an
/// exception from `progress`. After the job has cleaned up, that exception is raised.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Job) -> drift::Result<T> + Send,
) -> PyResult<T> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let seen = Arc::new(ReportedPhases::default());
    let job = Job::new(seen.clone(), cancelled.clone());
    let (done, caller) = (AtomicBool::new(false), thread::current());
    let mut raised_here = None;
    let outcome = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let _wake = Wake { done: &done, caller };
            on_own_threads(|| work(&job))
        });
        while !done.load(Ordering::Acquire) {
            py.detach(|| thread::park_timeout(PATIENCE));
            if raised_here.is_none()
                && let Err(error) = py.check_signals().and_then(|()| seen.tell(py, progress.as_ref()))
            {
                cancelled.store(true, Ordering::Relaxed);
                raised_here = Some(error);
            }
        }
        py.detach(|| worker.join())
    });
    let outcome = outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    match raised_here {
        Some(error) => Err(error),
        None => outcome.map_err(raised),
    }
}

/// Wakes the calling thread when the work ends, in whatever way.
struct Wake<'d> {
    done: &'d AtomicBool,
    caller: thread::Thread,
}

impl Drop for Wake<'_> {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Release);
        self.caller.unpark();
    }
}

/// The progress of the work.
#[derive(Clone, PartialEq)]
struct Phase {
    name: String,
    done: u64,
    total: Option<u64>,
    unit: Unit,
}

/// The current phase, and the last progress that was reported to Python.
#[derive(Default)]
struct ReportedPhases(Mutex<(Option<Phase>, Option<Phase>)>);

impl ReportedPhases {
    /// Calls `progress(phase, done, total, unit)` if there is something new.
    fn tell(&self, py: Python<'_>, progress: Option<&Py<PyAny>>) -> PyResult<()> {
        let Some(progress) = progress else { return Ok(()) };
        let news = self.0.lock().ok().and_then(|mut seen| {
            let news = seen.0.clone().filter(|phase| seen.1.as_ref() != Some(phase));
            seen.1 = seen.0.clone();
            news
        });
        let Some(Phase { name, done, total, unit }) = news else { return Ok(()) };
        let unit = match unit {
            Unit::Bytes => "bytes",
            Unit::Items => "items",
        };
        progress.call1(py, (name, done, total, unit)).map(drop)
    }
}

impl Observer for ReportedPhases {
    fn begin(&self, phase: &str, total: Option<u64>, unit: Unit) {
        if let Ok(mut seen) = self.0.lock() {
            seen.0 = Some(Phase { name: phase.to_owned(), done: 0, total, unit });
        }
    }

    fn advance(&self, n: u64) {
        if let Ok(mut seen) = self.0.lock()
            && let Some(phase) = &mut seen.0
        {
            phase.done += n;
        }
    }

    fn end(&self) {}
}
