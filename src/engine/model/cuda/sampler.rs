//! Draws from whole vocabularies on a device. They are used when candle computes the steps and masks come from the host: the logits
//! stay on the device, and only one token per row is copied back.

use std::collections::HashMap;

use candle_core::Tensor;

use super::abi::{argument, words};
use super::gpu::Gpu;
use super::{BatchArguments, DeviceRow, DrawArguments, RowEnd, WorkDone};
use crate::model::failed;
use drift_core::sampling::{Noise, Sampling, not_finite, nothing_allowed};
use drift_core::{Error, Result};

/// The number of threads of a block, which reads the whole vocabulary.
const THREADS: u32 = 512;

/// The number of words of a row's text: an unused first word, and the drawn token after it.
const STRIDE: usize = 2;
const DRAWN_AT: usize = 1;

/// A draw from the logits of one row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowDraw<'r> {
    pub noise: &'r Noise,
    /// The position of the token in its text.
    pub position: usize,
    /// The ids that are not allowed.
    pub excluded: &'r [u32],
}

/// A sampler on a device.
pub(crate) struct VocabularySampler<'d> {
    gpu: Box<dyn Gpu + 'd>,
    batch: BatchArguments,
    draw: DrawArguments,
    lasts: u64,
    /// The lists of excluded ids that were uploaded, with their addresses.
    lists: HashMap<Vec<u32>, u64>,
}

impl<'d> VocabularySampler<'d> {
    /// Allocates memory for at most `rows` draws at once.
    ///
    /// # Errors
    /// If the device has no room.
    pub(crate) fn new(mut gpu: Box<dyn Gpu + 'd>, rows: usize, sampling: &Sampling) -> Result<Self> {
        let batch = BatchArguments {
            rows: gpu.allocate(size_of::<DeviceRow>() * rows)?,
            texts: gpu.allocate(4 * rows * STRIDE)?,
            ends: gpu.allocate(4 * rows)?,
            ended: gpu.allocate(4)?,
            work: gpu.allocate(8 * WorkDone::NUMBERS)?,
            count: rows as u32,
            stride: STRIDE as u32,
        };
        let lasts = gpu.allocate(4 * rows)?;
        Ok(VocabularySampler {
            gpu,
            batch,
            draw: DrawArguments::from(sampling),
            lasts,
            lists: HashMap::new(),
        })
    }

    /// Draws one token for each row of `logits`, which is `[rows, vocab]` in f32 on the device. The logits are overwritten.
    ///
    /// # Errors
    /// If a row has no allowed token, a logit is not finite, or the device fails.
    pub(crate) fn draw(&mut self, logits: &Tensor, draws: &[RowDraw<'_>]) -> Result<Vec<u32>> {
        let (rows, vocab) = logits.dims2().map_err(failed)?;
        if rows != draws.len() || rows > self.batch.count as usize {
            return Err(Error::internal("the sampler", "draws and rows of logits are not as many"));
        }
        let address = self.gpu.address(logits)?;
        let state = |draw: &RowDraw<'_>| DeviceRow::drawing(draw.noise, draw.position as u32).words();
        self.gpu.write(self.batch.rows, &words(&draws.iter().flat_map(state).collect::<Vec<u32>>()))?;
        self.gpu.write(self.batch.ends, &words(&vec![0; rows]))?;
        let batch = BatchArguments { count: rows as u32, ..self.batch };
        // Rows with the same excluded ids are drawn together; mostly these are all rows.
        let mut done = vec![false; rows];
        while let Some(first) = done.iter().position(|done| !done) {
            let excluded = draws[first].excluded;
            let lasts: Vec<u32> = (0..rows)
                .map(|row| if !done[row] && draws[row].excluded == excluded { 0 } else { u32::MAX })
                .collect();
            done.iter_mut().zip(&lasts).for_each(|(done, last)| *done |= *last == 0);
            self.gpu.write(self.lasts, &words(&lasts))?;
            let list = self.list(excluded)?;
            let stride = words(&[vocab as u32]);
            let arguments = [
                batch.bytes(),
                self.draw.bytes(),
                argument(self.lasts),
                argument(address),
                stride.clone(),
                stride,
                argument(list),
                words(&[excluded.len() as u32]),
                // The host checks for the end of a text.
                argument(0),
                words(&[0]),
            ];
            self.gpu.launch("choose_any", [rows as u32, 1, 1], THREADS, &arguments)?;
        }
        let ends = self.numbers(self.batch.ends, rows)?;
        match ends.into_iter().find_map(RowEnd::from_number) {
            Some(RowEnd::NothingAllowed) => return Err(nothing_allowed()),
            Some(RowEnd::NotFinite) => return Err(not_finite()),
            _ => {}
        }
        let texts = self.numbers(self.batch.texts, rows * STRIDE)?;
        Ok(texts.chunks_exact(STRIDE).map(|text| text[DRAWN_AT]).collect())
    }

    /// Returns the address of a list of ids on the device; uploads it the first time.
    fn list(&mut self, ids: &[u32]) -> Result<u64> {
        if let Some(address) = self.lists.get(ids) {
            return Ok(*address);
        }
        let address = self.gpu.allocate(4 * ids.len())?;
        self.gpu.write(address, &words(ids))?;
        self.lists.insert(ids.to_vec(), address);
        Ok(address)
    }

    fn numbers(&mut self, address: u64, count: usize) -> Result<Vec<u32>> {
        let bytes = self.gpu.read(address, 4 * count)?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect())
    }
}
