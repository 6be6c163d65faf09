//! What the text of an encoding alone loses: every conformer written and read back.

use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;
use serde::Serialize;

use crate::placeholder::{Reservoir, key_of_place};
use drift_core::encoding::Encoding;
use drift_core::error::Result;
use drift_core::job::Job;
use drift_core::text::skeleton;
use drift_data::audit::align::superposed;
use drift_data::audit::chemistry::Chemistry;
use drift_data::corpus::{AtomOrder, Conformer};

/// Conformers whose tokens are counted.
pub const SAMPLE: usize = 2_000;

/// What an encoding loses on a corpus.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct TextLoss {
    /// Mean RMSD of what is read back, after superposition, in Å; none of codes.
    pub rmsd_angstrom: Option<f64>,
    /// The atom that is farthest off after superposition, in Å.
    pub worst_atom_angstrom: Option<f64>,
    /// Share of the conformers that are valid by `drift audit` and stay so; none if no conformer is.
    pub valid_share: Option<f64>,
    /// Conformers with a coordinate beyond the range, written as the end of the range.
    pub out_of_range_conformers: u64,
    /// Mean over conformers of the sum, over coordinates, of the natural logarithm of the cell's width in Å:
    /// nats a conformer of two models compare only less the difference of these.
    pub cell_nats: Option<f64>,
}

/// The losses of several encodings, summed over a corpus in its order.
pub struct Losses {
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
    /// Conformers that are valid before, and those of them that are afterwards.
    valid: [u64; 2],
}

/// One conformer in one encoding.
struct Lost {
    rmsd: f64,
    worst: f64,
    nats: f64,
    out_of_range: bool,
    valid: bool,
}

impl Losses {
    /// Nothing yet.
    pub fn new(encodings: &[Encoding], seed: u64) -> Self {
        Losses {
            encodings: encodings.to_vec(),
            sums: vec![Sum::default(); encodings.len()],
            seed,
            seen: 0,
            sample: Reservoir::new(SAMPLE),
        }
    }

    /// Adds conformers, whose coordinates are values of `from`.
    ///
    /// # Errors
    /// If the job was cancelled.
    pub fn add(&mut self, conformers: &[Conformer], from: Encoding, job: &Job) -> Result<()> {
        // Of these conformers alone: all molecules of a corpus would be gigabytes.
        let mut checkers: HashMap<&Arc<str>, Option<Chemistry>> = HashMap::new();
        for conformer in conformers {
            let key = key_of_place(self.seed, self.seen);
            self.seen += 1;
            // Asked first, since a conformer is cloned to be offered and most are not taken.
            if self.sample.takes(key) {
                self.sample.offer(key, conformer.clone());
            }
            // A file's own order has no SMILES to judge by.
            if conformer.order == AtomOrder::Smiles {
                let checker = || Chemistry::from_smiles(&skeleton::smiles(&conformer.skeleton)).ok();
                checkers.entry(&conformer.skeleton).or_insert_with(checker);
            }
        }
        let lost: Vec<(bool, Vec<Option<Lost>>)> = conformers
            .par_iter()
            .map(|conformer| {
                job.check()?;
                let points: Vec<[f64; 3]> =
                    conformer.coordinates.iter().filter_map(|values| from.angstrom(values)).collect();
                let checker = checkers.get(&conformer.skeleton).and_then(Option::as_ref);
                let valid = |points: &[[f64; 3]]| {
                    checker.and_then(|checker| checker.check(points)).is_some_and(|found| found.is_valid())
                };
                // What was not valid before is no loss of the encoding.
                let before = valid(&points);
                let lost = self.encodings.iter().map(|encoding| {
                    let mut lost = lost(&points, *encoding)?;
                    // Judged as it is read back, without superposition: validity does not depend on where a molecule lies.
                    lost.0.valid = before && valid(&lost.1);
                    Some(lost.0)
                });
                Ok((before, lost.collect()))
            })
            .collect::<Result<_>>()?;
        // One after another: sums of floats depend on their order.
        for (before, lost) in lost {
            for (sum, lost) in self.sums.iter_mut().zip(lost) {
                sum.add(before, lost);
            }
        }
        Ok(())
    }

    /// How many conformers there were.
    pub fn conformers(&self) -> u64 {
        self.seen
    }

    /// The loss of each encoding, and a sample of the conformers, the same for a seed.
    pub fn finish(self) -> (Vec<TextLoss>, Vec<Conformer>) {
        (self.sums.iter().map(Sum::loss).collect(), self.sample.into_items())
    }
}

impl Sum {
    fn add(&mut self, valid_before: bool, lost: Option<Lost>) {
        // Codes and conformers that cannot be written say nothing; means are over the others.
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

/// Writes points and reads them back; none for an encoding of codes, or coordinates that cannot be written at all.
fn lost(points: &[[f64; 3]], encoding: Encoding) -> Option<(Lost, Vec<[f64; 3]>)> {
    let values: Vec<_> = points.iter().map(|point| encoding.quantize(*point).ok()).collect::<Option<_>>()?;
    let read: Vec<[f64; 3]> = values.iter().map(|values| encoding.angstrom(values)).collect::<Option<_>>()?;
    let number = encoding.number();
    let (mut nats, mut out_of_range) = (0.0, false);
    for (axis, value) in values.iter().flat_map(|values| values.iter().enumerate()) {
        let [low, high] = number.cell(*value, axis)?;
        // A tail is half of the line: its width is infinite, and is left out of the sum.
        if number.is_tail(*value, axis) {
            out_of_range = true;
        } else {
            nats += (high - low).ln();
        }
    }
    let distance =
        |(a, b): (&[f64; 3], &[f64; 3])| (0..3).map(|axis| (a[axis] - b[axis]).powi(2)).sum::<f64>().sqrt();
    let off: Vec<f64> = superposed(&read, points).iter().zip(points).map(distance).collect();
    let worst = off.iter().copied().fold(0.0, f64::max);
    let rmsd = (off.iter().map(|off| off * off).sum::<f64>() / off.len().max(1) as f64).sqrt();
    Some((Lost { rmsd, worst, nats, out_of_range, valid: false }, read))
}
