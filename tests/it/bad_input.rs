//! Bad input to the program itself: one clear line on stderr, exit code 2, nothing on stdout, nothing half-written.

use std::io::{BufWriter, Write};
use std::process::Stdio;

use crate::common::fixture;
use crate::readers::{LINE, ROW, SDF, XYZ, gzip, tar};
use crate::support::{Folder, Ran, program};

/// Runs what must be refused; the line on stderr without `drift: `.
#[track_caller]
fn refused(folder: &Folder, arguments: &[&str]) -> String {
    let before = folder.listing();
    let ran = folder.drift(arguments);
    assert_eq!(folder.listing(), before, "{arguments:?} left something");
    ran.refused()
}

/// A row of JSONL with this text.
fn row(text: &str) -> String {
    format!(r#"{{"embedded_smiles": "{text}"}}"#)
}

/// Rows that are no conformer, and why.
pub(crate) fn bad_rows() -> Vec<(Vec<u8>, &'static str)> {
    let deep = 10_000;
    let rows: Vec<(String, _)> = vec![
        (row("[C]<NaN,0.0000,0.0000>"), "byte 4: number `NaN`: not a number of the form -?digits[.digits]"),
        (row("[C]<0.0000,-inf,0.0000>"), "byte 4: number `-inf`: not a number of the form -?digits[.digits]"),
        (row("[C]<1000000.0000,0.0000,0.0000>"), "byte 4: number `1000000.0000`: beyond 99,999.9999 Å"),
        (row("[C]<0.0000,0.0000>"), "byte 4: block contains 2 numbers, not three"),
        (row("[C]<0.0000,0.0000,0.0000,0.0000>"), "byte 4: block contains 4 numbers, not three"),
        (row("[C<0.0000,0.0000,0.0000>"), "byte 0: unclosed `[`"),
        (row("[C]<0.0000,0.0000,0.0000"), "byte 3: unclosed `<`"),
        (row("([C]<0,0,0>[C]<0,0,0>"), "byte 21: unbalanced parentheses"),
        (row("[C]<0,0,0>)"), "byte 10: unbalanced parentheses"),
        (row("[C]"), "byte 2: atom without a coordinate block"),
        (r#"{"a": 1}"#.to_owned(), "no field contains enriched SMILES"),
        (r#"{"a":"#.to_owned(), "column 5: EOF while parsing a value"),
        (format!("{{\"a\": {}{}}}", "[".repeat(deep), "]".repeat(deep)), "no field contains enriched SMILES"),
    ];
    let not_utf8 = b"{\"embedded_smiles\": \"[C]<1,2,3>\xff\"}".to_vec();
    let rows = rows.into_iter().map(|(row, reason)| (row.into_bytes(), reason));
    rows.chain([(not_utf8, "byte 31: not UTF-8")]).collect()
}

#[test]
fn a_bad_row_alone_is_refused() {
    let folder = Folder::new();
    for (bad, reason) in bad_rows() {
        folder.file("bad.jsonl", &bad);
        let line = refused(&folder, &["mine", "bad.jsonl", "-o", "out.h5", "--html", "out.html"]);
        let expected = format!(
            "bad.jsonl: no conformer could be read: 1 record skipped, first: line 1: {reason}; check that this is the right file"
        );
        assert_eq!(line, expected);
    }
    assert_eq!(
        refused(&folder, &["fit", "--corpus", "bad.jsonl", "-o", "out"]),
        refused(&folder, &["mine", "bad.jsonl"])
    );
}

#[test]
fn bad_rows_among_good_ones_are_skipped_counted_and_listed() {
    let folder = Folder::new();
    let bad = bad_rows();
    let mut content = Vec::new();
    for (row, _) in &bad {
        content.extend([ROW.as_bytes(), b"\n", row, b"\n"].concat());
    }
    folder.file("mixed.jsonl", content);
    let report = folder.drift(&["mine", "mixed.jsonl", "--json", "-o", "out.h5"]).good().json();
    assert_eq!((&report["conformers"], &report["skipped"]), (&bad.len().into(), &bad.len().into()));
    let listed = report["skipped_records"].as_array().unwrap();
    assert_eq!(listed.len(), bad.len());
    for (index, (skipped, (_, reason))) in listed.iter().zip(&bad).enumerate() {
        let line = 2 * index + 2;
        let expected =
            serde_json::json!({"file": "mixed.jsonl", "record": format!("line {line}"), "reason": reason});
        assert_eq!(*skipped, expected);
    }
    // A person sees the first ten, and the result all the same.
    let ran = folder.drift(&["mine", "mixed.jsonl"]);
    assert_eq!((ran.code, ran.stderr.lines().count()), (Some(0), 11));
    let last = ran.stderr.lines().last().unwrap();
    assert_eq!(last, format!("skipped: {} records in all; --json lists the first 1,000", bad.len()));
    assert!(ran.text().starts_with(&format!("{} conformers", bad.len())));
}

#[test]
fn what_is_no_corpus_is_refused() {
    let folder = Folder::new();
    let known = "drift reads JSONL, CSV, TSV, enriched text, SDF, XYZ, msgpack, pickle and HDF5, each also as .gz, .zst, .tar or .zip";
    for (name, content, problem) in [
        ("empty.jsonl", Vec::new(), format!("the file is empty; {known}")),
        ("empty.gz", gzip(b""), format!("the file is empty; {known}")),
        ("junk.h5", vec![0xff; 4096], format!("unknown content; {known}")),
        ("blank", b"\n \n\n".to_vec(), format!("unknown content; {known}")),
    ] {
        folder.file(name, content);
        assert_eq!(refused(&folder, &["mine", name, "-o", "out.h5"]), format!("{name}: {problem}"));
    }
    assert_eq!(refused(&folder, &["mine", "none"]), "none: no such file or folder; check the path");
    assert_eq!(refused(&folder, &["mine", "a\nb"]), "a\\nb: no such file or folder; check the path");
    std::fs::create_dir(folder.path().join("hollow")).unwrap();
    let problem = "hollow: the folder contains no file to read; hidden files are left out";
    assert_eq!(refused(&folder, &["mine", "hollow"]), problem);
}

/// A file of each kind that has an end to lose.
fn containers() -> Vec<(&'static str, Vec<u8>)> {
    let rows: String = (0..200).map(|i| ROW.replace("1.0", &format!("{i}.0")) + "\n").collect();
    let read = |name: &str| std::fs::read(fixture(name)).unwrap();
    let folder = Folder::new();
    folder.file("rows", &rows);
    folder.drift(&["mine", "rows", "-o", "store.h5"]).good();
    vec![
        ("rows.gz", gzip(rows.as_bytes())),
        ("rows.tar.gz", gzip(&tar(&[("rows", rows.as_bytes()), ("more", XYZ.as_bytes())]))),
        ("rows.tar", tar(&[("rows", rows.as_bytes()), ("more", XYZ.as_bytes())])),
        ("rdkit_folder.tar.gz", read("rdkit_folder.tar.gz")),
        ("store.h5", folder.read("store.h5")),
        ("spice.h5", read("spice.h5")),
        ("ani1x.h5", read("ani1x.h5")),
        ("geom.msgpack", read("geom_crude.msgpack")),
        ("geom.pickle", read("pickles/rdkit-12.1.0.pickle")),
        ("test_set.pickle", read("test_set.pickle")),
    ]
}

#[test]
fn containers_cut_short_are_refused() {
    let folder = Folder::new();
    for (name, whole) in containers() {
        folder.file(name, &whole);
        assert_eq!(folder.drift(&["mine", name]).code, Some(0), "{name}");
        // The last 512 bytes of the two zero blocks that end an archive need not be there.
        let end = if name.ends_with(".tar") { whole.len() - 512 } else { whole.len() };
        for cut in [3, 20, end / 4, end / 2, end * 3 / 4, end - 9, end - 1] {
            folder.file(name, &whole[..cut]);
            let line = refused(&folder, &["mine", name, "-o", "out.h5"]);
            assert!(line.starts_with(&format!("{name}:")), "cut to {cut} of {}: {line}", whole.len());
        }
    }
}

#[test]
fn names_do_not_matter_only_content_does() {
    let folder = Folder::new();
    let read = |name: &str| std::fs::read(fixture(name)).unwrap();
    for (name, content, conformers) in [
        ("rows.sdf", ROW.as_bytes().to_vec(), 1),
        ("lines.json", LINE.as_bytes().to_vec(), 1),
        ("frames.gz", XYZ.repeat(2).into_bytes(), 2),
        ("molecules.xyz", gzip(SDF.as_bytes()), 1),
        ("hdf5.pickle", read("spice.h5"), 7),
        ("hdf5.gz", read("spice.h5"), 7),
        ("zipped.txt", gzip(&read("spice.h5")), 7),
        ("pickle.h5", read("test_set.pickle"), 6),
        ("archive.jsonl", read("rdkit_folder.tar.gz"), 6),
        ("pickles", read("pickles/layouts.pickle"), 2),
    ] {
        folder.file(name, content);
        let ran = folder.drift(&["mine", name, "--json"]);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{name}");
        assert_eq!(ran.json()["conformers"], conformers, "{name}");
    }
}

/// Runs drift; it and the most memory that it was seen to hold, in MB (0 where /proc does not tell).
fn watched(folder: &Folder, arguments: &[&str]) -> (Ran, u64) {
    let mut command = program();
    command.args(arguments).current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut peak_kb = 0;
    while child.try_wait().unwrap().is_none() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak_kb = peak.and_then(|kb| kb.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(peak_kb);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    (child.wait_with_output().unwrap().into(), peak_kb / 1024)
}

#[test]
fn a_hundred_megabytes_on_one_line_are_passed_over_in_little_memory() {
    let folder = Folder::new();
    for (name, good) in [("among.jsonl", ROW), ("alone.jsonl", "")] {
        let mut file = BufWriter::new(std::fs::File::create(folder.path().join(name)).unwrap());
        write!(file, "{{\"embedded_smiles\": \"").unwrap();
        for _ in 0..100 {
            file.write_all(&[b'['; 1_000_000]).unwrap();
        }
        write!(file, "\"}}\n{good}").unwrap();
    }
    let (ran, megabytes) = watched(&folder, &["mine", "among.jsonl", "--json"]);
    let report = ran.good().json();
    assert_eq!((&report["conformers"], &report["skipped"]), (&1.into(), &1.into()));
    assert_eq!(report["skipped_records"][0]["reason"], "longer than 16 MiB");
    assert!(megabytes < 200, "{megabytes} MB");
    let line = refused(&folder, &["mine", "alone.jsonl", "-o", "out.h5"]);
    assert!(line.contains("alone.jsonl") && line.contains("line 1: longer than 16 MiB"), "{line}");
}

#[test]
fn a_pickle_that_names_another_class_is_not_run() {
    let folder = Folder::new();
    let canary = folder.path().join("canary");
    let command = format!("touch {}", canary.display());
    let length = u8::try_from(command.len()).unwrap();
    let short = [b"\x8c", &[length][..], command.as_bytes()].concat();
    let global = [b"\x80\x02cos\nsystem\n", &short[..], b"\x85R."].concat();
    let stack_global = [b"\x80\x04\x8c\x02os\x8c\x06system\x93", &short[..], b"\x85R."].concat();
    let nested = [b"\x80\x04}\x8c\x06rd_molcos\nsystem\n", &short[..], b"\x85Rs."].concat();
    let built = [b"\x80\x02cos\nsystem\n)\x81", &short[..], b"b."].concat();
    for (bytes, name) in
        [(&global, "os.system"), (&stack_global, "os.system"), (&nested, "os.system"), (&built, "os.system")]
    {
        folder.file("evil.pickle", bytes);
        let line = refused(&folder, &["mine", "evil.pickle", "-o", "out.h5"]);
        assert!(line.contains(&format!("an object of {name}, which drift does not know")), "{line}");
    }
    assert!(!canary.exists());
    // The canary would sing: Python, where there is one, runs the same bytes.
    let script = format!("import pickle; pickle.load(open({:?}, 'rb'))", "global.pickle");
    folder.file("global.pickle", &global);
    let python =
        std::process::Command::new("python3").args(["-c", &script]).current_dir(folder.path()).status();
    if python.is_ok_and(|status| status.success()) {
        assert!(canary.exists());
    }
}

#[test]
fn deep_nesting_is_refused() {
    let folder = Folder::new();
    let deep = 10_000;
    let msgpack = [&b"\x81\xa1C"[..], &b"\x91".repeat(deep), b"\xc0"].concat();
    let map = [&b"\x81\xa1C"[..], &b"\x81\xa1C".repeat(deep), b"\xc0"].concat();
    let lists = [&b"\x80\x02"[..], &b"]".repeat(deep), &b"a".repeat(deep - 1), b"."].concat();
    let tuples = [&b"\x80\x02N"[..], &b"\x85".repeat(deep), b"."].concat();
    let marks = [&b"\x80\x02"[..], &b"(".repeat(deep), b"."].concat();
    for bytes in [msgpack, map, lists, tuples, marks] {
        folder.file("deep", bytes);
        let line = refused(&folder, &["mine", "deep", "-o", "out.h5"]);
        assert!(line.starts_with("deep"), "{line}");
    }
    let json = "{\"model\": ".repeat(deep);
    folder.file("deep.json", format!("{json}1{}", "}".repeat(deep)));
    assert!(
        refused(&folder, &["inspect", "--tokenizer", "deep.json", "[C]"]).starts_with("deep.json: not a tok")
    );
}

/// Lengths and counts that no file can hold, and lists that hold themselves twice, again and again.
#[test]
fn promises_that_cannot_be_kept_are_refused() {
    let folder = Folder::new();
    let conformers = b"\x81\xa1C\x81\xaaconformers";
    let mut doubled = b"\x80\x02]q\x00".to_vec();
    for level in 0..60 {
        doubled.extend([b'0', b']', b'(', b'h', level, b'h', level, b'e', b'q', level + 1]);
    }
    doubled.push(b'.');
    for bytes in [
        [&conformers[..], b"\xdd\xff\xff\xff\xff"].concat(),
        [&conformers[..], b"\x91\x81\xa3xyz\xdd\xff\xff\xff\xff\x94\x06\x00\x00\x00"].concat(),
        b"\x81\xdb\xff\xff\xff\xffC".to_vec(),
        b"\xdf\xff\xff\xff\xff\xa1C".to_vec(),
        b"\x80\x04X\xff\xff\xff\xffC".to_vec(),
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fC".to_vec(),
        doubled,
        b"4000000000\nmany\nC 0 0 0\n".to_vec(),
        b"many\n\n\n999999  0  0  0  0  0  0  0  0  0999 V2000\n".to_vec(),
    ] {
        folder.file("file", bytes);
        let (ran, megabytes) = watched(&folder, &["mine", "file", "-o", "out.h5"]);
        assert!(ran.refused().starts_with("file: "));
        assert!(megabytes < 100, "{megabytes} MB");
    }
}

#[test]
fn what_is_no_tokenizer_is_refused() {
    let folder = Folder::new();
    let whole = include_bytes!("../../tokenizers/qwen-like/tokenizer.json");
    let empty_vocabulary = r#"{"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": []}}"#;
    let far_id = String::from_utf8_lossy(whole).replacen("\"vocab\":{", "\"vocab\":{\"far\": 4294967295,", 1);
    let far_word = r#"{"<unk>": 0, "C": 4294967295}"#;
    std::fs::create_dir(folder.path().join("hollow")).unwrap();
    folder.file("rows.jsonl", ROW);
    for (name, content, problem) in [
        ("far.json", far_id.into_bytes(), "has a token with the id 4294967295, and ids are at most 16777215"),
        ("vocab.json", far_word.as_bytes().to_vec(), "has a token with the id 4294967295, and "),
        ("empty.json", b"".to_vec(), "not a tokenizer: "),
        ("object.json", b"{}".to_vec(), "not a tokenizer: "),
        ("list.json", b"[1, 2, 3]".to_vec(), "not a tokenizer: "),
        ("other.json", ROW.as_bytes().to_vec(), "not a tokenizer: "),
        ("config.json", br#"{"version": "1.0", "model_type": "qwen3"}"#.to_vec(), "not a tokenizer: "),
        ("junk.json", (0..=255).collect(), "not a tokenizer: "),
        ("junk.json.gz", gzip(&[0xff; 999]), "not a tokenizer: "),
        ("cut.json", whole[..whole.len() / 2].to_vec(), "not a tokenizer: "),
        ("cut.json.gz", gzip(whole)[..999].to_vec(), ""),
        ("drops.json", empty_vocabulary.as_bytes().to_vec(), "drops '[', so its tokens cannot be counted"),
    ] {
        folder.file(name, content);
        let line = refused(&folder, &["inspect", "--tokenizer", name, "[C]<1,2,3>"]);
        assert!(line.starts_with(&format!("{name}: {problem}")), "{line}");
        let fit = refused(&folder, &["fit", "--corpus", "rows.jsonl", "--tokenizer", name, "-o", "out"]);
        assert_eq!(fit, line);
    }
    let line = refused(&folder, &["fit", "--tokenizer", "hollow"]);
    assert!(line.starts_with("hollow: contains no tokenizer.json; "), "{line}");
    assert!(refused(&folder, &["fit", "--tokenizer", "none.json"]).starts_with("none.json: "));
}

#[test]
fn outputs_that_cannot_be_written_are_refused_before_the_work() {
    let folder = Folder::new();
    folder.file("rows.jsonl", ROW);
    folder.file("folder/old.h5", "old");
    for (arguments, line) in [
        (vec!["mine", "rows.jsonl", "-o", "folder"], "folder: is a folder; give the name of a file"),
        (vec!["mine", "rows.jsonl", "-o", "none/x.h5"], "none/x.h5: there is no folder none; make it first"),
        (
            vec!["mine", "rows.jsonl", "-o", "x.h5", "--html", "none/x.html"],
            "none/x.html: there is no folder none; make it first",
        ),
        (
            vec!["fit", "--corpus", "rows.jsonl", "-o", "rows.jsonl"],
            "rows.jsonl: is a file; give the name of a folder",
        ),
        (
            vec!["fit", "--corpus", "rows.jsonl", "--candidate", "<1,2,3>"],
            "--candidate: `<1,2,3>` is not three numbers; give the content of a block of fixed: 0.0000,0.0000,0.0000",
        ),
        (
            vec!["fit", "--corpus", "rows.jsonl", "--candidate", "abc"],
            "--candidate: `abc` is not three numbers; give the content of a block of fixed: 0.0000,0.0000,0.0000",
        ),
    ] {
        assert_eq!(refused(&folder, &arguments), line);
    }
    // What is no file would be replaced by one.
    #[cfg(unix)]
    {
        make_fifo(&folder.path().join("pipe"));
        let line = refused(&folder, &["mine", "rows.jsonl", "-o", "pipe"]);
        assert_eq!(line, "pipe: is a pipe or device, not a file; give the name of a file");
    }
    // A result that fails leaves what was there before.
    folder.file("bad.jsonl", "{}");
    refused(&folder, &["mine", "bad.jsonl", "-o", "folder/old.h5"]);
    assert_eq!(folder.read("folder/old.h5"), b"old");
    // Not one of several results is written if one cannot be.
    std::fs::create_dir_all(folder.path().join("fits/fit.html")).unwrap();
    let line = refused(&folder, &["fit", "--corpus", "rows.jsonl", "--no-classes", "-o", "fits"]);
    assert_eq!(line, "fits/fit.html: is a folder; give the name of a file");
}

#[cfg(unix)]
#[test]
#[cfg_attr(is_root, ignore = "root may write everywhere")]
fn a_folder_that_may_not_be_written_to_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    folder.file("rows.jsonl", ROW);
    folder.file("locked/x", "");
    let locked = folder.path().join("locked");
    std::fs::set_permissions(&locked, PermissionsExt::from_mode(0o555)).unwrap();
    let line = refused(&folder, &["mine", "rows.jsonl", "-o", "locked/x.h5"]);
    assert_eq!(line, "locked/x.h5: Permission denied; write to another place, or get permission");
    let line = refused(&folder, &["fit", "--corpus", "rows.jsonl", "--no-classes", "-o", "locked"]);
    assert!(line.contains("locked: Permission denied; "), "{line}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let folder = Folder::new();
    folder.file("rows.jsonl", ROW);
    for arguments in [
        &["mine", "rows.jsonl"][..],
        &["mine", "rows.jsonl", "-o", "-"],
        &["inspect", "[C]<1,2,3>"],
        &["--help"],
        &["fit", "--help"],
        &["--version"],
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = program().args(arguments).current_dir(folder.path()).stdout(full).output().unwrap();
        assert_eq!(
            Ran::from(output).refused(),
            "stdout: No space left on device; make room, or write to another place"
        );
    }
}

/// A limit on the size of files, which is what a full disk looks like to a program.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fills_up_leaves_what_was_there() {
    let folder = Folder::new();
    // So many different numbers that neither store nor page is small.
    let number = |index: usize| format!("{}.{:04}", index % 10, index * 7919 % 10_000);
    let block = |index: usize| format!("[C]<{},{},{}>", number(index), number(index + 1), number(index + 2));
    let rows: String = (0..9_000).map(|index| row(&block(index)) + "\n").collect();
    folder.file("rows.jsonl", rows);
    for (name, option) in [("old.h5", "-o"), ("old.html", "--html")] {
        folder.file(name, "old");
        let script = format!("trap '' XFSZ; ulimit -f 8; exec \"$0\" mine rows.jsonl {option} {name}");
        let program = env!("CARGO_BIN_EXE_drift");
        let output = std::process::Command::new("sh")
            .args(["-c", &script, program])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let line = Ran::from(output).refused();
        assert_eq!(line, format!("{name}: File too large; make room, or write to another place"));
        assert_eq!(folder.read(name), b"old");
    }
    assert_eq!(folder.listing().len(), 3, "{:?}", folder.listing());
}

#[test]
fn outputs_are_checked_before_the_first_second_of_work() {
    let folder = Folder::new();
    folder.file("rows.jsonl", ROW);
    folder.file("out/record.json/x", "");
    folder.file("trained/tokenizer.json/x", "");
    for (arguments, line) in [
        (
            vec!["mine", "rows.jsonl", "-o", "x", "--html", "./x"],
            "./x: would be written by -o and by --html; give them different names",
        ),
        (
            vec!["mine", "rows.jsonl", "-o", "rows.jsonl"],
            "rows.jsonl: is an input, which -o would overwrite; give another name",
        ),
        (vec!["eval", "--texts", "none/x.jsonl"], "none/x.jsonl: there is no folder none; make it first"),
        (
            vec!["eval", "--texts", "x", "--trace", "x"],
            "x: would be written by --texts and by --trace; give them different names",
        ),
        (vec!["eval", "-o", "out"], "out/record.json: is a folder; give the name of a file"),
        (
            vec!["eval", "-o", "rows.jsonl/x"],
            "rows.jsonl/x: cannot be made: rows.jsonl is a file; give another folder",
        ),
        (
            vec!["train-tokenizer", "--base", "qwen-like", "--tokens-per-block", "9", "-o", "trained"],
            "trained/tokenizer.json: is a folder; give the name of a file",
        ),
        (
            vec!["train-model", "--tokenizer", "qwen-like", "--arch", "qwen3", "-o", "trained"],
            "trained/tokenizer.json: is a folder; give the name of a file",
        ),
    ] {
        assert_eq!(refused(&folder, &arguments), line);
    }
}

/// A file is as readable as the user's mask makes any other; a link stays a link.
#[cfg(unix)]
#[test]
fn outputs_are_made_as_the_user_makes_files() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    folder.file("rows.jsonl", ROW);
    folder.file("far/x", "");
    std::os::unix::fs::symlink("far/store.h5", folder.path().join("link.h5")).unwrap();
    for (mask, mode) in [("077", 0o600), ("022", 0o644), ("002", 0o664)] {
        let script = format!("umask {mask}; rm -f far/store.h5; exec \"$0\" mine rows.jsonl -o link.h5");
        let program = env!("CARGO_BIN_EXE_drift");
        let status = std::process::Command::new("sh")
            .args(["-c", &script, program])
            .current_dir(folder.path())
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        let made = std::fs::metadata(folder.path().join("far/store.h5")).unwrap();
        assert_eq!(made.permissions().mode() & 0o777, mode, "umask {mask}");
        assert!(std::fs::symlink_metadata(folder.path().join("link.h5")).unwrap().is_symlink());
    }
}

/// Names and texts of inputs must not steer the terminal.
#[test]
fn control_characters_of_inputs_do_not_reach_the_terminal() {
    let folder = Folder::new();
    let steering = "\u{1b}[2J\u{202e}";
    folder.file("rows.jsonl", format!("{ROW}\n{{\"{steering}\": 1}}\n"));
    folder.file(&format!("{steering}.jsonl"), format!("{ROW}\n{{}}\n"));
    let name = format!("{steering}.jsonl");
    let plain = |ran: Ran| {
        for text in [ran.text(), &ran.stderr] {
            assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
        }
        ran
    };
    assert_eq!(plain(folder.drift(&["mine", "rows.jsonl", &name])).code, Some(0));
    let ran = plain(folder.drift(&["mine", &format!("{steering}none")]));
    assert!(ran.stderr.contains(r"\u{1b}[2J\u{202e}none: no such file"), "{}", ran.stderr);
    let text = format!("[C]<1,2,3>{steering}");
    assert_eq!(plain(folder.drift(&["inspect", &text])).code, Some(0));
    folder.file(
        "generated.jsonl",
        serde_json::json!({"text": format!("[C]<0.1{steering},2,3>"), "smiles": "C"}).to_string(),
    );
    plain(folder.drift(&["audit", "--dialect", "fixed", "generated.jsonl"]));
}

#[cfg(unix)]
fn make_fifo(path: &std::path::Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A reader that stopped listening before the first byte.
#[test]
fn a_closed_stdout_is_success() {
    let folder = Folder::new();
    folder.file("rows.jsonl", ROW);
    for arguments in [
        &["mine", "rows.jsonl"][..],
        &["mine", "rows.jsonl", "--json"],
        &["mine", "rows.jsonl", "-o", "-"],
        &["fit", "--corpus", "rows.jsonl", "--no-classes"],
        &["inspect", "[C]<1,2,3>"],
        &["completions", "bash"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = program().args(arguments).current_dir(folder.path()).stdout(writer).output().unwrap();
        Ran::from(output).good();
    }
}

/// Ctrl-C at work: on Linux, where /proc tells when the program is ready for it.
#[cfg(target_os = "linux")]
mod interrupted {
    use std::fs::OpenOptions;
    use std::process::{Child, Command};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use super::*;

    /// Waits until `done`, a minute at most: far longer than it ever takes.
    fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !done() {
            assert!(begun.elapsed() < Duration::from_secs(60), "never {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether the process catches SIGINT by now.
    fn is_ready(child: &Child) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & 0b10 != 0
    }

    fn fifo(folder: &Folder) -> std::path::PathBuf {
        let path = folder.path().join("pipe");
        make_fifo(&path);
        path
    }

    /// Starts drift, interrupts it once it is ready, and checks how it ends.
    fn interrupt(folder: &Folder, arguments: &[&str], stdin: Stdio) {
        interrupt_once(|| true, folder, arguments, stdin);
    }

    /// The same, at a time of the caller's choice.
    fn interrupt_once(begun: impl Fn() -> bool, folder: &Folder, arguments: &[&str], stdin: Stdio) {
        let before = folder.listing();
        let writes = arguments.contains(&"-o");
        let mut command = program();
        command.args(arguments).current_dir(folder.path());
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        wait_for("ready", || is_ready(&child));
        wait_for("begun", || begun() && (!writes || folder.listing() != before));
        let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(kill.success());
        wait_for("ended", || child.try_wait().unwrap().is_some());
        let line = Ran::from(child.wait_with_output().unwrap()).refused_as(130);
        assert_eq!(line, "interrupted; nothing was written");
        assert_eq!(folder.listing(), before, "{arguments:?} left something");
    }

    #[test]
    fn waiting_for_a_pipe_that_nobody_opens() {
        let folder = Folder::new();
        fifo(&folder);
        interrupt(&folder, &["mine", "pipe", "-o", "out.h5"], Stdio::null());
        interrupt(&folder, &["fit", "--corpus", "pipe"], Stdio::null());
    }

    #[test]
    fn waiting_for_pipes_beside_the_corpus() {
        let folder = Folder::new();
        fifo(&folder);
        for arguments in [
            &["inspect", "--tokenizer", "pipe", "x"][..],
            &["fit", "--tokenizer", "pipe"],
            &["train-tokenizer", "--base", "pipe", "--tokens-per-block", "11", "--output", "out"],
            &["train-model", "--tokenizer", "pipe", "--arch", "llama", "--output", "out"],
            &["audit", "pipe"],
            &["eval", "--smiles", "pipe"],
            &["eval", "--tokenizer", "pipe", "--smiles", "pipe"],
            &["compare", "pipe", "pipe"],
            &["report", "pipe"],
        ] {
            interrupt(&folder, arguments, Stdio::null());
        }
        // A placeholder is told from three numbers by its name or its file.
        std::fs::rename(folder.path().join("pipe"), folder.path().join("pipe.json")).unwrap();
        interrupt(&folder, &["eval", "--placeholder", "pipe.json"], Stdio::null());
    }

    #[test]
    fn pipes_are_read_and_hashed_as_files_are() {
        let folder = Folder::new();
        let path = fifo(&folder);
        let text = "[SMILES]C[/SMILES][CONFORMER][C]<1.0000,2.0000,3.0000>[/CONFORMER]\n";
        let file = folder.file("texts", text);
        let expected = folder.drift(&["audit", "texts", "--json"]).good().json();
        let writer = std::thread::spawn(move || std::fs::write(path, text).unwrap());
        let read = folder.drift(&["audit", "pipe", "--json"]).good().json();
        writer.join().unwrap();
        let hash = |report: &serde_json::Value| report["provenance"]["inputs"][0]["sha256"].clone();
        assert_eq!(hash(&read), hash(&expected));
        assert_eq!(read["total"]["samples"], 1);
        drop(file);
    }

    #[test]
    fn waiting_for_more() {
        let folder = Folder::new();
        let mut pipe = OpenOptions::new().read(true).write(true).open(fifo(&folder)).unwrap();
        pipe.write_all(format!("{ROW}\n").as_bytes()).unwrap();
        interrupt(&folder, &["mine", "pipe", "-o", "out.h5"], Stdio::null());
    }

    #[test]
    fn waiting_for_texts_on_stdin() {
        let (reader, _writer) = std::io::pipe().unwrap();
        interrupt(&Folder::new(), &["inspect", "-"], reader.into());
    }

    #[test]
    fn in_the_middle_of_an_endless_input() {
        let folder = Folder::new();
        let path = fifo(&folder);
        let rounds = Arc::new(AtomicUsize::new(0));
        let count = rounds.clone();
        let writer = std::thread::spawn(move || {
            let rows = format!("{ROW}\n").repeat(10_000);
            let mut pipe = OpenOptions::new().write(true).open(path).unwrap();
            // Until nobody reads any more.
            while pipe.write_all(rows.as_bytes()).is_ok() {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        let begun = || rounds.load(Ordering::Relaxed) > 2;
        interrupt_once(begun, &folder, &["mine", "pipe", "-o", "out.h5"], Stdio::null());
        writer.join().unwrap();
    }
}

#[test]
fn usage_errors_are_2() {
    let folder = Folder::new();
    for arguments in [
        &[][..],
        &["frobnicate"],
        &["mine"],
        &["mine", ""],
        &["mine", "x", "--frame", "other"],
        &["mine", "x", "--threads", "0"],
        &["fit", "--dialect", "other"],
        &["fit", "--weights", "1", "2"],
        &["inspect", "--tokenizer"],
        &["completions"],
        &["completions", "cmd"],
    ] {
        let ran = folder.drift(arguments);
        assert_eq!((ran.code, ran.text()), (Some(2), ""), "{arguments:?}");
        assert!(ran.stderr.contains("Usage: drift") || ran.stderr.contains("--help"), "{}", ran.stderr);
    }
    for (arguments, line) in [
        (&["fit", "--tolerance=-1"][..], "--tolerance: not a length; give Å, such as 0.001"),
        (&["fit", "--weights", "1", "nan", "1"], "--weights: not three weights of 0 or more"),
        (
            &["fit", "--tokenizer", "qwen-like", "--tokenizer", "qwen-like"],
            "--tokenizer: two tokenizers are named qwen-like; rename a file or folder",
        ),
        (
            &["inspect", "--placeholder", "<0,0,0>", "x"],
            "--placeholder: `<0,0,0>` contains a bracket; give the content of a block",
        ),
    ] {
        assert_eq!(refused(&folder, arguments), line);
    }
}

/// A name that no device has is refused without a report; a GPU that cannot be used has one, which says what is missing.
#[test]
fn devices_that_are_not_there_are_told_apart() {
    let folder = Folder::new();
    folder
        .drift(&["device", "--device", "banana", "-o", "report.json"])
        .refused_for("--device: `banana` is not a device");
    assert!(folder.listing().is_empty(), "{:?}", folder.listing());
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "there may be a GPU")]
fn a_gpu_that_cannot_be_used_has_a_report() {
    let folder = Folder::new();
    let ran = folder.drift(&["device", "--device", "cuda:0", "-o", "report.json"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    let report: serde_json::Value = serde_json::from_slice(&folder.read("report.json")).unwrap();
    assert_eq!((&report["schema"], &report["has_cuda"]), (&"drift.device/1".into(), &false.into()));
    assert!(report["problem"].as_str().unwrap().contains("built without CUDA"), "{report}");
    assert_eq!(report["libraries"].as_array().unwrap().len(), 7);
}
