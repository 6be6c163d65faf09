//! Which conformers a unit gets, and its line.

use std::cmp::Reverse;

use rayon::prelude::*;
use serde::Serialize;

use super::counter::Counter;
use super::items::Item;
use drift_core::text::prompt;
use drift_core::{Error, Result};

/// A unit.
pub(super) struct Unit {
    /// The number of its conformers, examples included.
    pub items: usize,
    pub tokens: usize,
    /// Its line, with the line end.
    pub line: Vec<u8>,
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

/// Packs conformers, each of which fits alone: first fit, in the order of falling length, ties in the order of the input. They are
/// of one molecule behind one prompt, or each behind its own. Conformers stand in a unit in the order of the input, and units in that
/// of their first conformers.
pub(super) fn packed(run: &[Item], prompts: Prompts, counter: Counter<'_>) -> Result<Vec<Unit>> {
    let Some(first) = run.first() else { return Ok(Vec::new()) };
    let prompt = match prompts {
        Prompts::One => prompt(&first.smiles),
        Prompts::Each => String::new(),
    };
    let packing = Packing { run, prompt, prompts, counter };
    let head = counter.count(&packing.prompt)?;
    let mut units: Vec<FilledUnit> = Vec::new();
    let mut left: Vec<usize> = (0..run.len()).collect();
    while !left.is_empty() {
        left.sort_by_key(|at| (Reverse(run[*at].alone), *at));
        let bins = packing.bins(&std::mem::take(&mut left), head);
        let filled: Vec<Result<FilledUnit>> =
            bins.into_par_iter().map(|bin| packing.fill(bin.items)).collect();
        for unit in filled {
            let mut unit = unit?;
            left.append(&mut unit.left);
            units.push(unit);
        }
    }
    units.sort_by_key(|unit| unit.first);
    Ok(units.into_iter().map(|unit| unit.unit).collect())
}

/// The prompts of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prompts {
    /// One for all conformers, which are of one molecule.
    One,
    /// One for each conformer.
    Each,
}

/// Conformers that are packed together.
struct Packing<'r> {
    run: &'r [Item],
    /// The common prompt; empty if each conformer has its own.
    prompt: String,
    prompts: Prompts,
    counter: Counter<'r>,
}

/// A unit, and what did not fit after all.
struct FilledUnit {
    /// The index of its first conformer.
    first: usize,
    unit: Unit,
    left: Vec<usize>,
}

impl Packing<'_> {
    /// Puts conformers into units by what they take alone. `head` is the number of tokens of a unit without conformers.
    fn bins(&self, sorted: &[usize], head: usize) -> Vec<Bin> {
        let mut bins: Vec<Bin> = Vec::new();
        for at in sorted {
            let alone = self.run[*at].alone;
            // Only the first conformer has no separator before it.
            let added = alone.saturating_sub(head) + self.counter.separator_tokens;
            match bins.iter_mut().find(|bin| bin.estimate + added <= self.counter.most) {
                Some(bin) => {
                    bin.items.push(*at);
                    bin.estimate += added;
                }
                None => bins.push(Bin { items: vec![*at], estimate: alone }),
            }
        }
        bins
    }

    /// Counts a unit as a whole, and leaves its shortest conformers out as long as it does not fit.
    fn fill(&self, mut kept: Vec<usize>) -> Result<FilledUnit> {
        let mut left = Vec::new();
        loop {
            let mut items = kept.clone();
            items.sort_unstable();
            let text = self.text(&items);
            let tokens = self.counter.count(&text)?;
            // A unit with one conformer was counted before and fits, so something always stays.
            if tokens <= self.counter.most || items.len() == 1 {
                let unit = self.unit(&items, &text, tokens)?;
                return Ok(FilledUnit { first: items[0], unit, left });
            }
            left.extend(kept.pop());
        }
    }

    fn text(&self, items: &[usize]) -> String {
        let texts: Vec<String> = items
            .iter()
            .map(|at| match self.prompts {
                Prompts::One => self.run[*at].text.clone(),
                Prompts::Each => self.run[*at].record(),
            })
            .collect();
        [&*self.prompt, &texts.join(self.counter.separator)].concat()
    }

    fn unit(&self, items: &[usize], text: &str, tokens: usize) -> Result<Unit> {
        let molecule = Some(&self.run[items[0]]).filter(|_| self.prompts == Prompts::One);
        let line = UnitLine {
            ids: items.iter().map(|at| &*self.run[*at].id).collect(),
            canonical_smiles: molecule.and_then(Item::canonical_smiles),
            smiles: molecule.and_then(Item::foreign_smiles),
            examples: None,
            tokens,
            text,
        };
        Ok(Unit { items: items.len(), tokens, line: line.bytes()? })
    }
}

/// Returns the indices of the last conformers of up to `most` molecules, nearest first. Conformers of a molecule follow one another.
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

/// Returns a unit of the last conformer as a target, and the conformers of other molecules before it that fit.
pub(super) fn by_examples(items: &[Item], most: usize, counter: Counter<'_>) -> Result<Unit> {
    let Some((target, before)) = items.split_last() else {
        return Err(Error::internal("a packed unit", "it has no target"));
    };
    // The target's molecule may be among the last ones, so that one more is looked for.
    let mut examples = last_of_molecules(before, most.saturating_add(1));
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
            let line = UnitLine {
                ids: vec![&target.id],
                canonical_smiles: target.canonical_smiles(),
                smiles: target.foreign_smiles(),
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
