//! What a conformer is looked up by, beside its molecule: its text and the values of its row.

use sha2::{Digest, Sha256};

use super::inchikey::InchiKey;
use super::spelling::Fingerprint;
use crate::corpus::{Batch, Conformer};
use drift_core::encoding::Fixed;

/// The columns that are read of both corpora, in the order of [`Batch::cells`].
pub(super) const COLUMNS: &[&str] = &["dataset", "test_subset", "inchikey"];

/// The values of the row of a conformer. Rows without a column, and formats without rows, have none.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RowCells<'b> {
    pub dataset: &'b str,
    pub test_subset: &'b str,
    pub inchikey: Option<InchiKey>,
}

impl<'b> RowCells<'b> {
    /// Those of a conformer of a batch.
    pub(super) fn new(batch: &'b Batch, at: usize) -> Self {
        let Some(cells) = batch.cells.get(at) else { return RowCells::default() };
        let cell = |at: usize| cells.get(at).and_then(Option::as_deref);
        RowCells {
            dataset: cell(0).unwrap_or_default(),
            test_subset: cell(1).unwrap_or_default(),
            inchikey: cell(2).and_then(InchiKey::parse),
        }
    }
}

/// Returns a hash that texts share if they are equal once both are written in one encoding: the first half of the SHA-256 of the
/// skeleton's fingerprint and the coordinates.
pub(crate) fn text_fingerprint(skeleton: Fingerprint, conformer: &Conformer) -> Fingerprint {
    let mut bytes = Vec::with_capacity(16 + conformer.coordinates.len() * size_of::<[Fixed; 3]>());
    bytes.extend_from_slice(&skeleton.to_le_bytes());
    conformer.coordinates.iter().flatten().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
    Sha256::digest(&bytes).iter().take(16).fold(0, |value, byte| value << 8 | u128::from(*byte))
}
