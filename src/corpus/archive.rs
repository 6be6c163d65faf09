//! Tar archives: each regular member is a file, in the order of the archive.

use std::io::{BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use super::damage::{damaged, read_error};
use super::{Context, Skipped};
use crate::error::{Result, one_line};
use crate::io::{GZIP_MAGIC, drain};

const BUFFER_BYTES: usize = 64 << 10;
const BLOCK_BYTES: u64 = 512;

/// What an archive hands on.
pub(super) enum Member<'a> {
    /// A file: its name, `archive:member`, and its content, decompressed.
    File(String, &'a mut dyn BufRead),
    /// Something that is no file.
    Skipped(Skipped),
}

/// Reads the archive `name` and hands its files to `each`; folders and hidden files are left out.
///
/// # Errors
/// If the archive is truncated or damaged, its end mark included; and what `each` returns.
pub(super) fn read(
    name: &str,
    reader: &mut dyn BufRead,
    context: Context<'_>,
    each: &mut dyn FnMut(Member<'_>) -> Result<()>,
) -> Result<()> {
    let mut archive = tar::Archive::new(EndMark { reader, zeros: 0 });
    // Archives may be concatenated: go on after an end mark.
    archive.set_ignore_zeros(true);
    for entry in archive.entries().map_err(|e| read_error(name, e))? {
        context.job.check()?;
        let entry = entry.map_err(|e| read_error(name, e))?;
        let member = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let kind = entry.header().entry_type();
        if kind.is_dir() || is_hidden(&member) {
            continue;
        }
        let file = format!("{name}:{}", one_line(member.trim_start_matches("./")));
        if !(kind.is_file() || kind.is_contiguous() || kind.is_gnu_sparse()) {
            let reason = "a link or device, not a file".to_owned();
            each(Member::Skipped(Skipped { file, record: "member".to_owned(), reason }))?;
            continue;
        }
        let mut content = BufReader::with_capacity(BUFFER_BYTES, entry);
        if content.fill_buf().map_err(|e| read_error(&file, e))?.starts_with(&GZIP_MAGIC) {
            let mut content = BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(content));
            each(Member::File(file, &mut content))?;
        } else {
            each(Member::File(file, &mut content))?;
        }
    }
    let mut end = archive.into_inner();
    drain(&mut BufReader::new(&mut end)).map_err(|e| read_error(name, e))?;
    if end.zeros < BLOCK_BYTES {
        return Err(damaged(name, "the archive has no end mark"));
    }
    Ok(())
}

/// Whether a component of the member's path is hidden: `.git/x`, and the `._x` that macOS adds.
fn is_hidden(member: &str) -> bool {
    member.split('/').any(|part| part.starts_with('.') && part != "." && part != "..")
}

/// Counts the zeros that a stream ends in: an archive ends in blocks of zeros, so one cut between two members does
/// not go unseen.
struct EndMark<'a> {
    reader: &'a mut dyn BufRead,
    zeros: u64,
}

impl Read for EndMark<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let n = self.reader.read(out)?;
        let zeros = out[..n].iter().rev().take_while(|&&b| b == 0).count();
        self.zeros = if zeros == n { self.zeros + n as u64 } else { zeros as u64 };
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::ReadOptions;
    use crate::job::Job;

    fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, content) in members {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            builder.append_data(&mut header, name, *content).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn members(bytes: &[u8]) -> Result<Vec<String>> {
        let job = Job::default();
        let mut seen = Vec::new();
        let context = Context { options: ReadOptions::default(), job: &job };
        read("a.tar", &mut &bytes[..], context, &mut |member| {
            if let Member::File(name, content) = member {
                let mut text = String::new();
                content.read_to_string(&mut text).map_err(|e| read_error(&name, e))?;
                seen.push(format!("{name}={text}"));
            }
            Ok(())
        })?;
        Ok(seen)
    }

    #[test]
    fn members_come_in_order_and_hidden_ones_not() {
        let mut bytes = archive(&[("b/x", b"1"), ("a", b"2"), ("b/._x", b"3"), (".git/y", b"4")]);
        assert_eq!(members(&bytes).unwrap(), ["a.tar:b/x=1", "a.tar:a=2"]);
        bytes.extend(archive(&[("c", b"5")]));
        assert_eq!(members(&bytes).unwrap(), ["a.tar:b/x=1", "a.tar:a=2", "a.tar:c=5"]);
    }

    #[test]
    fn every_truncation_is_found() {
        let bytes = archive(&[("a", &[b'x'; 700]), ("b", b"y")]);
        let data = bytes.len() - 1024;
        for length in (0..data + BLOCK_BYTES as usize).step_by(64) {
            assert!(members(&bytes[..length]).is_err(), "cut to {length} of {}", bytes.len());
        }
        assert!(members(&bytes).is_ok());
    }
}
