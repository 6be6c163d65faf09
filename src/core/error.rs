//! The library's error type: what went wrong, where, and what to do about it.

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
        /// The file and position, or the option.
        place: String,
        /// The problem.
        problem: String,
        /// What the user can do; may be empty.
        remedy: String,
    },
    /// A value of a plan that cannot be used. The code that took it from a user knows its name there.
    #[error("{parameter}: {problem}{}", remedy_suffix(.remedy))]
    Parameter {
        /// The parameter.
        parameter: Parameter,
        /// The problem.
        problem: String,
        /// What the user can do; may be empty.
        remedy: String,
    },
    /// A bug in drift, not a problem of its input.
    #[error("{place}: {problem}")]
    Internal {
        /// The operation that failed.
        place: String,
        /// What went wrong.
        problem: String,
    },
    /// An error of the operating system.
    #[error("{place}: {}{}", system_words(.source), remedy_suffix(system_remedy(.source)))]
    Io {
        /// The path.
        place: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// A device failed in such a way that this process can compute nothing more on it.
    #[error("{place}: {problem}; {remedy}")]
    DeviceLost {
        /// The device.
        place: String,
        /// The first failure.
        problem: String,
        /// What the user can do.
        remedy: String,
    },
    /// Ctrl-C; no output was written.
    #[error("interrupted; nothing was written")]
    Interrupted,
    /// Ctrl-C; the work done so far is complete on disk.
    #[error("interrupted; {kept}")]
    Stopped {
        /// What was kept, and how to continue.
        kept: String,
    },
}

/// A setting that users can change, by a descriptive name. Messages show it in single quotes, ‘tokens per block’, so that a program
/// can replace it with the name on its own command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter(&'static str);

impl Parameter {
    /// Returns a parameter with this name. Each crate defines its parameters in its module `parameter`.
    pub const fn new(name: &'static str) -> Self {
        Parameter(name)
    }

    /// Returns its descriptive name.
    pub fn name(self) -> &'static str {
        self.0
    }
}

impl std::fmt::Display for Parameter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "‘{}’", self.name())
    }
}

/// Returns the system's message, without its error number.
fn system_words(error: &std::io::Error) -> String {
    // The number differs between systems and adds nothing to the message.
    let words = one_line(&error.to_string());
    let end = words.find(" (os error ").unwrap_or(words.len());
    shortened_end(&words[..end], MESSAGE_CHARACTERS - PLACE_CHARACTERS)
}

/// Returns what the user can do about a system error; may be empty.
fn system_remedy(error: &std::io::Error) -> &'static str {
    use std::io::ErrorKind as Kind;
    match error.kind() {
        Kind::NotFound | Kind::NotADirectory | Kind::IsADirectory => "check the path",
        Kind::PermissionDenied | Kind::ReadOnlyFilesystem => "write to another place, or get permission",
        Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge | Kind::WriteZero => {
            "make room, or write to another place"
        }
        Kind::InvalidFilename => "give a shorter name",
        Kind::OutOfMemory => "give it more memory, or reduce the work",
        _ => "",
    }
}

fn remedy_suffix(remedy: &str) -> String {
    if remedy.is_empty() { String::new() } else { format!("; {remedy}") }
}

impl Error {
    /// Returns an unusable input at `place`.
    pub fn input(place: impl ToString, problem: impl ToString, remedy: impl ToString) -> Self {
        let place = shortened_middle(&one_line(&place.to_string()), PLACE_CHARACTERS);
        let (problem, remedy) = limited(&place, &problem, &remedy);
        Error::Input { place, problem, remedy }
    }

    /// Returns an unusable value of a plan. Problem and remedy must mention parameters in the form of [`Parameter`].
    pub fn parameter(parameter: Parameter, problem: impl ToString, remedy: impl ToString) -> Self {
        let (problem, remedy) = limited(parameter.name(), &problem, &remedy);
        Error::Parameter { parameter, problem, remedy }
    }

    /// Returns a bug: something that should not happen, whatever the input.
    pub fn internal(place: impl ToString, problem: impl ToString) -> Self {
        let place = shortened_middle(&one_line(&place.to_string()), PLACE_CHARACTERS);
        let (problem, _) = limited(&place, &problem, &"");
        Error::Internal { place, problem }
    }

    /// Returns a device that this process has lost, with the first failure.
    pub fn device_lost(place: impl ToString, problem: impl ToString, remedy: impl ToString) -> Self {
        let place = shortened_middle(&one_line(&place.to_string()), PLACE_CHARACTERS);
        let (problem, _) = limited(&place, &problem, &"");
        let problem = shortened_end(&problem, USUAL_CHARACTERS - PLACE_CHARACTERS);
        Error::DeviceLost {
            place,
            problem,
            remedy: shortened_end(&one_line(&remedy.to_string()), REMEDY_CHARACTERS),
        }
    }

    /// Returns a system error at `path`.
    pub fn io(path: &Path, source: std::io::Error) -> Self {
        Error::Io {
            place: shortened_middle(&one_line(&path.display().to_string()), PLACE_CHARACTERS),
            source,
        }
    }

    /// Returns the exit code of the process: 130 if interrupted, 70 for a bug in drift, otherwise 2 (usage or input).
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Interrupted | Error::Stopped { .. } => 130,
            Error::Internal { .. } => 70,
            _ => 2,
        }
    }
}

/// Limits in characters for a message and its parts, so that it takes no more than a few lines of a terminal. A problem may use the
/// space that place and a usual remedy leave. A remedy with commands may be longer, because a part of a command cannot be run.
const MESSAGE_CHARACTERS: usize = 490;
const USUAL_CHARACTERS: usize = 380;
const PLACE_CHARACTERS: usize = 120;
const USUAL_REMEDY_CHARACTERS: usize = 150;
const REMEDY_CHARACTERS: usize = 260;
const COMMANDS_CHARACTERS: usize = 4_000;

/// Any text as a single message: on one line and not too long.
pub fn message(text: &str) -> String {
    let most = if has_command(text) { MESSAGE_CHARACTERS + COMMANDS_CHARACTERS } else { MESSAGE_CHARACTERS };
    shortened_end(&one_line(text), most)
}

/// Returns whether a text holds a command line of [`crate::command`].
fn has_command(text: &str) -> bool {
    text.contains("`drift ")
}

/// Shortens a problem and a remedy so that both fit beside the place.
fn limited(place: &str, problem: &dyn ToString, remedy: &dyn ToString) -> (String, String) {
    let remedy = one_line(&remedy.to_string());
    let most = if has_command(&remedy) { COMMANDS_CHARACTERS } else { REMEDY_CHARACTERS };
    let remedy = shortened_end(&remedy, most);
    let beside = remedy.chars().count().min(USUAL_REMEDY_CHARACTERS);
    // Place and remedy are bounded by less than this, so the difference stays above 0.
    let room = USUAL_CHARACTERS - place.chars().count().min(PLACE_CHARACTERS) - beside;
    (shortened_end(&one_line(&problem.to_string()), room), remedy)
}

/// Text of an input or a name, made safe for one line of a terminal. Characters that would move the cursor, end the line or change
/// the writing direction are escaped.
pub fn one_line(text: &str) -> String {
    if !text.contains(is_unseen) {
        return text.to_owned();
    }
    let shown = |c: char| if is_unseen(c) { c.escape_default().collect() } else { String::from(c) };
    text.chars().map(shown).collect()
}

/// Returns whether a character is invisible: a control character, or one that only affects the characters around it.
pub fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Shortens a text to `most` characters, keeping its first third and its end, which identify a path and a member of an archive.
pub fn shortened_middle(text: &str, most: usize) -> String {
    let characters = text.chars().count();
    if characters <= most {
        return text.to_owned();
    }
    let first = most / 3;
    let start: String = text.chars().take(first).collect();
    let end: String = text.chars().skip(characters - (most - first - 1)).collect();
    format!("{start}…{end}")
}

/// Shortens a text to its first `most` characters.
pub fn shortened_end(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let start: String = text.chars().take(most - 1).collect();
    format!("{start}…")
}

/// Returns a text on one line as it would appear in code: line breaks, quotes and invisible characters are escaped.
pub fn escaped(text: &str) -> String {
    text.chars().flat_map(char::escape_debug).collect()
}

/// Returns a short printable excerpt of input, in backticks, for messages.
pub fn excerpt(bytes: &[u8]) -> String {
    // A cut inside a character shows as U+FFFD.
    let shown = &bytes[..bytes.len().min(40)];
    let text = one_line(&String::from_utf8_lossy(shown));
    if bytes.len() > shown.len() { format!("`{text}…`") } else { format!("`{text}`") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_never_cut() {
        let command = format!("`drift fit --tokenizer /{} --encoding fixed`", "deep/".repeat(150));
        let error = Error::input("t", "bad ".repeat(1000), format!("{command}; or {command}")).to_string();
        assert_eq!(message(&error).matches(&command).count(), 2, "{error}");
        assert!(message(&"x`drift ".repeat(10_000)).chars().count() < 5_000);
    }

    #[test]
    fn messages_are_one_short_line_without_what_moves_the_cursor() {
        let name = format!("{}/x\u{1b}[2J\n\u{202e}.json", "deep/".repeat(500));
        let errors = [
            Error::input(&name, "bad ".repeat(1000), "do ".repeat(1000)),
            Error::parameter(Parameter::new("batch"), "bad\0".repeat(1000), ""),
            Error::io(Path::new(&name), std::io::Error::other("\r\n".repeat(1000))),
            Error::internal(&name, "bad ".repeat(1000)),
        ];
        for text in errors.map(|error| error.to_string()) {
            assert!(text.chars().count() <= 500, "{text}");
            assert!(!text.contains(|c: char| c.is_control() || c == '\u{202e}'), "{text}");
        }
        assert!(Error::input(&name, "bad", "").to_string().contains(r"x\u{1b}[2J\n\u{202e}.json: bad"));
    }

    #[test]
    fn errors_of_the_system_say_what_to_do() {
        let error = |number| Error::io(Path::new("x"), std::io::Error::from_raw_os_error(number)).to_string();
        assert_eq!(error(2), "x: No such file or directory; check the path");
        assert_eq!(error(28), "x: No space left on device; make room, or write to another place");
    }
}
