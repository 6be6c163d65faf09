//! Errors of files that end too early or were changed on the way.

use std::io;

use drift_core::error::Error;

/// A failed read of `name`: damaged content is the input's fault, anything else the system's.
pub(super) fn read_error(name: &str, error: io::Error) -> Error {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    match error.kind() {
        UnexpectedEof | InvalidInput | InvalidData | Other => damaged(name, error),
        _ => Error::io(name.as_ref(), error),
    }
}

/// The error of a broken container.
pub(super) fn damaged(name: &str, detail: impl std::fmt::Display) -> Error {
    Error::input(name, format!("the file is truncated or damaged ({detail})"), "fetch it again")
}
