//! Models on candle: decoders, training, batched generation under logit processors, and evaluation.

pub mod device;
pub mod eval;
pub mod generate;
pub mod model;
pub mod parameter;
pub mod runs;
pub mod train;
