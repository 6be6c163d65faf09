use thiserror::Error;

use crate::corpus::pickle::cursor::UnexpectedEnd;

/// Why a molecule was refused, in words. Offsets count bytes from the start of the molecule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct RdkitError(pub String);

impl From<UnexpectedEnd> for RdkitError {
    fn from(ended: UnexpectedEnd) -> Self {
        Self(format!("RDKit molecule is truncated: there is no value at byte {}", ended.offset))
    }
}
