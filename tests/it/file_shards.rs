//! `mine`, `encode` and `audit` in shards: killed, gone on, and merged to the bytes of one process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use drift::corpus::ReadOptions;
use drift::encode::{EncodePlan, encode, encode_shard, merge_encoded};
use drift::encoding::Reading;
use drift::job::{Observer, Unit};
use drift::mine::{MinePlan, StoredParts, mine, mine_of, mine_shard};
use drift::shard::files::{FilesDone, FilesEntry, FilesShard, MergedFiles};
use drift::shard::{FILE, Manifest, Shard};
use drift::{Error, Job};
use serde_json::{Value, json};

use crate::encode::sdf;
use crate::support::{Folder, program};

/// A molecule of two atoms.
fn carbon_monoxide(name: &str, x: f64) -> String {
    let atoms = [("C", [x, 0.0, 0.0]), ("O", [x + 1.4, 0.1, 0.0])];
    sdf(name, &atoms, &[[1, 2, 1]], "", &[("smiles", "CO")])
}

/// Conformers in files of many kinds, some with faults: `in` is of all readers, `sdf` of what is encoded.
fn corpus() -> Folder {
    let folder = Folder::new();
    for file in 0..12 {
        let lines: String = (0..40 + 7 * file)
            .map(|line| {
                let text = format!("[C]<{line}.{file:02}00,0.5000,-1.0000>[O]<{line}.0001,0.1230,0.0000>");
                json!({"canonical_smiles": "CO", "embedded_smiles": text}).to_string() + "\n"
            })
            .collect();
        folder.file(&format!("in/{file:02}.jsonl"), lines + if file == 4 { "{broken\n" } else { "" });
    }
    folder.file("in/05.notes", "no conformer");
    folder.file("in/06.xyz", "2\nno text\nC 0 0 0\nO 0 0 1.2\n");
    for file in 0..6 {
        // Some have no name but their number.
        let molecules = (0..5).map(|at| {
            let name = if (file + at) % 3 == 0 { String::new() } else { format!("molecule {file}-{at}") };
            carbon_monoxide(&name, f64::from(10 * file + at))
        });
        let broken = if file == 2 {
            sdf("broken", &[("C", [0.0; 3])], &[], "", &[("smiles", "CO")])
        } else {
            String::new()
        };
        folder.file(&format!("sdf/{file}.sdf"), molecules.collect::<String>() + &broken);
    }
    folder
}

/// Runs a verb in so many shards, of which the folders are `NAME1`, …
fn shards(folder: &Folder, command: &[&str], name: &str, of: u32) -> Vec<String> {
    // The order does not matter.
    (1..=of)
        .rev()
        .map(|number| {
            let (shard, to) = (format!("{number}/{of}"), format!("{name}{number}"));
            let ran = folder.drift(&[command, &["--shard", &shard, "-o", &to]].concat()).good();
            assert!(ran.text().starts_with(&format!("shard {shard}: ")), "{}", ran.text());
            to
        })
        .collect()
}

fn merged(folder: &Folder, shards: &[String], more: &[&str]) -> Vec<u8> {
    let shards: Vec<&str> = shards.iter().map(|name| &**name).collect();
    let ran = folder.drift(&[&["merge"], &shards[..], more].concat()).done();
    ran.stdout
}

#[test]
fn shards_of_a_corpus_merge_to_one_store() {
    let folder = corpus();
    let command = ["mine", "in", "--quiet"];
    let run = |more: &[&str]| folder.drift(&[&command, more].concat()).done();
    let whole = run(&["-o", "whole.h5", "--json"]).stdout;
    let shown = run(&["-o", "whole.h5", "--html", "whole.html"]);
    for of in [1, 3, 8, 14] {
        let shards = shards(&folder, &command, &format!("{of}of"), of);
        assert!(merged(&folder, &shards, &["-o", "merged.h5", "--json"]) == whole, "{of}");
        assert!(folder.read("merged.h5") == folder.read("whole.h5"), "{of}");
        // From elsewhere, and shown.
        if of == 3 {
            let mut command = program();
            let away = folder.path().join("away");
            std::fs::create_dir_all(&away).unwrap();
            command.args(["merge", "--html", "page.html", "-o", "-"]).current_dir(&away);
            command.args(shards.iter().map(|name| Path::new("..").join(name)));
            assert!(command.output().unwrap().stdout == folder.read("whole.h5"));
            assert!(folder.read("away/page.html") == folder.read("whole.html"));
            let ran = folder.drift(&["merge", "3of1", "3of2", "3of3", "-o", "merged.h5"]);
            assert_eq!(ran, shown);
        }
    }
}

#[test]
fn shards_of_encoded_text_merge_to_one_file() {
    let folder = corpus();
    let command = ["encode", "sdf", "--quiet"];
    let whole = folder.drift(&[&command[..], &["-o", "whole.jsonl", "--json"]].concat()).good().stdout;
    let text = String::from_utf8(folder.read("whole.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 30);
    assert!(text.contains("\"id\":\"26\"") && text.contains("molecule 5-2"), "{text}");
    for of in [2, 6] {
        let shards = shards(&folder, &command, &format!("{of}of"), of);
        assert!(merged(&folder, &shards, &["-o", "merged.jsonl", "--json"]) == whole);
        assert!(folder.read("merged.jsonl") == folder.read("whole.jsonl"));
        assert!(merged(&folder, &shards, &["-o", "-"]) == folder.read("whole.jsonl"));
    }
}

/// Files of texts, of which the third has none of the evidence for an encoding.
fn texts(folder: &Folder) -> Vec<String> {
    (0..5)
        .map(|file| {
            let lines = (0..30).map(|line| {
                let x = if file == 2 { "1.2345".to_owned() } else { format!("{line}.2340") };
                let y = ["0.1111", "0.1111", "0.11abra", "0.1"][(line + file) % 4];
                let text = format!("[C]<{x},{y},0.0001>[O]<{x},0.{line:04},1.0001>");
                let prompt = if line % 7 == 0 { "CN" } else { "CO" };
                let lp = ["none", "qwen38"][line % 2];
                json!({"smiles": prompt, "text": format!("[CONFORMER]{text}[/CONFORMER]"), "lp": lp})
                    .to_string()
            });
            let name = format!("texts{file}.jsonl");
            folder.file(&name, lines.collect::<Vec<_>>().join("\n") + "\n{}\n");
            name
        })
        .collect()
}

#[test]
fn shards_of_an_audit_merge_to_one_record() {
    let folder = corpus();
    let names = texts(&folder);
    let mut command = vec!["audit", "--tokenizer", "qwen-like", "--references", "in", "--quiet"];
    let references = command.len();
    command.insert(1, &names[0]);
    for (at, name) in names.iter().enumerate().skip(1) {
        command.insert(1 + at, name);
    }
    assert_eq!(command.len(), references + names.len());
    let ran = folder.drift(&[&command[..], &["-o", "whole.json"]].concat()).done();
    let record: Value = serde_json::from_slice(&folder.read("whole.json")).unwrap();
    assert_eq!((&record["total"]["samples"], &record["skipped"]), (&json!(150), &json!(7)));
    assert!(record["total"]["geometry"]["conformers"].as_u64().unwrap() > 20, "{record}");
    for of in [1, 2, 5] {
        // A file that does not tell its encoding needs others beside it, or to be told.
        let told = if of == 5 { &["--dialect", "fixed"][..] } else { &[] };
        let command = [&command[..], told].concat();
        let shards = shards(&folder, &command, &format!("{of}of"), of);
        let shown = merged(&folder, &shards, &["-o", "merged.json"]);
        let mut merged: Value = serde_json::from_slice(&folder.read("merged.json")).unwrap();
        if of == 5 {
            assert_eq!(merged["dialect_from"], "given");
            merged["dialect_from"] = json!("texts");
            assert!(merged["command"].as_str().unwrap().contains("--dialect=fixed"), "{merged}");
            merged["command"] = record["command"].clone();
            merged["runs"]
                .as_array_mut()
                .unwrap()
                .iter_mut()
                .for_each(|run| run["dialect_from"] = json!("texts"));
        } else {
            assert!(folder.read("merged.json") == folder.read("whole.json"), "{of}");
        }
        assert!(merged == record, "{of}");
        assert!(shown == ran.stdout, "{of}");
    }
    folder
        .drift(&["audit", &names[1], &names[2], "--shard", "2/2", "-o", "alone"])
        .refused_for("--dialect auto: the texts tell both dialects");
    assert!(!folder.path().join("alone").exists());
}

/// Cancels a job after so many steps of progress.
struct After {
    steps: AtomicU64,
    cancelled: Arc<AtomicBool>,
}

impl Observer for After {
    fn begin(&self, _: &str, _: Option<u64>, _: Unit) {}

    fn advance(&self, _: u64) {
        if self.steps.fetch_sub(1, Ordering::Relaxed) == 0 {
            self.cancelled.store(true, Ordering::Relaxed);
        }
    }

    fn end(&self) {}
}

/// Does a shard that is stopped again and again, each time a little later; how often it was.
fn stopped(
    manifest: &Manifest,
    folder: &Path,
    inputs: &[PathBuf],
    each: &dyn Fn(&mut FilesShard, &Job) -> drift::Result<FilesDone>,
) -> usize {
    for steps in 0.. {
        let cancelled = Arc::new(AtomicBool::new(false));
        let job = Job::new(Arc::new(After { steps: steps.into(), cancelled: cancelled.clone() }), cancelled);
        let shard = manifest.shard.unwrap();
        let mut files = FilesShard::begin(manifest, shard, folder, inputs).unwrap().with_parts_of(1);
        match each(&mut files, &job) {
            Ok(_) => return steps as usize,
            Err(Error::Interrupted) => {}
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!()
}

#[test]
fn what_is_stopped_at_any_moment_goes_on_to_the_same_bytes() {
    let folder = corpus();
    let at = |name: &str| folder.path().join(name);
    let job = Job::default();
    let mined = MinePlan { inputs: vec![at("in")], options: ReadOptions::default(), store: None };
    let encoded = EncodePlan { inputs: vec![at("sdf")], ..EncodePlan::default() };
    let mut stops = 0;
    for number in 1..=2 {
        let shard = Some(Shard::new(number, 2).unwrap());
        let manifest = |verb: &str| Manifest::new(verb, shard, [].into(), folder.path());
        let to = at(&format!("mined{number}"));
        stops += stopped(&manifest("mine"), &to, &mined.inputs, &|files, job| mine_shard(&mined, files, job));
        let to = at(&format!("encoded{number}"));
        stops += stopped(&manifest("encode"), &to, &encoded.inputs, &|files, job| {
            encode_shard(&encoded, files, job)
        });
    }
    assert!(stops >= 10, "{stops}");
    let parts = |name: &str| {
        let shards = [1, 2].map(|number| at(&format!("{name}{number}")));
        let shards =
            shards.map(|folder| (folder.clone(), Manifest::finished::<FilesEntry>(&folder).unwrap()));
        MergedFiles::from_shards(shards.to_vec(), false).unwrap()
    };
    let merged = parts("mined");
    assert_eq!(merged.parts.len(), 14);
    let source = StoredParts { parts: merged, reading: Reading::default() };
    let (report, store) = mine_of(&source, Some(&at("merged.h5")), None, &job).unwrap();
    store.unwrap().commit().unwrap();
    let whole = mine(&MinePlan { store: Some(at("whole.h5")), ..mined }, &job).unwrap();
    assert!(folder.read("merged.h5") == folder.read("whole.h5"));
    assert_eq!(serde_json::to_string(&report).unwrap(), serde_json::to_string(&whole).unwrap());
    let [mut whole, mut merged] = [Vec::new(), Vec::new()];
    encode(&encoded, &job, &mut |bytes| {
        whole.extend_from_slice(bytes);
        Ok(())
    })
    .unwrap();
    let report = merge_encoded(&parts("encoded"), drift::Encoding::FIXED, &job, &mut |bytes| {
        merged.extend_from_slice(bytes);
        Ok(())
    });
    assert!(merged == whole);
    assert_eq!(report.unwrap().conformers, 30);
}

#[test]
fn shards_of_files_that_do_not_fit_are_refused() {
    let folder = corpus();
    let run = |more: &[&str]| folder.drift(&[&["mine", "in", "--quiet"], more].concat());
    run(&["--shard", "1/2", "-o", "a"]).good();
    let before = folder.listing();
    run(&["--shard", "1/15", "-o", "b"]).refused_for("--shard 1/15: there are 14 files; give fewer shards");
    run(&["--shard", "1/2", "-o", "-"]).refused_for("-o -: a shard is kept in a folder");
    run(&["--shard", "1/2", "-o", "in/00.jsonl"]).refused_for("in/00.jsonl: is a file, but a shard is kept");
    run(&["--shard", "2/2", "-o", "a"]).refused_for("belongs to other work: it is shard 1/2, not shard 2/2");
    run(&["--shard", "1/2", "--frame", "principal", "-o", "a"]).refused_for("--frame is not given there");
    run(&["--shard", "1/2", "-o", "a", "--html", "x"]).refused_usage("--html");
    run(&["--shard", "1/2"]).refused_usage("--output");
    folder
        .drift(&["mine", "nowhere", "--shard", "1/2", "-o", "b"])
        .refused_for("nowhere: no such file or folder");
    folder.drift(&["merge", "a", "-o", "out"]).refused_for("shard 2 is missing, of 2");
    folder
        .drift(&["merge", "a", "-o", "out", "--texts", "t"])
        .refused_for("--texts: is of drift eval, and these are shards of drift mine");
    let audit = ["audit", "in", "--dialect", "fixed", "--shard", "1/2", "-o", "b"];
    folder.drift(&audit).refused_for("in: is a folder; give the files in it");
    assert_eq!(folder.listing(), before);
    // How far they are.
    let progress = folder.drift(&["merge", "a", "--dry-run", "--json"]).good().json();
    let state = |at: usize| progress["shards"][at]["state"].clone();
    assert_eq!((state(0), state(1), &progress["unit"]), (json!("done"), json!("missing"), &json!("records")));
    let shown = folder.drift(&["merge", "a", "--dry-run"]).good();
    assert!(shown.text().contains("1 done, 1 missing of 2."), "{}", shown.text());
    // A part without its bytes, and files that were others.
    run(&["--shard", "2/2", "-o", "b"]).good();
    let part = std::fs::read_dir(folder.path().join("b")).unwrap().flatten();
    let part = part.map(|entry| entry.file_name().into_string().unwrap()).find(|name| name != FILE).unwrap();
    let whole = folder.read(&format!("b/{part}"));
    let encoded = folder.drift(&["encode", "sdf", "--shard", "1/1", "-o", "e", "--quiet"]).good();
    assert!(encoded.text().contains("30 records of 6 files, 1 skipped"), "{}", encoded.text());
    let mut text = folder.read("e/part-00000000.jsonl");
    text[100] ^= 1;
    folder.file("e/part-00000000.jsonl", text);
    folder.drift(&["merge", "e", "-o", "out"]).refused_for("is not what the shard wrote: its bytes changed");
    folder.file(&format!("b/{part}"), &whole[..whole.len() - 1]);
    let line = folder.drift(&["merge", "a", "b", "-o", "out"]).refused();
    assert!(line.starts_with("b/") || line.contains("/b/part-"), "{line}");
    folder.file(&format!("b/{part}"), whole);
    folder.file("in/13.jsonl", r#"{"canonical_smiles": "C", "embedded_smiles": "[C]<0,0,0>"}"#);
    run(&["--shard", "2/2", "-o", "b"]).refused_for("b: was started with other input files");
    run(&["--shard", "2/2", "-o", "c"]).good();
    folder.drift(&["merge", "a", "c", "-o", "out"]).refused_for("was made from other input files");
    // As many files with as many bytes, of other names.
    std::fs::rename(folder.path().join("in/13.jsonl"), folder.path().join("in/14.jsonl")).unwrap();
    run(&["--shard", "2/2", "-o", "c"]).refused_for("c: was started with other input files");
    run(&["--shard", "1/2", "-o", "d"]).good();
    folder.drift(&["merge", "d", "c", "-o", "out"]).refused_for("was made from other input files");
    assert!(!folder.path().join("out").exists());
    // What there is, if that is wanted.
    let ran = folder.drift(&["merge", "c", "--partial", "-o", "out"]);
    assert!(
        ran.code == Some(0) && ran.stderr.contains("note: some of the work is missing"),
        "{}",
        ran.stderr
    );
}

/// A corpus, its store by one run, and the scripts of docs/shards, with what drift they find.
struct Scripts {
    folder: Folder,
}

impl Scripts {
    fn new() -> Self {
        let folder = corpus();
        folder.drift(&["mine", "in", "-o", "whole.h5", "--quiet"]);
        Scripts { folder }
    }

    fn run(&self, script: &str, arguments: &[&str]) -> std::process::Output {
        let drift = Path::new(env!("CARGO_BIN_EXE_drift")).parent().unwrap();
        script_of(&self.folder, drift, script).args(arguments).output().unwrap()
    }

    fn good(&self, script: &str, arguments: &[&str], merged: &str) {
        // The same command again has nothing to do but merge.
        for _ in 0..2 {
            let done = self.run(script, arguments);
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            assert!(self.folder.read(merged) == self.folder.read("whole.h5"), "{script}");
        }
    }
}

/// The command of a script of docs/shards in a folder, with the drift of another folder.
fn script_of(folder: &Folder, drift: &Path, script: &str) -> std::process::Command {
    let mut path = vec![drift.to_owned()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let mut command = std::process::Command::new("bash");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/shards").join(script));
    command.env("PATH", std::env::join_paths(&path).unwrap()).current_dir(folder.path());
    command
}

/// A job of a cluster may own some of a node's GPUs; what it runs here in place of drift notes them.
#[cfg(unix)]
#[test]
fn shards_take_the_gpus_that_a_job_owns() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    folder.file("bin/drift", "#!/bin/sh\necho \"$1 $CUDA_VISIBLE_DEVICES\" >>noted\n");
    let program = folder.path().join("bin/drift");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    for (devices, shards, noted) in [
        (Some("5,GPU-a7"), "2", "eval 5\neval GPU-a7\nmerge 5,GPU-a7\n"),
        (None, "2", "eval 0\neval 1\nmerge \n"),
        (Some("5"), "2", ""),
    ] {
        folder.file("noted", "");
        let mut command = script_of(&folder, program.parent().unwrap(), "gpus.sh");
        command
            .env_remove("CUDA_VISIBLE_DEVICES")
            .envs(devices.map(|devices| ("CUDA_VISIBLE_DEVICES", devices)));
        let done = command.args([shards, "out", "eval"]).output().unwrap();
        assert_eq!(done.status.success(), !noted.is_empty());
        let found = String::from_utf8(folder.read("noted")).unwrap();
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&found), sorted(noted));
    }
}

#[test]
fn ready_scripts_merge_to_what_one_run_writes() {
    let scripts = Scripts::new();
    scripts.good("gpus.sh", &["2", "all GPUs", "mine", "in", "--quiet"], "all GPUs/merged");
    assert!(!scripts.run("gpus.sh", &["2", "none", "mine", "nowhere"]).status.success());
}

#[test]
#[cfg_attr(not(has_parallel), ignore = "needs GNU parallel")]
fn the_script_for_parallel_merges_to_what_one_run_writes() {
    let scripts = Scripts::new();
    scripts.good("parallel.sh", &["2", "5", "all jobs", "mine", "in"], "all jobs/merged");
    assert!(!scripts.run("parallel.sh", &["2", "2", "none", "mine", "nowhere"]).status.success());
}
