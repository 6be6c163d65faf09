//! The data of a prompt, and what they say of the items that a text repeats.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Skeleton;
use super::borders;
use super::formula::{MOST_ITEMS, formula, rows};
use super::items::{Arrangement, Items, Order};
use super::slot::LONGEST_WORD;
use super::template::Part;
use crate::chem::{AtomLimit, Isotopes, Molecule, elements};
use crate::encoding::Slots;
use crate::error::{Error, Result, excerpt};

/// The most heavy atoms of a SMILES that is only read.
const MOST_HEAVY: usize = 100_000;

/// The most multiples of a formula.
const MOST_TIMES: u32 = 64;

/// Where the items of a prompt are from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case", deny_unknown_fields)]
pub enum Source {
    /// A field with a list of words.
    List {
        /// The field.
        field: String,
        /// Their order in the text.
        #[serde(default)]
        order: Order,
    },
    /// A field with a formula: `Na2Cl2`, `Ba(NO3)2`, or an object from elements to numbers.
    Formula {
        /// The field.
        field: String,
        /// The least and the largest multiple of the formula.
        #[serde(default = "once")]
        times: [u32; 2],
        /// Their order in the text: by element in the order of the formula, or any.
        #[serde(default)]
        order: Order,
    },
    /// A field with a SMILES: its heavy atoms in order.
    Smiles {
        /// The field.
        field: String,
        /// Whether all hydrogens follow, as RDKit adds them. If not, only those that are atoms of the SMILES are items.
        #[serde(default)]
        hydrogens: bool,
    },
    /// A field with a SMILES: its text in pieces, each up to a place of coordinates, as enriched SMILES has them. Bare atoms get
    /// brackets.
    Pieces {
        /// The field.
        field: String,
        /// Behind what coordinates stand: as the encoding of the skeleton says.
        #[serde(skip, default = "atoms")]
        behind: Slots,
    },
    /// A field with the number of items.
    Count {
        /// The field.
        field: String,
    },
    /// Any number of items between two.
    Between {
        /// The least number.
        least: u32,
        /// The largest number.
        most: u32,
    },
}

fn atoms() -> Slots {
    Slots::Atoms
}

fn once() -> [u32; 2] {
    [1, 1]
}

impl Source {
    /// Puts the pieces of a SMILES before coordinates that stand there.
    pub(super) fn place_behind(&mut self, slots: Slots) {
        if let Source::Pieces { behind, .. } = self {
            *behind = slots;
        }
    }

    /// Checks one of so many sources.
    pub(super) fn check(&self, sources: usize) -> std::result::Result<(), String> {
        if matches!(self, Source::Pieces { .. }) && sources > 1 {
            return Err("`pieces` is the only source of its items".to_owned());
        }
        let (least, most, limit) = match self {
            Source::Formula { times, .. } => (times[0].max(1), times[1], MOST_TIMES),
            Source::Between { least, most } => (*least, *most, MOST_ITEMS),
            _ => return Ok(()),
        };
        if least > most || most == 0 || most > limit || matches!(self, Source::Formula { times: [0, _], .. })
        {
            return Err(format!("there is no number from {least} to {most}, or it is over {limit}"));
        }
        Ok(())
    }

    fn field(&self) -> Option<&str> {
        match self {
            Source::List { field, .. }
            | Source::Formula { field, .. }
            | Source::Smiles { field, .. }
            | Source::Pieces { field, .. }
            | Source::Count { field } => Some(field),
            Source::Between { .. } => None,
        }
    }
}

/// A skeleton with the data of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound<'s> {
    /// The skeleton.
    pub skeleton: &'s Skeleton,
    /// By index of the skeleton's items, those of the prompt.
    pub items: Vec<Items>,
    /// By index of the skeleton's fields, their texts.
    pub fields: Vec<String>,
    /// The text of the prompt, if the skeleton says what it is.
    pub prompt: Option<String>,
}

impl Skeleton {
    /// Binds the skeleton to the data of a prompt, which stands at `place`.
    ///
    /// # Errors
    /// If the prompt lacks a field, or a field holds something else.
    pub fn bind(&self, data: &Map<String, Value>, place: &str) -> Result<Bound<'_>> {
        let mut items = Vec::with_capacity(self.items.len());
        for (name, sources) in &self.items {
            let has = |source: &&Source| source.field().is_none_or(|field| data.contains_key(field));
            let Some(source) = sources.iter().find(has) else {
                let fields: Vec<String> =
                    sources.iter().filter_map(Source::field).map(|field| format!("`{field}`")).collect();
                let problem = format!("the prompt has no field for the items `{name}` of {}", self.name);
                return Err(Error::input(place, problem, format!("give it {}", fields.join(" or "))));
            };
            let bound = source.items(data, place)?;
            if matches!(bound.arrangement, Arrangement::Number { .. }) && self.needs_words(items.len()) {
                let problem = format!("`{{{name}}}` writes words, and the prompt has only a number of them");
                let with_words = sources.iter().filter(|source| !matches!(source, Source::Count { .. }));
                let fields: Vec<String> =
                    with_words.filter_map(Source::field).map(|field| format!("`{field}`")).collect();
                let remedy = match &fields[..] {
                    [] => format!("take the items `{name}` from a list, or write a slot of words"),
                    fields => format!("give it {}", fields.join(" or ")),
                };
                return Err(Error::input(place, problem, remedy));
            }
            items.push(bound);
        }
        let mut fields = Vec::with_capacity(self.fields.len());
        for name in &self.fields {
            fields.push(match data.get(name) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Number(number)) => number.to_string(),
                _ => {
                    let problem = format!("the prompt has no text in `{name}`, which {} writes", self.name);
                    return Err(Error::input(place, problem, format!("give it `{name}`")));
                }
            });
        }
        borders::check_prompt(self, &items, &fields).map_err(|problem| {
            let remedy = "give other words, or end each item with another text than the one behind the last";
            Error::input(place, problem, remedy)
        })?;
        let prompt = self.prompt.as_deref().map(|parts| filled(parts, &fields));
        Ok(Bound { skeleton: self, items, fields, prompt })
    }
}

impl Source {
    /// Returns the error for a field that does not hold what is needed.
    fn wrong(&self, value: &Value, place: &str, needed: &str) -> Error {
        let shown = value.to_string();
        let problem = format!("`{}` is {}", self.field().unwrap_or_default(), excerpt(shown.as_bytes()));
        Error::input(place, problem, format!("give {needed}"))
    }

    fn items(&self, data: &Map<String, Value>, place: &str) -> Result<Items> {
        let value = self.field().and_then(|field| data.get(field)).unwrap_or(&Value::Null);
        let wrong = |needed: &str| self.wrong(value, place, needed);
        let items = match self {
            Source::Between { least, most } => Items::between(*least, *most),
            Source::Count { .. } => {
                let count = value.as_u64().filter(|count| *count <= MOST_ITEMS.into());
                let count = count.ok_or_else(|| wrong("the number of items"))? as u32;
                Items::between(count, count)
            }
            Source::List { order, .. } => {
                let words = value.as_array().and_then(|list| {
                    list.iter().map(|word| word.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>()
                });
                let words = words.filter(|words| words.len() <= MOST_ITEMS as usize);
                Items::new(words.ok_or_else(|| wrong("a list of words"))?.into_iter(), *order)
            }
            Source::Smiles { hydrogens, .. } => {
                let smiles = value.as_str().ok_or_else(|| wrong("a SMILES"))?;
                let words = smiles_words(smiles, *hydrogens)
                    .map_err(|problem| Error::input(place, problem, "give the SMILES of a molecule"))?;
                Items::new(words.into_iter(), Order::Given)
            }
            Source::Pieces { behind, .. } => {
                let smiles = value.as_str().ok_or_else(|| wrong("a SMILES"))?;
                return Items::pieces(smiles, *behind)
                    .map_err(|problem| Error::input(place, problem, "give a SMILES"));
            }
            Source::Formula { times, order, .. } => {
                let counts = if *order == Order::Rows { rows(value) } else { formula(value) };
                let counts = counts.ok_or_else(|| wrong("a formula such as Na2Cl2"))?;
                let (words, counts): (Vec<Box<str>>, Vec<u32>) = counts.into_iter().unzip();
                let any_order = *order == Order::Any;
                let arrangement = Arrangement::Composition { counts, times: *times, any_order };
                Items { words, arrangement, rest: None }
            }
        };
        if !items.words.iter().all(|word| is_word(word)) {
            return Err(wrong(&format!("words of 1 to {LONGEST_WORD} bytes without white space")));
        }
        match items.range()[1] {
            0 if !matches!(self, Source::Count { .. }) => Err(wrong("one item at least")),
            most if most > MOST_ITEMS => Err(wrong("fewer items")),
            _ => Ok(items),
        }
    }
}

/// Returns the text of a prompt, which has texts and fields alone.
fn filled(parts: &[Part], fields: &[String]) -> String {
    let texts = parts.iter().map(|part| match part {
        Part::Text(text) => text,
        Part::Field(field) => fields[*field].as_str(),
        _ => "",
    });
    texts.collect()
}

fn is_word(word: &str) -> bool {
    !word.is_empty() && word.len() <= LONGEST_WORD && !word.contains(char::is_whitespace)
}

/// Returns the elements of a SMILES in order, perhaps followed by its implied hydrogens.
fn smiles_words(smiles: &str, hydrogens: bool) -> std::result::Result<Vec<String>, String> {
    let molecule = Molecule::without_hydrogens(smiles, AtomLimit(MOST_HEAVY), Isotopes::Respect)
        .map_err(|problem| problem.to_string())?;
    let mut words: Vec<String> = Vec::new();
    for atom in &molecule.atoms {
        let symbol = elements::symbol(atom.element);
        let no_element = || format!("{} has an atom that is no element", excerpt(smiles.as_bytes()));
        words.push(symbol.ok_or_else(no_element)?.to_owned());
    }
    if hydrogens {
        let implied = molecule.hydrogens.iter().map(|count| *count as usize).sum();
        words.extend(std::iter::repeat_n("H".to_owned(), implied));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smiles_has_the_atoms_that_rdkit_has() {
        assert_eq!(smiles_words("CCO", false).unwrap().concat(), "CCO");
        assert_eq!(smiles_words("CCO", true).unwrap().concat(), "CCOHHHHHH");
        assert_eq!(smiles_words("c1cc[nH]c1", true).unwrap().concat(), "CCCNCHHHHH");
        assert_eq!(smiles_words("C[*]", true).unwrap_err(), "`C[*]` has an atom that is no element");
        assert!(smiles_words("C(", true).unwrap_err().contains("is not a SMILES"));
    }
}
