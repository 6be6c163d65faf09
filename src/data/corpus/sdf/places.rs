//! Positions of atoms and bonds by their indices in a file.

use std::collections::HashMap;

/// Positions by index, from 0. Nearly all files count 1, 2, 3, …, and need no map.
#[derive(Debug, Default)]
pub(super) struct Places {
    count: u32,
    map: Option<HashMap<u64, u32>>,
}

impl Places {
    /// Adds the next one without an index of its own: its index is its number, counted from 1.
    pub(super) fn push(&mut self) {
        self.push_index(u64::from(self.count) + 1);
    }

    /// Adds the next one under its index. If several have the same index, it means the first.
    pub(super) fn push_index(&mut self, index: u64) {
        if self.map.is_none() && index != u64::from(self.count) + 1 {
            self.map = Some((0..self.count).map(|place| (u64::from(place) + 1, place)).collect());
        }
        if let Some(map) = &mut self.map {
            map.entry(index).or_insert(self.count);
        }
        self.count += 1;
    }

    /// Returns the position of an index, if something has it.
    pub(super) fn get(&self, index: u64) -> Option<usize> {
        let place = match &self.map {
            Some(map) => *map.get(&index)?,
            None => u32::try_from(index.checked_sub(1)?).ok().filter(|place| *place < self.count)?,
        };
        Some(place as usize)
    }
}
