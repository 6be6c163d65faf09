//! Where an HDF5 file says that it ends. libhdf5 refuses a file that is shorter; rust-hdf5 reads on as long as what it
//! needs is there, so that a file cut in a dataset nobody asks for would pass.
//!
//! Source: HDF5 File Format Specification 3.0, section II.A (superblock versions 0 to 3).

use std::io::{self, Read, Seek, SeekFrom};

const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

/// The size in bytes that the file should have, if it has a superblock that is understood.
pub(super) fn declared_len(file: &mut (impl Read + Seek)) -> io::Result<Option<u64>> {
    let len = file.seek(SeekFrom::End(0))?;
    // The superblock lies at 0, 512, 1024, 2048 and so on; what is before it is the user's.
    let starts =
        std::iter::once(0).chain((9..63).map(|power| 1u64 << power)).take_while(|&start| start < len);
    for start in starts {
        file.seek(SeekFrom::Start(start))?;
        let mut block = Vec::new();
        file.by_ref().take(96).read_to_end(&mut block)?;
        if block.starts_with(SIGNATURE) {
            return Ok(end_address(&block).and_then(|end| end.checked_add(start)));
        }
    }
    Ok(None)
}

/// The end-of-file address of a superblock.
fn end_address(block: &[u8]) -> Option<u64> {
    // Three addresses: base, free space or extension, end of file.
    let (bytes, first) = match block.get(8)? {
        0 => (*block.get(13)?, 24),
        1 => (*block.get(13)?, 28),
        2 | 3 => (*block.get(9)?, 12),
        _ => return None,
    };
    let bytes = usize::from(bytes);
    if !(1..=8).contains(&bytes) {
        return None;
    }
    let address = block.get(first + 2 * bytes..first + 3 * bytes)?;
    Some(address.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_found_in_every_version() {
        for (version, sizes_at, end_at) in [(0u8, 13, 40), (1, 13, 44), (2, 9, 28), (3, 9, 28)] {
            for start in [0, 512, 2048] {
                let mut file = vec![0; start + 96];
                file[start..start + 8].copy_from_slice(SIGNATURE);
                file[start + 8] = version;
                file[start + sizes_at] = 8;
                file[start + end_at..start + end_at + 8].copy_from_slice(&1234u64.to_le_bytes());
                let declared = declared_len(&mut io::Cursor::new(file)).unwrap();
                assert_eq!(declared, Some(1234 + start as u64), "version {version} at {start}");
            }
        }
        assert_eq!(declared_len(&mut io::Cursor::new(b"\x89HDF\r\n\x1a\n\0")).unwrap(), None);
        assert_eq!(declared_len(&mut io::Cursor::new(b"")).unwrap(), None);
    }
}
