//! Why a piece of an HDF5 file is not read.

use std::io;

use rust_hdf5::format::FormatError;

use crate::corpus::pickle::cursor::Ended;

/// What is wrong, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Damaged(pub String);

/// Shorthand of this module.
pub(super) type Checked<T> = Result<T, Damaged>;

/// An error with these words.
pub(super) fn bad<T>(problem: impl Into<String>) -> Checked<T> {
    Err(Damaged(problem.into()))
}

impl From<Ended> for Damaged {
    fn from(_: Ended) -> Self {
        Damaged("it ends in the middle of a value".to_owned())
    }
}

impl From<FormatError> for Damaged {
    fn from(error: FormatError) -> Self {
        Damaged(error.to_string())
    }
}

impl From<io::Error> for Damaged {
    fn from(error: io::Error) -> Self {
        Damaged(error.to_string())
    }
}

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
