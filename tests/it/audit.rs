//! `drift audit`: the counts of generated text, from every file that it comes in.

use std::io::Write;

use drift::audit::align::aligned_rmsd;
use drift::audit::geometry::Topology;
use drift::audit::{
    DriftHistogram, EncodingCounts, Outcome, SampleCounts, TextSample, in_angstrom, judge, split,
};
use drift::chem::{AtomLimit, Isotopes};
use drift::corpus::{Conformer, EmbeddedConformers};
use drift::encoding::Encoding;
use drift::text::{skeleton, tagged, write};
use drift::tokenizer::{Tokenizer, block_ranges};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Folder, batches, drift};

fn answer(blocks: [&str; 2]) -> String {
    format!("[CONFORMER][C]<{}>[O]<{}>[/CONFORMER]", blocks[0], blocks[1])
}

fn decoded(blocks: [&str; 2]) -> String {
    format!("<|pad|>[SMILES]CO[/SMILES]{}<|endoftext|>", answer(blocks))
}

const GOOD: [&str; 2] = ["1.2340,-0.5000,0.1000", "-1.2000,0.5432,12.0001"];

/// A report as the users' script writes it.
fn smoke_report() -> Value {
    json!({
        "metadata": {"version": "v4.3_allowlist_smart", "processor_type": "qwen", "batch_size": 32},
        "time_taken": 12.5,
        "num_passed": 2,
        "num_failed": 3,
        "summary": {"smiles_exact_matches": 2},
        "passes": [
            {"prompt_smiles": "CO", "generated_smiles": "CO", "parse_success": true, "decoded_text": decoded(GOOD)},
            {"prompt_smiles": "OC", "generated_smiles": "CO", "all_generations": [
                decoded(["1.2340,-0.5000,0.10005", GOOD[1]]),
                {"decoded_text": decoded(["1.2340,-0.5000,0.", GOOD[1]])},
            ]},
        ],
        "failures": [
            {"prompt_smiles": "CO", "issues": ["parse"], "decoded_text": decoded([GOOD[0], "5.7990,-0.2748,-0.9587abra"])},
            {"prompt_smiles": "CO", "issues": ["parse"], "decoded_text": decoded([GOOD[0], "-10.4289,-0.243592"])},
            {"prompt_smiles": "CN", "issues": ["graph"], "decoded_text": decoded(GOOD)},
            {"prompt_smiles": "CO", "issues": ["eos"], "decoded_text": "[SMILES]CO[/SMILES][CONFORMER][C]<1.0000,2.0"},
            {"prompt_smiles": "not a molecule", "issues": [], "decoded_text": decoded(GOOD)},
            {"prompt_smiles": "CO", "issues": []},
        ],
    })
}

fn check_smoke(report: &Value) {
    let expected = json!({
        "samples": 7, "passed": 3, "graph_mismatch": 1, "parse_failures": 2, "no_eos": 1, "without_prompt": 0,
        "blocks": 12, "junk_blocks_strict": 2, "junk_blocks_letters": 1, "truncated_blocks": 2, "invented_blocks": 2,
        "lost_digits": 8, "invented_digits": 3,
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&report["total"][field], value, "{field}: {report:#}");
    }
    assert_eq!((&report["dialect"], &report["dialect_from"]), (&json!("fixed"), &json!("texts")));
    let theirs = json!({
        "passed_by_3dmolgen": 4, "graph_mismatch_by_3dmolgen": 1, "parse_failures_by_3dmolgen": 1, "no_eos_by_3dmolgen": 1,
        "junk_blocks_strict_by_3dmolgen": 3,
    });
    for (field, value) in theirs.as_object().unwrap() {
        assert_eq!(&report["total"][field], value, "{field}: {report:#}");
    }
    let own = json!({
        "version": "v4.3_allowlist_smart", "processor_type": "qwen", "num_passed": 2, "num_failed": 3, "parse_failures": null,
        "recounted": {"samples": 6, "num_passed": 3, "graph_mismatch": 1, "parse_failures": 1, "no_eos": 1},
        "further_generations": 1,
    });
    for (field, value) in own.as_object().unwrap() {
        assert_eq!(&report["reports_by_3dmolgen"][0][field], value, "{field}: {report:#}");
    }
    let warnings: Vec<&str> =
        report["warnings"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
    assert!(warnings[0].contains("shares over all texts are too high"), "{warnings:?}");
    assert!(
        warnings[1].contains("says that 2 passed and 3 failed; its texts come to 3 and 3"),
        "{warnings:?}"
    );
    assert_eq!((&report["prompts"], &report["prompts_not_in_their_spelling"]), (&json!(3), &json!(0)));
    assert_eq!(report["skipped"], 2);
    let reasons: Vec<&str> =
        report["skipped_records"].as_array().unwrap().iter().map(|r| r["reason"].as_str().unwrap()).collect();
    assert!(reasons[0].contains("not a molecule") && reasons[1].contains("decoded_text"), "{reasons:?}");
    let faults: Vec<&str> =
        report["examples"].as_array().unwrap().iter().map(|e| e["fault"].as_str().unwrap()).collect();
    assert_eq!(faults, ["invented", "truncated", "letters", "junk"]);
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn smoke_reports_are_read_plain_in_one_line_and_gzipped() {
    let folder = Folder::new();
    let report = smoke_report();
    folder.file("report.json", serde_json::to_string_pretty(&report).unwrap());
    folder.file("line.json", report.to_string());
    folder.file("report.json.gz", gzipped(report.to_string().as_bytes()));
    for name in ["report.json", "line.json", "report.json.gz"] {
        let ran = folder.drift(&["audit", "--json", name]).good();
        check_smoke(&ran.json());
    }
    // Several files: one row each, and their sum.
    let both = folder.drift(&["audit", "--json", "report.json", "line.json"]).good().json();
    assert_eq!(both["files"].as_array().unwrap().len(), 2);
    assert_eq!((&both["total"]["samples"], &both["total"]["blocks"]), (&json!(14), &json!(24)));
    let ran = folder.drift(&["audit", "report.json"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("skipped: report.json: failures[4]: prompt:"), "{}", ran.stderr);
    for shown in
        ["42.9 %", "-0.9587abra", "truncated", "passes[1].all_generations[0]", "pass: 3 of 7 samples"]
    {
        assert!(ran.text().contains(shown), "{shown}: {}", ran.text());
    }
}

/// What made a report counted its texts, however many conformers each holds.
#[test]
fn a_report_is_recounted_by_texts_where_all_conformers_are_judged() {
    let folder = Folder::new();
    let mut report = smoke_report();
    let second = |blocks: [&str; 2]| format!("{}<|endoftext|>", answer(blocks));
    let twice = |blocks: [&str; 2]| decoded(blocks).replace("<|endoftext|>", &second(GOOD));
    report["passes"][0]["decoded_text"] = json!(twice(GOOD));
    report["passes"][1]["all_generations"][1]["decoded_text"] = json!(twice(["1.2340,-0.5000,0.", GOOD[1]]));
    report["failures"][0]["decoded_text"] = json!(twice([GOOD[0], "5.7990,-0.2748,-0.9587abra"]));
    folder.file("report.json", report.to_string());
    let run = |conformers: &str| {
        folder.drift(&["audit", "--json", "--conformers", conformers, "report.json"]).good().json()
    };
    let (first, all) = (run("first"), run("all"));
    assert_eq!((&first["total"]["samples"], &all["total"]["samples"]), (&json!(7), &json!(10)));
    assert_eq!(first["reports_by_3dmolgen"], all["reports_by_3dmolgen"]);
    let recounted = &all["reports_by_3dmolgen"][0];
    assert_eq!(
        (&recounted["recounted"]["samples"], &recounted["further_generations"]),
        (&json!(6), &json!(1))
    );
}

/// Blocks are quoted as they were judged, where slots also stand behind bonds and branches, or have no brackets.
#[test]
fn faulty_blocks_are_those_at_fault_in_every_encoding() {
    let folder = Folder::new();
    let quoted = |encoding: &str, answer: &str| {
        let text = format!("[SMILES]CCO[/SMILES][CONFORMER]{answer}[/CONFORMER]");
        folder.file("texts.txt", text);
        let arguments =
            ["audit", "--json", "--encoding", encoding, "texts.txt", "--verdicts", "verdicts.jsonl"];
        let report = folder.drift(&arguments).good().json();
        let verdicts = String::from_utf8(folder.read("verdicts.jsonl")).unwrap();
        let verdict: Value = serde_json::from_str(verdicts.lines().next().unwrap()).unwrap();
        let examples = report["examples"].as_array().unwrap().clone();
        let blocks: Vec<String> = examples.iter().map(|e| e["block"].as_str().unwrap().to_owned()).collect();
        (verdict["why"].as_str().unwrap().to_owned(), blocks.join(" "))
    };
    let (why, blocks) = quoted("fsq:512", "[C]<1>-<900>[C]<2>(<3>[O]<x>)<4>");
    assert_eq!((&*why, &*blocks), ("parse failure: block 3 is not a number: x", "x"));
    let (why, blocks) = quoted("binned-v2:-13,13,0.104", "[C]166156135;[C]16615;[O]166156135;");
    assert_eq!((&*why, &*blocks), ("parse failure: block 2 is not three numbers: 16615", "16615"));
    let (why, blocks) =
        quoted("fixed", "[C]<0.0000,0.0000,0.0000>[C]<1.5000,0.0000,abc>[O]<2.1000,1.2000,0.0000>");
    assert_eq!(
        (&*why, &*blocks),
        ("parse failure: block 2 is not three numbers: 1.5000,0.0000,abc", "1.5000,0.0000,abc")
    );
}

#[test]
fn the_encoding_is_told_by_evidence_or_asked_for() {
    let folder = Folder::new();
    // Blocks as a fixed model writes them under a template that clips z: the second begins with what was cut off.
    let clipped = decoded(["1.2345,-0.5111,0.1", "234,1.2345,-0.5"]);
    folder.file("clipped.txt", &clipped);
    let ran = folder.drift(&["audit", "--json", "clipped.txt"]);
    assert_eq!((ran.code, ran.stdout.len(), ran.stderr.lines().count()), (Some(2), 0, 1), "{}", ran.stderr);
    assert!(ran.stderr.contains("do not tell fixed from stripped"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--dialect fixed or --dialect stripped"), "{}", ran.stderr);
    let both = [decoded(GOOD), decoded(["1.234,0.5,0.1", GOOD[1]])].join("\n");
    folder.file("both.txt", both);
    let ran = folder.drift(&["audit", "--json", "both.txt"]);
    assert!(
        ran.code == Some(2) && ran.stderr.contains("2 blocks are fixed alone, 1 stripped alone"),
        "{}",
        ran.stderr
    );
    let told = |arguments: &[&str]| {
        let report = folder.drift(&[&["audit", "--json", "clipped.txt"], arguments].concat()).good().json();
        (report["dialect"].clone(), report["dialect_from"].clone())
    };
    assert_eq!(told(&["--dialect", "stripped"]), (json!("stripped"), json!("given")));
    folder.file("model/recipe.json", r#"{"recipe": {"dialect": "stripped"}}"#);
    assert_eq!(told(&["--model", "model"]), (json!("stripped"), json!("recipe")));
    folder.file(
        "references.jsonl",
        json!({"embedded_smiles": "[C]<1.2340,0.0000,1.0000>[O]<1.0000,2.0000,3.0000>"}).to_string(),
    );
    assert_eq!(told(&["--references", "references.jsonl"]), (json!("fixed"), json!("references")));
    let ran = folder.drift(&["audit", "clipped.txt", "--model", "absent"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("is no folder"), "{}", ran.stderr);
}

#[test]
fn texts_of_a_data_set_stand_between_tags_and_others_do_not() {
    let folder = Folder::new();
    let text = "[C]<1.2340,0.0000,1.0000>[O]<1.0000,2.0000,3.0000>";
    let rows = [
        json!({"canonical_smiles": "CO", "embedded_smiles": text}),
        json!({"canonical_smiles": "CO", "text": text}),
        json!({"canonical_smiles": "CO", "text": format!("[CONFORMER]{text}")}),
        json!({"canonical_smiles": "CO", "text": "[CONFORMER][C]<0.0000,0.1230,0.0000>[O][/CONFORMER]"}),
    ];
    folder.file("rows.jsonl", rows.map(|row| row.to_string()).join("\n"));
    let total = folder.drift(&["audit", "--json", "rows.jsonl"]).good().json()["total"].clone();
    let counts = |suffix: &str| {
        ["passed", "no_eos", "parse_failures"]
            .map(|field| total[format!("{field}{suffix}")].as_u64().unwrap())
    };
    assert_eq!((counts(""), counts("_by_3dmolgen")), ([1, 2, 1], [1, 2, 1]));
}

#[test]
fn what_engines_write_is_read() {
    let folder = Folder::new();
    let bad = answer([GOOD[0], "1.0000,2.0000,3C"]);
    let choices =
        json!([{"index": 0, "text": answer(GOOD), "finish_reason": "stop"}, {"index": 1, "text": bad}]);
    let batch = |body: Value| json!({"id": "a", "custom_id": "[SMILES]CO[/SMILES] 17", "response": {"status_code": 200, "body": body}, "error": null});
    let chat = json!([{"index": 0, "message": {"role": "assistant", "content": answer(GOOD)}}]);
    let rows = [
        // vLLM offline and SGLang: the prompt with its tags beside the texts.
        json!({"prompt": "[SMILES]CO[/SMILES]", "outputs": [{"text": answer(GOOD), "token_ids": [1, 2]}, {"text": bad}]}),
        json!({"prompt": "[SMILES]CO[/SMILES]", "text": answer(GOOD), "meta_info": {"id": "b"}}),
        // OpenAI's interface: an answer with what was asked, an answer that echoes it, a line of a batch, a chat.
        json!({"smiles": "CO", "object": "text_completion", "choices": choices}),
        json!({"choices": [{"text": decoded(GOOD)}, {"text": null}]}),
        batch(json!({"choices": choices})),
        batch(json!({"choices": chat})),
        // A prompt without tags says nothing; a request that failed has no text.
        json!({"prompt": "draw me a molecule", "text": answer(GOOD)}),
        json!({"custom_id": "[SMILES]CO[/SMILES] 18", "response": null, "error": {"message": "too long"}}),
    ];
    folder.file("rows.jsonl", rows.map(|row| row.to_string()).join("\n"));
    let report = folder.drift(&["audit", "--json", "rows.jsonl"]).good().json();
    let total = &report["total"];
    for (field, expected) in
        [("samples", 10), ("passed", 7), ("parse_failures", 3), ("without_prompt", 1), ("graph_mismatch", 0)]
    {
        assert_eq!(total[field], expected, "{field}: {total:#}");
    }
    let places: Vec<&Value> =
        report["skipped_records"].as_array().unwrap().iter().map(|s| &s["record"]).collect();
    assert_eq!(places, ["line 4.choices[1]", "line 8"]);
}

#[test]
fn prompts_in_another_spelling_are_counted() {
    let folder = Folder::new();
    let row = |prompt: &str| json!({"smiles": prompt, "text": answer(GOOD)}).to_string();
    folder.file("rows.jsonl", [row("CO"), row("C[OH]"), row("[CH3]O"), row("C-O"), row("C-O")].join("\n"));
    let report = folder.drift(&["audit", "--json", "rows.jsonl"]).good().json();
    assert_eq!((&report["prompts"], &report["prompts_not_in_their_spelling"]), (&json!(4), &json!(3)));
    assert_eq!(report["foreign_prompts"][2]["reason"], "a single bond that need not be written");
    // They are the same molecule all the same.
    assert_eq!((&report["total"]["passed"], &report["total"]["passed_by_3dmolgen"]), (&json!(5), &json!(5)));
    let shown = folder.drift(&["audit", "rows.jsonl"]).good();
    assert!(shown.text().contains("3 of 4 prompts"), "{}", shown.text());
}

#[test]
fn texts_of_evaluations_are_told_apart_by_processor() {
    let folder = Folder::new();
    let row = |lp: &str, generation: u32, text: &str| {
        json!({"smiles": "CO", "generation": generation, "lp": lp, "text": text}).to_string()
    };
    let lines = [
        row("none", 0, &answer(GOOD)),
        row("automaton", 0, &answer(GOOD)),
        "{broken".to_owned(),
        row("none", 1, &answer([GOOD[0], "1.0000,2.0000,3C"])),
        "[1, 2]".to_owned(),
        String::new(),
    ];
    folder.file("texts.jsonl", lines.join("\n"));
    let report = folder.drift(&["audit", "--json", "texts.jsonl"]).good().json();
    let rows: Vec<(&str, u64, u64)> = report["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| (f["lp"].as_str().unwrap(), f["samples"].as_u64().unwrap(), f["passed"].as_u64().unwrap()))
        .collect();
    assert_eq!(rows, [("automaton", 1, 1), ("none", 2, 1)]);
    assert_eq!(report["skipped"], 2);
    assert_eq!(report["skipped_records"][0]["record"], "line 3");
}

#[test]
fn plain_texts_need_no_tags() {
    let folder = Folder::new();
    let lines = [&decoded(GOOD), "[C]<1.5,-2,0.25>[O]<1,2,3.125>", "a remark"];
    folder.file("plain.txt", lines.join("\r\n"));
    let report = folder.drift(&["audit", "--json", "--dialect", "stripped", "plain.txt"]).good().json();
    let total = &report["total"];
    assert_eq!((&total["samples"], &total["without_prompt"]), (&json!(2), &json!(1)));
    // The first line's trailing zeros are not of this encoding.
    assert_eq!((&total["invented_blocks"], &total["invented_digits"]), (&json!(2), &json!(1 + 3 + 3 + 3)));
    assert_eq!((&total["truncated_blocks"], &total["lost_digits"]), (&Value::Null, &Value::Null));
    assert_eq!(report["skipped_records"][0]["reason"], "contains no enriched text");
}

#[test]
fn bad_files_are_refused_in_one_line() {
    let folder = Folder::new();
    let report = serde_json::to_string_pretty(&smoke_report()).unwrap();
    folder.file("empty.txt", "");
    folder.file("remarks.txt", "one\ntwo\n");
    folder.file("cut.json", &report[..report.len() / 2]);
    folder.file("lists.json", r#"{"passes": 3, "failures": null}"#);
    folder.file("nothing.json", r#"{"passes": [], "failures": []}"#);
    folder.file("array.json", "[{\"text\": 1}");
    folder.file("fields.jsonl", "{\"a\": 1}\n{\"b\": 2}\n");
    let packed = gzipped(report.as_bytes());
    folder.file("cut.json.gz", &packed[..packed.len() / 2]);
    folder.file("good.json", &report);
    for (name, problem) in [
        ("absent.json", "absent.json"),
        ("empty.txt", "contains no text; give a smoke report"),
        ("remarks.txt", "contains no text: 2 records skipped, first: line 1: contains no enriched text"),
        ("cut.json", "not JSON: EOF while parsing"),
        ("lists.json", "1 record skipped, first: passes: not an array"),
        ("nothing.json", "contains no text"),
        ("array.json", "not JSON"),
        ("fields.jsonl", "2 records skipped, first: line 1: contains none of decoded_text"),
        ("cut.json.gz", "cut.json.gz"),
        (".", "."),
    ] {
        // A good file beside it does not help.
        for files in [vec![name], vec!["good.json", name]] {
            let ran = folder.drift(&[&["audit", "--json"], &files[..]].concat());
            assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0), "{name}: {}", ran.stderr);
            assert_eq!(ran.stderr.lines().count(), 1, "{name}: {}", ran.stderr);
            assert!(ran.stderr.contains(problem), "{name}: {}", ran.stderr);
        }
    }
    let ran = folder.drift(&["audit", "good.json", "--tokenizer", "qwen-like", "--placeholder", "1,2"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("--placeholder: block contains 2 numbers"), "{}", ran.stderr);
    let ran = folder.drift(&["audit", "good.json", "--tokenizer", "absent"]);
    assert_eq!(ran.code, Some(2));
}

#[test]
fn drift_of_generated_blocks_is_counted() {
    let folder = Folder::new();
    folder.file("texts.txt", answer(["-1.2345,0.0000,0.0000", "11.2345,-0.5000,1.0000"]));
    let arguments = ["audit", "--json", "texts.txt", "--tokenizer", "qwen-like"];
    let report = folder.drift(&arguments).good().json();
    // The sign of x, and the tens of x, are one token each.
    assert_eq!(report["total"]["drift"], json!({"-1": 2}));
    assert_eq!(report["tokenizer"], "qwen-like");
    let signed = folder.drift(&[&arguments[..], &["--placeholder", "-0.0000,0.0000,0.0000"]].concat());
    assert_eq!(signed.good().json()["total"]["drift"], json!({"0": 2}));
    let table =
        drift(&["audit", folder.path().join("texts.txt").to_str().unwrap(), "--tokenizer", "qwen-like"]);
    assert!(table.good().text().contains("tokens cut off"));
}

fn embedded() -> Vec<Conformer> {
    batches(&EmbeddedConformers::default())
        .into_iter()
        .flat_map(|batch| batch.into_iter().step_by(20))
        .collect()
}

#[test]
fn true_texts_are_without_fault() {
    let tokenizer = Tokenizer::load(std::path::Path::new("llama-like")).unwrap();
    for encoding in Encoding::ALL {
        let mut counts = SampleCounts::new(encoding);
        let mut drift = DriftHistogram::default();
        let mut texts = Vec::new();
        for conformer in embedded() {
            let answer = tagged(&write(&conformer.skeleton, &conformer.coordinates, encoding));
            let prompt = skeleton::smiles(&conformer.skeleton);
            let judged = judge(&TextSample {
                prompt: Some(&prompt),
                answer: &answer,
                ended: true,
                encoding,
                max_atoms: AtomLimit::default(),
                isotopes: Isotopes::Ignore,
            });
            assert_eq!(
                (judged.outcome, &*judged.skeleton),
                (Outcome::Pass, &*conformer.skeleton),
                "{answer}"
            );
            counts.add(&judged, true);
            let template = skeleton::fill(&judged.skeleton, "0.0000,0.0000,0.0000", drift::Encoding::FIXED);
            drift.add(&tokenizer, Encoding::FIXED, split(&answer).answer, &template, |_| true).unwrap();
            texts.push(answer);
        }
        let clean = SampleCounts {
            samples: counts.samples,
            passed: counts.samples,
            passed_by_3dmolgen: counts.samples,
            blocks: counts.blocks,
            // Stripped texts do not show it.
            truncated_blocks: encoding.is_fixed().then_some(0),
            ..SampleCounts::new(encoding)
        };
        assert_eq!(counts, clean);
        assert_eq!(drift.0.values().sum::<u64>(), counts.blocks);
        let blocks = texts.iter().flat_map(|text| block_ranges(text).into_iter().map(|range| &text[range]));
        assert_eq!(EncodingCounts::from_blocks(blocks, encoding).encoding(encoding), Some(encoding));
    }
}

#[test]
fn geometry_is_compared_with_references() {
    let folder = Folder::new();
    let conformers: Vec<Conformer> = embedded().into_iter().take(12).collect();
    let prompt = |c: &Conformer| skeleton::smiles(&c.skeleton);
    let text = |c: &Conformer| write(&c.skeleton, &c.coordinates, Encoding::FIXED);
    let references: Vec<String> = conformers
        .iter()
        .map(|c| json!({"canonical_smiles": prompt(c), "embedded_smiles": text(c)}).to_string())
        .collect();
    folder.file("references.jsonl", references.join("\n"));
    // Every molecule as it is; the first one again, stretched; the last one as junk.
    let row = |c: &Conformer, text: String| json!({"smiles": prompt(c), "text": tagged(&text)}).to_string();
    let mut rows: Vec<String> = conformers[..11].iter().map(|c| row(c, text(c))).collect();
    let mut stretched = conformers[0].clone();
    stretched.coordinates.iter_mut().flatten().for_each(|value| *value += *value / 10);
    rows.push(row(&stretched, text(&stretched)));
    rows.push(row(&conformers[11], text(&conformers[11]).replacen(',', ";", 1)));
    folder.file("texts.jsonl", rows.join("\n"));
    let arguments = ["audit", "texts.jsonl", "--references", "references.jsonl"];
    let report = folder.drift(&[&arguments[..], &["--json"]].concat()).good().json();
    let geometry = &report["total"]["geometry"];
    for (field, expected) in
        [("molecules", 12), ("molecules_with_conformers", 11), ("conformers", 12), ("references", 12)]
    {
        assert_eq!(geometry[field], expected, "{field}: {geometry:#}");
    }
    let mean = |field: &str| geometry[field]["mean"].as_f64().unwrap();
    let at = &report["total"]["coverage"]["thresholds"][0];
    let coverage = |field: &str| at[field]["mean"].as_f64().unwrap();
    assert!((coverage("cov_r") - 11.0 / 12.0).abs() < 1e-12);
    assert!(mean("mat_recall_angstrom") < 1e-6);
    // One of two conformers of one of eleven molecules is a tenth too long in every bond.
    let error = mean("bond_length_error_angstrom") * 11.0 * 2.0 / 0.1;
    assert!((1.1..1.8).contains(&error), "{error} is no bond length");
    assert!(mean("mat_precision_angstrom") > 0.0 && coverage("cov_p") <= 11.0 / 12.0);
    let shown = folder.drift(&arguments).good();
    assert!(shown.text().contains("11 of 12") && shown.text().contains("91.67"), "{}", shown.text());

    folder.file("others.jsonl", json!({"embedded_smiles": "[Xe]<1.0000,2.0000,3.0000>"}).to_string());
    let ran = folder.drift(&["audit", "texts.jsonl", "--references", "others.jsonl", "--json"]);
    assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0));
    assert!(ran.stderr.contains("--references: contain none of the molecules"), "{}", ran.stderr);
}

#[test]
fn a_conformer_covers_itself() {
    for conformer in embedded().into_iter().take(40) {
        let molecule = Topology::new(&conformer.skeleton).unwrap();
        let own = in_angstrom(&conformer.coordinates, drift::Encoding::FIXED);
        let turned: Vec<[f64; 3]> = own.iter().map(|[x, y, z]| [*z + 1.0, *x - 2.0, *y]).collect();
        let references = [own.clone()];
        let found = molecule.compare(&[turned], &references).unwrap();
        assert!(found.bond_errors[0].unwrap() < 1e-9);
        assert!(found.upper_bounds == [0] && found.rmsd[0][0] < 1e-6, "{found:?}");
        let covered = found.coverage(0.75).unwrap();
        assert_eq!((covered.cov_recall, covered.cov_precision), (1.0, Some(1.0)));
    }
}

type Matrix = [[f64; 3]; 3];

fn inverse_transposed(m: &Matrix) -> Matrix {
    let minor = |i: usize, j: usize| {
        let (a, b, c, d) = ((i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3);
        m[a][c] * m[b][d] - m[a][d] * m[b][c]
    };
    let determinant: f64 = (0..3).map(|j| m[0][j] * minor(0, j)).sum();
    std::array::from_fn(|i| std::array::from_fn(|j| minor(i, j) / determinant))
}

/// Kabsch's rotation another way: the orthogonal factor of `Σ b aᵀ` by Newton's iteration (Higham), which is the best
/// rotation where the determinant is positive; then the deviation by its definition.
fn slow_rmsd(a: &[[f64; 3]], b: &[[f64; 3]]) -> f64 {
    let centred = |points: &[[f64; 3]]| -> Vec<[f64; 3]> {
        let n = points.len() as f64;
        let centre: [f64; 3] = std::array::from_fn(|k| points.iter().map(|p| p[k]).sum::<f64>() / n);
        points.iter().map(|p| std::array::from_fn(|k| p[k] - centre[k])).collect()
    };
    let (a, b) = (centred(a), centred(b));
    let mut r: Matrix = [[0.0; 3]; 3];
    for (a, b) in a.iter().zip(&b) {
        for i in 0..3 {
            for j in 0..3 {
                r[i][j] += b[i] * a[j];
            }
        }
    }
    for _ in 0..60 {
        let other = inverse_transposed(&r);
        r = std::array::from_fn(|i| std::array::from_fn(|j| f64::midpoint(r[i][j], other[i][j])));
    }
    let sum: f64 = a
        .iter()
        .zip(&b)
        .map(|(a, b)| {
            (0..3).map(|i| ((0..3).map(|j| r[i][j] * a[j]).sum::<f64>() - b[i]).powi(2)).sum::<f64>()
        })
        .sum();
    (sum / a.len() as f64).sqrt()
}

fn points(n: usize) -> impl Strategy<Value = Vec<[f64; 3]>> {
    prop::collection::vec(prop::array::uniform3(-5.0..5.0f64), n)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn alignment_is_kabschs(a in points(8), noise in points(8), angles in prop::array::uniform3(-3.1..3.1f64)) {
        let turn = |[x, y, z]: [f64; 3], angle: f64| {
            let (sin, cos) = angle.sin_cos();
            // One turn about z, then axes change places, so that three turns reach every rotation.
            [y * cos + x * sin, z, x * cos - y * sin]
        };
        let b: Vec<[f64; 3]> = a
            .iter()
            .zip(&noise)
            .map(|(p, e)| {
                let moved = angles.iter().fold(*p, |p, angle| turn(p, *angle));
                std::array::from_fn(|k| moved[k] + 0.02 * e[k] + 3.0)
            })
            .collect();
        let fast = aligned_rmsd(&a, &b, |i| i);
        prop_assert!((fast - aligned_rmsd(&b, &a, |i| i)).abs() < 1e-9);
        let slow = slow_rmsd(&a, &b);
        // Where the noise turns nearly flat points inside out, Newton's iteration ends in a reflection.
        if slow.is_finite() && slow < 0.3 {
            prop_assert!((fast - slow).abs() < 1e-6, "{fast} {slow}");
        }
        prop_assert!(fast < 0.3);
    }
}

/// The same geometry, written with other isotope labels in another order of atoms.
#[test]
fn references_may_have_other_isotope_labels() {
    let folder = Folder::new();
    let text = "[C]<0.0000,0.0000,0.0000>[C]<1.5000,0.0000,0.0000>[O]<2.0000,1.3000,0.0000>";
    let line = |smiles: &str, text: &str| {
        format!("{}\n", json!({"canonical_smiles": smiles, "embedded_smiles": text}))
    };
    let labelled = "[18OH]<2.0000,1.3000,0.0000>[C]<1.5000,0.0000,0.0000>[13CH3]<0.0000,0.0000,0.0000>";
    let deuterated = "[2H]<2.9000,1.3000,0.0000>[O]<2.0000,1.3000,0.0000>[C]<1.5000,0.0000,0.0000>[C]<0.0000,0.0000,0.0000>";
    folder.file("plain.jsonl", line("CCO", text));
    folder.file("labelled.jsonl", line("[18OH]C[13CH3]", labelled));
    folder.file("deuterated.jsonl", line("[2H]OCC", deuterated));
    for (texts, references) in [("plain", "labelled"), ("labelled", "plain")] {
        let command = format!("audit {texts}.jsonl --dialect fixed --references {references}.jsonl");
        let report = folder.line(&format!("{command} --json")).done().json();
        let mean = report["total"]["geometry"]["mat_precision_angstrom"]["mean"].as_f64().unwrap();
        assert!(mean < 1e-6, "{mean}");
        folder.line(&format!("{command} --isotopes respect")).refused_for("none of the molecules");
    }
    // The written deuterium is an atom that the other lacks.
    folder.line("audit plain.jsonl --dialect fixed --references deuterated.jsonl").refused_for("none of");
}
