//! What works with a tokenizer, as commands that run as they are printed.

use std::sync::Arc;

use super::extension::extend::{AS_IT_IS, FEWER_NUMBERS, OTHER_BASE, WHOLE_NUMBERS};
use super::scheme::cuts::SchemeKind;
use crate::placeholder::takes_templates;
use drift_core::command::DriftCommand;
use drift_core::constraint::automaton::AutomatonProcessor;
use drift_core::{Encoding, Error, Tokenizer};

/// The molecule of a command that needs one where the user gave none.
const EXAMPLE: &str = "CCO";

/// Finds a placeholder.
pub(super) fn fit(tokenizer: &Tokenizer, encoding: Encoding) -> DriftCommand {
    with_encoding(DriftCommand::new("fit").option("--tokenizer", &tokenizer.place), encoding)
}

/// Writes the grammar of an example.
pub(super) fn grammar(tokenizer: &Tokenizer, encoding: Encoding) -> DriftCommand {
    let command = DriftCommand::new("export-grammar").option("--tokenizer", &tokenizer.place);
    with_encoding(command, encoding).word(EXAMPLE)
}

/// Extends a tokenizer, into a folder that is named after it.
pub(super) fn extension(
    tokenizer: &Tokenizer,
    kind: SchemeKind,
    tokens: usize,
    encoding: Encoding,
) -> DriftCommand {
    let command = DriftCommand::new("train-tokenizer")
        .option("--base", &tokenizer.place)
        .option("--kind", kind.name())
        .option("--tokens-per-block", tokens);
    with_encoding(command, encoding).option("-o", format!("{}-{}", tokenizer.name, kind.name()))
}

fn with_encoding(command: DriftCommand, encoding: Encoding) -> DriftCommand {
    command.option("--encoding", encoding.argument())
}

/// Returns whether the automaton is exact for a tokenizer. The end token does not matter for that.
pub(super) fn has_automaton(tokenizer: &Tokenizer, encoding: Encoding) -> bool {
    AutomatonProcessor::new(Arc::new(tokenizer.clone()), encoding, u32::MAX).is_ok()
}

/// Returns the error of a base that cannot be extended, with what works with it as it is. Everything that is named was tried.
pub(super) fn with_commands(error: Error, tokenizer: &Tokenizer, encoding: Encoding) -> Error {
    match error {
        Error::Input { place, problem, remedy } if is_of_base(&remedy) => {
            Error::input(place, problem, completed(&remedy, tokenizer, encoding))
        }
        Error::Parameter { parameter, problem, remedy } if is_of_base(&remedy) => {
            Error::parameter(parameter, problem, completed(&remedy, tokenizer, encoding))
        }
        error => error,
    }
}

/// Returns whether a remedy says that the base cannot be extended for the encoding.
fn is_of_base(remedy: &str) -> bool {
    [AS_IT_IS, FEWER_NUMBERS, OTHER_BASE, WHOLE_NUMBERS].contains(&remedy)
}

/// Such a remedy with the commands that work with the base as it is.
fn completed(remedy: &str, tokenizer: &Tokenizer, encoding: Encoding) -> String {
    let mut ways: Vec<String> = Vec::new();
    if takes_templates(tokenizer, encoding).unwrap_or(false) {
        ways.push(format!("{} finds a placeholder", fit(tokenizer, encoding)));
    }
    if has_automaton(tokenizer, encoding) {
        ways.push(format!("{} writes a grammar", grammar(tokenizer, encoding)));
    }
    match (remedy, ways.is_empty()) {
        (AS_IT_IS, true) => OTHER_BASE.to_owned(),
        (_, true) => remedy.to_owned(),
        (AS_IT_IS, false) => format!("{AS_IT_IS}: {}", ways.join("; ")),
        (_, false) => format!("{remedy}; as it is, {}", ways.join("; ")),
    }
}
