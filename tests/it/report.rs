//! `drift report`.

use std::path::{Path, PathBuf};

use crate::support::Folder;

/// The records of evaluations in the repository.
fn records(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let is_record = entry
            .file_name()
            .is_some_and(|name| name.to_str().is_some_and(|name| name.starts_with("record")));
        if entry.is_dir() {
            found.extend(records(&entry));
        } else if is_record && entry.extension().is_some_and(|extension| extension == "json") {
            found.push(entry);
        }
    }
    found
}

#[test]
fn every_record_of_the_repository_is_on_one_line_and_makes_a_page() {
    let folder = Folder::new();
    let records = records(&Path::new(env!("CARGO_MANIFEST_DIR")).join("eval/records"));
    assert!(records.len() >= 30, "{}", records.len());
    for record in &records {
        let name = record.to_str().unwrap();
        let text = std::fs::read_to_string(record).unwrap();
        assert_eq!(text.lines().count(), 1, "{name}");
        let shown = folder.drift(&["report", name, "-o", "page.html"]).good();
        assert!(shown.text().contains("that pass"), "{name}: {}", shown.text());
        let page = String::from_utf8(folder.read("page.html")).unwrap();
        assert!(page.contains("What each logit processor costs") && !page.contains("http"), "{name}");
    }
    let record = records[0].to_str().unwrap();
    let printed = folder.drift(&["report", record, "-o", "-"]).good();
    assert!(printed.text().starts_with("<!"), "{:.200}", printed.text());
    let [short, long] =
        [&[][..], &["--verbose"]].map(|more| folder.drift(&[&["report", record], more].concat()).good());
    assert!(long.text().len() > short.text().len());
}

#[test]
fn what_is_no_record_is_refused() {
    let folder = Folder::new();
    for (text, problem) in [
        ("", "ends in the middle of its JSON"),
        ("{\"schema\": \"drift.eval/1\"", "ends in the middle of its JSON"),
        ("hello", "is not JSON"),
        ("[]", "is no record of drift eval"),
        ("{\"a\": 1}", "is no record of drift eval"),
        ("{\"schema\": \"drift.audit/1\"}", "has the schema \"drift.audit/1\", not \"drift.eval/1\""),
        ("{\"schema\": 3}", "has the schema \"\", not \"drift.eval/1\""),
        ("{\"schema\": \"drift.eval/1\"}", "is no complete record: missing field"),
    ] {
        folder.file("x.json", text);
        let line = folder.drift(&["report", "x.json", "-o", "page.html"]).refused();
        assert!(line.starts_with("x.json: ") && line.contains(problem), "{text}: {line}");
        assert!(line.contains("give a record.json of drift eval"), "{line}");
        assert!(!folder.path().join("page.html").exists());
    }
    let line = folder.drift(&["report", "none.json"]).refused();
    assert!(line.starts_with("none.json: "), "{line}");
    let line = folder.drift(&["report", "x.json", "-o", "-", "--json"]).refused();
    assert!(line.contains("-o -"), "{line}");
}
