//! `mine --against` on the users' tables: texts, InChIKeys and scaffolds beside molecules and geometries, by data set and test subset, and
//! the rows that stay.

use std::io::Read as _;

use serde_json::{Value, json};

use crate::readers::gzip;
use crate::support::{Folder, rows};

const HEAD: &str =
    "name,enriched_text,dataset,source_name,source_file_id,source_row_index,inchikey,test_subset";
const TOLUENE: &str = "[C]<%>[c]<%>1[c]<%>[c]<%>[c]<%>[c]<%>[c]<%>1";
const ETHANOL: &str = "[C]<%>[C]<%>[O]<%>";
const CHIRAL: &str = "[C]<%>[C@H]<%>([N]<%>)[F]<%>";
const KEYS: [&str; 3] =
    ["LFQSCWFLJHTTHZ-UHFFFAOYSA-N", "LFQSCWFLJHTTHZ-UHFFFAOYSA-O", "XDTMQSROBMDMFD-UHFFFAOYSA-N"];

/// Points in a box, by a seed, in units of 0.001 Å.
fn points(atoms: usize, seed: i64) -> Vec<[i64; 3]> {
    let value = |at: i64| (at * 7919 + seed * 104_729 + at * at * seed) % 5_003 - 2_500;
    (0..atoms as i64).map(|at| [value(3 * at), value(3 * at + 1), value(3 * at + 2)]).collect()
}

/// A skeleton with points in its slots, in the stripped dialect.
fn text(skeleton: &str, points: &[[i64; 3]]) -> String {
    let number = |value: i64| format!("{}", value as f64 / 1e3);
    points.iter().fold(skeleton.to_owned(), |text, point| text.replacen('%', &point.map(number).join(","), 1))
}

fn made(skeleton: &str, seed: i64) -> String {
    text(skeleton, &points(skeleton.matches('%').count(), seed))
}

/// The same points in another pose.
fn turned(points: &[[i64; 3]]) -> Vec<[i64; 3]> {
    points.iter().map(|[x, y, z]| [y + 700, z - 31, *x]).collect()
}

/// A row of the users' tables.
fn row(text: &str, dataset: &str, inchikey: &str, subset: &str) -> String {
    format!("\"a, \"\"b\"\"\",\"{text}\",{dataset},x,a1,1,{inchikey},{subset}")
}

/// Another corpus of three rows, and one of eight that share different things with it.
fn planted() -> ([String; 3], [String; 8]) {
    let test = [
        row(&made(TOLUENE, 1), "GEOM", "", "loqi"),
        row(&made(ETHANOL, 2), "GEOM", KEYS[0], ""),
        row(&made(CHIRAL, 3), "GEOM", "", "casf"),
    ];
    let mut ethanol = turned(&points(3, 2));
    ethanol.reverse();
    let train = [
        row(&made(TOLUENE, 1), "GEOM", "", ""),
        row(&text("[O]<%>[C]<%>[C]<%>", &ethanol), "ZINC", "", ""),
        row(&made(CHIRAL, 30), "ZINC", "", ""),
        row(&made("[C]<%>[C@@H]<%>([N]<%>)[F]<%>", 31), "ZINC", "", ""),
        row(&made("[C]<%>[C]<%>[c]<%>1[c]<%>[c]<%>[c]<%>[c]<%>[c]<%>1", 5), "GEOM", "no key", ""),
        row(&made("[C]<%>1[C]<%>[C]<%>1", 6), "GEOM", KEYS[0], ""),
        row(&made("[C]<%>1[C]<%>[C]<%>[C]<%>1", 7), "GEOM", KEYS[1], ""),
        row(&made("[C]<%>[C]<%>[C]<%>", 8), "", KEYS[2], ""),
    ];
    (test, train)
}

const SHARED: [&[&str]; 8] = [
    &["text", "geometry", "isomer", "molecule", "scaffold"],
    &["geometry", "isomer", "molecule"],
    &["isomer", "molecule"],
    &["molecule"],
    &["scaffold"],
    &["inchikey", "inchikey-block"],
    &["inchikey-block"],
    &[],
];
const ALL: &str = "text,geometry,isomer,molecule,inchikey,inchikey-block,scaffold";

fn table<'r>(rows: impl IntoIterator<Item = &'r String>, end: &str) -> String {
    let rows = rows.into_iter().map(String::as_str);
    std::iter::once(HEAD).chain(rows).map(|row| format!("{row}{end}")).collect()
}

fn unzstd(bytes: &[u8]) -> String {
    String::from_utf8(zstd::decode_all(bytes).unwrap()).unwrap()
}

/// A folder with `test.csv` and `train.csv`.
fn folder() -> Folder {
    let folder = Folder::new();
    let (test, train) = planted();
    folder.file("test.csv", "\u{feff}".to_owned() + &table(&test, "\r\n"));
    folder.file("train.csv", table(&train, "\n"));
    folder
}

#[test]
fn everything_that_was_planted_is_found() {
    let folder = folder();
    let command = ["mine", "train.csv", "--against", "test.csv"];
    let list = ["-o", "list.jsonl", "--shared-by", ALL, "--json"];
    let report = folder.drift(&[&command[..], &list].concat()).good().json();
    let count = |kind: &str| SHARED.iter().filter(|kinds| kinds.contains(&kind)).count();
    for (field, kind) in [
        ("rows_with_shared_text", "text"),
        ("rows_with_duplicate", "geometry"),
        ("rows_of_shared_isomers", "isomer"),
        ("rows_of_shared_molecules", "molecule"),
        ("rows_of_shared_inchikeys", "inchikey"),
        ("rows_of_shared_inchikey_blocks", "inchikey-block"),
        ("rows_of_shared_scaffolds", "scaffold"),
    ] {
        assert_eq!(report[field], count(kind), "{field}: {report:#}");
    }
    assert_eq!((&report["rows_shared"], &report["rows_with_inchikey"]), (&json!(7), &json!(3)));
    assert_eq!((&report["scaffolds_shared"], &report["other"]["scaffolds"]), (&json!(1), &json!(1)));
    assert_eq!(report["other"]["test_subsets"], json!(["loqi", "", "casf"]));
    let listed = rows(&folder.read("list.jsonl"));
    let found: Vec<(u64, &Value)> =
        listed.iter().map(|row| (row["line"].as_u64().unwrap(), &row["shared"])).collect();
    let wanted: Vec<(u64, Value)> = (2u64..)
        .zip(SHARED)
        .filter(|(_, kinds)| !kinds.is_empty())
        .map(|(line, kinds)| (line, json!(kinds)))
        .collect();
    assert_eq!(found, wanted.iter().map(|(line, kinds)| (*line, kinds)).collect::<Vec<_>>());
    assert_eq!(
        (&listed[4]["other_molecule"], &listed[3]["other_molecule"]),
        (&Value::Null, &json!("C[C@H](N)F"))
    );
    // By data set and test subset.
    let of = |dataset: &str, subset: &str| {
        let is = |value: &Value, name: &str| value.as_str().unwrap_or_default() == name;
        let datasets = report["datasets"].as_array().unwrap();
        let found = datasets.iter().find(|one| is(&one["dataset"], dataset)).unwrap();
        let subsets = found["by_test_subset"].as_array().unwrap();
        subsets.iter().find(|one| is(&one["test_subset"], subset)).unwrap().clone()
    };
    assert_eq!((&of("GEOM", "loqi")["text"], &of("GEOM", "loqi")["scaffold"]), (&json!(1), &json!(2)));
    assert_eq!((&of("GEOM", "")["inchikey"], &of("GEOM", "")["inchikey_block"]), (&json!(1), &json!(2)));
    assert_eq!((&of("ZINC", "casf")["isomer"], &of("ZINC", "casf")["molecule"]), (&json!(1), &json!(2)));
    assert_eq!((&of("ZINC", "")["geometry"], &of("", "casf")["molecule"]), (&json!(1), &json!(0)));
    let shown = folder.drift(&[&command[..], &["--quiet"]].concat()).done();
    for words in ["with the first block of one", "with a Murcko scaffold", "conformers by data set", "loqi"] {
        assert!(shown.text().contains(words), "{words}: {}", shown.text());
    }
}

#[test]
fn rows_that_stay_are_written_as_they_are() {
    let folder = folder();
    let (_, train) = planted();
    let kept = |by: &[&str]| {
        let stays = |at: &usize| !SHARED[*at].iter().any(|kind| by.contains(kind));
        (0..train.len()).filter(stays).map(|at| train[at].clone()).collect::<Vec<_>>()
    };
    let default = table(&kept(&["text", "molecule", "inchikey"]), "\n");
    let run = |to: &str, more: &[&str]| {
        let command = ["mine", "train.csv", "--against", "test.csv", "--json", "--drop-shared", to];
        folder.drift(&[&command, more].concat()).good().json()
    };
    let report = run("kept.csv", &[]);
    assert_eq!((&report["rows_kept"], &report["rows_dropped"]), (&json!(3), &json!(5)));
    assert_eq!(report["shared_by"], json!(["text", "molecule", "inchikey"]));
    assert_eq!(String::from_utf8(folder.read("kept.csv")).unwrap(), default);
    run("kept.csv.zst", &[]);
    assert_eq!(unzstd(&folder.read("kept.csv.zst")), default);
    run("kept.csv.gz", &["--shared-by", "scaffold,inchikey-block"]);
    let mut found = String::new();
    flate2::read::GzDecoder::new(&folder.read("kept.csv.gz")[..]).read_to_string(&mut found).unwrap();
    assert_eq!(found, table(&kept(&["scaffold", "inchikey-block"]), "\n"));
    run("kept.csv", &["--shared-by", "text"]);
    assert_eq!(String::from_utf8(folder.read("kept.csv")).unwrap(), table(&kept(&["text"]), "\n"));
    // What stays shares nothing any more.
    folder.file("kept.csv", default);
    let again = folder.drift(&["mine", "kept.csv", "--against", "test.csv", "--json"]).good().json();
    assert_eq!((&again["conformers"], &again["rows_shared"]), (&json!(3), &json!(0)));
}

#[test]
fn every_shape_of_table_keeps_its_rows() {
    let folder = folder();
    let (_, train) = planted();
    let [shared, fresh] = [&train[0], &train[7]];
    let marked = format!("\u{feff}{}", table([shared, fresh], "\r\n"));
    let cut = &fresh[..fresh.len() / 2];
    let whole = table([shared, fresh], "\n");
    let (first, second) = whole.as_bytes().split_at(300);
    let frames = [zstd::encode_all(first, 3).unwrap(), zstd::encode_all(second, 3).unwrap()].concat();
    let lines = format!("{HEAD}\n\"two\nlines\"{}\n", &fresh["\"a, \"\"b\"\"\"".len()..]);
    let two = |text: &str| format!("name,enriched_text\nx,\"{text}\"\n");
    let other = made("[C]<%>[C]<%>[C]<%>", 9);
    let cases: [(&str, Vec<u8>, String, u64); 6] = [
        ("marked.csv", marked.into_bytes(), table([fresh], "\r\n"), 0),
        (
            "cut.csv",
            format!("{}{cut}\n{fresh}\n", table([shared], "\n")).into_bytes(),
            table([fresh], "\n"),
            1,
        ),
        ("frames.csv.zst", frames, table([fresh], "\n"), 0),
        ("t.csv.gz", gzip(whole.trim_end().as_bytes()), table([fresh], "\n"), 0),
        ("lines.csv", lines.clone().into_bytes(), lines, 0),
        ("two.csv", two(&other).into_bytes(), two(&other), 0),
    ];
    for (name, content, wanted, skipped) in cases {
        folder.file(name, content);
        let report = folder
            .drift(&["mine", name, "--against", "test.csv", "--drop-shared", "kept", "--json"])
            .done()
            .json();
        assert_eq!(String::from_utf8(folder.read("kept")).unwrap(), wanted, "{name}");
        assert_eq!(report["skipped"], skipped, "{name}");
    }
    // JSON Lines and enriched text; a grouped row stays or goes as one.
    let json =
        |text: &str| json!({ "dataset": "GEOM", "enriched_text": text, "x": [1, null] }).to_string() + "\n";
    let (toluene, propane) = (made(TOLUENE, 1), made("[C]<%>[C]<%>[C]<%>", 8));
    let grouped = |texts: [&str; 2]| {
        let texts = texts.map(|text| json!({ "embedded_smiles": text }));
        json!({ "geom_key": "CCC", "isomers": { "CCC": [texts[0]], "Cc1ccccc1": [texts[1]] } }).to_string()
            + "\n"
    };
    let ethylbenzene = made("[C]<%>[C]<%>[c]<%>1[c]<%>[c]<%>[c]<%>[c]<%>[c]<%>1", 5);
    for (name, content, wanted) in [
        ("t.jsonl", json(&toluene) + "\n" + &json(&propane), json(&propane)),
        ("t.txt", format!("{toluene}\n{propane}\n"), format!("{propane}\n")),
        (
            "g.jsonl",
            grouped([&propane, &toluene]) + &grouped([&propane, &ethylbenzene]),
            grouped([&propane, &ethylbenzene]),
        ),
    ] {
        folder.file(name, content);
        folder.drift(&["mine", name, "--against", "test.csv", "--drop-shared", "kept", "--json"]).good();
        assert_eq!(String::from_utf8(folder.read("kept")).unwrap(), wanted, "{name}");
    }
    // Only the rows that are asked for.
    let filtered = [
        "mine",
        "train.csv",
        "--against",
        "test.csv",
        "--where",
        "dataset=",
        "--drop-shared",
        "kept",
        "--json",
    ];
    let report = folder.drift(&filtered).good().json();
    assert_eq!((&report["left_out"], &report["rows_kept"]), (&json!(7), &json!(1)));
    assert_eq!(String::from_utf8(folder.read("kept")).unwrap(), table([fresh], "\n"));
}

#[test]
fn shards_merge_to_the_rows_of_one_run() {
    let folder = Folder::new();
    let (test, train) = planted();
    folder.file("test.csv", table(&test, "\n"));
    for (at, rows) in train.chunks(2).enumerate() {
        folder.file(&format!("train/{at}.csv"), table(rows, "\n"));
    }
    let command = ["mine", "train", "--against", "test.csv", "--quiet", "--drop-shared", "kept.csv.zst"];
    let whole = folder.drift(&[&command[..], &["-o", "whole.jsonl", "--json"]].concat()).good();
    let kept = unzstd(&folder.read("kept.csv.zst"));
    assert_eq!(kept, table([&train[4], &train[6], &train[7]], "\n"));
    for shard in ["1/3", "2/3", "3/3"] {
        let to = format!("shard{}", &shard[..1]);
        folder.drift(&[&command[..], &["--shard", shard, "-o", &to]].concat()).good();
    }
    let merge = ["merge", "shard1", "shard2", "shard3", "-o", "merged.jsonl", "--json"];
    let merged = folder.drift(&[&merge[..], &["--drop-shared", "merged.csv"]].concat()).good();
    assert_eq!(merged.text(), whole.text());
    assert!(folder.read("merged.jsonl") == folder.read("whole.jsonl"));
    assert_eq!(String::from_utf8(folder.read("merged.csv")).unwrap(), kept);
    let silent = folder.drift(&merge).done();
    assert!(silent.stderr.contains("the shards kept rows; --drop-shared writes them"), "{}", silent.stderr);
    for shard in ["1/2", "2/2"] {
        let to = format!("bare{}", &shard[..1]);
        folder
            .drift(&["mine", "train", "--against", "test.csv", "--quiet", "--shard", shard, "-o", &to])
            .good();
    }
    folder
        .drift(&["merge", "bare1", "bare2", "-o", "merged.jsonl", "--drop-shared", "merged.csv"])
        .refused_for("--drop-shared: the shards kept no rows");
}

#[test]
fn columns_may_be_missing_or_have_too_many_values() {
    let folder = folder();
    let two = |text: &str| format!("name,enriched_text\nx,\"{text}\"\n");
    folder.file("two.csv", two(&made(TOLUENE, 1)));
    let report =
        folder.drift(&["mine", "two.csv", "--against", "two.csv", "test.csv", "--json"]).good().json();
    assert_eq!((&report["rows_with_shared_text"], &report["rows_with_inchikey"]), (&json!(1), &json!(0)));
    assert_eq!(report["datasets"][0]["dataset"], Value::Null);
    // A corpus against itself: no row is its own duplicate.
    folder.file(
        "twice.csv",
        table(&[planted().1[0].clone(), planted().1[7].clone(), planted().1[0].clone()], "\n"),
    );
    let own = folder.drift(&["mine", "twice.csv", "--against", "./twice.csv", "--json"]).good().json();
    assert_eq!(own["rows_with_shared_text"], 2);
    let many = |columns: &dyn Fn(usize) -> (String, String)| {
        let rows = (0..1_200).map(|at| {
            let (dataset, subset) = columns(at);
            row(&made(ETHANOL, 2), &dataset, "", &subset)
        });
        table(&rows.collect::<Vec<_>>(), "\n")
    };
    folder.file("many.csv", many(&|at| (format!("set{at}"), String::new())));
    folder.file("subsets.csv", many(&|at| (String::new(), format!("subset{}", at % 64))));
    let report = folder.drift(&["mine", "many.csv", "--against", "subsets.csv", "--json"]).good().json();
    assert_eq!((&report["has_too_many_datasets"], &report["datasets"]), (&json!(true), &json!([])));
    assert_eq!(report["other"]["has_too_many_subsets"], true);
    assert_eq!(
        (&report["rows_with_shared_text"], &report["rows_with_duplicate"]),
        (&json!(1_200), &json!(1_200))
    );
    let report = folder.drift(&["mine", "train.csv", "--against", "subsets.csv", "--json"]).good().json();
    let zinc = report["datasets"].as_array().unwrap().iter().find(|one| one["dataset"] == "ZINC").unwrap();
    assert_eq!((&zinc["shared"]["geometry"], &zinc["by_test_subset"][0]["geometry"]), (&json!(1), &json!(1)));
}

#[test]
fn rows_that_cannot_be_written_are_refused() {
    let folder = folder();
    folder.file("two.csv", format!("name,enriched_text\nx,\"{}\"\n", made(ETHANOL, 4)));
    folder.file("bare.xyz", "2\nno text\nC 0 0 0\nO 0 0 1.2\n");
    folder.file("t.jsonl", json!({ "text": made(ETHANOL, 4) }).to_string() + "\n");
    let run = |inputs: &[&str], to: &str| {
        folder.drift(&[&["mine"], inputs, &["--against", "test.csv", "--drop-shared", to]].concat())
    };
    run(&["train.csv", "two.csv"], "kept").refused_for("two.csv: has another header than the tables before");
    run(&["train.csv", "t.jsonl"], "kept")
        .refused_for("t.jsonl: is JSON Lines, and the files before are a table");
    run(&["bare.xyz"], "kept")
        .refused_for("bare.xyz: is XYZ, whose records are no rows that --drop-shared could write");
    run(&["train.csv"], "-").refused_for("--drop-shared -: stdout takes the report or the list");
    run(&["train.csv"], "train.csv").refused_for("train.csv");
    run(&["train.csv"], "none/kept.csv").refused_for("none");
    assert!(!folder.path().join("kept").exists());
    let refused = folder.drift(&["mine", "train.csv", "--drop-shared", "kept"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("--against"), "{}", refused.stderr);
    let refused = folder.drift(&["mine", "train.csv", "--against", "test.csv", "--shared-by", "colour"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("colour"), "{}", refused.stderr);
}
