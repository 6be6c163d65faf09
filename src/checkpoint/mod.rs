//! Folders of models as Hugging Face lays them out: settings in JSON, weights in safetensors, whole or in shards.
//!
//! [`ModelFolder`] finds and reads files, [`WeightFiles`] says which file holds which tensor, [`Header`] what a file of
//! tensors holds, without its numbers. What the settings mean is for those who ask.

mod folder;
mod header;
mod weight_files;

pub use folder::{
    CONFIG, GENERATION_CONFIG, Ids, ModelFolder, RECIPE, TOKENIZER_CONFIG, configured_rows, is_tied,
};
pub use header::Header;
pub use weight_files::WeightFiles;
