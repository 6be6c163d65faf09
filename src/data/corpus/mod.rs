//! Conformers from files: the type of a conformer, the readers (which recognize the format by content, and stream), and the HDF5
//! store.
//!
//! | content | gives |
//! | --- | --- |
//! | 3DMolGen JSONL, tables, plain enriched text, drift's store | text and coordinates |
//! | SDF, RDKit pickles | atoms with bonds |
//! | XYZ, GEOM msgpack, SPICE and ANI-1x HDF5 | atoms; bonds are perceived from distances |
//!
//! Atoms are put into the order of the molecule's SMILES, if a SMILES is known and matches the atoms ([`SmilesSource`]). Otherwise
//! the conformer gets the skeleton of a chain of bare atoms in file order, `[C]<>[O]<>`, so that its coordinates can be counted in
//! a plausible context. [`AtomOrder`] says which of the two happened.

mod archive;
pub mod atoms;
mod collect;
mod conformers;
mod damage;
pub(crate) mod eigen;
pub(crate) mod fields;
pub mod frame;
pub(crate) mod geom_pickle;
#[cfg(feature = "hdf5")]
pub mod hdf5;
mod json_columns;
mod jsonl;
pub mod labels;
mod lines;
pub mod msgpack;
pub mod names;
mod perceive;
pub mod pickle;
pub(crate) mod pickles;
mod plain;
mod queue;
pub mod rdkit;
mod read;
mod row_filter;
mod row_parts;
mod row_text;
mod sdf;
mod side_by_side;
mod smiles_lines;
mod smiles_order;
mod source;
pub mod split;
#[cfg(feature = "hdf5")]
pub mod store;
mod summary;
pub(crate) mod table;
mod tar;
mod walk;
mod xyz;

use std::sync::Arc;

pub use conformers::{Conformers, EmbeddedConformers, EmbeddedCorpus, Files, Texts, files_or_embedded};
pub use lines::MAX_LINE_BYTES;
pub use names::Names;
pub(crate) use plain::looks_like_bins;
pub(crate) use read::whole;
pub use read::{Listing, ListingIdentity, read};
pub use row_filter::RowFilter;
pub use row_parts::{Cells, RowBytes, RowLayout, RowNeeds};
#[cfg(test)]
pub(crate) use smiles_lines::MAX_SMILES_LINE_BYTES;
pub use smiles_lines::{Rest, SmilesLine};
pub(crate) use smiles_lines::{each_prompt, no_prompt, skipped_line};
pub(crate) use smiles_order::written_in_texts;
pub use smiles_order::{OpenStereo, SmilesSource};
pub use source::Format;
pub(crate) use source::is_tar;
pub use split::Part;
pub use summary::{ReadSummary, SKIPPED_LISTED};

use serde::{Deserialize, Serialize};

use drift_core::Encoding;
use drift_core::chem::SmilesNotes;
use drift_core::encoding::{DecimalForms, Fixed, Reading};
use drift_core::error::{one_line, shortened_end, shortened_middle};

/// One conformer: the coordinates of its heavy atoms and its skeleton text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conformer {
    /// The molecule's name: its SMILES if the file gives one, else its title, else the skeleton.
    pub molecule: Arc<str>,
    /// The enriched SMILES with every block emptied: `[C]<>[C]<>=[O]<>`.
    pub skeleton: Arc<str>,
    /// One entry per block of the skeleton, in units of the last decimal (10⁻⁴ Å, unless read otherwise), truncated toward zero.
    pub coordinates: Vec<[Fixed; 3]>,
    /// The encoding of `coordinates`, if they were requested [as written](Reading::as_written); otherwise it is the requested one.
    pub encoding: Option<Encoding>,
    /// The source of the atom order.
    pub order: AtomOrder,
    /// Which decimals the text agreed with, fixed or stripped; both for formats without text.
    pub written: DecimalForms,
    /// The name that the file gives the conformer, if names were requested.
    pub id: Option<Arc<str>>,
    /// What was found about `molecule`, if it is a SMILES that was parsed for this conformer.
    pub notes: Option<SmilesNotes>,
    /// The isomers that the file pools the molecule with, if any.
    pub pool: Option<Arc<IsomerPool>>,
}

impl Conformer {
    /// Returns whether a coordinate lies beyond the range of the encoding, so that its exact value is unknown.
    pub(crate) fn is_out_of_range(&self, encoding: Encoding) -> bool {
        // Decimals have no tails, so checking every coordinate of a large corpus would be wasted time.
        !encoding.is_decimal() && self.coordinates.iter().any(|values| encoding.has_tail(values))
    }

    /// Returns a conformer with its atoms in the order of a SMILES, no text that disagrees with a way of writing decimals, and no name,
    /// notes or pool.
    pub fn new(molecule: Arc<str>, skeleton: Arc<str>, coordinates: Vec<[Fixed; 3]>) -> Self {
        let (order, written) = (AtomOrder::Smiles, DecimalForms::ANY);
        Conformer {
            molecule,
            skeleton,
            coordinates,
            encoding: None,
            order,
            written,
            id: None,
            notes: None,
            pool: None,
        }
    }
}

/// Isomers whose conformers are stored under one SMILES, as in the test sets of 3DMolGen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsomerPool {
    /// The SMILES that pools them: a key of GEOM.
    pub smiles: String,
    /// The SMILES of each isomer, with its number of conformers as stated by the file.
    pub isomers: Vec<(String, u64)>,
}

/// The source of a conformer's atom order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AtomOrder {
    /// The SMILES order of enriched text.
    Smiles,
    /// The order of a file without text. The skeleton is a chain of bare atoms.
    File,
}

/// A record that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedRecord {
    /// The file; for a member of an archive, followed by `:` and the member.
    pub file: String,
    /// The record and its position: `line 12`, `molecule 3 (CCO), conformer 7`, `block 2`.
    pub record: String,
    /// The reason.
    pub reason: String,
}

impl SkippedRecord {
    /// The largest number of characters of each part in reports, since parts may quote the input.
    const CHARACTERS: usize = 240;

    /// Returns a copy for display and reports: each part on one line of bounded length.
    #[must_use]
    pub fn shown(&self) -> SkippedRecord {
        let end = |text: &str| shortened_end(&one_line(text), Self::CHARACTERS);
        let file = shortened_middle(&one_line(&self.file), Self::CHARACTERS);
        SkippedRecord { file, record: end(&self.record), reason: end(&self.reason) }
    }
}

/// What a reader passes on at a time: at most a few megabytes, in file order.
#[derive(Debug, Default)]
pub struct Batch {
    /// The records that were read.
    pub conformers: Vec<Conformer>,
    /// The records that could not be read.
    pub skipped: Vec<SkippedRecord>,
    /// The first of the read records whose atoms stay in file order, with the reason.
    pub in_file_order: Vec<SkippedRecord>,
    /// The first of the read records with stereo that their SMILES leaves open, with its position.
    pub open_stereo: Vec<SkippedRecord>,
    /// The number of records with stereo that their SMILES leaves open.
    pub open_stereo_count: u64,
    /// The file that all the records come from; for a member of an archive, followed by `:` and the member. Empty if there is no
    /// file.
    pub file: Arc<str>,
    /// For each read record, its line number, from 1. Empty if records are not lines.
    pub lines: Vec<u64>,
    /// The number of rows that were not asked for ([`ReadOptions::rows`]).
    pub left_out: u64,
    /// For each read record, the values of the columns in [`ReadOptions::needs`]. Empty if there are none, or records are no rows.
    pub cells: Vec<Cells>,
    /// The rows of the read records, if [`ReadOptions::needs`] asks for their bytes.
    pub rows: RowBytes,
}

impl Batch {
    /// This batch with its file set.
    #[must_use]
    pub(crate) fn of_file(self, file: &Arc<str>) -> Self {
        Batch { file: file.clone(), ..self }
    }
}

/// The frame in which coordinates are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Frame {
    /// The frame of the file, unchanged.
    #[default]
    Keep,
    /// Centre of mass at the origin, principal axes of inertia along x (longest), y and z.
    Principal,
    /// The first atom of the text at the origin, the second on the positive x axis, and the next atom that is not on their line in
    /// the half plane of x and positive y ([`first_atoms`](frame::first_atoms)).
    FirstAtoms,
}

/// How files are read.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// The frame of the result.
    pub frame: Frame,
    /// The decimals of the result, and how blocks of text are read.
    pub reading: Reading,
    /// How the SMILES of a molecule without text is found.
    pub smiles: SmilesSource,
    /// Which rows of tables and JSON Lines are read.
    pub rows: RowFilter,
    /// What is kept of these rows beside their conformers.
    pub needs: RowNeeds,
    /// Whether a file that the inputs name several times, by itself or by its folder, is read once.
    pub once: bool,
}

impl ReadOptions {
    /// Options that keep coordinates in the frame of the file.
    pub fn new(reading: Reading, smiles: SmilesSource) -> Self {
        ReadOptions { reading, smiles, ..ReadOptions::default() }
    }
}

/// One stream to read: a file or a member of an archive, already decompressed.
pub struct Source<'a> {
    /// The name for messages: the file; for a member of an archive, followed by `:` and the member.
    pub name: String,
    /// The decompressed bytes.
    pub reader: &'a mut dyn std::io::BufRead,
}

/// What every reader receives besides its source.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// How to read.
    pub options: &'a ReadOptions,
    /// Progress and cancellation.
    pub job: &'a drift_core::job::Job,
}

/// The function to which a reader passes its batches, in file order.
pub type BatchSink<'a> = dyn FnMut(Batch) -> drift_core::error::Result<()> + 'a;

#[cfg(test)]
mod testing {
    use super::{Batch, BatchSink, Context, ReadOptions, Source};
    use drift_core::error::Result;
    use drift_core::job::Job;

    /// Returns all that a reader makes of a text.
    pub(super) fn read_all(
        reader: fn(Source<'_>, Context<'_>, &mut BatchSink<'_>) -> Result<()>,
        text: &str,
    ) -> Batch {
        let job = Job::default();
        let context = Context { options: &ReadOptions::default(), job: &job };
        let mut all = Batch::default();
        let source = Source { name: "text".to_owned(), reader: &mut text.as_bytes() };
        reader(source, context, &mut |batch| {
            all.conformers.extend(batch.conformers);
            all.skipped.extend(batch.skipped);
            Ok(())
        })
        .unwrap();
        all
    }
}
