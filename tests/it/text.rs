//! Skeletons, spellings and graphs on whole corpora.

use drift::corpus::{Conformer, EmbeddedConformers, Files, ReadOptions};
use drift::stats::{TextReport, TextStats};
use drift::text::skeleton;

use crate::support::{conformers, shared};

/// Every text is its SMILES's graph, and its skeleton is what drift itself writes for that SMILES.
fn check(conformers: &[Conformer]) -> TextReport {
    let mut stats = TextStats::default();
    for conformer in conformers {
        stats.add(conformer);
        assert_eq!(skeleton::from_smiles(&conformer.molecule).unwrap(), *conformer.skeleton);
        assert_eq!(skeleton::smiles(&conformer.skeleton), *conformer.molecule);
        let spelled = skeleton::with_hydrogens(&conformer.skeleton).unwrap();
        assert_eq!(skeleton::without_needless_hydrogens(&spelled), *conformer.skeleton);
    }
    let report = stats.report();
    assert_eq!((report.other_graph, report.without_smiles), (0, 0));
    assert_eq!(report.same_graph, conformers.len() as u64);
    assert!(report.warnings().is_empty(), "{:?}", report.warnings());
    report
}

#[test]
fn the_embedded_corpus_is_what_its_smiles_say() {
    assert_eq!(check(&conformers(&EmbeddedConformers::default())).texts, 6_630);
}

#[test]
#[cfg_attr(not(has_shared), ignore = "needs ../shared or DRIFT_SHARED")]
fn shared_texts_are_what_their_smiles_say() {
    let shared = shared();
    let files = ["geom_conformers.jsonl", "xtb_moses_aq.jsonl.gz", "etkdg_drugs_test.jsonl.gz"];
    let inputs = files.map(|file| shared.join("geom").join(file)).to_vec();
    let report = check(&conformers(&Files { inputs, options: ReadOptions::default() }));
    assert_eq!(report.texts, 3_010);
}
