//! The groups of texts that are resampled while they are written. Rows wait for one another at the end of each block. Rows of low
//! weight are then replaced by copies of others, including their keys and values.

use std::collections::{BTreeMap, BTreeSet};

use super::ResampledGroup;
use super::particles::Group;
use super::row::Row;
use crate::model::{Cache, Prefix};
use drift_core::Result;

/// All groups of a batch, by prompt and first generation.
#[derive(Default)]
pub(super) struct Groups {
    open: BTreeMap<(usize, usize), Group>,
    /// The finished groups.
    pub done: Vec<ResampledGroup>,
}

/// Returns the key of a row's group.
fn key(row: &Row<'_>) -> Option<(usize, usize)> {
    row.group().map(|(prompt, generations)| (prompt, generations.start))
}

impl Groups {
    /// Registers a row that enters the batch.
    pub(super) fn enter(&mut self, row: &Row<'_>) {
        if let Some((prompt, generations)) = row.group() {
            self.open.entry((prompt, generations.start)).or_insert_with(|| Group::new(generations));
        }
    }

    /// Returns whether the row has reached the end of the block at which its group meets.
    pub(super) fn waits(&self, row: &Row<'_>) -> bool {
        let group = key(row).and_then(|key| self.open.get(&key));
        group.is_some_and(|group| row.blocks >= group.blocks)
    }

    /// Returns whether a row that has ended is still needed by its group.
    pub(super) fn keeps(&self, row: &Row<'_>) -> bool {
        key(row).is_some_and(|key| self.open.contains_key(&key))
    }

    /// Weighs the groups whose rows have all reached the meeting point, and resamples them if necessary. Returns the sorted indices
    /// of the rows of the batch that continue from their held logits.
    ///
    /// # Errors
    /// If the device has no room.
    pub(super) fn settle(&mut self, rows: &mut [Row<'_>], cache: &mut Cache) -> Result<Vec<usize>> {
        let mut members: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for (at, row) in rows.iter().enumerate() {
            if let Some(key) = key(row).filter(|key| self.open.contains_key(key)) {
                members.entry(key).or_default().push(at);
            }
        }
        let mut released = Vec::new();
        for (key, mut members) in members {
            // Always in the same order, whatever rows of the batch they occupy.
            members.sort_unstable_by_key(|at| rows[*at].item.generation);
            let Some(mut group) = self.open.remove(&key) else { continue };
            if members.iter().all(|at| rows[*at].end.is_some()) {
                self.done.push(finish(group, key.0, rows, cache, &members)?);
                continue;
            }
            // Repeated if texts ended or skipped blocks in one forced run, because then they meet again at once.
            while members.iter().all(|at| rows[*at].end.is_some() || rows[*at].held.is_some()) {
                let logs = logs(rows, &members);
                let effective = group.weigh(&logs);
                if group.is_uneven(effective) {
                    resample(&mut group, (key.0, &logs), rows, cache, &members)?;
                }
                group.blocks += 1;
                let goes_on = |at: &&usize| rows[**at].held.is_some() && rows[**at].blocks < group.blocks;
                let going: Vec<usize> = members.iter().filter(goes_on).copied().collect();
                if !going.is_empty() {
                    released.extend(going);
                    break;
                }
            }
            self.open.insert(key, group);
        }
        released.sort_unstable();
        Ok(released)
    }
}

/// Returns the logarithms of the weights of some rows.
fn logs(rows: &[Row<'_>], members: &[usize]) -> Vec<f64> {
    members.iter().map(|at| rows[*at].log_weight).collect()
}

/// Resamples the finished texts, so that all have the same weight.
fn finish(
    mut group: Group,
    prompt: usize,
    rows: &mut [Row<'_>],
    cache: &mut Cache,
    members: &[usize],
) -> Result<ResampledGroup> {
    let logs = logs(rows, members);
    let effective = group.weigh(&logs);
    let resamplings = group.resamplings;
    resample(&mut group, (prompt, &logs), rows, cache, members)?;
    let ancestors: BTreeSet<usize> = members.iter().map(|at| rows[*at].ancestor).collect();
    Ok(ResampledGroup {
        prompt,
        first: group.generations.start,
        draws: members.len(),
        effective,
        least_effective: group.least_effective,
        resamplings,
        ancestors: ancestors.len(),
        log_legal: group.log_legal,
    })
}

/// Replaces rows without successors by copies of others, given the logarithms of all weights.
fn resample(
    group: &mut Group,
    (prompt, logs): (usize, &[f64]),
    rows: &mut [Row<'_>],
    cache: &mut Cache,
    members: &[usize],
) -> Result<()> {
    let mut copied: Option<(usize, Prefix)> = None;
    let seed = rows[members[0]].options.seed;
    for (at, parent) in group.resample(seed, prompt, logs).into_iter().enumerate() {
        let (to, from) = (members[at], members[parent]);
        if to == from {
            continue;
        }
        let source = rows[from].clone();
        rows[to].go_on_from(&source, group.resamplings);
        // The keys and values of a finished text are not needed any more.
        if source.end.is_none() {
            let prefix = match copied.take() {
                Some((of, prefix)) if of == from => prefix,
                _ => cache.prefix(source.slot)?,
            };
            cache.restore(rows[to].slot, &prefix)?;
            // Copies of one parent follow each other, so its keys and values are read only once.
            copied = Some((from, prefix));
        }
    }
    // After resampling all texts have the same weight; `log_legal` contains their mean weight before.
    members.iter().for_each(|at| rows[*at].log_weight = 0.0);
    Ok(())
}
