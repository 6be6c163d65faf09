//! The RMSD of all pairs of a generated conformer and a reference, as files that NumPy reads.
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
//! `.pickle`: what 3DMolGen's `compute_rmsd_matrix` returns, `{smiles: {"n_true": int, "n_model": int, "rmsd": [n_true, n_model]}}`: one row a
//! reference, one column a text that has a conformer, molecules without one left out. Protocol 5, of which only
//! `numpy.ndarray(shape, dtype, buffer)` is called, so that any NumPy reads it.

use std::borrow::Cow;
use std::path::Path;

use drift_core::error::{Error, Result};
use drift_core::io::AtomicFile;

/// The largest file that a zip archive without extensions holds, in bytes.
const MAX_ZIP_BYTES: u64 = u32::MAX as u64;

/// Numbers that are put together before they are handed on.
const CHUNK: usize = 1 << 16;

/// Distances by molecule.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RmsdMatrix<'d> {
    /// In the order in which they first come.
    pub molecules: Vec<MoleculeDistances<'d>>,
}

/// The distances of the texts of one molecule to its references.
#[derive(Debug, Clone, PartialEq)]
pub struct MoleculeDistances<'d> {
    smiles: String,
    references: usize,
    /// By text: its line, and the distances of its conformer, `[references]` in Å.
    rows: Vec<(u64, Option<Cow<'d, [f64]>>)>,
}

/// Where bytes go.
pub type PutBytes<'p> = dyn FnMut(&[u8]) -> Result<()> + 'p;

impl<'d> MoleculeDistances<'d> {
    /// A molecule without texts.
    pub fn new(smiles: String, references: usize) -> Self {
        MoleculeDistances { smiles, references, rows: Vec::new() }
    }

    /// Adds a text; `rmsd` is none where it has no conformer to compare.
    pub fn push(&mut self, line: u64, rmsd: Option<Cow<'d, [f64]>>) {
        self.rows.push((line, rmsd));
    }

    fn usable(&self) -> impl Iterator<Item = &[f64]> {
        self.rows.iter().filter_map(|(_, rmsd)| rmsd.as_deref())
    }
}

impl RmsdMatrix<'_> {
    /// Writes it in the form that the name of a file asks for.
    ///
    /// # Errors
    /// If bytes cannot be put, or there are more than an archive takes.
    pub fn write(&self, name: &str, put: &mut PutBytes<'_>) -> Result<()> {
        if is_pickle(name) { self.pickle(put) } else { self.npz(name, put) }
    }

    /// Writes it, in the form that the name asks for, into a file that is whole but not yet in its place.
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
        // 16 MiB are kept for the other arrays.
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
                // NumPy's text has four bytes a character, filled up with zeros.
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
            // The tuple of arguments, the call, and both dictionaries' entries.
            put(b"tRu")?;
        }
        put(b"u.")
    }
}

/// Whether a file of this name is to be a pickle.
fn is_pickle(name: &str) -> bool {
    [".pickle", ".pkl"].iter().any(|end| name.ends_with(end))
}

/// Hands on numbers of eight bytes, many at a time.
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

/// `LONG1` of eight bytes: a length is never negative.
fn integer(out: &mut Vec<u8>, number: usize) {
    out.extend([b'\x8a', 8]);
    out.extend((number as u64).to_le_bytes());
}

/// An archive of arrays that are stored as they are.
struct Zip<'z, 'p> {
    put: &'z mut PutBytes<'p>,
    at: u64,
    /// The entries of the directory at its end.
    directory: Vec<u8>,
    entries: u16,
}

impl<'z, 'p> Zip<'z, 'p> {
    fn new(put: &'z mut PutBytes<'p>) -> Self {
        Zip { put, at: 0, directory: Vec::new(), entries: 0 }
    }

    /// Adds an array of one dimension; `write` is called twice, since the checksum stands before the data.
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
        // Version needed, flags, method, time and date (1980-01-01), checksum, both sizes, length of the name and of nothing more.
        let mut common = Vec::from([20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0]);
        common.extend(hash.finalize().to_le_bytes());
        // The number of pairs was compared with what fits.
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

/// The head of an array of one dimension, a multiple of 64 bytes.
fn npy_head(dtype: &str, length: u64) -> Vec<u8> {
    let mut head = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({length},), }}");
    // The ten bytes before the head and the line break behind it count.
    let padding = 64 - (10 + head.len() + 1) % 64;
    head.extend(std::iter::repeat_n(' ', padding % 64));
    head.push('\n');
    let mut out = Vec::from(*b"\x93NUMPY\x01\x00");
    out.extend((head.len() as u16).to_le_bytes());
    out.extend(head.as_bytes());
    out
}
