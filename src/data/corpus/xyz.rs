//! Reads XYZ: consecutive frames of an atom count, a comment, and one line `element x y z` per atom, in Å.
//!
//! The element is a symbol, a name such as `C1`, or an atomic number; `D` and `T` are isotopes. Anything after z is ignored.
//! Exponents may be written as in Fortran (`1D-3`) or QM9 (`1.5*^-6`). The values of an extended XYZ comment (`key=value …`) become
//! data items, as do those of `key: value`, and `Properties` states which columns hold species and positions
//! (<https://github.com/libAtoms/extxyz#extended-xyz-specification-and-parsing-tools>). A comment that begins
//! with a valid SMILES, in quotes or not, gives the molecule's SMILES. In QM9 files (R. Ramakrishnan et al., Sci. Data 1 (2014) 140022), the lines of frequencies, SMILES and
//! InChI after the atoms belong to the record.

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
use drift_core::Result;
use drift_core::chem::elements::{atomic_number, isotope_of_name, symbol};
use drift_core::error::excerpt;

/// The largest number of atoms that a frame may announce.
const MAX_ATOMS: usize = 1_000_000;

/// The longest comment, in characters, that is taken as a molecule's name. Longer comments contain something else.
const MAX_NAME_CHARS: usize = 256;

/// Reads a stream of frames. A bad frame is skipped up to the next line that is a count.
///
/// # Errors
/// If the stream is damaged, the job was cancelled, or `emit` fails.
pub(crate) fn read(source: Source<'_>, context: Context<'_>, emit: &mut BatchSink<'_>) -> Result<()> {
    let place = source.name.clone();
    let mut collector = Collector::new(source.name, context, emit);
    let mut atoms = Atoms::new(context.options, &place);
    let mut frames = Frames { lines: Lines::new(source.reader), next_count: None, items: Items::default() };
    for number in 1u64.. {
        let frame = frames.next(number, &mut atoms).map_err(|e| read_error(&place, e))?;
        let Some((outcome, line)) = frame else { break };
        collector.push(outcome, || format!("frame {number}, line {line}"))?;
    }
    collector.finish()
}

struct Frames<'a> {
    lines: Lines<'a>,
    /// The count line of the next frame, if it was already read when a bad frame ended.
    next_count: Option<String>,
    /// The named values of the frame's comment.
    items: Items,
}

impl Frames<'_> {
    /// Returns the next frame or the reason why it is skipped, with the number of the line where it ended; `None` after the last frame.
    fn next(
        &mut self,
        number: u64,
        atoms: &mut Atoms,
    ) -> io::Result<Option<(Result<CollectedRecord, String>, u64)>> {
        atoms.clear();
        let Some(count) = self.count_line()? else { return Ok(None) };
        let outcome = match count.parse::<usize>() {
            Ok(0) => {
                self.lines.next()?;
                Err("no atom".to_owned())
            }
            Ok(count) if count <= MAX_ATOMS => self.frame(count, number, atoms)?,
            Ok(count) => Err(format!("{count} atoms; at most {MAX_ATOMS} are read")),
            Err(_) => Err(format!("not a number of atoms: {}", excerpt(count.as_bytes()))),
        };
        let line = self.lines.number();
        // The unread lines of a bad frame are skipped, up to the next line that is a count.
        if outcome.is_err() {
            self.skip_to_count()?;
        }
        Ok(Some((outcome, line)))
    }

    /// Returns the first line of a frame. Blank lines before it are skipped.
    fn count_line(&mut self) -> io::Result<Option<String>> {
        if let Some(count) = self.next_count.take() {
            return Ok(Some(count));
        }
        while let Some(line) = self.lines.next()? {
            let line = line.trim();
            if !line.is_empty() {
                return Ok(Some(line.to_owned()));
            }
        }
        Ok(None)
    }

    /// Skips lines up to a line that is a count, and stores that line.
    fn skip_to_count(&mut self) -> io::Result<()> {
        while self.next_count.is_none() {
            let Some(line) = self.lines.next()? else { break };
            let line = line.trim();
            if is_count(line) {
                self.next_count = Some(line.to_owned());
            }
        }
        Ok(())
    }

    /// Reads the comment and the atoms of a frame.
    fn frame(
        &mut self,
        count: usize,
        number: u64,
        atoms: &mut Atoms,
    ) -> io::Result<Result<CollectedRecord, String>> {
        let comment = self.lines.next()?.map_or(Cow::Borrowed(""), |line| Cow::Owned(line.trim().to_owned()));
        items(&comment, &mut self.items);
        let columns = match self.items.get("Properties").map_or(Ok(Columns::PLAIN), Columns::of) {
            Ok(columns) => columns,
            Err(reason) => return Ok(Err(reason)),
        };
        for read in 0..count {
            // A count line among the atoms means that there are fewer atoms than announced. It is the count of the next frame and
            // must be kept.
            let line = match self.lines.next()? {
                Some(line) if !is_count(line.trim()) => line,
                next => {
                    // The count of the next frame, or `None` at the end of the file.
                    self.next_count = next.map(|line| line.trim().to_owned());
                    return Ok(Err(format!("{count} atoms announced, {read} found")));
                }
            };
            if let Err(reason) = push(atoms, &line, columns) {
                return Ok(Err(reason));
            }
        }
        if comment.starts_with(QM9) {
            self.rest_of_qm9()?;
        }
        let title = title(&comment, &self.items);
        let molecule: Arc<str> = match self.items.smiles().or(title).or(self.items.name()) {
            Some(name) => name.into(),
            None => format!("frame {number}").into(),
        };
        let comment = leading_smiles(&comment);
        let labels = Labels { title, items: Some(&self.items), comment, ..Labels::new(&molecule) };
        Ok(atoms.finish(&labels))
    }

    /// Reads the lines after the atoms of a QM9 file. The second SMILES, that of the relaxed geometry, becomes a data item; if it
    /// is missing, the first SMILES does.
    fn rest_of_qm9(&mut self) -> io::Result<()> {
        for line in 0..3 {
            let Some(text) = self.lines.next()? else { break };
            // These lines may be missing, or another frame may follow immediately.
            if is_count(text.trim()) {
                self.next_count = Some(text.trim().to_owned());
                break;
            }
            if line == 1 {
                let mut fields = text.split_ascii_whitespace();
                let (of_start, relaxed) = (fields.next(), fields.next());
                relaxed.or(of_start).into_iter().for_each(|smiles| self.items.push("smiles", smiles));
            }
        }
        Ok(())
    }
}

/// The start of the comment of a QM9 file.
const QM9: &str = "gdb ";

/// The columns of species and positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Columns {
    /// The column of element symbols, or else of atomic numbers.
    species: usize,
    /// The column of x; y and z follow.
    position: usize,
}

impl Columns {
    const PLAIN: Columns = Columns { species: 0, position: 1 };

    /// Parses `Properties` of an extended XYZ, `species:S:1:pos:R:3:…`: for each entry a name, a type and a number of columns.
    ///
    /// # Errors
    /// A reason: it is not a list of columns, or lacks species or positions.
    fn of(properties: &str) -> Result<Self, String> {
        let shown = || excerpt(properties.as_bytes());
        let (mut next, mut species, mut number, mut position) = (0, None, None, None);
        let fields: Vec<&str> = properties.split(':').collect();
        for column in fields.chunks(3) {
            let [name, kind, count] = column else {
                return Err(format!("not a list of columns: {}", shown()));
            };
            let count: usize = count.parse().map_err(|_| format!("not a list of columns: {}", shown()))?;
            match (*name, *kind, count) {
                ("species" | "element" | "symbol", "S", 1) => species = Some(next),
                ("Z" | "numbers", "I", 1) => number = Some(next),
                ("pos" | "positions", "R", 3) => position = Some(next),
                _ => {}
            }
            next = count.saturating_add(next);
        }
        let position = position.ok_or_else(|| format!("no column `pos` of positions in {}", shown()))?;
        let species = species.or(number).ok_or_else(|| format!("no column `species` in {}", shown()))?;
        Ok(Columns { species, position })
    }
}

fn is_count(line: &str) -> bool {
    !line.is_empty() && line.len() <= 10 && line.bytes().all(|b| b.is_ascii_digit())
}

fn push(atoms: &mut Atoms, line: &str, columns: Columns) -> Result<(), String> {
    let mut fields = line.split_ascii_whitespace().enumerate();
    let (mut name, mut xyz) = (None, [None; 3]);
    for (at, field) in
        fields.by_ref().take(columns.species.max(columns.position.saturating_add(2)).saturating_add(1))
    {
        if at == columns.species {
            name = Some(field);
        } else if let Some(slot) = at.checked_sub(columns.position).and_then(|axis| xyz.get_mut(axis)) {
            *slot = Some(field);
        }
    }
    let (Some(name), [Some(x), Some(y), Some(z)]) = (name, xyz) else {
        return Err(format!("not an atom: {}", excerpt(line.trim().as_bytes())));
    };
    // Atomic numbers are tried first, since no element symbol is a number.
    let number = name.parse().ok().filter(|&n| symbol(n).is_some()).or_else(|| element(name));
    let number = number.ok_or_else(|| format!("{} is not an element", excerpt(name.as_bytes())))?;
    let [x, y, z] = [x, y, z].map(with_exponent);
    atoms.push_text(number, [&x, &y, &z])?;
    isotope_of_name(name).into_iter().for_each(|mass_number| atoms.label_isotope(mass_number));
    Ok(())
}

/// Returns the element of a symbol, or of an atom name: a symbol followed by a number, `C1`.
fn element(name: &str) -> Option<u8> {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit());
    atomic_number(name).or_else(|| atomic_number(bare).filter(|_| !bare.is_empty()))
}

/// Rewrites a number's exponent for Rust: `1.5*^-6` and `1.5D-6` become `1.5e-6`.
fn with_exponent(number: &str) -> Cow<'_, str> {
    if let Some((mantissa, exponent)) = number.split_once("*^") {
        return Cow::Owned(format!("{mantissa}e{exponent}"));
    }
    match number.find(['D', 'd']) {
        Some(at) if at > 0 => Cow::Owned(format!("{}e{}", &number[..at], &number[at + 1..])),
        _ => Cow::Borrowed(number),
    }
}

/// Reads the entries `key=value`, `key="value"` and `key: value` of a comment, each at its beginning or after white space. White space
/// may surround the sign: `key = value`.
fn items(comment: &str, items: &mut Items) {
    items.clear();
    let mut rest = comment.trim_start();
    while !rest.is_empty() {
        let word = rest.find(|c: char| matches!(c, '=' | ':') || c.is_whitespace()).unwrap_or(rest.len());
        let (key, after) = rest.split_at(word);
        let Some(value) = after.trim_start().strip_prefix(['=', ':']) else {
            rest = after.trim_start();
            continue;
        };
        // `key= key=value` has an empty value first.
        let value = if after.starts_with('=') { value } else { value.trim_start() };
        let quoted = value.strip_prefix('"').and_then(|inside| inside.split_once('"'));
        let (value, after) =
            quoted.unwrap_or_else(|| value.split_at(value.find(char::is_whitespace).unwrap_or(value.len())));
        if !key.is_empty() {
            items.push(key, value);
        }
        rest = after.trim_start();
    }
}

/// Returns the comment, if it can be a name: no properties of an extended XYZ, no name among its values, and not too long.
fn title<'c>(comment: &'c str, items: &Items) -> Option<&'c str> {
    let is_list = comment.contains("Properties=") || comment.contains("Lattice=") || items.name().is_some();
    (!comment.is_empty() && !is_list && comment.chars().count() <= MAX_NAME_CHARS).then_some(comment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Batch;

    fn read_all(text: &str) -> Batch {
        crate::corpus::testing::read_all(read, text)
    }

    #[test]
    fn frames_symbols_numbers_and_names() {
        let all = read_all(
            "3\r\nCO\r\nC 0 0 0.12345\r\n8 1e0 -1 2 0.5 0.5\r\nH 1 1 1\r\n\n  1\nLattice=\"1 0\" smiles=\"[Br]\"\n  br 1 2 3\n\
             1\n\nN 0 0 0\n1\nProperties=species:S:1:pos:R:3\nN 0 0 0",
        );
        assert_eq!(all.skipped, []);
        let names: Vec<_> = all.conformers.iter().map(|c| &*c.molecule).collect();
        assert_eq!(names, ["CO", "[Br]", "frame 3", "frame 4"]);
        assert_eq!(&*all.conformers[0].skeleton, "[C]<>[O]<>");
        assert_eq!(all.conformers[0].coordinates, [[0, 0, 1_234], [10_000, -10_000, 20_000]]);
    }

    #[test]
    fn a_name_among_the_values_of_a_comment_is_the_name() {
        for (comment, name) in [("id=\"a 1\" e=-1.5", "a 1"), ("name: b e: -1", "b"), ("e=-1.5", "e=-1.5")] {
            let read = read_all(&format!("1\n{comment}\nBr 1 2 3\n"));
            assert_eq!(&*read.conformers[0].molecule, name);
        }
    }

    #[test]
    fn a_comment_says_its_smiles_in_many_ways() {
        let values = |comment: &str| -> Vec<(String, String)> {
            let mut found = Items::default();
            items(comment, &mut found);
            found.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
        for comment in [
            "smiles=[Br]",
            "smiles=\"[Br]\"",
            "smiles: [Br]",
            "smiles:[Br]",
            "smiles : [Br] charge: 0",
            "smiles = [Br]",
            "of today, id: 7, smiles: \"[Br]\"",
        ] {
            let all = read_all(&format!("1\n{comment}\nBr 1 2 3\n"));
            assert_eq!(&*all.conformers[0].molecule, "[Br]", "{comment}");
        }
        assert_eq!(&*read_all("1\nSMILES: [Br]\nBr 1 2 3\n").conformers[0].molecule, "[Br]");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            values("a= b=1 c:d=e 12:30"),
            [pair("a", ""), pair("b", "1"), pair("c", "d=e"), pair("12", "30")]
        );
        // A SMILES may hold both signs.
        assert_eq!(values("smiles: C=C:C id=x"), [pair("smiles", "C=C:C"), pair("id", "x")]);
        assert_eq!(values("C=C = C"), [pair("C", "C")]);
    }

    #[test]
    fn columns_names_and_exponents() {
        for (properties, line, expected) in [
            ("species:S:1:Z:I:1:pos:R:3", "O 8 1 2 3", [10_000, 20_000, 30_000]),
            ("pos:R:3:species:S:1", "1 2 3 O", [10_000, 20_000, 30_000]),
            ("id:I:1:forces:R:3:pos:R:3:Z:I:1", "7 9 9 9 1 2 3 8", [10_000, 20_000, 30_000]),
            ("pos:R:3:tag:S:1:species:S:1", "1.5*^-1 2D0 3d-1 C O", [1_500, 20_000, 3_000]),
        ] {
            let all = read_all(&format!("1\nProperties={properties} pbc=\"F F F\"\n{line}\n"));
            assert_eq!(all.skipped, [], "{properties}");
            let found = &all.conformers[0];
            assert_eq!((&*found.skeleton, &found.coordinates[0]), ("[O]<>", &expected), "{properties}");
        }
        for (properties, reason) in [
            ("species:S:1:velo:R:3", "no column `pos` of positions in `species:S:1:velo:R:3`"),
            ("pos:R:3", "no column `species` in `pos:R:3`"),
            ("species:S:one:pos:R:3", "not a list of columns: `species:S:one:pos:R:3`"),
            ("species:S:1:pos:R", "not a list of columns: `species:S:1:pos:R`"),
        ] {
            let all = read_all(&format!("1\nProperties={properties}\nO 1 2 3\n"));
            assert_eq!(all.skipped[0].reason, reason);
        }
        let all = read_all("3\n\nC1 0 0 0\nBR12 1 1 1\nH3 2 2 2\n");
        assert_eq!(&*all.conformers[0].skeleton, "[C]<>[Br]<>");
        assert_eq!(read_all("1\n\n12C 0 0 0\n").skipped[0].reason, "`12C` is not an element");
    }

    #[test]
    fn what_follows_the_atoms_of_a_qm9_file_is_its_own() {
        let one = "2\ngdb 9\t1.0\t2.5*^-6\nC\t0.1\t0.2\t-1.5*^-6\t-0.3\nO\t1.0\t1.0\t1.0\t0.1\n12.5\t100.1\nC=O\tO=C\nInChI=1S/a\tInChI=1S/a\n";
        let all = read_all(&format!("{one}{one}1\nlast\nN 0 0 0\n"));
        assert_eq!(all.skipped, []);
        let names: Vec<_> = all.conformers.iter().map(|c| &*c.molecule).collect();
        assert_eq!(names, ["O=C", "O=C", "last"]);
        assert_eq!(all.conformers[0].coordinates[0], [1_000, 2_000, 0]);
    }

    #[test]
    fn items_of_a_comment() {
        let mut found = Items::default();
        for (comment, expected) in [
            ("", &[][..]),
            ("C=O", &[("C", "O")]),
            ("a b=1  c=\"two words\" d=\"open e", &[("b", "1"), ("c", "two words"), ("d", "\"open")]),
            ("smiles=C=O =x y=", &[("smiles", "C=O"), ("y", "")]),
            ("pbc=\"F F F\"id=7", &[("pbc", "F F F"), ("id", "7")]),
        ] {
            items(comment, &mut found);
            assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{comment}");
        }
    }

    #[test]
    fn a_bad_frame_does_not_take_the_next_with_it() {
        for (bad, record, reason) in [
            ("2\n\nC 0 0\nC 0 0 0\n", "frame 1, line 3", "not an atom: `C 0 0`"),
            ("1\n\nC 0 0 nan\n", "frame 1, line 3", "`nan`: not finite"),
            ("1\n\nC 0 0 -inf\n", "frame 1, line 3", "`-inf`: not finite"),
            ("1\n\nC 0 0 1e6\n", "frame 1, line 3", "`1e6`: beyond 99,999.9999 Å"),
            ("1\n\nXx 0 0 0\n", "frame 1, line 3", "`Xx` is not an element"),
            ("1\n\n119 0 0 0\n", "frame 1, line 3", "`119` is not an element"),
            ("1\n\nH 0 0 0\n", "frame 1, line 3", "no heavy atom"),
            ("3\n\nC 0 0 0\n", "frame 1, line 4", "3 atoms announced, 1 found"),
            ("0\n\n", "frame 1, line 2", "no atom"),
            ("4294967296\n\n", "frame 1, line 1", "4294967296 atoms; at most 1000000 are read"),
            ("1\n\nC 0 0 0\nC 0 0 0\n", "frame 2, line 4", "not a number of atoms: `C 0 0 0`"),
        ] {
            let all = read_all(&format!("{bad}1\nlast\nN 0 0 0\n"));
            assert_eq!((&*all.skipped[0].record, &*all.skipped[0].reason), (record, reason), "{bad:?}");
            assert_eq!(all.skipped.len(), 1);
            assert_eq!(all.conformers.last().map(|c| &*c.molecule), Some("last"), "{bad:?}");
        }
        assert_eq!(read_all("2\n\nC 0 0 0").skipped[0].reason, "2 atoms announced, 1 found");
    }
}
