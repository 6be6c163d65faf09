//! Writes the RMSDs of all pairs of a generated conformer and a reference to files for NumPy.
//!
//! `.npz`: a zip archive of arrays, not compressed (NumPy's `lib/format.py`, version 1.0 of `.npy`):
//!
//! | array | shape | what |
//! | --- | --- | --- |
//! | `smiles` | `[molecules]` | the SMILES that texts are compared under |
//! | `texts` | `[molecules]` | texts of the molecule |
//! | `references` | `[molecules]` | its references |
//! | `line` | `[all texts]` | the line of `--verdicts` that a text has, from 0 |
//! | `rmsd` | `[all pairs]` | molecule by molecule `[texts, references]`, in Å; NaN for a text without a conformer to compare |
//!
//! `.pickle`: the result of 3DMolGen's `compute_rmsd_matrix`,
//! `{smiles: {"n_true": int, "n_model": int, "rmsd": [n_true, n_model]}}`. Each row is a reference, each column a text that has a
//! conformer; molecules without such a text are left out. The file uses protocol 5 and calls only
//! `numpy.ndarray(shape, dtype, buffer)`, so any NumPy can read it.

use std::borrow::Cow;
use std::path::Path;

use drift_core::io::AtomicFile;
use drift_core::{Error, Result};

/// The largest size of a zip archive without extensions, in bytes.
const MAX_ZIP_BYTES: u64 = u32::MAX as u64;

/// How many numbers are collected before they are written.
const CHUNK: usize = 1 << 16;

/// The RMSDs by molecule.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RmsdMatrix<'d> {
    /// In the order of first occurrence.
    pub molecules: Vec<MoleculeDistances<'d>>,
}

/// The RMSDs of the texts of one molecule to its references.
#[derive(Debug, Clone, PartialEq)]
pub struct MoleculeDistances<'d> {
    smiles: String,
    references: usize,
    /// By text, its line, and the RMSDs of its conformer, `[references]` in Å.
    rows: Vec<(u64, Option<Cow<'d, [f64]>>)>,
}

/// Receives bytes in order.
pub type PutBytes<'p> = dyn FnMut(&[u8]) -> Result<()> + 'p;

impl<'d> MoleculeDistances<'d> {
    /// Returns a molecule without texts.
    pub fn new(smiles: String, references: usize) -> Self {
        MoleculeDistances { smiles, references, rows: Vec::new() }
    }

    /// Adds a text; `rmsd` is `None` if it has no conformer to compare.
    pub fn push(&mut self, line: u64, rmsd: Option<Cow<'d, [f64]>>) {
        self.rows.push((line, rmsd));
    }

    fn usable(&self) -> impl Iterator<Item = &[f64]> {
        self.rows.iter().filter_map(|(_, rmsd)| rmsd.as_deref())
    }
}

/// The format of a file of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatrixFormat {
    /// Arrays of NumPy.
    Npz,
    /// A dictionary of Python.
    Pickle,
}

impl MatrixFormat {
    /// Returns the format that a file's name asks for.
    ///
    /// # Errors
    /// If it asks for none.
    pub fn from_path(path: &Path) -> Result<Self> {
        match path.extension().and_then(|end| end.to_str()) {
            Some("npz") => Ok(MatrixFormat::Npz),
            Some("pickle" | "pkl") => Ok(MatrixFormat::Pickle),
            _ => {
                let remedy = "give one that ends in .npz or .pickle";
                Err(Error::input(path.display(), "is no name of a matrix", remedy))
            }
        }
    }
}

impl RmsdMatrix<'_> {
    /// Writes the matrix in the format that the file name implies.
    ///
    /// # Errors
    /// If writing fails, the name implies no format, or there are more pairs than an archive can hold.
    pub fn write(&self, name: &str, put: &mut PutBytes<'_>) -> Result<()> {
        match MatrixFormat::from_path(name.as_ref())? {
            MatrixFormat::Npz => self.npz(name, put),
            MatrixFormat::Pickle => self.pickle(put),
        }
    }

    /// Writes the matrix, in the format that the name implies, to a complete file that is not yet renamed into place.
    ///
    /// # Errors
    /// As [`RmsdMatrix::write`].
    pub fn file(&self, path: &Path) -> Result<AtomicFile> {
        let mut file = AtomicFile::create(path)?;
        self.write(&path.to_string_lossy(), &mut |bytes| file.put(bytes))?;
        Ok(file)
    }

    fn npz(&self, name: &str, put: &mut PutBytes<'_>) -> Result<()> {
        let all = &self.molecules;
        let count = |of: fn(&MoleculeDistances<'_>) -> usize| all.iter().map(move |one| of(one) as u64);
        let pairs: u64 = all.iter().map(|one| (one.rows.len() * one.references) as u64).sum();
        // 16 MiB are reserved for the other arrays.
        if pairs.saturating_mul(8) > MAX_ZIP_BYTES - (1 << 24) {
            let problem = format!("{pairs} pairs are more than an .npz file can hold");
            return Err(Error::input(
                name,
                problem,
                "give a name that ends in .pickle, or fewer texts at a time",
            ));
        }
        let mut zip = Zip::new(put);
        let width = all.iter().map(|one| one.smiles.chars().count()).max().unwrap_or(0).max(1);
        zip.add("smiles", &format!("<U{width}"), all.len() as u64, &|put| {
            for one in all {
                // NumPy stores text with four bytes per character, padded with zeros.
                let text = one.smiles.chars().map(u32::from).chain(std::iter::repeat(0)).take(width);
                put(&text.flat_map(u32::to_le_bytes).collect::<Vec<u8>>())?;
            }
            Ok(())
        })?;
        for (name, of) in [
            ("texts", (|one| one.rows.len()) as fn(&MoleculeDistances<'_>) -> usize),
            ("references", |one| one.references),
        ] {
            zip.add(name, "<i8", all.len() as u64, &|put| numbers(put, count(of).map(u64::to_le_bytes)))?;
        }
        let texts = all.iter().map(|one| one.rows.len() as u64).sum();
        let lines = || all.iter().flat_map(|one| one.rows.iter().map(|(line, _)| line.to_le_bytes()));
        zip.add("line", "<i8", texts, &|put| numbers(put, lines()))?;
        let rmsd = || {
            all.iter().flat_map(|one| {
                let row =
                    |rmsd: &Option<Cow<'_, [f64]>>, at: usize| rmsd.as_ref().map_or(f64::NAN, |row| row[at]);
                one.rows
                    .iter()
                    .flat_map(move |(_, rmsd)| (0..one.references).map(move |at| row(rmsd, at).to_le_bytes()))
            })
        };
        zip.add("rmsd", "<f8", pairs, &|put| numbers(put, rmsd()))?;
        zip.finish()
    }

    fn pickle(&self, put: &mut PutBytes<'_>) -> Result<()> {
        put(b"\x80\x05}(")?;
        for one in self.molecules.iter().filter(|one| one.usable().next().is_some()) {
            let columns = one.usable().count();
            let mut head = Vec::new();
            text(&mut head, &one.smiles);
            head.extend(b"}(");
            text(&mut head, "n_true");
            integer(&mut head, one.references);
            text(&mut head, "n_model");
            integer(&mut head, columns);
            text(&mut head, "rmsd");
            head.extend(b"cnumpy\nndarray\n(");
            integer(&mut head, one.references);
            integer(&mut head, columns);
            head.push(b'\x86');
            text(&mut head, "<f8");
            head.push(b'\x96');
            head.extend((8 * one.references as u64 * columns as u64).to_le_bytes());
            put(&head)?;
            let of = |reference: usize| one.usable().map(move |row| row[reference].to_le_bytes());
            numbers(put, (0..one.references).flat_map(of))?;
            // The argument tuple, the call, and the entries of the inner dictionary.
            put(b"tRu")?;
        }
        put(b"u.")
    }
}

/// Writes eight-byte numbers in large blocks.
fn numbers(put: &mut PutBytes<'_>, all: impl Iterator<Item = [u8; 8]>) -> Result<()> {
    let mut bytes = Vec::with_capacity(8 * CHUNK);
    for number in all {
        bytes.extend(number);
        if bytes.len() == 8 * CHUNK {
            put(&bytes)?;
            bytes.clear();
        }
    }
    put(&bytes)
}

/// `BINUNICODE`.
fn text(out: &mut Vec<u8>, text: &str) {
    out.push(b'X');
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(text.as_bytes());
}

/// `LONG1` with eight bytes: a length is never negative.
fn integer(out: &mut Vec<u8>, number: usize) {
    out.extend([b'\x8a', 8]);
    out.extend((number as u64).to_le_bytes());
}

/// A zip archive of arrays, stored without compression.
struct Zip<'z, 'p> {
    put: &'z mut PutBytes<'p>,
    at: u64,
    /// The central directory, which is written at the end.
    directory: Vec<u8>,
    entries: u16,
}

impl<'z, 'p> Zip<'z, 'p> {
    fn new(put: &'z mut PutBytes<'p>) -> Self {
        Zip { put, at: 0, directory: Vec::new(), entries: 0 }
    }

    /// Adds a one-dimensional array. `write` is called twice, because the checksum precedes the data.
    fn add(
        &mut self,
        name: &str,
        dtype: &str,
        length: u64,
        write: &dyn Fn(&mut PutBytes<'_>) -> Result<()>,
    ) -> Result<()> {
        let npy = npy_head(dtype, length);
        let mut hash = crc32fast::Hasher::new();
        hash.update(&npy);
        let mut size = npy.len() as u64;
        write(&mut |bytes| {
            hash.update(bytes);
            size += bytes.len() as u64;
            Ok(())
        })?;
        let name = format!("{name}.npy");
        // Version needed, flags, method, time and date (1980-01-01), checksum, both sizes, length of the name, and an empty extra
        // field.
        let mut common = Vec::from([20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0]);
        common.extend(hash.finalize().to_le_bytes());
        // The number of pairs was checked against the limit.
        (0..2).for_each(|_| common.extend((size as u32).to_le_bytes()));
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        self.directory.extend(b"PK\x01\x02\x14\x00");
        self.directory.extend(&common);
        self.directory.extend([0; 10]);
        self.directory.extend((self.at as u32).to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.entries += 1;
        let head = [b"PK\x03\x04", &*common, name.as_bytes(), &*npy].concat();
        (self.put)(&head)?;
        write(self.put)?;
        self.at += 30 + name.len() as u64 + size;
        Ok(())
    }

    fn finish(self) -> Result<()> {
        let entries = self.entries.to_le_bytes();
        let mut end = Vec::from(*b"PK\x05\x06\x00\x00\x00\x00");
        (0..2).for_each(|_| end.extend(entries));
        end.extend((self.directory.len() as u32).to_le_bytes());
        end.extend((self.at as u32).to_le_bytes());
        end.extend([0, 0]);
        (self.put)(&[self.directory, end].concat())
    }
}

/// Returns the header of a one-dimensional array, padded to a multiple of 64 bytes.
fn npy_head(dtype: &str, length: u64) -> Vec<u8> {
    let mut head = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({length},), }}");
    // The ten bytes before the header and the line break behind it are included.
    let padding = 64 - (10 + head.len() + 1) % 64;
    head.extend(std::iter::repeat_n(' ', padding % 64));
    head.push('\n');
    let mut out = Vec::from(*b"\x93NUMPY\x01\x00");
    out.extend((head.len() as u16).to_le_bytes());
    out.extend(head.as_bytes());
    out
}
