//! Runs of the program: under limits of memory, file size and time, and what each must come to.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::scene::check_line;

/// The most address space of a run, in KiB: 4 GiB.
const RUN_KIB: u64 = 4 << 20;

/// The largest file that a run may write, in blocks of 512 bytes: 256 MiB.
const RUN_BLOCKS: u64 = 512 << 10;

/// How long a run is let alone before it is interrupted, and how long it then has to end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);
const LAST_WORDS: Duration = Duration::from_secs(15);

/// How a run of the program is started.
pub(crate) struct Run<'a> {
    pub arguments: &'a [String],
    /// The folder that it runs in.
    pub folder: &'a Path,
    /// `TMPDIR`; that of this process if none.
    pub tmp: Option<&'a Path>,
    pub stdin: Option<PathBuf>,
    /// Where its stdout goes instead of a file: `/dev/full`.
    pub stdout: Option<&'a str>,
    /// The largest file, in blocks of 512 bytes; the signal is then ignored, so that writing fails as on a full disk.
    pub blocks: Option<u64>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(folder: &'a Path, arguments: &'a [String]) -> Self {
        Run { arguments, folder, tmp: None, stdin: None, stdout: None, blocks: None }
    }

    /// Starts the program; what it prints goes to files in `log`.
    pub(crate) fn start(&self, log: &Path) -> Child {
        let trap = if self.blocks.is_some() { "trap '' XFSZ; " } else { "" };
        let blocks = self.blocks.unwrap_or(RUN_BLOCKS);
        let script = format!("{trap}ulimit -v {RUN_KIB}; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let stdin = self.stdin.as_ref().map_or_else(Stdio::null, |path| File::open(path).unwrap().into());
        let stdout = match self.stdout {
            Some(device) => File::options().write(true).open(device).unwrap(),
            None => File::create(log.join("stdout")).unwrap(),
        };
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(env!("CARGO_BIN_EXE_drift")).args(self.arguments);
        command
            .current_dir(self.folder)
            .stdin(stdin)
            .stdout(stdout)
            .stderr(File::create(log.join("stderr")).unwrap());
        command.env("RUST_BACKTRACE", "0");
        if let Some(tmp) = self.tmp {
            command.env("TMPDIR", tmp);
        }
        command.spawn().unwrap()
    }

    /// Runs the program to its end, which is asked for if it does not come.
    pub(crate) fn end(&self, patience: Duration) -> Ended {
        let log =
            tempfile::Builder::new().prefix("fzlog").tempdir_in(crate::harness::memory_folder()).unwrap();
        let mut child = self.start(log.path());
        let asked = wait(&mut child, patience).is_none();
        if asked {
            signal(&child, "INT");
        }
        Ended::of(&mut child, log.path(), asked)
    }
}

/// Waits; the status, if it ended in time.
pub(crate) fn wait(child: &mut Child, patience: Duration) -> Option<std::process::ExitStatus> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        if begun.elapsed() >= patience {
            return None;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// Sends a signal by name.
pub(crate) fn signal(child: &Child, name: &str) {
    // A child that has just ended gets none.
    let _ = Command::new("kill")
        .args([&format!("-{name}"), &child.id().to_string()])
        .stderr(Stdio::null())
        .status();
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit code; none if a signal ended it.
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
    /// Whether it was asked to end.
    pub asked: bool,
    /// Whether it had to be killed.
    pub stuck: bool,
}

impl Ended {
    /// Waits for the end of a child, not forever.
    pub(crate) fn of(child: &mut Child, log: &Path, asked: bool) -> Self {
        let status = wait(child, LAST_WORDS);
        if status.is_none() {
            let _ = child.kill();
        }
        let status = status.unwrap_or_else(|| child.wait().unwrap());
        let read = |name: &str| fs::read(log.join(name)).unwrap_or_default();
        let stderr = String::from_utf8_lossy(&read("stderr")).into_owned();
        let stuck = {
            use std::os::unix::process::ExitStatusExt;
            status.signal() == Some(9)
        };
        Ended { code: status.code(), stdout: read("stdout"), stderr, asked, stuck }
    }

    /// Checks the exit code, and what was said on stderr and stdout.
    pub(crate) fn check(&self, arguments: &[String]) -> Result<bool, String> {
        let shown: String = self.stderr.chars().take(300).collect();
        if self.stuck {
            return Err(format!("does not end when interrupted | {}", arguments.join(" ")));
        }
        let place =
            self.stderr.find("panicked at").map_or("", |at| self.stderr[at..].lines().next().unwrap_or(""));
        let has = |names: &[&str]| arguments.iter().any(|argument| names.contains(&&**argument));
        let with_json = has(&["--json"]) && !has(&["--help", "-h", "--version", "-V", "completions"]);
        match self.code {
            Some(0) => self.check_success(with_json).map(|()| true),
            Some(2 | 130) if !place.is_empty() => Err(format!("a caught panic: {place} | {shown}")),
            Some(2 | 130) => self.check_failure().map(|()| false),
            other => Err(format!("exit code {other:?} {place} | {shown}")),
        }
    }

    fn check_success(&self, with_json: bool) -> Result<(), String> {
        for line in self.stderr.lines() {
            check_line(line).map_err(|what| format!("on stderr: {what}"))?;
        }
        if with_json && !self.stdout.is_empty() {
            let parsed = serde_json::from_slice::<serde_json::Value>(&self.stdout);
            parsed.map_err(|e| format!("stdout is not JSON | {e}"))?;
        }
        Ok(())
    }

    fn check_failure(&self) -> Result<(), String> {
        let shown: String = self.stderr.chars().take(300).collect();
        if self.code == Some(2)
            && (self.stderr.starts_with("error: ") || self.stderr.contains("Usage: drift"))
        {
            let odd = self.stderr.chars().find(|c| c.is_control() && !"\n\t".contains(*c));
            return odd.map_or(Ok(()), |c| {
                Err(format!("usage with a control character | {} in {shown}", c.escape_unicode()))
            });
        }
        // Notes on what was read may stand before the error, which is one line, and the last.
        let Some(text) = self.stderr.strip_suffix('\n') else {
            return Err(format!("no line | {shown}"));
        };
        let (notes, last) = text.rsplit_once('\n').map_or(("", text), |(notes, last)| (notes, last));
        let Some(line) = last.strip_prefix("drift: ") else {
            return Err(format!("the last line does not begin with `drift: ` | {shown}"));
        };
        for note in notes.lines() {
            check_line(note).map_err(|what| format!("in a note: {what}"))?;
            if note.starts_with("drift: ") {
                return Err(format!("more than one error | {shown}"));
            }
        }
        // An evaluation that is interrupted shows what was finished, and says so.
        if !self.stdout.is_empty() && !line.contains("contains what was finished") {
            return Err(format!("{} bytes on stdout beside an error | {shown}", self.stdout.len()));
        }
        check_line(line)
    }
}

/// Arguments as the program takes them.
pub(crate) fn arguments(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}
