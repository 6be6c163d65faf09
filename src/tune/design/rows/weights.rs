//! A model's safetensors: its embedding and its LM head, of which single rows are read and nothing else.
//!
//! Rows of a table are contiguous, so a row is one seek and one read: a model of many gigabytes costs no more than its header
//! and the rows that are wanted.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::Value;

use drift_core::checkpoint::{CONFIG, Float, Header, ModelFolder, WeightFiles, folder_around, is_tied};
use drift_core::error::{Error, Result};
use drift_core::io;

/// How the name of the input embedding ends, in the layouts of transformers: Llama, Qwen, Gemma, Phi and others; GPT-NeoX; Falcon and
/// BLOOM; GPT-2, GPT-J and MPT; InternLM 2.
const EMBEDDINGS: [&str; 5] = [
    "embed_tokens.weight",
    "embed_in.weight",
    "word_embeddings.weight",
    "wte.weight",
    "tok_embeddings.weight",
];

/// How the name of the LM head ends: most; GPT-NeoX; InternLM 2.
const HEADS: [&str; 3] = ["lm_head.weight", "embed_out.weight", "output.weight"];

/// How the name of what is added to the logits ends: Phi, GPT-J.
const BIASES: [&str; 2] = ["lm_head.bias", "embed_out.bias"];

/// Rows of a head that are compared with those of the embedding, where nothing says whether it is the same.
const COMPARED: u64 = 64;

/// A matrix `[rows, hidden]` in a safetensors file, or a vector `[rows]`: a row per id.
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
    /// Whether it is a vector, with one number for each id.
    pub is_vector: bool,
    /// Where its first row begins in the file, in bytes.
    pub offset: u64,
}

impl TokenTable {
    /// The file and the tensor, for messages.
    pub fn place(&self) -> String {
        format!("{}: {}", self.file.display(), self.tensor)
    }

    /// Its shape with so many rows.
    pub fn shape(&self, rows: usize) -> Vec<usize> {
        if self.is_vector { vec![rows] } else { vec![rows, self.hidden] }
    }

    /// This table, if it has the shape of the embedding; a vector needs as many numbers as that has rows.
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

    /// Some of its rows, by id.
    ///
    /// # Errors
    /// If the file cannot be read, an id has no row, or a row holds a value that is not a number.
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
                return Err(Error::input(
                    self.place(),
                    problem,
                    "the checkpoint is damaged; give an intact one",
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
    /// If the file cannot be read, or holds a value that is not a number.
    pub fn mean(&self, rows: u64) -> Result<Vec<f64>> {
        let mut file = File::open(&self.file).map_err(|e| Error::io(&self.file, e))?;
        file.seek(SeekFrom::Start(self.offset)).map_err(|e| Error::io(&self.file, e))?;
        let mut sums = vec![0.0; self.hidden];
        // Whole rows at once, and at least one however long it is.
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
            return Err(Error::input(self.place(), problem, "the checkpoint is damaged; give an intact one"));
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
    /// What is added to the logits, one number for each id.
    pub bias: Option<TokenTable>,
}

impl Model {
    /// Finds the tables of a model: a folder, its index of shards, or one safetensors file.
    ///
    /// # Errors
    /// If there is none, a file is damaged, or a table is missing, not of floats, or of another width than the other.
    pub fn open(path: &Path) -> Result<Self> {
        let file = located(path)?;
        let config = config(&ModelFolder::around(path))?;
        let tensors = WeightFiles::find(&file, "give an intact model folder")?.tensors()?;
        let tied = config.as_ref().and_then(is_tied);
        let found = |endings: &[&str]| only(&tensors, endings, &file);
        let (name, shard) = found(&EMBEDDINGS)?.ok_or_else(|| missing(&file, &EMBEDDINGS))?;
        let embedding = table(&shard, name)?;
        let head = match found(&HEADS)? {
            // A tied model may store its head all the same; what the configuration says goes.
            Some((name, shard)) if tied != Some(true) => Some(table(&shard, name)?),
            None if tied == Some(false) => return Err(missing(&file, &HEADS)),
            _ => None,
        };
        let mut head = head.map(|head| head.beside(&embedding)).transpose()?;
        if tied.is_none() && head.as_ref().is_some_and(|head| is_same(head, &embedding)) {
            head = None;
        }
        let bias = found(&BIASES)?.map(|(name, shard)| table(&shard, name)).transpose()?;
        let bias = bias.map(|bias| bias.beside(&embedding)).transpose()?;
        Ok(Model { name: model_name(&file), embedding, head, bias })
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
        let tensors = WeightFiles::find(&file, "give an intact model folder")?.tensors()?;
        let head = only(&tensors, &HEADS, &file)?.map(|(name, shard)| table(&shard, name)).transpose()?;
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
    folder.json(CONFIG, |e| (format!("is not JSON: {e}"), "give an intact model folder"))
}

/// `…/Qwen3-0.6B/model.safetensors` is `Qwen3-0.6B`; `mine.safetensors` is `mine`.
fn model_name(file: &Path) -> String {
    let name = io::file_name(file);
    let stem = name.trim_end_matches(".index.json").trim_end_matches(".safetensors");
    folder_around(file).filter(|_| stem == "model").unwrap_or_else(|| stem.to_owned())
}

/// Whether the first rows of a head are those of the embedding: some models are tied and say so nowhere.
fn is_same(head: &TokenTable, embedding: &TokenTable) -> bool {
    let first = |table: &TokenTable| table.read((0..table.rows.min(COMPARED)).map(|row| row as u32)).ok();
    first(head).is_some_and(|rows| Some(rows) == first(embedding))
}

/// Whether a tensor belongs to one of many layers.
pub fn is_in_layer(name: &str) -> bool {
    name.split('.').any(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The one tensor outside of layers whose name ends so; none if there is none.
fn only<'t>(
    tensors: &'t BTreeMap<String, PathBuf>,
    endings: &[&str],
    file: &Path,
) -> Result<Option<(&'t str, PathBuf)>> {
    let ends = |name: &str, ending: &str| {
        name.strip_suffix(ending).is_some_and(|head| head.is_empty() || head.ends_with('.'))
    };
    let is = |name: &str| !is_in_layer(name) && endings.iter().any(|ending| ends(name, ending));
    let mut found = tensors.iter().filter(|(name, _)| is(name));
    match (found.next(), found.next()) {
        (Some((first, _)), Some((second, _))) => {
            // The message names the ending where both share it, and else says what they have in common.
            let both = |ending: &&&str| ends(first, ending) && ends(second, ending);
            let problem = match endings.iter().find(both) {
                Some(ending) => format!("has two tensors that end in {ending}, {first} and {second}"),
                None => format!("has two tensors with a row for each token, {first} and {second}"),
            };
            Err(Error::input(file.display(), problem, "give a model of one text decoder"))
        }
        (first, _) => Ok(first.map(|(name, file)| (name.as_str(), file.clone()))),
    }
}

fn missing(file: &Path, endings: &[&str]) -> Error {
    let problem = format!("has no tensor whose name ends in {}", endings.join(" or "));
    Error::input(file.display(), problem, "give the whole model, in the layout of transformers")
}

/// A tensor as a table.
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
