use thiserror::Error;

use super::{NEWEST, OLDEST, Version};
use crate::corpus::pickle::cursor::Ended;

/// Why a molecule was refused. Offsets count bytes from the start of the molecule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RdkitError {
    /// The bytes do not begin with RDKit's mark.
    #[error("not an RDKit molecule: the bytes do not begin with RDKit's mark 0xDEADBEEF")]
    NotRdkit,
    /// A pickled molecule whose argument is not the binary format.
    #[error("the pickled molecule contains no bytes in RDKit's format")]
    NoBytes,
    /// An object of a class that drift does not know. Nothing of it is executed or read.
    #[error(
        "an object of {0}, which drift does not know: it reads RDKit molecules, NumPy arrays and Python's own containers, and runs \
         nothing"
    )]
    Unknown(String),
    /// The pickle refers to a molecule far more often than any writer does.
    #[error("the same molecule again: the pickle repeats molecules too often")]
    Again,
    /// A version of the format that drift does not read.
    #[error("RDKit binary version {}.{}; drift reads {}.{} to {}", .0.0, .0.1, OLDEST.0, OLDEST.1, NEWEST)]
    Version(Version),
    /// The bytes end in the middle of the value that starts at `offset`.
    #[error("RDKit molecule is truncated: there is no value at byte {offset}")]
    Truncated {
        /// Where the unfinished value starts.
        offset: usize,
    },
    /// The bytes contradict the format.
    #[error("RDKit molecule is malformed at byte {offset}: {what}")]
    Malformed {
        /// What is wrong.
        what: &'static str,
        /// Where the contradiction was noticed.
        offset: usize,
    },
}

impl From<Ended> for RdkitError {
    fn from(ended: Ended) -> Self {
        Self::Truncated { offset: ended.offset }
    }
}
