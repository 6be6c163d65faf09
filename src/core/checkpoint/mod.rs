//! Folders of models as Hugging Face lays them out: settings in JSON, weights in safetensors, whole or in shards.
//!
//! [`ModelFolder`] finds and reads files. [`WeightFiles`] says which file holds which tensor. [`Header`] lists the tensors of a
//! file without reading their numbers. [`locate`] finds folders by name in the cache of Hugging Face. The meaning of the settings
//! is left to the callers.

mod float;
mod folder;
mod header;
mod hub;
mod weight_files;

pub use float::Float;
pub(crate) use folder::REPAIR;
pub use folder::{
    ADDED_TOKENS, CONFIG, EXTENSION, GENERATION_CONFIG, INDEX, Ids, ModelFolder, RECIPE, TOKENIZER_CONFIG,
    WEIGHTS, configured_rows, is_tied, is_weights_file,
};
pub(crate) use folder::{SPECIAL_TOKENS_MAP, TOKENIZER_FILES, is_model_file};
pub use header::{Header, TensorEntry, header_bytes};
pub use hub::{RequiredFiles, folder_around, folder_name, locate};
pub use weight_files::WeightFiles;
