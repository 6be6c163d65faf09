//! What a file states about a molecule besides its atoms and bonds: texts that may be its SMILES, and its names.

use std::sync::Arc;

use super::IsomerPool;

/// The data items that are taken to hold a SMILES if the user names no item, in order of preference.
pub(crate) const SMILES_ITEMS: [&str; 7] = [
    "canonical_smiles",
    "smiles",
    "SMILES",
    // PubChem's items, before 2025 and since, with and without stereo.
    "PUBCHEM_OPENEYE_ISO_SMILES",
    "PUBCHEM_SMILES",
    "PUBCHEM_OPENEYE_CAN_SMILES",
    "PUBCHEM_CONNECTIVITY_SMILES",
];

/// The data items that hold a name, in order of preference.
const NAME_ITEMS: [&str; 8] = [
    "id",
    "name",
    "_Name",
    "PUBCHEM_COMPOUND_CID",
    // QMugs and ChEMBL.
    "CHEMBL_ID",
    "chembl_id",
    "ZINC_ID",
    "zinc_id",
];

/// The limit of what [`Items`] keep of one molecule, in bytes; later items are dropped.
const MAX_ITEM_BYTES: usize = 1 << 20;

/// The bytes that an item counts for in addition to its text.
const ITEM_COST: usize = 16;

/// Data items of one molecule: names and values, in file order. The same buffer is reused for each molecule.
#[derive(Debug, Default)]
pub struct Items {
    text: String,
    /// For each item, the ends of its name and of its value in `text`.
    ends: Vec<[usize; 2]>,
}

impl Items {
    /// Removes all items.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// Adds an item, unless the items of the molecule would exceed 1 MiB; then the item is dropped.
    pub fn push(&mut self, name: &str, value: &str) {
        let taken = self.text.len() + (self.ends.len() + 1) * ITEM_COST;
        if taken.saturating_add(name.len()).saturating_add(value.len()) <= MAX_ITEM_BYTES {
            self.text.push_str(name);
            let name_end = self.text.len();
            self.text.push_str(value);
            self.ends.push([name_end, self.text.len()]);
        }
    }

    /// Returns the names and values, in file order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|[_, end]| *end));
        starts
            .zip(&self.ends)
            .map(|(start, &[name_end, end])| (&self.text[start..name_end], &self.text[name_end..end]))
    }

    /// Returns the first non-empty value under a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, value)| *known == name && !value.is_empty()).map(|(_, value)| value)
    }

    /// Returns the SMILES under the first of [`SMILES_ITEMS`] that is present.
    pub fn smiles(&self) -> Option<&str> {
        SMILES_ITEMS.iter().find_map(|name| self.get(name))
    }

    /// Returns the name under the first of [`NAME_ITEMS`] that is present.
    pub fn name(&self) -> Option<&str> {
        NAME_ITEMS.iter().find_map(|name| self.get(name))
    }
}

/// What a file states about a molecule besides its atoms and bonds.
#[derive(Debug, Clone, Copy)]
pub struct Labels<'a> {
    /// The molecule's name in results if it has no text.
    pub molecule: &'a Arc<str>,
    /// The title or comment.
    pub title: Option<&'a str>,
    /// The SMILES under which the layout of the file stores the molecule: the key or the SMILES entry of a dictionary, or a dataset
    /// of an HDF5 group.
    pub key: Option<&'a str>,
    /// The isomers that the key pools; the molecule is one of them.
    pub pool: Option<&'a Arc<IsomerPool>>,
    /// The data items, if the format has any.
    pub items: Option<&'a Items>,
    /// The SMILES at the start of the title or the comment.
    pub comment: Option<&'a str>,
    /// The molecule's position in its file, if the position is a name that people would use.
    pub place: Option<&'a str>,
}

impl<'a> Labels<'a> {
    /// Labels with nothing but the molecule's name.
    pub fn new(molecule: &'a Arc<str>) -> Self {
        Labels { molecule, title: None, key: None, pool: None, items: None, comment: None, place: None }
    }

    /// Returns the names under which a list of SMILES may contain the molecule, best first.
    pub fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.own_names().chain(self.key).chain(self.place)
    }

    /// Returns the names that the file itself gives the molecule: its title, then its data items for names.
    pub(crate) fn own_names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let items = self.items;
        let named = NAME_ITEMS.into_iter().filter_map(move |name| items.and_then(|items| items.get(name)));
        self.title.into_iter().chain(named)
    }

    /// Returns the texts that may be its SMILES, best first: the key, then the item `property` (or, without one, the items of
    /// [`SMILES_ITEMS`]), then the comment.
    pub fn smiles<'p>(&self, property: Option<&'p str>) -> impl Iterator<Item = &'a str> {
        let items = self.items;
        let usual = SMILES_ITEMS.into_iter().filter(move |_| property.is_none());
        let named = property.into_iter().chain(usual).filter_map(move |name| items?.get(name));
        self.key.into_iter().chain(named).chain(self.comment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_bounded_and_the_first_value_counts() {
        let mut items = Items::default();
        items.push("a", "");
        items.push("a", "1");
        items.push("a", "2");
        items.push("large", &"x".repeat(MAX_ITEM_BYTES));
        items.push("b", "3");
        assert_eq!((items.get("a"), items.get("large"), items.get("b")), (Some("1"), None, Some("3")));
        for _ in 0..2 * MAX_ITEM_BYTES / ITEM_COST {
            items.push("", "");
        }
        assert!(items.ends.len() * ITEM_COST <= MAX_ITEM_BYTES);
        items.clear();
        assert_eq!((items.iter().count(), items.get("a")), (0, None));
    }

    #[test]
    fn the_order_of_names_and_of_smiles() {
        let mut items = Items::default();
        for (name, value) in [("smiles", "C"), ("SMILES", "N"), ("_Name", "x"), ("id", "y"), ("mine", "O")] {
            items.push(name, value);
        }
        let molecule: Arc<str> = "m".into();
        let labels = Labels {
            title: Some("t"),
            key: Some("S"),
            items: Some(&items),
            place: Some("['S'][0]"),
            ..Labels::new(&molecule)
        };
        assert_eq!(labels.names().collect::<Vec<_>>(), ["t", "y", "x", "S", "['S'][0]"]);
        assert_eq!(labels.own_names().collect::<Vec<_>>(), ["t", "y", "x"]);
        assert_eq!(labels.smiles(None).collect::<Vec<_>>(), ["S", "C", "N"]);
        assert_eq!(labels.smiles(Some("mine")).collect::<Vec<_>>(), ["S", "O"]);
        assert_eq!(Labels { key: None, ..labels }.smiles(Some("absent")).count(), 0);
        assert_eq!(Labels::new(&molecule).names().count(), 0);
    }
}
