//! How the texts of a file are read.

use super::Encoding;
use super::decimal::{Fixed, Precision, TrailingZeros};

/// What becomes of conformers with a coordinate that an encoding can only say to be beyond its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutOfRange {
    /// The coordinate is written as the tail, or the largest number, and counted.
    #[default]
    Clip,
    /// The conformer is skipped.
    Skip,
}

/// How the slots of a file are read, and in which encoding their values are handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The encoding of the values that come out.
    pub encoding: Encoding,
    /// The encoding of the texts in the file; none if a text says so itself, or is written as `encoding` says.
    pub texts: Option<Encoding>,
    /// Whether decimals beyond the last are cut, toward zero; else they are refused.
    pub cut: bool,
    /// Whether values of a store of another encoding are written anew; else the store is refused.
    pub rewrites: bool,
    /// What becomes of coordinates beyond the range of the encoding.
    pub out_of_range: OutOfRange,
}

impl Default for Reading {
    fn default() -> Self {
        Reading::new(Encoding::FIXED)
    }
}

impl Reading {
    /// As an encoding is written; longer numbers are refused.
    pub fn new(encoding: Encoding) -> Self {
        Reading { encoding, texts: None, cut: false, rewrites: false, out_of_range: OutOfRange::Clip }
    }

    /// This reading, of texts that are written in its encoding and no other; decimals may keep their trailing zeros or not.
    #[must_use]
    pub fn of_texts(self) -> Self {
        let texts = if self.encoding.is_decimal() { self.texts } else { Some(self.encoding) };
        Reading { texts, ..self }
    }

    /// This reading, with decimals beyond the last cut toward zero, or refused.
    #[must_use]
    pub fn cutting(self, cut: bool) -> Self {
        Reading { cut, ..self }
    }

    /// Refuses a conformer with a coordinate that is only known to be beyond the range, where such are to be skipped.
    ///
    /// # Errors
    /// A reason, for the list of skipped records.
    pub fn keep(self, coordinates: &[[Fixed; 3]]) -> Result<(), String> {
        let skips = self.out_of_range == OutOfRange::Skip && !self.encoding.is_decimal();
        if skips && coordinates.iter().any(|values| self.encoding.has_tail(values)) {
            return Err(format!("a coordinate outside the range of {}", self.encoding));
        }
        Ok(())
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
