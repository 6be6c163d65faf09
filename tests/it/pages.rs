//! The pages as their readers need them: short, without broken links, listed where one looks for them. `python/tests/test_pages.py`
//! runs their examples.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The most words of a page of `docs`.
const PAGE_WORDS: usize = 1_500;

/// Pages with another limit: the front page, the map of the code, and the reference of all options.
const OTHER_WORDS: [(&str, usize); 3] =
    [("README.md", 900), ("ARCHITECTURE.md", 3_500), ("docs/options.md", 8_000)];

/// The folders with pages for people, besides the files at the top.
const FOLDERS: [&str; 9] =
    [".github", "corpora", "docs", "eval", "placeholders", "python", "src", "tests", "tokenizers"];

/// Where a variable of the environment may be read or set.
const SOURCES: [&str; 10] =
    [".ci", ".github", "build.rs", "corpora", "docs", "eval", "python", "src", "tests", "tokenizers"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files below a path, without what was built or is hidden.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        // What is embedded is reached by links.
        .filter(|path| !path.is_symlink())
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            !name.starts_with('.') && name != "__pycache__" && !name.starts_with("target")
        })
        .flat_map(|path| files(&path))
        .collect();
    found.sort();
    found
}

/// A page by its path in the repository.
fn pages() -> BTreeMap<String, String> {
    let top =
        std::fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let below = FOLDERS.iter().flat_map(|folder| files(&root().join(folder)));
    top.chain(below)
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .map(|path| (relative(&path), std::fs::read_to_string(&path).unwrap()))
        .collect()
}

/// A path in the repository, with slashes.
fn relative(path: &Path) -> String {
    let names = path.strip_prefix(root()).unwrap().iter().map(|name| name.to_string_lossy());
    names.collect::<Vec<_>>().join("/")
}

/// The lines of a page that are prose: no fenced and no indented blocks.
fn prose(text: &str) -> Vec<&str> {
    let mut is_fenced = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced && !line.starts_with("    ") {
            lines.push(line);
        }
    }
    lines
}

/// A line without its spans of code.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// The targets of the links of a page.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        let line = without_code(line);
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        found.extend(targets.map(|(target, _)| target.to_owned()));
    }
    found
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    prose(text)
        .into_iter()
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            let kept = |letter: char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
            heading.chars().filter(|letter| kept(*letter)).collect::<String>().replace(' ', "-")
        })
        .collect()
}

/// The file that a link of a page leads to, without `..`.
fn target(page: &str, link: &str) -> String {
    let mut names: Vec<&str> = page.split('/').collect();
    names.pop();
    for name in link.split('/') {
        match name {
            "." | "" => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    names.join("/")
}

#[test]
fn pages_are_short() {
    let limit = |page: &str| OTHER_WORDS.iter().find(|(name, _)| *name == page).map(|(_, words)| *words);
    let long: Vec<String> = pages()
        .iter()
        .filter_map(|(page, text)| {
            let most = limit(page).or_else(|| page.starts_with("docs/").then_some(PAGE_WORDS))?;
            let words = text.split_whitespace().count();
            (words > most).then(|| format!("{page}: {words} words, at most {most}"))
        })
        .collect();
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn links_lead_somewhere() {
    let pages = pages();
    let mut broken = Vec::new();
    let mut count = 0;
    for (page, text) in &pages {
        for link in links(text).iter().filter(|link| !link.contains("://") && !link.starts_with("mailto:")) {
            count += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let file = if path.is_empty() { page.clone() } else { target(page, path) };
            let is_there = root().join(&file).exists()
                && (anchor.is_empty() || pages.get(&file).is_some_and(|text| anchors(text).contains(anchor)));
            if !is_there {
                broken.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(count > 200, "{count} links were found");
}

#[test]
fn the_summary_lists_every_page() {
    let pages = pages();
    let summary = &pages["docs/SUMMARY.md"];
    let listed: Vec<String> = links(summary).iter().map(|link| target("docs/SUMMARY.md", link)).collect();
    let once: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(once.len(), listed.len(), "a page is listed twice");
    let all: BTreeSet<&String> =
        pages.keys().filter(|page| page.starts_with("docs/") && *page != "docs/SUMMARY.md").collect();
    assert_eq!(once, all);
}

/// The names that begin with `DRIFT_` in a text.
fn variables(text: &str) -> BTreeSet<String> {
    let is_part = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
    text.match_indices("DRIFT_")
        .filter(|(at, _)| !text[..*at].ends_with(is_part))
        .map(|(at, _)| text[at..].split(|letter| !is_part(letter)).next().unwrap_or_default().to_owned())
        .filter(|name| name.len() > "DRIFT_".len() && !name.ends_with('_'))
        .collect()
}

#[test]
fn every_variable_is_in_the_table() {
    let page = std::fs::read_to_string(root().join(".github/CONTRIBUTING.md")).unwrap();
    let rows: String = page.lines().filter(|line| line.starts_with("| `DRIFT_")).collect();
    let told = variables(&rows);
    let mut used = BTreeSet::new();
    for folder in SOURCES {
        for path in files(&root().join(folder)) {
            if path.ends_with(".github/CONTRIBUTING.md") {
                continue;
            }
            // Weights and archives are no text.
            if let Ok(text) = std::fs::read_to_string(&path) {
                used.extend(variables(&text));
            }
        }
    }
    assert_eq!(told, used, "the table of .github/CONTRIBUTING.md and the sources differ");
}

/// The map and the instructions name files that are there.
#[test]
fn files_named_for_engineers_exist() {
    let mut count = 0;
    for page in [".github/CONTRIBUTING.md", ".github/SECURITY.md"] {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        for name in text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)) {
            let is_path =
                ["src/", "tests/", "python/", "docs/"].iter().any(|folder| name.starts_with(folder));
            if is_path && !name.contains(['*', ' ', '{']) && !name.contains("NAME") {
                assert!(root().join(name).exists(), "{page}: there is no {name}");
                count += 1;
            }
        }
    }
    assert!(count > 20, "{count} files were found");
}

#[test]
fn what_a_link_is() {
    let page = "# A `b`: c\n\n[one](x.md#a), `C[C](C)` and [two](../y.md)\n\n    [no](z.md)\n\n```text\n[no](z.md)\n```\n";
    assert_eq!(links(page), ["x.md#a", "../y.md"]);
    assert_eq!(anchors(page), BTreeSet::from(["a-b-c".to_owned()]));
    assert_eq!(target("docs/notes/a.md", "../b.md"), "docs/b.md");
    assert_eq!(target("docs/a.md", "../README.md"), "README.md");
    assert_eq!(variables("DRIFT_ALL=1, X_DRIFT_NO DRIFT_"), BTreeSet::from(["DRIFT_ALL".to_owned()]));
}
