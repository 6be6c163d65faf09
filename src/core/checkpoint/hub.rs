//! Models by name, in the cache that Hugging Face's libraries fill: `org/name`, or `org/name@revision`.
//!
//! The layout (`huggingface_hub`, guide "Manage your cache"): `models--org--name/` has `refs/REVISION`, files that hold a commit
//! hash, and `snapshots/COMMIT/`, folders whose files are links into `blobs/`. drift only reads the cache; it downloads nothing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::folder::{CONFIG, ModelFolder};
use super::weight_files::WeightFiles;
use crate::command::quoted;
use crate::error::{Error, Result, excerpt};
use crate::io::{file_name, parent, read_to_limit};

/// The files that a model must have to be accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequiredFiles {
    /// A `tokenizer.json`.
    Tokenizer,
    /// Settings and weights.
    Weights,
    /// Tokenizer, settings and weights.
    Model,
    /// The folder, whatever is in it.
    Folder,
}

/// Returns the path of a model or tokenizer. A path that exists is returned unchanged, and so is anything that is not a name. A name is
/// looked up in the user's cache (`HF_HUB_CACHE`, else `HF_HOME/hub`, else `XDG_CACHE_HOME/huggingface/hub`, else
/// `~/.cache/huggingface/hub`).
///
/// # Errors
/// If a name is not in the cache, or its snapshot lacks wanted files. The message contains the command that downloads it.
pub fn locate(given: &Path, wanted: RequiredFiles) -> Result<PathBuf> {
    let name = given.to_str().and_then(HubName::parse).filter(|_| !given.exists());
    let Some(name) = name else { return Ok(given.to_owned()) };
    // The only place that asks where the cache of models is.
    match cache(&|name| std::env::var_os(name)) {
        Some(cache) => snapshot(&cache, &name, wanted),
        None => {
            Err(name.refuse("is not a path, and HOME is not set, so the Hugging Face cache cannot be found"))
        }
    }
}

/// Returns the name of a model's folder, for reports. For a snapshot in the cache it is the name of the repository.
pub fn folder_name(folder: &Path) -> String {
    let mut outer = folder.ancestors().skip(1).filter_map(Path::file_name).filter_map(|name| name.to_str());
    let repository = match (outer.next(), outer.next()) {
        (Some("snapshots"), Some(repository)) => repository.strip_prefix("models--"),
        _ => None,
    };
    match repository.and_then(|repository| repository.rsplit("--").next()) {
        Some(name) => name.to_owned(),
        None => file_name(folder),
    }
}

/// Returns the name, as by [`folder_name`], of the folder that contains a file; `None` if there is no such folder. The file may be a
/// link.
pub fn folder_around(file: &Path) -> Option<String> {
    let folder = parent(file).canonicalize().ok()?;
    folder.file_name().map(|_| folder_name(&folder))
}

/// Returns the folder of the cache, according to the variables that `huggingface_hub` reads.
fn cache(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = set("HOME").or_else(|| set("USERPROFILE"));
    let expanded = |path: PathBuf| match (path.strip_prefix("~"), &home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path,
    };
    if let Some(hub) = set("HF_HUB_CACHE").or_else(|| set("HUGGINGFACE_HUB_CACHE")) {
        return Some(expanded(hub));
    }
    let huggingface = set("HF_HOME")
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("huggingface")))
        .or_else(|| Some(home.clone()?.join(".cache/huggingface")))?;
    Some(expanded(huggingface).join("hub"))
}

/// The name of a repository, with an optional revision.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HubName {
    organisation: String,
    name: String,
    revision: Option<String>,
}

/// Returns whether a part of a repository's name has the allowed length and characters.
fn is_legal(part: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    part.len() <= 96
        && part.starts_with(is_word)
        && part.ends_with(is_word)
        && part.chars().all(|c| is_word(c) || "-.".contains(c))
}

/// File endings that mark a path, even if nothing exists there, and not a name.
const FILES: [&str; 4] = [".gz", ".json", ".safetensors", ".txt"];

impl HubName {
    /// Parses `org/name` or `org/name@revision`, by the rules of `huggingface_hub` (`validate_repo_id`).
    fn parse(given: &str) -> Option<Self> {
        let (repository, revision) = match given.split_once('@') {
            Some((repository, revision)) => (repository, Some(revision)),
            None => (given, None),
        };
        let (organisation, name) = repository.split_once('/')?;
        let odd = |part: &str| part.contains("--") || part.contains("..") || part.ends_with(".git");
        let is_name = [organisation, name].iter().all(|part| is_legal(part) && !odd(part));
        let is_file = FILES.iter().any(|ending| name.ends_with(ending));
        // A revision is a path below `refs` and must not lead out of it.
        let stays = revision.is_none_or(|revision| {
            !revision.is_empty() && revision.split('/').all(|part| !["", ".", ".."].contains(&part))
        });
        (is_name && !is_file && stays).then(|| HubName {
            organisation: organisation.to_owned(),
            name: name.to_owned(),
            revision: revision.map(str::to_owned),
        })
    }

    fn refuse(&self, problem: impl ToString) -> Error {
        let HubName { organisation, name, revision } = self;
        let (place, more) = match revision {
            Some(revision) => {
                (format!("{organisation}/{name}@{revision}"), format!(" --revision {}", quoted(revision)))
            }
            None => (format!("{organisation}/{name}"), String::new()),
        };
        Error::input(place, problem, format!("fetch it: hf download {organisation}/{name}{more}"))
    }
}

/// A ref holds a commit hash of 40 characters.
const MAX_REF_BYTES: u64 = 1 << 10;

/// Returns the snapshot folder of a name in a cache.
fn snapshot(cache: &Path, name: &HubName, wanted: RequiredFiles) -> Result<PathBuf> {
    let repository = cache.join(format!("models--{}--{}", name.organisation, name.name));
    if !repository.is_dir() {
        let cache = cache.display();
        return Err(name.refuse(format!("is neither a path nor in the Hugging Face cache, {cache}")));
    }
    let snapshot = repository.join("snapshots").join(commit(&repository, name)?);
    check(&snapshot, wanted).map_err(|problem| name.refuse(problem))?;
    Ok(snapshot)
}

/// Returns the commit of a revision: the content of its file in `refs`, a commit hash, or an unambiguous prefix of one.
fn commit(repository: &Path, name: &HubName) -> Result<String> {
    let revision = name.revision.as_deref().unwrap_or("main");
    let file = repository.join("refs").join(revision);
    let wanted = match file.is_file() {
        true => String::from_utf8_lossy(&read_to_limit(&file, MAX_REF_BYTES)?).trim().to_owned(),
        false => revision.to_owned(),
    };
    let listed = std::fs::read_dir(repository.join("snapshots")).into_iter().flatten().flatten();
    let mut commits: Vec<String> =
        listed.filter(|entry| entry.path().is_dir()).map(|entry| file_name(&entry.path())).collect();
    commits.sort();
    let mut found = commits.iter().filter(|commit| commit.starts_with(&wanted));
    match (found.next(), found.next()) {
        // A full commit hash wins, even if it is also a prefix of another folder's name.
        _ if commits.contains(&wanted) => Ok(wanted),
        (Some(first), Some(second)) => {
            let problem = format!("{wanted} begins both {first} and {second}");
            let place = format!("{}/{}@{revision}", name.organisation, name.name);
            Err(Error::input(place, problem, "give more characters of the commit"))
        }
        (Some(commit), None) => Ok(commit.clone()),
        (None, _) if commits.is_empty() => Err(name.refuse("is in the cache, but has no files there")),
        (None, _) => {
            let shown: Vec<&str> =
                commits.iter().take(2).map(|commit| commit.get(..8).unwrap_or(commit)).collect();
            let problem = format!("revision {revision} is not in the cache, only {}", shown.join(" and "));
            Err(name.refuse(problem))
        }
    }
}

/// Checks that all wanted files are there and that no link is dangling; the error says what is wrong.
fn check(snapshot: &Path, wanted: RequiredFiles) -> Result<(), String> {
    for entry in std::fs::read_dir(snapshot).map_err(|e| e.to_string())?.flatten() {
        let path = entry.path();
        // An interrupted download leaves links to blobs that do not exist.
        if !path.exists() {
            let target = std::fs::read_link(&path).unwrap_or_default();
            let [link, blob] = [&path, &target].map(|path| file_name(path));
            return Err(format!("its {link} in the cache is a link to the blob {blob}, which is missing"));
        }
    }
    let folder = ModelFolder::new(snapshot);
    let lacks = |name: &str| folder.file(name).is_none();
    let needs_tokenizer = matches!(wanted, RequiredFiles::Tokenizer | RequiredFiles::Model);
    if needs_tokenizer && lacks("tokenizer.json.gz") && lacks("tokenizer.json") {
        return Err("is in the cache without tokenizer.json".to_owned());
    }
    if matches!(wanted, RequiredFiles::Weights | RequiredFiles::Model) {
        if lacks(CONFIG) {
            return Err(format!("is in the cache without {CONFIG}"));
        }
        check_weights(&folder)?;
    }
    Ok(())
}

/// Checks that the weights are there. Weights in another layout pass: the code that reads them refuses them.
fn check_weights(folder: &ModelFolder) -> Result<(), String> {
    let Some(file) = folder.weights() else {
        return match folder.other_layout() {
            Some(_) => Ok(()),
            None => Err("is in the cache, but its weights are missing".to_owned()),
        };
    };
    let files = WeightFiles::find(&file, "").map_err(|e| e.to_string())?;
    match files.files().into_iter().find(|shard| !shard.is_file()) {
        Some(shard) => {
            let name = excerpt(file_name(shard).as_bytes());
            Err(format!("is in the cache without {name}, which {} lists", file_name(&file)))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_paths() {
        let parse = |given| HubName::parse(given);
        let name = parse("Qwen/Qwen3-0.6B").unwrap();
        assert_eq!((&*name.organisation, &*name.name, name.revision), ("Qwen", "Qwen3-0.6B", None));
        assert_eq!(parse("a/b@refs/pr/1").unwrap().revision.unwrap(), "refs/pr/1");
        for path in [
            "qwen-like",
            "./a",
            "../a",
            "/a/b",
            "~/a",
            "a/b/c",
            "a/",
            "a/b.json",
            "a/tokenizer.json.gz",
            "a/b.git",
            "a--b/c",
            "a/b..c",
            "a/-b",
            "a/b.",
            "a/b c",
            "a/b@",
            "a/b@../../x",
            "a/b@x//y",
            "a/é",
        ] {
            assert_eq!(parse(path), None, "{path}");
        }
    }

    #[test]
    fn the_cache_is_where_the_variables_say() {
        let cache = |set: &[(&str, &str)]| {
            cache(&|name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value)))
        };
        let all = [
            ("HF_HUB_CACHE", "/h"),
            ("HUGGINGFACE_HUB_CACHE", "/old"),
            ("HF_HOME", "~/hf"),
            ("XDG_CACHE_HOME", "/x"),
            ("HOME", "/home/u"),
        ];
        let expected =
            ["/h", "/old", "/home/u/hf/hub", "/x/huggingface/hub", "/home/u/.cache/huggingface/hub"];
        for (skipped, expected) in expected.into_iter().enumerate() {
            assert_eq!(cache(&all[skipped..]), Some(expected.into()));
        }
        assert_eq!(cache(&[("HF_HUB_CACHE", ""), ("HOME", "/u")]), Some("/u/.cache/huggingface/hub".into()));
        assert_eq!(cache(&[]), None);
    }

    #[test]
    fn snapshots_are_called_by_their_repository() {
        let name = |path| folder_name(Path::new(path));
        assert_eq!(name("/c/models--Qwen--Qwen3-0.6B/snapshots/0123"), "Qwen3-0.6B");
        assert_eq!(name("/models/snapshots/mine"), "mine");
        assert_eq!(name("mine"), "mine");
    }
}
