//! The users' files as they publish them: tables, compressed by zstd, in archives, grouped rows, and pickles of what a model wrote.

use std::io::Write as _;

use crate::common::fixture;
use crate::readers::{gzip, tar};
use crate::support::{Folder, rows};

/// The text of a conformer of formaldehyde, in the stripped dialect.
const TEXT: &str = "[C]<1.5,2,0.25>=[O]<2.5,2.1,0.25>";

/// Two rows of two conformers, as the users' training file has them.
fn two_columns() -> String {
    format!("name,enriched_text\nPubChem3D_1,\"{TEXT}\"\r\nZINC_2,\"[C]<0.5,1.2,0.3>[O]<-0.9,1.2,0.31>\"\n")
}

/// The users' eight columns.
fn eight_columns() -> String {
    let head = "name,enriched_text,dataset,source_name,source_file_id,source_row_index,inchikey,test_subset";
    let row = |at: usize, text: &str, dataset: &str, subset: &str| {
        format!("a1:{at},\"{text}\",{dataset},{dataset}_{at},a1,{at},IKHGUXGNUITLKF-UHFFFAOYSA-N,{subset}\n")
    };
    let (other, third) = ("[C]<0.5,1.2,0.3>[O]<-0.9,1.2,0.31>", "[N]<0.5,1.2,0.3>#[C]<-0.6,1.2,0.31>");
    [
        format!("{head}\n"),
        row(0, TEXT, "PubChem3D", ""),
        row(1, other, "ZINC", "loqi"),
        row(2, third, "ZINC", ""),
    ]
    .concat()
}

fn zstd(content: &[u8]) -> Vec<u8> {
    zstd::encode_all(content, 3).unwrap()
}

/// A zip archive; members are compressed by `method`.
fn zip(members: &[(&str, &[u8])], method: zip::CompressionMethod) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(method);
    for (name, content) in members {
        writer.start_file(*name, options).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn every_container_of_a_table_gives_the_same_conformers() {
    use zip::CompressionMethod::{Deflated, Stored};
    let folder = Folder::new();
    let table = two_columns();
    let bytes = table.as_bytes();
    let (first, second) = bytes.split_at(40);
    let skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc";
    let tabs: String = table.replace(",\"", "\t").replace("name,", "name\t").replace('"', "");
    let cases: [(&str, Vec<u8>); 12] = [
        ("plain.csv", bytes.to_vec()),
        ("marked.csv", ["\u{feff}".as_bytes(), bytes].concat()),
        ("tabs.tsv", tabs.into_bytes()),
        ("t.csv.gz", gzip(bytes)),
        ("padded.csv.gz", [gzip(bytes), vec![0; 700]].concat()),
        ("t.csv.zst", zstd(bytes)),
        ("frames.csv.zst", [zstd(first), skippable.to_vec(), zstd(second)].concat()),
        ("t.tar.zst", zstd(&tar(&[("d/t.csv", bytes)]))),
        ("inside.tar", tar(&[("t.csv.zst", &zstd(bytes))])),
        ("stored.zip", zip(&[("a/.hidden", b"x"), ("t.csv", bytes)], Stored)),
        ("deflated.zip", zip(&[("t.csv.zst", &zstd(bytes))], Deflated)),
        ("packed.zip.gz", gzip(&zip(&[("t.csv", bytes)], Deflated))),
    ];
    for (name, content) in cases {
        folder.file(name, content);
        let report = folder.drift(&["mine", name, "--json"]).json();
        assert_eq!(report["conformers"], 2, "{name}: {report}");
        assert_eq!(report["skipped"], 0, "{name}");
        folder.drift(&["encode", name, "-o", "out.jsonl"]).done();
        let written = rows(&folder.read("out.jsonl"));
        assert_eq!(written[0]["canonical_smiles"], "C=O", "{name}");
        assert_eq!(written[0]["embedded_smiles_stripped"], TEXT, "{name}");
    }
}

#[test]
fn archives_that_are_damaged_or_not_read_are_named() {
    use zip::CompressionMethod::{Deflated, Stored};
    let folder = Folder::new();
    let table = two_columns();
    let whole = zip(&[("t.csv", table.as_bytes())], Deflated);
    let stored = zip(&[("t.csv", table.as_bytes())], Stored);
    let mut flipped = stored.clone();
    flipped[60] ^= 1;
    // The method of bzip2, in the header of the member and in the list of members.
    let mut bzip2 = stored.clone();
    let list = bzip2.windows(4).position(|window| window == b"PK\x01\x02").unwrap();
    (bzip2[8], bzip2[list + 10]) = (12, 12);
    let frame = zstd(table.as_bytes());
    for (name, content, problem) in [
        ("cut.zip", whole[..whole.len() - 30].to_vec(), "truncated or damaged"),
        ("flipped.zip", flipped, "truncated or damaged"),
        ("bzip2.zip", bzip2, "compressed in another way than by deflate: unpack the archive first"),
        ("cut.zst", frame[..frame.len() - 5].to_vec(), "truncated or damaged"),
        ("tail.zst", [&frame[..], b"garbage"].concat(), "truncated or damaged"),
        ("tail.gz", [gzip(table.as_bytes()), b"\0\0garbage".to_vec()].concat(), "truncated or damaged"),
        (
            "a.7z",
            b"7z\xbc\xaf\x27\x1c\0\x04".to_vec(),
            "is a 7z archive; unpack it first, for example with `7z x`",
        ),
        ("a.xz", b"\xfd7zXZ\0\0\x04".to_vec(), "is an xz file; unpack it first, for example with `xz -d`"),
        ("a.bz2", b"BZh91AY&SY\x01\x02".to_vec(), "is a bzip2 file; unpack it first"),
        ("a.parquet", b"PAR1\x15\x04".to_vec(), "is a Parquet file; write it as CSV or JSON Lines"),
    ] {
        folder.file(name, content);
        folder.drift(&["mine", name]).refused_for(problem);
        folder.drift(&["audit", name, "--dialect", "fixed"]).refused();
        if problem.starts_with("is a") {
            folder.drift(&["audit", name]).refused_for(problem);
            folder.drift(&["inspect", "--tokenizer", name, "C"]).refused();
        }
    }
    // In a folder or an archive, what drift does not read is skipped and named.
    folder.file("d/a.xz", b"\xfd7zXZ\0\0\x04");
    folder.file("d/t.csv", &table);
    let report = folder.drift(&["mine", "d", "--json"]).json();
    assert_eq!(report["skipped_records"][0]["reason"], "is an xz file");
    // A zip archive is not a file of texts, compressed or not.
    folder.file("texts.zip", stored);
    folder.file("texts.tar.zst", zstd(&tar(&[("t.csv", table.as_bytes())])));
    folder.drift(&["audit", "texts.tar.zst"]).refused_for("is a tar archive; unpack it, and give its files");
    folder.drift(&["audit", "texts.zip"]).refused_for("is a zip archive; unpack it first");
}

#[test]
fn two_members_of_one_name_are_refused() {
    let folder = Folder::new();
    let table = two_columns();
    let mut archive =
        zip(&[("aa.csv", table.as_bytes()), ("ab.csv", table.as_bytes())], zip::CompressionMethod::Stored);
    // In both headers of the second member.
    while let Some(at) = archive.windows(6).position(|window| window == b"ab.csv") {
        archive[at + 1] = b'a';
    }
    folder.file("x.zip", archive);
    folder.drift(&["mine", "x.zip"]).refused_for("two members of the archive have the same name");
}

#[test]
fn rows_are_picked_by_their_columns_and_the_others_counted() {
    let folder = Folder::new();
    folder.file("m.csv", eight_columns());
    folder.file("m.csv.zst", zstd(eight_columns().as_bytes()));
    let lines = r#"{"enriched_text": "[C]<1,2,3>", "dataset": "ZINC"}
{"enriched_text": "[C]<1,2,3>", "dataset": "GEOM"}
{"enriched_text": "[C]<1,2,3>"}"#;
    folder.file("m.jsonl", lines);
    let count = |arguments: &[&str]| {
        let report = folder.drift(&[&["mine", "--json"], arguments].concat()).json();
        let number = |value: &serde_json::Value| value.as_u64().unwrap();
        [number(&report["conformers"]), number(&report["left_out"]), number(&report["skipped"])]
    };
    assert_eq!(count(&["m.csv"]), [3, 0, 0]);
    assert_eq!(count(&["m.csv.zst", "--where", "dataset=ZINC"]), [2, 1, 0]);
    assert_eq!(count(&["m.csv", "--where", "dataset=ZINC", "--where", "test_subset="]), [1, 2, 0]);
    assert_eq!(count(&["m.csv", "--where", "dataset=ZINC", "--where", "dataset=PubChem3D"]), [3, 0, 0]);
    assert_eq!(count(&["m.jsonl", "--where", "dataset=GEOM"]), [1, 1, 1]);
    let note = folder.drift(&["mine", "m.csv", "--where", "dataset=ZINC"]);
    assert!(note.stderr.contains("note: 1 row left out by --where"), "{}", note.stderr);
    let refused = |arguments: &[&str], problem: &str| folder.drift(arguments).refused_for(problem);
    refused(
        &["mine", "m.csv", "--where", "data=ZINC"],
        "m.csv: has no column `data`, by which rows are picked; its columns are `name`, `enriched_text`, `dataset`",
    );
    refused(
        &["mine", "m.csv", "--where", "dataset=none"],
        "none of its 3 rows has the values that --where asks for",
    );
    refused(&["mine", "m.csv", "--where", "dataset"], "--where: `dataset` is not of the form column=value");
    folder.file("x.xyz", "1\nC\nC 0 0 0\n");
    refused(
        &["mine", "x.xyz", "--where", "a=b"],
        "x.xyz: is XYZ, whose records have no column `a`; give --where with CSV",
    );
    refused(&["fit", "--where", "a=b"], "--where: the built-in corpus has no columns");
    let audited = folder.drift(&["audit", "m.csv", "--where", "dataset=ZINC", "--json"]).json();
    assert_eq!((&audited["total"]["samples"], &audited["left_out"]), (&2.into(), &1.into()));
    refused(&["audit", "m.csv", "--where", "dataset=none"], "none of its 3 rows");
}

#[test]
fn a_table_is_judged_like_its_texts_and_what_holds_no_texts_is_refused() {
    let folder = Folder::new();
    folder.file("t.csv", two_columns());
    folder.file("cut.csv", two_columns() + "cut,\"[C]<1,2");
    let report = folder.drift(&["audit", "t.csv", "--json"]).json();
    let total = &report["total"];
    assert_eq!(
        (&total["samples"], &total["passed"], &total["without_prompt"]),
        (&2.into(), &2.into(), &2.into())
    );
    // Judged as the molecule of its own skeleton.
    assert_eq!(total["chemistry"]["checked"], 2, "{total}");
    let cut = folder.drift(&["audit", "cut.csv", "--json"]).json();
    assert_eq!(
        (&cut["total"]["samples"], &cut["skipped_records"][0]["record"]),
        (&2.into(), &"line 4".into())
    );
    folder.file("predictions.jsonl", format!(
        "{{\"prompt\": \"user: [SMILES]C=O[/SMILES]\", \"label\": \"{TEXT}\", \"predict\": \"[CONFORMER]{TEXT}[/CONFORMER]\"}}\n\
         {{\"prompt\": \"user: [SMILES]C=O[/SMILES]\", \"label\": \"{TEXT}\", \"predict\": \"\"}}\n"
    ));
    let predicted = folder.drift(&["audit", "predictions.jsonl", "--json"]).json();
    let total = &predicted["total"];
    assert_eq!((&total["samples"], &total["passed"], &total["no_eos"]), (&2.into(), &1.into(), &1.into()));
    for (name, content, problem) in [
        (
            "names.csv",
            "smiles,n\nC,1\n",
            "is a table without a column of texts; its columns are `smiles`, `n`",
        ),
        ("bare.csv", "a,\"[C]<1,2,3>\"\n", "is a table without a header: its first line holds a text"),
        ("x.xyz", "1\nC\nC 0 0 0\n", "is XYZ: conformers, not generated texts; `drift mine` reads it"),
        (
            "x.sdf",
            "x\n\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n",
            "is SDF: conformers, not generated texts",
        ),
    ] {
        folder.file(name, content);
        folder.drift(&["audit", name]).refused_for(problem);
    }
}

#[test]
fn grouped_rows_give_every_conformer() {
    let folder = Folder::new();
    let grouped = format!(
        "{{\"geom_key\": \"C=O\", \"isomers\": {{\"C=O\": [{{\"embedded_smiles\": \"{TEXT}\", \"energy\": -1.5}}, {{\"energy\": 1}}]}}}}\n\
         {{\"geom_key\": \"CO\", \"isomers\": {{\"CO\": [{{\"embedded_smiles\": \"[C]<0.5,1.2,0.3>[O]<-0.9,1.2,0.31>\"}}]}}}}\n"
    );
    folder.file("g.jsonl.zst", zstd(grouped.as_bytes()));
    let mined = folder.drift(&["mine", "g.jsonl.zst", "--json"]).json();
    assert_eq!((&mined["conformers"], &mined["skipped"]), (&2.into(), &1.into()));
    assert_eq!(mined["skipped_records"][0]["record"], "line 1, isomer C=O, conformer 2");
    let audited = folder.drift(&["audit", "g.jsonl.zst", "--json"]).json();
    assert_eq!((&audited["total"]["passed"], &audited["total"]["without_prompt"]), (&2.into(), &0.into()));
    assert_eq!(audited["skipped_records"][0]["record"], "line 1.isomers.C=O[1]");
}

#[test]
fn pickles_of_generations_are_judged_as_they_are() {
    let folder = Folder::new();
    let results = fixture("generations/generation_results.pickle");
    let report =
        folder.drift(&["audit", results.to_str().unwrap(), "--json", "--verdicts", "v.jsonl"]).json();
    let total = &report["total"];
    assert_eq!(
        (&total["samples"], &total["passed"], &total["graph_mismatch"]),
        (&4.into(), &3.into(), &1.into())
    );
    let verdicts = rows(&folder.read("v.jsonl"));
    let right: Vec<_> = verdicts.iter().map(|line| line["stereocentres_right"].as_u64()).collect();
    // The same molecule as its key says, and as its mirror image.
    assert_eq!(right[..3], [Some(1), Some(0), Some(0)], "{verdicts:?}");
    assert_eq!(verdicts[0]["stereocentres"], 1);
    let shard = fixture("generations/shard_0.pickle");
    let report = folder.drift(&["audit", shard.to_str().unwrap(), "--json"]).json();
    assert_eq!((&report["total"]["samples"], &report["total"]["passed"]), (&2.into(), &2.into()));
    let warning = report["warnings"][0].as_str().unwrap();
    assert!(warning.contains("smiles_mismatch: 2, no_eos: 1"), "{warning}");
}

#[test]
fn impossible_geometry_is_counted_and_said() {
    let folder = Folder::new();
    let lines = "[C]<0.0,0.0,0.0>[C]<0.0,0.0,0.0>[O]<1.0,1.0,1.0>\n[C]<0,0,0>[C]<0.3,0,0>[O]<5,5,5>\n[C]<0,0,0>[O]<1.4,0,0>\n";
    folder.file("bad.txt", lines);
    let report = folder.drift(&["mine", "bad.txt", "--json"]).json();
    let faults = &report["faults"];
    assert_eq!(faults["conformers_with_coincident_atoms"], 1);
    assert_eq!((&faults["short_bonds"], &faults["conformers_with_short_bonds"]), (&2.into(), &2.into()));
    assert_eq!((&faults["long_bonds"], &faults["conformers"][1]["number"]), (&1.into(), &2.into()));
    let said = folder.drift(&["mine", "bad.txt"]);
    let line = "Impossible geometry, conformers: 1 with atoms on one point, 2 with bonds shorter than 0.7 Å, 1 with bonds longer than 2.5 Å.";
    assert!(said.text().contains(line), "{}", said.text());
}
