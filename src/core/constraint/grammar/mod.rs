//! The automaton as a grammar in token ids, for the structured-output engines of vLLM and SGLang.
//!
//! A grammar of *text* is not enough: an engine that follows text lets a model write legal texts in tokens that the tokenizer would
//! never produce for them. llguidance (Lark, `<[15,16]>`) and XGrammar (EBNF, `Token(15,16)`) accept token ids, so a grammar can
//! allow exactly what the automaton allows in each state.
//!
//! - `rules` turns a [`MoleculeTable`](super::automaton::MoleculeTable) into rules: one for each state of the block, shared by all
//!   blocks, and one for each distinct text between blocks.
//! - `skeleton` does so for the texts of a skeleton: a rule for each state of slots, and one for each place where a text may go on in
//!   several ways.
//! - `write` prints them. `drift_data::export` goes from SMILES to lines of grammars.

mod rules;
mod skeleton;
mod write;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::automaton::MoleculeAutomaton;
use super::skeleton::SkeletonConstraint;
use crate::error::{Error, Result};
use crate::parameter;
use crate::tokenizer::Tokenizer;

/// The syntax of a grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GrammarFormat {
    /// Lark, as llguidance reads it.
    Lark,
    /// EBNF, as XGrammar reads it.
    Ebnf,
    /// The tables of the automaton as JSON.
    Json,
}

crate::named!(GrammarFormat { Lark: "lark", Ebnf: "ebnf", Json: "json" });

impl std::fmt::Display for GrammarFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for GrammarFormat {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        GrammarFormat::ALL
            .into_iter()
            .find(|format| format.name() == name)
            .ok_or_else(|| Error::input("format", format!("there is no `{name}`"), "give lark, ebnf or json"))
    }
}

/// Returns whether llguidance (up to 1.9.1) can load a tokenizer, and so read its Lark grammars. It derives the bytes of tokens from the
/// decoder, and knows two kinds: `ByteLevel`, and sequences with `ByteLevel` or `ByteFallback`.
pub fn llguidance_loads(tokenizer: &Tokenizer) -> bool {
    // A decoder that was read from JSON can be written as JSON.
    let decoder = serde_json::to_value(tokenizer.inner().get_decoder()).unwrap_or_default();
    let parts = decoder["decoders"].as_array().map_or(&[][..], Vec::as_slice);
    decoder["type"] == "ByteLevel"
        || parts.iter().any(|part| part["type"] == "ByteLevel" || part["type"] == "ByteFallback")
}

/// The most blocks of a molecule whose grammar has a rule for each place between two blocks. These rules are nested, and other
/// engines run out of stack. (1,000 worked in llguidance 1.7 and XGrammar 0.2; 3,000 crashed both.)
const MAX_NESTED: usize = 1_000;

/// Returns the grammar of one molecule as text of the format; for [`GrammarFormat::Json`], the
/// [`MoleculeTable`](super::automaton::MoleculeTable) as JSON.
///
/// # Errors
/// If the molecule has more than 1,000 blocks and the tokenizer isolates only some of them: its grammar would be nested too deep
/// for engines. Or if it is larger than llguidance takes. The JSON tables have no such limits.
pub fn grammar(molecule_automaton: &MoleculeAutomaton, format: GrammarFormat) -> Result<String> {
    let table = molecule_automaton.table();
    if format == GrammarFormat::Json {
        return serde_json::to_string(&table).map_err(|e| Error::internal("the automaton's table", e));
    }
    // The other engine reads ids as they are.
    let mistaken =
        if format == GrammarFormat::Lark { molecule_automaton.mistaken() } else { &BTreeMap::new() };
    let rules = rules::rules(&table, mistaken);
    let blocks = table.order.len() - 1;
    if blocks > MAX_NESTED && rules.keys().any(|head| matches!(head, rules::Head::From(..))) {
        let problem = format!("a grammar of {blocks} atoms would be nested too deep");
        return Err(Error::input("molecule", problem, "leave it out, or use the tables"));
    }
    written("molecule", &rules, format)
}

/// The most sequences of symbols in the rules that llguidance (1.9) takes: each is a symbol of its own there, which has 16 bits.
const MOST_SEQUENCES: usize = 65_000;

/// Returns rules as text of a format; `of` is whose they are.
fn written(of: &str, rules: &rules::Rules, format: GrammarFormat) -> Result<String> {
    let sequences = rules.values().flatten().filter(|way| way.len() > 1).count();
    if format == GrammarFormat::Lark && sequences > MOST_SEQUENCES {
        let problem = format!("its grammar has {sequences} sequences, and llguidance takes {MOST_SEQUENCES}");
        return Err(Error::input(of, problem, "give ebnf, for XGrammar"));
    }
    let spelling = if format == GrammarFormat::Lark { write::LARK } else { write::EBNF };
    Ok(write::written(rules, &spelling))
}

/// Returns the grammar of a skeleton's texts for a prompt as text of the format.
///
/// # Errors
/// If the format is [`GrammarFormat::Json`], the text before a marker is free, or the grammar would be too large or nested too deep:
/// a grammar cannot count, so items in any order need a rule for each combination of their numbers.
pub fn skeleton_grammar(constraint: &SkeletonConstraint, format: GrammarFormat) -> Result<String> {
    let refuse = |problem: &str, remedy: &str| Err(Error::input(constraint.name(), problem, remedy));
    if format == GrammarFormat::Json {
        return refuse("skeletons have no tables", "give lark or ebnf");
    }
    if constraint.has_marker() {
        let remedy = format!(
            "end prompts with the marker and give it with {}, or take moldrift.SkeletonAutomaton",
            parameter::BEGUN
        );
        return refuse("a grammar cannot leave the text before a marker free", &remedy);
    }
    if format == GrammarFormat::Lark && constraint.has_mistaken() {
        return refuse("llguidance mistakes tokens of this tokenizer for its bytes", "give ebnf");
    }
    if constraint.most_items() as usize > MAX_NESTED {
        return refuse("a grammar of over 1000 items would be nested too deep", "leave it out");
    }
    let rules = skeleton::rules(&constraint.graph()?)?;
    written(constraint.name(), &rules, format)
}
