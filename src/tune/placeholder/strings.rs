//! Which numbers of FREE tokens a placeholder can come to, with the best placeholder for each.
//!
//! Where counting tables are proved ([`drift_core::tokenizer::tables`]), a block falls apart into digit runs, points, commas
//! and signs, and its tokens are the sum of theirs. So of each number only two things matter: its tokens and its length.
//! All numbers of the dialect are sorted by them, each kept once in its smallest spelling, and all sums of three are
//! gone through: what is not among them, no string comes to. Other tokenizers are asked shape by shape
//! ([`super::parts`]).

use std::collections::BTreeMap;

use super::attainable::{Attainable, Spellings, USUAL, best, fill, free_tokens, joined, keep, misfit};
use super::grammar::{INTEGERS, Number, Space, number_text};
use super::parts;
use drift_core::encoding::IntegersBelow;
use drift_core::encoding::language::{Languages, StateId};
use drift_core::error::{Error, Result};
use drift_core::tokenizer::{Counter, Method, SlotProduct};

/// Goes through all placeholders of a space.
///
/// # Errors
/// If the tokenizer cannot encode a placeholder.
pub fn attainable(counter: &Counter<'_>, space: Space) -> Result<Attainable> {
    if !counter.encoding().is_decimal() {
        return of_product(counter, space);
    }
    match counter.method() {
        Method::Tables { .. } => of_tables(counter, space),
        Method::Encode { .. } => parts::of_parts(counter, space),
    }
}

/// Read off the product of the encoding with the tokenizer: its paths are all slots, and their lengths all numbers of tokens.
fn of_product(counter: &Counter<'_>, space: Space) -> Result<Attainable> {
    let (tokenizer, encoding) = (counter.tokenizer(), space.0);
    let refuse = || {
        let problem = format!("no sequence of its tokens spells a slot of {encoding}");
        Error::input(&tokenizer.name, problem, "use a tokenizer that has the digits")
    };
    let dfa = encoding.inner_dfa(IntegersBelow::GENERATED, |_| None).ok_or_else(refuse)?;
    let mut states: Languages<u32> = Languages::default();
    let mut product = SlotProduct::new(tokenizer, &dfa, &format!("[C]{}", encoding.open()))?;
    let start = product.start(&mut states, ())?.ok_or_else(refuse)?;
    let mut order = states.reachable(start);
    // A state is made after those that it leads to, so its number is larger.
    order.sort_unstable();
    let mut ways: BTreeMap<StateId, Spellings> = BTreeMap::new();
    for id in order {
        let node = states.node(id);
        let mut all = Spellings::new();
        if node.end.is_some() {
            keep(&mut all, 0, String::new());
        }
        for (token, then) in &node.edges {
            let text = product.text(*token).unwrap_or_default();
            for ((tokens, _), tail) in &ways[then] {
                keep(&mut all, tokens + 1, format!("{text}{tail}"));
            }
        }
        ways.insert(id, all);
    }
    let found = best(ways.remove(&start).unwrap_or_default());
    match misfit(counter, &found)? {
        None => {
            let all = "the tokenizer's own sequences of tokens for all slots are an automaton, whose paths were counted";
            Ok(Attainable { best: found, complete: Ok(all.to_owned()), proved: true })
        }
        Some(why) => Ok(Attainable { best: found, complete: Err(why), proved: false }),
    }
}

fn of_tables(counter: &Counter<'_>, space: Space) -> Result<Attainable> {
    // Everything is measured as a difference from one short block, so that what stands around the numbers cancels.
    let zeros = i32::from(free_tokens(counter, "0,0,0")?);
    let more = |text: &str| Ok::<i32, Error>(i32::from(free_tokens(counter, text)?) - zeros);
    let fractions = fractions(space, &more)?;
    // Two signs: the one of x stands behind `<`, those of y and z behind a comma, with which they can be one token.
    let signs = [more("-0,0,0")? as u16, more("0,-0,0")? as u16];
    let (mut integers, mut found) = (Spellings::new(), BTreeMap::new());
    // Usual integers come first, since `fill` keeps what is there. The second round holds both kinds, for sums of mixed
    // numbers.
    for range in [0..USUAL, USUAL..INTEGERS] {
        for integer in range {
            // One `0` is one token, or there would be no tables.
            keep(&mut integers, 1 + more(&format!("{integer},0,0"))? as u16, integer.to_string());
        }
        fill(&mut found, best(sums(&joined(&integers, &fractions), signs)));
    }
    // Both counts come from the same tables, so a disagreement is a fault of drift and not of the input.
    if let Some(problem) = misfit(counter, &found)? {
        return Err(Error::input(&counter.tokenizer().name, problem, "report this as a bug"));
    }
    let all = "the tokens of a block are the sum of those of its digit runs, points, commas and signs, all of which were \
               counted";
    Ok(Attainable { best: found, complete: Ok(all.to_owned()), proved: true })
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
    // A comma alone is one token, as a digit is; a sign that merges with it is counted in `signs`.
    let comma = Spellings::from([((1, 1), ",".to_owned())]);
    let next = joined(&comma, &later);
    joined(&joined(&first, &next), &next)
}

/// What may stand behind an integer part, with the tokens of its point and digits.
fn fractions(space: Space, more: &impl Fn(&str) -> Result<i32>) -> Result<Spellings> {
    let mut out = Spellings::new();
    for decimals in space.decimals() {
        for fraction in space.fractions(decimals) {
            let number = Number { negative: false, integer: 0, decimals, fraction };
            let text = number_text(number);
            // The `0` is cut off, for the short block has one in its place already.
            keep(&mut out, more(&format!("{text},0,0"))? as u16, text[1..].to_owned());
        }
    }
    Ok(out)
}
