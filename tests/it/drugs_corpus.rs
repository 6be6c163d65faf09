//! The script of the drug-like training corpus.

use crate::support::{Folder, python};

#[test]
#[cfg_attr(not(all(has_rdkit, all_tests)), ignore = "needs RDKit, takes long: DRIFT_ALL=1")]
fn the_drug_like_corpus_has_the_same_bytes_however_it_is_made() {
    let folder = Folder::new();
    let said = python("python/drugs_corpus.py", &folder.path(), &["--molecules", "24"]);
    assert!(said.starts_with("equal: "), "{said}");
    let [train, test] = ["drugs-train.jsonl.gz", "drugs-test.jsonl.gz"];
    let shared = folder.drift(&["mine", train, "--against", test, "--json"]).good().json();
    for count in ["molecules_shared", "scaffolds_shared", "rows_shared", "skipped"] {
        assert_eq!(shared[count], 0, "{count}: {shared:#}");
    }
    let checked = folder.drift(&["mine", train, "--check", "--json"]).good().json();
    for flaw in ["coincident_atoms", "short_bond", "long_bond", "fragments", "stereo", "duplicate_text"] {
        assert_eq!(checked["check"][flaw], 0, "{flaw}: {checked:#}");
    }
}
