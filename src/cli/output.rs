//! Where results and messages go: results to stdout, everything else to stderr.

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Read, Seek, Write};
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;

use super::values::{in_flags, is_stdout, not_stdout};
use crate::report::Terminal;
use drift_core::Error;
use drift_core::error::{message, one_line, shortened_middle};
use drift_core::io::{AtomicFile, OutputSet};

/// How results are shown.
pub(super) struct Output {
    /// Whether to print one JSON document instead of tables.
    pub json: bool,
    terminal: Terminal,
}

impl Output {
    /// Returns the output to this process's stdout.
    pub(super) fn new(json: bool) -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let width = if is_terminal { terminal_width() } else { None };
        Output { json, terminal: Terminal { width, colour: is_terminal && !no_colour } }
    }

    /// Returns the width and colour that tables may use.
    pub(super) fn terminal(&self) -> Terminal {
        self.terminal
    }

    /// Prints a result.
    pub(super) fn text(&self, text: &str) -> anyhow::Result<()> {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        self.bytes(&mut text.as_bytes().chain(end.as_bytes()))
    }

    /// Prints a result as one JSON document.
    pub(super) fn document(&self, report: &impl Serialize) -> anyhow::Result<()> {
        self.text(&serde_json::to_string_pretty(report)?)
    }

    /// Writes a report to the file of `-o` as JSON. Returns whether stdout gets the report too, and so no tables.
    pub(super) fn record(&self, to: Option<&Path>, report: &impl Serialize) -> anyhow::Result<bool> {
        let mut files = OutputSet::new();
        let is_shown = self.record_beside(&mut files, to, report)?;
        files.commit()?;
        Ok(is_shown)
    }

    /// As [`record`](Self::record), with other files, which appear together.
    pub(super) fn record_beside(
        &self,
        files: &mut OutputSet,
        to: Option<&Path>,
        report: &impl Serialize,
    ) -> anyhow::Result<bool> {
        if let Some(path) = not_stdout(to) {
            files.put(path, (serde_json::to_string_pretty(report)? + "\n").as_bytes())?;
        }
        Ok(self.json || to.is_some_and(is_stdout))
    }

    /// Prints clap's output: help, or the version.
    pub(super) fn help(&self, help: &clap::Error) -> anyhow::Result<()> {
        let outcome = help.print().and_then(|()| std::io::stdout().flush());
        Ok(outcome.map_err(|e| Error::io(Path::new("stdout"), e))?)
    }

    /// Prints clap's error for a wrong command line. A value in it may be very long, and is then shortened.
    pub(super) fn usage_error(error: &clap::Error) -> ExitCode {
        let text = error.render().to_string();
        let shown = shortened_usage(&text);
        // clap colours the text that is not shortened. If stderr is closed, there is nobody to tell.
        let _ = if shown == text { error.print() } else { write!(std::io::stderr(), "{shown}") };
        ExitCode::from(2)
    }

    /// Copies a finished file to stdout.
    pub(super) fn file(&self, path: &Path) -> anyhow::Result<()> {
        self.bytes(&mut File::open(path).map_err(|e| Error::io(path, e))?)
    }

    /// Refuses `-o -` beside `--json`, since both write to stdout. `what` is the result that `-o` names.
    pub(super) fn refuse_stdout(&self, to: Option<&Path>, what: &str) -> Result<(), Error> {
        if self.json && to.is_some_and(is_stdout) {
            let remedy = format!("write the {what} to a file");
            return Err(Error::input("-o -", "--json already writes to stdout", remedy));
        }
        Ok(())
    }

    /// Writes a result that is made in pieces to the file of `-o`, or prints it once it is complete.
    pub(super) fn pieces<R>(
        &self,
        to: &Path,
        each: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<R, Error>,
    ) -> anyhow::Result<R> {
        if is_stdout(to) {
            let mut aside = StagedOutput::new()?;
            let report = each(&mut |bytes| aside.put(bytes))?;
            aside.show(self)?;
            return Ok(report);
        }
        let mut file = AtomicFile::create(to)?;
        let report = each(&mut |bytes| file.put(bytes))?;
        file.commit()?;
        Ok(report)
    }

    fn bytes(&self, bytes: &mut impl Read) -> anyhow::Result<()> {
        let mut stdout = std::io::stdout().lock();
        let outcome = std::io::copy(bytes, &mut stdout).and_then(|_| stdout.flush());
        Ok(outcome.map_err(|e| Error::io(Path::new("stdout"), e))?)
    }

    /// Writes a note that is not part of the result.
    pub(super) fn note(&self, text: &str) {
        // If stderr is closed, there is nobody to tell.
        let _ = writeln!(std::io::stderr(), "{}", one_line(&in_flags(text)));
    }

    /// Writes an error, in one line.
    pub(super) fn error(&self, error: &anyhow::Error) {
        // drift's own errors are complete in one line; other errors are shown with the whole chain of causes.
        let text = match error.downcast_ref::<Error>() {
            Some(error) => in_flags(&error.to_string()),
            None => format!("{error:#}"),
        };
        let _ = writeln!(std::io::stderr(), "drift: {}", message(&text));
    }
}

/// A result that is made in pieces, kept in a temporary file until it is complete.
pub(super) struct StagedOutput(BufWriter<File>);

impl StagedOutput {
    /// Returns an empty result.
    pub(super) fn new() -> anyhow::Result<Self> {
        let file = tempfile::tempfile().map_err(|e| Error::io(&std::env::temp_dir(), e))?;
        Ok(StagedOutput(BufWriter::new(file)))
    }

    /// Adds a piece.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.0.write_all(bytes).map_err(|e| Error::io(&std::env::temp_dir(), e))
    }

    /// Prints the whole result.
    pub(super) fn show(self, output: &Output) -> anyhow::Result<()> {
        let fail = |e| Error::io(&std::env::temp_dir(), e);
        let mut file = self.0.into_inner().map_err(|e| fail(e.into_error()))?;
        file.rewind().map_err(fail)?;
        output.bytes(&mut file)
    }
}

/// The longest word, the longest line and the largest number of lines of a usage error. clap's own have fewer.
const USAGE_WORD_CHARACTERS: usize = 120;
const USAGE_CHARACTERS: usize = 1_000;
const USAGE_LINES: usize = 40;

/// Returns a usage error without the middle of long words and lines, and without lines in the middle of a long text.
fn shortened_usage(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let kept = if lines.len() > USAGE_LINES { USAGE_LINES / 2 } else { lines.len() };
    let ends = lines.iter().take(kept).chain(lines.iter().skip(kept.max(lines.len() - kept)));
    ends.map(|line| shortened_line(line) + "\n").collect()
}

fn shortened_line(line: &str) -> String {
    let words: Vec<String> =
        line.split(' ').map(|word| shortened_middle(word, USAGE_WORD_CHARACTERS)).collect();
    shortened_middle(&words.join(" "), USAGE_CHARACTERS)
}

/// Returns the width of the terminal in columns.
fn terminal_width() -> Option<u16> {
    terminal_size::terminal_size().map(|(width, _)| width.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_errors_stay_short() {
        let usual = "error: invalid value 'x' for '--batch <N>'\n\nFor more information, try '--help'.\n";
        assert_eq!(shortened_usage(usual), usual);
        let long = usual.replace('x', &"é".repeat(100_000));
        let shown = shortened_usage(&long);
        assert!(
            shown.chars().count() < 600
                && shown.ends_with("é' for '--batch <N>'\n\nFor more information, try '--help'.\n")
        );
        let lines = usual.replace('x', &"x\n".repeat(100_000));
        let shown = shortened_usage(&lines);
        assert!(shown.lines().count() == USAGE_LINES && shown.contains("--batch"), "{shown}");
    }
}
