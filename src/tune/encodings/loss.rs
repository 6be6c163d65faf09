//! Measures the loss of an encoding's text itself, by writing every conformer and reading it back.

use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;
use serde::Serialize;

use crate::placeholder::{Reservoir, key_of_place};
use drift_core::text::skeleton;
use drift_core::vector::distance;
use drift_core::{Encoding, Job, Result};
use drift_data::audit::align::superposed;
use drift_data::audit::chemistry::Chemistry;
use drift_data::corpus::{AtomOrder, Conformer};

/// The number of conformers whose tokens are counted.
pub const SAMPLE: usize = 2_000;

/// The loss of an encoding on a corpus.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct TextLoss {
    /// The mean RMSD of the conformers after reading back and superposition, in Å; null for codes.
    pub rmsd_angstrom: Option<f64>,
    /// The largest deviation of any atom after superposition, in Å.
    pub worst_atom_angstrom: Option<f64>,
    /// The share of the conformers valid by `drift audit` that are still valid after reading back; null if none is valid.
    pub valid_share: Option<f64>,
    /// The number of conformers with a coordinate outside the range, which is written as the end of the range.
    pub out_of_range_conformers: u64,
    /// The sum, over a conformer's coordinates, of the natural logarithm of the cell's width in Å; a mean over conformers. To
    /// compare the nats per conformer of models with two encodings, the difference of these values must be subtracted.
    pub cell_nats: Option<f64>,
}

/// The losses of several encodings, summed over a corpus in corpus order.
pub(crate) struct Losses {
    encodings: Vec<Encoding>,
    sums: Vec<Sum>,
    seed: u64,
    seen: u64,
    sample: Reservoir<Conformer>,
}

#[derive(Default, Clone)]
struct Sum {
    conformers: u64,
    rmsd: f64,
    worst: f64,
    nats: f64,
    out_of_range: u64,
    /// The number of conformers that are valid before, and the number of these that are valid afterwards.
    valid: [u64; 2],
}

/// The loss of one conformer in one encoding.
struct ConformerLoss {
    rmsd: f64,
    worst: f64,
    nats: f64,
    out_of_range: bool,
    valid: bool,
}

impl Losses {
    /// Losses before the first conformer.
    pub(crate) fn new(encodings: &[Encoding], seed: u64) -> Self {
        Losses {
            encodings: encodings.to_vec(),
            sums: vec![Sum::default(); encodings.len()],
            seed,
            seen: 0,
            sample: Reservoir::new(SAMPLE),
        }
    }

    /// Adds conformers whose coordinates are values of `from`.
    ///
    /// # Errors
    /// If the job was cancelled.
    pub(crate) fn add(&mut self, conformers: &[Conformer], from: Encoding, job: &Job) -> Result<()> {
        // Only for these conformers: checkers for all molecules of a corpus would take gigabytes.
        let mut checkers: HashMap<&Arc<str>, Option<Chemistry>> = HashMap::new();
        for conformer in conformers {
            let key = key_of_place(self.seed, self.seen);
            self.seen += 1;
            // Asked first, since offering a conformer requires a clone, and most are not taken.
            if self.sample.takes(key) {
                self.sample.offer(key, conformer.clone());
            }
            // A conformer in file order has no SMILES for judging its validity.
            if conformer.order == AtomOrder::Smiles {
                let checker = || Chemistry::from_smiles(&skeleton::smiles(&conformer.skeleton)).ok();
                checkers.entry(&conformer.skeleton).or_insert_with(checker);
            }
        }
        let lost: Vec<(bool, Vec<Option<ConformerLoss>>)> = conformers
            .par_iter()
            .map(|conformer| {
                job.check()?;
                let points: Vec<[f64; 3]> =
                    conformer.coordinates.iter().filter_map(|values| from.angstrom(values)).collect();
                let checker = checkers.get(&conformer.skeleton).and_then(Option::as_ref);
                let valid = |points: &[[f64; 3]]| {
                    checker.and_then(|checker| checker.check(points)).is_some_and(|found| found.is_valid())
                };
                // A conformer that was not valid before does not count as a loss of the encoding.
                let before = valid(&points);
                let lost = self.encodings.iter().map(|encoding| {
                    let mut lost = lost(&points, *encoding)?;
                    // Judged without superposition, since validity does not depend on a molecule's position and orientation.
                    lost.0.valid = before && valid(&lost.1);
                    Some(lost.0)
                });
                Ok((before, lost.collect()))
            })
            .collect::<Result<_>>()?;
        // Summed sequentially, since sums of floats depend on their order.
        for (before, lost) in lost {
            for (sum, lost) in self.sums.iter_mut().zip(lost) {
                sum.add(before, lost);
            }
        }
        Ok(())
    }

    /// Returns the number of conformers so far.
    pub(crate) fn conformers(&self) -> u64 {
        self.seen
    }

    /// Returns the loss of each encoding, and a sample of the conformers, which is the same for the same seed.
    pub(crate) fn finish(self) -> (Vec<TextLoss>, Vec<Conformer>) {
        (self.sums.iter().map(Sum::loss).collect(), self.sample.into_items())
    }
}

impl Sum {
    fn add(&mut self, valid_before: bool, lost: Option<ConformerLoss>) {
        // Codes and conformers that cannot be written are skipped; means are over the others.
        let Some(lost) = lost else { return };
        self.conformers += 1;
        self.rmsd += lost.rmsd;
        self.worst = self.worst.max(lost.worst);
        self.nats += lost.nats;
        self.out_of_range += u64::from(lost.out_of_range);
        self.valid[0] += u64::from(valid_before);
        self.valid[1] += u64::from(lost.valid);
    }

    fn loss(&self) -> TextLoss {
        if self.conformers == 0 {
            return TextLoss::default();
        }
        let mean = |sum: f64| Some(sum / self.conformers as f64);
        TextLoss {
            rmsd_angstrom: mean(self.rmsd),
            worst_atom_angstrom: Some(self.worst),
            valid_share: (self.valid[0] > 0).then(|| self.valid[1] as f64 / self.valid[0] as f64),
            out_of_range_conformers: self.out_of_range,
            cell_nats: mean(self.nats),
        }
    }
}

/// Writes points and reads them back; `None` for an encoding of codes, or if a coordinate cannot be written at all.
fn lost(points: &[[f64; 3]], encoding: Encoding) -> Option<(ConformerLoss, Vec<[f64; 3]>)> {
    let values: Vec<_> = points.iter().map(|point| encoding.quantize(*point).ok()).collect::<Option<_>>()?;
    let read: Vec<[f64; 3]> = values.iter().map(|values| encoding.angstrom(values)).collect::<Option<_>>()?;
    let number = encoding.number();
    let (mut nats, mut out_of_range) = (0.0, false);
    for (axis, value) in values.iter().flat_map(|values| values.iter().enumerate()) {
        let [low, high] = number.cell(*value, axis)?;
        // A tail is a half-line with infinite width, so it is left out of the sum.
        if number.is_tail(*value, axis) {
            out_of_range = true;
        } else {
            nats += (high - low).ln();
        }
    }
    let off: Vec<f64> = superposed(&read, points).iter().zip(points).map(|(a, b)| distance(*a, *b)).collect();
    let worst = off.iter().copied().fold(0.0, f64::max);
    let rmsd = (off.iter().map(|off| off * off).sum::<f64>() / off.len().max(1) as f64).sqrt();
    Some((ConformerLoss { rmsd, worst, nats, out_of_range, valid: false }, read))
}
