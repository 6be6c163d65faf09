//! Which conformers a unit gets, and its line.

use std::cmp::Reverse;

use serde::Serialize;

use super::counter::Counter;
use super::items::Item;
use drift_core::error::{Error, Result};

/// A unit.
pub(super) struct Unit {
    /// The number of its conformers, examples included.
    pub items: usize,
    pub tokens: usize,
    /// Its line, with the line end.
    pub line: Vec<u8>,
}

/// The units of some conformers.
pub(super) struct PackedRun {
    pub units: Vec<Unit>,
}

/// The line of a unit.
#[derive(Serialize)]
struct UnitLine<'u> {
    /// The names of its conformers; of a target alone, if it has examples.
    ids: Vec<&'u str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    canonical_smiles: Option<&'u str>,
    /// The SMILES, if RDKit would write it differently.
    #[serde(skip_serializing_if = "Option::is_none")]
    smiles: Option<&'u str>,
    /// The names of the examples before the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    examples: Option<Vec<&'u str>>,
    tokens: usize,
    text: &'u str,
}

impl UnitLine<'_> {
    fn bytes(&self) -> Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self).map_err(|e| Error::internal("a packed unit", e))?;
        line.push(b'\n');
        Ok(line)
    }
}

/// The conformers of a unit that is being filled, by index.
struct Bin {
    items: Vec<usize>,
    /// About how many tokens they take.
    estimate: usize,
}

/// Packs conformers of one molecule, each of which fits alone: first fit, in the order of falling length, ties in the order of the
/// input. Conformers stand in a unit in the order of the input, and units in that of their first conformers.
pub(super) fn by_molecule(run: &[Item], counter: Counter<'_>) -> Result<PackedRun> {
    let Some(first) = run.first() else { return Ok(PackedRun { units: Vec::new() }) };
    let prompt = Item::prompt(&first.smiles);
    let (head, separator) = (counter.count(&prompt)?, counter.separator_tokens);
    let added = |at: usize| run[at].alone.saturating_sub(head) + separator;
    let mut units: Vec<(usize, Unit)> = Vec::new();
    let mut left: Vec<usize> = (0..run.len()).collect();
    while !left.is_empty() {
        left.sort_by_key(|at| (Reverse(run[*at].alone), *at));
        let mut bins: Vec<Bin> = Vec::new();
        for at in std::mem::take(&mut left) {
            // The first conformer has no separator before it.
            match bins.iter_mut().find(|bin| bin.estimate + added(at) <= counter.most) {
                Some(bin) => {
                    bin.items.push(at);
                    bin.estimate += added(at);
                }
                None => bins.push(Bin { items: vec![at], estimate: run[at].alone }),
            }
        }
        for mut bin in bins {
            let unit = loop {
                let mut items = bin.items.clone();
                items.sort_unstable();
                let texts: Vec<&str> = items.iter().map(|at| &*run[*at].text).collect();
                let text = [&*prompt, &texts.join(counter.separator)].concat();
                let tokens = counter.count(&text)?;
                // A unit with one conformer was counted before and fits, so something always stays.
                if tokens <= counter.most || items.len() == 1 {
                    break (items[0], unit_of(run, &items, &text, tokens)?);
                }
                left.extend(bin.items.pop());
            };
            units.push(unit);
        }
    }
    units.sort_by_key(|(first, _)| *first);
    Ok(PackedRun { units: units.into_iter().map(|(_, unit)| unit).collect() })
}

fn unit_of(run: &[Item], items: &[usize], text: &str, tokens: usize) -> Result<Unit> {
    let first = &run[items[0]];
    let smiles = Some(&*first.smiles);
    let line = UnitLine {
        ids: items.iter().map(|at| &*run[*at].id).collect(),
        canonical_smiles: smiles.filter(|_| !first.is_foreign),
        smiles: smiles.filter(|_| first.is_foreign),
        examples: None,
        tokens,
        text,
    };
    Ok(Unit { items: items.len(), tokens, line: line.bytes()? })
}

/// The indices of the last conformers of up to `most` molecules, nearest first. Conformers of a molecule follow one another.
pub(super) fn last_of_molecules(items: &[Item], most: usize) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    for at in (0..items.len()).rev() {
        if found.len() == most {
            break;
        }
        if found.iter().all(|other| items[*other].smiles != items[at].smiles) {
            found.push(at);
        }
    }
    found
}

/// A unit of the last conformer as a target, and the conformers of other molecules before it that fit.
pub(super) fn by_examples(items: &[Item], most: usize, counter: Counter<'_>) -> Result<Unit> {
    let Some((target, before)) = items.split_last() else {
        return Err(Error::internal("a packed unit", "it has no target"));
    };
    // The target's molecule may be among the last ones, so that one more is looked for.
    let mut examples = last_of_molecules(before, most + 1);
    examples.retain(|at| before[*at].smiles != target.smiles);
    examples.truncate(most);
    let mut estimate = target.alone;
    let fits = examples.iter().take_while(|at| {
        estimate += before[**at].alone.saturating_sub(counter.specials) + counter.separator_tokens;
        estimate <= counter.most
    });
    let fits = fits.count();
    examples.truncate(fits);
    loop {
        let mut text: String =
            examples.iter().rev().map(|at| before[*at].record() + counter.separator).collect();
        text.push_str(&target.record());
        let tokens = counter.count(&text)?;
        if tokens <= counter.most || examples.is_empty() {
            let smiles = Some(&*target.smiles);
            let line = UnitLine {
                ids: vec![&target.id],
                canonical_smiles: smiles.filter(|_| !target.is_foreign),
                smiles: smiles.filter(|_| target.is_foreign),
                examples: Some(examples.iter().rev().map(|at| &*before[*at].id).collect()),
                tokens,
                text: &text,
            };
            return Ok(Unit { items: examples.len() + 1, tokens, line: line.bytes()? });
        }
        // The farthest goes first.
        examples.pop();
    }
}
