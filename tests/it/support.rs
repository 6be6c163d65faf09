//! What several subjects need: the program, folders to run it in, and the shared data where it is present.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use drift::constraint::{Constraint, Mask, State};
use drift::corpus::{Batch, BatchSink, Conformer, Conformers, EmbeddedConformers, ReadSummary};
use drift::job::Job;
use serde_json::Value;

/// The program.
pub(crate) fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_drift"))
}

/// A size for all tests (DRIFT_ALL=1), or the usual one, with which a test takes seconds.
pub(crate) fn sized<T>(all: T, usual: T) -> T {
    if cfg!(all_tests) { all } else { usual }
}

/// What a run of the program came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    pub stdout: Vec<u8>,
    pub stderr: String,
    /// The exit code; none if a signal ended it.
    pub code: Option<i32>,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!stderr.contains("panicked"), "{stderr}");
        Ran { stdout: output.stdout, stderr, code: output.status.code() }
    }
}

impl Ran {
    /// The same, if it is a success without a word on stderr.
    #[track_caller]
    pub(crate) fn good(self) -> Self {
        assert_eq!((self.code, &*self.stderr), (Some(0), ""));
        self
    }

    /// The same, if it is a success, whatever it tells on stderr.
    #[track_caller]
    pub(crate) fn done(self) -> Self {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self
    }

    /// The line of a run that must be refused, without `drift: `: exit code 2 and nothing on stdout.
    #[track_caller]
    pub(crate) fn refused(&self) -> String {
        self.refused_as(2)
    }

    /// The same for another exit code.
    #[track_caller]
    pub(crate) fn refused_as(&self, code: i32) -> String {
        assert_eq!((self.code, self.stdout.len()), (Some(code), 0), "{}", self.stderr);
        let line = self.stderr.strip_prefix("drift: ").and_then(|rest| rest.strip_suffix('\n'));
        let line = line.unwrap_or_else(|| panic!("{:?}", self.stderr));
        // A command is never cut.
        let short = line.chars().count() <= 500 || line.contains("`drift ");
        assert!(!line.contains(|c: char| c.is_control()) && short, "{line:?}");
        line.to_owned()
    }

    /// Asserts that the run is refused in a line that says this.
    #[track_caller]
    pub(crate) fn refused_for(&self, part: &str) {
        let line = self.refused();
        assert!(line.contains(part), "{line}");
    }

    /// Asserts that the command line is refused in clap's way, for this option.
    #[track_caller]
    pub(crate) fn refused_usage(&self, option: &str) {
        let is_told = self.stderr.starts_with("error: ") && self.stderr.contains(option);
        assert!(self.code == Some(2) && is_told, "{}", self.stderr);
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap()
    }
}

/// Runs drift where the tests run.
pub(crate) fn drift(arguments: &[&str]) -> Ran {
    program().args(arguments).output().unwrap().into()
}

/// The words of a command line.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// The rows of JSON Lines.
pub(crate) fn rows(text: &[u8]) -> Vec<Value> {
    std::str::from_utf8(text).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A folder to work in, gone when dropped.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    /// The files of the reference checkpoint, below `place`.
    pub(crate) fn reference_checkpoint(&self, place: &str) {
        self.checkpoint("qwen-like", place);
    }

    /// The files of a checkpoint of `eval/`, below `place`.
    pub(crate) fn checkpoint(&self, name: &str, place: &str) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("eval").join(name);
        for entry in std::fs::read_dir(source).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            self.file(&format!("{place}/{name}"), std::fs::read(&path).unwrap());
        }
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// The content of a file.
    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.path().join(name)).unwrap()
    }

    /// Runs drift in the folder.
    pub(crate) fn drift(&self, arguments: &[&str]) -> Ran {
        program().args(arguments).current_dir(&self.0).output().unwrap().into()
    }

    /// Runs drift in the folder with the words of a line.
    pub(crate) fn line(&self, line: &str) -> Ran {
        self.drift(&words(line))
    }

    /// Everything below the folder, hidden or not, by name, with the size of files.
    pub(crate) fn listing(&self) -> BTreeMap<PathBuf, u64> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.path()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                // A temporary file may be gone before it is looked at.
                let (path, Ok(metadata)) = (entry.path(), entry.metadata()) else { continue };
                let is_folder = metadata.is_dir();
                found.insert(path.clone(), if is_folder { 0 } else { metadata.len() });
                folders.extend(is_folder.then_some(path));
            }
        }
        found
    }
}

/// The folder of shared development data: `$DRIFT_SHARED`, else `../shared` beside the checkout. Tests that need it are
/// ignored where `build.rs` did not find it.
pub(crate) fn shared() -> PathBuf {
    more().expect("no shared data: set DRIFT_SHARED")
}

/// The same where it is present, for tests that only check more of the same with it.
pub(crate) fn more() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let folder = std::env::var_os("DRIFT_SHARED").map_or_else(beside, PathBuf::from);
    folder.join("tokenizers").is_dir().then_some(folder)
}

/// The Python whose packages tests compare with: `$DRIFT_PYTHON`, else `python3`. Tests are ignored where `build.rs` did not find the
/// modules that their scripts import.
pub(crate) fn python_program() -> String {
    std::env::var("DRIFT_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

/// What a script of `tests` prints, if it succeeds; it runs in a folder.
#[track_caller]
pub(crate) fn python(script: &str, folder: &Path, arguments: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(script);
    let mut command = Command::new(python_program());
    let ran = command.arg(script).args(arguments).current_dir(folder).output().unwrap();
    let (printed, complaints) =
        (String::from_utf8(ran.stdout).unwrap(), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{arguments:?}: {printed}{complaints}");
    printed.trim().to_owned()
}

/// The names of the shared tokenizers.
pub(crate) const SHARED_TOKENIZERS: [&str; 6] =
    ["qwen3", "qwen3-custom", "llama-3.2", "llama-3.2-chem", "cl100k", "mistral-v1"];

/// A field of every shared conformer: its text `embedded_smiles` or `embedded_smiles_stripped`, without tags, or `canonical_smiles`.
pub(crate) fn shared_texts(shared: &Path, field: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for file in ["geom_conformers.jsonl", "xtb_moses_aq.jsonl.gz", "etkdg_drugs_test.jsonl.gz"] {
        let reader = drift::io::open(&shared.join("geom").join(file), &drift::job::Job::default()).reader;
        for line in std::io::BufRead::lines(reader) {
            let row: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            texts.push(row[field].as_str().unwrap().to_owned());
        }
    }
    texts
}

/// The conformers of a corpus, in the batches in which they are read.
pub(crate) fn batches(corpus: &dyn Conformers) -> Vec<Vec<Conformer>> {
    let mut batches = Vec::new();
    let mut emit = |batch: Batch| {
        batches.push(batch.conformers);
        Ok(())
    };
    corpus.read(&Job::default(), &mut emit).unwrap();
    batches
}

/// The conformers of a corpus.
pub(crate) fn conformers(corpus: &dyn Conformers) -> Vec<Conformer> {
    batches(corpus).into_iter().flatten().collect()
}

/// A logit processor under which everything is allowed, up to the end of a text, token 2.
pub(crate) struct Free;

impl Constraint for Free {
    fn start(&self) -> State {
        State::default()
    }
    fn mask(&self, _: &State) -> Mask<'_> {
        Mask::Any
    }
    fn advance(&self, state: &mut State, _: u32) {
        state.at += 1;
    }
    fn is_over(&self, _: &State, token: u32) -> bool {
        token == 2
    }
}

/// The first conformers of the embedded corpus.
pub(crate) struct First(pub(crate) usize);

impl Conformers for First {
    fn read(&self, job: &Job, emit: &mut BatchSink<'_>) -> drift::Result<ReadSummary> {
        let mut left = self.0;
        EmbeddedConformers::default().read(job, &mut |mut batch| {
            batch.conformers.truncate(left);
            left -= batch.conformers.len();
            emit(Batch { conformers: batch.conformers, ..Batch::default() })
        })
    }
}
