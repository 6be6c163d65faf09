//! Errors of drift as exceptions of `moldrift.errors`: the class by what was being done, the message drift's one line.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// An exception class of `moldrift.errors`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Class {
    /// Any bad input.
    Drift,
    /// A tokenizer that the automaton refuses.
    Tokenizer,
    /// A SMILES that is none, or whose text has no tokens.
    Smiles,
    /// A token that a mask forbade.
    Forbidden,
}

impl Class {
    /// The class itself, imported once.
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

    /// An exception of this class.
    pub(crate) fn exception(self, message: impl Into<String>) -> PyErr {
        let message = message.into();
        Python::attach(|py| match self.get(py) {
            Ok(class) => PyErr::from_type(class.clone(), message),
            Err(error) => error,
        })
    }

    /// An error of drift as an exception of this class. An interrupted job is `KeyboardInterrupt`.
    pub(crate) fn of(self) -> impl Fn(drift::Error) -> PyErr {
        move |error| match error {
            drift::Error::Interrupted | drift::Error::Stopped { .. } => {
                PyKeyboardInterrupt::new_err(error.to_string())
            }
            error => self.exception(error.to_string()),
        }
    }
}

/// An error of drift as `moldrift.DriftError`, for `map_err`.
pub(crate) fn raised(error: drift::Error) -> PyErr {
    Class::Drift.of()(error)
}
