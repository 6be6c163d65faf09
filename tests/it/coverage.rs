//! RMSD, coverage and matching beside RDKit's `GetBestRMS` and the script of the field.

use std::path::Path;

use drift::audit::coverage::{CoverageReport, Deviations, MeanMedian};
use drift::audit::geometry::{Conformation, Topology};
use drift::audit::in_angstrom;
use drift::encoding::{Encoding, Reading};
use drift::text::parse;
use drift::text::skeleton::from_smiles;
use serde_json::{Value, json};

use crate::support::{Folder, python};

const THRESHOLDS: [&str; 2] = ["0.5", "0.75"];

/// How far figures may be from RDKit's, in Å and as a share.
const TOLERANCE: f64 = 1e-6;

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

#[test]
#[cfg_attr(not(all(has_rdkit, all_tests)), ignore = "needs a Python with rdkit, takes long: DRIFT_ALL=1")]
fn coverage_and_matching_are_those_of_rdkit() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let arguments = [&["corpora/default.jsonl.gz", "100", "10"], &THRESHOLDS[..]].concat();
    let said = python("fixtures/coverage_reference.py", root, &arguments);
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

/// The verdict of one text of a prompt, beside one reference, by `audit`.
fn verdict(folder: &Folder, [prompt, text, reference]: [&str; 3], more: &[&str]) -> Value {
    let row = |text: &str| json!({ "canonical_smiles": prompt, "embedded_smiles": text }).to_string() + "\n";
    folder.file("texts.jsonl", row(text));
    folder.file("references.jsonl", row(reference));
    let command = ["audit", "texts.jsonl", "--references", "references.jsonl", "--verdicts", "-", "--quiet"];
    folder.drift(&[&command, more].concat()).done().json()
}

/// An ether with two unequal ends, by RDKit 2026.09 and spyrmsd 0 Å from itself in another spelling.
#[test]
fn labelled_conformers_in_another_spelling_are_the_same() {
    let folder = Folder::new();
    let prompt = "[13CH3]OC";
    let reference = "[13CH3]<0.0000,0.0000,0.0000>[O]<1.3000,0.0000,0.0000>[C]<1.3000,1.5000,0.0000>";
    let respelled = "[C]<0.0000,1.5000,1.0000>[O]<0.0000,0.0000,1.0000>[13CH3]<1.3000,0.0000,1.0000>";
    let exchanged = "[13CH3]<0.0000,1.5000,1.0000>[O]<0.0000,0.0000,1.0000>[C]<1.3000,0.0000,1.0000>";
    let rmsd = |text: &str, isotopes: &str| {
        let more = ["--dialect", "fixed", "--isotopes", isotopes];
        verdict(&folder, [prompt, text, reference], &more)["rmsd_angstrom"].as_f64().unwrap()
    };
    for isotopes in ["ignore", "respect"] {
        assert!(rmsd(respelled, isotopes) < 1e-6, "{isotopes}");
    }
    // The labels at the other ends: the same geometry, but not that of the labelled molecule.
    assert!(rmsd(exchanged, "ignore") < 1e-6);
    assert!(rmsd(exchanged, "respect") > 0.05);
}

/// Neighbours that only a label tells apart make a stereocentre, in any spelling.
#[test]
fn labels_make_stereocentres() {
    let folder = Folder::new();
    let places = [
        "0.0000,0.0000,0.0000",
        "0.9000,-0.9000,-0.9000",
        "-0.9000,0.9000,-0.9000",
        "-0.9000,-0.9000,0.9000",
    ];
    let [centre, a, b, c] = places.map(|place| format!("<{place}>"));
    // By RDKit 2026.09 (`AssignStereochemistryFrom3D`), the first is `@@`.
    for label in ["13CH3", "2H"] {
        let prompt = format!("C[C@@H]([{label}])O");
        let spelled = format!("[C]{a}[C@@H]{centre}([{label}]{b})[O]{c}");
        let respelled = format!("[{label}]{b}[C@H]{centre}([C]{a})[O]{c}");
        let exchanged = format!("[{label}]{a}[C@H]{centre}([C]{b})[O]{c}");
        for (text, right) in [(&spelled, 1), (&respelled, 1), (&exchanged, 0)] {
            let found = verdict(&folder, [&prompt, text, &spelled], &["--dialect", "fixed"]);
            assert_eq!((&found["stereocentres"], &found["stereocentres_right"]), (&json!(1), &json!(right)));
        }
    }
}

/// A reference in text has the values of its own encoding.
#[test]
fn texts_lie_on_themselves_in_every_encoding() {
    let folder = Folder::new();
    for (encoding, text) in [
        ("fixed", "[C]<0.1234,0.0000,-0.7000>[C]<1.5000,0.3333,0.0000>[O]<2.1000,1.2000,-0.9999>"),
        ("binned-v1:-13,13,0.104", "[C]<130,125,131>[C]<144,126,120>[O]<150,137,111>"),
        ("binned-v2:-21,21,0.07", "[C]300305290;[C]321300301;[O]330317295;"),
        ("integers:333,5", "[C]<00012,-00100,00250>[C]<00499,00030,00071>[O]<00700,00500,-00011>"),
    ] {
        let row = |smiles: &str| {
            let row = json!({ "canonical_smiles": smiles, "embedded_smiles": text, "encoding": encoding });
            row.to_string() + "\n"
        };
        folder.file("own.jsonl", row("CCO"));
        let command = [
            "audit",
            "own.jsonl",
            "--encoding",
            encoding,
            "--references",
            "own.jsonl",
            "--verdicts",
            "-",
            "--quiet",
        ];
        let found = folder.drift(&command).done().json();
        assert!(found["rmsd_angstrom"].as_f64().unwrap() < 1e-7, "{encoding}: {found}");
        // Measured as decimals, the reference still lies at the middles of its bins.
        let middles = encoding.parse::<Encoding>().unwrap();
        let read = parse(text, Reading::new(middles)).unwrap();
        let points = in_angstrom(&read.coordinates, middles);
        let longer: Vec<[f64; 3]> = points.iter().map(|p| p.map(|x| (x * 1e4).trunc() / 1e4)).collect();
        let blocks: Vec<String> = longer.iter().map(|[x, y, z]| format!("<{x:.4},{y:.4},{z:.4}>")).collect();
        let decimals =
            format!("[C]{}[C]{}[O]{}", blocks[0], blocks[1], blocks[2]).replace("-0.0000", "0.0000");
        folder.file(
            "decimals.jsonl",
            json!({ "canonical_smiles": "CCO", "embedded_smiles": decimals }).to_string(),
        );
        let command = [
            "audit",
            "decimals.jsonl",
            "--dialect",
            "fixed",
            "--references",
            "own.jsonl",
            "--verdicts",
            "-",
            "--quiet",
        ];
        let found = folder.drift(&command).done().json();
        let expected = Topology::new(&read.skeleton).unwrap().rmsd(&longer, &points).unwrap();
        assert!((found["rmsd_angstrom"].as_f64().unwrap() - expected).abs() < 1e-9, "{encoding}: {found}");
    }
}
