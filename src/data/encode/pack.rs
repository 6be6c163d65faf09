//! Packing: units of several conformers that fit a number of tokens. No text is cut.
//!
//! A unit has conformers of one molecule behind one prompt, or of any molecules, or worked examples of others before a target. Its tokens are
//! those of its whole text, encoded at once: a token may cross the border of two texts. What a conformer adds to a unit is only an
//! estimate, by which units are chosen; each unit is then counted, and what does not fit moves to another one.

mod counter;
mod items;
mod units;

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Serialize;

use self::counter::Counter;
use self::items::{Item, ItemReader};
use self::units::{Prompts, Unit, by_examples, packed};
use super::kept::{EncodedFiles, KeptBatch, refuse_pipes};
use super::{EncodePlan, EncodeReport, LineSink};
use crate::corpus::{Files, Listing, SKIPPED_LISTED, SkippedRecord};
use crate::parameter;
use crate::shard::files::FilesSummary;
use drift_core::{Error, Job, Result, Tokenizer};

/// The most conformers that are packed together, so that memory does not grow with a molecule or the input.
const MOST_TOGETHER: usize = 4_096;

/// What a unit has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackedUnits {
    /// Conformers of one molecule behind one prompt. They must follow one another in the input.
    Molecule,
    /// Conformers of any molecules, each behind its own prompt.
    Mixed,
    /// A target, and before it up to so many conformers of other molecules, each with its own prompt: the last ones before it in the
    /// input, of each molecule the last conformer.
    Examples(usize),
}

/// How texts are packed.
#[derive(Clone)]
pub struct PackPlan {
    /// The most tokens of a unit, with those that the tokenizer's post-processor adds.
    pub tokens: usize,
    /// The tokenizer that counts.
    pub tokenizer: Tokenizer,
    /// What a unit has.
    pub units: PackedUnits,
    /// What stands between two texts of a unit; `None` for nothing between conformers of one prompt, and a line end between texts with
    /// prompts, as in 3DMolGen's prompts with examples.
    pub separator: Option<String>,
}

impl PackPlan {
    fn separator(&self) -> &str {
        let usual = if self.units == PackedUnits::Molecule { "" } else { "\n" };
        self.separator.as_deref().unwrap_or(usual)
    }
}

/// How texts were packed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PackReport {
    /// The most tokens of a unit.
    pub tokens_per_unit: usize,
    /// The name of the tokenizer.
    pub tokenizer: String,
    /// What stands between the texts of a unit.
    pub separator: String,
    /// The number of units, one line each.
    pub units: u64,
    /// The number of conformers in them; an example counts wherever it stands.
    pub conformers: u64,
    /// The number of tokens in them.
    pub tokens: u64,
    /// The share of the units' tokens that is filled.
    pub filled_share: f64,
    /// The number of conformers that alone take more tokens than a unit has. They are also counted in `skipped`.
    pub too_long: u64,
}

/// Counts of packed units.
#[derive(Debug, Default)]
struct PackCounts {
    units: u64,
    conformers: u64,
    tokens: u64,
    too_long: u64,
    /// Those of them with a coordinate beyond the range of the encoding.
    too_long_out_of_range: u64,
    /// The first conformers that are too long.
    records: Vec<SkippedRecord>,
}

/// Writes a line for each unit, and reports the conformers that take more tokens than a unit has.
///
/// # Errors
/// The errors of [`encode`](super::encode()); also if the tokenizer cannot encode a text, or a unit has no token.
pub fn encode_packed(
    plan: &EncodePlan,
    pack: &PackPlan,
    job: &Job,
    out: &mut LineSink<'_>,
) -> Result<EncodeReport> {
    if pack.tokens == 0 {
        let problem = "a unit without tokens holds nothing";
        return Err(Error::parameter(parameter::PACK, problem, "give the context length of the model"));
    }
    let options = plan.read_options();
    refuse_pipes(&Files { inputs: plan.inputs.clone(), options: options.clone() }, &plan.drop)?;
    let listing = Listing::from_inputs(&plan.inputs)?;
    let files =
        EncodedFiles { listing: &listing, files: 0..listing.len(), options: &options, drop: &plan.drop };
    let mut packer = Packer::new(pack, ItemReader::new(options.reading.encoding))?;
    let mut came = files.read(job, &mut |kept| packer.add(&kept, out))?;
    packer.finish(out)?;
    let Packer { counts, reader, .. } = packer;
    came.notes = reader.notes.into_iter().map(|(note, count)| (note.to_owned(), count)).collect();
    counts.add_to(&mut came);
    came.summary.refuse_if_empty(&plan.inputs)?;
    let report = counts.report(pack);
    Ok(EncodeReport { pack: Some(report), ..EncodeReport::of(came, options.reading.encoding) })
}

/// Packs conformers as they are read.
struct Packer<'p> {
    plan: &'p PackPlan,
    counter: Counter<'p>,
    reader: ItemReader,
    /// The conformers of the last molecule so far, or those that may be examples.
    waiting: Vec<Item>,
    counts: PackCounts,
}

impl<'p> Packer<'p> {
    fn new(plan: &'p PackPlan, reader: ItemReader) -> Result<Self> {
        let counter = Counter::new(&plan.tokenizer, plan.tokens, plan.separator())?;
        Ok(Packer { plan, counter, reader, waiting: Vec::new(), counts: PackCounts::default() })
    }

    fn add(&mut self, kept: &KeptBatch, out: &mut LineSink<'_>) -> Result<()> {
        let mut items = Vec::new();
        for item in self.reader.items(kept, self.counter)? {
            if item.alone <= self.plan.tokens {
                items.push(item);
            } else {
                self.counts.add_too_long(&item, self.plan.tokens);
            }
        }
        match self.plan.units {
            PackedUnits::Molecule | PackedUnits::Mixed => {
                let runs = self.finished_runs(items);
                self.put_runs(&runs, out)
            }
            PackedUnits::Examples(most) => self.put_targets(items, most, out),
        }
    }

    /// Returns the runs of conformers to which no more are added: molecules, or so many conformers of any.
    fn finished_runs(&mut self, items: Vec<Item>) -> Vec<Vec<Item>> {
        let mut runs = Vec::new();
        for item in items {
            let is_other = self.plan.units == PackedUnits::Molecule
                && self.waiting.last().is_some_and(|last| last.smiles != item.smiles);
            if is_other || self.waiting.len() == MOST_TOGETHER {
                runs.push(std::mem::take(&mut self.waiting));
            }
            self.waiting.push(item);
        }
        runs
    }

    fn put_runs(&mut self, runs: &[Vec<Item>], out: &mut LineSink<'_>) -> Result<()> {
        let is_molecule = self.plan.units == PackedUnits::Molecule;
        let prompts = if is_molecule { Prompts::One } else { Prompts::Each };
        let all: Vec<Result<Vec<Unit>>> =
            runs.par_iter().map(|run| packed(run, prompts, self.counter)).collect();
        all.into_iter().try_for_each(|units| self.counts.put(&units?, out))
    }

    /// Packs targets with the conformers before them, and keeps those that may be examples of the next ones.
    fn put_targets(&mut self, items: Vec<Item>, most: usize, out: &mut LineSink<'_>) -> Result<()> {
        let first = self.waiting.len();
        self.waiting.extend(items);
        let all = &self.waiting;
        let targets: Vec<Result<Unit>> = (first..all.len())
            .into_par_iter()
            .map(|at| by_examples(&all[..=at], most, self.counter))
            .collect();
        for unit in targets {
            self.counts.put(&[unit?], out)?;
        }
        // One more molecule than there are examples: the last one may go on.
        let kept = units::last_of_molecules(&self.waiting, most.saturating_add(1));
        let mut is_kept = vec![false; self.waiting.len()];
        kept.into_iter().for_each(|at| is_kept[at] = true);
        let mut is_kept = is_kept.into_iter();
        self.waiting.retain(|_| is_kept.next() == Some(true));
        Ok(())
    }

    fn finish(&mut self, out: &mut LineSink<'_>) -> Result<()> {
        if matches!(self.plan.units, PackedUnits::Examples(_)) || self.waiting.is_empty() {
            return Ok(());
        }
        let last = std::mem::take(&mut self.waiting);
        self.put_runs(&[last], out)
    }
}

impl PackCounts {
    fn put(&mut self, units: &[Unit], out: &mut LineSink<'_>) -> Result<()> {
        for unit in units {
            self.units += 1;
            self.conformers += unit.items as u64;
            self.tokens += unit.tokens as u64;
            out(&unit.line)?;
        }
        Ok(())
    }

    fn add_too_long(&mut self, item: &Item, most: usize) {
        self.too_long += 1;
        self.too_long_out_of_range += u64::from(item.is_out_of_range);
        if self.records.len() < SKIPPED_LISTED {
            let reason = format!("{TOO_LONG}: it takes {} tokens alone, of {most}", item.alone);
            self.records.push(item.place.skipped(reason));
        }
    }

    /// Counts the conformers that are too long as skipped.
    fn add_to(&self, came: &mut FilesSummary) {
        came.summary.skip_read(self.too_long, self.too_long_out_of_range, self.records.clone());
        let reasons: &mut BTreeMap<String, u64> = &mut came.skipped_by_reason;
        if self.too_long > 0 {
            *reasons.entry(TOO_LONG.to_owned()).or_default() += self.too_long;
        }
    }

    fn report(&self, plan: &PackPlan) -> PackReport {
        let room = self.units as f64 * plan.tokens as f64;
        PackReport {
            tokens_per_unit: plan.tokens,
            tokenizer: plan.tokenizer.name.clone(),
            separator: plan.separator().to_owned(),
            units: self.units,
            conformers: self.conformers,
            tokens: self.tokens,
            filled_share: if self.units > 0 { self.tokens as f64 / room } else { 0.0 },
            too_long: self.too_long,
        }
    }
}

/// Why a conformer is not packed.
const TOO_LONG: &str = "longer than a unit";
