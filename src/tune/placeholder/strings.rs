//! The numbers of FREE tokens that placeholders can have, with the best placeholder for each number.
//!
//! If counting tables are proved ([`drift_core::tokenizer::tables`]), a block is split into digit runs, points, commas and signs,
//! and its number of tokens is the sum over these parts. So only the number of tokens and the length of a number matter. For each
//! combination the smallest spelling is kept, and all sums of three numbers are enumerated. No string has a number of tokens that
//! is not among them.
//!
//! For any other tokenizer and any other encoding, the numbers are read off the tokenizer's own language of slots: the paths of an
//! automaton over tokens are all slots, and their lengths are all numbers of tokens ([`super::slot_tokens`]). This also works with
//! tables and gives the same placeholders, but it asks the encoder for each pair of tokens that may be adjacent. For a vocabulary
//! with all numbers of three digits this takes 2 s, and the tables take 10 ms.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::attainable::{AttainableTokens, Spellings, USUAL, best, fill, free_tokens, joined, keep, misfit};
use super::grammar::{INTEGERS, Number, Space, number_text};
use super::slot_tokens::SlotTokens;
use drift_core::tokenizer::{Counter, Isolation, Method};
use drift_core::{Error, Result};

/// The number of random placeholders whose tokens are compared with those of their path.
const TRIED: usize = 4_000;

/// Enumerates all placeholders of a space.
///
/// # Errors
/// If the tokenizer cannot encode a placeholder.
pub(crate) fn attainable(counter: &Counter<'_>, space: Space) -> Result<AttainableTokens> {
    match counter.method() {
        Method::Tables { .. } if space.0.is_decimal() => of_tables(counter, space),
        _ => of_paths(counter, space),
    }
}

/// Reads the numbers of tokens off the paths of all slots, and compares random slots with the counter.
fn of_paths(counter: &Counter<'_>, space: Space) -> Result<AttainableTokens> {
    let (tokenizer, encoding) = (counter.tokenizer(), space.0);
    let drawn = drawn(counter, space)?;
    let isolation = match Isolation::learn(tokenizer, encoding)? {
        Ok(isolation) => isolation,
        Err(why) => return Ok(probed(drawn, why)),
    };
    // Usual integer parts come first, because `fill` does not replace entries. Only decimals have integer parts.
    let below: &[u16] = if encoding.is_decimal() { &[USUAL, INTEGERS] } else { &[USUAL] };
    let paths = SlotTokens::new(tokenizer, encoding, isolation.as_ref(), below)?;
    let mut found = BTreeMap::new();
    for spellings in paths.spellings() {
        fill(&mut found, best(spellings));
    }
    if let Some(why) = misfit(counter, &found)? {
        return Ok(probed(drawn, why));
    }
    let all = drawn.concat();
    let differs = |(text, tokens): &&(String, u8)| !paths.takes(text, u16::from(*tokens));
    if let Some((text, _)) = all.par_iter().find_first(differs) {
        let why = format!("`{text}` does not take the tokens of its path");
        let mut known = probed(drawn, why);
        // The counter agreed with the shortest strings of the paths, so they are known although the paths are not exact.
        fill(&mut found, known.best);
        known.best = found;
        return Ok(known);
    }
    // The tokens of bins, integers and codes depend only on their neighbours, or they are matched as a whole. An expression that
    // cuts decimals could look further, and Unigram models have no such rule.
    let proved = !encoding.is_decimal();
    let tried =
        if proved { String::new() } else { format!(" (tried on {} random strings, not proved)", all.len()) };
    let complete = format!(
        "the tokenizer's own sequences of tokens for all slots are an automaton{tried}, whose paths were counted"
    );
    Ok(AttainableTokens { best: found, complete: Ok(complete), proved })
}

/// Returns the numbers of tokens of random strings of every shape. Other numbers may exist.
fn probed(drawn: [Vec<(String, u8)>; 2], why: String) -> AttainableTokens {
    let mut found = BTreeMap::new();
    // Usual integer parts come first. Because `fill` does not replace entries, larger ones are only used for numbers of tokens that
    // usual ones do not have.
    for texts in drawn {
        let mut spellings = Spellings::new();
        for (text, tokens) in texts {
            keep(&mut spellings, tokens.into(), text);
        }
        fill(&mut found, best(spellings));
    }
    AttainableTokens { best: found, complete: Err(why), proved: false }
}

/// Random placeholders of every shape and their numbers of FREE tokens; integer parts are below [`USUAL`], then below [`INTEGERS`].
fn drawn(counter: &Counter<'_>, space: Space) -> Result<[Vec<(String, u8)>; 2]> {
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let texts = [USUAL, INTEGERS].map(|below| {
        let smaller = |number: Number| Number { integer: number.integer % below, ..number };
        (0..TRIED).map(|_| space.text(&space.random(&mut random).map(smaller))).collect::<Vec<_>>()
    });
    let count = |text: String| free_tokens(counter, &text).map(|tokens| (text, tokens));
    let [usual, all] = texts.map(|texts| texts.into_par_iter().map(count).collect::<Result<_>>());
    Ok([usual?, all?])
}

fn of_tables(counter: &Counter<'_>, space: Space) -> Result<AttainableTokens> {
    // Every number is measured as a difference from one short block, so that the tokens around the numbers cancel.
    let zeros = i32::from(free_tokens(counter, "0,0,0")?);
    let more = |text: &str| Ok::<i32, Error>(i32::from(free_tokens(counter, text)?) - zeros);
    let fractions = fractions(space, &more)?;
    // Two kinds of signs: the sign of x follows `<`, those of y and z follow a comma, with which they can form one token.
    let signs = [more("-0,0,0")? as u16, more("0,-0,0")? as u16];
    let (mut integers, mut found) = (Spellings::new(), BTreeMap::new());
    // Usual integers come first, because `fill` does not replace entries. The second round contains both kinds, for sums of mixed
    // numbers.
    for range in [0..USUAL, USUAL..INTEGERS] {
        for integer in range {
            // One `0` is one token; otherwise there would be no tables.
            keep(&mut integers, 1 + more(&format!("{integer},0,0"))? as u16, integer.to_string());
        }
        fill(&mut found, best(sums(&joined(&integers, &fractions), signs)));
    }
    // Both counts come from the same tables, so a disagreement is a bug in drift and not an error in the input.
    if let Some(problem) = misfit(counter, &found)? {
        return Err(Error::input(&counter.tokenizer().name, problem, "report this as a bug"));
    }
    let all = "the tokens of a block are the sum of those of its digit runs, points, commas and signs, all of which were \
               counted";
    Ok(AttainableTokens { best: found, complete: Ok(all.to_owned()), proved: true })
}

/// Returns all sums of three numbers, each with or without a sign. `signs` are the additional tokens of a sign on x, and on y and z.
fn sums(unsigned: &Spellings, signs: [u16; 2]) -> Spellings {
    let [first, later] = signs.map(|sign_tokens| {
        let mut all = unsigned.clone();
        for ((tokens, _), text) in unsigned {
            keep(&mut all, tokens + sign_tokens, format!("-{text}"));
        }
        all
    });
    // A comma alone is one token, as a digit is. `signs` accounts for a sign that merges with the comma.
    let comma = Spellings::from([((1, 1), ",".to_owned())]);
    let next = joined(&comma, &later);
    joined(&joined(&first, &next), &next)
}

/// Returns the strings that may follow an integer part, with the numbers of tokens of point and digits.
fn fractions(space: Space, more: &impl Fn(&str) -> Result<i32>) -> Result<Spellings> {
    let mut out = Spellings::new();
    for decimals in space.decimals() {
        for fraction in space.fractions(decimals) {
            let number = Number { negative: false, integer: 0, decimals, fraction };
            let text = number_text(number);
            // The `0` is cut off, because the short block already has one in its place.
            keep(&mut out, more(&format!("{text},0,0"))? as u16, text[1..].to_owned());
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use drift_core::encoding::Encoding;
    use drift_core::tokenizer::Tokenizer;

    fn counter(tokenizer: &Tokenizer, encoding: Encoding) -> Counter<'_> {
        Counter::for_encoding(tokenizer, encoding, std::iter::empty()).unwrap()
    }

    fn load(path: &str) -> Tokenizer {
        Tokenizer::load(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
    }

    #[test]
    fn paths_say_what_tables_say() {
        // Signs that merge with the opening of a block or the text before it, spaces before texts, and a Unigram model.
        let fixtures =
            ["border-bracket-minus", "border-open-minus", "mistral-v3-like", "unigram-digits-like"];
        let paths = fixtures.map(|name| format!("tests/fixtures/tokenizers/{name}/tokenizer.json.gz"));
        for path in paths.iter().map(String::as_str).chain(["tokenizers/qwen-like/tokenizer.json"]) {
            let tokenizer = load(path);
            for encoding in Encoding::ALL {
                let counter = counter(&tokenizer, encoding);
                assert!(matches!(counter.method(), Method::Tables { .. }), "{path}");
                let space = Space(encoding);
                let [tables, paths] = [of_tables, of_paths].map(|of| of(&counter, space).unwrap());
                assert_eq!(paths.best, tables.best, "{path}, {encoding}");
                assert!(paths.complete.is_ok() && !paths.proved && tables.proved);
            }
        }
    }

    #[test]
    fn bins_that_are_tokens_take_as_many_in_every_slot() {
        let (tokenizer, encoding) =
            (load("eval/small-bins/tokenizer.json"), "binned-v2:-9.525,9.525,0.05".parse().unwrap());
        let found = attainable(&counter(&tokenizer, encoding), Space(encoding)).unwrap();
        assert_eq!(found.constant(), Some(3));
    }

    #[test]
    fn shortest_strings_of_paths_are_known_where_paths_are_not_exact() {
        // A Unigram model that may cut `111` in two ways.
        let tokenizer = load("tests/fixtures/tokenizers/unigram-like/tokenizer.json.gz");
        let counter = counter(&tokenizer, Encoding::FIXED);
        let found = attainable(&counter, Space(Encoding::FIXED)).unwrap();
        assert!(found.complete.unwrap_err().ends_with("does not take the tokens of its path"));
        let least = found.best.first_key_value().unwrap();
        assert_eq!((*least.0, &**least.1), (11, "0.0000,0.0000,0.0000"));
        for (tokens, text) in &found.best {
            assert_eq!(free_tokens(&counter, text).unwrap(), *tokens, "{text}");
        }
    }

    #[test]
    fn blocks_of_an_extended_tokenizer_are_read_off_with_those_out_of_its_range() {
        for (name, fewest) in [("qwen-like-fused", 7), ("qwen-like-separate", 9)] {
            let tokenizer = load(&format!("tokenizers/{name}/tokenizer.json"));
            let counter = counter(&tokenizer, Encoding::FIXED);
            let found = attainable(&counter, Space(Encoding::FIXED)).unwrap();
            assert!(found.complete.unwrap().contains("random strings, not proved"), "{name}");
            let (least, text) = found.best.first_key_value().unwrap();
            assert_eq!((*least, &**text), (fewest, "0.0000,0.0000,0.0000"));
            assert_eq!(found.best.keys().last(), Some(&30), "{name}");
        }
    }
}
