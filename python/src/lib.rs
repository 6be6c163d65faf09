//! What Python sees of drift: `moldrift._lib`.

mod errors;

use pyo3::prelude::*;

#[pymodule]
mod _lib {
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
