//! `drift audit --skeleton`: texts of crystals and molecules, joined to their prompts, with verdicts, rows and refusals.

use serde_json::{Value, json};

use crate::support::{Folder, drift, rows};

const SALT: &str = "4.0 4.0 5.6\n90 90 90\nNa\n0.00 0.00 0.00\nCl\n0.50 0.50 0.50";

/// Lines of JSON.
fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

/// A folder with two prompts, and texts of two rows for them.
fn folder() -> Folder {
    let folder = Folder::new();
    let prompts = [
        json!({"prompt": "salt", "species": ["Na", "Cl"]}),
        json!({"prompt": "any salt", "formula": "NaCl"}),
    ];
    folder.file("prompts.jsonl", lines(&prompts));
    let text = |prompt: &str, row: &str, text: &str| json!({"prompt": prompt, "lp": row, "text": text});
    let minus = SALT.replace("Cl\n0.50", "Cl\n-0.00");
    let texts = [
        text("salt", "none", &minus),
        text("salt", "none", SALT),
        text("salt", "none", SALT),
        text("any salt", "none", "4.0 4.0 5.6\n90 90 90\nCl\n0.00 0.00 0.00\nK\n0.50 0.50 0.50"),
        text("salt", "mask", SALT),
        text("salt", "mask", SALT),
        text("salt", "mask", &format!("{SALT}<|im_end|>")),
        text("any salt", "mask", "4.0 4.0 5.6\n90 90 90\nCl\n0.00 0.00 0.00\nNa\n0.01 0.00 0.00"),
    ];
    folder.file("texts.jsonl", lines(&texts));
    folder
}

#[test]
fn texts_are_judged_by_the_data_of_their_prompts() {
    let folder = folder();
    let ran = folder
        .line("audit texts.jsonl --skeleton crystal-text --prompts prompts.jsonl --verdicts v.jsonl --json");
    let report = ran.good().json();
    assert_eq!(
        (&report["schema"], &report["skeleton"]),
        (&json!("drift.skeleton-audit/1"), &json!("crystal-text"))
    );
    let [none, mask] = [0, 1].map(|row| report["rows"][row].clone());
    assert_eq!((&none["row"], &none["texts"], &none["passed"]), (&json!("none"), &json!(4), &json!(2)));
    assert_eq!(none["faults"], json!({"minus_zero": 1, "composition": 1}));
    assert_eq!(
        (&none["repeated_texts"], &mask["passed"], &mask["faults"]),
        (&json!(1), &json!(4), &json!({}))
    );
    // 0.01 of 4 Å.
    assert_eq!(mask["geometry"]["close"], 1);
    // Of four distances the least is that one, and the others are equal.
    let quantiles: Vec<f64> =
        serde_json::from_value(mask["geometry"]["shortest_quantiles_angstrom"].clone()).unwrap();
    assert_eq!((&mask["geometry"]["distances"], quantiles.len()), (&json!(4), 7));
    assert!(
        (quantiles[0] - 0.04).abs() < 1e-9 && (quantiles[4] - quantiles[6]).abs() < 1e-9,
        "{quantiles:?}"
    );
    assert!((quantiles[1] - (0.04 + 0.03 * (quantiles[6] - 0.04))).abs() < 1e-9, "{quantiles:?}");
    let verdicts = rows(&folder.read("v.jsonl"));
    assert_eq!(verdicts.len(), 8);
    assert_eq!((&verdicts[0]["passed"], &verdicts[0]["why"]), (&json!(false), &json!("minus_zero")));
    assert_eq!(verdicts[0]["faults"][0]["line"], 6);
    let geometry = &verdicts[1]["geometry"];
    // Between the corner and the centre: half of the diagonal.
    let expected = (4.0f64 * 4.0 + 4.0 * 4.0 + 5.6 * 5.6).sqrt() / 2.0;
    assert!((geometry["shortest_distance_angstrom"].as_f64().unwrap() - expected).abs() < 1e-9, "{geometry}");
    assert!((geometry["volume"].as_f64().unwrap() - 89.6).abs() < 1e-9);
    assert_eq!((&verdicts[2]["generation"], &verdicts[2]["repeats_text"]), (&json!(2), &json!(true)));
    assert_eq!(verdicts[3]["why"], "composition");
}

#[test]
fn an_array_holds_records_and_a_file_may_end_with_its_line() {
    let folder = folder();
    let whole =
        "audit array.json one.txt --skeleton crystal.json --prompts one.jsonl --json --row-field file";
    let text = |text: &str| json!({"prompt": "salt", "text": text});
    folder.file("array.json", json!([text(SALT), 7, text(&format!("{SALT}\n"))]).to_string());
    folder.file("one.jsonl", lines(&[json!({"prompt": "salt", "species": ["Na", "Cl"]})]));
    // The built-in skeleton may end with a line break.
    let builtin = include_str!("../../src/core/skeleton/builtin/crystal-text.json");
    let mut strict: Value = serde_json::from_str(builtin).unwrap();
    strict["ends"] = json!([""]);
    folder.file("crystal.json", strict.to_string());
    for (end, faults) in [("\n", json!({})), ("\r\n", json!({})), ("\n\n", json!({"trailing": 1}))] {
        folder.file("one.txt", format!("{SALT}{end}"));
        let report = folder.line(whole).good().json();
        let [array, one] = [0, 1].map(|row| report["rows"][row].clone());
        assert_eq!((&array["texts"], &array["faults"]), (&json!(2), &json!({"trailing": 1})));
        assert_eq!(report["skipped_records"][0]["record"], "entry 2");
        assert_eq!((&one["texts"], &one["faults"]), (&json!(1), &faults), "{end:?}");
    }
}

#[test]
fn rows_are_compared_prompt_by_prompt() {
    let folder = folder();
    let judge = "audit texts.jsonl --skeleton crystal-text --prompts prompts.jsonl --against-row";
    let report = folder.line(&format!("{judge} none --json")).good().json();
    let [comparison] = &report["comparisons"].as_array().unwrap()[..] else { panic!("{report}") };
    assert_eq!((&comparison["pairs"], &comparison["unpaired"]), (&json!(4), &json!(0)));
    assert_eq!((&comparison["passed_without"], &comparison["identical"]), (&json!(2), &json!(1)));
    let passed = &comparison["figures"][0];
    assert_eq!(
        (&passed["figure"], &passed["without"], &passed["with"]),
        (&json!("passed"), &json!(0.5), &json!(1.0))
    );
    let close = comparison["figures"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&close["figure"], &close["without"], &close["with"]),
        (&json!("close"), &json!(0.0), &json!(0.25))
    );
    // Over the prompts: of three pairs one differs, -0.00 for 0.50 on x; and the pair that is too close.
    let whole = (4.0f64 * 4.0 + 4.0 * 4.0 + 5.6 * 5.6).sqrt() / 2.0;
    let minus = (4.0f64 * 4.0 + 5.6 * 5.6).sqrt() / 2.0;
    let expected = ((whole - minus) / 3.0 + 0.04 - whole) / 2.0;
    let found = &comparison["all_shortest_difference_angstrom"];
    assert_eq!(found["items"], 2);
    assert!((found["mean"].as_f64().unwrap() - expected).abs() < 1e-9, "{found} {expected}");
    let shown = folder.line(&format!("{judge} none")).good();
    for part in [
        "Texts of crystal-text",
        "Against none",
        "minus zero",
        "line 1",
        "is not a number with 2 decimals",
        "Shortest distance of each text",
        "the shortest distance of all texts differs by",
    ] {
        assert!(shown.text().contains(part), "{}", shown.text());
    }
    folder.line(&format!("{judge} nobody")).refused_for("no row is called");
}

#[test]
fn a_text_is_a_file_and_texts_have_the_order_of_prompts() {
    let folder = folder();
    folder.file("ethanol.xyz", "3\n\nC 0.00 0.00 0.00\nC 1.52 0.00 0.00\nO 2.03 1.33 0.00\n");
    folder.file("one.jsonl", lines(&[json!({"species": ["C", "C", "O"]})]));
    let report = folder.line("audit ethanol.xyz --skeleton xyz --prompts one.jsonl --json").good().json();
    assert_eq!((&report["rows"][0]["row"], &report["rows"][0]["passed"]), (&json!("ethanol.xyz"), &json!(1)));
    // Texts without a prompt, several in a line.
    folder.file("ordered.jsonl", lines(&[json!({"text": [SALT, ""]}), json!({"responses": [SALT]})]));
    let run = "audit ordered.jsonl --skeleton crystal-text --prompts prompts.jsonl --json";
    let report = folder.line(run).good().json();
    assert_eq!(report["rows"][0]["passed"], 2);
    assert_eq!(report["rows"][0]["faults"], json!({"cut": 1}));
    folder.file(
        "bad.jsonl",
        format!("{}no JSON\n{{\"text\": 7}}\n", lines(&[json!({"text": SALT}), json!({"text": SALT})])),
    );
    let report = folder.line(&run.replace("ordered", "bad")).good().json();
    assert_eq!((&report["skipped"], &report["skipped_records"][0]["record"]), (&json!(2), &json!("line 3")));
}

#[test]
fn what_does_not_fit_is_refused_in_one_line() {
    let folder = folder();
    folder.file(
        "lacking.jsonl",
        lines(&[json!({"prompt": "salt"}), json!({"prompt": "any salt", "formula": "NaCl"})]),
    );
    folder.file(
        "twice.jsonl",
        lines(&[json!({"prompt": "salt", "formula": "K"}), json!({"prompt": "salt", "formula": "Na"})]),
    );
    folder.file("short.jsonl", lines(&[json!({"text": "a"}), json!({"text": "b"}), json!({"text": "c"})]));
    folder.file("wrong.jsonl", "{\"prompt\": 1\n");
    folder.file("skeleton.json", "{\"schema\": \"drift.skeleton/1\", \"name\": \"a\", \"text\": [\"{x}\"]}");
    for (line, part) in [
        (
            "texts.jsonl --skeleton crystal-text --prompts lacking.jsonl",
            "lacking.jsonl: line 1: the prompt has no field",
        ),
        ("texts.jsonl --skeleton crystal-text --prompts twice.jsonl", "occurs with different fields"),
        ("texts.jsonl --skeleton crystal-text --prompts wrong.jsonl", "wrong.jsonl: line 1"),
        ("short.jsonl --skeleton crystal-text --prompts prompts.jsonl", "3 texts without a `prompt`"),
        ("texts.jsonl --skeleton crystals --prompts prompts.jsonl", "no skeleton has this name"),
        ("texts.jsonl --skeleton skeleton.json --prompts prompts.jsonl", "`{x}` is no slot"),
        (
            "texts.jsonl --skeleton crystal-text --prompts prompts.jsonl --dialect fixed",
            "--dialect: has no meaning",
        ),
        ("texts.jsonl --skeleton crystal-text --prompts texts.jsonl --verdicts texts.jsonl", "texts.jsonl"),
    ] {
        folder.line(&format!("audit {line}")).refused_for(part);
    }
    for (line, part) in [
        ("inspect [C]<1,2,3> --skeleton xyz --prompts prompts.jsonl", "TEXT: has no meaning"),
        (
            "inspect --skeleton crystal-text --prompts lacking.jsonl",
            "lacking.jsonl: line 1: the prompt has no",
        ),
        ("inspect --skeleton crystal-text --prompts prompts.jsonl --encoding fixed", "--encoding: has no"),
        ("export-grammar --skeleton crystal-text --prompts prompts.jsonl --format json", "have no tables"),
        (
            "export-grammar --skeleton crystal-text --prompts prompts.jsonl --opened",
            "--opened: has no meaning",
        ),
        ("export-grammar --skeleton simple-cif --prompts prompts.jsonl", "before a marker free"),
    ] {
        folder.line(line).refused_for(part);
    }
    for verb in ["fit", "mine a.sdf", "encode a.sdf -o b.jsonl"] {
        folder
            .line(&format!("{verb} --skeleton xyz"))
            .refused_for("--skeleton: this command knows enriched SMILES alone");
    }
    let line = drift(&["eval", "--prompts", "a.jsonl"]).refused();
    assert!(
        line.starts_with("--prompts: this command knows") && line.contains("--smiles FILE or --corpus"),
        "{line}"
    );
    drift(&["audit", "a", "--skeleton", "xyz"]).refused_usage("--prompts");
}

/// Digits alone are tokens of Qwen's kind, so numbers of fixed decimals take equally many; lengths and angles vary.
#[test]
fn tokens_are_counted_over_all_texts() {
    let folder = folder();
    let ran = folder.line("inspect --skeleton crystal-text --prompts prompts.jsonl --json");
    let report = ran.good().json();
    assert_eq!(report["schema"], "drift.skeleton-tokens/1");
    let part = |name: &str| {
        let parts = report["parts"].as_array().unwrap();
        parts.iter().find(|part| part["part"] == name).unwrap_or_else(|| panic!("{parts:?}"))["tokens"]
            .clone()
    };
    assert_eq!(
        [part("{fraction}"), part("{length}"), part("{angle}")],
        [json!([4, 4]), json!([3, 5]), json!([1, 3])]
    );
    let line = |name: &str| {
        let all = report["lines"].as_array().unwrap();
        all.iter().find(|line| line["part"] == name).unwrap_or_else(|| panic!("{all:?}"))["tokens"].clone()
    };
    assert_eq!(line("{length} {length} {length}\n"), json!([12, 18]));
    assert_eq!(line("{angle} {angle} {angle}\n"), json!([6, 12]));
    assert_eq!(line("Na\n"), json!([2, 2]));
    assert_eq!(line("{fraction} {fraction} {fraction}\n"), json!([15, 15]));
    // The last line may lack its line break.
    assert_eq!(line("{fraction} {fraction} {fraction}"), json!([14, 14]));
    assert_eq!(report["lines"].as_array().unwrap().len(), 6);
    // Lines of three lengths and of three angles, two atoms of 16 tokens and a line break between them, and perhaps one at the end.
    assert_eq!(report["prompts"][0]["tokens"], json!([12 + 6 + 33, 18 + 12 + 33 + 1]));
    assert_eq!(report["prompts"][1]["tokens"][0], report["prompts"][0]["tokens"][0]);
    assert!(report["prompts"][1]["tokens"][1].as_u64() > report["prompts"][0]["tokens"][1].as_u64());
    assert_eq!(report["constant"], 0);
    let ran = folder.line("inspect --skeleton crystal-text --prompts prompts.jsonl").good();
    let shown = ran.text();
    assert!(shown.contains("0 of 2 prompts take the same number in every text"), "{shown}");
}

/// A tokenizer of digits alone: a number takes as many tokens as characters.
#[test]
fn slots_are_compared_in_other_ways_to_write_them() {
    let folder = folder();
    folder.file("salt.jsonl", lines(&[json!({"species": ["Na", "Cl"]})]));
    let line = "encodings --skeleton crystal-text --prompts salt.jsonl --tokenizer qwen-like llama-like";
    let report = folder.line(&format!("{line} --json -o report.json")).good().json();
    assert_eq!(report["schema"], "drift.slot-encodings/1");
    let of = |tokenizer: &str, slot: &str, change: Value| {
        let rows = report["rows"].as_array().unwrap();
        let is = |row: &&Value| {
            [&row["tokenizer"], &row["slot"], &row["change"]] == [&json!(tokenizer), &json!(slot), &change]
        };
        rows.iter().find(is).unwrap_or_else(|| panic!("{slot} {change}: {rows:?}")).clone()
    };
    // Lengths, angles, two atoms with their lines, and perhaps a line break at the end.
    for (change, slot, text, step, numbers) in [
        (Value::Null, [4, 4], [51, 64], 0.01, 101),
        (json!("fewer_decimals"), [3, 3], [45, 58], 0.1, 11),
        (json!("more_decimals"), [5, 5], [57, 70], 0.001, 1_001),
        (json!("stripped"), [1, 4], [33, 64], 0.01, 101),
        (json!("bins"), [3, 3], [45, 58], 0.01, 101),
    ] {
        let row = of("qwen-like", "fraction", change.clone());
        let found = [&row["tokens_per_slot"], &row["tokens_per_text"], &row["step"], &row["numbers"]];
        assert_eq!(found, [&json!(slot), &json!(text), &json!(step), &json!(numbers)], "{change}");
        assert_eq!(row["joined"], false);
    }
    let padded = of("qwen-like", "length", json!("padded"));
    assert_eq!((&padded["tokens_per_slot"], &padded["tokens_per_text"]), (&json!([5, 5]), &json!([57, 64])));
    assert_eq!(of("llama-like", "angle", Value::Null)["tokens_per_slot"], json!([1, 1]));
    let written: Value = serde_json::from_slice(&folder.read("report.json")).unwrap();
    assert_eq!(written, report);
    let ran = folder.line(line).good();
    let shown = ran.text();
    assert!(shown.contains("a number with 1 decimal from 0.0 to 1.0"), "{shown}");
    for (option, part) in [("--encoding fixed", "--encoding"), ("--no-extensions", "--no-extensions")] {
        folder.line(&format!("{line} {option}")).refused_usage(part);
    }
    for option in [
        "--frame principal",
        "--smiles-of CCO",
        "--property x",
        "--name-property x",
        "--name-column x",
        "--smiles-column x",
        "--open-stereo skip",
        "--where a=b",
    ] {
        let name = option.split(' ').next().unwrap();
        folder.line(&format!("{line} {option}")).refused_for(&format!("{name}: has no meaning"));
    }
}

/// The numbers of an encoding are counted one by one, as they are and written otherwise; where slots are cut out of the text whole, only
/// texts are counted.
#[test]
fn numbers_of_encodings_are_counted_like_those_of_other_slots() {
    let folder = Folder::new();
    folder.file("one.jsonl", lines(&[json!({"smiles": "CO"})]));
    let row = |tokenizer: &str, encoding: &str| {
        let line = format!(
            "--skeleton enriched-smiles:{encoding} --prompts one.jsonl --tokenizer {tokenizer} --json"
        );
        let rows = folder.line(&format!("encodings {line}")).good().json()["rows"].clone();
        let counted = folder.line(&format!("inspect {line}")).good().json()["prompts"][0]["tokens"].clone();
        assert_eq!(rows[0]["tokens_per_text"], counted, "{rows}");
        let of = |change: Value| {
            let row = rows.as_array().unwrap().iter().find(|row| row["change"] == change).unwrap();
            row["tokens_per_slot"].clone()
        };
        (of(Value::Null), of(json!("fewer_decimals")))
    };
    // One or two digits, the point, the decimals, and perhaps the sign, with the character before it where a token may join both.
    assert_eq!(row("qwen-like", "fixed-2"), (json!([5, 7]), json!([4, 6])));
    assert_eq!(row("qwen-like-fused", "fixed").0, Value::Null);
}

#[test]
fn each_prompt_has_its_grammar() {
    let folder = folder();
    for format in ["lark", "ebnf"] {
        let line = format!(
            "export-grammar --skeleton crystal-text --prompts prompts.jsonl --format {format} -o g.jsonl"
        );
        folder.line(&line).done();
        let lines = rows(&folder.read("g.jsonl"));
        assert_eq!([&lines[0]["prompt"], &lines[1]["prompt"]], [&json!("salt"), &json!("any salt")]);
        let start = if format == "lark" { "start: p0\n" } else { "root ::= p0\n" };
        assert!(lines.iter().all(|line| line["grammar"].as_str().unwrap().starts_with(start)), "{lines:?}");
    }
    // Behind the beginning of a text, a grammar has its rest.
    let begun = |text: &str| {
        let arguments = "export-grammar --skeleton simple-cif --prompts prompts.jsonl -o g.jsonl".split(' ');
        folder.drift(&[&arguments.collect::<Vec<_>>()[..], &["--begun", text]].concat())
    };
    begun("<CIF>").done();
    assert!(rows(&folder.read("g.jsonl")).iter().all(|line| line["grammar"].is_string()));
    begun("<XYZ>").refused_for("before a marker free");
    begun("<CIF>z").refused_for("no text of this prompt begins with the tokens of `<CIF>z`");
}

/// Enriched SMILES is a skeleton: its texts are joined by their SMILES, judged, and counted as `drift inspect` counts each of them.
#[test]
fn enriched_smiles_is_a_skeleton() {
    let folder = Folder::new();
    folder.file("prompts.jsonl", lines(&[json!({"smiles": "CO"}), json!({"smiles": "C1CC1"})]));
    let text = |smiles: &str, text: &str| json!({"smiles": smiles, "text": text});
    let methanol = "[CONFORMER][C]<0.0000,0.0000,0.0000>[O]<1.4000,0.0000,-0.2500>[/CONFORMER]";
    let ring = "[CONFORMER][C]<0.0000,0.0000,0.0000>1[C]<1.5000,0.0000,0.0000>[C]<0.7500,1.2990,0.0000>1[/CONFORMER]";
    folder.file(
        "texts.jsonl",
        lines(&[
            text("C1CC1", ring),
            text("CO", methanol),
            text("CO", &methanol.replace("[O]", "[N]")),
            text("CO", &methanol.replace("1.4000", "1.40")),
            text("CO", &methanol.replace("1.4000", "140.0000")),
            text("CO", methanol.split("[O]").next().unwrap()),
        ]),
    );
    let ran = folder.line(
        "audit texts.jsonl --skeleton enriched-smiles --prompts prompts.jsonl --verdicts v.jsonl --json",
    );
    let report = ran.good().json();
    assert_eq!(report["rows"][0]["passed"], 2, "{report}");
    let verdicts = rows(&folder.read("v.jsonl"));
    let why: Vec<&Value> = verdicts.iter().map(|verdict| &verdict["why"]).collect();
    assert_eq!(
        why,
        [&json!(null), &json!(null), &json!("format"), &json!("format"), &json!("range"), &json!("cut")]
    );
    let distance = |at: usize| verdicts[at]["geometry"]["shortest_distance_angstrom"].as_f64().unwrap();
    assert!((distance(1) - (1.4f64 * 1.4 + 0.25 * 0.25).sqrt()).abs() < 1e-9 && distance(0) < 1.5001);
    folder.file("one.jsonl", lines(&[json!({"smiles": "CO"})]));
    for (tokenizer, encoding) in [
        ("qwen-like", "fixed-1"),
        ("llama-like", "stripped-1"),
        ("llama-like", "binned-v2:-13,13,0.104"),
        // Blocks of small numbers are cut out of the text, others are not.
        ("qwen-like-fused", "fixed"),
    ] {
        let counted = folder.line(&format!(
            "inspect --tokenizer {tokenizer} --skeleton enriched-smiles:{encoding} --prompts one.jsonl --json"
        ));
        let expected = counted.good().json()["prompts"][0]["tokens"].clone();
        let counts = all_counts(&folder, tokenizer, encoding);
        let found = [counts.iter().min().unwrap(), counts.iter().max().unwrap()];
        assert_eq!(json!(found), expected, "{tokenizer} {encoding}");
    }
    for (line, problem) in [
        ("inspect --skeleton enriched-smiles:nothing --prompts one.jsonl", "nothing"),
        ("inspect --skeleton xyz:fixed --prompts one.jsonl", "no slot has an encoding"),
        (
            "inspect --skeleton enriched-smiles --prompts prompts.jsonl --encoding fixed-2",
            "enriched-smiles:ENCODING",
        ),
    ] {
        folder.line(line).refused_for(problem);
    }
    folder.file("bad.jsonl", lines(&[json!({"smiles": "C("})]));
    folder.line("inspect --skeleton enriched-smiles --prompts bad.jsonl").refused_for("C(");
    let made = "train-tokenizer --base qwen-like --skeleton enriched-smiles:fixed-1 --prompts one.jsonl --tokens-per-block 2 -o made --json";
    let report = folder.line(made).good().json();
    assert_eq!((&report["tokens_per_slot"], &report["constant"]), (&json!(2), &json!(1)), "{report}");
}

/// By text of methanol with numbers of all kinds, its tokens as `drift inspect` counts them.
fn all_counts(folder: &Folder, tokenizer: &str, encoding: &str) -> Vec<u64> {
    let is_bins = encoding.starts_with("binned");
    let numbers: &[&str] = match encoding {
        "fixed-1" => &["1.0", "-1.0", "11.0", "-11.0"],
        "fixed" => &["1.0000", "-1.0000", "96.0000", "-96.0000"],
        "stripped-1" => &["1", "-1", "1.5", "-1.5", "11", "-11", "11.5", "-11.5"],
        _ => &["000", "111", "249"],
    };
    let mut texts = Vec::new();
    for x in numbers {
        for y in numbers {
            for z in numbers {
                let block = if is_bins { format!("{x}{y}{z};") } else { format!("<{x},{y},{z}>") };
                texts.push(format!("[CONFORMER][C]{block}[O]{block}[/CONFORMER]"));
            }
        }
    }
    let options = ["inspect", "--tokenizer", tokenizer, "--encoding", encoding, "--json"];
    let arguments: Vec<&str> = options.into_iter().chain(texts.iter().map(String::as_str)).collect();
    let ran = folder.drift(&arguments);
    ran.good().json().as_array().unwrap().iter().map(|text| text["count"].as_u64().unwrap()).collect()
}

/// A plain map of words is a tokenizer: texts are split into its longest words.
#[test]
fn a_map_of_words_is_a_tokenizer() {
    let folder = Folder::new();
    let mut words: Vec<String> = "0123456789. \n-".chars().map(String::from).collect();
    words.extend(["Na", "Cl", "N", "_cell", "_cell_length_a", "<unk>"].map(str::to_owned));
    let map = |words: &[String]| {
        let entries = words.iter().enumerate().map(|(id, word)| (word.clone(), json!(id)));
        Value::Object(entries.collect()).to_string()
    };
    std::fs::create_dir(folder.path().join("model")).unwrap();
    folder.file("model/vocabulary.json", map(&words));
    let text = "_cell_length_a NaN 190\nNeon_x _cell-";
    let tokens =
        folder.drift(&["inspect", "--tokenizer", "model", "--json", text]).good().json()[0]["tokens"].clone();
    let ids: Vec<u64> =
        tokens.as_array().unwrap().iter().map(|token| token["id"].as_u64().unwrap()).collect();
    let id = |word: &str| words.iter().position(|known| known == word).unwrap() as u64;
    let expected =
        ["_cell_length_a", " ", "Na", "N", " ", "1", "9", "0", "\n", "N", "<unk>", " ", "_cell", "-"];
    assert_eq!(ids, expected.map(id));
    folder.file("prompts.jsonl", lines(&[json!({"formula": "NaCl"})]));
    let counted =
        folder.line("inspect --tokenizer model --skeleton crystal-text --prompts prompts.jsonl --json");
    assert_eq!(counted.good().json()["tokenizer"], "model");
    // Whoever has no word for unknown text, or parts of words, is told how to convert it.
    for (content, problem) in [
        (map(&words[..words.len() - 1]), "no word for unknown text"),
        (map(&words).replace("Cl", "\u{120}Cl"), "parts of words"),
        (map(&words).replace(":18", ":3"), "two words of one id"),
    ] {
        folder.file("model/vocabulary.json", content);
        folder.line("inspect --tokenizer model x").refused_for(problem);
    }
    folder.file("model/vocabulary.json", map(&words));
    folder.file("model/merges.txt", "");
    folder.line("inspect --tokenizer model x").refused_for("merges.txt");
}
