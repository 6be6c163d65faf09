//! The least RMSD of pairs of conformers beside RDKit's `GetBestRMS` and spyrmsd, on the same pairs: values and seconds a pair.
//!
//! `cargo bench --bench rmsd -- CONFORMERS.jsonl.gz [SPYRMSD_PAIRS]` runs `rmsd_peer.py` by `DRIFT_PYTHON`, which needs RDKit, and spyrmsd
//! where pairs are given to it. With `--check` values are compared and nothing is timed.

use std::process::Command;
use std::time::Instant;

use drift::audit::geometry::{Conformation, Topology};
use drift::text::skeleton::from_smiles;
use serde::Deserialize;

/// How far a value may be from RDKit's, in Å.
const TOLERANCE_ANGSTROM: f64 = 1e-6;

/// How often all pairs are gone through; the fastest time counts.
const ROUNDS: usize = 20;

#[derive(Deserialize)]
struct Pair {
    smiles: String,
    a: Conformation,
    b: Conformation,
    rmsd: f64,
    seconds: f64,
    spyrmsd_seconds: Option<f64>,
}

#[allow(clippy::print_stdout, reason = "it is what a benchmark is for")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let check = arguments.iter().any(|argument| argument == "--check");
    let arguments: Vec<&String> = arguments.iter().filter(|argument| *argument != "--check").collect();
    let Some(path) = arguments.first() else {
        println!("give conformers: cargo bench --bench rmsd -- CONFORMERS.jsonl.gz [SPYRMSD_PAIRS]");
        return;
    };
    let python = std::env::var("DRIFT_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/benches/rmsd_peer.py");
    let peer =
        Command::new(python).arg(script).arg(path).args(arguments.get(1)).output().expect("Python runs");
    assert!(peer.status.success(), "{}", String::from_utf8_lossy(&peer.stderr));
    let text = String::from_utf8(peer.stdout).expect("JSON is text");
    let pairs: Vec<Pair> = text.lines().map(|line| serde_json::from_str(line).expect("a pair")).collect();
    let topologies: Vec<Topology> = pairs
        .iter()
        .map(|pair| Topology::new(&from_smiles(&pair.smiles).expect("a SMILES")).expect("a molecule"))
        .collect();
    let mut furthest = 0.0_f64;
    for (pair, topology) in pairs.iter().zip(&topologies) {
        let found = topology.least_rmsd(&pair.a, &pair.b).expect("as many atoms");
        let off = (found.rmsd - pair.rmsd).abs();
        assert!(
            found.is_exact && off < TOLERANCE_ANGSTROM,
            "{}: {found:?}, RDKit {}",
            pair.smiles,
            pair.rmsd
        );
        furthest = furthest.max(off);
    }
    println!("{} pairs, all exact, at most {furthest:.1e} Å from GetBestRMS", pairs.len());
    if check {
        return;
    }
    let once = || {
        let began = Instant::now();
        let sum: f64 =
            pairs.iter().zip(&topologies).filter_map(|(pair, one)| one.rmsd(&pair.a, &pair.b)).sum();
        assert!(sum.is_finite());
        began.elapsed().as_secs_f64()
    };
    let fastest = (0..ROUNDS).map(|_| once()).fold(f64::INFINITY, f64::min);
    let each = |seconds: f64| 1e6 * seconds / pairs.len() as f64;
    // The median, since the first calls load what the others find.
    let mut theirs: Vec<f64> = pairs.iter().map(|pair| pair.seconds).collect();
    theirs.sort_by(f64::total_cmp);
    let theirs = 1e6 * theirs[theirs.len() / 2];
    let ours = each(fastest);
    println!(
        "drift {ours:.2} µs a pair (mean), GetBestRMS {theirs:.1} µs (median): {:.1} times",
        theirs / ours
    );
    let slow: Vec<f64> = pairs.iter().filter_map(|pair| pair.spyrmsd_seconds).collect();
    if !slow.is_empty() {
        println!(
            "spyrmsd {:.0} µs a pair, {} pairs",
            1e6 * slow.iter().sum::<f64>() / slow.len() as f64,
            slow.len()
        );
    }
}
