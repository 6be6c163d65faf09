//! Texts in memory: SMILES and what is made of them, enriched text and its blocks.

use drift::audit::{judge_block, marks, readable};
use drift::chem::foreign;
use drift::chem::{AtomLimit, Isotopes, Molecule, SmilesMolecule, graph_key, same_graph, same_molecule};
use drift::constraint::strip_junk;
use drift::text::skeleton::{from_smiles, smiles, with_hydrogens, without_needless_hydrogens};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use drift::encoding::{Encoding, Reading};
use drift::text::{parse, write};

use crate::corpus::LINE;
use crate::documents::{SMILES, SMILES_WORDS};
use crate::harness::{Outcome, Target, Verdict};
use crate::mutate::{pick, text};
use crate::scene::Scene;

fn check_smiles(_: &Scene, bytes: &[u8]) -> Verdict {
    let text = String::from_utf8_lossy(bytes);
    let mut outcome = Outcome::Refused;
    for smiles in text.lines() {
        for isotopes in Isotopes::ALL {
            let _ = same_molecule(smiles, smiles, AtomLimit::default(), isotopes);
        }
        let _ = (foreign(smiles), same_graph(smiles, "CCO"));
        let molecule = Molecule::of_smiles(smiles);
        let _ = (
            graph_key(smiles),
            molecule.map(|molecule| {
                (molecule.pairs(), (molecule.atoms.len() < 1_000).then(|| molecule.aromatic_bonds()))
            }),
            SmilesMolecule::new(smiles, AtomLimit::default()),
        );
        if let Ok(skeleton) = from_smiles(smiles) {
            outcome = Outcome::Accepted;
            check_skeleton(&skeleton)?;
        }
    }
    Ok(outcome)
}

/// A skeleton that drift wrote is one that it reads.
fn check_skeleton(skeleton: &str) -> Result<(), String> {
    let filled = skeleton.replace("<>", "<0.0000,0.5000,1.0000>");
    let read = parse(&filled, Reading::default())
        .map_err(|e| format!("a skeleton is not read | `{skeleton}` is not read: {e}"))?;
    if read.skeleton != skeleton {
        return Err(format!("a skeleton is read otherwise | `{skeleton}` is read as `{}`", read.skeleton));
    }
    let _ = (without_needless_hydrogens(skeleton), smiles(skeleton), with_hydrogens(skeleton));
    Ok(())
}

fn check_enriched(_: &Scene, bytes: &[u8]) -> Verdict {
    let text = String::from_utf8_lossy(bytes);
    let mut outcome = Outcome::Refused;
    for text in text.lines() {
        for encoding in Encoding::ALL {
            let _ = (
                marks(text, encoding),
                readable(text, encoding),
                strip_junk(text, encoding),
                judge_block(text, encoding),
            );
        }
        let _ = Encoding::FIXED.parse_numbers(text.as_bytes(), false);
        let Ok(read) = parse(text, Reading::default()) else { continue };
        outcome = Outcome::Accepted;
        let written = write(&read.skeleton, &read.coordinates, Encoding::FIXED);
        let again = parse(&written, Reading::default())
            .map_err(|e| format!("what was written is not read | `{written}` is not read again: {e}"))?;
        if (&again.skeleton, &again.coordinates) != (&read.skeleton, &read.coordinates) {
            return Err(format!("a text is written otherwise | `{text}` is written as `{written}`"));
        }
    }
    Ok(outcome)
}

fn all_smiles() -> Vec<Vec<u8>> {
    let mut seeds = SMILES.map(|smiles| smiles.as_bytes().to_vec()).to_vec();
    seeds.push("C1CC2CCC1CC2".repeat(40).into_bytes());
    seeds
}

/// Molecules of 100,000 atoms: what walks one by calling itself ends here, and what compares all atoms with all.
fn giant(random: &mut ChaCha8Rng) -> String {
    let count = *pick(random, &[1_500, 20_000, 100_000]);
    match random.random_range(0..4) {
        0 => "C".repeat(count),
        1 => format!("{}C{}", "C(".repeat(count), ")".repeat(count)),
        2 => "C1CC1".repeat(count / 3),
        _ => format!("{}C{}", "C1".repeat(count), "C1".repeat(count)),
    }
}

fn smiles_case(random: &mut ChaCha8Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    if random.random_bool(0.002) { giant(random).into_bytes() } else { text(random, seeds, &SMILES_WORDS) }
}

fn enriched_case(random: &mut ChaCha8Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    if random.random_bool(0.002) {
        return giant(random).replace('C', "[C]<0,0,0>").into_bytes();
    }
    text(random, seeds, &BLOCK_WORDS)
}

fn enriched() -> Vec<Vec<u8>> {
    let bare = "[C]<1.0000,2.0000,3.0000>([H])[N+]<0.0000,-0.5000,12.1234>=[O]<99.9999,0.0000,1.0000>";
    [LINE, bare, "[c]1<0,0,0>[c]<1.2,0,0>[n]<2,0,1>1", "[C]<-0.0001,99999.9999,.5>"]
        .map(|text| text.as_bytes().to_vec())
        .to_vec()
}

const BLOCK_WORDS: [&str; 12] =
    ["<", ">", ",", "-", ".", "[C]", "[CONFORMER]", "[/CONFORMER]", "(", ")", "1e5", "[H]"];

/// The targets of this file.
pub(crate) fn targets() -> Vec<Target> {
    vec![
        Target { name: "smiles", seeds: all_smiles, make: smiles_case, check: check_smiles, ..Target::BASE },
        Target {
            name: "enriched",
            seeds: enriched,
            make: enriched_case,
            check: check_enriched,
            memory_mib: 128,
            ..Target::BASE
        },
    ]
}
