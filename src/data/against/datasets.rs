//! What is shared, by the data set of the streamed corpus and the test subset of the other one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::kind::{SharedKind, SharedRows, Shares, SubsetBits};

/// The most data sets that are told apart.
const MOST: usize = 1_000;

/// Numbers of conformers by data set. The empty name stands for rows without one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Datasets {
    by_name: BTreeMap<String, DatasetRows>,
    /// Whether there are too many, so that none are told apart.
    is_overfull: bool,
}

/// Numbers of conformers of a data set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct DatasetRows {
    conformers: u64,
    shared: SharedRows,
    /// By number of the test subset.
    by_subset: Vec<SharedRows>,
}

/// What the conformers of a data set share with the other corpus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DatasetShare {
    /// The data set; `None` for rows without one.
    pub dataset: Option<String>,
    /// The number of its conformers.
    pub conformers: u64,
    /// Those that share something with any part of the other corpus.
    pub shared: SharedRows,
    /// Those that share something with each test subset.
    pub by_test_subset: Vec<SubsetShare>,
}

/// What conformers share with a test subset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SubsetShare {
    /// The test subset; `None` for rows of the other corpus without one.
    pub test_subset: Option<String>,
    /// The numbers of conformers.
    #[serde(flatten)]
    pub shared: SharedRows,
}

impl DatasetRows {
    fn add(&mut self, shares: &Shares) {
        self.conformers += 1;
        self.shared.add(shares.kinds());
        let mut subsets = SharedKind::ALL.iter().fold(0, |all, kind| all | shares.of(*kind));
        while subsets != 0 {
            let at = subsets.trailing_zeros() as usize;
            let bit: SubsetBits = 1 << at;
            subsets &= !bit;
            let kinds = SharedKind::ALL.into_iter().filter(|kind| shares.of(*kind) & bit != 0);
            self.of_subset(at).add(kinds);
        }
    }

    fn of_subset(&mut self, at: usize) -> &mut SharedRows {
        if self.by_subset.len() <= at {
            self.by_subset.resize(at + 1, SharedRows::default());
        }
        &mut self.by_subset[at]
    }
}

impl Datasets {
    /// Counts a conformer of a data set.
    pub(super) fn add(&mut self, dataset: &str, shares: &Shares) {
        if let Some(known) = self.by_name.get_mut(dataset) {
            return known.add(shares);
        }
        self.by_name.entry(dataset.to_owned()).or_default().add(shares);
    }

    /// Adds other numbers. Whether there are too many data sets does not depend on the order.
    pub(super) fn merge(&mut self, other: &Datasets) {
        self.is_overfull |= other.is_overfull;
        for (name, rows) in &other.by_name {
            if !self.by_name.contains_key(name) {
                self.by_name.insert(name.clone(), rows.clone());
                continue;
            }
            let own = self.by_name.entry(name.clone()).or_default();
            own.conformers += rows.conformers;
            own.shared.merge(&rows.shared);
            rows.by_subset.iter().enumerate().for_each(|(at, shared)| own.of_subset(at).merge(shared));
        }
        if self.is_overfull || self.by_name.len() > MOST {
            (self.is_overfull, self.by_name) = (true, BTreeMap::new());
        }
    }

    /// Returns whether there are more than 1,000 data sets.
    pub(super) fn is_overfull(&self) -> bool {
        self.is_overfull
    }

    /// Returns the numbers by data set, and by the test subsets of these names. Empty if there are neither data sets nor test subsets.
    pub(super) fn shares(&self, subsets: &[String]) -> Vec<DatasetShare> {
        let is_named = |name: &String| !name.is_empty();
        if !self.by_name.keys().any(is_named) && !subsets.iter().any(is_named) {
            return Vec::new();
        }
        let named = |name: &String| Some(name.clone()).filter(is_named);
        let of = |(name, rows): (&String, &DatasetRows)| DatasetShare {
            dataset: named(name),
            conformers: rows.conformers,
            shared: rows.shared,
            by_test_subset: subsets
                .iter()
                .enumerate()
                .map(|(at, subset)| SubsetShare {
                    test_subset: named(subset),
                    shared: rows.by_subset.get(at).copied().unwrap_or_default(),
                })
                .collect(),
        };
        self.by_name.iter().map(of).collect()
    }
}
