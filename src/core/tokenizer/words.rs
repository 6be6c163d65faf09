//! Vocabularies that are a plain map of words, `{"Na": 0, "_cell_length_a": 1, …}`, as tokenizers of a project's own code save them.
//!
//! Such a file does not say how texts are split. The rule is that of CrystaLLM's `CIFTokenizer`: at each place the longest word of the
//! map; where none begins, letters, digits and `_` up to the next other character are one unknown word, and any other character is one.

use std::collections::{BTreeMap, HashSet};

use serde_json::json;

/// The words that stand for unknown text, in the order in which they are looked for.
const UNKNOWN: [&str; 5] = ["<unk>", "[UNK]", "<UNK>", "UNK", "unk"];

/// The marks of vocabularies whose words are parts of words: those of byte-level BPE, SentencePiece, WordPiece and older BPE.
const MARKS: [&str; 4] = ["\u{120}", "\u{2581}", "##", "</w>"];

/// The most words. Their expression is tried from the first to the last at each place of a text.
const MOST: usize = 20_000;

/// Returns whether bytes are a map from texts to ids.
pub(super) fn are_words(bytes: &[u8]) -> bool {
    words_of(bytes).is_some()
}

/// Returns a map that is not empty from texts to ids.
fn words_of(bytes: &[u8]) -> Option<BTreeMap<String, u32>> {
    serde_json::from_slice(bytes).ok().filter(|map: &BTreeMap<_, _>| !map.is_empty())
}

/// Returns the `tokenizer.json` of a plain map of words; `None` if the bytes are no map from texts to ids.
///
/// # Errors
/// A sentence, if the map does not say enough to split texts.
pub(super) fn tokenizer_json(bytes: &[u8]) -> Option<Result<Vec<u8>, String>> {
    let map = words_of(bytes)?;
    Some(checked(&map).map(|unknown| {
        let mut words: Vec<&str> = map.keys().map(String::as_str).filter(|word| *word != unknown).collect();
        // Of words of one length only one matches, so their order is free.
        words.sort_by_key(|word| std::cmp::Reverse(word.chars().count()));
        let known: Vec<String> = words.into_iter().map(escaped).collect();
        let pattern = format!("{}|\\w+|[\\s\\S]", known.join("|"));
        let json = json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
            "pre_tokenizer": {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false},
            "post_processor": null, "decoder": {"type": "Fuse"},
            "model": {"type": "WordLevel", "vocab": map, "unk_token": unknown},
        });
        json.to_string().into_bytes()
    }))
}

/// Returns the word for unknown text.
fn checked(map: &BTreeMap<String, u32>) -> Result<&'static str, String> {
    let ids: HashSet<&u32> = map.values().collect();
    if ids.len() < map.len() || map.contains_key("") {
        return Err("has two words of one id, or an empty word".to_owned());
    }
    if map.len() > MOST {
        return Err(format!("has more than {MOST} words"));
    }
    if let Some(word) = map.keys().find(|word| MARKS.iter().any(|mark| word.contains(mark))) {
        return Err(format!("has parts of words such as `{}`", word.escape_debug()));
    }
    let unknown = UNKNOWN.into_iter().find(|word| map.contains_key(*word));
    unknown.ok_or_else(|| format!("has no word for unknown text, such as `{}`", UNKNOWN[0]))
}

/// Returns the expression of a word.
fn escaped(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    for c in word.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            c if c.is_ascii_punctuation() && c != '_' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}
