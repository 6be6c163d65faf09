//! Sampling of tokens for Python: drift's presets with a seed.

use drift::sampling::{Candidates, Noise, Sampling, draw};
use pyo3::prelude::*;

use crate::errors::raised;

/// A way to draw tokens. The noise is keyed by seed, prompt, generation, position and token, so a text does not depend on its
/// batch.
#[pyclass(frozen, module = "moldrift._lib")]
pub(crate) struct Sampler {
    pub(crate) sampling: Sampling,
    pub(crate) seed: u64,
}

#[pymethods]
impl Sampler {
    /// Without a temperature the most likely token is always chosen.
    #[new]
    #[pyo3(signature = (temperature=None, top_k=None, top_p=None, min_p=None, seed=0))]
    fn new(
        temperature: Option<f64>,
        top_k: Option<usize>,
        top_p: Option<f64>,
        min_p: Option<f64>,
        seed: u64,
    ) -> PyResult<Self> {
        let sampling = Sampling { temperature, top_k, top_p, min_p };
        sampling.check().map_err(raised)?;
        Ok(Sampler { sampling, seed })
    }

    /// Returns the temperature, top-k, top-p and min-p of a preset: greedy, qwen3, top-p-P-tT or min-p-P-tT.
    #[staticmethod]
    #[allow(clippy::type_complexity, reason = "a tuple for Python")]
    fn preset(name: &str) -> PyResult<(Option<f64>, Option<usize>, Option<f64>, Option<f64>)> {
        let Sampling { temperature, top_k, top_p, min_p } = Sampling::preset(name).map_err(raised)?;
        Ok((temperature, top_k, top_p, min_p))
    }

    /// Draws one of the sorted `ids` by their `logits`, for a position of a text.
    #[pyo3(signature = (ids, logits, position, prompt=0, generation=0))]
    fn draw(
        &self,
        ids: Vec<u32>,
        logits: Vec<f32>,
        position: usize,
        prompt: usize,
        generation: usize,
    ) -> PyResult<u32> {
        let mut noise = Noise::new(self.seed, prompt, generation);
        let candidates = Candidates::Listed { logits: &logits, known: &ids, ids: &ids };
        draw(candidates, &self.sampling, &mut noise, position).map_err(raised)
    }
}
