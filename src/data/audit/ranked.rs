//! The best, the median and the worst text of a row by their RMSD to the nearest reference, with the data for pictures of them.

use serde::{Deserialize, Serialize};

use super::coverage::Deviations;
use super::group::Group;
use super::pictured::{LaidOnto, PicturedText, TextConformer};
use super::references::{DeviationsBySkeleton, Reference};
use drift_core::text::skeleton::smiles;

/// The rank of a text among all of its row that are compared with references.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextRank {
    /// The smallest RMSD.
    Best,
    /// The median RMSD; of two middle ones, the smaller.
    Median,
    /// The largest RMSD.
    Worst,
}

drift_core::named!(TextRank { Best: "best", Median: "median", Worst: "worst" });

/// A text by its rank, laid onto its nearest reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankedText {
    /// Its rank.
    pub rank: TextRank,
    /// The text. Its RMSD is the least over symmetric atom orders, as in MAT-P.
    #[serde(flatten)]
    pub text: PicturedText,
}

/// A conformer of a row that is compared with references.
struct RankedConformer<'g> {
    skeleton: &'g str,
    /// Its index among the conformers of the molecule.
    conformer: usize,
    /// The index of its nearest reference, and the RMSD to it in Å.
    reference: usize,
    rmsd: f64,
}

impl<'g> RankedConformer<'g> {
    fn of_molecule(
        skeleton: &'g str,
        deviations: &'g Deviations,
    ) -> impl Iterator<Item = RankedConformer<'g>> {
        deviations.rmsd.iter().enumerate().filter_map(move |(conformer, rmsds)| {
            let (reference, rmsd) =
                rmsds.iter().copied().enumerate().min_by(|(_, a), (_, b)| a.total_cmp(b))?;
            Some(RankedConformer { skeleton, conformer, reference, rmsd })
        })
    }

    fn ranked(&self, rank: TextRank, group: &Group, reference: &Reference) -> Option<RankedText> {
        let points = group.generated.get(self.skeleton)?.get(self.conformer)?;
        let conformer = reference.conformers.get(self.reference)?;
        let onto =
            LaidOnto { reference: reference.topology.nearest_order(points, conformer)?, rmsd: self.rmsd };
        let smiles = smiles(self.skeleton);
        let text = TextConformer {
            skeleton: self.skeleton,
            smiles: &smiles,
            generation: group.numbers.get(self.skeleton).and_then(|known| *known.get(self.conformer)?),
            points,
        };
        Some(RankedText { rank, text: text.pictured(Some(onto))? })
    }
}

/// Returns the best, the median and the worst text of a row. With fewer than three texts each is shown once. `references` has those of a
/// skeleton.
pub(super) fn ranked_texts<'r>(
    group: &Group,
    measured: &DeviationsBySkeleton,
    references: impl Fn(&str) -> Option<&'r Reference>,
) -> Vec<RankedText> {
    let all =
        measured.iter().flat_map(|(skeleton, deviations)| RankedConformer::of_molecule(skeleton, deviations));
    let mut all: Vec<RankedConformer<'_>> = all.collect();
    // The sort is stable: among equal texts, the order of molecules and texts decides.
    all.sort_by(|a, b| a.rmsd.total_cmp(&b.rmsd));
    let last = all.len().saturating_sub(1);
    let mut places = vec![(TextRank::Best, 0), (TextRank::Median, last / 2), (TextRank::Worst, last)];
    if all.len() < 3 {
        places.remove(1);
        places.truncate(all.len());
    }
    let ranked = places.into_iter().filter_map(|(rank, place)| {
        let compared = all.get(place)?;
        compared.ranked(rank, group, references(compared.skeleton)?)
    });
    ranked.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conformer_is_compared_with_its_nearest_reference() {
        let deviations = Deviations {
            references: 2,
            rmsd: vec![vec![0.5, 0.2], vec![0.1, 0.3]],
            bond_errors: vec![None; 2],
            upper_bounds: vec![0; 2],
        };
        let found: Vec<(usize, usize, f64)> = RankedConformer::of_molecule("[C]<>", &deviations)
            .map(|one| (one.conformer, one.reference, one.rmsd))
            .collect();
        assert_eq!(found, [(0, 1, 0.2), (1, 0, 0.1)]);
    }
}
