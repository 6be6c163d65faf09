//! The time and number of the events of each category and name.

use std::collections::HashMap;

use super::category::Category;
use crate::compare::figure::{Figures, RetainedSize};

/// All names of a trace.
#[derive(Default)]
pub(super) struct Names {
    categories: HashMap<String, CategoryNames>,
    entries: Vec<Entry>,
}

/// A category, and the indices of its names among the entries.
struct CategoryNames {
    category: Category,
    names: HashMap<String, usize>,
}

/// The data of a name.
pub(super) struct Entry {
    pub category: Category,
    pub name: String,
    /// The total nanoseconds of its events, each including nested events.
    pub nanoseconds: u128,
    pub events: u64,
}

impl Names {
    /// Counts an event. Returns the index of its name, and its category.
    pub(super) fn add<E: serde::de::Error>(
        &mut self,
        [category, name]: [&str; 2],
        nanoseconds: i64,
        kept: &mut RetainedSize,
    ) -> Result<(usize, Category), E> {
        if !self.categories.contains_key(category) {
            kept.add(&[category])?;
            let known = CategoryNames { category: Category::from_name(category), names: HashMap::new() };
            self.categories.insert(category.to_owned(), known);
        }
        // Inserted above if it was missing.
        let Some(known) = self.categories.get_mut(category) else {
            return Err(E::custom("a category was lost"));
        };
        let place = match known.names.get(name) {
            Some(place) => *place,
            None => {
                // The name is stored twice: as a key, and in its entry.
                kept.add(&[name, name])?;
                known.names.insert(name.to_owned(), self.entries.len());
                let category = known.category;
                self.entries.push(Entry { category, name: name.to_owned(), nanoseconds: 0, events: 0 });
                self.entries.len() - 1
            }
        };
        let entry = &mut self.entries[place];
        entry.nanoseconds += u128::from(nanoseconds.unsigned_abs());
        entry.events += 1;
        Ok((place, known.category))
    }

    /// Returns all names, in the order of their first events.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the category of each name, by the name's index, as written in the file.
    pub(super) fn written_categories(&self) -> HashMap<usize, &str> {
        let mut written = HashMap::new();
        for (category, known) in &self.categories {
            written.extend(known.names.values().map(|place| (*place, category.as_str())));
        }
        written
    }

    /// Returns the figures of each category, in order: seconds and events of each name, most seconds first.
    pub(super) fn figures(&self) -> Vec<(String, Figures)> {
        let mut categories: Vec<(&String, &CategoryNames)> = self.categories.iter().collect();
        // Hash maps have no order, and the report must be the same in every run.
        categories.sort_by_key(|(category, _)| *category);
        let of = |known: &CategoryNames| {
            let mut entries: Vec<&Entry> = known.names.values().map(|place| &self.entries[*place]).collect();
            entries.sort_by(|a, b| b.nanoseconds.cmp(&a.nanoseconds).then_with(|| a.name.cmp(&b.name)));
            let figures = |entry: &Entry| {
                let seconds = (format!("{}: seconds", entry.name), entry.nanoseconds as f64 / 1e9);
                [seconds, (format!("{}: events", entry.name), entry.events as f64)]
            };
            entries.into_iter().flat_map(figures).collect()
        };
        categories.into_iter().map(|(category, known)| (category.clone(), of(known))).collect()
    }
}
