//! The architecture, where neither Cargo nor clippy holds it: that modules and files do not import one another in circles, who
//! knows which crate, how long files are, and why tests are ignored. Which crate may import which, Cargo holds; who may print, and how
//! long functions are, clippy.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// The folders of `src` that are crates of their own; what else lies there is the program's.
const CRATES: [&str; 4] = ["core", "data", "tune", "engine"];

/// Other people's crates that few modules know, of the crates that have them.
const KNOWN_TO_FEW: [(&str, &[&str]); 6] = [
    ("argmin", &["anneal", "placeholder", "design"]),
    ("candle_core", &["model", "train", "generate"]),
    ("fancy_regex", &["tokenizer"]),
    ("pulp", &["model"]),
    ("rust_hdf5", &["corpus"]),
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
fn modules_do_not_import_one_another_in_a_circle() {
    for files in crates() {
        let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for file in &files {
            let tops = files.iter().map(|other| other.top()).collect::<BTreeSet<&str>>();
            let imports =
                file.code.imports.iter().filter_map(|import| tops.get(import.path.first()?.as_str()));
            edges.entry(file.top()).or_default().extend(imports.filter(|top| **top != file.top()));
        }
        let circles = circles(&edges);
        assert!(circles.is_empty(), "move what two of these modules need into one before them: {circles:#?}");
    }
}

#[test]
fn no_files_import_one_another_in_a_circle() {
    let mut edges = 0;
    for files in crates() {
        let of_crate = file_edges(&files);
        edges += of_crate.values().map(BTreeSet::len).sum::<usize>();
        let circles = circles(&of_crate);
        assert!(
            circles.is_empty(),
            "move what two of these files need into one that imports neither: {circles:#?}"
        );
    }
    // Something was read at all.
    assert!(edges > 500, "{edges}");
}

/// The extension module of the Python package has a crate of its own.
#[test]
fn no_files_of_the_python_package_import_one_another_in_a_circle() {
    let files = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("python/src"));
    let files: Vec<&Source> = files.iter().filter(|file| file.top() != "lib").collect();
    let edges = file_edges(&files);
    assert!(edges.values().map(BTreeSet::len).sum::<usize>() > 10, "{edges:?}");
    let circles = circles(&edges);
    assert!(circles.is_empty(), "{circles:#?}");
}

#[test]
fn some_crates_are_known_to_few_modules() {
    let files = library();
    for (name, owners) in KNOWN_TO_FEW {
        let users: BTreeSet<&str> =
            files.iter().filter(|file| file.code.crates.contains(name)).map(|file| file.top()).collect();
        assert!(users.iter().all(|user| owners.contains(user)), "{name} is for {owners:?} alone: {users:?}");
        assert!(!users.is_empty(), "nobody uses {name}");
    }
}

#[test]
fn stats_knows_no_tokenizer() {
    for file in library().into_iter().filter(|file| file.top() == "stats") {
        let mut words = Vec::new();
        names(file.text.parse().unwrap(), &mut words);
        let knows = words.iter().flatten().any(|word| word.to_lowercase().contains("tokenizer"));
        assert!(!knows, "src/{}", file.path);
    }
}

#[test]
fn files_are_short() {
    let long: Vec<String> = SOURCES
        .iter()
        .filter(|file| file.text.lines().count() > max_lines(&file.path))
        .map(|file| {
            let (lines, most) = (file.text.lines().count(), max_lines(&file.path));
            format!("src/{}: {lines} lines, at most {most}; move a subject into a file of its own", file.path)
        })
        .collect();
    assert!(long.is_empty(), "{long:#?}");
}

/// Where both reasons of a test apply, which is on machines unlike its author's, the compiler refuses the second `ignore`.
#[test]
fn tests_have_one_reason_to_be_ignored() {
    let mut tests = IgnoredTests::default();
    for file in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it")).iter().chain(SOURCES.iter())
    {
        tests.visit_file(&syn::parse_file(&file.text).unwrap());
    }
    assert!(tests.twice.is_empty(), "name both reasons in `not(all(…))`: {:?}", tests.twice);
    assert!(tests.count > 50, "{}", tests.count);
}

/// Tests that are ignored where something is missing.
#[derive(Default)]
struct IgnoredTests {
    count: usize,
    /// Names of those that have two such attributes.
    twice: Vec<String>,
}

impl<'a> Visit<'a> for IgnoredTests {
    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        let reasons = function.attrs.iter().filter(|attribute| match &attribute.meta {
            syn::Meta::List(list) => {
                list.path.is_ident("cfg_attr") && list.tokens.to_string().contains(", ignore")
            }
            _ => false,
        });
        let reasons = reasons.count();
        self.count += reasons;
        if reasons > 1 {
            self.twice.push(function.sig.ident.to_string());
        }
    }
}

/// A published crate holds what its manifest includes of its own folder and nothing else, so what a crate embeds lies there, if only
/// as a link (`embedded`), and is included.
#[test]
fn crates_embed_files_that_they_include() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for file in SOURCES.iter() {
        let (manifest, path) = match &*file.of_crate {
            "" => (root.to_owned(), format!("src/{}", file.path)),
            name => (root.join("src").join(name), file.path[name.len() + 1..].to_owned()),
        };
        let manifest = std::fs::read_to_string(manifest.join("Cargo.toml")).unwrap();
        let (_, include) = manifest.split_once("\ninclude = [").unwrap();
        let patterns: Vec<&str> = include.split(']').next().unwrap().split('"').skip(1).step_by(2).collect();
        for macro_name in ["include_bytes!(", "include_str!("] {
            for (at, _) in file.text.match_indices(macro_name) {
                let embedded = file.text[at..].split('"').nth(1).unwrap_or_default();
                let embedded = resolved(&path, embedded);
                let is_included = embedded.as_ref().is_some_and(|path| {
                    patterns.iter().any(|pattern| is_match(pattern.trim_start_matches('/'), path))
                });
                assert!(
                    is_included,
                    "src/{} embeds {embedded:?}, which is not among {patterns:?}",
                    file.path
                );
                count += 1;
            }
        }
    }
    assert!(count > 10, "{count}");
}

/// The path that a file means by a relative one, in the folder of its crate; `None` if it leads out of it.
fn resolved(file: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in relative.split('/') {
        match part {
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Whether a path matches a pattern of a manifest, whose `*` stands for a part of a name. A path that ends with `/` is the beginning
/// of one that a macro completes.
fn is_match(pattern: &str, path: &str) -> bool {
    if path.ends_with('/') {
        return pattern.starts_with(path);
    }
    let (names, patterns): (Vec<&str>, Vec<&str>) = (path.split('/').collect(), pattern.split('/').collect());
    let is_name = |(name, pattern): (&&str, &&str)| match pattern.split_once('*') {
        Some((before, behind)) => {
            name.len() >= before.len() + behind.len() && name.starts_with(before) && name.ends_with(behind)
        }
        None => name == pattern,
    };
    names.len() == patterns.len() && names.iter().zip(&patterns).all(is_name)
}

/// A file of `src`.
pub(crate) struct Source {
    /// Its path below `src`.
    pub(crate) path: String,
    /// Its crate: `data`; empty for the program.
    pub(crate) of_crate: String,
    /// Its module in the crate: `["corpus", "rdkit", "atom"]`.
    pub(crate) module: Vec<String>,
    pub(crate) text: String,
    code: Code,
}

impl Source {
    /// Its module at the root of the crate.
    fn top(&self) -> &str {
        &self.module[0]
    }

    /// Whether other files lie below its module.
    fn is_folder(&self, files: &[&Source]) -> bool {
        files
            .iter()
            .any(|file| file.module.len() > self.module.len() && file.module.starts_with(&self.module))
    }
}

/// The files of the modules: all but `lib.rs` and `main.rs`.
fn library() -> Vec<&'static Source> {
    SOURCES.iter().filter(|file| !["lib", "main"].contains(&file.top())).collect()
}

/// The files of each crate.
fn crates() -> Vec<Vec<&'static Source>> {
    let of = |name: &str| library().into_iter().filter(|file| file.of_crate == name).collect();
    CRATES.iter().chain([&""]).map(|name| of(name)).collect()
}

/// All files of `src`, in order.
pub(crate) static SOURCES: LazyLock<Vec<Source>> =
    LazyLock::new(|| sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")));

/// The files below a folder.
fn sources(root: &Path) -> Vec<Source> {
    let mut folders = vec![root.to_owned()];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                sources.push(source(root, &path));
            }
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

fn source(root: &Path, path: &Path) -> Source {
    let relative = path.strip_prefix(root).unwrap();
    let names = |path: &Path| -> Vec<String> {
        path.iter().map(|part| part.to_string_lossy().into_owned()).collect()
    };
    let mut module = names(&relative.with_extension(""));
    if module.last().is_some_and(|name| name == "mod") {
        module.pop();
    }
    let of_crate = if CRATES.contains(&&*module[0]) { module.remove(0) } else { String::new() };
    let text = std::fs::read_to_string(path).unwrap();
    let code = Code::of(&module, &text);
    Source { path: names(relative).join("/"), of_crate, module, text, code }
}

/// Which files import which, tests aside. What a folder's own file hands on or takes in is no edge, for it stands for the
/// folder.
fn file_edges<'f>(files: &[&'f Source]) -> BTreeMap<&'f str, BTreeSet<&'f str>> {
    let leaves: BTreeMap<&[String], &str> =
        files.iter().filter(|file| !file.is_folder(files)).map(|file| (&*file.module, &*file.path)).collect();
    let holding = |path: &[String]| (1..=path.len()).rev().find_map(|n| leaves.get(&path[..n]).copied());
    let mut edges: BTreeMap<&'f str, BTreeSet<&'f str>> = BTreeMap::new();
    for file in files.iter().filter(|file| leaves.contains_key(&*file.module)) {
        let imports = file.code.imports.iter().filter(|import| !import.in_tests);
        let targets = imports.filter_map(|import| holding(&import.path)).filter(|path| *path != file.path);
        edges.entry(&file.path).or_default().extend(targets);
    }
    edges
}

/// The sets of files that reach one another.
fn circles<'f>(edges: &BTreeMap<&'f str, BTreeSet<&'f str>>) -> BTreeSet<Vec<&'f str>> {
    let reached = |from: &'f str| {
        let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(file) = next.pop() {
            next.extend(edges.get(file).into_iter().flatten().filter(|target| reached.insert(**target)));
        }
        reached
    };
    let all: BTreeMap<&str, BTreeSet<&str>> = edges.keys().map(|file| (*file, reached(file))).collect();
    let circle = |file: &'f str| -> Vec<&'f str> {
        all[file]
            .iter()
            .filter(|other| all.get(**other).is_some_and(|back| back.contains(file)))
            .copied()
            .collect()
    };
    all.keys().map(|file| circle(file)).filter(|circle| circle.len() > 1).collect()
}

/// A path into the crate.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Import {
    /// From the root of the crate.
    path: Vec<String>,
    /// Whether tests alone name it.
    in_tests: bool,
}

/// What a file's code names and holds.
#[derive(Default)]
struct Code {
    /// The module at the place that is read.
    module: Vec<String>,
    in_tests: bool,
    imports: BTreeSet<Import>,
    /// First words of paths that do not begin in the crate.
    crates: BTreeSet<String>,
}

impl Code {
    fn of(module: &[String], text: &str) -> Self {
        let mut code = Code { module: module.to_vec(), ..Code::default() };
        code.visit_file(&syn::parse_file(text).unwrap());
        code
    }

    /// Notes a path.
    fn path(&mut self, names: &[String]) {
        let supers = names.iter().take_while(|name| *name == "super").count();
        let mut path = match names[0].as_str() {
            "crate" => Vec::new(),
            "self" => self.module.clone(),
            "super" if supers <= self.module.len() => self.module[..self.module.len() - supers].to_vec(),
            first => {
                if names.len() > 1 {
                    self.crates.insert(first.to_owned());
                }
                return;
            }
        };
        path.extend(names[supers.max(1)..].iter().cloned());
        self.imports.insert(Import { path, in_tests: self.in_tests });
    }

    /// Notes all paths of a `use`.
    fn tree(&mut self, before: &[String], tree: &syn::UseTree) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.tree(&with(&path.ident), &path.tree),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.tree(before, tree)),
            syn::UseTree::Name(name) => self.path(&with(&name.ident)),
            syn::UseTree::Rename(name) => self.path(&with(&name.ident)),
            syn::UseTree::Glob(_) => self.path(before),
        }
    }

    /// Notes the paths in what a macro or an attribute is given.
    fn tokens(&mut self, tokens: &TokenStream) {
        let mut found = Vec::new();
        names(tokens.clone(), &mut found);
        found.iter().for_each(|path| self.path(path));
    }
}

impl<'a> Visit<'a> for Code {
    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        let of_tests = item.attrs.iter().any(|attribute| match &attribute.meta {
            syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
            _ => false,
        });
        let around = self.in_tests;
        self.in_tests |= of_tests;
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
        self.in_tests = around;
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.tree(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.path(&names);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'a syn::Macro) {
        self.tokens(&item.tokens);
        visit::visit_macro(self, item);
    }

    fn visit_meta_list(&mut self, item: &'a syn::MetaList) {
        self.tokens(&item.tokens);
        visit::visit_meta_list(self, item);
    }
}

/// The paths, `a::b`, and single words of tokens.
fn names(tokens: TokenStream, found: &mut Vec<Vec<String>>) {
    let (mut colons, mut open) = (0, false);
    for token in tokens {
        match token {
            TokenTree::Ident(name) if colons == 2 && open => {
                if let Some(path) = found.last_mut() {
                    path.push(name.to_string());
                }
                colons = 0;
            }
            TokenTree::Ident(name) => {
                found.push(vec![name.to_string()]);
                (colons, open) = (0, true);
            }
            TokenTree::Punct(sign) if sign.as_char() == ':' => colons += 1,
            TokenTree::Group(group) => {
                names(group.stream(), found);
                (colons, open) = (0, false);
            }
            _ => (colons, open) = (0, false),
        }
    }
}

/// A file with every way to import, and with much that looks like one.
const SAMPLE: &str = r##"
//! [`crate::comment`]
use crate::error::Error;
use crate::{
    io::{self, hex},
    job::Job,
    text,
};
pub(crate) fn text<'crate_>() -> crate::Result<()> {
    /* crate::block */
    crate::corpus::read("crate::string \" argmin::core", 'x')
}
const RAW: &str = r#"crate::raw "quoted" \"#;
fn up() { super::stats::go(); my_crate::argmin::core(); vec![crate::design::cut()]; }
mod tests {
    use super::*;
    use super::super::tokenizer::Counter;
}
#[derive(Debug, clap::Args)]
pub struct After { field: super::report::Table }
"##;

/// The names at the root of the crate that a file in `module` imports.
fn tops(module: &[&str], text: &str) -> Vec<String> {
    let module: Vec<String> = module.iter().map(|name| (*name).to_owned()).collect();
    let tops: BTreeSet<String> =
        Code::of(&module, text).imports.iter().filter_map(|import| import.path.first().cloned()).collect();
    tops.into_iter().collect()
}

#[test]
fn imports_are_found_in_every_form() {
    let all =
        ["Result", "corpus", "design", "error", "io", "job", "own", "report", "stats", "text", "tokenizer"];
    assert_eq!(tops(&["own"], SAMPLE), all);
    // One level deeper, `super` is the parent module and leads nowhere else.
    let fewer = ["Result", "corpus", "design", "error", "io", "job", "own", "text"];
    assert_eq!(tops(&["own", "file"], SAMPLE), fewer);
    assert_eq!(tops(&["own", "file"], "use super::super::cli::main;"), ["cli"]);
}

#[test]
fn circles_are_found() {
    let edges = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e")];
    let mut graph: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in edges {
        graph.entry(from).or_default().insert(to);
    }
    assert_eq!(circles(&graph), BTreeSet::from([vec!["a", "b", "c"]]));
}

#[test]
fn crates_are_seen_in_code_alone() {
    let code = Code::of(&["own".to_owned()], SAMPLE);
    let crates: Vec<&str> = code.crates.iter().map(String::as_str).collect();
    assert_eq!(crates, ["clap", "my_crate"]);
}
