//! Trains BPE from scratch with the trainer of the `tokenizers` crate, from word counts or from texts.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, Tokenizer as HfTokenizer};

use crate::error::{Error, Result};

/// The tokens at the beginning of every byte-level vocabulary: one per byte.
pub const BYTES: usize = 256;

/// The trainer counts pairs in 32 bits.
const MAX_WEIGHT: u64 = i32::MAX as u64;

/// Returns the JSON of a byte-level BPE model with `size` tokens: first the `special` tokens, then the bytes, then the results of merges.
/// Words consist of printable ASCII and are given with their counts, so the trainer need not read and split texts.
///
/// # Errors
/// If a word contains other characters, the counts are too large for the trainer, or the trainer fails.
pub fn learn_bpe(words: &BTreeMap<String, u64>, special: &[&str], size: usize) -> Result<Value> {
    let refuse = |problem: String| Error::input("training", problem, "");
    if let Some(word) = words.keys().find(|word| !word.bytes().all(|b| b.is_ascii_graphic())) {
        return Err(refuse(format!("{word:?} contains more than printable ASCII")));
    }
    let weight: u64 = words.iter().map(|(word, count)| word.len() as u64 * count).sum();
    if weight > MAX_WEIGHT {
        return Err(refuse(format!("{weight} characters are more than the trainer counts, {MAX_WEIGHT}")));
    }
    // There is at most one merge for each character. The trainer allocates memory for all requested tokens.
    let most = words.keys().fold(BYTES + special.len(), |sum, word| sum.saturating_add(word.len()));
    let trainer = trainer(special, size.min(most));
    let mut model = BPE::default();
    // The trainer's map types can only be named by the trainer's crate.
    let counts = words.iter().map(|(word, count)| (word.as_str().into(), *count)).collect();
    trainer.do_train(&counts, &mut model).map_err(|e| refuse(e.to_string()))?;
    serde_json::to_value(&model).map_err(|e| refuse(e.to_string()))
}

/// Learns a tokenizer with default settings of the crate: byte-level BPE with GPT-2's splitting, `special` tokens before all others, and
/// `size` tokens in all. Returns the bytes of its JSON.
///
/// # Errors
/// If the trainer fails.
pub fn learn_plain<'t>(
    texts: impl Iterator<Item = &'t str> + Send,
    special: &[&str],
    size: usize,
) -> Result<Vec<u8>> {
    let refuse = |problem: &dyn std::fmt::Display| Error::input("training", problem, "");
    let mut tokenizer = HfTokenizer::new(BPE::default());
    // No space before a text, offsets without white space, and splitting by GPT-2's expression.
    let byte_level = ByteLevel::new(false, true, true);
    tokenizer.with_pre_tokenizer(Some(byte_level)).with_decoder(Some(byte_level));
    let added = special.iter().map(|content| AddedToken::from(*content, true).normalized(false));
    tokenizer.add_special_tokens(added).map_err(|e| refuse(&e))?;
    let mut trainer = tokenizers::models::TrainerWrapper::from(trainer(special, size));
    tokenizer.train(&mut trainer, texts).map_err(|e| refuse(&e))?;
    let json = serde_json::to_value(&tokenizer).map_err(|e| refuse(&e))?;
    Ok(json.to_string().into_bytes())
}

/// Returns the JSON of a byte-level tokenizer around a model, with block-aware splits as its pre-tokenizer.
pub fn byte_level_json(model: Value, special: &[&str], splits: Vec<Value>) -> Value {
    let added: Vec<Value> = (0u32..)
        .zip(special)
        .map(|(id, content)| {
            json!({
                "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true
            })
        })
        .collect();
    let byte_level =
        json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false });
    // Only the splits cut, so `ByteLevel` must not use its own expression.
    let mut pre_tokenizers = splits;
    pre_tokenizers.push(byte_level.clone());
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added,
        "normalizer": null,
        "pre_tokenizer": { "type": "Sequence", "pretokenizers": pre_tokenizers },
        "post_processor": null,
        "decoder": byte_level,
        "model": model,
    })
}

fn trainer(special: &[&str], size: usize) -> BpeTrainer {
    let special = special.iter().map(|content| AddedToken::from(*content, true).normalized(false)).collect();
    BpeTrainer::builder()
        .vocab_size(size)
        .show_progress(false)
        .special_tokens(special)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .build()
}

/// Returns the vocabulary of a model's JSON: the id of each token's text.
pub fn model_vocabulary(model: &Value) -> HashMap<String, u32> {
    let listed = model["vocab"].as_object();
    let ids = listed.into_iter().flatten();
    ids.filter_map(|(text, id)| Some((text.clone(), u32::try_from(id.as_u64()?).ok()?))).collect()
}
