//! What was answered wrongly without a word: each input gives a right answer, or a record that is skipped and counted.

use serde_json::Value;

use crate::support::{Folder, rows};

const TEXT: &str = "[CH3]<0.1000,0.2000,0.3000>[OH]<1.5000,0.2000,0.3000>";

const MOL: &str = "A\n  x\n\n  2  1  0  0  0  0  0  0  0  0999 V2000\n    0.0000    0.0000    0.1000 C   0  0\n    \
    1.4000    0.0000    0.0000 O   0  0\n  1  2  1  0\nM  END\n";

/// A line of generated text, with other fields before it.
fn generated(before: &str, text: &str) -> String {
    format!("{{{before}\"smiles\":\"CO\",\"text\":\"[CONFORMER]{text}[/CONFORMER]\"}}\n")
}

/// The rows of an audit: name, texts, texts that pass.
fn audited(folder: &Folder, line: &str) -> Vec<(String, u64, u64)> {
    let report = folder.line(&format!("audit {line} --dialect fixed --json")).done().json();
    let row = |row: &Value| {
        let count = |name: &str| row[name].as_u64().unwrap();
        (row["lp"].as_str().unwrap().to_owned(), count("samples"), count("passed"))
    };
    report["runs"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn a_text_of_another_molecule_is_no_training_text() {
    let folder = Folder::new();
    let named =
        |smiles: &str| format!("{{\"canonical_smiles\":\"{smiles}\",\"embedded_smiles\":\"{TEXT}\"}}\n");
    folder.file("texts.jsonl", ["CO", "OC", "CCO", "foo bar", "CO"].map(named).concat());
    let ran = folder.line("encode texts.jsonl -o - --drop duplicate-conformer").done();
    assert_eq!(rows(&ran.stdout).len(), 1);
    let ran = folder.line("encode texts.jsonl -o out.jsonl --json").done().json();
    assert_eq!((ran["conformers"].as_u64(), ran["skipped"].as_u64()), (Some(3), Some(2)));
    let reasons: Vec<&str> = ran["skipped_records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["reason"].as_str().unwrap())
        .collect();
    assert_eq!(reasons[0], "its text is another molecule than its SMILES");
    assert!(reasons[1].starts_with("its SMILES cannot be compared with its text: "), "{}", reasons[1]);
}

#[test]
fn a_text_of_another_molecule_is_no_original_of_a_duplicate() {
    let folder = Folder::new();
    let row =
        |smiles: &str| format!("{{\"canonical_smiles\":\"{smiles}\",\"embedded_smiles\":\"{TEXT}\"}}\n");
    folder.file("texts.jsonl", ["CCO", "CO", "CO"].map(row).concat());
    let ran = folder.line("encode texts.jsonl -o out.jsonl --drop duplicate-text --json").done().json();
    assert_eq!((&ran["conformers"], &ran["skipped"]), (&1.into(), &2.into()));
    // Map numbers and extensions of a SMILES say nothing of its molecule.
    folder.file("texts.jsonl", ["CO |c:|", "[CH3:1][OH:2]", " CO"].map(row).concat());
    let ran = folder.line("encode texts.jsonl -o -").done();
    let written: Vec<Value> = rows(&ran.stdout).iter().map(|row| row["canonical_smiles"].clone()).collect();
    assert_eq!(written, ["CO", "[CH3:1][OH:2]", "CO"]);
}

#[test]
fn mol_blocks_without_an_end_between_them_are_skipped() {
    let folder = Folder::new();
    folder.file("both.sdf", [MOL, &MOL.replace("1.4000", "1.4500")].concat());
    folder.line("encode both.sdf --smiles CO -o -").refused_for("another mol block follows without `$$$$`");
    // Empty lines behind the last molecule are none, and the value of an item may be a mol block.
    folder.file("lines.sdf", format!("{MOL}> <drawn>\n{MOL}\n$$$$\n\n\n\n\n\n\n"));
    let ran = folder.line("encode lines.sdf --smiles CO -o out.jsonl --json").done().json();
    assert_eq!((ran["conformers"].as_u64(), ran["skipped"].as_u64()), (Some(1), Some(0)));
}

#[test]
fn files_of_one_name_are_two_rows() {
    let folder = Folder::new();
    folder.file("a/texts.jsonl", generated("", TEXT));
    folder.file("b/texts.jsonl", generated("", &TEXT.replace("0.3000", "x")));
    let expected = [("a/texts.jsonl".to_owned(), 1, 1), ("b/texts.jsonl".to_owned(), 1, 0)];
    assert_eq!(audited(&folder, "a/texts.jsonl b/texts.jsonl"), expected);
    folder.line("audit a/texts.jsonl b/texts.jsonl --dialect fixed --molecules m.jsonl").done();
    let names: Vec<String> =
        rows(&folder.read("m.jsonl")).iter().map(|row| row["lp"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names, ["a/texts.jsonl", "b/texts.jsonl"]);
}

#[test]
fn every_value_of_a_row_field_names_a_row() {
    let folder = Folder::new();
    for (first, second) in [("true", "false"), ("-1", "-2"), ("1", "2"), ("0.5", "0.7"), ("\"a\"", "\"b\"")] {
        let line = |value: &str| generated(&format!("\"constrained\":{value},"), TEXT);
        folder.file("texts.jsonl", [line(first), line(second)].concat());
        let name = |value: &str| (value.trim_matches('"').to_owned(), 1, 1);
        assert_eq!(audited(&folder, "texts.jsonl --row-field constrained"), [name(first), name(second)]);
    }
}

#[test]
fn a_cut_first_line_is_skipped() {
    let folder = Folder::new();
    folder.file("prompts.jsonl", "{\"prompt\":\"salt\",\"formula\":\"NaCl\"}\n");
    let text = "4.0 4.0 5.6\\n90 90 90\\nNa\\n0.00 0.00 0.00\\nCl\\n0.50 0.50 0.50";
    folder.file(
        "cut.jsonl",
        format!("{{\"prompt\":\"salt\",\"te\n{{\"prompt\":\"salt\",\"text\":\"{text}\"}}\n"),
    );
    let line = "audit cut.jsonl --skeleton crystal-text --prompts prompts.jsonl --json";
    let report = folder.line(line).done().json();
    assert_eq!(report["skipped"], 1);
    assert_eq!((&report["rows"][0]["texts"], &report["rows"][0]["passed"]), (&1.into(), &1.into()));
    // White space may stand before an object.
    folder.file("blank.jsonl", format!(" {{\"prompt\":\"salt\",\"text\":\"{text}\"}}\n"));
    let line = "audit blank.jsonl --skeleton crystal-text --prompts prompts.jsonl --json";
    assert_eq!(folder.line(line).done().json()["rows"][0]["passed"], 1);
    // A byte-order mark is no part of a text.
    folder.file("alone.txt", format!("\u{feff}{}", text.replace("\\n", "\n")));
    let line = "audit alone.txt --skeleton crystal-text --prompts prompts.jsonl --json";
    assert_eq!(folder.line(line).done().json()["rows"][0]["passed"], 1);
}

#[test]
fn isomers_without_a_list_of_conformers_are_counted() {
    let folder = Folder::new();
    let lines = format!("{{\"isomers\":{{\"CO\":\"{TEXT}\"}}}}\n{{\"isomers\":{{\"CO\":[]}}}}\n");
    folder.file("grouped.jsonl", lines);
    let ran = folder.line("mine grouped.jsonl --json").done().json();
    assert_eq!((ran["conformers"].as_u64(), ran["skipped"].as_u64()), (Some(1), Some(1)));
}

#[test]
fn of_two_columns_with_one_name_the_first_counts_everywhere() {
    let folder = Folder::new();
    folder.file(
        "twice.csv",
        format!("smiles,enriched_text,enriched_text\nCO,\"[CONFORMER]{TEXT}[/CONFORMER]\",\n"),
    );
    assert_eq!(folder.line("mine twice.csv --json").done().json()["conformers"], 1);
    assert_eq!(audited(&folder, "twice.csv"), [("twice.csv".to_owned(), 1, 1)]);
}

#[test]
fn stdout_takes_no_page_beside_the_tables() {
    let folder = Folder::new();
    folder.file("texts.jsonl", generated("", TEXT));
    for option in ["--html", "--summary", "--matrix"] {
        let line = format!("audit texts.jsonl --dialect fixed --references texts.jsonl {option} -");
        folder.line(&line).refused_for("give the name of a file");
    }
}

#[test]
fn names_of_compressed_files_are_those_of_the_files() {
    let folder = Folder::new();
    let molecule = format!("{}$$$$\n", MOL.replacen('A', "", 1));
    folder.file("names.smi", "CO methanol\n");
    folder.file("methanol.sdf", &molecule);
    folder.file("methanol.sdf.zst", zstd::encode_all(molecule.as_bytes(), 3).unwrap());
    for name in ["methanol.sdf", "methanol.sdf.zst"] {
        let ran = folder.line(&format!("encode {name} --smiles names.smi -o -")).done();
        assert_eq!(rows(&ran.stdout).len(), 1, "{name}");
    }
}

#[test]
#[cfg(unix)]
fn outputs_of_an_audit_appear_together() {
    let folder = Folder::new();
    folder.file("texts.jsonl", generated("", TEXT));
    folder.file("prompts.jsonl", "{\"formula\":\"NaCl\"}\n");
    folder.file("salt.txt", "4.0 4.0 5.6\n90 90 90\nNa\n0.00 0.00 0.00\nCl\n0.50 0.50 0.50");
    // A record that lies where a folder is cannot be written.
    std::fs::create_dir(folder.path().join("record.json")).unwrap();
    for line in [
        "audit texts.jsonl --dialect fixed --verdicts v.jsonl --molecules m.csv -o record.json",
        "audit salt.txt --skeleton crystal-text --prompts prompts.jsonl --verdicts v.jsonl -o record.json",
    ] {
        folder.line(line).refused();
        assert!(!folder.path().join("v.jsonl").exists() && !folder.path().join("m.csv").exists(), "{line}");
    }
}

#[test]
fn conformers_that_are_left_out_are_not_out_of_range() {
    let folder = Folder::new();
    let far = TEXT.replace("1.5000", "15.0000");
    folder.file("far.jsonl", format!("{{\"smiles\":\"CO\",\"text\":\"{far}\"}}\n").repeat(3));
    let encoding = "--encoding binned-v1:-5,5,0.05 --input-encoding fixed";
    for (options, count) in [("", 3), ("--drop duplicate-text", 1)] {
        let line = format!("encode far.jsonl {encoding} {options} -o out.jsonl --json");
        let report = folder.line(&line).done().json();
        assert_eq!(
            (&report["conformers"], &report["out_of_range"]),
            (&count.into(), &count.into()),
            "{options}"
        );
    }
}

#[test]
fn rows_that_are_picked_do_not_find_themselves() {
    let folder = Folder::new();
    let begun = "[CH3]<0.0000,0.0000,0.0000>[CH2]<1.5000,0.0000,0.0000>";
    let turned = "[CH3]<0.0000,0.0000,0.0000>[CH2]<0.0000,1.5000,0.0000>[OH]<-1.2000,2.1000,0.0000>";
    let row = |dataset: &str, text: &str| {
        format!("{{\"dataset\":\"{dataset}\",\"smiles\":\"CCO\",\"text\":\"{text}\"}}\n")
    };
    let texts = [
        row("X", &format!("{begun}[OH]<2.1000,1.2000,0.0000>")),
        row("Y", turned),
        row("Y", &format!("{begun}[OH]<2.3000,1.0000,0.0000>")),
    ];
    folder.file("all.jsonl", texts.concat());
    let pairs = |options: &str| {
        let line = format!("mine all.jsonl --against all.jsonl --shared-by geometry {options} -o list.jsonl");
        folder.line(&line).done();
        let listed = rows(&folder.read("list.jsonl")).into_iter().filter(|row| !row["other_line"].is_null());
        listed.map(|row| (row["line"].as_u64(), row["other_line"].as_u64())).collect::<Vec<_>>()
    };
    assert_eq!(pairs(""), [(Some(1), Some(2)), (Some(2), Some(1))]);
    assert_eq!(pairs("--where dataset=Y"), [(Some(2), Some(1))]);
}

#[test]
fn numbers_of_rows_are_as_they_are_written() {
    let folder = Folder::new();
    let row =
        |id: &str, t: &str| format!("{{\"id\":{id},\"t\":{t},\"smiles\":\"CO\",\"text\":\"{TEXT}\"}}\n");
    folder.file("numbers.jsonl", [row("123456789012345678901", "1.0"), row("\"a\"", "1e5")].concat());
    let ids = |options: &str| {
        let ran = folder.line(&format!("encode numbers.jsonl {options} -o -")).done();
        rows(&ran.stdout).iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(""), ["123456789012345678901", "a"]);
    assert_eq!(ids("--where t=1.0"), ["123456789012345678901"]);
    assert_eq!(ids("--where t=1e5"), ["a"]);
}

/// Whether a text passes under a skeleton, and why it does not.
fn judged(folder: &Folder, skeleton: &str, prompt: &str, text: &str) -> (bool, String) {
    folder.file("skeleton.json", skeleton);
    folder.file("prompt.jsonl", format!("{prompt}\n"));
    folder.file("text.txt", text);
    let line = "audit text.txt --skeleton skeleton.json --prompts prompt.jsonl --verdicts -";
    let verdict = rows(&folder.line(line).done().stdout).remove(0);
    (verdict["passed"].as_bool().unwrap(), verdict["why"].as_str().unwrap_or_default().to_owned())
}

/// A skeleton with these items and this text, in JSON.
fn skeleton_of(items: &str, text: &str) -> String {
    format!("{{\"schema\":\"drift.skeleton/1\",\"name\":\"k\",\"items\":{{\"a\":{items}}},\"text\":{text}}}")
}

#[test]
fn what_a_text_states_of_its_items_may_hold_spaces_and_end_an_item() {
    let folder = Folder::new();
    let items = "{\"from\":\"formula\",\"field\":\"formula\",\"times\":[1,12]}";
    let sum = skeleton_of(items, "[\"{a.sum} in a cell\"]");
    let each = skeleton_of(items, "[{\"each\":\"a\",\"text\":\"{a} of {a.count}\",\"between\":\"; \"}]");
    let slot = "\"slots\":{\"v\":{\"kind\":\"integer\",\"low\":0,\"high\":9}},\"text\"";
    let pieces = skeleton_of(items, "[{\"each\":\"a\",\"text\":\"{a} of {a.count} pieces\\n\"}]");
    let before_slot = skeleton_of(items, "[\"{a.sum} {v}\"]").replace("\"text\"", slot);
    for (skeleton, text, fault) in [
        (&before_slot, "Na2 Cl2 5", ""),
        (&pieces, "Na of 4 piece\nNa of 4 pieces\nCl of 4 pieces\nCl of 4 pieces\n", "format"),
        (&sum, "Na2 Cl2 in a cell", ""),
        (&sum, "Na20 Cl20 in a cell", ""),
        (&sum, "Na2 Cl3 in a cell", "composition"),
        (&sum, "Na2 Cl2 O1 in a cell", "composition"),
        (&sum, "Na2 Cl2 in a box", "format"),
        (&each, "Na of 4; Na of 4; Cl of 4; Cl of 4", ""),
        (&each, "Na of 4; Na of 4; Cl of 4; Cl of 5", "count"),
    ] {
        let (passed, why) = judged(&folder, skeleton, "{\"formula\":\"Na2Cl2\"}", text);
        assert_eq!((passed, &*why), (fault.is_empty(), fault), "{text}");
    }
}

#[test]
fn words_that_begin_as_what_follows_them_are_refused() {
    let folder = Folder::new();
    let skeleton = skeleton_of(
        "{\"from\":\"list\",\"field\":\"names\"}",
        "[{\"each\":\"a\",\"text\":\"{a}\\n\"},\"end\"]",
    );
    let (passed, why) = judged(&folder, &skeleton, "{\"names\":[\"b\",\"c\"]}", "b\nc\nend");
    assert!(passed, "{why}");
    let (passed, why) = judged(&folder, &skeleton, "{\"names\":[\"ethane\",\"exo\"]}", "ethane\nexo\nend");
    assert!(passed, "{why}");
    folder.file("prompt.jsonl", "{\"names\":[\"endo\",\"exo\"]}\n");
    let line = "audit text.txt --skeleton skeleton.json --prompts prompt.jsonl";
    folder.line(line).refused_for("another item and what follows begin alike");
}

#[test]
fn a_smiles_without_elements_is_refused_with_the_reason() {
    let folder = Folder::new();
    for (smiles, reason) in [("C*", "has an atom that is no element"), ("C(", "is not a SMILES")] {
        folder.file("prompts.jsonl", format!("{{\"smiles\":\"{smiles}\"}}\n"));
        folder.line("inspect --skeleton xyz --prompts prompts.jsonl").refused_for(reason);
    }
}

#[test]
fn two_tokenizers_of_one_name_are_refused() {
    let folder = Folder::new();
    folder.file("prompts.jsonl", "{\"smiles\":\"CO\"}\n");
    for line in ["encodings", "encodings --skeleton xyz --prompts prompts.jsonl", "fit -o fitted"] {
        let line = format!("{line} --tokenizer qwen-like --tokenizer qwen-like");
        folder.line(&line).refused_for("two tokenizers are named qwen-like");
    }
}

#[test]
fn a_placeholder_is_a_slot_of_its_encoding() {
    let folder = Folder::new();
    let line = "inspect --encoding binned-v2:-13,13,0.104";
    folder.line(&format!("{line} --placeholder 0,0,0 [C]140126111;")).refused_for("is no slot of binned-v2");
    let ran = folder.line(&format!("{line} --placeholder 125125125 [C]140126111; --json")).done().json();
    assert_eq!(ran[0]["blocks"][0]["drift"], 0);
}

#[test]
fn a_slot_may_hold_the_first_character_of_what_follows_it() {
    let folder = Folder::new();
    let skeleton = |slot: &str, text: &str| {
        format!(
            "{{\"schema\":\"drift.skeleton/1\",\"name\":\"k\",\"slots\":{{\"v\":{slot}}},\"text\":[\"{text}\"]}}"
        )
    };
    let decimal = "{\"kind\":\"decimal\",\"decimals\":2,\"low\":0,\"high\":99.99}";
    let integer = "{\"kind\":\"integer\",\"low\":-9,\"high\":9}";
    for (slot, form, text, passes) in [
        (decimal, "The volume is {v}.", "The volume is 1.25.", true),
        (decimal, "The volume is {v}.", "The volume is 1.257.", false),
        (decimal, "The volume is {v}.", "The volume is 1.2.", false),
        (integer, "{v}-{v}", "-3-4", true),
        (integer, "{v}-{v}", "-3--4", true),
        (integer, "{v}-{v}", "-3-", false),
    ] {
        let (passed, why) = judged(&folder, &skeleton(slot, form), "{}", text);
        assert_eq!(passed, passes, "{text}: {why}");
    }
}

#[test]
fn bounds_have_no_more_decimals_than_the_numbers() {
    let folder = Folder::new();
    folder.file("prompts.jsonl", "{}\n");
    folder.file("text.txt", "1000.00000000");
    for (low, high) in [("0.1", "999.999999999"), ("0.123456789", "1000")] {
        let slot = format!("{{\"kind\":\"decimal\",\"decimals\":8,\"low\":{low},\"high\":{high}}}");
        let skeleton = format!(
            "{{\"schema\":\"drift.skeleton/1\",\"name\":\"k\",\"slots\":{{\"v\":{slot}}},\"text\":[\"{{v}}\"]}}"
        );
        folder.file("skeleton.json", skeleton);
        let line = "audit text.txt --skeleton skeleton.json --prompts prompts.jsonl";
        folder.line(line).refused_for("has more than 8 decimals");
    }
}

#[test]
fn options_that_say_the_encoding_twice_are_refused() {
    let folder = Folder::new();
    folder.file("texts.jsonl", generated("", TEXT));
    for line in [
        "export-grammar CO --encoding fixed --dialect stripped",
        "fit --tokenizer qwen-like --encoding fixed --dialect stripped",
        "audit texts.jsonl --encoding fixed --dialect stripped",
        "generate --encoding fixed --dialect stripped -o -",
        "eval --encoding fixed --dialect stripped",
        "train-model --arch qwen3 --tokenizer qwen-like --encoding fixed --dialect stripped -o model",
    ] {
        folder.line(line).refused_usage("--dialect");
    }
    folder.file("prompts.jsonl", "{\"smiles\":\"CO\"}\n");
    for option in ["--encoding fixed-2", "--dialect stripped", "--decimals 2", "--separator space"] {
        let line = format!("export-grammar --skeleton enriched-smiles --prompts prompts.jsonl {option}");
        let name = option.split(' ').next().unwrap();
        folder.line(&line).refused_for(&format!("{name}: has no meaning"));
    }
}

/// The energies and strains of three texts by a program, after it ran as `first` and was mended.
#[cfg(unix)]
fn energies(folder: &Folder, first: &str, then: &str) -> Vec<(Option<f64>, Option<f64>)> {
    let texts = [1.4, 1.5, 1.6].map(|x| generated("", &TEXT.replace("1.5000", &format!("{x:.4}"))));
    folder.file("texts.jsonl", texts.concat());
    let line = "audit texts.jsonl --dialect fixed --references texts.jsonl --energy-cache answers --energy-list list.jsonl --energy";
    let mut arguments: Vec<&str> = line.split(' ').collect();
    arguments.push("sh program.sh");
    if !first.is_empty() {
        folder.file("program.sh", format!("cat > /dev/null\n{first}\n"));
        folder.drift(&arguments).refused();
    }
    folder.file("program.sh", format!("cat > /dev/null\n{then}\n"));
    folder.drift(&arguments).done();
    let listed = rows(&folder.read("list.jsonl"));
    listed.iter().map(|row| (row["energy"].as_f64(), row["strain"].as_f64())).collect()
}

#[cfg(unix)]
#[test]
fn answers_that_may_be_of_other_frames_are_not_kept() {
    let known = |first: &str, then: &str| {
        let folder = Folder::new();
        energies(&folder, first, then).into_iter().map(|(energy, _)| energy.unwrap()).collect::<Vec<_>>()
    };
    let whole = "printf '%s\\n' -1 -2 -3";
    for broken in ["printf '%s\\n' -10 -30", "printf '%s\\n' 7 -1 -2 -3", "printf '%s\\n' -10 no -30"] {
        assert_eq!(known(broken, whole), [-1.0, -2.0, -3.0], "{broken}");
    }
    // A program that was killed has answered what it wrote with a line end.
    assert_eq!(known("printf '%s\\n%s' -5 -1; exit 1", "printf '%s\\n' -6 -7"), [-5.0, -6.0, -7.0]);
}

#[cfg(unix)]
#[test]
fn strains_of_two_kinds_are_not_mixed() {
    let folder = Folder::new();
    let found = energies(&folder, "", "printf '%s\\n' '-10 -60' '-10 nan' '-20 -30'");
    assert_eq!(found, [(Some(-10.0), Some(50.0)), (Some(-10.0), None), (Some(-20.0), Some(10.0))]);
}

#[test]
fn energies_of_two_models_are_two_rows() {
    let folder = Folder::new();
    let lines = ["a", "b"].map(|model| generated(&format!("\"model\":\"{model}\",\"lp\":\"none\","), TEXT));
    folder.file("texts.jsonl", lines.concat());
    let line = "audit texts.jsonl --dialect fixed --json --energy";
    let program = "awk 'NF == 4 && $1 == \"C\" {print 1}'";
    let arguments: Vec<&str> = line.split(' ').chain([program]).collect();
    let files = folder.drift(&arguments).done().json()["energy"]["files"].clone();
    let rows: Vec<_> = files.as_array().unwrap().iter().map(|row| (&row["model"], &row["texts"])).collect();
    assert_eq!(rows, [(&"a".into(), &1.into()), (&"b".into(), &1.into())]);
}

#[test]
fn merges_refuse_what_they_do_not_write() {
    let folder = Folder::new();
    folder.file("texts.jsonl", generated("", TEXT));
    folder.line("mine texts.jsonl --against texts.jsonl --shard 1/1 -o pairs").done();
    folder.line("merge pairs -o pairs.jsonl --html page.html").refused_for("--html");
    folder.line("merge pairs -o pairs.jsonl --list list.jsonl").refused_for("--list");
    folder.line("audit texts.jsonl --dialect fixed --shard 1/1 -o audited").done();
    folder.line("merge audited -o record.json --matrix m.npz").refused_for("the shards have no references");
    folder.line("merge audited -o record.json").done();
}
