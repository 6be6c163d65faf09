//! SDF: molecules as MDL mol blocks, V2000 or V3000, with data items, ended by `$$$$`.
//!
//! The format is that of "CTfile Formats" (BIOVIA, 2020). Of a molecule its atoms and its name are read: the data item
//! `canonical_smiles`, `smiles` or `SMILES`, else the title. Bonds are not: the order of atoms is the file's.

use std::borrow::Cow;
use std::io;

use super::atoms::{Atoms, atomic_number};
use super::collect::Collector;
use super::lines::Lines;
use super::source::read_error;
use super::{Conformer, Context, Emit, Source};
use crate::error::{Result, excerpt};

/// The data items that name a molecule, best first.
const NAMES: [&str; 3] = ["canonical_smiles", "smiles", "SMILES"];

const V30: &str = "M  V30 ";

/// The longest V3000 line with its continuations, in bytes.
const MAX_V30_BYTES: usize = 64 << 10;

/// Reads a stream of molecules; a bad one is skipped up to its `$$$$`.
///
/// # Errors
/// If the stream is damaged, the job was cancelled, or `emit` fails.
pub(crate) fn read(source: Source<'_>, context: Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
    let place = source.name.clone();
    let mut collector = Collector::new(source.name, context, emit);
    let mut reader =
        Reader { lines: Lines::new(source.reader), atoms: Atoms::new(context.options.frame), ended: false };
    for number in 1u64.. {
        let Some(Record { title, line, outcome }) = reader.record(number).map_err(|e| read_error(&place, e))? else {
            break;
        };
        collector.push(outcome, || {
            let title = if title.is_empty() { String::new() } else { format!(" ({title})") };
            format!("molecule {number}{title}, line {line}")
        })?;
    }
    collector.finish()
}

/// A molecule that was read, or why it was not.
struct Record {
    title: String,
    /// Where it went wrong.
    line: u64,
    outcome: Result<Conformer, String>,
}

/// What ends the reading of a molecule: bad content, or a failed read.
enum Stop {
    Bad(String),
    Io(io::Error),
}

impl From<String> for Stop {
    fn from(reason: String) -> Self {
        Stop::Bad(reason)
    }
}

impl From<&str> for Stop {
    fn from(reason: &str) -> Self {
        Stop::Bad(reason.to_owned())
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Stop::Io(error)
    }
}

struct Reader<'a> {
    lines: Lines<'a>,
    atoms: Atoms,
    /// Whether the molecule's `$$$$`, or the end of the file, has been read.
    ended: bool,
}

impl Reader<'_> {
    /// The next molecule; `None` after the last.
    fn record(&mut self, number: u64) -> io::Result<Option<Record>> {
        self.ended = false;
        self.atoms.clear();
        let Some(title) = self.lines.next()? else { return Ok(None) };
        let title = title.trim().to_owned();
        let mut name = None;
        let read = if title == "$$$$" {
            self.ended = true;
            Err(Stop::from("an empty record"))
        } else {
            self.molecule()
        };
        // The place of a fault is where the atoms were being read, not where the record ends.
        let line = self.lines.number();
        let read = match read {
            Ok(()) => self.data_items().map(|found| name = found),
            Err(stop) => Err(stop),
        };
        let empty = title.is_empty() && self.ended && self.lines.number() == line && self.atoms.is_empty();
        while !self.ended {
            self.line()?;
        }
        let outcome = match read {
            Err(Stop::Io(error)) => return Err(error),
            // Blank lines after the last `$$$$`.
            Err(Stop::Bad(_)) if empty && self.lines.next()?.is_none() => return Ok(None),
            Err(Stop::Bad(reason)) => Err(reason),
            Ok(()) => {
                let title = if title.is_empty() { format!("molecule {number}") } else { title.clone() };
                self.atoms.finish(name.unwrap_or(title).into())
            }
        };
        Ok(Some(Record { title, line, outcome }))
    }

    /// The next line of the molecule; `None` once it has ended.
    fn line(&mut self) -> io::Result<Option<Cow<'_, str>>> {
        if self.ended {
            return Ok(None);
        }
        let Some(line) = self.lines.next()? else {
            self.ended = true;
            return Ok(None);
        };
        if line.starts_with("$$$$") {
            self.ended = true;
            return Ok(None);
        }
        Ok(Some(line))
    }

    /// As [`line`](Self::line), where the molecule may not end.
    fn inner_line(&mut self) -> Result<Cow<'_, str>, Stop> {
        self.line()?.ok_or_else(|| Stop::from("the molecule ends early"))
    }

    /// The rest of the header, and the atoms.
    fn molecule(&mut self) -> Result<(), Stop> {
        let flat = self.inner_line()?.get(20..22) == Some("2D");
        self.inner_line()?;
        let counts = self.inner_line()?;
        let counts = counts.trim_end();
        if counts.ends_with("V3000") {
            self.v3000_atoms()?;
        } else if counts.ends_with("V2000") {
            let count = v2000_count(counts)?;
            for _ in 0..count {
                self.v2000_atom()?;
            }
        } else {
            return Err(format!("no counts line of V2000 or V3000: {}", excerpt(counts.as_bytes())).into());
        }
        if flat { Err("a 2D drawing, not a conformer".into()) } else { Ok(()) }
    }

    fn v2000_atom(&mut self) -> Result<(), Stop> {
        if self.ended {
            return Err("the molecule ends early".into());
        }
        // Borrowed apart from `self.atoms`, so not by `inner_line`.
        let Some(line) = self.lines.next()? else {
            self.ended = true;
            return Err("the molecule ends early".into());
        };
        if line.starts_with("$$$$") {
            self.ended = true;
            return Err("the molecule ends early".into());
        }
        let fixed = fixed_columns(&line).map_or(Err(String::new()), |atom| push(&mut self.atoms, atom));
        if let Err(first) = fixed {
            let free = free_columns(&line).map_or(Err(String::new()), |atom| push(&mut self.atoms, atom));
            if let Err(second) = free {
                let reason = [first, second].into_iter().find(|r| !r.is_empty());
                return Err(reason.unwrap_or_else(|| not_an_atom(&line)).into());
            }
        }
        Ok(())
    }

    /// The atom block of a V3000 molecule, `M  V30 index type x y z aamap …`.
    fn v3000_atoms(&mut self) -> Result<(), Stop> {
        while self.v30_line()?.trim() != "BEGIN ATOM" {}
        loop {
            let line = self.v30_line()?;
            let line = line.trim();
            if line == "END ATOM" {
                return Ok(());
            }
            let mut fields = line.split_ascii_whitespace().skip(1);
            let (Some(symbol), Some(x), Some(y), Some(z)) =
                (fields.next(), fields.next(), fields.next(), fields.next())
            else {
                return Err(not_an_atom(line).into());
            };
            push(&mut self.atoms, (symbol, [x, y, z]))?;
        }
    }

    /// The next `M  V30` line without that mark, its continuations joined.
    fn v30_line(&mut self) -> Result<String, Stop> {
        let mut joined = String::new();
        loop {
            let line = self.inner_line()?;
            let rest = line.strip_prefix(V30).ok_or_else(|| format!("no V3000 atom block: {}", excerpt(line.as_bytes())))?;
            match rest.trim_end().strip_suffix('-') {
                Some(start) if joined.len() + start.len() <= MAX_V30_BYTES => joined.push_str(start),
                Some(_) => return Err("a V3000 line without end".into()),
                None => {
                    joined.push_str(rest);
                    return Ok(joined);
                }
            }
        }
    }

    /// Reads past the bonds and the data items; gives the molecule's name if an item holds it.
    fn data_items(&mut self) -> Result<Option<String>, Stop> {
        let mut best: Option<(usize, String)> = None;
        let mut rank = None;
        while let Some(line) = self.line()? {
            if let Some(rank) = rank.take() {
                let value = line.trim();
                if !value.is_empty() && best.as_ref().is_none_or(|(r, _)| rank < *r) {
                    best = Some((rank, value.to_owned()));
                }
            } else if line.starts_with('>') {
                let name = line.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
                rank = name.and_then(|(name, _)| NAMES.iter().position(|n| *n == name));
            }
        }
        Ok(best.map(|(_, value)| value))
    }
}

/// An atom's symbol and coordinates, as written.
type AtomText<'a> = (&'a str, [&'a str; 3]);

fn push(atoms: &mut Atoms, (symbol, xyz): AtomText<'_>) -> Result<(), String> {
    let number = atomic_number(symbol)
        .ok_or_else(|| format!("{} is not an element", excerpt(symbol.as_bytes())))?;
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

/// The number of atoms of a V2000 counts line, in its first three columns.
fn v2000_count(counts: &str) -> Result<usize, String> {
    let columns = counts.get(0..3).and_then(|field| field.trim().parse().ok());
    let free = || counts.split_ascii_whitespace().next().and_then(|field| field.parse().ok());
    columns.or_else(free).ok_or_else(|| format!("no number of atoms: {}", excerpt(counts.as_bytes())))
}
