//! SMILES by molecule name, for conformers whose files give no SMILES.
//!
//! | content | read as |
//! | --- | --- |
//! | a line that begins with `{` | JSON Lines: `canonical_smiles` or `smiles`, and `id`, `name` or `title` |
//! | a first line with a column of SMILES | CSV (RFC 4180 within a line), commas, semicolons or tabs: the same columns, small letters or capitals; also those of PubChem, ChEMBL and QMugs, `CID,CanonicalSMILES`, `"ChEMBL ID";"Smiles"` |
//! | one SMILES alone | that of every molecule |
//! | else | a SMILES, white space, and the name, which is the rest of the line |
//!
//! Empty lines are skipped, and so are lines of text that begin with `#`. If a SMILES is in quotes, or is followed by CXSMILES
//! extensions or a name, only the SMILES is taken. [`ColumnChoice`] names the columns of a table. Rows of a table without a name or
//! without a SMILES are skipped.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::lines::MAX_LINE_BYTES;
use crate::parameter;
use drift_core::chem::Molecule;
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

/// Columns and fields that hold a name, in order of preference, in lower case and with `_` for spaces. Identifiers come first:
/// ChEMBL's column of names is mostly empty.
const NAME_FIELDS: [&str; 9] =
    ["id", "cid", "compound_cid", "chembl_id", "molecule_chembl_id", "zinc_id", "name", "title", "_name"];

/// The most columns that a message lists.
const COLUMNS_SHOWN: usize = 12;

/// The columns of a table, or the fields of JSON Lines, to use instead of the usual ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnChoice {
    /// The column of names.
    pub name: Option<Box<str>>,
    /// The column of SMILES.
    pub smiles: Option<Box<str>>,
}

/// The columns of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Columns {
    /// The column that names were taken from.
    name: Box<str>,
    /// All columns, for messages.
    all: String,
}

/// The SMILES of each name.
#[derive(Debug)]
pub struct Names {
    /// For each name, its SMILES and the line that it comes from.
    smiles: HashMap<Box<str>, (Box<str>, u64)>,
    /// The SMILES of a file that contains one SMILES and no name.
    whole: Option<Arc<str>>,
    /// The columns, if the file is a table.
    columns: Option<Columns>,
    /// The file.
    pub source: InputHash,
}

/// The layout of the lines.
enum Layout {
    Text,
    Jsonl,
    Columns { separator: char, smiles: usize, name: usize, columns: Columns },
}

/// The name and SMILES of a line. The name is empty if a line of text has only a SMILES.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NamedSmiles {
    name: String,
    smiles: String,
}

impl Names {
    /// Reads a file, plain or gzipped, with the usual columns.
    ///
    /// # Errors
    /// As [`Names::with_columns`].
    pub fn read(path: &Path, job: &Job) -> Result<Self> {
        Names::with_columns(path, &ColumnChoice::default(), job)
    }

    /// Reads a file, plain or gzipped.
    ///
    /// # Errors
    /// If the file cannot be read; if it is a table without the columns; if a line is longer than 16 MiB, is not text, or lacks a
    /// SMILES or a name; if two lines give one name different SMILES; or if names and SMILES exceed 1 GiB.
    pub fn with_columns(path: &Path, choice: &ColumnChoice, job: &Job) -> Result<Self> {
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
                    let found = layout.insert(Layout::of(text, choice).map_err(refuse)?);
                    if matches!(found, Layout::Columns { .. }) || is_header(text) {
                        continue;
                    }
                    found
                }
            };
            let Some(entry) = layout.entry(text, choice).map_err(refuse)? else { continue };
            let NamedSmiles { name, smiles: value } = entry;
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
        let columns = match layout {
            Some(Layout::Columns { columns, .. }) => Some(columns),
            _ => None,
        };
        Ok(Names { smiles, whole, columns, source })
    }

    /// The column that names come from, and how to choose another, for messages; `None` if the file is no table.
    pub fn column(&self) -> Option<String> {
        let Columns { name, all } = self.columns.as_ref()?;
        Some(format!(
            "column `{name}` of {}; {} chooses from {all}",
            self.source.name,
            parameter::NAME_COLUMN
        ))
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

/// How columns are chosen.
fn choose() -> String {
    format!("{} and {} choose from", parameter::NAME_COLUMN, parameter::SMILES_COLUMN)
}

const REMEDY: &str = "give lines of `SMILES NAME`, or CSV or JSONL with columns `smiles` and `name`";

impl Layout {
    /// Determines the layout from the first line.
    fn of(first: &str, choice: &ColumnChoice) -> Result<Self, String> {
        if first.trim_start().starts_with('{') {
            return Ok(Layout::Jsonl);
        }
        let mut header = None;
        for separator in [',', '\t', ';'] {
            let columns = fields(first, separator)?;
            if columns.len() < 2 {
                continue;
            }
            if let Some(smiles) = position(&columns, choice.smiles.as_deref(), &SMILES_FIELDS) {
                return Layout::of_columns(separator, smiles, &columns, choice);
            }
            header.get_or_insert(columns);
        }
        // A comment and a line that begins with a SMILES are no headers, whatever separators they contain.
        let is_text =
            first.trim_start().starts_with('#') || is_header(first) || leading_smiles(first).is_some();
        match header {
            Some(columns) if *choice != ColumnChoice::default() || !is_text => {
                Err(format!("no column of SMILES; {} {}", choose(), listed(&columns)))
            }
            _ => Ok(Layout::Text),
        }
    }

    fn of_columns(
        separator: char,
        smiles: usize,
        columns: &[String],
        choice: &ColumnChoice,
    ) -> Result<Self, String> {
        let all = listed(columns);
        let name =
            position(columns, choice.name.as_deref(), &NAME_FIELDS).ok_or_else(|| match &choice.name {
                Some(name) => format!("no column `{name}`, only {all}"),
                None => format!("a column of SMILES, but none of names; {} {all}", choose()),
            })?;
        let columns = Columns { name: columns[name].trim().into(), all };
        Ok(Layout::Columns { separator, smiles, name, columns })
    }

    /// The name and SMILES of a line. `None` for an empty line, a comment, and a row without a name or without a SMILES.
    fn entry(&self, line: &str, choice: &ColumnChoice) -> Result<Option<NamedSmiles>, String> {
        let line = line.trim();
        if line.is_empty() {
            return Ok(None);
        }
        match self {
            Layout::Text if line.starts_with('#') => Ok(None),
            Layout::Text => Ok(Some(of_text(line))),
            Layout::Jsonl => {
                let NamedSmiles { name, smiles } = of_json(line, choice)?;
                match (name.is_empty(), smiles.is_empty()) {
                    (false, false) => Ok(Some(NamedSmiles { name, smiles })),
                    (true, _) => Err("no name".to_owned()),
                    (_, true) => Err("no SMILES".to_owned()),
                }
            }
            Layout::Columns { separator, smiles, name, .. } => {
                let fields = fields(line, *separator)?;
                let field = |at: usize| fields.get(at).map(|field| field.trim());
                let found = field(*name).zip(field(*smiles)).ok_or("fewer columns than in the first line")?;
                let found = NamedSmiles { name: found.0.to_owned(), smiles: smiles_of(found.1).to_owned() };
                // Tables of databases have rows of substances without a structure.
                Ok(Some(found).filter(|row| !row.name.is_empty() && !row.smiles.is_empty()))
            }
        }
    }
}

/// The position of the chosen column, or of the first usual one.
fn position(columns: &[String], chosen: Option<&str>, usual: &[&str]) -> Option<usize> {
    let Some(chosen) = chosen else {
        return usual.iter().find_map(|name| columns.iter().position(|column| normalised(column) == *name));
    };
    let exact = columns.iter().position(|column| column.trim() == chosen.trim());
    exact.or_else(|| columns.iter().position(|column| normalised(column) == normalised(chosen)))
}

/// The name of a column in lower case, with `_` for spaces: `ChEMBL ID` becomes `chembl_id`.
fn normalised(column: &str) -> String {
    column.trim().to_lowercase().replace(' ', "_")
}

/// The columns of a table, for a message.
fn listed(columns: &[String]) -> String {
    let shown: Vec<String> = columns
        .iter()
        .take(COLUMNS_SHOWN)
        .map(|column| format!("`{}`", shortened_end(column.trim(), 40)))
        .collect();
    let more = columns.len().saturating_sub(COLUMNS_SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// The name and SMILES of a line of text.
fn of_text(line: &str) -> NamedSmiles {
    let smiles = smiles_of(line);
    // What follows the SMILES, quoted or not, and its extensions.
    let rest = line.split_once(smiles).map_or("", |(_, rest)| rest);
    let rest = rest.strip_prefix(['"', '\'']).unwrap_or(rest).trim();
    let name = match rest.strip_prefix('|').and_then(|rest| rest.split_once('|')) {
        Some((_, name)) => name.trim(),
        None => rest,
    };
    NamedSmiles { name: name.to_owned(), smiles: smiles.to_owned() }
}

/// The SMILES at the start of a text, as by [`smiles_of`], if RDKit would accept it and it has an atom.
pub fn leading_smiles(text: &str) -> Option<&str> {
    let smiles = smiles_of(text);
    Molecule::of_smiles(smiles).is_ok_and(|molecule| !molecule.atoms.is_empty()).then_some(smiles)
}

/// The SMILES of a text that is one SMILES, perhaps with the extensions of CXSMILES behind it.
pub fn whole_smiles(text: &str) -> Option<&str> {
    let rest = text.trim().split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim_start());
    leading_smiles(text).filter(|_| rest.is_empty() || rest.starts_with('|'))
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
fn of_json(line: &str, choice: &ColumnChoice) -> Result<NamedSmiles, String> {
    let row: serde_json::Map<String, Value> = serde_json::from_str(line).map_err(|e| {
        let text = e.to_string();
        format!("not a JSON object: {}", text.split(" at line ").next().unwrap_or(&text))
    })?;
    let keys: Vec<String> = row.keys().cloned().collect();
    let field = |chosen: &Option<Box<str>>, usual: &[&str]| match row
        .get(&keys[position(&keys, chosen.as_deref(), usual)?])?
    {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let missing = |what: &str| format!("no field {what}; {} {}", choose(), listed(&keys));
    let name =
        field(&choice.name, &NAME_FIELDS).ok_or_else(|| missing("of names, `id`, `name` or `title`"))?;
    let smiles =
        field(&choice.smiles, &SMILES_FIELDS).ok_or_else(|| missing("`canonical_smiles` or `smiles`"))?;
    Ok(NamedSmiles { name, smiles: smiles_of(&smiles).to_owned() })
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
            "\"ChEMBL ID\";\"Name\";\"Smiles\"\nthe name;\"\";CO\nb;\"a biological\";[CH4]\nprotein;x;\n",
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
    fn columns_can_be_chosen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("names");
        let choice =
            |name: &str, smiles: &str| ColumnChoice { name: Some(name.into()), smiles: Some(smiles.into()) };
        let read = |content: &str, choice: &ColumnChoice| {
            std::fs::write(&path, content).unwrap();
            Names::with_columns(&path, choice, &Job::default())
        };
        let table = "chembl_id,conf_id,smiles,smiles_rdkit\nA,conf_00,no,CO\n";
        let names = read(table, &choice("conf_id", "smiles_rdkit")).unwrap();
        assert_eq!((names.get("conf_00"), names.get("A")), (Some("CO"), None));
        let column = names.column().unwrap();
        assert!(
            column
                .starts_with("column `conf_id` of names; ‘name column’ chooses from `chembl_id`, `conf_id`")
        );
        let names = read("Mol ID;Structure\nA;CO\n", &choice("mol id", "structure")).unwrap();
        assert_eq!(names.get("A"), Some("CO"));
        let names = read("{\"mol\": \"A\", \"smi\": \"CO\"}\n", &choice("mol", "smi")).unwrap();
        assert_eq!(names.get("A"), Some("CO"));
        for (name, smiles, reason) in [
            ("conf", "smiles", "no column `conf`, only `chembl_id`, `conf_id`"),
            (
                "conf_id",
                "smi",
                "no column of SMILES; ‘name column’ and ‘smiles column’ choose from `chembl_id`",
            ),
        ] {
            let error = read(table, &choice(name, smiles)).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (content, reason) in [
            (&b""[..], "contains no SMILES with a name"),
            (b"CO a\nCC a\n", "line 2: `a` has another SMILES in line 1"),
            (b"CO\nCC\n", "line 2: a SMILES without a name"),
            (b"CO a\nCC\n", "line 2: a SMILES without a name"),
            (b"CO a\nC\xff b\n", "line 2: not UTF-8"),
            (
                b"smiles,conformers\nCO,3\n",
                "line 1: a column of SMILES, but none of names; ‘name column’ and ‘smiles column’ choose from `smiles`, `conformers`",
            ),
            (b"smiles,id\nCO\n", "line 2: fewer columns than in the first line"),
            (b"smiles,id\n,a\nC,\n", "contains no SMILES with a name"),
            (
                b"ID;Structure\n1;CO\n",
                "line 1: no column of SMILES; ‘name column’ and ‘smiles column’ choose from `ID`, `Structure`",
            ),
            (b"smiles,id\n\"CO,a\n", "line 2: a quote that is not closed in its line"),
            (
                b"{\"id\": 1}\n",
                "line 1: no field `canonical_smiles` or `smiles`; ‘name column’ and ‘smiles column’ choose from `id`",
            ),
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
