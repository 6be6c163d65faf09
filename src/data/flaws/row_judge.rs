//! The flaws of a conformer that do not depend on others.

use std::sync::Arc;

use super::kind::{FlawKind, Flaws};
use crate::corpus::{AtomOrder, Conformer};
use crate::stats::FaultFinder;
use drift_core::Encoding;
use drift_core::chem::{AtomLimit, SmilesMolecule, StereoAgreement};
use drift_core::text::skeleton::smiles;

/// Judges conformers one after the other. Conformers of one molecule should follow one another.
#[derive(Debug, Default)]
pub(super) struct RowJudge {
    faults: FaultFinder,
    /// The last skeleton with stereo marks, and its molecule; `None` if RDKit would refuse it.
    last: Option<(Arc<str>, Option<SmilesMolecule>)>,
}

impl RowJudge {
    /// Returns the flaws of a conformer whose atoms lie at `points`, in Å; none for codes.
    pub(super) fn flaws(&mut self, conformer: &Conformer, points: &[[f64; 3]], encoding: Encoding) -> Flaws {
        let faults = self.faults.find(conformer, points, encoding);
        let mut flaws = Flaws::default();
        flaws.set(FlawKind::CoincidentAtoms, faults.coincident_pairs);
        flaws.set(FlawKind::ShortBond, faults.short_bonds);
        flaws.set(FlawKind::LongBond, faults.long_bonds);
        flaws.set(FlawKind::Fragments, if faults.parts > 1 { faults.parts as u64 } else { 0 });
        // An atom that lies anywhere beyond the range may be on either side.
        if !conformer.is_out_of_range(encoding) {
            flaws.set(FlawKind::Stereo, self.wrong_marks(conformer, points));
        }
        flaws
    }

    /// Returns the number of stereo marks of the text that are not those of its coordinates. Marks that RDKit drops are not compared.
    fn wrong_marks(&mut self, conformer: &Conformer, points: &[[f64; 3]]) -> u64 {
        let skeleton = &conformer.skeleton;
        let has_marks = skeleton.contains(['@', '/', '\\']);
        if !has_marks || points.is_empty() || conformer.order != AtomOrder::Smiles {
            return 0;
        }
        let last = match self.last.take() {
            Some(last) if *last.0 == **skeleton => last,
            _ => (skeleton.clone(), SmilesMolecule::new(&smiles(skeleton), AtomLimit::default()).ok()),
        };
        let agreement = last.1.as_ref().map(|molecule| molecule.agreement(points)).unwrap_or_default();
        self.last = Some(last);
        let StereoAgreement { centres, double_bonds } = agreement;
        let verdicts = centres.iter().map(|(_, agrees)| agrees);
        verdicts.chain(double_bonds.iter().map(|(_, agrees)| agrees)).filter(|agrees| !**agrees).count()
            as u64
    }
}
