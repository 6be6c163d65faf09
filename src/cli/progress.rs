//! Progress bars on stderr with rate and remaining time. They appear only in a terminal, and after one second.

use std::io::{IsTerminal, Write as _};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use drift_core::job::{Observer, SilentObserver, Unit};

/// Bars appear once a phase has taken this long.
const PATIENCE: Duration = Duration::from_secs(1);

/// Returns the observer of this process.
pub(super) fn observer(quiet: bool) -> Arc<dyn Observer> {
    if quiet || !std::io::stderr().is_terminal() {
        Arc::new(SilentObserver)
    } else {
        Arc::new(Bar::default())
    }
}

#[derive(Default)]
struct Bar(Mutex<Option<Phase>>);

struct Phase {
    bar: ProgressBar,
    begun: Instant,
}

impl Observer for Bar {
    fn begin(&self, phase: &str, total: Option<u64>, unit: Unit) {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        // The templates are constants; if one is wrong, indicatif's default is used.
        let style = ProgressStyle::with_template(template(total.is_some(), unit));
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(phase.to_owned());
        if let Ok(mut current) = self.0.lock() {
            *current = Some(Phase { bar, begun: Instant::now() });
        }
    }

    fn advance(&self, n: u64) {
        if let Ok(Some(phase)) = self.0.lock().as_deref_mut() {
            phase.bar.inc(n);
            if phase.bar.is_hidden() && phase.begun.elapsed() > PATIENCE {
                phase.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
            }
        }
    }

    fn ready(&self, line: &str) {
        if let Ok(Some(phase)) = self.0.lock().as_deref() {
            // If stderr is closed, there is nobody to tell.
            phase.bar.suspend(|| writeln!(std::io::stderr(), "{line}")).ok();
        }
    }

    fn end(&self) {
        if let Ok(mut current) = self.0.lock()
            && let Some(phase) = current.take()
        {
            phase.bar.finish_and_clear();
        }
    }
}

fn template(bounded: bool, unit: Unit) -> &'static str {
    match (bounded, unit) {
        (true, Unit::Bytes) => "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec}, {eta} left",
        (true, Unit::Items) => "{msg} {wide_bar} {human_pos}/{human_len} {per_sec}, {eta} left",
        (false, Unit::Bytes) => "{msg} {spinner} {bytes} {bytes_per_sec}, {elapsed}",
        (false, Unit::Items) => "{msg} {spinner} {human_pos} {per_sec}, {elapsed}",
    }
}
