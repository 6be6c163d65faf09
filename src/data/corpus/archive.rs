//! Tar archives: each regular member is read as a file, in the order of the archive.

use std::io::{BufRead, BufReader};

use flate2::bufread::MultiGzDecoder;

use super::damage::{damaged, read_error};
use super::tar::{Kind, Member as TarMember, Tar};
use super::{Context, Skipped};
use drift_core::error::{Result, one_line};
use drift_core::io::GZIP_MAGIC;

const BUFFER_BYTES: usize = 64 << 10;

/// A member of an archive.
pub(super) enum Member<'a> {
    /// A file: its name, `archive:member`, and its decompressed content.
    File(String, &'a mut dyn BufRead),
    /// A member that is not a file.
    Skipped(Skipped),
}

/// Reads the archive `name` and passes its files to `each`. Folders and hidden files are left out.
///
/// # Errors
/// If the archive is truncated or damaged, or its end mark is missing; also the errors of `each`.
pub(super) fn read(
    name: &str,
    reader: &mut dyn BufRead,
    context: Context<'_>,
    each: &mut dyn FnMut(Member<'_>) -> Result<()>,
) -> Result<()> {
    let mut archive = Tar::new(reader);
    while let Some(member) = archive.next().map_err(|e| read_error(name, e))? {
        context.job.check()?;
        let TarMember { name: member, kind } = member;
        if kind == Kind::Folder || is_hidden(&member) {
            continue;
        }
        let file = format!("{name}:{}", one_line(member.trim_start_matches("./")));
        let reason = match kind {
            Kind::File => None,
            Kind::Sparse => Some("a sparse member: write the archive without `--sparse`"),
            Kind::Folder | Kind::Other => Some("a link or device, not a regular file"),
        };
        if let Some(reason) = reason {
            let (record, reason) = ("member".to_owned(), reason.to_owned());
            each(Member::Skipped(Skipped { file, record, reason }))?;
            continue;
        }
        let mut content = archive.content();
        // Formats are detected by content, as for files outside of archives.
        if content.fill_buf().map_err(|e| read_error(&file, e))?.starts_with(&GZIP_MAGIC) {
            let mut content = BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(content));
            each(Member::File(file, &mut content))?;
        } else {
            each(Member::File(file, &mut content))?;
        }
    }
    // Without this check, an archive that was cut between two members would look complete.
    if !archive.has_end_mark() {
        return Err(damaged(name, "the archive has no end-of-archive mark"));
    }
    Ok(())
}

/// Whether a component of the member's path is hidden: `.git/x`, or the `._x` that macOS adds.
fn is_hidden(member: &str) -> bool {
    member.split('/').any(|part| part.starts_with('.') && part != "." && part != "..")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::ReadOptions;
    use drift_core::job::Job;

    fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = ::tar::Builder::new(Vec::new());
        for (name, content) in members {
            let mut header = ::tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            builder.append_data(&mut header, name, *content).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn members(bytes: &[u8]) -> Result<Vec<String>> {
        let job = Job::default();
        let mut seen = Vec::new();
        let context = Context { options: &ReadOptions::default(), job: &job };
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
        for length in (0..data + 512).step_by(64) {
            assert!(members(&bytes[..length]).is_err(), "cut to {length} of {}", bytes.len());
        }
        assert!(members(&bytes).is_ok());
    }
}
