//! Outputs that are whole or absent.
//!
//! A file is written beside its name and renamed to it once it is whole. Several files of one result, in one folder or
//! not, are all written before the first is renamed; should a later name be refused after all, the earlier ones get back
//! what they held. A process that is killed leaves old files or new ones, and at most a hidden `.drift-…` beside them.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile, TempPath};

use crate::error::{Error, Result};

/// How files that are not finished begin.
const PREFIX: &str = ".drift-";

/// Links that are followed from a name to a file; no system follows more.
const MAX_LINKS: usize = 40;

/// An output that appears under its name only when whole: written beside it, then renamed. A name that is a link stays
/// one: the file that it leads to is replaced.
pub struct AtomicFile {
    /// As the user called it, for messages.
    named: PathBuf,
    /// Where it will be.
    target: PathBuf,
    file: NamedTempFile,
}

impl AtomicFile {
    /// Starts an output; the folder must exist.
    ///
    /// # Errors
    /// If the folder cannot be written to, or the name is that of something else than a file.
    pub fn create(named: &Path) -> Result<Self> {
        let target = destination(named)?;
        let file = temporary(&target).map_err(|e| unwritable(named, &e))?;
        Ok(AtomicFile { named: named.to_owned(), target, file })
    }

    /// The path of the unfinished file, for writers that want a path.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Gives back the room on the disk of a file that will not be finished.
    pub fn clear(&self) {
        // It is about to be deleted anyway.
        let _ = self.file.as_file().set_len(0);
    }

    /// Adds `bytes`.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| Error::io(&self.named, e))
    }

    /// Writes `bytes` over the first ones.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn put_first(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.write_all(bytes));
        written.and_then(|()| self.file.seek(SeekFrom::End(0))).map_err(|e| Error::io(&self.named, e))?;
        Ok(())
    }

    /// Adds the next `bytes` bytes of another file, the way in which the system copies files where it has one.
    ///
    /// # Errors
    /// If the system refuses, or the other file ends before.
    pub fn copy(&mut self, from: &mut fs::File, bytes: u64) -> Result<()> {
        let copied = io::copy(&mut from.take(bytes), self.file.as_file_mut());
        match copied.map_err(|e| Error::io(&self.named, e))? {
            copied if copied == bytes => Ok(()),
            _ => Err(Error::io(&self.named, io::ErrorKind::UnexpectedEof.into())),
        }
    }

    /// Renames the finished file to its name, replacing what was there. It is as readable as that was, else as any file
    /// that the user makes.
    ///
    /// # Errors
    /// If the system refuses; the old file is then untouched.
    pub fn commit(self) -> Result<()> {
        if let Ok(old) = fs::metadata(&self.target) {
            // Of a file of another owner: then it is as any new one.
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

/// Several files that appear together: all of them or, if one cannot be written, none.
#[derive(Default)]
pub struct OutputSet {
    files: Vec<AtomicFile>,
    /// What an earlier run left and does not belong to this one.
    stale: Vec<PathBuf>,
    /// Folders that were made for the files, outer ones first; gone again unless committed.
    made: Vec<PathBuf>,
}

impl OutputSet {
    /// None yet.
    pub fn new() -> Self {
        OutputSet::default()
    }

    /// Makes a folder, and those around it, if need be.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn folder(&mut self, folder: &Path) -> Result<()> {
        let missing: Vec<&Path> =
            folder.ancestors().take_while(|path| !is_empty(path) && !path.exists()).collect();
        for path in missing.into_iter().rev() {
            match fs::create_dir(path) {
                Ok(()) => self.made.push(path.to_owned()),
                // Another process was first.
                Err(_) if path.is_dir() => {}
                Err(error) => return Err(unwritable(path, &error)),
            }
        }
        Ok(())
    }

    /// Writes a file beside its name.
    ///
    /// # Errors
    /// As [`AtomicFile::create`] and [`AtomicFile::put`].
    pub fn put(&mut self, target: &Path, bytes: &[u8]) -> Result<()> {
        let mut file = AtomicFile::create(target)?;
        file.put(bytes)?;
        self.add(file);
        Ok(())
    }

    /// Adds a file that is written already.
    pub fn add(&mut self, file: AtomicFile) {
        self.files.push(file);
    }

    /// Takes a file away, if there is one, once the others are there.
    pub fn remove(&mut self, stale: &Path) {
        self.stale.push(stale.to_owned());
    }

    /// Renames all files to their names, in the order in which they came.
    ///
    /// # Errors
    /// If the system refuses one; all names then hold what they held before, where the file system can keep it (hard
    /// links).
    pub fn commit(mut self) -> Result<()> {
        let mut done: Vec<(PathBuf, Option<TempPath>)> = Vec::new();
        for file in std::mem::take(&mut self.files) {
            let (target, kept) = (file.target.clone(), backup(&file.target));
            // The last one goes back first, so that a name that came twice gets what it held before both.
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
        // Files first: folders must be empty to go.
        self.files.clear();
        for folder in self.made.iter().rev() {
            // Somebody else may have put something there.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Writes `bytes` to `target`, whole or not at all.
///
/// # Errors
/// If the folder cannot be written to.
pub fn write_atomic(target: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = AtomicFile::create(target)?;
    file.put(bytes)?;
    file.commit()
}

/// Refuses a name under which no file could be written.
///
/// # Errors
/// As [`AtomicFile::create`].
pub fn check_file(named: &Path) -> Result<()> {
    AtomicFile::create(named).map(drop)
}

/// Refuses a folder in which no files of these names could be written; it need not exist.
///
/// # Errors
/// If it is none and cannot be made, or one of the files cannot be written.
pub fn check_folder(folder: &Path, names: &[&str]) -> Result<()> {
    if folder.is_dir() {
        for name in names {
            destination(&folder.join(name))?;
        }
        return probe(folder, folder);
    }
    if fs::symlink_metadata(folder).is_ok() {
        return Err(Error::input(folder.display(), "is a file", "give the name of a folder"));
    }
    let there = folder.ancestors().find(|path| is_empty(path) || path.exists()).unwrap_or(Path::new(""));
    let there = if is_empty(there) { Path::new(".") } else { there };
    if !there.is_dir() {
        let problem = format!("cannot be made: {} is a file", there.display());
        return Err(Error::input(folder.display(), problem, "give another folder"));
    }
    probe(there, folder)
}

/// A name that does not depend on the folder that the process is in; of a file that need not exist.
///
/// # Errors
/// If the system does not say which folder it is.
pub fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|e| Error::io(path, e))
}

/// Whether two names, of files that need not exist, are those of one file.
pub fn same_file(a: &Path, b: &Path) -> bool {
    let place = |path: &Path| {
        let path = followed(path);
        path.canonicalize().ok().or_else(|| Some(parent(&path).canonicalize().ok()?.join(path.file_name()?)))
    };
    a == b || matches!((place(a), place(b)), (Some(a), Some(b)) if a == b)
}

fn is_empty(path: &Path) -> bool {
    path.as_os_str().is_empty()
}

/// The folder that a file lies in.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !is_empty(parent)).unwrap_or(Path::new("."))
}

/// Where links lead to, though there may be nothing yet.
fn followed(path: &Path) -> PathBuf {
    let mut at = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&at) {
            Ok(next) => at = parent(&at).join(next),
            Err(_) => break,
        }
    }
    at
}

/// Where a file of this name will be.
fn destination(named: &Path) -> Result<PathBuf> {
    let target = followed(named);
    if target.is_dir() {
        return Err(Error::input(named.display(), "is a folder", "give the name of a file"));
    }
    if target.exists() && !target.is_file() {
        // Renaming over it would replace the pipe or device itself, /dev/null too.
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

/// A file beside the target, as readable as the user's files are.
fn temporary(target: &Path) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(PREFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // What the user's mask leaves of it.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(parent(target))
}

/// A second name for the file at `target`, if there is one and the file system has such names.
fn backup(target: &Path) -> Option<TempPath> {
    let link = |path: &Path| fs::hard_link(target, path);
    Builder::new().prefix(PREFIX).make_in(parent(target), link).ok().map(NamedTempFile::into_temp_path)
}

/// Whether files can be made in a folder; `named` is what the user called it.
fn probe(folder: &Path, named: &Path) -> Result<()> {
    Builder::new().prefix(PREFIX).tempfile_in(folder).map(drop).map_err(|e| unwritable(named, &e))
}

/// The system's error without the name of the temporary file.
fn unwritable(named: &Path, error: &io::Error) -> Error {
    let raw =
        error.raw_os_error().map_or_else(|| io::Error::from(error.kind()), io::Error::from_raw_os_error);
    Error::io(named, raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names in a folder.
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
        assert!(same_file(&at("link"), &at("far/file")) && !same_file(&at("far/file"), &at("far/other")));
        assert!(same_file(&at("far/../new"), &at("new")));
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
