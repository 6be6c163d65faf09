//! Outputs that are whole or absent.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// An output that appears under its name only when whole: written beside it, then renamed.
pub struct AtomicFile {
    target: PathBuf,
    file: tempfile::NamedTempFile,
}

impl AtomicFile {
    /// Starts an output; the folder must exist.
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub fn create(target: &Path) -> Result<Self> {
        let folder = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if target.is_dir() {
            return Err(Error::input(target.display(), "is a folder", "give the name of a file"));
        }
        if target.exists() && !target.is_file() {
            // Renaming over it would replace the pipe or device itself, /dev/null too.
            let problem = "is a pipe or device, not a file";
            return Err(Error::input(target.display(), problem, "give the name of a file"));
        }
        if !folder.is_dir() {
            let problem = format!("there is no folder {}", folder.display());
            return Err(Error::input(target.display(), problem, "make it first"));
        }
        let file = tempfile::Builder::new()
            .prefix(".drift-")
            .tempfile_in(folder)
            // The kind alone: the whole error names the temporary file.
            .map_err(|e| Error::input(target.display(), format!("cannot be written: {}", e.kind()), ""))?;
        Ok(AtomicFile { target: target.to_owned(), file })
    }

    /// The path of the unfinished file, for writers that want a path.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Adds `bytes`.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| Error::io(&self.target, e))
    }

    /// Renames the finished file to its name, replacing what was there.
    ///
    /// # Errors
    /// If the system refuses; the old file is then untouched.
    pub fn commit(self) -> Result<()> {
        let mode = self.file.as_file().metadata().ok();
        #[cfg(unix)]
        if mode.is_some() {
            // A temporary file is private; a result is as readable as any file the user makes.
            use std::os::unix::fs::PermissionsExt;
            let permissions = std::fs::Permissions::from_mode(0o644);
            self.file.as_file().set_permissions(permissions).map_err(|e| Error::io(&self.target, e))?;
        }
        self.file.persist(&self.target).map_err(|e| Error::io(&self.target, e.error))?;
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

/// Writes `bytes` to `target`, whole or not at all.
///
/// # Errors
/// If the folder cannot be written to.
pub fn write_atomic(target: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = AtomicFile::create(target)?;
    file.put(bytes)?;
    file.commit()
}

/// Writes several files; all of them or, if one cannot be written, none.
///
/// # Errors
/// As [`write_atomic`].
pub fn write_all_atomic(files: &[(PathBuf, String)]) -> Result<()> {
    let write = |(path, text): &(PathBuf, String)| {
        let mut file = AtomicFile::create(path)?;
        file.put(text.as_bytes()).map(|()| file)
    };
    let written = files.iter().map(write).collect::<Result<Vec<_>>>()?;
    written.into_iter().try_for_each(AtomicFile::commit)
}
