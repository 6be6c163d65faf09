//! The conformers that are packed, with what each takes alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::counter::Counter;
use crate::encode::kept::KeptBatch;
use crate::encode::{NamedMolecule, SmilesOfConformers};
use crate::flaws::RowPlace;
use drift_core::text::{prompt, tagged, write};
use drift_core::{Encoding, Result};

/// A conformer that is packed.
#[derive(Debug, Clone)]
pub(super) struct Item {
    /// Its name in its file, or its number among all.
    pub id: Arc<str>,
    pub smiles: Arc<str>,
    /// Whether RDKit would write the SMILES differently.
    pub is_foreign: bool,
    /// Its text between tags.
    pub text: String,
    /// The number of tokens of a unit with it alone.
    pub alone: usize,
    /// Whether a coordinate lies beyond the range of the encoding.
    pub is_out_of_range: bool,
    /// Where it was read.
    pub place: RowPlace,
}

impl Item {
    /// Returns its prompt and its text.
    pub(super) fn record(&self) -> String {
        prompt(&self.smiles) + &self.text
    }

    /// Returns its SMILES, if RDKit would write it so.
    pub(super) fn canonical_smiles(&self) -> Option<&str> {
        (!self.is_foreign).then_some(&self.smiles)
    }

    /// Returns its SMILES, if RDKit would write it differently.
    pub(super) fn foreign_smiles(&self) -> Option<&str> {
        self.is_foreign.then_some(&self.smiles)
    }
}

/// Makes items of conformers.
#[derive(Debug)]
pub(super) struct ItemReader {
    encoding: Encoding,
    /// The number of conformers so far.
    number: u64,
    pub notes: BTreeMap<&'static str, u64>,
}

impl ItemReader {
    pub(super) fn new(encoding: Encoding) -> Self {
        ItemReader { encoding, number: 0, notes: BTreeMap::new() }
    }

    /// Returns the items of a batch, in order.
    pub(super) fn items(&mut self, kept: &KeptBatch, counter: Counter<'_>) -> Result<Vec<Item>> {
        let mut named = SmilesOfConformers::default();
        let mut items: Vec<Item> = Vec::with_capacity(kept.batch.conformers.len());
        for (conformer, place) in kept.batch.conformers.iter().zip(&kept.places) {
            let NamedMolecule { smiles, foreign } = named.find(conformer, &mut self.notes);
            let last = items.last().filter(|last| *last.smiles == *smiles);
            items.push(Item {
                id: conformer.id.clone().unwrap_or_else(|| self.number.to_string().into()),
                smiles: last.map_or_else(|| (*smiles).into(), |last| last.smiles.clone()),
                is_foreign: foreign.is_some(),
                text: tagged(&write(&conformer.skeleton, &conformer.coordinates, self.encoding)),
                alone: 0,
                is_out_of_range: conformer.is_out_of_range(self.encoding),
                place: place.clone(),
            });
            self.number += 1;
        }
        items.par_iter_mut().try_for_each(|item| {
            item.alone = counter.count(&item.record())?;
            Ok(())
        })?;
        Ok(items)
    }
}
