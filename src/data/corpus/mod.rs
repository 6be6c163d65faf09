//! Conformers from files: what a conformer is, how files are read (by content, streaming), and the HDF5 store.
//!
//! | content | gives |
//! | --- | --- |
//! | 3DMolGen JSONL, plain enriched text, drift's store | text and coordinates |
//! | SDF, RDKit pickles | atoms with bonds |
//! | XYZ, GEOM msgpack, SPICE and ANI-1x HDF5 | atoms; bonds are perceived from distances |
//!
//! Atoms are put into the order of the molecule's SMILES, where one is known and is theirs ([`SmilesSource`]). Else they
//! get the skeleton of a chain of bare atoms in file order, `[C]<>[O]<>`, so that their coordinates can be counted in a
//! plausible context; [`AtomOrder`] says so.

mod archive;
pub mod atoms;
mod collect;
mod conformers;
mod damage;
pub mod eigen;
pub mod frame;
pub mod geom_pickle;
#[cfg(feature = "hdf5")]
pub mod hdf5;
mod jsonl;
pub mod labels;
mod lines;
pub mod msgpack;
pub mod names;
mod perceive;
pub mod pickle;
mod pickles;
mod plain;
pub mod rdkit;
mod read;
mod sdf;
mod side_by_side;
mod smiles_lines;
mod smiles_order;
mod source;
pub mod split;
#[cfg(feature = "hdf5")]
pub mod store;
mod summary;
mod tar;
mod walk;
mod xyz;

use std::sync::Arc;

pub use conformers::{Conformers, Embedded, EmbeddedCorpus, Files, Texts, files_or_embedded};
pub use lines::MAX_LINE_BYTES;
pub use names::Names;
pub use read::{Listing, read};
pub use smiles_lines::{MAX_SMILES_LINE_BYTES, Rest, SmilesLine, each_prompt, no_prompt, skipped_line};
pub use smiles_order::{OpenStereo, SmilesSource};
pub use source::Format;
pub use split::Part;
pub use summary::{ReadSummary, SKIPPED_LISTED};

use serde::{Deserialize, Serialize};

use drift_core::chem::SmilesNotes;
use drift_core::encoding::{Fixed, Reading, Written};
use drift_core::error::{one_line, shortened_end, shortened_middle};

/// One conformer: the coordinates of its heavy atoms and the text around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conformer {
    /// What names the molecule: its SMILES where the file gives one, else its title or the skeleton.
    pub molecule: Arc<str>,
    /// Enriched SMILES with every block emptied, `[C]<>[C]<>=[O]<>`.
    pub skeleton: Arc<str>,
    /// One entry per block of the skeleton, in units of the last decimal (10⁻⁴ Å, unless read otherwise), truncated toward
    /// zero.
    pub coordinates: Vec<[Fixed; 3]>,
    /// Where the order of atoms comes from.
    pub order: AtomOrder,
    /// Which dialects the text agreed with; both for formats without text.
    pub written: Written,
    /// What the file calls it, where that is asked for.
    pub id: Option<Arc<str>>,
    /// What is known of `molecule`, where it is a SMILES that was read for it.
    pub notes: Option<SmilesNotes>,
    /// The isomers that its file pools it with, where it does.
    pub pool: Option<Arc<IsomerPool>>,
}

/// Isomers whose conformers stand under one SMILES, as in the test sets of 3DMolGen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsomerPool {
    /// The SMILES that pools them, a key of GEOM.
    pub smiles: String,
    /// The SMILES of each isomer, and how many conformers it has by what the file says.
    pub isomers: Vec<(String, u64)>,
}

/// Where the order of a conformer's atoms comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AtomOrder {
    /// The SMILES order of enriched text.
    Smiles,
    /// The order of a file without text; the skeleton is a chain of bare atoms.
    File,
}

/// A record that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The file, and the member of the archive after a `:`.
    pub file: String,
    /// What and where in it: `line 12`, `molecule 3 (CCO), conformer 7`, `block 2`.
    pub record: String,
    /// Why.
    pub reason: String,
}

impl Skipped {
    /// Characters of each part, where it is shown: inputs may be quoted in it.
    const CHARACTERS: usize = 160;

    /// As it is shown and reported: each part on one line of bounded length.
    #[must_use]
    pub fn shown(&self) -> Skipped {
        let end = |text: &str| shortened_end(&one_line(text), Self::CHARACTERS);
        let file = shortened_middle(&one_line(&self.file), Self::CHARACTERS);
        Skipped { file, record: end(&self.record), reason: end(&self.reason) }
    }
}

/// What a reader hands on at a time: a few megabytes at most, in file order.
#[derive(Debug, Default)]
pub struct Batch {
    /// The good records.
    pub conformers: Vec<Conformer>,
    /// The bad ones.
    pub skipped: Vec<Skipped>,
    /// The first of the good ones whose atoms stay in the order of the file, and why.
    pub in_file_order: Vec<Skipped>,
    /// The first of those with stereo that their SMILES leaves open, and where.
    pub open_stereo: Vec<Skipped>,
    /// How many of these there are.
    pub open_stereo_count: u64,
    /// The file that all of it is of, and the member of the archive after a `:`; empty where there is no file.
    pub file: Arc<str>,
    /// By good record, the line that it stands on, from 1; empty where records are no lines.
    pub lines: Vec<u64>,
}

impl Batch {
    /// The same, of a file.
    #[must_use]
    pub(crate) fn of_file(self, file: &Arc<str>) -> Self {
        Batch { file: file.clone(), ..self }
    }
}

/// The frame that coordinates are given in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Frame {
    /// As in the file.
    #[default]
    Keep,
    /// Centre of mass at the origin, principal axes of inertia along x (longest), y and z.
    Principal,
    /// The first atom of the text at the origin, the second on the positive x axis, the next one that is off their line in the half
    /// plane of x and positive y ([`first_atoms`](frame::first_atoms)).
    FirstAtoms,
}

/// How files are read.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// The frame of the result.
    pub frame: Frame,
    /// The decimals of the result, and how the blocks of texts are read.
    pub reading: Reading,
    /// Which SMILES belongs to a molecule without text.
    pub smiles: SmilesSource,
}

impl ReadOptions {
    /// Coordinates in the frame that they have.
    pub fn new(reading: Reading, smiles: SmilesSource) -> Self {
        ReadOptions { frame: Frame::Keep, reading, smiles }
    }
}

/// One stream to read: a file or a member of an archive, already decompressed.
pub struct Source<'a> {
    /// The file, and the member of the archive after a `:`; for messages.
    pub name: String,
    /// The bytes.
    pub reader: &'a mut dyn std::io::BufRead,
}

/// What every reader is handed besides its source.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// How to read.
    pub options: &'a ReadOptions,
    /// Progress and cancellation.
    pub job: &'a drift_core::job::Job,
}

/// Where a reader puts its batches, in file order.
pub type Emit<'a> = dyn FnMut(Batch) -> drift_core::error::Result<()> + 'a;

#[cfg(test)]
mod testing {
    use super::{Batch, Context, Emit, ReadOptions, Source};
    use drift_core::error::Result;
    use drift_core::job::Job;

    /// All that a reader makes of a text.
    pub(super) fn read_all(
        reader: fn(Source<'_>, Context<'_>, &mut Emit<'_>) -> Result<()>,
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
