//! Which numbers of FREE tokens a placeholder can come to, with the best placeholder for each.
//!
//! Where counting tables are proved ([`crate::tokenizer::tables`]), a block falls apart into digit runs, points, commas
//! and signs, and its tokens are the sum of theirs. So of each number only two things matter: its tokens and its length.
//! All numbers of the dialect are sorted by them, each kept once in its smallest spelling, and all sums of three are
//! gone through: what is not among them, no string comes to. Other tokenizers are asked shape by shape
//! ([`super::parts`]).

use std::collections::BTreeMap;

use super::grammar::{INTEGERS, Space, number_text};
use super::parts;
use crate::error::{Error, Result};
use crate::tokenizer::{Counter, MAX_BLOCK_TOKENS, Method};

/// Numbers of FREE tokens and the placeholders that come to them.
pub struct Attainable {
    /// By F, the placeholder of fewest characters, then smallest bytes, of those below [`USUAL`] if there is one.
    pub best: BTreeMap<u8, String>,
    /// Why these are all; or why others are not excluded.
    pub complete: std::result::Result<String, String>,
    /// Whether that these are all is proved; else it was tried.
    pub proved: bool,
}

/// Å. Writers never write more, so placeholders hold more only where that takes a number of tokens that no other does.
pub(super) const USUAL: u16 = 100;

/// The smallest spelling by tokens and characters. Of two texts of the same length the smaller one stays smaller
/// whatever follows both.
pub(super) type Spellings = BTreeMap<(u16, usize), String>;

/// Keeps the smaller of two spellings of the same tokens and length.
pub(super) fn keep(spellings: &mut Spellings, tokens: u16, text: String) {
    let kept = spellings.entry((tokens, text.len())).or_insert_with(|| text.clone());
    if text < *kept {
        *kept = text;
    }
}

/// Keeps the smaller of all spellings of the same tokens and length.
pub(super) fn keep_all(spellings: &mut Spellings, more: Spellings) {
    more.into_iter().for_each(|((tokens, _), text)| keep(spellings, tokens, text));
}

/// The sums of two parts that stand side by side.
pub(super) fn joined(heads: &Spellings, tails: &Spellings) -> Spellings {
    let mut out = Spellings::new();
    for ((a, _), head) in heads {
        for ((b, _), tail) in tails {
            keep(&mut out, a + b, format!("{head}{tail}"));
        }
    }
    out
}

/// The best spelling of each number of tokens that a record of a block holds.
pub(super) fn best(spellings: Spellings) -> BTreeMap<u8, String> {
    let mut best = BTreeMap::new();
    for ((tokens, _), text) in spellings {
        if usize::from(tokens) <= MAX_BLOCK_TOKENS {
            // Ordered by length within one number of tokens.
            best.entry(tokens as u8).or_insert(text);
        }
    }
    best
}

impl Attainable {
    /// Goes through all placeholders of a space.
    ///
    /// # Errors
    /// If the tokenizer cannot encode a placeholder.
    pub fn of(counter: &Counter<'_>, space: Space) -> Result<Self> {
        match counter.method() {
            Method::Tables { .. } => of_tables(counter, space),
            Method::Encode { .. } => parts::of_parts(counter, space),
        }
    }
}

/// F of a placeholder, by the counter, in the middle of a text.
///
/// # Errors
/// If it cannot be encoded, or is not the inside of one block.
pub fn free_tokens(counter: &Counter<'_>, placeholder: &str) -> Result<u8> {
    let mut counts = Vec::with_capacity(2);
    counter.count(&format!("[C]<{placeholder}>[C]<{placeholder}>"), &mut counts)?;
    match counts.as_slice() {
        [_, count] if usize::from(*count) <= MAX_BLOCK_TOKENS => Ok(*count as u8),
        _ => Err(Error::input(
            format!("placeholder `{placeholder}`"),
            "not the inside of one block, or too long",
            "give three numbers such as 0.0000,0.0000,0.0000",
        )),
    }
}

fn of_tables(counter: &Counter<'_>, space: Space) -> Result<Attainable> {
    let zeros = i32::from(free_tokens(counter, "0,0,0")?);
    let more = |text: &str| Ok::<i32, Error>(i32::from(free_tokens(counter, text)?) - zeros);
    let fractions = fractions(space, &more)?;
    let signs = [more("-0,0,0")? as u16, more("0,-0,0")? as u16];
    let (mut integers, mut found) = (Spellings::new(), BTreeMap::new());
    for range in [0..USUAL, USUAL..INTEGERS] {
        for integer in range {
            // One `0` is one token, or there would be no tables.
            keep(&mut integers, 1 + more(&format!("{integer},0,0"))? as u16, integer.to_string());
        }
        fill(&mut found, best(sums(&joined(&integers, &fractions), signs)));
    }
    if let Some(problem) = misfit(counter, &found)? {
        return Err(Error::input(&counter.tokenizer().name, problem, "report this as a bug"));
    }
    let all = "the tokens of a block are the sum of those of its digit runs, points, commas and signs, all of which were \
               counted";
    Ok(Attainable { best: found, complete: Ok(all.to_owned()), proved: true })
}

/// What the counter says against placeholders by their parts' tokens; none if it agrees.
pub(super) fn misfit(counter: &Counter<'_>, found: &BTreeMap<u8, String>) -> Result<Option<String>> {
    for (&tokens, text) in found {
        if free_tokens(counter, text)? != tokens {
            return Ok(Some(format!("`{text}` does not take the {tokens} tokens of its parts")));
        }
    }
    Ok(None)
}

/// All sums of three numbers, each with or without a sign, which takes `signs` tokens more on x and on y and z.
fn sums(unsigned: &Spellings, signs: [u16; 2]) -> Spellings {
    let [first, later] = signs.map(|sign_tokens| {
        let mut all = unsigned.clone();
        for ((tokens, _), text) in unsigned {
            keep(&mut all, tokens + sign_tokens, format!("-{text}"));
        }
        all
    });
    let comma = Spellings::from([((1, 1), ",".to_owned())]);
    let next = joined(&comma, &later);
    joined(&joined(&first, &next), &next)
}

/// Takes what is not there yet.
pub(super) fn fill(found: &mut BTreeMap<u8, String>, more: BTreeMap<u8, String>) {
    for (tokens, text) in more {
        found.entry(tokens).or_insert(text);
    }
}

/// What may stand behind an integer part, with the tokens of its point and digits.
fn fractions(space: Space, more: &impl Fn(&str) -> Result<i32>) -> Result<Spellings> {
    let mut out = Spellings::new();
    for decimals in space.decimals() {
        for fraction in space.fractions(decimals) {
            let number = super::grammar::Number { negative: false, integer: 0, decimals, fraction };
            let text = number_text(number);
            keep(&mut out, more(&format!("{text},0,0"))? as u16, text[1..].to_owned());
        }
    }
    Ok(out)
}
