//! SMILES by molecule name, for conformers whose files give no SMILES.
//!
//! | content | read as |
//! | --- | --- |
//! | a line that begins with `{` | JSON Lines: `canonical_smiles` or `smiles`, and `id`, `name` or `title` |
//! | a first line with a column of SMILES | CSV (RFC 4180 within a line), commas, semicolons or tabs: the same columns, small letters or capitals; also those of PubChem and ChEMBL, `CID,CanonicalSMILES` |
//! | one SMILES alone | that of every molecule |
//! | else | a SMILES, white space, and the name, which is the rest of the line |
//!
//! Empty lines are skipped, and so are lines of text that begin with `#`. If a SMILES is in quotes, or is followed by CXSMILES
//! extensions or a name, only the SMILES is taken.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::lines::MAX_LINE_BYTES;
use drift_core::error::{Error, Result, shortened_end};
use drift_core::io::{self, BoundedLines, LineEnds};
use drift_core::job::{InputHash, Job};

/// The limit of all names and SMILES together, in bytes.
const MAX_BYTES: usize = 1 << 30;

/// Columns and fields that hold a SMILES, in order of preference, in lower case. PubChem's `CanonicalSMILES` has no stereo.
const SMILES_FIELDS: [&str; 8] = [
    "canonical_smiles",
    "smiles",
    "isomericsmiles",
    "isosmiles",
    "isomeric_smiles",
    "pubchem_smiles",
    "canonicalsmiles",
    "connectivitysmiles",
];

/// Columns and fields that hold a name, in order of preference, in lower case.
const NAME_FIELDS: [&str; 9] =
    ["id", "name", "title", "_name", "cid", "compound_cid", "chembl_id", "molecule_chembl_id", "zinc_id"];

/// The SMILES of each name.
#[derive(Debug)]
pub struct Names {
    /// For each name, its SMILES and the line that it comes from.
    smiles: HashMap<Box<str>, (Box<str>, u64)>,
    /// The SMILES of a file that contains one SMILES and no name.
    whole: Option<Arc<str>>,
    /// The file.
    pub source: InputHash,
}

/// The layout of the lines.
enum Layout {
    Text,
    Jsonl,
    Columns { separator: char, smiles: usize, name: usize },
}

impl Names {
    /// Reads a file, plain or gzipped.
    ///
    /// # Errors
    /// If the file cannot be read; if a line is longer than 16 MiB, is not text, or lacks a SMILES or a name; if two lines give one
    /// name different SMILES; or if names and SMILES exceed 1 GiB.
    pub fn read(path: &Path, job: &Job) -> Result<Self> {
        let mut opened = io::open(path, job);
        let fail = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::InvalidData => Error::input(path.display(), error, REMEDY),
            _ => job.check().err().unwrap_or_else(|| Error::io(path, error)),
        };
        let mut smiles: HashMap<Box<str>, (Box<str>, u64)> = HashMap::new();
        let (mut layout, mut bytes, mut whole) = (None, 0usize, None::<Arc<str>>);
        let mut lines = BoundedLines::with_ends(&mut opened.reader, MAX_LINE_BYTES, LineEnds::Any);
        while let Some(line) = lines.next_line().map_err(fail)? {
            let number = line.number;
            let refuse =
                |problem: String| Error::input(path.display(), format!("line {number}: {problem}"), REMEDY);
            let text = std::str::from_utf8(line.bytes).map_err(|_| refuse("not UTF-8".to_owned()))?;
            let layout = match &layout {
                Some(known) => known,
                // The first non-empty line determines the layout.
                None if text.trim().is_empty() => continue,
                None => {
                    let found = layout.insert(Layout::of(text).map_err(refuse)?);
                    if matches!(found, Layout::Columns { .. }) || is_header(text) {
                        continue;
                    }
                    found
                }
            };
            let Some((name, value)) = layout.entry(text).map_err(refuse)? else { continue };
            // A single SMILES without a name applies to every molecule; among other lines, a SMILES without a name is an error.
            if whole.is_some() || name.is_empty() && !smiles.is_empty() {
                return Err(refuse("a SMILES without a name".to_owned()));
            }
            if name.is_empty() {
                whole = Some(value.into());
                continue;
            }
            bytes = bytes.saturating_add(name.len() + value.len());
            if bytes > MAX_BYTES {
                return Err(refuse("more than 1 GiB of names and SMILES".to_owned()));
            }
            if let Some((other, first)) = smiles.get(&*name) {
                if **other != *value {
                    let name = shortened_end(&name, 80);
                    return Err(refuse(format!("`{name}` has another SMILES in line {first}")));
                }
                continue;
            }
            smiles.insert(name.into(), (value.into(), number));
        }
        if smiles.is_empty() && whole.is_none() {
            return Err(Error::input(path.display(), "contains no SMILES with a name", REMEDY));
        }
        let source = opened.finish(io::file_name(path)).map_err(fail)?;
        Ok(Names { smiles, whole, source })
    }

    /// The SMILES for every molecule, if the file contains one SMILES and no name.
    pub fn whole(&self) -> Option<&str> {
        self.whole.as_deref()
    }

    /// The SMILES of a name, if the file has the name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.smiles.get(name).map(|(smiles, _)| &**smiles)
    }
}

const REMEDY: &str = "give lines of `SMILES NAME`, or CSV or JSONL with columns `smiles` and `name`";

impl Layout {
    /// Determines the layout from the first line.
    fn of(first: &str) -> Result<Self, String> {
        if first.trim_start().starts_with('{') {
            return Ok(Layout::Jsonl);
        }
        for separator in [',', '\t', ';'] {
            let columns = fields(first, separator)?;
            let column = |names: &[&str]| {
                names
                    .iter()
                    .find_map(|name| columns.iter().position(|column| column.trim().to_lowercase() == *name))
            };
            if columns.len() > 1
                && let Some(smiles) = column(&SMILES_FIELDS)
            {
                let Some(name) = column(&NAME_FIELDS) else {
                    return Err("a column of SMILES, but none of names: `id`, `name` or `title`".to_owned());
                };
                return Ok(Layout::Columns { separator, smiles, name });
            }
        }
        Ok(Layout::Text)
    }

    /// The name and SMILES of a line. `None` for an empty line or a comment; the name is empty if the line has only a SMILES.
    fn entry(&self, line: &str) -> Result<Option<(String, String)>, String> {
        let line = line.trim();
        if line.is_empty() {
            return Ok(None);
        }
        let (name, smiles) = match self {
            Layout::Text if line.starts_with('#') => return Ok(None),
            Layout::Text => {
                let smiles = smiles_of(line);
                // What follows the SMILES, quoted or not, and its extensions.
                let rest = line.split_once(smiles).map_or("", |(_, rest)| rest);
                let rest = rest.strip_prefix(['"', '\'']).unwrap_or(rest).trim();
                let name = match rest.strip_prefix('|').and_then(|rest| rest.split_once('|')) {
                    Some((_, name)) => name.trim(),
                    None => rest,
                };
                return Ok(Some((name.to_owned(), smiles.to_owned())));
            }
            Layout::Jsonl => of_json(line)?,
            Layout::Columns { separator, smiles, name } => {
                let fields = fields(line, *separator)?;
                let field = |at: usize| fields.get(at).map(|field| field.trim());
                let found = field(*name).zip(field(*smiles)).ok_or("fewer columns than in the first line")?;
                (found.0.to_owned(), smiles_of(found.1).to_owned())
            }
        };
        match (name.is_empty(), smiles.is_empty()) {
            (false, false) => Ok(Some((name, smiles))),
            (true, _) => Err("no name".to_owned()),
            (_, true) => Err("no SMILES".to_owned()),
        }
    }
}

/// The SMILES at the start of a text, without surrounding quotes and without anything after a space: a name, or the extensions of
/// CXSMILES.
pub(super) fn smiles_of(text: &str) -> &str {
    let text = text.trim();
    let quoted = |quote: char| text.strip_prefix(quote)?.split_once(quote).map(|(inside, _)| inside);
    let text = quoted('"').or_else(|| quoted('\'')).unwrap_or(text);
    text.split_whitespace().next().unwrap_or_default()
}

/// Whether a line of text is a header such as `SMILES Name`.
fn is_header(line: &str) -> bool {
    let first = line.split_whitespace().next();
    first.is_some_and(|word| SMILES_FIELDS.contains(&&*word.to_lowercase()))
}

/// The name and SMILES of a JSON object.
fn of_json(line: &str) -> Result<(String, String), String> {
    let row: serde_json::Map<String, Value> = serde_json::from_str(line).map_err(|e| {
        let text = e.to_string();
        format!("not a JSON object: {}", text.split(" at line ").next().unwrap_or(&text))
    })?;
    let field = |names: &[&str]| {
        names.iter().find_map(|name| match row.get(*name)? {
            Value::String(text) => Some(text.trim().to_owned()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        })
    };
    let name = field(&NAME_FIELDS).ok_or("no field `id`, `name` or `title`")?;
    let smiles = field(&SMILES_FIELDS).ok_or("no field `canonical_smiles` or `smiles`")?;
    Ok((name, smiles_of(&smiles).to_owned()))
}

/// The fields of a CSV line. Quoted fields may contain separators and doubled quotes.
fn fields(line: &str, separator: char) -> Result<Vec<String>, String> {
    let (mut out, mut field) = (Vec::new(), String::new());
    let (mut quoted, mut characters) = (false, line.chars().peekable());
    while let Some(c) = characters.next() {
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            // A quote inside a field that did not begin with one is an ordinary character.
            '"' if quoted || field.is_empty() => quoted = !quoted,
            c if c == separator && !quoted => out.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    if quoted {
        return Err("a quote that is not closed in its line".to_owned());
    }
    out.push(field);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &[u8]) -> Result<Names> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("names");
        std::fs::write(&path, content).unwrap();
        Names::read(&path, &Job::default())
    }

    #[test]
    fn every_layout_gives_the_same() {
        for content in [
            "CO  the name \n\n# x y\n[CH4]\tb\n",
            "SMILES Name\nCO the name\n[CH4] b",
            "\u{feff}name,x,SMILES\r\nthe name,1,CO\r\n\"b\",2,\"[CH4]\"\r\n",
            "canonical_smiles\tsmiles\tid\nCO\tno\tthe name\n[CH4]\tno\tb\n",
            "{\"id\": \"the name\", \"smiles\": \"CO\"}\n{\"id\": \"b\", \"canonical_smiles\": \"[CH4]\", \"smiles\": \"no\"}\n",
            "CO b;c\nCO the name\n[CH4] b\n",
            "CO |atomProp:0.a.b| the name\n\"[CH4]\" b\n",
            "CID,CanonicalSMILES,IsomericSMILES\nthe name,no,CO\nb,no,[CH4] |x|\n",
        ] {
            let names = read(content.as_bytes()).unwrap();
            assert_eq!(
                (names.get("the name"), names.get("b"), names.get("c")),
                (Some("CO"), Some("[CH4]"), None)
            );
        }
        assert_eq!(read(b"{\"id\": 7, \"smiles\": \"CO\"}").unwrap().get("7"), Some("CO"));
        assert_eq!(read(b"smiles,id\n\"C\",\"a \"\"b\"\", c\"\n").unwrap().get("a \"b\", c"), Some("C"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (content, reason) in [
            (&b""[..], "contains no SMILES with a name"),
            (b"CO a\nCC a\n", "line 2: `a` has another SMILES in line 1"),
            (b"CO\nCC\n", "line 2: a SMILES without a name"),
            (b"CO a\nCC\n", "line 2: a SMILES without a name"),
            (b"CO a\nC\xff b\n", "line 2: not UTF-8"),
            (b"smiles,conformers\nCO,3\n", "line 1: a column of SMILES, but none of names"),
            (b"smiles,id\nCO\n", "line 2: fewer columns than in the first line"),
            (b"smiles,id\n,a\n", "line 2: no SMILES"),
            (b"smiles,id\n\"CO,a\n", "line 2: a quote that is not closed in its line"),
            (b"{\"id\": 1}\n", "line 1: no field `canonical_smiles` or `smiles`"),
            (b"{\"id\": 1\n", "line 1: not a JSON object: EOF while parsing an object"),
        ] {
            let error = read(content).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
            assert!(error.ends_with(REMEDY), "{error}");
        }
        // One SMILES alone is that of all.
        let one = read(b"# comment\n\"CO\"\n").unwrap();
        assert_eq!((one.whole(), one.get("a")), (Some("CO"), None));
        // The same twice is no contradiction.
        assert_eq!(read(b"CO a\nCO a\n").unwrap().get("a"), Some("CO"));
    }
}
