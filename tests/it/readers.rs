//! Reading corpora: real conformers, containers, folders, frames, progress, cancellation.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use drift::corpus::{self, AtomOrder, Conformer, Frame, ReadOptions, ReadSummary};
use drift::encoding::{DecimalForms, Encoding};
use drift::job::{Job, Observer, Unit};
use drift::text::write;
use drift::{Error, Result};

use crate::support::{Folder, shared};

/// A good row of JSONL.
pub(crate) const ROW: &str = r#"{"canonical_smiles": "C=O", "embedded_smiles": "[C]<1.0000,2.0000,3.0000>=[O]<0.0000,0.5000,-0.1234>"}"#;
/// A good line of enriched text.
pub(crate) const LINE: &str = "[SMILES]C=O[/SMILES][CONFORMER][C]<1,2,3>=[O]<0,0.5,-0.1234>[/CONFORMER]<eos>";
/// A good frame of XYZ.
pub(crate) const XYZ: &str = "3\nCO\nC 0 0 0\nO 0 0 1.2\nH 1 1 1\n";
/// A good molecule of SDF.
pub(crate) const SDF: &str = "formaldehyde\n  drift             3D\n\n  2  1  0  0  0  0  0  0  0  0999 V2000\n    \
    1.0000    2.0000    3.0000 C   0  0\n    0.0000    0.5000   -0.1234 O   0  0\n  1  2  2  0\nM  END\n$$$$\n";

pub(crate) fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in members {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, name, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

pub(crate) fn read_as(frame: Frame, inputs: &[PathBuf]) -> Result<(Vec<Conformer>, ReadSummary)> {
    let mut conformers = Vec::new();
    let options = ReadOptions { frame, ..ReadOptions::default() };
    let summary = corpus::read(inputs, &options, &Job::default(), &mut |batch| {
        conformers.extend(batch.conformers);
        Ok(())
    })?;
    assert_eq!(summary.conformers, conformers.len() as u64);
    Ok((conformers, summary))
}

pub(crate) fn read(input: PathBuf) -> Result<(Vec<Conformer>, ReadSummary)> {
    read_as(Frame::Keep, &[input])
}

/// The message of the error that reading `input` ends in, which must be a refusal of the input.
pub(crate) fn refusal(input: PathBuf) -> String {
    let error = read(input).unwrap_err();
    assert!(matches!(error, Error::Input { .. }), "{error:?}");
    assert_eq!(error.exit_code(), 2);
    let message = error.to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

#[test]
#[cfg_attr(not(has_shared), ignore = "needs ../shared or DRIFT_SHARED")]
fn real_conformers_agree_with_their_mol_blocks() {
    let geom = shared().join("geom");
    let (texts, summary) = read(geom.join("geom_conformers.jsonl")).unwrap();
    let (blocks, _) = read(geom.join("geom_conformers.sdf")).unwrap();
    assert_eq!((texts.len(), blocks.len()), (13, 13));
    assert_eq!(summary.written, DecimalForms { fixed: true, stripped: false });
    for (text, block) in texts.iter().zip(&blocks) {
        assert_eq!((&text.molecule, &text.skeleton), (&block.molecule, &block.skeleton));
        assert_eq!((text.order, block.order), (AtomOrder::Smiles, AtomOrder::Smiles));
        assert_eq!(text.coordinates.len(), block.coordinates.len());
        for atom in &text.coordinates {
            // The mol block is rounded where the text is truncated.
            let near = |other: &&[i32; 3]| (0..3).all(|axis| (atom[axis] - other[axis]).abs() <= 1);
            assert_eq!(block.coordinates.iter().filter(near).count(), 1, "{}", text.molecule);
        }
    }
}

#[test]
#[cfg_attr(not(has_shared), ignore = "needs ../shared or DRIFT_SHARED")]
fn the_shared_samples_are_read_whole() {
    let geom = shared().join("geom");
    for (file, conformers, atoms) in [
        ("xtb_moses_aq.jsonl.gz", 1_000, 21_725),
        ("xtb_moses_aq.sdf.gz", 1_000, 21_725),
        ("etkdg_drugs_test.jsonl.gz", 1_997, 49_597),
    ] {
        let (read, summary) = read(geom.join(file)).unwrap();
        assert_eq!((summary.conformers, summary.skipped), (conformers, 0), "{file}");
        assert_eq!(read.iter().map(|c| c.coordinates.len()).sum::<usize>(), atoms, "{file}");
        assert_eq!(summary.inputs, [drift::io::hash_file(&geom.join(file), &Job::default()).unwrap()]);
    }
}

#[test]
#[cfg_attr(not(has_shared), ignore = "needs ../shared or DRIFT_SHARED")]
fn texts_of_files_lie_in_the_frame_of_the_files() {
    let geom = shared().join("geom");
    for frame in [Frame::Principal, Frame::FirstAtoms] {
        let (turned, _) = read_as(frame, &[geom.join("geom_conformers.sdf")]).unwrap();
        let folder = Folder::new();
        let texts: Vec<String> = turned
            .iter()
            .map(|conformer| write(&conformer.skeleton, &conformer.coordinates, Encoding::FIXED) + "\n")
            .collect();
        let (again, _) = read_as(frame, &[folder.file("texts", texts.concat())]).unwrap();
        assert_eq!(turned.len(), again.len());
        for (turned, again) in turned.iter().zip(&again) {
            assert_eq!(turned.coordinates, again.coordinates, "{frame:?} {}", turned.molecule);
        }
    }
}

/// A chiral molecule, its mirror image and a nitrile, whose first three atoms lie on a line.
const HANDED: &str = "[O]<0.9000,1.9000,-0.3000>[C@H]<1.2000,0.6000,0.2000>([F]<0.3000,0.1000,1.1000>)[Cl]<2.8000,0.7000,0.9000>\n\
    [O]<0.9000,1.9000,0.3000>[C@@H]<1.2000,0.6000,-0.2000>([F]<0.3000,0.1000,-1.1000>)[Cl]<2.8000,0.7000,-0.9000>\n\
    [N]<0.0000,0.0000,3.9000>#[C]<0.0000,0.0000,2.7000>[C]<0.0000,0.0000,1.2000>[O]<0.0000,1.4000,0.7000>\n";

#[test]
fn the_frame_of_the_first_atoms() {
    let folder = Folder::new();
    let (kept, _) = read(folder.file("texts", HANDED)).unwrap();
    let (turned, _) = read_as(Frame::FirstAtoms, &[folder.path().join("texts")]).unwrap();
    for (kept, turned) in kept.iter().zip(&turned) {
        assert_eq!((&kept.molecule, kept.order), (&turned.molecule, turned.order));
        let distances = |conformer: &Conformer| -> Vec<f64> {
            let at = &conformer.coordinates;
            let pairs = (0..at.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
            pairs
                .map(|(i, j)| {
                    (0..3).map(|axis| f64::from(at[i][axis] - at[j][axis]).powi(2)).sum::<f64>().sqrt()
                })
                .collect()
        };
        // Each of six numbers is truncated by less than one of its last decimals.
        let near = distances(kept).into_iter().zip(distances(turned)).all(|(a, b)| (a - b).abs() < 3.5);
        assert!(near, "{turned:?}");
        let at = &turned.coordinates;
        assert_eq!(at[0], [0; 3]);
        assert!(at[1][0] > 0 && at[1][1..] == [0, 0], "{at:?}");
    }
    let [one, other, nitrile] = &turned[..] else { panic!("{turned:?}") };
    for (a, b) in one.coordinates.iter().zip(&other.coordinates) {
        assert_eq!(*a, [b[0], b[1], -b[2]], "a mirror image differs in the signs of z alone");
    }
    assert!(one.coordinates[2][1] > 0 && one.coordinates[2][2] == 0 && one.coordinates[3][2] != 0);
    assert_eq!(nitrile.coordinates[2], [27_000, 0, 0]);
    assert!(nitrile.coordinates[3][1] > 0 && nitrile.coordinates[3][2] == 0);
}

#[test]
fn a_frame_holds_for_atoms_texts_and_stores() {
    let folder = Folder::new();
    folder.file("texts.txt", HANDED);
    folder.file("one.sdf", SDF);
    folder.drift(&["mine", "texts.txt", "-o", "texts.h5", "--quiet"]).done();
    folder.drift(&["mine", "one.sdf", "--smiles-of", "C=O", "-o", "one.h5", "--quiet"]).done();
    let text = |input: &str, frame: &str, more: &[&str]| {
        let encode = [&["encode", input, "--frame", frame, "-o", "-", "--quiet"], more].concat();
        let out = folder.drift(&encode).done();
        let rows = out.text().lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        rows.map(|row| row["embedded_smiles"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for frame in ["principal", "first-atoms"] {
        assert_ne!(text("texts.h5", frame, &[]), text("texts.h5", "keep", &[]));
        assert_eq!(text("texts.h5", frame, &[]), text("texts.txt", frame, &[]));
        let smiles = &["--smiles", "C=O"];
        assert_eq!(text("one.sdf", frame, smiles), text("one.h5", frame, smiles));
    }
    // Rounded to bins once, behind the turn: the same from decimals of six digits, which lose nothing that a bin shows.
    let bins = &["--encoding", "binned-v1:-6.025,6.025,0.05"];
    let six = ["--frame", "first-atoms", "--decimals", "6", "-o", "six.jsonl", "--quiet"];
    folder.drift(&[&["encode", "texts.txt"], &six[..]].concat()).done();
    for input in ["texts.txt", "texts.h5"] {
        assert_eq!(text(input, "first-atoms", bins), text("six.jsonl", "keep", bins), "{input}");
    }
}

#[test]
fn a_corpus_is_turned_for_every_verb_that_reads_one() {
    let folder = Folder::new();
    folder.file("texts.txt", HANDED);
    folder.drift(&["encode", "texts.txt", "--frame", "first-atoms", "-o", "turned.jsonl", "--quiet"]).done();
    let verbs = [
        "fit --tokenizer qwen-like --dialect fixed --no-classes",
        "encodings --tokenizer qwen-like --no-extensions --encoding fixed binned-v2:-13,13,0.104",
        // Checks 10 MB of text each time.
        "train-tokenizer --base qwen-like --tokens-per-block 9 --range 1 -o extended",
    ];
    for verb in verbs.into_iter().filter(|verb| cfg!(all_tests) || !verb.starts_with("train-tokenizer")) {
        let report = |corpus: &str, frame: &str| {
            let words: Vec<&str> = verb.split(' ').collect();
            let more = ["--corpus", corpus, "--frame", frame, "--json", "--quiet"];
            let mut report = folder.drift(&[&words[..], &more].concat()).done().json();
            let fields = report.as_object_mut().unwrap();
            fields.remove("provenance");
            std::fs::remove_dir_all(folder.path().join("extended")).ok();
            report
        };
        let turned = report("turned.jsonl", "keep");
        assert_eq!(report("texts.txt", "first-atoms"), turned, "{verb}");
        assert_ne!(report("texts.txt", "keep"), turned, "{verb}");
    }
}

#[test]
fn a_model_learns_in_the_frame_that_is_asked_for() {
    let folder = Folder::new();
    folder.file("texts.txt", HANDED.repeat(40));
    let train = "train-model --corpus texts.txt --tokenizer qwen-like --arch qwen3 --steps 1 --hidden 16 --layers 1 --heads 1 \
                 --kv-heads 1 --head-dim 16 --intermediate 16 --frame first-atoms -o model --quiet --json";
    let train: Vec<&str> = train.split_whitespace().collect();
    folder.drift(&[&train[..], &["--turn"]].concat()).refused_for("--frame first-atoms");
    folder.drift(&[&train[..], &["--noise", "0.01"]].concat()).done();
    let recipe: serde_json::Value = serde_json::from_slice(&folder.read("model/recipe.json")).unwrap();
    assert_eq!(recipe["recipe"]["augmentation"]["frame"], "first-atoms");
    // Conformers that the model is shown are turned into its frame, whatever frame they lie in.
    folder.file("few.txt", HANDED);
    folder.drift(&["encode", "few.txt", "--frame", "first-atoms", "-o", "turned.jsonl", "--quiet"]).done();
    folder.drift(&["encode", "few.txt", "--frame", "principal", "-o", "axes.jsonl", "--quiet"]).done();
    let nats = |corpus: &str| {
        let eval = "eval --model model --lp automaton --likelihood --json --quiet --corpus";
        let eval: Vec<&str> = eval.split(' ').chain([corpus]).collect();
        folder.drift(&eval).done().json()["likelihoods"][0]["nats_per_conformer"]["mean"].as_f64().unwrap()
    };
    let turned = nats("turned.jsonl");
    for other in ["few.txt", "axes.jsonl"] {
        // Of the decimals only the last may differ, by truncation.
        assert!((nats(other) / turned - 1.0).abs() < 0.01, "{other}");
    }
}

#[test]
fn each_content_alone_compressed_and_archived() {
    let folder = Folder::new();
    for (name, content) in [("jsonl", ROW), ("plain", LINE), ("xyz", XYZ), ("sdf", SDF)] {
        // Content decides: the extensions say nothing.
        let plain = folder.file(&format!("{name}.h5"), content);
        let zipped = folder.file(&format!("{name}.txt"), gzip(content.as_bytes()));
        let members = tar(&[("a/x", content.as_bytes()), ("a/y.gz", &gzip(content.as_bytes()))]);
        let archive = folder.file(&format!("{name}.pickle"), &members);
        let zipped_archive = folder.file(&format!("{name}.jsonl"), gzip(&members));
        let (expected, _) = read(plain).unwrap();
        assert_eq!(expected.len(), 1, "{name}");
        assert_eq!(read(zipped).unwrap().0, expected);
        let twice = [&expected[..], &expected[..]].concat();
        assert_eq!(read(archive).unwrap().0, twice);
        assert_eq!(read(zipped_archive).unwrap().0, twice);
    }
    // Several gzip members in one file, as `cat a.gz b.gz` makes.
    let row = gzip(format!("{ROW}\n").as_bytes());
    assert_eq!(read(folder.file("two", [&row[..], &row[..]].concat())).unwrap().0.len(), 2);
}

#[test]
fn a_folder_of_mixed_content() {
    let folder = Folder::new();
    folder.file("b/rows.gz", gzip(format!("{ROW}\n\n{{\"x\": 1}}\n{ROW}").as_bytes()));
    folder.file("a.sdf", SDF);
    folder.file("c.tar", tar(&[("README", b"read me"), ("lines", LINE.as_bytes())]));
    folder.file("summary.csv", "smiles,n\nC,1\n");
    folder.file("empty", "");
    folder.file(".hidden", "unread");
    let (conformers, summary) = read(folder.path()).unwrap();
    assert_eq!(conformers.len(), 4);
    assert_eq!(conformers[0].order, AtomOrder::File);
    let names: Vec<_> = summary.inputs.iter().map(|input| &*input.name).collect();
    assert_eq!(names, ["a.sdf", "b/rows.gz", "c.tar", "empty", "summary.csv"]);
    let in_folder = |file: &str| file.rsplit_once(&*folder.path().to_string_lossy()).unwrap().1.to_owned();
    let skipped: Vec<_> =
        summary.skipped_records.iter().map(|s| (in_folder(&s.file), &*s.record, &*s.reason)).collect();
    assert_eq!(
        skipped,
        [
            ("/b/rows.gz".to_owned(), "line 3", "no field contains enriched SMILES"),
            ("/c.tar:README".to_owned(), "file", "unknown content"),
            ("/empty".to_owned(), "file", "the file is empty"),
            (
                "/summary.csv".to_owned(),
                "file",
                "is a table without a column of texts; its columns are `smiles`, `n`"
            ),
        ]
    );
    // Numbers of four decimals and of fewer: neither the fixed nor the stripped encoding agrees with all of them.
    assert_eq!(summary.written, DecimalForms { fixed: false, stripped: false });
}

#[test]
fn the_list_of_skipped_records_is_capped_and_the_count_is_not() {
    let folder = Folder::new();
    let text = format!("{ROW}\n{}", "{}\n".repeat(50_000));
    let (_, summary) = read(folder.file("x", text)).unwrap();
    assert_eq!((summary.skipped, summary.skipped_records.len()), (50_000, corpus::SKIPPED_LISTED));
    assert_eq!(summary.skipped_records[999].record, "line 1001");
}

#[derive(Default)]
struct Watcher {
    bytes: AtomicU64,
    events: Mutex<Vec<String>>,
}

impl Observer for Watcher {
    fn begin(&self, phase: &str, total: Option<u64>, unit: Unit) {
        self.events.lock().unwrap().push(format!("{phase} {total:?} {unit:?}"));
    }
    fn advance(&self, n: u64) {
        self.bytes.fetch_add(n, Ordering::Relaxed);
    }
    fn end(&self) {
        self.events.lock().unwrap().push("end".to_owned());
    }
}

#[test]
fn progress_counts_the_bytes_of_the_files() {
    let folder = Folder::new();
    let inputs = [folder.file("a", gzip(ROW.as_bytes())), folder.file("b", XYZ)];
    let total: u64 = inputs.iter().map(|path| path.metadata().unwrap().len()).sum();
    let watcher = Arc::new(Watcher::default());
    let job = Job::new(watcher.clone(), Arc::default());
    corpus::read(&inputs, &ReadOptions::default(), &job, &mut |_| Ok(())).unwrap();
    assert_eq!(watcher.bytes.load(Ordering::Relaxed), total);
    assert_eq!(*watcher.events.lock().unwrap(), [format!("reading Some({total}) Bytes"), "end".to_owned()]);
}

#[test]
fn a_cancelled_job_stops_and_so_does_a_failed_consumer() {
    let folder = Folder::new();
    let input = [folder.file("rows", format!("{ROW}\n").repeat(100_000))];
    let cancelled = Arc::new(AtomicBool::new(false));
    let job = Job::new(Arc::new(drift::job::SilentObserver), cancelled.clone());
    let mut batches = 0;
    let outcome = corpus::read(&input, &ReadOptions::default(), &job, &mut |_| {
        batches += 1;
        cancelled.store(true, Ordering::Relaxed);
        Ok(())
    });
    assert!(matches!(outcome, Err(Error::Interrupted)));
    assert_eq!(batches, 1);
    let full = || Err(Error::input("out.h5", "the disk is full", ""));
    let outcome = corpus::read(&input, &ReadOptions::default(), &Job::default(), &mut |_| full());
    assert_eq!(outcome.unwrap_err().to_string(), "out.h5: the disk is full");
}

#[test]
fn reading_on_a_thread_of_the_pool_does_not_wait_for_itself() {
    let folder = Folder::new();
    let input = folder.file("rows", format!("{ROW}\n").repeat(100_000));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(pool.install(|| read(input)).unwrap().0.len(), 100_000);
}

/// `cargo test --release --test it throughput -- --ignored --nocapture`: 380 MB of real rows.
#[test]
#[ignore = "a measurement"]
fn throughput_of_jsonl() {
    let geom = shared().join("geom");
    let mut rows = Vec::new();
    drift::io::open(&geom.join("xtb_moses_aq.jsonl.gz"), &Job::default())
        .reader
        .read_to_end(&mut rows)
        .unwrap();
    let folder = Folder::new();
    let input = [folder.file("rows.jsonl", rows.repeat(280))];
    let start = std::time::Instant::now();
    let summary = corpus::read(&input, &ReadOptions::default(), &Job::default(), &mut |_| Ok(())).unwrap();
    let (seconds, bytes) = (start.elapsed().as_secs_f64(), summary.inputs[0].bytes as f64);
    eprintln!("{} conformers, {:.0} MB/s", summary.conformers, bytes / seconds / 1e6);
}
