//! The folder of a case, and what must be so of it after the case: inputs as they were, nothing beside them, nothing in
//! the temporary folder; and what an error must look like.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::harness::{Outcome, Target, Verdict};

/// The longest line of an error, in characters.
pub(crate) const MOST_CHARACTERS: usize = 500;

/// Where a case runs. The current folder is `here`, so that messages hold short names.
pub(crate) struct Scene {
    /// The folder of inputs.
    pub here: PathBuf,
    /// `TMPDIR`.
    tmp: PathBuf,
    /// The name of the case's file.
    pub file: &'static str,
    /// What else is in the folder.
    beside: OnceLock<BTreeMap<PathBuf, Vec<u8>>>,
}

impl Scene {
    /// The scene of a target in a folder that has `here` and `tmp`.
    pub(crate) fn new(folder: &Path, target: &Target) -> Self {
        let scene = Scene {
            here: folder.join("here"),
            tmp: folder.join("tmp"),
            file: target.file,
            beside: OnceLock::new(),
        };
        (target.prepare)(&scene);
        let _ = fs::remove_file(scene.here.join(scene.file));
        scene.beside.set(contents(&scene.here)).unwrap();
        scene
    }

    /// The case's file, as messages name it.
    pub(crate) fn path(&self) -> &Path {
        Path::new(self.file)
    }

    /// Adds a file that the case needs; for `prepare`.
    pub(crate) fn add(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.here.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Copies a folder of the project into the scene; for `prepare`.
    pub(crate) fn add_folder(&self, from: &str, name: &str) {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(from);
        for entry in fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let file = path.file_name().unwrap().to_string_lossy();
                self.add(&format!("{name}/{file}"), fs::read(&path).unwrap());
            }
        }
    }

    /// Writes the case's file.
    pub(crate) fn put(&self, bytes: &[u8]) {
        fs::write(self.here.join(self.file), bytes).unwrap();
    }

    /// Checks what is there after a case, and sweeps what should not be.
    pub(crate) fn left(&self, bytes: &[u8]) -> Result<(), String> {
        let mut expected = self.beside.get().unwrap().clone();
        expected.insert(self.here.join(self.file), bytes.to_vec());
        let found = contents(&self.here);
        let mut wrong = Vec::new();
        for (path, content) in &found {
            match expected.get(path) {
                None => {
                    wrong.push(format!("left {}", path.file_name().unwrap().to_string_lossy()));
                    let _ = fs::remove_file(path);
                }
                Some(before) if before != content => {
                    wrong.push(format!("changed {}", path.display()));
                    fs::write(path, before).unwrap();
                }
                Some(_) => {}
            }
        }
        for (path, before) in expected.iter().filter(|(path, _)| !found.contains_key(*path)) {
            wrong.push(format!("removed {}", path.display()));
            fs::write(path, before).unwrap();
        }
        for path in contents(&self.tmp).into_keys() {
            wrong.push(format!("left {} in TMPDIR", path.file_name().unwrap().to_string_lossy()));
            let _ = fs::remove_file(path);
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join(", ")) }
    }
}

/// All files below a folder, hidden ones too, with their content.
pub(crate) fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let content = fs::read(&path).unwrap_or_default();
                found.insert(path, content);
            }
        }
    }
    found
}

/// What the library refused: exit code 2, one line, the case's file named.
pub(crate) fn refused(scene: &Scene, error: &drift::Error) -> Verdict {
    let text = error.to_string();
    let shown: String = text.chars().take(MOST_CHARACTERS).collect();
    if error.exit_code() != 2 {
        return Err(format!("exit code {} | {shown}", error.exit_code()));
    }
    check_line(&text)?;
    // A parameter that does not fit the files names itself.
    let is_parameter = text.starts_with('‘');
    if !is_parameter && !text.contains(scene.file) {
        return Err(format!("does not name the file | {shown}"));
    }
    Ok(Outcome::Refused)
}

/// One line of at most [`MOST_CHARACTERS`] printable characters.
pub(crate) fn check_line(text: &str) -> Result<(), String> {
    let shown: String = text.chars().take(MOST_CHARACTERS).collect();
    if text.chars().any(char::is_control) {
        return Err(format!("an error with a control character | {shown}"));
    }
    if text.chars().any(is_invisible) {
        return Err(format!("an error with a character that changes the line | {shown}"));
    }
    let characters = text.chars().count();
    if characters > MOST_CHARACTERS {
        return Err(format!("an error too long | {characters} characters: {shown}"));
    }
    Ok(())
}

/// What changes how a terminal shows a line and is no control character: separators of lines, marks of direction.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
