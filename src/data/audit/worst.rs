//! The texts of a row that break the most rules of chemistry, with the data for pictures of them.

use serde::{Deserialize, Serialize};

use super::align::aligned_rmsd;
use super::chemistry::ConformerChemistry;
use super::geometry::Conformation;
use super::pictured::{LaidOnto, PicturedText, TextConformer};
use super::references::Reference;

/// The number of texts that are kept for a row.
const KEPT: usize = 3;

/// A text that breaks rules, as it is kept until the references are known.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct BrokenText {
    /// The molecule that it counts for: its prompt, or the SMILES that pools it.
    pub molecule: Box<str>,
    /// The skeleton of its prompt.
    pub skeleton: Box<str>,
    pub smiles: Box<str>,
    pub generation: Option<u64>,
    /// The number of broken rules per atom.
    pub share: f64,
    /// The positions in Å, with atoms in the order of the prompt.
    pub points: Conformation,
}

/// The texts that break the most rules per atom, at most one of a molecule; the first one if several are equal.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct WorstTexts(Vec<BrokenText>);

impl WorstTexts {
    /// Returns whether a text with these findings would be kept if its molecule has none.
    pub(super) fn takes(&self, found: &ConformerChemistry) -> bool {
        let share = broken_share(found);
        share > 0.0 && (self.0.len() < KEPT || self.0.last().is_some_and(|last| share > last.share))
    }

    /// Keeps a text if it is among the worst. Texts are given in their order.
    pub(super) fn add(&mut self, text: BrokenText) {
        if let Some(own) = self.0.iter().position(|known| known.molecule == text.molecule) {
            if self.0[own].share >= text.share {
                return;
            }
            self.0.remove(own);
        }
        let place = self.0.partition_point(|known| known.share >= text.share);
        self.0.insert(place, text);
        self.0.truncate(KEPT);
    }

    /// Adds the texts that follow these.
    pub(super) fn merge(&mut self, other: &WorstTexts) {
        other.0.iter().for_each(|text| self.add(text.clone()));
    }

    /// Returns the texts with their nearest references. `references` has those of a skeleton.
    pub(super) fn report<'r>(&self, references: impl Fn(&str) -> Option<&'r Reference>) -> Vec<PicturedText> {
        self.0.iter().filter_map(|text| text.report(references(&text.skeleton))).collect()
    }
}

/// Returns the number of broken rules per atom.
pub(super) fn broken_share(found: &ConformerChemistry) -> f64 {
    found.findings.len() as f64 / found.atoms.max(1) as f64
}

impl BrokenText {
    fn report(&self, reference: Option<&Reference>) -> Option<PicturedText> {
        let conformers = reference.into_iter().flat_map(|reference| &reference.conformers);
        let distances =
            conformers.map(|conformer| (aligned_rmsd(&self.points, conformer, |atom| atom), conformer));
        let nearest = distances.min_by(|(a, _), (b, _)| a.total_cmp(b));
        let onto = nearest.map(|(rmsd, reference)| LaidOnto { reference: reference.clone(), rmsd });
        let text = TextConformer {
            skeleton: &self.skeleton,
            smiles: &self.smiles,
            generation: self.generation,
            points: &self.points,
        };
        text.pictured(onto)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(molecule: &str, generation: u64, share: f64) -> BrokenText {
        BrokenText {
            molecule: molecule.into(),
            skeleton: "[C]<>".into(),
            smiles: molecule.into(),
            generation: Some(generation),
            share,
            points: vec![[0.0; 3]],
        }
    }

    fn kept(worst: &WorstTexts) -> Vec<(&str, u64)> {
        worst.0.iter().map(|text| (&*text.molecule, text.generation.unwrap())).collect()
    }

    #[test]
    fn each_molecule_is_kept_once_and_the_first_of_equals_stays() {
        let texts =
            [("a", 0, 0.5), ("a", 1, 0.5), ("b", 0, 0.5), ("c", 0, 0.1), ("d", 0, 0.5), ("c", 1, 0.9)];
        let texts = texts.map(|(molecule, generation, share)| text(molecule, generation, share));
        let mut whole = WorstTexts::default();
        texts.iter().cloned().for_each(|text| whole.add(text));
        assert_eq!(kept(&whole), [("c", 1), ("a", 0), ("b", 0)]);
        // In parts, the result is the same.
        for cut in 0..=texts.len() {
            let mut parts = [WorstTexts::default(), WorstTexts::default()];
            for (at, text) in texts.iter().enumerate() {
                parts[usize::from(at >= cut)].add(text.clone());
            }
            let [mut first, second] = parts;
            first.merge(&second);
            assert_eq!(kept(&first), kept(&whole), "{cut}");
        }
    }
}
