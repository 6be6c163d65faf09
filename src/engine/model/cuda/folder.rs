//! The folder that keeps data about a device for later runs: compiled kernels and verdicts of the self-check.

use std::ffi::OsString;
use std::path::PathBuf;

/// Returns the folder in which drift keeps data about devices: `drift` in `$XDG_CACHE_HOME` or in `~/.cache`; `None` if neither is known.
pub fn device_folder() -> Option<PathBuf> {
    folder_by(&|name| std::env::var_os(name))
}

/// Like [`device_folder`], with another source of environment variables.
pub(super) fn folder_by(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(cache.join("drift"))
}
