//! What Python sees of drift: `moldrift._lib`.

mod errors;
mod options;
mod reports;
mod work;

use pyo3::prelude::*;

#[pymodule]
mod _lib {
    #[pymodule_export]
    use crate::reports::{audit, encode, fit, inspect, mine, train_tokenizer};

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
