//! The layouts of lists of SMILES by name: text, tables, JSON Lines.

use serde_json::Value;

use crate::corpus::json_columns;
use crate::parameter;
use drift_core::chem::Molecule;
use drift_core::error::shortened_end;

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
pub(super) struct Columns {
    /// The column that names were taken from.
    pub name: Box<str>,
    /// All columns, for messages.
    pub all: String,
}

/// The layout of the lines.
pub(super) enum Layout {
    Text,
    Jsonl,
    Columns { separator: char, smiles: usize, name: usize, columns: Columns },
}

/// The name and SMILES of a line. The name is empty if a line of text has only a SMILES.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedSmiles {
    pub name: String,
    pub smiles: String,
}

/// Returns how columns are chosen.
fn choose() -> String {
    format!("{} and {} choose from", parameter::NAME_COLUMN, parameter::SMILES_COLUMN)
}

impl Layout {
    /// Determines the layout from the first line.
    pub(super) fn of(first: &str, choice: &ColumnChoice) -> Result<Self, String> {
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
        // A line that begins with a SMILES is no header, whatever separators it contains.
        let is_text = is_header(first) || leading_smiles(first).is_some();
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

    /// Returns the name and SMILES of a line. `None` for an empty line, a comment, and a row without a name or without a SMILES.
    pub(super) fn entry(&self, line: &str, choice: &ColumnChoice) -> Result<Option<NamedSmiles>, String> {
        // A tab at either end of a row is the border of an empty field.
        let (row, line) = (line, line.trim());
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
                let fields = fields(row.trim_end_matches('\r'), *separator)?;
                let field = |at: usize| fields.get(at).map(|field| field.trim());
                let found = field(*name).zip(field(*smiles)).ok_or("fewer columns than in the first line")?;
                let found = NamedSmiles { name: found.0.to_owned(), smiles: smiles_of(found.1).to_owned() };
                // Tables of databases have rows of substances without a structure.
                Ok(Some(found).filter(|row| !row.name.is_empty() && !row.smiles.is_empty()))
            }
        }
    }
}

/// Returns whether a line says nothing of the layout: it is empty, or a comment and no header of a table.
pub(super) fn is_before_layout(line: &str, choice: &ColumnChoice) -> bool {
    let line = line.trim();
    line.is_empty()
        || line.starts_with('#') && !matches!(Layout::of(line, choice), Ok(Layout::Columns { .. }))
}

/// Returns the position of the chosen column, or of the first usual one.
fn position(columns: &[String], chosen: Option<&str>, usual: &[&str]) -> Option<usize> {
    let Some(chosen) = chosen else {
        return usual.iter().find_map(|name| columns.iter().position(|column| normalised(column) == *name));
    };
    let exact = columns.iter().position(|column| column.trim() == chosen.trim());
    exact.or_else(|| columns.iter().position(|column| normalised(column) == normalised(chosen)))
}

/// Returns the name of a column in lower case, with `_` for spaces: `ChEMBL ID` becomes `chembl_id`.
fn normalised(column: &str) -> String {
    column.trim().to_lowercase().replace(' ', "_")
}

/// Returns the columns of a table, for a message.
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

/// Returns the name and SMILES of a line of text.
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

/// Returns the SMILES at the start of a text, as by [`smiles_of`], if RDKit would accept it and it has an atom.
pub(crate) fn leading_smiles(text: &str) -> Option<&str> {
    let smiles = smiles_of(text);
    Molecule::of_smiles(smiles).is_ok_and(|molecule| !molecule.atoms.is_empty()).then_some(smiles)
}

/// Returns the SMILES of a text that is one SMILES, perhaps with the extensions of CXSMILES behind it.
pub fn whole_smiles(text: &str) -> Option<&str> {
    let rest = text.trim().split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim_start());
    leading_smiles(text).filter(|_| rest.is_empty() || rest.starts_with('|'))
}

/// Returns the SMILES at the start of a text, without surrounding quotes and without anything after a space: a name, or the extensions of
/// CXSMILES.
pub(in crate::corpus) fn smiles_of(text: &str) -> &str {
    let text = text.trim();
    let quoted = |quote: char| text.strip_prefix(quote)?.split_once(quote).map(|(inside, _)| inside);
    let text = quoted('"').or_else(|| quoted('\'')).unwrap_or(text);
    text.split_whitespace().next().unwrap_or_default()
}

/// Returns whether a line of text is a header such as `SMILES Name`.
pub(super) fn is_header(line: &str) -> bool {
    let first = line.split_whitespace().next();
    first.is_some_and(|word| SMILES_FIELDS.contains(&&*word.to_lowercase()))
}

/// Returns the name and SMILES of a JSON object.
fn of_json(line: &str, choice: &ColumnChoice) -> Result<NamedSmiles, String> {
    let row: serde_json::Map<String, Value> = serde_json::from_str(line).map_err(|e| {
        let text = e.to_string();
        format!("not a JSON object: {}", text.split(" at line ").next().unwrap_or(&text))
    })?;
    let keys: Vec<String> = row.keys().cloned().collect();
    let field = |chosen: &Option<Box<str>>, usual: &[&str]| {
        let key = &*keys[position(&keys, chosen.as_deref(), usual)?];
        match row.get(key)? {
            Value::String(text) => Some(text.trim().to_owned()),
            // As it is written: a long number would be rounded.
            Value::Number(_) => json_columns::values(line, &[key]).ok()?.pop()?,
            _ => None,
        }
    };
    let missing = |what: &str| format!("no field {what}; {} {}", choose(), listed(&keys));
    let name =
        field(&choice.name, &NAME_FIELDS).ok_or_else(|| missing("of names, `id`, `name` or `title`"))?;
    let smiles =
        field(&choice.smiles, &SMILES_FIELDS).ok_or_else(|| missing("`canonical_smiles` or `smiles`"))?;
    Ok(NamedSmiles { name, smiles: smiles_of(&smiles).to_owned() })
}

/// Returns the fields of a CSV line. Quoted fields may contain separators and doubled quotes.
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
