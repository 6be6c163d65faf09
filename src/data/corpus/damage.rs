//! Errors for files that are truncated or were changed in transit.

use std::io;

use drift_core::Error;

/// Returns the error for a failed read of `name`: damaged content is the fault of the input, anything else that of the system.
pub(super) fn read_error(name: &str, error: io::Error) -> Error {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    match error.kind() {
        UnexpectedEof | InvalidInput | InvalidData | Other => damaged(name, error),
        _ => Error::io(name.as_ref(), error),
    }
}

/// Returns the error for a damaged container.
pub(super) fn damaged(name: &str, detail: impl std::fmt::Display) -> Error {
    Error::input(name, format!("the file is truncated or damaged ({detail})"), "fetch it again")
}
