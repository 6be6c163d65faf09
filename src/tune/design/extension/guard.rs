//! Keeping tokens that merges do not make out of texts without blocks, for bases whose tokens are written in text.
//!
//! An extended tokenizer looks every piece up as a whole (`ignore_merges`), and such a base has no splits: a piece is all
//! that stands between added tokens, or between blocks. If it is a text like `12`, which a scheme made a token, or like
//! `<0x0A>` or `[control_8]`, which no merge makes, the lookup would change its tokens. So these texts, where they are
//! a whole piece, are cut where the base's merges leave a border.
//!
//! Why that changes nothing: let the merges leave a border in a text. No merge went across it, so the merges on its two
//! sides are those of the two parts alone, in the same order. A first part is one token, and in the vocabulary. A rest is
//! cut again if it needs to be.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use rayon::prelude::*;
use serde_json::Value;

use super::layout::Alphabet;
use crate::design::scheme::grammar::Grammar;
use drift_core::error::{Error, Result};
use drift_core::tokenizer::{Tokenizer, marks_spaces};

/// How every guard begins, by which it is known. It cuts nothing after the end of a piece.
pub const GUARD_MARK: &str = "\\G(?!\\z)(?:";

/// The most texts that a guard lists: expressions of many are slow.
const MOST_TEXTS: usize = 4_096;

/// First parts, and the rests that they are cut from, as expressions.
type Cuts = BTreeMap<String, BTreeSet<String>>;

/// The expression of the cuts for a base that gets these new tokens for the blocks of a grammar; none if it needs no cut.
///
/// # Errors
/// If the base lacks a character of blocks, or a text cannot be cut or there are too many.
pub(in crate::design) fn guard(
    base: &Tokenizer,
    base_json: &Value,
    grammar: Grammar,
    new: &[String],
) -> Result<Option<String>> {
    let characters = written_with(grammar);
    if Alphabet::from_json(base_json) == Alphabet::Bytes {
        return Ok(None);
    }
    let vocabulary = base.vocabulary();
    if let Some(lacking) = characters.chars().find(|c| !vocabulary.contains_key(c.encode_utf8(&mut [0; 4]))) {
        let problem = format!("has no token {lacking:?}");
        return Err(Error::input(&base.name, problem, "give a base that has all characters of blocks"));
    }
    // Where the base looked pieces up already, its own tokens are made so in plain text too, and nothing changes.
    let looked_up = base_json["model"]["ignore_merges"] == true;
    let old = vocabulary.par_iter().filter(|(text, id)| {
        !looked_up && !text.is_empty() && base.model_ids(text).as_deref() != Some(&[**id])
    });
    let mut listed: Vec<&str> = old.map(|(text, _)| &**text).collect();
    if listed.len() > MOST_TEXTS {
        // A cut of an added token does no harm, and none is needed.
        let never = never_pieces(base, base_json)?;
        listed.retain(|text| !never.contains(*text));
    }
    listed.sort_unstable();
    let of_base = listed.len();
    // Digits are merged with nothing: where a text is cut does not depend on which digits it has.
    let alike = !vocabulary.keys().any(|text| merges_digits(text, &characters));
    let mut cuts = Cuts::new();
    for text in new {
        // One expression with any digits stands for all texts of its shape, so the list stays short.
        if alike {
            add(base, &mut cuts, text, &masked)?;
        } else {
            listed.push(text);
        }
    }
    if listed.len() > MOST_TEXTS {
        let problem =
            format!("{} tokens would have to be kept out of texts without blocks, one by one", listed.len());
        let remedy = match of_base > MOST_TEXTS {
            true => "its merges do not make so many of its own tokens; leave it as it is",
            false => "give more tokens a block, or a smaller range",
        };
        return Err(Error::input(&base.name, problem, remedy));
    }
    listed.iter().try_for_each(|text| add(base, &mut cuts, text, &escaped))?;
    Ok((!cuts.is_empty()).then(|| pattern(&cuts)))
}

/// Added tokens that no piece is like: they are matched before the model, wherever they stand. Only ASCII ones, of bases whose normalizer
/// makes no ASCII of other characters: a run of `▁`, as Gemma has them, comes of spaces too, behind that match.
fn never_pieces(base: &Tokenizer, base_json: &Value) -> Result<HashSet<String>> {
    let mut never = HashSet::new();
    if !marks_spaces(&base_json["normalizer"]) {
        return Ok(never);
    }
    for token in base_json["added_tokens"].as_array().into_iter().flatten() {
        let Some(content) = token["content"].as_str() else { continue };
        // Those of whole words are not matched beside letters; others are matched in what the normalizer makes of a text.
        let as_it_is = token["normalized"] != true || base.normalized(content)? == content;
        if content.is_ascii() && token["single_word"] != true && as_it_is {
            never.insert(content.to_owned());
        }
    }
    Ok(never)
}

/// Whether a token of the base puts a digit beside another character of blocks.
fn merges_digits(text: &str, characters: &str) -> bool {
    text.len() > 1 && text.bytes().any(|b| b.is_ascii_digit()) && text.chars().all(|c| characters.contains(c))
}

/// What blocks are written with.
pub(in crate::design) fn written_with(grammar: Grammar) -> String {
    let encoding = grammar.dialect();
    [encoding.open(), encoding.close(), &grammar.characters()].concat()
}

/// Adds the cut of a text after its first token.
fn add(base: &Tokenizer, cuts: &mut Cuts, text: &str, write: &dyn Fn(&str) -> String) -> Result<()> {
    let mut ends = base.model_ends(text).into_iter();
    // The first border is enough: the rest is a piece of its own, and is cut again if it is in the list.
    let Some(end) = ends.find(|end| *end < text.len() && text.is_char_boundary(*end)) else {
        let problem = format!("its merges make no border in {text:?}, which it would become as a whole");
        return Err(Error::input(&base.name, problem, "nothing was written"));
    };
    let (head, rest) = text.split_at(end);
    cuts.entry(write(head)).or_default().insert(write(rest));
    Ok(())
}

fn pattern(cuts: &Cuts) -> String {
    let cuts = cuts.iter().map(|(head, rests)| {
        let rests: Vec<&str> = rests.iter().map(String::as_str).collect();
        format!("{head}(?=(?:{})\\z)", rests.join("|"))
    });
    format!("{GUARD_MARK}{})", cuts.collect::<Vec<_>>().join("|"))
}

/// A text as an expression.
fn escaped(text: &str) -> String {
    let special = |c: &char| r"\.+*?()|[]{}^$".contains(*c);
    text.chars().flat_map(|c| special(&c).then_some('\\').into_iter().chain([c])).collect()
}

/// The same with any digits for its own.
fn masked(text: &str) -> String {
    let text = escaped(text);
    text.chars().map(|c| if c.is_ascii_digit() { "[0-9]".to_owned() } else { c.to_string() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::scheme::slots::Range;
    use drift_core::encoding::Precision;

    #[test]
    fn cuts_are_written_with_what_is_left() {
        let cuts = Cuts::from([
            ("[0-9]".into(), BTreeSet::from(["[0-9]".into(), masked("1.")])),
            (escaped("["), BTreeSet::from([escaped("a]")])),
        ]);
        let expected = "\\G(?!\\z)(?:[0-9](?=(?:[0-9]|[0-9]\\.)\\z)|\\[(?=(?:a\\])\\z))";
        assert_eq!(pattern(&cuts), expected);
        let fixed = written_with(Grammar::fixed(Range::new(15).unwrap(), Precision::FOUR));
        assert_eq!(fixed, "<>-.,0123456789");
        let digits = |text: &str| merges_digits(text, &fixed);
        assert!(digits("00") && digits(",-1") && digits("0."));
        assert!(!digits("0") && !digits(",-") && !digits("<0x30>"));
    }
}
