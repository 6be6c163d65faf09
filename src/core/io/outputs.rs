//! The outputs of a run, checked before any work starts.

use std::path::{Path, PathBuf};

use super::output::{check_file, check_folder, same_file};
use crate::error::Error;

/// The outputs of a run, each with the name of its option.
#[derive(Default)]
pub struct Outputs {
    files: Vec<(&'static str, PathBuf)>,
}

impl Outputs {
    /// No outputs yet.
    pub fn new() -> Self {
        Outputs::default()
    }

    /// Adds a file, if one is given.
    ///
    /// # Errors
    /// If the file could not be written.
    pub fn file(mut self, option: &'static str, path: Option<&Path>) -> Result<Self, Error> {
        if let Some(path) = path {
            check_file(path)?;
            self.files.push((option, path.to_owned()));
        }
        Ok(self)
    }

    /// Adds a folder with the files that it may get, if one is given.
    ///
    /// # Errors
    /// If one of them could not be written.
    pub fn folder(
        mut self,
        option: &'static str,
        path: Option<&Path>,
        names: &[&str],
    ) -> Result<Self, Error> {
        if let Some(folder) = path {
            check_folder(folder, names)?;
            self.files.extend(names.iter().map(|name| (option, folder.join(name))));
        }
        Ok(self)
    }

    /// Refuses a file that would be written twice, or that would overwrite an input.
    ///
    /// # Errors
    /// If there is such a file.
    pub fn apart_from(&self, inputs: &[PathBuf]) -> Result<(), Error> {
        for (index, (option, path)) in self.files.iter().enumerate() {
            if let Some((other, _)) = self.files[..index].iter().find(|(_, other)| same_file(path, other)) {
                let problem = format!("would be written by {other} and by {option}");
                return Err(Error::input(path.display(), problem, "give them different names"));
            }
            if inputs.iter().any(|input| input.is_file() && same_file(path, input)) {
                let problem = format!("is an input, which {option} would overwrite");
                return Err(Error::input(path.display(), problem, "give another name"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_for_two_outputs_is_refused_however_it_is_spelled() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("input"), "").unwrap();
        let check = |file: &str, inputs: &[PathBuf]| {
            let outputs = Outputs::new().folder("-o", Some(&at("out")), &["record.json"])?;
            outputs.file("--texts", Some(&at(file)))?.apart_from(inputs)
        };
        check("texts", &[at("input"), PathBuf::from("-")]).unwrap();
        std::fs::create_dir(at("out")).unwrap();
        let twice = check("out/../out/record.json", &[]).unwrap_err().to_string();
        assert!(
            twice.ends_with("would be written by -o and by --texts; give them different names"),
            "{twice}"
        );
        let input = check("input", &[at("out/../input")]).unwrap_err().to_string();
        assert!(input.ends_with("is an input, which --texts would overwrite; give another name"), "{input}");
    }
}
