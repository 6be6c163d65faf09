//! The decode loop where a device does the steps: texts enter, some steps are done, and what is over is read.

use super::End;
use super::clock::Phase;
use super::decode::Run;
use super::on_device::OnDevice;
use super::row::Row;
use crate::model::cuda::{Entering, RowEnd};
use drift_core::error::Result;
use drift_core::sampling;

/// Steps between two looks. A row that ends on the way is passed over until then.
const STEPS: u64 = 8;

impl Run<'_> {
    /// Some steps on the device; texts that are over then have all their tokens.
    pub(super) fn steps_on_device(&mut self, device: &mut OnDevice<'_>) -> Result<()> {
        let runs = |row: &&Row<'_>| row.end.is_none() && !device.running.contains(&row.slot);
        let entering: Vec<Entering<'_>> =
            self.rows.iter().filter(runs).map(|row| device.entering(row)).collect();
        device.step.enter(&entering, &self.cache)?;
        device.running.extend(entering.iter().map(|text| text.slot));
        for _ in 0..STEPS {
            device.step.step(device.running.len())?;
        }
        let ends = device.step.ends()?;
        self.clock.lap(Phase::Forward, self.rows.len());
        for row in &mut self.rows {
            // The device still says of a row that was read before that it is over, so only running ones are looked at.
            let Some(end) = ends[row.slot].filter(|_| device.running.remove(&row.slot)) else { continue };
            let end = match end {
                RowEnd::Eos => End::Eos,
                RowEnd::Length => End::Length,
                RowEnd::NothingAllowed => return Err(sampling::nothing_allowed()),
                RowEnd::NotFinite => return Err(sampling::not_finite()),
            };
            row.take_all(device.step.text(row.slot)?, end);
        }
        let work = device.counts(STEPS)?;
        self.clock.worked(work, self.decoder);
        self.counts.add(work);
        self.clock.lap(Phase::Other, self.rows.len());
        Ok(())
    }
}
