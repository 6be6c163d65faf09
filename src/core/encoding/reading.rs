//! How the texts of a file are read.

use super::Encoding;
use super::decimal::{Fixed, Precision, TrailingZeros};

/// The treatment of conformers with a coordinate outside the range of an encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutOfRange {
    /// The coordinate is written as the tail, or as the largest number, and counted.
    #[default]
    Clip,
    /// The conformer is skipped.
    Skip,
}

/// How the slots of a file are read, and the encoding in which their values are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The encoding of the returned values.
    pub encoding: Encoding,
    /// The encoding of the texts in the file; `None` if a text states its own encoding, or uses `encoding`.
    pub texts: Option<Encoding>,
    /// Whether excess decimals are truncated toward zero; otherwise they are refused.
    pub cut: bool,
    /// Whether values of a store in another encoding are converted; otherwise the store is refused.
    pub rewrites: bool,
    /// Whether values are returned as the text or the store has them, in its own encoding, which each conformer then states.
    /// `encoding` still holds for files without text.
    pub as_written: bool,
    /// The treatment of coordinates outside the range of the encoding.
    pub out_of_range: OutOfRange,
}

impl Default for Reading {
    fn default() -> Self {
        Reading::new(Encoding::FIXED)
    }
}

impl Reading {
    /// Reads texts in one encoding; numbers with excess decimals are refused.
    pub fn new(encoding: Encoding) -> Self {
        Reading {
            encoding,
            texts: None,
            cut: false,
            rewrites: false,
            as_written: false,
            out_of_range: OutOfRange::Clip,
        }
    }

    /// This reading for texts that use exactly its encoding. Decimals may still keep or lack their trailing zeros.
    #[must_use]
    pub fn of_texts(self) -> Self {
        let texts = if self.encoding.is_decimal() { self.texts } else { Some(self.encoding) };
        Reading { texts, ..self }
    }

    /// This reading, with excess decimals truncated toward zero, or refused.
    #[must_use]
    pub fn cutting(self, cut: bool) -> Self {
        Reading { cut, ..self }
    }

    /// Refuses a conformer with a coordinate outside the range, if such conformers are to be skipped.
    ///
    /// # Errors
    /// A reason for the list of skipped records.
    pub fn keep(self, coordinates: &[[Fixed; 3]]) -> Result<(), String> {
        let skips = self.out_of_range == OutOfRange::Skip && !self.encoding.is_decimal();
        if skips && coordinates.iter().any(|values| self.encoding.has_tail(values)) {
            return Err(format!("a coordinate outside the range of {}", self.encoding));
        }
        Ok(())
    }

    /// Returns the encoding of the returned values; for decimals with trailing zeros kept or removed.
    pub fn written(self, zeros: TrailingZeros) -> Encoding {
        self.encoding.with_zeros(zeros)
    }

    /// Returns the precision of the returned values.
    pub fn precision(self) -> Precision {
        self.encoding.precision()
    }
}
