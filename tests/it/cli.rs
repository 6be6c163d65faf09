//! The program's contract: what goes to stdout, in which fields, and that nothing but the input decides it.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::common::fixture;
use crate::readers::ROW;
use crate::support::{Folder, Ran, drift, program};

/// Three conformers of two molecules.
const TINY: &str = r#"{"canonical_smiles": "CC=O", "embedded_smiles": "[C]<4.0182,1.0374,0.0007>[C]<3.0038,0.0615,0.4370>=[O]<2.0988,-0.4840,-12.6413>"}
{"canonical_smiles": "CO", "embedded_smiles": "[C]<0.5000,-1.2000,0.0000>[O]<-0.0712,0.9000,1.2345>"}
{"canonical_smiles": "CO", "embedded_smiles": "[C]<0.6000,-1.1000,0.2500>[O]<-0.1712,0.8000,1.0345>"}
"#;

/// A folder with [`TINY`], and with more of it.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.file("tiny.jsonl", TINY);
    folder.file("many.jsonl", many());
    folder
}

/// Enough conformers for several blocks and threads; nothing about them repeats soon.
fn many() -> String {
    let mut state = 1u64;
    let mut number = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let value = (state >> 40) as i32 % 120_000 - 60_000;
        let mut text = String::new();
        drift::encoding::Encoding::FIXED.number().write(value, &mut text);
        text
    };
    let mut block = |atom: &str| format!("{atom}<{},{},{}>", number(), number(), number());
    let mut rows = String::new();
    for molecule in 0..12_000 {
        let name = format!("molecule {}", molecule / 3 % 40);
        let text = [block("[C]"), block("[C@@H]"), block("([N]"), block(")=[O]")].concat();
        rows.push_str(&json!({"canonical_smiles": name, "embedded_smiles": text}).to_string());
        rows.push('\n');
    }
    rows
}

/// The fields of an object, in order.
fn fields(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[track_caller]
fn assert_has(value: &Value, expected: &[&str]) {
    let found = fields(value);
    for field in expected {
        assert!(found.contains(field), "no {field} among {found:?}");
    }
}

#[test]
fn mine_as_json() {
    let folder = folder();
    folder.file("more.jsonl", format!("{ROW}\n{{}}\n"));
    let report = folder.drift(&["mine", "tiny.jsonl", "more.jsonl", "--json"]).good().json();
    assert_has(&report, &["schema", "conformers", "molecules", "blocks", "skipped", "skipped_records"]);
    for (field, value) in [("conformers", 4), ("molecules", 3), ("blocks", 9), ("skipped", 1)] {
        assert_eq!(report[field], value, "{field}");
    }
    let skipped =
        json!([{"file": "more.jsonl", "record": "line 2", "reason": "no field contains enriched SMILES"}]);
    assert_eq!(report["skipped_records"], skipped);
    let inputs = report["provenance"]["inputs"].as_array().unwrap();
    assert_eq!(inputs.iter().map(|input| &input["name"]).collect::<Vec<_>>(), ["tiny.jsonl", "more.jsonl"]);
}

#[test]
fn mine_to_stdout_is_the_store() {
    let folder = folder();
    folder.drift(&["mine", "tiny.jsonl", "-o", "tiny.h5"]).good();
    let ran = folder.drift(&["mine", "tiny.jsonl", "-o", "-"]).good();
    assert!(ran.stdout.starts_with(b"\x89HDF\r\n\x1a\n"));
    assert!(ran.stdout == folder.read("tiny.h5"));
}

#[cfg(unix)]
#[test]
fn pipes_are_read_like_files() {
    let folder = folder();
    folder.drift(&["mine", "tiny.jsonl", "-o", "tiny.h5"]).good();
    for input in ["tiny.jsonl", "tiny.h5"] {
        for verb in [&["mine"][..], &["fit", "--no-classes", "--corpus"]] {
            let piped = |file: &str, from: &str| {
                let stdin = std::fs::File::open(folder.path().join(from)).unwrap();
                let mut command = std::process::Command::new("cat");
                let mut cat = command.stdin(stdin).stdout(std::process::Stdio::piped()).spawn().unwrap();
                let mut drift = program();
                drift.args(verb).arg(file).current_dir(folder.path()).stdin(cat.stdout.take().unwrap());
                let ran = Ran::from(drift.output().unwrap()).good();
                cat.wait().unwrap();
                ran
            };
            assert_eq!(piped("/dev/stdin", input).text(), piped(input, input).text());
        }
    }
}

#[test]
fn an_output_is_overwritten() {
    let folder = folder();
    folder.file("out.h5", "old");
    folder.drift(&["mine", "many.jsonl", "-o", "out.h5"]).good();
    folder.drift(&["mine", "tiny.jsonl", "-o", "out.h5"]).good();
    let once = folder.read("out.h5");
    folder.drift(&["mine", "tiny.jsonl", "-o", "out.h5"]).good();
    assert!(folder.read("out.h5") == once);
    for _ in 0..2 {
        let ran = folder.drift(&["fit", "--corpus", "out.h5", "--no-classes", "-o", "fits"]);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), "wrote fits/fit.html and the results beside it\n"));
    }
}

/// Without provenance, which names the input.
fn results(arguments: &[&str], folder: &Folder) -> Value {
    let mut report = folder.drift(arguments).good().json();
    let report = report.as_object_mut().unwrap();
    report.remove("provenance").unwrap();
    Value::Object(std::mem::take(report))
}

#[test]
fn a_store_is_as_good_as_what_it_was_made_from() {
    let folder = folder();
    folder.drift(&["mine", "many.jsonl", "-o", "many.h5"]).good();
    for encoding in ["fixed", "stripped"] {
        let fit = |corpus: &str| {
            results(&["fit", "--corpus", corpus, "--dialect", encoding, "--no-classes", "--json"], &folder)
        };
        assert_eq!(fit("many.jsonl"), fit("many.h5"));
    }
    let mined = |corpus: &str| results(&["mine", corpus, "--json"], &folder);
    assert_eq!(mined("many.jsonl"), mined("many.h5"));
}

#[test]
fn stores_merge() {
    let folder = folder();
    folder.drift(&["mine", "tiny.jsonl", "-o", "a.h5"]).good();
    folder.drift(&["mine", "many.jsonl", "-o", "b.h5"]).good();
    let texts = results(&["mine", "tiny.jsonl", "many.jsonl", "--json", "-o", "texts.h5"], &folder);
    let stores = results(&["mine", "a.h5", "b.h5", "--json", "-o", "stores.h5"], &folder);
    let merged = results(&["mine", "stores.h5", "--json"], &folder);
    assert_eq!((&texts["conformers"], &texts["blocks"]), (&12_003.into(), &48_007.into()));
    assert_eq!(texts, stores);
    assert_eq!(texts, merged);
}

#[test]
fn neither_threads_nor_chance_change_a_byte() {
    let folder = folder();
    let runs: Vec<_> = [["--threads", "1"], ["--threads", "2"], ["--threads", "2"]]
        .iter()
        .map(|threads| {
            let run = |arguments: &[&str]| folder.drift(&[arguments, threads].concat()).good().stdout;
            let mine = run(&["mine", "many.jsonl", "--json", "-o", "many.h5", "--html", "many.html"]);
            let fit = run(&["fit", "--corpus", "many.jsonl", "--json", "-o", "fits"]);
            let files = ["many.h5", "many.html", "fits/fit.html", "fits/qwen-like.json"]
                .map(|name| folder.read(name));
            (mine, fit, files)
        })
        .collect();
    assert!(runs[0] == runs[1], "1 thread and 2");
    assert!(runs[1] == runs[2], "the same run again");
}

#[test]
fn fit_as_json() {
    let folder = folder();
    let asked = "-1.0000,0.0000,0.0000";
    let arguments = ["fit", "--corpus", "many.jsonl", "--dialect", "fixed", "--candidate", asked, "--json"];
    let report = folder.drift(&arguments).good().json();
    let names: Vec<&Value> = report["results"].as_array().unwrap().iter().map(|r| &r["tokenizer"]).collect();
    assert_eq!(names, ["qwen-like", "llama-like"]);
    for result in report["results"].as_array().unwrap() {
        assert_has(result, &["tokenizer", "dialect", "blocks", "placeholder", "certificate", "candidates"]);
        assert_eq!((&result["dialect"], &result["blocks"]), (&"fixed".into(), &48_000.into()));
        let certificate = &result["certificate"];
        assert_eq!(fields(certificate), ["objective", "lower_bound", "gap", "proof"]);
        let three = |field: &str| -> Vec<f64> {
            certificate[field].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
        };
        let (objective, bound) = (three("objective"), three("lower_bound"));
        assert_eq!((objective.len(), bound.len()), (3, 3));
        assert!(bound <= objective, "{bound:?} {objective:?}");
        let gap: Vec<f64> = objective.iter().zip(&bound).map(|(o, b)| o - b).collect();
        assert_eq!(three("gap"), gap);
        assert!(certificate["proof"].is_null() && result["proved"] == true);
        let candidates = result["candidates"].as_array().unwrap();
        for candidate in candidates {
            assert_has(candidate, &["placeholder", "free_tokens", "junk_blocks", "junk_tokens_per_block"]);
            assert_has(candidate, &["truncated_blocks", "unparsable_blocks", "unparsable_conformers"]);
            assert_has(candidate, &["rmsd_angstrom"]);
            assert!(candidate["free_tokens"].is_u64());
            for share in ["junk_blocks", "truncated_blocks", "unparsable_blocks", "unparsable_conformers"] {
                assert!((0.0..=1.0).contains(&candidate[share].as_f64().unwrap()), "{share}");
            }
            let all_unparsable = candidate["unparsable_conformers"] == 1.0;
            assert_eq!(candidate["rmsd_angstrom"].is_null(), all_unparsable, "{candidate}");
        }
        let find =
            |placeholder: &Value| candidates.iter().find(|c| c["placeholder"] == *placeholder).unwrap();
        for placeholder in [asked, "0.0000,0.0000,0.0000", "0.000,0.000,0.000", "1.23,-4.56,7.89"] {
            find(&placeholder.into());
        }
        let chosen = find(&result["placeholder"]);
        let harm = |candidate: &Value| {
            let rmsd = candidate["rmsd_angstrom"].as_f64().unwrap_or(0.0);
            let of = |field: &str| candidate[field].as_f64().unwrap();
            vec![of("unparsable_blocks"), (rmsd - 1e-3).max(0.0), of("junk_tokens_per_block")]
        };
        assert_eq!(harm(chosen), objective);
        assert!(candidates.iter().all(|candidate| objective <= harm(candidate)));
    }
}

#[test]
fn fit_reads_the_encoding_off_the_corpus() {
    let folder = folder();
    folder.file("stripped.jsonl", r#"{"embedded_smiles": "[C]<1.5,2,-0.25>[O]<0,0,1>"}"#);
    folder.file("either.jsonl", r#"{"embedded_smiles": "[C]<1.5001,2.0002,-0.2503>"}"#);
    for (corpus, expected) in [
        ("tiny.jsonl", &["fixed"][..]),
        ("stripped.jsonl", &["stripped"]),
        ("either.jsonl", &["fixed", "stripped"]),
    ] {
        let arguments = ["fit", "--corpus", corpus, "--tokenizer", "qwen-like", "--no-classes", "--json"];
        let report = folder.drift(&arguments).good().json();
        let encodings: Vec<_> = report["results"].as_array().unwrap().iter().map(|r| &r["dialect"]).collect();
        assert_eq!(encodings, expected, "{corpus}");
    }
}

#[test]
fn fit_writes_a_folder() {
    let folder = folder();
    let tokenizer = include_bytes!("../../tokenizers/qwen-like/tokenizer.json");
    folder.file("mine/tokenizer.json", tokenizer);
    let tokenizers = ["--tokenizer", "mine", "--tokenizer", "llama-like"];
    let arguments = ["fit", "--corpus", "tiny.jsonl", "-o", "new/fits", "--json"];
    let report = folder.drift(&[&arguments[..], &tokenizers].concat()).good().json();
    let written = folder.path().join("new/fits");
    let files: Vec<PathBuf> =
        folder.listing().into_keys().filter(|path| path.parent() == Some(&*written)).collect();
    assert_eq!(files, ["fit.html", "llama-like.json", "mine.json"].map(|name| written.join(name)));
    for (index, name) in [(0, "mine"), (1, "llama-like")] {
        let part: Value = serde_json::from_slice(&folder.read(&format!("new/fits/{name}.json"))).unwrap();
        assert_eq!(part["results"], json!([report["results"][index]]));
        assert_eq!(fields(&part), fields(&report));
    }
    let page = String::from_utf8(folder.read("new/fits/fit.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("mine") && page.contains("llama-like"));
    assert_offline(&page);
    folder.drift(&["mine", "tiny.jsonl", "--html", "tiny.html"]).good();
    assert_offline(&String::from_utf8(folder.read("tiny.html")).unwrap());
}

/// Nothing in the page is fetched from anywhere.
fn assert_offline(page: &str) {
    let rest = page.replace("http://www.w3.org/2000/svg", "");
    for word in ["http:", "https:", "//", "src=", "@import", "url(", "<link", "<script"] {
        assert!(!rest.contains(word), "{word}");
    }
}

#[test]
fn inspect_as_json() {
    let report = drift(&["inspect", "--json", "--tokenizer", "qwen-like", "[C]<-1.5,0,2>", ""]).good().json();
    let texts = report.as_array().unwrap();
    assert_eq!(texts.len(), 2);
    assert_has(&texts[0], &["text", "count", "free", "copy", "tokens"]);
    assert_has(&texts[0]["tokens"][0], &["id", "text", "class"]);
    let classes: Vec<&str> =
        texts[0]["tokens"].as_array().unwrap().iter().map(|t| t["class"].as_str().unwrap()).collect();
    assert_eq!(texts[0]["count"], classes.len());
    assert_eq!(texts[0]["free"], classes.iter().filter(|class| **class == "free").count());
    assert_eq!(texts[0]["copy"], classes.iter().filter(|class| **class == "copy").count());
    assert_eq!(texts[1]["count"], 0);
}

#[test]
fn inspect_reads_stdin() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut writer, b"[C]<1,2,3>\n[O]<-1,2,3>").unwrap();
    drop(writer);
    let output = program().args(["inspect", "--json", "-"]).stdin(reader).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report[0]["text"], &report[1]["text"]), (&"[C]<1,2,3>".into(), &"[O]<-1,2,3>".into()));
}

#[test]
fn help_version_and_completions() {
    let help = drift(&["--help"]).good();
    for verb in ["mine", "fit", "inspect", "completions"] {
        assert!(help.text().contains(&format!("\n  {verb} ")), "{verb}");
        let ran = drift(&[verb, "--help"]).good();
        assert!(ran.text().contains(&format!("Usage: drift {verb}")), "{}", ran.text());
    }
    assert_eq!(drift(&["--version"]).good().text(), format!("drift {}\n", env!("CARGO_PKG_VERSION")));
    for shell in ["bash", "zsh", "fish"] {
        let script = drift(&["completions", shell]).good();
        assert!(script.text().contains("candidate"), "{shell}");
    }
}

#[test]
fn geom_as_it_comes() {
    let folder = Folder::new();
    let archive = std::fs::File::open(fixture("rdkit_folder.tar.gz")).unwrap();
    tar::Archive::new(flate2::read::GzDecoder::new(archive)).unpack(folder.path()).unwrap();
    std::fs::copy(fixture("rdkit_folder.tar.gz"), folder.path().join("rdkit_folder.tar.gz")).unwrap();
    std::fs::copy(fixture("test_set.pickle"), folder.path().join("test_set.pickle")).unwrap();
    for (input, summary) in [
        ("rdkit_folder", Some("rdkit_folder/summary_drugs.json")),
        ("rdkit_folder.tar.gz", Some("rdkit_folder.tar.gz:rdkit_folder/summary_drugs.json")),
        ("rdkit_folder/drugs", None),
        ("test_set.pickle", None),
    ] {
        let report = folder.drift(&["mine", input, "--json", "-o", "out.h5"]).good().json();
        for (field, value) in [("conformers", 6), ("molecules", 3), ("blocks", 2 * 3 + 3 * 4 + 5)] {
            assert_eq!(report[field], value, "{input}: {field}");
        }
        // Atom i of conformer k is at (i, -k, i / 4).
        let ends: Vec<_> = (0..3)
            .map(|axis| &report["axes"][axis]["summary"])
            .map(|summary| [summary["min"].as_f64().unwrap(), summary["max"].as_f64().unwrap()])
            .collect();
        assert_eq!(ends, [[0.0, 4.0], [-2.0, 0.0], [0.0, 1.0]], "{input}");
        let skipped: Vec<_> = report["skipped_records"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| s["file"].as_str().unwrap())
            .collect();
        assert_eq!(skipped, Vec::from_iter(summary), "{input}");
        let fit = ["fit", "--corpus", "out.h5", "--tokenizer", "llama-like", "--no-classes", "--json"];
        assert_eq!(folder.drift(&fit).good().json()["results"][0]["blocks"], 23);
    }
}

#[test]
fn what_mine_shows() {
    let ran = folder().drift(&["mine", "tiny.jsonl"]).good();
    assert_eq!(ran.text(), MINED, "\n{}", ran.text());
}

#[test]
fn what_fit_shows() {
    let arguments = ["fit", "--corpus", "tiny.jsonl", "--tokenizer", "qwen-like", "--candidate", "-1,0,0"];
    for (more, shown) in [(&["--no-classes"][..], FITTED), (&["--no-classes", "--verbose"], FITTED_WHOLE)] {
        let ran = folder().drift(&[&arguments[..], more].concat()).good();
        assert_eq!(ran.text(), shown, "\n{}", ran.text());
    }
}

/// In a terminal: colours unless `NO_COLOR` is set, and no progress for what takes no second.
#[cfg(target_os = "linux")]
#[test]
#[cfg_attr(not(has_script), ignore = "needs `script` of util-linux")]
fn colours_are_for_terminals() {
    let folder = folder();
    let shown = |no_color: &str| {
        let line = format!(
            "{} fit --corpus tiny.jsonl --tokenizer qwen-like --no-classes",
            env!("CARGO_BIN_EXE_drift")
        );
        let mut script = std::process::Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).current_dir(folder.path());
        let output = script.env("NO_COLOR", no_color).stdin(std::process::Stdio::null()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let (plain, colour) = (shown("1"), shown(""));
    assert!(plain.contains("Replayed 3 conformers") && !plain.contains('\x1b'), "{plain:?}");
    assert!(colour.contains("Replayed 3 conformers") && colour.contains("\x1b[1m"), "{colour:?}");
    assert!(!folder.drift(&["fit", "--corpus", "tiny.jsonl", "--no-classes"]).good().text().contains('\x1b'));
}

const MINED: &str = "\
3 conformers of 2 molecules, 7 blocks. Heavy atoms per conformer: mean 2.33, standard deviation 0.577, median 2, from 2 to 3.

Coordinates by axis, Å
axis     min     5 %  median  95 %   max   mean    sd  -12 Å to 12 Å
───────────────────────────────────────────────────────────────────────────────
x      -0.17   -0.17    0.65  4.02  4.02   1.43  1.63             ██ ▄▄▄
y      -1.20   -1.17    0.05  1.04  1.04   0.00  0.95            ▆▃█▃
z     -12.64  -12.64    0.25  1.23  1.23  -1.38  4.99              █▄

Share of coordinates, with 95 % interval
axis  negative        interval  10 Å or        interval  15 Å or
                                   more                     more
────────────────────────────────────────────────────────────────
x       28.6 %  [0.0, 100.0] %      0 %   [0.0, 65.8] %      0 %
y       42.9 %  [0.0, 100.0] %      0 %   [0.0, 65.8] %      0 %
z       14.3 %  [0.0, 100.0] %   14.3 %  [0.0, 100.0] %      0 %

Digits before the point and trailing zeros, share of coordinates
axis  1 digit  2 digits  3 or  no zero  1 zero  2 zeros  3 zeros  4 zeros
                         more
─────────────────────────────────────────────────────────────────────────
x       100 %       0 %   0 %   71.4 %     0 %      0 %   28.6 %      0 %
y       100 %       0 %   0 %   28.6 %  14.3 %      0 %   57.1 %      0 %
z      85.7 %    14.3 %   0 %   57.1 %  14.3 %   14.3 %      0 %   14.3 %
The stripped dialect shortens 47.6 % of coordinates, 95 % interval [0.0, 100.0] %, and saves 3.86 characters per block.

By heavy atoms
heavy atoms  conformers  molecules  blocks  x negative  sd of x, Å  of y  of z  largest |x|  x of 10 Å
                                                                                               or more
──────────────────────────────────────────────────────────────────────────────────────────────────────
1-14                  3          2       7      28.6 %        1.63  0.95  4.99         4.02        0 %
all                   3          2       7      28.6 %        1.63  0.95  4.99         4.02        0 %

Impossible geometry, conformers: 2 with bonds longer than 2.5 Å. The first is number 1 (CC=O): the bond of atoms 2 and 3 is 13.12 Å long; --json lists them.
";

const FITTED: &str = "\
qwen-like, fixed: use `0.0000,0.0000,0.0000` (proved best): 42.9 % of blocks lose digits, RMSD 0.0003 Å.
placeholder              FREE  junk slots     blocks      blocks  RMSD, Å  origin
                       tokens   per block  truncated  unparsable
─────────────────────────────────────────────────────────────────────────────────────────────────
0.0000,0.0000,0.0000       20        0.00     42.9 %         0 %   0.0003  LP 2.1 generic, LP 3.8
-0.0000,0.0000,0.0000      21        0.57        0 %         0 %        0  with a sign on x
0.000,0.000,0.000          17        0.00      100 %         0 %    0.193  LP 3.9, 4.0, 4.3
1.234,-5.678,9.012         17        0.00      100 %         0 %    0.193  proposed
-1,0,0                      6        0.00      100 %       100 %        -  asked for
1.23,-4.56,7.89            14        0.00      100 %       100 %        -  proposed

Replayed 3 conformers, 7 blocks; 0 records skipped. --verbose prints intervals and proofs, -o DIR a page.
";

const FITTED_WHOLE: &str = "\
qwen-like, fixed: use `0.0000,0.0000,0.0000` (proved best): 42.9 % of blocks lose digits, RMSD 0.0003 Å.

qwen-like, fixed dialect
placeholder              FREE  blocks with  junk slots     blocks      blocks  conformers  induced  origin
                       tokens   junk slots   per block  truncated  unparsable  unparsable  RMSD, Å
──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
0.0000,0.0000,0.0000       20          0 %        0.00     42.9 %         0 %         0 %   0.0003  LP 2.1 generic, LP 3.8
-0.0000,0.0000,0.0000      21       57.1 %        0.57        0 %         0 %         0 %        0  with a sign on x
0.000,0.000,0.000          17          0 %        0.00      100 %         0 %         0 %    0.193  LP 3.9, 4.0, 4.3
1.234,-5.678,9.012         17          0 %        0.00      100 %         0 %         0 %    0.193  proposed
-1,0,0                      6          0 %        0.00      100 %       100 %       100 %        -  asked for
1.23,-4.56,7.89            14          0 %        0.00      100 %       100 %       100 %        -  proposed
Shares of 7 blocks; the placeholder to use is `0.0000,0.0000,0.0000`.
95 % intervals by molecule, from a sample of 3 conformers: truncated [0.0, 100.0] %, unparsable [0.0, 65.8] %, junk slots [0.00, 0.00], RMSD [0, 0.0014] Å.
No number of FREE tokens, so no placeholder at all, does less harm in replay of 7 blocks of 3 conformers, by unparsable blocks first, then induced RMSD above 0.001 Å, then junk slots (truncated blocks count through their RMSD alone). Replay does not see what a model makes of junk or of its own clipped numbers: `drift eval` does.
Best: least by unparsable blocks, then RMSD above 0.001 Å, then junk slots.
Where every lost digit counts: `-0.0000,0.0000,0.0000`.

in this order                         reached  lower bound
──────────────────────────────────────────────────────────
share of blocks unparsable                0 %          0 %
induced RMSD beyond the tolerance, Å        0            0
junk slots per block                        0            0

Replayed 3 conformers, 7 blocks; 0 records skipped.
";
