//! Isomers that a file pools under one SMILES, as the test sets of 3DMolGen do. Each isomer is a prompt, and all are measured
//! together.

use std::collections::HashMap;
use std::sync::Arc;

use super::molecule::{PromptMolecule, PromptPool};
use crate::corpus::{IsomerPool, Part};
use drift_core::chem::{AtomLimit, atoms_in_order};
use drift_core::text::skeleton::{self, smiles};
use drift_core::{Error, Result};

/// The pool of each molecule of a corpus.
#[derive(Default)]
pub(super) struct Pools {
    known: HashMap<Arc<str>, usize>,
    all: Vec<PoolMember>,
    /// For each molecule, the index of its pool.
    of: Vec<usize>,
}

/// A pool, or a molecule that is in no pool.
struct PoolMember {
    pool: Option<Arc<IsomerPool>>,
    /// The indices of the molecules.
    members: Vec<usize>,
}

impl Pools {
    /// Records the pool of a conformer's molecule. A new molecule has the next index.
    pub(super) fn add(&mut self, pool: Option<&Arc<IsomerPool>>, place: usize) {
        if place < self.of.len() {
            return;
        }
        let next = self.all.len();
        let at = match pool {
            Some(pool) => *self.known.entry(pool.smiles.as_str().into()).or_insert(next),
            None => next,
        };
        if at == next {
            self.all.push(PoolMember { pool: pool.cloned(), members: Vec::new() });
        }
        self.all[at].members.push(place);
        self.of.push(at);
    }

    /// Returns the prompts of all pools, those of each pool adjacent: every isomer that its file counts, with its own conformers and
    /// those of the pool.
    ///
    /// # Errors
    /// If no molecule is in a pool.
    pub(super) fn prompts(self, molecules: Vec<PromptMolecule>, name: &str) -> Result<Vec<PromptMolecule>> {
        if self.all.iter().all(|found| found.pool.is_none()) {
            let problem = "does not say which isomers are pooled";
            let remedy = "give a pickle of 3DMolGen, whose `sub_smiles_counts` does, or do not pool";
            return Err(Error::input(name, problem, remedy));
        }
        let mut molecules: Vec<Option<PromptMolecule>> = molecules.into_iter().map(Some).collect();
        let mut prompts = Vec::new();
        for PoolMember { pool, members } in self.all {
            let members: Vec<PromptMolecule> =
                members.into_iter().filter_map(|place| molecules[place].take()).collect();
            match pool {
                Some(pool) => prompts.extend(pooled(&pool, members)),
                None => prompts.extend(members),
            }
        }
        Ok(prompts)
    }
}

/// Returns the prompts of one pool.
fn pooled(pool: &IsomerPool, members: Vec<PromptMolecule>) -> Vec<PromptMolecule> {
    let mut prompts: Vec<PromptMolecule> = Vec::new();
    let encoding = members[0].encoding;
    for (isomer, count) in &pool.isomers {
        // A file may count an isomer whose SMILES drift cannot read. Its conformers are not used then.
        let Ok(skeleton) = skeleton::from_smiles(isomer) else { continue };
        let count = *count as usize;
        if let Some(known) = prompts.iter_mut().find(|known| known.skeleton == skeleton) {
            known.counted = known.counted.map(|before| before.saturating_add(count));
            continue;
        }
        let conformers =
            members.iter().find(|member| member.skeleton == skeleton).map(|own| own.conformers.clone());
        prompts.push(PromptMolecule {
            smiles: smiles(&skeleton),
            part: Some(Part::of_smiles(&smiles(&skeleton::without_needless_hydrogens(&skeleton)))),
            skeleton,
            encoding,
            conformers: conformers.unwrap_or_default(),
            counted: Some(count),
            pool: None,
        });
    }
    let Ok(key) = skeleton::from_smiles(&pool.smiles) else { return prompts };
    let order = |own: &str| match own == key {
        true => Some((0..skeleton::atoms(own).count()).collect()),
        false => atoms_in_order(&smiles(own), &smiles(&key), AtomLimit::default()),
    };
    let mut conformers = Vec::new();
    for member in &members {
        let Some(order): Option<Vec<usize>> = order(&member.skeleton) else { continue };
        let placed = member.conformers.iter().map(|points| order.iter().map(|at| points[*at]).collect());
        conformers.extend(placed);
    }
    let pool = Arc::new(PromptPool { smiles: smiles(&key), skeleton: key.clone(), encoding, conformers });
    for prompt in &mut prompts {
        // An isomer whose graph differs from that of the key is measured on its own.
        prompt.pool = order(&prompt.skeleton).is_some().then(|| pool.clone());
    }
    // Molecules that are measured together are adjacent.
    prompts.sort_by_key(|prompt| prompt.pool.is_none());
    prompts
}

/// Returns the molecules of each pool, which are adjacent, as one group; each other molecule as its own group.
pub(super) fn grouped(molecules: Vec<PromptMolecule>) -> Vec<Vec<PromptMolecule>> {
    let mut out: Vec<Vec<PromptMolecule>> = Vec::new();
    for molecule in molecules {
        match out.last_mut() {
            Some(group) if molecule.is_pooled_with(&group[0]) => group.push(molecule),
            _ => out.push(vec![molecule]),
        }
    }
    out
}

/// Returns the number of conformers with which texts are compared; those of a pool count once.
pub(super) fn references(groups: &[Vec<PromptMolecule>]) -> u64 {
    let of = |group: &Vec<PromptMolecule>| match &group[0].pool {
        Some(pool) => pool.conformers.len() as u64,
        None => group[0].conformers.len() as u64,
    };
    groups.iter().map(of).sum()
}
