//! The header of a safetensors file: which tensors it holds, and where.
//!
//! The file begins with the length of its header (8 bytes, little-endian) and the header itself: a JSON object of names, types,
//! shapes and offsets. So a reader knows the contents of a file of many gigabytes after its first few kilobytes.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use serde_json::{Map, Value, json};

use super::folder::check_plain;
use crate::error::{Error, Result};

/// The longest header that the format allows.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// The header of one file.
#[derive(Debug, Clone)]
pub struct Header {
    /// Where the numbers begin, in bytes.
    pub data_start: u64,
    /// The tensors; their offsets count from [`Header::data_start`].
    pub tensors: Metadata,
}

impl Header {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// If the file cannot be read, is not safetensors, or is shorter or longer than its header says.
    pub fn read(path: &Path) -> Result<Self> {
        let refuse = |problem: String| Error::input(path.display(), problem, "fetch the file again");
        check_plain(path)?;
        let mut file = File::open(path).map_err(|e| Error::io(path, e))?;
        let total = file.metadata().map_err(|e| Error::io(path, e))?.len();
        let mut length = [0; 8];
        file.read_exact(&mut length)
            .map_err(|_| refuse("truncated or not safetensors: it has no header".into()))?;
        let length = u64::from_le_bytes(length);
        // The length is checked before anything of that length is read.
        if length > MAX_HEADER_BYTES.min(total.saturating_sub(8)) {
            return Err(refuse(format!(
                "truncated or not safetensors: a header of {length} bytes does not fit in it"
            )));
        }
        let mut bytes = Vec::new();
        file.take(length).read_to_end(&mut bytes).map_err(|e| Error::io(path, e))?;
        let tensors: Metadata = serde_json::from_slice(&bytes)
            .map_err(|e| refuse(format!("truncated or not safetensors: its header is damaged: {e}")))?;
        let header = Header { data_start: 8 + length, tensors };
        let expected = header.file_bytes();
        // A truncated download, or one with other data appended, has the wrong length.
        if total != expected {
            return Err(refuse(format!(
                "truncated or not safetensors: it has {total} bytes, but its header speaks of {expected}"
            )));
        }
        Ok(header)
    }

    /// Returns the length that the whole file must have, in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.data_start + self.tensors.data_len() as u64
    }

    /// Returns the tensors in the order in which they lie in the file.
    pub fn in_order(&self) -> impl Iterator<Item = (String, &TensorInfo)> {
        let names = self.tensors.offset_keys().into_iter();
        names.filter_map(|name| self.tensors.info(&name).map(|info| (name, info)))
    }
}

/// A tensor of a file to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorEntry {
    /// Its name.
    pub name: String,
    /// The type of its numbers.
    pub dtype: Dtype,
    /// Its shape.
    pub shape: Vec<usize>,
    /// The size of its numbers, in bytes.
    pub bytes: u64,
}

/// Returns the bytes before the numbers of a file with these tensors, which follow each other in this order: the length of the header,
/// then the header. The header is padded with spaces to a multiple of eight bytes, so that numbers are aligned if wider types come first.
/// `metadata` is written sorted by name, so that the bytes are reproducible. The result takes `room` bytes if it needs fewer.
///
/// # Errors
/// If the header is longer than the format allows.
pub fn header_bytes(
    metadata: Option<&HashMap<String, String>>,
    tensors: &[TensorEntry],
    room: usize,
) -> std::result::Result<Vec<u8>, String> {
    let mut header = Map::new();
    if let Some(metadata) = metadata {
        header.insert("__metadata__".into(), json!(metadata.iter().collect::<BTreeMap<_, _>>()));
    }
    let mut end = 0;
    for tensor in tensors {
        let start = end;
        end += tensor.bytes;
        let entry = json!({"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [start, end]});
        header.insert(tensor.name.clone(), entry);
    }
    let mut header = Value::Object(header).to_string().into_bytes();
    header.resize(header.len().max(room.saturating_sub(8)).next_multiple_of(8), b' ');
    let length = header.len() as u64;
    if length > MAX_HEADER_BYTES {
        return Err(format!("a header of {length} bytes is longer than the format allows"));
    }
    Ok([&length.to_le_bytes()[..], &header].concat())
}

#[cfg(test)]
mod tests {
    use safetensors::SafeTensors;

    use super::*;

    #[test]
    fn written_headers_are_read_by_the_crate() {
        let entry = |name: &str, dtype, shape: &[usize], bytes| TensorEntry {
            name: name.into(),
            dtype,
            shape: shape.to_vec(),
            bytes,
        };
        let tensors = [entry("b", Dtype::F32, &[2, 1], 8), entry("a", Dtype::BF16, &[3], 6)];
        let metadata = HashMap::from([("z".into(), "1".into()), ("format".into(), "pt".into())]);
        let mut bytes = header_bytes(Some(&metadata), &tensors, 0).unwrap();
        assert_eq!(bytes.len() % 8, 0);
        assert_eq!(header_bytes(None, &tensors, 1_000).unwrap().len(), 1_000);
        assert!(String::from_utf8_lossy(&bytes).contains(r#"{"__metadata__":{"format":"pt","z":"1"},"b":"#));
        bytes.extend(0..14);
        let read = SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!(read.tensor("a").unwrap().data(), [8, 9, 10, 11, 12, 13]);
        assert_eq!(read.tensor("b").unwrap().shape(), [2, 1]);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        let header = Header::read(file.path()).unwrap();
        let order: Vec<String> = header.in_order().map(|(name, _)| name).collect();
        assert_eq!(
            (order, header.tensors.metadata()),
            (vec!["b".to_owned(), "a".to_owned()], &Some(metadata))
        );
    }
}
