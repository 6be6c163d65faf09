//! Tokenizers for Python, read once and shared by all processors.

use std::path::PathBuf;
use std::sync::Arc;

use drift::Error;
use pyo3::prelude::*;

use crate::errors::{Class, raised};
use crate::work;

/// A Hugging Face tokenizer as drift reads it.
#[pyclass(frozen, module = "moldrift._lib")]
pub(crate) struct Tokenizer {
    pub(crate) inner: Arc<drift::Tokenizer>,
    /// The largest id plus one.
    size: usize,
}

impl Tokenizer {
    fn new(inner: drift::Tokenizer) -> Self {
        let size = inner.rows() as usize;
        Tokenizer { inner: Arc::new(inner), size }
    }
}

/// Files that cannot be read raise `DriftError`; files that are not a valid tokenizer are refused with their own class.
fn refused(error: Error) -> PyErr {
    match error {
        Error::Input { .. } => Class::Tokenizer.of()(error),
        error => raised(error),
    }
}

#[pymethods]
impl Tokenizer {
    /// Reads a tokenizer.json (plain or gzipped), the tokenizer of a model folder, or a tokenizer that comes with drift, by its
    /// name.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        work::detached(py, || drift::Tokenizer::load(&path).map(Tokenizer::new)).map_err(refused)
    }

    /// Returns the path of a tokenizer. A path is returned unchanged; the name of a repository becomes its folder in the cache of Hugging
    /// Face.
    #[staticmethod]
    fn locate(path: PathBuf) -> PyResult<PathBuf> {
        drift::checkpoint::locate(&path, drift::checkpoint::RequiredFiles::Tokenizer).map_err(raised)
    }

    /// Returns the text of the tokenizer_config.json beside a tokenizer, which is a file, a folder, or comes with drift.
    #[staticmethod]
    fn config_beside(path: PathBuf) -> PyResult<Option<String>> {
        let config = drift::tokenizer::config_beside(&path).map_err(raised)?;
        Ok(config.map(|config| config.to_string()))
    }

    /// Returns the encoding of a tokenizer or model, from the file that drift wrote beside it: its name, or the JSON of its definition.
    /// None if no such file states one.
    #[staticmethod]
    fn encoding_beside(path: PathBuf) -> PyResult<Option<String>> {
        let encoding = drift::tokenizer::encoding_beside(&path).map_err(raised)?;
        Ok(encoding.map(|encoding| match serde_json::to_value(encoding) {
            Ok(serde_json::Value::String(name)) => name,
            Ok(definition) => definition.to_string(),
            Err(_) => encoding.to_string(),
        }))
    }

    /// Returns a tokenizer from the bytes of its JSON.
    #[staticmethod]
    fn from_json(py: Python<'_>, name: &str, json: &[u8]) -> PyResult<Self> {
        let source = drift::io::hash_bytes(name, json);
        work::detached(py, || drift::Tokenizer::from_bytes(name, source, json).map(Tokenizer::new))
            .map_err(refused)
    }

    /// Returns the name of its file or folder.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns the largest id plus one.
    #[getter]
    fn size(&self) -> usize {
        self.size
    }

    /// Returns the id of a token, including added tokens; None if there is no such token.
    fn id_of(&self, token: &str) -> Option<u32> {
        self.inner.inner().token_to_id(token)
    }

    /// Returns the id of the end token: the one that a tokenizer_config.json (given as text) names, otherwise a token with a usual name;
    /// None if there is none.
    #[pyo3(signature = (config=None))]
    fn likely_end(&self, config: Option<&str>) -> Option<u32> {
        let config = config.and_then(|text| serde_json::from_str(text).ok());
        self.inner.likely_end(config.as_ref()).map(|end| end.id)
    }

    /// Returns the ids of a prompt, with the tokens that begin every text (such as Llama's beginning of text). `begun` is the part of the
    /// answer's first tag that the prompt lacks.
    #[pyo3(signature = (prompt, begun="[CONFORMER]"))]
    fn prompt_ids(&self, prompt: &str, begun: &str) -> PyResult<Vec<u32>> {
        self.inner.prompt_ids_before(prompt, &format!("{begun}[C]<")).map_err(raised)
    }

    /// Returns the ids of a prompt, if they are not those of its text alone, because a token crosses its end. `begun` is the part of the
    /// answer's first tag that the prompt lacks.
    fn prompt_ids_apart(&self, prompt: &str, begun: &str) -> PyResult<Option<Vec<u32>>> {
        self.inner.prompt_ids_apart(prompt, begun).map_err(raised)
    }

    /// Returns whether an answer behind the tokens of a prompt, given by their text, begins as behind a prompt of this end. `begun` is the part
    /// of the answer's first tag that prompts lack.
    fn begins_as_behind(&self, end: &str, prompt: &str, begun: &str) -> PyResult<bool> {
        self.inner.begins_as_behind(end, prompt, begun).map_err(raised)
    }

    /// Returns the ids of a text, without special tokens around it.
    fn ids(&self, text: &str) -> PyResult<Vec<u32>> {
        self.inner.ids(text).map_err(raised)
    }

    /// Returns the text of ids, with special tokens.
    fn text(&self, ids: Vec<u32>) -> PyResult<String> {
        self.inner.decode(&ids).map_err(raised)
    }

    /// Returns the canonical ids of an answer after a prompt.
    fn answer_ids(&self, answer: &str) -> PyResult<Vec<u32>> {
        self.inner.answer_ids(answer).map_err(raised)
    }

    /// Returns the text of an answer's ids, with special tokens.
    fn answer_text(&self, ids: Vec<u32>) -> PyResult<String> {
        self.inner.answer_text(&ids).map_err(raised)
    }

    fn __repr__(&self) -> String {
        format!("Tokenizer({:?}, size={})", self.inner.name, self.size)
    }
}
