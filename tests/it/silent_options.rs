//! Options that were taken and did nothing, and inputs that were left out without a word.

use serde_json::{Value, json};

use crate::support::Folder;

/// A text of ethanol.
const ETHANOL: &str =
    "[CONFORMER][CH3]<0.0000,0.0000,0.0000>[CH2]<1.5000,0.0000,0.0000>[OH]<2.0000,1.3000,0.0000>[/CONFORMER]";

/// Two texts of ethanol, and its reference.
fn folder() -> Folder {
    let folder = Folder::new();
    let text = |generation: u64| json!({"smiles": "CCO", "generation": generation, "text": ETHANOL});
    folder.file("texts.jsonl", format!("{}\n{}\n", text(0), text(1)));
    let inside = ETHANOL.trim_start_matches("[CONFORMER]").trim_end_matches("[/CONFORMER]");
    folder.file(
        "references.jsonl",
        format!("{}\n", json!({"canonical_smiles": "CCO", "embedded_smiles": inside})),
    );
    folder
}

/// What an option requires was not asked for if it conflicted with another option (`cli::help` tests all pairs).
#[test]
fn options_whose_requirement_is_excluded_are_refused() {
    let folder = folder();
    for (line, option) in [
        ("mine references.jsonl --check --drop-shared kept.jsonl", "--drop-shared"),
        ("mine references.jsonl --against references.jsonl --list list.jsonl", "--list"),
        ("generate --corpus small --references references.jsonl -o out.jsonl", "--references"),
        ("encode references.jsonl --shard 1/2 -o s --tokenizer nosuch", "--tokenizer"),
        ("export-grammar CCO --prompts nosuch.jsonl", "--prompts"),
        ("audit texts.jsonl --threshold 0.5", "--references"),
        ("audit texts.jsonl --placeholder 0.00,0.00,0.00", "--tokenizer"),
    ] {
        folder.line(line).refused_usage(option);
    }
    for verb in ["fit", "encodings", "train-tokenizer --base qwen-like --tokens-per-block 9 -o new"] {
        folder.line(&format!("{verb} --property name")).refused_for("--property: is for files of conformers");
    }
    folder.file("some.smi", "CCO\n");
    for option in ["--matrix m.npz", "--threshold 0.5", "--missing leave-out"] {
        let name = option.split(' ').next().unwrap();
        folder
            .line(&format!("eval --smiles some.smi --lp none {option}"))
            .refused_for(&format!("{name}: there are no reference conformers"));
    }
    folder.line("mine references.jsonl --shard 1/1 -o shard --quiet").good();
    folder.line("merge shard --dry-run --texts out.jsonl").refused_for("--texts: is of drift eval");
}

#[test]
fn references_that_are_of_no_use_are_told() {
    let folder = folder();
    folder.file("frame.xyz", "3\nno SMILES\nO 0 0 0\nC 1.4 0 0\nC 2 1.3 0\n");
    let warnings = |line: &str| {
        let report = folder.line(&format!("audit texts.jsonl --dialect fixed --json {line}")).done().json();
        report["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(warnings("--references references.jsonl"), [""; 0]);
    let said = warnings("--references references.jsonl frame.xyz");
    assert!(
        said.len() == 1
            && said[0].contains("order of a SMILES: 1 (such as ")
            && said[0].contains("frame.xyz"),
        "{said:?}"
    );
    let said = warnings("--references references.jsonl --pool");
    assert_eq!(said, ["no record has a `geom_smiles`, so no isomers are pooled"]);
}

#[test]
fn rows_that_cannot_be_compared_are_not_shown_as_compared() {
    let folder = folder();
    folder.file(
        "twice.jsonl",
        format!("{}\n", json!({"smiles": "CCO", "generation": 0, "text": ETHANOL})).repeat(2).as_str(),
    );
    let line = "audit texts.jsonl twice.jsonl --dialect fixed --row-field file --against-row twice.jsonl";
    let said = folder.line(line).refused();
    assert!(said.contains("number the texts") && !said.contains("--row-field"), "{said}");
    let alone = json!({"smiles": "CCO", "lp": "none", "generation": 0, "text": ETHANOL});
    folder.file("alone.jsonl", format!("{alone}\n"));
    let ran = folder.line("audit alone.jsonl --dialect fixed --against-row none").done();
    assert!(!ran.text().contains("Against none, paired"), "{}", ran.text());
}

/// They are beside the runs of a record.
#[test]
fn energies_are_compared() {
    let folder = Folder::new();
    let record = |mean: f64| {
        let strain = json!({"texts": 2, "mean": mean});
        json!({"runs": [{"lp": "none", "passed": 2}], "energy": {"files": [{"file": "m", "lp": "none", "strain": strain}]}})
    };
    folder.file("one.json", record(8.0).to_string());
    folder.file("two.json", record(16.0).to_string());
    let report: Value = folder.line("compare one.json two.json --json").good().json();
    assert!(report.to_string().contains("energy of m, none"), "{report}");
    let shown = folder.line("compare one.json two.json").good();
    assert!(shown.text().contains("strain.mean"), "{}", shown.text());
}

#[test]
fn tasks_that_would_never_get_to_work_are_refused() {
    let folder = Folder::new();
    folder.file("some.smi", "CCO\nCN\n");
    let array = "slurm eval --smiles some.smi --lp none --array 2 -o out";
    for (option, message) in [
        ("--time 2", "--grace 120: a task of --time 2 would be stopped as soon as it starts"),
        ("--time 0-0:30 --grace 3600", "would be stopped as soon as it starts"),
        ("--sbatch array=3-4", "--sbatch array: each task of the array is one shard"),
        ("--sbatch=--constraint=a100", "give NAME=VALUE"),
        ("--merge-sbatch=--qos=low", "--merge-sbatch --qos=low: the script writes the dashes"),
        ("--partition=", "an option of sbatch is empty"),
        ("--texts -", "--texts -: the merge is a job"),
    ] {
        folder.line(&format!("{array} {option}")).refused_for(message);
    }
    folder.line(&format!("{array} --cpus-per-task 0")).refused_usage("--cpus-per-task");
    folder.line(&format!("{array} --time UNLIMITED")).good();
    folder.line(&format!("{array} --time 2:30")).good();
    folder
        .line("device --device cpu --engine drift-cublas -o out.json")
        .refused_for("drift-cublas needs a GPU");
    // A model as in the example of the help, before which a task's own options must not end.
    folder.checkpoint("qwen-like", "model");
    folder.line("slurm generate model --smiles some.smi --lp automaton --array 2 -o run").good();
    let script = String::from_utf8(folder.read("run/array.sbatch")).unwrap();
    assert!(script.contains(" model --shard slurm --quiet -o ") && !script.contains(" -- "), "{script}");
}
