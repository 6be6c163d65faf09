//! How many records a file announces, counted without drift's readers: simple walks over bytes.
//!
//! Where a format leaves open how many there are, the count is the least that there must be, and the most.

use std::ops::RangeInclusive;

use drift::corpus::Format;

/// The records that a file of a format announces: the fewest and the most. None where this cannot tell.
pub(crate) fn records(format: Format, bytes: &[u8]) -> Option<RangeInclusive<u64>> {
    match format {
        Format::Jsonl | Format::Plain => {
            let count = lines(bytes);
            Some(count..=count)
        }
        Format::Sdf => Some(molecules(bytes)),
        Format::Xyz => Some(frames(bytes)),
        Format::Msgpack => msgpack_keys(bytes).map(|keys| keys..=u64::MAX),
        // A row may span lines, and a grouped row gives many conformers.
        Format::Table | Format::Pickle | Format::Hdf5 => None,
    }
}

/// Lines that are not blank.
pub(crate) fn lines(bytes: &[u8]) -> u64 {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    bytes.split(|&b| b == b'\n').filter(|line| !line.trim_ascii().is_empty()).count() as u64
}

/// Lines of a list of SMILES that are neither blank nor comments; a line may end in a carriage return alone.
pub(crate) fn smiles(text: &str) -> u64 {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.split(['\n', '\r']).map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).count() as u64
}

/// Molecules of V3000 that hold fewer lines of atoms than they announce: they must be skipped.
pub(crate) fn torn_molecules(bytes: &[u8]) -> u64 {
    let mut torn = 0;
    let (mut announced, mut lines, mut atoms, mut inside) = (None, 0, 0, false);
    for line in bytes.split(|&b| b == b'\n').map(<[u8]>::trim_ascii_end) {
        lines += 1;
        if line.starts_with(b"$$$$") {
            torn += u64::from(announced.is_some_and(|announced: u64| atoms < announced));
            (announced, lines, atoms, inside) = (None, 0, 0, false);
        } else if lines == 4 && line.ends_with(b"V3000") {
            announced = Some(0);
        } else if let (Some(0), Some(counts)) = (announced, line.strip_prefix(b"M  V30 COUNTS ")) {
            let first = counts.split(|&b| b == b' ').next().and_then(|count| std::str::from_utf8(count).ok());
            announced = first.and_then(|count| count.parse().ok());
        } else if let Some(mark @ ("BEGIN ATOM" | "END ATOM")) =
            line.strip_prefix(b"M  V30 ").and_then(|rest| std::str::from_utf8(rest).ok()).map(str::trim)
        {
            inside = mark == "BEGIN ATOM";
        } else {
            atoms += u64::from(inside);
        }
    }
    torn
}

/// Molecules of SDF: those that `$$$$` ends, and one that the end of the file ends. Blank lines at the end may be one.
fn molecules(bytes: &[u8]) -> RangeInclusive<u64> {
    let mut ended = 0;
    let mut open = 0;
    let mut has_content = false;
    for line in bytes.split(|&b| b == b'\n') {
        if line.starts_with(b"$$$$") {
            ended += 1;
            (open, has_content) = (0, false);
        } else {
            open += 1;
            has_content |= !line.trim_ascii().is_empty();
        }
    }
    let most = ended + u64::from(open > 1 || has_content);
    ended + u64::from(has_content)..=most
}

/// Frames of XYZ: every line of digits alone begins one, unless it is the comment of the frame before.
fn frames(bytes: &[u8]) -> RangeInclusive<u64> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut fewest = 0;
    let mut is_comment = false;
    let mut others = 0;
    for line in bytes.split(|&b| b == b'\n').map(<[u8]>::trim_ascii) {
        let is_count = (1..=10).contains(&line.len()) && line.iter().all(u8::is_ascii_digit);
        if std::mem::take(&mut is_comment) {
            continue;
        }
        if is_count {
            fewest += 1;
            let count: u64 = std::str::from_utf8(line).unwrap().parse().unwrap();
            // No comment is taken of a frame that is too large to be read.
            is_comment = count <= 1_000_000;
        } else if !line.is_empty() {
            others += 1;
        }
    }
    fewest..=fewest + others
}

/// Keys of the maps that a run of MessagePack begins with: of the first map, the others are not looked for.
fn msgpack_keys(bytes: &[u8]) -> Option<u64> {
    match bytes {
        [first @ 0x80..=0x8f, ..] => Some(u64::from(first & 0xf)),
        [0xde, a, b, ..] => Some(u64::from(u16::from_be_bytes([*a, *b]))),
        [0xdf, a, b, c, d, ..] => Some(u64::from(u32::from_be_bytes([*a, *b, *c, *d]))),
        _ => None,
    }
}

/// The regular members of an archive that are not hidden, by name, with their content. None where a header is of a kind that
/// this does not know, or anything is damaged.
pub(crate) fn members(bytes: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
    let mut members = Vec::new();
    let mut at = 0;
    while at + 512 <= bytes.len() {
        let header = &bytes[at..at + 512];
        at += 512;
        if header.iter().all(|&b| b == 0) {
            continue;
        }
        let sum: u64 = header
            .iter()
            .enumerate()
            .map(|(n, &b)| if (148..156).contains(&n) { 32 } else { u64::from(b) })
            .sum();
        if octal(&header[148..156])? != sum {
            return None;
        }
        let size = usize::try_from(octal(&header[124..136])?).ok()?;
        let content = bytes.get(at..at.checked_add(size)?)?;
        at += size.div_ceil(512) * 512;
        let prefix = if &header[257..263] == b"ustar\0" { name(&header[345..500]) } else { String::new() };
        let mut full = name(&header[..100]);
        if !prefix.is_empty() {
            full = format!("{prefix}/{full}");
        }
        let is_hidden = full.split('/').any(|part| part.starts_with('.') && part != "." && part != "..");
        match header[156] {
            b'0' | 0 | b'7' if full.ends_with('/') => return None,
            b'0' | 0 | b'7' if !is_hidden => members.push((full, content.to_vec())),
            b'0' | 0 | b'7' | b'5' => {}
            _ => return None,
        }
    }
    Some(members)
}

/// What stands before the first zero.
fn name(field: &[u8]) -> String {
    let end = field.iter().position(|&b| b == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

/// An octal number between spaces, ended by a zero or a space.
fn octal(field: &[u8]) -> Option<u64> {
    let text = name(field);
    let text = text.trim_matches(' ');
    if text.is_empty() { Some(0) } else { u64::from_str_radix(text, 8).ok() }
}
