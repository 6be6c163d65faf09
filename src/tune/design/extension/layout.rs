//! The structure of a base: what its tokens are written in, and where among its pre-tokenizers blocks can be isolated.
//!
//! | base | tokens are written in | pre-tokenizers |
//! | --- | --- | --- |
//! | Qwen, Llama 3, cl100k, o200k | bytes | splits by expressions, then `ByteLevel` |
//! | OLMo 2 | bytes | the same; its split is set to remove text that the expression does not match, which never occurs |
//! | Command-R, Galactica, Falcon | bytes | `Digits`, `Punctuation`: rewritten as splits by character class; Falcon has more splits after `ByteLevel`, which leaves blocks unchanged |
//! | GPT-2 | bytes | `ByteLevel` with its own expression: rewritten as a split and a `ByteLevel` without the expression |
//! | Llama 2, Mistral v1 | text | none; the normalizer puts `▁` before each section and in place of each space |
//! | Gemma | text | a split by a space, but the normalizer leaves no spaces |
//! | Mistral v3 | text | `Metaspace`: blocks are isolated after it, because it puts `▁` before each piece that it receives |

use serde_json::{Value, json};

use super::json::{regex, split, splits};
use drift_core::tokenizer::CharacterKind;
use drift_core::{Result, Tokenizer};

/// The expression of `ByteLevel`, from GPT-2.
pub const GPT2: &str = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/// The representation of text in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alphabet {
    /// One character per byte, as in GPT-2.
    Bytes,
    /// The text itself, with `▁` for a space, as in SentencePiece. Other characters fall back to byte tokens.
    Text,
}

impl Alphabet {
    /// Returns the alphabet of a base that [`BaseLayout::from_json`] accepts.
    pub(crate) fn from_json(base: &Value) -> Self {
        let bytes = splits(&base["pre_tokenizer"]).iter().any(|member| member["type"] == "ByteLevel");
        if bytes { Alphabet::Bytes } else { Alphabet::Text }
    }
}

/// A base's pre-tokenizers, grouped by their effect on blocks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BaseLayout {
    /// Pre-tokenizers that mark spaces. Blocks have no spaces, and are isolated after these.
    pub before: Vec<Value>,
    /// Splits, which must leave an isolated block alone. They include the pre-tokenizer that writes bytes as characters if splits
    /// follow it.
    pub own: Vec<Value>,
    /// Pre-tokenizers that write bytes as characters.
    pub after: Vec<Value>,
}

impl BaseLayout {
    /// Returns the layout of a `tokenizer.json`.
    ///
    /// # Errors
    /// If a pre-tokenizer cannot be kept from cutting blocks, or a pre-tokenizer that writes bytes is needed and missing.
    pub fn from_json(base: &Value) -> std::result::Result<Self, String> {
        let mut layout = BaseLayout::default();
        for member in splits(&base["pre_tokenizer"]) {
            layout.add(member, Alphabet::from_json(base))?;
        }
        let writes_bytes = base["decoder"].to_string().contains("\"ByteLevel\"");
        if writes_bytes && Alphabet::from_json(base) == Alphabet::Text {
            return Err("has no pre-tokenizer that writes the bytes that its decoder reads".into());
        }
        Ok(layout)
    }

    fn add(&mut self, member: &Value, alphabet: Alphabet) -> std::result::Result<(), String> {
        match member["type"].as_str() {
            Some("Split") => self.add_split(member.clone(), alphabet)?,
            Some("Digits" | "Punctuation") if alphabet == Alphabet::Bytes => {
                self.add_split(by_class(member), alphabet)?;
            }
            Some("ByteLevel") if member["add_prefix_space"] != false => {
                return Err("puts a space before every piece, and so before those of a block".into());
            }
            // A missing field means true.
            Some("ByteLevel") if member["use_regex"] != false => {
                // The expression becomes a separate split, which can be changed to leave blocks alone. `ByteLevel` then only writes
                // bytes.
                let mut bytes = member.clone();
                bytes["use_regex"] = false.into();
                self.add_split(split(GPT2), alphabet)?;
                self.after.push(bytes);
            }
            Some("ByteLevel") => self.after.push(member.clone()),
            // Only at the front: after a split, they would receive pieces of blocks.
            Some("Metaspace" | "WhitespaceSplit") if self.own.is_empty() && self.after.is_empty() => {
                self.before.push(member.clone());
            }
            Some(other) => return Err(format!("has a pre-tokenizer, {other}, that may cut blocks")),
            None => return Err("has a pre-tokenizer without a type".into()),
        }
        Ok(())
    }

    /// Adds a split after all previous pre-tokenizers.
    fn add_split(&mut self, split: Value, alphabet: Alphabet) -> std::result::Result<(), String> {
        check_split(&split, alphabet)?;
        // The characters of blocks are written alike in bytes and in text, so blocks stay isolated.
        self.own.append(&mut self.after);
        self.own.push(split);
        Ok(())
    }

    /// Returns the longest run of digits that a piece of a base's splits can contain, by [`longest_digits`].
    pub fn longest_digits(base: &Value) -> Option<usize> {
        longest_digits(BaseLayout::from_json(base).ok()?.patterns())
    }

    /// Returns the expressions of those own splits whose matches are pieces.
    pub fn patterns(&self) -> impl Iterator<Item = &str> {
        // Other behaviours join a match with its neighbour, so a match on its own is not a piece.
        let isolates = |split: &&Value| split["behavior"] == "Isolated" || split["behavior"] == "Removed";
        self.own.iter().filter(isolates).filter_map(regex)
    }

    /// Returns the base's own splits, changed to leave a text alone that is exactly a block matching this expression.
    pub fn guarded(&self, block: &str) -> impl Iterator<Item = Value> {
        self.own.iter().map(move |split| {
            let mut split = split.clone();
            if let Some(own) = regex(&split) {
                split["pattern"] = json!({ "Regex": format!("\\A{block}\\z|{own}") });
            }
            split
        })
    }
}

/// Accepts a split that can be changed to leave blocks alone, or never cuts a block because it splits by a text that no block
/// contains.
fn check_split(split: &Value, alphabet: Alphabet) -> std::result::Result<(), String> {
    // A split by a text that blocks cannot contain never cuts a block.
    let foreign = |text: &str| text.bytes().any(|byte| !b"<>-.,0123456789".contains(&byte));
    if split["pattern"]["String"].as_str().is_some_and(foreign) {
        return Ok(());
    }
    if regex(split).is_none() {
        return Err("has a split by a text that blocks may contain".into());
    }
    // A block will be one match, which is kept unless matches are removed. An inverted split removes the text between matches.
    if split["behavior"] == "Removed" && split["invert"] != true {
        return Err("has a split that removes what it matches, and so would remove blocks".into());
    }
    match alphabet {
        Alphabet::Text => Err("has a split by an expression, but no tokens of bytes".into()),
        Alphabet::Bytes => Ok(()),
    }
}

/// Rewrites `Digits` or `Punctuation` as an equivalent split by character class.
fn by_class(member: &Value) -> Value {
    if member["type"] == "Digits" {
        // Unless digits are cut individually, runs of digits are isolated.
        let run = if member["individual_digits"] == true { "" } else { "+" };
        return split(&format!("{}{run}", CharacterKind::Digits.class()));
    }
    let mut by_class = split(CharacterKind::Punctuation.class());
    if !member["behavior"].is_null() {
        by_class["behavior"] = member["behavior"].clone();
    }
    by_class
}

/// Returns the ids of a part of a block inside a text. At the beginning of a text, a base may put `▁` before it.
///
/// # Errors
/// If the base cannot encode it.
pub(in crate::design) fn ids_inside(base: &Tokenizer, text: &str) -> Result<Vec<u32>> {
    // A base marks beginnings if a single digit gets other ids as a whole text than inside a text.
    let whole = base.ids("0")?;
    let marks = base.model_ids("0").filter(|ids| *ids != whole);
    match marks.and_then(|_| base.model_ids(&text.replace(' ', "\u{2581}"))) {
        Some(ids) => Ok(ids),
        None => base.ids(text),
    }
}

/// Returns whether no piece can contain a text, for splits that put up to `longest` digits together and nothing else with digits.
pub(in crate::design) fn is_apart(text: &str, longest: usize) -> bool {
    // Splits that take digits of any number take a space before them too.
    let inside = text.trim_start();
    let digits = inside.bytes().filter(u8::is_ascii_digit).count();
    let is_spaced = inside.len() < text.len() && longest < usize::MAX;
    digits > 0 && (digits < inside.len() || digits > longest || is_spaced)
}

/// Returns the longest run of digits that a piece of these splits can contain, if one of the splits puts digits together only with each
/// other and a preceding space; `None` if this is unknown.
fn longest_digits<'p>(patterns: impl Iterator<Item = &'p str>) -> Option<usize> {
    patterns.filter_map(longest_in).min()
}

/// Known alternatives that match digits, with the largest number of digits.
const DIGITS: [(&str, usize); 4] =
    [("\\p{N}", 1), ("\\p{N}{1,3}", 3), (" ?\\p{N}+", usize::MAX), ("\\p{N}+", usize::MAX)];

/// Known alternatives that match no digits, from GPT-2, cl100k, Llama 3, Qwen and o200k.
const OTHERS: [&str; 20] = [
    "'s",
    "'t",
    "'re",
    "'ve",
    "'m",
    "'ll",
    "'d",
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)",
    "'(?i:[sdmt]|ll|ve|re)",
    " ?\\p{L}+",
    "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+",
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    " ?[^\\s\\p{L}\\p{N}]+",
    " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*",
    " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*",
    "\\s*[\\r\\n]+",
    "\\s*[\\r\\n]",
    "\\s+(?!\\S)",
    "\\s+",
];

/// Returns the number for one expression, see [`longest_digits`]. Every alternative must be known, and one must match every digit.
fn longest_in(pattern: &str) -> Option<usize> {
    match pattern.strip_prefix(CharacterKind::Digits.class()) {
        Some("") => return Some(1),
        Some("+") => return Some(usize::MAX),
        _ => {}
    }
    let mut longest = None;
    for alternative in alternatives(pattern) {
        match DIGITS.iter().find(|(known, _)| *known == alternative) {
            Some((_, digits)) => longest = longest.max(Some(*digits)),
            None if OTHERS.contains(&alternative) => {}
            // An unknown alternative could put a digit next to anything.
            None => return None,
        }
    }
    longest
}

/// Returns the top-level alternatives of an expression. Alternatives within groups and classes are not separated.
fn alternatives(pattern: &str) -> Vec<&str> {
    let (mut all, mut start, mut depth, mut escaped) = (Vec::new(), 0, 0, false);
    for (at, c) in pattern.char_indices() {
        match c {
            _ if escaped => {}
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '|' if depth == 0 => {
                all.push(&pattern[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        // A backslash after a backslash is a literal character and escapes nothing.
        escaped = c == '\\' && !escaped;
    }
    all.push(&pattern[start..]);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_that_put_digits_apart_are_known() {
        let head = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|";
        let tail = "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
        let longest = |pattern: &str| longest_digits([pattern].into_iter());
        assert_eq!(longest(&format!("{head}\\p{{N}}{tail}")), Some(1));
        assert_eq!(longest(&format!("{head}\\p{{N}}{{1,3}}{tail}")), Some(3));
        assert_eq!(longest(GPT2), Some(usize::MAX));
        assert_eq!(longest_digits([GPT2, "\\p{N}"].into_iter()), Some(1));
        for other in [&format!("{head}\\S+{tail}"), &format!("{head}\\p{{L}}{tail}"), "", "\\s+|[0-9.]+"] {
            assert_eq!(longest(other), None, "{other}");
        }
    }

    #[test]
    fn pre_tokenizers_that_may_cut_blocks_are_refused() {
        let of = |pre: Value| BaseLayout::from_json(&json!({ "pre_tokenizer": pre }));
        let split = |pattern: Value, behavior: &str| json!({ "type": "Split", "pattern": pattern, "behavior": behavior, "invert": false });
        let gemma = split(json!({ "String": " " }), "MergedWithPrevious");
        assert_eq!(of(gemma.clone()).unwrap().own, [gemma]);
        assert!(of(Value::Null).is_ok());
        let bytes = json!({ "type": "ByteLevel", "add_prefix_space": false, "use_regex": true });
        let layout = of(bytes).unwrap();
        assert_eq!((layout.patterns().collect::<Vec<_>>(), layout.after.len()), (vec![GPT2], 1));
        assert_eq!(layout.after[0]["use_regex"], false);
        let byte_level = json!({ "type": "ByteLevel", "add_prefix_space": false, "use_regex": false });
        let in_bytes = |member: Value| json!({ "type": "Sequence", "pretokenizers": [member, byte_level] });
        for refused in [
            split(json!({ "String": "," }), "Isolated"),
            split(json!({ "Regex": "[0-9]" }), "Isolated"),
            in_bytes(split(json!({ "Regex": " " }), "Removed")),
            json!({ "type": "ByteLevel", "add_prefix_space": true, "use_regex": true }),
            json!({ "type": "Digits", "individual_digits": true }),
            in_bytes(json!({ "type": "BertPreTokenizer" })),
            json!({ "type": "Sequence", "pretokenizers": [byte_level.clone(), { "type": "Metaspace" }] }),
        ] {
            assert!(of(refused.clone()).is_err(), "{refused}");
        }
        let mut inverted = split(json!({ "Regex": "\\p{N}| ?\\p{L}+" }), "Removed");
        inverted["invert"] = true.into();
        assert_eq!(of(in_bytes(inverted.clone())).unwrap().own, [inverted]);
        let bare = json!({ "pre_tokenizer": null, "decoder": { "type": "ByteLevel" } });
        assert!(BaseLayout::from_json(&bare).unwrap_err().starts_with("has no pre-tokenizer"));
    }

    #[test]
    fn splits_by_kinds_of_characters_are_written_as_classes() {
        let falcon = json!({ "pre_tokenizer": { "type": "Sequence", "pretokenizers": [
            { "type": "Punctuation", "behavior": "Contiguous" },
            { "type": "ByteLevel", "add_prefix_space": false, "use_regex": true },
            { "type": "Digits", "individual_digits": false },
            split("[0-9][0-9][0-9]"),
        ] } });
        let layout = BaseLayout::from_json(&falcon).unwrap();
        // What writes bytes keeps its place among them.
        let types: Vec<&str> = layout.own.iter().filter_map(|member| member["type"].as_str()).collect();
        assert_eq!(types, ["Split", "Split", "ByteLevel", "Split", "Split"]);
        assert_eq!((layout.own[0]["behavior"].as_str(), layout.after.len()), (Some("Contiguous"), 0));
        assert_eq!(BaseLayout::longest_digits(&falcon), Some(usize::MAX));
        let one = json!({ "pre_tokenizer": { "type": "Sequence", "pretokenizers": [
            { "type": "Digits", "individual_digits": true },
            { "type": "ByteLevel", "add_prefix_space": false, "use_regex": true },
        ] } });
        assert_eq!(
            (BaseLayout::longest_digits(&one), BaseLayout::from_json(&one).unwrap().after.len()),
            (Some(1), 1)
        );
    }
}
