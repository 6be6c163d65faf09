//! Reads SDF: molecules as MDL mol blocks, V2000 or V3000, each followed by data items and `$$$$`.
//!
//! The format is described in "CTfile Formats" (BIOVIA, 2020). A molecule's atoms, bonds and data items are read; charges,
//! isotopes, radicals and valences are interpreted as RDKit does. Its name is the data item `canonical_smiles`, `smiles` or
//! `SMILES`, else the title. The numbers of atoms and bonds must equal the announced ones, and the mol block must end with
//! `M  END`.

mod drawing;
mod fields;
mod groups;
mod lines;
mod places;
mod properties;
mod table;

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use super::atoms::Atoms;
use super::collect::{CollectedRecord, Collector};
use super::damage::read_error;
use super::labels::{Items, Labels};
use super::lines::Lines;
use super::names::leading_smiles;
use super::{BatchSink, Context, Source};
use drawing::drawing;
use drift_core::Result;
use drift_core::chem::Graph;
use drift_core::error::excerpt;
use groups::DataGroups;
use lines::{numbers, push_v2000, push_v2000_bond, push_v3000, push_v3000_bond};
use properties::TextLines;
use table::{Refusal, Table};

const V30: &str = "M  V30 ";

/// The last line of a mol block.
const END: &str = "M  END";

/// The largest number of atoms that a molecule may announce. V2000 has room for 999.
const MAX_ATOMS: usize = 1_000_000;

/// The longest V3000 line including its continuations, in bytes.
const MAX_V30_BYTES: usize = 64 << 10;

/// Reads a stream of molecules. A bad molecule is skipped up to its `$$$$`.
///
/// # Errors
/// If the stream is damaged, the job was cancelled, or `emit` fails.
pub(crate) fn read(source: Source<'_>, context: Context<'_>, emit: &mut BatchSink<'_>) -> Result<()> {
    let place = source.name.clone();
    let mut collector = Collector::new(source.name, context, emit);
    let mut atoms = Atoms::new(context.options, &place);
    let mut records = Records { lines: Lines::new(source.reader), end: End::No };
    let mut items = Items::default();
    for number in 1u64.. {
        let record = records.next(number, &mut atoms, &mut items).map_err(|e| read_error(&place, e))?;
        let Some(Record { label, line, outcome }) = record else { break };
        collector.push(outcome, || format!("molecule {number}{label}, line {line}"))?;
    }
    collector.finish()
}

/// A molecule that was read, or the reason why it was not.
struct Record {
    /// ` (name)` if the molecule has a name, else empty.
    label: String,
    /// The number of the molecule's last line that was understood, or of the first that was not.
    line: u64,
    outcome: Result<CollectedRecord, String>,
}

/// Why the reading of a molecule stops: bad content, or a failed read.
enum Stop {
    /// At the line read last.
    Bad(String),
    /// At an earlier line.
    Refused(Refusal),
    Io(io::Error),
}

impl From<String> for Stop {
    fn from(reason: String) -> Self {
        Stop::Bad(reason)
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Stop::Refused(refusal)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Stop::Io(error)
    }
}

/// How the current molecule has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    No,
    /// At its `$$$$`.
    Mark,
    /// At the end of the file.
    File,
}

/// What a V3000 molecule announces of a block.
#[derive(Clone, Copy)]
struct BlockHeader {
    /// What its lines are.
    what: &'static str,
    /// How many there are.
    count: usize,
}

/// What the lines of a molecule state.
#[derive(Default)]
struct Statements {
    table: Table,
    groups: DataGroups,
}

impl Statements {
    /// Returns the molecule, after its last line.
    fn finish(mut self) -> Result<Graph, Refusal> {
        // RDKit's order: the hydrogens of stated valences, then the groups, which may replace them.
        self.table.apply_valences();
        self.groups.apply(&mut self.table)?;
        self.table.finish()
    }
}

struct Records<'a> {
    lines: Lines<'a>,
    end: End,
}

impl Records<'_> {
    /// Reads the next molecule; `None` after the last. Clears `atoms` and `items` first.
    fn next(&mut self, number: u64, atoms: &mut Atoms, items: &mut Items) -> io::Result<Option<Record>> {
        self.end = End::No;
        atoms.clear();
        items.clear();
        let mut header: [String; 4] = Default::default();
        for slot in &mut header {
            // A molecule may end within its header; the remaining header lines are then empty.
            *slot = self.line()?.unwrap_or_default().trim_end().to_owned();
        }
        if header.iter().all(String::is_empty) {
            // Empty lines behind the last molecule are none.
            while self.line()?.is_some_and(|line| line.trim().is_empty()) {}
            if self.end == End::File {
                return Ok(None);
            }
        }
        let outcome = self.molecule(&header, atoms);
        let mut line = self.lines.number();
        // Read on in any case, so that the next molecule begins after this one's `$$$$`.
        let holds_another = self.data_items(items)?;
        let outcome = match outcome {
            Ok(()) if holds_another => Err(Stop::Bad("another mol block follows without `$$$$`".to_owned())),
            outcome => outcome,
        };
        let title = Some(header[0].trim()).filter(|title| !title.is_empty());
        let name = items.smiles().or(title);
        let outcome = match outcome {
            Ok(()) => {
                let molecule: Arc<str> =
                    name.map_or_else(|| format!("molecule {number}").into(), |name| name.into());
                let comment = title.and_then(leading_smiles);
                atoms.finish(&Labels { title, items: Some(items), comment, ..Labels::new(&molecule) })
            }
            Err(Stop::Bad(reason)) => Err(reason),
            Err(Stop::Refused(refusal)) => {
                line = refusal.line;
                Err(refusal.reason)
            }
            Err(Stop::Io(error)) => return Err(error),
        };
        let label = name.map_or_else(String::new, |name| format!(" ({name})"));
        Ok(Some(Record { label, line, outcome }))
    }

    /// Returns the next line of the molecule; `None` after its last line.
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

    /// Returns the next line, as from [`line`](Self::line), where the end of the molecule is an error.
    fn inner_line(&mut self) -> Result<Cow<'_, str>, Stop> {
        self.line()?.ok_or_else(|| Stop::Bad("the molecule ends early".to_owned()))
    }

    /// Reads the atoms and bonds that the header announces.
    fn molecule(&mut self, header: &[String; 4], atoms: &mut Atoms) -> Result<(), Stop> {
        let counts = &header[3];
        let mut read = Statements::default();
        if counts.ends_with("V3000") {
            self.v3000(atoms, &mut read)?;
        } else if counts.ends_with("V2000") || !counts.contains('V') && v2000_counts(counts).is_ok() {
            // Old writers state no version.
            self.v2000(counts, atoms, &mut read)?;
        } else {
            return Err(format!("no counts line of V2000 or V3000: {}", excerpt(counts.as_bytes())).into());
        }
        if let Some(reason) = drawing(&header[1], atoms, read.table.has_wedges) {
            return Err(reason.to_owned().into());
        }
        let structure = atoms.share(read.finish()?)?;
        atoms.set_structure(structure);
        Ok(())
    }

    /// Reads the atoms, bonds and properties of a V2000 molecule.
    fn v2000(&mut self, counts: &str, atoms: &mut Atoms, read: &mut Statements) -> Result<(), Stop> {
        let (atom_count, bond_count) = v2000_counts(counts)?;
        for _ in 0..atom_count {
            push_v2000(&self.inner_line()?, atoms, &mut read.table)?;
        }
        for found in 0..bond_count {
            read.table.line = self.lines.number() + 1;
            let line = self.inner_line()?;
            if !line.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
                return Err(format!("{bond_count} bonds announced, {found} found").into());
            }
            push_v2000_bond(&line, &mut read.table)?;
        }
        self.v2000_properties(read)
    }

    /// Reads the lines after the bonds, up to `M  END`.
    fn v2000_properties(&mut self, read: &mut Statements) -> Result<(), Stop> {
        loop {
            read.table.line = self.lines.number() + 1;
            let line = self.inner_line()?;
            if line.starts_with(END) {
                return Ok(());
            }
            // The data items follow: the mol block has no `M  END`.
            if line.starts_with('>') {
                return Err("data items before `M  END`".to_owned().into());
            }
            let TextLines(texts) = read.table.property(&line, &mut read.groups)?;
            for _ in 0..texts {
                self.inner_line()?;
            }
        }
    }

    /// Reads the table of a V3000 molecule: counts, atoms, bonds, and other blocks, which are skipped.
    fn v3000(&mut self, atoms: &mut Atoms, read: &mut Statements) -> Result<(), Stop> {
        let Statements { table, groups } = read;
        let (mut counts, mut bonds_read) = (None, false);
        loop {
            let line = self.v30_line()?;
            let line = line.trim();
            if let Some(rest) = line.strip_prefix("COUNTS ") {
                counts = Some(v3000_counts(rest)?);
            } else if let Some(block) = line.strip_prefix("BEGIN ").filter(|block| *block != "CTAB") {
                let (atom_count, bond_count) = counts.ok_or_else(|| format!("{block} before COUNTS"))?;
                let end = format!("END {block}");
                match block {
                    "ATOM" if atoms.is_empty() => {
                        let announced = BlockHeader { what: "atoms", count: atom_count };
                        self.v3000_block(&end, announced, |line, _| push_v3000(line, atoms, table))?;
                    }
                    "BOND" if !bonds_read => {
                        let announced = BlockHeader { what: "bonds", count: bond_count };
                        self.v3000_block(&end, announced, |line, number| {
                            table.line = number;
                            push_v3000_bond(line, table)
                        })?;
                        bonds_read = true;
                    }
                    "SGROUP" => {
                        let announced = BlockHeader { what: "groups", count: usize::MAX };
                        self.v3000_block(&end, announced, |line, number| groups.v3000(line, number))?;
                    }
                    "ATOM" | "BOND" => return Err(format!("two blocks {block}").into()),
                    _ => while self.v30_line()?.trim() != end {},
                }
            } else if line == "END CTAB" {
                break;
            }
        }
        let (atom_count, bond_count) = counts.ok_or_else(|| "no line COUNTS".to_owned())?;
        if atoms.len() != atom_count {
            return Err(format!("{atom_count} atoms announced, {} found", atoms.len()).into());
        }
        // Without a bond block no bonds were read, whatever number was announced.
        if table.bonds() != bond_count {
            return Err(format!("{bond_count} bonds announced, {} found", table.bonds()).into());
        }
        // Templates and similar blocks may follow.
        while !self.inner_line()?.starts_with(END) {}
        Ok(())
    }

    /// Passes the lines of a block with their numbers to `push`, up to the line `end`. At most as many as announced may be there.
    fn v3000_block(
        &mut self,
        end: &str,
        announced: BlockHeader,
        mut push: impl FnMut(&str, u64) -> Result<(), String>,
    ) -> Result<(), Stop> {
        for found in 0.. {
            let line = self.v30_line()?;
            let line = line.trim();
            if line == end {
                break;
            }
            if found == announced.count {
                return Err(format!("{} {} announced, more found", announced.count, announced.what).into());
            }
            push(line, self.lines.number())?;
        }
        Ok(())
    }

    /// Returns the next `M  V30` line without that prefix, joined with its continuation lines.
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

    /// Reads the data items. Of each value, only the first line is kept. Returns whether a mol block ends before the first item; the
    /// value of an item may be one.
    fn data_items(&mut self, items: &mut Items) -> io::Result<bool> {
        let (mut name, mut awaited, mut any, mut holds_another) = (String::new(), false, false, false);
        while let Some(line) = self.line()? {
            let item = line.strip_prefix('>').and_then(|rest| rest.split_once('<')?.1.split_once('>'));
            if let Some((item, _)) = item {
                name.clear();
                name.push_str(item);
                (awaited, any) = (true, true);
            } else if !any && line.starts_with(END) {
                holds_another = true;
            } else if std::mem::take(&mut awaited) {
                items.push(&name, line.trim());
            }
        }
        Ok(holds_another)
    }
}

/// Returns the numbers of atoms and bonds in a V2000 counts line: its first two columns, three characters each.
fn v2000_counts(counts: &str) -> Result<(usize, usize), String> {
    // Numbers of three digits leave no space between columns.
    let column = |at: usize| counts.get(at..at + 3).and_then(|field| field.trim().parse().ok());
    at_most(counts, column(0).zip(column(3)).map(|(atoms, bonds)| [atoms, bonds]).or_else(|| numbers(counts)))
}

/// Returns the numbers of atoms and bonds of a V3000 line `COUNTS`.
fn v3000_counts(counts: &str) -> Result<(usize, usize), String> {
    at_most(counts, numbers(counts))
}

/// Returns the numbers of atoms and bonds of a line unless they are missing or exceed the limits.
fn at_most(line: &str, counts: Option<[usize; 2]>) -> Result<(usize, usize), String> {
    let [atoms, bonds] =
        counts.ok_or_else(|| format!("no counts of atoms and bonds: {}", excerpt(line.as_bytes())))?;
    if atoms > MAX_ATOMS {
        return Err(format!("{atoms} atoms; at most {MAX_ATOMS} are read"));
    }
    Ok((atoms, table::at_most(bonds)?))
}

#[cfg(test)]
mod tests;
