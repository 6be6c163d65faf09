//! One run of an energy program: passes it a batch, collects its answers, and makes sure that it ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::{EnergyAnswer, EnergyPlan};
use crate::parameter;
use drift_core::error::excerpt;
use drift_core::{Error, Job, Result};

/// The interval at which the job is checked for cancellation.
const STEP: Duration = Duration::from_millis(50);

/// The longest line that may contain two numbers, in bytes.
const MAX_LINE_BYTES: u64 = 1_000;

/// The number of bytes of the program's messages that are kept, from the end.
const KEPT_BYTES: usize = 4_000;

/// How a run ended.
pub(super) enum RunEnd {
    /// All frames were answered.
    Done,
    /// The program answered no frame for too long and was killed.
    Silent,
    /// The program failed, or the job was cancelled.
    Failed(Error),
}

/// Runs the program on a batch of `frames` frames. Returns the answers for the first of them, in order, and how the run ended.
pub(super) fn run(
    plan: &EnergyPlan,
    input: Vec<u8>,
    frames: usize,
    job: &Job,
) -> (Vec<EnergyAnswer>, RunEnd) {
    let mut answers = Vec::with_capacity(frames);
    let ended = match RunningProgram::start(plan, input) {
        Ok(mut running) => running.gather(frames, &mut answers, job),
        Err(error) => RunEnd::Failed(error),
    };
    (answers, ended)
}

/// A running program.
struct RunningProgram<'p> {
    plan: &'p EnergyPlan,
    child: Child,
    lines: Receiver<Vec<u8>>,
    messages: Receiver<Vec<u8>>,
    /// Whether its last answer has a line end. The last line of a program that was killed may be half of one.
    last_is_whole: bool,
    /// The time at which it last answered a frame. Comments and empty lines do not count: a program that hangs may go on writing them.
    heard: Instant,
}

impl<'p> RunningProgram<'p> {
    fn start(plan: &'p EnergyPlan, input: Vec<u8>) -> Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", &plan.command]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Its own process group, so that its child processes can be killed with it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let failed = |e: std::io::Error| {
            Error::parameter(
                parameter::ENERGY,
                format!("cannot be started: {e}"),
                "check that there is a shell, sh",
            )
        };
        let mut child = command.spawn().map_err(failed)?;
        // Each of the three pipes has its own thread: a pipe that nobody reads would block the program, and drift with it.
        let (send_line, lines) = sync_channel(64);
        let (send_messages, messages) = sync_channel(1);
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        thread::spawn(move || {
            // A program that does not read all of its input reports the reason itself.
            let _ = stdin.map(|mut stdin| stdin.write_all(&input));
        });
        thread::spawn(move || stdout.map(|stdout| send_lines(stdout, &send_line)));
        thread::spawn(move || {
            let _ = send_messages.send(stderr.map(last_bytes).unwrap_or_default());
        });
        Ok(RunningProgram { plan, child, lines, messages, last_is_whole: true, heard: Instant::now() })
    }

    /// Collects answers until all have come, or no more can come.
    fn gather(&mut self, frames: usize, answers: &mut Vec<EnergyAnswer>, job: &Job) -> RunEnd {
        let outcome = loop {
            match self.lines.recv_timeout(STEP) {
                Ok(line) => match self.answer(&line, answers.len(), frames) {
                    Ok(Some(answer)) => {
                        self.heard = Instant::now();
                        self.last_is_whole = line.ends_with(b"\n");
                        answers.push(answer);
                    }
                    Ok(None) => {}
                    Err(error) => {
                        // No line is known to be of its frame.
                        answers.clear();
                        break RunEnd::Failed(error);
                    }
                },
                Err(RecvTimeoutError::Disconnected) => break self.after(frames, answers, job),
                Err(RecvTimeoutError::Timeout) => {}
            }
            // Also after a line: a program may write lines faster than the pause that `recv_timeout` waits for.
            if let Err(error) = job.check() {
                break RunEnd::Failed(error);
            }
            if self.heard.elapsed() >= self.plan.timeout {
                // If all answers are written, the program merely failed to exit.
                break if answers.len() == frames { RunEnd::Done } else { RunEnd::Silent };
            }
        };
        self.end();
        if matches!(outcome, RunEnd::Failed(_) | RunEnd::Silent) && !self.last_is_whole {
            answers.pop();
        }
        outcome
    }

    /// Parses a line; `None` for an empty line or a comment.
    fn answer(&self, line: &[u8], known: usize, frames: usize) -> Result<Option<EnergyAnswer>> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            return Ok(None);
        }
        if known == frames {
            let problem = format!("writes more than the {frames} lines that {frames} frames have");
            return Err(self.broken(problem));
        }
        let scale = self.plan.unit.kcal_per_mol();
        let mut numbers = text.split_whitespace().map(|word| {
            // Rust parses `nan` as a number; here it becomes an unknown energy.
            let number: Option<f64> = word.parse().ok();
            number.map(|number| Some(number * scale).filter(|number| number.is_finite()))
        });
        match (numbers.next().flatten(), numbers.next(), numbers.next()) {
            (Some(energy), None, None) => Ok(Some(EnergyAnswer { energy, ..EnergyAnswer::default() })),
            (Some(energy), Some(Some(relaxed)), None) => {
                Ok(Some(EnergyAnswer { energy, relaxed, timed_out: false }))
            }
            _ => Err(self.broken(format!(
                "writes a line that is not one or two numbers: {}",
                excerpt(text.as_bytes())
            ))),
        }
    }

    /// Determines how the program ended, after it closed its output.
    fn after(&mut self, frames: usize, answers: &mut Vec<EnergyAnswer>, job: &Job) -> RunEnd {
        let begun = Instant::now();
        // It has closed its output, but may not have exited yet.
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if begun.elapsed() < self.plan.timeout => {
                    if let Err(error) = job.check() {
                        return RunEnd::Failed(error);
                    }
                    thread::sleep(STEP / 5);
                }
                _ => break None,
            }
        };
        match status {
            Some(status) if !status.success() => RunEnd::Failed(self.died(status)),
            _ if answers.len() < frames => {
                // No line is known to be of its frame.
                let known = answers.drain(..).count();
                let lines = if known == 1 { "line" } else { "lines" };
                RunEnd::Failed(self.broken(format!("wrote {known} {lines} for {frames} frames")))
            }
            _ => RunEnd::Done,
        }
    }

    fn died(&self, status: ExitStatus) -> Error {
        let said = self.messages.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        let last = last.map_or_else(String::new, |line| format!(": {}", excerpt(line.trim().as_bytes())));
        let remedy = "try it on one frame; earlier answers are in the cache, if there is one";
        Error::parameter(parameter::ENERGY, format!("ended with {status}{last}"), remedy)
    }

    fn broken(&self, problem: String) -> Error {
        let remedy =
            "it has to write one line of one or two numbers for each frame, `nan` where there is none";
        Error::parameter(parameter::ENERGY, problem, remedy)
    }

    /// Kills the program and the processes that it started.
    fn end(&mut self) {
        let group = self.child.id();
        // Uses the shell's builtin `kill`: there is no safe call for process groups, and not every machine has the `kill` program.
        #[cfg(unix)]
        let _ = Command::new("sh")
            .args(["-c", &format!("kill -s KILL -- -{group}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends the output line by line, including a last line without a line end. A comment may have any length. Of another line that is
/// too long, only the beginning is sent, and nothing after it.
fn send_lines(stdout: impl Read, to: &SyncSender<Vec<u8>>) {
    let mut reader = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        let read = reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
        let mut is_last = !line.ends_with(b"\n");
        if is_last && line.trim_ascii_start().starts_with(b"#") {
            is_last = !skipped_line(&mut reader);
        }
        if !matches!(read, Ok(1..)) || to.send(line).is_err() || is_last {
            return;
        }
    }
}

/// Reads to the end of a line without keeping it. Returns whether it has an end.
fn skipped_line(reader: &mut impl BufRead) -> bool {
    loop {
        let Ok(block) = reader.fill_buf() else { return false };
        let (read, end) = (block.len(), memchr::memchr(b'\n', block));
        reader.consume(end.map_or(read, |at| at + 1));
        if end.is_some() || read == 0 {
            return end.is_some();
        }
    }
}

/// Returns the last [`KEPT_BYTES`] bytes of the input.
fn last_bytes(mut from: impl Read) -> Vec<u8> {
    let (mut kept, mut buffer) = (Vec::new(), [0; KEPT_BYTES]);
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..read]);
        let over = kept.len().saturating_sub(KEPT_BYTES);
        // The end of the output says why a program died.
        kept.drain(..over);
    }
    kept
}
