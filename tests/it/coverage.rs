//! RMSD, coverage and matching beside RDKit's `GetBestRMS` and the script of the field.

use std::path::Path;

use drift::audit::coverage::{CoverageReport, Deviations, MeanMedian};
use drift::audit::geometry::{Conformation, Topology};
use drift::text::skeleton::from_smiles;
use serde_json::Value;

use crate::support::python;

const THRESHOLDS: [&str; 2] = ["0.5", "0.75"];

/// How far figures may be from RDKit's, in Å and as a share.
const TOLERANCE: f64 = 1e-6;

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

#[test]
#[cfg_attr(not(has_rdkit), ignore = "needs a Python with rdkit")]
#[cfg_attr(all(has_rdkit, not(all_tests)), ignore = "takes long: DRIFT_ALL=1")]
fn coverage_and_matching_are_those_of_rdkit() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let arguments = [&["corpora/default.jsonl.gz", "100", "10"], &THRESHOLDS[..]].concat();
    let said = python("rdkit", "fixtures/coverage_reference.py", root, &arguments);
    let expected: Value = serde_json::from_str(&said).unwrap();
    let (mut all, mut furthest) = (Vec::new(), 0.0f64);
    for molecule in expected["molecules"].as_array().unwrap() {
        let smiles = molecule["smiles"].as_str().unwrap();
        let topology = Topology::new(&from_smiles(smiles).unwrap()).unwrap();
        let generated: Vec<Conformation> = read(&molecule["generated"]);
        let references: Vec<Conformation> = read(&molecule["references"]);
        let least = topology.deviations(&generated, &references).unwrap();
        assert!(least.iter().flatten().all(|least| least.is_exact), "{smiles}");
        let rmsd: Vec<Vec<f64>> =
            least.iter().map(|row| row.iter().map(|least| least.rmsd).collect()).collect();
        let theirs: Vec<Vec<f64>> = read(&molecule["rmsd"]);
        for (ours, theirs) in rmsd.iter().flatten().zip(theirs.iter().flatten()) {
            assert!((ours - theirs).abs() < TOLERANCE, "{smiles}: {ours} {theirs}");
            furthest = furthest.max((ours - theirs).abs());
        }
        all.push(Deviations {
            references: references.len(),
            bond_errors: Vec::new(),
            rmsd,
            upper_bounds: Vec::new(),
        });
    }
    assert_eq!(all.len(), 100);
    eprintln!("furthest from RDKit: {furthest:.1e} Å");

    let thresholds = THRESHOLDS.map(|text| text.parse::<f64>().unwrap());
    let report = CoverageReport::from_molecules(&all.iter().collect::<Vec<_>>(), &thresholds);
    let close = |ours: [MeanMedian; 2], theirs: &Value| {
        let theirs: Vec<f64> = read(theirs);
        for (ours, theirs) in ours.iter().flat_map(|one| [one.mean, one.median]).zip(theirs) {
            assert!((ours - theirs).abs() < TOLERANCE, "{ours} {theirs}");
        }
    };
    for (found, name) in report.thresholds.iter().zip(THRESHOLDS) {
        close([found.cov_r, found.cov_p], &expected["thresholds"][name]);
    }
    close([report.mat_r.unwrap(), report.mat_p.unwrap()], &expected["matching"]);
}

#[test]
fn molecules_of_much_symmetry_are_compared() {
    let c60 = "c12c3c4c5c1c1c6c7c2c2c8c3c3c9c4c4c%10c5c5c1c1c6c6c%11c7c2c2c7c8c3c3c8c9c4c4c9c%10c5c5c1c1c6c6c%11c2c2c7c3c3c8c4c4c9c5c1c1c6c2c3c41";
    let fluorinated = format!("C{}", "(C(F)(F)F)C".repeat(40));
    for smiles in [c60, &fluorinated] {
        let topology = Topology::new(&from_smiles(smiles).unwrap()).unwrap();
        let point =
            |at: usize, seed: f64| std::array::from_fn(|axis| ((at * 3 + axis) as f64 * seed).sin() * 5.0);
        let conformer = |seed: f64| (0..topology.atoms()).map(|at| point(at, seed)).collect::<Conformation>();
        let (a, b) = (conformer(0.7), conformer(1.3));
        assert!(topology.rmsd(&a, &a).unwrap() < 1e-6 && topology.rmsd(&a, &b).unwrap() > 0.1);
    }
}
