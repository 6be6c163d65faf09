//! Resolves the inputs that a user names to the files to read.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::SkippedRecord;
use drift_core::error::one_line;
use drift_core::io::file_name;
use drift_core::{Error, Result};

/// A file to read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InputFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The folder that the user named, if the user did not name the file itself.
    pub folder: Option<Arc<Path>>,
    /// The size in bytes; 0 for a pipe.
    pub bytes: u64,
    /// Whether it is a regular file, which can be reopened and read at any position, unlike a pipe.
    pub regular: bool,
}

impl InputFile {
    /// Returns the file's name in messages.
    pub(super) fn place(&self) -> String {
        one_line(&self.path.to_string_lossy())
    }

    /// Returns the file's name in provenance: relative to the named folder, so that the location of the folder does not matter.
    pub(super) fn name(&self) -> String {
        let relative = self.folder.as_ref().and_then(|folder| self.path.strip_prefix(folder).ok());
        relative.map_or_else(|| file_name(&self.path), |path| path.to_string_lossy().into_owned())
    }
}

/// Returns the files of `inputs`. Folders are walked in sorted order; hidden files are left out, and links to folders are not followed.
///
/// Entries of folders that cannot be read as files are added to `skipped`.
///
/// # Errors
/// If an input does not exist, or a folder cannot be listed or contains no file.
pub(super) fn files(inputs: &[PathBuf], skipped: &mut Vec<SkippedRecord>) -> Result<Vec<InputFile>> {
    let mut files = Vec::new();
    for input in inputs {
        let metadata = match fs::metadata(input) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                let problem = "no such file or folder";
                return Err(Error::input(input.display(), problem, "check the path"));
            }
            other => other.map_err(|e| Error::io(input, e))?,
        };
        if metadata.is_dir() {
            let before = files.len();
            walk(input, &Arc::from(input.as_path()), &mut files, skipped)?;
            if files.len() == before {
                let problem = "the folder contains no file to read";
                return Err(Error::input(input.display(), problem, "hidden files are left out"));
            }
        } else {
            let (bytes, regular) = (metadata.len(), metadata.is_file());
            files.push(InputFile { path: input.clone(), folder: None, bytes, regular });
        }
    }
    Ok(files)
}

fn walk(
    at: &Path,
    top: &Arc<Path>,
    files: &mut Vec<InputFile>,
    skipped: &mut Vec<SkippedRecord>,
) -> Result<()> {
    let mut entries = fs::read_dir(at)
        .and_then(|entries| entries.collect::<std::io::Result<Vec<_>>>())
        .map_err(|e| Error::io(at, e))?;
    // The file system determines the order of a folder's entries, and results must not depend on it.
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let is_link = entry.file_type().map_err(|e| Error::io(&path, e))?.is_symlink();
        let reason = match fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => {
                let (folder, bytes) = (Some(top.clone()), metadata.len());
                files.push(InputFile { path, folder, bytes, regular: true });
                continue;
            }
            // A link to a folder could lead back to a parent folder.
            Ok(metadata) if metadata.is_dir() && !is_link => {
                walk(&path, top, files, skipped)?;
                continue;
            }
            Ok(metadata) if metadata.is_dir() => "a link to a folder, not followed".to_owned(),
            Ok(_) => "not a regular file".to_owned(),
            Err(error) => error.to_string(),
        };
        let file = one_line(&path.to_string_lossy());
        skipped.push(SkippedRecord { file, record: "file".to_owned(), reason });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_walked_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b", "a/2", "a/1", ".hidden", "a/.git/x", "c"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path(), folder.path().join("loop")).unwrap();
        let mut skipped = Vec::new();
        let files = files(&[folder.path().to_owned()], &mut skipped).unwrap();
        assert_eq!(files.iter().map(InputFile::name).collect::<Vec<_>>(), ["a/1", "a/2", "b", "c"]);
        assert_eq!(skipped.len(), usize::from(cfg!(unix)));
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = |path: PathBuf| files(&[path], &mut Vec::new()).unwrap_err().to_string();
        assert!(error(folder.path().join("x")).ends_with("x: no such file or folder; check the path"));
        assert!(error(folder.path().to_owned()).contains("contains no file"));
    }
}
