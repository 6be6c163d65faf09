//! Reference conformers for molecules that are named by SMILES.

use std::collections::HashSet;
use std::sync::Arc;

use super::counts::ReferenceCounts;
use super::molecules::{Molecules, UNUSED_LISTED, without_order};
use crate::audit::{FoundPrompts, PromptMatcher};
use crate::corpus::{AtomOrder, Conformers, SkippedRecord};
use crate::parameter;
use drift_core::chem::Isotopes;
use drift_core::encoding::DecimalForms;
use drift_core::text::skeleton::smiles;
use drift_core::{Error, Job, Result};

impl Molecules {
    /// Assigns reference conformers to the molecules: conformers of the same text, and conformers of the same molecule with another
    /// order of atoms. The latter are put into the order of the prompt if their coordinates have the prompt's stereo. All others
    /// are counted.
    ///
    /// # Errors
    /// As for [`Conformers::read`], or if no conformer belongs to a requested molecule.
    pub fn with_references(mut self, corpus: &dyn Conformers, name: &str, job: &Job) -> Result<Self> {
        let encoding = corpus.reading().encoding;
        let prompts = self.molecules.iter().map(|molecule| (&*molecule.smiles, &*molecule.skeleton));
        let mut matcher = PromptMatcher::new(prompts, Isotopes::Ignore);
        let mut counts = ReferenceCounts { from: Some(name.to_owned()), ..ReferenceCounts::default() };
        let mut other: HashSet<Arc<str>> = HashSet::new();
        let mut first_other = None;
        let mut written = DecimalForms::ANY;
        let summary = corpus.read(job, &mut |batch| {
            for conformer in &batch.conformers {
                if conformer.order == AtomOrder::File {
                    counts.without_order += 1;
                    continue;
                }
                written = written.join(conformer.written);
                match matcher.find(conformer, encoding) {
                    FoundPrompts::Prompts(prompts) => {
                        counts.used += 1;
                        for found in prompts {
                            let Some(coordinates) = found.ordered(&conformer.coordinates) else { continue };
                            counts.reordered += u64::from(found.order.is_some());
                            self.molecules[found.prompt].encoding = encoding;
                            self.molecules[found.prompt].conformers.push(coordinates);
                        }
                    }
                    FoundPrompts::OtherStereo(reason) => {
                        counts.other_stereo += 1;
                        if counts.unused.len() < UNUSED_LISTED {
                            let record = smiles(&conformer.skeleton);
                            counts
                                .unused
                                .push(SkippedRecord { file: name.to_owned(), record, reason }.shown());
                        }
                    }
                    FoundPrompts::NotAskedFor => {
                        counts.not_asked_for += 1;
                        first_other.get_or_insert_with(|| smiles(&conformer.skeleton));
                        other.insert(conformer.skeleton.clone());
                    }
                }
            }
            Ok(())
        })?;
        counts.molecules_not_asked_for = other.len() as u64;
        counts.prompts_without =
            self.molecules.iter().filter(|molecule| molecule.conformers.is_empty()).count() as u64;
        counts.unused.extend(summary.in_file_order_records.iter().cloned());
        counts.unused.truncate(UNUSED_LISTED);
        if counts.used == 0 {
            return Err(none_usable(name, &counts, summary.conformers, first_other.as_deref()));
        }
        self.references = counts;
        self.written = if summary.written == DecimalForms::ANY { DecimalForms::ANY } else { written };
        self.skipped += summary.skipped;
        self.skipped_records.extend(summary.skipped_records);
        self.inputs.extend(summary.inputs);
        Ok(self)
    }
}

/// Returns the error if no reference conformer can be used.
fn none_usable(name: &str, counts: &ReferenceCounts, conformers: u64, first: Option<&str>) -> Error {
    let place = format!("{} {name}", parameter::REFERENCES);
    if counts.without_order == conformers {
        return without_order(&place, conformers, counts.unused.first());
    }
    if counts.not_asked_for == 0 {
        let why = counts.unused.first().map_or("", |unused| &unused.reason);
        let problem =
            format!("all {} conformers have another stereo than the prompts: {why}", counts.other_stereo);
        return Error::input(place, problem, "give conformers of the prompts' stereoisomers");
    }
    let example = first.map_or_else(String::new, |smiles| format!(", such as {smiles}"));
    let problem = format!(
        "contain none of the molecules that were asked for, but {} others{example}",
        counts.molecules_not_asked_for
    );
    Error::input(place, problem, format!("give the conformers of the molecules of {}", parameter::SMILES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Texts;

    fn prompts(smiles: &str) -> Molecules {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.smi");
        std::fs::write(&path, smiles).unwrap();
        Molecules::of_file(&path, None, &Job::default()).unwrap()
    }

    #[test]
    fn references_find_their_prompts_in_any_order_of_atoms() {
        let texts = "[C]<0.0,0.0,0.0>[C]<1.5,0.0,0.0>[O]<2.0,1.4,0.0>\n\
                     [O]<2.0,1.4,0.1>[C]<1.5,0.0,0.0>[C]<0.0,0.0,0.0>\n\
                     [N]<0.0,0.0,0.0>[C]<1.5,0.0,0.0>\n";
        let found = prompts("CCO\nCCC\n").with_references(&Texts(texts), "texts", &Job::default()).unwrap();
        assert_eq!(found.molecules[0].conformers[1], [[0, 0, 0], [15_000, 0, 0], [20_000, 14_000, 1_000]]);
        assert_eq!((found.molecules[0].conformers.len(), found.molecules[1].conformers.len()), (2, 0));
        let counts = &found.references;
        assert_eq!((counts.used, counts.reordered, counts.not_asked_for), (2, 1, 1));
        assert_eq!((counts.molecules_not_asked_for, counts.prompts_without), (1, 1));
        let error = prompts("CCCC").with_references(&Texts(texts), "texts", &Job::default()).unwrap_err();
        assert!(
            error.to_string().contains("contain none of the molecules that were asked for, but 3 others"),
            "{error}"
        );
    }

    #[test]
    fn the_other_hand_is_no_reference() {
        // The four neighbours of a carbon at the corners of a tetrahedron: F, Cl and Br as seen from the carbon of the ring.
        let text =
            "[C]<-0.9,-0.9,-0.9>[C]<0.0,0.0,0.0>([F]<1.0,1.0,-1.0>)([Cl]<1.0,-1.0,1.0>)[Br]<-1.0,1.0,1.0>\n";
        let used = |smiles: &str| {
            let found = prompts(smiles).with_references(&Texts(text), "texts", &Job::default());
            found.map(|found| found.references).map_err(|error| error.to_string())
        };
        let hands = [used("F[C@](C)(Cl)Br"), used("F[C@@](C)(Cl)Br")];
        assert!(hands[0].is_ok() != hands[1].is_ok(), "{hands:?}");
        let wrong = hands.into_iter().find_map(Result::err).unwrap();
        assert!(wrong.contains("all 1 conformers have another stereo than the prompts"), "{wrong}");
        assert_eq!(used("FC(C)(Cl)Br").unwrap().reordered, 1);
    }
}
