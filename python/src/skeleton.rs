//! The automaton of a skeleton, and the constraints of prompts.

use std::path::Path;
use std::sync::Arc;

use drift::constraint::skeleton::SkeletonProcessor;
use drift::skeleton::Skeleton;
use pyo3::prelude::*;
use serde_json::{Map, Value};

use crate::constraint::Constraint;
use crate::errors::{Class, raised};
use crate::tokenizer::Tokenizer;
use crate::work;

/// The automaton of a skeleton for one tokenizer. It makes the constraints of prompts, on any thread.
#[pyclass(frozen, module = "moldrift._lib")]
pub(crate) struct SkeletonAutomaton {
    inner: Arc<SkeletonProcessor>,
    tokenizer: Arc<drift::Tokenizer>,
    eos: u32,
}

/// Returns the skeleton of a name, of a file, or with this content.
fn skeleton(source: &str) -> PyResult<Skeleton> {
    if source.trim_start().starts_with('{') {
        return source
            .parse()
            .map_err(|problem: String| Class::Drift.exception(format!("skeleton: {problem}")));
    }
    Skeleton::load(Path::new(source)).map_err(raised)
}

#[pymethods]
impl SkeletonAutomaton {
    /// `source` is a name, a path, or the JSON of a skeleton. `eos` ends a text, whose beginning `begun` stands in prompts.
    #[new]
    #[pyo3(signature = (tokenizer, source, eos, begun=""))]
    fn new(py: Python<'_>, tokenizer: &Tokenizer, source: &str, eos: u32, begun: &str) -> PyResult<Self> {
        let skeleton = Arc::new(skeleton(source)?);
        let tokenizer = tokenizer.inner.clone();
        let inner = work::detached(py, || SkeletonProcessor::new(tokenizer.clone(), skeleton, eos));
        let inner = Arc::new(inner.map_err(Class::Tokenizer.of())?.begun(begun));
        Ok(SkeletonAutomaton { inner, tokenizer, eos })
    }

    /// Returns the name of the skeleton.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.skeleton().name
    }

    /// Returns the ids of a prompt before its text, as for `constraint`.
    #[pyo3(signature = (prompt, text=None, place="prompt"))]
    fn prompt_ids(
        &self,
        py: Python<'_>,
        prompt: &str,
        text: Option<&str>,
        place: &str,
    ) -> PyResult<Vec<u32>> {
        let made = self.constraint(py, prompt, text, place)?;
        made.inner.skeleton().map_or_else(|| Ok(Vec::new()), |own| own.prompt_ids().map_err(raised))
    }

    /// Returns the constraint of a prompt, a JSON object, which stands at `place`. `text` is its text, if prompt and answer are one.
    #[pyo3(signature = (prompt, text=None, place="prompt"))]
    fn constraint(
        &self,
        py: Python<'_>,
        prompt: &str,
        text: Option<&str>,
        place: &str,
    ) -> PyResult<Constraint> {
        let data: Map<String, Value> = serde_json::from_str(prompt)
            .map_err(|error| Class::Drift.exception(format!("{place}: is no JSON object: {error}")))?;
        let needs = self.inner.skeleton().bind(&data, place).map(|_| ());
        needs.map_err(raised)?;
        let made = work::detached(py, || self.inner.constraint(&data, text, place));
        Ok(Constraint {
            inner: Arc::new(made.map_err(Class::Tokenizer.of())?),
            molecule_automaton: None,
            tokenizer: self.tokenizer.clone(),
            skeleton: self.inner.skeleton().name.clone(),
            eos: self.eos,
        })
    }
}
