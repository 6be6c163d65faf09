//! The error for a damaged piece of an HDF5 file.

use std::io;

use rust_hdf5::format::FormatError;

use crate::corpus::pickle::cursor::UnexpectedEnd;

/// The problem, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct DamagedFile(pub String);

/// The result type of this module.
pub(super) type Hdf5Result<T> = Result<T, DamagedFile>;

/// Returns an error with this problem.
pub(super) fn bad<T>(problem: impl Into<String>) -> Hdf5Result<T> {
    Err(DamagedFile(problem.into()))
}

impl From<UnexpectedEnd> for DamagedFile {
    fn from(_: UnexpectedEnd) -> Self {
        DamagedFile("it ends in the middle of a value".to_owned())
    }
}

impl From<FormatError> for DamagedFile {
    fn from(error: FormatError) -> Self {
        DamagedFile(error.to_string())
    }
}

impl From<io::Error> for DamagedFile {
    fn from(error: io::Error) -> Self {
        DamagedFile(error.to_string())
    }
}
