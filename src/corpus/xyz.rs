//! XYZ: frames of a count, a comment and an `element x y z` line per atom, one after another, in Å.
//!
//! The element is a symbol or an atomic number; what follows z is left out. Of an extended XYZ comment
//! (`key=value …`) the values are data items; one of a SMILES names the molecule, else the comment does.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use super::atoms::Atoms;
use super::collect::{Collector, Finished};
use super::damage::read_error;
use super::labels::{Items, Labels};
use super::lines::Lines;
use super::{Context, Emit, Source};
use crate::error::{Result, excerpt};
use crate::text::elements::{atomic_number, symbol};

/// The most atoms that a frame may announce.
const MAX_ATOMS: usize = 1_000_000;

/// The longest comment that names a molecule, in characters; longer ones hold something else.
const MAX_NAME_CHARS: usize = 256;

/// Reads a stream of frames; a bad one is skipped up to the next line that is a count.
///
/// # Errors
/// If the stream is damaged, the job was cancelled, or `emit` fails.
pub(crate) fn read(source: Source<'_>, context: Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
    let place = source.name.clone();
    let mut collector = Collector::new(source.name, context, emit);
    let mut atoms = Atoms::new(context.options);
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
    /// The count of the next frame, where a bad frame was left on that line.
    next_count: Option<String>,
    /// What the comment of the frame says by name.
    items: Items,
}

impl Frames<'_> {
    /// The next frame or the reason why it is skipped, and the line at which it ended; `None` after the last.
    fn next(
        &mut self,
        number: u64,
        atoms: &mut Atoms,
    ) -> io::Result<Option<(Result<Finished, String>, u64)>> {
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
        if outcome.is_err() {
            self.skip_to_count()?;
        }
        Ok(Some((outcome, line)))
    }

    /// The line that begins a frame; blank ones before it are passed over.
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

    /// Reads on until a line that is a count, which is kept.
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

    /// The comment and the atoms of a frame.
    fn frame(
        &mut self,
        count: usize,
        number: u64,
        atoms: &mut Atoms,
    ) -> io::Result<Result<Finished, String>> {
        let comment = self.lines.next()?.map_or(Cow::Borrowed(""), |line| Cow::Owned(line.trim().to_owned()));
        for read in 0..count {
            let line = match self.lines.next()? {
                Some(line) if !is_count(line.trim()) => line,
                next => {
                    // The count of the next frame, or the end of the file.
                    self.next_count = next.map(|line| line.trim().to_owned());
                    return Ok(Err(format!("{count} atoms announced, {read} found")));
                }
            };
            if let Err(reason) = push(atoms, &line) {
                return Ok(Err(reason));
            }
        }
        items(&comment, &mut self.items);
        let title = title(&comment);
        let molecule: Arc<str> = match self.items.smiles().or(title) {
            Some(name) => name.into(),
            None => format!("frame {number}").into(),
        };
        let labels = Labels { title, items: Some(&self.items), ..Labels::new(&molecule) };
        Ok(atoms.finish(&labels))
    }
}

fn is_count(line: &str) -> bool {
    !line.is_empty() && line.len() <= 10 && line.bytes().all(|b| b.is_ascii_digit())
}

fn push(atoms: &mut Atoms, line: &str) -> Result<(), String> {
    let mut fields = line.split_ascii_whitespace();
    let (Some(name), Some(x), Some(y), Some(z)) =
        (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        return Err(format!("not an atom: {}", excerpt(line.trim().as_bytes())));
    };
    let number = name.parse().ok().filter(|&n| symbol(n).is_some()).or_else(|| atomic_number(name));
    let number = number.ok_or_else(|| format!("{} is not an element", excerpt(name.as_bytes())))?;
    atoms.push_text(number, [x, y, z])
}

/// The `key=value` and `key="value"` of a comment, each after white space or at its beginning.
fn items(comment: &str, items: &mut Items) {
    items.clear();
    let mut rest = comment.trim_start();
    while !rest.is_empty() {
        let word = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
        let (key, after) = rest.split_at(word);
        let Some(value) = after.strip_prefix('=') else {
            rest = after.trim_start();
            continue;
        };
        let quoted = value.strip_prefix('"').and_then(|inside| inside.split_once('"'));
        let (value, after) =
            quoted.unwrap_or_else(|| value.split_at(value.find(char::is_whitespace).unwrap_or(value.len())));
        if !key.is_empty() {
            items.push(key, value);
        }
        rest = after.trim_start();
    }
}

/// The comment, if it is a name: no list of an extended XYZ, and not too long.
fn title(comment: &str) -> Option<&str> {
    let is_list = comment.contains("Properties=") || comment.contains("Lattice=");
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
