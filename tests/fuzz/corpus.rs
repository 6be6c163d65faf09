//! Readers of conformers: every format, alone and in containers. Where a format announces how many records it holds, those
//! read and those skipped must come to as many. Pickles and HDF5 do not announce it in a way that can be counted without a
//! reader of theirs; other programs judge those.

use std::path::{Path, PathBuf};

use drift::corpus::{self, Format, ReadOptions, ReadSummary};
use drift::job::Job;
use drift::{MinePlan, mine};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::announced;
use crate::harness::{Outcome, Target, Verdict};
use crate::mutate::{binary, container, gunzip, gzip, pick, tar, text};
use crate::scene::{Scene, check_line, refused};

pub(crate) const ROW: &str = r#"{"canonical_smiles": "C=O", "embedded_smiles": "[C]<1.0000,2.0000,3.0000>=[O]<0.0000,0.5000,-0.1234>"}"#;
pub(crate) const LINE: &str = "[SMILES]C=O[/SMILES][CONFORMER][C]<1,2,3>=[O]<0,0.5,-0.1234>[/CONFORMER]<eos>";
pub(crate) const XYZ: &str = "3\nCO\nC 0 0 0\nO 0 0 1.2\nH 1 1 1\n";
pub(crate) const SDF: &str = "formaldehyde\n  drift           3D\n\n  2  1  0  0  0  0  0  0  0  0999 V2000\n    \
    1.0000    2.0000    3.0000 C   0  0\n    0.0000    0.5000   -0.1234 O   0  0\n  1  2  2  0\nM  END\n\
    > <smiles>\nC=O\n\n$$$$\n";
const V3000: &str = "methanol\n  drift           3D\n\n  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\n\
    M  V30 COUNTS 2 1 0 0 0\nM  V30 BEGIN ATOM\nM  V30 1 C 1.0000 2.0000 3.0000 0\n\
    M  V30 2 O 0.0000 0.5000 -\nM  V30 -0.1234 0 CHG=0\nM  V30 END ATOM\nM  V30 BEGIN BOND\nM  V30 1 1 1 2\n\
    M  V30 END BOND\nM  V30 END CTAB\nM  END\n$$$$\n";

/// The content of a fixture.
pub(crate) fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)).unwrap()
}

fn jsonl() -> Vec<Vec<u8>> {
    let stripped = r#"{"smiles": "CO", "embedded_smiles_stripped": "[C]<1,2,3>[O]<0,0.5,-0.1234>", "n": [1, {"a": null}]}"#;
    let own =
        r#"{"id": 7, "answer": "[SMILES]C=O[/SMILES][CONFORMER][C]<1,2,3>=[O]<0,0.5,-0.1234>[/CONFORMER]"}"#;
    let ring = r#"{"embedded_smiles": "[c]1<0.0000,0.0000,0.0000>[c]<1.2000,0.0000,0.0000>[n+]([O-]<1.0,1.0,1.0>)<2.0,0.0,1.0>1"}"#;
    let texts = [
        format!("{ROW}\n"),
        format!("{ROW}\n{stripped}\n\n{own}\n{ring}\n{ROW}"),
        format!("\u{feff}{ROW}\r\n  \r\n{own}\r\n"),
        format!("{ROW}\n{{}}\n{{\"x\": 1}}\n{stripped}\n"),
    ];
    texts.map(String::into_bytes).to_vec()
}

fn plain() -> Vec<Vec<u8>> {
    let bare = "[C]<1.0000,2.0000,3.0000>([H])[N+]<0.0000,-0.5000,12.1234>=[O]<99.9999,0.0000,1.0000>";
    let texts = [
        format!("{LINE}\n"),
        format!("{LINE}\n{bare}\n\n{bare}\n{LINE}"),
        format!("\u{feff}{bare}\r\n{LINE}\r\n"),
        format!("<|begin_of_text|>{LINE}\n"),
    ];
    texts.map(String::into_bytes).to_vec()
}

fn sdf() -> Vec<Vec<u8>> {
    let texts =
        [SDF.to_owned(), V3000.to_owned(), [SDF, V3000, SDF].concat(), SDF.repeat(3).replace('\n', "\r\n")];
    texts.map(String::into_bytes).to_vec()
}

fn xyz() -> Vec<Vec<u8>> {
    let extended =
        "2\nLattice=\"1 0\" smiles=\"CO\" Properties=species:S:1:pos:R:3\n6 1e0 -1 2 0.5\nO 1 2 3\n";
    [XYZ.to_owned(), format!("{XYZ}\n{extended}{XYZ}"), XYZ.repeat(4)].map(String::into_bytes).to_vec()
}

fn pickles() -> Vec<Vec<u8>> {
    let versions = ["12.1.0", "13.0.0", "13.0.2", "15.0.0", "16.1.0", "16.2.0", "16.3.0", "16.4.0"];
    let mut names: Vec<String> =
        versions.iter().map(|version| format!("pickles/rdkit-{version}.pickle")).collect();
    names.extend((0..6).map(|protocol| format!("pickles/protocol-{protocol}.pickle")));
    names.extend(["pickles/layouts.pickle", "test_set.pickle"].map(str::to_owned));
    names.iter().map(|name| fixture(name)).collect()
}

/// A store of drift's own.
pub(crate) fn store() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let rows = folder.path().join("rows");
    std::fs::write(&rows, jsonl().concat()).unwrap();
    let store = folder.path().join("store");
    let plan = MinePlan { inputs: vec![rows], options: ReadOptions::default(), store: Some(store.clone()) };
    mine(&plan, &Job::default()).unwrap();
    std::fs::read(store).unwrap()
}

fn hdf5() -> Vec<Vec<u8>> {
    vec![fixture("ani1x.h5"), fixture("spice.h5"), store()]
}

/// One seed of every format.
pub(crate) fn any() -> Vec<Vec<u8>> {
    let mut seeds = vec![jsonl().remove(1), plain().remove(1), sdf().remove(2), xyz().remove(1)];
    seeds.extend([
        fixture("geom_crude.msgpack"),
        fixture("test_set.pickle"),
        fixture("ani1x.h5"),
        fixture("spice.h5"),
    ]);
    seeds
}

fn containers() -> Vec<Vec<u8>> {
    let (rows, lines) = (jsonl().remove(1), plain().remove(1));
    let archive = tar(&[
        ("a/rows", &rows),
        ("lines.gz", &gzip(&lines)),
        ("._hidden", b"x"),
        ("empty", b""),
        ("x.sdf", SDF.as_bytes()),
    ]);
    let mut seeds = vec![
        fixture("rdkit_folder.tar.gz"),
        archive.clone(),
        gzip(&archive),
        [&gzip(&rows)[..], &gzip(&rows)].concat(),
    ];
    seeds.push(gnu_archive(&rows));
    seeds.extend(any().iter().map(|content| gzip(content)));
    seeds
}

/// An archive with a long name and a header of pax.
fn gnu_archive(content: &[u8]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    builder.append_data(&mut header, format!("{}/rows", "long".repeat(60)), content).unwrap();
    builder.append_pax_extensions([("size", content.len().to_string().as_bytes())]).unwrap();
    builder.append_data(&mut header, "rows", content).unwrap();
    builder.into_inner().unwrap()
}

/// Reads the case; what was read of it, or the verdict on its refusal.
fn read(scene: &Scene) -> Result<ReadSummary, Verdict> {
    let mut count = 0;
    let inputs = [PathBuf::from(scene.file)];
    let outcome = corpus::read(&inputs, &ReadOptions::default(), &Job::default(), &mut |batch| {
        count += batch.conformers.len() as u64;
        Ok(())
    });
    let summary = outcome.map_err(|error| refused(scene, &error))?;
    if count != summary.conformers || summary.conformers == 0 {
        return Err(Err(format!("{count} conformers handed on, {} in the summary", summary.conformers)));
    }
    Ok(summary)
}

/// Reads the case, and compares what was read with what is announced.
fn check(scene: &Scene, bytes: &[u8]) -> Verdict {
    let summary = match read(scene) {
        Ok(summary) => summary,
        Err(verdict) => return verdict,
    };
    check_summary(&summary)?;
    if summary.inputs.len() != 1 || summary.inputs[0] != drift::io::hash_bytes(scene.file, bytes) {
        return Err("the hash is not that of the file".to_owned());
    }
    let announced = match Format::from_prefix(&bytes[..bytes.len().min(64 << 10)]) {
        Some(format) if bytes.get(257..262) != Some(b"ustar") => announced::records(format, bytes),
        _ => inside(bytes),
    };
    compare(announced, &summary)?;
    let torn = announced::torn_molecules(bytes);
    if Format::from_prefix(&bytes[..bytes.len().min(64 << 10)]) == Some(Format::Sdf) && summary.skipped < torn
    {
        return Err(format!(
            "molecules with fewer atoms than they announce are read | {torn} of them, {} skipped",
            summary.skipped
        ));
    }
    Ok(Outcome::Accepted)
}

/// What the members of an archive, compressed or not, announce together; what does not tell counts as one record.
fn inside(bytes: &[u8]) -> Option<std::ops::RangeInclusive<u64>> {
    let content = gunzip(bytes).unwrap_or_else(|| bytes.to_vec());
    if content.get(257..262) != Some(b"ustar") {
        let format = Format::from_prefix(&content[..content.len().min(64 << 10)])?;
        return announced::records(format, &content);
    }
    let mut fewest = 0;
    for (_, content) in announced::members(&content)? {
        let content = gunzip(&content).unwrap_or(content);
        let format = Format::from_prefix(&content[..content.len().min(64 << 10)]);
        let is_archive = content.get(257..262) == Some(b"ustar");
        let own = format.filter(|_| !is_archive).and_then(|format| announced::records(format, &content));
        fewest += own.map_or(1, |records| *records.start());
    }
    Some(fewest..=u64::MAX)
}

fn compare(announced: Option<std::ops::RangeInclusive<u64>>, summary: &ReadSummary) -> Result<(), String> {
    let Some(announced) = announced else { return Ok(()) };
    let found = summary.conformers + summary.skipped;
    if announced.contains(&found) {
        return Ok(());
    }
    let (conformers, skipped) = (summary.conformers, summary.skipped);
    Err(format!(
        "another number of records than announced | {announced:?} announced, {conformers} read and {skipped} skipped"
    ))
}

/// Reasons are lines too, and the list is as long as it should be.
fn check_summary(summary: &ReadSummary) -> Result<(), String> {
    let listed = summary.skipped.min(corpus::SKIPPED_LISTED as u64);
    if summary.skipped_records.len() as u64 != listed {
        return Err(format!("{} skipped, {} listed", summary.skipped, summary.skipped_records.len()));
    }
    for record in &summary.skipped_records {
        check_line(&format!("{}: {}: {}", record.file, record.record, record.reason))
            .map_err(|what| format!("skipped record: {what}"))?;
    }
    Ok(())
}

/// A case is read as well in containers as it is alone.
fn check_wrapped(scene: &Scene, bytes: &[u8]) -> Verdict {
    let alone = match read(scene) {
        Ok(summary) => summary,
        Err(verdict) => return verdict,
    };
    let is_tar = bytes.get(257..262) == Some(b"ustar");
    let wraps = [
        ("gzip", gzip(bytes)),
        ("tar", tar(&[("case", bytes)])),
        ("tar of gzip", tar(&[("case", &gzip(bytes))])),
        ("tar.gz", gzip(&tar(&[("case", bytes)]))),
    ];
    for (what, wrapped) in wraps {
        if bytes.starts_with(b"\x1f\x8b") || is_tar && what != "gzip" {
            continue;
        }
        scene.put(&wrapped);
        let outcome = read(scene);
        scene.put(bytes);
        let summary = outcome.map_err(|verdict| match verdict {
            Ok(_) => format!("is read alone and refused in {what} |"),
            Err(broken) => format!("in {what}: {broken}"),
        })?;
        if (summary.conformers, summary.skipped) != (alone.conformers, alone.skipped) {
            let [a, b] = [&alone, &summary].map(|s| format!("{} read, {} skipped", s.conformers, s.skipped));
            return Err(format!("is read otherwise in {what} | alone {a}; inside {b}"));
        }
    }
    Ok(Outcome::Accepted)
}

const TEXT_WORDS: [&str; 14] = [
    "<",
    ">",
    "[",
    "]",
    "(",
    ")",
    ",",
    "[H]",
    "[CONFORMER]",
    "[/CONFORMER]",
    "[SMILES]",
    "%10",
    "{",
    "\"embedded_smiles\": ",
];
const SDF_WORDS: [&str; 12] = [
    "$$$$\n",
    "M  V30 ",
    "M  END\n",
    "V2000",
    "V3000",
    "M  V30 COUNTS 5 0 0 0 0\n",
    "M  V30 END ATOM\n",
    "M  V30 END CTAB\n",
    "> <smiles>\n",
    "-\n",
    "M  V30 BEGIN ATOM\n",
    "999",
];
const XYZ_WORDS: [&str; 6] = ["0\n", "1\n", "Xx", "119", "smiles=", "\n\n"];
const PICKLE_WORDS: [&str; 22] = [
    "(",
    ")",
    "0",
    "1",
    "2",
    ".",
    "R",
    "b",
    "}",
    "]",
    "e",
    "s",
    "u",
    "t",
    "\u{5d}",
    "l",
    "q\0",
    "h\0",
    "h\u{7f}",
    "X\u{7f}\0\0\0",
    "cnumpy\narray\n",
    "crdkit.Chem.rdchem\nMol\n",
];
const HDF5_WORDS: [&str; 8] =
    ["SNOD", "TREE", "HEAP", "OHDR", "GCOL", "coordinates", "atomic_numbers", "\u{89}HDF\r\n\u{1a}\n"];

/// A pickle of any kind, at times several after each other.
fn pickle_case(random: &mut ChaCha8Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    let case = binary(random, seeds, &PICKLE_WORDS);
    if random.random_bool(0.1) { [&case[..], pick(random, seeds).as_slice()].concat() } else { case }
}

/// Any format, a little changed: most are read.
fn wrapped_case(random: &mut ChaCha8Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = pick(random, seeds).clone();
    for _ in 0..random.random_range(0..3) {
        let at = random.random_range(0..bytes.len());
        bytes[at] ^= 1 << random.random_range(0..8);
    }
    bytes
}

/// The targets of this file.
pub(crate) fn targets() -> Vec<Target> {
    let base = Target { check, ..Target::BASE };
    vec![
        Target { name: "jsonl", seeds: jsonl, make: |r, s| text(r, s, &TEXT_WORDS), ..base },
        Target { name: "plain", seeds: plain, make: |r, s| text(r, s, &TEXT_WORDS), ..base },
        Target { name: "sdf", seeds: sdf, make: |r, s| text(r, s, &SDF_WORDS), ..base },
        Target { name: "xyz", seeds: xyz, make: |r, s| text(r, s, &XYZ_WORDS), ..base },
        Target {
            name: "msgpack",
            seeds: || vec![fixture("geom_crude.msgpack")],
            make: |r, s| binary(r, s, &["\u{a9}conformers", "\u{a3}xyz", "\u{90}", "\u{80}"]),
            ..base
        },
        Target { name: "pickle", seeds: pickles, make: pickle_case, ..base },
        Target { name: "hdf5", seeds: hdf5, make: |r, s| binary(r, s, &HDF5_WORDS), ..base },
        Target { name: "containers", seeds: containers, make: container, ..base },
        Target { name: "wrapped", seeds: any, make: wrapped_case, check: check_wrapped, cases: 150, ..base },
    ]
}
