//! Command lines that messages print. A command runs as it is printed, in any folder: its words are quoted for the shell, and its
//! paths are absolute.

use std::path::Path;

use crate::error::is_unseen;

/// Quotes a word for the shell.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:=,@%+-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    // Messages show invisible characters by their codes, so the quotes must hold codes too.
    if word.contains(|c: char| is_unseen(c) || c == '`') {
        let bytes = word.bytes().map(|byte| match byte {
            b'\'' | b'\\' | b'`' | 0..0x20 | 0x7f.. => format!("\\x{byte:02x}"),
            _ => char::from(byte).to_string(),
        });
        return format!("$'{}'", bytes.collect::<String>());
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns a path as a command names it in any folder.
pub fn absolute(path: &Path) -> String {
    // Fails only without a current folder, and then no relative name works.
    std::path::absolute(path).as_deref().unwrap_or(path).display().to_string()
}

/// A command line of drift.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriftCommand {
    line: String,
}

impl DriftCommand {
    /// Returns a verb without options.
    pub fn new(verb: &str) -> Self {
        DriftCommand { line: format!("drift {verb}") }
    }

    /// Returns the line, as it is typed.
    pub fn line(self) -> String {
        self.line
    }

    /// With one more word, such as a SMILES.
    #[must_use]
    pub fn word(mut self, word: &str) -> Self {
        self.line.push(' ');
        self.line.push_str(&quoted(word));
        self
    }

    /// With an option and its value.
    #[must_use]
    pub fn option(self, flag: &str, value: impl ToString) -> Self {
        self.word(flag).word(&value.to_string())
    }
}

/// In backticks, as messages show commands.
impl std::fmt::Display for DriftCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}`", self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `sh` and bash make of a quoted word is the word.
    #[test]
    fn the_shell_reads_words_as_they_were() {
        let words =
            ["plain-1.2,/x:y", "", "two words", "it's", "$HOME \"x\" \\n;&|*?[a]~!#", "[C@H](C)=O", "grüße"];
        for (shell, words) in [("sh", &words[..]), ("bash", &["a\nb", "`id`'\\x41", "\u{202e}é\t"])] {
            let line = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
            assert!(!line.contains('\n'), "{line}");
            let script = format!("printf '%s\\0' {line}");
            let Ok(output) = std::process::Command::new(shell).args(["-c", &script]).output() else {
                continue;
            };
            let read = String::from_utf8(output.stdout).unwrap();
            assert_eq!(read.split_terminator('\0').collect::<Vec<_>>(), words);
        }
    }

    #[test]
    fn a_command_is_one_line_in_backticks() {
        let command =
            DriftCommand::new("fit").option("--tokenizer", "/a b").option("--encoding", "fixed").word("C#N");
        assert_eq!(command.to_string(), "`drift fit --tokenizer '/a b' --encoding fixed 'C#N'`");
    }
}
