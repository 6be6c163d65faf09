//! `drift generate`: the texts of `drift eval`, with what each cost, also in shards and after an interruption.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::support::{Folder, drift, rows, words};

/// Every logit processor on texts that are cut short, so that the test is fast.
const ALL: &str =
    "--samples 2 --generations 2 --lp all --max-new-tokens 40 --batch 3 --probabilities --quiet";

/// The names of a line, in order.
const NAMES: [&str; 13] = [
    "smiles",
    "generation",
    "lp",
    "placeholder",
    "model",
    "text",
    "end",
    "tokens",
    "forced_tokens",
    "log_probability",
    "log_allowed",
    "seconds",
    "cpu_seconds",
];

/// The header and the lines of a file.
fn read(folder: &Folder, name: &str) -> (Value, Vec<Value>) {
    let mut lines = rows(&folder.read(name));
    (lines.remove(0), lines)
}

/// A line without its seconds.
fn timeless(line: &Value) -> Value {
    let mut line = line.clone();
    ["seconds", "cpu_seconds"].iter().for_each(|name| line[name] = Value::Null);
    line
}

/// A line as `drift eval --texts` writes it.
fn as_of_eval(line: &Value) -> Value {
    let own = line.as_object().unwrap().iter().filter(|(name, _)| NAMES[..6].contains(&&***name));
    Value::Object(own.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// The sum of a figure over the lines of each run.
fn sums(lines: &[Value], figure: &str) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for line in lines {
        *sums.entry(label(line)).or_insert(0.0) += line[figure].as_f64().unwrap();
    }
    sums
}

fn label(run: &Value) -> String {
    format!("{} {}", run["lp"], run["placeholder"])
}

#[track_caller]
fn assert_sums(header: &Value, lines: &[Value]) {
    let [seconds, tokens, forced] = ["seconds", "tokens", "forced_tokens"].map(|figure| sums(lines, figure));
    for run in header["runs"].as_array().unwrap() {
        let label = label(run);
        let total = run["seconds"]["total"].as_f64().unwrap();
        assert!((seconds[&label] - total).abs() < 1e-9 * total, "{label}: {} of {total}", seconds[&label]);
        assert_eq!(tokens[&label], run["generated_tokens"].as_f64().unwrap(), "{label}");
        assert_eq!(forced[&label], run["forced_tokens"].as_f64().unwrap(), "{label}");
    }
}

#[test]
fn texts_are_those_of_eval_also_in_shards() {
    let folder = Folder::new();
    let all = words(ALL);
    folder.drift(&[&["generate", "-o", "texts.jsonl"], &all[..]].concat()).good();
    let record =
        folder.drift(&[&["eval", "--texts", "eval.jsonl", "--json"], &all[..]].concat()).good().json();
    let (header, lines) = read(&folder, "texts.jsonl");
    assert_eq!(lines.len(), 2 * 2 * record["runs"].as_array().unwrap().len());
    assert_eq!(lines.iter().map(as_of_eval).collect::<Vec<_>>(), rows(&folder.read("eval.jsonl")));
    let first: Vec<&str> = lines[0].as_object().unwrap().keys().map(String::as_str).collect();
    assert!(NAMES.iter().all(|name| first.contains(name)) && first.len() == 13, "{first:?}");
    assert_sums(&header, &lines);
    assert_eq!((&header["schema"], &header["interrupted"]), (&json!("drift.texts/1"), &json!(false)));
    assert_eq!(header["protocol"]["preset"], record["protocol"]["preset"]);
    for (own, of_eval) in header["runs"].as_array().unwrap().iter().zip(record["runs"].as_array().unwrap()) {
        for name in [
            "model",
            "lp",
            "placeholder",
            "dialect",
            "unseen",
            "generated_tokens",
            "wasted_tokens",
            "probabilities",
            "mask_cost",
        ] {
            assert_eq!(own[name], of_eval[name], "{name}");
        }
    }
    for line in &lines {
        assert!(
            line["log_probability"].as_f64().unwrap() < 0.0 && line["log_allowed"].as_f64().unwrap() < 1e-4
        );
        assert!(line["end"] == "length" && line["tokens"] == 40, "{line}");
    }

    for (at, shard) in ["2/2", "1/2"].iter().enumerate() {
        let to = format!("shard{at}");
        folder.drift(&[&["generate", "--shard", shard, "-o", &to], &all[..]].concat()).good();
    }
    let merged = folder.line("merge shard0 shard1 -o merged.jsonl --json").good().json();
    let (of_shards, merged_lines) = read(&folder, "merged.jsonl");
    assert_eq!(merged, of_shards);
    assert_eq!(of_shards["environment"]["shards"], 2);
    let timeless = |lines: &[Value]| lines.iter().map(timeless).collect::<Vec<_>>();
    assert_eq!(timeless(&merged_lines), timeless(&lines));
    assert_sums(&of_shards, &merged_lines);

    // Another run's texts are compared as those of `eval --texts` are.
    let same = [&["eval", "--same-as", "texts.jsonl", "--json"], &all[..]].concat();
    let same = folder.drift(&same).good().json();
    assert_eq!(same["same_texts"]["equal"], lines.len());
}

#[test]
fn stdout_takes_the_file_or_the_header() {
    let folder = Folder::new();
    let order = "generate --samples 1 --lp automaton --max-new-tokens 9 --quiet";
    let printed = folder.line(&format!("{order} -o -")).good();
    let lines = rows(printed.text().as_bytes());
    assert_eq!((lines.len(), &lines[1]["tokens"]), (2, &json!(9)));
    assert_eq!(lines[1]["log_probability"], Value::Null);
    let header = folder.line(&format!("{order} -o texts.jsonl --json --trace trace.json")).good().json();
    assert_eq!(read(&folder, "texts.jsonl").0, header);
    assert!(folder.read("trace.json").starts_with(b"{"));
    // Models are also given without an option.
    let model = format!("{}/eval/llama-like", env!("CARGO_MANIFEST_DIR"));
    let other = folder.line(&format!("{order} {model} -o other.jsonl --json")).good().json();
    assert_eq!(other["runs"][0]["model"], "llama-like");
    assert_eq!(folder.listing().len(), 3);
}

#[test]
#[cfg(unix)]
fn an_interrupted_run_goes_on() {
    use super::support::program;
    let folder = Folder::new();
    let order =
        "generate --samples 6 --generations 3 --lp none,automaton --max-new-tokens 30 --batch 2 --quiet";
    let arguments = [&words(order)[..], &["-o", "texts.jsonl"]].concat();
    let mut child = program().args(&arguments).current_dir(folder.path()).spawn().unwrap();
    let journal = folder.path().join("texts.jsonl.unfinished");
    let has_text = || std::fs::read_to_string(&journal).unwrap_or_default().contains(r#"{"piece":{"text":"#);
    while !has_text() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before a text was kept");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(journal.exists() && !folder.path().join("texts.jsonl").exists());
    let other = folder.drift(&[&arguments[..], &["--seed", "1"]].concat());
    other.refused_for("texts.jsonl.unfinished: belongs to other work: --seed is not given there, 1 here");
    let ran = folder.drift(&arguments).done();
    assert!(ran.stderr.starts_with("continues after "), "{}", ran.stderr);
    assert!(!journal.exists());
    folder.drift(&[&words(order)[..], &["-o", "whole.jsonl"]].concat()).good();
    let (header, lines) = read(&folder, "texts.jsonl");
    let timeless = |lines: &[Value]| lines.iter().map(timeless).collect::<Vec<_>>();
    assert_eq!(timeless(&lines), timeless(&read(&folder, "whole.jsonl").1));
    assert_sums(&header, &lines);
}

#[test]
fn what_cannot_work_is_one_line_with_its_remedy() {
    let folder = Folder::new();
    folder.file("some.smi", "CCO\n");
    folder.file("notes.unfinished", "mine\n");
    folder.file("file", "mine\n");
    let before = folder.listing();
    for (line, part) in [
        ("-o - --json", "-o -: --json already writes to stdout; write the texts to a file"),
        ("-o - --trace -", "--trace -: -o - already writes to stdout"),
        ("-o x --trace - --json", "--trace -: --json already writes to stdout"),
        ("-o x --trace x", "x: would be written by -o and by --trace"),
        ("-o - --shard 1/2", "-o -: a shard is kept in a folder"),
        ("-o file --shard 1/1", "file: is a file, but a shard is kept in a folder"),
        ("-o x --samples 1 --shard 1/2", "--shard 1/2: there is only 1 molecule;"),
        ("-o some.smi --smiles some.smi", "some.smi: is an input, which -o would overwrite"),
        ("-o notes", "notes.unfinished: was not written by this command before"),
        ("-o x absent", "absent: No such file or directory"),
        ("-o x --smiles some.smi --generations 2k", "there are none; give them with --references"),
        ("-o x --preset loud", "--preset"),
    ] {
        folder.line(&format!("generate --quiet {line}")).refused_for(part);
    }
    for (line, option) in [
        ("generate", "--output"),
        ("generate -o x --likelihood", "--likelihood"),
        ("generate -o x --same-as y", "--same-as"),
        ("generate -o x eval --synthetic qwen3-0.6b", "--synthetic"),
        ("generate -o x --shard 1/2 --trace y", "--trace"),
        ("generate -o x --conformers 2 --resample 2", "--resample"),
        ("eval --likelihood --conformers 2", "--likelihood"),
        ("eval --texts x --shard 1/2 -o y", "--texts"),
    ] {
        let ran = folder.line(line);
        assert!(ran.code == Some(2) && ran.stderr.contains(option), "{line}: {}", ran.stderr);
    }
    assert_eq!(folder.listing(), before);
}

#[test]
fn options_are_in_groups_and_examples_at_the_end() {
    let shared = ["Model:", "Molecules:", "Logit processors:", "Sampling:"];
    for (verb, more) in [("generate", &["Output:"][..]), ("eval", &["Judging:", "Energy:", "Output:"])] {
        let help = drift(&[verb, "--help"]).good();
        let found = help.text().lines().filter(|line| line.ends_with(':') && !line.starts_with(' '));
        let found: Vec<&str> = found.filter(|line| *line != "Arguments:").collect();
        // The options of every verb come last, before them how the work is done.
        let end = ["Running:", "Options of every command:", "Examples:"];
        assert_eq!(found, [&shared[..], more, &end].concat(), "{verb}");
    }
}

#[test]
fn a_job_array_merges_into_a_file() {
    let folder = Folder::new();
    folder.line("slurm generate --array 2 --samples 4 --lp automaton -o run").good();
    let text = |name: &str| String::from_utf8(folder.read(name)).unwrap();
    assert!(text("run/array.sbatch").contains(" generate --lp=automaton --samples=4 --shard slurm --quiet"));
    assert!(text("run/merge.sbatch").contains("merge $(seq 2) -o "), "{}", text("run/merge.sbatch"));
    assert!(text("run/merge.sbatch").contains("/run/texts.jsonl --quiet\n"), "{}", text("run/merge.sbatch"));
    folder.line("slurm generate --array 9 --samples 4 -o other").refused_for("there are only 4 molecules");
}
