use thiserror::Error;

use super::cursor::Ended;

/// Why a pickle was refused. Offsets count bytes from the start of the pickle.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PickleError {
    /// The input ends in the middle of the value or opcode that starts at `offset`.
    #[error("pickle is truncated: there is no value at byte {offset}")]
    Truncated {
        /// Where the unfinished value starts.
        offset: usize,
    },
    /// A byte that is not an opcode of protocols 0 to 5; usually the file is not a pickle.
    #[error(
        "byte {offset} of the pickle is {opcode:#04x}, which is not an opcode of pickle protocols 0 to 5"
    )]
    UnknownOpcode {
        /// The byte that was read.
        opcode: u8,
        /// The position of the byte.
        offset: usize,
    },
    /// A protocol newer than 5.
    #[error("pickle protocol {protocol} at byte {offset}; drift reads 0 to 5")]
    Protocol {
        /// The protocol that the pickle declares.
        protocol: u8,
        /// The position of the declaration.
        offset: usize,
    },
    /// The pickle uses a feature that needs something outside the file.
    #[error("pickle uses {feature} at byte {offset}, which drift does not read")]
    Unsupported {
        /// The feature's name.
        feature: &'static str,
        /// The position of the opcode that uses it.
        offset: usize,
    },
    /// The opcode's operands are missing or of the wrong kind.
    #[error("pickle is malformed at byte {offset}: {what}")]
    Malformed {
        /// What is wrong.
        what: &'static str,
        /// The position of the opcode.
        offset: usize,
    },
    /// The pickle unpacks into more than a pickle of this size written by Python could contain.
    #[error("pickle of {length} bytes unpacks into more than {limit} {what}; no writer does that")]
    TooLarge {
        /// The kind of thing that exceeds its limit.
        what: &'static str,
        /// The limit.
        limit: usize,
        /// The length of the pickle in bytes.
        length: usize,
    },
}

impl From<Ended> for PickleError {
    fn from(ended: Ended) -> Self {
        Self::Truncated { offset: ended.offset }
    }
}
