//! Continues a command whose process has lost a GPU.

use super::output::Output;
use drift_core::Error;

/// The environment variable that tells the continuing process with which problem its predecessor lost the GPU.
const GIVEN_UP: &str = "DRIFT_GPU_GIVEN_UP";

/// Returns the problem with which an earlier process lost the GPU, if this process continues its command.
pub(super) fn given_up() -> Option<String> {
    std::env::var(GIVEN_UP).ok()
}

/// If this process has lost a GPU, no call to the GPU succeeds here any more. Continues the command in a new process, with candle's
/// operations. Returns only if there is no such loss, if the new process cannot be started, or if this process is already a
/// continuation.
pub(super) fn go_on_without(error: &anyhow::Error, output: &Output) {
    let Some(Error::DeviceLost { problem, .. }) = error.downcast_ref::<Error>() else { return };
    if given_up().is_some() {
        return;
    }
    #[cfg(unix)]
    if let Ok(program) = std::env::current_exe() {
        use std::os::unix::process::CommandExt;
        output.note(&format!("the GPU was lost ({problem}); a new process goes on by candle's operations"));
        let mut command = std::process::Command::new(program);
        // `exec` returns only if it fails.
        let _ = command.args(std::env::args_os().skip(1)).env(GIVEN_UP, problem).exec();
    }
    #[cfg(not(unix))]
    let _ = (problem, output);
}
