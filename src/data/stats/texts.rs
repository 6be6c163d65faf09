//! Checks texts: whether their graph matches their SMILES, and whether atoms are spelled in one way.

use std::sync::Arc;

use serde::Serialize;

use crate::corpus::{AtomOrder, Conformer};
use drift_core::chem::{SameGraph, same_graph};
use drift_core::text::skeleton::{self, Spelling};

/// Counts over conformers with text. Merging is associative.
#[derive(Debug, Clone, Default)]
pub struct TextStats {
    report: TextReport,
    /// The last molecule and skeleton with their verdict, since conformers of one molecule follow one another.
    last: Option<(Arc<str>, Arc<str>, Verdict, Spelling)>,
}

/// How a text's graph compares with the SMILES that names its molecule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Same,
    Other,
    Unnamed,
}

drift_core::counters! {
    /// The result of [`TextStats`].
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
    pub struct TextReport {
        /// The number of conformers with text.
        pub texts: u64,
        /// The number of texts with the molecular graph of their SMILES, ignoring stereo.
        pub same_graph: u64,
        /// The number of texts with another graph than their SMILES.
        pub other_graph: u64,
        /// The number of texts whose molecule is not named by a SMILES.
        pub without_smiles: u64,
        /// The number of N, O, P, S and B atoms written without hydrogens, as in `[O]`.
        pub bare_atoms: u64,
        /// The number of N, O, P, S and B atoms written with redundant hydrogens, as in `[OH]`.
        pub atoms_with_hydrogens: u64,
    }
}

impl TextStats {
    /// Counts one conformer. Conformers from formats without text are ignored.
    pub fn add(&mut self, conformer: &Conformer) {
        if conformer.order == AtomOrder::File {
            return;
        }
        let (verdict, spelling) = match &self.last {
            Some((molecule, skeleton, verdict, spelling))
                if **molecule == *conformer.molecule && **skeleton == *conformer.skeleton =>
            {
                (*verdict, *spelling)
            }
            _ => {
                let judged = (judge(conformer), Spelling::from_skeleton(&conformer.skeleton));
                let (molecule, skeleton) = (conformer.molecule.clone(), conformer.skeleton.clone());
                self.last = Some((molecule, skeleton, judged.0, judged.1));
                judged
            }
        };
        self.report.texts += 1;
        self.report.bare_atoms += spelling.bare as u64;
        self.report.atoms_with_hydrogens += spelling.with_hydrogens as u64;
        *match verdict {
            Verdict::Same => &mut self.report.same_graph,
            Verdict::Other => &mut self.report.other_graph,
            Verdict::Unnamed => &mut self.report.without_smiles,
        } += 1;
    }

    /// Adds the counts of another part of the corpus.
    pub fn merge(&mut self, other: &TextStats) {
        self.report.merge(&other.report);
    }

    /// Returns the counts.
    pub fn report(&self) -> TextReport {
        self.report
    }
}

/// Compares the skeleton's graph with the graph of the molecule's name.
fn judge(conformer: &Conformer) -> Verdict {
    let own = skeleton::smiles(&conformer.skeleton);
    // So it is for a text without a SMILES, which is named by its own skeleton.
    if own == *conformer.molecule {
        return Verdict::Same;
    }
    match same_graph(&own, &conformer.molecule) {
        Ok(SameGraph::Identical | SameGraph::Equivalent) => Verdict::Same,
        Ok(SameGraph::Different) => Verdict::Other,
        // A name need not be a SMILES. If it does not parse, it names no molecule, and the text is not at fault.
        Err(_) => Verdict::Unnamed,
    }
}

impl TextReport {
    /// Returns what a user should know about these texts before training on them or forcing their skeletons; empty if there is nothing.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.other_graph > 0 {
            warnings.push(format!(
                "{} of {} texts contain another molecule than their SMILES",
                self.other_graph, self.texts
            ));
        }
        if self.bare_atoms > 0 && self.atoms_with_hydrogens > 0 {
            warnings.push(format!(
                "two spellings of atoms: {} like [O], {} like [OH]; a model learns both, and a template must use the \
                 one of its text",
                self.bare_atoms, self.atoms_with_hydrogens
            ));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conformer(molecule: &str, skeleton: &str) -> Conformer {
        let coordinates = vec![[0; 3]; skeleton.matches("<>").count()];
        Conformer::new(molecule.into(), skeleton.into(), coordinates)
    }

    #[test]
    fn graphs_and_spellings_are_counted() {
        let mut stats = TextStats::default();
        stats.add(&conformer("CCO", "[C]<>[C]<>[O]<>"));
        stats.add(&conformer("OCC", "[C]<>[C]<>[OH]<>"));
        stats.add(&conformer("CCO", "[C]<>[C]<>=[O]<>"));
        stats.add(&conformer("molecule 7", "[C]<>[C]<>=[O]<>"));
        let mut merged = TextStats::default();
        merged.merge(&stats);
        let expected = TextReport {
            texts: 4,
            same_graph: 2,
            other_graph: 1,
            without_smiles: 1,
            bare_atoms: 3,
            atoms_with_hydrogens: 1,
        };
        assert_eq!(merged.report(), expected);
        assert_eq!(expected.warnings().len(), 2);
        assert!(TextReport { other_graph: 0, atoms_with_hydrogens: 0, ..expected }.warnings().is_empty());
    }
}
