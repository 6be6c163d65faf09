//! Templates that would force a digit or a sign of a block, since one of their COPY tokens holds it together with a bracket.

use std::collections::BTreeMap;

use super::borders::{Crossing, inside};
use super::grammar::tie_key;
use super::report::Refused;
use drift_core::encoding::Encoding;
use drift_core::error::Result;
use drift_core::text::{self, skeleton};
use drift_core::tokenizer::Tokenizer;
use drift_data::corpus::Conformer;

/// Tokens that a refusal lists.
const LISTED: usize = 20;

/// The largest share of blocks that may lie outside of what an extended tokenizer isolates, and cross their brackets there.
pub(super) const MOST_CROSSED: f64 = 0.05;

/// A placeholder that may be chosen.
pub(super) struct Choice {
    pub(super) placeholder: String,
    /// Where it stands; none if it was constructed.
    pub(super) source: Option<&'static str>,
    /// F.
    pub(super) free: u8,
}

impl Choice {
    pub(super) fn tie_key(&self) -> (bool, usize, &str) {
        tie_key(self.source.is_some(), &self.placeholder)
    }
}

/// Choices whose templates force nothing, and the candidates among the others.
///
/// # Errors
/// If the tokenizer cannot encode one.
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
            // A constructed string is one of many, so one that forces something is passed over; a candidate was asked for and
            // is reported.
            true => {}
        }
    }
    Ok((kept, forcing))
}

/// Whether the template of a placeholder forces a digit or a sign.
///
/// # Errors
/// If the tokenizer cannot encode it.
fn forces(tokenizer: &Tokenizer, placeholder: &str, encoding: Encoding) -> Result<bool> {
    let template = skeleton::fill("[C]<>[C]<>", placeholder, encoding);
    Ok(!inside(tokenizer, &template, encoding)?.crossing.is_empty())
}

/// What is said of blocks that no template leaves readable.
pub(super) fn lost(blocks: u64) -> String {
    match blocks {
        0 => String::new(),
        _ => format!(
            " {blocks} blocks are not of the range that the tokenizer was extended for, and share a token with a bracket: they are \
             counted as unparsable under every placeholder."
        ),
    }
}

/// The refusal of a tokenizer, with the proof that no template does without harm: in the blocks of `conformers`.
///
/// # Errors
/// If the tokenizer cannot encode one.
pub(super) fn refused(
    tokenizer: &Tokenizer,
    dialect: Encoding,
    crossing: &Crossing,
    conformers: &[Conformer],
) -> Result<Refused> {
    // Those that open a block first: they hold the sign.
    let (open, close): (Vec<&String>, Vec<&String>) = crossing.iter().partition(|token| token.contains('<'));
    let (blocks, agreeing) = agreeing(tokenizer, dialect, conformers)?;
    Ok(Refused {
        tokenizer: tokenizer.name.clone(),
        tokenizer_sha256: tokenizer.source.sha256.clone(),
        dialect,
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

/// How many blocks there are, and with how many of them one template can agree at most. A template has the same COPY tokens in every
/// block, and so forces the same characters at its two ends: all blocks with others lose their own.
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
                    // A token that begins before the slot reaches into its beginning; any other COPY token of the slot reaches
                    // over its end.
                    ends[usize::from(token.start >= slot.start)].push_str(held);
                }
            }
            *by_ends.entry(ends).or_default() += 1;
        }
    }
    Ok((by_ends.values().sum(), by_ends.values().copied().max().unwrap_or(0)))
}
