//! A model's safetensors: its embedding and its LM head, of which single rows are read and nothing else.
//!
//! Rows of a table are contiguous, so a row is one seek and one read: a model of many gigabytes costs no more than its header
//! and the rows that are wanted.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::checkpoint::{CONFIG, Float, Header, ModelFolder, WeightFiles, folder_around, is_tied};
use crate::error::{Error, Result};
use crate::io;

/// How the name of the input embedding ends, in the layouts of transformers.
const EMBEDDING: &str = "embed_tokens.weight";

/// How the name of the LM head ends.
const HEAD: &str = "lm_head.weight";

/// A matrix `[rows, hidden]` in a safetensors file: a row per id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenTable {
    /// Its name in the file.
    pub tensor: String,
    /// The file.
    pub file: PathBuf,
    /// The type of its numbers.
    pub float: Float,
    /// Rows.
    pub rows: u64,
    /// Numbers of a row.
    pub hidden: usize,
    /// Where its first row begins in the file, in bytes.
    pub offset: u64,
}

impl TokenTable {
    /// The file and the tensor, for messages.
    pub fn place(&self) -> String {
        format!("{}: {}", self.file.display(), self.tensor)
    }

    /// The same, if it has the shape of the embedding.
    fn beside(self, embedding: &TokenTable) -> Result<Self> {
        if (self.rows, self.hidden) == (embedding.rows, embedding.hidden) {
            return Ok(self);
        }
        let problem = format!(
            "is [{}, {}], but {} is [{}, {}]",
            self.rows, self.hidden, embedding.tensor, embedding.rows, embedding.hidden
        );
        Err(Error::input(self.place(), problem, "give a model whose two tables agree"))
    }

    /// Some of its rows, by id.
    ///
    /// # Errors
    /// If the file cannot be read, an id has no row, or a row holds something that is no number.
    pub fn read(&self, ids: impl IntoIterator<Item = u32>) -> Result<BTreeMap<u32, Vec<f32>>> {
        let mut file = File::open(&self.file).map_err(|e| Error::io(&self.file, e))?;
        let length = self.row_bytes();
        let mut bytes = vec![0; length];
        let mut rows = BTreeMap::new();
        for id in ids {
            if u64::from(id) >= self.rows {
                return Err(Error::input(self.place(), format!("has no row {id}"), REMEDY));
            }
            let start = self.offset + u64::from(id) * length as u64;
            let read = file.seek(SeekFrom::Start(start)).and_then(|_| file.read_exact(&mut bytes));
            read.map_err(|e| Error::io(&self.file, e))?;
            let row = self.float.read(&bytes);
            if let Some(at) = row.iter().position(|value| !value.is_finite()) {
                let problem = format!("row {id} holds {} at column {at}", row[at]);
                return Err(Error::input(
                    self.place(),
                    problem,
                    "the checkpoint is damaged; give a sound one",
                ));
            }
            rows.insert(id, row);
        }
        Ok(rows)
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> usize {
        self.hidden * self.float.bytes()
    }

    /// The mean of its first rows, `[hidden]`.
    ///
    /// # Errors
    /// If the file cannot be read, or holds something that is no number.
    pub fn mean(&self, rows: u64) -> Result<Vec<f64>> {
        let mut file = File::open(&self.file).map_err(|e| Error::io(&self.file, e))?;
        file.seek(SeekFrom::Start(self.offset)).map_err(|e| Error::io(&self.file, e))?;
        let mut sums = vec![0.0; self.hidden];
        let mut bytes = vec![0; (READ_BYTES / self.row_bytes().max(1)).max(1) * self.row_bytes()];
        let mut left = rows.min(self.rows) as usize * self.row_bytes();
        while left > 0 {
            let some = left.min(bytes.len());
            let part = &mut bytes[..some];
            file.read_exact(part).map_err(|e| Error::io(&self.file, e))?;
            for row in self.float.read(part).chunks_exact(self.hidden) {
                sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value));
            }
            left -= some;
        }
        if sums.iter().any(|sum| !sum.is_finite()) {
            let problem = "holds something that is no number";
            return Err(Error::input(self.place(), problem, "the checkpoint is damaged; give a sound one"));
        }
        Ok(sums.into_iter().map(|sum| sum / rows.max(1) as f64).collect())
    }
}

/// How much of a table is read at once.
const READ_BYTES: usize = 1 << 20;

/// What to do where a model and a tokenizer do not belong together.
pub const REMEDY: &str = "give the model that the base tokenizer belongs to";

/// The tables of a model that have a row per token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Folder or file name, for reports.
    pub name: String,
    /// The input embedding.
    pub embedding: TokenTable,
    /// The LM head; none where it is the embedding ("tied").
    pub head: Option<TokenTable>,
}

impl Model {
    /// Finds the tables of a model: a folder, its index of shards, or one safetensors file.
    ///
    /// # Errors
    /// If there is none, a file is damaged, or a table is missing, not of floats, or of another width than the other.
    pub fn open(path: &Path) -> Result<Self> {
        let file = located(path)?;
        let config = config(&ModelFolder::around(path))?;
        let tensors = WeightFiles::of(&file, "give a sound model folder")?.tensors()?;
        let tied = config.as_ref().and_then(is_tied);
        let found = |ending: &str| only(&tensors, ending, &file);
        let (name, shard) = found(EMBEDDING)?.ok_or_else(|| missing(&file, EMBEDDING))?;
        let embedding = table(&shard, name)?;
        let head = match found(HEAD)? {
            Some((name, shard)) if tied != Some(true) => Some(table(&shard, name)?),
            None if tied == Some(false) => return Err(missing(&file, HEAD)),
            _ => None,
        };
        let head = head.map(|head| head.beside(&embedding)).transpose()?;
        Ok(Model { name: model_name(&file), embedding, head })
    }

    /// The LM head that the files of a model hold although it is the embedding, if they do.
    ///
    /// # Errors
    /// As [`Model::open`].
    pub fn redundant_head(&self, path: &Path) -> Result<Option<TokenTable>> {
        if self.head.is_some() {
            return Ok(None);
        }
        let file = located(path)?;
        let tensors = WeightFiles::of(&file, "give a sound model folder")?.tensors()?;
        let head = only(&tensors, HEAD, &file)?.map(|(name, shard)| table(&shard, name)).transpose()?;
        head.map(|head| head.beside(&self.embedding)).transpose()
    }
}

/// The file to begin with.
fn located(path: &Path) -> Result<PathBuf> {
    if path.is_dir() { ModelFolder::new(path).needed_weights() } else { Ok(path.to_owned()) }
}

/// The `config.json` of a model folder, if it has one.
///
/// # Errors
/// If it cannot be read.
pub fn config(folder: &ModelFolder) -> Result<Option<Value>> {
    folder.json(CONFIG, |e| (format!("is not JSON: {e}"), "give a sound model folder"))
}

/// `…/Qwen3-0.6B/model.safetensors` is `Qwen3-0.6B`; `mine.safetensors` is `mine`.
fn model_name(file: &Path) -> String {
    let name = io::file_name(file);
    let stem = name.trim_end_matches(".index.json").trim_end_matches(".safetensors");
    folder_around(file).filter(|_| stem == "model").unwrap_or_else(|| stem.to_owned())
}

/// The one tensor whose name ends so; none if there is none.
fn only<'t>(
    tensors: &'t BTreeMap<String, PathBuf>,
    ending: &str,
    file: &Path,
) -> Result<Option<(&'t str, PathBuf)>> {
    let is =
        |name: &str| name.strip_suffix(ending).is_some_and(|head| head.is_empty() || head.ends_with('.'));
    let mut found = tensors.iter().filter(|(name, _)| is(name));
    match (found.next(), found.next()) {
        (Some((first, _)), Some((second, _))) => {
            let problem = format!("has two tensors that end in {ending}, {first} and {second}");
            Err(Error::input(file.display(), problem, "give a model of one text decoder"))
        }
        (first, _) => Ok(first.map(|(name, file)| (name.as_str(), file.clone()))),
    }
}

fn missing(file: &Path, ending: &str) -> Error {
    let problem = format!("has no tensor whose name ends in {ending}");
    Error::input(file.display(), problem, "give the whole model, in the layout of transformers")
}

/// A tensor as a table.
fn table(file: &Path, name: &str) -> Result<TokenTable> {
    let place = format!("{}: {name}", file.display());
    let Header { data_start, tensors } = Header::read(file)?;
    let info = tensors.info(name).ok_or_else(|| {
        Error::input(&place, "is not in the file, though the index says so", "fetch the shard again")
    })?;
    let float = Float::of(info.dtype).ok_or_else(|| {
        let problem = format!("holds {:?}, not F32, F16 or BF16", info.dtype);
        Error::input(&place, problem, "give weights that are not quantised")
    })?;
    let &[rows, hidden] = info.shape.as_slice() else {
        let problem = format!("has shape {:?}, not [rows, hidden]", info.shape);
        return Err(Error::input(&place, problem, "give a model in the layout of transformers"));
    };
    Ok(TokenTable {
        tensor: name.to_owned(),
        file: file.to_owned(),
        float,
        rows: rows as u64,
        hidden,
        offset: data_start + info.data_offsets.0 as u64,
    })
}
