//! The one error type of the library: what went wrong, where, and what to do about it.

use std::path::Path;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong. `Display` is one line: `place: problem; remedy`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An input (file, record, option value) that cannot be used.
    #[error("{place}: {problem}{}", remedy_suffix(.remedy))]
    Input {
        /// File and position, or the option at fault.
        place: String,
        /// What is wrong.
        problem: String,
        /// What the user can do; may be empty.
        remedy: String,
    },
    /// The operating system refused something.
    #[error("{place}: {source}")]
    Io {
        /// The path at fault.
        place: String,
        /// The system's own words.
        source: std::io::Error,
    },
    /// Ctrl-C; nothing was half-written.
    #[error("interrupted; nothing was written")]
    Interrupted,
    /// Ctrl-C; what was done so far is on disk, whole.
    #[error("interrupted; {kept}")]
    Stopped {
        /// What was kept, and how to go on.
        kept: String,
    },
}

fn remedy_suffix(remedy: &str) -> String {
    if remedy.is_empty() { String::new() } else { format!("; {remedy}") }
}

impl Error {
    /// An unusable input at `place`.
    pub fn input(place: impl ToString, problem: impl ToString, remedy: impl ToString) -> Self {
        Error::Input {
            place: one_line(&place.to_string()),
            problem: one_line(&problem.to_string()),
            remedy: one_line(&remedy.to_string()),
        }
    }

    /// A system error at `path`.
    pub fn io(path: &Path, source: std::io::Error) -> Self {
        Error::Io { place: path.display().to_string(), source }
    }

    /// The process's exit code: 130 interrupted, else 2 (usage or input).
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Interrupted | Error::Stopped { .. } => 130,
            _ => 2,
        }
    }
}

/// Messages are one line: control characters and line breaks in names or quoted input are escaped.
fn one_line(text: &str) -> String {
    text.chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
        .collect()
}

/// A text on one line, to be shown as it would be written in code: line breaks, quotes and what cannot be seen are escaped.
pub fn escaped(text: &str) -> String {
    text.chars().flat_map(char::escape_debug).collect()
}

/// A short, printable excerpt of input, for messages.
pub fn excerpt(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(40)];
    let text = one_line(&String::from_utf8_lossy(shown));
    if bytes.len() > shown.len() { format!("`{text}…`") } else { format!("`{text}`") }
}
