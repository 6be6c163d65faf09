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

mod layout;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::lines::MAX_LINE_BYTES;
use crate::parameter;
use drift_core::error::shortened_end;
use drift_core::io::{self, BoundedLines, LineEnds};
use drift_core::job::InputHash;
use drift_core::{Error, Job, Result};
pub(crate) use layout::leading_smiles;
pub(super) use layout::smiles_of;
pub use layout::{ColumnChoice, whole_smiles};
use layout::{Columns, Layout, NamedSmiles, is_before_layout, is_header};

/// The limit of all names and SMILES together, in bytes.
const MAX_BYTES: usize = 1 << 30;

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
                // The first line that is no comment determines the layout.
                None if is_before_layout(text, choice) => continue,
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

    /// Returns the column that names come from, and how to choose another, for messages; `None` if the file is no table.
    pub fn column(&self) -> Option<String> {
        let Columns { name, all } = self.columns.as_ref()?;
        Some(format!(
            "column `{name}` of {}; {} chooses from {all}",
            self.source.name,
            parameter::NAME_COLUMN
        ))
    }

    /// Returns the SMILES for every molecule, if the file contains one SMILES and no name.
    pub fn whole(&self) -> Option<&str> {
        self.whole.as_deref()
    }

    /// Returns the SMILES of a name, if the file has the name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.smiles.get(name).map(|(smiles, _)| &**smiles)
    }
}

const REMEDY: &str = "give lines of `SMILES NAME`, or CSV or JSONL with columns `smiles` and `name`";

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
            "note\tname\tsmiles\tx\n\tthe name\tCO\t\r\nq\tb\t[CH4]\t1\n\tprotein\t\t\n",
            "name\tsmiles\nthe name\tCO\nprotein\t\nb\t[CH4]\n",
            "# of ChEMBL, by mail\n\n#;\nname;smiles\nthe name;CO\nb;[CH4]\n",
            "# one a line\n{\"id\": \"the name\", \"smiles\": \"CO\"}\n{\"id\": \"b\", \"smiles\": \"[CH4]\"}\n",
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
