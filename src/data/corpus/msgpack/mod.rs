//! GEOM's `*_crude.msgpack` (doi 10.7910/DVN/JNGTDF, github.com/learningmatter-mit/geom).
//!
//! The file is a sequence of maps, each of about 1,000 molecules:
//!
//! ```text
//! {SMILES: {"conformers": [{"xyz": [[Z, x, y, z], …], "geom_id": …, "boltzmannweight": …, …}, …], "charge": …, …}, …}
//! ```
//!
//! Z is an integer or a float; x, y and z are in Å. Keys come in any order, and `conformers` may also be a map. The Drugs file is
//! about 50 GB, so only one conformer and one batch of finished conformers are in memory at a time.

mod pull;

use std::sync::Arc;

use super::atoms::Atoms;
use super::collect::Collector;
use super::labels::Labels;
use super::{BatchSink, Context, Source};
use drift_core::Result;
use pull::{Header, Pull};

/// The largest number of atoms of a conformer, hydrogens included.
const MAX_ATOMS: u32 = 1 << 17;

/// The number of characters of a SMILES in the name of a skipped record.
const SHOWN: usize = 80;

/// The length in bytes of a row `[Z, x, y, z]` of four doubles: its marker, then a marker and 8 bytes for each double.
const ROW: usize = 37;

/// Reads GEOM's MessagePack. A bad conformer or molecule is skipped and reported as `molecule 3 (CCO), conformer 7`.
///
/// # Errors
/// With the byte offset, if the input is truncated, is not MessagePack, nests deeper than 64 levels, or has a top-level value that
/// is not a map.
pub fn read(source: Source<'_>, context: Context<'_>, emit: &mut BatchSink<'_>) -> Result<()> {
    let name = source.name;
    let mut geom = Geom {
        pull: Pull::new(name.clone(), source.reader, context.job),
        out: Collector::new(name.clone(), context, emit),
        atoms: Atoms::new(context.options, &name),
        number: 0,
        molecule: Arc::default(),
    };
    while !geom.pull.is_end()? {
        let offset = geom.pull.offset();
        let Header::Map(molecules) = geom.pull.header()? else {
            return Err(geom.pull.error(offset, "a top-level value is not a map of molecules"));
        };
        for _ in 0..molecules {
            geom.molecule()?;
        }
    }
    geom.out.finish()
}

/// The reader's state: the input, the output, and the current molecule.
struct Geom<'a, 'e> {
    pull: Pull<'a>,
    out: Collector<'a, 'e>,
    atoms: Atoms,
    /// The number of the current molecule, from 1; `molecule` is its SMILES.
    number: u64,
    molecule: Arc<str>,
}

impl Geom<'_, '_> {
    fn molecule(&mut self) -> Result<()> {
        self.number += 1;
        let Some(name) = self.pull.text()?.map(Arc::from) else {
            self.molecule = "?".into();
            self.pull.skip()?;
            return self.skip_molecule("its key is not a text of at most 65,536 bytes in UTF-8");
        };
        self.molecule = name;
        let Some(fields) = self.pull.map()? else { return self.skip_molecule("it is not a map") };
        let mut found = false;
        for _ in 0..fields {
            if self.pull.text()? == Some("conformers") {
                found = true;
                self.conformers()?;
            } else {
                self.pull.skip()?;
            }
        }
        if found { Ok(()) } else { self.skip_molecule("it has no `conformers`") }
    }

    fn skip_molecule(&mut self, reason: &str) -> Result<()> {
        let (number, molecule) = (self.number, &self.molecule);
        self.out.push(Err(reason.to_owned()), || record(number, molecule))
    }

    fn conformers(&mut self) -> Result<()> {
        let (count, is_map) = match self.pull.header()? {
            Header::Array(count) => (count, false),
            Header::Map(count) => (count, true),
            other => {
                self.pull.skip_rest(other)?;
                return self.skip_molecule("its `conformers` are neither a list nor a map");
            }
        };
        if count == 0 {
            return self.skip_molecule("it has no conformer");
        }
        for index in 1..=count {
            // In a map, the values are the conformers. The keys are not needed.
            if is_map {
                self.pull.skip()?;
            }
            let outcome = self.conformer()?;
            let (number, molecule) = (self.number, &self.molecule);
            let labels = Labels { key: Some(molecule), ..Labels::new(molecule) };
            let conformer = outcome.and_then(|()| self.atoms.finish(&labels));
            self.out.push(conformer, || format!("{}, conformer {index}", record(number, molecule)))?;
        }
        Ok(())
    }

    /// Reads one conformer into `atoms`. The inner error is the reason for skipping it.
    fn conformer(&mut self) -> Result<Result<(), String>> {
        let Some(fields) = self.pull.map()? else { return Ok(Err("it is not a map".to_owned())) };
        let mut outcome = Err("it has no `xyz`".to_owned());
        for _ in 0..fields {
            if self.pull.text()? == Some("xyz") {
                // If a map has the key twice, the last one counts.
                self.atoms.clear();
                outcome = self.xyz()?;
            } else {
                self.pull.skip()?;
            }
        }
        Ok(outcome)
    }

    fn xyz(&mut self) -> Result<Result<(), String>> {
        let rows = match self.pull.header()? {
            Header::Array(rows) => rows,
            other => {
                self.pull.skip_rest(other)?;
                return Ok(Err("its `xyz` is not a list".to_owned()));
            }
        };
        let mut outcome = Ok(());
        if rows > MAX_ATOMS {
            outcome = Err(format!("{rows} atoms, more than {MAX_ATOMS}"));
        }
        for atom in 1..=rows {
            let row = match plain_row(self.pull.peek()) {
                Some(row) => {
                    self.pull.advance(ROW);
                    Some(row)
                }
                None => self.row()?,
            };
            // The remaining rows of a bad conformer must still be consumed.
            if outcome.is_ok() {
                outcome = match row {
                    Some([z, x, y, z_axis]) => atomic_number(z)
                        .ok_or_else(|| format!("atom {atom}: {z} is no atomic number"))
                        .and_then(|number| self.atoms.push_f64(number, [x, y, z_axis])),
                    None => Err(format!("atom {atom}: it is not a list of four numbers")),
                };
            }
        }
        Ok(outcome)
    }

    /// Reads a value of any kind; `None` if it is not a list of four numbers.
    fn row(&mut self) -> Result<Option<[f64; 4]>> {
        let header = self.pull.header()?;
        if header != Header::Array(4) {
            self.pull.skip_rest(header)?;
            return Ok(None);
        }
        let mut row = Some([0.0; 4]);
        for place in 0..4 {
            match (self.pull.header()?, &mut row) {
                (Header::Number(value), Some(values)) => values[place] = value,
                (other, _) => {
                    self.pull.skip_rest(other)?;
                    row = None;
                }
            }
        }
        Ok(row)
    }
}

/// Parses the row at the start of `bytes` if it consists of four doubles, as nearly all rows of GEOM do.
fn plain_row(bytes: &[u8]) -> Option<[f64; 4]> {
    let row = bytes.first_chunk::<ROW>()?;
    if row[0] != 0x94 || [row[1], row[10], row[19], row[28]] != [0xcb; 4] {
        return None;
    }
    let value = |at: usize| row[at..].first_chunk().map_or(f64::NAN, |b| f64::from_be_bytes(*b));
    Some([value(2), value(11), value(20), value(29)])
}

fn atomic_number(z: f64) -> Option<u8> {
    ((1.0..=118.0).contains(&z) && z.fract() == 0.0).then_some(z as u8)
}

/// Returns the record's name for messages, `molecule 3 (CCO)`, with long SMILES truncated.
fn record(number: u64, molecule: &str) -> String {
    let shown: String = molecule.chars().take(SHOWN).collect();
    let cut = if shown.len() < molecule.len() { "…" } else { "" };
    format!("molecule {number} ({shown}{cut})")
}
