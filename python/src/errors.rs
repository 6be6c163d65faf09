//! Turns drift's errors into exceptions of `moldrift.errors`. The class depends on the operation; the message is drift's one line.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// An exception class of `moldrift.errors`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Class {
    /// Any invalid input.
    Drift,
    /// A tokenizer that the automaton refuses.
    Tokenizer,
    /// A text that is not a SMILES, or a SMILES without atoms.
    Smiles,
    /// A token that a mask forbids.
    Forbidden,
}

impl Class {
    /// Returns the Python class, imported once.
    fn get(self, py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
        static CLASSES: [PyOnceLock<Py<PyType>>; 4] = [const { PyOnceLock::new() }; 4];
        let name = match self {
            Class::Drift => "DriftError",
            Class::Tokenizer => "TokenizerRefused",
            Class::Smiles => "InvalidSmiles",
            Class::Forbidden => "ForbiddenToken",
        };
        CLASSES[self as usize].import(py, "moldrift.errors", name)
    }

    /// Returns an exception of this class.
    pub(crate) fn exception(self, message: impl Into<String>) -> PyErr {
        let message = message.into();
        Python::attach(|py| match self.get(py) {
            Ok(class) => PyErr::from_type(class.clone(), message),
            Err(error) => error,
        })
    }

    /// Turns an error of drift into an exception of this class. An interrupted job becomes `KeyboardInterrupt`.
    pub(crate) fn of(self) -> impl Fn(drift::Error) -> PyErr {
        move |error| match error {
            drift::Error::Interrupted | drift::Error::Stopped { .. } => {
                PyKeyboardInterrupt::new_err(error.to_string())
            }
            error => self.exception(error.to_string()),
        }
    }
}

/// Turns an error of drift into `moldrift.DriftError`, for `map_err`.
pub(crate) fn raised(error: drift::Error) -> PyErr {
    Class::Drift.of()(error)
}
