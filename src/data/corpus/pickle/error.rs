use thiserror::Error;

use super::cursor::UnexpectedEnd;

/// Why a pickle was refused, in words. Offsets count bytes from the start of the pickle.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct PickleError(pub String);

impl From<UnexpectedEnd> for PickleError {
    fn from(ended: UnexpectedEnd) -> Self {
        Self(format!("pickle is truncated: there is no value at byte {}", ended.offset))
    }
}
