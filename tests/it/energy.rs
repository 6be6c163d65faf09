//! `audit --energy`: what a program is given and says, and what becomes of one that dies, says too little, or hangs.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Folder, Ran, python_program, rows, words};

/// Three texts of ethanol that pass, and one that does not.
fn texts(folder: &Folder) {
    let text = |o: &str| {
        let answer = format!("[C]<0.0000,0.0000,0.0000>[C]<1.5000,0.0000,0.0000>[O]<{o},1.3000,0.0000>");
        json!({"smiles": "CCO", "text": format!("[CONFORMER]{answer}[/CONFORMER]")}).to_string() + "\n"
    };
    let failed =
        json!({"smiles": "CCO", "text": "[CONFORMER][C]<0.0000,0.0000,0.0000>[/CONFORMER]"}).to_string();
    folder.file("texts.jsonl", text("2.0000") + &text("2.1000") + &failed + "\n" + &text("9.0000"));
    let reference = "[C]<0.0000,0.0000,0.0000>[C]<1.5000,0.0000,0.0000>[O]<1.9000,1.3000,0.0000>";
    folder.file("references.jsonl", json!({ "embedded_smiles": reference }).to_string() + "\n");
}

fn audit(folder: &Folder, command: &str, more: &[&str]) -> Ran {
    let given = ["audit", "texts.jsonl", "--dialect", "fixed", "--quiet", "--energy", command];
    folder.drift(&[&given, more].concat())
}

/// A program whose energy is 10 times the x of the oxygen, and says how often it was run.
const BY_X: &str = "echo run >> runs; awk '$1 == \"O\" {print 10 * $2}'";

#[test]
fn frames_go_in_and_energies_come_out() {
    let folder = Folder::new();
    texts(&folder);
    audit(&folder, "tee frames.xyz | awk '$1 == \"O\" {print 10 * $2, 15}'", &[]).good();
    let frames = String::from_utf8(folder.read("frames.xyz")).unwrap();
    let first =
        "3\nCCO\nC 0.000000 0.000000 0.000000\nC 1.500000 0.000000 0.000000\nO 2.000000 1.300000 0.000000\n";
    assert!(frames.starts_with(first) && frames.lines().count() == 15, "{frames}");

    // Against the relaxed conformer.
    let relaxed = "awk '$1 == \"O\" {print 10 * $2, 15}'";
    let energy =
        audit(&folder, relaxed, &["--json", "--energy-list", "list.jsonl"]).good().json()["energy"].take();
    let total = &energy["total"];
    assert_eq!(
        (&total["texts"], &total["with_energy"], &total["timed_out"]),
        (&json!(3), &json!(3), &json!(0))
    );
    // 20 - 15, 21 - 15 and 90 - 15; the last one is torn apart.
    assert_eq!(
        total["strain"],
        json!({"texts": 3, "mean": 86.0 / 3.0, "median": 6.0, "percentile_90": 75.0})
    );
    assert_eq!(
        total["strain_of_valid"],
        json!({"texts": 2, "mean": 5.5, "median": 5.5, "percentile_90": 6.0})
    );
    let rows = rows(&folder.read("list.jsonl"));
    assert_eq!((rows.len(), &rows[2]["record"], &rows[2]["strain"]), (3, &json!("line 4"), &json!(75.0)));
    assert_eq!((&rows[0]["valid"], &rows[2]["valid"]), (&json!(true), &json!(false)));

    // Against the best reference, at 19; hartrees are turned into kcal/mol.
    let more = ["--references", "references.jsonl", "--json"];
    let total = audit(&folder, BY_X, &more).good().json()["energy"].take();
    assert_eq!((&total["references"], &total["total"]["strain"]["median"]), (&json!(1), &json!(2.0)));
    let hartrees = audit(&folder, BY_X, &[&more[..], &["--energy-unit", "hartree"]].concat()).good().json();
    let median = hartrees["energy"]["total"]["strain"]["median"].as_f64().unwrap();
    assert!((median - 2.0 * 627.509_474).abs() < 1e-3, "{median}");

    // With neither there is an energy and no strain.
    let shown = audit(&folder, BY_X, &[]).good();
    assert!(shown.text().contains("no text has a strain"), "{}", shown.text());
    let unknown = audit(&folder, "awk '$1 == \"O\" {print \"nan\"}'", &["--json"]).good().json();
    assert_eq!(
        (&unknown["energy"]["total"]["with_energy"], &unknown["energy"]["total"]["strain"]),
        (&json!(0), &Value::Null)
    );
}

/// Isomers are compared together with `--pool`, but the strain of each is measured from its own references.
#[test]
fn a_pooled_isomer_keeps_the_energies_of_its_own_references() {
    let folder = Folder::new();
    // The last fluorine lies on the other side of the double bond, or on the same one, at this x.
    let answer = |mark: char, x: &str, y: &str| {
        let before = "[F]<-1.1000,0.8000,0.0000>/[C]<0.0000,0.0000,0.0000>=[C]<1.3000,0.0000,0.0000>";
        format!("{before}{mark}[F]<{x},{y},0.0000>")
    };
    let text = |smiles: &str, answer: String| {
        json!({"smiles": smiles, "geom_smiles": "FC=CF", "text": format!("[CONFORMER]{answer}[/CONFORMER]")})
            .to_string()
            + "\n"
    };
    let trans = text("F/C=C/F", answer('/', "2.4000", "-0.8000"));
    folder.file("texts.jsonl", trans + &text("F/C=C\\F", answer('\\', "2.4100", "0.8000")));
    let reference = |answer: String| json!({ "embedded_smiles": answer }).to_string() + "\n";
    let of_trans = reference(answer('/', "2.3000", "-0.8000"));
    folder.file("references.jsonl", of_trans + &reference(answer('\\', "2.2000", "0.8000")));
    let by_last = "awk '$1 == \"F\" {x = $2} $1 == \"F\" && NR % 6 == 0 {print 100 * x}'";
    for pool in [&[][..], &["--pool"]] {
        let more =
            [&["--references", "references.jsonl", "--json", "--energy-list", "list.jsonl"], pool].concat();
        let energy = audit(&folder, by_last, &more).good().json()["energy"].take();
        assert_eq!(
            (&energy["references"], &energy["total"]["with_energy"]),
            (&json!(2), &json!(2)),
            "{pool:?}"
        );
        let strains: Vec<f64> =
            listed(&folder, "list.jsonl").iter().map(|row| row["strain"].as_f64().unwrap()).collect();
        assert!(
            (strains[0] - 10.0).abs() < 1e-9 && (strains[1] - 21.0).abs() < 1e-9,
            "{pool:?}: {strains:?}"
        );
    }
}

#[test]
fn answers_are_kept_and_a_run_goes_on() {
    let folder = Folder::new();
    texts(&folder);
    let runs = || folder.read("runs").len() / "run\n".len();
    let cache = ["--energy-cache", "energies.cache", "--energy-batch", "1", "--json"];
    let first = audit(&folder, BY_X, &cache).good();
    assert_eq!(runs(), 3);
    assert_eq!(audit(&folder, BY_X, &cache).good(), first);
    assert_eq!(runs(), 3);
    // Another command is asked anew, and what it says before it dies is kept.
    let dies = "echo run >> runs; read n; read smiles; cat > /dev/null; [ $(wc -l < runs) -lt 6 ] && echo 1 || { echo 'no licence' >&2; exit 3; }";
    let died = audit(&folder, dies, &cache);
    died.refused_for("--energy: ended with exit status: 3: `no licence`");
    assert_eq!(runs(), 6);
    folder.file("runs", "");
    audit(&folder, dies, &cache).good();
    assert_eq!(runs(), 1);
}

#[test]
fn a_program_that_is_no_use_is_one_line() {
    let folder = Folder::new();
    texts(&folder);
    for (command, problem) in [
        ("exit 7", "--energy: ended with exit status: 7"),
        ("kill -s SEGV $$", "--energy: ended with signal: 11"),
        ("no-such-program-at-all", "no-such-program-at-all"),
        ("cat > /dev/null; echo 1; echo 2", "--energy: wrote 2 lines for 3 frames"),
        (
            "cat > /dev/null; printf '1\\n2\\n3'; echo; echo 4",
            "--energy: writes more than the 3 lines that 3 frames have",
        ),
        (
            "cat > /dev/null; echo energy is 5",
            "--energy: writes a line that is not one or two numbers: `energy is 5`",
        ),
        ("cat > /dev/null; yes 1 | tr -d '\\n'", "--energy: "),
        ("true", "--energy: wrote 0 lines for 3 frames"),
        ("  ", "--energy: is empty"),
    ] {
        audit(&folder, command, &[]).refused_for(problem);
    }
    audit(&folder, "true", &["--energy-timeout", "0"]).refused_for("--energy-timeout: is 0");
    audit(&folder, "true", &["--energy-timeout", "-1"]).refused_for("--energy-timeout: is -1");
    audit(&folder, "true", &["--energy-batch", "0"]).refused_for("--energy-batch: is 0");
    folder.file("cache", "no journal\nat all\n");
    audit(&folder, "true", &["--energy-cache", "cache"]).refused_for("cache");
}

#[test]
fn a_program_that_hangs_is_ended() {
    let folder = Folder::new();
    texts(&folder);
    // It hangs at one frame: that has no energy, and the others have theirs. What it started is ended too.
    let hangs = "awk '$1 == \"O\" {if ($2 == 2.1) system(\"sleep 1000\"); print 10 * $2; fflush()}'";
    let commands = [
        hangs,
        // All is said, and it does not end.
        "awk '$1 == \"O\" {print 1}'; exec sleep 1000",
        // Its output stays open when it has ended.
        "awk '$1 == \"O\" {print 1}'; sleep 1000 &",
    ];
    // A busy machine may take seconds to start a shell, and has more of them each time. The commands wait side by side.
    let expected = [json!([3, 2, 1]), json!([3, 3, 0]), json!([3, 3, 0])];
    let counts = |command, timeout| {
        let ran = audit(&folder, command, &["--energy-timeout", timeout, "--json"]);
        let total = if ran.code == Some(0) { ran.json()["energy"]["total"].take() } else { Value::Null };
        json!([total["texts"], total["with_energy"], total["timed_out"]])
    };
    let mut found = Vec::new();
    for timeout in ["2", "10", "60"] {
        found = std::thread::scope(|scope| {
            let threads = commands.map(|command| scope.spawn(move || counts(command, timeout)));
            threads.map(|thread| thread.join().unwrap()).to_vec()
        });
        if found == expected {
            break;
        }
    }
    assert_eq!(found, expected);
    // At every one: three times in a row are enough.
    let always = audit(&folder, "sleep 1000", &["--energy-timeout", "0.3"]);
    always.refused_for("--energy: answered no frame for 0.3 s, 3 times in a row, and was stopped");
}

#[test]
fn shards_keep_energies() {
    let folder = Folder::new();
    texts(&folder);
    std::fs::copy(folder.path().join("texts.jsonl"), folder.path().join("more.jsonl")).unwrap();
    let mut command = words("audit texts.jsonl more.jsonl --dialect fixed --quiet --energy");
    command.push("awk '$1 == \"O\" {print 10 * $2, 15}'");
    let whole = folder.drift(&[&command[..], &["--json"]].concat()).good();
    for shard in ["1/2", "2/2"] {
        folder.drift(&[&command[..], &["--shard", shard, "-o", &shard[..1]]].concat()).good();
    }
    let merged = folder.drift(&["merge", "1", "2", "-o", "merged.json", "--json"]).good();
    assert_eq!(merged.text(), whole.text());
    assert_eq!(whole.json()["energy"]["total"]["with_energy"], 6);
}

/// A program whose energy is the sum of all x².
const BY_SQUARES: &str =
    "awk '/^[0-9]+$/ {left = $1; sum = 0; getline; next} {sum += $2 * $2} --left == 0 {print sum}'";

/// The lines of a list of energies, without what is named otherwise there.
fn listed(folder: &Folder, name: &str) -> Vec<Value> {
    let text = String::from_utf8(folder.read(name)).unwrap();
    let row = |line: &str| {
        let mut row: Value = serde_json::from_str(line).unwrap();
        let fields = row.as_object_mut().unwrap();
        fields.remove("file");
        fields.remove("record");
        row
    };
    text.lines().map(row).collect()
}

#[test]
fn an_evaluation_asks_for_energies_as_an_audit_of_its_texts_does() {
    let folder = Folder::new();
    let run = ["eval", "--samples", "3", "--generations", "2", "--lp", "none,automaton", "--quiet"];
    let asked = [&run[..], &["--energy", BY_SQUARES]].concat();
    let files = ["--energy-list", "e.jsonl", "--texts", "texts.jsonl", "--json", "-o", "out"];
    let report = folder.drift(&[&asked[..], &files].concat()).good().json();
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/corpora/small.jsonl.gz");
    let given = ["texts.jsonl", "--dialect", "fixed", "--references", corpus, "--energy", BY_SQUARES];
    let audited = folder
        .drift(&[&["audit", "--quiet", "--json", "--energy-list", "a.jsonl"], &given[..]].concat())
        .good()
        .json();
    let (own, audited) = (&report["energy"], &audited["energy"]);
    assert_eq!(listed(&folder, "e.jsonl"), listed(&folder, "a.jsonl"));
    assert!(own["total"]["strain"]["texts"].as_u64().unwrap() > 6, "{own}");
    for figure in ["total", "references", "references_with_energy"] {
        assert_eq!(own[figure], audited[figure], "{figure}");
    }
    let lps = |report: &Value| -> Vec<Value> {
        report["files"].as_array().unwrap().iter().map(|file| file["lp"].clone()).collect()
    };
    assert_eq!(lps(own), lps(audited));
    let page = String::from_utf8(folder.read("out/eval.html")).unwrap();
    assert!(page.contains("Strain"), "{page}");

    // Shards write texts; the merge asks.
    for shard in ["1/2", "2/2"] {
        folder.drift(&[&asked[..], &["--shard", shard, "-o", &shard[..1]]].concat()).good();
    }
    let merged = folder.drift(&["merge", "1", "2", "-o", "merged", "--json"]).good().json();
    assert_eq!(&merged["energy"], own);
}

#[test]
fn texts_are_kept_where_the_program_of_an_evaluation_dies() {
    let folder = Folder::new();
    let run = ["eval", "--samples", "2", "--lp", "automaton", "--quiet", "--energy"];
    let asked = |program: &str, more: &[&str]| folder.drift(&[&run[..], &[program], more].concat());
    asked("exit 3", &[]).refused_for("--energy: the texts would be lost if the program failed; give -o DIR");
    asked("exit 3", &["-o", "out"]).refused_for("--energy: ended with exit status: 3");
    // Another program may be tried with the same texts.
    let again = asked(BY_SQUARES, &["-o", "out"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert!(again.stderr.contains("continues after 2 finished texts"), "{}", again.stderr);
    assert!(again.text().contains("Strain by"), "{}", again.text());
    let list = ["--energy-list", "-", "-o", "out"];
    asked(BY_SQUARES, &list).refused_for("--energy-list -: stdout takes either the tables");
}

/// The worked example: a text that is nearly relaxed has little strain, one that is torn apart has none.
#[test]
#[cfg_attr(not(all(has_rdkit, has_xtb)), ignore = "needs a Python with rdkit, and xtb")]
fn xtb_finds_the_strain_of_texts() {
    let folder = Folder::new();
    texts(&folder);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("eval/energy/xtb.py");
    let command = format!("{} {} --relax", python_program(), script.display());
    audit(&folder, &command, &["--energy-list", "list.jsonl"]).good();
    let rows = rows(&folder.read("list.jsonl"));
    for row in &rows[..2] {
        let [energy, strain] = ["energy", "strain"].map(|name| row[name].as_f64().unwrap());
        // GFN2-xTB has ethanol at -11.39 hartree.
        assert!((energy + 7_150.0).abs() < 5.0 && (0.1..5.0).contains(&strain), "{row}");
    }
    assert!(rows[2]["strain"].as_f64().is_none_or(|strain| strain > 50.0), "{}", rows[2]);
}

/// Comments and empty lines are no answer, however many there are.
#[test]
fn endless_comments_are_a_hang() {
    let folder = Folder::new();
    texts(&folder);
    let endless = |line: &str| {
        let command = format!("while read -r all; do :; done; while :; do echo '{line}'; done");
        audit(&folder, &command, &["--energy-timeout", "0.3"])
    };
    for line in ["# still at it", "", "   "] {
        endless(line).refused_for("--energy: answered no frame for 0.3 s, 3 times in a row, and was stopped");
    }
    // An answer among them counts, and a comment may be long.
    let comment = "x".repeat(5_000);
    let answered = format!("awk '$1 == \"O\" {{print \"# {comment}\"; print \"\"; print 10 * $2, 15}}'");
    let total = audit(&folder, &answered, &["--json"]).good().json()["energy"]["total"].take();
    assert_eq!((&total["with_energy"], &total["timed_out"]), (&json!(3), &json!(0)));
}
