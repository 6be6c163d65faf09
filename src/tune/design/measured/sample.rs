//! The part of a corpus that is used for learning.

use std::collections::BTreeMap;

use super::histogram::{BlockTokenStats, Histogram};
use crate::design::scheme::grammar::{Grammar, in_words};
use crate::design::scheme::pieces::{PieceTable, SlotContents};
use crate::parameter;
use drift_core::encoding::{DecimalForms, Fixed};
use drift_core::text::{self, SMILES_CLOSE, SMILES_OPEN, skeleton};
use drift_core::{Encoding, Error, Job, Result};
use drift_data::corpus::{Conformer, Conformers};

/// The largest number of blocks used for learning; later conformers are only measured.
pub const MAX_BLOCKS: u64 = 1 << 20;

/// The first conformers of a corpus, with up to [`MAX_BLOCKS`] blocks.
pub struct LearningSample {
    /// The conformers.
    pub conformers: Vec<Conformer>,
    /// The number of their blocks.
    pub blocks: u64,
    /// The number of conformers beyond the sample.
    pub left_out: u64,
}

impl LearningSample {
    /// Reads a corpus once, in the given encoding.
    ///
    /// # Errors
    /// If the corpus cannot be read, contains no conformer, or is written in another encoding.
    pub fn read(corpus: &dyn Conformers, encoding: Encoding, job: &Job) -> Result<Self> {
        read_as(encoding, corpus)?;
        let mut sample = LearningSample { conformers: Vec::new(), blocks: 0, left_out: 0 };
        let summary = corpus.read(job, &mut |batch| {
            for conformer in batch.conformers {
                // A conformer that begins below the limit is included whole.
                if sample.blocks < MAX_BLOCKS {
                    sample.blocks += conformer.coordinates.len() as u64;
                    sample.conformers.push(conformer);
                } else {
                    sample.left_out += 1;
                }
            }
            Ok(())
        })?;
        written_in(encoding, summary.written)?;
        Ok(sample)
    }

    /// Returns the coordinates of every block.
    pub fn numbers(&self) -> impl Iterator<Item = &[Fixed; 3]> {
        self.conformers.iter().flat_map(|conformer| &conformer.coordinates)
    }

    /// Returns the blocks that a grammar includes.
    fn blocks_in(&self, grammar: Grammar) -> impl Iterator<Item = SlotContents> {
        self.numbers().filter_map(move |numbers| SlotContents::from_numbers(numbers, grammar))
    }

    /// For each string of a table, how often it is a piece of a block.
    pub(crate) fn piece_counts(&self, table: &PieceTable) -> Vec<u64> {
        let mut counts = vec![0; table.strings.len()];
        for block in self.blocks_in(table.grammar) {
            table.of_block(&block).for_each(|string| counts[string] += 1);
        }
        counts
    }

    /// Returns the statistics of the blocks in the range, if each string of a table takes as many tokens as `lengths` states.
    pub fn block_tokens(&self, table: &PieceTable, lengths: &[usize]) -> BlockTokenStats {
        let mut blocks = Histogram::EMPTY;
        for block in self.blocks_in(table.grammar) {
            blocks.count(table.of_block(&block).map(|string| lengths[string]).sum());
        }
        blocks.tokens()
    }

    /// Returns the strings between blocks, before the first and after the last, with their counts. The tags of a conformer are not
    /// included, since they are separate tokens.
    pub fn gaps(&self) -> BTreeMap<String, u64> {
        let mut gaps: BTreeMap<&str, u64> = BTreeMap::new();
        let parts = self.conformers.iter().flat_map(|conformer| conformer.skeleton.split("<>"));
        parts.filter(|part| !part.is_empty()).for_each(|part| *gaps.entry(part).or_default() += 1);
        gaps.into_iter().map(|(part, count)| (part.to_owned(), count)).collect()
    }
}

/// Refuses a corpus whose coordinates are read with other decimals, or in another encoding, than the blocks that get new tokens.
///
/// # Errors
/// If they differ.
pub fn read_as(encoding: Encoding, corpus: &dyn Conformers) -> Result<()> {
    let reading = corpus.reading();
    if !encoding.is_decimal() || !reading.encoding.is_decimal() {
        if reading.encoding == encoding {
            return Ok(());
        }
        let problem = format!("is read as {}, not {encoding}", reading.encoding);
        let remedy = "read it in the encoding of the blocks that change";
        return Err(Error::parameter(parameter::CORPUS, problem, remedy));
    }
    let (read, own) = (reading.precision(), encoding.precision());
    if read == own {
        return Ok(());
    }
    let problem = format!("is read with {}, not {}", in_words(read), in_words(own));
    Err(Error::parameter(parameter::CORPUS, problem, "read it with the decimals of the blocks that change"))
}

/// Refuses a corpus that is written only in the encoding that gets no new tokens.
///
/// # Errors
/// If it is.
pub fn written_in(encoding: Encoding, written: DecimalForms) -> Result<()> {
    // A corpus may agree with both encodings, or be mixed. It is refused only if it is entirely in the other one.
    if written.agrees_with(encoding) || !written.agrees_with(encoding.other()) {
        return Ok(());
    }
    let (own, other) = (encoding.name(), encoding.other().name());
    let problem =
        format!("is written in the {other} dialect; but the extension changes blocks of the {own} dialect");
    Err(Error::parameter(parameter::CORPUS, problem, format!("give a corpus in the {own} dialect")))
}

/// Returns the text of a conformer as a model writes it.
pub(crate) fn conformer_text(conformer: &Conformer, encoding: Encoding) -> String {
    text::write(&conformer.skeleton, &conformer.coordinates, encoding)
}

/// Returns the text of a conformer with its prompt, as used to train tokenizers from scratch.
pub fn whole_text(conformer: &Conformer, encoding: Encoding) -> String {
    let smiles = skeleton::smiles(&conformer.skeleton);
    let answer = text::tagged(&conformer_text(conformer, encoding));
    format!("{SMILES_OPEN}{smiles}{SMILES_CLOSE}{answer}")
}
