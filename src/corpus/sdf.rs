//! SDF: molecules as MDL mol blocks, V2000 or V3000, with data items, ended by `$$$$`.
//!
//! The format is that of "CTfile Formats" (BIOVIA, 2020). Of a molecule its atoms and its name are read: the data item
//! `canonical_smiles`, `smiles` or `SMILES`, else the title. Bonds are not: the order of atoms is the file's. But atoms and
//! bonds have to be as many as announced, and the mol block has to end with `M  END`.

use std::borrow::Cow;
use std::io;

use super::atoms::Atoms;
use super::collect::{Collector, Finished};
use super::damage::read_error;
use super::lines::Lines;
use super::{Context, Emit, Source};
use crate::error::{Result, excerpt};
use crate::text::elements::atomic_number;

/// The data items that name a molecule, best first.
const NAMES: [&str; 3] = ["canonical_smiles", "smiles", "SMILES"];

const V30: &str = "M  V30 ";

/// The last line of a mol block.
const END: &str = "M  END";

/// The most atoms that a molecule may announce; V2000 has room for 999.
const MAX_ATOMS: usize = 1_000_000;

/// The longest V3000 line with its continuations, in bytes.
const MAX_V30_BYTES: usize = 64 << 10;

/// Reads a stream of molecules; a bad one is skipped up to its `$$$$`.
///
/// # Errors
/// If the stream is damaged, the job was cancelled, or `emit` fails.
pub(crate) fn read(source: Source<'_>, context: Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
    let place = source.name.clone();
    let mut collector = Collector::new(source.name, context, emit);
    let mut atoms = Atoms::new(context.options);
    let mut records = Records { lines: Lines::new(source.reader), end: End::No };
    for number in 1u64.. {
        let record = records.next(number, &mut atoms).map_err(|e| read_error(&place, e))?;
        let Some(Record { label, line, outcome }) = record else { break };
        collector.push(outcome, || format!("molecule {number}{label}, line {line}"))?;
    }
    collector.finish()
}

/// A molecule that was read, or why it was not.
struct Record {
    /// ` (name)`, if it has one.
    label: String,
    /// The last line of it that was understood, or the first that was not.
    line: u64,
    outcome: Result<Finished, String>,
}

/// What stops the reading of a molecule: bad content, or a failed read.
enum Stop {
    Bad(String),
    Io(io::Error),
}

impl From<String> for Stop {
    fn from(reason: String) -> Self {
        Stop::Bad(reason)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Stop::Io(error)
    }
}

/// How the molecule at hand has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    No,
    /// With `$$$$`.
    Mark,
    /// With the file.
    File,
}

struct Records<'a> {
    lines: Lines<'a>,
    end: End,
}

impl Records<'_> {
    /// The next molecule; `None` after the last.
    fn next(&mut self, number: u64, atoms: &mut Atoms) -> io::Result<Option<Record>> {
        self.end = End::No;
        atoms.clear();
        let mut header: [String; 4] = Default::default();
        for slot in &mut header {
            *slot = self.line()?.unwrap_or_default().trim_end().to_owned();
        }
        if self.end == End::File && header.iter().all(String::is_empty) {
            return Ok(None);
        }
        let outcome = self.molecule(&header, atoms);
        let line = self.lines.number();
        let title = Some(header[0].trim()).filter(|t| !t.is_empty()).map(str::to_owned);
        let name = self.data_items()?.or(title);
        let outcome = match outcome {
            Ok(()) => {
                let molecule = name.clone().unwrap_or_else(|| format!("molecule {number}"));
                atoms.finish(molecule.into())
            }
            Err(Stop::Bad(reason)) => Err(reason),
            Err(Stop::Io(error)) => return Err(error),
        };
        let label = name.map_or_else(String::new, |name| format!(" ({name})"));
        Ok(Some(Record { label, line, outcome }))
    }

    /// The next line of the molecule; `None` once it has ended.
    fn line(&mut self) -> io::Result<Option<Cow<'_, str>>> {
        if self.end != End::No {
            return Ok(None);
        }
        let line = self.lines.next()?;
        self.end = match &line {
            None => End::File,
            Some(line) if line.starts_with("$$$$") => End::Mark,
            Some(_) => return Ok(line),
        };
        Ok(None)
    }

    /// As [`line`](Self::line), where the molecule may not end.
    fn inner_line(&mut self) -> Result<Cow<'_, str>, Stop> {
        self.line()?.ok_or_else(|| Stop::Bad("the molecule ends early".to_owned()))
    }

    /// The atoms that the header announces.
    fn molecule(&mut self, header: &[String; 4], atoms: &mut Atoms) -> Result<(), Stop> {
        let counts = &header[3];
        if counts.ends_with("V3000") {
            self.v3000(atoms)?;
        } else if counts.ends_with("V2000") {
            self.v2000(counts, atoms)?;
        } else {
            return Err(format!("no counts line of V2000 or V3000: {}", excerpt(counts.as_bytes())).into());
        }
        // The second line holds a dimension code. Some writers say 2D of 3D coordinates, so the numbers decide.
        if header[1].get(20..22) == Some("2D") && atoms.is_flat() {
            return Err("a 2D drawing, not a conformer".to_owned().into());
        }
        Ok(())
    }

    /// Atoms, bonds and properties of a V2000 molecule.
    fn v2000(&mut self, counts: &str, atoms: &mut Atoms) -> Result<(), Stop> {
        let (atom_count, bond_count) = v2000_counts(counts)?;
        for _ in 0..atom_count {
            push_v2000(atoms, &self.inner_line()?)?;
        }
        for read in 0..bond_count {
            let line = self.inner_line()?;
            if !line.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
                return Err(format!("{bond_count} bonds announced, {read} found").into());
            }
        }
        loop {
            let line = self.inner_line()?;
            if line.starts_with(END) {
                return Ok(());
            }
            if line.starts_with('>') {
                return Err("data items before `M  END`".to_owned().into());
            }
        }
    }

    /// The table of a V3000 molecule: counts, atoms, bonds, and what else it holds.
    fn v3000(&mut self, atoms: &mut Atoms) -> Result<(), Stop> {
        let (mut counts, mut bonds) = (None, None);
        loop {
            let line = self.v30_line()?;
            let line = line.trim();
            if let Some(rest) = line.strip_prefix("COUNTS ") {
                counts = Some(v3000_counts(rest)?);
            } else if let Some(block) = line.strip_prefix("BEGIN ").filter(|block| *block != "CTAB") {
                let (atom_count, _) = counts.ok_or_else(|| format!("{block} before COUNTS"))?;
                match block {
                    "ATOM" if atoms.is_empty() => self.v3000_atoms(atom_count, atoms)?,
                    "BOND" if bonds.is_none() => bonds = Some(self.v3000_block("END BOND")?),
                    "ATOM" | "BOND" => return Err(format!("two blocks {block}").into()),
                    _ => _ = self.v3000_block(&format!("END {block}"))?,
                }
            } else if line == "END CTAB" {
                break;
            }
        }
        let (atom_count, bond_count) = counts.ok_or_else(|| "no line COUNTS".to_owned())?;
        let bonds = bonds.unwrap_or_default();
        if atoms.len() != atom_count {
            return Err(format!("{atom_count} atoms announced, {} found", atoms.len()).into());
        }
        if bonds != bond_count {
            return Err(format!("{bond_count} bonds announced, {bonds} found").into());
        }
        // Templates and the like may follow.
        while !self.inner_line()?.starts_with(END) {}
        Ok(())
    }

    /// The atom block of a V3000 molecule, `M  V30 index type x y z aamap …`.
    fn v3000_atoms(&mut self, announced: usize, atoms: &mut Atoms) -> Result<(), Stop> {
        loop {
            let line = self.v30_line()?;
            let line = line.trim();
            if line == "END ATOM" {
                return Ok(());
            }
            if atoms.len() == announced {
                return Err(format!("{announced} atoms announced, more found").into());
            }
            match line.split_ascii_whitespace().collect::<Vec<_>>()[..] {
                [_, symbol, x, y, z, ..] => push(atoms, (symbol, [x, y, z]))?,
                _ => return Err(not_an_atom(line).into()),
            }
        }
    }

    /// Reads up to the end of a block; gives its lines.
    fn v3000_block(&mut self, end: &str) -> Result<u64, Stop> {
        let mut lines = 0;
        while self.v30_line()?.trim() != end {
            lines += 1;
        }
        Ok(lines)
    }

    /// The next `M  V30` line without that mark, its continuations joined.
    fn v30_line(&mut self) -> Result<String, Stop> {
        let mut joined = String::new();
        loop {
            let line = self.inner_line()?;
            let Some(rest) = line.strip_prefix(V30) else {
                return Err(format!("not a line of a V3000 block: {}", excerpt(line.as_bytes())).into());
            };
            let Some(start) = rest.trim_end().strip_suffix('-') else { return Ok(joined + rest) };
            if joined.len() + start.len() > MAX_V30_BYTES {
                return Err("a V3000 line without end".to_owned().into());
            }
            joined.push_str(start);
        }
    }

    /// Reads past the bonds and the data items; gives the molecule's name if an item holds it.
    fn data_items(&mut self) -> io::Result<Option<String>> {
        let mut best: Option<(usize, String)> = None;
        let mut rank = None;
        while let Some(line) = self.line()? {
            if let Some(rank) = rank.take() {
                let value = line.trim();
                if !value.is_empty() && best.as_ref().is_none_or(|(r, _)| rank < *r) {
                    best = Some((rank, value.to_owned()));
                }
            } else if line.starts_with('>') {
                let item = line.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
                rank = item.and_then(|(item, _)| NAMES.iter().position(|name| *name == item));
            }
        }
        Ok(best.map(|(_, value)| value))
    }
}

/// An atom's symbol and coordinates, as written.
type AtomText<'a> = (&'a str, [&'a str; 3]);

fn push(atoms: &mut Atoms, (symbol, xyz): AtomText<'_>) -> Result<(), String> {
    let number =
        atomic_number(symbol).ok_or_else(|| format!("{} is not an element", excerpt(symbol.as_bytes())))?;
    atoms.push_text(number, xyz)
}

/// `xxxxx.xxxxyyyyy.yyyyzzzzz.zzzz aaa…`
fn fixed_columns(line: &str) -> Option<AtomText<'_>> {
    let symbol = line.get(31..34).or_else(|| line.get(31..))?.trim();
    Some((symbol, [line.get(0..10)?, line.get(10..20)?, line.get(20..30)?]))
}

/// `x y z symbol …`, for writers that do not keep to columns.
fn free_columns(line: &str) -> Option<AtomText<'_>> {
    let mut fields = line.split_ascii_whitespace();
    let xyz = [fields.next()?, fields.next()?, fields.next()?];
    Some((fields.next()?, xyz))
}

fn not_an_atom(line: &str) -> String {
    format!("not an atom: {}", excerpt(line.as_bytes()))
}

/// Adds the atom of a V2000 line, by columns or, for writers that do not keep to them, by fields.
fn push_v2000(atoms: &mut Atoms, line: &str) -> Result<(), String> {
    let by_columns = fixed_columns(line).map(|atom| push(atoms, atom));
    if let Some(Ok(())) = by_columns {
        return Ok(());
    }
    let by_fields = free_columns(line).map(|atom| push(atoms, atom));
    // The reason by columns is the one that counts for a line that keeps to them.
    by_fields.filter(Result::is_ok).or(by_columns).unwrap_or_else(|| Err(not_an_atom(line)))
}

/// The numbers of atoms and bonds of a V2000 counts line, in its first columns, three each.
fn v2000_counts(counts: &str) -> Result<(usize, usize), String> {
    let column = |at: usize| counts.get(at..at + 3).and_then(|field| field.trim().parse().ok());
    let columns = || Some((column(0)?, column(3)?));
    let mut fields = counts.split_ascii_whitespace().map(|field| field.parse().ok());
    let mut free = || Some((fields.next()??, fields.next()??));
    let (atoms, bonds) = columns()
        .or_else(&mut free)
        .ok_or_else(|| format!("no numbers of atoms and bonds: {}", excerpt(counts.as_bytes())))?;
    at_most(atoms, bonds)
}

/// The numbers of atoms and bonds of a V3000 line `COUNTS`.
fn v3000_counts(counts: &str) -> Result<(usize, u64), String> {
    let mut fields = counts.split_ascii_whitespace().map(|field| field.parse::<u64>().ok());
    let (atoms, bonds) = (fields.next().flatten(), fields.next().flatten());
    match (atoms.and_then(|n| usize::try_from(n).ok()), bonds) {
        (Some(atoms), Some(bonds)) => at_most(atoms, bonds),
        _ => Err(format!("no numbers of atoms and bonds: {}", excerpt(counts.as_bytes()))),
    }
}

/// The same, unless there are too many atoms.
fn at_most<T>(atoms: usize, bonds: T) -> Result<(usize, T), String> {
    if atoms > MAX_ATOMS {
        return Err(format!("{atoms} atoms; at most {MAX_ATOMS} are read"));
    }
    Ok((atoms, bonds))
}

#[cfg(test)]
mod tests;
