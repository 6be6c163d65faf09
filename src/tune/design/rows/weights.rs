//! Reads single rows of the embedding and the LM head from a model's safetensors.
//!
//! The rows of a table are contiguous, so reading a row takes one seek and one read. For a model of many gigabytes, only its header
//! and the requested rows are read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::Value;

use drift_core::checkpoint::{CONFIG, Float, Header, ModelFolder, WeightFiles, folder_around, is_tied};
use drift_core::io;
use drift_core::{Error, Result};

/// The ends of the name of the input embedding in the layouts of transformers: Llama, Qwen, Gemma, Phi and others; GPT-NeoX; Falcon
/// and BLOOM; GPT-2, GPT-J and MPT; InternLM 2.
const EMBEDDINGS: [&str; 5] = [
    "embed_tokens.weight",
    "embed_in.weight",
    "word_embeddings.weight",
    "wte.weight",
    "tok_embeddings.weight",
];

/// The ends of the name of the LM head: most models; GPT-NeoX; InternLM 2.
const HEADS: [&str; 3] = ["lm_head.weight", "embed_out.weight", "output.weight"];

/// The ends of the name of the bias added to the logits: Phi, GPT-J.
const BIASES: [&str; 2] = ["lm_head.bias", "embed_out.bias"];

/// The number of rows of a head that are compared with the embedding's rows, if no setting states whether the head is tied.
const COMPARED: u64 = 64;

/// A table with one row per id: a matrix `[rows, hidden]` or a vector `[rows]` in a safetensors file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenTable {
    /// The name of the tensor in the file.
    pub tensor: String,
    /// The file.
    pub file: PathBuf,
    /// The number type.
    pub float: Float,
    /// The number of rows.
    pub rows: u64,
    /// The number of values in a row.
    pub hidden: usize,
    /// Whether it is a vector, with one number for each id.
    pub is_vector: bool,
    /// The offset of its first row in the file, in bytes.
    pub offset: u64,
}

impl TokenTable {
    /// Returns the file and the tensor, for messages.
    pub fn place(&self) -> String {
        format!("{}: {}", self.file.display(), self.tensor)
    }

    /// Returns the table's shape if it had this many rows.
    pub fn shape(&self, rows: usize) -> Vec<usize> {
        if self.is_vector { vec![rows] } else { vec![rows, self.hidden] }
    }

    /// Returns this table if it fits the embedding: a matrix must have the same shape, a vector one number per row of the
    /// embedding.
    fn beside(self, embedding: &TokenTable) -> Result<Self> {
        if self.rows == embedding.rows && (self.is_vector || self.hidden == embedding.hidden) {
            return Ok(self);
        }
        let problem = format!(
            "is {:?}, but {} is {:?}",
            self.shape(self.rows as usize),
            embedding.tensor,
            embedding.shape(embedding.rows as usize)
        );
        Err(Error::input(self.place(), problem, "give a model whose two tables agree"))
    }

    /// Reads the rows with the given ids.
    ///
    /// # Errors
    /// If the file cannot be read, an id has no row, or a row contains a value that is not finite.
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
                let problem = format!("row {id} contains {} at column {at}", row[at]);
                return Err(Error::input(self.place(), problem, DAMAGED));
            }
            rows.insert(id, row);
        }
        Ok(rows)
    }

    /// Returns the size of a row in bytes.
    pub(crate) fn row_bytes(&self) -> usize {
        self.hidden * self.float.bytes()
    }

    /// Returns the mean of the first `rows` rows, `[hidden]`.
    ///
    /// # Errors
    /// If the file cannot be read, or contains a value that is not finite.
    pub fn mean(&self, rows: u64) -> Result<Vec<f64>> {
        let mut file = File::open(&self.file).map_err(|e| Error::io(&self.file, e))?;
        file.seek(SeekFrom::Start(self.offset)).map_err(|e| Error::io(&self.file, e))?;
        let mut sums = vec![0.0; self.hidden];
        // Reads whole rows at a time, at least one row of any length.
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
            let problem = "contains a value that is not a number";
            return Err(Error::input(self.place(), problem, DAMAGED));
        }
        Ok(sums.into_iter().map(|sum| sum / rows.max(1) as f64).collect())
    }
}

/// The number of bytes of a table that are read at a time.
const READ_BYTES: usize = 1 << 20;

const DAMAGED: &str = "the checkpoint is damaged; give an intact one";

/// The remedy if a model and a tokenizer do not belong together.
pub const REMEDY: &str = "give the model that the base tokenizer belongs to";

/// The tables of a model with one row per token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// The folder or file name, for reports.
    pub name: String,
    /// The input embedding.
    pub embedding: TokenTable,
    /// The LM head; `None` if it is tied to the embedding.
    pub head: Option<TokenTable>,
    /// The bias that is added to the logits, one number per id.
    pub bias: Option<TokenTable>,
}

impl Model {
    /// Finds the tables of a model: a folder, its index of shards, or one safetensors file.
    ///
    /// # Errors
    /// If there are no weights, a file is damaged, or a table is missing, not of floats, or of another shape than the embedding.
    pub fn open(path: &Path) -> Result<Self> {
        let file = located(path)?;
        let config = config(&ModelFolder::around(path))?;
        let tensors = WeightFiles::find(&file, "give an intact model folder")?.tensors()?;
        let tied = config.as_ref().and_then(is_tied);
        let found = |endings: &[&str]| only(&tensors, endings, &file);
        let (name, shard) = found(&EMBEDDINGS)?.ok_or_else(|| missing(&file, &EMBEDDINGS))?;
        let embedding = table(&shard, name)?;
        let head = match found(&HEADS)? {
            Some((name, shard)) => Some(table(&shard, name)?),
            None if tied == Some(false) => return Err(missing(&file, &HEADS)),
            _ => None,
        };
        let mut head = head.map(|head| head.beside(&embedding)).transpose()?;
        // A tied model may store its head nevertheless.
        if tied != Some(false) && head.as_ref().is_some_and(|head| is_same(head, &embedding)) {
            head = None;
        }
        if tied == Some(true) && head.is_some() {
            let problem = "`lm_head.weight` differs from the embedding, and config.json ties them";
            return Err(Error::input(
                file.display(),
                problem,
                "set tie_word_embeddings to false, or remove the tensor",
            ));
        }
        let bias = found(&BIASES)?.map(|(name, shard)| table(&shard, name)).transpose()?;
        let bias = bias.map(|bias| bias.beside(&embedding)).transpose()?;
        Ok(Model { name: model_name(&file), embedding, head, bias })
    }

    /// Returns the LM head that the model's files contain although it is tied to the embedding, if they do.
    ///
    /// # Errors
    /// The errors of [`Model::open`].
    pub(crate) fn redundant_head(&self, path: &Path) -> Result<Option<TokenTable>> {
        if self.head.is_some() {
            return Ok(None);
        }
        let file = located(path)?;
        let tensors = WeightFiles::find(&file, "give an intact model folder")?.tensors()?;
        let head = only(&tensors, &HEADS, &file)?.map(|(name, shard)| table(&shard, name)).transpose()?;
        head.map(|head| head.beside(&self.embedding)).transpose()
    }
}

/// Returns the file to open first.
fn located(path: &Path) -> Result<PathBuf> {
    if path.is_dir() { ModelFolder::new(path).needed_weights() } else { Ok(path.to_owned()) }
}

/// Returns the `config.json` of a model folder, if it has one.
///
/// # Errors
/// If it cannot be read.
pub fn config(folder: &ModelFolder) -> Result<Option<Value>> {
    folder.json(CONFIG, |e| (format!("is not JSON: {e}"), "give an intact model folder"))
}

/// Returns the model's name: `…/Qwen3-0.6B/model.safetensors` gives `Qwen3-0.6B`, and `mine.safetensors` gives `mine`.
fn model_name(file: &Path) -> String {
    let name = io::file_name(file);
    let stem = name.trim_end_matches(".index.json").trim_end_matches(".safetensors");
    folder_around(file).filter(|_| stem == "model").unwrap_or_else(|| stem.to_owned())
}

/// Returns whether the first rows of a head equal those of the embedding: some models are tied without stating it.
fn is_same(head: &TokenTable, embedding: &TokenTable) -> bool {
    let first = |table: &TokenTable| table.read((0..table.rows.min(COMPARED)).map(|row| row as u32)).ok();
    first(head).is_some_and(|rows| Some(rows) == first(embedding))
}

/// Returns whether a tensor belongs to one of several layers.
pub(crate) fn is_in_layer(name: &str) -> bool {
    name.split('.').any(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns the only tensor outside of layers whose name has one of these endings; `None` if there is none.
fn only<'t>(
    tensors: &'t BTreeMap<String, PathBuf>,
    endings: &[&str],
    file: &Path,
) -> Result<Option<(&'t str, PathBuf)>> {
    let outside = tensors.iter().filter(|(name, _)| !is_in_layer(name));
    let mut found = outside.filter(|(name, _)| endings.iter().any(|ending| ends_in(name, ending)));
    match (found.next(), found.next()) {
        (Some((first, _)), Some((second, _))) => {
            // The message names the ending if both share it, and otherwise describes what they have in common.
            let shared = endings.iter().find(|ending| ends_in(first, ending) && ends_in(second, ending));
            let problem = match shared {
                Some(ending) => format!("has two tensors that end in {ending}, {first} and {second}"),
                None => format!("has two tensors with a row for each token, {first} and {second}"),
            };
            Err(Error::input(file.display(), problem, "give a model of one text decoder"))
        }
        (first, _) => Ok(first.map(|(name, file)| (name.as_str(), file.clone()))),
    }
}

/// Returns whether the last parts of a tensor's name are these.
fn ends_in(name: &str, ending: &str) -> bool {
    name.strip_suffix(ending).is_some_and(|head| head.is_empty() || head.ends_with('.'))
}

fn missing(file: &Path, endings: &[&str]) -> Error {
    let problem = format!("has no tensor whose name ends in {}", endings.join(" or "));
    Error::input(file.display(), problem, "give the whole model, in the layout of transformers")
}

/// Opens a tensor as a table.
fn table(file: &Path, name: &str) -> Result<TokenTable> {
    let place = format!("{}: {name}", file.display());
    let Header { data_start, tensors } = Header::read(file)?;
    let info = tensors.info(name).ok_or_else(|| {
        Error::input(&place, "is not in the file, though the index says so", "fetch the shard again")
    })?;
    let float = Float::from_dtype(info.dtype).ok_or_else(|| {
        let problem = format!("contains {:?}, not F32, F16 or BF16", info.dtype);
        Error::input(&place, problem, "give weights that are not quantised")
    })?;
    let (rows, hidden) = match *info.shape.as_slice() {
        [rows, hidden] => (rows, hidden),
        [rows] if name.ends_with("bias") => (rows, 1),
        _ => {
            let problem = format!("has shape {:?}, not [rows, hidden]", info.shape);
            return Err(Error::input(&place, problem, "give a model in the layout of transformers"));
        }
    };
    Ok(TokenTable {
        tensor: name.to_owned(),
        file: file.to_owned(),
        float,
        rows: rows as u64,
        hidden,
        is_vector: info.shape.len() == 1,
        offset: data_start + info.data_offsets.0 as u64,
    })
}
