//! Outputs that are either complete or absent.
//!
//! A file is written under a temporary name in the same folder, and renamed once it is complete. Several files of one result are
//! all written before the first is renamed; if a later rename fails, the earlier files get their old content back. A process that
//! is killed leaves old files or new ones, and at most hidden `.drift-…` files beside them.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile, TempPath};

use super::place::{followed, parent};
use crate::error::{Error, Result};

/// The prefix of unfinished files.
const PREFIX: &str = ".drift-";

/// The problem of a link that never comes to a file.
const ENDLESS: &str = "is a link that leads back to itself";

/// An output that appears under its name only when it is complete: it is written beside it, then renamed. If the name is a link,
/// the link stays and its target is replaced.
pub struct AtomicFile {
    /// The path as the user wrote it, for messages.
    named: PathBuf,
    /// The final path.
    target: PathBuf,
    file: NamedTempFile,
}

impl AtomicFile {
    /// Starts an output; the folder must exist.
    ///
    /// # Errors
    /// If the folder cannot be written to, or something other than a file has this name.
    pub fn create(named: &Path) -> Result<Self> {
        let target = destination(named)?;
        let file = temporary(&target).map_err(|e| unwritable(named, &e))?;
        Ok(AtomicFile { named: named.to_owned(), target, file })
    }

    /// Returns the path of the unfinished file, for writers that need a path.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Frees the disk space of a file that will not be finished.
    pub fn clear(&self) {
        // An error does not matter: the file is about to be deleted.
        let _ = self.file.as_file().set_len(0);
    }

    /// Appends `bytes`.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| Error::io(&self.named, e))
    }

    /// Overwrites the beginning of the file with `bytes`.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn put_first(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.write_all(bytes));
        written.and_then(|()| self.file.seek(SeekFrom::End(0))).map_err(|e| Error::io(&self.named, e))?;
        Ok(())
    }

    /// Appends the next `bytes` bytes of another file. Uses the system's file copy where there is one.
    ///
    /// # Errors
    /// If the system refuses, or the other file ends too early.
    pub fn copy(&mut self, from: &mut fs::File, bytes: u64) -> Result<()> {
        let copied = io::copy(&mut from.take(bytes), self.file.as_file_mut());
        match copied.map_err(|e| Error::io(&self.named, e))? {
            copied if copied == bytes => Ok(()),
            _ => Err(Error::io(&self.named, io::ErrorKind::UnexpectedEof.into())),
        }
    }

    /// Renames the finished file to its name, replacing an old file. It gets the permissions of the old file, or else those of any
    /// new file of the user.
    ///
    /// # Errors
    /// If the system refuses; the old file is then untouched.
    pub fn commit(self) -> Result<()> {
        if let Ok(old) = fs::metadata(&self.target) {
            // This fails for a file of another owner; then the permissions are those of a new file.
            let _ = self.file.as_file().set_permissions(old.permissions());
        }
        self.file.persist(&self.target).map_err(|e| Error::io(&self.named, e.error))?;
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Several files that appear together. If one cannot be written, none appears.
#[derive(Default)]
pub struct OutputSet {
    files: Vec<AtomicFile>,
    /// Files of an earlier run that are to be removed.
    stale: Vec<PathBuf>,
    /// Folders that were created for the files, outer ones first. They are removed again unless the set is committed.
    made: Vec<PathBuf>,
}

impl OutputSet {
    /// Returns an empty set.
    pub fn new() -> Self {
        OutputSet::default()
    }

    /// Creates a folder and its parents if they do not exist.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn folder(&mut self, folder: &Path) -> Result<()> {
        let missing: Vec<&Path> =
            folder.ancestors().take_while(|path| !is_empty(path) && !path.exists()).collect();
        for path in missing.into_iter().rev() {
            match fs::create_dir(path) {
                Ok(()) => self.made.push(path.to_owned()),
                // Another process created it first.
                Err(_) if path.is_dir() => {}
                Err(error) => return Err(unwritable(path, &error)),
            }
        }
        Ok(())
    }

    /// Writes a file under a temporary name; [`OutputSet::commit`] renames it.
    ///
    /// # Errors
    /// As [`AtomicFile::create`] and [`AtomicFile::put`].
    pub fn put(&mut self, target: &Path, bytes: &[u8]) -> Result<()> {
        let mut file = AtomicFile::create(target)?;
        file.put(bytes)?;
        self.add(file);
        Ok(())
    }

    /// Adds a file that has been written already.
    pub fn add(&mut self, file: AtomicFile) {
        self.files.push(file);
    }

    /// Schedules an old file for removal after the others are in place.
    pub fn remove(&mut self, stale: &Path) {
        self.stale.push(stale.to_owned());
    }

    /// Renames all files to their names, in the order in which they were added.
    ///
    /// # Errors
    /// If the system refuses a rename. All names then have their old content, if the file system supports hard links.
    pub fn commit(mut self) -> Result<()> {
        let mut done: Vec<(PathBuf, Option<TempPath>)> = Vec::new();
        for file in std::mem::take(&mut self.files) {
            let (target, kept) = (file.target.clone(), backup(&file.target));
            // Restored in reverse, so that a name that was added twice gets its original content.
            if let Err(error) = file.commit() {
                for (target, kept) in done.into_iter().rev() {
                    // The first error is the one to report.
                    let _ = match kept {
                        Some(kept) => kept.persist(&target).map_err(|e| e.error),
                        None => fs::remove_file(&target),
                    };
                }
                return Err(error);
            }
            done.push((target, kept));
        }
        self.made.clear();
        for path in self.stale.iter().filter(|path| path.is_file()) {
            fs::remove_file(path).map_err(|e| Error::io(path, e))?;
        }
        Ok(())
    }
}

impl Drop for OutputSet {
    fn drop(&mut self) {
        // Files go first, because folders must be empty to be removed.
        self.files.clear();
        for folder in self.made.iter().rev() {
            // Another process may have put something there.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Writes `bytes` to `target`, completely or not at all.
///
/// # Errors
/// If the folder cannot be written to.
pub fn write_atomic(target: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = AtomicFile::create(target)?;
    file.put(bytes)?;
    file.commit()
}

/// Refuses a path at which no file could be written.
///
/// # Errors
/// As [`AtomicFile::create`].
pub(crate) fn check_file(named: &Path) -> Result<()> {
    AtomicFile::create(named).map(drop)
}

/// Refuses a folder in which files of these names could not be written. The folder need not exist.
///
/// # Errors
/// If it is not a folder and cannot be created, or one of the files cannot be written.
pub(crate) fn check_folder(folder: &Path, names: &[&str]) -> Result<()> {
    if folder.is_dir() {
        for name in names {
            destination(&folder.join(name))?;
        }
        return probe(folder, folder);
    }
    if folder.is_symlink() || folder.exists() {
        let problem = match fs::symlink_metadata(followed(folder)) {
            Ok(end) if end.is_symlink() => ENDLESS,
            Ok(_) => "is a file",
            Err(_) => "is a link to a folder that does not exist",
        };
        return Err(Error::input(folder.display(), problem, "give the name of a folder"));
    }
    let there = folder.ancestors().find(|path| is_empty(path) || path.exists()).unwrap_or(Path::new(""));
    let there = if is_empty(there) { Path::new(".") } else { there };
    if !there.is_dir() {
        let problem = format!("cannot be made: {} is a file", there.display());
        return Err(Error::input(folder.display(), problem, "give another folder"));
    }
    probe(there, folder)
}

/// Returns the absolute form of a path, which need not exist.
///
/// # Errors
/// If the current folder cannot be determined.
pub fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|e| Error::io(path, e))
}

fn is_empty(path: &Path) -> bool {
    path.as_os_str().is_empty()
}

/// Returns the final path of a file with this name.
fn destination(named: &Path) -> Result<PathBuf> {
    let target = followed(named);
    if target.is_symlink() {
        // Renaming would replace the link.
        return Err(Error::input(named.display(), ENDLESS, "remove it, or give the name of a file"));
    }
    if target.is_dir() {
        return Err(Error::input(named.display(), "is a folder", "give the name of a file"));
    }
    if target.exists() && !target.is_file() {
        // Renaming would replace the pipe or device itself, even /dev/null.
        let problem = "is a pipe or device, not a file";
        return Err(Error::input(named.display(), problem, "give the name of a file"));
    }
    if target.file_name().is_none() {
        return Err(Error::input(named.display(), "is not a file name", "give the name of a file"));
    }
    let folder = parent(&target);
    if !folder.is_dir() {
        let problem = format!("there is no folder {}", folder.display());
        return Err(Error::input(named.display(), problem, "make it first"));
    }
    Ok(target)
}

/// Returns a temporary file beside the target, with the permissions of the user's other files.
fn temporary(target: &Path) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(PREFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The user's umask is applied to it.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(parent(target))
}

/// Returns a second hard link to the file at `target`; `None` if there is no file or the file system has no hard links.
fn backup(target: &Path) -> Option<TempPath> {
    let link = |path: &Path| fs::hard_link(target, path);
    Builder::new().prefix(PREFIX).make_in(parent(target), link).ok().map(NamedTempFile::into_temp_path)
}

/// Checks that files can be created in a folder; `named` is the path as the user wrote it.
fn probe(folder: &Path, named: &Path) -> Result<()> {
    Builder::new().prefix(PREFIX).tempfile_in(folder).map(drop).map_err(|e| unwritable(named, &e))
}

/// Returns the system's error without the name of the temporary file.
fn unwritable(named: &Path, error: &io::Error) -> Error {
    let raw =
        error.raw_os_error().map_or_else(|| io::Error::from(error.kind()), io::Error::from_raw_os_error);
    Error::io(named, raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names in a folder.
    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn all_or_none_though_the_last_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a"), "old").unwrap();
        let mut set = OutputSet::new();
        for name in ["a", "b", "c"] {
            set.put(&at(name), b"new").unwrap();
        }
        set.remove(&at("a"));
        // What comes between the checks and the end.
        fs::create_dir(at("c")).unwrap();
        assert!(set.commit().is_err());
        assert_eq!(
            (names(folder.path()), &*fs::read(at("a")).unwrap()),
            (vec!["a".into(), "c".into()], &b"old"[..])
        );
    }

    #[test]
    fn folders_are_made_with_the_files_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("one/two");
        let mut set = OutputSet::new();
        set.folder(&inner).unwrap();
        set.put(&inner.join("a"), b"x").unwrap();
        drop(set);
        assert_eq!(names(folder.path()), [""; 0]);
        fs::write(folder.path().join("stale"), "").unwrap();
        let mut set = OutputSet::new();
        set.folder(&inner).unwrap();
        set.put(&inner.join("a"), b"x").unwrap();
        set.remove(&folder.path().join("stale"));
        set.commit().unwrap();
        assert_eq!((names(&inner), names(folder.path())), (vec!["a".into()], vec!["one".into()]));
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_links_and_permissions_are_kept() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("far")).unwrap();
        std::os::unix::fs::symlink("far/file", at("link")).unwrap();
        write_atomic(&at("link"), b"1").unwrap();
        assert_eq!(fs::read(at("far/file")).unwrap(), b"1");
        fs::set_permissions(at("far/file"), fs::Permissions::from_mode(0o640)).unwrap();
        write_atomic(&at("link"), b"2").unwrap();
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(fs::read(at("far/file")).unwrap(), b"2");
        assert_eq!(fs::metadata(at("far/file")).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[cfg(unix)]
    #[test]
    fn links_without_an_end_are_refused() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, to) in [("own", "own"), ("a", "b"), ("b", "a"), ("dangling", "none")] {
            symlink(to, at(name)).unwrap();
        }
        let refused = |outcome: Result<()>| outcome.unwrap_err().to_string();
        for name in ["own", "a"] {
            assert!(refused(write_atomic(&at(name), b"1")).contains(ENDLESS) && at(name).is_symlink());
            assert!(refused(check_folder(&at(name), &["x"])).contains(ENDLESS), "{name}");
        }
        assert!(refused(check_folder(&at("dangling"), &[])).contains("that does not exist"));
        write_atomic(&at("dangling"), b"1").unwrap();
        assert_eq!(fs::read(at("none")).unwrap(), b"1");
    }

    #[test]
    fn what_could_not_be_written_is_told_before() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "").unwrap();
        fs::create_dir_all(at("dir/record.json")).unwrap();
        let refused = |outcome: Result<()>| outcome.unwrap_err().to_string();
        assert!(refused(check_folder(&at("file"), &[])).contains("is a file; give the name of a folder"));
        assert!(refused(check_folder(&at("file/x/y"), &[])).contains("is a file"));
        assert!(refused(check_folder(&at("dir"), &["record.json"])).contains("record.json: is a folder"));
        assert!(refused(check_file(&at("none/x"))).contains("there is no folder"));
        check_folder(&at("new/deep"), &["record.json"]).unwrap();
        check_file(&at("file")).unwrap();
        assert_eq!(names(folder.path()), ["dir", "file"]);
    }
}
