//! The chemistry of conformers beside RDKit and PoseBusters, on real conformers and on what is made of them.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use drift::audit::chemistry::{Chemistry, ChemistryRule, ConformerChemistry};
use drift::chem::Graph;
use drift::chem::stereo::StereoMarks;
use drift::corpus::EmbeddedConformers;
use drift::encoding::{Precision, Reading};
use drift::job::Job;
use drift::text::{parse, skeleton};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::support::{self, python_program, shared, sized};

type Points = Vec<[f64; 3]>;

/// How a conformer is spoilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Spoilt {
    Not,
    Mirrored,
    Shaken(u32),
    Squeezed,
    Pressed,
    Straightened,
}

/// Conformers of a shared file, by SMILES.
fn conformers(file: &str, step: usize) -> Vec<(String, Points)> {
    let reader = drift::io::open(&shared().join("geom").join(file), &Job::default()).reader;
    let mut out = Vec::new();
    for line in std::io::BufRead::lines(reader).step_by(step) {
        let row: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let text = parse(row["embedded_smiles"].as_str().unwrap(), Reading::default()).unwrap();
        let points = text.coordinates.iter().map(|point| point.map(|x| Precision::FOUR.angstrom(x)));
        out.push((skeleton::smiles(&text.skeleton), points.collect()));
    }
    out
}

fn spoil(points: &[[f64; 3]], how: Spoilt, random: &mut ChaCha8Rng) -> Points {
    let mut shaken = |by: f64| by * (random.random::<f64>() + random.random::<f64>() - 1.0);
    let moved = |[x, y, z]: &[f64; 3]| match how {
        Spoilt::Not | Spoilt::Straightened => [*x, *y, *z],
        Spoilt::Mirrored => [*x, *y, -z],
        Spoilt::Shaken(percent) => [*x, *y, *z].map(|x| x + shaken(f64::from(percent) / 100.0)),
        Spoilt::Squeezed => [*x, *y, 0.5 * z],
        Spoilt::Pressed => [*x, *y, 0.0],
    };
    points.iter().map(moved).map(|point| point.map(|x| (x * 1e4).round() / 1e4)).collect()
}

/// One neighbour of each marked double bond moved onto the line of the bond, to within 1°; nothing without such a bond.
fn straighten(smiles: &str, points: &[[f64; 3]], random: &mut ChaCha8Rng) -> Option<Points> {
    let marks = StereoMarks::from_graph(&Graph::parse(smiles).unwrap()).double_bonds;
    let mut points = points.to_vec();
    for mark in &marks {
        let end = random.random_range(0..2);
        let [atom, across] = [end, 1 - end].map(|end| points[mark.atoms[end]]);
        let neighbour = match mark.others[end] {
            Some(other) if random.random() => other,
            _ => mark.neighbours[end],
        };
        // The bond behind the atom, as long as before it, and at most 0.02 Å beside the line.
        points[neighbour] =
            std::array::from_fn(|axis| 2.0 * atom[axis] - across[axis] + random.random_range(-0.01..0.01));
    }
    (!marks.is_empty()).then(|| spoil(&points, Spoilt::Straightened, random))
}

/// What PoseBusters and RDKit say of each.
fn judged(all: &[(Spoilt, String, Points)]) -> Vec<Value> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/chemistry.py");
    let mut child = Command::new(python_program())
        .args(["-W", "ignore", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let rows: String = all
        .iter()
        .map(|(_, smiles, points)| format!("{}\n", json!({"smiles": smiles, "points": points})))
        .collect();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(rows.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What drift says of the rules that PoseBusters has.
fn broken(found: &ConformerChemistry) -> [(&'static str, bool); 6] {
    let breaks = |rule| found.breaks(rule);
    [
        ("clash", breaks(ChemistryRule::Clash)),
        ("bonds", breaks(ChemistryRule::ShortBond) || breaks(ChemistryRule::LongBond)),
        ("angles", breaks(ChemistryRule::Angle)),
        ("flat_ring", breaks(ChemistryRule::FlatRing)),
        ("aromatic_ring", breaks(ChemistryRule::AromaticRing)),
        ("double_bond", breaks(ChemistryRule::BentDoubleBond) || breaks(ChemistryRule::BentCentre)),
    ]
}

/// Conformers as they are, and spoilt in some way; in others with DRIFT_RANDOM_SEED.
fn corpus() -> Vec<(Spoilt, String, Points)> {
    let seed = std::env::var("DRIFT_RANDOM_SEED").map_or(0, |seed| seed.parse().unwrap());
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut all = Vec::new();
    let kinds = [Spoilt::Shaken(30), Spoilt::Squeezed, Spoilt::Mirrored, Spoilt::Pressed, Spoilt::Shaken(80)];
    let files =
        conformers("xtb_moses_aq.jsonl.gz", 4).into_iter().chain(conformers("etkdg_drugs_test.jsonl.gz", 8));
    for (at, (smiles, points)) in files.enumerate().step_by(sized(1, 7)) {
        for how in [Spoilt::Not, kinds[at % kinds.len()]] {
            all.push((how, smiles.clone(), spoil(&points, how, &mut random)));
        }
        if let Some(points) = straighten(&smiles, &points, &mut random) {
            all.push((Spoilt::Straightened, smiles, points));
        }
    }
    all
}

#[test]
#[cfg_attr(
    not(all(has_shared, has_posebusters)),
    ignore = "needs ../shared, and PoseBusters in DRIFT_PYTHON"
)]
fn rules_and_stereo_are_those_of_posebusters_and_rdkit() {
    let all = corpus();
    let theirs = judged(&all);
    assert_eq!(theirs.len(), all.len());
    let mut counts: BTreeMap<(&str, bool, bool), usize> = BTreeMap::new();
    let (mut centres, mut bonds) = ([0; 3], [0; 3]);
    let mut valid = [0; 2];
    let mut differ = 0;
    for ((how, smiles, points), their) in all.iter().zip(&theirs) {
        let found = Chemistry::from_smiles(smiles).unwrap().check(points).unwrap();
        let is = |name: &str| their[name].as_bool().unwrap();
        let count = |name: &str| their[name].as_u64().unwrap();
        for (name, own) in broken(&found) {
            *counts.entry((name, is(name), own)).or_default() += 1;
            match name {
                // Nothing to explain.
                "clash" | "angles" | "bonds" => {
                    assert_eq!(own, is(name), "{name} {how:?} {smiles} {:?}", found.findings);
                }
                // Distances to either side of the plane explain the whole difference.
                "flat_ring" => {
                    assert_eq!(own, is("flat_ring_either_side"), "{how:?} {smiles}");
                    assert!(!own || is(name), "{how:?} {smiles}");
                }
                // Distances to either side of the plane, and rings of six beside rings of five, explain the whole difference.
                "aromatic_ring" => {
                    assert_eq!(own, is("aromatic_ring_either_side"), "{how:?} {smiles}");
                    assert!(own || !is(name), "{how:?} {smiles}");
                }
                // Double bonds with hydrogens, and carbons with three neighbours, are drift's own.
                _ => assert!(own || !is(name), "{how:?} {smiles}"),
            }
        }
        valid[0] += usize::from(!broken(&found).iter().any(|(name, _)| is(name)));
        valid[1] += usize::from(found.has_valid_geometry());
        // What is pressed into a plane has no handedness; RDKit then marks nothing.
        assert_eq!(
            [found.stereocentres, found.stereocentres_right, found.double_bonds, found.double_bonds_right],
            [count("centres"), count("centres_right"), count("double_bonds"), count("double_bonds_right")],
            "{how:?} {smiles}"
        );
        let right = found.stereocentres_right == found.stereocentres
            && found.double_bonds_right == found.double_bonds;
        if matches!(how, Spoilt::Not | Spoilt::Mirrored) {
            // RDKit also marks what the SMILES leaves open; what it marks, all of it is right.
            assert!(right || !is("same"), "{how:?} {smiles}");
            differ += usize::from(right && !is("same"));
        }
        if *how == Spoilt::Not {
            assert!(found.is_valid(), "{smiles}: {:?}", found.findings);
        }
        centres[0] += found.stereocentres;
        centres[1] += found.stereocentres_right;
        centres[2] += count("centres_right");
        bonds[0] += found.double_bonds;
        bonds[1] += found.double_bonds_right;
        bonds[2] += count("double_bonds_right");
    }
    for ((name, their, own), count) in &counts {
        eprintln!("{name}: broken for PoseBusters {their}, for drift {own}: {count}");
    }
    eprintln!(
        "{} conformers; stereocentres, right for drift, for RDKit: {centres:?}; double bonds {bonds:?}",
        all.len()
    );
    eprintln!("{differ} with more stereo than their SMILES for RDKit");
    assert!(differ <= 20, "{differ}");
    eprintln!("valid but stereo for PoseBusters {}, for drift {}", valid[0], valid[1]);
    // Each rule was broken, and kept.
    for name in ["clash", "bonds", "angles", "flat_ring", "aromatic_ring", "double_bond"] {
        for own in [false, true] {
            assert!(counts.keys().any(|(known, _, known_own)| (*known, *known_own) == (name, own)), "{name}");
        }
    }
    let straightened = all.iter().filter(|(how, ..)| *how == Spoilt::Straightened).count();
    assert_eq!(all.len() - straightened, sized(1_000, 144));
    assert!(straightened > sized(30, 4), "{straightened}");
    assert!(centres[0] > centres[1] + sized(50, 6) && bonds[0] > sized(20, 2));
}

#[test]
fn conformers_of_the_embedded_corpus_are_valid() {
    let mut molecules: BTreeMap<String, Vec<Points>> = BTreeMap::new();
    for conformer in support::conformers(&EmbeddedConformers::default()) {
        let points = conformer.coordinates.iter().map(|point| point.map(|x| Precision::FOUR.angstrom(x)));
        molecules.entry(skeleton::smiles(&conformer.skeleton)).or_default().push(points.collect());
    }
    let mut centres = 0;
    for (smiles, conformers) in molecules {
        let chemistry = Chemistry::from_smiles(&smiles).unwrap();
        for points in conformers {
            let found = chemistry.check(&points).unwrap();
            assert!(found.is_valid(), "{smiles}: {:?}", found.findings);
            centres += found.stereocentres;
        }
    }
    assert!(centres > 2_000, "{centres}");
}

/// Two small rings leave 210° of the full turn between what is bonded beside them. RDKit's bounds are those of a straight angle.
#[test]
fn more_than_half_a_turn_is_straight() {
    // A text of the built-in model, `c1on2c1O2`; GetMoleculeBoundsMatrix of RDKit 2026.09 has 2.746873 Å for the first and the last atom.
    let points = [
        [0.7384, 0.8601, -0.0356],
        [1.2065, -0.4018, 0.0731],
        [0.0342, -0.6280, -0.4793],
        [-0.0607, 0.7104, -0.0323],
        [-1.0896, 0.0008, 0.1602],
    ];
    let found = Chemistry::from_smiles("c1on2c1O2").unwrap().check(&points).unwrap();
    let angles: Vec<_> =
        found.findings.iter().filter(|finding| finding.rule == ChemistryRule::Angle).collect();
    assert_eq!(angles.len(), 1, "{angles:?}");
    assert!((angles[0].limit.unwrap() - 0.75 * 2.746_873).abs() < 1e-5, "{angles:?}");
}
