//! Detects templates that would force a digit or a sign of a block, because a COPY token joins it with a bracket.

use std::collections::BTreeMap;

use super::borders::{CrossingTokens, inside};
use super::grammar::tie_key;
use super::report::RefusedTokenizer;
use drift_core::text::{self, skeleton};
use drift_core::{Encoding, Result, Tokenizer};
use drift_data::corpus::Conformer;

/// The largest number of tokens that a refusal lists.
const LISTED: usize = 20;

/// The largest share of blocks that may be outside the range that an extended tokenizer isolates and have tokens that cross their
/// brackets.
pub(super) const MOST_CROSSED: f64 = 0.05;

/// A placeholder that may be chosen.
pub(super) struct Choice {
    pub(super) placeholder: String,
    /// Where it comes from; `None` if it was constructed.
    pub(super) source: Option<&'static str>,
    /// F.
    pub(super) free: u8,
}

impl Choice {
    pub(super) fn tie_key(&self) -> (bool, usize, &str) {
        tie_key(self.source.is_some(), &self.placeholder)
    }
}

/// Separates the choices whose templates force nothing from the candidates whose templates force something.
///
/// # Errors
/// If the tokenizer cannot encode a template.
pub(super) fn apart(
    tokenizer: &Tokenizer,
    choices: Vec<Choice>,
    encoding: Encoding,
) -> Result<(Vec<Choice>, Vec<Choice>)> {
    let (mut kept, mut forcing) = (Vec::new(), Vec::new());
    for choice in choices {
        match forces(tokenizer, &choice.placeholder, encoding)? {
            false => kept.push(choice),
            true if choice.source.is_some() => forcing.push(choice),
            // A constructed string is one of many, so one that forces something is dropped. A candidate was requested, so it is
            // reported.
            true => {}
        }
    }
    Ok((kept, forcing))
}

/// Returns whether the template of a placeholder forces a digit or a sign.
///
/// # Errors
/// If the tokenizer cannot encode the template.
fn forces(tokenizer: &Tokenizer, placeholder: &str, encoding: Encoding) -> Result<bool> {
    let template = skeleton::fill("[C]<>[C]<>", placeholder, encoding);
    Ok(!inside(tokenizer, &template, encoding)?.crossing.is_empty())
}

/// Returns the sentence about blocks that no template leaves readable.
pub(super) fn lost(blocks: u64) -> String {
    match blocks {
        0 => String::new(),
        _ => format!(
            " Blocks that share a token with a bracket, as those outside the range of an extended tokenizer may: {blocks}. They are \
             counted as unparsable under every placeholder."
        ),
    }
}

/// Returns the refusal of a tokenizer, with the proof, from the blocks of `conformers`, that no template is without harm.
///
/// # Errors
/// If the tokenizer cannot encode a conformer.
pub(super) fn refused(
    tokenizer: &Tokenizer,
    encoding: Encoding,
    crossing: &CrossingTokens,
    conformers: &[Conformer],
) -> Result<RefusedTokenizer> {
    // Tokens that open a block come first, since they contain the sign.
    let (open, close): (Vec<&String>, Vec<&String>) = crossing.iter().partition(|token| token.contains('<'));
    let (blocks, agreeing) = agreeing(tokenizer, encoding, conformers)?;
    Ok(RefusedTokenizer {
        tokenizer: tokenizer.name.clone(),
        tokenizer_sha256: tokenizer.source.sha256.clone(),
        encoding,
        tokens: open.into_iter().chain(close).take(LISTED).cloned().collect(),
        token_count: crossing.len() as u64,
        looked_at_blocks: blocks,
        agreeing_blocks: agreeing,
        reason:
            "a template would force the digits or signs that these tokens share with the text around a block"
                .to_owned(),
        instead: "the automaton, which follows the text and needs no placeholder".to_owned(),
    })
}

/// Returns the number of blocks, and the largest number of them with which one template can agree. A template has the same COPY tokens in
/// every block, and so forces the same characters at the block's two ends. All blocks with other characters there lose their own.
fn agreeing(tokenizer: &Tokenizer, encoding: Encoding, conformers: &[Conformer]) -> Result<(u64, u64)> {
    let mut by_ends: BTreeMap<[String; 2], u64> = BTreeMap::new();
    for conformer in conformers {
        let text = text::tagged(&text::write(&conformer.skeleton, &conformer.coordinates, encoding));
        let copied = tokenizer.in_slots(&text, encoding)?.copied;
        for slot in encoding.slot_ranges(&text) {
            let mut ends = [String::new(), String::new()];
            for token in &copied {
                let held = slot.start.max(token.start)..slot.end.min(token.end);
                if let Some(held) = text.get(held).filter(|held| !held.is_empty()) {
                    // A token that begins before the slot overlaps its beginning. Any other COPY token of the slot overlaps its
                    // end.
                    ends[usize::from(token.start >= slot.start)].push_str(held);
                }
            }
            *by_ends.entry(ends).or_default() += 1;
        }
    }
    Ok((by_ends.values().sum(), by_ends.values().copied().max().unwrap_or(0)))
}
