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
    /// Not an opcode of the protocols 0 to 5; the usual cause is that the file is no pickle.
    #[error(
        "byte {offset} of the pickle is {opcode:#04x}, which is not an opcode of pickle protocols 0 to 5"
    )]
    UnknownOpcode {
        /// The byte that was found.
        opcode: u8,
        /// Where it stands.
        offset: usize,
    },
    /// A protocol newer than 5.
    #[error("pickle protocol {protocol} at byte {offset}; drift reads 0 to 5")]
    Protocol {
        /// The protocol that the pickle declares.
        protocol: u8,
        /// Where it declares it.
        offset: usize,
    },
    /// A feature that needs something from outside the file.
    #[error("pickle uses {feature} at byte {offset}, which drift does not read")]
    Unsupported {
        /// The feature's name.
        feature: &'static str,
        /// Where it is used.
        offset: usize,
    },
    /// The opcode's operands are missing or of the wrong kind.
    #[error("pickle is malformed at byte {offset}: {what}")]
    Malformed {
        /// What is wrong.
        what: &'static str,
        /// Where the opcode stands.
        offset: usize,
    },
    /// More than a pickle of this size that Python wrote could hold.
    #[error("pickle of {length} bytes unpacks into more than {limit} {what}; no writer does that")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much is allowed.
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
