//! Names, types and units of the store: what writer and reader share.

use crate::corpus::AtomOrder;
use drift_core::encoding::{Encoding, Precision, Written};

/// The value of the root attribute `schema`: name, `/`, version.
pub const SCHEMA: &str = "drift.corpus/1";

/// The part of [`SCHEMA`] that no version changes.
pub(crate) const SCHEMA_NAME: &str = "drift.corpus/";

/// The value of the root attribute `unit`: `1e-4 angstrom` for four decimals; values of other encodings are in their own, and
/// the attribute `encoding` says which.
pub(crate) fn unit(encoding: Encoding) -> String {
    if encoding.is_decimal() { format!("1e-{} angstrom", encoding.precision()) } else { OWN_UNIT.to_owned() }
}

/// The value of `unit` where values are in the units of an encoding.
pub(crate) const OWN_UNIT: &str = "of the encoding";

/// The inverse of [`unit`].
pub(crate) fn precision_of(unit: &str) -> Option<Precision> {
    unit.strip_prefix("1e-")?.strip_suffix(" angstrom")?.parse().ok()
}

/// Bytes of an uncompressed chunk: below h5py's chunk cache of 1 MiB, and a multiple of every row.
pub(crate) const CHUNK_BYTES: usize = 768 << 10;

/// The level of deflate, for what does not look random: level 6 would save another 1.7 % of the coordinates and take
/// three times as long (`tests/benches/README.md`).
pub(crate) const DEFLATE_LEVEL: u32 = 3;

/// One dataset of the store: path, bytes of an element, elements of a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    /// Path in the file.
    pub path: &'static str,
    /// Bytes of one element, also what shuffle works on.
    pub element: usize,
    /// Elements of one row: 3 for coordinates (shape `[rows, 3]`), else 1 (shape `[rows]`).
    pub width: usize,
}

impl Field {
    const fn new(path: &'static str, element: usize, width: usize) -> Self {
        Field { path, element, width }
    }

    /// Rows of a full chunk.
    pub(crate) fn chunk_rows(self) -> usize {
        CHUNK_BYTES / (self.element * self.width)
    }
}

/// i32 `[blocks, 3]`, in the unit of the attribute.
pub(crate) const COORDINATES: Field = Field::new("coordinates", 4, 3);
/// u64 `[conformers + 1]`: first row of each conformer in [`COORDINATES`]; ends with the number of rows.
pub(crate) const OFFSET: Field = Field::new("conformers/offset", 8, 1);
/// u32 `[conformers]`: row of the molecule.
pub(crate) const MOLECULE: Field = Field::new("conformers/molecule", 4, 1);
/// u8 `[conformers]`: see [`flags`].
pub(crate) const FLAGS: Field = Field::new("conformers/flags", 1, 1);
/// u8: the names of the molecules, UTF-8, one after another.
pub(crate) const SMILES: Field = Field::new("molecules/smiles", 1, 1);
/// u64 `[molecules + 1]`: first byte of each name; ends with the number of bytes.
pub(crate) const SMILES_OFFSET: Field = Field::new("molecules/smiles_offset", 8, 1);
/// u8: the skeletons, UTF-8, one after another.
pub(crate) const SKELETON: Field = Field::new("molecules/skeleton", 1, 1);
/// u64 `[molecules + 1]`: first byte of each skeleton; ends with the number of bytes.
pub(crate) const SKELETON_OFFSET: Field = Field::new("molecules/skeleton_offset", 8, 1);

const SMILES_ORDER: u8 = 1;
const WRITTEN_FIXED: u8 = 2;
const WRITTEN_STRIPPED: u8 = 4;

/// Bit 0: atoms in the order of the text; bit 1: the text agreed with the fixed dialect; bit 2: with the stripped.
pub(crate) fn flags(order: AtomOrder, written: Written) -> u8 {
    let mut bits = 0;
    if order == AtomOrder::Smiles {
        bits |= SMILES_ORDER;
    }
    if written.fixed {
        bits |= WRITTEN_FIXED;
    }
    if written.stripped {
        bits |= WRITTEN_STRIPPED;
    }
    bits
}

/// The inverse of [`flags`]; `None` for bits that this version does not know.
pub(crate) fn from_flags(bits: u8) -> Option<(AtomOrder, Written)> {
    if bits & !(SMILES_ORDER | WRITTEN_FIXED | WRITTEN_STRIPPED) != 0 {
        return None;
    }
    let order = if bits & SMILES_ORDER != 0 { AtomOrder::Smiles } else { AtomOrder::File };
    let written = Written { fixed: bits & WRITTEN_FIXED != 0, stripped: bits & WRITTEN_STRIPPED != 0 };
    Some((order, written))
}
