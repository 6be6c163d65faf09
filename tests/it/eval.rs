//! `drift eval`: the reference checkpoint under logit processors, and what cannot work.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use drift::eval::record::EvalReport;
use serde_json::Value;

use crate::support::{Folder, Ran, drift, program, rows, words};

/// The runs of a record by logit processor.
fn runs(report: &Value) -> BTreeMap<&str, &Value> {
    let runs = report["runs"].as_array().unwrap();
    runs.iter().map(|run| (run["lp"].as_str().unwrap(), run)).collect()
}

/// The lines of a file of texts.
fn texts(folder: &Folder, name: &str) -> Vec<Value> {
    rows(&folder.read(name))
}

fn count(run: &Value, field: &str) -> u64 {
    run[field].as_u64().unwrap_or_else(|| panic!("{field} of {run}"))
}

#[test]
fn the_automaton_writes_legal_texts_only_and_the_audit_agrees() {
    let folder = Folder::new();
    let arguments =
        ["eval", "--samples", "8", "--generations", "2", "--json", "--texts", "texts.jsonl", "-o", "out"];
    let lps = ["--lp", "none,generic,allowlist,truncating,automaton"];
    let report = folder.drift(&[&arguments[..], &lps].concat()).good().json();
    let runs = runs(&report);
    assert_eq!(runs.len(), 5);
    let exact = runs["automaton"];
    assert_eq!((count(exact, "samples"), count(exact, "passed")), (16, 16));
    let flaws = ["graph_mismatch", "parse_failures", "no_eos", "junk_blocks_strict", "junk_blocks_letters"];
    for field in flaws.into_iter().chain(["truncated_blocks", "invented_blocks"]) {
        assert_eq!(count(exact, field), 0, "{field}");
    }
    assert!(count(exact, "forced_tokens") > 0 && count(exact, "decode_steps") > 0);
    // Position templates copy the skeleton, whatever they do to blocks.
    assert_eq!(count(runs["allowlist"], "graph_mismatch"), 0);
    assert_eq!(runs["allowlist"]["placeholder"], "0.0000,0.0000,0.0000");
    assert!(runs["automaton"]["placeholder"].is_null());

    // Texts come by run, molecule and generation, and an audit of them counts the same.
    let lines = texts(&folder, "texts.jsonl");
    assert_eq!(lines.len(), 5 * 16);
    let audited = folder.drift(&["audit", "texts.jsonl", "--json", "--dialect", "fixed"]).good().json();
    for file in audited["files"].as_array().unwrap() {
        let run = runs[file["lp"].as_str().unwrap()];
        let fields =
            ["samples", "passed", "blocks", "junk_blocks_strict", "truncated_blocks", "invented_blocks"];
        for field in fields {
            assert_eq!(file[field], run[field], "{field} of {}", file["lp"]);
        }
    }
    let generations: Vec<u64> = lines[..4].iter().map(|line| line["generation"].as_u64().unwrap()).collect();
    assert_eq!(generations, [0, 1, 0, 1]);

    let page = String::from_utf8(folder.read("out/eval.html")).unwrap();
    assert!(page.contains("What each logit processor costs") && !page.contains("http"));
    let record: Value = serde_json::from_slice(&folder.read("out/record.json")).unwrap();
    let read: EvalReport = serde_json::from_slice(&folder.read("out/record.json")).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), record, "a record is read back as it was written");
    assert_eq!(record["runs"], report["runs"]);
    // `drift report` makes the page of a record anew, and prints the same document.
    let shown = folder.drift(&["report", "out/record.json", "-o", "again.html", "--json"]).good();
    assert_eq!(shown.json(), record);
    assert_eq!(String::from_utf8(folder.read("again.html")).unwrap(), page);
    assert!(report["advice"][0].as_str().unwrap().contains("automaton"));
}

#[test]
fn without_options_five_rows_and_one_narrow_table_tell_the_story() {
    let folder = Folder::new();
    let eval = |more: &[&str]| folder.drift(&[&["eval", "--samples", "2"], more].concat()).good();
    let report = eval(&["--json"]).json();
    let row = |run: &Value| (run["lp"].as_str().unwrap().to_owned(), run["placeholder"].clone());
    let rows: Vec<_> = report["runs"].as_array().unwrap().iter().map(row).collect();
    let fitted = Path::new(env!("CARGO_MANIFEST_DIR")).join("placeholders/qwen-like.json");
    let fitted: Value = serde_json::from_slice(&std::fs::read(fitted).unwrap()).unwrap();
    let expected = [
        ("none", Value::Null),
        ("allowlist", "0.000,0.000,0.000".into()),
        ("allowlist", fitted["results"][0]["placeholder"].clone()),
        ("automaton", Value::Null),
        ("geometry", Value::Null),
    ];
    assert_eq!(rows, expected.map(|(lp, placeholder)| (lp.to_owned(), placeholder)));
    // One placeholder that is asked for takes the place of both.
    let asked = eval(&["--json", "--placeholder", "0.00,0.00,0.00"]).json();
    assert_eq!(asked["runs"].as_array().unwrap().len(), 4);
    // Molecules of one's own may have no known distances, and would be left out of all rows.
    folder.file("own.smi", "CCO\n");
    assert_eq!(eval(&["--json", "--smiles", "own.smi"]).json()["runs"].as_array().unwrap().len(), 4);

    let tables = |shown: &str| shown.lines().filter(|line| line.starts_with('─')).count();
    let ran = eval(&[]);
    let short = ran.text();
    assert!(short.lines().all(|line| line.chars().count() <= 100), "{short}");
    assert_eq!(tables(short), 1, "{short}");
    assert!(short.contains("- qwen-like: "), "advice: {short}");
    let ran = eval(&["--verbose"]);
    let whole = ran.text();
    assert!(tables(whole) >= 5 && whole.contains("time and throughput"), "{whole}");
}

/// Whether a block, cut off anywhere, could go on with more decimals or another number.
fn could_go_on(block: &str) -> bool {
    let numbers: Vec<&str> = block.split(',').collect();
    let last = numbers[numbers.len() - 1];
    let (integer, decimals) = last.split_once('.').unwrap_or((last, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_open = last.trim_start_matches('-').is_empty()
        || are_digits(integer.trim_start_matches('-')) && are_digits(decimals);
    is_open && numbers.len() <= 3 && (numbers.len() < 3 || decimals.len() < 4)
}

#[test]
fn stripped_blocks_that_a_template_closes_early_are_counted() {
    let folder = Folder::new();
    let arguments = ["eval", "--samples", "3", "--dialect", "stripped", "--preset", "greedy", "--json"];
    let lps = ["--lp", "none,allowlist,truncating,automaton", "--texts", "texts.jsonl"];
    // One decimal each: the model, which writes four, is cut off in its second number.
    let narrow = ["--placeholder", "0.0,0.0,0.0"];
    let report = folder.drift(&[&arguments[..], &lps, &narrow].concat()).good().json();
    let runs = runs(&report);
    assert!(runs.values().all(|run| run["lost_digits"].is_null()));
    for lp in ["none", "automaton"] {
        assert_eq!(count(runs[lp], "truncated_blocks"), 0);
    }
    for lp in ["allowlist", "truncating"] {
        let (cut, blocks) = (count(runs[lp], "truncated_blocks"), count(runs[lp], "blocks"));
        let lines = texts(&folder, "texts.jsonl");
        let texts = lines.iter().filter(|line| line["lp"] == lp).map(|line| line["text"].as_str().unwrap());
        let inside =
            texts.flat_map(|text| text.split('<').skip(1)).map(|block| block.split('>').next().unwrap());
        let open = inside.filter(|block| could_go_on(block)).count() as u64;
        assert!(blocks >= open && open >= cut && cut * 10 >= open * 8 && cut > 20, "{cut} {open} {blocks}");
    }
}

#[test]
fn a_fitted_file_gives_each_class_of_block_its_placeholder() {
    let folder = Folder::new();
    let fitted = Path::new(env!("CARGO_MANIFEST_DIR")).join("placeholders/qwen-like.json");
    let fitted: Value = serde_json::from_slice(&std::fs::read(fitted).unwrap()).unwrap();
    let run = |file: &str, encoding: &str| {
        let arguments =
            ["eval", "--samples", "3", "--generations", "2", "--preset", "greedy", "--lp", "allowlist"];
        let more = ["--dialect", encoding, "--placeholder", file, "--json", "--texts", "texts.jsonl"];
        folder.drift(&[&arguments[..], &more].concat())
    };
    folder.file("fit/qwen-like.json", fitted.to_string());
    let report = run("fit/qwen-like.json", "stripped").good().json();
    let classed = &report["runs"][0];
    assert_eq!(classed["placeholder"], "by atom index of qwen-like.json");
    let result = |encoding: &str| {
        let results = fitted["results"].as_array().unwrap().iter().enumerate();
        results.filter(|(_, result)| result["dialect"] == encoding).map(|(at, _)| at).next().unwrap()
    };
    let (fixed, stripped) = (result("fixed"), result("stripped"));
    let partitions = fitted["results"][stripped]["classes"].as_array().unwrap();
    let index = partitions.iter().position(|partition| partition["partition"] == "atom index").unwrap();
    for (at, class) in partitions[index]["classes"].as_array().unwrap().iter().enumerate() {
        assert_eq!(classed["placeholder_classes"][at]["placeholder"], class["placeholder"]);
        assert_eq!(classed["placeholder_classes"][at]["class"], class["class"]);
    }
    assert!(classed["blocks"].as_u64().unwrap() > 0 && !classed["drift"].as_object().unwrap().is_empty());
    let inputs = report["provenance"]["inputs"].as_array().unwrap();
    assert!(inputs.iter().any(|input| input["name"] == "qwen-like.json"));

    // Five FREE tokens in the first block, about twenty in the others.
    let mut other = fitted.clone();
    for class in other["results"][stripped]["classes"][index]["classes"].as_array_mut().unwrap() {
        let short = class["class"] == "first";
        class["placeholder"] = if short { "0,0,0" } else { "-10.0001,-10.0001,-10.0001" }.into();
    }
    folder.file("other.json", other.to_string());
    run("other.json", "stripped").good();
    let blocks: Vec<Vec<usize>> = texts(&folder, "texts.jsonl").iter().map(block_lengths).collect();
    assert_eq!(blocks.len(), 6);
    assert!(blocks.iter().all(|lengths| lengths[0] < 12 && lengths[1..].iter().all(|length| *length > 12)));

    // In the fixed encoding classes gain nothing, so there is one placeholder for all.
    let report = run("fit/qwen-like.json", "fixed").good().json();
    assert_eq!(report["runs"][0]["placeholder"], fitted["results"][fixed]["placeholder"]);
    assert!(report["runs"][0].get("placeholder_classes").is_none());

    let spoil = |name: &str, part: &str, change: &dyn Fn(&mut Value)| {
        let mut spoilt = fitted.clone();
        change(&mut spoilt);
        folder.file(name, spoilt.to_string());
        let ran = run(name, "stripped");
        ran.refused_for(part);
        assert!(ran.stderr.contains(name), "{}", ran.stderr);
    };
    spoil("schema.json", "drift.eval/1", &|file| *file = serde_json::json!({"schema": "drift.eval/1"}));
    spoil("list.json", "is not a result of drift fit", &|file| *file = Value::Array(Vec::new()));
    spoil("none.json", "qwen-like, fixed; ", &|file| {
        file["results"][stripped]["dialect"] = "fixed".into();
    });
    spoil("class.json", "classes are first", &|file| {
        file["results"][stripped]["classes"][index]["classes"][0]["class"] = "last".into();
    });
    spoil("numbers.json", "give three numbers", &|file| {
        file["results"][stripped]["classes"][index]["classes"][0]["placeholder"] = "0.0,0.0".into();
    });
    spoil("partition.json", "unknown variant `mood`", &|file| {
        file["results"][stripped]["classes"][index]["partition"] = "mood".into();
    });
    run("missing.json", "stripped").refused_for("missing.json");
    run("fit", "stripped").refused_for("give its file");
}

/// Characters of each block of a text.
fn block_lengths(line: &Value) -> Vec<usize> {
    let blocks = line["text"].as_str().unwrap().split('<').skip(1);
    blocks.map(|block| block.split('>').next().unwrap().len()).collect()
}

#[test]
fn the_same_seed_gives_the_same_texts_for_any_batch_and_threads() {
    let folder = Folder::new();
    let run = |batch: &str, threads: &str, seed: &str| {
        let arguments = ["eval", "--samples", "5", "--generations", "2", "--lp", "none,automaton", "--json"];
        let more = ["--batch", batch, "--threads", threads, "--seed", seed, "--texts", "texts.jsonl"];
        folder.drift(&[&arguments[..], &more].concat()).good();
        folder.read("texts.jsonl")
    };
    let first = run("32", "2", "1");
    assert_eq!(run("7", "1", "1"), first);
    assert_eq!(run("1", "2", "1"), first);
    assert_ne!(run("32", "2", "2"), first);
}

#[test]
fn models_are_set_beside_the_first_one_by_molecule() {
    let folder = Folder::new();
    let root = env!("CARGO_MANIFEST_DIR");
    let models = ["qwen-like", "llama-like"].map(|name| format!("{root}/eval/{name}"));
    let args =
        ["eval", "--samples", "4", "--lp", "automaton", "--likelihood", "--json", "--molecules", "m.jsonl"];
    let more = ["--model", &models[0], "--model", &models[1]];
    let report = folder.drift(&[&args[..], &more].concat()).good().json();
    let lines = std::fs::read_to_string(folder.path().join("m.jsonl")).unwrap();
    let nats: Vec<f64> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["nats"].as_f64().unwrap())
        .collect();
    assert_eq!(nats.len(), 8);
    let expected = (0..4).map(|n| nats[n + 4] - nats[n]).sum::<f64>() / 4.0;
    let scored = &report["likelihoods"];
    assert!(scored[0]["difference"].is_null());
    let difference = scored[1]["difference"]["mean"].as_f64().unwrap();
    assert!((difference - expected).abs() < 1e-9 && difference != 0.0, "{difference} {expected}");
    assert_eq!(scored[1]["difference"]["items"], 4);
}

#[test]
fn a_model_that_learned_holds_reference_conformers_likelier_than_chance() {
    let folder = Folder::new();
    let report =
        folder.drift(&["eval", "--samples", "3", "--lp", "automaton", "--likelihood", "--json"]).good();
    let report = report.json();
    let scored = &report["likelihoods"][0];
    assert_eq!(
        (&scored["model"], &scored["tokenizer"]),
        (&report["runs"][0]["model"], &report["runs"][0]["tokenizer"])
    );
    assert_eq!(scored["conformers"], report["runs"][0]["geometry"]["references"]);
    assert_eq!(scored["nats_per_conformer"]["items"], 3);
    let figure = |value: &Value| value.as_f64().unwrap();
    // Twelve digits of a block are free, the first of each number hardly; ln 10 each is chance.
    let nats = figure(&scored["nats_per_conformer"]["mean"]) / figure(&scored["tokens_per_conformer"]);
    assert!((0.5..2.0).contains(&nats), "{nats}");
}

#[test]
fn texts_or_the_trace_go_to_stdout_alone() {
    let folder = Folder::new();
    let eval = |more: &[&str]| {
        folder.drift(&[&["eval", "--samples", "1", "--lp", "automaton", "--preset", "greedy"], more].concat())
    };
    eval(&["--texts", "texts.jsonl"]).good();
    let printed = eval(&["--texts", "-", "--trace", "trace.json", "-o", "out"]).good();
    assert_eq!(printed.stdout, folder.read("texts.jsonl"));
    let trace = eval(&["--trace", "-"]).good().json();
    assert!(!trace["traceEvents"].as_array().unwrap().is_empty());
    assert!(!folder.path().join("-").exists() && folder.path().join("out/record.json").exists());
    for (two, second) in [
        (&["--texts", "-", "--trace", "-"][..], "--trace -: --texts - already writes to stdout"),
        (&["--texts", "-", "--json"], "--texts -: --json already writes to stdout"),
        (&["--trace", "-", "-o", "-"], "--trace -: -o - already writes to stdout"),
    ] {
        eval(two).refused_for(second);
    }
}

/// What `eval` reports of a checkpoint in the repository: 8 molecules, 2 texts each.
fn shipped(name: &str, lps: &str) -> Value {
    let folder = Folder::new();
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("eval").join(name);
    let corpus = if ["llama-like", "drugs-bins"].contains(&name) { "drug-like" } else { "small" };
    let arguments =
        ["eval", "--model", model.to_str().unwrap(), "--samples", "8", "--generations", "2", "--json"];
    folder.drift(&[&arguments[..], &["--corpus", corpus, "--lp", lps]].concat()).good().json()
}

#[test]
fn reference_checkpoints_copy_alone_and_the_automaton_changes_nothing_legal() {
    for (name, least) in [("qwen-like", 12), ("llama-like", 1), ("small-bins", 12), ("drugs-bins", 12)] {
        let report = shipped(name, "none,automaton");
        let runs = runs(&report);
        assert!(count(runs["none"], "passed") >= least, "{name}: {}", runs["none"]["passed"]);
        assert_eq!(count(runs["automaton"], "passed"), 16, "{name}");
        let pair = &report["comparisons"][0];
        let (same, legal) = (count(pair, "identical"), count(pair, "well_formed_without"));
        assert!(legal >= least && same * 10 >= legal * 9, "{name}: {same} of {legal}");
    }
}

#[test]
fn under_a_tokenizer_without_drift_position_templates_change_no_legal_text() {
    let report = shipped("small-bins", "none,generic,qwen38,qwen39,targeted,allowlist,truncating");
    let runs = runs(&report);
    let junk = |lp: &str| count(runs[lp], "junk_blocks_strict");
    for pair in report["comparisons"].as_array().unwrap() {
        let lp = pair["lp"].as_str().unwrap();
        let (same, legal) = (count(pair, "identical"), count(pair, "well_formed_without"));
        // Sets of tokens are cut before top-k and top-p, so that those processors may change a draw.
        assert!(legal >= 10 && same * 10 >= legal * 9, "{lp}: {same} of {legal}");
        assert_eq!(count(runs[lp], "graph_mismatch"), 0, "{lp}");
        assert!(
            junk(lp) <= junk("none") + 2 && count(runs[lp], "passed") >= count(runs["none"], "passed"),
            "{lp}"
        );
    }
    // All blocks that are three numbers take as many tokens as the placeholder.
    let drift = runs["generic"]["drift"].as_object().unwrap();
    assert!(drift.keys().eq(["0"]) && drift["0"].as_u64().unwrap() > 100, "{drift:?}");
}

#[test]
fn a_trace_opens_and_sums_to_the_time() {
    let folder = Folder::new();
    let arguments = ["eval", "--samples", "2", "--lp", "automaton", "--json", "--trace", "trace.json"];
    let report = folder.drift(&arguments).good().json();
    let trace: Value = serde_json::from_slice(&folder.read("trace.json")).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let spent: f64 = events.iter().filter_map(|event| event["dur"].as_f64()).sum();
    let seconds = &report["runs"][0]["seconds"];
    let measured = seconds["total"].as_f64().unwrap() - seconds["templates"].as_f64().unwrap();
    assert!((spent / 1e6 - measured).abs() < 1e-3 + 0.01 * measured, "{spent} {measured}");
    let compared = folder.drift(&["compare", "trace.json", "trace.json", "--json"]).good().json();
    assert_eq!(compared["kind"], "chrome_trace");
}

#[test]
fn what_cannot_work_is_one_line_with_its_remedy() {
    let folder = Folder::new();
    folder.reference_checkpoint("model");
    let eval =
        |more: &[&str]| folder.drift(&[&["eval", "--samples", "2", "--model", "model"], more].concat());
    eval(&["--placeholder", "0.0,0.0"]).refused_for("three numbers");
    eval(&["--preset", "hot"]).refused_for("no preset");
    // The command that fits it names the built-in model's tokenizer, not a folder that is gone by then.
    let placeholders = concat!(env!("CARGO_MANIFEST_DIR"), "/placeholders/llama-like.json");
    let built_in = folder.drift(&["eval", "--samples", "2", "--placeholder", placeholders]);
    built_in.refused_for("drift fit --tokenizer qwen-like --encoding fixed");
    eval(&["--device", "cuda:0"]).refused_for("--device");
    eval(&["--smiles", "missing.smi"]).refused_for("missing.smi");
    folder.file("bad.smi", "C(\nnothing here\n");
    eval(&["--smiles", "bad.smi"]).refused_for("line 1");
    let long = "CO".repeat(30_000);
    folder.file("long.smi", &long);
    eval(&["--smiles", "long.smi", "--lp", "automaton"]).refused_for("context");

    let weights = folder.read("model/model.safetensors");
    folder.file("model/model.safetensors", &weights[..weights.len() / 2]);
    eval(&[]).refused_for("model.safetensors");
    std::fs::remove_file(folder.path().join("model/model.safetensors")).unwrap();
    eval(&[]).refused_for("safetensors");
    folder.file("model/model.safetensors", &weights);
    let config = String::from_utf8(folder.read("model/config.json")).unwrap();
    let mut other: Value = serde_json::from_str(&config).unwrap();
    other["intermediate_size"] = 48.into();
    folder.file("model/config.json", other.to_string());
    eval(&[]).refused_for("mlp");
    assert!(!folder.listing().keys().any(|path| path.ends_with("record.json")));
}

#[test]
fn the_summary_says_where_the_record_is() {
    let folder = Folder::new();
    folder.file("some.smi", "CC=O ethanal\n");
    let shown = folder.line("eval --smiles some.smi --lp automaton -o out").done();
    assert!(
        shown.text().contains("The record is out/record.json, the page out/eval.html."),
        "{}",
        shown.text()
    );
    assert!(folder.path().join("out/eval.html").is_file());
}

#[test]
fn smiles_of_a_file_are_generated_for_and_bad_lines_listed() {
    let folder = Folder::new();
    folder.file("some.smi", "CC=O ethanal\nC(\nc1ccccc1O\n");
    let ran = folder.drift(&["eval", "--smiles", "some.smi", "--lp", "automaton", "--json"]).done();
    assert!(ran.stderr.contains("skipped: some.smi: line 2: "), "{}", ran.stderr);
    let report = ran.json();
    assert_eq!((count(&report["runs"][0], "samples"), count(&report["runs"][0], "passed")), (2, 2));
    assert!(report["runs"][0]["geometry"].is_null());
}

#[test]
fn a_zero_drift_tokenizer_or_another_one_must_fit_the_model() {
    drift(&["eval", "--samples", "2", "--tokenizer", "llama-like"]).refused_for("llama-like");
}

/// Runs for minutes, unless interrupted: as soon as it has kept a text.
#[cfg(unix)]
fn interrupted(folder: &Folder) -> Ran {
    let arguments = ["eval", "--samples", "200", "--generations", "40", "--lp", "automaton", "--batch", "4"];
    let mut child = program();
    let child = child.args(arguments).args(["-o", "out", "--json"]).current_dir(folder.path());
    let child = child.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = child.spawn().unwrap();
    let journal = folder.path().join("out").join(drift::shard::FILE);
    // Its inputs and the model are kept before.
    let has_text = || std::fs::read_to_string(&journal).unwrap_or_default().contains(r#"{"piece":{"text":"#);
    while !has_text() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before a text was kept");
        std::thread::sleep(Duration::from_millis(20));
    }
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    child.wait_with_output().unwrap().into()
}

#[test]
#[cfg(unix)]
fn what_was_finished_before_an_interrupt_is_kept() {
    let folder = Folder::new();
    let ran = interrupted(&folder);
    assert!(ran.stderr.contains("the record contains what was finished"), "{}", ran.stderr);
    assert_eq!(ran.code, Some(130));
    let report = ran.json();
    assert_eq!(report["interrupted"], true);
    let samples = count(&report["runs"][0], "samples");
    assert!((1..8000).contains(&samples), "{samples}");
    assert_eq!(count(&report["runs"][0], "passed"), samples);
    assert!(folder.listing().keys().any(|path| path.ends_with("record.json")));
}

#[test]
fn two_models_of_one_name_are_refused() {
    let folder = Folder::new();
    folder.file("a/x/config.json", "{}");
    folder.file("b/x/config.json", "{}");
    let ran = folder.drift(&["eval", "--model", "a/x", "--model", "b/x", "--json"]);
    assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0));
    assert!(ran.stderr.contains("two models are called `x`: a/x and b/x"), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1);
}

#[test]
fn a_skeleton_that_the_model_never_saw_is_not_forced() {
    let folder = Folder::new();
    folder.file("spelled.smi", "CC[OH]\n");
    let arguments = ["eval", "--smiles", "spelled.smi", "--json", "--max-new-tokens", "8", "--lp"];
    let ran = folder.drift(&[&arguments[..], &["automaton"]].concat());
    assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("1 atoms are spelled like [OH]; the corpus spells them like [O]"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("the program that wrote the training text"), "{}", ran.stderr);
    // Without a logit processor nothing is forced; a radical's hydrogens are not needless.
    let free = folder.drift(&[&arguments[..], &["none"]].concat()).good().json();
    assert_eq!(free["protocol"]["prompts_not_in_their_spelling"], 1);
    assert_eq!(free["runs"][0]["no_eos_by_3dmolgen"], 1);
    folder.file("spelled.smi", "CC[NH]\n");
    assert_eq!(folder.drift(&[&arguments[..], &["automaton"]].concat()).code, Some(0));
}

#[test]
fn the_encoding_of_clipped_texts_is_told() {
    let folder = Folder::new();
    let arguments = "eval --samples 24 --lp generic,targeted,allowlist --placeholder 0.000,0.000,0.000";
    folder.line(&format!("{arguments} --texts texts.jsonl -o out"));
    let lines = texts(&folder, "texts.jsonl");
    for lp in ["generic", "targeted", "allowlist"] {
        let own: Vec<String> = lines.iter().filter(|line| line["lp"] == lp).map(Value::to_string).collect();
        assert_eq!(own.len(), 24);
        folder.file("own.jsonl", own.join("\n"));
        let report = folder.drift(&["audit", "own.jsonl", "--json"]).good().json();
        assert_eq!((&report["dialect"], &report["dialect_from"]), (&"fixed".into(), &"texts".into()), "{lp}");
        assert!(count(&report["total"], "truncated_blocks") > 0, "{lp}");
    }
}

#[test]
fn what_the_mask_left_is_reported_and_resampled_by() {
    let folder = Folder::new();
    // A model from which the mask takes something: the built-in one copies nearly every SMILES by itself.
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/eval/llama-like");
    let arguments =
        words("eval --samples 2 --generations 6 --lp none,automaton --json --texts texts.jsonl --model");
    let run = |more: &[&str]| folder.drift(&[&arguments[..], &[model], more].concat());
    let hot = ["--preset", "top-p-1.0-t1.0"];
    let plain = run(&[&hot[..], &["--probabilities"]].concat()).good().json();
    let plain_texts = texts(&folder, "texts.jsonl");
    let mean = |run: &Value| run["mask_cost"]["log_z"]["mean"].as_f64().unwrap();
    let of = runs(&plain);
    assert_eq!(mean(of["none"]), 0.0);
    let cost = &of["automaton"]["mask_cost"];
    assert!(mean(of["automaton"]) < -0.1 && count(cost, "texts") == 12, "{cost}");
    let classes = cost["classes"].as_array().unwrap();
    let sum: f64 = classes.iter().map(|class| class["log_z"]["mean"].as_f64().unwrap()).sum();
    assert!((sum - mean(of["automaton"])).abs() < 1e-9);
    // Every token counts, and each end of text.
    let tokens: u64 = classes.iter().map(|class| count(class, "tokens")).sum();
    assert_eq!(tokens, count(of["automaton"], "generated_tokens") + 12);
    assert!(of["automaton"].get("resampling").is_none() && plain["protocol"].get("resample").is_none());

    let resampled =
        run(&[&hot[..], &["--resample", "6", "--batch", "6", "-o", "out"]].concat()).good().json();
    let resampled_texts = texts(&folder, "texts.jsonl");
    let page = String::from_utf8(folder.read("out/eval.html")).unwrap();
    assert!(page.contains("What the mask costs") && page.contains(": resampling<"));
    let record: EvalReport = serde_json::from_slice(&folder.read("out/record.json")).unwrap();
    assert_eq!(serde_json::to_value(&record.runs[1]).unwrap(), resampled["runs"][1]);
    let of = runs(&resampled);
    assert_eq!(
        (resampled["protocol"]["resample"].as_u64(), count(of["automaton"], "samples")),
        (Some(6), 12)
    );
    assert_eq!(of["none"]["resampling"]["ancestors"]["mean"], 6.0);
    assert_eq!(of["none"]["resampling"]["resamplings"], 0);
    let group = &of["automaton"]["resampling"];
    assert!(
        group["effective"]["mean"].as_f64().unwrap() < 6.0
            && group["ancestors"]["mean"].as_f64().unwrap() < 6.0
    );
    assert_eq!((count(group, "groups"), count(group, "draws")), (2, 6));
    assert!(mean(of["automaton"]) > mean(runs(&plain)["automaton"]));
    // Without a mask nothing changes, and with one some texts do.
    assert!(plain_texts[..12] == resampled_texts[..12] && plain_texts[12..] != resampled_texts[12..]);
    run(&[&hot[..], &["--resample", "6", "--batch", "17", "--threads", "1"]].concat()).good();
    assert!(texts(&folder, "texts.jsonl") == resampled_texts);

    run(&["--resample", "8", "--batch", "7"]).refused_for("8 texts are drawn together, a batch has 7 rows");
    run(&["--resample", "4", "--preset", "greedy"]).refused_for("a greedy preset does not sample");
    // So many texts at least.
    let few =
        folder.drift(&["eval", "--samples", "1", "--lp", "automaton", "--resample", "3", "--json"]).good();
    assert_eq!(count(&few.json()["runs"][0], "samples"), 3);
}

#[test]
fn conformers_of_one_text_are_judged_each_by_itself() {
    let folder = Folder::new();
    let run = |more: &[&str]| {
        let arguments =
            ["eval", "--samples", "3", "--lp", "allowlist,automaton", "--texts", "texts.jsonl", "--json"];
        folder.drift(&[&arguments[..], more].concat())
    };
    let report = run(&["--conformers", "2", "--generations", "2"]).good().json();
    let together = texts(&folder, "texts.jsonl");
    let of = runs(&report);
    assert_eq!((count(of["automaton"], "samples"), count(of["automaton"], "passed")), (12, 12));
    assert_eq!((count(of["allowlist"], "samples"), count(of["allowlist"], "graph_mismatch")), (12, 0));
    assert_eq!(report["protocol"]["conformers"], 2);
    let generations: Vec<u64> = together[..4].iter().map(|line| count(line, "generation")).collect();
    assert_eq!(generations, [0, 1, 2, 3]);
    let whole = |line: &Value| {
        let text = line["text"].as_str().unwrap();
        text.starts_with("[CONFORMER][")
            && text.ends_with("[/CONFORMER]")
            && text.matches("[CONFORMER]").count() == 1
    };
    assert!(together.len() == 24 && together.iter().all(whole));

    // The first conformer of a text is what a text of one conformer holds, behind a prompt that opens it too.
    let first = |lines: &[Value]| lines.iter().map(|line| line["text"].clone()).collect::<Vec<_>>();
    let every_other: Vec<Value> = together.iter().step_by(2).cloned().collect();
    run(&["--generations", "2"]).good();
    assert_eq!(first(&texts(&folder, "texts.jsonl")), first(&every_other));
    let opened = run(&["--generations", "2", "--opened"]).good().json();
    assert_eq!(count(runs(&opened)["automaton"], "passed"), 6);
    assert!(texts(&folder, "texts.jsonl").iter().all(whole));

    // Worked examples and the end of text change what the model reads, not what a text is.
    folder.file(
        "examples.jsonl",
        "{\"canonical_smiles\":\"CO\",\"embedded_smiles\":\"[C]<0.7000,0.0000,0.0000>[O]<-0.7000,0.0000,0.0000>\"}\n",
    );
    let shown = run(&["--examples", "examples.jsonl", "--eos", "[/CONFORMER]"]).good().json();
    assert_eq!(
        (&shown["protocol"]["examples"][0], &shown["protocol"]["eos"]),
        (&"CO".into(), &"[/CONFORMER]".into())
    );
    assert_eq!(count(runs(&shown)["automaton"], "passed"), 3);
    assert!(texts(&folder, "texts.jsonl").iter().all(whole));

    run(&["--eos", "[/CONFORMERS]"]).refused_for("is not a token");
    folder.file("many.jsonl", String::from_utf8(folder.read("examples.jsonl")).unwrap().repeat(11));
    run(&["--examples", "many.jsonl"]).refused_for("contain 11 conformers");
    folder.file("none.jsonl", "{}\n");
    run(&["--examples", "none.jsonl"]).refused_for("none.jsonl");
    let both = run(&["--conformers", "2", "--resample", "2"]);
    assert!(
        both.code == Some(2) && both.stderr.contains("cannot be used with '--resample"),
        "{}",
        both.stderr
    );
}

#[test]
fn texts_are_set_beside_those_of_another_run() {
    let folder = Folder::new();
    let arguments = ["eval", "--samples", "3", "--preset", "greedy", "--lp", "none,automaton"];
    let with = |more: &[&str]| folder.drift(&[&arguments[..], more].concat());
    with(&["--texts", "texts.jsonl"]).good();
    let report = with(&["--same-as", "texts.jsonl", "--json"]).good().json();
    let same = &report["same_texts"];
    assert_eq!((&same["compared"], &same["equal"], &same["missing"]), (&6.into(), &6.into(), &0.into()));
    // What had to be moved is counted. There is no share where other work slowed the measurement of memory down too much.
    for run in runs(&report).values() {
        let floor = &run["floor"];
        assert!(floor["bytes"].as_f64().unwrap() > 1e7 && floor["operations"].as_f64().unwrap() > 1e7);
        let [rate, share] = ["bytes_per_second", "floor_share"].map(|name| floor[name].as_f64());
        assert_eq!(rate.is_some(), share.is_some());
        assert!(share.is_none_or(|share| share > 0.0 && share <= 1.0), "{share:?}");
    }

    // One text differs in its first number, one is missing.
    let mut lines = texts(&folder, "texts.jsonl");
    lines.remove(4);
    let text = lines[4]["text"].as_str().unwrap().to_owned();
    let at = text.find('<').unwrap() + 1;
    lines[4]["text"] = format!("{}7.7{}", &text[..at], &text[at..]).into();
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    folder.file("other.jsonl", lines.join("\n"));
    let report = with(&["--same-as", "other.jsonl", "--json"]).good().json();
    let same = &report["same_texts"];
    assert_eq!((&same["compared"], &same["equal"], &same["missing"]), (&5.into(), &4.into(), &1.into()));
    let [difference] = &same["differences"].as_array().unwrap()[..] else { panic!("{same}") };
    assert!(difference["theirs"].as_str().unwrap().contains("7.7"), "{difference}");
    assert!(difference["lead"].as_f64().unwrap() > 0.0, "{difference}");
    let shown = with(&["--same-as", "other.jsonl"]).good();
    assert!(shown.text().contains("beside other.jsonl: 4 of 5 texts are the same"), "{}", shown.text());
    // However long its SMILES: the last column stands beside the first.
    let header =
        shown.text().lines().find(|line| line.contains("tokens  this run")).unwrap_or_default().to_owned();
    assert!(header.starts_with("model") && header.contains("lead of the"), "{}", shown.text());

    folder.file("broken.jsonl", "{\"smiles\": 1}\n");
    with(&["--same-as", "broken.jsonl"]).refused_for("broken.jsonl, line 1: is not a text of an evaluation");
    with(&["--same-as", "absent.jsonl"]).refused_for("absent.jsonl");
}
