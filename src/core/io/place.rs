//! Where files are, so that two names of one file can be told.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// The largest number of links from a name to a file; no system follows more.
const MAX_LINKS: usize = 40;

/// Where a file or folder is, however it is named. It need not exist.
#[derive(Debug, Clone)]
pub struct FilePlace {
    /// The path without links. `None` if the current folder is unknown.
    real: Option<PathBuf>,
    /// The device and the number of the file on it, which all hard links to a file share.
    id: Option<(u64, u64)>,
}

impl FilePlace {
    /// Returns where `path` leads, through all links.
    pub fn of(path: &Path) -> Self {
        FilePlace { real: real(path), id: fs::metadata(path).ok().and_then(|metadata| id(&metadata)) }
    }

    /// Returns whether this is the same file or folder: the same path, or a hard link to the same file.
    pub fn is(&self, other: &FilePlace) -> bool {
        let is_same_file = self.id.is_some() && self.id == other.id;
        is_same_file || (self.real.is_some() && self.real == other.real)
    }

    /// Returns whether it lies directly in a folder.
    pub(crate) fn is_child_of(&self, folder: &FilePlace) -> bool {
        let parent = self.real.as_deref().and_then(Path::parent);
        parent.is_some() && parent == folder.real.as_deref()
    }

    /// Returns whether it is in a folder, at any depth, and no name on the way is hidden. A folder is in itself.
    pub(crate) fn is_visible_in(&self, folder: &FilePlace) -> bool {
        let (Some(own), Some(folder)) = (&self.real, &folder.real) else { return false };
        let Ok(below) = own.strip_prefix(folder) else { return false };
        !below.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."))
    }

    /// Returns whether an entry of a folder may be this file: by its number, or because it is a link.
    fn may_be(&self, entry: &fs::DirEntry) -> bool {
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        is_link || self.id.is_some_and(|(_, number)| entry_number(entry).is_none_or(|own| own == number))
    }
}

/// Returns the index of the first of `places` that a file in `folder`, at any depth, leads to. Hidden names do not count, and links to
/// folders are not followed, as when a corpus is read.
pub(crate) fn place_in(folder: &Path, places: &[&FilePlace]) -> Option<usize> {
    // Only entries that may be one of the places are looked up, since a folder may hold hundreds of thousands of files.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let found = if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            place_in(&entry.path(), places)
        } else if places.iter().any(|place| place.may_be(&entry)) {
            let own = FilePlace::of(&entry.path());
            places.iter().position(|place| place.is(&own))
        } else {
            None
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Returns the folder that contains a file: `.` for a name alone.
pub fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the end of a chain of links, which need not exist. It is itself a link if the chain has no end.
pub(super) fn followed(path: &Path) -> PathBuf {
    let mut at = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&at) {
            Ok(next) => at = parent(&at).join(next),
            Err(_) => break,
        }
    }
    at
}

/// Returns the path without links. Names at its end that do not exist are kept.
fn real(path: &Path) -> Option<PathBuf> {
    let path = followed(&std::path::absolute(path).ok()?);
    let known = path.ancestors().find_map(|at| Some((at, at.canonicalize().ok()?)));
    let (at, mut real) = known?;
    for part in path.strip_prefix(at).ok()?.components() {
        match part {
            Component::ParentDir => _ = real.pop(),
            part => real.push(part),
        }
    }
    Some(real)
}

#[cfg(unix)]
fn id(metadata: &fs::Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    // Some file systems number no file.
    (metadata.ino() != 0).then(|| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn id(_: &fs::Metadata) -> Option<(u64, u64)> {
    None
}

/// Returns the number of an entry's file, if it is known without asking for its metadata.
#[cfg(unix)]
fn entry_number(entry: &fs::DirEntry) -> Option<u64> {
    Some(std::os::unix::fs::DirEntryExt::ino(entry))
}

#[cfg(not(unix))]
fn entry_number(_: &fs::DirEntry) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn every_name_of_a_file_is_told() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("far/.hidden")).unwrap();
        fs::write(at("far/file"), "").unwrap();
        fs::hard_link(at("far/file"), at("twin")).unwrap();
        symlink("far/file", at("link")).unwrap();
        symlink("link", at("chain")).unwrap();
        symlink("far/none", at("dangling")).unwrap();
        symlink("far", at("folder")).unwrap();
        let place = |name: &str| FilePlace::of(&at(name));
        for name in ["far/file", "twin", "link", "chain", "folder/file", "far/../link"] {
            assert!(place(name).is(&place("far/file")), "{name}");
        }
        assert!(place("dangling").is(&place("folder/none")) && place("far/../new").is(&place("new")));
        assert!(!place("far/none").is(&place("far/other")) && !place("far").is(&place("far/file")));
        assert!(
            place("folder/new").is_child_of(&place("far")) && !place("far/a/b").is_child_of(&place("far"))
        );
        let is_in = |name: &str| place(name).is_visible_in(&place("far"));
        assert!(is_in("folder/new/file") && is_in("far") && !is_in("twin"));
        assert!(!is_in("far/.hidden/file") && !is_in("far/.file"));
    }

    #[cfg(unix)]
    #[test]
    fn links_in_a_folder_are_followed_to_files_alone() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["data/sub", "data/.hidden", "out"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        for name in ["a", "b", "c", "d"] {
            fs::write(at("out").join(name), name).unwrap();
        }
        std::os::unix::fs::symlink(at("out/a"), at("data/sub/a")).unwrap();
        fs::hard_link(at("out/b"), at("data/b")).unwrap();
        fs::hard_link(at("out/c"), at("data/.hidden/c")).unwrap();
        std::os::unix::fs::symlink(at("out"), at("data/out")).unwrap();
        std::os::unix::fs::symlink(at("out/new"), at("data/new")).unwrap();
        let found = |name| place_in(&at("data"), &[&FilePlace::of(&at("out").join(name))]).is_some();
        assert_eq!(["a", "b", "c", "d", "new"].map(found), [true, true, false, false, true]);
    }
}
