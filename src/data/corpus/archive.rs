//! Tar and zip archives: each regular member is read as a file, in the order of the archive.

use std::fs::File;
use std::io::{BufRead, BufReader};

use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use super::damage::{damaged, read_error};
use super::tar::{Kind, Member as TarMember, Tar};
use super::{Context, SkippedRecord};
use drift_core::error::one_line;
use drift_core::io::{decompressed, drain};
use drift_core::{Error, Result};

const BUFFER_BYTES: usize = 64 << 10;

/// A member of an archive.
pub(super) enum Member<'a> {
    /// A file: its name, `archive:member`, and its decompressed content.
    File(String, &'a mut dyn BufRead),
    /// A member that is not a file.
    Skipped(SkippedRecord),
}

/// Reads the tar archive `name` and passes its files to `each`. Folders and hidden files are left out.
///
/// # Errors
/// If the archive is truncated or damaged, or its end mark is missing; also the errors of `each`.
pub(super) fn read_tar(
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
            each(Member::Skipped(SkippedRecord { file, record, reason }))?;
            continue;
        }
        // Formats are detected by content, as for files outside of archives.
        let mut content = decompressed(archive.content()).map_err(|e| read_error(&file, e))?;
        each(Member::File(file, &mut content))?;
    }
    // Without this check, an archive that was cut between two members would look complete.
    if !archive.has_end_mark() {
        return Err(damaged(name, "the archive has no end-of-archive mark"));
    }
    Ok(())
}

/// Reads the zip archive `name`, which lies in `archive`, and passes its files to `each`. Folders and hidden files are left out.
///
/// # Errors
/// If the archive is truncated or damaged, or two members have one name; also the errors of `each`.
pub(super) fn read_zip(
    name: &str,
    archive: File,
    context: Context<'_>,
    each: &mut dyn FnMut(Member<'_>) -> Result<()>,
) -> Result<()> {
    let mut archive =
        ZipArchive::new(BufReader::with_capacity(BUFFER_BYTES, archive)).map_err(|e| zip_error(name, e))?;
    if archive.has_duplicate_names() {
        // The list of members keeps only the last of them, so the others would be lost in silence.
        let problem = "two members of the archive have the same name";
        return Err(Error::input(name, problem, "unpack it, and give its folder"));
    }
    for index in 0..archive.len() {
        context.job.check()?;
        let of_list = archive.by_index_data(index).map_err(|e| zip_error(name, e))?;
        let member = of_list.name().map_err(|e| zip_error(name, e))?.into_owned();
        if of_list.is_dir() || is_hidden(&member) {
            continue;
        }
        let file = format!("{name}:{}", one_line(member.trim_start_matches("./")));
        let reason = if of_list.encrypted() {
            Some("encrypted")
        } else if of_list.is_symlink() {
            Some("a link, not a regular file")
        } else {
            None
        };
        let skipped = |reason: &str| {
            let (file, record, reason) = (file.clone(), "member".to_owned(), reason.to_owned());
            Member::Skipped(SkippedRecord { file, record, reason })
        };
        if let Some(reason) = reason {
            each(skipped(reason))?;
            continue;
        }
        let content = match archive.by_index(index) {
            // Members in other methods are opened too, and fail when they are read.
            Ok(content) if is_readable(content.compression()) => content,
            Ok(_) | Err(ZipError::CompressionMethodNotSupported(_) | ZipError::UnsupportedArchive(_)) => {
                each(skipped("compressed in another way than by deflate: unpack the archive first"))?;
                continue;
            }
            Err(error) => return Err(zip_error(&file, error)),
        };
        let content = BufReader::with_capacity(BUFFER_BYTES, content);
        let mut content = decompressed(content).map_err(|e| read_error(&file, e))?;
        each(Member::File(file.clone(), &mut content))?;
        // The checksum of a member is compared at its end.
        drain(&mut content).map_err(|e| read_error(&file, e))?;
    }
    Ok(())
}

/// Returns whether members of a zip archive in this method are read.
fn is_readable(method: CompressionMethod) -> bool {
    matches!(method, CompressionMethod::Stored | CompressionMethod::Deflated)
}

/// Returns the error for a zip archive that cannot be read.
fn zip_error(name: &str, error: ZipError) -> Error {
    match error {
        ZipError::Io(error) => read_error(name, error),
        error => damaged(name, error),
    }
}

/// Returns whether a component of the member's path is hidden: `.git/x`, or the `._x` that macOS adds.
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
        read_tar("a.tar", &mut &bytes[..], context, &mut |member| {
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
