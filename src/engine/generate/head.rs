//! The logits that a step needs, and the candidates for the draw.

use candle_core::Tensor;
use rayon::prelude::*;

use super::Prompt;
use super::row::Row;
use crate::model::{Decoder, FEW_ROWS, Feed, failed};
use drift_core::Result;
use drift_core::constraint::{Mask, State};
use drift_core::sampling::{Candidates, most_likely};

/// The logits that a row needs from the LM head.
#[derive(Debug, Clone, Copy)]
pub(super) enum NeededLogits<'p> {
    /// None: the token is known.
    Forced(u32),
    /// The logits of these ids.
    Listed(&'p [u32]),
    /// All logits, because the allowed tokens may depend on them.
    Full,
}

impl<'p> NeededLogits<'p> {
    /// Returns the logits that the constraint of a row needs.
    pub(super) fn from_row(row: &Row<'p>) -> Self {
        let constraint = &row.prompt.constraint;
        if row.logs() || constraint.wants_argmax() {
            return NeededLogits::Full;
        }
        match constraint.mask(&row.state) {
            Mask::Forced(token) if row.watches(token) => NeededLogits::Full,
            Mask::Forced(token) => NeededLogits::Forced(token),
            // Masks come before temperature, top-k and so on, so forbidden tokens have no influence.
            Mask::Only(ids) => NeededLogits::Listed(ids),
            Mask::Any | Mask::Except(_) => NeededLogits::Full,
        }
    }
}

/// The remaining work for a row.
#[derive(Debug, Clone, Copy)]
pub(super) enum Choice<'a> {
    /// None: only this token is allowed.
    Forced(u32),
    /// A draw from these candidates.
    Draw(Candidates<'a>),
}

impl<'a> Choice<'a> {
    /// Returns the choice that a mask leaves among all logits.
    pub(super) fn new(full: &'a [f32], mask: Mask<'a>) -> Self {
        match mask {
            Mask::Any => Choice::Draw(Candidates::Except(full, &[])),
            Mask::Except(ids) => Choice::Draw(Candidates::Except(full, ids)),
            Mask::Only(ids) => Choice::Draw(Candidates::Only(full, ids)),
            Mask::Forced(token) => Choice::Forced(token),
        }
    }

    /// Returns the choice that a mask leaves among the logits of some sorted ids, or among all logits if `known` is `None`.
    pub(super) fn of_known(logits: &'a [f32], known: Option<&'a [u32]>, mask: Mask<'a>) -> Self {
        match (known, mask) {
            (Some(known), Mask::Only(ids)) => Choice::Draw(Candidates::Listed { logits, known, ids }),
            (_, mask) => Choice::new(logits, mask),
        }
    }
}

/// The logits of one step.
pub(super) struct Logits {
    /// `[rows with all logits, vocab]`
    full: Vec<f32>,
    /// `[rows with all logits, vocab]` on the device that computed them, in place of `full`.
    on_device: Option<Tensor>,
    vocab: usize,
    /// For each row of the batch, the index of its last token in `full`.
    full_at: Vec<Option<usize>>,
    /// `[rows with some logits, known]`
    listed: Vec<f32>,
    /// The sorted ids of the columns of `listed`.
    known: Vec<u32>,
    /// For each row of the batch, its index in `listed`.
    listed_at: Vec<Option<usize>>,
}

impl Logits {
    /// Returns the logits that the rows want, from the hidden states of their last tokens (`[rows, hidden]`).
    ///
    /// If `stays`, the logits of rows that want all of them stay on the device that computed them.
    pub(super) fn last(
        decoder: &Decoder,
        hidden: &Tensor,
        wants: &[NeededLogits<'_>],
        stays: bool,
    ) -> Result<Self> {
        let vocab = decoder.config().vocab_size;
        let mut known: Vec<u32> = Vec::new();
        for want in wants {
            if let NeededLogits::Listed(ids) = want {
                known.extend_from_slice(ids);
            }
        }
        known.sort_unstable();
        known.dedup();
        // A tokenizer may have ids for which the model has no row; they cannot be drawn.
        known.retain(|id| (*id as usize) < vocab);
        // Selected rows of the head are faster only if they are few, because the whole head is read in one piece.
        let are_few = known.len() * FEW_ROWS <= vocab && !known.is_empty();
        let takes_listed = |want: &NeededLogits<'_>| matches!(want, NeededLogits::Listed(_)) && are_few;
        let takes_full =
            |want: &NeededLogits<'_>| !matches!(want, NeededLogits::Forced(_)) && !takes_listed(want);
        let (full_rows, full_at) = positions(wants, takes_full);
        let (listed_rows, listed_at) = positions(wants, takes_listed);
        let (mut full, mut listed, mut on_device) = (Vec::new(), Vec::new(), None);
        if !full_rows.is_empty() && stays {
            on_device = Some(decoder.logits_on_device(&pick(hidden, full_rows)?)?);
        } else if !full_rows.is_empty() {
            full = flat(&decoder.logits(&pick(hidden, full_rows)?)?)?;
        }
        if !listed_rows.is_empty() {
            listed = flat(&decoder.logits_of(&pick(hidden, listed_rows)?, &known)?)?;
        }
        Ok(Logits { full, on_device, vocab, full_at, listed, known, listed_at })
    }

    /// Returns all logits of all fed tokens (`[tokens, hidden]`).
    pub(super) fn all(decoder: &Decoder, hidden: &Tensor, feeds: &[Feed<'_>]) -> Result<Self> {
        let full = flat(&decoder.logits(hidden)?)?;
        let full_at = lasts(feeds).into_iter().map(Some).collect();
        let (listed, known, listed_at) = (Vec::new(), Vec::new(), vec![None; feeds.len()]);
        let vocab = decoder.config().vocab_size;
        Ok(Logits { full, on_device: None, vocab, full_at, listed, known, listed_at })
    }

    /// Returns the number of computed logits, summed over the rows of the batch.
    pub(super) fn rows(&self) -> usize {
        self.full.len() + self.stayed() + self.listed.len()
    }

    /// Returns the number of rows of the LM head's weights that were read.
    pub(super) fn weights(&self) -> usize {
        let full = if self.full.is_empty() && self.on_device.is_none() { 0 } else { self.vocab };
        full + if self.listed.is_empty() { 0 } else { self.known.len() }
    }

    /// Returns the number of logits that stayed on the device.
    fn stayed(&self) -> usize {
        self.on_device.as_ref().map_or(0, Tensor::elem_count)
    }

    /// Returns all logits that stayed on the device, `[rows, vocab]`, and for each row of the batch its index there.
    pub(super) fn on_device(&self) -> Option<(&Tensor, &[Option<usize>])> {
        Some((self.on_device.as_ref()?, &self.full_at))
    }

    /// Copies the logits that stayed on the device to the host.
    ///
    /// # Errors
    /// If the device fails.
    pub(super) fn move_to_host(&mut self) -> Result<()> {
        if let Some(logits) = self.on_device.take() {
            self.full = flat(&logits)?;
        }
        Ok(())
    }

    /// Returns all logits after the last token of a row, if they are on the host.
    pub(super) fn full(&self, row: usize) -> Option<&[f32]> {
        self.before_last(row, 0)
    }

    /// Returns all logits `back` tokens before the last one of a row, if they are on the host.
    pub(super) fn before_last(&self, row: usize, back: usize) -> Option<&[f32]> {
        let at = self.full_at[row]?.checked_sub(back)?;
        self.full.get(at * self.vocab..(at + 1) * self.vocab)
    }

    /// Returns the choice for a row that wanted `want`.
    pub(super) fn choice<'a>(
        &'a self,
        row: usize,
        want: NeededLogits<'a>,
        prompt: &'a Prompt,
        state: &State,
    ) -> Choice<'a> {
        match (want, self.listed_at[row], self.full(row)) {
            (NeededLogits::Forced(token), ..) => Choice::Forced(token),
            (NeededLogits::Listed(ids), Some(at), _) => {
                let logits = &self.listed[at * self.known.len()..(at + 1) * self.known.len()];
                Choice::Draw(Candidates::Listed { logits, known: &self.known, ids })
            }
            (_, _, full) => Choice::new(full.unwrap_or_default(), prompt.constraint.mask(state)),
        }
    }
}

/// Returns the rows that satisfy `passes`, and for each row its index among them.
fn positions(
    wants: &[NeededLogits<'_>],
    passes: impl Fn(&NeededLogits<'_>) -> bool,
) -> (Vec<u32>, Vec<Option<usize>>) {
    let mut rows = Vec::new();
    let at = (0u32..).zip(wants).map(|(row, want)| {
        passes(want).then(|| {
            rows.push(row);
            rows.len() - 1
        })
    });
    let at = at.collect();
    (rows, at)
}

/// For each feed, the index of its last token among all fed tokens.
pub(super) fn lasts(feeds: &[Feed<'_>]) -> Vec<usize> {
    let mut end = 0;
    let last = |feed: &Feed<'_>| {
        end += feed.tokens.len();
        end - 1
    };
    feeds.iter().map(last).collect()
}

/// Returns the most likely token of the unmasked model after each of the hidden states `rows`.
pub(super) fn most_likely_after(decoder: &Decoder, hidden: &Tensor, rows: Vec<u32>) -> Result<Vec<u32>> {
    let logits = flat(&decoder.logits(&pick(hidden, rows)?)?)?;
    let rows = logits.par_chunks(decoder.config().vocab_size);
    rows.map(|logits| most_likely(Candidates::Except(logits, &[]))).collect()
}

/// Some rows of a matrix.
pub(super) fn pick(hidden: &Tensor, rows: Vec<u32>) -> Result<Tensor> {
    let pick = || match rows.len() == hidden.dim(0)? {
        // Cloning a tensor only copies its handle, while selecting copies the data.
        true => Ok(hidden.clone()),
        false => hidden.index_select(&Tensor::new(rows, hidden.device())?, 0),
    };
    pick().map_err(failed)
}

/// Returns the logits of some ids for each of the hidden states, or of the whole vocabulary.
pub(super) fn rows_of_logits(
    decoder: &Decoder,
    hidden: &Tensor,
    ids: Option<&[u32]>,
) -> Result<Vec<Vec<f32>>> {
    let logits = match ids {
        Some(ids) => decoder.logits_of(hidden, ids)?,
        None => decoder.logits(hidden)?,
    };
    logits.to_vec2().map_err(failed)
}

fn flat(logits: &Tensor) -> Result<Vec<f32>> {
    logits.flatten_all().and_then(|logits| logits.to_vec1()).map_err(failed)
}
