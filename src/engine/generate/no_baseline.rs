//! In place of the models of candle-transformers, where drift was built without them.

use std::convert::Infallible;
use std::path::Path;

use super::{Generated, Options, Prompt, TextSink};
use crate::model::{Config, Device};
use drift_core::error::{Error, Parameter, Result};
use drift_core::job::{InputHash, Job};

/// A model of candle-transformers; there is none without the feature `baseline`.
pub struct Baseline(Infallible);

impl Baseline {
    /// Refuses.
    ///
    /// # Errors
    /// Always.
    pub fn load(_: &Path, _: &Device) -> Result<Self> {
        let problem = "this drift was built without candle-transformers";
        Err(Error::parameter(Parameter::Engine, problem, "build it with --features baseline"))
    }

    /// The model's shape.
    pub fn config(&self) -> &Config {
        match self.0 {}
    }

    /// The files of its weights.
    pub fn files(&self) -> &[InputHash] {
        match self.0 {}
    }

    /// The logits of the last token of each row.
    ///
    /// # Errors
    /// If the device fails.
    pub fn forward(&mut self, _: &[Vec<u32>], _: usize) -> Result<Vec<Vec<f32>>> {
        match self.0 {}
    }

    /// Generates for all prompts.
    pub fn generate(
        &mut self,
        _: &[Prompt],
        _: &Options,
        _: &mut dyn TextSink,
        _: &Job,
    ) -> Result<Generated> {
        match self.0 {}
    }
}
