//! Constructors of processors whose errors name alternatives that work with the tokenizer. Every alternative that is named was
//! tried.

use std::sync::Arc;

use super::{SchemeKind, commands, possible};
use crate::placeholder::{FitReport, takes_templates};
use drift_core::command::DriftCommand;
use drift_core::constraint::automaton::AutomatonProcessor;
use drift_core::constraint::{LogitProcessor, Placeholder, ProcessorKind, Specials};
use drift_core::{Encoding, Error, Result, Tokenizer};

/// The remedy if nothing works.
const NOTHING: &str =
    "use another tokenizer: neither templates, nor the automaton, nor an extension work with this one";

/// Builds the automaton for a tokenizer and an encoding. `eos` ends a text.
///
/// # Errors
/// If the automaton cannot be exact for this kind of tokenizer; the remedy names what works instead.
pub fn automaton(tokenizer: &Arc<Tokenizer>, encoding: Encoding, eos: u32) -> Result<AutomatonProcessor> {
    AutomatonProcessor::new(tokenizer.clone(), encoding, eos)
        .map_err(|error| advised(error, tokenizer, encoding))
}

/// Builds a logit processor, as [`LogitProcessor::new`] does.
///
/// # Errors
/// The errors of [`LogitProcessor::new`]. If the automaton refuses a tokenizer, the remedy names what works instead.
pub fn logit_processor(
    kind: ProcessorKind,
    tokenizer: &Arc<Tokenizer>,
    encoding: Encoding,
    placeholder: Option<&Placeholder>,
    specials: Specials,
) -> Result<LogitProcessor> {
    LogitProcessor::new(kind, tokenizer.clone(), encoding, placeholder, specials).map_err(
        |error| match kind {
            ProcessorKind::Automaton | ProcessorKind::Geometry => advised(error, tokenizer, encoding),
            _ => error,
        },
    )
}

/// Adds what works instead to the automaton's error.
fn advised(error: Error, tokenizer: &Tokenizer, encoding: Encoding) -> Error {
    match error {
        // Only the automaton's own refusals have an empty remedy.
        Error::Input { place, problem, remedy } if remedy.is_empty() => {
            let mut found: Vec<String> = Vec::new();
            found.extend(
                extension(tokenizer, SchemeKind::Fused, encoding).map(|way| format!("extend it: {way}")),
            );
            if takes_templates(tokenizer, encoding).unwrap_or(false) {
                found.push(format!("{} finds a placeholder", commands::fit(tokenizer, encoding)));
            }
            let remedy = if found.is_empty() { NOTHING.to_owned() } else { found.join("; or ") };
            Error::input(place, problem, remedy)
        }
        error => error,
    }
}

/// Adds what works instead to every refusal of a fit.
pub fn complete(report: &mut FitReport, tokenizers: &[Tokenizer]) {
    for refused in &mut report.refused {
        let known = tokenizers.iter().find(|tokenizer| tokenizer.name == refused.tokenizer);
        if let Some(tokenizer) = known {
            refused.instead = instead_of_templates(tokenizer, refused.encoding);
        }
    }
}

/// Returns the alternatives for a tokenizer for which no template works.
fn instead_of_templates(tokenizer: &Tokenizer, encoding: Encoding) -> String {
    let mut found = Vec::new();
    if commands::has_automaton(tokenizer, encoding) {
        // The automaton follows the text, and needs no placeholder.
        found.push(format!("{} or moldrift.Automaton", commands::grammar(tokenizer, encoding)));
    }
    found.extend(
        extension(tokenizer, SchemeKind::Separate, encoding).map(|way| format!("for templates {way}")),
    );
    if found.is_empty() {
        // A fused extension supports no templates either, so it is named only if nothing else works.
        found.extend(extension(tokenizer, SchemeKind::Fused, encoding).map(|way| way.to_string()));
    }
    if found.is_empty() { NOTHING.replace("use ", "") } else { found.join("; ") }
}

/// Returns the command for an extension, if one is possible.
fn extension(tokenizer: &Tokenizer, kind: SchemeKind, encoding: Encoding) -> Option<DriftCommand> {
    let tokens = possible(tokenizer, kind, encoding).ok()?;
    Some(commands::extension(tokenizer, kind, tokens, encoding))
}
