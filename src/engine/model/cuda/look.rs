//! Reads the state that a step left in the memory of a device, for comparison with a reference.

use super::{DecodeStep, DeviceRow};
use drift_core::{Error, Result};

impl DecodeStep<'_> {
    /// Returns the logits of the last step, `[rows, head rows]`. For rows that did not choose a token they are from earlier steps, or
    /// have no meaning.
    ///
    /// # Errors
    /// If the device fails, also in an earlier step.
    pub(crate) fn logits(&mut self) -> Result<Vec<f32>> {
        let count = self.batch.count as usize * self.head_rows();
        Ok(self.numbers(self.logits, count)?.into_iter().map(f32::from_bits).collect())
    }

    /// Returns the states of all rows.
    ///
    /// # Errors
    /// If the device fails, also in an earlier step.
    pub(crate) fn rows(&mut self) -> Result<Vec<DeviceRow>> {
        let size = size_of::<DeviceRow>() / 4;
        let words = self.numbers(self.batch.rows, size * self.batch.count as usize)?;
        let rows: Option<Vec<DeviceRow>> = words.chunks_exact(size).map(DeviceRow::from_words).collect();
        rows.ok_or_else(|| Error::internal("the device", "a row of another size"))
    }

    /// Returns the first `count` tokens of a row's text, beginning with the unread end of its prompt. Forced tokens have the bit
    /// [`DeviceRow::FORCED`].
    ///
    /// # Errors
    /// If the device fails, or the text has no room for `count` tokens.
    pub(crate) fn raw_text(&mut self, slot: usize, count: usize) -> Result<Vec<u32>> {
        let stride = self.batch.stride as usize;
        if count > stride || slot >= self.batch.count as usize {
            return Err(Error::internal("the device", format!("row {slot} has {count} tokens of {stride}")));
        }
        self.numbers(self.batch.texts + 4 * (slot * stride) as u64, count)
    }
}
