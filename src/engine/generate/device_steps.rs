//! The decode loop if a device does the steps: texts enter, the device does some steps, and the host reads the finished texts.

use super::clock::Phase;
use super::decode::Run;
use super::on_device::{OnDevice, given_up};
use super::row::Row;
use super::{End, WorkCounts};
use crate::model::cuda::{EnteringText, RowEnd, WrittenText};
use drift_core::sampling;
use drift_core::{Error, Result};

/// The number of steps between two checks by the host. A row that ends in between is skipped until the next check.
const STEPS: u64 = 8;

/// A row that has ended: its index among the rows, the reason, and its text.
type EndedRow = (usize, RowEnd, WrittenText);

impl Run<'_> {
    /// Does some steps on the device; texts that end in them get all their tokens. If the device fails, returns its error, and no
    /// further text has ended.
    ///
    /// # Errors
    /// If a row ended in an error.
    pub(super) fn steps_on_device(&mut self, device: &mut OnDevice<'_>) -> Result<Option<Error>> {
        let (over, work) = match self.ask(device) {
            Ok(answer) => answer,
            Err(error) => return Ok(Some(error)),
        };
        for (at, end, text) in over {
            let end = match end {
                RowEnd::Eos => End::Eos,
                RowEnd::Length => End::Length,
                RowEnd::NothingAllowed => return Err(sampling::nothing_allowed()),
                RowEnd::NotFinite => return Err(sampling::not_finite()),
            };
            self.rows[at].take_all(text, end);
        }
        self.clock.worked(work, self.decoder);
        self.counts.merge(&work);
        self.clock.lap(Phase::Other, self.rows.len());
        Ok(None)
    }

    /// Lets rows enter, launches some steps, and reads the texts that have ended. Returns these by the index of the row, and the
    /// work done.
    fn ask(&mut self, device: &mut OnDevice<'_>) -> Result<(Vec<EndedRow>, WorkCounts)> {
        let runs = |row: &&Row<'_>| row.end.is_none() && !device.running.contains(&row.slot);
        let entering: Vec<EnteringText<'_>> =
            self.rows.iter().filter(runs).map(|row| device.entering(row)).collect();
        device.step.enter(&entering, &self.cache)?;
        device.running.extend(entering.iter().map(|text| text.slot));
        for _ in 0..STEPS {
            device.step.step(device.running.len())?;
        }
        let ends = device.step.ends()?;
        self.clock.lap(Phase::Forward, self.rows.len());
        let mut over = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            // The device also reports ends of rows that were read before, so only running rows are checked.
            if let Some(end) = ends[row.slot].filter(|_| device.running.remove(&row.slot)) {
                over.push((at, end, device.step.text(row.slot)?));
            }
        }
        Ok((over, device.counts(STEPS)?))
    }

    /// Continues with candle's operations after a device failed. Texts that are not finished start again.
    ///
    /// # Errors
    /// If the run insists on the device, or candle cannot use it any more either.
    pub(super) fn leave_device(&mut self, error: &Error) -> Result<()> {
        given_up(self.decoder, error, self.options)?;
        self.is_on_device = false;
        let context = self.decoder.config().max_position_embeddings;
        let mut entered = Vec::new();
        for row in self.rows.iter_mut().filter(|row| row.end.is_none()) {
            *row = row.anew(context);
            self.cache.clear(row.slot);
            entered.push((row.slot, row.item.prompt));
        }
        entered.sort_unstable_by_key(|(slot, prompt)| (*prompt, *slot));
        self.held = None;
        self.prefill(&entered)?;
        self.clock.lap(Phase::Prefill, self.rows.len());
        Ok(())
    }
}
