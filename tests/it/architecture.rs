//! The architecture: who may import whom, who prints, who knows which crate, and how long a file may be.
//!
//! Only code counts: comments, strings and characters are left out by [`tokens`].

use std::collections::BTreeSet;
use std::path::Path;

/// The modules of the crate. Each imports only from itself and from those before it.
const ORDER: [&str; 17] = [
    "error",
    "job",
    "io",
    "text",
    "corpus",
    "stats",
    "mine",
    "tokenizer",
    "placeholder",
    "design",
    "constraint",
    "audit",
    "model",
    "train",
    "generate",
    "eval",
    "report",
    "cli",
];

/// Crates that few modules know.
const KNOWN_TO_FEW: [(&str, &[&str]); 12] = [
    ("argmin", &["placeholder", "design"]),
    ("candle_core", &["model", "train", "generate"]),
    ("candle_nn", &["model", "train", "generate"]),
    ("candle_transformers", &["generate"]),
    ("clap", &["cli"]),
    ("indicatif", &["cli"]),
    ("plotters", &["report"]),
    ("pulp", &["model"]),
    ("rust_hdf5", &["corpus"]),
    ("safetensors", &["design", "model", "train"]),
    ("smiles_rs", &["text"]),
    ("tokenizers", &["tokenizer"]),
];

/// The most lines that a file of `src` may have.
fn max_lines(path: &str) -> usize {
    match path {
        "main.rs" => 39,
        _ => 420,
    }
}

#[test]
fn modules_import_only_from_those_before_them() {
    let mut wrong = Vec::new();
    let mut edges = BTreeSet::new();
    for file in library() {
        for target in imports(file.module.len(), &file.text) {
            edges.insert(format!("{} {target}", file.top()));
            if !may_import(file.top(), target) {
                wrong.push(format!("src/{} imports crate::{target}", file.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // Something was read at all.
    for edge in ["io job", "placeholder tokenizer", "report stats", "cli report"] {
        assert!(edges.contains(edge), "{edge}: {edges:?}");
    }
}

#[test]
fn every_module_has_its_place_in_the_order() {
    for file in library() {
        assert!(rank(file.top()).is_some(), "src/{}: add `{}` to ORDER", file.path, file.top());
    }
}

#[test]
fn only_the_command_line_prints() {
    let others: Vec<Source> = library().into_iter().filter(|file| file.top() != "cli").collect();
    let printing: Vec<&str> =
        others.iter().filter(|file| prints(without_tests(&file.text))).map(|file| &*file.path).collect();
    assert!(printing.is_empty(), "{printing:?}");
}

#[test]
fn some_crates_are_known_to_few_modules() {
    let files = library();
    for (name, owners) in KNOWN_TO_FEW {
        let users: BTreeSet<&str> =
            files.iter().filter(|file| uses_crate(name, &file.text)).map(Source::top).collect();
        assert!(users.iter().all(|user| owners.contains(user)), "{name} is for {owners:?} alone: {users:?}");
    }
}

#[test]
fn stats_knows_no_tokenizer() {
    for file in library().iter().filter(|file| file.top() == "stats") {
        let knows = tokens(&file.text).iter().any(|word| word.to_lowercase().contains("tokenizer"));
        assert!(!knows, "src/{}", file.path);
    }
}

#[test]
fn files_are_short() {
    let long: Vec<String> = sources()
        .iter()
        .filter(|file| file.text.lines().count() > max_lines(&file.path))
        .map(|file| format!("src/{}: {} lines", file.path, file.text.lines().count()))
        .collect();
    assert!(long.is_empty(), "{long:#?}");
}

/// A file of `src`.
struct Source {
    /// Its path below `src`.
    path: String,
    /// Its module: `["corpus", "rdkit", "atom"]`.
    module: Vec<String>,
    text: String,
}

impl Source {
    /// Its module at the root of the crate.
    fn top(&self) -> &str {
        &self.module[0]
    }
}

/// The files of the modules: all but `lib.rs` and `main.rs`.
fn library() -> Vec<Source> {
    sources().into_iter().filter(|file| !["lib", "main"].contains(&file.top())).collect()
}

/// All files of `src`, in order.
fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let relative = path.strip_prefix(&root).unwrap();
                let names = |path: &Path| -> Vec<String> {
                    path.iter().map(|part| part.to_string_lossy().into_owned()).collect()
                };
                let mut module = names(&relative.with_extension(""));
                if module.last().is_some_and(|name| name == "mod") {
                    module.pop();
                }
                let text = std::fs::read_to_string(&path).unwrap();
                sources.push(Source { path: names(relative).join("/"), module, text });
            }
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

/// Where a module stands in [`ORDER`].
fn rank(module: &str) -> Option<usize> {
    ORDER.iter().position(|name| *name == module)
}

/// Whether `module` may import from `target`; what has no place in the order, nobody may.
fn may_import(module: &str, target: &str) -> bool {
    match (rank(module), rank(target)) {
        (Some(own), Some(other)) => other <= own,
        _ => false,
    }
}

/// The modules at the root of the crate that code names, by `crate::…` or by `super::…` up to the root. `depth` is how
/// deep the file's own module lies: 1 for `io`, 2 for `corpus::read`.
fn imports(depth: usize, source: &str) -> BTreeSet<&str> {
    let tokens = tokens(source);
    let mut found = BTreeSet::new();
    let mut braces = 0i32;
    // How many braces were open where each inline module around this place begins.
    let mut inline: Vec<i32> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let mut step = 1;
        match tokens[at] {
            "{" => braces += 1,
            "}" => {
                braces -= 1;
                if inline.last() == Some(&braces) {
                    inline.pop();
                }
            }
            "mod" if tokens.get(at + 2) == Some(&"{") => inline.push(braces),
            "crate" if is_path(&tokens, at) => found.extend(first_names(&tokens[at + 3..])),
            "super" => {
                let climbs =
                    tokens[at..].chunks(3).take_while(|chunk| **chunk == ["super", ":", ":"]).count();
                step = (3 * climbs).max(1);
                if climbs >= depth + inline.len() {
                    found.extend(first_names(&tokens[at + step..]));
                }
            }
            _ => {}
        }
        at += step;
    }
    // What lib.rs hands on under its own name.
    found.into_iter().map(|name| if ["Error", "Result"].contains(&name) { "error" } else { name }).collect()
}

/// Whether `::` follows the word at `at`.
fn is_path(tokens: &[&str], at: usize) -> bool {
    tokens.get(at + 1..at + 3).is_some_and(|after| after == [":", ":"])
}

/// The first names of what follows `crate::`: of one path, or of each path in `{a::b, c}`.
fn first_names<'s>(tokens: &[&'s str]) -> Vec<&'s str> {
    if tokens.first() != Some(&"{") {
        return tokens.first().copied().into_iter().collect();
    }
    let mut names = Vec::new();
    let (mut braces, mut begins) = (0, false);
    for token in tokens {
        match *token {
            "{" => {
                braces += 1;
                begins = braces == 1;
            }
            "}" if braces == 1 => break,
            "}" => braces -= 1,
            "," => begins = braces == 1,
            name if begins => {
                names.push(name);
                begins = false;
            }
            _ => {}
        }
    }
    names
}

/// A file up to the tests at its end, which may print.
fn without_tests(source: &str) -> &str {
    source.split("#[cfg(test)]\nmod tests {").next().unwrap_or(source)
}

/// Whether code writes to stdout or stderr.
fn prints(source: &str) -> bool {
    let tokens = tokens(source);
    tokens.iter().enumerate().any(|(at, word)| match *word {
        "print" | "println" | "eprint" | "eprintln" | "dbg" => tokens.get(at + 1) == Some(&"!"),
        "stdout" | "stderr" => true,
        _ => false,
    })
}

/// Whether code names something of the crate `name`: `name::…`, not behind another `::`.
fn uses_crate(name: &str, source: &str) -> bool {
    let tokens = tokens(source);
    let starts_path = |at: usize| at == 0 || tokens[at - 1] != ":";
    (0..tokens.len()).any(|at| tokens[at] == name && is_path(&tokens, at) && starts_path(at))
}

/// The code of a file: words, numbers and single signs, without comments, strings and characters.
fn tokens(source: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = source;
    while !rest.is_empty() {
        let length = left_out(rest).unwrap_or_else(|| {
            let length = word(rest);
            tokens.push(&rest[..length]);
            length
        });
        rest = &rest[length..];
    }
    tokens
}

/// The length of the word or sign that `rest` begins with.
fn word(rest: &str) -> usize {
    match rest.find(|c: char| !c.is_alphanumeric() && c != '_') {
        Some(0) => rest.chars().next().map_or(0, char::len_utf8),
        Some(end) => end,
        None => rest.len(),
    }
}

/// The length of the comment, string, character or white space that `rest` begins with; `None` for code.
fn left_out(rest: &str) -> Option<usize> {
    let up_to =
        |end: &str, from: usize| rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len());
    let first = rest.chars().next()?;
    if first.is_whitespace() {
        Some(first.len_utf8())
    } else if rest.starts_with("//") {
        Some(up_to("\n", 2))
    } else if rest.starts_with("/*") {
        Some(up_to("*/", 2))
    } else if let Some((hashes, start)) = raw_string(rest) {
        Some(up_to(&format!("\"{}", "#".repeat(hashes)), start))
    } else if first == '"' {
        Some(string(rest))
    } else if rest.starts_with("'\\") {
        // The escaped character may itself be a quote.
        Some(up_to("'", 3))
    } else if first == '\'' {
        // A character, or the quote of a lifetime, whose name is then a word.
        let inside = rest[1..].chars().next().map_or(0, char::len_utf8);
        Some(if rest[1 + inside..].starts_with('\'') { inside + 2 } else { 1 })
    } else {
        None
    }
}

/// Of a raw string that `rest` begins with: how many `#` it has, and where its content starts.
fn raw_string(rest: &str) -> Option<(usize, usize)> {
    let after = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let content = after.trim_start_matches('#').strip_prefix('"')?;
    Some((after.len() - content.len() - 1, rest.len() - content.len()))
}

/// The length of the string that `rest` begins with.
fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A file with every way to import, and with much that looks like one.
const SAMPLE: &str = r##"
//! [`crate::comment`] and println!("in a comment")
use crate::error::Error;
use crate::{
    io::{self, hex},
    job::Job,
    text,
};
pub(crate) fn text<'crate_>() -> crate::Result<()> {
    /* crate::block */
    crate::corpus::read("crate::string \" argmin::core println!", 'x')
}
const RAW: &str = r#"crate::raw "quoted" \"#;
const QUOTES: [u8; 2] = [b'"', b'\''];
fn up() { super::stats::go(); my_crate::argmin::core() }
mod tests {
    use super::*;
    use super::super::tokenizer::Counter;
}
fn after() { super::report::go() }
"##;

#[test]
fn imports_are_found_in_every_form() {
    let expected = ["corpus", "error", "io", "job", "report", "stats", "text", "tokenizer"];
    assert_eq!(imports(1, SAMPLE).into_iter().collect::<Vec<_>>(), expected);
    // One level deeper, `super` is the parent module and leads nowhere else.
    let expected = ["corpus", "error", "io", "job", "text"];
    assert_eq!(imports(2, SAMPLE).into_iter().collect::<Vec<_>>(), expected);
    assert_eq!(imports(2, "use super::super::cli::main;").into_iter().collect::<Vec<_>>(), ["cli"]);
}

#[test]
fn an_edge_that_goes_backwards_is_seen() {
    assert!(may_import("placeholder", "tokenizer") && may_import("corpus", "corpus"));
    assert!(!may_import("stats", "tokenizer") && !may_import("error", "io"));
    assert!(!may_import("cli", "unheard_of"));
}

#[test]
fn printing_and_crates_are_seen_in_code_alone() {
    assert!(!prints(SAMPLE) && !uses_crate("argmin", SAMPLE));
    assert!(prints("fn f() { eprintln!(\"x\") }") && prints("let out = std::io::stderr();"));
    assert!(!prints("fn println() {}"));
    assert!(!prints(without_tests("fn f() {}\n\n#[cfg(test)]\nmod tests {\n    fn g() { println!() }\n}\n")));
    assert!(uses_crate("argmin", "use argmin::core::Executor;"));
    assert!(uses_crate("clap", "#[derive(Debug, clap::Args)]") && !uses_crate("clap", "self.clap.run()"));
}
