//! The files that a run reads and writes, compared before any work starts.
//!
//! A run must not write over a file that it reads, write two results into one file, or write into a folder that it reads: the next
//! run would then read what this one wrote. Files are compared by where they are, through all links, and not by name.

use std::path::{Path, PathBuf};

use crate::checkpoint::{ModelFolder, is_model_file};
use crate::error::{Error, Result};
use crate::io::{FilePlace, check_file, check_folder, file_name, place_in};

/// The files and folders that a run reads, and those that it writes.
///
/// ```
/// use drift_core::run_files::RunFiles;
///
/// let folder = std::env::temp_dir();
/// let input = folder.join("conformers.sdf");
/// let files = RunFiles::new().reads(&input).writes("output", Some(&folder.join("corpus.jsonl")))?;
/// files.check()?;
/// # Ok::<(), drift_core::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct RunFiles {
    inputs: Vec<Input>,
    outputs: Vec<Output>,
}

#[derive(Debug, Clone)]
struct Input {
    /// The path as the user wrote it, for messages.
    named: PathBuf,
    place: FilePlace,
    /// If it is a folder, or a file with others beside it that are read too.
    folder: Option<InputFolder>,
}

/// A folder of which files are read.
#[derive(Debug, Clone)]
struct InputFolder {
    path: PathBuf,
    place: FilePlace,
    /// Whether only the files of a model are read, and no folder in it.
    is_of_model: bool,
}

#[derive(Debug, Clone)]
struct Output {
    option: &'static str,
    named: PathBuf,
    place: FilePlace,
    /// Whether it is a folder in which any file may be replaced.
    is_folder: bool,
}

impl RunFiles {
    /// Returns an empty set of files.
    pub fn new() -> Self {
        RunFiles::default()
    }

    /// Adds an input: a file, or a folder with everything in it. A path that does not exist is ignored.
    #[must_use]
    pub fn reads(mut self, path: &Path) -> Self {
        let folder = path.is_dir().then(|| InputFolder::new(path, false));
        self.add_input(path, folder);
        self
    }

    /// Adds several inputs, as [`RunFiles::reads`] does.
    #[must_use]
    pub fn reads_all<P: AsRef<Path>>(self, paths: impl IntoIterator<Item = P>) -> Self {
        paths.into_iter().fold(self, |files, path| files.reads(path.as_ref()))
    }

    /// Adds several models or tokenizers, as [`RunFiles::reads_model`] does.
    #[must_use]
    pub fn reads_models<P: AsRef<Path>>(self, paths: impl IntoIterator<Item = P>) -> Self {
        paths.into_iter().fold(self, |files, path| files.reads_model(path.as_ref()))
    }

    /// Adds a model or tokenizer: its folder, or a file with the files beside it. A path that does not exist is ignored.
    #[must_use]
    pub fn reads_model(mut self, path: &Path) -> Self {
        let around = ModelFolder::around(path);
        self.add_input(path, Some(InputFolder::new(around.path(), true)));
        self
    }

    fn add_input(&mut self, named: &Path, folder: Option<InputFolder>) {
        if named.exists() {
            self.inputs.push(Input { named: named.to_owned(), place: FilePlace::of(named), folder });
        }
    }

    /// Adds the inputs of another run.
    #[must_use]
    pub fn reads_as(mut self, other: &RunFiles) -> Self {
        self.inputs.extend_from_slice(&other.inputs);
        self
    }

    /// Adds an output file, if one is given. `option` is the name of its option.
    ///
    /// # Errors
    /// If the file could not be written.
    pub fn writes(mut self, option: &'static str, path: Option<&Path>) -> Result<Self> {
        if let Some(path) = path {
            check_file(path)?;
            self.add(option, path, false);
        }
        Ok(self)
    }

    /// Adds an output folder with the files that it may get, if one is given.
    ///
    /// # Errors
    /// If one of them could not be written.
    pub fn writes_in(
        mut self,
        option: &'static str,
        folder: Option<&Path>,
        names: &[impl AsRef<str>],
    ) -> Result<Self> {
        if let Some(folder) = folder {
            let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
            check_folder(folder, &names)?;
            names.iter().for_each(|name| self.add(option, &folder.join(name), false));
        }
        Ok(self)
    }

    /// Adds an output folder in which files of any name may be replaced.
    ///
    /// # Errors
    /// If no files could be written there.
    pub fn writes_folder(mut self, option: &'static str, folder: &Path) -> Result<Self> {
        check_folder(folder, &[])?;
        self.add(option, folder, true);
        Ok(self)
    }

    fn add(&mut self, option: &'static str, path: &Path, is_folder: bool) {
        self.outputs.push(Output { option, named: path.to_owned(), place: FilePlace::of(path), is_folder });
    }

    /// Refuses an output that would be written twice, is an input, or lies in an input folder where a run would read it.
    ///
    /// # Errors
    /// If there is such an output.
    pub fn check(&self) -> Result<()> {
        for (index, Output { option, named, place, .. }) in self.outputs.iter().enumerate() {
            if let Some(other) = self.outputs[..index].iter().find(|other| other.place.is(place)) {
                let problem = format!("would be written by {} and by {option}", other.option);
                return Err(Error::input(named.display(), problem, "give them different names"));
            }
        }
        self.inputs.iter().try_for_each(|input| input.check(&self.outputs))
    }
}

impl Input {
    /// Refuses outputs that would replace a file of this input, or add one to it.
    fn check(&self, outputs: &[Output]) -> Result<()> {
        if let Some(output) = outputs.iter().find(|output| output.replaces(&self.place)) {
            return Err(output.is_input(&self.named));
        }
        match &self.folder {
            Some(folder) if folder.is_of_model => folder.check_model(outputs),
            Some(folder) => folder.check_all(&self.named, outputs),
            None => Ok(()),
        }
    }
}

impl InputFolder {
    fn new(path: &Path, is_of_model: bool) -> Self {
        // An empty path means the current folder, which a run may change.
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        InputFolder { place: FilePlace::of(&path), path, is_of_model }
    }

    /// Refuses outputs that are files of the model.
    fn check_model(&self, outputs: &[Output]) -> Result<()> {
        let mut inside = outputs.iter().filter(|o| !o.is_folder && o.place.is_child_of(&self.place));
        if let Some(output) = inside.find(|output| is_model_file(&file_name(&output.named))) {
            return Err(output.is_input(&output.named));
        }
        // A file of the model may be a link to an output, or lie in an output folder.
        let files = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        for file in files.filter(|file| is_model_file(&file_name(&file.path()))) {
            let place = FilePlace::of(&file.path());
            if let Some(output) = outputs.iter().find(|output| output.replaces(&place)) {
                return Err(output.is_input(&file.path()));
            }
        }
        Ok(())
    }

    /// Refuses outputs in the folder, and files that the folder has links to.
    fn check_all(&self, named: &Path, outputs: &[Output]) -> Result<()> {
        if let Some(output) = outputs.iter().find(|output| output.place.is_visible_in(&self.place)) {
            let problem = format!(
                "lies in the input folder {}, where the next run would read what {} writes",
                named.display(),
                output.option
            );
            return Err(Error::input(output.named.display(), problem, "give a place outside of that folder"));
        }
        let files: Vec<&Output> = outputs.iter().filter(|output| !output.is_folder).collect();
        let places: Vec<&FilePlace> = files.iter().map(|output| &output.place).collect();
        match place_in(&self.path, &places) {
            Some(at) => Err(files[at].is_input(named)),
            None => Ok(()),
        }
    }
}

impl Output {
    /// Returns whether it may replace a file.
    fn replaces(&self, file: &FilePlace) -> bool {
        if self.is_folder { file.is_child_of(&self.place) } else { self.place.is(file) }
    }

    /// Returns the error of an output that is a file of the input `named`.
    fn is_input(&self, named: &Path) -> Error {
        let option = self.option;
        if self.is_folder {
            let problem = format!("contains the input {}, which {option} might overwrite", named.display());
            return Error::input(self.named.display(), problem, "give another folder");
        }
        let problem = format!("is an input, which {option} would overwrite");
        Error::input(self.named.display(), problem, "give another name")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Returns a folder with a corpus in `in`, a model in `model` and an empty folder `out`.
    fn scene() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in ["in/sub/a.sdf", "in/.cache/x", "model/config.json", "model/model.safetensors", "one.sdf"]
        {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        fs::create_dir(folder.path().join("out")).unwrap();
        folder
    }

    #[test]
    fn outputs_over_inputs_are_refused_by_what_they_would_destroy() {
        let folder = scene();
        let at = |name: &str| folder.path().join(name);
        let check = |name: &str| {
            let files = RunFiles::new().reads(&at("in")).reads(&at("one.sdf")).reads_model(&at("model"));
            files.reads(Path::new("-")).writes("-o", Some(&at(name))).unwrap().check()
        };
        let refused = |name: &str| check(name).unwrap_err().to_string();
        for name in ["one.sdf", "out/../one.sdf", "model/config.json", "model/recipe.json"] {
            assert!(
                refused(name).ends_with("is an input, which -o would overwrite; give another name"),
                "{name}"
            );
        }
        for name in ["in/corpus.jsonl", "in/sub/a.sdf", "in/sub/new"] {
            assert!(refused(name).contains("where the next run would read what -o writes"), "{name}");
        }
        for name in
            ["corpus.jsonl", "in/.corpus.jsonl", "in/.cache/x", "model/record.json", "out/config.json"]
        {
            check(name).unwrap();
        }
    }

    #[test]
    fn one_file_for_two_outputs_is_refused_however_it_is_spelled() {
        let folder = scene();
        let at = |name: &str| folder.path().join(name);
        let check = |file: &str| {
            let files = RunFiles::new().writes_in("-o", Some(&at("out")), &["record.json"])?;
            files.writes("--texts", Some(&at(file)))?.check()
        };
        check("texts").unwrap();
        let twice = check("out/../out/record.json").unwrap_err().to_string();
        assert!(
            twice.ends_with("would be written by -o and by --texts; give them different names"),
            "{twice}"
        );
    }

    #[test]
    fn folders_that_may_be_replaced_contain_no_input() {
        let folder = scene();
        let at = |name: &str| folder.path().join(name);
        let check = |input: &str, output: &str| {
            RunFiles::new().reads(&at(input)).writes_folder("-o", &at(output)).unwrap().check()
        };
        let refused = |input: &str, output: &str| check(input, output).unwrap_err().to_string();
        assert!(refused("in/sub/a.sdf", "in/sub").contains("contains the input"));
        assert!(refused("in", "in/new/folder").contains("lies in the input folder"));
        assert!(refused("in", "in").contains("lies in the input folder"));
        check("in/sub/a.sdf", "in").unwrap();
        check("in", "out").unwrap();
        let model = RunFiles::new().reads_model(&at("model")).writes_folder("-o", &at("model")).unwrap();
        assert!(model.check().unwrap_err().to_string().contains("contains the input"));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_resolved_on_both_sides() {
        use std::os::unix::fs::symlink;
        let folder = scene();
        let at = |name: &str| folder.path().join(name);
        for name in ["soft", "hard", "weights", "shown"] {
            fs::write(at("out").join(name), name).unwrap();
        }
        symlink(at("out/soft"), at("in/soft.sdf")).unwrap();
        symlink(at("out/new"), at("in/new.sdf")).unwrap();
        fs::hard_link(at("out/hard"), at("in/sub/hard.sdf")).unwrap();
        symlink(at("out/weights"), at("model/shard-1.safetensors")).unwrap();
        symlink(at("in"), at("folder")).unwrap();
        symlink(at("in/sub/a.sdf"), at("out/output")).unwrap();
        let is_refused = |name: &str| {
            let files = RunFiles::new().reads(&at("folder")).reads_model(&at("model/config.json"));
            files.writes("-o", Some(&at(name))).unwrap().check().is_err()
        };
        let names = ["out/soft", "out/new", "out/hard", "out/weights", "out/output", "folder/x", "in/x"];
        assert_eq!(names.map(is_refused), [true; 7]);
        assert!(!is_refused("out/shown"));
    }
}
