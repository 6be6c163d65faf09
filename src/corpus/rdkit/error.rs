use thiserror::Error;

use super::{NEWEST, OLDEST, Version};
use crate::corpus::pickle::cursor::Ended;

/// Why a molecule was refused. Offsets count bytes from the start of the molecule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RdkitError {
    /// The first bytes are not RDKit's.
    #[error("not an RDKit molecule: the bytes do not begin with RDKit's mark 0xDEADBEEF")]
    NotRdkit,
    /// A pickled molecule whose argument is not the binary format.
    #[error("the pickled molecule holds no bytes in RDKit's format")]
    NoBytes,
    /// A version of the format that drift does not read.
    #[error("RDKit binary version {}.{}; drift reads {}.{} to {}", .0.0, .0.1, OLDEST.0, OLDEST.1, NEWEST)]
    Version(Version),
    /// The bytes end in the middle of the value that starts at `offset`.
    #[error("RDKit molecule is cut short: nothing to read for the value at byte {offset}")]
    Truncated {
        /// Where the unfinished value starts.
        offset: usize,
    },
    /// The bytes contradict the format.
    #[error("RDKit molecule is malformed at byte {offset}: {what}")]
    Malformed {
        /// What is wrong.
        what: &'static str,
        /// Where it was noticed.
        offset: usize,
    },
}

impl From<Ended> for RdkitError {
    fn from(ended: Ended) -> Self {
        Self::Truncated { offset: ended.offset }
    }
}
