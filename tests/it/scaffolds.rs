//! Murcko scaffolds beside RDKit: which molecules have one scaffold.

use std::collections::BTreeMap;
use std::path::Path;

use drift::chem::{AtomLimit, Scaffold};

use crate::support::{Folder, python, rows};

/// Two molecules have one scaffold exactly if RDKit writes one SMILES for both. `DRIFT_WHOLE` takes more molecules.
#[test]
#[cfg_attr(not(has_rdkit), ignore = "needs a Python with rdkit")]
fn molecules_have_one_scaffold_exactly_if_rdkit_says_so() {
    let folder = Folder::new();
    let is_whole = std::env::var_os("DRIFT_WHOLE").is_some();
    let [nci, random] = if is_whole { ["5000", "3000"] } else { ["500", "300"] };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut arguments = vec![".".to_owned(), "--nci".to_owned(), nci.to_owned(), "--random".to_owned()];
    arguments.push(random.to_owned());
    if is_whole {
        let files = ["corpora/default.jsonl.gz", "corpora/small.jsonl.gz", "corpora/training.jsonl.gz"];
        arguments.extend(files.map(|file| root.join(file).display().to_string()));
        let geom = root.join("../shared/geom");
        let files = ["drugs_test_smiles.csv", "etkdg_drugs_test.jsonl.gz", "xtb_moses_aq.jsonl.gz"];
        let there = files.map(|file| geom.join(file)).into_iter().filter(|file| file.exists());
        arguments.extend(there.map(|file| file.display().to_string()));
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    python("python/scaffolds.py", &folder.path(), &arguments);
    let rows = rows(&folder.read("scaffolds.jsonl"));
    assert!(rows.len() > 600, "{}", rows.len());
    let mut by_rdkit: BTreeMap<&str, (&str, Option<Scaffold>)> = BTreeMap::new();
    let (mut wrong, mut refused) = (Vec::new(), Vec::new());
    for row in &rows {
        let [smiles, expected] = ["smiles", "scaffold"].map(|field| row[field].as_str().unwrap());
        // Some spellings of metal complexes are refused.
        let Ok(found) = Scaffold::from_smiles(smiles, AtomLimit::default()) else {
            refused.push(smiles);
            continue;
        };
        if found.is_none() != expected.is_empty() {
            wrong.push(format!("{smiles} has {expected:?} for RDKit"));
            continue;
        }
        let (first, known) = by_rdkit.entry(expected).or_insert_with(|| (smiles, found.clone()));
        let is_same = match (&found, known) {
            (Some(found), Some(known)) => found.is_same(known),
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            wrong.push(format!("{smiles} and {first} are {expected} for RDKit"));
        }
    }
    let mut by_key: BTreeMap<u64, Vec<(&str, &Scaffold)>> = BTreeMap::new();
    for (expected, (smiles, scaffold)) in &by_rdkit {
        let Some(scaffold) = scaffold else { continue };
        let alike = by_key.entry(scaffold.key()).or_default();
        for (other, _) in alike.iter().filter(|(_, known)| known.is_same(scaffold)) {
            wrong.push(format!("{smiles} is {expected} for RDKit, not {other}"));
        }
        alike.push((expected, scaffold));
    }
    eprintln!("{} molecules, {} scaffolds, {} refused", rows.len(), by_rdkit.len(), refused.len());
    assert!(refused.len() * 1_000 <= rows.len(), "{refused:#?}");
    assert!(wrong.is_empty(), "{} of {}: {:#?}", wrong.len(), rows.len(), &wrong[..wrong.len().min(20)]);
}
