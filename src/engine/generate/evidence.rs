//! Files of self-checks: verdicts for later runs, and the data of a failed check, to be sent to somebody who can explain it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Options, Prompt};
use crate::model::Config;
use crate::model::cuda::GpuIdentity;
use drift_core::io::{hash_bytes, read_to_limit, write_atomic};
use drift_data::generation::SelfCheck;

/// The version of the file format and of the comparison; with another version the check runs again.
const SCHEMA: &str = "drift.self-check/2";

/// The largest size of a kept verdict, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// The number of characters of the hash that names a verdict's file.
const NAME_CHARACTERS: usize = 32;

/// The circumstances for which a verdict is valid.
#[derive(Debug, Serialize)]
pub(super) struct VerdictKey<'k> {
    pub device: GpuIdentity,
    pub config: &'k Config,
    pub dtype: &'static str,
    /// The work of the device in the run.
    pub task: String,
    /// The way in which kernels are launched.
    pub steps: String,
    /// The sampling settings of the run.
    pub sampling: String,
    pub rows: usize,
}

/// The content of a verdict's file.
#[derive(Serialize, Deserialize)]
struct KeptVerdict {
    schema: String,
    drift: String,
    /// The complete key of the verdict.
    of: Value,
    check: SelfCheck,
}

impl VerdictKey<'_> {
    fn file(&self, folder: &Path) -> Option<(PathBuf, Value)> {
        let of = serde_json::to_value(self).ok()?;
        let text = format!("{SCHEMA}\0{}\0{of}", env!("CARGO_PKG_VERSION"));
        let name = hash_bytes("", text.as_bytes()).sha256;
        Some((folder.join(format!("{}.json", &name[..NAME_CHARACTERS])), of))
    }

    /// Returns the verdict of an earlier run; `None` if there is none, or its file is incomplete or belongs to another key.
    pub(super) fn kept(&self, folder: &Path) -> Option<SelfCheck> {
        let (file, of) = self.file(folder)?;
        let kept: KeptVerdict = serde_json::from_slice(&read_to_limit(&file, MOST_BYTES).ok()?).ok()?;
        let is_of_this = kept.schema == SCHEMA && kept.drift == env!("CARGO_PKG_VERSION") && kept.of == of;
        is_of_this.then_some(kept.check)
    }

    /// Keeps a verdict. If that fails, the next run repeats the check.
    pub(super) fn keep(&self, folder: &Path, check: &SelfCheck) {
        let Some((file, of)) = self.file(folder) else { return };
        let (schema, drift) = (SCHEMA.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        let kept = KeptVerdict { schema, drift, of, check: check.clone() };
        if let (Ok(()), Ok(text)) = (std::fs::create_dir_all(folder), serde_json::to_vec_pretty(&kept)) {
            let _ = write_atomic(&file, &text);
        }
    }
}

/// A token choice that was compared.
#[derive(Debug, Serialize)]
pub(super) struct ComparedChoice {
    pub step: usize,
    pub row: usize,
    /// The position of the token in its text.
    pub position: usize,
    /// The largest difference, as a fraction of candle's largest logit.
    pub largest_difference: f64,
    /// The best tokens by candle, and the one that differs most: id, logit of the kernels, logit of candle.
    pub logits: Vec<(u32, f32, f32)>,
}

/// All logits of the choice that differs.
#[derive(Debug, Serialize)]
pub(super) struct WholeRow {
    pub step: usize,
    pub row: usize,
    /// The sorted ids of the logits; `None` if they are the whole vocabulary in order.
    pub ids: Option<Vec<u32>>,
    pub by_kernels: Vec<f32>,
    pub by_candle: Vec<f32>,
    /// The logits in f32, if they were computed.
    pub in_f32: Option<Vec<f32>>,
}

/// The data that a check has compared so far.
#[derive(Debug)]
pub(super) struct Evidence<'e> {
    config: &'e Config,
    prompts: Vec<Value>,
    sampling: String,
    seed: u64,
    pub choices: Vec<ComparedChoice>,
    pub whole: Option<WholeRow>,
}

impl<'e> Evidence<'e> {
    /// Evidence without data, for a model of this shape.
    pub(super) fn new(config: &'e Config) -> Self {
        let (prompts, sampling, choices) = Default::default();
        Evidence { config, prompts, sampling, seed: 0, choices, whole: None }
    }

    /// Starts a round of the check, and forgets the choices of the previous round.
    pub(super) fn begin(&mut self, prompts: &[Prompt], options: &Options) {
        let prompt = |prompt: &Prompt| {
            let Prompt { number, tokens, generations, most_tokens, .. } = prompt;
            json!({ "number": number, "tokens": tokens, "texts": generations, "most_tokens": most_tokens })
        };
        self.prompts = prompts.iter().map(prompt).collect();
        (self.sampling, self.seed) = (format!("{:?}", options.sampling), options.seed);
        self.choices.clear();
    }

    /// Writes three files into a folder. Returns whether that succeeded.
    pub(super) fn write(&self, folder: &Path, check: &SelfCheck) -> bool {
        let config = serde_json::to_value(self.config).unwrap_or_default();
        let inputs = json!({
            "schema": SCHEMA, "drift": env!("CARGO_PKG_VERSION"), "config": config, "sampling": self.sampling,
            "seed": self.seed, "prompts": self.prompts, "check": check,
        });
        let put = |name: &str, value: serde_json::Result<Vec<u8>>| {
            value.is_ok_and(|bytes| write_atomic(&folder.join(name), &bytes).is_ok())
        };
        std::fs::create_dir_all(folder).is_ok()
            && put("check.json", serde_json::to_vec_pretty(&inputs))
            && put("choices.json", serde_json::to_vec(&self.choices))
            && put("whole-row.json", serde_json::to_vec(&self.whole))
    }
}
