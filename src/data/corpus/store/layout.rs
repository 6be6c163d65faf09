//! Names, types and units of the store, shared by writer and reader.

use crate::corpus::AtomOrder;
use drift_core::Encoding;
use drift_core::encoding::{DecimalForms, Precision};

/// The value of the root attribute `schema`: name, `/`, version.
pub const SCHEMA: &str = "drift.corpus/1";

/// The part of [`SCHEMA`] that stays the same in every version.
pub(crate) const SCHEMA_NAME: &str = "drift.corpus/";

/// Returns the value of the root attribute `unit`: `1e-4 angstrom` for four decimals. Other encodings store their own units, and the
/// attribute `encoding` states the encoding.
pub(crate) fn unit(encoding: Encoding) -> String {
    if encoding.is_decimal() { format!("1e-{} angstrom", encoding.precision()) } else { OWN_UNIT.to_owned() }
}

/// The value of `unit` if values are in the units of an encoding.
pub(crate) const OWN_UNIT: &str = "of the encoding";

/// Returns the inverse of [`unit`] for decimals; `None` for any other text.
pub(crate) fn precision_of(unit: &str) -> Option<Precision> {
    unit.strip_prefix("1e-")?.strip_suffix(" angstrom")?.parse().ok()
}

/// The size of an uncompressed chunk in bytes: below h5py's chunk cache of 1 MiB, and a multiple of every row size.
pub(crate) const CHUNK_BYTES: usize = 768 << 10;

/// The deflate level for parts that do not look random. Level 6 would save another 1.7 % of the coordinates, but take three times
/// as long (`tests/benches/README.md`).
pub(crate) const DEFLATE_LEVEL: u32 = 3;

/// One dataset of the store: its path, the bytes per element and the elements per row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    /// Its place in [`FIELDS`].
    pub column: usize,
    /// Path in the file.
    pub path: &'static str,
    /// The size of one element in bytes, which the shuffle filter also uses.
    pub element: usize,
    /// The number of elements in a row: 3 for coordinates (shape `[rows, 3]`), else 1 (shape `[rows]`).
    pub width: usize,
}

impl Field {
    const fn new(column: usize, path: &'static str, element: usize, width: usize) -> Self {
        Field { column, path, element, width }
    }

    /// Returns the number of rows in a full chunk.
    pub(crate) fn chunk_rows(self) -> usize {
        CHUNK_BYTES / (self.element * self.width)
    }
}

/// i32 `[blocks, 3]`, in the unit of the attribute `unit`.
pub(crate) const COORDINATES: Field = Field::new(0, "coordinates", 4, 3);
/// u64 `[conformers + 1]`: the first row of each conformer in [`COORDINATES`], followed by the number of rows.
pub(crate) const OFFSET: Field = Field::new(1, "conformers/offset", 8, 1);
/// u32 `[conformers]`: the row of the conformer's molecule.
pub(crate) const MOLECULE: Field = Field::new(2, "conformers/molecule", 4, 1);
/// u8 `[conformers]`: see [`flags`].
pub(crate) const FLAGS: Field = Field::new(3, "conformers/flags", 1, 1);
/// u8: the names of the molecules in UTF-8, concatenated.
pub(crate) const SMILES: Field = Field::new(4, "molecules/smiles", 1, 1);
/// u64 `[molecules + 1]`: the first byte of each name, followed by the number of bytes.
pub(crate) const SMILES_OFFSET: Field = Field::new(5, "molecules/smiles_offset", 8, 1);
/// u8: the skeletons in UTF-8, concatenated.
pub(crate) const SKELETON: Field = Field::new(6, "molecules/skeleton", 1, 1);
/// u64 `[molecules + 1]`: the first byte of each skeleton, followed by the number of bytes.
pub(crate) const SKELETON_OFFSET: Field = Field::new(7, "molecules/skeleton_offset", 8, 1);

/// All datasets.
pub(crate) const FIELDS: [Field; 8] =
    [COORDINATES, OFFSET, MOLECULE, FLAGS, SMILES, SMILES_OFFSET, SKELETON, SKELETON_OFFSET];

const SMILES_ORDER: u8 = 1;
const WRITTEN_FIXED: u8 = 2;
const WRITTEN_STRIPPED: u8 = 4;

/// Bit 0: the atoms are in SMILES order. Bit 1: the text agreed with the fixed encoding. Bit 2: with the stripped encoding.
pub(crate) fn flags(order: AtomOrder, written: DecimalForms) -> u8 {
    let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
    bit(order == AtomOrder::Smiles, SMILES_ORDER)
        | bit(written.fixed, WRITTEN_FIXED)
        | bit(written.stripped, WRITTEN_STRIPPED)
}

/// Returns the inverse of [`flags`]; `None` for bits that this version does not define.
pub(crate) fn from_flags(bits: u8) -> Option<(AtomOrder, DecimalForms)> {
    if bits & !(SMILES_ORDER | WRITTEN_FIXED | WRITTEN_STRIPPED) != 0 {
        return None;
    }
    let order = if bits & SMILES_ORDER != 0 { AtomOrder::Smiles } else { AtomOrder::File };
    let written = DecimalForms { fixed: bits & WRITTEN_FIXED != 0, stripped: bits & WRITTEN_STRIPPED != 0 };
    Some((order, written))
}
