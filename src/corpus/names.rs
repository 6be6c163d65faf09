//! SMILES by name.

use std::collections::HashMap;
use std::path::Path;

use crate::error::{Error, Result};
use crate::job::Job;

/// SMILES by name.
#[derive(Debug, Default)]
pub struct Names(HashMap<String, String>);

impl Names {
    /// Reads them.
    ///
    /// # Errors
    /// Always.
    pub fn read(path: &Path, _: &Job) -> Result<Self> {
        Err(Error::internal(path.display(), "not yet"))
    }

    /// The SMILES of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}
