//! How the texts of a file are read.

use super::Encoding;
use super::decimal::{Precision, TrailingZeros};

/// How the slots of a file are read, and in which encoding their values are handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The encoding of the values that come out.
    pub encoding: Encoding,
    /// The encoding of the texts in the file; none if a text says so itself, or is written as `encoding` says.
    pub texts: Option<Encoding>,
    /// Whether decimals beyond the last are cut, toward zero; else they are refused.
    pub cut: bool,
}

impl Default for Reading {
    fn default() -> Self {
        Reading::of(Encoding::FIXED)
    }
}

impl Reading {
    /// As an encoding is written; longer numbers are refused.
    pub fn of(encoding: Encoding) -> Self {
        Reading { encoding, texts: None, cut: false }
    }

    /// The same, with longer decimals cut.
    #[must_use]
    pub fn cutting(self, cut: bool) -> Self {
        Reading { cut, ..self }
    }

    /// The encoding of what comes out, with trailing zeros kept or removed if it is one of decimals.
    pub fn written(self, zeros: TrailingZeros) -> Encoding {
        self.encoding.with_zeros(zeros)
    }

    /// The decimals of what comes out.
    pub fn precision(self) -> Precision {
        self.encoding.precision()
    }
}
