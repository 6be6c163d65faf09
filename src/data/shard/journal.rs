//! An append-only file of finished work: one line per piece, with a checksum.
//!
//! A line consists of eight hexadecimal digits (the CRC-32 of the JSON), a space, and a JSON value. If a process dies while
//! writing, the last line has no end or a wrong checksum; it is then cut off, and its work is repeated. A process holds a lock on
//! the journal that it writes.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use drift_core::{Error, Result};

/// An append-only file of finished work, open for writing.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens or creates the file, and returns the pieces in it.
    ///
    /// # Errors
    /// If another process is writing it, a line before the last is damaged, or the system refuses.
    pub fn open<T: DeserializeOwned>(path: &Path) -> Result<(Self, Vec<T>)> {
        let io = |e| Error::io(path, e);
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(io)?;
        lock(path, &file)?;
        refuse_foreign(path, &file)?;
        let (pieces, whole) = read(path, &file)?;
        // An incomplete last line is removed, so that the next piece begins on its own line.
        file.set_len(whole).and_then(|()| file.seek(SeekFrom::End(0))).map_err(io)?;
        Ok((Journal { path: path.to_owned(), file }, pieces))
    }

    /// Appends pieces. The pieces written so far survive the death of the process.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn add<T: Serialize>(&mut self, pieces: &[T]) -> Result<()> {
        let mut lines = Vec::new();
        for piece in pieces {
            let json = serde_json::to_vec(piece).map_err(|e| Error::internal("a line of a journal", e))?;
            lines.extend(format!("{:08x} ", crc32fast::hash(&json)).into_bytes());
            lines.extend(json);
            lines.push(b'\n');
        }
        self.file.write_all(&lines).map_err(|e| Error::io(&self.path, e))
    }

    /// Waits until everything is on disk.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|e| Error::io(&self.path, e))
    }
}

/// The number of bytes before the JSON of a line: the checksum and a space.
const SUM_BYTES: u64 = 9;

/// How long to wait for a process that is just ending.
const PATIENCE: Duration = Duration::from_secs(1);

/// Locks a file for this process.
fn lock(path: &Path, file: &File) -> Result<()> {
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            // A process that was just killed may still hold its lock.
            Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => {
                std::thread::sleep(PATIENCE / 50);
            }
            Err(TryLockError::WouldBlock) => {
                let problem = "is being written by another process";
                return Err(Error::input(path.display(), problem, "wait for it, or give another folder"));
            }
            Err(TryLockError::Error(error)) => return Err(Error::io(path, error)),
        }
    }
}

/// Returns the pieces in a file, up to the last complete line.
///
/// # Errors
/// If the file cannot be read, or a line before the last is damaged.
pub fn pieces<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    Ok(read(path, &file)?.0)
}

/// Returns the first piece of a file, if its line is complete.
///
/// # Errors
/// If the file cannot be read.
pub fn first<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let mut line = Vec::new();
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    BufReader::new(file).read_until(b'\n', &mut line).map_err(|e| Error::io(path, e))?;
    Ok(piece(&line).ok())
}

/// Returns whether another process is writing the file.
///
/// # Errors
/// If the file cannot be opened.
pub(crate) fn is_being_written(path: &Path) -> Result<bool> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    Ok(matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Returns the pieces in complete lines, and the number of bytes of these lines.
fn read<T: DeserializeOwned>(path: &Path, file: &File) -> Result<(Vec<T>, u64)> {
    let mut lines = BufReader::new(file);
    let (mut pieces, mut whole) = (Vec::new(), 0);
    let mut line = Vec::new();
    let mut damaged: Option<(usize, String)> = None;
    for number in 1.. {
        line.clear();
        if lines.read_until(b'\n', &mut line).map_err(|e| Error::io(path, e))? == 0 {
            break;
        }
        if let Some((number, why)) = damaged {
            let remedy = "delete the file and run its command again";
            return Err(Error::input(path.display(), format!("line {number} is damaged: {why}"), remedy));
        }
        match piece(&line) {
            Ok(piece) => {
                pieces.push(piece);
                whole += line.len() as u64;
            }
            // In the last line, damage is expected after a crash.
            Err(why) => damaged = Some((number, why)),
        }
    }
    Ok((pieces, whole))
}

/// Refuses a file that does not begin as a journal does, since opening it as one might cut it.
fn refuse_foreign(path: &Path, mut file: &File) -> Result<()> {
    let mut begun = Vec::new();
    let read = file.take(SUM_BYTES).read_to_end(&mut begun).and_then(|_| file.rewind());
    read.map_err(|e| Error::io(path, e))?;
    let is_sum = |(at, byte): (usize, &u8)| if at < 8 { byte.is_ascii_hexdigit() } else { *byte == b' ' };
    if begun.iter().enumerate().all(is_sum) {
        return Ok(());
    }
    let problem = "was not written by this command before, and would be overwritten";
    Err(Error::input(path.display(), problem, "give another name"))
}

fn piece<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    let line = line.strip_suffix(b"\n").ok_or("it has no end")?;
    let (sum, json) = line.split_at_checked(9).ok_or("it is too short")?;
    let sum =
        std::str::from_utf8(sum).ok().and_then(|sum| u32::from_str_radix(sum.strip_suffix(' ')?, 16).ok());
    if sum != Some(crc32fast::hash(json)) {
        return Err("its checksum is wrong".to_owned());
    }
    serde_json::from_slice(json).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_cut_is_forgotten_and_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let open = || Journal::open::<Vec<u32>>(&path);
        let all = [vec![1, 2], vec![], vec![3], vec![40, 50, 60]];
        {
            let (mut journal, before) = open().unwrap();
            assert!(before.is_empty());
            journal.add(&all).unwrap();
            let error = open().unwrap_err().to_string();
            assert!(error.contains("being written by another process"), "{error}");
        }
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let (mut journal, kept) = open().unwrap();
            let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(kept, all[..lines], "{cut}");
            journal.add(&all[lines..]).unwrap();
            journal.sync().unwrap();
            drop(journal);
            assert_eq!(std::fs::read(&path).unwrap(), whole);
            assert_eq!(pieces::<Vec<u32>>(&path).unwrap(), all);
        }
    }

    /// A file of one line would otherwise be taken for a journal whose first line was cut.
    #[test]
    fn files_of_others_are_not_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes");
        for text in ["one line", "{\"smiles\": \"CCO\"}\n", "\n", "0123", "01234567x"] {
            std::fs::write(&path, text).unwrap();
            let opened = Journal::open::<u32>(&path).map(|_| ()).map_err(|error| error.to_string());
            let is_cut_sum = text == "0123";
            assert_eq!(opened.is_ok(), is_cut_sum, "{text}: {opened:?}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), if is_cut_sum { "" } else { text });
        }
    }

    #[test]
    fn damage_before_the_end_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        Journal::open::<u32>(&path).unwrap().0.add(&[1, 22, 333]).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let mut damaged = whole.clone();
        damaged[20] ^= 1;
        std::fs::write(&path, &damaged).unwrap();
        let error = pieces::<u32>(&path).unwrap_err().to_string();
        assert!(error.contains("line 2 is damaged: its checksum is wrong"), "{error}");
        // Nothing was thrown away.
        assert!(Journal::open::<u32>(&path).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), damaged);
    }
}
