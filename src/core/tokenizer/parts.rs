//! The stages of a tokenizer one by one, for tokenizer design.

use std::collections::HashMap;

use tokenizers::tokenizer::{Model, Normalizer, OffsetReferential, OffsetType, PreTokenizer};
use tokenizers::{ModelWrapper, NormalizedString, PreTokenizedString};

use super::load::Tokenizer;
use crate::error::Result;

/// A part of a text as the model receives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextPart {
    /// Added tokens, by their ids.
    Added(Vec<u32>),
    /// A pre-token in the alphabet of the model.
    Piece(String),
}

impl Tokenizer {
    /// Returns the tokenizer's JSON, as `tokenizers` writes it.
    ///
    /// # Errors
    /// If it cannot be serialized.
    pub fn json(&self) -> Result<serde_json::Value> {
        serde_json::to_value(self.inner()).map_err(|e| crate::Error::internal(&self.name, e))
    }

    /// Returns the token ids of a text, without special tokens of the post-processor.
    ///
    /// # Errors
    /// If the tokenizer cannot encode the text.
    pub fn ids(&self, text: &str) -> Result<Vec<u32>> {
        Ok(self.encoded(text, false, false)?.get_ids().to_vec())
    }

    /// Returns the number of tokens of a text, with those that the post-processor adds, such as Llama's beginning of text: what `encode`
    /// of `tokenizers` gives by default.
    ///
    /// # Errors
    /// As [`Tokenizer::tokens`].
    pub fn whole_count(&self, text: &str) -> Result<usize> {
        Ok(self.encoded(text, true, false)?.get_ids().len())
    }

    /// Returns the decoded text of token ids, including special tokens.
    ///
    /// # Errors
    /// If the tokenizer's decoder refuses them.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        let decoded = self.guarded("ids", |inner| inner.decode(ids, false))?;
        decoded.map_err(|e| self.refuse("decode", "ids", &e))
    }

    /// Returns the id of every token, added tokens included.
    pub fn vocabulary(&self) -> HashMap<String, u32> {
        self.inner().get_vocab(true)
    }

    /// Returns the least number of embedding rows that a model of this tokenizer needs: the largest id plus one, which is more than the
    /// number of tokens if ids have gaps.
    pub fn rows(&self) -> u32 {
        self.vocabulary().into_values().max().map_or(0, |id| id + 1)
    }

    /// Returns the id of a token by its text, added tokens included.
    pub fn vocabulary_id(&self, text: &str) -> Option<u32> {
        self.inner().token_to_id(text)
    }

    /// Returns whether a text is an added token.
    pub fn is_added(&self, text: &str) -> bool {
        self.inner().get_added_vocabulary().get_vocab().contains_key(text)
    }

    /// Returns the output of the normalizer for a text.
    ///
    /// # Errors
    /// If the normalizer refuses the text.
    pub fn normalized(&self, text: &str) -> Result<String> {
        let mut normalized = NormalizedString::from(text);
        if let Some(normalizer) = self.inner().get_normalizer() {
            let outcome = self.guarded(text, |_| normalizer.normalize(&mut normalized))?;
            outcome.map_err(|e| self.refuse("normalise", text, &e))?;
        }
        Ok(normalized.get().to_owned())
    }

    /// Returns the pre-tokens of an already normalised text, in the alphabet of the model.
    ///
    /// # Errors
    /// If the pre-tokenizer refuses the text.
    pub fn pre_tokens(&self, text: &str) -> Result<Vec<String>> {
        let pieces = self.pre_tokenized(text, PreTokenizedString::from(text))?;
        let splits = pieces.get_splits(OffsetReferential::Original, OffsetType::Byte);
        Ok(splits.into_iter().map(|(piece, ..)| piece.to_owned()).collect())
    }

    /// Returns a text as the model receives it: added tokens are split off, the rest is normalised and pre-tokenised.
    ///
    /// # Errors
    /// If the pre-tokenizer refuses the text.
    pub fn sections(&self, text: &str) -> Result<Vec<TextPart>> {
        let pieces = self.guarded(text, |inner| {
            inner.get_added_vocabulary().extract_and_normalize(inner.get_normalizer(), text)
        })?;
        let pieces = self.pre_tokenized(text, pieces)?;
        let splits = pieces.get_splits(OffsetReferential::Original, OffsetType::Byte);
        let parts = splits.into_iter().map(|(piece, _, tokens)| match tokens {
            Some(tokens) => TextPart::Added(tokens.iter().map(|token| token.id).collect()),
            None => TextPart::Piece(piece.to_owned()),
        });
        Ok(parts.collect())
    }

    /// Returns the ends of the pieces that the model receives of a text, in bytes of the text.
    ///
    /// # Errors
    /// If the pre-tokenizer refuses the text.
    pub(crate) fn piece_ends(&self, text: &str) -> Result<Vec<usize>> {
        let pieces = self.guarded(text, |inner| {
            inner.get_added_vocabulary().extract_and_normalize(inner.get_normalizer(), text)
        })?;
        let pieces = self.pre_tokenized(text, pieces)?;
        let splits = pieces.get_splits(OffsetReferential::Original, OffsetType::Byte);
        Ok(splits.into_iter().map(|split| split.1.1).collect())
    }

    /// Returns the pieces of a text after the pre-tokenizer.
    fn pre_tokenized(&self, text: &str, mut pieces: PreTokenizedString) -> Result<PreTokenizedString> {
        if let Some(pre_tokenizer) = self.inner().get_pre_tokenizer() {
            let outcome = self.guarded(text, |_| pre_tokenizer.pre_tokenize(&mut pieces))?;
            outcome.map_err(|e| self.refuse("pre-tokenise", text, &e))?;
        }
        Ok(pieces)
    }

    /// Returns the ends of the tokens that the model produces for one pre-token, in bytes; empty if it fails.
    pub fn model_ends(&self, piece: &str) -> Vec<usize> {
        let tokens = self.guarded(piece, |inner| inner.get_model().tokenize(piece).unwrap_or_default());
        tokens.unwrap_or_default().into_iter().map(|token| token.offsets.1).collect()
    }

    /// Returns the ids that the model produces for one pre-token; `None` if it fails.
    pub fn model_ids(&self, piece: &str) -> Option<Vec<u32>> {
        let tokens = self.guarded(piece, |inner| inner.get_model().tokenize(piece)).ok()?.ok()?;
        Some(tokens.into_iter().map(|token| token.id).collect())
    }

    /// Returns the ids that the model's merges produce for a part of a pre-token, which is not looked up as pre-tokens may be
    /// (`ignore_merges`); `None` if it fails.
    pub(super) fn merged_ids(&self, part: &str) -> Option<Vec<u32>> {
        let merging = self.merging.get_or_init(|| match self.inner().get_model() {
            ModelWrapper::BPE(bpe) if bpe.ignore_merges => {
                let mut merging = bpe.clone();
                merging.ignore_merges = false;
                Some(merging)
            }
            _ => None,
        });
        let Some(merging) = merging else { return self.model_ids(part) };
        let tokens = self.guarded(part, |_| merging.tokenize(part)).ok()?.ok()?;
        Some(tokens.into_iter().map(|token| token.id).collect())
    }
}
