//! What a run knows about the texts that it generated: its settings, its cost, the self-check of its device, and the header of a
//! file of texts. The types are those of records of `drift eval` too.

mod cost;
mod environment;
mod header;
mod mask_cost;
mod run;
mod self_check;
mod settings;

pub use cost::{Cost, Roofline, Seconds, SpeedMeasure, Traffic};
pub use environment::Environment;
pub use header::{TEXTS_SCHEMA, TextsHeader};
pub use mask_cost::{ClassMaskCost, MaskCost, ResamplingReport, Spread};
pub use run::{ClassPlaceholder, ClassProbability, EncodingEvidence, GenerationRun, Unseen};
pub use self_check::{GpuIdentity, NearTie, RecomputedChoice, SelfCheck, Verdict};
pub use settings::{EngineChoice, EvalPart, GenerationProtocol, GeometrySettings, Room, Synthetic};
