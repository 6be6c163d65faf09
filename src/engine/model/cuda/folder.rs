//! Where what belongs to a device is kept for the next run: compiled kernels, and verdicts on them.

use std::ffi::OsString;
use std::path::PathBuf;

/// The folder in which drift keeps what belongs to a device: `drift` in `$XDG_CACHE_HOME`, or in `~/.cache`; none where neither is
/// known.
pub fn device_folder() -> Option<PathBuf> {
    folder_by(&|name| std::env::var_os(name))
}

/// The same by other variables.
pub(super) fn folder_by(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(cache.join("drift"))
}
