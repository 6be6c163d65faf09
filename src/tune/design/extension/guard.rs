//! Guards for bases whose tokens are written in text: they keep tokens that merges do not make out of texts without blocks.
//!
//! An extended tokenizer looks every piece up as a whole (`ignore_merges`). Such a base has no splits, so a piece is all text
//! between added tokens, or between blocks. If a piece is a text such as `12`, which a scheme made a token, or such as `<0x0A>` or
//! `[control_8]`, which no merge makes, the lookup would change its tokens. So if such a text is a whole piece, the guard cuts it
//! where the base's merges leave a border.
//!
//! Why this does not change the tokens: suppose the merges leave a border in a text. Then no merge crossed the border, so the
//! merges on its two sides are those of the two parts on their own, in the same order. The first part is a single token of the
//! vocabulary. The rest is cut again if necessary.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use rayon::prelude::*;
use serde_json::Value;

use super::base::BaseTokenizer;
use super::layout::Alphabet;
use crate::design::scheme::grammar::Grammar;
use drift_core::tokenizer::marks_spaces;
use drift_core::{Error, Result, Tokenizer};

/// The beginning of every guard, by which it is recognized. It cuts nothing at the end of a piece.
pub const GUARD_MARK: &str = "\\G(?!\\z)(?:";

/// The largest number of texts in a guard: expressions with many texts are slow.
const MOST_TEXTS: usize = 4_096;

/// The first parts, each with the rests from which it is cut, as expressions.
type Cuts = BTreeMap<String, BTreeSet<String>>;

/// Returns the guard's expression for a base that gets these new tokens for blocks or numbers that are written with `characters`; `None`
/// if no cut is needed.
///
/// # Errors
/// If the base lacks a character of blocks, a text cannot be cut, or there are too many texts.
pub(in crate::design) fn guard(
    base: BaseTokenizer<'_>,
    characters: &str,
    new: &[String],
) -> Result<Option<String>> {
    let BaseTokenizer { tokenizer: base, json: base_json } = base;
    if Alphabet::from_json(base_json) == Alphabet::Bytes {
        return Ok(None);
    }
    let vocabulary = base.vocabulary();
    // Line breaks fall back to their bytes.
    let is_lacking = |c: &char| *c != '\n' && !vocabulary.contains_key(c.encode_utf8(&mut [0; 4]));
    if let Some(lacking) = characters.chars().find(is_lacking) {
        let problem = format!("has no token {lacking:?}");
        return Err(Error::input(&base.name, problem, "give a base that has all characters of blocks"));
    }
    // If the base already looked pieces up, its own tokens are used that way in plain text too, and nothing changes.
    let looked_up = base_json["model"]["ignore_merges"] == true;
    let old = vocabulary.par_iter().filter(|(text, id)| {
        !looked_up && !text.is_empty() && base.model_ids(text).as_deref() != Some(&[**id])
    });
    let mut listed: Vec<&str> = old.map(|(text, _)| &**text).collect();
    if listed.len() > MOST_TEXTS {
        // Cutting an added token would be harmless, but is not needed.
        let never = never_pieces(base, base_json)?;
        listed.retain(|text| !never.contains(*text));
    }
    listed.sort_unstable();
    let of_base = listed.len();
    // If digits are never merged with anything, the position of the cut does not depend on the digits of a text.
    let alike = !vocabulary.keys().any(|text| merges_digits(text, characters));
    let mut cuts = Cuts::new();
    for text in new {
        // One expression with arbitrary digits covers all texts of the same shape, so the list stays short.
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

/// Returns the added tokens that no piece can equal, because they are matched before the model wherever they occur. Only ASCII tokens are
/// included, and only for bases whose normalizer makes no ASCII from other characters: a run of `▁`, as in Gemma, also comes from spaces,
/// which are normalized after that match.
fn never_pieces(base: &Tokenizer, base_json: &Value) -> Result<HashSet<String>> {
    let mut never = HashSet::new();
    if !marks_spaces(&base_json["normalizer"]) {
        return Ok(never);
    }
    for token in base_json["added_tokens"].as_array().into_iter().flatten() {
        let Some(content) = token["content"].as_str() else { continue };
        // Tokens with `single_word` are not matched next to letters. Tokens with `normalized` are matched in the normalized text.
        let as_it_is = token["normalized"] != true || base.normalized(content)? == content;
        if content.is_ascii() && token["single_word"] != true && as_it_is {
            never.insert(content.to_owned());
        }
    }
    Ok(never)
}

/// Returns whether a token of the base joins a digit with another character of blocks.
fn merges_digits(text: &str, characters: &str) -> bool {
    text.len() > 1 && text.bytes().any(|b| b.is_ascii_digit()) && text.chars().all(|c| characters.contains(c))
}

/// Returns the characters with which blocks are written.
pub(in crate::design) fn written_with(grammar: Grammar) -> String {
    let encoding = grammar.encoding();
    [encoding.open(), encoding.close(), &grammar.characters()].concat()
}

/// Adds the cut of a text after its first token.
fn add(base: &Tokenizer, cuts: &mut Cuts, text: &str, write: &dyn Fn(&str) -> String) -> Result<()> {
    let mut ends = base.model_ends(text).into_iter();
    // The first border is enough: the rest becomes its own piece, and is cut again if it is in the list.
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

/// Escapes a text for an expression.
fn escaped(text: &str) -> String {
    let special = |c: &char| r"\.+*?()|[]{}^$".contains(*c);
    text.chars().flat_map(|c| special(&c).then_some('\\').into_iter().chain([c])).collect()
}

/// Escapes a text for an expression, with any digit in place of each of its digits.
fn masked(text: &str) -> String {
    let text = escaped(text);
    text.chars().map(|c| if c.is_ascii_digit() { "[0-9]".to_owned() } else { c.to_string() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::scheme::grammar::fixed_grammar;

    #[test]
    fn cuts_are_written_with_what_is_left() {
        let cuts = Cuts::from([
            ("[0-9]".into(), BTreeSet::from(["[0-9]".into(), masked("1.")])),
            (escaped("["), BTreeSet::from([escaped("a]")])),
        ]);
        let expected = "\\G(?!\\z)(?:[0-9](?=(?:[0-9]|[0-9]\\.)\\z)|\\[(?=(?:a\\])\\z))";
        assert_eq!(pattern(&cuts), expected);
        let fixed = written_with(fixed_grammar(15, 4));
        assert_eq!(fixed, "<>-.,0123456789");
        let digits = |text: &str| merges_digits(text, &fixed);
        assert!(digits("00") && digits(",-1") && digits("0."));
        assert!(!digits("0") && !digits(",-") && !digits("<0x30>"));
    }
}
