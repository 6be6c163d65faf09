//! The paths on a command line. A few options name what a command writes; every other path is one that it reads, so no command has
//! to list its inputs.

use std::any::TypeId;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command};

use drift_core::Encoding;
use drift_core::checkpoint::{RequiredFiles, locate};
use drift_core::run_files::RunFiles;

/// The options that name a file or folder to write.
pub(super) const OUTPUTS: [&str; 12] = [
    "output",
    "html",
    "texts",
    "molecules",
    "verdicts",
    "matrix",
    "summary",
    "trace",
    "energy-cache",
    "energy-list",
    "drop-shared",
    "list",
];

/// The options that name a model or a tokenizer.
const MODELS: [&str; 5] = ["model", "init", "tokenizer", "base", "new-tokens-of"];

/// The positional argument that names models.
const POSITIONAL_MODELS: &str = "models";

/// The options with a text that may be the path of a file.
const TEXTS: [&str; 1] = ["placeholder"];

/// The option with a shell command.
const PROGRAM: &str = "energy";

/// Returns the inputs on a command line: of every option that may name one, the values that exist.
pub(super) fn inputs(command: &Command, matches: &ArgMatches) -> RunFiles {
    let mut files = RunFiles::new();
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        let Some(kind) = kind(argument).filter(|_| matches.try_contains_id(id).is_ok()) else { continue };
        for value in matches.get_raw(id).into_iter().flatten() {
            files = kind.add(files, value);
        }
    }
    files
}

/// What the values of an option are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Files or folders.
    Files,
    /// Models or tokenizers: paths, or names in the cache of Hugging Face.
    Models,
    /// A shell command, which may run a script.
    Program,
}

/// Returns what an option reads; `None` if it reads no file.
fn kind(argument: &Arg) -> Option<Kind> {
    let name = argument.get_long().unwrap_or_default();
    let of = argument.get_value_parser().type_id();
    let is_path = of == TypeId::of::<PathBuf>() || of == TypeId::of::<Encoding>();
    match name {
        PROGRAM => Some(Kind::Program),
        _ if OUTPUTS.contains(&name) || !(is_path || TEXTS.contains(&name)) => None,
        _ if MODELS.contains(&name) || argument.get_id() == POSITIONAL_MODELS => Some(Kind::Models),
        _ => Some(Kind::Files),
    }
}

impl Kind {
    fn add(self, files: RunFiles, value: &OsStr) -> RunFiles {
        let path = Path::new(value);
        match self {
            Kind::Files => files.reads(path),
            // The command itself says what is wrong with a name that is not in the cache.
            Kind::Models => {
                files.reads_model(&locate(path, RequiredFiles::Folder).unwrap_or_else(|_| path.into()))
            }
            Kind::Program => value.to_string_lossy().split_whitespace().fold(files, |files, word| {
                let path = Path::new(word.trim_matches(['\'', '"']));
                if path.is_file() { files.reads(path) } else { files }
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// A new option must not be taken for the wrong kind, so all are listed.
    #[test]
    fn every_option_that_names_a_file_is_known() {
        let command = super::super::Cli::command();
        let mut commands: Vec<&Command> = command.get_subcommands().collect();
        let mut read = std::collections::BTreeSet::new();
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands());
            let inputs = command.get_arguments().filter(|argument| kind(argument).is_some());
            read.extend(inputs.map(|argument| argument.get_long().unwrap_or("").to_owned()));
        }
        let expected = [
            "",
            "against",
            "base",
            "corpus",
            "encoding",
            "energy",
            "examples",
            "init",
            "input-encoding",
            "model",
            "new-tokens-of",
            "placeholder",
            "prompts",
            "references",
            "reuse",
            "same-as",
            "skeleton",
            "smiles",
            "smiles-of",
            "tokenizer",
        ];
        assert_eq!(read.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }
}
